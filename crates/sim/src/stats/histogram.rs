//! Counts of samples on a logarithmic scale: a window of counters that covers what was seen, at a resolution that halves when the
//! window would outgrow its budget (the uniform collapse of UDDSketch: Epicoco et al., IEEE Access 2020).
//!
//! Values in, the value at a rank out. The counts, and so every answer, depend on the samples but not on their order.

use crate::prefetch::{prefetch, prefetch_bytes};

/// At full resolution values below 1,024 have a step each, and from 512 on every octave has 512.
const STEP_BITS: u32 = 9;
const LINEAR: u64 = 1 << (STEP_BITS + 1);

/// Steps that all 64-bit values fall into.
pub(super) const ALL_STEPS: u16 = 56 << STEP_BITS;

/// The step of `value` at full resolution.
#[inline]
fn step_of(value: u64) -> u32 {
    let shift = (63 - STEP_BITS) - (value | (LINEAR - 1)).leading_zeros();
    (shift << STEP_BITS) + (value >> shift) as u32
}

/// The least value of a step at full resolution.
fn step_start(step: u32) -> f64 {
    let shift = (step >> STEP_BITS).saturating_sub(1);
    let mantissa = step - (shift << STEP_BITS);
    f64::from(mantissa) * (1_u64 << shift) as f64
}

/// Counts of non-negative integers, with the extremes.
///
/// At level L a step is 2^L steps of full resolution wide: at most 2^L / 512 of the values in it, for L up to 9. L is the lowest
/// level at which the steps from the least to the largest sample fit the budget. For a budget of n counters and samples
/// from a to b that is 0 if log2(b / a) < (n - 2) / 512 - 0.09; otherwise a step is narrower than 2 (log2(b / a) + 0.09) / (n - 2)
/// of its values. (A step is never narrower than 1, so an a below 256 counts as 256.)
#[derive(Clone, Debug)]
pub(super) struct Histogram {
    min: u64,
    /// Largest sample less the smallest.
    span: u64,
    /// Samples per step, modulo 2^8: few flows of many count more than that in one step, and all pay for wider counters.
    counts: Box<[u8]>,
    /// Which counters started again at 0, if any did.
    wraps: Option<Box<Wraps>>,
    /// The step of the first counter.
    first: u16,
    /// Most counters there may be.
    budget: u16,
    /// The counter of the last sample: the next one falls near it.
    recent: u16,
    level: u8,
}

/// How often counters started again at 0: the sum of both, by place. As a rule few of a flow's counters do among many flows, and
/// nearly all where flows are few.
#[derive(Clone, Debug, Default)]
struct Wraps {
    /// Of each counter, modulo 2^8; empty until many counters have started again.
    often: Box<[u8]>,
    /// The rest, of those that have one.
    more: Vec<(u16, u32)>,
}

/// From so many counters on that have started again, a table of all is smaller.
const MANY_WRAPS: usize = 8;

impl Wraps {
    /// One of `counters`, that at `place`, has started again at 0 `times` times more.
    fn add(&mut self, place: u16, times: u32, counters: usize) {
        let Some(often) = self.often.get_mut(usize::from(place)) else {
            self.add_more(place, times);
            if self.more.len() >= MANY_WRAPS {
                self.often = vec![0; counters].into();
                let few = std::mem::take(&mut self.more);
                few.iter().for_each(|(place, times)| self.add(*place, *times, counters));
            }
            return;
        };
        let times = u32::from(*often).saturating_add(times);
        *often = times as u8;
        if times > u32::from(u8::MAX) {
            self.add_more(place, times & !u32::from(u8::MAX));
        }
    }

    fn add_more(&mut self, place: u16, times: u32) {
        match self.more.binary_search_by_key(&place, |(at, _)| *at) {
            Ok(known) => self.more[known].1 = self.more[known].1.saturating_add(times),
            Err(at) => {
                self.more.reserve_exact(1);
                self.more.insert(at, (place, times));
            }
        }
    }
}

/// Counters from the first sample on, where the budget allows: a table that is small stays where it is.
const FIRST_COUNTERS: u16 = 32;

impl Histogram {
    /// One sample, and room for `budget` counters (at least 1).
    pub(super) fn new(value: u64, budget: u16) -> Self {
        let budget = budget.max(1);
        let mut counts = vec![0; usize::from(budget.min(FIRST_COUNTERS))];
        let step = step_of(value) as u16;
        // More often it is the least than the largest.
        let below = step.min(counts.len() as u16 / 8);
        counts[usize::from(below)] = 1;
        let (counts, first) = (counts.into(), step - below);
        Self { min: value, span: 0, counts, wraps: None, first, budget, recent: below, level: 0 }
    }

