//! Marks instead of drops: DCTCP on a step, Prague beside CUBIC, classic controllers on queues that mark. What RFC 8257, RFC 9331,
//! RFC 9332, RFC 8511 and Alizadeh's papers say they do.

mod common;

use common::*;
use paceline_cc::registry;
use paceline_net::queue::{CodelSpec, DualPi2Spec, Ecn, PieSpec, QueueSpec, RedSpec, Tag};
use paceline_net::{Jitter, LinkSpec};
use paceline_sim::{FlowOutcome, FlowPlan, Outcome, Plan, Stack, TcpOptions};

/// A flow that says `ecn` of itself, on a host with the timeouts of a data centre. `name` may have a profile behind a colon.
fn sender(name: &str, settings: &[(&str, f64)], ecn: Ecn) -> FlowPlan {
    let (name, profile) = match name.split_once(':') {
        Some((name, profile)) => (name, Some(profile)),
        None => (name, None),
    };
    let spec = registry::find(name).expect("registered");
    FlowPlan {
        needs: spec.needs,
        fields: spec.fields.to_vec(),
        tag: Tag { ecn, ..Tag::default() },
        stack: Stack::Tcp(TcpOptions { min_rto_ps: 10 * MS, ..TcpOptions::default() }),
        ..tcp(registered(name, profile, settings))
    }
}

fn dctcp(settings: &[(&str, f64)]) -> FlowPlan {
    sender("dctcp", settings, Ecn::Capable)
}

fn prague() -> FlowPlan {
    sender("prague", &[], Ecn::Scalable)
}

/// `flows`, each with its RTT in ms, through one queue for `seconds`, of which the first third does not count. They start a
/// hundredth of the run apart.
fn through(queue: QueueSpec, bps: f64, flows: Vec<(FlowPlan, f64)>, seconds: f64) -> Outcome {
    over(LinkSpec { queue, ..bottleneck(bps, 0.0, 2000) }, flows, seconds)
}

/// The same over a link.
fn over(link: LinkSpec, flows: Vec<(FlowPlan, f64)>, seconds: f64) -> Outcome {
    run_checked(planned(link, flows, seconds))
}

fn planned(link: LinkSpec, flows: Vec<(FlowPlan, f64)>, seconds: f64) -> Plan {
    let mut links = vec![link];
    let mut placed = Vec::new();
    for (n, (flow, rtt_ms)) in flows.into_iter().enumerate() {
        links.push(delay(rtt_ms));
        let start_ps = (n as f64 * seconds * 10.0) as u64 * MS;
        placed.push(FlowPlan { forward: vec![0], reverse: vec![n as u32 + 1], start_ps, ..flow });
    }
    let mut plan = plan(links, placed, seconds, seconds / 3.0);
    plan.sample_ps = MS;
    plan
}

/// Prints what there is to see.
fn show(what: &str, outcome: &Outcome) {
    let link = &outcome.links[0];
    let queue = link.queue_ms.unwrap();
    println!(
        "{what}: use {:.4}, queue mean {:.4} ms, p50 {:.4}, p99 {:.4}, drops {}, marks {}",
        use_of(outcome),
        queue.mean,
        queue.p50,
        queue.p99,
        link.drops,
        link.marks
    );
    for flow in outcome.flows.iter().take(3) {
        println!(
            "    {:.2} Mbit/s, window {:.2}, queueing p50 {:.3} ms, p99 {:.3}, lost {}, alpha {:.4}",
            flow.throughput_bps / 1e6,
            flow.cwnd_bytes.unwrap().mean / 1500.0,
            wait(flow).0,
            wait(flow).1,
            flow.lost_packets,
            mean(flow, "alpha")
        );
    }
}

fn use_of(outcome: &Outcome) -> f64 {
    outcome.links[0].utilization.unwrap()
}

/// Median and p99 of what a flow's packets waited, ms.
fn wait(flow: &FlowOutcome) -> (f64, f64) {
    let queueing = flow.queueing_delay_ms.unwrap();
    (queueing.p50, queueing.p99)
}

