//! A link whose queue decides when the transmitter is free, not when the packet arrives.
//!
//! In: packets with their arrival times. Out: each packet when its service begins, with the times it departs and arrives;
//! and the packets dropped. Unlike [`crate::Link`], it has to be asked: [`ServedLink::due`] says when.
//!
//! Within a moment, services come before arrivals: what arrives as the transmitter becomes free was not there to be chosen.

use crate::delivery::Delivery;
use crate::link::{Backlog, Capacity, DropReason, LinkSpec};
use crate::loss::Loss;
use crate::queue::{Dropped, Limit, Next, Place, Queue, Queued, Tag};
use crate::service::Service;
use crate::{PS_PER_S, Picos};

/// A packet that has left the queue.
#[derive(Clone, Debug, PartialEq)]
pub struct Sent<T> {
    /// The packet, marked if the queue did so.
    pub packet: Queued<T>,
    /// Last bit sent, ps.
    pub departs: Picos,
    /// Last bit received, ps.
    pub arrives: Picos,
}

/// What a link can say of itself as a packet leaves its queue: in-band network telemetry, as switches write it into packets.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Stamp {
    /// When the packet's service began, ps.
    pub time: Picos,
    /// Bytes that it left waiting.
    pub queue_bytes: u64,
    /// Bytes that the link had sent before it.
    pub tx_bytes: u64,
    /// Rate of the link then, bit/s.
    pub rate_bps: f64,
}

/// A directed link in operation, with any queue.
pub struct ServedLink<T> {
    service: Service,
    queue: Box<dyn Queue<T>>,
    delivery: Delivery,
    loss: Option<Box<Loss>>,
    /// When the transmitter asks the queue next.
    due: Picos,
    /// Rate that the queue holds to, bit/s.
    shaped_bps: Option<f64>,
    /// Where the wait is limited.
    forecast: Option<Box<Forecast>>,
    /// The trace is used up: nothing leaves any more.
    exhausted: bool,
    dropped: Dropped<T>,
    /// When the last service began, and the bytes sent before it.
    last_start: Picos,
    last_tx_bytes: u64,
    /// Bytes sent.
    tx_bytes: u64,
}

/// Tells of a first-in first-out queue how long a packet that arrives will wait: the service of all that have come, as a formula.
struct Forecast {
    service: Service,
    max_wait_ps: Picos,
}

