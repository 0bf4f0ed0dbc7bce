//! Gives a device its addresses and routes, by rtnetlink messages (rtnetlink(7)), in the network namespace of this thread.

use std::io;
use std::net::IpAddr;
use std::os::fd::{AsRawFd, OwnedFd};

use nix::net::if_::if_nametoindex;
use nix::sys::socket::{
    AddressFamily, MsgFlags, NetlinkAddr, SockFlag, SockProtocol, SockType, recv, sendto, socket,
};

use crate::Error;

const HEADER_BYTES: usize = 16;

/// A socket to the kernel's network configuration.
pub struct Netlink {
    socket: OwnedFd,
    sequence: u32,
}

impl Netlink {
    pub fn open() -> Result<Self, Error> {
        let socket = socket(
            AddressFamily::Netlink,
            SockType::Raw,
            SockFlag::SOCK_CLOEXEC,
            SockProtocol::NetlinkRoute,
        );
        let socket = socket.map_err(|error| Error::system("open a netlink socket", error))?;
        Ok(Self { socket, sequence: 0 })
    }

    /// Switches the device on. `queue` packets may wait in it.
    pub fn set_up(&mut self, device: &str, queue: Option<u32>) -> Result<(), Error> {
        let up = libc::IFF_UP as u32;
        let mut message = change(device, up, up)?;
        if let Some(queue) = queue {
            message.attribute(libc::IFLA_TXQLEN, &queue.to_ne_bytes());
        }
        self.send(message, "switch a device on")
    }

    /// Takes from a device that is switched off the groups that the kernel has joined there, and lets it join no more: it would announce
    /// them to who is at the other end. The device has an MTU of `mtu` then, which IPv6 can use.
    pub fn leave_groups(&mut self, device: &str, mtu: u32) -> Result<(), Error> {
        // Below its least MTU, IPv6 forgets a device, and joins anew only what goes without multicast: nothing that it tells of.
        for mtu in [IPV6_LEAST_MTU - 1, mtu] {
            let mut message = change(device, 0, libc::IFF_MULTICAST as u32)?;
            message.attribute(libc::IFLA_MTU, &mtu.to_ne_bytes());
            self.send(message, "set up a device")?;
        }
        Ok(())
    }

    /// Gives the device an address in a network of `prefix` bits, which it then leads to.
    pub fn add_address(&mut self, device: &str, address: IpAddr, prefix: u8) -> Result<(), Error> {
        // Nobody else can have the address, so do not wait to find that out.
        let flags = if address.is_ipv6() { libc::IFA_F_NODAD as u8 } else { 0 };
        let mut message = Message::new(libc::RTM_NEWADDR, libc::NLM_F_CREATE | libc::NLM_F_EXCL);
        // struct ifaddrmsg
        message.bytes(&[family(address), prefix, flags, libc::RT_SCOPE_UNIVERSE]);
        message.number(index(device)?);
        let bytes = octets(address);
        message.attribute(libc::IFA_LOCAL, &bytes).attribute(libc::IFA_ADDRESS, &bytes);
        self.send(message, "give a device an address")
    }

    /// Makes the device the way to everything of the family of `like`.
    pub fn add_default_route(&mut self, device: &str, like: IpAddr) -> Result<(), Error> {
        let mut message = Message::new(libc::RTM_NEWROUTE, libc::NLM_F_CREATE | libc::NLM_F_EXCL);
        // struct rtmsg
        message.bytes(&[family(like), 0, 0, 0, libc::RT_TABLE_MAIN, libc::RTPROT_STATIC]);
        message.bytes(&[libc::RT_SCOPE_UNIVERSE, libc::RTN_UNICAST]).number(0);
        message.attribute(libc::RTA_OIF, &index(device)?.to_ne_bytes());
        self.send(message, "add a route")
    }

    fn send(&mut self, message: Message, what: &'static str) -> Result<(), Error> {
        self.sequence += 1;
        let fail = |error: io::Error| Error::system(what, error);
        let bytes = message.finish(self.sequence);
        let fd = self.socket.as_raw_fd();
        sendto(fd, &bytes, &NetlinkAddr::new(0, 0), MsgFlags::empty())
            .map_err(|e| fail(e.into()))?;
        let mut answer = [0; 1024];
        let len = recv(fd, &mut answer, MsgFlags::empty()).map_err(|e| fail(e.into()))?;
        // struct nlmsghdr, then struct nlmsgerr: a negated error number first.
        let code = answer[..len].get(HEADER_BYTES..HEADER_BYTES + 4);
        match code.and_then(|bytes| bytes.try_into().ok()).map(i32::from_ne_bytes) {
            Some(0) => Ok(()),
            Some(code) => Err(fail(io::Error::from_raw_os_error(-code))),
            None => Err(fail(io::ErrorKind::InvalidData.into())),
        }
    }
}

/// The least MTU that IPv6 can use (RFC 8200, section 5), bytes.
const IPV6_LEAST_MTU: u32 = 1280;

/// A request to give `device` those of `flags` that `mask` has.
fn change(device: &str, flags: u32, mask: u32) -> Result<Message, Error> {
    let mut message = Message::new(libc::RTM_NEWLINK, 0);
    // struct ifinfomsg
    message.bytes(&[0; 4]).number(index(device)?).number(flags).number(mask);
    Ok(message)
}

/// A request under construction.
struct Message(Vec<u8>);

impl Message {
    fn new(kind: u16, flags: i32) -> Self {
        let flags = (flags | libc::NLM_F_REQUEST | libc::NLM_F_ACK) as u16;
        let mut message = Self(vec![0; HEADER_BYTES]);
        message.0[4..6].copy_from_slice(&kind.to_ne_bytes());
        message.0[6..8].copy_from_slice(&flags.to_ne_bytes());
        message
    }

    fn bytes(&mut self, bytes: &[u8]) -> &mut Self {
        self.0.extend_from_slice(bytes);
        self
    }

    fn number(&mut self, number: u32) -> &mut Self {
        self.bytes(&number.to_ne_bytes())
    }

    fn attribute(&mut self, kind: u16, value: &[u8]) -> &mut Self {
        let len = 4 + value.len() as u16;
        self.bytes(&len.to_ne_bytes()).bytes(&kind.to_ne_bytes()).bytes(value);
        let padded = self.0.len().next_multiple_of(4);
        self.0.resize(padded, 0);
        self
    }

    fn finish(mut self, sequence: u32) -> Vec<u8> {
        let len = self.0.len() as u32;
        self.0[..4].copy_from_slice(&len.to_ne_bytes());
        self.0[8..12].copy_from_slice(&sequence.to_ne_bytes());
        self.0
    }
}

fn index(device: &str) -> Result<u32, Error> {
    if_nametoindex(device).map_err(|error| Error::system("find a device", error))
}

fn family(address: IpAddr) -> u8 {
    match address {
        IpAddr::V4(_) => libc::AF_INET as u8,
        IpAddr::V6(_) => libc::AF_INET6 as u8,
    }
}

fn octets(address: IpAddr) -> Vec<u8> {
    match address {
        IpAddr::V4(address) => address.octets().into(),
        IpAddr::V6(address) => address.octets().into(),
    }
}
