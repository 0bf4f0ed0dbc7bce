//! The essentials of CAKE (Høiland-Jørgensen, Täht and Morton 2018): tins by class, flows kept apart and hosts treated alike, and
//! COBALT, which is CoDel beside BLUE.
//!
//! Left out: the ACK filter, overhead compensation, and the shaper, for which a token bucket can be put in front.

use std::collections::BTreeMap;

use super::fifo::Fifo;
use super::rounds::Rounds;
use super::{Dropped, Limit, Next, Place, Queue, Queued, Tag};
use crate::link::{Backlog, DropReason};
use crate::random::{RandomStream, mix};
use crate::{PS_PER_MS, PS_PER_S, Picos};

/// Parameters of CAKE.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct CakeSpec {
    /// Number of tins, 1 to 8: a packet's class, the last for what is beyond. Each is assured half of what the one before has.
    pub tins: u16,
    /// Flows of hosts with many share what hosts with few have alone.
    pub host_isolation: bool,
    /// Wait that is acceptable as a standing queue, ps.
    pub target_ps: Picos,
    /// A worst-case RTT, ps.
    pub interval_ps: Picos,
}

impl Default for CakeSpec {
    fn default() -> Self {
        let (target_ps, interval_ps) = (5 * PS_PER_MS, 100 * PS_PER_MS);
        Self { tins: 1, host_isolation: true, target_ps, interval_ps }
    }
}

impl CakeSpec {
    pub(super) fn fault(&self) -> Option<(&'static str, f64, &'static str)> {
        if !(1..=8).contains(&self.tins) {
            return Some(("queue.tins", f64::from(self.tins), "1 to 8"));
        }
        (self.interval_ps == 0).then_some(("queue.interval", 0.0, "a time above 0"))
    }
}

/// Queues per tin, in sets of so many ways: two flows share a queue only if their set is full.
const QUEUES: usize = 1024;
const WAYS: usize = 8;
/// Bytes a flow may send per turn.
const QUANTUM: i64 = 1514;
const PACKET_BYTES: u32 = 1514;
/// BLUE: steps of the probability on overflow and on emptiness.
const BLUE_UP: f64 = 1.0 / 256.0;
const BLUE_DOWN: f64 = 1.0 / 4096.0;

/// CoDel that counts back down instead of forgetting, beside BLUE for what does not respond.
#[derive(Clone, Debug, Default)]
struct Cobalt {
    count: u32,
    drop_next: Picos,
    dropping: bool,
    blue: f64,
    blue_moved: Picos,
}

impl Cobalt {
    /// The queue overflowed.
    fn on_overflow(&mut self, now: Picos, target_ps: Picos) {
        if now.saturating_sub(self.blue_moved) > target_ps {
            self.blue = (self.blue + BLUE_UP).min(1.0);
            self.blue_moved = now;
        }
        self.dropping = true;
        self.drop_next = now;
        self.count = self.count.max(1);
    }

    /// The queue ran empty.
    fn on_empty(&mut self, now: Picos, spec: &CakeSpec) {
        if self.blue > 0.0 && now.saturating_sub(self.blue_moved) > spec.target_ps {
            self.blue = (self.blue - BLUE_DOWN).max(0.0);
            self.blue_moved = now;
        }
        self.dropping = false;
        if self.count > 0 && now >= self.drop_next {
            self.count -= 1;
            self.drop_next = self.after(now, spec);
        }
    }

    fn after(&self, time: Picos, spec: &CakeSpec) -> Picos {
        let gap = spec.interval_ps as f64 / f64::from(self.count.max(1)).sqrt();
        time.saturating_add(gap as Picos)
    }

    /// Whether the packet at the head is to be dropped; it may be marked instead.
    fn condemns<T>(
        &mut self,
        now: Picos,
        packet: &mut Queued<T>,
        too_long: bool,
        spec: &CakeSpec,
        random: &mut RandomStream,
    ) -> bool {
        // Of the last time above target; such a drop is not too late now.
        let mut due = self.count > 0 && now >= self.drop_next;
        let mut drops = false;
        if too_long && !self.dropping {
            self.dropping = true;
            self.count = self.count.max(1);
            self.drop_next = self.after(now, spec);
        } else if !too_long {
            self.dropping = false;
        }
        if due && self.dropping {
            drops = !packet.tag.ecn.mark();
            self.count = self.count.saturating_add(1);
            self.drop_next = self.after(self.drop_next, spec);
        } else {
            while due {
                self.count -= 1;
                self.drop_next = self.after(self.drop_next, spec);
                due = self.count > 0 && now >= self.drop_next;
            }
        }
        drops || (self.blue > 0.0 && random.chance(self.blue))
    }
}

