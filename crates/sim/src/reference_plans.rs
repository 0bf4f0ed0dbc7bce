//! Plans by name, each made for one thing that the engine does differently from the reference: links passed through, lanes,
//! batches, ties within a picosecond, alarms. Most links are not recorded, for a recorded link is never passed through.

use paceline_cc::{Needs, registry};
use paceline_net::queue::{FqSpec, QueueSpec};
use paceline_net::{
    Buffer, Capacity, Jitter, LinkSpec, LossModel, PS_PER_S, PS_PER_US, Reorder, Trace,
};

use super::common::*;
use crate::plan::{DatagramOptions, FlowPlan, LossNotice, PacketSizes, Plan, Stack, TcpOptions};

/// A name and the plan it stands for, made anew at every call.
pub(super) type Case = (&'static str, fn() -> Plan);

pub(super) const CASES: [Case; 36] = [
    ("dumbbell with access links of a rate", dumbbell),
    ("dumbbell whose return link all flows share", dumbbell_with_a_shared_return),
    ("dumbbell without a record", dumbbell_without_a_record),
    ("equal flows that begin at one instant", equal_flows),
    ("equal flows, samples and the end at one instant with arrivals", equal_flows_at_samples),
    ("star of 100 delays", star_of_delays),
    ("star of 100 equal delays", star_of_equal_delays),
    ("star of 100 delays of whole milliseconds", star_of_round_delays),
    ("star of 100 access links", star_of_access_links),
    ("lanes whose last links are ordered otherwise than their first", crossed_lanes),
    ("lanes that share their last links", merging_lanes),
    ("a flow that begins as another's packet passes", begin_at_an_arrival),
    ("a delayed ACK that is due as another flow begins", begin_at_a_delayed_ack),
    ("parking lot", parking_lot),
    ("ring", ring),
    ("senders and receivers at one junction", both_directions),
    ("links of no delay and no rate", links_of_no_time),
    ("a path that crosses links twice", loops),
    ("queues of every kind, crossed twice", queues_crossed_twice),
    ("a pacing queue on a trace, crossed twice", pacing_on_a_trace),
    ("the longest path", longest_path),
    ("ACKs return over the link of the data", one_link_both_ways),
    ("a rate behind a link that reorders", rate_behind_reordering),
    ("jitter, loss and reordering between links passed through", impairments),
    ("delayed ACKs", delayed_acks),
    ("short transfers", short_transfers),
    ("long delays and tiny packets", long_and_tiny),
    ("one bit per second", slow_rates),
    ("ten terabits per second", fast_rates),
    ("hosts that sleep", blocking_hosts),
    ("losses told at the drop", losses_told_at_the_drop),
    ("every controller over every host", every_controller),
    ("telemetry in a dumbbell, beside flows without", telemetry_in_a_dumbbell),
    ("telemetry over links of every kind", telemetry_of_every_kind),
    ("telemetry with losses, delayed ACKs and hosts that sleep", telemetry_with_losses),
    ("telemetry around a ring and twice over a link", telemetry_around_a_ring),
];

// ------------------------------------------------------------------------------------------------------------- ingredients

/// A held window of so many packets, sent without a handshake, so that times are round.
pub(super) fn window(packets: f64, forward: &[u32], reverse: &[u32]) -> FlowPlan {
    let options = TcpOptions { handshake: false, ..TcpOptions::default() };
    FlowPlan {
        controller: registered("window", None, &[("packets", packets)]),
        stack: Stack::Tcp(options),
        ..flow("window", forward, reverse)
    }
}

pub(super) const TCP_CONTROLLERS: [&str; 7] =
    ["cubic", "reno", "latte", "mpc-2020", "bbr1", "aimd", "window"];

/// The n-th controller, over and over.
fn nth(number: u32) -> &'static str {
    TCP_CONTROLLERS[number as usize % TCP_CONTROLLERS.len()]
}

