//! When a first-in first-out transmitter serves a packet, in closed form.
//!
//! In: arrival times, non-decreasing, and sizes. Out: when the service of each packet begins and when it ends, at the
//! moment it arrives. Constant rate: the end is max(now, end of the predecessor) + size / rate. Trace: the semantics of
//! mahimahi's `mm-link` (Netravali et al., USENIX ATC 2015): an opportunity carries 1504 bytes, as a fluid.

use std::sync::Arc;

use crate::link::Capacity;
use crate::trace::{OPPORTUNITY_BYTES, Trace};
use crate::{PS_PER_MS, PS_PER_S, Picos};

/// The service of a [`Capacity`].
#[derive(Clone, Debug)]
pub(crate) enum Service {
    Unlimited,
    Constant(ConstantService),
    Steps(StepService),
    Trace(TraceService),
}

impl Service {
    pub(crate) fn new(capacity: Capacity) -> Self {
        match capacity {
            Capacity::Unlimited => Self::Unlimited,
            Capacity::Constant(rate_bps) => Self::Constant(ConstantService::new(rate_bps)),
            Capacity::Steps(steps) => Self::Steps(StepService::new(steps)),
            Capacity::Trace { trace, once } => Self::Trace(TraceService::new(trace, once)),
        }
    }

    /// When the service of a packet that arrives at `now` would begin; `None` if never.
    #[inline]
    pub(crate) fn start(&mut self, now: Picos) -> Option<Picos> {
        match self {
            Self::Unlimited => Some(now),
            Self::Constant(service) => Some(service.start(now)),
            Self::Steps(service) => Some(service.start(now)),
            Self::Trace(service) => service.start(now),
        }
    }

    /// Serves a packet of `bytes` that arrived at `now`, for which [`Self::start`] has just returned a time; returns when it departs,
    /// or `None` if the trace ends before its last byte.
    #[inline]
    pub(crate) fn serve(&mut self, now: Picos, bytes: u32) -> Option<Picos> {
        match self {
            Self::Unlimited => Some(now),
            Self::Constant(service) => Some(service.serve(now, bytes)),
            Self::Steps(service) => Some(service.serve(now, bytes)),
            Self::Trace(service) => service.serve(bytes),
        }
    }

    /// The rate at `time`, bit/s: of a trace its mean; `None` when unlimited.
    pub(crate) fn rate_bps(&self, time: Picos) -> Option<f64> {
        match self {
            Self::Unlimited => None,
            Self::Constant(service) => Some(service.rate_bps),
            Self::Steps(service) => Some(service.rate_bps(time)),
            Self::Trace(service) => Some(service.trace.mean_bps()),
        }
    }

    /// Bytes that could be served in `(from, to]`; `None` when unlimited.
    pub(crate) fn offered_bytes(&self, from: Picos, to: Picos) -> Option<f64> {
        match self {
            Self::Unlimited => None,
            Self::Constant(service) => Some(service.offered_bytes(from, to)),
            Self::Steps(service) => Some(service.offered_bytes(from, to)),
            Self::Trace(service) => Some(service.offered_bytes(from, to)),
        }
    }
}

/// Service at a constant rate.
///
/// Times inside are ps in 64.64 fixed point. The duration of a byte is rounded up in the last of those bits and
/// departures are rounded down to whole ps, so a rate whose packets last whole picoseconds has exact departures, and any
/// rate is off by less than 1 ps after 2^64 bytes without a pause.
#[derive(Clone, Debug)]
pub(crate) struct ConstantService {
    rate_bps: f64,
    /// Duration of one byte: whole ps and their fraction in units of 2^-64.
    byte_ps: u64,
    byte_fraction: u64,
    /// Size of the last packet, and how long its service took: nearly always that of the next one.
    last_bytes: u32,
    last_ps: u64,
    last_fraction: u64,
    /// End of the last service.
    busy_until_ps: Picos,
    busy_until_fraction: u64,
}

