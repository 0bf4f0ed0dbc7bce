//! Seeded random streams.
//!
//! In: a run's seed, the number of the thing that draws, and what the draws are for. Out: a [`RandomStream`] that no
//! other use shares, so that switching one impairment on leaves the draws of every other untouched. The generator is
//! PCG XSL-RR 128/64 (O'Neill, HMC-CS-2014-0905); the numbers are the same on every machine.

use rand_core::RngCore;
use rand_pcg::Pcg64;

/// What a stream's draws are for. Every purpose of one thing has a stream of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Purpose {
    /// Random loss.
    Loss,
    /// Jitter.
    Jitter,
    /// Reordering.
    Reorder,
    /// Rate of a synthetic trace.
    TraceRate,
    /// Outages of a synthetic trace.
    TraceOutage,
    /// Burst sizes and frame times of a synthetic trace.
    TraceBurst,
    /// A queue that draws.
    Queue,
}

/// An independent stream of random numbers.
#[derive(Clone, Debug)]
pub struct RandomStream(Pcg64);

impl RandomStream {
    /// The stream of `purpose` belonging to thing number `stream` in the run with `seed`.
    pub fn new(seed: u64, stream: u64, purpose: Purpose) -> Self {
        // PCG streams that start from related states stay correlated, so state and increment are both hashed from all
        // three numbers.
        let key = mix(seed) ^ mix(stream.wrapping_add(0x5851_f42d_4c95_7f2d)).rotate_left(17);
        let key = mix(key ^ (purpose as u64 + 1).wrapping_mul(0xd134_2543_de82_ef95));
        let word = |n: u64| u128::from(mix(key.wrapping_add(n.wrapping_mul(GOLDEN_GAMMA))));
        Self(Pcg64::new(word(1) << 64 | word(2), word(3) << 64 | word(4)))
    }

    /// Uniform in [0, 1): 53 random bits.
    #[inline]
    pub fn uniform(&mut self) -> f64 {
        const SCALE: f64 = 1.0 / (1u64 << 53) as f64;
        (self.0.next_u64() >> 11) as f64 * SCALE
    }

    /// True with `probability`; never for 0 or NaN, always for 1.
    #[inline]
    pub fn chance(&mut self, probability: f64) -> bool {
        self.uniform() < probability
    }

    /// Standard normal: mean 0, variance 1 (Box and Muller, 1958; one of the pair, so that every call costs two draws).
    pub fn normal(&mut self) -> f64 {
        // 1 - u lies in (0, 1], where the logarithm is finite.
        let radius = (-2.0 * libm::log(1.0 - self.uniform())).sqrt();
        radius * libm::cos(2.0 * std::f64::consts::PI * self.uniform())
    }

    /// Exponential with `mean`.
    pub fn exponential(&mut self, mean: f64) -> f64 {
        -mean * libm::log(1.0 - self.uniform())
    }
}

const GOLDEN_GAMMA: u64 = 0x9e37_79b9_7f4a_7c15;

/// The finalizer of SplitMix64 (Steele, Lea and Flood, OOPSLA 2014): a bijection in which every input bit reaches every
/// output bit.
pub(crate) fn mix(x: u64) -> u64 {
    let x = x.wrapping_add(GOLDEN_GAMMA);
    let x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ (x >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn first(seed: u64, stream: u64, purpose: Purpose) -> [f64; 4] {
        let mut random = RandomStream::new(seed, stream, purpose);
        std::array::from_fn(|_| random.uniform())
    }

    #[test]
    fn splitmix_matches_its_published_first_output() {
        // The first output of SplitMix64 seeded with 0.
        assert_eq!(mix(0), 0xe220_a839_7b1d_cdaf);
    }

    #[test]
    fn every_number_of_the_key_changes_the_stream() {
        let base = first(1, 2, Purpose::Loss);
        assert_eq!(base, first(1, 2, Purpose::Loss));
        for other in [
            first(2, 2, Purpose::Loss),
            first(1, 3, Purpose::Loss),
            first(2, 1, Purpose::Loss),
            first(1, 2, Purpose::Jitter),
            first(1, 2, Purpose::Reorder),
        ] {
            assert!(base.iter().zip(other).all(|(&a, b)| a != b));
        }
    }

    #[test]
    fn neighbouring_streams_are_uncorrelated() {
        // Sample correlation of n independent pairs has standard deviation 1/sqrt(n) = 0.01.
        let n = 10_000;
        for (a, b) in [((1, 0), (1, 1)), ((1, 0), (2, 0)), ((0, 0), (0, 1))] {
            let mut a = RandomStream::new(a.0, a.1, Purpose::Loss);
            let mut b = RandomStream::new(b.0, b.1, Purpose::Loss);
            let sum: f64 = (0..n).map(|_| (a.uniform() - 0.5) * (b.uniform() - 0.5)).sum();
            let correlation = 12.0 * sum / f64::from(n);
            assert!(correlation.abs() < 0.05, "{correlation}");
        }
    }

    #[test]
    fn moments() {
        let mut random = RandomStream::new(7, 0, Purpose::TraceRate);
        let n = 100_000;
        let (mut uniform, mut normal, mut square, mut exponential) = (0.0, 0.0, 0.0, 0.0);
        for _ in 0..n {
            let u = random.uniform();
            assert!((0.0..1.0).contains(&u));
            uniform += u;
            let z = random.normal();
            normal += z;
            square += z * z;
            exponential += random.exponential(3.0);
        }
        let n = f64::from(n);
        // Five standard errors each: 0.289, 1, sqrt(2) and 3 over sqrt(n).
        assert!((uniform / n - 0.5).abs() < 5.0 * 0.289 / n.sqrt());
        assert!((normal / n).abs() < 5.0 / n.sqrt());
        assert!((square / n - 1.0).abs() < 5.0 * 1.415 / n.sqrt());
        assert!((exponential / n - 3.0).abs() < 5.0 * 3.0 / n.sqrt());
    }

    #[test]
    fn certain_and_impossible_chances() {
        let mut random = RandomStream::new(0, 0, Purpose::Loss);
        for _ in 0..1000 {
            assert!(random.chance(1.0));
            assert!(!random.chance(0.0));
            assert!(!random.chance(f64::NAN));
        }
    }
}
