//! Hierarchical token buckets in two levels, after Linux's `sch_htb` (Devera 2002): every class has a rate of its own, and what
//! the others leave of the whole up to its ceiling.

use super::token_bucket::{Bucket, rate_fault};
use super::{Dropped, Limit, Next, Place, Queue, QueueSpec, Queued};
use crate::Picos;
use crate::link::{Backlog, DropReason};

/// Parameters of the hierarchy.
#[derive(Clone, Debug, PartialEq)]
pub struct HtbSpec {
    /// Rate of all classes together, bit/s.
    pub rate_bps: f64,
    /// Size of every bucket, bytes; at least a packet.
    pub burst_bytes: u64,
    /// The classes, by [`super::Tag::class`]; packets of any other class go to the last.
    pub classes: Vec<ClassSpec>,
}

/// A class.
#[derive(Clone, Debug, PartialEq)]
pub struct ClassSpec {
    /// Rate it has for itself, bit/s.
    pub rate_bps: f64,
    /// Rate it may reach by borrowing, bit/s.
    pub ceil_bps: f64,
    /// Its queue. The link's limit holds for each class.
    pub child: QueueSpec,
}

impl HtbSpec {
    pub(super) fn fault(&self) -> Option<(&'static str, f64, &'static str)> {
        let of_class = |class: &ClassSpec| {
            rate_fault("queue.classes.rate", class.rate_bps)
                .or_else(|| rate_fault("queue.classes.ceil", class.ceil_bps))
                .or_else(|| {
                    let low = class.ceil_bps < class.rate_bps;
                    low.then_some((
                        "queue.classes.ceil",
                        class.ceil_bps,
                        "at least the class's rate",
                    ))
                })
                .or_else(|| class.child.fault())
        };
        rate_fault("queue.rate", self.rate_bps)
            .or_else(|| {
                let small = self.burst_bytes == 0;
                small.then_some(("queue.burst", 0.0, "a number of bytes above 0"))
            })
            .or_else(|| {
                let none = self.classes.is_empty();
                none.then_some(("queue.classes", 0.0, "at least one class"))
            })
            .or_else(|| self.classes.iter().find_map(of_class))
    }
}

/// Bytes that the class with the least rate may send per turn.
const QUANTUM_BYTES: f64 = 1514.0;

struct Class<T> {
    queue: Box<dyn Queue<T>>,
    /// The packet that leaves next, out of the queue already.
    head: Option<Queued<T>>,
    /// Tokens of its own.
    own: Bucket,
    /// Tokens up to its ceiling.
    ceiling: Bucket,
    /// Bytes it may send per turn, in proportion to its rate, and what is left of them.
    quantum: i64,
    deficit: i64,
    limit: Limit,
}

/// How a class may send.
#[derive(Clone, Copy, Debug, PartialEq, PartialOrd, Eq, Ord)]
enum Right {
    /// From tokens of its own.
    Own,
    /// From what is left of the whole.
    Borrowed,
}

/// All classes.
pub(super) struct Htb<T> {
    whole: Bucket,
    classes: Vec<Class<T>>,
    /// Whose turn it is, for each right.
    turn: [usize; 2],
}

impl<T: Send + 'static> Htb<T> {
    pub(super) fn new(spec: &HtbSpec, place: Place) -> Self {
        let least = spec.classes.iter().map(|class| class.rate_bps).fold(f64::INFINITY, f64::min);
        let class = |class: &ClassSpec| {
            let rate_bps = place.rate_bps.min(class.ceil_bps);
            let plain = class.child == QueueSpec::DropTail;
            Class {
                queue: class.child.build(Place { rate_bps, ..place }),
                head: None,
                own: Bucket::new(class.rate_bps, spec.burst_bytes),
                ceiling: Bucket::new(class.ceil_bps, spec.burst_bytes),
                quantum: (QUANTUM_BYTES * class.rate_bps / least) as i64,
                deficit: 0,
                limit: if plain { place.limit } else { Limit::default() },
            }
        };
        Self {
            whole: Bucket::new(spec.rate_bps, spec.burst_bytes),
            classes: spec.classes.iter().map(class).collect(),
            turn: [0; 2],
        }
    }
}

impl<T: Send> Class<T> {
    /// Size of the packet that leaves next.
    fn head_bytes(
        &mut self,
        now: Picos,
        dropped: &mut Dropped<T>,
        wait: &mut Picos,
    ) -> Option<u32> {
        if self.head.is_none() {
            match self.queue.dequeue(now, dropped) {
                Next::Packet(packet) => self.head = Some(packet),
                Next::Wait(time) => *wait = (*wait).min(time),
                Next::Empty => {}
            }
        }
        self.head.as_ref().map(|packet| packet.tag.bytes)
    }

    fn backlog(&self) -> Backlog {
        let mut backlog = self.queue.backlog();
        if let Some(packet) = &self.head {
            backlog += packet;
        }
        backlog
    }
}

impl<T: Send> Htb<T> {
    /// By which right class `index` may send a packet of `bytes` now, or when it may.
    fn right(&self, index: usize, now: Picos, bytes: u32) -> Result<Right, Picos> {
        let class = &self.classes[index];
        let own = class.own.ready(bytes);
        if own <= now {
            return Ok(Right::Own);
        }
        let borrowed = class.ceiling.ready(bytes).max(self.whole.ready(bytes));
        if borrowed <= now { Ok(Right::Borrowed) } else { Err(own.min(borrowed)) }
    }

