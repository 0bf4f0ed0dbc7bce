//! Sets the link up, runs the command, and takes everything down again.

use std::ffi::{CString, OsStr, OsString};
use std::fs::{self, File};
use std::io::{self, Read};
use std::mem;
use std::net::IpAddr;
use std::os::fd::AsFd;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::sync::atomic::{AtomicI32, Ordering};
use std::sync::mpsc;
use std::thread;
use std::time::{Instant, SystemTime, UNIX_EPOCH};

use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sched::{CloneFlags, unshare};
use nix::sys::signal::{SigSet, SigmaskHow, Signal, kill};
use nix::sys::signalfd::{SfdFlags, SignalFd};
use nix::sys::wait::waitpid;
use nix::unistd::Pid;

use crate::Error;
use crate::address::{Block, Claim, INSIDE_DEVICE, OUTSIDE_DEVICE, claim};
use crate::counts::Counts;
use crate::forward::{Direction, Forwarder, Stop, carry};
use crate::inside::{Inside, PASSED_ON, Report, is_from_a_process};
use crate::log::{self, Log, LogFile};
use crate::netlink::Netlink;
use crate::sys::{self, Program};
use crate::tun::Tun;

/// Largest packet on the link, bytes of IP.
const MTU: u32 = 1500;
/// Frames that may wait in a device for the forwarder. The kernel drops more, unseen by the model; this many is a quarter of a
/// second at 1 Gbit/s in single packets.
const DEVICE_QUEUE: u32 = 20_000;

/// An emulated link.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Emulation {
    /// From the command to the outside.
    pub up: Direction,
    /// From the outside to the command.
    pub down: Direction,
    /// Seed of every random draw.
    pub seed: u64,
    /// The two threads that carry packets run before all programs without real-time priority.
    pub realtime: bool,
}

/// How the command ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Status {
    /// By itself, with this exit status.
    Exited(i32),
    /// Killed by this signal.
    Killed(i32),
}

impl Status {
    /// What a shell would call it: the exit status, or 128 and the signal.
    pub fn code(self) -> i32 {
        match self {
            Self::Exited(status) => status,
            Self::Killed(signal) => 128 + signal,
        }
    }
}

/// A finished run.
#[derive(Clone, Debug, PartialEq)]
pub struct Outcome {
    /// How the command ended.
    pub status: Status,
    /// From the command to the outside.
    pub up: Counts,
    /// From the outside to the command.
    pub down: Counts,
    /// Why a log is not complete.
    pub log_failure: Option<String>,
}

/// Runs `command` (the program, then its arguments) behind an emulated link and waits for its end.
///
/// In its environment `PACELINE_BASE` and `MAHIMAHI_BASE` are the address at which the host answers; of nested links, that of
/// the outermost. While it runs, signals sent to this process go to the command; Ctrl-C reaches it anyway.
///
/// # Errors
/// See [`Error`]. What was set up by then is gone.
pub fn run(emulation: Emulation, command: &[OsString]) -> Result<Outcome, Error> {
    let logs = [&emulation.up, &emulation.down].map(create_log);
    let [up_log, down_log] = logs;
    let logs = [up_log?, down_log?];
    let claim = claim()?;
    let outside = make_outside(&claim)?;
    let program = program(command, &claim)?;
    let stop = Stop::new()?;
    let passed_on: SigSet = PASSED_ON.into_iter().collect();
    let mask = passed_on.thread_swap_mask(SigmaskHow::SIG_BLOCK);
    let mask = mask.map_err(|error| Error::system("block signals", error))?;
    let init = AtomicI32::new(0);
    let guest = Guest { emulation, logs, outside, block: claim.block, program, mask, init: &init };
    let outcome = thread::scope(|scope| {
        let ended = &stop;
        let host =
            thread::Builder::new().name("paceline-link".into()).spawn_scoped(scope, move || {
                // Dropped when this thread ends, even by a panic.
                let _ended = Ended(ended);
                guest.run()
            });
        let host = host.map_err(|error| Error::system("start a thread", error))?;
        let passed = pass_signals_on(&passed_on, &init, &stop);
        // A panic there is a bug; it has been printed.
        let outcome = host.join().unwrap_or(Err(Error::Killed));
        passed.and(outcome)
    });
    let _ = mask.thread_set_mask();
    outcome.map_err(|error| match error {
        Error::Command { reason, .. } => {
            let program = command[0].to_string_lossy().into_owned();
            Error::Command { program, reason }
        }
        other => other,
    })
}

fn create_log(direction: &Direction) -> Result<Option<File>, Error> {
    direction.log.as_ref().map(LogFile::create).transpose()
}

/// Says that the thread which has it has ended.
pub(crate) struct Ended<'a>(pub(crate) &'a Stop);

impl Drop for Ended<'_> {
    fn drop(&mut self) {
        self.0.now();
    }
}

