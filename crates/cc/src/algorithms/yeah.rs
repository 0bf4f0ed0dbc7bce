//! YeAH-TCP (Baiocchi, Castellani and Vacirca 2007): "Yet Another Highspeed". Scalable while the queue is short, Reno while it is
//! not, and down by what is queued before anything is lost.
//!
//! Once per round trip, from the smallest RTT of that round. The profile "linux" counts in whole packets (`variant = "linux"`).

use crate::controller::{Controller, Field, Needs};
use crate::event::{AckSample, PathInfo, Resume};
use crate::registry::{Family, Param, Params, Profile, Spec};
use crate::reno_window::{INITIAL_SSTHRESH, INITIAL_WINDOW, RenoWindow, SLOW_START, SSTHRESH};
use crate::round_rtt::RoundRtt;
use crate::window_law::{self, Signal, WindowLaw};

/// The registry entry.
pub(crate) static SPEC: Spec = Spec {
    name: "yeah",
    title: "YeAH: Scalable while the queue is short, else Reno",
    family: Family::DelayBased,
    source: "Baiocchi, Castellani and Vacirca, YeAH-TCP: yet another highspeed TCP (PFLDnet 2007)",
    about: include_str!("about/yeah.md"),
    needs: Needs::NONE,
    params: &[
        Param::number(
            "q_max",
            "packets",
            80.0,
            (1.0, 100_000.0),
            "queue from which on the window is cut, Q_max (alpha)",
        ),
        Param::number(
            "gamma",
            "1",
            1.0,
            (0.1, 100.0),
            "the queue is divided by this in a cut, gamma",
        ),
        Param::number(
            "epsilon",
            "1",
            2.0,
            (1.1, 100.0),
            "a cut takes at most 1/epsilon of the window",
        ),
        Param::number(
            "phi",
            "1",
            8.0,
            (0.1, 1000.0),
            "fast while the queueing delay is below baseRTT/phi",
        ),
        Param::number(
            "delta",
            "1",
            8.0,
            (2.0, 100.0),
            "a loss takes at least 1/delta of the window",
        ),
        Param::integer(
            "rho",
            "rounds",
            16.0,
            (0.0, 10_000.0),
            "slow rounds from which on a loss means competition, rho",
        ),
        Param::integer(
            "zeta",
            "rounds",
            50.0,
            (0.0, 10_000.0),
            "fast rounds after which no competition is assumed, zeta",
        ),
        Param::number(
            "scalable",
            "packets",
            100.0,
            (1.0, 10_000.0),
            "fast: packets acknowledged per packet of growth",
        ),
        Param::choice("variant", &["paper", "linux"], "real numbers or Linux's whole packets"),
        SLOW_START,
        INITIAL_WINDOW,
        INITIAL_SSTHRESH,
    ],
    profiles: &[Profile {
        name: "linux",
        source: "Linux 6.1 tcp_yeah: whole packets",
        values: &[("variant", 1.0)],
    }],
    fields: &[
        SSTHRESH,
        Field { name: "queue", unit: "packets", doc: "own packets queued in the last round, Q" },
        Field { name: "slow_rounds", unit: "rounds", doc: "rounds in a row in slow mode" },
        Field { name: "reno_count", unit: "packets", doc: "window Reno is thought to have" },
    ],
    build,
};

/// A round with fewer samples may hold nothing but a delayed ACK.
const MIN_SAMPLES: u32 = 3;
/// Smallest estimate of the window of a competing Reno, packets.
const MIN_RENO: f64 = 2.0;

fn build(params: &Params, path: &PathInfo) -> Box<dyn Controller> {
    let law = Yeah {
        q_max: params.get("q_max"),
        gamma: params.get("gamma"),
        epsilon: params.get("epsilon"),
        phi: params.get("phi"),
        delta: params.get("delta"),
        rho: params.get("rho") as u32,
        zeta: params.get("zeta") as u32,
        scalable: params.get("scalable"),
        queue: 0.0,
        slow_rounds: 0,
        fast_rounds: 0,
        reno_count: MIN_RENO,
        rtts: RoundRtt::default(),
    };
    let linux = params.get_choice("variant") == "linux";
    window_law::controller(law, RenoWindow::from_params(params, path).in_whole_packets(linux))
}

