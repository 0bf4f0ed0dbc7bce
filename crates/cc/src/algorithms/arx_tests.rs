use super::*;

const MS: u64 = 1_000_000;

fn means(rtt: f64, variance: f64, rate: f64) -> Means {
    Means { rtt, variance, rate }
}

/// The closed form is the minimum of the cost, for weights and models of all sizes.
#[test]
fn the_optimum_minimises_the_cost() {
    let mut seed = 1_u64;
    let mut draw = |low: f64, high: f64| {
        seed = seed.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        low + (high - low) * (seed >> 11) as f64 / (1_u64 << 53) as f64
    };
    for _ in 0..1000 {
        let weights = Weights { psi: draw(0.1, 10.0), xi: draw(0.0, 2.0), b_min: 0.01 };
        let means = means(draw(1.0, 3.0), draw(0.001, 0.5), draw(0.1, 2.0));
        let (l_0, b_1) = (draw(0.0, 3.0), draw(0.05, 2.0));
        let cost = |r: f64| {
            let l = l_0 + b_1 * r;
            l / means.rtt + weights.psi * (l - means.rtt).powi(2) / means.variance
                - weights.xi * r / means.rate
        };
        let best = weights.optimum(l_0, b_1, &means);
        let step = 1e-3 * best.abs().max(1.0);
        assert!(cost(best) <= cost(best + step) && cost(best) <= cost(best - step));
    }
}

#[test]
fn the_optimum_by_hand() {
    let weights = Weights { psi: 1.0, xi: 0.1, b_min: 0.01 };
    // (0.1/1 - 0.5/2) * 0.04 / (2 * 0.5) = -0.006; (2 - 1.4 - 0.006) / 0.5.
    let best = weights.optimum(1.4, 0.5, &means(2.0, 0.04, 1.0));
    assert!((best - 1.188).abs() < 1e-12, "{best}");
    // Guards: b_1 of the wrong sign counts as b_min, no variance as the least.
    let guarded = weights.optimum(1.4, -3.0, &means(2.0, 0.0, 1.0));
    let by_hand = (0.6 + (0.1 - 0.005) * 1e-6 / 0.02) / 0.01;
    assert!((guarded - by_hand).abs() < 1e-9, "{guarded}");
}

#[test]
fn the_first_steps_of_the_filter_by_hand() {
    let mut model = Model::new((2, 1), 0.5);
    model.learn(1.0);
    assert_eq!(model.a[..2], [1.0, 1.0], "nothing to learn from yet");
    model.r[0] = 2.0;
    // Predicted 1 + 2 = 3, seen 1.5: theta -= 0.5 * 1.5 * phi / (1 + 4).
    assert_eq!(model.predict(), 3.0);
    model.learn(1.5);
    assert_eq!((model.a[0], model.a[1], model.b[0]), (0.85, 1.0, 0.7));
    assert_eq!(model.l[..2], [1.5, 1.0]);
}

/// On a plant of its own form the filter finds the coefficients: l(n+1) = 0.8 l(n) + 0.3 r(n), excited by changing rates.
#[test]
fn the_filter_finds_a_linear_plant() {
    let mut model = Model::new((1, 1), 0.5);
    let mut l = 1.0;
    for n in 0..2000_u32 {
        model.learn(l);
        let r = 0.5 + f64::from(n * 7 % 11) / 10.0;
        push(&mut model.r, r);
        l = 0.8 * l + 0.3 * r;
    }
    assert!((model.a[0] - 0.8).abs() < 1e-6 && (model.b[0] - 0.3).abs() < 1e-6, "{model:?}");
}

fn arx(settings: &[(&str, f64)]) -> Box<dyn Controller> {
    let mut params = SPEC.params(None).unwrap();
    for (key, value) in settings {
        params.set(key, *value).unwrap();
    }
    let path = PathInfo { now_ns: 0, packet_bytes: 1000, initial_window_packets: 10, seed: 0 };
    build(&params, &path)
}

/// An ACK of a path that delivers `rate` bytes/s.
fn ack(arx: &mut dyn Controller, now_ms: u64, rtt_ms: u64, rate: u64) {
    let total = now_ms * rate / 1000;
    let delivered = rtt_ms * rate / 1000;
    let sample = AckSample {
        now_ns: now_ms * MS,
        rtt_ns: rtt_ms * MS,
        sent_ns: now_ms.saturating_sub(rtt_ms) * MS,
        acked_packets: 1,
        delivered_bytes: delivered,
        interval_ns: rtt_ms * MS,
        delivered_total_bytes: total,
        prior_delivered_total_bytes: total.saturating_sub(delivered),
        ..AckSample::default()
    };
    arx.on_ack(&Ack { sample, hops: &[] });
}

fn predicted(arx: &dyn Controller) -> f64 {
    let mut out = [0.0; 4];
    arx.observe(&mut out);
    out[0]
}

#[test]
fn start_up_ends_when_delivery_is_flat_and_the_rate_is_set_per_interval() {
    let mut c = arx(&[]);
    let control = c.control();
    assert_eq!((control.cwnd_bytes, control.pacing_bytes_per_s), (10_000, Control::UNPACED));
    // 1 Mbyte/s; four rounds of 20 ms: growth, then three without.
    let mut now_ms = 20;
    while predicted(&*c).is_nan() {
        ack(&mut *c, now_ms, 20, 1_000_000);
        if predicted(&*c).is_nan() {
            assert_eq!(c.control().pacing_bytes_per_s, 2_885_000);
        }
        now_ms += 1;
    }
    assert!((80..=102).contains(&now_ms), "{now_ms}");
    let mut changes = 0;
    let mut last = c.control();
    for _ in 0..100 {
        now_ms += 1;
        ack(&mut *c, now_ms, 20 + now_ms % 7, 1_000_000);
        let control = c.control();
        let rate = control.pacing_bytes_per_s as f64;
        assert!((99_999.0..=2_000_001.0).contains(&rate), "{rate}");
        changes += u32::from(control.pacing_bytes_per_s != last.pacing_bytes_per_s);
        last = control;
    }
    assert!((1..=10).contains(&changes), "{changes} in 100 ms");
}

#[test]
fn a_timeout_starts_again_and_losses_end_start_up() {
    let mut c = arx(&[]);
    (20..200).for_each(|now_ms| ack(&mut *c, now_ms, 20, 1_000_000));
    assert!(predicted(&*c).is_finite());
    c.on_rto(&Timeout::default());
    // Two packets in 20 ms.
    assert_eq!(c.control().pacing_bytes_per_s, 100_000);
    assert!(predicted(&*c).is_nan());
    let rounds = |c: &mut dyn Controller, from_ms: u64| {
        (from_ms..).find(|now_ms| {
            ack(c, *now_ms, 20, 1_000_000);
            predicted(c).is_finite()
        })
    };
    let without = rounds(&mut *c, 220).unwrap() - 220;
    c.on_rto(&Timeout::default());
    ack(&mut *c, 420, 20, 1_000_000);
    c.on_loss(&Loss { flags: Loss::EPISODE_START, ..Loss::default() });
    let with = rounds(&mut *c, 421).unwrap() - 421;
    assert!(with + 15 < without, "{with} and {without} ms");
}
