//! The 95th percentile of the signal delay, without keeping packets.
//!
//! Sendings and their delays in, in whole milliseconds; the percentile out. Defined by the scripts of the CS 244 contest.

use super::rank;
use crate::prefetch::{prefetch, prefetch_bytes};

/// Signal delay as the contest's scripts define it.
///
/// Every millisecond from the first sending to the last carries a value: the least delay of the packets sent in it, or, when
/// none was sent, one more than the millisecond after it. So a sending at `a` with delay `d` after a gap of `g` ms stands for
/// the values d, d+1, …, d+g-1: a range, counted at its two ends.
///
/// Exact as long as the ends lie at no more different places than the budget and below 65.5 s. Beyond that, places are taken
/// together by 2, 4, 8 … ms: how many values fall into each such stretch stays exact, and the percentile is off by less than one.
/// Takes memory from the first sending on.
#[derive(Clone, Debug)]
pub(crate) struct SignalDelay {
    /// The millisecond being gathered ([`NOTHING_SENT`] before the first), its least delay so far, and how long after the one
    /// before it came, ms.
    sent_ms: u64,
    least_ms: u32,
    gap_ms: u32,
    ranges: Ranges,
}

const NOTHING_SENT: u64 = u64::MAX;

impl SignalDelay {
    /// With memory for the ends of ranges at `budget` places (at least 2), 4 bytes each, and 8 more for one whose step
    /// outgrows 16 bits.
    pub(crate) fn new(budget: u16) -> Self {
        Self { sent_ms: NOTHING_SENT, least_ms: 0, gap_ms: 1, ranges: Ranges::new(budget) }
    }

    /// A packet sent in millisecond `sent_ms` came through the queues in `delay_ms`. Sendings must not go back in time;
    /// one that does (reordering) is left out.
    #[inline]
    pub(crate) fn add(&mut self, sent_ms: u64, delay_ms: u64) {
        let delay_ms = delay_ms.min(u64::from(u32::MAX)) as u32;
        if self.sent_ms == sent_ms {
            self.least_ms = self.least_ms.min(delay_ms);
            return;
        }
        if self.sent_ms != NOTHING_SENT {
            let Some(gap_ms) = sent_ms.checked_sub(self.sent_ms) else { return };
            self.ranges.add(self.least_ms, self.gap_ms);
            self.gap_ms = gap_ms.min(u64::from(u32::MAX)) as u32;
        }
        (self.sent_ms, self.least_ms) = (sent_ms, delay_ms);
    }

    /// Fetches what the next sending will touch.
    #[inline]
    pub(crate) fn prefetch(&self) {
        let Ranges { ends, recent, .. } = &self.ranges;
        recent.iter().filter_map(|at| ends.get(usize::from(*at))).for_each(prefetch);
    }

    /// Fetches what [`Self::p95_ms`] will read outside this struct.
    #[inline]
    pub(crate) fn prefetch_ends(&self) {
        let ends = &*self.ranges.ends;
        prefetch_bytes(ends.as_ptr().cast(), size_of_val(ends).min(320));
    }

    /// Memory it holds beyond its own size, bytes.
    pub(crate) fn heap_bytes(&self) -> usize {
        let carried = self.ranges.carried.as_ref().map_or(0, |carried| {
            size_of_val(&**carried) + carried.capacity() * size_of::<(u16, i32)>()
        });
        self.ranges.ends.capacity() * size_of::<End>() + carried
    }

    /// 95th percentile, ms: element floor(0.95 n) of the sorted values.
    pub(crate) fn p95_ms(&self) -> Option<f64> {
        if self.sent_ms == NOTHING_SENT {
            return None;
        }
        let mut settled = self.ranges.clone();
        settled.add(self.least_ms, self.gap_ms);
        settled.quantile(0.95)
    }
}

