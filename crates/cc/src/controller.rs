//! The contract between a congestion controller and its host.
//!
//! A host (simulator, emulator endpoint, kernel) keeps these rules; `crates/sim/tests` holds the simulator to them.
//!
//! 1. Order within a step: RTT, rate sample, loss detection, mark accounting, `on_loss` (0 or 1), `on_ack` (1), then the
//!    host reads `control()`.
//! 2. Time never decreases. `control()` changes only inside callbacks; the host reads it again after each one.
//! 3. The host sends while `in_flight + packet <= cwnd_bytes`. One retransmission at the start of an episode and timeout
//!    probes are exempt.
//! 4. The host paces: the next departure is `max(now, previous departure) + size / pacing rate`, with bursts of at most
//!    `send_quantum_bytes`.
//! 5. `on_timer` may come late: compare times, never count ticks.
//! 6. What a controller `Needs` and the host does not provide is an error at set-up, never a silent degradation.

use crate::event::{Ack, Loss, PathInfo, Resume, Sent, Timeout, Undo};

/// What a controller asks of its host. The host reads it after every callback.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Control {
    /// Congestion window, bytes.
    pub cwnd_bytes: u64,
    /// Pacing rate, bytes/s; [`Control::UNPACED`] leaves pacing to the window (ACK clocking).
    pub pacing_bytes_per_s: u64,
    /// Largest burst the pacer may send back to back, bytes; 0 = one packet.
    pub send_quantum_bytes: u64,
    /// Call `on_timer` at this time, ns; [`Control::NEVER`] = not at all.
    pub next_timer_ns: u64,
    /// Call `on_rto` after this long without an ACK while data is in flight, ns; 0 = the host's own rule. Read by
    /// datagram hosts only: TCP keeps RFC 6298.
    pub timeout_ns: u64,
}

impl Control {
    /// No pacing.
    pub const UNPACED: u64 = u64::MAX;
    /// No timer.
    pub const NEVER: u64 = u64::MAX;

    /// A window alone: no pacing, no timer.
    pub fn window(cwnd_bytes: u64) -> Self {
        Self {
            cwnd_bytes,
            pacing_bytes_per_s: Self::UNPACED,
            send_quantum_bytes: 0,
            next_timer_ns: Self::NEVER,
            timeout_ns: 0,
        }
    }

    /// The pacing rate in bit/s, or `None` when unpaced.
    pub fn pacing_bps(&self) -> Option<f64> {
        (self.pacing_bytes_per_s != Self::UNPACED).then_some(self.pacing_bytes_per_s as f64 * 8.0)
    }
}

/// A congestion-control algorithm. It never reads a clock, allocates nothing per event, and does not know its world.
pub trait Controller: Send {
    /// Exactly one per ACK that newly acknowledges data.
    fn on_ack(&mut self, ack: &Ack<'_>);
    /// At most one per detection, before the `on_ack` of the same step.
    fn on_loss(&mut self, loss: &Loss);
    /// Retransmission timeout, or a datagram host's silence timer.
    fn on_rto(&mut self, timeout: &Timeout);
    /// The episode was reordering: restore what it took.
    fn on_spurious_loss(&mut self, _undo: &Undo) {}
    /// A packet leaves. Only with [`Needs::SEND_EVENTS`].
    fn on_send(&mut self, _sent: &Sent) {}
    /// First packet after idleness.
    fn on_resume(&mut self, _resume: &Resume) {}
    /// The path or its packet size changed.
    fn on_path_change(&mut self, _path: &PathInfo) {}
    /// At or after `control().next_timer_ns`.
    fn on_timer(&mut self, _now_ns: u64) {}
    /// What the host must do now.
    fn control(&self) -> Control;
    /// [`Self::on_ack`], and what [`Self::control`] says then: what comes with every packet is one call instead of two.
    fn answer(&mut self, ack: &Ack<'_>) -> Control {
        self.on_ack(ack);
        self.control()
    }
    /// Writes one value per entry of the algorithm's [`Field`] table, in that field's unit; NaN where there is none yet.
    fn observe(&self, _out: &mut [f64]) {}
}

/// A named internal quantity that a record keeps and a plot labels.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Field {
    /// Column name, `snake_case`.
    pub name: &'static str,
    /// Unit as printed on an axis: `packets`, `ms`, `Mbit/s`, `1`.
    pub unit: &'static str,
    /// What it is, one line.
    pub doc: &'static str,
}

/// What an algorithm needs from its host, and what a host provides: a set of flags.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Needs(pub u32);

impl Needs {
    /// Window, losses and timeouts: what every host has.
    pub const NONE: Self = Self(0);
    /// The pacing rate is obeyed.
    pub const PACING: Self = Self(1);
    /// Marks are counted in `ce_packets`.
    pub const CE_COUNT: Self = Self(2);
    /// ACKs carry a delivery-rate sample.
    pub const RATE_SAMPLE: Self = Self(4);
    /// `on_send` is called.
    pub const SEND_EVENTS: Self = Self(8);
    /// `on_timer` is called.
    pub const TIMERS: Self = Self(16);
    /// ACKs carry per-hop telemetry.
    pub const INT: Self = Self(32);
    /// ACKs carry a one-way delay.
    pub const ONE_WAY_DELAY: Self = Self(64);
    /// Packets are sent as ECT(1): a scalable controller (RFC 9331).
    pub const ECT1: Self = Self(128);

    const NAMES: [(Self, &'static str); 8] = [
        (Self::PACING, "pacing"),
        (Self::CE_COUNT, "ce-count"),
        (Self::RATE_SAMPLE, "rate-sample"),
        (Self::SEND_EVENTS, "send-events"),
        (Self::TIMERS, "timers"),
        (Self::INT, "int"),
        (Self::ONE_WAY_DELAY, "one-way-delay"),
        (Self::ECT1, "ect1"),
    ];

    /// Both sets together.
    pub const fn and(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// Whether everything in `other` is in `self`.
    pub const fn contains(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }

    /// The names of what is in `self` and not in `provided`.
    pub fn missing_from(self, provided: Self) -> Vec<&'static str> {
        let missing = Self(self.0 & !provided.0);
        Self::NAMES.iter().filter(|(n, _)| missing.contains(*n)).map(|(_, name)| *name).collect()
    }

    /// The names in this set.
    pub fn names(self) -> Vec<&'static str> {
        self.missing_from(Self::NONE)
    }
}
