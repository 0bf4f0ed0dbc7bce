//! What a scenario becomes: every number of the plan from the units of the file.

use std::path::Path;

use paceline_cc::PathInfo;
use paceline_lab::scenario::Scenario;
use paceline_net::{Capacity, LossModel, PS_PER_MS, PS_PER_S, PS_PER_US};
use paceline_sim::{DatagramOptions, LossNotice, Plan, Stack};

fn scenario(text: &str) -> Scenario {
    Scenario::parse(text, "test.toml", Path::new(env!("CARGO_TARGET_TMPDIR")), &[])
        .unwrap_or_else(|error| panic!("{error}"))
}

fn plan(text: &str) -> Plan {
    scenario(text).plan(None).unwrap_or_else(|error| panic!("{error}"))
}

/// `link` and `flow` are lines of the tables `[link]` and `[[flows]]`.
fn simple(link: &str, flow: &str) -> String {
    format!("duration = \"10 s\"\n[link]\n{link}\n[[flows]]\ncontroller = \"window\"\n{flow}\n")
}

const LINK: &str = "rate = \"100 Mbit/s\"\ndelay = \"20 ms\"";

#[test]
fn defaults_are_the_documented_ones() {
    let plan = plan(&simple(LINK, ""));
    assert_eq!((plan.duration_ps, plan.warmup_ps, plan.seed), (10 * PS_PER_S, 0, 1));
    assert_eq!(plan.sample_ps, 10 * PS_PER_MS);
    let [forward, reverse] = &plan.links[..] else { panic!("{} links", plan.links.len()) };
    assert_eq!((forward.name.as_str(), forward.recorded), ("bottleneck", true));
    assert_eq!((reverse.name.as_str(), reverse.recorded), ("bottleneck-reverse", false));
    assert_eq!(forward.spec.capacity, Capacity::Constant(1e8));
    assert_eq!(forward.spec.buffer.bytes, Some(500_000));
    assert_eq!((forward.spec.buffer.packets, forward.spec.buffer.wait_ps), (None, None));
    assert_eq!((forward.spec.loss, forward.spec.jitter, forward.spec.reorder), (None, None, None));
    assert_eq!(reverse.spec.capacity, Capacity::Unlimited);
    assert_eq!(reverse.spec.delay_ps, 20 * PS_PER_MS);
    let flow = &plan.flows[0];
    assert_eq!((flow.name.as_str(), flow.controller_name.as_str()), ("window", "window"));
    assert_eq!((&flow.forward[..], &flow.reverse[..]), (&[0][..], &[1][..]));
    assert_eq!((flow.start_ps, flow.stop_ps, flow.size_bytes), (0, None, None));
    assert_eq!(flow.cap_bytes_per_s, None);
    let sizes = flow.packets;
    assert_eq!((sizes.data_bytes, sizes.header_bytes, sizes.ack_bytes), (1500, 52, 52));
    assert_eq!(flow.stack, Stack::Tcp(Default::default()));
}

#[test]
fn buffers_in_every_unit() {
    let buffer = |text: &str| plan(&simple(&format!("{LINK}\nbuffer = \"{text}\""), "")).links;
    assert_eq!(buffer("0.25 BDP")[0].spec.buffer.bytes, Some(125_000));
    assert_eq!(buffer("500 packets")[0].spec.buffer.packets, Some(500));
    assert_eq!(buffer("64 KiB")[0].spec.buffer.bytes, Some(65_536));
    assert_eq!(buffer("10 ms")[0].spec.buffer.wait_ps, Some(10 * PS_PER_MS));
    assert_eq!(buffer("unlimited")[0].spec.buffer, Default::default());
}

