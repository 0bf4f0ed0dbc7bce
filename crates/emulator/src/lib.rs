//! The link emulator: the link models of `paceline-net` around real programs.
//!
//! [`run`] starts a command in a network namespace of its own whose only way out is an emulated link:
//!
//! ```text
//!   network namespace of the command          │          network namespace of the caller
//!                                             │
//!   command ─ kernel ─ TUN "paceline" ────> forwarder "up" ────> TUN "paceline0" ─ kernel ─ PACELINE_BASE
//!                                     <──── forwarder "down" <────
//!                                             │
//! ```
//!
//! A packet that the command sends is read from the TUN device inside, enters the link model (`passage.rs`), waits until the
//! model says that it arrives, and is written to the TUN device outside. One thread carries each direction. The models are
//! handed the time (CLOCK_MONOTONIC since the start), exactly as the simulator hands them its own; what the emulator adds is
//! that a packet is written some microseconds after its time, and [`Counts`] says how many.
//!
//! The host answers at the outside address. Nothing is forwarded further, no rule or setting of the host is changed. Links
//! nest: a command inside may start another one.
//!
//! Nothing outlives the emulator. Devices vanish with the files that made them, addresses and routes with the devices, the
//! namespaces with the processes in them, and those die with the emulator (`inside.rs` says how).
//!
//! Needs Linux, `/dev/net/tun`, CAP_NET_ADMIN and CAP_SYS_ADMIN.

#![deny(unsafe_code)]

mod address;
mod arena;
mod branch;
mod counts;
mod devices;
mod error;
mod forward;
mod hosted;
mod hosts;
mod inside;
mod link;
mod log;
mod netlink;
mod observer;
mod outside;
mod packet;
mod passage;
pub mod recorder;
mod sys;
mod tun;

pub use branch::{BranchOf, Branches};
pub use counts::{Counts, Lateness};
pub use error::Error;
pub use forward::{Alarm, Direction};
pub use hosted::{Ends, Hosted, host};
pub use link::{
    Emulation, Host, HostsOutcome, Outcome, Status, run, run_hosts, run_observed, run_reaching,
};
pub use log::LogFile;
pub use observer::Observer;
pub use outside::Reach;
pub use sys::set_realtime;
