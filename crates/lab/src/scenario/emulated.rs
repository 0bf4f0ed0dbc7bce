//! The options of `paceline link`: the keys of a link, each as a flag, for both directions or for one.
//!
//! `--queue codel` is the `queue` of both directions, `--uplink-queue codel` that of one; `--uplink` is its rate or its trace.
//! They are read by the tables that scenarios are read by, so that they mean the same, in the same units and ranges. A value
//! that is a table may be written as in a file, or with commas: `codel,target=5 ms`.

use std::path::Path as FilePath;
use std::sync::Arc;

use paceline_net::{LinkSpec, PS_PER_S};

use super::error::ScenarioError;
use super::keys::{self, Absent, Key, Kind, Table};
use super::link::{CapacitySource, Direction, Run};
use super::reader::{Reader, Source};
use super::tree::{Node, Place, TABLE, Value};

/// Length of a trace that is generated, ps; after that it repeats.
const SYNTHETIC_PS: u64 = 600 * PS_PER_S;

static EMULATED: Table = Table {
    name: "emulated link",
    doc: "One direction of `paceline link`.",
    keys: &[
        keys::LINK_RATE,
        keys::STEPS,
        keys::LINK_TRACE,
        keys::ONCE,
        Key { absent: Absent::Default("0 s"), ..keys::LINK_DELAY },
        keys::DELAY_TRACE,
        keys::BUFFER,
        keys::QUEUE,
        keys::LOSS,
        keys::JITTER,
        keys::REORDER,
        keys::key(
            "overhead",
            Kind::Bytes { min: 0, max: 1000 },
            Absent::Default("0 B"),
            "What a packet counts on the link besides its IP bytes.",
        ),
    ],
    exclusive: &[("rate", "trace"), ("rate", "once")],
};

/// One direction of an emulated link.
#[derive(Clone, Debug, PartialEq)]
pub struct EmulatedDirection {
    /// The link.
    pub spec: LinkSpec,
    /// Bytes that each packet counts more than its IP bytes.
    pub overhead_bytes: u32,
}

/// The two directions, uplink first, that `options` describe: pairs of a flag without its dashes and its value, as in
/// `("uplink-queue", "codel")`. `seed` is that of the traces that are generated.
///
/// # Errors
/// Unknown flags, values without unit or out of range, traces that cannot be read, buffers that hold no packet. The error names
/// the flag.
pub fn emulated_link(
    options: &[(String, String)],
    seed: u64,
) -> Result<[EmulatedDirection; 2], ScenarioError> {
    let source = Source { file: "".into(), base_dir: Default::default(), guests: [].into() };
    let tables = ["uplink", "downlink"].map(|name| table(name, options));
    let [up, down] = tables;
    let (up, down) = (up?, down?);
    let readers = [&up, &down].map(|table| Reader::open(&source, table, "", &EMULATED, &[]));
    let [up, down] = readers;
    let (up, down) = (up?, down?);
    let directions = [Direction::read_alone(&up)?, Direction::read_alone(&down)?];
    let base_rtt_ps = directions.iter().map(|direction| direction.propagation.least_ps).sum();
    let run = Run { seed, duration_ps: SYNTHETIC_PS, packet_bytes: 1500 };
    let finish = |direction: &Direction, reader: &Reader<'_>| {
        Ok(EmulatedDirection {
            spec: direction.resolve(base_rtt_ps, run)?,
            overhead_bytes: reader.bytes("overhead")?.unwrap_or_default() as u32,
        })
    };
    Ok([finish(&directions[0], &up)?, finish(&directions[1], &down)?])
}

