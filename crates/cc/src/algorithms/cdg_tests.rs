use super::*;
use crate::driver::{Driver, MS, PACKET};

/// G so small that any growth of the RTT calls for a backoff, and so large that none does.
const CERTAIN: (&str, f64) = ("scale", 0.0001);
const NEVER: (&str, f64) = ("scale", 1.0);

/// A CDG in congestion avoidance with window 100 after one round at 100 ms.
fn seeded(profile: Option<&str>, settings: &[(&str, f64)], seed: u64) -> Driver {
    let window = [("initial_window", 100.0), ("initial_ssthresh", 100.0)];
    let mut run = Driver::seeded(&SPEC, profile, &[settings, &window].concat(), seed);
    run.begin(100 * MS);
    run.limited = false;
    run
}

fn run(profile: Option<&str>, settings: &[(&str, f64)]) -> Driver {
    seeded(profile, settings, 0)
}

/// A round of two samples, the second of which ends it.
fn round(run: &mut Driver, min_ms: u64, max_ms: u64) {
    run.ack(max_ms * MS);
    run.end_round(min_ms * MS);
}

fn gradient(run: &Driver) -> f64 {
    run.observed()[1]
}

fn shadow(run: &Driver) -> f64 {
    run.observed()[3]
}

fn close(got: f64, expected: f64) {
    assert!((got - expected).abs() < 1e-9, "{got} against {expected}");
}

/// Eq. (4): a growth of 3 ms per round calls for a backoff with probability 1 - 1/e at G = 3 ms, one of 1 ms with 28 %; Linux's
/// factor of 42 for 8 rounds is a G of 2.976 ms: 63.5 % and 28.5 %.
#[test]
fn the_probability_of_a_backoff() {
    for (profile, grown_ms, probability) in [
        (None, 3, 0.6321),
        (None, 1, 0.2835),
        (Some("linux"), 3, 0.6350),
        (Some("linux"), 1, 0.2854),
    ] {
        let runs = 4000;
        let backoffs = (0..runs)
            .filter(|seed| {
                // Of one round Linux extrapolates to eight.
                let smoothing = if profile.is_some() { 8.0 } else { 1.0 };
                let mut run = seeded(profile, &[("smoothing", smoothing)], *seed);
                round(&mut run, 100 + grown_ms, 100 + grown_ms);
                run.observed()[2] == 1.0
            })
            .count();
        let share = backoffs as f64 / runs as f64;
        // Four standard deviations.
        let tolerance = 4.0 * (probability * (1.0 - probability) / runs as f64).sqrt();
        assert!((share - probability).abs() < tolerance, "{share} against {probability}");
    }
}

/// Eq. (1)-(3): the mean of the last eight growths. Missing ones count as 0 in the authors' module; Linux extrapolates.
#[test]
fn gradients_are_averaged_over_eight_rounds() {
    for (profile, means) in [(None, [0.125, 0.375, 0.75]), (Some("linux"), [1.0, 1.5, 2.0])] {
        let mut run = run(profile, &[NEVER]);
        for (rtt_ms, mean) in [101, 103, 106].into_iter().zip(means) {
            round(&mut run, rtt_ms, rtt_ms);
            close(gradient(&run), mean);
        }
        // Nine more by 1 ms: the first four are forgotten.
        for rtt_ms in 107..=115 {
            round(&mut run, rtt_ms, rtt_ms);
        }
        close(gradient(&run), 1.0);
    }
}

/// The smallest RTT counts where it grows, else the largest.
#[test]
fn the_largest_rtt_counts_when_the_smallest_stands() {
    let settings = [NEVER, ("smoothing", 1.0)];
    for (min_ms, max_ms, growth) in [(101, 105, 1.0), (100, 105, 5.0), (98, 99, -1.0)] {
        let mut run = run(None, &settings);
        round(&mut run, min_ms, max_ms);
        close(gradient(&run), growth);
    }
}

#[test]
fn in_slow_start_the_last_round_counts_by_itself() {
    let mut run = Driver::new(&SPEC, None, &[NEVER, ("initial_window", 100.0)]);
    run.begin(100 * MS);
    run.limited = false;
    round(&mut run, 104, 104);
    close(gradient(&run), 4.0);
}

#[test]
fn a_backoff_keeps_seven_tenths_at_once_and_growth_goes_on() {
    let mut run = run(None, &[CERTAIN]);
    round(&mut run, 103, 103);
    close(run.cwnd(), 70.0);
    close(shadow(&run), 100.0);
    run.limited = true;
    run.ack(103 * MS);
    assert!(run.cwnd() > 70.0);
    run.undo();
    close(run.cwnd(), 100.0);
}

