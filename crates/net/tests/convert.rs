//! Rates to traces and back: hand-worked examples, conservation, errors.

use std::num::NonZeroU32;

use paceline_net::Trace;
use paceline_net::trace::convert::RateSteps;
use paceline_net::trace::synth::Preset;
use proptest::prelude::*;

/// Mbit/s of one opportunity per ms.
const UNIT: f64 = 12.032;

fn bin(ms: u32) -> NonZeroU32 {
    NonZeroU32::new(ms).expect("not 0")
}

fn steps(text: &str, duration_s: Option<f64>) -> RateSteps {
    RateSteps::parse(text.as_bytes(), "rates.csv", duration_s).expect("valid")
}

fn error(text: &str, duration_s: Option<f64>) -> String {
    match RateSteps::parse(text.as_bytes(), "rates.csv", duration_s) {
        Ok(steps) => steps.to_trace().expect_err("refused").to_string(),
        Err(error) => error.to_string(),
    }
}

#[test]
fn opportunities_stand_where_they_are_filled() {
    // 4 ms at one per ms, 3 ms at nothing, 4 ms at one per 2 ms.
    let steps = steps("time_s,mbit_per_s\n0,12.032\n0.004,0\n0.007,6.016\n", Some(0.011));
    let trace = steps.to_trace().expect("some");
    assert_eq!(trace.opportunities_ms(), [1, 2, 3, 4, 9, 11]);
    assert_eq!(steps.duration_ms(), 11);
    assert_eq!(steps.mean_bps(), 6.0 * 12_032_000.0 / 11.0);
    assert_eq!(trace.mean_bps(), steps.mean_bps());
}

#[test]
fn parts_of_an_opportunity_carry_over_to_the_next_step() {
    // 1.5 opportunities in 3 ms, then 2.5 in 1 ms.
    let trace = steps("0,6.016\n0.003,30.08", Some(0.004)).to_trace().expect("some");
    assert_eq!(trace.opportunities_ms(), [2, 4, 4, 4]);
}

#[test]
fn a_silent_end_keeps_its_length() {
    let trace = steps("0,12.032\n0.002,0", Some(1.0)).to_trace().expect("some");
    assert_eq!(trace.opportunities_ms(), [1, 1000]);
}

#[test]
fn ends_that_are_not_said() {
    assert_eq!(steps("0,1\n0.5,1\n0.7,1", None).duration_ms(), 900);
    assert_eq!(steps("7,1", None).duration_ms(), 1000);
    assert_eq!(steps("0,1", Some(0.0001)).duration_ms(), 1);
}

#[test]
fn what_files_look_like() {
    let plain = steps("0,1.5\n2,3", None);
    for text in [
        "0,1.5\n2,3\n",
        "0,1.5\r\n2,3\r\n",
        "time,rate\n0,1.5\n2,3",
        "# origin: somewhere\n\n time_s , mbit_per_s \n 0 , 1.5 \n\n# pause\n2,\t3\n",
        "1700000000.5,1.5\n1700000002.5,3.0",
        "-1,1.5\n1,3",
        "0e0,15e-1\n2.,3",
    ] {
        assert_eq!(steps(text, None), plain, "{text:?}");
    }
}

#[test]
fn errors_name_file_line_value_and_range() {
    let rate = "allowed is a rate from 0 to 1e9 Mbit/s";
    let time = "allowed is a time after the line before, within 4294967.295 s of the first";
    for (text, expected) in [
        (
            "0,1\n1;2\n",
            "rates.csv:2: `1;2` has not two columns; `time_s,mbit_per_s` is needed".to_owned(),
        ),
        (
            "0,1,2",
            "rates.csv:1: `0,1,2` has not two columns; `time_s,mbit_per_s` is needed".to_owned(),
        ),
        ("h\n0,x", format!("rates.csv:2: mbit_per_s = `x`: {rate}")),
        ("0,-1", format!("rates.csv:1: mbit_per_s = `-1`: {rate}")),
        ("0,nan", format!("rates.csv:1: mbit_per_s = `nan`: {rate}")),
        ("0,1e10", format!("rates.csv:1: mbit_per_s = `1e10`: {rate}")),
        (
            "0,1\ninf,1",
            "rates.csv:2: time_s = `inf`: allowed is a number of seconds within 1e12".to_owned(),
        ),
        ("0,1\n\n0,1", format!("rates.csv:3: time_s = `0,1`: {time}")),
        ("0,1\n5e6,1", format!("rates.csv:2: time_s = `5e6,1`: {time}")),
        ("h\n", "rates.csv: no steps; at least one line `time_s,mbit_per_s` is needed".to_owned()),
        (
            "0,0",
            "rates.csv: 0 opportunities of 1504 bytes result; allowed is 1 to 100000000".to_owned(),
        ),
        (
            "0,1e9\n4000,0",
            "rates.csv: 332446808510638 opportunities of 1504 bytes result; allowed is 1 to 100000000"
                .to_owned(),
        ),
    ] {
        assert_eq!(error(text, None), expected);
    }
    let range = "allowed is more than the start of the last step, 2 s, up to 4294967.295 s";
    for (duration_s, shown) in [(2.0, "2"), (-1.0, "-1"), (f64::NAN, "NaN"), (5e6, "5000000")] {
        let message = error("0,1\n2,1", Some(duration_s));
        assert_eq!(message, format!("rates.csv: the steps last {shown} s; {range}"));
    }
}