#[test]
fn rtt_is_split_and_bdp_takes_the_longest() {
    let text = simple("rate = \"100 Mbit/s\"\nrtt = \"20 ms\"", "rtt = \"50 ms\"");
    let plan = plan(&format!("{text}[[flows]]\ncontroller = \"window\"\n"));
    assert_eq!(plan.links[0].spec.delay_ps, 10 * PS_PER_MS);
    assert_eq!(plan.links[1].spec.delay_ps, 10 * PS_PER_MS);
    // 100 Mbit/s x 50 ms, the farther flow.
    assert_eq!(plan.links[0].spec.buffer.bytes, Some(625_000));
    let far = &plan.flows[0];
    // The 30 ms that the link lacks: 15 ms before it and 15 ms behind the ACKs' last link.
    assert_eq!((&far.forward[..], &far.reverse[..]), (&[2, 0][..], &[1, 3][..]));
    assert_eq!(plan.links[2].spec.delay_ps, 15 * PS_PER_MS);
    assert_eq!(plan.links[3].spec.delay_ps, 15 * PS_PER_MS);
    assert!(!plan.links[2].recorded && !plan.links[3].recorded);
    assert_eq!(plan.flows[1].forward, [0]);
    let names: Vec<&str> = plan.flows.iter().map(|flow| flow.name.as_str()).collect();
    assert_eq!(names, ["window-1", "window-2"]);
}

#[test]
fn a_delay_that_changes_holds_both_ways_unless_the_reverse_has_its_own() {
    let file = Path::new(env!("CARGO_TARGET_TMPDIR")).join("changes.delay");
    std::fs::write(&file, "0 30\n1000 20.5\n").unwrap();
    let link = "rate = \"100 Mbit/s\"\ndelay_trace = \"changes.delay\"";
    let both = plan(&simple(link, ""));
    let spec = |plan: &Plan, link: usize| plan.links[link].spec.clone();
    let (there, back) = (spec(&both, 0), spec(&both, 1));
    assert_eq!((there.delay_ps, back.delay_ps), (20_500 * PS_PER_US, 20_500 * PS_PER_US));
    assert!(there.delay_trace.is_some());
    assert_eq!(there.delay_trace, back.delay_trace);
    // 100 Mbit/s x 41 ms.
    assert_eq!(there.buffer.bytes, Some(512_500));
    let one = plan(&simple(&format!("{link}\nreverse = {{ delay = \"5 ms\" }}"), ""));
    assert_eq!((spec(&one, 1).delay_ps, spec(&one, 1).delay_trace), (5 * PS_PER_MS, None));
    let other =
        plan(&simple(&format!("{LINK}\nreverse = {{ delay_trace = \"changes.delay\" }}"), ""));
    assert_eq!((spec(&other, 0).delay_trace, spec(&other, 0).delay_ps), (None, 20 * PS_PER_MS));
    assert_eq!(spec(&other, 1).delay_trace, there.delay_trace);
    std::fs::write(&file, "0 30\n1000 2000000\n").unwrap();
    let error = Scenario::parse(&simple(link, ""), "t.toml", file.parent().unwrap(), &[]);
    let error = error.map(drop).unwrap_err().to_string();
    assert!(
        error.contains("changes.delay:2: `1000 2000000` is not a time and a delay in ms"),
        "{error}"
    );
}

#[test]
fn access_delays_grow_from_pair_to_pair() {
    let network = |pairs: u32, delay: &str| {
        let link = format!("duration = \"1 s\"\n[link]\n{LINK}\n");
        let topology =
            format!("[topology]\nkind = \"dumbbell\"\npairs = {pairs}\naccess_delay = {delay}\n");
        plan(&format!("{link}{topology}[[flows]]\ncontroller = \"window\"\ncount = {pairs}\n"))
    };
    let delays = |plan: &Plan| {
        let of = |link: u32| plan.links[link as usize].spec.delay_ps;
        let ends = |path: &[u32]| [of(path[0]), of(path[2])];
        plan.flows.iter().map(|f| (ends(&f.forward), ends(&f.reverse))).collect::<Vec<_>>()
    };
    let (a, b, c) = (PS_PER_MS, 4 * PS_PER_MS, 7 * PS_PER_MS);
    let up = [([a, a], [a, a]), ([b, b], [b, b]), ([c, c], [c, c])];
    assert_eq!(delays(&network(3, "{ from = \"1 ms\", to = \"7 ms\" }")), up);
    let down = [up[2], up[1], up[0]];
    assert_eq!(delays(&network(3, "{ from = \"7 ms\", to = \"1 ms\" }")), down);
    assert_eq!(delays(&network(2, "\"1 ms\"")), [up[0], up[0]]);
    assert_eq!(delays(&network(1, "{ from = \"1 ms\", to = \"7 ms\" }")), [up[0]]);
}

