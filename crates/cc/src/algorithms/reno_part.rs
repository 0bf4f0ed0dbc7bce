//! What a window-based controller has from Reno whatever its own law is: the first window, slow start, one reduction per
//! episode, the restart after a timeout or a long silence, and the way back when a loss was none.
//!
//! A controller embeds a [`RenoPart`], asks it what an ACK is good for, and moves `cwnd` by its own law in congestion avoidance.

use super::{MAX_WINDOW_PACKETS, packet_size, window_bytes};
use crate::episode::EpisodeGate;
use crate::event::{AckSample, Loss, PathInfo, Resume, Timeout};
use crate::registry::{Param, Params};
use crate::slow_start::{SlowStart, SlowStartKind};

/// Parameter `slow_start`.
pub(super) const SLOW_START: Param = Param::choice(
    "slow_start",
    SlowStartKind::WORDS,
    "how the first slow start ends: plain, RFC 9406, or Linux's HyStart",
);

/// Parameter `initial_window`.
pub(super) const INITIAL_WINDOW: Param = Param::integer(
    "initial_window",
    "packets",
    0.0,
    (0.0, 1_000_000.0),
    "initial window; 0 = as the host starts (RFC 6928: 10)",
);

/// Parameter `initial_ssthresh`.
pub(super) const INITIAL_SSTHRESH: Param = Param::integer(
    "initial_ssthresh",
    "packets",
    1_000_000_000.0,
    (2.0, 1_000_000_000.0),
    "initial slow-start threshold; the default is no limit",
);

/// What an ACK is good for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Turn {
    /// Losses are being repaired: nothing changes.
    Repair,
    /// A mark opens an episode: reduce.
    Mark,
    /// The law may act.
    Open,
}

/// The window and its history.
#[derive(Clone, Copy, Debug)]
pub(super) struct RenoPart {
    /// Congestion window, packets.
    pub(super) cwnd: f64,
    /// Slow-start threshold, packets.
    pub(super) ssthresh: f64,
    pub(super) packet_bytes: f64,
    initial_window: f64,
    srtt_ns: u64,
    /// Window and threshold before the last reduction.
    before: Option<(f64, f64)>,
    slow_start: SlowStart,
    gate: EpisodeGate,
    repairing: bool,
}

impl RenoPart {
    /// Starts with a window of `initial_window` packets, or as the host starts for 0.
    pub(super) fn new(
        initial_window: f64,
        ssthresh: f64,
        kind: SlowStartKind,
        path: &PathInfo,
    ) -> Self {
        let host = f64::from(path.initial_window_packets);
        let window = if initial_window > 0.0 { initial_window } else { host }.max(1.0);
        Self {
            cwnd: window,
            ssthresh,
            packet_bytes: packet_size(path),
            initial_window: window,
            srtt_ns: 0,
            before: None,
            slow_start: SlowStart::new(kind, false),
            gate: EpisodeGate::default(),
            repairing: false,
        }
    }

    /// Starts as [`SLOW_START`], [`INITIAL_WINDOW`] and [`INITIAL_SSTHRESH`] say.
    pub(super) fn read(params: &Params, path: &PathInfo) -> Self {
        let kind = SlowStartKind::from_word(params.get_choice("slow_start"));
        Self::new(params.get("initial_window"), params.get("initial_ssthresh"), kind, path)
    }

    /// What `ack` is good for.
    pub(super) fn on_ack(&mut self, ack: &AckSample) -> Turn {
        self.srtt_ns = ack.srtt_ns;
        self.repairing &= ack.has(AckSample::IN_RECOVERY);
        if self.repairing {
            Turn::Repair
        } else if ack.ce_packets > 0 && self.gate.admits(ack.now_ns, ack.sent_ns) {
            // RFC 3168 §6.1.2: a mark counts as a loss, once per window of data.
            Turn::Mark
        } else {
            Turn::Open
        }
    }

    pub(super) fn in_slow_start(&self) -> bool {
        self.cwnd < self.ssthresh
    }

    /// Lets slow start take what it may of an ACK that the window limited. Returns the packets left for congestion avoidance,
    /// at most a window of them.
    pub(super) fn grow_in_slow_start(&mut self, ack: &AckSample) -> f64 {
        let mut acked = f64::from(ack.acked_packets);
        if self.in_slow_start() {
            let step = self.slow_start.on_ack(ack, self.cwnd);
            let room = self.ssthresh - self.cwnd;
            self.cwnd = (self.cwnd + step.growth_packets.min(room)).min(MAX_WINDOW_PACKETS);
            if step.exit {
                self.leave_slow_start();
            }
            acked = (step.growth_packets - room).max(0.0);
        }
        acked.min(self.cwnd)
    }

    pub(super) fn leave_slow_start(&mut self) {
        self.ssthresh = self.ssthresh.min(self.cwnd);
    }

    /// Adds `packets` to the window.
    pub(super) fn grow(&mut self, packets: f64) {
        self.cwnd = (self.cwnd + packets).min(MAX_WINDOW_PACKETS);
    }

    /// Lowers the window to `cwnd`, at least 2 packets, without the threshold calling for slow start.
    pub(super) fn lower_to(&mut self, cwnd: f64) {
        self.cwnd = cwnd.max(2.0).min(self.cwnd);
        self.ssthresh = self.ssthresh.min(self.cwnd);
    }

