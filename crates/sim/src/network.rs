//! The links of a run at work: junctions, the lanes between them, and which junction has something to do when.

use paceline_net::{Link, Picos, Verdict};

use crate::events::{Entry, Heap, NEVER, Schedule};
use crate::link_meter::{LinkMeter, MeteredLink};
use crate::packet::Packet;
use crate::plan::NamedLink;
use crate::route::{Onward, Routes, Step};
use crate::transit::Transit;

/// The entrance of a link: packets meet here, and flows' ends sit here.
struct Junction {
    link: MeteredLink,
    /// Its lanes are `lanes[first_lane..]`, one per entry of `heads`.
    first_lane: u32,
    /// Arrival of the first packet of each lane.
    heads: Vec<Picos>,
    /// Timers of the ends that sit here.
    timers: Heap,
    /// What happens elsewhere at a time t has no effect here before t plus this, ps.
    lookahead_ps: Picos,
}

struct Lane {
    from: u32,
    to: u32,
    /// Place among the lanes of the junction it leads to.
    rank: u32,
    /// No packet takes less time, ps.
    least_ps: Picos,
    packets: Transit,
}

pub(crate) struct Network {
    junctions: Vec<Junction>,
    lanes: Vec<Lane>,
    through: Vec<Link>,
    steps: Vec<Step>,
    first_step: Vec<[u32; 2]>,
    pub(crate) schedule: Schedule,
}

/// A junction of more lanes than this does not look at each of them to see how far it may go.
const FEW_LANES: usize = 64;

/// Arrivals of one batch are ordered by words of (time since its start, lane).
const LANE_BITS: u32 = 20;
/// Longest batch, ps: what is left of a word for the time.
const LONGEST_BATCH_PS: Picos = 1 << (64 - LANE_BITS);

impl Network {
    pub(crate) fn new(
        links: Vec<NamedLink>,
        routes: Routes,
        seed: u64,
        meter: impl Fn(String) -> LinkMeter,
    ) -> Self {
        let mut junctions = Vec::with_capacity(routes.junctions.len());
        let mut through = Vec::with_capacity(routes.through.len());
        for (index, link) in links.into_iter().enumerate() {
            let model = Link::new(link.spec, seed, index as u64);
            if routes.through.binary_search(&(index as u32)).is_ok() {
                through.push(model);
                continue;
            }
            junctions.push(Junction {
                link: MeteredLink { model, meter: link.recorded.then(|| meter(link.name)) },
                first_lane: 0,
                heads: Vec::new(),
                timers: Heap::default(),
                lookahead_ps: NEVER,
            });
        }
        let mut lanes = Vec::with_capacity(routes.lanes.len());
        for (number, lane) in (0..).zip(&routes.lanes) {
            let junction = &mut junctions[lane.to as usize];
            if junction.heads.is_empty() {
                junction.first_lane = number;
            }
            junction.lookahead_ps = junction.lookahead_ps.min(lane.least_ps);
            let rank = junction.heads.len() as u32;
            junction.heads.push(NEVER);
            lanes.push(Lane {
                from: lane.from,
                to: lane.to,
                rank,
                least_ps: lane.least_ps,
                packets: Transit::new(lane.in_order),
            });
        }
        let schedule = Schedule::new(junctions.len());
        let Routes { steps, first_step, .. } = routes;
        Self { junctions, lanes, through, steps, first_step, schedule }
    }

