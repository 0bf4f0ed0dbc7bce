//! PIE (RFC 8033): a drop probability on arrival, steered every update period by how far the queueing delay is from its
//! target and where it is going. Section numbers are those of the RFC.
//!
//! The delay is that of the packet dequeued last (§5.2, timestamps), and none when nothing waits.

use super::fifo::Fifo;
use super::{Dropped, Limit, Next, Place, Queue, Queued, seconds};
use crate::link::{Backlog, DropReason};
use crate::random::RandomStream;
use crate::{PS_PER_MS, Picos};

/// Parameters of PIE.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PieSpec {
    /// QDELAY_REF: delay to hold, ps.
    pub target_ps: Picos,
    /// T_UPDATE: time between updates of the probability, ps.
    pub update_ps: Picos,
    /// alpha: weight of the distance from the target, Hz.
    pub alpha_hz: f64,
    /// beta: weight of the change since the last update, Hz.
    pub beta_hz: f64,
    /// MAX_BURST: how long a burst may last before anything is dropped, ps.
    pub max_burst_ps: Picos,
    /// Mark capable packets instead of dropping them, while the probability is below a tenth.
    pub ecn: bool,
}

impl Default for PieSpec {
    fn default() -> Self {
        Self {
            target_ps: 15 * PS_PER_MS,
            update_ps: 15 * PS_PER_MS,
            alpha_hz: 0.125,
            beta_hz: 1.25,
            max_burst_ps: 150 * PS_PER_MS,
            ecn: false,
        }
    }
}

impl PieSpec {
    pub(super) fn fault(&self) -> Option<(&'static str, f64, &'static str)> {
        let gain = |name, value: f64| {
            (!(value.is_finite() && value >= 0.0)).then_some((
                name,
                value,
                "a finite number from 0",
            ))
        };
        if self.update_ps == 0 {
            return Some(("queue.update", 0.0, "a time above 0"));
        }
        gain("queue.alpha", self.alpha_hz).or_else(|| gain("queue.beta", self.beta_hz))
    }
}

/// Marks become drops above this (§5.1, MAX_ECNTH).
const MAX_ECN_PROBABILITY: f64 = 0.1;
/// Fewer packets than this are never dropped from (§5.1).
const FEW_PACKETS: u64 = 2;
/// De-randomization (§5.4): no drop before the probabilities passed add up to the first, a drop at the second.
const LEAST_ACCUMULATED: f64 = 0.85;
const MOST_ACCUMULATED: f64 = 8.5;
/// §5.5: the largest step of the probability once it is a tenth.
const LARGEST_STEP: f64 = 0.02;
/// §4.2: decay per update when nothing waits.
const DECAY: f64 = 0.98;
/// Below this the probability is none: what decays would never end.
const NEGLIGIBLE: f64 = 1e-12;

/// The probability and what steers it (§4.2).
#[derive(Clone, Debug)]
pub(super) struct Controller {
    spec: PieSpec,
    probability: f64,
    delay: Picos,
    old_delay: Picos,
    burst_left: Picos,
}

impl Controller {
    fn new(spec: &PieSpec) -> Self {
        Self {
            spec: *spec,
            probability: 0.0,
            delay: 0,
            old_delay: 0,
            burst_left: spec.max_burst_ps,
        }
    }

    /// One update (§4.2, §5.5).
    fn update(&mut self) {
        let Self { spec, delay, old_delay, .. } = *self;
        let error = seconds(delay) - seconds(spec.target_ps);
        let trend = seconds(delay) - seconds(old_delay);
        let mut step = (spec.alpha_hz * error + spec.beta_hz * trend) * scale(self.probability);
        if self.probability >= MAX_ECN_PROBABILITY && step > LARGEST_STEP {
            step = LARGEST_STEP;
        }
        self.probability += step;
        if delay == 0 && old_delay == 0 {
            self.probability *= DECAY;
        }
        self.probability = self.probability.clamp(0.0, 1.0);
        if self.probability < NEGLIGIBLE {
            self.probability = 0.0;
        }
        self.burst_left = self.burst_left.saturating_sub(spec.update_ps);
        self.old_delay = delay;
    }

    /// §4.4: the burst allowance is back when a packet arrives after congestion.
    fn renew_burst(&mut self) {
        let half = self.spec.target_ps / 2;
        if self.probability == 0.0 && self.delay < half && self.old_delay < half {
            self.burst_left = self.spec.max_burst_ps;
        }
    }

    /// Nothing but the burst allowance can change by itself.
    fn is_at_rest(&self) -> bool {
        self.probability == 0.0 && self.delay == 0 && self.old_delay == 0
    }
}

