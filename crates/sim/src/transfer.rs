//! What a sender has to send: an endless stream or so many bytes, cut into packets.

use paceline_net::Picos;

use crate::events::NEVER;
use crate::packet::Packet;
use crate::plan::PacketSizes;

pub(crate) struct Transfer {
    /// Packets in all, or [`ENDLESS`].
    packets: u64,
    stop: Picos,
    flow: u32,
    sizes: PacketSizes,
    /// Size of the last packet.
    last_bytes: u16,
}

const ENDLESS: u64 = u64::MAX;

impl Transfer {
    pub(crate) fn new(
        flow: u32,
        sizes: PacketSizes,
        stop: Option<Picos>,
        size_bytes: Option<u64>,
    ) -> Self {
        let payload = u64::from(sizes.payload_bytes().max(1));
        let (packets, last_bytes) = size_bytes.map_or((ENDLESS, sizes.data_bytes), |size| {
            let packets = size.div_ceil(payload).max(1);
            let last = (size.max(1) - (packets - 1) * payload) as u16;
            (packets, sizes.header_bytes + last)
        });
        Self { packets, stop: stop.unwrap_or(NEVER), flow, sizes, last_bytes }
    }

    /// Whether packet `seq` exists and may still be sent for the first time.
    #[inline]
    pub(crate) fn offers(&self, seq: u64, now: Picos) -> bool {
        now < self.stop && seq < self.packets
    }

    /// Whether everything below `acked_to` is all there is.
    #[inline]
    pub(crate) fn is_complete(&self, acked_to: u64) -> bool {
        acked_to >= self.packets
    }

    /// Data packet `seq` as it goes on the wire at `now`.
    #[inline(always)]
    pub(crate) fn data(&self, seq: u64, now: Picos) -> Packet {
        let is_last = seq + 1 == self.packets;
        let bytes = if is_last { self.last_bytes } else { self.sizes.data_bytes };
        Packet::data(self.flow, seq, bytes, 0, now)
    }

    /// The packet that opens a connection.
    pub(crate) fn opening(&self, now: Picos) -> Packet {
        Packet::data(self.flow, 0, self.sizes.ack_bytes, Packet::SYN, now)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_packet_carries_the_rest() {
        let sizes = PacketSizes { data_bytes: 1500, header_bytes: 52, ack_bytes: 52 };
        let transfer = Transfer::new(0, sizes, Some(10), Some(3000));
        let bytes = [0, 1, 2].map(|seq| transfer.data(seq, 0).bytes());
        assert_eq!(bytes, [1500, 1500, 52 + 3000 - 2 * 1448]);
        assert_eq!(
            (transfer.offers(2, 9), transfer.offers(3, 9), transfer.offers(0, 10)),
            (true, false, false)
        );
        assert_eq!((transfer.is_complete(2), transfer.is_complete(3)), (false, true));
        // A whole number of packets, and nothing at all, which still takes one packet.
        assert_eq!(Transfer::new(0, sizes, None, Some(1448)).data(0, 0).bytes(), 1500);
        assert!(Transfer::new(0, sizes, None, Some(0)).is_complete(1));
    }
}
