use super::*;
use crate::driver::{Driver, MS, PACKET, close};
use crate::event::AckSample;

/// A CUBIC in congestion avoidance with window `w` and no history, driven by ACKs at a constant RTT.
fn cubic(profile: Option<&str>, window: f64, rtt_ns: u64) -> Driver {
    let mut run = Driver::avoiding(&SPEC, profile, window);
    run.rtt_ns = rtt_ns;
    run
}

/// One ACK of one packet after `gap_ns`.
fn ack(run: &mut Driver, gap_ns: u64) {
    run.ack_after(gap_ns, run.rtt_ns);
}

/// One ACK of one packet, a window of which fills an RTT.
fn ack_clocked(run: &mut Driver) {
    ack(run, (run.rtt_ns as f64 / run.cwnd()) as u64);
}

fn ack_until(run: &mut Driver, until_ns: u64) {
    while run.now_ns < until_ns {
        ack_clocked(run);
    }
}

/// An ACK at `now_ms` that reports a mark on a packet sent at `sent_ms`.
fn mark(run: &mut Driver, now_ms: u64, sent_ms: u64) {
    run.now_ns = now_ms * MS;
    let sample = run.sample(1, 0);
    run.send(AckSample { sent_ns: sent_ms * MS, ce_packets: 1, ..sample });
}

/// T2 and the K table: cwnd_epoch = 0.7 W_max.
#[test]
fn k_table() {
    let rows = [(10.0, 1.957), (100.0, 4.217), (1000.0, 9.086), (10_000.0, 19.574)];
    for (w_max, seconds) in rows {
        close(time_to_w_max(w_max, 0.7 * w_max, 0.4), seconds, 1e-3);
    }
}

/// T3.
#[test]
fn alpha_is_0_5294() {
    close(reno_alpha(0.7), 0.9 / 1.7, 1e-15);
    close(reno_alpha(0.7), 0.5294, 1e-4);
}

/// T2: W(K) = W_max and W(2K) = W_max + 0.3 W_max, by a stream of ACKs.
#[test]
fn the_window_follows_the_cubic() {
    let mut run = cubic(None, 1000.0, 100 * MS);
    run.lose();
    assert_eq!(run.cwnd(), 700.0);
    ack(&mut run, MS);
    let [_, w_max, k, _] = run.fields::<4>();
    assert_eq!(w_max, 1000.0);
    close(k, 9.086, 1e-3);
    let start_ns = run.now_ns;
    let k_ns = (k * 1e9) as u64;
    ack_until(&mut run, start_ns + k_ns);
    close(run.cwnd(), 1000.0, 1e-3);
    ack_until(&mut run, start_ns + 2 * k_ns);
    close(run.cwnd(), 1300.0, 1e-3);
}

/// T3: the second of two close losses sets W_max to 0.85 of the window.
#[test]
fn fast_convergence() {
    let mut run = cubic(None, 1000.0, 100 * MS);
    run.lose();
    assert_eq!(run.fields::<4>()[1], 1000.0);
    run.lose();
    close(run.fields::<4>()[1], 0.85 * 700.0, 1e-12);
    close(run.cwnd(), 490.0, 1e-5);
}

/// RFC 9438 §4.6: a mark as a loss; RFC 8511 (ABE) keeps 0.85. Once per window of data, and one packet is the floor.
#[test]
fn a_mark_counts_like_a_loss_or_less() {
    for (profile, first, second) in
        [(None, 700.0, 490.0), (Some("abe"), 850.0, 722.5), (Some("linux"), 700.0, 490.0)]
    {
        let mut run = cubic(profile, 1000.0, 100 * MS);
        mark(&mut run, 200, 100);
        assert_eq!(run.cwnd(), first);
        mark(&mut run, 250, 150);
        assert_eq!(run.cwnd(), first, "sent before the reaction");
        mark(&mut run, 350, 220);
        close(run.cwnd(), second, 1e-5);
        run.lose();
        close(run.cwnd(), 0.7 * second, 3e-3);
        (0..40).for_each(|n| {
            run.send(AckSample::default());
            mark(&mut run, 1000 + n * 100, 950 + n * 100);
        });
        assert_eq!(run.cwnd(), 1.0);
    }
}

#[test]
fn a_loss_within_the_episode_costs_nothing_and_an_undo_restores() {
    let mut run = cubic(None, 1000.0, 100 * MS);
    run.lose();
    run.lose_again(0);
    assert_eq!(run.cwnd(), 700.0);
    run.undo();
    assert_eq!(run.cwnd(), 1000.0);
}

