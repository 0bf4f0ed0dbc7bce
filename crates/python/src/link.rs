//! A command behind an emulated link.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::Duration;

use paceline_emulator::{
    Counts, Direction, Emulation, Error, Host, Lateness, LogFile, Reach, Status,
};
use paceline_lab::scenario::{EmulatedDirection, emulated_link};
use pyo3::prelude::*;
use serde_json::{Value, json};

use crate::errors::{input_error, run_error};

/// Runs `command`, on as many hosts as there are `access_delays_s`, behind the link that `options` (flags without dashes, values) describe and waits for its end.
///
/// `outside`: it reaches what this host reaches. `logs` are those of the uplink and of the downlink.
///
/// Returns JSON: `{"statuses": exit statuses, "uplink": {…}, "downlink": {…}, "log_failure"}`, the packets of each direction, and
/// why a log is not complete, or null. The interpreter lock is released meanwhile; signals go to the command. To be called from
/// the main thread.
#[pyfunction]
#[expect(clippy::too_many_arguments, reason = "Python has names for them")]
pub fn run_link(
    py: Python<'_>,
    options: Vec<(String, String)>,
    seed: u64,
    realtime: bool,
    outside: bool,
    access_delays_s: Vec<f64>,
    logs: (Option<PathBuf>, Option<PathBuf>),
    command: Vec<OsString>,
) -> PyResult<String> {
    let paths = [("uplink", logs.0), ("downlink", logs.1)];
    if let [(_, Some(up)), (_, Some(down))] = &paths
        && up == down
    {
        let down = down.display();
        return Err(input_error(format!(
            "--downlink-log {down}: is the log of the uplink as well"
        )));
    }
    let [up, down] = emulated_link(&options, seed).map_err(input_error)?;
    let command_line = command_line(&options, &command);
    let log_file = |(flag, path): (&str, Option<PathBuf>)| {
        let given = options.iter().find(|(name, _)| name == flag);
        let capacity = given.map_or("unlimited", |(_, value)| value).to_owned();
        path.map(|path| LogFile { path, capacity, command_line: command_line.clone() })
    };
    let flag =
        |path: &Path| if paths[0].1.as_deref() == Some(path) { "uplink" } else { "downlink" };
    let [up_log, down_log] = paths.clone().map(log_file);
    let (up, down) = (direction(up, up_log), direction(down, down_log));
    let reach = if outside { Reach::Outside } else { Reach::Host };
    let emulation = Emulation { up, down, seed, realtime };
    let host = |delay_s: &f64| {
        let access_delay = Duration::try_from_secs_f64(*delay_s).map_err(input_error)?;
        Ok(Host { access_delay, command: command.clone() })
    };
    let hosts: Vec<Host> = access_delays_s.iter().map(host).collect::<PyResult<_>>()?;
    let outcome = py.detach(|| paceline_emulator::run_hosts(emulation, reach, &hosts));
    let outcome = outcome.map_err(|error| match error {
        Error::Command { .. } => input_error(error),
        Error::Log { ref path, .. } => input_error(format!("--{}-log {error}", flag(path))),
        _ => run_error(error),
    })?;
    let answer = json!({
        "statuses": outcome.statuses.into_iter().map(Status::code).collect::<Vec<_>>(),
        "uplink": describe(&outcome.up),
        "downlink": describe(&outcome.down),
        "log_failure": outcome.log_failure,
    });
    Ok(answer.to_string())
}

fn direction(of: EmulatedDirection, log: Option<LogFile>) -> Direction {
    Direction { spec: of.spec, overhead_bytes: of.overhead_bytes, log, delay_before_ps: 0 }
}

/// What a person would have typed, near enough for a comment.
fn command_line(options: &[(String, String)], command: &[OsString]) -> String {
    let quoted = |word: &str| match word.contains(char::is_whitespace) {
        true => format!("\"{word}\""),
        false => word.to_owned(),
    };
    let options = options.iter().flat_map(|(flag, value)| [format!("--{flag}"), quoted(value)]);
    let command = command.iter().map(|word| quoted(&word.to_string_lossy()));
    let words = ["paceline".to_owned(), "link".to_owned()].into_iter();
    words.chain(options).chain(["--".to_owned()]).chain(command).collect::<Vec<_>>().join(" ")
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
