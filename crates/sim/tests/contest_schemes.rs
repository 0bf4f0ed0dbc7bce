//! The contest's schemes on a link of fixed rate, where their balance can be derived by hand: 12 Mbit/s, 1 ms a packet, 40 ms.

mod common;

use common::*;
use paceline_cc::registry;
use paceline_sim::{DatagramOptions, FlowOutcome, FlowPlan, LinkOutcome, PacketSizes, Stack};

/// RTT of an empty path, ms: twice 20 ms and the packet's own 1 ms.
const BASE_MS: f64 = 41.0;

/// Flow and bottleneck between `warmup` and `seconds`.
fn run_scheme(
    name: &str,
    profile: Option<&str>,
    settings: &[(&str, f64)],
    warmup: f64,
    seconds: f64,
) -> (FlowOutcome, LinkOutcome) {
    let spec = registry::find(name).expect("registered");
    let flow = FlowPlan {
        needs: spec.needs,
        fields: spec.fields.to_vec(),
        stack: Stack::Datagram(DatagramOptions::default()),
        packets: PacketSizes { data_bytes: 1500, header_bytes: 0, ack_bytes: 40 },
        ..tcp(registered(name, profile, settings))
    };
    let links = vec![bottleneck(12e6, 20.0, 10_000), delay(20.0)];
    let mut outcome = run_checked(plan(links, vec![flow], seconds, warmup));
    (outcome.flows.remove(0), outcome.links.remove(0))
}

/// w moves by one packet per round trip and sees its effect one round trip later: the RTT stays within two packets of T.
#[test]
fn delay_threshold_holds_the_rtt_at_the_threshold() {
    for threshold_ms in [60.0, 75.0, 120.0] {
        let settings = [("threshold", threshold_ms / 1e3)];
        let (flow, link) = run_scheme("delay-threshold", None, &settings, 20.0, 60.0);
        let rtt = flow.rtt_ms.unwrap();
        println!("T = {threshold_ms} ms: RTT {:.1} ms, {:.1} to {:.1}", rtt.mean, rtt.min, rtt.max);
        assert!((rtt.mean - threshold_ms).abs() < 1.5);
        assert!(rtt.min >= threshold_ms - 2.01 && rtt.max <= threshold_ms + 2.01);
        assert_near(link.utilization.unwrap(), 1.0, 1e-3);
    }
    // Below the RTT of the empty path the window is one packet: one per 41 ms.
    let (flow, _) = run_scheme("delay-threshold", None, &[("threshold", 0.04)], 20.0, 60.0);
    assert_near(flow.throughput_bps, 12_000.0 / 0.041, 0.01);
}

/// A saw from w0, where the halvings end, to W, where the RTT is T, one packet per round trip. Below the bandwidth-delay product
/// B a round trip takes 41 ms and delivers floor(w), so that from k to k + 1 it takes 1 + 1/2k of them; above B it takes w ms. While
/// the RTTs of what is in flight are above T nothing grows: W more packets are acknowledged at the link's rate.
fn saw_utilisation(w0: f64, top: f64) -> f64 {
    let from = w0.max(BASE_MS);
    let below = from - w0 + (from / w0).ln() / 2.0;
    let full_ms = (top * top - from * from) / 2.0 + top;
    let delivered = (BASE_MS * BASE_MS - w0 * w0).max(0.0) / 2.0 + full_ms;
    delivered / (below * BASE_MS + full_ms)
}

#[test]
fn rtt_aimd_collapses_with_every_ack() {
    for threshold_ms in [80.0, 120.0] {
        let settings = [("threshold", threshold_ms / 1e3)];
        let (flow, link) = run_scheme("rtt-aimd", None, &settings, 20.0, 400.0);
        let cwnd = flow.cwnd_bytes.unwrap();
        let expected = saw_utilisation(1.5, threshold_ms);
        let got = link.utilization.unwrap();
        println!("T = {threshold_ms} ms: utilisation {got:.3}, by hand {expected:.3}");
        assert_eq!(cwnd.min, 1500.0, "halved until below two packets");
        assert_near(cwnd.max, threshold_ms * 1500.0, 0.03);
        assert_near(got, expected, 0.03);
    }
}

