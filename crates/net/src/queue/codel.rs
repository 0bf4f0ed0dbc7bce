//! CoDel (RFC 8289): drops at the head, at growing frequency, once packets have waited longer than a target for a whole
//! interval. Section numbers are those of the RFC.

use super::fifo::Fifo;
use super::{Dropped, Limit, Next, Queue, Queued};
use crate::link::{Backlog, DropReason};
use crate::{PS_PER_MS, Picos};

/// Parameters of CoDel.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct CodelSpec {
    /// TARGET: wait that is acceptable as a standing queue, ps (§4.3).
    pub target_ps: Picos,
    /// INTERVAL: a worst-case RTT, ps (§4.2).
    pub interval_ps: Picos,
    /// Mark capable packets instead of dropping them.
    pub ecn: bool,
}

impl Default for CodelSpec {
    fn default() -> Self {
        Self { target_ps: 5 * PS_PER_MS, interval_ps: 100 * PS_PER_MS, ecn: false }
    }
}

impl CodelSpec {
    pub(super) fn fault(&self) -> Option<(&'static str, f64, &'static str)> {
        (self.interval_ps == 0).then_some(("queue.interval", 0.0, "a time above 0"))
    }
}

/// A re-entry counts as soon if the last drop was due less than this many intervals ago (§5.5).
const SOON_INTERVALS: Picos = 16;
/// A queue of one such packet or less is never too long (§5.3: maxpacket).
const LARGEST_PACKET: u64 = 1514;

/// The state of the algorithm (§5.2), beside the packets, so that FQ-CoDel can have one per flow.
#[derive(Clone, Debug, Default)]
pub(super) struct ControlLaw {
    /// Wait has been above target since an interval before this; `None` = it has not.
    first_above: Option<Picos>,
    /// Next drop, while `dropping`.
    drop_next: Picos,
    count: u32,
    /// `count` when the dropping state was last entered.
    last_count: u32,
    dropping: bool,
}

impl ControlLaw {
    /// The next packet of `fifo` to send (§5.5), after dropping what is to be dropped.
    pub(super) fn dequeue<T>(
        &mut self,
        now: Picos,
        fifo: &mut Fifo<T>,
        spec: &CodelSpec,
        dropped: &mut Dropped<T>,
    ) -> Option<Queued<T>> {
        let (mut packet, too_long) = self.pop(now, fifo, spec);
        if self.dropping {
            self.dropping = too_long;
            while self.dropping && now >= self.drop_next {
                self.count = self.count.saturating_add(1);
                let marked = spec.ecn && packet.as_mut().is_some_and(|p| p.tag.ecn.mark());
                if !marked {
                    give_up(packet, dropped);
                    (packet, self.dropping) = self.pop(now, fifo, spec);
                }
                if self.dropping {
                    self.drop_next = self.after(self.drop_next, spec);
                }
                if marked {
                    break;
                }
            }
        } else if too_long {
            let marked = spec.ecn && packet.as_mut().is_some_and(|p| p.tag.ecn.mark());
            if !marked {
                give_up(packet, dropped);
                (packet, _) = self.pop(now, fifo, spec);
            }
            self.enter(now, spec);
        }
        packet
    }

    /// Enters the dropping state: at the frequency that controlled the queue last time, if that was not long ago.
    fn enter(&mut self, now: Picos, spec: &CodelSpec) {
        self.dropping = true;
        let delta = self.count.wrapping_sub(self.last_count);
        let soon =
            now.saturating_sub(self.drop_next) < SOON_INTERVALS.saturating_mul(spec.interval_ps);
        self.count = if delta > 1 && soon { delta } else { 1 };
        self.last_count = self.count;
        self.drop_next = self.after(now, spec);
    }

    /// When to drop next after `time`: the control law (§5.6), INTERVAL / sqrt(count).
    fn after(&self, time: Picos, spec: &CodelSpec) -> Picos {
        time.saturating_add(
            (spec.interval_ps as f64 / f64::from(self.count.max(1)).sqrt()) as Picos,
        )
    }

    /// Takes a packet off and says whether packets have waited too long for an interval (§5.6).
    fn pop<T>(
        &mut self,
        now: Picos,
        fifo: &mut Fifo<T>,
        spec: &CodelSpec,
    ) -> (Option<Queued<T>>, bool) {
        let Some(packet) = fifo.pop() else {
            self.first_above = None;
            return (None, false);
        };
        let too_long =
            if packet.wait(now) < spec.target_ps || fifo.backlog().bytes <= LARGEST_PACKET {
                self.first_above = None;
                false
            } else {
                let first = *self.first_above.get_or_insert(now.saturating_add(spec.interval_ps));
                now >= first
            };
        (Some(packet), too_long)
    }
}

fn give_up<T>(packet: Option<Queued<T>>, dropped: &mut Dropped<T>) {
    dropped.extend(packet.map(|packet| (packet, DropReason::Managed)));
}

/// One CoDel queue.
#[derive(Debug)]
pub(super) struct Codel<T> {
    fifo: Fifo<T>,
    law: ControlLaw,
    spec: CodelSpec,
    limit: Limit,
}

