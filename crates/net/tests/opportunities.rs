//! Trace service against hand-worked examples of the semantics of mahimahi's `mm-link`.

use std::sync::Arc;

use paceline_net::{
    Backlog, Buffer, Capacity, DropReason, Link, LinkSpec, PS_PER_MS, PS_PER_US, Picos, Trace,
    Verdict,
};

fn link(opportunities_ms: &[u32], once: bool, buffer: Buffer) -> Link {
    let trace = Trace::from_opportunities(opportunities_ms.to_vec()).expect("valid");
    let spec = LinkSpec {
        capacity: Capacity::Trace { trace: Arc::new(trace), once },
        buffer,
        ..LinkSpec::default()
    };
    Link::new(spec, 0, 0)
}

fn endless(opportunities_ms: &[u32]) -> Link {
    link(opportunities_ms, false, Buffer::default())
}

/// Departure of a packet that arrives at `at_ms`, ms.
fn departs_ms(link: &mut Link, at_ms: u64, bytes: u32) -> u64 {
    match link.enqueue(at_ms * PS_PER_MS, bytes) {
        Verdict::Pass { departs, arrives } => {
            assert_eq!(departs, arrives);
            assert_eq!(departs % PS_PER_MS, 0);
            departs / PS_PER_MS
        }
        Verdict::Drop(reason) => panic!("dropped: {reason:?}"),
    }
}

#[test]
fn one_packet_per_opportunity() {
    let mut link = endless(&[2, 5, 5, 9]);
    assert_eq!([0, 0, 0, 0].map(|at| departs_ms(&mut link, at, 1504)), [2, 5, 5, 9]);
}

#[test]
fn a_large_packet_carries_over() {
    // 2000 bytes take opportunity 2 and 496 bytes of the one at 5; the next packet has its first 1008 bytes served at 5
    // and the other 496 at 9.
    let mut link = endless(&[2, 5, 9, 20]);
    assert_eq!(departs_ms(&mut link, 0, 2000), 5);
    assert_eq!(departs_ms(&mut link, 0, 1504), 9);
    // 1008 bytes are left at 9: just enough.
    assert_eq!(departs_ms(&mut link, 0, 1008), 9);
    assert_eq!(departs_ms(&mut link, 0, 1), 20);
}

#[test]
fn a_jumbo_packet_takes_several_opportunities() {
    // 9000 bytes = 5 opportunities and 1480 bytes of the sixth.
    let mut link = endless(&[1, 2, 3, 4, 5, 6, 7]);
    assert_eq!(departs_ms(&mut link, 0, 9000), 6);
    assert_eq!(departs_ms(&mut link, 0, 24), 6);
    assert_eq!(departs_ms(&mut link, 0, 24), 7);
}

#[test]
fn eighteen_acks_share_an_opportunity() {
    // 18 x 80 = 1440 bytes; the nineteenth has 64 of its bytes served at 3 and departs at 8.
    let mut link = endless(&[3, 8]);
    for _ in 0..18 {
        assert_eq!(departs_ms(&mut link, 0, 80), 3);
    }
    assert_eq!(departs_ms(&mut link, 0, 80), 8);
}

#[test]
fn no_packet_uses_an_opportunity_of_its_own_millisecond() {
    let mut link = endless(&[1, 2, 3, 10]);
    assert_eq!(departs_ms(&mut link, 1, 100), 2);
    // Anywhere inside ms 2 counts as ms 2.
    let verdict = link.enqueue(2 * PS_PER_MS + 999_999_999, 100);
    assert_eq!(verdict, Verdict::Pass { departs: 3 * PS_PER_MS, arrives: 3 * PS_PER_MS });
    // And at time 0 the opportunity at 0 is gone.
    assert_eq!(departs_ms(&mut endless(&[0, 4]), 0, 100), 4);
}

#[test]
fn what_is_unused_is_lost() {
    let mut link = endless(&[2, 6, 9]);
    assert_eq!(departs_ms(&mut link, 0, 500), 2);
    // It arrives in the ms of that departure: the 1004 bytes left are lost, although the opportunity is of the same ms.
    assert_eq!(departs_ms(&mut link, 2, 1504), 6);
    // It arrives while another waits for 9, so they share.
    assert_eq!(departs_ms(&mut link, 7, 700), 9);
    assert_eq!(departs_ms(&mut link, 8, 804), 9);
}

#[test]
fn the_trace_repeats_after_its_last_time() {
    // Period 4; opportunities at 1 3 4 | 5 7 8 | 9 11 12 …
    let mut link = endless(&[1, 3, 4]);
    let departures: Vec<u64> = (0..8).map(|_| departs_ms(&mut link, 0, 1504)).collect();
    assert_eq!(departures, [1, 3, 4, 5, 7, 8, 9, 11]);
    assert_eq!(departs_ms(&mut link, 4_000_000_002, 1), 4_000_000_003);
    assert_eq!(departs_ms(&mut link, 4_000_000_004, 1), 4_000_000_005);
}

#[test]
fn a_first_line_of_zero_joins_the_end_of_the_cycle_before() {
    // Opportunities at 0 | 3 3 | 6 6 | …: two at every multiple of 3 except 0.
    let mut link = endless(&[0, 3]);
    let departures: Vec<u64> = (0..5).map(|_| departs_ms(&mut link, 0, 1504)).collect();
    assert_eq!(departures, [3, 3, 6, 6, 9]);
    assert_eq!(departs_ms(&mut link, 9, 1504), 12);
    assert_eq!(departs_ms(&mut link, 11, 1504), 12);
}

