//! The closed forms against slow models that play every event: opportunity by opportunity, and in exact fractions.

use std::collections::VecDeque;
use std::sync::Arc;

use paceline_net::{
    Backlog, Buffer, Capacity, DelayTrace, DropReason, Jitter, Link, LinkSpec, LossModel,
    PS_PER_MS, PS_PER_S, Picos, Reorder, Trace, Verdict,
};
use proptest::prelude::*;

fn link(capacity: Capacity, buffer: Buffer) -> Link {
    let spec = LinkSpec { capacity, delay_ps: 7, buffer, ..LinkSpec::default() };
    Link::new(spec, 0, 0)
}

fn pass(departs: Picos) -> Verdict {
    Verdict::Pass { departs, arrives: departs + 7 }
}

#[derive(Clone)]
struct Packet {
    number: usize,
    bytes: u32,
    rest: u32,
    started: bool,
}

/// A queue served one opportunity after the other, as mahimahi's loop does.
#[derive(Clone)]
struct Player {
    times: Vec<u32>,
    once: bool,
    /// Number of the next opportunity, over all repetitions.
    next: usize,
    queue: VecDeque<Packet>,
    /// Number of packet, ms of the first byte served and of the last.
    first_byte: Vec<(usize, u64)>,
    last_byte: Vec<(usize, u64)>,
    dead: bool,
}

impl Player {
    fn next_ms(&self) -> Option<u64> {
        let (cycle, at) = (self.next / self.times.len(), self.next % self.times.len());
        let period = u64::from(*self.times.last().expect("not empty"));
        (cycle == 0 || !self.once).then(|| cycle as u64 * period + u64::from(self.times[at]))
    }

    fn play_one(&mut self) {
        let ms = self.next_ms().expect("not used up");
        self.next += 1;
        let mut left = 1504;
        while left > 0
            && let Some(head) = self.queue.front_mut()
        {
            if !head.started {
                head.started = true;
                self.first_byte.push((head.number, ms));
            }
            let served = left.min(head.rest);
            left -= served;
            head.rest -= served;
            if head.rest == 0 {
                self.last_byte.push((head.number, ms));
                self.queue.pop_front();
            }
        }
    }

    fn play_until(&mut self, now_ms: u64) {
        while self.next_ms().is_some_and(|ms| ms <= now_ms) {
            self.play_one();
        }
    }

    fn backlog(&self) -> Backlog {
        let waiting = self.queue.iter().filter(|packet| !packet.started);
        Backlog {
            packets: waiting.clone().count() as u64,
            bytes: waiting.map(|packet| u64::from(packet.bytes)).sum(),
        }
    }

    fn enqueue(&mut self, now: Picos, number: usize, bytes: u32, limit: Buffer) -> Verdict {
        self.play_until(now / PS_PER_MS);
        // Look ahead on a copy to learn what becomes of the packet.
        let mut ahead = self.clone();
        ahead.queue.push_back(Packet { number, bytes, rest: bytes, started: false });
        while ahead.next_ms().is_some() && ahead.queue.iter().any(|packet| packet.number == number)
        {
            ahead.play_one();
        }
        let of = |events: &[(usize, u64)]| {
            events.iter().find(|event| event.0 == number).map(|event| event.1 * PS_PER_MS)
        };
        let Some(first) = of(&ahead.first_byte).filter(|_| !self.dead) else {
            return Verdict::Drop(DropReason::Exhausted);
        };
        let backlog = self.backlog();
        if limit.packets.is_some_and(|limit| backlog.packets + 1 > limit)
            || limit.bytes.is_some_and(|limit| backlog.bytes + u64::from(bytes) > limit)
            || limit.wait_ps.is_some_and(|limit| first - now > limit)
        {
            return Verdict::Drop(DropReason::Buffer);
        }
        let Some(last) = of(&ahead.last_byte) else {
            self.dead = true;
            return Verdict::Drop(DropReason::Exhausted);
        };
        self.queue.push_back(Packet { number, bytes, rest: bytes, started: false });
        pass(last)
    }
}

