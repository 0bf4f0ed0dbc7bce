//! From a scenario over a run and its record to qlog: what the trace counts is what the flow counted.

use std::fs;
use std::ops::ControlFlow;
use std::path::Path;

use paceline_lab::record::{
    self,
    qlog::{Draft, Options, export},
};
use paceline_lab::scenario::Scenario;
use paceline_lab::world::simulate;
use serde_json::Value;

const SCENARIO: &str = r#"
duration = "3 s"
[link]
rate = "10 Mbit/s"
delay = "10 ms"
loss = "1%"
[[flows]]
controller = "reno"
count = 2
"#;

#[test]
fn the_trace_of_a_simulated_flow_counts_its_packets() {
    let tmp = Path::new(env!("CARGO_TARGET_TMPDIR"));
    let scenario = Scenario::parse(SCENARIO, "test.toml", tmp, &[]).unwrap();
    let run =
        simulate(&scenario, None, Vec::new(), &mut |_| (), &mut |_| ControlFlow::Continue(()))
            .unwrap();
    let dir = tmp.join("qlog-export");
    record::write(&dir, &run.info, &run.outcome, &run.provenance).unwrap();
    for (info, flow) in run.info.flows.iter().zip(&run.outcome.flows) {
        assert!(flow.lost_packets > 5, "{} losses show little", flow.lost_packets);
        for max_points in [20, 20_000] {
            let mut text = Vec::new();
            let options = Options { draft: Draft::Draft02, max_points };
            export(&dir, &info.name, &mut text, options).unwrap();
            let file: Value = serde_json::from_slice(&text).unwrap();
            let events = file["traces"][0]["events"].as_array().unwrap();
            let data = |name: &'static str| {
                events.iter().filter(move |e| e["name"] == name).map(|e| &e["data"])
            };
            let lost: u64 =
                data("recovery:packet_lost").map(|d| d["count"].as_u64().unwrap()).sum();
            assert_eq!(lost, flow.lost_packets, "{max_points} points");
            // An interval without packets has the length 1: whole packets only.
            let sent: u64 = data("transport:packet_sent")
                .map(|d| d["raw"]["length"].as_u64().unwrap() / 1500)
                .sum();
            assert_eq!(sent, flow.sent_packets, "{max_points} points");
            assert!(data("recovery:metrics_updated").count() <= max_points);
            let thresholds = data("recovery:metrics_updated").filter(|d| d["ssthresh"].is_u64());
            assert!(thresholds.count() > 0, "the controller's threshold is among the metrics");
        }
    }
    fs::remove_dir_all(dir).unwrap();
}
