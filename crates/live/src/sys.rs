//! The system calls that no library wraps safely or at all: batches of datagrams, socket options, TCP_INFO. The only unsafe code
//! of the crate.

#![expect(
    unsafe_code,
    reason = "there is no safe way to these calls; each block says why it is sound"
)]

use std::io;
use std::mem;
use std::net::{Ipv4Addr, SocketAddrV4, UdpSocket};
use std::os::fd::{AsFd, AsRawFd};
use std::ptr;

use libc::{c_int, c_void, socklen_t};

/// Datagrams received in one call.
pub const RECEIVE_BATCH: usize = 32;
/// What is kept of a datagram, bytes.
pub const KEPT_BYTES: usize = 64;
const CONTROL_WORDS: usize = 8;
/// Buffers of a datagram socket, bytes: a second at 100 Mbit/s, should a thread be held up.
const DATAGRAM_BUFFER: usize = 16 << 20;

/// The first bytes of a datagram.
#[derive(Clone, Copy)]
pub struct Datagram {
    /// What is kept of it.
    pub start: [u8; KEPT_BYTES],
    /// Its size, bytes.
    pub bytes: usize,
    /// Who sent it.
    pub source: SocketAddrV4,
    /// When the kernel received it, ns of CLOCK_REALTIME.
    pub received_ns: Option<u64>,
    /// The ECN field of its IP packet; 0 where the socket does not note it ([`note_marks`]).
    pub ecn: u8,
}

impl Datagram {
    /// What is kept of it.
    pub fn kept(&self) -> &[u8] {
        &self.start[..self.bytes.min(KEPT_BYTES)]
    }
}

/// Room for a batch of datagrams.
pub struct Batch {
    starts: Box<[[u8; KEPT_BYTES]; RECEIVE_BATCH]>,
    /// 64-bit words, so that what is in there is aligned.
    controls: Box<[[u64; CONTROL_WORDS]; RECEIVE_BATCH]>,
}

impl Default for Batch {
    fn default() -> Self {
        Self { starts: Box::new([[0; _]; _]), controls: Box::new([[0; _]; _]) }
    }
}

impl Batch {
    /// Takes what has come to `socket`, without waiting, and hands each datagram to `take`. How many they were.
    pub fn receive(
        &mut self,
        socket: &impl AsFd,
        mut take: impl FnMut(&Datagram),
    ) -> io::Result<usize> {
        // SAFETY: these are plain data, and all zeros is a value of them.
        let mut names: [libc::sockaddr_in; RECEIVE_BATCH] = unsafe { mem::zeroed() };
        // SAFETY: as above.
        let mut parts: [libc::iovec; RECEIVE_BATCH] = unsafe { mem::zeroed() };
        // SAFETY: as above.
        let mut messages: [libc::mmsghdr; RECEIVE_BATCH] = unsafe { mem::zeroed() };
        for n in 0..RECEIVE_BATCH {
            parts[n].iov_base = self.starts[n].as_mut_ptr().cast();
            parts[n].iov_len = KEPT_BYTES;
            let header = &mut messages[n].msg_hdr;
            header.msg_name = (&raw mut names[n]).cast();
            header.msg_namelen = size_of::<libc::sockaddr_in>() as socklen_t;
            header.msg_iov = &raw mut parts[n];
            header.msg_iovlen = 1;
            header.msg_control = self.controls[n].as_mut_ptr().cast();
            header.msg_controllen = size_of_val(&self.controls[n]) as _;
        }
        // SAFETY: every pointer in the messages is to memory of the stated length that lives through the call. MSG_TRUNC makes
        // the kernel report the true length; it writes no more than the room it was told of.
        let received = unsafe {
            libc::recvmmsg(
                socket.as_fd().as_raw_fd(),
                messages.as_mut_ptr(),
                RECEIVE_BATCH as _,
                libc::MSG_DONTWAIT | libc::MSG_TRUNC,
                ptr::null_mut(),
            )
        };
        if received < 0 {
            return Err(io::Error::last_os_error());
        }
        let received = received as usize;
        for n in 0..received {
            let source = SocketAddrV4::new(
                Ipv4Addr::from(u32::from_be(names[n].sin_addr.s_addr)),
                u16::from_be(names[n].sin_port),
            );
            let (received_ns, ecn) = noted(&messages[n].msg_hdr);
            let bytes = messages[n].msg_len as usize;
            take(&Datagram { start: self.starts[n], bytes, source, received_ns, ecn });
        }
        Ok(received)
    }
}

