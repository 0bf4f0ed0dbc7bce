//! Queues: who waits, who goes next, who is dropped, who is marked.
//!
//! In: packets as they arrive, and the transmitter's request for the next one. Out: that packet, or when to ask again; the
//! packets that were dropped, at whichever end. A queue is handed the time and keeps no timer: what its source does
//! periodically is made up for at the next call, before anything that could tell the difference.
//!
//! A drop-tail queue in front of a link needs none of this: see [`crate::Link`], where it is a formula.

mod cake;
mod codel;
mod dualpi2;
mod fifo;
mod fq;
mod fq_codel;
mod htb;
mod pie;
mod red;
mod rounds;
mod step;
mod token_bucket;

use crate::link::{Backlog, DropReason};
use crate::random::{Purpose, RandomStream};
use crate::{PS_PER_S, Picos};

pub use cake::CakeSpec;
pub use codel::CodelSpec;
pub use dualpi2::DualPi2Spec;
pub use fq::FqSpec;
pub use fq_codel::FqCodelSpec;
pub use htb::{ClassSpec, HtbSpec};
pub use pie::PieSpec;
pub use red::RedSpec;
pub use token_bucket::TokenBucketSpec;

/// The ECN field of the IP header (RFC 3168 §5, RFC 9331 §2).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Ecn {
    /// The sender does not understand marks: drop instead.
    #[default]
    NotCapable,
    /// ECT(0).
    Capable,
    /// ECT(1): a scalable sender that asks for low latency.
    Scalable,
    /// Congestion experienced.
    Marked,
}

impl Ecn {
    /// Marks the packet if that means something to its sender. Whether it is marked now.
    pub fn mark(&mut self) -> bool {
        if *self != Self::NotCapable {
            *self = Self::Marked;
        }
        *self == Self::Marked
    }
}

/// What a queue may know of a packet.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Tag {
    /// Size as the link counts it, bytes.
    pub bytes: u32,
    /// Flow, for queues that keep flows apart.
    pub flow: u32,
    /// Source and destination host, for queues that are fair to hosts.
    pub hosts: [u32; 2],
    /// Class of traffic: index into a shaper's classes, or DiffServ tin.
    pub class: u16,
    /// ECN field as the packet carries it.
    pub ecn: Ecn,
}

/// A packet in a queue. What it is, `item`, is the owner's business.
#[derive(Clone, Debug, PartialEq)]
pub struct Queued<T> {
    /// What the queue may know.
    pub tag: Tag,
    /// When it arrived, ps.
    pub arrived: Picos,
    /// The packet itself.
    pub item: T,
}

impl<T> Queued<T> {
    /// How long it has waited.
    fn wait(&self, now: Picos) -> Picos {
        now.saturating_sub(self.arrived)
    }
}

/// A queue's answer to a transmitter that is free.
#[derive(Clone, Debug, PartialEq)]
pub enum Next<T> {
    /// Send this one.
    Packet(Queued<T>),
    /// Nothing may leave before this time (ps, later than now) unless something arrives.
    Wait(Picos),
    /// Nothing waits.
    Empty,
}

/// Packets that a queue has given up, in the order in which it did.
pub type Dropped<T> = Vec<(Queued<T>, DropReason)>;

/// A queue. Times must not decrease from call to call.
pub trait Queue<T>: Send {
    /// A packet arrives. It may be dropped at once, or make another one be dropped.
    fn enqueue(&mut self, now: Picos, packet: Queued<T>, dropped: &mut Dropped<T>);
    /// The transmitter is free.
    fn dequeue(&mut self, now: Picos, dropped: &mut Dropped<T>) -> Next<T>;
    /// What waits.
    fn backlog(&self) -> Backlog;
}

/// How much may wait in a queue; nothing more is accepted then. `None` is no limit.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Limit {
    /// Packets.
    pub packets: Option<u64>,
    /// Bytes.
    pub bytes: Option<u64>,
}

impl Limit {
    /// Whether `backlog` and a packet of `bytes` keep within the limit.
    fn admits(&self, backlog: Backlog, bytes: u32) -> bool {
        self.packets.is_none_or(|most| backlog.packets < most)
            && self.bytes.is_none_or(|most| backlog.bytes.saturating_add(bytes.into()) <= most)
    }
}

/// Which queue a link has.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum QueueSpec {
    /// First in, first out; what does not fit is refused.
    #[default]
    DropTail,
    /// First in, first out; what has waited longest makes room.
    DropHead,
    /// Drop-tail that marks what arrives while more than this many packets wait (RFC 8257 §3.1).
    Step {
        /// Threshold K, packets.
        packets: u64,
    },
    /// Random early detection.
    Red(RedSpec),
    /// Controlled delay.
    Codel(CodelSpec),
    /// Proportional integral controller enhanced.
    Pie(PieSpec),
    /// Fair queueing with pacing per flow.
    Fq(FqSpec),
    /// Fair queueing with controlled delay.
    FqCodel(FqCodelSpec),
    /// Fair to hosts and flows, with tins and COBALT.
    Cake(CakeSpec),
    /// Low latency beside classic traffic.
    DualPi2(DualPi2Spec),
    /// A rate with bursts, in front of another queue.
    TokenBucket(TokenBucketSpec),
    /// Classes with rates of their own that lend each other what they do not use.
    Htb(HtbSpec),
}

