//! What a flow costs in memory, counted by the allocator.

mod common;

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::ops::ControlFlow;
use std::sync::Arc;

use common::*;
use paceline_cc::PathInfo;
use paceline_cc::registry::{self, Params, Spec};
use paceline_net::{PS_PER_S, PS_PER_US};
use paceline_sim::{FlowPlan, Outcome, Plan, run_watched};

/// The system's allocator, with a count of the bytes that this thread has asked for and not given back.
struct Counting;

thread_local! {
    static HELD: Cell<isize> = const { Cell::new(0) };
}

fn count(bytes: isize) {
    HELD.with(|held| held.set(held.get() + bytes));
}

// SAFETY: everything is passed on to the system's allocator as it came; counting allocates nothing.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count(layout.size() as isize);
        // SAFETY: as the caller promises.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        count(-(layout.size() as isize));
        // SAFETY: as the caller promises.
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// Bytes that a run holds at its first sample, with all that its plan has left behind, and what came of it.
fn held_at_first_sample(plan: impl FnOnce() -> Plan) -> (f64, Outcome) {
    let before = HELD.get();
    let mut held = None;
    let outcome = run_watched(plan(), &mut |_| {
        held.get_or_insert(HELD.get() - before);
        ControlFlow::Continue(())
    });
    let outcome = outcome.expect("a valid plan").expect("nothing broke it off");
    (held.expect("a sample") as f64, outcome)
}

/// One of many CUBIC flows over links 0 and 1, which share their parameters as those of a scenario do.
fn one_of_many(number: usize, params: &Arc<Params>) -> FlowPlan {
    let params = Arc::clone(params);
    let controller = Box::new(move |path: &PathInfo| (cubic().build)(&params, path));
    FlowPlan { name: format!("flow-{number}"), ..tcp(controller) }
}

fn cubic() -> &'static Spec {
    registry::find("cubic").expect("a built-in controller")
}

fn cubic_params() -> Arc<Params> {
    Arc::new(cubic().params(None).expect("no profile is always right"))
}

/// Up to 300,000 sources wait in one experiment of NIST's; what each costs before its turn is what they all cost.
#[test]
fn a_flow_that_has_not_begun_costs_at_most_128_bytes() {
    let plan = |flows: usize| {
        let params = cubic_params();
        let flow = |number| FlowPlan {
            start_ps: if number == 0 { 0 } else { PS_PER_S },
            ..one_of_many(number, &params)
        };
        let links = vec![bottleneck(10e6, 10.0, 20), delay(10.0)];
        let mut plan = plan(links, (0..flows).map(flow).collect(), 0.5, 0.0);
        plan.sample_ps = PS_PER_S / 2;
        plan
    };
    let [few, many] = [1_000, 100_000].map(|flows| held_at_first_sample(|| plan(flows)).0);
    let per_flow = (many - few) / 99_000.0;
    println!("{per_flow:.1} bytes per flow that has not begun");
    assert!(per_flow <= 128.0, "{per_flow:.1} bytes per flow that has not begun");
}

/// What an active flow may cost at most beside its packets, bytes. Sender and receiver alone take 736, an unacknowledged segment 32,
/// in a ring with room to spare.
const MOST: f64 = 2048.0;

/// Everything that grows with the flows counts: state of both ends, records of unacknowledged segments, controller, tables,
/// distributions, alarms, the ACKs on the way and the unused part of every ring. Taken off are 32 bytes for each data packet on
/// the way and 8 bytes for each value in the time series: one sample of 13.
#[test]
fn an_active_flow_costs_at_most_2048_bytes() {
    const FLOWS: usize = 1_000;
    let plan = |flows: usize| {
        let params = cubic_params();
        let flow = |number| FlowPlan {
            start_ps: number as u64 * 20 * PS_PER_US,
            ..one_of_many(number, &params)
        };
        let links = vec![bottleneck(2e9, 10.0, 3333), delay(10.0)];
        let mut plan = plan(links, (0..flows).map(flow).collect(), 5.0, 0.0);
        plan.sample_ps = 5 * PS_PER_S;
        plan
    };
    let (held, outcome) = held_at_first_sample(|| plan(FLOWS));
    // Some still knock, their opening packets dropped.
    let active = outcome.flows.iter().filter(|flow| flow.rtt_ms.is_some()).count();
    assert!(active > FLOWS * 99 / 100, "{active} of {FLOWS} flows are active");
    let in_flight: u64 = outcome.flows.iter().map(|flow| flow.in_flight_packets).sum();
    let columns: usize = outcome.flows.iter().map(|flow| 1 + flow.series.columns().len()).sum();
    let per_flow = (held - 32.0 * in_flight as f64 - 8.0 * columns as f64) / active as f64;
    let own = outcome.engine.bytes_per_flow;
    println!(
        "{per_flow:.1} bytes per active flow beside {:.1} packets; by the engine's account {own:.1}",
        in_flight as f64 / active as f64,
    );
    assert!(per_flow <= MOST, "{per_flow:.1} bytes per active flow");
    // It leaves out the controller, the scoreboard and the queues of both ends.
    assert!((per_flow / 4.0..per_flow).contains(&own), "{own:.1} of {per_flow:.1} bytes");
}
