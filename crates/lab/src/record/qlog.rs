//! One flow as a qlog trace, whichever stack carried it: window, bytes in flight, round-trip times, pacing rate, losses.
//!
//! In goes a flow's time series, out comes text in one of two dialects:
//!
//! * [`Draft::Current`]: a JSON text sequence (`.sqlog`) after draft-ietf-quic-qlog-main-schema-14 and
//!   draft-ietf-quic-qlog-quic-events-13, with events `quic:recovery_metrics_updated` and `quic:packet_lost`. Those drafts
//!   replaced `qlog_version` and `qlog_format` by `file_schema` and `serialization_format`; both pairs are written, since
//!   tools made for version 0.4 and before refuse a file without the old one and newer ones ignore members they do not know.
//! * [`Draft::Draft02`]: one JSON object (`.qlog`) after draft-marx-qlog-main-schema-02, with `recovery:metrics_updated`. It is
//!   what the congestion graph of qvis reads. That graph takes its time axis from the packets sent and shows only losses of
//!   packets it knows, so this dialect adds one `transport:packet_sent` per logged sample that stands for all packets of its
//!   interval; the trace's description says so.
//!
//! Time is in ms from the start of the run. A loss event carries how many packets its interval lost, as `count`.
//!
//! Series columns that are read, each optional: `cwnd_bytes`, `in_flight_bytes`, `in_flight_packets`, `ssthresh_bytes`, `rtt_ms`
//! (latest), `srtt_ms`, `min_rtt_ms`, `pacing_bps`, and per sample interval `lost_packets`, `sent_packets`.

use std::io::{self, Write};

use paceline_sim::{Outcome, Series};
use serde::Serialize;

use super::{RecordError, RunInfo};

/// Which dialect to write.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Draft {
    /// The newest drafts, `.sqlog`.
    #[default]
    Current,
    /// Draft 02, `.qlog`, for qvis.
    Draft02,
}

/// How to export.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Options {
    /// Dialect.
    pub draft: Draft,
    /// At most this many samples are logged (at least 2): viewers choke on files of 100 MB. Of each stretch the smallest and
    /// the largest window are kept, so that a sawtooth keeps its teeth; losses are summed.
    pub max_points: usize,
}

impl Default for Options {
    fn default() -> Self {
        Self { draft: Draft::Current, max_points: 20_000 }
    }
}

impl Draft {
    /// The extension that goes with the dialect.
    pub fn extension(self) -> &'static str {
        match self {
            Self::Current => "sqlog",
            Self::Draft02 => "qlog",
        }
    }
}

/// Writes flow `index` of a run to `out`.
///
/// # Errors
/// [`RecordError::NoSuchFlow`], or what `out` answers.
pub fn write(
    out: &mut impl Write,
    info: &RunInfo,
    outcome: &Outcome,
    index: usize,
    options: Options,
) -> Result<(), RecordError> {
    let count = outcome.flows.len().min(info.flows.len());
    if index >= count {
        return Err(RecordError::NoSuchFlow { index, count });
    }
    let samples = samples(&outcome.flows[index].series, options.max_points.max(2));
    let written = match options.draft {
        Draft::Current => write_current(out, info, index, &samples),
        Draft::Draft02 => write_draft02(out, info, index, &samples),
    };
    written.map_err(|source| RecordError::Io {
        action: "write the qlog of",
        path: info.flows[index].name.clone().into(),
        source,
    })
}

/// One logged sample.
struct Sample {
    time_ms: f64,
    metrics: Metrics,
    lost_packets: u64,
    sent_packets: u64,
}

/// Data of `metrics_updated`; the names are the same in both dialects.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
struct Metrics {
    /// ms
    #[serde(skip_serializing_if = "Option::is_none")]
    min_rtt: Option<f64>,
    /// ms
    #[serde(skip_serializing_if = "Option::is_none")]
    smoothed_rtt: Option<f64>,
    /// ms
    #[serde(skip_serializing_if = "Option::is_none")]
    latest_rtt: Option<f64>,
    /// bytes
    #[serde(skip_serializing_if = "Option::is_none")]
    congestion_window: Option<u64>,
    /// bytes
    #[serde(skip_serializing_if = "Option::is_none")]
    bytes_in_flight: Option<u64>,
    /// bytes
    #[serde(skip_serializing_if = "Option::is_none")]
    ssthresh: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    packets_in_flight: Option<u64>,
    /// bit/s
    #[serde(skip_serializing_if = "Option::is_none")]
    pacing_rate: Option<u64>,
}

