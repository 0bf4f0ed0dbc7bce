//! What controllers that replace only Reno's congestion avoidance have in common (RFC 5681): slow start, one reduction per
//! episode, the loss window after a timeout, undo. Each brings its [`Law`]: how the window grows and what a reduction keeps.

use super::{MAX_WINDOW_PACKETS, packet_size, window_bytes};
use crate::controller::{Control, Controller, Field};
use crate::episode::EpisodeGate;
use crate::event::{Ack, AckSample, Loss, PathInfo, Resume, Timeout, Undo};
use crate::registry::{Param, Params};
use crate::slow_start::{SlowStart, SlowStartKind};

const SECOND_NS: u64 = 1_000_000_000;
/// Smallest window after a loss, packets (RFC 5681 eq. 4).
const LEAST_AFTER_LOSS: f64 = 2.0;

/// How the first slow start ends; a row of every table here.
pub(super) const SLOW_START: Param = Param::choice(
    "slow_start",
    SlowStartKind::WORDS,
    "slow start: plain, RFC 9406, Linux's HyStart, or limited (RFC 3742)",
);
/// A row of every table here.
pub(super) const INITIAL_WINDOW: Param = Param::integer(
    "initial_window",
    "packets",
    0.0,
    (0.0, 1_000_000.0),
    "initial window; 0 = as the host starts (RFC 6928: 10)",
);
/// A row of every table here.
pub(super) const INITIAL_SSTHRESH: Param = Param::integer(
    "initial_ssthresh",
    "packets",
    1_000_000_000.0,
    (2.0, 1_000_000_000.0),
    "initial slow-start threshold; the default is no limit",
);
/// The first field of every controller here; those of its law follow.
pub(super) const SSTHRESH: Field =
    Field { name: "ssthresh_bytes", unit: "bytes", doc: "slow-start threshold" };

/// Congestion avoidance and reduction. Windows are in packets.
pub(super) trait Law: Copy + Send {
    /// Hears every ACK, before the window moves.
    fn measure(&mut self, _ack: &AckSample, _window: f64) {}
    /// What the window gains from `acked` packets in congestion avoidance.
    fn gain(&mut self, window: f64, acked: f64, now_ns: u64) -> f64;
    /// What a congestion signal leaves of the window.
    fn keep(&mut self, window: f64, now_ns: u64) -> f64;
    /// The host has repaired the losses of an episode; a window to set, if the law does so only now.
    fn recovered(&mut self, _now_ns: u64) -> Option<f64> {
        None
    }
    /// A timeout, after `keep`; another slow-start threshold, if the law has one for it.
    fn timed_out(&mut self) -> Option<f64> {
        None
    }
    /// The last signal was none; `before` is the law as it stood.
    fn undo(&mut self, before: &Self) {
        *self = *before;
    }
    /// Another path: what was measured is void.
    fn path_changed(&mut self, _path: &PathInfo) {}
    /// Writes the law's fields.
    fn observe(&self, out: &mut [f64]);
}

/// What an undo restores.
#[derive(Clone, Copy, Debug)]
struct Before<L> {
    cwnd: f64,
    ssthresh: f64,
    law: L,
}

struct LossBased<L> {
    law: L,
    /// Window and threshold, packets.
    cwnd: f64,
    ssthresh: f64,
    before: Option<Before<L>>,
    initial_window: f64,
    packet_bytes: f64,
    slow_start: SlowStart,
    gate: EpisodeGate,
    in_fast_recovery: bool,
    srtt_ns: u64,
}

/// The controller that `law` makes, on a path. The table must have the rows above.
pub(super) fn controller<L: Law + 'static>(
    law: L,
    params: &Params,
    path: &PathInfo,
) -> Box<dyn Controller> {
    let window = match params.get("initial_window") {
        0.0 => f64::from(path.initial_window_packets),
        packets => packets,
    }
    .max(1.0);
    let slow_start = SlowStartKind::from_word(params.get_choice("slow_start"));
    Box::new(LossBased {
        law,
        cwnd: window,
        ssthresh: params.get("initial_ssthresh"),
        before: None,
        initial_window: window,
        packet_bytes: packet_size(path),
        slow_start: SlowStart::new(slow_start, false),
        gate: EpisodeGate::default(),
        in_fast_recovery: false,
        srtt_ns: 0,
    })
}

impl<L: Law> LossBased<L> {
    fn reduce(&mut self, now_ns: u64) {
        self.before = Some(Before { cwnd: self.cwnd, ssthresh: self.ssthresh, law: self.law });
        self.gate.open(now_ns);
        self.ssthresh = self.law.keep(self.cwnd, now_ns).max(LEAST_AFTER_LOSS);
    }

    fn grow(&mut self, ack: &AckSample) {
        let mut acked = f64::from(ack.acked_packets);
        if self.cwnd < self.ssthresh {
            let step = self.slow_start.on_ack(ack, self.cwnd);
            let room = self.ssthresh - self.cwnd;
            self.cwnd += step.growth_packets.min(room);
            if step.exit {
                self.ssthresh = self.cwnd;
            }
            // What crossed the threshold counts for congestion avoidance.
            acked = (step.growth_packets - room).max(0.0);
        }
        if acked > 0.0 && self.cwnd >= self.ssthresh {
            self.cwnd += self.law.gain(self.cwnd, acked.min(self.cwnd), ack.now_ns);
        }
        self.cwnd = self.cwnd.min(MAX_WINDOW_PACKETS);
    }
}

