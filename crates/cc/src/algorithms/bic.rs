//! BIC (Xu, Harfoush and Rhee 2004): a search between the window after the last reduction and the window before it, in halves,
//! then beyond it in steps that double; Reno up to `low_window`.

use crate::controller::{Controller, Field, Needs};
use crate::event::{AckSample, PathInfo};
use crate::registry::{Family, Param, Params, Profile, Spec};
use crate::reno_window::{INITIAL_SSTHRESH, INITIAL_WINDOW, RenoWindow, SLOW_START, SSTHRESH};
use crate::window_law::{self, Signal, WindowLaw};

/// The registry entry.
pub(crate) static SPEC: Spec = Spec {
    name: "bic",
    title: "BIC: a binary search for the window",
    family: Family::LossBased,
    source: "Xu, Harfoush and Rhee, Binary increase congestion control for fast long-distance networks (INFOCOM 2004)",
    about: include_str!("about/bic.md"),
    needs: Needs::NONE,
    params: &[
        Param::number(
            "low_window",
            "packets",
            14.0,
            (1.0, 100_000.0),
            "low_window: Reno up to here",
        ),
        Param::number(
            "s_max",
            "packets",
            32.0,
            (1.0, 10_000.0),
            "largest increase per round trip S_max",
        ),
        Param::number(
            "s_min",
            "packets",
            0.01,
            (0.0001, 1.0),
            "smallest increase per round trip S_min, and distance at which W_max is reached",
        ),
        Param::number("beta", "1", 0.125, (0.01, 0.5), "share of the window removed, beta"),
        Param::flag(
            "fast_convergence",
            true,
            "release more when the window did not reach its last maximum",
        ),
        Param::choice("search", &["paper", "linux"], "the paper's search, or Linux's in quarters"),
        SLOW_START,
        INITIAL_WINDOW,
        INITIAL_SSTHRESH,
    ],
    profiles: &[
        Profile {
            name: "linux",
            source: "Linux 6.1 tcp_bic: S_max 16, beta 205/1024, search in quarters, whole packets",
            values: &[("s_max", 16.0), ("beta", 205.0 / 1024.0), ("search", 1.0)],
        },
        Profile {
            name: "nist",
            source: "NIST SP 500-282 (2010): initial window 2, threshold 14",
            values: &[("initial_window", 2.0)],
        },
    ],
    fields: &[
        SSTHRESH,
        Field { name: "w_max", unit: "packets", doc: "window before the last reduction, W_max" },
        Field { name: "increase", unit: "packets", doc: "increase per round trip" },
    ],
    build,
};

fn build(params: &Params, path: &PathInfo) -> Box<dyn Controller> {
    let common = Common {
        low_window: params.get("low_window"),
        s_max: params.get("s_max"),
        beta: params.get("beta"),
        fast_convergence: params.get_bool("fast_convergence"),
        w_max: 0.0,
        increase: f64::NAN,
    };
    let window = RenoWindow::from_params(params, path);
    if params.get_choice("search") == "linux" {
        let law = Linux { common, ack_ratio: 2 * ACK_RATIO_SCALE };
        window_law::controller(law, window.in_whole_packets(true))
    } else {
        let (s_min, phase) = (params.get("s_min"), Phase::Unbounded);
        window_law::controller(Bic { common, s_min, phase, before: (0.0, phase) }, window)
    }
}

/// What the paper and Linux have in common.
struct Common {
    low_window: f64,
    s_max: f64,
    beta: f64,
    fast_convergence: bool,
    /// Window before the last reduction; 0 = none is known.
    w_max: f64,
    /// For observers: packets per round trip.
    increase: f64,
}

impl Common {
    /// W_max for the next search, when `window` is about to be reduced.
    fn note_maximum(&mut self, window: f64) {
        let released = self.fast_convergence && window < self.w_max;
        self.w_max = if released { window * (2.0 - self.beta) / 2.0 } else { window };
    }

    fn observe(&self, window: &RenoWindow, out: &mut [f64]) {
        let w_max = if self.w_max > 0.0 { self.w_max } else { f64::NAN };
        out.copy_from_slice(&[window.ssthresh_bytes(), w_max, self.increase]);
    }
}

/// Where the search stands (§III).
#[derive(Clone, Copy, Debug)]
enum Phase {
    /// No maximum is known: additive increase of S_max.
    Unbounded,
    /// Additive, then binary search towards W_max.
    Search,
    /// Max probing: `step` packets per round trip until the window reaches `target`, then twice as many.
    Probe { step: f64, target: f64 },
}

struct Bic {
    common: Common,
    s_min: f64,
    phase: Phase,
    /// W_max and phase before the last reduction.
    before: (f64, Phase),
}

impl Bic {
    /// Increase per round trip at `window`.
    fn increase(&self, window: f64) -> f64 {
        if window <= self.common.low_window {
            return 1.0;
        }
        match self.phase {
            Phase::Unbounded => self.common.s_max,
            // The minimum follows the window, so the target is half-way to W_max.
            Phase::Search => {
                let half = (self.common.w_max - window) / 2.0;
                half.max(self.s_min).min(self.common.s_max)
            }
            Phase::Probe { step, .. } => step,
        }
    }