/// A multiset of integers that is given in ranges: the differences of its counts, where they are not 0.
///
/// At level L places are multiples of 2^L, and an end between two places counts at both, by its distance: so the sum of the steps
/// up to a place is the number of values from there to the next one, at every level. L is the lowest level at which the places
/// fit the budget, whatever the order the ranges came in.
#[derive(Clone, Debug)]
struct Ranges {
    /// By place. One whose steps add up to 0 stays.
    ends: Vec<End>,
    /// What does not fit into the steps of some places, in 2^16 of their units, by place.
    #[expect(
        clippy::box_collection,
        reason = "one word in place of three, and few flows have any"
    )]
    carried: Option<Box<Vec<(u16, i32)>>>,
    /// Where in `ends` the last range began and ended: the next one often does so too.
    recent: [u16; 2],
    /// Most places there may be.
    budget: u16,
    level: u8,
}

#[derive(Clone, Copy, Debug)]
struct End {
    /// In 2^L.
    place: u16,
    /// Difference of the count from this place on and the one before, in 2^-L, but for what is carried.
    step: i16,
}

impl Ranges {
    fn new(budget: u16) -> Self {
        Self { ends: Vec::new(), carried: None, recent: [0; 2], budget: budget.max(2), level: 0 }
    }

    /// Adds the values `first`, `first` + 1, …, `length` of them.
    #[inline(never)]
    fn add(&mut self, first: u32, length: u32) {
        let end = first.saturating_add(length);
        let [first_at, end_at] = self.recent.map(usize::from);
        let is_at = |at: usize, place: u32| {
            self.ends.get(at).is_some_and(|known| u32::from(known.place) == place)
        };
        if self.level == 0 && is_at(first_at, first) && is_at(end_at, end) {
            self.add_at(first_at, 1);
            self.add_at(end_at, -1);
        } else {
            self.add_anywhere(first, end);
        }
    }

    #[inline(never)]
    fn add_anywhere(&mut self, first: u32, end: u32) {
        if end >> self.level >= u32::from(u16::MAX) {
            self.raise(end);
        }
        let [first_at, end_at] = self.recent.map(usize::from);
        let first_at = self.add_end(first_at, first, 1);
        let end_at = self.add_end(end_at, end, -1);
        self.recent = [first_at as u16, end_at as u16];
        if self.ends.len() > usize::from(self.budget) {
            self.raise(end);
        }
    }

    /// Adds `sign` at `at`, shared between the places around it, the first of which may be that of entry `guess`. Returns the
    /// entry's index.
    #[inline]
    fn add_end(&mut self, guess: usize, at: u32, sign: i32) -> usize {
        let (place, part) = ((at >> self.level) as u16, at & ((1 << self.level) - 1));
        let found = self.add_step(guess, place, sign * ((1 << self.level) - part as i32));
        if part > 0 {
            self.add_step(found + 1, place + 1, sign * part as i32);
        }
        found
    }

    /// Adds `step` at `place`, which may be that of entry `guess`, and returns the entry's index.
    #[inline]
    fn add_step(&mut self, guess: usize, place: u16, step: i32) -> usize {
        let mut at = guess;
        if self.ends.get(guess).is_none_or(|end| end.place != place) {
            at = self.ends.partition_point(|end| end.place < place);
            if self.ends.get(at).is_none_or(|end| end.place != place) {
                self.insert(at, End { place, step: 0 });
            }
        }
        self.add_at(at, step);
        at
    }

    /// Adds `step` to the entry at index `at`.
    #[inline]
    fn add_at(&mut self, at: usize, step: i32) {
        let end = &mut self.ends[at];
        let sum = step.saturating_add(i32::from(end.step));
        end.step = sum as i16;
        if sum != i32::from(end.step) {
            let (place, times) = (end.place, (sum - i32::from(end.step)) >> 16);
            self.carry(place, times);
        }
    }

    #[cold]
    #[inline(never)]
    fn carry(&mut self, place: u16, times: i32) {
        let carried = self.carried.get_or_insert_default();
        match carried.binary_search_by_key(&place, |(at, _)| *at) {
            Ok(known) => carried[known].1 = carried[known].1.saturating_add(times),
            Err(at) => {
                carried.reserve_exact(1);
                carried.insert(at, (place, times));
            }
        }
    }

    /// All of the step at an entry.
    fn step(&self, end: &End) -> i64 {
        let carried = self.carried.as_deref().map_or(&[][..], Vec::as_slice);
        let known = carried.binary_search_by_key(&end.place, |(at, _)| *at);
        i64::from(end.step) + known.map_or(0, |at| i64::from(carried[at].1) << 16)
    }

