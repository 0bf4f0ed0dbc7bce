use super::super::bbr_driver::{MS, Run};
use super::*;

const STARTUP: f64 = 0.0;
const DRAIN: f64 = 1.0;
const DOWN: f64 = 2.0;
const CRUISE: f64 = 3.0;
const REFILL: f64 = 4.0;
const UP: f64 = 5.0;
const PROBE_RTT: f64 = 6.0;

/// No ProbeRTT in between.
const UNDISTURBED: [(&str, f64); 1] = [("probe_rtt_interval", 1000.0)];

fn begin(profile: Option<&str>, settings: &[(&str, f64)], seed: u64) -> Run {
    Run::new(&SPEC, profile, settings, seed)
}

/// One that has found the pipe full at 1 MB/s and drains what that queued.
fn in_drain(profile: Option<&str>, settings: &[(&str, f64)], seed: u64) -> Run {
    let mut run = begin(profile, settings, seed);
    run.in_flight = 150;
    (0..4).for_each(|_| run.round());
    assert_eq!(run.state(), DRAIN);
    run
}

/// One that cruises at 1 MB/s with 100 packets in flight.
fn in_cruise(profile: Option<&str>, settings: &[(&str, f64)], seed: u64) -> Run {
    let mut run = in_drain(profile, settings, seed);
    run.in_flight = 100;
    run.ack(0);
    assert_eq!(run.state(), CRUISE);
    run
}

/// Waits for the next probe and fills the pipe for a round.
fn probe(run: &mut Run) {
    run.ack(3001 * MS);
    assert_eq!(run.state(), REFILL);
    run.round();
    assert_eq!(run.state(), UP);
}

fn in_up() -> Run {
    let mut run = in_cruise(None, &UNDISTURBED, 0);
    probe(&mut run);
    run
}

/// One whose last probe found 90 packets too much: the 90th was sent when the second of them was lost, and 2 % of the 89 before,
/// less the one lost, are 0.78 more: 89 + 0.78 / 0.98.
fn bounded() -> (Run, f64) {
    let mut run = in_up();
    run.tx_in_flight = 90;
    run.lose(2, Loss::EPISODE_START);
    run.ack(0);
    assert_eq!(run.state(), DOWN);
    run.tx_in_flight = 50;
    (run, 89.0 + 0.78 / 0.98)
}

#[track_caller]
fn near(got: f64, expected: f64) {
    assert!((got - expected).abs() < 1e-6, "{got} is not {expected}");
}

/// T19: the draft's table, and Linux's in 256ths.
#[test]
fn constants() {
    let of = |profile, key| SPEC.params(profile).unwrap().get(key);
    let rows = [
        // Draft §2, Linux.
        ("startup_gain", 2.77, 2.77),
        ("drain_gain", 0.5, 0.347),
        ("cwnd_gain", 2.0, 2.0),
        ("down_gain", 0.9, 0.91),
        ("up_gain", 1.25, 1.25),
        ("up_cwnd_gain", 2.25, 2.25),
        ("loss_threshold", 0.02, 0.02),
        ("beta", 0.7, 0.7),
        ("headroom", 0.15, 0.15),
        ("startup_losses", 6.0, 6.0),
        ("probe_rtt_interval", 5.0, 5.0),
        ("probe_rtt_duration", 0.2, 0.2),
        ("probe_rtt_gain", 0.5, 0.5),
        ("min_rtt_window", 10.0, 10.0),
        ("probe_wait", 2.0, 2.0),
        ("probe_wait_spread", 1.0, 1.0),
        ("reno_rounds", 63.0, 63.0),
        ("min_window", 4.0, 4.0),
        ("pacing_margin", 0.01, 0.01),
    ];
    for (key, draft, linux) in rows {
        let precision = if key == "startup_gain" { 0.003 } else { 1e-12 };
        assert!((of(None, key) - draft).abs() <= precision, "{key}");
        assert!((of(Some("linux"), key) - linux).abs() < 1.0 / 256.0, "{key}");
    }
}

