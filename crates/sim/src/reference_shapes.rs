//! Random plans of a known shape: dumbbells, stars, parking lots and rings. Rates and delays come from a few round numbers, so
//! that many things happen in one picosecond.

use paceline_net::queue::{Ecn, Tag};
use paceline_net::{Buffer, Capacity, DelayTrace, Jitter, LinkSpec, Reorder, Trace};
use proptest::prelude::*;

use super::common::*;
use super::plans::{TCP_CONTROLLERS, datagrams, network, window};
use crate::plan::{DatagramOptions, FlowPlan, Plan, Stack, TcpOptions};
use crate::telemetry::{MAX_HOPS, has_rate};

/// How flows lie on the links of the core.
#[derive(Clone, Copy, Debug)]
enum Layout {
    /// There over the first, back over the last.
    Dumbbell,
    /// There over a stretch of them, back over a delay of one's own.
    Lot,
    /// There over a stretch of them, back over the rest.
    Ring,
}

#[derive(Clone, Debug)]
pub(super) struct Shape {
    layout: Layout,
    core: Vec<(LinkSpec, bool)>,
    hosts: Vec<Host>,
    seed: u64,
}

/// A flow and its own links.
#[derive(Clone, Debug)]
struct Host {
    /// Before the core.
    access: Vec<LinkSpec>,
    /// Behind it.
    tail: Option<LinkSpec>,
    back: Option<LinkSpec>,
    /// Where in the core it begins, and how many links it crosses there.
    stretch: (prop::sample::Index, prop::sample::Index),
    /// Its data crosses them twice.
    twice: bool,
    controller: Option<&'static str>,
    /// With a held window: its packets.
    packets: f64,
    end: End,
    start_ps: u64,
    size_bytes: Option<u64>,
}

#[derive(Clone, Copy, Debug)]
enum End {
    AsItComes,
    DelayedAck(u64),
    Datagram,
    Sleeps,
    /// Told of losses at the drop, where that can be.
    ToldAtDrop,
}

pub(super) fn shape() -> impl Strategy<Value = Shape> {
    let layout = prop_oneof![Just(Layout::Dumbbell), Just(Layout::Lot), Just(Layout::Ring)];
    let core = prop::collection::vec((core_link(), any::<bool>()), 2..5);
    // Now and then more senders than a junction looks at one by one.
    let hosts = prop_oneof![9 => prop::collection::vec(host(), 1..16), 1 => prop::collection::vec(host(), 66..90)];
    (layout, core, hosts, any::<u64>()).prop_map(|(layout, core, hosts, seed)| Shape {
        layout,
        core,
        hosts,
        seed,
    })
}

fn round_delay() -> impl Strategy<Value = f64> {
    prop::sample::select(vec![0.0, 0.1, 1.0, 1.0, 2.0, 5.0])
}

/// A delay, or a rate at which a full packet lasts a whole number of 10 us.
fn plain_link() -> impl Strategy<Value = LinkSpec> {
    let capacity = prop_oneof![
        1 => Just(Capacity::Unlimited),
        1 => prop::sample::select(vec![12e6, 120e6, 120e6, 1.2e9]).prop_map(Capacity::Constant),
    ];
    (capacity, round_delay()).prop_map(|(capacity, ms)| LinkSpec { capacity, ..delay(ms) })
}

fn core_link() -> impl Strategy<Value = LinkSpec> {
    let capacity = prop_oneof![
        3 => prop::sample::select(vec![6e6, 12e6, 120e6]).prop_map(Capacity::Constant),
        1 => prop::collection::vec(1_u32..40, 1..40).prop_map(|mut ms| {
            ms.sort_unstable();
            let trace = Trace::from_opportunities(ms).expect("ascending, above 0").into();
            Capacity::Trace { trace, once: false }
        }),
    ];
    let packets = prop::option::of(0_u64..40);
    let jitter = prop::option::weighted(0.15, any::<bool>());
    let reorder = prop::option::weighted(0.1, 0.0..0.2);
    let queue = prop::option::weighted(0.3, prop::sample::select(queues()));
    // Up, down below what it was at first, and up again.
    let delays = prop::option::weighted(0.1, Just("0 1\n30 9\n60.5 0\n200 2"));
    let delays = delays.prop_map(|text| {
        text.map(|text| DelayTrace::parse(text.as_bytes(), "t").expect("times ascend").into())
    });
    let head = (capacity, round_delay(), delays, queue);
    (head, packets, jitter, reorder).prop_map(|(head, packets, jitter, held)| {
        let (capacity, ms, delay_trace, queue) = head;
        LinkSpec {
            capacity,
            delay_trace,
            queue: queue.unwrap_or_default(),
            buffer: Buffer { packets, ..Buffer::default() },
            jitter: jitter.map(|reorder| Jitter { mean_ps: MS / 2, max_ps: 2 * MS, reorder }),
            reorder: held.map(|probability| Reorder { probability, extra_ps: 2 * MS }),
            ..delay(ms)
        }
    })
}

