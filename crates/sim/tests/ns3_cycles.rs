//! Whole sawtooth cycles against ns-3 (development tree of May 2026): one flow, 100 Mbit/s, 40 ms, a drop-tail buffer of a
//! quarter, one and four bandwidth-delay products (333 packets), behind access links of 1 Gbit/s.
//!
//! Packets are as ns-3 has them on the wire: 1448 bytes of payload in 1502 bytes (PPP), ACKs for every second packet with
//! time stamps in 54 bytes. Everything is averaged over whole cycles after start-up: start-up differs most between
//! simulators, and a fixed window is not a whole number of cycles.

mod common;

use common::*;
use paceline_cc::{Needs, registry};
use paceline_net::{Capacity, LinkSpec};
use paceline_sim::{Outcome, PacketSizes, Series, Stack, TcpOptions};

const RATE_BPS: f64 = 100e6;
const PACKET_BYTES: f64 = 1502.0;
/// Start-up is over by then, s.
const SETTLED_S: f64 = 11.0;

/// What ns-3 did.
struct Reference {
    /// Packets that may wait: BDP * 0.25, 1, 4.
    buffer: u64,
    seconds: f64,
    /// Bytes on the wire over capacity, mean of a cycle.
    utilisation: f64,
    /// Mean of a cycle, packets, the one in service apart.
    queue: f64,
    /// Window at a cycle's first drop, packets; `None` without drops.
    cwnd_at_loss: Option<f64>,
    /// Lengths of the cycles that repeat, s.
    cycle_s: &'static [f64],
}

/// What ours did.
#[derive(Debug)]
struct Measured {
    utilisation: f64,
    queue: f64,
    cwnd_at_loss: f64,
    cwnd: f64,
    cycle_s: Vec<f64>,
    drops_per_cycle: f64,
    cycles: usize,
}

/// One flow over access link, bottleneck, access link, and back.
fn dumbbell(controller: &str, profile: Option<&str>, reference: &Reference) -> Outcome {
    let link = |bps, ms| LinkSpec { capacity: Capacity::Constant(bps), ..delay(ms) };
    let links = vec![
        link(1e9, 5.0),
        bottleneck(RATE_BPS, 10.0, reference.buffer),
        link(1e9, 5.0),
        link(1e9, 5.0),
        link(RATE_BPS, 10.0),
        link(1e9, 5.0),
    ];
    let mut flow = tcp(registered(controller, profile, &[]));
    let spec = registry::find(controller).expect("registered");
    (flow.needs, flow.fields) = (spec.needs, spec.fields.to_vec());
    (flow.forward, flow.reverse) = (vec![0, 1, 2], vec![3, 4, 5]);
    flow.packets = PacketSizes { data_bytes: 1502, header_bytes: 54, ack_bytes: 54 };
    flow.stack =
        Stack::Tcp(TcpOptions { delayed_ack_ps: Some(200 * MS), ..TcpOptions::default() });
    let mut plan = plan(links, vec![flow], reference.seconds, 0.0);
    plan.sample_ps = MS;
    run_checked(plan)
}

fn column<'a>(series: &'a Series, name: &str) -> &'a [f64] {
    let column = series.columns.iter().find(|c| c.name == name);
    &column.unwrap_or_else(|| panic!("no column {name}")).values
}

/// Times at which a run of drops begins, s: drops less than a second apart are one overflow.
fn overflows(link: &Series) -> Vec<f64> {
    let drops = column(link, "drops");
    let mut last_s = f64::NEG_INFINITY;
    let mut starts = Vec::new();
    for (i, time_s) in link.time_s.iter().enumerate().skip(1) {
        if drops[i] > drops[i - 1] {
            if time_s - last_s > 1.0 && *time_s > SETTLED_S {
                starts.push(*time_s);
            }
            last_s = *time_s;
        }
    }
    starts
}

/// Times at which BBR begins to probe for bandwidth, s.
fn probes(flow: &Series) -> Vec<f64> {
    let gain = column(flow, "pacing_gain");
    let starts = (1..gain.len()).filter(|i| gain[*i] > 1.0 && gain[i - 1] <= 1.0);
    starts.map(|i| flow.time_s[i]).filter(|time_s| *time_s > SETTLED_S).collect()
}

/// Averages from the first of `starts` to the last that completes a repetition of `pattern` cycles, the shortest first.
fn measure(outcome: &Outcome, starts: &[f64], pattern: usize) -> Measured {
    let length = |i: usize| starts[i + 1] - starts[i];
    let skip = usize::from(pattern == 2 && length(0) > length(1));
    let cycles = (starts.len() - 1 - skip) / pattern * pattern;
    assert!(cycles > 0, "no whole cycle: {starts:?}");
    let starts = &starts[skip..=skip + cycles];
    let (from_s, to_s) = (starts[0], starts[cycles]);
    let (flow, link) = (&outcome.flows[0].series, &outcome.links[1].series);
    let mean = |series: &Series, name: &str| {
        let at = |s: f64| series.time_s.partition_point(|time_s| *time_s < s);
        let window = &column(series, name)[at(from_s)..at(to_s)];
        window.iter().sum::<f64>() / window.len() as f64
    };
    let value = |series: &Series, name: &str, s: f64| {
        column(series, name)[series.time_s.partition_point(|time_s| *time_s < s)]
    };
    let at_loss = starts[..cycles].iter().map(|s| value(flow, "cwnd_bytes", *s));
    let each = |i: usize| {
        let lengths = starts.windows(2).map(|pair| pair[1] - pair[0]).skip(i).step_by(pattern);
        lengths.sum::<f64>() / (cycles / pattern) as f64
    };
    let dropped = value(link, "drops", to_s) - value(link, "drops", from_s);
    Measured {
        utilisation: mean(link, "throughput_bps") / RATE_BPS,
        queue: mean(link, "queue_bytes") / PACKET_BYTES,
        cwnd_at_loss: at_loss.sum::<f64>() / cycles as f64 / PACKET_BYTES,
        cwnd: mean(flow, "cwnd_bytes") / PACKET_BYTES,
        cycle_s: (0..pattern).map(each).collect(),
        drops_per_cycle: dropped / cycles as f64,
        cycles,
    }
}

#[test]
fn look() {
    for (name, profile, loss) in [("reno", None, true), ("cubic", Some("ns-3"), true), ("cubic", Some("linux"), true), ("bbr1", Some("ns-3"), false), ("bbr1", Some("linux"), false), ("bbr1", None, false)] {
        for (i, buffer) in [83, 333, 1333].into_iter().enumerate() {
            let seconds = if i == 2 && name == "reno" { 300.0 } else { 60.0 };
            let r = Reference { buffer, seconds, utilisation: 0., queue: 0., cwnd_at_loss: None, cycle_s: &[] };
            let outcome = dumbbell(name, profile, &r);
            let starts = if loss { overflows(&outcome.links[1].series) } else { probes(&outcome.flows[0].series) };
            let pattern = if name == "cubic" && i > 0 { 2 } else { 1 };
            let m = measure(&outcome, &starts, pattern);
            println!("{name} {profile:?} {buffer}: {m:.4?}");
        }
    }
}