/// The last two thirds of a column; empty without one.
fn late<'a>(flow: &'a FlowOutcome, name: &str) -> &'a [f64] {
    flow.series.column(name).map_or(&[], |column| &column.values[column.values.len() / 3..])
}

fn mean(flow: &FlowOutcome, name: &str) -> f64 {
    let values = late(flow, name);
    values.iter().sum::<f64>() / values.len() as f64
}

/// How many times as fast as the second the first flow is.
fn ratio(outcome: &Outcome) -> f64 {
    outcome.flows[0].throughput_bps / outcome.flows[1].throughput_bps
}

fn jain(outcome: &Outcome) -> f64 {
    let rates: Vec<f64> = outcome.flows.iter().map(|f| f.throughput_bps).collect();
    let (sum, squares) = (rates.iter().sum::<f64>(), rates.iter().map(|r| r * r).sum::<f64>());
    sum * sum / squares / rates.len() as f64
}

// ------------------------------------------------------------------------------------------------------------- DCTCP

/// 10 Gbit/s.
const FAST_BPS: f64 = 1e10;

/// Packets of 1500 bytes that 10 Gbit/s hold in `ms`.
fn packets_in(ms: f64) -> f64 {
    ms * FAST_BPS / 12e6
}

fn on_a_step(threshold: u64, flow: FlowPlan, rtt_ms: f64) -> Outcome {
    through(QueueSpec::Step { packets: threshold }, FAST_BPS, vec![(flow, rtt_ms)], 10.0 * rtt_ms)
}

/// Alizadeh 2010, §3.3-3.4: the queue swings between K + 1 - A and K + 1, A = sqrt((C R + K) / 2), and K > C R / 7 keeps the link
/// busy. 100 us hold 83 packets, a seventh is 12.
#[test]
fn dctcp_keeps_the_queue_at_the_threshold_and_the_link_busy() {
    for variant in ["dctcp", "dctcp:linux"] {
        for threshold in [12, 20, 40] {
            let outcome = on_a_step(threshold, sender(variant, &[], Ecn::Capable), 0.1);
            let k = threshold as f64;
            let amplitude = ((packets_in(0.1) + k) / 2.0).sqrt();
            let queue = outcome.links[0].queue_ms.unwrap();
            // The time counted is that of the packet itself too.
            let [mean, p99] = [queue.mean, queue.p99].map(|ms| packets_in(ms) - 1.0);
            show(&format!("{variant}, K = {threshold}"), &outcome);
            println!("    queue {mean:.1}, p99 {p99:.1}; law {:.1}", k + 1.0 - amplitude / 2.0);
            assert!((mean - (k + 1.0 - amplitude / 2.0)).abs() < 2.0);
            assert!((p99 - (k + 1.0)).abs() < 2.0);
            assert!(use_of(&outcome) > 0.9999 && outcome.links[0].drops == 0);
        }
        // Far below the seventh the queue runs empty.
        let short = on_a_step(2, sender(variant, &[], Ecn::Capable), 0.1);
        assert!(use_of(&short) < 0.997, "{}", use_of(&short));
    }
    // What takes a mark for a loss empties the link at the same threshold.
    let reno = on_a_step(12, sender("reno", &[], Ecn::Capable), 0.1);
    show("reno, K = 12", &reno);
    assert!(use_of(&reno) < 0.9);
}