/// §4.2: small probabilities move in small steps.
fn scale(probability: f64) -> f64 {
    match probability {
        p if p < 1e-6 => 1.0 / 2048.0,
        p if p < 1e-5 => 1.0 / 512.0,
        p if p < 1e-4 => 1.0 / 128.0,
        p if p < 1e-3 => 1.0 / 32.0,
        p if p < 0.01 => 1.0 / 8.0,
        p if p < 0.1 => 1.0 / 2.0,
        _ => 1.0,
    }
}

/// A FIFO with PIE in front.
#[derive(Debug)]
pub(super) struct Pie<T> {
    fifo: Fifo<T>,
    limit: Limit,
    controller: Controller,
    random: RandomStream,
    /// Probabilities passed since the last drop.
    accumulated: f64,
    next_update: Picos,
}

impl<T> Pie<T> {
    pub(super) fn new(spec: &PieSpec, place: Place) -> Self {
        Self {
            fifo: Fifo::default(),
            limit: place.limit,
            controller: Controller::new(spec),
            random: place.random(),
            accumulated: 0.0,
            next_update: spec.update_ps,
        }
    }

    /// Makes up for the updates that were due before `now`: since the last call nothing came and nothing left.
    fn catch_up(&mut self, now: Picos) {
        let update_ps = self.controller.spec.update_ps;
        while self.next_update <= now {
            if self.fifo.front().is_none() {
                self.controller.delay = 0;
                if self.controller.is_at_rest() {
                    let skipped_ps = ((now - self.next_update) / update_ps + 1) * update_ps;
                    self.next_update += skipped_ps;
                    let burst_left = &mut self.controller.burst_left;
                    *burst_left = burst_left.saturating_sub(skipped_ps);
                    return;
                }
            }
            self.controller.update();
            self.next_update += update_ps;
        }
    }

    /// Whether the packet that arrives is to be dropped or marked (§4.1, §5.4).
    fn strikes(&mut self) -> bool {
        self.controller.renew_burst();
        let Controller { spec, probability, old_delay, burst_left, .. } = self.controller;
        if burst_left > 0 {
            return false;
        }
        let light = old_delay < spec.target_ps / 2 && probability < 0.2;
        if light || self.fifo.backlog().packets <= FEW_PACKETS {
            return false;
        }
        if probability == 0.0 {
            self.accumulated = 0.0;
        }
        self.accumulated += probability;
        if self.accumulated < LEAST_ACCUMULATED {
            return false;
        }
        let strikes = self.accumulated >= MOST_ACCUMULATED || self.random.chance(probability);
        if strikes {
            self.accumulated = 0.0;
        }
        strikes
    }
}

impl<T: Send> Queue<T> for Pie<T> {
    fn enqueue(&mut self, now: Picos, mut packet: Queued<T>, dropped: &mut Dropped<T>) {
        self.catch_up(now);
        if !self.limit.admits(self.fifo.backlog(), packet.tag.bytes) {
            self.accumulated = 0.0;
            return dropped.push((packet, DropReason::Buffer));
        }
        if self.strikes() {
            let Controller { spec, probability, .. } = self.controller;
            let may_mark = spec.ecn && probability < MAX_ECN_PROBABILITY;
            if !(may_mark && packet.tag.ecn.mark()) {
                return dropped.push((packet, DropReason::Managed));
            }
        }
        self.fifo.push(packet);
    }

    fn dequeue(&mut self, now: Picos, _dropped: &mut Dropped<T>) -> Next<T> {
        self.catch_up(now);
        let Some(packet) = self.fifo.pop() else { return Next::Empty };
        self.controller.delay = packet.wait(now);
        Next::Packet(packet)
    }

