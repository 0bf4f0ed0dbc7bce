//! Any bytes, as a recording: flows that can be told once more, or an error that says where.
//!
//! `fuzz/fuzz_targets/events.rs` includes this file by path and calls [`any`] with its input; the property test feeds it random
//! bytes. They are a file, or records after a good head, or what happens to a controller that records, with some bytes changed.

use std::sync::{Arc, Mutex};

use paceline_cc::event_log::{self, Entry};
use paceline_cc::{Controller, Params, PathInfo, Portable, Recording, registry};

#[allow(dead_code)] // `any` and `one` are other tests'
#[path = "mod.rs"]
mod controller;

/// Interprets `bytes` as one of the three.
pub fn any(bytes: &[u8]) {
    let Some((how, rest)) = bytes.split_first() else { return read(bytes) };
    match how % 4 {
        0 => read(rest),
        1 => {
            let mut file = Vec::new();
            event_log::put_head(&mut file);
            file.extend_from_slice(rest);
            read(&file);
        }
        _ => {
            let (changes, rest) = rest.split_at(rest.len().min(usize::from(how >> 2) / 8 * 3));
            let mut file = recorded(rest);
            for change in changes.chunks_exact(3) {
                let place = usize::from(u16::from_le_bytes([change[0], change[1]])) % file.len();
                file[place] ^= change[2];
            }
            read(&file);
        }
    }
}

/// A recording of what `bytes` make happen to the algorithm that the first of them names.
pub fn recorded(bytes: &[u8]) -> Vec<u8> {
    let portable: Vec<Portable> =
        registry::all().iter().filter_map(|spec| Portable::find(spec.name)).collect();
    let which = usize::from(bytes.first().copied().unwrap_or(0));
    let algorithm = portable[which % portable.len()];
    let mut head = Vec::new();
    event_log::put_head(&mut head);
    let log = Arc::new(Mutex::new(head));
    let build = |params: &Params, path: &PathInfo| {
        let recording = Recording::new(algorithm, params, path, 7, Arc::clone(&log));
        Box::new(recording) as Box<dyn Controller>
    };
    controller::with(algorithm.spec(), &build, bytes.get(1..).unwrap_or_default());
    let mut log = log.lock().unwrap();
    event_log::put_closed(0, &mut log);
    log.clone()
}

/// What was read is what is written, and can be told.
fn read(bytes: &[u8]) {
    let log = match event_log::parse(bytes) {
        Ok(log) => log,
        Err(error) => return assert!(error.position <= bytes.len(), "{error}"),
    };
    for flow in &log.flows {
        let mut instance = None;
        for (sequence, (position, entry)) in flow.entries().enumerate() {
            let mut again = Vec::new();
            event_log::put_entry(flow.flow, sequence as u32, &entry, &mut again);
            let place = &bytes[position..position + again.len()];
            // What follows an algorithm's name is not read.
            if !matches!(entry, Entry::Start(_)) {
                assert_eq!(again, place);
            }
            match entry {
                Entry::Start(start) => {
                    instance = Some(start.algorithm.start(&start.path, &start.params).unwrap());
                }
                Entry::Event(event) => instance.as_mut().unwrap().hear(&event),
                Entry::Control(_) => drop(instance.as_ref().unwrap().control()),
                Entry::Release => {}
            }
        }
    }
}
