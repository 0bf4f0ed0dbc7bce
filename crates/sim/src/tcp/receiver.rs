//! The receiving side of TCP: what has arrived, and when to acknowledge it.

use std::collections::VecDeque;

use paceline_net::Picos;

use crate::events::{Alarm, NEVER};
use crate::packet::{Packet, expand};
use crate::prefetch::prefetch_unaligned;

/// Linux acknowledges the first segments of a connection one by one ("quick ACKs"), so that slow start is not slowed.
const QUICK_ACKS: u64 = 16;

#[derive(Debug)]
pub(crate) struct TcpReceiver {
    /// Next segment expected.
    next: u64,
    /// Received ranges above it, `[start, end)`, ascending and apart. There only while something is missing.
    #[expect(clippy::box_collection, reason = "one word in place of four, in every receiver")]
    ranges: Option<Box<VecDeque<(u64, u64)>>>,
    /// `None`: every segment is acknowledged at once.
    delayed: Option<Box<DelayedAck>>,
}

/// The in-order segment that has not been acknowledged.
#[derive(Debug)]
struct DelayedAck {
    /// How long it may wait, ps.
    delay_ps: Picos,
    /// When to acknowledge it at the latest; [`NEVER`] if there is none.
    deadline: Picos,
    segment: Packet,
    window: ReceiveWindow,
    alarm: Alarm,
}

/// How Linux lets the window it offers grow (`tcp_grow_window`, dynamic right-sizing), in packets. It keeps ahead of the sender, so
/// that it limits nothing; but while it grows every segment is acknowledged at once, which is all of slow start.
#[derive(Debug)]
struct ReceiveWindow {
    offered: u64,
    /// What the buffer has room for.
    room: u64,
    /// Most that was read in a round trip.
    most_read: u64,
    /// The round trip under way: when it began, and what was expected next then.
    round_start: Picos,
    round_next: u64,
}

impl ReceiveWindow {
    /// The default `tcp_rmem` of 128 KiB, half of which is window, full packets of 1460 bytes.
    const FIRST: u64 = 44;
    /// What a sender is thought to send in its first round trip.
    const FIRST_READ: u64 = 10;
    /// By as much the window grows with every packet.
    const STEP: u64 = 2;
    /// Room beyond twice what was read.
    const SPARE: u64 = 16;

    fn new() -> Self {
        Self {
            offered: Self::FIRST,
            room: Self::FIRST,
            most_read: Self::FIRST_READ,
            round_start: 0,
            round_next: 0,
        }
    }

    /// A new segment has come, `next` is expected now and the round trip takes `rtt`. Whether the window grows.
    #[inline]
    fn on_segment(&mut self, now: Picos, next: u64, rtt: Picos) -> bool {
        if rtt > 0 && now - self.round_start >= rtt {
            self.finish_round(next - self.round_next);
            (self.round_start, self.round_next) = (now, next);
        }
        let grows = self.offered < self.room;
        if grows {
            self.offered = self.room.min(self.offered + Self::STEP);
        }
        grows
    }

    /// Room for what the next round trip brings, if the growth from the last to this one goes on.
    #[inline]
    fn finish_round(&mut self, read: u64) {
        if read > self.most_read {
            let window = 2 * read + Self::SPARE;
            let window = window + 2 * window * (read - self.most_read) / self.most_read;
            self.room = self.room.max(window);
            self.most_read = read;
        }
    }
}

/// Whether an arrival was news.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Arrived {
    InOrder,
    OutOfOrder,
    Duplicate,
}

impl TcpReceiver {
    /// Acknowledges every second segment, and a single one after `delayed_ack_ps`; every segment if that is `None`.
    pub(crate) fn new(delayed_ack_ps: Option<Picos>) -> Self {
        let delayed = delayed_ack_ps.map(|delay_ps| {
            Box::new(DelayedAck {
                delay_ps,
                deadline: NEVER,
                segment: Packet::default(),
                window: ReceiveWindow::new(),
                alarm: Alarm::default(),
            })
        });
        Self { next: 0, ranges: None, delayed }
    }

    /// Fetches what the next packet will touch outside this struct.
    #[inline]
    pub(crate) fn prefetch(&self) {
        self.ranges.iter().for_each(|ranges| prefetch_unaligned(&**ranges));
    }

    /// Takes a data packet in; returns the ACK to send now, if any, without its size. At least every second segment is
    /// acknowledged at once (RFC 5681 §4.2).
    #[inline(always)]
    pub(crate) fn on_data(&mut self, now: Picos, packet: &Packet) -> (Arrived, Option<Packet>) {
        let seq = expand(self.next, packet.seq());
        let had_gap = self.ranges.is_some();
        let (arrived, block) = self.insert(seq);
        if let Some(delayed) = &mut self.delayed
            && arrived != Arrived::Duplicate
            && !delayed.window.on_segment(now, self.next, packet.srtt())
            && arrived == Arrived::InOrder
            && !had_gap
            && self.next > QUICK_ACKS
            && delayed.deadline == NEVER
        {
            delayed.deadline = now + delayed.delay_ps;
            delayed.segment = *packet;
            return (arrived, None);
        }
        (arrived, Some(self.ack(packet, block, arrived)))
    }

    /// The alarm has gone off, or may have: the delayed ACK, if it is due.
    pub(crate) fn on_timer(&mut self, now: Picos) -> Option<Packet> {
        let delayed = self.delayed.as_mut()?;
        delayed.alarm.goes_off(now);
        if delayed.deadline > now {
            return None;
        }
        let packet = delayed.segment;
        Some(self.ack(&packet, (0, 0), Arrived::InOrder))
    }

