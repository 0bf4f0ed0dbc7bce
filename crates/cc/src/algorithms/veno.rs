//! Veno (Fu and Liew 2003): Reno that asks Vegas's question, how many packets are queued, to tell a random loss from a congested
//! path.
//!
//! The profile "linux" counts as Linux does (`variant = "linux"`); each difference is named at its line.

use crate::controller::{Controller, Field, Needs};
use crate::event::{AckSample, PathInfo, Resume};
use crate::registry::{Family, Param, Params, Profile, Spec};
use crate::reno_window::{INITIAL_SSTHRESH, INITIAL_WINDOW, RenoWindow, SLOW_START, SSTHRESH};
use crate::round_rtt::RoundRtt;
use crate::window_law::{self, Signal, WindowLaw};

/// The registry entry.
pub(crate) static SPEC: Spec = Spec {
    name: "veno",
    title: "Veno: Reno that tells random losses from congestion",
    family: Family::DelayBased,
    source: "Fu and Liew, TCP Veno: TCP enhancement for transmission over wireless access networks (IEEE JSAC 21:2, 2003)",
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
    fields: &[SSTHRESH, Field { name: "queued", unit: "packets", doc: "own packets queued, N" }],
    build,
};

/// Samples before N counts.
const MIN_SAMPLES: u32 = 3;

fn build(params: &Params, path: &PathInfo) -> Box<dyn Controller> {
    let linux = params.get_choice("variant") == "linux";
    let law = Veno {
        beta: params.get("beta"),
        random_beta: params.get("random_beta"),
        linux,
        queued: 0.0,
        samples: 0,
        rest: false,
        rtts: RoundRtt::default(),
    };
    window_law::controller(law, RenoWindow::from_params(params, path).in_whole_packets(linux))
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
}

impl Veno {
    fn is_congested(&self) -> bool {
        self.queued >= self.beta
    }

    /// §III-A: N = (Expected - Actual) BaseRTT, from the smallest RTT of a round, in Linux from the RTT of each ACK, in half
    /// packets.
    fn reckon(&mut self, ack: &AckSample, cwnd: f64) {
        let Some(base_ns) = self.rtts.base_ns() else { return };
        let queued = |rtt_ns: u64| cwnd * (1.0 - base_ns as f64 / rtt_ns as f64);
        if self.linux {
            self.samples = self.samples.saturating_add(u32::from(ack.rtt_ns > 0));
            if self.samples >= MIN_SAMPLES && ack.rtt_ns > 0 {
                self.queued = libm::ceil(2.0 * queued(ack.rtt_ns)) / 2.0;
            }
        } else if let Some(round) = self.rtts.finish(ack)
            && round.samples >= MIN_SAMPLES
        {
            self.queued = queued(round.min_ns);
        }
    }

    /// §III-B: one packet per window acknowledged, or per two when the path is congested.
    fn avoid(&mut self, acked: f64, window: &mut RenoWindow) {
        let cwnd = window.rounded(window.cwnd);
        if !self.is_congested() {
            window.avoid(acked, cwnd);
        } else if !self.linux {
            window.avoid(acked, 2.0 * cwnd);
        } else if window.is_window_acked(acked) {
            if !self.rest {
                window.grow(1.0);
            }
            self.rest = !self.rest;
        }
    }
}

impl WindowLaw for Veno {
    fn measure(&mut self, ack: &AckSample, _window: &RenoWindow) {
        self.rtts.note(ack);
    }

    fn repairing(&mut self, _window: &RenoWindow) {
        self.rtts.discard();
    }

    fn advance(&mut self, ack: &AckSample, window: &mut RenoWindow) {
        self.reckon(ack, window.cwnd);
        let acked = window.slow_start(ack);
        if acked > 0.0 {
            self.avoid(acked, window);
        }
    }

    /// §III-C: a loss while the path is not congested is taken for a random one.
    fn keep(&mut self, signal: &Signal<'_>, window: &RenoWindow) -> f64 {
        // Linux asks for the state at a timeout too; the paper takes one for congestion.
        let timeout = matches!(signal, Signal::Timeout(_)) && !self.linux;
        window.fraction(if timeout || self.is_congested() { 0.5 } else { self.random_beta })
    }

    fn timed_out(&mut self, _window: &RenoWindow) {
        self.rtts.discard();
    }

    fn resume(&mut self, resume: &Resume, window: &mut RenoWindow) {
        window.on_resume(resume);
        self.rtts.discard();
    }

    fn path_changed(&mut self, _path: &PathInfo, _window: &RenoWindow) {
        self.rtts.forget_base();
    }

    fn observe(&self, window: &RenoWindow, out: &mut [f64]) {
        out.copy_from_slice(&[window.ssthresh_bytes(), self.queued]);
    }
}

#[cfg(test)]
#[path = "veno_tests.rs"]
mod tests;