/// A rate, a delay, and nothing to drop.
fn rate(bps: f64, delay_ms: f64) -> LinkSpec {
    LinkSpec { capacity: Capacity::Constant(bps), ..delay(delay_ms) }
}

/// A plan that records only the `recorded` links.
pub(super) fn network(
    links: Vec<LinkSpec>,
    recorded: &[usize],
    flows: Vec<FlowPlan>,
    seconds: f64,
) -> Plan {
    let mut plan = plan(links, flows, seconds, seconds / 8.0);
    for (number, link) in plan.links.iter_mut().enumerate() {
        link.recorded = recorded.contains(&number);
    }
    plan
}

pub(super) fn datagrams(flow: FlowPlan, options: DatagramOptions) -> FlowPlan {
    FlowPlan { stack: Stack::Datagram(options), ..flow }
}

// ---------------------------------------------------------------------------------------------------------------- dumbbells

/// Ten pairs of hosts at a bottleneck (link 0, back over link 1). Per pair: sender's access link, link to the receiver, and both
/// ways back. Two flows a pair.
fn pairs(back: LinkSpec, recorded: &[usize]) -> Plan {
    const PAIRS: u32 = 10;
    let mut links = vec![bottleneck(50e6, 5.0, 60), back];
    for pair in 0..PAIRS {
        let ms = 1.0 + f64::from(pair % 4);
        links.extend([rate(1e9, ms), delay(ms), rate(1e9, 1.0), rate(400e6, 1.0)]);
    }
    let flows = (0..2 * PAIRS).map(|number| {
        let first = 2 + 4 * (number % PAIRS);
        let start_ps = u64::from(number / 4) * 20 * MS;
        let (forward, reverse) = ([first, 0, first + 2], [first + 3, 1, first + 1]);
        FlowPlan { start_ps, ..flow(nth(number), &forward, &reverse) }
    });
    network(links, recorded, flows.collect(), 2.0)
}

fn dumbbell() -> Plan {
    pairs(delay(5.0), &[0])
}

fn dumbbell_with_a_shared_return() -> Plan {
    pairs(rate(2e6, 5.0), &[0, 1])
}

fn dumbbell_without_a_record() -> Plan {
    let mut plan = pairs(rate(10e6, 5.0), &[]);
    plan.links[0].spec.buffer = Buffer::default();
    plan
}

// -------------------------------------------------------------------------------------------------------------------- ties

/// Twelve equal flows, each over its own links: all that one does, all do in the same picosecond.
fn equal(recorded: &[usize], seconds: f64) -> Plan {
    let mut links = vec![bottleneck(12e6, 10.0, 40), delay(10.0)];
    let mut flows = Vec::new();
    for number in 0..12 {
        let first = links.len() as u32;
        links.extend([rate(120e6, 2.0), delay(3.0), delay(5.0)]);
        let name = if number % 2 == 0 { "reno" } else { "window" };
        let controller = if number % 2 == 0 {
            registered(name, None, &[])
        } else {
            registered(name, None, &[("packets", f64::from(number))])
        };
        let (forward, reverse) = ([first, 0, first + 1], [first + 2, 1]);
        flows.push(FlowPlan { controller, ..window(1.0, &forward, &reverse) });
    }
    network(links, recorded, flows, seconds)
}

fn equal_flows() -> Plan {
    equal(&[0], 4.0)
}

/// Packets last 1 ms at the bottleneck and delays are whole ms: arrivals fall on samples, on the warm-up and on the end.
fn equal_flows_at_samples() -> Plan {
    let mut plan = equal(&[0, 1, 2], 1.017);
    (plan.sample_ps, plan.warmup_ps) = (MS, 30 * MS);
    plan.flows.iter_mut().for_each(|flow| flow.start_ps = 5 * MS);
    plan
}

