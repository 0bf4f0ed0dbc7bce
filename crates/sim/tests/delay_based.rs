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
    series.column(name).expect("a column").values
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

/// Alone a flow of 16,250 packets/s has alpha 200; with company, at 8,125, both come down to 20.
#[test]
fn fast_at_comes_down_with_its_share() {
    let flows = vec![
        flow("fast-at", &[0], &[1]),
        FlowPlan { start_ps: 20 * PS_PER_S, ..flow("fast-at", &[0], &[1]) },
    ];
    let outcome = shared(flows, 195e6, 40.0, 4000, 60.0, 40.0);
    let alphas = [0, 1].map(|i: usize| column(&outcome.flows[i].series, "alpha"));
    // The second's samples begin with it.
    let late = [&alphas[0][4000..], &alphas[1][2000..]];
    println!(
        "FAST-AT: alpha {} alone, {} and {} with company",
        alphas[0][1990], late[0][0], late[1][0]
    );
    assert!(alphas[0][500..1990].iter().all(|a| *a == 200.0));
    assert!(late.iter().all(|alpha| alpha.iter().all(|a| *a == 20.0)));
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

// ------------------------------------------------------------------------------------------------------------------ Copa

/// Section 2.3: a flow alone lets the queue swing between nothing and 2.5/delta packets in about five round trips.
#[test]
fn copa_swings_between_nothing_and_5_packets_in_five_round_trips() {
    let links = vec![bottleneck(2e7, 50.0, 1000), delay(50.0)];
    let mut plan = plan(links, vec![flow("copa", &[0], &[1])], 60.0, 20.0);
    plan.sample_ps = 5 * MS;
    let outcome = run_checked(plan);
    let series = &outcome.links[0].series;
    let queue: Vec<f64> =
        column(series, "queue_bytes")[4000..].iter().map(|b| b / 1500.0).collect();
    let mean = queue.iter().sum::<f64>() / queue.len() as f64;
    let largest = queue.iter().copied().fold(0.0, f64::max);
    let smallest = queue.iter().copied().fold(f64::INFINITY, f64::min);
    // The window's turns upwards, a cycle each.
    let cwnd = &column(&outcome.flows[0].series, "cwnd_bytes")[4000..];
    let rising: Vec<bool> = cwnd.windows(11).map(|w| w[10] > w[0]).collect();
    let turns = rising.windows(2).filter(|w| !w[0] && w[1]).count();
    let period_rtts = 40.0 / turns as f64 / 0.1006;
    println!(
        "Copa alone: queue {mean:.2} packets, {smallest:.1} to {largest:.1}, a cycle every {period_rtts:.2} RTTs"
    );
    assert!((1.0..4.0).contains(&mean) && (3.0..9.0).contains(&largest), "{mean} {largest}");
    assert!((4.0..6.5).contains(&period_rtts), "{period_rtts}");
    assert!(smallest <= 1.0, "{smallest}");
    assert!(outcome.links[0].utilization.unwrap() > 0.95);
}

/// Section 2.1: rates are in inverse proportion to delta.
#[test]
fn copa_shares_in_proportion_to_one_over_delta() {
    let flows = [0.5, 0.25].map(|delta| with("copa", Some("default-mode"), &[("delta", delta)]));
    let outcome = shared(flows.into(), 2e7, 40.0, 1000, 100.0, 20.0);
    let ratio = outcome.flows[1].throughput_bps / outcome.flows[0].throughput_bps;
    println!("Copa, delta 0.5 and 0.25: ratio of rates {ratio:.2}");
    assert_near(ratio, 2.0, 0.25);
}

/// Section 2.2: in the default mode CUBIC leaves it nothing; the mode switch gets it its share, and it goes back once alone.
#[test]
fn copa_competes_with_cubic() {
    let run = |profile| {
        let cubic = FlowPlan { stop_ps: Some(80 * PS_PER_S), ..flow("cubic", &[0], &[1]) };
        shared(vec![with("copa", profile, &[]), cubic], 2e7, 40.0, 134, 120.0, 0.0)
    };
    let share = |outcome: &Outcome| {
        let mean = |i: usize| -> f64 {
            column(&outcome.flows[i].series, "throughput_bps")[3000..7900].iter().sum()
        };
        mean(0) / (mean(0) + mean(1))
    };
    let (outcome, pure) = (run(None), run(Some("default-mode")));
    let competitive = column(&outcome.flows[0].series, "competitive");
    let mean = |part: &[f64]| part.iter().sum::<f64>() / part.len() as f64;
    let (beside, alone) = (mean(&competitive[3000..7900]), mean(&competitive[9000..]));
    println!(
        "Copa beside CUBIC: {:.1} % of the link, {:.1} % without mode switch; competitive {:.1} % of the time, alone {:.1} %",
        share(&outcome) * 100.0,
        share(&pure) * 100.0,
        beside * 100.0,
        alone * 100.0
    );
    assert!(share(&outcome) > 0.25 && share(&pure) < 0.10);
    assert!(beside > 0.7 && alone < 0.05, "{beside} {alone}");
}

// ---------------------------------------------------------------------------------------------------- LEDBAT and LEDBAT++

/// T13: LEDBAT comes to rest at its target of 100 ms.
#[test]
fn ledbat_keeps_100_ms() {
    for target in [0.1, 0.05] {
        let flow = with("ledbat", None, &[("target", target)]);
        let outcome = shared(vec![flow], 1e7, 40.0, 1000, 120.0, 60.0);
        let delay_ms = outcome.links[0].queue_ms.expect("recorded").mean;
        println!("LEDBAT, target {} ms: queueing delay {delay_ms:.1} ms", target * 1e3);
        assert_near(delay_ms, target * 1e3, 0.05);
        assert_near(outcome.links[0].utilization.unwrap(), 1.0, 1e-3);
    }
}

/// Both give way to Reno where the buffer holds more than the target.
#[test]
fn ledbat_and_ledbat_plus_plus_yield_to_reno() {
    for name in ["ledbat", "ledbat++"] {
        let flows = vec![flow(name, &[0], &[1]), flow("reno", &[0], &[1])];
        // 10 Mbit/s and 400 packets: up to 480 ms.
        let outcome = shared(flows, 1e7, 40.0, 400, 300.0, 50.0);
        let share = outcome.flows[0].throughput_bps / 1e7;
        println!("{name} beside Reno: {:.1} % of the link", share * 100.0);
        assert!(share < 0.10, "{share}");
        assert!(outcome.links[0].utilization.unwrap() > 0.97);
    }
}

/// A slowdown each time nine times its length has passed: a tenth of the time at most, and the base delay is seen in each.
#[test]
fn ledbat_plus_plus_slows_down_for_a_tenth_of_the_time() {
    let outcome = shared(vec![flow("ledbat++", &[0], &[1])], 2e7, 60.0, 1000, 200.0, 50.0);
    let series = &outcome.flows[0].series;
    let slowdown = column(series, "slowdown");
    let share = slowdown[5000..].iter().sum::<f64>() / slowdown[5000..].len() as f64;
    let starts = slowdown[5000..].windows(2).filter(|w| w[0] == 0.0 && w[1] == 1.0).count();
    let utilization = outcome.links[0].utilization.unwrap();
    let delay_ms = outcome.links[0].queue_ms.expect("recorded").p50;
    println!(
        "LEDBAT++: {starts} slowdowns, {:.1} % of the time; link {:.1} % used, median delay {delay_ms:.1} ms",
        share * 100.0,
        utilization * 100.0
    );
    assert!((0.05..0.105).contains(&share), "{share}");
    assert!(starts >= 5 && utilization > 0.90, "{starts} {utilization}");
    assert!((45.0..66.0).contains(&delay_ms), "{delay_ms}");
    assert!(column(series, "base_delay")[5000..].iter().all(|ms| (ms - 60.6).abs() < 0.1));
}

/// The latecomer's advantage: a second LEDBAT flow takes the standing queue for the base delay and starves the first;
/// LEDBAT++ flows share, because slowdowns show the base delay.
#[test]
fn ledbat_plus_plus_mends_the_latecomers_advantage() {
    let share = |name: &str| {
        let second = FlowPlan { start_ps: 60 * PS_PER_S, ..flow(name, &[0], &[1]) };
        let outcome = shared(vec![flow(name, &[0], &[1]), second], 1e7, 40.0, 1000, 360.0, 160.0);
        let [first, second] = [0, 1].map(|i: usize| outcome.flows[i].throughput_bps);
        first / (first + second)
    };
    let (old, new) = (share("ledbat"), share("ledbat++"));
    println!("share of the first flow: LEDBAT {:.1} %, LEDBAT++ {:.1} %", old * 100.0, new * 100.0);
    assert!(old < 0.2, "{old}");
    assert!((new - 0.5).abs() < 0.15, "{new}");
}

// ---------------------------------------------------------------------------------------------------------------- Vivace

/// Both forms fill a link that nobody else uses; the latency form without a standing queue.
#[test]
fn vivace_fills_a_clean_link() {
    for profile in [None, Some("loss")] {
        let outcome = shared(vec![with("vivace", profile, &[])], 5e7, 40.0, 333, 60.0, 20.0);
        let utilization = outcome.links[0].utilization.unwrap();
        let delay_ms = outcome.links[0].queue_ms.expect("recorded").mean;
        println!(
            "Vivace {profile:?}: {:.1} % used, queueing delay {delay_ms:.1} ms",
            utilization * 100.0
        );
        assert!(utilization > 0.9, "{utilization}");
        assert!(profile.is_some() || delay_ms < 20.0, "{delay_ms}");
    }
}

/// Section 3.3: random loss far below 5 % costs little, where it leaves Reno next to nothing.
#[test]
fn vivace_tolerates_random_loss() {
    let used = |name: &str, profile| {
        let there = paceline_net::LinkSpec {
            loss: Some(paceline_net::LossModel::Bernoulli(0.01)),
            ..bottleneck(5e7, 20.0, 333)
        };
        let outcome =
            run_checked(plan(vec![there, delay(20.0)], vec![with(name, profile, &[])], 90.0, 30.0));
        outcome.links[0].utilization.unwrap()
    };
    let [latency, loss, reno] =
        [("vivace", None), ("vivace", Some("loss")), ("reno", None)].map(|(name, p)| used(name, p));
    println!(
        "1 % random loss: Vivace uses {:.1} %, Vivace-loss {:.1} %, Reno {:.1} %",
        latency * 100.0,
        loss * 100.0,
        reno * 100.0
    );
    assert!(latency > 0.7 && loss > 0.7 && reno < 0.15, "{latency} {loss} {reno}");
}

// ---------------------------------------------------------------------------------------------------------------- Sprout

/// 500 packets/s: the link is full, and all but the cautious forecast of 100 ms stays out of the queue.
#[test]
fn sprout_fills_a_steady_link_within_its_forecast() {
    let outcome = shared(vec![flow("sprout", &[0], &[1])], 6e6, 40.0, 1000, 60.0, 10.0);
    let forecast = column(&outcome.flows[0].series, "forecast");
    let mean = forecast[1000..].iter().sum::<f64>() / forecast[1000..].len() as f64;
    let utilization = outcome.links[0].utilization.unwrap();
    let delay_ms = outcome.links[0].queue_ms.expect("recorded");
    println!(
        "Sprout at 500 packets/s: forecast {mean:.1} packets, link {:.1} % used, delay {:.1} ms, 95 % {:.1} ms",
        utilization * 100.0,
        delay_ms.mean,
        delay_ms.p95
    );
    assert!(forecast[1000..].iter().all(|packets| *packets < 50.0));
    assert!(utilization > 0.95, "{utilization}");
    assert!(delay_ms.p95 < 60.0, "{}", delay_ms.p95);
}

/// Three seconds without delivery: Sprout stops within a few ticks, and is back soon after.
#[test]
fn sprout_stops_in_an_outage() {
    let times = (1..10_000_u32).step_by(2).filter(|ms| !(5000..8000).contains(ms)).chain([10_000]);
    let trace = paceline_net::Trace::from_opportunities(times.collect()).expect("ascending");
    let link = paceline_net::LinkSpec { delay_ps: 20 * MS, ..traced(trace) };
    let flow = FlowPlan {
        stack: paceline_sim::Stack::Datagram(paceline_sim::DatagramOptions::default()),
        ..flow("sprout", &[0], &[1])
    };
    let outcome = run_checked(plan(vec![link, delay(20.0)], vec![flow], 10.0, 0.0));
    let series = &outcome.flows[0].series;
    let (forecast, rate) = (column(series, "forecast"), column(series, "throughput_bps"));
    let stopped = forecast.iter().skip(500).position(|packets| *packets <= 1.0).expect("it stops");
    let back = rate.iter().skip(800).position(|bps| *bps > 3e6).expect("it comes back");
    println!(
        "Sprout in an outage: forecast 1 packet or none after {stopped}0 ms, half the rate {back}0 ms after its end"
    );
    // A round trip until a packet is overdue, then some ticks.
    assert!(stopped < 30 && back < 50, "{stopped} {back}");
    let later: f64 = rate[900..].iter().sum::<f64>() / rate[900..].len() as f64;
    assert!(later > 5e6, "{later}");
}
