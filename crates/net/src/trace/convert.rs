//! Traces from rates, and rates from traces.
//!
//! In: steps of (time, rate), as a CSV file; or one rate. Out: a [`Trace`] whose mean is that of the steps within one
//! opportunity over its whole length. And back: the rate of a trace per interval, as the same kind of file.
//!
//! Everything is integer arithmetic: an opportunity occurs at the end of the ms in which the steps have filled its 1504
//! bytes.

use std::io::{self, Write};
use std::num::NonZeroU32;

use super::error::excerpt;
use super::{MAX_OPPORTUNITIES, OPPORTUNITY_BITS, Trace, TraceError};

const NS_PER_S: f64 = 1e9;
const NS_PER_MS: u64 = 1_000_000;

/// The highest rate of a step: 10^9 Mbit/s.
const MAX_RATE_BPS: f64 = 1e15;

/// The longest trace: the times are ms in 32 bits.
const MAX_DURATION_NS: u64 = u32::MAX as u64 * NS_PER_MS;

/// A rate that holds over time: steps, each until the next one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RateSteps {
    name: String,
    /// Start, ns from the first, increasing; rate, bit/s. At least one.
    steps: Vec<(u64, u64)>,
    /// End of the last step, a whole number of ms.
    end_ns: u64,
}

/// Rates that cannot be used or made into a trace. `name` is the file; lines count from 1.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RateError {
    /// A line without exactly two columns.
    #[error("{name}:{line}: `{text}` has not two columns; `time_s,mbit_per_s` is needed")]
    Columns {
        /// File.
        name: String,
        /// Line.
        line: usize,
        /// What it says, cut short and escaped.
        text: String,
    },
    /// A value that is not a number in the range allowed.
    #[error("{name}:{line}: {column} = `{text}`: allowed is {allowed}")]
    Value {
        /// File.
        name: String,
        /// Line.
        line: usize,
        /// Column.
        column: &'static str,
        /// What it says, cut short and escaped.
        text: String,
        /// What it may be.
        allowed: &'static str,
    },
    /// No step at all.
    #[error("{name}: no steps; at least one line `time_s,mbit_per_s` is needed")]
    Empty {
        /// File.
        name: String,
    },
    /// An end that is not after the last step, or too late.
    #[error(
        "{name}: the steps last {duration_s} s; allowed is more than the start of the last step, \
         {last_s} s, up to 4294967.295 s"
    )]
    Duration {
        /// File.
        name: String,
        /// Length asked for, s.
        duration_s: String,
        /// Start of the last step from the first, s.
        last_s: String,
    },
    /// The steps do not fill half an opportunity, or fill too many.
    #[error(
        "{name}: {opportunities} opportunities of 1504 bytes result; allowed is 1 to \
         {MAX_OPPORTUNITIES}"
    )]
    Opportunities {
        /// File.
        name: String,
        /// How many result.
        opportunities: u128,
    },
    /// What was made is not a trace; no steps in range lead here.
    #[error(transparent)]
    Trace(#[from] TraceError),
}

impl RateSteps {
    /// Reads lines `time_s,mbit_per_s`; `name` is what errors call the text.
    ///
    /// Times increase; only their distance from the first matters, so they may count from any origin. The rate on a line
    /// holds until the next one's time; the last one until `duration_s` after the first or, if that is absent, for as
    /// long as the step before it (a single step: one second). The end is moved up to a whole ms, times are rounded to
    /// ns, rates to bit/s. A first line that does not begin with a number is a heading; empty lines and those that begin
    /// with `#` are skipped.
    ///
    /// # Errors
    /// A line without two columns, a value out of range, no steps, an end that is not after the last step.
    pub fn parse(text: &[u8], name: &str, duration_s: Option<f64>) -> Result<Self, RateError> {
        let mut steps: Vec<(u64, u64)> = Vec::new();
        let mut origin_s = None;
        let mut heading_allowed = true;
        for (at, line) in text.split(|&byte| byte == b'\n').enumerate() {
            let line = line.trim_ascii();
            if line.is_empty() || line.starts_with(b"#") {
                continue;
            }
            let starts_a_number = line[0].is_ascii_digit() || b"+-.".contains(&line[0]);
            if std::mem::take(&mut heading_allowed) && !starts_a_number {
                continue;
            }
            let place = Place { name, line: at + 1 };
            let (time_s, rate_bps) = place.step(line)?;
            let elapsed_s = time_s - *origin_s.get_or_insert(time_s);
            let start_ns = libm::round(elapsed_s * NS_PER_S);
            let previous = steps.last().map_or(-1.0, |&(start, _)| start as f64);
            if start_ns <= previous || start_ns >= MAX_DURATION_NS as f64 {
                let allowed = "a time after the line before, within 4294967.295 s of the first";
                return Err(place.value("time_s", line, allowed));
            }
            steps.push((start_ns as u64, rate_bps));
        }
        Self::ending(name, steps, duration_s)
    }