/// More lanes into one junction than it looks at one by one.
fn star(
    bps: f64,
    link: impl Fn(u32) -> LinkSpec,
    windows: [f64; 3],
    controllers: [&str; 2],
) -> Plan {
    const SENDERS: u32 = 100;
    let mut links = vec![bottleneck(bps, 3.0, 100), delay(1.0)];
    links.extend((0..SENDERS).map(link));
    let flows = (0..SENDERS).map(|number| {
        let (forward, reverse) = ([2 + number, 0], [1]);
        match number % 5 {
            turn @ 0..3 => window(windows[turn as usize], &forward, &reverse),
            turn => flow(controllers[turn as usize - 3], &forward, &reverse),
        }
    });
    network(links, &[0], flows.collect(), 2.0)
}

fn star_of_delays() -> Plan {
    let link = |number| delay(0.05 * f64::from(number * 37 % 100));
    star(40e6, link, [1.0, 4.0, 9.0], ["cubic", "bbr1"])
}

fn star_of_equal_delays() -> Plan {
    star(40e6, |_| delay(4.0), [1.0, 2.0, 3.0], ["reno", "mpc-2020"])
}

/// Packets last 1 ms. What comes over the shortest way then often ties with what is known to come over another.
fn star_of_round_delays() -> Plan {
    star(12e6, |number| delay(4.0 + f64::from(number % 3)), [1.0, 2.0, 3.0], ["window", "reno"])
}

fn star_of_access_links() -> Plan {
    star(40e6, |number| rate(10e6, f64::from(number % 3)), [2.0, 2.0, 7.0], ["latte", "cubic"])
}

/// Lane by lane, the first links ascend as the last descend. All delays are equal, so arrivals tie, and the last links decide.
fn crossed_lanes() -> Plan {
    let mut links = vec![bottleneck(6e6, 10.0, 12), delay(10.0)];
    links.extend((0..16).map(|_| delay(2.0)));
    let flows = (0..8).map(|n| window(2.0 + f64::from(n), &[2 + n, 17 - n, 0], &[1]));
    network(links, &[0], flows.collect(), 3.0)
}

/// Delays that several lanes have in common, entered from links in both orders and also from the side.
fn merging_lanes() -> Plan {
    let mut links = vec![bottleneck(6e6, 10.0, 12), delay(10.0), delay(3.0), delay(1.0)];
    links.extend((0..6).map(|_| delay(2.0)));
    let ways: [&[u32]; 7] = [
        &[9, 3, 2, 0],
        &[4, 3, 2, 0],
        &[8, 2, 0],
        &[5, 2, 3, 0],
        &[7, 3, 0],
        &[6, 2, 3, 0],
        &[2, 3, 0],
    ];
    let flows = (2..).zip(ways).map(|(packets, way)| window(f64::from(packets), way, &[1]));
    network(links, &[0], flows.collect(), 3.0)
}

/// The second flow's sender sits where the first flow's packets pass, and begins as the first of them gets there.
fn begin_at_an_arrival() -> Plan {
    let links = vec![bottleneck(6e6, 10.0, 5), delay(10.0), delay(10.0)];
    let second = FlowPlan { start_ps: 10 * MS, ..window(6.0, &[0], &[1]) };
    network(links, &[0], vec![window(6.0, &[2, 0], &[1]), second], 2.0)
}

/// The first flow's receiver sits where the third flow's sender does, and acknowledges its last packet, after a delay, at the
/// moment at which the third begins.
fn begin_at_a_delayed_ack() -> Plan {
    let links = vec![delay(10.0), bottleneck(1e6, 5.0, 4), delay(3.0)];
    let delayed = TcpOptions { delayed_ack_ps: Some(40 * MS), handshake: false, ..<_>::default() };
    // 17 packets of which the last waits for its ACK alone: 16 are acknowledged at once.
    let first = FlowPlan {
        stack: Stack::Tcp(delayed),
        size_bytes: Some(17 * 1448),
        ..window(17.0, &[0], &[1])
    };
    let at_once = FlowPlan { start_ps: 50 * MS, ..window(4.0, &[1], &[2]) };
    let arrival = FlowPlan { start_ps: 40 * MS, ..window(2.0, &[0], &[1]) };
    network(links, &[1], vec![first, arrival, at_once], 1.0)
}

