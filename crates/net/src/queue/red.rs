//! Random early detection (Floyd and Jacobson 1993), gentle (Floyd 2000) and adaptive (Floyd, Gummadi and Shenker 2001): drops
//! or marks on arrival with a probability that grows with the average queue.

use super::fifo::Fifo;
use super::{Dropped, Limit, Next, Place, Queue, Queued, picos};
use crate::link::{Backlog, DropReason};
use crate::random::RandomStream;
use crate::{PS_PER_MS, Picos};

/// Parameters of RED. What is left open follows the rate of the link as in the paper on adaptive RED.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RedSpec {
    /// min_th, packets; open: 5, or half of what 5 ms of the rate are.
    pub min_packets: Option<f64>,
    /// max_th, packets; open: three times min_th.
    pub max_packets: Option<f64>,
    /// max_p: probability as the average reaches max_th.
    pub max_probability: f64,
    /// w_q: weight of the queue of the moment in the average; open: 1 - exp(-1 / packets per second).
    pub weight: Option<f64>,
    /// From max_th to twice that the probability goes on to 1, instead of jumping there.
    pub gentle: bool,
    /// Steers max_p so that the average stays between the thresholds.
    pub adaptive: bool,
    /// Mark capable packets instead of dropping them, below max_th (gentle: below twice that).
    pub ecn: bool,
}

impl Default for RedSpec {
    fn default() -> Self {
        Self {
            min_packets: None,
            max_packets: None,
            max_probability: 0.1,
            weight: None,
            gentle: true,
            adaptive: false,
            ecn: false,
        }
    }
}

impl RedSpec {
    pub(super) fn fault(&self) -> Option<(&'static str, f64, &'static str)> {
        let threshold = |name, value: Option<f64>| {
            let value = value.filter(|v| !(v.is_finite() && *v >= 0.0))?;
            Some((name, value, "a finite number of packets from 0"))
        };
        let probability = |name, value: f64| {
            (!(value > 0.0 && value <= 1.0)).then_some((name, value, "above 0, at most 1"))
        };
        let upside_down = self.min_packets.zip(self.max_packets).filter(|(min, max)| max < min);
        threshold("queue.min", self.min_packets)
            .or_else(|| threshold("queue.max", self.max_packets))
            .or_else(|| upside_down.map(|(_, max)| ("queue.max", max, "at least queue.min")))
            .or_else(|| probability("queue.max_probability", self.max_probability))
            .or_else(|| self.weight.and_then(|weight| probability("queue.weight", weight)))
    }
}

/// Adaptive RED: how often max_p moves, its bounds, its steps, and where between the thresholds the average shall be.
const ADAPT_PS: Picos = 500 * PS_PER_MS;
const MAX_P_BOUNDS: (f64, f64) = (0.01, 0.5);
const LARGEST_INCREASE: f64 = 0.01;
const DECREASE: f64 = 0.9;
const BAND: (f64, f64) = (0.4, 0.6);
/// Delay that the thresholds of adaptive RED aim at, s, and the least min_th, packets.
const TARGET_DELAY_S: f64 = 0.005;
const LEAST_MIN_PACKETS: f64 = 5.0;

/// The average queue and the probability that follows from it.
#[derive(Clone, Debug)]
struct Average {
    packets: f64,
    weight: f64,
    /// Time in which the link would have sent a packet.
    packet_ps: f64,
    idle_since: Option<Picos>,
}

impl Average {
    /// A packet arrives and finds `waiting` packets.
    fn update(&mut self, now: Picos, waiting: u64) {
        if let Some(since) = self.idle_since.take() {
            // As if so many small packets had found the queue empty (1993 paper, section 4).
            let packets = now.saturating_sub(since) as f64 / self.packet_ps;
            self.packets *= libm::pow(1.0 - self.weight, packets);
        }
        self.packets += self.weight * (waiting as f64 - self.packets);
    }
}

/// A FIFO with RED in front.
#[derive(Debug)]
pub(super) struct Red<T> {
    fifo: Fifo<T>,
    limit: Limit,
    min: f64,
    max: f64,
    max_p: f64,
    gentle: bool,
    adaptive: bool,
    ecn: bool,
    average: Average,
    /// Packets that passed with the average above min_th since the last drop or mark.
    passed: u64,
    next_adapt: Picos,
    random: RandomStream,
}

/// What RED does to a packet.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Fate {
    Pass,
    /// Mark, or drop what cannot be marked.
    Signal,
    Drop,
}

