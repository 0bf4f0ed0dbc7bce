//! `queue`: which packet goes next, which is dropped, which is marked. The keys of every kind, and from them to the link crate's
//! types once the rate is known.

use paceline_net::queue::{
    CakeSpec, ClassSpec, CodelSpec, DualPi2Spec, FqCodelSpec, FqSpec, HtbSpec, PieSpec, QueueSpec,
    RedSpec, TokenBucketSpec,
};
use paceline_net::{PS_PER_S, PS_PER_US, Picos};

use super::error::ScenarioError;
use super::keys::Absent::{Default, Required, Rule};
use super::keys::{EMPTY, Key, Kind, Table, Variant, Variants, key};
use super::reader::Reader;

const TIME: Kind = Kind::Time { min: PS_PER_US, max: 1000 * PS_PER_S };
const SOME_TIME: Kind = Kind::Time { min: 0, max: 1000 * PS_PER_S };
const PACKETS: Kind = Kind::Packets { min: 0, max: 1_000_000_000 };
const SIZE: Kind = Kind::Bytes { min: 64, max: 1_000_000_000 };
const RATE: Kind = Kind::Rate { min: 1.0, max: 1e14 };
const GAIN: Kind = Kind::Number { min: 0.0, max: 1000.0 };
const ECN: Key =
    key("ecn", Kind::Bool, Default("false"), "Mark capable packets instead of dropping them.");

/// The queues that do not shape, and `more`.
macro_rules! queues {
    ($($more:expr),*) => {
        Variants {
            name: "queue",
            list: &[
                Variant { name: "droptail", table: &EMPTY },
                Variant { name: "drophead", table: &EMPTY },
                Variant { name: "step", table: &STEP },
                Variant { name: "red", table: &RED },
                Variant { name: "codel", table: &CODEL },
                Variant { name: "pie", table: &PIE },
                Variant { name: "fq", table: &FQ },
                Variant { name: "fq_codel", table: &FQ_CODEL },
                Variant { name: "cake", table: &CAKE },
                Variant { name: "dualpi2", table: &DUALPI2 },
                $($more),*
            ],
            unavailable: &[],
            bare: true,
        }
    };
}

/// Every queue.
pub(crate) static QUEUES: Variants =
    queues!(Variant { name: "tbf", table: &TBF }, Variant { name: "htb", table: &HTB });
/// Those that can stand behind a shaper.
static CHILDREN: Variants = queues!();
const CHILD: Key = key(
    "queue",
    Kind::Variants(&CHILDREN),
    Default("droptail"),
    "The queue in which packets wait for their turn.",
);

static STEP: Table = Table {
    name: "queue: step",
    doc: "Drop-tail that marks what finds a long queue: the switch of DCTCP (RFC 8257).",
    keys: &[key(
        "threshold",
        PACKETS,
        Required,
        "K: a capable packet that finds more than so many waiting is marked. RFC 8257 suggests more than a seventh of the BDP.",
    )],
    exclusive: &[],
};
static RED: Table = Table {
    name: "queue: red",
    doc: "Random early detection (Floyd, Jacobson 1993), gentle and adaptive on request.",
    keys: &[
        key(
            "min",
            PACKETS,
            Rule("half of what 5 ms of the rate are, at least 5 packets"),
            "min_th: average below which nothing happens.",
        ),
        key(
            "max",
            PACKETS,
            Rule("three times `min`"),
            "max_th: average at which the probability is `max_probability`.",
        ),
        key("max_probability", Kind::Probability { max: 1.0 }, Default("0.1"), "max_p."),
        key(
            "weight",
            Kind::Probability { max: 1.0 },
            Rule("1 - exp(-1 / packets per second)"),
            "w_q: weight of the queue of the moment in the average.",
        ),
        key(
            "gentle",
            Kind::Bool,
            Default("true"),
            "From `max` to twice that the probability goes on to 1, instead of jumping there.",
        ),
        key(
            "adaptive",
            Kind::Bool,
            Default("false"),
            "Steer max_p so that the average stays between the thresholds.",
        ),
        ECN,
    ],
    exclusive: &[],
};
const TARGET: Key =
    key("target", TIME, Default("5 ms"), "Wait that is acceptable as a standing queue.");
