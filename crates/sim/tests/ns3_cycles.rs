//! Whole sawtooth cycles against ns-3 (development tree of May 2026): one flow, 100 Mbit/s, 40 ms, a drop-tail buffer of a
//! quarter, one and four bandwidth-delay products (333 packets), behind access links of 1 Gbit/s.
//!
//! Packets are as ns-3 has them on the wire: 1448 bytes of payload in 1502 bytes (PPP), ACKs for every second packet with
//! time stamps in 54 bytes. Everything is averaged over whole cycles after start-up: start-up differs most between
//! simulators, and a fixed window is not a whole number of cycles.

mod common;

use common::*;
use paceline_cc::registry;
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
    /// Window, mean of a cycle, packets.
    cwnd: f64,
    /// Window at a cycle's first drop, packets; `None` without drops.
    cwnd_at_loss: Option<f64>,
    /// Lengths of the cycles that repeat, s.
    cycle_s: &'static [f64],
    drops_per_cycle: f64,
}

/// What ours did.
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
    flow.stack = Stack::Tcp(TcpOptions { delayed_ack_ps: Some(200 * MS), ..TcpOptions::default() });
    let mut plan = plan(links, vec![flow], reference.seconds, 0.0);
    plan.sample_ps = MS;
    run_checked(plan)
}

fn column<'a>(series: &'a Series, name: &str) -> &'a [f64] {
    let column = series.column(name);
    column.unwrap_or_else(|| panic!("no column {name}")).values
}

