//! A packet on the way: 24 bytes, and with its arrival time 32.

use paceline_net::Picos;

/// What the simulator carries of a packet. Sequence numbers count packets and are the low 32 bits of the endpoint's own
/// 64-bit numbers (see [`expand`]).
#[derive(Clone, Copy, Debug)]
pub(crate) struct Packet {
    pub(crate) flow: u32,
    /// Data: its sequence number. ACK: that of the data packet that caused it.
    pub(crate) seq: u32,
    /// ACK: the next packet expected (TCP), or the packets found missing so far (datagram).
    pub(crate) ack: u32,
    /// TCP ACK: the contiguous received range that holds `seq`, `[block_start, block_end)`; empty when in order.
    pub(crate) block_start: u32,
    pub(crate) block_end: u32,
    /// Size on the wire, bytes.
    pub(crate) bytes: u16,
    /// Index of the link it is on, within its path.
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
