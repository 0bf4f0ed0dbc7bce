//! What is measured of programs behind an emulated link: both directions, and the flows in them.
//!
//! The meters are those of a run whose flows are known beforehand; here the end is open and flows are what comes by. In go the
//! packets of a direction as the emulator shows them to its observers, out comes an [`Outcome`].

use std::collections::{HashMap, VecDeque};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::mpsc::Sender;

use paceline_emulator::Observer;
use paceline_net::{Link, LinkSpec, PS_PER_MS, Picos, QueueSpec, ServedLink};
use paceline_sim::hosted::{Delivery, LinkRecord, SenderRecord, SenderSample, Window};
use paceline_sim::{EngineStats, FlowOutcome, LinkOutcome, Outcome};

/// Distance of the samples.
const SAMPLE: Picos = 100 * PS_PER_MS;
/// The most flows of a direction that have a line of their own; those that come later share one.
const MOST_FLOWS: usize = 100;

/// Who sends to whom.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Ports {
    /// TCP, or else UDP.
    is_tcp: bool,
    from: SocketAddr,
    to: SocketAddr,
}

/// A flow while it runs.
struct Flow {
    ports: Option<Ports>,
    delivery: Delivery,
    sender: SenderRecord,
    sent_bytes: u64,
    sampled_bytes: u64,
}

/// A packet that has come to the link and leaves it at `departs`.
struct Leaving {
    entered: Picos,
    departs: Picos,
    bytes: u32,
    marked: bool,
}

/// Watches one direction.
pub struct Traffic {
    name: &'static str,
    spec: LinkSpec,
    window: Window,
    link: LinkRecord,
    /// Departures that the model knows ahead of their time.
    leaving: VecDeque<Leaving>,
    /// The first is what belongs to none of the others.
    flows: Vec<Flow>,
    numbers: HashMap<Ports, u32>,
    last_sample: Picos,
    unwritable_packets: u64,
    end: Picos,
    to: Sender<Traffic>,
}

/// A flow in a finished direction.
#[derive(Clone, Debug)]
pub struct SeenFlow {
    /// Direction, protocol and ends, such as `uplink tcp 198.18.0.2:40000 > 198.18.0.1:5201`; the direction alone for the packets of no
    /// such flow.
    pub name: String,
    /// `tcp`, `udp`, or `mixed` where the name is a direction's.
    pub stack: &'static str,
    /// Headers in each packet, bytes: IP and transport without options.
    pub header_bytes: u16,
}

/// What came of both directions.
#[derive(Clone, Debug)]
pub struct Seen {
    /// Links and flows, uplink first.
    pub outcome: Outcome,
    /// Of each flow of the outcome, what it was.
    pub flows: Vec<SeenFlow>,
    /// When the later of the two directions ended, s.
    pub duration_s: f64,
    /// Packets that a device at the far end refused.
    pub unwritable_packets: u64,
}

impl Traffic {
    /// Watches the direction `name` of the link `spec`, and goes to `to` in the end.
    pub fn new(name: &'static str, spec: LinkSpec, to: Sender<Self>) -> Self {
        let window = Window { warmup: 0, end: Picos::MAX, sample: SAMPLE };
        let link = LinkRecord::new(name.into(), window);
        let mut traffic = Self {
            name,
            spec,
            window,
            link,
            leaving: VecDeque::new(),
            flows: Vec::new(),
            numbers: HashMap::new(),
            last_sample: 0,
            unwritable_packets: 0,
            end: 0,
            to,
        };
        traffic.add_flow(0, None);
        traffic
    }

    /// A flow that begins at `start`. Returns its number.
    fn add_flow(&mut self, start: Picos, ports: Option<Ports>) -> u32 {
        let number = self.flows.len() as u32;
        self.flows.push(Flow {
            ports,
            delivery: Delivery::new(self.window, self.spec.delay_ps, 0),
            sender: SenderRecord::new(start, None, Vec::new(), self.window),
            sent_bytes: 0,
            sampled_bytes: 0,
        });
        number
    }

    fn flow(&mut self, flow: u32) -> &mut Flow {
        // Numbers come from `flow_of`.
        &mut self.flows[flow as usize]
    }

    /// Records what has left the link by `now`.
    fn depart_until(&mut self, now: Picos) {
        while let Some(packet) = self.leaving.front().filter(|packet| packet.departs <= now) {
            self.link.on_departure(packet.entered, packet.departs, packet.bytes, packet.marked);
            self.leaving.pop_front();
        }
    }

