//! MPC, compiled from `bpf/algorithms/mpc.h`, against its law in floating point ([`law`]) on recorded event logs.
//!
//! Both hear the same events; after each one the window, the pacing rate and every observed field must agree within 0.1 % (or
//! 2 bytes, 2 bytes/s, 50 ns; times are observed in whole us, rounded down).
//!
//! The law decides: whether a queue is there, whether a block has ended. Where the two sides of a decision lie within rounding of
//! each other ([`law::ROUNDING`]), integers may decide otherwise than real numbers, and everything after is different. So the
//! reference follows both: it is a set of states, which a close decision doubles and from which those drop out that disagree with
//! what the controller shows. Nothing flows from the controller into a state, so whoever is left at the end has followed the law
//! through the whole log from events alone, and differs from a plain run of it in close decisions only. How many of them
//! went otherwise than they fell is counted, and must be few.

#[path = "mpc/choices.rs"]
mod choices;
#[path = "mpc/hand.rs"]
mod hand;
#[path = "mpc/law.rs"]
mod law;
#[path = "mpc/path.rs"]
mod path;
#[path = "mpc/settings.rs"]
mod settings;

use law::Law;
use paceline_cc::AckSample;
use path::{Event, FlowPlan, Log, Scenario, Shown};

/// What must agree, relative.
const AGREEMENT: f64 = 1e-3;
/// States that are followed at a time: of more, those with the fewest decisions turned.
const MOST_STATES: usize = 24;

/// How far `law` is from what the controller showed, 1 being what is allowed.
fn distance(law: &Law, shown: &Shown) -> f64 {
    let (window, pacing) = law.control();
    let mut worst =
        relative(shown.window as f64, window, 2.0).max(relative(shown.pacing as f64, pacing, 2.0));
    for (at, (got, expected)) in shown.fields.iter().zip(law.observe()).enumerate() {
        let off = match at {
            _ if *got == expected || (got.is_nan() && expected.is_nan()) => 0.0,
            // The state.
            0 => f64::INFINITY,
            1 | 2 => relative(*got, expected, 2.0),
            // Whole us, rounded down.
            _ => relative((expected * 1e6).clamp(*got, got + 1.0), expected * 1e6, 0.05),
        };
        // NaN beside a number is as far as can be.
        worst = if off.is_nan() { f64::INFINITY } else { worst.max(off) };
    }
    worst
}

/// The difference over what is allowed: [`AGREEMENT`], or `units` where that is more.
fn relative(got: f64, expected: f64, units: f64) -> f64 {
    (got - expected).abs() / (AGREEMENT * expected.abs()).max(units)
}

/// A state of the reference.
#[derive(Clone)]
struct Branch {
    law: Law,
    /// Close decisions on its way; of these, those that went otherwise than they fell.
    close: u32,
    turned: u32,
    /// Largest distance so far.
    worst: f64,
}

fn apply(law: &mut Law, event: &Event) {
    match event {
        Event::Ack(sample) => law.on_ack(sample),
        Event::Loss(loss) => law.on_loss(loss),
        Event::Timeout(now_ns) => law.on_rto(*now_ns),
        Event::Resume(now_ns, idle_ns) => law.on_resume(*now_ns, *idle_ns),
    }
}

/// What comes of `branch` by `event`, for every way of its close decisions.
fn follow(branch: &Branch, event: &Event, shown: &Shown, out: &mut Vec<Branch>) {
    let mut scripts = vec![Vec::new()];
    let from = out.len();
    while let Some(script) = scripts.pop() {
        let mut next = branch.clone();
        next.law.choices().begin(script);
        apply(&mut next.law, event);
        let made = next.law.choices().end();
        next.close += made.close;
        next.turned += made.turned;
        scripts.extend(made.others);
        let off = distance(&next.law, shown);
        next.worst = next.worst.max(off);
        if off <= 1.0 && !out[from..].iter().any(|other| other.law == next.law) {
            out.push(next);
        }
    }
}

/// What a comparison found.
#[derive(Debug, Default)]
struct Found {
    events: usize,
    /// Most states after one event.
    states: usize,
    /// Of the state with the fewest decisions turned.
    close: u32,
    turned: u32,
    worst: f64,
}

fn compare(log: &Log) -> Found {
    let mut branches =
        vec![Branch { law: Law::new(&log.params, &log.path), close: 0, turned: 0, worst: 0.0 }];
    let mut found = Found { events: log.events.len(), ..Found::default() };
    for (at, (event, shown)) in log.events.iter().enumerate() {
        let mut next = Vec::with_capacity(branches.len() + 1);
        for branch in &branches {
            follow(branch, event, shown, &mut next);
        }
        if next.is_empty() {
            let mut law = branches[0].law.clone();
            apply(&mut law, event);
            let (control, fields) = (law.control(), law.observe());
            panic!("{}, event {at}: {event:?}: {shown:?}, not {control:?} {fields:?}", log.name);
        }
        next.sort_by(|a, b| {
            (a.turned, a.worst).partial_cmp(&(b.turned, b.worst)).expect("numbers")
        });
        found.states = found.states.max(next.len());
        next.truncate(MOST_STATES);
        branches = next;
    }
    let best = &branches[0];
    (found.close, found.turned, found.worst) = (best.close, best.turned, best.worst);
    found
}

