//! The wire format of the contest's programs: a header of six big-endian numbers before every payload.

/// Bytes of the header.
pub const HEADER_BYTES: usize = 48;
/// Behind the header of an ACK for a packet that could be marked: how many packets have arrived marked. The contest's programs send
/// no such packets.
pub const MARKS_BYTES: usize = 8;
/// IPv4 and UDP headers, bytes.
pub const IP_UDP_BYTES: usize = 28;
/// What the ECN field of a packet says that was marked.
const CONGESTION_EXPERIENCED: u8 = 3;

/// What a field says that means nothing.
const UNUSED: u64 = u64::MAX;

/// The header of a packet; times in ms since the start of the program that sent it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header {
    /// Data: its number. ACK: how many ACKs the receiver had sent before.
    pub sequence: u64,
    /// When it was sent.
    pub sent_ms: u64,
    /// What it acknowledges; `None` in a data packet.
    pub ack: Option<Acked>,
}

/// The data packet that an ACK acknowledges.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Acked {
    /// Its number.
    pub sequence: u64,
    /// When it was sent, by the sender's clock.
    pub sent_ms: u64,
    /// When it was received, by the receiver's clock.
    pub received_ms: u64,
    /// Its payload, bytes.
    pub payload_bytes: u64,
}

impl Header {
    /// The header on the wire.
    pub fn to_bytes(self) -> [u8; HEADER_BYTES] {
        let none =
            Acked { sequence: UNUSED, sent_ms: UNUSED, received_ms: UNUSED, payload_bytes: UNUSED };
        let ack = self.ack.unwrap_or(none);
        let fields = [
            self.sequence,
            self.sent_ms,
            ack.sequence,
            ack.sent_ms,
            ack.received_ms,
            ack.payload_bytes,
        ];
        let mut bytes = [0; HEADER_BYTES];
        for (to, field) in bytes.chunks_exact_mut(8).zip(fields) {
            to.copy_from_slice(&field.to_be_bytes());
        }
        bytes
    }

    /// The header at the beginning of `packet`; `None` if that is too short.
    pub fn from_bytes(packet: &[u8]) -> Option<Self> {
        let mut fields = [0; 6];
        for (field, from) in fields.iter_mut().zip(packet.get(..HEADER_BYTES)?.chunks_exact(8)) {
            *field = u64::from_be_bytes(from.try_into().ok()?);
        }
        let [sequence, sent_ms, acked, acked_sent_ms, received_ms, payload_bytes] = fields;
        let ack = Acked { sequence: acked, sent_ms: acked_sent_ms, received_ms, payload_bytes };
        Some(Self { sequence, sent_ms, ack: (acked != UNUSED).then_some(ack) })
    }
}

/// How many packets had arrived marked when `ack` was sent; 0 where it does not say.
pub fn marks_in(ack: &[u8]) -> u64 {
    let marks = ack.get(HEADER_BYTES..HEADER_BYTES + MARKS_BYTES);
    marks.and_then(|marks| marks.try_into().ok()).map_or(0, u64::from_be_bytes)
}

/// Works out from a receiver's ACKs how many packets it has found missing: it numbers its ACKs, one per packet, so that a lost
/// or overtaken ACK is not mistaken for a loss.
#[derive(Clone, Copy, Debug, Default)]
pub struct Missing {
    /// ACKs that the receiver has sent.
    acks: u64,
    /// One past the highest packet acknowledged.
    next: u64,
    missing: u64,
}

impl Missing {
    /// ACK number `number`, of packet `sequence`, has come: packets missing by then.
    pub fn on_ack(&mut self, number: u64, sequence: u64) -> u64 {
        if number >= self.acks {
            self.acks = number.saturating_add(1);
            self.next = self.next.max(sequence.saturating_add(1));
            self.missing = self.next.saturating_sub(self.acks);
        }
        self.missing
    }

    /// Packets acknowledged, and packets missing.
    pub fn so_far(&self) -> (u64, u64) {
        (self.acks, self.missing)
    }
}

/// Answers data packets as the contest's receiver does.
#[derive(Clone, Copy, Debug, Default)]
pub struct Acknowledger {
    sent: u64,
    marked: u64,
}

