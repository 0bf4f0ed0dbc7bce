//! Links, traces, queues, loss and jitter: pure models that are handed the time.
//!
//! The simulator and the emulator run the very same code; nothing here reads a clock or touches the OS, except
//! [`Trace::load`] and [`DelayTrace::load`], which read the one file they are given.
//!
//! A packet goes in with its arrival time and its size; a [`Verdict`] comes out: when it leaves the transmitter and when
//! it reaches the far end, or why it is dropped. Because a link is first-in first-out and its capacity is known in
//! advance, all of that is a formula at the moment of arrival; no event is needed for service or propagation.

mod buffer;
mod delay_trace;
mod delivery;
pub mod line;
pub mod link;
pub mod log;
mod loss;
mod plain;
pub mod queue;
pub mod random;
pub mod ring;
mod served;
mod service;
pub mod trace;

pub use delay_trace::DelayTrace;
pub use link::{
    Backlog, Buffer, Capacity, DropReason, Jitter, Link, LinkSpec, LossModel, Reorder, SpecError,
    Verdict,
};
pub use plain::PlainLink;
pub use queue::QueueSpec;
pub use served::{Sent, ServedLink, Stamp};
pub use trace::{OPPORTUNITY_BYTES, Trace, TraceError};

/// Time in picoseconds from the origin of the run: fine enough for a packet at 384 Gbit/s (31.25 ns), wide enough for
/// 213 days.
pub type Picos = u64;

/// Picoseconds in a second, a millisecond, a microsecond, a nanosecond.
pub const PS_PER_S: Picos = 1_000_000_000_000;
/// Picoseconds in a millisecond.
pub const PS_PER_MS: Picos = 1_000_000_000;
/// Picoseconds in a microsecond.
pub const PS_PER_US: Picos = 1_000_000;
/// Picoseconds in a nanosecond.
pub const PS_PER_NS: Picos = 1_000;
