//! The law of `bpf/algorithms/mpc.h` in floating point: seconds, bytes and bytes/s, equations as their page writes them.
//!
//! Decisions that compare quantities which integers round go through [`Law::over`], which knows how far rounding reaches.

use std::collections::VecDeque;
use std::rc::Rc;

use paceline_cc::{AckSample, Control, Loss, Params, PathInfo};

use crate::choices::Choices;
use crate::settings::{MAX_RATE, Settings};

/// Of a comparison, relative and s (or bytes, bytes/s): as far as rounding in integers reaches.
pub const ROUNDING: f64 = 3e-5;
const ROUNDING_S: f64 = 3e-9;

const MAX_S: f64 = 17.179_869_184;
const NS: f64 = 1e-9;
/// Blocks that are kept.
const BLOCKS: usize = 64;

fn seconds(ns: u64) -> f64 {
    ns as f64 / 1e9
}

/// `value` moved towards `goal` by the part `weight` of the way.
fn toward(value: f64, goal: f64, weight: f64) -> f64 {
    value + (goal - value) * weight.min(1.0)
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub enum State {
    Start,
    Steady,
    Growth,
    Drain,
}

/// What the packet of the least RTT in a block told.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Block {
    sent: f64,
    position: f64,
    rtt: f64,
    burst: f64,
    lost: f64,
    ended: f64,
    rho: f64,
}

#[derive(Clone, Copy, Debug, PartialEq)]
struct Pulse {
    started: f64,
    tail: (f64, f64),
    tail_rtt: f64,
    tail_bytes: f64,
}

#[derive(Clone, Copy, Debug, PartialEq)]
struct Drain {
    began: f64,
    refill: f64,
    end: f64,
    queue: f64,
    rtt: f64,
}

/// The controller's state.
#[derive(Clone, Debug, PartialEq)]
pub struct Law {
    set: Settings,
    packet: f64,
    initial_window: f64,
    seed: u64,
    state: State,
    /// Whether an RTT has been seen.
    begun: bool,
    rho: f64,
    rate: f64,
    departure_rate: f64,
    base: f64,
    tau: f64,
    target: f64,
    queue: f64,
    prior_queue: f64,
    queue_sent: f64,
    queue_position: f64,
    slow_queue: f64,
    mean_queue: f64,
    noise: f64,
    least_rate: f64,
    two_rtts: f64,
    lost: f64,
    lost_in_step: f64,
    in_flight: f64,
    delivered: f64,
    /// The last first. Shared by copies of the state until one changes it.
    blocks: Rc<VecDeque<Block>>,
    block: Block,
    block_began: f64,
    block_acks: u32,
    block_is_drain: bool,
    block_is_pulse: bool,
    block_is_limited: bool,
    block_flight: f64,
    limited: f64,
    /// Pulses on the way, the oldest first; when the last was sent, the next is due, the one that is being sent ends.
    pulses: VecDeque<Pulse>,
    last_pulse: f64,
    next_pulse: f64,
    pulse_to: Option<f64>,
    growth: f64,
    growth_from: f64,
    queue_seen: f64,
    hold_until: f64,
    fair_from: f64,
    snap: Option<Block>,
    drain: Option<Drain>,
    next_drain: f64,
    cycle_began: f64,
    cycle: f64,
    depth: f64,
    cycle_rtt: f64,
    drain_rtts: Rc<VecDeque<f64>>,
    emptied: f64,
    /// The dip of the queue that another flow's drain makes: its depth so far and when that was sent.
    dip: Option<(f64, f64)>,
    heard: f64,
    choices: Choices,
}