#[test]
fn each_state_has_its_gains() {
    let mut run = begin(None, &UNDISTURBED, 0);
    // 2.7726 * 10 packets of 1000 bytes in 1 ms.
    assert_eq!((run.pacing(), run.cwnd()), (27_725_887, 10.0));
    run.round();
    let said = |run: &Run| (run.state(), run.gain(), run.field("cwnd_gain"), run.pacing());
    // 1 % below the bandwidth.
    assert_eq!(said(&run), (STARTUP, 4.0 * std::f64::consts::LN_2, 2.0, 2_744_862));
    let mut run = in_drain(None, &UNDISTURBED, 0);
    assert_eq!(said(&run), (DRAIN, 0.5, 2.0, 495_000));
    run.in_flight = 100;
    run.ack(0);
    assert_eq!(said(&run), (CRUISE, 1.0, 2.0, 990_000));
    // The window grows by what arrives, to two BDP and what a single ACK tells of at once.
    run.acked = 50;
    (0..6).for_each(|_| run.ack(50 * MS));
    assert_eq!(run.cwnd(), 250.0);
    run.ack(3001 * MS);
    assert_eq!(said(&run), (REFILL, 1.0, 2.0, 990_000));
    run.round();
    assert_eq!(said(&run), (UP, 1.25, 2.25, 1_237_500));
    // And two packets.
    run.ack(50 * MS);
    assert_eq!(run.cwnd(), 225.0 + 50.0 + 2.0);
    run.in_flight = 125;
    (0..3).for_each(|_| run.round());
    assert_eq!(said(&run), (DOWN, 0.9, 2.0, 891_000));
}

#[test]
fn startup_ends_when_the_rate_grows_no_more() {
    let mut run = begin(None, &[], 0);
    run.in_flight = 10_000;
    for rate in [100e3, 125e3, 130e3, 140e3] {
        run.rate = rate;
        run.round();
        // ACKs within a round say nothing.
        run.ack(0);
        assert_eq!(run.state(), STARTUP);
    }
    run.flags = AckSample::APP_LIMITED;
    (0..5).for_each(|_| run.round());
    assert_eq!(run.state(), STARTUP, "an application that does not fill the pipe proves nothing");
    run.flags = 0;
    run.round();
    assert_eq!(run.state(), DRAIN);
    assert!(run.field("inflight_longterm").is_nan());
}

/// Six losses or more in a full round of repair, of more than 2 % of a flight.
#[test]
fn startup_ends_by_losses() {
    let after = |losses: u32, share: u64, flags: u32| {
        let mut run = begin(None, &[], 0);
        (run.in_flight, run.rtt_ns) = (150, 100 * MS);
        run.round();
        run.rtt_ns = 150 * MS;
        run.flags = flags;
        for n in 0..losses {
            run.lose(1, if n == 0 { Loss::EPISODE_START } else { 0 });
            run.ack(MS);
        }
        assert_eq!(run.state(), STARTUP, "the round is not over");
        run.lost = share;
        run.round();
        run
    };
    let repairs = AckSample::IN_RECOVERY;
    let run = after(6, 3, repairs);
    // 150 ms at 1 MB/s were delivered in that round: more than a BDP.
    assert_eq!((run.state(), run.field("inflight_longterm")), (DRAIN, 150.0));
    assert_eq!(after(6, 3, repairs | AckSample::APP_LIMITED).state(), DRAIN);
    assert_eq!(after(5, 3, repairs).state(), STARTUP);
    assert_eq!(after(6, 2, repairs).state(), STARTUP, "2 % are tolerated");
    assert_eq!(after(6, 3, 0).state(), STARTUP);
    // The count is that of a round.
    let mut run = after(5, 2, repairs);
    run.lose(1, 0);
    run.ack(MS);
    run.lost = 10;
    run.round();
    assert_eq!(run.state(), STARTUP);
}

