//! A token bucket in front of any queue, as Linux's `sch_tbf`: a rate on average, bursts of a size as fast as the link goes.

use super::{Dropped, Limit, Next, Place, Queue, QueueSpec, Queued};
use crate::link::{Backlog, DropReason};
use crate::{PS_PER_S, Picos};

/// Parameters of a token bucket.
#[derive(Clone, Debug, PartialEq)]
pub struct TokenBucketSpec {
    /// Rate at which tokens come, bit/s.
    pub rate_bps: f64,
    /// Size of the bucket, bytes: what may leave at once after a pause.
    pub burst_bytes: u64,
    /// The queue in which packets wait for tokens.
    pub child: Box<QueueSpec>,
}

impl TokenBucketSpec {
    pub(super) fn fault(&self) -> Option<(&'static str, f64, &'static str)> {
        rate_fault("queue.rate", self.rate_bps)
            .or_else(|| {
                let none = self.burst_bytes == 0;
                none.then_some(("queue.burst", 0.0, "a number of bytes above 0"))
            })
            .or_else(|| self.child.fault())
    }
}

/// What is wrong with a rate.
pub(super) fn rate_fault(
    key: &'static str,
    rate_bps: f64,
) -> Option<(&'static str, f64, &'static str)> {
    let good = rate_bps.is_finite() && rate_bps > 0.0;
    (!good).then_some((key, rate_bps, "a positive rate in bit/s"))
}

/// Tokens for bytes. Measured by the time in which they come, so a level is a distance between two times and does not have to
/// be kept up to date.
#[derive(Clone, Debug)]
pub(super) struct Bucket {
    byte_ps: f64,
    /// Time in which an empty bucket fills, ps.
    depth_ps: Picos,
    /// The bucket is full from this time on unless something is taken out, ps.
    full_at: Picos,
}

impl Bucket {
    /// A full bucket.
    pub(super) fn new(rate_bps: f64, burst_bytes: u64) -> Self {
        let byte_ps = 8.0 * PS_PER_S as f64 / rate_bps;
        Self { byte_ps, depth_ps: (burst_bytes as f64 * byte_ps) as Picos, full_at: 0 }
    }

    fn cost(&self, bytes: u32) -> Picos {
        (f64::from(bytes) * self.byte_ps) as Picos
    }

    /// When the bucket holds the tokens of `bytes`; of a packet larger than the bucket, when it is full.
    pub(super) fn ready(&self, bytes: u32) -> Picos {
        let cost = self.cost(bytes).min(self.depth_ps);
        self.full_at.saturating_add(cost).saturating_sub(self.depth_ps)
    }

    /// Takes the tokens of `bytes` out at `now`.
    pub(super) fn take(&mut self, now: Picos, bytes: u32) {
        self.full_at = self.full_at.max(now).saturating_add(self.cost(bytes));
    }
}

/// A queue behind a token bucket.
pub(super) struct TokenBucket<T> {
    bucket: Bucket,
    child: Box<dyn Queue<T>>,
    /// The packet that leaves next, out of the child already.
    head: Option<Queued<T>>,
    /// Limit of a drop-tail child, which does not know of the packet at the head.
    limit: Limit,
}

impl<T: Send + 'static> TokenBucket<T> {
    pub(super) fn new(spec: &TokenBucketSpec, place: Place) -> Self {
        let plain = *spec.child == QueueSpec::DropTail;
        let rate_bps = place.rate_bps.min(spec.rate_bps);
        Self {
            bucket: Bucket::new(spec.rate_bps, spec.burst_bytes),
            child: spec.child.build(Place { rate_bps, ..place }),
            head: None,
            limit: if plain { place.limit } else { Limit::default() },
        }
    }
}

impl<T: Send> Queue<T> for TokenBucket<T> {
    fn enqueue(&mut self, now: Picos, packet: Queued<T>, dropped: &mut Dropped<T>) {
        if !self.limit.admits(self.backlog(), packet.tag.bytes) {
            return dropped.push((packet, DropReason::Buffer));
        }
        self.child.enqueue(now, packet, dropped);
    }

    fn dequeue(&mut self, now: Picos, dropped: &mut Dropped<T>) -> Next<T> {
        let packet = match self.head.take() {
            Some(packet) => packet,
            None => match self.child.dequeue(now, dropped) {
                Next::Packet(packet) => packet,
                other => return other,
            },
        };
        let ready = self.bucket.ready(packet.tag.bytes);
        if ready > now {
            self.head = Some(packet);
            return Next::Wait(ready);
        }
        self.bucket.take(now, packet.tag.bytes);
        Next::Packet(packet)
    }

    fn backlog(&self) -> Backlog {
        let mut backlog = self.child.backlog();
        if let Some(packet) = &self.head {
            backlog += packet;
        }
        backlog
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::*;
    use super::*;
    use crate::PS_PER_MS;

    /// When each of `count` packets that come at once leaves, ms: 12 Mbit/s, a packet of 1500 bytes per ms.
    fn departures(burst_bytes: u64, count: u64) -> Vec<u64> {
        let child = Box::new(QueueSpec::DropTail);
        let spec = TokenBucketSpec { rate_bps: 12e6, burst_bytes, child };
        let place = Place { limit: Limit::default(), rate_bps: 1e9, seed: 0, stream: 0 };
        let mut queue = TokenBucket::new(&spec, place);
        assert!(fill(&mut queue, 0, 0..count).is_empty());
        let (mut now, mut times, mut dropped) = (0, Vec::new(), Vec::new());
        loop {
            match queue.dequeue(now, &mut dropped) {
                Next::Packet(_) => times.push(now / PS_PER_MS),
                Next::Wait(time) => now = time,
                Next::Empty => return times,
            }
        }
    }

    #[test]
    fn a_burst_leaves_at_once_and_the_rest_at_the_rate() {
        assert_eq!(departures(4500, 6), [0, 0, 0, 1, 2, 3]);
        assert_eq!(departures(1500, 4), [0, 1, 2, 3]);
        // A packet larger than the bucket leaves when that is full, and makes the next wait for all its tokens.
        assert_eq!(departures(750, 3), [0, 1, 2]);
    }

    #[test]
    fn tokens_fill_up_to_the_size_of_the_bucket() {
        let mut bucket = Bucket::new(12e6, 3000);
        bucket.take(0, 3000);
        assert_eq!(bucket.ready(1500), PS_PER_MS);
        assert_eq!(bucket.ready(3000), 2 * PS_PER_MS);
        // After a long time it holds 3000 bytes, no more.
        bucket.take(1_000 * PS_PER_MS, 3000);
        assert_eq!(bucket.ready(1500), 1_001 * PS_PER_MS);
    }

    #[test]
    fn the_packet_that_waits_for_tokens_counts() {
        let child = Box::new(QueueSpec::DropTail);
        let spec = TokenBucketSpec { rate_bps: 12e6, burst_bytes: 1500, child };
        let limit = Limit { packets: Some(3), bytes: None };
        let mut queue = TokenBucket::new(&spec, Place { limit, rate_bps: 1e9, seed: 0, stream: 0 });
        let mut dropped = Vec::new();
        assert!(fill(&mut queue, 0, 0..2).is_empty());
        assert!(matches!(queue.dequeue(0, &mut dropped), Next::Packet(_)));
        assert_eq!(queue.dequeue(0, &mut dropped), Next::Wait(PS_PER_MS));
        assert_eq!(fill(&mut queue, 0, 2..6), [4, 5]);
        assert_eq!(queue.backlog(), Backlog { packets: 3, bytes: 4500 });
    }
}