    fn backlog(&self) -> Backlog {
        self.fifo.backlog()
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::*;
    use super::*;
    use crate::PS_PER_S;

    fn at(probability: f64, delay_ms: u64, old_ms: u64) -> Controller {
        let mut controller = Controller::new(&PieSpec::default());
        controller.probability = probability;
        controller.delay = delay_ms * PS_PER_MS;
        controller.old_delay = old_ms * PS_PER_MS;
        controller
    }

    fn step(probability: f64, delay_ms: u64, old_ms: u64) -> f64 {
        let mut controller = at(probability, delay_ms, old_ms);
        controller.update();
        controller.probability - probability
    }

    /// T24: at the target nothing moves; 10 ms above it, steady, 6.25e-4 per update while p is in [0.01, 0.1).
    #[test]
    fn steps_of_the_probability() {
        assert_eq!(step(0.05, 15, 15), 0.0);
        assert!((step(0.05, 25, 25) - 6.25e-4).abs() < 1e-12);
        // The trend: 1.25 Hz x 10 ms, halved.
        assert!((step(0.05, 15, 5) - 0.5 * 1.25 * 0.010).abs() < 1e-12);
        // From a tenth on a step is bounded, however long the delay (beyond 250 ms Linux adds 2 %, the RFC does not).
        assert!((step(0.3, 240, 15) - 0.02).abs() < 1e-12);
        assert!((step(0.3, 500, 15) - 0.02).abs() < 1e-12);
        // Idle: p x 0.98, on top of the pull to the target.
        let idle = at(0.05, 0, 0);
        let pulled = 0.05 - 0.5 * 0.125 * 0.015;
        let mut next = idle;
        next.update();
        assert!((next.probability - pulled * 0.98).abs() < 1e-15);
        for (p, s) in [(1e-7, 2048.0), (5e-6, 512.0), (5e-5, 128.0), (5e-4, 32.0), (5e-3, 8.0)] {
            assert_eq!(scale(p), 1.0 / s);
        }
    }

    fn pie() -> Pie<u64> {
        let place = Place { limit: Limit::default(), rate_bps: 12e6, seed: 1, stream: 0 };
        Pie::new(&PieSpec::default(), place)
    }

    #[test]
    fn a_burst_passes_and_overload_is_brought_to_the_target() {
        // 1 packet per ms leaves, 1.2 arrive.
        let mut queue = pie();
        let mut dropped = Vec::new();
        let (mut waits, mut first_drop) = (Vec::new(), None);
        let (mut arrivals, mut now) = (0, 0);
        while now < 60 * PS_PER_S {
            while arrivals * 1000 / 1200 * PS_PER_MS <= now {
                queue.enqueue(now, packet(now, arrivals), &mut dropped);
                arrivals += 1;
            }
            if !dropped.is_empty() {
                first_drop.get_or_insert(now);
            }
            let Next::Packet(packet) = queue.dequeue(now, &mut dropped) else { panic!("empty") };
            if now > 30 * PS_PER_S {
                waits.push(packet.wait(now) as f64 / PS_PER_MS as f64);
            }
            now += PS_PER_MS;
        }
        // 150 ms of burst allowance, from the beginning.
        assert!(first_drop.is_some_and(|at| at >= 150 * PS_PER_MS), "{first_drop:?}");
        let mean = waits.iter().sum::<f64>() / waits.len() as f64;
        assert!((mean - 15.0).abs() < 1.5, "mean wait {mean} ms");
        // A sixth of what arrives must go.
        let lost = dropped.len() as f64 / arrivals as f64;
        assert!((lost - 1.0 / 6.0).abs() < 0.01, "{lost}");
    }

    #[test]
    fn drops_are_spread_out() {
        // p = 0.1 held: the next drop comes after at least 9 packets (0.85) and at most 85 (8.5).
        let mut queue = pie();
        fill(&mut queue, 0, 0..10);
        queue.controller.probability = 0.1;
        queue.controller.old_delay = 15 * PS_PER_MS;
        queue.controller.burst_left = 0;
        queue.next_update = Picos::MAX;
        let dropped = fill(&mut queue, 1, 10..20_000);
        let gaps: Vec<u64> = dropped.windows(2).map(|pair| pair[1] - pair[0]).collect();
        assert!(gaps.iter().all(|gap| (9..=85).contains(gap)), "{gaps:?}");
        // From the ninth on every packet is hit with 0.1: 8 + 10 on average; sd 9.5 per gap.
        let mean = gaps.iter().sum::<u64>() as f64 / gaps.len() as f64;
        assert!((mean - 18.0).abs() < 4.0 * 9.5 / (gaps.len() as f64).sqrt(), "{mean}");
    }

    /// §4.4: half of the target is 7.5 ms.
    #[test]
    fn an_arrival_after_congestion_renews_the_burst_allowance() {
        for (delay_ms, left_ms) in [(7, 150), (8, 0)] {
            let mut queue = pie();
            queue.controller = Controller { burst_left: 0, ..at(0.0, delay_ms, 7) };
            fill(&mut queue, 0, 0..1);
            assert_eq!(queue.controller.burst_left, left_ms * PS_PER_MS, "{delay_ms} ms");
        }
    }

    /// Appendix B: a drop for want of room counts as a drop.
    #[test]
    fn a_full_buffer_starts_the_accumulation_anew() {
        let mut queue = pie();
        queue.limit.packets = Some(1);
        fill(&mut queue, 0, 0..1);
        queue.accumulated = 0.5;
        assert_eq!(fill(&mut queue, 0, 1..2), [1]);
        assert_eq!(queue.accumulated, 0.0);
    }

    #[test]
    fn years_of_silence_cost_nothing_and_change_nothing() {
        let mut queue = pie();
        queue.controller.probability = 0.5;
        fill(&mut queue, Picos::MAX / 2, 0..1);
        assert_eq!(queue.controller.probability, 0.0);
        assert_eq!(queue.controller.burst_left, PieSpec::default().max_burst_ps);
        assert!(queue.next_update > Picos::MAX / 2);
    }
}
