//! Latte: the registry entry. The algorithm is integer C, `bpf/algorithms/latte.h`, shared with the kernel.

use super::path_model;
use crate::controller::{Field, Needs};
use crate::registry::{Family, Param, Profile, Spec};

crate::native::algorithm!(paceline_cc_latte);

/// The registry entry. The order of the parameters is that of `struct latte_params`.
pub(crate) static SPEC: Spec = Spec {
    name: "latte",
    title: "Latte: bandwidth-delay product scaled by min RTT / RTT",
    family: Family::Contest,
    source: "CS 244 congestion-control contest (Kumar 2017), section 4, and its released code",
    about: include_str!("about/latte.md"),
    needs: Needs::PACING,
    params: &[
        Param::choice(
            "lambda_mode",
            &["dynamic", "fixed"],
            "dynamic: lambda = 1.6 + 4/w, 2 for w <= 10; fixed: the parameter lambda",
        ),
        Param::number("lambda", "1", 1.7, (0.1, 100.0), "window gain lambda, used when fixed"),
        path_model::GAMMA,
        Param::choice(
            "pacing",
            &["smoothed", "bandwidth"],
            "rate of the gap; smoothed: the mean S, or B where S < 0.8 B; bandwidth: always B",
        ),
        Param::flag(
            "gradient_cut",
            false,
            "cut the window by the smoothed RTT gradient g when g > 0.1",
        ),
        path_model::BANDWIDTH_WINDOW,
        Param::number(
            "min_rtt_window",
            "min RTTs",
            100.0,
            (1.0, 10_000.0),
            "the minimum RTT is over this many of it, W_R (before the first ACK: 10 s)",
        ),
        path_model::TIMEOUT,
    ],
    profiles: &[
        Profile {
            name: "report",
            source: "Kumar 2017, section 4.2: no gradient cut, the gap is gamma / B",
            values: &[("gradient_cut", 0.0), ("pacing", 1.0)],
        },
        Profile {
            name: "report-fixed",
            source: "Kumar 2017, section 4.2.1, power score 42.56: lambda 1.7",
            values: &[
                ("lambda_mode", 1.0),
                ("lambda", 1.7),
                ("gradient_cut", 0.0),
                ("pacing", 1.0),
            ],
        },
        Profile {
            name: "released",
            source: "the contest entry's public code, which still has the gradient cut",
            values: &[("gradient_cut", 1.0)],
        },
        Profile {
            name: "fixed",
            source: "the public code with lambda 1.7 instead of the dynamic one",
            values: &[("lambda_mode", 1.0), ("lambda", 1.7), ("gradient_cut", 1.0)],
        },
    ],
    fields: &[
        Field {
            name: "bandwidth",
            unit: "packets/s",
            doc: "largest delivery rate of its window, BW",
        },
        Field { name: "min_rtt_us", unit: "us", doc: "smallest RTT of its window" },
        Field {
            name: "gradient_permille",
            unit: "1/1000",
            doc: "smoothed RTT gradient g; 0 while it falls",
        },
        Field { name: "lambda_permille", unit: "1/1000", doc: "window gain of the last ACK" },
    ],
    build,
};