struct Yeah {
    q_max: f64,
    gamma: f64,
    epsilon: f64,
    phi: f64,
    delta: f64,
    rho: u32,
    zeta: u32,
    scalable: f64,
    /// Q, packets.
    queue: f64,
    /// Rounds in slow mode in a row; 0 in fast mode.
    slow_rounds: u32,
    /// Rounds in fast mode since a loss or since `reno_count` was last reset.
    fast_rounds: u32,
    reno_count: f64,
    rtts: RoundRtt,
}

impl Yeah {
    /// §2: fast or slow mode for the next round, from the smallest RTT of this one.
    fn decide(&mut self, rtt_ns: u64, window: &mut RenoWindow) {
        let Some(base_ns) = self.rtts.base_ns() else { return };
        let (rtt, base) = (rtt_ns as f64, base_ns as f64);
        // Eq. (1): the queueing delay times the rate, cwnd / RTT.
        self.queue = window.rounded(window.cwnd * (rtt - base) / rtt);
        let long_queue = self.queue > self.q_max;
        // Eq. (2): L = RTT_queue / baseRTT against 1/phi.
        if !long_queue && (rtt - base) * self.phi <= base {
            self.slow_rounds = 0;
            self.fast_rounds += 1;
            if self.fast_rounds > self.zeta {
                (self.reno_count, self.fast_rounds) = (MIN_RENO, 0);
            }
            return;
        }
        if long_queue && window.cwnd > self.reno_count {
            // Precautionary decongestion, never below what a competing Reno would have.
            let most = window.rounded(window.cwnd / self.epsilon);
            let cut = window.rounded(self.queue / self.gamma).min(most);
            window.set((window.cwnd - cut).max(self.reno_count));
        }
        self.reno_count = if self.reno_count <= MIN_RENO {
            window.fraction(0.5).max(MIN_RENO)
        } else {
            self.reno_count + 1.0
        };
        self.slow_rounds = self.slow_rounds.saturating_add(1);
    }

    /// Nothing was in flight, or is taken to have been: the path is measured anew, as in Linux.
    fn restart(&mut self) {
        self.rtts.forget_base();
        self.rtts.discard();
    }
}

impl WindowLaw for Yeah {
    fn measure(&mut self, ack: &AckSample, _window: &RenoWindow) {
        self.rtts.note(ack);
    }

    fn repairing(&mut self, _window: &RenoWindow) {
        self.rtts.discard();
    }

    fn advance(&mut self, ack: &AckSample, window: &mut RenoWindow) {
        if !RenoWindow::may_grow(ack) {
            return;
        }
        let acked = window.slow_start(ack);
        let reno = window.rounded(window.cwnd);
        window.avoid(acked, if self.slow_rounds == 0 { reno.min(self.scalable) } else { reno });
        if let Some(round) = self.rtts.finish(ack)
            && round.samples >= MIN_SAMPLES
        {
            self.decide(round.min_ns, window);
        }
    }

    /// §2, the window after a loss; the estimate of Reno's halves.
    fn keep(&mut self, _signal: &Signal<'_>, window: &RenoWindow) -> f64 {
        let half = window.fraction(0.5).max(MIN_RENO);
        let removed = if self.slow_rounds < self.rho {
            // No competition: what is queued, so that the link stays full.
            self.queue.min(half).max(window.rounded(window.cwnd / self.delta))
        } else {
            half
        };
        self.fast_rounds = 0;
        self.reno_count = window.rounded(self.reno_count / 2.0).max(MIN_RENO);
        window.cwnd - removed
    }

    fn reduced(&mut self, _signal: &Signal<'_>, _before: f64, _window: &mut RenoWindow) {
        self.rtts.discard();
    }

    fn timed_out(&mut self, _window: &RenoWindow) {
        self.restart();
    }

    fn undo(&mut self, window: &mut RenoWindow) {
        window.undo();
        self.rtts.discard();
    }

    fn resume(&mut self, resume: &Resume, window: &mut RenoWindow) {
        window.on_resume(resume);
        self.restart();
    }

    fn path_changed(&mut self, _path: &PathInfo, _window: &RenoWindow) {
        self.rtts.forget_base();
    }

    fn observe(&self, window: &RenoWindow, out: &mut [f64]) {
        out.copy_from_slice(&[
            window.ssthresh_bytes(),
            self.queue,
            f64::from(self.slow_rounds),
            self.reno_count,
        ]);
    }
}

#[cfg(test)]
#[path = "yeah_tests.rs"]
mod tests;