// ------------------------------------------------------------------------------------------------------------------ shapes

/// Three bottlenecks in a row, one flow over all, one over each and one over each neighbouring two. The middle one drops nothing
/// and is not recorded.
fn parking_lot() -> Plan {
    let mut links = vec![bottleneck(20e6, 4.0, 30), rate(15e6, 4.0), bottleneck(20e6, 4.0, 30)];
    links.extend([delay(12.0), rate(1e9, 0.0), rate(1e9, 1.0)]);
    let flows = [
        flow("cubic", &[4, 0, 1, 2], &[3]),
        flow("reno", &[5, 0], &[3]),
        flow("bbr1", &[5, 1], &[3]),
        flow("latte", &[2], &[3]),
        flow("reno", &[4, 0, 1], &[3]),
        flow("mpc-2020", &[1, 2], &[3]),
    ];
    network(links, &[0, 2], flows.into(), 3.0)
}

/// Every link of a circle is the way there of some flows and the way back of others: no junction is before all others.
fn ring() -> Plan {
    const LINKS: u32 = 5;
    let spec = |number| if number % 2 == 0 { bottleneck(8e6, 3.0, 20) } else { rate(9e6, 3.0) };
    let links = (0..LINKS).map(spec).chain((0..LINKS).map(|_| rate(100e6, 0.5))).collect();
    let flows = (0..3 * LINKS).map(|number| {
        let at = |step: u32| (number + step) % LINKS;
        flow(nth(number), &[LINKS + at(0), at(0), at(1)], &[at(2), at(3), at(4)])
    });
    network(links, &[0, 3], flows.collect(), 2.0)
}

/// Data of one half of the flows crosses the ACKs of the other: at both junctions sit senders and receivers.
fn both_directions() -> Plan {
    let links = vec![bottleneck(10e6, 10.0, 25), bottleneck(10e6, 10.0, 25)];
    let flows = (0..10).map(|number| {
        let (there, back) = (number % 2, 1 - number % 2);
        FlowPlan { start_ps: u64::from(number / 4) * MS, ..flow(nth(number), &[there], &[back]) }
    });
    network(links, &[], flows.collect(), 3.0)
}

fn links_of_no_time() -> Plan {
    let mut links = vec![bottleneck(10e6, 0.0, 20), delay(0.0), delay(0.0), delay(0.0)];
    links.extend([delay(1.0), delay(0.0)]);
    let flows = [
        flow("reno", &[1, 0, 2], &[3]),
        flow("window", &[2, 1, 3, 0], &[5, 1]),
        flow("cubic", &[0], &[2, 3, 1]),
        flow("bbr1", &[5, 0, 5], &[4]),
    ];
    network(links, &[], flows.into(), 0.5)
}

fn loops() -> Plan {
    let links = vec![
        bottleneck(10e6, 2.0, 20),
        delay(3.0),
        rate(50e6, 1.0),
        rate(80e6, 0.2),
        // Crossed twice between two junctions.
        rate(20e6, 0.5),
        rate(20e6, 0.5),
        delay(1.0),
    ];
    let flows = [
        flow("reno", &[0, 1, 0], &[1]),
        flow("cubic", &[1, 1, 0, 2], &[2, 1, 2]),
        flow("latte", &[1, 3, 1, 3, 0], &[3, 3]),
        flow("window", &[2, 4, 6, 4, 0], &[0, 1]),
        flow("window", &[3, 5, 5, 0], &[1]),
    ];
    network(links, &[], flows.into(), 2.0)
}