#[derive(Debug)]
struct Flow<T> {
    fifo: Fifo<T>,
    cobalt: Cobalt,
    /// Whose it is while it has something to send.
    tag: Tag,
    deficit: i64,
    active: bool,
}

/// A class of traffic.
#[derive(Debug)]
struct Tin<T> {
    flows: Vec<Flow<T>>,
    rounds: Rounds,
    /// Active flows of each source and of each destination.
    hosts: [BTreeMap<u32, u32>; 2],
    backlog: Backlog,
    quantum: i64,
    deficit: i64,
}

impl<T> Tin<T> {
    fn new(quantum: i64) -> Self {
        let flow = |_| Flow {
            fifo: Fifo::default(),
            cobalt: Cobalt::default(),
            tag: Tag::default(),
            deficit: 0,
            active: false,
        };
        Self {
            flows: (0..QUEUES).map(flow).collect(),
            rounds: Rounds::default(),
            hosts: Default::default(),
            backlog: Backlog::default(),
            quantum,
            deficit: 0,
        }
    }

    /// The queue of a flow: its own if it has one in its set, else one that is free, else one that it must share.
    fn queue_of(&self, tag: &Tag, salt: u64) -> usize {
        let hash = mix(salt ^ u64::from(tag.flow)) as usize;
        let set = hash / WAYS % (QUEUES / WAYS) * WAYS;
        let ways = set..set + WAYS;
        let own =
            |index: &usize| self.flows[*index].active && self.flows[*index].tag.flow == tag.flow;
        let free = |index: &usize| !self.flows[*index].active;
        ways.clone().find(own).or_else(|| ways.clone().find(free)).unwrap_or(set + hash % WAYS)
    }

    fn activate(&mut self, index: usize, tag: Tag) {
        self.flows[index].tag = tag;
        self.flows[index].active = true;
        for (hosts, host) in self.hosts.iter_mut().zip(tag.hosts) {
            *hosts.entry(host).or_default() += 1;
        }
        self.flows[index].deficit = self.quantum_of(index);
        self.rounds.join(index);
    }

    fn deactivate(&mut self, index: usize) {
        self.flows[index].active = false;
        for (hosts, host) in self.hosts.iter_mut().zip(self.flows[index].tag.hosts) {
            if let Some(flows) = hosts.get_mut(&host) {
                *flows -= 1;
                if *flows == 0 {
                    hosts.remove(&host);
                }
            }
        }
    }

    /// Bytes per turn: a flow shares its host's quantum with the host's other flows, by source or by destination, whichever
    /// has more ("triple isolation").
    fn quantum_of(&self, index: usize) -> i64 {
        let hosts = self.hosts.iter().zip(self.flows[index].tag.hosts);
        let flows = hosts.filter_map(|(hosts, host)| hosts.get(&host)).max();
        (QUANTUM / i64::from(*flows.unwrap_or(&1)).max(1)).max(1)
    }
}

/// All tins.
#[derive(Debug)]
pub(super) struct Cake<T> {
    spec: CakeSpec,
    limit: Limit,
    salt: u64,
    random: RandomStream,
    /// Time that a packet takes on the link, ps: a few of them are no standing queue, however slow the link.
    packet_ps: Picos,
    tins: Vec<Tin<T>>,
    turn: usize,
    backlog: Backlog,
}

impl<T> Cake<T> {
    pub(super) fn new(spec: &CakeSpec, place: Place) -> Self {
        let tins = spec.tins.max(1);
        Self {
            spec: *spec,
            limit: place.limit,
            salt: mix(place.seed ^ mix(place.stream)),
            random: place.random(),
            packet_ps: (f64::from(PACKET_BYTES) * 8.0 / place.rate_bps * PS_PER_S as f64) as Picos,
            tins: (0..tins).map(|tin| Tin::new(QUANTUM << (tins - 1 - tin))).collect(),
            turn: 0,
            backlog: Backlog::default(),
        }
    }

    /// Makes room at the head of the queue that holds most bytes.
    fn drop_from_fattest(&mut self, now: Picos, dropped: &mut Dropped<T>) {
        let tins = self.tins.iter_mut();
        let Some(tin) = tins.max_by_key(|tin| tin.backlog.bytes) else { return };
        let bytes = |index: &usize| tin.flows[*index].fifo.backlog().bytes;
        let Some(fattest) = tin.rounds.iter().max_by_key(bytes) else { return };
        let flow = &mut tin.flows[fattest];
        flow.cobalt.on_overflow(now, self.spec.target_ps);
        if let Some(packet) = flow.fifo.pop() {
            tin.backlog -= &packet;
            self.backlog -= &packet;
            dropped.push((packet, DropReason::Buffer));
        }
    }