#[test]
fn constant_traces_are_exact() {
    let trace = Trace::constant(12_000_000).expect("exact");
    assert_eq!((trace.opportunities_ms().len(), trace.period_ms()), (375, 376));
    assert_eq!(Trace::constant(12_032_000).expect("exact").opportunities_ms(), [1]);
    assert_eq!(Trace::constant(24_064_000).expect("exact").opportunities_ms(), [1, 1]);
    assert_eq!(Trace::constant(4_512_000).expect("exact").opportunities_ms(), [3, 6, 8]);
    for rate in [1, 1000, 64_000, 1_500_000, 123_457_000, 1_000_000_000, 10_000_000_000] {
        let trace = Trace::constant(rate).expect("exact");
        assert_eq!(trace.mean_bps(), rate as f64);
        let gaps = trace.opportunities_ms().windows(2).map(|pair| pair[1] - pair[0]);
        if let (Some(least), Some(most)) = (gaps.clone().min(), gaps.max()) {
            assert!(most - least <= 1, "{rate}: {least} to {most}");
        }
    }
    assert_eq!(
        Trace::constant(0).expect_err("refused").to_string(),
        "constant 0 bit/s: 0 opportunities of 1504 bytes result; allowed is 1 to 100000000"
    );
    assert!(Trace::constant(1_000_000_001).is_err());
    assert!(Trace::constant(u64::MAX).is_err());
}

#[test]
fn binned_rates_by_hand() {
    let trace = Trace::from_opportunities(vec![0, 1, 10, 11, 25]).expect("valid");
    let rates: Vec<_> =
        trace.binned_rates(bin(10)).iter().map(|r| (r.time_s, r.mbit_per_s)).collect();
    assert_eq!(rates, [(0.0, 3.6096), (0.01, 1.2032), (0.02, 2.4064)]);
    let mut text = Vec::new();
    trace.write_rates(bin(10), &mut text).expect("memory");
    assert_eq!(text, b"time_s,mbit_per_s\n0,3.6096\n0.01,1.2032\n0.02,2.4064\n");
    assert_eq!(trace.binned_rates(bin(u32::MAX)).len(), 1);
}

#[test]
fn a_trace_survives_the_way_to_rates_and_back() {
    let trace = Preset::Lte.params(60_000, 1).generate().expect("in range");
    for bin_ms in [1, 10, 100, 1000, 7777] {
        let mut csv = Vec::new();
        trace.write_rates(bin(bin_ms), &mut csv).expect("memory");
        let steps = RateSteps::parse(&csv, "t", Some(60.0)).expect("own format");
        let back = steps.to_trace().expect("some");
        assert_eq!(back.mean_bps(), trace.mean_bps());
        // No opportunity leaves its interval, but for the rounding of rates to bit/s, which may delay one.
        for (a, b) in trace.binned_rates(bin(bin_ms)).iter().zip(back.binned_rates(bin(bin_ms))) {
            let one = UNIT / f64::from(bin_ms.min(60_000 - (a.time_s * 1000.0) as u32));
            assert!((a.mbit_per_s - b.mbit_per_s).abs() < 1.001 * one, "{a:?} {b:?}");
        }
    }
}

proptest! {
    #[test]
    fn the_mean_is_kept_within_one_opportunity(
        lines in prop::collection::vec((1u32..5000, 0u32..100_000), 1..50),
    ) {
        let (mut text, mut at) = (String::new(), 0);
        for (ms, kbps) in &lines {
            text += &format!("{},{}\n", f64::from(at) / 1e3, f64::from(*kbps) / 1e3);
            at += ms;
        }
        let duration_s = f64::from(at) / 1e3;
        let steps = RateSteps::parse(text.as_bytes(), "t", Some(duration_s)).expect("in range");
        let bits: u64 = lines.iter().map(|&(ms, kbps)| u64::from(ms) * u64::from(kbps)).sum();
        prop_assert!((steps.mean_bps() * duration_s - bits as f64).abs() < 1e-3);
        match steps.to_trace() {
            Err(_) => prop_assert!(bits < 12_032 / 2),
            Ok(trace) => {
                prop_assert_eq!(trace.period_ms(), at);
                let difference = (trace.mean_bps() - steps.mean_bps()) * duration_s;
                prop_assert!(difference.abs() <= 12_032.0 / 2.0 + 1e-3, "{} bits", difference);
                // At no time has the trace offered more than the steps, the one at the end apart.
                let (mut offered, mut step, mut start, mut filled) = (0u64, 0, 0u32, 0u64);
                let times = trace.opportunities_ms();
                for &ms in &times[..times.len() - 1] {
                    while start + lines[step].0 < ms {
                        filled += u64::from(lines[step].0) * u64::from(lines[step].1);
                        start += lines[step].0;
                        step += 1;
                    }
                    offered += 12_032;
                    let carried = filled + u64::from(ms - start) * u64::from(lines[step].1);
                    prop_assert!(offered <= carried);
                    // And not a ms later than it could have.
                    prop_assert!(carried < offered + 12_032 + u64::from(lines[step].1));
                }
            }
        }
    }

    #[test]
    fn no_text_panics(text in prop::collection::vec(any::<u8>(), 0..200)) {
        let _ = Trace::parse(&text, "t");
        let _ = RateSteps::parse(&text, "t", None).map(|steps| steps.to_trace());
    }

    #[test]
    fn no_text_of_the_right_letters_panics(
        text in "[0-9.,e\\-\n\r]{0,60}", duration_s in prop::option::of(any::<f64>()),
    ) {
        let _ = Trace::parse(text.as_bytes(), "t");
        let _ = RateSteps::parse(text.as_bytes(), "t", duration_s).map(|steps| steps.to_trace());
    }
}
