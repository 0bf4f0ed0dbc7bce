//! CDG's entry in the registry.

use crate::controller::{Field, Needs};
use crate::registry::{Family, Param, Profile, Spec};
use crate::reno_window::{INITIAL_SSTHRESH, INITIAL_WINDOW, SLOW_START, SSTHRESH};

/// The registry entry.
pub(crate) static SPEC: Spec = Spec {
    name: "cdg",
    title: "CDG: random backoff by the gradient of the RTT",
    family: Family::DelayBased,
    source: "Hayes and Armitage, Revisiting TCP congestion control using delay gradients (IFIP Networking 2011)",
    about: include_str!("../about/cdg.md"),
    needs: Needs::NONE,
    params: &[
        Param::duration(
            "scale",
            0.003,
            (0.0001, 1.0),
            "gradient per round at which a backoff has probability 1 - 1/e, G",
        ),
        Param::integer(
            "smoothing",
            "rounds",
            8.0,
            (1.0, 256.0),
            "rounds over which the gradient is averaged, a",
        ),
        Param::number(
            "beta_delay",
            "1",
            0.7,
            (0.1, 0.99),
            "fraction of the window kept at a backoff, beta",
        ),
        Param::number(
            "beta_loss",
            "1",
            0.5,
            (0.1, 0.99),
            "fraction of the window kept at a loss, beta_loss",
        ),
        Param::integer(
            "ineffectual",
            "backoffs",
            5.0,
            (0.0, 1000.0),
            "backoffs without effect after which some are left out, b; 0 = none ever",
        ),
        Param::flag("shadow", true, "a loss leaves at least half of the shadow window"),
        Param::flag("loss_tolerance", true, "a loss costs nothing unless the queue seems full"),
        Param::choice(
            "variant",
            &["paper", "linux"],
            "real numbers and the authors' rules, or Linux's",
        ),
        SLOW_START,
        INITIAL_WINDOW,
        INITIAL_SSTHRESH,
    ],
    profiles: &[Profile {
        name: "linux",
        source: "Linux 6.1 tcp_cdg: backoff factor 42, beta 724/1024, hybrid slow start, no loss tolerance",
        values: &[
            ("variant", 1.0),
            // 1000 / (42 * 8) ms.
            ("scale", 1.0 / 336.0),
            ("beta_delay", 724.0 / 1024.0),
            ("loss_tolerance", 0.0),
        ],
    }],
    fields: &[
        SSTHRESH,
        Field {
            name: "gradient",
            unit: "ms",
            doc: "gradient of the RTT last judged, per round, g",
        },
        Field { name: "backoffs", unit: "1", doc: "backoffs since one had an effect" },
        Field { name: "shadow", unit: "packets", doc: "shadow window, s" },
    ],
    build: super::build,
};
