use super::*;
use crate::driver::{Driver, MS, close};

fn ledbat(window: f64, ssthresh: f64) -> Driver {
    Driver::new(&SPEC, None, &[("initial_window", window), ("initial_ssthresh", ssthresh)])
}

fn slows_down(run: &Driver) -> bool {
    run.observed()[3] == 1.0
}

/// T13.
#[test]
fn gain_is_one_a_sixth_and_a_sixteenth() {
    for (base_ms, expected) in [(120.0, 1.0), (20.0, 1.0 / 6.0), (5.0, 1.0 / 16.0), (500.0, 1.0)] {
        assert_eq!(gain(60e6, base_ms * 1e6), expected);
    }
}

#[test]
fn slow_start_at_gain_ends_at_three_quarters_of_the_target() {
    let mut run = ledbat(20.0, 1e6);
    // Base 120 ms: a packet per packet.
    (0..10).for_each(|_| run.ack_after(MS, 120 * MS));
    assert_eq!(run.cwnd(), 30.0);
    // 45 ms is not yet too much, once four samples show it; 46 ms is.
    (0..10).for_each(|_| run.ack_after(MS, 165 * MS));
    assert_eq!(run.cwnd(), 40.0);
    (0..4).for_each(|_| run.ack_after(MS, 166 * MS));
    assert!(run.cwnd() > 43.0 && run.cwnd() < 43.1, "{}", run.cwnd());
    // Base 20 ms: a sixth.
    let mut run = ledbat(20.0, 1e6);
    (0..12).for_each(|_| run.ack_after(MS, 20 * MS));
    close(run.cwnd(), 22.0, 1e-3);
}

#[test]
fn additive_below_and_multiplicative_above_the_target() {
    let mut run = ledbat(50.0, 50.0);
    (0..50).for_each(|_| run.ack_after(0, 120 * MS));
    close(run.cwnd(), 51.0, 2e-3);
    // 72 ms of queue: 1 - 51 (72/60 - 1) = -9.2 per window.
    (0..3).for_each(|_| run.ack_after(0, 192 * MS));
    let before = run.cwnd();
    (0..10).for_each(|_| run.ack_after(0, 192 * MS));
    close(before - run.cwnd(), 10.0 / 51.0 * 9.2, 0.06);
    // 300 ms: at most half a packet per packet.
    (0..3).for_each(|_| run.ack_after(0, 420 * MS));
    run.ack_after(0, 420 * MS);
    let before = run.cwnd();
    (0..10).for_each(|_| run.ack_after(0, 420 * MS));
    close(before - run.cwnd(), 5.0, 1e-3);
}

/// Two RTTs after slow start: two packets for two RTTs, slow start back, and nine times as long until the next.
#[test]
fn slowdowns_take_a_tenth_of_the_time() {
    let mut run = ledbat(50.0, 50.0);
    run.ack_after(0, 120 * MS);
    run.ack_after(239 * MS, 120 * MS);
    assert!(!slows_down(&run));
    run.ack_after(MS, 120 * MS);
    assert!(slows_down(&run));
    assert_eq!(run.cwnd(), 2.0);
    let before = 50.0 + 2.0 / 50.0;
    run.ack_after(239 * MS, 120 * MS);
    assert_eq!(run.cwnd(), 2.0);
    // A ramp of 60 ms: 48 packets and a bit.
    run.ack_after(MS, 120 * MS);
    assert_eq!(run.cwnd(), 3.0);
    (0..48).for_each(|_| run.ack_after(MS, 120 * MS));
    close(run.cwnd(), before, 1e-3);
    assert!(slows_down(&run));
    run.ack_after(11 * MS, 120 * MS);
    assert!(!slows_down(&run));
    // Lasted 240 + 48 + 11 ms.
    run.ack_after((9 * 299 - 1) * MS, 120 * MS);
    assert!(!slows_down(&run));
    run.ack_after(MS, 120 * MS);
    assert!(slows_down(&run));
}

#[test]
fn losses_halve_what_a_slowdown_comes_back_to() {
    let mut run = ledbat(50.0, 50.0);
    run.lose();
    assert_eq!(run.cwnd(), 25.0);
    run.undo();
    assert_eq!(run.cwnd(), 50.0);
    run.ack_after(0, 120 * MS);
    run.ack_after(240 * MS, 120 * MS);
    run.lose();
    assert_eq!(run.cwnd(), 2.0);
    run.ack_after(240 * MS, 120 * MS);
    (0..40).for_each(|_| run.ack_after(MS, 120 * MS));
    close(run.cwnd(), 25.0, 0.05);
    let half = run.cwnd() / 2.0;
    run.time_out(1);
    assert_eq!(run.cwnd(), 1.0);
    (0..20).for_each(|_| run.ack_after(MS, 120 * MS));
    close(run.cwnd(), half, 0.1);
}
