//! Series read back: from records, from other writers of Parquet, and from files that are broken.

use std::fs;
use std::sync::Arc;

use arrow_array::{
    ArrayRef, BooleanArray, Float32Array, Float64Array, Int64Array, LargeStringArray, StringArray,
    StringViewArray, UInt8Array,
};
use parquet::arrow::ArrowWriter;
use proptest::prelude::*;

use super::super::tests::{Scratch, info, outcome, provenance};
use super::super::write;
use super::*;

/// A directory whose `series.parquet` has these columns, not written by us.
fn foreign(columns: Vec<(&str, ArrayRef)>) -> Scratch {
    let scratch = Scratch::new();
    let batch = RecordBatch::try_from_iter(columns).unwrap();
    let file = File::create(scratch.0.join(tables::SERIES)).unwrap();
    let mut writer = ArrowWriter::try_new(file, batch.schema(), None).unwrap();
    writer.write(&batch).unwrap();
    writer.close().unwrap();
    scratch
}

fn numbers(values: &[f64]) -> ArrayRef {
    Arc::new(Float64Array::from(values.to_vec()))
}

fn texts(values: &[&str]) -> ArrayRef {
    Arc::new(StringArray::from(values.to_vec()))
}

/// The error without the directory, which must lead it.
fn error(dir: &Path, flow: &str) -> String {
    let error = flow_series(dir, flow).unwrap_err().to_string();
    let path = dir.join("series.parquet").display().to_string();
    assert!(error.contains(&path), "{error}");
    error.replace(&path, "PATH")
}

#[test]
fn each_flow_has_its_own_rows() {
    let scratch = Scratch::new();
    let dir = scratch.0.join("run");
    write(&dir, &info(), &outcome(), &provenance()).unwrap();
    let a = flow_series(&dir, "a").unwrap();
    assert_eq!(a.time_s, [0.0, 0.1, 0.2]);
    let names: Vec<&str> = a.columns.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(names, ["cwnd_bytes", "w_max", "w_max_mbit_s", "flow_1"]);
    assert_eq!(a.column("cwnd_bytes").unwrap(), [15e3, 30e3, 45e3]);
    assert!(a.column("w_max").unwrap()[0].is_nan());
    assert_eq!(a.column("w_max").unwrap()[1..], [20.0, 21.0]);
    assert!(a.column("w_max_mbit_s").unwrap().iter().all(|v| v.is_nan()));
    assert_eq!(a.column("flow"), None);

    let b = flow_series(&dir, "b").unwrap();
    assert_eq!(b.time_s, [0.5]);
    assert_eq!(b.column("cwnd_bytes").unwrap(), [14e3]);
    assert_eq!(b.column("w_max_mbit_s").unwrap(), [3.0]);
    assert_eq!(error(&dir, "c"), "PATH: no flow `c`; it has `a`, `b`");
}

#[test]
fn long_tables_are_read_to_the_end() {
    // More rows than the reader puts into a batch, the flows in turn.
    let n = 5_000;
    let times: Vec<f64> = (0..n).map(f64::from).collect();
    let names: Vec<&str> = (0..n).map(|i| if i % 2 == 0 { "a" } else { "b" }).collect();
    let scratch = foreign(vec![("time_s", numbers(&times)), ("flow", texts(&names))]);
    let b = flow_series(&scratch.0, "b").unwrap();
    assert_eq!(b.time_s.len(), 2_500);
    assert_eq!((b.time_s[0], b.time_s[2_499]), (1.0, 4_999.0));
}

#[test]
fn other_number_and_text_types_are_read() {
    let flows: [ArrayRef; 2] = [
        Arc::new(LargeStringArray::from(vec![Some("a"), None, Some("a")])),
        Arc::new(StringViewArray::from(vec![Some("a"), None, Some("a")])),
    ];
    for flow in flows {
        let scratch = foreign(vec![
            ("count", Arc::new(Int64Array::from(vec![Some(-7), Some(1), None]))),
            ("flow", flow),
            ("fast", Arc::new(BooleanArray::from(vec![true, true, true]))),
            ("half", Arc::new(Float32Array::from(vec![0.5, 1.5, 2.5]))),
            ("kind", texts(&["x", "y", "z"])),
            ("time_s", Arc::new(UInt8Array::from(vec![1, 2, 255]))),
        ]);
        let table = flow_series(&scratch.0, "a").unwrap();
        assert_eq!(table.time_s, [1.0, 255.0]);
        // Neither truth values nor text are numbers.
        assert_eq!(table.columns.len(), 2);
        assert_eq!(table.column("half").unwrap(), [0.5, 2.5]);
        let count = table.column("count").unwrap();
        assert!(count[0] == -7.0 && count[1].is_nan(), "{count:?}");
    }
}

