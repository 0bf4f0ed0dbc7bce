//! Paceline's own MPC: the registry entry. The algorithm is integer C, `bpf/algorithms/mpc.h`, shared with the kernel.

use crate::controller::{Field, Needs};
use crate::registry::{Family, Param, Spec};

crate::native::algorithm!(paceline_cc_mpc);

/// The registry entry. The order of the parameters is that of `struct mpc_params`.
pub(crate) static SPEC: Spec = Spec {
    name: "mpc",
    title: "Model-predictive control of the queueing delay, shares by a price",
    family: Family::RateBased,
    source: "Paceline; after Lynn, Ghosal and Hanford 2020. Derived and measured in docs/mpc.md",
    about: include_str!("about/mpc.md"),
    needs: Needs::PACING.and(Needs::RATE_SAMPLE),
    params: &[
        Param::rate("cap", 0.0, (0.0, 1e12), "the rate is never above; 0 = no cap"),
        Param::duration(
            "queue",
            0.000_37,
            (0.000_001, 0.1),
            "a of (2): target q_t at 4 Gbit/s and 25 ms, but for the knee",
        ),
        Param::number(
            "rate_exponent",
            "1",
            0.5,
            (0.1, 1.0),
            "gamma of (2): the target falls with the rate to this power",
        ),
        Param::number(
            "rtt_exponent",
            "1",
            0.2,
            (0.0, 1.0),
            "delta of (2): the target grows with the empty path's RTT to this power",
        ),
        Param::duration(
            "knee",
            0.002,
            (0.0, 0.1),
            "RTT far below which the target is in proportion to it",
        ),
        Param::number(
            "horizon",
            "tau",
            0.5,
            (0.1, 8.0),
            "H of (5): time in which the queue comes to its target",
        ),
        Param::number(
            "fairness",
            "1/tau",
            0.0625,
            (0.0, 0.5),
            "k of (7): gain of the fairness force",
        ),
        Param::number(
            "restraint",
            "1",
            1.5,
            (0.01, 100.0),
            "of (6): how far a short queue lets a large flow give way",
        ),
        Param::number(
            "memory",
            "tau^2/queue",
            0.5,
            (0.01, 10.0),
            "time constant of the slow queue, at least 8 tau",
        ),
        Param::number(
            "settle",
            "tau",
            8.0,
            (0.5, 100.0),
            "time without the fairness force after start-up and growth",
        ),
        Param::number("drain_interval", "tau", 10.0, (4.0, 1000.0), "from drain to drain, (9)"),
        Param::number(
            "drain_margin",
            "queues",
            0.25,
            (0.0, 2.0),
            "how much further a drain goes, (9)",
        ),
        Param::number(
            "growth",
            "q_t/tau",
            0.5,
            (0.05, 4.0),
            "first growth without a queue per tau, (8)",
        ),
        Param::number(
            "growth_max",
            "1/tau",
            0.12,
            (0.01, 1.0),
            "largest growth without a queue, (8)",
        ),
        Param::number("hold", "tau", 1.3, (1.0, 8.0), "time without change after growth"),
        Param::integer(
            "least_packets",
            "packets",
            40.0,
            (8.0, 1000.0),
            "tau is at least the time of so many, (1)",
        ),
        Param::number(
            "start_growth",
            "log2/tau",
            0.585,
            (0.1, 1.0),
            "growth in start-up: 0.585 is 1.5 times, (11)",
        ),
        Param::number("start_queue", "tau", 0.012, (0.001, 0.5), "queue that ends start-up, (11)"),
    ],
    profiles: &[],
    fields: &[
        Field { name: "state", unit: "1", doc: "0 start-up, 1 steady, 2 growth, 3 drain" },
        Field { name: "rho", unit: "bytes/s", doc: "nominal rate rho" },
        Field { name: "departure_rate", unit: "bytes/s", doc: "rate r_B at which packets leave" },
        Field { name: "base_rtt_us", unit: "us", doc: "RTT of the empty path l_P" },
        Field { name: "tau_us", unit: "us", doc: "time tau in which the flow learns what it does" },
        Field { name: "target_us", unit: "us", doc: "queueing delay q_t that the rate is worth" },
        Field { name: "queue_us", unit: "us", doc: "queueing delay q of the last block" },
        Field { name: "slow_queue_us", unit: "us", doc: "its long mean qbar" },
    ],
    build,
};
