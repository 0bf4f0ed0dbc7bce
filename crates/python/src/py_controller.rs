//! Controllers written in Python, hosted like any other: [`PyController`] implements the contract of `paceline_cc` by
//! calling an instance of a subclass of `paceline.Controller`.
//!
//! A run holds no interpreter lock; each callback takes it, calls Python, copies the decision out and lets go. An
//! exception in a callback cannot travel through the engine: it is kept in the run's [`Fault`], the flow is stopped with
//! an empty window, and the run raises it at its end.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use paceline_cc::{
    Ack, Control, Controller, Family, Field, Loss, Needs, PathInfo, Resume, Sent, Spec, Timeout,
    Undo,
};
use pyo3::exceptions::{PyException, PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyType};

use crate::errors::{RunError, input_error};
use crate::events::{PyAck, PyLoss, PyPathInfo, PyResume, PySent, PyTimeout, PyUndo};

/// The native half of `paceline.Controller`: what the controller decides, checked as it is set.
#[pyclass(subclass, module = "paceline._native")]
pub struct ControllerCore {
    path: PathInfo,
    cwnd_bytes: f64,
    pacing_bps: Option<f64>,
    send_quantum_bytes: u64,
    next_timer_ns: Option<u64>,
    timeout_ns: Option<u64>,
}

impl ControllerCore {
    fn control(&self) -> Control {
        Control {
            cwnd_bytes: self.cwnd_bytes as u64,
            // A rate below 1 byte/s would round to "send nothing, ever".
            pacing_bytes_per_s: self
                .pacing_bps
                .map_or(Control::UNPACED, |bps| ((bps / 8.0) as u64).max(1)),
            send_quantum_bytes: self.send_quantum_bytes,
            next_timer_ns: self.next_timer_ns.unwrap_or(Control::NEVER),
            timeout_ns: self.timeout_ns.unwrap_or(0),
        }
    }
}

/// `value` if it is a positive finite number.
fn positive(name: &str, value: f64) -> PyResult<f64> {
    if value.is_finite() && value > 0.0 {
        return Ok(value);
    }
    Err(PyValueError::new_err(format!("{name} is {value}; allowed: finite numbers above 0")))
}

#[pymethods]
impl ControllerCore {
    #[new]
    fn new(path: &PyPathInfo) -> Self {
        let initial = f64::from(path.0.initial_window_packets) * f64::from(path.0.packet_bytes);
        Self {
            path: path.0,
            cwnd_bytes: initial,
            pacing_bps: None,
            send_quantum_bytes: 0,
            next_timer_ns: None,
            timeout_ns: None,
        }
    }

    /// What the host told about the path.
    #[getter]
    fn path(&self) -> PyPathInfo {
        PyPathInfo(self.path)
    }
    /// Size of a full data packet on the wire, bytes.
    #[getter]
    fn packet_bytes(&self) -> u32 {
        self.path.packet_bytes
    }
    /// Congestion window, bytes. Fractions count: the host rounds down.
    #[getter]
    fn cwnd_bytes(&self) -> f64 {
        self.cwnd_bytes
    }
    #[setter]
    fn set_cwnd_bytes(&mut self, value: f64) -> PyResult<()> {
        self.cwnd_bytes = positive("cwnd_bytes", value)?;
        Ok(())
    }
    /// Congestion window, packets of `packet_bytes`.
    #[getter]
    fn cwnd_packets(&self) -> f64 {
        self.cwnd_bytes / f64::from(self.path.packet_bytes)
    }
    #[setter]
    fn set_cwnd_packets(&mut self, value: f64) -> PyResult<()> {
        self.cwnd_bytes = positive("cwnd_packets", value)? * f64::from(self.path.packet_bytes);
        Ok(())
    }
    /// Pacing rate, bit/s; None leaves pacing to the window.
    #[getter]
    fn pacing_bps(&self) -> Option<f64> {
        self.pacing_bps
    }
    #[setter]
    fn set_pacing_bps(&mut self, value: Option<f64>) -> PyResult<()> {
        self.pacing_bps = value.map(|bps| positive("pacing_bps", bps)).transpose()?;
        Ok(())
    }
    /// Largest burst the pacer may send back to back, bytes; 0 = one packet.
    #[getter]
    fn send_quantum_bytes(&self) -> u64 {
        self.send_quantum_bytes
    }
    #[setter]
    fn set_send_quantum_bytes(&mut self, value: u64) {
        self.send_quantum_bytes = value;
    }
    /// Call `on_timer` at this time, ns from the start of the run; None = not at all. Cleared when it fires.
    #[getter]
    fn next_timer_ns(&self) -> Option<u64> {
        self.next_timer_ns
    }
    #[setter]
    fn set_next_timer_ns(&mut self, value: Option<u64>) {
        self.next_timer_ns = value;
    }
    /// Datagram hosts call `on_rto` after this long without an ACK, ns; None = the host's own rule.
    #[getter]
    fn timeout_ns(&self) -> Option<u64> {
        self.timeout_ns
    }
    #[setter]
    fn set_timeout_ns(&mut self, value: Option<u64>) {
        self.timeout_ns = value;
    }
}

