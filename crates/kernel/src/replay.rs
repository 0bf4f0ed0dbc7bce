//! Replay: the events of a recording once more, through the native build of the algorithm and through its BPF build, which the kernel
//! runs outside of TCP (BPF_PROG_TEST_RUN). What was recorded, what the one and what the other answer must be equal.

use std::collections::BTreeMap;

use libbpf_rs::{MapCore, MapFlags, Object, ObjectBuilder, ProgramInput};
use paceline_cc::event_log::{self, Entry, Event, FlowLog, Log as EventLog, Start};
use paceline_cc::{Control, Instance, Portable};

use crate::load::Log;
use crate::{Error, Result, objects};

/// Where things are in struct cc_replay of bpf/replay.bpf.c, bytes.
const KIND: usize = 144;
const CONTROL: usize = 152;
const OBSERVED: usize = 192;

/// An algorithm's BPF build, one flow of it.
struct BpfReplica {
    object: Object,
    algorithm: Portable,
    /// struct cc_replay.
    context: Vec<u8>,
    zeros: Vec<u8>,
}

impl BpfReplica {
    /// Hands the program of `algorithm` to the kernel, which holds it as long as this lives.
    ///
    /// # Errors
    /// A build without BPF, a machine or user that cannot, a program that the verifier refuses.
    fn new(algorithm: Portable) -> Result<Self> {
        let spec = algorithm.spec();
        let bytes = objects::find_replay(spec.name)?;
        let log = Log::begin();
        let refused = |reason| Error::Kernel {
            what: format!("load {} for replay", spec.name),
            reason,
            log: log.tail(),
        };
        let mut object = ObjectBuilder::default();
        let object = object
            .name(format!("pl_replay_{}", spec.name))
            .and_then(|builder| builder.open_memory(bytes))
            .and_then(|object| object.load())
            .map_err(refused)?;
        let state = object.maps().next();
        let state_bytes = state.map_or(0, |map| map.value_size() as usize);
        let words = spec.fields.len() + spec.params.len();
        Ok(Self {
            object,
            algorithm,
            context: vec![0; OBSERVED + 8 * words],
            zeros: vec![0; state_bytes],
        })
    }

    /// Makes the algorithm anew.
    fn start(&mut self, start: &Start) -> Result<()> {
        let state = self.object.maps().next();
        let state = state.ok_or_else(|| Error::Unavailable("the object has no map".into()))?;
        state
            .update(&0_u32.to_ne_bytes(), &self.zeros, MapFlags::ANY)
            .map_err(Error::kernel("reset the flow"))?;
        let params = OBSERVED + 8 * self.algorithm.spec().fields.len();
        for (place, value) in self.context[params..].chunks_exact_mut(8).zip(&start.params) {
            place.copy_from_slice(&value.to_ne_bytes());
        }
        self.run(Start::KIND, &event_log::path_bytes(&start.path))
    }

    /// Tells it an event.
    fn hear(&mut self, event: &Event) -> Result<()> {
        let mut bytes = Vec::with_capacity(KIND);
        event.put(&mut bytes);
        self.run(event.kind(), &bytes)
    }

    /// What it asks of its host.
    fn control(&self) -> Control {
        event_log::control_from(&self.context[CONTROL..]).expect("the context has room for it")
    }

    /// Its fields, as [`Instance::observed`] has them.
    fn observed(&self) -> Vec<u64> {
        let words =
            self.context[OBSERVED..].chunks_exact(8).take(self.algorithm.spec().fields.len());
        words.map(|word| u64::from_ne_bytes(word.try_into().expect("eight bytes"))).collect()
    }

    fn run(&mut self, kind: u32, event: &[u8]) -> Result<()> {
        self.context[..event.len()].copy_from_slice(event);
        self.context[KIND..CONTROL].copy_from_slice(&u64::from(kind).to_ne_bytes());
        let name = self.algorithm.spec().name;
        let program = self.object.progs_mut().find(|program| program.name() == "cc_replay_event");
        let program =
            program.ok_or_else(|| Error::Unavailable(format!("{name}: no program to replay")))?;
        let input = ProgramInput { context_in: Some(&mut self.context), ..Default::default() };
        let output = program.test_run(input).map_err(Error::kernel(format!("run {name}")))?;
        match output.return_value as i32 {
            0 => Ok(()),
            code => Err(Error::Unavailable(format!(
                "{name} as BPF does not know event {kind} ({code})"
            ))),
        }
    }
}

/// Where two answers differ first.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Difference {
    /// Which event of the flow, its start being 0.
    pub index: u64,
    /// The event's name.
    pub event: &'static str,
    /// Its time, ns of the recording's clock.
    pub now_ns: u64,
    /// Where in the file, bytes.
    pub position: usize,
    /// What differs: an output, or a field of the algorithm's state.
    pub what: &'static str,
    /// Whose values they are, and the values; `u64::MAX` stands for unpaced, never or none.
    pub values: Vec<(&'static str, u64)>,
}

/// What became of one flow.
#[derive(Clone, Debug)]
pub struct FlowReplay {
    /// Its number in the recording.
    pub flow: u64,
    /// What it ran; `None` if its start is missing.
    pub start: Option<Start>,
    /// Events told, the start included.
    pub events: u64,
    /// How many of each kind, by name, the start left out; and how many packets arrived marked.
    pub heard: BTreeMap<&'static str, u64>,
    /// See there.
    pub ce_packets: u64,
    /// How often recorded answers were compared.
    pub answers: u64,
    /// Records missing at the first gap, and records after it, which were not replayed.
    pub missing: u64,
    /// See there.
    pub after_gap: u64,
    /// The first difference.
    pub difference: Option<Difference>,
}

