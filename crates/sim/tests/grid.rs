//! Many small runs and what came out of each, kept in `grid.txt`: no change of a result goes unseen.
//!
//! Every condition is a table with a line per controller, in integers one can compare at a glance. At the end of a line stands
//! a digest of the whole outcome: every counter, statistic and sample, floats by their bits. It is the same on every machine
//! and in every build profile.
//!
//! After a change that is meant to change results: `PACELINE_BLESS=1 cargo test -p paceline-sim --test grid`, and say in the
//! commit why each line that differs may. A new controller adds a line to every condition. Where two branches
//! change `grid.txt`, take either side and write it anew.

mod common;

use std::fmt::Write;
use std::path::Path;

use common::*;
use paceline_cc::registry::{self, Spec};
use paceline_net::queue::{CodelSpec, Ecn, FqCodelSpec, QueueSpec, Tag};
use paceline_net::{Buffer, Capacity, Jitter, LinkSpec, LossModel, PS_PER_US, Reorder, Trace};
use paceline_sim::{
    Column, DatagramOptions, FlowOutcome, FlowPlan, LinkOutcome, LossNotice, Outcome, Plan, Series,
    Stack, Stats, TcpOptions,
};

/// What every controller meets over TCP.
struct Condition {
    bps: f64,
    /// Base RTT of each flow.
    rtts_ms: &'static [f64],
    buffer: Room,
    /// Probability that a packet is lost.
    loss: f64,
    queue: Queue,
    seconds: f64,
}

enum Room {
    /// In bandwidth-delay products of the first flow.
    Bdp(f64),
    Packets(u64),
}

/// All but drop-tail mark the packets of all flows, which are ECT(0).
enum Queue {
    DropTail,
    FqCodel,
    /// Marks above so many packets.
    Step(u64),
}

const CONDITIONS: [Condition; 12] = [
    plain(10e6, &[20.0], Room::Bdp(1.0), 10.0),
    plain(100e6, &[30.0], Room::Bdp(0.2), 5.0),
    plain(2e6, &[200.0], Room::Bdp(3.0), 30.0),
    Condition { loss: 0.01, ..plain(20e6, &[40.0], Room::Bdp(1.0), 10.0) },
    plain(30e6, &[20.0; 4], Room::Bdp(1.0), 10.0),
    plain(1e9, &[2.0; 2], Room::Bdp(0.5), 2.0),
    Condition { loss: 0.001, ..plain(50e6, &[50.0], Room::Bdp(1.0), 10.0) },
    plain(50e6, &[40.0], Room::Packets(10), 10.0),
    plain(20e6, &[20.0, 80.0], Room::Bdp(8.0), 30.0),
    plain(20e6, &[600.0], Room::Bdp(1.0), 60.0),
    Condition { queue: Queue::FqCodel, ..plain(20e6, &[40.0; 2], Room::Packets(1000), 10.0) },
    Condition { queue: Queue::Step(65), ..plain(10e9, &[0.05; 4], Room::Packets(500), 0.1) },
];

/// Without loss, over a drop-tail queue.
const fn plain(bps: f64, rtts_ms: &'static [f64], buffer: Room, seconds: f64) -> Condition {
    Condition { bps, rtts_ms, buffer, loss: 0.0, queue: Queue::DropTail, seconds }
}

