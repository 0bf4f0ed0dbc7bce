use super::SPEC;
use crate::driver::{Driver, MS, near};

const SECOND: u64 = 1000 * MS;

/// alpha as it stands `delta_ms` after the beginning, with beta 0.5: the factor alone.
fn alpha_after(profile: Option<&str>, delta_ms: u64, rtt_ms: u64) -> f64 {
    let mut bench = Driver::avoiding(&SPEC, profile, 2.0);
    bench.rtt_ns = rtt_ms * MS;
    bench.now_ns = delta_ms * MS;
    // Linux renews alpha with the packet that it grows by.
    bench.gained(8);
    bench.observed()[1]
}

/// T6 and the numbers beside it: 1, 11.25, 45, 126 at 1, 2, 5, 11 s, times 2 (1 - beta).
#[test]
fn the_increase_grows_with_the_time_since_the_event() {
    for profile in [None, Some("nist")] {
        // N1: H-TCP is Reno for 1 s after a loss.
        assert_eq!(alpha_after(profile, 1000, 100), 1.0);
        near(alpha_after(profile, 1001, 100), 1.01000025);
        near(alpha_after(profile, 2000, 100), 11.25);
        near(alpha_after(profile, 5000, 100), 45.0);
        near(alpha_after(profile, 11_000, 100), 126.0);
    }
    // Linux rounds down: floor(11.25), and at 100 ms RTT scaling leaves it.
    assert_eq!(alpha_after(Some("linux"), 1000, 100), 1.0);
    assert_eq!(alpha_after(Some("linux"), 2000, 100), 11.0);
    assert_eq!(alpha_after(Some("linux"), 11_000, 100), 126.0);
}

#[test]
fn rtt_scaling_divides_by_the_ratio_to_100_ms_within_bounds() {
    let scaled = |rtt_ms: u64| {
        let values = [("initial_window", 2.0), ("initial_ssthresh", 2.0), ("rtt_scaling", 1.0)];
        let mut bench = Driver::new(&SPEC, None, &values);
        bench.rtt_ns = rtt_ms * MS;
        bench.now_ns = 11 * SECOND;
        bench.gained(1);
        bench.observed()[1]
    };
    near(scaled(50), 63.0);
    near(scaled(1), 12.6);
    near(scaled(400), 252.0);
    // Linux: 44 ms = 11 jiffies, floor(8 * 250 / 110) = 18 eighths, floor(8 * 126 / 18) = 56.
    assert_eq!(alpha_after(Some("linux"), 11_000, 44), 56.0);
}

/// A flow of `rounds` windows of 100 packets at `rtt_ms`.
fn rounds(bench: &mut Driver, rounds: u32, rtt_ms: u64) {
    bench.rtt_ns = rtt_ms * MS;
    for _ in 0..rounds {
        bench.spread(bench.cwnd() as u64 + 1, rtt_ms * MS);
    }
}

#[test]
fn the_window_kept_is_the_ratio_of_round_trip_times_within_bounds() {
    // Steady throughput from one event to the next: the second is cut by RTTmin / RTTmax.
    let cut = |largest_ms: u64| {
        let values =
            [("initial_window", 100.0), ("initial_ssthresh", 100.0), ("bandwidth_switch", 0.0)];
        let mut bench = Driver::new(&SPEC, None, &values);
        rounds(&mut bench, 1, 50);
        rounds(&mut bench, 1, largest_ms);
        bench.lose();
        bench.observed()[2]
    };
    near(cut(80), 0.625);
    near(cut(55), 0.8);
    near(cut(200), 0.5);
}

#[test]
fn the_first_event_and_a_change_of_throughput_halve() {
    let mut bench = Driver::avoiding(&SPEC, None, 100.0);
    rounds(&mut bench, 20, 80);
    assert!((bench.after_loss() / 100.0) > 0.4 && bench.observed()[2] == 0.5);
    // The same throughput again: the ratio counts, RTTmax fading towards RTTmin.
    let mut steady = |packets: u64, n: u32| {
        for _ in 0..n {
            bench.rtt_ns = 80 * MS;
            bench.spread(packets, 80 * MS);
        }
        bench.lose();
        bench.observed()[2]
    };
    assert_eq!(steady(100, 10), 0.8);
    // Twice the throughput.
    assert_eq!(steady(200, 10), 0.5);
    assert_eq!(steady(200, 10), 0.8);
}

#[test]
fn the_largest_rtt_fades_and_linux_takes_jumps_for_outliers() {
    for (profile, largest) in [(None, 200.0), (Some("linux"), 52.0)] {
        let mut bench = Driver::avoiding(&SPEC, profile, 100.0);
        rounds(&mut bench, 1, 40);
        rounds(&mut bench, 1, 52);
        rounds(&mut bench, 1, 200);
        near(bench.observed()[3], largest);
        bench.lose();
        near(bench.observed()[3], 40.0 + 0.95 * (largest - 40.0));
    }
}

#[test]
fn an_undo_restores_the_time_of_the_event() {
    let mut bench = Driver::avoiding(&SPEC, None, 100.0);
    bench.now_ns = 3 * SECOND;
    bench.gained(1);
    let alpha = bench.observed()[1];
    near(alpha, 22.0);
    bench.lose();
    bench.gained(1);
    near(bench.observed()[1], 1.0);
    bench.undo();
    bench.gained(1);
    near(bench.observed()[1], alpha);
}

#[test]
fn linux_counts_the_event_from_the_end_of_the_repair() {
    let alpha = |profile| {
        let mut bench = Driver::avoiding(&SPEC, profile, 4.0);
        bench.lose();
        // Repaired after 800 ms.
        bench.now_ns = 800 * MS;
        bench.send(bench.sample(1, bench.rtt_ns));
        bench.now_ns = 2000 * MS;
        bench.gained(9);
        bench.observed()[1]
    };
    near(alpha(None), 11.25);
    // 1 + floor(10 * 0.2 + 0.01).
    assert_eq!(alpha(Some("linux")), 3.0);
}

#[test]
fn linux_grows_by_whole_packets_and_loses_the_ack_that_completes_one() {
    let mut bench = Driver::avoiding(&SPEC, Some("linux"), 100.0);
    assert_eq!(bench.gained(100), 0.0);
    assert_eq!(bench.gained(1), 1.0);
    assert_eq!(bench.after_loss(), 50.0);
}
