//! The processes inside: an init of their own, and the command.
//!
//! The command runs in a PID namespace whose first process reaps what it leaves behind, passes signals on, and reports its end.
//! When that process ends, for whatever reason, the kernel ends everything in the namespace, daemons included; and the kernel
//! kills that process when the emulator dies. So nothing inside outlives the emulator or the command.
//!
//! All of this runs between fork and exec in a process that may have had many threads: no allocation, no panic, no lock.

use std::ffi::c_int;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};

use nix::errno::Errno;
use nix::fcntl::{OFlag, open};
use nix::mount::{MsFlags, mount};
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sched::{CloneFlags, unshare};
use nix::sys::prctl;
use nix::sys::signal::{SigSet, SigmaskHow, Signal, kill, sigprocmask};
use nix::sys::signalfd::{SfdFlags, SignalFd};
use nix::sys::stat::Mode;
use nix::sys::wait::{WaitPidFlag, WaitStatus, waitpid};
use nix::unistd::{Pid, write};

use crate::sys::{self, Pointers};

/// Signals that are passed on to the command.
pub const PASSED_ON: [Signal; 6] = [
    Signal::SIGINT,
    Signal::SIGTERM,
    Signal::SIGHUP,
    Signal::SIGQUIT,
    Signal::SIGUSR1,
    Signal::SIGUSR2,
];

/// `si_code` of a signal that the kernel sent; of the signals above that is the terminal's, which the command has got as well.
const SI_KERNEL: i32 = 0x80;

/// Whether a process sent the signal.
pub fn is_from_a_process(code: i32) -> bool {
    code != SI_KERNEL
}

/// What the init reports: a byte for the kind, a number.
pub const REPORT_BYTES: usize = 5;

/// How the command ended, or why it never began.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Report {
    /// It could not be started: error number.
    NotStarted(i32),
    /// Exit status.
    Exited(i32),
    /// The signal that killed it.
    Killed(i32),
}

impl Report {
    fn to_bytes(self) -> [u8; REPORT_BYTES] {
        let (kind, number) = match self {
            Self::NotStarted(error) => (0, error),
            Self::Exited(status) => (1, status),
            Self::Killed(signal) => (2, signal),
        };
        let [a, b, c, d] = number.to_ne_bytes();
        [kind, a, b, c, d]
    }

    /// The report that `bytes` begin with.
    pub fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let (kind, number) = bytes.get(..REPORT_BYTES)?.split_first()?;
        let number = i32::from_ne_bytes(number.try_into().ok()?);
        match kind {
            0 => Some(Self::NotStarted(number)),
            1 => Some(Self::Exited(number)),
            2 => Some(Self::Killed(number)),
            _ => None,
        }
    }
}

/// What the processes inside need.
pub struct Inside<'a> {
    /// The command.
    pub command: Pointers<'a>,
    /// Where to report.
    pub report: BorrowedFd<'a>,
    /// Reads end of file once the emulator is gone.
    pub emulator: BorrowedFd<'a>,
    /// How names are resolved, if not as outside: the text of `/etc/resolv.conf`.
    pub names: Option<&'a [u8]>,
    /// Signals that were blocked before the emulator blocked more.
    pub mask: SigSet,
}

impl Inside<'_> {
    /// The first process of the namespace. Returns its exit status.
    pub fn init(&self) -> c_int {
        match self.try_init() {
            Ok(()) => 0,
            Err(error) => error as c_int,
        }
    }

    fn try_init(&self) -> nix::Result<()> {
        prctl::set_pdeathsig(Signal::SIGKILL)?;
        sys::close_all_but([self.report.as_raw_fd(), self.emulator.as_raw_fd()]);
        // It may have died before it was to take us along.
        let mut emulator = [PollFd::new(self.emulator.as_fd(), PollFlags::POLLIN)];
        if poll(&mut emulator, PollTimeout::ZERO)? > 0 {
            return Err(Errno::ECHILD);
        }
        let _ = prctl::set_name(c"paceline-init");
        // Programs look processes up in /proc; without this they would find those outside.
        let _ = own_files(self.names);
        let all = SigSet::all();
        sigprocmask(SigmaskHow::SIG_SETMASK, Some(&all), None)?;
        let signals = SignalFd::with_flags(&all, SfdFlags::SFD_CLOEXEC)?;
        let command = sys::spawn(|| self.become_command())?;
        self.watch(command, &signals)
    }

    fn become_command(&self) -> c_int {
        // An interpreter that starts the emulator may have these ignored, which exec would pass on.
        sys::reset_signal(Signal::SIGPIPE);
        sys::reset_signal(Signal::SIGXFSZ);
        let _ = sigprocmask(SigmaskHow::SIG_SETMASK, Some(&self.mask), None);
        let error = self.command.exec();
        let _ = write(self.report, &Report::NotStarted(error).to_bytes());
        127
    }

    /// Reaps whoever ends, passes signals on, and reports the end of the command.
    fn watch(&self, command: Pid, signals: &SignalFd) -> nix::Result<()> {
        loop {
            let Some(signal) = signals.read_signal()? else { continue };
            let number = signal.ssi_signo as c_int;
            if number != Signal::SIGCHLD as c_int {
                if is_from_a_process(signal.ssi_code)
                    && let Ok(signal) = Signal::try_from(number)
                {
                    let _ = kill(command, signal);
                }
                continue;
            }
            while let Ok(status) = waitpid(None, Some(WaitPidFlag::WNOHANG)) {
                let report = match status {
                    WaitStatus::Exited(pid, status) if pid == command => Report::Exited(status),
                    WaitStatus::Signaled(pid, by, _) if pid == command => {
                        Report::Killed(by as c_int)
                    }
                    WaitStatus::StillAlive => break,
                    _ => continue,
                };
                write(self.report, &report.to_bytes())?;
                return Ok(());
            }
        }
    }
}

/// A /proc that shows the processes inside, and a configuration of the resolver; seen by those alone.
fn own_files(names: Option<&[u8]>) -> nix::Result<()> {
    unshare(CloneFlags::CLONE_NEWNS)?;
    let none = None::<&str>;
    mount(none, "/", none, MsFlags::MS_REC | MsFlags::MS_PRIVATE, none)?;
    let flags = MsFlags::MS_NOSUID | MsFlags::MS_NODEV | MsFlags::MS_NOEXEC;
    if let Some(text) = names {
        // The file needs a place to be, which the new /proc then hides.
        mount(Some("tmpfs"), "/proc", Some("tmpfs"), flags, none)?;
        let create = OFlag::O_CREAT | OFlag::O_WRONLY | OFlag::O_CLOEXEC;
        let file = open("/proc/resolv.conf", create, Mode::from_bits_truncate(0o644))?;
        write(&file, text)?;
        let _ = mount(Some("/proc/resolv.conf"), "/etc/resolv.conf", none, MsFlags::MS_BIND, none);
    }
    mount(Some("proc"), "/proc", Some("proc"), flags, none)
}
