//! Distributions without the samples: exact moments and extremes, percentiles from counts.

mod histogram;
mod signal_delay;

use paceline_net::Picos;

use self::histogram::{ALL_STEPS, Histogram};
pub(crate) use self::signal_delay::SignalDelay;
use crate::outcome::Stats;

/// How finely the delays of a run's flows are counted. Moments and extremes are exact at any.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Resolution {
    /// Budget of a [`Distribution`].
    pub(crate) counters: u16,
    /// Budget of a [`SignalDelay`].
    pub(crate) places: u16,
}

impl Resolution {
    /// Every percentile within 0.2 %, signal delay to the millisecond.
    pub(crate) const FULL: Self = Self { counters: ALL_STEPS, places: u16::MAX / 2 };

    /// An RTT and a queueing distribution and a signal delay take at most 900 bytes together.
    pub(crate) const COMPACT: Self = Self { counters: 80, places: 48 };

    /// Number of flows from which on they are counted compactly.
    const MANY_FLOWS: usize = 100;

    /// What `flows` flows can have without their memory becoming a burden.
    pub(crate) fn of_flows(flows: usize) -> Self {
        if flows < Self::MANY_FLOWS { Self::FULL } else { Self::COMPACT }
    }
}

/// A distribution of non-negative integers (nanoseconds) from a time on, summarised in a unit of the caller's choice. Takes memory
/// from the first sample on, and then a byte a counter; twice that once 256 samples were alike.
///
/// Percentiles are off by less than a step of the [`Histogram`]: 0.2 % at full resolution; with a budget of n counters and
/// samples from a to b, 2 (log2(b / a) + 0.09) / (n - 2). That is the worst case, all samples of a step at one end of it; as a
/// rule they are spread out, and the error is a small part of it.
#[derive(Clone, Debug)]
pub(crate) enum Distribution {
    /// No sample so far.
    Empty {
        from: Picos,
        counters: u16,
    },
    Begun(Counted),
}

#[derive(Clone, Debug)]
pub(crate) struct Counted {
    count: u64,
    /// Sums of differences from the first sample: the mean and the variance without cancellation.
    origin: u64,
    sum: f64,
    sum_squares: f64,
    histogram: Histogram,
}

impl Distribution {
    /// Of samples from the time `from` on, with at most `counters` counters (at least 1).
    pub(crate) fn new(from: Picos, counters: u16) -> Self {
        Self::Empty { from, counters }
    }

    /// One sample, below 2^63, at a time that does not go back. Whether it counts.
    #[inline]
    pub(crate) fn add(&mut self, now: Picos, value: u64) -> bool {
        let Self::Begun(counted) = self else { return self.begin(now, value) };
        counted.count += 1;
        let offset = value.wrapping_sub(counted.origin).cast_signed() as f64;
        counted.sum += offset;
        counted.sum_squares += offset * offset;
        counted.histogram.add(value);
        true
    }

    #[cold]
    #[inline(never)]
    fn begin(&mut self, now: Picos, value: u64) -> bool {
        if let Self::Empty { from, counters } = *self
            && now >= from
        {
            let histogram = Histogram::new(value, counters);
            let first = Counted { count: 1, origin: value, sum: 0.0, sum_squares: 0.0, histogram };
            *self = Self::Begun(first);
            return true;
        }
        false
    }

    fn counted(&self) -> Option<&Counted> {
        match self {
            Self::Empty { .. } => None,
            Self::Begun(counted) => Some(counted),
        }
    }

    /// Fetches what the next sample will touch outside this struct.
    #[inline]
    pub(crate) fn prefetch(&self) {
        if let Self::Begun(counted) = self {
            counted.histogram.prefetch();
        }
    }

    /// Fetches what [`Self::stats`] will read outside this struct.
    #[inline]
    pub(crate) fn prefetch_counters(&self) {
        if let Self::Begun(counted) = self {
            counted.histogram.prefetch_counters();
        }
    }

    /// Memory it holds beyond its own size, bytes.
    pub(crate) fn heap_bytes(&self) -> usize {
        self.counted().map_or(0, |counted| counted.histogram.heap_bytes())
    }

