//! TCP-Illinois (Liu, Basar and Srikant 2008): losses say when to fall, delay says how fast to grow and how far to fall.
//!
//! Once per round trip, from the mean RTT of that round. The profile "linux" counts as Linux does (`variant = "linux"`); each
//! difference is named at its line.

use crate::controller::{Controller, Field, Needs};
use crate::event::{AckSample, PathInfo};
use crate::registry::{Family, Param, Params, Profile, Spec};
use crate::reno_window::{INITIAL_SSTHRESH, INITIAL_WINDOW, RenoWindow, SLOW_START, SSTHRESH};
use crate::round_rtt::RoundRtt;
use crate::window_law::{self, Signal, WindowLaw};

/// The registry entry.
pub(crate) static SPEC: Spec = Spec {
    name: "illinois",
    title: "Illinois: increase and decrease by queueing delay",
    family: Family::DelayBased,
    source: "Liu, Basar and Srikant, TCP-Illinois: a loss- and delay-based congestion control algorithm for high-speed networks (Performance Evaluation 65:6-7, 2008)",
    about: include_str!("about/illinois.md"),
    needs: Needs::NONE,
    params: &[
        Param::number(
            "alpha_min",
            "packets",
            0.3,
            (0.01, 1.0),
            "increase per round trip at the longest delay, alpha_min",
        ),
        Param::number(
            "alpha_max",
            "packets",
            10.0,
            (1.5, 1000.0),
            "increase per round trip without delay, alpha_max",
        ),
        Param::number(
            "beta_min",
            "1",
            0.125,
            (0.01, 0.5),
            "fraction removed at a loss at a short delay, beta_min",
        ),
        Param::number(
            "beta_max",
            "1",
            0.5,
            (0.5, 0.9),
            "fraction removed at a loss at a long delay, beta_max",
        ),
        Param::number(
            "eta1",
            "1",
            0.01,
            (0.0, 0.05),
            "d_1: below this fraction of the longest delay alpha = alpha_max",
        ),
        Param::number(
            "eta2",
            "1",
            0.1,
            (0.0, 0.5),
            "d_2: below this fraction of the longest delay beta = beta_min",
        ),
        Param::number(
            "eta3",
            "1",
            0.8,
            (0.5, 1.0),
            "d_3: above this fraction of the longest delay beta = beta_max",
        ),
        Param::number(
            "window_threshold",
            "packets",
            15.0,
            (0.0, 10_000.0),
            "below this window alpha = 1 and beta = beta_max, W_thresh",
        ),
        Param::integer(
            "theta",
            "rounds",
            5.0,
            (1.0, 1000.0),
            "rounds below d_1 before alpha returns to alpha_max, theta",
        ),
        Param::choice("variant", &["paper", "linux"], "real numbers or Linux's whole ones"),
        SLOW_START,
        INITIAL_WINDOW,
        INITIAL_SSTHRESH,
    ],
    profiles: &[Profile {
        name: "linux",
        source: "Linux 6.1 tcp_illinois: whole packets, alpha in steps of 1/128, beta of 1/64",
        values: &[("variant", 1.0), ("alpha_min", 38.0 / 128.0)],
    }],
    fields: &[
        SSTHRESH,
        Field { name: "alpha", unit: "packets", doc: "increase per round trip, alpha" },
        Field { name: "beta", unit: "1", doc: "fraction removed at a loss, beta" },
        Field { name: "delay", unit: "ms", doc: "mean queueing delay of the last round, d_a" },
        Field { name: "max_delay", unit: "ms", doc: "longest queueing delay seen, d_m" },
    ],
    build,
};

/// Linux's steps of alpha and beta.
const ALPHA_STEPS: f64 = 128.0;
const BETA_STEPS: f64 = 64.0;
/// alpha of a small window: Reno's.
const ALPHA_RENO: f64 = 1.0;

/// The two curves of the paper.
#[derive(Clone, Copy, Debug)]
struct Curves {
    alpha_min: f64,
    alpha_max: f64,
    beta_min: f64,
    beta_max: f64,
    eta1: f64,
    eta2: f64,
    eta3: f64,
}

impl Curves {
    /// Eq. (1) above d_1, at mean delay `da` and longest delay `dm`: k1 / (k2 + d_a), with k1 and k2 such that the curve goes
    /// through (d_1, alpha_max) and (d_m, alpha_min).
    fn alpha(&self, da: f64, dm: f64) -> f64 {
        let d1 = self.eta1 * dm;
        let spread = self.alpha_max - self.alpha_min;
        let k1 = (dm - d1) * self.alpha_min * self.alpha_max / spread;
        let k2 = (dm - d1) * self.alpha_min / spread - d1;
        k1 / (k2 + da)
    }

    /// Eq. (2): beta_min up to d_2, beta_max from d_3 on, a line between.
    fn beta(&self, da: f64, dm: f64) -> f64 {
        let (d2, d3) = (self.eta2 * dm, self.eta3 * dm);
        if da <= d2 {
            self.beta_min
        } else if da >= d3 {
            self.beta_max
        } else {
            self.beta_min + (self.beta_max - self.beta_min) * (da - d2) / (d3 - d2)
        }
    }
}

