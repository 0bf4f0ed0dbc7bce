//! Congestion controllers: the contract, the shared parts, one file per algorithm, the registry.
//!
//! Read [`controller`] for the contract, [`event`] for what a controller hears, [`registry`] for how one is found and
//! parametrised. Nothing here reads a clock, allocates per event or draws from a global random state.

pub mod algorithms;
pub mod controller;
pub mod episode;
pub mod event;
pub mod filters;
mod native;
pub mod random;
pub mod registry;
pub mod round;
pub mod round_rtt;
pub mod rtt;
pub mod sampler;
pub mod slow_start;

pub use controller::{Control, Controller, Field, Needs};
pub use event::{Ack, AckSample, IntHop, Loss, PathInfo, Resume, Sent, Timeout, Undo};
pub use registry::{Family, Kind, Param, ParamError, Params, Profile, Spec};