/// Records and compares; the logs.
fn check(scenario: &Scenario) -> Vec<Log> {
    let logs = path::record(scenario);
    for log in &logs {
        let found = compare(log);
        println!("{}: {found:?}", log.name);
        assert!(found.turned as usize <= 2 + found.events / 25_000, "{}: {found:?}", log.name);
    }
    logs
}

fn plain(
    name: &'static str,
    capacity: f64,
    rtt_s: f64,
    packet_bytes: u32,
    seconds: f64,
) -> Scenario {
    Scenario {
        name,
        capacity: vec![(0.0, capacity)],
        rtt_s,
        noise_s: 0.0,
        buffer_s: 2.0 * rtt_s,
        loses_one_in: 0,
        outage: (0.0, 0.0),
        packet_bytes,
        seconds,
        flows: vec![FlowPlan::default()],
    }
}

fn at(starts_s: f64) -> FlowPlan {
    FlowPlan { starts_s, ..FlowPlan::default() }
}

#[test]
fn one_flow_from_1_mbit_to_100_gbit() {
    for scenario in [
        plain("1 Mbit/s 50 ms", 125e3, 0.05, 1500, 60.0),
        plain("1 Mbit/s 300 ms", 125e3, 0.3, 1500, 120.0),
        plain("100 Mbit/s 20 ms", 125e5, 0.02, 1500, 10.0),
        plain("1 Gbit/s 300 ms", 125e6, 0.3, 9000, 20.0),
        plain("10 Gbit/s 1 ms", 125e7, 0.001, 9000, 0.6),
        plain("100 Gbit/s 1 ms", 125e8, 0.001, 65_536, 0.5),
        plain("100 Gbit/s 30 ms", 125e8, 0.03, 65_536, 1.5),
    ] {
        let log = check(&scenario).remove(0);
        let share = log.events.last().expect("events").1.fields[1] / scenario.capacity[0].1;
        assert!((0.8..1.2).contains(&share), "{}: rho is {share} of the capacity", log.name);
    }
}

/// As Linux sends: what the rate makes in a millisecond, up to 64 KiB, at once, and one ACK for it. Its transmission takes up to 0.5 ms
/// here, which is no queue. With the burst untold, such a flow leaves start-up below half of the capacity, and the link has 11 % less.
#[test]
fn bursts_of_the_host() {
    let plain = plain("bursts", 125e6, 0.025, 1500, 4.0);
    let bursts = FlowPlan { burst: 44, ..at(0.0) };
    let log = check(&Scenario { flows: vec![bursts], ..plain }).remove(0);
    let mut delivered = [0; 5];
    for (event, _) in &log.events {
        let Event::Ack(ack) = event else { continue };
        delivered[(ack.now_ns / 1_000_000_000) as usize + 1] = ack.delivered_total_bytes;
    }
    let shares = [0, 1, 2, 3].map(|s| (delivered[s + 1] - delivered[s]) as f64 / 125e6);
    println!("shares of the capacity by seconds: {shares:.3?}");
    assert!(shares[0] > 0.45 && shares[1..].iter().all(|share| *share > 0.98), "{shares:?}");
}

/// What flows overestimate of their own bursts makes the queue longer, by no more than a burst's millisecond or so, and moves no shares.
#[test]
fn bursts_of_several_hosts() {
    let plain = plain("bursts of three", 125e6, 0.025, 1500, 6.0);
    let flows = [0.0, 0.2, 0.4].map(|from| FlowPlan { burst: 44, ..at(from) });
    let logs = path::record(&Scenario { flows: flows.into(), buffer_s: 0.025, ..plain });
    let settled = |log: &Log| -> Vec<AckSample> {
        let acks = log.events.iter().filter_map(|(event, _)| match event {
            Event::Ack(ack) if ack.now_ns > 3_000_000_000 => Some(**ack),
            _ => None,
        });
        acks.collect()
    };
    let acks: Vec<Vec<AckSample>> = logs.iter().map(settled).collect();
    let shares: Vec<f64> = acks
        .iter()
        .map(|acks| acks.iter().map(|ack| ack.acked_bytes).sum::<u64>() as f64 / 3.0 / 125e6)
        .collect();
    let rtts_ms: Vec<f64> = acks.iter().flatten().map(|ack| ack.rtt_ns as f64 / 1e6).collect();
    let queue_ms = rtts_ms.iter().sum::<f64>() / rtts_ms.len() as f64 - 25.012;
    let lost = logs.iter().flat_map(|log| &log.events).any(|(e, _)| matches!(e, Event::Loss(_)));
    println!("shares {shares:.3?}, mean queue {queue_ms:.2} ms (1.18 ms without bursts)");
    assert!(shares.iter().sum::<f64>() > 0.98 && !lost, "{shares:?}");
    assert!(shares.iter().all(|share| (0.28..0.40).contains(share)), "{shares:?}");
    assert!((0.5..3.0).contains(&queue_ms), "{queue_ms}");
}