    /// The phase after the window has become `window`.
    fn change_phase(&mut self, window: f64) {
        self.phase = match self.phase {
            Phase::Search if self.common.w_max - window < self.s_min => {
                Phase::Probe { step: 1.0, target: window + 1.0 }
            }
            Phase::Probe { step, target } if window >= target => {
                let step = 2.0 * step;
                if step >= self.common.s_max {
                    Phase::Unbounded
                } else {
                    Phase::Probe { step, target: window + step }
                }
            }
            phase => phase,
        };
    }
}

impl WindowLaw for Bic {
    fn advance(&mut self, ack: &AckSample, window: &mut RenoWindow) {
        let acked = window.slow_start(ack);
        if acked > 0.0 {
            self.common.increase = self.increase(window.cwnd);
            window.grow(self.common.increase * acked / window.cwnd);
            self.change_phase(window.cwnd);
        }
    }

    fn keep(&mut self, _signal: &Signal<'_>, window: &RenoWindow) -> f64 {
        self.before = (self.common.w_max, self.phase);
        if window.cwnd <= self.common.low_window {
            return window.cwnd / 2.0;
        }
        self.common.note_maximum(window.cwnd);
        self.phase = Phase::Search;
        window.cwnd - self.common.beta * window.cwnd
    }

    fn undo(&mut self, window: &mut RenoWindow) {
        if window.undo() {
            (self.common.w_max, self.phase) = self.before;
        }
    }

    fn observe(&self, window: &RenoWindow, out: &mut [f64]) {
        self.common.observe(window, out);
    }
}

/// Linux searches in quarters of the distance, not halves (BICTCP_B).
const B: f64 = 4.0;
/// Linux's pace within B packets of W_max: B/20 packets per round trip (smooth_part).
const SMOOTH_PART: f64 = 20.0;
/// Linux's estimate of packets per ACK is in sixteenths (ACK_RATIO_SHIFT).
const ACK_RATIO_SCALE: u64 = 16;

/// BIC as Linux has it: whole packets, a quarter of the distance per round trip, symmetric beyond W_max.
struct Linux {
    common: Common,
    /// Packets per ACK, smoothed, in sixteenths.
    ack_ratio: u64,
}

impl Linux {
    /// Packets to be acknowledged for one more in the window.
    fn per_packet(&self, window: f64) -> f64 {
        let Common { low_window, s_max, w_max, .. } = self.common;
        if window <= low_window {
            return window;
        }
        let smooth = libm::floor(window * SMOOTH_PART / B);
        let mut count = if window < w_max {
            let distance = libm::floor((w_max - window) / B);
            if distance > s_max {
                libm::floor(window / s_max)
            } else if distance <= 1.0 {
                smooth
            } else {
                libm::floor(window / distance)
            }
        } else if window < w_max + B {
            smooth
        } else if window < w_max + s_max * (B - 1.0) {
            libm::floor(window * (B - 1.0) / (window - w_max))
        } else {
            libm::floor(window / s_max)
        };
        if w_max == 0.0 {
            // No maximum is known yet: at least 5 % per round trip.
            count = count.min(20.0);
        }
        // Linux counts packets here and still divides by the packets per ACK: delayed ACKs double the growth.
        libm::floor(count * ACK_RATIO_SCALE as f64 / self.ack_ratio.max(1) as f64).max(1.0)
    }
}

impl WindowLaw for Linux {
    fn measure(&mut self, ack: &AckSample, _window: &RenoWindow) {
        if ack.has(AckSample::CUMULATIVE) && !ack.has(AckSample::IN_RECOVERY) {
            let smoothed = self.ack_ratio - self.ack_ratio / ACK_RATIO_SCALE;
            self.ack_ratio = smoothed + u64::from(ack.acked_packets);
        }
    }

    fn advance(&mut self, ack: &AckSample, window: &mut RenoWindow) {
        let acked = window.slow_start(ack);
        if acked > 0.0 {
            let per_packet = self.per_packet(window.cwnd);
            self.common.increase = window.cwnd / per_packet;
            window.avoid(acked, per_packet);
        }
    }

    fn keep(&mut self, _signal: &Signal<'_>, window: &RenoWindow) -> f64 {
        self.common.note_maximum(window.cwnd);
        self.common.w_max = libm::floor(self.common.w_max);
        let low = window.cwnd <= self.common.low_window;
        window.fraction(if low { 0.5 } else { 1.0 - self.common.beta })
    }

    fn timed_out(&mut self, _window: &RenoWindow) {
        self.common.w_max = 0.0;
        self.ack_ratio = 2 * ACK_RATIO_SCALE;
    }

    // An undo gives back the window only, in Linux.

    fn observe(&self, window: &RenoWindow, out: &mut [f64]) {
        self.common.observe(window, out);
    }
}

#[cfg(test)]
#[path = "bic_tests.rs"]
mod tests;
