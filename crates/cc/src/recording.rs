//! A controller that records what it is told and what it answers, for hosts outside the kernel: what [`crate::event_log`] reads.

use std::net::{Ipv6Addr, SocketAddr};
use std::sync::{Arc, Mutex, PoisonError};

use crate::controller::{Control, Controller};
use crate::event::{Ack, Loss, PathInfo, Resume, Timeout, Undo};
use crate::event_log::{Entry, Event, Start, put_entry};
use crate::native::{Instance, Portable};
use crate::registry::Params;

/// An algorithm in integer C, with the recording that it adds to. Flows may share one: the caller begins and ends the file.
pub struct Recording {
    instance: Instance,
    log: Arc<Mutex<Vec<u8>>>,
    flow: u64,
    sequence: u32,
}

impl Recording {
    /// Makes `algorithm` for `path`, as flow number `flow` of `log`.
    pub fn new(
        algorithm: Portable,
        params: &Params,
        path: &PathInfo,
        flow: u64,
        log: Arc<Mutex<Vec<u8>>>,
    ) -> Self {
        let params = algorithm.to_integers(params);
        let instance = algorithm.start(path, &params).expect("of a table, so within its ranges");
        let nowhere = SocketAddr::new(Ipv6Addr::UNSPECIFIED.into(), 0);
        let mut recording = Self { instance, log, flow, sequence: 0 };
        let (local, remote) = (nowhere, nowhere);
        recording.put(&Entry::Start(Start { path: *path, local, remote, algorithm, params }));
        recording.put(&Entry::Control(recording.instance.control()));
        recording
    }

    /// Sets the host's cap, bytes/s, if the algorithm knows of caps.
    pub fn set_cap(&mut self, bytes_per_s: u64) {
        if self.instance.knows_caps() {
            self.hear(Event::Cap(bytes_per_s));
        }
    }

    fn hear(&mut self, event: Event) {
        self.instance.hear(&event);
        self.put(&Entry::Event(event));
        self.put(&Entry::Control(self.instance.control()));
    }

    fn put(&mut self, entry: &Entry) {
        // Records are appended whole: whoever panicked has left none half-written.
        let mut log = self.log.lock().unwrap_or_else(PoisonError::into_inner);
        put_entry(self.flow, self.sequence, entry, &mut log);
        self.sequence = self.sequence.wrapping_add(1);
    }
}

impl Controller for Recording {
    fn on_ack(&mut self, ack: &Ack<'_>) {
        self.hear(Event::Ack(ack.sample));
    }

    fn on_loss(&mut self, loss: &Loss) {
        self.hear(Event::Loss(*loss));
    }

    fn on_rto(&mut self, timeout: &Timeout) {
        self.hear(Event::Rto(*timeout));
    }

    fn on_spurious_loss(&mut self, undo: &Undo) {
        self.hear(Event::SpuriousLoss(*undo));
    }

    fn on_resume(&mut self, resume: &Resume) {
        self.hear(Event::Resume(*resume));
    }

    fn on_path_change(&mut self, path: &PathInfo) {
        self.hear(Event::PathChange(*path));
    }

    fn on_timer(&mut self, now_ns: u64) {
        self.hear(Event::Timer(now_ns));
    }

    fn control(&self) -> Control {
        self.instance.control()
    }

    fn observe(&self, out: &mut [f64]) {
        self.instance.observe(out);
    }
}

impl Drop for Recording {
    fn drop(&mut self) {
        self.put(&Entry::Release);
    }
}
