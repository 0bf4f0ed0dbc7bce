//! Delay-based and hybrid controllers behind a real queue: what their papers say of them.

mod common;

use common::*;
use paceline_cc::registry;
use paceline_net::LossModel;
use paceline_sim::{FlowOutcome, FlowPlan, Outcome, Series};

fn flow(name: &str, profile: Option<&str>, settings: &[(&str, f64)]) -> FlowPlan {
    let spec = registry::find(name).expect("registered");
    FlowPlan {
        needs: spec.needs,
        fields: spec.fields.to_vec(),
        ..tcp(registered(name, profile, settings))
    }
}

/// Flows over `mbit` Mbit/s and 40 ms with a buffer of `packets`.
fn outcome(mbit: f64, packets: u64, flows: Vec<FlowPlan>, seconds: f64, warmup: f64) -> Outcome {
    let links = vec![bottleneck(mbit * 1e6, 20.0, packets), delay(20.0)];
    run_checked(plan(links, flows, seconds, warmup))
}

/// Packets of 1500 bytes that fill `mbit` Mbit/s for 40 ms.
fn bdp(mbit: f64) -> f64 {
    mbit * 1e6 / 8.0 * 0.040 / 1500.0
}

/// The values of a column from `seconds` on.
fn since<'a>(series: &'a Series, name: &str, seconds: f64) -> &'a [f64] {
    let column = series.column(name).expect("a column");
    &column.values[series.time_s().partition_point(|t| *t < seconds)..]
}

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

fn largest(values: &[f64]) -> f64 {
    values.iter().copied().fold(0.0, f64::max)
}

fn share(flows: &[FlowOutcome], flow: usize) -> f64 {
    let all: f64 = flows.iter().map(|f| f.goodput_bps).sum();
    flows[flow].goodput_bps / all
}

/// T11.
#[test]
fn vegas_alone_keeps_two_to_four_packets_queued() {
    for profile in [None, Some("linux")] {
        let outcome = outcome(20.0, 267, vec![flow("vegas", profile, &[])], 60.0, 20.0);
        let series = &outcome.flows[0].series;
        let diff = since(series, "diff", 20.0);
        let queue = mean(since(&outcome.links[0].series, "queue_bytes", 20.0)) / 1500.0;
        println!(
            "Vegas {profile:?}: Diff {:.2}, {queue:.2} packets queued, utilisation {:?}",
            mean(diff),
            outcome.links[0].utilization
        );
        assert!(diff.iter().all(|d| (1.0..=5.0).contains(d)));
        assert!((2.0..=4.0).contains(&mean(diff)));
        // A packet or two more: ACK clocking sends some of them together.
        assert!((1.0..=6.0).contains(&queue), "{queue}");
        assert!(outcome.links[0].utilization.unwrap() > 0.99);
    }
}

/// Mo et al. 1999: Reno fills the buffer, Vegas gives way to it.
#[test]
fn vegas_starves_against_reno() {
    for profile in [None, Some("linux")] {
        let flows = vec![flow("vegas", profile, &[]), flow("reno", None, &[])];
        let outcome = outcome(20.0, 267, flows, 120.0, 40.0);
        let vegas = share(&outcome.flows, 0);
        println!("Vegas {profile:?} against Reno: share {vegas:.3}");
        assert!(vegas < 0.1, "{vegas}");
    }
}

/// A flow that finds a queue takes it for distance. With alpha = beta = k the first keeps k packets in the queue of y k, the
/// second k in what it sees of it, (y - 1) k: 1/y + 1/(y - 1) = 1, y = 2.618, and the shares are 38.2 and 61.8 %.
#[test]
fn the_late_comer_gets_more_with_vegas() {
    let settings =
        [("alpha", 10.0), ("beta", 10.0), ("initial_ssthresh", 2.0), ("initial_window", 2.0)];
    let late = FlowPlan { start_ps: 60_000 * MS, ..flow("vegas", None, &settings) };
    let flows = vec![flow("vegas", None, &settings), late];
    let outcome = outcome(20.0, 267, flows, 200.0, 120.0);
    let first = share(&outcome.flows, 0);
    println!("share of the first of two Vegas {first:.3}, theory 0.382");
    assert_near(first, 0.382, 0.05);
}

/// Liu, Basar and Srikant 2008: the window is concave between losses, so that it is nearer to its largest value on average than
/// Reno's three quarters (a little more, because Reno's grows by round trips, which a queue makes longer).
#[test]
fn the_window_of_illinois_is_concave() {
    let relative = |name: &str| {
        let outcome = outcome(100.0, 333, vec![flow(name, None, &[])], 200.0, 50.0);
        let cwnd = since(&outcome.flows[0].series, "cwnd_bytes", 50.0);
        mean(cwnd) / largest(cwnd)
    };
    let (illinois, reno) = (relative("illinois"), relative("reno"));
    println!("mean window over largest: Illinois {illinois:.3}, Reno {reno:.3}");
    assert!((0.75..0.80).contains(&reno), "{reno}");
    assert!(illinois > reno + 0.05, "{illinois}");
}

