//! From a scenario to a record: the one place where the extension meets the scenario, the engine and the record.
//!
//! The interpreter lock is released for the whole run. Ctrl-C is looked for ten times a second and ends the call at once;
//! since a record is renamed into place only when complete, nothing half-done is left.

use std::ops::ControlFlow;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::Duration;

use paceline_cc::{Portable, Spec, registry};
use paceline_kernel::Error as KernelError;
use paceline_lab::events::Events;
use paceline_lab::record::qlog::{self, Draft, Options};
use paceline_lab::record::{self, RecordError, Summary};
use paceline_lab::scenario::{self, Scenario};
use paceline_lab::vm::{self, VmError};
use paceline_lab::world::{self, Run, WorldError};
use paceline_live::LiveError;
use paceline_net::{PS_PER_MS, PS_PER_S, Picos};
use paceline_sim::FlowPlan;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use serde_json::json;

use crate::errors::{input_error, run_error};
use crate::py_controller::{Fault, PyControllerClass};

/// Runs a scenario and writes its record.
///
/// Returns JSON: `{"record": directory or null, "result": {…}}`, the result as `paceline run --json` prints it. See
/// `_native.pyi` for the arguments.
#[pyfunction]
#[pyo3(signature = (scenario_text, scenario_path, overrides, controller, seed, out, command, python_controllers, progress=None, world="sim", realtime=false, guest=None, events=None))]
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
    progress: Option<Bound<'_, PyAny>>,
    world: &str,
    realtime: bool,
    guest: Option<String>,
    events: Option<String>,
) -> PyResult<String> {
    let world = World::named(world, realtime, guest)?;
    let fault = Fault::default();
    let mut classes = Vec::new();
    for (name, class) in python_controllers.iter().flatten() {
        classes.push((name.extract::<String>()?, PyControllerClass::new(&class)?));
    }
    let request = Request {
        scenario_text,
        scenario_path,
        overrides,
        controller,
        seed,
        out,
        command,
        classes,
        world,
        events,
    };
    let reached = Reached::default();
    let tell = || match &progress {
        Some(progress) => progress.call1((reached.seconds(),)).map(drop),
        None => Ok(()),
    };
    let answer = interruptible(py, &fault, tell, {
        let (fault, reached) = (fault.clone(), reached.clone());
        move || {
            if request.classes.is_empty() {
                return request.run(&fault, &reached);
            }
            // One interpreter state for the whole run: making a new one in every callback takes over ten times as long.
            Python::attach(|py| py.detach(|| request.run(&fault, &reached)))
        }
    })?;
    // What a controller raised explains whatever else went wrong.
    match fault.take() {
        Some(error) => Err(error),
        None => answer,
    }
}

/// What world `vm` lacks here, or None. The kernel may be fetched for the answer.
#[pyfunction]
pub fn vm_missing(py: Python<'_>) -> Option<String> {
    py.detach(vm::missing)
}

/// The release of the kernel that guests boot here, or None if it would be fetched first.
#[pyfunction]
pub fn vm_kernel() -> PyResult<Option<String>> {
    vm::kernel_release().map_err(run_error)
}

/// The resolved scenario as JSON, without running it: links, flows, durations, defaults filled in.
#[pyfunction]
#[pyo3(signature = (text, path, overrides))]
pub fn check_scenario(text: &str, path: Option<&str>, overrides: Vec<String>) -> PyResult<String> {
    let scenario = parse(text, path, &overrides, &[])?;
    Ok(describe(&scenario).to_string())
}

/// The JSON Schema of scenario files.
#[pyfunction]
pub fn scenario_schema() -> String {
    scenario::schema().to_string()
}

/// Writes one flow of a record as qlog, for qvis. `draft` names the dialect: `current` or `02`.
#[pyfunction]
pub fn export_qlog(record_dir: &str, flow: &str, out: &str, draft: &str) -> PyResult<()> {
    let draft = match draft {
        "current" => Draft::Current,
        "02" => Draft::Draft02,
        other => return Err(input_error(format!("draft {other}: allowed: current, 02"))),
    };
    let options = Options { draft, ..Options::default() };
    let mut text = Vec::new();
    qlog::export(Path::new(record_dir), flow, &mut text, options).map_err(record_error)?;
    std::fs::write(out, text).map_err(|error| input_error(format!("{out}: {error}")))
}

