//! The RTTs of one round trip, and the smallest of the connection: what delay-based controllers compare. ACKs in, a summary per
//! round out.

use crate::event::AckSample;
use crate::round::RoundCounter;

/// The RTT samples of one round trip.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RttSummary {
    /// How many.
    pub samples: u32,
    /// The smallest, ns; `u64::MAX` without samples.
    pub min_ns: u64,
    /// The largest, ns; 0 without samples.
    pub max_ns: u64,
    sum_ns: u64,
}

impl RttSummary {
    const NONE: Self = Self { samples: 0, min_ns: u64::MAX, max_ns: 0, sum_ns: 0 };

    /// Their mean, ns; 0 without samples.
    pub fn mean_ns(&self) -> u64 {
        self.sum_ns.checked_div(u64::from(self.samples)).unwrap_or(0)
    }
}

/// Gathers RTT samples by round trips.
#[derive(Clone, Copy, Debug)]
pub struct RoundRtt {
    rounds: RoundCounter,
    current: RttSummary,
    base_ns: u64,
    stale: bool,
}

impl Default for RoundRtt {
    fn default() -> Self {
        Self {
            rounds: RoundCounter::default(),
            current: RttSummary::NONE,
            base_ns: u64::MAX,
            stale: false,
        }
    }
}

impl RoundRtt {
    /// Notes the sample of an ACK, if it has one.
    pub fn note(&mut self, ack: &AckSample) {
        if ack.rtt_ns > 0 {
            self.base_ns = self.base_ns.min(ack.rtt_ns);
        }
        if std::mem::take(&mut self.stale) {
            self.current = RttSummary::NONE;
            self.rounds.restart(ack.delivered_total_bytes);
        } else if ack.rtt_ns > 0 {
            let current = &mut self.current;
            current.samples = current.samples.saturating_add(1);
            current.min_ns = current.min_ns.min(ack.rtt_ns);
            current.max_ns = current.max_ns.max(ack.rtt_ns);
            current.sum_ns = current.sum_ns.saturating_add(ack.rtt_ns);
        }
    }

    /// The samples of the round that this ACK ends, its own included; the next round begins. The first ACK ends a round too.
    pub fn finish(&mut self, ack: &AckSample) -> Option<RttSummary> {
        self.rounds.on_ack(ack).then(|| std::mem::replace(&mut self.current, RttSummary::NONE))
    }

    /// A loss or a pause lies between: the round begins anew at the next ACK, whose own sample is of before.
    pub fn discard(&mut self) {
        self.stale = true;
    }

    /// The smallest RTT since the start or since [`RoundRtt::forget_base`], ns.
    pub fn base_ns(&self) -> Option<u64> {
        (self.base_ns != u64::MAX).then_some(self.base_ns)
    }

    /// Begins to look for the smallest RTT anew.
    pub fn forget_base(&mut self) {
        self.base_ns = u64::MAX;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ack(prior: u64, total: u64, rtt_ns: u64) -> AckSample {
        AckSample {
            rtt_ns,
            prior_delivered_total_bytes: prior,
            delivered_total_bytes: total,
            ..AckSample::default()
        }
    }

    /// Notes an ACK; samples, smallest, largest and mean of the round that it ends.
    fn step(rtts: &mut RoundRtt, ack: &AckSample) -> Option<(u32, u64, u64, u64)> {
        rtts.note(ack);
        rtts.finish(ack).map(|r| (r.samples, r.min_ns, r.max_ns, r.mean_ns()))
    }

    #[test]
    fn a_round_is_summed_up_by_the_ack_that_ends_it() {
        let mut rtts = RoundRtt::default();
        assert_eq!(step(&mut rtts, &ack(0, 1, 50)), Some((1, 50, 50, 50)));
        assert_eq!(step(&mut rtts, &ack(0, 2, 60)), None);
        assert_eq!(step(&mut rtts, &ack(0, 3, 0)), None, "no sample");
        assert_eq!(step(&mut rtts, &ack(1, 4, 70)), Some((2, 60, 70, 65)));
        assert_eq!(rtts.base_ns(), Some(50));
    }

    #[test]
    fn what_was_discarded_counts_for_the_base_only() {
        let mut rtts = RoundRtt::default();
        step(&mut rtts, &ack(0, 1, 50));
        step(&mut rtts, &ack(0, 2, 60));
        rtts.discard();
        assert_eq!(step(&mut rtts, &ack(1, 3, 40)), None);
        assert_eq!(step(&mut rtts, &ack(2, 4, 70)), None, "sent before");
        assert_eq!(step(&mut rtts, &ack(3, 5, 80)), Some((2, 70, 80, 75)));
        assert_eq!(rtts.base_ns(), Some(40));
        rtts.forget_base();
        assert_eq!(rtts.base_ns(), None);
    }
}
