//! Both dialects parsed back, with the members that their drafts require.

use paceline_sim::{Column, FlowOutcome, Outcome, Series};
use serde_json::Value;

use super::super::tests::{Scratch, flow_info, provenance};
use super::super::{RunInfo, tables, write as write_record_dir};
use super::*;

type Columns = Vec<(&'static str, Vec<f64>)>;

/// The record of a run of one flow, `a`, with this series.
fn record(time_s: Vec<f64>, columns: Columns) -> Scratch {
    let info = RunInfo {
        scenario: "One \"flow\"".into(),
        scenario_path: None,
        scenario_text: String::new(),
        world: "sim".into(),
        seed: 7,
        duration_s: 1.0,
        warmup_s: 0.0,
        flows: vec![flow_info("a", "cubic")],
    };
    let columns = columns.iter().map(|(name, values)| Column { name, unit: "", values });
    let columns: Vec<Column<'_>> = columns.collect();
    let series = Series::new(&time_s, &columns);
    let flow = FlowOutcome { series, ..FlowOutcome::default() };
    let outcome = Outcome { flows: vec![flow], ..Outcome::default() };
    let scratch = Scratch::new();
    write_record_dir(&scratch.0, &info, &outcome, &provenance()).unwrap();
    scratch
}

fn three_samples() -> Scratch {
    record(
        vec![0.0, 0.1, 0.3],
        vec![
            ("cwnd_bytes", vec![15_000.0, 30_000.4, 21_000.0]),
            ("in_flight_bytes", vec![0.0, 30_000.0, 20_000.0]),
            ("rtt_ms", vec![f64::NAN, 20.000_000_4, 25.5]),
            ("srtt_ms", vec![f64::NAN, 20.0, 20.7]),
            ("min_rtt_ms", vec![f64::NAN, 20.0, 20.0]),
            ("pacing_bps", vec![f64::INFINITY, 12e6, 8.4e6]),
            // Totals: 10 packets, then 20 more, then none; 0 lost, 0, then 7.
            ("sent_packets", vec![10.0, 30.0, 30.0]),
            ("lost_packets", vec![0.0, 0.0, 7.0]),
        ],
    )
}

fn exported(record: &Scratch, draft: Draft, max_points: usize) -> String {
    let mut text = Vec::new();
    export(&record.0, "a", &mut text, Options { draft, max_points }).unwrap();
    String::from_utf8(text).unwrap()
}

/// Header and events of a JSON text sequence.
fn records(text: &str) -> Vec<Value> {
    let (before, rest) = text.split_at(1);
    assert_eq!(before, "\u{1e}");
    let records = rest.split('\u{1e}');
    records.map(|r| serde_json::from_str(r.strip_suffix('\n').unwrap()).unwrap()).collect()
}

fn assert_events(events: &[Value]) {
    let mut last = f64::NEG_INFINITY;
    for event in events {
        let time = event["time"].as_f64().unwrap();
        assert!(time >= last, "{event}");
        last = time;
        assert!(event["name"].as_str().unwrap().contains(':'), "{event}");
        assert!(event["data"].is_object(), "{event}");
    }
}

#[test]
fn the_current_draft_has_what_it_requires() {
    let text = exported(&three_samples(), Draft::Current, 100);
    assert!(text.find("serialization_format").unwrap() < 256);
    let records = records(&text);
    let (header, events) = records.split_first().unwrap();
    assert_eq!(header["file_schema"], "urn:ietf:params:qlog:file:sequential");
    assert_eq!(header["serialization_format"], "application/qlog+json-seq");
    assert_eq!(header["qlog_version"], "0.4");
    assert_eq!(header["qlog_format"], "JSON-SEQ");
    assert_eq!(header["title"], "One \"flow\"");
    let trace = &header["trace"];
    assert_eq!(trace["title"], "a");
    let version = super::super::VERSION;
    let description = format!("Paceline {version}, sim: cubic over tcp, seed 7");
    assert_eq!(header["description"], description);
    assert_eq!(trace["vantage_point"]["type"], "client");
    assert_eq!(trace["common_fields"]["protocol_types"][0], "tcp");
    assert_eq!(trace["event_schemas"][0], "urn:ietf:params:qlog:events:quic-13");
    assert_eq!(trace["common_fields"]["time_format"], "relative_to_epoch");
    assert_eq!(trace["common_fields"]["reference_time"]["clock_type"], "monotonic");
    assert_eq!(trace["common_fields"]["reference_time"]["epoch"], "unknown");

    assert_events(events);
    let names: Vec<&str> = events.iter().map(|e| e["name"].as_str().unwrap()).collect();
    let metrics = "quic:recovery_metrics_updated";
    assert_eq!(names, [metrics, metrics, "quic:packet_lost", metrics]);
    // What was not measured is absent.
    assert_eq!(
        events[0]["data"],
        serde_json::json!({"congestion_window": 15000, "bytes_in_flight": 0})
    );
    assert_eq!(
        events[1],
        serde_json::json!({"time": 100.0, "name": metrics, "data": {
            "min_rtt": 20.0, "smoothed_rtt": 20.0, "latest_rtt": 20.0, "congestion_window": 30000,
            "bytes_in_flight": 30000, "pacing_rate": 12_000_000,
        }})
    );
    assert_eq!(events[2]["data"], serde_json::json!({"count": 7}));
}

#[test]
fn draft_02_has_what_qvis_reads() {
    let text = exported(&three_samples(), Draft::Draft02, 100);
    assert!(text.starts_with(r#"{"qlog_version":"draft-02","qlog_format":"JSON","#));
    let file: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(file["title"], "One \"flow\"");
    assert_eq!(file["traces"].as_array().unwrap().len(), 1);
    let trace = &file["traces"][0];
    assert_eq!(trace["vantage_point"]["type"], "client");
    assert_eq!(trace["common_fields"]["time_format"], "relative");
    assert!(trace["description"].as_str().unwrap().contains("stands for all packets"));
    let events = trace["events"].as_array().unwrap();
    assert_events(events);
    let named =
        |name: &str| events.iter().filter(|e| e["name"] == name).cloned().collect::<Vec<_>>();
    assert_eq!(named("recovery:metrics_updated").len(), 3);
    let sent = named("transport:packet_sent");
    assert_eq!(sent.len(), 3);
    // 10 packets of 1500 bytes, then 20; none marks its place with 1.
    let lengths: Vec<u64> =
        sent.iter().map(|e| e["data"]["raw"]["length"].as_u64().unwrap()).collect();
    assert_eq!(lengths, [15_000, 30_000, 1]);
    // A viewer shows a loss only of a packet that it knows.
    let lost = named("recovery:packet_lost");
    assert_eq!(lost.len(), 1);
    assert_eq!(lost[0]["data"]["count"], 7);
    assert_eq!(lost[0]["data"]["header"], sent[2]["data"]["header"]);
}

#[test]
fn decimation_keeps_peaks_and_counts() {
    let n = 1000;
    let time_s = (0..n).map(f64::from).collect();
    // One peak, one trough, one loss in ten samples: 1 by 0 s, 2 by 10 s, ..., 100 by 990 s.
    let mut cwnd = vec![50_000.0; n as usize];
    cwnd[333] = 90_000.0;
    cwnd[777] = 3_000.0;
    let lost = (0..n).map(|i| f64::from(i / 10 + 1)).collect();
    let run = record(time_s, vec![("cwnd_bytes", cwnd), ("lost_packets", lost)]);
    for max_points in [0, 2, 3, 10, 99, 100] {
        let records = records(&exported(&run, Draft::Current, max_points));
        let metrics: Vec<&Value> =
            records[1..].iter().filter(|e| e["name"] != "quic:packet_lost").collect();
        assert!(metrics.len() <= max_points.max(2), "{} of {max_points}", metrics.len());
        assert_eq!(metrics.last().unwrap()["time"], 999_000.0);
        let lost = records.iter().filter_map(|e| e["data"]["count"].as_u64()).sum::<u64>();
        assert_eq!(lost, 100, "at {max_points} points");
        let windows: Vec<u64> =
            metrics.iter().map(|e| e["data"]["congestion_window"].as_u64().unwrap()).collect();
        assert!(windows.contains(&3_000), "trough lost at {max_points} points");
        assert!(max_points < 3 || windows.contains(&90_000), "peak lost at {max_points} points");
    }
}

#[test]
fn counts_are_differences_of_totals() {
    // From the second sample on: 5 more, not measured, 1 more since, a total that fell, 2 more than ever before.
    let lost = vec![2.0, 7.0, f64::NAN, 8.0, 3.0, 10.0];
    let run = record(vec![1.0, 2.0, 3.0, 4.0, 5.0, 6.0], vec![("lost_packets", lost)]);
    let counts = |max_points| -> Vec<(f64, u64)> {
        let records = records(&exported(&run, Draft::Current, max_points));
        let of = |e: &Value| (e["time"].as_f64().unwrap(), e["data"]["count"].as_u64().unwrap());
        records[1..].iter().map(of).collect()
    };
    assert_eq!(counts(6), [(1e3, 2), (2e3, 5), (4e3, 1), (6e3, 2)]);
    // Without a window to go by, the first sample and the last are kept.
    assert_eq!(counts(2), [(1e3, 2), (6e3, 8)]);
}

#[test]
fn odd_series_are_no_trouble() {
    // Times out of order or missing, columns too short, values out of range.
    let run = record(
        vec![0.2, f64::NAN, 0.1, 1e308],
        vec![("cwnd_bytes", vec![1.0, 2.0]), ("lost_packets", vec![-1.0, 1e300, f64::MAX])],
    );
    for draft in [Draft::Current, Draft::Draft02] {
        let text = exported(&run, draft, 10);
        assert!(!text.contains("null"), "{text}");
    }
    assert_events(&records(&exported(&run, Draft::Current, 10))[1..]);
    // A series without any time that counts.
    let text = exported(&record(vec![f64::NAN], vec![]), Draft::Draft02, 10);
    let file: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(file["traces"][0]["events"], serde_json::json!([]));
}

#[test]
fn what_cannot_be_exported_is_named() {
    let run = three_samples();
    let error = |flow: &str| {
        let mut out = Vec::new();
        let error = export(&run.0, flow, &mut out, Options::default()).unwrap_err().to_string();
        assert!(out.is_empty(), "{error}");
        error.replace(&run.0.display().to_string(), "DIR")
    };
    assert_eq!(error("b"), "DIR/manifest.json: no flow `b`; it has `a`");
    std::fs::write(run.0.join(tables::SERIES), b"PAR1").unwrap();
    assert!(error("a").starts_with("DIR/series.parquet: not a Parquet file: "), "{}", error("a"));
    std::fs::remove_file(run.0.join(MANIFEST)).unwrap();
    let absent = "cannot read DIR/manifest.json: No such file or directory (os error 2)";
    assert_eq!(error("a"), absent);
    // A flow that started too late to be sampled.
    let error = export(&record(vec![], vec![]).0, "a", &mut Vec::new(), Options::default());
    assert!(error.unwrap_err().to_string().ends_with("series.parquet: no flow `a`; it has none"));
}

#[test]
fn a_full_disk_is_reported() {
    struct Full;
    impl Write for Full {
        fn write(&mut self, _: &[u8]) -> io::Result<usize> {
            Err(io::ErrorKind::StorageFull.into())
        }
        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }
    for draft in [Draft::Current, Draft::Draft02] {
        let options = Options { draft, ..Options::default() };
        let error = export(&three_samples().0, "a", &mut Full, options).unwrap_err().to_string();
        assert_eq!(error, "cannot write the qlog of a: no storage space");
    }
}