impl ConstantService {
    pub(crate) fn new(rate_bps: f64) -> Self {
        let byte = fixed_ps_per_byte(rate_bps);
        Self {
            rate_bps,
            byte_ps: (byte >> 64) as u64,
            byte_fraction: byte as u64,
            last_bytes: 0,
            last_ps: 0,
            last_fraction: 0,
            busy_until_ps: 0,
            busy_until_fraction: 0,
        }
    }

    /// When the service of a packet that arrives at `now` would begin.
    #[inline]
    pub(crate) fn start(&self, now: Picos) -> Picos {
        now.max(self.busy_until_ps)
    }

    /// Serves a packet of `bytes` that arrives at `now`; returns when its last bit is sent.
    #[inline]
    pub(crate) fn serve(&mut self, now: Picos, bytes: u32) -> Picos {
        if bytes != self.last_bytes {
            self.measure(bytes);
        }
        let (start_ps, start_fraction) = if now > self.busy_until_ps {
            (now, 0)
        } else {
            (self.busy_until_ps, self.busy_until_fraction)
        };
        let (fraction, carry) = start_fraction.overflowing_add(self.last_fraction);
        self.busy_until_fraction = fraction;
        // A service beyond the end of time ends with it.
        self.busy_until_ps = start_ps.saturating_add(self.last_ps).saturating_add(u64::from(carry));
        self.busy_until_ps
    }

    /// Works out how long the service of `bytes` takes.
    #[cold]
    fn measure(&mut self, bytes: u32) {
        let fraction = u128::from(self.byte_fraction) * u128::from(bytes);
        let whole = u128::from(self.byte_ps) * u128::from(bytes) + (fraction >> 64);
        self.last_bytes = bytes;
        self.last_ps = u64::try_from(whole).unwrap_or(u64::MAX);
        self.last_fraction = fraction as u64;
    }

    /// Serves at another rate from the end of the last service on.
    fn change_rate(&mut self, rate_bps: f64) {
        let (busy_until_ps, busy_until_fraction) = (self.busy_until_ps, self.busy_until_fraction);
        *self = Self { busy_until_ps, busy_until_fraction, ..Self::new(rate_bps) };
    }

    /// The last service ends at `time`.
    fn postpone(&mut self, time: Picos) {
        (self.busy_until_ps, self.busy_until_fraction) = (time, 0);
    }

    /// Bytes served in `(from, to]` without a pause.
    pub(crate) fn offered_bytes(&self, from: Picos, to: Picos) -> f64 {
        to.saturating_sub(from) as f64 / PS_PER_S as f64 * (self.rate_bps / 8.0)
    }
}

/// 8e12 / `rate_bps` ps in 64.64 fixed point, rounded up; the largest value when the rate is not positive.
fn fixed_ps_per_byte(rate_bps: f64) -> u128 {
    if rate_bps.is_nan() || rate_bps <= 0.0 {
        return u128::MAX;
    }
    if rate_bps.is_infinite() {
        return 0;
    }
    // The rate is exactly mantissa x 2^exponent (IEEE 754); divide bit by bit, so that no rounding of f64 enters.
    let bits = rate_bps.to_bits();
    let (mut mantissa, mut exponent) = match bits >> 52 {
        0 => (bits, -1074),
        biased => (bits & ((1 << 52) - 1) | 1 << 52, biased as i32 - 1075),
    };
    exponent += mantissa.trailing_zeros() as i32;
    mantissa >>= mantissa.trailing_zeros();

    let mantissa = u128::from(mantissa);
    let byte_ps = u128::from(8 * PS_PER_S);
    let (mut quotient, mut remainder) = (byte_ps / mantissa, byte_ps % mantissa);
    for _ in 0..64 - exponent {
        if quotient >> 127 == 1 {
            return u128::MAX;
        }
        let next = remainder << 1;
        let carry = next >= mantissa;
        quotient = quotient << 1 | u128::from(carry);
        remainder = if carry { next - mantissa } else { next };
    }
    // Beyond 2^64 bit/s the quotient above has too many bits.
    let surplus = (exponent - 64).clamp(0, 127) as u32;
    let rounded_up = remainder != 0 || quotient & ((1 << surplus) - 1) != 0;
    (quotient >> surplus).saturating_add(u128::from(rounded_up))
}

