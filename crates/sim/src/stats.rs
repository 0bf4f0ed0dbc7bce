//! Distributions without the samples: exact moments and extremes, percentiles from counts.

use crate::outcome::Stats;

/// Counts of non-negative integers on a scale that is linear up to 256 and then has 256 steps an octave, so that a
/// percentile is within 0.2 % of the sample it names. An octave takes memory once a sample falls in it.
#[derive(Clone, Debug, Default)]
struct Histogram {
    octaves: Vec<Option<Box<[u32; STEPS]>>>,
}

const STEP_BITS: u32 = 8;
const STEPS: usize = 1 << STEP_BITS;

impl Histogram {
    /// Octave and step of `value`, and back to the middle of that step.
    #[inline]
    fn place(value: u64) -> (usize, usize) {
        let shift = (64 - value.leading_zeros()).saturating_sub(STEP_BITS + 1);
        let octave = if value < STEPS as u64 { 0 } else { shift as usize + 1 };
        (octave, (value >> shift) as usize & (STEPS - 1))
    }

    fn middle(octave: usize, step: usize) -> f64 {
        match octave.checked_sub(1) {
            None => step as f64,
            Some(shift) => {
                let low = ((STEPS + step) as u64) << shift;
                low as f64 + ((1u64 << shift) - 1) as f64 / 2.0
            }
        }
    }

    #[inline]
    fn add(&mut self, value: u64) {
        let (octave, step) = Self::place(value);
        if octave >= self.octaves.len() {
            self.octaves.resize(octave + 1, None);
        }
        let counts = self.octaves[octave].get_or_insert_with(|| Box::new([0; STEPS]));
        counts[step] = counts[step].saturating_add(1);
    }

    /// The sample at each 0-based rank of `ranks`, which must increase.
    fn at_ranks<const N: usize>(&self, ranks: [u64; N]) -> [f64; N] {
        let mut found = [f64::NAN; N];
        let (mut seen, mut next) = (0, 0);
        for (octave, counts) in self.octaves.iter().enumerate() {
            for (step, &count) in counts.iter().flat_map(|c| c.iter().enumerate()) {
                seen += u64::from(count);
                while next < N && ranks[next] < seen {
                    found[next] = Self::middle(octave, step);
                    next += 1;
                }
            }
        }
        found
    }
}

/// A distribution of non-negative integers (nanoseconds), summarised in a unit of the caller's choice.
#[derive(Clone, Debug, Default)]
pub(crate) struct Distribution {
    histogram: Histogram,
    count: u64,
    /// Sums of differences from the first sample: the mean and the variance without cancellation.
    origin: u64,
    sum: f64,
    sum_squares: f64,
    min: u64,
    max: u64,
}

impl Distribution {
    #[inline]
    pub(crate) fn add(&mut self, value: u64) {
        if self.count == 0 {
            (self.origin, self.min, self.max) = (value, value, value);
        }
        self.count += 1;
        let offset = value as f64 - self.origin as f64;
        self.sum += offset;
        self.sum_squares += offset * offset;
        self.min = self.min.min(value);
        self.max = self.max.max(value);
        self.histogram.add(value);
    }

    /// Memory it holds beyond its own size, bytes.
    pub(crate) fn heap_bytes(&self) -> usize {
        let octaves = &self.histogram.octaves;
        octaves.len() * size_of::<usize>() + octaves.iter().flatten().count() * STEPS * 4
    }