impl<T: Send + 'static> ServedLink<T> {
    /// Nothing is due.
    pub const NEVER: Picos = Picos::MAX;

    /// A link that has carried nothing. `seed` and `stream` pick its own random streams, as for [`crate::Link`].
    pub fn new(spec: LinkSpec, seed: u64, stream: u64) -> Self {
        let limit = Limit { packets: spec.buffer.packets, bytes: spec.buffer.bytes };
        let rate_bps = mean_rate_bps(&spec.capacity);
        // Only a drop-tail queue may have such a limit.
        let forecast = spec.buffer.wait_ps.map(|max_wait_ps| {
            Box::new(Forecast { service: Service::new(spec.capacity.clone()), max_wait_ps })
        });
        Self {
            delivery: Delivery::new(&spec, seed, stream),
            queue: spec.queue.build(Place { limit, rate_bps, seed, stream }),
            service: Service::new(spec.capacity),
            loss: spec.loss.map(|model| Box::new(Loss::new(model, seed, stream))),
            due: Self::NEVER,
            shaped_bps: spec.queue.rate_bps(),
            forecast,
            exhausted: false,
            dropped: Vec::new(),
            last_start: 0,
            last_tx_bytes: 0,
            tx_bytes: 0,
        }
    }

    /// When [`Self::serve`] has something to do, unless something arrives before.
    #[inline]
    pub fn due(&self) -> Picos {
        self.due
    }

    /// A packet arrives at `now`. All that was due up to and including `now` must have been served; what is due then is to be
    /// served next.
    pub fn arrive(&mut self, now: Picos, tag: Tag, item: T) {
        let packet = Queued { tag, arrived: now, item };
        if self.loss.as_mut().is_some_and(|loss| loss.on_packet(now)) {
            return self.dropped.push((packet, DropReason::Random));
        }
        let free = if self.exhausted { None } else { self.service.start(now) };
        let Some(free) = free else {
            self.give_up(now);
            return self.dropped.push((packet, DropReason::Exhausted));
        };
        if self.forecast.is_some() {
            self.enqueue_for_at_most(now, packet);
        } else {
            self.queue.enqueue(now, packet, &mut self.dropped);
        }
        if self.queue.backlog().packets > 0 {
            // A queue that held back what it had may let go of what has come.
            self.due = self.due.min(free);
        }
    }

    /// Lets a packet join the queue if it will not wait too long there.
    #[cold]
    fn enqueue_for_at_most(&mut self, now: Picos, packet: Queued<T>) {
        let Some(forecast) = &mut self.forecast else { return };
        let reason = match forecast.service.start(now) {
            Some(start) if start.saturating_sub(now) <= forecast.max_wait_ps => None,
            Some(_) => Some(DropReason::Buffer),
            None => Some(DropReason::Exhausted),
        };
        if let Some(reason) = reason {
            return self.dropped.push((packet, reason));
        }
        let (bytes, dropped_before) = (packet.tag.bytes, self.dropped.len());
        self.queue.enqueue(now, packet, &mut self.dropped);
        if self.dropped.len() == dropped_before {
            forecast.service.serve(now, bytes);
        }
    }

    /// Serves the next packet whose service begins at or before `until`.
    pub fn serve(&mut self, until: Picos) -> Option<Sent<T>> {
        while self.due <= until && self.due != Self::NEVER {
            let now = self.due;
            // A queue that waited has named its own time; at that time a trace may have no opportunity.
            match self.free_from(now) {
                Some(free) if free > now => {
                    self.due = free;
                    continue;
                }
                Some(_) => {}
                None => {
                    self.give_up(now);
                    break;
                }
            }
            match self.queue.dequeue(now, &mut self.dropped) {
                Next::Empty => self.due = Self::NEVER,
                Next::Wait(time) => self.due = time.max(now.saturating_add(1)),
                Next::Packet(packet) => {
                    if let Some(sent) = self.send(now, packet) {
                        return Some(sent);
                    }
                }
            }
        }
        None
    }

    /// A packet dropped since the last call, at either end of the queue or before it.
    #[inline]
    pub fn take_dropped(&mut self) -> Option<(Queued<T>, DropReason)> {
        self.dropped.pop()
    }

    /// What waits, as of the last call.
    pub fn backlog(&self) -> Backlog {
        self.queue.backlog()
    }

    /// What the link writes into the packet that [`Self::serve`] has returned last; nothing if it has no rate.
    pub fn stamp(&self) -> Option<Stamp> {
        let rate_bps = match (self.service.rate_bps(self.last_start), self.shaped_bps) {
            (Some(served), Some(shaped)) => served.min(shaped),
            (served, shaped) => served.or(shaped)?,
        };
        let queue_bytes = self.queue.backlog().bytes;
        Some(Stamp { time: self.last_start, queue_bytes, tx_bytes: self.last_tx_bytes, rate_bps })
    }

    /// As [`crate::Link::offered_bytes`]; of a queue that shapes, what its rate would have let through, if that is less.
    pub fn offered_bytes(&self, from: Picos, to: Picos) -> Option<f64> {
        let seconds = to.saturating_sub(from) as f64 / PS_PER_S as f64;
        let shaped = self.shaped_bps.map(|rate_bps| seconds * rate_bps / 8.0);
        match (self.service.offered_bytes(from, to), shaped) {
            (Some(served), Some(shaped)) => Some(served.min(shaped)),
            (served, shaped) => served.or(shaped),
        }
    }

    /// When the transmitter can serve what may leave from `now` on and has arrived before; `None` if never.
    #[inline]
    fn free_from(&mut self, now: Picos) -> Option<Picos> {
        Some(self.service.start(now.saturating_sub(1))?.max(now))
    }

    /// The packet's service begins at `now`; `None` if a trace ends in the middle of it.
    fn send(&mut self, now: Picos, packet: Queued<T>) -> Option<Sent<T>> {
        let bytes = packet.tag.bytes;
        let Some(departs) = self.service.serve(now, bytes) else {
            self.dropped.push((packet, DropReason::Exhausted));
            self.give_up(now);
            return None;
        };
        (self.last_start, self.last_tx_bytes) = (now, self.tx_bytes);
        self.tx_bytes += u64::from(bytes);
        self.due = Self::NEVER;
        if self.queue.backlog().packets > 0 {
            match self.free_from(now) {
                Some(free) => self.due = free,
                None => self.give_up(now),
            }
        }
        debug_assert!(departs >= now, "service from {now} to {departs} ps");
        let arrives = self.delivery.arrival(departs).max(now.saturating_add(1));
        Some(Sent { packet, departs, arrives })
    }

    /// Empties the queue at `now`: what waits, and what is dropped as it is taken out.
    pub fn drain(&mut self, mut now: Picos) -> Vec<T> {
        let mut left = Vec::new();
        loop {
            match self.queue.dequeue(now, &mut self.dropped) {
                Next::Packet(packet) => left.push(packet.item),
                Next::Wait(time) => now = time,
                Next::Empty => break,
            }
        }
        self.due = Self::NEVER;
        left.extend(self.dropped.drain(..).map(|(packet, _)| packet.item));
        left
    }

    /// The trace is used up at `now`: what waits will never leave.
    fn give_up(&mut self, mut now: Picos) {
        (self.exhausted, self.due) = (true, Self::NEVER);
        loop {
            match self.queue.dequeue(now, &mut self.dropped) {
                Next::Packet(packet) => self.dropped.push((packet, DropReason::Exhausted)),
                Next::Wait(time) => now = time,
                Next::Empty => return,
            }
        }
    }
}