/// The first exception of a run, shared by its controllers: once set, none of them calls Python again.
#[derive(Clone, Default)]
pub struct Fault(Arc<FaultState>);

#[derive(Default)]
struct FaultState {
    raised: AtomicBool,
    error: Mutex<Option<PyErr>>,
}

impl Fault {
    /// Keeps `error` unless one is kept already.
    pub fn set(&self, error: PyErr) {
        let mut kept = self.0.error.lock().unwrap_or_else(PoisonError::into_inner);
        if !self.0.raised.swap(true, Ordering::Relaxed) {
            *kept = Some(error);
        }
    }

    /// The exception kept, once.
    pub fn take(&self) -> Option<PyErr> {
        self.0.error.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    /// Whether one is kept or was taken.
    pub fn raised(&self) -> bool {
        self.0.raised.load(Ordering::Relaxed)
    }
}

/// A subclass of `paceline.Controller`, read once: what the registry's `Spec` is for a built-in.
pub struct PyControllerClass {
    class: Py<PyType>,
    /// The class's name.
    pub name: String,
    /// What `observe` reports, in the order of `FIELDS`.
    pub fields: Vec<Field>,
    /// `NEEDS`, and what its callbacks imply.
    pub needs: Needs,
    overridden: Overridden,
}

/// Which optional callbacks the class defines itself; the others are never called.
#[derive(Clone, Copy)]
struct Overridden {
    on_loss: bool,
    on_rto: bool,
    on_spurious_loss: bool,
    on_send: bool,
    on_resume: bool,
    on_timer: bool,
    observe: bool,
}

impl PyControllerClass {
    /// Reads and checks `class`.
    ///
    /// # Errors
    /// `InputError` when it is no subclass of `paceline.Controller`, lacks `on_ack`, or its `FIELDS` or `NEEDS` are not
    /// what the base class documents.
    pub fn new(class: &Bound<'_, PyAny>) -> PyResult<Self> {
        let py = class.py();
        let base = py.import("paceline.controller")?.getattr("Controller")?;
        let class = class.cast::<PyType>().ok().filter(|c| c.is_subclass(&base).unwrap_or(false));
        let Some(class) = class else {
            return Err(input_error("a controller in Python is a subclass of paceline.Controller"));
        };
        let name = class.name()?.to_string();
        let own = |method: &str| -> PyResult<bool> {
            Ok(!class.getattr(method)?.is(&base.getattr(method)?))
        };
        if !own("on_ack")? {
            return Err(input_error(format!(
                "controller `{name}` does not define on_ack(self, ack)"
            )));
        }
        let overridden = Overridden {
            on_loss: own("on_loss")?,
            on_rto: own("on_rto")?,
            on_spurious_loss: own("on_spurious_loss")?,
            on_send: own("on_send")?,
            on_resume: own("on_resume")?,
            on_timer: own("on_timer")?,
            observe: own("observe")?,
        };
        let fields = read_fields(&name, &class.getattr("FIELDS")?)?;
        let needs = read_needs(&name, &class.getattr("NEEDS")?, overridden)?;
        Ok(Self { class: class.clone().unbind(), name, fields, needs, overridden })
    }

