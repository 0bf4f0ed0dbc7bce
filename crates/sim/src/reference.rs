//! The event loop as one would write it down first: every packet is one event per link, all events are in one ordered set.
//!
//! Slow and plain, it is what the engine must agree with, to the last bit of every outcome. Ends, links and meters are the
//! same; what differs is all that the engine does for speed: lanes, batches, links passed through, alarms left standing.

use std::collections::{BTreeMap, BTreeSet};

use paceline_cc::Needs;
use paceline_net::queue::Tag;
use paceline_net::{Capacity, Link, LinkSpec, Picos, QueueSpec, ServedLink, Stamp};

use crate::engine::tags;
use crate::events::NEVER;
use crate::flow::Flows;
use crate::link_meter::{LinkMeter, Metered, MeteredLink, QueueLink, Recorded};
use crate::network::tag_of;
use crate::outcome::{EngineStats, Outcome};
use crate::packet::Packet;
use crate::plan::Plan;
use crate::recorder::Recorder;
use crate::telemetry::{Written, has_rate, hop};

/// What happens. At one time, queues come before arrivals, arrivals before timers, and the sample is last.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Event {
    /// The queue of this link may be due.
    Queue(u32),
    /// At the end of this link.
    Arrival(u32),
    /// An end's timer may be due.
    Sender(u32),
    Receiver(u32),
    Sample,
}

enum AnyLink {
    Formula(Box<MeteredLink>),
    Queue(Box<QueueLink>),
}

impl AnyLink {
    fn recorded(&mut self) -> &mut dyn Recorded {
        match self {
            Self::Formula(link) => &mut **link,
            Self::Queue(link) => &mut **link,
        }
    }

    fn into_recorded(self) -> Box<dyn Recorded> {
        match self {
            Self::Formula(link) => link,
            Self::Queue(link) => link,
        }
    }
}

struct Loop {
    /// By time, event, and order of entry.
    pending: BTreeMap<(Picos, Event, u64), Option<Packet>>,
    entered: u64,
    links: Vec<AnyLink>,
    /// For when each link's queue has been entered in `pending` last.
    entered_due: Vec<Picos>,
    paths: Vec<[Vec<u32>; 2]>,
    tags: Vec<Tag>,
    flows: Flows,
    delivered: u64,
    /// By link: what has passed through it, counted apart from its own counts.
    ledgers: Vec<Ledger>,
}

/// Bytes at a link whose queue decides.
#[derive(Clone)]
struct Ledger {
    spec: LinkSpec,
    stamps: bool,
    entered: u64,
    dropped: u64,
    left: u64,
}

impl Ledger {
    /// What a packet of `bytes` that leaves the queue at `now` is told.
    fn stamp(&self, now: Picos, bytes: u64) -> Stamp {
        let capacity_bps = match &self.spec.capacity {
            Capacity::Unlimited => f64::INFINITY,
            Capacity::Constant(bps) => *bps,
            Capacity::Steps(steps) => {
                steps.iter().rfind(|step| step.0 <= now).expect("a step from 0 on").1
            }
            Capacity::Trace { trace, .. } => trace.mean_bps(),
        };
        Stamp {
            time: now,
            queue_bytes: self.entered - self.dropped - self.left,
            tx_bytes: self.left - bytes,
            rate_bps: capacity_bps.min(self.spec.queue.rate_bps().unwrap_or(f64::INFINITY)),
        }
    }
}

