//! MPC as printed in Lynn, Ghosal and Hanford 2020 (arXiv 2002.09825): r_B by the integral (6), probes at r_max and r_min, a loss
//! sends the rate to r_min. The defaults are the reading that comes nearest to its table I and to the 1-BDP column of its table V; its
//! other tables, and those of 2019, judge that.

use super::mpc_sender::build;
use super::mpc_sender::params::{
    COUNT, Capacity, Defaults, FIELDS, LossUnit, Probe, Reaction, table,
};
use crate::controller::Needs;
use crate::registry::{Family, Param, Profile, Spec};

static PARAMS: [Param; COUNT] = table(&Defaults {
    capacity: Capacity::Integral,
    probe: Probe::Steady,
    loss: Reaction::Probe,
    loss_per: LossUnit::Window,
});

/// The registry entry.
pub(crate) static SPEC: Spec = Spec {
    name: "mpc-2020",
    title: "Model predictive control, as printed in 2020",
    family: Family::RateBased,
    source: "Lynn, Ghosal and Hanford, Model predictive congestion control for TCP endpoints (arXiv 2002.09825, 2020), eqs 1-8",
    about: include_str!("about/mpc-2020.md"),
    needs: Needs::PACING.and(Needs::RATE_SAMPLE),
    params: &PARAMS,
    profiles: &[
        Profile {
            name: "gentle",
            source: "the same constants with probes of 1.25 and 0.5 r_B for 2 RTTs",
            values: &[("probe", 1.0), ("probe_rtts", 2.0)],
        },
        Profile {
            name: "simulator",
            source: "constants of the released simulator (2020): target pulses, halving on loss",
            values: &[("probe", 2.0), ("loss", 1.0), ("loss_cut", 0.5)],
        },
        Profile {
            name: "kernel",
            source: "constants of the released kernel module (2020)",
            values: &[
                ("c1", 0.98),
                ("c2", 0.01),
                ("c3", 0.01),
                ("alpha", 0.1),
                ("target", 0.95),
                ("r_min", 16e6),
                ("r_max", 1_048_576e6),
                ("start", 1.0),
            ],
        },
        Profile {
            name: "stable",
            source: "Paceline: horizon of 2 RTTs, windowed capacity, short probes",
            values: &[
                ("c1", 0.4),
                ("c2", 0.2),
                ("c3", 0.4),
                ("alpha_per", 1.0),
                ("target", 0.25),
                ("tau_d", 30.0),
                ("horizon", 1.0),
                ("capacity", 2.0),
                ("probe", 1.0),
                ("probe_rtts", 2.0),
                ("after_probe", 1.0),
                ("loss", 1.0),
            ],
        },
    ],
    fields: FIELDS,
    build,
};