#[test]
fn impairments_reach_the_right_direction() {
    let link = format!(
        "{LINK}\nloss = \"0.1%\"\n\
         noise = {{ kind = \"exponential\", mean = \"1% rtt\", max = \"10%rtt\", reorder = true }}\n\
         jitter = {{ kind = \"exponential\", mean = \"0.25 ms\" }}\n\
         reorder = {{ probability = 0.01, extra = \"1 ms\" }}\n\
         reverse = {{ loss = {{ kind = \"gilbert-elliott\", p = 0.01, r = \"50%\" }} }}"
    );
    let plan = plan(&simple(&link, ""));
    let (forward, reverse) = (&plan.links[0].spec, &plan.links[1].spec);
    assert_eq!(forward.loss, Some(LossModel::Bernoulli(0.001)));
    let jitter = forward.jitter.expect("given");
    assert_eq!((jitter.mean_ps, jitter.max_ps), (250 * PS_PER_US, 2500 * PS_PER_US));
    assert!(!jitter.reorder, "jitter keeps the order unless asked");
    assert_eq!(forward.reorder.map(|r| (r.probability, r.extra_ps)), Some((0.01, PS_PER_MS)));
    let noise = reverse.jitter.expect("noise is put on the ACKs");
    // 1 % and 10 % of 40 ms.
    assert_eq!((noise.mean_ps, noise.max_ps), (400 * PS_PER_US, 4 * PS_PER_MS));
    assert!(noise.reorder);
    let every = "loss = { kind = \"periodic\", every = 1000 }";
    let text = format!(
        "duration = \"1 s\"\n[link]\nrate = \"1 Mbit/s\"\nrtt = \"1 ms\"\nbuffer = \"9 packets\"\n{every}\n[[flows]]\ncontroller = \"window\""
    );
    let periodic = Scenario::parse(&text, "test.toml", Path::new("."), &[]).unwrap();
    assert_eq!(periodic.plan(None).unwrap().links[0].spec.loss, Some(LossModel::Periodic(1000)));
    let bursts = LossModel::GilbertElliott { p: 0.01, r: 0.5, loss_bad: 1.0, loss_good: 0.0 };
    assert_eq!(reverse.loss, Some(bursts));
    assert!(plan.links[1].recorded, "a reverse link with loss is recorded");
}

#[test]
fn stacks_carry_their_options() {
    let text = "stack = { kind = \"datagram\", blocking = true, overhead = \"0.06 ms\", clock = \"1 ms\" }";
    let plan_of = |flow: &str| plan(&simple(LINK, flow)).flows.remove(0);
    let flow = plan_of(text);
    let Stack::Datagram(options) = flow.stack else { panic!("{:?}", flow.stack) };
    assert!(options.blocking);
    assert_eq!((options.overhead_ps, options.clock_ps), (60 * PS_PER_US, PS_PER_MS));
    assert_eq!((flow.packets.header_bytes, flow.packets.ack_bytes), (28, 40));
    assert_eq!(options.tell_losses, LossNotice::Detected);
    let told = plan_of("stack = { kind = \"datagram\", tell_losses = \"drop\" }").stack;
    let tell_losses = LossNotice::AtDrop;
    assert_eq!(told, Stack::Datagram(DatagramOptions { tell_losses, ..Default::default() }));
    assert_eq!(plan_of("stack = \"datagram\"").stack, Stack::Datagram(Default::default()));
    let text = "stack = { kind = \"tcp\", delayed_ack = \"40 ms\", min_rto = \"1 s\", initial_window = \"3 packets\", \
                handshake = false, prr = false }";
    let Stack::Tcp(options) = plan_of(text).stack else { panic!("not tcp") };
    assert_eq!(options.delayed_ack_ps, Some(40 * PS_PER_MS));
    assert_eq!((options.min_rto_ps, options.initial_window_packets), (PS_PER_S, 3));
    assert!(!options.handshake && !options.prr);
}

