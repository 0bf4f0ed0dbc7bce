//! The contest's published figures on its own trace (CS 244 report, Kumar 2017), reproduced with the contest's hosts:
//! millisecond clocks, a blocking sender, 0.1 ms of processing. Data goes queue, then 20 ms; ACKs 20 ms, then queue, as two
//! nested emulator shells have it.

mod common;

use std::io::Write;

use common::*;
use paceline_cc::Needs;
use paceline_net::{PS_PER_US, Trace};
use paceline_sim::{ControllerFactory, DatagramOptions, FlowOutcome, PacketSizes, Stack};

/// Says why a test cannot run here, past the test harness, which hides what passing tests print.
fn skip(reason: &str) {
    let line = format!("\nSKIPPED contest figures: {reason}\n");
    let _ = std::io::stderr().write_all(line.as_bytes());
}

/// 140 s on Verizon-LTE-short; `None` (and a line saying so) without the trace.
fn contest(controller: ControllerFactory, overhead_us: u64) -> Option<FlowOutcome> {
    let traces = [".down", ".up"].map(|end| {
        let path = traces_folder()?.join(format!("Verizon-LTE-short{end}"));
        Trace::load(&path).ok()
    });
    let [Some(down), Some(up)] = traces else {
        skip("no cellular traces (PACELINE_TRACES names their folder)");
        return None;
    };
    let mut flow = tcp(controller);
    flow.stack = Stack::Datagram(DatagramOptions {
        blocking: true,
        overhead_ps: overhead_us * PS_PER_US,
        clock_ps: MS,
        ..DatagramOptions::default()
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

/// Processing time that the published host is taken to have had, µs. Chosen so that Latte's utilisation falls within the
/// 76-80 % that the report and reruns of it show (0: 80.6 %, 60: 80.1 %, 200: 77.3 %); everything else here judges it.
const OVERHEAD_US: u64 = 100;

/// Throughput, Mbit/s, and 95th-percentile signal delay, ms; each within `tolerance`.
fn check_figures(flow: &FlowOutcome, mbps: f64, signal_ms: f64, tolerance: f64) {
    assert_near(flow.throughput_bps / 1e6, mbps, tolerance);
    assert_near(flow.signal_delay_p95_ms.unwrap(), signal_ms, tolerance);
}

#[test]
fn fixed_window_12() {
    let window = registered("window", None, &[("packets", 12.0)]);
    let Some(flow) = contest(window, OVERHEAD_US) else { return };
    report("window 12 (published 2.28 Mbit/s, 177 ms)", &flow);
    check_figures(&flow, 2.28, 177.0, 0.03);
}

#[test]
fn aimd() {
    let Some(flow) = contest(registered("aimd", None, &[]), OVERHEAD_US) else { return };
    report("AIMD (published 5.00 Mbit/s, 1778 ms)", &flow);
    check_figures(&flow, 5.00, 1778.0, 0.05);
}

#[test]
fn latte_final() {
    let latte = registered("latte", Some("released"), &[]);
    let Some(flow) = contest(latte, OVERHEAD_US) else { return };
    report("Latte (published power 41.18, utilisation 76 %)", &flow);
    let power = flow.power_score.unwrap();
    assert!((power - 41.2).abs() <= 1.5, "power {power}");
    let utilisation = flow.throughput_bps / 5.041e6;
    assert!((0.76..=0.80).contains(&utilisation), "utilisation {utilisation}");
}

#[test]
fn latte_with_lambda_1_7() {
    let fixed = [("lambda_mode", 1.0), ("lambda", 1.7)];
    let Some(flow) = contest(registered("latte", Some("released"), &fixed), OVERHEAD_US) else {
        return;
    };
    report("Latte, lambda 1.7 (published power 42.56)", &flow);
    let power = flow.power_score.unwrap();
    assert!((power - 42.6).abs() <= 1.5, "power {power}");
}

/// Part C. Reruns of the released code gave 4.62 and 4.65 Mbit/s, at 415 and 301 ms: one stall decides.
#[test]
fn delay_threshold_75_ms() {
    let Some(flow) = contest(registered("delay-threshold", None, &[]), OVERHEAD_US) else { return };
    report("delay threshold 75 ms (published 4.61 Mbit/s, 299 ms)", &flow);
    assert_near(flow.throughput_bps / 1e6, 4.61, 0.03);
    let signal_ms = flow.signal_delay_p95_ms.unwrap();
    assert!((270.0..=420.0).contains(&signal_ms), "{signal_ms}");
}

/// Reruns of the released code gave 3.19 Mbit/s and 146 ms.
#[test]
fn rtt_aimd_120_ms() {
    let Some(flow) = contest(registered("rtt-aimd", None, &[]), OVERHEAD_US) else { return };
    report("RTT + AIMD 120 ms (published 3.10 Mbit/s, 142 ms, power 21.8)", &flow);
    check_figures(&flow, 3.10, 142.0, 0.05);
}

/// The report's own first version: no gradient cut, the gap gamma / B.
#[test]
fn latte_of_the_report() {
    let latte = registered("latte", Some("report-fixed"), &[]);
    let Some(flow) = contest(latte, OVERHEAD_US) else { return };
    report("Latte of the report, lambda 1.7 (published power 42.56, 75.9 %)", &flow);
    let power = flow.power_score.unwrap();
    assert!((power - 42.56).abs() <= 1.5, "power {power}");
}

/// What the report tried and dropped has no published figures; it scored below Latte.
#[test]
fn what_the_report_dropped_scores_less() {
    for name in ["exp-penalty", "rtt-gradient", "cycle-gain"] {
        let Some(flow) = contest(registered(name, None, &[]), OVERHEAD_US) else { return };
        report(name, &flow);
        assert!(flow.power_score.unwrap() < 41.0);
    }
}
