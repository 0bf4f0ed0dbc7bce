//! Drives one controller with a written sequence of events, without a simulation: for tests of a controller, and for
//! holding a port to its original.

use paceline_cc::registry;
use paceline_cc::{
    Ack, AckSample, Control, Controller, Field, Loss, PathInfo, Resume, Sent, Timeout, Undo,
};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyString};
use serde_json::{Value, json};

use crate::errors::input_error;
use crate::py_controller::{Fault, PyControllerClass};

/// Feeds `events` to `controller` (a built-in's name, or a subclass of `paceline.Controller`) and returns what it decided
/// after each one, as a JSON list; the first entry is the state before any event.
///
/// An event is `(kind, fields)`: `ack`, `loss`, `rto`, `spurious_loss`, `send`, `resume`, `timer`, with the fields of the
/// event of that name (ns, bytes); a field left out is 0.
///
/// Raises `InputError` for an unknown controller, kind or field, or a time that decreases; `RunError` when the controller
/// raises.
#[pyfunction]
#[pyo3(signature = (controller, events, packet_bytes=1500, initial_window_packets=10, seed=0))]
pub fn drive_controller(
    py: Python<'_>,
    controller: &Bound<'_, PyAny>,
    events: Vec<(String, Bound<'_, PyDict>)>,
    packet_bytes: u32,
    initial_window_packets: u32,
    seed: u64,
) -> PyResult<String> {
    if packet_bytes == 0 {
        return Err(input_error("packet_bytes is 0; allowed: 1 or more"));
    }
    let events = events
        .iter()
        .enumerate()
        .map(|(index, (kind, fields))| Event::read(index, kind, fields))
        .collect::<PyResult<Vec<Event>>>()?;
    if let Some(index) = (1..events.len()).find(|&i| events[i].now_ns() < events[i - 1].now_ns()) {
        return Err(input_error(format!(
            "event {index}: now_ns is before that of the event before"
        )));
    }
    let path = PathInfo { now_ns: 0, packet_bytes, initial_window_packets, seed };
    let fault = Fault::default();
    let (mut driven, fields) = make(py, controller, &path, &fault)?;
    let mut states = vec![state(&*driven, &fields)];
    for event in &events {
        event.deliver(&mut *driven);
        states.push(state(&*driven, &fields));
        if let Some(error) = fault.take() {
            return Err(error);
        }
    }
    match fault.take() {
        Some(error) => Err(error),
        None => Ok(Value::Array(states).to_string()),
    }
}

fn make(
    py: Python<'_>,
    controller: &Bound<'_, PyAny>,
    path: &PathInfo,
    fault: &Fault,
) -> PyResult<(Box<dyn Controller>, Vec<Field>)> {
    let Ok(name) = controller.cast::<PyString>() else {
        let class = PyControllerClass::new(controller)?;
        return Ok((class.factory(py, fault)(path), class.fields));
    };
    let name = name.to_string();
    let Some(spec) = registry::find(&name) else {
        let known: Vec<&str> = registry::all().iter().map(|spec| spec.name).collect();
        return Err(input_error(format!(
            "no controller is called `{name}`; there are: {}",
            known.join(", ")
        )));
    };
    let params = spec.params(None).map_err(input_error)?;
    Ok(((spec.build)(&params, path), spec.fields.to_vec()))
}

fn state(controller: &dyn Controller, fields: &[Field]) -> Value {
    let control = controller.control();
    let mut values = vec![f64::NAN; fields.len()];
    controller.observe(&mut values);
    let observed: serde_json::Map<String, Value> =
        fields.iter().zip(values).map(|(field, value)| (field.name.into(), json!(value))).collect();
    json!({
        "cwnd_bytes": control.cwnd_bytes,
        "pacing_bps": control.pacing_bps(),
        "send_quantum_bytes": control.send_quantum_bytes,
        "next_timer_ns": (control.next_timer_ns != Control::NEVER).then_some(control.next_timer_ns),
        "timeout_ns": (control.timeout_ns != 0).then_some(control.timeout_ns),
        "observed": observed,
    })
}

enum Event {
    Ack(AckSample),
    Loss(Loss),
    Rto(Timeout),
    SpuriousLoss(Undo),
    Send(Sent),
    Resume(Resume),
    Timer(u64),
}

/// Fills the named fields of an event from a dict; `flag` names are booleans that set a bit of `flags`.
macro_rules! fill {
    ($place:expr, $dict:expr, $event:ident, [$($field:ident),*], [$($flag:ident = $bit:expr),*]) => {
        for (key, value) in $dict.iter() {
            let key: String = key.extract()?;
            match key.as_str() {
                $(stringify!($field) => $event.$field = number(&$place, &key, &value)?,)*
                $(stringify!($flag) => if value.is_truthy()? { $event.flags |= $bit },)*
                _ => {
                    let known: &[&str] = &[$(stringify!($field),)* $(stringify!($flag),)*];
                    return Err(input_error(format!(
                        "{}: there is no field `{key}` (there are: {})", $place, known.join(", ")
                    )));
                }
            }
        }
    };
}

fn number<'py, T: FromPyObjectOwned<'py>>(
    place: &str,
    key: &str,
    value: &Bound<'py, PyAny>,
) -> PyResult<T> {
    value.extract().map_err(|_| {
        input_error(format!("{place}: `{key}` is {value}; allowed: whole numbers of 0 or more"))
    })
}

impl Event {
    fn read(index: usize, kind: &str, fields: &Bound<'_, PyDict>) -> PyResult<Self> {
        let place = format!("event {index} ({kind})");
        match kind {
            "ack" => read_ack(&place, fields).map(Self::Ack),
            "loss" => {
                let mut loss = Loss::default();
                fill!(
                    place,
                    fields,
                    loss,
                    [
                        now_ns,
                        lost_bytes,
                        newest_lost_sent_ns,
                        in_flight_bytes,
                        prior_in_flight_bytes,
                        lost_packets,
                        tx_in_flight_bytes,
                        lost_since_sent_bytes
                    ],
                    [starts_episode = Loss::EPISODE_START, app_limited = Loss::APP_LIMITED]
                );
                Ok(Self::Loss(loss))
            }
            "rto" => {
                let mut timeout = Timeout::default();
                fill!(place, fields, timeout, [now_ns, in_flight_bytes, consecutive], []);
                Ok(Self::Rto(timeout))
            }
            "spurious_loss" => {
                let mut undo = Undo::default();
                fill!(place, fields, undo, [now_ns, started_ns], []);
                Ok(Self::SpuriousLoss(undo))
            }
            "send" => {
                let mut sent = Sent::default();
                fill!(place, fields, sent, [now_ns, bytes, in_flight_bytes], []);
                Ok(Self::Send(sent))
            }
            "resume" => {
                let mut resume = Resume::default();
                fill!(place, fields, resume, [now_ns, idle_ns], []);
                Ok(Self::Resume(resume))
            }
            "timer" => {
                let mut at = Undo::default();
                fill!(place, fields, at, [now_ns], []);
                Ok(Self::Timer(at.now_ns))
            }
            _ => Err(input_error(format!(
                "event {index} is a \"{kind}\"; allowed: ack, loss, rto, spurious_loss, send, resume, timer"
            ))),
        }
    }

    fn now_ns(&self) -> u64 {
        match self {
            Self::Ack(ack) => ack.now_ns,
            Self::Loss(loss) => loss.now_ns,
            Self::Rto(timeout) => timeout.now_ns,
            Self::SpuriousLoss(undo) => undo.now_ns,
            Self::Send(sent) => sent.now_ns,
            Self::Resume(resume) => resume.now_ns,
            Self::Timer(now_ns) => *now_ns,
        }
    }

    fn deliver(&self, controller: &mut dyn Controller) {
        match self {
            Self::Ack(sample) => controller.on_ack(&Ack { sample: *sample, hops: &[] }),
            Self::Loss(loss) => controller.on_loss(loss),
            Self::Rto(timeout) => controller.on_rto(timeout),
            Self::SpuriousLoss(undo) => controller.on_spurious_loss(undo),
            Self::Send(sent) => controller.on_send(sent),
            Self::Resume(resume) => controller.on_resume(resume),
            Self::Timer(now_ns) => controller.on_timer(*now_ns),
        }
    }
}

fn read_ack(place: &str, fields: &Bound<'_, PyDict>) -> PyResult<AckSample> {
    let mut ack = AckSample::default();
    fill!(
        place,
        fields,
        ack,
        [
            now_ns,
            acked_bytes,
            acked_packets,
            ce_packets,
            in_flight_bytes,
            prior_in_flight_bytes,
            rtt_ns,
            srtt_ns,
            min_rtt_ns,
            ack_delay_ns,
            one_way_delay_ns,
            sent_ns,
            delivered_bytes,
            interval_ns,
            delivered_total_bytes,
            prior_delivered_total_bytes,
            tx_in_flight_bytes,
            lost_since_sent_bytes
        ],
        [
            app_limited = AckSample::APP_LIMITED,
            cwnd_limited = AckSample::CWND_LIMITED,
            retransmit = AckSample::RETRANSMIT,
            cumulative = AckSample::CUMULATIVE,
            in_recovery = AckSample::IN_RECOVERY
        ]
    );
    Ok(ack)
}
