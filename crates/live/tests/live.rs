//! Plans carried out over real sockets, for a second or two each. They need root and /dev/net/tun, and skip with a word where
//! these are not. Bounds are wide: this machine may be busy.

#[path = "../../emulator/tests/common/mod.rs"]
mod common;

use std::net::SocketAddrV4;
use std::ops::ControlFlow;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc;
use std::thread;

use common::turn;
use paceline_cc::{Controller, Needs, PathInfo, registry};
use paceline_live::{Finished, LiveError, Options, contest, run};
use paceline_net::queue::{Ecn, Tag};
use paceline_net::{Buffer, Capacity, LinkSpec, LossModel, PS_PER_MS, PS_PER_S, QueueSpec};
use paceline_sim::{DatagramOptions, FlowPlan, NamedLink, PacketSizes, Plan, Stack, TcpOptions};

/// Both directions of a link: `mbps` and 20 ms there, 20 ms back.
fn links(mbps: f64) -> Vec<NamedLink> {
    let delay = LinkSpec { delay_ps: 20 * PS_PER_MS, ..LinkSpec::default() };
    let buffer = Buffer { packets: Some(100), ..Buffer::default() };
    let there = LinkSpec { capacity: Capacity::Constant(mbps * 1e6), buffer, ..delay.clone() };
    let named = |name: &str, spec| NamedLink { name: name.into(), spec, recorded: true };
    vec![named("there", there), named("back", delay)]
}

fn flow(controller: &str, params: &[(&str, f64)], stack: Stack) -> FlowPlan {
    let spec = registry::find(controller).unwrap();
    let mut values = spec.params(None).unwrap();
    for (key, value) in params {
        values.set(key, *value).unwrap();
    }
    FlowPlan {
        name: controller.into(),
        controller_name: controller.into(),
        needs: spec.needs,
        fields: spec.fields.to_vec(),
        controller: Box::new(move |path: &PathInfo| -> Box<dyn Controller> {
            (spec.build)(&values, path)
        }),
        stack,
        forward: vec![0],
        reverse: vec![1],
        start_ps: 0,
        stop_ps: None,
        size_bytes: None,
        cap_bytes_per_s: None,
        packets: PacketSizes { data_bytes: 1500, header_bytes: 28, ack_bytes: 40 },
        tag: Tag::default(),
    }
}

fn datagram(controller: &str, params: &[(&str, f64)]) -> FlowPlan {
    flow(controller, params, Stack::Datagram(DatagramOptions::default()))
}

fn tcp(controller: &str) -> FlowPlan {
    flow(controller, &[], Stack::Tcp(TcpOptions::default()))
}

fn plan(links: Vec<NamedLink>, flows: Vec<FlowPlan>, seconds: u64) -> Plan {
    Plan {
        links,
        flows,
        duration_ps: seconds * PS_PER_S,
        warmup_ps: PS_PER_S / 2,
        sample_ps: PS_PER_S / 10,
        seed: 1,
    }
}

fn carry_out(plan: Plan) -> Finished {
    let mut watch = |_| ControlFlow::Continue(());
    let finished = run(plan, Options::default(), &mut watch).unwrap().unwrap();
    for flow in &finished.outcome.flows {
        let known = flow.delivered_packets + flow.lost_packets + flow.in_flight_packets;
        assert_eq!(flow.sent_packets, known, "sent = delivered + lost + in flight");
    }
    finished
}

