//! Packets between two places, in the order in which they arrive.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use paceline_net::Picos;

use crate::events::NEVER;
use crate::packet::{Arrival, Packet};

/// Packets on the way, by arrival.
pub(crate) enum Transit {
    /// They arrive in the order they entered.
    InOrder(Line),
    /// They may overtake each other: ordered by arrival, then by entry.
    AnyOrder { heap: BinaryHeap<Reverse<(Picos, u64, Carried)>>, entered: u64 },
}

/// A packet that takes no part in the ordering of a heap.
pub(crate) struct Carried(Packet);

impl PartialEq for Carried {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}
impl Eq for Carried {}
impl PartialOrd for Carried {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}
impl Ord for Carried {
    fn cmp(&self, _: &Self) -> std::cmp::Ordering {
        std::cmp::Ordering::Equal
    }
}

impl Transit {
    pub(crate) fn new(in_order: bool) -> Self {
        if in_order {
            Self::InOrder(Line::default())
        } else {
            Self::AnyOrder { heap: BinaryHeap::new(), entered: 0 }
        }
    }

    /// Adds a packet; whether it is now the first to arrive.
    #[inline(always)]
    pub(crate) fn push(&mut self, time: Picos, packet: Packet) -> bool {
        match self {
            Self::InOrder(queue) => {
                queue.push(Arrival { time, packet });
                queue.length == 1
            }
            Self::AnyOrder { heap, entered } => {
                let first = heap.peek().is_none_or(|Reverse((head, ..))| time < *head);
                *entered += 1;
                heap.push(Reverse((time, *entered, Carried(packet))));
                first
            }
        }
    }

    /// Arrival of the first.
    #[inline]
    pub(crate) fn due(&self) -> Picos {
        match self {
            Self::InOrder(queue) => queue.front().map_or(NEVER, |a| a.time),
            Self::AnyOrder { heap, .. } => heap.peek().map_or(NEVER, |Reverse((time, ..))| *time),
        }
    }

    #[inline(always)]
    pub(crate) fn pop(&mut self) -> Option<Arrival> {
        match self {
            Self::InOrder(queue) => (queue.length > 0).then(|| queue.pop()),
            Self::AnyOrder { heap, .. } => {
                heap.pop().map(|Reverse((time, _, Carried(packet)))| Arrival { time, packet })
            }
        }
    }

    /// Takes the first if it arrives before `limit`.
    #[inline(always)]
    pub(crate) fn pop_before(&mut self, limit: Picos) -> Option<Arrival> {
        match self {
            Self::InOrder(queue) => queue.pop_before(limit),
            Self::AnyOrder { .. } if self.due() < limit => self.pop(),
            Self::AnyOrder { .. } => None,
        }
    }

    /// The packet `places` behind the first, if that is easily said.
    #[inline]
    pub(crate) fn ahead(&self, places: usize) -> Option<&Packet> {
        match self {
            Self::InOrder(queue) => queue.get(places).map(|a| &a.packet),
            Self::AnyOrder { .. } => None,
        }
    }

    /// Calls `each` with every arrival before `limit`; ascending if packets keep their order.
    #[inline]
    pub(crate) fn before(&self, limit: Picos, mut each: impl FnMut(Picos)) {
        match self {
            Self::InOrder(queue) => {
                for stretch in queue.stretches() {
                    for arrival in stretch {
                        if arrival.time >= limit {
                            return;
                        }
                        each(arrival.time);
                    }
                }
            }
            Self::AnyOrder { heap, .. } => {
                heap.iter().map(|Reverse((t, ..))| *t).filter(|t| *t < limit).for_each(&mut each);
            }
        }
    }

    pub(crate) fn packets(&self) -> Vec<Packet> {
        match self {
            Self::InOrder(queue) => queue.iter().map(|a| a.packet).collect(),
            Self::AnyOrder { heap, .. } => {
                heap.iter().map(|Reverse((_, _, Carried(p)))| *p).collect()
            }
        }
    }
}