/// What became of a recording.
#[derive(Debug)]
pub struct Replayed {
    /// Its flows, in the order of the recording.
    pub flows: Vec<FlowReplay>,
    /// Why the BPF build took no part.
    pub bpf_skipped: Option<String>,
    /// Records that found the kernel's buffer full; `None` if the recording was not ended properly.
    pub lost: Option<u64>,
}

impl Replayed {
    /// Whether something was compared, and all of it equal.
    pub fn equal(&self) -> bool {
        self.flows.iter().any(|flow| flow.answers > 0)
            && self.flows.iter().all(|flow| flow.difference.is_none())
    }
}

/// Replays recordings. The kernel holds the programs as long as this lives.
pub struct Replayer {
    replicas: Vec<BpfReplica>,
    bpf_skipped: Option<String>,
}

impl Replayer {
    /// With `bpf` through the BPF build too, if there can be one here.
    pub fn new(bpf: bool) -> Self {
        let skipped = if bpf { crate::check().err() } else { None };
        let reason = skipped.map(|error| error.to_string());
        let bpf_skipped = if bpf { reason } else { Some("not asked for".to_owned()) };
        Self { replicas: Vec::new(), bpf_skipped }
    }

    /// Replays `log`.
    ///
    /// # Errors
    /// The kernel refuses the programs.
    pub fn replay(&mut self, log: &EventLog<'_>) -> Result<Replayed> {
        let mut flows = Vec::new();
        for flow in &log.flows {
            let replica = match &flow.start {
                Some(start) if self.bpf_skipped.is_none() => Some(self.replica(start.algorithm)?),
                _ => None,
            };
            flows.push(replay_flow(flow, replica)?);
        }
        Ok(Replayed { flows, bpf_skipped: self.bpf_skipped.clone(), lost: log.lost })
    }

    fn replica(&mut self, algorithm: Portable) -> Result<&mut BpfReplica> {
        let name = algorithm.spec().name;
        let known = |replica: &BpfReplica| replica.algorithm.spec().name == name;
        let place = match self.replicas.iter().position(known) {
            Some(place) => place,
            None => {
                self.replicas.push(BpfReplica::new(algorithm)?);
                self.replicas.len() - 1
            }
        };
        Ok(&mut self.replicas[place])
    }
}

fn replay_flow(flow: &FlowLog<'_>, mut bpf: Option<&mut BpfReplica>) -> Result<FlowReplay> {
    let mut replay = FlowReplay {
        flow: flow.flow,
        start: flow.start.clone(),
        events: 0,
        heard: BTreeMap::new(),
        ce_packets: 0,
        answers: 0,
        missing: flow.missing,
        after_gap: flow.after_gap,
        difference: None,
    };
    let mut native: Option<Instance> = None;
    let (mut event_name, mut now_ns, mut event_at) = ("init", 0, 0);
    for (position, entry) in flow.entries() {
        let mut recorded = None;
        match &entry {
            Entry::Start(start) => {
                // Checked when it was read.
                native = start.algorithm.start(&start.path, &start.params).ok();
                if let Some(bpf) = bpf.as_deref_mut() {
                    bpf.start(start)?;
                }
                (now_ns, event_at) = (start.path.now_ns, position);
                replay.events += 1;
            }
            Entry::Event(event) => {
                let Some(native) = native.as_mut() else { break };
                native.hear(event);
                if let Some(bpf) = bpf.as_deref_mut() {
                    bpf.hear(event)?;
                }
                now_ns = event.now_ns().unwrap_or(now_ns);
                (event_name, event_at) = (event.name(), position);
                replay.events += 1;
                *replay.heard.entry(event.name()).or_default() += 1;
                if let Event::Ack(ack) = event {
                    replay.ce_packets += u64::from(ack.ce_packets);
                }
            }
            Entry::Control(control) => {
                recorded = Some(*control);
                replay.answers += 1;
            }
            Entry::Release => break,
        }
        let Some(native) = native.as_ref() else { break };
        if let Some((what, values)) = differing(native, bpf.as_deref(), recorded) {
            replay.difference = Some(Difference {
                index: replay.events - 1,
                event: event_name,
                now_ns,
                position: event_at,
                what,
                values,
            });
            break;
        }
    }
    Ok(replay)
}

/// The first output or field in which they are not all equal.
fn differing(
    native: &Instance,
    bpf: Option<&BpfReplica>,
    recorded: Option<Control>,
) -> Option<(&'static str, Vec<(&'static str, u64)>)> {
    let mut answers: Vec<(&'static str, [u64; 5])> = Vec::with_capacity(3);
    answers.extend(recorded.map(|control| ("recorded", outputs(control))));
    answers.push(("native", outputs(native.control())));
    answers.extend(bpf.map(|bpf| ("bpf", outputs(bpf.control()))));
    for (index, what) in OUTPUTS.into_iter().enumerate() {
        if answers.iter().any(|(_, words)| words[index] != answers[0].1[index]) {
            return Some((what, answers.iter().map(|(who, words)| (*who, words[index])).collect()));
        }
    }
    let bpf = bpf?;
    let fields = bpf.algorithm.spec().fields.iter();
    for ((field, native), bpf) in fields.zip(native.observed()).zip(bpf.observed()) {
        if native != bpf {
            return Some((field.name, vec![("native", native), ("bpf", bpf)]));
        }
    }
    None
}

const OUTPUTS: [&str; 5] =
    ["cwnd_bytes", "pacing_bytes_per_s", "send_quantum_bytes", "next_timer_ns", "timeout_ns"];

fn outputs(control: Control) -> [u64; 5] {
    [
        control.cwnd_bytes,
        control.pacing_bytes_per_s,
        control.send_quantum_bytes,
        control.next_timer_ns,
        control.timeout_ns,
    ]
}
