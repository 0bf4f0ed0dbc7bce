//! The event loop.
//!
//! Junctions are worked on one at a time, each as far ahead as nothing that happens elsewhere can still reach it: a link's delay
//! is so much time in which two junctions cannot disturb each other. So a junction takes a whole batch of arrivals in one go, in
//! the order of their times, and the set of what is pending holds junctions, not packets. What happens at the ends is the
//! flow's business (sans-I/O: the loop hands in packets and times, and polls for packets to send).
//!
//! Order within a junction: time; then what its queue lets go; then arrivals before timers; arrivals by lane, timers by sender, then receiver. Between
//! junctions none is needed, because nothing takes effect elsewhere in the same moment.

use std::ops::ControlFlow;

use paceline_cc::Needs;
use paceline_net::queue::Tag;
use paceline_net::{Capacity, Picos, QueueSpec};

use crate::events::Entry;
use crate::flow::{Flows, PROVIDES};
use crate::link_meter::LinkMeter;
use crate::network::{Arrivals, MAX_LANES, NOWHERE, Network};
use crate::outcome::{EngineStats, Outcome};
use crate::packet::Packet;
use crate::plan::{DatagramOptions, FlowPlan, LossNotice, Plan, PlanError, Stack};
use crate::recorder::Recorder;
use crate::route::Routes;
use crate::sender::Links;
use crate::series::seconds;
use crate::telemetry::{MAX_HOPS, Stamping, has_rate};

/// The state of fewer flows stays in the cache anyway.
const FLOWS_IN_CACHE: usize = 256;
/// How many packets ahead to ask for a flow's state: more than it takes to arrive, less than would push out what is needed first.
const AHEAD: usize = 6;

pub(crate) struct Engine {
    end: Picos,
    network: Network,
    flows: Flows,
    recorder: Recorder,
    handled: u64,
    delivered: u64,
    /// Arrivals of the batch at hand.
    order: Vec<u64>,
    /// The flow whose window outgrew [`crate::plan::MAX_IN_FLIGHT`], and when.
    unbounded: Option<(usize, Picos)>,
}

impl Engine {
    pub(crate) fn new(plan: Plan) -> Result<Self, PlanError> {
        check(&plan)?;
        let Plan { links, flows, duration_ps, warmup_ps, sample_ps, seed } = plan;
        let stamping = Stamping::new(&links, &flows);
        let is_stamping = |link| stamping.as_ref().is_some_and(|stamping| stamping.is_on(link));
        let specs: Vec<_> = (0..)
            .zip(&links)
            .map(|(number, link)| (&link.spec, link.recorded || is_stamping(number)))
            .collect();
        let paths: Vec<_> = flows.iter().map(|flow| [&*flow.forward, &*flow.reverse]).collect();
        let routes = Routes::new(&specs, &paths);
        if let Some((link, lanes)) = routes.busiest().filter(|(_, lanes)| *lanes > MAX_LANES) {
            let name = &links[link as usize].name;
            return Err(PlanError::Range(format!(
                "link `{name}`: packets come to it over {lanes} different ways; at most {MAX_LANES} can be told apart"
            )));
        }
        // Senders, then receivers, if any of them keeps ACKs back.
        let mut homes: Vec<u32> =
            flows.iter().map(|flow| routes.junction(flow.forward[0])).collect();
        if flows.iter().any(|flow| flow.stack.delays_acks()) {
            homes.extend(flows.iter().map(|flow| match flow.stack.delays_acks() {
                true => routes.junction(flow.reverse[0]),
                false => NOWHERE,
            }));
        }
        let asks =
            stamping.is_some() || links.iter().any(|link| link.spec.queue != QueueSpec::DropTail);
        let tags = if asks { tags(&flows) } else { Vec::new() };
        let flows = Flows::new(flows, warmup_ps, seed, |link| links[link as usize].spec.delay_ps);
        let mut network = Network::new(links, routes, &homes, tags, stamping, seed, |name| {
            LinkMeter::new(name, warmup_ps, duration_ps, sample_ps)
        });
        for (id, (home, spec)) in (0..).zip(homes.into_iter().zip(&flows.specs)) {
            network.set_alarm(home, Entry { time: spec.start, id });
        }
        network.settle_all();
        let recorder = Recorder::new(&flows, warmup_ps, duration_ps, sample_ps);
        Ok(Self {
            end: duration_ps,
            network,
            flows,
            recorder,
            handled: 0,
            delivered: 0,
            order: Vec::new(),
            unbounded: None,
        })
    }

