//! Smoothed RTT and retransmission timeout, RFC 6298. RTT samples in, SRTT, RTTVAR and RTO out, all in nanoseconds.
//! Karn's rule (no samples from ambiguous retransmissions) is the caller's.

/// RTT estimator of one connection.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RttEstimator {
    srtt_ns: u64,
    rttvar_ns: u64,
    min_rtt_ns: u64,
    floor_ns: u64,
    backoff: u32,
}

impl RttEstimator {
    /// RTO before the first sample, ns (RFC 6298 rule 2.1).
    pub const INITIAL_RTO_NS: u64 = 1_000_000_000;
    /// Largest RTO, ns (rule 2.5: at least 60 s).
    pub const MAX_RTO_NS: u64 = 60_000_000_000;
    /// Floor that RFC 6298 rule 2.4 asks for, ns. Linux uses 200 ms.
    pub const RFC_MIN_RTO_NS: u64 = 1_000_000_000;

    /// An estimator without samples whose RTO is at least `min_rto_ns`.
    pub fn new(min_rto_ns: u64) -> Self {
        Self { srtt_ns: 0, rttvar_ns: 0, min_rtt_ns: 0, floor_ns: min_rto_ns, backoff: 0 }
    }

    /// Takes an RTT sample, ns, and ends any back-off (rule 5.7). A sample of 0 counts as 1 ns.
    #[inline]
    pub fn on_sample(&mut self, rtt_ns: u64) {
        let rtt_ns = rtt_ns.clamp(1, u64::MAX / 16);
        if self.srtt_ns == 0 {
            // (2.2)
            self.srtt_ns = rtt_ns;
            self.rttvar_ns = rtt_ns / 2;
            self.min_rtt_ns = rtt_ns;
        } else {
            // (2.3) The variance first: it uses the old SRTT. alpha = 1/8, beta = 1/4.
            let error_ns = self.srtt_ns.abs_diff(rtt_ns);
            self.rttvar_ns = (3 * self.rttvar_ns + error_ns) / 4;
            self.srtt_ns = (7 * self.srtt_ns + rtt_ns) / 8;
            self.min_rtt_ns = self.min_rtt_ns.min(rtt_ns);
        }
        self.backoff = 0;
    }

    /// Takes in an ACK of several packets: its oldest packet's RTT, and its newest's, the only one that the receiver did not hold
    /// back, for the smallest.
    #[inline]
    pub fn on_ack(&mut self, oldest_ns: u64, newest_ns: u64) {
        self.on_sample(oldest_ns);
        self.min_rtt_ns = self.min_rtt_ns.min(newest_ns.max(1));
    }

    /// Doubles the RTO: the timer has expired (rule 5.5).
    pub fn on_timeout(&mut self) {
        self.backoff = (self.backoff + 1).min(16);
    }

    /// Retransmission timeout, ns: floored, backed off, at most 60 s.
    pub fn rto_ns(&self) -> u64 {
        let base_ns = match self.srtt_ns {
            0 => Self::INITIAL_RTO_NS,
            // The clock granularity G is 1 ns.
            srtt_ns => srtt_ns + (4 * self.rttvar_ns).max(1),
        };
        let cap_ns = Self::MAX_RTO_NS.max(self.floor_ns);
        base_ns.clamp(self.floor_ns, cap_ns).saturating_mul(1 << self.backoff).min(cap_ns)
    }

    /// No timeout is shorter, ns.
    pub fn min_rto_ns(&self) -> u64 {
        self.floor_ns
    }

    /// Smoothed RTT, ns; 0 before the first sample.
    pub fn srtt_ns(&self) -> u64 {
        self.srtt_ns
    }

    /// RTT variation, ns; 0 before the first sample.
    pub fn rttvar_ns(&self) -> u64 {
        self.rttvar_ns
    }

    /// Smallest RTT, ns; 0 before the first sample.
    pub fn min_rtt_ns(&self) -> u64 {
        self.min_rtt_ns
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    #[test]
    fn constant_100_ms_by_hand() {
        let mut rtt = RttEstimator::new(0);
        assert_eq!(rtt.rto_ns(), 1000 * MS);
        rtt.on_sample(100 * MS);
        assert_eq!(rtt.rto_ns(), 300 * MS); // 100 + 4 * 50
        rtt.on_sample(100 * MS);
        assert_eq!(rtt.rttvar_ns(), 37_500_000);
        assert_eq!(rtt.rto_ns(), 250 * MS); // 100 + 4 * 37.5
    }

    #[test]
    fn a_delayed_ack_counts_but_for_the_smallest() {
        let mut rtt = RttEstimator::new(0);
        rtt.on_ack(180 * MS, 140 * MS);
        rtt.on_ack(100 * MS, 90 * MS);
        assert_eq!((rtt.srtt_ns(), rtt.min_rtt_ns()), (170 * MS, 90 * MS));
    }

    #[test]
    fn variance_uses_the_old_mean() {
        let mut rtt = RttEstimator::new(0);
        rtt.on_sample(100 * MS);
        rtt.on_sample(180 * MS);
        assert_eq!(rtt.rttvar_ns(), 57_500_000); // 3/4 * 50 + 1/4 * 80
        assert_eq!(rtt.srtt_ns(), 110 * MS);
        assert_eq!(rtt.min_rtt_ns(), 100 * MS);
    }

    #[test]
    fn floor_back_off_and_cap() {
        let mut rtt = RttEstimator::new(RttEstimator::RFC_MIN_RTO_NS);
        rtt.on_sample(100 * MS);
        assert_eq!(rtt.rto_ns(), 1000 * MS);
        rtt.on_timeout();
        rtt.on_timeout();
        assert_eq!(rtt.rto_ns(), 4000 * MS);
        for _ in 0..100 {
            rtt.on_timeout();
        }
        assert_eq!(rtt.rto_ns(), 60_000 * MS);
        rtt.on_sample(100 * MS);
        assert_eq!(rtt.rto_ns(), 1000 * MS, "a sample ends the back-off");
        rtt.on_sample(u64::MAX);
        assert!(rtt.rto_ns() <= 60_000 * MS);
    }
}
