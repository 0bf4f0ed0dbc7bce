//! Latte, compiled from `bpf/algorithms/latte.h`: by hand, against its law in floating point, and on a link of fixed rate.

#[path = "latte/law.rs"]
mod law;

use std::collections::VecDeque;

use law::{Law, Settings};
use paceline_cc::{Ack, AckSample, Controller, Loss, PathInfo, Timeout, registry};

const MS: u64 = 1_000_000;
const PATH: PathInfo =
    PathInfo { now_ns: 0, packet_bytes: 1500, initial_window_packets: 10, seed: 0 };

fn latte(profile: Option<&str>, settings: &[(&str, f64)]) -> Box<dyn Controller> {
    let spec = registry::find("latte").expect("registered");
    let mut params = spec.params(profile).unwrap();
    for (key, value) in settings {
        params.set(key, *value).unwrap();
    }
    (spec.build)(&params, &PATH)
}

fn sample(now_ns: u64, rtt_ns: u64) -> AckSample {
    let sent_ns = now_ns - rtt_ns;
    AckSample { now_ns, rtt_ns, sent_ns, acked_packets: 1, ..AckSample::default() }
}

fn ack(latte: &mut dyn Controller, sample: AckSample) {
    latte.on_ack(&Ack { sample, hops: &[] });
}

/// Bandwidth in packets/s, minimum RTT in us, gradient and lambda in 1/1000.
fn fields(latte: &dyn Controller) -> [f64; 4] {
    let mut seen = [0.0; 4];
    latte.observe(&mut seen);
    seen
}

#[test]
fn starts_as_the_contest_entry() {
    let control = latte(None, &[]).control();
    assert_eq!(control.cwnd_bytes, 50 * 1500);
    assert_eq!(control.timeout_ns, 750 * MS);
    // 10 packets/ms with gamma 0.8, to the 16 bits of a parameter: a gap of 80 us.
    assert_eq!(control.pacing_bytes_per_s, 15_000_000 * 65_536 / 52_429);
}

#[test]
fn first_acks_by_hand() {
    let mut latte = latte(None, &[("gradient_cut", 1.0)]);
    assert!(fields(&*latte)[3].is_nan());
    ack(&mut *latte, sample(50 * MS, 50 * MS));
    // b = 1/50; g = 0.7 (50 - 100)/500 falls; lambda of the old window 50; w = 1.68 * 0.02 * 50 = 1.68, floored at 3.
    assert_eq!(fields(&*latte), [20.0, 50_000.0, 0.0, 1680.0]);
    let control = latte.control();
    assert_eq!((control.cwnd_bytes, control.timeout_ns), (3 * 1500, 75 * MS));
    // S = 0.3 * 0.02 + 0.7 * 10 is not below 0.8 B: R = S.
    assert_eq!(control.pacing_bytes_per_s, 1500 * 7006 * 65_536 / 52_429);
    ack(&mut *latte, sample(60 * MS, 60 * MS));
    // b = 2/60; g = 0.3 (-0.07) + 0.7 * 10/50 = 0.119; the old window 3 gives lambda 2.
    assert_eq!(fields(&*latte), [33.0, 50_000.0, 119.0, 2000.0]);
}

#[test]
fn a_timeout_and_a_loss_change_nothing() {
    let mut latte = latte(None, &[]);
    ack(&mut *latte, sample(50 * MS, 50 * MS));
    let before = latte.control();
    latte.on_rto(&Timeout::default());
    latte.on_loss(&Loss { lost_packets: 3, ..Loss::default() });
    assert_eq!(latte.control(), before);
}

/// L2: power score = throughput in Mbit/s over the 95 % signal delay in s.
#[test]
fn power_scores_of_the_report() {
    for (mbps, delay_s, score) in [(3.83, 0.093, 41.18), (3.83, 0.090, 42.56)] {
        let power: f64 = mbps / delay_s;
        assert!((power - score).abs() < 0.01, "{power}");
    }
    assert!((2.282 / 0.1772 - 12.88_f64).abs() < 0.01);
}

/// L1: on a link of fixed rate the RTT settles at sqrt(lambda) times its minimum.
#[test]
fn steady_rtt_is_sqrt_lambda() {
    for lambda in [1.7, 2.5] {
        let mut latte = latte(None, &[("lambda_mode", 1.0), ("lambda", lambda)]);
        let (mut sum, mut count) = (0.0, 0.0);
        // The minimum is forgotten after 100 RTTs.
        drive(&mut *latte, 3500, |_| MS / 5, &mut |_, sample| {
            if sample.now_ns > 1500 * MS {
                sum += sample.rtt_ns as f64 / 1e6;
                count += 1.0;
            }
        });
        let (rtt, expected) = (sum / count, 40.0 * lambda.sqrt());
        assert!((rtt / expected - 1.0).abs() < 0.05, "{rtt} against {expected}");
    }
}

