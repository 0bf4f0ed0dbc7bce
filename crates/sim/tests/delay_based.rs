//! Controllers that keep to a delay, behind a real queue: what their papers state of queue, shares and cycles.

mod common;

use common::*;
use paceline_net::PS_PER_S;
use paceline_sim::{FlowPlan, Outcome, Series};

/// A flow of a registered controller with some parameters.
fn with(name: &str, profile: Option<&str>, values: &[(&str, f64)]) -> FlowPlan {
    FlowPlan { controller: registered(name, profile, values), ..flow(name, &[0], &[1]) }
}

/// Runs flows over one link of `bps` with a round trip of `rtt_ms` and a buffer in packets.
fn shared(
    flows: Vec<FlowPlan>,
    bps: f64,
    rtt_ms: f64,
    buffer: u64,
    seconds: f64,
    warmup: f64,
) -> Outcome {
    let links = vec![bottleneck(bps, rtt_ms / 2.0, buffer), delay(rtt_ms / 2.0)];
    run_checked(plan(links, flows, seconds, warmup))
}

fn column<'a>(series: &'a Series, name: &str) -> &'a [f64] {
    &series.columns.iter().find(|c| c.name == name).expect("a column").values
}

/// Mean number of packets waiting at the first link.
fn mean_queue(outcome: &Outcome) -> f64 {
    outcome.links[0].queue_bytes.expect("recorded").mean / 1500.0
}

// ------------------------------------------------------------------------------------------------------------------ FAST

/// T9: in balance alpha packets of each flow wait.
#[test]
fn fast_keeps_alpha_packets_in_the_queue() {
    for (bps, rtt_ms, alpha) in [(1e8, 40.0, 50.0), (1e9, 20.0, 200.0)] {
        let flow = with("fast", None, &[("alpha", alpha)]);
        let outcome = shared(vec![flow], bps, rtt_ms, 20_000, 20.0, 10.0);
        let queue = mean_queue(&outcome);
        println!("FAST, alpha {alpha} at {} Mbit/s: {queue:.1} packets wait", bps * 1e-6);
        assert_near(queue, alpha, 0.05);
        assert_near(outcome.links[0].utilization.unwrap(), 1.0, 1e-3);
        assert_eq!(outcome.links[0].drops, 0);
    }
}

/// N alpha packets, equal rates.
#[test]
fn fast_flows_add_their_alphas() {
    // Each begins with two packets on an idle link, so that all see the same base RTT.
    let flows = (0..4).map(|n| FlowPlan {
        start_ps: n * 5 * MS,
        ..with("fast", Some("nist"), &[("alpha", 50.0)])
    });
    let outcome = shared(flows.collect(), 1e8, 40.0, 4000, 60.0, 30.0);
    let queue = mean_queue(&outcome);
    println!("FAST, 4 flows of alpha 50: {queue:.1} packets wait");
    assert_near(queue, 200.0, 0.05);
    for flow in &outcome.flows {
        assert_near(flow.throughput_bps, 25e6, 0.05);
    }
}

/// Rates are in proportion to alpha.
#[test]
fn fast_shares_in_proportion_to_alpha() {
    let mut flows = [100.0, 200.0].map(|alpha| with("fast", Some("nist"), &[("alpha", alpha)]));
    flows[1].start_ps = 5 * MS;
    let outcome = shared(flows.into(), 1e8, 40.0, 4000, 60.0, 30.0);
    let ratio = outcome.flows[1].throughput_bps / outcome.flows[0].throughput_bps;
    println!("FAST, alpha 100 and 200: ratio of rates {ratio:.3}");
    assert_near(ratio, 2.0, 0.05);
    assert_near(mean_queue(&outcome), 300.0, 0.05);
}

/// NIST SP 500-282: where the buffer holds less than the sum of the alphas FAST oscillates, and loses far more than Reno.
#[test]
fn fast_oscillates_where_the_buffer_is_below_the_sum_of_the_alphas() {
    let run = |name: &str, buffer| {
        let flows = (0..4).map(|_| flow(name, &[0], &[1])).collect();
        let outcome = shared(flows, 1e8, 40.0, buffer, 60.0, 20.0);
        let swing = outcome.flows.iter().map(|f| {
            let cwnd = f.cwnd_bytes.expect("sampled");
            cwnd.std / cwnd.mean
        });
        (swing.sum::<f64>() / 4.0, outcome.links[0].drops)
    };
    let (enough, none) = run("fast", 1200);
    let (small, many) = run("fast", 300);
    let (_, few) = run("reno", 300);
    println!(
        "FAST, 4 flows of alpha 200: windows vary by {:.1} % and {none} are lost with 1200 packets of buffer, {:.1} % and {many} \
         with 300; Reno loses {few}",
        enough * 100.0,
        small * 100.0
    );
    assert!(enough < 0.02 && small > 0.10, "{enough} {small}");
    assert!(many > 10 * none && many > 10 * few, "{none} {many} {few}");
}

// --------------------------------------------------------------------------------------------------------------- FAST-AT

