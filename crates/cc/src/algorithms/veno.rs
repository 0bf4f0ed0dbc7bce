//! Veno (Fu and Liew 2003): Reno that asks Vegas's question, how many packets are queued, to tell a random loss from a congested
//! path.
//!
//! The profile "linux" counts as Linux does (`variant = "linux"`); each difference is named at its line.

use super::reno_window::{INITIAL_SSTHRESH, INITIAL_WINDOW, RenoWindow, SLOW_START};
use super::{MAX_WINDOW_PACKETS, clamp};
use crate::controller::{Control, Controller, Field, Needs};
use crate::event::{Ack, AckSample, Loss, PathInfo, Resume, Timeout, Undo};
use crate::registry::{Param, Params, Profile, Spec};
use crate::round_rtt::RoundRtt;

/// The registry entry.
pub(crate) static SPEC: Spec = Spec {
    name: "veno",
    title: "Veno: Reno that tells random losses from congestion",
    family: crate::registry::Family::DelayBased,
    source: "Fu and Liew 2003 (IEEE JSAC 21:2)",
    about: include_str!("about/veno.md"),
    needs: Needs::NONE,
    params: &[
        Param::number(
            "beta",
            "packets",
            3.0,
            (0.0, 10_000.0),
            "the path is congested when as many are queued, beta",
        ),
        Param::number(
            "random_beta",
            "1",
            0.8,
            (0.1, 0.99),
            "fraction of the window kept at a loss when it is not",
        ),
        Param::choice("variant", &["paper", "linux"], "real numbers or Linux's whole packets"),
        SLOW_START,
        INITIAL_WINDOW,
        INITIAL_SSTHRESH,
    ],
    profiles: &[Profile {
        name: "linux",
        source: "Linux 6.1 tcp_veno: whole packets, N from every ACK in half packets",
        values: &[("variant", 1.0)],
    }],
    fields: &[
        Field { name: "ssthresh_bytes", unit: "bytes", doc: "slow-start threshold" },
        Field { name: "queued", unit: "packets", doc: "own packets queued, N" },
    ],
    build,
};

/// Samples before N counts.
const MIN_SAMPLES: u32 = 3;

fn build(params: &Params, path: &PathInfo) -> Box<dyn Controller> {
    let linux = params.get_choice("variant") == "linux";
    let window = RenoWindow::new(params, path, linux);
    Box::new(Veno {
        beta: params.get("beta"),
        random_beta: params.get("random_beta"),
        linux,
        queued: 0.0,
        samples: 0,
        rest: false,
        rtts: RoundRtt::default(),
        window: window.with_slow_start(params.get_choice("slow_start")),
    })
}

struct Veno {
    beta: f64,
    random_beta: f64,
    linux: bool,
    /// N, packets.
    queued: f64,
    /// Linux: RTTs seen on the connection.
    samples: u32,
    /// Linux: whether the next full window of ACKs in the congestive state grows nothing.
    rest: bool,
    rtts: RoundRtt,
    window: RenoWindow,
}

impl Veno {
    fn is_congested(&self) -> bool {
        self.queued >= self.beta
    }

    /// §III-A: N = (Expected - Actual) BaseRTT, from the smallest RTT of a round, in Linux from the RTT of each ACK, in half
    /// packets.
    fn reckon(&mut self, ack: &AckSample) {
        let Some(base_ns) = self.rtts.base_ns() else { return };
        let queued = |cwnd: f64, rtt_ns: u64| cwnd * (1.0 - base_ns as f64 / rtt_ns as f64);
        let cwnd = self.window.cwnd;
        if self.linux {
            self.samples = self.samples.saturating_add(u32::from(ack.rtt_ns > 0));
            if self.samples >= MIN_SAMPLES && ack.rtt_ns > 0 {
                self.queued = libm::ceil(2.0 * queued(cwnd, ack.rtt_ns)) / 2.0;
            }
        } else if let Some(round) = self.rtts.finish(ack)
            && round.samples >= MIN_SAMPLES
        {
            self.queued = queued(cwnd, round.min_ns);
        }
    }

    /// §III-B: one packet per window acknowledged, or per two when the path is congested.
    fn avoid(&mut self, acked: f64) {
        let cwnd = self.window.rounded(self.window.cwnd);
        if !self.is_congested() {
            self.window.avoid(acked, cwnd);
        } else if !self.linux {
            self.window.avoid(acked, 2.0 * cwnd);
        } else if self.window.is_window_acked(acked) {
            if !self.rest {
                self.window.cwnd = clamp(self.window.cwnd + 1.0, MAX_WINDOW_PACKETS);
            }
            self.rest = !self.rest;
        }
    }

    /// §III-C: a loss while the path is not congested is taken for a random one.
    fn reduced(&self) -> f64 {
        self.window.fraction(if self.is_congested() { 0.5 } else { self.random_beta })
    }
}

impl Controller for Veno {
    fn on_ack(&mut self, ack: &Ack<'_>) {
        self.rtts.note(ack);
        if self.window.is_repairing(ack) {
            self.rtts.discard();
            return;
        }
        if self.window.is_marked(ack) {
            self.window.reduce(self.reduced(), ack.now_ns);
            return;
        }
        self.reckon(ack);
        if ack.has(AckSample::CWND_LIMITED) {
            let acked = self.window.slow_start(ack);
            if acked > 0.0 {
                self.avoid(acked);
            }
        }
    }

    fn on_loss(&mut self, loss: &Loss) {
        if loss.starts_episode() {
            self.window.reduce_for_loss(self.reduced(), loss);
        }
    }

    fn on_rto(&mut self, timeout: &Timeout) {
        // Linux asks for the state here too; the paper takes a timeout for congestion.
        let reduced = if self.linux { self.reduced() } else { self.window.fraction(0.5) };
        self.window.collapse(reduced, timeout);
        self.rtts.discard();
    }

    fn on_spurious_loss(&mut self, _undo: &Undo) {
        self.window.undo();
    }

    fn on_resume(&mut self, _resume: &Resume) {
        self.rtts.discard();
    }

    fn on_path_change(&mut self, path: &PathInfo) {
        self.window.on_path_change(path);
        self.rtts.forget_base();
    }

    fn control(&self) -> Control {
        self.window.control()
    }

    fn observe(&self, out: &mut [f64]) {
        out.copy_from_slice(&[self.window.ssthresh_bytes(), self.queued]);
    }
}

#[cfg(test)]
#[path = "veno_tests.rs"]
mod tests;
