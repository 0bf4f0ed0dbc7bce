//! Drives a controller by hand in tests: ACKs, losses and timeouts at times and RTTs of the test's choice.

use crate::controller::Controller;
use crate::event::{Ack, AckSample, Loss, PathInfo, Timeout, Undo};
use crate::registry::Spec;

/// Large, so that a window in whole bytes shows a millionth of a packet.
pub(crate) const PACKET: u64 = 1_000_000;
pub(crate) const MS: u64 = 1_000_000;

/// Whether two numbers agree within a share of the second.
#[track_caller]
pub(crate) fn close(a: f64, b: f64, relative: f64) {
    assert!((a - b).abs() <= relative * b.abs(), "{a} against {b}");
}

/// Whether two numbers agree to the fourth decimal.
#[track_caller]
pub(crate) fn near(got: f64, expected: f64) {
    assert!((got - expected).abs() < 1e-5, "{got}, not {expected}");
}

pub(crate) struct Driver {
    pub(crate) controller: Box<dyn Controller>,
    pub(crate) now_ns: u64,
    /// RTT of the ACKs whose RTT is not given.
    pub(crate) rtt_ns: u64,
    /// Whether the window limits, and whether losses are being repaired.
    pub(crate) limited: bool,
    pub(crate) recovering: bool,
    /// Marks that each ACK reports.
    pub(crate) marks: u32,
    fields: usize,
    /// Bytes delivered so far, and when the packets of the current round left.
    delivered: u64,
    round_start: u64,
}

impl Driver {
    pub(crate) fn new(
        spec: &'static Spec,
        profile: Option<&str>,
        settings: &[(&str, f64)],
    ) -> Self {
        Self::seeded(spec, profile, settings, 0)
    }