    /// The class as an entry that scenarios may name `name`. Kept for the life of the process, as its field names are.
    pub fn guest(&self, name: &str) -> &'static Spec {
        Box::leak(Box::new(Spec {
            name: interned(name),
            title: "Controller written in Python",
            family: Family::Guest,
            source: interned(&self.name),
            about: "",
            needs: self.needs,
            params: &[],
            profiles: &[],
            fields: Box::leak(self.fields.clone().into_boxed_slice()),
            // Never called: the plan's controller is replaced by `factory`.
            build: |_, _| Box::new(Stopped),
        }))
    }

    /// What a plan calls when the flow starts. A constructor that raises yields a stopped flow and sets `fault`.
    pub fn factory(
        &self,
        py: Python<'_>,
        fault: &Fault,
    ) -> impl FnOnce(&PathInfo) -> Box<dyn Controller> + Send + use<> {
        let class = self.class.clone_ref(py);
        let (name, fields, overridden) = (self.name.clone(), self.fields.clone(), self.overridden);
        let fault = fault.clone();
        move |path| {
            let made = Python::try_attach(|py| {
                Live::new(py, &class, overridden, path)
                    .map_err(|error| explain(py, &name, "__init__", path.now_ns, error))
            });
            let mut controller =
                PyController { live: None, control: Control::window(0), name, fields, fault };
            match made {
                Some(Ok((live, control))) => {
                    controller.live = Some(live);
                    controller.control = control;
                }
                Some(Err(error)) => controller.fault.set(error),
                None => {}
            }
            Box::new(controller)
        }
    }
}

/// Sends nothing.
struct Stopped;

impl Controller for Stopped {
    fn on_ack(&mut self, _: &Ack<'_>) {}
    fn on_loss(&mut self, _: &Loss) {}
    fn on_rto(&mut self, _: &Timeout) {}
    fn control(&self) -> Control {
        Control::window(0)
    }
}

/// `FIELDS = {"name": "unit", …}`.
fn read_fields(class: &str, fields: &Bound<'_, PyAny>) -> PyResult<Vec<Field>> {
    let wrong = || {
        input_error(format!(
            "FIELDS of controller `{class}` must map a name (snake_case) to a unit: {{\"base_rtt\": \"ms\"}}"
        ))
    };
    let fields = fields.cast::<PyDict>().map_err(|_| wrong())?;
    fields
        .iter()
        .map(|(name, unit)| {
            let name: String = name.extract().map_err(|_| wrong())?;
            let unit: String = unit.extract().map_err(|_| wrong())?;
            let snake = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_';
            if name.is_empty() || !name.chars().all(snake) {
                return Err(wrong());
            }
            Ok(Field { name: interned(&name), unit: interned(&unit), doc: "" })
        })
        .collect()
}

fn read_needs(class: &str, needs: &Bound<'_, PyAny>, own: Overridden) -> PyResult<Needs> {
    // Per-hop telemetry is not passed on to Python, so "int" is not offered.
    const KNOWN: [(&str, Needs); 6] = [
        ("pacing", Needs::PACING),
        ("ce-count", Needs::CE_COUNT),
        ("rate-sample", Needs::RATE_SAMPLE),
        ("send-events", Needs::SEND_EVENTS),
        ("timers", Needs::TIMERS),
        ("one-way-delay", Needs::ONE_WAY_DELAY),
    ];
    let mut all = Needs::NONE;
    for need in needs.try_iter()? {
        let need: String = need?.extract()?;
        let Some((_, flag)) = KNOWN.iter().find(|(name, _)| *name == need) else {
            let known: Vec<&str> = KNOWN.iter().map(|(name, _)| *name).collect();
            return Err(input_error(format!(
                "NEEDS of controller `{class}` has \"{need}\"; allowed: {}",
                known.join(", ")
            )));
        };
        all = all.and(*flag);
    }
    if own.on_send {
        all = all.and(Needs::SEND_EVENTS);
    }
    if own.on_timer {
        all = all.and(Needs::TIMERS);
    }
    Ok(all)
}

/// The table of fields is static for built-ins. Names from Python are kept for the life of the process, each once.
fn interned(text: &str) -> &'static str {
    static KEPT: Mutex<BTreeSet<&'static str>> = Mutex::new(BTreeSet::new());
    let mut kept = KEPT.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(found) = kept.get(text) {
        return found;
    }
    let leaked: &'static str = Box::leak(text.to_owned().into_boxed_str());
    kept.insert(leaked);
    leaked
}