/// Losses without a queue cost Illinois an eighth, and it takes ten packets per round trip; Veno a fifth. By
/// sqrt(a (2 - b) / (2 b) / p) that makes 7.07 and 1.73 times the window of Reno.
#[test]
fn random_losses_cost_illinois_and_veno_little() {
    let window = |name: &str| {
        let mut forward = bottleneck(1e9, 20.0, 3333);
        forward.loss = Some(LossModel::Bernoulli(0.001));
        let flows = vec![flow(name, None, &[])];
        let outcome = run_checked(plan(vec![forward, delay(20.0)], flows, 120.0, 20.0));
        mean(since(&outcome.flows[0].series, "cwnd_bytes", 20.0)) / 1500.0
    };
    let (illinois, veno, reno) = (window("illinois"), window("veno"), window("reno"));
    println!(
        "mean window at 0.1 % loss: Illinois {illinois:.0}, Veno {veno:.0}, Reno {reno:.0} packets"
    );
    assert_near(illinois / reno, 7.07, 0.10);
    assert_near(veno / reno, 1.73, 0.10);
}

/// Baiocchi et al. 2007: on a long fat pipe the queue is emptied when it reaches 80 packets, and nothing is lost.
#[test]
fn yeah_empties_the_queue_before_a_loss() {
    for profile in [None, Some("linux")] {
        let outcome = outcome(200.0, 667, vec![flow("yeah", profile, &[])], 120.0, 20.0);
        let queue = since(&outcome.links[0].series, "queue_bytes", 20.0);
        let (queued, most) = (mean(queue) / 1500.0, largest(queue) / 1500.0);
        let slow = since(&outcome.flows[0].series, "slow_rounds", 20.0);
        let lost = since(&outcome.flows[0].series, "lost_packets", 20.0);
        println!(
            "YeAH {profile:?}: {queued:.0} packets queued, {most:.0} at most, utilisation {:?}",
            outcome.links[0].utilization
        );
        // It grows by 1 % of the window per round trip, and notices a round trip later.
        assert!(most < 80.0 + 3.0 * 0.01 * (bdp(200.0) + 80.0) + 10.0, "{most}");
        assert!(outcome.links[0].utilization.unwrap() > 0.99);
        assert_eq!(lost.first(), lost.last());
        assert!(largest(slow) >= 1.0 && mean(slow) < 1.0, "mostly fast");
    }
}

/// Beside Reno it stays in slow mode, and becomes Reno.
#[test]
fn yeah_shares_with_reno() {
    for profile in [None, Some("linux")] {
        let flows = vec![flow("yeah", profile, &[]), flow("reno", None, &[])];
        let outcome = outcome(20.0, 133, flows, 200.0, 50.0);
        let yeah = share(&outcome.flows, 0);
        println!("YeAH {profile:?} against Reno: share {yeah:.3}");
        assert!((0.35..0.65).contains(&yeah), "{yeah}");
    }
}

/// Hayes and Armitage 2011: alone it backs off before the buffer is full, and the queue stays short.
#[test]
fn cdg_keeps_the_queue_short_without_losses() {
    for profile in [None, Some("linux")] {
        let outcome = outcome(100.0, 333, vec![flow("cdg", profile, &[])], 120.0, 20.0);
        let queue = since(&outcome.links[0].series, "queue_bytes", 20.0);
        let (queued, most) = (mean(queue) / 1500.0, largest(queue) / 1500.0);
        let lost = since(&outcome.flows[0].series, "lost_packets", 20.0);
        println!(
            "CDG {profile:?}: {queued:.0} packets queued, {most:.0} at most, utilisation {:?}",
            outcome.links[0].utilization
        );
        assert!(queued < 0.25 * bdp(100.0), "{queued}");
        assert_eq!(lost.first(), lost.last());
        assert!(outcome.links[0].utilization.unwrap() > 0.75);
    }
}

/// Where Vegas starves CDG holds out: it notices that backing off is of no use, and keeps a shadow window.
#[test]
fn cdg_holds_out_against_reno() {
    for profile in [None, Some("linux")] {
        let against = |name: &str| {
            let flows = vec![flow(name, profile, &[]), flow("reno", None, &[])];
            share(&outcome(20.0, 67, flows, 200.0, 50.0).flows, 0)
        };
        let (cdg, vegas) = (against("cdg"), against("vegas"));
        println!("against Reno {profile:?}: share of CDG {cdg:.3}, of Vegas {vegas:.3}");
        assert!(cdg > 1.5 * vegas, "{cdg}");
    }
}
