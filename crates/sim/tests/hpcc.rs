//! HPCC in a data centre: links fill to eta = 95 % of their capacity and queues stay empty (Li et al. 2019, sections 3 and 5).

mod common;

use common::*;
use paceline_net::{Capacity, LinkSpec};
use paceline_sim::{FlowPlan, Outcome, Plan, Stack, TcpOptions};

/// 10 Gbit/s and 100 us: 83 packets fill the path.
const BPS: f64 = 1e10;
const BDP_BYTES: f64 = 125_000.0;
const ETA: f64 = 0.95;

fn hpcc(profile: Option<&str>, forward: &[u32], back: u32) -> FlowPlan {
    FlowPlan {
        controller: registered("hpcc", profile, &[]),
        stack: Stack::Tcp(TcpOptions { min_rto_ps: 5 * MS, ..TcpOptions::default() }),
        ..flow("hpcc", forward, &[back])
    }
}

/// `count` flows that begin at one time, through one port with room for 1000 packets; sampled every 0.1 ms.
fn incast(profile: Option<&str>, count: usize, ms: f64) -> Outcome {
    let links = vec![bottleneck(BPS, 0.05, 1000), delay(0.05)];
    let flows = (0..count).map(|_| hpcc(profile, &[0], 1)).collect();
    run_fine(plan(links, flows, ms / 1e3, ms / 2e3))
}

fn run_fine(mut plan: Plan) -> Outcome {
    plan.sample_ps = MS / 10;
    run_checked(plan)
}

/// Most of a link's queue from a time on, bytes.
fn most_queue(outcome: &Outcome, link: usize, from_ms: f64) -> f64 {
    let series = &outcome.links[link].series;
    let from = series.time_s().partition_point(|t| *t < from_ms / 1e3);
    let queue = series.column("queue_bytes").unwrap().values;
    queue[from..].iter().copied().fold(0.0, f64::max)
}

/// Mean throughput of a flow in a time, bit/s.
fn throughput(outcome: &Outcome, flow: usize, [from_ms, to_ms]: [f64; 2]) -> f64 {
    let series = &outcome.flows[flow].series;
    let at = |ms: f64| series.time_s().partition_point(|t| *t < ms / 1e3 + 1e-9);
    let rates = &series.column("throughput_bps").unwrap().values[at(from_ms)..at(to_ms)];
    rates.iter().sum::<f64>() / rates.len() as f64
}

fn jain(rates: &[f64]) -> f64 {
    let (sum, squares) = (rates.iter().sum::<f64>(), rates.iter().map(|r| r * r).sum::<f64>());
    sum * sum / squares / rates.len() as f64
}

#[test]
fn an_idle_link_comes_to_eta_with_an_empty_queue() {
    for profile in [None, Some("simulator"), Some("per-hop")] {
        let outcome = incast(profile, 1, 20.0);
        let (used, queue) = (outcome.links[0].utilization.unwrap(), most_queue(&outcome, 0, 2.0));
        println!("{profile:?}: utilisation {used:.4}, queue at most {queue} bytes");
        // W_AI, of (1 - eta) / N, is on top.
        assert_near(used, ETA, 0.003);
        assert!(queue <= 1500.0 && outcome.links[0].drops == 0);
    }
}

/// All begin at line rate at once: the queue that this makes is gone within some round trips, and none comes back.
#[test]
fn an_incast_drains_and_shares() {
    for count in [2, 16] {
        let outcome = incast(None, count, 200.0);
        let [first, soon, late] = [0.0, 3.0, 10.0].map(|ms| most_queue(&outcome, 0, ms));
        let rates: Vec<f64> =
            (0..count).map(|flow| throughput(&outcome, flow, [100.0, 200.0])).collect();
        let used = outcome.links[0].utilization.unwrap();
        println!(
            "{count} flows: utilisation {used:.4}, Jain {:.5}, queue at most {first}, from 3 ms {soon}, from 10 ms {late} bytes",
            jain(&rates)
        );
        assert!(first > BDP_BYTES / 2.0, "they began at line rate");
        assert!(soon < BDP_BYTES && late < BDP_BYTES / 4.0);
        assert!(jain(&rates) > 0.99);
        // Each adds W_AI on top of eta, a hundredth of what is left.
        assert_near(used, ETA + 0.05 * count as f64 / 100.0, 0.01);
    }
}

/// Alone over two links, of which the second has half the rate.
#[test]
fn the_most_loaded_of_two_links_limits() {
    let links = vec![bottleneck(BPS, 0.025, 1000), bottleneck(BPS / 2.0, 0.025, 1000), delay(0.05)];
    let outcome = run_fine(plan(links, vec![hpcc(None, &[0, 1], 2)], 0.02, 0.01));
    assert_near(outcome.links[1].utilization.unwrap(), ETA, 0.003);
    assert!(most_queue(&outcome, 1, 3.0) <= 1500.0);
}