    #[cold]
    #[inline(never)]
    fn insert(&mut self, at: usize, end: End) {
        if self.ends.len() == self.ends.capacity() {
            let left = usize::from(self.budget).saturating_sub(self.ends.len()).max(1);
            self.ends.reserve_exact((self.ends.len() / 4).max(8).min(left));
        }
        self.ends.insert(at, end);
    }

    /// Takes places together until they fit, and `end` among them.
    #[cold]
    #[inline(never)]
    fn raise(&mut self, end: u32) {
        while end >> self.level >= u32::from(u16::MAX) || self.ends.len() > usize::from(self.budget)
        {
            let steps = self.ends.iter().map(|end| (end.place, self.step(end)));
            let finer: Vec<_> = steps.collect();
            (self.ends, self.carried) = (Vec::new(), None);
            self.level += 1;
            for (place, step) in finer {
                // Beyond 2^31 sendings in one place, counts are no longer exact.
                let step = step.clamp(i32::MIN.into(), i32::MAX.into()) as i32;
                if place % 2 == 0 {
                    self.add_step(0, place / 2, step.saturating_mul(2));
                } else {
                    self.add_step(0, place / 2, step);
                    self.add_step(0, place / 2 + 1, step);
                }
            }
        }
        self.ends.shrink_to_fit();
    }

