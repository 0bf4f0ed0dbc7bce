//! First in, first out: the store of most queues, and the two plain queues made of nothing else.

use std::collections::VecDeque;

use super::{Dropped, Limit, Next, Queue, Queued};
use crate::Picos;
use crate::link::{Backlog, DropReason};

/// Packets in the order of their arrival.
#[derive(Debug)]
pub(super) struct Fifo<T> {
    packets: VecDeque<Queued<T>>,
    bytes: u64,
}

impl<T> Default for Fifo<T> {
    fn default() -> Self {
        Self { packets: VecDeque::new(), bytes: 0 }
    }
}

impl<T> Fifo<T> {
    pub(super) fn push(&mut self, packet: Queued<T>) {
        self.bytes += u64::from(packet.tag.bytes);
        self.packets.push_back(packet);
    }

    pub(super) fn pop(&mut self) -> Option<Queued<T>> {
        let packet = self.packets.pop_front()?;
        self.bytes -= u64::from(packet.tag.bytes);
        Some(packet)
    }

    /// The packet that has waited longest.
    pub(super) fn front(&self) -> Option<&Queued<T>> {
        self.packets.front()
    }

    pub(super) fn backlog(&self) -> Backlog {
        Backlog { packets: self.packets.len() as u64, bytes: self.bytes }
    }
}

/// Who goes when a packet arrives and there is no room.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Victim {
    /// The one that arrives.
    Tail,
    /// Those that have waited longest, until it fits.
    Head,
}

/// A FIFO with a limit and nothing else.
#[derive(Debug)]
pub(super) struct Bounded<T> {
    fifo: Fifo<T>,
    limit: Limit,
    victim: Victim,
}

impl<T> Bounded<T> {
    pub(super) fn new(limit: Limit, victim: Victim) -> Self {
        Self { fifo: Fifo::default(), limit, victim }
    }
}

impl<T: Send> Queue<T> for Bounded<T> {
    fn enqueue(&mut self, _now: Picos, packet: Queued<T>, dropped: &mut Dropped<T>) {
        while !self.limit.admits(self.fifo.backlog(), packet.tag.bytes) {
            let victim = if self.victim == Victim::Head { self.fifo.pop() } else { None };
            match victim {
                Some(oldest) => dropped.push((oldest, DropReason::Buffer)),
                // Drop-tail, or a packet larger than the whole buffer.
                None => return dropped.push((packet, DropReason::Buffer)),
            }
        }
        self.fifo.push(packet);
    }

    fn dequeue(&mut self, _now: Picos, _dropped: &mut Dropped<T>) -> Next<T> {
        self.fifo.pop().map_or(Next::Empty, Next::Packet)
    }

    fn backlog(&self) -> Backlog {
        self.fifo.backlog()
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::*;
    use super::*;

    #[test]
    fn drop_tail_refuses_and_drop_head_makes_room() {
        let limit = Limit { packets: Some(3), bytes: None };
        let sent = |victim| {
            let mut queue = Bounded::new(limit, victim);
            let dropped = fill(&mut queue, 0, 0..5);
            assert_eq!(queue.backlog(), Backlog { packets: 3, bytes: 4500 });
            (drain(&mut queue, 0), dropped)
        };
        assert_eq!(sent(Victim::Tail), (vec![0, 1, 2], vec![3, 4]));
        assert_eq!(sent(Victim::Head), (vec![2, 3, 4], vec![0, 1]));
    }

    #[test]
    fn a_byte_limit_holds_exactly_and_refuses_what_can_never_fit() {
        for victim in [Victim::Tail, Victim::Head] {
            let mut queue = Bounded::new(Limit { packets: None, bytes: Some(3000) }, victim);
            assert!(fill(&mut queue, 0, 0..2).is_empty());
            assert_eq!(fill(&mut queue, 0, 2..3).len(), 1);
        }
        let mut queue = Bounded::new(Limit { packets: None, bytes: Some(1499) }, Victim::Head);
        assert_eq!(fill(&mut queue, 0, 0..1), [0]);
    }
}
