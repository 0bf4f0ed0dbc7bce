//! One direction of a link: the model, and what is under way behind it.
//!
//! In: packets and the time. Out: packets whose time has come, and packets dropped. Reads no clock and no device, so a test
//! can hand it any time, and it does at those times what the simulator would.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

use paceline_net::log::LogEvent;
use paceline_net::queue::{Ecn, Tag};
use paceline_net::{DropReason, Link, LinkSpec, Picos, QueueSpec, ServedLink, Verdict};

use crate::log::Log;
use crate::observer::Observer;

/// What a direction carries.
pub trait Carried: Send + 'static {
    /// The branch that it takes.
    fn branch(&self) -> u32;
}

/// A direction of a link in operation. `T` is what it carries.
pub struct Passage<T> {
    model: Model<T>,
    under_way: UnderWay<T>,
    dropped: VecDeque<(T, DropReason)>,
    log: Option<Log>,
    observer: Option<Box<dyn Observer>>,
}

/// Drop-tail is a formula; any other queue is asked when its transmitter is free.
enum Model<T> {
    Formula(Link),
    Served(ServedLink<T>),
}

/// A packet that has reached the far end.
#[derive(Clone, Debug, PartialEq)]
pub struct Arrived<T> {
    /// The packet.
    pub item: T,
    /// When it reached the far end by the model, ps.
    pub time: Picos,
    /// Whether it says "congestion experienced" now.
    pub marked: bool,
}

impl<T: Carried> Passage<T> {
    /// A direction that has carried nothing. `seed` and `stream` pick its random streams, as for [`Link`]. What random loss takes
    /// does not reach the link, and its log.
    pub fn new(spec: LinkSpec, seed: u64, stream: u64, log: Option<Log>) -> Self {
        let under_way = UnderWay::new(spec.keeps_order());
        let model = match spec.queue {
            QueueSpec::DropTail => Model::Formula(Link::new(spec, seed, stream)),
            _ => Model::Served(ServedLink::new(spec, seed, stream)),
        };
        Self { model, under_way, dropped: VecDeque::new(), log, observer: None }
    }

    /// The same with somebody who is shown what happens.
    pub fn observed_by(self, observer: Option<Box<dyn Observer>>) -> Self {
        Self { observer, ..self }
    }

    /// Who is shown what happens.
    pub fn observer(&mut self) -> Option<&mut dyn Observer> {
        observer_of(&mut self.observer)
    }

    /// Shows the samples that are due by `now`. Times must not decrease, as in [`Self::enter`].
    pub fn sample(&mut self, now: Picos) {
        let Some(observer) = &mut self.observer else { return };
        while let Some((from, time)) = observer.next_sample().filter(|(_, time)| *time <= now) {
            let (offered, waiting) = match &mut self.model {
                Model::Formula(link) => (link.offered_bytes(from, time), link.backlog(time).bytes),
                Model::Served(link) => {
                    self.under_way.serve(link, time, &mut self.log, &mut Some(&mut **observer));
                    collect_dropped(link, time, None, &mut self.dropped, &mut self.log);
                    (link.offered_bytes(from, time), link.backlog().bytes)
                }
            };
            observer.on_sample(time, offered, waiting);
        }
    }

    /// A packet enters at `now`. Times must not decrease from call to call, of whichever method.
    pub fn enter(&mut self, now: Picos, tag: Tag, item: T) {
        self.sample(now);
        let observer = &mut observer_of(&mut self.observer);
        match &mut self.model {
            Model::Formula(link) => match link.enqueue(now, tag.bytes) {
                Verdict::Pass { departs, arrives } => {
                    if let Some(log) = &mut self.log {
                        let bytes = tag.bytes;
                        log.add(now, LogEvent::Arrival { time: now, bytes });
                        log.add(now, LogEvent::Departure { time: departs, bytes, arrived: now });
                    }
                    if let Some(observer) = observer {
                        observer.on_departure(item.branch(), now, departs, tag.bytes, false);
                    }
                    let marked = tag.ecn == Ecn::Marked;
                    self.under_way.push(Arrived { item, time: arrives, marked });
                }
                Verdict::Drop(reason) => {
                    if let Some(log) = &mut self.log
                        && reason != DropReason::Random
                    {
                        log.add(now, LogEvent::Arrival { time: now, bytes: tag.bytes });
                        log_drop(log, now, tag.bytes, reason);
                    }
                    self.dropped.push_back((item, reason));
                }
            },
            Model::Served(link) => {
                let (dropped, log, bytes) = (&mut self.dropped, &mut self.log, tag.bytes);
                self.under_way.serve(link, now, log, observer);
                collect_dropped(link, now, None, dropped, log);
                link.arrive(now, tag, item);
                collect_dropped(link, now, Some(bytes), dropped, log);
                self.under_way.serve(link, now, log, observer);
                collect_dropped(link, now, None, dropped, log);
            }
        }
    }

