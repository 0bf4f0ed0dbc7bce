//! Reads bytes as a trace, as a list of rates and as the log of a link, and uses what was accepted.
//!
//! `fuzz/fuzz_targets/trace.rs` includes this file by path and calls [`any`] with its input; `tests/any_trace.rs` feeds it random
//! and damaged files.

use std::num::NonZeroU32;
use std::sync::Arc;

use paceline_net::log::LogStats;
use paceline_net::trace::convert::RateSteps;
use paceline_net::{Capacity, Link, LinkSpec, PS_PER_MS, PS_PER_S, Trace, Verdict};

/// Panics where a reader breaks its word: a trace that can be used, or an error of one line that begins with the file's name.
pub fn any(bytes: &[u8]) {
    match Trace::parse(bytes, "name") {
        Ok(trace) => used(trace),
        Err(error) => polite(&error.to_string()),
    }
    match RateSteps::parse(bytes, "name", None) {
        // More takes gigabytes of memory; what it would be is known without.
        Ok(steps) if steps.mean_bps() * f64::from(steps.duration_ms()) > 1e12 => {}
        Ok(steps) => match steps.to_trace() {
            Ok(trace) => {
                assert_eq!(trace.period_ms(), steps.duration_ms());
                used(trace);
            }
            Err(error) => polite(&error.to_string()),
        },
        Err(error) => polite(&error.to_string()),
    }
    match LogStats::read(bytes, "name") {
        Ok(stats) => assert!(stats.delivered_packets <= bytes.len() as u64, "{stats:?}"),
        Err(error) => polite(&error.to_string()),
    }
}

fn polite(error: &str) {
    assert!(error.starts_with("name:") && !error.contains('\n'), "{error:?}");
}

fn used(trace: Trace) {
    let mut text = Vec::new();
    trace.write(&mut text).expect("memory takes it");
    assert_eq!(Trace::parse(&text, "name").as_ref(), Ok(&trace), "what was written is read back");

    let stats = trace.stats();
    assert!(stats.mean_mbps.is_finite() && stats.mean_mbps > 0.0, "{stats:?}");
    let a_tenth_ms = NonZeroU32::new(trace.period_ms() / 10 + 1).expect("above 0");
    assert!(trace.binned_rates(a_tenth_ms).len() <= 10);

    // Packets of one, two and six opportunities, an hour apart at most.
    let pause_ps = (u64::from(trace.period_ms()) * PS_PER_MS).min(3600 * PS_PER_S);
    let capacity = Capacity::Trace { trace: Arc::new(trace), once: false };
    let mut link = Link::new(LinkSpec { capacity, ..LinkSpec::default() }, 1, 1);
    let mut before_ps = 0;
    for (at_ps, bytes) in [(0, 40), (0, 1505), (pause_ps / 2, 9000), (pause_ps, 1504)] {
        let Verdict::Pass { departs, .. } = link.enqueue(at_ps, bytes) else {
            panic!("an endless trace serves every packet");
        };
        assert!(departs >= before_ps.max(at_ps), "{departs} after {before_ps}");
        before_ps = departs;
    }
}