/// Once per round trip it is Reno with T in the place of a full buffer: full from T = 2 * 41 ms on.
#[test]
fn rtt_aimd_once_saws_like_reno() {
    for threshold_ms in [60.0, 120.0] {
        let settings = [("threshold", threshold_ms / 1e3)];
        let (flow, link) = run_scheme("rtt-aimd", Some("once"), &settings, 20.0, 400.0);
        let cwnd = flow.cwnd_bytes.unwrap();
        let expected = saw_utilisation(threshold_ms / 2.0, threshold_ms);
        let got = link.utilization.unwrap();
        println!("T = {threshold_ms} ms: utilisation {got:.4}, by hand {expected:.4}");
        assert_near(cwnd.min, threshold_ms / 2.0 * 1500.0, 0.05);
        assert_near(cwnd.max, threshold_ms * 1500.0, 0.05);
        assert_near(got, expected, 0.01);
    }
}

/// L1. w = lambda B m^2 / r and w = B r give r = sqrt(lambda) m, in every variant. m is forgotten after 100 of it, 4.1 s.
#[test]
fn latte_inflates_the_rtt_by_the_root_of_lambda() {
    for (profile, lambda) in
        [("report-fixed", 1.7), ("report-fixed", 2.5), ("fixed", 1.7), ("fixed", 1.2)]
    {
        let (flow, _) = run_scheme("latte", Some(profile), &[("lambda", lambda)], 1.5, 3.5);
        let (got, expected) = (flow.rtt_ms.unwrap().mean, BASE_MS * lambda.sqrt());
        println!("latte {profile}, lambda {lambda}: RTT {got:.1} ms, by hand {expected:.1}");
        assert_near(got, expected, 0.05);
    }
    // lambda = 1.6 + 4/w with w = B r: r^2 = (1.6 + 4/r) m^2 in packets and ms alike, r = 53.1.
    for profile in ["report", "released"] {
        let (flow, _) = run_scheme("latte", Some(profile), &[], 1.5, 3.5);
        let got = flow.rtt_ms.unwrap().mean;
        println!("latte {profile}: RTT {got:.1} ms, by hand 53.1");
        assert_near(got, 53.1, 0.05);
    }
}

/// w = lambda B m e^(1 - r/m) and w = B r: (r/m) e^(r/m - 1) = lambda, at r = x m. From one round trip to the next a deviation is
/// multiplied by -x, so it grows: the RTT swings about that point instead of resting there (Latte's factor is -1).
#[test]
fn exp_penalty_swings_about_its_balance() {
    for (lambda, x) in [(2.0, 1.3748), (4.0, 1.7990)] {
        assert!((x * f64::exp(x - 1.0) - lambda).abs() < 1e-3, "x by hand");
        let (flow, _) = run_scheme("exp-penalty", None, &[("lambda", lambda)], 3.0, 9.0);
        let (rtt, expected) = (flow.rtt_ms.unwrap(), BASE_MS * x);
        println!(
            "exp-penalty, lambda {lambda}: RTT {:.1} ms, {:.1} to {:.1}, by hand {expected:.1}",
            rtt.mean, rtt.p5, rtt.p95
        );
        assert_near(rtt.mean, expected, 0.08);
        assert!(rtt.p5 < expected && rtt.p95 > expected);
    }
}

/// In balance the gradient is zero and the window lambda B m: the RTT is lambda times its minimum.
#[test]
fn rtt_gradient_leaves_lambda() {
    for profile in [None, Some("released")] {
        let (flow, _) = run_scheme("rtt-gradient", profile, &[], 3.0, 9.0);
        let got = flow.rtt_ms.unwrap().p95;
        println!("rtt-gradient {profile:?}: RTT p95 {got:.1} ms, lambda m {:.1}", BASE_MS * 2.0);
        assert_near(got, BASE_MS * 2.0, 0.05);
    }
}

/// The code's cycle always sends 1/0.9 times the rate and fills the window; BBR's, of mean 1, queues a probe's quarter.
#[test]
fn cycle_gain_fills_its_window_or_a_quarter() {
    let (flow, _) = run_scheme("cycle-gain", None, &[], 5.0, 9.0);
    let got = flow.rtt_ms.unwrap().mean;
    println!("cycle-gain: RTT {got:.1} ms, lambda m {:.1}", BASE_MS * 2.0);
    assert_near(got, BASE_MS * 2.0, 0.05);
    let (flow, link) = run_scheme("cycle-gain", Some("bbr"), &[], 5.0, 60.0);
    let rtt = flow.rtt_ms.unwrap();
    println!("cycle-gain bbr: RTT p50 {:.1}, max {:.1} ms", rtt.p50, rtt.max);
    assert!(rtt.p50 < 1.25 * BASE_MS && link.utilization.unwrap() > 0.95);
}
