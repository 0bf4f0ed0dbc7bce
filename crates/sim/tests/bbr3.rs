//! BBR version 3 behind a real queue, beside version 1 and CUBIC.

mod common;

use common::*;
use paceline_net::LossModel;
use paceline_sim::{FlowPlan, Outcome, Plan, Series};

const STARTUP: f64 = 0.0;
const UP: f64 = 5.0;
const PROBE_RTT: f64 = 6.0;

fn with(name: &str, profile: Option<&str>) -> FlowPlan {
    FlowPlan { controller: registered(name, profile, &[]), ..flow(name, &[0], &[1]) }
}

/// A link and its round trip.
#[derive(Clone, Copy)]
struct Path {
    mbps: f64,
    rtt_ms: f64,
}

const PATH: Path = Path { mbps: 100.0, rtt_ms: 40.0 };

impl Path {
    fn bdp_packets(self) -> f64 {
        self.mbps * self.rtt_ms * 1e3 / 8.0 / 1500.0
    }

    /// With a buffer in BDP.
    fn plan(self, flows: Vec<FlowPlan>, buffer: f64, seconds: f64) -> Plan {
        let packets = (buffer * self.bdp_packets()) as u64;
        let bottleneck = bottleneck(self.mbps * 1e6, self.rtt_ms / 2.0, packets);
        let warmup = if seconds > 20.0 { 10.0 } else { 0.0 };
        plan(vec![bottleneck, delay(self.rtt_ms / 2.0)], flows, seconds, warmup)
    }

    /// One flow, sampled each millisecond.
    fn closely(self, flow: FlowPlan, buffer: f64, seconds: f64) -> Outcome {
        run_checked(Plan { sample_ps: MS, ..self.plan(vec![flow], buffer, seconds) })
    }

    fn utilization(self, flow: FlowPlan, loss: LossModel) -> f64 {
        let mut plan = self.plan(vec![flow], 1.0, 120.0);
        plan.links[0].spec.loss = Some(loss);
        run_checked(plan).links[0].utilization.unwrap()
    }
}

fn column<'a>(series: &'a Series, name: &str) -> &'a [f64] {
    series.column(name).expect("a column").values
}

/// Samples, which are milliseconds, at which the flow enters `state`.
fn entries(state: &[f64], wanted: f64) -> Vec<usize> {
    (1..state.len()).filter(|i| state[*i] == wanted && state[i - 1] != wanted).collect()
}

/// Pacing leaves 1 %, ProbeRTT 2 % (half of 200 ms in 5 s); probes queue a quarter of a BDP for a few round trips in 2 to 3 s.
#[test]
fn one_flow_fills_the_link_and_keeps_the_queue_small() {
    for profile in [None, Some("linux")] {
        for buffer in [1.0, 2.0, 5.0] {
            let outcome = PATH.closely(with("bbr3", profile), buffer, 60.0);
            let used = outcome.links[0].utilization.unwrap();
            let queue = outcome.links[0].queue_bytes.unwrap().mean / 1500.0 / PATH.bdp_packets();
            println!("{profile:?}, {buffer} BDP: {:.2} % used, {queue:.3} BDP wait", used * 100.0);
            assert_near(used, 0.99 * 0.98, 0.01);
            assert!(queue < 0.1, "{queue}");
            let bandwidth = column(&outcome.flows[0].series, "max_bandwidth");
            // The draft's first test case: within 2 % of the link's rate.
            assert!(bandwidth[1000..].iter().all(|mbps| (mbps / PATH.mbps - 1.0).abs() < 0.02));
        }
    }
}

/// With a window of two BDP start-up queues one, and a burst or two, where version 1 queues 1.9.
#[test]
fn startup_queues_a_bdp() {
    let outcome = PATH.closely(with("bbr3", None), 4.0, 5.0);
    let queue = column(&outcome.links[0].series, "queue_bytes");
    let largest = queue.iter().copied().fold(0.0, f64::max) / 1500.0 / PATH.bdp_packets();
    println!("largest queue of start-up {largest:.2} BDP");
    assert!((1.0..1.15).contains(&largest), "{largest}");
    assert_eq!(outcome.links[0].drops, 0);
}

