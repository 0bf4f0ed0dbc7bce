//! Every key of a scenario, described once.
//!
//! These tables drive the reading (unknown keys, types, ranges, defaults), the JSON Schema and the reference page.

use paceline_net::{PS_PER_MS, PS_PER_NS, PS_PER_S, PS_PER_US, Picos};

use super::loss::LOSSES;
use super::quantity::{self, BYTES, RATE, TIME, names, show, show_bytes, show_time};
use super::queue::QUEUES;

/// A table of the file: its keys and which of them exclude each other.
#[derive(Debug)]
pub(crate) struct Table {
    /// Heading in the reference, and name in the JSON Schema.
    pub name: &'static str,
    pub doc: &'static str,
    pub keys: &'static [Key],
    /// Pairs of which at most one may be given.
    pub exclusive: &'static [(&'static str, &'static str)],
}

/// A key of a table.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Key {
    pub name: &'static str,
    pub kind: Kind,
    pub absent: Absent,
    pub doc: &'static str,
}

/// What holds where a key is not given.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Absent {
    /// An error.
    Required,
    /// This value, written as in a file (text without its quotes).
    Default(&'static str),
    /// A rule that no single value expresses.
    Rule(&'static str),
}

/// How a value is written, and its range.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Kind {
    Text,
    Bool,
    Whole {
        min: i64,
        max: i64,
    },
    Number {
        min: f64,
        max: f64,
    },
    Probability {
        max: f64,
    },
    Time {
        min: Picos,
        max: Picos,
    },
    /// A time, or `false`.
    TimeOrFalse {
        min: Picos,
        max: Picos,
    },
    /// A time, or the first and the last of a series.
    TimeOrSpread {
        min: Picos,
        max: Picos,
        or: &'static Table,
    },
    /// A time, or a share of the base RTT.
    TimeOrRtt {
        max: Picos,
    },
    Rate {
        min: f64,
        max: f64,
    },
    RateOrUnlimited {
        min: f64,
        max: f64,
    },
    Bytes {
        min: u64,
        max: u64,
    },
    Packets {
        min: u64,
        max: u64,
    },
    Buffer,
    Trace,
    /// A file of delays.
    DelayTrace,
    Table(&'static Table),
    /// An array of tables, at least one.
    Tables(&'static Table),
    /// A table whose `kind` picks its keys, or that word alone where nothing more is needed.
    Variants(&'static Variants),
    /// A probability, or such a table.
    ProbabilityOr {
        max: f64,
        or: &'static Variants,
    },
    Controller,
}

/// The words a `kind` may be.
#[derive(Debug)]
pub(crate) struct Variants {
    pub name: &'static str,
    pub list: &'static [Variant],
    /// Known words that nothing stands behind yet, and why.
    pub unavailable: &'static [(&'static str, &'static str)],
    /// Whether the word alone will do. A table without `kind` then takes the first, which is the default of a key that has one.
    pub bare: bool,
}

/// One of them.
#[derive(Debug)]
pub(crate) struct Variant {
    pub name: &'static str,
    pub table: &'static Table,
}

impl Table {
    pub fn key(&self, name: &str) -> Option<&'static Key> {
        self.keys.iter().find(|key| key.name == name)
    }
}

impl Variants {
    pub fn words(&self) -> impl Iterator<Item = &'static str> + Clone + use<> {
        self.list.iter().map(|v| v.name)
    }

    fn allowed(&self) -> String {
        let words: Vec<&str> = self.words().collect();
        words.join(", ")
    }
}

impl Kind {
    /// The key that a bare word in place of the table stands for.
    pub fn shorthand(&self) -> Option<&'static str> {
        match self {
            Self::Controller => Some("name"),
            Self::Variants(variants) if variants.bare => Some("kind"),
            _ => None,
        }
    }

    /// The keys of the table, or of each table of the array.
    pub fn table(&self) -> Option<&'static Table> {
        match self {
            Self::Table(table) | Self::Tables(table) | Self::TimeOrSpread { or: table, .. } => {
                Some(table)
            }
            _ => None,
        }
    }

    /// The allowed values, as errors, the schema and the reference show them.
    pub fn allowed(&self) -> String {
        match self {
            Self::Text => format!("text of 1 to {MAX_TEXT} characters, none a control character"),
            Self::Bool => "true, false".into(),
            Self::Whole { min, max } => format!("a whole number, {min} to {max}"),
            Self::Number { min, max } => format!("a number, {min} to {max}"),
            Self::Probability { max } => {
                format!("0% to {}%, or a number 0 to {max}", show_percent(*max))
            }
            Self::Time { min, max } => time_range(*min, *max),
            Self::TimeOrFalse { min, max } => format!("{}; or false", time_range(*min, *max)),
            Self::TimeOrSpread { min, max, or } => {
                format!("{}; or a table with {}", time_range(*min, *max), key_names(or))
            }
            Self::TimeOrRtt { max } => format!(
                "{}; or 0% rtt to {}% rtt",
                time_range(0, *max),
                show_percent(quantity::MAX_RTT_SHARE)
            ),
            Self::Rate { min, max } => rate_range(*min, *max),
            Self::RateOrUnlimited { min, max } => {
                format!("{}; or \"unlimited\"", rate_range(*min, *max))
            }
            Self::Bytes { min, max } => {
                format!("{} to {} (units: {})", show_bytes(*min), show_bytes(*max), names(&BYTES))
            }
            Self::Packets { min, max } => format!("{min} to {max} packets (units: packets)"),
            Self::Buffer => "\"1 BDP\", \"500 packets\", \"64 KiB\", \"10 ms\" or \"unlimited\" \
                (0.0001 to 10000 BDP, 1 to 1000000000 packets, 1 B to 1000 GB, 1 us to 1000 s)"
                .into(),
            Self::Trace => "the path of a trace file, \"synth:NAME\" or \"synth:NAME:SEED\"".into(),
            Self::DelayTrace => {
                "the path of a file with a line `TIME DELAY` per change, in ms".into()
            }
            Self::Table(table) => format!("a table with {}", key_names(table)),
            Self::Tables(table) => {
                format!("an array of at least one table with {}", key_names(table))
            }
            Self::Variants(variants) => variants.allowed(),
            Self::ProbabilityOr { max, or } => format!(
                "{}; or a table with kind = {}",
                Self::Probability { max: *max }.allowed(),
                or.allowed()
            ),
            Self::Controller => {
                "\"NAME\", \"NAME:PROFILE\", \"NAME,KEY=VALUE\" or a table with name".into()
            }
        }
    }
}

