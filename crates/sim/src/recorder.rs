//! Samples time series at an interval and sums up at the end. Nothing here grows with the number of packets. A flow that has not
//! begun costs 12 bytes and no time, one that has completed no more time.

use std::cmp::Reverse;

use paceline_net::Picos;

use crate::flow::Flows;
use crate::host::SendCounters;
use crate::link_meter::MeteredLink;
use crate::outcome::{EngineStats, FlowOutcome, Outcome, Stats};
use crate::receiver::Receiver;
use crate::series::{Rows, bps, seconds};
use crate::stats::summarize;

/// The simulator's own columns of a flow, before the controller's. Packets are counted from the start of the run.
const FLOW_COLUMNS: [(&str, &str); 12] = [
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
#[derive(Default)]
struct FlowSeries {
    rows: Rows,
    delivered_bytes: u64,
    sent_bytes: u64,
}

/// How many flows ahead to ask for the state that a sample reads: running flows are mostly neighbours.
const FLOWS_AHEAD: usize = 6;

pub(crate) struct Recorder {
    warmup: Picos,
    end: Picos,
    interval: Picos,
    /// Flows without a sample so far; the next to begin is the last.
    waiting: Vec<u32>,
    /// Flows to sample.
    running: Vec<u32>,
    /// Per flow, made at its first sample.
    series: Vec<Option<Box<FlowSeries>>>,
}

impl Recorder {
    pub(crate) fn new(flows: &Flows, warmup: Picos, end: Picos, interval: Picos) -> Self {
        let mut waiting: Vec<u32> = (0..flows.len() as u32).collect();
        waiting.sort_by_key(|flow| Reverse(flows.specs[*flow as usize].start));
        let series = (0..flows.len()).map(|_| None).collect();
        Self { warmup, end, interval, waiting, running: Vec::new(), series }
    }

    pub(crate) fn interval(&self) -> Picos {
        self.interval
    }

    /// Takes one sample of everything.
    pub(crate) fn sample<'a>(
        &mut self,
        now: Picos,
        flows: &mut Flows,
        links: impl Iterator<Item = &'a mut MeteredLink>,
    ) {
        while let Some(flow) = self.waiting.pop_if(|f| flows.specs[*f as usize].start <= now) {
            self.running.push(flow);
        }
        let (interval, series) = (self.interval, &mut self.series);
        self.running.retain(|flow| {
            let flow = *flow as usize;
            flows.prefetch_ends(flow + FLOWS_AHEAD);
            let Some(sender) = &flows.senders[flow] else { return true };
            // What it had still to send when it was last sampled belongs to its last interval.
            let over = sender.completed().is_some_and(|t| t + interval <= now);
            if !over {
                series[flow].get_or_insert_default().sample(now, interval, flows, flow);
            }
            !over
        });
        for link in links {
            link.sample(now, self.interval);
        }
    }

    pub(crate) fn finish(
        self,
        flows: &Flows,
        links: impl Iterator<Item = MeteredLink>,
        in_flight: &[u64],
        engine: EngineStats,
    ) -> Outcome {
        let (warmup, end) = (self.warmup, self.end);
        let flows = self
            .series
            .into_iter()
            .zip(in_flight)
            .enumerate()
            .map(|(flow, (series, in_flight))| {
                let series = series.unwrap_or_default();
                series.finish(flows, flow, *in_flight, warmup, end)
            })
            .collect();
        let links = links.filter_map(|link| link.finish(warmup, end)).collect();
        Outcome { flows, links, engine }
    }
}

impl FlowSeries {
    fn finish(
        self,
        flows: &Flows,
        flow: usize,
        in_flight: u64,
        warmup: Picos,
        end: Picos,
    ) -> FlowOutcome {
        let (kind, start) = (flows.kind(flow), flows.specs[flow].start);
        let sender = flows.senders[flow].as_deref();
        let counters = sender.map_or_else(SendCounters::default, |sender| sender.host().counters);
        let completed = sender.and_then(|sender| sender.completed());
        let delivery = flows.receivers[flow].as_deref().map(|receiver| &receiver.meter);
        let last = completed.or(kind.stop).unwrap_or(end).min(end);
        // Rates are over the part of [warmup, end] in which the flow existed.
        let active = last.saturating_sub(warmup.max(start)).max(1);
        let from = seconds(warmup.max(start));
        let mut columns = FLOW_COLUMNS.to_vec();
        columns.extend(kind.fields.iter().map(|f| (f.name, f.unit)));
        let series = self.rows.into_series(&columns);
        let column = |name: &str| -> Option<Stats> {
            let column = series.columns.iter().find(|c| c.name == name)?;
            let after = series.time_s.partition_point(|t| *t <= from);
            summarize(&column.values[after..])
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
            rtt_ms: sender.and_then(|sender| sender.meter.rtt.stats(1e-6)),
            cwnd_bytes: column("cwnd_bytes"),
            queueing_delay_ms: delivery.and_then(|d| d.queueing.stats(1e-6)),
            signal_delay_p95_ms: signal,
            power_score: signal.filter(|ms| *ms > 0.0).map(|ms| throughput_bps / 1e6 / (ms / 1e3)),
            sent_packets: counters.packets,
            delivered_packets: delivery.map_or(0, |d| d.packets),
            lost_packets: flows.dropped[flow],
            in_flight_packets: in_flight,
            retransmitted_packets: counters.retransmitted,
            timeouts: counters.timeouts,
            completion_s: completed.map(|t| seconds(t - start)),
            series,
        }
    }

    fn sample(&mut self, now: Picos, interval: Picos, flows: &mut Flows, flow: usize) {
        let columns = FLOW_COLUMNS.len() + flows.kind(flow).fields.len();
        let packet_bytes = f64::from(flows.kind(flow).packets.data_bytes);
        let dropped = flows.dropped[flow];
        let Some(sender) = flows.senders[flow].as_mut() else { return };
        let (delivered, delivered_bytes, queueing_ms) = match flows.receivers[flow].as_deref_mut() {
            Some(Receiver { meter, .. }) => (meter.packets, meter.bytes, meter.interval.take_ms()),
            None => (0, 0, f64::NAN),
        };
        let rtt_ms = sender.meter.interval.take_ms();
        let (host, in_flight) = (sender.host(), sender.in_flight());
        let nan_if_zero = |v: u64| if v == 0 { f64::NAN } else { v as f64 / 1e6 };
        let (own, observed) = self.rows.push(now, columns).split_at_mut(FLOW_COLUMNS.len());
        own.copy_from_slice(&[
            bps(delivered_bytes - self.delivered_bytes, interval),
            bps(host.counters.bytes - self.sent_bytes, interval),
            host.control.cwnd_bytes as f64,
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
