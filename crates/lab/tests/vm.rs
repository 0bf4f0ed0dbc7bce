//! Scenarios in a guest under virtual time. They need QEMU and a kernel, and skip with a word where these are not.

use std::io::Write as _;
use std::ops::ControlFlow;
use std::path::Path;
use std::time::Instant;

use paceline_lab::scenario::Scenario;
use paceline_lab::vm::{self, Options};
use paceline_lab::world::{self, Run, WorldError};

fn options(test: &str) -> Option<Options> {
    if let Some(why) = vm::missing() {
        // Not by a macro: the test runner would keep it to itself.
        let line = format!("\nSKIPPED {test}: {why}\n");
        let _ = std::io::stderr().write_all(line.as_bytes());
        return None;
    }
    Some(Options { guest: env!("CARGO_BIN_EXE_paceline-guest").into() })
}

fn scenario(rate: &str, rtt: &str, flows: &str, duration: &str) -> Scenario {
    let text = format!(
        "duration = \"{duration}\"\nwarmup = \"1 s\"\nseed = 3\n[link]\nrate = \"{rate}\"\nrtt = \"{rtt}\"\n{flows}"
    );
    Scenario::parse(&text, "vm.toml", Path::new("."), &[]).unwrap()
}

fn tcp(controller: &str) -> String {
    format!("[[flows]]\nname = \"{controller}\"\ncontroller = \"{controller}\"\nstack = \"tcp\"\n")
}

fn run(scenario: &Scenario, options: &Options) -> Result<Run, WorldError> {
    let mut watch = |_| ControlFlow::Continue(());
    world::virtualise(scenario, None, Vec::new(), options, &mut watch)
}

#[test]
#[ignore = "by hand"]
fn try_it() {
    let Some(options) = options("try_it") else { return };
    let env = |name: &str, default: &str| std::env::var(name).unwrap_or(default.into());
    let flows: String = env("CC", "cubic").split(';').map(tcp).collect();
    let scenario =
        scenario(&env("RATE", "20 Mbit/s"), &env("RTT", "40 ms"), &flows, &env("DURATION", "5 s"));
    let began = Instant::now();
    let mut first = true;
    let mut watch = |now: u64| {
        if now > 0 && first {
            first = false;
            println!("first progress after {:.1} s: {now}", began.elapsed().as_secs_f64());
        }
        ControlFlow::Continue(())
    };
    let run = world::virtualise(&scenario, None, Vec::new(), &options, &mut watch).unwrap();
    println!("host: {:.1} s", began.elapsed().as_secs_f64());
    let sim = world::simulate(&scenario, None, Vec::new(), &mut |_| {}, &mut |_| {
        ControlFlow::Continue(())
    })
    .unwrap();
    for (world, outcome) in [("vm", &run.outcome), ("sim", &sim.outcome)] {
        for flow in &outcome.flows {
            println!(
                "{world}: {:.3} Mbit/s goodput {:.3} rtt {:?} lost {} sent {} queue {:?}",
                flow.throughput_bps / 1e6,
                flow.goodput_bps / 1e6,
                flow.rtt_ms.map(|r| r.mean),
                flow.lost_packets,
                flow.sent_packets,
                flow.queueing_delay_ms.map(|r| r.mean)
            );
        }
    }
    println!("{:?} cpu {}", run.provenance.checks, run.outcome.engine.cpu_s);
}
