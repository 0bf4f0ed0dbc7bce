//! A flow in the engine: its two ends and its meter.

use paceline_cc::rtt::RttEstimator;
use paceline_cc::{Field, Needs, PathInfo};
use paceline_net::{PS_PER_NS, Picos};

use crate::datagram::{DatagramReceiver, DatagramSender};
use crate::events::NEVER;
use crate::host::{Host, SendCounters};
use crate::meter::FlowMeter;
use crate::packet::Packet;
use crate::plan::{ControllerFactory, FlowPlan, PacketSizes, Stack};
use crate::stats::Resolution;
use crate::tcp::{Arrived, TcpReceiver, TcpSender};
use crate::transfer::Transfer;

/// What every endpoint of the simulator gives a controller.
pub(crate) const PROVIDES: Needs =
    Needs::PACING.and(Needs::RATE_SAMPLE).and(Needs::SEND_EVENTS).and(Needs::TIMERS);

enum Ends {
    /// Not begun: no state but the means to make it.
    Waiting(ControllerFactory),
    Tcp(Box<TcpSender>, TcpReceiver),
    Datagram(Box<DatagramSender>, DatagramReceiver),
}

/// The parts of a plan that a running flow consults.
pub(crate) struct FlowSpec {
    pub(crate) name: String,
    pub(crate) stack: Stack,
    pub(crate) start: Picos,
    pub(crate) stop: Option<Picos>,
    size_bytes: Option<u64>,
    cap_bytes_per_s: Option<u64>,
    packets: PacketSizes,
    wants_send_events: bool,
    pub(crate) fields: Vec<Field>,
}

pub(crate) struct Flow {
    pub(crate) spec: FlowSpec,
    ends: Ends,
    pub(crate) meter: FlowMeter,
    /// Links of the forward and of the reverse path.
    pub(crate) forward: Box<[u32]>,
    pub(crate) reverse: Box<[u32]>,
    /// Propagation over the forward path.
    propagation: Picos,
    /// When the last byte of a finite transfer was acknowledged.
    pub(crate) completed: Option<Picos>,
}

impl Flow {
    pub(crate) fn new(
        plan: FlowPlan,
        warmup: Picos,
        propagation: Picos,
        resolution: Resolution,
    ) -> Self {
        Self {
            spec: FlowSpec {
                name: plan.name,
                stack: plan.stack,
                start: plan.start_ps,
                stop: plan.stop_ps,
                size_bytes: plan.size_bytes,
                cap_bytes_per_s: plan.cap_bytes_per_s,
                packets: plan.packets,
                wants_send_events: plan.needs.contains(Needs::SEND_EVENTS),
                fields: plan.fields,
            },
            ends: Ends::Waiting(plan.controller),
            meter: FlowMeter::new(warmup, resolution),
            forward: plan.forward.into(),
            reverse: plan.reverse.into(),
            propagation,
            completed: None,
        }
    }

    /// Creates the ends: the flow begins.
    fn begin(&mut self, now: Picos, index: u32, seed: u64) {
        let spec = &self.spec;
        let idle: ControllerFactory = Box::new(|_| unreachable!("a flow begins once"));
        let Ends::Waiting(factory) = std::mem::replace(&mut self.ends, Ends::Waiting(idle)) else {
            return;
        };
        let path = PathInfo {
            now_ns: now / PS_PER_NS,
            packet_bytes: u32::from(spec.packets.data_bytes),
            initial_window_packets: match spec.stack {
                Stack::Tcp(options) => options.initial_window_packets,
                Stack::Datagram(_) => 10,
            },
            seed: flow_seed(seed, index),
        };
        let controller = factory(&path);
        let host = |min_rto_ns, clock_ps| {
            let (rtt, cap) = (RttEstimator::new(min_rto_ns), spec.cap_bytes_per_s);
            Host::new(controller, &path, rtt, cap, spec.wants_send_events, clock_ps)
        };
        let transfer = Transfer::new(index, spec.packets, spec.stop, spec.size_bytes);
        self.ends = match spec.stack {
            Stack::Tcp(options) => {
                let host = host(options.min_rto_ps / PS_PER_NS, 1);
                let sender = TcpSender::new(host, options, transfer);
                Ends::Tcp(Box::new(sender), TcpReceiver::default())
            }
            Stack::Datagram(options) => {
                let host = host(RttEstimator::RFC_MIN_RTO_NS, options.clock_ps);
                let sender = DatagramSender::new(host, options, transfer);
                Ends::Datagram(Box::new(sender), DatagramReceiver::default())
            }
        };
    }

    /// The sender's timer.
    pub(crate) fn on_sender_timer(&mut self, now: Picos, index: u32, seed: u64) {
        match &mut self.ends {
            Ends::Waiting(_) if now >= self.spec.start => self.begin(now, index, seed),
            Ends::Waiting(_) => {}
            Ends::Tcp(sender, _) => sender.on_timer(now),
            Ends::Datagram(sender, _) => sender.on_timer(now),
        }
    }

    /// A packet came to the end of the reverse path.
    #[inline]
    pub(crate) fn on_ack(&mut self, now: Picos, packet: &Packet) {
        match &mut self.ends {
            Ends::Waiting(_) => {}
            Ends::Tcp(sender, _) => sender.on_ack(now, packet, &mut self.meter),
            Ends::Datagram(sender, _) => sender.on_ack(now, packet),
        }
    }

