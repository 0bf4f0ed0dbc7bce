//! The contest's sender and receiver as programs of their own.

use std::net::{SocketAddrV4, ToSocketAddrs};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use paceline_lab::scenario::Scenario;
use paceline_live::contest;
use paceline_net::{PS_PER_S, Picos};
use pyo3::prelude::*;
use pyo3::types::PyType;
use serde_json::json;

use crate::errors::{input_error, run_error};
use crate::py_controller::{Fault, PyControllerClass};
use crate::run::{interruptible, live_error};

/// Sends datagrams under `controller` to a receiver on another machine, or on this one, for `duration_s`.
///
/// Returns JSON. See `_native.pyi`.
#[pyfunction]
pub fn contest_send(
    py: Python<'_>,
    host: &str,
    port: u16,
    controller: Bound<'_, PyAny>,
    duration_s: f64,
    seed: u64,
) -> PyResult<String> {
    let to = address(host, port)?;
    let class = match controller.cast::<PyType>() {
        Ok(_) => Some(PyControllerClass::new(&controller)?),
        Err(_) => None,
    };
    let name = match &class {
        Some(class) => class.name.clone(),
        None => controller.extract::<String>()?,
    };
    let guests: Vec<_> = class.iter().map(|class| class.guest(&name)).collect();
    // The one flow of a scenario without a link.
    let text = "duration = \"1 s\"\n[link]\nrate = \"unlimited\"\ndelay = \"1 s\"\n[[flows]]\ncontroller = \"window\"\n\
                stack = \"datagram\"\n";
    let scenario = Scenario::parse_with_guests(text, "", "".as_ref(), &[], &guests);
    let scenario = scenario.and_then(|scenario| scenario.with_controller(&name));
    let mut plan = scenario.and_then(|scenario| scenario.plan(None)).map_err(input_error)?;
    let Some(mut flow) = plan.flows.pop() else { return Err(run_error("no flow to send")) };
    let fault = Fault::default();
    if let Some(class) = &class {
        flow.controller = Box::new(class.factory(py, &fault));
    }
    let stop = Arc::new(AtomicBool::new(false));
    let duration = (duration_s * PS_PER_S as f64) as Picos;
    let work = {
        let stop = stop.clone();
        move || contest::send(flow, to, seed, duration, &stop)
    };
    let tell = || match fault.raised() {
        true => {
            stop.store(true, Ordering::Relaxed);
            Ok(())
        }
        false => Ok(()),
    };
    let sent = interruptible(py, &fault, tell, work);
    stop.store(true, Ordering::Relaxed);
    let sent = sent?;
    if let Some(error) = fault.take() {
        return Err(error);
    }
    let sent = sent.map_err(live_error)?;
    let rtt = |of: fn(&paceline_sim::Stats) -> f64| sent.rtt_ms.as_ref().map(of);
    let answer = json!({
        "duration_s": sent.duration_s,
        "sent_packets": sent.sent_packets,
        "acked_packets": sent.acked_packets,
        "missing_packets": sent.missing_packets,
        "timeouts": sent.timeouts,
        "rtt_ms": {
            "min": rtt(|s| s.min),
            "mean": rtt(|s| s.mean),
            "p50": rtt(|s| s.p50),
            "p95": rtt(|s| s.p95),
            "max": rtt(|s| s.max),
        },
    });
    Ok(answer.to_string())
}

/// Acknowledges what comes to a UDP port (0: a free one) until Ctrl-C, or for `duration_s`. `ready` is called with the port.
#[pyfunction]
pub fn contest_receive(
    py: Python<'_>,
    port: u16,
    duration_s: Option<f64>,
    ready: Py<PyAny>,
) -> PyResult<()> {
    let stop = Arc::new(AtomicBool::new(false));
    let fault = Fault::default();
    let began = std::time::Instant::now();
    let tell = || {
        let passed = began.elapsed();
        if duration_s.is_some_and(|limit| passed >= Duration::from_secs_f64(limit)) {
            stop.store(true, Ordering::Relaxed);
        }
        Ok(())
    };
    let received = interruptible(py, &fault, tell, {
        let (stop, fault) = (stop.clone(), fault.clone());
        let ready = move |port: u16| {
            Python::attach(|py| {
                if let Err(error) = ready.call1(py, (port,)) {
                    fault.set(error);
                }
            });
        };
        move || contest::receive(port, ready, &stop)
    });
    stop.store(true, Ordering::Relaxed);
    received?.map_err(live_error)?;
    fault.take().map_or(Ok(()), Err)
}

fn address(host: &str, port: u16) -> PyResult<SocketAddrV4> {
    let found = (host, port).to_socket_addrs();
    let found = found.map_err(|error| input_error(format!("{host}: {error}")))?;
    let v4 = found.filter_map(|address| match address {
        std::net::SocketAddr::V4(address) => Some(address),
        std::net::SocketAddr::V6(_) => None,
    });
    v4.into_iter().next().ok_or_else(|| input_error(format!("{host}: has no IPv4 address")))
}
