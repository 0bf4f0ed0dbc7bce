use proptest::prelude::*;

use super::*;

const INSIDE: Ipv4Addr = Ipv4Addr::new(198, 18, 0, 2);
const HOST: Ipv4Addr = Ipv4Addr::new(192, 0, 2, 1);
const SERVER: Ipv4Addr = Ipv4Addr::new(203, 0, 113, 7);

/// An IPv4 packet with all checksums right.
fn packet(protocol: u8, from: End, to: End, payload: &[u8]) -> Vec<u8> {
    let mut transport = match protocol {
        ICMP => [[ECHO, 0, 0, 0], [0; 4]].concat(),
        UDP => vec![0; 8],
        _ => vec![0; 20],
    };
    match protocol {
        ICMP => put(&mut transport, 4, from.1),
        _ => {
            put(&mut transport, 0, from.1);
            put(&mut transport, 2, to.1);
        }
    }
    transport.extend_from_slice(payload);
    let mut packet = vec![0; 20];
    packet[0] = 0x45;
    put(&mut packet, 2, 20 + transport.len() as u16);
    packet[8] = 64;
    packet[9] = protocol;
    packet[12..16].copy_from_slice(&from.0.octets());
    packet[16..20].copy_from_slice(&to.0.octets());
    packet.extend(transport);
    renew_header_checksum(&mut packet);
    let checksum = !fold(whole_sum(&packet));
    put(&mut packet, checksum_at(protocol), checksum);
    packet
}

fn checksum_at(protocol: u8) -> usize {
    20 + match protocol {
        ICMP => 2,
        UDP => 6,
        _ => 16,
    }
}

/// The sum that the transport checksum of `packet` inverts.
fn whole_sum(packet: &[u8]) -> u32 {
    let pseudo = match packet[9] {
        ICMP => 0,
        protocol => sum(&packet[12..20]) + u32::from(protocol) + u32::from(get(packet, 2)) - 20,
    };
    pseudo + sum(&packet[20..])
}

fn is_whole(packet: &[u8]) -> bool {
    fold(sum(&packet[..20])) == 0xffff && fold(whole_sum(packet)) == 0xffff
}

fn translation() -> Translation<()> {
    Translation::new(3)
}

/// Sends a packet of `protocol` from `port` inside to `peer`; the port outside.
fn send(translation: &mut Translation<()>, protocol: u8, port: u16, peer: End, next: u16) -> u16 {
    let mut out = packet(protocol, (INSIDE, port), peer, b"hello");
    assert!(translation.outwards(&mut out, HOST, |_| Some((next, ()))));
    assert!(is_whole(&out));
    assert_eq!((address(&out, 12), address(&out, 16)), (HOST, peer.0));
    get(&out, if protocol == ICMP { 24 } else { 20 })
}

#[test]
fn what_goes_out_comes_back() {
    for protocol in [TCP, UDP, ICMP] {
        let mut translation = translation();
        let peer = (SERVER, 443);
        assert_eq!(send(&mut translation, protocol, 5000, peer, 61_000), 61_000);
        assert_eq!(send(&mut translation, protocol, 5000, peer, 61_001), 61_000, "as before");
        let mut back = packet(protocol, (SERVER, 443), (HOST, 61_000), b"world!");
        if protocol == ICMP {
            back[20] = ECHO_REPLY;
            put(&mut back, 24, 61_000);
            put(&mut back, 22, 0);
            let checksum = !fold(whole_sum(&back));
            put(&mut back, 22, checksum);
        }
        assert!(translation.inwards(&mut back, false), "{protocol}");
        assert!(is_whole(&back), "{protocol}");
        assert_eq!((address(&back, 12), address(&back, 16)), (SERVER, INSIDE));
        assert_eq!(get(&back, if protocol == ICMP { 24 } else { 22 }), 5000);
    }
}

#[test]
fn strangers_are_not_let_in() {
    let mut translation = translation();
    send(&mut translation, UDP, 5000, (SERVER, 53), 61_000);
    for (from, port) in [((SERVER, 54), 61_000), ((HOST, 53), 61_000), ((SERVER, 53), 61_001)] {
        let mut stranger = packet(UDP, from, (HOST, port), b"?");
        let before = stranger.clone();
        assert!(!translation.inwards(&mut stranger, false));
        assert_eq!(stranger, before);
    }
    let mut tcp = packet(TCP, (SERVER, 53), (HOST, 61_000), b"?");
    assert!(!translation.inwards(&mut tcp, false), "another protocol, another port");
}

