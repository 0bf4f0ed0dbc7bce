//! What Latte's siblings of the CS 244 contest know of the path: smallest RTT, largest delivery rate, RTT gradient (Kumar 2017,
//! section 4.1). ACKs in; everything in packets and milliseconds out. The estimators are Latte's own, integer C in
//! `bpf/algorithms/latte/path.h`.

use super::{MAX_WINDOW_PACKETS, pacing_rate, packet_size, window_bytes};
use crate::controller::{Control, Field};
use crate::event::{AckSample, PathInfo};
use crate::registry::{Param, Params};

const NS_PER_MS: f64 = 1e6;
/// Bits of fraction of C's rates and of its gradient.
const RATE_ONE: f64 = 65536.0;
const GRADIENT_ONE: f64 = 268_435_456.0;
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
        gradient_weight,
    }
}

/// What the estimators are told by the algorithm's parameters.
pub(super) struct Settings {
    /// Bandwidth is the maximum over this long, ns (W_B).
    pub bandwidth_window_ns: u64,
    /// The RTT minimum is over this long, ns (W_R).
    pub min_rtt_window_ns: u64,
    /// Weight of a new sample in the RTT gradient's mean (alpha).
    pub gradient_weight: f64,
}

/// `struct latte_path_settings`.
#[repr(C)]
struct NativeSettings {
    bandwidth_window_ns: u64,
    min_rtt_window_ns: u64,
    min_rtt_windows: u64,
    gradient_weight: u64,
}

// Of `path_model.c`.
unsafe extern "C" {
    static paceline_cc_path_model_bytes: u64;
    fn paceline_cc_path_model_init(state: *mut u64, now_ns: u64, settings: *const NativeSettings);
    fn paceline_cc_path_model_on_ack(
        state: *mut u64,
        ack: *const AckSample,
        out: *mut [u64; 3],
    ) -> u64;
}

/// Bandwidth, minimum RTT and RTT gradient of a path.
pub(super) struct PathModel {
    /// `struct latte_path`, in words, which also aligns it.
    state: Box<[u64]>,
    packet_bytes: f64,
    /// Smallest RTT of the window.
    pub min_rtt_ms: f64,
    /// Smoothed RTT gradient g.
    pub gradient: f64,
    /// Largest delivery rate B of the window, packets/ms.
    pub bandwidth: f64,
}

impl PathModel {
    /// The contest entry's start: 10 packets/ms and 500 ms are assumed until the first ACK.
    pub fn new(settings: Settings, path: &PathInfo) -> Self {
        let native = NativeSettings {
            bandwidth_window_ns: settings.bandwidth_window_ns,
            min_rtt_window_ns: settings.min_rtt_window_ns,
            min_rtt_windows: 0,
            gradient_weight: libm::round(settings.gradient_weight * RATE_ONE) as u64,
        };
        // SAFETY: compiled from `path_model.c`; constant.
        let bytes = unsafe { paceline_cc_path_model_bytes };
        let mut state = vec![0_u64; bytes.div_ceil(8) as usize].into_boxed_slice();
        // SAFETY: `state` has room for the C struct, of 8-byte fields, and is zeroed as it wants; the call keeps no pointer.
        unsafe { paceline_cc_path_model_init(state.as_mut_ptr(), path.now_ns, &raw const native) };
        Self {
            state,
            packet_bytes: packet_size(path),
            min_rtt_ms: 500.0,
            gradient: 0.0,
            bandwidth: 10.0,
        }
    }

    /// Steps 1 to 3 for an ACK. Returns its RTT in ms, `None` when it has none.
    pub fn on_ack(&mut self, ack: &AckSample) -> Option<f64> {
        let mut out = [0; 3];
        // SAFETY: `state` was made by `paceline_cc_path_model_init` and is exclusively borrowed; event and `out` outlive the call.
        let rtt_ns =
            unsafe { paceline_cc_path_model_on_ack(self.state.as_mut_ptr(), ack, &raw mut out) };
        if rtt_ns == 0 {
            return None;
        }
        let [min_rtt_ns, bandwidth, gradient] = out;
        self.min_rtt_ms = min_rtt_ns as f64 / NS_PER_MS;
        self.bandwidth = bandwidth as f64 / (RATE_ONE * 1e3);
        self.gradient = gradient.cast_signed() as f64 / GRADIENT_ONE;
        Some(rtt_ns as f64 / NS_PER_MS)
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
}

/// A window within what the contest's model-based senders allow: three packets keep ACKs coming.
pub(super) fn bounded(window: f64) -> f64 {
    window.clamp(MIN_WINDOW_PACKETS, MAX_WINDOW_PACKETS)
}
