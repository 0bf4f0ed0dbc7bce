//! What a broken scenario is told, word for word.

use std::path::Path;

use paceline_cc::registry;
use paceline_lab::scenario::Scenario;

/// A scenario with nothing wrong; the cases below change a line or add some.
const GOOD: &str = r#"duration = "10 s"

[link]
rate = "100 Mbit/s"
delay = "20 ms"
buffer = "1 BDP"

[[flows]]
controller = "window"
"#;

fn error_of(text: &str, overrides: &[&str]) -> String {
    let overrides: Vec<String> = overrides.iter().map(|text| text.to_string()).collect();
    match Scenario::parse(text, "bad.toml", Path::new("no-such-dir"), &overrides) {
        Ok(_) => "accepted".into(),
        Err(error) => error.to_string(),
    }
}

/// Checks `(what replaces what in GOOD, the error)`; reports every mismatch at once.
fn check(cases: &[(&str, &str, &str)]) {
    let mut wrong = Vec::new();
    for (old, new, expected) in cases {
        assert!(GOOD.contains(old), "no {old:?} in the good scenario");
        let actual = error_of(&GOOD.replacen(old, new, 1), &[]);
        if actual != *expected {
            wrong.push(format!("{new}\n  expected {expected}\n  actual   {actual}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Checks `(--set option, the error)` on GOOD.
fn check_set(cases: &[(&str, &str)]) {
    let mut wrong = Vec::new();
    for (option, expected) in cases {
        let actual = error_of(GOOD, &[option]);
        if actual != *expected {
            wrong.push(format!("--set {option}\n  expected {expected}\n  actual   {actual}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

const RATE: &str = "rate = \"100 Mbit/s\"";
const DELAY: &str = "delay = \"20 ms\"";
const BUFFER: &str = "buffer = \"1 BDP\"";
const CONTROLLER: &str = "controller = \"window\"";
const DURATION: &str = "duration = \"10 s\"";

#[test]
fn the_good_scenario_is_good() {
    assert_eq!(error_of(GOOD, &[]), "accepted");
}

#[test]
fn units_and_ranges() {
    check(&[
        (
            RATE,
            "rate = 100",
            "bad.toml:4: link.rate = 100: a rate needs a unit; allowed: 1 bit/s to 100 Tbit/s (units: bit/s, kbit/s, Mbit/s, Gbit/s, Tbit/s); or \"unlimited\"",
        ),
        (
            RATE,
            "rate = \"100\"",
            "bad.toml:4: link.rate = \"100\": a rate needs a unit; allowed: 1 bit/s to 100 Tbit/s (units: bit/s, kbit/s, Mbit/s, Gbit/s, Tbit/s); or \"unlimited\"",
        ),
        (
            RATE,
            "rate = \"100 Mbits/s\"",
            "bad.toml:4: link.rate = \"100 Mbits/s\": unknown unit \"Mbits/s\"; did you mean `Mbit/s`?",
        ),
        (
            RATE,
            "rate = \"100 Mbps\"",
            "bad.toml:4: link.rate = \"100 Mbps\": unknown unit \"Mbps\"; allowed: 1 bit/s to 100 Tbit/s (units: bit/s, kbit/s, Mbit/s, Gbit/s, Tbit/s); or \"unlimited\"",
        ),
        (
            RATE,
            "rate = \"0 Mbit/s\"",
            "bad.toml:4: link.rate = \"0 Mbit/s\": out of range; allowed: 1 bit/s to 100 Tbit/s (units: bit/s, kbit/s, Mbit/s, Gbit/s, Tbit/s); or \"unlimited\"",
        ),
        (
            RATE,
            "rate = \"-5 Mbit/s\"",
            "bad.toml:4: link.rate = \"-5 Mbit/s\": out of range; allowed: 1 bit/s to 100 Tbit/s (units: bit/s, kbit/s, Mbit/s, Gbit/s, Tbit/s); or \"unlimited\"",
        ),
        (
            RATE,
            "rate = \"1e999 bit/s\"",
            "bad.toml:4: link.rate = \"1e999 bit/s\": out of range; allowed: 1 bit/s to 100 Tbit/s (units: bit/s, kbit/s, Mbit/s, Gbit/s, Tbit/s); or \"unlimited\"",
        ),
        (
            RATE,
            "rate = \"fast\"",
            "bad.toml:4: link.rate = \"fast\": not a rate; allowed: 1 bit/s to 100 Tbit/s (units: bit/s, kbit/s, Mbit/s, Gbit/s, Tbit/s); or \"unlimited\"",
        ),
        (
            RATE,
            "rate = nan",
            "bad.toml:4: link.rate = nan: a rate needs a unit; allowed: 1 bit/s to 100 Tbit/s (units: bit/s, kbit/s, Mbit/s, Gbit/s, Tbit/s); or \"unlimited\"",
        ),
        (
            RATE,
            "rate = true",
            "bad.toml:4: link.rate = true: expected a rate, found true or false; allowed: 1 bit/s to 100 Tbit/s (units: bit/s, kbit/s, Mbit/s, Gbit/s, Tbit/s); or \"unlimited\"",
        ),
        (
            DELAY,
            "delay = \"20\"",
            "bad.toml:5: link.delay = \"20\": a time needs a unit; allowed: 0 s to 1000 s (units: ns, us, µs, ms, s, min)",
        ),
        (
            DELAY,
            "delay = \"2000 s\"",
            "bad.toml:5: link.delay = \"2000 s\": out of range; allowed: 0 s to 1000 s (units: ns, us, µs, ms, s, min)",
        ),
        (
            DELAY,
            "delay = \"20 msec\"",
            "bad.toml:5: link.delay = \"20 msec\": unknown unit \"msec\"; allowed: 0 s to 1000 s (units: ns, us, µs, ms, s, min)",
        ),
        (
            DURATION,
            "duration = 10",
            "bad.toml:1: duration = 10: a time needs a unit; allowed: 1 us to 2592000 s (units: ns, us, µs, ms, s, min)",
        ),
        (
            DURATION,
            "duration = \"0 s\"",
            "bad.toml:1: duration = \"0 s\": out of range; allowed: 1 us to 2592000 s (units: ns, us, µs, ms, s, min)",
        ),
        (
            DURATION,
            "duration = \"31 min 5 s\"",
            "bad.toml:1: duration = \"31 min 5 s\": unknown unit \"min 5 s\"; allowed: 1 us to 2592000 s (units: ns, us, µs, ms, s, min)",
        ),
        (
            DURATION,
            "duration = 2026-01-01",
            "bad.toml:1: duration = 2026-01-01: expected a time, found a date; allowed: 1 us to 2592000 s (units: ns, us, µs, ms, s, min)",
        ),
        (
            BUFFER,
            "buffer = \"1\"",
            "bad.toml:6: link.buffer = \"1\": a buffer size needs a unit; allowed: \"1 BDP\", \"500 packets\", \"64 KiB\", \"10 ms\" or \"unlimited\" (0.0001 to 10000 BDP, 1 to 1000000000 packets, 1 B to 1000 GB, 1 us to 1000 s)",
        ),
        (
            BUFFER,
            "buffer = \"0.5 packets\"",
            "bad.toml:6: link.buffer = \"0.5 packets\": out of range; allowed: \"1 BDP\", \"500 packets\", \"64 KiB\", \"10 ms\" or \"unlimited\" (0.0001 to 10000 BDP, 1 to 1000000000 packets, 1 B to 1000 GB, 1 us to 1000 s)",
        ),
        (
            BUFFER,
            "buffer = \"2.5 packets\"",
            "bad.toml:6: link.buffer = \"2.5 packets\": not a whole number; allowed: \"1 BDP\", \"500 packets\", \"64 KiB\", \"10 ms\" or \"unlimited\" (0.0001 to 10000 BDP, 1 to 1000000000 packets, 1 B to 1000 GB, 1 us to 1000 s)",
        ),
        (
            BUFFER,
            "buffer = \"1000 B\"",
            "bad.toml:6: link.buffer = \"1000 B\": less than one data packet; allowed: 1500 B or more",
        ),
        (
            BUFFER,
            "buffer = \"0.001 BDP\"",
            "bad.toml:6: link.buffer = \"0.001 BDP\": 0.001 BDP is 500 bytes at a base RTT of 40 ms, less than one data packet; allowed: 1500 B or more",
        ),
        (
            BUFFER,
            "buffer = \"1 bdp\"",
            "bad.toml:6: link.buffer = \"1 bdp\": unknown unit \"bdp\"; did you mean `BDP`?",
        ),
        (
            BUFFER,
            "loss = 2",
            "bad.toml:6: link.loss = 2: out of range; allowed: 0% to 99%, or a number 0 to 0.99; or a table with kind = bernoulli, periodic, gilbert-elliott, on-off",
        ),
        (
            BUFFER,
            "loss = \"0.1\"",
            "bad.toml:6: link.loss = \"0.1\": a probability needs a unit; allowed: 0% to 99%, or a number 0 to 0.99; or a table with kind = bernoulli, periodic, gilbert-elliott, on-off",
        ),
        (
            BUFFER,
            "loss = inf",
            "bad.toml:6: link.loss = inf: out of range; allowed: 0% to 99%, or a number 0 to 0.99; or a table with kind = bernoulli, periodic, gilbert-elliott, on-off",
        ),
    ]);
}

#[test]
fn keys() {
    check(&[
        (
            BUFFER,
            "bufer = \"1 BDP\"",
            "bad.toml:6: link.bufer = \"1 BDP\": unknown key; did you mean `buffer`?",
        ),
        (
            BUFFER,
            "colour = \"red\"",
            "bad.toml:6: link.colour = \"red\": unknown key; allowed: rate, steps, trace, once, delay, delay_trace, rtt, buffer, queue, loss, noise, jitter, reorder, reverse",
        ),
        (
            DURATION,
            "duraton = \"10 s\"",
            "bad.toml:1: duraton = \"10 s\": unknown key; did you mean `duration`?",
        ),
        (
            DURATION,
            "",
            "bad.toml:1: duration: missing; allowed: 1 us to 2592000 s (units: ns, us, µs, ms, s, min)",
        ),
        (
            DELAY,
            "",
            "bad.toml:3: link: none of `delay`, `delay_trace` and `rtt`; allowed: exactly one of them, such as delay = \"10 ms\"",
        ),
        (
            DELAY,
            "delay_trace = \"a.delay\"",
            "bad.toml:5: link.delay_trace = \"a.delay\": no-such-dir/a.delay: no such file; allowed: the path of a file with a line `TIME DELAY` per change, in ms",
        ),
        (
            DELAY,
            "delay_trace = 20",
            "bad.toml:5: link.delay_trace = 20: expected text, found a whole number; allowed: the path of a file with a line `TIME DELAY` per change, in ms",
        ),
        (
            DELAY,
            "rtt = \"2 ms\"\ndelay_trace = \"a.delay\"",
            "bad.toml:6: link.delay_trace = \"a.delay\": excludes `rtt`; allowed: one of the two",
        ),
        (RATE, "", "bad.toml:3: link: neither `rate` nor `trace`; allowed: exactly one of the two"),
        (
            RATE,
            "rate = \"1 Mbit/s\"\ntrace = \"a.down\"",
            "bad.toml:5: link.trace = \"a.down\": excludes `rate`; allowed: one of the two",
        ),
        (
            RATE,
            "trace = \"a.down\"",
            "bad.toml:4: link.trace = \"a.down\": no-such-dir/a.down: no such file; allowed: the path of a trace file, one millisecond per line",
        ),
        (
            RATE,
            "trace = \"synth:\"",
            "bad.toml:4: link.trace = \"synth:\": no generator called \"\"; allowed: lte, umts, evdo",
        ),
        (
            RATE,
            "trace = \"synth:lte:first\"",
            "bad.toml:4: link.trace = \"synth:lte:first\": the seed after \"synth:NAME:\" is not a number; allowed: a whole number of 0 or more",
        ),
        (
            DELAY,
            "delay = \"1 ms\"\nrtt = \"2 ms\"",
            "bad.toml:6: link.rtt = \"2 ms\": excludes `delay`; allowed: one of the two",
        ),
        (
            BUFFER,
            "once = true",
            "bad.toml:6: link.once = true: excludes `rate`; allowed: one of the two",
        ),
        (BUFFER, "buffer = \"1 BDP\"\nbuffer = \"2 BDP\"", "bad.toml:7: not TOML: duplicate key"),
        ("[link]", "[link", "bad.toml:3: not TOML: unclosed table, expected `]`"),
        (
            "[link]",
            "link = 5\n[other]",
            "bad.toml:4: other: unknown key; allowed: title, duration, warmup, seed, sample, packets, link, links, topology, flows",
        ),
        ("[[flows]]", "[flows]", "bad.toml:8: flows: expected an array; write [[flows]]"),
        (
            "[[flows]]\ncontroller = \"window\"",
            "",
            "bad.toml:1: flows: missing; allowed: an array of at least one table with controller, count, name, start, start_spread, stop, size, cap, rtt, ecn, class, from, to, stack",
        ),
        (
            DURATION,
            "duration = \"10 s\"\nseed = -1",
            "bad.toml:2: seed = -1: out of range; allowed: a whole number, 0 to 9223372036854775807",
        ),
        (
            DURATION,
            "duration = \"10 s\"\nseed = 1.5",
            "bad.toml:2: seed = 1.5: expected a whole number, found a real number; allowed: a whole number, 0 to 9223372036854775807",
        ),
        (
            DURATION,
            "duration = \"10 s\"\nwarmup = \"10 s\"",
            "bad.toml:2: warmup = \"10 s\": leaves nothing to measure; allowed: less than duration, 10 s",
        ),
        (
            DURATION,
            "duration = \"10 s\"\nsample = \"11 s\"",
            "bad.toml:2: sample = \"11 s\": longer than the run; allowed: at most duration, 10 s",
        ),
        (
            DURATION,
            "duration = \"1000 s\"\nsample = \"1 us\"",
            "bad.toml:2: sample = \"1 us\": 1000000000 samples in all; allowed: at most 10000000",
        ),
        (
            DURATION,
            "duration = \"10 s\"\ntitle = \"\"",
            "bad.toml:2: title = \"\": not a usable text; allowed: text of 1 to 200 characters, none a control character",
        ),
        (
            DURATION,
            "duration = \"10 s\"\npackets = { data = \"10 B\" }",
            "bad.toml:2: packets.data = \"10 B\": out of range; allowed: 64 B to 65535 B (units: B, kB, KiB, MB, MiB, GB, GiB)",
        ),
        (
            DURATION,
            "duration = \"10 s\"\npackets = { data = \"70 B\", header = \"80 B\" }",
            "bad.toml:2: packets.header = \"80 B\": leaves no room for payload; allowed: less than data, 70 B",
        ),
    ]);
}

#[test]
fn impairments_and_queues() {
    check(&[
        (
            BUFFER,
            "steps = [{ at = \"5 s\", rate = \"1 Mbit/s\" }, { at = \"5 s\", rate = \"2 Mbit/s\" }]",
            "bad.toml:6: link.steps.1.at = \"5 s\": not after the step before; allowed: after 5 s",
        ),
        (
            BUFFER,
            "queue = \"step\"",
            "bad.toml:6: link.queue.threshold: missing; allowed: 0 to 1000000000 packets (units: packets)",
        ),
        (
            BUFFER,
            "queue = { kind = \"codel\", interval = \"0 s\" }",
            "bad.toml:6: link.queue.interval = \"0 s\": out of range; allowed: 1 us to 1000 s (units: ns, us, µs, ms, s, min)",
        ),
        (
            BUFFER,
            "queue = { kind = \"red\", min = \"20 packets\", max = \"10 packets\" }",
            "bad.toml:6: link.queue.max = \"10 packets\": below `min`; allowed: `min` or more",
        ),
        (
            BUFFER,
            "queue = { kind = \"dualpi2\", coupling = \"2\" }",
            "bad.toml:6: link.queue.coupling = \"2\": expected a number, found text; allowed: a number, 1 to 16",
        ),
        (
            BUFFER,
            "queue = { kind = \"tbf\", rate = \"1 Mbit/s\", queue = \"htb\" }",
            "bad.toml:6: link.queue.queue = \"htb\": unknown queue; allowed: droptail, drophead, step, red, codel, pie, fq, fq_codel, cake, dualpi2",
        ),
        (
            BUFFER,
            "queue = { kind = \"htb\", rate = \"9 Mbit/s\", classes = [{ rate = \"5 Mbit/s\", ceil = \"4 Mbit/s\" }] }",
            "bad.toml:6: link.queue.classes.0.ceil = \"4 Mbit/s\": below the class's own `rate`; allowed: `rate` or more",
        ),
        (
            BUFFER,
            "queue = \"dropttail\"",
            "bad.toml:6: link.queue = \"dropttail\": unknown queue; did you mean `droptail`?",
        ),
        (
            BUFFER,
            "queue = { target = \"5 ms\" }",
            "bad.toml:6: link.queue.target = \"5 ms\": unknown key; allowed: kind",
        ),
        (
            BUFFER,
            "queue = { kind = \"droptail\", target = \"5 ms\" }",
            "bad.toml:6: link.queue.target = \"5 ms\": unknown key; allowed: kind",
        ),
        (
            BUFFER,
            "queue = 5",
            "bad.toml:6: link.queue = 5: expected text, found a whole number; allowed: droptail, drophead, step, red, codel, pie, fq, fq_codel, cake, dualpi2, tbf, htb",
        ),
        (
            BUFFER,
            "loss = { kind = \"gilbert\", p = 0.1 }",
            "bad.toml:6: link.loss.kind = \"gilbert\": unknown loss; allowed: bernoulli, periodic, gilbert-elliott, on-off",
        ),
        (
            BUFFER,
            "loss = { kind = \"periodic\", every = 0 }",
            "bad.toml:6: link.loss.every = 0: out of range; allowed: a whole number, 1 to 1099511627776",
        ),
        (
            BUFFER,
            "loss = { kind = \"on-off\", on = \"5 s\", off = \"0 s\" }",
            "bad.toml:6: link.loss.off = \"0 s\": out of range; allowed: 1 ms to 86400 s (units: ns, us, µs, ms, s, min)",
        ),
        (
            BUFFER,
            "loss = { kind = \"gilbert-elliott\", p = 0.1 }",
            "bad.toml:6: link.loss.r: missing; allowed: 0% to 100%, or a number 0 to 1",
        ),
        (
            BUFFER,
            "loss = { kind = \"gilbert-elliott\", p = 0.1, r = 1.5 }",
            "bad.toml:6: link.loss.r = 1.5: out of range; allowed: 0% to 100%, or a number 0 to 1",
        ),
        (
            BUFFER,
            "noise = \"1 ms\"",
            "bad.toml:6: link.noise = \"1 ms\": expected a table, found text; allowed: a table with kind = exponential",
        ),
        (
            BUFFER,
            "noise = { kind = \"exponential\" }",
            "bad.toml:6: link.noise.mean: missing; allowed: 0 s to 10 s (units: ns, us, µs, ms, s, min); or 0% rtt to 1000% rtt",
        ),
        (
            BUFFER,
            "noise = { kind = \"exponential\", mean = \"1%\" }",
            "bad.toml:6: link.noise.mean = \"1%\": unknown unit \"%\"; allowed: 0 s to 10 s (units: ns, us, µs, ms, s, min); or 0% rtt to 1000% rtt",
        ),
        (
            BUFFER,
            "noise = { kind = \"exponential\", mean = \"2 ms\", max = \"1 ms\" }",
            "bad.toml:6: link.noise.max = \"1 ms\": `max` is below the mean; allowed: 2 ms or more",
        ),
        (
            BUFFER,
            "noise = { kind = \"normal\", mean = \"2 ms\" }",
            "bad.toml:6: link.noise.kind = \"normal\": unknown delay model; allowed: exponential",
        ),
        (
            BUFFER,
            "reorder = { probability = 0.1 }",
            "bad.toml:6: link.reorder.extra: missing; allowed: 1 ns to 100 s (units: ns, us, µs, ms, s, min)",
        ),
        (
            BUFFER,
            "reverse = { rate = \"unlimited\", buffer = \"1 BDP\" }",
            "bad.toml:6: link.reverse.buffer = \"1 BDP\": nothing queues on a link of unlimited rate; allowed: \"unlimited\"",
        ),
        (
            BUFFER,
            "reverse = { rate = \"1 kbit/s\", buffer = \"0.1 BDP\" }",
            "bad.toml:6: link.reverse.buffer = \"0.1 BDP\": 0.1 BDP is 1 bytes at a base RTT of 40 ms, less than one data packet; allowed: 1500 B or more",
        ),
        (
            BUFFER,
            "noise = { kind = \"exponential\", mean = \"1 ms\" }\nreverse = { jitter = { kind = \"exponential\", mean = \"1 ms\" } }",
            "bad.toml:6: link.noise = { kind = \"exponential\", mean = \"1 ms\" }: excludes `reverse.jitter`: both delay the ACKs at random; allowed: one of the two",
        ),
    ]);
}

#[test]
fn flows_and_networks() {
    let add = "controller = \"window\"\n";
    let flow = |line: &str| format!("{add}{line}");
    let net = |links: &str, ends: &str| {
        let links = links.replace("LINK", "[[links]]\nrate = \"1 Mbit/s\"\ndelay = \"50 ms\"\n");
        format!("duration = \"10 s\"\n{links}\n[[flows]]\ncontroller = \"window\"\n{ends}\n")
    };
    let line = "LINKfrom = \"a\"\nto = \"b\"\nLINKfrom = \"c\"\nto = \"d\"";
    let cases = [
        (
            GOOD.replacen(add, &flow("count = 0"), 1),
            "bad.toml:10: flows.0.count = 0: out of range; allowed: a whole number, 1 to 1000000",
        ),
        (
            GOOD.replacen(add, &flow("count = 2000000"), 1),
            "bad.toml:10: flows.0.count = 2000000: out of range; allowed: a whole number, 1 to 1000000",
        ),
        (
            GOOD.replacen(add, &flow("start = \"10 s\""), 1),
            "bad.toml:10: flows.0.start = \"10 s\": a flow would start after the end of the run; allowed: start + start_spread below 10 s",
        ),
        (
            GOOD.replacen(add, &flow("start_spread = \"10 s\""), 1),
            "bad.toml:10: flows.0.start_spread = \"10 s\": a flow would start after the end of the run; allowed: start + start_spread below 10 s",
        ),
        (
            GOOD.replacen(add, &flow("start = \"2 s\"\nstop = \"1 s\""), 1),
            "bad.toml:11: flows.0.stop = \"1 s\": a flow would stop before it starts; allowed: above start + start_spread, 2 s",
        ),
        (
            GOOD.replacen(add, &flow("size = \"0 B\""), 1),
            "bad.toml:10: flows.0.size = \"0 B\": out of range; allowed: 1 B to 1000000 GB (units: B, kB, KiB, MB, MiB, GB, GiB)",
        ),
        (
            GOOD.replacen(add, &flow("cap = \"1 bit/s\""), 1),
            "bad.toml:10: flows.0.cap = \"1 bit/s\": out of range; allowed: 8 bit/s to 100 Tbit/s (units: bit/s, kbit/s, Mbit/s, Gbit/s, Tbit/s)",
        ),
        (
            GOOD.replacen(add, &flow("rtt = \"39 ms\""), 1),
            "bad.toml:10: flows.0.rtt = \"39 ms\": less than the propagation of its links; allowed: 40 ms or more",
        ),
        (
            GOOD.replacen(add, &flow("from = \"a\""), 1),
            "bad.toml:10: flows.0.from = \"a\": `[link]` alone joins all flows; allowed: only with `[[links]]` or `[topology]`",
        ),
        (
            GOOD.replacen(add, &flow("stack = \"quic\""), 1),
            "bad.toml:10: flows.0.stack = \"quic\": stack \"quic\" is not simulated, and live runs do not have it yet; allowed: tcp, datagram",
        ),
        (
            GOOD.replacen(add, &flow("stack = \"udp\""), 1),
            "bad.toml:10: flows.0.stack = \"udp\": unknown stack; allowed: tcp, datagram",
        ),
        (
            GOOD.replacen(add, &flow("stack = { kind = \"tcp\", blocking = true }"), 1),
            "bad.toml:10: flows.0.stack.blocking = true: unknown key; allowed: kind, delayed_ack, min_rto, initial_window, handshake, prr",
        ),
        (
            GOOD.replacen(add, &flow("stack = { kind = \"tcp\", initial_window = 10 }"), 1),
            "bad.toml:10: flows.0.stack.initial_window = 10: a number of packets needs a unit; allowed: 1 to 10000 packets (units: packets)",
        ),
        (
            GOOD.replacen(add, &flow("stack = { kind = \"tcp\", delayed_ack = true }"), 1),
            "bad.toml:10: flows.0.stack.delayed_ack = true: expected a time, found true or false; allowed: 1 us to 500 ms (units: ns, us, µs, ms, s, min); or false",
        ),
        (
            GOOD.replacen(
                add,
                &flow("name = \"window-2\"\n[[flows]]\ncontroller = \"window\"\ncount = 2"),
                1,
            ),
            "bad.toml:11: flows.1.name: two flows would be called `window-2`; allowed: a name of its own",
        ),
        (
            "duration = \"10 s\"\nflows = []".into(),
            "bad.toml:2: flows = []: is empty; allowed: an array of at least one table with controller, count, name, start, start_spread, stop, size, cap, rtt, ecn, class, from, to, stack",
        ),
        (
            "duration = \"10 s\"\nflows = [5]\n".into(),
            "bad.toml:2: flows.0 = 5: expected a table, found a whole number; allowed: a table with controller, count, name, start, start_spread, stop, size, cap, rtt, ecn, class, from, to, stack",
        ),
        (
            "duration = \"10 s\"\nflows = [{ controller = \"window\" }]\n".into(),
            "bad.toml:1: link: neither `[link]` nor `[[links]]`; allowed: exactly one of the two",
        ),
        (
            format!("{GOOD}[topology]\nkind = \"star\"\n"),
            "bad.toml:11: topology.kind = \"star\": unknown topology; allowed: dumbbell, parking-lot",
        ),
        (
            format!("{GOOD}[topology]\nkind = \"parking-lot\"\n"),
            "bad.toml:10: topology.hops: missing; allowed: a whole number, 1 to 1000",
        ),
        (
            format!("{GOOD}[topology]\nkind = \"dumbbell\"\npairs = 0\n"),
            "bad.toml:12: topology.pairs = 0: out of range; allowed: a whole number, 1 to 1000",
        ),
        (
            format!("{GOOD}[topology]\nkind = \"dumbbell\"\naccess_delay = 3\n"),
            "bad.toml:12: topology.access_delay = 3: a time needs a unit; allowed: 0 s to 1000 s (units: ns, us, µs, ms, s, min); or a table with from, to",
        ),
        (
            format!(
                "{GOOD}[topology]\nkind = \"dumbbell\"\naccess_delay = {{ from = \"1 ms\" }}\n"
            ),
            "bad.toml:12: topology.access_delay.to: missing; allowed: 0 s to 1000 s (units: ns, us, µs, ms, s, min)",
        ),
        (
            format!(
                "{GOOD}[topology]\nkind = \"dumbbell\"\naccess_delay = {{ from = \"1 ms\", to = \"2000 s\" }}\n"
            ),
            "bad.toml:12: topology.access_delay.to = \"2000 s\": out of range; allowed: 0 s to 1000 s (units: ns, us, µs, ms, s, min)",
        ),
        (
            format!(
                "{GOOD}[topology]\nkind = \"dumbbell\"\naccess_delay = {{ form = \"1 ms\", to = \"2 ms\" }}\n"
            ),
            "bad.toml:12: topology.access_delay.form = \"1 ms\": unknown key; did you mean `from`?",
        ),
        (
            format!("{GOOD}from = \"left\"\nto = \"riht\"\n[topology]\nkind = \"dumbbell\"\n"),
            "bad.toml:11: flows.0.to = \"riht\": no such node; did you mean `right`?",
        ),
        (
            format!("{GOOD}[[links]]\nfrom = \"a\"\nto = \"b\"\n"),
            "bad.toml:10: links: excludes `link`; allowed: one of the two",
        ),
        (
            net("LINKfrom = \"a\"\nto = \"a\"", ""),
            "bad.toml:6: links.0.to = \"a\": is where the link begins; allowed: another node",
        ),
        (net(line, ""), "bad.toml:12: flows.0.from: missing; allowed: a, b, c, d"),
        (net(line, "from = \"a\""), "bad.toml:12: flows.0.to: missing; allowed: a, b, c, d"),
        (
            net(line, "from = \"a\"\nto = \"c\""),
            "bad.toml:15: flows.0.to = \"c\": no way from `a` to `c`; allowed: a node that the links reach",
        ),
        (
            net(line, "from = \"a\"\nto = \"e\""),
            "bad.toml:15: flows.0.to = \"e\": no such node; allowed: a, b, c, d",
        ),
        (
            net(line, "from = \"a\"\nto = \"a\""),
            "bad.toml:15: flows.0.to = \"a\": is where the flow begins; allowed: another node",
        ),
        (
            net(
                "LINKfrom = \"a\"\nto = \"b\"\nname = \"x\"\nLINKfrom = \"a\"\nto = \"b\"\nname = \"x\"",
                "",
            ),
            "bad.toml:13: links.1.name = \"x\": the name `x` is that of links.0 already; allowed: a name of its own",
        ),
        (
            net(line, "from = \"a\"\nto = \"b\"\n[topology]\nkind = \"dumbbell\""),
            "bad.toml:16: topology: is made from `[link]`, and there is none; allowed: `[link]` beside it",
        ),
    ];
    let mut wrong = Vec::new();
    for (text, expected) in &cases {
        let actual = error_of(text, &[]);
        if actual != *expected {
            wrong.push(format!("  expected {expected}\n  actual   {actual}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn options() {
    check_set(&[
        (
            "link.rate=20",
            "--set link.rate=20: a rate needs a unit; allowed: 1 bit/s to 100 Tbit/s (units: bit/s, kbit/s, Mbit/s, Gbit/s, Tbit/s); or \"unlimited\"",
        ),
        (
            "link.rate=2000 Tbit/s",
            "--set link.rate=2000 Tbit/s: out of range; allowed: 1 bit/s to 100 Tbit/s (units: bit/s, kbit/s, Mbit/s, Gbit/s, Tbit/s); or \"unlimited\"",
        ),
        ("link.rat=20 Mbit/s", "--set link.rat=20 Mbit/s: unknown key; did you mean `rate`?"),
        ("lnk.rate=20 Mbit/s", "--set lnk.rate=20 Mbit/s: lnk: unknown key; did you mean `link`?"),
        ("link.rate", "--set link.rate: no `=`; allowed: KEY=VALUE, such as link.rate=50 Mbit/s"),
        (
            "link..rate=1 Mbit/s",
            "--set link..rate=1 Mbit/s: the key has an empty part; allowed: dotted keys, such as link.rate or flows.0.start",
        ),
        (
            "=1",
            "--set =1: the key has an empty part; allowed: dotted keys, such as link.rate or flows.0.start",
        ),
        ("flows.1.count=2", "--set flows.1.count=2: `flows` has no entry `1`; allowed: 0"),
        (
            "flows.first.count=2",
            "--set flows.first.count=2: `flows` has no entry `first`; allowed: 0",
        ),
        (
            "flows.0.count=two",
            "--set flows.0.count=two: expected a whole number, found text; allowed: a whole number, 1 to 1000000",
        ),
        ("duration.x=2", "--set duration.x=2: `duration` is text, not a table"),
        (
            "link.loss={ kind = 'bernoulli', probability = 2 }",
            "--set link.loss={ kind = 'bernoulli', probability = 2 }: link.loss.probability = 2: out of range; allowed: 0% to 99%, or a number 0 to 0.99",
        ),
        (
            "link.queue=netem",
            "--set link.queue=netem: unknown queue; allowed: droptail, drophead, step, red, codel, pie, fq, fq_codel, cake, dualpi2, tbf, htb",
        ),
        (
            "link.trace=none.down",
            "--set link.trace=none.down: none.down: no such file; allowed: the path of a trace file, one millisecond per line",
        ),
        (
            "link.rtt=",
            "--set link.rtt=: not a time; allowed: 0 s to 1000 s (units: ns, us, µs, ms, s, min)",
        ),
        (
            "flows.0.controller.packets=0",
            "--set flows.0.controller.packets=0: out of range; allowed: whole numbers 1 to 10000000 (packets)",
        ),
        (
            "flows.0.controller.packts=10",
            "--set flows.0.controller.packts=10: window has no parameter `packts`; did you mean `packets`?",
        ),
        (
            "a.b.c.d.e.f.g.h.i.j.k.l.m.n.o.p.q=1",
            "--set a.b.c.d.e.f.g.h.i.j.k.l.m.n.o.p.q=1: the key has more than 16 parts",
        ),
    ]);
    let both = error_of(GOOD, &["link.rate=1 Mbit/s", "link.trace=a.down"]);
    assert_eq!(both, "--set link.trace=a.down: excludes `rate`; allowed: one of the two");
}

#[test]
fn controllers() {
    let names: Vec<&str> = registry::all().iter().map(|spec| spec.name).collect();
    let names = names.join(", ");
    check(&[
        (
            CONTROLLER,
            "controller = \"windows\"",
            "bad.toml:9: flows.0.controller = \"windows\": unknown controller \"windows\"; did you mean `window`?",
        ),
        (
            CONTROLLER,
            "controller = \"zzzzzzzz\"",
            &format!(
                "bad.toml:9: flows.0.controller = \"zzzzzzzz\": unknown controller \"zzzzzzzz\"; allowed: {names}"
            ),
        ),
        (
            CONTROLLER,
            "controller = 5",
            "bad.toml:9: flows.0.controller = 5: expected a controller, found a whole number; allowed: a name, or a table with name",
        ),
        (
            CONTROLLER,
            "controller = { packets = 5 }",
            &format!("bad.toml:9: flows.0.controller.name: missing; allowed: {names}"),
        ),
        (
            CONTROLLER,
            "controller = { name = 5 }",
            "bad.toml:9: flows.0.controller.name = 5: expected text, found a whole number",
        ),
        (
            CONTROLLER,
            "controller = { name = \"window\", profile = \"linux\" }",
            "bad.toml:9: flows.0.controller.profile = \"linux\": window has no profile \"linux\"; allowed: none",
        ),
        (
            CONTROLLER,
            "controller = \"window:linux\"",
            "bad.toml:9: flows.0.controller = \"window:linux\": window has no profile \"linux\"; allowed: none",
        ),
        (
            CONTROLLER,
            "controller = { name = \"window\", packets = 0 }",
            "bad.toml:9: flows.0.controller.packets = 0: out of range; allowed: whole numbers 1 to 10000000 (packets)",
        ),
        (
            CONTROLLER,
            "controller = { name = \"window\", packets = 1.5 }",
            "bad.toml:9: flows.0.controller.packets = 1.5: expected a whole number, found a real number; allowed: whole numbers 1 to 10000000 (packets)",
        ),
        (
            CONTROLLER,
            "controller = { name = \"window\", packets = \"12\" }",
            "bad.toml:9: flows.0.controller.packets = \"12\": expected a whole number, found text; allowed: whole numbers 1 to 10000000 (packets)",
        ),
        (
            CONTROLLER,
            "controller = { name = \"window\", packet = 12 }",
            "bad.toml:9: flows.0.controller.packet = 12: window has no parameter `packet`; did you mean `packets`?",
        ),
        (
            CONTROLLER,
            "controller = \"window,packets\"",
            "bad.toml:9: flows.0.controller = \"window,packets\": \"packets\" is not KEY=VALUE; allowed: \"NAME,KEY=VALUE\"",
        ),
    ]);
    let good = Scenario::parse(GOOD, "bad.toml", Path::new("."), &[]).expect("it is good");
    let option = |choice| good.with_controller(choice).map(|_| ()).map_err(|e| e.to_string());
    assert_eq!(option("window,packets=20"), Ok(()));
    let unknown = "--controller windw: unknown controller \"windw\"; did you mean `window`?";
    assert_eq!(option("windw"), Err(unknown.into()));
    let range = "--controller window,packets=0: packets = 0: out of range; \
                 allowed: whole numbers 1 to 10000000 (packets)";
    assert_eq!(option("window,packets=0"), Err(range.into()));
}

#[test]
fn files() {
    let missing = Scenario::load("no-such-file.toml", &[]).expect_err("there is none");
    assert_eq!(missing.to_string(), "no-such-file.toml: no such file");
    let folder = Scenario::load(".", &[]).expect_err("a folder");
    assert_eq!(folder.to_string(), ".: not a file of at most 64 MiB");
}
