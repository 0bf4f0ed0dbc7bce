//! From a scenario to a record: the one place where the extension meets the scenario, the engine and the record.
//!
//! The interpreter lock is released for the whole run. Ctrl-C is looked for ten times a second and ends the call at once;
//! since a record is renamed into place only when complete, nothing half-done is left.

use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::Duration;

use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::errors::run_error;
use crate::py_controller::{Fault, PyControllerClass};

/// Runs a scenario and writes its record.
///
/// Returns JSON: `{"record": directory or null, "result": {…}}`, the result as `paceline run --json` prints it. See
/// `_native.pyi` for the arguments.
#[pyfunction]
#[pyo3(signature = (scenario_text, scenario_path, overrides, controller, seed, out, command, python_controllers))]
#[expect(clippy::too_many_arguments, reason = "flat on purpose: Python passes them by keyword")]
pub fn run(
    py: Python<'_>,
    scenario_text: String,
    scenario_path: Option<String>,
    overrides: Vec<String>,
    controller: Option<String>,
    seed: Option<u64>,
    out: Option<String>,
    command: Vec<String>,
    python_controllers: Option<Bound<'_, PyDict>>,
) -> PyResult<String> {
    let fault = Fault::default();
    let mut classes = Vec::new();
    for (name, class) in python_controllers.iter().flatten() {
        classes.push((name.extract::<String>()?, PyControllerClass::new(&class)?));
    }
    let request = seam::Request {
        scenario_text,
        scenario_path,
        overrides,
        controller,
        seed,
        out,
        command,
        classes,
    };
    let answer = interruptible(py, &fault, {
        let fault = fault.clone();
        move || {
            if request.classes.is_empty() {
                return seam::run(request, &fault);
            }
            // One interpreter state for the whole run: making a new one in every callback takes over ten times as long.
            Python::attach(|py| py.detach(|| seam::run(request, &fault)))
        }
    })?;
    // What a controller raised explains whatever else went wrong.
    match fault.take() {
        Some(error) => Err(error),
        None => answer,
    }
}

/// The resolved scenario as JSON, without running it: links, flows, durations, defaults filled in.
#[pyfunction]
#[pyo3(signature = (text, path, overrides))]
pub fn check_scenario(text: &str, path: Option<&str>, overrides: Vec<String>) -> PyResult<String> {
    seam::check_scenario(text, path, &overrides)
}

/// The JSON Schema of scenario files.
#[pyfunction]
pub fn scenario_schema() -> PyResult<String> {
    seam::scenario_schema()
}

/// Writes one flow of a record as qlog, for qvis. `draft` is `current` or `02`.
#[pyfunction]
pub fn export_qlog(record_dir: &str, flow: &str, out: &str, draft: &str) -> PyResult<()> {
    seam::export_qlog(record_dir, flow, out, draft)
}

/// Runs `work` on its own thread without the interpreter lock, while this one watches for Ctrl-C.
///
/// On Ctrl-C `fault` is set, which silences every Python controller of the run, and `KeyboardInterrupt` is raised here; the
/// thread is left to end by itself.
fn interruptible<T: Send + 'static>(
    py: Python<'_>,
    fault: &Fault,
    work: impl FnOnce() -> T + Send + 'static,
) -> PyResult<T> {
    let (done, mut wait) = mpsc::channel();
    std::thread::Builder::new()
        .name("paceline-run".into())
        .spawn(move || {
            // Nobody listens any more after Ctrl-C.
            let _ = done.send(work());
        })
        .map_err(|error| run_error(format!("cannot start a thread for the run: {error}")))?;
    loop {
        let wait = &mut wait;
        match py.detach(move || wait.recv_timeout(Duration::from_millis(100))) {
            Ok(answer) => return Ok(answer),
            Err(RecvTimeoutError::Disconnected) => {
                return Err(run_error(
                    "the run ended without an answer; this is a bug in Paceline",
                ));
            }
            Err(RecvTimeoutError::Timeout) => {
                if let Err(interrupt) = py.check_signals() {
                    fault.set(interrupt.clone_ref(py));
                    return Err(interrupt);
                }
            }
        }
    }
}

/// ======================================================================================================================
/// INTEGRATION: the bodies below wait for `paceline_lab`. Nothing else in this crate does (but `trace.rs`, same mark).
/// ======================================================================================================================
mod seam {
    use pyo3::prelude::*;

    use crate::errors::run_error;
    use crate::py_controller::{Fault, PyControllerClass};

    /// The arguments of [`super::run`].
    #[expect(dead_code, reason = "read at integration")]
    pub struct Request {
        pub scenario_text: String,
        pub scenario_path: Option<String>,
        pub overrides: Vec<String>,
        pub controller: Option<String>,
        pub seed: Option<u64>,
        pub out: Option<String>,
        pub command: Vec<String>,
        /// A flow whose controller has this name gets an instance of the class.
        pub classes: Vec<(String, PyControllerClass)>,
    }

    /// Runs on a thread of its own, without the interpreter lock; `Python::attach` takes it for `classes[..].1.factory`.
    /// When `fault.raised()` after the simulation, no record is written: what follows would be discarded anyway.
    pub fn run(_request: Request, _fault: &Fault) -> PyResult<String> {
        Err(run_error("not built yet"))
    }

    pub fn check_scenario(_text: &str, _path: Option<&str>, _set: &[String]) -> PyResult<String> {
        Err(run_error("not built yet"))
    }

    pub fn scenario_schema() -> PyResult<String> {
        Err(run_error("not built yet"))
    }

    pub fn export_qlog(_record: &str, _flow: &str, _out: &str, _draft: &str) -> PyResult<()> {
        Err(run_error("not built yet"))
    }
}