impl Acknowledger {
    /// The ACK of a packet of `bytes` that begins with `packet`; `None` for what is no data packet.
    pub fn answer(
        &mut self,
        packet: &[u8],
        bytes: usize,
        received_ms: u64,
        now_ms: u64,
    ) -> Option<Header> {
        let data = Header::from_bytes(packet).filter(|header| header.ack.is_none())?;
        let sequence = self.sent;
        self.sent += 1;
        let ack = Acked {
            sequence: data.sequence,
            sent_ms: data.sent_ms,
            received_ms,
            payload_bytes: bytes.saturating_sub(HEADER_BYTES) as u64,
        };
        Some(Header { sequence, sent_ms: now_ms, ack: Some(ack) })
    }

    /// A data packet with this ECN field has come: what its ACK says of marks behind the header, if anything.
    pub fn marks(&mut self, ecn: u8) -> Option<[u8; MARKS_BYTES]> {
        self.marked += u64::from(ecn == CONGESTION_EXPERIENCED);
        (ecn != 0).then_some(self.marked.to_be_bytes())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn fields_by_hand() {
        let data = Header { sequence: 258, sent_ms: 3, ack: None };
        let bytes = data.to_bytes();
        assert_eq!(bytes[..16], [0, 0, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 0, 0, 0, 3]);
        assert_eq!(bytes[16..], [0xff; 32]);
        let ack = Acknowledger { sent: 7, marked: 0 }.answer(&bytes, 1472, 40, 41).unwrap();
        assert_eq!((ack.sequence, ack.sent_ms), (7, 41));
        let acked = Acked { sequence: 258, sent_ms: 3, received_ms: 40, payload_bytes: 1424 };
        assert_eq!(ack.ack, Some(acked));
        assert_eq!(Header::from_bytes(&ack.to_bytes()), Some(ack));
    }

    #[test]
    fn an_ack_is_not_answered_and_counts_for_nothing() {
        let mut receiver = Acknowledger::default();
        let data = Header { sequence: 0, sent_ms: 0, ack: None }.to_bytes();
        let ack = receiver.answer(&data, 48, 0, 0).unwrap().to_bytes();
        assert_eq!(receiver.answer(&ack, 48, 0, 0), None);
        assert_eq!(receiver.answer(&data[..47], 47, 0, 0), None);
        assert_eq!(receiver.sent, 1);
    }

    #[test]
    fn marks_are_told_of_packets_that_could_have_them() {
        let mut receiver = Acknowledger::default();
        // Not capable, ECT(0), marked, ECT(1), marked.
        let told = [0, 2, 3, 1, 3].map(|ecn| {
            let data = Header { sequence: 0, sent_ms: 0, ack: None }.to_bytes();
            let ack = receiver.answer(&data, 48, 0, 0).unwrap().to_bytes();
            let marks = receiver.marks(ecn);
            let ack = [&ack[..], marks.as_ref().map_or(&[], |marks| &marks[..])].concat();
            (ack.len(), marks_in(&ack))
        });
        assert_eq!(told, [(48, 0), (56, 0), (56, 1), (56, 1), (56, 2)]);
        assert_eq!(marks_in(&[1; 55]), 0);
    }

    #[test]
    fn missing_packets_are_counted_across_lost_and_overtaken_acks() {
        let mut missing = Missing::default();
        // Packets 0, 2, 1, 5 arrive; the ACK of 1 is lost and that of 2 overtaken.
        assert_eq!(missing.on_ack(0, 0), 0);
        assert_eq!(missing.on_ack(3, 5), 2);
        assert_eq!(missing.on_ack(1, 2), 2);
        assert_eq!(missing.on_ack(u64::MAX, u64::MAX), 0, "and no overflow");
    }

    proptest! {
        #[test]
        fn any_bytes(bytes in prop::collection::vec(any::<u8>(), 0..100)) {
            let header = Header::from_bytes(&bytes);
            prop_assert_eq!(header.is_some(), bytes.len() >= HEADER_BYTES);
            if let Some(header) = header {
                let again = header.to_bytes();
                prop_assert_eq!(&again[..16], &bytes[..16]);
                prop_assert!(header.ack.is_none() || again == bytes[..HEADER_BYTES]);
            }
        }
    }
}