    /// Sets the end.
    fn ending(
        name: &str,
        steps: Vec<(u64, u64)>,
        duration_s: Option<f64>,
    ) -> Result<Self, RateError> {
        let name = name.to_owned();
        let last_ns = match steps.last() {
            Some(&(start, _)) => start,
            None => return Err(RateError::Empty { name }),
        };
        let end_ns = match (duration_s, &steps[..]) {
            (Some(duration_s), _) => libm::round(duration_s * NS_PER_S),
            (None, [.., (before, _), (last, _)]) => (2 * last - before) as f64,
            (None, _) => NS_PER_S,
        };
        // Written so that NaN fails.
        if !(end_ns > last_ns as f64 && end_ns <= MAX_DURATION_NS as f64) {
            let duration_s = (end_ns / NS_PER_S).to_string();
            let last_s = (last_ns as f64 / NS_PER_S).to_string();
            return Err(RateError::Duration { name, duration_s, last_s });
        }
        let end_ns = (end_ns as u64).next_multiple_of(NS_PER_MS);
        Ok(Self { name, steps, end_ns })
    }

    /// Length, ms.
    pub fn duration_ms(&self) -> u32 {
        // At most MAX_DURATION_NS by construction.
        (self.end_ns / NS_PER_MS) as u32
    }

    /// Mean rate, bit/s.
    pub fn mean_bps(&self) -> f64 {
        let nanobits: u128 = self.pieces().map(|piece| piece.nanobits()).sum();
        nanobits as f64 / self.end_ns as f64
    }

    /// The trace that offers these rates.
    ///
    /// The number of opportunities is what the steps carry, rounded to the nearest; the last one stands at the very end,
    /// because it marks the period, every other at the end of the ms in which it is filled.
    ///
    /// # Errors
    /// Steps that carry less than half an opportunity, or more than [`MAX_OPPORTUNITIES`].
    pub fn to_trace(&self) -> Result<Trace, RateError> {
        const OPPORTUNITY_NANOBITS: u128 = OPPORTUNITY_BITS as u128 * 1_000_000_000;

        let total: u128 = self.pieces().map(|piece| piece.nanobits()).sum();
        let opportunities = (total + OPPORTUNITY_NANOBITS / 2) / OPPORTUNITY_NANOBITS;
        if opportunities == 0 || opportunities > MAX_OPPORTUNITIES as u128 {
            return Err(RateError::Opportunities { name: self.name.clone(), opportunities });
        }
        let mut times = Vec::with_capacity(opportunities as usize);
        let (mut carried, mut wanted) = (0u128, OPPORTUNITY_NANOBITS);
        for piece in self.pieces() {
            let until = carried + piece.nanobits();
            while wanted <= until && (times.len() as u128) < opportunities - 1 {
                // Inside a piece that carries something, so its rate is not 0.
                let filled_ns = (wanted - carried).div_ceil(u128::from(piece.rate_bps));
                let at_ns = u128::from(piece.start_ns) + filled_ns;
                times.push(at_ns.div_ceil(u128::from(NS_PER_MS)) as u32);
                wanted += OPPORTUNITY_NANOBITS;
            }
            carried = until;
        }
        times.push(self.duration_ms());
        Ok(Trace::from_opportunities(times)?)
    }

    fn pieces(&self) -> impl Iterator<Item = Piece> {
        let ends = self.steps.iter().skip(1).map(|step| step.0).chain([self.end_ns]);
        self.steps.iter().zip(ends).map(|(&(start_ns, rate_bps), end_ns)| Piece {
            start_ns,
            end_ns,
            rate_bps,
        })
    }
}

/// A step with its end.
struct Piece {
    start_ns: u64,
    end_ns: u64,
    rate_bps: u64,
}

impl Piece {
    /// What it carries, 10^-9 bit.
    fn nanobits(&self) -> u128 {
        u128::from(self.rate_bps) * u128::from(self.end_ns - self.start_ns)
    }
}

/// Where an error is.
struct Place<'a> {
    name: &'a str,
    line: usize,
}

