use super::{ACK_RATIO_SCALE, Common, Linux, SPEC};
use crate::driver::{Driver, MS};
use crate::event::{AckSample, PathInfo};
use crate::reno_window::RenoWindow;
use crate::window_law::WindowLaw;

/// A bench whose last maximum is `w_max` and whose window is `window`, with W_max reached from below by one loss.
fn after_loss_at(profile: Option<&str>, w_max: f64) -> Driver {
    let mut bench = Driver::avoiding(&SPEC, profile, w_max);
    bench.lose();
    bench
}

/// Increase per round trip that the law reports after one ACK.
fn increase(bench: &mut Driver) -> f64 {
    bench.gained(1);
    bench.observed()[2]
}

#[track_caller]
fn near(got: f64, expected: f64) {
    assert!((got - expected).abs() < 1e-3, "{got}, not {expected}");
}

/// N1: BIC acts above 14 packets, in every profile; there a loss removes beta.
#[test]
fn up_to_14_packets_it_is_reno() {
    for (profile, kept) in [(None, 0.875), (Some("nist"), 0.875), (Some("linux"), 819.0 / 1024.0)] {
        assert_eq!(Driver::avoiding(&SPEC, profile, 14.0).after_loss(), 7.0, "{profile:?}");
        let expected: f64 = 1000.0 * kept;
        let expected = if profile == Some("linux") { expected.floor() } else { expected };
        near(Driver::avoiding(&SPEC, profile, 1000.0).after_loss(), expected);
        near(Driver::avoiding(&SPEC, profile, 14.0).per_packet(), 1.0 / 14.0);
    }
}

#[test]
fn the_search_halves_the_distance_within_s_min_and_s_max() {
    // W_max 1000, w 875: 125/2 > 32.
    assert_eq!(increase(&mut after_loss_at(None, 1000.0)), 32.0);
    // W_max 100, w 87.5: 12.5/2.
    assert_eq!(increase(&mut after_loss_at(None, 100.0)), 6.25);
    let mut bench = after_loss_at(None, 100.0);
    let mut least = f64::INFINITY;
    while bench.cwnd() < 99.98 {
        least = least.min(increase(&mut bench));
        assert!(bench.cwnd() < 100.0);
    }
    assert!((0.01..0.011).contains(&least), "{least}");
}

#[test]
fn beyond_w_max_steps_double_up_to_s_max() {
    let mut bench = after_loss_at(None, 100.0);
    let mut steps = vec![];
    while steps.len() < 6 {
        let step = increase(&mut bench);
        if bench.cwnd() > 99.999 && steps.last() != Some(&step) {
            steps.push(step);
        }
    }
    assert_eq!(steps, [1.0, 2.0, 4.0, 8.0, 16.0, 32.0]);
    // 1 + 2 + 4 + 8 + 16 beyond the maximum.
    near(bench.cwnd().floor(), 131.0);
}

#[test]
fn before_any_loss_it_grows_by_s_max() {
    assert_eq!(increase(&mut Driver::avoiding(&SPEC, None, 100.0)), 32.0);
}

#[test]
fn fast_convergence_releases_when_the_maximum_was_not_reached() {
    let mut bench = after_loss_at(None, 1000.0);
    assert_eq!(bench.observed()[1], 1000.0);
    bench.lose();
    // 875 (2 - 1/8) / 2.
    assert_eq!(bench.observed()[1], 820.3125);
    assert_eq!(bench.cwnd(), 765.625);
    let mut bench = Driver::new(
        &SPEC,
        None,
        &[("initial_window", 1000.0), ("initial_ssthresh", 1000.0), ("fast_convergence", 0.0)],
    );
    bench.lose();
    bench.lose();
    assert_eq!(bench.observed()[1], 875.0);
}

/// Linux's law at W_max 1000, with one packet per ACK: nothing doubles.
fn linux(w_max: f64) -> Linux {
    let common = Common {
        low_window: 14.0,
        s_max: 16.0,
        beta: 205.0 / 1024.0,
        fast_convergence: true,
        w_max,
        increase: 0.0,
    };
    Linux { common, ack_ratio: ACK_RATIO_SCALE }
}

/// T7: W_max 1000: 16 per round trip at 800, 0.2 at 996; 1 at 14.
#[test]
fn linux_searches_in_quarters() {
    let increase = |window: f64| window / linux(1000.0).per_packet(window);
    assert_eq!(increase(800.0), 16.0);
    assert_eq!(increase(996.0), 0.2);
    assert_eq!(increase(14.0), 1.0);
    // A quarter of 40.
    assert_eq!(increase(960.0), 10.0);
    // 0.2 up to W_max + 4, then (w - W_max) / 3, then S_max.
    assert_eq!(increase(1000.0), 0.2);
    assert_eq!(linux(1000.0).per_packet(1030.0), 1030.0 / 10.0);
    assert_eq!(increase(1056.0), 16.0);
}

/// 5 % per round trip before the first loss; the divisor for delayed ACKs, which starts at two packets per ACK and at one comes
/// to rest on 31/16, doubles that.
#[test]
fn linux_doubles_for_delayed_acks() {
    assert_eq!(linux(0.0).per_packet(1000.0), 20.0);
    let mut bench = Driver::avoiding(&SPEC, Some("linux"), 1000.0);
    near(increase(&mut bench), 100.0);
    let mut law = linux(0.0);
    let path = PathInfo { now_ns: 0, packet_bytes: 1000, initial_window_packets: 10, seed: 0 };
    let window = RenoWindow::new(100.0, 100.0, &path);
    law.ack_ratio = 2 * ACK_RATIO_SCALE;
    let ack = |acked_packets| AckSample {
        acked_packets,
        flags: AckSample::CUMULATIVE,
        ..AckSample::default()
    };
    (0..100).for_each(|_| law.measure(&ack(2), &window));
    assert_eq!(law.ack_ratio, 32);
    (0..100).for_each(|_| law.measure(&ack(1), &window));
    assert_eq!(law.ack_ratio, 31);
    (0..100).for_each(|_| law.measure(&ack(8), &window));
    assert_eq!(law.ack_ratio, 128);
}

/// Symmetric beyond W_max, through the counter.
#[test]
fn linux_counts_whole_packets() {
    let mut bench = after_loss_at(Some("linux"), 1000.0);
    assert_eq!(bench.cwnd(), 799.0);
    // floor(799 / 16) = 49 packets, 49 * 16 / 31 = 25 after one packet per ACK.
    assert_eq!(bench.gained(24), 0.0);
    assert_eq!(bench.gained(1), 1.0);
}

#[test]
fn linux_forgets_the_maximum_at_a_timeout_and_undoes_the_window_only() {
    let mut bench = after_loss_at(Some("linux"), 1000.0);
    bench.undo();
    assert_eq!((bench.cwnd(), bench.observed()[1]), (1000.0, 1000.0));
    bench.now_ns += MS;
    bench.time_out(1);
    assert!(bench.observed()[1].is_nan());
    let mut paper = after_loss_at(None, 1000.0);
    paper.undo();
    assert!(paper.cwnd() == 1000.0 && paper.observed()[1].is_nan());
}
