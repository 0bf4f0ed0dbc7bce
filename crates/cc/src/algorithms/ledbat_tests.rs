use super::*;
use crate::driver::{Driver, MS, PACKET, close};
use crate::event::AckSample;

fn ledbat(window: f64) -> Driver {
    Driver::new(&SPEC, None, &[("initial_window", window)])
}

#[test]
fn grows_by_gain_times_off_target() {
    let mut run = ledbat(50.0);
    // off_target 1: a packet per window.
    (0..50).for_each(|_| run.ack(40 * MS));
    close(run.cwnd(), 51.0, 2e-3);
    // The smallest of four samples counts: three of 90 ms change nothing yet.
    let before = run.cwnd();
    (0..3).for_each(|_| run.ack(90 * MS));
    close(run.cwnd() - before, 3.0 / 51.0, 0.05);
    // 50 ms of queue: half; 100 ms: nothing; 200 ms: a packet less per window.
    run.ack(90 * MS);
    let before = run.cwnd();
    (0..51).for_each(|_| run.ack(90 * MS));
    close(run.cwnd() - before, 0.5, 0.05);
    (0..4).for_each(|_| run.ack(140 * MS));
    let before = run.cwnd();
    (0..50).for_each(|_| run.ack(140 * MS));
    close(run.cwnd(), before, 1e-9);
    (0..4).for_each(|_| run.ack(240 * MS));
    let before = run.cwnd();
    (0..51).for_each(|_| run.ack(240 * MS));
    close(before - run.cwnd(), 1.0, 0.05);
}

#[test]
fn what_is_in_flight_limits_the_window() {
    let mut run = ledbat(50.0);
    for _ in 0..100 {
        let prior_in_flight_bytes = 99 * PACKET / 2;
        run.send(AckSample { prior_in_flight_bytes, ..run.sample(1, 40 * MS) });
    }
    close(run.cwnd(), 50.5, 1e-3);
    // §2.4.2: cwnd = min(cwnd, flightsize + ALLOWED_INCREASE), for one that was not used too; at least 2.
    for (in_flight, expected) in [(20.0, 21.0), (0.5, 2.0)] {
        let prior_in_flight_bytes = (in_flight * PACKET as f64) as u64;
        run.send(AckSample { prior_in_flight_bytes, ..run.sample(1, 40 * MS) });
        assert_eq!(run.cwnd(), expected);
    }
}

#[test]
fn a_one_way_delay_is_preferred() {
    let mut run = ledbat(50.0);
    for delay_ms in [20, 70, 70, 70, 70] {
        run.send(AckSample { one_way_delay_ns: delay_ms * MS, ..run.sample(1, 500 * MS) });
    }
    assert_eq!(run.observed(), [20.0, 50.0]);
}

#[test]
fn the_base_is_forgotten_after_ten_minutes() {
    let mut history = DelayHistory::new(0);
    history.add(0, 10 * MS);
    for minute in 1..10 {
        history.add(minute * MINUTE_NS, 30 * MS);
        assert_eq!(history.base_ns(), Some(10 * MS));
    }
    history.add(10 * MINUTE_NS, 30 * MS);
    assert_eq!(history.base_ns(), Some(30 * MS));
    history.add(1000 * MINUTE_NS, 40 * MS);
    assert_eq!(history.base_ns(), Some(40 * MS));
}

#[test]
fn a_loss_halves_and_a_timeout_restarts() {
    let mut run = ledbat(50.0);
    run.lose();
    run.lose_again(0);
    assert_eq!(run.cwnd(), 25.0);
    run.undo();
    assert_eq!(run.cwnd(), 50.0);
    run.time_out(1);
    assert_eq!(run.cwnd(), 1.0);
    run.ack(40 * MS);
    assert_eq!(run.cwnd(), 2.0);
}
