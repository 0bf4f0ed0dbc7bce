//! Statements about whether a run's numbers can be believed, kept in its manifest.
//!
//! A check that does not hold is not an error: the run did what was asked, but its numbers may not say what the reader thinks.
//! Each one is worded so that `ok` means "holds"; `detail` names the worst case with its numbers.

use std::collections::{BTreeMap, BTreeSet};

use paceline_live::Health;
use paceline_sim::{FlowOutcome, LinkOutcome, Outcome, Series};
use serde::{Deserialize, Serialize};

use super::RunInfo;
use super::digest::sha256_hex;
use super::summary::finite;

/// How late 99 % of the packets may leave an emulated link, us.
const MOST_LATE_US: f64 = 2000.0;

/// How many round trips a start-up, and a measurement, should last.
const MIN_ROUND_TRIPS: f64 = 10.0;

/// One statement.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Check {
    /// What is stated, `snake_case`.
    pub name: String,
    /// Whether it holds.
    pub ok: bool,
    /// The numbers, or the worst offender.
    pub detail: String,
}

/// Every check that applies to the run.
pub fn all(info: &RunInfo, outcome: &Outcome) -> Vec<Check> {
    let named: Vec<(&str, &FlowOutcome)> =
        outcome.flows.iter().enumerate().map(|(i, flow)| (flow_name(info, i), flow)).collect();
    let mut checks = vec![
        packets_conserved(&named),
        every_flow_started(&named),
        every_flow_delivered(&named),
        controllers_differ(info, outcome),
        capacity_respected(info, &outcome.links),
    ];
    checks.extend(warmup_covers_startup(info, &named));
    checks.extend(measurement_is_long_enough(info, &named));
    checks
}

/// Sent = delivered + lost + in flight.
fn packets_conserved(flows: &[(&str, &FlowOutcome)]) -> Check {
    let wrong = flows.iter().filter_map(|(name, f)| {
        let parts = [f.delivered_packets, f.lost_packets, f.in_flight_packets];
        let sum = parts.iter().map(|p| u128::from(*p)).sum::<u128>();
        (sum != u128::from(f.sent_packets)).then(|| {
            let [delivered, lost, in_flight] = parts;
            let sent = f.sent_packets;
            format!(
                "`{name}`: sent {sent}, but delivered {delivered} + lost {lost} + in flight {in_flight} = {sum}"
            )
        })
    });
    let holds = format!("sent = delivered + lost + in flight for {}", count(flows.len(), "flow"));
    none_of("packets_conserved", wrong.collect(), holds)
}

fn every_flow_started(flows: &[(&str, &FlowOutcome)]) -> Check {
    let wrong = flows.iter().filter(|(_, f)| f.sent_packets == 0);
    let wrong = wrong.map(|(name, f)| {
        format!("`{name}` sent nothing (start {} s, end {} s)", f.start_s, f.end_s)
    });
    let holds = format!("{} sent data", count(flows.len(), "flow"));
    none_of("every_flow_started", wrong.collect(), holds)
}

fn every_flow_delivered(flows: &[(&str, &FlowOutcome)]) -> Check {
    let wrong = flows.iter().filter(|(_, f)| f.sent_packets > 0 && f.delivered_packets == 0);
    let wrong = wrong.map(|(name, f)| {
        format!("`{name}` sent {} and delivered none", count(f.sent_packets as usize, "packet"))
    });
    none_of("every_flow_delivered", wrong.collect(), "what was sent arrived".into())
}

/// Two controllers, or one with two settings, that behaved the same to the last bit: the knob between them is probably dead.
fn controllers_differ(info: &RunInfo, outcome: &Outcome) -> Check {
    let active = outcome.flows.iter().enumerate().filter(|(_, f)| f.sent_packets > 0);
    let flows: Vec<(usize, &Series)> = active.map(|(i, f)| (i, &f.series)).collect();
    let shared = shared_columns(&flows);
    // By fingerprint: the first flow with it, and the first one with another controller.
    let mut first: BTreeMap<String, usize> = BTreeMap::new();
    let mut wrong = Vec::new();
    for (i, series) in &flows {
        let Some(fingerprint) = fingerprint(series, &shared) else { continue };
        let twin = *first.entry(fingerprint).or_insert(*i);
        let (Some(a), Some(b)) = (info.flows.get(twin), info.flows.get(*i)) else { continue };
        let (one, other) =
            ((&a.controller, &a.controller_params), (&b.controller, &b.controller_params));
        if one != other {
            let what = if a.controller == b.controller {
                format!("`{}` with different parameters", a.controller)
            } else {
                format!("`{}` and `{}`", a.controller, b.controller)
            };
            wrong.push(format!(
                "flows `{}` and `{}` ({what}) have identical time series",
                a.name, b.name
            ));
        }
    }
    none_of("controllers_differ", wrong, "no two controllers behaved identically".into())
}

/// The columns that every flow has: the simulator's own, and what the controllers happen to share.
fn shared_columns(flows: &[(usize, &Series)]) -> BTreeSet<(&'static str, &'static str)> {
    let columns = |series: &Series| series.columns().map(|c| (c.name, c.unit)).collect();
    let mut all = flows.iter().map(|(_, series)| columns(series));
    let first: BTreeSet<(&'static str, &'static str)> = all.next().unwrap_or_default();
    all.fold(first, |shared, columns| &shared & &columns)
}