/// An instance and its bound methods.
struct Live {
    core: Py<ControllerCore>,
    on_ack: Py<PyAny>,
    on_loss: Option<Py<PyAny>>,
    on_rto: Option<Py<PyAny>>,
    on_spurious_loss: Option<Py<PyAny>>,
    on_send: Option<Py<PyAny>>,
    on_resume: Option<Py<PyAny>>,
    on_timer: Option<Py<PyAny>>,
    observe: Option<Py<PyAny>>,
}

impl Live {
    fn new(
        py: Python<'_>,
        class: &Py<PyType>,
        own: Overridden,
        path: &PathInfo,
    ) -> PyResult<(Self, Control)> {
        let object = class.bind(py).call1((PyPathInfo(*path),))?;
        let bound = |name: &str, defined: bool| -> PyResult<Option<Py<PyAny>>> {
            if defined { Ok(Some(object.getattr(name)?.unbind())) } else { Ok(None) }
        };
        let core = object.cast::<ControllerCore>().map_err(PyErr::from)?;
        let control = core.borrow().control();
        let live = Self {
            on_ack: object.getattr("on_ack")?.unbind(),
            on_loss: bound("on_loss", own.on_loss)?,
            on_rto: bound("on_rto", own.on_rto)?,
            on_spurious_loss: bound("on_spurious_loss", own.on_spurious_loss)?,
            on_send: bound("on_send", own.on_send)?,
            on_resume: bound("on_resume", own.on_resume)?,
            on_timer: bound("on_timer", own.on_timer)?,
            observe: bound("observe", own.observe)?,
            core: core.clone().unbind(),
        };
        Ok((live, control))
    }
}

/// A controller written in Python, at work.
struct PyController {
    /// `None` once stopped.
    live: Option<Live>,
    control: Control,
    name: String,
    fields: Vec<Field>,
    fault: Fault,
}

impl PyController {
    /// Calls `method` of the instance with `event`, then reads what it decided.
    fn call<E>(
        &mut self,
        method_name: &'static str,
        now_ns: u64,
        method: fn(&Live) -> Option<&Py<PyAny>>,
        event: E,
    ) where
        E: for<'py> IntoPyObject<'py>,
    {
        if self.fault.raised() {
            self.stop();
        }
        let Some(live) = &self.live else { return };
        let Some(method) = method(live) else { return };
        let called = Python::try_attach(|py| {
            method
                .call1(py, (event,))
                .map(|_| live.core.borrow(py).control())
                .map_err(|error| explain(py, &self.name, method_name, now_ns, error))
        });
        match called {
            Some(Ok(control)) => self.control = control,
            Some(Err(error)) => {
                self.fault.set(error);
                self.stop();
            }
            // The interpreter is shutting down.
            None => self.stop(),
        }
    }

    /// An empty window sends nothing, so the rest of the run is short.
    fn stop(&mut self) {
        self.live = None;
        self.control = Control::window(0);
    }

