//! The fuzz targets, compiled and run as ordinary functions: they stay in order where there is neither a nightly compiler nor
//! libFuzzer. `cargo +nightly fuzz run TARGET` runs them with it (CONTRIBUTING.md).

// `controller` and `events` share a file, each in its own binary but here.
#![allow(clippy::duplicate_mod)]

// To the targets this crate is libfuzzer_sys, with a macro of the same form.
extern crate self as libfuzzer_sys;

/// Makes the target a function.
#[macro_export]
macro_rules! fuzz_target {
    (init: $init:expr, |$bytes:ident: &[u8]| $body:expr) => {
        libfuzzer_sys::fuzz_target!(|$bytes: &[u8]| $body);
    };
    (|$bytes:ident: &[u8]| $body:expr) => {
        pub fn run($bytes: &[u8]) {
            $body
        }
    };
}

macro_rules! targets {
    ($($name:ident: $path:literal),*) => {
        $(
            #[allow(unused_attributes, dead_code)] // `no_main`; entrances for the other tests
            #[path = $path]
            mod $name;
        )*
        const TARGETS: &[(&str, fn(&[u8]))] = &[$((stringify!($name), $name::run)),*];
    };
}

targets! {
    controller: "../../../fuzz/fuzz_targets/controller.rs",
    events: "../../../fuzz/fuzz_targets/events.rs",
    trace: "../../../fuzz/fuzz_targets/trace.rs",
    scenario: "../../../fuzz/fuzz_targets/scenario.rs",
    record: "../../../fuzz/fuzz_targets/record.rs"
}

use std::fs;
use std::path::Path;

use proptest::collection::vec;
use proptest::prelude::*;

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..Default::default() })]

    #[test]
    fn any_bytes_are_survived(bytes in vec(any::<u8>(), 0..400)) {
        for (_, run) in TARGETS {
            run(&bytes);
        }
    }
}

#[test]
fn the_seeds_are_survived() {
    let scenarios = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scenarios");
    let mut seeds = vec![Vec::new()];
    for entry in fs::read_dir(scenarios).expect("a folder of scenarios") {
        let path = entry.expect("a readable folder").path();
        if path.is_file() {
            seeds.push(fs::read(path).expect("a readable file"));
        }
    }
    assert!(seeds.len() > 5);
    for (_, run) in TARGETS {
        seeds.iter().for_each(|seed| run(seed));
    }
}

#[test]
fn every_target_is_here_and_in_the_manifest() {
    let fuzz = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz");
    let manifest = fs::read_to_string(fuzz.join("Cargo.toml")).expect("fuzz/Cargo.toml");
    let targets = fs::read_dir(fuzz.join("fuzz_targets")).expect("a folder of targets");
    assert_eq!(targets.count(), TARGETS.len());
    for (name, _) in TARGETS {
        assert!(manifest.contains(&format!("path = \"fuzz_targets/{name}.rs\"")), "{name}");
    }
}
