//! FQ-CoDel (RFC 8290): flows hashed into queues that are served in turn, each with a CoDel of its own. Section numbers are those
//! of the RFC.

use super::codel::{CodelSpec, ControlLaw};
use super::fifo::Fifo;
use super::rounds::Rounds;
use super::{Dropped, Limit, Next, Place, Queue, Queued};
use crate::Picos;
use crate::link::{Backlog, DropReason};
use crate::random::mix;

/// Parameters of FQ-CoDel.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct FqCodelSpec {
    /// Number of queues that flows are hashed into (§5.2.3).
    pub flows: u32,
    /// Bytes a queue may send per turn (§5.2.4).
    pub quantum_bytes: u32,
    /// CoDel of every queue (§5.2.1, §5.2.2). The RFC has marks on (§5.2.6); here they are off unless asked for, as in every queue.
    pub codel: CodelSpec,
}

impl Default for FqCodelSpec {
    fn default() -> Self {
        Self { flows: 1024, quantum_bytes: 1514, codel: CodelSpec::default() }
    }
}

impl FqCodelSpec {
    pub(super) fn fault(&self) -> Option<(&'static str, f64, &'static str)> {
        if !(1..=65536).contains(&self.flows) {
            return Some(("queue.flows", f64::from(self.flows), "1 to 65536"));
        }
        if self.quantum_bytes == 0 {
            return Some(("queue.quantum", 0.0, "a number of bytes above 0"));
        }
        self.codel.fault()
    }
}

/// On overflow the fattest queue loses half of its packets, at most so many (§4.1).
const MOST_AT_ONCE: u64 = 64;

#[derive(Debug)]
struct Bucket<T> {
    fifo: Fifo<T>,
    law: ControlLaw,
    /// Bytes it may still send in this turn.
    deficit: i64,
    /// In one of the lists.
    active: bool,
}

/// All flows' queues.
#[derive(Debug)]
pub(super) struct FqCodel<T> {
    spec: FqCodelSpec,
    limit: Limit,
    /// Makes the hash another one in every run.
    salt: u64,
    buckets: Vec<Bucket<T>>,
    rounds: Rounds,
    backlog: Backlog,
}

impl<T> FqCodel<T> {
    pub(super) fn new(spec: &FqCodelSpec, place: Place) -> Self {
        let bucket = |_| Bucket {
            fifo: Fifo::default(),
            law: ControlLaw::default(),
            deficit: 0,
            active: false,
        };
        Self {
            spec: *spec,
            limit: place.limit,
            salt: mix(place.seed ^ mix(place.stream)),
            buckets: (0..spec.flows.max(1)).map(bucket).collect(),
            rounds: Rounds::default(),
            backlog: Backlog::default(),
        }
    }

    fn bucket_of(&self, flow: u32) -> usize {
        (mix(self.salt ^ u64::from(flow)) % self.buckets.len() as u64) as usize
    }

    /// Makes room at the head of the queue that holds most bytes (§4.1).
    fn drop_from_fattest(&mut self, dropped: &mut Dropped<T>) {
        let bytes = |index: &usize| self.buckets[*index].fifo.backlog().bytes;
        let Some(fattest) = self.rounds.iter().max_by_key(bytes) else { return };
        let bucket = &mut self.buckets[fattest];
        let half = bucket.fifo.backlog().packets.div_ceil(2);
        for _ in 0..half.min(MOST_AT_ONCE) {
            let Some(packet) = bucket.fifo.pop() else { return };
            self.backlog -= &packet;
            dropped.push((packet, DropReason::Buffer));
        }
    }
}

impl<T: Send> Queue<T> for FqCodel<T> {
    fn enqueue(&mut self, _now: Picos, packet: Queued<T>, dropped: &mut Dropped<T>) {
        let index = self.bucket_of(packet.tag.flow);
        while !self.limit.admits(self.backlog, packet.tag.bytes) {
            if self.backlog.packets == 0 {
                return dropped.push((packet, DropReason::Buffer));
            }
            self.drop_from_fattest(dropped);
        }
        self.backlog += &packet;
        let bucket = &mut self.buckets[index];
        bucket.fifo.push(packet);
        if !bucket.active {
            bucket.active = true;
            bucket.deficit = i64::from(self.spec.quantum_bytes);
            self.rounds.join(index);
        }
    }