#[test]
fn a_window_gives_its_rate_at_the_base_rtt() {
    let Some(_turn) = turn("a_window_gives_its_rate_at_the_base_rtt") else { return };
    let finished = carry_out(plan(links(50.0), vec![datagram("window", &[("packets", 20.0)])], 2));
    let flow = &finished.outcome.flows[0];
    let rtt = flow.rtt_ms.unwrap();
    // 40 ms and 20 packets of 0.24 ms at most.
    assert!(rtt.min >= 40.0 && rtt.p50 < 60.0, "{rtt:?}");
    let expected = 20.0 * 1500.0 * 8.0 / (rtt.mean / 1e3);
    assert!((flow.throughput_bps / expected - 1.0).abs() < 0.1, "{} bit/s", flow.throughput_bps);
    assert!((flow.goodput_bps / flow.throughput_bps - 1424.0 / 1500.0).abs() < 1e-9);
    assert_eq!(flow.lost_packets, 0);
    assert_eq!(finished.packets[0].ack_bytes, 76);
    let queueing = flow.queueing_delay_ms.unwrap();
    assert!(queueing.min >= 0.24 - 1e-6 && queueing.max <= 20.0 * 0.24 + 1e-6, "{queueing:?}");
    assert_eq!((flow.series.rows(), finished.outcome.links.len()), (20, 2));
    let series = flow.series.column("throughput_bps").unwrap();
    assert!(series.values[10..].iter().all(|bps| *bps > 0.0), "{:?}", series.values);
}

#[test]
fn a_cap_is_kept_and_losses_are_told() {
    let Some(_turn) = turn("a_cap_is_kept_and_losses_are_told") else { return };
    let mut links = links(50.0);
    links[0].spec.loss = Some(LossModel::Bernoulli(0.05));
    let mut capped = datagram("window", &[("packets", 500.0)]);
    capped.cap_bytes_per_s = Some(10_000_000 / 8);
    let mut late = datagram("reno", &[]);
    late.start_ps = PS_PER_S;
    let finished = carry_out(plan(links, vec![capped, late], 3));
    let [capped, reno] = &finished.outcome.flows[..] else { panic!("two flows") };
    assert!((8e6..9.9e6).contains(&capped.throughput_bps), "{}", capped.throughput_bps);
    let lost = capped.lost_packets as f64 / capped.sent_packets as f64;
    assert!((0.02..0.09).contains(&lost), "{lost}");
    // 5 % of loss hold Reno's window near 5 packets, if it is told.
    assert!(reno.cwnd_bytes.unwrap().p50 < 20.0 * 1500.0, "{:?}", reno.cwnd_bytes);
    assert_eq!((reno.start_s, reno.series.rows()), (1.0, 21));
}

#[test]
fn a_transfer_completes() {
    let Some(_turn) = turn("a_transfer_completes") else { return };
    let (mut datagram, mut stream) = (datagram("window", &[("packets", 20.0)]), tcp("cubic"));
    (datagram.size_bytes, stream.size_bytes) = (Some(1424 * 100), Some(1448 * 100));
    let finished = carry_out(plan(links(50.0), vec![datagram, stream], 2));
    let [datagram, stream] = &finished.outcome.flows[..] else { panic!("two flows") };
    assert_eq!(datagram.delivered_packets, 100);
    // Five windows, a round trip each.
    let completion = datagram.completion_s.unwrap();
    assert!((0.2..0.6).contains(&completion), "{completion} s");
    assert!(stream.delivered_packets >= 100);
    // 10, 20, 40, … packets: four round trips and the handshake.
    let completion = stream.completion_s.unwrap();
    assert!((0.16..1.0).contains(&completion), "{completion} s");
}

#[test]
fn the_kernels_tcp_fills_the_link() {
    let Some(_turn) = turn("the_kernels_tcp_fills_the_link") else { return };
    let mut capped = tcp("reno");
    capped.cap_bytes_per_s = Some(4_000_000 / 8);
    let finished = carry_out(plan(links(20.0), vec![tcp("cubic"), capped], 4));
    let [cubic, reno] = &finished.outcome.flows[..] else { panic!("two flows") };
    assert!(finished.outcome.links[0].utilization.unwrap() > 0.8);
    assert!(reno.throughput_bps < 4.4e6 && reno.throughput_bps > 1e6, "{}", reno.throughput_bps);
    for flow in [cubic, reno] {
        assert!(flow.rtt_ms.unwrap().min >= 40.0, "{:?}", flow.rtt_ms);
        let share = flow.goodput_bps / flow.throughput_bps;
        assert!((0.85..=1.0).contains(&share), "{share}");
    }
    assert!(cubic.cwnd_bytes.unwrap().max > 60_000.0);
    assert!((cubic.pacing_bps, reno.pacing_bps.is_some()) == (None, true));
}

