//! Controllers in this machine's TCP.

use std::cell::Cell;
use std::fmt::Display;
use std::net::IpAddr;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use paceline_cc::{Portable, event_log};
use paceline_kernel::{Cap, Error, Flow, FlowReplay, Loaded, Replayer, Request};
use paceline_lab::scenario::controller_choice;
use pyo3::prelude::*;
use serde_json::{Map, Value, json};

use crate::errors::{input_error, run_error};

fn raise(error: Error) -> PyErr {
    match error {
        Error::Input(_) => input_error(error),
        _ => run_error(error),
    }
}

/// Why this build, machine or user cannot load controllers; None if it can.
#[pyfunction]
pub fn kernel_missing() -> Option<String> {
    paceline_kernel::check().err().map(|error| error.to_string())
}

/// The names of the algorithms that can be loaded.
#[pyfunction]
pub fn kernel_algorithms() -> Vec<&'static str> {
    paceline_kernel::algorithms().collect()
}

/// Loads a controller, written as in a scenario ("name:profile,key=value"), under a name for TCP_CONGESTION; with `record` what its
/// flows hear and answer can be recorded.
///
/// Returns JSON, as an entry of `kernel_list`.
#[pyfunction]
#[pyo3(signature = (controller, name, record = false))]
pub fn kernel_load(
    py: Python<'_>,
    controller: &str,
    name: Option<String>,
    record: bool,
) -> PyResult<String> {
    let choice = controller_choice(controller).map_err(input_error)?;
    let algorithm = Portable::find(choice.spec().name).ok_or_else(|| {
        let known = paceline_kernel::algorithms().collect::<Vec<_>>().join(", ");
        let name = choice.spec().name;
        input_error(format!("{name} is not written for the kernel (these are: {known})"))
    })?;
    let request = Request { algorithm, params: choice.params().clone(), name, record };
    let loaded = py.detach(|| paceline_kernel::load(&request)).map_err(raise)?;
    Ok(describe(&loaded)?.to_string())
}

/// Unloads a controller. Returns how many flows go on with it.
#[pyfunction]
pub fn kernel_unload(py: Python<'_>, name: &str) -> PyResult<usize> {
    py.detach(|| {
        let before = paceline_kernel::loaded()?;
        paceline_kernel::unload(name)?;
        let own = before.iter().find(|loaded| loaded.name == name && loaded.registered);
        // Without flows it has gone already.
        Ok(own
            .and_then(|loaded| paceline_kernel::flows(loaded).ok())
            .map_or(0, |flows| flows.len()))
    })
    .map_err(raise)
}

/// What is loaded, as a JSON list: `name`, `algorithm`, `registered`, `records`, `flows` (how many), `caps`, `programs`.
#[pyfunction]
pub fn kernel_list() -> PyResult<String> {
    let loaded = paceline_kernel::loaded().map_err(raise)?;
    Ok(Value::Array(loaded.iter().map(describe).collect::<PyResult<_>>()?).to_string())
}

/// Caps flows to a destination, at `bytes_per_s`; None removes the cap. Of the controller called `name`, or of all.
#[pyfunction]
pub fn kernel_cap(
    destination: &str,
    port: Option<u16>,
    bytes_per_s: Option<u64>,
    name: Option<&str>,
) -> PyResult<()> {
    let destination: IpAddr = destination
        .parse()
        .map_err(|_| input_error(format!("--dst {destination}: expected an IP address")))?;
    let cap = Cap { destination, port, bytes_per_s: bytes_per_s.unwrap_or(u64::MAX) };
    paceline_kernel::set_cap(name, &cap).map_err(raise)
}

/// The live flows of every loaded controller, as a JSON list.
#[pyfunction]
pub fn kernel_flows() -> PyResult<String> {
    let mut all = Vec::new();
    for loaded in paceline_kernel::loaded().map_err(raise)? {
        // One that has gone meanwhile has no flows.
        let flows = paceline_kernel::flows(&loaded).unwrap_or_default();
        all.extend(flows.iter().map(|flow| describe_flow(&loaded, flow)));
    }
    Ok(Value::Array(all).to_string())
}

/// Records what the controllers that were loaded to record do, all or the one called `name`, into the file `out`: for `duration_s`, or
/// until Ctrl-C.
///
/// Returns JSON: `records`, `bytes`, `lost`. To be called from the main thread.
#[pyfunction]
pub fn kernel_record(
    py: Python<'_>,
    name: Option<&str>,
    out: PathBuf,
    duration_s: Option<f64>,
) -> PyResult<String> {
    let duration = duration_s.map(|s| Duration::try_from_secs_f64(s).unwrap_or(Duration::MAX));
    let recorded = py.detach(|| {
        // The interpreter lock is taken ten times a second.
        let looked = Cell::new(Instant::now());
        let stop = || {
            if looked.get().elapsed() < Duration::from_millis(100) {
                return false;
            }
            looked.set(Instant::now());
            Python::attach(|py| py.check_signals().is_err())
        };
        paceline_kernel::record(name, &out, duration, &stop)
    });
    let recorded = recorded.map_err(raise)?;
    Ok(json!({ "records": recorded.records, "bytes": recorded.bytes, "lost": recorded.lost })
        .to_string())
}