    /// The next packet of a tin.
    fn dequeue_from(
        &mut self,
        tin: usize,
        now: Picos,
        dropped: &mut Dropped<T>,
    ) -> Option<Queued<T>> {
        let Self { spec, random, packet_ps, tins, backlog, .. } = self;
        let tin = &mut tins[tin];
        while let Some(index) = tin.rounds.turn() {
            if tin.flows[index].deficit <= 0 {
                let quantum = if spec.host_isolation { tin.quantum_of(index) } else { QUANTUM };
                tin.flows[index].deficit += quantum;
                tin.rounds.yield_turn();
                continue;
            }
            let flow = &mut tin.flows[index];
            let Some(mut packet) = flow.fifo.pop() else {
                flow.cobalt.on_empty(now, spec);
                if tin.rounds.finish_turn() {
                    tin.deactivate(index);
                }
                continue;
            };
            tin.backlog -= &packet;
            *backlog -= &packet;
            let wait = packet.wait(now);
            let too_long = wait > spec.target_ps && wait > 4 * *packet_ps;
            let condemned = flow.cobalt.condemns(now, &mut packet, too_long, spec, random);
            // The last packet of a queue may be marked, but it is not dropped.
            if condemned && flow.fifo.front().is_some() {
                dropped.push((packet, DropReason::Managed));
                continue;
            }
            flow.deficit -= i64::from(packet.tag.bytes);
            return Some(packet);
        }
        None
    }
}

impl<T: Send> Queue<T> for Cake<T> {
    fn enqueue(&mut self, now: Picos, packet: Queued<T>, dropped: &mut Dropped<T>) {
        while !self.limit.admits(self.backlog, packet.tag.bytes) {
            if self.backlog.packets == 0 {
                return dropped.push((packet, DropReason::Buffer));
            }
            self.drop_from_fattest(now, dropped);
        }
        self.backlog += &packet;
        let last = self.tins.len() - 1;
        let tin = &mut self.tins[usize::from(packet.tag.class).min(last)];
        let index = tin.queue_of(&packet.tag, self.salt);
        if !tin.flows[index].active {
            tin.activate(index, packet.tag);
        }
        tin.backlog += &packet;
        tin.flows[index].fifo.push(packet);
    }

    /// Deficit round robin over the tins, then over the flows of one.
    fn dequeue(&mut self, now: Picos, dropped: &mut Dropped<T>) -> Next<T> {
        while self.backlog.packets > 0 {
            let turn = self.turn;
            if self.tins[turn].backlog.packets > 0 && self.tins[turn].deficit > 0 {
                if let Some(packet) = self.dequeue_from(turn, now, dropped) {
                    self.tins[turn].deficit -= i64::from(packet.tag.bytes);
                    return Next::Packet(packet);
                }
                continue;
            }
            // A tin with nothing to send keeps no deficit for later.
            let tin = &mut self.tins[turn];
            tin.deficit = if tin.backlog.packets > 0 { tin.deficit + tin.quantum } else { 0 };
            self.turn = (turn + 1) % self.tins.len();
        }
        Next::Empty
    }

    fn backlog(&self) -> Backlog {
        self.backlog
    }
}

#[cfg(test)]
mod tests {
    use super::super::Ecn;
    use super::*;

    fn cake(spec: CakeSpec, packets: Option<u64>) -> Cake<u64> {
        let limit = Limit { packets, bytes: None };
        Cake::new(&spec, Place { limit, rate_bps: 12e6, seed: 5, stream: 0 })
    }

    fn tag(flow: u32, host: u32) -> Tag {
        Tag { bytes: 1500, flow, hosts: [host, 0], ..Tag::default() }
    }

    /// Packets served of each tag when all of them always have something to send.
    fn shares(spec: CakeSpec, tags: &[Tag], count: usize) -> Vec<usize> {
        let mut queue = cake(spec, None);
        let mut dropped = Vec::new();
        let mut served = vec![0; tags.len()];
        for (item, tag) in (0..).zip(tags) {
            for _ in 0..3 {
                queue.enqueue(0, Queued { tag: *tag, arrived: 0, item }, &mut dropped);
            }
        }
        for _ in 0..count {
            let Next::Packet(packet) = queue.dequeue(0, &mut dropped) else { panic!("empty") };
            served[packet.item as usize] += 1;
            queue.enqueue(0, packet, &mut dropped);
        }
        served
    }

    /// Two sources to different destinations, one with a flow and one with ten.
    #[test]
    fn hosts_share_alike() {
        let mut tags = vec![Tag { hosts: [1, 100], ..tag(0, 1) }];
        tags.extend((1..=10).map(|flow| Tag { hosts: [2, 100 + flow], ..tag(flow, 2) }));
        let isolated = shares(CakeSpec::default(), &tags, 11_000);
        assert!((isolated[0] as f64 / 11_000.0 - 0.5).abs() < 0.01, "{isolated:?}");
        let flows = CakeSpec { host_isolation: false, ..CakeSpec::default() };
        let alone = shares(flows, &tags, 11_000);
        assert!(alone.iter().all(|n| (990..=1010).contains(n)), "{alone:?}");
    }

