//! The links of a run at work: junctions, the lanes between them, and which junction has something to do when.

use std::ops::Range;

use paceline_net::queue::{Ecn, Tag};
use paceline_net::{Link, Picos, PlainLink, QueueSpec, ServedLink};

use crate::events::{Entry, NEVER, Schedule, Tournament};
use crate::link_meter::{LinkMeter, Metered, MeteredLink, QueueLink, Recorded};
use crate::packet::{Arrival, Packet};
use crate::plan::NamedLink;
use crate::route::{LaneSpec, Routes, Step};
use crate::sender::Links;
use crate::telemetry::Stamping;
use crate::transit::Transit;

/// The entrance of a link: packets meet here, and flows' ends sit here.
struct Junction {
    link: JunctionLink,
    /// Of the link in the plan.
    number: u32,
    /// The lanes that lead here are consecutive.
    first_lane: u32,
    lanes: u32,
    /// Alarms of the ends that sit here.
    alarms: Tournament,
    /// The first of these ends in `Ends::by_junction`.
    first_end: u32,
    /// What happens elsewhere at a time t has no effect here before t plus this, ps.
    lookahead_ps: Picos,
}

enum JunctionLink {
    Plain(PlainLink),
    Metered(Box<MeteredLink>),
    Queue(Box<QueueLink>),
}

struct Lane {
    from: u32,
    to: u32,
    /// Delay of the links passed through before the first that has a rate, ps.
    delay_ps: Picos,
    /// The links passed through from there on.
    through: Box<[PlainLink]>,
    packets: Transit,
    /// No packet takes less time, ps.
    least_ps: Picos,
}

pub(crate) struct Network {
    junctions: Vec<Junction>,
    lanes: Vec<Lane>,
    /// Arrival of the first packet of each lane.
    heads: Vec<Picos>,
    steps: Vec<Step>,
    first_step: Vec<[u32; 2]>,
    ends: Ends,
    /// What queues may know of the packets of each flow; empty if no queue asks.
    tags: Vec<Tag>,
    /// Packets that links have dropped in the batch at hand.
    dropped: Vec<Packet>,
    /// If some flow needs telemetry.
    pub(crate) stamping: Option<Box<Stamping>>,
    pub(crate) schedule: Schedule,
}

/// Which ends sit where. They go by their ids: those of one junction have consecutive places in the order of their ids.
struct Ends {
    by_junction: Vec<u32>,
    /// Of each end, its place among those of its junction.
    places: Vec<u32>,
}

/// In place of a junction, for an end that never sets an alarm.
pub(crate) const NOWHERE: u32 = u32::MAX;

/// How a junction's arrivals come.
pub(crate) enum Arrivals {
    /// All over this lane.
    OneLane(usize),
    /// Over several from this one on, in an order that was worked out; or there are none.
    Ordered { first_lane: usize },
}

/// A junction of more lanes than this does not look at each of them to see how far it may go.
const FEW_LANES: u32 = 64;

/// Arrivals of one batch are ordered by words of (time since its start, lane).
const LANE_BITS: u32 = 20;
/// Most lanes that lead to one junction.
pub(crate) const MAX_LANES: usize = 1 << LANE_BITS;
/// Longest batch, ps: what such a word leaves for the time.
const LONGEST_BATCH_PS: Picos = 1 << (64 - LANE_BITS);

impl Network {
    /// `homes` are the junctions at which ends sit, by the ends' ids, or [`NOWHERE`]. `tags` are what queues may know of the data
    /// packets of each flow.
    pub(crate) fn new(
        links: Vec<NamedLink>,
        routes: Routes,
        homes: &[u32],
        tags: Vec<Tag>,
        stamping: Option<Box<Stamping>>,
        seed: u64,
        meter: impl Fn(String) -> LinkMeter,
    ) -> Self {
        let plain: Vec<_> = links.iter().map(|link| PlainLink::new(&link.spec)).collect();
        let mut junctions = Vec::with_capacity(routes.junctions.len());
        for (index, link) in links.into_iter().enumerate() {
            if routes.junctions.binary_search(&(index as u32)).is_err() {
                continue;
            }
            let is_stamping = stamping.as_ref().is_some_and(|stamping| stamping.is_on(index));
            let link = match &plain[index] {
                Some(plain) if !link.recorded && !is_stamping => JunctionLink::Plain(plain.clone()),
                _ => {
                    let (stream, meter) = (index as u64, link.recorded.then(|| meter(link.name)));
                    if link.spec.queue == QueueSpec::DropTail && !is_stamping {
                        let model = Link::new(link.spec, seed, stream);
                        JunctionLink::Metered(Box::new(Metered { model, meter }))
                    } else {
                        let model = ServedLink::new(link.spec, seed, stream);
                        JunctionLink::Queue(Box::new(Metered { model, meter }))
                    }
                }
            };
            junctions.push(Junction {
                link,
                number: index as u32,
                first_lane: 0,
                lanes: 0,
                alarms: Tournament::new(0),
                first_end: 0,
                lookahead_ps: NEVER,
            });
        }
        let mut lanes = Vec::with_capacity(routes.lanes.len());
        for (number, spec) in (0..).zip(&routes.lanes) {
            let junction: &mut Junction = &mut junctions[spec.to as usize];
            if junction.lanes == 0 {
                junction.first_lane = number;
            }
            junction.lanes += 1;
            junction.lookahead_ps = junction.lookahead_ps.min(spec.least_ps);
            lanes.push(Lane::new(spec, &plain));
        }
        let ends = Ends::new(homes, &mut junctions);
        let schedule = Schedule::new(junctions.len() as u32);
        let Routes { steps, first_step, .. } = routes;
        let heads = vec![NEVER; lanes.len()];
        let dropped = Vec::new();
        Self { junctions, lanes, heads, steps, first_step, ends, tags, dropped, stamping, schedule }
    }

