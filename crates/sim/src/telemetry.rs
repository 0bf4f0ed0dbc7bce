//! In-band network telemetry (INT): what the links of a path tell a controller that needs it.
//!
//! A switch writes its record into a packet as that leaves the queue, the receiver copies the records into the ACK. Here packets
//! stay as small as they are: a record goes straight to the sender, which keeps it until the ACK of that packet comes. It is there
//! by then, because the packet had to pass the link first. A flow whose controller needs no telemetry has none of this.

use std::collections::BTreeMap;

use paceline_cc::{IntHop, Needs};
use paceline_net::{Capacity, LinkSpec, PS_PER_NS, Stamp};

use crate::packet::{Packet, expand};
use crate::plan::{FlowPlan, NamedLink};

/// Links with a rate on a path: a packet has room for the records of so many (HPCC, Li et al. 2019, §4.1).
pub(crate) const MAX_HOPS: usize = 5;

/// Whether a link writes into packets: if it has a rate, its own or its queue's.
pub(crate) fn has_rate(link: &LinkSpec) -> bool {
    link.capacity != Capacity::Unlimited || link.queue.rate_bps().is_some()
}

/// Which links write, and into whose packets.
pub(crate) struct Stamping {
    links: Vec<bool>,
    flows: Vec<bool>,
    /// Written in the batch at hand.
    pub(crate) written: Vec<Written>,
}

/// A link's record in one packet.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Written {
    pub(crate) packet: Packet,
    pub(crate) hop: IntHop,
}

impl Stamping {
    /// `None` if no flow needs telemetry.
    pub(crate) fn new(links: &[NamedLink], flows: &[FlowPlan]) -> Option<Box<Self>> {
        let needs = |flow: &FlowPlan| flow.needs.contains(Needs::INT);
        let mut is_crossed = vec![false; links.len()];
        for &link in flows.iter().filter(|flow| needs(flow)).flat_map(|flow| &flow.forward) {
            is_crossed[link as usize] = has_rate(&links[link as usize].spec);
        }
        let flows: Vec<bool> = flows.iter().map(needs).collect();
        let some = flows.contains(&true);
        some.then(|| Box::new(Self { links: is_crossed, flows, written: Vec::new() }))
    }

    /// Whether link number `link` writes into packets of some flow.
    pub(crate) fn is_on(&self, link: usize) -> bool {
        self.links[link]
    }

    /// `packet` has left the queue of link number `link`.
    pub(crate) fn write(
        &mut self,
        link: u32,
        packet: &Packet,
        stamp: impl FnOnce() -> Option<Stamp>,
    ) {
        let wanted =
            packet.is_data() && self.links[link as usize] && self.flows[packet.flow() as usize];
        if wanted && let Some(stamp) = stamp() {
            self.written.push(Written { packet: *packet, hop: hop(link, &stamp) });
        }
    }
}

/// The record as a controller reads it.
pub(crate) fn hop(link: u32, stamp: &Stamp) -> IntHop {
    IntHop {
        hop_id: u64::from(link),
        queue_bytes: stamp.queue_bytes,
        tx_bytes: stamp.tx_bytes,
        timestamp_ns: stamp.time / PS_PER_NS,
        link_bytes_per_s: (stamp.rate_bps / 8.0) as u64,
    }
}

/// The records in one packet, in path order.
#[derive(Clone, Copy, Debug, Default)]
struct Hops {
    hops: [IntHop; MAX_HOPS],
    count: usize,
}

/// A sender's records, by the packets that they were written into: sequence number and copy.
#[derive(Debug, Default)]
pub(crate) struct Telemetry {
    packets: BTreeMap<(u64, u8), Hops>,
    /// No record of a packet below this is asked for.
    oldest: u64,
    /// Those that the last ACK has brought.
    echoed: Hops,
}

impl Telemetry {
    /// A link has written into a packet.
    pub(crate) fn note(&mut self, written: &Written) {
        let key = (expand(self.oldest, written.packet.seq()), written.packet.copy());
        let hops = self.packets.entry(key).or_default();
        if let Some(place) = hops.hops.get_mut(hops.count) {
            *place = written.hop;
            hops.count += 1;
        }
    }

    /// An ACK has come; nothing below `oldest` is to be acknowledged any more. The ACK of a packet that had arrived before brings
    /// nothing: by then its sender has forgotten it.
    #[cold]
    #[inline(never)]
    pub(crate) fn on_ack(&mut self, seq: u64, ack: &Packet, oldest: u64) {
        let is_news = ack.flags() & Packet::DUPLICATE == 0;
        let echoed = self.packets.remove(&(seq, ack.copy())).filter(|_| is_news);
        self.echoed = echoed.unwrap_or_default();
        self.oldest = oldest;
        while self.packets.first_entry().is_some_and(|first| first.key().0 < oldest) {
            self.packets.pop_first();
        }
    }

    /// The records that the last ACK has brought.
    pub(crate) fn echoed(&self) -> &[IntHop] {
        &self.echoed.hops[..self.echoed.count]
    }
}