/// Pacing ends between two opportunities, long after the last: the next one is to come, not to be made up for.
fn pacing_on_a_trace() -> Plan {
    let queue = QueueSpec::Fq(FqSpec { flow_rate_bps: Some(3e6), ..FqSpec::default() });
    let times = vec![1, 1, 1, 1, 1, 4, 13, 13, 13, 13, 13, 13, 149, 172, 175, 200, 268, 268, 392];
    let trace = Trace::from_opportunities(times).expect("ascending");
    let links = vec![
        LinkSpec { queue, delay_ps: 3 * MS + PS_PER_US, ..traced(trace) },
        rate(287_323_644.634_945_03, 3.916),
    ];
    let options = DatagramOptions { clock_ps: 1, ..DatagramOptions::default() };
    let flow = FlowPlan { start_ps: 149 * MS, ..flow("reno", &[0, 0], &[1]) };
    network(links, &[], vec![datagrams(flow, options)], 4.0)
}

/// Every queue on a trace, on a rate with jitter, and on a link with nothing to wait for; two flows each.
fn queues_crossed_twice() -> Plan {
    let times = vec![2, 3, 3, 3, 10, 11, 12, 12, 25, 27, 31, 60];
    let trace = Trace::from_opportunities(times).expect("ascending");
    let jitter = Jitter { mean_ps: MS, max_ps: 4 * MS, reorder: true };
    let kinds = [
        LinkSpec { delay_ps: 10 * MS, ..traced(trace) },
        LinkSpec { jitter: Some(jitter), ..rate(4e6, 2.0) },
        delay(2.0),
    ];
    let buffer = Buffer { packets: Some(30), ..Buffer::default() };
    let links = queues().into_iter().flat_map(|queue| {
        let of = |kind: &LinkSpec| LinkSpec { queue: queue.clone(), buffer, ..kind.clone() };
        kinds.each_ref().map(of)
    });
    let mut links: Vec<LinkSpec> = links.collect();
    let back = links.len() as u32;
    links.push(delay(1.0));
    let flows = (0..back).flat_map(|link| {
        let reno =
            FlowPlan { cap_bytes_per_s: Some(1_000_000), ..flow("reno", &[link, link], &[back]) };
        [reno, window(7.0, &[link, link], &[back])]
    });
    network(links, &[], flows.collect(), 1.0)
}

fn longest_path() -> Plan {
    let links = (0..256).map(|_| bottleneck(10e6, 0.1, 20)).collect();
    let path: Vec<u32> = (0..255).collect();
    network(links, &[7], vec![flow("reno", &path, &[255]), flow("cubic", &path[40..], &[255])], 2.0)
}

fn one_link_both_ways() -> Plan {
    let links = vec![bottleneck(5e6, 4.0, 30), delay(2.0)];
    let flows =
        [flow("cubic", &[0], &[0]), flow("reno", &[0, 1], &[0]), flow("aimd", &[0], &[1, 0])];
    network(links, &[0], flows.into(), 3.0)
}

// ------------------------------------------------------------------------------------------------------------- impairments

fn reordering(spec: LinkSpec) -> LinkSpec {
    LinkSpec { reorder: Some(Reorder { probability: 0.05, extra_ps: 3 * MS }), ..spec }
}

fn jittery(spec: LinkSpec, reorder: bool) -> LinkSpec {
    let jitter = Jitter { mean_ps: 300 * PS_PER_US, max_ps: 2 * MS, reorder };
    LinkSpec { jitter: Some(jitter), ..spec }
}

/// Packets enter the second link in another order than they left the first.
fn rate_behind_reordering() -> Plan {
    let links =
        vec![reordering(rate(40e6, 2.0)), rate(30e6, 2.0), delay(2.0), rate(20e6, 2.0), delay(1.0)];
    let flows = [flow("cubic", &[0, 2, 1], &[4]), flow("window", &[0, 3], &[4])];
    network(links, &[], flows.into(), 2.0)
}

