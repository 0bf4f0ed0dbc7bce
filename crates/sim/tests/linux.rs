//! The simulator's TCP against what real Linux TCP did (Debian's 6.1 under virtual time: tbf bottleneck, netem on the way
//! back, one bulk flow). Utilisation is payload over link rate after the first quarter of the run, RTT the mean of the smoothed
//! one in it; windows are in packets.

mod common;

use common::*;
use paceline_cc::registry;
use paceline_net::queue::{QueueSpec, TokenBucketSpec};
use paceline_net::{Buffer, LinkSpec, LossModel};
use paceline_sim::{FlowOutcome, Outcome, PacketSizes, Stack, TcpOptions};

const SECONDS: f64 = 30.0;

/// One row of the reference, 20 Mbit/s and 40 ms: controller, buffer in packets, utilisation, mean SRTT in ms, least and largest
/// window of samples once a second.
const REFERENCE: [(&str, u64, f64, f64, f64, f64); 24] = [
    ("reno", 33, 0.911, 47.143, 51.0, 96.0),
    ("reno", 267, 0.952, 162.353, 173.0, 334.0),
    ("cubic", 33, 0.957, 56.000, 81.0, 100.0),
    ("cubic", 267, 0.955, 172.142, 237.0, 333.0),
    ("bic", 33, 0.958, 58.016, 81.0, 100.0),
    ("bic", 267, 0.957, 188.737, 279.0, 344.0),
    ("hstcp", 33, 0.939, 49.208, 58.0, 99.0),
    ("hstcp", 267, 0.972, 165.470, 207.0, 331.0),
    ("htcp", 33, 0.956, 52.244, 67.0, 101.0),
    ("htcp", 267, 0.956, 143.497, 173.0, 342.0),
    ("scalable", 33, 0.954, 56.896, 88.0, 100.0),
    ("scalable", 267, 0.957, 189.971, 295.0, 331.0),
    ("westwood", 33, 0.947, 51.734, 66.0, 100.0),
    ("westwood", 267, 0.953, 142.875, 148.0, 307.0),
    ("bbr1", 33, 0.937, 44.400, 144.0, 150.0),
    ("bbr1", 267, 0.940, 43.165, 4.0, 150.0),
    ("illinois", 33, 0.944, 53.481, 72.0, 98.0),
    ("illinois", 267, 0.971, 153.125, 219.0, 281.0),
    ("vegas", 33, 0.959, 43.114, 70.0, 71.0),
    ("vegas", 267, 0.949, 43.683, 70.0, 72.0),
    ("yeah", 33, 0.915, 47.703, 50.0, 95.0),
    ("yeah", 267, 0.942, 152.152, 171.0, 319.0),
    ("cdg", 33, 0.863, 41.971, 36.0, 78.0),
    ("cdg", 267, 0.896, 43.440, 52.0, 85.0),
];

/// A path as the testbed has it.
#[derive(Clone, Copy, PartialEq)]
struct Path {
    mbit: f64,
    rtt_ms: f64,
    buffer_packets: u64,
    loss: f64,
}

fn outcome(name: &str, path: &Path, seed: u64) -> Outcome {
    let bucket = TokenBucketSpec {
        rate_bps: path.mbit * 1e6,
        burst_bytes: 3028,
        child: Box::new(QueueSpec::DropTail),
    };
    let forward = LinkSpec {
        queue: QueueSpec::TokenBucket(bucket),
        buffer: Buffer { bytes: Some(path.buffer_packets * 1514), ..Buffer::default() },
        loss: (path.loss > 0.0).then_some(LossModel::Bernoulli(path.loss)),
        ..LinkSpec::default()
    };
    let profile = (name != "reno").then_some("linux");
    let mut flow = tcp(registered(name, profile, &[]));
    flow.needs = registry::find(name).expect("registered").needs;
    flow.stack = Stack::Tcp(TcpOptions { delayed_ack_ps: Some(40 * MS), ..TcpOptions::default() });
    flow.packets = PacketSizes { data_bytes: 1514, header_bytes: 66, ack_bytes: 66 };
    let plan = plan(vec![forward, delay(path.rtt_ms)], vec![flow], SECONDS, SECONDS / 4.0);
    run_checked(paceline_sim::Plan { seed, ..plan })
}

