//! A command behind an emulated link.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{self, Receiver};
use std::time::{Duration, SystemTime};

use paceline_emulator::{
    Counts, Direction, Emulation, Error, Host, Lateness, LogFile, Observer, Reach, Status,
};
use paceline_lab::record;
use paceline_lab::scenario::{EmulatedDirection, emulated_link};
use paceline_lab::world::{self, Run};
use paceline_live::Health;
use paceline_live::traffic::{self, Traffic};
use pyo3::prelude::*;
use serde_json::{Value, json};

use crate::errors::{input_error, run_error};
use crate::run::record_error;

/// Largest IP packet, bytes.
const MTU: u16 = 1500;

/// Runs `command`, on as many hosts as there are `access_delays_s`, behind the link that `options` (flags without dashes, values) describe and waits for its end.
///
/// `outside`: it reaches what this host reaches. `logs` are those of the uplink and of the downlink.
///
/// `out` is where a record is written, whose `command_line` is what was `typed`.
///
/// Returns JSON: `{"record": directory or null, "statuses": exit statuses, "uplink": {…}, "downlink": {…}, "log_failure"}`, the packets of each direction, and
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
    out: Option<PathBuf>,
    command: Vec<OsString>,
    typed: Vec<String>,
) -> PyResult<String> {
    let started = SystemTime::now();
    if let Some(out) = &out {
        record::check_target(out).map_err(record_error)?;
    }
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
    let (observers, seen) = match out {
        Some(_) => watch([&emulation.up, &emulation.down]),
        None => ([None, None], None),
    };
    let data_bytes = emulation.up.overhead_bytes.max(emulation.down.overhead_bytes) as u16 + MTU;
    let outcome =
        py.detach(|| paceline_emulator::run_observed(emulation, reach, &hosts, observers));
    let outcome = outcome.map_err(|error| match error {
        Error::Command { .. } => input_error(error),
        Error::Log { ref path, .. } => input_error(format!("--{}-log {error}", flag(path))),
        _ => run_error(error),
    })?;
    let record = match (out, seen) {
        (Some(out), Some(seen)) => {
            let [up, down] = seen.map(|of| of.recv().map_err(|_| run_error(Error::Killed)));
            let seen = traffic::finish([up?, down?]);
            let health = Health {
                unseen_packets: 0,
                unwritable_packets: seen.unwritable_packets,
                late_us: later(&outcome.up.lateness, &outcome.down.lateness),
            };
            let title = command.iter().map(|word| word.to_string_lossy()).collect::<Vec<_>>();
            // As long as a scenario's title may be, and as plain.
            let title: String =
                title.join(" ").chars().filter(|c| !c.is_control()).take(200).collect();
            let text =
                format!("# No scenario: a program behind an emulated link.\n# {command_line}\n");
            let Run { info, outcome, provenance } =
                world::watched((title, text), seed, data_bytes, seen, &health, (typed, started));
            let dir = py.detach(|| record::write(&out, &info, &outcome, &provenance));
            Some(dir.map_err(record_error)?.display().to_string())
        }
        _ => None,
    };
    let answer = json!({
        "record": record,
        "statuses": outcome.statuses.into_iter().map(Status::code).collect::<Vec<_>>(),
        "uplink": describe(&outcome.up),
        "downlink": describe(&outcome.down),
        "log_failure": outcome.log_failure,
    });
    Ok(answer.to_string())
}

/// Observers of the two directions, and where they end up.
#[expect(clippy::type_complexity, reason = "two pairs of two")]
fn watch(
    directions: [&Direction; 2],
) -> ([Option<Box<dyn Observer>>; 2], Option<[Receiver<Traffic>; 2]>) {
    let [up, down] = directions.map(|direction| direction.spec.clone());
    let (to_up, up_ended) = mpsc::channel();
    let (to_down, down_ended) = mpsc::channel();
    let up: Box<dyn Observer> = Box::new(Traffic::new("uplink", up, to_up));
    let down: Box<dyn Observer> = Box::new(Traffic::new("downlink", down, to_down));
    ([Some(up), Some(down)], Some([up_ended, down_ended]))
}

/// Mean and 99th percentile of how late packets were, us, of the direction where they were later.
fn later(up: &Lateness, down: &Lateness) -> Option<[f64; 2]> {
    let of = |late: &Lateness| Some([late.mean_us()?, late.quantile_us(0.99)?]);
    [of(up), of(down)].into_iter().flatten().max_by(|a, b| a[1].total_cmp(&b[1]))
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