#[test]
fn flow_limits_become_numbers() {
    let flow =
        "start = \"1 s\"\nstop = \"2.5 s\"\nsize = \"1 MiB\"\ncap = \"1 Gbit/s\"\nname = \"a\"";
    let flow = plan(&simple(LINK, flow)).flows.remove(0);
    assert_eq!((flow.start_ps, flow.stop_ps), (PS_PER_S, Some(2_500 * PS_PER_MS)));
    assert_eq!((flow.size_bytes, flow.cap_bytes_per_s), (Some(1 << 20), Some(125_000_000)));
    assert_eq!(flow.name, "a");
}

#[test]
fn start_times_spread_by_seed_alone() {
    let text = simple(LINK, "count = 1000\nstart = \"1 s\"\nstart_spread = \"1 s\"");
    let scenario = scenario(&text);
    let starts = |seed| -> Vec<u64> {
        let plan = scenario.plan(Some(seed)).expect("no trace");
        plan.flows.iter().map(|flow| flow.start_ps).collect()
    };
    let first = starts(1);
    assert_eq!(first, starts(1));
    assert_ne!(first, starts(2));
    assert!(first.iter().all(|start| (PS_PER_S..=2 * PS_PER_S).contains(start)));
    let mean = first.iter().sum::<u64>() as f64 / 1000.0 / PS_PER_S as f64;
    // Five standard errors of a uniform mean: 5 / sqrt(12 x 1000) = 0.046.
    assert!((mean - 1.5).abs() < 0.046, "mean start {mean} s");
    let across: f64 = (0..1000).map(|seed| starts(seed)[0] as f64 / PS_PER_S as f64).sum();
    assert!((across / 1000.0 - 1.5).abs() < 0.046, "first start over seeds {}", across / 1000.0);
}

#[test]
fn controllers_are_built_with_their_parameters() {
    let text = simple(LINK, "").replace("\"window\"", "{ name = \"window\", packets = 20 }");
    let scenario = scenario(&text);
    let path = PathInfo { now_ns: 0, packet_bytes: 1500, initial_window_packets: 10, seed: 1 };
    let window = |scenario: &Scenario| {
        let flow = scenario.plan(None).expect("no trace").flows.remove(0);
        (flow.controller_name, (flow.controller)(&path).control().cwnd_bytes)
    };
    assert_eq!(window(&scenario), ("window,packets=20".into(), 30_000));
    let other = scenario.with_controller("window,packets=40").expect("valid");
    assert_eq!(window(&other), ("window,packets=40".into(), 60_000));
    let plain = scenario.with_controller("window").expect("valid");
    assert_eq!(window(&plain), ("window".into(), 18_000));
}

#[test]
fn options_override_the_file() {
    let set = |options: &[&str]| {
        let options: Vec<String> = options.iter().map(|text| text.to_string()).collect();
        let text = simple(LINK, "");
        let scenario = Scenario::parse(&text, "test.toml", Path::new("."), &options);
        let scenario = scenario.unwrap_or_else(|error| panic!("{error}"));
        assert_eq!((scenario.overrides(), scenario.text()), (&options[..], &text[..]));
        scenario.plan(None).expect("no trace")
    };
    assert_eq!(set(&["link.rate=50 Mbit/s"]).links[0].spec.capacity, Capacity::Constant(5e7));
    assert_eq!(set(&["duration=20 s", "duration=30 s"]).duration_ps, 30 * PS_PER_S);
    // `rtt` takes the place of the file's `delay`.
    assert_eq!(set(&["link.rtt=10 ms"]).links[0].spec.delay_ps, 5 * PS_PER_MS);
    // A bare name becomes the table it stands for.
    let flow = set(&["flows.0.controller.packets=7"]).flows.remove(0);
    assert_eq!(flow.controller_name, "window,packets=7");
    let flow = set(&["flows.0.stack.min_rto=1 s"]).flows.remove(0);
    assert!(matches!(flow.stack, Stack::Tcp(tcp) if tcp.min_rto_ps == PS_PER_S));
    assert_eq!(set(&["packets.data=9000 B"]).flows[0].packets.data_bytes, 9000);
}

