//! Samples time series at an interval and sums up at the end. Nothing here grows with the number of packets. A flow that has not
//! begun costs 4 bytes and no time, one that has completed no more time.

use std::cmp::Reverse;

use paceline_net::Picos;

use crate::flow::{FlowKind, Flows};
use crate::host::SendCounters;
use crate::link_meter::Recorded;
use crate::meter::DeliveryMeter;
use crate::outcome::{EngineStats, FlowOutcome, Outcome, Series, Stats};
use crate::receiver::Receiver;
use crate::series::{Names, Rows, bps, seconds};
use crate::stats::summarize;

/// The simulator's own columns of a flow, before the controller's. Packets are counted from the start of the run.
pub(crate) const FLOW_COLUMNS: [(&str, &str); 12] = [
    ("throughput_bps", "bit/s"),
    ("send_bps", "bit/s"),
    ("cwnd_bytes", "bytes"),
    ("in_flight_bytes", "bytes"),
    ("sent_packets", "packets"),
    ("pacing_bps", "bit/s"),
    ("rtt_ms", "ms"),
    ("srtt_ms", "ms"),
    ("queueing_delay_ms", "ms"),
    ("delivered_packets", "packets"),
    ("lost_packets", "packets"),
    ("retransmitted_packets", "packets"),
];

/// Samples of one flow, and the counters at its last sample.
struct FlowSeries {
    flow: u32,
    /// [`Flows::kind_number`], which is out of the way.
    kind: u32,
    rows: Rows,
    delivered_bytes: u64,
    sent_bytes: u64,
}

/// How many flows ahead to ask for what a sample reads of a flow, and what the end of the run does.
const FLOWS_AHEAD: usize = 6;

pub(crate) struct Recorder {
    warmup: Picos,
    end: Picos,
    interval: Picos,
    /// Flows without a sample so far; the next to begin is the last.
    waiting: Vec<u32>,
    /// Flows to sample.
    running: Vec<FlowSeries>,
    /// Flows that have had their last sample.
    over: Vec<FlowSeries>,
}

impl Recorder {
    pub(crate) fn new(flows: &Flows, warmup: Picos, end: Picos, interval: Picos) -> Self {
        let mut waiting: Vec<u32> = (0..flows.len() as u32).collect();
        waiting.sort_by_key(|flow| Reverse(flows.specs[*flow as usize].start));
        Self { warmup, end, interval, waiting, running: Vec::new(), over: Vec::new() }
    }

    pub(crate) fn interval(&self) -> Picos {
        self.interval
    }

