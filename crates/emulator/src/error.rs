//! What can go wrong, said so that one knows what to do.

use std::io;
use std::path::PathBuf;

/// Why there is no emulated link.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The machine or the user lacks what an emulator needs.
    #[error("{0}")]
    Unavailable(String),
    /// The command cannot be started.
    #[error("cannot run {program}: {reason}")]
    Command {
        /// As it was given.
        program: String,
        /// Why.
        reason: io::Error,
    },
    /// A log cannot be made.
    #[error("{}: {reason}", path.display())]
    Log {
        /// The file.
        path: PathBuf,
        /// Why.
        reason: io::Error,
    },
    /// Something failed that usually works.
    #[error("cannot {what}: {reason}")]
    System {
        /// What was attempted.
        what: &'static str,
        /// Why it failed.
        reason: io::Error,
    },
    /// The processes around the command were killed.
    #[error("the emulated link was killed from outside before the command ended")]
    Killed,
}

impl Error {
    pub(crate) fn system(what: &'static str, reason: impl Into<io::Error>) -> Self {
        let reason = reason.into();
        if reason.kind() == io::ErrorKind::PermissionDenied {
            return Self::Unavailable(format!(
                "cannot {what}: {reason}; an emulated link needs root, or the capabilities CAP_NET_ADMIN and \
                 CAP_SYS_ADMIN (try: sudo paceline link …)"
            ));
        }
        Self::System { what, reason }
    }

    /// The same where one capability more is needed than for any link, because of `option`.
    pub(crate) fn lacking(
        what: &'static str,
        option: &str,
        capability: &str,
        reason: impl Into<io::Error>,
    ) -> Self {
        let reason = reason.into();
        match reason.kind() {
            io::ErrorKind::PermissionDenied => Self::Unavailable(format!(
                "cannot {what}: {reason}; {option} needs root, or the capability {capability} besides those of any emulated link"
            )),
            _ => Self::System { what, reason },
        }
    }

    pub(crate) fn no_tun(reason: io::Error) -> Self {
        match reason.kind() {
            io::ErrorKind::NotFound => Self::Unavailable(
                "there is no /dev/net/tun: the kernel has no TUN devices (try: sudo modprobe tun), or the container \
                 does not pass it on (docker: --device /dev/net/tun)"
                    .into(),
            ),
            _ => Self::system("open /dev/net/tun", reason),
        }
    }
}