/// Where chance has a part, one run of Linux is one of many.
fn outcomes(name: &str, path: &Path) -> Vec<Outcome> {
    let seeds = if name == "cdg" || path.loss > 0.0 { 20 } else { 1 };
    (1..=seeds).map(|seed| outcome(name, path, seed)).collect()
}

/// Mean over runs, and the standard deviation of a single one.
fn over(outcomes: &[Outcome], of: impl Fn(&FlowOutcome) -> f64) -> (f64, f64) {
    let values: Vec<f64> = outcomes.iter().map(|o| of(&o.flows[0])).collect();
    let count = values.len() as f64;
    let mean = values.iter().sum::<f64>() / count;
    let variance = values.iter().map(|v| (v - mean).powi(2)).sum::<f64>() / (count - 1.0).max(1.0);
    (mean, variance.sqrt())
}

/// What differs by more than it may: "utilisation" or "RTT" (3 points; 10 %, 15 % for those that probe), twice the standard
/// deviation of a mean over `runs` where that is more.
fn misses(
    name: &str,
    mbit: f64,
    outcomes: &[Outcome],
    runs: f64,
    utilisation: f64,
    rtt: f64,
) -> Vec<String> {
    let share = if matches!(name, "bbr1" | "cdg") { 0.15 } else { 0.10 };
    let (got, deviation) = over(outcomes, |flow| flow.goodput_bps / (mbit * 1e6));
    let (got_rtt, rtt_deviation) = over(outcomes, |flow| flow.rtt_ms.expect("samples").mean);
    let checks = [
        ("utilisation", got, utilisation, 0.03_f64.max(2.0 * deviation / runs.sqrt())),
        ("RTT", got_rtt, rtt, (share * rtt).max(2.0 * rtt_deviation / runs.sqrt())),
    ];
    off(&checks)
}

/// Of (what, got, Linux, bound) those out of bounds.
fn off(checks: &[(&str, f64, f64, f64)]) -> Vec<String> {
    let far = checks.iter().filter(|(_, got, linux, bound)| (got - linux).abs() > *bound);
    far.map(|(what, got, linux, _)| format!("{what} {got:.3}, Linux {linux}")).collect()
}

/// The windows from the first quarter of the run on, every 10 ms.
fn windows(flow: &FlowOutcome) -> Vec<f64> {
    let column = flow.series.column("cwnd_bytes").expect("a column");
    column.values[(SECONDS * 25.0) as usize..].iter().map(|bytes| bytes / 1514.0).collect()
}

/// Least and largest window of samples once a second, for every phase of the second in steps of 10 ms. Linux was sampled at one
/// phase; a sawtooth of about a whole number of seconds, or a ProbeRTT, shows a different range at each.
fn ranges(flow: &FlowOutcome) -> Vec<(f64, f64)> {
    let windows = windows(flow);
    let range = |phase: usize| {
        let each = || windows[phase..].iter().step_by(100).copied();
        (each().fold(f64::INFINITY, f64::min), each().fold(0.0, f64::max))
    };
    (0..100).map(range).collect()
}

#[test]
fn controllers_agree_with_the_reference() {
    let mut missed = Vec::new();
    for (name, buffer_packets, utilisation, rtt, least, largest) in REFERENCE {
        let path = Path { mbit: 20.0, rtt_ms: 40.0, buffer_packets, loss: 0.0 };
        let outcomes = outcomes(name, &path);
        let near = |got: f64, expected: f64| (got / expected - 1.0).abs() <= 0.15;
        let seen: Vec<(f64, f64)> = outcomes.iter().flat_map(|o| ranges(&o.flows[0])).collect();
        let alike = seen.iter().filter(|(a, b)| near(*a, least) && near(*b, largest)).count();
        let (got, _) = over(&outcomes, |flow| flow.goodput_bps / 20e6);
        let (got_rtt, _) = over(&outcomes, |flow| flow.rtt_ms.expect("samples").mean);
        let share = alike as f64 / seen.len() as f64;
        let mut wrong = misses(name, path.mbit, &outcomes, 1.0, utilisation, rtt);
        if share < 0.1 {
            wrong.push(format!("windows of {least} to {largest} at {share:.2} of the phases"));
        }
        println!(
            "{name}, {buffer_packets} packets: utilisation {got:.3} (Linux {utilisation}), RTT {got_rtt:.1} ms ({rtt}), windows alike at {share:.2} of the phases"
        );
        missed.extend(wrong.into_iter().map(|what| format!("{name}, {buffer_packets}: {what}")));
    }
    assert!(missed.is_empty(), "{missed:#?}");
}

