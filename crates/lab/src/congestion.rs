//! Which congestion control of a kernel carries a TCP flow outside the simulator: the kernel's own, or ours by BPF.
//!
//! The rule: what the kernel has itself and what is asked for without parameters (or as the profile `linux`) is the kernel's own; anything
//! else of `bpf/algorithms` is loaded with its parameters for the time of the run. So `reno` is the kernel's and `mpc` ours.

use std::process;
use std::sync::atomic::{AtomicU32, Ordering};

use paceline_cc::{Needs, Portable};
use paceline_kernel::{Error, Request};
use paceline_live::{Congestion, Loaded};
use paceline_sim::Stack;

use crate::scenario::{ControllerChoice, Flow, Scenario};

/// The algorithm to load for `choice`; `None` where the kernel's own is meant, or nothing of ours can be.
fn portable(choice: &ControllerChoice) -> Option<Portable> {
    if paceline_live::kernel_name(&choice.label()).is_some() {
        return None;
    }
    let loadable = paceline_kernel::algorithms().any(|name| name == choice.spec().name);
    // A guest may have the name of one of ours.
    let ours = Portable::find(choice.spec().name)
        .filter(|portable| std::ptr::eq(portable.spec(), choice.spec()));
    ours.filter(|_| loadable)
}

/// Whether `flow` is a TCP flow under a controller of ours that is loaded into the kernel.
pub(crate) fn is_loaded(flow: &Flow) -> bool {
    matches!(flow.stack, Stack::Tcp(_)) && portable(&flow.controller).is_some()
}

/// Loads what the TCP flows of `scenario` need, each choice once.
///
/// # Errors
/// A kernel, a user or a build that cannot.
pub(crate) fn load(scenario: &Scenario) -> Result<Loaded, Error> {
    static NUMBER: AtomicU32 = AtomicU32::new(0);
    let mut held = Vec::new();
    let mut known: Vec<(String, Congestion)> = Vec::new();
    let mut of_flows = Vec::new();
    for flow in scenario.flows() {
        let algorithm = portable(&flow.controller).filter(|_| is_loaded(flow));
        let Some(algorithm) = algorithm else {
            of_flows.push(None);
            continue;
        };
        let label = flow.controller.label();
        if let Some((_, congestion)) = known.iter().find(|(known, _)| *known == label) {
            of_flows.push(Some(congestion.clone()));
            continue;
        }
        // Runs beside each other, and what the user has loaded, have names of their own.
        let number = NUMBER.fetch_add(1, Ordering::Relaxed) % 10_000;
        let name = format!("pl_{:x}_{number}", process::id());
        let params = flow.controller.params().clone();
        let name_of = Some(name.clone());
        let request = Request { algorithm, params, name: name_of, record: false };
        held.push(paceline_kernel::hold(&request)?);
        let paces = Needs::PACING.missing_from(flow.controller.spec().needs).is_empty();
        let congestion = Congestion { name, paces };
        known.push((label, congestion.clone()));
        of_flows.push(Some(congestion));
    }
    let hold: Option<Box<dyn Send>> = if held.is_empty() { None } else { Some(Box::new(held)) };
    Ok(Loaded { of_flows, hold })
}
