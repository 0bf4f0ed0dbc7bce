use super::*;

/// A window of 10 packets.
fn window(ssthresh: f64, whole: bool) -> RenoWindow {
    let path = PathInfo { now_ns: 0, packet_bytes: 1000, initial_window_packets: 10, seed: 0 };
    RenoWindow::new(0.0, ssthresh, &path).in_whole_packets(whole)
}

/// An ACK that may open the window.
fn ack(acked_packets: u32) -> AckSample {
    let flags = AckSample::CWND_LIMITED | AckSample::CUMULATIVE;
    AckSample { acked_packets, flags, ..AckSample::default() }
}

#[test]
fn slow_start_leaves_the_rest_to_avoidance() {
    let mut window = window(15.0, false);
    assert!(window.in_slow_start());
    assert_eq!(window.slow_start(&ack(4)), 0.0);
    assert_eq!(window.slow_start(&ack(4)), 3.0);
    assert_eq!((window.cwnd, window.in_slow_start()), (15.0, false));
    assert_eq!(window.slow_start(&ack(40)), 15.0, "at most a window");
}

#[test]
fn what_crosses_the_threshold_counts_above_it() {
    for (whole, cwnd) in [(false, 12.0 + 6.0 / 12.0), (true, 12.0)] {
        let mut window = window(12.0, whole);
        window.grow_as_reno(&ack(8));
        assert_eq!(window.cwnd, cwnd);
        // In whole packets six of the twelve are there.
        window.grow_as_reno(&ack(6));
        assert_eq!(window.cwnd.floor(), if whole { 13.0 } else { 12.0 });
    }
}

/// Linux: credit gathered while a packet cost 100 is worth one when it costs 10, and what comes then is counted anew.
#[test]
fn dear_credit_is_worth_one_packet() {
    let mut window = window(10.0, true);
    window.set(100.0);
    window.avoid(99.0, 100.0);
    assert_eq!(window.cwnd, 100.0);
    window.avoid(0.0, 10.0);
    assert_eq!(window.cwnd, 100.0, "nothing new");
    window.avoid(2.0, 10.0);
    assert_eq!(window.cwnd, 101.0);
    window.avoid(8.0, 10.0);
    assert_eq!(window.cwnd, 102.0);
    window.avoid(25.0, 10.0);
    assert_eq!(window.cwnd, 104.0);
}

#[test]
fn one_mark_per_window_and_none_right_after_a_reduction() {
    let mut window = window(10.0, true);
    let marked =
        |now_ns, sent_ns| AckSample { now_ns, sent_ns, ce_packets: 1, ..AckSample::default() };
    assert!(window.is_marked(&marked(100, 50)));
    assert!(!window.is_marked(&marked(140, 90)));
    assert!(window.is_marked(&marked(160, 110)));
    window.reduce(5.0, 200);
    assert!(!window.is_marked(&marked(210, 170)));
    window.on_rto(300);
    assert!(!window.is_marked(&marked(310, 250)));
}

#[test]
fn a_repair_ends_once() {
    let mut window = window(10.0, true);
    let repairing = AckSample { flags: AckSample::IN_RECOVERY, ..ack(1) };
    assert_eq!(window.on_ack(&repairing), Repair::None, "no loss has been told of");
    window.on_loss();
    let steps = [repairing, repairing, ack(1), ack(1)].map(|ack| window.on_ack(&ack));
    assert_eq!(steps, [Repair::UnderWay, Repair::UnderWay, Repair::Over, Repair::None]);
}

#[test]
fn a_reduction_never_raises_the_window_and_can_be_undone() {
    let mut window = window(12.0, true);
    window.reduce(30.0, 0);
    assert_eq!((window.cwnd, window.ssthresh), (10.0, 30.0));
    window.reduce(0.5, 0);
    assert_eq!((window.cwnd, window.ssthresh), (2.0, 2.0), "two packets are the floor");
    assert!(window.undo());
    assert_eq!((window.cwnd, window.ssthresh), (10.0, 30.0));
    assert!(!window.undo());
}

#[test]
fn silence_restarts_from_the_initial_window() {
    let mut window = window(10.0, false);
    window.grow(10.0);
    let resume = |idle_ns| Resume { now_ns: 0, idle_ns };
    assert!(!window.on_resume(&resume(SECOND_NS)));
    assert_eq!(window.cwnd, 20.0);
    assert!(window.on_resume(&resume(SECOND_NS + 1)));
    assert_eq!(window.cwnd, 10.0);
    window.lower_to(8.0);
    assert_eq!((window.cwnd, window.ssthresh), (8.0, 8.0));
}

#[test]
fn at_most_the_window_was_in_flight() {
    assert_eq!(window(10.0, false).half_of_flight(6_000), 3.0);
    assert_eq!(window(10.0, false).half_of_flight(60_000), 5.0);
}