    /// Up to when, exclusively, `junction` may work if nothing anywhere is due before `now`.
    ///
    /// What is still to come over a lane leaves the junction at its other end no earlier than that has something to do: what
    /// is due there now, or what reaches it from now on.
    pub(crate) fn horizon(&self, junction: u32, now: Picos) -> Picos {
        let this = &self.junctions[junction as usize];
        let soonest = if this.lanes <= FEW_LANES {
            self.lanes[this.lanes()]
                .iter()
                .map(|lane| {
                    let due =
                        if lane.from == junction { now } else { self.schedule.due(lane.from) };
                    let reached = self.junctions[lane.from as usize].lookahead_ps;
                    due.min(now.saturating_add(reached)).saturating_add(lane.least_ps)
                })
                .min()
                .unwrap_or(NEVER)
        } else {
            now.saturating_add(this.lookahead_ps)
        };
        soonest.min(now.saturating_add(LONGEST_BATCH_PS))
    }

    /// Looks for the arrivals at `junction` before `limit`. If they come over several lanes, `order` then holds one word for
    /// each, in the order in which to [`Self::take`] them.
    #[inline]
    pub(crate) fn arrivals(
        &self,
        junction: u32,
        now: Picos,
        limit: Picos,
        order: &mut Vec<u64>,
    ) -> Arrivals {
        order.clear();
        let lanes = self.junctions[junction as usize].lanes();
        let heads = &self.heads[lanes.clone()];
        let mut waiting = (0..).zip(heads).filter(|(_, head)| **head < limit).map(|(rank, _)| rank);
        let ordered = Arrivals::Ordered { first_lane: lanes.start };
        let Some(first) = waiting.next() else { return ordered };
        let next = waiting.next();
        if next.is_none() {
            return Arrivals::OneLane(lanes.start + first);
        }
        for rank in std::iter::once(first).chain(next).chain(waiting) {
            let lane = &self.lanes[lanes.start + rank];
            lane.packets.before(limit, |time| order.push((time - now) << LANE_BITS | rank as u64));
        }
        // The stable sort, because it finds the runs that the lanes are.
        order.sort();
        ordered
    }

    /// Takes the first packet of the lane that an entry of [`Self::arrivals`] names, counted from `first_lane`. What `heads` says
    /// of the lane is out of date until [`Self::settle`].
    #[inline]
    pub(crate) fn take(&mut self, first_lane: usize, entry: u64) -> (Picos, Packet) {
        let lane = first_lane + (entry & ((1 << LANE_BITS) - 1)) as usize;
        let Arrival { time, packet } =
            self.lanes[lane].packets.pop().expect("an entry stands for a packet on its lane");
        (time, packet)
    }

    /// Takes the first packet of `lane` if it arrives before `limit`. As with [`Self::take`].
    #[inline]
    pub(crate) fn take_before(&mut self, lane: usize, limit: Picos) -> Option<(Picos, Packet)> {
        let arrival = self.lanes[lane].packets.pop_before(limit)?;
        Some((arrival.time, arrival.packet))
    }

    /// The packet `places` behind the first on `lane`.
    #[inline]
    pub(crate) fn ahead(&self, lane: usize, places: usize) -> Option<&Packet> {
        self.lanes[lane].packets.ahead(places)
    }

    /// Sets the alarm of an end at `junction`, which takes note of it when it next settles.
    #[inline]
    pub(crate) fn set_alarm(&mut self, junction: u32, alarm: Entry) {
        let this = &mut self.junctions[junction as usize];
        this.alarms.set(self.ends.places[alarm.id as usize], alarm.time);
    }

