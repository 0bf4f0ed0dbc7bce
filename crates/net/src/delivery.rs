//! From the transmitter to the far end: propagation, jitter, reordering.
//!
//! In: departure times, non-decreasing. Out: arrival times.

use crate::Picos;
use crate::link::{Jitter, Reorder};
use crate::random::{Purpose, RandomStream};

/// The way from the transmitter to the far end.
#[derive(Clone, Debug)]
pub(crate) struct Delivery {
    delay_ps: Picos,
    /// Absent on most links, and then not worth the space in the link.
    impairments: Option<Box<Impairments>>,
}

#[derive(Clone, Debug)]
struct Impairments {
    jitter: Option<(TruncatedExponential, RandomStream)>,
    /// Jitter may not let packets overtake each other.
    ordered: bool,
    /// Latest arrival among the packets that were not held back, ps.
    latest: Picos,
    reorder: Option<(Reorder, RandomStream)>,
}

impl Delivery {
    pub(crate) fn new(
        delay_ps: Picos,
        jitter: Option<Jitter>,
        reorder: Option<Reorder>,
        seed: u64,
        stream: u64,
    ) -> Self {
        let impairments = (jitter.is_some() || reorder.is_some()).then(|| {
            Box::new(Impairments {
                jitter: jitter.map(|jitter| {
                    let delay = TruncatedExponential::new(jitter.mean_ps, jitter.max_ps);
                    (delay, RandomStream::new(seed, stream, Purpose::Jitter))
                }),
                ordered: jitter.is_none_or(|jitter| !jitter.reorder),
                latest: 0,
                reorder: reorder
                    .map(|reorder| (reorder, RandomStream::new(seed, stream, Purpose::Reorder))),
            })
        });
        Self { delay_ps, impairments }
    }

    /// Propagation delay, ps.
    pub(crate) fn delay_ps(&self) -> Picos {
        self.delay_ps
    }

    /// When the packet that departs at `departs` arrives.
    #[inline]
    pub(crate) fn arrival(&mut self, departs: Picos) -> Picos {
        let arrives = departs.saturating_add(self.delay_ps);
        match &mut self.impairments {
            None => arrives,
            Some(impairments) => impairments.on_packet(arrives),
        }
    }
}

impl Impairments {
    #[inline(never)]
    fn on_packet(&mut self, mut arrives: Picos) -> Picos {
        if let Some((delay, random)) = &mut self.jitter {
            arrives = arrives.saturating_add(delay.quantile(random.uniform()));
        }
        if self.ordered {
            arrives = arrives.max(self.latest);
            self.latest = arrives;
        }
        // A packet held back does not hold back those behind it: they are to overtake it.
        if let Some((reorder, random)) = &mut self.reorder
            && random.chance(reorder.probability)
        {
            arrives = arrives.saturating_add(reorder.extra_ps);
        }
        arrives
    }
}

/// An exponential delay conditioned on being at most `max`: what drawing again until it is below the bound yields.
///
/// Its distribution function is (1 - e^(-x/m)) / (1 - e^(-max/m)), inverted in closed form, so a packet costs one draw;
/// its mean is m - max / (e^(max/m) - 1).
#[derive(Clone, Copy, Debug)]
struct TruncatedExponential {
    mean_ps: f64,
    max_ps: Picos,
    /// Probability that the unbounded exponential is at most `max`.
    below_max: f64,
}

impl TruncatedExponential {
    fn new(mean_ps: Picos, max_ps: Picos) -> Self {
        let mean = mean_ps as f64;
        let below_max = if mean_ps == 0 { 0.0 } else { -libm::expm1(-(max_ps as f64) / mean) };
        Self { mean_ps: mean, max_ps, below_max }
    }

