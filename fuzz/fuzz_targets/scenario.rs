//! Any text, as a scenario with overrides: a plan, or an error.
#![no_main]

#[path = "../../crates/lab/tests/drive/scenario.rs"]
mod drive;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| drive::any(bytes));
