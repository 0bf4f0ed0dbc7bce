//! Algorithms written in integer C (`bpf/algorithms`), as [`Controller`]s: what runs in the kernel is what is simulated.
//!
//! A C algorithm is one header and one registry file that calls [`algorithm!`]. Its parameters travel as an array of `u64`
//! in the order of its table: whole numbers, booleans and choices as they are, durations in ns, rates in bytes/s, other
//! numbers in units of 2^-16. Its observed fields are whole numbers, `u64::MAX` standing for "none yet".

use std::mem::offset_of;

use crate::controller::{Control, Controller};
use crate::event::{Ack, AckSample, Loss, PathInfo, Resume, Timeout, Undo};
use crate::event_log::Event;
use crate::registry::{self, Kind, Params, Spec};

/// Callbacks of a C algorithm: `struct cc_native` of `bpf/include/cc_native.h`.
#[repr(C)]
#[derive(Debug)]
pub(crate) struct Vtable {
    state_bytes: u64,
    params: u64,
    fields: u64,
    init: unsafe extern "C" fn(*mut u64, *const PathInfo, *const u64),
    on_ack: unsafe extern "C" fn(*mut u64, *const AckSample),
    answer: unsafe extern "C" fn(*mut u64, *const AckSample) -> Control,
    on_loss: unsafe extern "C" fn(*mut u64, *const Loss),
    on_rto: unsafe extern "C" fn(*mut u64, *const Timeout),
    on_spurious_loss: unsafe extern "C" fn(*mut u64, *const Undo),
    on_resume: unsafe extern "C" fn(*mut u64, *const Resume),
    on_path_change: unsafe extern "C" fn(*mut u64, *const PathInfo),
    on_timer: unsafe extern "C" fn(*mut u64, u64),
    control: unsafe extern "C" fn(*const u64) -> Control,
    observe: unsafe extern "C" fn(*const u64, *mut u64),
    set_cap: Option<unsafe extern "C" fn(*mut u64, *const u64, u64)>,
}

/// Defines `build` for the C algorithm `bpf/algorithms/$name.h`, whose shim exports the symbol `$symbol`.
macro_rules! algorithm {
    ($symbol:ident) => {
        fn build(
            params: &$crate::registry::Params,
            path: &$crate::event::PathInfo,
        ) -> Box<dyn $crate::controller::Controller> {
            unsafe extern "C" {
                static $symbol: $crate::native::Vtable;
            }
            // SAFETY: the build script compiles this symbol from `CC_NATIVE`, whose struct `Vtable` mirrors; it is constant.
            let vtable = unsafe { &$symbol };
            Box::new($crate::native::Native::new(vtable, params, path))
        }
    };
}
pub(crate) use algorithm;

/// More fields than any algorithm observes.
const MAX_FIELDS: usize = 32;

/// A C algorithm with its state.
pub(crate) struct Native {
    vtable: &'static Vtable,
    /// `state_bytes` rounded up to words, which also aligns it.
    state: Box<[u64]>,
}

impl Native {
    /// Makes the algorithm of `vtable` for `path`.
    pub(crate) fn new(vtable: &'static Vtable, params: &Params, path: &PathInfo) -> Self {
        Self::with_integers(vtable, &to_integers(params), path)
    }

    fn with_integers(vtable: &'static Vtable, values: &[u64], path: &PathInfo) -> Self {
        // Both are mistakes in an algorithm's own files; the registry's test builds every algorithm.
        assert_eq!(values.len() as u64, vtable.params, "parameter table and C struct differ");
        assert!(vtable.fields <= MAX_FIELDS as u64, "more fields than MAX_FIELDS");
        let mut state = vec![0_u64; vtable.state_bytes.div_ceil(8) as usize].into_boxed_slice();
        // SAFETY: `state` has room for the C struct and its alignment (asserted in C), `values` has as many words as the
        // params struct; both outlive the call, which keeps no pointer.
        unsafe { (vtable.init)(state.as_mut_ptr(), path, values.as_ptr()) };
        Self { vtable, state }
    }

    /// The observed fields as C writes them.
    fn observed(&self) -> ([u64; MAX_FIELDS], usize) {
        let mut values = [u64::MAX; MAX_FIELDS];
        // SAFETY: `state` is only read; the algorithm writes `fields` values, at most MAX_FIELDS (checked in `new`).
        unsafe { (self.vtable.observe)(self.state.as_ptr(), values.as_mut_ptr()) };
        (values, self.vtable.fields as usize)
    }
}

/// Parameters as C sees them, in the order of the table.
fn to_integers(params: &Params) -> Vec<u64> {
    params.iter().map(|(row, v)| to_integer(row.kind, v)).collect()
}

/// A parameter as C sees it. Values are within the table's range, which holds no negative number for a C algorithm.
fn to_integer(kind: Kind, value: f64) -> u64 {
    let scaled = match kind {
        Kind::Integer | Kind::Bool | Kind::Choice(_) => value,
        Kind::Duration => value * 1e9,
        Kind::Rate => value / 8.0,
        Kind::Number => value * 65536.0,
    };
    // The cast saturates.
    libm::round(scaled) as u64
}

