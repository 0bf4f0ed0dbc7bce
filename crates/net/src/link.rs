//! One direction of a link: capacity, buffer, propagation, impairments.
//!
//! In: packets with their arrival times, non-decreasing. Out: a [`Verdict`] for each, at once. A packet passes random
//! loss, then the test of the buffer, then service, then propagation with jitter and reordering.

use std::ops::{AddAssign, SubAssign};
use std::sync::Arc;

use crate::buffer::Waiting;
use crate::delivery::Delivery;
use crate::loss::Loss;
use crate::queue::{QueueSpec, Queued};
use crate::service::{Service, StepService, TraceService};
use crate::{DelayTrace, Picos, Trace};

/// What a directed link is made of. By default nothing: no service time, no delay, no limit.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct LinkSpec {
    /// How fast it serves.
    pub capacity: Capacity,
    /// Propagation delay, ps; the least of it where it changes.
    pub delay_ps: Picos,
    /// The changes of the propagation delay: how much longer it is than the trace's least, for packets that leave at what time.
    /// Packets do not overtake each other as it falls, unless jitter may reorder.
    pub delay_trace: Option<Arc<DelayTrace>>,
    /// Which packet is served next, and which is dropped or marked.
    pub queue: QueueSpec,
    /// How much may wait.
    pub buffer: Buffer,
    /// Random loss, applied as a packet enters, before the queue.
    pub loss: Option<LossModel>,
    /// Random extra delay after the queue.
    pub jitter: Option<Jitter>,
    /// Some packets held back so that others overtake them.
    pub reorder: Option<Reorder>,
}

/// Capacity of a link.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum Capacity {
    /// No service time: a pure delay.
    #[default]
    Unlimited,
    /// Bits per second, > 0.
    Constant(f64),
    /// A rate that changes: bits per second, each from a time on, the first from 0. Times ascend.
    Steps(Arc<[(Picos, f64)]>),
    /// Opportunities of 1504 bytes; with `once` the link is dead after the last one, otherwise the trace repeats.
    Trace {
        /// The opportunities.
        trace: Arc<Trace>,
        /// Do not repeat.
        once: bool,
    },
}

/// Drop-tail limits on what waits; the packet in service does not count. Several may hold at once; none = unlimited.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Buffer {
    /// Packets.
    pub packets: Option<u64>,
    /// Bytes.
    pub bytes: Option<u64>,
    /// Longest wait before service, ps.
    pub wait_ps: Option<Picos>,
}

/// Random loss.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum LossModel {
    /// Each packet independently with this probability.
    Bernoulli(f64),
    /// Every n-th packet, n ≥ 1: the deterministic loss that square-root laws are derived for.
    Periodic(u64),
    /// The link is on and off by turns, on at first, for exponential times, and loses every packet while it is off.
    OnOff {
        /// Mean time on, ps.
        on_ps: Picos,
        /// Mean time off, ps.
        off_ps: Picos,
    },
    /// Two states; the transition is drawn before each packet, then the loss with the state's probability.
    GilbertElliott {
        /// P(good → bad) per packet.
        p: f64,
        /// P(bad → good) per packet.
        r: f64,
        /// Loss probability in the bad state.
        loss_bad: f64,
        /// Loss probability in the good state.
        loss_good: f64,
    },
}

/// Extra delay drawn per packet: exponential, redrawn from the part below `max` (bounded exponential).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Jitter {
    /// Mean of the unbounded exponential, ps.
    pub mean_ps: Picos,
    /// Upper bound, ps.
    pub max_ps: Picos,
    /// Packets may overtake each other; otherwise a packet waits for its predecessor.
    pub reorder: bool,
}

/// Reordering: with `probability` a packet is held back by `extra_ps`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Reorder {
    /// Probability per packet.
    pub probability: f64,
    /// Extra delay, ps.
    pub extra_ps: Picos,
}

/// What becomes of a packet that enters.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Verdict {
    /// It leaves the link's transmitter at `departs` and reaches the far end at `arrives`.
    Pass {
        /// Last bit sent, ps.
        departs: Picos,
        /// Last bit received, ps.
        arrives: Picos,
    },
    /// It is dropped.
    Drop(DropReason),
}

/// Why a packet was dropped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DropReason {
    /// The buffer was full.
    Buffer,
    /// The queue's discipline chose it.
    Managed,
    /// Random loss.
    Random,
    /// The trace is used up (`once`): the packet would never leave.
    Exhausted,
}

/// What waits at a moment, the packet in service apart.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Backlog {
    /// Packets.
    pub packets: u64,
    /// Bytes.
    pub bytes: u64,
}

