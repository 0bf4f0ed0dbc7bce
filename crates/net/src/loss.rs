//! Random loss: which packets vanish before they reach the queue.
//!
//! In: one call per packet, in order. Out: whether it is lost. The two-state model is Gilbert's (Bell System Technical
//! Journal 39, 1960) with Elliott's loss in both states (Bell System Technical Journal 42, 1963).

use crate::link::LossModel;
use crate::random::{Purpose, RandomStream};

/// A [`LossModel`] in operation.
#[derive(Clone, Debug)]
pub(crate) struct Loss {
    model: LossModel,
    /// In the bad state of the two-state model. A link starts in the good one.
    bad: bool,
    /// Packets since the last periodic loss.
    since: u64,
    random: RandomStream,
}

impl Loss {
    pub(crate) fn new(model: LossModel, seed: u64, stream: u64) -> Self {
        Self { model, bad: false, since: 0, random: RandomStream::new(seed, stream, Purpose::Loss) }
    }

    /// Whether the next packet is lost.
    #[inline(never)]
    pub(crate) fn on_packet(&mut self) -> bool {
        match self.model {
            LossModel::Bernoulli(probability) => self.random.chance(probability),
            LossModel::Periodic(every) => {
                self.since += 1;
                let lost = self.since >= every;
                if lost {
                    self.since = 0;
                }
                lost
            }
            LossModel::GilbertElliott { p, r, loss_bad, loss_good } => {
                let turns = self.random.chance(if self.bad { r } else { p });
                self.bad ^= turns;
                self.random.chance(if self.bad { loss_bad } else { loss_good })
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PACKETS: usize = 200_000;

    fn losses(model: LossModel, seed: u64) -> Vec<bool> {
        let mut loss = Loss::new(model, seed, 0);
        (0..PACKETS).map(|_| loss.on_packet()).collect()
    }

    fn fraction(lost: &[bool]) -> f64 {
        lost.iter().filter(|&&lost| lost).count() as f64 / lost.len() as f64
    }

    #[test]
    fn periodic_loss_takes_every_nth() {
        let lost = losses(LossModel::Periodic(4), 1);
        assert_eq!(lost[..9], [false, false, false, true, false, false, false, true, false]);
    }

    #[test]
    fn bernoulli_frequency() {
        for p in [0.001, 0.01, 0.3] {
            let sigma = (p * (1.0 - p) / PACKETS as f64).sqrt();
            let seen = fraction(&losses(LossModel::Bernoulli(p), 1));
            assert!((seen - p).abs() < 4.0 * sigma, "{seen} for {p}");
        }
        assert_eq!(fraction(&losses(LossModel::Bernoulli(0.0), 1)), 0.0);
        assert_eq!(fraction(&losses(LossModel::Bernoulli(1.0), 1)), 1.0);
    }

    #[test]
    fn gilbert_elliott_frequency_and_burst_length() {
        // Fraction of packets in the bad state: p / (p + r) = 0.01 / 0.21. With certain loss there and none in the good
        // state, a burst lasts 1/r = 5 packets on average.
        let (p, r) = (0.01, 0.2);
        let lost = losses(LossModel::GilbertElliott { p, r, loss_bad: 1.0, loss_good: 0.0 }, 2);
        let bad = p / (p + r);
        // Correlation of the state decays by (1 - p - r) per packet: variance grows by (2 - p - r) / (p + r).
        let sigma = (bad * (1.0 - bad) * (2.0 - p - r) / (p + r) / PACKETS as f64).sqrt();
        let seen = fraction(&lost);
        assert!((seen - bad).abs() < 4.0 * sigma, "{seen} for {bad}");

        let bursts = lost.windows(2).filter(|pair| !pair[0] && pair[1]).count();
        let burst = lost.iter().filter(|&&lost| lost).count() as f64 / bursts as f64;
        // Geometric: standard deviation sqrt(1 - r) / r per burst.
        let sigma = (1.0 - r).sqrt() / r / (bursts as f64).sqrt();
        assert!((burst - 1.0 / r).abs() < 4.0 * sigma, "{burst} packets per burst");
    }

    #[test]
    fn gilbert_elliott_loses_in_both_states() {
        let (p, r, loss_bad, loss_good) = (0.05, 0.05, 0.4, 0.02);
        let seen = fraction(&losses(LossModel::GilbertElliott { p, r, loss_bad, loss_good }, 3));
        let expected = 0.5 * loss_bad + 0.5 * loss_good;
        assert!((seen - expected).abs() < 0.01, "{seen} for {expected}");
    }

    #[test]
    fn the_transition_comes_before_the_loss() {
        // A link that always turns bad loses its very first packet, and then every second one.
        let model = LossModel::GilbertElliott { p: 1.0, r: 1.0, loss_bad: 1.0, loss_good: 0.0 };
        assert_eq!(losses(model, 4)[..4], [true, false, true, false]);
    }

    #[test]
    fn same_seed_same_losses() {
        let model = LossModel::Bernoulli(0.1);
        assert_eq!(losses(model, 5), losses(model, 5));
        assert_ne!(losses(model, 5), losses(model, 6));
    }
}
