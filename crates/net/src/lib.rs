//! Links, traces, queues, loss and jitter: pure models that are handed the time.
//!
//! The simulator and the emulator run the very same code; nothing here reads a clock or touches the OS.

pub mod link;
pub mod trace;

pub use link::{
    Backlog, Buffer, Capacity, DropReason, Jitter, Link, LinkSpec, LossModel, Reorder, Verdict,
};
pub use trace::{Trace, TraceError};

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