/// Where two BDP do not fit, a round of losses ends start-up, before a plateau would, and with fewer losses than version 1 has.
#[test]
fn startup_leaves_a_shallow_buffer_by_loss() {
    for buffer in [0.05, 0.1, 0.25, 0.5] {
        let startup = |name| {
            let outcome = PATH.closely(with(name, None), buffer, 1.5);
            let state = column(&outcome.flows[0].series, "state");
            let length_ms = state.iter().position(|state| *state != STARTUP).expect("it ends");
            let longterm = (name == "bbr3")
                .then(|| column(&outcome.flows[0].series, "inflight_longterm")[length_ms + 1]);
            (length_ms, outcome.links[0].drops, longterm)
        };
        let (length_ms, lost, longterm) = startup("bbr3");
        let (length_v1_ms, lost_v1, _) = startup("bbr1");
        let longterm = longterm.unwrap() / PATH.bdp_packets();
        println!(
            "{buffer} BDP: start-up {length_ms} ms, {lost} lost, then bounded by {longterm:.2} BDP; version 1 {length_v1_ms} ms, \
             {lost_v1} lost"
        );
        // Some two flights leave before the first loss is answered, and the link delivers one of them.
        assert!((lost as f64) < 2.0 * PATH.bdp_packets(), "{lost}");
        assert!(length_ms < length_v1_ms && lost * 2 < lost_v1, "{lost} {lost_v1}");
        // What the path holds.
        assert_near(longterm, 1.0 + buffer, 0.03);
    }
}

/// §5.3.4: every five seconds half a BDP for 200 ms and at most a few round trips.
#[test]
fn probe_rtt_comes_every_five_seconds() {
    let outcome = PATH.closely(with("bbr3", None), 4.0, 60.0);
    let series = &outcome.flows[0].series;
    let (state, cwnd) = (column(series, "state"), column(series, "cwnd_bytes"));
    let entered = entries(state, PROBE_RTT);
    println!("ProbeRTT at {entered:?} ms");
    assert_eq!(entered.len(), 11);
    for pair in entered.windows(2) {
        assert!((5200..5450).contains(&(pair[1] - pair[0])), "{pair:?}");
    }
    for start in entered {
        let length = state[start..].iter().take_while(|state| **state == PROBE_RTT).count();
        assert!((200..=300).contains(&length), "{length} ms");
        for bytes in &cwnd[start..start + length] {
            assert_near(bytes / 1500.0, 0.5 * PATH.bdp_packets(), 0.03);
        }
    }
}

/// Probes for bandwidth come after two to three seconds, or 62 to 63 round trips: at 40 ms within 2.0 to 2.6 s and the time that
/// probe and refill take.
#[test]
fn probes_for_bandwidth_come_at_random_times() {
    let outcome = PATH.closely(with("bbr3", None), 4.0, 120.0);
    let state = column(&outcome.flows[0].series, "state");
    let probe_rtt = entries(state, PROBE_RTT);
    let probes = entries(state, UP);
    let undisturbed: Vec<usize> = probes
        .windows(2)
        .filter(|pair| !probe_rtt.iter().any(|at| (pair[0]..pair[1]).contains(at)))
        .map(|pair| pair[1] - pair[0])
        .collect();
    println!("ms between probes: {undisturbed:?}");
    assert!(undisturbed.len() > 5);
    assert!(undisturbed.iter().all(|ms| (2000..2950).contains(ms)));
    assert!(undisturbed.iter().max() > undisturbed.iter().min().map(|ms| ms + 100).as_ref());
}

/// The draft aims at tolerating 1 % (§5.3.3.8.3): a cruise of n rounds ends at (0.99 (1-p))^n of the rate at which it began, for
/// what is delivered at 1 % below the bandwidth, less what is lost, becomes the bandwidth. n = 62 and p = 1 % leave 0.29, on
/// average 0.58; samples scatter, and the largest of a round counts, so it is more.
#[test]
fn one_percent_of_random_loss_is_survived_and_five_are_not() {
    let used = |name, p| PATH.utilization(with(name, None), LossModel::Bernoulli(p));
    for (p, least, most) in [(0.001, 0.88, 0.97), (0.01, 0.75, 0.9), (0.05, 0.0, 0.1)] {
        let (v3, v1, cubic) = (used("bbr3", p), used("bbr1", p), used("cubic", p));
        println!("loss {} %: used {v3:.3}, version 1 {v1:.3}, CUBIC {cubic:.3}", p * 100.0);
        assert!((least..most).contains(&v3), "{v3}");
        assert!(v1 > 0.9 && cubic < 0.2, "{v1} {cubic}");
    }
}