/// Service at a rate that changes at given times. What a packet has been sent of when the rate changes stays sent.
#[derive(Clone, Debug)]
pub(crate) struct StepService {
    steps: Arc<[(Picos, f64)]>,
    /// The step that was in force when the last service ended …
    at: usize,
    /// … and service at its rate.
    service: ConstantService,
}

impl StepService {
    fn new(steps: Arc<[(Picos, f64)]>) -> Self {
        let rate_bps = steps.first().map_or(0.0, |first| first.1);
        Self { steps, at: 0, service: ConstantService::new(rate_bps) }
    }

    /// As [`ConstantService::start`].
    #[inline]
    pub(crate) fn start(&self, now: Picos) -> Picos {
        self.service.start(now)
    }

    /// As [`ConstantService::serve`].
    pub(crate) fn serve(&mut self, now: Picos, bytes: u32) -> Picos {
        let start = self.start(now);
        while let Some((_, rate_bps)) = self.next_before(start.saturating_add(1)) {
            self.service.change_rate(rate_bps);
        }
        let mut end = self.service.serve(now, bytes);
        while let Some((time, rate_bps)) = self.next_before(end) {
            // What is left at that time takes longer by the ratio of the rates.
            let ratio = self.service.rate_bps / rate_bps;
            let rest = (end - time) as f64 * ratio;
            self.service.change_rate(rate_bps);
            end = time.saturating_add(rest.ceil() as Picos);
            self.service.postpone(end);
        }
        end
    }

    /// Moves on to the next step if it begins before `time`: when it does, and its rate.
    fn next_before(&mut self, time: Picos) -> Option<(Picos, f64)> {
        let step = *self.steps.get(self.at + 1)?;
        (step.0 < time).then(|| {
            self.at += 1;
            step
        })
    }

    /// The rate in force at `time`, bit/s.
    fn rate_bps(&self, time: Picos) -> f64 {
        let begun = self.steps.partition_point(|step| step.0 <= time);
        self.steps.get(begun.saturating_sub(1)).map_or(0.0, |step| step.1)
    }

    /// Bytes that could be served in `(from, to]`.
    fn offered_bytes(&self, from: Picos, to: Picos) -> f64 {
        let ends = self.steps.iter().skip(1).map(|step| step.0).chain([Picos::MAX]);
        let part = |((begin, rate_bps), end): (&(Picos, f64), Picos)| {
            let span = to.min(end).saturating_sub(from.max(*begin));
            span as f64 / PS_PER_S as f64 * (rate_bps / 8.0)
        };
        self.steps.iter().zip(ends).map(part).sum()
    }
}

/// Service by the opportunities of a trace.
#[derive(Clone, Debug)]
pub(crate) struct TraceService {
    trace: Arc<Trace>,
    once: bool,
    /// Nothing more can leave: a packet that needs opportunities after the last one blocks all behind it.
    exhausted: bool,
    /// Opportunity that serves the next byte, as an index into the current repetition of the trace …
    next: usize,
    /// … which began at this ms.
    cycle_start_ms: u64,
    /// Bytes left in that opportunity.
    left: u32,
    /// Departure of the last packet, ms.
    busy_until_ms: u64,
}

impl TraceService {
    fn new(trace: Arc<Trace>, once: bool) -> Self {
        Self {
            trace,
            once,
            exhausted: false,
            next: 0,
            cycle_start_ms: 0,
            left: OPPORTUNITY_BYTES,
            busy_until_ms: 0,
        }
    }

    /// When the first byte of a packet that arrives at `now` would be served; `None` if never.
    #[inline]
    pub(crate) fn start(&mut self, now: Picos) -> Option<Picos> {
        if self.exhausted {
            return None;
        }
        let now_ms = now / PS_PER_MS;
        if self.busy_until_ms <= now_ms {
            // Every opportunity up to and including this ms went to what was queued before, or was lost.
            self.seek_after(now_ms)?;
        } else if self.left == 0 {
            self.advance(1)?;
            self.left = OPPORTUNITY_BYTES;
        }
        Some(self.next_ms().saturating_mul(PS_PER_MS))
    }

