//! Made-up traces that behave like a cellular link, from a seed.
//!
//! In: [`SynthParams`], usually from a [`Preset`]. Out: a [`Trace`], the same bytes on every machine.
//!
//! Three layers. The *rate* is log-normal with exponentially decaying correlation (the logarithm is an AR(1) process), cut
//! off at a peak: fading and competing users over seconds. *Outages* alternate with service, both exponential: hand-overs
//! and lost coverage. *Delivery* is in bursts: what the rate has accumulated goes out at the instants the scheduler turns
//! to this user, an exponential time apart. The whole is scaled to the mean asked for, within one opportunity.
//!
//! The presets are set to resemble the downlink recordings that come with mahimahi in: mean, 5th, 50th and 95th percentile
//! of the capacity over seconds, longest gap, most opportunities in one ms. They do not resemble: gaps with a tail heavier
//! than exponential (one recording has 78 s), uplinks at their ceiling (median above the mean), the 5- and 10-ms patterns
//! of radio frames and grants, correlation beyond one time scale, any dependence on the traffic carried, and any relation
//! between the two directions.

use super::{MAX_OPPORTUNITIES, OPPORTUNITY_BITS, Trace, TraceError};
use crate::random::{Purpose, RandomStream};

/// The longest synthetic trace: 10^8 ms, nearly 28 hours.
pub const MAX_DURATION_MS: u32 = 100_000_000;

/// How often the rate changes.
const RATE_STEP_MS: u32 = 10;

/// Parameters of a synthetic trace.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SynthParams {
    /// Mean capacity, bit/s.
    pub mean_bps: f64,
    /// Length, ms.
    pub duration_ms: u32,
    /// Seed.
    pub seed: u64,
    /// Standard deviation of the natural logarithm of the rate, 0 to 3.
    pub log_sd: f64,
    /// Time over which the correlation of that logarithm falls to 1/e, ms.
    pub correlation_ms: f64,
    /// Ceiling of the rate, as a multiple of the mean of the log-normal distribution, at least 1.
    pub peak: f64,
    /// Mean time from the end of an outage to the next, ms; infinite = no outages.
    pub between_outages_ms: f64,
    /// Mean length of an outage, ms.
    pub outage_ms: f64,
    /// Mean time between bursts, ms.
    pub burst_interval_ms: f64,
    /// Most opportunities in one ms, at least four times what the mean needs; the rest of a burst follows in the next.
    pub max_per_ms: u32,
}

/// Parameters that resemble a radio technology of the recordings.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Preset {
    /// LTE while driving: 5 Mbit/s, short outages.
    Lte,
    /// UMTS/HSDPA while driving: 2 Mbit/s, outages of seconds.
    Umts,
    /// CDMA2000 1xEV-DO while driving: 0.5 Mbit/s, outages of seconds.
    Evdo,
}

/// A parameter out of its range.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum SynthError {
    /// A parameter out of its range.
    #[error("{key} = {value}: allowed is {allowed}")]
    OutOfRange {
        /// Field of [`SynthParams`].
        key: &'static str,
        /// Its value.
        value: f64,
        /// What it may be.
        allowed: String,
    },
    /// What was made is not a trace; no parameters in range lead here.
    #[error(transparent)]
    Trace(#[from] TraceError),
}

impl Preset {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Lte, Self::Umts, Self::Evdo];

    /// Name on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Self::Lte => "lte",
            Self::Umts => "umts",
            Self::Evdo => "evdo",
        }
    }

    /// The preset called `name`.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|preset| preset.name() == name)
    }

    /// Its parameters, for a trace of `duration_ms` from `seed`.
    pub fn params(self, duration_ms: u32, seed: u64) -> SynthParams {
        match self {
            Self::Lte => SynthParams {
                mean_bps: 5e6,
                duration_ms,
                seed,
                log_sd: 0.85,
                correlation_ms: 4000.0,
                peak: 1.8,
                between_outages_ms: 8000.0,
                outage_ms: 350.0,
                burst_interval_ms: 3.5,
                max_per_ms: 24,
            },
            Self::Umts => SynthParams {
                mean_bps: 2e6,
                duration_ms,
                seed,
                log_sd: 0.65,
                correlation_ms: 8000.0,
                peak: 3.0,
                between_outages_ms: 15_000.0,
                outage_ms: 1300.0,
                burst_interval_ms: 8.0,
                max_per_ms: 6,
            },
            Self::Evdo => SynthParams {
                mean_bps: 0.5e6,
                duration_ms,
                seed,
                log_sd: 0.85,
                correlation_ms: 5000.0,
                peak: 3.0,
                between_outages_ms: 18_000.0,
                outage_ms: 1600.0,
                burst_interval_ms: 20.0,
                max_per_ms: 6,
            },
        }
    }
}

impl SynthParams {
    /// The same link `mean_bps` fast; bursts may grow with it.
    #[must_use]
    pub fn with_mean_bps(self, mean_bps: f64) -> Self {
        let growth = (mean_bps / self.mean_bps).max(1.0);
        // Float to integer saturates.
        let max_per_ms = libm::ceil(f64::from(self.max_per_ms) * growth) as u32;
        Self { mean_bps, max_per_ms, ..self }
    }

