//! The end of the link outside: this host, and with `--outside` the network behind it.
//!
//! Packets for this host go to the kernel through the TUN device. Those for others are made packets of this host's and sent by a
//! raw socket; what is answered comes from a packet socket, which sees what arrives (`translation.rs` knows whose it is). For the
//! kernel the program's ports must be somebody's: each is held by a socket of ours that drops what it gets, so that nobody else
//! takes the port and nothing is answered twice. The host forwards nothing and no rule or setting of it is changed: all there
//! is are sockets, which end with this process.

pub mod names;
mod translation;

use std::collections::HashMap;
use std::fs;
use std::io::{self, IoSlice, IoSliceMut};
use std::net::{Ipv4Addr, SocketAddr, SocketAddrV4, UdpSocket};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::{Duration, Instant};

use nix::errno::Errno;
use nix::ifaddrs::{InterfaceAddress, getifaddrs};
use nix::sys::epoll::{Epoll, EpollCreateFlags, EpollEvent, EpollFlags};
use nix::sys::resource::{Resource, getrlimit};
use nix::sys::socket::{
    AddressFamily, Backlog, LinkAddr, MsgFlags, SockFlag, SockProtocol, SockType, SockaddrIn, bind,
    listen, recvmsg, sendto, socket,
};

use crate::Error;
use crate::address::Block;
use crate::packet::{FRAME_HEADER_BYTES, NEEDS_CHECKSUM, Outgoing, Segments, get};
use crate::sys;
use crate::tun::{Device, Tun};
use translation::{Protocol, Translation, complete_checksum, destination};

/// What a program can reach.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Reach {
    /// This host.
    #[default]
    Host,
    /// What this host reaches, too, as if it were this host.
    Outside,
}

/// Ports outside are above those that programs get by default (`ip_local_port_range`), so that most of what comes to this host
/// need not be looked at.
const FIRST_PORT: u16 = 61_000;
/// The most of them in use.
const MOST_PORTS: usize = 4096;
/// What IPv6 needs, and every link has.
const LEAST_MTU: u32 = 1280;
/// Bytes that an Ethernet device puts before a packet.
const ETHERNET_HEADER_BYTES: usize = 14;
/// Kinds of devices that do; loopback does too, and others put nothing there.
const ETHERNETS: [u16; 2] = [libc::ARPHRD_ETHER, libc::ARPHRD_LOOPBACK];
/// How long it holds which address of this host is the source for a destination.
const ROUTE_TIME: Duration = Duration::from_secs(5);
/// The most destinations whose source is remembered.
const MOST_ROUTES: usize = 4096;

/// The device of the emulator's outer end.
pub struct Outside {
    tun: Tun,
    /// The block of the link's own addresses.
    block: Block,
    gate: Option<Gate>,
}

/// Two handles of it share what they know.
struct Gate {
    shared: Arc<Shared>,
    /// Readable when the device or the packet socket is.
    ready: Epoll,
    /// Frames under construction.
    frame: Vec<u8>,
    packet: Vec<u8>,
    /// Which address of this host is the source for a destination, as was found out when.
    sources: HashMap<Ipv4Addr, (Option<Ipv4Addr>, Instant)>,
    /// The port to be tried next.
    next_port: u16,
}

/// What holds a port. The identifiers of pings need nothing: nobody answers their answers.
type Guard = Option<OwnedFd>;

struct Shared {
    /// Where packets come in, each as a frame of a TUN device.
    arriving: OwnedFd,
    /// Where they go out.
    leaving: OwnedFd,
    translation: Mutex<Translation<Guard>>,
}

impl Outside {
    /// `tun` and, if wished, what is behind this host; in the network namespace of this thread.
    pub fn new(tun: Tun, block: Block, reach: Reach) -> Result<Self, Error> {
        let gate = match reach {
            Reach::Host => None,
            Reach::Outside => Some(Gate::new(&tun, Arc::new(Shared::new()?))?),
        };
        Ok(Self { tun, block, gate })
    }

    /// A second handle of the same.
    pub fn another(&self) -> Result<Self, Error> {
        let tun = self.tun.another()?;
        let gate = self.gate.as_ref().map(|gate| Gate::new(&tun, Arc::clone(&gate.shared)));
        Ok(Self { gate: gate.transpose()?, tun, block: self.block })
    }
}

impl AsFd for Outside {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.gate.as_ref().map_or(self.tun.as_fd(), |gate| gate.ready.0.as_fd())
    }
}

