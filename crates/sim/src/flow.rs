//! The flows of a run: what the plan says of each, and its two ends once they exist.
//!
//! Sender and receiver share no state, so each can be worked on at its own place in time. A flow that has not begun costs its
//! row in these tables.

use std::collections::BTreeMap;

use paceline_cc::{Field, Needs, PathInfo};
use paceline_net::{PS_PER_NS, Picos};

use crate::packet::Packet;
use crate::plan::{ControllerFactory, FlowPlan, PacketSizes, Stack};
use crate::prefetch::{prefetch, prefetch_unaligned};
use crate::receiver::Receiver;
use crate::sender::Sender;
use crate::stats::Resolution;
use crate::telemetry::Written;
use crate::transfer::Transfer;

/// What every endpoint of the simulator gives a controller.
pub(crate) const PROVIDES: Needs = Needs::PACING
    .and(Needs::RATE_SAMPLE)
    .and(Needs::SEND_EVENTS)
    .and(Needs::TIMERS)
    .and(Needs::CE_COUNT)
    .and(Needs::INT)
    .and(Needs::ECT1);

/// What a plan says of a group of flows, alike but for names, starts and sizes.
#[derive(Clone, PartialEq)]
pub(crate) struct FlowKind {
    pub(crate) stack: Stack,
    pub(crate) stop: Option<Picos>,
    pub(crate) cap_bytes_per_s: Option<u64>,
    pub(crate) packets: PacketSizes,
    pub(crate) wants_send_events: bool,
    pub(crate) wants_telemetry: bool,
    pub(crate) fields: Vec<Field>,
    /// Propagation over the forward path.
    pub(crate) propagation: Picos,
}

/// What a plan says of one flow.
pub(crate) struct FlowSpec {
    pub(crate) start: Picos,
    /// Payload to transfer, bytes, or [`ENDLESS`].
    size_bytes: u64,
    /// Taken when the flow begins.
    controller: Option<ControllerFactory>,
    kind: u32,
    /// End of its name in [`Flows::names`].
    name_end: u32,
}

const ENDLESS: u64 = u64::MAX;

// Most of what a flow costs that has not begun: plans have hundreds of thousands.
const _: () = assert!(size_of::<FlowSpec>() == 40);

/// All flows.
pub(crate) struct Flows {
    seed: u64,
    warmup: Picos,
    resolution: Resolution,
    kinds: Vec<FlowKind>,
    pub(crate) specs: Vec<FlowSpec>,
    /// One after the other: a string of its own would cost each flow three times as much.
    names: String,
    /// From its start on.
    pub(crate) senders: Vec<Option<Box<Sender>>>,
    /// From the first arrival on.
    pub(crate) receivers: Vec<Option<Box<Receiver>>>,
    /// Data packets that links dropped.
    pub(crate) dropped: Vec<u64>,
}

