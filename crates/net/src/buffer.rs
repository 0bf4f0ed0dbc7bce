//! What waits in front of a transmitter.
//!
//! In: packets with the time at which their service begins, known on arrival. Out: what still waits at a moment, and
//! whether one more may join. No event marks the start of a service: entries whose time has come are dropped from the
//! front of a line whenever somebody looks.

use crate::Picos;
use crate::line::Line;
use crate::link::{Backlog, Buffer};

/// The packets that wait; the one in service is not among them.
#[derive(Clone, Debug)]
pub(crate) struct Waiting {
    /// Limits; the largest value stands for none.
    max_packets: u64,
    max_bytes: u64,
    max_wait_ps: Picos,
    /// Start of service, ps, non-decreasing; size, bytes.
    line: Line<(Picos, u32)>,
    /// Sum of the sizes in the line.
    bytes: u64,
}

impl Waiting {
    pub(crate) fn new(limit: Buffer) -> Self {
        Self {
            max_packets: limit.packets.unwrap_or(u64::MAX),
            max_bytes: limit.bytes.unwrap_or(u64::MAX),
            max_wait_ps: limit.wait_ps.unwrap_or(Picos::MAX),
            line: Line::default(),
            bytes: 0,
        }
    }

    /// Whether a packet of `bytes` that arrives at `now` and is served from `start` on keeps within the limits.
    #[inline]
    pub(crate) fn has_room(&mut self, now: Picos, start: Picos, bytes: u32) -> bool {
        self.forget_served(now);
        (self.line.len() as u64) < self.max_packets
            && self.bytes.saturating_add(u64::from(bytes)) <= self.max_bytes
            && start.saturating_sub(now) <= self.max_wait_ps
    }

    /// A packet of `bytes` joins the queue until `start`.
    #[inline]
    pub(crate) fn push(&mut self, start: Picos, bytes: u32) {
        self.line.push((start, bytes));
        self.bytes += u64::from(bytes);
    }

    /// What waits at `now`.
    pub(crate) fn backlog(&mut self, now: Picos) -> Backlog {
        self.forget_served(now);
        Backlog { packets: self.line.len() as u64, bytes: self.bytes }
    }

    /// Drops the entries whose service has begun.
    #[inline]
    fn forget_served(&mut self, now: Picos) {
        while let Some((_, bytes)) = self.line.pop_if(|(start, _)| *start <= now) {
            self.bytes -= u64::from(bytes);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_line_holds_no_more_than_what_waits() {
        // Each packet waits for 10 arrivals; nobody asks for the backlog and nothing is limited.
        let mut waiting = Waiting::new(Buffer::default());
        for now in 0..100_000 {
            assert!(waiting.has_room(now, now + 10, 1500));
            waiting.push(now + 10, 1500);
            assert!(waiting.line.len() <= 10);
        }
        assert_eq!(waiting.backlog(100_000), Backlog { packets: 9, bytes: 13_500 });
        assert_eq!(waiting.backlog(Picos::MAX), Backlog::default());
    }
}
