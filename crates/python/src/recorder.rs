//! Both ends of a measurement of a live link.

use std::net::{SocketAddr, ToSocketAddrs};
use std::time::Duration;

use paceline_emulator::recorder::{Plan, Recorded, RecorderError, Server, Way, record};
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

/// Lets clients measure the link to this machine, at `host` and `port`, until Ctrl-C.
///
/// `told` is called with a line of text when something happens. To be called from the main thread.
#[pyfunction]
pub fn trace_serve(py: Python<'_>, host: &str, port: u16, told: Py<PyAny>) -> PyResult<()> {
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
                    let (way, seconds) = (plan.way.name(), plan.duration.as_secs_f64());
                    tell(format!("{client}: {way} measured for {seconds} s"))?;
                }
                Err(error) => tell(format!("{client}: {error}"))?,
            }
        }
    })
}

/// Measures the link to the server at `host` and `port`, its uplink or else its downlink, and writes the trace to `out`.
///
/// `times_s` are the length of the trace, the time before it, and the least and longest wait of packets. Returns JSON
/// `{"mean_mbps", "packets", "lost", "hardly_waited", "mean_wait_ms", "max_wait_ms"}`, or nothing after Ctrl-C. To be called from
/// the main thread.
#[pyfunction]
pub fn trace_record(
    py: Python<'_>,
    host: &str,
    port: u16,
    uplink: bool,
    out: &str,
    times_s: [f64; 4],
    packet_bytes: u16,
) -> PyResult<Option<String>> {
    let server = resolve(host, port)?;
    let time = |s: f64| Duration::try_from_secs_f64(s).unwrap_or(Duration::MAX);
    let [duration, warm_up, least_wait, most_wait] = times_s.map(time);
    let way = if uplink { Way::Uplink } else { Way::Downlink };
    let plan = Plan { way, duration, warm_up, packet_bytes, least_wait, most_wait };
    let recorded = match py.detach(|| record(server, &plan, &interrupted)) {
        Err(RecorderError::Interrupted) => return Ok(None),
        Err(error @ RecorderError::Refused(_)) => return Err(input_error(error)),
        recorded => recorded.map_err(run_error)?,
    };
    crate::trace::write(&recorded.trace, out)?;
    Ok(Some(describe(&recorded).to_string()))
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
