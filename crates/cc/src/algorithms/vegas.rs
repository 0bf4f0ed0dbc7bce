//! Vegas (Brakmo and Peterson 1995): compare the rate one gets with the rate one would get without a queue, and keep a few packets
//! queued.
//!
//! Once per round trip, from the smallest RTT of that round. The profile "linux" has Linux's reading, `variant = "linux"`; each
//! difference is named at its line.

use super::reno_window::{INITIAL_SSTHRESH, INITIAL_WINDOW, RenoWindow};
use super::{MAX_WINDOW_PACKETS, clamp};
use crate::controller::{Control, Controller, Field, Needs};
use crate::event::{Ack, AckSample, Loss, PathInfo, Resume, Timeout, Undo};
use crate::registry::{Param, Params, Profile, Spec};
use crate::round_rtt::RoundRtt;

/// The registry entry.
pub(crate) static SPEC: Spec = Spec {
    name: "vegas",
    title: "Vegas: a few packets queued",
    source: "Brakmo and Peterson 1995 (IEEE JSAC 13:8)",
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
        Field { name: "ssthresh_bytes", unit: "bytes", doc: "slow-start threshold" },
        Field { name: "base_rtt", unit: "ms", doc: "smallest RTT, BaseRTT" },
        Field { name: "diff", unit: "packets", doc: "packets queued by the last reckoning, Diff" },
    ],
    build,
};

/// A round with fewer samples may hold nothing but a delayed ACK (Linux; the paper measures single packets).
const MIN_SAMPLES: u32 = 3;

fn build(params: &Params, path: &PathInfo) -> Box<dyn Controller> {
    let linux = params.get_choice("variant") == "linux";
    Box::new(Vegas {
        alpha: params.get("alpha"),
        beta: params.get("beta"),
        gamma: params.get("gamma"),
        loss_beta: params.get("loss_beta"),
        linux,
        window: RenoWindow::new(params, path, linux),
        rtts: RoundRtt::default(),
        growing_round: false,
        diff: f64::NAN,
    })
}

struct Vegas {
    alpha: f64,
    beta: f64,
    gamma: f64,
    loss_beta: f64,
    linux: bool,
    window: RenoWindow,
    rtts: RoundRtt,
    /// Slow start of the paper: whether the window grows in this round.
    growing_round: bool,
    diff: f64,
}

impl Vegas {
    /// §3: Diff = (Expected - Actual) BaseRTT, in packets.
    fn queued(&self, rtt_ns: u64, base_ns: u64) -> f64 {
        let (rtt, base) = (rtt_ns as f64, base_ns as f64);
        let cwnd = self.window.cwnd;
        // Linux divides by BaseRTT, which finds more in a long queue, and rounds down.
        if self.linux { (cwnd * (rtt - base) / base).floor() } else { cwnd * (1.0 - base / rtt) }
    }

    /// The decision at the end of a round whose smallest RTT is `rtt_ns`.
    fn decide(&mut self, ack: &Ack<'_>, rtt_ns: u64) {
        let Some(base_ns) = self.rtts.base_ns() else { return };
        let diff = self.queued(rtt_ns, base_ns);
        self.diff = diff;
        let window = &mut self.window;
        if window.in_slow_start() {
            if diff <= self.gamma {
                self.slow_start(ack);
            } else if self.linux {
                // Down to what the path holds, and one.
                let held = (window.cwnd * (base_ns as f64 / rtt_ns as f64)).floor();
                window.set(window.cwnd.min(held + 1.0));
            } else {
                window.ssthresh = window.cwnd;
            }
        } else if diff > self.beta {
            window.set(window.cwnd - 1.0);
        } else if diff < self.alpha {
            window.cwnd = clamp(window.cwnd + 1.0, MAX_WINDOW_PACKETS);
        }
    }

    /// §4.3: the window doubles in every other round and stands in the rounds between; in Linux it doubles in every round.
    fn slow_start(&mut self, ack: &Ack<'_>) {
        if self.linux || self.growing_round {
            self.window.slow_start(ack);
        }
    }
}

impl Controller for Vegas {
    fn on_ack(&mut self, ack: &Ack<'_>) {
        self.rtts.note(ack);
        if self.window.is_repairing(ack) {
            self.rtts.discard();
            return;
        }
        if self.window.is_marked(ack) {
            self.window.reduce(self.window.fraction(self.loss_beta), ack.now_ns);
            self.rtts.discard();
            return;
        }
        let round = self.rtts.finish(ack);
        // Linux asks only where it grows as Reno does.
        let limited = ack.has(AckSample::CWND_LIMITED);
        if limited || self.linux {
            match round {
                Some(round) if round.samples >= MIN_SAMPLES => self.decide(ack, round.min_ns),
                Some(_) if limited => self.window.grow(ack),
                None if self.window.in_slow_start() => self.slow_start(ack),
                _ => {}
            }
        }
        self.growing_round ^= round.is_some();
    }

    fn on_loss(&mut self, loss: &Loss) {
        if loss.starts_episode() {
            self.window.reduce_for_loss(self.window.fraction(self.loss_beta), loss);
        }
    }

    fn on_rto(&mut self, timeout: &Timeout) {
        self.window.collapse(self.window.fraction(0.5), timeout);
        self.rtts.discard();
        if self.linux {
            // With nothing in flight Linux takes the retransmission for a start after a pause.
            self.rtts.forget_base();
        }
    }

    fn on_spurious_loss(&mut self, _undo: &Undo) {
        self.window.undo();
        self.rtts.discard();
    }

    fn on_resume(&mut self, _resume: &Resume) {
        self.rtts.discard();
        if self.linux {
            self.rtts.forget_base();
        }
    }

    fn on_path_change(&mut self, path: &PathInfo) {
        self.window.on_path_change(path);
        self.rtts.forget_base();
    }

    fn control(&self) -> Control {
        self.window.control()
    }

    fn observe(&self, out: &mut [f64]) {
        let base_ms = self.rtts.base_ns().map_or(f64::NAN, |ns| ns as f64 * 1e-6);
        out.copy_from_slice(&[self.window.ssthresh_bytes(), base_ms, self.diff]);
    }
}

#[cfg(test)]
#[path = "vegas_tests.rs"]
mod tests;
