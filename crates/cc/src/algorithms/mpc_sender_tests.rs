use super::super::mpc_2020::SPEC;
use super::*;

const MS: u64 = 1_000_000;
const PACKET: u64 = 1500;

/// A sender paced by `mpc-2020` through one queue: data reaches the queue at once, the ACK comes a base RTT after service.
struct Loop {
    mpc: Box<dyn Controller>,
    now_ns: u64,
    next_send_ns: u64,
    link_free_ns: u64,
    in_flight: std::collections::VecDeque<(u64, u64, u64)>,
    delivered: u64,
    last: AckSample,
}

const BASE_NS: u64 = 25 * MS;

impl Loop {
    fn new(profile: Option<&str>, settings: &[(&str, f64)]) -> Self {
        let mut params = SPEC.params(profile).unwrap();
        for (key, value) in settings {
            params.set(key, *value).unwrap();
        }
        let path = PathInfo {
            now_ns: 0,
            packet_bytes: PACKET as u32,
            initial_window_packets: 10,
            seed: 0,
        };
        Self {
            mpc: build(&params, &path),
            now_ns: 0,
            next_send_ns: 0,
            link_free_ns: 0,
            in_flight: std::collections::VecDeque::new(),
            delivered: 0,
            last: AckSample::default(),
        }
    }

    /// Runs until `until_ns` with an unlimited queue served at `bytes_per_s`; calls `seen` with the RTT (s) of each ACK.
    fn run(&mut self, until_ns: u64, bytes_per_s: f64, mut seen: impl FnMut(f64)) {
        while self.now_ns < until_ns {
            let control = self.mpc.control();
            let open = (self.in_flight.len() as u64 + 1) * PACKET <= control.cwnd_bytes;
            let ack_ns = self.in_flight.front().map_or(u64::MAX, |p| p.0);
            let send_ns = if open { self.next_send_ns.max(self.now_ns) } else { u64::MAX };
            if send_ns <= ack_ns {
                self.now_ns = send_ns;
                let service_ns = (PACKET as f64 / bytes_per_s * 1e9) as u64;
                self.link_free_ns = self.link_free_ns.max(send_ns) + service_ns;
                self.in_flight.push_back((self.link_free_ns + BASE_NS, send_ns, self.delivered));
                self.next_send_ns =
                    send_ns + (PACKET as f64 / control.pacing_bytes_per_s as f64 * 1e9) as u64;
                continue;
            }
            let (at, sent_ns, prior) = self.in_flight.pop_front().unwrap();
            self.now_ns = at;
            self.delivered += PACKET;
            self.last = AckSample {
                now_ns: at,
                acked_bytes: PACKET,
                acked_packets: 1,
                rtt_ns: at - sent_ns,
                sent_ns,
                delivered_bytes: self.delivered - prior,
                interval_ns: at - sent_ns,
                delivered_total_bytes: self.delivered,
                prior_delivered_total_bytes: prior,
                ..AckSample::default()
            };
            self.mpc.on_ack(&Ack { sample: self.last, hops: &[] });
            seen((at - sent_ns) as f64 * 1e-9);
        }
    }

    fn observed(&self) -> [f64; 7] {
        let mut out = [0.0; 7];
        self.mpc.observe(&mut out);
        out
    }
}

/// Mean and standard deviation.
fn statistics(values: &[f64]) -> (f64, f64) {
    let mean = values.iter().sum::<f64>() / values.len() as f64;
    let variance =
        values.iter().map(|v| (v - mean) * (v - mean)).sum::<f64>() / values.len() as f64;
    (mean, variance.sqrt())
}

/// RTTs (ms) and throughput (bytes/s) of the seconds 10 to 20 on a link of 50 MB/s, without probes.
fn steady(profile: Option<&str>, settings: &[(&str, f64)]) -> (Vec<f64>, f64) {
    let mut run = Loop::new(profile, settings);
    run.run(10_000 * MS, 5e7, |_| {});
    let before = run.delivered;
    let mut rtts = Vec::new();
    run.run(20_000 * MS, 5e7, |rtt| rtts.push(rtt * 1e3));
    (rtts, (run.delivered - before) as f64 / 10.0)
}

