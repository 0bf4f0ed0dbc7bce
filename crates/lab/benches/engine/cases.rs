//! What is measured, and what it shall reach.

/// A scenario and its target.
pub struct Case {
    /// Name, as `--case` takes it.
    pub name: &'static str,
    /// The scenario's file, from the root of the repository.
    pub scenario: &'static str,
    /// What it shall reach.
    pub target: Target,
}

/// How much of what, per CPU second.
#[derive(Clone, Copy)]
pub enum Target {
    /// Data packets delivered.
    Packets(f64),
    /// Links crossed by packets.
    Hops(f64),
}

/// Every case, in the order of the table. The first four have peers: ns-3 and htsim were measured on the same networks.
pub const CASES: &[Case] = &[
    Case {
        name: "dumbbell-n2",
        scenario: "scenarios/dumbbell-n2.toml",
        target: Target::Packets(8e6),
    },
    Case {
        name: "dumbbell-n100",
        scenario: "scenarios/dumbbell-n100.toml",
        target: Target::Packets(8e6),
    },
    Case {
        name: "dumbbell-n1000",
        scenario: "benches/scenarios/dumbbell-n1000.toml",
        target: Target::Packets(5e6),
    },
    Case {
        name: "dumbbell-n10000",
        scenario: "benches/scenarios/dumbbell-n10000.toml",
        target: Target::Packets(4e6),
    },
    Case { name: "fat", scenario: "benches/scenarios/fat.toml", target: Target::Packets(5e6) },
    Case {
        name: "fat-short",
        scenario: "benches/scenarios/fat-short.toml",
        target: Target::Packets(5e6),
    },
    Case {
        name: "fat-loss",
        scenario: "benches/scenarios/fat-loss.toml",
        target: Target::Packets(5e6),
    },
    Case {
        name: "fat-loss-cubic",
        scenario: "benches/scenarios/fat-loss-cubic.toml",
        target: Target::Packets(5e6),
    },
    Case { name: "mpc", scenario: "benches/scenarios/mpc.toml", target: Target::Packets(10e6) },
    Case {
        name: "mpc-2020",
        scenario: "benches/scenarios/mpc-2020.toml",
        target: Target::Packets(10e6),
    },
    Case { name: "chain", scenario: "benches/scenarios/chain.toml", target: Target::Hops(20e6) },
];
