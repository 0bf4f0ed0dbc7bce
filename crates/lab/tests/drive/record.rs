//! Reads bytes as the files of a record, or as damage to a sound one.
//!
//! `fuzz/fuzz_targets/record.rs` includes this file by path and calls [`any`] with its input; `tests/fuzz_targets.rs` feeds it
//! random bytes.

use std::fs;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, OnceLock};

use paceline_lab::record::{manifest, read, tables, write};
use paceline_lab::scenario::Scenario;
use paceline_lab::world;

const SCENARIO: &str = "\
duration = \"200 ms\"
link = { rate = \"5 Mbit/s\", rtt = \"20 ms\", buffer = \"1 BDP\" }
flows = [{ controller = \"cubic\" }, { controller = \"reno\" }]
";

/// The first byte says which file, and whether the rest is all of it or damage. Panics where a reader breaks its word.
pub fn any(bytes: &[u8]) {
    let Some((kind, bytes)) = bytes.split_first() else { return };
    let record = record();
    match kind % 4 {
        0 => read_manifest(bytes),
        1 => read_manifest(&damaged(&record.manifest, bytes)),
        2 => read_series(bytes),
        _ => read_series(&damaged(&record.series, bytes)),
    }
}

/// A panic inside the Parquet reader is caught and answered with an error, but libFuzzer would end the process at once: let it
/// hear of panics in this repository only. What is not caught ends it anyway.
#[allow(dead_code)] // the fuzz target's
pub fn forgive_caught_panics() {
    let before = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |panic| {
        if panic.location().is_some_and(|place| place.file().contains("crates/")) {
            before(panic);
        }
    }));
}

fn read_manifest(bytes: &[u8]) {
    if let Ok(manifest) = manifest::parse_manifest(bytes, Path::new("manifest.json")) {
        let text = manifest.to_json();
        let again = manifest::parse_manifest(text.as_bytes(), Path::new("manifest.json"));
        assert_eq!(again.ok().as_ref(), Some(&manifest), "what was written is read back");
    }
}

fn read_series(bytes: &[u8]) {
    // The tests of one process share the folder.
    static TURN: Mutex<()> = Mutex::new(());
    let _turn = TURN.lock();
    let dir = &record().dir;
    fs::write(dir.join(tables::SERIES), bytes).expect("the temporary folder can be written");
    if let Ok(table) = read::flow_series(dir, "cubic") {
        let rows = table.time_s.len();
        assert!(table.columns.iter().all(|(_, values)| values.len() == rows));
    }
}

/// Every three bytes put a byte in a place; the last two, if they are left over, cut the file short.
fn damaged(file: &[u8], damage: &[u8]) -> Vec<u8> {
    let mut file = file.to_vec();
    let places = damage.chunks_exact(3);
    let place = |at: &[u8], length: usize| usize::from(u16::from_le_bytes([at[0], at[1]])) % length;
    let cut = places.remainder();
    for edit in places {
        let at = place(edit, file.len());
        file[at] = edit[2];
    }
    if cut.len() == 2 {
        file.truncate(place(cut, file.len()));
    }
    file
}

/// A small record, and a folder to write to.
struct Record {
    dir: PathBuf,
    manifest: Vec<u8>,
    series: Vec<u8>,
}

fn record() -> &'static Record {
    static RECORD: OnceLock<Record> = OnceLock::new();
    RECORD.get_or_init(|| {
        let folder = option_env!("CARGO_TARGET_TMPDIR").map_or_else(std::env::temp_dir, PathBuf::from);
        let dir = folder.join(format!("any-record-{}", std::process::id()));
        let scenario = Scenario::parse(SCENARIO, "any.toml", Path::new("."), &[]);
        let scenario = scenario.expect("a valid scenario");
        let watch = &mut |_| ControlFlow::Continue(());
        let run = world::simulate(&scenario, None, Vec::new(), &mut |_| {}, watch).expect("it runs");
        write(&dir, &run.info, &run.outcome, &run.provenance).expect("a record");
        let file = |name: &str| fs::read(dir.join(name)).expect("it was just written");
        let (manifest, series) = (file("manifest.json"), file(tables::SERIES));
        assert!(series.len() < 1 << 16, "damage reaches 64 KiB only: {}", series.len());
        Record { dir, manifest, series }
    })
}
