//! The event loop.
//!
//! A packet crosses a link in one step: `paceline_net` computes at once when it will arrive, and the link keeps it in a
//! queue of arrivals of which only the head is a pending event. What happens at the ends is the flow's business (sans-I/O:
//! the loop hands in packets and times, and polls for packets to send).

use std::ops::ControlFlow;

use paceline_net::{Capacity, Link, Picos, Verdict};

use crate::events::{Actor, Events, NEVER};
use crate::flow::{Flow, PROVIDES};
use crate::link_meter::LinkMeter;
use crate::outcome::{EngineStats, Outcome};
use crate::packet::Packet;
use crate::plan::{FlowPlan, MAX_IN_FLIGHT, Plan, PlanError, Stack};
use crate::recorder::Recorder;
use crate::series::seconds;
use crate::stats::Resolution;
use crate::transit::RunningLink;

pub(crate) struct Engine {
    now: Picos,
    end: Picos,
    seed: u64,
    events: Events,
    links: Vec<RunningLink>,
    flows: Vec<Flow>,
    recorder: Recorder,
    handled: u64,
    /// The flow whose window outgrew [`MAX_IN_FLIGHT`].
    unbounded: Option<usize>,
}

impl Engine {
    pub(crate) fn new(plan: Plan) -> Result<Self, PlanError> {
        check(&plan)?;
        let Plan { links, flows, duration_ps, warmup_ps, sample_ps, seed } = plan;
        let links: Vec<RunningLink> = links
            .into_iter()
            .enumerate()
            .map(|(index, link)| {
                let model = Link::new(link.spec, seed, index as u64);
                let meter = link
                    .recorded
                    .then(|| LinkMeter::new(link.name, warmup_ps, duration_ps, sample_ps));
                RunningLink::new(model, meter)
            })
            .collect();
        let resolution = Resolution::of_flows(flows.len());
        let flows: Vec<Flow> = flows
            .into_iter()
            .map(|flow| {
                let propagation =
                    flow.forward.iter().map(|l| links[*l as usize].model.delay_ps()).sum();
                Flow::new(flow, warmup_ps, propagation, resolution)
            })
            .collect();
        let mut events = Events::new(links.len() + 2 * flows.len() + 1);
        for (index, flow) in flows.iter().enumerate() {
            events.arm((links.len() + index) as Actor, flow.spec.start);
        }
        events.arm((links.len() + 2 * flows.len()) as Actor, sample_ps);
        let recorder = Recorder::new(&flows, warmup_ps, duration_ps, sample_ps);
        let (end, now) = (duration_ps, 0);
        Ok(Self { now, end, seed, events, links, flows, recorder, handled: 0, unbounded: None })
    }

    /// Runs to the end, or until `watch` breaks at one of the samples: then there is no outcome.
    pub(crate) fn run(
        mut self,
        watch: &mut dyn FnMut(Picos) -> ControlFlow<()>,
    ) -> Result<Option<Outcome>, PlanError> {
        let (senders, receivers) = (self.links.len(), self.links.len() + self.flows.len());
        let recorder = receivers + self.flows.len();
        while let Some((time, actor)) = self.events.next(self.end) {
            debug_assert!(time >= self.now, "time went back");
            self.now = time;
            self.handled += 1;
            let actor = actor as usize;
            if actor < senders {
                self.on_arrival(actor);
            } else if actor < receivers {
                let flow = actor - senders;
                self.flows[flow].on_sender_timer(time, flow as u32, self.seed);
                self.pump(flow);
            } else if actor < recorder {
                self.pump_receiver(actor - receivers);
            } else {
                self.recorder.sample(time, &mut self.flows, &mut self.links);
                self.events.arm(actor as Actor, time + self.recorder.interval());
                if watch(time).is_break() {
                    return Ok(None);
                }
            }
            if let Some(flow) = self.unbounded {
                let flow = self.flows[flow].spec.name.clone();
                return Err(PlanError::Unbounded { flow, at_s: seconds(time) });
            }
        }
        Ok(Some(self.finish()))
    }