/// Rows of `linux.csv` with one controller and path: means over so many runs.
struct Measured<'a> {
    name: &'a str,
    path: Path,
    runs: f64,
    utilisation: f64,
    rtt_ms: f64,
    /// 5th and 95th percentile of the window, sampled ten times a second.
    low: f64,
    high: f64,
}

fn measured() -> Vec<Measured<'static>> {
    let lines = include_str!("linux.csv").lines().filter(|line| !line.starts_with('#')).skip(1);
    let mut all: Vec<Measured<'_>> = Vec::new();
    for line in lines {
        let mut fields = line.split(',');
        let name = fields.next().expect("a controller");
        let mut number = || fields.next().and_then(|f| f.parse::<f64>().ok()).expect("a number");
        let (mbit, rtt_ms, packets, percent) = (number(), number(), number(), number());
        let path = Path { mbit, rtt_ms, buffer_packets: packets as u64, loss: percent / 100.0 };
        let values = [number(), number(), number(), number()];
        let known = all.iter().position(|row| row.name == name && row.path == path);
        let at = known.unwrap_or(all.len());
        if known.is_none() {
            let (runs, zero) = (0.0, 0.0);
            all.push(Measured {
                name,
                path,
                runs,
                utilisation: zero,
                rtt_ms: zero,
                low: zero,
                high: zero,
            });
        }
        let row = &mut all[at];
        row.runs += 1.0;
        let means = [&mut row.utilisation, &mut row.rtt_ms, &mut row.low, &mut row.high];
        for (mean, value) in means.into_iter().zip(values) {
            *mean += (value - *mean) / row.runs;
        }
    }
    all
}

/// Rows where we differ from Linux by more than the bounds, controller and rate in Mbit/s, and why, as far as the samples tell. Both
/// seem the host's doing, not TCP's: a processor that takes time, at 100 Mbit/s a good part of a packet's.
const KNOWN_GAPS: [(&str, f64, &str); 2] = [
    (
        "cdg",
        50.0,
        "RTTs vary by some 0.1 ms with what the processor has to do, and CDG backs off from that",
    ),
    (
        "bbr1",
        100.0,
        "its rate between two ProbeRTTs is 0.93 of the link: the timer that paces each packet comes late",
    ),
];

#[test]
fn controllers_agree_with_linux_on_other_paths() {
    let mut missed = Vec::new();
    for row in measured() {
        let Measured { name, path, runs, utilisation, rtt_ms, low, high } = row;
        let outcomes = outcomes(name, &path);
        let quantile = |q: f64| {
            over(&outcomes, |flow| {
                let mut windows = windows(flow);
                windows.sort_by(f64::total_cmp);
                windows[(q * windows.len() as f64) as usize]
            })
        };
        let ((got_low, low_deviation), (got_high, high_deviation)) =
            (quantile(0.05), quantile(0.95));
        // Small windows are whole packets.
        let bound = |window: f64, deviation: f64| {
            (0.15 * window).max(1.0).max(2.0 * deviation / runs.sqrt())
        };
        let mut wrong = misses(name, path.mbit, &outcomes, runs, utilisation, rtt_ms);
        wrong.extend(off(&[
            ("5 % of windows below", got_low, low, bound(low, low_deviation)),
            ("95 % of windows below", got_high, high, bound(high, high_deviation)),
        ]));
        let Path { mbit, rtt_ms, buffer_packets, loss } = path;
        let place =
            format!("{name}, {mbit} Mbit/s, {rtt_ms} ms, {buffer_packets} packets, loss {loss}");
        println!("{place}: windows {got_low:.0}-{got_high:.0}, Linux {low:.0}-{high:.0}");
        if let Some((.., why)) = KNOWN_GAPS.iter().find(|gap| (gap.0, gap.1) == (name, mbit)) {
            assert!(!wrong.is_empty(), "{place}: no longer differs, although {why}");
            println!("{place}: known to differ, {wrong:?}");
            continue;
        }
        missed.extend(wrong.into_iter().map(|what| format!("{place}: {what}")));
    }
    assert!(missed.is_empty(), "{missed:#?}");
}
