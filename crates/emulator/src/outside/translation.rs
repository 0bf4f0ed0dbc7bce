//! Address translation: whose packet is whose. In: packets and ports. Touches no socket, so a test can hand it anything.
//!
//! TCP, UDP and pings over IPv4, and the errors about them. A program's port has one port outside for as long as it is used,
//! whomever it talks to; in comes only what those send whom it has sent something (RFC 4787, §4.1 and §5).

use std::collections::{HashMap, HashSet};
use std::net::Ipv4Addr;

use crate::packet::{fold, get, put, sum};

const ICMP: u8 = 1;
const TCP: u8 = 6;
const UDP: u8 = 17;
const ECHO_REPLY: u8 = 0;
const ECHO: u8 = 8;
/// Destination unreachable (of which "too large" is one), time exceeded, parameter problem.
const ERRORS: [u8; 3] = [3, 11, 12];
/// The most others that a port may talk to at a time; then it begins anew.
const MOST_PEERS: usize = 1024;

/// Protocols that have ports, or something like one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Protocol {
    Tcp,
    Udp,
    /// Pings: the identifier is the port.
    Echo,
}

/// An end of a flow.
type End = (Ipv4Addr, u16);

/// A port outside.
struct Mapping<G> {
    inner: End,
    peers: HashSet<End>,
    /// When it was last used, by a count of packets.
    used: u64,
    /// What keeps the port ours.
    _guard: G,
}

/// All ports outside. `G` is what keeps one ours.
pub struct Translation<G> {
    /// By what is outside.
    mappings: HashMap<(Protocol, u16), Mapping<G>>,
    /// By what is inside.
    ports: HashMap<(Protocol, End), u16>,
    most: usize,
    clock: u64,
}

/// Where in an IPv4 packet things are.
struct Parts {
    protocol: Protocol,
    /// First byte of the transport header.
    transport: usize,
    /// Where the port of the sender is, and that of the receiver. A ping has one, the identifier.
    ports: [usize; 2],
    /// Where the transport checksum is, and whether it covers the addresses.
    checksum: usize,
    pseudo_header: bool,
}

impl<G> Translation<G> {
    /// At most `most` ports outside at a time; the one that was used longest ago goes first.
    pub fn new(most: usize) -> Self {
        Self { mappings: HashMap::new(), ports: HashMap::new(), most, clock: 0 }
    }

    /// Makes `packet`, which goes out, one of this host's, at `source`. `reserve` gets a port. Whether it can go.
    pub fn outwards(
        &mut self,
        packet: &mut [u8],
        source: Ipv4Addr,
        reserve: impl FnOnce(Protocol) -> Option<(u16, G)>,
    ) -> bool {
        let Some(parts) = parts(packet) else { return false };
        let is_ping = parts.protocol == Protocol::Echo;
        if is_ping && packet[parts.transport] != ECHO {
            return false;
        }
        let inner = (address(packet, 12), get(packet, parts.ports[0]));
        let peer = (address(packet, 16), if is_ping { 0 } else { get(packet, parts.ports[1]) });
        let Some(port) = self.port(parts.protocol, inner, reserve) else { return false };
        self.clock += 1;
        if let Some(mapping) = self.mappings.get_mut(&(parts.protocol, port)) {
            mapping.used = self.clock;
            if mapping.peers.len() >= MOST_PEERS && !mapping.peers.contains(&peer) {
                mapping.peers.clear();
            }
            mapping.peers.insert(peer);
        }
        rewrite(packet, &parts, 12, parts.ports[0], (source, port), false);
        true
    }

    /// Makes `packet`, which has come in for this host, one for the program inside. `partial`: its transport checksum covers the
    /// pseudo-header only. Whether it is for one inside.
    pub fn inwards(&mut self, packet: &mut [u8], partial: bool) -> bool {
        if is_error(packet) {
            return self.error_inwards(packet);
        }
        let Some(parts) = parts(packet) else { return false };
        let is_ping = parts.protocol == Protocol::Echo;
        if is_ping && packet[parts.transport] != ECHO_REPLY {
            return false;
        }
        let port = get(packet, parts.ports[1]);
        let peer = (address(packet, 12), if is_ping { 0 } else { get(packet, parts.ports[0]) });
        let Some(inner) = self.inner(parts.protocol, port, peer) else { return false };
        rewrite(packet, &parts, 16, parts.ports[1], inner, partial);
        true
    }

    /// An error about a packet that has gone out, which it quotes.
    fn error_inwards(&mut self, packet: &mut [u8]) -> bool {
        let outer = header_bytes(packet);
        let quoted = outer + 8;
        let Some(quote) = packet.get_mut(quoted..) else { return false };
        let Some(parts) = parts(quote) else { return false };
        let is_ping = parts.protocol == Protocol::Echo;
        let port = get(quote, parts.ports[0]);
        let peer = (address(quote, 16), if is_ping { 0 } else { get(quote, parts.ports[1]) });
        let Some(inner) = self.inner(parts.protocol, port, peer) else { return false };
        // Of the transport checksum, which may not be quoted, nobody asks.
        quote[12..16].copy_from_slice(&inner.0.octets());
        put(quote, parts.ports[0], inner.1);
        renew_header_checksum(quote);
        packet[16..20].copy_from_slice(&inner.0.octets());
        renew_header_checksum(packet);
        put(packet, outer + 2, 0);
        let checksum = !fold(sum(&packet[outer..]));
        put(packet, outer + 2, checksum);
        true
    }

