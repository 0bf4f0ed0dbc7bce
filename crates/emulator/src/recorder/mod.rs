//! Measures a live link into a trace, which the emulator and the simulator then play.
//!
//! Two ends, a server and a client behind the link. One keeps the link busy (`saturator.rs`), the other writes down what
//! arrives (`recording.rs`). As long as packets wait in front of the link, every arrival is an opportunity that it had. One
//! direction is measured at a time: the other is for the acknowledgements, which must not wait.
//!
//! The client asks for a measurement over a TCP connection, and gets the server's recording over it; packets and
//! acknowledgements are UDP datagrams (`wire.rs`), to the server's port of the same number.

mod flow;
mod recording;
mod saturator;
mod session;
#[cfg(test)]
mod tests;
mod wire;

use std::io;
use std::time::Duration;

use paceline_net::{PS_PER_NS, Picos, Trace, TraceError};

pub use recording::Quality;
pub use session::{Server, record};

/// A direction of a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    /// From the client to the server.
    Uplink,
    /// From the server to the client.
    Downlink,
}

impl Way {
    /// In words.
    pub fn name(self) -> &'static str {
        match self {
            Self::Uplink => "uplink",
            Self::Downlink => "downlink",
        }
    }
}

/// What to measure, and how.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Plan {
    /// Which direction.
    pub way: Way,
    /// Length of the trace, in whole ms, at least one.
    pub duration: Duration,
    /// How long the link is loaded before.
    pub warm_up: Duration,
    /// Size of the packets, bytes of IP.
    pub packet_bytes: u16,
    /// Packets shall wait so long at least …
    pub least_wait: Duration,
    /// … and not longer than this.
    pub most_wait: Duration,
}

impl Plan {
    /// The smallest packets …
    pub const LEAST_PACKET_BYTES: u16 = 100;
    /// … and the largest.
    pub const MOST_PACKET_BYTES: u16 = 9000;
    /// The longest measurement.
    pub const MOST_DURATION: Duration = Duration::from_secs(3600);
    /// The longest warm-up, and the longest waits.
    pub const MOST_WAIT: Duration = Duration::from_secs(60);

    /// A measurement of `duration`, with packets of 1500 bytes that wait for 0.75 s to 3 s, after 5 s to begin with.
    pub fn new(way: Way, duration: Duration) -> Self {
        Self {
            way,
            duration,
            warm_up: Duration::from_secs(5),
            packet_bytes: 1500,
            least_wait: Duration::from_millis(750),
            most_wait: Duration::from_secs(3),
        }
    }

    /// What is out of its range.
    pub fn check(&self) -> Result<(), RecorderError> {
        let refused = |what: &str| Err(RecorderError::Refused(what.into()));
        let sizes = Self::LEAST_PACKET_BYTES..=Self::MOST_PACKET_BYTES;
        if !(Duration::from_millis(1)..=Self::MOST_DURATION).contains(&self.duration) {
            return refused("a duration out of range; allowed: 1 ms to 3600 s");
        }
        if self.warm_up > Self::MOST_WAIT || self.most_wait > Self::MOST_WAIT {
            return refused("a warm-up or wait out of range; allowed: 60 s at most");
        }
        if self.least_wait > self.most_wait {
            return refused("the least wait is longer than the longest");
        }
        if !sizes.contains(&self.packet_bytes) {
            return refused("a packet size out of range; allowed: 100 B to 9000 B");
        }
        Ok(())
    }
}

/// One direction, measured.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Recorded {
    /// The trace.
    pub trace: Trace,
    /// How far to trust it.
    pub quality: Quality,
}

/// Why there is no recording.
#[derive(Debug, thiserror::Error)]
pub enum RecorderError {
    /// A socket failed.
    #[error("cannot {what}: {reason}")]
    Socket {
        /// What was attempted.
        what: String,
        /// Why it failed.
        reason: io::Error,
    },
    /// The plan, or what the other end said of it.
    #[error("{0}")]
    Refused(String),
    /// The other end does not speak as it should.
    #[error("the other end does not answer like a paceline of this version: {0}")]
    Garbled(String),
    /// Datagrams do not get through.
    #[error("no datagram came back from UDP port {0}: is it blocked on the way?")]
    Silent(u16),
    /// Nothing arrived in a direction.
    #[error("nothing arrived over the {direction} while it was measured: {reason}")]
    Nothing {
        /// Which direction.
        direction: &'static str,
        /// Why that is no trace.
        reason: TraceError,
    },
    /// Ctrl-C.
    #[error("interrupted")]
    Interrupted,
}

fn picos(time: Duration) -> Picos {
    time.as_nanos() as Picos * PS_PER_NS
}
