//! A packet on the way: 24 bytes, and with its arrival time 32.

use paceline_net::{PS_PER_NS, Picos};

/// What the simulator carries of a packet. Sequence numbers count packets and are the low 32 bits of the endpoint's own
/// 64-bit numbers (see [`expand`]).
///
/// Three words, so that a packet is made, changed and moved in registers: narrow fields would be stored one by one and then
/// copied in one piece, which a processor can do only after the stores have left its pipeline.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Packet {
    /// Flow (20 bits). ACK: above it the marks seen (12). Above them the sequence number, for an ACK that of the data packet that
    /// caused it.
    flow_and_seq: u64,
    /// Data: when it was sent, ps. ACK: what is expected next; above it the start of the block.
    body: u64,
    /// Data: the sender's smoothed RTT in units of 1024 ns, as its timestamps let a receiver work it out. ACK: the end of the block.
    /// Above it the size on the wire in bytes (16 bits), the hop (8), the flags (8).
    tail: u64,
}

const FLOW_BITS: u32 = 20;
const BYTES_SHIFT: u32 = 32;
const HOP_SHIFT: u32 = 48;
const FLAGS_SHIFT: u32 = 56;
const SRTT_SHIFT: u32 = 10;

impl Packet {
    /// Travels the reverse path.
    pub(crate) const ACK: u8 = 1;
    /// Opens a connection (with `ACK`: answers the opening).
    pub(crate) const SYN: u8 = 2;
    /// ACK: the data packet had been received before (DSACK, RFC 2883).
    pub(crate) const DUPLICATE: u8 = 4;
    /// A queue has marked it (congestion experienced, RFC 3168).
    pub(crate) const MARKED: u8 = 8;
    /// Which transmission of the segment this is, modulo 16; an ACK echoes it, as a timestamp would.
    pub(crate) const COPY_SHIFT: u8 = 4;
    /// As hop: no link is left to cross.
    pub(crate) const AT_END: u8 = u8::MAX;
    /// Flows that can be told apart.
    pub(crate) const MAX_FLOWS: usize = 1 << FLOW_BITS;
    /// An ACK carries the number of marks seen modulo this.
    pub(crate) const MARKS_MODULUS: u16 = 1 << (32 - FLOW_BITS);

    /// A packet from the sender, leaving at `sent`.
    #[inline(always)]
    pub(crate) fn data(flow: u32, seq: u64, bytes: u16, flags: u8, sent: Picos) -> Self {
        let flow_and_seq = u64::from(flow) | seq << 32;
        let tail = u64::from(bytes) << BYTES_SHIFT | u64::from(flags) << FLAGS_SHIFT;
        Self { flow_and_seq, body: sent, tail }
    }

    /// The receiver's answer to this packet. `ack`: the next packet expected (TCP), or the packets found missing so far
    /// (datagram). `block`: for TCP the contiguous received range that holds the packet, `[start, end)`; empty when in order.
    #[inline(always)]
    pub(crate) fn acknowledging(&self, ack: u64, block: (u64, u64), flags: u8) -> Self {
        let flags = u64::from(self.flags() | Self::ACK | flags) << FLAGS_SHIFT;
        Self {
            body: ack & u64::from(u32::MAX) | block.0 << 32,
            tail: block.1 & u64::from(u32::MAX) | u64::from(self.bytes()) << BYTES_SHIFT | flags,
            ..*self
        }
    }

    /// The same data packet of a sender whose smoothed RTT is `srtt_ns`; capped at 73 minutes.
    #[inline(always)]
    pub(crate) fn of_path(self, srtt_ns: u64) -> Self {
        Self { tail: self.tail | (srtt_ns >> SRTT_SHIFT).min(u64::from(u32::MAX)), ..self }
    }

    /// Data: the sender's smoothed RTT, ps; 0 = unknown.
    #[inline]
    pub(crate) fn srtt(&self) -> Picos {
        (u64::from(self.tail as u32) << SRTT_SHIFT) * PS_PER_NS
    }

    /// The same ACK with its own size on the wire, and the number of marked packets that the receiver has seen.
    #[inline(always)]
    pub(crate) fn reporting(self, bytes: u16, marks_seen: u16) -> Self {
        let tail = self.tail & !(u64::from(u16::MAX) << BYTES_SHIFT);
        let marks = u64::from(marks_seen % Self::MARKS_MODULUS) << FLOW_BITS;
        Self {
            flow_and_seq: self.flow_and_seq | marks,
            tail: tail | u64::from(bytes) << BYTES_SHIFT,
            ..self
        }
    }

    /// The same packet, marked.
    pub(crate) fn marked(self) -> Self {
        Self { tail: self.tail | u64::from(Self::MARKED) << FLAGS_SHIFT, ..self }
    }

    /// The packet as three numbers: as such it is handed to a function in registers. A struct of three would be handed over in
    /// memory, and then lives there also where that function is not called.
    #[inline(always)]
    pub(crate) fn into_words(self) -> [u64; 3] {
        [self.flow_and_seq, self.body, self.tail]
    }

    /// See [`Self::into_words`].
    #[inline(always)]
    pub(crate) fn from_words([flow_and_seq, body, tail]: [u64; 3]) -> Self {
        Self { flow_and_seq, body, tail }
    }