const INTERVAL: Key = key("interval", TIME, Default("100 ms"), "A worst-case RTT.");
static CODEL: Table = Table {
    name: "queue: codel",
    doc: "Controlled delay (RFC 8289).",
    keys: &[TARGET, INTERVAL, ECN],
    exclusive: &[],
};
static PIE: Table = Table {
    name: "queue: pie",
    doc: "Proportional integral controller enhanced (RFC 8033).",
    keys: &[
        key("target", TIME, Default("15 ms"), "QDELAY_REF: delay to hold."),
        key("update", TIME, Default("15 ms"), "T_UPDATE: time between updates of the probability."),
        key("alpha", GAIN, Default("0.125"), "Weight of the distance from the target, Hz."),
        key("beta", GAIN, Default("1.25"), "Weight of the change since the last update, Hz."),
        key(
            "max_burst",
            SOME_TIME,
            Default("150 ms"),
            "MAX_BURST: how long a burst may last before anything is dropped.",
        ),
        ECN,
    ],
    exclusive: &[],
};
static FQ: Table = Table {
    name: "queue: fq",
    doc: "Fair queueing with pacing per flow, as Linux's fq.",
    keys: &[
        key("quantum", SIZE, Default("3028 B"), "What a flow may send per turn."),
        key(
            "initial_quantum",
            SIZE,
            Default("15140 B"),
            "What a new flow may send in its first turn.",
        ),
        key(
            "flow_limit",
            Kind::Packets { min: 1, max: 1_000_000_000 },
            Default("100 packets"),
            "Packets of one flow that may wait.",
        ),
        key("flow_rate", RATE, Rule("as fast as the link"), "Largest rate of a flow."),
    ],
    exclusive: &[],
};
static FQ_CODEL: Table = Table {
    name: "queue: fq_codel",
    doc: "Fair queueing with controlled delay (RFC 8290).",
    keys: &[
        key(
            "flows",
            Kind::Whole { min: 1, max: 65_536 },
            Default("1024"),
            "Queues that flows are hashed into.",
        ),
        key("quantum", SIZE, Default("1514 B"), "What a flow may send per turn."),
        TARGET,
        INTERVAL,
        ECN,
    ],
    exclusive: &[],
};
static CAKE: Table = Table {
    name: "queue: cake",
    doc: "CAKE's essentials: tins, fairness to hosts and flows, COBALT. Marks capable packets. For its shaper put a `tbf` in front.",
    keys: &[
        key(
            "tins",
            Kind::Whole { min: 1, max: 8 },
            Default("1"),
            "Tins, by the flows' `class`; each is assured half of what the one before has.",
        ),
        key(
            "host_isolation",
            Kind::Bool,
            Default("true"),
            "Flows of a host with many share what those of a host with few have.",
        ),
        TARGET,
        INTERVAL,
    ],
    exclusive: &[],
};
static DUALPI2: Table = Table {
    name: "queue: dualpi2",
    doc: "A shallow queue for scalable senders beside one for the others, coupled (RFC 9332). Marks capable packets.",
    keys: &[
        key("target", TIME, Default("15 ms"), "Delay of the classic queue to hold."),
        key(
            "rtt_max",
            TIME,
            Default("100 ms"),
            "Largest RTT to be stable for; the gains follow from it.",
        ),
        key("update", TIME, Default("15 ms"), "Tupdate: time between updates of the probability."),
        key(
            "alpha",
            GAIN,
            Rule("0.1 update / rtt_max^2"),
            "Weight of the distance from the target, Hz.",
        ),
        key("beta", GAIN, Rule("0.3 / rtt_max"), "Weight of the change since the last update, Hz."),
        key(
            "coupling",
            Kind::Number { min: 1.0, max: 16.0 },
            Default("2"),
            "k: coupling of the two queues' probabilities.",
        ),
        key(
            "ramp_min",
            SOME_TIME,
            Default("800 us"),
            "Delay of the scalable queue from which on it is marked by itself.",
        ),
        key(
            "ramp_range",
            SOME_TIME,
            Default("400 us"),
            "How far above that everything is marked; 0 is a step.",
        ),
        key(
            "classic_share",
            Kind::Probability { max: 0.99 },
            Default("0.1"),
            "Share of the link that the classic queue has when both have something to send.",
        ),
    ],
    exclusive: &[],
};
const BURST: Key = key(
    "burst",
    SIZE,
    Rule("1 ms of the rate, at least two packets of 1514 bytes"),
    "What may leave at once after a pause.",
);
static TBF: Table = Table {
    name: "queue: tbf",
    doc: "Token bucket in front of another queue, as Linux's tbf: a rate on average, bursts as fast as the link.",
    keys: &[key("rate", RATE, Required, "Rate of the tokens."), BURST, CHILD],
    exclusive: &[],
};
static HTB: Table = Table {
    name: "queue: htb",
    doc: "Classes with rates of their own that lend each other what they do not use, after Linux's htb.",
    keys: &[
        key("rate", RATE, Required, "Rate of all classes together."),
        BURST,
        key(
            "classes",
            Kind::Tables(&CLASS),
            Required,
            "The classes, by the flows' `class`: the first is class 0. The last takes what has no class of its own.",
        ),
    ],
    exclusive: &[],
};
static CLASS: Table = Table {
    name: "queue: htb: classes",
    doc: "A class. The link's `buffer` holds for each.",
    keys: &[
        key("rate", RATE, Required, "Rate it has for itself."),
        key(
            "ceil",
            RATE,
            Rule("the `rate` of all classes together"),
            "Rate it may reach by borrowing.",
        ),
        CHILD,
    ],
    exclusive: &[],
};

