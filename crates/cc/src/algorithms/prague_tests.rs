//! Prague by hand.

use super::SPEC;
use crate::driver::{Driver, PACKET};

const MS: u64 = 1_000_000;
/// Above every virtual RTT.
const LONG_NS: u64 = 40 * MS;
const SHORT_NS: u64 = 5 * MS;

fn window(driver: &Driver) -> f64 {
    driver.observed()[2]
}

fn alpha(driver: &Driver) -> f64 {
    driver.observed()[1]
}

/// In congestion avoidance near `packets`: a mark in slow start has halved the window, and every packet of the rounds since came
/// without one.
fn avoiding(packets: f64, settings: &[(&str, f64)], rtt_ns: u64) -> Driver {
    let start = [("initial_window", 2.0 * packets)];
    let mut driver = Driver::new(&SPEC, None, &[&start, settings].concat());
    mark(&mut driver, rtt_ns);
    driver
}

/// The ACK of one packet that begins a round and reports a mark.
fn mark(driver: &mut Driver, rtt_ns: u64) {
    driver.marks = 1;
    driver.end_round(rtt_ns);
    driver.marks = 0;
}

fn near(got: f64, expected: f64) {
    assert!((got - expected).abs() < 1e-6 * expected.abs().max(1.0), "{got}, not {expected}");
}

#[test]
fn the_first_mark_ends_slow_start_and_halves() {
    let mut driver = Driver::new(&SPEC, None, &[("initial_window", 40.0)]);
    driver.acks(10, LONG_NS);
    near(window(&driver), 50.0);
    assert!(alpha(&driver).is_nan(), "nothing marks yet");
    mark(&mut driver, LONG_NS);
    near(window(&driver), 25.0);
    driver.acks(10, LONG_NS);
    near(window(&driver), 25.0 + 10.0 / 25.0);
}

/// Unmarked packets open the window in the round of a reduction, and marked ones do not.
#[test]
fn it_grows_while_it_reduces() {
    let mut driver = avoiding(100.0, &[], LONG_NS);
    near(window(&driver), 100.0);
    driver.marks = 4;
    driver.acks(10, LONG_NS);
    near(window(&driver), 100.0 + 6.0 / 100.0);
}

/// As T14, from the first mark on.
#[test]
fn alpha_follows_the_marks() {
    let mut driver = avoiding(100.0, &[], LONG_NS);
    // The window of the mark holds nothing else.
    driver.end_round(LONG_NS);
    near(alpha(&driver), 1.0);
    for n in 1..=11 {
        driver.acks(9, LONG_NS);
        driver.end_round(LONG_NS);
        near(alpha(&driver), (15.0_f64 / 16.0).powi(n));
    }
    for _ in 0..400 {
        driver.acks(4, LONG_NS);
        mark(&mut driver, LONG_NS);
    }
    near(alpha(&driver), 0.2);
}

#[test]
fn one_reduction_per_round_trip() {
    let mut driver = avoiding(100.0, &[("transition", 1000.0)], SHORT_NS);
    driver.end_round(SHORT_NS);
    let before = window(&driver);
    driver.marks = 1;
    driver.end_round(SHORT_NS);
    let kept = before * (1.0 - alpha(&driver) / 2.0);
    near(window(&driver), kept);
    driver.ack(SHORT_NS);
    near(window(&driver), kept);
    driver.end_round(SHORT_NS);
    assert!(window(&driver) < kept);
}

/// 5 ms as if 25 ms: a 25th of the growth, alpha and reductions once in five round trips.
#[test]
fn a_short_rtt_behaves_like_25_ms() {
    let mut driver = avoiding(100.0, &[("transition", 0.0)], SHORT_NS);
    driver.acks(10, SHORT_NS);
    near(window(&driver), 100.0 + 10.0 / 25.0 / 100.0);
    let (before, after_first) = (window(&driver), alpha(&driver));
    let mut kept = Vec::new();
    for _ in 0..10 {
        mark(&mut driver, SHORT_NS);
        kept.push(window(&driver));
    }
    // 25 ms after the mark of `avoiding`, with the microsecond of each ACK: the fifth round, then the tenth.
    let reductions = kept.windows(2).filter(|pair| pair[1] < pair[0]).count();
    assert_eq!((reductions, kept[3]), (2, before), "{kept:?}");
    assert_eq!(after_first, 1.0);
    // A long RTT is what it is.
    let mut driver = avoiding(100.0, &[("transition", 0.0)], LONG_NS);
    driver.acks(10, LONG_NS);
    near(window(&driver), 100.0 + 10.0 / 100.0);
}