/// An algorithm in integer C as the kernel's loader needs it: what its state is, as bytes that another machine code wrote.
#[derive(Clone, Copy, Debug)]
pub struct Portable {
    spec: &'static Spec,
    vtable: &'static Vtable,
}

/// Every algorithm of `bpf/algorithms`, as the build script lists them.
mod generated {
    use super::Vtable;

    include!(concat!(env!("OUT_DIR"), "/algorithms.rs"));

    pub(super) fn find(name: &str) -> Option<&'static Vtable> {
        ALL.iter().find(|(known, _)| *known == name).map(|(_, vtable)| *vtable)
    }
}

impl Portable {
    /// The algorithm of this name, if it is one in integer C.
    pub fn find(name: &str) -> Option<Self> {
        Some(Self { spec: registry::find(name)?, vtable: generated::find(name)? })
    }

    /// Its entry in the registry.
    pub fn spec(&self) -> &'static Spec {
        self.spec
    }

    /// Size of its state.
    pub fn state_bytes(&self) -> usize {
        self.vtable.state_bytes as usize
    }

    /// `params` as the C struct of its parameters holds them.
    pub fn to_integers(&self, params: &Params) -> Vec<u64> {
        to_integers(params)
    }

    /// Whether `params` can be [`Self::to_integers`] of some parameters; the error says what is wrong.
    ///
    /// # Errors
    /// Another number of parameters than the table's, or a value out of its range.
    pub fn check(&self, params: &[u64]) -> Result<(), String> {
        let table = self.spec.params;
        if params.len() != table.len() {
            return Err(format!(
                "{} parameters; {} has {}",
                params.len(),
                self.spec.name,
                table.len()
            ));
        }
        for (row, value) in table.iter().zip(params) {
            let (least, most) = (to_integer(row.kind, row.min), to_integer(row.kind, row.max));
            if !(least..=most).contains(value) {
                let name = row.name;
                return Err(format!("{name} is {value}; allowed: {least} to {most}"));
            }
        }
        Ok(())
    }

    /// Whether the algorithm itself knows of caps.
    pub fn knows_caps(&self) -> bool {
        self.vtable.set_cap.is_some()
    }

    /// Makes the algorithm for `path`, with parameters as [`Self::to_integers`] has them.
    ///
    /// # Errors
    /// As of [`Self::check`].
    pub fn start(&self, path: &PathInfo, params: &[u64]) -> Result<Instance, String> {
        self.check(params)?;
        let native = Native::with_integers(self.vtable, params, path);
        Ok(Instance { native, params: params.into() })
    }

    /// What `observe` says of a state, one value per field of the table, NaN where there is none yet. `None` if `state` has
    /// another size.
    pub fn observe(&self, state: &[u8]) -> Option<Vec<f64>> {
        if state.len() != self.state_bytes() {
            return None;
        }
        let words = state.chunks(8).map(|chunk| {
            let mut word = [0; 8];
            word[..chunk.len()].copy_from_slice(chunk);
            u64::from_ne_bytes(word)
        });
        let native = Native { vtable: self.vtable, state: words.collect() };
        let mut values = vec![f64::NAN; self.spec.fields.len()];
        native.observe(&mut values);
        Some(values)
    }
}

/// An algorithm in integer C that hears recorded events.
pub struct Instance {
    native: Native,
    params: Box<[u64]>,
}

impl Instance {
    /// Whether it knows of caps.
    pub(crate) fn knows_caps(&self) -> bool {
        self.native.vtable.set_cap.is_some()
    }

    /// Tells it an event. A cap that it does not know of changes nothing.
    pub fn hear(&mut self, event: &Event) {
        let native = &mut self.native;
        match event {
            Event::Ack(sample) => native.on_ack(&Ack { sample: *sample, hops: &[] }),
            Event::Loss(loss) => native.on_loss(loss),
            Event::Rto(timeout) => native.on_rto(timeout),
            Event::SpuriousLoss(undo) => native.on_spurious_loss(undo),
            Event::Resume(resume) => native.on_resume(resume),
            Event::PathChange(path) => native.on_path_change(path),
            Event::Timer(now_ns) => native.on_timer(*now_ns),
            Event::Cap(bytes_per_s) => {
                let Some(set_cap) = native.vtable.set_cap else { return };
                // SAFETY: `state` was made for this vtable and is exclusively borrowed; `params` has as many words as the C struct
                // (checked in `start`); the call keeps no pointer.
                unsafe { set_cap(native.state.as_mut_ptr(), self.params.as_ptr(), *bytes_per_s) }
            }
        }
    }

    /// What it asks of its host.
    pub fn control(&self) -> Control {
        self.native.control()
    }

    /// Its fields as whole numbers, `u64::MAX` where there is none yet.
    pub fn observed(&self) -> Vec<u64> {
        let (values, fields) = self.native.observed();
        values[..fields].to_vec()
    }

    /// Its fields, as a controller's [`Controller::observe`] has them.
    pub(crate) fn observe(&self, out: &mut [f64]) {
        self.native.observe(out);
    }
}

