//! What is measured inside the emulator: the links of each direction and, on the way of the data, the flows.

use std::sync::mpsc::Sender;
use std::sync::{Arc, OnceLock};

use paceline_emulator::Observer;
use paceline_net::Picos;
use paceline_sim::LinkOutcome;
use paceline_sim::hosted::{Delivery, LinkRecord, Window};

/// A recorded link of a direction.
pub struct ObservedLink {
    /// Its number in the plan.
    pub number: usize,
    /// What is measured of it.
    pub record: LinkRecord,
    /// Where on the way it stands.
    pub place: Place,
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
    flows: Vec<Delivery>,
    /// The port of each flow at the receiving end, known once the sockets are there.
    ports: Arc<OnceLock<Vec<u16>>>,
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
        flows: Vec<Delivery>,
        ports: Arc<OnceLock<Vec<u16>>>,
        to: Sender<Observed>,
    ) -> Self {
        Self { window, links, flows, ports, last_sample: 0, unwritable_packets: 0, to }
    }

    fn flow(&mut self, flow: u32) -> Option<&mut Delivery> {
        self.flows.get_mut(flow as usize)
    }
}

impl Observer for Watch {
    fn flow_of(&mut self, packet: &[u8]) -> u32 {
        if self.flows.is_empty() {
            return NONE;
        }
        let (Some(port), Some(ports)) = (data_port(packet), self.ports.get()) else { return NONE };
        ports.iter().position(|known| *known == port).map_or(NONE, |flow| flow as u32)
    }

    fn on_entered(&mut self, _now: Picos, flow: u32, _bytes: u32) {
        if let Some(flow) = self.flow(flow) {
            flow.on_entered();
        }
    }

    fn on_departure(&mut self, entered: Picos, departs: Picos, bytes: u32, marked: bool) {
        for link in &mut self.links {
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
            flow.on_dropped(now);
        }
    }

    fn on_delivered(&mut self, now: Picos, flow: u32, bytes: u32, entered: Picos) {
        if let Some(flow) = self.flow(flow) {
            flow.on_delivered(now, bytes, entered);
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
        let Self { flows, unwritable_packets, to, .. } = *self;
        // Whoever started the run may have given it up.
        let _ = to.send(Observed { links, flows, unwritable_packets });
    }
}

/// The destination port of an IPv4 packet that carries data: any UDP one, a TCP one with payload.
fn data_port(packet: &[u8]) -> Option<u16> {
    let first = *packet.first()?;
    let header = usize::from(first & 15) * 4;
    let is_first_fragment = packet.get(6)? & 0x1f == 0 && *packet.get(7)? == 0;
    if first >> 4 != 4 || header < 20 || !is_first_fragment {
        return None;
    }
    let transport = packet.get(header..)?;
    let port = u16::from_be_bytes([*transport.get(2)?, *transport.get(3)?]);
    match packet[9] {
        17 => Some(port),
        6 => (transport.len() > usize::from(transport.get(12)? >> 4) * 4).then_some(port),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn packet(protocol: u8, transport: &[u8]) -> Vec<u8> {
        let mut packet = vec![0; 20];
        (packet[0], packet[9]) = (0x45, protocol);
        packet.extend_from_slice(transport);
        packet
    }

    #[test]
    fn data_is_told_from_acks() {
        assert_eq!(data_port(&packet(17, &[9, 9, 1, 2, 0, 8, 0, 0])), Some(258));
        let mut tcp = [0; 20];
        (tcp[2], tcp[3], tcp[12]) = (1, 2, 5 << 4);
        assert_eq!(data_port(&packet(6, &tcp)), None, "nothing but a header");
        assert_eq!(data_port(&packet(6, &[&tcp[..], &[0]].concat())), Some(258));
        for odd in [&[][..], &[0x45], &[0x60; 60], &packet(17, &[0, 0, 1]), &packet(1, &[0; 30])] {
            assert_eq!(data_port(odd), None);
        }
    }
}
