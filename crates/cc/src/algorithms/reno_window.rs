//! The window of Reno, on which controllers stand that change only how fast it grows or how far it falls: slow start up to
//! ssthresh, credit towards growth above it, one reduction per episode, timeout, undo (RFC 5681, RFC 3465).
//!
//! In packets. With whole packets it counts as Linux 6.1 does: growth by one packet for every so many acknowledged, products
//! rounded down. `bpf/algorithms/reno.h` is Reno itself, in integers for the kernel.

use super::{MAX_WINDOW_PACKETS, packet_size, window_bytes};
use crate::controller::Control;
use crate::episode::EpisodeGate;
use crate::event::{Ack, AckSample, Loss, PathInfo, Timeout};
use crate::registry::{Param, Params};
use crate::slow_start::{SlowStart, SlowStartKind};

/// Rows of a parameter table that [`RenoWindow::new`] reads.
pub(super) const INITIAL_WINDOW: Param = Param::integer(
    "initial_window",
    "packets",
    0.0,
    (0.0, 1_000_000.0),
    "initial window; 0 = as the host starts (RFC 6928: 10)",
);
pub(super) const INITIAL_SSTHRESH: Param = Param::integer(
    "initial_ssthresh",
    "packets",
    1_000_000_000.0,
    (2.0, 1_000_000_000.0),
    "initial slow-start threshold; the default is no limit",
);
/// For controllers that let slow start be chosen; its word goes to [`RenoWindow::with_slow_start`].
pub(super) const SLOW_START: Param = Param::choice(
    "slow_start",
    SlowStartKind::WORDS,
    "how the first slow start ends: plain, RFC 9406, or Linux's HyStart",
);

/// The smallest window after a loss, and the smallest ssthresh, packets (RFC 5681 eq. 4).
const MIN_SSTHRESH: f64 = 2.0;

pub(super) struct RenoWindow {
    /// Packets.
    pub(super) cwnd: f64,
    pub(super) ssthresh: f64,
    /// Packets acknowledged that the window has not yet grown for; with whole packets only.
    credit: f64,
    whole: bool,
    packet_bytes: f64,
    slow_start: SlowStart,
    /// Window and threshold before the last reduction.
    before: Option<(f64, f64)>,
    gate: EpisodeGate,
    in_recovery: bool,
}

impl RenoWindow {
    /// The window at the start. `whole`: count in whole packets, as Linux does.
    pub(super) fn new(params: &Params, path: &PathInfo, whole: bool) -> Self {
        let window = match params.get(INITIAL_WINDOW.name) {
            0.0 => f64::from(path.initial_window_packets),
            packets => packets,
        };
        Self {
            cwnd: window.clamp(1.0, MAX_WINDOW_PACKETS),
            ssthresh: params.get(INITIAL_SSTHRESH.name),
            credit: 0.0,
            whole,
            packet_bytes: packet_size(path),
            slow_start: SlowStart::new(SlowStartKind::Standard, false),
            before: None,
            gate: EpisodeGate::default(),
            in_recovery: false,
        }
    }

    /// The same with the slow start that `word` names.
    pub(super) fn with_slow_start(mut self, word: &str) -> Self {
        self.slow_start = SlowStart::new(SlowStartKind::from_word(word), false);
        self
    }

    /// Whether losses are being repaired, so that the window stands (RFC 6675); to be asked on every ACK.
    pub(super) fn is_repairing(&mut self, ack: &AckSample) -> bool {
        self.in_recovery &= ack.has(AckSample::IN_RECOVERY);
        self.in_recovery
    }

    /// Whether this ACK brings a congestion mark that calls for a reduction (RFC 3168: one per window of data).
    pub(super) fn is_marked(&mut self, ack: &AckSample) -> bool {
        ack.ce_packets > 0 && self.gate.admits(ack.now_ns, ack.sent_ns)
    }

    pub(super) fn in_slow_start(&self) -> bool {
        self.cwnd < self.ssthresh
    }