    /// The same packet, about to cross link number `hop` of its path.
    #[inline(always)]
    pub(crate) fn at_hop(self, hop: u8) -> Self {
        let tail = self.tail & !(u64::from(u8::MAX) << HOP_SHIFT);
        Self { tail: tail | u64::from(hop) << HOP_SHIFT, ..self }
    }

    /// The same data packet as transmission number `copy`, modulo 16, of its segment.
    #[inline(always)]
    pub(crate) fn as_copy(self, copy: u8) -> Self {
        let copy = u64::from(copy & 15) << (FLAGS_SHIFT + u32::from(Self::COPY_SHIFT));
        Self { tail: self.tail | copy, ..self }
    }

    #[inline]
    pub(crate) fn flow(&self) -> u32 {
        self.flow_and_seq as u32 & ((1 << FLOW_BITS) - 1)
    }

    /// ACK: how many marked packets the receiver has seen, modulo [`Self::MARKS_MODULUS`].
    #[inline]
    pub(crate) fn marks_seen(&self) -> u16 {
        (self.flow_and_seq as u32 >> FLOW_BITS) as u16
    }

    #[inline]
    pub(crate) fn is_marked(&self) -> bool {
        self.flags() & Self::MARKED != 0
    }

    /// Sequence number; of an ACK that of the data packet that caused it.
    #[inline]
    pub(crate) fn seq(&self) -> u32 {
        (self.flow_and_seq >> 32) as u32
    }

    /// Size on the wire, bytes.
    #[inline]
    pub(crate) fn bytes(&self) -> u16 {
        (self.tail >> BYTES_SHIFT) as u16
    }

    /// Index within its path of what it is to cross next; [`Packet::AT_END`] when nothing is left.
    #[inline]
    pub(crate) fn hop(&self) -> u8 {
        (self.tail >> HOP_SHIFT) as u8
    }

    /// [`Packet::ACK`] and its neighbours.
    #[inline]
    pub(crate) fn flags(&self) -> u8 {
        (self.tail >> FLAGS_SHIFT) as u8
    }

    /// Data: when it was sent, ps.
    #[inline]
    pub(crate) fn sent(&self) -> Picos {
        self.body
    }

    /// ACK: the low 32 bits of what [`Self::acknowledging`] was given: `ack` and the ends of `block`.
    #[inline]
    pub(crate) fn acknowledged(&self) -> (u32, (u32, u32)) {
        (self.body as u32, ((self.body >> 32) as u32, self.tail as u32))
    }

    #[inline]
    pub(crate) fn is_ack(&self) -> bool {
        self.flags() & Self::ACK != 0
    }

    /// Counts as data in the conservation law and the flow's counters.
    #[inline]
    pub(crate) fn is_data(&self) -> bool {
        self.flags() & (Self::ACK | Self::SYN) == 0
    }

    #[inline]
    pub(crate) fn copy(&self) -> u8 {
        self.flags() >> Self::COPY_SHIFT
    }
}

/// A packet with the time it reaches the end of its link.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Arrival {
    pub(crate) time: Picos,
    pub(crate) packet: Packet,
}

const _: () = assert!(size_of::<Arrival>() == 32);

/// The 64-bit number nearest to `near` whose low 32 bits are `low`.
#[inline]
pub(crate) fn expand(near: u64, low: u32) -> u64 {
    near.wrapping_add_signed(i64::from(low.wrapping_sub(near as u32) as i32))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_do_not_touch_each_other() {
        let data = Packet::data(0xf_ffff, u64::MAX, 1500, Packet::SYN, Picos::MAX)
            .as_copy(0x1f)
            .of_path(u64::MAX);
        assert_eq!(data.srtt(), u64::from(u32::MAX) * 1_024_000);
        assert_eq!(
            (data.flow(), data.seq(), data.bytes(), data.hop()),
            (0xf_ffff, u32::MAX, 1500, 0)
        );
        assert_eq!((data.sent(), data.copy(), data.flags() & 15), (Picos::MAX, 15, Packet::SYN));
        let ack = data
            .acknowledging(u64::MAX, (7, u64::MAX), Packet::DUPLICATE)
            .reporting(40, u16::MAX)
            .marked()
            .at_hop(3);
        assert_eq!(ack.acknowledged(), (u32::MAX, (7, u32::MAX)));
        assert_eq!((ack.flow(), ack.seq(), ack.bytes(), ack.hop()), (0xf_ffff, u32::MAX, 40, 3));
        assert_eq!((ack.marks_seen(), data.marks_seen()), (0xfff, 0));
        assert_eq!(
            ack.flags(),
            Packet::SYN
                | Packet::ACK
                | Packet::DUPLICATE
                | Packet::MARKED
                | 15 << Packet::COPY_SHIFT
        );
        assert_eq!(ack.at_hop(Packet::AT_END).acknowledging(1, (2, 3), 0).hop(), 0);
        assert!(ack.is_ack() && !ack.is_data() && !data.is_data());
    }

    #[test]
    fn expands_across_the_wrap() {
        assert_eq!(expand(5, 7), 7);
        assert_eq!(expand(7, 5), 5);
        assert_eq!(expand(0xffff_fff0, 3), 0x1_0000_0003);
        assert_eq!(expand(0x1_0000_0003, 0xffff_fff0), 0xffff_fff0);
    }
}