    pub(crate) fn seeded(
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
            rtt_ns: 100 * MS,
            limited: true,
            recovering: false,
            marks: 0,
            fields: spec.fields.len(),
            delivered: 0,
            round_start: 0,
        }
    }

    /// In congestion avoidance, with a window and threshold of `window` packets.
    pub(crate) fn avoiding(spec: &'static Spec, profile: Option<&str>, window: f64) -> Self {
        let settings = [("initial_window", window), ("initial_ssthresh", window.max(2.0))];
        Self::new(spec, profile, &settings)
    }

    // -------------------------------------------------------------------------------------------------- what is observed

    /// The window in packets, to a millionth.
    pub(crate) fn cwnd(&self) -> f64 {
        self.controller.control().cwnd_bytes as f64 / PACKET as f64
    }

    pub(crate) fn observed(&self) -> Vec<f64> {
        let mut out = vec![0.0; self.fields];
        self.controller.observe(&mut out);
        out
    }

    /// All fields.
    pub(crate) fn fields<const N: usize>(&self) -> [f64; N] {
        self.observed().try_into().expect("as many as in its table")
    }

    // -------------------------------------------------------------------------------------------------------------- ACKs

    /// An ACK of `packets` of the current round, now.
    pub(crate) fn sample(&self, packets: u32, rtt_ns: u64) -> AckSample {
        let flag = |on: bool, flag: u32| if on { flag } else { 0 };
        let acked_bytes = u64::from(packets) * PACKET;
        AckSample {
            now_ns: self.now_ns,
            acked_packets: packets,
            acked_bytes,
            ce_packets: self.marks,
            prior_in_flight_bytes: self.controller.control().cwnd_bytes,
            rtt_ns,
            srtt_ns: rtt_ns,
            sent_ns: self.now_ns.saturating_sub(rtt_ns),
            delivered_total_bytes: self.delivered + acked_bytes,
            prior_delivered_total_bytes: self.round_start,
            flags: flag(self.limited, AckSample::CWND_LIMITED)
                | flag(self.recovering, AckSample::IN_RECOVERY)
                | AckSample::CUMULATIVE,
            ..AckSample::default()
        }
    }

    pub(crate) fn send(&mut self, sample: AckSample) {
        self.delivered = sample.delivered_total_bytes;
        self.controller.on_ack(&Ack { sample, hops: &[] });
    }

    /// An ACK of one packet, `gap_ns` after the last.
    pub(crate) fn ack_after(&mut self, gap_ns: u64, rtt_ns: u64) {
        self.now_ns += gap_ns;
        self.send(self.sample(1, rtt_ns));
    }

    /// An ACK of one packet, a microsecond after the last.
    pub(crate) fn ack(&mut self, rtt_ns: u64) {
        self.acks(1, rtt_ns);
    }

    /// An ACK of `packets`, a microsecond after the last.
    pub(crate) fn acks(&mut self, packets: u32, rtt_ns: u64) {
        self.now_ns += 1000;
        self.send(self.sample(packets, rtt_ns));
    }

    /// `packets` ACKs of one packet each, spread over `over_ns`.
    pub(crate) fn spread(&mut self, packets: u64, over_ns: u64) {
        let start_ns = self.now_ns;
        for n in 1..=packets {
            self.now_ns = start_ns + over_ns * n / packets;
            self.send(self.sample(1, self.rtt_ns));
        }
    }

    /// What `packets` ACKs at one moment add to the window.
    pub(crate) fn gained(&mut self, packets: u64) -> f64 {
        let before = self.cwnd();
        self.spread(packets, 0);
        self.cwnd() - before
    }

    /// What one packet adds, by the ACK of a window of packets.
    pub(crate) fn per_packet(&mut self) -> f64 {
        let (before, packets) = (self.cwnd(), self.cwnd().floor().max(1.0));
        self.send(self.sample(packets as u32, self.rtt_ns));
        (self.cwnd() - before) / packets
    }

    // ------------------------------------------------------------------------------------------------------------ rounds

    /// The first ACK, which shows the RTT and grows nothing: the window does not yet limit.
    pub(crate) fn begin(&mut self, rtt_ns: u64) {
        self.limited = false;
        self.end_round(rtt_ns);
        self.limited = true;
    }

    /// What is acknowledged from now on was sent now.
    pub(crate) fn start_round(&mut self) {
        self.round_start = self.delivered;
    }

    /// The ACK of the first packet sent after the round began, which ends it.
    pub(crate) fn end_round(&mut self, rtt_ns: u64) {
        self.now_ns += rtt_ns;
        self.start_round();
        self.ack(rtt_ns);
    }

    /// A window of ACKs, the last of which ends the round.
    pub(crate) fn round(&mut self, rtt_ns: u64) {
        let window = self.cwnd() as u64;
        (1..window).for_each(|_| self.ack(rtt_ns));
        self.end_round(rtt_ns);
    }

    /// A window of ACKs at one moment, the first of which ends the round before.
    pub(crate) fn flight(&mut self, rtt_ns: u64) {
        self.start_round();
        self.now_ns += rtt_ns;
        (0..self.cwnd() as u64).for_each(|_| self.ack_after(0, rtt_ns));
    }

    // --------------------------------------------------------------------------------------------------------- congestion

    /// A loss that opens an episode.
    pub(crate) fn lose(&mut self) {
        self.lose_again(Loss::EPISODE_START);
    }

    /// A loss with these flags: without any it belongs to an episode that is open.
    pub(crate) fn lose_again(&mut self, flags: u32) {
        self.controller.on_loss(&Loss {
            now_ns: self.now_ns,
            prior_in_flight_bytes: self.controller.control().cwnd_bytes,
            lost_packets: 1,
            flags,
            ..Loss::default()
        });
    }

    /// The window after a loss.
    pub(crate) fn after_loss(&mut self) -> f64 {
        self.lose();
        self.cwnd()
    }

    /// The expiry of this number since the last ACK.
    pub(crate) fn time_out(&mut self, consecutive: u32) {
        let in_flight_bytes = self.controller.control().cwnd_bytes;
        let now_ns = self.now_ns;
        let timeout = Timeout { now_ns, in_flight_bytes, consecutive, ..Timeout::default() };
        self.controller.on_rto(&timeout);
    }

    pub(crate) fn undo(&mut self) {
        self.controller.on_spurious_loss(&Undo::default());
    }
}
