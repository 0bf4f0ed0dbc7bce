//! PID: the registry entry. The algorithm is integer C, `bpf/algorithms/pid.h`, shared with the kernel.

use crate::controller::{Field, Needs};
use crate::registry::{Family, Param, Profile, Spec};

crate::native::algorithm!(paceline_cc_pid);

/// The registry entry. The order of the parameters is that of `struct pid_params`.
pub(crate) static SPEC: Spec = Spec {
    name: "pid",
    title: "PID control of the RTT at a setpoint",
    family: Family::RateBased,
    source: "Mareev et al., Efficiency of a PID-based congestion control for high-speed IP-networks (ICAIIT 2018)",
    about: include_str!("about/pid.md"),
    needs: Needs::PACING.and(Needs::RATE_SAMPLE),
    params: &[
        Param::duration(
            "alpha",
            0.01,
            (0.000_001, 1.0),
            "least distance alpha of the setpoint from the smallest RTT",
        ),
        Param::number(
            "setpoint",
            "min RTTs",
            1.25,
            (1.01, 4.0),
            "setpoint SP over the smallest RTT",
        ),
        Param::duration("manage", 0.05, (0.0, 10.0), "least length of Manage"),
        Param::number("manage_share", "1", 0.5, (0.1, 0.9), "share of the rate during Manage"),
        Param::number(
            "gain",
            "1",
            2.885,
            (1.1, 4.0),
            "pacing gain of Gain; 2/ln 2 doubles the rate per round trip",
        ),
        Param::number(
            "growth",
            "1",
            0.25,
            (0.0, 1.0),
            "significant growth of the delivery rate (DDR)",
        ),
        Param::integer(
            "flat_reports",
            "reports",
            3.0,
            (1.0, 100.0),
            "reports without significant growth that end Gain",
        ),
        Param::number("drop", "1", 0.2, (0.01, 0.9), "drop of the DDR that leads to Manage"),
        Param::number("loss", "1", 0.02, (0.0, 1.0), "share lost or marked that leads to Manage"),
        Param::integer(
            "unreachable",
            "samples",
            10.0,
            (1.0, 10_000.0),
            "samples off the setpoint, the output at a bound, that lead to Manage",
        ),
        Param::number("tau", "setpoints", 4.0, (1.0, 64.0), "time constant tau of the loop"),
        Param::number("kp", "mu/tau", 2.0, (0.0, 16.0), "proportional gain Kp; mu is the DDR"),
        Param::number("ki", "mu/tau^2", 1.0, (0.0, 16.0), "integral gain Ki"),
        Param::number(
            "kd",
            "mu",
            0.0,
            (0.0, 4.0),
            "derivative gain Kd, on the RTT averaged over SP",
        ),
    ],
    profiles: &[
        Profile {
            name: "alpha-5ms",
            source: "what the paper's test at 10 ms shows (6 MB in the buffer) where it states 10 ms",
            values: &[("alpha", 0.005)],
        },
        Profile {
            name: "derivative",
            source: "ours: some damping from the slope of the RTT",
            values: &[("kd", 0.1)],
        },
    ],
    fields: &[
        Field { name: "state", unit: "1", doc: "0 Gain, 1 Manage, 2 Control" },
        Field { name: "setpoint_us", unit: "us", doc: "setpoint SP of the RTT" },
        Field { name: "min_rtt_us", unit: "us", doc: "smallest RTT, of the last Manage" },
        Field { name: "delivery_rate", unit: "bytes/s", doc: "delivered data rate (DDR), mu" },
    ],
    build,
};
