//! Recordings, replayed natively and, with root and a kernel that can, through BPF_PROG_TEST_RUN: random ones for every algorithm in
//! C, and one of a real flow.

use std::cell::{Cell, RefCell};
use std::io::Write;
use std::sync::{Arc, Mutex};

use paceline_cc::event_log::{self, Entry};
use paceline_cc::{
    Ack, Control, Controller, Instance, Loss, Params, PathInfo, Portable, Recording, Resume,
    Timeout, Undo,
};
use paceline_kernel::Replayer;
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::test_runner::{Config, RngSeed, TestRunner};

#[allow(dead_code)] // `any` is for the fuzz target
#[path = "../../cc/tests/drive/mod.rs"]
mod drive;

/// Every algorithm in C.
fn algorithms() -> Vec<Portable> {
    paceline_cc::registry::all().iter().filter_map(|spec| Portable::find(spec.name)).collect()
}

/// Whether BPF takes no part; says so past the test harness, which hides what passing tests print.
fn bpf_skipped() -> bool {
    let Err(reason) = paceline_kernel::check() else { return false };
    let line = format!("\nSKIPPED replay through BPF: {reason}\n");
    let _ = std::io::stderr().write_all(line.as_bytes());
    true
}

/// A controller of the contract, which has no caps: here each return from idleness brings one.
struct Capped(Recording);

impl Controller for Capped {
    fn on_ack(&mut self, ack: &Ack<'_>) {
        self.0.on_ack(ack);
    }
    fn on_loss(&mut self, loss: &Loss) {
        self.0.on_loss(loss);
    }
    fn on_rto(&mut self, timeout: &Timeout) {
        self.0.on_rto(timeout);
    }
    fn on_spurious_loss(&mut self, undo: &Undo) {
        self.0.on_spurious_loss(undo);
    }
    fn on_resume(&mut self, resume: &Resume) {
        self.0.on_resume(resume);
        self.0.set_cap(if resume.idle_ns == 0 { u64::MAX } else { resume.idle_ns });
    }
    fn on_path_change(&mut self, path: &PathInfo) {
        self.0.on_path_change(path);
    }
    fn on_timer(&mut self, now_ns: u64) {
        self.0.on_timer(now_ns);
    }
    fn control(&self) -> Control {
        self.0.control()
    }
    fn observe(&self, out: &mut [f64]) {
        self.0.observe(out);
    }
}

/// A recording of what `bytes` make happen to `algorithm`, natively.
fn recorded(algorithm: Portable, bytes: &[u8]) -> Vec<u8> {
    let mut head = Vec::new();
    event_log::put_head(&mut head);
    let log = Arc::new(Mutex::new(head));
    let build = |params: &Params, path: &PathInfo| {
        let recording = Recording::new(algorithm, params, path, 7, Arc::clone(&log));
        Box::new(Capped(recording)) as Box<dyn Controller>
    };
    drive::with(algorithm.spec(), &build, bytes);
    let mut log = log.lock().unwrap();
    event_log::put_closed(0, &mut log);
    log.clone()
}

/// The seed is fixed, so that a run repeats; PROPTEST_CASES asks for more.
fn runner() -> TestRunner {
    let config =
        Config { failure_persistence: None, rng_seed: RngSeed::Fixed(1), ..Config::default() };
    TestRunner::new(config)
}

#[test]
fn any_events_give_the_same_answers_natively_and_as_bpf() {
    let bpf = !bpf_skipped();
    for algorithm in algorithms() {
        let name = algorithm.spec().name;
        let (events, runs) = (Cell::new(0), Cell::new(0));
        let replayer = RefCell::new(Replayer::new(bpf));
        let result = runner().run(&vec(any::<u8>(), 0..20_000), |bytes| {
            let log = recorded(algorithm, &bytes);
            let log = event_log::parse(&log).unwrap();
            let replayed = replayer.borrow_mut().replay(&log).unwrap();
            assert_eq!(replayed.bpf_skipped.is_none(), bpf, "{:?}", replayed.bpf_skipped);
            let flow = &replayed.flows[0];
            prop_assert_eq!(&flow.difference, &None);
            prop_assert_eq!(flow.events, flow.answers);
            events.set(events.get() + flow.events);
            runs.set(runs.get() + 1);
            Ok(())
        });
        println!("{name}: {} logs, {} events, BPF: {bpf}", runs.get(), events.get());
        result.unwrap_or_else(|error| panic!("{name}: {error}"));
    }
}

/// Answers written anew: what happened stays.
fn blessed(bytes: &[u8]) -> Vec<u8> {
    let log = event_log::parse(bytes).unwrap();
    let mut blessed = bytes.to_vec();
    for flow in &log.flows {
        let mut instance: Option<Instance> = None;
        for (position, entry) in flow.entries() {
            match &entry {
                Entry::Start(start) => {
                    instance = Some(start.algorithm.start(&start.path, &start.params).unwrap());
                }
                Entry::Event(event) => instance.as_mut().unwrap().hear(event),
                Entry::Control(_) => {
                    let mut answer = Vec::new();
                    let control = Entry::Control(instance.as_ref().unwrap().control());
                    event_log::put_entry(flow.flow, 0, &control, &mut answer);
                    let place = position + event_log::RECORD_BYTES;
                    let answer = &answer[event_log::RECORD_BYTES..];
                    blessed[place..place + answer.len()].copy_from_slice(answer);
                }
                Entry::Release => {}
            }
        }
    }
    blessed
}

/// Flows in a real kernel, `tests/recordings`: their algorithms still answer as they did there.
#[test]
fn recorded_flows_are_answered_as_in_the_kernel() {
    if cfg!(target_endian = "big") {
        // They are from a machine of the other byte order, which a recording says and replay refuses.
        return;
    }
    let bpf = !bpf_skipped();
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/recordings");
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_none_or(|extension| extension != "events") {
            continue;
        }
        let mut bytes = std::fs::read(&path).unwrap();
        if std::env::var_os("PACELINE_BLESS").is_some() {
            bytes = blessed(&bytes);
            std::fs::write(&path, &bytes).unwrap();
        }
        let log = event_log::parse(&bytes).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
        let replayed = Replayer::new(bpf).replay(&log).unwrap();
        for flow in &replayed.flows {
            assert_eq!(flow.difference, None, "{}", path.display());
            assert_eq!(flow.missing, 0, "{}", path.display());
            found.push((flow.start.as_ref().unwrap().algorithm.spec().name, flow.answers));
        }
    }
    println!("{found:?}, BPF: {bpf}");
    for algorithm in ["mpc", "reno"] {
        assert!(found.iter().any(|(name, answers)| *name == algorithm && *answers > 100));
    }
}
