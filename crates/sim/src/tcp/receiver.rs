//! The receiving side of TCP: what has arrived, and when to acknowledge it.

use std::collections::VecDeque;

use paceline_net::Picos;

use crate::events::NEVER;
use crate::packet::{Packet, expand};

/// Acknowledge at least every second segment (RFC 5681 §4.2).
const ACK_EVERY: u32 = 2;

/// Linux acknowledges the first segments of a connection one by one ("quick ACKs"), so that slow start is not slowed.
const QUICK_ACKS: u64 = 16;

#[derive(Debug, Default)]
pub(crate) struct TcpReceiver {
    /// Next segment expected.
    next: u64,
    /// Received ranges above it, `[start, end)`, ascending and apart.
    ranges: VecDeque<(u64, u64)>,
    /// In-order segments not yet acknowledged, the newest of them, and when to acknowledge at the latest.
    unacked: u32,
    pending: Option<Packet>,
    deadline: Option<Picos>,
}

/// Whether an arrival was news.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Arrived {
    InOrder,
    OutOfOrder,
    Duplicate,
}

impl TcpReceiver {
    /// Takes a data packet in; returns the ACK to send now, if any, without its size.
    #[inline(always)]
    pub(crate) fn on_data(
        &mut self,
        now: Picos,
        packet: &Packet,
        delayed_ack_ps: Option<Picos>,
    ) -> (Arrived, Option<Packet>) {
        let seq = expand(self.next, packet.seq());
        let had_gap = !self.ranges.is_empty();
        let (arrived, block) = self.insert(seq);
        if let Some(delay) = delayed_ack_ps
            && arrived == Arrived::InOrder
            && !had_gap
            && self.next > QUICK_ACKS
        {
            self.unacked += 1;
            if self.unacked < ACK_EVERY {
                self.deadline = Some(now + delay);
                self.pending = Some(*packet);
                return (arrived, None);
            }
        }
        (arrived, Some(self.ack(packet, block, arrived)))
    }

    /// The delayed ACK is due; returns it.
    pub(crate) fn on_timer(&mut self, now: Picos) -> Option<Packet> {
        if self.deadline.is_none_or(|due| due > now) {
            return None;
        }
        let packet = self.pending.take()?;
        Some(self.ack(&packet, (0, 0), Arrived::InOrder))
    }

    /// When [`Self::on_timer`] is to be called.
    pub(crate) fn deadline(&self) -> Picos {
        self.deadline.unwrap_or(NEVER)
    }

    #[inline(always)]
    fn ack(&mut self, packet: &Packet, block: (u64, u64), arrived: Arrived) -> Packet {
        (self.unacked, self.pending, self.deadline) = (0, None, None);
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
            if let Some(&(start, end)) = self.ranges.front()
                && start == self.next
            {
                self.next = end;
                self.ranges.pop_front();
                if self.ranges.is_empty() {
                    // Holes are rare: their memory goes with them.
                    self.ranges = VecDeque::new();
                }
            }
            return (Arrived::InOrder, (0, 0));
        }
        // The range after which `seq` belongs: nearly always the last one.
        let after = match self.ranges.back() {
            Some(&(start, _)) if start <= seq => self.ranges.len(),
            _ => self.ranges.partition_point(|r| r.0 <= seq),
        };
        if after > 0 && seq < self.ranges[after - 1].1 {
            return (Arrived::Duplicate, self.ranges[after - 1]);
        }
        let joins_left = after > 0 && self.ranges[after - 1].1 == seq;
        let joins_right = after < self.ranges.len() && self.ranges[after].0 == seq + 1;
        let block = match (joins_left, joins_right) {
            (true, true) => {
                let right = self.ranges.remove(after).unwrap_or_default();
                self.ranges[after - 1].1 = right.1;
                self.ranges[after - 1]
            }
            (true, false) => {
                self.ranges[after - 1].1 = seq + 1;
                self.ranges[after - 1]
            }
            (false, true) => {
                self.ranges[after].0 = seq;
                self.ranges[after]
            }
            (false, false) => {
                self.ranges.insert(after, (seq, seq + 1));
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
        let mut receiver = TcpReceiver::default();
        for seq in 0..QUICK_ACKS {
            assert!(receiver.on_data(0, &data(seq), Some(40)).1.is_some());
        }
        assert!(receiver.on_data(5, &data(16), Some(40)).1.is_none());
        assert_eq!(receiver.deadline(), 45);
        assert_eq!(receiver.on_data(6, &data(17), Some(40)).1.unwrap().acknowledged().0, 18);
        assert!(receiver.on_data(7, &data(18), Some(40)).1.is_none());
        assert!(receiver.on_timer(46).is_none());
        assert_eq!(receiver.on_timer(47).unwrap().acknowledged().0, 19);
        assert_eq!(receiver.deadline(), NEVER);
        assert!(receiver.on_data(50, &data(20), Some(40)).1.is_some(), "out of order: at once");
    }

    proptest! {
        /// Against a set of numbers.
        #[test]
        fn agrees_with_a_set(arrivals in prop::collection::vec(0u64..40, 1..120)) {
            let mut receiver = TcpReceiver::default();
            let mut seen = BTreeSet::new();
            for seq in arrivals {
                let (arrived, ack) = receiver.on_data(0, &data(seq), None);
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