    /// Whether an alarm at `junction` goes off before `limit`.
    #[inline]
    pub(crate) fn has_alarm(&self, junction: u32, limit: Picos) -> bool {
        self.junctions[junction as usize].alarms.first().time < limit
    }

    /// The first alarm at `junction` if it goes off before `limit`, by the place of its end; to be handled, and then
    /// [`Self::put_out`].
    #[inline]
    pub(crate) fn first_alarm(&self, junction: u32, limit: Picos) -> Option<Entry> {
        Some(self.junctions[junction as usize].alarms.first()).filter(|alarm| alarm.time < limit)
    }

    /// The end at `junction` that has this place there.
    #[inline]
    pub(crate) fn end_at(&self, junction: u32, place: u32) -> u32 {
        self.ends.by_junction[(self.junctions[junction as usize].first_end + place) as usize]
    }

    /// Puts out an alarm that was handled, unless that has set another in its stead.
    #[inline]
    pub(crate) fn put_out(&mut self, junction: u32, alarm: Entry) {
        let alarms = &mut self.junctions[junction as usize].alarms;
        // Nothing was before it, so if it is still set it is still the first.
        if alarms.first() == alarm {
            alarms.set(alarm.id, NEVER);
        }
    }

    /// Settles all junctions before the first has worked.
    pub(crate) fn settle_all(&mut self) {
        for junction in 0..self.junctions.len() {
            self.settle(junction as u32, 0);
        }
    }

    /// After `junction` has worked up to `limit`: notes when it is due again.
    pub(crate) fn settle(&mut self, junction: u32, limit: Picos) {
        let due = self.junctions[junction as usize].link.due();
        if due < limit {
            self.serve(junction, limit - 1);
        }
        let this = &mut self.junctions[junction as usize];
        let mut next = this.alarms.first().time.min(this.link.due());
        let lanes = this.lanes();
        for (lane, head) in self.lanes[lanes.clone()].iter().zip(&mut self.heads[lanes]) {
            if *head < limit {
                *head = lane.packets.due();
            }
            next = next.min(*head);
        }
        self.schedule.renew(junction, next);
    }

    /// A packet, given by its words, is dropped; counted with those of the batch.
    #[cold]
    #[inline(never)]
    fn drop_packet(&mut self, a: u64, b: u64, c: u64) {
        self.dropped.push(Packet::from_words([a, b, c]));
    }

    /// `packet` leaves the link of its junction at `time` for the lane that it takes from there.
    #[inline(always)]
    fn enter_lane(&mut self, time: Picos, packet: Packet) {
        let first = self.first_step[packet.flow() as usize][usize::from(packet.is_ack())];
        let step = self.steps[first as usize + usize::from(packet.hop())];
        let packet = packet.at_hop(step.hop);
        let lane = &mut self.lanes[step.lane as usize];
        let mut time = time.saturating_add(lane.delay_ps);
        for link in &mut lane.through {
            time = link.arrival(time, u32::from(packet.bytes()));
        }
        if lane.packets.push(time, packet) {
            self.heads[step.lane as usize] = time;
            self.schedule.arm(lane.to, time);
        }
    }

    /// A packet, given by its words, comes to a link whose queue decides. What is due there comes first: also in the very moment.
    #[cold]
    #[inline(never)]
    fn queue(&mut self, junction: u32, now: Picos, a: u64, b: u64, c: u64) {
        let packet = Packet::from_words([a, b, c]);
        self.serve(junction, now);
        let tag = tag_of(&self.tags[packet.flow() as usize], &packet);
        if let JunctionLink::Queue(link) = &mut self.junctions[junction as usize].link {
            link.model.arrive(now, tag, packet);
        }
        self.serve(junction, now);
    }

    /// Lets a link whose queue decides serve what is due up to and including `until`.
    #[inline(never)]
    fn serve(&mut self, junction: u32, until: Picos) {
        loop {
            let Junction { link, number, .. } = &mut self.junctions[junction as usize];
            let JunctionLink::Queue(link) = link else { return };
            let served = link.serve(until);
            self.dropped.extend(std::iter::from_fn(|| link.take_dropped()));
            let Some((time, packet)) = served else { return };
            if let Some(stamping) = &mut self.stamping {
                stamping.write(*number, &packet, || link.model.stamp());
            }
            self.enter_lane(time, packet);
        }
    }

    /// Takes the packets that were dropped, and the memory for them: a burst of drops should not cost it for good.
    #[inline]
    pub(crate) fn take_dropped(&mut self) -> Vec<Packet> {
        std::mem::take(&mut self.dropped)
    }

