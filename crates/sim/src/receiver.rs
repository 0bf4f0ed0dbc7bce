//! The receiving end of a flow, whatever carries it.

use paceline_net::Picos;

use crate::datagram::DatagramReceiver;
use crate::flow::FlowKind;
use crate::meter::DeliveryMeter;
use crate::packet::Packet;
use crate::plan::{PacketSizes, Stack};
use crate::stats::Resolution;
use crate::tcp::{Arrived, TcpReceiver};

/// It does not begin with a cache line, as a sender does: filling half of its fourth, it seldom takes a fifth wherever it begins.
pub(crate) struct Receiver {
    end: End,
    pub(crate) meter: DeliveryMeter,
}

const _: () = assert!(size_of::<Receiver>() == 224);

/// [`Framing`] is in each, where it fills up the word of their tag.
enum End {
    Tcp(Framing, TcpReceiver),
    Datagram(Framing, DatagramReceiver),
}

/// What is known of packets beside their numbers.
struct Framing {
    header_bytes: u16,
    ack_bytes: u16,
    /// Marked packets so far, modulo 2^16.
    marks: u16,
}

impl Framing {
    #[inline(always)]
    fn finish(&self, ack: Packet) -> Packet {
        ack.reporting(self.ack_bytes, self.marks)
    }

    /// Takes note of `packet`; returns the size of its payload, bytes.
    #[inline(always)]
    fn on_packet(&mut self, packet: &Packet) -> u16 {
        self.marks = self.marks.wrapping_add(u16::from(packet.is_marked()));
        packet.bytes().saturating_sub(self.header_bytes)
    }
}

impl Receiver {
    pub(crate) fn new(kind: &FlowKind, warmup: Picos, resolution: Resolution) -> Self {
        let PacketSizes { header_bytes, ack_bytes, .. } = kind.packets;
        let framing = Framing { header_bytes, ack_bytes, marks: 0 };
        let end = match kind.stack {
            Stack::Tcp(options) => End::Tcp(framing, TcpReceiver::new(options.delayed_ack_ps)),
            Stack::Datagram(options) => {
                End::Datagram(framing, DatagramReceiver::new(options.overhead_ps))
            }
        };
        Self { end, meter: DeliveryMeter::new(warmup, kind.propagation, resolution) }
    }

    /// A packet came to the end of the forward path. Returns the ACK to send at once, if any; others wait for
    /// [`Self::wake`].
    #[inline(always)]
    pub(crate) fn on_packet(&mut self, now: Picos, packet: &Packet) -> Option<Packet> {
        let (payload, ack) = match &mut self.end {
            End::Tcp(framing, receiver) => {
                let payload = framing.on_packet(packet);
                if packet.flags() & Packet::SYN != 0 {
                    return Some(packet.acknowledging(0, (0, 0), 0));
                }
                let (arrived, ack) = receiver.on_data(now, packet);
                let payload = if arrived == Arrived::Duplicate { 0 } else { payload };
                (payload, ack.map(|ack| framing.finish(ack)))
            }
            End::Datagram(framing, receiver) => {
                let payload = framing.on_packet(packet);
                (payload, receiver.on_data(now, packet).map(|ack| framing.finish(ack)))
            }
        };
        self.meter.on_delivery(now, packet.bytes().into(), payload.into(), packet.sent());
        ack
    }

    /// The alarm has gone off: the next ACK that has become due. To be called until there is none.
    pub(crate) fn wake(&mut self, now: Picos) -> Option<Packet> {
        match &mut self.end {
            End::Tcp(framing, receiver) => receiver.on_timer(now).map(|ack| framing.finish(ack)),
            End::Datagram(framing, receiver) => {
                receiver.on_timer(now).map(|ack| framing.finish(ack))
            }
        }
    }

    /// The alarm to set after a step, if one is needed.
    #[inline]
    pub(crate) fn alarm(&mut self, now: Picos) -> Option<Picos> {
        match &mut self.end {
            End::Tcp(_, receiver) => receiver.alarm(now),
            End::Datagram(_, receiver) => receiver.alarm(now),
        }
    }

    /// When [`Self::wake`] has something.
    #[cfg(test)]
    pub(crate) fn deadline(&self) -> Picos {
        match &self.end {
            End::Tcp(_, receiver) => receiver.deadline(),
            End::Datagram(_, receiver) => receiver.deadline(),
        }
    }

    /// Fetches what the next packet will touch outside this struct.
    #[inline]
    pub(crate) fn prefetch_parts(&self) {
        self.meter.queueing.prefetch();
        self.meter.signal.prefetch();
        if let End::Tcp(_, receiver) = &self.end {
            receiver.prefetch();
        }
    }

    /// State held, bytes: everything but the records of packets in flight.
    pub(crate) fn state_bytes(&self) -> usize {
        size_of::<Self>() + self.meter.queueing.heap_bytes() + self.meter.signal.heap_bytes()
    }
}
