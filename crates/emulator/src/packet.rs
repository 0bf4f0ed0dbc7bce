//! What the emulator reads in a packet, and what it writes there.
//!
//! A TUN device with offloads hands over frames: a header of ten bytes (`struct virtio_net_hdr` of the virtio specification
//! 1.2, §5.1.6) and an IP packet, which may be a large one that stands for many of the same flow. The models must see those
//! many. Here a frame is taken apart into pieces, without touching it, and pieces that leave together are put together again.
//!
//! Nothing in a frame is trusted: what is not understood is one opaque packet of its length.

use paceline_net::queue::{Ecn, Tag};

/// Bytes of the header in front of every packet.
pub const FRAME_HEADER_BYTES: usize = 10;
/// Bytes of the largest frame.
pub const MAX_FRAME_BYTES: usize = FRAME_HEADER_BYTES + 65_535;
/// Longest IP and transport headers together that are taken apart; a packet with longer ones stays whole.
const MAX_HEADER_BYTES: usize = 200;

/// `VIRTIO_NET_HDR_F_NEEDS_CSUM`: the transport checksum covers the pseudo-header only.
pub(crate) const NEEDS_CHECKSUM: u8 = 1;
/// `VIRTIO_NET_HDR_GSO_*`.
const GSO_NONE: u8 = 0;
const GSO_TCP4: u8 = 1;
const GSO_TCP6: u8 = 4;
const GSO_UDP: u8 = 5;

const TCP: u8 = 6;
const UDP: u8 = 17;
const TCP_FIN_PSH: u8 = 0x01 | 0x08;
const TCP_CWR: u8 = 0x80;

/// How a frame falls apart into packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Segments {
    /// Number of packets, at least 1.
    pub count: u16,
    /// IP and transport headers that each of them has, bytes; 0 where the frame is one packet.
    header: u16,
    /// Payload of each but the last, bytes.
    payload: u16,
    /// Of the whole frame, bytes.
    frame: u32,
}

impl Segments {
    /// One packet, whatever is in it.
    fn whole(frame: &[u8]) -> Self {
        Self { count: 1, header: 0, payload: 0, frame: frame.len() as u32 }
    }

    /// How `frame` falls apart.
    pub fn of(frame: &[u8]) -> Self {
        Self::of_large(frame).unwrap_or(Self::whole(frame))
    }

    fn of_large(frame: &[u8]) -> Option<Self> {
        let (head, packet) = frame.split_at_checked(FRAME_HEADER_BYTES)?;
        let word = |at: usize| usize::from(u16::from_ne_bytes([head[at], head[at + 1]]));
        let (kind, payload, transport) = (head[1], word(4), word(6));
        let protocol = match (kind, packet.first()? >> 4) {
            (GSO_TCP4, 4) | (GSO_TCP6, 6) => TCP,
            (GSO_UDP, 4 | 6) => UDP,
            _ => return None,
        };
        let least = if packet[0] >> 4 == 4 { 20 } else { 40 };
        if head[0] & NEEDS_CHECKSUM == 0 || transport < least || payload == 0 {
            return None;
        }
        let header = match protocol {
            TCP => transport + 4 * usize::from(packet.get(transport + 12)? >> 4).max(5),
            _ => transport + 8,
        };
        let total = packet.len().checked_sub(header)?;
        if header > MAX_HEADER_BYTES || total <= payload {
            return None;
        }
        Some(Self {
            count: total.div_ceil(payload) as u16,
            header: header as u16,
            payload: payload as u16,
            frame: frame.len() as u32,
        })
    }

    /// Size of the packet number `index`, bytes of IP.
    pub fn packet_bytes(&self, index: u16) -> u32 {
        match self.header {
            0 => self.frame - (FRAME_HEADER_BYTES as u32).min(self.frame),
            header => {
                let (start, end) = self.payload_of(index, 1);
                u32::from(header) + (end - start) as u32
            }
        }
    }

    /// Where in the frame the payload of `count` packets from number `first` on lies.
    fn payload_of(&self, first: u16, count: u16) -> (usize, usize) {
        let begin = FRAME_HEADER_BYTES + usize::from(self.header);
        let at =
            |index: usize| (begin + index * usize::from(self.payload)).min(self.frame as usize);
        (at(usize::from(first)), at(usize::from(first) + usize::from(count)))
    }
}

/// A frame to be written: a head and what of the frame read follows it.
pub struct Outgoing {
    head: [u8; FRAME_HEADER_BYTES + MAX_HEADER_BYTES],
    head_len: usize,
    payload: (usize, usize),
}