impl Controller for Native {
    fn on_ack(&mut self, ack: &Ack<'_>) {
        // SAFETY: here and below: `state` was made for this vtable and is exclusively borrowed; the event outlives the call.
        unsafe { (self.vtable.on_ack)(self.state.as_mut_ptr(), &ack.sample) }
    }

    fn on_loss(&mut self, loss: &Loss) {
        // SAFETY: as in `on_ack`.
        unsafe { (self.vtable.on_loss)(self.state.as_mut_ptr(), loss) }
    }

    fn on_rto(&mut self, timeout: &Timeout) {
        // SAFETY: as in `on_ack`.
        unsafe { (self.vtable.on_rto)(self.state.as_mut_ptr(), timeout) }
    }

    fn on_spurious_loss(&mut self, undo: &Undo) {
        // SAFETY: as in `on_ack`.
        unsafe { (self.vtable.on_spurious_loss)(self.state.as_mut_ptr(), undo) }
    }

    fn on_resume(&mut self, resume: &Resume) {
        // SAFETY: as in `on_ack`.
        unsafe { (self.vtable.on_resume)(self.state.as_mut_ptr(), resume) }
    }

    fn on_path_change(&mut self, path: &PathInfo) {
        // SAFETY: as in `on_ack`.
        unsafe { (self.vtable.on_path_change)(self.state.as_mut_ptr(), path) }
    }

    fn on_timer(&mut self, now_ns: u64) {
        // SAFETY: as in `on_ack`.
        unsafe { (self.vtable.on_timer)(self.state.as_mut_ptr(), now_ns) }
    }

    fn control(&self) -> Control {
        // SAFETY: `state` was made for this vtable and is only read. Returned by value, C writes it where the host reads it: a copy
        // in one piece of what was just written piece by piece would have to wait for it.
        unsafe { (self.vtable.control)(self.state.as_ptr()) }
    }

    fn answer(&mut self, ack: &Ack<'_>) -> Control {
        // SAFETY: as in `on_ack`.
        unsafe { (self.vtable.answer)(self.state.as_mut_ptr(), &ack.sample) }
    }

    fn observe(&self, out: &mut [f64]) {
        let (values, fields) = self.observed();
        for (slot, value) in out.iter_mut().zip(&values[..fields]) {
            *slot = if *value == u64::MAX { f64::NAN } else { *value as f64 };
        }
    }
}

/// The C side asserts the same numbers in `bpf/include/cc_abi.h`.
macro_rules! layout {
    ($type:ty, $bytes:literal, $($field:ident: $offset:literal),+) => {
        const _: () = {
            assert!(size_of::<$type>() == $bytes && align_of::<$type>() == 8);
            $(assert!(offset_of!($type, $field) == $offset);)+
        };
    };
}

layout!(PathInfo, 24, now_ns: 0, packet_bytes: 8, initial_window_packets: 12, seed: 16);
layout!(AckSample, 144, now_ns: 0, acked_bytes: 8, acked_packets: 16, ce_packets: 20, in_flight_bytes: 24,
    prior_in_flight_bytes: 32, rtt_ns: 40, srtt_ns: 48, min_rtt_ns: 56, ack_delay_ns: 64, one_way_delay_ns: 72,
    sent_ns: 80, delivered_bytes: 88, interval_ns: 96, delivered_total_bytes: 104, prior_delivered_total_bytes: 112,
    tx_in_flight_bytes: 120, lost_since_sent_bytes: 128, flags: 136, burst_bytes: 140);
layout!(Loss, 64, now_ns: 0, lost_bytes: 8, newest_lost_sent_ns: 16, in_flight_bytes: 24, prior_in_flight_bytes: 32,
    lost_packets: 40, flags: 44, tx_in_flight_bytes: 48, lost_since_sent_bytes: 56);
layout!(Timeout, 24, now_ns: 0, in_flight_bytes: 8, consecutive: 16, reserved: 20);
layout!(Undo, 16, now_ns: 0, started_ns: 8);
layout!(Resume, 16, now_ns: 0, idle_ns: 8);
layout!(Control, 40, cwnd_bytes: 0, pacing_bytes_per_s: 8, send_quantum_bytes: 16, next_timer_ns: 24, timeout_ns: 32);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_state_as_bytes_tells_what_it_told_as_words() {
        let spec = registry::find("reno").unwrap();
        let path = PathInfo { now_ns: 0, packet_bytes: 1500, initial_window_packets: 10, seed: 1 };
        let mut params = spec.params(None).unwrap();
        params.set("initial_ssthresh", 100.0).unwrap();
        let portable = Portable::find("reno").unwrap();
        let native = Native::new(portable.vtable, &params, &path);
        let mut told = vec![0.0; spec.fields.len()];
        native.observe(&mut told);
        let bytes: Vec<u8> = native.state.iter().flat_map(|word| word.to_ne_bytes()).collect();
        assert_eq!(portable.observe(&bytes[..portable.state_bytes()]), Some(told));
        assert_eq!(portable.observe(&bytes[1..]), None);
        assert!(Portable::find("cubic").is_none());
    }
}
