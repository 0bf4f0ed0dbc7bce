//! DCTCP by hand.

use super::SPEC;
use crate::driver::{Driver, PACKET};

const RTT_NS: u64 = 100_000;

/// In congestion avoidance at `window` packets, which do not limit.
fn fresh(profile: Option<&str>, window: f64, settings: &[(&str, f64)]) -> Driver {
    let start = [("initial_window", window), ("initial_ssthresh", window)];
    let mut driver = Driver::new(&SPEC, profile, &[&start, settings].concat());
    driver.limited = false;
    driver
}

/// The same after an ACK without a mark, a window of its own.
fn dctcp(profile: Option<&str>, window: f64, settings: &[(&str, f64)]) -> Driver {
    let mut driver = fresh(profile, window, settings);
    driver.end_round(RTT_NS);
    driver
}

fn alpha(driver: &Driver) -> f64 {
    driver.observed()[1]
}

/// A round of ten ACKs, the first `marked` of which report a mark.
fn round(driver: &mut Driver, marked: u32) {
    driver.marks = u32::from(marked > 0);
    driver.end_round(RTT_NS);
    for n in 1..10 {
        driver.marks = u32::from(n < marked);
        driver.ack(RTT_NS);
    }
    driver.marks = 0;
}

fn rounds(driver: &mut Driver, marked: u32, count: u32) {
    (0..count).for_each(|_| round(driver, marked));
}

/// T14: without marks alpha falls to (15/16)^n.
#[test]
fn alpha_decays_without_marks() {
    let mut driver = dctcp(None, 100.0, &[]);
    // The first window is the one that `begin` opened.
    for n in 1..=11 {
        round(&mut driver, 0);
        assert!((alpha(&driver) - (15.0_f64 / 16.0).powi(n)).abs() < 1e-12);
    }
    assert!((alpha(&driver) - 0.49).abs() < 0.005, "{}", alpha(&driver));
}

/// T14: F = f leads to alpha = f, and 1 to halving.
#[test]
fn alpha_becomes_the_fraction_marked() {
    for marked in [0, 1, 3, 10] {
        let mut driver = dctcp(None, 1e6, &[("initial_alpha", 0.5)]);
        rounds(&mut driver, marked, 400);
        let fraction = f64::from(marked) / 10.0;
        assert!((alpha(&driver) - fraction).abs() < 1e-9, "{marked}: {}", alpha(&driver));
    }
    for profile in [None, Some("linux")] {
        let mut driver = fresh(profile, 640.0, &[]);
        for kept in [320.0, 160.0, 80.0, 40.0, 20.0, 10.0, 5.0, 2.5, 2.0, 2.0] {
            round(&mut driver, 10);
            // Linux: 5 - 2, whole packets.
            let kept = if kept == 2.5 && profile.is_some() { 3.0 } else { kept };
            assert_eq!((driver.cwnd(), alpha(&driver)), (kept, 1.0));
        }
    }
}

#[test]
fn a_mark_takes_half_of_alpha_once_per_window() {
    let mut driver = dctcp(None, 100.0, &[("initial_alpha", 0.2)]);
    driver.marks = 1;
    driver.end_round(RTT_NS);
    // The update at the end of the window before: 0.2 x 15/16.
    let kept = 100.0 * (1.0 - 0.1875 / 2.0);
    assert!((driver.cwnd() - kept).abs() < 1e-3);
    driver.ack(RTT_NS);
    driver.ack(RTT_NS);
    assert!((driver.cwnd() - kept).abs() < 1e-3, "the same window of data");
    driver.end_round(RTT_NS);
    assert!(driver.cwnd() < kept, "the next");
}

#[test]
fn only_unmarked_acks_open_the_window() {
    let mut driver = dctcp(None, 100.0, &[("initial_alpha", 0.0)]);
    driver.limited = true;
    round(&mut driver, 10);
    assert_eq!(driver.cwnd(), 100.0);
    driver.ack(RTT_NS);
    assert!((driver.cwnd() - 100.01).abs() < 1e-3, "{}", driver.cwnd());
}

/// Linux rests for the whole round, marked or not.
#[test]
fn linux_rests_after_a_reduction() {
    let mut driver = dctcp(Some("linux"), 10.0, &[]);
    driver.limited = true;
    driver.marks = 1;
    driver.end_round(RTT_NS);
    driver.marks = 0;
    // 960/1024 after one decrease: 10 - 10 x 960 / 2048 rounded down.
    assert_eq!(driver.cwnd(), 6.0);
    (0..12).for_each(|_| driver.ack(RTT_NS));
    assert_eq!(driver.cwnd(), 6.0);
    driver.end_round(RTT_NS);
    (0..6).for_each(|_| driver.ack(RTT_NS));
    assert_eq!(driver.cwnd(), 7.0);
}

/// Linux counts in 1/1024: 1024 - 64 = 960, - 60 = 900, … and what is below 16 goes at once.
#[test]
fn linux_counts_alpha_in_integers() {
    let mut driver = dctcp(Some("linux"), 1e6, &[]);
    let mut by_hand = 1024_u32;
    let mut last = 0;
    for _ in 0..100 {
        round(&mut driver, 0);
        by_hand -= if by_hand < 16 { by_hand } else { by_hand / 16 };
        assert_eq!(alpha(&driver), f64::from(by_hand) / 1024.0);
        last = if by_hand > 0 { by_hand } else { last };
    }
    assert_eq!((alpha(&driver), last), (0.0, 15), "the real one is still at 0.0016");
}

/// A mark in ten adds 64 / 10, rounded down: from above alpha settles where a sixteenth of it, rounded down, is 6. From 0 it never
/// leaves 6, which goes at once as often as it comes: an estimate of 0.006 instead of 0.1.
#[test]
fn linux_underestimates_few_marks() {
    let mut driver = dctcp(Some("linux"), 1e6, &[]);
    rounds(&mut driver, 1, 300);
    let settled = alpha(&driver) * 1024.0;
    assert!((96.0..112.0).contains(&settled), "{settled}");
    let mut driver = dctcp(Some("linux"), 1e6, &[("initial_alpha", 0.0)]);
    rounds(&mut driver, 1, 300);
    assert_eq!(alpha(&driver) * 1024.0, 6.0);
}

#[test]
fn a_loss_halves_whatever_alpha_is() {
    for profile in [None, Some("linux")] {
        let mut driver = dctcp(profile, 100.0, &[("initial_alpha", 0.0)]);
        driver.lose();
        assert_eq!(driver.cwnd(), 50.0);
        driver.recovering = true;
        round(&mut driver, 10);
        assert_eq!(driver.cwnd(), 50.0, "no second reaction while losses are repaired");
        driver.undo();
        assert_eq!(driver.cwnd(), 100.0);
        driver.recovering = false;
        driver.time_out(1);
        assert_eq!((driver.cwnd(), driver.observed()[0]), (1.0, 50.0 * PACKET as f64));
    }
}

#[test]
fn the_gain_and_the_start_are_parameters() {
    let mut driver = dctcp(None, 1e6, &[("g_shift", 2.0), ("initial_alpha", 0.8)]);
    round(&mut driver, 0);
    assert!((alpha(&driver) - 0.6).abs() < 1e-12);
    let mut driver = dctcp(Some("linux"), 1e6, &[("g_shift", 2.0)]);
    round(&mut driver, 0);
    assert_eq!(alpha(&driver), 0.75);
}