/// LossThresh: with every n-th packet lost, up to nearly 2 % a probe succeeds, above it each probe fails and the bound shrinks with
/// what is delivered. At 200 ms a cruise is 10 to 15 rounds, so that short-term bounds take little.
#[test]
fn two_percent_are_a_threshold() {
    let path = Path { mbps: 200.0, rtt_ms: 200.0 };
    for profile in [None, Some("linux")] {
        let used = |every| path.utilization(with("bbr3", profile), LossModel::Periodic(every));
        let (below, above, far) = (used(53), used(47), used(20));
        println!(
            "{profile:?}: used {below:.3} with 1.89 %, {above:.3} with 2.13 %, {far:.3} with 5 %"
        );
        assert!(below > 0.7, "{below}");
        assert!(above < 0.6 * below && far < 0.1, "{above} {far}");
    }
}

/// Shares become equal, however much one was ahead, but slowly: as measured with Google's kernel (Zeynali et al. 2024: much more
/// slowly where flows do not begin together).
#[test]
fn two_flows_share_in_the_end() {
    for buffer in [0.25, 4.0] {
        for start_s in [0, 20] {
            let second = FlowPlan { start_ps: start_s * 1000 * MS, ..with("bbr3", None) };
            let outcome = run_checked(PATH.plan(vec![with("bbr3", None), second], buffer, 200.0));
            let share = |from_s: usize, to_s: usize| {
                let sum = |i: usize, skipped_s: usize| -> f64 {
                    let rates = column(&outcome.flows[i].series, "throughput_bps");
                    rates[(from_s - skipped_s) * 100..(to_s - skipped_s) * 100].iter().sum()
                };
                let (first, second) = (sum(0, 0), sum(1, start_s as usize));
                first / (first + second)
            };
            let (early, late) = (share(20, 40), share(100, 195));
            println!(
                "{buffer} BDP, second from {start_s} s on: share of the first {early:.3} from 20 to 40 s, {late:.3} from 100 s on"
            );
            assert!((late - 0.5).abs() < 0.07, "{late}");
            if start_s > 0 {
                assert!(early > 0.7, "{early}");
            }
        }
    }
}

/// Shares of BBR against a CUBIC flow.
fn shares(path: Path, name: &str, buffer: f64) -> f64 {
    let outcome =
        run_checked(path.plan(vec![with(name, None), with("cubic", None)], buffer, 180.0));
    let rates: Vec<f64> = outcome.flows.iter().map(|flow| flow.throughput_bps).collect();
    rates[0] / rates.iter().sum::<f64>()
}

/// Up to 1 BDP version 1 leaves CUBIC a tenth (Ware et al. 2019: next to nothing in shallow buffers, and some 60 % in deep ones);
/// version 3 leaves it more than twice as much. In deep buffers both leave about half.
#[test]
fn cubic_keeps_a_share() {
    for (buffer, least) in [(0.5, 0.3), (1.0, 0.2), (4.0, 0.35)] {
        let (v1, v3) = (shares(PATH, "bbr1", buffer), shares(PATH, "bbr3", buffer));
        println!(
            "{buffer} BDP: CUBIC's share {:.3} beside version 1, {:.3} beside 3",
            1.0 - v1,
            1.0 - v3
        );
        assert!(1.0 - v3 > least, "{v3}");
        if buffer <= 1.0 {
            assert!(1.0 - v1 < 0.15 && (1.0 - v3) > 2.0 * (1.0 - v1), "{v1} {v3}");
        } else {
            assert!((v1 - 0.43).abs() < 0.1 && (v3 - 0.5).abs() < 0.15, "{v1} {v3}");
        }
    }
}

/// §5.3.3.8.3: the waits are chosen so that a Reno flow reaches 25 Mbit/s at 30 ms beside it. There CUBIC has its fair share; with
/// a longer round trip, and so a longer climb to the next loss, it has not (Zeynali et al. 2024, at 100 ms).
#[test]
fn the_share_is_fair_where_the_draft_aims_and_not_at_a_long_round_trip() {
    let design = Path { mbps: 25.0, rtt_ms: 30.0 };
    let long = Path { mbps: 100.0, rtt_ms: 100.0 };
    for buffer in [0.5, 1.0] {
        let (fair, unfair) = (shares(design, "bbr3", buffer), shares(long, "bbr3", buffer));
        println!(
            "{buffer} BDP: share of BBR {fair:.3} at 25 Mbit/s and 30 ms, {unfair:.3} at 100 Mbit/s and 100 ms"
        );
        assert!((fair - 0.5).abs() < 0.1, "{fair}");
        assert!((0.65..0.9).contains(&unfair), "{unfair}");
    }
}