fn impairments() -> Plan {
    let links = vec![
        rate(100e6, 1.0),
        jittery(delay(2.0), true),
        rate(90e6, 1.0),
        bottleneck(20e6, 4.0, 40),
        reordering(rate(200e6, 1.0)),
        delay(1.0),
        jittery(delay(6.0), false),
        LinkSpec { loss: Some(LossModel::Periodic(97)), ..delay(0.5) },
    ];
    let flows = [
        flow("cubic", &[0, 1, 2, 3, 4, 5], &[6]),
        flow("reno", &[0, 5, 1, 2, 3], &[5, 6]),
        flow("bbr1", &[5, 0, 4, 2, 3], &[7, 6]),
        datagrams(flow("aimd", &[0, 7, 2, 3, 5], &[6, 5]), DatagramOptions::default()),
    ];
    network(links, &[3], flows.into(), 2.0)
}

// -------------------------------------------------------------------------------------------------------------------- hosts

fn delayed_acks() -> Plan {
    let links = vec![bottleneck(3e6, 10.0, 30), delay(10.0), delay(10.0), rate(50e6, 1.0)];
    let flows = (0..8).map(|number| {
        let delayed_ack_ps = Some([40, 25, 10, 1][number as usize % 4] * MS);
        let stack = Stack::Tcp(TcpOptions { delayed_ack_ps, ..TcpOptions::default() });
        let forward: &[u32] = if number % 2 == 0 { &[2, 0] } else { &[3, 0] };
        FlowPlan { stack, ..flow(nth(number), forward, &[1]) }
    });
    network(links, &[0], flows.collect(), 4.0)
}

/// Flows that begin, complete or stop all the time, several of them at a time.
fn short_transfers() -> Plan {
    let mut links = vec![bottleneck(20e6, 5.0, 30), delay(5.0)];
    links.extend((0..4).map(|pair| rate(100e6, f64::from(pair))));
    let flows = (0..60_u32).map(|number| {
        let delayed_ack_ps = number.is_multiple_of(3).then_some(40 * MS);
        let handshake = number % 4 != 1;
        let options = TcpOptions { delayed_ack_ps, handshake, ..TcpOptions::default() };
        FlowPlan {
            start_ps: u64::from(number / 3) * 50 * MS,
            size_bytes: (number % 5 != 4).then_some(u64::from(number % 7) * 9_000),
            stop_ps: (number % 5 == 4).then_some(u64::from(number) * 40 * MS),
            stack: Stack::Tcp(options),
            ..flow(nth(number), &[2 + number % 4, 0], &[1])
        }
    });
    network(links, &[0], flows.collect(), 3.0)
}

/// Batches of more arrivals, and over a longer time, than fit their order's words at once.
fn long_and_tiny() -> Plan {
    let links = vec![bottleneck(50e3, 0.5, 100), delay(12_000.0), delay(18_500.0), delay(19_250.0)];
    let flows = (0..6).map(|number| {
        let packets = PacketSizes { data_bytes: 60, header_bytes: 52, ack_bytes: 52 };
        FlowPlan { packets, ..flow(nth(number), &[2 + number % 2, 0], &[1]) }
    });
    let mut plan = network(links, &[0], flows.collect(), 900.0);
    // A sample would end the batch.
    plan.sample_ps = 100 * PS_PER_S;
    plan
}

/// A packet lasts 12,000 s at the bottleneck, 24 s at the access link, and for ever on the last one's.
fn slow_rates() -> Plan {
    let links = vec![rate(1.0, 0.0), rate(500.0, 1.0), delay(0.0), rate(1e-4, 0.0)];
    let flows = [
        window(9.0, &[1, 0], &[2]),
        window(4.0, &[2, 0], &[2]),
        flow("reno", &[0], &[1]),
        window(3.0, &[2, 3], &[2]),
    ];
    let mut plan = network(links, &[0], flows.into(), 300_000.0);
    plan.sample_ps = 1000 * PS_PER_S;
    plan
}

