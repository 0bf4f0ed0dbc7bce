//! Horizon on links of fixed rate, where its balance can be derived by hand, beside others, and through an outage.

mod common;

use common::*;
use paceline_cc::{Needs, registry};
use paceline_net::{PS_PER_S, Trace};
use paceline_sim::{DatagramOptions, FlowPlan, Outcome, PacketSizes, Stack};

fn horizon() -> FlowPlan {
    let spec = registry::find("horizon").expect("registered");
    FlowPlan {
        needs: spec.needs,
        fields: spec.fields.to_vec(),
        stack: Stack::Datagram(DatagramOptions::default()),
        packets: PacketSizes { data_bytes: 1500, header_bytes: 0, ack_bytes: 40 },
        ..tcp(registered("horizon", None, &[]))
    }
}

/// Over 20 ms each way; `buffer` in packets.
fn shared(mbps: f64, buffer: u64, flows: Vec<FlowPlan>, warmup: f64, seconds: f64) -> Outcome {
    let links = vec![bottleneck(mbps * 1e6, 20.0, buffer), delay(20.0)];
    run_checked(plan(links, flows, seconds, warmup))
}

/// Throughputs in Mbit/s.
fn rates(outcome: &Outcome) -> Vec<f64> {
    outcome.flows.iter().map(|flow| flow.throughput_bps / 1e6).collect()
}

/// In balance w = C r: C r = w0 + C H ((m + s)/r)^alpha. The link is never silent for longer than a packet takes, which is W.
fn rtt_in_balance_ms(mbps: f64) -> f64 {
    let packet_ms = 12.0 / mbps;
    let least_ms = 40.0 + packet_ms;
    let spare_ms = 0.15 * f64::sqrt(least_ms * packet_ms);
    let wanted_ms = |rtt_ms: f64| {
        2.5 * packet_ms + (1.2 * least_ms + spare_ms) * ((least_ms + spare_ms) / rtt_ms).powf(0.7)
    };
    // What is wanted falls as the RTT rises.
    let (mut low, mut high) = (least_ms, 10.0 * least_ms);
    while high - low > 1e-6 {
        let middle = (low + high) / 2.0;
        if wanted_ms(middle) > middle { low = middle } else { high = middle }
    }
    low
}

/// The window is in whole packets, so the RTT is up to a packet's time less; and three packets in flight for about three round
/// trips of each 10 s cost 1 % of the link.
#[test]
fn a_fixed_link_is_full_and_its_queue_short() {
    for mbps in [4.0, 12.0, 50.0, 100.0, 400.0] {
        let outcome = shared(mbps, 10_000, vec![horizon()], 20.0, 60.0);
        let utilisation = outcome.links[0].utilization.unwrap();
        let rtt = outcome.flows[0].rtt_ms.unwrap();
        let expected = rtt_in_balance_ms(mbps);
        println!("{mbps} Mbit/s: {utilisation:.4}, RTT {:.1} ms, by hand {expected:.1}", rtt.mean);
        assert!(utilisation > 0.985 && utilisation < 0.995, "drained six times a minute");
        assert_near(rtt.mean, expected, 0.03);
        assert_near(rtt.min, 40.0 + 12.0 / mbps, 1e-3);
    }
}

/// The same over TCP, whose retransmission timer stands in for the probes.
#[test]
fn a_tcp_host_runs_it_too() {
    let outcome = shared(12.0, 1000, vec![flow("horizon", &[0], &[1])], 20.0, 60.0);
    assert!(outcome.links[0].utilization.unwrap() > 0.98);
    assert_near(outcome.flows[0].rtt_ms.unwrap().mean, rtt_in_balance_ms(12.0), 0.03);
}

/// In balance each flow has the same number of packets in flight, w0 / (1 - H/r ((m + s)/r)^alpha), whenever it came.
#[test]
fn flows_share_evenly_whenever_they_come() {
    for (mbps, flows, apart_s) in [(12.0, 2_u64, 0), (12.0, 2, 10), (100.0, 2, 10), (100.0, 4, 5)] {
        let starting = |n| FlowPlan { start_ps: n * apart_s * PS_PER_S, ..horizon() };
        let outcome = shared(mbps, 10_000, (0..flows).map(starting).collect(), 60.0, 120.0);
        let rates = rates(&outcome);
        println!("{flows} flows on {mbps} Mbit/s, {apart_s} s apart: {rates:.2?}");
        let sum: f64 = rates.iter().sum();
        assert!(sum > 0.97 * mbps);
        rates.iter().for_each(|rate| assert_near(*rate, sum / flows as f64, 0.10));
    }
}

/// Who keeps the queue short yields to who fills it, the more the longer the queue may get.
#[test]
fn cubic_takes_most_of_a_shared_link() {
    let shares: Vec<f64> = [42, 84, 410]
        .map(|buffer| {
            let flows = vec![horizon(), flow("cubic", &[0], &[1])];
            let rates = rates(&shared(12.0, buffer, flows, 60.0, 120.0));
            println!("buffer of {buffer} packets: {rates:.2?}");
            rates[0] / 12.0
        })
        .into();
    assert!(shares[0] < 0.25 && shares[0] > shares[1] && shares[1] > shares[2]);
}

/// 6 Mbit/s with nothing between 5 s and 8 s. The first probe after 0.4 * 41 + 1.5 * 2 ms, and k of them take 20 times 1.05^k - 1
/// as long: 44 until then, after which the queue they made is gone in 0.1 s.
#[test]
fn probes_fill_an_outage_thinly() {
    let opportunities = (1..10_000_u32).filter(|ms| ms % 2 == 0 && !(5000..8000).contains(ms));
    let mut flow = horizon();
    flow.needs = Needs::PACING;
    let links =
        vec![traced(Trace::from_opportunities(opportunities.collect()).unwrap()), delay(40.0)];
    let outcome = run_checked(plan(links, vec![flow], 9.9, 0.0));
    let flow = &outcome.flows[0];
    println!("{} probes, signal {:?} ms", flow.timeouts, flow.signal_delay_p95_ms);
    assert!((40..=48).contains(&flow.timeouts), "{}", flow.timeouts);
    assert!(flow.throughput_bps > 0.95 * 6e6 * 6.9 / 9.9);
}