    /// A packet that has arrived by `now`; in the order in which they arrive.
    pub fn leave(&mut self, now: Picos) -> Option<Arrived<T>> {
        self.sample(now);
        if let Model::Served(link) = &mut self.model
            && link.due() <= now
        {
            let observer = &mut observer_of(&mut self.observer);
            self.under_way.serve(link, now, &mut self.log, observer);
            collect_dropped(link, now, None, &mut self.dropped, &mut self.log);
        }
        self.under_way.pop(now)
    }

    /// A packet dropped since the last call, and why.
    pub fn take_dropped(&mut self) -> Option<(T, DropReason)> {
        self.dropped.pop_front()
    }

    /// When [`Self::leave`] has something to do, unless something enters before; `None` for never.
    pub fn due(&self) -> Option<Picos> {
        let served = match &self.model {
            Model::Served(link) if link.due() != ServedLink::<T>::NEVER => Some(link.due()),
            _ => None,
        };
        served.into_iter().chain(self.under_way.next()).min()
    }

    /// Nothing more will enter or leave.
    pub fn end(&mut self, now: Picos) {
        self.sample(now);
        if let Some(log) = self.log.take() {
            log.end(now);
        }
        if let Some(observer) = self.observer.take() {
            let [from, to] = observer.window();
            let offered = match &self.model {
                Model::Formula(link) => link.offered_bytes(from, to),
                Model::Served(link) => link.offered_bytes(from, to),
            };
            observer.on_end(now, offered);
        }
    }
}

fn observer_of(of: &mut Option<Box<dyn Observer>>) -> Option<&mut dyn Observer> {
    of.as_mut().map(|observer| &mut **observer as &mut dyn Observer)
}

/// Takes what `link` has dropped by `now`, since `arrived` bytes did.
fn collect_dropped<T: Carried>(
    link: &mut ServedLink<T>,
    now: Picos,
    arrived: Option<u32>,
    dropped: &mut VecDeque<(T, DropReason)>,
    log: &mut Option<Log>,
) {
    let at = dropped.len();
    let mut sizes = Vec::new();
    while let Some((packet, reason)) = link.take_dropped() {
        // It gives the latest first.
        dropped.insert(at, (packet.item, reason));
        sizes.push((packet.tag.bytes, reason));
    }
    let Some(log) = log else { return };
    let is_lost = sizes.iter().any(|(_, reason)| *reason == DropReason::Random);
    if let Some(bytes) = arrived.filter(|_| !is_lost) {
        log.add(now, LogEvent::Arrival { time: now, bytes });
    }
    for (bytes, reason) in sizes.into_iter().rev() {
        log_drop(log, now, bytes, reason);
    }
}

/// What random loss took has never reached the link; what a trace that is over leaves behind waits for ever, as in mahimahi.
fn log_drop(log: &mut Log, now: Picos, bytes: u32, reason: DropReason) {
    if matches!(reason, DropReason::Buffer | DropReason::Managed) {
        log.add(now, LogEvent::Drop { time: now, bytes });
    }
}

/// Packets between the transmitter and the far end.
enum UnderWay<T> {
    /// They arrive in the order in which they left.
    InOrder(VecDeque<Arrived<T>>),
    /// Jitter or reordering lets them overtake each other. The number tells packets of one moment apart.
    AnyOrder { heap: BinaryHeap<Reverse<Numbered<T>>>, next: u64 },
}

/// A packet with its number.
struct Numbered<T> {
    number: u64,
    packet: Arrived<T>,
}

impl<T> Numbered<T> {
    fn key(&self) -> (Picos, u64) {
        (self.packet.time, self.number)
    }
}

impl<T> PartialEq for Numbered<T> {
    fn eq(&self, other: &Self) -> bool {
        self.key() == other.key()
    }
}

impl<T> Eq for Numbered<T> {}

impl<T> PartialOrd for Numbered<T> {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl<T> Ord for Numbered<T> {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.key().cmp(&other.key())
    }
}

