//! What a trace is like, in a few numbers.

use super::{OPPORTUNITY_BITS, Trace};

/// Statistics of a trace, of one repetition.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TraceStats {
    /// Number of opportunities.
    pub opportunities: usize,
    /// Time of the first, ms.
    pub first_ms: u32,
    /// Length of a repetition, s: the time of the last opportunity.
    pub duration_s: f64,
    /// Mean capacity, Mbit/s (10^6 bit/s, 1504 bytes per opportunity).
    pub mean_mbps: f64,
    /// Capacity over seconds, Mbit/s; `None` for a trace shorter than one.
    pub capacity_1s_mbps: Option<Percentiles>,
    /// Longest time between an opportunity and the next, ms.
    pub longest_gap_ms: u32,
    /// Most opportunities in one ms.
    pub most_in_one_ms: usize,
}

/// Percentiles of the capacity over whole seconds [k, k + 1) s; an incomplete second at the end does not count. The
/// p-quantile of n sorted values is the one at index floor(p n), from 0, without interpolation.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Percentiles {
    /// 5th.
    pub p5: f64,
    /// 50th.
    pub p50: f64,
    /// 95th.
    pub p95: f64,
}

impl TraceStats {
    pub(super) fn new(trace: &Trace) -> Self {
        let times = trace.opportunities_ms();
        Self {
            opportunities: times.len(),
            first_ms: times.first().copied().unwrap_or(0),
            duration_s: f64::from(trace.period_ms()) / 1e3,
            mean_mbps: trace.mean_bps() / 1e6,
            capacity_1s_mbps: percentiles(trace),
            longest_gap_ms: times.windows(2).map(|pair| pair[1] - pair[0]).max().unwrap_or(0),
            most_in_one_ms: times.chunk_by(|a, b| a == b).map(<[u32]>::len).max().unwrap_or(0),
        }
    }
}

fn percentiles(trace: &Trace) -> Option<Percentiles> {
    let seconds = (trace.period_ms() / 1000) as usize;
    let mut counts = vec![0u32; seconds];
    for &ms in trace.opportunities_ms() {
        if let Some(count) = counts.get_mut((ms / 1000) as usize) {
            *count += 1;
        }
    }
    counts.sort_unstable();
    // floor(p n / 100) < n for every p < 100.
    let at = |percent: usize| {
        let count = counts.get(percent * seconds / 100)?;
        Some((u64::from(*count) * OPPORTUNITY_BITS) as f64 / 1e6)
    };
    Some(Percentiles { p5: at(5)?, p50: at(50)?, p95: at(95)? })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn by_hand() {
        // Seconds of 1, 2 and 3 opportunities and a last, incomplete one.
        let trace =
            Trace::from_opportunities(vec![999, 1000, 1500, 2000, 2000, 2999, 3000, 3400]).unwrap();
        assert_eq!(
            trace.stats(),
            TraceStats {
                opportunities: 8,
                first_ms: 999,
                duration_s: 3.4,
                mean_mbps: 8.0 * 12032.0 * 1000.0 / 3400.0 / 1e6,
                capacity_1s_mbps: Some(Percentiles {
                    p5: 0.012_032,
                    p50: 0.024_064,
                    p95: 0.036_096
                }),
                longest_gap_ms: 999,
                most_in_one_ms: 2,
            }
        );
    }

    #[test]
    fn shortest_trace() {
        let stats = Trace::from_opportunities(vec![1]).unwrap().stats();
        assert_eq!(stats.capacity_1s_mbps, None);
        assert_eq!((stats.longest_gap_ms, stats.most_in_one_ms), (0, 1));
        assert_eq!(stats.mean_mbps, 12.032);
    }
}