fn build(params: &Params, path: &PathInfo) -> Box<dyn Controller> {
    let linux = params.get_choice("variant") == "linux";
    let law = Illinois {
        curves: Curves {
            alpha_min: params.get("alpha_min"),
            alpha_max: params.get("alpha_max"),
            beta_min: params.get("beta_min"),
            beta_max: params.get("beta_max"),
            eta1: params.get("eta1"),
            eta2: params.get("eta2"),
            eta3: params.get("eta3"),
        },
        window_threshold: params.get("window_threshold"),
        theta: params.get("theta") as u32,
        linux,
        alpha: ALPHA_RENO,
        beta: params.get("beta_max"),
        was_queueing: false,
        low_rounds: 0,
        credit: 0.0,
        delay_ns: None,
        max_rtt_ns: 0,
        rtts: RoundRtt::default(),
    };
    window_law::controller(law, RenoWindow::from_params(params, path).in_whole_packets(linux))
}

struct Illinois {
    curves: Curves,
    window_threshold: f64,
    theta: u32,
    linux: bool,
    alpha: f64,
    beta: f64,
    /// Whether the delay has been above d_1 since alpha was last alpha_max, and rounds below it since then.
    was_queueing: bool,
    low_rounds: u32,
    /// Linux: packets acknowledged since the window last grew.
    credit: f64,
    /// d_a, ns.
    delay_ns: Option<u64>,
    max_rtt_ns: u64,
    rtts: RoundRtt,
}

impl Illinois {
    /// d_m, ns.
    fn max_delay_ns(&self) -> u64 {
        self.rtts.base_ns().map_or(0, |base_ns| self.max_rtt_ns.saturating_sub(base_ns))
    }

    /// §3.2: alpha and beta at the end of a round with mean queueing delay `da`.
    fn update(&mut self, da: f64, dm: f64, cwnd: f64) {
        if cwnd < self.window_threshold {
            (self.alpha, self.beta) = (ALPHA_RENO, self.curves.beta_max);
            return;
        }
        self.beta = self.curves.beta(da, dm);
        if da > self.curves.eta1 * dm {
            self.was_queueing = true;
            self.alpha = self.curves.alpha(da, dm);
            // Linux counts on from before.
            if !self.linux {
                self.low_rounds = 0;
            }
        } else if !self.was_queueing {
            self.alpha = self.curves.alpha_max;
        } else {
            // One round without a queue may be chance.
            self.low_rounds += 1;
            if self.low_rounds >= self.theta {
                (self.was_queueing, self.low_rounds) = (false, 0);
                self.alpha = self.curves.alpha_max;
            }
        }
        if self.linux {
            self.alpha = (self.alpha * ALPHA_STEPS).floor() / ALPHA_STEPS;
            self.beta = (self.beta * BETA_STEPS).floor() / BETA_STEPS;
        }
    }

    /// w += alpha / w per packet acknowledged.
    fn avoid(&mut self, acked: f64, window: &mut RenoWindow) {
        let cwnd = window.cwnd;
        if !self.linux {
            window.grow(self.alpha * acked / cwnd);
            return;
        }
        self.credit += acked;
        let due = (self.credit * self.alpha).floor();
        if due >= cwnd {
            window.grow((due / cwnd).floor());
            // What is left over is lost.
            self.credit = 0.0;
        }
    }
}

impl WindowLaw for Illinois {
    fn measure(&mut self, ack: &AckSample, _window: &RenoWindow) {
        self.rtts.note(ack);
        self.max_rtt_ns = self.max_rtt_ns.max(ack.rtt_ns);
    }

    fn advance(&mut self, ack: &AckSample, window: &mut RenoWindow) {
        if let Some(round) = self.rtts.finish(ack)
            && round.samples > 0
            && let Some(base_ns) = self.rtts.base_ns()
        {
            let delay_ns = round.mean_ns().saturating_sub(base_ns);
            self.delay_ns = Some(delay_ns);
            self.update(delay_ns as f64, self.max_delay_ns() as f64, window.cwnd);
        }
        let acked = window.slow_start(ack);
        if acked > 0.0 {
            self.avoid(acked, window);
        }
    }

    /// §3.2, W <- (1 - beta) W.
    fn keep(&mut self, _signal: &Signal<'_>, window: &RenoWindow) -> f64 {
        self.credit = 0.0;
        window.cwnd - window.fraction(self.beta)
    }

    fn timed_out(&mut self, _window: &RenoWindow) {
        (self.alpha, self.beta) = (ALPHA_RENO, self.curves.beta_max);
        (self.was_queueing, self.low_rounds) = (false, 0);
        self.rtts.discard();
    }

    fn path_changed(&mut self, _path: &PathInfo, _window: &RenoWindow) {
        self.rtts.forget_base();
        self.max_rtt_ns = 0;
    }

    fn observe(&self, window: &RenoWindow, out: &mut [f64]) {
        out.copy_from_slice(&[
            window.ssthresh_bytes(),
            self.alpha,
            self.beta,
            self.delay_ns.map_or(f64::NAN, |ns| ns as f64 * 1e-6),
            self.max_delay_ns() as f64 * 1e-6,
        ]);
    }
}

#[cfg(test)]
#[path = "illinois_tests.rs"]
mod tests;