/// Linux: 724/1024 of 100 is 70. Of 100 packets in flight 50 have arrived, 35 have left: 85.
#[test]
fn a_backoff_of_linux_takes_a_round_trip() {
    let mut run = run(Some("linux"), &[CERTAIN]);
    run.limited = true;
    round(&mut run, 103, 103);
    close(run.cwnd(), 100.0);
    (0..50).for_each(|_| run.ack(103 * MS));
    close(run.cwnd(), 85.0);
    (0..50).for_each(|_| run.ack(103 * MS));
    close(run.cwnd(), 70.0);
    (0..50).for_each(|_| run.ack(103 * MS));
    close(run.cwnd(), 70.0);
    // Over. The round is what the next is compared with, and nothing was judged.
    run.end_round(110 * MS);
    close(run.observed()[2], 1.0);
    let before = gradient(&run);
    round(&mut run, 104, 104);
    // Two growths: 3 ms and, from 103 to 104, 1 ms.
    assert_eq!((before, gradient(&run)), (3.0, 2.0));
}

#[test]
fn a_falling_rtt_never_calls_for_a_backoff() {
    for profile in [None, Some("linux")] {
        let mut run = run(profile, &[CERTAIN]);
        for rtt_ms in (60..100).rev() {
            round(&mut run, rtt_ms, rtt_ms);
        }
        close(run.cwnd(), 100.0);
    }
}

/// Rounds of growth without end: how many backoffs in a row there are, those left out, and so on.
fn pattern(run: &mut Driver, rounds: u64) -> Vec<(bool, usize)> {
    let mut pattern: Vec<(bool, usize)> = Vec::new();
    let mut called = run.observed()[2];
    for n in 0..rounds {
        let before = run.cwnd();
        round(run, 101 + n, 101 + n);
        // Let Linux's reduction end.
        round(run, 101 + n, 101 + n);
        let reduced = run.cwnd() < before;
        let now_called = run.observed()[2];
        if !reduced && now_called == called {
            continue;
        }
        called = now_called;
        match pattern.last_mut() {
            Some((last, count)) if *last == reduced => *count += 1,
            _ => pattern.push((reduced, 1)),
        }
    }
    pattern
}

/// §3.2: five without effect, then five are left out, the last of which resets the count.
#[test]
fn backoffs_without_effect_stop() {
    let settings = [CERTAIN, ("loss_tolerance", 0.0)];
    let mut authors = run(None, &settings);
    assert_eq!(pattern(&mut authors, 30)[..3], [(true, 5), (false, 5), (true, 5)]);
    let mut linux = run(Some("linux"), &settings);
    let seen = pattern(&mut linux, 30);
    assert_eq!((seen.len(), seen[0]), (2, (true, 5)), "no more until the RTT falls");
    let mut endless = run(None, &[CERTAIN, ("ineffectual", 0.0)]);
    assert_eq!(pattern(&mut endless, 10).iter().filter(|p| !p.0).count(), 0);
}

/// §3.3: a loss counts where the queue seems full, or nothing is known.
#[test]
fn losses_are_tolerated_unless_the_queue_seems_full() {
    let rounds = [(101, 104, 100.0), (99, 102, 100.0), (101, 103, 50.0), (100, 102, 100.0)];
    for (min_ms, max_ms, cwnd) in rounds {
        let mut run = run(None, &[NEVER, ("smoothing", 1.0), ("shadow", 0.0)]);
        // The first round has one largest RTT, the second another: growth by 0 is full.
        round(&mut run, 100, 103);
        round(&mut run, min_ms, max_ms);
        run.lose();
        close(run.cwnd(), cwnd);
    }
    let mut unknown = run(None, &[NEVER]);
    unknown.lose();
    close(unknown.cwnd(), 50.0);
    let mut run = run(None, &[NEVER, ("loss_tolerance", 0.0)]);
    round(&mut run, 101, 104);
    run.lose();
    close(run.cwnd(), 50.0);
}

/// A mark is no random loss: it counts where a loss would be tolerated.
#[test]
fn marks_are_not_tolerated() {
    let mut run = run(None, &[NEVER, ("smoothing", 1.0), ("shadow", 0.0)]);
    round(&mut run, 100, 103);
    round(&mut run, 101, 104);
    run.lose();
    close(run.cwnd(), 100.0);
    run.marks = 1;
    run.end_round(102 * MS);
    close(run.cwnd(), 50.0);
}

