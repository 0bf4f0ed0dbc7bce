//! The window of Reno, on which most algorithms stand: slow start up to ssthresh, growth above it, one reduction per episode,
//! the loss window after a timeout, undo, the restart after silence (RFC 5681, RFC 3465). In packets.
//!
//! How fast it grows above ssthresh and how far it falls is each algorithm's own law: [`crate::window_law`].
//! `bpf/algorithms/reno.h` is Reno itself, in integers for the kernel.

use crate::bounds::{MAX_WINDOW_PACKETS, packet_size, window_bytes};
use crate::controller::Field;
use crate::episode::EpisodeGate;
use crate::event::{AckSample, PathInfo, Resume};
use crate::registry::{Param, Params, Profile};
use crate::slow_start::{SlowStart, SlowStartKind};

/// Smallest threshold, and smallest window after a loss, packets (RFC 5681 eq. 4).
const MIN_SSTHRESH: f64 = 2.0;
const SECOND_NS: u64 = 1_000_000_000;

/// Row of a parameter table: how the first slow start ends.
pub(crate) const SLOW_START: Param = Param::choice(
    "slow_start",
    SlowStartKind::WORDS,
    "slow start: plain, RFC 9406, Linux's HyStart, or limited (RFC 3742)",
);
/// Row of a parameter table: the initial window.
pub(crate) const INITIAL_WINDOW: Param = Param::integer(
    "initial_window",
    "packets",
    0.0,
    (0.0, 1_000_000.0),
    "initial window; 0 = as the host starts (RFC 6928: 10)",
);
/// Row of a parameter table: the initial threshold.
pub(crate) const INITIAL_SSTHRESH: Param = Param::integer(
    "initial_ssthresh",
    "packets",
    1_000_000_000.0,
    (2.0, 1_000_000_000.0),
    "initial slow-start threshold; the default is no limit",
);
/// How NIST SP 500-282 starts every algorithm.
pub(crate) const NIST: &[Profile] = &[
    Profile {
        name: "nist",
        source: "NIST SP 500-282 (2010): initial window 2, high initial threshold",
        values: &[("initial_window", 2.0)],
    },
    Profile {
        name: "nist-low-ssthresh",
        source: "NIST SP 500-282 (2010): initial window 2, initial threshold 100",
        values: &[("initial_window", 2.0), ("initial_ssthresh", 100.0)],
    },
];
/// Field of [`RenoWindow::ssthresh_bytes`].
pub(crate) const SSTHRESH: Field =
    Field { name: "ssthresh_bytes", unit: "bytes", doc: "slow-start threshold" };

/// A window of so many `packets`, or the host's for 0: what [`INITIAL_WINDOW`] says.
pub(crate) fn initial_window(packets: f64, path: &PathInfo) -> f64 {
    let window = if packets > 0.0 { packets } else { f64::from(path.initial_window_packets) };
    window.clamp(1.0, MAX_WINDOW_PACKETS)
}

/// The window and its history.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RenoWindow {
    /// Congestion window, packets.
    pub(crate) cwnd: f64,
    /// Slow-start threshold, packets.
    pub(crate) ssthresh: f64,
    /// Growth is in whole packets.
    whole: bool,
    counter: WholePackets,
    pub(crate) packet_bytes: f64,
    initial_window: f64,
    srtt_ns: u64,
    slow_start: SlowStart,
    /// Window and threshold before the last reduction.
    before: Option<(f64, f64)>,
    gate: EpisodeGate,
    repairing: bool,
}

/// Where an ACK finds the repair of losses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Repair {
    /// There is none.
    None,
    /// Under way: the window stands (RFC 6675).
    UnderWay,
    /// This ACK is the first after it.
    Over,
}

impl RenoWindow {
    /// A window of `packets`, or the host's for 0, in plain slow start up to `ssthresh`.
    pub(crate) fn new(packets: f64, ssthresh: f64, path: &PathInfo) -> Self {
        let window = initial_window(packets, path);
        Self {
            cwnd: window,
            ssthresh,
            whole: false,
            counter: WholePackets::default(),
            packet_bytes: packet_size(path),
            initial_window: window,
            srtt_ns: 0,
            slow_start: SlowStart::new(SlowStartKind::Standard, false),
            before: None,
            gate: EpisodeGate::default(),
            repairing: false,
        }
    }

    /// A window as the rows [`INITIAL_WINDOW`], [`INITIAL_SSTHRESH`] and [`SLOW_START`] say.
    pub(crate) fn from_params(params: &Params, path: &PathInfo) -> Self {
        let kind = SlowStartKind::from_word(params.get_choice(SLOW_START.name));
        let window = params.get(INITIAL_WINDOW.name);
        Self {
            slow_start: SlowStart::new(kind, false),
            ..Self::new(window, params.get(INITIAL_SSTHRESH.name), path)
        }
    }