#[test]
fn single_line_trace_is_12_mbit_per_s() {
    let mut link = endless(&[1]);
    for k in 1..10_000 {
        assert_eq!(departs_ms(&mut link, 0, 1504), k);
    }
    // Idle for a day, then busy again.
    assert_eq!(departs_ms(&mut link, 86_400_000, 4512), 86_400_003);
}

#[test]
fn once_drops_what_can_never_be_served() {
    let mut link = link(&[2, 5], true, Buffer::default());
    assert_eq!(departs_ms(&mut link, 0, 1504), 2);
    assert_eq!(departs_ms(&mut link, 0, 504), 5);
    // 1000 bytes are left at 5; a packet of 1001 never finishes, and blocks a smaller one behind it.
    assert_eq!(link.enqueue(0, 1001), Verdict::Drop(DropReason::Exhausted));
    assert_eq!(link.enqueue(0, 10), Verdict::Drop(DropReason::Exhausted));
    assert_eq!(link.backlog(0), Backlog { packets: 2, bytes: 2008 });
}

#[test]
fn once_is_dead_after_the_last_opportunity() {
    let mut link = link(&[2, 5], true, Buffer::default());
    assert_eq!(departs_ms(&mut link, 4, 1), 5);
    assert_eq!(link.enqueue(5 * PS_PER_MS, 1), Verdict::Drop(DropReason::Exhausted));
    assert_eq!(link.enqueue(Picos::MAX, 1), Verdict::Drop(DropReason::Exhausted));
}

#[test]
fn a_packet_leaves_the_queue_when_its_first_byte_is_served() {
    let buffer = Buffer { packets: Some(2), ..Buffer::default() };
    let mut link = link(&[2, 5, 9], false, buffer);
    assert_eq!(departs_ms(&mut link, 0, 3000), 5);
    assert_eq!(departs_ms(&mut link, 0, 1504), 9);
    assert_eq!(link.enqueue(0, 1), Verdict::Drop(DropReason::Buffer));
    assert_eq!(link.backlog(2 * PS_PER_MS - 1), Backlog { packets: 2, bytes: 4504 });
    // At 2 the first is in service though it departs at 5; one place is free.
    assert_eq!(link.backlog(2 * PS_PER_MS), Backlog { packets: 1, bytes: 1504 });
    assert_eq!(departs_ms(&mut link, 2, 1), 9);
    assert_eq!(link.enqueue(2 * PS_PER_MS, 1), Verdict::Drop(DropReason::Buffer));
}

#[test]
fn limits_of_bytes_and_of_waiting() {
    let buffer = Buffer { bytes: Some(2000), ..Buffer::default() };
    let mut by_bytes = link(&[10], false, buffer);
    assert_eq!(departs_ms(&mut by_bytes, 0, 1500), 10);
    assert_eq!(by_bytes.enqueue(0, 501), Verdict::Drop(DropReason::Buffer));
    assert_eq!(departs_ms(&mut by_bytes, 0, 500), 20);

    let buffer = Buffer { wait_ps: Some(6 * PS_PER_MS), ..Buffer::default() };
    let mut by_wait = link(&[5, 10], false, buffer);
    assert_eq!(departs_ms(&mut by_wait, 0, 1504), 5);
    assert_eq!(by_wait.enqueue(4 * PS_PER_MS - 1, 9), Verdict::Drop(DropReason::Buffer));
    assert_eq!(departs_ms(&mut by_wait, 4, 9), 10);
}

#[test]
fn offered_bytes_count_opportunities_after_from_and_up_to_to() {
    let link = endless(&[0, 2, 2, 5]);
    let offered = |from_ms: u64, to_ms: u64| {
        link.offered_bytes(from_ms * PS_PER_MS, to_ms * PS_PER_MS).expect("limited") / 1504.0
    };
    assert_eq!(offered(0, 1), 0.0);
    assert_eq!(offered(0, 2), 2.0);
    assert_eq!(offered(2, 5), 2.0);
    // The end of a cycle and the zero of the next coincide.
    assert_eq!(offered(0, 5), 4.0);
    assert_eq!(offered(4, 5), 2.0);
    assert_eq!(offered(5, 10), 4.0);
    assert_eq!(offered(0, 5_000_000_000), 4e9);
    assert_eq!(offered(5_000_000_001, 5_000_000_003), 2.0);
    assert_eq!(offered(7, 7), 0.0);
    assert_eq!(offered(8, 7), 0.0);
    // Inside a ms the opportunity at its start has happened.
    assert_eq!(link.offered_bytes(2 * PS_PER_MS - 1, 2 * PS_PER_MS), Some(3008.0));
    assert_eq!(link.offered_bytes(2 * PS_PER_MS, 5 * PS_PER_MS - PS_PER_US), Some(0.0));

    let once = self::link(&[0, 2, 2, 5], true, Buffer::default());
    assert_eq!(once.offered_bytes(0, Picos::MAX), Some(3.0 * 1504.0));
}

#[test]
fn ends_of_time_do_not_overflow() {
    let mut slow = endless(&[u32::MAX]);
    for _ in 0..10 {
        assert!(matches!(slow.enqueue(0, u32::MAX), Verdict::Pass { departs: Picos::MAX, .. }));
    }
    assert!(matches!(slow.enqueue(Picos::MAX, 1), Verdict::Pass { departs: Picos::MAX, .. }));
    assert!(slow.offered_bytes(0, Picos::MAX).expect("limited") > 0.0);
    let mut fast = endless(&[1]);
    assert!(matches!(fast.enqueue(Picos::MAX, 1), Verdict::Pass { departs: Picos::MAX, .. }));
    assert_eq!(fast.offered_bytes(0, Picos::MAX), Some((Picos::MAX / PS_PER_MS) as f64 * 1504.0));
}