    /// Serves a packet of `bytes` for which [`TraceService::start`] has just returned a time; returns when it departs,
    /// or `None` if the trace ends before its last byte.
    #[inline]
    pub(crate) fn serve(&mut self, bytes: u32) -> Option<Picos> {
        if bytes <= self.left {
            self.left -= bytes;
        } else {
            let rest = bytes - self.left;
            let opportunities = rest.div_ceil(OPPORTUNITY_BYTES);
            // At most one opportunity's worth, so the wrapped product is right even where it does not fit.
            self.left = opportunities.wrapping_mul(OPPORTUNITY_BYTES).wrapping_sub(rest);
            self.advance(opportunities as usize)?;
        }
        self.busy_until_ms = self.next_ms();
        Some(self.busy_until_ms.saturating_mul(PS_PER_MS))
    }

    /// Bytes of the opportunities with `from` < time <= `to`.
    pub(crate) fn offered_bytes(&self, from: Picos, to: Picos) -> f64 {
        let count = |at: Picos| {
            let (times, period) = (self.trace.opportunities_ms(), self.period_ms());
            let at_ms = at / PS_PER_MS;
            let (cycle, within) = match at_ms / period {
                cycle if self.once && cycle > 0 => (0, period),
                cycle => (cycle, at_ms % period),
            };
            let so_far = times.partition_point(|&ms| u64::from(ms) <= within);
            cycle * times.len() as u64 + so_far as u64
        };
        count(to).saturating_sub(count(from)) as f64 * f64::from(OPPORTUNITY_BYTES)
    }

    fn period_ms(&self) -> u64 {
        u64::from(self.trace.period_ms())
    }

    /// When the opportunity that serves the next byte occurs, ms.
    #[inline]
    fn next_ms(&self) -> u64 {
        self.cycle_start_ms.saturating_add(u64::from(self.trace.opportunities_ms()[self.next]))
    }

    /// Moves on by `opportunities`.
    #[inline]
    fn advance(&mut self, opportunities: usize) -> Option<()> {
        self.next += opportunities;
        let len = self.trace.opportunities_ms().len();
        if self.next >= len {
            if self.once {
                self.exhausted = true;
                self.next = len - 1;
                return None;
            }
            let cycles = (self.next / len) as u64;
            self.next %= len;
            self.cycle_start_ms = self.cycle_start_ms.saturating_add(cycles * self.period_ms());
        }
        Some(())
    }

    /// Moves to the first opportunity after `now_ms`, with all its bytes. Everything before `next` lies at or before
    /// `now_ms` already.
    #[inline]
    fn seek_after(&mut self, now_ms: u64) -> Option<()> {
        let period = self.period_ms();
        let mut within = now_ms.saturating_sub(self.cycle_start_ms);
        if within >= period {
            if self.once {
                self.exhausted = true;
                return None;
            }
            self.cycle_start_ms += within / period * period;
            within %= period;
            self.next = 0;
        }
        self.next = first_after(self.trace.opportunities_ms(), self.next, within);
        self.left = OPPORTUNITY_BYTES;
        Some(())
    }
}

