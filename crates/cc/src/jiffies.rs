//! Linux's clock, HZ = 250 as Debian and most distributions build it: one jiffy is 4 ms.

/// Jiffies in a second.
pub(crate) const HZ: u64 = 250;
const JIFFY_NS: u64 = 1_000_000_000 / HZ;

/// The clock at `now_ns`: whole jiffies passed.
pub(crate) fn at(now_ns: u64) -> u64 {
    now_ns / JIFFY_NS
}

/// A duration, rounded up to whole jiffies.
pub(crate) fn lasting(duration_ns: u64) -> u64 {
    duration_ns.div_ceil(JIFFY_NS)
}

#[cfg(test)]
mod tests {
    #[test]
    fn round_down_a_time_and_up_a_duration() {
        assert_eq!((super::at(7_999_999), super::at(8_000_000)), (1, 2));
        assert_eq!((super::lasting(40_000_000), super::lasting(40_000_001)), (10, 11));
    }
}
