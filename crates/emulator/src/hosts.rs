//! Several hosts behind one link: their devices as one.

use std::io::{self, ErrorKind, IoSlice};
use std::net::Ipv4Addr;
use std::os::fd::{AsFd, BorrowedFd};

use nix::sys::epoll::{Epoll, EpollCreateFlags, EpollEvent, EpollFlags};

use crate::Error;
use crate::packet::FRAME_HEADER_BYTES;
use crate::tun::{Device, Tun};

/// The devices of all hosts. A frame is written to that of its destination.
pub struct Hosts {
    devices: Vec<Tun>,
    /// Of each host.
    addresses: Vec<Ipv4Addr>,
    /// Readable when one of several devices is.
    ready: Option<Epoll>,
    /// Where the last frame came from.
    last: usize,
}

impl Hosts {
    /// `devices` and the address behind each; at least one.
    pub fn new(devices: Vec<Tun>, addresses: Vec<Ipv4Addr>) -> Result<Self, Error> {
        let failed = |error| Error::system("make an epoll", error);
        let ready = match &devices[..] {
            [_] => None,
            several => {
                let ready = Epoll::new(EpollCreateFlags::EPOLL_CLOEXEC).map_err(failed)?;
                for device in several {
                    let event = EpollEvent::new(EpollFlags::EPOLLIN, 0);
                    ready.add(device, event).map_err(failed)?;
                }
                Some(ready)
            }
        };
        Ok(Self { devices, addresses, ready, last: 0 })
    }

    /// A second handle of the same.
    pub fn another(&self) -> Result<Self, Error> {
        let devices = self.devices.iter().map(Tun::another).collect::<Result<_, _>>()?;
        Self::new(devices, self.addresses.clone())
    }
}

impl AsFd for Hosts {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.ready.as_ref().map_or(self.devices[0].as_fd(), |ready| ready.0.as_fd())
    }
}

impl Device for Hosts {
    fn read(&mut self, room: &mut [u8]) -> io::Result<usize> {
        let count = self.devices.len();
        if count == 1 {
            return self.devices[0].read(room);
        }
        // By turns, so that a busy host does not keep the others waiting.
        for turn in 1..=count {
            let index = (self.last + turn) % count;
            match self.devices[index].read(room) {
                Err(error) if error.kind() == ErrorKind::WouldBlock => {}
                read => {
                    self.last = index;
                    return read;
                }
            }
        }
        Err(ErrorKind::WouldBlock.into())
    }

    fn write(&mut self, parts: &[IoSlice<'_>]) -> io::Result<usize> {
        let frame = parts.first().map_or(&[][..], |part| part);
        match self.host_of(frame) {
            Some(host) => self.devices[host].write(parts),
            None => Err(ErrorKind::AddrNotAvailable.into()),
        }
    }

    fn source(&self) -> usize {
        self.last
    }

    /// By the address; of a single host, whatever is within it too.
    fn host_of(&self, frame: &[u8]) -> Option<usize> {
        if self.devices.len() == 1 {
            return Some(0);
        }
        let packet = frame.get(FRAME_HEADER_BYTES..)?;
        // IPv6 addresses end in the IPv4 address of the same host.
        let at = match packet.first()? >> 4 {
            4 => 16,
            6 => 36,
            _ => return None,
        };
        let address: [u8; 4] = packet.get(at..at + 4)?.try_into().ok()?;
        self.addresses.iter().position(|own| own.octets() == address)
    }
}
