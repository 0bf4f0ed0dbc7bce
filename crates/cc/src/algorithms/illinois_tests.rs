use super::*;
use crate::driver::{Driver, MS, PACKET};

fn close(got: f64, expected: f64, relative: f64) {
    assert!((got / expected - 1.0).abs() <= relative, "{got} against {expected}");
}

/// An Illinois in congestion avoidance with window `w` that has seen RTTs of 100 and 200 ms: d_m = 100 ms.
fn run(profile: Option<&str>, settings: &[(&str, f64)], w: f64) -> Driver {
    let window = [("initial_window", w), ("initial_ssthresh", w.max(2.0))];
    let mut run = Driver::new(&SPEC, profile, &[settings, &window].concat());
    run.begin(100 * MS);
    run.limited = false;
    run.end_round(200 * MS);
    run
}

/// A round at mean queueing delay `ms` (without growth): alpha and beta after it.
fn alpha_beta(run: &mut Driver, ms: u64) -> (f64, f64) {
    run.round((100 + ms) * MS);
    let observed = run.observed();
    assert_eq!(observed[3..], [ms as f64, 100.0]);
    (observed[1], observed[2])
}

/// T10: d_m = 100 ms.
#[test]
fn alpha_and_beta_by_delay() {
    let rows = [(10, 2.538, 0.125), (50, 0.588, 0.339), (80, 0.374, 0.5), (100, 0.3, 0.5)];
    for (ms, alpha, beta) in rows {
        let got = alpha_beta(&mut run(None, &[], 100.0), ms);
        close(got.0, alpha, 1e-2);
        close(got.1, beta, 1e-2);
    }
    // At d_1 the curve joins alpha_max.
    let curves = Curves {
        alpha_min: 0.3,
        alpha_max: 10.0,
        beta_min: 0.125,
        beta_max: 0.5,
        eta1: 0.01,
        eta2: 0.1,
        eta3: 0.8,
    };
    close(curves.alpha(1.0, 100.0), 10.0, 1e-12);
}

/// Linux: 2.538 and 0.588 are 324 and 75 of 128 (with 38/128 for 0.3), 0.339 is 21 of 64.
#[test]
fn linux_counts_in_steps() {
    let rows = [(10, 322.0, 8.0), (50, 74.0, 21.0), (100, 38.0, 32.0)];
    for (ms, alpha, beta) in rows {
        let got = alpha_beta(&mut run(Some("linux"), &[], 100.0), ms);
        assert_eq!((got.0 * 128.0, got.1 * 64.0), (alpha, beta), "{ms} ms");
    }
}

/// Rounds below d_1 in a row, in Linux also with others between.
#[test]
fn only_linux_counts_low_rounds_that_are_apart() {
    for (profile, alpha) in [(None, 0.588), (Some("linux"), 10.0)] {
        let mut run = run(profile, &[], 100.0);
        for ms in [50, 1, 1, 1, 1, 50, 1] {
            alpha_beta(&mut run, ms);
        }
        close(run.observed()[1], alpha, 1e-2);
    }
}

/// T10's first row, which comes only after a spell without a queue.
#[test]
fn alpha_is_largest_after_five_rounds_below_d1() {
    let mut run = run(None, &[], 100.0);
    close(alpha_beta(&mut run, 50).0, 0.588, 1e-2);
    for _ in 0..4 {
        let (alpha, beta) = alpha_beta(&mut run, 1);
        close(alpha, 0.588, 1e-2);
        assert_eq!(beta, 0.125);
    }
    assert_eq!(alpha_beta(&mut run, 1), (10.0, 0.125));
    // One round above, and it begins again.
    assert!(alpha_beta(&mut run, 2).0 < 10.0);
    assert!(alpha_beta(&mut run, 1).0 < 10.0);
}

#[test]
fn alpha_is_largest_at_once_before_any_queue() {
    let mut run =
        Driver::new(&SPEC, None, &[("initial_window", 100.0), ("initial_ssthresh", 100.0)]);
    run.begin(100 * MS);
    assert_eq!(run.observed()[1], 10.0);
    run.round(100 * MS);
    close(run.cwnd(), 109.6, 1e-2);
}

#[test]
fn a_small_window_is_reno() {
    for (w, alpha) in [(14.0, 1.0), (15.0, 0.3)] {
        let mut run = run(None, &[], w);
        assert_eq!(alpha_beta(&mut run, 100).1, 0.5);
        close(run.observed()[1], alpha, 1e-12);
    }
    let mut run = run(None, &[], 14.0);
    assert_eq!(alpha_beta(&mut run, 1), (1.0, 0.5));
}

#[test]
fn the_window_grows_by_alpha_per_round() {
    let mut run = run(None, &[], 100.0);
    alpha_beta(&mut run, 10);
    run.limited = true;
    (0..100).for_each(|_| run.ack(110 * MS));
    // sqrt(100^2 + 2 alpha 100)
    close(run.cwnd(), (1e4_f64 + 200.0 * 2.538).sqrt(), 1e-3);
}

/// 322/128 = 2.516 per packet: at w = 100 the window grows with the 40th, and the 0.6 packets above 100 are dropped.
#[test]
fn linux_drops_what_is_left_over() {
    let mut run = run(Some("linux"), &[], 100.0);
    alpha_beta(&mut run, 10);
    run.limited = true;
    for (acks, cwnd) in [(39, 100.0), (1, 101.0), (40, 101.0), (1, 102.0)] {
        (0..acks).for_each(|_| run.ack(110 * MS));
        assert_eq!(run.cwnd(), cwnd);
    }
}

#[test]
fn a_loss_takes_beta_and_is_undone() {
    // beta = 0.339 and 21/64: 32.8 packets, rounded down, of 100.
    for (profile, cwnd) in [(None, 66.07), (Some("linux"), 68.0)] {
        let mut run = run(profile, &[], 100.0);
        alpha_beta(&mut run, 50);
        run.lose();
        close(run.cwnd(), cwnd, 1e-4);
        run.limited = true;
        run.recovering = true;
        (0..50).for_each(|_| run.ack(150 * MS));
        close(run.cwnd(), cwnd, 1e-4);
        run.undo();
        assert_eq!(run.cwnd(), 100.0);
    }
}

#[test]
fn a_timeout_resets_alpha_and_beta() {
    let mut run = run(None, &[], 100.0);
    alpha_beta(&mut run, 1);
    let beta = alpha_beta(&mut run, 1).1;
    assert_eq!(beta, 0.125);
    run.time_out(1);
    let observed = run.observed();
    assert_eq!(observed[..3], [87.5 * PACKET as f64, 1.0, 0.5]);
    assert_eq!(run.cwnd(), 1.0);
}