    /// Whose turn it is among `able`, the classes that may send by `right`, with the sizes of their packets: deficit round robin.
    fn choose(&mut self, right: Right, able: &[(usize, u32)]) -> usize {
        let turn = &mut self.turn[right as usize];
        loop {
            for _ in 0..self.classes.len() {
                let class = &mut self.classes[*turn];
                if let Some(&(index, bytes)) = able.iter().find(|(index, _)| index == turn) {
                    if class.deficit >= i64::from(bytes) {
                        class.deficit -= i64::from(bytes);
                        return index;
                    }
                    class.deficit += class.quantum.max(1);
                }
                *turn = (*turn + 1) % self.classes.len();
            }
        }
    }
}

impl<T: Send> Queue<T> for Htb<T> {
    fn enqueue(&mut self, now: Picos, packet: Queued<T>, dropped: &mut Dropped<T>) {
        let last = self.classes.len() - 1;
        let class = &mut self.classes[usize::from(packet.tag.class).min(last)];
        if !class.limit.admits(class.backlog(), packet.tag.bytes) {
            return dropped.push((packet, DropReason::Buffer));
        }
        class.queue.enqueue(now, packet, dropped);
    }

    fn dequeue(&mut self, now: Picos, dropped: &mut Dropped<T>) -> Next<T> {
        let mut wait = Picos::MAX;
        let mut able: [Vec<(usize, u32)>; 2] = Default::default();
        for index in 0..self.classes.len() {
            let Some(bytes) = self.classes[index].head_bytes(now, dropped, &mut wait) else {
                self.classes[index].deficit = 0;
                continue;
            };
            match self.right(index, now, bytes) {
                Ok(right) => able[right as usize].push((index, bytes)),
                Err(time) => wait = wait.min(time),
            }
        }
        let right = if able[0].is_empty() { Right::Borrowed } else { Right::Own };
        let able = &able[right as usize];
        if able.is_empty() {
            return if wait == Picos::MAX { Next::Empty } else { Next::Wait(wait) };
        }
        let chosen = self.choose(right, able);
        let class = &mut self.classes[chosen];
        let Some(packet) = class.head.take() else { return Next::Empty };
        let bytes = packet.tag.bytes;
        if right == Right::Own {
            class.own.take(now, bytes);
        }
        class.ceiling.take(now, bytes);
        self.whole.take(now, bytes);
        Next::Packet(packet)
    }

    fn backlog(&self) -> Backlog {
        let mut sum = Backlog::default();
        for class in &self.classes {
            let one = class.backlog();
            sum.packets += one.packets;
            sum.bytes += one.bytes;
        }
        sum
    }
}

#[cfg(test)]
mod tests {
    use super::super::Tag;
    use super::*;
    use crate::{PS_PER_MS, PS_PER_S};

    /// Classes with (own rate, ceiling) in Mbit/s under a whole of 100; those in `busy` always have something to send. Rates
    /// over the last 9 of 10 s, Mbit/s.
    fn rates(classes: &[(f64, f64)], busy: &[u16]) -> Vec<f64> {
        let class = |&(rate, ceil): &(f64, f64)| ClassSpec {
            rate_bps: rate * 1e6,
            ceil_bps: ceil * 1e6,
            child: QueueSpec::DropTail,
        };
        let spec = HtbSpec {
            rate_bps: 100e6,
            burst_bytes: 3028,
            classes: classes.iter().map(class).collect(),
        };
        assert_eq!(spec.fault(), None);
        let place = Place { limit: Limit::default(), rate_bps: 1e9, seed: 0, stream: 0 };
        let mut queue = Htb::new(&spec, place);
        let mut dropped = Vec::new();
        let mut push = |queue: &mut Htb<()>, now, class| {
            let tag = Tag { bytes: 1500, class, ..Tag::default() };
            queue.enqueue(now, Queued { tag, arrived: now, item: () }, &mut dropped);
        };
        for class in busy {
            for _ in 0..3 {
                push(&mut queue, 0, *class);
            }
        }
        let (mut now, mut bytes) = (0, vec![0.0; classes.len()]);
        while now < 10 * PS_PER_S {
            match queue.dequeue(now, &mut Vec::new()) {
                Next::Packet(packet) => {
                    if now > PS_PER_S {
                        bytes[usize::from(packet.tag.class)] += f64::from(packet.tag.bytes);
                    }
                    push(&mut queue, now, packet.tag.class);
                }
                Next::Wait(time) => now = time,
                Next::Empty => now += PS_PER_MS,
            }
        }
        bytes.into_iter().map(|bytes| bytes * 8.0 / 9.0 / 1e6).collect()
    }

    fn near(got: &[f64], expected: &[f64]) {
        let close = got.iter().zip(expected).all(|(a, b)| (a - b).abs() <= 0.02 * b.max(1.0));
        assert!(close, "{got:?}, not {expected:?}");
    }

    #[test]
    fn every_class_has_its_rate_and_the_rest_goes_by_rate() {
        // 60 assured, 40 left over, shared 1 : 2 : 3.
        near(
            &rates(&[(10.0, 100.0), (20.0, 100.0), (30.0, 100.0)], &[0, 1, 2]),
            &[16.67, 33.33, 50.0],
        );
    }

    #[test]
    fn what_others_leave_is_borrowed_up_to_the_ceiling() {
        near(&rates(&[(10.0, 100.0), (20.0, 50.0)], &[1]), &[0.0, 50.0]);
        near(&rates(&[(10.0, 100.0), (20.0, 50.0)], &[0]), &[100.0, 0.0]);
        near(&rates(&[(10.0, 100.0), (20.0, 50.0)], &[0, 1]), &[50.0, 50.0]);
    }
}
