use super::super::bbr_driver::{MS, Run};
use super::*;

const STARTUP: f64 = 0.0;
const DRAIN: f64 = 1.0;
const PROBE_BW: f64 = 2.0;
const PROBE_RTT: f64 = 3.0;

fn begin(profile: Option<&str>, settings: &[(&str, f64)], seed: u64) -> Run {
    Run::new(&SPEC, profile, settings, seed)
}

/// One that has found the pipe full at 1 MB/s and has just entered ProbeBW.
fn in_probe_bw(profile: Option<&str>, settings: &[(&str, f64)], seed: u64) -> Run {
    let mut run = begin(profile, settings, seed);
    run.in_flight = 101 + 6;
    (0..4).for_each(|_| run.round());
    assert_eq!(run.state(), DRAIN);
    run.in_flight = 100;
    run.ack(0);
    assert_eq!(run.state(), PROBE_BW);
    run
}

/// T18.
#[test]
fn gains() {
    let gain = SPEC.params(None).unwrap().get("startup_gain");
    assert!((gain - 2.885).abs() < 5e-4 && (1.0 / gain - 0.3466).abs() < 5e-5);
    assert_eq!(CYCLE_GAINS.iter().sum::<f64>() / 8.0, 1.0);
}

#[test]
fn starts_with_its_window_within_a_millisecond_then_within_an_rtt() {
    let mut run = begin(None, &[], 0);
    // 2.88539 * 10 packets of 1000 bytes in 1 ms.
    assert_eq!((run.pacing(), run.cwnd()), (28_853_900, 10.0));
    run.rate = 1e3;
    run.ack(100 * MS);
    // In 100 ms.
    assert_eq!((run.pacing(), run.cwnd()), (288_539, 11.0));
    // Startup never slows down: 2.88539 * 50 kB/s is less.
    run.rate = 50e3;
    run.ack(0);
    assert_eq!(run.pacing(), 288_539);
    run.rate = 1e6;
    run.ack(0);
    assert_eq!(run.pacing(), 2_885_390);
}

#[test]
fn the_pipe_is_full_after_three_rounds_without_a_quarter_more() {
    let mut run = begin(None, &[], 0);
    run.in_flight = 10_000;
    // 125 is exactly a quarter more than 100; then 20 % more in all over three rounds.
    for rate in [100e3, 125e3, 130e3, 140e3] {
        run.rate = rate;
        run.round();
        run.ack(0);
        assert_eq!(run.state(), STARTUP);
    }
    // An application that does not fill the pipe proves nothing.
    run.flags = AckSample::APP_LIMITED;
    (0..5).for_each(|_| run.round());
    assert_eq!(run.state(), STARTUP);
    run.flags = 0;
    run.rate = 150e3;
    run.round();
    assert_eq!(run.state(), DRAIN);
    // 150 kB/s / 2.88539.
    assert_eq!(run.pacing(), 51_986);
    // BDP 15 packets; the quantum at 0.42 Mbit/s is one packet, so 18 may be in flight.
    run.in_flight = 19;
    run.ack(0);
    assert_eq!(run.state(), DRAIN);
    run.in_flight = 18;
    run.ack(0);
    assert_eq!(run.state(), PROBE_BW);
}

#[test]
fn the_cycle_runs_its_phases() {
    let mut run = in_probe_bw(None, &[], 1);
    // To the phase that probes.
    while run.gain() != 1.25 {
        run.ack(101 * MS);
    }
    assert_eq!(run.pacing(), 1_250_000);
    // Not before an RTprop, nor before 1.25 BDP and 6 packets are in flight, or a loss shows that they cannot be.
    run.in_flight = 200;
    run.ack(100 * MS);
    assert_eq!(run.gain(), 1.25);
    run.in_flight = 129;
    run.ack(MS);
    assert_eq!(run.gain(), 1.25);
    run.in_flight = 130;
    run.ack(MS);
    assert_eq!((run.gain(), run.pacing()), (0.75, 750_000));
    // Until an RTprop has passed or the queue is gone: one BDP and 6 packets.
    run.in_flight = 106;
    run.ack(MS);
    assert_eq!(run.gain(), 0.75);
    run.in_flight = 105;
    run.ack(MS);
    assert_eq!((run.gain(), run.pacing()), (1.0, 1_000_000));
    let gains: Vec<f64> = (0..8)
        .map(|_| {
            run.ack(101 * MS);
            run.gain()
        })
        .collect();
    // 105 in flight keep the probe going beyond its RTprop.
    assert_eq!(gains, [1.0, 1.0, 1.0, 1.0, 1.0, 1.25, 1.25, 1.25]);
    run.lose(1, 0);
    run.ack(MS);
    assert_eq!(run.gain(), 0.75);
}