    /// The links that keep a record, and more.
    pub(crate) fn links(&mut self) -> impl Iterator<Item = &mut dyn Recorded> {
        self.junctions.iter_mut().filter_map(|junction| match &mut junction.link {
            JunctionLink::Plain(_) => None,
            JunctionLink::Metered(link) => Some(&mut **link as &mut dyn Recorded),
            JunctionLink::Queue(link) => Some(&mut **link as &mut dyn Recorded),
        })
    }

    /// See [`Self::links`].
    pub(crate) fn into_links(self) -> impl Iterator<Item = Box<dyn Recorded>> {
        self.junctions.into_iter().filter_map(|junction| match junction.link {
            JunctionLink::Plain(_) => None,
            JunctionLink::Metered(link) => Some(link as Box<dyn Recorded>),
            JunctionLink::Queue(link) => Some(link as Box<dyn Recorded>),
        })
    }

    /// Calls `each` with every packet on its way at `now`, the end: queues are emptied.
    pub(crate) fn packets(&mut self, now: Picos, mut each: impl FnMut(&Packet)) {
        self.lanes.iter().for_each(|lane| lane.packets.for_each(&mut each));
        for junction in &mut self.junctions {
            if let JunctionLink::Queue(link) = &mut junction.link {
                link.model.drain(now).iter().for_each(&mut each);
            }
        }
    }
}

impl Links for Network {
    #[inline(always)]
    fn transmit(&mut self, junction: u32, now: Picos, packet: Packet) -> bool {
        let time = match &mut self.junctions[junction as usize].link {
            JunctionLink::Plain(link) => link.arrival(now, u32::from(packet.bytes())),
            JunctionLink::Metered(link) => match link.transmit(now, packet.bytes()) {
                Some(time) => time,
                None => {
                    let [a, b, c] = packet.into_words();
                    self.drop_packet(a, b, c);
                    return false;
                }
            },
            JunctionLink::Queue(_) => {
                let [a, b, c] = packet.into_words();
                self.queue(junction, now, a, b, c);
                return true;
            }
        };
        self.enter_lane(time, packet);
        true
    }
}

/// What a queue may know of `packet`, of a flow whose data packets have the tag `of_flow`. An ACK goes the other way and says that
/// it cannot be marked.
pub(crate) fn tag_of(of_flow: &Tag, packet: &Packet) -> Tag {
    let bytes = u32::from(packet.bytes());
    if packet.is_ack() {
        let [from, to] = of_flow.hosts;
        return Tag { bytes, hosts: [to, from], ecn: Ecn::NotCapable, ..*of_flow };
    }
    let ecn = if packet.is_marked() { Ecn::Marked } else { of_flow.ecn };
    Tag { bytes, ecn, ..*of_flow }
}

impl JunctionLink {
    /// When the link has something to do by itself.
    #[inline]
    fn due(&self) -> Picos {
        match self {
            Self::Plain(_) | Self::Metered(_) => NEVER,
            Self::Queue(link) => link.model.due(),
        }
    }
}

impl Ends {
    fn new(homes: &[u32], junctions: &mut [Junction]) -> Self {
        let mut by_junction: Vec<u32> =
            (0..).zip(homes).filter(|(_, home)| **home != NOWHERE).map(|(id, _)| id).collect();
        by_junction.sort_by_key(|id| homes[*id as usize]);
        let mut places = vec![0; homes.len()];
        let mut first = 0;
        for ends in by_junction.chunk_by(|a, b| homes[*a as usize] == homes[*b as usize]) {
            for (place, end) in (0..).zip(ends) {
                places[*end as usize] = place;
            }
            let junction = &mut junctions[homes[ends[0] as usize] as usize];
            (junction.alarms, junction.first_end) = (Tournament::new(ends.len() as u32), first);
            first += ends.len() as u32;
        }
        by_junction.shrink_to_fit();
        Self { by_junction, places }
    }
}

impl Junction {
    /// The lanes that lead here.
    #[inline]
    fn lanes(&self) -> Range<usize> {
        let first = self.first_lane as usize;
        first..first + self.lanes as usize
    }
}

impl Lane {
    fn new(spec: &LaneSpec, plain: &[Option<PlainLink>]) -> Self {
        let links = || spec.through.iter().filter_map(|link| plain[*link as usize].as_ref());
        let delays = links().take_while(|link| link.is_pure_delay());
        Self {
            from: spec.from,
            to: spec.to,
            delay_ps: delays.map(PlainLink::least_ps).fold(0, Picos::saturating_add),
            through: links().skip_while(|link| link.is_pure_delay()).cloned().collect(),
            packets: Transit::new(spec.in_order),
            least_ps: spec.least_ps,
        }
    }
}