#[test]
fn errors_say_what_is_wrong() {
    let scratch = Scratch::new();
    let absent = "cannot read PATH: No such file or directory (os error 2)";
    assert_eq!(error(&scratch.0, "a"), absent);
    for bytes in [&b""[..], b"time_s,flow\n0,a\n", b"PAR1PAR1", b"PAR1\xff\xff\xff\x7fPAR1"] {
        fs::write(scratch.0.join(tables::SERIES), bytes).unwrap();
        let error = error(&scratch.0, "a");
        assert!(error.starts_with("PATH: not a Parquet file: "), "{error}");
    }

    let scratch = foreign(vec![("time_s", numbers(&[0.0])), ("link", texts(&["up"]))]);
    assert_eq!(error(&scratch.0, "a"), "PATH: no column `flow`; it has `time_s`, `link`");
    let scratch = foreign(vec![("t", numbers(&[0.0])), ("flow", texts(&["a"]))]);
    assert_eq!(error(&scratch.0, "a"), "PATH: no column `time_s`; it has `t`, `flow`");
    let scratch = foreign(vec![("time_s", texts(&["0"])), ("flow", texts(&["a"]))]);
    assert_eq!(error(&scratch.0, "a"), "PATH: column `time_s` is Utf8, not a number");
    let scratch = foreign(vec![("time_s", numbers(&[0.0])), ("flow", numbers(&[1.0]))]);
    assert_eq!(error(&scratch.0, "1"), "PATH: column `flow` is Float64, not text");
    let scratch = foreign(vec![("time_s", numbers(&[])), ("flow", texts(&[]))]);
    assert_eq!(error(&scratch.0, "a"), "PATH: no flow `a`; it has none");
    let many: Vec<String> = (10..35).map(|i| format!("f{i}")).collect();
    let many: Vec<&str> = many.iter().map(String::as_str).collect();
    let scratch = foreign(vec![("time_s", numbers(&[0.0; 25])), ("flow", texts(&many))]);
    let error = error(&scratch.0, "a");
    assert!(error.ends_with("`f28`, `f29` and 5 more"), "{error}");
}

#[test]
fn a_file_cut_short_is_an_error() {
    let bytes = tables::series(&info(), &outcome()).unwrap().bytes;
    let scratch = Scratch::new();
    for length in 0..bytes.len() {
        fs::write(scratch.0.join(tables::SERIES), &bytes[..length]).unwrap();
        error(&scratch.0, "a");
    }
}

proptest! {
    #[test]
    fn no_bytes_make_the_reader_panic(bytes in proptest::collection::vec(any::<u8>(), 0..256)) {
        let scratch = Scratch::new();
        // With the magic at both ends the reader looks inside.
        for bytes in [bytes.clone(), [b"PAR1", &bytes[..], b"PAR1"].concat()] {
            fs::write(scratch.0.join(tables::SERIES), bytes).unwrap();
            let _ = flow_series(&scratch.0, "a");
        }
    }

    #[test]
    fn no_damage_makes_the_reader_panic(
        damage in proptest::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..4),
    ) {
        let mut bytes = tables::series(&info(), &outcome()).unwrap().bytes;
        for (at, byte) in damage {
            let at = at.index(bytes.len());
            bytes[at] = byte;
        }
        let scratch = Scratch::new();
        fs::write(scratch.0.join(tables::SERIES), bytes).unwrap();
        if let Ok(table) = flow_series(&scratch.0, "a") {
            prop_assert!(table.columns.iter().all(|(_, v)| v.len() == table.time_s.len()));
        }
    }
}