/// The keys that `options` give the direction `name`.
fn table(name: &str, options: &[(String, String)]) -> Result<Node, ScenarioError> {
    let mut entries: Vec<(String, Node)> = Vec::new();
    let mut limited = false;
    for (flag, value) in options {
        // Of two flags for a key, the one for this direction wins, wherever it stands.
        let (key, own) = match flag.strip_prefix(name) {
            Some("") => (capacity_key(value), true),
            Some(key) => (key.trim_start_matches('-'), true),
            None if flag.starts_with("uplink") || flag.starts_with("downlink") => continue,
            None => (flag.as_str(), false),
        };
        let key = if key == "delay" { delay_key(value) } else { key };
        limited |= own && flag == name && value.trim() != "unlimited";
        let text: Arc<str> = format!("--{flag} {value}").into();
        if EMULATED.key(key).is_none() {
            return Err(ScenarioError {
                place: text.to_string(),
                key: String::new(),
                value: None,
                what: "no such option".into(),
                hint: String::new(),
            });
        }
        let node = value_node(value, &text, key);
        let is_same = |known: &str| known == key || is_delay(known) && is_delay(key);
        match entries.iter_mut().find(|(known, _)| is_same(known)) {
            Some(entry) if own => *entry = (key.into(), node),
            Some(_) => {}
            None => entries.push((key.into(), node)),
        }
    }
    // What is for both directions, but makes sense only with a rate or trace, is for the directions that have one.
    let own = |key: &str| options.iter().any(|(flag, _)| *flag == format!("{name}-{key}"));
    let shapes = entries.iter().any(|(key, node)| key == "queue" && is_shaper(node));
    if !limited && !shapes && !own("buffer") {
        entries.retain(|(key, _)| key != "buffer");
    }
    if !entries.iter().any(|(key, _)| key == "trace") && !own("once") {
        entries.retain(|(key, _)| key != "once");
    }
    // A buffer that is missing is asked for by name.
    let place = Place::Set { text: format!("--{name}-buffer").into(), path: "buffer".into() };
    Ok(Node { value: Value::Table(entries), place, raw: TABLE.into() })
}

/// Whether the text after `--uplink` is a rate or names a trace.
fn capacity_key(text: &str) -> &'static str {
    let text = text.trim();
    let like_a_rate = text == "unlimited" || text.starts_with(|c: char| c.is_ascii_digit());
    if like_a_rate && !FilePath::new(text).exists() { "rate" } else { "trace" }
}

/// Whether the text after `--delay` is a time or names a file of delays.
fn delay_key(text: &str) -> &'static str {
    let like_a_time = text.trim().starts_with(|c: char| c.is_ascii_digit() || "+-.".contains(c));
    if like_a_time && !FilePath::new(text).is_file() { "delay" } else { "delay_trace" }
}

fn is_delay(key: &str) -> bool {
    key == "delay" || key == "delay_trace"
}

fn is_shaper(queue: &Node) -> bool {
    let kind = queue.get("kind").unwrap_or(queue);
    matches!(&kind.value, Value::Text(kind) if kind == "tbf" || kind == "htb")
}

/// The value of the option `text`, for `key`.
fn value_node(value: &str, text: &Arc<str>, key: &str) -> Node {
    let place = |path: String| Place::Set { text: text.clone(), path: path.into() };
    let takes_table = EMULATED.key(key).is_some_and(|key| {
        matches!(key.kind, Kind::Variants(_) | Kind::ProbabilityOr { .. } | Kind::Table(_))
    });
    let node = Node::from_option(value, place(key.into()));
    if !takes_table || !matches!(node.value, Value::Text(_)) || !value.contains(['=', ',']) {
        return node;
    }
    let entry = |part: &str| {
        let (name, value) = part.split_once('=').unwrap_or(("kind", part));
        let name = name.trim().to_string();
        let node = Node::from_option(value.trim(), place(format!("{key}.{name}")));
        (name, node)
    };
    let entries = value.split(',').map(entry).collect();
    Node { value: Value::Table(entries), place: place(key.into()), raw: TABLE.into() }
}

