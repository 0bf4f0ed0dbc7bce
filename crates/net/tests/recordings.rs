//! The cellular recordings, where they are present: statistics against the table that comes with them.

use std::io::Write;
use std::path::{Path, PathBuf};

use paceline_net::Trace;

/// The folder in `PACELINE_TRACES`, else `shared/traces` beside this crate or any folder above it.
fn folder() -> Option<PathBuf> {
    if let Some(folder) = std::env::var_os("PACELINE_TRACES") {
        return Some(folder.into());
    }
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    here.ancestors().map(|above| above.join("shared/traces")).find(|folder| folder.is_dir())
}

/// File, opportunities, first ms, duration s, mean Mbit/s, percentiles of 1-s capacity Mbit/s, longest gap ms, most in one
/// ms; as printed.
const TABLE: [[&str; 8]; 13] = [
    [
        "ATT-LTE-driving-2016.down",
        "45604",
        "0",
        "120.0",
        "4.572",
        "0.59 / 3.75 / 11.18",
        "1123",
        "29",
    ],
    ["ATT-LTE-driving-2016.up", "19101", "0", "120.0", "1.915", "0.04 / 1.58 / 5.01", "4061", "17"],
    ["ATT-LTE-driving.down", "338895", "0", "786.1", "5.187", "0.69 / 5.44 / 9.55", "1515", "10"],
    ["ATT-LTE-driving.up", "70336", "831", "1012.5", "0.836", "0.00 / 1.05 / 1.19", "78319", "12"],
    [
        "TMobile-LTE-driving.down",
        "505078",
        "0",
        "474.6",
        "12.804",
        "2.89 / 10.02 / 30.62",
        "1058",
        "28",
    ],
    [
        "TMobile-LTE-short.down",
        "194846",
        "0",
        "140.0",
        "16.747",
        "4.08 / 13.85 / 37.28",
        "917",
        "26",
    ],
    ["TMobile-LTE-short.up", "155381", "7", "140.0", "13.354", "2.49 / 11.78 / 27.88", "724", "41"],
    [
        "TMobile-UMTS-driving.down",
        "156262",
        "0",
        "928.4",
        "2.025",
        "0.01 / 1.90 / 5.39",
        "5753",
        "6",
    ],
    [
        "TMobile-UMTS-driving.up",
        "73197",
        "637",
        "931.2",
        "0.946",
        "0.06 / 1.08 / 1.44",
        "5830",
        "22",
    ],
    [
        "Verizon-EVDO-driving.down",
        "46065",
        "0",
        "1062.0",
        "0.522",
        "0.01 / 0.41 / 1.46",
        "11567",
        "6",
    ],
    [
        "Verizon-EVDO-driving.up",
        "74768",
        "1056",
        "1064.7",
        "0.845",
        "0.07 / 0.96 / 1.26",
        "11198",
        "38",
    ],
    ["Verizon-LTE-short.down", "58655", "0", "140.0", "5.041", "1.08 / 4.36 / 11.14", "1447", "16"],
    ["Verizon-LTE-short.up", "69367", "7", "140.0", "5.962", "1.18 / 5.75 / 11.48", "1718", "43"],
];

#[test]
fn statistics_match_the_printed_table() {
    let Some(folder) = folder() else {
        skip("no cellular traces (PACELINE_TRACES names their folder)");
        return;
    };
    for row in TABLE {
        let path = folder.join(row[0]);
        if !path.exists() {
            skip(&format!("{} is absent", path.display()));
            continue;
        }
        let trace = Trace::load(&path).expect("a recording");
        let stats = trace.stats();
        let capacity = stats.capacity_1s_mbps.expect("longer than a second");
        let printed = [
            row[0].to_owned(),
            stats.opportunities.to_string(),
            stats.first_ms.to_string(),
            format!("{:.1}", stats.duration_s),
            format!("{:.3}", stats.mean_mbps),
            format!("{:.2} / {:.2} / {:.2}", capacity.p5, capacity.p50, capacity.p95),
            stats.longest_gap_ms.to_string(),
            stats.most_in_one_ms.to_string(),
        ];
        assert_eq!(printed, row);

        let mut text = Vec::new();
        trace.write(&mut text).expect("memory");
        assert_eq!(std::fs::read(&path).expect("readable"), text, "{}", row[0]);
    }
}

/// Says why a test cannot run here, past the test harness, which hides what passing tests print.
fn skip(reason: &str) {
    let line = format!("\nSKIPPED trace statistics: {reason}\n");
    let _ = std::io::stderr().write_all(line.as_bytes());
}
