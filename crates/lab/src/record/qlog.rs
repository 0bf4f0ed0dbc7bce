//! One flow as a qlog trace, whichever stack carried it: window, bytes in flight, round-trip times, pacing rate, losses.
//!
//! In goes a record, whichever world wrote it, and the name of a flow; out comes text in one of two dialects:
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
//! Time is in ms from the start of the run. A loss event carries as `count` how many packets were lost since the last logged
//! sample.
//!
//! Columns of `series.parquet` that are read, each optional: `cwnd_bytes`, `in_flight_bytes`, `in_flight_packets`,
//! `ssthresh_bytes`, `rtt_ms` (latest), `srtt_ms`, `min_rtt_ms`, `pacing_bps`, and the running totals `lost_packets` and
//! `sent_packets`, of which the differences between logged samples are taken.

use std::io::{self, Write};
use std::path::Path;

use serde::Serialize;

use super::manifest::{FlowEntry, Manifest, read_manifest};
use super::read::{FlowTable, flow_series};
use super::{MANIFEST, RecordError};

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
    /// the largest window are kept, so that a sawtooth keeps its teeth; counts are of all packets since the last.
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

/// Writes flow `flow` of the record in `dir` to `out`, in many small pieces: a file wants a buffer. Nothing is written unless
/// the record can be read.
///
/// # Errors
/// A manifest or series that cannot be read, with the file's name and what is wrong with it; [`RecordError::NoSuchFlow`], with
/// the flows there are; or what `out` answers.
pub fn export(
    dir: &Path,
    flow: &str,
    out: &mut impl Write,
    options: Options,
) -> Result<(), RecordError> {
    let manifest = read_manifest(dir)?;
    let Some(entry) = manifest.flows.iter().find(|f| f.name == flow) else {
        let known = manifest.flows.into_iter().map(|f| f.name).collect();
        return Err(RecordError::NoSuchFlow { path: dir.join(MANIFEST), flow: flow.into(), known });
    };
    let series = flow_series(dir, flow)?;
    let written = write(out, &Subject::new(&manifest, entry), &series, options);
    written.map_err(|source| RecordError::Io {
        action: "write the qlog of",
        path: flow.into(),
        source,
    })
}

/// What a trace says of its flow besides the series.
struct Subject<'a> {
    scenario: &'a str,
    flow: &'a str,
    stack: &'a str,
    description: String,
    /// Size of a full data packet on the wire.
    packet_bytes: u16,
}

impl<'a> Subject<'a> {
    fn new(manifest: &'a Manifest, flow: &'a FlowEntry) -> Self {
        let (version, world) = (&manifest.paceline_version, &manifest.world);
        let (controller, stack, seed) = (&flow.controller, &flow.stack, manifest.seed);
        Self {
            scenario: &manifest.scenario.name,
            flow: &flow.name,
            stack,
            description: format!(
                "Paceline {version}, {world}: {controller} over {stack}, seed {seed}"
            ),
            packet_bytes: flow.packet_bytes.data,
        }
    }
}

fn write(
    out: &mut impl Write,
    subject: &Subject<'_>,
    series: &FlowTable,
    options: Options,
) -> io::Result<()> {
    let samples = samples(series, options.max_points.max(2));
    match options.draft {
        Draft::Current => write_current(out, subject, &samples),
        Draft::Draft02 => write_draft02(out, subject, &samples),
    }
}

/// One logged sample.
struct Sample {
    time_ms: f64,
    metrics: Metrics,
    /// Since the sample before.
    lost_packets: u64,
    /// Since the sample before.
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
    subject: &Subject<'_>,
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
        description: &'a str,
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

    let header = Header {
        file_schema: "urn:ietf:params:qlog:file:sequential",
        serialization_format: "application/qlog+json-seq",
        qlog_version: "0.4",
        qlog_format: "JSON-SEQ",
        title: subject.scenario,
        description: &subject.description,
        trace: Trace {
            title: subject.flow,
            common_fields: CommonFields {
                time_format: "relative_to_epoch",
                // A monotonic clock has an unknown epoch: ours begins with the run.
                reference_time: ReferenceTime { clock_type: "monotonic", epoch: "unknown" },
                protocol_types: [subject.stack],
            },
            vantage_point: sender(subject.flow),
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
    subject: &Subject<'_>,
    samples: &[Sample],
) -> io::Result<()> {
    let about = &subject.description;
    let description =
        format!("{about}. Each packet_sent stands for all packets of its sample interval.");
    let head = serde_json::json!({
        "title": subject.flow,
        "description": description,
        "vantage_point": sender(subject.flow),
        "common_fields": {
            "protocol_type": subject.stack,
            "time_format": "relative",
            "reference_time": "0",
        },
    });
    // Written by hand up to the events, so that the version leads the file and no long list is held in memory.
    out.write_all(br#"{"qlog_version":"draft-02","qlog_format":"JSON","title":"#)?;
    serde_json::to_writer(&mut *out, subject.scenario)?;
    out.write_all(br#","description":"#)?;
    serde_json::to_writer(&mut *out, &description)?;
    out.write_all(br#","traces":["#)?;
    let head = head.to_string();
    // An object without its closing brace, to which the events are the last member.
    out.write_all(head.strip_suffix('}').unwrap_or(&head).as_bytes())?;
    out.write_all(br#","events":["#)?;
    let mut events = Draft02Events { out, first: true };
    for (number, sample) in samples.iter().enumerate() {
        events.of_sample(sample, number as u64, subject.packet_bytes)?;
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

/// The samples to log, in order of time.
fn samples(series: &FlowTable, max_points: usize) -> Vec<Sample> {
    let columns = Columns::of(series);
    // Tools want ascending times; a sample without one has no place.
    let timed = series.time_s.iter().enumerate().filter(|(_, t)| (1e9 * **t).is_finite());
    let mut order: Vec<usize> = timed.map(|(i, _)| i).collect();
    order.sort_by(|a, b| series.time_s[*a].total_cmp(&series.time_s[*b]));

    let mut samples = Vec::new();
    let (mut lost, mut sent) = (RunningTotal::new(columns.lost), RunningTotal::new(columns.sent));
    let mut kept = envelope(&order, &columns, max_points).into_iter().peekable();
    for (position, row) in order.iter().copied().enumerate() {
        lost.on_row(row);
        sent.on_row(row);
        if kept.next_if_eq(&position).is_some() {
            samples.push(Sample {
                time_ms: to_nanos_of_ms(1e3 * series.time_s[row]),
                metrics: columns.metrics(row),
                lost_packets: lost.since_logged(),
                sent_packets: sent.since_logged(),
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
    fn of(series: &'a FlowTable) -> Self {
        let find = |name| Values(series.column(name));
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
}

/// A column that counts from the start of the run, and how far of it is logged. Where it has no value, or one below an earlier
/// one, nothing is taken to have happened since.
struct RunningTotal<'a> {
    values: Values<'a>,
    now: u64,
    logged: u64,
}

impl<'a> RunningTotal<'a> {
    fn new(values: Values<'a>) -> Self {
        Self { values, now: 0, logged: 0 }
    }

    fn on_row(&mut self, row: usize) {
        self.now = self.now.max(self.values.whole(row).unwrap_or(0));
    }

    fn since_logged(&mut self) -> u64 {
        self.now - std::mem::replace(&mut self.logged, self.now)
    }
}

/// Whole nanoseconds, in ms: no digits that only floating point put there.
fn to_nanos_of_ms(ms: f64) -> f64 {
    (ms * 1e6).round() / 1e6
}

#[cfg(test)]
mod tests;