#[test]
fn the_virtual_rtt_counts_after_the_transition() {
    let growth = |rounds: u32| {
        let mut driver = avoiding(100.0, &[("transition", 4.0)], SHORT_NS);
        (0..rounds).for_each(|_| driver.end_round(SHORT_NS));
        let before = window(&driver);
        driver.acks(10, SHORT_NS);
        (window(&driver) - before) * before
    };
    near(growth(3), 10.0);
    near(growth(4), 10.0 / 25.0);
}

/// 100 packets in 40 ms, bursts of 0.25 ms; twice that in slow start.
#[test]
fn it_paces_at_the_rate_of_the_window() {
    let control = |driver: &Driver| driver.controller.control();
    let driver = avoiding(100.0, &[], LONG_NS);
    assert_eq!(control(&driver).pacing_bytes_per_s, 2500 * PACKET);
    assert_eq!(control(&driver).send_quantum_bytes, 625_000);
    let mut driver = Driver::new(&SPEC, None, &[("initial_window", 99.0)]);
    assert_eq!(control(&driver).pacing_bytes_per_s, u64::MAX, "no RTT yet");
    driver.ack(LONG_NS);
    assert_eq!(control(&driver).pacing_bytes_per_s, 5000 * PACKET);
}

/// Below two packets the host still has two, and the pacing rate is that of the window, down to min_rate: 0.333 packets in 40 ms.
#[test]
fn the_pacing_rate_holds_windows_below_two() {
    let least = 8.0 * PACKET as f64 / 0.120;
    let mut driver = avoiding(2.0, &[("min_rate", least)], LONG_NS);
    for _ in 0..6 {
        driver.end_round(LONG_NS);
        mark(&mut driver, LONG_NS);
    }
    let control = driver.controller.control();
    assert_eq!((driver.cwnd(), window(&driver) < 2.0), (2.0, true));
    near(control.pacing_bytes_per_s as f64, (window(&driver) * PACKET as f64 / 0.040).floor());
    for _ in 0..100 {
        mark(&mut driver, LONG_NS);
    }
    near(window(&driver), 1.0 / 3.0);
    near(driver.controller.control().pacing_bytes_per_s as f64, least / 8.0);
}

#[test]
fn a_loss_halves_and_the_host_repairs_before_anything_grows() {
    for (settings, kept) in [(&[][..], 50.0), (&[("loss_beta", 0.7)][..], 70.0)] {
        let mut driver = avoiding(100.0, settings, LONG_NS);
        driver.lose();
        near(window(&driver), kept);
        driver.recovering = true;
        driver.acks(10, LONG_NS);
        mark(&mut driver, LONG_NS);
        near(window(&driver), kept);
        driver.undo();
        near(window(&driver), 100.0);
    }
}

#[test]
fn a_timeout_starts_over() {
    let mut driver = avoiding(100.0, &[], LONG_NS);
    driver.time_out(1);
    assert_eq!(
        (window(&driver), driver.cwnd(), driver.observed()[0]),
        (1.0, 2.0, 50.0 * PACKET as f64)
    );
    driver.acks(10, LONG_NS);
    near(window(&driver), 11.0);
}

/// Without marks it is Reno: slow start until a loss, then one packet per round trip.
#[test]
fn without_marks_it_is_reno() {
    let mut driver = Driver::new(&SPEC, None, &[("initial_window", 50.0)]);
    driver.acks(50, LONG_NS);
    driver.lose();
    near(window(&driver), 50.0);
    driver.acks(50, LONG_NS);
    near(window(&driver), 51.0);
    assert!(alpha(&driver).is_nan());
}
