//! FAST TCP (Jin, Wei, Low 2004): every round trip the window moves towards the one that keeps alpha packets in the queue.
//!
//! ACKs in, a window out. The law is here; `fast_at.rs` adds the choice of alpha.

use super::fast_at::Ladder;
use super::reno_part::{INITIAL_SSTHRESH, INITIAL_WINDOW, RenoPart, SLOW_START, Turn};
use crate::controller::{Control, Controller, Field, Needs};
use crate::event::{Ack, AckSample, Loss, PathInfo, Resume, Timeout, Undo};
use crate::registry::{Param, Params, Profile, Spec};
use crate::round::RoundCounter;

/// Largest weight of a sample in the average RTT; 3/w is the usual one.
const MAX_RTT_WEIGHT: f64 = 0.25;
/// RTT samples a round needs before its smallest counts.
const MIN_SAMPLES: u32 = 3;

/// Parameter `gamma`.
pub(super) const GAMMA: Param =
    Param::number("gamma", "1", 0.5, (0.01, 1.0), "gamma: how far the window moves per RTT");

/// What both record.
pub(super) static FIELDS: &[Field] = &[
    Field { name: "alpha", unit: "packets", doc: "packets meant to wait in the queue, alpha" },
    Field { name: "base_rtt", unit: "ms", doc: "smallest RTT, baseRTT" },
    Field { name: "average_rtt", unit: "ms", doc: "average RTT" },
    Field { name: "target", unit: "packets", doc: "window of the equation in the last round" },
];

/// The registry entry.
pub(crate) static SPEC: Spec = Spec {
    name: "fast",
    title: "FAST TCP",
    family: crate::registry::Family::DelayBased,
    source: "Jin, Wei, Low, INFOCOM 2004",
    about: include_str!("about/fast.md"),
    needs: Needs::NONE,
    params: &[
        Param::number(
            "alpha",
            "packets",
            200.0,
            (1.0, 100_000.0),
            "alpha: packets this flow keeps in the queue",
        ),
        GAMMA,
        SLOW_START,
        INITIAL_WINDOW,
        INITIAL_SSTHRESH,
    ],
    profiles: &[
        Profile {
            name: "nist",
            source: "NIST SP 500-282 (2010): alpha 200, initial window 2, high initial threshold",
            values: &[("initial_window", 2.0)],
        },
        Profile {
            name: "nist-low-ssthresh",
            source: "NIST SP 500-282 (2010): the same with an initial threshold of 100",
            values: &[("initial_window", 2.0), ("initial_ssthresh", 100.0)],
        },
    ],
    fields: FIELDS,
    build,
};

fn build(params: &Params, path: &PathInfo) -> Box<dyn Controller> {
    Box::new(Fast::new(params, path, params.get("alpha"), None))
}

pub(super) struct Fast {
    alpha: f64,
    /// How alpha follows the rate; `None` = it stays.
    ladder: Option<Ladder>,
    gamma: f64,
    reno: RenoPart,
    base_rtt_ns: u64,
    average_rtt_ns: f64,
    rounds: RoundCounter,
    /// Window before the round began: what was in flight then is acknowledged in it.
    round_window: f64,
    round_min_ns: u64,
    samples: u32,
    target: f64,
    /// Growth per packet acknowledged in this round.
    step: f64,
}

impl Fast {
    pub(super) fn new(
        params: &Params,
        path: &PathInfo,
        alpha: f64,
        ladder: Option<Ladder>,
    ) -> Self {
        let reno = RenoPart::read(params, path);
        Self {
            alpha,
            ladder,
            gamma: params.get("gamma"),
            reno,
            base_rtt_ns: u64::MAX,
            average_rtt_ns: 0.0,
            rounds: RoundCounter::default(),
            round_window: reno.cwnd,
            round_min_ns: u64::MAX,
            samples: 0,
            target: f64::NAN,
            step: 0.0,
        }
    }