    /// Takes one sample of everything.
    pub(crate) fn sample<'a>(
        &mut self,
        now: Picos,
        flows: &mut Flows,
        links: impl Iterator<Item = &'a mut dyn Recorded>,
    ) {
        while let Some(flow) = self.waiting.pop_if(|f| flows.specs[*f as usize].start <= now) {
            let kind = flows.kind_number(flow as usize);
            self.running.push(FlowSeries::new(flow, kind as u32));
        }
        let (interval, to_come) = (self.interval, (self.end - now) / self.interval);
        // What it had still to send when it was last sampled belongs to its last interval.
        let is_over = |flows: &Flows, series: &FlowSeries| {
            let sender = flows.senders[series.flow as usize].as_ref();
            sender.and_then(|sender| sender.completed()).is_some_and(|t| t + interval <= now)
        };
        let mut any_over = false;
        for at in 0..self.running.len() {
            if let Some(next) = self.running.get(at + 2 * FLOWS_AHEAD) {
                flows.prefetch_ends(next.flow as usize);
            }
            if let Some(next) = self.running.get(at + FLOWS_AHEAD) {
                next.prefetch(flows);
            }
            let series = &mut self.running[at];
            if is_over(flows, series) {
                any_over = true;
            } else {
                series.sample(now, interval, to_come, flows);
            }
        }
        if any_over {
            self.over.extend(self.running.extract_if(.., |series| {
                let over = is_over(flows, series);
                if over {
                    series.rows.shrink();
                }
                over
            }));
        }
        for link in links {
            link.sample(now, self.interval);
        }
    }

    /// What came of it all; `in_flight` counts each flow's data packets on the way. Of `engine`, the memory per flow is filled in.
    pub(crate) fn finish(
        self,
        mut flows: Flows,
        links: impl Iterator<Item = Box<dyn Recorded>>,
        in_flight: &[u64],
        engine: EngineStats,
    ) -> Outcome {
        let (warmup, end) = (self.warmup, self.end);
        let names: Vec<Names> = flows.kinds().iter().map(columns_of).collect();
        let mut sampled = self.over;
        sampled.extend(self.running);
        sampled.sort_unstable_by_key(|series| series.flow);
        let mut sampled = sampled.into_iter().peekable();
        let mut state_bytes = flows.table_bytes();
        let (mut outcomes, mut scratch) = (Vec::with_capacity(flows.len()), Vec::new());
        for (flow, in_flight) in in_flight.iter().enumerate() {
            flows.prefetch_ends(flow + 2 * FLOWS_AHEAD);
            flows.prefetch_statistics(flow + FLOWS_AHEAD);
            state_bytes += flows.end_bytes(flow);
            let rows = sampled.next_if(|series| series.flow as usize == flow);
            let rows = rows.map(|series| series.rows).unwrap_or_default();
            let names = &names[flows.kind_number(flow)];
            let series = rows.into_series(names, &mut scratch);
            let window = [warmup, end];
            outcomes.push(outcome(&flows, flow, *in_flight, series, window, &mut scratch));
            // Now that its memory is in the cache.
            flows.drop_ends(flow);
        }
        let links = links.filter_map(|link| link.finish(warmup, end)).collect();
        let bytes_per_flow = state_bytes as f64 / flows.len().max(1) as f64;
        Outcome { flows: outcomes, links, engine: EngineStats { bytes_per_flow, ..engine } }
    }
}

/// How many columns the flows of a kind have.
fn columns(kind: &FlowKind) -> usize {
    FLOW_COLUMNS.len() + kind.fields.len()
}

/// Their names and units.
fn columns_of(kind: &FlowKind) -> Names {
    let observed = kind.fields.iter().map(|field| (field.name, field.unit));
    FLOW_COLUMNS.into_iter().chain(observed).collect()
}

/// What came of `flow`. `scratch` is overwritten.
fn outcome(
    flows: &Flows,
    flow: usize,
    in_flight_packets: u64,
    series: Series,
    window: [Picos; 2],
    scratch: &mut Vec<f64>,
) -> FlowOutcome {
    let sender = flows.senders[flow].as_deref();
    let facts = FlowFacts {
        start: flows.specs[flow].start,
        stop: flows.kind(flow).stop,
        completed: sender.and_then(|sender| sender.completed()),
        counters: sender.map_or_else(SendCounters::default, |sender| sender.host().counters),
        rtt_ms: sender.and_then(|sender| sender.meter.rtt.stats(1e-6)),
        delivery: flows.receivers[flow].as_deref().map(|receiver| &receiver.meter),
        lost_packets: flows.dropped[flow],
        in_flight_packets,
    };
    facts.outcome(series, window, scratch)
}

/// What is known of a flow at the end.
pub(crate) struct FlowFacts<'a> {
    pub(crate) start: Picos,
    pub(crate) stop: Option<Picos>,
    pub(crate) completed: Option<Picos>,
    pub(crate) counters: SendCounters,
    pub(crate) rtt_ms: Option<Stats>,
    pub(crate) delivery: Option<&'a DeliveryMeter>,
    pub(crate) lost_packets: u64,
    pub(crate) in_flight_packets: u64,
}