/// Alizadeh 2010, eq. (7)-(9): alpha = sqrt(2 / W*), W* = C R + K, where g < 1.386 / sqrt(2 W*) (eq. 15); and alpha is the fraction
/// marked. The window swings by alpha W* / 2.
#[test]
fn alpha_and_the_swing_follow_the_law() {
    for (rtt_ms, threshold, g_shift) in [(0.1, 12, 4.0), (0.1, 20, 4.0), (1.0, 150, 6.0)] {
        let outcome = on_a_step(threshold, dctcp(&[("g_shift", g_shift)]), rtt_ms);
        let flow = &outcome.flows[0];
        let w = packets_in(rtt_ms) + threshold as f64;
        let (law, alpha) = ((2.0 / w).sqrt(), mean(flow, "alpha"));
        let windows = late(flow, "cwnd_bytes").iter().map(|bytes| bytes / 1500.0);
        let most = windows.clone().fold(0.0, f64::max);
        let swing = most - windows.fold(f64::INFINITY, f64::min);
        let marked = outcome.links[0].marks as f64 / flow.delivered_packets as f64;
        show(&format!("RTT {rtt_ms} ms, K = {threshold}"), &outcome);
        println!("    law {law:.4}, alpha {alpha:.4}, marked {marked:.4}, swing {swing:.1}");
        assert_near(alpha, law, 0.07);
        assert_near(alpha, marked, 0.07);
        assert_near(swing, alpha * w / 2.0, 0.25);
    }
}

/// Alizadeh 2010, §3.3: N flows queue up to K + N, and share equally.
#[test]
fn dctcp_flows_share_the_queue() {
    for count in [2, 10, 40] {
        let flows = (0..count).map(|_| (dctcp(&[]), 0.1)).collect();
        let outcome = through(QueueSpec::Step { packets: 20 }, FAST_BPS, flows, 1.0);
        show(&format!("{count} flows"), &outcome);
        let p99 = packets_in(outcome.links[0].queue_ms.unwrap().p99) - 1.0;
        assert_near(p99, 20.0 + f64::from(count), 0.10);
        assert!(jain(&outcome) > 0.99 && use_of(&outcome) > 0.997);
    }
}

/// RFC 8257 §5: beside DCTCP on a queue that marks early a classic flow starves. In one that only drops DCTCP is Reno.
#[test]
fn dctcp_beside_reno() {
    let beside = |link, rtt_ms, seconds| {
        let reno = sender("reno", &[], Ecn::Capable);
        let outcome = over(link, vec![(dctcp(&[]), rtt_ms), (reno, rtt_ms)], seconds);
        show("dctcp beside reno", &outcome);
        ratio(&outcome)
    };
    let step = QueueSpec::Step { packets: 20 };
    assert!(beside(LinkSpec { queue: step, ..bottleneck(1e9, 0.0, 500) }, 1.0, 10.0) > 5.0);
    assert_near(beside(bottleneck(1e8, 0.0, 100), 10.0, 100.0), 1.0, 0.1);
}

// --------------------------------------------------------------------------------------------------------------- L4S

fn dual() -> QueueSpec {
    QueueSpec::DualPi2(DualPi2Spec::default())
}

/// RFC 9332: the scalable flow waits for less than a millisecond, the classic one for the 15 ms of its target, and the coupling
/// gives them about equal rates, here within a factor of two whatever rate and RTT.
#[test]
fn dualpi2_keeps_prague_fast_and_cubic_fed() {
    for (mbps, rtt_ms) in [(40.0, 10.0), (100.0, 5.0), (100.0, 10.0), (100.0, 40.0)] {
        let cubic = sender("cubic", &[], Ecn::NotCapable);
        let flows = vec![(prague(), rtt_ms), (cubic, rtt_ms)];
        let outcome = through(dual(), mbps * 1e6, flows, 60.0);
        show(&format!("prague beside cubic, {mbps} Mbit/s, {rtt_ms} ms"), &outcome);
        let [scalable, classic] = [&outcome.flows[0], &outcome.flows[1]];
        assert!(wait(scalable).0 < 0.6 && wait(scalable).1 < 1.0 && scalable.lost_packets == 0);
        assert_near(wait(classic).0, 15.0, 0.10);
        assert!((0.5..2.0).contains(&ratio(&outcome)) && use_of(&outcome) > 0.999);
    }
}

