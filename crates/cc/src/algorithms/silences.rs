//! How long a path falls silent: the wait for the next ACK, over all moments of the recent past, and its high quantile.
//!
//! Gaps between ACKs in, milliseconds out. A gap of length g holds, for each moment in it, the wait that was left: everything from g
//! down to 0, each as often. So a long gap weighs by its length, as it does in the delay that a path's user sees.

/// Bins per doubling of the wait: a quantile is read off to a few per cent.
const BINS_PER_DOUBLING: f64 = 6.0;
/// The first bin ends at 1.1 ms, the last begins at 58 s.
const BINS: usize = 96;
/// How often the past is aged and the quantile read, ms.
const TICK_MS: f64 = 100.0;

/// The waits of the last `memory_ms` or so, and the one that only `above` of them exceed.
pub(super) struct Silences {
    memory_ms: f64,
    above: f64,
    /// Time spent with a wait in each bin, ms, aged.
    time_ms: [f64; BINS],
    /// Where each bin ends, ms.
    ends_ms: [f64; BINS],
    total_ms: f64,
    since_tick_ms: f64,
    quantile_ms: f64,
}

impl Silences {
    /// None seen yet.
    pub fn new(memory_ms: f64, above: f64) -> Self {
        let mut ends_ms = [f64::INFINITY; BINS];
        for (bin, end) in ends_ms.iter_mut().enumerate().take(BINS - 1) {
            *end = libm::exp2((bin + 1) as f64 / BINS_PER_DOUBLING);
        }
        Self {
            memory_ms,
            above,
            time_ms: [0.0; BINS],
            ends_ms,
            total_ms: 0.0,
            since_tick_ms: 0.0,
            quantile_ms: 0.0,
        }
    }

    /// An ACK came `gap_ms` after the one before.
    pub fn add(&mut self, gap_ms: f64) {
        let mut from_ms = 0.0;
        for (time_ms, &end_ms) in self.time_ms.iter_mut().zip(&self.ends_ms) {
            let to_ms = end_ms.min(gap_ms);
            *time_ms += to_ms - from_ms;
            from_ms = to_ms;
            if from_ms >= gap_ms {
                break;
            }
        }
        self.total_ms += gap_ms;
        self.since_tick_ms += gap_ms;
        if self.since_tick_ms >= TICK_MS {
            self.age();
            self.quantile_ms = self.read();
        }
    }

    /// The wait that only a share of `above` exceeds, ms; 0 before the first tick.
    pub fn quantile_ms(&self) -> f64 {
        self.quantile_ms
    }

    fn age(&mut self) {
        let kept = self.memory_ms / (self.memory_ms + self.since_tick_ms);
        self.time_ms.iter_mut().for_each(|time_ms| *time_ms *= kept);
        self.total_ms *= kept;
        self.since_tick_ms = 0.0;
    }

    /// From the longest wait down until `above` of the time has passed; within a bin by the logarithm.
    fn read(&self) -> f64 {
        let mut left_ms = self.total_ms * self.above;
        for (bin, &time_ms) in self.time_ms.iter().enumerate().rev() {
            if time_ms > left_ms {
                let into = 1.0 - left_ms / time_ms;
                return libm::exp2((bin as f64 + into) / BINS_PER_DOUBLING);
            }
            left_ms -= time_ms;
        }
        0.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::driver::close;

    #[test]
    fn waits_of_equal_gaps_are_spread_evenly() {
        let mut silences = Silences::new(1e12, 0.05);
        assert_eq!(silences.quantile_ms(), 0.0);
        for gap_ms in [10.0, 100.0, 1000.0] {
            // 95 % of the waits in a gap are shorter than 95 % of it. What came before is too short to count.
            (0..1000).for_each(|_| silences.add(gap_ms));
            let expected = gap_ms * if gap_ms > 10.0 { 0.945 } else { 0.95 };
            close(silences.quantile_ms(), expected, 0.03);
        }
    }

    /// 1 ms a gap for 900 ms, then 100 ms: in 10 % of the time a gap is long, in half of that the wait is above 50 ms.
    #[test]
    fn long_gaps_weigh_by_their_length() {
        let mut silences = Silences::new(1e12, 0.05);
        for _ in 0..100 {
            (0..900).for_each(|_| silences.add(1.0));
            silences.add(100.0);
        }
        close(silences.quantile_ms(), 50.0, 0.03);
    }

    #[test]
    fn the_past_fades() {
        let mut silences = Silences::new(10_000.0, 0.05);
        silences.add(1000.0);
        assert!(silences.quantile_ms() > 900.0);
        // After 60 s of 1 ms a share of 1000/61,000 would be left without ageing, above 5 %/3; with it e^-6 of that.
        (0..60_000).for_each(|_| silences.add(1.0));
        assert!(silences.quantile_ms() < 1.2, "{}", silences.quantile_ms());
    }

    #[test]
    fn any_gap_has_a_bin() {
        let mut silences = Silences::new(60_000.0, 0.05);
        silences.add(0.0);
        assert_eq!(silences.quantile_ms(), 0.0);
        silences.add(1e15);
        assert!(silences.quantile_ms() > 50_000.0 && silences.quantile_ms() < 70_000.0);
    }
}