/// The SCM_TIMESTAMPNS of a message that the kernel has filled in, ns, and the ECN field of its IP_TOS.
fn noted(header: &libc::msghdr) -> (Option<u64>, u8) {
    let (mut received_ns, mut ecn) = (None, 0);
    // SAFETY: the header describes control data that the kernel has just written and that is still there.
    let mut next = unsafe { libc::CMSG_FIRSTHDR(header) };
    while !next.is_null() {
        // SAFETY: the macros return null or a header within the control data.
        let control = unsafe { &*next };
        if control.cmsg_level == libc::SOL_SOCKET && control.cmsg_type == libc::SCM_TIMESTAMPNS {
            // SAFETY: a control message of this type holds a timespec; its place need not be aligned.
            let time: libc::timespec =
                unsafe { libc::CMSG_DATA(next).cast::<libc::timespec>().read_unaligned() };
            received_ns = u64::try_from(time.tv_sec)
                .ok()
                .map(|s| s.saturating_mul(1_000_000_000).saturating_add(time.tv_nsec as u64));
        }
        if control.cmsg_level == libc::IPPROTO_IP && control.cmsg_type == libc::IP_TOS {
            // SAFETY: a control message of this type holds a byte.
            ecn = unsafe { libc::CMSG_DATA(next).read() } & 3;
        }
        // SAFETY: as above.
        next = unsafe { libc::CMSG_NXTHDR(header, next) };
    }
    (received_ns, ecn)
}