impl Device for Outside {
    fn read(&mut self, room: &mut [u8]) -> io::Result<usize> {
        match &mut self.gate {
            Some(gate) => match gate.read(room) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => self.tun.read(room),
                read => read,
            },
            None => self.tun.read(room),
        }
    }

    fn write(&mut self, parts: &[IoSlice<'_>]) -> io::Result<usize> {
        let Some(gate) = &mut self.gate else { return self.tun.write(parts) };
        gate.frame.clear();
        parts.iter().for_each(|part| gate.frame.extend_from_slice(part));
        let packet = gate.frame.get(FRAME_HEADER_BYTES..).unwrap_or_default();
        let is_far = |to: &Ipv4Addr| {
            let is_one = !to.is_multicast() && !to.is_broadcast() && !to.is_unspecified();
            is_one && !to.is_loopback() && !self.block.contains(*to)
        };
        let far = destination(packet).filter(is_far);
        let source = far.and_then(|to| Some((to, gate.source(to)?)));
        match source {
            // An address of this host has itself as the source: the kernel answers.
            Some((to, source)) if to != source => gate.write(to, source),
            _ => self.tun.write(parts),
        }
    }
}

impl Gate {
    fn new(tun: &Tun, shared: Arc<Shared>) -> Result<Self, Error> {
        let failed = |error| Error::system("make an epoll", error);
        let ready = Epoll::new(EpollCreateFlags::EPOLL_CLOEXEC).map_err(failed)?;
        for file in [tun.as_fd(), shared.arriving.as_fd()] {
            ready.add(file, EpollEvent::new(EpollFlags::EPOLLIN, 0)).map_err(failed)?;
        }
        let (frame, packet, sources) = (Vec::new(), Vec::new(), HashMap::new());
        // Emulators beside each other begin apart.
        let next_port = FIRST_PORT + (std::process::id() % u32::from(u16::MAX - FIRST_PORT)) as u16;
        Ok(Self { shared, ready, frame, packet, sources, next_port })
    }

    /// The address of this host from which packets go to `to`, if there is a way there.
    fn source(&mut self, to: Ipv4Addr) -> Option<Ipv4Addr> {
        let now = Instant::now();
        if let Some((source, when)) = self.sources.get(&to)
            && now - *when < ROUTE_TIME
        {
            return *source;
        }
        if self.sources.len() >= MOST_ROUTES {
            self.sources.clear();
        }
        let source = source(to);
        self.sources.insert(to, (source, now));
        source
    }

    /// The next frame from outside that is for the program.
    fn read(&mut self, room: &mut [u8]) -> io::Result<usize> {
        loop {
            let len = receive(&self.shared.arriving, room)?;
            let Some((head, packet)) = room[..len].split_at_mut_checked(FRAME_HEADER_BYTES) else {
                continue;
            };
            let partial = head[0] & NEEDS_CHECKSUM != 0;
            if self.shared.translation().inwards(packet, partial) {
                return Ok(len);
            }
        }
    }

    /// Sends the frame, packet by packet, to `to` from `source`.
    fn write(&mut self, to: Ipv4Addr, source: Ipv4Addr) -> io::Result<usize> {
        let segments = Segments::of(&self.frame);
        let to = SockaddrIn::from(SocketAddrV4::new(to, 0));
        let mut translation = self.shared.translation();
        let next_port = &mut self.next_port;
        for index in 0..segments.count {
            let out = Outgoing::new(&mut self.frame, segments, index, 1, false);
            self.packet.clear();
            out.parts(&self.frame).iter().for_each(|part| self.packet.extend_from_slice(part));
            let Some((head, packet)) = self.packet.split_at_mut_checked(FRAME_HEADER_BYTES) else {
                return Err(io::ErrorKind::InvalidData.into());
            };
            let partial = head[0] & NEEDS_CHECKSUM != 0;
            if partial {
                let word = |at: usize| usize::from(u16::from_ne_bytes([head[at], head[at + 1]]));
                complete_checksum(packet, word(6), word(8));
            }
            if !translation.outwards(packet, source, |protocol| reserve(protocol, next_port)) {
                return Err(io::ErrorKind::Unsupported.into());
            }
            sendto(self.shared.leaving.as_raw_fd(), packet, &to, MsgFlags::MSG_DONTWAIT)?;
        }
        Ok(self.frame.len())
    }
}

impl Shared {
    fn new() -> Result<Self, Error> {
        let failed = |error| Error::lacking("open a raw socket", "--outside", "CAP_NET_RAW", error);
        let flags = SockFlag::SOCK_CLOEXEC | SockFlag::SOCK_NONBLOCK;
        let leaving =
            socket(AddressFamily::Inet, SockType::Raw, flags, SockProtocol::Raw).map_err(failed)?;
        let arriving = sys::packet_socket(FIRST_PORT)
            .map_err(|error| Error::system("open a packet socket", error))?;
        // Every port takes a descriptor, of which others must remain.
        let files = getrlimit(Resource::RLIMIT_NOFILE).map_or(1024, |(soft, _)| soft);
        let most = MOST_PORTS.min(files as usize / 2);
        let translation = Mutex::new(Translation::new(most));
        Ok(Self { arriving, leaving, translation })
    }