    /// The delay at the quantile `u` in [0, 1), ps.
    fn quantile(&self, u: f64) -> Picos {
        let delay = -self.mean_ps * libm::log1p(-u * self.below_max);
        // Float to integer saturates; rounding may not carry it past the bound.
        (libm::round(delay) as Picos).min(self.max_ps)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{PS_PER_MS, PS_PER_US};

    fn jitter(mean_ps: Picos, max_ps: Picos, reorder: bool) -> Option<Jitter> {
        Some(Jitter { mean_ps, max_ps, reorder })
    }

    #[test]
    fn quantiles_by_hand() {
        // mean 1 ms, max 2 ms: F(max) = 1 - e^-2 = 0.8646647; median = -ln(1 - 0.43233236) ms = 0.5662192 ms.
        let delay = TruncatedExponential::new(PS_PER_MS, 2 * PS_PER_MS);
        assert_eq!(delay.quantile(0.0), 0);
        assert_eq!(delay.quantile(0.5) / 1000, 566_219);
        assert!(delay.quantile(1.0 - 1e-16) <= 2 * PS_PER_MS);
        assert!(delay.quantile(1.0 - 1e-12) > 2 * PS_PER_MS - 100);
    }

    #[test]
    fn degenerate_bounds_draw_nothing() {
        for (mean, max) in [(0, 0), (0, 5), (5, 0)] {
            assert_eq!(TruncatedExponential::new(mean, max).quantile(0.9), 0);
        }
        // A bound far below the mean makes the draw uniform below it.
        let uniform = TruncatedExponential::new(Picos::MAX, 1_000_000);
        assert_eq!(uniform.quantile(0.25), 250_000);
    }

    #[test]
    fn mean_of_the_truncated_exponential() {
        for (mean, max) in [(PS_PER_MS, 10 * PS_PER_MS), (PS_PER_MS, PS_PER_MS), (1000, 300)] {
            let (m, b) = (mean as f64, max as f64);
            let expected = m - b / libm::expm1(b / m);
            let n = 100_000;
            let mut delivery = Delivery::new(0, jitter(mean, max, true), None, 1, 2);
            let delays: Vec<f64> = (0..n).map(|_| delivery.arrival(0) as f64).collect();
            assert!(delays.iter().all(|&delay| delay <= b));
            let seen = delays.iter().sum::<f64>() / f64::from(n);
            let variance =
                delays.iter().map(|d| (d - seen) * (d - seen)).sum::<f64>() / f64::from(n);
            let sigma = (variance / f64::from(n)).sqrt();
            assert!((seen - expected).abs() < 4.0 * sigma, "{seen} for {expected}");
        }
    }

    #[test]
    fn order_is_kept_unless_asked_otherwise() {
        for reorder in [false, true] {
            let mut delivery =
                Delivery::new(PS_PER_MS, jitter(PS_PER_MS, 10 * PS_PER_MS, reorder), None, 3, 0);
            let arrivals: Vec<Picos> =
                (0..10_000).map(|k| delivery.arrival(k * 100 * PS_PER_US)).collect();
            assert_eq!(arrivals.is_sorted(), !reorder);
            assert!(arrivals.iter().zip(0..).all(|(&at, k)| at >= k * 100 * PS_PER_US + PS_PER_MS));
        }
    }

    #[test]
    fn reordered_packets_are_overtaken_by_the_others() {
        let reorder = Some(Reorder { probability: 0.1, extra_ps: 5 * PS_PER_MS });
        let mut delivery = Delivery::new(PS_PER_MS, None, reorder, 4, 0);
        let n = 20_000;
        let late = (0..n)
            .filter(|&k| {
                let sent = k * PS_PER_MS;
                let delay = delivery.arrival(sent) - sent;
                assert!(delay == PS_PER_MS || delay == 6 * PS_PER_MS);
                delay != PS_PER_MS
            })
            .count();
        // Binomial: standard deviation sqrt(0.1 x 0.9 x 20,000) = 42.4.
        assert!((late as f64 - 2000.0).abs() < 4.0 * 42.4, "{late}");
    }

    #[test]
    fn one_impairment_does_not_move_the_draws_of_another() {
        let reorder = Some(Reorder { probability: 0.1, extra_ps: PS_PER_MS });
        let mut alone = Delivery::new(0, None, reorder, 5, 6);
        let mut both = Delivery::new(0, jitter(1000, 1000, true), reorder, 5, 6);
        for _ in 0..1000 {
            assert_eq!(alone.arrival(0) >= PS_PER_MS, both.arrival(0) >= PS_PER_MS);
        }
    }

    #[test]
    fn nothing_overflows() {
        let reorder = Some(Reorder { probability: 1.0, extra_ps: Picos::MAX });
        let mut delivery =
            Delivery::new(Picos::MAX, jitter(Picos::MAX, Picos::MAX, false), reorder, 0, 0);
        assert_eq!(delivery.arrival(Picos::MAX), Picos::MAX);
    }
}
