//! Paceline's own MPC behind a real queue, 400 Mbit/s and 25 ms: what its law (docs/mpc.md) says comes out. All goals at full rates
//! are measured by `paceline reproduce mpc-goals`.

mod common;

use std::sync::Arc;

use common::*;
use paceline_cc::Needs;
use paceline_net::queue::{QueueSpec, TokenBucketSpec};
use paceline_net::{Buffer, Capacity, Jitter, LinkSpec, LossModel, PS_PER_S, Picos};
use paceline_sim::{DatagramOptions, FlowPlan, Outcome, Stack};

const RATE_BPS: f64 = 400e6;
const RTT_MS: f64 = 25.0;

fn mpc(settings: &[(&str, f64)]) -> FlowPlan {
    FlowPlan {
        stack: Stack::Datagram(DatagramOptions::default()),
        needs: Needs::PACING.and(Needs::RATE_SAMPLE),
        ..tcp(registered("mpc", None, settings))
    }
}

fn link(buffer_bdp: f64) -> LinkSpec {
    let bdp = RATE_BPS / 8.0 * RTT_MS / 1e3;
    let buffer = Buffer { bytes: Some((bdp * buffer_bdp) as u64), ..Buffer::default() };
    LinkSpec { buffer, ..bottleneck(RATE_BPS, RTT_MS / 2.0, 0) }
}

fn measured(link: LinkSpec, flows: Vec<FlowPlan>, from_s: f64, to_s: f64) -> Outcome {
    run_checked(plan(vec![link, delay(RTT_MS / 2.0)], flows, to_s, from_s))
}

fn lost(outcome: &Outcome) -> u64 {
    outcome.flows.iter().map(|flow| flow.lost_packets).sum()
}

fn jain(outcome: &Outcome) -> f64 {
    let rates: Vec<f64> = outcome.flows.iter().map(|flow| flow.throughput_bps).collect();
    let (sum, squares) = (rates.iter().sum::<f64>(), rates.iter().map(|r| r * r).sum::<f64>());
    sum * sum / (squares * rates.len() as f64)
}

/// (2) at 25 ms: the queue that N equal flows agree on, ms, and the time in which the link serves a packet.
fn price_ms(flows: usize) -> f64 {
    0.37 * (4e9 * flows as f64 / RATE_BPS).sqrt() * 25.0 / 27.0 + 12_000.0 / RATE_BPS * 1e3
}

/// N flows share the link evenly, it is full, and their queue is the price of their rates.
#[test]
fn the_queue_is_the_price_of_an_equal_share() {
    for flows in [1, 2, 4] {
        let outcome = measured(link(1.0), (0..flows).map(|_| mpc(&[])).collect(), 6.0, 12.0);
        let queue = outcome.links[0].queue_ms.unwrap();
        println!("{flows} flows: queue {:.3} ms, price {:.3} ms", queue.p50, price_ms(flows));
        assert!(outcome.links[0].utilization.unwrap() > 0.995);
        assert_near(queue.p50, price_ms(flows), 0.05);
        assert!(jain(&outcome) > 0.999, "{}", jain(&outcome));
        assert_eq!(lost(&outcome), 0);
    }
}

/// Start-up and growth stay within a small buffer, as long as it is well above the price.
#[test]
fn a_shallow_buffer_loses_nothing() {
    for (flows, buffer_bdp) in [(1, 0.125), (4, 0.25)] {
        let outcome = measured(link(buffer_bdp), (0..flows).map(|_| mpc(&[])).collect(), 4.0, 6.0);
        assert_eq!(lost(&outcome), 0, "{flows} flows");
        assert!(outcome.links[0].utilization.unwrap() > 0.99);
    }
}

/// A second flow 4 s later has its share within 80 RTTs, and for good.
#[test]
fn a_late_comer_gets_its_share() {
    for share_from_s in [6.0, 8.0] {
        let late = FlowPlan { start_ps: 4 * PS_PER_S, ..mpc(&[]) };
        let outcome = measured(link(1.0), vec![mpc(&[]), late], share_from_s, share_from_s + 2.0);
        assert!(jain(&outcome) > 0.9, "from {share_from_s} s: {}", jain(&outcome));
        assert_eq!(lost(&outcome), 0);
    }
}

