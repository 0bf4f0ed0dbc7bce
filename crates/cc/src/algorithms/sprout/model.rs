//! Sprout's model of a link (§3.1-3.3): packets are delivered by a Poisson process whose rate is in Brownian motion, with
//! outages that hold. The belief about the rate is a distribution over fixed bins.

/// §3.2: rates the belief distinguishes.
const BINS: usize = 256;
/// How far the Brownian motion is followed, in standard deviations.
const REACH: f64 = 4.0;
/// Bins less likely than this are left out.
const NEGLIGIBLE: f64 = 1e-12;
/// §3.2: at first every rate is as likely.
const UNIFORM: [f64; BINS] = [1.0 / BINS as f64; BINS];

/// What a tick has shown.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Observation {
    /// Nothing was to arrive.
    Nothing,
    /// So many packets arrived, and more would have if the link were faster.
    Exactly(f64),
    /// So many arrived; the sender gave no more.
    AtLeast(f64),
}

/// How the belief spreads in some time.
#[derive(Clone, Debug)]
struct Spread {
    /// Probability that an outage lasts.
    stays_out: f64,
    /// Probability of a step by -reach to reach bins.
    steps: [f64; 2 * BINS],
    reach: usize,
}

impl Spread {
    /// For a Brownian motion by `deviation` bins.
    fn new(deviation: f64, stays_out: f64) -> Self {
        let reach = (REACH * deviation).ceil().min((BINS - 1) as f64) as usize;
        let below = |x: f64| 0.5 * libm::erfc(-x / (deviation * core::f64::consts::SQRT_2));
        let mut steps = [0.0; 2 * BINS];
        for (i, step) in steps.iter_mut().enumerate().take(2 * reach + 1) {
            let bins = i as f64 - reach as f64;
            *step = below(bins + 0.5) - below(bins - 0.5);
        }
        Self { stays_out, steps, reach }
    }

    fn of(&self, belief: &[f64; BINS]) -> [f64; BINS] {
        // With room for what leaves the range on either side.
        let mut wide = [0.0; 3 * BINS];
        let steps = &self.steps[..=2 * self.reach];
        for (from, p) in belief.iter().enumerate().filter(|(_, p)| **p > NEGLIGIBLE) {
            // §3.1: an outage is sticky.
            let moves = if from == 0 { p * (1.0 - self.stays_out) } else { *p };
            wide[BINS + from] += p - moves;
            let first = BINS + from - self.reach;
            for (next, step) in wide[first..].iter_mut().zip(steps) {
                *next += moves * step;
            }
        }
        let mut next = [0.0; BINS];
        next.copy_from_slice(&wide[BINS..2 * BINS]);
        // What would leave stays at the end.
        next[0] += wide[..BINS].iter().sum::<f64>();
        next[BINS - 1] += wide[2 * BINS..].iter().sum::<f64>();
        normalised(next).unwrap_or(UNIFORM)
    }
}

#[derive(Clone, Debug)]
pub(super) struct Model {
    /// Packets/s between two bins.
    bin: f64,
    tick_s: f64,
    horizon_s: f64,
    belief: [f64; BINS],
    in_a_tick: Spread,
    to_the_horizon: Spread,
    /// Logarithm of the mean number of packets in a tick, per bin.
    ln_mean: [f64; BINS],
}

impl Model {
    /// `sigma` and `outage_escape_rate` are the paper's; forecasts are for `ticks` ticks of `tick_s`.
    pub(super) fn new(
        max_rate: f64,
        sigma: f64,
        outage_escape_rate: f64,
        tick_s: f64,
        ticks: f64,
    ) -> Self {
        let bin = max_rate / (BINS - 1) as f64;
        let spread =
            |s: f64| Spread::new(sigma * s.sqrt() / bin, libm::exp(-outage_escape_rate * s));
        let horizon_s = ticks * tick_s;
        Self {
            bin,
            tick_s,
            horizon_s,
            belief: UNIFORM,
            in_a_tick: spread(tick_s),
            to_the_horizon: spread(horizon_s),
            ln_mean: std::array::from_fn(|i| libm::log(bin * i as f64 * tick_s)),
        }
    }

    /// A tick passes unseen.
    pub(super) fn evolve(&mut self) {
        self.belief = self.in_a_tick.of(&self.belief);
    }

    /// §3.2: Bayes' rule. An observation that the belief held impossible teaches nothing.
    pub(super) fn observe(&mut self, seen: Observation) {
        let mean = |i: usize| self.bin * i as f64 * self.tick_s;
        let mut belief = self.belief;
        let likely = belief.iter_mut().enumerate().filter(|(_, p)| **p > NEGLIGIBLE);
        match seen {
            Observation::Nothing => return,
            Observation::Exactly(n) => {
                let ln_factorial = libm::lgamma(n + 1.0);
                likely.for_each(|(i, p)| *p *= poisson(mean(i), self.ln_mean[i], n, ln_factorial));
            }
            Observation::AtLeast(n) => {
                likely.for_each(|(i, p)| *p *= 1.0 - poisson_below(mean(i), n));
            }
        }
        self.belief = normalised(belief).unwrap_or(self.belief);
    }