const QUIET: &[(&str, f64)] =
    &[("probe", 3.0), ("tau_d", 3600.0), ("r_min", 4e6), ("r_max", 800e6)];

/// M4 for the explicit horizon: steady RTT, full link. The link never loses, so the start at 2C leaves l_B high.
#[test]
fn explicit_horizon_is_steady() {
    let (rtts, throughput) = steady(Some("stable"), QUIET);
    let (_, deviation) = statistics(&rtts);
    assert!(deviation < 0.5, "standard deviation {deviation} ms");
    assert!((throughput / 5e7 - 1.0).abs() < 0.01, "{throughput}");
}

/// M5: the printed dt per ACK is an undamped loop under feedback delay.
#[test]
fn printed_horizon_oscillates() {
    let settings = [("horizon", 0.0), ("alpha_per", 0.0)];
    let settings: Vec<(&str, f64)> = QUIET.iter().chain(&settings).copied().collect();
    let (rtts, _) = steady(Some("stable"), &settings);
    let (_, deviation) = statistics(&rtts);
    assert!(deviation > 5.0, "standard deviation {deviation} ms");
}

#[test]
fn starts_at_r_max_and_keeps_the_window_open() {
    let run = Loop::new(None, &[("r_max", 8e9), ("r_min", 1e9)]);
    assert_eq!(run.mpc.control().pacing_bytes_per_s, 1_000_000_000);
    assert!(run.mpc.control().cwnd_bytes > 1 << 40);
    // Unknown capacity: the initial window within a millisecond, and no more until the first ACK.
    let run = Loop::new(None, &[]);
    assert_eq!(run.mpc.control().pacing_bytes_per_s, 10 * PACKET * 1000);
    assert_eq!(run.mpc.control().cwnd_bytes, 10 * PACKET);
    let run = Loop::new(None, &[("r_max", 8e9), ("r_min", 1e9), ("start", 1.0)]);
    assert_eq!(run.mpc.control().pacing_bytes_per_s, 125_000_000);
}

/// Started at r_min, (6) confirms itself: the estimate is the own rate and the link stays under-used (M7 in the loop).
#[test]
fn integral_started_low_stays_low() {
    let mut run = Loop::new(
        None,
        &[("r_max", 800e6), ("r_min", 40e6), ("start", 1.0), ("probe", 3.0), ("target", 0.5)],
    );
    run.run(5_000 * MS, 5e7, |_| {});
    let [rate, r_b, ..] = run.observed();
    assert!(rate < 0.5 * 400.0 && r_b < 0.5 * 400.0, "{rate} {r_b}");
}

#[test]
fn a_loss_stops_the_up_probe_and_probes_down_for_eight_rtts() {
    let mut run = Loop::new(None, &[("r_max", 800e6), ("r_min", 40e6), ("loss", 2.0)]);
    run.run(10_050 * MS, 5e7, |_| {});
    assert_eq!(run.observed()[6], 1.0, "the up-probe of second 10");
    assert_eq!(run.observed()[0], 800.0);

    let mut run = Loop::new(None, &[("r_max", 800e6), ("r_min", 40e6)]);
    run.run(10_050 * MS, 5e7, |_| {});
    let mean_rtt_ns = (run.observed()[2] * 1e6) as u64;
    let lost_ns = run.now_ns;
    let loss =
        Loss { now_ns: lost_ns, newest_lost_sent_ns: lost_ns, lost_packets: 1, ..Loss::default() };
    run.mpc.on_loss(&loss);
    assert_eq!(run.observed()[6], -1.0);
    assert_eq!(run.mpc.control().pacing_bytes_per_s, 5_000_000);
    run.run(lost_ns + 7 * mean_rtt_ns, 5e7, |_| {});
    assert_eq!(run.observed()[6], -1.0);
    run.run(lost_ns + 10 * mean_rtt_ns, 5e7, |_| {});
    assert_eq!(run.observed()[6], 0.0);
}