/// A name and its plan.
type Special = (&'static str, fn() -> Plan);

/// What a part of the simulator that the conditions leave out does, with one controller or a mix.
const SPECIAL: [Special; 11] = [
    ("cubic with delayed ACKs", || acknowledged_late("cubic")),
    ("bbr1 with delayed ACKs", || acknowledged_late("bbr1")),
    ("reno behind reordering", || impaired("reno", true)),
    ("cubic behind jitter", || impaired("cubic", false)),
    ("aimd over datagrams", || datagrams("aimd", DatagramOptions::default())),
    ("mpc-2020 over datagrams", || datagrams("mpc-2020", DatagramOptions::default())),
    ("latte over a host that sleeps", || datagrams("latte", SLEEPER)),
    ("latte on a trace", || on_a_trace("latte")),
    ("cubic on a trace", || on_a_trace("cubic")),
    ("dumbbell of 20 mixed flows", dumbbell),
    ("short transfers beside cubic", short_transfers),
];

const SLEEPER: DatagramOptions = DatagramOptions {
    blocking: true,
    overhead_ps: 60 * PS_PER_US,
    clock_ps: MS,
    tell_losses: LossNotice::Detected,
};

#[test]
fn every_outcome_is_the_one_on_file() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/grid.txt");
    let grid = grid();
    if std::env::var_os("PACELINE_BLESS").is_some() {
        std::fs::write(&path, &grid).expect("the folder of the tests can be written");
    }
    let on_file = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(
        grid == on_file,
        "results differ from crates/sim/tests/grid.txt:\n{}\n\
         A change for speed must not do this: find out what it changed (`cargo test -p paceline-sim --lib reference` names \
         the first difference to the plain event loop, if the engine is at fault). If the change is meant to alter \
         results, or a controller is new, write the file anew with\n\n    \
         PACELINE_BLESS=1 cargo test -p paceline-sim --test grid\n\n\
         read its diff, and say in the commit why each line may differ.\n",
        differences(&on_file, &grid)
    );
}

const HEAD: &str = "\
# Results of the runs of grid.rs. Written by PACELINE_BLESS=1 cargo test -p paceline-sim --test grid
# util: of the bottleneck. p50, p99: wait in its queue and transmission. lost, resent, marked: data packets of all flows, from
# the start. jain: Jain's index of the throughputs. digest: of everything, every sample included.
";

fn grid() -> String {
    let mut grid = HEAD.to_string();
    for condition in &CONDITIONS {
        grid.push_str(&heading(&condition.title()));
        for spec in registry::all() {
            grid.push_str(&line(spec.name, &run_checked(condition.plan(spec))));
        }
    }
    grid.push_str(&heading("what the conditions leave out"));
    for (name, plan) in SPECIAL {
        grid.push_str(&line(name, &run_checked(plan())));
    }
    grid
}

// ------------------------------------------------------------------------------------------------------------------ runs

impl Condition {
    /// Begins with a letter, so that `git diff` names the condition at the head of a hunk.
    fn title(&self) -> String {
        let rate = match self.bps / 1e6 {
            mbps if mbps < 1000.0 => format!("{mbps} Mbit/s"),
            mbps => format!("{} Gbit/s", mbps / 1e3),
        };
        let rtts: Vec<_> = self.distinct_rtts_ms().iter().map(f64::to_string).collect();
        let buffer = match self.buffer {
            Room::Bdp(share) => format!("{share} BDP"),
            Room::Packets(packets) => format!("{packets} packets"),
        };
        let loss = match self.loss {
            0.0 => "no loss".to_string(),
            share => format!("{} % loss", share * 100.0),
        };
        let queue = match self.queue {
            Queue::DropTail => String::new(),
            Queue::FqCodel => ", FQ-CoDel with ECN".to_string(),
            Queue::Step(packets) => format!(", marks above {packets} packets"),
        };
        let flows = self.rtts_ms.len();
        format!(
            "rate {rate}, RTT {} ms, buffer {buffer}, {loss}{queue}, flows {flows}, {} s",
            rtts.join(" and "),
            self.seconds
        )
    }

    fn distinct_rtts_ms(&self) -> Vec<f64> {
        let mut rtts = self.rtts_ms.to_vec();
        rtts.dedup();
        rtts
    }