    /// Up to when, exclusively, `junction` may work if nothing anywhere is due before `now`.
    ///
    /// What is still to come over a lane leaves the junction at its other end no earlier than that has something to do: what
    /// is due there now, or what reaches it from now on.
    pub(crate) fn horizon(&self, junction: u32, now: Picos) -> Picos {
        let this = &self.junctions[junction as usize];
        let soonest = if this.heads.len() <= FEW_LANES {
            self.lanes_of(junction)
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

    fn lanes_of(&self, junction: u32) -> impl Iterator<Item = &Lane> {
        let this = &self.junctions[junction as usize];
        self.lanes[this.first_lane as usize..].iter().take(this.heads.len())
    }

    /// The arrivals at `junction` before `limit`, in the order in which to [`Self::take`] them, as its lanes' numbers with
    /// the time since `now`.
    #[inline]
    pub(crate) fn arrivals(&self, junction: u32, now: Picos, limit: Picos, order: &mut Vec<u64>) {
        order.clear();
        let this = &self.junctions[junction as usize];
        let mut sorted = true;
        for (rank, _) in (0..).zip(&this.heads).filter(|(_, head)| **head < limit) {
            let lane = &self.lanes[(this.first_lane + rank) as usize];
            sorted &= order.is_empty() && lane.packets.is_in_order();
            lane.packets
                .before(limit, |time| order.push((time - now) << LANE_BITS | u64::from(rank)));
        }
        if !sorted {
            order.sort_unstable();
        }
    }

    /// Time and lane of an entry of [`Self::arrivals`].
    #[inline]
    pub(crate) fn arrival(entry: u64, now: Picos) -> (Picos, u32) {
        (now + (entry >> LANE_BITS), entry as u32 & ((1 << LANE_BITS) - 1))
    }

    /// Takes the first packet of a lane, whose head is then out of date until [`Self::settle`].
    #[inline]
    pub(crate) fn take(&mut self, junction: u32, rank: u32) -> Option<Packet> {
        let lane = self.junctions[junction as usize].first_lane + rank;
        self.lanes[lane as usize].packets.pop()
    }

    /// Sets a timer at `junction`, which takes note of it when it next settles.
    #[inline]
    pub(crate) fn set_timer(&mut self, junction: u32, timer: Entry) {
        self.junctions[junction as usize].timers.push(timer);
    }

    /// Takes the first timer of `junction` before `limit`.
    #[inline]
    pub(crate) fn expired(&mut self, junction: u32, limit: Picos) -> Option<Entry> {
        let timers = &mut self.junctions[junction as usize].timers;
        let first = timers.peek().filter(|timer| timer.time < limit)?;
        timers.pop();
        Some(first)
    }

    /// Settles all junctions before the first has worked.
    pub(crate) fn settle_all(&mut self) {
        for junction in 0..self.junctions.len() {
            self.settle(junction as u32, 0);
        }
    }

    /// After `junction` has worked up to `limit`: notes when it is due again.
    pub(crate) fn settle(&mut self, junction: u32, limit: Picos) {
        let this = &mut self.junctions[junction as usize];
        let mut next = this.timers.peek().map_or(NEVER, |timer| timer.time);
        for (lane, head) in self.lanes[this.first_lane as usize..].iter().zip(&mut this.heads) {
            if *head < limit {
                *head = lane.packets.due();
            }
            next = next.min(*head);
        }
        self.schedule.arm(junction, next);
    }

    /// Puts `packet` on the link of `junction`; false when it is dropped.
    #[inline]
    pub(crate) fn transmit(&mut self, junction: u32, now: Picos, packet: Packet) -> bool {
        let arrives = self.junctions[junction as usize].link.transmit(now, packet.bytes);
        if let Some(time) = arrives {
            self.carry(time, packet);
        }
        arrives.is_some()
    }

    /// `packet` reaches the end of its link at `time`: takes it to its next junction.
    #[inline]
    fn carry(&mut self, mut time: Picos, mut packet: Packet) {
        let first = self.first_step[packet.flow as usize][usize::from(packet.is_ack())];
        loop {
            let step = self.steps[first as usize + usize::from(packet.hop)];
            packet.hop = step.hop;
            match step.onward {
                Onward::Through(link) => {
                    let link = &mut self.through[link as usize];
                    if let Verdict::Pass { arrives, .. } =
                        link.enqueue(time, u32::from(packet.bytes))
                    {
                        time = arrives;
                    }
                }
                Onward::Lane(lane) => {
                    let lane = &mut self.lanes[lane as usize];
                    if lane.packets.push(time, packet) {
                        self.junctions[lane.to as usize].heads[lane.rank as usize] = time;
                        self.schedule.arm(lane.to, time);
                    }
                    return;
                }
            }
        }
    }

    /// The links that are junctions.
    pub(crate) fn links(&mut self) -> impl Iterator<Item = &mut MeteredLink> {
        self.junctions.iter_mut().map(|junction| &mut junction.link)
    }

    pub(crate) fn into_links(self) -> impl Iterator<Item = MeteredLink> {
        self.junctions.into_iter().map(|junction| junction.link)
    }

    /// All packets on their way.
    pub(crate) fn packets(&self) -> impl Iterator<Item = Packet> {
        self.lanes.iter().flat_map(|lane| lane.packets.packets())
    }
}
