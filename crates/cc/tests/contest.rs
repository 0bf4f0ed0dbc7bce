//! The contest's senders by hand-computed numbers (Kumar 2017). Latte's own are beside it.

use paceline_cc::{Ack, AckSample, Controller, Loss, PathInfo, Timeout, registry};

const MS: u64 = 1_000_000;
const PATH: PathInfo =
    PathInfo { now_ns: 0, packet_bytes: 1500, initial_window_packets: 10, seed: 0 };

fn made(name: &str, profile: Option<&str>, settings: &[(&str, f64)]) -> Box<dyn Controller> {
    let spec = registry::find(name).expect("it is registered");
    let mut params = spec.params(profile).unwrap();
    for (key, value) in settings {
        params.set(key, *value).unwrap();
    }
    (spec.build)(&params, &PATH)
}

fn ack(c: &mut dyn Controller, now_ms: u64, rtt_ms: u64) {
    let sample = AckSample {
        now_ns: now_ms * MS,
        rtt_ns: rtt_ms * MS,
        sent_ns: now_ms.saturating_sub(rtt_ms) * MS,
        acked_packets: 1,
        flags: AckSample::CWND_LIMITED,
        ..AckSample::default()
    };
    c.on_ack(&Ack { sample, hops: &[] });
}

fn packets(c: &dyn Controller) -> u64 {
    c.control().cwnd_bytes / 1500
}

/// The first `N` observed values.
fn fields<const N: usize>(c: &dyn Controller) -> [f64; N] {
    let mut out = [0.0; N];
    c.observe(&mut out);
    out
}

fn silence(c: &mut dyn Controller) {
    c.on_rto(&Timeout::default());
}

/// dw/dACK = 1/w, so n ACKs take the window from w to sqrt(w^2 + 2n), and as many back.
#[test]
fn delay_threshold_by_hand() {
    let mut c = made("delay-threshold", None, &[("initial_window", 10.0)]);
    assert_eq!(c.control().timeout_ns, 1000 * MS);
    (0..12).for_each(|_| ack(&mut *c, 100, 74));
    let [w] = fields(&*c);
    assert!((w - 124.0_f64.sqrt()).abs() < 0.05, "{w}");
    (0..20).for_each(|_| ack(&mut *c, 100, 75));
    let [w] = fields(&*c);
    assert!((w - 84.0_f64.sqrt()).abs() < 0.05, "{w}");
    c.on_loss(&Loss { lost_packets: 1, flags: Loss::EPISODE_START, ..Loss::default() });
    assert_eq!(packets(&*c), 9, "losses are not seen");
    silence(&mut *c);
    assert_eq!(packets(&*c), 4);
    (0..100).for_each(|_| ack(&mut *c, 100, 75));
    assert_eq!(packets(&*c), 1, "never below a packet");
    silence(&mut *c);
    assert_eq!(packets(&*c), 1);
}

#[test]
fn only_a_full_window_grows() {
    for name in ["delay-threshold", "rtt-aimd"] {
        let mut c = made(name, None, &[("initial_window", 10.0)]);
        let sample = AckSample { rtt_ns: MS, acked_packets: 100, ..AckSample::default() };
        c.on_ack(&Ack { sample, hops: &[] });
        let sample = AckSample { rtt_ns: 0, flags: AckSample::CWND_LIMITED, ..sample };
        c.on_ack(&Ack { sample, hops: &[] });
        assert_eq!(packets(&*c), 10, "{name}: neither without need nor without a sample");
    }
}

#[test]
fn rtt_aimd_halves_with_every_ack() {
    let mut c = made("rtt-aimd", None, &[]);
    (0..50).for_each(|_| ack(&mut *c, 100, 119));
    assert_eq!(packets(&*c), 50, "sqrt(2500 + 100) = 50.99");
    // 50.99 -> 25.5 -> 12.7 -> 6.4 -> 3.2 -> 1.59, and no further.
    let windows: Vec<u64> = (0..6)
        .map(|n| {
            ack(&mut *c, 200 + n, 120);
            packets(&*c)
        })
        .collect();
    assert_eq!(windows, [25, 12, 6, 3, 1, 1]);
    let [w] = fields(&*c);
    assert!((w - 2600.0_f64.sqrt() / 32.0).abs() < 0.01, "{w}");
}

#[test]
fn rtt_aimd_halves_once_per_round_trip() {
    let mut c = made("rtt-aimd", Some("once"), &[]);
    // Sent at 0: the first halving, at 120 ms. What was sent before then does not count again, until 240 ms.
    for (now_ms, expected) in [(120, 25), (130, 25), (240, 25), (241, 12), (360, 12), (362, 6)] {
        ack(&mut *c, now_ms, 120);
        assert_eq!(packets(&*c), expected, "at {now_ms} ms");
    }
    silence(&mut *c);
    assert_eq!(packets(&*c), 3);
}

