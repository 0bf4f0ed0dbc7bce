//! What happened in one direction, and how true to the model it was.

use paceline_net::{DropReason, PS_PER_NS, Picos};

/// Packets of one direction, and how late they were.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Counts {
    /// Packets that entered.
    pub entered_packets: u64,
    /// Their bytes, as the link counts them.
    pub entered_bytes: u64,
    /// Packets that left at the far end.
    pub left_packets: u64,
    /// Their bytes.
    pub left_bytes: u64,
    /// Dropped because the buffer was full.
    pub dropped_full: u64,
    /// Dropped by the queue's discipline.
    pub dropped_managed: u64,
    /// Dropped by random loss.
    pub dropped_random: u64,
    /// Dropped because the trace was used up.
    pub dropped_exhausted: u64,
    /// Left, but refused by the device at the far end.
    pub unwritable_packets: u64,
    /// How long after their time packets were written.
    pub lateness: Lateness,
}

impl Counts {
    pub(crate) fn on_entered(&mut self, bytes: u32) {
        self.entered_packets += 1;
        self.entered_bytes += u64::from(bytes);
    }

    pub(crate) fn on_left(&mut self, bytes: u32, late: Picos) {
        self.left_packets += 1;
        self.left_bytes += u64::from(bytes);
        self.lateness.add(late);
    }

    pub(crate) fn on_dropped(&mut self, reason: DropReason) {
        *match reason {
            DropReason::Buffer => &mut self.dropped_full,
            DropReason::Managed => &mut self.dropped_managed,
            DropReason::Random => &mut self.dropped_random,
            DropReason::Exhausted => &mut self.dropped_exhausted,
        } += 1;
    }

    /// Packets dropped, for whatever reason.
    pub fn dropped_packets(&self) -> u64 {
        self.dropped_full + self.dropped_managed + self.dropped_random + self.dropped_exhausted
    }
}

/// Buckets per doubling.
const STEPS: u32 = 8;
/// Doublings, from 1 ns to 18 minutes.
const DOUBLINGS: u32 = 40;

/// A distribution of times: the emulator's own error.
#[derive(Clone, Debug, PartialEq)]
pub struct Lateness {
    buckets: Box<[u64; (STEPS * DOUBLINGS) as usize]>,
    count: u64,
    sum_ns: u64,
    max_ns: u64,
}

impl Default for Lateness {
    fn default() -> Self {
        Self { buckets: Box::new([0; _]), count: 0, sum_ns: 0, max_ns: 0 }
    }
}

impl Lateness {
    fn add(&mut self, late: Picos) {
        let ns = late / PS_PER_NS;
        self.count += 1;
        self.sum_ns = self.sum_ns.saturating_add(ns);
        self.max_ns = self.max_ns.max(ns);
        self.buckets[bucket(ns)] += 1;
    }

    /// Mean, us; `None` before the first packet.
    pub fn mean_us(&self) -> Option<f64> {
        (self.count > 0).then(|| self.sum_ns as f64 / self.count as f64 / 1e3)
    }

    /// Longest, us.
    pub fn max_us(&self) -> Option<f64> {
        (self.count > 0).then_some(self.max_ns as f64 / 1e3)
    }

    /// The time that a share `quantile` of the packets does not exceed, us; at most an eighth too long.
    pub fn quantile_us(&self, quantile: f64) -> Option<f64> {
        let wanted = ((self.count as f64 * quantile).ceil() as u64).max(1);
        let mut seen = 0;
        let index = self.buckets.iter().position(|n| {
            seen += n;
            seen >= wanted
        })?;
        Some((upper_ns(index).min(self.max_ns)) as f64 / 1e3)
    }
}

fn bucket(ns: u64) -> usize {
    let ns = ns.max(1);
    let doubling = ns.ilog2();
    // The bits behind the first one.
    let step = if doubling >= 3 { (ns >> (doubling - 3)) & 7 } else { (ns << (3 - doubling)) & 7 };
    ((doubling * STEPS) as usize + step as usize).min((STEPS * DOUBLINGS) as usize - 1)
}

/// The longest time in bucket `index`, ns.
fn upper_ns(index: usize) -> u64 {
    let (doubling, step) = (index as u32 / STEPS, index as u64 % u64::from(STEPS));
    ((step + 9) << doubling).div_ceil(8) - 1
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_are_right_to_an_eighth() {
        let mut lateness = Lateness::default();
        assert_eq!((lateness.mean_us(), lateness.quantile_us(0.5)), (None, None));
        (1..=1000).for_each(|us| lateness.add(us * 1_000_000));
        assert_eq!(lateness.mean_us(), Some(500.5));
        assert_eq!(lateness.max_us(), Some(1000.0));
        for (quantile, exact) in [(0.5, 500.0), (0.99, 990.0), (0.001, 1.0), (1.0, 1000.0)] {
            let found = lateness.quantile_us(quantile).unwrap();
            assert!((exact..=exact * 1.13).contains(&found), "{quantile}: {found}");
        }
    }

    #[test]
    fn every_time_has_a_bucket_that_holds_it() {
        for ns in (0..5000).chain([1 << 20, (1 << 33) + 12_345, u64::MAX]) {
            let upper = upper_ns(bucket(ns));
            assert!(upper >= ns.min((1 << 40) - 1), "{ns} {upper}");
        }
    }
}