fn fast_rates() -> Plan {
    let links = vec![
        bottleneck(10e12, 0.001, 500),
        delay(0.002),
        rate(10e12, 0.0005),
        rate(40e12, 0.0),
        rate(10e12, 0.0),
    ];
    let flows = [
        flow("cubic", &[2, 0], &[1]),
        flow("mpc-2020", &[3, 0], &[4, 1]),
        window(40.0, &[4, 0], &[1, 3]),
        window(40.0, &[4, 0, 3], &[1]),
    ];
    let mut plan = network(links, &[0], flows.into(), 40e-6);
    plan.sample_ps = PS_PER_US;
    plan
}

fn blocking_hosts() -> Plan {
    let links = vec![bottleneck(8e6, 15.0, 40), delay(15.0), rate(50e6, 0.0), delay(1.0)];
    let flows = (0..12).map(|number| {
        let options = DatagramOptions {
            blocking: number % 3 != 2,
            overhead_ps: [0, 60 * PS_PER_US, MS][number as usize % 3],
            clock_ps: if number % 2 == 0 { MS } else { 1 },
            ..DatagramOptions::default()
        };
        let forward: &[u32] = if number % 2 == 0 { &[2, 0] } else { &[3, 0] };
        let cap_bytes_per_s = (number % 4 == 1).then_some(50_000);
        FlowPlan { cap_bytes_per_s, ..datagrams(flow(nth(number), forward, &[1]), options) }
    });
    network(links, &[0], flows.collect(), 3.0)
}

/// Of every controller two flows at the entrance of a link that also loses at random: one is told at the drop, one by ACKs that
/// overtake each other. Hosts that react at once, that sleep, that take time.
fn losses_told_at_the_drop() -> Plan {
    let lossy = LinkSpec { loss: Some(LossModel::Bernoulli(0.002)), ..bottleneck(60e6, 8.0, 40) };
    let links = vec![lossy, jittery(delay(8.0), true), rate(40e6, 1.0)];
    let mut flows = Vec::new();
    for (number, spec) in
        registry::all().iter().filter(|s| !s.needs.contains(Needs::INT)).enumerate()
    {
        for tell_losses in [LossNotice::AtDrop, LossNotice::Detected] {
            let options = DatagramOptions {
                blocking: number % 3 == 1,
                overhead_ps: u64::from(number % 3 == 2) * 60 * PS_PER_US,
                tell_losses,
                ..DatagramOptions::default()
            };
            let forward: &[u32] = if number % 2 == 0 { &[0] } else { &[0, 2] };
            flows.push(datagrams(flow(spec.name, forward, &[1]), options));
        }
    }
    network(links, &[0], flows, 2.0)
}

/// Paced and unpaced, all at one bottleneck behind equal access links.
fn every_controller() -> Plan {
    let mut links = vec![bottleneck(60e6, 8.0, 120), delay(8.0)];
    let mut flows = Vec::new();
    for spec in registry::all() {
        for tcp in [true, false] {
            let first = links.len() as u32;
            links.extend([rate(1e9, 1.0), delay(1.0)]);
            let flow = flow(spec.name, &[first, 0], &[1, first + 1]);
            let options = DatagramOptions::default();
            flows.push(if tcp { flow } else { datagrams(flow, options) });
        }
    }
    network(links, &[0], flows, 3.0)
}

// ---------------------------------------------------------------------------------------------------------------- telemetry

/// Every other flow is told of its links, some of which would be passed through if nobody asked.
fn telemetry_in_a_dumbbell() -> Plan {
    let mut links = vec![bottleneck(50e6, 5.0, 60), rate(20e6, 5.0)];
    let mut flows = Vec::new();
    for pair in 0..8_u32 {
        let first = links.len() as u32;
        let ms = 1.0 + f64::from(pair % 3);
        links.extend([rate(1e9, ms), delay(1.0), rate(60e6, 1.0), rate(400e6, 1.0)]);
        let name = if pair % 2 == 0 { "hpcc" } else { nth(pair) };
        let (forward, reverse) = ([first, first + 1, 0, first + 2], [first + 3, 1, first + 1]);
        let start_ps = u64::from(pair / 2) * 50 * MS;
        flows.push(FlowPlan { start_ps, ..flow(name, &forward, &reverse) });
    }
    network(links, &[0], flows, 2.0)
}

