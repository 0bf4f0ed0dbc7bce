//! The clock of a run: CLOCK_MONOTONIC since its start, in ps.

use std::time::Instant;

use paceline_net::{PS_PER_MS, PS_PER_NS, PS_PER_US, Picos};

use crate::sys;

/// Ticks from the start of a run on.
#[derive(Clone, Copy, Debug)]
pub struct Clock {
    start: Instant,
}

/// Attempts at reading two clocks at a time, …
const READINGS: u32 = 4;
/// … until they are no further apart.
const GOOD_READING: Picos = PS_PER_US;

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

    /// The offset to CLOCK_REALTIME now. It may err by the time between two readings, and so that arrivals seem late, never
    /// early; a thread that was held up between them reads again.
    pub fn offset(&self) -> Offset {
        let mut best = (Picos::MAX, Offset { now: 0, realtime_ns: 0 });
        for _ in 0..READINGS {
            let before = self.now();
            let realtime_ns = sys::realtime_ns();
            let now = self.now();
            if now - before < best.0 {
                best = (now - before, Offset { now, realtime_ns });
            }
            if best.0 < GOOD_READING {
                break;
            }
        }
        best.1
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
