use super::*;
use crate::driver::{Driver, MS, PACKET};

/// A Veno in congestion avoidance with window 100 that has seen a base RTT of 100 ms on one ACK.
fn run(profile: Option<&str>) -> Driver {
    let settings = [("initial_window", 100.0), ("initial_ssthresh", 100.0)];
    let mut run = Driver::new(&SPEC, profile, &settings);
    run.begin(100 * MS);
    run
}

/// A round of four samples without growth.
fn idle_round(run: &mut Driver, rtt_ns: u64) {
    run.limited = false;
    (0..3).for_each(|_| run.ack(rtt_ns));
    run.end_round(rtt_ns);
    run.limited = true;
}

/// N = 100 (1 - 100/RTT): 2.91 packets at 103 ms, 3.01 at 103.1 ms. Linux rounds up to half a packet: 3 at 103 ms.
#[test]
fn packets_queued_tell_random_losses() {
    let rows = [
        (None, 103_000, 2.913, 80.0),
        (None, 103_100, 3.007, 50.0),
        (Some("linux"), 102_500, 2.5, 80.0),
        (Some("linux"), 103_000, 3.0, 50.0),
    ];
    for (profile, rtt_us, queued, cwnd) in rows {
        let mut run = run(profile);
        idle_round(&mut run, rtt_us * 1000);
        assert!((run.observed()[1] - queued).abs() < 1e-3, "{}", run.observed()[1]);
        run.lose();
        assert_eq!(run.cwnd(), cwnd);
        run.recovering = true;
        (0..100).for_each(|_| run.ack(200 * MS));
        assert_eq!(run.cwnd(), cwnd, "no growth while it is repaired");
        run.undo();
        assert_eq!(run.cwnd(), 100.0);
    }
}

#[test]
fn growth_is_halved_when_congested() {
    for (rtt_ms, cwnd) in [(100, 101.0), (110, 100.5)] {
        let mut run = run(None);
        idle_round(&mut run, rtt_ms * MS);
        (0..100).for_each(|_| run.ack(rtt_ms * MS));
        assert!((run.cwnd() - cwnd).abs() < 0.01, "{}", run.cwnd());
    }
}

/// Linux: one more after the first window of ACKs and the ACK that finds it full, none after the second, one after the third.
#[test]
fn linux_grows_every_other_window_when_congested() {
    let mut run = run(Some("linux"));
    idle_round(&mut run, 110 * MS);
    for (acks, cwnd) in [(100, 100.0), (1, 101.0), (102, 101.0), (101, 101.0), (1, 102.0)] {
        (0..acks).for_each(|_| run.ack(110 * MS));
        assert_eq!(run.cwnd(), cwnd);
    }
}

#[test]
fn a_timeout_halves_the_threshold_in_linux_by_the_state() {
    for (profile, ssthresh) in [(None, 50.0), (Some("linux"), 80.0)] {
        let mut run = run(profile);
        run.time_out(1);
        assert_eq!((run.cwnd(), run.observed()[0]), (1.0, ssthresh * PACKET as f64));
    }
}