impl Law {
    pub fn new(params: &Params, path: &PathInfo) -> Self {
        Self {
            set: Settings::new(params),
            packet: f64::from(path.packet_bytes),
            initial_window: f64::from(path.initial_window_packets),
            seed: path.seed,
            state: State::Start,
            begun: false,
            rho: 0.0,
            rate: 0.0,
            departure_rate: 0.0,
            base: 0.0,
            tau: 0.0,
            target: 0.0,
            queue: 0.0,
            prior_queue: 0.0,
            queue_sent: 0.0,
            queue_position: 0.0,
            slow_queue: 0.0,
            mean_queue: 0.0,
            noise: 0.0,
            least_rate: 0.0,
            two_rtts: 0.0,
            lost: 0.0,
            lost_in_step: 0.0,
            in_flight: 0.0,
            delivered: 0.0,
            blocks: Rc::default(),
            block: Block::default(),
            block_began: 0.0,
            block_acks: 0,
            block_is_drain: false,
            block_is_pulse: false,
            block_is_limited: false,
            block_flight: 0.0,
            limited: 0.0,
            pulses: VecDeque::new(),
            last_pulse: 0.0,
            next_pulse: 0.0,
            pulse_to: None,
            growth: 0.0,
            growth_from: 0.0,
            queue_seen: 0.0,
            hold_until: 0.0,
            fair_from: 0.0,
            snap: None,
            drain: None,
            next_drain: 0.0,
            cycle_began: 0.0,
            cycle: 0.0,
            depth: 1.0,
            cycle_rtt: f64::INFINITY,
            drain_rtts: Rc::default(),
            emptied: 0.0,
            dip: None,
            heard: 0.0,
            choices: Choices::default(),
        }
    }

    /// For the one who follows both sides of a close decision.
    pub fn choices(&mut self) -> &mut Choices {
        &mut self.choices
    }

    // ---------------------------------------------------------------------------------------------------------- arithmetic

    /// Whether a > b, both of the magnitude of `scale`.
    fn over(&mut self, a: f64, b: f64, scale: f64) -> bool {
        self.choices.over(a, b, scale.abs() * ROUNDING + ROUNDING_S)
    }

    /// The same of a queue and one that the noise makes part of: the mean of a difference in whole ns is up to 20 ns too small,
    /// for what moves by less than 1 ns does not move.
    fn over_queue(&mut self, a: f64, b: f64) -> bool {
        self.choices.over(a, b, b * ROUNDING + 6e-8)
    }

    /// The same of bytes or rates, which are whole numbers.
    fn over_bytes(&mut self, a: f64, b: f64) -> bool {
        self.choices.over(a, b, a.abs().max(b.abs()) * ROUNDING + 2.0)
    }

    fn packet_time(&self) -> f64 {
        (self.packet / self.rho).min(MAX_S)
    }

    fn set_rho(&mut self, rho: f64) {
        let least = self.least_rate.min(self.set.cap);
        self.rho = rho.min(self.set.cap).min(MAX_RATE).max(least);
    }

    /// What two RTTs make, until the next block.
    fn keep(&mut self) {
        self.two_rtts = 2.0 * self.rho * (self.tau + self.queue).min(MAX_S);
    }

    // ----------------------------------------------------------------------------------------------------------- the model

    /// (1), (2).
    fn set_target(&mut self) {
        let s = &self.set;
        let least = (s.least_packets * self.packet / self.rho).min(MAX_S);
        self.tau = (self.base + self.slow_queue).min(MAX_S).max(least);
        // Two packets per tau, in whole bytes/s as where a flow begins.
        self.least_rate = (2.0 * self.packet / self.tau).floor().max(1.0);
        let at_knee = self.base / (self.base + s.knee);
        let rate = libm::pow(self.rho / 5e8, -s.rate_exponent);
        let rtt = libm::pow(self.base / 0.025, s.rtt_exponent);
        self.target = ((s.queue * rate * rtt).clamp(NS, MAX_S) * at_knee).max(NS);
    }

    /// The first block that is `window` older than the last, or the oldest.
    fn block_before(&mut self, window: f64) -> Block {
        let last = self.blocks[0];
        let mut first = last;
        for back in 1..self.blocks.len() {
            first = self.blocks[back];
            if !self.over(window, last.sent - first.sent, window) {
                break;
            }
        }
        first
    }

    /// (3), or 0.
    fn departures(&mut self, first: &Block, last: &Block, least: f64) -> f64 {
        let gone = ((last.sent + last.rtt) - (first.sent + first.rtt)).max(0.0);
        if !self.over(gone, least, least) {
            return 0.0;
        }
        ((last.position - first.position).max(0.0) / gone).min(MAX_RATE)
    }

    /// The same, or 0 if the application had nothing to send in between.
    fn share(&mut self, first: &Block, last: &Block, least: f64) -> f64 {
        if self.limited > first.sent { 0.0 } else { self.departures(first, last, least) }
    }

    /// (13).
    fn lossy(&mut self, last: &Block) -> bool {
        let first = self.block_before(self.tau);
        let lost = (last.lost - first.lost).max(0.0);
        let sent = lost + (last.position - first.position).max(0.0);
        lost > (sent / 32.0).floor() + 4.0 * self.packet
    }

