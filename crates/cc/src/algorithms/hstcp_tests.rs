use super::{ROWS, Response, SPEC, Table};
use crate::driver::Driver;

const RFC: Response = Response {
    low_window: 38.0,
    high_window: 83_000.0,
    low_p: 1e-3,
    high_p: 1e-7,
    high_decrease: 0.1,
};

#[track_caller]
fn near(got: f64, expected: f64, share: f64) {
    assert!((got / expected - 1.0).abs() <= share, "{got}, not {expected}");
}

/// What the law says at a window, by the fields after an ACK.
fn a_and_b(profile: Option<&str>, window: f64) -> (f64, f64) {
    let mut bench = Driver::avoiding(&SPEC, profile, window);
    bench.gained(1);
    (bench.observed()[1], bench.observed()[2])
}

/// T4, and the rest of the numbers of RFC 3649 §5.
#[test]
fn increase_and_decrease_are_those_of_the_rfc() {
    for (window, a, b) in [
        (38.0, 0.963, 0.5),
        (118.0, 2.03, 0.441),
        (1000.0, 7.86, 0.330),
        (10_000.0, 29.6, 0.210),
        (83_000.0, 72.5, 0.1),
    ] {
        near(RFC.b(window), b, 0.01);
        near(Response::a(window, RFC.p(window), RFC.b(window)), a, 0.01);
        if window > 38.0 {
            assert_eq!(a_and_b(None, window).1, RFC.b(window));
            near(a_and_b(None, window).0, a, 0.01);
        }
    }
    near(RFC.p(10_000.0), 1.26e-6, 0.005);
    // No less than High_Decrease.
    near(RFC.b(1e6), 0.1, 1e-9);
}

/// N1: RFC and Linux act above 38 packets, NIST above 31.
#[test]
fn up_to_low_window_it_is_reno() {
    for (profile, low) in [(None, 38.0), (Some("nist"), 31.0), (Some("linux"), 38.0)] {
        assert_eq!(a_and_b(profile, low), (1.0, 0.5), "{profile:?}");
        assert_eq!(Driver::avoiding(&SPEC, profile, low).after_loss(), low / 2.0);
        let b = a_and_b(profile, low + 1.0).1;
        assert!(b < 0.5, "{profile:?}: {b}");
    }
    assert_eq!(Driver::avoiding(&SPEC, None, 38.0).per_packet(), 1.0 / 38.0);
}

#[test]
fn a_loss_removes_b_of_the_window_before_the_cut() {
    near(
        Driver::avoiding(&SPEC, None, 10_000.0).after_loss(),
        10_000.0 * (1.0 - RFC.b(10_000.0)),
        1e-6,
    );
    near(Driver::avoiding(&SPEC, None, 83_000.0).after_loss(), 74_700.0, 1e-6);
}

#[test]
fn nist_rounds_the_increase() {
    // a(1000) = 1000^2 0.078/1000^1.2 2 b/(2-b), b = 0.5 - 0.4 ln(1000/31)/ln(83000/31) = 0.324.
    let (a, b) = a_and_b(Some("nist"), 1000.0);
    near(b, 0.3240, 1e-3);
    assert_eq!(a, 8.0);
    // The fit is 2.5 % low here: 70.7, not 72.5.
    assert_eq!(a_and_b(Some("nist"), 83_000.0).0, 71.0);
}

/// The table of appendix B is what its fit to the response function gives: a(w) passes a whole number at each row.
#[test]
fn the_table_is_that_of_the_fit() {
    for (index, pair) in ROWS.windows(2).enumerate() {
        assert!(pair[0] < pair[1]);
        let w = f64::from(pair[1]);
        if w > RFC.high_window {
            continue;
        }
        let a = Response::a(w, 0.078 / libm::pow(w, 1.2), RFC.b(w));
        near(a, index as f64 + 2.0, 0.007);
    }
    // Shares in 256ths as Linux has them, at the first rows and the last.
    let b = |row| Table { row, credit: 0.0 }.b() * 256.0;
    assert_eq!([b(0), b(1), b(2), b(3), b(70), b(71)], [128.0, 112.0, 104.0, 98.0, 25.0, 24.0]);
}

#[test]
fn linux_takes_row_and_growth_per_ack() {
    // Table: a = 1 at 38, 2 from 39 to 118, 3 above.
    for (window, a) in [(38.0, 1.0), (39.0, 2.0), (118.0, 2.0), (119.0, 3.0), (100_000.0, 72.0)] {
        assert_eq!(a_and_b(Some("linux"), window).0, a, "{window}");
    }
    let mut bench = Driver::avoiding(&SPEC, Some("linux"), 100.0);
    assert_eq!(bench.gained(49), 0.0);
    assert_eq!(bench.gained(1), 1.0);
    // Two packets per ACK count once.
    bench.send(bench.sample(2, bench.rtt_ns));
    assert_eq!(bench.cwnd(), 101.0);
    // 101 - floor(101 * 112/256) = 101 - 44.
    assert_eq!(bench.after_loss(), 57.0);
    // Before any ACK in congestion avoidance: half.
    assert_eq!(Driver::avoiding(&SPEC, Some("linux"), 1000.0).after_loss(), 500.0);
}
