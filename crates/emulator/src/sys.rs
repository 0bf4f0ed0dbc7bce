//! The system calls that no library wraps safely: TUN ioctls, fork, exec. The only unsafe code of the crate.

#![expect(
    unsafe_code,
    reason = "there is no safe way to these calls; each block says why it is sound"
)]

use std::ffi::{CString, c_char, c_int, c_ulong};
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::ptr;

use nix::errno::Errno;
use nix::sys::signal::{SaFlags, SigAction, SigHandler, SigSet, Signal, sigaction};
use nix::unistd::{ForkResult, Pid, fork};

/// `TUNSETIFF`, `TUNSETOFFLOAD` of `linux/if_tun.h`.
const TUNSETIFF: c_ulong = 0x4004_54ca;
const TUNSETOFFLOAD: c_ulong = 0x4004_54d0;

/// Makes of `fd`, an open `/dev/net/tun`, a device called `name`, where `%d` stands for the first free number. Returns its name.
pub fn make_tun(fd: BorrowedFd<'_>, name: &str, flags: c_int) -> io::Result<String> {
    // SAFETY: ifreq is plain data, and all zeros is a value of it.
    let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
    let room = request.ifr_name.len() - 1;
    for (to, from) in request.ifr_name[..room].iter_mut().zip(name.bytes()) {
        *to = from as c_char;
    }
    request.ifr_ifru.ifru_flags = flags as i16;
    // SAFETY: the kernel reads and writes one ifreq, which lives through the call.
    let result = unsafe { libc::ioctl(fd.as_raw_fd(), TUNSETIFF, &raw mut request) };
    if result < 0 {
        return Err(io::Error::last_os_error());
    }
    let name = request.ifr_name.iter().take_while(|c| **c != 0).map(|c| char::from(*c as u8));
    Ok(name.collect())
}

/// Tells a TUN device which offloads its reader takes apart.
pub fn set_offload(fd: BorrowedFd<'_>, flags: u32) -> io::Result<()> {
    // SAFETY: the argument is a number, not a pointer.
    let result = unsafe { libc::ioctl(fd.as_raw_fd(), TUNSETOFFLOAD, c_ulong::from(flags)) };
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

/// `PACKET_VNET_HDR` of `linux/if_packet.h`.
const PACKET_VNET_HDR: c_int = 15;

/// A socket that gets a copy of what arrives at this host: pings' answers, ICMP errors, and TCP and UDP from `first_port` on, each
/// IPv4 packet behind a header as TUN devices have it and the header of the device where it arrived.
pub fn packet_socket(first_port: u16) -> io::Result<OwnedFd> {
    let filter = arriving_filter(first_port);
    let kind = libc::SOCK_RAW | libc::SOCK_NONBLOCK | libc::SOCK_CLOEXEC;
    // SAFETY: a call without pointers.
    let fd = unsafe { libc::socket(libc::AF_PACKET, kind, 0) };
    if fd < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the descriptor has just been made, and nobody else has it.
    let socket = unsafe { OwnedFd::from_raw_fd(fd) };
    set_option(socket.as_fd(), libc::SOL_PACKET, PACKET_VNET_HDR, &1)?;
    // As much as the host allows.
    let bytes: c_int = 8 << 20;
    let _ = set_option(socket.as_fd(), libc::SOL_SOCKET, libc::SO_RCVBUFFORCE, &bytes);
    attach_filter(socket.as_fd(), &filter)?;
    // From here on packets come, of this protocol only.
    // SAFETY: sockaddr_ll is plain data, and all zeros is a value of it.
    let mut address: libc::sockaddr_ll = unsafe { std::mem::zeroed() };
    address.sll_family = libc::AF_PACKET as u16;
    address.sll_protocol = (libc::ETH_P_IP as u16).to_be();
    let len = size_of::<libc::sockaddr_ll>() as libc::socklen_t;
    // SAFETY: the kernel reads one sockaddr_ll, which lives through the call.
    let result = unsafe { libc::bind(fd, (&raw const address).cast(), len) };
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(socket) }
}

/// Lets the kernel drop whatever comes to `socket`.
pub fn discard(socket: BorrowedFd<'_>) -> nix::Result<()> {
    let nothing = [instruction(libc::BPF_RET | libc::BPF_K, 0, [0, 0])];
    attach_filter(socket, &nothing)
        .map_err(|error| Errno::from_raw(error.raw_os_error().unwrap_or(0)))
}

/// What [`packet_socket`] wants.
fn arriving_filter(first_port: u16) -> [libc::sock_filter; 13] {
    use libc::{BPF_ABS, BPF_B, BPF_H, BPF_IND, BPF_JEQ, BPF_JGE, BPF_JMP, BPF_JSET, BPF_K};
    use libc::{BPF_LD, BPF_LDX, BPF_MSH, BPF_RET};
    // Where the IP header begins, whatever is before it.
    let ip = libc::SKF_NET_OFF as u32;
    let load = |size, at| instruction(BPF_LD | size | BPF_ABS, at, [0, 0]);
    let jump = |test, value, ways| instruction(BPF_JMP | test | BPF_K, value, ways);
    let packet_type = (libc::SKF_AD_OFF + libc::SKF_AD_PKTTYPE) as u32;
    [
        // For this host, not sent by it, broadcast or overheard.
        load(BPF_B, packet_type),
        jump(BPF_JEQ, libc::PACKET_HOST.into(), [0, 9]),
        load(BPF_B, ip + 9),
        jump(BPF_JEQ, libc::IPPROTO_ICMP as u32, [8, 0]),
        jump(BPF_JEQ, libc::IPPROTO_TCP as u32, [1, 0]),
        jump(BPF_JEQ, libc::IPPROTO_UDP as u32, [0, 5]),
        // No fragment but the first.
        load(BPF_H, ip + 6),
        jump(BPF_JSET, 0x1fff, [3, 0]),
        // The port behind the IP header, however long that is.
        instruction(BPF_LDX | BPF_B | BPF_MSH, ip, [0, 0]),
        instruction(BPF_LD | BPF_H | BPF_IND, ip + 2, [0, 0]),
        jump(BPF_JGE, first_port.into(), [1, 0]),
        instruction(BPF_RET | BPF_K, 0, [0, 0]),
        instruction(BPF_RET | BPF_K, u32::MAX, [0, 0]),
    ]
}