/// Half the capacity: the queue that it makes is gone within some RTTs, without a loss. Twice: it is used within some.
#[test]
fn steps_of_capacity_are_followed() {
    for (after_bps, loss_free) in [(RATE_BPS / 2.0, true), (RATE_BPS * 2.0, true)] {
        let steps: Arc<[(Picos, f64)]> = [(0, RATE_BPS), (6 * PS_PER_S, after_bps)].into();
        let link = LinkSpec { capacity: Capacity::Steps(steps), ..link(1.0) };
        let outcome = measured(link, vec![mpc(&[])], 6.5, 8.0);
        let rtt = outcome.flows[0].rtt_ms.unwrap();
        println!("to {after_bps:.0}: {:?} RTT {:.2} ms", outcome.links[0].utilization, rtt.p50);
        assert!(outcome.links[0].utilization.unwrap() > 0.97);
        assert!(rtt.p50 < 1.1 * RTT_MS);
        assert_eq!(lost(&outcome) == 0, loss_free);
    }
}

/// A cap is kept to 1 %, and what it leaves is another's.
#[test]
fn caps_are_kept() {
    let flows = vec![mpc(&[("cap", 100e6)]), mpc(&[])];
    let outcome = measured(link(1.0), flows, 6.0, 12.0);
    assert_near(outcome.flows[0].throughput_bps, 100e6, 0.01);
    assert_near(outcome.flows[1].throughput_bps, 300e6, 0.01);
}

/// Random loss costs what it loses, over the datagram stack and over TCP.
#[test]
fn random_loss_is_no_signal() {
    for stack in [Stack::Datagram(DatagramOptions::default()), Stack::Tcp(Default::default())] {
        let flow = FlowPlan { stack, ..mpc(&[]) };
        let lossy = LinkSpec { loss: Some(LossModel::Bernoulli(0.01)), ..link(1.0) };
        let outcome = measured(lossy, vec![flow], 6.0, 12.0);
        assert!(outcome.links[0].utilization.unwrap() > 0.98, "{:?}", outcome.links[0].utilization);
        assert!(lost(&outcome) > 0);
    }
}

/// A policer drops without a queue. (13) finds its rate, and loses little of it.
#[test]
fn a_policer_is_found() {
    let police = TokenBucketSpec {
        rate_bps: 50e6,
        burst_bytes: 30_000,
        child: Box::new(QueueSpec::DropTail),
    };
    let buffer = Buffer { packets: Some(20), ..Buffer::default() };
    let link = LinkSpec { queue: QueueSpec::TokenBucket(police), buffer, ..link(1.0) };
    let outcome = measured(link, vec![mpc(&[])], 5.0, 15.0);
    let flow = &outcome.flows[0];
    let part = flow.lost_packets as f64 / flow.sent_packets as f64;
    println!("policer: {:.2} Mbit/s, {:.4} lost", flow.throughput_bps / 1e6, part);
    assert!(flow.throughput_bps > 0.9 * 50e6 && part < 0.05);
}

/// A flow so slow that nothing is in flight between two of its packets is not idle: when the capacity is back, it grows.
#[test]
fn a_crawl_is_no_idleness() {
    let steps: Arc<[(Picos, f64)]> =
        [(0, RATE_BPS), (3 * PS_PER_S, 0.1e6), (10 * PS_PER_S, RATE_BPS)].into();
    let link = LinkSpec { capacity: Capacity::Steps(steps), ..link(1.0) };
    let outcome = measured(link, vec![mpc(&[])], 18.0, 20.0);
    assert!(outcome.links[0].utilization.unwrap() > 0.9, "{:?}", outcome.links[0].utilization);
}

/// Ten packets of buffer are never long enough a queue to end start-up: the losses do. Four flows' price is more than that buffer, so it
/// stays full, and some of what is sent is lost.
#[test]
fn losses_end_a_start_up_without_a_queue() {
    let noise = Jitter { mean_ps: MS / 4, max_ps: 10 * MS / 4, reorder: true };
    let back = LinkSpec { jitter: Some(noise), ..delay(12.5) };
    let flows = (0..4).map(|_| mpc(&[])).collect();
    let outcome = run_checked(plan(vec![bottleneck(80e6, 12.5, 10), back], flows, 8.0, 4.0));
    let sent: u64 = outcome.flows.iter().map(|flow| flow.sent_packets).sum();
    println!("{} of {sent} lost", lost(&outcome));
    assert!(lost(&outcome) < sent / 8);
    assert!(outcome.links[0].utilization.unwrap() > 0.95);
}