impl Flows {
    /// The flows of a plan; `delay` tells the propagation of a link.
    pub(crate) fn new(
        plans: Vec<FlowPlan>,
        warmup: Picos,
        seed: u64,
        delay: impl Fn(u32) -> Picos,
    ) -> Self {
        let count = plans.len();
        let mut kinds = Kinds::default();
        let mut names = String::new();
        // With a room of its own: collected, the rows would stay in the plan's, which is six times as large.
        let mut specs = Vec::with_capacity(count);
        for plan in plans {
            names.push_str(&plan.name);
            let path = plan.forward.iter().map(|link| delay(*link));
            let kind = kinds.place(FlowKind {
                stack: plan.stack,
                stop: plan.stop_ps,
                cap_bytes_per_s: plan.cap_bytes_per_s,
                packets: plan.packets,
                wants_send_events: plan.needs.contains(Needs::SEND_EVENTS),
                wants_telemetry: plan.needs.contains(Needs::INT),
                fields: plan.fields,
                propagation: path.fold(0, Picos::saturating_add),
            });
            specs.push(FlowSpec {
                start: plan.start_ps,
                size_bytes: plan.size_bytes.unwrap_or(ENDLESS),
                controller: Some(plan.controller),
                kind,
                name_end: names.len() as u32,
            });
        }
        names.shrink_to_fit();
        Self {
            seed,
            warmup,
            resolution: Resolution::of_flows(count),
            specs,
            names,
            kinds: kinds.all,
            senders: (0..count).map(|_| None).collect(),
            receivers: (0..count).map(|_| None).collect(),
            dropped: vec![0; count],
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.specs.len()
    }

    /// What the plan calls `flow`.
    pub(crate) fn name(&self, flow: usize) -> &str {
        let from = flow.checked_sub(1).map_or(0, |before| self.specs[before].name_end);
        let range = from as usize..self.specs[flow].name_end as usize;
        self.names.get(range).unwrap_or_default()
    }

    pub(crate) fn kind(&self, flow: usize) -> &FlowKind {
        &self.kinds[self.kind_number(flow)]
    }

    /// Which of [`Self::kinds`] `flow` is of.
    pub(crate) fn kind_number(&self, flow: usize) -> usize {
        self.specs[flow].kind as usize
    }

    pub(crate) fn kinds(&self) -> &[FlowKind] {
        &self.kinds
    }

    /// Flow `flow` begins: makes its sender, unless it has one.
    #[cold]
    #[inline(never)]
    pub(crate) fn begin(&mut self, flow: usize, now: Picos) {
        let spec = &mut self.specs[flow];
        let Some(factory) = spec.controller.take() else { return };
        let size_bytes = Some(spec.size_bytes).filter(|size| *size != ENDLESS);
        let kind = self.kind(flow);
        let path = PathInfo {
            now_ns: now / PS_PER_NS,
            packet_bytes: u32::from(kind.packets.data_bytes),
            initial_window_packets: match kind.stack {
                Stack::Tcp(options) => options.initial_window_packets,
                Stack::Datagram(_) => 10,
            },
            seed: flow_seed(self.seed, flow as u32),
        };
        let transfer = Transfer::new(flow as u32, kind.packets, kind.stop, size_bytes);
        let sender =
            Sender::new(kind, transfer, &path, factory(&path), self.warmup, self.resolution);
        self.senders[flow] = Some(Box::new(sender));
    }

    /// A link has written into a packet on its way.
    pub(crate) fn note_telemetry(&mut self, written: &Written) {
        if let Some(sender) = &mut self.senders[written.packet.flow() as usize]
            && let Some(telemetry) = &mut sender.host_mut().telemetry
        {
            telemetry.note(written);
        }
    }

    /// Fetches the end of `packet`'s flow at which it will arrive.
    #[inline]
    pub(crate) fn prefetch(&self, packet: &Packet) {
        let flow = packet.flow() as usize;
        if packet.is_ack() {
            self.senders[flow].iter().for_each(|sender| prefetch(&**sender));
        } else {
            self.receivers[flow].iter().for_each(|receiver| prefetch_unaligned(&**receiver));
        }
    }

    /// Fetches both ends of `flow`, if there are such.
    #[inline]
    pub(crate) fn prefetch_ends(&self, flow: usize) {
        self.senders.get(flow).into_iter().flatten().for_each(|sender| prefetch(&**sender));
        self.receivers
            .get(flow)
            .into_iter()
            .flatten()
            .for_each(|receiver| prefetch_unaligned(&**receiver));
    }

    /// Fetches what that end refers to; itself it should be there by now.
    #[inline]
    pub(crate) fn prefetch_parts(&self, packet: &Packet) {
        let flow = packet.flow() as usize;
        if packet.is_ack() {
            self.senders[flow].iter().for_each(|sender| sender.prefetch_parts(packet));
        } else {
            self.receivers[flow].iter().for_each(|receiver| receiver.prefetch_parts());
        }
    }

    /// The receiving end of `flow`, made at its first use.
    #[inline]
    pub(crate) fn receiver(&mut self, flow: usize) -> &mut Receiver {
        if self.receivers[flow].is_none() {
            self.make_receiver(flow);
        }
        self.receivers[flow].as_mut().expect("made above")
    }

    #[cold]
    #[inline(never)]
    fn make_receiver(&mut self, flow: usize) {
        let receiver = Receiver::new(self.kind(flow), self.warmup, self.resolution);
        self.receivers[flow] = Some(Box::new(receiver));
    }

    /// Fetches what the statistics of `flow` are taken from and what goes with its ends; those should be there by now.
    #[inline]
    pub(crate) fn prefetch_statistics(&self, flow: usize) {
        if let Some(Some(sender)) = self.senders.get(flow) {
            sender.host().prefetch_controller();
            sender.meter.rtt.prefetch_counters();
        }
        if let Some(Some(receiver)) = self.receivers.get(flow) {
            receiver.meter.queueing.prefetch_counters();
            receiver.meter.signal.prefetch_ends();
        }
    }

    /// Memory of the tables that hold all flows, bytes.
    pub(crate) fn table_bytes(&self) -> usize {
        let row = size_of::<FlowSpec>() + 2 * size_of::<usize>() + size_of::<u64>();
        self.len() * row + self.names.len()
    }

    /// State that the ends of `flow` hold, bytes: everything but the records of packets in flight and the controller's own.
    pub(crate) fn end_bytes(&self, flow: usize) -> usize {
        let sender = self.senders[flow].as_ref().map_or(0, |sender| sender.state_bytes());
        sender + self.receivers[flow].as_ref().map_or(0, |receiver| receiver.state_bytes())
    }

    /// `flow` will not be asked for again.
    pub(crate) fn drop_ends(&mut self, flow: usize) {
        (self.senders[flow], self.receivers[flow]) = (None, None);
    }
}

/// Groups of equal flows, each kept once.
#[derive(Default)]
struct Kinds {
    all: Vec<FlowKind>,
    /// Indices by a key that equal kinds share.
    known: BTreeMap<(Picos, u64), Vec<u32>>,
}

impl Kinds {
    fn place(&mut self, kind: FlowKind) -> u32 {
        let key = (kind.propagation, kind.cap_bytes_per_s.unwrap_or(u64::MAX));
        let alike = self.known.entry(key).or_default();
        if let Some(index) = alike.iter().find(|i| self.all[**i as usize] == kind) {
            return *index;
        }
        let index = self.all.len() as u32;
        alike.push(index);
        self.all.push(kind);
        index
    }
}

/// A flow's own seed: SplitMix64 of the run's seed and its number.
pub(crate) fn flow_seed(seed: u64, index: u32) -> u64 {
    let mut z = seed.wrapping_add((u64::from(index) + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15));
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}