    #[test]
    fn tins_share_by_halves() {
        let tags: Vec<_> = (0..3).map(|class| Tag { class, ..tag(class.into(), 1) }).collect();
        let served = shares(CakeSpec { tins: 3, ..CakeSpec::default() }, &tags, 7_000);
        for (served, expected) in served.iter().zip([4000, 2000, 1000]) {
            assert!((*served as i64 - expected).abs() < 20, "{served} of {expected}");
        }
    }

    #[test]
    fn flows_do_not_collide_before_their_set_is_full() {
        let mut queue = cake(CakeSpec::default(), None);
        let mut dropped = Vec::new();
        // Plain hashing of 100 flows into 1024 queues would make about five collisions.
        for flow in 0..100 {
            queue.enqueue(0, Queued { tag: tag(flow, flow), arrived: 0, item: 0 }, &mut dropped);
        }
        let most = queue.tins[0].flows.iter().map(|flow| flow.fifo.backlog().packets).max();
        assert_eq!(most, Some(1));
    }

    /// One packet per ms leaves, two arrive: COBALT must find how many to drop.
    #[test]
    fn overload_that_does_not_respond_is_met_by_both() {
        let mut queue = cake(CakeSpec::default(), Some(500));
        let (mut dropped, mut late) = (Vec::new(), Vec::new());
        for ms in 0..120_000 {
            let now = ms * PS_PER_MS;
            for _ in 0..2 {
                queue.enqueue(now, Queued { tag: tag(1, 1), arrived: now, item: 0 }, &mut dropped);
            }
            if let Next::Packet(packet) = queue.dequeue(now, &mut dropped) {
                late.push(packet.wait(now) / PS_PER_MS);
            }
        }
        // Full at first (500 packets, and they leave at 1 per ms), short in the end.
        assert!(late.iter().max() > Some(&200), "{:?}", late.iter().max());
        let end = &late[late.len() - 10_000..];
        let mean = end.iter().sum::<u64>() as f64 / end.len() as f64;
        assert!(mean < 50.0, "mean wait {mean} ms");
    }

    /// A drop that was due when the queue grew again is made at once: the next is due 100 / sqrt(4) + 100 / sqrt(5) ms later.
    #[test]
    fn cobalt_resumes_where_it_was() {
        let spec = CakeSpec::default();
        let mut random =
            Place { limit: Limit::default(), rate_bps: 1.0, seed: 0, stream: 0 }.random();
        let mut cobalt = Cobalt { count: 4, drop_next: 0, ..Cobalt::default() };
        let mut packet = Queued { tag: tag(0, 0), arrived: 0, item: 0 };
        assert!(cobalt.condemns(10 * PS_PER_MS, &mut packet, true, &spec, &mut random));
        assert_eq!(cobalt.count, 5);
        assert!((cobalt.drop_next as f64 / PS_PER_MS as f64 - 104.7).abs() < 0.1);
    }

    #[test]
    fn the_last_packet_of_a_queue_is_marked_but_not_dropped() {
        for ecn in [Ecn::NotCapable, Ecn::Capable] {
            let mut queue = cake(CakeSpec::default(), None);
            let mut dropped = Vec::new();
            let tag = Tag { ecn, ..tag(0, 0) };
            queue.enqueue(0, Queued { tag, arrived: 0, item: 0 }, &mut dropped);
            for flow in &mut queue.tins[0].flows {
                flow.cobalt = Cobalt { count: 4, dropping: true, ..Cobalt::default() };
            }
            let next = queue.dequeue(PS_PER_S, &mut dropped);
            let Next::Packet(packet) = next else { panic!("dropped") };
            assert_eq!(packet.tag.ecn == Ecn::Marked, ecn == Ecn::Capable);
        }
    }

    #[test]
    fn cobalt_counts_down_when_the_queue_is_short_again() {
        let spec = CakeSpec::default();
        let mut random =
            Place { limit: Limit::default(), rate_bps: 1.0, seed: 0, stream: 0 }.random();
        let mut cobalt = Cobalt { count: 4, drop_next: 0, ..Cobalt::default() };
        let mut packet = Queued { tag: tag(0, 0), arrived: 0, item: 0 };
        // At 100 ms: 4 -> 3 and the next is due 57.7 ms after 0, so 3 -> 2 (70.7 later), and that is 128.4.
        assert!(!cobalt.condemns(100 * PS_PER_MS, &mut packet, false, &spec, &mut random));
        assert_eq!(cobalt.count, 2);
        assert!((cobalt.drop_next as f64 / PS_PER_MS as f64 - 128.4).abs() < 0.1);
    }
}
