#![allow(clippy::field_reassign_with_default)] // `SendStamp` has a private field

use super::*;
use proptest::prelude::*;
use std::collections::BTreeSet;

fn sent(n: u64) -> Scoreboard {
    let mut board = Scoreboard::new();
    for seq in 0..n {
        let mut stamp = SendStamp::default();
        stamp.sent_ns = seq;
        board.on_send(seq, stamp);
    }
    board
}

fn ack(cumulative: u64, block: (u64, u64), trigger: u64) -> TcpAck {
    TcpAck { cumulative, block, trigger, copy: 1 }
}

#[test]
fn a_cumulative_ack_delivers_once() {
    let mut board = sent(10);
    let got = board.on_ack(&ack(4, (0, 0), 3));
    assert_eq!((got.packets, got.cumulative, board.in_flight()), (4, true, 6));
    let newest_ns = got.newest.and_then(|seq| board.stamp(seq)).map(|stamp| stamp.sent_ns);
    assert_eq!((got.oldest_sent_ns, newest_ns), (Some(0), Some(3)));
    assert_eq!(board.on_ack(&ack(4, (0, 0), 3)).packets, 0);
}

#[test]
fn three_segments_above_a_hole_make_it_lost() {
    let mut board = sent(10);
    for end in 2..=3 {
        board.on_ack(&ack(0, (1, end), end - 1));
        assert_eq!(board.detect_losses().packets, 0, "after {} SACKs", end - 1);
    }
    board.on_ack(&ack(0, (1, 4), 3));
    let lost = board.detect_losses();
    assert_eq!((lost.packets, lost.newest_sent_ns), (1, 0));
    assert_eq!({ board.newest_lost().sent_ns }, 0);
    assert_eq!(board.next_to_resend(), Some(0));
    assert_eq!(board.in_flight(), 10 - 3 - 1);
}

#[test]
fn a_lost_retransmission_is_found_by_later_deliveries() {
    let mut board = sent(10);
    board.on_ack(&ack(0, (1, 4), 3));
    board.detect_losses();
    assert_eq!(board.on_send(0, SendStamp::default()), 2);
    // Transmissions 12, 13, 14 are segments 10, 11, 12, sent after the retransmission (11).
    (10..13).for_each(|seq| {
        board.on_send(seq, SendStamp::default());
    });
    board.on_ack(&ack(0, (1, 12), 11));
    assert_eq!(board.detect_losses().packets, 0);
    board.on_ack(&ack(0, (1, 13), 12));
    assert_eq!(board.detect_losses().packets, 1);
    assert_eq!(board.next_to_resend(), Some(0));
}

#[test]
fn karn_gives_no_sample_for_an_unknown_copy() {
    let mut board = sent(5);
    board.on_ack(&ack(0, (1, 4), 3));
    board.detect_losses();
    board.on_send(0, SendStamp::default());
    let first_copy = board.on_ack(&TcpAck { cumulative: 4, block: (0, 0), trigger: 0, copy: 1 });
    assert!(first_copy.newest.is_none());
}

#[test]
fn a_timeout_loses_everything_but_what_was_sacked() {
    let mut board = sent(6);
    board.on_ack(&ack(0, (2, 3), 2));
    assert_eq!(board.on_rto().packets, 5);
    assert_eq!(board.in_flight(), 0);
    let mut resent = Vec::new();
    while let Some(seq) = board.next_to_resend() {
        board.on_send(seq, SendStamp::default());
        resent.push(seq);
    }
    assert_eq!(resent, [0, 1, 3, 4, 5]);
}

proptest! {
    /// Against a set of delivered numbers: packets are delivered once, `in_flight` is what is left, nothing above the third
    /// highest SACK is declared lost, everything below it is.
    #[test]
    fn agrees_with_a_set(n in 1u64..60, arrivals in prop::collection::vec(any::<prop::sample::Index>(), 1..80)) {
        let mut board = sent(n);
        let mut received = BTreeSet::new();
        let (mut delivered, mut lost) = (0, 0);
        for index in arrivals {
            let trigger = index.index(n as usize) as u64;
            received.insert(trigger);
            let cumulative = (0..).find(|s| !received.contains(s)).unwrap();
            let block = if trigger < cumulative { (0, 0) } else {
                let start = (0..=trigger).rev().take_while(|s| received.contains(s)).last().unwrap();
                (start, (trigger..).find(|s| !received.contains(s)).unwrap())
            };
            delivered += board.on_ack(&ack(cumulative, block, trigger)).packets as usize;
            lost += board.detect_losses().packets as usize;
            prop_assert_eq!(delivered, received.len());
            let above = |s: u64| received.range(s.max(cumulative) + 1..).count();
            let expected_lost = (cumulative..n).filter(|s| !received.contains(s) && above(*s) >= 3).count();
            let still_lost = (0..n).filter(|s| board.segment(*s).is_some_and(|g| g.is_lost() && !g.is_sacked())).count();
            prop_assert_eq!(still_lost, expected_lost);
            prop_assert!(lost >= still_lost);
            prop_assert_eq!(board.in_flight() as usize, n as usize - received.len() - still_lost);
        }
    }
}
