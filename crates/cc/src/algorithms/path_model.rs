//! What Latte and its siblings of the CS 244 contest know of the path: smallest RTT, largest delivery rate, RTT gradient
//! (Kumar 2017, section 4.1). ACKs in; everything in packets and milliseconds out. The steps are those of `latte.rs`.

use std::collections::VecDeque;

use super::{MAX_WINDOW_PACKETS, pacing_rate, packet_size, window_bytes};
use crate::controller::{Control, Field};
use crate::event::{AckSample, PathInfo};
use crate::filters::{WindowedMax, WindowedMin};
use crate::registry::{Param, Params};

const NS_PER_MS: f64 = 1e6;
/// Deliveries remembered, one entry per millisecond.
const HISTORY_MS: u64 = 15_000;
/// Candidates kept by the filters: the bandwidth window is exact to below a millisecond.
const CANDIDATES: usize = 256;
/// Weight of the old value in the smoothed bandwidth.
const SMOOTHING: f64 = 0.7;
const MIN_WINDOW_PACKETS: f64 = 3.0;

/// Window of the contest's senders before the first ACK, packets.
pub(super) const INITIAL_WINDOW_PACKETS: f64 = 50.0;

/// Window gain, for the algorithms in which it is fixed.
pub(super) const LAMBDA: Param =
    Param::number("lambda", "1", 2.0, (0.1, 100.0), "window gain lambda");
/// Pacing gap.
pub(super) const GAMMA: Param =
    Param::number("gamma", "1", 0.8, (0.01, 100.0), "pacing gap gamma / rate after each packet");
/// W_B.
pub(super) const BANDWIDTH_WINDOW: Param = Param::duration(
    "bandwidth_window",
    0.2,
    (0.001, 10.0),
    "BW is the largest delivery rate of this long, W_B",
);
/// W_R.
pub(super) const MIN_RTT_WINDOW: Param = Param::duration(
    "min_rtt_window",
    10.0,
    (0.001, 1000.0),
    "minRTT is the smallest RTT of this long, W_R",
);
/// Silence timer.
pub(super) const TIMEOUT: Param = Param::number(
    "timeout",
    "min RTTs",
    1.5,
    (0.1, 100.0),
    "silence after which one probe packet is sent",
);

/// B.
pub(super) const BANDWIDTH_FIELD: Field =
    Field { name: "bandwidth", unit: "packets/ms", doc: "largest delivery rate of its window, BW" };
/// minRTT.
pub(super) const MIN_RTT_FIELD: Field =
    Field { name: "min_rtt", unit: "ms", doc: "smallest RTT of its window" };

/// Settings of an algorithm with the parameters above. `gradient_weight` as in [`Settings`].
pub(super) fn settings(params: &Params, gradient_weight: f64) -> Settings {
    Settings {
        bandwidth_window_ns: params.get_ns("bandwidth_window"),
        min_rtt_window_ns: params.get_ns("min_rtt_window"),
        min_rtt_window_rtts: None,
        gradient_weight,
    }
}

/// What the estimators are told by the algorithm's parameters.
pub(super) struct Settings {
    /// Bandwidth is the maximum over this long, ns (W_B).
    pub bandwidth_window_ns: u64,
    /// The RTT minimum is over this long, ns (W_R) …
    pub min_rtt_window_ns: u64,
    /// … or, from the first ACK on, over this many RTT minima.
    pub min_rtt_window_rtts: Option<f64>,
    /// Weight of a new sample in the RTT gradient's mean (alpha).
    pub gradient_weight: f64,
}

/// Bandwidth, minimum RTT and RTT gradient of a path.
pub(super) struct PathModel {
    settings: Settings,
    packet_bytes: f64,
    start_ns: u64,
    /// Smallest RTT of the window.
    pub min_rtt_ms: f64,
    previous_rtt_ms: f64,
    /// Smoothed RTT gradient g.
    pub gradient: f64,
    /// Smoothed delivery rate S, packets/ms.
    pub smoothed: f64,
    /// Largest delivery rate B of the window, packets/ms.
    pub bandwidth: f64,
    delivered: u64,
    /// (time in ns, packets delivered by then), the latest of each millisecond. Never grows beyond its first capacity.
    history: VecDeque<(u64, u64)>,
    bandwidths: WindowedMax<CANDIDATES>,
    rtts: WindowedMin<CANDIDATES>,
}

impl PathModel {
    /// The contest entry's start: 10 packets/ms and 500 ms are assumed until the first ACK.
    pub fn new(settings: Settings, path: &PathInfo) -> Self {
        Self {
            packet_bytes: packet_size(path),
            start_ns: path.now_ns,
            min_rtt_ms: 500.0,
            previous_rtt_ms: 100.0,
            gradient: 0.0,
            smoothed: 10.0,
            bandwidth: 10.0,
            delivered: 0,
            history: VecDeque::with_capacity(HISTORY_MS as usize + 2),
            bandwidths: WindowedMax::new(settings.bandwidth_window_ns),
            rtts: WindowedMin::new(settings.min_rtt_window_ns),
            settings,
        }
    }