    /// Runs to the end, or until `watch` breaks at one of the samples: then there is no outcome.
    pub(crate) fn run(
        mut self,
        watch: &mut dyn FnMut(Picos) -> ControlFlow<()>,
    ) -> Result<Option<Outcome>, PlanError> {
        let mut sample = self.recorder.interval();
        loop {
            let until = sample.min(self.end);
            while let Some(due) = self.network.schedule.next(until) {
                let limit = self.network.horizon(due.id, due.time).min(until + 1);
                self.work(due.id, due.time, limit);
                if let Some((flow, time)) = self.unbounded {
                    let flow = self.flows.name(flow).to_string();
                    return Err(PlanError::Unbounded { flow, at_s: seconds(time) });
                }
            }
            if sample > self.end {
                return Ok(Some(self.finish()));
            }
            self.handled += 1;
            self.recorder.sample(sample, &mut self.flows, self.network.links());
            if watch(sample).is_break() {
                return Ok(None);
            }
            sample = sample.saturating_add(self.recorder.interval());
        }
    }

    /// Handles all that happens at `junction` before `limit`. Nothing does before `now`.
    fn work(&mut self, junction: u32, now: Picos, limit: Picos) {
        let mut order = std::mem::take(&mut self.order);
        match self.network.arrivals(junction, now, limit, &mut order) {
            Arrivals::OneLane(lane) => {
                self.look_ahead_of_first(lane);
                while let Some((time, packet)) = self.network.take_before(lane, limit) {
                    self.look_ahead(lane);
                    self.run_timers(junction, time);
                    self.on_arrival(junction, time, packet);
                    self.handled += 1;
                }
            }
            Arrivals::Ordered { first_lane } => {
                for &entry in &order {
                    let (time, packet) = self.network.take(first_lane, entry);
                    self.run_timers(junction, time);
                    self.on_arrival(junction, time, packet);
                }
                self.handled += order.len() as u64;
            }
        }
        self.run_timers(junction, limit);
        self.order = order;
        self.network.settle(junction, limit);
        for packet in self.network.take_dropped() {
            self.flows.dropped[packet.flow() as usize] += u64::from(packet.is_data());
        }
        if let Some(stamping) = &mut self.network.stamping {
            stamping.written.drain(..).for_each(|written| self.flows.note_telemetry(&written));
        }
    }

    /// Gets the flows ready whose packets come next.
    #[inline]
    fn look_ahead(&self, lane: usize) {
        if self.flows.len() < FLOWS_IN_CACHE {
            return;
        }
        if let Some(packet) = self.network.ahead(lane, AHEAD)
            && packet.hop() == Packet::AT_END
        {
            self.flows.prefetch(packet);
        }
        if let Some(packet) = self.network.ahead(lane, AHEAD / 2)
            && packet.hop() == Packet::AT_END
        {
            self.flows.prefetch_parts(packet);
        }
    }

    /// Gets the flows ready whose packets come first, before any of them is handled.
    fn look_ahead_of_first(&self, lane: usize) {
        if self.flows.len() < FLOWS_IN_CACHE {
            return;
        }
        for place in 0..AHEAD {
            if let Some(packet) = self.network.ahead(lane, place)
                && packet.hop() == Packet::AT_END
            {
                self.flows.prefetch(packet);
            }
        }
        for place in 0..AHEAD / 2 {
            if let Some(packet) = self.network.ahead(lane, place)
                && packet.hop() == Packet::AT_END
            {
                self.flows.prefetch_parts(packet);
            }
        }
    }

    /// Runs the timers of `junction` that expire before `limit`.
    #[inline]
    fn run_timers(&mut self, junction: u32, limit: Picos) {
        if self.network.has_alarm(junction, limit) {
            self.run_alarms(junction, limit);
        }
    }