    /// What came of it in a run that ended at `end`.
    fn finish(mut self, end: Picos) -> (LinkOutcome, Vec<(SeenFlow, FlowOutcome)>) {
        self.link.close(end);
        self.depart_until(Picos::MAX);
        let offered = match self.spec.queue {
            QueueSpec::DropTail => Link::new(self.spec, 0, 0).offered_bytes(0, end),
            _ => ServedLink::<()>::new(self.spec, 0, 0).offered_bytes(0, end),
        };
        let (name, alone) = (self.name, self.numbers.is_empty());
        let is_seen = |flow: &Flow| flow.ports.is_some() || flow.delivery.entered_packets() > 0;
        let flows = self.flows.into_iter().filter(|flow| alone || is_seen(flow));
        let flows = flows.map(|flow| flow.finish(name, end)).collect();
        (self.link.finish(offered), flows)
    }
}

impl Flow {
    fn finish(self, direction: &str, end: Picos) -> (SeenFlow, FlowOutcome) {
        let (name, stack, header_bytes) = match self.ports {
            None => (direction.to_string(), "mixed", 20),
            Some(Ports { is_tcp, from, to }) => {
                let (stack, transport) = if is_tcp { ("tcp", 20) } else { ("udp", 8) };
                let ip = if from.is_ipv4() { 20 } else { 40 };
                (format!("{direction} {stack} {from} > {to}"), stack, ip + transport)
            }
        };
        let Self { mut delivery, mut sender, .. } = self;
        delivery.close(end);
        sender.sent_packets = delivery.entered_packets();
        let mut outcome = delivery.outcome(sender);
        // Nobody here knows what is sent a second time.
        outcome.goodput_bps = f64::NAN;
        (SeenFlow { name, stack, header_bytes }, outcome)
    }
}

impl Observer for Traffic {
    fn flow_of(&mut self, packet: &[u8]) -> u32 {
        let Some(ports) = ports_of(packet) else { return 0 };
        if let Some(known) = self.numbers.get(&ports) {
            return *known;
        }
        if self.flows.len() > MOST_FLOWS {
            return 0;
        }
        let number = self.add_flow(self.last_sample, Some(ports));
        self.numbers.insert(ports, number);
        number
    }

    fn on_entered(&mut self, now: Picos, flow: u32, bytes: u32) {
        let last_sample = self.last_sample;
        let flow = self.flow(flow);
        if flow.ports.is_some() && flow.delivery.entered_packets() == 0 {
            // The sample of this very moment has been taken.
            flow.sender.begin(if now == last_sample && now > 0 { now + 1 } else { now });
        }
        flow.sent_bytes += u64::from(bytes);
        flow.delivery.on_entered();
    }

    fn on_departure(
        &mut self,
        _branch: u32,
        entered: Picos,
        departs: Picos,
        bytes: u32,
        marked: bool,
    ) {
        self.leaving.push_back(Leaving { entered, departs, bytes, marked });
    }

    fn on_dropped(&mut self, now: Picos, flow: u32, _bytes: u32) {
        self.link.on_dropped(now);
        self.flow(flow).delivery.on_dropped(now);
    }

    fn on_delivered(&mut self, now: Picos, flow: u32, bytes: u32, entered: Picos) {
        self.depart_until(now);
        self.flow(flow).delivery.on_delivered(now, bytes, entered);
    }

    fn on_unwritable(&mut self, _flow: u32) {
        self.unwritable_packets += 1;
    }

    fn next_sample(&self) -> Option<(Picos, Picos)> {
        Some((self.last_sample, self.last_sample + SAMPLE))
    }

    fn on_sample(&mut self, now: Picos, offered: Option<f64>, waiting: u64) {
        self.depart_until(now);
        self.last_sample = now;
        self.link.sample(now, offered, waiting);
        for flow in &mut self.flows {
            let sent_bytes = flow.sent_bytes - flow.sampled_bytes;
            flow.sampled_bytes = flow.sent_bytes;
            flow.sender.push(
                now,
                &SenderSample {
                    send_bps: sent_bytes as f64 * 8e12 / SAMPLE as f64,
                    cwnd_bytes: f64::NAN,
                    in_flight_bytes: f64::NAN,
                    sent_packets: flow.delivery.entered_packets() as f64,
                    pacing_bps: f64::NAN,
                    rtt_ms: f64::NAN,
                    srtt_ms: f64::NAN,
                    retransmitted_packets: f64::NAN,
                },
            );
        }
    }

