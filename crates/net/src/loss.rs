//! Random loss: which packets vanish before they reach the queue.
//!
//! In: one call per packet, in order, with the time. Out: whether it is lost. The two-state model is Gilbert's (Bell System Technical
//! Journal 39, 1960) with Elliott's loss in both states (Bell System Technical Journal 42, 1963).

use crate::Picos;
use crate::link::LossModel;
use crate::random::{Purpose, RandomStream};

/// A [`LossModel`] in operation.
#[derive(Clone, Debug)]
pub(crate) struct Loss {
    model: LossModel,
    /// In the bad state of a model that has two, or off. A link starts in the good one.
    bad: bool,
    /// When a link that is on and off by turns changes.
    until: Picos,
    /// Packets since the last periodic loss.
    since: u64,
    random: RandomStream,
}

impl Loss {
    pub(crate) fn new(model: LossModel, seed: u64, stream: u64) -> Self {
        let mut random = RandomStream::new(seed, stream, Purpose::Loss);
        let until = match model {
            LossModel::OnOff { on_ps, .. } => duration(&mut random, on_ps),
            _ => 0,
        };
        Self { model, bad: false, until, since: 0, random }
    }

    /// Whether the next packet, which comes at `now`, is lost.
    #[inline(never)]
    pub(crate) fn on_packet(&mut self, now: Picos) -> bool {
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
            LossModel::OnOff { .. } if now < self.until => self.bad,
            LossModel::OnOff { on_ps, off_ps } => self.turn(now, on_ps, off_ps),
            LossModel::GilbertElliott { p, r, loss_bad, loss_good } => {
                let turns = self.random.chance(if self.bad { r } else { p });
                self.bad ^= turns;
                self.random.chance(if self.bad { loss_bad } else { loss_good })
            }
        }
    }

    /// Turns the link on or off, as often as it has been due by `now`; whether it is off then. Apart, so that other models do not pay
    /// for the registers that the logarithm takes.
    #[cold]
    #[inline(never)]
    fn turn(&mut self, now: Picos, on_ps: Picos, off_ps: Picos) -> bool {
        while self.until <= now {
            self.bad = !self.bad;
            let mean_ps = if self.bad { off_ps } else { on_ps };
            let lasts = duration(&mut self.random, mean_ps);
            self.until = self.until.saturating_add(lasts);
        }
        self.bad
    }
}

/// How long a state lasts: exponential with this mean, at least 1 ps.
fn duration(random: &mut RandomStream, mean_ps: Picos) -> Picos {
    (random.exponential(mean_ps as f64) as Picos).max(1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{PS_PER_MS, PS_PER_S};

    const PACKETS: usize = 200_000;

    fn losses(model: LossModel, seed: u64) -> Vec<bool> {
        let mut loss = Loss::new(model, seed, 0);
        (0..PACKETS).map(|k| loss.on_packet(k as Picos * PS_PER_MS)).collect()
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
    fn on_and_off_last_as_long_as_they_say() {
        // A packet each ms for 200 s: off for 50 ms after 150 ms, on average.
        let model = LossModel::OnOff { on_ps: 150 * PS_PER_MS, off_ps: 50 * PS_PER_MS };
        let lost = losses(model, 2);
        assert!(!lost[0], "on at first");
        let seen = fraction(&lost);
        // Of n alternating exponential times the share has the deviation (1 - s) s sqrt(2 / n).
        let outages = lost.windows(2).filter(|pair| !pair[0] && pair[1]).count() as f64;
        let sigma = 0.25 * 0.75 * (2.0 / outages).sqrt();
        assert!((seen - 0.25).abs() < 4.0 * sigma, "{seen}");
        // Outages shorter than the gap between two packets are not seen, and those around one are seen as one.
        let outage_ms = lost.iter().filter(|&&lost| lost).count() as f64 / outages;
        assert!((outage_ms - 50.5).abs() < 4.0 * 50.0 / outages.sqrt(), "{outage_ms} ms");
    }

    #[test]
    fn on_and_off_do_not_depend_on_how_many_packets_come() {
        let model = LossModel::OnOff { on_ps: PS_PER_S, off_ps: PS_PER_S };
        let every_ms = losses(model, 3);
        let mut sparse = Loss::new(model, 3, 0);
        for k in (0..PACKETS).step_by(777) {
            assert_eq!(sparse.on_packet(k as Picos * PS_PER_MS), every_ms[k]);
        }
    }

    #[test]
    fn same_seed_same_losses() {
        let model = LossModel::Bernoulli(0.1);
        assert_eq!(losses(model, 5), losses(model, 5));
        assert_ne!(losses(model, 5), losses(model, 6));
    }
}