/// Runs `plan`, which must be valid.
pub(crate) fn run(plan: Plan) -> Outcome {
    let Plan { links, flows, duration_ps: end, warmup_ps, sample_ps, seed } = plan;
    let paths = flows.iter().map(|f| [f.forward.clone(), f.reverse.clone()]).collect();
    let tags = tags(&flows);
    let needing = flows.iter().filter(|flow| flow.needs.contains(Needs::INT));
    let stamping: BTreeSet<u32> = needing.flat_map(|flow| flow.forward.iter().copied()).collect();
    let ledgers = (0..).zip(&links).map(|(number, link)| Ledger {
        spec: link.spec.clone(),
        stamps: stamping.contains(&number) && has_rate(&link.spec),
        entered: 0,
        dropped: 0,
        left: 0,
    });
    let ledgers: Vec<Ledger> = ledgers.collect();
    let flows = Flows::new(flows, warmup_ps, seed, |link| links[link as usize].spec.delay_ps);
    let links = (0..).zip(links).map(|(index, link)| {
        let meter = link.recorded.then(|| LinkMeter::new(link.name, warmup_ps, end, sample_ps));
        if link.spec.queue == QueueSpec::DropTail && !ledgers[index as usize].stamps {
            let model = Link::new(link.spec, seed, index);
            return AnyLink::Formula(Box::new(Metered { model, meter }));
        }
        let model = ServedLink::new(link.spec, seed, index);
        AnyLink::Queue(Box::new(Metered { model, meter }))
    });
    let links: Vec<AnyLink> = links.collect();
    let mut recorder = Recorder::new(&flows, warmup_ps, end, sample_ps);
    let pending = BTreeMap::new();
    let entered_due = vec![NEVER; links.len()];
    let mut this =
        Loop { pending, entered: 0, links, entered_due, paths, tags, flows, delivered: 0, ledgers };
    for flow in 0..this.flows.len() {
        this.add(this.flows.specs[flow].start, Event::Sender(flow as u32), None);
    }
    this.add(sample_ps, Event::Sample, None);
    while let Some((&(now, event, _), _)) = this.pending.first_key_value()
        && now <= end
    {
        let packet = this.pending.pop_first().and_then(|(_, packet)| packet);
        match (event, packet) {
            (Event::Sample, _) => {
                recorder.sample(now, &mut this.flows, this.links.iter_mut().map(AnyLink::recorded));
                this.add(now + sample_ps, Event::Sample, None);
            }
            (Event::Queue(link), _) => this.serve(now, link),
            (Event::Sender(flow), _) => this.on_sender_timer(now, flow as usize),
            (Event::Receiver(flow), _) => this.on_receiver_timer(now, flow as usize),
            (Event::Arrival(_), Some(packet)) => this.on_arrival(now, packet),
            (Event::Arrival(_), None) => unreachable!("arrivals are entered with their packet"),
        }
    }
    let mut in_flight = vec![0; this.flows.len()];
    for packet in this.pending.values().flatten() {
        in_flight[packet.flow() as usize] += u64::from(packet.is_data());
    }
    for link in &mut this.links {
        let AnyLink::Queue(link) = link else { continue };
        for packet in link.model.drain(end) {
            in_flight[packet.flow() as usize] += u64::from(packet.is_data());
        }
    }
    let engine = EngineStats { packets: this.delivered, ..EngineStats::default() };
    recorder.finish(
        this.flows,
        this.links.into_iter().map(AnyLink::into_recorded),
        &in_flight,
        engine,
    )
}

impl Loop {
    fn add(&mut self, time: Picos, event: Event, packet: Option<Packet>) {
        self.entered += 1;
        self.pending.insert((time, event, self.entered), packet);
    }

    /// `packet`, that enters `link` or leaves its queue at `now`, arrives at its end. What the engine's batches rest on is put to
    /// the test: no passage takes less than the link's delay, or than 1 ps.
    fn add_passage(&mut self, now: Picos, link: u32, arrives: Picos, packet: Packet) {
        let least = self.ledgers[link as usize].spec.delay_ps.max(1);
        assert!(arrives >= now.saturating_add(least), "link {link}: from {now} to {arrives} ps");
        self.add(arrives, Event::Arrival(link), Some(packet));
    }

    /// `packet` is at the end of the link it was on.
    fn on_arrival(&mut self, now: Picos, packet: Packet) {
        let flow = packet.flow() as usize;
        let path = &self.paths[flow][usize::from(packet.is_ack())];
        if usize::from(packet.hop()) + 1 < path.len() {
            self.transmit(now, packet.at_hop(packet.hop() + 1));
        } else if packet.is_ack() {
            if let Some(sender) = &mut self.flows.senders[flow] {
                sender.on_ack(now, &packet);
            }
            self.send(now, flow);
        } else {
            self.delivered += u64::from(packet.is_data());
            if let Some(ack) = self.flows.receiver(flow).on_packet(now, &packet) {
                self.transmit(now, ack);
            }
            self.set_receiver_timer(now, flow);
        }
    }