/// A [`LinkSpec`] that cannot be meant.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[error("{key} = {value}: allowed is {allowed}")]
pub struct SpecError {
    /// The field, with the path inside the spec.
    pub key: &'static str,
    /// Its value.
    pub value: f64,
    /// What it may be.
    pub allowed: &'static str,
}

impl<T> AddAssign<&Queued<T>> for Backlog {
    fn add_assign(&mut self, packet: &Queued<T>) {
        self.packets += 1;
        self.bytes += u64::from(packet.tag.bytes);
    }
}

impl<T> SubAssign<&Queued<T>> for Backlog {
    fn sub_assign(&mut self, packet: &Queued<T>) {
        self.packets -= 1;
        self.bytes -= u64::from(packet.tag.bytes);
    }
}

impl LinkSpec {
    /// Whether it can drop a packet.
    pub fn may_drop(&self) -> bool {
        self.buffer != Buffer::default()
            || self.loss.is_some()
            || self.queue != QueueSpec::DropTail
            || matches!(self.capacity, Capacity::Trace { once: true, .. })
    }

    /// Checks the ranges that the types cannot express.
    ///
    /// A link made from a spec that fails still runs: a rate that is not positive never finishes a packet, and a
    /// probability outside [0, 1] acts like the nearer end.
    ///
    /// # Errors
    /// A rate that is not a positive finite number, a probability outside [0, 1], a jitter bound of 0 with a mean.
    pub fn check(&self) -> Result<(), SpecError> {
        let in_range = |key, value, allowed, good: bool| match good {
            true => Ok(()),
            false => Err(SpecError { key, value, allowed }),
        };
        let probability = |key, value: f64| {
            in_range(key, value, "a probability from 0 to 1", (0.0..=1.0).contains(&value))
        };
        if let Capacity::Constant(rate) = self.capacity {
            let good = rate.is_finite() && rate > 0.0;
            in_range("capacity", rate, "a positive rate in bit/s", good)?;
        }
        if let Capacity::Steps(steps) = &self.capacity {
            let good = |rate: &f64| rate.is_finite() && *rate > 0.0;
            let bad = steps.iter().map(|(_, rate)| *rate).find(|rate| !good(rate));
            in_range("capacity", bad.unwrap_or(1.0), "a positive rate in bit/s", bad.is_none())?;
            let ascend = steps.first().is_some_and(|first| first.0 == 0)
                && steps.windows(2).all(|pair| pair[0].0 < pair[1].0);
            let count = steps.len() as f64;
            in_range("capacity.steps", count, "times that ascend from 0", ascend)?;
        }
        match self.loss {
            None => {}
            Some(LossModel::Bernoulli(p)) => probability("loss", p)?,
            Some(LossModel::Periodic(every)) => {
                in_range("loss.every", every as f64, "a whole number from 1", every > 0)?;
            }
            Some(LossModel::OnOff { on_ps, off_ps }) => {
                let least = on_ps.min(off_ps);
                in_range("loss.on", least as f64, "mean times above 0", least > 0)?;
            }
            Some(LossModel::GilbertElliott { p, r, loss_bad, loss_good }) => {
                probability("loss.p", p)?;
                probability("loss.r", r)?;
                probability("loss.loss_bad", loss_bad)?;
                probability("loss.loss_good", loss_good)?;
            }
        }
        if let Some((key, value, allowed)) = self.queue.fault() {
            return Err(SpecError { key, value, allowed });
        }
        if self.queue != QueueSpec::DropTail && self.buffer.wait_ps.is_some() {
            let value = self.buffer.wait_ps.unwrap_or_default() as f64;
            let allowed = "a limit on the wait only with a drop-tail queue";
            return Err(SpecError { key: "buffer.wait_ps", value, allowed });
        }
        if let Some(jitter) = self.jitter {
            let good = jitter.max_ps > 0 || jitter.mean_ps == 0;
            in_range("jitter.max_ps", 0.0, "a bound above 0", good)?;
        }
        self.reorder
            .map_or(Ok(()), |reorder| probability("reorder.probability", reorder.probability))
    }

    /// Whether packets arrive in the order they entered.
    pub fn keeps_order(&self) -> bool {
        let varies = |j: Jitter| j.mean_ps > 0 && j.max_ps > 0 || self.delay_trace.is_some();
        let jitter = self.jitter.is_some_and(|j| j.reorder && varies(j));
        let held_back = self.reorder.is_some_and(|r| r.probability > 0.0 && r.extra_ps > 0);
        !jitter && !held_back
    }
}

/// A directed link with a drop-tail queue in operation.
#[derive(Clone, Debug)]
pub struct Link {
    service: Service,
    waiting: Waiting,
    delivery: Delivery,
    /// Absent on most links, and then not worth the space.
    loss: Option<Box<Loss>>,
}

