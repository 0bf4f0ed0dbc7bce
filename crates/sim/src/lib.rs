//! The packet-level discrete-event simulator: a [`Plan`] in, an [`Outcome`] out.
//!
//! Open `engine` for the loop, `flow` for what sits at the ends, `tcp` and `datagram` for the endpoints, `recorder` for what
//! is measured. A run is a pure function of its plan: no clock, no global state, ties in a defined order.

// Tests inside share the plans of those outside.
#[cfg(test)]
extern crate self as paceline_sim;

mod datagram;
mod engine;
mod events;
mod flow;
mod host;
pub mod hosted;
mod link_meter;
mod meter;
mod network;
pub mod outcome;
mod packet;
pub mod plan;
mod prefetch;
mod receiver;
mod recorder;
#[cfg(test)]
mod reference;
mod route;
mod sender;
mod series;
mod stats;
mod tcp;
mod telemetry;
mod transfer;
mod transit;

use std::ops::ControlFlow;

use paceline_net::Picos;

pub use outcome::{Column, EngineStats, FlowOutcome, LinkOutcome, Outcome, Series, Stats};
pub use plan::{
    ControllerFactory, DatagramOptions, FlowPlan, LossNotice, MAX_IN_FLIGHT, NamedLink,
    PacketSizes, Plan, PlanError, Stack, TcpOptions,
};

/// Runs `plan` to its end.
///
/// # Errors
/// A plan that names a missing link, exceeds the engine's ranges, pairs a controller with an endpoint that cannot host it, or lets a
/// window grow without bound.
pub fn run(plan: Plan) -> Result<Outcome, PlanError> {
    let outcome = run_watched(plan, &mut |_| ControlFlow::Continue(()))?;
    Ok(outcome.expect("a watch that never breaks lets the run end"))
}

/// Runs `plan`, showing `watch` the simulated time, ps, at every sample; `None` when it broke the run off. The outcome does
/// not depend on it.
///
/// # Errors
/// As [`run`].
pub fn run_watched(
    plan: Plan,
    watch: &mut dyn FnMut(Picos) -> ControlFlow<()>,
) -> Result<Option<Outcome>, PlanError> {
    engine::Engine::new(plan)?.run(watch)
}
