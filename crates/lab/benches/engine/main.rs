//! Speed of the event loop: delivered data packets and packet-hops per CPU second, in a table beside the targets.
//!
//!     cargo bench -p paceline-lab --bench engine -- [--case NAME]... [--repeat N] [--set KEY=VALUE]... [--json]
//!
//! Cases are scenario files; each is run `--repeat` times and the least CPU time counts, because other programs on the machine
//! only ever add to it. Compare numbers of one machine and one session. `--set` overrides a scenario's key, as in `paceline run`.

mod cases;
mod heap;
mod table;

use std::ops::ControlFlow;
use std::path::Path;
use std::process::ExitCode;

use paceline_lab::scenario::Scenario;
use paceline_lab::world::simulate;
use paceline_net::PS_PER_S;
use paceline_sim::{FlowPlan, Outcome, Stack};
use serde_json::{Value, json};

use cases::{CASES, Case, Target};

fn main() -> ExitCode {
    let options = match Options::parse(std::env::args().skip(1)) {
        Ok(options) => options,
        Err(message) => {
            eprintln!("error: {message}");
            return ExitCode::from(2);
        }
    };
    match options.run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            eprintln!("error: {message}");
            ExitCode::FAILURE
        }
    }
}

struct Options {
    cases: Vec<&'static Case>,
    repeat: u32,
    overrides: Vec<String>,
    json: bool,
}

impl Options {
    fn parse(mut arguments: impl Iterator<Item = String>) -> Result<Self, String> {
        let (cases, overrides) = (Vec::new(), Vec::new());
        let mut options = Self { cases, repeat: 3, overrides, json: false };
        while let Some(argument) = arguments.next() {
            let mut value =
                || arguments.next().ok_or_else(|| format!("{argument} needs a value after it"));
            match argument.as_str() {
                "--case" => options.cases.push(find(&value()?)?),
                "--repeat" => {
                    let text = value()?;
                    let number = text.parse().ok().filter(|n| (1..=100).contains(n));
                    let range = || format!("--repeat {text}: allowed: 1 to 100");
                    options.repeat = number.ok_or_else(range)?;
                }
                "--set" => options.overrides.push(value()?),
                "--json" => options.json = true,
                // Cargo adds it.
                "--bench" => {}
                _ => return Err(format!("{argument}: no such option; see the head of its source")),
            }
        }
        if options.cases.is_empty() {
            options.cases = CASES.iter().collect();
        }
        Ok(options)
    }

    fn run(&self) -> Result<(), String> {
        let mut rows = Vec::new();
        if !self.json {
            println!("{}", table::head());
        }
        for case in &self.cases {
            let row = measure(case, self.repeat, &self.overrides)?;
            if !self.json {
                println!("{}", table::line(&row));
            }
            rows.push(row);
        }
        if self.json {
            let rows: Vec<Value> = rows.iter().map(table::json).collect();
            let all = json!({ "version": env!("CARGO_PKG_VERSION"), "rows": rows });
            println!("{}", serde_json::to_string_pretty(&all).expect("numbers and text"));
        } else {
            println!("\n{}", table::NOTES);
        }
        Ok(())
    }
}

fn find(name: &str) -> Result<&'static Case, String> {
    CASES.iter().find(|case| case.name == name).ok_or_else(|| {
        let names: Vec<&str> = CASES.iter().map(|case| case.name).collect();
        format!("--case {name}: allowed: {}", names.join(", "))
    })
}

fn load(case: &Case, overrides: &[String]) -> Result<Scenario, String> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(case.scenario);
    Scenario::load(path, overrides).map_err(|error| error.to_string())
}

/// Runs it as `paceline run` does, which also measures the CPU time of the event loop.
fn run(scenario: &Scenario) -> Result<Outcome, String> {
    let untouched = &mut |_: &mut FlowPlan| {};
    let unwatched = &mut |_| ControlFlow::Continue(());
    let run = simulate(scenario, None, Vec::new(), untouched, unwatched);
    run.map(|run| run.outcome).map_err(|error| error.to_string())
}