/// Alpha is 8 at 12 Mbit/s (1,000 packets/s), 20 at 100 Mbit/s (8,333), 200 at 1 Gbit/s (83,333), and that many wait.
#[test]
fn fast_at_chooses_alpha_by_the_rate() {
    for (bps, alpha) in [(12e6, 8.0), (1e8, 20.0), (1e9, 200.0)] {
        let outcome = shared(vec![flow("fast-at", &[0], &[1])], bps, 40.0, 4000, 40.0, 20.0);
        let chosen = column(&outcome.flows[0].series, "alpha");
        let queue = mean_queue(&outcome);
        println!(
            "FAST-AT at {} Mbit/s: alpha {}, {queue:.1} packets wait",
            bps * 1e-6,
            chosen[3000]
        );
        assert!(chosen[2000..].iter().all(|a| *a == alpha));
        assert_near(queue, alpha, 0.07);
        assert!(outcome.links[0].utilization.unwrap() > 0.99);
    }
}

/// A flow of 16,200 packets/s that gets company keeps alpha 200 until its share is below 12,500, and then goes to 20.
#[test]
fn fast_at_lets_go_late() {
    // 195 Mbit/s: 16,250 packets/s, 8,125 each.
    let flows = vec![
        flow("fast-at", &[0], &[1]),
        FlowPlan { start_ps: 20 * PS_PER_S, ..flow("fast-at", &[0], &[1]) },
    ];
    let outcome = shared(flows, 195e6, 40.0, 4000, 80.0, 0.0);
    let series = &outcome.flows[0].series;
    let (alpha, rate) = (column(series, "alpha"), column(series, "throughput_bps"));
    assert_eq!(alpha[1900], 200.0);
    let left = alpha.iter().skip(2000).position(|a| *a == 20.0).expect("it goes down") + 2000;
    println!(
        "FAST-AT goes down to 20 at {:.2} s, with {:.1} Mbit/s",
        series.time_s[left],
        rate[left] * 1e-6
    );
    assert!(rate[left - 100..left].iter().sum::<f64>() / 100.0 < 15_000.0 * 12_000.0);
}

// ------------------------------------------------------------------------------------------------------------------ CTCP

/// Below the activation window CTCP is Reno.
#[test]
fn ctcp_is_reno_below_the_activation_window() {
    // A BDP of 17 packets and a buffer of 15: the window stays below 34.
    let [ctcp, reno] = ["ctcp", "reno"].map(|name| {
        let outcome = shared(vec![flow(name, &[0], &[1])], 10e6, 20.0, 15, 60.0, 10.0);
        let flow = &outcome.flows[0];
        (flow.throughput_bps, flow.lost_packets, flow.cwnd_bytes.expect("sampled").mean)
    });
    println!("CTCP in a small window: {ctcp:?}, Reno {reno:?}");
    // Reno halves what is in flight, CTCP its window, which is up to a packet more.
    assert_near(ctcp.0, reno.0, 0.01);
    assert_near(ctcp.2, reno.2, 0.02);
    assert_near(ctcp.1 as f64, reno.1 as f64, 0.05);
}

/// What CTCP is for: on a long fat path with a loss in 100,000 packets it uses several times what Reno does.
#[test]
fn ctcp_fills_a_long_fat_path() {
    let [ctcp, reno] = ["ctcp", "reno"].map(|name| {
        let there = paceline_net::LinkSpec {
            loss: Some(paceline_net::LossModel::Periodic(100_000)),
            ..bottleneck(1e9, 50.0, 8000)
        };
        let outcome =
            run_checked(plan(vec![there, delay(50.0)], vec![flow(name, &[0], &[1])], 200.0, 20.0));
        outcome.links[0].utilization.unwrap()
    });
    println!(
        "1 Gbit/s, 100 ms, loss 1e-5: CTCP uses {:.1} %, Reno {:.1} %",
        ctcp * 100.0,
        reno * 100.0
    );
    assert!(reno < 0.07 && ctcp > 3.0 * reno, "{ctcp} {reno}");
}

/// Once gamma packets wait, the delay window gives way, and what it takes from a Reno is no more than another Reno would.
#[test]
fn ctcp_leaves_reno_its_share() {
    let outcome = shared(
        vec![flow("ctcp", &[0], &[1]), flow("reno", &[0], &[1])],
        1e8,
        40.0,
        333,
        200.0,
        50.0,
    );
    let share = outcome.flows[1].throughput_bps / 1e8;
    println!("Reno beside CTCP behind 1 BDP: {:.1} % of the link", share * 100.0);
    assert!(share > 0.35, "{share}");
    assert!(outcome.links[0].utilization.unwrap() > 0.97);
}

/// At losses gamma goes towards three quarters of what Reno's part keeps in the queue: with four flows and a buffer of 60
/// packets, far less than 30.
#[test]
fn ctcp_learns_gamma_where_the_buffer_is_small() {
    let gamma = |profile| {
        let flows = (0..4).map(|_| with("ctcp", profile, &[])).collect();
        let outcome = shared(flows, 1e8, 40.0, 60, 120.0, 60.0);
        let values = column(&outcome.flows[0].series, "gamma");
        values[6000..].iter().sum::<f64>() / values[6000..].len() as f64
    };
    let (tuned, fixed) = (gamma(None), gamma(Some("nist")));
    println!("CTCP, 4 flows behind 60 packets: gamma {tuned:.1} tuned, {fixed} fixed");
    assert_eq!(fixed, 30.0);
    assert!((5.0..20.0).contains(&tuned), "{tuned}");
}