/// §3.2: after a backoff from 100 to 70 a loss leaves half of the shadow's 100; without a shadow window, of 70.
#[test]
fn a_loss_leaves_half_of_the_shadow_window() {
    for (shadow_window, cwnd) in [(1.0, 50.0), (0.0, 35.0)] {
        let settings =
            [CERTAIN, ("beta_delay", 0.7), ("loss_tolerance", 0.0), ("shadow", shadow_window)];
        let mut run = run(Some("linux"), &settings);
        run.limited = true;
        round(&mut run, 103, 103);
        (0..100).for_each(|_| run.ack(103 * MS));
        run.end_round(103 * MS);
        close(run.cwnd(), 70.0);
        run.lose();
        close(run.cwnd(), cwnd);
    }
}

#[test]
fn a_loss_within_a_backoff_costs_nothing_more() {
    for profile in [None, Some("linux")] {
        let mut run = run(profile, &[CERTAIN]);
        round(&mut run, 103, 103);
        run.lose();
        close(run.cwnd(), 70.0);
    }
}

/// The shadow window grows as the window does, and comes down to it where the window does not limit.
#[test]
fn the_shadow_window_follows() {
    let mut run = run(Some("linux"), &[NEVER]);
    run.limited = true;
    (0..200).for_each(|_| run.ack(100 * MS));
    close(run.cwnd(), 101.0);
    close(shadow(&run), 101.0);
    run.limited = false;
    run.ack(100 * MS);
    close(shadow(&run), 101.0);
}

/// The queue is empty where the smallest RTT stands and the largest falls: the authors then forget the shadow window.
#[test]
fn an_empty_queue_ends_the_shadow() {
    for (profile, left) in [(None, 0.0), (Some("linux"), 100.0)] {
        let mut run = run(profile, &[NEVER, ("smoothing", 1.0)]);
        round(&mut run, 100, 104);
        round(&mut run, 100, 102);
        close(shadow(&run), left);
    }
}

#[test]
fn a_timeout_halves_the_threshold_and_forgets_the_gradients() {
    let mut run = run(None, &[NEVER]);
    run.time_out(1);
    close(run.cwnd(), 1.0);
    close(run.observed()[0], 50.0 * PACKET as f64);
    round(&mut run, 120, 120);
    assert!(gradient(&run).is_nan());
}

/// Linux: after an ACK of two packets one of a single packet is taken for delayed: it may only lower the smallest RTT.
#[test]
fn delayed_acks_do_not_count() {
    let ack = |acked_packets, rtt_ns| AckSample {
        acked_packets,
        rtt_ns,
        flags: AckSample::CUMULATIVE,
        ..AckSample::default()
    };
    let mut rtt = RttRange::default();
    let mut note = |acked, rtt_ns, filtered| {
        rtt.note(&ack(acked, rtt_ns), filtered);
        (rtt.min_ns, rtt.max_ns)
    };
    assert_eq!(note(1, 100, true), (100, 100));
    assert_eq!(note(2, 110, true), (100, 110));
    assert_eq!(note(1, 150, true), (100, 110), "delayed");
    assert_eq!(note(1, 150, true), (100, 150), "one delayed for one of two");
    assert_eq!(note(2, 110, true), (100, 150));
    assert_eq!(note(1, 90, true), (90, 150), "provenly smaller");
    assert_eq!(note(2, 160, false), (90, 160));
    assert_eq!(note(1, 170, false), (90, 170));
}

/// Linux: a train of ACKs that spans half of 40 ms, or a round whose smallest RTT is an eighth above it, ends slow start.
#[test]
fn hybrid_slow_start() {
    let rtt = |ms: u64| RttRange { min_ns: ms * MS, max_ns: ms * MS, delayed: 0 };
    let ends_after = |gap_us: u64, limited: bool| {
        let mut hybrid = HybridSlowStart::default();
        (1..100_u64).find(|n| hybrid.ends(n * gap_us * 1000, limited, &rtt(40)))
    };
    // The first opens the train, the 21st after it is more than 20 ms later.
    assert_eq!(ends_after(1000, true), Some(22));
    assert_eq!(ends_after(3000, true), None, "no train");
    assert_eq!(ends_after(1000, false), None, "the window does not limit");
    let mut hybrid = HybridSlowStart::default();
    let mut samples = |ms| (0..9).filter(|n| hybrid.ends(*n, true, &rtt(ms))).count();
    assert_eq!(samples(40), 0);
    assert_eq!(samples(45), 0);
    assert_eq!(samples(46), 9);
}