    /// The next packet to put on the forward path.
    #[inline]
    pub(crate) fn poll_send(&mut self, now: Picos) -> Option<Packet> {
        match &mut self.ends {
            Ends::Waiting(_) => None,
            Ends::Tcp(sender, _) => sender.poll_send(now),
            Ends::Datagram(sender, _) => sender.poll_send(now, &mut self.meter),
        }
    }

    /// When the sender is to be called without a packet arriving.
    #[inline]
    pub(crate) fn sender_deadline(&mut self, now: Picos) -> Picos {
        let (deadline, complete) = match &self.ends {
            Ends::Waiting(_) => (self.spec.start, false),
            Ends::Tcp(sender, _) => (sender.deadline(), sender.is_complete()),
            Ends::Datagram(sender, _) => (sender.deadline(now), sender.is_complete()),
        };
        if complete {
            self.completed.get_or_insert(now);
            return NEVER;
        }
        deadline
    }

    /// A packet came to the end of the forward path. Returns the ACK to send at once, if any; others wait for
    /// [`Self::poll_receiver`].
    #[inline]
    pub(crate) fn on_data(&mut self, now: Picos, packet: &Packet) -> Option<Packet> {
        let bytes = u64::from(packet.bytes);
        let payload = bytes.saturating_sub(u64::from(self.spec.packets.header_bytes));
        let ack_bytes = self.spec.packets.ack_bytes;
        let ack = match (&mut self.ends, self.spec.stack) {
            (Ends::Tcp(sender, receiver), Stack::Tcp(options)) => {
                if packet.flags & Packet::SYN != 0 {
                    return Some(Packet { flags: packet.flags | Packet::ACK, hop: 0, ..*packet });
                }
                let sent = sender.sent_ns(packet).map(|ns| ns * PS_PER_NS);
                let (arrived, ack) = receiver.on_data(now, packet, options.delayed_ack_ps);
                let payload = if arrived == Arrived::Duplicate { 0 } else { payload };
                self.meter.on_delivery(now, bytes, payload, sent, self.propagation);
                ack
            }
            (Ends::Datagram(sender, receiver), Stack::Datagram(options)) => {
                self.meter.on_delivery(now, bytes, payload, sender.sent(packet), self.propagation);
                receiver.on_data(now, packet, options.overhead_ps);
                receiver.poll(now)
            }
            _ => None,
        };
        ack.map(|ack| Packet { bytes: ack_bytes, ..ack })
    }

    /// The receiver's next ACK that has become due.
    pub(crate) fn poll_receiver(&mut self, now: Picos) -> Option<Packet> {
        let ack = match &mut self.ends {
            Ends::Waiting(_) => None,
            Ends::Tcp(_, receiver) => receiver.on_timer(now),
            Ends::Datagram(_, receiver) => receiver.poll(now),
        };
        ack.map(|ack| Packet { bytes: self.spec.packets.ack_bytes, ..ack })
    }

    /// When [`Self::poll_receiver`] has something.
    #[inline]
    pub(crate) fn receiver_deadline(&self) -> Picos {
        match &self.ends {
            Ends::Waiting(_) => NEVER,
            Ends::Tcp(_, receiver) => receiver.deadline(),
            Ends::Datagram(_, receiver) => receiver.deadline(),
        }
    }

    /// Packets in flight by the sender's account.
    #[inline]
    pub(crate) fn in_flight(&self) -> u64 {
        match &self.ends {
            Ends::Waiting(_) => 0,
            Ends::Tcp(sender, _) => sender.in_flight(),
            Ends::Datagram(sender, _) => sender.in_flight(),
        }
    }

    /// The host of a flow that has begun, and the packets it has in flight by its own account.
    pub(crate) fn host(&self) -> Option<(&Host, u64)> {
        match &self.ends {
            Ends::Waiting(_) => None,
            Ends::Tcp(sender, _) => Some((&sender.host, self.in_flight())),
            Ends::Datagram(sender, _) => Some((&sender.host, self.in_flight())),
        }
    }

    pub(crate) fn counters(&self) -> SendCounters {
        self.host().map_or_else(SendCounters::default, |(host, _)| host.counters)
    }

    /// State held, bytes: everything but the records of packets in flight and the recorder's series.
    pub(crate) fn state_bytes(&self) -> usize {
        let ends = match &self.ends {
            Ends::Waiting(_) => 0,
            Ends::Tcp(..) => size_of::<TcpSender>(),
            Ends::Datagram(..) => size_of::<DatagramSender>(),
        };
        let paths = (self.forward.len() + self.reverse.len()) * size_of::<u32>();
        size_of::<Self>() + ends + self.meter.heap_bytes() + paths
    }

    pub(crate) fn data_bytes(&self) -> u64 {
        u64::from(self.spec.packets.data_bytes)
    }
}

/// A flow's own seed: SplitMix64 of the run's seed and its number.
fn flow_seed(seed: u64, index: u32) -> u64 {
    let mut z = seed.wrapping_add((u64::from(index) + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15));
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}
