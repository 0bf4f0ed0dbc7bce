//! Any events, for any registered controller: what a controller promises holds after each.
#![no_main]

#[path = "../../crates/cc/tests/drive/mod.rs"]
mod drive;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| drive::any(bytes));
