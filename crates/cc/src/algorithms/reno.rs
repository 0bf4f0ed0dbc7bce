//! Reno: the registry entry. The algorithm is integer C, `bpf/algorithms/reno.h`, shared with the kernel.

use crate::controller::{Field, Needs};
use crate::registry::{Param, Profile, Spec};

crate::native::algorithm!(paceline_cc_reno);

/// The registry entry. The order of the parameters is that of `struct reno_params`.
pub(crate) static SPEC: Spec = Spec {
    name: "reno",
    title: "Reno: additive increase, halving on loss",
    source: "RFC 5681, RFC 6582, RFC 3465",
    about: include_str!("about/reno.md"),
    needs: Needs::NONE,
    params: &[
        Param::integer(
            "initial_window",
            "packets",
            0.0,
            (0.0, 1_000_000.0),
            "initial window IW; 0 = as the host starts (RFC 6928: 10)",
        ),
        Param::integer(
            "initial_ssthresh",
            "packets",
            1_000_000_000.0,
            (2.0, 1_000_000_000.0),
            "initial slow-start threshold; the default is no limit",
        ),
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
        Profile {
            name: "nist",
            source: "NIST SP 500-282 (2010): initial window 2, high initial threshold",
            values: &[("initial_window", 2.0)],
        },
        Profile {
            name: "nist-low-ssthresh",
            source: "NIST SP 500-282 (2010): initial window 2, initial threshold 100",
            values: &[("initial_window", 2.0), ("initial_ssthresh", 100.0)],
        },
    ],
    fields: &[Field { name: "ssthresh_bytes", unit: "bytes", doc: "slow-start threshold" }],
    build,
};