impl Place<'_> {
    fn value(&self, column: &'static str, text: &[u8], allowed: &'static str) -> RateError {
        let (name, text) = (self.name.to_owned(), excerpt(text));
        RateError::Value { name, line: self.line, column, text, allowed }
    }

    /// Time, s, and rate, bit/s.
    fn step(&self, line: &[u8]) -> Result<(f64, u64), RateError> {
        let mut columns = line.split(|&byte| byte == b',').map(<[u8]>::trim_ascii);
        let (Some(time), Some(rate), None) = (columns.next(), columns.next(), columns.next())
        else {
            let (name, text) = (self.name.to_owned(), excerpt(line));
            return Err(RateError::Columns { name, line: self.line, text });
        };
        let number = |text: &[u8]| str::from_utf8(text).ok().and_then(|text| text.parse().ok());
        let time_s = number(time)
            .filter(|time: &f64| time.abs() <= 1e12)
            .ok_or_else(|| self.value("time_s", time, "a number of seconds within 1e12"))?;
        let rate_bps = number(rate)
            .map(|mbps: f64| libm::round(mbps * 1e6))
            .filter(|bps| (0.0..=MAX_RATE_BPS).contains(bps))
            .ok_or_else(|| self.value("mbit_per_s", rate, "a rate from 0 to 1e9 Mbit/s"))?;
        Ok((time_s, rate_bps as u64))
    }
}

/// Mean rate of a trace over an interval.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct BinnedRate {
    /// Start of the interval, s.
    pub time_s: f64,
    /// Mean rate, Mbit/s.
    pub mbit_per_s: f64,
}

impl Trace {
    /// A trace of exactly `rate_bps`, its opportunities as even as whole ms allow. Its period is the shortest that holds a
    /// whole number of opportunities: 376 ms at 12 Mbit/s.
    ///
    /// # Errors
    /// A rate of 0, or one that needs more than [`MAX_OPPORTUNITIES`] to be exact.
    pub fn constant(rate_bps: u64) -> Result<Self, RateError> {
        // rate = opportunities x OPPORTUNITY_BITS x 1000 / period in ms, in lowest terms.
        let one_per_ms_bps = OPPORTUNITY_BITS * 1000;
        let divisor = greatest_common_divisor(rate_bps, one_per_ms_bps);
        let (opportunities, period_ms) = (rate_bps / divisor, one_per_ms_bps / divisor);
        if !(1..=MAX_OPPORTUNITIES as u64).contains(&opportunities) {
            let name = format!("constant {rate_bps} bit/s");
            return Err(RateError::Opportunities { name, opportunities: opportunities.into() });
        }
        // The period is at most 12,032,000 ms.
        let times = (1..=opportunities).map(|k| (k * period_ms).div_ceil(opportunities) as u32);
        Ok(Self::from_opportunities(times.collect())?)
    }

    /// Mean rates over intervals of `bin_ms`, the last one as long as the trace leaves it.
    ///
    /// An interval includes its end and not its start, so that a trace made from steps gives them back; opportunities at 0
    /// ms count in the first.
    pub fn binned_rates(&self, bin_ms: NonZeroU32) -> Vec<BinnedRate> {
        let (bin_ms, period_ms) = (bin_ms.get(), self.period_ms());
        let mut counts = vec![0u64; period_ms.div_ceil(bin_ms) as usize];
        for &ms in self.opportunities_ms() {
            counts[(ms.saturating_sub(1) / bin_ms) as usize] += 1;
        }
        let rate = |(start_ms, count): (u32, u64)| {
            let length_ms = bin_ms.min(period_ms - start_ms);
            // Bits per µs; a single division, so that round rates stay round.
            let length_us = f64::from(length_ms) * 1000.0;
            BinnedRate {
                time_s: f64::from(start_ms) / 1000.0,
                mbit_per_s: (count * OPPORTUNITY_BITS) as f64 / length_us,
            }
        };
        (0..period_ms).step_by(bin_ms as usize).zip(counts).map(rate).collect()
    }

    /// Writes [`Trace::binned_rates`] as CSV with a heading, in the form that [`RateSteps::parse`] reads.
    ///
    /// # Errors
    /// Those of `to`.
    pub fn write_rates(&self, bin_ms: NonZeroU32, to: &mut impl Write) -> io::Result<()> {
        let mut text = b"time_s,mbit_per_s\n".to_vec();
        for rate in self.binned_rates(bin_ms) {
            writeln!(text, "{},{}", rate.time_s, rate.mbit_per_s)?;
        }
        to.write_all(&text)
    }
}

fn greatest_common_divisor(a: u64, b: u64) -> u64 {
    if b == 0 { a } else { greatest_common_divisor(b, a % b) }
}
