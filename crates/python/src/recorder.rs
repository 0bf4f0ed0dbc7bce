//! Both ends of a measurement of a live link.

use std::net::{SocketAddr, ToSocketAddrs};
use std::time::Duration;

use paceline_emulator::recorder::{Plan, Recorded, RecorderError, Server, record};
use pyo3::prelude::*;
use serde_json::{Value, json};

use crate::errors::{input_error, run_error};

/// Ctrl-C, as Python sees it. The interpreter lock is taken for that, ten times a second.
fn interrupted() -> bool {
    Python::attach(|py| py.check_signals().is_err())
}

/// Where `host` and `port` are.
fn resolve(host: &str, port: u16) -> PyResult<SocketAddr> {
    let found = (host, port).to_socket_addrs().map(|mut all| all.next());
    match found {
        Ok(Some(address)) => Ok(address),
        Ok(None) => Err(input_error(format!("{host}: has no address"))),
        Err(error) => Err(input_error(format!("{host}: {error}"))),
    }
}

/// Lets clients measure the link to this machine, at `host` and `port`, until Ctrl-C or, if `once`, for one measurement.
///
/// `told` is called with a line of text when something happens. To be called from the main thread.
#[pyfunction]
pub fn trace_serve(
    py: Python<'_>,
    host: &str,
    port: u16,
    once: bool,
    told: Py<PyAny>,
) -> PyResult<()> {
    let address = resolve(host, port)?;
    let tell = |line: String| Python::attach(|py| told.call1(py, (line,)).map(drop));
    py.detach(|| {
        let mut server = Server::bind(address).map_err(run_error)?;
        let address = server.address().map_err(run_error)?;
        tell(format!("listening at {address}, TCP and UDP"))?;
        loop {
            let (client, outcome) = match server.serve(&interrupted) {
                Err(RecorderError::Interrupted) => return Ok(()),
                served => served.map_err(run_error)?,
            };
            let client = client.ip();
            match outcome {
                Ok(plan) => {
                    let ways: Vec<&str> = [("uplink", plan.uplink), ("downlink", plan.downlink)]
                        .into_iter()
                        .filter_map(|(name, measured)| measured.then_some(name))
                        .collect();
                    let seconds = plan.duration.as_secs_f64();
                    tell(format!("{client}: {} measured for {seconds} s", ways.join(" and ")))?;
                    if once {
                        return Ok(());
                    }
                }
                Err(error) => tell(format!("{client}: {error}"))?,
            }
        }
    })
}

/// Measures the link to the server at `host` and `port`, and writes the traces to `uplink` and `downlink`, as far as named.
///
/// `times_s` are the length of the traces, the time before them, and the least and longest wait of packets. Returns JSON, per
/// direction measured: `{"mean_mbps", "packets", "lost", "hardly_waited", "mean_wait_ms", "max_wait_ms"}`. To be called from the main
/// thread.
#[pyfunction]
pub fn trace_record(
    py: Python<'_>,
    host: &str,
    port: u16,
    uplink: Option<&str>,
    downlink: Option<&str>,
    times_s: [f64; 4],
    packet_bytes: u16,
) -> PyResult<Option<String>> {
    let server = resolve(host, port)?;
    let time = |s: f64| Duration::try_from_secs_f64(s).unwrap_or(Duration::MAX);
    let [duration, warm_up, least_wait, most_wait] = times_s.map(time);
    let (up, down) = (uplink.is_some(), downlink.is_some());
    let plan =
        Plan { uplink: up, downlink: down, duration, warm_up, packet_bytes, least_wait, most_wait };
    let recorded = py.detach(|| record(server, &plan, &interrupted));
    let recorded = match recorded {
        Err(RecorderError::Interrupted) => return Ok(None),
        Err(error @ RecorderError::Refused(_)) => return Err(input_error(error)),
        recorded => recorded.map_err(run_error)?,
    };
    let mut answer = serde_json::Map::new();
    let directions = [("uplink", uplink), ("downlink", downlink)];
    for ((name, path), recorded) in directions.into_iter().zip(recorded) {
        if let (Some(path), Some(recorded)) = (path, recorded) {
            crate::trace::write(&recorded.trace, path)?;
            answer.insert(name.into(), describe(&recorded));
        }
    }
    Ok(Some(Value::Object(answer).to_string()))
}

fn describe(recorded: &Recorded) -> Value {
    let quality = recorded.quality;
    json!({
        "mean_mbps": recorded.trace.mean_bps() / 1e6,
        "packets": quality.packets,
        "lost": quality.lost,
        "hardly_waited": quality.hardly_waited,
        "mean_wait_ms": quality.mean_wait_us as f64 / 1e3,
        "max_wait_ms": quality.max_wait_us as f64 / 1e3,
    })
}