/// Replays the recording `log`, with `bpf` through the BPF build too, where there can be one.
///
/// Returns JSON: `equal`, `bpf_skipped`, `lost_records`, `flows`.
#[pyfunction]
pub fn kernel_replay(py: Python<'_>, log: PathBuf, bpf: bool) -> PyResult<String> {
    py.detach(|| {
        let wrong = |error: &dyn Display| input_error(format!("{}: {error}", log.display()));
        let bytes = std::fs::read(&log).map_err(|error| wrong(&error))?;
        let parsed = event_log::parse(&bytes).map_err(|error| wrong(&error))?;
        let replayed = Replayer::new(bpf).replay(&parsed).map_err(raise)?;
        Ok(json!({
            "equal": replayed.equal(),
            "bpf_skipped": replayed.bpf_skipped,
            "lost_records": replayed.lost,
            "flows": replayed.flows.iter().map(describe_replay).collect::<Vec<_>>(),
        })
        .to_string())
    })
}

fn describe_replay(replay: &FlowReplay) -> Value {
    let start = replay.start.as_ref();
    json!({
        "flow": format!("{:016x}", replay.flow),
        "algorithm": start.map(|start| start.algorithm.spec().name),
        "local": start.map(|start| start.local.to_string()),
        "remote": start.map(|start| start.remote.to_string()),
        "events": replay.events,
        "heard": replay.heard,
        "ce_packets": replay.ce_packets,
        "answers": replay.answers,
        "missing_records": replay.missing,
        "records_after_gap": replay.after_gap,
        "difference": replay.difference.as_ref().map(|difference| {
            let start_ns = start.map_or(0, |start| start.path.now_ns);
            let values: Map<_, _> = difference.values.iter().map(|(who, value)| ((*who).to_owned(), json!(value))).collect();
            json!({
                "event": difference.event,
                "index": difference.index,
                "time_s": difference.now_ns.saturating_sub(start_ns) as f64 / 1e9,
                "byte": difference.position,
                "what": difference.what,
                "values": values,
            })
        }),
    })
}

fn describe(loaded: &Loaded) -> PyResult<Value> {
    let flows = paceline_kernel::flows(loaded).map_err(raise)?;
    let caps = paceline_kernel::caps(loaded).map_err(raise)?;
    Ok(json!({
        "name": loaded.name,
        "algorithm": loaded.algorithm.spec().name,
        "registered": loaded.registered,
        "held": loaded.held,
        "records": loaded.records(),
        "flows": flows.len(),
        "caps": caps.iter().map(|cap| json!({
            "destination": cap.destination.to_string(), "port": cap.port, "bps": cap.bytes_per_s * 8,
        })).collect::<Vec<_>>(),
        "programs": loaded.programs.iter().map(|program| json!({
            "name": program.name, "verified_instructions": program.verified_instructions,
        })).collect::<Vec<_>>(),
    }))
}

fn describe_flow(loaded: &Loaded, flow: &Flow) -> Value {
    let ms = |ns: u64| (ns > 0).then_some(ns as f64 / 1e6);
    let fields = loaded.algorithm.spec().fields.iter().zip(&flow.observed);
    // JSON has no NaN: null.
    let observed: Map<_, _> =
        fields.map(|(field, value)| (field.name.to_owned(), json!(value))).collect();
    json!({
        "controller": loaded.name,
        "local": flow.local.to_string(),
        "remote": flow.remote.to_string(),
        "cwnd_bytes": flow.cwnd_bytes,
        "in_flight_bytes": flow.in_flight_bytes,
        "pacing_bps": flow.pacing_bytes_per_s.map(|rate| rate * 8),
        "cap_bps": flow.cap_bytes_per_s.map(|rate| rate * 8),
        "delivered_bytes": flow.delivered_bytes,
        "packet_bytes": flow.packet_bytes,
        "payload_bytes": flow.payload_bytes,
        "srtt_ms": ms(flow.srtt_ns),
        "min_rtt_ms": ms(flow.min_rtt_ns),
        "lost_packets": flow.lost_packets,
        "timeouts": flow.timeouts,
        "started_ns": flow.started_ns,
        "acked_ns": flow.acked_ns,
        "observed": observed,
    })
}