fn show_percent(fraction: f64) -> f64 {
    (fraction * 1e6).round() / 1e4
}

fn time_range(min: Picos, max: Picos) -> String {
    let (min, max) = (show_time(min as f64), show_time(max as f64));
    format!("{min} to {max} (units: {})", names(&TIME))
}

fn rate_range(min: f64, max: f64) -> String {
    format!("{} to {} (units: {})", show(min, &RATE), show(max, &RATE), names(&RATE))
}

fn key_names(table: &Table) -> String {
    table.keys.iter().map(|key| key.name).collect::<Vec<_>>().join(", ")
}

/// Longest title or name, characters.
pub(crate) const MAX_TEXT: usize = 200;
/// Most flows in a run.
pub(crate) const MAX_FLOWS: i64 = 1_000_000;
/// Most samples in a time series.
pub(crate) const MAX_SAMPLES: u64 = 10_000_000;

pub(super) const fn key(name: &'static str, kind: Kind, absent: Absent, doc: &'static str) -> Key {
    Key { name, kind, absent, doc }
}

use Absent::{Default, Required, Rule};

pub(super) const DAY: Picos = 86_400 * PS_PER_S;
const RUN_TIME: Kind = Kind::Time { min: 0, max: 30 * DAY };
const DELAY: Kind = Kind::Time { min: 0, max: 1000 * PS_PER_S };
const RATE_RANGE: Kind = Kind::RateOrUnlimited { min: 1.0, max: 1e14 };
/// A cap becomes whole bytes/s.
const CAP: Kind = Kind::Rate { min: 8.0, max: 1e14 };
pub(super) const PROBABILITY: Kind = Kind::Probability { max: 1.0 };
const NOISE_TIME: Kind = Kind::TimeOrRtt { max: 10 * PS_PER_S };