fn host() -> impl Strategy<Value = Host> {
    let access = prop::collection::vec(plain_link(), 0..3);
    let links = (access, prop::option::of(plain_link()), prop::option::of(plain_link()));
    let controller = prop_oneof![
        2 => prop::option::of(prop::sample::select(TCP_CONTROLLERS.to_vec())),
        1 => Just(Some("hpcc")),
    ];
    let end = prop_oneof![
        5 => Just(End::AsItComes),
        2 => prop::sample::select(vec![1, 10, 40]).prop_map(|ms| End::DelayedAck(ms * MS)),
        1 => Just(End::Datagram),
        1 => Just(End::Sleeps),
        2 => Just(End::ToldAtDrop),
    ];
    let start = prop::sample::select(vec![0, 0, 0, 1, 10, 50]).prop_map(|ms| ms * MS);
    let size = prop::option::weighted(0.3, 0_u64..100_000);
    let stretch = (any::<prop::sample::Index>(), any::<prop::sample::Index>());
    let stretch = (stretch, prop::bool::weighted(0.2));
    (links, stretch, controller, 1_u32..12, end, start, size).prop_map(
        |(
            (access, tail, back),
            (stretch, twice),
            controller,
            packets,
            end,
            start_ps,
            size_bytes,
        )| Host {
            access,
            tail,
            back,
            stretch,
            twice,
            controller,
            packets: f64::from(packets),
            end,
            start_ps,
            size_bytes,
        },
    )
}

impl Shape {
    pub(super) fn plan(&self) -> Plan {
        let mut links: Vec<LinkSpec> = self.core.iter().map(|(spec, _)| spec.clone()).collect();
        let flows: Vec<FlowPlan> = self
            .hosts
            .iter()
            .map(|host| {
                let (across, mut reverse) = self.across(host);
                let mut add = |spec: &LinkSpec| {
                    links.push(spec.clone());
                    links.len() as u32 - 1
                };
                let mut forward: Vec<u32> = host.access.iter().map(&mut add).collect();
                forward.extend(across.repeat(1 + usize::from(host.twice)));
                forward.extend(host.tail.as_ref().map(&mut add));
                reverse.extend(host.back.as_ref().map(&mut add));
                if reverse.is_empty() {
                    reverse.push(add(&delay(1.0)));
                }
                let rates = forward.iter().filter(|link| has_rate(&links[**link as usize]));
                let has_room = rates.count() <= MAX_HOPS;
                host.flow(&forward, &reverse, has_room)
            })
            .collect();
        let flows =
            tell_at_drop(&links, flows, |flow| matches!(self.hosts[flow].end, End::ToldAtDrop));
        let recorded: Vec<usize> = (0..self.core.len()).filter(|link| self.core[*link].1).collect();
        Plan { seed: self.seed, ..network(links, &recorded, flows, 0.4) }
    }

    /// The links of the core that a host's data crosses, and those that its ACKs do.
    fn across(&self, host: &Host) -> (Vec<u32>, Vec<u32>) {
        let count = self.core.len();
        let (from, length) = (host.stretch.0.index(count), 1 + host.stretch.1.index(count));
        let around = |range: std::ops::Range<usize>| -> Vec<u32> {
            range.map(|step| ((from + step) % count) as u32).collect()
        };
        match self.layout {
            Layout::Dumbbell => (vec![0], vec![count as u32 - 1]),
            Layout::Lot => (around(0..length.min(count - from)), Vec::new()),
            Layout::Ring => (around(0..length), around(length..count)),
        }
    }
}

impl Host {
    /// `has_room`: packets have room for the telemetry of this path.
    fn flow(&self, forward: &[u32], reverse: &[u32], has_room: bool) -> FlowPlan {
        let flow = match self.controller.filter(|name| has_room || *name != "hpcc") {
            Some(name) => flow(name, forward, reverse),
            None => window(self.packets, forward, reverse),
        };
        // Senders of every kind, as it comes.
        let ecn = [Ecn::NotCapable, Ecn::Capable, Ecn::Scalable][self.packets as usize % 3];
        let tag = Tag { ecn, class: self.packets as u16 % 2, ..flow.tag };
        let flow = FlowPlan { start_ps: self.start_ps, size_bytes: self.size_bytes, tag, ..flow };
        let blocking = matches!(self.end, End::Sleeps);
        match (self.end, flow.stack) {
            (End::DelayedAck(after), Stack::Tcp(options)) => {
                let options = TcpOptions { delayed_ack_ps: Some(after), ..options };
                FlowPlan { stack: Stack::Tcp(options), ..flow }
            }
            (End::Datagram | End::Sleeps | End::ToldAtDrop, _) => {
                datagrams(flow, DatagramOptions { blocking, ..DatagramOptions::default() })
            }
            _ => flow,
        }
    }
}
