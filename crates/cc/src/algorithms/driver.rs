//! Drives a controller by hand in tests: rounds of ACKs, one packet each, at RTTs of the test's choice.

use crate::controller::Controller;
use crate::event::{Ack, AckSample, Loss, PathInfo, Timeout, Undo};
use crate::registry::Spec;

const PACKET: u64 = 1500;

pub(super) struct Driver {
    pub(super) controller: Box<dyn Controller>,
    pub(super) now_ns: u64,
    /// Whether the window limits, and whether losses are being repaired.
    pub(super) limited: bool,
    pub(super) recovering: bool,
    /// Marks that each ACK reports.
    pub(super) marks: u32,
    fields: usize,
    delivered: u64,
    /// What had been delivered when the packets of the current round left.
    round_start: u64,
}

impl Driver {
    pub(super) fn new(
        spec: &'static Spec,
        profile: Option<&str>,
        settings: &[(&str, f64)],
    ) -> Self {
        Self::seeded(spec, profile, settings, 0)
    }

    pub(super) fn seeded(
        spec: &'static Spec,
        profile: Option<&str>,
        settings: &[(&str, f64)],
        seed: u64,
    ) -> Self {
        let mut params = spec.params(profile).unwrap();
        for (name, value) in settings {
            params.set(name, *value).unwrap();
        }
        let packet_bytes = PACKET as u32;
        let path = PathInfo { now_ns: 0, packet_bytes, initial_window_packets: 10, seed };
        Self {
            controller: (spec.build)(&params, &path),
            now_ns: 0,
            limited: true,
            recovering: false,
            marks: 0,
            fields: spec.fields.len(),
            delivered: 0,
            round_start: 0,
        }
    }

    /// The window in packets, to a byte.
    pub(super) fn cwnd(&self) -> f64 {
        self.controller.control().cwnd_bytes as f64 / PACKET as f64
    }

    pub(super) fn observed(&self) -> Vec<f64> {
        let mut out = vec![0.0; self.fields];
        self.controller.observe(&mut out);
        out
    }

    /// The first ACK, which shows the RTT and grows nothing: the window does not yet limit.
    pub(super) fn begin(&mut self, rtt_ns: u64) {
        self.limited = false;
        self.end_round(rtt_ns);
        self.limited = true;
    }

    /// An ACK of one packet of the current round, a microsecond after the last.
    pub(super) fn ack(&mut self, rtt_ns: u64) {
        self.acks(1, rtt_ns);
    }

    /// An ACK of `packets` of the current round.
    pub(super) fn acks(&mut self, packets: u32, rtt_ns: u64) {
        self.now_ns += 1000;
        self.delivered += u64::from(packets) * PACKET;
        let flag = |on: bool, flag: u32| if on { flag } else { 0 };
        let sample = AckSample {
            now_ns: self.now_ns,
            acked_packets: packets,
            acked_bytes: u64::from(packets) * PACKET,
            ce_packets: self.marks,
            rtt_ns,
            srtt_ns: rtt_ns,
            sent_ns: self.now_ns.saturating_sub(rtt_ns),
            delivered_total_bytes: self.delivered,
            prior_delivered_total_bytes: self.round_start,
            flags: flag(self.limited, AckSample::CWND_LIMITED)
                | flag(self.recovering, AckSample::IN_RECOVERY)
                | AckSample::CUMULATIVE,
            ..AckSample::default()
        };
        self.controller.on_ack(&Ack { sample, hops: &[] });
    }

    /// The ACK of the first packet sent after the round began, which ends it.
    pub(super) fn end_round(&mut self, rtt_ns: u64) {
        self.now_ns += rtt_ns;
        self.round_start = self.delivered;
        self.ack(rtt_ns);
    }

    /// A window of ACKs, the last of which ends the round.
    pub(super) fn round(&mut self, rtt_ns: u64) {
        let window = self.cwnd() as u64;
        (1..window).for_each(|_| self.ack(rtt_ns));
        self.end_round(rtt_ns);
    }

    pub(super) fn lose(&mut self) {
        self.controller.on_loss(&Loss {
            now_ns: self.now_ns,
            prior_in_flight_bytes: self.controller.control().cwnd_bytes,
            lost_packets: 1,
            flags: Loss::EPISODE_START,
            ..Loss::default()
        });
    }

    pub(super) fn time_out(&mut self) {
        let consecutive = 1;
        self.controller.on_rto(&Timeout { now_ns: self.now_ns, consecutive, ..Timeout::default() });
    }

    pub(super) fn spurious(&mut self) {
        self.controller.on_spurious_loss(&Undo::default());
    }
}
