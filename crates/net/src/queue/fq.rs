//! FQ as in Linux's `sch_fq` (Dumazet 2013): flows kept apart exactly, served in turn, each paced at a rate of its own.
//!
//! Deviation: Linux paces in bursts of a quantum; here every packet waits its turn.

use std::collections::{BTreeMap, BTreeSet};

use super::fifo::Fifo;
use super::rounds::Rounds;
use super::{Dropped, Limit, Next, Queue, Queued};
use crate::link::{Backlog, DropReason};
use crate::{PS_PER_MS, PS_PER_S, Picos};

/// Parameters of FQ.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct FqSpec {
    /// Bytes a flow may send per turn: two packets.
    pub quantum_bytes: u32,
    /// Bytes a new flow may send in its first turn: ten packets.
    pub initial_quantum_bytes: u32,
    /// Packets of one flow that may wait.
    pub flow_packets: u64,
    /// Largest rate of a flow, bit/s; `None` = as fast as the link.
    pub flow_rate_bps: Option<f64>,
    /// A flow that was silent for so long is new again, ps.
    pub refill_ps: Picos,
}

impl Default for FqSpec {
    fn default() -> Self {
        Self {
            quantum_bytes: 2 * 1514,
            initial_quantum_bytes: 10 * 1514,
            flow_packets: 100,
            flow_rate_bps: None,
            refill_ps: 40 * PS_PER_MS,
        }
    }
}

impl FqSpec {
    pub(super) fn fault(&self) -> Option<(&'static str, f64, &'static str)> {
        if self.quantum_bytes == 0 {
            return Some(("queue.quantum", 0.0, "a number of bytes above 0"));
        }
        let rate = self.flow_rate_bps.filter(|rate| !(rate.is_finite() && *rate > 0.0))?;
        Some(("queue.flow_rate", rate, "a rate above 0"))
    }
}

/// Flows remembered at most before those with nothing waiting are forgotten.
const MANY_FLOWS: usize = 65_536;

#[derive(Debug)]
struct Flow<T> {
    fifo: Fifo<T>,
    /// Bytes it may still send in this turn.
    credit: i64,
    /// Its next packet may not leave before this, ps.
    next: Picos,
    state: State,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum State {
    /// Nothing waits, since then.
    Idle(Picos),
    /// In a list.
    Active,
    /// Waits for its pacing.
    Throttled,
}

/// All flows' queues.
#[derive(Debug)]
pub(super) struct Fq<T> {
    spec: FqSpec,
    limit: Limit,
    flows: BTreeMap<usize, Flow<T>>,
    rounds: Rounds,
    /// Flows that wait for their pacing, by when it ends.
    throttled: BTreeSet<(Picos, usize)>,
    backlog: Backlog,
}

impl<T> Fq<T> {
    pub(super) fn new(spec: &FqSpec, limit: Limit) -> Self {
        Self {
            spec: *spec,
            limit,
            flows: BTreeMap::new(),
            rounds: Rounds::default(),
            throttled: BTreeSet::new(),
            backlog: Backlog::default(),
        }
    }
}

/// How long a packet of `bytes` holds up the next of its flow, ps.
fn gap(spec: &FqSpec, bytes: u32) -> Picos {
    let rate = spec.flow_rate_bps.unwrap_or(f64::INFINITY);
    (f64::from(bytes) * 8.0 / rate * PS_PER_S as f64) as Picos
}

impl<T: Send> Queue<T> for Fq<T> {
    fn enqueue(&mut self, now: Picos, packet: Queued<T>, dropped: &mut Dropped<T>) {
        let FqSpec { quantum_bytes, initial_quantum_bytes, flow_packets, refill_ps, .. } =
            self.spec;
        if !self.limit.admits(self.backlog, packet.tag.bytes) {
            return dropped.push((packet, DropReason::Buffer));
        }
        if self.flows.len() >= MANY_FLOWS {
            self.flows.retain(|_, flow| !matches!(flow.state, State::Idle(_)) || flow.next > now);
        }
        let id = packet.tag.flow as usize;
        let flow = self.flows.entry(id).or_insert_with(|| Flow {
            fifo: Fifo::default(),
            credit: i64::from(initial_quantum_bytes),
            next: 0,
            state: State::Idle(now),
        });
        if flow.fifo.backlog().packets >= flow_packets {
            return dropped.push((packet, DropReason::Managed));
        }
        self.backlog += &packet;
        flow.fifo.push(packet);
        if let State::Idle(since) = flow.state {
            flow.state = State::Active;
            if now.saturating_sub(since) > refill_ps {
                flow.credit = flow.credit.max(i64::from(quantum_bytes));
            }
            self.rounds.join(id);
        }
    }