fn instruction(code: u32, k: u32, [jt, jf]: [u8; 2]) -> libc::sock_filter {
    libc::sock_filter { code: code as u16, jt, jf, k }
}

fn attach_filter(socket: BorrowedFd<'_>, filter: &[libc::sock_filter]) -> io::Result<()> {
    let program = libc::sock_fprog { len: filter.len() as u16, filter: filter.as_ptr().cast_mut() };
    set_option(socket, libc::SOL_SOCKET, libc::SO_ATTACH_FILTER, &program)
}

fn set_option<T>(socket: BorrowedFd<'_>, level: c_int, name: c_int, value: &T) -> io::Result<()> {
    let len = size_of::<T>() as libc::socklen_t;
    // SAFETY: the kernel reads one T, and what it points to, all of which lives through the call.
    let result = unsafe {
        libc::setsockopt(socket.as_raw_fd(), level, name, ptr::from_ref(value).cast(), len)
    };
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

/// A program with its arguments and environment, in the form in which the kernel takes them, so that starting it after a fork
/// allocates nothing.
pub struct Program {
    arguments: Vec<CString>,
    environment: Vec<CString>,
}

impl Program {
    /// `arguments` begins with the program's name, which is looked for on the PATH.
    pub fn new(arguments: Vec<CString>, environment: Vec<CString>) -> Self {
        Self { arguments, environment }
    }

    /// The pointers that [`Pointers::exec`] passes on.
    pub fn pointers(&self) -> Pointers<'_> {
        let list = |strings: &[CString]| {
            strings.iter().map(|s| s.as_ptr()).chain([ptr::null()]).collect::<Vec<_>>()
        };
        let (arguments, environment) = (list(&self.arguments), list(&self.environment));
        Pointers { arguments, environment, _of: self }
    }
}

/// See [`Program::pointers`].
pub struct Pointers<'a> {
    arguments: Vec<*const c_char>,
    environment: Vec<*const c_char>,
    _of: &'a Program,
}

impl Pointers<'_> {
    /// Becomes the program. Returns only if it cannot.
    pub fn exec(&self) -> c_int {
        if self.arguments.len() < 2 {
            return libc::EINVAL;
        }
        // SAFETY: both lists end in a null pointer, and the strings they point to live as long as the program they are of.
        unsafe {
            libc::execvpe(self.arguments[0], self.arguments.as_ptr(), self.environment.as_ptr());
        }
        io::Error::last_os_error().raw_os_error().unwrap_or(libc::EINVAL)
    }
}

/// Runs `child` in a new process, without ever returning from it there; returns the process here.
///
/// `child` may not allocate, panic, or take a lock: other threads may have held one at the moment of the fork.
pub fn spawn(child: impl FnOnce() -> c_int) -> nix::Result<Pid> {
    // SAFETY: what runs in the child keeps to the rule above, and the child ends without running anything of the parent's.
    match unsafe { fork() }? {
        ForkResult::Parent { child } => Ok(child),
        ForkResult::Child => {
            let status = child();
            // SAFETY: _exit is always allowed; it skips the handlers of the parent.
            unsafe { libc::_exit(status) }
        }
    }
}

/// Closes every descriptor above standard error but those two.
pub fn close_all_but(mut kept: [c_int; 2]) {
    kept.sort_unstable();
    let [a, b] = kept;
    for (first, last) in [(3, a - 1), (a + 1, b - 1), (b + 1, c_int::MAX)] {
        if first <= last {
            // SAFETY: only called in a child that uses none of them again; closing is no memory access.
            unsafe {
                libc::syscall(libc::SYS_close_range, first, last, 0);
            }
        }
    }
}

/// Lets this thread run before all that have no real-time priority, or no longer. Threads and processes inherit it.
pub fn set_realtime(wanted: bool) -> io::Result<()> {
    let policy = if wanted { libc::SCHED_RR } else { libc::SCHED_OTHER };
    // SAFETY: sched_param is plain data, and all zeros is a value of it.
    let mut priority: libc::sched_param = unsafe { std::mem::zeroed() };
    priority.sched_priority = wanted.into();
    // SAFETY: the kernel reads one sched_param, which lives through the call; 0 is this thread.
    let result = unsafe { libc::sched_setscheduler(0, policy, &raw const priority) };
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

/// Gives a signal its default meaning again.
pub fn reset_signal(signal: Signal) {
    let default = SigAction::new(SigHandler::SigDfl, SaFlags::empty(), SigSet::empty());
    // SAFETY: the default action is no handler, so none can run at a bad moment.
    let _ = unsafe { sigaction(signal, &default) };
}