#[test]
fn several_flows() {
    let plain = plain("3 flows and noise", 125e5, 0.02, 1500, 12.0);
    let flows = vec![at(0.0), at(2.0), at(4.0)];
    let logs = check(&Scenario { noise_s: 0.001, flows, ..plain.clone() });
    let seen = |state: f64| logs[0].events.iter().any(|(_, shown)| shown.fields[0] == state);
    assert!([0.0, 1.0, 2.0, 3.0].into_iter().all(seen), "all states are compared");
    let fast = Scenario { name: "2 flows", capacity: vec![(0.0, 125e7)], rtt_s: 0.005, ..plain };
    let flows = vec![at(0.0), at(0.5)];
    check(&Scenario { packet_bytes: 9000, buffer_s: 0.01, seconds: 1.5, flows, ..fast });
}

#[test]
fn losses() {
    let plain = plain("losses", 125e6, 0.03, 1500, 4.0);
    check(&Scenario { loses_one_in: 500, ..plain.clone() });
    check(&Scenario { name: "much lost", loses_one_in: 20, ..plain.clone() });
    check(&Scenario { name: "short buffer", buffer_s: 0.0005, ..plain });
}

#[test]
fn changes() {
    let plain = plain("steps", 125e5, 0.04, 1500, 8.0);
    let capacity = vec![(0.0, 125e5), (4.0, 50e5), (8.0, 250e5)];
    check(&Scenario { capacity, seconds: 14.0, ..plain.clone() });
    check(&Scenario { name: "outage and timeout", outage: (3.0, 4.0), ..plain.clone() });
    let capped = FlowPlan { settings: vec![("cap", 50e6)], ..at(0.0) };
    check(&Scenario { name: "cap", flows: vec![capped, at(0.0)], ..plain.clone() });
    let limited = FlowPlan { makes: 30e5, little: (0.0, 8.0), ..at(0.0) };
    let pausing = FlowPlan { pause: (3.0, 5.0), ..at(0.0) };
    check(&Scenario { name: "application", flows: vec![limited, pausing], ..plain });
}

/// Who has little to send for a while learns nothing of the path, good or bad: a flow that has much again is as one that begins then,
/// or as it was before. In start-up its rho may be what half of it fills, with a block's growth.
#[test]
fn little_to_send() {
    for (name, capacity, makes, from_s, burst) in [
        ("1 of 100 Mbit/s", 125e5, 125e3, 0.0, 0),
        ("10 Mbit/s of 1 Gbit/s", 125e6, 125e4, 0.0, 44),
        ("60 of 100 Mbit/s", 125e5, 75e5, 0.0, 0),
        ("later 1 of 100 Mbit/s", 125e5, 125e3, 2.0, 0),
        ("later 10 Mbit/s of 1 Gbit/s", 125e6, 125e4, 2.0, 44),
        ("later 60 of 100 Mbit/s", 125e5, 75e5, 2.0, 0),
    ] {
        let plan = FlowPlan { makes, little: (from_s, 4.0), burst, ..at(0.0) };
        let plain = plain(name, capacity, 0.025, 1500, 7.0);
        let log = check(&Scenario { noise_s: 0.0005, flows: vec![plan], ..plain }).remove(0);
        let (mut delivered, mut lost, mut rho) = ([0; 9], 0, 0.0);
        for (event, shown) in &log.events {
            match event {
                Event::Ack(ack) => {
                    let second = (ack.now_ns / 1_000_000_000) as usize;
                    delivered[second + 1] = ack.delivered_total_bytes;
                    if second < 4 {
                        rho = shown.fields[1] / capacity;
                    }
                }
                Event::Loss(loss) => lost += loss.lost_packets,
                _ => {}
            }
        }
        let shares: Vec<f64> =
            delivered.windows(2).map(|d| (d[1] - d[0].min(d[1])) as f64 / capacity).collect();
        println!("{name}: shares by seconds {shares:.3?}, at 4 s rho {rho:.3}, {lost} lost");
        assert!(rho < 3.0 && lost == 0, "{name}: rho {rho}, {lost} lost");
        assert!(shares[4] > 0.6 && shares[5..7].iter().all(|share| *share > 0.9), "{shares:?}");
    }
}
