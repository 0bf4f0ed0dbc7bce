use super::SPEC;
use crate::driver::{Driver, MS, near};

/// `rounds` round trips of 100 ms in which 60 packets are acknowledged, after one of 60 ms.
fn measured(profile: Option<&str>, rounds: u32) -> Driver {
    let mut bench = Driver::avoiding(&SPEC, profile, 100.0);
    bench.rtt_ns = 60 * MS;
    bench.spread(36, 60 * MS);
    bench.rtt_ns = 100 * MS;
    for _ in 0..rounds {
        bench.spread(60, 100 * MS);
    }
    bench
}

/// 600 packets/s and a smallest RTT of 60 ms: 36 packets.
#[test]
fn a_loss_leaves_what_the_path_holds() {
    let mut bench = measured(None, 10);
    // Packets of 1 MB: 600 a second are 4800 Mbit/s.
    near(bench.observed()[1], 4800.0);
    near(bench.observed()[2], 60.0);
    let window = bench.cwnd();
    near(bench.after_loss(), 36.0);
    near(bench.observed()[0], 36_000_000.0);
    bench.undo();
    near(bench.cwnd(), window);
    bench.time_out(1);
    near(bench.cwnd(), 1.0);
    near(bench.observed()[0], 36_000_000.0);
}

#[test]
fn without_an_estimate_it_halves_and_two_packets_are_the_least() {
    assert_eq!(Driver::avoiding(&SPEC, None, 100.0).after_loss(), 50.0);
    let mut slow = Driver::avoiding(&SPEC, None, 100.0);
    slow.spread(10, 10_000 * MS);
    assert_eq!(slow.after_loss(), 2.0);
}

#[test]
fn the_filter_keeps_nine_tenths() {
    let mut bench = measured(None, 10);
    bench.spread(120, 100 * MS);
    // One sample of 1200 packets/s: 0.9 * 600 + 0.1 * 1200 = 660.
    near(bench.observed()[1], 660.0 * 8.0);
}

#[test]
fn a_larger_estimate_does_not_raise_the_window() {
    let mut bench = measured(None, 10);
    bench.lose();
    bench.send(bench.sample(0, bench.rtt_ns));
    // 36 packets now; the path is ten times faster.
    (0..100).for_each(|_| bench.spread(600, 100 * MS));
    let window = bench.cwnd();
    assert!(bench.after_loss() <= window);
}

/// Linux: half during the repair, then floor(bytes per jiffy * jiffies / packet): 15 jiffies of 60 ms.
#[test]
fn linux_sets_the_window_when_the_losses_are_repaired() {
    let mut bench = measured(Some("linux"), 30);
    near(bench.observed()[2], 60.0);
    let window = bench.cwnd();
    assert_eq!(bench.after_loss(), (window / 2.0).floor());
    let holds = (bench.observed()[1] / 8.0 * 0.060).floor();
    assert!((34.0..=36.0).contains(&holds), "{holds}");
    bench.send(bench.sample(0, bench.rtt_ns));
    assert_eq!(bench.cwnd(), holds);
    bench.time_out(1);
    assert_eq!((bench.cwnd(), bench.observed()[0]), (1.0, holds * 1e6));
    // The next ACK's RTT replaces the smallest; it is that of the ACK before.
    bench.send(bench.sample(1, bench.rtt_ns));
    near(bench.observed()[2], 100.0);
}