/// Index of the first entry of `times` greater than `ms`, which exists and is not before `from`. Doubles its stride and
/// then halves it: the logarithm of the distance moved, which for a link in use is a step or two.
#[inline]
fn first_after(times: &[u32], from: usize, ms: u64) -> usize {
    let (mut low, mut stride) = (from, 1);
    // All entries before `low` are <= ms.
    while let Some(&at) = times.get(low + stride - 1)
        && u64::from(at) <= ms
    {
        low += stride;
        stride *= 2;
    }
    let high = times.len().min(low + stride - 1);
    low + times[low..high].partition_point(|&at| u64::from(at) <= ms)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn duration_of_a_byte() {
        let one = 1u128 << 64;
        assert_eq!(fixed_ps_per_byte(8.0), 1_000_000_000_000 * one);
        assert_eq!(fixed_ps_per_byte(0.5), 16_000_000_000_000 * one);
        assert_eq!(fixed_ps_per_byte(8e12), one);
        assert_eq!(fixed_ps_per_byte(16e12), one / 2);
        // 384 Gbit/s: 20 5/6 ps, rounded up.
        assert_eq!(fixed_ps_per_byte(384e9), (125 * one).div_ceil(6));
        // 3 bit/s.
        assert_eq!(fixed_ps_per_byte(3.0), (8_000_000_000_000 * one).div_ceil(3));
        for never in [0.0, -1.0, f64::NAN, f64::NEG_INFINITY, f64::MIN_POSITIVE, 5e-324] {
            assert_eq!(fixed_ps_per_byte(never), u128::MAX);
        }
        assert_eq!(fixed_ps_per_byte(f64::INFINITY), 0);
        assert_eq!(fixed_ps_per_byte(f64::MAX), 1);
        assert_eq!(fixed_ps_per_byte(2f64.powi(70)), 125_000_000_000);
    }

    #[test]
    fn a_rate_that_changes_in_the_middle_of_a_packet() {
        // 12 Mbit/s: 1500 bytes in 1 ms; from 1.5 ms on 6 Mbit/s; from 10 ms on 24.
        let ms = PS_PER_MS;
        let steps = [(0, 12e6), (3 * ms / 2, 6e6), (10 * ms, 24e6)];
        let mut service = StepService::new(steps.into());
        assert_eq!(service.serve(0, 1500), ms);
        // Half of it at 12, half at 6.
        assert_eq!(service.serve(0, 1500), 3 * ms / 2 + ms);
        assert_eq!(service.serve(0, 1500), 9 * ms / 2);
        // After a pause over a change.
        assert_eq!(service.serve(11 * ms, 1500), 23 * ms / 2);
        assert_eq!(service.offered_bytes(ms, 11 * ms), 750.0 + 8.5 * 750.0 + 3000.0);
        // One packet over two changes: 0.5 ms at 12, 8.5 ms at 6, the rest at 24.
        let mut service = StepService::new([(0, 12e6), (ms, 6e6), (2 * ms, 24e6)].into());
        // 1500 by 1 ms, 750 by 2 ms, 750 more in 0.25 ms.
        assert_eq!(service.serve(0, 3000), 2 * ms + ms / 4);
    }

    proptest! {
        /// Steps that change nothing are a constant rate, to a picosecond per change in the middle of a packet.
        #[test]
        fn equal_steps_are_a_constant_rate(
            rate in 1e5f64..1e10,
            times in prop::collection::btree_set(1u64..50_000_000_000, 0..6),
            packets in prop::collection::vec((0u64..1_000_000_000, 40u32..9000), 1..60),
        ) {
            let steps: Arc<[_]> = [0].into_iter().chain(times).map(|time| (time, rate)).collect();
            let mut constant = ConstantService::new(rate);
            let mut stepped = StepService::new(steps.clone());
            let mut now = 0;
            for (gap, bytes) in packets {
                now += gap;
                let (a, b) = (constant.serve(now, bytes), stepped.serve(now, bytes));
                prop_assert!(a.abs_diff(b) <= steps.len() as u64, "{} {}", a, b);
            }
        }

        #[test]
        fn duration_of_a_byte_is_the_quotient_rounded_up(rate in 1u64..1 << 53) {
            let exact = (u128::from(8 * PS_PER_S) << 64).div_ceil(u128::from(rate));
            prop_assert_eq!(fixed_ps_per_byte(rate as f64), exact);
        }

        #[test]
        fn stride_search_finds_what_a_scan_finds(
            mut times in prop::collection::vec(0u32..60, 1..80), from in 0usize..80, ms in 0u64..60,
        ) {
            times.sort_unstable();
            times.push(60);
            // The caller's promise: everything before `from` is <= ms.
            let scan = times.iter().position(|&at| u64::from(at) > ms).expect("60 is greater");
            prop_assert_eq!(first_after(&times, from.min(scan), ms), scan);
        }
    }
}
