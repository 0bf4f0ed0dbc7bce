//! The contest's published figures on its own trace (CS 244 report, Kumar 2017), reproduced with the contest's hosts:
//! millisecond clocks, a blocking sender, 0.06 ms of processing. Data goes queue, then 20 ms; ACKs 20 ms, then queue, as two
//! nested emulator shells have it.

mod common;

use common::*;
use paceline_cc::Needs;
use paceline_net::{PS_PER_US, Trace};
use paceline_sim::{ControllerFactory, DatagramOptions, FlowOutcome, PacketSizes, Stack};

/// 140 s on Verizon-LTE-short; `None` (and a line saying so) without the trace.
fn contest(controller: ControllerFactory, overhead_us: u64) -> Option<FlowOutcome> {
    let traces = [".down", ".up"].map(|end| {
        let path = traces_folder()?.join(format!("Verizon-LTE-short{end}"));
        Trace::load(&path).ok()
    });
    let [Some(down), Some(up)] = traces else {
        println!("skipped: no cellular traces here (PACELINE_TRACES names their folder)");
        return None;
    };
    let mut flow = tcp(controller);
    flow.stack = Stack::Datagram(DatagramOptions {
        blocking: true,
        overhead_ps: overhead_us * PS_PER_US,
        clock_ps: MS,
    });
    flow.needs = Needs::PACING;
    (flow.forward, flow.reverse) = (vec![0, 1], vec![2, 3]);
    flow.packets = PacketSizes { data_bytes: 1504, header_bytes: 80, ack_bytes: 80 };
    let links = vec![traced(down), delay(20.0), delay(20.0), traced(up)];
    Some(run_checked(plan(links, vec![flow], 140.0, 0.0)).flows.remove(0))
}

fn report(name: &str, flow: &FlowOutcome) {
    println!(
        "{name}: {:.3} Mbit/s, utilisation {:.1} %, queue p95 {:.0} ms, signal {:.0} ms, power {:.2}",
        flow.throughput_bps / 1e6,
        flow.throughput_bps / 5.0411e6 * 100.0,
        flow.queueing_delay_ms.unwrap().p95,
        flow.signal_delay_p95_ms.unwrap(),
        flow.power_score.unwrap()
    );
}

#[test]
fn explore() {
    for oh in [0, 20, 60, 120, 200] {
        println!("--- {oh}");
        if let Some(f) = contest(registered("window", None, &[("packets", 12.0)]), oh) { report("window 12", &f); }
        if let Some(f) = contest(registered("aimd", None, &[]), oh) { report("aimd", &f); }
        if let Some(f) = contest(registered("latte", Some("released"), &[]), oh) { report("latte released", &f); }
        if let Some(f) = contest(registered("latte", Some("report"), &[]), oh) { report("latte report", &f); }
        if let Some(f) = contest(registered("latte", Some("released"), &[("lambda_mode", 1.0), ("lambda", 1.7)]), oh) { report("latte 1.7", &f); }
        if let Some(f) = contest(registered("latte", Some("report"), &[("lambda_mode", 1.0), ("lambda", 1.7)]), oh) { report("latte report 1.7", &f); }
    }
}