    /// Grows in slow start, below ssthresh; returns the packets acknowledged that are left for congestion avoidance.
    pub(super) fn slow_start(&mut self, ack: &Ack<'_>) -> f64 {
        if !self.in_slow_start() {
            return f64::from(ack.acked_packets);
        }
        let step = self.slow_start.on_ack(ack, self.cwnd);
        let room = self.ssthresh - self.cwnd;
        self.cwnd = (self.cwnd + step.growth_packets.min(room)).min(MAX_WINDOW_PACKETS);
        if step.exit {
            self.ssthresh = self.cwnd;
        }
        (step.growth_packets - room).max(0.0)
    }

    /// Grows by one packet for every `per_packet` packets acknowledged, of which `acked` are new.
    pub(super) fn avoid(&mut self, acked: f64, per_packet: f64) {
        let per_packet = per_packet.max(1.0);
        if !self.whole {
            self.cwnd = (self.cwnd + acked / per_packet).min(MAX_WINDOW_PACKETS);
            return;
        }
        let mut grown = 0.0;
        if self.credit >= per_packet {
            // Credit gathered when a packet cost more is worth one packet, not a burst.
            self.credit = 0.0;
            grown = 1.0;
        }
        let credit = self.credit + acked;
        let whole = (credit / per_packet).floor();
        self.credit = credit - whole * per_packet;
        self.cwnd = (self.cwnd + grown + whole).min(MAX_WINDOW_PACKETS);
    }

    /// Whole packets: whether a window of packets was acknowledged since this last answered yes; `acked` are new, and count only
    /// while it was not (Linux, Veno).
    pub(super) fn is_window_acked(&mut self, acked: f64) -> bool {
        let full = self.credit >= self.cwnd;
        self.credit = if full { 0.0 } else { self.credit + acked };
        full
    }

    /// Reno's growth: slow start, then one packet per window (RFC 5681 §3.1).
    pub(super) fn grow(&mut self, ack: &Ack<'_>) {
        let acked = self.slow_start(ack);
        if acked > 0.0 {
            self.avoid(acked, self.rounded(self.cwnd));
        }
    }

    /// `packets`, rounded down if whole packets are counted.
    pub(super) fn rounded(&self, packets: f64) -> f64 {
        if self.whole { packets.floor() } else { packets }
    }

    /// This fraction of the window.
    ///
    /// Deviation from RFC 5681 eq. (4), which takes the data in flight: of the window, as the papers and Linux do. It grows
    /// only while it limits.
    pub(super) fn fraction(&self, kept: f64) -> f64 {
        self.rounded(self.cwnd * kept)
    }

    /// Sets window and threshold to `packets`, at least 2, and leaves slow start.
    pub(super) fn set(&mut self, packets: f64) {
        self.cwnd = packets.clamp(MIN_SSTHRESH, MAX_WINDOW_PACKETS);
        self.ssthresh = self.cwnd;
    }

    /// A congestion signal: window and threshold come down to `packets`; [`RenoWindow::undo`] takes the last one back.
    pub(super) fn reduce(&mut self, packets: f64, now_ns: u64) {
        self.gate.open(now_ns);
        self.before = Some((self.cwnd, self.ssthresh));
        self.credit = 0.0;
        self.set(packets);
    }

    /// A loss that opens an episode: the same, and no growth until the host has repaired it.
    pub(super) fn reduce_for_loss(&mut self, packets: f64, loss: &Loss) {
        self.reduce(packets, loss.now_ns);
        self.in_recovery = true;
    }

    /// A timeout: one packet, and slow start up to `ssthresh`, which only the first of several sets (RFC 5681 eq. 4).
    pub(super) fn collapse(&mut self, ssthresh: f64, timeout: &Timeout) {
        self.in_recovery = false;
        if timeout.consecutive <= 1 {
            self.reduce(ssthresh, timeout.now_ns);
        }
        self.cwnd = 1.0;
        self.credit = 0.0;
        self.slow_start.on_rto();
    }

