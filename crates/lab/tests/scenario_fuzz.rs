//! No text, however broken, makes the reader panic; and what is wrong is said with its place.

#[path = "drive/scenario.rs"]
mod drive;

use std::path::Path;

use drive::attempt;
use paceline_lab::scenario::Scenario;
use proptest::prelude::*;

const SEEDS: [&str; 3] = [
    r#"duration = "10 s"
warmup = "1 s"
packets = { data = "1500 B", header = "52 B" }
[link]
rate = "100 Mbit/s"
delay = "20 ms"
buffer = "0.5 BDP"
queue = "droptail"
loss = { kind = "gilbert-elliott", p = 0.01, r = 0.5 }
noise = { kind = "exponential", mean = "1% rtt", max = "10% rtt" }
reverse = { rate = "10 Mbit/s", buffer = "64 KiB" }
[[flows]]
controller = { name = "window", packets = 20 }
count = 3
start_spread = "100 ms"
rtt = "80 ms"
stack = { kind = "tcp", delayed_ack = "40 ms" }
"#,
    r#"duration = "1 min"
[[links]]
from = "a"
to = "b"
rate = "1 Gbit/s"
rtt = "3 µs"
[[links]]
from = "b"
to = "c"
trace = "synth:lte:7"
delay = "5 ms"
[[flows]]
controller = "window,packets=9"
from = "a"
to = "c"
stack = "datagram"
cap = "5 Mbit/s"
"#,
    r#"title = "dumbbell"
duration = "2 s"
link = { rate = "1 Gbit/s", delay = "6.25 ms" }
topology = { kind = "dumbbell", pairs = 4, access_delay = { from = "1 ms", to = "3 ms" } }
flows = [{ controller = "window", count = 9, size = "1 MB", stop = "1.5 s" }]
"#,
];

const WORDS: [&str; 40] = [
    "",
    " ",
    "\n",
    "=",
    "\"",
    "'",
    "[",
    "]",
    "[[",
    "]]",
    "{",
    "}",
    ",",
    ".",
    "#",
    "-",
    "1e999",
    "nan",
    "inf",
    "-1",
    "0",
    "99999999999999999999",
    "9223372036854775807",
    "true",
    "\"unlimited\"",
    "\"0 s\"",
    "\"1e300 s\"",
    "\"-0 BDP\"",
    "\"% rtt\"",
    "\"1 % rtt\"",
    "\"synth:\"",
    "\"µ\"",
    "\u{0}",
    "\u{2028}",
    "🦀",
    "reverse",
    "kind",
    "1979-05-27",
    "[1,[2]]",
    "\"\\u0000\"",
];

/// `text` with the bytes `from..to` (moved to character borders) replaced.
fn splice(text: &mut String, from: usize, length: usize, word: &str) {
    let border = |mut at: usize| {
        at = at.min(text.len());
        while !text.is_char_boundary(at) {
            at -= 1;
        }
        at
    };
    let (from, to) = (border(from), border(from + length));
    text.replace_range(from..to.max(from), word);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2000, failure_persistence: None, ..Default::default() })]

    #[test]
    fn arbitrary_text_never_panics(text in "\\PC*", option in "\\PC{0,40}") {
        attempt(&text, &[]);
        attempt(SEEDS[0], &[option]);
    }

    #[test]
    fn arbitrary_bytes_never_panic(bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
        drive::any(&bytes);
    }

    #[test]
    fn mutated_scenarios_never_panic(
        seed in 0..SEEDS.len(),
        edits in proptest::collection::vec((0..600usize, 0..12usize, 0..WORDS.len()), 1..5),
    ) {
        let mut text = SEEDS[seed].to_string();
        for (from, length, word) in edits {
            splice(&mut text, from, length, WORDS[word]);
        }
        attempt(&text, &[]);
    }

    #[test]
    fn mutated_options_never_panic(
        seed in 0..SEEDS.len(),
        key in 0..12usize,
        value in prop_oneof![(0..WORDS.len()).prop_map(|i| WORDS[i].to_string()), "\\PC{0,30}"],
        unit in prop_oneof![Just(""), Just(" s"), Just(" BDP"), Just(" Mbit/s"), Just("%"), Just(" kB")],
    ) {
        let key = [
            "duration", "link.rate", "link.delay", "link.buffer", "link.loss", "link.noise.mean",
            "flows.0.controller", "flows.0.controller.packets", "flows.0.count", "flows.0.stack.clock",
            "links.1.trace", "topology.pairs",
        ][key];
        attempt(SEEDS[seed], &[format!("{key}={value}{unit}")]);
    }
}

#[test]
fn the_seeds_are_valid() {
    for text in SEEDS {
        Scenario::parse(text, "fuzz.toml", Path::new("."), &[]).unwrap_or_else(|e| panic!("{e}"));
    }
}

#[test]
fn deep_nesting_is_refused() {
    let deep = format!("x = {}{}", "[".repeat(100_000), "]".repeat(100_000));
    attempt(&deep, &[]);
    attempt(SEEDS[0], &[format!("link.loss={}", "{a=".repeat(10_000))]);
    attempt(SEEDS[0], &[format!("{}=1", ["a"; 100_000].join("."))]);
}

#[test]
fn a_line_break_in_a_key_breaks_no_message() {
    attempt("\"a\\nb\" = 1", &[]);
    attempt(SEEDS[0], &["link.a\nb=1".into()]);
    attempt(SEEDS[0], &["no equals sign\n".into()]);
}