    /// §3.3: how many packets are delivered up to the horizon, but for a probability of `percentile` to deliver fewer.
    ///
    /// Deviation: all of that time at the rate the belief has spread to by its end; the paper adds up tick by tick.
    pub(super) fn forecast(&self, percentile: f64) -> u32 {
        let belief = self.to_the_horizon.of(&self.belief);
        let mean = |i: usize| self.bin * i as f64 * self.horizon_s;
        // Rate by rate: its mean count, and the probability of n there, n counted upwards.
        let mut terms = [(0.0, 0.0); BINS];
        let mut len = 0;
        for (i, p) in belief.iter().enumerate().filter(|(_, p)| **p > NEGLIGIBLE) {
            terms[len] = (mean(i), p * libm::exp(-mean(i)));
            len += 1;
        }
        let most = (2.0 * mean(BINS - 1)) as u32;
        let mut below = 0.0;
        for n in 0..most {
            let share = 1.0 / f64::from(n + 1);
            for (mean, term) in &mut terms[..len] {
                below += *term;
                *term *= *mean * share;
            }
            if below >= percentile {
                return n;
            }
        }
        most
    }

    /// Mean rate, packets/s.
    pub(super) fn mean(&self) -> f64 {
        self.belief.iter().enumerate().map(|(i, p)| self.bin * i as f64 * p).sum()
    }

    /// Probability of an outage.
    pub(super) fn outage(&self) -> f64 {
        self.belief[0]
    }
}

/// `belief` with a sum of 1; `None` if all of it is nothing.
fn normalised(mut belief: [f64; BINS]) -> Option<[f64; BINS]> {
    let sum: f64 = belief.iter().sum();
    let usable = sum.is_finite() && sum > 1e-300;
    belief.iter_mut().for_each(|p| *p /= sum);
    usable.then_some(belief)
}

/// Probability that a Poisson variable is `n`, by its mean and the logarithms of that and of n!.
fn poisson(mean: f64, ln_mean: f64, n: f64, ln_factorial: f64) -> f64 {
    // 0 times the logarithm of 0 is 0 here.
    let power = if n == 0.0 { 0.0 } else { n * ln_mean };
    libm::exp(power - mean - ln_factorial)
}

/// Probability that it is below `n`.
fn poisson_below(mean: f64, n: f64) -> f64 {
    let (mut term, mut below, mut k) = (libm::exp(-mean), 0.0, 0.0);
    // Beyond ten standard deviations nothing is added.
    let most = n.min(mean + 10.0 * mean.sqrt() + 20.0);
    while k < most {
        below += term;
        k += 1.0;
        term *= mean / k;
    }
    below.min(1.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn model() -> Model {
        Model::new(1000.0, 200.0, 1.0, 0.02, 5.0)
    }

    #[test]
    fn poisson_by_hand() {
        let poisson = |mean: f64, n: f64| poisson(mean, mean.ln(), n, libm::lgamma(n + 1.0));
        assert!((poisson(2.0, 3.0) - 8.0 / 6.0 * (-2.0_f64).exp()).abs() < 1e-12);
        assert!((poisson_below(2.0, 3.0) - 5.0 * (-2.0_f64).exp()).abs() < 1e-12);
        assert_eq!(
            (poisson(0.0, 0.0), poisson(0.0, 1.0), poisson_below(0.0, 1.0)),
            (1.0, 0.0, 1.0)
        );
    }

    /// Variance of the rate after n ticks: n sigma^2 tau, as long as it meets no end.
    #[test]
    fn brownian_motion_spreads_with_the_root_of_time() {
        let mut model = model();
        model.belief = [0.0; BINS];
        model.belief[128] = 1.0;
        for ticks in 1..=4 {
            model.evolve();
            let mean = model.mean();
            let square = |(i, p): (usize, &f64)| (model.bin * i as f64 - mean).powi(2) * p;
            let variance: f64 = model.belief.iter().enumerate().map(square).sum();
            let expected = f64::from(ticks) * 200.0 * 200.0 * 0.02;
            assert!((variance / expected - 1.0).abs() < 0.02, "{variance} {expected}");
            assert!((model.belief.iter().sum::<f64>() - 1.0).abs() < 1e-12);
        }
    }

    /// exp(-0.02) of an outage is left after a tick.
    #[test]
    fn outages_hold() {
        let mut model = model();
        model.belief = [0.0; BINS];
        model.belief[0] = 1.0;
        model.evolve();
        // The rest moves; a good half of that would go below nothing, or not far enough.
        let left = (-0.02_f64).exp();
        assert!(model.outage() > left && model.outage() < left + 0.6 * (1.0 - left));
    }

    #[test]
    fn observations_narrow_the_belief() {
        let mut model = model();
        for _ in 0..50 {
            model.evolve();
            model.observe(Observation::Exactly(10.0));
        }
        assert!((model.mean() / 500.0 - 1.0).abs() < 0.05, "{}", model.mean());
        // At least as many excludes less, not more.
        let exact = model.mean();
        for _ in 0..50 {
            model.evolve();
            model.observe(Observation::AtLeast(10.0));
        }
        assert!(model.mean() > exact + 100.0, "{}", model.mean());
        let before = model.belief;
        model.observe(Observation::Nothing);
        assert_eq!(model.belief, before);
    }

    #[test]
    fn the_forecast_is_a_percentile() {
        let mut model = model();
        model.belief = [0.0; BINS];
        model.belief[128] = 1.0;
        // 502 packets/s: 50 in 100 ms; Brownian motion of 63 packets/s and Poisson: 50 - 1.645 sqrt(50 + 6.3^2) = 34.5.
        let forecast = model.forecast(0.05);
        assert!((33..=37).contains(&forecast), "{forecast}");
        let median = model.forecast(0.5);
        assert!((49..=51).contains(&median), "{median}");
    }
}
