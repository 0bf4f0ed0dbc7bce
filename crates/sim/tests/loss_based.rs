//! BIC, HighSpeed TCP, H-TCP, Scalable, Westwood+: what the literature says they do, in the simulator.

mod common;

use common::*;
use paceline_net::{Jitter, LinkSpec, LossModel};
use paceline_sim::{FlowOutcome, FlowPlan};

/// One flow for `seconds` on a path of 100 ms without a queue, every `every`-th packet of which is lost.
fn under_periodic_loss(name: &str, every: u64, seconds: f64) -> FlowOutcome {
    let lossy = LinkSpec { loss: Some(LossModel::Periodic(every)), ..delay(50.0) };
    let flow = flow(name, &[0], &[1]);
    let outcome = run_checked(plan(vec![lossy, delay(50.0)], vec![flow], seconds, seconds / 4.0));
    outcome.flows[0].clone()
}

/// Mean window, packets: throughput times RTT, the RTT being constant.
fn mean_window(flow: &FlowOutcome) -> f64 {
    flow.throughput_bps / 8.0 / 1500.0 * 0.100
}

/// RFC 3649: w = 0.12 / p^0.835 (algorithms: 0.1189 / p^0.8348).
#[test]
fn hstcp_follows_its_response_function() {
    for every in [1000, 10_000, 100_000] {
        let law = 0.1189 * (every as f64).powf(0.8348);
        let window = mean_window(&under_periodic_loss("hstcp", every, 400.0));
        println!("hstcp, loss 1/{every}: mean window {window:.1}, law {law:.1}");
        assert_near(window, law, 0.03);
    }
}

/// T5: Scalable comes back from a loss in ln(8/7) / ln(1.01) = 13.4 round trips at any window. A cycle has one more, in which
/// the loss is repaired and nothing grows.
///
/// That round trip is why the window stays below 0.08/p, which counts every packet: with W before the loss, 1/p packets less
/// the 7/8 W of the repair bring back W/8, so W = 0.01 / p / (1/8 + 0.01 * 7/8), and the mean is 1/p over the cycle.
#[test]
fn scalable_recovers_in_as_many_round_trips_at_any_window() {
    for (every, seconds) in [(1000, 400.0), (10_000, 400.0), (100_000, 300.0)] {
        let flow = under_periodic_loss("scalable", every, seconds);
        let mean = mean_window(&flow);
        let round_trips = every as f64 / mean;
        let most = flow.cwnd_bytes.unwrap().max / 1500.0;
        println!(
            "scalable, loss 1/{every}: mean window {mean:.1}, {round_trips:.2} RTTs, most {most:.1}"
        );
        assert_near(round_trips, 13.4 + 1.0, 0.02);
        assert_near(most, 0.01 * every as f64 / (0.125 + 0.01 * 0.875), 0.02);
    }
}

/// What is left of the window after a loss: all of them cut less than half where windows are large (NIST SP 500-282, findings).
#[test]
fn a_loss_takes_the_share_that_each_law_says() {
    // HighSpeed TCP: b(323) = 0.388. H-TCP: RTTmin = RTTmax on a path without a queue.
    for (name, kept) in
        [("reno", 0.5), ("hstcp", 0.612), ("htcp", 0.8), ("bic", 0.875), ("scalable", 0.875)]
    {
        let cwnd = under_periodic_loss(name, 10_000, 400.0).cwnd_bytes.unwrap();
        println!("{name}: {:.3} of the window kept, law {kept}", cwnd.min / cwnd.max);
        assert_near(cwnd.min / cwnd.max, kept, 0.02);
    }
}

/// A flow alone at 20 Mbit/s and 40 ms, with a buffer of `share` of the 66 packets that the path holds.
fn alone(name: &str, share: f64) -> FlowOutcome {
    let links = vec![bottleneck(20e6, 20.0, (share * 66.7) as u64), delay(20.0)];
    let outcome = run_checked(plan(links, vec![flow(name, &[0], &[1])], 120.0, 30.0));
    outcome.flows[0].clone()
}