/// Alone it is held by the ramp from 0.8 to 1.2 ms, at full use.
#[test]
fn prague_alone_rests_on_the_ramp() {
    for (mbps, rtt_ms) in [(40.0, 10.0), (100.0, 5.0), (100.0, 20.0)] {
        let outcome = through(dual(), mbps * 1e6, vec![(prague(), rtt_ms)], 30.0);
        show(&format!("prague alone, {mbps} Mbit/s, {rtt_ms} ms"), &outcome);
        assert!(wait(&outcome.flows[0]).1 < 1.3 && outcome.links[0].drops == 0);
        assert!(use_of(&outcome) > 0.999);
    }
}

/// RFC 9331 §4.3 item 4: rates as independent of the RTT as stability allows below the typical one. DCTCP, which Linux's DualPI2
/// takes for no controller of L4S, is not.
#[test]
fn prague_does_not_depend_on_short_rtts_and_dctcp_does() {
    let share = |name| {
        let flow = || sender(name, &[], Ecn::Scalable);
        let outcome = through(dual(), 1e8, vec![(flow(), 5.0), (flow(), 25.0)], 60.0);
        show(&format!("{name}, 5 and 25 ms"), &outcome);
        ratio(&outcome)
    };
    assert_near(share("prague"), 1.0, 0.1);
    assert!(share("dctcp") > 3.0);
}

/// RFC 9331 §4.3: a scalable controller hears at least as many marks per round trip at any rate; Reno ever fewer, for it takes
/// longer and longer to come back from one.
#[test]
fn the_marks_per_round_trip_do_not_shrink_with_the_rate() {
    let per_round_trip = |name: &str, ecn, mbps: f64| {
        let (seconds, rtt_ms) = (120.0, 25.0);
        // Reno without slow start beyond what the path holds, the marks of which would be most.
        let start = [("initial_ssthresh", (mbps * rtt_ms / 12.0).floor())];
        let settings = if name == "reno" { &start[..] } else { &[] };
        let flows = vec![(sender(name, settings, ecn), rtt_ms)];
        let outcome = through(dual(), mbps * 1e6, flows, seconds);
        show(&format!("{name} at {mbps} Mbit/s"), &outcome);
        outcome.links[0].marks as f64 / (seconds * 1e3 / rtt_ms)
    };
    let growth = |name, ecn| per_round_trip(name, ecn, 200.0) / per_round_trip(name, ecn, 20.0);
    let (scalable, classic) = (growth("prague", Ecn::Scalable), growth("reno", Ecn::Capable));
    println!("marks per round trip at ten times the rate: prague {scalable:.2}, reno {classic:.2}");
    assert!(scalable > 0.9 && classic < 0.3);
}

/// 40 flows where the path holds 33 packets: DCTCP keeps two each in the network, Prague paces less than one (RFC 9331 §4.3 prefers
/// that). The price: one packet more per round trip is much for a window below one, and the link is not full.
#[test]
fn prague_stays_responsive_below_a_packet() {
    let crowd = |name: &str| {
        let flows = (0..40).map(|_| (sender(name, &[], Ecn::Scalable), 10.0)).collect();
        let outcome = through(dual(), 4e7, flows, 60.0);
        show(&format!("40 flows of {name}"), &outcome);
        assert!(jain(&outcome) > 0.95 && outcome.links[0].drops == 0);
        (outcome.links[0].queue_ms.unwrap().mean, use_of(&outcome))
    };
    let (dctcp_ms, prague_ms) = (crowd("dctcp").0, crowd("prague"));
    assert!(prague_ms.0 < dctcp_ms / 3.0 && prague_ms.1 > 0.85);
}

/// RFC 9331 §4.3 item 3, which this Prague does not meet: in a single queue that marks ECT(1) like ECT(0) it takes the classic
/// flow's share, for w = 2 / p is more than w = 1.22 / sqrt(p).
#[test]
fn prague_starves_classic_flows_in_one_queue_that_marks() {
    let reno = sender("reno", &[], Ecn::Capable);
    let outcome = through(pie(true), 1e8, vec![(prague(), 30.0), (reno, 30.0)], 60.0);
    show("prague beside reno, PIE", &outcome);
    assert!((3.0..25.0).contains(&ratio(&outcome)), "{}", ratio(&outcome));
}