    /// Summary of the samples times `scale`; `None` without samples.
    pub(crate) fn stats(&self, scale: f64) -> Option<Stats> {
        if self.count == 0 {
            return None;
        }
        let n = self.count as f64;
        let offset = self.sum / n;
        let variance = (self.sum_squares / n - offset * offset).max(0.0);
        let clamp = |v: f64| v.clamp(self.min as f64, self.max as f64) * scale;
        let [p5, p25, p50, p75, p95, p99] =
            self.histogram.at_ranks(RANKS.map(|q| rank(q, self.count))).map(clamp);
        Some(Stats {
            mean: (self.origin as f64 + offset) * scale,
            std: variance.sqrt() * scale,
            min: self.min as f64 * scale,
            max: self.max as f64 * scale,
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

/// Exact summary of `values`; NaN entries are left out. `None` when nothing is left.
pub(crate) fn summarize(values: &[f64]) -> Option<Stats> {
    let mut sorted: Vec<f64> = values.iter().copied().filter(|v| !v.is_nan()).collect();
    sorted.sort_by(f64::total_cmp);
    let (min, max) = (*sorted.first()?, *sorted.last()?);
    let n = sorted.len() as f64;
    let mean = sorted.iter().sum::<f64>() / n;
    let variance = sorted.iter().map(|v| (v - mean) * (v - mean)).sum::<f64>() / n;
    let [p5, p25, p50, p75, p95, p99] =
        RANKS.map(|q| sorted[rank(q, sorted.len() as u64) as usize]);
    Some(Stats { mean, std: variance.sqrt(), min, p5, p25, p50, p75, p95, p99, max })
}

/// Signal delay as the contest's scripts define it, without keeping packets.
///
/// Every millisecond from the first sending to the last carries a value: the least delay of the packets sent in it, or, when
/// none was sent, one more than the millisecond after it. So a sending at `a` with delay `d` after a gap of `g` ms stands for
/// the values d, d+1, …, d+g-1: a range, counted at its two ends.
#[derive(Clone, Debug, Default)]
pub(crate) struct SignalDelay {
    /// Difference of the count of value v and of value v-1.
    steps: Vec<i64>,
    /// The millisecond being gathered and its least delay so far.
    current: Option<(u64, u64)>,
    previous_ms: Option<u64>,
}

impl SignalDelay {
    /// A packet sent in millisecond `sent_ms` came through the queues in `delay_ms`. Sendings must not go back in time;
    /// one that does (reordering) is left out.
    #[inline]
    pub(crate) fn add(&mut self, sent_ms: u64, delay_ms: u64) {
        match &mut self.current {
            Some((ms, least)) if *ms == sent_ms => *least = delay_ms.min(*least),
            Some((ms, _)) if *ms > sent_ms => {}
            _ => {
                self.settle();
                self.current = Some((sent_ms, delay_ms));
            }
        }
    }

    fn settle(&mut self) {
        let Some((ms, delay)) = self.current.take() else { return };
        let gap = self.previous_ms.map_or(1, |before| ms - before);
        self.previous_ms = Some(ms);
        let end = (delay + gap) as usize;
        if self.steps.len() <= end {
            self.steps.resize(end + 1, 0);
        }
        self.steps[delay as usize] += 1;
        self.steps[end] -= 1;
    }

    /// Memory it holds beyond its own size, bytes.
    pub(crate) fn heap_bytes(&self) -> usize {
        self.steps.capacity() * size_of::<i64>()
    }

    /// 95th percentile, ms: element floor(0.95 n) of the sorted values.
    pub(crate) fn p95_ms(&self) -> Option<f64> {
        let mut settled = self.clone();
        settled.settle();
        let counts = || {
            settled.steps.iter().scan(0, |running, step| {
                *running += step;
                Some(*running as u64)
            })
        };
        let total: u64 = counts().sum();
        let rank = rank(0.95, total);
        let mut seen = 0;
        counts()
            .position(|count| {
                seen += count;
                seen > rank
            })
            .map(|ms| ms as f64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn moments_by_hand() {
        let mut d = Distribution::default();
        [2, 4, 4, 4, 5, 5, 7, 9].into_iter().for_each(|v| d.add(v));
        let s = d.stats(1.0).unwrap();
        assert_eq!((s.mean, s.std, s.min, s.max, s.p50), (5.0, 2.0, 2.0, 9.0, 5.0));
        assert_eq!(Distribution::default().stats(1.0), None);
    }

    #[test]
    fn a_mean_far_from_zero_keeps_its_variance() {
        let mut d = Distribution::default();
        for i in 0..1_000_000u64 {
            d.add(25_000_000_000 + i % 2);
        }
        let s = d.stats(1.0).unwrap();
        assert!((s.std - 0.5).abs() < 1e-6, "{}", s.std);
    }

    proptest! {
        #[test]
        fn percentiles_are_within_a_step(mut values in prop::collection::vec(0u64..1 << 50, 1..400)) {
            let mut d = Distribution::default();
            values.iter().for_each(|v| d.add(*v));
            values.sort_unstable();
            let s = d.stats(1.0).unwrap();
            for (q, got) in [(0.05, s.p5), (0.5, s.p50), (0.95, s.p95), (0.99, s.p99)] {
                let exact = values[((q * values.len() as f64) as usize).min(values.len() - 1)] as f64;
                prop_assert!((got - exact).abs() <= exact * 0.002 + 0.5, "q {} got {} exact {}", q, got, exact);
            }
        }

        /// The streaming form against the definition: an array over all milliseconds, filled backwards.
        #[test]
        fn signal_delay_matches_its_definition(gaps in prop::collection::vec((0u64..40, 1u64..300), 1..200)) {
            let mut streaming = SignalDelay::default();
            let mut least = std::collections::BTreeMap::new();
            let mut ms = 5;
            for (gap, delay) in gaps {
                ms += gap;
                streaming.add(ms, delay);
                let entry = least.entry(ms).or_insert(delay);
                *entry = delay.min(*entry);
            }
            let (first, last) = (*least.keys().next().unwrap(), ms);
            let mut values = Vec::new();
            let mut after = 0;
            for ms in (first..=last).rev() {
                after = least.get(&ms).copied().unwrap_or(after + 1);
                values.push(after);
            }
            values.sort_unstable();
            let index = (values.len() as f64 * 0.95) as usize;
            prop_assert_eq!(streaming.p95_ms(), Some(values[index.min(values.len() - 1)] as f64));
        }
    }
}
