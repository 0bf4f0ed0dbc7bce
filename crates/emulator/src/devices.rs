//! The two ends of a link: a device in each network namespace, with addresses and routes, which go when it does.

use std::fs;
use std::net::IpAddr;

use crate::Error;
use crate::address::{Block, INSIDE_DEVICE, OUTSIDE_DEVICE};
use crate::netlink::Netlink;
use crate::outside::{self, Reach};
use crate::tun::Tun;

/// Largest packet on the link, bytes of IP.
const MTU: u32 = 1500;
/// Frames that may wait in a device for the forwarder. The kernel drops more, unseen by the model; this many is a quarter of a
/// second at 1 Gbit/s in single packets.
const DEVICE_QUEUE: u32 = 20_000;

/// What the devices of a link must know of each other.
#[derive(Clone, Copy, Debug)]
pub struct Wiring {
    /// The link's addresses.
    pub block: Block,
    /// How far hosts reach.
    pub reach: Reach,
    /// Number of hosts.
    pub hosts: usize,
    /// Largest packet on the link, bytes of IP.
    mtu: u32,
}

impl Wiring {
    pub fn new(block: Block, reach: Reach, hosts: usize) -> Self {
        let mtu = if reach == Reach::Outside { outside::mtu(MTU) } else { MTU };
        Self { block, reach, hosts, mtu }
    }

    /// The device outside, with the address of this machine.
    pub fn make_outside(&self) -> Result<Tun, Error> {
        let device = Tun::new(OUTSIDE_DEVICE)?;
        let address = self.block.outside().into();
        self.set_up(&mut Netlink::open()?, device.name(), address, self.block.prefix())?;
        Ok(device)
    }

    /// The device of host `index`, the way to everywhere.
    pub fn make_inside(&self, index: usize) -> Result<Tun, Error> {
        let device = Tun::new(INSIDE_DEVICE)?;
        let mut netlink = Netlink::open()?;
        netlink.set_up("lo", None)?;
        let address = self.block.inside(index);
        // Of several, each is alone: a link within one would take addresses that a link within another has.
        let prefix = if self.hosts == 1 { self.block.prefix() } else { 32 };
        self.set_up(&mut netlink, device.name(), address.into(), prefix)?;
        netlink.add_default_route(device.name(), address.into())?;
        // Addresses are translated for IPv4 only: without a way, programs do not try the other.
        if has_ipv6() && self.reach == Reach::Host {
            netlink.add_default_route(device.name(), Block::v6(address).into())?;
        }
        // For links within this one; the settings are of the namespace inside.
        let _ = fs::write("/proc/sys/net/ipv4/ip_forward", "1");
        let _ = fs::write("/proc/sys/net/ipv6/conf/all/forwarding", "1");
        Ok(device)
    }

    fn set_up(
        &self,
        netlink: &mut Netlink,
        device: &str,
        address: IpAddr,
        prefix: u8,
    ) -> Result<(), Error> {
        // What the kernel announces would cross the link: groups, and a link-local address. Without IPv6, no file.
        netlink.leave_groups(device, self.mtu)?;
        let _ = fs::write(format!("/proc/sys/net/ipv6/conf/{device}/addr_gen_mode"), "1");
        netlink.set_up(device, Some(DEVICE_QUEUE))?;
        netlink.add_address(device, address, prefix)?;
        if let IpAddr::V4(address) = address
            && has_ipv6()
        {
            netlink.add_address(device, Block::v6(address).into(), Block::v6_prefix(prefix))?;
        }
        Ok(())
    }
}

fn has_ipv6() -> bool {
    let disabled = fs::read_to_string("/proc/sys/net/ipv6/conf/all/disable_ipv6");
    disabled.is_ok_and(|text| text.trim() == "0")
}