    /// Who inside has `port` outside and has sent something to `peer`.
    fn inner(&mut self, protocol: Protocol, port: u16, peer: End) -> Option<End> {
        self.clock += 1;
        let mapping = self.mappings.get_mut(&(protocol, port))?;
        mapping.used = self.clock;
        mapping.peers.contains(&peer).then_some(mapping.inner)
    }

    /// The port outside of `inner`.
    fn port(
        &mut self,
        protocol: Protocol,
        inner: End,
        reserve: impl FnOnce(Protocol) -> Option<(u16, G)>,
    ) -> Option<u16> {
        if let Some(port) = self.ports.get(&(protocol, inner)) {
            return Some(*port);
        }
        if self.mappings.len() >= self.most {
            let oldest = self.mappings.iter().min_by_key(|(_, mapping)| mapping.used);
            let (key, inner) = oldest.map(|(key, mapping)| (*key, mapping.inner))?;
            self.mappings.remove(&key);
            self.ports.remove(&(key.0, inner));
        }
        let (port, guard) = reserve(protocol)?;
        if self.mappings.contains_key(&(protocol, port)) {
            return None;
        }
        let mapping = Mapping { inner, peers: HashSet::new(), used: self.clock, _guard: guard };
        self.mappings.insert((protocol, port), mapping);
        self.ports.insert((protocol, inner), port);
        Some(port)
    }
}

/// Where `packet` goes, if that is an IPv4 packet.
pub fn destination(packet: &[u8]) -> Option<Ipv4Addr> {
    (packet.len() >= 20 && packet[0] >> 4 == 4).then(|| address(packet, 16))
}

/// Completes the transport checksum of an IPv4 packet, of which only the pseudo-header's sum is there, at `offset` from the
/// start of the transport header.
pub fn complete_checksum(packet: &mut [u8], transport: usize, offset: usize) {
    let at = transport + offset;
    if transport < 20 || at + 2 > packet.len() {
        return;
    }
    let checksum = !fold(sum(&packet[transport..]));
    // No UDP checksum is written as zero: that would mean that there is none.
    put(packet, at, if checksum == 0 { 0xffff } else { checksum });
}

fn address(packet: &[u8], at: usize) -> Ipv4Addr {
    Ipv4Addr::new(packet[at], packet[at + 1], packet[at + 2], packet[at + 3])
}

/// Length of the IPv4 header, if it is one.
fn header_bytes(packet: &[u8]) -> usize {
    packet.first().map_or(0, |first| usize::from(first & 15) * 4)
}

fn is_error(packet: &[u8]) -> bool {
    let header = header_bytes(packet);
    packet.len() >= 28
        && (20..=packet.len() - 8).contains(&header)
        && packet[0] >> 4 == 4
        && packet[9] == ICMP
        && ERRORS.contains(&packet[header])
}

/// `None` for what cannot be translated: no IPv4, no port, a fragment, a header that is cut short.
fn parts(packet: &[u8]) -> Option<Parts> {
    let transport = header_bytes(packet);
    let is_v4 = packet.first()? >> 4 == 4 && transport >= 20;
    // The first eight bytes of a transport header are there, in a quotation too.
    if !is_v4 || packet.len() < transport + 8 || get(packet, 6) & 0x3fff != 0 {
        return None;
    }
    let (protocol, ports, checksum) = match packet[9] {
        TCP => (Protocol::Tcp, [0, 2], 16),
        UDP => (Protocol::Udp, [0, 2], 6),
        ICMP if [ECHO, ECHO_REPLY].contains(&packet[transport]) => (Protocol::Echo, [4, 4], 2),
        _ => return None,
    };
    let pseudo_header = protocol != Protocol::Echo;
    let ports = ports.map(|at| transport + at);
    Some(Parts { protocol, transport, ports, checksum: transport + checksum, pseudo_header })
}

/// Writes `end` where the address and the port are, and brings the checksums up to date.
fn rewrite(packet: &mut [u8], parts: &Parts, address: usize, port: usize, end: End, partial: bool) {
    // What the words that change add to a sum, before and after.
    let before = [sum(&packet[address..address + 4]), get(packet, port).into()];
    packet[address..address + 4].copy_from_slice(&end.0.octets());
    put(packet, port, end.1);
    let after = [sum(&packet[address..address + 4]), end.1.into()];
    renew_header_checksum(packet);
    let at = parts.checksum;
    if at + 2 > packet.len() {
        return;
    }
    let old = get(packet, at);
    if parts.protocol == Protocol::Udp && old == 0 && !partial {
        return;
    }
    // A partial checksum is the sum of the pseudo-header, which has no ports; a whole one is the inverted sum of all.
    let words = match (partial, parts.pseudo_header) {
        (true, _) => 0..1,
        (false, true) => 0..2,
        (false, false) => 1..2,
    };
    let old = if partial { old } else { !old };
    let change = words.map(|k| u32::from(!fold(before[k])) + u32::from(fold(after[k])));
    let new = fold(u32::from(old) + change.sum::<u32>());
    let new = match (partial, !new) {
        (true, _) => new,
        (false, 0) if parts.protocol == Protocol::Udp => 0xffff,
        (false, inverted) => inverted,
    };
    put(packet, at, new);
}

fn renew_header_checksum(packet: &mut [u8]) {
    let header = header_bytes(packet);
    put(packet, 10, 0);
    let checksum = !fold(sum(&packet[..header]));
    put(packet, 10, checksum);
}

#[cfg(test)]
#[path = "translation_tests.rs"]
mod tests;
