//! What can go wrong, said so that one knows what to do.

/// Why the kernel does not do it.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// This machine, this user or this build cannot.
    #[error("{0}")]
    Unavailable(String),
    /// What was asked for is not possible anywhere.
    #[error("{0}")]
    Input(String),
    /// The kernel refused.
    #[error("cannot {what}: {reason}{}", details(log))]
    Kernel {
        /// What was attempted.
        what: String,
        /// Why it failed.
        reason: libbpf_rs::Error,
        /// What libbpf and the verifier said, their last lines.
        log: String,
    },
}

impl Error {
    pub(crate) fn kernel(what: impl Into<String>) -> impl FnOnce(libbpf_rs::Error) -> Self {
        |reason| Self::Kernel { what: what.into(), reason, log: String::new() }
    }
}

fn details(log: &str) -> String {
    if log.is_empty() { String::new() } else { format!("\n{log}") }
}
