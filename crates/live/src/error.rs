//! What keeps a live run from coming about.

use std::io;

use paceline_emulator::Error;
use paceline_sim::PlanError;

/// A live run that did not come about.
#[derive(Debug, thiserror::Error)]
pub enum LiveError {
    /// The plan asks for something that a live run does not have.
    #[error("{0}")]
    Unsupported(String),
    /// The plan cannot run in any world.
    #[error(transparent)]
    Plan(#[from] PlanError),
    /// There is no emulated link.
    #[error(transparent)]
    Emulator(#[from] Error),
    /// A socket or a thread cannot be had.
    #[error("cannot {what}: {reason}")]
    System {
        /// What was attempted.
        what: &'static str,
        /// Why it failed.
        reason: io::Error,
    },
}

impl LiveError {
    pub(crate) fn system(what: &'static str) -> impl FnOnce(io::Error) -> Self {
        move |reason| Self::System { what, reason }
    }
}
