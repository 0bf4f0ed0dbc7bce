//! Many small runs and what came out of each, kept in `grid.txt`: no change of a result goes unseen.
//!
//! A line holds the numbers one reads first, and a digest of the whole outcome: every counter, statistic and sample, floats by
//! their bits. It is the same on every machine and in every build profile.
//!
//! After a change that is meant to change results: `PACELINE_BLESS=1 cargo test -p paceline-sim --test grid`, and say in the
//! commit why each line that differs may.

mod common;

use std::fmt::Write;
use std::path::Path;

use common::*;
use paceline_cc::registry::{self, Spec};
use paceline_net::{Buffer, Capacity, Jitter, LinkSpec, LossModel, PS_PER_US, Reorder, Trace};
use paceline_sim::{
    Column, DatagramOptions, FlowOutcome, FlowPlan, LinkOutcome, Outcome, Plan, Series, Stack,
    Stats, TcpOptions,
};

/// Conditions that every controller meets over TCP. The buffer is a fraction of the bandwidth-delay product.
struct Condition {
    name: &'static str,
    bps: f64,
    rtt_ms: f64,
    buffer_bdp: f64,
    loss: Option<LossModel>,
    flows: u64,
    seconds: f64,
}

const CONDITIONS: [Condition; 6] = [
    condition("10 Mbit/s, 20 ms, 1 BDP", 10e6, 20.0, 1.0, None, 1, 10.0),
    condition("100 Mbit/s, 30 ms, 0.2 BDP", 100e6, 30.0, 0.2, None, 1, 5.0),
    condition("2 Mbit/s, 200 ms, 3 BDP", 2e6, 200.0, 3.0, None, 1, 30.0),
    condition("20 Mbit/s, 40 ms, 1 BDP, 1 % loss", 20e6, 40.0, 1.0, LOSSY, 1, 10.0),
    condition("30 Mbit/s, 20 ms, 1 BDP, 4 flows", 30e6, 20.0, 1.0, None, 4, 10.0),
    condition("1 Gbit/s, 2 ms, 0.5 BDP, 2 flows", 1e9, 2.0, 0.5, None, 2, 2.0),
];

const LOSSY: Option<LossModel> = Some(LossModel::Bernoulli(0.01));

const fn condition(
    name: &'static str,
    bps: f64,
    rtt_ms: f64,
    buffer_bdp: f64,
    loss: Option<LossModel>,
    flows: u64,
    seconds: f64,
) -> Condition {
    Condition { name, bps, rtt_ms, buffer_bdp, loss, flows, seconds }
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

const SLEEPER: DatagramOptions =
    DatagramOptions { blocking: true, overhead_ps: 60 * PS_PER_US, clock_ps: MS };

#[test]
fn every_outcome_is_the_one_on_file() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/grid.txt");
    let grid = grid();
    if std::env::var_os("PACELINE_BLESS").is_some() {
        std::fs::write(&path, &grid).expect("the folder of the tests can be written");
    }
    let on_file = std::fs::read_to_string(&path).unwrap_or_default();
    let mut differing = String::new();
    for line in on_file.lines().filter(|line| !grid.lines().any(|now| now == *line)) {
        let _ = writeln!(differing, "- {line}");
    }
    for line in grid.lines().filter(|line| !on_file.lines().any(|then| then == *line)) {
        let _ = writeln!(differing, "+ {line}");
    }
    assert!(
        grid == on_file,
        "results differ from crates/sim/tests/grid.txt (- there, + now):\n{HEAD}{differing}\
         A change for speed must not do this: find out what it changed (`cargo test -p paceline-sim --lib reference` names \
         the first difference to the plain event loop, if the engine is at fault). If the change is meant to alter \
         results, write the file anew with\n\n    \
         PACELINE_BLESS=1 cargo test -p paceline-sim --test grid\n\n\
         read its diff, and say in the commit why each line may differ.\n"
    );
}

const HEAD: &str = "\
# Results of the runs of grid.rs. Written by PACELINE_BLESS=1 cargo test -p paceline-sim --test grid
# util: of the bottleneck, 1/10,000. p50, p99: wait in its queue and transmission, us. lost, resent: packets of all flows.
# jain: Jain's index of the throughputs, 1/1000. outcome: digest of everything.
#                                                     util     p50     p99    lost  resent  jain  outcome
";

fn grid() -> String {
    let mut grid = HEAD.to_string();
    for spec in registry::all() {
        for condition in &CONDITIONS {
            let name = format!("{}, {}", spec.name, condition.name);
            grid.push_str(&line(&name, &run_checked(condition.plan(spec))));
        }
    }
    for (name, plan) in SPECIAL {
        grid.push_str(&line(name, &run_checked(plan())));
    }
    grid
}

// ------------------------------------------------------------------------------------------------------------------ runs

impl Condition {
    fn plan(&self, spec: &'static Spec) -> Plan {
        let bdp_packets = self.bps * self.rtt_ms / 1e3 / 8.0 / 1500.0;
        let packets = (bdp_packets * self.buffer_bdp) as u64;
        let there = bottleneck(self.bps, self.rtt_ms / 2.0, packets);
        let links = vec![LinkSpec { loss: self.loss, ..there }, delay(self.rtt_ms / 2.0)];
        let flows = (0..self.flows)
            .map(|number| FlowPlan { start_ps: number * 137 * MS, ..flow(spec.name, &[0], &[1]) });
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

// -------------------------------------------------------------------------------------------------------------- one line

fn line(name: &str, outcome: &Outcome) -> String {
    let link = &outcome.links[0];
    let rounded = |value: Option<f64>| value.map_or("-".into(), |v| format!("{v:.0}"));
    let utilization = rounded(link.utilization.map(|u| u * 1e4));
    let [p50, p99] = [|s: Stats| s.p50, |s: Stats| s.p99]
        .map(|percentile| rounded(link.queue_ms.map(|queue| percentile(queue) * 1e3)));
    let lost: u64 = outcome.flows.iter().map(|flow| flow.lost_packets).sum();
    let resent: u64 = outcome.flows.iter().map(|flow| flow.retransmitted_packets).sum();
    let (sum, squares) = outcome
        .flows
        .iter()
        .map(|flow| flow.throughput_bps)
        .fold((0.0, 0.0), |(sum, squares), x| (sum + x, squares + x * x));
    let jain = rounded(Some(1000.0 * sum * sum / (outcome.flows.len() as f64 * squares)));
    let digest = Digest::of(outcome);
    format!(
        "{name:<48} {utilization:>9} {p50:>7} {p99:>7} {lost:>7} {resent:>7} {jain:>5}  {digest:016x}\n"
    )
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
