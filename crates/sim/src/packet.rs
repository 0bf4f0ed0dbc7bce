//! A packet on the way: 24 bytes, and with its arrival time 32.

use paceline_net::Picos;

/// What the simulator carries of a packet. Sequence numbers count packets and are the low 32 bits of the endpoint's own
/// 64-bit numbers (see [`expand`]).
#[derive(Clone, Copy, Debug)]
pub(crate) struct Packet {
    pub(crate) flow: u32,
    /// Data: its sequence number. ACK: that of the data packet that caused it.
    pub(crate) seq: u32,
    /// Data: when it was sent ([`Packet::sent`]). ACK: what it acknowledges ([`Packet::acknowledging`]).
    body: [u32; 3],
    /// Size on the wire, bytes.
    pub(crate) bytes: u16,
    /// Index of the link it is on, within its path; [`Packet::AT_END`] once it has crossed the last.
    pub(crate) hop: u8,
    /// [`Packet::ACK`] and its neighbours.
    pub(crate) flags: u8,
}

impl Packet {
    /// Travels the reverse path.
    pub(crate) const ACK: u8 = 1;
    /// Opens a connection (with `ACK`: answers the opening).
    pub(crate) const SYN: u8 = 2;
    /// ACK: the data packet had been received before (DSACK, RFC 2883).
    pub(crate) const DUPLICATE: u8 = 4;
    /// Which transmission of the segment this is, modulo 16; an ACK echoes it, as a timestamp would.
    pub(crate) const COPY_SHIFT: u8 = 4;
    /// As `hop`: no link is left to cross.
    pub(crate) const AT_END: u8 = u8::MAX;

    /// A packet from the sender, leaving at `sent`.
    #[inline]
    pub(crate) fn data(flow: u32, seq: u64, bytes: u16, flags: u8, sent: Picos) -> Self {
        let body = [sent as u32, (sent >> 32) as u32, 0];
        Self { flow, seq: seq as u32, body, bytes, hop: 0, flags }
    }

    /// The receiver's answer to this packet. `ack`: the next packet expected (TCP), or the packets found missing so far
    /// (datagram). `block`: for TCP the contiguous received range that holds `seq`, `[start, end)`; empty when in order.
    #[inline]
    pub(crate) fn acknowledging(&self, ack: u64, block: (u64, u64), flags: u8) -> Self {
        let body = [ack as u32, block.0 as u32, block.1 as u32];
        Self { body, hop: 0, flags: self.flags | Self::ACK | flags, ..*self }
    }

    /// The same packet with another size on the wire.
    #[inline]
    pub(crate) fn sized(self, bytes: u16) -> Self {
        Self { bytes, ..self }
    }

    /// Data: when it was sent, ps.
    #[inline]
    pub(crate) fn sent(&self) -> Picos {
        u64::from(self.body[1]) << 32 | u64::from(self.body[0])
    }

    /// ACK: the low 32 bits of what [`Self::acknowledging`] was given: `ack` and the ends of `block`.
    #[inline]
    pub(crate) fn acknowledged(&self) -> (u32, (u32, u32)) {
        (self.body[0], (self.body[1], self.body[2]))
    }

    #[inline]
    pub(crate) fn is_ack(&self) -> bool {
        self.flags & Self::ACK != 0
    }

    /// Counts as data in the conservation law and the flow's counters.
    #[inline]
    pub(crate) fn is_data(&self) -> bool {
        self.flags & (Self::ACK | Self::SYN) == 0
    }

    #[inline]
    pub(crate) fn copy(&self) -> u8 {
        self.flags >> Self::COPY_SHIFT
    }
}

/// A packet with the time it reaches the end of its link.
#[derive(Clone, Copy, Debug)]
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
    fn expands_across_the_wrap() {
        assert_eq!(expand(5, 7), 7);
        assert_eq!(expand(7, 5), 5);
        assert_eq!(expand(0xffff_fff0, 3), 0x1_0000_0003);
        assert_eq!(expand(0x1_0000_0003, 0xffff_fff0), 0xffff_fff0);
    }
}
