//! The one JSON object of `run --json`, and the `result` of a manifest.
//!
//! In goes an [`Outcome`] with what was asked for ([`RunInfo`]); out comes [`Summary`], whose serialised keys, their order and
//! their units are a promise to scripts. A number that was not measured is `null`, never 0; NaN and infinity count as not
//! measured. Fairness is Jain, Chiu and Hawe, "A quantitative measure of fairness" (DEC-TR-301, 1984).

use paceline_sim::{EngineStats, FlowOutcome, LinkOutcome, Outcome, Stats};
use serde::{Deserialize, Serialize};

use super::{FlowInfo, RunInfo};

/// A run in one object.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Summary {
    /// Title or name of the scenario.
    pub scenario: String,
    /// `sim`, `live` or `vm`.
    pub world: String,
    /// Master seed.
    pub seed: u64,
    /// Length of the run, s.
    pub duration_s: Option<f64>,
    /// Which version ran it.
    pub paceline_version: String,
    /// Recorded links.
    pub links: Vec<LinkSummary>,
    /// Flows, in the order of the scenario.
    pub flows: Vec<FlowSummary>,
    /// Jain's index over the flows' throughputs; null without a flow, or when nothing was delivered.
    pub jain_index: Option<f64>,
    /// What the engine did.
    pub engine: EngineSummary,
}

/// One directed link.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[allow(missing_docs)] // The names and units are those of `LinkOutcome`.
pub struct LinkSummary {
    pub name: String,
    pub capacity_bps: Option<f64>,
    pub throughput_bps: Option<f64>,
    pub utilization: Option<f64>,
    pub drops: u64,
    pub marks: u64,
    pub queue_ms: Option<StatsSummary>,
    pub queue_bytes: Option<StatsSummary>,
}

/// One flow.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[allow(missing_docs)] // The names and units are those of `FlowOutcome`.
pub struct FlowSummary {
    pub name: String,
    pub controller: String,
    pub stack: String,
    pub start_s: Option<f64>,
    pub end_s: Option<f64>,
    pub throughput_bps: Option<f64>,
    pub goodput_bps: Option<f64>,
    pub rate_bps: Option<StatsSummary>,
    pub rtt_ms: Option<StatsSummary>,
    pub cwnd_bytes: Option<StatsSummary>,
    pub pacing_bps: Option<StatsSummary>,
    pub sent_packets: u64,
    pub delivered_packets: u64,
    pub lost_packets: u64,
    pub in_flight_packets: u64,
    pub retransmitted_packets: u64,
    pub timeouts: u64,
    /// Lost over sent; null when nothing was sent.
    pub loss_fraction: Option<f64>,
    pub queueing_delay_ms: Option<StatsSummary>,
    pub signal_delay_ms: SignalDelay,
    pub power_score: Option<f64>,
    pub completion_s: Option<f64>,
}

/// Signal delay (contest definition), ms.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct SignalDelay {
    /// 95th percentile.
    pub p95: Option<f64>,
}

/// A distribution, in the unit of the key that holds it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[allow(missing_docs)]
pub struct StatsSummary {
    pub mean: Option<f64>,
    pub std: Option<f64>,
    pub min: Option<f64>,
    pub p5: Option<f64>,
    pub p25: Option<f64>,
    pub p50: Option<f64>,
    pub p75: Option<f64>,
    pub p95: Option<f64>,
    pub p99: Option<f64>,
    pub max: Option<f64>,
}

/// What the engine did.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct EngineSummary {
    /// Events handled; null where none are counted.
    pub events: Option<u64>,
    /// Data packets delivered to receivers.
    pub packets: u64,
    /// CPU time of the event loop, s: the one number that differs between two equal runs.
    pub cpu_s: Option<f64>,
    /// State per flow, apart from packets in flight and time series, bytes.
    pub bytes_per_flow: Option<f64>,
}

impl Summary {
    /// Puts what a run yielded into the promised shape. Flows are matched with `info.flows` by position; a flow without
    /// an entry there keeps its numbers and is called by its index.
    pub fn new(info: &RunInfo, outcome: &Outcome) -> Self {
        let flows = outcome.flows.iter().enumerate();
        let flows = flows.map(|(i, flow)| FlowSummary::new(i, info.flows.get(i), flow));
        let throughputs: Vec<f64> = outcome.flows.iter().map(|f| f.throughput_bps).collect();
        Self {
            scenario: info.scenario.clone(),
            world: info.world.clone(),
            seed: info.seed,
            duration_s: finite(info.duration_s),
            paceline_version: super::VERSION.to_string(),
            links: outcome.links.iter().map(LinkSummary::from).collect(),
            flows: flows.collect(),
            jain_index: jain_index(&throughputs),
            engine: EngineSummary::from(outcome.engine),
        }
    }

