use super::*;
use crate::driver::{Driver, MS, close};

const BASE_NS: u64 = 100 * MS;

/// A CTCP in congestion avoidance that has seen the base RTT, by an ACK of nothing which begins the first round.
fn ctcp(profile: Option<&str>, settings: &[(&str, f64)], window: f64) -> Driver {
    let start = [("initial_window", window), ("initial_ssthresh", window)];
    let mut run = Driver::new(&SPEC, profile, &[&start, settings].concat());
    run.send(run.sample(0, BASE_NS));
    run
}

/// win = cwnd + dwnd, to the last digit.
fn win(run: &Driver) -> f64 {
    let [reno, dwnd, ..] = run.fields::<4>();
    reno + dwnd
}

/// An ACK of nothing that ends the round.
fn end_round(run: &mut Driver, rtt_ns: u64) {
    run.start_round();
    run.send(run.sample(0, rtt_ns));
}

/// T8, and the rest of the table of section 3.1: alpha w^k - 1.
#[test]
fn the_delay_window_grows_by_alpha_w_to_the_k_less_one() {
    for (window, growth) in [(41.0, 1.03), (100.0, 2.95), (1000.0, 21.2), (10_000.0, 124.0)] {
        let mut run = ctcp(None, &[], window);
        run.flight(BASE_NS);
        assert_eq!(run.fields::<4>()[1], 0.0, "the first round only looks");
        run.flight(BASE_NS);
        let [reno, dwnd, diff, _] = run.fields::<4>();
        // What the law says of the first round's window, spread over the second's.
        close(dwnd, 0.125 * window.powf(0.75) - 1.0, 0.03);
        close(dwnd, growth, 0.03);
        close(reno, window + 2.0, 0.01);
        assert_eq!(diff, 0.0);
    }
}

/// Below the activation window one packet per RTT, as Reno; at it two; and no jump between.
#[test]
fn reno_below_the_activation_window() {
    for (profile, activation) in [(None, 38.0), (Some("nist"), 41.0)] {
        let mut run = ctcp(profile, &[], activation - 3.0);
        let (mut before, mut compound) = (0.0, 0);
        for _ in 0..9 {
            let start = win(&run);
            run.flight(BASE_NS);
            // A round acts on what the one before has shown.
            let packets = if before >= activation { 2.0 } else { 1.0 };
            close(win(&run) - start, packets, 0.12);
            compound += i32::from(before >= activation);
            before = start;
        }
        assert!((2..7).contains(&compound), "both sides of the threshold were seen");
    }
}

#[test]
fn the_delay_window_gives_way_by_its_queue() {
    let mut run = ctcp(None, &[], 300.0);
    for _ in 0..20 {
        run.flight(BASE_NS);
    }
    let (window, dwnd) = (win(&run), run.fields::<4>()[1]);
    // diff = w / 11 >= 30 once w >= 330.
    assert!(window > 340.0 && dwnd > 60.0, "{window} {dwnd}");
    run.flight(110 * MS);
    let (before, dwnd) = (win(&run), run.fields::<4>()[1]);
    end_round(&mut run, 110 * MS);
    let [_, after, diff, _] = run.fields::<4>();
    close(diff, window / 11.0, 1e-6);
    close(dwnd - after, diff, 1e-9);
    close(before - win(&run), diff, 1e-9);
    // Never below nothing.
    for _ in 0..10 {
        run.flight(200 * MS);
    }
    assert_eq!(run.fields::<4>()[1], 0.0);
}

#[test]
fn a_loss_halves_both_and_an_undo_restores() {
    let mut run = ctcp(Some("nist"), &[], 300.0);
    for _ in 0..10 {
        run.flight(BASE_NS);
    }
    let [reno, dwnd, ..] = run.fields::<4>();
    run.lose();
    let [reno_after, dwnd_after, ..] = run.fields::<4>();
    close(reno_after, reno / 2.0, 1e-12);
    close(dwnd_after, dwnd / 2.0, 1e-9);
    run.undo();
    assert_eq!(run.fields::<4>()[..2], [reno, dwnd]);
    // Below the activation window the whole window is Reno's.
    let mut run = ctcp(Some("nist"), &[], 60.0);
    for _ in 0..4 {
        run.flight(BASE_NS);
    }
    let window = win(&run);
    assert!(run.fields::<4>()[1] > 0.0 && window < 82.0);
    run.lose();
    assert_eq!(run.fields::<4>()[..2], [window / 2.0, 0.0]);
}

#[test]
fn beta_keeps_more_than_half() {
    let mut run = ctcp(None, &[("beta", 0.25)], 300.0);
    for _ in 0..10 {
        run.flight(BASE_NS);
    }
    let (window, reno) = (win(&run), run.fields::<4>()[0]);
    run.lose();
    close(win(&run), 0.75 * window, 1e-12);
    close(run.fields::<4>()[0], reno / 2.0, 1e-12);
}

/// gamma <- (1 - lambda) gamma + lambda 3/4 diff_reno, between 5 and 30, once per measurement.
#[test]
fn gamma_learns_from_the_queue_at_losses() {
    let gamma_after = |profile: Option<&str>, rtt_ms: u64| {
        let mut run = ctcp(profile, &[("activation", 100_000.0)], 200.0);
        run.flight(BASE_NS);
        run.flight(rtt_ms * MS);
        end_round(&mut run, rtt_ms * MS);
        run.lose();
        let gamma = run.fields::<4>()[3];
        run.lose();
        assert_eq!(run.fields::<4>()[3], gamma, "no new measurement");
        gamma
    };
    // diff_reno = 201 (1 - 100/105) = 9.57; 0.75 * 30 + 0.25 * 0.75 * 9.57 = 24.29.
    close(gamma_after(None, 105), 24.29, 1e-3);
    assert_eq!(gamma_after(None, 1000), 30.0, "clipped");
    assert_eq!(gamma_after(Some("nist"), 105), 30.0);
    let mut run = ctcp(None, &[("lambda", 1.0), ("activation", 100_000.0)], 200.0);
    run.flight(BASE_NS);
    end_round(&mut run, BASE_NS);
    run.lose();
    assert_eq!(run.fields::<4>()[3], 5.0);
    run.time_out(1);
    assert_eq!(run.fields::<4>()[3], 30.0);
}

#[test]
fn a_timeout_takes_the_delay_window() {
    let mut run = ctcp(None, &[], 300.0);
    for _ in 0..5 {
        run.flight(BASE_NS);
    }
    let half = win(&run) / 2.0;
    run.time_out(1);
    assert_eq!(run.fields::<4>()[..2], [1.0, 0.0]);
    // Slow start to half without dwnd, then avoidance.
    for _ in 0..8 {
        run.flight(BASE_NS);
        assert_eq!(run.fields::<4>()[1], 0.0);
    }
    close(win(&run), half, 0.01);
}

#[test]
fn too_few_samples_teach_nothing() {
    let mut run = ctcp(None, &[], 300.0);
    for _ in 0..6 {
        // Two ACKs a round.
        run.start_round();
        (0..2).for_each(|_| run.send(run.sample(150, BASE_NS)));
    }
    assert_eq!(run.fields::<4>()[1], 0.0);
}