impl<T: Carried> UnderWay<T> {
    /// Nothing yet; whether times never decrease from packet to packet.
    fn new(in_order: bool) -> Self {
        match in_order {
            true => Self::InOrder(VecDeque::new()),
            false => Self::AnyOrder { heap: BinaryHeap::new(), next: 0 },
        }
    }

    /// Adds a packet.
    fn push(&mut self, packet: Arrived<T>) {
        match self {
            Self::InOrder(queue) => queue.push_back(packet),
            Self::AnyOrder { heap, next } => {
                heap.push(Reverse(Numbered { number: *next, packet }));
                *next += 1;
            }
        }
    }

    fn serve(
        &mut self,
        link: &mut ServedLink<T>,
        until: Picos,
        log: &mut Option<Log>,
        observer: &mut Option<&mut dyn Observer>,
    ) {
        while let Some(sent) = link.serve(until) {
            if let Some(log) = log {
                let (bytes, arrived) = (sent.packet.tag.bytes, sent.packet.arrived);
                log.add(until, LogEvent::Departure { time: sent.departs, bytes, arrived });
            }
            let marked = sent.packet.tag.ecn == Ecn::Marked;
            if let Some(observer) = observer {
                let (bytes, arrived) = (sent.packet.tag.bytes, sent.packet.arrived);
                let branch = sent.packet.item.branch();
                observer.on_departure(branch, arrived, sent.departs, bytes, marked);
            }
            self.push(Arrived { item: sent.packet.item, time: sent.arrives, marked });
        }
    }

    /// When the next arrives.
    fn next(&self) -> Option<Picos> {
        match self {
            Self::InOrder(queue) => queue.front().map(|packet| packet.time),
            Self::AnyOrder { heap, .. } => heap.peek().map(|Reverse(first)| first.packet.time),
        }
    }

