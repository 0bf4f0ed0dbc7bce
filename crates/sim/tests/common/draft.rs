//! Random plans: networks, flows and impairments of every kind.

use std::sync::Arc;

use paceline_cc::registry;
use paceline_net::queue::{Ecn, Tag};
use paceline_net::{
    Buffer, Capacity, DelayTrace, Jitter, LinkSpec, LossModel, PS_PER_US, Reorder, Trace,
};
use paceline_sim::{DatagramOptions, FlowPlan, Plan, Stack, TcpOptions};
use proptest::prelude::*;

use super::{MS, plan, queues, registered, tcp, tell_at_drop};

/// What a plan is built from, so that it can be built twice.
#[derive(Clone, Debug)]
pub struct Draft {
    links: Vec<(LinkSpec, bool)>,
    pub flows: Vec<DraftFlow>,
    seed: u64,
}

/// Links of which some are not recorded, and up to four flows that cross them at random.
pub fn draft() -> impl Strategy<Value = Draft> {
    let others = prop::collection::vec((link(), any::<bool>()), 0..5);
    let flows = prop::collection::vec(flow(), 1..5);
    ((first_link(), any::<bool>()), others, flows, any::<u64>()).prop_map(
        |(first, others, flows, seed)| Draft { links: [vec![first], others].concat(), flows, seed },
    )
}

fn capacity() -> impl Strategy<Value = Capacity> {
    prop_oneof![
        Just(Capacity::Unlimited),
        (4.0f64..9.0).prop_map(|log| Capacity::Constant(10f64.powf(log))),
        (prop::collection::vec(1u32..400, 1..60), any::<bool>()).prop_map(|(mut ms, once)| {
            ms.sort_unstable();
            let trace = Trace::from_opportunities(ms).expect("ascending, above 0").into();
            Capacity::Trace { trace, once }
        }),
    ]
}

fn loss() -> impl Strategy<Value = Option<LossModel>> {
    prop_oneof![
        3 => Just(None),
        1 => (0.0f64..0.5).prop_map(|p| Some(LossModel::Bernoulli(p))),
        1 => (2u64..50).prop_map(|n| Some(LossModel::Periodic(n))),
        1 => (0.0f64..0.2, 0.05f64..1.0).prop_map(|(p, r)| {
            Some(LossModel::GilbertElliott { p, r, loss_bad: 0.9, loss_good: 0.0 })
        }),
    ]
}

fn link() -> impl Strategy<Value = LinkSpec> {
    let buffer = prop_oneof![
        Just(Buffer::default()),
        (0u64..100).prop_map(|n| Buffer { packets: Some(n), ..Buffer::default() }),
        (0u64..200_000).prop_map(|n| Buffer { bytes: Some(n), ..Buffer::default() }),
        (0u64..200).prop_map(|ms| Buffer { wait_ps: Some(ms * MS), ..Buffer::default() }),
    ];
    let jitter = prop::option::of((1u64..5000, any::<bool>())).prop_map(|drawn| {
        drawn.map(|(us, reorder)| Jitter {
            mean_ps: us * PS_PER_US,
            max_ps: 5 * us * PS_PER_US,
            reorder,
        })
    });
    let reorder = prop::option::weighted(0.2, (0.0f64..0.3, 1u64..30)).prop_map(|drawn| {
        drawn.map(|(probability, ms)| Reorder { probability, extra_ps: ms * MS })
    });
    let queue = prop::option::weighted(0.3, prop::sample::select(queues()));
    let changes = prop::option::weighted(0.2, (0u64..50, 0u64..50)).prop_map(|drawn| {
        let text = |(first, second)| format!("0 {first}\n500 {second}\n1000.5 20");
        let parse = |text: String| DelayTrace::parse(text.as_bytes(), "t").expect("times ascend");
        drawn.map(|delays| Arc::new(parse(text(delays))))
    });
    let delay = (0u64..60_000, changes);
    (capacity(), delay, (buffer, queue), loss(), jitter, reorder).prop_map(
        |(capacity, (delay_us, delay_trace), (buffer, queue), loss, jitter, reorder)| LinkSpec {
            capacity,
            delay_ps: delay_us * PS_PER_US,
            delay_trace,
            // Only drop-tail can limit the wait.
            buffer: Buffer { wait_ps: buffer.wait_ps.filter(|_| queue.is_none()), ..buffer },
            queue: queue.unwrap_or_default(),
            loss,
            jitter,
            reorder,
        },
    )
}

