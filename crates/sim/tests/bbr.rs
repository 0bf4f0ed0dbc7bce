//! BBR version 1 behind a real queue: 100 Mbit/s, 40 ms, BDP 333 packets.

mod common;

use common::*;
use paceline_cc::registry;
use paceline_sim::{FlowPlan, Outcome, Series};

/// With the 0.12 ms that a packet is in service.
const BDP_PACKETS: f64 = 1e8 / 8.0 * 0.04012 / 1500.0;
const PROBE_RTT: f64 = 3.0;

fn flow(profile: Option<&str>) -> FlowPlan {
    let spec = registry::find("bbr1").expect("registered");
    FlowPlan {
        needs: spec.needs,
        fields: spec.fields.to_vec(),
        ..tcp(registered("bbr1", profile, &[]))
    }
}

fn outcome(flows: Vec<FlowPlan>, buffer: u64, seconds: f64) -> Outcome {
    let links = vec![bottleneck(1e8, 20.0, buffer), delay(20.0)];
    let mut plan = plan(links, flows, seconds, 0.0);
    plan.sample_ps = MS;
    run_checked(plan)
}

fn column<'a>(series: &'a Series, name: &str) -> &'a [f64] {
    series.column(name).expect("a column").values
}

/// With gain 2/ln 2 start-up ends with 2.885 BDP in flight, 1.885 of them in the queue, and headroom for three bursts of 1 ms:
/// at 288.5 Mbit/s 24 packets each.
#[test]
fn start_up_queues_two_bdp_and_drains_them() {
    let outcome = outcome(vec![flow(None)], 1333, 5.0);
    let queue = column(&outcome.links[0].series, "queue_bytes");
    let packets = |value: &f64| value / 1500.0;
    let largest = queue.iter().map(packets).fold(0.0, f64::max);
    let expected = 1.885 * BDP_PACKETS + 3.0 * 24.0;
    println!("largest queue {largest:.0} packets, expected {expected:.0}");
    assert_near(largest, expected, 0.02);
    assert_eq!(outcome.links[0].drops, 0);
    // Then the probe of 1.25 leaves a quarter at most.
    let later = &queue[2000..];
    let mean = later.iter().map(packets).sum::<f64>() / later.len() as f64;
    println!("mean queue from 2 s on {mean:.1} packets");
    assert!(mean < 0.25 * BDP_PACKETS);
}

/// Four packets for 200 ms and at most a few round trips, every ten seconds: a duty of about 2 %.
#[test]
fn probe_rtt_comes_every_ten_seconds() {
    let outcome = outcome(vec![flow(None)], 1333, 60.0);
    let series = &outcome.flows[0].series;
    let (state, cwnd) = (column(series, "state"), column(series, "cwnd_bytes"));
    let entered: Vec<usize> =
        (1..state.len()).filter(|i| state[*i] == PROBE_RTT && state[i - 1] != PROBE_RTT).collect();
    let seconds: Vec<f64> = entered.iter().map(|i| series.time_s()[*i]).collect();
    println!("ProbeRTT at {seconds:.2?} s");
    assert_eq!(entered.len(), 5);
    for pair in seconds.windows(2) {
        assert!((10.2..10.5).contains(&(pair[1] - pair[0])), "{pair:?}");
    }
    for start in entered {
        let length = state[start..].iter().take_while(|s| **s == PROBE_RTT).count();
        // Up to one RTT to empty the path, 200 ms, up to one ACK more.
        assert!((200..=300).contains(&length), "{length} ms");
        assert!(cwnd[start..start + length].iter().all(|bytes| *bytes == 6000.0));
    }
    assert!(outcome.links[0].utilization.unwrap() > 0.95);
}

/// Flows of equal RTT come to equal shares, however much one was ahead: emptying the queue together, they see the same RTprop.
/// (Not so behind four BDP with the draft's constants: both are then limited by their windows, which are proportional to what
/// they have, and shares wander for minutes.)
#[test]
fn two_flows_share() {
    for profile in [None, Some("linux"), Some("ns-3")] {
        let second = FlowPlan { start_ps: 3000 * MS, ..flow(profile) };
        let outcome = outcome(vec![flow(profile), second], 333, 100.0);
        let share = |from: usize, to: usize| {
            let sum = |i: usize| -> f64 {
                column(&outcome.flows[i].series, "throughput_bps")[from..to].iter().sum()
            };
            sum(0) / (sum(0) + sum(1))
        };
        let (early, late) = (share(3000, 10_000), share(20_000, 96_000));
        println!(
            "{profile:?}: share of the first flow {early:.3} until 10 s, {late:.3} from 20 s on"
        );
        assert!((late - 0.5).abs() < 0.05, "{late}");
    }
}
