//! Reno: the registry entry. The algorithm is integer C, `bpf/algorithms/reno.h`, shared with the kernel.

use crate::controller::Needs;
use crate::registry::{Family, Param, Profile, Spec};
use crate::reno_window::{INITIAL_SSTHRESH, INITIAL_WINDOW, NIST, SSTHRESH};

crate::native::algorithm!(paceline_cc_reno);

/// The registry entry. The order of the parameters is that of `struct reno_params`.
pub(crate) static SPEC: Spec = Spec {
    name: "reno",
    title: "Reno: additive increase, halving at a loss",
    family: Family::LossBased,
    source: "RFC 5681, RFC 6582, RFC 3465",
    about: include_str!("about/reno.md"),
    needs: Needs::NONE,
    params: &[
        INITIAL_WINDOW,
        INITIAL_SSTHRESH,
        Param::number(
            "ecn_beta",
            "1",
            0.5,
            (0.1, 0.99),
            "fraction kept at a mark, beta_ecn; more than at a loss with RFC 8511",
        ),
    ],
    profiles: &[
        Profile {
            name: "abe",
            source: "RFC 8511, Alternative Backoff with ECN: a mark leaves 0.8 of the window",
            values: &[("ecn_beta", 0.8)],
        },
        NIST[0],
        NIST[1],
    ],
    fields: &[SSTHRESH],
    build,
};
