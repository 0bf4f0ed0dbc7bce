//! TIMELY and Swift by hand-computed numbers.

use paceline_cc::{Ack, AckSample, Control, Controller, Loss, PathInfo, Timeout, Undo, registry};

const US: u64 = 1000;
const PATH: PathInfo =
    PathInfo { now_ns: 0, packet_bytes: 1000, initial_window_packets: 10, seed: 0 };

fn made(name: &str, profile: Option<&str>, settings: &[(&str, f64)]) -> Box<dyn Controller> {
    let spec = registry::find(name).expect("registered");
    let mut params = spec.params(profile).unwrap();
    for (key, value) in settings {
        params.set(key, *value).unwrap();
    }
    (spec.build)(&params, &PATH)
}

fn ack(c: &mut dyn Controller, now_us: u64, rtt_us: u64, packets: u64) {
    let sample = AckSample {
        now_ns: now_us * US,
        rtt_ns: rtt_us * US,
        acked_packets: packets as u32,
        acked_bytes: packets * 1000,
        flags: AckSample::CWND_LIMITED,
        ..AckSample::default()
    };
    c.on_ack(&Ack { sample, hops: &[] });
}

fn field(c: &dyn Controller, index: usize) -> f64 {
    let mut out = [0.0; 2];
    c.observe(&mut out);
    out[index]
}

/// A completed segment of 16 kB; the rate in Mbit/s after it.
fn segment(c: &mut dyn Controller, rtt_us: u64) -> f64 {
    ack(c, 1_000_000, rtt_us, 16);
    field(c, 0)
}

fn near(got: f64, expected: f64) {
    assert!((got / expected - 1.0).abs() < 1e-9, "{got} for {expected}");
}

/// T15.
#[test]
fn timely_falls_to_0_6_at_twice_t_high_and_at_half_a_gradient() {
    let mut c = made("timely", None, &[]);
    near(segment(&mut *c, 1000), 6000.0); // 1 - 0.8 (1 - 500/1000)
    let mut c = made("timely", None, &[("alpha", 1.0), ("line_rate", 1e9), ("min_rate", 1e6)]);
    near(segment(&mut *c, 100), 1000.0);
    near(segment(&mut *c, 110), 600.0); // 10/20: 1 - 0.8 * 0.5
    near(segment(&mut *c, 150), 1.0); // 40/20: the least rate
}

#[test]
fn timely_grows_below_t_low_and_while_the_rtt_falls() {
    let mut c = made("timely", None, &[("line_rate", 1e9), ("alpha", 1.0), ("min_rtt", 1.0)]);
    c.on_rto(&Timeout::default());
    near(field(&*c, 0), 500.0);
    near(segment(&mut *c, 49), 510.0);
    // Within the band: four steps of delta, then five times that.
    let rates: Vec<f64> =
        [400, 390, 380, 370, 360, 350].iter().map(|rtt| segment(&mut *c, *rtt).round()).collect();
    // The first is a rise from 49 to 400 us, 0.00035 of the minRTT of 1 s set here: the rate falls by 0.03 %.
    assert_eq!(rates, [510.0, 520.0, 530.0, 540.0, 550.0, 600.0]);
    let before = field(&*c, 0);
    near(segment(&mut *c, 40), before + 10.0);
    // Half a segment is no update; nor is an idle application's.
    let before = field(&*c, 0);
    ack(&mut *c, 1_000_000, 40, 8);
    assert_eq!(field(&*c, 0), before);
    let flags = AckSample::APP_LIMITED;
    let sample = AckSample { rtt_ns: 40 * US, acked_bytes: 8000, flags, ..AckSample::default() };
    c.on_ack(&Ack { sample, hops: &[] });
    assert_eq!(field(&*c, 0), before);
}

#[test]
fn timely_smooths_the_difference() {
    let mut c = made("timely", None, &[]);
    segment(&mut *c, 100);
    segment(&mut *c, 108);
    near(field(&*c, 1), 0.875 * 8.0 / 20.0);
    segment(&mut *c, 108);
    near(field(&*c, 1), 0.125 * 0.875 * 8.0 / 20.0);
}

/// The authors' snippet: a step lasts min(time/minRTT, 1), and no step takes more than half.
#[test]
fn timely_snippet_scales_its_steps() {
    let mut c = made("timely", Some("snippet"), &[("t_high", 0.0005)]);
    ack(&mut *c, 5, 1000, 1);
    near(field(&*c, 0), 10_000.0 * (1.0 - 0.25 * 0.8 * 0.5)); // 5 of 20 us
    let before = field(&*c, 0);
    ack(&mut *c, 1000, 4000, 1);
    near(field(&*c, 0), before * 0.5); // 1 - 0.8 (1 - 1/8) = 0.3
}

