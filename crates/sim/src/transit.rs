//! A link at work: its model, the packets on it, what is measured of it.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

use paceline_net::{Link, Picos};

use crate::events::NEVER;
use crate::link_meter::LinkMeter;
use crate::packet::{Arrival, Packet};

pub(crate) struct RunningLink {
    pub(crate) model: Link,
    pub(crate) on_the_way: OnTheWay,
    pub(crate) meter: Option<LinkMeter>,
}

impl RunningLink {
    pub(crate) fn new(model: Link, meter: Option<LinkMeter>) -> Self {
        let on_the_way = if model.keeps_order() {
            OnTheWay::InOrder(VecDeque::new())
        } else {
            OnTheWay::Any { heap: BinaryHeap::new(), entered: 0 }
        };
        Self { model, on_the_way, meter }
    }
}

/// Packets on a link, by arrival.
pub(crate) enum OnTheWay {
    /// They arrive in the order they entered.
    InOrder(VecDeque<Arrival>),
    /// They may overtake each other: ordered by arrival, then by entry.
    Any { heap: BinaryHeap<Reverse<(Picos, u64, Boxed)>>, entered: u64 },
}

/// A packet that takes no part in the ordering of a heap.
pub(crate) struct Boxed(Packet);

impl PartialEq for Boxed {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}
impl Eq for Boxed {}
impl PartialOrd for Boxed {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}
impl Ord for Boxed {
    fn cmp(&self, _: &Self) -> std::cmp::Ordering {
        std::cmp::Ordering::Equal
    }
}

impl OnTheWay {
    #[inline]
    pub(crate) fn push(&mut self, time: Picos, packet: Packet) {
        match self {
            Self::InOrder(queue) => queue.push_back(Arrival { time, packet }),
            Self::Any { heap, entered } => {
                *entered += 1;
                heap.push(Reverse((time, *entered, Boxed(packet))));
            }
        }
    }

    /// Arrival of the head.
    #[inline]
    pub(crate) fn due(&self) -> Picos {
        match self {
            Self::InOrder(queue) => queue.front().map_or(NEVER, |a| a.time),
            Self::Any { heap, .. } => heap.peek().map_or(NEVER, |Reverse((time, ..))| *time),
        }
    }

    #[inline]
    pub(crate) fn pop(&mut self) -> Option<Packet> {
        match self {
            Self::InOrder(queue) => queue.pop_front().map(|a| a.packet),
            Self::Any { heap, .. } => heap.pop().map(|Reverse((_, _, Boxed(packet)))| packet),
        }
    }

    pub(crate) fn packets(&self) -> Vec<Packet> {
        match self {
            Self::InOrder(queue) => queue.iter().map(|a| a.packet).collect(),
            Self::Any { heap, .. } => heap.iter().map(|Reverse((_, _, Boxed(p)))| *p).collect(),
        }
    }
}