#[derive(Clone, Debug)]
pub struct DraftFlow {
    controller: usize,
    pub tcp: bool,
    forward: Vec<prop::sample::Index>,
    reverse: Vec<prop::sample::Index>,
    start_ms: u64,
    stop_ms: Option<u64>,
    pub size: Option<u64>,
    cap: Option<u64>,
    flags: [bool; 3],
    told_at_drop: bool,
}

fn flow() -> impl Strategy<Value = DraftFlow> {
    let path = || prop::collection::vec(any::<prop::sample::Index>(), 1..4);
    let options = (prop::option::of(0u64..4000), prop::option::of(1u64..400_000));
    let cap = prop::option::weighted(0.3, 1u64..10_000_000);
    let head = (0..registry::all().len(), any::<bool>(), path(), path());
    let flags = (any::<[bool; 3]>(), any::<bool>());
    (head, 0u64..3000, options, cap, flags).prop_map(
        |(
            (controller, tcp, forward, reverse),
            start_ms,
            (stop_ms, size),
            cap,
            (flags, told_at_drop),
        )| DraftFlow {
            controller,
            tcp,
            forward,
            reverse,
            start_ms,
            stop_ms,
            size,
            cap,
            flags,
            told_at_drop,
        },
    )
}

/// The first link of every path: it has a capacity, so that no window grows without bound.
fn first_link() -> impl Strategy<Value = LinkSpec> {
    (link(), 4.0f64..8.0).prop_map(|(link, log)| match link.capacity {
        Capacity::Trace { .. } => link,
        _ => LinkSpec { capacity: Capacity::Constant(10f64.powf(log)), ..link },
    })
}

impl Draft {
    pub fn plan(&self) -> Plan {
        let flows = self.flows.iter().map(|drawn| {
            let spec = registry::all()[drawn.controller];
            let [a, b, c] = drawn.flags;
            let stack = if drawn.tcp {
                Stack::Tcp(TcpOptions {
                    delayed_ack_ps: a.then_some(40 * MS),
                    handshake: b,
                    prr: c,
                    ..TcpOptions::default()
                })
            } else {
                let (overhead_ps, clock_ps) =
                    (u64::from(b) * 60 * PS_PER_US, if c { MS } else { 1 });
                Stack::Datagram(DatagramOptions {
                    blocking: a,
                    overhead_ps,
                    clock_ps,
                    ..DatagramOptions::default()
                })
            };
            let path = |indices: &[prop::sample::Index]| {
                indices.iter().map(|i| i.index(self.links.len()) as u32).collect::<Vec<_>>()
            };
            FlowPlan {
                stack,
                needs: spec.needs,
                fields: spec.fields.to_vec(),
                forward: [vec![0], path(&drawn.forward)].concat(),
                reverse: path(&drawn.reverse),
                start_ps: drawn.start_ms * MS,
                stop_ps: drawn.stop_ms.map(|ms| ms * MS),
                size_bytes: drawn.size,
                cap_bytes_per_s: drawn.cap,
                tag: Tag {
                    ecn: [Ecn::NotCapable, Ecn::Capable][drawn.flags[0] as usize],
                    ..Tag::default()
                },
                ..tcp(registered(spec.name, None, &[]))
            }
        });
        let specs: Vec<LinkSpec> = self.links.iter().map(|(spec, _)| spec.clone()).collect();
        let flows = tell_at_drop(&specs, flows.collect(), |flow| self.flows[flow].told_at_drop);
        let mut plan = plan(specs, flows, 4.0, 0.5);
        for (link, (_, recorded)) in plan.links.iter_mut().zip(&self.links) {
            link.recorded = *recorded;
        }
        plan.seed = self.seed;
        plan
    }
}