impl<L: Law> Controller for LossBased<L> {
    fn on_ack(&mut self, ack: &Ack<'_>) {
        self.srtt_ns = ack.srtt_ns;
        self.law.measure(ack, self.cwnd);
        if self.in_fast_recovery {
            if ack.has(AckSample::IN_RECOVERY) {
                return;
            }
            self.in_fast_recovery = false;
            if let Some(window) = self.law.recovered(ack.now_ns) {
                self.ssthresh = window.max(LEAST_AFTER_LOSS);
                self.cwnd = self.ssthresh;
            }
        }
        if ack.ce_packets > 0 && self.gate.admits(ack.now_ns, ack.sent_ns) {
            // RFC 3168 §6.1.2: a mark counts like a loss.
            self.reduce(ack.now_ns);
            self.cwnd = self.cwnd.min(self.ssthresh);
        } else if ack.has(AckSample::CWND_LIMITED) && ack.has(AckSample::CUMULATIVE) {
            // RFC 5681 §3.1: an ACK out of order, which may be the first sign of a loss, opens no window.
            self.grow(ack);
        }
    }

    fn on_loss(&mut self, loss: &Loss) {
        if loss.starts_episode() {
            self.reduce(loss.now_ns);
            self.cwnd = self.cwnd.min(self.ssthresh);
            self.in_fast_recovery = true;
        }
    }

    fn on_rto(&mut self, timeout: &Timeout) {
        self.in_fast_recovery = false;
        // RFC 5681 §3.1: only the first expiry lowers ssthresh; the loss window is one packet.
        if timeout.consecutive <= 1 {
            self.reduce(timeout.now_ns);
            if let Some(ssthresh) = self.law.timed_out() {
                self.ssthresh = ssthresh.max(LEAST_AFTER_LOSS);
            }
        }
        self.gate.open(timeout.now_ns);
        self.cwnd = 1.0;
        self.slow_start.on_rto();
    }

    fn on_spurious_loss(&mut self, _undo: &Undo) {
        if let Some(before) = self.before.take() {
            self.cwnd = self.cwnd.max(before.cwnd);
            self.ssthresh = self.ssthresh.max(before.ssthresh);
            self.law.undo(&before.law);
        }
        self.in_fast_recovery = false;
    }

    fn on_resume(&mut self, resume: &Resume) {
        // RFC 5681 §4.1. Deviation: the event does not say the RTO; the larger of 1 s and twice the smoothed RTT stands for it.
        if resume.idle_ns > SECOND_NS.max(self.srtt_ns.saturating_mul(2)) {
            self.cwnd = self.cwnd.min(self.initial_window);
        }
    }

    fn on_path_change(&mut self, path: &PathInfo) {
        self.packet_bytes = packet_size(path);
        self.law.path_changed(path);
    }

    fn control(&self) -> Control {
        Control::window(window_bytes(self.cwnd, self.packet_bytes))
    }

    fn observe(&self, out: &mut [f64]) {
        let known = self.ssthresh < MAX_WINDOW_PACKETS;
        out[0] = if known { self.ssthresh * self.packet_bytes } else { f64::NAN };
        self.law.observe(&mut out[1..]);
    }
}

/// Growth in whole packets as Linux counts it (`tcp_cong_avoid_ai`): one for every so many acknowledged, the rest carried.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct WholePackets {
    credit: f64,
}

impl WholePackets {
    /// What `acked` packets give at one packet for every `per_packet`, a whole number of at least 1.
    pub(super) fn gain(&mut self, per_packet: f64, acked: f64) -> f64 {
        let mut gain = 0.0;
        if self.credit >= per_packet {
            // Credit from a flatter stretch is worth one packet, not a burst.
            self.credit = 0.0;
            gain = 1.0;
        }
        self.credit += acked;
        let whole = libm::floor(self.credit / per_packet);
        self.credit -= whole * per_packet;
        gain + whole
    }

    /// A reduction forfeits the credit.
    pub(super) fn reset(&mut self) {
        self.credit = 0.0;
    }
}

/// Linux's clock, HZ = 250 as Debian and most distributions build it: one jiffy is 4 ms.
pub(super) mod jiffies {
    /// Jiffies in a second.
    pub(in super::super) const HZ: u64 = 250;
    const JIFFY_NS: u64 = 1_000_000_000 / HZ;

    /// The clock at `now_ns`: whole jiffies passed.
    pub(in super::super) fn at(now_ns: u64) -> u64 {
        now_ns / JIFFY_NS
    }

    /// A duration, rounded up to whole jiffies.
    pub(in super::super) fn lasting(duration_ns: u64) -> u64 {
        duration_ns.div_ceil(JIFFY_NS)
    }
}

#[cfg(test)]
#[path = "loss_based_tests.rs"]
pub(super) mod tests;