#[derive(Serialize)]
struct Event<D> {
    time: f64,
    name: &'static str,
    data: D,
}

#[derive(Serialize)]
struct VantagePoint<'a> {
    name: &'a str,
    #[serde(rename = "type")]
    kind: &'static str,
}

/// The sender opens the connection and sends the data.
fn sender(name: &str) -> VantagePoint<'_> {
    VantagePoint { name, kind: "client" }
}

fn write_current(
    out: &mut impl Write,
    info: &RunInfo,
    index: usize,
    samples: &[Sample],
) -> io::Result<()> {
    #[derive(Serialize)]
    struct Header<'a> {
        // These two belong into the first 256 bytes, so that tools recognise the file.
        file_schema: &'static str,
        serialization_format: &'static str,
        qlog_version: &'static str,
        qlog_format: &'static str,
        title: &'a str,
        description: String,
        trace: Trace<'a>,
    }
    #[derive(Serialize)]
    struct Trace<'a> {
        title: &'a str,
        common_fields: CommonFields<'a>,
        vantage_point: VantagePoint<'a>,
        event_schemas: [&'static str; 1],
    }
    #[derive(Serialize)]
    struct CommonFields<'a> {
        time_format: &'static str,
        reference_time: ReferenceTime,
        protocol_types: [&'a str; 1],
    }
    #[derive(Serialize)]
    struct ReferenceTime {
        clock_type: &'static str,
        epoch: &'static str,
    }
    #[derive(Serialize)]
    struct Lost {
        count: u64,
    }

    let flow = &info.flows[index];
    let header = Header {
        file_schema: "urn:ietf:params:qlog:file:sequential",
        serialization_format: "application/qlog+json-seq",
        qlog_version: "0.4",
        qlog_format: "JSON-SEQ",
        title: &info.scenario,
        description: describe(info, index),
        trace: Trace {
            title: &flow.name,
            common_fields: CommonFields {
                time_format: "relative_to_epoch",
                // A monotonic clock has an unknown epoch: ours begins with the run.
                reference_time: ReferenceTime { clock_type: "monotonic", epoch: "unknown" },
                protocol_types: [&flow.stack],
            },
            vantage_point: sender(&flow.name),
            // Until the RFC is out, the schema is named with the number of its draft.
            event_schemas: ["urn:ietf:params:qlog:events:quic-13"],
        },
    };
    write_record(out, &header)?;
    for sample in samples {
        let (time, data) = (sample.time_ms, sample.metrics);
        if sample.lost_packets > 0 {
            let data = Lost { count: sample.lost_packets };
            write_record(out, &Event { time, name: "quic:packet_lost", data })?;
        }
        if data != Metrics::default() {
            write_record(out, &Event { time, name: "quic:recovery_metrics_updated", data })?;
        }
    }
    Ok(())
}

/// A record of a JSON text sequence (RFC 7464): record separator, JSON, line feed.
fn write_record(out: &mut impl Write, record: &impl Serialize) -> io::Result<()> {
    out.write_all(b"\x1e")?;
    serde_json::to_writer(&mut *out, record)?;
    out.write_all(b"\n")
}

