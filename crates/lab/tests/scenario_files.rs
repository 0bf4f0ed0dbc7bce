//! The scenarios that come with the project.

use std::io::Write;
use std::path::{Path, PathBuf};

use paceline_cc::registry;
use paceline_lab::scenario::Scenario;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// What `name` needs on top: traces that are not part of the project, controllers that this build lacks.
fn overrides(name: &str, text: &str) -> Vec<String> {
    let mut overrides = Vec::new();
    if name == "contest.toml" {
        overrides.extend(contest_traces());
    }
    for (i, line) in text.lines().filter(|line| line.starts_with("controller = ")).enumerate() {
        let controller = line.split('"').nth(1).unwrap_or_default();
        let bare = controller.split([':', ',']).next().unwrap_or_default();
        if registry::find(bare).is_none() {
            println!("{name}: this build has no controller {bare}; checked with `window`");
            overrides.push(format!("flows.{i}.controller=window"));
        }
    }
    overrides
}

/// The contest's traces from `PACELINE_TRACES` or `shared/traces` in a folder above, or a stand-in of 12 Mbit/s for each.
fn contest_traces() -> [String; 2] {
    let above = Path::new(env!("CARGO_MANIFEST_DIR")).ancestors();
    let found = || above.map(|folder| folder.join("shared/traces")).find(|folder| folder.is_dir());
    let named = std::env::var_os("PACELINE_TRACES").map(PathBuf::from).or_else(found);
    let named = named.filter(|folder| folder.join("Verizon-LTE-short.down").is_file());
    let folder = named.unwrap_or_else(|| {
        skip(
            "no cellular traces (PACELINE_TRACES names their folder); checked with a constant one",
        );
        let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR"));
        for end in ["down", "up"] {
            let path = folder.join(format!("Verizon-LTE-short.{end}"));
            std::fs::write(path, "1\n").expect("the build folder can be written");
        }
        folder
    });
    let path = |end| folder.join(format!("Verizon-LTE-short.{end}")).display().to_string();
    [format!("links.0.trace={}", path("down")), format!("links.0.reverse.trace={}", path("up"))]
}

fn load(name: &str) -> Scenario {
    load_from("scenarios", name)
}

fn load_from(folder: &str, name: &str) -> Scenario {
    let path = root().join(folder).join(name);
    let text = std::fs::read_to_string(&path).expect("the scenario is there");
    Scenario::load(&path, &overrides(name, &text)).unwrap_or_else(|error| panic!("{error}"))
}

#[test]
fn every_scenario_parses_and_says_what_it_shows() {
    for (folder, expected) in [("scenarios", 8), ("benches/scenarios", 8)] {
        let mut count = 0;
        for entry in std::fs::read_dir(root().join(folder)).expect("the folder is there") {
            let path = entry.expect("readable").path();
            if path.extension().is_none_or(|extension| extension != "toml") {
                continue;
            }
            let name = path.file_name().and_then(|name| name.to_str()).expect("a plain name");
            let scenario = load_from(folder, name);
            assert!(scenario.text().starts_with("# "), "{name} opens with no comment");
            assert_ne!(scenario.title(), path.file_stem().and_then(|s| s.to_str()).unwrap_or(""));
            let plan = scenario.plan(None).unwrap_or_else(|error| panic!("{error}"));
            assert_eq!(plan.flows.len(), scenario.flows().len());
            count += 1;
        }
        assert!(count >= expected, "only {count} scenarios in {folder}");
    }
}

/// RTTs of 10 to 200 ms over 50 pairs, a buffer of 10 Gbit/s x 100 ms, flows to the pairs in turn: the peers' network.
#[test]
fn dumbbells_at_scale_are_those_of_the_peers() {
    for (name, flows) in [("dumbbell-n1000.toml", 1000), ("dumbbell-n10000.toml", 10_000)] {
        let scenario = load_from("benches/scenarios", name);
        let plan = scenario.plan(None).expect("it needs no trace");
        assert_eq!(plan.flows.len(), flows);
        assert_eq!(plan.links.len(), 2 * (1 + 2 * 50));
        assert_eq!(plan.links[0].spec.buffer.packets, Some(83_333));
        assert_eq!(plan.links[0].spec.delay_ps, 2_500_000_000);
        for (i, flow) in scenario.flows().iter().enumerate() {
            let exact = 10e9 + 190e9 * (i % 50) as f64 / 49.0;
            // Four access links, each rounded to a picosecond.
            let off = flow.path.base_rtt_ps as f64 - exact;
            assert!(off.abs() <= 2.0, "flow {i}: off by {off} ps");
        }
    }
}

