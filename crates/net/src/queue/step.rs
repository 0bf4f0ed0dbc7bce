//! Drop-tail that marks by the queue of the moment: the switch of DCTCP (RFC 8257 §3.1).

use super::fifo::Fifo;
use super::{Dropped, Limit, Next, Queue, Queued};
use crate::Picos;
use crate::link::{Backlog, DropReason};

/// Marks every capable packet that finds more than K packets waiting. The others are treated as drop-tail does.
#[derive(Debug)]
pub(super) struct Step<T> {
    fifo: Fifo<T>,
    limit: Limit,
    threshold: u64,
}

impl<T> Step<T> {
    pub(super) fn new(limit: Limit, threshold: u64) -> Self {
        Self { fifo: Fifo::default(), limit, threshold }
    }
}

impl<T: Send> Queue<T> for Step<T> {
    fn enqueue(&mut self, _now: Picos, mut packet: Queued<T>, dropped: &mut Dropped<T>) {
        let backlog = self.fifo.backlog();
        if !self.limit.admits(backlog, packet.tag.bytes) {
            return dropped.push((packet, DropReason::Buffer));
        }
        if backlog.packets > self.threshold {
            packet.tag.ecn.mark();
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
    use super::super::{Ecn, Next};
    use super::*;

    #[test]
    fn marks_what_finds_more_than_k_waiting() {
        let mut queue = Step::new(Limit { packets: Some(6), bytes: None }, 2);
        let mut dropped = Vec::new();
        for k in 0..8 {
            let ecn = if k == 4 { Ecn::NotCapable } else { Ecn::Capable };
            queue.enqueue(0, with_ecn(0, k, ecn), &mut dropped);
        }
        assert_eq!(dropped.len(), 2);
        let mut seen = Vec::new();
        while let Next::Packet(packet) = queue.dequeue(0, &mut dropped) {
            seen.push(packet.tag.ecn);
        }
        let expected =
            [Ecn::Capable, Ecn::Capable, Ecn::Capable, Ecn::Marked, Ecn::NotCapable, Ecn::Marked];
        assert_eq!(seen, expected);
    }
}