/// The whole file.
pub(crate) static SCENARIO: Table = Table {
    name: "scenario",
    doc: "The whole file. Exactly one of `[link]` and `[[links]]` describes the network.",
    keys: &[
        key("title", Kind::Text, Rule("the file's name"), "One line that says what the run shows."),
        key("duration", Kind::Time { min: PS_PER_US, max: 30 * DAY }, Required, "Simulated time."),
        key(
            "warmup",
            RUN_TIME,
            Default("0 s"),
            "Statistics and rates cover `warmup` to `duration`; the default leaves the start of the flows in. Counters \
             cover the whole run.",
        ),
        key(
            "seed",
            Kind::Whole { min: 0, max: i64::MAX },
            Default("1"),
            "Seed of every random draw: same file, same seed, same result.",
        ),
        key(
            "sample",
            Kind::Time { min: PS_PER_US, max: DAY },
            Rule(
                "duration / 1000, at least 1 ms, at most 1 s; longer where all flows together would take more than 200,000 samples",
            ),
            "Distance of the samples in the time series.",
        ),
        key("packets", Kind::Table(&PACKETS), Default("{}"), "Sizes of the packets."),
        key(
            "link",
            Kind::Table(&LINK),
            Rule("`[[links]]` is required"),
            "One bottleneck between all senders and all receivers; with `[topology]`, the bottleneck in it.",
        ),
        key(
            "links",
            Kind::Tables(&LINKS),
            Rule("`[link]` is required"),
            "Links between named nodes. Packets take the path of least delay (then fewest links, then the links given \
             first).",
        ),
        key(
            "topology",
            Kind::Variants(&TOPOLOGY),
            Rule("`[link]` alone joins senders and receivers"),
            "A network made from `[link]`.",
        ),
        key("flows", Kind::Tables(&FLOW), Required, "Who sends."),
    ],
    exclusive: &[("link", "links")],
};

static PACKETS: Table = Table {
    name: "packets",
    doc: "Sizes on the wire, IP header included.",
    keys: &[
        key("data", Kind::Bytes { min: 64, max: 65_535 }, Default("1500 B"), "A full data packet."),
        key(
            "header",
            Kind::Bytes { min: 0, max: 65_534 },
            Rule("tcp: 52 B (IP 20, TCP 20, timestamps 12); datagram: 28 B (IP 20, UDP 8)"),
            "Headers within a data packet: goodput counts the rest.",
        ),
        key(
            "ack",
            Kind::Bytes { min: 1, max: 65_535 },
            Rule(
                "tcp: 52 B (a header and nothing else); datagram: 40 B (headers, sequence number, time stamp)",
            ),
            "An ACK.",
        ),
    ],
    exclusive: &[],
};

const NAME: Key = key(
    "name",
    Kind::Text,
    Rule("`link-1`, `link-2`, … in order"),
    "Name in the record; the other direction is `NAME-reverse`.",
);
pub(super) const LINK_RATE: Key = key(
    "rate",
    RATE_RANGE,
    Rule("exactly one of `rate` and `trace` is required"),
    "Capacity; \"unlimited\" makes it a pure delay.",
);
pub(super) const LINK_TRACE: Key = key(
    "trace",
    Kind::Trace,
    Rule("exactly one of `rate` and `trace` is required"),
    "Capacity over time as delivery opportunities of 1504 bytes. A path is relative to the scenario file, one given with \
     `--set` to the current directory. `synth:NAME` is generated from the run's seed, `synth:NAME:SEED` from that one, as long as the run.",
);
pub(super) const STEPS: Key = key(
    "steps",
    Kind::Tables(&STEP),
    Rule("the rate stays"),
    "Changes of the `rate`, in the order of their times. 1 BDP is that of the first rate.",
);
pub(super) const ONCE: Key = key(
    "once",
    Kind::Bool,
    Default("false"),
    "The link is dead after the trace's last opportunity; otherwise the trace repeats.",
);
const DELAY_RULE: &str = "exactly one of `delay`, `delay_trace` and `rtt` is required";
pub(super) const LINK_DELAY: Key =
    key("delay", DELAY, Rule(DELAY_RULE), "Propagation delay, one way.");
pub(super) const DELAY_TRACE: Key = key(
    "delay_trace",
    Kind::DelayTrace,
    Rule(DELAY_RULE),
    "Propagation delay over time, each way: a file with a line per change, its time and the one-way delay from then on, in ms \
     (`1500 42.75`). The first time is 0, the last delay stays. What counts is when a packet leaves; none overtakes another. Paths \
     as of `trace`. RTTs, BDPs and queueing delays are worked out with the least delay.",
);
const LINK_RTT: Key =
    key("rtt", DELAY, Rule(DELAY_RULE), "Propagation there and back: half of it each way.");