    /// The same, counting as Linux 6.1 does if `whole`: growth by one packet for every so many, products rounded down.
    pub(crate) fn in_whole_packets(self, whole: bool) -> Self {
        Self { whole, ..self }
    }

    // ------------------------------------------------------------------------------------------------------------- growth

    pub(crate) fn in_slow_start(&self) -> bool {
        self.cwnd < self.ssthresh
    }

    /// Whether an ACK may open the window: it was full, and the ACK is no duplicate, which may be the first sign of a loss
    /// (RFC 5681 §3.1; Linux, `tcp_may_raise_cwnd`), and reports no mark (RFC 3168 §6.1.2).
    pub(crate) fn may_grow(ack: &AckSample) -> bool {
        ack.has(AckSample::CWND_LIMITED) && ack.has(AckSample::CUMULATIVE) && ack.ce_packets == 0
    }

    /// Grows in slow start, below ssthresh, if the ACK may open the window. Returns the packets acknowledged that are left for
    /// congestion avoidance, at most a window of them.
    pub(crate) fn slow_start(&mut self, ack: &AckSample) -> f64 {
        if Self::may_grow(ack) { self.slow_start_unasked(ack) } else { 0.0 }
    }

    /// The same whether or not the window limits.
    pub(crate) fn slow_start_unasked(&mut self, ack: &AckSample) -> f64 {
        let mut acked = f64::from(ack.acked_packets);
        if self.in_slow_start() {
            let step = self.slow_start.on_ack(ack, self.cwnd);
            let room = self.ssthresh - self.cwnd;
            self.grow(step.growth_packets.min(room));
            if step.exit {
                self.leave_slow_start();
            }
            // What crossed the threshold counts for congestion avoidance.
            acked = (step.growth_packets - room).max(0.0);
        }
        acked.min(self.cwnd)
    }

    pub(crate) fn leave_slow_start(&mut self) {
        self.ssthresh = self.ssthresh.min(self.cwnd);
    }

    /// Grows by so many packets.
    pub(crate) fn grow(&mut self, packets: f64) {
        self.cwnd = (self.cwnd + packets).min(MAX_WINDOW_PACKETS);
    }

    /// Grows by one packet for every `per_packet` packets acknowledged, of which `acked` are new.
    pub(crate) fn avoid(&mut self, acked: f64, per_packet: f64) {
        if acked > 0.0 {
            let per_packet = per_packet.max(1.0);
            let packets =
                if self.whole { self.counter.gain(acked, per_packet) } else { acked / per_packet };
            self.grow(packets);
        }
    }

    /// Reno's growth: slow start, then one packet per window (RFC 5681 §3.1).
    pub(crate) fn grow_as_reno(&mut self, ack: &AckSample) {
        let acked = self.slow_start(ack);
        self.avoid(acked, self.rounded(self.cwnd));
    }

    /// Whole packets: whether a window of packets was acknowledged since this last answered yes; `acked` are new, and count only
    /// while it was not (Linux, Veno).
    pub(crate) fn is_window_acked(&mut self, acked: f64) -> bool {
        let full = self.counter.credit >= self.cwnd;
        self.counter.credit = if full { 0.0 } else { self.counter.credit + acked };
        full
    }

    // --------------------------------------------------------------------------------------------------------- reductions

    /// `packets`, rounded down if whole packets are counted.
    pub(crate) fn rounded(&self, packets: f64) -> f64 {
        if self.whole { packets.floor() } else { packets }
    }

    /// This fraction of the window.
    ///
    /// Deviation from RFC 5681 eq. (4), which takes the data in flight: of the window, as the papers and Linux do. It grows
    /// only while it limits.
    pub(crate) fn fraction(&self, kept: f64) -> f64 {
        self.rounded(self.cwnd * kept)
    }

    /// RFC 5681 eq. (4) to the letter: half of what was in flight, of which at most the window counts.
    pub(crate) fn half_of_flight(&self, in_flight_bytes: u64) -> f64 {
        (in_flight_bytes as f64 / self.packet_bytes).min(self.cwnd) / 2.0
    }

    /// Sets window and threshold to `packets`, at least 2.
    pub(crate) fn set(&mut self, packets: f64) {
        self.cwnd = packets.clamp(MIN_SSTHRESH, MAX_WINDOW_PACKETS);
        self.ssthresh = self.cwnd;
    }

