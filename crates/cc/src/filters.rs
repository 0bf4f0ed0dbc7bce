//! Windowed minimum and maximum: the best value of the last `window` of time, rounds or anything else that only grows.
//!
//! A monotone deque in a fixed array: amortised O(1) per sample, no allocation. To bound the memory, a sample that is no
//! better than the newest one kept and less than `window / (N - 1)` younger than it is not stored; the window is thus exact
//! for samples spaced wider than that, and at most that much short otherwise. (The 3-sample filter of K. Nichols, used by
//! Linux, is the case N = 3 in spirit.)

use std::cmp::Ordering;

/// The smallest value of the last `window`, keeping at most `N` candidates.
#[derive(Clone, Debug)]
pub struct WindowedMin<const N: usize>(Deque<N>);

/// The largest value of the last `window`, keeping at most `N` candidates.
#[derive(Clone, Debug)]
pub struct WindowedMax<const N: usize>(Deque<N>);

macro_rules! filter {
    ($name:ident, $better:expr) => {
        impl<const N: usize> $name<N> {
            /// An empty filter over `window` units of the clock that `update` is given. `N` must be at least 2.
            pub fn new(window: u64) -> Self {
                Self(Deque::new(window))
            }

            /// Adds `value` as seen `at`, drops what is older than the window, returns the best. A NaN is ignored.
            pub fn update(&mut self, at: u64, value: f64) -> Option<f64> {
                self.0.expire(at);
                self.0.insert(at, value, $better);
                self.best()
            }

            /// The best value as of the last call.
            pub fn best(&self) -> Option<f64> {
                (self.0.len > 0).then(|| self.0.entry(0).1)
            }

            /// Changes the window; samples that no longer fit leave at the next call.
            pub fn set_window(&mut self, window: u64) {
                self.0.window = window;
            }

            /// Forgets everything.
            pub fn clear(&mut self) {
                self.0.len = 0;
            }
        }
    };
}

filter!(WindowedMin, Ordering::is_le);
filter!(WindowedMax, Ordering::is_ge);

/// Candidates in the order of their times; each is better than all that follow it.
#[derive(Clone, Debug)]
struct Deque<const N: usize> {
    window: u64,
    entries: [(u64, f64); N],
    head: usize,
    len: usize,
}

impl<const N: usize> Deque<N> {
    fn new(window: u64) -> Self {
        const { assert!(N >= 2, "a windowed filter needs room for two candidates") }
        Self { window, entries: [(0, 0.0); N], head: 0, len: 0 }
    }

    fn entry(&self, index: usize) -> (u64, f64) {
        self.entries[(self.head + index) % N]
    }

    /// A sample exactly `window` old still counts.
    fn expire(&mut self, at: u64) {
        while self.len > 0 && at.saturating_sub(self.entry(0).0) > self.window {
            self.head = (self.head + 1) % N;
            self.len -= 1;
        }
    }

    fn insert(&mut self, at: u64, value: f64, no_worse: fn(Ordering) -> bool) {
        if value.is_nan() {
            return;
        }
        while self.len > 0 {
            let newest = self.entry(self.len - 1).1;
            if !value.partial_cmp(&newest).is_some_and(no_worse) {
                break;
            }
            self.len -= 1;
        }
        if self.len > 0 {
            let since = at.saturating_sub(self.entry(self.len - 1).0);
            // What is no better and came at the same time leaves at the same time. The last condition only holds right after the
            // window was widened.
            if since == 0 || since < self.window / (N as u64 - 1) || self.len == N {
                return;
            }
        }
        self.entries[(self.head + self.len) % N] = (at, value);
        self.len += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn minimum_leaves_with_its_window() {
        let mut filter = WindowedMin::<8>::new(10);
        assert_eq!(filter.best(), None);
        assert_eq!(filter.update(0, 5.0), Some(5.0));
        assert_eq!(filter.update(4, 7.0), Some(5.0));
        assert_eq!(filter.update(10, 9.0), Some(5.0), "exactly one window old still counts");
        assert_eq!(filter.update(11, 9.0), Some(7.0));
        assert_eq!(filter.update(12, 3.0), Some(3.0));
        assert_eq!(filter.update(22, 9.0), Some(3.0));
        assert_eq!(filter.update(23, 9.5), Some(9.0));
    }

    #[test]
    fn agrees_with_brute_force_when_samples_are_spaced() {
        let mut filter = WindowedMax::<33>::new(320);
        let mut all = Vec::new();
        let mut state = 12345_u64;
        for step in 0..2000_u64 {
            state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            let (at, value) = (step * 10, (state >> 40) as f64);
            all.push((at, value));
            let inside = all.iter().filter(|(t, _)| at - t <= 320).map(|(_, v)| *v);
            assert_eq!(filter.update(at, value), inside.reduce(f64::max));
        }
    }

    #[test]
    fn crowded_samples_shorten_the_window_by_at_most_one_slot() {
        // 1000 falling values in one window of 100, 5 slots: the maximum may be lost at most 25 early.
        let mut filter = WindowedMax::<5>::new(100);
        for at in 0..1000_u64 {
            let best = filter.update(at, -(at as f64)).unwrap();
            let oldest_allowed = at.saturating_sub(100);
            let shortest = at.saturating_sub(75);
            assert!(-best >= oldest_allowed as f64 && -best <= shortest as f64, "{at}: {best}");
        }
    }
}