impl Link {
    /// A link that has carried nothing. Its queue is drop-tail, whatever the spec says: see [`crate::ServedLink`] for others. `seed` and `stream` pick its own random streams: one each for loss, jitter and
    /// reordering.
    pub fn new(spec: LinkSpec, seed: u64, stream: u64) -> Self {
        Self {
            delivery: Delivery::new(&spec, seed, stream),
            service: Service::new(spec.capacity),
            waiting: Waiting::new(spec.buffer),
            loss: spec.loss.map(|model| Box::new(Loss::new(model, seed, stream))),
        }
    }

    /// A packet of `bytes` arrives at `now`; times must not decrease from call to call.
    ///
    /// Constant rate: the packet is in service from the departure of its predecessor, or from now, and departs
    /// `8 * bytes / rate` later. Times are carried in fractions of a picosecond and shown rounded down.
    ///
    /// Trace: a byte is served by an opportunity later than the ms (rounded down) in which it arrived. What an
    /// opportunity leaves of a packet, the next one takes; what a packet leaves of an opportunity, the next packet
    /// takes if it arrived in an earlier ms, and is lost otherwise. The packet departs at the time of the opportunity
    /// that serves its last byte.
    ///
    /// A packet is refused with [`DropReason::Buffer`] if it would have to wait and the packets or the bytes waiting
    /// would exceed their limit with it, or its wait its own. On a trace link a packet waits until an opportunity
    /// serves its first byte, so a limit of no packets refuses everything there; at a constant rate such a link serves
    /// what it finds it idle.
    ///
    /// A passage takes at least 1 ps, also over a link without capacity or delay: cause and effect never share a moment, so
    /// that things of one moment can be handled apart. Times beyond [`Picos::MAX`] (213 days) stay there.
    #[inline]
    pub fn enqueue(&mut self, now: Picos, bytes: u32) -> Verdict {
        if let Some(loss) = &mut self.loss
            && loss.on_packet(now)
        {
            return Verdict::Drop(DropReason::Random);
        }
        let departs = match &mut self.service {
            Service::Unlimited => now,
            Service::Constant(service) => {
                let start = service.start(now);
                if start > now {
                    if !self.waiting.has_room(now, start, bytes) {
                        return Verdict::Drop(DropReason::Buffer);
                    }
                    self.waiting.push(start, bytes);
                }
                service.serve(now, bytes)
            }
            Service::Steps(service) => match pass_steps(service, &mut self.waiting, now, bytes) {
                Ok(departs) => departs,
                Err(reason) => return Verdict::Drop(reason),
            },
            Service::Trace(service) => match pass_trace(service, &mut self.waiting, now, bytes) {
                Ok(departs) => departs,
                Err(reason) => return Verdict::Drop(reason),
            },
        };
        let arrives = self.delivery.arrival(departs).max(now.saturating_add(1));
        Verdict::Pass { departs, arrives }
    }

    /// What waits at `now`, which must not be before the last arrival, nor a later arrival before it.
    pub fn backlog(&mut self, now: Picos) -> Backlog {
        self.waiting.backlog(now)
    }

    /// Bytes the link could have served in `(from, to]`; `None` when unlimited. For a trace: 1504 times the number of
    /// opportunities with `from` < time <= `to`, so that adjacent intervals add up and a whole period from 0 counts every
    /// line once.
    pub fn offered_bytes(&self, from: Picos, to: Picos) -> Option<f64> {
        self.service.offered_bytes(from, to)
    }

    /// Propagation delay, ps; the least where it changes.
    pub fn delay_ps(&self) -> Picos {
        self.delivery.delay_ps()
    }
}

/// When a packet leaves a link whose rate changes. Apart, as [`pass_trace`].
#[inline(never)]
fn pass_steps(
    service: &mut StepService,
    waiting: &mut Waiting,
    now: Picos,
    bytes: u32,
) -> Result<Picos, DropReason> {
    let start = service.start(now);
    if start > now {
        if !waiting.has_room(now, start, bytes) {
            return Err(DropReason::Buffer);
        }
        waiting.push(start, bytes);
    }
    Ok(service.serve(now, bytes))
}

/// When a packet leaves a trace link. Apart, so that other links do not pay for the registers it takes.
#[inline(never)]
fn pass_trace(
    service: &mut TraceService,
    waiting: &mut Waiting,
    now: Picos,
    bytes: u32,
) -> Result<Picos, DropReason> {
    let start = service.start(now).ok_or(DropReason::Exhausted)?;
    if !waiting.has_room(now, start, bytes) {
        return Err(DropReason::Buffer);
    }
    let departs = service.serve(bytes).ok_or(DropReason::Exhausted)?;
    waiting.push(start, bytes);
    Ok(departs)
}