fn trace() -> impl Strategy<Value = Vec<u32>> {
    prop::collection::vec(prop_oneof![4 => 0u32..3, 1 => 0u32..40], 1..40).prop_map(|gaps| {
        let mut times: Vec<u32> = gaps
            .into_iter()
            .scan(0, |at, gap| {
                *at += gap;
                Some(*at)
            })
            .collect();
        if times.last() == Some(&0) {
            times.push(1);
        }
        times
    })
}

fn bytes() -> impl Strategy<Value = u32> {
    prop_oneof![3 => Just(1504u32), 2 => Just(80u32), 3 => 0u32..3200, 1 => 0u32..20_000]
}

fn buffer(bytes: u64, wait_ps: u64) -> impl Strategy<Value = Buffer> {
    let limit = |most: u64| prop::option::weighted(0.4, 0..most);
    (limit(12), limit(bytes), limit(wait_ps)).prop_map(|(packets, bytes, wait_ps)| Buffer {
        packets,
        bytes,
        wait_ps,
    })
}

/// Mostly small numbers, and those at the end of the range.
fn any_size() -> impl Strategy<Value = u64> {
    prop_oneof![0u64..10, any::<u64>(), Just(u64::MAX)]
}

fn any_spec() -> impl Strategy<Value = LinkSpec> {
    let opportunities = prop::collection::vec(prop_oneof![0u32..9, any::<u32>()], 1..9);
    let trace = (opportunities, any::<bool>()).prop_map(|(mut times, once)| {
        times.sort_unstable();
        match Trace::from_opportunities(times) {
            Ok(trace) => Capacity::Trace { trace: Arc::new(trace), once },
            Err(_) => Capacity::Unlimited,
        }
    });
    let capacity = prop_oneof![any::<f64>().prop_map(Capacity::Constant), trace];
    let limit = || prop::option::of(any_size());
    let buffer = (limit(), limit(), limit()).prop_map(|(packets, bytes, wait_ps)| Buffer {
        packets,
        bytes,
        wait_ps,
    });
    let loss = prop::option::of(
        (any::<f64>(), any::<f64>()).prop_map(|(p, r)| LossModel::GilbertElliott {
            p,
            r,
            loss_bad: r,
            loss_good: p,
        }),
    );
    let jitter = prop::option::of(
        (any_size(), any_size(), any::<bool>()).prop_map(|(mean_ps, max_ps, reorder)| Jitter {
            mean_ps,
            max_ps,
            reorder,
        }),
    );
    let reorder = prop::option::of(
        (any::<f64>(), any_size())
            .prop_map(|(probability, extra_ps)| Reorder { probability, extra_ps }),
    );
    let delays = (0u64..9, 1u64..9).prop_map(|(first, second)| {
        let text = format!("0 {first}\n0.000000001 {second}\n3 0\n5 1000000");
        Arc::new(DelayTrace::parse(text.as_bytes(), "t").expect("times ascend from 0"))
    });
    (capacity, any_size(), prop::option::of(delays), buffer, loss, jitter, reorder).prop_map(
        |(capacity, delay_ps, delay_trace, buffer, loss, jitter, reorder)| LinkSpec {
            capacity,
            delay_ps,
            delay_trace,
            buffer,
            loss,
            jitter,
            reorder,
            ..LinkSpec::default()
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn trace_service_is_what_playing_every_opportunity_yields(
        times in trace(),
        once in any::<bool>(),
        limit in buffer(20_000, 60 * PS_PER_MS),
        // Distances in quarters of a ms, so that several fall into one ms, and now and then a long pause.
        arrivals in prop::collection::vec(
            (prop_oneof![5 => 0u64..8, 1 => 0u64..2000], bytes()), 1..60),
    ) {
        let trace = Arc::new(Trace::from_opportunities(times.clone()).expect("valid"));
        let mut link = link(Capacity::Trace { trace, once }, limit);
        let mut player = Player {
            times, once, next: 0, queue: VecDeque::new(),
            first_byte: Vec::new(), last_byte: Vec::new(), dead: false,
        };
        let (mut now, mut passed) = (0, Vec::new());
        for (number, (quarters, bytes)) in arrivals.into_iter().enumerate() {
            now += quarters * (PS_PER_MS / 4);
            let expected = player.enqueue(now, number, bytes, limit);
            let verdict = link.enqueue(now, bytes);
            prop_assert_eq!(verdict, expected, "packet {} of {} at {}", number, bytes, now);
            prop_assert_eq!(link.backlog(now), player.backlog());
            if let Verdict::Pass { departs, .. } = verdict {
                passed.push((now, departs, f64::from(bytes)));
            }
        }
        // Conservation: never more served than offered, over any stretch that begins with an arrival.
        for (at, &(from, ..)) in passed.iter().enumerate() {
            let mut served = 0.0;
            for &(_, departs, bytes) in &passed[at..] {
                served += bytes;
                let offered = link.offered_bytes(from, departs).expect("limited");
                prop_assert!(served <= offered + 1504.0 * f64::from(u8::from(at > 0)));
            }
        }
    }

    #[test]
    fn offered_bytes_are_what_counting_yields(
        times in trace(), once in any::<bool>(), from in 0u64..400, length in 0u64..400,
    ) {
        let player = Player {
            times: times.clone(), once, next: 0, queue: VecDeque::new(),
            first_byte: Vec::new(), last_byte: Vec::new(), dead: false,
        };
        let mut count = 0;
        let mut at = player;
        while let Some(ms) = at.next_ms().filter(|&ms| ms <= from + length) {
            count += u64::from(ms > from);
            at.next += 1;
        }
        let trace = Arc::new(Trace::from_opportunities(times).expect("valid"));
        let link = link(Capacity::Trace { trace, once }, Buffer::default());
        let offered = link.offered_bytes(from * PS_PER_MS, (from + length) * PS_PER_MS);
        prop_assert_eq!(offered, Some((count * 1504) as f64));
    }

    #[test]
    fn nothing_panics(
        spec in any_spec(),
        calls in prop::collection::vec((any_size(), any::<u32>()), 1..50),
    ) {
        let _ = spec.check();
        let mut link = Link::new(spec, 1, 2);
        // Not even on times that decrease.
        for (now, bytes) in calls {
            if let Verdict::Pass { departs, arrives } = link.enqueue(now, bytes) {
                prop_assert!(arrives >= departs);
            }
            link.backlog(now);
            link.offered_bytes(now, u64::from(bytes));
        }
    }

    #[test]
    fn constant_service_is_the_exact_quotient(
        rate in prop_oneof![
            1u64..1_000_000_000_000, 900u64..2000, Just(1000u64), Just(384_000_000_000u64),
        ],
        limit in buffer(20_000, PS_PER_S),
        // Distances in 1/8 of the time a 1500-byte packet lasts.
        arrivals in prop::collection::vec((prop_oneof![6 => 0u64..10, 1 => 0u64..100], bytes()), 1..120),
    ) {
        let mut link = link(Capacity::Constant(rate as f64), limit);
        let packet_ps = 12_000 * PS_PER_S / rate;
        // End of service in units of 1/rate ps: exact.
        let rate_ps = u128::from(rate);
        let (mut now, mut busy_until) = (0u64, 0u128);
        let mut starts: Vec<(Picos, u32)> = Vec::new();
        for (eighths, bytes) in arrivals {
            now += eighths * packet_ps / 8;
            let start = now.max((busy_until / rate_ps) as Picos);
            starts.retain(|&(start, _)| start > now);
            let waiting: u64 = starts.iter().map(|&(_, bytes)| u64::from(bytes)).sum();
            let refused = start > now && (
                limit.packets.is_some_and(|limit| starts.len() as u64 + 1 > limit)
                || limit.bytes.is_some_and(|limit| waiting + u64::from(bytes) > limit)
                || limit.wait_ps.is_some_and(|limit| start - now > limit));
            let expected = if refused {
                Verdict::Drop(DropReason::Buffer)
            } else {
                busy_until = busy_until.max(u128::from(now) * rate_ps)
                    + u128::from(bytes) * u128::from(8 * PS_PER_S);
                if start > now {
                    starts.push((start, bytes));
                }
                pass((busy_until / rate_ps) as Picos)
            };
            prop_assert_eq!(link.enqueue(now, bytes), expected);
            let waiting: u64 = starts.iter().map(|&(_, bytes)| u64::from(bytes)).sum();
            prop_assert_eq!(link.backlog(now), Backlog { packets: starts.len() as u64, bytes: waiting });
        }
    }
}
