//! Short runs whose instructions are counted: `benches/instructions.py` runs this under callgrind.
//!
//!     instructions CASE
//!
//! prints the data packets that were delivered; without a case, the cases. The plans are written out here rather than read from
//! scenario files so that the build needs this crate alone, without the scenario reader and the table writer.

#[path = "../tests/common/mod.rs"]
mod common;

use std::process::ExitCode;

use common::{MS, bottleneck, delay, plan, registered, tcp};
use paceline_cc::registry;
use paceline_net::{LinkSpec, LossModel};
use paceline_sim::{DatagramOptions, FlowPlan, Outcome, Plan, Stack, run};

/// A name and its run.
type Case = (&'static str, fn() -> Plan);

const CASES: [Case; 4] = [
    ("dumbbell-n100", dumbbell),
    ("fat-loss", fat_loss),
    ("mpc", || eight_paced("mpc", None)),
    ("mpc-2020", || eight_paced("mpc-2020", Some("stable"))),
];

fn main() -> ExitCode {
    // Cargo adds `--bench`.
    let names: Vec<String> = std::env::args().skip(1).filter(|a| a != "--bench").collect();
    let case = |name: &String| CASES.iter().find(|(known, _)| known == name);
    match names.first().map(case) {
        None => CASES.iter().for_each(|(name, _)| println!("{name}")),
        Some(Some((_, plan))) => println!("{}", counted_run(plan()).engine.packets),
        Some(None) => {
            eprintln!("error: no such case");
            return ExitCode::from(2);
        }
    }
    ExitCode::SUCCESS
}

/// What is counted, from its entry to its return: the event loop, with the engine's set-up before and its statistics behind it.
#[inline(never)]
fn counted_run(plan: Plan) -> Outcome {
    run(plan).expect("the plans are valid")
}

/// 100 CUBIC flows over 10 host pairs, three links each way: 1 Gbit/s, 25 ms, 1 BDP, as in scenarios/dumbbell-n100.toml.
fn dumbbell() -> Plan {
    const PAIRS: u32 = 10;
    let access = || LinkSpec { buffer: Default::default(), ..bottleneck(10e9, 3.125, 1) };
    let mut links = vec![bottleneck(1e9, 6.25, 2083), delay(6.25)];
    links.extend((0..4 * PAIRS).map(|_| access()));
    let flow = |number: u32| {
        // Each pair's links: sender's, back to it, receiver's, back from it.
        let pair = 2 + 4 * (number % PAIRS);
        FlowPlan {
            forward: vec![pair, 0, pair + 2],
            reverse: vec![pair + 3, 1, pair + 1],
            start_ps: u64::from(number) * MS,
            ..controlled("cubic", None, &[])
        }
    };
    let mut plan = plan(links, (0..100).map(flow).collect(), 2.0, 0.0);
    plan.links.iter_mut().skip(1).for_each(|link| link.recorded = false);
    plan
}

/// A held window of 83,333 packets with eight losses per round trip, as in benches/scenarios/fat-loss.toml.
fn fat_loss() -> Plan {
    let link =
        LinkSpec { loss: Some(LossModel::Bernoulli(1e-4)), ..bottleneck(10e9, 50.0, 83_333) };
    let flow = controlled("window", None, &[("packets", 83_333.0)]);
    plan(vec![link, delay(50.0)], vec![flow], 0.5, 0.0)
}

/// 8 paced flows on 40 Gbit/s, 25 ms, as in benches/scenarios/mpc.toml and mpc-2020.toml.
fn eight_paced(name: &str, profile: Option<&str>) -> Plan {
    let flow = |number: u64| FlowPlan {
        stack: Stack::Datagram(DatagramOptions::default()),
        start_ps: number * MS,
        ..controlled(name, profile, &[])
    };
    let links = vec![bottleneck(40e9, 12.5, 83_333), delay(12.5)];
    let mut plan = plan(links, (0..8).map(flow).collect(), 0.5, 0.0);
    plan.links[1].recorded = false;
    plan
}

/// A flow under a registered controller, observed as scenarios observe it.
fn controlled(name: &str, profile: Option<&str>, values: &[(&str, f64)]) -> FlowPlan {
    let spec = registry::find(name).expect("a built-in controller");
    let flow = tcp(registered(name, profile, values));
    FlowPlan { needs: spec.needs, fields: spec.fields.to_vec(), ..flow }
}