/// Ten ACKs, one per ms, of packets sent at 0: after k of them B = k / (40 + k - 1), the largest the last, 10/49.
fn ten_acks(c: &mut dyn Controller) -> f64 {
    (0..10).for_each(|k| ack(c, 40 + k, 40 + k));
    10.0 / 49.0
}

#[test]
fn exp_penalty_by_hand() {
    let mut c = made("exp-penalty", None, &[("lambda", 50.0)]);
    assert_eq!((packets(&*c), c.control().timeout_ns), (50, 750 * MS));
    let bandwidth = ten_acks(&mut *c);
    let [b, min_rtt, penalty] = fields(&*c);
    assert!((b / bandwidth - 1.0).abs() < 1e-6 && min_rtt == 40.0, "{b}, {min_rtt}");
    assert!((penalty - (-9.0_f64 / 40.0).exp()).abs() < 1e-12, "{penalty}");
    let window = 50.0 * bandwidth * 40.0 * penalty;
    assert_eq!(packets(&*c), window as u64, "{window}");
    let control = c.control();
    assert_eq!(control.pacing_bytes_per_s, (1500.0 * bandwidth * 1e3 / 0.8) as u64);
    assert_eq!(control.timeout_ns, 60 * MS);
    silence(&mut *c);
    c.on_loss(&Loss { lost_packets: 1, flags: Loss::EPISODE_START, ..Loss::default() });
    assert_eq!(c.control(), control, "neither silence nor losses change it");
    // The next ACK at the minimum: no penalty is left.
    ack(&mut *c, 50, 40);
    assert_eq!(fields::<3>(&*c)[2], 1.0);
}

#[test]
fn rtt_gradient_by_hand() {
    let mut c = made("rtt-gradient", None, &[("lambda", 50.0), ("beta", 3.0)]);
    ack(&mut *c, 40, 40);
    // g = 0.5 (40 - 100) / 500, the start values of the contest: falling, so w = 50 * 1/40 * 40.
    let [_, _, g] = fields(&*c);
    assert!((g + 0.06).abs() < 1e-6, "{g}");
    assert_eq!(packets(&*c), 50);
    ack(&mut *c, 44, 44);
    // g = 0.5 (-0.06) + 0.5 * 4/40 = 0.02; B = 2/44; w = 50 * 2/44 * 40 * (1 - 3 * 0.02) = 85.45.
    let [_, _, g] = fields(&*c);
    assert!((g - 0.02).abs() < 1e-6, "{g}");
    assert_eq!(packets(&*c), 85);
    // As large a gradient as that leaves nothing but the floor of three packets.
    ack(&mut *c, 144, 144);
    assert_eq!(packets(&*c), 3);
}

#[test]
fn cycle_gain_by_hand() {
    let mut c = made("cycle-gain", Some("bbr"), &[]);
    let bandwidth = ten_acks(&mut *c);
    assert_eq!(packets(&*c), (2.0 * bandwidth * 40.0) as u64);
    // A phase lasts a minimum RTT, 40 ms. The one of 0.75 began with the first ACK after 40 ms, at 41 ms.
    let mut gains = Vec::new();
    for now_ms in (50..450).step_by(10) {
        ack(&mut *c, now_ms, 40);
        let [b, _, gain] = fields(&*c);
        let rate = 1500.0 * b * 1e3 * gain;
        let paced = c.control().pacing_bytes_per_s as f64;
        assert!((paced - rate).abs() <= 1.0, "{paced} for {rate}");
        gains.push(gain);
    }
    gains.dedup();
    assert_eq!(gains, [0.75, 1.0, 1.25, 0.75], "six phases of gain 1 lie between");
}

/// Where report and released code differ: the rate of the gap, 0.3 b + 0.7 S or B.
#[test]
fn latte_paces_at_the_mean_or_at_the_largest_rate() {
    let paced = |profile| {
        let mut c = made("latte", profile, &[]);
        (0..200).for_each(|k| ack(&mut *c, 40 + k, 40));
        // One packet per ms; then a gap of 20 ms, of which 10 fall into the packet's round trip: b = 31/40 and so on.
        ack(&mut *c, 259, 40);
        c.control().pacing_bytes_per_s as f64 * 0.8 / 1500.0 / 1e3
    };
    let (report, released) = (paced(Some("report")), paced(Some("released")));
    assert!((report - 1.0).abs() < 1e-3, "{report}");
    assert!((0.8..0.97).contains(&released), "{released}");
}
