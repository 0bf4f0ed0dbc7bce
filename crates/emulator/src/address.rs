//! Addresses for the two ends of a link that clash with no other link.
//!
//! All lie in 198.18.0.0/15, which is set aside for testing networks (RFC 2544) and so is on no real one, and in an IPv6
//! prefix of our own made of the same numbers. An outermost link takes a block of 64; a link inside a link takes a block
//! within the block of that one, so the way back is known at every level by plain routes, without translation of addresses.
//! A block is claimed by a socket whose name says so: names are per network namespace, taken by one process at a time, and free
//! again when that ends, however it ends.

use std::net::{Ipv4Addr, Ipv6Addr};
use std::os::fd::OwnedFd;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixListener};

use nix::ifaddrs::getifaddrs;

use crate::Error;

/// Name of the device inside. There is one in each namespace, and it tells a nested link whose guest it is.
pub const INSIDE_DEVICE: &str = "paceline";
/// Name of the device outside.
pub const OUTSIDE_DEVICE: &str = "paceline%d";

const ALL: Block = Block { base: 0xc612_0000, bits: 15 };
const OUTERMOST_BITS: u8 = 21;
/// Each level divides its block into eight, of which the first is its own.
const LEVEL_BITS: u8 = 3;
const DEEPEST_BITS: u8 = 30;
const V6_PREFIX: u128 = 0xfd70_6163_656c << 80;

/// The addresses of a link and of the links within it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Block {
    base: u32,
    /// Length of the prefix.
    bits: u8,
}

/// A block that is ours while this lives.
pub struct Claim {
    /// The block.
    pub block: Block,
    /// Whether this is a link within a link.
    pub is_nested: bool,
    _name: OwnedFd,
}

impl Block {
    /// Address of the outside end.
    pub fn outside(self) -> Ipv4Addr {
        Ipv4Addr::from(self.base + 1)
    }

    /// Address of the inside end, of the host number `index` there.
    pub fn inside(self, index: usize) -> Ipv4Addr {
        Ipv4Addr::from(self.base + 2 + index as u32)
    }

    /// Length of the prefix that holds all addresses of the block.
    pub fn prefix(self) -> u8 {
        self.bits
    }

    /// The IPv6 address that goes with `v4`.
    pub fn v6(v4: Ipv4Addr) -> Ipv6Addr {
        Ipv6Addr::from(V6_PREFIX | u128::from(u32::from(v4)))
    }

    /// Length of the IPv6 prefix that goes with one of IPv4.
    pub fn v6_prefix(v4: u8) -> u8 {
        96 + v4
    }

    /// Whether `address` is one of the block.
    pub fn contains(self, address: Ipv4Addr) -> bool {
        (u32::from(address) ^ self.base) >> (32 - self.bits) == 0
    }

    /// The blocks for links in it: of all, the outermost ones; of a link's, all but the first, which holds its own ends.
    fn blocks(self) -> impl Iterator<Item = Self> {
        let bits = if self == ALL { OUTERMOST_BITS } else { self.bits + LEVEL_BITS };
        let count = if bits > DEEPEST_BITS { 0 } else { 1u32 << (bits - self.bits) };
        let first = u32::from(self != ALL);
        (first..count).map(move |k| Self { base: self.base + (k << (32 - bits)), bits })
    }
}

/// Claims a block for a link whose outside end is in the network namespace of this thread.
pub fn claim() -> Result<Claim, Error> {
    let addresses: Vec<(String, Ipv4Addr, u8)> = getifaddrs()
        .map_err(|error| Error::system("list the addresses of this machine", error))?
        .filter_map(|entry| {
            let address = entry.address?.as_sockaddr_in()?.ip();
            let mask = entry.netmask.and_then(|mask| Some(u32::from(mask.as_sockaddr_in()?.ip())));
            Some((entry.interface_name, address, mask.map_or(32, u32::leading_ones) as u8))
        })
        .collect();
    let host = addresses.iter().find(|(name, ..)| name == INSIDE_DEVICE);
    let parent = host.map_or(ALL, |(_, address, bits)| Block {
        base: (u32::from(*address)) & (u32::MAX << (32 - u32::from((*bits).clamp(1, 32)))),
        bits: *bits,
    });
    let mut any = false;
    for block in parent.blocks() {
        any = true;
        // An address there that no link of ours has claimed belongs to somebody else.
        if addresses.iter().any(|(_, address, _)| block.contains(*address)) {
            continue;
        }
        let name = format!("paceline-link-{}", block.outside());
        let listener = SocketAddr::from_abstract_name(name.as_bytes())
            .and_then(|address| UnixListener::bind_addr(&address));
        if let Ok(listener) = listener {
            return Ok(Claim { block, is_nested: host.is_some(), _name: listener.into() });
        }
    }
    Err(Error::Unavailable(match any {
        _ if parent.bits == 32 => "links do not nest in one of several hosts".into(),
        true => "every block of addresses for links is taken: 64 links can stand beside each other, 7 inside another".into(),
        false => "links nest four deep at most".into(),
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_within_blocks_do_not_overlap() {
        let outermost: Vec<Block> = ALL.blocks().collect();
        assert_eq!(outermost.len(), 64);
        assert_eq!(outermost[0].outside().to_string(), "198.18.0.1");
        assert_eq!(outermost[63].inside(0).to_string(), "198.19.248.2");
        let mut level = vec![outermost[5]];
        let mut seen = vec![];
        let mut depth = 0;
        while let Some(host) = level.pop() {
            assert!(!seen.contains(&host.outside()));
            seen.extend([host.outside(), host.inside(0)]);
            let inner: Vec<Block> = host.blocks().collect();
            assert!(inner.iter().all(|b| host.contains(b.outside()) && host.contains(b.inside(0))));
            depth = depth.max((host.bits - OUTERMOST_BITS) / LEVEL_BITS + 1);
            level.extend(inner);
        }
        assert_eq!(depth, 4);
        assert_eq!(seen.len(), 2 * (1 + 7 + 49 + 343));
    }

    #[test]
    fn the_same_numbers_in_ipv6() {
        let address = Block::v6(Ipv4Addr::new(198, 18, 0, 1));
        assert_eq!(address.to_string(), "fd70:6163:656c::c612:1");
    }
}
