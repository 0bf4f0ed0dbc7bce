//! Compound TCP (Tan, Song, Zhang, Sridharan 2006; draft-sridharan-tcpm-ctcp-02): Reno's window plus a window that grows fast
//! while the RTT shows no queue and gives way when it does.
//!
//! ACKs in, the sum of both windows out. Equation numbers are the paper's.

use super::reno_part::{INITIAL_SSTHRESH, INITIAL_WINDOW, RenoPart, SLOW_START, Turn};
use crate::controller::{Control, Controller, Field, Needs};
use crate::event::{Ack, AckSample, Loss, PathInfo, Resume, Timeout, Undo};
use crate::registry::{Param, Params, Profile, Spec};
use crate::round::RoundCounter;

/// RTT samples a round needs before its smallest counts: fewer may all be of delayed ACKs.
const MIN_SAMPLES: u32 = 3;
/// The backlog that gamma aims at: three quarters of what Reno alone keeps at a loss.
const GAMMA_SHARE: f64 = 0.75;
/// Smallest gamma that tuning comes to, packets; the largest is the one it begins with.
const GAMMA_LOW: f64 = 5.0;

/// The registry entry.
pub(crate) static SPEC: Spec = Spec {
    name: "ctcp",
    title: "Compound TCP",
    family: crate::registry::Family::DelayBased,
    source: "Tan, Song, Zhang, Sridharan, INFOCOM 2006; draft-sridharan-tcpm-ctcp-02",
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
    let reno = RenoPart::read(params, path);
    Box::new(Ctcp {
        alpha: params.get("alpha"),
        k: params.get("k"),
        beta: params.get("beta"),
        zeta: params.get("zeta"),
        lambda: if params.get_bool("gamma_tuning") { params.get("lambda") } else { 0.0 },
        gamma_high: gamma,
        activation: params.get("activation"),
        compound: reno,
        dwnd: 0.0,
        dwnd_before: 0.0,
        gamma,
        step: 0.0,
        base_rtt_ns: u64::MAX,
        round: Round::starting(reno.cwnd, 0.0),
        rounds: RoundCounter::default(),
        diff: f64::NAN,
        diff_reno: None,
    })
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

struct Ctcp {
    alpha: f64,
    k: f64,
    beta: f64,
    zeta: f64,
    /// 0 = gamma stays.
    lambda: f64,
    gamma_high: f64,
    activation: f64,
    /// Its window is win = cwnd + dwnd.
    compound: RenoPart,
    dwnd: f64,
    dwnd_before: f64,
    gamma: f64,
    /// Growth of dwnd per packet acknowledged in this round.
    step: f64,
    base_rtt_ns: u64,
    round: Round,
    rounds: RoundCounter,
    diff: f64,
    /// What Reno's part had in the queue in the last round; taken by the loss that it tunes gamma for.
    diff_reno: Option<f64>,
}

impl Ctcp {
    fn restart_round(&mut self) {
        self.round = Round::starting(self.compound.cwnd, self.dwnd);
        self.step = 0.0;
    }

    /// Eqs. (4)-(5): once per RTT. The growth is spread over the next round's ACKs.
    fn end_round(&mut self) {
        let Round { window, dwnd, min_rtt_ns, samples } = self.round;
        self.restart_round();
        if samples < MIN_SAMPLES || self.compound.in_slow_start() {
            return;
        }
        // diff = (expected - actual) baseRTT: the packets of the last window that wait.
        let waiting = 1.0 - self.base_rtt_ns as f64 / min_rtt_ns as f64;
        let diff = window * waiting;
        self.diff = diff;
        self.diff_reno = Some((window - dwnd) * waiting);
        if diff >= self.gamma {
            let given_up = (self.zeta * diff).min(self.dwnd);
            self.dwnd -= given_up;
            self.compound.lower_to(self.compound.cwnd - given_up);
        } else if window >= self.activation {
            let growth = (self.alpha * libm::pow(window, self.k) - 1.0).max(0.0);
            self.step = growth / self.compound.cwnd;
        }
    }

    /// Eq. (5), third case, and the tuning of gamma.
    fn reduce(&mut self) {
        if let Some(diff_reno) = self.diff_reno.take() {
            let sample = GAMMA_SHARE * diff_reno;
            self.gamma += self.lambda * (sample - self.gamma);
            self.gamma = self.gamma.max(GAMMA_LOW).min(self.gamma_high);
        }
        self.dwnd_before = self.dwnd;
        let window = self.compound.cwnd;
        let reno = (window - self.dwnd) / 2.0;
        let kept = (window * (1.0 - self.beta)).max(reno);
        self.compound.reduce_to(kept);
        // Below the activation window there is no delay-based part; the sum is what the law says all the same.
        self.dwnd = if kept >= self.activation { kept - reno } else { 0.0 };
        self.restart_round();
    }
}

impl Controller for Ctcp {
    fn on_ack(&mut self, ack: &Ack<'_>) {
        if ack.rtt_ns > 0 {
            self.base_rtt_ns = self.base_rtt_ns.min(ack.rtt_ns);
        }
        let round_ends = self.rounds.on_ack(ack);
        match self.compound.on_ack(ack) {
            Turn::Repair => return self.restart_round(),
            Turn::Mark => return self.reduce(),
            Turn::Open => {}
        }
        if round_ends {
            self.end_round();
        }
        if ack.rtt_ns > 0 {
            self.round.min_rtt_ns = self.round.min_rtt_ns.min(ack.rtt_ns);
            self.round.samples += 1;
        }
        if ack.has(AckSample::CWND_LIMITED) {
            // Eq. (2): cwnd += 1/win per packet.
            let acked = self.compound.grow_in_slow_start(ack);
            self.dwnd += self.step * acked;
            self.compound.grow(acked / self.compound.cwnd + self.step * acked);
            self.dwnd = self.dwnd.min(self.compound.cwnd);
        }
    }

    fn on_loss(&mut self, loss: &Loss) {
        if self.compound.on_loss(loss) {
            self.reduce();
        }
    }

    fn on_rto(&mut self, timeout: &Timeout) {
        self.dwnd_before = self.dwnd;
        self.compound.on_rto(timeout);
        self.dwnd = 0.0;
        // The path may be another one.
        self.gamma = self.gamma_high;
        self.diff_reno = None;
        self.base_rtt_ns = u64::MAX;
        self.restart_round();
    }

    fn on_spurious_loss(&mut self, _undo: &Undo) {
        if self.compound.undo() {
            self.dwnd = self.dwnd.max(self.dwnd_before);
            self.restart_round();
        }
    }

    fn on_resume(&mut self, resume: &Resume) {
        if self.compound.on_resume(resume) {
            self.dwnd = 0.0;
        }
        self.restart_round();
    }

    fn on_path_change(&mut self, path: &PathInfo) {
        self.compound.on_path_change(path);
        self.base_rtt_ns = u64::MAX;
    }

    fn control(&self) -> Control {
        Control::window(self.compound.window_bytes())
    }

    fn observe(&self, out: &mut [f64]) {
        out.copy_from_slice(&[self.compound.cwnd - self.dwnd, self.dwnd, self.diff, self.gamma]);
    }
}

#[cfg(test)]
#[path = "ctcp_tests.rs"]
mod tests;
