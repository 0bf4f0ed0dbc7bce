//! The table, for people and as JSON.

use serde_json::{Value, json};

use super::Row;
use super::cases::Target;

/// What the columns mean.
pub const NOTES: &str = "\
CPU time of the event loop's thread, the best of the repeats. M pkt/s: delivered data packets per CPU second, target beside it.
Hops: delivered data packets x forward links + one ACK for each x reverse links; dropped packets, which crossed some, are left out.
In flight: data packets and ACKs on the way at the end. Heap: a pop and a push of a binary heap with as many entries of 16 bytes,
measured in this process. x heap: cost of a packet-hop over that; the goal is 2.";

/// The table's head.
pub fn head() -> String {
    format!(
        "{:<16}{:>7}{:>12}{:>13}{:>10}{:>9}{:>9}{:>10}{:>10}{:>8}{:>9}{:>8}{:>12}",
        "case",
        "flows",
        "packets",
        "packet-hops",
        "in flight",
        "CPU s",
        "M pkt/s",
        "target",
        "M hops/s",
        "ns/hop",
        "heap ns",
        "x heap",
        "bytes/flow"
    )
}

/// A line of it.
pub fn line(row: &Row) -> String {
    let target = match row.case.target {
        Target::Packets(packets) => format!("{} pkt", packets / 1e6),
        Target::Hops(hops) => format!("{} hops", hops / 1e6),
    };
    format!(
        "{:<16}{:>7}{:>12}{:>13}{:>10}{:>9.3}{:>9.2}{:>10}{:>10.2}{:>8.1}{:>9.1}{:>8.2}{:>12.0}",
        row.case.name,
        row.flows,
        row.packets,
        row.hops,
        row.in_flight,
        row.cpu_s,
        row.packets_per_s() / 1e6,
        target,
        row.hops_per_s() / 1e6,
        row.ns_per_hop(),
        row.heap_ns,
        row.ratio(),
        row.bytes_per_flow
    )
}

/// The same as JSON, in units that the keys name.
pub fn json(row: &Row) -> Value {
    let (counted, target) = match row.case.target {
        Target::Packets(packets) => ("packets", packets),
        Target::Hops(hops) => ("hops", hops),
    };
    json!({
        "case": row.case.name,
        "scenario": row.case.scenario,
        "flows": row.flows,
        "events": row.events,
        "packets": row.packets,
        "hops": row.hops,
        "in_flight_packets": row.in_flight,
        "cpu_s": row.cpu_s,
        "packets_per_cpu_s": row.packets_per_s(),
        "hops_per_cpu_s": row.hops_per_s(),
        "target_counts": counted,
        "target_per_cpu_s": target,
        "of_target": row.speed() / target,
        "ns_per_hop": row.ns_per_hop(),
        "heap_push_pop_ns": row.heap_ns,
        "heap_operations_per_hop": row.ratio(),
        "bytes_per_flow": row.bytes_per_flow,
    })
}