/// Flows of both stacks at 40 ms and at 100 ms, over a link that their windows and caps do not fill, live and simulated.
#[test]
fn flows_have_rtts_of_their_own_as_in_the_simulator() {
    let Some(_turn) = turn("flows_have_rtts_of_their_own_as_in_the_simulator") else { return };
    let far = |mut flow: FlowPlan| {
        // 20 ms there and 40 ms back more than the others.
        (flow.forward, flow.reverse) = (vec![2, 0], vec![1, 3]);
        flow
    };
    let asked = || {
        let mut links = links(50.0);
        for ms in [20, 40] {
            let spec = LinkSpec { delay_ps: ms * PS_PER_MS, ..LinkSpec::default() };
            links.push(NamedLink { name: format!("far-{ms}"), spec, recorded: ms == 20 });
        }
        let mut flows = vec![
            datagram("window", &[("packets", 20.0)]),
            far(datagram("window", &[("packets", 20.0)])),
            tcp("reno"),
            far(tcp("reno")),
        ];
        flows.iter_mut().skip(2).for_each(|flow| flow.cap_bytes_per_s = Some(4_000_000 / 8));
        plan(links, flows, 3)
    };
    let live = carry_out(asked()).outcome;
    let sim = paceline_sim::run(asked()).unwrap();
    for (flow, (live, sim)) in live.flows.iter().zip(&sim.flows).enumerate() {
        let base = if flow % 2 == 0 { 40.0 } else { 100.0 };
        let (rtt, sim_rtt) = (live.rtt_ms.unwrap(), sim.rtt_ms.unwrap());
        assert!(rtt.min >= base, "flow {flow}: {rtt:?}");
        assert!((rtt.p50 - sim_rtt.p50).abs() < 20.0, "flow {flow}: {rtt:?} and {sim_rtt:?}");
        let share = live.throughput_bps / sim.throughput_bps;
        assert!((0.7..1.3).contains(&share), "flow {flow}: {share} of the simulator's rate");
        let queueing = live.queueing_delay_ms.unwrap();
        assert!(
            queueing.min >= 0.24 - 1e-6,
            "flow {flow}: propagation is no queueing, {queueing:?}"
        );
        assert!(queueing.p50 < 15.0, "flow {flow}: {queueing:?}");
    }
    // The link of the far flows alone: what it carried is what they had.
    let far = live.links.iter().find(|link| link.name == "far-20").unwrap();
    let expected = live.flows[1].throughput_bps + live.flows[3].throughput_bps;
    let share = far.throughput_bps / expected;
    assert!((0.9..1.1).contains(&share), "{share} of what the far flows had");
}

/// Over a queue that marks from nearly a BDP on, so that half a window is enough, and has room for more than any flow puts there.
#[test]
fn queues_mark_the_packets_of_both_stacks() {
    let Some(_turn) = turn("queues_mark_the_packets_of_both_stacks") else { return };
    let asked = |mut flow: FlowPlan, ecn| {
        flow.tag.ecn = ecn;
        let mut links = links(20.0);
        links[0].spec.queue = QueueSpec::Step { packets: 60 };
        links[0].spec.buffer = Buffer { packets: Some(1000), ..Buffer::default() };
        plan(links, vec![flow], 3)
    };
    for (name, ecn) in [("dctcp", Ecn::Capable), ("prague", Ecn::Scalable), ("reno", Ecn::Capable)]
    {
        let case = || match name {
            "reno" => asked(tcp(name), ecn),
            _ => asked(datagram(name, &[]), ecn),
        };
        let (live, sim) = (carry_out(case()), paceline_sim::run(case()).unwrap());
        let [link, sim_link] = [&live.outcome, &sim].map(|of| &of.links[0]);
        assert!(link.marks > 0 && sim_link.marks > 0, "{name}: {} {}", link.marks, sim_link.marks);
        assert_eq!((link.drops, sim_link.drops), (0, 0), "{name}");
        let used = [link, sim_link].map(|link| link.utilization.unwrap());
        assert!((used[0] - used[1]).abs() < 0.2, "{name}: {used:?}");
        // A flow that did not hear of the marks would fill the buffer, half a second.
        let waits = [link, sim_link].map(|link| link.queue_ms.unwrap().p50);
        assert!((waits[0] - waits[1]).abs() < 15.0, "{name}: {waits:?}");
        println!("{name}: {used:?} {waits:?} ms {} {} marks", link.marks, sim_link.marks);
        let is_datagram = live.packets[0].header_bytes == 76;
        assert_eq!(live.packets[0].ack_bytes, if is_datagram { 84 } else { 52 });
    }
    let deaf = carry_out(asked(tcp("reno"), Ecn::NotCapable));
    assert_eq!(deaf.outcome.links[0].marks, 0);
}