    fn rho_at(&self, sent: f64) -> f64 {
        self.blocks.iter().find(|block| block.ended <= sent).map_or(self.rho, |block| block.rho)
    }

    // ---------------------------------------------------------------------------------------------------------- the drains

    fn begin_cycle(&mut self, began: f64, cycle: f64, now: f64) {
        self.cycle_began = began;
        self.next_drain = began + cycle;
        while self.over(now, self.next_drain, cycle) {
            self.next_drain += cycle;
        }
    }

    fn drain_time(&self, queue: f64) -> f64 {
        (queue * (1.0 + self.set.drain_margin) + self.packet_time()) * 4.0 / 3.0
    }

    fn overloaded(&mut self) -> bool {
        let most = self.target + self.tau / 10.0;
        self.over(self.queue, most, most)
    }

    /// (9).
    fn begin_drain(&mut self, now: f64) {
        self.cycle_began = now;
        self.next_drain = now + self.cycle;
        let empty = !self.over(now - self.emptied, self.cycle / 2.0, self.cycle);
        if empty || !self.over_bytes(self.set.cap * 0.98, self.rho) || self.overloaded() {
            return;
        }
        let drain = (self.drain_time(self.queue) * self.depth).min(self.tau);
        let refill = if self.depth > 1.000_01 { drain } else { self.queue * 4.0 / 3.0 };
        self.state = State::Drain;
        self.drain = Some(Drain {
            began: now,
            refill: now + drain,
            end: now + drain + refill,
            queue: self.queue,
            rtt: f64::INFINITY,
        });
    }

    fn judge_drain(&mut self, drain: &Drain) {
        let enough = self.base + drain.queue / 4.0;
        if drain.rtt.is_infinite() || self.over(drain.rtt, enough, drain.queue) {
            self.depth = (self.depth * 1.5).min(12.0);
        } else {
            self.depth = (self.depth / 1.5).max(1.0);
        }
        let rtts = Rc::make_mut(&mut self.drain_rtts);
        rtts.push_front(self.cycle_rtt);
        rtts.truncate(8);
        let least = self.drain_rtts.iter().copied().fold(f64::INFINITY, f64::min);
        if self.drain_rtts.len() == 8 && least.is_finite() && least > self.base {
            self.base = least;
        }
        self.cycle_rtt = f64::INFINITY;
        self.cycle = self.tau * self.set.drain_interval;
        self.drain = None;
    }

    /// (10).
    fn hear_drain(&mut self, queue: f64, sent: f64, now: f64) {
        let mean = self.mean_queue;
        if self.dip.is_none()
            && self.state != State::Growth
            && self.over(0.8 * mean, queue + 3.0 * self.noise, mean)
        {
            self.dip = Some((queue, sent));
        }
        let Some((least, least_sent)) = self.dip else { return };
        if self.over(least, queue, mean) {
            self.dip = Some((queue, sent));
            return;
        }
        if !self.over(queue, least + 0.3 * (mean - least).max(0.0), mean) {
            return;
        }
        self.dip = None;
        let began = (least_sent - 0.9 * self.drain_time(mean)).max(0.0);
        let interval = (began - self.heard).max(0.0);
        self.heard = began;
        let mut cycle = self.cycle;
        if self.over(interval, cycle / 4.0, cycle) && self.over(0.75 * cycle, interval, cycle) {
            // To the nearest whole number.
            let times = cycle / interval + 0.5;
            let whole = times.round();
            let below = self.choices.over(whole, times, 1e-3);
            cycle = interval * if below { whole - 1.0 } else { whole };
        }
        let since = began - self.cycle_began;
        if since < 0.0 || !self.over(0.3 * self.cycle, since, self.cycle) {
            self.begin_cycle(began, cycle, now);
        }
    }

    // -------------------------------------------------------------------------------------------------------- the rate sent

    /// (4), (5).
    fn steered_rate(&self, now: f64) -> f64 {
        let sent_since = self.delivered + self.in_flight - self.queue_position;
        let sent_since = sent_since.clamp(0.0, self.two_rtts);
        let more = sent_since / self.rho - (now - self.queue_sent).max(0.0);
        let predicted = (self.queue + more.clamp(-self.tau, self.tau)).max(0.0);
        let horizon = (self.set.horizon * self.tau).max(NS);
        self.rho * (1.0 + ((self.target - predicted) / horizon).clamp(-0.6, 0.1))
    }