pub(super) const BUFFER: Key = key(
    "buffer",
    Kind::Buffer,
    Default("1 BDP"),
    "How much may wait, the packet in service apart. BDP = rate x base RTT, with the longest base RTT (propagation there and \
     back) of the flows that cross the link and the mean rate of a trace. A time limits the wait. Unlimited where the \
     rate is.",
);
pub(super) const QUEUE: Key = key(
    "queue",
    Kind::Variants(&QUEUES),
    Default("droptail"),
    "Which packet goes next, and which is dropped or marked.",
);
pub(super) const LOSS: Key = key(
    "loss",
    Kind::ProbabilityOr { max: 0.99, or: &LOSSES },
    Rule("none"),
    "Random loss, before the queue.",
);
const NOISE: Key = key(
    "noise",
    Kind::Variants(&JITTERS),
    Rule("none"),
    "RTT noise: random delay in the ACK direction.",
);
pub(super) const JITTER: Key = key(
    "jitter",
    Kind::Variants(&JITTERS),
    Rule("none"),
    "Random delay after the queue, in this direction.",
);
pub(super) const REORDER: Key = key(
    "reorder",
    Kind::Table(&REORDERING),
    Rule("none"),
    "Some packets held back so that others overtake them.",
);

/// Of these at most one may be given.
const DELAYS: [(&str, &str); 3] =
    [("delay", "rtt"), ("delay", "delay_trace"), ("rtt", "delay_trace")];

/// `[link]`.
pub(crate) static LINK: Table = Table {
    name: "link",
    doc: "The bottleneck, recorded as `bottleneck`; its ACK direction is `bottleneck-reverse`.",
    keys: &[
        LINK_RATE,
        STEPS,
        LINK_TRACE,
        ONCE,
        LINK_DELAY,
        DELAY_TRACE,
        LINK_RTT,
        BUFFER,
        QUEUE,
        LOSS,
        NOISE,
        JITTER,
        REORDER,
        key(
            "reverse",
            Kind::Table(&REVERSE),
            Rule("same delay, unlimited rate: never a bottleneck"),
            "The ACK direction.",
        ),
    ],
    exclusive: &[
        ("rate", "trace"),
        ("steps", "trace"),
        ("rate", "once"),
        DELAYS[0],
        DELAYS[1],
        DELAYS[2],
    ],
};

/// `[[links]]`.
pub(crate) static LINKS: Table = Table {
    name: "links",
    doc: "A link in both directions between two nodes.",
    keys: &[
        NAME,
        key("from", Kind::Text, Required, "Node at one end."),
        key("to", Kind::Text, Required, "Node at the other end."),
        LINK_RATE,
        STEPS,
        LINK_TRACE,
        ONCE,
        LINK_DELAY,
        DELAY_TRACE,
        LINK_RTT,
        BUFFER,
        QUEUE,
        LOSS,
        NOISE,
        JITTER,
        REORDER,
        key(
            "reverse",
            Kind::Table(&REVERSE),
            Rule("same rate, delay, buffer and queue, no impairments"),
            "The direction from `to` to `from`; what it does not say is as in the other direction, impairments apart.",
        ),
    ],
    exclusive: &[
        ("rate", "trace"),
        ("steps", "trace"),
        ("rate", "once"),
        DELAYS[0],
        DELAYS[1],
        DELAYS[2],
    ],
};

/// `reverse`.
pub(crate) static REVERSE: Table = Table {
    name: "reverse",
    doc: "The other direction of a link.",
    keys: &[
        key("rate", RATE_RANGE, Rule("see `reverse`"), "Capacity."),
        STEPS,
        key("trace", Kind::Trace, Rule("see `reverse`"), "Capacity over time, as in a link."),
        ONCE,
        key("delay", DELAY, Rule("that of the other direction"), "Propagation delay."),
        key(
            "delay_trace",
            Kind::DelayTrace,
            Rule("that of the other direction"),
            "Propagation delay over time, as in a link.",
        ),
        key(
            "buffer",
            Kind::Buffer,
            Rule("1 BDP where this table gives a rate or a trace, otherwise see `reverse`"),
            "How much may wait.",
        ),
        key(
            "queue",
            Kind::Variants(&QUEUES),
            Rule("droptail where this table gives a rate or a trace, otherwise see `reverse`"),
            "Which packet goes next, and which is dropped or marked.",
        ),
        LOSS,
        JITTER,
        REORDER,
    ],
    exclusive: &[("rate", "trace"), ("steps", "trace"), ("rate", "once"), DELAYS[1]],
};