#[test]
fn what_there_is_not_is_refused_by_name() {
    let refused = |change: &dyn Fn(&mut Plan)| {
        let mut plan = plan(links(10.0), vec![datagram("window", &[])], 1);
        change(&mut plan);
        match run(plan, Options::default(), &mut |_| ControlFlow::Continue(())) {
            Err(LiveError::Emulator(error)) => panic!("not refused: {error}"),
            Err(error) => error.to_string(),
            Ok(_) => panic!("not refused"),
        }
    };
    let error = refused(&|plan| plan.flows[0] = tcp("latte"));
    assert!(error.contains("controller = latte") && error.contains("reno, cubic, bbr1"), "{error}");
    let error = refused(&|plan| plan.flows[0].needs = Needs::INT);
    assert!(error.contains("needs int, which the live datagram endpoint"), "{error}");
    let error = refused(&|plan| {
        plan.flows[0] = tcp("reno");
        plan.flows[0].tag.ecn = Ecn::Scalable;
    });
    assert!(error.contains("ecn = ect1: the kernel's TCP sends ECT(0)"), "{error}");
    let error = refused(&|plan| plan.flows[0].packets.data_bytes = 100);
    assert!(error.contains("packets.data = 100 B"), "{error}");
    let error = refused(&|plan| {
        let mut back = datagram("window", &[]);
        (back.forward, back.reverse) = (vec![1], vec![0]);
        plan.flows.push(back);
    });
    assert!(error.starts_with("link `there` carries data of flow `window` and ACKs of"), "{error}");
    let error = refused(&|plan| {
        let mut other = datagram("window", &[]);
        (other.name, other.forward) = ("other".into(), vec![2]);
        plan.links.push(links(10.0).remove(1));
        plan.flows.push(other);
    });
    assert!(error.starts_with("flow `other` does not cross link `there`"), "{error}");
}

#[test]
fn a_watch_can_break_a_run_off() {
    let Some(_turn) = turn("a_watch_can_break_a_run_off") else { return };
    let mut watch = |now| match now > PS_PER_S / 2 {
        true => ControlFlow::Break(()),
        false => ControlFlow::Continue(()),
    };
    let flows = vec![datagram("window", &[]), tcp("reno")];
    let begun = std::time::Instant::now();
    let finished = run(plan(links(10.0), flows, 600), Options::default(), &mut watch).unwrap();
    assert!(finished.is_none() && begun.elapsed().as_secs() < 20);
}

#[test]
fn sender_and_receiver_as_programs_of_their_own() {
    let stop = AtomicBool::new(false);
    let (port, known) = mpsc::channel();
    let sent = thread::scope(|scope| {
        let receiver =
            scope.spawn(|| contest::receive(0, |ready| port.send(ready).unwrap(), &stop));
        let to = SocketAddrV4::new([127, 0, 0, 1].into(), known.recv().unwrap());
        let mut flow = datagram("window", &[("packets", 5.0)]);
        flow.cap_bytes_per_s = Some(100 * 1500);
        let never = AtomicBool::new(false);
        let sent = contest::send(flow, to, 1, PS_PER_S / 2, &never).unwrap();
        stop.store(true, Ordering::Relaxed);
        receiver.join().unwrap().unwrap();
        sent
    });
    assert!((30..=51).contains(&sent.sent_packets), "{sent:?}");
    assert!(sent.acked_packets + 5 >= sent.sent_packets, "{sent:?}");
    assert_eq!(sent.missing_packets, 0);
}