    /// Link 0 is the bottleneck; each of the others is the way back of the flows of one RTT.
    fn plan(&self, spec: &'static Spec) -> Plan {
        let there_ms = self.rtts_ms[0] / 2.0;
        let bdp_packets = self.bps * self.rtts_ms[0] / 1e3 / 8.0 / 1500.0;
        let packets = match self.buffer {
            Room::Bdp(share) => (bdp_packets * share) as u64,
            Room::Packets(packets) => packets,
        };
        let marking = CodelSpec { ecn: true, ..CodelSpec::default() };
        let (queue, ecn) = match self.queue {
            Queue::DropTail => (QueueSpec::DropTail, Ecn::NotCapable),
            Queue::FqCodel => {
                let spec = FqCodelSpec { codel: marking, ..FqCodelSpec::default() };
                (QueueSpec::FqCodel(spec), Ecn::Capable)
            }
            Queue::Step(packets) => (QueueSpec::Step { packets }, Ecn::Capable),
        };
        let loss = (self.loss > 0.0).then_some(LossModel::Bernoulli(self.loss));
        let rtts = self.distinct_rtts_ms();
        let mut links = vec![LinkSpec { loss, queue, ..bottleneck(self.bps, there_ms, packets) }];
        links.extend(rtts.iter().map(|rtt_ms| delay(rtt_ms - there_ms)));
        let flows = self.rtts_ms.iter().zip(0..).map(|(rtt_ms, number)| {
            let back = 1 + rtts.iter().position(|r| r == rtt_ms).expect("one of them") as u32;
            // A run too short for whole seconds is one of short RTTs.
            let start_ps = number * if self.seconds < 1.0 { MS } else { 137 * MS };
            let tag = Tag { ecn, ..Tag::default() };
            FlowPlan { start_ps, tag, ..flow(spec.name, &[0], &[back]) }
        });
        plan(links, flows.collect(), self.seconds, self.seconds / 5.0)
    }
}

fn acknowledged_late(name: &str) -> Plan {
    let options = TcpOptions { delayed_ack_ps: Some(40 * MS), ..TcpOptions::default() };
    let flow = FlowPlan { stack: Stack::Tcp(options), ..flow(name, &[0], &[1]) };
    plan(vec![bottleneck(10e6, 10.0, 20), delay(10.0)], vec![flow], 10.0, 2.0)
}

fn impaired(name: &str, overtaking: bool) -> Plan {
    let jitter = Jitter { mean_ps: MS, max_ps: 5 * MS, reorder: overtaking };
    let reorder = Reorder { probability: 0.01, extra_ps: 4 * MS };
    let noisy = LinkSpec {
        jitter: Some(jitter),
        reorder: overtaking.then_some(reorder),
        ..bottleneck(10e6, 15.0, 40)
    };
    plan(vec![noisy, delay(15.0)], vec![flow(name, &[0], &[1])], 10.0, 2.0)
}

fn datagrams(name: &str, options: DatagramOptions) -> Plan {
    let flow =
        |start_ps| FlowPlan { stack: Stack::Datagram(options), start_ps, ..flow(name, &[0], &[1]) };
    plan(vec![bottleneck(12e6, 20.0, 80), delay(20.0)], vec![flow(0), flow(333 * MS)], 10.0, 2.0)
}

/// Opportunities that come in bursts, and a second of silence in ten.
fn on_a_trace(name: &str) -> Plan {
    let times =
        (1..9000).filter(|ms| ms * ms / 97 % 3 != 1).flat_map(|ms| vec![ms; ms as usize % 2 + 1]);
    let trace = Trace::from_opportunities(times.chain([10_000]).collect()).expect("ascending");
    let link = LinkSpec {
        delay_ps: 20 * MS,
        buffer: Buffer { packets: Some(200), ..Buffer::default() },
        ..traced(trace)
    };
    plan(vec![link, delay(20.0)], vec![flow(name, &[0], &[1])], 25.0, 2.0)
}

