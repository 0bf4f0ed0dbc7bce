use super::*;
use crate::driver::{Driver, MS, PACKET, close};

fn copa(profile: Option<&str>) -> Driver {
    Driver::new(&SPEC, profile, &[])
}

/// An ACK of a packet sent after the last ACK, `gap_ns` later.
fn ack_of_new_round(run: &mut Driver, gap_ns: u64, rtt_ns: u64) {
    run.start_round();
    run.ack_after(gap_ns, rtt_ns);
}

/// Leaves slow start: 10 packets at 100 ms of propagation, then a standing queue of `queue_ms`.
fn settled(profile: Option<&str>, queue_ms: u64) -> Driver {
    let mut run = copa(profile);
    run.ack_after(MS, 100 * MS);
    // Past the window of RTTstanding.
    run.ack_after(200 * MS, (100 + queue_ms) * MS);
    run
}

/// T20: delta 0.5, d_q 20 ms: 100 packets/s.
#[test]
fn target_rate_by_hand() {
    let run = settled(None, 20);
    let [delta, v, queueing, target, _] = run.fields::<5>();
    assert_eq!((delta, v), (0.5, 1.0));
    close(queueing, 20.0, 1e-12);
    close(target, 100.0, 1e-12);
}

#[test]
fn nothing_waiting_is_no_bound() {
    let mut run = copa(None);
    for _ in 0..10 {
        run.ack_after(MS, 100 * MS);
    }
    assert!(run.fields::<5>()[3].is_nan());
    assert_eq!(run.cwnd(), 20.0, "slow start: a packet per packet");
    // Paced at twice the window per RTT.
    assert_eq!(run.controller.control().pacing_bytes_per_s, 2 * 20 * PACKET * 10);
}

/// At lambda = 11 / 120 ms = 92 packets/s below the target of 100, then above that of 67.
#[test]
fn the_window_moves_by_v_over_delta_w() {
    let mut run = settled(None, 200);
    // 10 packets in slow start, one more with the first ACK; then 11 / 0.3 s = 37 > 1 / (0.5 * 0.2 s) = 10: down.
    let expected = 11.0 - 1.0 / (0.5 * 11.0);
    close(run.cwnd(), expected, 1e-3);
    run.ack_after(MS, 300 * MS);
    close(run.cwnd(), expected - 1.0 / (0.5 * expected), 1e-3);
    // The queue goes: the minimum of the last 50 ms is 100 ms again, without bound.
    let before = run.cwnd();
    run.ack_after(MS, 100 * MS);
    close(run.cwnd(), before + 1.0 / (0.5 * before), 1e-3);
}

#[test]
fn velocity_doubles_after_three_rounds_and_a_turn_resets_it() {
    let mut velocity = Velocity { v: 1.0, up: true, steady_rounds: 0, start_cwnd: 100.0 };
    let mut seen = Vec::new();
    for cwnd in [102.0, 104.0, 106.0, 110.0, 118.0, 134.0, 130.0, 129.0] {
        velocity.end_round(cwnd, 0.5);
        seen.push(velocity.v);
    }
    assert_eq!(seen, [1.0, 1.0, 2.0, 4.0, 8.0, 16.0, 1.0, 1.0]);
    // Never more than a window per round trip: v / delta <= w.
    let mut velocity = Velocity { v: 8.0, up: false, steady_rounds: 9, start_cwnd: 30.0 };
    velocity.end_round(20.0, 0.5);
    assert_eq!(velocity.v, 10.0);
}

/// Without a nearly empty queue for five round trips 1/delta is additively increased, and halved at a loss.
#[test]
fn competes_while_the_queue_stays() {
    let mut run = settled(None, 100);
    for _ in 0..4 {
        ack_of_new_round(&mut run, 200 * MS, 200 * MS);
    }
    assert_eq!(run.fields::<5>()[4], 0.0);
    let mut inverse = Vec::new();
    for _ in 0..5 {
        ack_of_new_round(&mut run, 200 * MS, 200 * MS);
        inverse.push((1.0 / run.fields::<5>()[0]).round());
    }
    assert_eq!(run.fields::<5>()[4], 1.0);
    assert_eq!(inverse, [2.0, 3.0, 4.0, 5.0, 6.0]);
    run.lose();
    run.lose();
    close(1.0 / run.fields::<5>()[0], 3.0, 1e-9);
    // A round with a loss adds nothing; 1/delta stays at least 2.
    ack_of_new_round(&mut run, 200 * MS, 200 * MS);
    close(1.0 / run.fields::<5>()[0], 3.0, 1e-9);
    for _ in 0..3 {
        run.lose();
        ack_of_new_round(&mut run, 200 * MS, 200 * MS);
    }
    close(1.0 / run.fields::<5>()[0], 2.0, 1e-9);
    // The queue empties: default mode at the next round.
    ack_of_new_round(&mut run, 200 * MS, 100 * MS);
    ack_of_new_round(&mut run, 100 * MS, 100 * MS);
    assert_eq!((run.fields::<5>()[0], run.fields::<5>()[4]), (0.5, 0.0));
}

#[test]
fn default_mode_ignores_losses_and_need_not_switch() {
    let mut run = settled(Some("default-mode"), 100);
    for _ in 0..20 {
        ack_of_new_round(&mut run, 200 * MS, 200 * MS);
    }
    let before = (run.fields::<5>()[0], run.cwnd());
    run.lose();
    assert_eq!((run.fields::<5>()[0], run.cwnd()), before);
    assert_eq!(before.0, 0.5);
}

#[test]
fn a_timeout_probes_anew() {
    let mut run = settled(None, 100);
    run.time_out(1);
    assert_eq!(run.cwnd(), 2.0);
    for _ in 0..3 {
        run.ack_after(60 * MS, 100 * MS);
    }
    assert_eq!(run.cwnd(), 5.0, "slow start");
}