    pub(super) fn min(&self) -> u64 {
        self.min
    }

    pub(super) fn max(&self) -> u64 {
        self.min + self.span
    }

    /// Memory it holds beyond its own size, bytes.
    pub(super) fn heap_bytes(&self) -> usize {
        let wraps = self.wraps.as_ref().map_or(0, |wraps| {
            let more = wraps.more.capacity() * size_of::<(u16, u32)>();
            size_of::<Wraps>() + size_of_val(&*wraps.often) + more
        });
        size_of_val(&*self.counts) + wraps
    }

    /// Fetches the counter that is likely to be next.
    #[inline]
    pub(super) fn prefetch(&self) {
        self.counts.get(usize::from(self.recent)).into_iter().for_each(prefetch);
    }

    /// Fetches the counters, unless they are many: then there are few flows, and they are in the cache.
    #[inline]
    pub(super) fn prefetch_counters(&self) {
        prefetch_bytes(self.counts.as_ptr().cast(), size_of_val(&*self.counts).min(80));
    }

    #[inline]
    pub(super) fn add(&mut self, value: u64) {
        if value.wrapping_sub(self.min) > self.span {
            self.widen(value);
        }
        let place = (step_of(value) >> self.level).wrapping_sub(u32::from(self.first)) as usize;
        // Inside the window, now that the extremes are.
        let Some(count) = self.counts.get_mut(place) else { return };
        self.recent = place as u16;
        *count = count.wrapping_add(1);
        if *count == 0 {
            self.carry(place as u16);
        }
    }

    /// The counter at `place` has started again at 0.
    #[cold]
    #[inline(never)]
    fn carry(&mut self, place: u16) {
        self.wraps.get_or_insert_default().add(place, 1, self.counts.len());
    }

    /// Makes `value` one of the extremes, and room for it.
    #[cold]
    #[inline(never)]
    fn widen(&mut self, value: u64) {
        let (min, max) = (self.min.min(value), self.max().max(value));
        (self.min, self.span) = (min, max - min);
        let (first, last, budget) = (step_of(min), step_of(max), u32::from(self.budget));
        let mut level = u32::from(self.level);
        while (last >> level) - (first >> level) >= budget {
            level += 1;
        }
        self.raise_to(level);
        let (first, last) = (first >> level, last >> level);
        let held = u32::from(self.first)..u32::from(self.first) + self.counts.len() as u32;
        if held.contains(&first) && held.contains(&last) {
            return;
        }
        let needed = last - first + 1;
        let mut counters = self.counts.len() as u32;
        if needed > counters {
            counters = needed + (needed / 4 + 8).min(budget - needed);
        }
        // The room to spare is in the direction of growth, so that not every sample of a rising delay moves the window.
        let below = if first < held.start { counters - needed } else { 0 };
        self.move_to(first.saturating_sub(below), counters);
    }

    /// Counts on at `level`, which is not below the present one.
    fn raise_to(&mut self, level: u32) {
        let coarser = level - u32::from(self.level);
        if coarser == 0 {
            return;
        }
        let was = u32::from(self.first);
        let first = was >> coarser;
        let now_at = |place: usize| (((was + place as u32) >> coarser) - first) as u16;
        if let Some(wraps) = &mut self.wraps {
            let (finer, counters) = (std::mem::take(&mut **wraps), self.counts.len());
            let often = finer.often.iter().map(|often| u32::from(*often)).enumerate();
            let more = finer.more.iter().map(|(place, times)| (usize::from(*place), *times));
            for (place, times) in often.chain(more).filter(|(_, times)| *times > 0) {
                wraps.add(now_at(place), times, counters);
            }
        }
        // No counter moves up, so each is taken before another comes to its place.
        for place in 1..self.counts.len() {
            let count = std::mem::take(&mut self.counts[place]);
            let sum = &mut self.counts[usize::from(now_at(place))];
            let overflows;
            (*sum, overflows) = sum.overflowing_add(count);
            if overflows {
                self.carry(now_at(place));
            }
        }
        (self.level, self.first) = (level as u8, first as u16);
    }