    /// The value at rank floor(q n) of n.
    fn quantile(&self, q: f64) -> Option<f64> {
        let counts = || {
            self.ends.windows(2).scan(0_i64, |count, ends| {
                *count += self.step(&ends[0]);
                // Below 0 only after 2^31 sendings in one place, when steps no longer add up.
                Some((ends[0].place, ends[1].place - ends[0].place, (*count).max(0) as u64))
            })
        };
        let total = counts().map(|(_, places, count)| u64::from(places) * count).sum();
        let mut left = rank(q, total);
        for (place, places, count) in counts() {
            if left < u64::from(places) * count {
                let stretch = (u64::from(place) + left / count) << self.level;
                let part = ((left % count) as f64 + 0.5) / count as f64;
                return Some(stretch as f64 + ((1_u64 << self.level) - 1) as f64 * part);
            }
            left -= u64::from(places) * count;
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Gaps and delays, ms, of sendings one after another.
    fn sendings(longest_gap: u64) -> impl Strategy<Value = Vec<(u64, u64)>> {
        let gap = prop_oneof![4 => 0_u64..4, 4 => 0..40_u64, 1 => 0..longest_gap];
        prop::collection::vec((gap, prop_oneof![0_u64..300, 0_u64..20]), 1..200)
    }

    fn steps(ranges: &Ranges) -> Vec<(u16, i64)> {
        ranges.ends.iter().map(|end| (end.place, ranges.step(end))).collect()
    }

    fn streamed(sendings: &[(u64, u64)], budget: u16) -> SignalDelay {
        let (mut delay, mut ms) = (SignalDelay::new(budget), 5);
        for (gap, delay_ms) in sendings {
            ms += gap;
            delay.add(ms, *delay_ms);
        }
        delay
    }

    /// The 95th percentile by its definition: an array over all milliseconds, filled backwards.
    fn by_definition(sendings: &[(u64, u64)]) -> f64 {
        let mut least = std::collections::BTreeMap::new();
        let mut ms = 5;
        for (gap, delay) in sendings {
            ms += gap;
            let entry = least.entry(ms).or_insert(*delay);
            *entry = (*entry).min(*delay);
        }
        let mut values = Vec::new();
        let mut after = 0;
        for ms in (5 + sendings[0].0..=ms).rev() {
            after = least.get(&ms).copied().unwrap_or(after + 1);
            values.push(after);
        }
        values.sort_unstable();
        let index = (values.len() as f64 * 0.95) as usize;
        values[index.min(values.len() - 1)] as f64
    }

    #[test]
    fn no_sending_no_signal() {
        assert_eq!((SignalDelay::new(9).p95_ms(), SignalDelay::new(9).heap_bytes()), (None, 0));
    }

    /// Delays 10, 10, then 7 after 3 ms of silence: 10, 10, and 9, 8, 7 for the milliseconds that led to it.
    #[test]
    fn a_gap_stands_for_a_range() {
        let mut delay = SignalDelay::new(100);
        [(1, 10), (2, 10), (5, 7)].into_iter().for_each(|(sent, ms)| delay.add(sent, ms));
        // Reordered: left out.
        delay.add(4, 1);
        assert_eq!(delay.p95_ms(), Some(10.0));
        let mut ranges = delay.ranges;
        assert_eq!(steps(&ranges), [(10, 2), (11, -2)]);
        ranges.add(7, 3);
        assert_eq!(steps(&ranges), [(7, 1), (10, 1), (11, -2)]);
        // 7, 8, 9, 10, 10: one in 6..8, two in 8..10, two in 10..12.
        ranges.raise(70_000);
        assert_eq!((ranges.level, steps(&ranges)), (1, vec![(3, 1), (4, 1), (5, 0), (6, -2)]));
    }

    /// A step has 16 bits; what is more is carried, and stays with its place when places are taken together.
    #[test]
    fn a_place_may_count_more_than_a_step_holds() {
        let mut ranges = Ranges::new(100);
        (0..100_000).for_each(|_| ranges.add(10, 1));
        ranges.add(20, 1);
        assert_eq!(steps(&ranges), [(10, 100_000), (11, -100_000), (20, 1), (21, -1)]);
        assert_eq!(ranges.quantile(0.99), Some(10.0));
        ranges.raise(70_000);
        let halves = [(5, 100_000), (6, -100_000), (10, 1), (11, -1)];
        assert_eq!((ranges.level, steps(&ranges)), (1, halves.to_vec()));
        // The one value in 20..22.
        assert_eq!(ranges.quantile(0.999_999), Some(20.5));
    }

    #[test]
    fn an_outage_beyond_the_places_still_counts() {
        let mut delay = SignalDelay::new(1000);
        delay.add(0, 20);
        delay.add(200_000, 30);
        // 30 to 200,029 and 20: rank floor(0.95 x 200,001).
        let exact = 190_029.0;
        let got = delay.p95_ms().unwrap();
        assert!((got - exact).abs() < 4.0, "{got}");
        delay.add(NOTHING_SENT - 1, u64::MAX);
        assert!(delay.p95_ms().is_some());
    }

    proptest! {
        #[test]
        fn it_matches_its_definition(sendings in sendings(3000)) {
            prop_assert_eq!(streamed(&sendings, 1000).p95_ms(), Some(by_definition(&sendings)));
        }

        /// With few places: within the stretch that the percentile falls in, at any budget.
        #[test]
        fn few_places_bound_the_error(sendings in sendings(3000), budget in 2_u16..60) {
            let delay = streamed(&sendings, budget);
            let ranges = &delay.ranges;
            // Settling the last sending may raise the level once more.
            let mut settled = ranges.clone();
            let last = &delay;
            settled.add(last.least_ms, last.gap_ms);
            let stretch = f64::from(1 << settled.level);
            let (got, exact) = (delay.p95_ms().unwrap(), by_definition(&sendings));
            prop_assert!((got - exact).abs() < stretch, "{got} for {exact}, stretch {stretch}");
            prop_assert_eq!((got / stretch).floor(), (exact / stretch).floor());
            prop_assert!(ranges.ends.capacity() <= usize::from(budget));
            let carried = ranges.carried.as_ref().map_or(0, |carried| carried.len());
            prop_assert!(carried <= ranges.ends.len());
        }

        #[test]
        fn the_order_of_ranges_does_not_matter(
            (ranges, shuffled) in prop::collection::vec((0_u32..500, 1_u32..300), 1..100)
                .prop_flat_map(|r| (Just(r.clone()), Just(r).prop_shuffle())),
            budget in 2_u16..60,
        ) {
            let state = |of: &[(u32, u32)]| {
                let mut ranges = Ranges::new(budget);
                of.iter().for_each(|(first, length)| ranges.add(*first, *length));
                (ranges.level, steps(&ranges))
            };
            prop_assert_eq!(state(&ranges), state(&shuffled));
        }
    }
}