static STEP: Table = Table {
    name: "steps",
    doc: "A change of a link's rate.",
    keys: &[
        key("at", Kind::Time { min: PS_PER_US, max: 30 * DAY }, Required, "When."),
        key("rate", Kind::Rate { min: 1.0, max: 1e14 }, Required, "Capacity from then on."),
    ],
    exclusive: &[],
};

pub(super) static EMPTY: Table = Table { name: "", doc: "", keys: &[], exclusive: &[] };
static JITTERS: Variants = Variants {
    name: "delay model",
    list: &[Variant { name: "exponential", table: &EXPONENTIAL }],
    unavailable: &[],
    bare: false,
};
static EXPONENTIAL: Table = Table {
    name: "noise and jitter: exponential",
    doc: "Exponential delay per packet, drawn again while above `max`. `% rtt` is of the longest base RTT of the flows that \
          cross the link.",
    keys: &[
        key("mean", NOISE_TIME, Required, "Mean before the bound."),
        key(
            "max",
            Kind::TimeOrRtt { max: 100 * PS_PER_S },
            Rule("10 times the mean"),
            "Upper bound.",
        ),
        key(
            "reorder",
            Kind::Bool,
            Default("false"),
            "Packets may overtake each other; otherwise each waits for the one before.",
        ),
    ],
    exclusive: &[],
};
static REORDERING: Table = Table {
    name: "reorder",
    doc: "Hold some packets back.",
    keys: &[
        key("probability", PROBABILITY, Required, "Probability that a packet is held back."),
        key("extra", Kind::Time { min: PS_PER_NS, max: 100 * PS_PER_S }, Required, "For how long."),
    ],
    exclusive: &[],
};

static TOPOLOGY: Variants = Variants {
    name: "topology",
    list: &[
        Variant { name: "dumbbell", table: &DUMBBELL },
        Variant { name: "parking-lot", table: &PARKING_LOT },
    ],
    unavailable: &[],
    bare: false,
};
static DUMBBELL: Table = Table {
    name: "topology: dumbbell",
    doc: "Nodes `sender-1` … and `receiver-1` …, each on its own access link to the node `left` or `right`; `[link]` joins \
          those. Flows without `from` and `to` take the pairs in turn.",
    keys: &[
        key(
            "pairs",
            Kind::Whole { min: 1, max: 1000 },
            Rule("one per flow, at most 10"),
            "Hosts on each side.",
        ),
        key(
            "access_rate",
            RATE_RANGE,
            Rule("10 times the rate of `[link]`; unlimited beside a trace"),
            "Rate of every access link, each way.",
        ),
        key(
            "access_delay",
            Kind::TimeOrSpread { min: 0, max: 1000 * PS_PER_S, or: &ACCESS_DELAY },
            Default("0 s"),
            "One-way delay of every access link, or those of the first and of the last pair.",
        ),
        key(
            "access_buffer",
            Kind::Buffer,
            Default("unlimited"),
            "Buffer of every access link, each way.",
        ),
    ],
    exclusive: &[],
};
static ACCESS_DELAY: Table = Table {
    name: "access_delay",
    doc: "Pairs of different RTT: the delay changes linearly from the first to the last. A single pair has `from`.",
    keys: &[
        key("from", DELAY, Required, "One-way delay of both access links of the first pair."),
        key("to", DELAY, Required, "One-way delay of both access links of the last pair."),
    ],
    exclusive: &[],
};
static PARKING_LOT: Table = Table {
    name: "topology: parking-lot",
    doc: "Nodes `r0` to `rN` in a line, each joined to the next by a copy of `[link]`, recorded as `hop-1` to `hop-N`. Flows \
          without `from` and `to` go from end to end.",
    keys: &[key("hops", Kind::Whole { min: 1, max: 1000 }, Required, "Links in the line.")],
    exclusive: &[],
};