    fn observed(&self, py: Python<'_>, observe: &Py<PyAny>, out: &mut [f64]) -> PyResult<()> {
        let values = observe.call0(py)?;
        let values = values.bind(py).cast::<PyDict>().map_err(|_| {
            PyTypeError::new_err("observe() must return a dict of the names in FIELDS")
        })?;
        for (key, _) in values.iter() {
            let key: String = key.extract()?;
            if !self.fields.iter().any(|field| field.name == key) {
                return Err(PyValueError::new_err(format!(
                    "observe() returned `{key}`, which FIELDS does not name"
                )));
            }
        }
        for (field, out) in self.fields.iter().zip(out) {
            let value = values.get_item(field.name)?.filter(|value| !value.is_none());
            *out = value.map_or(Ok(f64::NAN), |value| value.extract())?;
        }
        Ok(())
    }
}

impl Controller for PyController {
    fn on_ack(&mut self, ack: &Ack<'_>) {
        self.call("on_ack", ack.now_ns, |live| Some(&live.on_ack), PyAck(ack.sample));
    }
    fn on_loss(&mut self, loss: &Loss) {
        self.call("on_loss", loss.now_ns, |live| live.on_loss.as_ref(), PyLoss(*loss));
    }
    fn on_rto(&mut self, timeout: &Timeout) {
        self.call("on_rto", timeout.now_ns, |live| live.on_rto.as_ref(), PyTimeout(*timeout));
    }
    fn on_spurious_loss(&mut self, undo: &Undo) {
        let method: fn(&Live) -> Option<&Py<PyAny>> = |live| live.on_spurious_loss.as_ref();
        self.call("on_spurious_loss", undo.now_ns, method, PyUndo(*undo));
    }
    fn on_send(&mut self, sent: &Sent) {
        self.call("on_send", sent.now_ns, |live| live.on_send.as_ref(), PySent(*sent));
    }
    fn on_resume(&mut self, resume: &Resume) {
        self.call("on_resume", resume.now_ns, |live| live.on_resume.as_ref(), PyResume(*resume));
    }
    fn on_path_change(&mut self, path: &PathInfo) {
        if let Some(live) = &self.live {
            Python::try_attach(|py| live.core.borrow_mut(py).path = *path);
        }
    }
    fn on_timer(&mut self, now_ns: u64) {
        if let Some(live) = &self.live {
            // One shot: otherwise a time in the past would call again and again.
            Python::try_attach(|py| live.core.borrow_mut(py).next_timer_ns = None);
        }
        self.control.next_timer_ns = Control::NEVER;
        self.call("on_timer", now_ns, |live| live.on_timer.as_ref(), now_ns);
    }
    fn control(&self) -> Control {
        self.control
    }
    fn observe(&self, out: &mut [f64]) {
        out.fill(f64::NAN);
        let Some(live) = &self.live else { return };
        let Some(observe) = live.observe.as_ref().filter(|_| !self.fault.raised()) else { return };
        Python::try_attach(|py| {
            if let Err(error) = self.observed(py, observe, out) {
                self.fault.set(explain_untimed(py, &self.name, "observe", error));
            }
        });
    }
}

/// `error` as a `RunError` that says which callback and when, with the original as its cause. What is not an `Exception`
/// (`KeyboardInterrupt`) stays itself.
fn explain(py: Python<'_>, name: &str, method: &str, now_ns: u64, error: PyErr) -> PyErr {
    wrap(py, &format!("controller `{name}`: {method} at {} s", now_ns as f64 / 1e9), error)
}

fn explain_untimed(py: Python<'_>, name: &str, method: &str, error: PyErr) -> PyErr {
    wrap(py, &format!("controller `{name}`: {method}"), error)
}

fn wrap(py: Python<'_>, place: &str, error: PyErr) -> PyErr {
    if !error.is_instance_of::<PyException>(py) {
        return error;
    }
    let wrapped = RunError::new_err(format!("{place} raised {error}"));
    wrapped.set_cause(py, Some(error));
    wrapped
}
