//! Link traces: statistics, the seeded generator, conversion between formats.

use pyo3::prelude::*;

use crate::errors::run_error;

// INTEGRATION: the bodies below wait for `paceline_net`'s traces.

/// Statistics of a trace file, as JSON.
#[pyfunction]
pub fn trace_info(path: &str) -> PyResult<String> {
    let _ = path;
    Err(run_error("not built yet"))
}

/// Writes a synthetic trace to `out`: `preset` names the kind of link, `seed` and `duration_s` pick it, `mean_bps` scales it.
#[pyfunction]
#[pyo3(signature = (preset, seed, duration_s, mean_bps, out))]
pub fn trace_synth(
    preset: &str,
    seed: u64,
    duration_s: f64,
    mean_bps: Option<f64>,
    out: &str,
) -> PyResult<()> {
    let _ = (preset, seed, duration_s, mean_bps, out);
    Err(run_error("not built yet"))
}

/// Converts `src` to `dst`; a format of `None` is told by the suffix. `bin_ms` is the bin of formats that hold rates.
#[pyfunction]
#[pyo3(signature = (src, dst, from_format, to_format, bin_ms))]
pub fn trace_convert(
    src: &str,
    dst: &str,
    from_format: Option<&str>,
    to_format: Option<&str>,
    bin_ms: f64,
) -> PyResult<()> {
    let _ = (src, dst, from_format, to_format, bin_ms);
    Err(run_error("not built yet"))
}