/// A queue with no more than a little room to spare. Doubled, as other rings are, the room in front of a bottleneck of thousands of
/// flows would be a tenth of all that a flow takes.
#[derive(Default)]
pub(crate) struct Line {
    slots: Vec<Arrival>,
    /// Slot of the first.
    head: usize,
    length: usize,
}

impl Line {
    #[inline(always)]
    fn push(&mut self, arrival: Arrival) {
        if self.length == self.slots.len() {
            self.grow();
        }
        let slot = self.slot(self.length);
        self.slots[slot] = arrival;
        self.length += 1;
    }

    /// The slot of the one `places` behind the first; `places` is below the number of slots.
    #[inline(always)]
    fn slot(&self, places: usize) -> usize {
        let slot = self.head + places;
        if slot >= self.slots.len() { slot - self.slots.len() } else { slot }
    }

    #[inline(always)]
    fn front(&self) -> Option<&Arrival> {
        if self.length > 0 { self.slots.get(self.head) } else { None }
    }

    /// Takes the first if it arrives before `limit`.
    #[inline(always)]
    fn pop_before(&mut self, limit: Picos) -> Option<Arrival> {
        let first = self.front()?;
        if first.time >= limit { None } else { Some(self.pop()) }
    }

    /// Takes the first; the line must not be empty.
    #[inline(always)]
    fn pop(&mut self) -> Arrival {
        let first = self.slots[self.head];
        self.head += 1;
        if self.head == self.slots.len() {
            self.head = 0;
        }
        self.length -= 1;
        first
    }

    #[inline]
    fn get(&self, places: usize) -> Option<&Arrival> {
        if places < self.length { self.slots.get(self.slot(places)) } else { None }
    }

    fn iter(&self) -> impl Iterator<Item = &Arrival> {
        self.stretches().into_iter().flatten()
    }

    /// The line in two pieces, each in one place.
    fn stretches(&self) -> [&[Arrival]; 2] {
        let straight = self.length.min(self.slots.len() - self.head);
        [&self.slots[self.head..self.head + straight], &self.slots[..self.length - straight]]
    }

    /// In place, so that where the allocator can, it makes more room without a copy.
    #[cold]
    #[inline(never)]
    fn grow(&mut self) {
        let (size, more) = (self.slots.len(), (self.length / GROWTH).max(LEAST_GROWTH));
        self.slots.reserve_exact(more);
        self.slots.resize(size + more, Arrival::default());
        if self.head <= more {
            self.slots.copy_within(..self.head, size);
        } else {
            self.slots.copy_within(self.head..size, self.head + more);
            self.head += more;
        }
    }
}

/// A full line grows by one part in so many, and by so many slots at least.
const GROWTH: usize = 8;
const LEAST_GROWTH: usize = 8;

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// Against a list, with pushes and pops in turns of random length.
        #[test]
        fn a_line_is_a_queue(turns in prop::collection::vec((0_usize..200, 0_usize..200), 1..20)) {
            let (mut line, mut entered, mut left) = (Line::default(), 0, 0);
            for (pushes, pops) in turns {
                for _ in 0..pushes {
                    line.push(Arrival { time: entered, ..Arrival::default() });
                    entered += 1;
                }
                prop_assert!(line.iter().map(|arrival| arrival.time).eq(left..entered));
                for places in [0, line.length / 2, line.length] {
                    let time = Some(left + places as u64).filter(|time| *time < entered);
                    prop_assert_eq!(line.get(places).map(|arrival| arrival.time), time);
                }
                let until = entered.min(left + pops as u64);
                while let Some(arrival) = line.pop_before(until) {
                    prop_assert_eq!(arrival.time, left);
                    left += 1;
                }
                prop_assert_eq!(left, until.max(left));
                prop_assert_eq!(line.front().map(|first| first.time), Some(left).filter(|t| *t < entered));
            }
        }
    }
}