    fn window(&self) -> [Picos; 2] {
        [0, 0]
    }

    fn on_end(mut self: Box<Self>, now: Picos, _offered: Option<f64>) {
        self.end = now;
        let to = self.to.clone();
        // Whoever started the run may have given it up.
        let _ = to.send(*self);
    }
}

/// What came of the two directions, once both have ended.
pub fn finish(directions: [Traffic; 2]) -> Seen {
    let end = directions.iter().map(|direction| direction.end).max().unwrap_or_default().max(1);
    let unwritable_packets = directions.iter().map(|d| d.unwritable_packets).sum();
    let (mut links, mut seen, mut flows) = (Vec::new(), Vec::new(), Vec::new());
    for direction in directions {
        let (link, of_direction) = direction.finish(end);
        links.push(link);
        for (flow, outcome) in of_direction {
            seen.push(flow);
            flows.push(outcome);
        }
    }
    let packets = flows.iter().map(|flow| flow.delivered_packets).sum();
    let engine = EngineStats { packets, cpu_s: f64::NAN, bytes_per_flow: f64::NAN, events: 0 };
    let outcome = Outcome { flows, links, engine };
    Seen { outcome, flows: seen, duration_s: end as f64 / 1e12, unwritable_packets }
}

/// Protocol, addresses and ports of an IP packet with TCP or UDP in it; `None` for others and for later fragments.
fn ports_of(packet: &[u8]) -> Option<Ports> {
    let first = *packet.first()?;
    let (protocol, ends, transport): (u8, [IpAddr; 2], &[u8]) = match first >> 4 {
        4 if packet.get(6)? & 0x1f == 0 && *packet.get(7)? == 0 => {
            let address = |at: usize| {
                let bytes: [u8; 4] = packet.get(at..at + 4)?.try_into().ok()?;
                Some(IpAddr::from(Ipv4Addr::from(bytes)))
            };
            let header = usize::from(first & 15) * 4;
            (*packet.get(9)?, [address(12)?, address(16)?], packet.get(header..)?)
        }
        6 => {
            let address = |at: usize| {
                let bytes: [u8; 16] = packet.get(at..at + 16)?.try_into().ok()?;
                Some(IpAddr::from(Ipv6Addr::from(bytes)))
            };
            (*packet.get(6)?, [address(8)?, address(24)?], packet.get(40..)?)
        }
        _ => return None,
    };
    let port = |at: usize| Some(u16::from_be_bytes([*transport.get(at)?, *transport.get(at + 1)?]));
    let [from, to] = ends;
    let (from, to) = (SocketAddr::new(from, port(0)?), SocketAddr::new(to, port(2)?));
    matches!(protocol, 6 | 17).then_some(Ports { is_tcp: protocol == 6, from, to })
}

#[cfg(test)]
mod tests {
    use super::*;
    use paceline_net::{Capacity, PS_PER_S};
    use std::sync::mpsc;

    /// An IPv4 packet of a protocol to a port.
    fn packet(protocol: u8, to: u16) -> Vec<u8> {
        let mut packet = vec![0; 28];
        (packet[0], packet[9], packet[15], packet[19]) = (0x45, protocol, 1, 2);
        packet[22..24].copy_from_slice(&to.to_be_bytes());
        packet
    }

    fn ended(traffic: Traffic, end: Picos, from: &mpsc::Receiver<Traffic>) -> Traffic {
        Box::new(traffic).on_end(end, None);
        from.recv().unwrap()
    }

    #[test]
    fn flows_are_told_apart_by_protocol_and_ends() {
        let named = |packet: &[u8]| {
            ports_of(packet).map(|ports| format!("{} {} {}", ports.is_tcp, ports.from, ports.to))
        };
        assert_eq!(named(&packet(17, 258)).unwrap(), "false 0.0.0.1:0 0.0.0.2:258");
        assert_eq!(named(&packet(6, 80)).unwrap(), "true 0.0.0.1:0 0.0.0.2:80");
        let mut six = vec![0; 48];
        (six[0], six[6], six[23], six[39], six[43]) = (0x60, 17, 1, 2, 53);
        assert_eq!(named(&six).unwrap(), "false [::1]:0 [::2]:53");
        let mut fragment = packet(17, 258);
        fragment[7] = 1;
        for odd in [&[][..], &[0x45], &[0x60; 39], &packet(1, 9), &fragment, &packet(17, 1)[..21]] {
            assert_eq!(named(odd), None);
        }
    }

