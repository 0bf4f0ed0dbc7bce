//! What the kernel tells of a TCP connection: the parts of `struct tcp_info` (`include/uapi/linux/tcp.h`) that are recorded.

/// A TCP connection as the kernel sees it. Packets are segments with payload.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TcpInfo {
    /// Both ends take part in ECN.
    pub ecn: bool,
    /// Packets sent and not acknowledged.
    pub unacked: u32,
    /// Of these, selectively acknowledged.
    pub sacked: u32,
    /// Of these, taken for lost.
    pub lost: u32,
    /// Of these, sent again.
    pub retransmitted_now: u32,
    /// Smoothed RTT, us; 0 before the first sample.
    pub srtt_us: u32,
    /// Congestion window, packets.
    pub cwnd: u32,
    /// Retransmissions so far.
    pub retransmitted: u32,
    /// Pacing rate, bytes/s; whether the connection paces is not told.
    pub pacing_bytes_per_s: u64,
    /// Bytes that wait to be sent for the first time.
    pub unsent_bytes: u32,
    /// Packets sent, retransmissions included.
    pub sent: u32,
    /// Packets that have arrived, by the ACKs.
    pub delivered: u32,
    /// Retransmission timeouts; `None` on kernels before 6.7.
    pub timeouts: Option<u16>,
}

/// TCPI_OPT_ECN.
const OPTION_ECN: u8 = 8;

impl TcpInfo {
    /// Reads what the kernel has written; what it does not know is 0.
    pub fn from_bytes(bytes: &[u8]) -> Self {
        let word = |at: usize| -> u32 {
            let part = bytes.get(at..at + 4).and_then(|part| part.try_into().ok());
            part.map_or(0, u32::from_ne_bytes)
        };
        let long = |at: usize| -> u64 {
            let part = bytes.get(at..at + 8).and_then(|part| part.try_into().ok());
            part.map_or(0, u64::from_ne_bytes)
        };
        let timeouts = bytes.get(240..242).and_then(|part| part.try_into().ok());
        Self {
            ecn: bytes.get(5).is_some_and(|options| options & OPTION_ECN != 0),
            unacked: word(24),
            sacked: word(28),
            lost: word(32),
            retransmitted_now: word(36),
            srtt_us: word(68),
            cwnd: word(80),
            retransmitted: word(100),
            pacing_bytes_per_s: long(104),
            unsent_bytes: word(144),
            sent: word(156),
            delivered: word(192),
            timeouts: timeouts.map(u16::from_ne_bytes),
        }
    }

    /// Packets in flight by the kernel's own account (`tcp_packets_in_flight`).
    pub fn in_flight(&self) -> u32 {
        (self.unacked + self.retransmitted_now).saturating_sub(self.sacked + self.lost)
    }

    /// Whether everything that the program has written is acknowledged.
    pub fn is_idle(&self) -> bool {
        self.unacked == 0 && self.unsent_bytes == 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_by_their_places() {
        let mut bytes = vec![0; 248];
        for (at, value) in [(24, 12_u32), (28, 3), (32, 2), (36, 1), (68, 40_000), (80, 77)] {
            bytes[at..at + 4].copy_from_slice(&value.to_ne_bytes());
        }
        bytes[104..112].copy_from_slice(&(1_u64 << 40).to_ne_bytes());
        bytes[5] = 8 | 2 | 1;
        bytes[240..242].copy_from_slice(&5_u16.to_ne_bytes());
        let info = TcpInfo::from_bytes(&bytes);
        assert_eq!((info.srtt_us, info.cwnd, info.in_flight()), (40_000, 77, 8));
        assert_eq!((info.pacing_bytes_per_s, info.timeouts, info.ecn), (1 << 40, Some(5), true));
        assert_eq!(TcpInfo::from_bytes(&bytes[..240]).timeouts, None);
        assert_eq!(TcpInfo::from_bytes(&[]), TcpInfo::default());
    }
}
