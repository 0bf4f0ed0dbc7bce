//! The receiving end of a flow, whatever carries it.

use paceline_net::Picos;

use crate::datagram::DatagramReceiver;
use crate::events::{NEVER, alarm};
use crate::flow::FlowKind;
use crate::meter::DeliveryMeter;
use crate::packet::Packet;
use crate::plan::Stack;
use crate::stats::Resolution;
use crate::tcp::{Arrived, TcpReceiver};

/// Begins with a cache line, as a sender does.
#[repr(align(64))]
pub(crate) struct Receiver {
    end: End,
    header_bytes: u16,
    ack_bytes: u16,
    /// Marked packets so far, modulo 2^16.
    marks: u16,
    pub(crate) meter: DeliveryMeter,
    /// When the engine will call [`Self::wake`] next.
    armed: Picos,
}

const _: () = assert!(size_of::<Receiver>() == 4 * 64);

enum End {
    Tcp(TcpReceiver),
    Datagram { receiver: DatagramReceiver, overhead: Picos },
}

impl Receiver {
    pub(crate) fn new(kind: &FlowKind, warmup: Picos, resolution: Resolution) -> Self {
        let end = match kind.stack {
            Stack::Tcp(options) => End::Tcp(TcpReceiver::new(options.delayed_ack_ps)),
            Stack::Datagram(options) => End::Datagram {
                receiver: DatagramReceiver::default(),
                overhead: options.overhead_ps,
            },
        };
        Self {
            end,
            header_bytes: kind.packets.header_bytes,
            ack_bytes: kind.packets.ack_bytes,
            marks: 0,
            meter: DeliveryMeter::new(warmup, kind.propagation, resolution),
            armed: NEVER,
        }
    }

    /// A packet came to the end of the forward path. Returns the ACK to send at once, if any; others wait for
    /// [`Self::wake`].
    #[inline(always)]
    pub(crate) fn on_packet(&mut self, now: Picos, packet: &Packet) -> Option<Packet> {
        let bytes = u64::from(packet.bytes());
        let payload = u64::from(packet.bytes().saturating_sub(self.header_bytes));
        self.marks = self.marks.wrapping_add(u16::from(packet.is_marked()));
        let ack = match &mut self.end {
            End::Tcp(receiver) => {
                if packet.flags() & Packet::SYN != 0 {
                    return Some(packet.acknowledging(0, (0, 0), 0));
                }
                let (arrived, ack) = receiver.on_data(now, packet);
                let payload = if arrived == Arrived::Duplicate { 0 } else { payload };
                self.meter.on_delivery(now, bytes, payload, packet.sent());
                ack
            }
            End::Datagram { receiver, overhead } => {
                self.meter.on_delivery(now, bytes, payload, packet.sent());
                receiver.on_data(now, packet, *overhead)
            }
        };
        ack.map(|ack| ack.reporting(self.ack_bytes, self.marks))
    }

    /// The alarm has gone off: the next ACK that has become due. To be called until there is none.
    pub(crate) fn wake(&mut self, now: Picos) -> Option<Packet> {
        if self.armed == now {
            self.armed = NEVER;
        }
        let ack = match &mut self.end {
            End::Tcp(receiver) => receiver.on_timer(now),
            End::Datagram { receiver, .. } => receiver.poll(now),
        };
        ack.map(|ack| ack.reporting(self.ack_bytes, self.marks))
    }

    /// The alarm to set after a step, if one is needed.
    #[inline]
    pub(crate) fn alarm(&mut self, now: Picos) -> Option<Picos> {
        let deadline = self.deadline();
        alarm(&mut self.armed, deadline, now)
    }

    /// When [`Self::wake`] has something.
    #[inline]
    pub(crate) fn deadline(&self) -> Picos {
        match &self.end {
            End::Tcp(receiver) => receiver.deadline(),
            End::Datagram { receiver, .. } => receiver.deadline(),
        }
    }

    /// Fetches what the next packet will touch outside this struct.
    #[inline]
    pub(crate) fn prefetch_parts(&self) {
        self.meter.queueing.prefetch();
        self.meter.signal.prefetch();
    }

    /// State held, bytes: everything but the records of packets in flight.
    pub(crate) fn state_bytes(&self) -> usize {
        size_of::<Self>() + self.meter.queueing.heap_bytes() + self.meter.signal.heap_bytes()
    }
}