    /// Moves the window: so many counters from step `first` on, all that have counted something among them.
    fn move_to(&mut self, first: u32, counters: u32) {
        let up = u32::from(self.first) as i32 - first as i32;
        move_counts(&mut self.counts, up, counters as usize);
        if let Some(wraps) = &mut self.wraps {
            if !wraps.often.is_empty() {
                move_counts(&mut wraps.often, up, counters as usize);
            }
            wraps.more.iter_mut().for_each(|(place, _)| *place = (i32::from(*place) + up) as u16);
        }
        self.first = first as u16;
    }

    /// The steps in which samples fell, in order, and how many.
    fn steps(&self) -> impl Iterator<Item = (u32, u64)> {
        let wraps = self.wraps.as_deref();
        let mut more = wraps.into_iter().flat_map(|wraps| &wraps.more).peekable();
        self.counts.iter().enumerate().filter_map(move |(place, count)| {
            let often = wraps.and_then(|wraps| wraps.often.get(place)).copied().unwrap_or(0);
            let more = more.next_if(|(at, _)| usize::from(*at) == place);
            let more = more.map_or(0, |(_, times)| u64::from(*times));
            let count = u64::from(*count) + ((u64::from(often) + more) << 8);
            (count > 0).then(|| (u32::from(self.first) + place as u32, count))
        })
    }

    /// The sample at each 0-based rank of `ranks`, which must increase: exact where steps hold one value, otherwise as if the
    /// samples of a step were spread evenly over it. Off by less than a step in any case.
    pub(super) fn at_ranks<const N: usize>(&self, ranks: [u64; N]) -> [f64; N] {
        let mut found = [f64::NAN; N];
        let (mut seen, mut next) = (0, 0);
        for (step, count) in self.steps() {
            let start = step_start(step << self.level).max(self.min as f64);
            let end = (step_start((step + 1) << self.level) - 1.0).min(self.max() as f64);
            while next < N && ranks[next] < seen + count {
                let part = ((ranks[next] - seen) as f64 + 0.5) / count as f64;
                found[next] = start + (end - start) * part;
                next += 1;
            }
            seen += count;
        }
        found
    }
}

