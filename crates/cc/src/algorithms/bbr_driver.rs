//! Drives a version of BBR by hand in tests: packets of 1000 bytes, 100 ms, 1 MB/s unless changed, so that the BDP is 100 packets.

use crate::controller::Controller;
use crate::event::{Ack, AckSample, Loss, PathInfo, Timeout};
use crate::registry::Spec;

pub(super) const MS: u64 = 1_000_000;
const PACKET: u64 = 1000;

pub(super) struct Run {
    spec: &'static Spec,
    pub(super) bbr: Box<dyn Controller>,
    pub(super) now_ns: u64,
    pub(super) rtt_ns: u64,
    /// Of the rate samples, bytes/s.
    pub(super) rate: f64,
    /// Packets that an ACK acknowledges, and that are in flight after it.
    pub(super) acked: u64,
    pub(super) in_flight: u64,
    /// Packets in flight when the packet acknowledged or lost was sent, and lost since.
    pub(super) tx_in_flight: u64,
    pub(super) lost: u64,
    pub(super) delivered: u64,
    pub(super) flags: u32,
}

impl Run {
    pub(super) fn new(
        spec: &'static Spec,
        profile: Option<&str>,
        settings: &[(&str, f64)],
        seed: u64,
    ) -> Self {
        let mut params = spec.params(profile).unwrap();
        for (key, value) in settings {
            params.set(key, *value).unwrap();
        }
        let packet_bytes = PACKET as u32;
        let path = PathInfo { now_ns: 0, packet_bytes, initial_window_packets: 10, seed };
        Self {
            spec,
            bbr: (spec.build)(&params, &path),
            now_ns: 0,
            rtt_ns: 100 * MS,
            rate: 1e6,
            acked: 1,
            in_flight: 100,
            tx_in_flight: 100,
            lost: 0,
            delivered: 0,
            flags: 0,
        }
    }

    /// An ACK `after_ns` later that does not begin a round.
    pub(super) fn ack(&mut self, after_ns: u64) {
        self.ack_of(after_ns, 0);
    }

    /// An ACK one RTT later that begins a round.
    pub(super) fn round(&mut self) {
        self.ack_of(self.rtt_ns, self.delivered);
    }

    pub(super) fn ack_of(&mut self, after_ns: u64, prior_delivered: u64) {
        self.now_ns += after_ns;
        self.delivered += self.acked * PACKET;
        let sample = AckSample {
            now_ns: self.now_ns,
            acked_bytes: self.acked * PACKET,
            acked_packets: self.acked as u32,
            in_flight_bytes: self.in_flight * PACKET,
            prior_in_flight_bytes: (self.in_flight + self.acked) * PACKET,
            rtt_ns: self.rtt_ns,
            srtt_ns: self.rtt_ns,
            min_rtt_ns: self.rtt_ns,
            sent_ns: self.now_ns.saturating_sub(self.rtt_ns),
            delivered_bytes: (self.rate * self.rtt_ns as f64 * 1e-9).round() as u64,
            interval_ns: self.rtt_ns,
            delivered_total_bytes: self.delivered,
            prior_delivered_total_bytes: prior_delivered,
            tx_in_flight_bytes: self.tx_in_flight * PACKET,
            lost_since_sent_bytes: self.lost * PACKET,
            flags: self.flags,
            ..AckSample::default()
        };
        self.bbr.on_ack(&Ack { sample, hops: &[] });
    }

    pub(super) fn lose(&mut self, packets: u32, flags: u32) {
        self.in_flight -= u64::from(packets);
        self.bbr.on_loss(&Loss {
            now_ns: self.now_ns,
            lost_bytes: u64::from(packets) * PACKET,
            lost_packets: packets,
            in_flight_bytes: self.in_flight * PACKET,
            tx_in_flight_bytes: self.tx_in_flight * PACKET,
            lost_since_sent_bytes: (self.lost + u64::from(packets)) * PACKET,
            flags,
            ..Loss::default()
        });
    }

    pub(super) fn time_out(&mut self, in_flight: u64, consecutive: u32) {
        self.bbr.on_rto(&Timeout {
            now_ns: self.now_ns,
            in_flight_bytes: in_flight * PACKET,
            consecutive,
            ..Timeout::default()
        });
    }

    pub(super) fn cwnd(&self) -> f64 {
        self.bbr.control().cwnd_bytes as f64 / PACKET as f64
    }

    pub(super) fn pacing(&self) -> u64 {
        self.bbr.control().pacing_bytes_per_s
    }

    /// What it observes under this name.
    pub(super) fn field(&self, name: &str) -> f64 {
        let mut out = vec![0.0; self.spec.fields.len()];
        self.bbr.observe(&mut out);
        out[self.spec.fields.iter().position(|field| field.name == name).unwrap()]
    }

    /// BtlBw, bytes/s.
    pub(super) fn bandwidth(&self) -> f64 {
        self.field("bandwidth") * 1e6 / 8.0
    }

    pub(super) fn gain(&self) -> f64 {
        self.field("pacing_gain")
    }

    pub(super) fn state(&self) -> f64 {
        self.field("state")
    }
}
