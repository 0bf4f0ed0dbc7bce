//! LEDBAT++ (draft-irtf-iccrg-ledbat-plus-plus): LEDBAT on RTTs, with a gentler increase, a multiplicative decrease, and a
//! periodic slowdown that lets every flow see the base delay.
//!
//! ACKs in, a window out. Section numbers are those of revision 06.

use super::ledbat::DelayHistory;
use super::reno_part::{INITIAL_SSTHRESH, INITIAL_WINDOW, RenoPart, Turn};
use crate::controller::{Control, Controller, Field, Needs};
use crate::event::{Ack, AckSample, Loss, PathInfo, Timeout, Undo};
use crate::registry::{Param, Params, Spec};
use crate::slow_start::SlowStartKind;

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
    family: crate::registry::Family::DelayBased,
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
    let (window, ssthresh) = (params.get("initial_window"), params.get("initial_ssthresh"));
    Box::new(LedbatPlusPlus {
        target_ns: params.get_ns("target") as f64,
        slowdown_spacing: params.get("slowdown_spacing") as u64,
        reno: RenoPart::new(window, ssthresh, SlowStartKind::Standard, path),
        delays: DelayHistory::new(path.now_ns),
        phase: Phase::SlowStart,
    })
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
    reno: RenoPart,
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
    fn ramp(&mut self, acked: f64) {
        let room = (self.reno.ssthresh - self.reno.cwnd).max(0.0);
        self.reno.grow((self.gain() * acked).min(room));
    }

    /// §4.2, per packet acknowledged: GAIN per round trip below the target, W (delay/TARGET - 1) less above it.
    fn avoid(&mut self, acked: f64, queueing_ns: f64, limited: bool) {
        let cwnd = self.reno.cwnd;
        let excess = queueing_ns / self.target_ns - 1.0;
        let per_rtt =
            if excess < 0.0 { self.gain() } else { self.gain() - DECREASE * cwnd * excess };
        let step = per_rtt.max(-cwnd / 2.0) * acked / cwnd;
        if step < 0.0 {
            self.reno.lower_to(cwnd + step);
        } else if limited {
            self.reno.grow(step);
        }
    }

    /// What comes next, at `now_ns` and with round trips of `rtt_ns`.
    fn change_phase(&mut self, now_ns: u64, rtt_ns: u64, queueing_ns: f64) {
        let later = |rounds: u64, ns: u64| now_ns.saturating_add(ns.saturating_mul(rounds));
        self.phase = match self.phase {
            Phase::SlowStart
                if !self.reno.in_slow_start()
                    || queueing_ns > SLOW_START_SHARE * self.target_ns =>
            {
                self.reno.leave_slow_start();
                Phase::Steady { slowdown_ns: later(SLOWDOWN_ROUNDS, rtt_ns) }
            }
            Phase::Steady { slowdown_ns } if now_ns >= slowdown_ns => {
                self.reno.ssthresh = self.reno.cwnd;
                self.reno.cwnd = self.reno.cwnd.min(SLOWDOWN_PACKETS);
                Phase::Frozen { since_ns: now_ns, ramp_ns: later(SLOWDOWN_ROUNDS, rtt_ns) }
            }
            Phase::Frozen { since_ns, ramp_ns } if now_ns >= ramp_ns => Phase::Ramp { since_ns },
            Phase::Ramp { since_ns } if !self.reno.in_slow_start() => {
                let lasted_ns = now_ns.saturating_sub(since_ns);
                Phase::Steady { slowdown_ns: later(self.slowdown_spacing, lasted_ns) }
            }
            phase => phase,
        };
    }

    fn halve(&mut self) {
        let frozen = matches!(self.phase, Phase::Frozen { .. });
        // What was lost in the first round of a slowdown had been sent before it.
        self.reno.reduce_to(if frozen { self.reno.ssthresh } else { self.reno.cwnd } / 2.0);
    }
}

impl Controller for LedbatPlusPlus {
    fn on_ack(&mut self, ack: &Ack<'_>) {
        if ack.rtt_ns > 0 {
            self.delays.add(ack.now_ns, ack.rtt_ns);
        }
        match self.reno.on_ack(ack) {
            Turn::Repair => return,
            Turn::Mark => return self.halve(),
            Turn::Open => {}
        }
        let Some(queueing_ns) = self.delays.queueing_ns() else { return };
        self.change_phase(ack.now_ns, ack.srtt_ns, queueing_ns);
        let acked = f64::from(ack.acked_packets).min(self.reno.cwnd);
        let limited = ack.has(AckSample::CWND_LIMITED);
        match self.phase {
            Phase::SlowStart | Phase::Ramp { .. } if limited => self.ramp(acked),
            Phase::Steady { .. } => self.avoid(acked, queueing_ns, limited),
            _ => {}
        }
    }

    fn on_loss(&mut self, loss: &Loss) {
        if self.reno.on_loss(loss) {
            self.halve();
        }
    }

    fn on_rto(&mut self, timeout: &Timeout) {
        self.reno.on_rto(timeout);
        self.phase = Phase::SlowStart;
    }

    fn on_spurious_loss(&mut self, _undo: &Undo) {
        if !matches!(self.phase, Phase::Frozen { .. }) {
            self.reno.undo();
        }
    }

    fn on_path_change(&mut self, path: &PathInfo) {
        self.reno.on_path_change(path);
        self.delays = DelayHistory::new(path.now_ns);
    }

    fn control(&self) -> Control {
        Control::window(self.reno.window_bytes())
    }

    fn observe(&self, out: &mut [f64]) {
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
