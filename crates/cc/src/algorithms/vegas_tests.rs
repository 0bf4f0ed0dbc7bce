use super::*;
use crate::driver::{Driver, MS, PACKET};

/// A Vegas in congestion avoidance with window `w` that has seen a base RTT of 100 ms.
fn run(profile: Option<&str>, settings: &[(&str, f64)], w: f64) -> Driver {
    let window = [("initial_window", w), ("initial_ssthresh", w.max(2.0))];
    let mut run = Driver::new(&SPEC, profile, &[settings, &window].concat());
    run.begin(100 * MS);
    run
}

/// T11, the paper's Diff in real numbers: at w = 100 and 100 ms, 2 packets are 102.04 ms, 4 packets 104.17 ms.
#[test]
fn the_window_holds_between_alpha_and_beta() {
    for (rtt_us, change) in [(102_000, 1.0), (102_100, 0.0), (104_100, 0.0), (104_200, -1.0)] {
        let mut run = run(None, &[], 100.0);
        run.round(rtt_us * 1000);
        assert_eq!(run.cwnd(), 100.0 + change, "{rtt_us} us");
    }
}

/// T11 and section 3.5: in Linux 102 ms is a Diff of 2 and 104.9 ms one of 4, which holds; 101.9 ms is one of 1.
#[test]
fn linux_divides_by_the_base_and_rounds_down() {
    for (rtt_us, change) in
        [(101_900, 1.0), (102_000, 0.0), (104_100, 0.0), (104_900, 0.0), (105_000, -1.0)]
    {
        let mut run = run(Some("linux"), &[], 100.0);
        run.round(rtt_us * 1000);
        assert_eq!(run.cwnd(), 100.0 + change, "{rtt_us} us");
    }
}

#[test]
fn alpha_and_beta_move_the_band() {
    for (alpha, beta, change) in [(5.0, 6.0, 1.0), (3.0, 3.5, -1.0), (3.0, 4.0, 0.0)] {
        let mut run = run(None, &[("alpha", alpha), ("beta", beta)], 100.0);
        // Diff = 3.85.
        run.round(104 * MS);
        assert_eq!(run.cwnd(), 100.0 + change, "{alpha} {beta}");
    }
}

#[test]
fn slow_start_doubles_every_other_round_in_the_paper_and_every_round_in_linux() {
    for (profile, windows) in
        [(None, [20.0, 20.0, 40.0, 40.0, 80.0]), (Some("linux"), [20.0, 40.0, 80.0, 160.0, 320.0])]
    {
        let mut run = Driver::new(&SPEC, profile, &[("initial_window", 10.0)]);
        run.begin(100 * MS);
        let got = windows.map(|_| {
            run.round(100 * MS);
            run.cwnd()
        });
        assert_eq!(got, windows, "{profile:?}");
    }
}

/// gamma = 1, at w = 79 or 80. In the paper the window stays: at 101.2 ms Diff is 0.94, at 102 ms it is 1.55.
#[test]
fn slow_start_of_the_paper_ends_at_gamma() {
    for (rtt_us, cwnd, ssthresh) in [(101_200, 80.0, f64::NAN), (102_000, 79.0, 79.0)] {
        let mut run = Driver::new(&SPEC, None, &[("initial_window", 40.0)]);
        run.begin(100 * MS);
        run.round(rtt_us * 1000);
        assert_eq!(run.cwnd(), cwnd);
        assert_eq!(
            run.observed()[0].to_bits(),
            (ssthresh * PACKET as f64).to_bits(),
            "{rtt_us} us"
        );
    }
}

/// In Linux a Diff of 1.6 is one of 1, which goes on; at w = 83 and 104 ms it is 3.3: w becomes 83 / 1.04 = 79.8, and one.
#[test]
fn slow_start_of_linux_falls_to_what_the_path_holds() {
    let mut run = Driver::new(&SPEC, Some("linux"), &[("initial_window", 76.0)]);
    run.begin(100 * MS);
    (0..3).for_each(|_| run.ack(102 * MS));
    run.end_round(102 * MS);
    assert_eq!(run.cwnd(), 80.0);
    (0..3).for_each(|_| run.ack(104 * MS));
    run.end_round(104 * MS);
    assert_eq!(run.cwnd(), 80.0);
    run.ack(104 * MS);
    assert_eq!(run.cwnd(), 80.0, "slow start is over");
}

#[test]
fn fewer_than_three_samples_grow_as_reno() {
    for (profile, windows) in [(None, [4.25, 4.25 + 1.0 / 4.25]), (Some("linux"), [4.0, 4.0])] {
        let mut run = run(profile, &[], 4.0);
        for window in windows {
            run.end_round(200 * MS);
            assert!((run.cwnd() - window).abs() < 1e-3, "{} {window}", run.cwnd());
        }
        (0..2).for_each(|_| run.end_round(200 * MS));
        assert!(run.cwnd() >= 4.7, "four packets make one, or nearly");
    }
}

#[test]
fn a_loss_halves_and_the_next_round_is_measured_anew() {
    let mut run = run(Some("linux"), &[], 101.0);
    run.lose();
    assert_eq!(run.cwnd(), 50.0);
    run.recovering = true;
    (0..60).for_each(|_| run.ack(300 * MS));
    run.recovering = false;
    run.ack(300 * MS);
    assert_eq!(run.cwnd(), 50.0);
    // The queue is empty again: the samples of the repair do not count.
    run.round(100 * MS);
    assert_eq!(run.cwnd(), 51.0);
    run.undo();
    assert_eq!(run.cwnd(), 101.0, "undone");
}

#[test]
fn the_authors_code_keeps_three_quarters() {
    let mut run = run(None, &[("loss_beta", 0.75)], 100.0);
    run.lose();
    assert_eq!(run.cwnd(), 75.0);
}

#[test]
fn a_timeout_begins_with_one_packet_and_linux_forgets_the_base() {
    for (profile, base) in [(None, 100.0), (Some("linux"), 120.0)] {
        let mut run = run(profile, &[], 100.0);
        run.time_out(1);
        assert_eq!(run.cwnd(), 1.0);
        assert_eq!(run.observed()[0], 50.0 * PACKET as f64, "ssthresh");
        run.ack(120 * MS);
        run.ack(130 * MS);
        assert_eq!(run.observed()[1].min(120.0), base);
    }
}

#[test]
fn a_pause_makes_linux_forget_the_base() {
    for (profile, change) in [(None, -1.0), (Some("linux"), 1.0)] {
        let mut run = run(profile, &[], 100.0);
        run.controller.on_resume(&Resume::default());
        run.ack(110 * MS);
        run.round(110 * MS);
        assert_eq!(run.cwnd(), 100.0 + change);
    }
}

#[test]
fn only_linux_grows_though_the_window_does_not_limit() {
    for (profile, change) in [(None, 0.0), (Some("linux"), 1.0)] {
        let mut run = run(profile, &[], 100.0);
        run.limited = false;
        run.round(100 * MS);
        assert_eq!(run.cwnd(), 100.0 + change);
    }
}