/// Pairs of hosts with access links of a rate that are in no record, and a slow way back for all.
fn dumbbell() -> Plan {
    let rate = |bps, ms| LinkSpec { capacity: Capacity::Constant(bps), ..delay(ms) };
    let mut links = vec![bottleneck(50e6, 10.0, 80), rate(5e6, 10.0)];
    links.extend((0..5).flat_map(|pair| [rate(1e9, 1.0 + f64::from(pair)), rate(1e9, 1.0)]));
    let all = registry::all();
    let flows = (0..20).map(|number| {
        let access = 2 + 2 * (number as u32 % 5);
        let forward = [access, 0, access + 1];
        let start_ps = number as u64 * 11 * MS;
        FlowPlan { start_ps, ..flow(all[number % all.len()].name, &forward, &[1]) }
    });
    let mut plan = plan(links, flows.collect(), 6.0, 2.0);
    plan.links.iter_mut().skip(1).for_each(|link| link.recorded = false);
    plan
}

fn short_transfers() -> Plan {
    let links = vec![bottleneck(20e6, 10.0, 50), delay(10.0)];
    let mut flows = vec![flow("cubic", &[0], &[1])];
    flows.extend((0..100).map(|number| FlowPlan {
        start_ps: number * 73 * MS,
        size_bytes: Some(number * number % 83 * 1000),
        ..flow("reno", &[0], &[1])
    }));
    plan(links, flows, 10.0, 1.0)
}

// ------------------------------------------------------------------------------------------------------------- the table

/// Name, unit and width of the columns after the first.
const COLUMNS: [(&str, &str, usize); 8] = [
    ("util", "1/10k", 11),
    ("p50", "us", 8),
    ("p99", "us", 8),
    ("lost", "", 7),
    ("resent", "", 7),
    ("marked", "", 7),
    ("jain", "1/1k", 10),
    ("digest", "", 9),
];

/// Width of the first column.
const NAME_WIDTH: usize = 30;

fn heading(title: &str) -> String {
    let columns = COLUMNS.map(|(name, unit, _)| format!("{name} {unit}").trim_end().to_string());
    format!("\n{title}\n{}", row("", &columns))
}

fn row(name: &str, cells: &[String]) -> String {
    assert!(name.len() <= NAME_WIDTH, "{name}: NAME_WIDTH is less");
    let mut row = format!("  {name:<NAME_WIDTH$}");
    for ((.., width), cell) in COLUMNS.iter().zip(cells) {
        let _ = write!(row, "{cell:>width$}");
    }
    row.push('\n');
    row
}

fn line(name: &str, outcome: &Outcome) -> String {
    let link = &outcome.links[0];
    let rounded = |value: Option<f64>| {
        value.filter(|v| v.is_finite()).map_or("-".into(), |v| format!("{v:.0}"))
    };
    let [p50, p99] = [|s: Stats| s.p50, |s: Stats| s.p99]
        .map(|percentile| rounded(link.queue_ms.map(|queue| percentile(queue) * 1e3)));
    let sum = |count: fn(&FlowOutcome) -> u64| outcome.flows.iter().map(count).sum::<u64>();
    let (throughput, squares) = outcome
        .flows
        .iter()
        .map(|flow| flow.throughput_bps)
        .fold((0.0, 0.0), |(sum, squares), x| (sum + x, squares + x * x));
    let jain = 1000.0 * throughput * throughput / (outcome.flows.len() as f64 * squares);
    let cells = [
        rounded(link.utilization.map(|u| u * 1e4)),
        p50,
        p99,
        sum(|flow| flow.lost_packets).to_string(),
        sum(|flow| flow.retransmitted_packets).to_string(),
        link.marks.to_string(),
        rounded(Some(jain)),
        format!("{:08x}", Digest::of(outcome) >> 32),
    ];
    row(name, &cells)
}