    #[inline(never)]
    fn run_alarms(&mut self, junction: u32, limit: Picos) {
        while let Some(alarm) = self.network.first_alarm(junction, limit) {
            self.handled += 1;
            let id = self.network.end_at(junction, alarm.id);
            self.on_alarm(junction, Entry { id, ..alarm });
            self.network.put_out(junction, alarm);
        }
    }

    /// Calls out of line hand a packet on as its three words: they stay in registers, where a struct of 24 bytes would go by memory.
    #[inline(always)]
    fn on_arrival(&mut self, junction: u32, now: Picos, packet: Packet) {
        let [a, b, c] = packet.into_words();
        if packet.hop() != Packet::AT_END {
            self.transmit_words(junction, now, a, b, c);
        } else if packet.is_ack() {
            self.on_ack(junction, now, a, b, c);
        } else {
            self.on_data(junction, now, a, b, c);
        }
    }

    /// An ACK, given by its words, comes to its sender.
    fn on_ack(&mut self, junction: u32, now: Picos, a: u64, b: u64, c: u64) {
        let packet = Packet::from_words([a, b, c]);
        let flow = packet.flow() as usize;
        if let Some(sender) = &mut self.flows.senders[flow]
            && sender.on_ack(now, &packet)
        {
            self.pump(junction, now, flow);
        }
    }

    /// A data packet, given by its words, comes to its receiver.
    fn on_data(&mut self, junction: u32, now: Picos, a: u64, b: u64, c: u64) {
        let packet = Packet::from_words([a, b, c]);
        let flow = packet.flow() as usize;
        self.delivered += u64::from(packet.is_data());
        let receiver = self.flows.receiver(flow);
        let ack = receiver.on_packet(now, &packet);
        if let Some(time) = receiver.alarm(now) {
            self.set_receiver_alarm(junction, time, flow);
        }
        if let Some(ack) = ack {
            self.transmit(junction, now, ack);
        }
    }

    fn on_alarm(&mut self, junction: u32, alarm: Entry) {
        let (now, flow) = (alarm.time, alarm.id as usize);
        if let Some(flow) = flow.checked_sub(self.flows.len()) {
            while let Some(ack) = self.flows.receiver(flow).wake(now) {
                self.transmit(junction, now, ack);
            }
            if let Some(time) = self.flows.receiver(flow).alarm(now) {
                self.set_receiver_alarm(junction, time, flow);
            }
            return;
        }
        match &mut self.flows.senders[flow] {
            None => self.flows.begin(flow, now),
            Some(sender) => {
                if !sender.wake(now) {
                    if let Some(time) = sender.alarm(now) {
                        self.network.set_alarm(junction, Entry { time, id: flow as u32 });
                    }
                    return;
                }
            }
        }
        self.pump(junction, now, flow);
    }

    /// Sends what `flow` may send now and sets its timer.
    #[inline]
    fn pump(&mut self, junction: u32, now: Picos, flow: usize) {
        let Some(sender) = self.flows.senders[flow].as_deref_mut() else { return };
        if !sender.send_all(now, &mut self.network, junction) {
            self.unbounded = Some((flow, now));
            return;
        }
        if let Some(time) = sender.alarm(now) {
            self.network.set_alarm(junction, Entry { time, id: flow as u32 });
        }
    }

    #[inline(always)]
    fn transmit(&mut self, junction: u32, now: Picos, packet: Packet) {
        let [a, b, c] = packet.into_words();
        self.transmit_words(junction, now, a, b, c);
    }

    /// A packet, given by its words, enters the link of `junction`.
    fn transmit_words(&mut self, junction: u32, now: Picos, a: u64, b: u64, c: u64) {
        self.network.transmit(junction, now, Packet::from_words([a, b, c]));
    }

    fn set_receiver_alarm(&mut self, junction: u32, time: Picos, flow: usize) {
        let id = (self.flows.len() + flow) as u32;
        self.network.set_alarm(junction, Entry { time, id });
    }

    fn finish(mut self) -> Outcome {
        let mut in_flight = vec![0; self.flows.len()];
        self.network.packets(self.end, |packet| {
            in_flight[packet.flow() as usize] += u64::from(packet.is_data());
        });
        let engine =
            EngineStats { events: self.handled, packets: self.delivered, ..EngineStats::default() };
        self.recorder.finish(self.flows, self.network.into_links(), &in_flight, engine)
    }
}

