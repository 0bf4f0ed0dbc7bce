//! Reads bytes as a scenario with overrides.
//!
//! `fuzz/fuzz_targets/scenario.rs` includes this file by path and calls [`any`] with its input; `tests/scenario_fuzz.rs` feeds it
//! texts and their mutations.

use std::path::Path;

use paceline_lab::scenario::Scenario;

/// Text first; what follows a NUL is an override, `key=value`. Panics where the reader breaks its word.
pub fn any(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    let mut parts = text.split('\0');
    let scenario = parts.next().unwrap_or_default();
    attempt(scenario, &parts.map(String::from).collect::<Vec<_>>());
}

/// The outcome is a plan, or an error of one line that begins with its place.
pub fn attempt(text: &str, overrides: &[String]) {
    match Scenario::parse(text, "fuzz.toml", Path::new("no-such-dir"), overrides) {
        Ok(scenario) => {
            // Accepted: then everything else must work or fail politely, too.
            if scenario.flows().len() <= 1000 {
                let _ = scenario.plan(Some(u64::MAX)).map(|plan| plan.flows.len());
                let _ = scenario.with_controller("window,packets=3").map(|s| s.flows().len());
            }
        }
        Err(error) => {
            let said = error.to_string();
            assert!(said.starts_with("fuzz.toml:") || said.starts_with("--set "), "{said}");
            assert!(!said.contains('\n'), "{said:?}");
        }
    }
}