    /// When [`Self::on_timer`] is to be called.
    #[cfg(test)]
    pub(crate) fn deadline(&self) -> Picos {
        self.delayed.as_ref().map_or(NEVER, |delayed| delayed.deadline)
    }

    /// The alarm to set after a step, if one is needed.
    #[inline]
    pub(crate) fn alarm(&mut self, now: Picos) -> Option<Picos> {
        let delayed = self.delayed.as_mut()?;
        delayed.alarm.until(delayed.deadline, now)
    }

    #[inline(always)]
    fn ack(&mut self, packet: &Packet, block: (u64, u64), arrived: Arrived) -> Packet {
        if let Some(delayed) = &mut self.delayed {
            delayed.deadline = NEVER;
        }
        let duplicate = if arrived == Arrived::Duplicate { Packet::DUPLICATE } else { 0 };
        packet.acknowledging(self.next, block, duplicate)
    }

    /// Records `seq`; returns whether it is new and the range above `next` that holds it (empty when in order).
    fn insert(&mut self, seq: u64) -> (Arrived, (u64, u64)) {
        if seq < self.next {
            return (Arrived::Duplicate, (0, 0));
        }
        if seq == self.next {
            self.next += 1;
            if let Some(ranges) = &mut self.ranges
                && let Some(&(start, end)) = ranges.front()
                && start == self.next
            {
                self.next = end;
                ranges.pop_front();
                if ranges.is_empty() {
                    // Holes are rare: their memory goes with them.
                    self.ranges = None;
                }
            }
            return (Arrived::InOrder, (0, 0));
        }
        let ranges = self.ranges.get_or_insert_default();
        // The range after which `seq` belongs: nearly always the last one.
        let after = match ranges.back() {
            Some(&(start, _)) if start <= seq => ranges.len(),
            _ => ranges.partition_point(|r| r.0 <= seq),
        };
        if after > 0 && seq < ranges[after - 1].1 {
            return (Arrived::Duplicate, ranges[after - 1]);
        }
        let joins_left = after > 0 && ranges[after - 1].1 == seq;
        let joins_right = after < ranges.len() && ranges[after].0 == seq + 1;
        let block = match (joins_left, joins_right) {
            (true, true) => {
                let right = ranges.remove(after).unwrap_or_default();
                ranges[after - 1].1 = right.1;
                ranges[after - 1]
            }
            (true, false) => {
                ranges[after - 1].1 = seq + 1;
                ranges[after - 1]
            }
            (false, true) => {
                ranges[after].0 = seq;
                ranges[after]
            }
            (false, false) => {
                ranges.insert(after, (seq, seq + 1));
                (seq, seq + 1)
            }
        };
        (Arrived::OutOfOrder, block)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    fn data(seq: u64) -> Packet {
        Packet::data(0, seq, 1500, 0, 0)
    }

    #[test]
    fn delays_every_second_ack_once_the_connection_runs() {
        let mut receiver = TcpReceiver::new(Some(40));
        for seq in 0..QUICK_ACKS {
            assert!(receiver.on_data(0, &data(seq)).1.is_some());
        }
        assert!(receiver.on_data(5, &data(16)).1.is_none());
        assert_eq!(receiver.deadline(), 45);
        assert_eq!(receiver.on_data(6, &data(17)).1.unwrap().acknowledged().0, 18);
        assert!(receiver.on_data(7, &data(18)).1.is_none());
        assert!(receiver.on_timer(46).is_none());
        assert_eq!(receiver.on_timer(47).unwrap().acknowledged().0, 19);
        assert_eq!(receiver.deadline(), NEVER);
        assert!(receiver.on_data(50, &data(20)).1.is_some(), "out of order: at once");
    }

    /// Rounds of 10, 20, 40 and 80 packets, and of 80 from then on.
    #[test]
    fn acknowledges_every_segment_while_the_window_grows() {
        let mut receiver = TcpReceiver::new(Some(1 << 40));
        let (mut seq, mut delayed) = (0, Vec::new());
        for (round, packets) in [10, 20, 40, 80, 80, 80, 80].into_iter().enumerate() {
            let mut late = 0;
            for packet in 0..packets {
                let now = 100_000_000 * (round as Picos + 1) + packet;
                let ack = receiver.on_data(now, &data(seq).of_path(99_000)).1;
                late += u64::from(ack.is_none());
                seq += 1;
            }
            delayed.push(late);
        }
        // The third round begins with room for the twenty of the second, (2 x 20 + 16) (1 + 2); the fifth with room for
        // (2 x 80 + 16) (1 + 2) = 528. From 44 two by two the window is there after 242 packets more than the first thirty.
        assert_eq!(delayed, [0, 7, 0, 0, 0, 19, 40]);
        assert_eq!(receiver.delayed.unwrap().window.offered, 528);
    }

    proptest! {
        /// Against a set of numbers.
        #[test]
        fn agrees_with_a_set(arrivals in prop::collection::vec(0u64..40, 1..120)) {
            let mut receiver = TcpReceiver::new(None);
            let mut seen = BTreeSet::new();
            for seq in arrivals {
                let (arrived, ack) = receiver.on_data(0, &data(seq));
                prop_assert_eq!(arrived != Arrived::Duplicate, seen.insert(seq));
                let (ack, block) = ack.unwrap().acknowledged();
                let next = (0..).find(|s| !seen.contains(s)).unwrap();
                prop_assert_eq!(u64::from(ack), next);
                if seq >= next {
                    let start = (0..=seq).rev().take_while(|s| seen.contains(s)).last().unwrap();
                    let end = (seq..).find(|s| !seen.contains(s)).unwrap();
                    prop_assert_eq!((u64::from(block.0), u64::from(block.1)), (start, end));
                }
            }
        }
    }
}