    /// Puts `packet` on the link of its path that it is to cross; false when that drops it at once.
    fn transmit(&mut self, now: Picos, packet: Packet) -> bool {
        let flow = packet.flow() as usize;
        let link = self.paths[flow][usize::from(packet.is_ack())][usize::from(packet.hop())];
        self.serve(now, link);
        let mut passes = true;
        match &mut self.links[link as usize] {
            AnyLink::Queue(queue) => {
                self.ledgers[link as usize].entered += u64::from(packet.bytes());
                queue.model.arrive(now, tag_of(&self.tags[flow], &packet), packet);
            }
            AnyLink::Formula(model) => match model.transmit(now, packet.bytes()) {
                Some(arrives) => self.add_passage(now, link, arrives, packet),
                None => {
                    passes = false;
                    self.flows.dropped[flow] += u64::from(packet.is_data());
                }
            },
        }
        self.serve(now, link);
        passes
    }

    /// Lets the queue of `link`, if it has one, decide as often as it is due.
    fn serve(&mut self, now: Picos, link: u32) {
        loop {
            let AnyLink::Queue(queue) = &mut self.links[link as usize] else { return };
            let served = queue.serve(now);
            let ledger = &mut self.ledgers[link as usize];
            while let Some(packet) = queue.take_dropped() {
                ledger.dropped += u64::from(packet.bytes());
                self.flows.dropped[packet.flow() as usize] += u64::from(packet.is_data());
            }
            let due = queue.model.due();
            if let Some((_, packet)) = &served {
                ledger.left += u64::from(packet.bytes());
                if ledger.stamps && packet.is_data() {
                    let hop = hop(link, &ledger.stamp(now, u64::from(packet.bytes())));
                    self.flows.note_telemetry(&Written { packet: *packet, hop });
                }
            }
            match served {
                Some((arrives, packet)) => self.add_passage(now, link, arrives, packet),
                None if due == NEVER || due == self.entered_due[link as usize] => return,
                None => {
                    self.entered_due[link as usize] = due;
                    return self.add(due, Event::Queue(link), None);
                }
            }
        }
    }

    fn on_sender_timer(&mut self, now: Picos, flow: usize) {
        let due = match &mut self.flows.senders[flow] {
            Some(sender) => sender.wake(now),
            None => {
                self.flows.begin(flow, now);
                true
            }
        };
        if due {
            self.send(now, flow);
        }
    }

    fn send(&mut self, now: Picos, flow: usize) {
        while let Some(packet) = self.flows.senders[flow].as_mut().and_then(|s| s.poll_send(now)) {
            let passes = self.transmit(now, packet);
            if !passes
                && packet.is_data()
                && let Some(sender) = &mut self.flows.senders[flow]
            {
                sender.on_drop(now, &packet);
            }
        }
        let Some(sender) = &mut self.flows.senders[flow] else { return };
        sender.note_completion(now);
        let deadline = sender.deadline();
        if deadline != NEVER {
            self.add(deadline.max(now + 1), Event::Sender(flow as u32), None);
        }
    }

    fn on_receiver_timer(&mut self, now: Picos, flow: usize) {
        while let Some(ack) = self.flows.receiver(flow).wake(now) {
            self.transmit(now, ack);
        }
        self.set_receiver_timer(now, flow);
    }

    fn set_receiver_timer(&mut self, now: Picos, flow: usize) {
        let deadline = self.flows.receiver(flow).deadline();
        if deadline != NEVER {
            self.add(deadline.max(now + 1), Event::Receiver(flow as u32), None);
        }
    }
}

#[cfg(test)]
#[path = "reference_tests.rs"]
mod tests;