    /// Makes the trace.
    ///
    /// # Errors
    /// A parameter out of its range.
    pub fn generate(&self) -> Result<Trace, SynthError> {
        let opportunities = self.check()?;
        let mut channel = Channel::new(self);
        let weight: f64 = (0..self.duration_ms).map(|ms| channel.on_ms(ms)).sum();
        // An outage from end to end: everything is delivered at the end.
        let (scale, mut ready) = match weight > 0.0 {
            true => (opportunities as f64 / weight, 0.0),
            false => (0.0, opportunities as f64),
        };

        let mut channel = Channel::new(self);
        let mut random = RandomStream::new(self.seed, 0, Purpose::TraceBurst);
        let mut times = Vec::with_capacity(opportunities);
        let mut next_burst = 0.0;
        for ms in 0..self.duration_ms {
            let weight = channel.on_ms(ms);
            ready += weight * scale;
            let scheduled = weight > 0.0 && f64::from(ms) >= next_burst;
            let left_ms = f64::from(self.duration_ms - ms);
            let must_finish = ready + 1.0 > left_ms * f64::from(self.max_per_ms);
            if !scheduled && !must_finish {
                continue;
            }
            let room = opportunities - 1 - times.len();
            // Float to integer truncates: whole opportunities.
            let burst = (ready as usize).min(self.max_per_ms as usize).min(room);
            times.extend(std::iter::repeat_n(ms, burst));
            ready -= burst as f64;
            if ready < 1.0 {
                next_burst = f64::from(ms) + random.exponential(self.burst_interval_ms);
            }
        }
        // What the last burst left over goes with the one that marks the period.
        times.resize(opportunities, self.duration_ms);
        Ok(Trace::from_opportunities(times)?)
    }

    /// Checks the ranges; returns the number of opportunities.
    fn check(&self) -> Result<usize, SynthError> {
        let within = |key, value: f64, low: f64, high: f64| {
            if (low..=high).contains(&value) {
                return Ok(());
            }
            Err(SynthError::OutOfRange { key, value, allowed: format!("{low} to {high}") })
        };
        let duration_ms = f64::from(self.duration_ms);
        within("duration_ms", duration_ms, 1.0, f64::from(MAX_DURATION_MS))?;
        let rate_of =
            |opportunities: f64| opportunities * OPPORTUNITY_BITS as f64 / duration_ms * 1000.0;
        let highest = rate_of(MAX_OPPORTUNITIES as f64);
        within("mean_bps", self.mean_bps, rate_of(1.0), highest)?;
        within("log_sd", self.log_sd, 0.0, 3.0)?;
        within("correlation_ms", self.correlation_ms, 1.0, 1e9)?;
        within("peak", self.peak, 1.0, f64::INFINITY)?;
        within("between_outages_ms", self.between_outages_ms, 1.0, f64::INFINITY)?;
        within("outage_ms", self.outage_ms, 1.0, 1e9)?;
        within("burst_interval_ms", self.burst_interval_ms, 0.0, 1e6)?;
        let opportunities =
            libm::round(self.mean_bps * duration_ms / 1000.0 / OPPORTUNITY_BITS as f64);
        let per_ms = opportunities / duration_ms;
        within("max_per_ms", f64::from(self.max_per_ms), libm::ceil(4.0 * per_ms), f64::INFINITY)?;
        Ok(opportunities as usize)
    }
}

/// Rate and outages. Made twice from the same seed: once to find the scale, once to deliver.
struct Channel {
    /// Logarithm of the rate over its standard deviation: AR(1), stationary.
    level: f64,
    memory: f64,
    innovation: f64,
    log_sd: f64,
    ceiling: f64,
    weight: f64,
    rate: RandomStream,
    in_outage: bool,
    changes_at_ms: f64,
    between_outages_ms: f64,
    outage_ms: f64,
    outages: RandomStream,
}

impl Channel {
    fn new(params: &SynthParams) -> Self {
        let mut rate = RandomStream::new(params.seed, 0, Purpose::TraceRate);
        let mut outages = RandomStream::new(params.seed, 0, Purpose::TraceOutage);
        let memory = libm::exp(-f64::from(RATE_STEP_MS) / params.correlation_ms);
        Self {
            level: rate.normal(),
            memory,
            innovation: (1.0 - memory * memory).sqrt(),
            log_sd: params.log_sd,
            ceiling: params.peak * libm::exp(params.log_sd * params.log_sd / 2.0),
            weight: 0.0,
            rate,
            in_outage: false,
            changes_at_ms: outages.exponential(params.between_outages_ms),
            between_outages_ms: params.between_outages_ms,
            outage_ms: params.outage_ms,
            outages,
        }
    }

    /// Relative rate during this ms; ms must follow one another from 0.
    fn on_ms(&mut self, ms: u32) -> f64 {
        if ms.is_multiple_of(RATE_STEP_MS) {
            self.level = self.memory * self.level + self.innovation * self.rate.normal();
            self.weight = libm::exp(self.log_sd * self.level).min(self.ceiling);
        }
        if f64::from(ms) >= self.changes_at_ms {
            self.in_outage = !self.in_outage;
            let mean = if self.in_outage { self.outage_ms } else { self.between_outages_ms };
            self.changes_at_ms = f64::from(ms) + self.outages.exponential(mean);
        }
        if self.in_outage { 0.0 } else { self.weight }
    }
}
