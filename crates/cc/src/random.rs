//! Random numbers for algorithms that draw them: SplitMix64 (Steele, Lea and Flood 2014), a word of state of the
//! algorithm's own, seeded by [`crate::PathInfo::seed`].

/// A generator.
#[derive(Clone, Copy, Debug)]
pub struct SplitMix64 {
    state: u64,
}

impl SplitMix64 {
    /// The generator of this seed.
    pub fn new(seed: u64) -> Self {
        Self { state: seed }
    }

    /// The next word.
    pub fn word(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.state;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// A whole number below `n`, which is at least 1.
    pub fn below(&mut self, n: u64) -> u64 {
        self.word() % n
    }

    /// A number from 0 to below 1, in steps of 2^-53.
    pub fn uniform(&mut self) -> f64 {
        (self.word() >> 11) as f64 / (1_u64 << 53) as f64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The first words for seed 1234567, as published with the generator.
    #[test]
    fn known_words() {
        let mut random = SplitMix64::new(1_234_567);
        let words = [6457827717110365317, 3203168211198807973, 9817491932198370423];
        assert!(words.iter().all(|word| random.word() == *word));
    }

    #[test]
    fn uniform_numbers_have_mean_a_half_and_stay_below_one() {
        let mut random = SplitMix64::new(1);
        let drawn: Vec<f64> = (0..10_000).map(|_| random.uniform()).collect();
        let mean = drawn.iter().sum::<f64>() / 1e4;
        // Four standard deviations of the mean of 10,000.
        assert!((mean - 0.5).abs() < 4.0 / (12.0 * 1e4_f64).sqrt(), "{mean}");
        assert!(drawn.iter().all(|u| (0.0..1.0).contains(u)));
    }
}
