use super::*;
use crate::algorithms::fast_at;
use crate::driver::{Driver, MS, close};

/// A FAST in congestion avoidance.
fn fast(window: f64) -> Driver {
    Driver::avoiding(&SPEC, None, window)
}

#[test]
fn equation_3_by_hand() {
    let mut run = fast(1000.0);
    run.flight(100 * MS);
    assert_eq!(run.cwnd(), 1000.0);
    // No queue: (1 - 1/2) 1000 + 1/2 (1000 + 200) = 1100.
    run.flight(100 * MS);
    close(run.fields::<4>()[3], 1100.0, 1e-12);
    close(run.cwnd(), 1100.0, 1e-3);
    // Then a fifth of the RTT is queue, as far as the average shows it. The window that the equation multiplies is that of the
    // round before.
    let mut before = 1000.0;
    for _ in 0..4 {
        let (window, average) = (run.cwnd(), run.fields::<4>()[2]);
        run.flight(125 * MS);
        let expected = 0.5 * window + 0.5 * (100.0 / average * before + 200.0);
        close(run.fields::<4>()[3], expected, 1e-4);
        before = window;
    }
    close(run.fields::<4>()[2], 125.0, 1e-3);
}

/// In balance w (1 - baseRTT / RTT) = alpha: with 100 ms of propagation and 125 ms in all, w = 1000.
#[test]
fn balance_is_alpha_packets_in_the_queue() {
    let mut run = fast(1000.0);
    run.flight(100 * MS);
    for _ in 0..200 {
        run.flight(125 * MS);
    }
    close(run.cwnd(), 1000.0, 0.01);
}

#[test]
fn never_more_than_twice() {
    let mut run = fast(10.0);
    run.flight(100 * MS);
    run.flight(100 * MS);
    close(run.fields::<4>()[3], 20.0, 1e-12);
}

#[test]
fn slow_start_ends_when_alpha_packets_stand() {
    let mut run = Driver::new(&SPEC, None, &[("initial_window", 600.0)]);
    run.flight(100 * MS);
    assert_eq!(run.cwnd(), 1200.0);
    // 1200 (1 - 100/115) = 157 do not stand yet; 2400 (1 - 100/115) = 313 do.
    run.flight(115 * MS);
    assert_eq!(run.cwnd(), 2400.0);
    run.flight(115 * MS);
    assert_eq!(run.cwnd(), 4800.0);
    run.flight(115 * MS);
    assert!(run.cwnd() < 4801.0, "{}", run.cwnd());
}

#[test]
fn a_loss_halves_once_and_an_undo_restores() {
    let mut run = fast(1000.0);
    run.lose();
    run.lose_again(0);
    assert_eq!(run.cwnd(), 500.0);
    run.undo();
    assert_eq!(run.cwnd(), 1000.0);
    run.time_out(1);
    assert_eq!(run.cwnd(), 1.0);
    for _ in 0..9 {
        run.flight(100 * MS);
    }
    close(run.cwnd(), 500.0, 0.03);
}

/// A window of 200 at 100 ms is 2000 packets/s: alpha 20; of 100, 1000 packets/s: alpha 8.
#[test]
fn tuned_alpha_follows_the_rate() {
    for (window, alpha) in [(100.0, 8.0), (200.0, 20.0), (2000.0, 200.0)] {
        let mut run = Driver::avoiding(&fast_at::SPEC, None, window);
        assert_eq!(run.fields::<4>()[0], 8.0);
        run.flight(100 * MS);
        run.flight(100 * MS);
        assert_eq!(run.fields::<4>()[0], alpha);
        close(run.fields::<4>()[3], window + alpha / 2.0, 1e-9);
    }
}