/// Sends `bytes` as datagrams of `segment` bytes each, the last one what is left, to `to`, or to whom the socket is connected.
pub fn send_segments(
    socket: &impl AsFd,
    bytes: &[u8],
    segment: usize,
    to: Option<SocketAddrV4>,
) -> io::Result<()> {
    let mut part = libc::iovec { iov_base: bytes.as_ptr().cast_mut().cast(), iov_len: bytes.len() };
    // SAFETY: plain data, and all zeros is a value of it.
    let mut header: libc::msghdr = unsafe { mem::zeroed() };
    let mut name = to.map(address);
    if let Some(name) = &mut name {
        header.msg_name = (&raw mut *name).cast();
        header.msg_namelen = size_of::<libc::sockaddr_in>() as socklen_t;
    }
    header.msg_iov = &raw mut part;
    header.msg_iovlen = 1;
    let mut control = [0_u64; CONTROL_WORDS];
    if bytes.len() > segment {
        header.msg_control = control.as_mut_ptr().cast();
        // SAFETY: arithmetic only.
        header.msg_controllen = unsafe { libc::CMSG_SPACE(size_of::<u16>() as u32) } as _;
        // SAFETY: the control data has room for a header and a number of two bytes, is aligned, and is zero.
        unsafe {
            let first = libc::CMSG_FIRSTHDR(&raw const header);
            (*first).cmsg_level = libc::SOL_UDP;
            (*first).cmsg_type = libc::UDP_SEGMENT;
            (*first).cmsg_len = libc::CMSG_LEN(size_of::<u16>() as u32) as _;
            libc::CMSG_DATA(first).cast::<u16>().write_unaligned(segment as u16);
        }
    }
    // SAFETY: every pointer in the header is to memory of the stated length that lives through the call.
    let sent = unsafe { libc::sendmsg(socket.as_fd().as_raw_fd(), &raw const header, 0) };
    if sent < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

fn address(of: SocketAddrV4) -> libc::sockaddr_in {
    libc::sockaddr_in {
        sin_family: libc::AF_INET as _,
        sin_port: of.port().to_be(),
        sin_addr: libc::in_addr { s_addr: u32::from(*of.ip()).to_be() },
        sin_zero: [0; 8],
    }
}

fn set(socket: &impl AsFd, level: c_int, option: c_int, value: &[u8]) -> io::Result<()> {
    // SAFETY: the kernel reads as many bytes as there are.
    let result = unsafe {
        libc::setsockopt(
            socket.as_fd().as_raw_fd(),
            level,
            option,
            value.as_ptr().cast(),
            value.len() as socklen_t,
        )
    };
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

fn set_number(socket: &impl AsFd, level: c_int, option: c_int, value: c_int) -> io::Result<()> {
    set(socket, level, option, &value.to_ne_bytes())
}

/// Makes the kernel note when datagrams arrive.
fn note_arrivals(socket: &impl AsFd) -> io::Result<()> {
    set_number(socket, libc::SOL_SOCKET, libc::SO_TIMESTAMPNS, 1)
}

/// A socket of an endpoint: it notes when datagrams come, and their marks.
pub fn datagram_socket(address: SocketAddrV4) -> io::Result<UdpSocket> {
    let socket = UdpSocket::bind(address)?;
    note_arrivals(&socket)?;
    note_marks(&socket)?;
    set_buffers(&socket, DATAGRAM_BUFFER)?;
    Ok(socket)
}

/// Makes the kernel note the ECN fields of datagrams.
fn note_marks(socket: &impl AsFd) -> io::Result<()> {
    set_number(socket, libc::IPPROTO_IP, libc::IP_RECVTOS, 1)
}

/// Sets the ECN field of what a UDP socket sends.
pub fn set_ecn(socket: &impl AsFd, field: u8) -> io::Result<()> {
    set_number(socket, libc::IPPROTO_IP, libc::IP_TOS, field.into())
}

/// Gives the socket buffers of so many bytes, beyond the limit for others where that is allowed.
pub fn set_buffers(socket: &impl AsFd, bytes: usize) -> io::Result<()> {
    let bytes = c_int::try_from(bytes).unwrap_or(c_int::MAX / 2);
    let pairs = [(libc::SO_SNDBUFFORCE, libc::SO_SNDBUF), (libc::SO_RCVBUFFORCE, libc::SO_RCVBUF)];
    for (forced, plain) in pairs {
        set_number(socket, libc::SOL_SOCKET, forced, bytes)
            .or_else(|_| set_number(socket, libc::SOL_SOCKET, plain, bytes))?;
    }
    Ok(())
}

/// Picks the kernel's congestion control of a TCP socket.
pub fn set_congestion(socket: &impl AsFd, name: &str) -> io::Result<()> {
    set(socket, libc::IPPROTO_TCP, libc::TCP_CONGESTION, name.as_bytes())
}

/// Bounds the rate of a TCP socket, bytes/s.
pub fn set_max_pacing_rate(socket: &impl AsFd, bytes_per_s: u64) -> io::Result<()> {
    set(socket, libc::SOL_SOCKET, libc::SO_MAX_PACING_RATE, &bytes_per_s.to_ne_bytes())
}

/// Bounds the payload of a TCP socket's packets, bytes.
pub fn set_max_segment(socket: &impl AsFd, bytes: u16) -> io::Result<()> {
    set_number(socket, libc::IPPROTO_TCP, libc::TCP_MAXSEG, bytes.into())
}

/// Lets a TCP socket take no more from its program while so many bytes wait unsent.
pub fn set_unsent_limit(socket: &impl AsFd, bytes: u32) -> io::Result<()> {
    set(socket, libc::IPPROTO_TCP, libc::TCP_NOTSENT_LOWAT, &bytes.to_ne_bytes())
}

/// Lets closing break a connection off at once.
pub fn abort_on_close(socket: &impl AsFd) -> io::Result<()> {
    let both = [1_i32.to_ne_bytes(), 0_i32.to_ne_bytes()].concat();
    set(socket, libc::SOL_SOCKET, libc::SO_LINGER, &both)
}

/// What the kernel knows of a TCP connection, as it lays it out (`struct tcp_info` of `linux/tcp.h`): as much as it knows.
pub fn tcp_info(socket: &impl AsFd) -> io::Result<Vec<u8>> {
    let mut bytes = vec![0_u8; 512];
    let mut length = bytes.len() as socklen_t;
    // SAFETY: the kernel writes at most `length` bytes there, and says how many.
    let result = unsafe {
        libc::getsockopt(
            socket.as_fd().as_raw_fd(),
            libc::IPPROTO_TCP,
            libc::TCP_INFO,
            bytes.as_mut_ptr().cast(),
            &raw mut length,
        )
    };
    if result < 0 {
        return Err(io::Error::last_os_error());
    }
    bytes.truncate(length as usize);
    Ok(bytes)
}

/// Takes up to `most` bytes from a TCP socket and throws them away unseen; 0 at the end of the stream.
pub fn discard(socket: &impl AsFd, most: usize) -> io::Result<usize> {
    // SAFETY: with MSG_TRUNC TCP discards what it would have copied, so no memory is needed (tcp(7)).
    let taken = unsafe {
        let nowhere = ptr::null_mut::<c_void>();
        libc::recv(socket.as_fd().as_raw_fd(), nowhere, most, libc::MSG_TRUNC)
    };
    if taken < 0 { Err(io::Error::last_os_error()) } else { Ok(taken as usize) }
}

/// CPU time of this thread, s.
pub fn thread_cpu_s() -> f64 {
    // SAFETY: plain data, and all zeros is a value of it.
    let mut time: libc::timespec = unsafe { mem::zeroed() };
    // SAFETY: the kernel writes one timespec.
    unsafe { libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &raw mut time) };
    time.tv_sec as f64 + time.tv_nsec as f64 * 1e-9
}

/// CLOCK_REALTIME, ns.
pub fn realtime_ns() -> u64 {
    // SAFETY: plain data, and all zeros is a value of it.
    let mut time: libc::timespec = unsafe { mem::zeroed() };
    // SAFETY: the kernel writes one timespec.
    unsafe { libc::clock_gettime(libc::CLOCK_REALTIME, &raw mut time) };
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}