    /// (11).
    fn start_rate(&mut self, now: f64) -> f64 {
        let position = self.delivered + self.in_flight;
        let part = self.tau / 64.0;
        if let Some(to) = self.pulse_to
            && (self.over_bytes(position + self.packet, to)
                || !self.over(2.0 * part, now - self.last_pulse, part))
        {
            self.pulse_to = None;
        }
        if self.pulse_to.is_none() && !self.over(self.next_pulse, now, self.tau) {
            self.next_pulse = now + self.tau / 2.0;
            let bytes = 16.0 * self.rho * part;
            let tail = 0.3 * bytes;
            if !self.choices.over(8.0 * self.packet, tail, tail * ROUNDING + 20.0)
                && self.pulses.len() < 4
            {
                let to = position + bytes;
                self.pulses.push_back(Pulse {
                    started: now,
                    tail: (to - tail, to),
                    tail_rtt: f64::INFINITY,
                    tail_bytes: 0.0,
                });
                self.last_pulse = now;
                self.pulse_to = Some(to);
            }
        }
        if self.pulse_to.is_some() { 16.0 * self.rho } else { self.rho }
    }

    fn set_rate(&mut self, now: f64) {
        let rate = if self.state == State::Start {
            self.start_rate(now)
        } else {
            let mut rate = self.steered_rate(now);
            if self.state == State::Steady
                && self.drain.is_none()
                && !self.over(self.next_drain, now, self.cycle)
            {
                self.begin_drain(now);
            }
            if let (State::Drain, Some(drain)) = (self.state, self.drain) {
                if self.over(drain.refill, now, drain.refill - drain.began) {
                    rate = self.rho / 4.0;
                } else if self.over(drain.end, now, drain.end - drain.began) {
                    rate = self.rho * 7.0 / 4.0;
                } else {
                    self.state = State::Steady;
                }
            }
            rate
        };
        self.rate = rate.max(self.least_rate).min(MAX_RATE).min(self.set.cap);
    }

    // ------------------------------------------------------------------------------------------------------------- start-up

    /// In [0, 1), by SplitMix64's finalizer.
    fn chance(&self) -> f64 {
        let z = self.seed.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((z ^ (z >> 31)) >> 44) as f64 / f64::from(1 << 20)
    }

    fn begin_start(&mut self, now: f64, rho: f64) {
        self.state = State::Start;
        self.blocks = Rc::default();
        self.block_acks = 0;
        self.block_began = now;
        self.slow_queue = 0.0;
        self.pulses.clear();
        self.pulse_to = None;
        self.next_pulse = now;
        self.depth = 1.0;
        self.drain = None;
        self.drain_rtts = Rc::default();
        self.cycle_rtt = f64::INFINITY;
        self.dip = None;
        // In whole bytes/s. At so low a rate tau is in proportion to 1/rho: start-up multiplies a rounding as it multiplies rho.
        self.rho = rho.floor().min(self.set.cap).clamp(1.0, MAX_RATE);
        self.queue = 0.0;
        self.set_target();
        self.keep();
        self.rate = self.rho;
    }

    fn end_start(&mut self, now: f64, queue: f64, state: State) {
        let wait = 0.3 * self.chance() + if state == State::Growth { 1.0 } else { 0.0 };
        self.state = state;
        self.pulse_to = None;
        self.queue = queue;
        self.slow_queue = queue;
        self.mean_queue = queue;
        self.fair_from = now + self.set.settle * self.tau;
        self.queue_seen = self.queue_sent;
        self.hold_until = self.queue_sent + self.set.hold * self.tau;
        self.emptied = 0.0;
        self.cycle = self.set.drain_interval * self.tau;
        self.cycle_began = now;
        self.next_drain = now + wait * self.cycle;
        self.growth = 0.05;
        self.growth_from = 16.0 * self.rho;
    }