/// What a reviewer asks first: which condition, which controller, which column, from what to what.
fn differences(then: &str, now: &str) -> String {
    let (then, now) = (rows(then), rows(now));
    let same = |a: &Row, b: &Row| (a.title, a.name) == (b.title, b.name);
    let changed = now.iter().filter_map(|row| match then.iter().find(|old| same(old, row)) {
        Some(old) => Some((row, change(&old.cells, &row.cells)?)),
        None => Some((row, "new".to_string())),
    });
    let gone = then.iter().filter(|old| !now.iter().any(|row| same(old, row)));
    let mut changes: Vec<_> = changed.chain(gone.map(|old| (old, "gone".to_string()))).collect();
    changes.sort_by_key(|(row, _)| now.iter().position(|any| any.title == row.title));

    let mut said = String::new();
    for (at, (row, change)) in changes.iter().enumerate() {
        if at == 0 || changes[at - 1].0.title != row.title {
            let _ = writeln!(said, "\n{}", row.title);
        }
        let _ = writeln!(said, "  {:<NAME_WIDTH$} {change}", row.name);
    }
    match changes.len() {
        0 => "\nonly the layout differs\n".to_string(),
        lines => format!("{said}\n{lines} of {} lines\n", now.len()),
    }
}

struct Row<'a> {
    /// Of the condition.
    title: &'a str,
    name: &'a str,
    cells: Vec<&'a str>,
}

fn rows(grid: &str) -> Vec<Row<'_>> {
    let mut title = "";
    let mut rows = Vec::new();
    for line in grid.lines().filter(|line| !line.is_empty() && !line.starts_with('#')) {
        let Some(row) = line.strip_prefix("  ") else {
            title = line;
            continue;
        };
        let (name, cells) = row.split_at_checked(NAME_WIDTH).unwrap_or((row, ""));
        // The line without a name is that of the columns' names.
        if !name.trim().is_empty() {
            rows.push(Row { title, name: name.trim(), cells: cells.split_whitespace().collect() });
        }
    }
    rows
}

/// Which cells of a line differ, if any.
fn change(then: &[&str], now: &[&str]) -> Option<String> {
    let pairs = COLUMNS.iter().zip(then.iter().zip(now));
    let said: Vec<String> = pairs
        .filter(|(_, (then, now))| then != now)
        .map(|((name, ..), (then, now))| match *name {
            "digest" => "digest".to_string(),
            _ => format!("{name} {then} -> {now}"),
        })
        .collect();
    match said.as_slice() {
        [] if then.len() == now.len() => None,
        [] => Some("columns".to_string()),
        [digest] if digest == "digest" => Some("only the digest".to_string()),
        _ => Some(said.join(", ")),
    }
}

#[test]
fn a_difference_says_what_moved() {
    let usual = ["9999", "1", "2", "3", "4", "5", "1000", "aa"];
    let mut moved = usual;
    (moved[0], moved[2], moved[7]) = ("9900", "20", "ab");
    let mut touched = usual;
    touched[7] = "ac";
    let table = |title: &str, rows: &[(&str, [&str; 8])]| {
        let rows = rows.iter().map(|(name, cells)| row(name, &cells.map(String::from)));
        heading(title) + &rows.collect::<String>()
    };
    let then = table("rate 1", &[("reno", usual), ("cubic", usual), ("bic", usual)])
        + &table("rate 2", &[("reno", usual), ("reno again", usual)]);
    let now = table("rate 1", &[("new reno", usual), ("reno", usual), ("cubic", moved)])
        + &table("rate 2", &[("reno", touched), ("reno again", usual)]);
    let expected = "
rate 1
  new reno                       new
  cubic                          util 9999 -> 9900, p99 2 -> 20, digest
  bic                            gone

rate 2
  reno                           only the digest

4 of 5 lines
";
    assert_eq!(differences(&then, &now), expected);
    assert_eq!(differences(&now, &now.replace("rate", "\nrate")), "\nonly the layout differs\n");
}

/// FNV-1a, 64 bits, over everything in an outcome but what the engine says of itself.
struct Digest(u64);

impl Digest {
    fn of(outcome: &Outcome) -> u64 {
        let mut digest = Self(0xcbf2_9ce4_8422_2325);
        let Outcome { flows, links, engine: _ } = outcome;
        digest.number(flows.len() as u64);
        flows.iter().for_each(|flow| digest.flow(flow));
        digest.number(links.len() as u64);
        links.iter().for_each(|link| digest.link(link));
        digest.0
    }