/// A loss empties the buffer and no more: Reno idles with half a BDP of buffer, these two do not.
#[test]
fn htcp_and_westwood_empty_the_buffer_and_keep_the_link_full() {
    let use_of = |name| alone(name, 0.5).throughput_bps / 20e6;
    let (reno, htcp, westwood) = (use_of("reno"), use_of("htcp"), use_of("westwood"));
    println!("half a BDP: reno {reno:.4}, htcp {htcp:.4}, westwood {westwood:.4}");
    assert!(reno < 0.97 && htcp > 0.995 && westwood > 0.985);
    // Algorithms 3.7: with one BDP of buffer Westwood+ falls to the BDP.
    let least = alone("westwood", 1.0).cwnd_bytes.unwrap().min / 1500.0;
    println!("one BDP: westwood falls to {least:.1} packets of 66.7");
    assert_near(least, 66.7, 0.05);
}

/// Throughputs and mean RTTs of two flows of a controller at 100 Mbit/s with 40 ms of buffer, at base RTTs of 40 ms and `ratio`
/// times that, the second a little later.
///
/// Without the jitter (0.5 ms, in order) this is another experiment: packets of deterministic flows come to a full drop-tail
/// queue in a fixed order, the same flow loses each time (the phase effects of Floyd and Jacobson 1991), and the flow with
/// the long RTT may win.
fn contest(name: &str, ratio: f64, seed: u64) -> [(f64, f64); 2] {
    let jitter = Some(Jitter { mean_ps: MS / 2, max_ps: 2 * MS, reorder: false });
    let access = || LinkSpec { jitter, ..delay(0.0) };
    let links = vec![
        access(),
        access(),
        bottleneck(100e6, 20.0, 333),
        delay(20.0),
        delay(40.0 * ratio - 20.0),
    ];
    let contestant = |n: u32| FlowPlan {
        start_ps: u64::from(n) * (seed + 1) * 370 * MS,
        ..flow(name, &[n, 2], &[3 + n])
    };
    let mut plan = plan(links, vec![contestant(0), contestant(1)], 200.0, 50.0);
    plan.seed = seed;
    let outcome = run_checked(plan);
    let of = |n: usize| {
        let flow = &outcome.flows[n];
        (flow.throughput_bps, flow.rtt_ms.unwrap().mean)
    };
    [of(0), of(1)]
}

/// Mean over seeds of e in: throughput ratio = RTT ratio^e.
fn rtt_exponent(name: &str) -> f64 {
    let exponents = (0..3).map(|seed| {
        let [(short_bps, short_ms), (long_bps, long_ms)] = contest(name, 6.0, seed);
        (short_bps / long_bps).ln() / (long_ms / short_ms).ln()
    });
    exponents.sum::<f64>() / 3.0
}

/// RTT unfairness (Xu, Harfoush and Rhee 2004): a controller whose window goes with p^-d shares like RTT^-(1/(1-d)) if flows
/// lose together: 2 for Reno, 6 for HighSpeed TCP, without bound for Scalable. Flows that do not always lose together come
/// between that and RTT^-1. The order holds: Reno, H-TCP, then HighSpeed TCP and BIC, then Scalable.
#[test]
fn rtt_unfairness_grows_with_the_exponent_of_the_response_function() {
    let [reno, htcp, hstcp, bic, scalable] =
        ["reno", "htcp", "hstcp", "bic", "scalable"].map(|name| {
            let exponent = rtt_exponent(name);
            println!("{name}: throughput goes with RTT^-{exponent:.2}");
            exponent
        });
    assert!((1.0..2.0).contains(&reno));
    assert!(reno < htcp && htcp < hstcp.min(bic) && hstcp.max(bic) < scalable);
    assert!(hstcp < 1.0 / (1.0 - 0.835));
}

/// At equal RTTs all share equally but Scalable: increase and decrease being in proportion to the window, shares stay.
#[test]
fn scalable_alone_does_not_converge() {
    for name in ["bic", "hstcp", "htcp", "scalable"] {
        let [(first, _), (second, _)] = contest(name, 1.0, 0);
        let ratio = first.max(second) / first.min(second);
        println!("{name}: equal flows share 1 : {ratio:.2}");
        assert_eq!(ratio > 1.25, name == "scalable", "{name}: {ratio}");
    }
}
