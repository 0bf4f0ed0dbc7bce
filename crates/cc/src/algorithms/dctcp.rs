//! DCTCP, RFC 8257 (Alizadeh et al. 2010): Reno whose reaction to marks is in proportion to how many packets carry one.
//!
//! Section and step numbers are those of the RFC. The profile "linux" has Linux's integers (`variant = "linux"`); each difference
//! is named at its line. The receiver's part, which must report every mark (§3.2), is the host's: `ce_packets` counts them.

use crate::controller::{Controller, Field, Needs};
use crate::event::{AckSample, PathInfo};
use crate::registry::{Family, Param, Params, Profile, Spec};
use crate::reno_window::{INITIAL_SSTHRESH, INITIAL_WINDOW, RenoWindow, SLOW_START, SSTHRESH};
use crate::round::RoundCounter;
use crate::window_law::{self, Signal, WindowLaw};

/// The registry entry.
pub(crate) static SPEC: Spec = Spec {
    name: "dctcp",
    title: "DCTCP: reductions in proportion to the marks",
    family: Family::MarkBased,
    source: "RFC 8257; Alizadeh et al., Data Center TCP (SIGCOMM 2010)",
    about: include_str!("about/dctcp.md"),
    needs: Needs::CE_COUNT,
    params: &[
        Param::integer(
            "g_shift",
            "1",
            4.0,
            (1.0, 10.0),
            "gain of the estimate, g = 2^-g_shift: 1/16 by default",
        ),
        Param::number(
            "initial_alpha",
            "1",
            1.0,
            (0.0, 1.0),
            "estimate at the start: 1 takes the first mark for a loss",
        ),
        Param::choice(
            "variant",
            &["rfc8257", "linux"],
            "real numbers, or Linux's integers and its pause after a reduction",
        ),
        SLOW_START,
        INITIAL_WINDOW,
        INITIAL_SSTHRESH,
    ],
    profiles: &[Profile {
        name: "linux",
        source: "Linux 6.1 tcp_dctcp: alpha in 1/1024 rounded down, whole packets, no growth in the round after a reduction",
        values: &[("variant", 1.0)],
    }],
    fields: &[
        SSTHRESH,
        Field { name: "alpha", unit: "1", doc: "estimated fraction of packets marked, alpha" },
    ],
    build,
};

fn build(params: &Params, path: &PathInfo) -> Box<dyn Controller> {
    let linux = params.get_choice("variant") == "linux";
    let (shift, alpha) = (params.get("g_shift") as u32, params.get("initial_alpha"));
    let law = Dctcp {
        alpha: if linux {
            Alpha::Whole { alpha: (alpha * MAX_ALPHA as f64) as u64, shift }
        } else {
            Alpha::Real { alpha, g: 1.0 / f64::from(1_u32 << shift) }
        },
        observed: RoundCounter::default(),
        acked: 0,
        marked: 0,
        rest_until_delivered: linux.then_some(0),
    };
    window_law::controller(law, RenoWindow::from_params(params, path).in_whole_packets(linux))
}

/// Linux's alpha of 1, DCTCP_MAX_ALPHA.
const MAX_ALPHA: u64 = 1024;

/// The estimate of the fraction of packets marked.
#[derive(Clone, Copy, Debug)]
enum Alpha {
    Real {
        alpha: f64,
        g: f64,
    },
    /// In 1/1024, as Linux holds it.
    Whole {
        alpha: u64,
        shift: u32,
    },
}

impl Alpha {
    /// §3.3 steps 5 and 6: of `acked` packets, at least one, `marked` were.
    fn update(&mut self, marked: u64, acked: u64) {
        match self {
            Self::Real { alpha, g } => {
                let m = marked as f64 / acked as f64;
                *alpha = *alpha * (1.0 - *g) + *g * m;
            }
            Self::Whole { alpha, shift } => {
                // Rounded down the decrease would end at 15/1024 for g = 1/16: what is left then goes at once.
                let decrease = *alpha >> *shift;
                *alpha -= if decrease > 0 { decrease } else { *alpha };
                *alpha = (*alpha + (marked << (10 - *shift)) / acked).min(MAX_ALPHA);
            }
        }
    }

    /// §3.3 step 9: what a mark leaves of `cwnd` packets.
    fn keep(&self, cwnd: f64) -> f64 {
        match *self {
            Self::Real { alpha, .. } => cwnd * (1.0 - alpha / 2.0),
            Self::Whole { alpha, .. } => cwnd - (cwnd as u64 * alpha / (2 * MAX_ALPHA)) as f64,
        }
    }

    fn fraction(&self) -> f64 {
        match *self {
            Self::Real { alpha, .. } => alpha,
            Self::Whole { alpha, .. } => alpha as f64 / MAX_ALPHA as f64,
        }
    }
}

struct Dctcp {
    alpha: Alpha,
    /// Observation windows, and the packets acknowledged and marked in the current one.
    observed: RoundCounter,
    acked: u64,
    marked: u64,
    /// Linux: the window rests until data sent at this total of bytes delivered is acknowledged.
    rest_until_delivered: Option<u64>,
}

impl Dctcp {
    /// §3.3 steps 1 to 8. In packets, where the RFC counts bytes: they are all of one size.
    fn observe_marks(&mut self, ack: &AckSample) {
        if self.observed.on_ack(ack) && self.acked > 0 {
            self.alpha.update(self.marked, self.acked);
            (self.acked, self.marked) = (0, 0);
        }
        self.acked += u64::from(ack.acked_packets);
        self.marked += u64::from(ack.ce_packets.min(ack.acked_packets));
    }

    /// Linux: from a reduction until it is acknowledged (TCP_CA_CWR) nothing grows.
    fn is_resting(&self, ack: &AckSample) -> bool {
        self.rest_until_delivered.is_some_and(|at| ack.prior_delivered_total_bytes < at)
    }
}

impl WindowLaw for Dctcp {
    fn measure(&mut self, ack: &AckSample, _window: &RenoWindow) {
        self.observe_marks(ack);
    }

    fn advance(&mut self, ack: &AckSample, window: &mut RenoWindow) {
        if !self.is_resting(ack) {
            window.grow_as_reno(ack);
        }
    }

    fn keep(&mut self, signal: &Signal<'_>, window: &RenoWindow) -> f64 {
        match signal {
            Signal::Mark(ack) => {
                if let Some(at) = &mut self.rest_until_delivered {
                    *at = ack.delivered_total_bytes;
                }
                self.alpha.keep(window.cwnd)
            }
            // §3.5: as any TCP, whatever alpha is.
            Signal::Loss(_) | Signal::Timeout(_) => window.fraction(0.5),
        }
    }

    fn observe(&self, window: &RenoWindow, out: &mut [f64]) {
        out.copy_from_slice(&[window.ssthresh_bytes(), self.alpha.fraction()]);
    }
}

#[cfg(test)]
#[path = "dctcp_tests.rs"]
mod tests;