/// A long flow over both, a cross flow over each. By hand: the long flow and the second share the slower link, the first has the rest
/// of the other; W_AI is of one line rate for all.
///
/// A reference for each hop gets there. The single one does not: it takes the larger of two loads before it smooths them, so whoever
/// crosses two busy links hears of more than there is, and W_AI, a two-thousandth of the window, does not make up for it.
#[test]
fn two_busy_links_in_a_row_are_shared_hop_by_hop() {
    for profile in [None, Some("per-hop")] {
        let links =
            vec![bottleneck(BPS, 0.025, 1000), bottleneck(BPS / 2.0, 0.025, 1000), delay(0.05)];
        let flows = [&[0, 1][..], &[0], &[1]].map(|forward| FlowPlan {
            controller: registered("hpcc", profile, &[("line_rate", BPS)]),
            ..hpcc(None, forward, 2)
        });
        let outcome = run_fine(plan(links, flows.into(), 1.0, 0.8));
        let share = |flow: usize| outcome.flows[flow].throughput_bps / BPS;
        let [long, first, second] = [0, 1, 2].map(share);
        let used = [0, 1].map(|link| outcome.links[link].utilization.unwrap());
        println!(
            "{profile:?}: long {long:.3}, first {first:.3}, second {second:.3} of the first link; utilisation {used:.4?}"
        );
        for (link, used) in used.into_iter().enumerate() {
            assert_near(used, ETA, 0.005);
            assert!(most_queue(&outcome, link, 10.0) < BDP_BYTES / 4.0);
        }
        if profile.is_some() {
            assert_near(long, ETA / 4.0, 0.01);
            assert_near(second, ETA / 4.0, 0.01);
            assert_near(first, ETA * 3.0 / 4.0, 0.01);
        } else {
            assert!(long < 0.8 * second && long > 0.05);
        }
    }
}

/// From 10 Gbit/s to 2.5 at 20 ms and back at 40: the queue of the first moment is drained, the rate is taken up within a few
/// milliseconds.
#[test]
fn a_step_of_the_rate_is_followed() {
    let steps = [(0, BPS), (20 * MS, BPS / 4.0), (40 * MS, BPS)];
    let port = bottleneck(BPS, 0.05, 1000);
    let links = vec![LinkSpec { capacity: Capacity::Steps(steps.into()), ..port }, delay(0.05)];
    let outcome = run_fine(plan(links, vec![hpcc(None, &[0], 1)], 0.06, 0.0));
    let rates =
        [[10.0, 20.0], [25.0, 40.0], [45.0, 60.0]].map(|time| throughput(&outcome, 0, time));
    println!("{:.4?} Gbit/s", rates.map(|rate| rate / 1e9));
    for (rate, of) in rates.into_iter().zip([1.0, 0.25, 1.0]) {
        assert_near(rate, ETA * of * BPS, 0.005);
    }
    let queue = most_queue(&outcome, 0, 22.0);
    println!("queue from 2 ms after the first step: {queue} bytes");
    assert!(queue < BDP_BYTES / 4.0 && outcome.links[0].drops == 0);
}

/// A flow that comes later takes its share, and leaves it again.
#[test]
fn a_late_comer_gets_its_share_and_gives_it_back() {
    let links = vec![bottleneck(BPS, 0.05, 1000), delay(0.05)];
    let first = hpcc(None, &[0], 1);
    let second = FlowPlan { start_ps: 20 * MS, stop_ps: Some(320 * MS), ..hpcc(None, &[0], 1) };
    let outcome = run_fine(plan(links, vec![first, second], 0.36, 0.0));
    let [before, beside, after] =
        [[10.0, 20.0], [220.0, 320.0], [330.0, 360.0]].map(|time| throughput(&outcome, 0, time));
    println!("{:.3} {:.3} {:.3} Gbit/s", before / 1e9, beside / 1e9, after / 1e9);
    assert_near(before, ETA * BPS, 0.003);
    assert_near(beside, ETA * BPS / 2.0, 0.1);
    assert_near(after, ETA * BPS, 0.003);
    assert_eq!(outcome.links[0].drops, 0);
}

/// Its network loses nothing; where a link does, at random, the window stays what the links' load says.
#[test]
fn random_losses_do_not_move_the_window() {
    let lossy = LinkSpec {
        loss: Some(paceline_net::LossModel::Bernoulli(0.001)),
        ..bottleneck(BPS, 0.05, 1000)
    };
    let outcome = run_fine(plan(vec![lossy, delay(0.05)], vec![hpcc(None, &[0], 1)], 0.1, 0.05));
    let (flow, used) = (&outcome.flows[0], outcome.links[0].utilization.unwrap());
    println!("utilisation {used:.4}, {} lost, {} timeouts", flow.lost_packets, flow.timeouts);
    assert!(flow.lost_packets > 50 && flow.timeouts == 0);
    assert_near(used, ETA, 0.01);
}
