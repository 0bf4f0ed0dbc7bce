//! Controllers in this machine's TCP.

use std::net::IpAddr;

use paceline_cc::Portable;
use paceline_kernel::{Cap, Error, Flow, Loaded, Request};
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

/// Loads a controller, written as in a scenario ("name:profile,key=value"), under a name for TCP_CONGESTION.
///
/// Returns JSON, as an entry of `kernel_list`.
#[pyfunction]
pub fn kernel_load(py: Python<'_>, controller: &str, name: Option<String>) -> PyResult<String> {
    let choice = controller_choice(controller).map_err(input_error)?;
    let algorithm = Portable::find(choice.spec().name).ok_or_else(|| {
        let known = paceline_kernel::algorithms().collect::<Vec<_>>().join(", ");
        let name = choice.spec().name;
        input_error(format!("{name} is not written for the kernel (these are: {known})"))
    })?;
    let request = Request { algorithm, params: choice.params().clone(), name };
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

/// What is loaded, as a JSON list: `name`, `algorithm`, `registered`, `flows` (how many), `caps`, `programs`.
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

fn describe(loaded: &Loaded) -> PyResult<Value> {
    let flows = paceline_kernel::flows(loaded).map_err(raise)?;
    let caps = paceline_kernel::caps(loaded).map_err(raise)?;
    Ok(json!({
        "name": loaded.name,
        "algorithm": loaded.algorithm.spec().name,
        "registered": loaded.registered,
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