    /// Whether the packet is of a pulse's tail.
    fn see_pulse(&mut self, now: f64, sent: f64, position: f64, rtt: f64) -> bool {
        let Some(pulse) = self.pulses.front().copied() else { return false };
        let (from, to) = pulse.tail;
        if !self.choices.over(from, position, 20.0 + ROUNDING * (to - from))
            && self.choices.over(to, position, 20.0 + ROUNDING * (to - from))
        {
            let pulse = &mut self.pulses[0];
            pulse.tail_bytes += self.packet;
            pulse.tail_rtt = pulse.tail_rtt.min(rtt);
            return true;
        }
        if self.over(pulse.started + self.tau / 4.0, sent, self.tau) {
            return false;
        }
        self.pulses.pop_front();
        if self.state == State::Start && pulse.tail_bytes >= 8.0 * self.packet {
            let queue = (pulse.tail_rtt - self.base).max(0.0);
            if self.over_queue(queue, 0.003 * self.tau + 3.0 * self.noise) {
                self.end_start(now, queue, State::Growth);
            }
        }
        false
    }

    fn start_block(&mut self, now: f64, block: &Block, queue: f64, elapsed: f64) {
        let unit = self.base.max(10.0 * self.packet_time()).min(self.tau);
        let growth = libm::exp2(self.set.start_growth * (elapsed / unit).min(4.0));
        let idle =
            self.block_is_limited && self.over_bytes(self.rho * unit, 2.0 * self.block_flight);
        if !idle {
            self.set_rho(self.rho * growth);
        }
        let most = self.set.start_queue * self.tau + self.packet_time() + 3.0 * self.noise;
        let lossy = self.lossy(block);
        if lossy {
            let first = self.block_before(self.tau);
            let rate = self.departures(&first, block, self.tau / 10.0);
            if rate > 0.0 {
                self.set_rho(self.rho.min(rate));
            }
        }
        if lossy || (!idle && self.over_queue(queue, most)) {
            self.set_rho(self.rho / 2.0);
            self.end_start(now, queue, State::Steady);
        }
    }

    // ----------------------------------------------------------------------------------------------------- the nominal rate

    /// (6).
    fn fairness(&self) -> f64 {
        let s = &self.set;
        let slow = self.slow_queue.max(self.target / 50.0).max(NS);
        let force = libm::log(self.target / slow) / s.rate_exponent;
        let least = s.restraint * (self.mean_queue / self.tau) / (1.5 * s.fairness * s.horizon);
        force.min(4.0).max(-least.min(4.0))
    }

    /// (7).
    fn follow(&mut self, now: f64, elapsed: f64) {
        let force = if now > self.fair_from { self.fairness() } else { 0.0 };
        let bend = (1.5 * self.set.fairness * force).clamp(-1.0, 1.0);
        let goal = (self.departure_rate * (1.0 + bend)).min(MAX_RATE);
        self.set_rho(toward(self.rho, goal, 2.0 * elapsed / self.tau));
    }

    /// (8).
    fn grow(&mut self, now: f64, block: &Block, elapsed: f64) {
        let s = self.set;
        let part = (elapsed / self.tau).min(1.0);
        self.snap = None;
        if !self.over(block.sent - self.queue_seen, 0.9 * self.tau, self.tau)
            || self.block_is_limited
            || !self.over_bytes(0.999 * s.cap, self.rate)
        {
            return;
        }
        if self.state == State::Steady {
            self.state = State::Growth;
            self.growth_from = self.rho;
            self.growth = (s.growth * self.target / self.tau).min(0.04);
        }
        if self.state != State::Growth {
            return;
        }
        if self.over_bytes(self.rho, 3.0 * self.growth_from) {
            return self.begin_start(now, self.rho);
        }
        if self.over(self.fair_from, now, s.settle * self.tau)
            || self.over_bytes(self.rho, 1.15 * self.growth_from)
        {
            self.fair_from = now + s.settle * self.tau;
        }
        self.set_rho(self.rho * (1.0 + self.growth * part));
        self.growth = (self.growth * (1.0 + part)).min(s.growth_max);
    }

    fn queue_is_back(&mut self, now: f64, block: &Block) {
        self.set_rho(self.rho.min(self.rho_at(block.sent)));
        self.state = State::Steady;
        self.hold_until = now + self.set.hold * self.tau;
        self.next_drain = now + self.cycle / 2.0;
        self.snap = Some(*block);
    }

    fn snap(&mut self, snap: &Block, block: &Block) {
        let rate = self.share(snap, block, self.tau / 5.0);
        if rate > 0.0 && self.over(block.sent - snap.sent, 0.3 * self.tau, self.tau) {
            self.set_rho(rate);
        }
    }

