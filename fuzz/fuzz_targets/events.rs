//! Any file, as a recording of a controller's events: flows that can be told once more, or an error.
#![no_main]

#[path = "../../crates/cc/tests/drive/events.rs"]
mod drive;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| drive::any(bytes));
