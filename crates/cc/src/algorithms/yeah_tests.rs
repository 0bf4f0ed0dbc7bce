use super::*;
use crate::driver::{Driver, MS, PACKET};

/// A YeAH in congestion avoidance with window `w` that has seen a base RTT of 100 ms, on one ACK.
fn run(profile: Option<&str>, settings: &[(&str, f64)], w: f64) -> Driver {
    let window = [("initial_window", w), ("initial_ssthresh", w.max(2.0))];
    let mut run = Driver::new(&SPEC, profile, &[settings, &window].concat());
    run.end_round(100 * MS);
    run
}

/// Three ACKs without growth, and one that ends the round.
fn short_round(run: &mut Driver, rtt_ns: u64) {
    run.limited = false;
    (0..3).for_each(|_| run.ack(rtt_ns));
    run.limited = true;
    run.end_round(rtt_ns);
}

fn close(got: f64, expected: f64) {
    assert!((got - expected).abs() < 0.02, "{got} against {expected}");
}

/// T12: w = 1000 at 110 ms has 90.9 packets queued, more than 80, and falls to 909; with whole packets by 90.
#[test]
fn precautionary_decongestion() {
    for (profile, cwnd, queue) in [(None, 909.1, 90.91), (Some("linux"), 910.0, 90.0)] {
        let mut run = run(profile, &[], 1000.0);
        short_round(&mut run, 110 * MS);
        close(run.cwnd(), cwnd);
        close(run.observed()[1], queue);
        assert_eq!(run.observed()[2], 1.0, "slow mode");
        close(run.observed()[0] / PACKET as f64, cwnd);
    }
}

/// Section 3.8: 105 ms is a queue of 47.6 packets and a delay below 12.5 ms, which is fast; 113 ms is slow by the delay alone.
#[test]
fn fast_and_slow_mode() {
    let mut run = run(None, &[], 1000.0);
    short_round(&mut run, 105 * MS);
    close(run.cwnd(), 1000.0);
    close(run.observed()[1], 47.62);
    assert_eq!(run.observed()[2..], [0.0, 2.0]);
    // Fast: one packet for a hundred.
    let w = run.cwnd();
    (0..100).for_each(|_| run.ack(105 * MS));
    close(run.cwnd(), w + 1.0);

    for (rtt_ms, slow) in [(112, 0.0), (113, 1.0)] {
        let mut run = tests::run(None, &[], 200.0);
        short_round(&mut run, rtt_ms * MS);
        assert_eq!(run.observed()[2], slow, "{rtt_ms} ms");
        let w = run.cwnd();
        (0..100).for_each(|_| run.ack(rtt_ms * MS));
        close(run.cwnd(), w + if slow == 0.0 { 1.0 } else { 0.5 });
    }
}

#[test]
fn a_small_window_is_fast_as_reno() {
    let mut run = run(Some("linux"), &[], 50.0);
    // The first was in `run`.
    (0..48).for_each(|_| run.ack(100 * MS));
    assert_eq!(run.cwnd(), 50.0);
    run.ack(100 * MS);
    assert_eq!(run.cwnd(), 51.0);
}

/// A cut takes half at most, and never goes below what Reno would have.
#[test]
fn a_cut_is_bounded() {
    let mut run = run(Some("linux"), &[], 1000.0);
    // 750 packets queued; reno_count becomes half of the 500 left, and 251, 252, ...
    short_round(&mut run, 400 * MS);
    assert_eq!(run.cwnd(), 500.0);
    assert_eq!(run.observed()[3], 250.0);
    short_round(&mut run, 400 * MS);
    assert_eq!((run.cwnd(), run.observed()[3]), (250.0, 251.0));
    short_round(&mut run, 400 * MS);
    assert_eq!((run.cwnd(), run.observed()[3]), (250.0, 252.0));
}

#[test]
fn a_loss_takes_the_queue_or_an_eighth_and_after_rho_slow_rounds_half() {
    // Q = 47 of 1000 is less than an eighth; at 120 ms 33 of 200 is more; 9 of 10 is more than half.
    for (w, rtt_ms, cwnd) in [(1000.0, 105, 875.0), (200.0, 120, 167.0), (10.0, 1000, 5.0)] {
        let mut run = run(Some("linux"), &[], w);
        short_round(&mut run, rtt_ms * MS);
        run.lose();
        assert_eq!(run.cwnd(), cwnd, "{w}");
        run.undo();
        assert_eq!(run.cwnd(), w);
    }
    for (rounds, cwnd) in [(15, 167.0), (16, 100.0)] {
        let mut run = run(Some("linux"), &[], 200.0);
        (0..rounds).for_each(|_| short_round(&mut run, 120 * MS));
        assert_eq!(run.observed()[3], 100.0 + f64::from(rounds - 1));
        run.lose();
        assert_eq!(run.cwnd(), cwnd);
        assert_eq!(
            run.observed()[3],
            (100.0 + f64::from(rounds - 1)) / 2.0 - 0.5 * f64::from(1 - rounds % 2)
        );
    }
}

#[test]
fn zeta_fast_rounds_end_the_competition() {
    let mut run = run(Some("linux"), &[], 200.0);
    short_round(&mut run, 120 * MS);
    assert_eq!(run.observed()[3], 100.0);
    (0..50).for_each(|_| short_round(&mut run, 100 * MS));
    assert_eq!(run.observed()[3], 100.0);
    short_round(&mut run, 100 * MS);
    assert_eq!(run.observed()[3], 2.0);
}

#[test]
fn rounds_of_the_repair_do_not_count() {
    let mut run = run(Some("linux"), &[], 200.0);
    run.lose();
    assert_eq!(run.cwnd(), 175.0);
    run.recovering = true;
    (0..100).for_each(|_| run.end_round(300 * MS));
    run.recovering = false;
    run.ack(300 * MS);
    short_round(&mut run, 100 * MS);
    assert_eq!(run.observed()[1..3], [0.0, 0.0]);
}

#[test]
fn a_timeout_and_a_pause_begin_anew() {
    let mut run = run(Some("linux"), &[], 200.0);
    short_round(&mut run, 110 * MS);
    run.time_out(1);
    assert_eq!((run.cwnd(), run.observed()[0]), (1.0, 175.0 * PACKET as f64));
    let mut run = tests::run(Some("linux"), &[], 200.0);
    run.controller.on_resume(&Resume::default());
    run.ack(150 * MS);
    short_round(&mut run, 150 * MS);
    assert_eq!(run.observed()[2], 0.0, "150 ms is the base now");
}