#[test]
fn a_cut_is_taken_once_per_window_of_data() {
    let mut run = Loop::new(Some("stable"), QUIET);
    run.run(1_000 * MS, 5e7, |_| {});
    let before = run.observed()[0];
    let loss = |sent_ns| Loss {
        now_ns: run.now_ns,
        newest_lost_sent_ns: sent_ns,
        lost_packets: 1,
        ..Loss::default()
    };
    let losses = [loss(run.now_ns - 2), loss(run.now_ns - 1)];
    losses.iter().for_each(|l| run.mpc.on_loss(l));
    assert!((run.observed()[0] / before - 0.7).abs() < 1e-9);
}

#[test]
fn a_timeout_falls_to_r_min_and_keeps_l_p() {
    let mut run = Loop::new(Some("stable"), QUIET);
    run.run(1_000 * MS, 5e7, |_| {});
    let l_p = run.observed()[3];
    run.mpc.on_rto(&Timeout { now_ns: run.now_ns, consecutive: 1, ..Timeout::default() });
    assert_eq!(run.mpc.control().pacing_bytes_per_s, 500_000);
    assert_eq!(run.observed()[3], l_p);
}

#[test]
fn pulses_reach_the_extremes_at_a_quarter_and_three_quarters() {
    let mut params = SPEC.params(Some("simulator")).unwrap();
    params.set("r_max", 8e8).unwrap();
    let path = PathInfo { now_ns: 0, packet_bytes: 1500, initial_window_packets: 10, seed: 0 };
    let mut mpc = build(&params, &path);
    let mut at = |now_ns: u64, rtt_ns: u64| {
        let sample = AckSample { now_ns, rtt_ns, acked_bytes: 1500, ..AckSample::default() };
        mpc.on_ack(&Ack { sample, hops: &[] });
        let mut out = [0.0; 7];
        mpc.observe(&mut out);
        out
    };
    at(0, 25 * MS);
    at(1, 50 * MS);
    // Between pulses f = 0.1: 27.5 ms, and a little from the far pulses.
    let [_, _, _, l_p, l_b, l_t, _] = at(2, 30 * MS);
    assert_eq!((l_p.round(), l_b.round()), (25.0, 50.0));
    assert!((l_t - 27.5).abs() < 0.2, "{l_t}");
    let [.., l_b, l_t, _] = at(2_500 * MS, 30 * MS);
    assert!((l_t / (1.135 * l_b) - 1.0).abs() < 0.01, "{l_t}");
    let [_, _, _, l_p, _, l_t, _] = at(7_500 * MS, 30 * MS);
    assert!((l_t / l_p - 1.0).abs() < 0.01, "{l_t}");
}
/// Without a given r_max the flow doubles until it meets the link, at 400 and at 1 Mbit/s.
#[test]
fn startup_finds_an_unknown_link() {
    for (profile, least) in [(None, 0.9), (Some("stable"), 0.98)] {
        for bytes_per_s in [5e7, 1.25e5] {
            let mut run = Loop::new(profile, &[]);
            assert_eq!(run.observed()[6], 2.0);
            run.run(2_000 * MS, bytes_per_s, |_| {});
            assert_eq!(run.observed()[6], 0.0, "start-up has ended");
            let (before, from_ns) = (run.delivered, run.now_ns);
            run.run(9_000 * MS, bytes_per_s, |_| {});
            let seconds = (run.now_ns - from_ns) as f64 * 1e-9;
            let share = (run.delivered - before) as f64 / seconds / bytes_per_s;
            assert!(share > least, "{profile:?} at {bytes_per_s}: {share}");
        }
    }
}