/// What a queue is made for.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Place {
    /// How much may wait.
    pub limit: Limit,
    /// Mean rate of the link, bit/s, from which a queue derives what its spec leaves open.
    pub rate_bps: f64,
    /// Seed of the run, and number of the link in it: a queue's draws are its own.
    pub seed: u64,
    /// See `seed`.
    pub stream: u64,
}

/// Size from which times of a packet are derived, bytes.
const PACKET_BYTES: f64 = 1500.0;

impl Place {
    fn random(&self) -> RandomStream {
        RandomStream::new(self.seed, self.stream, Purpose::Queue)
    }

    /// Packets of 1500 bytes per second.
    fn packets_per_s(&self) -> f64 {
        self.rate_bps / (8.0 * PACKET_BYTES)
    }
}

impl QueueSpec {
    /// What scenarios call it.
    pub fn name(&self) -> &'static str {
        match self {
            Self::DropTail => "droptail",
            Self::DropHead => "drophead",
            Self::Step { .. } => "step",
            Self::Red(_) => "red",
            Self::Codel(_) => "codel",
            Self::Pie(_) => "pie",
            Self::Fq(_) => "fq",
            Self::FqCodel(_) => "fq_codel",
            Self::Cake(_) => "cake",
            Self::DualPi2(_) => "dualpi2",
            Self::TokenBucket(_) => "tbf",
            Self::Htb(_) => "htb",
        }
    }

    /// Makes the queue.
    pub fn build<T: Send + 'static>(&self, place: Place) -> Box<dyn Queue<T>> {
        match self {
            Self::DropTail => Box::new(fifo::Bounded::new(place.limit, fifo::Victim::Tail)),
            Self::DropHead => Box::new(fifo::Bounded::new(place.limit, fifo::Victim::Head)),
            Self::Step { packets } => Box::new(step::Step::new(place.limit, *packets)),
            Self::Red(spec) => Box::new(red::Red::new(spec, place)),
            Self::Codel(spec) => Box::new(codel::Codel::new(spec, place.limit)),
            Self::Pie(spec) => Box::new(pie::Pie::new(spec, place)),
            Self::Fq(spec) => Box::new(fq::Fq::new(spec, place.limit)),
            Self::FqCodel(spec) => Box::new(fq_codel::FqCodel::new(spec, place)),
            Self::Cake(spec) => Box::new(cake::Cake::new(spec, place)),
            Self::DualPi2(spec) => Box::new(dualpi2::DualPi2::new(spec, place.limit)),
            Self::TokenBucket(spec) => Box::new(token_bucket::TokenBucket::new(spec, place)),
            Self::Htb(spec) => Box::new(htb::Htb::new(spec, place)),
        }
    }

    /// The rate that the queue itself holds to, bit/s, if it has one.
    pub fn rate_bps(&self) -> Option<f64> {
        match self {
            Self::TokenBucket(spec) => Some(spec.rate_bps),
            Self::Htb(spec) => Some(spec.rate_bps),
            _ => None,
        }
    }

    /// The first parameter that cannot be meant: its name, its value, what is allowed.
    pub(crate) fn fault(&self) -> Option<(&'static str, f64, &'static str)> {
        match self {
            Self::DropTail | Self::DropHead | Self::Step { .. } => None,
            Self::Red(spec) => spec.fault(),
            Self::Codel(spec) => spec.fault(),
            Self::Pie(spec) => spec.fault(),
            Self::Fq(spec) => spec.fault(),
            Self::FqCodel(spec) => spec.fault(),
            Self::Cake(spec) => spec.fault(),
            Self::DualPi2(spec) => spec.fault(),
            Self::TokenBucket(spec) => spec.fault(),
            Self::Htb(spec) => spec.fault(),
        }
    }
}

/// Seconds.
fn seconds(time: Picos) -> f64 {
    time as f64 / PS_PER_S as f64
}

/// Whole picoseconds; 0 for what is negative or not a number.
fn picos(seconds: f64) -> Picos {
    (seconds * PS_PER_S as f64) as Picos
}

#[cfg(test)]
mod testing {
    //! Packets for the queues' tests.

    use std::ops::Range;

    use super::{Dropped, Ecn, Next, Queue, Queued, Tag};
    use crate::Picos;

    /// A packet of 1500 bytes.
    pub(super) fn packet(now: Picos, item: u64) -> Queued<u64> {
        with_ecn(now, item, Ecn::NotCapable)
    }

    pub(super) fn with_ecn(now: Picos, item: u64, ecn: Ecn) -> Queued<u64> {
        Queued { tag: Tag { bytes: 1500, ecn, ..Tag::default() }, arrived: now, item }
    }

    /// Packets of these numbers arrive; the numbers of those dropped.
    pub(super) fn fill(queue: &mut impl Queue<u64>, now: Picos, items: Range<u64>) -> Vec<u64> {
        let mut dropped = Dropped::new();
        for item in items {
            queue.enqueue(now, packet(now, item), &mut dropped);
        }
        dropped.into_iter().map(|(packet, _)| packet.item).collect()
    }

    /// Takes out what can be sent now.
    pub(super) fn drain(queue: &mut impl Queue<u64>, now: Picos) -> Vec<u64> {
        let mut dropped = Dropped::new();
        let next = || match queue.dequeue(now, &mut dropped) {
            Next::Packet(packet) => Some(packet.item),
            _ => None,
        };
        std::iter::from_fn(next).collect()
    }
}