    /// (12), (13).
    fn bound(&mut self, now: f64, block: &Block) {
        let mut rate = 0.0;
        if self.overloaded() {
            let first = self.block_before(0.3 * self.tau);
            rate = self.share(&first, block, self.tau / 10.0);
            self.fair_from = now + self.set.settle * self.tau;
        } else if self.lossy(block) {
            rate = self.departure_rate;
        }
        if rate > 0.0 && rate < self.rho {
            self.set_rho(rate);
        }
    }

    fn average(&mut self, elapsed: f64, memory: f64) {
        let queue = self.queue.min(self.target + self.tau / 10.0);
        self.slow_queue = toward(self.slow_queue, queue, elapsed / memory).max(100.0 * NS);
    }

    fn end_block(&mut self, now: f64) {
        let mut block = self.block;
        let elapsed = self.blocks.front().map_or(0.0, |last| (block.sent - last.sent).max(0.0));
        if block.rtt < self.base {
            let shorter = self.base - block.rtt;
            self.base = block.rtt;
            self.queue += shorter;
            self.prior_queue += shorter;
            self.mean_queue += shorter;
            self.slow_queue += shorter;
        }
        let queue = (block.rtt - self.base - block.burst).max(0.0);
        self.set_target();
        if self.block_is_drain && self.state != State::Start {
            return;
        }
        (block.ended, block.rho) = (now, self.rho);
        let blocks = Rc::make_mut(&mut self.blocks);
        blocks.push_front(block);
        blocks.truncate(BLOCKS);
        self.queue_sent = block.sent;
        self.queue_position = block.position;
        self.noise = toward(self.noise, (queue - self.queue).abs(), 0.05);
        if self.state == State::Start {
            self.queue = queue;
            self.start_block(now, &block, queue, elapsed);
        } else {
            self.steady_block(now, queue, elapsed, &block);
        }
        if let Some(last) = Rc::make_mut(&mut self.blocks).front_mut() {
            last.rho = self.rho;
        }
    }

    /// A block after start-up.
    fn steady_block(&mut self, now: f64, queue: f64, elapsed: f64, block: &Block) {
        self.hear_drain(queue, block.sent, now);
        self.mean_queue =
            toward(self.mean_queue, queue, if self.dip.is_some() { 0.02 } else { 0.1 });
        self.queue = queue;
        let first = self.block_before(self.tau);
        self.departure_rate = self.departures(&first, block, 0.3 * self.tau);
        if !self.over(self.fair_from, now, self.set.settle * self.tau) {
            let short = self.slow_queue.max(self.tau / 1000.0).max(NS);
            let memory = (self.set.memory * self.tau).min(MAX_S) * self.tau / short;
            self.average(elapsed, memory.max(8.0 * self.tau));
        }
        let present = (self.tau / 500.0 + self.packet_time()).max(3.0 * self.noise);
        let present = present.min(self.target / 10.0);
        let present = present.max(self.slow_queue.min(self.target) / 4.0);
        if !self.over_queue(queue.min(self.prior_queue), present) {
            self.emptied = now;
            self.grow(now, block, elapsed);
        } else if self.state == State::Growth && self.block_is_pulse {
            self.grow(now, block, elapsed);
        } else {
            self.with_queue(now, queue, present, elapsed, block, &first);
        }
        if self.state != State::Start {
            self.bound(now, block);
            self.prior_queue = queue;
        }
    }

    fn with_queue(
        &mut self,
        now: f64,
        queue: f64,
        present: f64,
        elapsed: f64,
        block: &Block,
        first: &Block,
    ) {
        self.queue_seen = block.sent;
        if self.state == State::Growth {
            return self.queue_is_back(now, block);
        }
        if self.over(self.hold_until, block.sent, self.tau) {
            if let Some(snap) = self.snap
                && self.over(queue, present, present)
            {
                self.snap(&snap, block);
            }
            return;
        }
        if self.over(self.fair_from, now, self.set.settle * self.tau) {
            self.average(elapsed, 2.0 * self.tau);
        }
        if self.departure_rate > 0.0 && first.sent >= self.limited {
            self.follow(now, elapsed);
        }
    }

    // -------------------------------------------------------------------------------------------------------------- events