    #[test]
    fn a_direction_by_hand() {
        // 12 Mbit/s and 20 ms: packets of 1500 bytes take a ms. Four come at once, of which the last is dropped; the third is on its
        // way when all ends, at 22.5 ms.
        let (to, from) = mpsc::channel();
        let capacity = Capacity::Constant(12e6);
        let spec = LinkSpec { capacity, delay_ps: 20 * PS_PER_MS, ..LinkSpec::default() };
        let mut up = Traffic::new("uplink", spec, to.clone());
        let flow = up.flow_of(&packet(17, 9));
        assert_eq!((flow, up.flow_of(&packet(1, 9))), (1, 0));
        for k in 1..=3 {
            up.on_entered(0, flow, 1500);
            up.on_departure(0, 0, k * PS_PER_MS, 1500, false);
        }
        up.on_entered(0, flow, 1500);
        up.on_dropped(0, flow, 1500);
        for k in 1..=2 {
            up.on_delivered((20 + k) * PS_PER_MS, flow, 1500, 0);
        }
        let down = Traffic::new("downlink", LinkSpec::default(), to);
        let end = 22 * PS_PER_MS + PS_PER_MS / 2;
        let seen = finish([ended(up, end, &from), ended(down, PS_PER_MS, &from)]);
        let names: Vec<&str> = seen.flows.iter().map(|flow| &*flow.name).collect();
        assert_eq!(names, ["uplink udp 0.0.0.1:0 > 0.0.0.2:9", "downlink"]);
        assert_eq!((seen.duration_s, seen.flows[0].header_bytes), (0.0225, 28));
        let Outcome { flows, links, .. } = seen.outcome;
        let counts = |flow: &FlowOutcome| {
            [flow.sent_packets, flow.delivered_packets, flow.lost_packets, flow.in_flight_packets]
        };
        assert_eq!((counts(&flows[0]), counts(&flows[1])), ([4, 2, 1, 1], [0; 4]));
        // All three have left the link: 4500 bytes in 22.5 ms.
        assert!((links[0].throughput_bps - 1.6e6).abs() < 1.0);
        assert!((links[0].capacity_bps.unwrap() - 12e6).abs() < 1.0);
        assert_eq!((links[0].drops, links[0].queue_ms.unwrap().max), (1, 3.0));
        assert_eq!((links[1].capacity_bps, links[1].throughput_bps), (None, 0.0));
        assert!((flows[0].throughput_bps - 3000.0 * 8.0 / 0.0225).abs() < 1.0);
        assert_eq!(flows[0].queueing_delay_ms.unwrap().max, 2.0);
        assert!(flows[0].goodput_bps.is_nan());
    }

    #[test]
    fn what_has_not_left_by_the_end_was_not_carried() {
        let (to, from) = mpsc::channel();
        let spec = LinkSpec { capacity: Capacity::Constant(4e6), ..LinkSpec::default() };
        let mut up = Traffic::new("uplink", spec, to.clone());
        for k in 1..=20u64 {
            up.on_entered(0, 0, 50_000);
            up.on_departure(0, 0, k * 100 * PS_PER_MS, 50_000, false);
        }
        for k in 1..=10 {
            up.on_sample(k * SAMPLE, Some(50_000.0), 0);
        }
        let down = Traffic::new("downlink", LinkSpec::default(), to);
        let seen = finish([ended(up, PS_PER_S, &from), ended(down, 0, &from)]);
        let link = &seen.outcome.links[0];
        assert!((link.utilization.unwrap() - 1.0).abs() < 1e-9);
        assert_eq!(link.series.column("throughput_bps").unwrap().values, [4e6; 10]);
        assert_eq!(link.queue_ms.unwrap().max, 2000.0, "of all that came");
    }

    #[test]
    fn flows_beyond_the_most_share_a_line() {
        let (to, from) = mpsc::channel();
        let mut up = Traffic::new("uplink", LinkSpec::default(), to);
        for port in 0..300 {
            let flow = up.flow_of(&packet(17, port));
            up.on_entered(0, flow, 100);
        }
        let (_, flows) = ended(up, PS_PER_S, &from).finish(PS_PER_S);
        assert_eq!(flows.len(), MOST_FLOWS + 1);
        assert_eq!((flows[0].0.name.as_str(), flows[0].1.sent_packets), ("uplink", 200));
    }
}