#[test]
fn drain_ends_with_the_queue_or_after_three_rounds() {
    let mut run = in_drain(None, &[], 0);
    run.in_flight = 101;
    run.ack(0);
    assert_eq!(run.state(), DRAIN);
    (0..3).for_each(|_| run.round());
    assert_eq!(run.state(), DRAIN);
    run.round();
    assert_eq!(run.state(), DOWN);
    let mut linux = in_drain(Some("linux"), &[], 0);
    (0..30).for_each(|_| linux.round());
    assert_eq!(linux.state(), DRAIN, "Linux has no such limit");
}

#[test]
fn a_probe_comes_after_two_to_three_seconds() {
    let mut waits: Vec<u64> = (0..200)
        .map(|seed| {
            let mut run = in_cruise(None, &UNDISTURBED, seed);
            let mut waited_ms = 0;
            while run.state() == CRUISE {
                run.ack(10 * MS);
                waited_ms += 10;
            }
            waited_ms
        })
        .collect();
    waits.sort_unstable();
    assert!((2000..2050).contains(&waits[0]) && (2960..=3010).contains(&waits[199]), "{waits:?}");
    // Four standard deviations of a median of 200.
    assert!((2360..2640).contains(&waits[100]), "{waits:?}");
}

/// A Reno flow loses a packet once in as many rounds as its window has packets; more than 63 do not count. Counting begins with 0
/// or 1.
#[test]
fn a_probe_comes_as_often_as_reno_would() {
    for (rate, most) in [(1e6, 63), (200e3, 20)] {
        let mut seen = [false; 2];
        for seed in 0..20 {
            let mut run = begin(None, &UNDISTURBED, seed);
            (run.rtt_ns, run.rate, run.acked) = (100 * MS, rate, 10);
            run.in_flight = 150;
            (0..4).for_each(|_| run.round());
            run.in_flight = 10;
            run.ack(0);
            let mut rounds = 0;
            while run.state() == CRUISE {
                // Far less than the two seconds.
                run.ack_of(MS, run.delivered);
                rounds += 1;
            }
            seen[most - rounds] = true;
        }
        assert_eq!(seen, [true; 2]);
    }
}

#[test]
fn up_ends_when_the_rate_grows_no_more() {
    let mut run = in_up();
    run.in_flight = 125;
    run.rate = 1.25e6;
    run.round();
    // Growth: three more rounds.
    run.rate = 1.3e6;
    (0..2).for_each(|_| run.round());
    run.flags = AckSample::APP_LIMITED;
    (0..5).for_each(|_| run.round());
    assert_eq!(run.state(), UP);
    run.flags = 0;
    run.round();
    assert_eq!(run.state(), DOWN);
    // As fast and without bound: the queue goes first.
    run.in_flight = 131;
    run.ack(0);
    assert_eq!(run.state(), DOWN);
    run.in_flight = 130;
    run.ack(0);
    assert_eq!(run.state(), CRUISE);
    assert!(run.field("inflight_longterm").is_nan());
}

#[test]
fn up_ends_when_a_flight_loses_too_much_and_that_bounds_the_window() {
    let (mut run, longterm) = bounded();
    near(run.field("inflight_longterm"), longterm);
    run.acked = 50;
    (0..3).for_each(|_| run.ack(50 * MS));
    near(run.cwnd(), (longterm * 1000.0).floor() / 1000.0);
    // Room for others: 15 %.
    run.in_flight = 77;
    run.ack(MS);
    assert_eq!(run.state(), DOWN);
    run.in_flight = 76;
    run.ack(MS);
    assert_eq!(run.state(), CRUISE);
    near(run.cwnd(), (0.85 * longterm * 1000.0).floor() / 1000.0);
}

