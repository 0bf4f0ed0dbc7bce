//! The system calls that no library wraps safely: TUN ioctls, fork, exec. The only unsafe code of the crate.

#![expect(
    unsafe_code,
    reason = "there is no safe way to these calls; each block says why it is sound"
)]

use std::ffi::{CString, c_char, c_int, c_ulong};
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};
use std::ptr;

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
