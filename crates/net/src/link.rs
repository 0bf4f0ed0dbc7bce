//! One direction of a link: capacity, buffer, propagation, impairments.

use std::sync::Arc;

use crate::{Picos, Trace};

/// What a directed link is made of.
#[derive(Clone, Debug, PartialEq)]
pub struct LinkSpec {
    /// How fast it serves.
    pub capacity: Capacity,
    /// Propagation delay, ps.
    pub delay_ps: Picos,
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
#[derive(Clone, Debug, PartialEq)]
pub enum Capacity {
    /// No service time: a pure delay.
    Unlimited,
    /// Bits per second, > 0.
    Constant(f64),
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

/// A directed link in operation.
pub struct Link {
    spec: LinkSpec,
}

impl Link {
    /// A link that has carried nothing. `seed` and `stream` pick its own random stream.
    pub fn new(spec: LinkSpec, _seed: u64, _stream: u64) -> Self {
        Self { spec }
    }

    /// A packet of `bytes` arrives at `now`; times must not decrease from call to call.
    pub fn enqueue(&mut self, now: Picos, _bytes: u32) -> Verdict {
        Verdict::Pass { departs: now, arrives: now + self.spec.delay_ps }
    }

    /// What waits at `now`.
    pub fn backlog(&mut self, _now: Picos) -> Backlog {
        Backlog::default()
    }

    /// Bytes the link could have served in `[from, to)`; `None` when unlimited.
    pub fn offered_bytes(&self, _from: Picos, _to: Picos) -> Option<f64> {
        None
    }

    /// Whether packets arrive in the order they entered.
    pub fn keeps_order(&self) -> bool {
        true
    }

    /// Propagation delay, ps.
    pub fn delay_ps(&self) -> Picos {
        self.spec.delay_ps
    }
}