#[test]
fn what_a_probe_may_lose() {
    let after = |tx_in_flight, packets, flags| {
        let mut run = in_up();
        run.acked = 10;
        (0..10).for_each(|_| run.ack(10 * MS));
        run.in_flight = 130;
        run.tx_in_flight = tx_in_flight;
        run.lose(packets, Loss::EPISODE_START | flags);
        run.ack(0);
        (run.state(), run.field("inflight_longterm"))
    };
    // 2 % of the flight.
    assert_eq!(after(200, 4, 0).0, UP);
    // Four before crossed 2 % of the 199 already.
    assert_eq!(after(200, 5, 0), (DOWN, 199.0));
    // Not below 0.7 BDP, the cut of CUBIC.
    assert_eq!(after(50, 2, 0), (DOWN, 70.0));
    // An application that does not fill the pipe does not show how much is too much.
    let (state, longterm) = after(90, 2, Loss::APP_LIMITED);
    assert!(state == DOWN && longterm.is_nan());
    // 5/256 of 200 are 3.9.
    let mut run = in_cruise(Some("linux"), &UNDISTURBED, 0);
    probe(&mut run);
    run.in_flight = 130;
    run.tx_in_flight = 200;
    run.lose(4, 0);
    run.ack(0);
    assert_eq!(run.state(), DOWN);
}

#[test]
fn losses_of_a_probe_count_until_its_last_packet_is_answered() {
    let mut run = in_up();
    run.in_flight = 125;
    (0..3).for_each(|_| run.round());
    assert_eq!(run.state(), DOWN);
    run.lose(3, Loss::EPISODE_START);
    run.ack(0);
    // 99, and all that is left of 2 % has been lost before.
    assert_eq!((run.state(), run.field("inflight_longterm")), (DOWN, 99.0));
    // Only once.
    run.tx_in_flight = 80;
    run.lose(3, 0);
    run.ack(0);
    assert_eq!(run.field("inflight_longterm"), 99.0);
    let mut run = in_up();
    run.in_flight = 125;
    (0..4).for_each(|_| run.round());
    run.lose(3, Loss::EPISODE_START);
    run.ack(0);
    assert!(run.field("inflight_longterm").is_nan(), "a round after the probe");
}

#[test]
fn a_safe_flight_raises_the_bound() {
    let (mut run, longterm) = bounded();
    run.lost = 2;
    run.tx_in_flight = 95;
    run.ack(MS);
    near(run.field("inflight_longterm"), longterm);
    run.lost = 1;
    run.ack(MS);
    assert_eq!(run.field("inflight_longterm"), 95.0);
}

/// By one packet in the first round of a probe, by two in the second, by four in the third.
#[test]
fn the_bound_grows_twice_as_fast_each_round() {
    let (mut run, longterm) = bounded();
    run.in_flight = 50;
    run.acked = 50;
    (0..6).for_each(|_| run.ack(50 * MS));
    probe(&mut run);
    run.flags = AckSample::CWND_LIMITED;
    let mut bound = longterm;
    for growth in [1.0, 2.0, 4.0, 8.0] {
        near(run.cwnd(), (bound * 1000.0).floor() / 1000.0);
        run.acked = 1;
        // A window of ACKs, but for what is left over of the steps.
        (0..(bound.floor() as u64)).for_each(|_| run.ack(MS));
        run.round();
        bound += growth;
        near(run.field("inflight_longterm"), bound);
        assert_eq!(run.state(), UP);
    }
    // With the bound in the way a plateau says nothing; without use of it, it does not grow.
    run.flags = 0;
    (0..3).for_each(|_| run.round());
    assert_eq!(run.state(), DOWN);
    near(run.field("inflight_longterm"), bound);
}

/// §5.3.3.6.
#[test]
fn after_a_probe_that_went_too_high_the_next_is_short_and_the_one_after_it_follows_at_once() {
    let (mut run, _) = bounded();
    run.in_flight = 76;
    run.round();
    assert_eq!(run.state(), CRUISE);
    probe(&mut run);
    run.in_flight = 89;
    run.ack(MS);
    assert_eq!(run.state(), UP);
    run.in_flight = 90;
    run.ack(MS);
    assert_eq!(run.state(), DOWN, "as much as was too much");
    run.ack(MS);
    assert_eq!(run.state(), DOWN);
    run.round();
    assert_eq!(run.state(), REFILL, "it did no harm");
    run.round();
    run.ack(MS);
    assert_eq!(run.state(), UP, "now beyond");
    // If it did harm, the usual time passes.
    let (mut run, _) = bounded();
    run.in_flight = 76;
    run.round();
    probe(&mut run);
    run.in_flight = 95;
    run.ack(MS);
    run.lose(3, Loss::EPISODE_START);
    run.round();
    assert_eq!(run.state(), DOWN);
}