impl<T> Red<T> {
    pub(super) fn new(spec: &RedSpec, place: Place) -> Self {
        let rate = place.packets_per_s();
        let min = spec.min_packets.unwrap_or((rate * TARGET_DELAY_S / 2.0).max(LEAST_MIN_PACKETS));
        Self {
            fifo: Fifo::default(),
            limit: place.limit,
            min,
            max: spec.max_packets.unwrap_or(3.0 * min).max(min),
            max_p: spec.max_probability,
            gentle: spec.gentle,
            adaptive: spec.adaptive,
            ecn: spec.ecn,
            average: Average {
                packets: 0.0,
                weight: spec.weight.unwrap_or_else(|| -libm::expm1(-1.0 / rate)),
                packet_ps: picos(1.0 / rate).max(1) as f64,
                idle_since: Some(0),
            },
            passed: 0,
            next_adapt: ADAPT_PS,
            random: place.random(),
        }
    }

    /// Probability p_b for the average of the moment (1993 paper, section 4; gentle: Floyd 2000); `None` above all thresholds.
    fn probability(&self) -> Option<f64> {
        let average = self.average.packets;
        if average < self.max {
            return Some(self.max_p * (average - self.min) / (self.max - self.min));
        }
        let gentle = self.gentle && average < 2.0 * self.max;
        gentle.then(|| self.max_p + (1.0 - self.max_p) * (average - self.max) / self.max)
    }

    fn fate(&mut self) -> Fate {
        if self.average.packets < self.min {
            self.passed = 0;
            return Fate::Pass;
        }
        let Some(p_b) = self.probability() else {
            self.passed = 0;
            return Fate::Drop;
        };
        // p_a = p_b / (1 - count p_b) makes gaps uniform on 1 .. 1/p_b. The count is of packets passed since the last signal: the
        // listing in the paper starts it at one too many, which its own derivation does not.
        let rest = 1.0 - self.passed as f64 * p_b;
        let signals = rest <= 0.0 || self.random.chance(p_b / rest);
        self.passed = if signals { 0 } else { self.passed + 1 };
        if signals { Fate::Signal } else { Fate::Pass }
    }

    /// Moves max_p as often as was due before `now` (adaptive RED, section 4).
    fn adapt(&mut self, now: Picos) {
        while self.adaptive && self.next_adapt <= now {
            let within = |share: f64| self.min + share * (self.max - self.min);
            if self.average.packets > within(BAND.1) && self.max_p <= MAX_P_BOUNDS.1 {
                self.max_p += LARGEST_INCREASE.min(self.max_p / 4.0);
            } else if self.average.packets < within(BAND.0) && self.max_p >= MAX_P_BOUNDS.0 {
                self.max_p *= DECREASE;
            } else {
                // The average stands until the next packet, and with it max_p.
                let skipped = (now - self.next_adapt) / ADAPT_PS;
                self.next_adapt += skipped * ADAPT_PS;
            }
            self.next_adapt += ADAPT_PS;
        }
    }
}

impl<T: Send> Queue<T> for Red<T> {
    fn enqueue(&mut self, now: Picos, mut packet: Queued<T>, dropped: &mut Dropped<T>) {
        self.adapt(now);
        self.average.update(now, self.fifo.backlog().packets);
        match self.fate() {
            Fate::Drop => return dropped.push((packet, DropReason::Managed)),
            Fate::Signal if !(self.ecn && packet.tag.ecn.mark()) => {
                return dropped.push((packet, DropReason::Managed));
            }
            Fate::Pass | Fate::Signal => {}
        }
        if !self.limit.admits(self.fifo.backlog(), packet.tag.bytes) {
            self.passed = 0;
            return dropped.push((packet, DropReason::Buffer));
        }
        self.fifo.push(packet);
    }

    fn dequeue(&mut self, now: Picos, _dropped: &mut Dropped<T>) -> Next<T> {
        let Some(packet) = self.fifo.pop() else { return Next::Empty };
        if self.fifo.front().is_none() {
            self.average.idle_since = Some(now);
        }
        Next::Packet(packet)
    }

    fn backlog(&self) -> Backlog {
        self.fifo.backlog()
    }
}

#[cfg(test)]
mod tests {
    use super::super::Ecn;
    use super::super::testing::*;
    use super::*;
    use crate::PS_PER_S;

    /// 12 Mbit/s: 1000 packets of 1500 bytes per second.
    fn red(spec: RedSpec) -> Red<u64> {
        let place = Place { limit: Limit::default(), rate_bps: 12e6, seed: 3, stream: 1 };
        Red::new(&spec, place)
    }

    fn thresholds(min: f64, max: f64) -> RedSpec {
        RedSpec { min_packets: Some(min), max_packets: Some(max), ..RedSpec::default() }
    }

