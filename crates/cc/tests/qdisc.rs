//! What the queueing discipline (`qdisc/`) makes of packets and ACKs, compiled natively: its hand-computed cases, its parameters
//! beside the registry's, and its flows over a link.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::{env, fs};

use paceline_cc::{Kind, registry};

/// Compiles `qdisc/test/{name}.c` with checks of memory and arithmetic, where the compiler has them.
fn compile(name: &str) -> PathBuf {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("../../qdisc/test/{name}.c"));
    let program = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("qdisc-{name}"));
    let compiler = env::var("CC").unwrap_or_else(|_| "cc".into());
    let run = |checks: &[&str]| -> Output {
        Command::new(&compiler)
            .args(["-O1", "-g", "-std=gnu11", "-Wall", "-Wextra", "-Werror"])
            .args(checks)
            .arg(&source)
            .arg("-o")
            .arg(&program)
            .arg("-lm")
            .output()
            .unwrap_or_else(|e| panic!("{compiler}: {e}"))
    };
    let mut result = run(&["-fsanitize=address,undefined", "-fno-sanitize-recover=undefined"]);
    if !result.status.success() {
        result = run(&[]);
    }
    assert!(result.status.success(), "{}", String::from_utf8_lossy(&result.stderr));
    assert!(fs::metadata(&program).is_ok());
    program
}

fn output(program: &Path, arguments: &[&str]) -> String {
    let output = Command::new(program).args(arguments).output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{arguments:?}: {text}{errors}");
    text
}

#[test]
fn meter_knows_what_acks_say_and_has_the_parameters_of_the_registry() {
    let meter = compile("meter");
    assert_eq!(output(&meter, &[]), "");
    let wanted: Vec<String> = registry::find("mpc")
        .unwrap()
        .params
        .iter()
        .map(|row| {
            // As crates/cc/src/native.rs says it.
            let value = match row.kind {
                Kind::Integer | Kind::Bool | Kind::Choice(_) => row.default,
                Kind::Duration => row.default * 1e9,
                Kind::Rate => row.default / 8.0,
                Kind::Number => row.default * 65536.0,
            };
            format!("{}", value.round())
        })
        .collect();
    assert_eq!(output(&meter, &["params"]).lines().collect::<Vec<_>>(), wanted);
}

/// A number that `qdisc/test/link.c` prints, or the sum of those of that name.
fn number(text: &str, key: &str) -> f64 {
    let values = text.lines().filter_map(|line| line.strip_prefix(key)?.trim().parse::<f64>().ok());
    values.sum()
}

#[test]
fn flows_fill_a_link_evenly_and_keep_its_queue_short() {
    let link = compile("link");
    // Flows, Mbit/s, RTT in us: docs/mpc.md has the law's own figures.
    for (flows, rate, rtt_us) in [(1, 100.0, 25_000.0), (2, 100.0, 25_000.0), (2, 1000.0, 25_000.0)]
    {
        let text =
            output(&link, &[&flows.to_string(), &rate.to_string(), &rtt_us.to_string(), "25"]);
        let utilisation = number(&text, "utilisation");
        assert!(utilisation > 0.98 && utilisation <= 1.001, "{text}");
        // Twice the queue that this many flows want, and well below a buffer of one BDP.
        let share = rate / f64::from(flows);
        let wanted_ms = 0.37 * (4000.0 / share).sqrt() * rtt_us / (rtt_us + 2000.0);
        assert!(number(&text, "rtt_mean_ms") < rtt_us / 1000.0 + 2.0 * wanted_ms, "{text}");
        // CUBIC's saw-tooth on one BDP of buffer has a seventh of the RTT.
        assert!(number(&text, "rtt_deviation_ms") < rtt_us / 1000.0 / 21.0, "{text}");
        for line in text.lines().filter(|line| line.starts_with("flow_mbit")) {
            assert!(number(line, "flow_mbit") > 0.8 * share, "{text}");
        }
    }
}
