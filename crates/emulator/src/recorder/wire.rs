//! The datagrams between the two ends of a measurement. `docs/emulator.md` has the format as a table.

/// Bytes of the header that every datagram begins with; data is padded up to the size of a packet.
pub const HEADER_BYTES: usize = 48;

/// First bytes of every datagram.
const MAGIC: [u8; 4] = *b"PLTR";
/// Version of the format.
pub const VERSION: u8 = 1;

/// A datagram.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Datagram {
    /// "I am here": from the client until it is answered, and the answer.
    Hello,
    /// A packet that loads the link.
    Data {
        /// Number of the packet, from 0.
        sequence: u64,
        /// When it was sent by the sender's clock, ns.
        sent_ns: u64,
    },
    /// What the receiver has got.
    Ack {
        /// One more than the highest sequence number seen.
        next: u64,
        /// Packets that have arrived.
        received: u64,
        /// Of the packet with the highest number: when it was sent by the sender's clock …
        sent_ns: u64,
        /// … and when it arrived by the receiver's, ns.
        arrived_ns: u64,
    },
}

impl Datagram {
    /// Writes the header of the session `token`.
    pub fn header(self, token: u64) -> [u8; HEADER_BYTES] {
        let (kind, fields) = match self {
            Self::Hello => (0, [0; 4]),
            Self::Data { sequence, sent_ns } => (1, [sequence, sent_ns, 0, 0]),
            Self::Ack { next, received, sent_ns, arrived_ns } => {
                (2, [next, received, sent_ns, arrived_ns])
            }
        };
        let mut header = [0; HEADER_BYTES];
        header[..4].copy_from_slice(&MAGIC);
        header[4] = VERSION;
        header[5] = kind;
        header[8..16].copy_from_slice(&token.to_be_bytes());
        for (to, field) in header[16..].chunks_exact_mut(8).zip(fields) {
            to.copy_from_slice(&field.to_be_bytes());
        }
        header
    }

    /// The datagram of the session `token` that `bytes` are, if they are one.
    pub fn parse(bytes: &[u8], token: u64) -> Option<Self> {
        let header = bytes.first_chunk::<HEADER_BYTES>()?;
        let number = |at: usize| {
            let bytes = header[at..at + 8].try_into();
            bytes.map_or(0, u64::from_be_bytes)
        };
        if header[..4] != MAGIC || header[4] != VERSION || number(8) != token {
            return None;
        }
        match header[5] {
            0 => Some(Self::Hello),
            1 => Some(Self::Data { sequence: number(16), sent_ns: number(24) }),
            2 => Some(Self::Ack {
                next: number(16),
                received: number(24),
                sent_ns: number(32),
                arrived_ns: number(40),
            }),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn what_is_written_is_read(kind in 0..3, a: u64, b: u64, c: u64, d: u64, token: u64) {
            let datagram = match kind {
                0 => Datagram::Hello,
                1 => Datagram::Data { sequence: a, sent_ns: b },
                _ => Datagram::Ack { next: a, received: b, sent_ns: c, arrived_ns: d },
            };
            let mut bytes = datagram.header(token).to_vec();
            prop_assert_eq!(Datagram::parse(&bytes, token.wrapping_add(1)), None);
            prop_assert_eq!(Datagram::parse(&bytes[..HEADER_BYTES - 1], token), None);
            bytes.extend([7; 100]);
            prop_assert_eq!(Datagram::parse(&bytes, token), Some(datagram));
        }

        #[test]
        fn anything_else_is_nothing(bytes in prop::collection::vec(any::<u8>(), 0..100)) {
            prop_assert_eq!(Datagram::parse(&bytes, 1), None);
        }
    }
}