/// How far a run has come; shared between the thread that runs and the one that waits.
#[derive(Clone, Default)]
struct Reached(Arc<AtomicU64>);

impl Reached {
    fn set(&self, now: Picos) {
        self.0.store(now, Ordering::Relaxed);
    }

    /// Simulated time, s.
    fn seconds(&self) -> f64 {
        self.0.load(Ordering::Relaxed) as f64 / PS_PER_S as f64
    }
}

/// Runs `work` on its own thread without the interpreter lock, while this one watches for Ctrl-C and calls `tell` ten times a
/// second.
///
/// On Ctrl-C `fault` is set, which silences every Python controller of the run, and `KeyboardInterrupt` is raised here; the
/// thread is left to end by itself.
pub fn interruptible<T: Send + 'static>(
    py: Python<'_>,
    fault: &Fault,
    tell: impl Fn() -> PyResult<()>,
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
                if let Err(interrupt) = py.check_signals().and_then(|()| tell()) {
                    fault.set(interrupt.clone_ref(py));
                    return Err(interrupt);
                }
            }
        }
    }
}

/// The arguments of [`run`].
struct Request {
    scenario_text: String,
    scenario_path: Option<String>,
    overrides: Vec<String>,
    controller: Option<String>,
    seed: Option<u64>,
    out: Option<String>,
    command: Vec<String>,
    /// A flow whose controller has this name gets an instance of the class.
    classes: Vec<(String, PyControllerClass)>,
    world: World,
    /// File for what the controllers hear and answer.
    events: Option<String>,
}

/// What carries the packets.
enum World {
    Sim,
    Live(paceline_live::Options),
    Vm(vm::Options),
}

impl World {
    fn named(name: &str, realtime: bool, guest: Option<String>) -> PyResult<Self> {
        match name {
            "sim" | "vm" if realtime => {
                Err(input_error("realtime: is for runs in real time; allowed with world live"))
            }
            "sim" => Ok(Self::Sim),
            "live" => Ok(Self::Live(paceline_live::Options { realtime })),
            "vm" => {
                let guest = guest.ok_or_else(|| {
                    run_error("world vm needs the program paceline-guest, which is not part of this build (make build)")
                })?;
                Ok(Self::Vm(vm::Options { guest: guest.into() }))
            }
            other => Err(input_error(format!("world {other}: allowed: sim, live, vm"))),
        }
    }

    /// A recording of what controllers hear in this world.
    fn events_of(&self, scenario: &Scenario) -> PyResult<Events> {
        let in_kernel = "controllers in a kernel are recorded by `paceline kernel`";
        let events = match self {
            Self::Sim => Events::of(scenario, false),
            Self::Live(_) => Events::of(scenario, true),
            Self::Vm(_) => {
                return Err(input_error(format!("events: not in world vm; {in_kernel}")));
            }
        };
        events.ok_or_else(|| {
            let known = registry::all().iter().map(|spec| spec.name);
            let known: Vec<&str> = known.filter(|name| Portable::find(name).is_some()).collect();
            input_error(format!(
                "events: no flow has a controller in integer C that runs here ({}); {in_kernel}",
                known.join(", ")
            ))
        })
    }
}

/// Bad input where another scenario would run, a failed run where this machine cannot.
fn world_error(error: WorldError) -> PyErr {
    match error {
        WorldError::Live(error) => live_error(error),
        WorldError::Kernel(KernelError::Unavailable(_) | KernelError::Kernel { .. })
        | WorldError::Vm(VmError::Unavailable(_) | VmError::Failed(_)) => run_error(error),
        _ => input_error(error),
    }
}

/// As [`world_error`].
pub fn live_error(error: LiveError) -> PyErr {
    match error {
        LiveError::Emulator(_) | LiveError::System { .. } => run_error(error),
        LiveError::Unsupported(_) | LiveError::Plan(_) => input_error(error),
    }
}