    fn on_rtt(&mut self, rtt_ns: u64) {
        self.base_rtt_ns = self.base_rtt_ns.min(rtt_ns);
        self.round_min_ns = self.round_min_ns.min(rtt_ns);
        self.samples += 1;
        let weight = (3.0 / self.reno.cwnd).min(MAX_RTT_WEIGHT);
        if self.average_rtt_ns == 0.0 {
            self.average_rtt_ns = rtt_ns as f64;
        }
        self.average_rtt_ns += weight * (rtt_ns as f64 - self.average_rtt_ns);
    }

    fn restart_round(&mut self) {
        self.round_window = self.reno.cwnd;
        self.round_min_ns = u64::MAX;
        self.samples = 0;
        self.step = 0.0;
    }

    fn end_round(&mut self) {
        let (window, min_rtt_ns, samples) = (self.round_window, self.round_min_ns, self.samples);
        self.restart_round();
        if samples == 0 {
            return;
        }
        if let Some(ladder) = &mut self.ladder {
            self.alpha = ladder.at(self.reno.cwnd / (self.average_rtt_ns * 1e-9));
        }
        if self.reno.in_slow_start() {
            // The smallest RTT of the round: bursts pass, what stands is a queue.
            let waiting = 1.0 - self.base_rtt_ns as f64 / min_rtt_ns as f64;
            if samples >= MIN_SAMPLES && window * waiting >= self.alpha {
                self.reno.leave_slow_start();
            }
            return;
        }
        let cwnd = self.reno.cwnd;
        // Eq. (3): w <- min(2 w, (1 - gamma) w + gamma (baseRTT / RTT w + alpha)), the second w one RTT old.
        let share = self.base_rtt_ns as f64 / self.average_rtt_ns;
        let next = (1.0 - self.gamma) * cwnd + self.gamma * (share * window + self.alpha);
        self.target = next.min(2.0 * cwnd);
        if self.target > cwnd {
            self.step = (self.target - cwnd) / cwnd;
        } else {
            self.reno.lower_to(self.target);
        }
    }

    fn halve(&mut self) {
        self.reno.reduce_to(self.reno.cwnd / 2.0);
        self.restart_round();
    }
}

impl Controller for Fast {
    fn on_ack(&mut self, ack: &Ack<'_>) {
        let round_ends = self.rounds.on_ack(ack);
        match self.reno.on_ack(ack) {
            Turn::Repair => return self.restart_round(),
            Turn::Mark => return self.halve(),
            Turn::Open => {}
        }
        if round_ends {
            self.end_round();
        }
        if ack.rtt_ns > 0 {
            self.on_rtt(ack.rtt_ns);
        }
        if ack.has(AckSample::CWND_LIMITED) {
            let acked = self.reno.grow_in_slow_start(ack);
            self.reno.grow(self.step * acked);
        }
    }

    fn on_loss(&mut self, loss: &Loss) {
        if self.reno.on_loss(loss) {
            self.halve();
        }
    }

    fn on_rto(&mut self, timeout: &Timeout) {
        self.reno.on_rto(timeout);
        self.restart_round();
    }

    fn on_spurious_loss(&mut self, _undo: &Undo) {
        if self.reno.undo() {
            self.restart_round();
        }
    }

    fn on_resume(&mut self, resume: &Resume) {
        self.reno.on_resume(resume);
        self.restart_round();
    }

    fn on_path_change(&mut self, path: &PathInfo) {
        self.reno.on_path_change(path);
        self.base_rtt_ns = u64::MAX;
        self.average_rtt_ns = 0.0;
        self.restart_round();
    }

    fn control(&self) -> Control {
        Control::window(self.reno.window_bytes())
    }

    fn observe(&self, out: &mut [f64]) {
        let ms = |ns: f64, known: bool| if known { ns * 1e-6 } else { f64::NAN };
        out.copy_from_slice(&[
            self.alpha,
            ms(self.base_rtt_ns as f64, self.base_rtt_ns != u64::MAX),
            ms(self.average_rtt_ns, self.average_rtt_ns > 0.0),
            self.target,
        ]);
    }
}

#[cfg(test)]
#[path = "fast_tests.rs"]
mod tests;
