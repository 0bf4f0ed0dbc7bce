//! Both dialects parsed back, with the members that their drafts require.

use paceline_sim::{Column, FlowOutcome, Series};
use serde_json::Value;

use super::super::tests::flow_info;
use super::*;

fn info() -> RunInfo {
    RunInfo {
        scenario: "One \"flow\"".into(),
        scenario_path: None,
        scenario_text: String::new(),
        world: "sim".into(),
        seed: 1,
        duration_s: 1.0,
        warmup_s: 0.0,
        flows: vec![flow_info("a", "cubic")],
    }
}

fn outcome(time_s: Vec<f64>, columns: Vec<(&'static str, Vec<f64>)>) -> Outcome {
    let column = |(name, values)| Column { name, unit: "", values };
    let series = Series { time_s, columns: columns.into_iter().map(column).collect() };
    Outcome { flows: vec![FlowOutcome { series, ..FlowOutcome::default() }], ..Outcome::default() }
}

fn three_samples() -> Outcome {
    outcome(
        vec![0.0, 0.1, 0.3],
        vec![
            ("cwnd_bytes", vec![15_000.0, 30_000.4, 21_000.0]),
            ("in_flight_bytes", vec![0.0, 30_000.0, 20_000.0]),
            ("rtt_ms", vec![f64::NAN, 20.000_000_4, 25.5]),
            ("srtt_ms", vec![f64::NAN, 20.0, 20.7]),
            ("min_rtt_ms", vec![f64::NAN, 20.0, 20.0]),
            ("pacing_bps", vec![f64::INFINITY, 12e6, 8.4e6]),
            ("lost_packets", vec![0.0, 0.0, 7.0]),
            ("sent_packets", vec![10.0, 20.0, 0.0]),
        ],
    )
}

fn export(outcome: &Outcome, draft: Draft, max_points: usize) -> String {
    let mut text = Vec::new();
    write(&mut text, &info(), outcome, 0, Options { draft, max_points }).unwrap();
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
    let text = export(&three_samples(), Draft::Current, 100);
    assert!(text.find("serialization_format").unwrap() < 256);
    let records = records(&text);
    let (header, events) = records.split_first().unwrap();
    assert_eq!(header["file_schema"], "urn:ietf:params:qlog:file:sequential");
    assert_eq!(header["serialization_format"], "application/qlog+json-seq");
    assert_eq!(header["qlog_version"], "0.4");
    assert_eq!(header["qlog_format"], "JSON-SEQ");
    assert_eq!(header["title"], "One \"flow\"");
    let trace = &header["trace"];
    assert_eq!(trace["vantage_point"]["type"], "client");
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
    let text = export(&three_samples(), Draft::Draft02, 100);
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
    // 20 packets of 1500 bytes.
    assert_eq!(sent[1]["data"]["raw"]["length"], 30_000);
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
    // One peak, one trough, one loss in ten samples.
    let mut cwnd = vec![50_000.0; n as usize];
    cwnd[333] = 90_000.0;
    cwnd[777] = 3_000.0;
    let lost = (0..n).map(|i| f64::from(i % 10 == 0)).collect();
    let run = outcome(time_s, vec![("cwnd_bytes", cwnd), ("lost_packets", lost)]);
    for max_points in [0, 2, 3, 10, 99, 100] {
        let records = records(&export(&run, Draft::Current, max_points));
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
fn odd_series_are_no_trouble() {
    let text = export(&outcome(vec![], vec![]), Draft::Draft02, 10);
    let file: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(file["traces"][0]["events"], serde_json::json!([]));
    // Times out of order or missing, columns too short, values out of range.
    let run = outcome(
        vec![0.2, f64::NAN, 0.1, 1e308],
        vec![("cwnd_bytes", vec![1.0, 2.0]), ("lost_packets", vec![-1.0, 1e300, f64::MAX])],
    );
    for draft in [Draft::Current, Draft::Draft02] {
        let text = export(&run, draft, 10);
        assert!(!text.contains("null"), "{text}");
    }
    assert_events(&records(&export(&run, Draft::Current, 10))[1..]);
    let error = write(&mut Vec::new(), &info(), &run, 1, Options::default()).unwrap_err();
    assert_eq!(error.to_string(), "there is no flow 1: the run has 1, counted from 0");
}
