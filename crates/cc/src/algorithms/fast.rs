//! FAST TCP (Jin, Wei, Low 2004): every round trip the window moves towards the one that keeps alpha packets in the queue.
//!
//! ACKs in, a window out. The law is here; `fast_at.rs` adds the choice of alpha.

use super::fast_at::Ladder;
use crate::controller::{Controller, Field, Needs};
use crate::event::{AckSample, PathInfo, Resume};
use crate::registry::{Family, Param, Params, Spec};
use crate::reno_window::{INITIAL_SSTHRESH, INITIAL_WINDOW, NIST, RenoWindow, SLOW_START};
use crate::round::RoundCounter;
use crate::window_law::{self, Signal, WindowLaw};

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
    title: "FAST TCP: alpha packets in the queue",
    family: Family::DelayBased,
    source: "Jin, Wei and Low, FAST TCP: motivation, architecture, algorithms, performance (INFOCOM 2004)",
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
    profiles: NIST,
    fields: FIELDS,
    build,
};

fn build(params: &Params, path: &PathInfo) -> Box<dyn Controller> {
    controller(params, path, params.get("alpha"), None)
}

/// FAST beginning with `alpha`, which the `ladder` then changes.
pub(super) fn controller(
    params: &Params,
    path: &PathInfo,
    alpha: f64,
    ladder: Option<Ladder>,
) -> Box<dyn Controller> {
    let window = RenoWindow::from_params(params, path);
    let law = Fast {
        alpha,
        ladder,
        gamma: params.get("gamma"),
        base_rtt_ns: u64::MAX,
        average_rtt_ns: 0.0,
        rounds: RoundCounter::default(),
        round_ends: false,
        round_window: window.cwnd,
        round_min_ns: u64::MAX,
        samples: 0,
        target: f64::NAN,
        step: 0.0,
    };
    window_law::controller(law, window)
}

struct Fast {
    alpha: f64,
    /// How alpha follows the rate; `None` = it stays.
    ladder: Option<Ladder>,
    gamma: f64,
    base_rtt_ns: u64,
    average_rtt_ns: f64,
    rounds: RoundCounter,
    round_ends: bool,
    /// Window before the round began: what was in flight then is acknowledged in it.
    round_window: f64,
    round_min_ns: u64,
    samples: u32,
    target: f64,
    /// Growth per packet acknowledged in this round.
    step: f64,
}

impl Fast {
    fn on_rtt(&mut self, rtt_ns: u64, cwnd: f64) {
        self.base_rtt_ns = self.base_rtt_ns.min(rtt_ns);
        self.round_min_ns = self.round_min_ns.min(rtt_ns);
        self.samples += 1;
        let weight = (3.0 / cwnd).min(MAX_RTT_WEIGHT);
        if self.average_rtt_ns == 0.0 {
            self.average_rtt_ns = rtt_ns as f64;
        }
        self.average_rtt_ns += weight * (rtt_ns as f64 - self.average_rtt_ns);
    }

    fn restart_round(&mut self, window: &RenoWindow) {
        self.round_window = window.cwnd;
        self.round_min_ns = u64::MAX;
        self.samples = 0;
        self.step = 0.0;
    }

    fn end_round(&mut self, window: &mut RenoWindow) {
        let (before, min_rtt_ns, samples) = (self.round_window, self.round_min_ns, self.samples);
        let cwnd = window.cwnd;
        self.restart_round(window);
        if samples == 0 {
            return;
        }
        if let Some(ladder) = &mut self.ladder {
            self.alpha = ladder.at(cwnd / (self.average_rtt_ns * 1e-9));
        }
        if window.in_slow_start() {
            // The smallest RTT of the round: bursts pass, what stands is a queue.
            let waiting = 1.0 - self.base_rtt_ns as f64 / min_rtt_ns as f64;
            if samples >= MIN_SAMPLES && before * waiting >= self.alpha {
                window.leave_slow_start();
            }
            return;
        }
        // Eq. (3): w <- min(2 w, (1 - gamma) w + gamma (baseRTT / RTT w + alpha)), the second w one RTT old.
        let share = self.base_rtt_ns as f64 / self.average_rtt_ns;
        let next = (1.0 - self.gamma) * cwnd + self.gamma * (share * before + self.alpha);
        self.target = next.min(2.0 * cwnd);
        if self.target > cwnd {
            self.step = (self.target - cwnd) / cwnd;
        } else {
            window.lower_to(self.target);
        }
    }
}

impl WindowLaw for Fast {
    fn measure(&mut self, ack: &AckSample, _window: &RenoWindow) {
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
            self.on_rtt(ack.rtt_ns, window.cwnd);
        }
        let acked = window.slow_start(ack);
        window.grow(self.step * acked);
    }

    fn keep(&mut self, signal: &Signal<'_>, window: &RenoWindow) -> f64 {
        match signal {
            Signal::Timeout(timeout) => window.half_of_flight(timeout.in_flight_bytes),
            _ => window.cwnd / 2.0,
        }
    }

    fn reduced(&mut self, _signal: &Signal<'_>, _before: f64, window: &mut RenoWindow) {
        self.restart_round(window);
    }

    fn timed_out(&mut self, window: &RenoWindow) {
        self.restart_round(window);
    }

    fn undo(&mut self, window: &mut RenoWindow) {
        if window.undo() {
            self.restart_round(window);
        }
    }

    fn resume(&mut self, resume: &Resume, window: &mut RenoWindow) {
        window.on_resume(resume);
        self.restart_round(window);
    }

    fn path_changed(&mut self, _path: &PathInfo, window: &RenoWindow) {
        self.base_rtt_ns = u64::MAX;
        self.average_rtt_ns = 0.0;
        self.restart_round(window);
    }

    fn observe(&self, _window: &RenoWindow, out: &mut [f64]) {
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
