//! ARX predictive pacing behind a real queue.

mod common;

use common::*;
use paceline_cc::registry;
use paceline_sim::{FlowPlan, Outcome};

fn run_arx(settings: &[(&str, f64)], rtt_ms: f64, buffer: u64) -> Outcome {
    let spec = registry::find("arx").expect("registered");
    let flow = FlowPlan {
        needs: spec.needs,
        fields: spec.fields.to_vec(),
        ..tcp(registered("arx", None, settings))
    };
    let links = vec![bottleneck(1e8, rtt_ms / 2.0, buffer), delay(rtt_ms / 2.0)];
    run_checked(plan(links, vec![flow], 60.0, 10.0))
}

/// What it is for: hardly any variance of RTT and rate. What it lacks: once the prediction is exact its variance is zero, the optimum
/// is the rate there is, and no RTT is better than another. Where it rests, link full or not, start-up and the first second decide.
#[test]
fn it_rests_somewhere() {
    for (rtt_ms, interval) in
        [(5.0, 0.01), (25.0, 0.01), (25.0, 0.02), (100.0, 0.01), (100.0, 0.02)]
    {
        let outcome = run_arx(&[("interval", interval)], rtt_ms, 4000);
        let (flow, utilisation) = (&outcome.flows[0], outcome.links[0].utilization.unwrap());
        let (rtt, rate) = (flow.rtt_ms.unwrap(), flow.pacing_bps.unwrap());
        println!(
            "{rtt_ms} ms, every {interval} s: utilisation {utilisation:.3}, RTT {:.1} +- {:.2} ms, rate {:.1} +- {:.2} Mbit/s",
            rtt.mean,
            rtt.std,
            rate.mean / 1e6,
            rate.std / 1e6
        );
        assert!(rtt.std < 0.01 * rtt.mean && rate.std < 0.01 * rate.mean);
        assert!(utilisation > 0.1, "at least the least rate");
    }
}

/// The terms conflict. Where the rate weighs ten times an RTT the buffer is full, 480 ms, and the rate at its upper bound of twice
/// what is delivered; where it weighs nothing the rate ends at the lower bound of a tenth.
#[test]
fn the_weights_pull_to_the_bounds() {
    for rtt_ms in [5.0, 25.0, 100.0] {
        let outcome = run_arx(&[("xi", 10.0)], rtt_ms, 4000);
        let flow = &outcome.flows[0];
        assert_near(flow.rtt_ms.unwrap().p50, rtt_ms + 480.0, 0.01);
        assert_near(flow.pacing_bps.unwrap().mean, 2e8, 0.03);
    }
    let outcome = run_arx(&[("xi", 0.0)], 5.0, 4000);
    assert_near(outcome.links[0].utilization.unwrap(), 0.1, 0.02);
}