    fn dequeue(&mut self, now: Picos, _dropped: &mut Dropped<T>) -> Next<T> {
        while let Some(&(time, id)) = self.throttled.first()
            && time <= now
        {
            self.throttled.pop_first();
            self.rounds.rejoin(id);
            if let Some(flow) = self.flows.get_mut(&id) {
                flow.state = State::Active;
            }
        }
        while let Some(id) = self.rounds.turn() {
            let Some(flow) = self.flows.get_mut(&id) else {
                self.rounds.suspend();
                continue;
            };
            if flow.credit <= 0 {
                flow.credit += i64::from(self.spec.quantum_bytes);
                self.rounds.yield_turn();
                continue;
            }
            if flow.fifo.front().is_some() && flow.next > now {
                flow.state = State::Throttled;
                self.throttled.insert((flow.next, id));
                self.rounds.suspend();
                continue;
            }
            let Some(packet) = flow.fifo.pop() else {
                if self.rounds.finish_turn() {
                    flow.state = State::Idle(now);
                }
                continue;
            };
            flow.credit -= i64::from(packet.tag.bytes);
            flow.next = now.saturating_add(gap(&self.spec, packet.tag.bytes));
            self.backlog -= &packet;
            return Next::Packet(packet);
        }
        self.throttled.first().map_or(Next::Empty, |&(time, _)| Next::Wait(time))
    }

    fn backlog(&self) -> Backlog {
        self.backlog
    }
}

#[cfg(test)]
mod tests {
    use super::super::Tag;
    use super::*;

    fn of_flow(now: Picos, flow: u32, item: u64) -> Queued<u64> {
        Queued { tag: Tag { bytes: 1500, flow, ..Tag::default() }, arrived: now, item }
    }

    #[test]
    fn flows_take_turns_of_two_packets_after_a_first_of_ten() {
        let mut queue = Fq::new(&FqSpec::default(), Limit::default());
        let mut dropped = Vec::new();
        for k in 0..40 {
            for flow in [7, 8] {
                queue.enqueue(0, of_flow(0, flow, k), &mut dropped);
            }
        }
        let mut order = Vec::new();
        while let Next::Packet(packet) = queue.dequeue(0, &mut dropped) {
            order.push(packet.tag.flow);
        }
        // 15,140 bytes: 11 packets start before the credit is used up.
        assert!(
            order[..11].iter().all(|flow| *flow == 7)
                && order[11..22].iter().all(|flow| *flow == 8)
        );
        let turns: Vec<_> = order[22..].chunk_by(|a, b| a == b).map(<[u32]>::len).collect();
        assert!(turns.iter().all(|turn| (1..=3).contains(turn)), "{turns:?}");
        assert_eq!(order.len(), 80);
    }

    #[test]
    fn every_flow_is_paced() {
        // 12 Mbit/s: a packet per ms.
        let spec = FqSpec { flow_rate_bps: Some(12e6), ..FqSpec::default() };
        let mut queue = Fq::new(&spec, Limit::default());
        let mut dropped = Vec::new();
        for k in 0..10 {
            queue.enqueue(0, of_flow(0, 1, k), &mut dropped);
            queue.enqueue(0, of_flow(0, 2, k), &mut dropped);
        }
        let (mut now, mut sent) = (0, Vec::new());
        loop {
            match queue.dequeue(now, &mut dropped) {
                Next::Packet(packet) => sent.push((now / PS_PER_MS, packet.item)),
                Next::Wait(time) => now = time,
                Next::Empty => break,
            }
        }
        let expected: Vec<_> = (0..10).flat_map(|k| [(k, k), (k, k)]).collect();
        assert_eq!(sent, expected);
    }

    #[test]
    fn a_flow_has_a_limit_of_its_own() {
        let mut queue = Fq::new(&FqSpec::default(), Limit::default());
        let mut dropped = Vec::new();
        for k in 0..120 {
            queue.enqueue(0, of_flow(0, 1, k), &mut dropped);
        }
        queue.enqueue(0, of_flow(0, 2, 0), &mut dropped);
        assert_eq!((dropped.len(), queue.backlog().packets), (20, 101));
    }
}