    fn translation(&self) -> MutexGuard<'_, Translation<Guard>> {
        self.translation.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }
}

/// Receives a packet as a frame of a TUN device; its length.
fn receive(arriving: &OwnedFd, room: &mut [u8]) -> io::Result<usize> {
    let mut device_header = [0; ETHERNET_HEADER_BYTES];
    let (head, packet) = room.split_at_mut(FRAME_HEADER_BYTES);
    let mut parts = [&mut *head, &mut device_header, packet].map(IoSliceMut::new);
    let got = recvmsg::<LinkAddr>(arriving.as_raw_fd(), &mut parts, None, MsgFlags::MSG_DONTWAIT)?;
    let has_header = got.address.is_some_and(|from| ETHERNETS.contains(&from.hatype()));
    let mut len = got.bytes;
    if !has_header {
        // Then the bytes there are the packet's first.
        let moved = len.saturating_sub(FRAME_HEADER_BYTES + ETHERNET_HEADER_BYTES);
        let begin = FRAME_HEADER_BYTES + ETHERNET_HEADER_BYTES;
        if begin + moved > room.len() {
            return Ok(0);
        }
        room.copy_within(FRAME_HEADER_BYTES..FRAME_HEADER_BYTES + moved, begin);
        room[FRAME_HEADER_BYTES..begin].copy_from_slice(&device_header);
    } else {
        len = len.saturating_sub(ETHERNET_HEADER_BYTES);
        // Length of the headers, and where the checksum begins.
        for at in [2, 6] {
            let from_device = u16::from_ne_bytes([room[at], room[at + 1]]);
            let from_packet = from_device.saturating_sub(ETHERNET_HEADER_BYTES as u16);
            room[at..at + 2].copy_from_slice(&from_packet.to_ne_bytes());
        }
    }
    // A device may pad short packets.
    let packet = room.get(FRAME_HEADER_BYTES..len).unwrap_or_default();
    let bytes = if packet.len() >= 20 { usize::from(get(packet, 2)) } else { 0 };
    Ok(if bytes >= 20 { len.min(FRAME_HEADER_BYTES + bytes) } else { len })
}

/// The address of this host from which packets go to `to`. Nothing is sent for that.
fn source(to: Ipv4Addr) -> Option<Ipv4Addr> {
    let socket = UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0)).ok()?;
    // Any port will do.
    socket.connect((to, 9)).ok()?;
    match socket.local_addr().ok()? {
        SocketAddr::V4(own) => Some(*own.ip()),
        SocketAddr::V6(_) => None,
    }
}

/// Gets a port, from `next` on.
fn reserve(protocol: Protocol, next: &mut u16) -> Option<(u16, Guard)> {
    for _ in FIRST_PORT..=u16::MAX {
        let port = *next;
        *next = port.checked_add(1).unwrap_or(FIRST_PORT);
        let kind = match protocol {
            Protocol::Tcp => SockType::Stream,
            Protocol::Udp => SockType::Datagram,
            Protocol::Echo => return Some((port, None)),
        };
        match hold(kind, port) {
            Ok(guard) => return Some((port, Some(guard))),
            Err(Errno::EADDRINUSE) => {}
            Err(_) => return None,
        }
    }
    None
}

/// A socket that has `port` and drops what comes to it.
fn hold(kind: SockType, port: u16) -> nix::Result<OwnedFd> {
    let guard = socket(AddressFamily::Inet, kind, SockFlag::SOCK_CLOEXEC, None)?;
    sys::discard(guard.as_fd())?;
    let any = SockaddrIn::from(SocketAddrV4::new(Ipv4Addr::UNSPECIFIED, port));
    bind(guard.as_raw_fd(), &any)?;
    if kind == SockType::Stream {
        // Of a port where nobody listens, the kernel says so to whoever sends there.
        listen(&guard, Backlog::new(1)?)?;
    }
    Ok(guard)
}

/// The largest packet that leaves this host in one piece, as far as `most`: that of the device that leads to everywhere.
pub fn mtu(most: u32) -> u32 {
    // An address that nobody has (RFC 5737).
    let Some(own) = source(Ipv4Addr::new(192, 0, 2, 1)) else { return most };
    let is_own = |entry: &InterfaceAddress| {
        entry.address.and_then(|address| Some(address.as_sockaddr_in()?.ip())) == Some(own)
    };
    let device = getifaddrs().ok().and_then(|mut all| all.find(is_own));
    let mtu = device.and_then(|device| {
        let path = format!("/sys/class/net/{}/mtu", device.interface_name);
        fs::read_to_string(path).ok()?.trim().parse().ok()
    });
    mtu.unwrap_or(most).clamp(LEAST_MTU, most)
}
