//! Any files, as those of a record: its content, or an error.
#![no_main]

#[path = "../../crates/lab/tests/drive/record.rs"]
mod drive;

libfuzzer_sys::fuzz_target!(init: drive::forgive_caught_panics(), |bytes: &[u8]| drive::any(bytes));