/// Times at which a run of drops begins, s: drops less than a second apart are one overflow.
fn overflows(link: &Series) -> Vec<f64> {
    let drops = column(link, "drops");
    let mut last_s = f64::NEG_INFINITY;
    let mut starts = Vec::new();
    for (i, time_s) in link.time_s().iter().enumerate().skip(1) {
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
    starts.map(|i| flow.time_s()[i]).filter(|time_s| *time_s > SETTLED_S).collect()
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
        let at = |s: f64| series.time_s().partition_point(|time_s| *time_s < s);
        let window = &column(series, name)[at(from_s)..at(to_s)];
        window.iter().sum::<f64>() / window.len() as f64
    };
    let value = |series: &Series, name: &str, s: f64| {
        column(series, name)[series.time_s().partition_point(|time_s| *time_s < s)]
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

/// Prints the comparison and holds ours to the tolerances: link use within a point, window at loss within 2 packets or 1 %,
/// cycle within 5 %, queue within 10 %.
fn check(name: &str, reference: &Reference, ours: &Measured) {
    println!(
        "{name}, buffer {}: utilisation {:.4} (ns-3 {:.4}), queue {:.1} ({:.1}), cwnd {:.1} ({:.1}), at loss {:.1} ({:?}), \
         cycle {:.3?} s ({:?}), {} drops per cycle ({}), {} cycles",
        reference.buffer,
        ours.utilisation,
        reference.utilisation,
        ours.queue,
        reference.queue,
        ours.cwnd,
        reference.cwnd,
        ours.cwnd_at_loss,
        reference.cwnd_at_loss,
        ours.cycle_s,
        reference.cycle_s,
        ours.drops_per_cycle,
        reference.drops_per_cycle,
        ours.cycles,
    );
    assert!((ours.utilisation - reference.utilisation).abs() <= 0.01, "utilisation");
    assert_near(ours.queue, reference.queue, 0.10);
    if let Some(cwnd) = reference.cwnd_at_loss {
        assert!((ours.cwnd_at_loss - cwnd).abs() <= (0.01 * cwnd).max(2.0), "window at loss");
    }
    for (ours, cycle) in ours.cycle_s.iter().zip(reference.cycle_s) {
        assert_near(*ours, *cycle, 0.05);
    }
}

/// ns-3's TcpLinuxReno.
///
/// Ours takes three to four round trips longer per cycle (0.4 to 2 %). One of them: a second packet is dropped just before the
/// loss of the first is known, and its repair makes recovery last two round trips instead of one. The rest is not explained.
#[test]
fn reno() {
    let row = |buffer, seconds, utilisation, queue, cwnd, at_loss, cycle_s| Reference {
        buffer,
        seconds,
        utilisation,
        queue,
        cwnd,
        cwnd_at_loss: Some(at_loss),
        cycle_s,
        drops_per_cycle: 1.0,
    };
    for reference in [
        row(83, 60.0, 0.8941, 19.2, 318.6, 418.0, &[8.82]),
        row(333, 60.0, 1.0, 186.0, 520.9, 668.0, &[20.13]),
        row(1333, 300.0, 1.0, 963.8, 1298.7, 1668.0, &[125.42]),
    ] {
        let outcome = dumbbell("reno", None, &reference);
        let starts = overflows(&outcome.links[1].series);
        check("Reno", &reference, &measure(&outcome, &starts, 1));
    }
}

/// ns-3's TcpCubic: Linux's law in whole packets with beta 0.7. From one BDP on, short and long cycles take turns: the loss
/// after the short one comes below W_max, and fast convergence lowers that.
#[test]
fn cubic() {
    let row = |buffer, utilisation, queue, cwnd, at_loss, cycle_s, drops_per_cycle| Reference {
        buffer,
        seconds: 60.0,
        utilisation,
        queue,
        cwnd,
        cwnd_at_loss: Some(at_loss),
        cycle_s,
        drops_per_cycle,
    };
    for reference in [
        row(83, 0.9906, 48.3, 379.9, 418.0, &[5.51], 1.0),
        row(333, 1.0, 243.9, 578.6, 668.0, &[5.98, 12.74], 2.5),
        row(1333, 1.0, 1107.1, 1441.9, 1668.0, &[7.94, 17.73], 10.5),
    ] {
        let outcome = dumbbell("cubic", Some("ns-3"), &reference);
        let starts = overflows(&outcome.links[1].series);
        check("CUBIC", &reference, &measure(&outcome, &starts, reference.cycle_s.len()));
    }
}

/// ns-3's TcpBbr, a cycle being one of ProbeBW. ProbeRTT never comes: the pacing margin empties the queue in every cycle, so
/// the minimum RTT is seen again and again.
///
/// Where ours differs: it uses 0.4 points less of the link and drops one packet less per cycle. Ours finds BtlBw = 100.0 Mbit/s
/// exactly and sends, on average, the pacing margin of 1 % below it. By its source, ns-3's rate sampler takes a new interval
/// only from a packet stamped with a larger delivered count than the one before, so that of two packets sent between the same
/// two ACKs the later one is divided by too short a time, and BtlBw comes out high. That is read, not measured; its RTT clock
/// of 1 ms, imposed on ours, does not explain the difference.
#[test]
fn bbr1() {
    let row = |buffer, utilisation, queue, cwnd, cwnd_at_loss, drops_per_cycle| Reference {
        buffer,
        seconds: 60.0,
        utilisation,
        queue,
        cwnd,
        cwnd_at_loss,
        // Eight round trips; ns-3's was measured where it drops.
        cycle_s: &[0.325],
        drops_per_cycle,
    };
    for reference in [
        row(83, 0.9955, 10.9, 616.8, Some(676.0), 6.0),
        row(333, 0.9974, 12.0, 674.2, None, 0.0),
        row(1333, 0.9974, 11.9, 674.2, None, 0.0),
    ] {
        let outcome = dumbbell("bbr1", Some("ns-3"), &reference);
        let flow = &outcome.flows[0].series;
        let ours = measure(&outcome, &probes(flow), 1);
        check("BBR", &reference, &ours);
        assert_near(ours.cwnd, reference.cwnd, 0.03);
        assert_eq!(ours.drops_per_cycle == 0.0, reference.drops_per_cycle == 0.0);
        let settled = flow.time_s().partition_point(|time_s| *time_s < SETTLED_S);
        assert!(column(flow, "state")[settled..].iter().all(|state| *state == 2.0), "ProbeBW");
    }
}