#[test]
fn a_timeout_restarts_from_one_packet_with_k_zero() {
    let mut run = cubic(None, 1000.0, 100 * MS);
    run.time_out(1);
    run.time_out(2);
    assert_eq!(run.cwnd(), 1.0);
    close(run.fields::<4>()[0], 700.0 * PACKET as f64, 1e-12);
    for _ in 0..700 {
        ack(&mut run, MS / 10);
    }
    let [_, _, k, _] = run.fields::<4>();
    assert_eq!(k, 0.0);
    assert!(run.cwnd() >= 700.0 && run.cwnd() < 701.0, "{}", run.cwnd());
}

/// RFC 9438 section 5.1, eq. (6): a cycle from a loss at W_max to W_max again, N packets long, has the mean window
/// (C (3 + beta) / (4 (1 - beta)))^(1/4) (R N)^(3/4) = 1.054 (R N)^(3/4).
#[test]
fn response_function() {
    let mut run = cubic(None, 203.0, 100 * MS);
    run.lose();
    ack(&mut run, MS);
    let (start_ns, [_, _, k, _]) = (run.now_ns, run.fields::<4>());
    let mut packets = 0.0;
    while run.now_ns < start_ns + (k * 1e9) as u64 {
        ack_clocked(&mut run);
        packets += 1.0;
    }
    let mean = packets * 0.1 / k;
    close(mean, 1.054 * (0.1_f64 * packets).powf(0.75), 0.01);
    // p = 1e-4: 187.4 packets.
    close(packets, 1e4, 0.02);
    close(mean, 187.4, 0.02);
}

/// At an RTT of 10 ms and p = 1e-4 the cubic alone would have 33 packets: the window is Reno's, sqrt(3 / (2 p)) = 122.5.
#[test]
fn reno_friendly_region() {
    let mut run = cubic(None, 150.0, 10 * MS);
    let (mut packets, mut rtts) = (0.0, 0.0);
    for cycle in 0..60 {
        for _ in 0..10_000 {
            let cwnd = run.cwnd();
            if cycle >= 20 {
                packets += 1.0;
                rtts += 1.0 / cwnd;
            }
            ack_clocked(&mut run);
        }
        run.lose();
    }
    close(packets / rtts, 122.5, 0.03);
}

#[test]
fn linux_profile_keeps_717_of_1024_and_grows_5_percent_before_a_maximum() {
    let mut run = cubic(Some("linux"), 100.0, 100 * MS);
    // No maximum known: at least 5 % of a packet per packet acknowledged.
    for _ in 0..100 {
        ack(&mut run, MS / 100);
    }
    close(run.cwnd(), 105.0, 1e-3);
    run.lose();
    // 73.5, in whole packets.
    assert_eq!(run.cwnd(), 73.0);
    // K = cbrt(32 / 0.4) = 4.309 s. The smallest RTT is added to the time, so the first ACK is 4.209 s before W_max, 29.8
    // packets below it: the target is 105 - 29, three above the window, one packet for every 73 / 3 = 24 acknowledged.
    (0..23).for_each(|_| ack(&mut run, MS / 100));
    close(run.fields::<4>()[2], 4.309, 1e-3);
    assert_eq!(run.cwnd(), 73.0);
    ack(&mut run, MS / 100);
    assert_eq!(run.cwnd(), 74.0);
}

/// In whole packets the window rests on W_max from cbrt(1 / 0.4) = 1.357 s before K to 1.357 s after,
/// less the RTT of 40 ms by which it looks ahead.
#[test]
fn linux_rests_on_the_maximum() {
    let mut run = cubic(Some("ns-3"), 418.0, 40 * MS);
    run.lose();
    assert_eq!(run.cwnd(), 292.0);
    ack(&mut run, MS);
    let (start_ns, [_, w_max, k, _]) = (run.now_ns, run.fields::<4>());
    assert_eq!(w_max, 418.0);
    close(k, 6.804, 1e-3); // cbrt(126 / 0.4)
    let mut at = |seconds: f64| {
        ack_until(&mut run, start_ns + (seconds * 1e9) as u64);
        run.cwnd()
    };
    assert_eq!(at(k - 1.357 - 0.08), 417.0);
    assert_eq!(at(k - 1.357), 418.0);
    assert_eq!(at(k + 1.357 - 0.08), 418.0);
    assert_eq!(at(k + 1.357), 419.0);
}

#[test]
fn time_without_a_full_window_does_not_count() {
    let mut run = cubic(None, 1000.0, 100 * MS);
    run.lose();
    ack(&mut run, MS);
    let before = run.cwnd();
    // 30 s of ACKs that the window did not limit, then one that it did.
    for _ in 0..300 {
        run.now_ns += 100 * MS;
        run.send(AckSample { flags: 0, ..run.sample(1, 100 * MS) });
    }
    ack(&mut run, MS);
    assert!(run.cwnd() - before < 0.1, "{} -> {}", before, run.cwnd());
}
