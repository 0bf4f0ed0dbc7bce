//! The clock of a run: CLOCK_MONOTONIC since its start, in ps.

use std::time::Instant;

use paceline_net::{PS_PER_MS, PS_PER_NS, Picos};

use crate::sys;

/// Ticks from the start of a run on.
#[derive(Clone, Copy, Debug)]
pub struct Clock {
    start: Instant,
}

/// How CLOCK_REALTIME, in which the kernel notes arrivals, and a [`Clock`] stand to each other at a moment.
#[derive(Clone, Copy, Debug)]
pub struct Offset {
    now: Picos,
    realtime_ns: u64,
}

impl Clock {
    /// With time 0 at `start`.
    pub fn new(start: Instant) -> Self {
        Self { start }
    }

    /// The time, ps.
    pub fn now(&self) -> Picos {
        self.start.elapsed().as_nanos() as Picos * PS_PER_NS
    }

    /// The offset to CLOCK_REALTIME now.
    pub fn offset(&self) -> Offset {
        Offset { now: self.now(), realtime_ns: sys::realtime_ns() }
    }
}

impl Offset {
    /// The moment at which it was taken.
    pub fn now(&self) -> Picos {
        self.now
    }

    /// When something arrived that the kernel noted at `received_ns`; a note that makes no sense counts as now.
    pub fn arrival(&self, received_ns: Option<u64>) -> Picos {
        let age = received_ns.and_then(|ns| self.realtime_ns.checked_sub(ns));
        age.and_then(|ns| self.now.checked_sub(ns.checked_mul(PS_PER_NS)?)).unwrap_or(self.now)
    }
}

/// Whole milliseconds.
pub fn ms(time: Picos) -> u64 {
    time / PS_PER_MS
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arrivals_lie_before_now_or_count_as_now() {
        let offset = Offset { now: 5_000_000, realtime_ns: 1_000_000 };
        assert_eq!(offset.arrival(Some(999_998)), 4_998_000);
        for senseless in [None, Some(1_000_001), Some(0), Some(u64::MAX)] {
            assert_eq!(offset.arrival(senseless), 5_000_000);
        }
    }
}