impl<T> Codel<T> {
    pub(super) fn new(spec: &CodelSpec, limit: Limit) -> Self {
        Self { fifo: Fifo::default(), law: ControlLaw::default(), spec: *spec, limit }
    }
}

impl<T: Send> Queue<T> for Codel<T> {
    fn enqueue(&mut self, _now: Picos, packet: Queued<T>, dropped: &mut Dropped<T>) {
        if self.limit.admits(self.fifo.backlog(), packet.tag.bytes) {
            self.fifo.push(packet);
        } else {
            dropped.push((packet, DropReason::Buffer));
        }
    }

    fn dequeue(&mut self, now: Picos, dropped: &mut Dropped<T>) -> Next<T> {
        self.law.dequeue(now, &mut self.fifo, &self.spec, dropped).map_or(Next::Empty, Next::Packet)
    }

    fn backlog(&self) -> Backlog {
        self.fifo.backlog()
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::*;
    use super::super::{Ecn, Next};
    use super::*;
    use crate::PS_PER_US;

    /// Serves a packet per 100 us from a queue that never gets shorter than `standing`; returns when it dropped, ms.
    fn drops_ms(ecn: Ecn, standing: u64, until_ms: u64) -> (Vec<f64>, usize) {
        let spec = CodelSpec { ecn: true, ..CodelSpec::default() };
        let mut queue = Codel::new(&spec, Limit::default());
        let (mut dropped, mut events, mut marks) = (Vec::new(), Vec::new(), 0);
        let mut now = 0;
        while now < until_ms * PS_PER_MS {
            while queue.backlog().packets < standing {
                queue.enqueue(now, with_ecn(now, 0, ecn), &mut dropped);
            }
            let Next::Packet(packet) = queue.dequeue(now, &mut dropped) else { panic!("empty") };
            let marked = packet.tag.ecn == Ecn::Marked;
            marks += usize::from(marked);
            for _ in 0..dropped.drain(..).count() + usize::from(marked) {
                events.push(now as f64 / PS_PER_MS as f64);
            }
            now += 100 * PS_PER_US;
        }
        (events, marks)
    }

    /// T23: gaps of 100, 70.7, 57.7, 50 ms ... after the first drop.
    #[test]
    fn drops_follow_the_inverse_square_root() {
        // 100 packets at 0.1 ms each: every packet waits 10 ms, above the target of 5.
        let (events, marks) = drops_ms(Ecn::NotCapable, 100, 1000);
        assert_eq!(marks, 0);
        let gaps: Vec<f64> = events.windows(2).map(|pair| pair[1] - pair[0]).collect();
        for (count, gap) in (1..).zip(&gaps) {
            let expected = 100.0 / f64::from(count).sqrt();
            assert!((gap - expected).abs() <= 0.1 + 1e-9, "gap {count}: {gap}, not {expected}");
        }
        assert!(gaps.len() >= 20, "{gaps:?}");
        // The first packet that has waited 5 ms leaves at 5 ms, and then an interval must pass.
        assert!((events[0] - 105.0).abs() < 0.2, "{}", events[0]);
    }

    #[test]
    fn marks_capable_packets_at_the_same_times() {
        let (drops, _) = drops_ms(Ecn::NotCapable, 100, 600);
        let (marks, count) = drops_ms(Ecn::Capable, 100, 600);
        assert_eq!(marks.len(), count);
        assert_eq!(drops, marks);
    }

    #[test]
    fn a_short_queue_or_a_single_packet_is_left_alone() {
        // 4 ms of wait.
        assert!(drops_ms(Ecn::NotCapable, 40, 2000).0.is_empty());
        // A packet every 200 ms, waiting 50 ms each time, alone in the queue.
        let mut queue = Codel::new(&CodelSpec::default(), Limit::default());
        let mut dropped = Vec::new();
        for k in 0..20 {
            let now = k * 200 * PS_PER_MS;
            queue.enqueue(now, packet(now, k), &mut dropped);
            let next = queue.dequeue(now + 50 * PS_PER_MS, &mut dropped);
            assert!(matches!(next, Next::Packet(_)));
        }
        assert!(dropped.is_empty());
    }

    #[test]
    fn a_queue_that_grows_again_soon_is_met_at_the_frequency_that_held_it() {
        let spec = CodelSpec::default();
        let mut law = ControlLaw { count: 9, last_count: 1, drop_next: 0, ..ControlLaw::default() };
        law.enter(1_599 * PS_PER_MS, &spec);
        assert_eq!((law.count, law.last_count), (8, 8));
        law = ControlLaw { count: 9, last_count: 1, drop_next: 0, ..ControlLaw::default() };
        law.enter(1_600 * PS_PER_MS, &spec);
        assert_eq!(law.count, 1);
    }

    #[test]
    fn the_limit_drops_at_the_tail() {
        let mut queue = Codel::new(&CodelSpec::default(), Limit { packets: Some(2), bytes: None });
        assert_eq!(fill(&mut queue, 0, 0..4), [2, 3]);
        assert_eq!(drain(&mut queue, 0), [0, 1]);
    }
}