#[test]
fn losses_while_cruising_lower_rate_and_window_until_the_next_probe() {
    let mut run = in_cruise(None, &UNDISTURBED, 0);
    run.acked = 100;
    (0..3).for_each(|_| run.ack(100 * MS));
    assert_eq!(run.cwnd(), 300.0);
    run.acked = 1;
    run.rate = 0.5e6;
    run.round();
    assert_eq!(run.bandwidth(), 1e6, "the largest of two cycles");
    let lossy_round = |run: &mut Run| {
        run.lose(1, 0);
        run.ack(MS);
        run.round();
    };
    // What is delivered now, but 0.7 of before at least.
    lossy_round(&mut run);
    near(run.bandwidth(), 0.7e6);
    near(run.field("inflight_shortterm"), 210.0);
    assert_eq!((run.pacing(), run.cwnd(), run.state()), (693_000, 210.0, CRUISE));
    lossy_round(&mut run);
    near(run.bandwidth(), 0.5e6);
    near(run.field("inflight_shortterm"), 147.0);
    assert_eq!(run.field("max_bandwidth"), 8.0);
    // A round without losses changes nothing, a probe forgets it all.
    run.round();
    near(run.bandwidth(), 0.5e6);
    run.ack(3001 * MS);
    assert_eq!((run.state(), run.bandwidth()), (REFILL, 1e6));
    assert!(run.field("inflight_shortterm").is_nan() && run.field("bw_shortterm").is_nan());
    lossy_round(&mut run);
    assert_eq!((run.state(), run.bandwidth()), (UP, 1e6), "losses of probes are expected");
}

#[test]
fn the_bandwidth_is_the_best_of_two_cycles() {
    let mut run = in_cruise(None, &UNDISTURBED, 0);
    run.rate = 0.8e6;
    run.round();
    probe(&mut run);
    run.in_flight = 125;
    (0..3).for_each(|_| run.round());
    assert_eq!((run.state(), run.bandwidth()), (DOWN, 1e6));
    // A round after the probe a new cycle begins.
    run.round();
    run.ack(MS);
    assert_eq!(run.bandwidth(), 0.8e6);
    // A limited application counts only upwards.
    run.flags = AckSample::APP_LIMITED;
    run.rate = 0.5e6;
    run.ack(MS);
    assert_eq!(run.bandwidth(), 0.8e6);
    run.rate = 1.5e6;
    run.ack(MS);
    assert_eq!(run.bandwidth(), 1.5e6);
}

#[test]
fn aggregated_acks_widen_the_window_for_ten_rounds() {
    let window = |profile, packets: u64| {
        let mut run = in_cruise(profile, &UNDISTURBED, 0);
        run.acked = packets;
        (0..600 / packets).for_each(|_| run.ack(packets * MS));
        run
    };
    let mut run = window(None, 20);
    assert_eq!(run.cwnd(), 220.0);
    run.acked = 1;
    for _ in 0..10 {
        run.round();
        assert_eq!(run.cwnd(), 220.0);
    }
    run.round();
    assert_eq!(run.cwnd(), 201.0);
    // Linux: no more than 100 ms deliver.
    assert_eq!((window(None, 150).cwnd(), window(Some("linux"), 150).cwnd()), (350.0, 300.0));
}

