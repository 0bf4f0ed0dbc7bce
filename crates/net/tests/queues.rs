//! What holds for every queue, whatever comes: no packet is lost or doubled, flows keep their order, only what may be marked
//! is marked, and a queue that says wait means it.

use std::collections::BTreeMap;

use paceline_net::queue::{
    CakeSpec, ClassSpec, CodelSpec, DualPi2Spec, Ecn, FqCodelSpec, FqSpec, HtbSpec, Limit, Next,
    PieSpec, Place, Queue, QueueSpec, Queued, RedSpec, Tag, TokenBucketSpec,
};
use paceline_net::{Backlog, PS_PER_MS, PS_PER_US, Picos};
use proptest::prelude::*;

fn specs() -> Vec<QueueSpec> {
    let codel = CodelSpec { target_ps: PS_PER_MS, interval_ps: 10 * PS_PER_MS, ecn: true };
    let class = |rate_bps, child| ClassSpec { rate_bps, ceil_bps: 2.0 * rate_bps, child };
    vec![
        QueueSpec::DropTail,
        QueueSpec::DropHead,
        QueueSpec::Step { packets: 5 },
        QueueSpec::Red(RedSpec::default()),
        QueueSpec::Red(RedSpec { adaptive: true, ecn: true, ..RedSpec::default() }),
        QueueSpec::Codel(codel),
        QueueSpec::Codel(CodelSpec { ecn: false, ..codel }),
        QueueSpec::Pie(PieSpec { target_ps: PS_PER_MS, max_burst_ps: 0, ..PieSpec::default() }),
        QueueSpec::Fq(FqSpec { flow_rate_bps: Some(5e6), flow_packets: 10, ..FqSpec::default() }),
        QueueSpec::FqCodel(FqCodelSpec { flows: 2, codel, ..FqCodelSpec::default() }),
        QueueSpec::Cake(CakeSpec { tins: 3, target_ps: PS_PER_MS, ..CakeSpec::default() }),
        QueueSpec::DualPi2(DualPi2Spec::default()),
        QueueSpec::TokenBucket(TokenBucketSpec {
            rate_bps: 8e6,
            burst_bytes: 3000,
            child: Box::new(QueueSpec::Codel(codel)),
        }),
        QueueSpec::Htb(HtbSpec {
            rate_bps: 8e6,
            burst_bytes: 3000,
            classes: vec![
                class(2e6, QueueSpec::DropTail),
                class(4e6, QueueSpec::FqCodel(FqCodelSpec::default())),
            ],
        }),
    ]
}

#[derive(Clone, Debug)]
struct Step {
    gap_us: u64,
    /// A packet to put in, or none: take one out.
    packet: Option<Tag>,
}

fn step() -> impl Strategy<Value = Step> {
    let ecn = prop::sample::select(vec![Ecn::NotCapable, Ecn::Capable, Ecn::Scalable]);
    let tag = (40u32..3000, 0u32..5, 0u32..3, 0u16..4, ecn).prop_map(
        |(bytes, flow, host, class, ecn)| Tag { bytes, flow, hosts: [host, flow], class, ecn },
    );
    let gap_us = prop_oneof![8 => 0u64..3000, 1 => 0u64..20_000_000];
    (gap_us, prop::option::weighted(0.6, tag)).prop_map(|(gap_us, packet)| Step { gap_us, packet })
}

/// What has been put in and has not come out.
#[derive(Default)]
struct Inside(BTreeMap<u64, Tag>);

impl Inside {
    fn take(&mut self, packet: &Queued<u64>) {
        let was = self.0.remove(&packet.item).expect("a packet that is inside, once");
        let mark = packet.tag.ecn == Ecn::Marked && was.ecn != Ecn::NotCapable;
        assert!(mark || packet.tag.ecn == was.ecn, "{:?} became {:?}", was.ecn, packet.tag.ecn);
        assert_eq!(Tag { ecn: was.ecn, ..packet.tag }, was);
    }

    fn backlog(&self) -> Backlog {
        let bytes = self.0.values().map(|tag| u64::from(tag.bytes)).sum();
        Backlog { packets: self.0.len() as u64, bytes }
    }
}

fn check(spec: &QueueSpec, limit: Limit, steps: &[Step]) {
    let mut queue: Box<dyn Queue<u64>> =
        spec.build(Place { limit, rate_bps: 10e6, seed: 1, stream: 2 });
    let (mut now, mut inside, mut dropped) = (0, Inside::default(), Vec::new());
    let mut last: BTreeMap<(u32, u16, bool), u64> = BTreeMap::new();
    let mut wait_until: Option<Picos> = None;
    for (item, step) in (1..).zip(steps) {
        now += step.gap_us * PS_PER_US;
        match step.packet {
            Some(tag) => {
                inside.0.insert(item, tag);
                queue.enqueue(now, Queued { tag, arrived: now, item }, &mut dropped);
                wait_until = None;
            }
            None => match queue.dequeue(now, &mut dropped) {
                Next::Packet(packet) => {
                    assert!(wait_until.is_none_or(|time| now >= time), "sooner than it said");
                    // DualPI2 keeps scalable packets of a flow apart from the others.
                    let kind = inside.0.get(&packet.item).is_some_and(|t| t.ecn == Ecn::Scalable);
                    let before =
                        last.insert((packet.tag.flow, packet.tag.class, kind), packet.item);
                    assert!(before < Some(packet.item), "a flow out of order");
                    inside.take(&packet);
                    wait_until = None;
                }
                Next::Wait(time) => {
                    assert!(time > now, "wait until {time} at {now}");
                    assert!(!inside.0.is_empty());
                    wait_until = Some(time);
                }
                Next::Empty => assert_eq!(queue.backlog(), Backlog::default()),
            },
        }
        for (packet, _) in dropped.drain(..) {
            inside.take(&packet);
        }
        assert_eq!(queue.backlog(), inside.backlog(), "{spec:?}");
        if let Some(most) = limit.packets
            && !matches!(spec, QueueSpec::Htb(_) | QueueSpec::TokenBucket(_))
        {
            assert!(queue.backlog().packets <= most);
        }
    }
    // Everything comes out in the end.
    while !inside.0.is_empty() {
        match queue.dequeue(now, &mut dropped) {
            Next::Packet(packet) => inside.take(&packet),
            Next::Wait(time) => now = time,
            Next::Empty => assert!(!dropped.is_empty(), "{spec:?} keeps {:?}", inside.0),
        }
        for (packet, _) in dropped.drain(..) {
            inside.take(&packet);
        }
    }
    assert_eq!(queue.dequeue(now, &mut dropped), Next::Empty);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(500))]

    #[test]
    fn nothing_is_lost_doubled_or_reordered(
        packets in prop::option::of(1u64..30),
        bytes in prop::option::of(3000u64..40_000),
        steps in prop::collection::vec(step(), 1..300),
    ) {
        for spec in specs() {
            check(&spec, Limit { packets, bytes }, &steps);
        }
    }
}