/// The queue that `reader`'s table describes.
pub(crate) fn read(reader: &Reader<'_>) -> Result<QueueSpec, ScenarioError> {
    let bare = reader.nothing_at("queue");
    let Some((kind, table)) = reader.variant("queue", &bare)? else {
        return Ok(QueueSpec::DropTail);
    };
    let spec = match kind {
        "tbf" => {
            let rate_bps =
                rate(&table, "rate")?.ok_or_else(|| table.error("rate", "missing", ""))?;
            let burst_bytes = burst(&table, rate_bps)?;
            QueueSpec::TokenBucket(TokenBucketSpec {
                rate_bps,
                burst_bytes,
                child: Box::new(read(&table)?),
            })
        }
        "htb" => {
            let rate_bps =
                rate(&table, "rate")?.ok_or_else(|| table.error("rate", "missing", ""))?;
            let classes = table.tables("classes")?;
            let classes = classes.iter().map(|class| read_class(class, rate_bps));
            QueueSpec::Htb(HtbSpec {
                rate_bps,
                burst_bytes: burst(&table, rate_bps)?,
                classes: classes.collect::<Result<_, _>>()?,
            })
        }
        _ => plain(kind, &table)?,
    };
    Ok(spec)
}

fn read_class(class: &Reader<'_>, whole_bps: f64) -> Result<ClassSpec, ScenarioError> {
    let rate_bps = rate(class, "rate")?.ok_or_else(|| class.error("rate", "missing", ""))?;
    let ceil_bps = rate(class, "ceil")?.unwrap_or(whole_bps.max(rate_bps));
    if ceil_bps < rate_bps {
        return Err(class.error("ceil", "below the class's own `rate`", "allowed: `rate` or more"));
    }
    Ok(ClassSpec { rate_bps, ceil_bps, child: read(class)? })
}