/// Queues of each kind, a trace, a limit on the wait, rates that change, all shared with what else there is.
fn telemetry_of_every_kind() -> Plan {
    let steps = [(0, 30e6), (300 * MS, 8e6), (900 * MS, 50e6)];
    let trace = Trace::from_opportunities(vec![1, 1, 2, 4, 4, 5, 8]).expect("ascending, above 0");
    let mut links = vec![
        LinkSpec { capacity: Capacity::Steps(steps.into()), ..bottleneck(1.0, 2.0, 40) },
        LinkSpec {
            capacity: Capacity::Trace { trace: trace.into(), once: false },
            buffer: Buffer { wait_ps: Some(30 * MS), ..Buffer::default() },
            ..delay(3.0)
        },
        delay(5.0),
    ];
    let mut flows =
        vec![flow("hpcc", &[0, 1], &[2]), flow("cubic", &[0, 1], &[2]), flow("hpcc", &[1], &[2])];
    for (number, queue) in (0_u32..).zip(queues()) {
        links.push(LinkSpec { queue, ..bottleneck(10e6 + f64::from(number), 1.0, 60) });
        let own = links.len() as u32 - 1;
        let (forward, back) = ([own, number % 2], [2]);
        flows.push(flow("hpcc", &forward, &back));
        flows.push(flow(nth(number), &[own], &back));
    }
    network(links, &[0, 1, 5], flows, 1.5)
}

fn telemetry_with_losses() -> Plan {
    let lossy = LinkSpec { loss: Some(LossModel::Bernoulli(0.03)), ..bottleneck(20e6, 4.0, 20) };
    let links = vec![
        lossy.clone(),
        jittery(rate(30e6, 2.0), true),
        // ACKs are lost and overtake each other.
        reordering(LinkSpec { loss: Some(LossModel::Bernoulli(0.1)), ..delay(3.0) }),
        reordering(rate(40e6, 1.0)),
    ];
    let flows = (0..12).map(|number| {
        let delayed_ack_ps = (number % 3 == 1).then_some(25 * MS);
        let stack = Stack::Tcp(TcpOptions { delayed_ack_ps, ..TcpOptions::default() });
        let options = DatagramOptions {
            blocking: number % 4 == 2,
            overhead_ps: u64::from(number % 4 == 3) * 60 * PS_PER_US,
            ..DatagramOptions::default()
        };
        let name = if number % 4 == 1 { nth(number) } else { "hpcc" };
        let size_bytes = (number % 5 == 4).then_some(200_000);
        let forward: &[u32] = if number % 2 == 0 { &[3, 0, 1] } else { &[1, 0] };
        let flow = FlowPlan { stack, size_bytes, ..flow(name, forward, &[2]) };
        if number % 2 == 0 { flow } else { datagrams(flow, options) }
    });
    network(links, &[0], flows.collect(), 3.0)
}

/// Data and ACKs share links, which then are somebody's way there and somebody's way back.
fn telemetry_around_a_ring() -> Plan {
    const LINKS: u32 = 4;
    let links = (0..LINKS).map(|number| bottleneck(8e6, 3.0, 20 + u64::from(number)));
    let mut flows: Vec<FlowPlan> = (0..LINKS)
        .map(|number| {
            let at = |step: u32| (number + step) % LINKS;
            flow("hpcc", &[at(0), at(1)], &[at(2), at(3)])
        })
        .collect();
    flows.push(flow("hpcc", &[0, 1, 0, 2], &[3]));
    network(links.collect(), &[0, 3], flows, 2.0)
}
