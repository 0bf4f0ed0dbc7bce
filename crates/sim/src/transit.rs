//! Packets between two places, in the order in which they arrive.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use paceline_net::Picos;
use paceline_net::line::Line;

use crate::events::NEVER;
use crate::packet::{Arrival, Packet};

/// Packets on the way, by arrival.
pub(crate) enum Transit {
    /// They arrive in the order they entered.
    InOrder(Line<Arrival>),
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
                queue.len() == 1
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
            Self::InOrder(queue) => queue.pop(),
            Self::AnyOrder { heap, .. } => {
                heap.pop().map(|Reverse((time, _, Carried(packet)))| Arrival { time, packet })
            }
        }
    }

    /// Takes the first if it arrives before `limit`.
    #[inline(always)]
    pub(crate) fn pop_before(&mut self, limit: Picos) -> Option<Arrival> {
        match self {
            Self::InOrder(queue) => queue.pop_if(|first| first.time < limit),
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

    /// Calls `each` with every packet.
    pub(crate) fn for_each(&self, mut each: impl FnMut(&Packet)) {
        match self {
            Self::InOrder(queue) => queue.iter().for_each(|a| each(&a.packet)),
            Self::AnyOrder { heap, .. } => {
                heap.iter().for_each(|Reverse((_, _, Carried(packet)))| each(packet));
            }
        }
    }
}
