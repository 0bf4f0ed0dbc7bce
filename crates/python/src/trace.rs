//! Link traces: statistics, the seeded generator, conversion between formats.

use std::fs::{self, File};
use std::io::{BufRead, BufReader};
use std::num::NonZeroU32;

use paceline_net::Trace;
use paceline_net::log::LogStats;
use paceline_net::trace::convert::RateSteps;
use paceline_net::trace::synth::Preset;
use pyo3::prelude::*;
use serde_json::{Value, json};

use crate::errors::{input_error, run_error};

/// Statistics of a trace file, or of the log of a link, as JSON.
#[pyfunction]
pub fn trace_info(path: &str) -> PyResult<String> {
    if let Some(log) = open_log(path) {
        return log_info(log, path);
    }
    let stats = Trace::load(path).map_err(input_error)?.stats();
    let capacity = stats.capacity_1s_mbps;
    let entries = [
        ("opportunities", json!(stats.opportunities)),
        ("first_ms", json!(stats.first_ms)),
        ("duration_s", json!(stats.duration_s)),
        ("mean_mbps", json!(stats.mean_mbps)),
        ("capacity_1s_p5_mbps", json!(capacity.map(|c| c.p5))),
        ("capacity_1s_p50_mbps", json!(capacity.map(|c| c.p50))),
        ("capacity_1s_p95_mbps", json!(capacity.map(|c| c.p95))),
        ("longest_gap_ms", json!(stats.longest_gap_ms)),
        ("most_in_one_ms", json!(stats.most_in_one_ms)),
    ];
    Ok(object(&entries))
}

/// A JSON object with its keys in this order; a `Value` would sort them.
fn object(entries: &[(&str, Value)]) -> String {
    let entries = entries.iter().map(|(key, value)| format!("\"{key}\":{value}"));
    format!("{{{}}}", entries.collect::<Vec<_>>().join(","))
}

/// The file at `path` if it is the log of a link: they begin with a comment, which traces do not have.
fn open_log(path: &str) -> Option<BufReader<File>> {
    let mut file = BufReader::new(File::open(path).ok()?);
    (file.fill_buf().ok()?.first() == Some(&b'#')).then_some(file)
}

fn log_info(log: impl BufRead, path: &str) -> PyResult<String> {
    let stats = LogStats::read(log, path).map_err(input_error)?;
    Ok(object(&[
        ("duration_s", json!(stats.duration_s)),
        ("arrived_packets", json!(stats.arrived_packets)),
        ("delivered_packets", json!(stats.delivered_packets)),
        ("dropped_packets", json!(stats.dropped_packets)),
        ("capacity_bps", json!(stats.capacity_bps)),
        ("throughput_bps", json!(stats.throughput_bps)),
        ("utilization", json!(stats.utilization())),
        ("queue_p95_ms", json!(stats.queue_p95_ms)),
        ("signal_delay_p95_ms", json!(stats.signal_delay_p95_ms)),
        ("power_score", json!(stats.power_score())),
    ]))
}

/// Writes a synthetic trace to `out`: `preset` names the kind of link, `seed` and `duration_s` pick it, `mean_bps` scales it.
/// The preset `constant` is a link of exactly `mean_bps`, whose period is its own.
#[pyfunction]
#[pyo3(signature = (preset, seed, duration_s, mean_bps, out))]
pub fn trace_synth(
    preset: &str,
    seed: u64,
    duration_s: f64,
    mean_bps: Option<f64>,
    out: &str,
) -> PyResult<()> {
    let trace = if preset == "constant" {
        let mean_bps = mean_bps.ok_or_else(|| input_error("a constant trace needs a mean rate"))?;
        Trace::constant(mean_bps.round() as u64).map_err(input_error)?
    } else {
        let names = || Preset::ALL.map(Preset::name).join(", ");
        let preset = Preset::from_name(preset).ok_or_else(|| {
            input_error(format!("no preset called \"{preset}\"; allowed: {}, constant", names()))
        })?;
        // The cast saturates; the generator refuses what is out of its range.
        let params = preset.params((duration_s * 1e3).round() as u32, seed);
        let params = mean_bps.map_or(params, |bps| params.with_mean_bps(bps));
        params.generate().map_err(input_error)?
    };
    write(&trace, out)
}

/// How a trace is written down.
#[derive(Clone, Copy, PartialEq)]
enum Format {
    /// One line per opportunity, ms (mahimahi).
    Opportunities,
    /// `time_s,mbit_per_s`.
    Rates,
}

impl Format {
    fn of(named: Option<&str>, path: &str) -> PyResult<Self> {
        match named {
            Some("mahimahi") => Ok(Self::Opportunities),
            Some("csv") => Ok(Self::Rates),
            Some(other) => Err(input_error(format!("format {other}: allowed: mahimahi, csv"))),
            None if path.ends_with(".csv") => Ok(Self::Rates),
            None => Ok(Self::Opportunities),
        }
    }
}

/// Converts `src` to `dst`; a format of `None` is told by the suffix (`.csv` holds rates, anything else opportunities).
/// `bin_ms` is the bin of formats that hold rates. Returns `{"from_mbps", "to_mbps"}`: the mean rate before and after.
#[pyfunction]
#[pyo3(signature = (src, dst, from_format, to_format, bin_ms))]
pub fn trace_convert(
    src: &str,
    dst: &str,
    from_format: Option<&str>,
    to_format: Option<&str>,
    bin_ms: f64,
) -> PyResult<String> {
    let (from, to) = (Format::of(from_format, src)?, Format::of(to_format, dst)?);
    let (trace, from_bps) = match from {
        Format::Opportunities => {
            let trace = Trace::load(src).map_err(input_error)?;
            let mean = trace.mean_bps();
            (trace, mean)
        }
        Format::Rates => {
            let text = fs::read(src).map_err(|e| input_error(format!("{src}: {e}")))?;
            let steps = RateSteps::parse(&text, src, None).map_err(input_error)?;
            (steps.to_trace().map_err(input_error)?, steps.mean_bps())
        }
    };
    match to {
        Format::Opportunities => write(&trace, dst)?,
        Format::Rates => {
            let bin = NonZeroU32::new(bin_ms.round() as u32).ok_or_else(|| {
                input_error(format!("a bin of {bin_ms} ms; allowed: 1 ms and more"))
            })?;
            let mut text = Vec::new();
            trace.write_rates(bin, &mut text).map_err(run_error)?;
            put(dst, &text)?;
        }
    }
    Ok(json!({ "from_mbps": from_bps / 1e6, "to_mbps": trace.mean_bps() / 1e6 }).to_string())
}

/// Writes `trace` to the file `out`.
pub fn write(trace: &Trace, out: &str) -> PyResult<()> {
    let mut text = Vec::new();
    trace.write(&mut text).map_err(run_error)?;
    put(out, &text)
}

fn put(path: &str, text: &[u8]) -> PyResult<()> {
    fs::write(path, text).map_err(|error| input_error(format!("{path}: {error}")))
}
