//! The record as a whole: tables read back, keys as promised, nothing half-written. Numbers by hand.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, UNIX_EPOCH};

use arrow_array::RecordBatch;
use arrow_array::cast::AsArray;
use arrow_array::types::{Float64Type, Int64Type, UInt64Type};
use paceline_sim::{Column, EngineStats, FlowOutcome, LinkOutcome, Series, Stats};
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use proptest::prelude::*;
use serde_json::Value;

use super::manifest::{FORMAT_VERSION, parse_manifest};
use super::summary::jain_index;
use super::*;

/// A directory of its own for each test, gone afterwards.
pub(super) struct Scratch(pub(super) PathBuf);

impl Scratch {
    pub(super) fn new() -> Self {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let n = NEXT.fetch_add(1, Ordering::Relaxed);
        let name = format!("paceline-record-test-{}-{n}", std::process::id());
        let path = std::env::temp_dir().join(name);
        let _ = fs::remove_dir_all(&path);
        fs::create_dir_all(&path).unwrap();
        Self(path)
    }

    fn names(&self) -> Vec<String> {
        let entries = fs::read_dir(&self.0).unwrap();
        let mut names: Vec<String> =
            entries.map(|e| e.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn stats(mean: f64) -> Stats {
    Stats {
        mean,
        std: 1.0,
        min: 2.0,
        p5: 3.0,
        p25: 4.0,
        p50: 5.0,
        p75: 6.0,
        p95: 7.0,
        p99: 8.0,
        max: 9.0,
    }
}

fn column<'a>(name: &'static str, unit: &'static str, values: &'a [f64]) -> Column<'a> {
    Column { name, unit, values }
}

pub(super) fn flow_info(name: &str, controller: &str) -> FlowInfo {
    let params = [("beta".to_string(), ParamValue::Number(Some(0.7)))];
    FlowInfo {
        name: name.into(),
        controller: controller.into(),
        controller_params: params.into(),
        stack: "tcp".into(),
        packets: PacketSizes { data_bytes: 1500, header_bytes: 52, ack_bytes: 52 },
    }
}

/// Two flows over one link: 10 s, warm-up 2 s, RTT 20 ms.
pub(super) fn info() -> RunInfo {
    RunInfo {
        scenario: "Two flows".into(),
        scenario_path: Some("scenarios/two flows.toml".into()),
        scenario_text: "title = \"Two flows\"\n".into(),
        world: "sim".into(),
        seed: u64::MAX,
        duration_s: 10.0,
        warmup_s: 2.0,
        flows: vec![flow_info("a", "cubic"), flow_info("b", "bbr3")],
    }
}

pub(super) fn outcome() -> Outcome {
    let flow = FlowOutcome {
        end_s: 10.0,
        throughput_bps: 6e6,
        goodput_bps: 5.8e6,
        rate_bps: Some(stats(6e6)),
        rtt_ms: Some(Stats { p50: 20.0, ..stats(20.5) }),
        cwnd_bytes: Some(Stats { std: f64::NAN, ..stats(30_000.0) }),
        sent_packets: 100,
        delivered_packets: 90,
        lost_packets: 4,
        in_flight_packets: 6,
        retransmitted_packets: 4,
        signal_delay_p95_ms: Some(93.0),
        power_score: Some(41.18),
        series: Series::new(
            &[0.0, 0.1, 0.2],
            &[
                column("cwnd_bytes", "bytes", &[15_000.0, 30_000.0, 45_000.0]),
                column("w_max", "packets", &[f64::NAN, 20.0, 21.0]),
            ],
        ),
        ..FlowOutcome::default()
    };
    let mut second = FlowOutcome {
        throughput_bps: 2e6,
        pacing_bps: Some(stats(2.1e6)),
        start_s: 0.5,
        ..flow.clone()
    };
    second.series = Series::new(
        &[0.5],
        &[
            column("cwnd_bytes", "bytes", &[14_000.0]),
            column("w_max", "Mbit/s", &[3.0]),
            column("flow", "1", &[4.0]),
        ],
    );
    let link = LinkOutcome {
        name: "bottleneck".into(),
        capacity_bps: Some(10e6),
        throughput_bps: 8e6,
        utilization: Some(0.8),
        drops: 8,
        queue_ms: Some(stats(3.0)),
        series: Series::new(&[0.0, 0.1], &[column("queue_ms", "ms", &[0.5, f64::INFINITY])]),
        ..LinkOutcome::default()
    };
    let engine = EngineStats { events: 12, packets: 180, cpu_s: 0.25, bytes_per_flow: 512.0 };
    Outcome { flows: vec![flow, second], links: vec![link], engine }
}

pub(super) fn provenance() -> Provenance {
    Provenance {
        command_line: vec!["paceline".into(), "run".into(), "two flows.toml".into()],
        started: UNIX_EPOCH + Duration::from_secs(1_000_000_000),
        wall_s: 1.5,
        host: Host::this_machine(),
        checks: Vec::new(),
    }
}

fn read(bytes: &[u8]) -> RecordBatch {
    let path = Scratch::new();
    let file = path.0.join("table.parquet");
    fs::write(&file, bytes).unwrap();
    let opened = fs::File::open(&file).unwrap();
    let mut reader = ParquetRecordBatchReaderBuilder::try_new(opened).unwrap().build().unwrap();
    let batch = reader.next().unwrap().unwrap();
    assert!(reader.next().is_none());
    batch
}

fn numbers(batch: &RecordBatch, name: &str) -> Vec<Option<f64>> {
    batch.column_by_name(name).unwrap().as_primitive::<Float64Type>().iter().collect()
}

fn texts(batch: &RecordBatch, name: &str) -> Vec<String> {
    let array = batch.column_by_name(name).unwrap().as_string::<i32>();
    array.iter().map(|v| v.unwrap().to_string()).collect()
}

fn unit(batch: &RecordBatch, name: &str) -> String {
    let schema = batch.schema();
    let field = schema.field_with_name(name).unwrap();
    field.metadata().get(tables::UNIT).unwrap().to_string()
}

#[test]
fn series_come_back_with_units_and_nulls() {
    let table = tables::series(&info(), &outcome()).unwrap();
    let batch = read(&table.bytes);
    assert_eq!((table.rows, batch.num_rows()), (4, 4));
    let schema = batch.schema();
    let names: Vec<&str> = schema.fields().iter().map(|f| f.name().as_str()).collect();
    // `w_max` in another unit and a column called like the flow's name get names of their own.
    assert_eq!(names, ["time_s", "flow", "cwnd_bytes", "w_max", "w_max_mbit_s", "flow_1"]);
    assert_eq!(numbers(&batch, "time_s"), [0.0, 0.1, 0.2, 0.5].map(Some));
    assert_eq!(texts(&batch, "flow"), ["a", "a", "a", "b"]);
    assert_eq!(numbers(&batch, "cwnd_bytes"), [15e3, 30e3, 45e3, 14e3].map(Some));
    assert_eq!(numbers(&batch, "w_max"), [None, Some(20.0), Some(21.0), None]);
    assert_eq!(numbers(&batch, "w_max_mbit_s"), [None, None, None, Some(3.0)]);
    assert_eq!(unit(&batch, "time_s"), "s");
    assert_eq!(unit(&batch, "cwnd_bytes"), "bytes");
    assert_eq!(unit(&batch, "w_max"), "packets");
    assert_eq!(unit(&batch, "w_max_mbit_s"), "Mbit/s");
}

#[test]
fn links_come_back() {
    let batch = read(&tables::links(&outcome()).unwrap().bytes);
    assert_eq!(texts(&batch, "link"), ["bottleneck", "bottleneck"]);
    assert_eq!(numbers(&batch, "queue_ms"), [Some(0.5), None]);
    assert_eq!(unit(&batch, "queue_ms"), "ms");
}

#[test]
fn flows_come_back_flattened() {
    let batch = read(&tables::flows(&info(), &outcome()).unwrap().bytes);
    assert_eq!(batch.num_rows(), 2);
    let seeds = batch.column_by_name("seed").unwrap().as_primitive::<UInt64Type>().clone();
    assert_eq!(seeds.value(0), u64::MAX);
    let sent = batch.column_by_name("sent_packets").unwrap().as_primitive::<Int64Type>().clone();
    assert_eq!(sent.values().to_vec(), [100, 100]);
    assert_eq!(numbers(&batch, "rtt_ms_mean"), [20.5, 20.5].map(Some));
    assert_eq!(numbers(&batch, "rtt_ms_p99"), [8.0, 8.0].map(Some));
    assert_eq!(numbers(&batch, "cwnd_bytes_std"), [None, None]);
    assert_eq!(numbers(&batch, "pacing_bps_mean"), [None, Some(2.1e6)]);
    assert_eq!(numbers(&batch, "loss_fraction"), [0.04, 0.04].map(Some));
    assert_eq!(numbers(&batch, "queueing_delay_ms_mean"), [None, None]);
    assert_eq!(texts(&batch, "controller_params")[0], r#"{"beta":0.7}"#);
    assert_eq!(unit(&batch, "rtt_ms_p99"), "ms");
    assert_eq!(unit(&batch, "throughput_bps"), "bit/s");
}

#[test]
fn a_run_without_flows_has_empty_tables() {
    let nothing = RunInfo { flows: Vec::new(), ..info() };
    let tables = tables::all(&nothing, &Outcome::default()).unwrap();
    assert_eq!(tables.map(|t| t.rows), [0, 0, 0]);
}

#[test]
fn equal_runs_write_equal_tables() {
    let scratch = Scratch::new();
    let (one, two) = (scratch.0.join("one"), scratch.0.join("two"));
    write(&one, &info(), &outcome(), &provenance()).unwrap();
    let later = Provenance { started: UNIX_EPOCH, wall_s: 9.0, ..provenance() };
    write(&two, &info(), &outcome(), &later).unwrap();
    for name in [tables::FLOWS, tables::LINKS, tables::SERIES] {
        let bytes = fs::read(one.join(name)).unwrap();
        assert_eq!(bytes, fs::read(two.join(name)).unwrap(), "{name}");
    }
    assert_eq!(read_manifest(&one).unwrap().files, read_manifest(&two).unwrap().files);
}

/// Keys of a JSON object in the order of the text. `Value` sorts them, so this goes through the text.
fn keys(json: &str) -> Vec<String> {
    let (mut keys, mut depth, mut rest) = (Vec::new(), 0, json);
    while let Some(c) = rest.chars().next() {
        rest = &rest[c.len_utf8()..];
        match c {
            '{' | '[' => depth += 1,
            '}' | ']' => depth -= 1,
            '"' => {
                // No key or string of the fixture has an escape.
                let (text, after) = rest.split_once('"').unwrap();
                if depth == 1 && after.starts_with(':') {
                    keys.push(text.to_string());
                }
                rest = after;
            }
            _ => {}
        }
    }
    keys
}

fn words(text: &str) -> Vec<String> {
    text.split_whitespace().map(String::from).collect()
}

#[test]
fn the_json_has_the_promised_keys_in_order() {
    let summary = Summary::new(&info(), &outcome());
    let of = |value: &dyn erased::Json| keys(&value.text());
    assert_eq!(
        keys(&summary.to_json()),
        words("scenario world seed duration_s paceline_version links flows jain_index engine")
    );
    assert_eq!(
        of(&summary.links[0]),
        words("name capacity_bps throughput_bps utilization drops marks queue_ms queue_bytes")
    );
    assert_eq!(
        of(&summary.flows[0]),
        words(
            "name controller stack start_s end_s throughput_bps goodput_bps rate_bps rtt_ms cwnd_bytes pacing_bps
             sent_packets delivered_packets lost_packets in_flight_packets retransmitted_packets timeouts loss_fraction
             queueing_delay_ms signal_delay_ms power_score completion_s"
        )
    );
    assert_eq!(of(&summary.flows[0].signal_delay_ms), words("p95"));
    assert_eq!(of(&summary.engine), words("events packets cpu_s bytes_per_flow"));
    assert_eq!(
        of(&summary.links[0].queue_ms.unwrap()),
        words("mean std min p5 p25 p50 p75 p95 p99 max")
    );
}

/// Lets one closure take every serialisable type.
mod erased {
    pub trait Json {
        fn text(&self) -> String;
    }

    impl<T: serde::Serialize> Json for T {
        fn text(&self) -> String {
            serde_json::to_string(self).unwrap()
        }
    }
}

#[test]
fn absent_measurements_are_null() {
    let mut broken = outcome();
    broken.flows[0].throughput_bps = f64::NAN;
    broken.flows[0].sent_packets = 0;
    broken.flows[0].power_score = Some(f64::INFINITY);
    broken.engine.cpu_s = f64::NEG_INFINITY;
    let json = Summary::new(&info(), &broken).to_json();
    let value: Value = serde_json::from_str(&json).unwrap();
    let flow = &value["flows"][0];
    for key in ["throughput_bps", "loss_fraction", "power_score", "completion_s", "pacing_bps"] {
        assert_eq!(flow[key], Value::Null, "{key}");
    }
    assert_eq!(flow["cwnd_bytes"]["std"], Value::Null);
    assert_eq!(flow["cwnd_bytes"]["mean"], 30_000.0);
    assert_eq!(value["engine"]["cpu_s"], Value::Null);
    assert_eq!(value["links"][0]["queue_bytes"], Value::Null);
    // And it can be read again.
    let back: Summary = serde_json::from_str(&json).unwrap();
    assert_eq!(back, Summary::new(&info(), &broken));
}

#[test]
fn jain_by_hand() {
    assert_eq!(jain_index(&[1.0, 1.0]), Some(1.0));
    assert_eq!(jain_index(&[1.0, 0.0]), Some(0.5));
    // (5.8 + 8 + 10.5 + 15.3)^2 = 39.6^2 = 1568.16; 4 * (33.64 + 64 + 110.25 + 234.09) = 4 * 441.98 = 1767.92.
    let four = jain_index(&[5.8, 8.0, 10.5, 15.3]).unwrap();
    assert!((four - 1568.16 / 1767.92).abs() < 1e-12, "{four}");
    assert_eq!(jain_index(&[]), None);
    assert_eq!(jain_index(&[0.0, 0.0]), None);
    assert_eq!(jain_index(&[f64::NAN, 1.0]), None);
    // Squares that would overflow or vanish.
    assert_eq!(jain_index(&[1e300, 1e300]), Some(1.0));
    assert_eq!(jain_index(&[1e-300, 0.0]), Some(0.5));
}

#[test]
fn the_manifest_says_how_to_get_the_run_again() {
    let scratch = Scratch::new();
    let dir = scratch.0.join("deep/er/run");
    assert_eq!(write(&dir, &info(), &outcome(), &provenance()).unwrap(), dir);
    let mut manifest = read_manifest(&dir).unwrap();
    assert_eq!(manifest.scenario.text, info().scenario_text);
    assert_eq!(manifest.seed, u64::MAX);
    assert_eq!(manifest.started, "2001-09-09T01:46:40.000Z");
    assert_eq!(manifest.flows[1].controller_params["beta"], ParamValue::Number(Some(0.7)));
    assert_eq!(manifest.result, Summary::new(&info(), &outcome()));
    let files: Vec<(&str, u64)> =
        manifest.files.iter().map(|f| (f.name.as_str(), f.rows)).collect();
    assert_eq!(files, [("flows.parquet", 2), ("links.parquet", 2), ("series.parquet", 4)]);
    assert!(manifest.altered_files(&dir).unwrap().is_empty());
    fs::write(dir.join("series.parquet"), b"x").unwrap();
    fs::remove_file(dir.join("links.parquet")).unwrap();
    assert_eq!(manifest.altered_files(&dir).unwrap(), ["links.parquet", "series.parquet"]);
    manifest.files.truncate(1);
    for outside in ["../flows.parquet", "/dev/zero", "..", ""] {
        manifest.files[0].name = outside.into();
        assert_eq!(manifest.altered_files(&dir).unwrap(), [outside]);
    }
}

#[test]
fn sha256_of_abc() {
    // FIPS 180-4's one-block example.
    let expected = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
    assert_eq!(digest::sha256_hex(b"abc"), expected);
}

#[test]
fn a_record_is_replaced_whole() {
    let scratch = Scratch::new();
    let dir = scratch.0.join("run");
    write(&dir, &info(), &outcome(), &provenance()).unwrap();
    let other = RunInfo { seed: 7, ..info() };
    write(&dir, &other, &outcome(), &provenance()).unwrap();
    assert_eq!(read_manifest(&dir).unwrap().seed, 7);
    assert_eq!(scratch.names(), ["run"]);
}

#[test]
fn threads_that_write_one_record_leave_one_of_theirs() {
    let scratch = Scratch::new();
    let dir = scratch.0.join("run");
    std::thread::scope(|scope| {
        for seed in 0..8 {
            let dir = &dir;
            scope.spawn(move || {
                for _ in 0..20 {
                    check_target(dir).unwrap();
                    write(dir, &RunInfo { seed, ..info() }, &outcome(), &provenance()).unwrap();
                }
            });
        }
    });
    assert_eq!(scratch.names(), ["run"]);
    assert!(read_manifest(&dir).unwrap().altered_files(&dir).unwrap().is_empty());
}

#[test]
fn what_is_not_ours_stays() {
    let scratch = Scratch::new();
    let dir = scratch.0.join("thesis");
    fs::create_dir(&dir).unwrap();
    fs::write(dir.join("chapter1.tex"), b"important").unwrap();
    let error = write(&dir, &info(), &outcome(), &provenance()).unwrap_err().to_string();
    assert!(error.contains("thesis") && error.contains("not a record"), "{error}");
    assert_eq!(fs::read(dir.join("chapter1.tex")).unwrap(), b"important");

    let dir = scratch.0.join("annotated");
    write(&dir, &info(), &outcome(), &provenance()).unwrap();
    fs::write(dir.join("notes.txt"), b"why flow b wins").unwrap();
    let error = write(&dir, &info(), &outcome(), &provenance()).unwrap_err().to_string();
    assert!(error.contains("notes.txt"), "{error}");
    assert_eq!(fs::read(dir.join("notes.txt")).unwrap(), b"why flow b wins");

    let file = scratch.0.join("file");
    fs::write(&file, b"x").unwrap();
    let error = write(&file, &info(), &outcome(), &provenance()).unwrap_err().to_string();
    assert!(error.contains("is not a directory"), "{error}");
    let error = write(&file.join("below"), &info(), &outcome(), &provenance()).unwrap_err();
    assert!(error.to_string().contains("file"), "{error}");
    assert!(write(Path::new("/"), &info(), &outcome(), &provenance()).is_err());
    assert_eq!(scratch.names(), ["annotated", "file", "thesis"]);
}

#[test]
fn a_failed_write_leaves_everything_as_it_was() {
    let scratch = Scratch::new();
    let dir = scratch.0.join("run");
    write(&dir, &info(), &outcome(), &provenance()).unwrap();
    let before = fs::read(dir.join(MANIFEST)).unwrap();

    // The second file cannot be created: its folder does not exist.
    let mut tables = tables::all(&info(), &outcome()).unwrap();
    tables[1].name = "missing/links.parquet";
    let error = commit(&dir, &tables, "{}").unwrap_err().to_string();
    assert!(error.contains("missing/links.parquet"), "{error}");
    assert!(error.contains("No such file or directory"), "{error}");
    assert_eq!(scratch.names(), ["run"]);
    assert_eq!(fs::read(dir.join(MANIFEST)).unwrap(), before);
    assert!(read_manifest(&dir).unwrap().altered_files(&dir).unwrap().is_empty());
}

#[test]
fn leftovers_of_a_killed_run_do_not_stop_the_next() {
    let scratch = Scratch::new();
    let dir = scratch.0.join("run");
    for suffix in ["partial", "old"] {
        let leftover = sibling(&dir, suffix);
        fs::create_dir(&leftover).unwrap();
        fs::write(leftover.join("flows.parquet"), b"half").unwrap();
    }
    write(&dir, &info(), &outcome(), &provenance()).unwrap();
    write(&dir, &info(), &outcome(), &provenance()).unwrap();
    assert_eq!(scratch.names(), ["run"]);
}

#[test]
fn default_directories() {
    let scratch = Scratch::new();
    let base = scratch.0.as_path();
    let run = RunInfo { seed: 3, ..info() };
    assert_eq!(default_dir(base, &run), base.join("two-flows-mixed-3"));
    fs::create_dir(base.join("two-flows-mixed-3")).unwrap();
    fs::create_dir(base.join("two-flows-mixed-3-2")).unwrap();
    assert_eq!(default_dir(base, &run), base.join("two-flows-mixed-3-3"));
    let alone = RunInfo { flows: vec![flow_info("a", "cubic")], scenario_path: None, ..run };
    assert_eq!(default_dir(base, &alone), base.join("two-flows-cubic-3"));
    let odd = RunInfo { scenario: "../..\u{e9}\0".into(), flows: Vec::new(), ..alone };
    assert_eq!(default_dir(base, &odd), base.join("run-none-3"));
}

#[test]
fn manifests_that_are_none() {
    let parse = |text: &str| parse_manifest(text.as_bytes(), Path::new("x/manifest.json"));
    let error = |text: &str| parse(text).unwrap_err().to_string();
    assert!(error("{\n  \"format\": }").contains("x/manifest.json: "));
    assert!(error("{\n  \"format\": }").contains("line 2 column 13"));
    assert!(error("{}").contains("`format` is absent"));
    assert!(error(r#"{"format":"paceline-record"}"#).contains("`format_version` is absent"));
    let newer = parse(r#"{"format":"paceline-record","format_version":99}"#).unwrap_err();
    assert!(matches!(newer, RecordError::Newer { found: 99, supported: FORMAT_VERSION, .. }));
    let error = error(r#"{"format":"paceline-record","format_version":1}"#);
    assert!(error.contains("missing field `paceline_version`"), "{error}");
    let absent = read_manifest(Path::new("/nonexistent")).unwrap_err().to_string();
    assert_eq!(
        absent,
        "cannot read /nonexistent/manifest.json: No such file or directory (os error 2)"
    );
}

fn check(checks: &[checks::Check], name: &str) -> (bool, String) {
    let found = checks.iter().find(|c| c.name == name);
    let found = found.unwrap_or_else(|| panic!("no check {name}"));
    (found.ok, found.detail.clone())
}

#[test]
fn a_sound_run_passes_every_check() {
    for check in checks::all(&info(), &outcome()) {
        assert!(check.ok, "{check:?}");
    }
}

#[test]
fn packets_that_vanish_are_noticed() {
    let mut run = outcome();
    run.flows[1].delivered_packets = 89;
    let (ok, detail) = check(&checks::all(&info(), &run), "packets_conserved");
    assert!(!ok);
    let expected = "`b`: sent 100, but delivered 89 + lost 4 + in flight 6 = 99";
    assert_eq!(detail, expected);
}

#[test]
fn a_dead_knob_is_noticed() {
    let mut run = outcome();
    // Same window series in both; their own columns differ.
    let [one, other] = [0, 1].map(|flow| run.flows[flow].series.clone());
    let shared = one.column("cwnd_bytes").into_iter();
    let columns: Vec<Column<'_>> = shared.chain(other.columns().skip(1)).collect();
    run.flows[1].series = Series::new(one.time_s(), &columns);
    let (ok, detail) = check(&checks::all(&info(), &run), "controllers_differ");
    assert!(!ok);
    assert_eq!(detail, "flows `a` and `b` (`cubic` and `bbr3`) have identical time series");
    // Equal controllers may well behave alike.
    let mut same = info();
    same.flows[1].controller = "cubic".into();
    assert!(check(&checks::all(&same, &run), "controllers_differ").0);
    // A parameter that changes nothing is a dead knob too.
    same.flows[1].controller_params.clear();
    assert!(!check(&checks::all(&same, &run), "controllers_differ").0);
}

#[test]
fn silent_flows_and_short_warmups_are_noticed() {
    let mut run = outcome();
    run.flows[0] = FlowOutcome { start_s: 12.0, end_s: 10.0, ..FlowOutcome::default() };
    let (ok, detail) = check(&checks::all(&info(), &run), "every_flow_started");
    assert_eq!((ok, detail.as_str()), (false, "`a` sent nothing (start 12 s, end 10 s)"));

    // From 0.5 s to a warm-up of 0.6 s are 5 round trips of 20 ms.
    let short = RunInfo { warmup_s: 0.6, ..info() };
    let (ok, detail) = check(&checks::all(&short, &outcome()), "warmup_covers_startup");
    assert!(!ok);
    assert!(detail.contains("leaves `b` 5.0 round trips of 20.000 ms"), "{detail}");
    let brief = RunInfo { duration_s: 2.1, ..info() };
    assert!(!check(&checks::all(&brief, &outcome()), "measurement_is_long_enough").0);
}

#[test]
fn a_link_beyond_its_capacity_is_noticed() {
    let mut run = outcome();
    // 8 s at 2 packets of 12,000 bits above 10 Mbit/s: 3000 bit/s may be the ends of the window, 3100 may not. The rounding
    // allowance adds 10 bit/s.
    run.links[0].throughput_bps = 10e6 + 3000.0;
    assert!(check(&checks::all(&info(), &run), "capacity_respected").0);
    run.links[0].throughput_bps = 10e6 + 3100.0;
    assert!(!check(&checks::all(&info(), &run), "capacity_respected").0);
}

fn manifest_text() -> String {
    let tables = tables::all(&info(), &outcome()).unwrap();
    Manifest::new(&info(), &outcome(), &provenance(), &tables).to_json()
}

proptest! {
    #[test]
    fn no_bytes_make_the_parser_panic(bytes in proptest::collection::vec(any::<u8>(), 0..512)) {
        let _ = parse_manifest(&bytes, Path::new("manifest.json"));
    }

    #[test]
    fn no_damage_makes_the_parser_panic(at in any::<prop::sample::Index>(), byte in any::<u8>()) {
        let mut bytes = manifest_text().into_bytes();
        let at = at.index(bytes.len());
        bytes[at] = byte;
        let _ = parse_manifest(&bytes, Path::new("manifest.json"));
        // Without its final newline it would still be whole.
        bytes.truncate(at.min(bytes.len() - 2));
        prop_assert!(parse_manifest(&bytes, Path::new("manifest.json")).is_err());
    }

    #[test]
    fn manifests_survive_the_round_trip(
        seed in any::<u64>(), scenario in ".*", text in ".*", value in any::<f64>(), sent in any::<u64>(),
    ) {
        let mut info = RunInfo { seed, scenario, scenario_text: text, duration_s: value, ..info() };
        info.flows[0].controller_params.insert("x".into(), ParamValue::Number(summary::finite(value)));
        let mut outcome = outcome();
        outcome.flows[0].throughput_bps = value;
        outcome.flows[0].sent_packets = sent;
        let tables = tables::all(&info, &outcome).unwrap();
        let manifest = Manifest::new(&info, &outcome, &provenance(), &tables);
        let back = parse_manifest(manifest.to_json().as_bytes(), Path::new("m")).unwrap();
        prop_assert_eq!(back, manifest);
    }
}