#[test]
fn dumbbells_are_those_of_the_peers() {
    for (name, flows, pairs) in [("dumbbell-n2.toml", 2, 2), ("dumbbell-n100.toml", 100, 10)] {
        let plan = load(name).plan(None).expect("it needs no trace");
        assert_eq!(plan.flows.len(), flows);
        assert_eq!(plan.links.len(), 2 * (1 + 2 * pairs));
        let bottleneck = &plan.links[0];
        assert_eq!((bottleneck.name.as_str(), bottleneck.recorded), ("bottleneck", true));
        // 1 Gbit/s x 25 ms.
        assert_eq!(bottleneck.spec.buffer.bytes, Some(3_125_000));
        let recorded = plan.links.iter().filter(|link| link.recorded).count();
        assert_eq!(recorded, 1);
        for (i, flow) in plan.flows.iter().enumerate() {
            assert_eq!((flow.forward.len(), flow.reverse.len()), (3, 3));
            let delay: u64 = flow
                .forward
                .iter()
                .chain(&flow.reverse)
                .map(|link| plan.links[*link as usize].spec.delay_ps)
                .sum();
            assert_eq!(delay, 25_000_000_000);
            let access = format!("access-sender-{}", i % pairs + 1);
            assert_eq!(plan.links[flow.forward[0] as usize].name, access);
            assert!(flow.start_ps <= 100_000_000_000);
        }
    }
}

#[test]
fn linux_reference_counts_as_the_kernel_did() {
    let scenario = load("linux-reference.toml");
    let plan = scenario.plan(None).expect("it needs no trace");
    // 33 packets there include the one next to leave.
    assert_eq!(plan.links[0].spec.buffer.bytes, Some(32 * 1514));
    let sizes = plan.flows[0].packets;
    assert_eq!(sizes.data_bytes - sizes.header_bytes, 1448);
    assert_eq!(scenario.flows()[0].path.base_rtt_ps, 40_000_000_000);
}

#[test]
fn parking_lot_flows_cross_their_hops() {
    let plan = load("parking-lot.toml").plan(None).expect("it needs no trace");
    let path = |flow: usize| {
        let name = |link: &u32| plan.links[*link as usize].name.clone();
        plan.flows[flow].forward.iter().map(name).collect::<Vec<_>>()
    };
    assert_eq!(path(0), ["hop-1", "hop-2", "hop-3"]);
    assert_eq!(path(1), ["hop-1"]);
    assert_eq!(path(3), ["hop-3"]);
    // 50 Mbit/s x the longest base RTT, 30 ms.
    assert_eq!(plan.links[0].spec.buffer.bytes, Some(187_500));
}

/// Says why a test cannot run here, past the test harness, which hides what passing tests print.
fn skip(reason: &str) {
    let line = format!("\nSKIPPED contest.toml on its own traces: {reason}\n");
    let _ = std::io::stderr().write_all(line.as_bytes());
}

#[test]
fn a_scenario_moves_with_its_traces() {
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("moved");
    std::fs::create_dir_all(&folder).expect("the build folder can be written");
    let scenario = load("contest.toml");
    let (text, traces) = scenario.with_traces_beside_it();
    let names: Vec<&str> = traces.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(names, ["trace-0", "trace-1"]);
    for (name, path) in &traces {
        std::fs::copy(path, folder.join(name)).expect("the trace is there");
    }
    let moved = Scenario::parse(&text, "moved", &folder, &[]).expect("it is whole");
    let links = |scenario: &Scenario| -> Vec<_> {
        scenario.plan(None).expect("a plan").links.into_iter().map(|link| link.spec).collect()
    };
    assert_eq!(links(&moved), links(&scenario));
}
