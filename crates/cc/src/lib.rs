//! Congestion controllers: the contract, the shared parts, one file per algorithm, the registry.
//!
//! Read [`controller`] for the contract, [`event`] for what a controller hears, [`registry`] for how one is found and
//! parametrised. Nothing here reads a clock, allocates per event or draws from a global random state.

mod algorithms;
mod bounds;
pub mod controller;
#[cfg(test)]
mod driver;
mod episode;
pub mod event;
pub mod event_log;
mod filters;
mod jiffies;
mod native;
mod random;
mod recording;
pub mod registry;
mod reno_window;
mod round;
mod round_rtt;
pub mod rtt;
pub mod sampler;
mod slow_start;
mod window_law;

pub use controller::{Control, Controller, Field, Needs};
pub use event::{Ack, AckSample, IntHop, Loss, PathInfo, Resume, Sent, Timeout, Undo};
pub use native::{Instance, Portable};
pub use recording::Recording;
pub use registry::{Family, Kind, Param, ParamError, Params, Profile, Spec};