#[test]
fn the_quantum_follows_the_rate() {
    let settings = [("startup_gain", 2.0), ("pacing_margin", 0.0), UNDISTURBED[0]];
    let quantum = |profile, rate: f64, rtt_ns: u64| {
        let mut run = begin(profile, &settings, 0);
        run.bbr.on_path_change(&PathInfo {
            now_ns: 0,
            packet_bytes: 1500,
            initial_window_packets: 10,
            seed: 0,
        });
        run.rtt_ns = rtt_ns;
        run.rate = 1.0;
        run.ack(run.rtt_ns);
        run.rate = rate / 2.0;
        run.ack(0);
        run.bbr.control().send_quantum_bytes
    };
    // An RTT of 1000 s: start-up begins at 20 bytes/s.
    let far = 1_000_000 * MS;
    let rows = [(1e6, 3000, 3000), (23e6, 3000, 3000), (80e6, 10_000, 9000), (8e9, 65_536, 64_500)];
    for (bps, draft, linux) in rows {
        assert_eq!(quantum(None, bps / 8.0, far), draft, "{bps}");
        assert_eq!(quantum(Some("linux"), bps / 8.0, far), linux, "{bps}");
    }
    // 2 ms: 64 KiB halved three times, and twice the first window per RTT, 10 MB/s, for 1/1024 s: 17,958 bytes.
    assert_eq!(quantum(Some("linux"), 1e6, 2 * MS), 16_500);
}

/// Half a BDP for 200 ms, when no RTT below the smallest was seen for five seconds.
#[test]
fn probe_rtt() {
    let mut run = in_cruise(None, &[], 0);
    run.acked = 50;
    (0..5).for_each(|_| run.ack(50 * MS));
    assert_eq!(run.cwnd(), 250.0);
    // First seen at 100 ms.
    let at_ms = run.now_ns / MS;
    run.acked = 1;
    run.ack((5100 - at_ms) * MS);
    assert_ne!(run.state(), PROBE_RTT, "exactly five seconds");
    run.ack(MS);
    assert_eq!((run.state(), run.cwnd(), run.gain()), (PROBE_RTT, 50.0, 1.0));
    // The flight shrinks; only then the 200 ms begin.
    run.in_flight = 51;
    run.ack(50 * MS);
    run.in_flight = 50;
    run.rate = 0.5e6;
    run.ack(50 * MS);
    let small_ns = run.now_ns;
    (0..19).for_each(|_| run.ack(10 * MS));
    run.ack_of(10 * MS, run.delivered);
    assert_eq!((run.now_ns, run.state()), (small_ns + 200 * MS, PROBE_RTT));
    assert_eq!(run.bandwidth(), 1e6, "half a BDP in flight tells nothing of the bandwidth");
    run.ack(1);
    // The window of before; nothing to drain, so it cruises.
    assert_eq!((run.state(), run.cwnd()), (CRUISE, 250.0));
    // The next one is five seconds after the end of this one.
    run.ack(5000 * MS);
    assert_ne!(run.state(), PROBE_RTT);
    run.ack(1);
    assert_eq!(run.state(), PROBE_RTT);
}

#[test]
fn probe_rtt_lasts_at_least_a_round_and_returns_to_startup_if_that_is_not_over() {
    let mut run = begin(None, &[("probe_rtt_duration", 0.0)], 0);
    run.round();
    run.ack(5001 * MS);
    assert_eq!(run.state(), PROBE_RTT);
    run.in_flight = 50;
    run.ack(MS);
    run.ack(300 * MS);
    assert_eq!(run.state(), PROBE_RTT, "no round has passed");
    run.round();
    assert_eq!(run.state(), STARTUP);
    // A flow that has just been idle has emptied the path already.
    let mut run = in_cruise(None, &[], 0);
    run.now_ns += 20_000 * MS;
    run.bbr.on_resume(&Resume { now_ns: run.now_ns, idle_ns: 20_000 * MS });
    run.ack(100 * MS);
    assert_ne!(run.state(), PROBE_RTT);
    // One that falls idle in ProbeRTT has done with it by the time it comes back.
    let mut run = in_cruise(None, &[], 0);
    run.ack(5001 * MS);
    run.in_flight = 50;
    run.ack(MS);
    assert_eq!(run.state(), PROBE_RTT);
    run.bbr.on_resume(&Resume { now_ns: run.now_ns + 201 * MS, idle_ns: 100 * MS });
    assert_eq!(run.state(), CRUISE);
}