    /// Notes a loss; whether it opens an episode, so that the window is to be reduced.
    pub(super) fn on_loss(&mut self, loss: &Loss) -> bool {
        if loss.starts_episode() {
            self.gate.open(loss.now_ns);
            self.repairing = true;
        }
        loss.starts_episode()
    }

    /// Reduces to `kept` packets, at least 2.
    pub(super) fn reduce_to(&mut self, kept: f64) {
        self.before = Some((self.cwnd, self.ssthresh));
        self.ssthresh = kept.max(2.0);
        self.cwnd = self.ssthresh.min(self.cwnd);
    }

    /// RFC 5681 §3.1: one packet, and ssthresh half of what was in flight, lowered only by the first expiry.
    pub(super) fn on_rto(&mut self, timeout: &Timeout) {
        self.gate.open(timeout.now_ns);
        self.repairing = false;
        if timeout.consecutive <= 1 {
            let in_flight = (timeout.in_flight_bytes as f64 / self.packet_bytes).min(self.cwnd);
            self.reduce_to(in_flight / 2.0);
        }
        self.cwnd = 1.0;
        self.slow_start.on_rto();
    }

    /// Takes the last reduction back; whether there was one.
    pub(super) fn undo(&mut self) -> bool {
        self.repairing = false;
        let Some((cwnd, ssthresh)) = self.before.take() else { return false };
        self.cwnd = self.cwnd.max(cwnd);
        self.ssthresh = self.ssthresh.max(ssthresh);
        true
    }

    /// RFC 5681 §4.1: after more than one RTO of silence restart from the initial window; whether it was that long.
    ///
    /// Deviation: the event does not say the RTO; the larger of 1 s and twice the smoothed RTT stands for it.
    pub(super) fn on_resume(&mut self, resume: &Resume) -> bool {
        let long = resume.idle_ns > self.srtt_ns.saturating_mul(2).max(1_000_000_000);
        if long {
            self.cwnd = self.cwnd.min(self.initial_window);
        }
        long
    }

    pub(super) fn on_path_change(&mut self, path: &PathInfo) {
        self.packet_bytes = packet_size(path);
    }

    /// The window in bytes.
    pub(super) fn window_bytes(&self) -> u64 {
        window_bytes(self.cwnd, self.packet_bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn part(window: f64, ssthresh: f64) -> RenoPart {
        let path = PathInfo { now_ns: 0, packet_bytes: 1000, initial_window_packets: 10, seed: 0 };
        RenoPart::new(window, ssthresh, SlowStartKind::Standard, &path)
    }

    fn ack(acked_packets: u32, flags: u32) -> AckSample {
        AckSample { now_ns: 5, acked_packets, flags, ..AckSample::default() }
    }

    #[test]
    fn slow_start_leaves_the_rest_to_avoidance() {
        let mut reno = part(0.0, 15.0);
        assert_eq!((reno.cwnd, reno.in_slow_start()), (10.0, true));
        assert_eq!(reno.grow_in_slow_start(&ack(4, 0)), 0.0);
        assert_eq!(reno.grow_in_slow_start(&ack(4, 0)), 3.0);
        assert_eq!((reno.cwnd, reno.in_slow_start()), (15.0, false));
        assert_eq!(reno.grow_in_slow_start(&ack(40, 0)), 15.0, "at most a window");
    }

    #[test]
    fn one_episode_until_repaired_and_undone() {
        let mut reno = part(40.0, 40.0);
        assert!(!reno.on_loss(&Loss::default()));
        assert!(reno.on_loss(&Loss { flags: Loss::EPISODE_START, now_ns: 10, ..Loss::default() }));
        reno.reduce_to(20.0);
        assert_eq!((reno.cwnd, reno.ssthresh), (20.0, 20.0));
        assert_eq!(reno.on_ack(&ack(1, AckSample::IN_RECOVERY)), Turn::Repair);
        assert_eq!(reno.on_ack(&ack(1, 0)), Turn::Open);
        let marked = |sent_ns| AckSample { ce_packets: 1, sent_ns, now_ns: 30, ..ack(1, 0) };
        assert_eq!(reno.on_ack(&marked(10)), Turn::Open, "sent before the episode");
        assert_eq!(reno.on_ack(&marked(11)), Turn::Mark);
        assert!(reno.undo());
        assert_eq!(reno.cwnd, 40.0);
        assert!(!reno.undo());
        reno.reduce_to(0.5);
        assert_eq!(reno.cwnd, 2.0, "two packets are the floor");
    }

    #[test]
    fn timeouts_and_silence_restart() {
        let mut reno = part(40.0, 40.0);
        let timeout =
            |consecutive| Timeout { in_flight_bytes: 30_000, consecutive, ..Timeout::default() };
        reno.on_rto(&timeout(1));
        reno.on_rto(&timeout(2));
        assert_eq!((reno.cwnd, reno.ssthresh), (1.0, 15.0));
        let mut reno = part(40.0, 40.0);
        reno.grow(10.0);
        assert!(!reno.on_resume(&Resume { now_ns: 0, idle_ns: 1_000_000_000 }));
        assert_eq!(reno.cwnd, 50.0);
        assert!(reno.on_resume(&Resume { now_ns: 0, idle_ns: 1_000_000_001 }));
        assert_eq!(reno.cwnd, 40.0);
        reno.lower_to(30.0);
        assert_eq!((reno.cwnd, reno.ssthresh, reno.in_slow_start()), (30.0, 30.0, false));
    }
}
