//! Which flow a packet on the link belongs to, by protocol and port of the flow's receiving end.

use std::sync::{Arc, OnceLock};

const TCP: u8 = 6;
const UDP: u8 = 17;

/// The receiving end of a flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Port {
    /// Of a flow of stack `tcp`.
    Tcp(u16),
    /// Of a flow of stack `datagram`.
    Udp(u16),
}

/// The receiving ends of all flows, in the order of the plan, known once the sockets are there.
#[derive(Clone, Debug, Default)]
pub struct Ports(Arc<OnceLock<Vec<Port>>>);

/// In which direction a packet goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// To the receivers: data.
    Data,
    /// To the senders: ACKs.
    Acks,
}

impl Ports {
    /// They are known now.
    pub fn set(&self, ports: Vec<Port>) {
        // Of two calls the first counts; there is but one.
        let _ = self.0.set(ports);
    }

    /// The flow of the IPv4 packet `packet`, and whether the packet has payload.
    pub fn flow_of(&self, packet: &[u8], side: Side) -> Option<(u32, bool)> {
        let (port, has_payload) = receiving_port(packet, side)?;
        let number = self.0.get()?.iter().position(|known| *known == port)?;
        Some((number as u32, has_payload))
    }
}

fn receiving_port(packet: &[u8], side: Side) -> Option<(Port, bool)> {
    let first = *packet.first()?;
    let header = usize::from(first & 15) * 4;
    let is_first_fragment = packet.get(6)? & 0x1f == 0 && *packet.get(7)? == 0;
    if first >> 4 != 4 || header < 20 || !is_first_fragment {
        return None;
    }
    let transport = packet.get(header..)?;
    let at = if side == Side::Data { 2 } else { 0 };
    let port = u16::from_be_bytes([*transport.get(at)?, *transport.get(at + 1)?]);
    match packet[9] {
        UDP => Some((Port::Udp(port), true)),
        TCP => {
            let header = usize::from(transport.get(12)? >> 4) * 4;
            Some((Port::Tcp(port), transport.len() > header))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn packet(protocol: u8, transport: &[u8]) -> Vec<u8> {
        let mut packet = vec![0; 20];
        (packet[0], packet[9]) = (0x45, protocol);
        packet.extend_from_slice(transport);
        packet
    }

    #[test]
    fn flows_are_told_apart_by_the_receiving_end() {
        let ports = Ports::default();
        let udp = packet(17, &[1, 4, 1, 2, 0, 8, 0, 0]);
        assert_eq!(ports.flow_of(&udp, Side::Data), None, "nothing is known yet");
        ports.set(vec![Port::Udp(260), Port::Tcp(258), Port::Udp(258)]);
        assert_eq!(ports.flow_of(&udp, Side::Data), Some((2, true)));
        assert_eq!(ports.flow_of(&udp, Side::Acks), Some((0, true)));
        let mut tcp = [0; 20];
        (tcp[2], tcp[3], tcp[12]) = (1, 2, 5 << 4);
        assert_eq!(ports.flow_of(&packet(6, &tcp), Side::Data), Some((1, false)));
        let with_payload = [&tcp[..], &[0]].concat();
        assert_eq!(ports.flow_of(&packet(6, &with_payload), Side::Data), Some((1, true)));
        for odd in [&[][..], &[0x45], &[0x60; 60], &packet(17, &[0, 0, 1]), &packet(1, &[0; 30])] {
            assert_eq!(ports.flow_of(odd, Side::Data), None);
        }
    }
}