/// Capacity in the long run, bit/s: of one that changes, the first; infinite when unlimited.
fn mean_rate_bps(capacity: &Capacity) -> f64 {
    match capacity {
        Capacity::Unlimited => f64::INFINITY,
        Capacity::Constant(rate_bps) => *rate_bps,
        Capacity::Steps(steps) => steps.first().map_or(f64::INFINITY, |first| first.1),
        Capacity::Trace { trace, .. } => trace.mean_bps(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::queue::{FqSpec, QueueSpec, TokenBucketSpec};
    use crate::{
        Buffer, DelayTrace, Jitter, Link, LossModel, PS_PER_MS, PS_PER_US, Trace, Verdict,
    };
    use proptest::prelude::*;
    use std::sync::Arc;

    /// What becomes of each packet: when it arrives, or why it does not.
    type Fates = Vec<Result<(Picos, Picos), DropReason>>;

    fn by_formula(spec: LinkSpec, arrivals: &[(Picos, u32)]) -> Fates {
        let mut link = Link::new(spec, 7, 3);
        let fate = |&(now, bytes): &(Picos, u32)| match link.enqueue(now, bytes) {
            Verdict::Pass { departs, arrives } => Ok((departs, arrives)),
            Verdict::Drop(reason) => Err(reason),
        };
        arrivals.iter().map(fate).collect()
    }

    fn by_service(spec: LinkSpec, arrivals: &[(Picos, u32)]) -> Fates {
        let mut link = ServedLink::new(spec, 7, 3);
        let mut fates = vec![Ok((0, 0)); arrivals.len()];
        let mut serve = |link: &mut ServedLink<usize>, until| {
            while let Some(sent) = link.serve(until) {
                fates[sent.packet.item] = Ok((sent.departs, sent.arrives));
            }
            while let Some((packet, reason)) = link.take_dropped() {
                fates[packet.item] = Err(reason);
            }
        };
        for (item, &(now, bytes)) in arrivals.iter().enumerate() {
            serve(&mut link, now);
            link.arrive(now, Tag { bytes, ..Tag::default() }, item);
            serve(&mut link, now);
        }
        serve(&mut link, Picos::MAX - 1);
        fates
    }

    fn capacity() -> impl Strategy<Value = Capacity> {
        let trace = prop::collection::vec(1u32..40, 1..20).prop_map(|mut times| {
            times.sort_unstable();
            Arc::new(Trace::from_opportunities(times).expect("a trace"))
        });
        prop_oneof![
            Just(Capacity::Unlimited),
            (1e5f64..1e9).prop_map(Capacity::Constant),
            (1e5f64..1e8, 1e5f64..1e8, 1u64..50)
                .prop_map(|(a, b, ms)| { Capacity::Steps([(0, a), (ms * PS_PER_MS, b)].into()) }),
            (trace, any::<bool>()).prop_map(|(trace, once)| Capacity::Trace { trace, once }),
        ]
    }

    /// 12 Mbit/s, 1500 bytes in 1 ms, from 2 ms on half of it: three packets at 0, one of 750 bytes at 1.5 ms.
    #[test]
    fn a_stamp_is_of_the_moment_in_which_a_packet_leaves_the_queue() {
        let capacity = Capacity::Steps([(0, 12e6), (2 * PS_PER_MS, 6e6)].into());
        let mut link =
            ServedLink::new(LinkSpec { capacity, delay_ps: 7, ..LinkSpec::default() }, 1, 1);
        let mut stamps = Vec::new();
        let mut serve = |link: &mut ServedLink<()>, until| {
            while link.serve(until).is_some() {
                stamps.push(link.stamp().expect("a rate"));
            }
        };
        for (now, bytes) in [(0, 1500), (0, 1500), (0, 1500), (3 * PS_PER_MS / 2, 750)] {
            serve(&mut link, now);
            link.arrive(now, Tag { bytes, ..Tag::default() }, ());
            serve(&mut link, now);
        }
        serve(&mut link, Picos::MAX - 1);
        let expected = [
            // At once: the others have not come.
            (0, 0, 0, 12e6),
            (1, 1500, 1500, 12e6),
            (2, 750, 3000, 6e6),
            (4, 0, 4500, 6e6),
        ];
        let stamp = |(ms, queue_bytes, tx_bytes, rate_bps)| {
            let time = ms * PS_PER_MS;
            Stamp { time, queue_bytes, tx_bytes, rate_bps }
        };
        assert_eq!(stamps, expected.map(stamp));
    }

    #[test]
    fn a_link_without_a_rate_has_nothing_to_stamp_and_one_that_shapes_has_its_own() {
        let stamp = |queue: QueueSpec, capacity| {
            let mut link =
                ServedLink::new(LinkSpec { queue, capacity, ..LinkSpec::default() }, 1, 1);
            link.arrive(0, Tag { bytes: 100, ..Tag::default() }, ());
            assert!(link.serve(0).is_some());
            link.stamp()
        };
        assert_eq!(stamp(QueueSpec::DropTail, Capacity::Unlimited), None);
        let shaper = TokenBucketSpec {
            rate_bps: 5e6,
            burst_bytes: 6000,
            child: Box::new(QueueSpec::DropTail),
        };
        for (capacity, rate) in [(Capacity::Unlimited, 5e6), (Capacity::Constant(1e6), 1e6)] {
            let shaper = QueueSpec::TokenBucket(shaper.clone());
            assert_eq!(stamp(shaper, capacity).map(|stamp| stamp.rate_bps), Some(rate));
        }
        let trace = Arc::new(Trace::from_opportunities(vec![1]).expect("a trace"));
        let mut link = ServedLink::new(
            LinkSpec { capacity: Capacity::Trace { trace, once: false }, ..LinkSpec::default() },
            1,
            1,
        );
        link.arrive(0, Tag { bytes: 100, ..Tag::default() }, ());
        assert!(link.serve(PS_PER_MS).is_some());
        assert_eq!(
            link.stamp().map(|stamp| (stamp.time, stamp.rate_bps)),
            Some((PS_PER_MS, 12_032_000.0))
        );
    }

    /// One packet of 1500 bytes in 4 ms may leave; an opportunity each at 1, 3 and 10 ms and so on.
    #[test]
    fn a_packet_that_its_queue_held_back_leaves_at_the_next_opportunity() {
        let fq = FqSpec { flow_rate_bps: Some(3e6), ..FqSpec::default() };
        let depart = |once| {
            let trace = Arc::new(Trace::from_opportunities(vec![1, 3, 10]).expect("a trace"));
            let capacity = Capacity::Trace { trace, once };
            let spec = LinkSpec { capacity, queue: QueueSpec::Fq(fq), ..LinkSpec::default() };
            let fates = by_service(spec, &[(0, 1500); 4]).into_iter();
            let ms = |fate: Result<(Picos, Picos), _>| fate.map(|(departs, _)| departs / PS_PER_MS);
            fates.map(ms).collect::<Vec<_>>()
        };
        // At 5, 14 and 24 ms the next may leave.
        assert_eq!(depart(false), [Ok(1), Ok(10), Ok(20), Ok(30)]);
        let never = Err(DropReason::Exhausted);
        assert_eq!(depart(true), [Ok(1), Ok(10), never, never]);
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(2000))]
        /// With a drop-tail queue, the link is the formula.
        #[test]
        fn agrees_with_the_formula(
            capacity in capacity(),
            packets in prop::option::of(1u64..8),
            bytes in prop::option::of(1504u64..9000),
            wait_ms in prop::option::weighted(0.3, 0u64..30),
            jitter in any::<bool>(),
            loss in any::<bool>(),
            changes in any::<bool>(),
            gaps in prop::collection::vec((0u64..4000, 40u32..1504), 1..80),
        ) {
            let once = matches!(capacity, Capacity::Trace { once: true, .. });
            let spec = LinkSpec {
                capacity,
                delay_ps: 5 * PS_PER_MS,
                delay_trace: changes.then(|| {
                    DelayTrace::parse(b"0 9\n10 30\n12.5 0\n", "t").expect("times ascend").into()
                }),
                queue: QueueSpec::DropTail,
                buffer: Buffer { packets, bytes, wait_ps: wait_ms.map(|ms| ms * PS_PER_MS) },
                loss: loss.then_some(LossModel::Bernoulli(0.1)),
                jitter: jitter.then_some(Jitter { mean_ps: PS_PER_MS, max_ps: 3 * PS_PER_MS, reorder: false }),
                reorder: None,
            };
            let mut now = 0;
            let arrivals: Vec<_> = gaps.into_iter().map(|(gap, bytes)| {
                // In steps of 0.25 ms, so that arrivals fall on opportunities and departures.
                now += gap * PS_PER_US / 250 * 250;
                (now, bytes)
            }).collect();
            let mut fates = [by_service(spec.clone(), &arrivals), by_formula(spec, &arrivals)];
            if once {
                // The formula knows on arrival that a packet will never leave; a queue lets it take up room until then.
                let vain = |fate: &mut Result<_, _>| if fate.is_err() { *fate = Err(DropReason::Exhausted) };
                fates.iter_mut().flatten().for_each(vain);
            }
            prop_assert_eq!(&fates[0], &fates[1]);
        }
    }
}
