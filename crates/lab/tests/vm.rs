//! Scenarios in a guest under virtual time. They need QEMU and a kernel, and skip with a word where these are not.

use std::collections::BTreeMap;
use std::fs;
use std::io::Write as _;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::thread;

use paceline_lab::record;
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

const LINK: &str = "[link]\nrate = \"20 Mbit/s\"\nrtt = \"40 ms\"\n";

fn scenario(head: &str, flows: &[&str]) -> Scenario {
    let flow = |flow: &&str| format!("[[flows]]\n{flow}\n");
    let flows: String = flows.iter().map(flow).collect();
    Scenario::parse(&format!("{head}{flows}"), "vm.toml", Path::new("."), &[]).unwrap()
}

fn run(scenario: &Scenario, options: &Options) -> Result<Run, WorldError> {
    world::virtualise(scenario, None, Vec::new(), options, &mut |_| ControlFlow::Continue(()))
}

/// A folder that goes with the test.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("paceline-{name}-{}", std::process::id()));
        fs::create_dir_all(&path).unwrap();
        Self(path)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// The tables of the record of `run`, byte by byte.
fn tables(run: &Run, at: &Path) -> BTreeMap<String, Vec<u8>> {
    let folder = record::write(at, &run.info, &run.outcome, &run.provenance).unwrap();
    let files = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let tables = files.filter(|file| file.extension().is_some_and(|end| end == "parquet"));
    let name = |file: &PathBuf| file.file_name().unwrap().to_string_lossy().into_owned();
    tables.map(|file| (name(&file), fs::read(file).unwrap())).collect()
}

#[test]
fn equal_runs_have_equal_tables() {
    let Some(options) = options("equal_runs_have_equal_tables") else { return };
    let folder = Folder::new("equal-runs");
    // A trace and a queue that draw at random, the kernel's TCP, ours in the kernel and a datagram endpoint farther away.
    fs::write(folder.0.join("steps.trace"), "1\n2\n2\n3\n5\n5\n7\n8\n").unwrap();
    let trace = folder.0.join("steps.trace");
    let head = format!(
        "duration = \"2.5 s\"\nseed = 7\n[link]\ntrace = \"{}\"\nrtt = \"40 ms\"\nbuffer = \"60 packets\"\nloss = \"0.2 %\"\n",
        trace.display()
    );
    let flows = [
        "name = \"kernel\"\ncontroller = \"cubic\"\nstack = \"tcp\"\necn = \"ect0\"",
        "name = \"ours\"\ncontroller = \"mpc,cap=4 Mbit/s\"\nstack = \"tcp\"",
        "name = \"datagram\"\ncontroller = \"window,packets=8\"\nstack = \"datagram\"\nrtt = \"70 ms\"",
    ];
    let scenario = scenario(&head, &flows);
    let (scenario, options) = (&scenario, &options);
    let both: Vec<Run> = thread::scope(|scope| {
        let runs = [(); 2].map(|()| scope.spawn(move || run(scenario, options).unwrap()));
        runs.into_iter().map(|run| run.join().unwrap()).collect()
    });
    let [one, other] = ["one", "other"].map(|name| folder.0.join(name));
    let (first, second) = (tables(&both[0], &one), tables(&both[1], &other));
    assert!(!first.is_empty());
    let differ = first.iter().filter(|(name, bytes)| second.get(*name) != Some(bytes));
    let differ: Vec<&String> = differ.map(|(name, _)| name).collect();
    assert!(differ.is_empty(), "two runs of one scenario differ in {differ:?}");
    let flow = |number: usize| &both[0].outcome.flows[number];
    for (number, most_mbps) in [(0, 13.0), (1, 4.2), (2, 2.5)] {
        let mbps = flow(number).throughput_bps / 1e6;
        assert!((0.2..most_mbps).contains(&mbps), "flow {number}: {mbps} Mbit/s");
    }
    let least = [0, 2].map(|number| flow(number).rtt_ms.unwrap().min);
    assert!((40.0..70.0).contains(&least[0]) && least[1] >= 70.0, "{least:?} ms");
    assert!(flow(0).lost_packets > 0, "the link loses packets");
    // Of the kernel's own controller no parameters are known, of ours they are.
    assert!(both[0].info.flows[0].controller_params.is_empty());
    assert!(!both[0].info.flows[1].controller_params.is_empty());
    assert_eq!(both[0].info.world, "vm");
    let checks = &both[0].provenance.checks;
    assert!(checks.iter().any(|check| check.name == "machine_kept_up" && check.ok), "{checks:?}");
}