#[test]
fn the_first_phase_is_any_but_the_one_that_drains() {
    let mut after = [0_u32; 8];
    for seed in 0..700 {
        let mut run = in_probe_bw(None, &[], seed);
        // How many phases until the probe: 0 for the probe itself, 7 for the phase after the probe.
        let mut phases = 0;
        while run.gain() != 1.25 {
            assert_eq!(run.gain(), 1.0);
            run.ack(101 * MS);
            phases += 1;
        }
        after[phases] += 1;
    }
    assert_eq!(after[7], 0);
    assert!(after[..7].iter().all(|n| (60..140).contains(n)), "{after:?}");
}

#[test]
fn the_window_is_two_bdp_and_headroom() {
    let window = |profile, settings: &[(&str, f64)], probing| {
        let mut run = in_probe_bw(profile, settings, 3);
        (run.acked, run.in_flight) = (5, 200);
        for _ in 0..60 {
            run.ack(5 * MS);
        }
        while (run.gain() == 1.25) != probing {
            run.ack(101 * MS);
        }
        run.ack(5 * MS);
        run.cwnd()
    };
    // 8 Mbit/s: a quantum of two packets.
    assert_eq!(window(None, &[], false), 206.0);
    assert_eq!(window(None, &[("cwnd_gain", 3.0)], false), 306.0);
    // An even number of packets, two more while probing.
    let plain = [("aggregation", 0.0)];
    assert_eq!(window(Some("linux"), &plain, false), 206.0);
    assert_eq!(window(Some("linux"), &plain, true), 208.0);
    assert_eq!(window(Some("ns-3"), &plain, false), 203.0);
    assert_eq!(window(Some("ns-3"), &plain, true), 205.0);
    // Five packets told of at once, when the bandwidth accounts for all of them only by the next ACK.
    assert_eq!(window(Some("ns-3"), &[], false), 208.0);
}

#[test]
fn the_quantum_follows_the_rate() {
    let quantum = |profile, rate: f64| {
        let settings = [("startup_gain", 2.0), ("pacing_margin", 0.0), ("min_rtt_window", 1000.0)];
        let mut run = begin(profile, &settings, 0);
        run.bbr.on_path_change(&PathInfo {
            now_ns: 0,
            packet_bytes: 1500,
            initial_window_packets: 10,
            seed: 0,
        });
        // An RTT of 1000 s: start-up begins at 20 bytes/s.
        (run.rate, run.rtt_ns) = (1.0, 1_000_000 * MS);
        run.ack(run.rtt_ns);
        run.rate = rate / 2.0;
        run.ack(0);
        run.bbr.control().send_quantum_bytes
    };
    let rows = [(1.1e6, 1500, 1500), (1.3e6, 3000, 3000), (23e6, 3000, 3000), (80e6, 10_000, 9000)];
    for (bps, draft, linux) in rows {
        assert_eq!(quantum(None, bps / 8.0), draft, "{bps}");
        assert_eq!(quantum(Some("linux"), bps / 8.0), linux, "{bps}");
        assert_eq!(quantum(Some("ns-3"), bps / 8.0), 1500);
    }
    assert_eq!((quantum(None, 1e9), quantum(Some("linux"), 1e9)), (65_536, 64_500));
}

#[test]
fn the_bandwidth_is_the_best_of_ten_rounds() {
    let mut run = in_probe_bw(None, &[], 0);
    run.rate = 2e6;
    run.round();
    run.rate = 1e6;
    (0..10).for_each(|_| run.round());
    assert_eq!(run.bandwidth(), 2e6);
    run.round();
    assert_eq!(run.bandwidth(), 1e6);
    // A limited application counts only upwards.
    run.flags = AckSample::APP_LIMITED;
    run.rate = 0.5e6;
    (0..30).for_each(|_| run.round());
    assert_eq!(run.bandwidth(), 1e6);
    run.rate = 1.5e6;
    run.round();
    assert_eq!(run.bandwidth(), 1.5e6);
}

