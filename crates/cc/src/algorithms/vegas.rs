//! Vegas (Brakmo and Peterson 1995): compare the rate one gets with the rate one would get without a queue, and keep a few packets
//! queued.
//!
//! Once per round trip, from the smallest RTT of that round. The profile "linux" has Linux's reading, `variant = "linux"`; each
//! difference is named at its line.

use crate::controller::{Controller, Field, Needs};
use crate::event::{AckSample, PathInfo, Resume};
use crate::registry::{Family, Param, Params, Profile, Spec};
use crate::reno_window::{INITIAL_SSTHRESH, INITIAL_WINDOW, RenoWindow, SSTHRESH};
use crate::round_rtt::RoundRtt;
use crate::window_law::{self, Signal, WindowLaw};

/// The registry entry.
pub(crate) static SPEC: Spec = Spec {
    name: "vegas",
    title: "Vegas: a few packets queued",
    family: Family::DelayBased,
    source: "Brakmo and Peterson, TCP Vegas: end to end congestion avoidance on a global Internet (IEEE JSAC 13:8, 1995)",
    about: include_str!("about/vegas.md"),
    needs: Needs::NONE,
    params: &[
        Param::number(
            "alpha",
            "packets",
            2.0,
            (0.0, 10_000.0),
            "grow while fewer are queued, alpha; the paper has 1 and 2",
        ),
        Param::number(
            "beta",
            "packets",
            4.0,
            (0.0, 10_000.0),
            "shrink while more are queued, beta; the paper has 3 and 4",
        ),
        Param::number(
            "gamma",
            "packets",
            1.0,
            (0.0, 10_000.0),
            "leave slow start when more are queued, gamma",
        ),
        Param::number(
            "loss_beta",
            "1",
            0.5,
            (0.1, 0.99),
            "fraction of the window kept at a loss; the authors' code keeps 0.75",
        ),
        Param::choice(
            "variant",
            &["paper", "linux"],
            "what is queued, and slow start: as in the paper or as in Linux",
        ),
        INITIAL_WINDOW,
        INITIAL_SSTHRESH,
    ],
    profiles: &[Profile {
        name: "linux",
        source: "Linux 6.1 tcp_vegas: Diff over baseRTT and rounded down, slow start in every round; a first window that an application's greeting has opened by one",
        values: &[("variant", 1.0), ("initial_window", 11.0)],
    }],
    fields: &[
        SSTHRESH,
        Field { name: "base_rtt", unit: "ms", doc: "smallest RTT, BaseRTT" },
        Field { name: "diff", unit: "packets", doc: "packets queued by the last reckoning, Diff" },
    ],
    build,
};

/// A round with fewer samples may hold nothing but a delayed ACK (Linux; the paper measures single packets).
const MIN_SAMPLES: u32 = 3;

fn build(params: &Params, path: &PathInfo) -> Box<dyn Controller> {
    let linux = params.get_choice("variant") == "linux";
    let window =
        RenoWindow::new(params.get("initial_window"), params.get("initial_ssthresh"), path);
    let law = Vegas {
        alpha: params.get("alpha"),
        beta: params.get("beta"),
        gamma: params.get("gamma"),
        loss_beta: params.get("loss_beta"),
        linux,
        rtts: RoundRtt::default(),
        growing_round: false,
        diff: f64::NAN,
    };
    window_law::controller(law, window.in_whole_packets(linux))
}

struct Vegas {
    alpha: f64,
    beta: f64,
    gamma: f64,
    loss_beta: f64,
    linux: bool,
    rtts: RoundRtt,
    /// Slow start of the paper: whether the window grows in this round.
    growing_round: bool,
    diff: f64,
}

impl Vegas {
    /// §3: Diff = (Expected - Actual) BaseRTT, in packets.
    fn queued(&self, cwnd: f64, rtt_ns: u64, base_ns: u64) -> f64 {
        let (rtt, base) = (rtt_ns as f64, base_ns as f64);
        // Linux divides by BaseRTT, which finds more in a long queue, and rounds down.
        if self.linux { (cwnd * (rtt - base) / base).floor() } else { cwnd * (1.0 - base / rtt) }
    }

    /// The decision at the end of a round whose smallest RTT is `rtt_ns`.
    fn decide(&mut self, ack: &AckSample, rtt_ns: u64, window: &mut RenoWindow) {
        let Some(base_ns) = self.rtts.base_ns() else { return };
        let diff = self.queued(window.cwnd, rtt_ns, base_ns);
        self.diff = diff;
        if window.in_slow_start() {
            if diff <= self.gamma {
                self.slow_start(ack, window);
            } else if self.linux {
                // Down to what the path holds, and one.
                let held = (window.cwnd * (base_ns as f64 / rtt_ns as f64)).floor();
                window.set(window.cwnd.min(held + 1.0));
            } else {
                window.leave_slow_start();
            }
        } else if diff > self.beta {
            window.set(window.cwnd - 1.0);
        } else if diff < self.alpha {
            window.grow(1.0);
        }
    }

    /// §4.3: the window doubles in every other round and stands in the rounds between; in Linux it doubles in every round.
    fn slow_start(&mut self, ack: &AckSample, window: &mut RenoWindow) {
        if self.linux || self.growing_round {
            window.slow_start_unasked(ack);
        }
    }
}

impl WindowLaw for Vegas {
    fn measure(&mut self, ack: &AckSample, _window: &RenoWindow) {
        self.rtts.note(ack);
    }

    fn repairing(&mut self, _window: &RenoWindow) {
        self.rtts.discard();
    }

    fn advance(&mut self, ack: &AckSample, window: &mut RenoWindow) {
        let round = self.rtts.finish(ack);
        // Linux asks only where it grows as Reno does.
        let limited = RenoWindow::may_grow(ack);
        if limited || self.linux {
            match round {
                Some(round) if round.samples >= MIN_SAMPLES => {
                    self.decide(ack, round.min_ns, window);
                }
                Some(_) => window.grow_as_reno(ack),
                None if window.in_slow_start() => self.slow_start(ack, window),
                None => {}
            }
        }
        self.growing_round ^= round.is_some();
    }

    fn keep(&mut self, signal: &Signal<'_>, window: &RenoWindow) -> f64 {
        let timeout = matches!(signal, Signal::Timeout(_));
        window.fraction(if timeout { 0.5 } else { self.loss_beta })
    }

    fn reduced(&mut self, _signal: &Signal<'_>, _before: f64, _window: &mut RenoWindow) {
        self.rtts.discard();
    }

    fn timed_out(&mut self, _window: &RenoWindow) {
        self.rtts.discard();
        if self.linux {
            // With nothing in flight Linux takes the retransmission for a start after a pause.
            self.rtts.forget_base();
        }
    }

    fn undo(&mut self, window: &mut RenoWindow) {
        window.undo();
        self.rtts.discard();
    }

    fn resume(&mut self, resume: &Resume, window: &mut RenoWindow) {
        window.on_resume(resume);
        self.rtts.discard();
        if self.linux {
            self.rtts.forget_base();
        }
    }

    fn path_changed(&mut self, _path: &PathInfo, _window: &RenoWindow) {
        self.rtts.forget_base();
    }

    fn observe(&self, window: &RenoWindow, out: &mut [f64]) {
        let base_ms = self.rtts.base_ns().map_or(f64::NAN, |ns| ns as f64 * 1e-6);
        out.copy_from_slice(&[window.ssthresh_bytes(), base_ms, self.diff]);
    }
}

#[cfg(test)]
#[path = "vegas_tests.rs"]
mod tests;