/// Hash of a series' shared columns; `None` where there is nothing to compare.
fn fingerprint(series: &Series, shared: &BTreeSet<(&str, &str)>) -> Option<String> {
    let mut bytes = Vec::new();
    let mut values = 0usize;
    for column in series.columns() {
        if shared.contains(&(column.name, column.unit)) {
            bytes.extend_from_slice(column.name.as_bytes());
            for value in column.values {
                values += usize::from(value.is_finite());
                bytes.extend_from_slice(&value.to_bits().to_le_bytes());
            }
        }
    }
    (values > 1).then(|| sha256_hex(&bytes))
}

/// A link that carries more than its capacity is a bug. Two packets may straddle the ends of the window.
fn capacity_respected(info: &RunInfo, links: &[LinkOutcome]) -> Check {
    let packet_bytes = info.flows.iter().map(|f| f.packets.data_bytes).max().unwrap_or(1500);
    let slack_bits = 2.0 * 8.0 * f64::from(packet_bytes);
    let window_s = info.duration_s - info.warmup_s;
    let wrong = links.iter().filter_map(|link| {
        let capacity_bps = link.capacity_bps?;
        let excess_bits = (link.throughput_bps - capacity_bps) * window_s;
        // Relative rounding of two averages over the same window.
        let tolerance_bits = slack_bits + 1e-6 * capacity_bps * window_s;
        (window_s > 0.0 && excess_bits > tolerance_bits).then(|| {
            let (name, throughput) = (&link.name, link.throughput_bps);
            format!(
                "link `{name}` carried {throughput} bit/s with a capacity of {capacity_bps} bit/s"
            )
        })
    });
    let holds = format!("{} within capacity", count(links.len(), "link"));
    none_of("capacity_respected", wrong.collect(), holds)
}

/// Of a run in real time: whether this machine carried the packets when the model said.
pub fn machine_kept_up(health: &Health) -> Check {
    let Health { unseen_packets, unwritable_packets, late_us } = *health;
    let late = late_us.unwrap_or_default();
    let timing = format!(
        "packets left the link {:.0} us late on average, 99 % of them at most {:.0} us",
        late[0], late[1]
    );
    let lost = unseen_packets + unwritable_packets;
    let ok = lost == 0 && late[1] <= MOST_LATE_US;
    let detail = match lost {
        0 => timing,
        _ => format!(
            "{timing}; {unseen_packets} packets lost before the link and {unwritable_packets} behind it"
        ),
    };
    Check { name: "machine_kept_up".into(), ok, detail }
}

/// Start-up must be over when the statistics begin. A flow that completes is measured by its completion time, start-up
/// included, so it is left out. `None` without an RTT to compare with.
fn warmup_covers_startup(info: &RunInfo, flows: &[(&str, &FlowOutcome)]) -> Option<Check> {
    let lasting = flows.iter().filter(|(_, f)| f.completion_s.is_none());
    let round_trips = lasting.filter_map(|(name, f)| {
        let rtt_s = median_rtt_s(f)?;
        Some((*name, (info.warmup_s - f.start_s).max(0.0) / rtt_s, rtt_s))
    });
    let (name, round_trips, rtt_s) = round_trips.min_by(|a, b| a.1.total_cmp(&b.1))?;
    let ok = round_trips >= MIN_ROUND_TRIPS;
    let least = format!(
        "the warm-up leaves `{name}` {round_trips:.1} round trips of {:.3} ms to start up",
        1e3 * rtt_s
    );
    let detail = if ok { least } else { format!("{least}; {MIN_ROUND_TRIPS} are the least") };
    Some(Check { name: "warmup_covers_startup".into(), ok, detail })
}

/// `None` without an RTT to compare with.
fn measurement_is_long_enough(info: &RunInfo, flows: &[(&str, &FlowOutcome)]) -> Option<Check> {
    let lasting = flows.iter().filter(|(_, f)| f.completion_s.is_none());
    let rtts = lasting.filter_map(|(name, f)| Some((*name, median_rtt_s(f)?)));
    let (name, rtt_s) = rtts.max_by(|a, b| a.1.total_cmp(&b.1))?;
    let window_s = info.duration_s - info.warmup_s;
    let round_trips = window_s / rtt_s;
    let ok = round_trips >= MIN_ROUND_TRIPS;
    let detail = format!(
        "statistics cover {window_s} s, {round_trips:.1} round trips of `{name}`{}",
        if ok { String::new() } else { format!("; {MIN_ROUND_TRIPS} are the least") }
    );
    Some(Check { name: "measurement_is_long_enough".into(), ok, detail })
}

fn median_rtt_s(flow: &FlowOutcome) -> Option<f64> {
    let rtt_ms = flow.rtt_ms.and_then(|rtt| finite(rtt.p50))?;
    (rtt_ms > 0.0).then_some(rtt_ms / 1e3)
}

/// A check that holds when nothing is wrong, and otherwise names the first case and counts the rest.
fn none_of(name: &str, wrong: Vec<String>, holds: String) -> Check {
    let detail = match &wrong[..] {
        [] => holds,
        [one] => one.clone(),
        [one, rest @ ..] => format!("{one}; and {} more", rest.len()),
    };
    Check { name: name.into(), ok: wrong.is_empty(), detail }
}

fn count(n: usize, what: &str) -> String {
    if n == 1 { format!("1 {what}") } else { format!("{n} {what}s") }
}

fn flow_name(info: &RunInfo, index: usize) -> &str {
    info.flows.get(index).map_or("?", |flow| flow.name.as_str())
}