    /// What has arrived by `now`.
    fn pop(&mut self, now: Picos) -> Option<Arrived<T>> {
        if self.next()? > now {
            return None;
        }
        match self {
            Self::InOrder(queue) => queue.pop_front(),
            Self::AnyOrder { heap, .. } => heap.pop().map(|Reverse(first)| first.packet),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use paceline_net::queue::CodelSpec;
    use paceline_net::{
        Buffer, Capacity, DelayTrace, Jitter, LossModel, PS_PER_MS, PS_PER_S, PS_PER_US, Reorder,
    };
    use proptest::prelude::*;

    impl Carried for usize {
        fn branch(&self) -> u32 {
            0
        }
    }

    impl Carried for () {
        fn branch(&self) -> u32 {
            0
        }
    }

    /// Carries packets that enter at `arrivals` (ps, bytes); the driver wakes only at times that are multiples of `tick`.
    fn carry(
        spec: LinkSpec,
        arrivals: &[(Picos, u32)],
        tick: Picos,
    ) -> Vec<Result<Picos, DropReason>> {
        let mut passage = Passage::new(spec, 3, 4, None);
        let mut fates = vec![None; arrivals.len()];
        let mut wake = |passage: &mut Passage<usize>, now| {
            let mut latest = 0;
            while let Some(arrived) = passage.leave(now) {
                assert!(arrived.time <= now && arrived.time >= latest, "in order, never early");
                latest = arrived.time;
                assert!(fates[arrived.item].replace(Ok(arrived.time)).is_none());
            }
            while let Some((item, reason)) = passage.take_dropped() {
                assert!(fates[item].replace(Err(reason)).is_none());
            }
        };
        for (item, &(now, bytes)) in arrivals.iter().enumerate() {
            while let Some(due) = passage.due()
                && due.next_multiple_of(tick) <= now
            {
                wake(&mut passage, due.next_multiple_of(tick));
            }
            passage.enter(now, Tag { bytes, ..Tag::default() }, item);
        }
        while let Some(due) = passage.due() {
            wake(&mut passage, due.next_multiple_of(tick));
        }
        wake(&mut passage, Picos::MAX);
        fates.into_iter().map(|fate| fate.expect("delivered or dropped")).collect()
    }

    #[test]
    fn a_rate_and_a_delay() {
        // 12 Mbit/s: 1500 bytes in 1 ms. One in service, one waits, the third finds no room.
        let spec = LinkSpec {
            capacity: Capacity::Constant(12e6),
            delay_ps: 20 * PS_PER_MS,
            buffer: Buffer { packets: Some(1), ..Buffer::default() },
            ..LinkSpec::default()
        };
        let fates = carry(spec, &[(0, 1500); 3], 1);
        let full = Err(DropReason::Buffer);
        assert_eq!(fates, [Ok(21 * PS_PER_MS), Ok(22 * PS_PER_MS), full]);
    }

    /// The events that are logged when packets of 1500 bytes enter at `arrivals`, us.
    fn log_of(spec: LinkSpec, arrivals: impl IntoIterator<Item = u64>) -> Vec<LogEvent> {
        let (sender, receiver) = std::sync::mpsc::channel();
        let mut passage = Passage::new(spec, 3, 4, Some(Log::new(sender)));
        for us in arrivals {
            let now = us * PS_PER_US;
            while passage.leave(now).is_some() {}
            passage.enter(now, Tag { bytes: 1500, ..Tag::default() }, ());
        }
        while let Some(due) = passage.due() {
            passage.leave(due);
        }
        passage.end(PS_PER_S);
        receiver.into_iter().flatten().collect()
    }

    #[test]
    fn a_log_has_what_reaches_the_link_leaves_it_or_is_dropped_there() {
        let queues = [QueueSpec::DropTail, QueueSpec::DropHead];
        for queue in queues.into_iter().chain([QueueSpec::Codel(CodelSpec::default())]) {
            let spec = LinkSpec {
                capacity: Capacity::Constant(12e6),
                delay_ps: 30 * PS_PER_MS,
                buffer: Buffer { packets: Some(20), ..Buffer::default() },
                loss: Some(LossModel::Periodic(10)),
                queue,
                ..LinkSpec::default()
            };
            // Twice what the link carries, for 200 ms.
            let events = log_of(spec, (0..400).map(|k| k * 500));
            let arrivals = events.iter().filter(|e| matches!(e, LogEvent::Arrival { .. })).count();
            let drops = events.iter().filter(|e| matches!(e, LogEvent::Drop { .. })).count();
            let departures: Vec<Picos> = events
                .iter()
                .filter_map(|event| match *event {
                    LogEvent::Departure { time, arrived, .. } => {
                        assert!(
                            arrived < time && time - arrived <= 21 * PS_PER_MS,
                            "no propagation"
                        );
                        Some(time)
                    }
                    _ => None,
                })
                .collect();
            assert_eq!(arrivals, 360, "one in ten does not reach the link");
            assert!(drops > 100);
            assert_eq!(departures.len() + drops, arrivals);
            assert!(departures.is_sorted());
            assert_eq!(events.last(), Some(&LogEvent::Passed { time: PS_PER_S }));
        }
    }

    fn any_spec() -> impl Strategy<Value = LinkSpec> {
        let queue = prop_oneof![
            Just(QueueSpec::DropTail),
            Just(QueueSpec::DropHead),
            Just(QueueSpec::Codel(CodelSpec::default())),
            Just(QueueSpec::FqCodel(Default::default())),
        ];
        let jitter = prop::option::of(any::<bool>().prop_map(|reorder| Jitter {
            mean_ps: PS_PER_MS,
            max_ps: 5 * PS_PER_MS,
            reorder,
        }));
        let reorder = prop::option::of(Just(Reorder { probability: 0.2, extra_ps: PS_PER_MS }));
        let changes = prop::option::of(Just("0 5\n20 30\n40.5 0\n"));
        (queue, jitter, reorder, any::<bool>(), 1u64..20, changes).prop_map(
            |(queue, jitter, reorder, loss, packets, changes)| LinkSpec {
                capacity: Capacity::Constant(12e6),
                delay_ps: 3 * PS_PER_MS,
                delay_trace: changes.map(|text| {
                    DelayTrace::parse(text.as_bytes(), "t").expect("times ascend").into()
                }),
                queue,
                buffer: Buffer { packets: Some(packets), ..Buffer::default() },
                loss: loss.then_some(LossModel::Bernoulli(0.1)),
                jitter,
                reorder,
            },
        )
    }

    proptest! {
        /// However late the driver wakes, every packet has the fate that the model gives it: the same times, the same drops.
        #[test]
        fn a_late_driver_changes_nothing(
            spec in any_spec(),
            gaps in prop::collection::vec((0u64..1500, 40u32..1500), 1..150),
            tick_us in 1u64..3000,
        ) {
            let mut now = 0;
            let arrivals: Vec<_> = gaps.into_iter().map(|(gap_us, bytes)| {
                now += gap_us * PS_PER_US;
                (now, bytes)
            }).collect();
            let exact = carry(spec.clone(), &arrivals, 1);
            prop_assert_eq!(exact, carry(spec, &arrivals, tick_us * PS_PER_US));
        }
    }
}