/// Moves what was counted `up` places up, into so many counters.
fn move_counts(counts: &mut Box<[u8]>, up: i32, counters: usize) {
    if counters == counts.len() {
        if up > 0 {
            counts.rotate_right(up as usize);
        } else {
            counts.rotate_left(-up as usize);
        }
        return;
    }
    let mut moved = vec![0; counters];
    let used = counts.iter().enumerate().filter(|(_, count)| **count > 0);
    used.for_each(|(place, count)| moved[(place as i32 + up) as usize] = *count);
    *counts = moved.into();
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn filled(values: &[u64], budget: u16) -> Histogram {
        let mut histogram = Histogram::new(values[0], budget);
        values[1..].iter().for_each(|value| histogram.add(*value));
        histogram
    }

    /// What answers depend on.
    fn state(histogram: &Histogram) -> (u64, u64, u8, Vec<(u32, u64)>) {
        let steps = histogram.steps().collect();
        (histogram.min, histogram.span, histogram.level, steps)
    }

    /// Values of every magnitude, as delays have them: near each other, or not at all.
    fn samples() -> impl Strategy<Value = Vec<u64>> {
        let magnitude = (0_u32..50, 0_u64..1 << 13);
        let wide = magnitude.prop_map(|(shift, mantissa)| mantissa << shift);
        let near = (1_u64..1 << 40, 0_u64..3000).prop_map(|(base, percent)| base / 1000 * percent);
        let one_of = prop_oneof![wide, near, 0_u64..3000];
        prop::collection::vec(one_of, 1..300)
    }

    #[test]
    fn steps_follow_one_another() {
        assert_eq!(
            (step_of(0), step_of(1023), step_of(1024), step_of(1026)),
            (0, 1023, 1024, 1025)
        );
        assert_eq!(step_of(u64::MAX) + 1, u32::from(ALL_STEPS));
        for step in 0..u32::from(ALL_STEPS) - 1 {
            let (start, next) = (step_start(step) as u64, step_start(step + 1) as u64);
            assert_eq!((step_of(start), step_of(next - 1)), (step, step));
            assert!(next - start == 1 || (next - start) * 512 <= start, "{start} to {next}");
        }
    }

    #[test]
    fn a_counter_may_start_again_at_zero() {
        let mut histogram = Histogram::new(1000, 4);
        (0..199_999).for_each(|_| histogram.add(1000));
        (0..100_000).for_each(|_| histogram.add(1001));
        assert_eq!(state(&histogram).3, [(1000, 200_000), (1001, 100_000)]);
        assert_eq!(histogram.at_ranks([0, 199_999, 200_000]), [1000.0, 1000.0, 1001.0]);
        // Both fall into one step when the range grows 64-fold.
        (0..3).for_each(|_| histogram.add(64_000));
        assert_eq!(histogram.steps().map(|(_, count)| count).collect::<Vec<_>>(), [300_000, 3]);
    }

    /// First a list of those that did, then a table: wherever the window moves and however coarse the steps become.
    #[test]
    fn many_counters_may_start_again_at_zero() {
        let mut histogram = Histogram::new(600, 64);
        let mut expected = std::collections::BTreeMap::from([(600, 1)]);
        let mut add = |histogram: &mut Histogram, value: u64, times: u64| {
            (0..times).for_each(|_| histogram.add(value));
            *expected.entry(value as u32).or_insert(0) += times;
            let known: Vec<_> = expected.iter().map(|(step, count)| (*step, *count)).collect();
            assert_eq!(histogram.steps().collect::<Vec<_>>(), known);
        };
        for (value, times) in (600..620).zip([300, 70_000, 255, 256, 513].into_iter().cycle()) {
            add(&mut histogram, value, times);
        }
        assert!(histogram.wraps.as_ref().is_some_and(|wraps| !wraps.often.is_empty()));
        for (value, times) in [(590, 1), (595, 1000), (633, 257)] {
            add(&mut histogram, value, times);
        }
        assert_eq!(histogram.level, 0);
        histogram.add(660);
        expected.insert(660, 1);
        let mut coarse = std::collections::BTreeMap::new();
        expected.iter().for_each(|(step, count)| *coarse.entry(step >> 1).or_insert(0) += count);
        assert_eq!((histogram.level, histogram.steps().collect()), (1, Vec::from_iter(coarse)));
    }

    /// 512 steps for one octave: a budget of 256 halves the resolution once, of 128 twice.
    #[test]
    fn the_resolution_halves_when_the_budget_is_spent() {
        let values: Vec<u64> = (1 << 20..1 << 21).step_by(1 << 11).collect();
        assert_eq!(values.len(), 512);
        for (budget, level, steps) in [(512, 0, 512), (511, 1, 256), (256, 1, 256), (128, 2, 128)] {
            let histogram = filled(&values, budget);
            assert_eq!((histogram.level, histogram.steps().count()), (level, steps));
            assert!(histogram.counts.len() <= usize::from(budget));
        }
    }

    /// The table of docs/measures.md: largest sample over smallest, step in 512ths of its values.
    #[test]
    fn eighty_counters_have_these_steps() {
        for (ratio, step) in [(1.1, 1), (2.0, 8), (4.0, 16), (16.0, 32), (256.0, 64)] {
            let (min, max) = (20_000_000, (20_000_000.0 * ratio) as u64);
            let histogram = filled(&[min, max], 80);
            println!("{min} to {max}: off by less than 1/{}", 512 / step);
            assert_eq!(1 << histogram.level, step);
        }
    }

    proptest! {
        #[test]
        fn order_does_not_matter(
            (values, shuffled) in samples().prop_flat_map(|v| (Just(v.clone()), Just(v).prop_shuffle())),
            budget in 1_u16..300,
        ) {
            let [one, other] = [&values, &shuffled].map(|values| filled(values, budget));
            prop_assert_eq!(state(&one), state(&other));
            prop_assert!(one.counts.len().max(other.counts.len()) <= usize::from(budget));
        }

        /// A rank gives the sample to within a step, and the step is as narrow as promised.
        #[test]
        fn a_rank_is_off_by_less_than_the_stated_error(mut values in samples(), budget in 64_u16..600) {
            let histogram = filled(&values, budget);
            values.sort_unstable();
            let (min, max) = (values[0] as f64, values[values.len() - 1] as f64);
            let octaves = (max / min.max(256.0)).max(1.0).log2() + 0.09;
            let relative = if histogram.level == 0 { 1.0 / 512.0 } else { 2.0 * octaves / f64::from(budget - 2) };
            for (rank, exact) in values.iter().enumerate() {
                let [got] = histogram.at_ranks([rank as u64]);
                let step = f64::from(1_u32 << histogram.level);
                let (exact, error) = (*exact as f64, (got - *exact as f64).abs());
                // Below 512 steps have a width in units, not in parts.
                prop_assert!(error < step.max(exact * step / 512.0), "{error} of {exact}, level {}", histogram.level);
                prop_assert!(error < step.max(exact * relative), "{error} of {exact}, {octaves} octaves");
            }
        }
    }
}