#[test]
fn traces_give_their_mean_rate() {
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join("plan-12-megabit.down");
    std::fs::write(&path, "1\n2\n3\n4\n").expect("the build folder can be written");
    let link = "trace = \"plan-12-megabit.down\"\nonce = true\ndelay = \"20 ms\"";
    let plan = plan(&simple(link, ""));
    assert!(matches!(plan.links[0].spec.capacity, Capacity::Trace { once: true, .. }));
    // 12.032 Mbit/s x 40 ms = 60,160 bytes.
    assert_eq!(plan.links[0].spec.buffer.bytes, Some(60_160));
}

#[test]
fn links_are_routed_and_mirror_themselves() {
    let text = r#"
        duration = "10 s"
        [[links]]
        name = "slow"
        from = "a"
        to = "b"
        rate = "10 Mbit/s"
        delay = "30 ms"
        [[links]]
        from = "a"
        to = "c"
        rate = "20 Mbit/s"
        delay = "10 ms"
        [[links]]
        from = "c"
        to = "b"
        rate = "30 Mbit/s"
        delay = "10 ms"
        reverse = { rate = "1 Mbit/s", buffer = "100 packets" }
        [[flows]]
        controller = "window"
        from = "a"
        to = "b"
    "#;
    let plan = plan(text);
    assert_eq!(plan.flows[0].forward, [2, 4]);
    assert_eq!(plan.flows[0].reverse, [5, 3]);
    let names: Vec<&str> = plan.links.iter().map(|link| link.name.as_str()).collect();
    let expected = ["slow", "slow-reverse", "link-2", "link-2-reverse", "link-3", "link-3-reverse"];
    assert_eq!(names, expected);
    assert!(plan.links.iter().all(|link| link.recorded));
    assert_eq!(plan.links[1].spec.capacity, Capacity::Constant(1e7));
    assert_eq!(plan.links[5].spec.capacity, Capacity::Constant(1e6));
    assert_eq!(plan.links[5].spec.buffer.packets, Some(100));
    // 20 Mbit/s x 40 ms.
    assert_eq!(plan.links[2].spec.buffer.bytes, Some(100_000));
}

#[test]
fn many_flows_cost_little_to_plan() {
    let scenario = scenario(&simple(LINK, "count = 100000"));
    let plan = scenario.plan(None).expect("no trace");
    assert_eq!(plan.flows.len(), 100_000);
    assert_eq!(plan.flows[99_999].name, "window-100000");
    assert_eq!(plan.links.len(), 2);
}

/// A thousandth of the run, from 1 ms to 1 s; more with so many flows that the series would hold over 200,000 samples.
#[test]
fn the_default_sample_interval_bounds_the_series() {
    let sample = |duration: &str, flows: u32| {
        let text = format!(
            "duration = \"{duration}\"\n[link]\nrate = \"1 Gbit/s\"\nrtt = \"20 ms\"\n[[flows]]\ncontroller = \"window\"\ncount = {flows}"
        );
        Scenario::parse(&text, "test.toml", Path::new("."), &[]).unwrap().sample_ps() / PS_PER_MS
    };
    assert_eq!(sample("10 s", 1), 10);
    assert_eq!(sample("100 ms", 1), 1);
    assert_eq!(sample("3600 s", 1), 1000);
    assert_eq!(sample("10 s", 200), 10);
    assert_eq!(sample("10 s", 1000), 50);
    assert_eq!(sample("10 s", 10_000), 500);
}

/// Nothing in the scenario speaks of telemetry: the controller asks for it, the links give it.
#[test]
fn hpcc_is_written_like_any_other_controller() {
    let text = "duration = \"20 ms\"\nwarmup = \"10 ms\"\nsample = \"1 ms\"\n[link]\nrate = \"10 Gbit/s\"\nrtt = \"100 us\"\n\
                buffer = \"1000 packets\"\n[[flows]]\ncontroller = { name = \"hpcc\", base_rtt = \"110 us\" }\n";
    let outcome = paceline_sim::run(plan(text)).unwrap_or_else(|error| panic!("{error}"));
    let used = outcome.links[0].utilization.unwrap_or_default();
    assert!((used - 0.95).abs() < 0.005, "{used}");
}
