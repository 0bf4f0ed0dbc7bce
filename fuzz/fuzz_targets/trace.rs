//! Any file, as a mahimahi trace, a list of rates and the log of a link: something that can be used, or an error.
#![no_main]

#[path = "../../crates/net/tests/drive/mod.rs"]
mod drive;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| drive::any(bytes));