/// What queues may know of the data packets of each flow.
pub(crate) fn tags(flows: &[FlowPlan]) -> Vec<Tag> {
    (0..).zip(flows).map(|(flow, plan)| Tag { flow, ..plan.tag }).collect()
}

/// What the engine takes for granted of a plan.
fn check(plan: &Plan) -> Result<(), PlanError> {
    let range = |what: String| Err(PlanError::Range(what));
    if plan.sample_ps == 0 || plan.duration_ps == 0 || plan.warmup_ps >= plan.duration_ps {
        return range("duration, sample interval and duration - warmup must be above 0".into());
    }
    if plan.flows.len() > Packet::MAX_FLOWS {
        let (count, most) = (plan.flows.len(), Packet::MAX_FLOWS);
        return range(format!("{count} flows: at most {most} can be told apart"));
    }
    for link in &plan.links {
        if let Err(error) = link.spec.check() {
            return range(format!("link `{}`: {error}", link.name));
        }
    }
    for flow in &plan.flows {
        for path in [&flow.forward, &flow.reverse] {
            if path.is_empty() || path.len() > usize::from(u8::MAX) {
                return range(format!(
                    "flow `{}`: a path has 1 to 255 links, not {}",
                    flow.name,
                    path.len()
                ));
            }
            if let Some(&link) = path.iter().find(|l| **l as usize >= plan.links.len()) {
                let (flow, count) = (flow.name.clone(), plan.links.len());
                return Err(PlanError::NoSuchLink { flow, link, count });
            }
        }
        if takes_no_time(plan, flow) {
            return Err(PlanError::Instant { flow: flow.name.clone() });
        }
        if flow.packets.payload_bytes() == 0 {
            return range(format!("flow `{}`: a packet must be larger than its header", flow.name));
        }
        let missing = flow.needs.missing_from(PROVIDES);
        if !missing.is_empty() {
            return Err(PlanError::Needs {
                flow: flow.name.clone(),
                controller: flow.controller_name.clone(),
                missing: missing.join(", "),
                stack: match flow.stack {
                    Stack::Tcp(_) => "tcp",
                    Stack::Datagram(_) => "datagram",
                },
            });
        }
        if let Some(link) = unseen_drops(plan, flow) {
            let (flow, link) = (flow.name.clone(), plan.links[link as usize].name.clone());
            return Err(PlanError::UnseenDrops { flow, link });
        }
        let hops = flow.forward.iter().filter(|link| has_rate(&plan.links[**link as usize].spec));
        let hops = hops.count();
        if flow.needs.contains(Needs::INT) && hops > MAX_HOPS {
            return range(format!(
                "flow `{}`: controller `{}` needs telemetry of {hops} links with a rate; packets have room for that of {MAX_HOPS}",
                flow.name, flow.controller_name
            ));
        }
    }
    Ok(())
}

/// The first link on the way of `flow` that drops where its sender, which wants to be told at once, does not see it.
fn unseen_drops(plan: &Plan, flow: &FlowPlan) -> Option<u32> {
    let Stack::Datagram(DatagramOptions { tell_losses: LossNotice::AtDrop, .. }) = flow.stack
    else {
        return None;
    };
    let (first, rest) = flow.forward.split_first()?;
    // A link that is asked for telemetry decides as its transmitter becomes free, as do queues other than drop-tail.
    let is_asked =
        |other: &FlowPlan| other.needs.contains(Needs::INT) && other.forward.contains(first);
    let decides_later = plan.links[*first as usize].spec.queue != QueueSpec::DropTail
        || plan.flows.iter().any(is_asked);
    let may_drop = |link: &&u32| plan.links[**link as usize].spec.may_drop();
    if decides_later { Some(*first) } else { rest.iter().find(may_drop).copied() }
}

/// Whether a packet and its ACK come round in no time, so that time would stand still.
fn takes_no_time(plan: &Plan, flow: &FlowPlan) -> bool {
    flow.forward.iter().chain(&flow.reverse).all(|link| {
        let spec = &plan.links[*link as usize].spec;
        spec.delay_ps == 0 && spec.capacity == Capacity::Unlimited
    })
}