/// A queue that does not shape.
fn plain(kind: &str, table: &Reader<'_>) -> Result<QueueSpec, ScenarioError> {
    Ok(match kind {
        "drophead" => QueueSpec::DropHead,
        "step" => QueueSpec::Step { packets: table.packets("threshold")? },
        "red" => red(table)?,
        "codel" => QueueSpec::Codel(codel(table, table.flag("ecn")?)?),
        "pie" => QueueSpec::Pie(PieSpec {
            target_ps: table.time_always("target")?,
            update_ps: table.time_always("update")?,
            alpha_hz: number(table, "alpha")?,
            beta_hz: number(table, "beta")?,
            max_burst_ps: table.time_always("max_burst")?,
            ecn: table.flag("ecn")?,
        }),
        "fq" => QueueSpec::Fq(FqSpec {
            quantum_bytes: bytes(table, "quantum")?,
            initial_quantum_bytes: bytes(table, "initial_quantum")?,
            flow_packets: table.packets("flow_limit")?,
            flow_rate_bps: rate(table, "flow_rate")?,
            ..FqSpec::default()
        }),
        "fq_codel" => QueueSpec::FqCodel(FqCodelSpec {
            flows: whole(table, "flows")? as u32,
            quantum_bytes: bytes(table, "quantum")?,
            codel: codel(table, table.flag("ecn")?)?,
        }),
        "cake" => QueueSpec::Cake(CakeSpec {
            tins: whole(table, "tins")? as u16,
            host_isolation: table.flag("host_isolation")?,
            target_ps: table.time_always("target")?,
            interval_ps: table.time_always("interval")?,
        }),
        "dualpi2" => QueueSpec::DualPi2(DualPi2Spec {
            target_ps: table.time_always("target")?,
            rtt_max_ps: table.time_always("rtt_max")?,
            update_ps: table.time_always("update")?,
            alpha_hz: table.number("alpha")?,
            beta_hz: table.number("beta")?,
            coupling: number(table, "coupling")?,
            ramp_min_ps: table.time_always("ramp_min")?,
            ramp_range_ps: table.time_always("ramp_range")?,
            classic_share: table.probability("classic_share")?,
        }),
        _ => QueueSpec::DropTail,
    })
}

fn red(table: &Reader<'_>) -> Result<QueueSpec, ScenarioError> {
    let packets = |key| table.has(key).then(|| table.packets(key).map(|n| n as f64)).transpose();
    let (min_packets, max_packets) = (packets("min")?, packets("max")?);
    if let (Some(min), Some(max)) = (min_packets, max_packets)
        && max < min
    {
        return Err(table.error("max", "below `min`", "allowed: `min` or more"));
    }
    let positive = |key| {
        let value = table.probability(key)?;
        let hint = "allowed: above 0, at most 1";
        if value > 0.0 { Ok(value) } else { Err(table.error(key, "out of range", hint)) }
    };
    Ok(QueueSpec::Red(RedSpec {
        min_packets,
        max_packets,
        max_probability: positive("max_probability")?,
        weight: table.has("weight").then(|| positive("weight")).transpose()?,
        gentle: table.flag("gentle")?,
        adaptive: table.flag("adaptive")?,
        ecn: table.flag("ecn")?,
    }))
}

fn codel(table: &Reader<'_>, ecn: bool) -> Result<CodelSpec, ScenarioError> {
    Ok(CodelSpec {
        target_ps: table.time_always("target")?,
        interval_ps: table.time_always("interval")?,
        ecn,
    })
}

/// Two packets, or what the rate serves in a millisecond.
fn burst(table: &Reader<'_>, rate_bps: f64) -> Result<u64, ScenarioError> {
    let least = 2 * 1514;
    Ok(table.bytes("burst")?.unwrap_or(((rate_bps / 8.0 / 1000.0) as u64).max(least)))
}

fn rate(table: &Reader<'_>, key: &str) -> Result<Option<f64>, ScenarioError> {
    Ok(table.rate(key)?.flatten())
}

fn bytes(table: &Reader<'_>, key: &str) -> Result<u32, ScenarioError> {
    let bytes = table.bytes(key)?.unwrap_or_default();
    Ok(u32::try_from(bytes).unwrap_or(u32::MAX))
}

fn whole(table: &Reader<'_>, key: &str) -> Result<u64, ScenarioError> {
    table.whole(key)?.ok_or_else(|| table.error(key, "missing", ""))
}

fn number(table: &Reader<'_>, key: &str) -> Result<f64, ScenarioError> {
    table.number(key)?.ok_or_else(|| table.error(key, "missing", ""))
}

/// What a limit in time means to a queue that counts bytes.
pub(crate) fn bytes_of_wait(wait: Picos, rate_bps: f64) -> u64 {
    (rate_bps / 8.0 * (wait as f64 / PS_PER_S as f64)) as u64
}