    /// §4.2.
    fn dequeue(&mut self, now: Picos, dropped: &mut Dropped<T>) -> Next<T> {
        while let Some(index) = self.rounds.turn() {
            let bucket = &mut self.buckets[index];
            if bucket.deficit <= 0 {
                bucket.deficit += i64::from(self.spec.quantum_bytes);
                self.rounds.yield_turn();
                continue;
            }
            let before = dropped.len();
            let packet = bucket.law.dequeue(now, &mut bucket.fifo, &self.spec.codel, dropped);
            for (lost, _) in &dropped[before..] {
                self.backlog -= lost;
            }
            let Some(packet) = packet else {
                bucket.active = !self.rounds.finish_turn();
                continue;
            };
            bucket.deficit -= i64::from(packet.tag.bytes);
            self.backlog -= &packet;
            return Next::Packet(packet);
        }
        Next::Empty
    }

    fn backlog(&self) -> Backlog {
        self.backlog
    }
}

#[cfg(test)]
mod tests {
    use super::super::Tag;
    use super::*;
    use crate::PS_PER_MS;

    fn of_flow(now: Picos, flow: u32, item: u64) -> Queued<u64> {
        Queued { tag: Tag { bytes: 1500, flow, ..Tag::default() }, arrived: now, item }
    }

    fn queue(packets: u64) -> FqCodel<u64> {
        let limit = Limit { packets: Some(packets), bytes: None };
        FqCodel::new(&FqCodelSpec::default(), Place { limit, rate_bps: 1e9, seed: 1, stream: 0 })
    }

    #[test]
    fn bulk_flows_share_within_a_quantum() {
        let mut queue = queue(10_000);
        let mut dropped = Vec::new();
        for k in 0..300 {
            for flow in 0..4 {
                // Flow 3 offers twice as much.
                for _ in 0..1 + u32::from(flow == 3) {
                    queue.enqueue(0, of_flow(0, flow, k), &mut dropped);
                }
            }
        }
        let mut sent = [0_i64; 4];
        for _ in 0..800 {
            let Next::Packet(packet) = queue.dequeue(1, &mut dropped) else { panic!("empty") };
            sent[packet.tag.flow as usize] += i64::from(packet.tag.bytes);
            let (least, most) = (sent.iter().min().unwrap(), sent.iter().max().unwrap());
            assert!(most - least <= 1514 + 1500, "{sent:?}");
        }
    }

    #[test]
    fn a_sparse_flow_goes_first() {
        let mut queue = queue(10_000);
        let mut dropped = Vec::new();
        for k in 0..100 {
            queue.enqueue(0, of_flow(0, 1, k), &mut dropped);
        }
        // The bulk flow has had its first turn.
        for _ in 0..3 {
            queue.dequeue(0, &mut dropped);
        }
        for k in 0..5 {
            queue.enqueue(0, of_flow(0, 2, 1000 + k), &mut dropped);
            let Next::Packet(packet) = queue.dequeue(0, &mut dropped) else { panic!("empty") };
            assert_eq!(packet.item, 1000 + k, "at most one packet of the bulk flow in between");
            // It must sit out a round before it is new again.
            queue.dequeue(0, &mut dropped);
            queue.dequeue(0, &mut dropped);
        }
    }

    #[test]
    fn overflow_hits_the_fattest() {
        let mut queue = queue(100);
        let mut dropped = Vec::new();
        for k in 0..90 {
            queue.enqueue(0, of_flow(0, 1, k), &mut dropped);
        }
        for k in 0..20 {
            queue.enqueue(0, of_flow(0, 2, 1000 + k), &mut dropped);
        }
        // Half of 90, from the head.
        let lost: Vec<u64> = dropped.iter().map(|(packet, _)| packet.item).collect();
        assert_eq!(lost, (0..45).collect::<Vec<_>>());
        assert_eq!(queue.backlog(), Backlog { packets: 65, bytes: 65 * 1500 });
    }

    #[test]
    fn every_flow_has_a_codel_of_its_own() {
        // Flow 1 keeps 200 packets waiting, flow 2 sends one packet every 5 ms; a packet leaves per ms.
        let mut queue = queue(10_000);
        let (mut dropped, mut waiting) = (Vec::new(), 0);
        for ms in 0..3000_u64 {
            let now = ms * PS_PER_MS;
            while waiting < 200 {
                queue.enqueue(now, of_flow(now, 1, 0), &mut dropped);
                waiting += 1;
            }
            if ms % 5 == 0 {
                queue.enqueue(now, of_flow(now, 2, 0), &mut dropped);
            }
            if let Next::Packet(packet) = queue.dequeue(now, &mut dropped) {
                waiting -= u64::from(packet.tag.flow == 1);
                assert!(packet.tag.flow == 1 || packet.wait(now) <= 2 * PS_PER_MS);
            }
            waiting -= dropped.iter().filter(|(packet, _)| packet.tag.flow == 1).count() as u64;
            assert!(dropped.iter().all(|(packet, _)| packet.tag.flow == 1));
            dropped.clear();
        }
    }
}