impl Outgoing {
    /// The packets `first`, `first + 1`, … (`count` of them) of `frame`, as one frame; `marked` says "congestion experienced"
    /// in it.
    pub fn new(frame: &mut [u8], segments: Segments, first: u16, count: u16, marked: bool) -> Self {
        let mut out = Self {
            head: [0; FRAME_HEADER_BYTES + MAX_HEADER_BYTES],
            head_len: 0,
            payload: (0, frame.len()),
        };
        if count == segments.count {
            if marked {
                mark(&mut frame[FRAME_HEADER_BYTES.min(segments.frame as usize)..]);
            }
            return out;
        }
        out.payload = segments.payload_of(first, count);
        out.head_len = FRAME_HEADER_BYTES + usize::from(segments.header);
        out.head[..out.head_len].copy_from_slice(&frame[..out.head_len]);
        out.amend(segments, first, count);
        if marked {
            mark(&mut out.head[FRAME_HEADER_BYTES..]);
        }
        out
    }

    /// Its two parts; the second is of the frame that it was made from.
    pub fn parts<'a>(&'a self, frame: &'a [u8]) -> [&'a [u8]; 2] {
        [&self.head[..self.head_len], &frame[self.payload.0..self.payload.1]]
    }

    /// Makes the headers of the frame read those of a part of it, as the kernel does (`tcp_gso_segment`, `inet_gso_segment`).
    fn amend(&mut self, segments: Segments, first: u16, count: u16) {
        let payload = self.payload.1 - self.payload.0;
        let is_last = first + count == segments.count;
        let (frame_head, rest) = self.head.split_at_mut(FRAME_HEADER_BYTES);
        let header = &mut rest[..usize::from(segments.header)];
        if count == 1 {
            frame_head[1] = GSO_NONE;
            frame_head[4..6].fill(0);
        }
        frame_head[2..4].copy_from_slice(&segments.header.to_ne_bytes());
        let transport = usize::from(u16::from_ne_bytes([frame_head[6], frame_head[7]]));
        let checksum = transport + usize::from(u16::from_ne_bytes([frame_head[8], frame_head[9]]));
        let transport_bytes = header.len() - transport + payload;

        let is_v4 = header[0] >> 4 == 4;
        if is_v4 {
            put(header, 2, (header.len() + payload) as u16);
            put(header, 4, get(header, 4).wrapping_add(first));
            renew_v4_checksum(header);
        } else {
            put(header, 4, (header.len() - 40 + payload) as u16);
        }
        let is_udp = header.len() - transport == 8;
        if is_udp {
            put(header, transport + 4, transport_bytes as u16);
        } else {
            let at = transport + 4;
            let before = u32::from(get(header, at)) << 16 | u32::from(get(header, at + 2));
            let seq = before.wrapping_add(u32::from(first) * u32::from(segments.payload));
            header[at..at + 4].copy_from_slice(&seq.to_be_bytes());
            if !is_last {
                header[transport + 13] &= !TCP_FIN_PSH;
            }
            if first > 0 {
                header[transport + 13] &= !TCP_CWR;
            }
        }
        // Sum over the pseudo-header, not inverted; whoever completes the checksum adds the rest.
        let addresses = if is_v4 { 12..20 } else { 8..40 };
        let protocol = if is_udp { UDP } else { TCP };
        let sum = sum(&header[addresses]) + u32::from(protocol) + transport_bytes as u32;
        if checksum + 2 <= header.len() {
            put(header, checksum, fold(sum));
        }
    }
}

/// What a queue may know of `packet`, which counts as `bytes`.
pub fn tag(packet: &[u8], bytes: u32) -> Tag {
    let Some((traffic_class, protocol, addresses, transport)) = ip(packet) else {
        return Tag { bytes, ..Tag::default() };
    };
    let (source, destination) = addresses.split_at(addresses.len() / 2);
    let ports = match protocol {
        TCP | UDP => packet.get(transport..transport + 4).unwrap_or_default(),
        _ => &[],
    };
    let flow = hash(ports, hash(addresses, u64::from(protocol)));
    Tag {
        bytes,
        flow: (flow >> 32) as u32,
        hosts: [(hash(source, 0) >> 32) as u32, (hash(destination, 0) >> 32) as u32],
        class: u16::from(traffic_class >> 5),
        ecn: match traffic_class & 3 {
            0 => Ecn::NotCapable,
            1 => Ecn::Scalable,
            2 => Ecn::Capable,
            _ => Ecn::Marked,
        },
    }
}

/// Traffic class, protocol, both addresses and where the transport header begins.
fn ip(packet: &[u8]) -> Option<(u8, u8, &[u8], usize)> {
    match packet.first()? >> 4 {
        4 if packet.len() >= 20 => {
            // Of a fragment but the first, the ports are not there.
            let is_first = get(packet, 6) & 0x1fff == 0;
            let protocol = if is_first { packet[9] } else { 0 };
            Some((packet[1], protocol, &packet[12..20], usize::from(packet[0] & 15) * 4))
        }
        6 if packet.len() >= 40 => {
            let class = (get(packet, 0) >> 4) as u8;
            Some((class, packet[6], &packet[8..40], 40))
        }
        _ => None,
    }
}

