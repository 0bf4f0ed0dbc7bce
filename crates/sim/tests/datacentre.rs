//! TIMELY and Swift in a data centre: 10 Gbit/s, 100 us of round trip, a buffer of 1000 packets; the path holds 84 packets.

mod common;

use common::*;
use paceline_cc::registry;
use paceline_sim::{FlowPlan, Outcome, Stack, TcpOptions};

/// `count` flows through one port. Data-centre hosts have timeouts of milliseconds.
fn flows(name: &str, profile: Option<&str>, settings: &[(&str, f64)], count: u64) -> Outcome {
    let spec = registry::find(name).expect("registered");
    let made = (0..count).map(|n| FlowPlan {
        needs: spec.needs,
        fields: spec.fields.to_vec(),
        stack: Stack::Tcp(TcpOptions { min_rto_ps: 5 * MS, ..TcpOptions::default() }),
        // They start a few packets apart.
        start_ps: n * MS / 64,
        ..tcp(registered(name, profile, settings))
    });
    let links = vec![bottleneck(1e10, 0.05, 1000), delay(0.05)];
    let mut plan = plan(links, made.collect(), 1.0, 0.5);
    plan.sample_ps = MS;
    run_checked(plan)
}

fn jain(outcome: &Outcome) -> f64 {
    let rates: Vec<f64> = outcome.flows.iter().map(|f| f.throughput_bps).collect();
    let (sum, squares) = (rates.iter().sum::<f64>(), rates.iter().map(|r| r * r).sum::<f64>());
    sum * sum / squares / rates.len() as f64
}

struct Seen {
    utilisation: f64,
    /// Mean and p99 of the first flow's RTT, us.
    mean_us: f64,
    p99_us: f64,
    jain: f64,
    drops: u64,
}

fn seen(what: &str, outcome: &Outcome) -> Seen {
    let rtt = outcome.flows[0].rtt_ms.unwrap();
    let seen = Seen {
        utilisation: outcome.links[0].utilization.unwrap(),
        mean_us: rtt.mean * 1e3,
        p99_us: rtt.p99 * 1e3,
        jain: jain(outcome),
        drops: outcome.links[0].drops,
    };
    println!(
        "{what}: utilisation {:.3}, RTT {:.1} us, p99 {:.1}, Jain {:.3}, drops {}",
        seen.utilisation, seen.mean_us, seen.p99_us, seen.jain, seen.drops
    );
    seen
}

/// Targets for this network: 120 us and what flow scaling adds.
const TARGETS: [(&str, f64); 3] = [("base_target", 0.00012), ("hops", 0.0), ("fs_range", 0.0003)];

/// Target delay by hand for a window of `w`, us.
fn target_us(w: f64) -> f64 {
    let alpha = 300.0 / (1.0 / 0.1_f64.sqrt() - 0.1);
    120.0 + (alpha / w.sqrt() - alpha / 10.0).clamp(0.0, 300.0)
}

#[test]
fn swift_holds_its_target() {
    for count in [1, 2, 10, 40] {
        let outcome = flows("swift", None, &TARGETS, count);
        let seen = seen(&format!("swift, {count} flows"), &outcome);
        // All queue in one buffer: w = C RTT / count, and RTT = target(w).
        let mut rtt_us = 120.0;
        (0..50).for_each(|_| rtt_us = target_us(rtt_us / 1.2 / count as f64));
        println!("  target by hand {rtt_us:.1} us");
        assert!(seen.utilisation > 0.99 && seen.jain > 0.95);
        assert_near(seen.mean_us, rtt_us, 0.10);
    }
}

/// 600 flows where path and target hold some 300 packets: windows below one, paced. Only the start, 6000 packets at once, loses some.
#[test]
fn swift_paces_an_incast() {
    let outcome = flows("swift", None, &TARGETS, 600);
    let seen = seen("swift, 600 flows", &outcome);
    assert!(seen.utilisation > 0.99 && seen.jain > 0.95);
    assert!(seen.mean_us < 420.0, "the largest target");
    let windows = outcome.flows.iter().map(|f| {
        let column = f.series.column("window").expect("observed");
        *column.values.last().unwrap()
    });
    assert!(windows.sum::<f64>() / 600.0 < 1.0);
}

const TIMES: [(&str, f64); 3] = [("min_rtt", 0.0001), ("t_low", 0.00015), ("t_high", 0.0005)];

/// Where between the thresholds the RTT rests and how flows share is not said; but that it is between, and the link busy.
#[test]
fn timely_keeps_a_short_queue() {
    for count in [1, 2, 10] {
        let outcome = flows("timely", None, &TIMES, count);
        let seen = seen(&format!("timely, {count} flows"), &outcome);
        assert!(seen.utilisation > 0.95 && seen.p99_us < 500.0);
    }
}

/// With the patch the weight is 1/2 at rest, so delta/2 = R beta/2 (RTT - T_low)/T_low: RTT = T_low (1 + delta/(beta R)), R = C/N.
#[test]
fn patched_timely_rests_at_its_fixed_point() {
    for count in [2, 10] {
        let outcome = flows("timely", Some("patched"), &TIMES, count);
        let seen = seen(&format!("patched timely, {count} flows"), &outcome);
        let expected_us = 150.0 * (1.0 + 10e6 / (0.008 * 1e10 / count as f64));
        println!("  by hand {expected_us:.1} us");
        assert_near(seen.mean_us, expected_us, 0.03);
        assert!(seen.jain > 0.99 && seen.utilisation > 0.98);
    }
}
