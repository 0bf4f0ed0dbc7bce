//! LEDBAT++ (draft-irtf-iccrg-ledbat-plus-plus): LEDBAT on RTTs, with a gentler increase, a multiplicative decrease, and a
//! periodic slowdown that lets every flow see the base delay.
//!
//! ACKs in, a window out. Section numbers are those of revision 06.

use super::ledbat::DelayHistory;
use crate::controller::{Controller, Field, Needs};
use crate::event::{AckSample, PathInfo};
use crate::registry::{Family, Param, Params, Spec};
use crate::reno_window::{INITIAL_SSTHRESH, INITIAL_WINDOW, RenoWindow};
use crate::window_law::{self, Signal, WindowLaw};

/// GAIN is at least one over this.
const MAX_GAIN_DIVISOR: f64 = 16.0;
/// Constant C of the multiplicative decrease.
const DECREASE: f64 = 1.0;
/// The initial slow start ends when the queueing delay exceeds this share of the target.
const SLOW_START_SHARE: f64 = 0.75;
/// Round trips from the end of the initial slow start to the first slowdown, and round trips at the smallest window.
const SLOWDOWN_ROUNDS: u64 = 2;
const SLOWDOWN_PACKETS: f64 = 2.0;

/// The registry entry.
pub(crate) static SPEC: Spec = Spec {
    name: "ledbat++",
    title: "LEDBAT++: background transport with slowdowns",
    family: Family::DelayBased,
    source: "draft-irtf-iccrg-ledbat-plus-plus-06",
    about: include_str!("about/ledbat++.md"),
    needs: Needs::NONE,
    params: &[
        Param::duration("target", 0.06, (0.001, 1.0), "TARGET: queueing delay aimed at"),
        Param::integer(
            "slowdown_spacing",
            "1",
            9.0,
            (1.0, 1000.0),
            "time to the next slowdown, in durations of the last",
        ),
        INITIAL_WINDOW,
        INITIAL_SSTHRESH,
    ],
    profiles: &[],
    fields: &[
        Field { name: "base_delay", unit: "ms", doc: "smallest RTT of ten minutes" },
        Field { name: "queueing_delay", unit: "ms", doc: "smallest of 4 RTTs above it" },
        Field { name: "gain", unit: "1", doc: "GAIN" },
        Field { name: "slowdown", unit: "1", doc: "1 during a slowdown, ramp-up included" },
    ],
    build,
};

fn build(params: &Params, path: &PathInfo) -> Box<dyn Controller> {
    let (packets, ssthresh) = (params.get("initial_window"), params.get("initial_ssthresh"));
    let law = LedbatPlusPlus {
        target_ns: params.get_ns("target") as f64,
        slowdown_spacing: params.get("slowdown_spacing") as u64,
        delays: DelayHistory::new(path.now_ns),
        phase: Phase::SlowStart,
    };
    window_law::controller(law, RenoWindow::new(packets, ssthresh, path))
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    /// The initial one, and after a timeout.
    SlowStart,
    /// Congestion avoidance until the next slowdown.
    Steady { slowdown_ns: u64 },
    /// A slowdown: two packets, until `ramp_ns`.
    Frozen { since_ns: u64, ramp_ns: u64 },
    /// A slowdown: slow start back to the window of before.
    Ramp { since_ns: u64 },
}

struct LedbatPlusPlus {
    target_ns: f64,
    slowdown_spacing: u64,
    delays: DelayHistory,
    phase: Phase,
}

/// §4.2: the increase per round trip for a base delay, 1/16 to 1.
fn gain(target_ns: f64, base_ns: f64) -> f64 {
    1.0 / libm::ceil(2.0 * target_ns / base_ns).clamp(1.0, MAX_GAIN_DIVISOR)
}

impl LedbatPlusPlus {
    /// GAIN; the smallest before the base delay is known.
    fn gain(&self) -> f64 {
        let base_ns = self.delays.base_ns();
        base_ns.map_or(1.0 / MAX_GAIN_DIVISOR, |ns| gain(self.target_ns, ns as f64))
    }

    /// §4.3, §4.4: slow start at GAIN, to ssthresh.
    fn ramp(&self, acked: f64, window: &mut RenoWindow) {
        let room = (window.ssthresh - window.cwnd).max(0.0);
        window.grow((self.gain() * acked).min(room));
    }