/// Writes "congestion experienced" into an IP packet.
fn mark(packet: &mut [u8]) {
    match packet.first().map(|first| first >> 4) {
        Some(4) if packet.len() >= 20 => {
            packet[1] |= 3;
            renew_v4_checksum(packet);
        }
        // The two lowest bits of the traffic class are bits 4 and 5 of the second byte.
        Some(6) if packet.len() >= 40 => packet[1] |= 0x30,
        _ => {}
    }
}

fn renew_v4_checksum(packet: &mut [u8]) {
    let len = (usize::from(packet[0] & 15) * 4).clamp(20, packet.len());
    put(packet, 10, 0);
    let sum = fold(sum(&packet[..len]));
    put(packet, 10, !sum);
}

/// The sum of the Internet checksum (RFC 1071), of at most 64 KiB.
pub(crate) fn sum(bytes: &[u8]) -> u32 {
    let word = |pair: &[u8]| u32::from(pair[0]) << 8 | u32::from(*pair.get(1).unwrap_or(&0));
    bytes.chunks(2).map(word).sum()
}

/// The sum as a word, its carries added.
pub(crate) fn fold(sum: u32) -> u16 {
    let once = (sum & 0xffff) + (sum >> 16);
    ((once & 0xffff) + (once >> 16)) as u16
}

/// The 16-bit number at `at`.
pub(crate) fn get(bytes: &[u8], at: usize) -> u16 {
    u16::from_be_bytes([bytes[at], bytes[at + 1]])
}

/// Writes a 16-bit number.
pub(crate) fn put(bytes: &mut [u8], at: usize, value: u16) {
    bytes[at..at + 2].copy_from_slice(&value.to_be_bytes());
}

