//! What waits in front of a transmitter.
//!
//! In: packets with the time at which their service begins, known on arrival. Out: what still waits at a moment, and
//! whether one more may join. No event marks the start of a service: entries whose time has come are dropped from the
//! front of a ring whenever somebody looks.

use std::collections::VecDeque;

use crate::Picos;
use crate::link::{Backlog, Buffer};

/// The packets that wait; the one in service is not among them.
#[derive(Clone, Debug, Default)]
pub(crate) struct Waiting {
    limit: Buffer,
    /// Start of service, ps, non-decreasing; size, bytes.
    ring: VecDeque<(Picos, u32)>,
    /// Sum of the sizes in the ring.
    bytes: u64,
}

impl Waiting {
    pub(crate) fn new(limit: Buffer) -> Self {
        Self { limit, ..Self::default() }
    }

    /// Whether a packet of `bytes` that arrives at `now` and is served from `start` on keeps within the limits.
    #[inline]
    pub(crate) fn has_room(&mut self, now: Picos, start: Picos, bytes: u32) -> bool {
        self.forget_served(now);
        let within = |limit: Option<u64>, value: u64| limit.is_none_or(|limit| value <= limit);
        within(self.limit.packets, self.ring.len() as u64 + 1)
            && within(self.limit.bytes, self.bytes.saturating_add(u64::from(bytes)))
            && within(self.limit.wait_ps, start.saturating_sub(now))
    }

    /// A packet of `bytes` joins the queue until `start`.
    #[inline]
    pub(crate) fn push(&mut self, start: Picos, bytes: u32) {
        self.ring.push_back((start, bytes));
        self.bytes += u64::from(bytes);
    }

    /// What waits at `now`.
    pub(crate) fn backlog(&mut self, now: Picos) -> Backlog {
        self.forget_served(now);
        Backlog { packets: self.ring.len() as u64, bytes: self.bytes }
    }

    /// Drops the entries whose service has begun.
    #[inline]
    fn forget_served(&mut self, now: Picos) {
        while let Some(&(start, bytes)) = self.ring.front()
            && start <= now
        {
            self.ring.pop_front();
            self.bytes -= u64::from(bytes);
        }
    }
}
