//! Compound TCP (Tan, Song, Zhang, Sridharan 2006; draft-sridharan-tcpm-ctcp-02): Reno's window plus a window that grows fast
//! while the RTT shows no queue and gives way when it does.
//!
//! ACKs in, the sum of both windows out. Equation numbers are the paper's.

use crate::controller::{Controller, Field, Needs};
use crate::event::{AckSample, PathInfo, Resume};
use crate::registry::{Family, Param, Params, Profile, Spec};
use crate::reno_window::{INITIAL_SSTHRESH, INITIAL_WINDOW, RenoWindow, SLOW_START};
use crate::round::RoundCounter;
use crate::window_law::{self, Signal, WindowLaw};

/// RTT samples a round needs before its smallest counts: fewer may all be of delayed ACKs.
const MIN_SAMPLES: u32 = 3;
/// The backlog that gamma aims at: three quarters of what Reno alone keeps at a loss.
const GAMMA_SHARE: f64 = 0.75;
/// Smallest gamma that tuning comes to, packets; the largest is the one it begins with.
const GAMMA_LOW: f64 = 5.0;

/// The registry entry.
pub(crate) static SPEC: Spec = Spec {
    name: "ctcp",
    title: "Compound TCP: Reno and a window that grows while there is no queue",
    family: Family::DelayBased,
    source: "Tan, Song, Zhang and Sridharan, A compound TCP approach for high-speed and long distance networks (INFOCOM 2006); draft-sridharan-tcpm-ctcp-02",
    about: include_str!("about/ctcp.md"),
    needs: Needs::NONE,
    params: &[
        Param::number(
            "alpha",
            "1",
            0.125,
            (0.0, 10.0),
            "alpha: dwnd grows by alpha win^k - 1 per RTT",
        ),
        Param::number("k", "1", 0.75, (0.0, 1.0), "exponent k of that growth"),
        Param::number(
            "beta",
            "1",
            0.5,
            (0.0, 0.9),
            "beta: fraction of the window removed at a loss",
        ),
        Param::number("zeta", "1", 1.0, (0.0, 10.0), "zeta: dwnd gives way by zeta diff per RTT"),
        Param::number(
            "gamma",
            "packets",
            30.0,
            (1.0, 100_000.0),
            "gamma: own packets in the queue from which dwnd gives way; also the largest after tuning",
        ),
        Param::flag("gamma_tuning", true, "learn gamma from the queue that Reno leaves at losses"),
        Param::number("lambda", "1", 0.25, (0.0, 1.0), "lambda: weight of a loss in tuned gamma"),
        Param::number(
            "activation",
            "packets",
            38.0,
            (1.0, 100_000.0),
            "window from which on dwnd grows; below it is Reno",
        ),
        SLOW_START,
        INITIAL_WINDOW,
        INITIAL_SSTHRESH,
    ],
    profiles: &[
        Profile {
            name: "nist",
            source: "NIST SP 500-282 (2010): active from 41 packets, gamma fixed, initial window 2, high initial threshold",
            values: &[("activation", 41.0), ("gamma_tuning", 0.0), ("initial_window", 2.0)],
        },
        Profile {
            name: "nist-low-ssthresh",
            source: "NIST SP 500-282 (2010): the same with an initial threshold of 100",
            values: &[
                ("activation", 41.0),
                ("gamma_tuning", 0.0),
                ("initial_window", 2.0),
                ("initial_ssthresh", 100.0),
            ],
        },
    ],
    fields: &[
        Field { name: "reno_window", unit: "packets", doc: "loss-based window, cwnd" },
        Field { name: "delay_window", unit: "packets", doc: "delay-based window, dwnd" },
        Field {
            name: "diff",
            unit: "packets",
            doc: "own packets in the queue, diff, in the last round",
        },
        Field { name: "gamma", unit: "packets", doc: "gamma" },
    ],
    build,
};

fn build(params: &Params, path: &PathInfo) -> Box<dyn Controller> {
    let gamma = params.get("gamma");
    let window = RenoWindow::from_params(params, path);
    let law = Ctcp {
        alpha: params.get("alpha"),
        k: params.get("k"),
        beta: params.get("beta"),
        zeta: params.get("zeta"),
        lambda: if params.get_bool("gamma_tuning") { params.get("lambda") } else { 0.0 },
        gamma_high: gamma,
        activation: params.get("activation"),
        dwnd: 0.0,
        dwnd_before: 0.0,
        gamma,
        step: 0.0,
        base_rtt_ns: u64::MAX,
        round: Round::starting(window.cwnd, 0.0),
        rounds: RoundCounter::default(),
        round_ends: false,
        diff: f64::NAN,
        diff_reno: None,
    };
    window_law::controller(law, window)
}

/// What a round trip has shown so far.
#[derive(Clone, Copy, Debug)]
struct Round {
    /// Windows before it began: what was in flight then is acknowledged in it.
    window: f64,
    dwnd: f64,
    min_rtt_ns: u64,
    samples: u32,
}

impl Round {
    fn starting(window: f64, dwnd: f64) -> Self {
        Self { window, dwnd, min_rtt_ns: u64::MAX, samples: 0 }
    }
}