    /// Steps 1 to 3 for an ACK. Returns its RTT in ms, `None` when it has none.
    pub fn on_ack(&mut self, ack: &AckSample) -> Option<f64> {
        self.delivered = self.delivered.saturating_add(u64::from(ack.acked_packets));
        self.remember(ack.now_ns);
        // The contest's sender never retransmits; elsewhere an ambiguous RTT teaches nothing.
        if ack.rtt_ns == 0 {
            return None;
        }
        let rtt_ms = ack.rtt_ns as f64 / NS_PER_MS;
        // Step 1, with the previous minimum.
        let gradient = (rtt_ms - self.previous_rtt_ms) / self.min_rtt_ms;
        let weight = self.settings.gradient_weight;
        self.gradient = (1.0 - weight) * self.gradient + weight * gradient;
        self.previous_rtt_ms = rtt_ms;
        // Step 2.
        self.min_rtt_ms = self.rtts.update(ack.now_ns, rtt_ms).unwrap_or(rtt_ms);
        if let Some(rtts) = self.settings.min_rtt_window_rtts {
            self.rtts.set_window((rtts * self.min_rtt_ms * NS_PER_MS) as u64);
        }
        // Step 3.
        let sent_ns = ack.now_ns.saturating_sub(ack.rtt_ns);
        if let Some(rate) = self.rate_since(sent_ns, ack.now_ns) {
            self.smoothed = (1.0 - SMOOTHING) * rate + SMOOTHING * self.smoothed;
            self.bandwidth = self.bandwidths.update(ack.now_ns, rate).unwrap_or(rate);
        }
        Some(rtt_ms)
    }

    /// Bandwidth-delay product B minRTT, packets.
    pub fn bdp(&self) -> f64 {
        self.bandwidth * self.min_rtt_ms
    }

    /// The packet size changed.
    pub fn on_path_change(&mut self, path: &PathInfo) {
        self.packet_bytes = packet_size(path);
    }

    /// A window of `floor(window)` packets, a gap of `gap` / `rate` (packets/ms) after each, and a silence timer of `timeout_rtts` RTT minima.
    pub fn control(&self, window: f64, rate: f64, gap: f64, timeout_rtts: f64) -> Control {
        // Deviation: the contest's sender truncates the gap to whole microseconds.
        let timeout_ms = libm::floor(timeout_rtts * self.min_rtt_ms).max(1.0);
        Control {
            cwnd_bytes: window_bytes(libm::floor(window), self.packet_bytes),
            pacing_bytes_per_s: pacing_rate(self.packet_bytes * rate * 1e3 / gap),
            send_quantum_bytes: 0,
            next_timer_ns: Control::NEVER,
            timeout_ns: (timeout_ms * NS_PER_MS) as u64,
        }
    }

    /// Step 3: remembers what is delivered now, forgets what is too old.
    fn remember(&mut self, now_ns: u64) {
        let millisecond = |ns: u64| ns / 1_000_000;
        if self.history.back().is_some_and(|&(t, _)| millisecond(t) == millisecond(now_ns)) {
            self.history.pop_back();
        }
        self.history.push_back((now_ns, self.delivered));
        let oldest = millisecond(now_ns).saturating_sub(HISTORY_MS);
        while self.history.front().is_some_and(|&(t, _)| millisecond(t) < oldest) {
            self.history.pop_front();
        }
    }

    /// Index of the first entry later than `sent_ns`.
    fn first_after(&self, sent_ns: u64, now_ns: u64) -> usize {
        let is_older = |at: usize| self.history.get(at).is_some_and(|&(t, _)| t <= sent_ns);
        // There is at most one entry for each millisecond since then, and exactly one unless ACKs are sparse.
        let most = (now_ns / 1_000_000).saturating_sub(sent_ns / 1_000_000) as usize + 1;
        let least = self.history.len().saturating_sub(most);
        if !is_older(least) {
            least
        } else if !is_older(least + 1) {
            least + 1
        } else {
            self.history.partition_point(|&(t, _)| t <= sent_ns)
        }
    }

    /// Step 3: delivery rate since the acknowledged packet was sent, packets/ms.
    fn rate_since(&self, sent_ns: u64, now_ns: u64) -> Option<f64> {
        let after = self.first_after(sent_ns, now_ns);
        let before = after.checked_sub(1).and_then(|i| self.history.get(i));
        let (t0, d0) = before.copied().unwrap_or((self.start_ns, 0));
        (now_ns > t0).then(|| (self.delivered - d0) as f64 / ((now_ns - t0) as f64 / NS_PER_MS))
    }
}

/// A window within what the contest's model-based senders allow: three packets keep ACKs coming.
pub(super) fn bounded(window: f64) -> f64 {
    window.clamp(MIN_WINDOW_PACKETS, MAX_WINDOW_PACKETS)
}
