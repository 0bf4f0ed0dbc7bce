//! What the law of the 2020 MPC paper does behind a real queue, one round trip late: 400 Mbit/s, 25 ms, a buffer of one BDP,
//! no probes and no reaction to loss, so that the law alone is seen.

mod common;

use common::*;
use paceline_cc::{Needs, registry};
use paceline_net::{Buffer, LinkSpec};
use paceline_sim::{DatagramOptions, Outcome, Stack};

const RATE_BPS: f64 = 400e6;

/// The index of a word of one of the controller's choices.
fn word(param: &str, word: &str) -> f64 {
    let spec = registry::find("mpc-2020").expect("registered");
    let param = spec.params.iter().find(|p| p.name == param).expect("a parameter");
    let paceline_cc::Kind::Choice(words) = param.kind else { panic!("not a choice") };
    words.iter().position(|w| *w == word).expect("a word") as f64
}

/// 40 s of one flow, measured over the last 20.
fn law(choices: &[(&str, &str)]) -> Outcome {
    let bare = [("probe", "none"), ("loss", "none")];
    let mut values: Vec<(&str, f64)> =
        bare.iter().chain(choices).map(|(param, w)| (*param, word(param, w))).collect();
    values.extend([("c1", 0.4), ("c2", 0.2), ("c3", 0.4), ("target", 0.25)]);
    values.extend([("r_max", 2.0 * RATE_BPS), ("tau_d", 1000.0)]);
    let mut flow = tcp(registered("mpc-2020", None, &values));
    flow.stack = Stack::Datagram(DatagramOptions::default());
    flow.needs = Needs::PACING.and(Needs::RATE_SAMPLE);
    let bdp = (RATE_BPS / 8.0 * 0.025) as u64;
    let buffer = Buffer { bytes: Some(bdp), ..Buffer::default() };
    let link = LinkSpec { buffer, ..bottleneck(RATE_BPS, 12.5, 0) };
    run_checked(plan(vec![link, delay(12.5)], vec![flow], 40.0, 20.0))
}

/// With a horizon of two round trips the queue stands at its target, a quarter of the buffer: 25 + 6.25 ms.
#[test]
fn an_explicit_horizon_is_stable() {
    let outcome = law(&[("horizon", "explicit"), ("alpha_per", "rtt"), ("capacity", "windowed")]);
    let (flow, link) = (&outcome.flows[0], &outcome.links[0]);
    let rtt = flow.rtt_ms.unwrap();
    println!("explicit horizon: RTT {:.2} ms, sd {:.3} ms", rtt.mean, rtt.std);
    assert_near(rtt.mean, 31.25, 0.02);
    assert!(rtt.std < 0.5, "{}", rtt.std);
    assert_near(flow.pacing_bps.unwrap().mean, RATE_BPS, 0.01);
    assert!(link.utilization.unwrap() > 0.99);
}

/// As printed, with dt the time between ACKs, the law has no damping and one round trip of delay: a limit cycle.
#[test]
fn the_printed_step_cycles() {
    let outcome = law(&[("horizon", "printed"), ("alpha_per", "ack"), ("capacity", "windowed")]);
    let rtt = outcome.flows[0].rtt_ms.unwrap();
    println!("printed step: RTT {:.2} ms, sd {:.2} ms", rtt.mean, rtt.std);
    assert!(rtt.std > 5.0, "{}", rtt.std);
}

/// The integral (6) over the connection's life takes the flow's own rate for the capacity: once low, it stays low.
#[test]
fn the_integral_confirms_itself() {
    let outcome = law(&[("horizon", "explicit"), ("alpha_per", "rtt"), ("capacity", "integral")]);
    let utilisation = outcome.links[0].utilization.unwrap();
    println!("integral: utilisation {utilisation:.3}");
    assert!(utilisation < 0.9 && outcome.flows[0].rtt_ms.unwrap().mean < 25.5);
}