#[test]
fn a_partial_checksum_stays_one() {
    let mut translation = translation();
    send(&mut translation, TCP, 5000, (SERVER, 80), 61_000);
    let mut back = packet(TCP, (SERVER, 80), (HOST, 61_000), &[1, 2, 3]);
    let pseudo = |packet: &[u8]| fold(sum(&packet[12..20]) + 6 + u32::from(get(packet, 2)) - 20);
    let partial = pseudo(&back);
    put(&mut back, 36, partial);
    assert!(translation.inwards(&mut back, true));
    assert_eq!(get(&back, 36), pseudo(&back));
    complete_checksum(&mut back, 20, 16);
    assert!(is_whole(&back));
}

#[test]
fn an_absent_checksum_stays_absent() {
    let mut translation = translation();
    let mut out = packet(UDP, (INSIDE, 1), (SERVER, 2), b"x");
    put(&mut out, 26, 0);
    assert!(translation.outwards(&mut out, HOST, |_| Some((61_000, ()))));
    assert_eq!(get(&out, 26), 0);
}

#[test]
fn errors_find_their_way() {
    let mut translation = translation();
    let mut gone = packet(UDP, (INSIDE, 5000), (SERVER, 53), b"question");
    let sent = gone.clone();
    assert!(translation.outwards(&mut gone, HOST, |_| Some((61_000, ()))));
    // A router of SERVER's says that it is too large.
    let mut error = packet(ICMP, (Ipv4Addr::new(10, 0, 0, 1), 0), (HOST, 0), &gone[..28]);
    (error[20], error[21]) = (3, 4);
    assert!(translation.inwards(&mut error, false));
    assert!(is_whole(&error));
    assert_eq!(address(&error, 16), INSIDE);
    assert_eq!(error[28..28 + 26], sent[..26], "up to the checksum, what the program sent");
    // About a packet that nobody sent.
    let other = packet(UDP, (HOST, 61_000), (SERVER, 54), b"question");
    let mut error = packet(ICMP, (SERVER, 0), (HOST, 0), &other[..28]);
    error[20] = 3;
    assert!(!translation.inwards(&mut error, false));
}

#[test]
fn the_port_used_longest_ago_makes_room() {
    let mut translation = translation();
    for k in 0..3 {
        send(&mut translation, TCP, 5000 + k, (SERVER, 80), 61_000 + k);
    }
    send(&mut translation, TCP, 5000, (SERVER, 80), 0);
    assert_eq!(send(&mut translation, TCP, 6000, (SERVER, 80), 61_003), 61_003);
    assert_eq!(send(&mut translation, TCP, 5000, (SERVER, 80), 0), 61_000, "still there");
    assert_eq!(send(&mut translation, TCP, 5001, (SERVER, 80), 61_004), 61_004, "anew");
    assert_eq!((translation.mappings.len(), translation.ports.len()), (3, 3));
}

#[test]
fn what_has_no_port_stays() {
    let mut translation = translation();
    let mut refuse = |mut packet: Vec<u8>| {
        let before = packet.clone();
        assert!(!translation.outwards(&mut packet, HOST, |_| Some((61_000, ()))));
        assert_eq!(packet, before);
    };
    let good = packet(UDP, (INSIDE, 1), (SERVER, 2), b"x");
    let with = |at: usize, byte: u8| {
        let mut changed = good.clone();
        changed[at] = byte;
        changed
    };
    refuse(with(6, 0x20));
    refuse(with(7, 1));
    refuse(with(9, 132));
    refuse(with(0, 0x65));
    refuse(with(0, 0x44));
    refuse(with(0, 0x4f));
    refuse(good[..27].to_vec());
    refuse(vec![]);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(5000))]
    /// Whatever comes from either side: nothing panics.
    #[test]
    fn nothing_in_a_packet_is_trusted(
        mut bytes in prop::collection::vec(any::<u8>(), 0..80),
        first in prop::sample::select(vec![0x45u8, 0x46, 0x4f, 0x60]),
        protocol in prop::sample::select(vec![ICMP, TCP, UDP, 200]),
        kind in prop::sample::select(vec![0u8, 3, 8, 11]),
        partial: bool,
    ) {
        let mut translation = translation();
        send(&mut translation, UDP, 5000, (SERVER, 53), 61_000);
        if bytes.len() > 28 {
            (bytes[0], bytes[9], bytes[20]) = (first, protocol, kind);
            (bytes[6], bytes[7]) = (0, 0);
        }
        translation.inwards(&mut bytes.clone(), partial);
        translation.outwards(&mut bytes.clone(), HOST, |_| Some((61_001, ())));
        complete_checksum(&mut bytes, usize::from(kind) * 5, 16);
        destination(&bytes);
    }
}