/// `[[flows]]`.
pub(crate) static FLOW: Table = Table {
    name: "flows",
    doc: "A group of equal flows.",
    keys: &[
        key(
            "controller",
            Kind::Controller,
            Required,
            "Congestion controller, with its profile and parameters.",
        ),
        key("count", Kind::Whole { min: 1, max: MAX_FLOWS }, Default("1"), "How many of them."),
        key(
            "name",
            Kind::Text,
            Rule("the controller's name"),
            "Name in the record; numbered where several flows share it.",
        ),
        key("start", RUN_TIME, Default("0 s"), "When the flow begins."),
        key(
            "start_spread",
            RUN_TIME,
            Default("0 s"),
            "Each flow begins at `start` plus a random time, uniform up to this.",
        ),
        key(
            "stop",
            RUN_TIME,
            Rule("the end of the run"),
            "When the sender stops sending new data.",
        ),
        key(
            "size",
            Kind::Bytes { min: 1, max: 1_000_000_000_000_000 },
            Rule("endless"),
            "Payload to transfer.",
        ),
        key("cap", CAP, Rule("none"), "Ceiling of the sending rate, on the wire."),
        key(
            "rtt",
            DELAY,
            Rule("that of the links"),
            "Base RTT of this flow. What the links lack is added on the sender's side: half before the first link, half after the ACKs' last.",
        ),
        key(
            "ecn",
            Kind::Variants(&ECNS),
            Rule("what the controller reacts to; off for one that does not react to marks"),
            "ECN field of the data packets: off, ect0, or ect1 for scalable controllers.",
        ),
        key(
            "class",
            Kind::Whole { min: 0, max: 65_535 },
            Default("0"),
            "Class of the flow, for the queues `htb` and `cake`.",
        ),
        key("from", Kind::Text, Rule("required with `[[links]]`"), "Node of the sender."),
        key("to", Kind::Text, Rule("required with `[[links]]`"), "Node of the receiver."),
        key("stack", Kind::Variants(&STACKS), Default("tcp"), "The endpoint."),
    ],
    exclusive: &[],
};
static ECNS: Variants = Variants {
    name: "ecn",
    list: &[
        Variant { name: "off", table: &EMPTY },
        Variant { name: "ect0", table: &EMPTY },
        Variant { name: "ect1", table: &EMPTY },
    ],
    unavailable: &[],
    bare: true,
};
static STACKS: Variants = Variants {
    name: "stack",
    list: &[Variant { name: "tcp", table: &TCP }, Variant { name: "datagram", table: &DATAGRAM }],
    unavailable: &[("quic", "is not simulated, and live runs do not have it yet")],
    bare: true,
};
static TCP: Table = Table {
    name: "stack: tcp",
    doc: "Reliable byte stream: SACK, fast retransmit, retransmission timeout.",
    keys: &[
        key(
            "delayed_ack",
            Kind::TimeOrFalse { min: PS_PER_US, max: 500 * PS_PER_MS },
            Default("false"),
            "Acknowledge every second packet, and a single one after this time (RFC 5681 allows 500 ms); `false`: every \
             packet. As on Linux, every packet also while the offered window grows, which is most of slow start.",
        ),
        key(
            "min_rto",
            Kind::Time { min: PS_PER_MS, max: 60 * PS_PER_S },
            Default("200 ms"),
            "Floor of the retransmission timeout (RFC 6298: 1 s; Linux: 200 ms).",
        ),
        key(
            "initial_window",
            Kind::Packets { min: 1, max: 10_000 },
            Default("10 packets"),
            "Initial window (RFC 6928).",
        ),
        key("handshake", Kind::Bool, Default("true"), "Three-way handshake before the first data."),
        key(
            "prr",
            Kind::Bool,
            Default("true"),
            "Proportional rate reduction in recovery (RFC 9937).",
        ),
    ],
    exclusive: &[],
};
static DATAGRAM: Table = Table {
    name: "stack: datagram",
    doc: "Every packet acknowledged, losses counted, nothing retransmitted.",
    keys: &[
        key(
            "blocking",
            Kind::Bool,
            Default("false"),
            "The sender sleeps each pacing gap and looks at no ACK until the window is full, then handles one per turn.",
        ),
        key(
            "overhead",
            Kind::Time { min: 0, max: PS_PER_S },
            Default("0 s"),
            "What the host adds to each packet it receives and to each pacing sleep.",
        ),
        key(
            "clock",
            Kind::Time { min: PS_PER_NS, max: PS_PER_S },
            Rule("exact"),
            "Granularity of the host's time stamps.",
        ),
        key(
            "tell_losses",
            Kind::Variants(&LOSS_NOTICES),
            Default("detected"),
            "How the sender learns of a loss: from the ACK of a later packet, or at the instant of the drop, packet by packet \
             (`drop`), as in the simulations of the MPC papers. `drop` needs a path on which the flow's first link alone can \
             drop, by `droptail` or `loss`.",
        ),
    ],
    exclusive: &[],
};
static LOSS_NOTICES: Variants = Variants {
    name: "notice",
    list: &[Variant { name: "detected", table: &EMPTY }, Variant { name: "drop", table: &EMPTY }],
    unavailable: &[],
    bare: true,
};