    /// A queue whose average stands at `average`, and stays there.
    fn held_at(spec: RedSpec, average: f64) -> Red<u64> {
        let mut queue = red(RedSpec { weight: Some(1e-300), ..spec });
        queue.average = Average { packets: average, idle_since: None, ..queue.average };
        queue
    }

    #[test]
    fn what_is_left_open_follows_the_rate() {
        let queue = red(RedSpec::default());
        assert_eq!((queue.min, queue.max), (5.0, 15.0));
        // 1 - exp(-1/1000).
        assert!((queue.average.weight - 9.995e-4).abs() < 1e-8);
        let place = Place { limit: Limit::default(), rate_bps: 1.2e9, seed: 3, stream: 1 };
        // 100,000 packets per second x 5 ms / 2.
        assert_eq!(Red::<u64>::new(&RedSpec::default(), place).min, 250.0);
    }

    #[test]
    fn the_average_follows_the_queue_and_decays_in_idleness() {
        let mut average =
            Average { packets: 10.0, weight: 0.002, packet_ps: 1e9, idle_since: None };
        average.update(0, 20);
        assert!((average.packets - 10.02).abs() < 1e-12);
        // 100 ms idle = 100 packets: (1 - 0.002)^100, then one more sample of an empty queue.
        average = Average { packets: 10.0, idle_since: Some(0), ..average };
        average.update(PS_PER_S / 10, 0);
        assert!((average.packets - 10.0 * 0.998_f64.powi(101)).abs() < 1e-9);
    }

    #[test]
    fn probability_by_the_average() {
        let spec = thresholds(10.0, 30.0);
        assert!((held_at(spec, 20.0).probability().unwrap() - 0.05).abs() < 1e-12);
        assert!((held_at(spec, 30.0).probability().unwrap() - 0.1).abs() < 1e-12);
        assert!((held_at(spec, 45.0).probability().unwrap() - 0.55).abs() < 1e-12);
        assert_eq!(held_at(spec, 60.0).probability(), None);
        let hard = RedSpec { gentle: false, ..spec };
        assert_eq!(held_at(hard, 30.0).probability(), None);
    }

    /// T26: at a constant average, p_b = max_p / 2 = 0.05, gaps are uniform on 1 .. 20.
    #[test]
    fn gaps_between_drops_are_uniform() {
        let mut queue = held_at(thresholds(10.0, 30.0), 20.0);
        let dropped = fill(&mut queue, 0, 0..400_000);
        let mut seen = [0_u64; 21];
        for pair in dropped.windows(2) {
            seen[(pair[1] - pair[0]) as usize] += 1;
        }
        assert_eq!(seen[0], 0);
        let expected = seen.iter().sum::<u64>() as f64 / 20.0;
        let chi2: f64 = seen[1..].iter().map(|n| (*n as f64 - expected).powi(2) / expected).sum();
        // 19 degrees of freedom: above 43.8 with probability 0.001.
        assert!(chi2 < 43.8, "chi2 {chi2}: {seen:?}");
    }

    #[test]
    fn marks_what_can_be_marked_and_drops_all_above_the_end() {
        let spec = RedSpec { ecn: true, ..thresholds(10.0, 30.0) };
        let mut dropped = Vec::new();
        let mut queue = held_at(spec, 29.0);
        for k in 0..1000 {
            queue.enqueue(0, with_ecn(0, k, Ecn::Capable), &mut dropped);
        }
        assert!(dropped.is_empty());
        let mut queue = held_at(spec, 61.0);
        queue.enqueue(0, with_ecn(0, 0, Ecn::Capable), &mut dropped);
        assert_eq!(dropped.len(), 1);
    }

    #[test]
    fn adaptation_keeps_the_average_in_the_band() {
        let adaptive = RedSpec { adaptive: true, ..thresholds(10.0, 30.0) };
        let mut queue = held_at(adaptive, 25.0);
        queue.adapt(ADAPT_PS);
        assert!((queue.max_p - 0.11).abs() < 1e-12);
        queue.average.packets = 12.0;
        queue.adapt(2 * ADAPT_PS);
        assert!((queue.max_p - 0.099).abs() < 1e-12);
        queue.average.packets = 20.0;
        queue.adapt(Picos::MAX / 2);
        assert!((queue.max_p - 0.099).abs() < 1e-12);
        // However long it lasts, max_p stays near its bounds.
        queue.average.packets = 25.0;
        queue.adapt(Picos::MAX / 2 + 1000 * ADAPT_PS);
        assert!((0.5..=0.51).contains(&queue.max_p), "{}", queue.max_p);
    }
}