/// T18: four packets for 200 ms, ten seconds after the minimum was seen last.
#[test]
fn probe_rtt() {
    let mut run = in_probe_bw(None, &[], 0);
    run.acked = 100;
    run.ack(0);
    run.ack(0);
    let (window, seen_ns) = (run.cwnd(), run.now_ns);
    assert_eq!(window, 206.0);
    run.rtt_ns = 110 * MS;
    run.ack(10_000 * MS);
    assert_eq!((run.state(), run.field("min_rtt")), (PROBE_BW, 100.0), "exactly ten seconds");
    run.acked = 1;
    run.ack(MS);
    assert_eq!((run.state(), run.cwnd(), run.gain()), (PROBE_RTT, 4.0, 1.0));
    assert_eq!(run.field("min_rtt"), 110.0, "what is seen then is the new minimum");
    // The path empties; only then the 200 ms begin.
    run.in_flight = 5;
    run.ack(50 * MS);
    run.in_flight = 4;
    run.rate = 40e3;
    run.rtt_ns = 90 * MS;
    run.ack(50 * MS);
    let emptied_ns = run.now_ns;
    assert_eq!((run.state(), run.field("min_rtt")), (PROBE_RTT, 90.0));
    // Rates of four packets in flight tell nothing of the bandwidth, however many rounds they last.
    (0..20).for_each(|_| run.ack_of(10 * MS, run.delivered));
    assert_eq!((run.now_ns, run.state(), run.cwnd()), (emptied_ns + 200 * MS, PROBE_RTT, 4.0));
    assert_eq!(run.bandwidth(), 1e6);
    run.ack(1);
    assert_eq!(run.state(), PROBE_BW);
    // The window of before, less what the shorter RTprop asks: 2 * 90 + 6.
    assert_eq!(run.cwnd(), 186.0);
    // The next one is ten seconds after the end of this one.
    run.rtt_ns = 95 * MS;
    run.ack(9_990 * MS);
    assert_eq!(run.state(), PROBE_BW);
    run.ack(11 * MS);
    assert_eq!(run.state(), PROBE_RTT);
    assert!(run.now_ns > seen_ns + 20_000 * MS);
}

/// A path without a queue shows the same RTT again and again. That postpones ProbeRTT in the draft, not in Linux since 5.11.
#[test]
fn an_equal_rtt_postpones_probe_rtt_in_the_draft() {
    for (profile, state) in [(None, PROBE_BW), (Some("linux"), PROBE_RTT)] {
        let mut run = in_probe_bw(profile, &[], 0);
        (0..11).for_each(|_| run.ack(999 * MS));
        assert_eq!(run.state(), state, "{profile:?}");
    }
}

#[test]
fn probe_rtt_lasts_at_least_a_round() {
    let mut run = in_probe_bw(None, &[("probe_rtt_duration", 0.0)], 0);
    run.rtt_ns = 110 * MS;
    run.in_flight = 4;
    run.ack(10_001 * MS);
    run.ack(300 * MS);
    assert_eq!(run.state(), PROBE_RTT, "no round has passed");
    run.round();
    assert_eq!(run.state(), PROBE_BW);
}

#[test]
fn idleness_is_no_probe_and_restarts_at_the_bandwidth() {
    let mut run = in_probe_bw(None, &[], 0);
    while run.gain() != 1.25 {
        run.ack(101 * MS);
    }
    assert_eq!(run.pacing(), 1_250_000);
    run.now_ns += 20_000 * MS;
    let idle_ns = 20_000 * MS;
    run.bbr.on_resume(&Resume { now_ns: run.now_ns, idle_ns });
    assert_eq!(run.pacing(), 1_000_000);
    run.ack(100 * MS);
    assert_eq!(run.state(), PROBE_BW);
}

/// A probing BBR with its full window of 206 packets, all in flight.
fn full_window() -> Run {
    let mut run = in_probe_bw(None, &[], 0);
    run.acked = 100;
    run.ack(0);
    run.ack(0);
    (run.acked, run.in_flight) = (2, 206);
    assert_eq!(run.cwnd(), 206.0);
    run
}

#[test]
fn losses_conserve_packets_for_a_round_and_cost_nothing_after() {
    let mut run = full_window();
    run.lose(10, Loss::EPISODE_START);
    assert_eq!(run.cwnd(), 197.0, "in flight and one");
    run.flags = AckSample::IN_RECOVERY;
    run.in_flight -= 2;
    run.ack(MS);
    assert_eq!(run.cwnd(), 196.0, "what has arrived may leave");
    run.lose(30, 0);
    run.in_flight -= 2;
    run.ack(MS);
    assert_eq!(run.cwnd(), 166.0, "30 lost; 164 in flight and 2");
    // The next round grows by what arrives.
    run.round();
    assert_eq!(run.cwnd(), 168.0);
    run.flags = 0;
    run.ack(MS);
    assert_eq!(run.cwnd(), 206.0);
    assert_eq!(run.bandwidth(), 1e6);
}

#[test]
fn a_timeout_restarts_from_one_packet_until_it_is_repaired() {
    let mut run = full_window();
    for consecutive in 1..3 {
        run.time_out(20, consecutive);
        assert_eq!(run.cwnd(), 1.0);
    }
    run.ack(MS);
    assert_eq!(run.cwnd(), 4.0, "not less than four outside fast recovery");
    (0..8).for_each(|_| run.ack(MS));
    assert_eq!(run.cwnd(), 20.0);
    run.ack(MS);
    assert_eq!(run.cwnd(), 206.0);
    run.lose(1, Loss::EPISODE_START);
    run.bbr.on_spurious_loss(&Undo::default());
    assert_eq!(run.cwnd(), 206.0);
}