/// A hash that keeps flows apart (FNV-1a, then mixed): the same in every run.
fn hash(bytes: &[u8], seed: u64) -> u64 {
    let step = |hash: u64, byte: &u8| (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3);
    let hash = bytes.iter().fold(seed ^ 0xcbf2_9ce4_8422_2325, step);
    (hash ^ (hash >> 32)).wrapping_mul(0x9e37_79b9_7f4a_7c15)
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use proptest::prelude::*;

    /// A TCP frame over IPv4 or IPv6 with `payload` bytes 0, 1, 2, …, offloaded in segments of `segment`.
    pub(crate) fn tcp_frame(v6: bool, payload: usize, segment: u16, flags: u8, ecn: u8) -> Vec<u8> {
        let ip_bytes = if v6 { 40 } else { 20 };
        let header = ip_bytes + 20;
        let mut frame = vec![0u8; FRAME_HEADER_BYTES + header];
        frame[0] = NEEDS_CHECKSUM;
        frame[1] = if v6 { GSO_TCP6 } else { GSO_TCP4 };
        frame[2..4].copy_from_slice(&(header as u16).to_ne_bytes());
        frame[4..6].copy_from_slice(&segment.to_ne_bytes());
        frame[6..8].copy_from_slice(&(ip_bytes as u16).to_ne_bytes());
        frame[8..10].copy_from_slice(&16u16.to_ne_bytes());
        let packet = &mut frame[FRAME_HEADER_BYTES..];
        if v6 {
            packet[0] = 0x60;
            packet[1] = ecn << 4;
            put(packet, 4, (20 + payload) as u16);
            packet[6] = TCP;
            packet[8..40].copy_from_slice(&[7; 32]);
        } else {
            packet[0] = 0x45;
            packet[1] = ecn;
            put(packet, 2, (header + payload) as u16);
            put(packet, 4, 65_535);
            packet[9] = TCP;
            packet[12..20].copy_from_slice(&[10, 0, 0, 1, 10, 0, 0, 2]);
            renew_v4_checksum(packet);
        }
        put(packet, ip_bytes, 40_000);
        put(packet, ip_bytes + 2, 80);
        packet[ip_bytes + 4..ip_bytes + 8].copy_from_slice(&0xffff_ff00u32.to_be_bytes());
        packet[ip_bytes + 12] = 5 << 4;
        packet[ip_bytes + 13] = flags;
        frame.extend((0..payload).map(|k| k as u8));
        frame
    }

    fn written(
        frame: &mut [u8],
        segments: Segments,
        first: u16,
        count: u16,
        marked: bool,
    ) -> Vec<u8> {
        let out = Outgoing::new(frame, segments, first, count, marked);
        out.parts(frame).concat()
    }

    fn seq(packet: &[u8], transport: usize) -> u32 {
        u32::from(get(packet, transport + 4)) << 16 | u32::from(get(packet, transport + 6))
    }

    #[test]
    fn a_large_frame_falls_apart_into_what_the_kernel_would_send() {
        for v6 in [false, true] {
            let transport = if v6 { 40 } else { 20 };
            let mut frame = tcp_frame(v6, 3000, 1448, TCP_CWR | 0x10 | TCP_FIN_PSH, 2);
            let segments = Segments::of(&frame);
            assert_eq!(segments.count, 3);
            let sizes: Vec<u32> = (0..3).map(|k| segments.packet_bytes(k)).collect();
            let header = transport as u32 + 20;
            assert_eq!(sizes, [header + 1448, header + 1448, header + 104]);
            let mut payload = Vec::new();
            for k in 0..3 {
                let out = written(&mut frame, segments, k, 1, k == 1);
                let packet = &out[FRAME_HEADER_BYTES..];
                assert_eq!(packet.len() as u32, sizes[usize::from(k)]);
                assert_eq!((out[0], out[1]), (NEEDS_CHECKSUM, GSO_NONE));
                assert_eq!(
                    seq(packet, transport),
                    0xffff_ff00u32.wrapping_add(u32::from(k) * 1448)
                );
                let flags = packet[transport + 13];
                assert_eq!(flags & TCP_FIN_PSH != 0, k == 2);
                assert_eq!(flags & TCP_CWR != 0, k == 0);
                let tag = tag(packet, 1);
                assert_eq!(tag.ecn == Ecn::Marked, k == 1);
                if !v6 {
                    assert_eq!(fold(sum(&packet[..20])), 0xffff, "IP checksum");
                    assert_eq!(get(packet, 4), 65_535u16.wrapping_add(k));
                    assert_eq!(usize::from(get(packet, 2)), packet.len());
                } else {
                    assert_eq!(usize::from(get(packet, 4)), packet.len() - 40);
                }
                payload.extend_from_slice(&packet[transport + 20..]);
            }
            assert_eq!(payload, frame[FRAME_HEADER_BYTES + transport + 20..]);
        }
    }

    #[test]
    fn pieces_that_leave_together_are_one_frame() {
        let mut frame = tcp_frame(false, 5 * 1000, 1000, 0x10, 0);
        let segments = Segments::of(&frame);
        let out = written(&mut frame, segments, 1, 3, false);
        assert_eq!(Segments::of(&out).count, 3);
        assert_eq!(seq(&out[FRAME_HEADER_BYTES..], 20), 0xffff_ff00u32.wrapping_add(1000));
        assert_eq!(out[FRAME_HEADER_BYTES + 40..], frame[FRAME_HEADER_BYTES + 1040..][..3000]);
        // The pseudo-header's sum: 10.0.0.1, 10.0.0.2, TCP, 3020 bytes.
        assert_eq!(get(&out, FRAME_HEADER_BYTES + 36), 0x0a00 + 1 + 0x0a00 + 2 + 6 + 3020);
        assert_eq!(written(&mut frame.clone(), segments, 0, 5, false), frame);
    }

    #[test]
    fn a_flow_has_one_number_and_two_flows_two() {
        let frame = tcp_frame(false, 10, 0, 0, 1);
        let packet = &frame[FRAME_HEADER_BYTES..];
        let mut other = packet.to_vec();
        other[21] += 1;
        assert_eq!(tag(packet, 50).flow, tag(packet, 60).flow);
        assert_ne!(tag(packet, 50).flow, tag(&other, 50).flow);
        assert_eq!(tag(packet, 50).hosts, tag(&other, 50).hosts);
        assert_eq!(tag(packet, 50).ecn, Ecn::Scalable);
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(2000))]
        /// Whatever stands in a frame: it falls apart into at least a packet, and nothing panics.
        #[test]
        fn nothing_in_a_frame_is_trusted(
            mut frame in prop::collection::vec(any::<u8>(), 0..400),
            kind in prop::sample::select(vec![0u8, 1, 3, 4, 5, 0x81]),
            version in prop::sample::select(vec![0x45u8, 0x60, 0x4f, 0x00]),
            small in any::<bool>(),
            at in any::<(u16, u16)>(),
        ) {
            if small && frame.len() > 12 {
                (frame[0], frame[1], frame[10]) = (1, kind, version);
                let word = |n: u16| (n % 300).to_ne_bytes();
                frame[4..6].copy_from_slice(&word(at.0));
                frame[6..8].copy_from_slice(&word(at.1));
            }
            let segments = Segments::of(&frame);
            prop_assert!(segments.count > 0);
            tag(frame.get(FRAME_HEADER_BYTES..).unwrap_or_default(), 1);
            let mut payload = 0;
            for k in 0..segments.count {
                segments.packet_bytes(k);
                payload += written(&mut frame.clone(), segments, k, 1, true).len();
            }
            prop_assert!(payload >= frame.len());
        }
    }
}