#[test]
fn timely_patched_by_hand() {
    let mut c = made("timely", Some("patched"), &[("alpha", 1.0), ("line_rate", 1e9)]);
    c.on_rto(&Timeout::default());
    near(segment(&mut *c, 100), 5.0 + 500.0 * (1.0 - 0.008 * 0.5)); // w = 1/2, error 1
    let rate = field(&*c, 0);
    near(segment(&mut *c, 102), 10.0 * 0.3 + rate * (1.0 - 0.008 * 0.7 * 52.0 / 50.0)); // g = 2/20
    let rate = field(&*c, 0);
    near(segment(&mut *c, 60), rate + 10.0); // g = -2.1: w = 0
}

#[test]
fn timely_paces_segments() {
    let control = made("timely", None, &[]).control();
    assert_eq!((control.pacing_bytes_per_s, control.send_quantum_bytes), (1_250_000_000, 16_000));
    assert_eq!(control.cwnd_bytes, 1_250_000, "two T_high of it");
}

/// T17: at twice the target w is cut to 0.6; once per RTT, and never to less than half.
#[test]
fn swift_cuts_to_0_6_at_twice_the_target() {
    let mut c = made("swift", None, &[("fs_range", 0.0), ("hops", 0.0)]);
    near(field(&*c, 1), 20.0);
    ack(&mut *c, 1000, 40, 1);
    near(field(&*c, 0), 6.0);
    ack(&mut *c, 1039, 40, 1);
    near(field(&*c, 0), 6.0);
    ack(&mut *c, 1040, 40, 1);
    near(field(&*c, 0), 3.6);
    ack(&mut *c, 4000, 2000, 1);
    near(field(&*c, 0), 1.8);
}

/// w = fs_max adds nothing, w = fs_min all; in between alpha/sqrt(w) + beta.
#[test]
fn swift_scales_its_target() {
    let target = |window: f64| {
        let mut c = made("swift", None, &[("ai", 1000.0)]);
        if window > 10.0 {
            let packets = (window - 10.0) / 1000.0 * 10.0;
            ack(&mut *c, 1000, 1, packets.round() as u64);
        }
        near(field(&*c, 0), window);
        field(&*c, 1)
    };
    near(target(110.0), 29.0); // 20 us and three hops of 3 us
    let alpha = 100.0 / (1.0 / 0.1_f64.sqrt() - 0.1);
    near(target(10.0), 29.0 + alpha / 10.0_f64.sqrt() - alpha / 10.0);
    let mut c = made("swift", None, &[]);
    (1..=8).for_each(|n| ack(&mut *c, 10_000 * n, 5000, 1));
    near(field(&*c, 0), 10.0 / 256.0);
    near(field(&*c, 1), 129.0);
}

#[test]
fn swift_grows_by_ai_per_round_trip_and_paces_below_a_packet() {
    let mut c = made("swift", None, &[]);
    ack(&mut *c, 1000, 10, 2);
    near(field(&*c, 0), 10.2);
    let sample = AckSample { rtt_ns: 10 * US, acked_packets: 2, ..AckSample::default() };
    c.on_ack(&Ack { sample, hops: &[] });
    near(field(&*c, 0), 10.2); // the window did not limit
    assert_eq!(c.control(), Control::window(10_000));
    (1..=5).for_each(|n| ack(&mut *c, 10_000 * n, 1000, 1));
    let w = 10.2 / 32.0;
    near(field(&*c, 0), w);
    let control = c.control();
    assert_eq!(control.cwnd_bytes, 1000);
    // A packet every RTT / w.
    assert_eq!(control.pacing_bytes_per_s, (1000.0 * w / 0.001) as u64);
    ack(&mut *c, 60_000, 10, 1);
    near(field(&*c, 0), w + 1.0);
}

#[test]
fn swift_on_losses_and_timeouts() {
    let mut c = made("swift", None, &[]);
    let lose = |c: &mut dyn Controller, now_us: u64, flags: u32| {
        c.on_loss(&Loss { now_ns: now_us * US, flags, ..Loss::default() });
    };
    ack(&mut *c, 1000, 30, 0);
    lose(&mut *c, 1000, Loss::EPISODE_START);
    near(field(&*c, 0), 5.0);
    lose(&mut *c, 1029, Loss::EPISODE_START);
    lose(&mut *c, 1200, 0);
    near(field(&*c, 0), 5.0);
    c.on_spurious_loss(&Undo::default());
    near(field(&*c, 0), 10.0);
    for consecutive in 1..=5 {
        let now_ns = 10_000 * US * u64::from(consecutive);
        c.on_rto(&Timeout { now_ns, consecutive, ..Timeout::default() });
    }
    near(field(&*c, 0), 0.001);
}

/// What the receiver adds is no delay of the network.
#[test]
fn swift_subtracts_the_receivers_delay() {
    let mut c = made("swift", None, &[("fs_range", 0.0)]);
    let sample = AckSample {
        rtt_ns: 100 * US,
        ack_delay_ns: 80 * US,
        acked_packets: 1,
        flags: AckSample::CWND_LIMITED,
        ..AckSample::default()
    };
    c.on_ack(&Ack { sample, hops: &[] });
    near(field(&*c, 0), 10.1);
}
