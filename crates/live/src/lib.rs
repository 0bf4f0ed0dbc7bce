//! A [`paceline_sim::Plan`] carried out for real: the same plan that the simulator takes, over sockets of this machine and the
//! link emulator, in real time; out comes the same [`paceline_sim::Outcome`].
//!
//! ```text
//!   network namespace of the run           │        network namespace of the caller
//!   sender of each flow ─ kernel ─ TUN ─ emulator ─ TUN ─ kernel ─ receiver of each flow
//!    datagram: the simulator's own endpoint│        datagram: one thread that acknowledges
//!    tcp: this kernel's                    │        tcp: one that reads
//! ```
//!
//! What is measured comes from three places, with the simulator's own meters: RTT, window and rate from the sender; throughput,
//! queueing and signal delay and losses from the emulator, which sees every packet with the times that its model gives it; so
//! both worlds mean the same by each name.

#![deny(unsafe_code)]

mod clock;
pub mod contest;
mod error;
mod observe;
mod ports;
mod receive;
mod route;
mod run;
mod send;
mod sys;
mod tcp;
mod tcp_info;
pub mod traffic;
mod way;
mod wire;

pub use error::LiveError;
pub use run::{Finished, Health, Loaded, Options, run, run_with};
pub use tcp::{Congestion, kernel_name};
pub use wire::{Acked, Acknowledger, Header, Missing};
