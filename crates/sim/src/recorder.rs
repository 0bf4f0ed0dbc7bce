//! Samples time series at an interval and sums up at the end. Nothing here grows with the number of packets, and a flow that has
//! not begun costs 16 bytes.

use paceline_net::Picos;

use crate::events::NEVER;
use crate::flow::Flow;
use crate::outcome::{EngineStats, FlowOutcome, Outcome, Stats};
use crate::series::{Rows, bps, seconds};
use crate::stats::summarize;
use crate::transit::RunningLink;

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

/// A flow in the record.
struct FlowRecord {
    /// When it begins; [`NEVER`] when there is nothing more to sample.
    from: Picos,
    /// Made at its first sample.
    series: Option<Box<FlowSeries>>,
}

// What a flow costs that has not begun.
const _: () = assert!(size_of::<FlowRecord>() == 16);

/// Samples of one flow, and the counters at its last sample.
#[derive(Default)]
struct FlowSeries {
    rows: Rows,
    delivered_bytes: u64,
    sent_bytes: u64,
}

pub(crate) struct Recorder {
    warmup: Picos,
    end: Picos,
    interval: Picos,
    flows: Vec<FlowRecord>,
    /// Data packets that reached a receiver.
    pub(crate) delivered: u64,
}

impl Recorder {
    pub(crate) fn new(flows: &[Flow], warmup: Picos, end: Picos, interval: Picos) -> Self {
        let waiting = |flow: &Flow| FlowRecord { from: flow.spec.start, series: None };
        let flows = flows.iter().map(waiting).collect();
        Self { warmup, end, interval, flows, delivered: 0 }
    }

    pub(crate) fn interval(&self) -> Picos {
        self.interval
    }

    /// Takes one sample of everything.
    pub(crate) fn sample(&mut self, now: Picos, flows: &mut [Flow], links: &mut [RunningLink]) {
        for (record, flow) in self.flows.iter_mut().zip(flows) {
            if now >= record.from {
                record.sample(now, self.interval, flow);
            }
        }
        for link in links {
            let Some(meter) = &mut link.meter else { continue };
            let backlog = link.model.backlog(now);
            let offered = link.model.offered_bytes(now - self.interval, now);
            meter.sample(now, offered, backlog.bytes);
        }
    }

    pub(crate) fn finish(
        self,
        flows: Vec<Flow>,
        links: Vec<RunningLink>,
        in_flight: &[u64],
        engine: EngineStats,
    ) -> Outcome {
        let (warmup, end) = (self.warmup, self.end);
        let flows = self
            .flows
            .into_iter()
            .zip(&flows)
            .zip(in_flight)
            .map(|((record, flow), in_flight)| record.finish(flow, *in_flight, warmup, end))
            .collect();
        let links = links
            .into_iter()
            .filter_map(|link| {
                let offered = link.model.offered_bytes(warmup, end);
                link.meter.map(|meter| meter.finish(offered))
            })
            .collect();
        Outcome { flows, links, engine }
    }
}

impl FlowRecord {
    fn sample(&mut self, now: Picos, interval: Picos, flow: &mut Flow) {
        if flow.completed.is_some_and(|t| t + interval <= now) {
            self.from = NEVER;
        } else if flow.host().is_some() {
            self.series.get_or_insert_default().sample(now, interval, flow);
        }
    }

    fn finish(self, flow: &Flow, in_flight: u64, warmup: Picos, end: Picos) -> FlowOutcome {
        let (meter, counters) = (&flow.meter, flow.counters());
        let last = flow.completed.or(flow.spec.stop).unwrap_or(end).min(end);
        // Rates are over the part of [warmup, end] in which the flow existed.
        let active = last.saturating_sub(warmup.max(flow.spec.start)).max(1);
        let from = seconds(warmup.max(flow.spec.start));
        let mut columns = FLOW_COLUMNS.to_vec();
        columns.extend(flow.spec.fields.iter().map(|f| (f.name, f.unit)));
        let series = self.series.unwrap_or_default().rows.into_series(&columns);
        let column = |name: &str| -> Option<Stats> {
            let column = series.columns.iter().find(|c| c.name == name)?;
            let after = series.time_s.partition_point(|t| *t <= from);
            summarize(&column.values[after..])
        };
        let throughput_bps = bps(meter.window_bytes, active);
        let signal = meter.signal.p95_ms();
        FlowOutcome {
            start_s: seconds(flow.spec.start),
            end_s: seconds(last),
            throughput_bps,
            goodput_bps: bps(meter.window_payload_bytes, active),
            rate_bps: column("throughput_bps"),
            pacing_bps: column("pacing_bps"),
            rtt_ms: meter.rtt.stats(1e-6),
            cwnd_bytes: column("cwnd_bytes"),
            queueing_delay_ms: meter.queueing.stats(1e-6),
            signal_delay_p95_ms: signal,
            power_score: signal.filter(|ms| *ms > 0.0).map(|ms| throughput_bps / 1e6 / (ms / 1e3)),
            sent_packets: counters.packets,
            delivered_packets: meter.delivered_packets,
            lost_packets: meter.dropped_packets,
            in_flight_packets: in_flight,
            retransmitted_packets: counters.retransmitted,
            timeouts: counters.timeouts,
            completion_s: flow.completed.map(|t| seconds(t - flow.spec.start)),
            series,
        }
    }
}

impl FlowSeries {
    fn sample(&mut self, now: Picos, interval: Picos, flow: &mut Flow) {
        let Some((host, in_flight)) = flow.host() else { return };
        let packet_bytes = flow.data_bytes() as f64;
        let meter = &flow.meter;
        let nan_if_zero = |v: u64| if v == 0 { f64::NAN } else { v as f64 / 1e6 };
        let row = self.rows.push(now, FLOW_COLUMNS.len() + flow.spec.fields.len());
        let (own, observed) = row.split_at_mut(FLOW_COLUMNS.len());
        own.copy_from_slice(&[
            bps(meter.delivered_bytes - self.delivered_bytes, interval),
            bps(host.counters.bytes - self.sent_bytes, interval),
            host.control.cwnd_bytes as f64,
            in_flight as f64 * packet_bytes,
            host.counters.packets as f64,
            host.pacing_bytes_per_s().map_or(f64::NAN, |rate| rate as f64 * 8.0),
            meter.interval.rtt_ms(),
            nan_if_zero(host.rtt.srtt_ns()),
            meter.interval.queueing_ms(),
            meter.delivered_packets as f64,
            meter.dropped_packets as f64,
            host.counters.retransmitted as f64,
        ]);
        if !observed.is_empty() {
            host.observe(observed);
        }
        self.sent_bytes = host.counters.bytes;
        self.delivered_bytes = meter.delivered_bytes;
        flow.meter.interval = Default::default();
    }
}
