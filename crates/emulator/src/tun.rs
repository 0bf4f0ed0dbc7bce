//! TUN devices: an interface on one side, a file of frames on the other. They vanish with the file.

use std::fs::{File, OpenOptions};
use std::io::{self, IoSlice, Read, Write};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::fs::OpenOptionsExt;

use crate::Error;
use crate::sys;

const PATH: &str = "/dev/net/tun";
/// `TUN_F_CSUM | TUN_F_TSO4 | TUN_F_TSO6`: large TCP packets come whole, checksums are left to whoever needs them.
const OFFLOADS: u32 = 0x01 | 0x02 | 0x04;
/// `TUN_F_USO4 | TUN_F_USO6`: large UDP packets too (Linux 6.2).
const UDP_OFFLOADS: u32 = 0x20 | 0x40;

/// What the forwarder reads frames from and writes them to.
pub trait Device {
    /// Reads a frame. `WouldBlock` when there is none.
    ///
    /// # Errors
    /// Those of the device.
    fn read(&mut self, room: &mut [u8]) -> io::Result<usize>;
    /// Writes a frame that consists of `parts`.
    ///
    /// # Errors
    /// Those of the device.
    fn write(&mut self, parts: &[IoSlice<'_>]) -> io::Result<usize>;
    /// Of several hosts, the one that sent the frame read last.
    fn source(&self) -> usize {
        0
    }
    /// Of several hosts, the one that `frame` is for.
    fn host_of(&self, _frame: &[u8]) -> Option<usize> {
        Some(0)
    }
}

/// A TUN device.
pub struct Tun {
    file: File,
    name: String,
}

impl Tun {
    /// Makes a device in the network namespace of this thread. In `name`, `%d` stands for the first free number.
    pub fn new(name: &str) -> Result<Self, Error> {
        let file = OpenOptions::new()
            .read(true)
            .write(true)
            .custom_flags(libc::O_NONBLOCK | libc::O_CLOEXEC)
            .open(PATH)
            .map_err(Error::no_tun)?;
        let flags = libc::IFF_TUN | libc::IFF_NO_PI | libc::IFF_VNET_HDR;
        let name = sys::make_tun(file.as_fd(), name, flags)
            .map_err(|error| Error::system("make a TUN device", error))?;
        sys::set_offload(file.as_fd(), OFFLOADS | UDP_OFFLOADS)
            .or_else(|_| sys::set_offload(file.as_fd(), OFFLOADS))
            .map_err(|error| Error::system("set the offloads of a TUN device", error))?;
        Ok(Self { file, name })
    }

    /// Name of the interface.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// A second handle of the same device.
    pub fn another(&self) -> Result<Self, Error> {
        let file = self.file.try_clone();
        let file = file.map_err(|error| Error::system("duplicate a TUN device", error))?;
        Ok(Self { file, name: self.name.clone() })
    }
}

impl AsFd for Tun {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }
}

impl Device for Tun {
    fn read(&mut self, room: &mut [u8]) -> io::Result<usize> {
        self.file.read(room)
    }

    fn write(&mut self, parts: &[IoSlice<'_>]) -> io::Result<usize> {
        self.file.write_vectored(parts)
    }
}