    /// Summary of the samples times `scale`; `None` without samples.
    pub(crate) fn stats(&self, scale: f64) -> Option<Stats> {
        let Counted { count, origin, sum, sum_squares, histogram } = self.counted()?;
        let n = *count as f64;
        let offset = sum / n;
        let variance = (sum_squares / n - offset * offset).max(0.0);
        let [p5, p25, p50, p75, p95, p99] =
            histogram.at_ranks(RANKS.map(|q| rank(q, *count))).map(|value| value * scale);
        Some(Stats {
            mean: (*origin as f64 + offset) * scale,
            std: variance.sqrt() * scale,
            min: histogram.min() as f64 * scale,
            max: histogram.max() as f64 * scale,
            p5,
            p25,
            p50,
            p75,
            p95,
            p99,
        })
    }
}

const RANKS: [f64; 6] = [0.05, 0.25, 0.50, 0.75, 0.95, 0.99];

/// 0-based rank of quantile `q` among `count` samples: floor(q n), as the contest's scripts take it.
fn rank(q: f64, count: u64) -> u64 {
    ((q * count as f64) as u64).min(count.saturating_sub(1))
}

/// Exact summary of `values`; NaN entries are left out. `None` when nothing is left. `sorted` is overwritten.
pub(crate) fn summarize(values: &[f64], sorted: &mut Vec<f64>) -> Option<Stats> {
    sorted.clear();
    sorted.extend(values.iter().filter(|v| !v.is_nan()));
    sorted.sort_unstable_by(f64::total_cmp);
    let (min, max) = (*sorted.first()?, *sorted.last()?);
    let n = sorted.len() as f64;
    let mean = sorted.iter().sum::<f64>() / n;
    let variance = sorted.iter().map(|v| (v - mean) * (v - mean)).sum::<f64>() / n;
    let [p5, p25, p50, p75, p95, p99] =
        RANKS.map(|q| sorted[rank(q, sorted.len() as u64) as usize]);
    Some(Stats { mean, std: variance.sqrt(), min, p5, p25, p50, p75, p95, p99, max })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn moments_by_hand() {
        let mut d = Distribution::new(0, ALL_STEPS);
        [2, 4, 4, 4, 5, 5, 7, 9].into_iter().for_each(|v| assert!(d.add(0, v)));
        let s = d.stats(1.0).unwrap();
        assert_eq!((s.mean, s.std, s.min, s.max, s.p50), (5.0, 2.0, 2.0, 9.0, 5.0));
        assert_eq!(Distribution::new(0, ALL_STEPS).stats(1.0), None);
    }

    #[test]
    fn a_mean_far_from_zero_keeps_its_variance() {
        let mut d = Distribution::new(0, ALL_STEPS);
        for i in 0..1_000_000u64 {
            d.add(0, 25_000_000_000 + i % 2);
        }
        let s = d.stats(1.0).unwrap();
        assert!((s.std - 0.5).abs() < 1e-6, "{}", s.std);
    }

    /// What the memory of a run of many flows is planned with.
    #[test]
    fn a_flow_among_many_measures_in_900_bytes() {
        let Resolution { counters, places } = Resolution::of_flows(100);
        let (mut rtt, mut queueing) =
            (Distribution::new(0, counters), Distribution::new(0, counters));
        let mut signal = SignalDelay::new(places);
        let bytes = |rtt: &Distribution, queueing: &Distribution, signal: &SignalDelay| {
            let own = size_of_val(rtt) + size_of_val(queueing) + size_of_val(signal);
            own + rtt.heap_bytes() + queueing.heap_bytes() + signal.heap_bytes()
        };
        let mut most = 0;
        for i in 0..100_000_u64 {
            let scattered = i.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 40;
            rtt.add(0, 1_000_000 + scattered * i);
            queueing.add(0, scattered);
            signal.add(i * 7, scattered % (i + 1));
            most = most.max(bytes(&rtt, &queueing, &signal));
        }
        println!("at most {most} bytes");
        assert!(most <= 900, "{most} bytes");
    }

    proptest! {
        #[test]
        fn percentiles_are_within_a_step(mut values in prop::collection::vec(0u64..1 << 50, 1..400)) {
            let mut d = Distribution::new(0, ALL_STEPS);
            values.iter().for_each(|v| assert!(d.add(0, *v)));
            values.sort_unstable();
            let s = d.stats(1.0).unwrap();
            for (q, got) in [(0.05, s.p5), (0.5, s.p50), (0.95, s.p95), (0.99, s.p99)] {
                let exact = values[((q * values.len() as f64) as usize).min(values.len() - 1)] as f64;
                prop_assert!((got - exact).abs() <= exact * 0.002 + 0.5, "q {} got {} exact {}", q, got, exact);
            }
        }
    }
}