/// Passes signals on to the command until `stop`. The signals are blocked, so that nothing else handles them.
fn pass_signals_on(signals: &SigSet, init: &AtomicI32, stop: &Stop) -> Result<(), Error> {
    let fail = |error| Error::system("wait for signals", error);
    let flags = SfdFlags::SFD_CLOEXEC | SfdFlags::SFD_NONBLOCK;
    let arrived = SignalFd::with_flags(signals, flags).map_err(fail)?;
    loop {
        let pid = init.load(Ordering::Acquire);
        let mut files = [
            PollFd::new(stop.as_fd(), PollFlags::POLLIN),
            PollFd::new(arrived.as_fd(), PollFlags::POLLIN),
        ];
        // As long as there is nobody to pass a signal on to, it stays where it is.
        let (files, timeout) = match pid {
            0 => (&mut files[..1], PollTimeout::from(5u8)),
            _ => (&mut files[..], PollTimeout::NONE),
        };
        match poll(files, timeout) {
            Err(nix::errno::Errno::EINTR) => continue,
            polled => polled.map_err(fail)?,
        };
        let is_over = files[0].any() == Some(true);
        // After the end, what the terminal has sent is taken here too: the caller has nothing to do with it.
        while (pid > 0 || is_over)
            && let Some(signal) = arrived.read_signal().map_err(fail)?
        {
            if pid > 0
                && is_from_a_process(signal.ssi_code)
                && let Ok(signal) = Signal::try_from(signal.ssi_signo as i32)
            {
                let _ = kill(Pid::from_raw(pid), signal);
            }
        }
        if is_over {
            return Ok(());
        }
    }
}

/// The device outside, with the host's address.
pub(crate) fn make_outside(claim: &Claim) -> Result<Tun, Error> {
    let device = Tun::new(OUTSIDE_DEVICE)?;
    set_up(&mut Netlink::open()?, device.name(), claim.block, claim.block.outside().into())?;
    Ok(device)
}

fn set_up(netlink: &mut Netlink, device: &str, block: Block, address: IpAddr) -> Result<(), Error> {
    // No link-local address: the kernel would announce it, and those packets would cross the link. Without IPv6, no file.
    let _ = fs::write(format!("/proc/sys/net/ipv6/conf/{device}/addr_gen_mode"), "1");
    netlink.set_up(device, Some(MTU), Some(DEVICE_QUEUE))?;
    netlink.add_address(device, address, block.prefix())?;
    if let IpAddr::V4(address) = address
        && has_ipv6()
    {
        netlink.add_address(device, Block::v6(address).into(), block.v6_prefix())?;
    }
    Ok(())
}

fn has_ipv6() -> bool {
    let disabled = fs::read_to_string("/proc/sys/net/ipv6/conf/all/disable_ipv6");
    disabled.is_ok_and(|text| text.trim() == "0")
}

/// The command with its environment.
fn program(command: &[OsString], claim: &Claim) -> Result<Program, Error> {
    let base = claim.block.outside().to_string();
    // Of nested links the outermost says where the host is.
    let base = match std::env::var("PACELINE_BASE") {
        Ok(outermost) if claim.is_nested => outermost,
        _ => base,
    };
    let own = |key: &OsStr| key == "PACELINE_BASE" || key == "MAHIMAHI_BASE";
    let kept = std::env::vars_os().filter(|(key, _)| !own(key));
    let bases = ["PACELINE_BASE", "MAHIMAHI_BASE"].map(|key| (key.into(), OsString::from(&base)));
    let text = |bytes: Vec<u8>| {
        let error = |_| io::Error::new(io::ErrorKind::InvalidInput, "a zero byte in it");
        CString::new(bytes).map_err(error)
    };
    let variable = |(key, value): (OsString, OsString)| {
        text([key.as_bytes(), b"=", value.as_bytes()].concat())
    };
    let arguments = command.iter().map(|argument| text(argument.clone().into_vec()));
    let environment = kept.chain(bases).map(variable);
    let collected =
        (|| Ok((arguments.collect::<io::Result<_>>()?, environment.collect::<io::Result<_>>()?)))();
    let failed = |reason| Error::Command { program: String::new(), reason };
    let (arguments, environment): (Vec<CString>, _) = collected.map_err(failed)?;
    if arguments.is_empty() {
        return Err(failed(io::Error::new(io::ErrorKind::InvalidInput, "no command given")));
    }
    Ok(Program::new(arguments, environment))
}

/// What the thread needs that lives in the namespace of the command.
struct Guest<'a> {
    emulation: Emulation,
    /// Of the uplink, of the downlink.
    logs: [Option<File>; 2],
    outside: Tun,
    block: Block,
    program: Program,
    mask: SigSet,
    /// Where the process is noted that signals go to.
    init: &'a AtomicI32,
}