    fn bytes(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.0 = (self.0 ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3);
        }
    }

    fn number(&mut self, number: u64) {
        self.bytes(&number.to_le_bytes());
    }

    /// By its bits, but for NaN: which one it is depends on who divided 0 by 0, compiler or processor.
    fn float(&mut self, value: f64) {
        self.number(if value.is_nan() { f64::NAN.to_bits() } else { value.to_bits() });
    }

    fn text(&mut self, text: &str) {
        self.number(text.len() as u64);
        self.bytes(text.as_bytes());
    }

    fn option<T: Copy>(&mut self, value: Option<T>, add: fn(&mut Self, T)) {
        self.number(u64::from(value.is_some()));
        if let Some(value) = value {
            add(self, value);
        }
    }

    fn stats(&mut self, stats: Stats) {
        let Stats { mean, std, min, p5, p25, p50, p75, p95, p99, max } = stats;
        for value in [mean, std, min, p5, p25, p50, p75, p95, p99, max] {
            self.float(value);
        }
    }

    fn series(&mut self, series: &Series) {
        self.number(series.rows() as u64);
        series.time_s().iter().for_each(|value| self.float(*value));
        self.number(series.columns().len() as u64);
        for Column { name, unit, values } in series.columns() {
            self.text(name);
            self.text(unit);
            values.iter().for_each(|value| self.float(*value));
        }
    }

    fn flow(&mut self, flow: &FlowOutcome) {
        let FlowOutcome {
            start_s,
            end_s,
            throughput_bps,
            goodput_bps,
            rate_bps,
            pacing_bps,
            rtt_ms,
            cwnd_bytes,
            queueing_delay_ms,
            signal_delay_p95_ms,
            power_score,
            sent_packets,
            delivered_packets,
            lost_packets,
            in_flight_packets,
            retransmitted_packets,
            timeouts,
            completion_s,
            series,
        } = flow;
        for value in [start_s, end_s, throughput_bps, goodput_bps] {
            self.float(*value);
        }
        for stats in [rate_bps, pacing_bps, rtt_ms, cwnd_bytes, queueing_delay_ms] {
            self.option(*stats, Self::stats);
        }
        for value in [signal_delay_p95_ms, power_score, completion_s] {
            self.option(*value, Self::float);
        }
        for count in [
            sent_packets,
            delivered_packets,
            lost_packets,
            in_flight_packets,
            retransmitted_packets,
            timeouts,
        ] {
            self.number(*count);
        }
        self.series(series);
    }

    fn link(&mut self, link: &LinkOutcome) {
        let LinkOutcome {
            name,
            capacity_bps,
            throughput_bps,
            utilization,
            drops,
            marks,
            queue_ms,
            queue_bytes,
            series,
        } = link;
        self.text(name);
        self.float(*throughput_bps);
        for value in [capacity_bps, utilization] {
            self.option(*value, Self::float);
        }
        for count in [drops, marks] {
            self.number(*count);
        }
        for stats in [queue_ms, queue_bytes] {
            self.option(*stats, Self::stats);
        }
        self.series(series);
    }
}

#[test]
fn the_digest_sees_the_last_bit_of_the_last_sample() {
    let flow = |value| FlowOutcome {
        series: Series::new(&[1.0], &[Column { name: "a", unit: "ms", values: &[value] }]),
        ..FlowOutcome::default()
    };
    let of = |value| Digest::of(&Outcome { flows: vec![flow(value)], ..Outcome::default() });
    assert_eq!(of(1.0), of(1.0));
    assert_ne!(of(1.0), of(f64::from_bits(1.0_f64.to_bits() + 1)));
    assert_ne!(of(0.0), of(-0.0));
    assert_eq!(of(f64::NAN), of(-f64::NAN));
}