/// The law of win = cwnd + dwnd, the window of the frame.
struct Ctcp {
    alpha: f64,
    k: f64,
    beta: f64,
    zeta: f64,
    /// 0 = gamma stays.
    lambda: f64,
    gamma_high: f64,
    activation: f64,
    dwnd: f64,
    dwnd_before: f64,
    gamma: f64,
    /// Growth of dwnd per packet acknowledged in this round.
    step: f64,
    base_rtt_ns: u64,
    round: Round,
    rounds: RoundCounter,
    round_ends: bool,
    diff: f64,
    /// What Reno's part had in the queue in the last round; taken by the loss that it tunes gamma for.
    diff_reno: Option<f64>,
}

impl Ctcp {
    fn restart_round(&mut self, window: &RenoWindow) {
        self.round = Round::starting(window.cwnd, self.dwnd);
        self.step = 0.0;
    }

    /// Eqs. (4)-(5): once per RTT. The growth is spread over the next round's ACKs.
    fn end_round(&mut self, window: &mut RenoWindow) {
        let Round { window: win, dwnd, min_rtt_ns, samples } = self.round;
        self.restart_round(window);
        if samples < MIN_SAMPLES || window.in_slow_start() {
            return;
        }
        // diff = (expected - actual) baseRTT: the packets of the last window that wait.
        let waiting = 1.0 - self.base_rtt_ns as f64 / min_rtt_ns as f64;
        let diff = win * waiting;
        self.diff = diff;
        self.diff_reno = Some((win - dwnd) * waiting);
        if diff >= self.gamma {
            let given_up = (self.zeta * diff).min(self.dwnd);
            self.dwnd -= given_up;
            window.lower_to(window.cwnd - given_up);
        } else if win >= self.activation {
            let growth = (self.alpha * libm::pow(win, self.k) - 1.0).max(0.0);
            self.step = growth / window.cwnd;
        }
    }

    /// Eq. (5), third case, and the tuning of gamma; what is left of `window`.
    fn after_loss(&mut self, window: f64) -> f64 {
        if let Some(diff_reno) = self.diff_reno.take() {
            let sample = GAMMA_SHARE * diff_reno;
            self.gamma += self.lambda * (sample - self.gamma);
            self.gamma = self.gamma.max(GAMMA_LOW).min(self.gamma_high);
        }
        let reno = (window - self.dwnd) / 2.0;
        let kept = (window * (1.0 - self.beta)).max(reno);
        // Below the activation window there is no delay-based part; the sum is what the law says all the same.
        self.dwnd = if kept >= self.activation { kept - reno } else { 0.0 };
        kept
    }
}

impl WindowLaw for Ctcp {
    fn measure(&mut self, ack: &AckSample, _window: &RenoWindow) {
        if ack.rtt_ns > 0 {
            self.base_rtt_ns = self.base_rtt_ns.min(ack.rtt_ns);
        }
        self.round_ends = self.rounds.on_ack(ack);
    }

    fn repairing(&mut self, window: &RenoWindow) {
        self.restart_round(window);
    }

    fn advance(&mut self, ack: &AckSample, window: &mut RenoWindow) {
        if self.round_ends {
            self.end_round(window);
        }
        if ack.rtt_ns > 0 {
            self.round.min_rtt_ns = self.round.min_rtt_ns.min(ack.rtt_ns);
            self.round.samples += 1;
        }
        // Eq. (2): cwnd += 1/win per packet.
        let acked = window.slow_start(ack);
        self.dwnd += self.step * acked;
        window.grow(acked / window.cwnd + self.step * acked);
        self.dwnd = self.dwnd.min(window.cwnd);
    }

    fn keep(&mut self, signal: &Signal<'_>, window: &RenoWindow) -> f64 {
        self.dwnd_before = self.dwnd;
        match signal {
            Signal::Timeout(timeout) => window.half_of_flight(timeout.in_flight_bytes),
            _ => self.after_loss(window.cwnd),
        }
    }

    fn reduced(&mut self, _signal: &Signal<'_>, _before: f64, window: &mut RenoWindow) {
        self.restart_round(window);
    }

    fn timed_out(&mut self, window: &RenoWindow) {
        self.dwnd = 0.0;
        // The path may be another one.
        self.gamma = self.gamma_high;
        self.diff_reno = None;
        self.base_rtt_ns = u64::MAX;
        self.restart_round(window);
    }

    fn undo(&mut self, window: &mut RenoWindow) {
        if window.undo() {
            self.dwnd = self.dwnd.max(self.dwnd_before);
            self.restart_round(window);
        }
    }

    fn resume(&mut self, resume: &Resume, window: &mut RenoWindow) {
        if window.on_resume(resume) {
            self.dwnd = 0.0;
        }
        self.restart_round(window);
    }

    fn path_changed(&mut self, _path: &PathInfo, _window: &RenoWindow) {
        self.base_rtt_ns = u64::MAX;
    }

    fn observe(&self, window: &RenoWindow, out: &mut [f64]) {
        out.copy_from_slice(&[window.cwnd - self.dwnd, self.dwnd, self.diff, self.gamma]);
    }
}

#[cfg(test)]
#[path = "ctcp_tests.rs"]
mod tests;