    /// Lowers the window to `packets`, at least 2, without the threshold calling for slow start.
    pub(crate) fn lower_to(&mut self, packets: f64) {
        self.cwnd = packets.max(MIN_SSTHRESH).min(self.cwnd);
        self.ssthresh = self.ssthresh.min(self.cwnd);
    }

    /// A congestion signal leaves `kept` packets: the threshold comes to that, at least 2, and the window down to the threshold.
    /// An episode opens; [`RenoWindow::undo`] takes the last one back.
    pub(crate) fn reduce(&mut self, kept: f64, now_ns: u64) {
        self.gate.open(now_ns);
        self.before = Some((self.cwnd, self.ssthresh));
        self.counter = WholePackets::default();
        self.ssthresh = kept.clamp(MIN_SSTHRESH, MAX_WINDOW_PACKETS);
        self.cwnd = self.cwnd.min(self.ssthresh);
    }

    /// The last reduction was a mistake: takes it back. Whether there was one.
    pub(crate) fn undo(&mut self) -> bool {
        self.repairing = false;
        let Some((cwnd, ssthresh)) = self.before.take() else { return false };
        self.cwnd = self.cwnd.max(cwnd);
        self.ssthresh = self.ssthresh.max(ssthresh);
        true
    }

    // ------------------------------------------------------------------------------------------------- what the host tells

    /// Notes an ACK, first of all.
    pub(crate) fn on_ack(&mut self, ack: &AckSample) -> Repair {
        self.srtt_ns = ack.srtt_ns;
        let repairing = self.repairing;
        self.repairing &= ack.has(AckSample::IN_RECOVERY);
        match (repairing, self.repairing) {
            (_, true) => Repair::UnderWay,
            (true, false) => Repair::Over,
            (false, false) => Repair::None,
        }
    }

    /// Whether this ACK brings a congestion mark that opens an episode: one per window of data (RFC 3168 §6.1.2).
    pub(crate) fn is_marked(&mut self, ack: &AckSample) -> bool {
        ack.ce_packets > 0 && self.gate.admits(ack.now_ns, ack.sent_ns)
    }

    /// A loss opened an episode: the window stands until the host has repaired it.
    pub(crate) fn on_loss(&mut self) {
        self.repairing = true;
    }

    /// Any expiry of the timer: the loss window of one packet, in a slow start of its own (RFC 5681 §3.1).
    pub(crate) fn on_rto(&mut self, now_ns: u64) {
        self.repairing = false;
        self.gate.open(now_ns);
        self.counter = WholePackets::default();
        self.cwnd = 1.0;
        self.slow_start.on_rto();
    }

    /// RFC 5681 §4.1: after more than one RTO of silence restart from the initial window. Whether it was that long.
    ///
    /// Deviation: the event does not say the RTO; the larger of 1 s and twice the smoothed RTT stands for it.
    pub(crate) fn on_resume(&mut self, resume: &Resume) -> bool {
        let long = resume.idle_ns > SECOND_NS.max(self.srtt_ns.saturating_mul(2));
        if long {
            self.cwnd = self.cwnd.min(self.initial_window);
        }
        long
    }

    pub(crate) fn on_path_change(&mut self, path: &PathInfo) {
        self.packet_bytes = packet_size(path);
    }

    // ------------------------------------------------------------------------------------------------ what it tells the host

    /// The window in bytes.
    pub(crate) fn bytes(&self) -> u64 {
        window_bytes(self.cwnd, self.packet_bytes)
    }

    /// ssthresh as a record shows it: NaN while there is none.
    pub(crate) fn ssthresh_bytes(&self) -> f64 {
        let known = self.ssthresh < MAX_WINDOW_PACKETS;
        if known { self.ssthresh * self.packet_bytes } else { f64::NAN }
    }
}

/// Growth in whole packets as Linux counts it (`tcp_cong_avoid_ai`): one for every so many acknowledged, the rest carried.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct WholePackets {
    /// Packets acknowledged that the window has not yet grown for.
    credit: f64,
}

impl WholePackets {
    /// What `acked` packets give at one packet for every `per_packet`, a whole number of at least 1.
    pub(crate) fn gain(&mut self, acked: f64, per_packet: f64) -> f64 {
        let mut gain = 0.0;
        if self.credit >= per_packet {
            // Credit gathered when a packet cost more is worth one packet, not a burst.
            self.credit = 0.0;
            gain = 1.0;
        }
        let credit = self.credit + acked;
        let whole = (credit / per_packet).floor();
        self.credit = credit - whole * per_packet;
        gain + whole
    }
}

#[cfg(test)]
#[path = "reno_window_tests.rs"]
mod tests;
