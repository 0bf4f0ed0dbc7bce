//! What is measured inside the emulator: the links of each direction and, on the way of the data, the flows.

use std::sync::mpsc::Sender;

use paceline_emulator::Observer;
use paceline_net::Picos;
use paceline_sim::LinkOutcome;
use paceline_sim::hosted::{Delivery, LinkRecord, Window};

use crate::ports::{Ports, Side};

/// A recorded link of a direction.
pub struct ObservedLink {
    /// Its number in the plan.
    pub number: usize,
    /// What is measured of it.
    pub record: LinkRecord,
    /// Where on the way it stands.
    pub place: Place,
    /// Of each branch, whether it leads over this link; `None` where all do.
    pub branches: Option<Vec<bool>>,
}

impl ObservedLink {
    fn is_on(&self, branch: u32) -> bool {
        let crossed = |branches: &Vec<bool>| branches.get(branch as usize).copied();
        self.branches.as_ref().is_none_or(|branches| crossed(branches).unwrap_or(false))
    }
}

/// What is measured of a flow.
pub struct ObservedFlow {
    /// The meters.
    pub delivery: Delivery,
    /// How long before it comes to the link with the queue a packet has been sent, ps.
    pub before: Picos,
}

/// Where a link stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// A delay before the one with the queue: packets leave it, at once, so long before they come to that, ps.
    Before(Picos),
    /// The one with the queue.
    Queue,
    /// A delay behind it: packets come to it so long after they left that, ps.
    Behind(Picos),
}

/// What came of a direction.
pub struct Observed {
    /// Its links by their numbers in the plan.
    pub links: Vec<(usize, LinkOutcome)>,
    /// Its flows, in the order of the plan; none on the way of the ACKs.
    pub flows: Vec<Delivery>,
    /// Data packets that the device at the far end refused.
    pub unwritable_packets: u64,
}

/// Watches one direction.
pub struct Watch {
    window: Window,
    links: Vec<ObservedLink>,
    flows: Vec<ObservedFlow>,
    ports: Ports,
    last_sample: Picos,
    unwritable_packets: u64,
    to: Sender<Observed>,
}

/// "Of no flow."
const NONE: u32 = u32::MAX;

impl Watch {
    /// Tells `to` in the end.
    pub fn new(
        window: Window,
        links: Vec<ObservedLink>,
        flows: Vec<ObservedFlow>,
        ports: Ports,
        to: Sender<Observed>,
    ) -> Self {
        Self { window, links, flows, ports, last_sample: 0, unwritable_packets: 0, to }
    }

    fn flow(&mut self, flow: u32) -> Option<&mut ObservedFlow> {
        self.flows.get_mut(flow as usize)
    }
}

impl Observer for Watch {
    fn flow_of(&mut self, packet: &[u8]) -> u32 {
        if self.flows.is_empty() {
            return NONE;
        }
        match self.ports.flow_of(packet, Side::Data) {
            Some((flow, true)) => flow,
            _ => NONE,
        }
    }

    fn on_entered(&mut self, _now: Picos, flow: u32, _bytes: u32) {
        if let Some(flow) = self.flow(flow) {
            flow.delivery.on_entered();
        }
    }

    fn on_departure(
        &mut self,
        branch: u32,
        entered: Picos,
        departs: Picos,
        bytes: u32,
        marked: bool,
    ) {
        for link in self.links.iter_mut().filter(|link| link.is_on(branch)) {
            let (entered, departs, marked) = match link.place {
                Place::Queue => (entered, departs, marked),
                Place::Before(delay) => {
                    let at = entered.saturating_sub(delay);
                    (at, at, false)
                }
                Place::Behind(delay) => (departs + delay, departs + delay, false),
            };
            link.record.on_departure(entered, departs, bytes, marked);
        }
    }

    fn on_dropped(&mut self, now: Picos, flow: u32, _bytes: u32) {
        for link in self.links.iter_mut().filter(|link| link.place == Place::Queue) {
            link.record.on_dropped(now);
        }
        if let Some(flow) = self.flow(flow) {
            flow.delivery.on_dropped(now);
        }
    }

    fn on_delivered(&mut self, now: Picos, flow: u32, bytes: u32, entered: Picos) {
        if let Some(flow) = self.flow(flow) {
            flow.delivery.on_delivered(now, bytes, entered.saturating_sub(flow.before));
        }
    }

    fn on_unwritable(&mut self, flow: u32) {
        self.unwritable_packets += u64::from(flow != NONE);
    }

    fn next_sample(&self) -> Option<(Picos, Picos)> {
        let next = self.last_sample + self.window.sample;
        (next <= self.window.end).then_some((self.last_sample, next))
    }

    fn on_sample(&mut self, now: Picos, offered: Option<f64>, waiting: u64) {
        self.last_sample = now;
        for link in &mut self.links {
            match link.place {
                Place::Queue => link.record.sample(now, offered, waiting),
                Place::Before(_) | Place::Behind(_) => link.record.sample(now, None, 0),
            }
        }
    }

    fn window(&self) -> [Picos; 2] {
        [self.window.warmup, self.window.end]
    }

    fn on_end(self: Box<Self>, _now: Picos, offered: Option<f64>) {
        let finish = |link: ObservedLink| {
            let offered = offered.filter(|_| link.place == Place::Queue);
            (link.number, link.record.finish(offered))
        };
        let links = self.links.into_iter().map(finish).collect();
        let flows = self.flows.into_iter().map(|flow| flow.delivery).collect();
        let Self { unwritable_packets, to, .. } = *self;
        // Whoever started the run may have given it up.
        let _ = to.send(Observed { links, flows, unwritable_packets });
    }
}
