//! What a run yields: exact counters, statistics, time series. Plain numbers; `lab` turns them into tables on disk.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};

use serde::{Deserialize, Serialize};

/// Everything a run yields.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Outcome {
    /// One per flow of the plan, in its order.
    pub flows: Vec<FlowOutcome>,
    /// One per recorded link of the plan, in its order.
    pub links: Vec<LinkOutcome>,
    /// What the engine did.
    pub engine: EngineStats,
}

/// Summary of a distribution. All in one unit, that of the field that holds it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[allow(missing_docs)]
pub struct Stats {
    pub mean: f64,
    pub std: f64,
    pub min: f64,
    pub p5: f64,
    pub p25: f64,
    pub p50: f64,
    pub p75: f64,
    pub p95: f64,
    pub p99: f64,
    pub max: f64,
}

/// One flow. Statistics and rates are over `[warmup, duration]`, counters over the whole run; `None` = not measured.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct FlowOutcome {
    /// When it began, s.
    pub start_s: f64,
    /// When it stopped or completed, s; the end of the run otherwise.
    pub end_s: f64,
    /// Bytes on the wire delivered to the receiver, every copy counted, bit/s.
    pub throughput_bps: f64,
    /// Payload delivered, once, bit/s.
    pub goodput_bps: f64,
    /// Throughput per sample interval, bit/s.
    pub rate_bps: Option<Stats>,
    /// Pacing rate at the samples, bit/s; `None` for an unpaced flow.
    pub pacing_bps: Option<Stats>,
    /// RTT samples as the controller saw them, ms.
    pub rtt_ms: Option<Stats>,
    /// Congestion window at the samples, bytes.
    pub cwnd_bytes: Option<Stats>,
    /// Time in queues and in service over the forward path per delivered packet, ms: everything but propagation.
    pub queueing_delay_ms: Option<Stats>,
    /// 95th percentile of the signal delay, ms (contest definition).
    pub signal_delay_p95_ms: Option<f64>,
    /// Throughput in Mbit/s over the 95th-percentile signal delay in s.
    pub power_score: Option<f64>,
    /// Data packets sent, retransmissions included.
    pub sent_packets: u64,
    /// Data packets that reached the receiver, duplicates included.
    pub delivered_packets: u64,
    /// Data packets that the links dropped.
    pub lost_packets: u64,
    /// Data packets still on the way at the end. `sent = delivered + lost + in flight`, always.
    pub in_flight_packets: u64,
    /// Of the packets sent, how many were retransmissions.
    pub retransmitted_packets: u64,
    /// Timeouts.
    pub timeouts: u64,
    /// Time from start to the last byte acknowledged, s; `None` while unfinished or endless.
    pub completion_s: Option<f64>,
    /// Time series.
    pub series: Series,
}

/// One directed link.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct LinkOutcome {
    /// Name from the plan.
    pub name: String,
    /// Mean capacity offered, bit/s; `None` for an unlimited link.
    pub capacity_bps: Option<f64>,
    /// Bytes that left the link, bit/s.
    pub throughput_bps: f64,
    /// Throughput over capacity.
    pub utilization: Option<f64>,
    /// Packets dropped over the whole run, for whatever reason.
    pub drops: u64,
    /// Packets marked over the whole run.
    pub marks: u64,
    /// Time that a packet waited and was served, ms, per packet.
    pub queue_ms: Option<Stats>,
    /// Bytes waiting, at the samples.
    pub queue_bytes: Option<Stats>,
    /// Time series.
    pub series: Series,
}

/// A table of samples: a column of times, then named columns of the same length. NaN = no value.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(from = "Sent", into = "Sent")]
pub struct Series {
    /// Name and unit of each column, kept once for all tables that have the same.
    names: Arc<[(&'static str, &'static str)]>,
    /// The times, s, then the columns, one after the other: one piece of memory, for there are as many tables as flows.
    values: Vec<f64>,
}

/// One column of a [`Series`].
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Column<'a> {
    /// `snake_case`, with the unit as suffix where the quantity is the simulator's own.
    pub name: &'static str,
    /// Unit for axes and column metadata.
    pub unit: &'static str,
    /// One value per sample.
    pub values: &'a [f64],
}

/// A [`Series`] on its way between two processes, where its names belong to nobody.
#[derive(Serialize, Deserialize)]
struct Sent {
    names: Vec<(String, String)>,
    values: Vec<f64>,
}

impl From<Series> for Sent {
    fn from(series: Series) -> Self {
        let names = series.names.iter().map(|&(name, unit)| (name.into(), unit.into()));
        Self { names: names.collect(), values: series.values }
    }
}

impl From<Sent> for Series {
    fn from(sent: Sent) -> Self {
        let Sent { names, mut values } = sent;
        // What was not written by this library: rather a sample less than a table that is none.
        values.truncate(values.len() / (names.len() + 1) * (names.len() + 1));
        let names = names.into_iter().map(|(name, unit)| (kept(name), kept(unit))).collect();
        Self { names, values }
    }
}

/// `text` for as long as the process lives, once: the tables of all flows and runs share a few names.
fn kept(text: String) -> &'static str {
    static KEPT: Mutex<BTreeSet<&'static str>> = Mutex::new(BTreeSet::new());
    let mut kept = KEPT.lock().expect("no holder panics");
    if let Some(known) = kept.get(text.as_str()) {
        return known;
    }
    let text: &'static str = text.leak();
    kept.insert(text);
    text
}

impl Series {
    /// A table of these columns. One that is shorter than the times ends in NaN, what is longer is left out.
    pub fn new(time_s: &[f64], columns: &[Column<'_>]) -> Self {
        let mut values = time_s.to_vec();
        for column in columns {
            let rows = column.values.iter().copied().chain(std::iter::repeat(f64::NAN));
            values.extend(rows.take(time_s.len()));
        }
        Self { names: columns.iter().map(|c| (c.name, c.unit)).collect(), values }
    }

    /// The table of `values`: times, then the columns of these names and units, one after the other.
    pub(crate) fn of_values(names: Arc<[(&'static str, &'static str)]>, values: Vec<f64>) -> Self {
        debug_assert_eq!(values.len() % (names.len() + 1), 0, "columns of one length");
        Self { names, values }
    }

    /// How many samples it holds.
    pub fn rows(&self) -> usize {
        self.values.len() / (self.names.len() + 1)
    }

    /// Sample times, s.
    pub fn time_s(&self) -> &[f64] {
        &self.values[..self.rows()]
    }

    /// The columns, in order.
    pub fn columns(&self) -> impl ExactSizeIterator<Item = Column<'_>> {
        let rows = self.rows();
        self.names.iter().enumerate().map(move |(n, &(name, unit))| {
            let values = &self.values[(n + 1) * rows..(n + 2) * rows];
            Column { name, unit, values }
        })
    }

    /// The first column called `name`.
    pub fn column(&self, name: &str) -> Option<Column<'_>> {
        self.columns().find(|column| column.name == name)
    }
}

/// What the engine did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct EngineStats {
    /// Events handled.
    pub events: u64,
    /// Data packets delivered to receivers.
    pub packets: u64,
    /// CPU time of the event loop, s. The one number here that differs between two equal runs.
    pub cpu_s: f64,
    /// Bytes of state held per flow, apart from packets in flight, the time series and the controller's own.
    pub bytes_per_flow: f64,
}