#[test]
fn the_kernel_and_the_simulator_agree() {
    let Some(options) = options("the_kernel_and_the_simulator_agree") else { return };
    let head = format!("duration = \"4 s\"\nwarmup = \"1 s\"\n{LINK}");
    let scenario = scenario(&head, &["controller = \"cubic:linux\"\nstack = \"tcp\""]);
    let guest = run(&scenario, &options).unwrap();
    let mut watch = |_| ControlFlow::Continue(());
    let sim = world::simulate(&scenario, None, Vec::new(), &mut |_| {}, &mut watch).unwrap();
    let of = |run: &Run| {
        let flow = &run.outcome.flows[0];
        (flow.goodput_bps / 20e6, flow.rtt_ms.unwrap().mean)
    };
    let ((used, rtt), (sim_used, sim_rtt)) = (of(&guest), of(&sim));
    println!("vm: {used:.3} of the link, RTT {rtt:.1} ms; sim: {sim_used:.3}, {sim_rtt:.1} ms");
    // The bounds that the simulator's TCP is held to against other runs of this kernel (crates/sim/tests/linux.rs).
    assert!((used - sim_used).abs() < 0.03, "{used} and {sim_used}");
    assert!((rtt / sim_rtt - 1.0).abs() < 0.10, "{rtt} ms and {sim_rtt} ms");
}

#[test]
fn the_kernels_dctcp_hears_marks_as_the_simulators_does() {
    let test = "the_kernels_dctcp_hears_marks_as_the_simulators_does";
    let Some(options) = options(test) else { return };
    let queue =
        "queue = { kind = \"step\", threshold = \"20 packets\" }\nbuffer = \"1000 packets\"\n";
    let head = format!("duration = \"4 s\"\nwarmup = \"1 s\"\n{LINK}{queue}");
    let scenario = scenario(&head, &["controller = \"dctcp:linux\"\nstack = \"tcp\""]);
    let guest = run(&scenario, &options).unwrap();
    let mut watch = |_| ControlFlow::Continue(());
    let sim = world::simulate(&scenario, None, Vec::new(), &mut |_| {}, &mut watch).unwrap();
    let [link, sim_link] = [&guest, &sim].map(|run| &run.outcome.links[0]);
    let used = [link, sim_link].map(|link| link.utilization.unwrap());
    let waits = [link, sim_link].map(|link| link.queue_ms.unwrap().mean);
    println!("{used:?} of the link, {waits:?} ms, {} and {} marks", link.marks, sim_link.marks);
    assert_eq!((link.drops, sim_link.drops), (0, 0));
    assert!(link.marks > 0 && sim_link.marks > 0);
    assert!((used[0] - used[1]).abs() < 0.03, "{used:?} of the link");
    // The queue stands near the step, 12 ms, in both.
    assert!((waits[0] - waits[1]).abs() < 3.0, "{waits:?} ms");
}

#[test]
fn a_controller_that_no_kernel_has_is_refused_by_name() {
    let Some(options) = options("a_controller_that_no_kernel_has_is_refused_by_name") else {
        return;
    };
    let head = format!("duration = \"1 s\"\n{LINK}");
    let scenario = scenario(&head, &["name = \"a\"\ncontroller = \"copa\"\nstack = \"tcp\""]);
    let error = run(&scenario, &options).expect_err("no kernel has it").to_string();
    assert!(error.starts_with("flow `a`: controller = copa: stack `tcp`"), "{error}");
}

#[test]
fn a_guest_that_dies_shows_its_console() {
    let Some(_) = options("a_guest_that_dies_shows_its_console") else { return };
    let head = format!("duration = \"1 s\"\n{LINK}");
    let scenario = scenario(&head, &["controller = \"reno\"\nstack = \"tcp\""]);
    let error = run(&scenario, &Options { guest: "/bin/true".into() }).expect_err("no guest");
    let error = error.to_string();
    assert!(
        error.contains("without an answer") && error.contains("Attempted to kill init"),
        "{error}"
    );
}

#[test]
fn a_run_broken_off_leaves_no_machine() {
    let Some(options) = options("a_run_broken_off_leaves_no_machine") else { return };
    let head = format!("duration = \"600 s\"\ntitle = \"broken off\"\n{LINK}");
    let scenario = scenario(&head, &["controller = \"reno\"\nstack = \"tcp\""]);
    // By its parent thread, for other tests have machines of their own.
    let machines = || -> usize {
        let children = fs::read_to_string("/proc/thread-self/children").unwrap_or_default();
        let alive = |pid: &&str| Path::new("/proc").join(pid).exists();
        children.split_whitespace().filter(alive).count()
    };
    let mut seen = 0;
    let mut watch = |_| {
        seen = seen.max(machines());
        if seen > 0 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    };
    let run = world::virtualise(&scenario, None, Vec::new(), &options, &mut watch);
    assert!(matches!(run, Err(WorldError::Interrupted)));
    assert_eq!((seen, machines()), (1, 0));
}