    /// §4.2, per packet acknowledged: GAIN per round trip below the target, W (delay/TARGET - 1) less above it.
    fn avoid(&self, acked: f64, queueing_ns: f64, limited: bool, window: &mut RenoWindow) {
        let cwnd = window.cwnd;
        let excess = queueing_ns / self.target_ns - 1.0;
        let per_rtt =
            if excess < 0.0 { self.gain() } else { self.gain() - DECREASE * cwnd * excess };
        let step = per_rtt.max(-cwnd / 2.0) * acked / cwnd;
        if step < 0.0 {
            window.lower_to(cwnd + step);
        } else if limited {
            window.grow(step);
        }
    }

    /// What comes next.
    fn change_phase(&mut self, ack: &AckSample, queueing_ns: f64, window: &mut RenoWindow) {
        let (now_ns, rtt_ns) = (ack.now_ns, ack.srtt_ns);
        let later = |rounds: u64, ns: u64| now_ns.saturating_add(ns.saturating_mul(rounds));
        self.phase = match self.phase {
            Phase::SlowStart
                if !window.in_slow_start() || queueing_ns > SLOW_START_SHARE * self.target_ns =>
            {
                window.leave_slow_start();
                Phase::Steady { slowdown_ns: later(SLOWDOWN_ROUNDS, rtt_ns) }
            }
            Phase::Steady { slowdown_ns } if now_ns >= slowdown_ns => {
                window.ssthresh = window.cwnd;
                window.cwnd = window.cwnd.min(SLOWDOWN_PACKETS);
                Phase::Frozen { since_ns: now_ns, ramp_ns: later(SLOWDOWN_ROUNDS, rtt_ns) }
            }
            Phase::Frozen { since_ns, ramp_ns } if now_ns >= ramp_ns => Phase::Ramp { since_ns },
            Phase::Ramp { since_ns } if !window.in_slow_start() => {
                let lasted_ns = now_ns.saturating_sub(since_ns);
                Phase::Steady { slowdown_ns: later(self.slowdown_spacing, lasted_ns) }
            }
            phase => phase,
        };
    }

    fn is_frozen(&self) -> bool {
        matches!(self.phase, Phase::Frozen { .. })
    }
}

impl WindowLaw for LedbatPlusPlus {
    fn measure(&mut self, ack: &AckSample, _window: &RenoWindow) {
        if ack.rtt_ns > 0 {
            self.delays.add(ack.now_ns, ack.rtt_ns);
        }
    }

    fn advance(&mut self, ack: &AckSample, window: &mut RenoWindow) {
        let Some(queueing_ns) = self.delays.queueing_ns() else { return };
        self.change_phase(ack, queueing_ns, window);
        let acked = f64::from(ack.acked_packets).min(window.cwnd);
        let limited = RenoWindow::may_grow(ack);
        match self.phase {
            Phase::SlowStart | Phase::Ramp { .. } if limited => self.ramp(acked, window),
            Phase::Steady { .. } => self.avoid(acked, queueing_ns, limited, window),
            _ => {}
        }
    }

    fn keep(&mut self, signal: &Signal<'_>, window: &RenoWindow) -> f64 {
        match signal {
            Signal::Timeout(timeout) => window.half_of_flight(timeout.in_flight_bytes),
            // What was lost in the first round of a slowdown had been sent before it.
            _ if self.is_frozen() => window.ssthresh / 2.0,
            _ => window.cwnd / 2.0,
        }
    }

    fn timed_out(&mut self, _window: &RenoWindow) {
        self.phase = Phase::SlowStart;
    }

    fn undo(&mut self, window: &mut RenoWindow) {
        if !self.is_frozen() {
            window.undo();
        }
    }

    fn path_changed(&mut self, path: &PathInfo, _window: &RenoWindow) {
        self.delays = DelayHistory::new(path.now_ns);
    }

    fn observe(&self, _window: &RenoWindow, out: &mut [f64]) {
        let slowdown = matches!(self.phase, Phase::Frozen { .. } | Phase::Ramp { .. });
        out.copy_from_slice(&[
            self.delays.base_ns().map_or(f64::NAN, |ns| ns as f64 * 1e-6),
            self.delays.queueing_ns().map_or(f64::NAN, |ns| ns * 1e-6),
            self.gain(),
            f64::from(u8::from(slowdown)),
        ]);
    }
}

#[cfg(test)]
#[path = "ledbat_plus_plus_tests.rs"]
mod tests;