    pub fn on_ack(&mut self, ack: &AckSample) {
        let now = seconds(ack.now_ns);
        let rtt = seconds(ack.rtt_ns).min(MAX_S);
        let sent = seconds(ack.now_ns.saturating_sub(ack.rtt_ns));
        let position = (ack.prior_delivered_total_bytes + ack.tx_in_flight_bytes) as f64
            - (ack.lost_since_sent_bytes as f64 + self.lost_in_step);
        let position = position.max(0.0);
        self.lost_in_step = 0.0;
        self.delivered = ack.delivered_total_bytes as f64;
        self.in_flight = ack.in_flight_bytes as f64;
        if ack.rtt_ns == 0 {
            return;
        }
        if !self.begun {
            self.begun = true;
            (self.base, self.tau) = (rtt, rtt);
            self.begin_start(now, self.initial_window * self.packet / rtt);
        }
        let burst = (f64::from(ack.burst_bytes) / self.rho).min(self.tau / 8.0);
        let head = (rtt - burst).max(0.0);
        self.cycle_rtt = self.cycle_rtt.min(head);
        self.see_drain(now, sent, head);
        self.block_is_pulse |= self.see_pulse(now, sent, position, head);
        self.block_flight = self.block_flight.max(ack.tx_in_flight_bytes as f64);
        if ack.has(AckSample::APP_LIMITED) {
            self.block_is_limited = true;
            self.limited = sent;
        }
        if self.block_acks == 0 || rtt < self.block.rtt {
            self.block = Block { sent, position, rtt, burst, lost: self.lost, ..Block::default() };
        }
        self.block_acks += 1;
        if self.block_acks >= 8
            && !self.over(self.tau / 32.0, now - self.block_began, self.tau / 32.0)
        {
            self.end_block(now);
            self.keep();
            self.block_acks = 0;
            self.block_began = now;
            self.block_is_drain = false;
            self.block_is_pulse = false;
            self.block_is_limited = false;
            self.block_flight = 0.0;
        }
        self.set_rate(now);
    }

    fn see_drain(&mut self, now: f64, sent: f64, rtt: f64) {
        let Some(drain) = self.drain else { return };
        if sent >= drain.began && self.over(drain.end, sent, drain.end - drain.began) {
            self.drain = Some(Drain { rtt: drain.rtt.min(rtt), ..drain });
            self.block_is_drain = true;
        } else if self.state != State::Drain
            && self.over(now - drain.end, 1.25 * self.base + self.queue, self.tau)
        {
            self.judge_drain(&drain);
        }
    }

    pub fn on_loss(&mut self, loss: &Loss) {
        self.lost += loss.lost_bytes as f64;
        self.lost_in_step += loss.lost_bytes as f64;
        self.in_flight = loss.in_flight_bytes as f64;
    }

    pub fn on_rto(&mut self, now_ns: u64) {
        if self.begun {
            self.begin_start(seconds(now_ns), 2.0 * self.packet / self.base);
        }
    }

    pub fn on_resume(&mut self, now_ns: u64, idle_ns: u64) {
        if !self.begun
            || self.state == State::Start
            || self.over(self.tau, seconds(idle_ns), self.tau)
        {
            return;
        }
        self.state = State::Steady;
        self.blocks = Rc::default();
        self.block_acks = 0;
        self.drain = None;
        self.dip = None;
        self.queue = 0.0;
        self.prior_queue = 0.0;
        self.queue_sent = seconds(now_ns);
        self.queue_position = self.delivered;
        self.queue_seen = seconds(now_ns);
        self.snap = None;
        self.keep();
    }

    /// Window, bytes, and pacing rate, bytes/s.
    pub fn control(&self) -> (f64, f64) {
        if !self.begun {
            return (self.initial_window * self.packet, Control::UNPACED as f64);
        }
        let mut window = self.two_rtts + 64.0 * self.packet;
        if let Some(to) = self.pulse_to {
            window = (to - self.delivered).min(window).max(self.packet);
        }
        (window, self.rate)
    }

    /// In the order of the registry's fields: state, bytes/s, s.
    pub fn observe(&self) -> [f64; 8] {
        if !self.begun {
            return [f64::NAN; 8];
        }
        let departure_rate = if self.departure_rate > 0.0 { self.departure_rate } else { f64::NAN };
        let state = f64::from(self.state as u8);
        let (rho, tau) = (self.rho, self.tau);
        [state, rho, departure_rate, self.base, tau, self.target, self.queue, self.slow_queue]
    }
}
