//! MPC as printed in Lynn, Hanford and Ghosal 2019 (Buffer Sizing Workshop): r_B by gradient descent (6)-(8), probes by pulses of
//! the target, every lost packet a cut of the rate.
//!
//! What it leaves open is as in `mpc-2020`, where it was chosen on table I and the 1-BDP column of table V of 2020; pulses are those of
//! the simulator that was released with it. Nothing is fitted to its own table 1, to which the profile `gentle` comes nearer.

use super::mpc_sender::build;
use super::mpc_sender::params::{
    COUNT, Capacity, Defaults, FIELDS, LossUnit, Probe, Reaction, table,
};
use crate::controller::Needs;
use crate::registry::{Family, Param, Profile, Spec};

static PARAMS: [Param; COUNT] = table(&Defaults {
    capacity: Capacity::Gradient,
    probe: Probe::Pulse,
    loss: Reaction::Cut,
    loss_per: LossUnit::Packet,
});

/// The registry entry.
pub(crate) static SPEC: Spec = Spec {
    name: "mpc-2019",
    title: "Model predictive control, as printed in 2019",
    family: Family::RateBased,
    source: "Lynn, Hanford and Ghosal, Impact of buffer size on a congestion control algorithm based on model predictive control (Buffer Sizing Workshop 2019), eqs 1-10",
    about: include_str!("about/mpc-2019.md"),
    needs: Needs::PACING.and(Needs::RATE_SAMPLE),
    params: &PARAMS,
    profiles: &[
        Profile {
            name: "integral",
            source: "r_B by (6) of the 2020 paper: from 4 BDP on nearer to table 1 of 2019 than the gradient printed there",
            values: &[("capacity", 0.0)],
        },
        Profile {
            name: "gentle",
            source: "the same with probes of 1.25 and 0.5 r_B for 2 RTTs in place of the pulses",
            values: &[("capacity", 0.0), ("probe", 1.0), ("probe_rtts", 2.0)],
        },
        Profile {
            name: "simulator",
            source: "constants of the released simulator (2020): halving on loss",
            values: &[("loss_cut", 0.5)],
        },
    ],
    fields: FIELDS,
    build,
};

#[cfg(test)]
#[path = "mpc_2019_tests.rs"]
mod tests;