fn write_draft02(
    out: &mut impl Write,
    info: &RunInfo,
    index: usize,
    samples: &[Sample],
) -> io::Result<()> {
    let flow = &info.flows[index];
    let mut description = describe(info, index);
    description.push_str(". Each packet_sent stands for all packets of its sample interval.");
    let head = serde_json::json!({
        "title": flow.name,
        "description": description,
        "vantage_point": sender(&flow.name),
        "common_fields": {
            "protocol_type": flow.stack,
            "time_format": "relative",
            "reference_time": "0",
        },
    });
    // Written by hand up to the events, so that the version leads the file and no long list is held in memory.
    out.write_all(br#"{"qlog_version":"draft-02","qlog_format":"JSON","title":"#)?;
    serde_json::to_writer(&mut *out, &info.scenario)?;
    out.write_all(br#","description":"#)?;
    serde_json::to_writer(&mut *out, &description)?;
    out.write_all(br#","traces":["#)?;
    let head = head.to_string();
    // An object without its closing brace, to which the events are the last member.
    out.write_all(head.strip_suffix('}').unwrap_or(&head).as_bytes())?;
    out.write_all(br#","events":["#)?;
    let mut events = Draft02Events { out, first: true };
    for (number, sample) in samples.iter().enumerate() {
        events.of_sample(sample, number as u64, flow.packets.data_bytes)?;
    }
    out.write_all(b"]}]}\n")
}

/// Writes events with commas between them.
struct Draft02Events<'a, W> {
    out: &'a mut W,
    first: bool,
}

impl<W: Write> Draft02Events<'_, W> {
    fn of_sample(&mut self, sample: &Sample, number: u64, packet_bytes: u16) -> io::Result<()> {
        #[derive(Serialize)]
        struct Header {
            packet_type: &'static str,
            packet_number: u64,
        }
        #[derive(Serialize)]
        struct Raw {
            length: u64,
        }
        #[derive(Serialize)]
        struct Sent {
            header: Header,
            raw: Raw,
        }
        #[derive(Serialize)]
        struct Lost {
            header: Header,
            count: u64,
        }

        let time = sample.time_ms;
        let header = || Header { packet_type: "1RTT", packet_number: number };
        // An interval that sent nothing still marks its place on the time axis, which needs a length above 0.
        let length = (sample.sent_packets.saturating_mul(u64::from(packet_bytes))).max(1);
        let data = Sent { header: header(), raw: Raw { length } };
        self.write(&Event { time, name: "transport:packet_sent", data })?;
        if sample.lost_packets > 0 {
            let data = Lost { header: header(), count: sample.lost_packets };
            self.write(&Event { time, name: "recovery:packet_lost", data })?;
        }
        if sample.metrics != Metrics::default() {
            let data = sample.metrics;
            self.write(&Event { time, name: "recovery:metrics_updated", data })?;
        }
        Ok(())
    }

    fn write(&mut self, event: &impl Serialize) -> io::Result<()> {
        if !std::mem::take(&mut self.first) {
            self.out.write_all(b",")?;
        }
        self.out.write_all(b"\n")?;
        Ok(serde_json::to_writer(&mut *self.out, event)?)
    }
}

fn describe(info: &RunInfo, index: usize) -> String {
    let flow = &info.flows[index];
    let (version, world) = (super::VERSION, &info.world);
    let (controller, stack, seed) = (&flow.controller, &flow.stack, info.seed);
    format!("Paceline {version}, {world}: {controller} over {stack}, seed {seed}")
}

/// The samples to log, in order of time.
fn samples(series: &Series, max_points: usize) -> Vec<Sample> {
    let columns = Columns::of(series);
    // Tools want ascending times; a sample without one has no place.
    let timed = series.time_s.iter().enumerate().filter(|(_, t)| (1e9 * **t).is_finite());
    let mut order: Vec<usize> = timed.map(|(i, _)| i).collect();
    order.sort_by(|a, b| series.time_s[*a].total_cmp(&series.time_s[*b]));

    let mut samples = Vec::new();
    let (mut lost_packets, mut sent_packets) = (0u64, 0u64);
    let mut kept = envelope(&order, &columns, max_points).into_iter().peekable();
    for (position, row) in order.iter().copied().enumerate() {
        lost_packets = columns.lost.count(row).saturating_add(lost_packets);
        sent_packets = columns.sent.count(row).saturating_add(sent_packets);
        if kept.next_if_eq(&position).is_some() {
            samples.push(Sample {
                time_ms: to_nanos_of_ms(1e3 * series.time_s[row]),
                metrics: columns.metrics(row),
                lost_packets: std::mem::take(&mut lost_packets),
                sent_packets: std::mem::take(&mut sent_packets),
            });
        }
    }
    samples
}

/// Positions in `order` to keep, ascending, at most `max_points`: of each of `max_points / 2` stretches the smallest and the
/// largest value of the window (or else of the RTT), and the very last sample, which takes the counts behind it.
fn envelope(order: &[usize], columns: &Columns<'_>, max_points: usize) -> Vec<usize> {
    if order.len() <= max_points {
        return (0..order.len()).collect();
    }
    let guide = [columns.cwnd, columns.in_flight, columns.rtt, columns.srtt];
    let guide = guide.into_iter().find(|c| c.0.is_some()).unwrap_or(Values(None));
    let value = |position: &usize| guide.at(order[*position]).unwrap_or(f64::NEG_INFINITY);
    let last = order.len() - 1;
    let stretches = ((max_points - 1) / 2).max(1);
    let mut kept = Vec::with_capacity(max_points);
    for stretch in 0..stretches {
        let stretch = last * stretch / stretches..last * (stretch + 1) / stretches;
        let by_value = |a: &usize, b: &usize| value(a).total_cmp(&value(b));
        let smallest = stretch.clone().min_by(by_value);
        // With two points in all there is room for one beside the last sample.
        let largest = if max_points > 2 { stretch.max_by(by_value) } else { None };
        kept.extend(smallest);
        kept.extend(largest);
    }
    kept.push(last);
    kept.sort_unstable();
    kept.dedup();
    kept
}

/// The series columns that qlog has a name for.
struct Columns<'a> {
    cwnd: Values<'a>,
    in_flight: Values<'a>,
    in_flight_packets: Values<'a>,
    ssthresh: Values<'a>,
    rtt: Values<'a>,
    srtt: Values<'a>,
    min_rtt: Values<'a>,
    pacing: Values<'a>,
    lost: Values<'a>,
    sent: Values<'a>,
}

impl<'a> Columns<'a> {
    fn of(series: &'a Series) -> Self {
        let find = |name: &str| {
            Values(series.columns.iter().find(|c| c.name == name).map(|c| c.values.as_slice()))
        };
        Self {
            cwnd: find("cwnd_bytes"),
            in_flight: find("in_flight_bytes"),
            in_flight_packets: find("in_flight_packets"),
            ssthresh: find("ssthresh_bytes"),
            rtt: find("rtt_ms"),
            srtt: find("srtt_ms"),
            min_rtt: find("min_rtt_ms"),
            pacing: find("pacing_bps"),
            lost: find("lost_packets"),
            sent: find("sent_packets"),
        }
    }

    fn metrics(&self, row: usize) -> Metrics {
        Metrics {
            min_rtt: self.min_rtt.ms(row),
            smoothed_rtt: self.srtt.ms(row),
            latest_rtt: self.rtt.ms(row),
            congestion_window: self.cwnd.whole(row),
            bytes_in_flight: self.in_flight.whole(row),
            ssthresh: self.ssthresh.whole(row),
            packets_in_flight: self.in_flight_packets.whole(row),
            pacing_rate: self.pacing.whole(row),
        }
    }
}

/// A column, if the series has it.
#[derive(Clone, Copy)]
struct Values<'a>(Option<&'a [f64]>);

impl Values<'_> {
    fn at(self, row: usize) -> Option<f64> {
        self.0?.get(row).copied().filter(|v| v.is_finite())
    }

    /// A time in ms.
    fn ms(self, row: usize) -> Option<f64> {
        self.at(row).map(to_nanos_of_ms).filter(|v| v.is_finite())
    }

    /// Rounded; qlog's byte counts and rates are unsigned integers. A negative value is none.
    fn whole(self, row: usize) -> Option<u64> {
        self.at(row).filter(|v| *v >= 0.0).map(|v| v.round() as u64)
    }

    fn count(self, row: usize) -> u64 {
        self.whole(row).unwrap_or(0)
    }
}

/// Whole nanoseconds, in ms: no digits that only floating point put there.
fn to_nanos_of_ms(ms: f64) -> f64 {
    (ms * 1e6).round() / 1e6
}

#[cfg(test)]
mod tests;