impl Direction {
    /// The direction that `reader`'s table describes by itself; without a rate or trace, a pure delay.
    fn read_alone(reader: &Reader<'_>) -> Result<Self, ScenarioError> {
        let propagation = super::link::propagation(reader)?.unwrap_or_default();
        let capacity = super::link::capacity(reader)?.unwrap_or(CapacitySource::Unlimited);
        Self::read(reader, propagation, capacity)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use paceline_net::queue::CodelSpec;
    use paceline_net::{Buffer, Capacity, LossModel, PS_PER_MS, QueueSpec};

    fn link(options: &[(&str, &str)]) -> Result<[EmulatedDirection; 2], String> {
        let options: Vec<_> =
            options.iter().map(|(flag, value)| (flag.to_string(), value.to_string())).collect();
        emulated_link(&options, 1).map_err(|error| error.to_string())
    }

    #[test]
    fn flags_for_both_directions_and_for_one() {
        let [up, down] = link(&[
            ("uplink", "12 Mbit/s"),
            ("uplink-delay", "30ms"),
            ("delay", "20 ms"),
            ("queue", "codel,target=2 ms,ecn=true"),
            ("downlink", "24 Mbit/s"),
            ("downlink-queue", "droptail"),
            ("buffer", "100 packets"),
            ("loss", "1%"),
            ("overhead", "4 B"),
        ])
        .unwrap();
        assert_eq!(up.spec.capacity, Capacity::Constant(12e6));
        assert_eq!((up.spec.delay_ps, down.spec.delay_ps), (30 * PS_PER_MS, 20 * PS_PER_MS));
        let codel = CodelSpec { target_ps: 2 * PS_PER_MS, ecn: true, ..CodelSpec::default() };
        assert_eq!(up.spec.queue, QueueSpec::Codel(codel));
        assert_eq!(down.spec.queue, QueueSpec::DropTail);
        assert_eq!(down.spec.buffer, Buffer { packets: Some(100), ..Buffer::default() });
        assert_eq!(down.spec.loss, Some(LossModel::Bernoulli(0.01)));
        assert_eq!((up.overhead_bytes, down.overhead_bytes), (4, 4));
    }

    #[test]
    fn a_link_that_is_on_and_off_by_turns() {
        let [up, down] = link(&[("uplink-loss", "on-off,on=5 s,off=200 ms")]).unwrap();
        let turns = LossModel::OnOff { on_ps: 5000 * PS_PER_MS, off_ps: 200 * PS_PER_MS };
        assert_eq!((up.spec.loss, down.spec.loss), (Some(turns), None));
    }

    #[test]
    fn a_delay_is_a_time_or_a_file() {
        let dir = std::env::temp_dir().join(format!("paceline-delays-{}", std::process::id()));
        std::fs::create_dir_all(&dir).unwrap();
        let file = dir.join("a.delay");
        std::fs::write(&file, "0 30\n1000 20\n").unwrap();
        let name = file.to_str().unwrap();
        let [up, down] = link(&[("delay", name), ("uplink-delay", "5 ms")]).unwrap();
        assert_eq!((up.spec.delay_ps, up.spec.delay_trace), (5 * PS_PER_MS, None));
        assert_eq!(down.spec.delay_ps, 20 * PS_PER_MS);
        assert!(down.spec.delay_trace.is_some());
        let [up, down] = link(&[("uplink-delay", name), ("delay", "5 ms")]).unwrap();
        assert!(up.spec.delay_trace.is_some() && down.spec.delay_trace.is_none());
        std::fs::write(&file, "0 30\n1000\n").unwrap();
        let said = link(&[("delay", name)]).expect_err("refused");
        assert!(
            said.starts_with(&format!("--delay {name}: {name}:2: `1000` is not a time")),
            "{said}"
        );
        std::fs::remove_dir_all(&dir).unwrap();
        let said = link(&[("delay", name)]).expect_err("refused");
        assert!(said.starts_with(&format!("--delay {name}: {name}: no such file")), "{said}");
    }

    #[test]
    fn nothing_given_is_nothing_done() {
        let nothing = EmulatedDirection { spec: LinkSpec::default(), overhead_bytes: 0 };
        assert_eq!(link(&[]), Ok([nothing.clone(), nothing]));
    }

    #[test]
    fn a_buffer_is_one_bdp_of_both_delays() {
        let [up, down] = link(&[("uplink", "12 Mbit/s"), ("delay", "20 ms")]).unwrap();
        assert_eq!(up.spec.buffer.bytes, Some(60_000));
        assert_eq!(down.spec.buffer, Buffer::default());
    }

    #[test]
    fn errors_name_the_flag_the_value_and_the_range() {
        let error = |options: &[(&str, &str)]| link(options).expect_err("refused");
        let text = error(&[("uplink", "12")]);
        assert!(text.starts_with("--uplink 12: a rate needs a unit; allowed: "), "{text}");
        let text = error(&[("uplink", "no/such.trace")]);
        assert!(text.starts_with("--uplink no/such.trace: no/such.trace: no such file"), "{text}");
        let text = error(&[("delay", "-5 ms")]);
        assert!(text.starts_with("--delay -5 ms: out of range; allowed: 0 s to "), "{text}");
        let text = error(&[("downlink-queue", "codel,target=5")]);
        assert!(text.starts_with("--downlink-queue codel,target=5: "), "{text}");
        let text = error(&[("queue", "coddle")]);
        assert!(text.contains("did you mean"), "{text}");
        let text = error(&[("uplink", "12 Mbit/s")]);
        assert!(text.starts_with("--uplink-buffer: 1 BDP is 0 bytes"), "{text}");
        assert!(text.ends_with("allowed: 1500 B or more"), "{text}");
        let text = error(&[("loss", "200%")]);
        assert!(text.starts_with("--loss 200%: out of range"), "{text}");
        let text = error(&[("jitter", "exponential,mean=1")]);
        assert!(text.contains("a time needs a unit"), "{text}");
        assert_eq!(error(&[("queueing", "x")]), "--queueing x: no such option");
    }
}