/// Every ACK of a flow over a link of changing rate, with silences of up to 2 s. The C filters forget a candidate up to 1/127 of a
/// window early, so where rates change fast a few ACKs differ for a moment; nothing is carried on from there.
#[test]
fn agrees_with_the_law_in_floating_point() {
    let profiles: [(&str, Settings); 4] = [
        ("report", law_settings(None, true, false)),
        ("report-fixed", law_settings(Some(1.7), true, false)),
        ("released", law_settings(None, false, true)),
        ("fixed", law_settings(Some(1.7), false, true)),
    ];
    for (profile, settings) in profiles {
        let mut law = Law::new(settings, 0);
        let mut latte = latte(Some(profile), &[]);
        let mut off: [Vec<f64>; 5] = Default::default();
        drive(&mut *latte, 60_000, changing, &mut |latte, sample| {
            law.on_ack(sample);
            let [_, min_rtt, gradient, lambda] = fields(latte);
            let control = latte.control();
            let window = control.cwnd_bytes as f64 / 1500.0;
            let pacing = control.pacing_bytes_per_s as f64 / 1.5e6;
            let pairs = [
                // Whole packets, rounded down.
                (window, law.window() - 0.5, 0.5),
                (pacing / law.pacing(), 1.0, 0.0),
                (min_rtt / 1e3 / law.min_rtt_ms(), 1.0, 0.0),
                (gradient / 1e3, law.gradient().max(0.0), 5e-4),
                (lambda / 1e3, law.lambda(), 5e-4),
            ];
            for (off, (ours, theirs, rounding)) in off.iter_mut().zip(pairs) {
                off.push(((ours - theirs).abs() - rounding).max(0.0));
            }
        });
        let acks = off[0].len();
        let [window, pacing, min_rtt, gradient, lambda] = off.map(|mut off| {
            off.sort_by(f64::total_cmp);
            [0.5, 0.95, 1.0].map(|part| off[((acks - 1) as f64 * part) as usize])
        });
        println!(
            "{profile}, {acks} ACKs; median, 95th percentile, largest distance: window {window:.5?}, pacing {pacing:.5?}, \
             minimum {min_rtt:.5?}, gradient {gradient:.5?}, lambda {lambda:.5?}"
        );
        assert!(acks > 10_000, "{profile}: {acks}");
        for off in [window, pacing, min_rtt, gradient, lambda] {
            assert!(off[1] < 1e-4, "{profile}: {off:?}");
        }
        assert!(window[2] < 3.0 && min_rtt[2] < 0.01, "{profile}: {window:?}, {min_rtt:?}");
    }
}

fn law_settings(lambda: Option<f64>, paces_at_bandwidth: bool, gradient_cut: bool) -> Settings {
    Settings { lambda, gamma: 0.8, paces_at_bandwidth, gradient_cut }
}

/// Time of a packet at `now_ns`: 0.5 to 20 Mbit/s in steps of 300 ms, and now and then a stall of up to 2 s.
fn changing(now_ns: u64) -> u64 {
    let step = now_ns / (300 * MS);
    let drawn = (step.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 40) % 1000;
    if drawn < 20 { (drawn + 1) * 100 * MS } else { 12 * MS * 100 / (5 + drawn * 2) }
}

/// A flow over a link of 40 ms and a time per packet that changes, for `duration_ms`. What sees each ACK is told after the controller.
fn drive(
    latte: &mut dyn Controller,
    duration_ms: u64,
    packet_ns: impl Fn(u64) -> u64,
    see: &mut dyn FnMut(&dyn Controller, &AckSample),
) {
    const BASE_NS: u64 = 40 * MS;
    let (mut now_ns, mut next_send_ns, mut link_free_ns) = (0_u64, 0_u64, 0_u64);
    let mut in_flight = VecDeque::new(); // (ACK arrives, sent)
    while now_ns < duration_ms * MS {
        let control = latte.control();
        let open = (in_flight.len() as u64) < control.cwnd_bytes / 1500;
        let acked_ns = in_flight.front().map_or(u64::MAX, |&(at, _)| at);
        if open && next_send_ns.max(now_ns) <= acked_ns {
            now_ns = now_ns.max(next_send_ns);
            let service_ns = packet_ns(link_free_ns.max(now_ns));
            link_free_ns = link_free_ns.max(now_ns) + service_ns;
            in_flight.push_back((link_free_ns + BASE_NS - MS / 5, now_ns));
            next_send_ns = now_ns + 1500 * 1_000_000_000 / control.pacing_bytes_per_s;
            continue;
        }
        let (at, sent_ns) = in_flight.pop_front().unwrap();
        now_ns = now_ns.max(at);
        let sample = sample(now_ns, now_ns - sent_ns);
        ack(latte, sample);
        see(latte, &sample);
    }
}