impl Request {
    /// Runs on a thread of its own, without the interpreter lock. After a fault no record is written.
    fn run(self, fault: &Fault, reached: &Reached) -> PyResult<String> {
        let guests: Vec<&'static Spec> =
            self.classes.iter().map(|(name, class)| class.guest(name)).collect();
        let path = self.scenario_path.as_deref();
        let mut scenario = parse(&self.scenario_text, path, &self.overrides, &guests)?;
        if let Some(name) = &self.controller {
            scenario = scenario.with_controller(name).map_err(input_error)?;
        }
        let mut events = match self.events {
            Some(file) => {
                check_writable(&file)?;
                Some((self.world.events_of(&scenario)?, file))
            }
            None => None,
        };
        let mut adapt = |flow: &mut FlowPlan| {
            if let Some((events, _)) = &mut events {
                events.record(flow);
            }
            if let Some((_, class)) = self.classes.iter().find(|c| c.0 == flow.controller_name) {
                flow.controller = Box::new(Python::attach(|py| class.factory(py, fault)));
            }
        };
        let mut watch = |now| {
            reached.set(now);
            if fault.raised() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        };
        let (seed, command) = (self.seed, self.command);
        let run = match self.world {
            World::Sim => world::simulate(&scenario, seed, command, &mut adapt, &mut watch),
            World::Live(options) => {
                world::carry_out(&scenario, seed, command, options, &mut adapt, &mut watch)
            }
            World::Vm(options) => world::virtualise(&scenario, seed, command, &options, &mut watch),
        };
        let Run { info, outcome, provenance } = match run {
            // What was raised is told by the caller.
            Err(WorldError::Interrupted) => return Ok(String::new()),
            Err(error) => return Err(world_error(error)),
            Ok(_) if fault.raised() => return Ok(String::new()),
            Ok(run) => run,
        };
        if let Some((events, file)) = events {
            std::fs::write(&file, events.finish())
                .map_err(|error| input_error(format!("events {file}: {error}")))?;
        }
        let written = match &self.out {
            Some(out) => {
                let dir = record::write(Path::new(out), &info, &outcome, &provenance);
                Some(dir.map_err(record_error)?.display().to_string())
            }
            None => None,
        };
        // Put together as text: a `Value` would sort the keys of the result.
        let result = Summary::new(&info, &outcome).to_json();
        Ok(format!(r#"{{"record":{},"result":{result}}}"#, json!(written)))
    }
}

/// Refuses a file that cannot be written before there is anything to lose.
fn check_writable(file: &str) -> PyResult<()> {
    let is_new = !Path::new(file).exists();
    std::fs::File::options()
        .append(true)
        .create(true)
        .open(file)
        .map_err(|error| input_error(format!("events {file}: {error}")))?;
    if is_new {
        let _ = std::fs::remove_file(file);
    }
    Ok(())
}

fn parse(
    text: &str,
    path: Option<&str>,
    overrides: &[String],
    guests: &[&'static Spec],
) -> PyResult<Scenario> {
    let base = path.and_then(|p| Path::new(p).parent()).unwrap_or(Path::new(""));
    let name = path.unwrap_or("scenario");
    Scenario::parse_with_guests(text, name, base, overrides, guests).map_err(input_error)
}

fn describe(scenario: &Scenario) -> serde_json::Value {
    let seconds = |ps: u64| ps as f64 / PS_PER_S as f64;
    let ms = |ps: u64| ps as f64 / PS_PER_MS as f64;
    let links = scenario.links().map(|link| {
        json!({
            "name": link.name,
            "recorded": link.recorded,
            "rate_bps": link.rate_bps,
            "delay_ms": ms(link.delay_ps),
            "base_rtt_ms": ms(link.base_rtt_ps),
        })
    });
    let flows = scenario.flows().iter().map(|flow| {
        json!({
            "name": flow.name,
            "controller": flow.controller.label(),
            "controller_params": record::controller_params(flow.controller.params()),
            "stack": world::stack_name(flow.stack),
            "start_s": seconds(flow.start_ps),
            "base_rtt_ms": ms(flow.path.base_rtt_ps),
        })
    });
    json!({
        "title": scenario.title(),
        "seed": scenario.seed(),
        "duration_s": seconds(scenario.duration_ps()),
        "warmup_s": seconds(scenario.warmup_ps()),
        "sample_s": seconds(scenario.sample_ps()),
        "links": links.collect::<Vec<_>>(),
        "flows": flows.collect::<Vec<_>>(),
    })
}

/// Bad input where the user can mend it by asking for something else, a failed run otherwise.
pub fn record_error(error: RecordError) -> PyErr {
    match error {
        RecordError::Io { action: "write the qlog of", .. } | RecordError::Table { .. } => {
            run_error(error)
        }
        _ => input_error(error),
    }
}