/// Of the last ten seconds, which ProbeRTT lets it see again.
#[test]
fn the_smallest_rtt_is_forgotten_after_ten_seconds() {
    let mut run = in_cruise(None, &UNDISTURBED, 0);
    run.rtt_ns = 120 * MS;
    run.ack(MS);
    assert_eq!(run.field("min_rtt"), 100.0);
    let mut run = in_cruise(None, &[], 0);
    run.rtt_ns = 120 * MS;
    // The minimum of five seconds is renewed by the ACK that begins ProbeRTT, that of ten later.
    run.ack(5000 * MS);
    assert_eq!((run.state(), run.field("min_rtt")), (PROBE_RTT, 100.0));
    run.ack(4600 * MS);
    assert_eq!(run.field("min_rtt"), 100.0);
    run.ack(200 * MS);
    assert_eq!(run.field("min_rtt"), 120.0);
}

#[test]
fn after_idleness_it_restarts_at_the_bandwidth() {
    let mut run = in_up();
    assert_eq!(run.pacing(), 1_237_500);
    run.bbr.on_resume(&Resume { now_ns: run.now_ns, idle_ns: MS });
    assert_eq!(run.pacing(), 990_000);
}

/// One that cruises with a window of 250 packets.
fn full_window() -> Run {
    let mut run = in_cruise(None, &UNDISTURBED, 0);
    run.acked = 50;
    (0..5).for_each(|_| run.ack(50 * MS));
    run.acked = 1;
    assert_eq!(run.cwnd(), 250.0);
    run
}

#[test]
fn a_timeout_restarts_from_one_packet_until_it_is_repaired() {
    let mut run = full_window();
    for consecutive in 1..3 {
        run.time_out(20, consecutive);
        assert_eq!(run.cwnd(), 1.0);
    }
    run.ack(MS);
    assert_eq!(run.cwnd(), 4.0, "not less than four");
    (0..18).for_each(|_| run.ack(MS));
    assert_eq!(run.cwnd(), 22.0);
    run.ack(MS);
    assert_eq!(run.cwnd(), 250.0);
    // In a probe, the flight was too much.
    let mut run = in_up();
    run.time_out(120, 1);
    assert_eq!((run.state(), run.field("inflight_longterm")), (DOWN, 120.0));
}

#[test]
fn what_was_no_loss_is_undone() {
    // A round with losses while cruising.
    let mut run = full_window();
    run.rate = 0.1e6;
    run.round();
    run.flags = AckSample::IN_RECOVERY;
    run.lose(1, Loss::EPISODE_START);
    run.ack(MS);
    run.round();
    assert!(run.bandwidth() < 0.8e6 && run.cwnd() < 200.0);
    run.bbr.on_spurious_loss(&Undo::default());
    run.flags = 0;
    run.ack(MS);
    assert_eq!((run.bandwidth(), run.cwnd()), (1e6, 250.0));
    // A probe.
    let (mut run, _) = bounded();
    run.lose(1, 0);
    run.ack(MS);
    run.bbr.on_spurious_loss(&Undo::default());
    assert_eq!(run.state(), REFILL);
    assert!(run.field("inflight_longterm").is_nan());
    // Startup.
    let mut run = begin(None, &[], 0);
    run.in_flight = 150;
    run.round();
    run.flags = AckSample::IN_RECOVERY;
    run.lose(6, Loss::EPISODE_START);
    run.ack(MS);
    for _ in 0..5 {
        run.lose(1, 0);
        run.ack(MS);
    }
    run.lost = 11;
    run.round();
    assert_eq!(run.state(), DRAIN);
    run.bbr.on_spurious_loss(&Undo::default());
    assert_eq!(run.state(), STARTUP);
    run.round();
    assert_eq!(run.state(), STARTUP, "the pipe counts as full no more");
}

/// The window of before returns with the repair's end.
#[test]
fn the_end_of_a_repair_restores_the_window() {
    let mut run = full_window();
    run.flags = AckSample::IN_RECOVERY;
    run.lose(1, Loss::EPISODE_START);
    run.ack(MS);
    run.time_out(0, 1);
    run.flags = 0;
    run.ack(MS);
    assert_eq!(run.cwnd(), 250.0);
}