impl Guest<'_> {
    /// Moves this thread into a new network namespace, joins that to the outside, and runs the command in it.
    fn run(mut self) -> Result<Outcome, Error> {
        unshare(CloneFlags::CLONE_NEWNET)
            .map_err(|error| Error::system("make a network namespace", error))?;
        let inside = make_inside(self.block)?;
        let stop = Stop::new()?;
        let start = Instant::now();
        let Emulation { up, down, seed, realtime } = self.emulation.clone();
        let start_ms = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_millis();
        let files = mem::take(&mut self.logs);
        thread::scope(|scope| {
            let logger = |link, direction: &Direction, file| {
                let to_write = direction.log.clone().zip(file);
                let Some((log, file)) = to_write else { return Ok((None, None)) };
                let (sender, receiver) = mpsc::channel();
                let (header, spec) = (log.header(link, start_ms as u64), direction.spec.clone());
                let thread = thread::Builder::new().name("paceline-log".into());
                let thread = thread.spawn_scoped(scope, move || {
                    let written = log::write(&receiver, file, &header, &spec);
                    written.map_err(|error| format!("{}: {error}", header.file))
                });
                let thread = thread.map_err(|error| Error::system("start a thread", error))?;
                Ok((Some(Log::new(sender)), Some(thread)))
            };
            let [up_file, down_file] = files;
            let (up_log, up_writer) = logger("Uplink", &up, up_file)?;
            let (down_log, down_writer) = logger("Downlink", &down, down_file)?;
            let outside = || self.outside.another();
            let up = Forwarder::new(inside.another()?, outside()?, up, (seed, 0), up_log);
            let down = Forwarder::new(outside()?, inside, down, (seed, 1), down_log);
            // Threads must be started before the PID namespace: it is for processes only.
            let carrier = |name: &str, forwarder| {
                let thread = thread::Builder::new().name(name.into());
                let thread = thread.spawn_scoped(scope, || carry(forwarder, start, &stop));
                thread.map_err(|error| Error::system("start a thread", error))
            };
            let _stop = Ended(&stop);
            // They inherit it from this thread; what is started after them must not.
            let realtime = |wanted| {
                let set = if realtime { sys::set_realtime(wanted) } else { Ok(()) };
                set.map_err(|error| Error::system("set a real-time priority", error))
            };
            realtime(true)?;
            let up = carrier("paceline-up", up)?;
            let down = carrier("paceline-down", down)?;
            realtime(false)?;
            let status = self.run_command();
            stop.now();
            let counts = |thread: thread::ScopedJoinHandle<'_, Counts>| {
                thread.join().map_err(|_| Error::Killed)
            };
            let (up, down) = (counts(up)?, counts(down)?);
            let mut log_failure = None;
            for writer in [up_writer, down_writer].into_iter().flatten() {
                log_failure = log_failure.or(writer.join().map_err(|_| Error::Killed)?.err());
            }
            Ok(Outcome { up, down, status: status?, log_failure })
        })
    }

    fn run_command(&self) -> Result<Status, Error> {
        unshare(CloneFlags::CLONE_NEWPID)
            .map_err(|error| Error::system("make a PID namespace", error))?;
        let pipe = || io::pipe().map_err(|error| Error::system("make a pipe", error));
        let (mut reports, report) = pipe()?;
        let (emulator, _alive) = pipe()?;
        let inside = Inside {
            command: self.program.pointers(),
            report: report.as_fd(),
            emulator: emulator.as_fd(),
            mask: self.mask,
        };
        let init = sys::spawn(|| inside.init());
        let init = init.map_err(|error| Error::system("start a process", error))?;
        self.init.store(init.as_raw(), Ordering::Release);
        drop(inside);
        drop(report);
        let mut bytes = Vec::new();
        // Ends when the last process with the other end has.
        let read = reports.read_to_end(&mut bytes);
        // From here on the process may be reaped, and its number given to another.
        self.init.store(0, Ordering::Release);
        let _ = waitpid(init, None);
        read.map_err(|error| Error::system("read how the command ended", error))?;
        match Report::from_bytes(&bytes) {
            Some(Report::Exited(status)) => Ok(Status::Exited(status)),
            Some(Report::Killed(signal)) => Ok(Status::Killed(signal)),
            Some(Report::NotStarted(error)) => {
                let reason = io::Error::from_raw_os_error(error);
                Err(Error::Command { program: String::new(), reason })
            }
            None => Err(Error::Killed),
        }
    }
}

/// The device inside, the way to everywhere.
pub(crate) fn make_inside(block: Block) -> Result<Tun, Error> {
    let device = Tun::new(INSIDE_DEVICE)?;
    let mut netlink = Netlink::open()?;
    netlink.set_up("lo", None, None)?;
    let address = block.inside();
    set_up(&mut netlink, device.name(), block, address.into())?;
    netlink.add_default_route(device.name(), address.into())?;
    if has_ipv6() {
        netlink.add_default_route(device.name(), Block::v6(address).into())?;
    }
    // For links within this one; the settings are of the namespace inside.
    let _ = fs::write("/proc/sys/net/ipv4/ip_forward", "1");
    let _ = fs::write("/proc/sys/net/ipv6/conf/all/forwarding", "1");
    Ok(device)
}
