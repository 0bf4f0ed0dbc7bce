use super::*;
use crate::driver::{Driver, MS, PACKET, close};

/// Values of the fields, in their order.
struct Seen {
    bandwidth: f64,
    min_rtt_ms: f64,
    silence_ms: f64,
    horizon_ms: f64,
    draining: bool,
}

fn seen(run: &Driver) -> Seen {
    let [bandwidth, min_rtt_ms, silence_ms, horizon_ms, draining] = run.fields();
    Seen { bandwidth, min_rtt_ms, silence_ms, horizon_ms, draining: draining == 1.0 }
}

fn timeout_ms(run: &Driver) -> u64 {
    run.controller.control().timeout_ns / MS
}

#[test]
fn starts_as_the_contest_entry() {
    let run = Driver::new(&SPEC, None, &[]);
    assert_eq!(run.cwnd(), 50.0);
    // 10 packets/ms with gamma 0.5, and 0.4 * 500 + 1.5/10 ms.
    assert_eq!(run.controller.control().pacing_bytes_per_s, 20_000 * PACKET);
    assert_eq!(timeout_ms(&run), 200);
}

#[test]
fn first_acks_by_hand() {
    let mut run = Driver::new(&SPEC, None, &[("horizon", 100.0)]);
    run.ack_after(50 * MS, 50 * MS);
    let first = seen(&run);
    // B = 1/50; no silence is known yet: H = 100 * 50; (2) w = 2.5 + 0.02 * 5000.
    assert_eq!((first.bandwidth, first.min_rtt_ms, first.silence_ms), (0.02, 50.0, 0.0));
    assert_eq!((first.horizon_ms, run.cwnd()), (5000.0, 102.0));
    // (4): 0.02 packets/ms with gamma 0.5.
    assert_eq!(run.controller.control().pacing_bytes_per_s, 40 * PACKET);
    run.ack_after(50 * MS, 100 * MS);
    let second = seen(&run);
    // Two gaps of 50 ms: W = 47.5, s = 0.15 sqrt(50 * 47.5) = 7.31.
    close(second.silence_ms, 47.5, 0.03);
    let spare_ms = 0.15 * f64::sqrt(50.0 * second.silence_ms);
    close(second.horizon_ms, 5000.0 + spare_ms, 1e-12);
    // (3): b = 2/100 again, (57.3 / 100)^0.7 = 0.677.
    let window = 2.5 + 0.02 * second.horizon_ms * ((50.0 + spare_ms) / 100.0_f64).powf(0.7);
    assert_eq!(run.cwnd(), window.floor());
    close(window, 70.3, 0.01);
}

/// Up to its aim, m + s, the RTT does not matter.
#[test]
fn an_rtt_within_its_aim_costs_nothing() {
    let mut run = Driver::new(&SPEC, None, &[("horizon", 100.0)]);
    run.ack_after(50 * MS, 50 * MS);
    run.ack_after(50 * MS, 50 * MS);
    let before = run.cwnd();
    run.ack_after(MS, 56 * MS);
    assert!(run.cwnd() >= before, "aim 57 ms");
}

#[test]
fn three_packets_are_the_least() {
    let mut run = Driver::new(&SPEC, None, &[("extra", 0.0)]);
    run.ack_after(50 * MS, 50 * MS);
    assert_eq!(run.cwnd(), 3.0);
}

#[test]
fn probes_come_ever_further_apart() {
    let mut run = Driver::new(&SPEC, None, &[]);
    run.ack_after(50 * MS, 50 * MS);
    // (5): 0.4 * 50 + 1.5 / 0.02 = 95 ms.
    assert_eq!(timeout_ms(&run), 95);
    let window = run.cwnd();
    for (probes, expected) in [(1, 99), (2, 104), (10, 154), (58, 1609), (u32::MAX, 1609)] {
        run.time_out(probes);
        assert_eq!((timeout_ms(&run), run.cwnd()), (expected, window));
    }
    run.ack_after(50 * MS, 50 * MS);
    assert!(timeout_ms(&run) <= 95);
}

/// An RTT of 50 ms once, then of 60 ms, an ACK per 10 ms.
#[test]
fn the_queue_is_drained_when_the_least_rtt_is_not_seen() {
    let mut run = Driver::new(&SPEC, None, &[("extra", 20.0)]);
    run.ack_after(50 * MS, 50 * MS);
    while run.now_ns < 10_040 * MS {
        run.ack_after(10 * MS, 60 * MS);
        assert!(!seen(&run).draining && run.cwnd() > 20.0);
    }
    // 10 s after 0.05 s. It ends with the packet sent 60 ms later, whose ACK takes 60 ms or, the queue gone, 55.
    for _ in 0..12 {
        run.ack_after(10 * MS, 60 * MS);
        assert!(seen(&run).draining && run.cwnd() == 3.0);
    }
    run.ack_after(10 * MS, 55 * MS);
    assert!(!seen(&run).draining && run.cwnd() > 20.0);
    // Not again for 10 s, and then 50 ms is forgotten: 20 s after it was seen.
    while run.now_ns < 20_160 * MS {
        run.ack_after(10 * MS, 60 * MS);
        assert!(!seen(&run).draining);
    }
    assert_eq!(seen(&run).min_rtt_ms, 55.0);
    run.ack_after(10 * MS, 60 * MS);
    assert!(seen(&run).draining);
}

#[test]
fn the_least_rtt_seen_again_puts_the_drain_off() {
    let mut run = Driver::new(&SPEC, None, &[]);
    run.ack_after(50 * MS, 50 * MS);
    for n in 1..4000 {
        run.ack_after(10 * MS, if n % 900 == 0 { 50 * MS } else { 60 * MS });
        assert!(!seen(&run).draining, "{n}");
    }
}

#[test]
fn silence_with_nothing_in_flight_is_none() {
    let mut idle = Driver::new(&SPEC, None, &[]);
    let mut silent = Driver::new(&SPEC, None, &[]);
    for run in [&mut idle, &mut silent] {
        (0..20).for_each(|_| run.ack_after(10 * MS, 10 * MS));
    }
    idle.controller.on_resume(&Resume { now_ns: 1190 * MS, idle_ns: 990 * MS });
    for run in [&mut idle, &mut silent] {
        (0..11).for_each(|n| run.ack_after(if n == 0 { 1000 * MS } else { 10 * MS }, 10 * MS));
    }
    close(seen(&idle).silence_ms, 9.5, 0.05);
    assert!(seen(&silent).silence_ms > 800.0);
}

#[test]
fn an_ack_without_an_rtt_ends_a_silence_and_no_more() {
    let mut run = Driver::new(&SPEC, None, &[]);
    run.ack_after(50 * MS, 50 * MS);
    run.time_out(3);
    let (window, bandwidth) = (run.cwnd(), seen(&run).bandwidth);
    run.ack_after(50 * MS, 0);
    assert_eq!((run.cwnd(), seen(&run).bandwidth, timeout_ms(&run)), (window, bandwidth, 95));
    assert!(seen(&run).silence_ms > 40.0);
}

#[test]
fn a_loss_changes_nothing_and_a_path_its_packets() {
    let mut run = Driver::new(&SPEC, None, &[]);
    run.ack_after(50 * MS, 50 * MS);
    let before = run.controller.control();
    run.lose();
    assert_eq!(run.controller.control(), before);
    let packet_bytes = 500_000;
    let path = PathInfo { now_ns: run.now_ns, packet_bytes, initial_window_packets: 10, seed: 0 };
    run.controller.on_path_change(&path);
    assert_eq!(run.cwnd(), before.cwnd_bytes as f64 / PACKET as f64 / 2.0);
}