    /// The object as one line of JSON, what `run --json` prints.
    pub fn to_json(&self) -> String {
        // Strings, integers and finite numbers under string keys: nothing in here that JSON cannot hold.
        serde_json::to_string(self).expect("a summary is always valid JSON")
    }
}

impl FlowSummary {
    fn new(index: usize, info: Option<&FlowInfo>, flow: &FlowOutcome) -> Self {
        Self {
            name: info.map_or_else(|| format!("flow{index}"), |i| i.name.clone()),
            controller: info.map_or_else(|| "unknown".into(), |i| i.controller.clone()),
            stack: info.map_or_else(|| "unknown".into(), |i| i.stack.clone()),
            start_s: finite(flow.start_s),
            end_s: finite(flow.end_s),
            throughput_bps: finite(flow.throughput_bps),
            goodput_bps: finite(flow.goodput_bps),
            rate_bps: flow.rate_bps.map(StatsSummary::from),
            rtt_ms: flow.rtt_ms.map(StatsSummary::from),
            cwnd_bytes: flow.cwnd_bytes.map(StatsSummary::from),
            pacing_bps: flow.pacing_bps.map(StatsSummary::from),
            sent_packets: flow.sent_packets,
            delivered_packets: flow.delivered_packets,
            lost_packets: flow.lost_packets,
            in_flight_packets: flow.in_flight_packets,
            retransmitted_packets: flow.retransmitted_packets,
            timeouts: flow.timeouts,
            loss_fraction: finite(flow.lost_packets as f64 / flow.sent_packets as f64),
            queueing_delay_ms: flow.queueing_delay_ms.map(StatsSummary::from),
            signal_delay_ms: SignalDelay { p95: flow.signal_delay_p95_ms.and_then(finite) },
            power_score: flow.power_score.and_then(finite),
            completion_s: flow.completion_s.and_then(finite),
        }
    }
}

impl From<&LinkOutcome> for LinkSummary {
    fn from(link: &LinkOutcome) -> Self {
        Self {
            name: link.name.clone(),
            capacity_bps: link.capacity_bps.and_then(finite),
            throughput_bps: finite(link.throughput_bps),
            utilization: link.utilization.and_then(finite),
            drops: link.drops,
            marks: link.marks,
            queue_ms: link.queue_ms.map(StatsSummary::from),
            queue_bytes: link.queue_bytes.map(StatsSummary::from),
        }
    }
}

impl From<EngineStats> for EngineSummary {
    fn from(engine: EngineStats) -> Self {
        Self {
            events: (engine.events > 0).then_some(engine.events),
            packets: engine.packets,
            cpu_s: finite(engine.cpu_s),
            bytes_per_flow: finite(engine.bytes_per_flow),
        }
    }
}

impl From<Stats> for StatsSummary {
    fn from(s: Stats) -> Self {
        Self {
            mean: finite(s.mean),
            std: finite(s.std),
            min: finite(s.min),
            p5: finite(s.p5),
            p25: finite(s.p25),
            p50: finite(s.p50),
            p75: finite(s.p75),
            p95: finite(s.p95),
            p99: finite(s.p99),
            max: finite(s.max),
        }
    }
}

impl StatsSummary {
    /// Name and value of each statistic, in the order of the keys.
    pub fn named(&self) -> [(&'static str, Option<f64>); 10] {
        [
            ("mean", self.mean),
            ("std", self.std),
            ("min", self.min),
            ("p5", self.p5),
            ("p25", self.p25),
            ("p50", self.p50),
            ("p75", self.p75),
            ("p95", self.p95),
            ("p99", self.p99),
            ("max", self.max),
        ]
    }
}

/// Jain's fairness index `(sum x)^2 / (n * sum x^2)`: 1 when all are equal, `1/n` when one has everything. `None` for no
/// flows, for all zero, and when a rate is not a number.
pub fn jain_index(rates: &[f64]) -> Option<f64> {
    // Scaled by the largest, so that no square overflows.
    let largest = rates.iter().copied().fold(0.0, f64::max);
    let (mut sum, mut squares) = (0.0, 0.0);
    for rate in rates {
        sum += rate / largest;
        squares += (rate / largest) * (rate / largest);
    }
    finite(sum * sum / (rates.len() as f64 * squares))
}

/// `None` for NaN and infinity, which JSON cannot write and no reader expects.
pub(super) fn finite(value: f64) -> Option<f64> {
    value.is_finite().then_some(value)
}
