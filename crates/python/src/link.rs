//! A command behind an emulated link.

use std::ffi::OsString;

use paceline_emulator::{Counts, Direction, Emulation, Error, Lateness};
use paceline_lab::scenario::{EmulatedDirection, emulated_link};
use pyo3::prelude::*;
use serde_json::{Value, json};

use crate::errors::{input_error, run_error};

/// Runs `command` behind the link that `options` (flags without dashes, values) describe and waits for its end.
///
/// Returns JSON: `{"status": exit status, "uplink": {…}, "downlink": {…}}`, the packets of each direction. The interpreter lock
/// is released meanwhile; signals go to the command. To be called from the main thread.
#[pyfunction]
pub fn run_link(
    py: Python<'_>,
    options: Vec<(String, String)>,
    seed: u64,
    realtime: bool,
    command: Vec<OsString>,
) -> PyResult<String> {
    let [up, down] = emulated_link(&options, seed).map_err(input_error)?.map(direction);
    let emulation = Emulation { up, down, seed, realtime };
    let outcome = py.detach(|| paceline_emulator::run(emulation, &command));
    let outcome = outcome.map_err(|error| match error {
        Error::Command { .. } => input_error(error),
        _ => run_error(error),
    })?;
    let answer = json!({
        "status": outcome.status.code(),
        "uplink": describe(&outcome.up),
        "downlink": describe(&outcome.down),
    });
    Ok(answer.to_string())
}

fn direction(of: EmulatedDirection) -> Direction {
    Direction { spec: of.spec, overhead_bytes: of.overhead_bytes }
}

fn describe(counts: &Counts) -> Value {
    let late = |of: fn(&Lateness) -> Option<f64>| of(&counts.lateness);
    json!({
        "entered_packets": counts.entered_packets,
        "entered_bytes": counts.entered_bytes,
        "left_packets": counts.left_packets,
        "left_bytes": counts.left_bytes,
        "dropped_full": counts.dropped_full,
        "dropped_managed": counts.dropped_managed,
        "dropped_random": counts.dropped_random,
        "dropped_exhausted": counts.dropped_exhausted,
        "unwritable_packets": counts.unwritable_packets,
        "late_us": {
            "mean": late(Lateness::mean_us),
            "p99": late(|lateness| lateness.quantile_us(0.99)),
            "max": late(Lateness::max_us),
        },
    })
}
