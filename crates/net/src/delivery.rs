//! From the transmitter to the far end: propagation, jitter, reordering.
//!
//! In: departure times, non-decreasing. Out: arrival times.

use std::sync::Arc;

use crate::link::{LinkSpec, Reorder};
use crate::random::{Purpose, RandomStream};
use crate::{DelayTrace, Picos};

/// The way from the transmitter to the far end.
#[derive(Clone, Debug)]
pub(crate) struct Delivery {
    delay_ps: Picos,
    /// Absent on most links, and then not worth the space in the link.
    impairments: Option<Box<Impairments>>,
}

#[derive(Clone, Debug)]
struct Impairments {
    /// The changes of the delay, and which of them held last.
    changes: Option<(Arc<DelayTrace>, usize)>,
    jitter: Option<(TruncatedExponential, RandomStream)>,
    /// Neither jitter nor a delay that falls may let packets overtake each other.
    ordered: bool,
    /// Latest arrival among the packets that were not held back, ps.
    latest: Picos,
    reorder: Option<(Reorder, RandomStream)>,
}

impl Delivery {
    /// The way of the link `spec`; `seed` and `stream` pick its random streams.
    pub(crate) fn new(spec: &LinkSpec, seed: u64, stream: u64) -> Self {
        let LinkSpec { delay_ps, jitter, reorder, .. } = *spec;
        let changes = spec.delay_trace.clone();
        let is_even = changes.is_none() && jitter.is_none() && reorder.is_none();
        let impairments = (!is_even).then(|| {
            Box::new(Impairments {
                changes: changes.map(|changes| (changes, 0)),
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

    /// Propagation delay, ps; the least where it changes.
    pub(crate) fn delay_ps(&self) -> Picos {
        self.delay_ps
    }

    /// When the packet that departs at `departs` arrives. Departures do not decrease from call to call.
    #[inline]
    pub(crate) fn arrival(&mut self, departs: Picos) -> Picos {
        let arrives = departs.saturating_add(self.delay_ps);
        match &mut self.impairments {
            None => arrives,
            Some(impairments) => impairments.on_packet(departs, arrives),
        }
    }
}

impl Impairments {
    #[inline(never)]
    fn on_packet(&mut self, departs: Picos, mut arrives: Picos) -> Picos {
        if let Some((changes, at)) = &mut self.changes {
            arrives = arrives.saturating_add(changes.above_least(departs, at));
        }
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
    use crate::link::Jitter;
    use crate::{PS_PER_MS, PS_PER_US};

    /// The way of a link with this delay and these impairments.
    fn delivery(
        delay_ps: Picos,
        jitter: Option<Jitter>,
        reorder: Option<Reorder>,
        (seed, stream): (u64, u64),
    ) -> Delivery {
        Delivery::new(&LinkSpec { delay_ps, jitter, reorder, ..LinkSpec::default() }, seed, stream)
    }

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
            let mut delivery = delivery(0, jitter(mean, max, true), None, (1, 2));
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
                delivery(PS_PER_MS, jitter(PS_PER_MS, 10 * PS_PER_MS, reorder), None, (3, 0));
            let arrivals: Vec<Picos> =
                (0..10_000).map(|k| delivery.arrival(k * 100 * PS_PER_US)).collect();
            assert_eq!(arrivals.is_sorted(), !reorder);
            assert!(arrivals.iter().zip(0..).all(|(&at, k)| at >= k * 100 * PS_PER_US + PS_PER_MS));
        }
    }

    #[test]
    fn a_delay_that_changes_by_hand() {
        // 20 ms, from 100 ms on 50 ms, from 110 ms on 10 ms. What leaves at 109 ms arrives at 159 ms, and until then everything
        // behind it does, however short its own delay.
        let changes = DelayTrace::parse(b"0 20\n100 50\n110 10\n", "t").unwrap();
        let spec = LinkSpec {
            delay_ps: changes.least_ps(),
            delay_trace: Some(Arc::new(changes)),
            ..LinkSpec::default()
        };
        let arrivals = |spec: &LinkSpec| {
            let mut delivery = Delivery::new(spec, 0, 0);
            [0, 99, 100, 109, 110, 148, 149, 150, 1000]
                .map(|ms| delivery.arrival(ms * PS_PER_MS) / PS_PER_MS)
        };
        assert_eq!(arrivals(&spec), [20, 119, 150, 159, 159, 159, 159, 160, 1010]);
        // Jitter that may reorder lets them overtake.
        let spec = LinkSpec { jitter: jitter(0, 0, true), ..spec };
        assert_eq!(arrivals(&spec), [20, 119, 150, 159, 120, 158, 159, 160, 1010]);
    }

    #[test]
    fn reordered_packets_are_overtaken_by_the_others() {
        let reorder = Some(Reorder { probability: 0.1, extra_ps: 5 * PS_PER_MS });
        let mut delivery = delivery(PS_PER_MS, None, reorder, (4, 0));
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
        let mut alone = delivery(0, None, reorder, (5, 6));
        let mut both = delivery(0, jitter(1000, 1000, true), reorder, (5, 6));
        for _ in 0..1000 {
            assert_eq!(alone.arrival(0) >= PS_PER_MS, both.arrival(0) >= PS_PER_MS);
        }
    }

    #[test]
    fn nothing_overflows() {
        let reorder = Some(Reorder { probability: 1.0, extra_ps: Picos::MAX });
        let mut delivery =
            delivery(Picos::MAX, jitter(Picos::MAX, Picos::MAX, false), reorder, (0, 0));
        assert_eq!(delivery.arrival(Picos::MAX), Picos::MAX);
    }
}