    /// The last reduction was a mistake: takes it back.
    pub(super) fn undo(&mut self) {
        if let Some((cwnd, ssthresh)) = self.before.take() {
            self.cwnd = self.cwnd.max(cwnd);
            self.ssthresh = self.ssthresh.max(ssthresh);
        }
        self.in_recovery = false;
    }

    pub(super) fn on_path_change(&mut self, path: &PathInfo) {
        self.packet_bytes = packet_size(path);
    }

    pub(super) fn control(&self) -> Control {
        Control::window(window_bytes(self.cwnd, self.packet_bytes))
    }

    /// ssthresh as a record shows it: NaN while there is none.
    pub(super) fn ssthresh_bytes(&self) -> f64 {
        if self.ssthresh < MAX_WINDOW_PACKETS {
            self.ssthresh * self.packet_bytes
        } else {
            f64::NAN
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A window of 10 packets and a threshold of 12, in congestion avoidance from there on.
    fn window(whole: bool) -> RenoWindow {
        let spec = &super::super::vegas::SPEC;
        let mut params = spec.params(None).unwrap();
        params.set("initial_ssthresh", 12.0).unwrap();
        let path = PathInfo { now_ns: 0, packet_bytes: 1500, initial_window_packets: 10, seed: 0 };
        RenoWindow::new(&params, &path, whole)
    }

    fn ack(acked_packets: u32) -> Ack<'static> {
        Ack { sample: AckSample { acked_packets, ..AckSample::default() }, hops: &[] }
    }

    #[test]
    fn what_crosses_the_threshold_counts_above_it() {
        for (whole, cwnd) in [(false, 12.0 + 6.0 / 12.0), (true, 12.0)] {
            let mut window = window(whole);
            window.grow(&ack(8));
            assert_eq!(window.cwnd, cwnd);
            // In whole packets six of the twelve are there.
            window.grow(&ack(6));
            assert_eq!(window.cwnd.floor(), if whole { 13.0 } else { 12.0 });
        }
    }

    /// Linux: credit gathered while a packet cost 100 is worth one when it costs 10, and what comes then is counted anew.
    #[test]
    fn dear_credit_is_worth_one_packet() {
        let mut window = window(true);
        window.set(100.0);
        window.avoid(99.0, 100.0);
        assert_eq!(window.cwnd, 100.0);
        window.avoid(2.0, 10.0);
        assert_eq!(window.cwnd, 101.0);
        window.avoid(8.0, 10.0);
        assert_eq!(window.cwnd, 102.0);
        window.avoid(25.0, 10.0);
        assert_eq!(window.cwnd, 104.0);
    }

    #[test]
    fn one_mark_per_window_reduces_and_none_right_after_a_loss() {
        let mut window = window(true);
        let marked =
            |now_ns, sent_ns| AckSample { now_ns, sent_ns, ce_packets: 1, ..AckSample::default() };
        assert!(window.is_marked(&marked(100, 50)));
        assert!(!window.is_marked(&marked(140, 90)));
        assert!(window.is_marked(&marked(160, 110)));
        window.reduce_for_loss(5.0, &Loss { now_ns: 200, ..Loss::default() });
        assert!(!window.is_marked(&marked(210, 170)));
    }

    #[test]
    fn later_timeouts_keep_the_threshold_and_the_first_can_be_undone() {
        let mut window = window(true);
        let timeout = |consecutive| Timeout { consecutive, ..Timeout::default() };
        window.collapse(window.fraction(0.5), &timeout(1));
        assert_eq!((window.cwnd, window.ssthresh), (1.0, 5.0));
        window.collapse(window.fraction(0.5), &timeout(2));
        assert_eq!((window.cwnd, window.ssthresh), (1.0, 5.0));
        window.undo();
        assert_eq!((window.cwnd, window.ssthresh), (10.0, 12.0));
        window.undo();
        assert_eq!((window.cwnd, window.ssthresh), (10.0, 12.0));
    }
}