/// RFC 9331 §4.3 item 2: it reacts to losses as Reno does. Beside Reno in a queue that only drops it gets about as much, and less
/// where the virtual RTT is the longer. (The jitter keeps packets from arriving in a fixed order.)
#[test]
fn prague_falls_back_to_reno_on_loss() {
    for (rtt_ms, allowed) in [(40.0, 0.5..1.5), (10.0, 0.2..0.8)] {
        let link = || bottleneck(5e7, 0.0, (rtt_ms * 2.0) as u64);
        let alone = over(link(), vec![(prague(), rtt_ms)], 60.0);
        show("prague, drop-tail", &alone);
        let reno = sender("reno", &[], Ecn::NotCapable);
        let mut plan = planned(link(), vec![(prague(), rtt_ms), (reno, rtt_ms)], 200.0);
        for way_back in &mut plan.links[1..] {
            way_back.spec.jitter = Some(Jitter { mean_ps: MS / 2, max_ps: 2 * MS, reorder: false });
        }
        let beside = run_checked(plan);
        show("prague beside reno, drop-tail", &beside);
        assert!(use_of(&alone) > 0.93 && alone.links[0].marks == 0);
        assert!(allowed.contains(&ratio(&beside)), "{rtt_ms} ms: {}", ratio(&beside));
    }
}

// ----------------------------------------------------------------------------------------------------------- classic

fn codel(ecn: bool) -> QueueSpec {
    QueueSpec::Codel(CodelSpec { ecn, ..CodelSpec::default() })
}

fn pie(ecn: bool) -> QueueSpec {
    QueueSpec::Pie(PieSpec { ecn, ..PieSpec::default() })
}

fn red(ecn: bool) -> QueueSpec {
    QueueSpec::Red(RedSpec { ecn, adaptive: true, ..RedSpec::default() })
}

/// RFC 3168: what the queue would have dropped it marks, nothing is lost, and throughput and delay are about the same. Slow start
/// ends before the queue is full: PIE drops capable packets too above 10 %.
#[test]
fn classic_controllers_react_to_marks_as_to_losses() {
    let start = [("initial_ssthresh", 60.0)];
    for (what, queue) in [("codel", codel as fn(bool) -> QueueSpec), ("pie", pie), ("red", red)] {
        for name in ["reno", "cubic", "htcp", "westwood"] {
            let run = |ecn: bool| {
                let say = if ecn { Ecn::Capable } else { Ecn::NotCapable };
                let flows = (0..3).map(|_| (sender(name, &start, say), 40.0)).collect();
                let outcome = through(queue(ecn), 2e7, flows, 60.0);
                show(&format!("{name} on {what}, marks {ecn}"), &outcome);
                outcome
            };
            let (dropped, marked) = (run(false), run(true));
            assert_eq!((marked.links[0].drops, dropped.links[0].marks), (0, 0), "{name}");
            assert!(marked.links[0].marks > 0, "{name}");
            assert_near(use_of(&marked), use_of(&dropped), 0.05);
            let queue = |o: &Outcome| o.links[0].queue_ms.unwrap().mean;
            assert_near(queue(&marked), queue(&dropped), 0.30);
        }
    }
}

/// RFC 8511: backing off less at marks fills a link that CoDel keeps short of buffer.
#[test]
fn abe_fills_the_link_that_codel_empties() {
    for (name, abe) in [("reno", "reno:abe"), ("cubic", "cubic:abe")] {
        let [plain, abe] = [name, abe].map(|name| {
            let flow = sender(name, &[("initial_ssthresh", 60.0)], Ecn::Capable);
            let outcome = through(codel(true), 2e7, vec![(flow, 80.0)], 120.0);
            show(name, &outcome);
            use_of(&outcome)
        });
        assert!(abe > plain + 0.02, "{name}: {plain}, with ABE {abe}");
    }
}