impl FlowFacts<'_> {
    /// What came of it in `[warmup, end]`. `scratch` is overwritten.
    pub(crate) fn outcome(
        self,
        series: Series,
        [warmup, end]: [Picos; 2],
        scratch: &mut Vec<f64>,
    ) -> FlowOutcome {
        let Self { start, delivery, counters, .. } = self;
        let last = self.completed.or(self.stop).unwrap_or(end).min(end);
        // Rates are over the part of [warmup, end] in which the flow existed.
        let active = last.saturating_sub(warmup.max(start)).max(1);
        let from = seconds(warmup.max(start));
        let after = series.time_s().partition_point(|t| *t <= from);
        let mut column = |name: &str| -> Option<Stats> {
            summarize(&series.column(name)?.values[after..], scratch)
        };
        let throughput_bps = bps(delivery.map_or(0, |d| d.window_bytes), active);
        let signal = delivery.and_then(|d| d.signal.p95_ms());
        FlowOutcome {
            start_s: seconds(start),
            end_s: seconds(last),
            throughput_bps,
            goodput_bps: bps(delivery.map_or(0, |d| d.window_payload_bytes), active),
            rate_bps: column("throughput_bps"),
            pacing_bps: column("pacing_bps"),
            rtt_ms: self.rtt_ms,
            cwnd_bytes: column("cwnd_bytes"),
            queueing_delay_ms: delivery.and_then(|d| d.queueing.stats(1e-6)),
            signal_delay_p95_ms: signal,
            power_score: signal.filter(|ms| *ms > 0.0).map(|ms| throughput_bps / 1e6 / (ms / 1e3)),
            sent_packets: counters.packets,
            delivered_packets: delivery.map_or(0, |d| d.packets),
            lost_packets: self.lost_packets,
            in_flight_packets: self.in_flight_packets,
            retransmitted_packets: counters.retransmitted,
            timeouts: counters.timeouts,
            completion_s: self.completed.map(|t| seconds(t - start)),
            series,
        }
    }
}

impl FlowSeries {
    fn new(flow: u32, kind: u32) -> Self {
        Self { flow, kind, rows: Rows::default(), delivered_bytes: 0, sent_bytes: 0 }
    }

    /// Fetches what a sample reads and writes beyond the flow's ends, which should be there by now.
    #[inline]
    fn prefetch(&self, flows: &Flows) {
        let flow = self.flow as usize;
        self.rows.prefetch(columns(&flows.kinds()[self.kind as usize]));
        if let Some(sender) = &flows.senders[flow] {
            sender.prefetch_sampled();
        }
    }

    fn sample(&mut self, now: Picos, interval: Picos, to_come: u64, flows: &mut Flows) {
        let flow = self.flow as usize;
        let kind = &flows.kinds()[self.kind as usize];
        let (columns, packet_bytes) = (columns(kind), f64::from(kind.packets.data_bytes));
        let dropped = flows.dropped[flow];
        let Some(sender) = flows.senders[flow].as_mut() else { return };
        let (delivered, delivered_bytes, queueing_ms) = match flows.receivers[flow].as_deref_mut() {
            Some(Receiver { meter, .. }) => (meter.packets, meter.bytes, meter.interval.take_ms()),
            None => (0, 0, f64::NAN),
        };
        let rtt_ms = sender.meter.interval.take_ms();
        let (host, in_flight) = (sender.host(), sender.in_flight());
        let nan_if_zero = |v: u64| if v == 0 { f64::NAN } else { v as f64 / 1e6 };
        let (own, observed) =
            self.rows.push(now, columns, to_come).split_at_mut(FLOW_COLUMNS.len());
        own.copy_from_slice(&[
            bps(delivered_bytes - self.delivered_bytes, interval),
            bps(host.counters.bytes - self.sent_bytes, interval),
            sender.cwnd_bytes() as f64,
            in_flight as f64 * packet_bytes,
            host.counters.packets as f64,
            host.pacing_bytes_per_s().map_or(f64::NAN, |rate| rate as f64 * 8.0),
            rtt_ms,
            nan_if_zero(host.rtt.srtt_ns()),
            queueing_ms,
            delivered as f64,
            dropped as f64,
            host.counters.retransmitted as f64,
        ]);
        if !observed.is_empty() {
            host.observe(observed);
        }
        self.sent_bytes = host.counters.bytes;
        self.delivered_bytes = delivered_bytes;
    }
}