/// CPU time of this thread, s.
fn thread_cpu_s() -> f64 {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    time.tv_sec as f64 + time.tv_nsec as f64 * 1e-9
}

/// A case, measured.
struct Row {
    case: &'static Case,
    flows: usize,
    events: u64,
    /// Data packets delivered.
    packets: u64,
    /// Links crossed by the packets delivered and by their ACKs.
    hops: u64,
    /// Data packets and ACKs on the way at the end.
    in_flight: u64,
    cpu_s: f64,
    bytes_per_flow: f64,
    /// A push and a pop of a binary heap with an entry per packet in flight, ns.
    heap_ns: f64,
}

impl Row {
    fn packets_per_s(&self) -> f64 {
        self.packets as f64 / self.cpu_s
    }

    fn hops_per_s(&self) -> f64 {
        self.hops as f64 / self.cpu_s
    }

    fn ns_per_hop(&self) -> f64 {
        self.cpu_s * 1e9 / self.hops as f64
    }

    /// Cost of a packet-hop in heap operations.
    fn ratio(&self) -> f64 {
        self.ns_per_hop() / self.heap_ns
    }

    /// What the case's target counts, per CPU second.
    fn speed(&self) -> f64 {
        match self.case.target {
            Target::Packets(_) => self.packets_per_s(),
            Target::Hops(_) => self.hops_per_s(),
        }
    }
}

/// The fastest of `repeat` runs. Two runs that differ in events or packets are an error: a run is a pure function of its plan.
fn measure(case: &'static Case, repeat: u32, overrides: &[String]) -> Result<Row, String> {
    let scenario = load(case, overrides)?;
    let mut best = run(&scenario)?;
    for _ in 1..repeat {
        let next = run(&scenario)?;
        let counts = |outcome: &Outcome| (outcome.engine.events, outcome.engine.packets);
        let (first, second) = (counts(&best), counts(&next));
        if first != second {
            return Err(format!("{}: two equal runs differ: {first:?}, {second:?}", case.name));
        }
        if next.engine.cpu_s < best.engine.cpu_s {
            best = next;
        }
    }
    let in_flight = in_flight(&scenario, &best);
    Ok(Row {
        case,
        flows: best.flows.len(),
        events: best.engine.events,
        packets: best.engine.packets,
        hops: hops(case, &scenario, &best)?,
        in_flight,
        cpu_s: best.engine.cpu_s,
        bytes_per_flow: best.engine.bytes_per_flow,
        heap_ns: heap::push_pop_ns(in_flight, repeat),
    })
}

/// Links crossed: a data packet that was delivered crossed every link of its flow's forward path, and the ACK with which each is
/// answered every link of the reverse path. Left out are packets that were dropped or have not arrived, which crossed some.
fn hops(case: &Case, scenario: &Scenario, outcome: &Outcome) -> Result<u64, String> {
    let mut hops = 0;
    for (flow, result) in scenario.flows().iter().zip(&outcome.flows) {
        if let Stack::Tcp(options) = flow.stack
            && options.delayed_ack_ps.is_some()
        {
            return Err(format!("{}: delayed ACKs: there is not one per packet", case.name));
        }
        let links = flow.path.forward.len() + flow.path.reverse.len();
        hops += result.delivered_packets * links as u64;
    }
    Ok(hops)
}

/// Packets on the way at the end: data packets as the engine counts them, and the ACKs of those delivered in the time that an ACK
/// takes back, at the flow's throughput.
fn in_flight(scenario: &Scenario, outcome: &Outcome) -> u64 {
    let delays_ps: Vec<u64> = scenario.links().map(|link| link.delay_ps).collect();
    let mut packets = 0.0;
    for (flow, result) in scenario.flows().iter().zip(&outcome.flows) {
        let back_ps: u64 = flow.path.reverse.iter().map(|link| delays_ps[*link as usize]).sum();
        let packets_per_s = result.throughput_bps / 8.0 / f64::from(flow.packets.data_bytes);
        packets += result.in_flight_packets as f64;
        packets += packets_per_s * back_ps as f64 / PS_PER_S as f64;
    }
    packets as u64
}