    /// The head of link `index` reaches the far end.
    #[inline]
    fn on_arrival(&mut self, index: usize) {
        let link = &mut self.links[index];
        let Some(mut packet) = link.on_the_way.pop() else { return };
        let next = link.on_the_way.due();
        if next != NEVER {
            self.events.arm(index as Actor, next);
        }
        packet.hop += 1;
        let flow = &mut self.flows[packet.flow as usize];
        let path = if packet.is_ack() { &flow.reverse } else { &flow.forward };
        if let Some(&hop) = path.get(packet.hop as usize) {
            return self.transmit(hop, packet);
        }
        let index = packet.flow as usize;
        if packet.is_ack() {
            flow.on_ack(self.now, &packet);
            self.pump(index);
        } else {
            if packet.is_data() {
                self.recorder.delivered += 1;
            }
            if let Some(ack) = flow.on_data(self.now, &packet) {
                let first = flow.reverse[0];
                self.transmit(first, ack);
            }
            self.arm_receiver(index);
        }
    }

    /// Puts `packet` on a link.
    #[inline]
    fn transmit(&mut self, index: u32, packet: Packet) {
        let link = &mut self.links[index as usize];
        match link.model.enqueue(self.now, u32::from(packet.bytes)) {
            Verdict::Pass { departs, arrives } => {
                if let Some(meter) = &mut link.meter {
                    meter.on_departure(self.now, departs, packet.bytes);
                }
                link.on_the_way.push(arrives, packet);
                // Behind another packet this is a no-op: the head is already armed, and not later.
                self.events.arm(index, arrives);
            }
            Verdict::Drop(_) => {
                if let Some(meter) = &mut link.meter {
                    meter.drops += 1;
                }
                if packet.is_data() {
                    self.flows[packet.flow as usize].meter.dropped_packets += 1;
                }
            }
        }
    }

    /// Sends what flow `index` may send now and arms its timer.
    #[inline]
    fn pump(&mut self, index: usize) {
        while let Some(packet) = self.flows[index].poll_send(self.now) {
            if self.flows[index].in_flight() >= MAX_IN_FLIGHT {
                self.unbounded = Some(index);
                return;
            }
            let first = self.flows[index].forward[0];
            self.transmit(first, packet);
        }
        let deadline = self.flows[index].sender_deadline(self.now);
        if deadline != NEVER {
            self.events.arm((self.links.len() + index) as Actor, deadline.max(self.now + 1));
        }
    }

    fn pump_receiver(&mut self, index: usize) {
        while let Some(ack) = self.flows[index].poll_receiver(self.now) {
            let first = self.flows[index].reverse[0];
            self.transmit(first, ack);
        }
        self.arm_receiver(index);
    }

    #[inline]
    fn arm_receiver(&mut self, index: usize) {
        let deadline = self.flows[index].receiver_deadline();
        if deadline != NEVER {
            let actor = self.links.len() + self.flows.len() + index;
            self.events.arm(actor as Actor, deadline.max(self.now + 1));
        }
    }

    fn finish(self) -> Outcome {
        let mut in_flight = vec![0; self.flows.len()];
        for packet in self.links.iter().flat_map(|l| l.on_the_way.packets()) {
            in_flight[packet.flow as usize] += u64::from(packet.is_data());
        }
        let engine = EngineStats {
            events: self.handled,
            packets: self.recorder.delivered,
            cpu_s: 0.0,
            bytes_per_flow: self.flows.iter().map(Flow::state_bytes).sum::<usize>() as f64
                / self.flows.len().max(1) as f64,
        };
        self.recorder.finish(self.flows, self.links, &in_flight, engine)
    }
}

/// What the engine takes for granted of a plan.
fn check(plan: &Plan) -> Result<(), PlanError> {
    let range = |what: String| Err(PlanError::Range(what));
    if plan.sample_ps == 0 || plan.duration_ps == 0 || plan.warmup_ps >= plan.duration_ps {
        return range("duration, sample interval and duration - warmup must be above 0".into());
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
    }
    Ok(())
}

/// Whether a packet and its ACK come round in no time, so that time would stand still.
fn takes_no_time(plan: &Plan, flow: &FlowPlan) -> bool {
    flow.forward.iter().chain(&flow.reverse).all(|link| {
        let spec = &plan.links[*link as usize].spec;
        spec.delay_ps == 0 && spec.capacity == Capacity::Unlimited
    })
}
