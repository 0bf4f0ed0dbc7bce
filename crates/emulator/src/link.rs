//! Sets the link up, runs the command, and takes everything down again.

use std::ffi::{CString, OsStr, OsString};
use std::fs::File;
use std::io::{self, Read};
use std::os::fd::AsFd;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::sync::atomic::{AtomicI32, Ordering};
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sched::{CloneFlags, unshare};
use nix::sys::signal::{SigSet, SigmaskHow, Signal, kill};
use nix::sys::signalfd::{SfdFlags, SignalFd};
use nix::sys::wait::waitpid;
use nix::unistd::Pid;
use paceline_net::{PS_PER_NS, Picos};

use crate::Error;
use crate::address::{Claim, claim};
use crate::counts::Counts;
use crate::devices::Wiring;
use crate::forward::{Direction, Forwarder, Stop, carry};
use crate::hosts::Hosts;
use crate::inside::{Inside, PASSED_ON, Report, is_from_a_process};
use crate::log::{self, Log, LogFile};
use crate::observer::Observer;
use crate::outside::names::Names;
use crate::outside::{Outside, Reach};
use crate::sys::{self, Program};
use crate::tun::Tun;

/// The most hosts behind a link.
const MOST_HOSTS: usize = 64;
/// Instead of the number of a process: not there yet, …
const NOT_YET: i32 = 0;
/// … and not there any more.
const ENDED: i32 = -1;

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
    run_reaching(emulation, Reach::Host, command)
}

/// [`run`] for a command that reaches what `reach` says.
///
/// # Errors
/// As [`run`].
pub fn run_reaching(
    emulation: Emulation,
    reach: Reach,
    command: &[OsString],
) -> Result<Outcome, Error> {
    let host = Host { access_delay: Duration::ZERO, command: command.into() };
    let HostsOutcome { statuses, up, down, log_failure } = run_hosts(emulation, reach, &[host])?;
    let status = statuses.into_iter().next().ok_or(Error::Killed)?;
    Ok(Outcome { status, up, down, log_failure })
}

/// One of several hosts behind a link.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Host {
    /// Between it and the link, one way.
    pub access_delay: Duration,
    /// The program that runs there, then its arguments.
    pub command: Vec<OsString>,
}

/// A finished run of several hosts.
#[derive(Clone, Debug, PartialEq)]
pub struct HostsOutcome {
    /// How the command of each ended.
    pub statuses: Vec<Status>,
    /// From the hosts to the outside.
    pub up: Counts,
    /// From the outside to the hosts.
    pub down: Counts,
    /// Why a log is not complete.
    pub log_failure: Option<String>,
}

/// [`run`] for several hosts whose packets share the link, each in a network namespace of its own, and waits for the end of all.
///
/// Of more than one, the environment of each has its number in `PACELINE_HOST`, from 1. They do not reach each other, and links
/// do not nest in them.
///
/// # Errors
/// As [`run`]; no hosts, or more than 64.
pub fn run_hosts(
    emulation: Emulation,
    reach: Reach,
    hosts: &[Host],
) -> Result<HostsOutcome, Error> {
    run_observed(emulation, reach, hosts, [None, None])
}

/// [`run_hosts`] where `observers` see the uplink and the downlink.
///
/// # Errors
/// As [`run_hosts`].
pub fn run_observed(
    emulation: Emulation,
    reach: Reach,
    hosts: &[Host],
    observers: [Option<Box<dyn Observer>>; 2],
) -> Result<HostsOutcome, Error> {
    if !(1..=MOST_HOSTS).contains(&hosts.len()) {
        let count = hosts.len();
        return Err(Error::Unavailable(format!("{count} hosts; allowed: 1 to {MOST_HOSTS}")));
    }
    let logs = [&emulation.up, &emulation.down].map(create_log);
    let [up_log, down_log] = logs;
    let logs = [up_log?, down_log?];
    let claim = claim()?;
    let wiring = Wiring::new(claim.block, reach, hosts.len());
    let outside = Outside::new(wiring.make_outside()?, claim.block, reach)?;
    let names = match reach {
        Reach::Host => None,
        Reach::Outside => Names::new(claim.block.outside()),
    };
    let programs = hosts.iter().enumerate().map(|(index, host)| {
        let number = (hosts.len() > 1).then_some(index + 1);
        program(&host.command, &claim, number).map_err(|error| named(error, &host.command))
    });
    let programs: Vec<Program> = programs.collect::<Result<_, _>>()?;
    let stop = Stop::new()?;
    let passed_on: SigSet = PASSED_ON.into_iter().collect();
    let mask = passed_on.thread_swap_mask(SigmaskHow::SIG_BLOCK);
    let mask = mask.map_err(|error| Error::system("block signals", error))?;
    let inits: Vec<AtomicI32> = hosts.iter().map(|_| AtomicI32::new(NOT_YET)).collect();
    let site = Site { wiring, names, mask };
    let (site, inits) = (&site, &inits[..]);
    let outcome = thread::scope(|scope| {
        let ended = &stop;
        let link =
            thread::Builder::new().name("paceline-link".into()).spawn_scoped(scope, move || {
                // Dropped when this thread ends, even by a panic.
                let _ended = Ended(ended);
                site.run(emulation, Watchers { logs, observers }, outside, hosts, &programs, inits)
            });
        let link = link.map_err(|error| Error::system("start a thread", error))?;
        let passed = pass_signals_on(&passed_on, inits, &stop);
        // A panic there is a bug; it has been printed.
        let outcome = link.join().unwrap_or(Err(Error::Killed));
        passed.and(outcome)
    });
    let _ = mask.thread_set_mask();
    outcome
}

/// The error with the name of the program that it is about.
fn named(error: Error, command: &[OsString]) -> Error {
    match error {
        Error::Command { reason, .. } => {
            let program = command.first().map(|name| name.to_string_lossy().into_owned());
            Error::Command { program: program.unwrap_or_default(), reason }
        }
        other => other,
    }
}

fn create_log(direction: &Direction) -> Result<Option<File>, Error> {
    direction.log.as_ref().map(LogFile::create).transpose()
}

pub(crate) fn no_priority(error: io::Error) -> Error {
    Error::lacking("set a real-time priority", "--realtime", "CAP_SYS_NICE", error)
}

/// Says that the thread which has it has ended.
pub(crate) struct Ended<'a>(pub(crate) &'a Stop);

impl Drop for Ended<'_> {
    fn drop(&mut self) {
        self.0.now();
    }
}

/// Passes signals on to the commands until `stop`. The signals are blocked, so that nothing else handles them.
fn pass_signals_on(signals: &SigSet, inits: &[AtomicI32], stop: &Stop) -> Result<(), Error> {
    let fail = |error| Error::system("wait for signals", error);
    let flags = SfdFlags::SFD_CLOEXEC | SfdFlags::SFD_NONBLOCK;
    let arrived = SignalFd::with_flags(signals, flags).map_err(fail)?;
    loop {
        let pids = || inits.iter().map(|init| init.load(Ordering::Acquire));
        let is_ready = pids().all(|pid| pid != NOT_YET);
        let mut files = [
            PollFd::new(stop.as_fd(), PollFlags::POLLIN),
            PollFd::new(arrived.as_fd(), PollFlags::POLLIN),
        ];
        // As long as there is somebody to whom a signal cannot be passed on yet, it stays where it is.
        let (files, timeout) = match is_ready {
            false => (&mut files[..1], PollTimeout::from(5u8)),
            true => (&mut files[..], PollTimeout::NONE),
        };
        match poll(files, timeout) {
            Err(nix::errno::Errno::EINTR) => continue,
            polled => polled.map_err(fail)?,
        };
        let is_over = files[0].any() == Some(true);
        // After the end, what the terminal has sent is taken here too: the caller has nothing to do with it.
        while (is_ready || is_over)
            && let Some(signal) = arrived.read_signal().map_err(fail)?
        {
            let Ok(number) = Signal::try_from(signal.ssi_signo as i32) else { continue };
            if is_from_a_process(signal.ssi_code) {
                for pid in pids().filter(|pid| *pid > 0) {
                    let _ = kill(Pid::from_raw(pid), number);
                }
            }
        }
        if is_over {
            return Ok(());
        }
    }
}

/// The command with its environment; `number` is that of the host, of several.
fn program(command: &[OsString], claim: &Claim, number: Option<usize>) -> Result<Program, Error> {
    let base = claim.block.outside().to_string();
    // Of nested links the outermost says where the host is.
    let base = match std::env::var("PACELINE_BASE") {
        Ok(outermost) if claim.is_nested => outermost,
        _ => base,
    };
    let own = |key: &OsStr| {
        key == "PACELINE_BASE"
            || key == "MAHIMAHI_BASE"
            || number.is_some() && key == "PACELINE_HOST"
    };
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
    let number = number.map(|number| ("PACELINE_HOST".into(), number.to_string().into()));
    let environment = kept.chain(bases).chain(number).map(variable);
    let collected =
        (|| Ok((arguments.collect::<io::Result<_>>()?, environment.collect::<io::Result<_>>()?)))();
    let failed = |reason| Error::Command { program: String::new(), reason };
    let (arguments, environment): (Vec<CString>, _) = collected.map_err(failed)?;
    if arguments.is_empty() {
        return Err(failed(io::Error::new(io::ErrorKind::InvalidInput, "no command given")));
    }
    Ok(Program::new(arguments, environment))
}

/// Who is told what happens: for the uplink, and for the downlink.
struct Watchers {
    logs: [Option<File>; 2],
    observers: [Option<Box<dyn Observer>>; 2],
}

/// What all hosts have in common.
struct Site {
    wiring: Wiring,
    names: Option<Names>,
    /// Signals that were blocked before the emulator blocked more.
    mask: SigSet,
}

impl Site {
    /// Makes the hosts, joins them to the outside, and waits for the end of their commands.
    fn run(
        &self,
        emulation: Emulation,
        watchers: Watchers,
        outside: Outside,
        hosts: &[Host],
        programs: &[Program],
        inits: &[AtomicI32],
    ) -> Result<HostsOutcome, Error> {
        let started = |error| Error::system("start a thread", error);
        let thread = |name: &str| thread::Builder::new().name(name.into());
        thread::scope(|scope| {
            let (made, when_made) = mpsc::channel();
            // Who has no word from here when this ends does nothing.
            let (mut words, mut guests) = (Vec::new(), Vec::new());
            for (index, (program, init)) in programs.iter().zip(inits).enumerate() {
                let (word, when_joined) = mpsc::channel();
                let made = made.clone();
                let guest = move || {
                    let _ended = EndedGuest(init);
                    self.be_a_host(index, program, init, made, &when_joined)
                };
                guests.push(thread("paceline-host").spawn_scoped(scope, guest).map_err(started)?);
                words.push(word);
            }
            drop(made);
            let mut devices: Vec<(usize, Tun)> = when_made.iter().collect();
            devices.sort_by_key(|(index, _)| *index);
            let is_complete = devices.len() == self.wiring.hosts;
            let delays: Vec<Picos> = hosts.iter().map(|host| picos(host.access_delay)).collect();
            let run = |guests: Vec<thread::ScopedJoinHandle<'_, _>>| {
                words.into_iter().for_each(|word: mpsc::Sender<()>| {
                    let _ = word.send(());
                });
                let statuses = guests.into_iter().zip(hosts).map(|(guest, host)| {
                    let status = guest.join().unwrap_or(Err(Error::Killed));
                    status.map_err(|error| named(error, &host.command))
                });
                // All of them, before one of them fails this.
                statuses.collect::<Vec<_>>().into_iter().collect::<Result<Vec<Status>, Error>>()
            };
            if !is_complete {
                drop(run);
                let failed = guests.into_iter().filter_map(|guest| guest.join().ok()?.err());
                let mut failed = failed.collect::<Vec<_>>();
                failed.sort_by_key(|error| matches!(error, Error::Killed));
                return Err(failed.into_iter().next().unwrap_or(Error::Killed));
            }
            let devices = devices.into_iter().map(|(_, device)| device).collect();
            let addresses =
                (0..self.wiring.hosts).map(|index| self.wiring.block.inside(index)).collect();
            let inside = Hosts::new(devices, addresses)?;
            self.carry(emulation, watchers, outside, inside, &delays, || run(guests))
        })
    }

    /// Carries packets between `inside` and `outside` while `run` runs.
    fn carry(
        &self,
        emulation: Emulation,
        watchers: Watchers,
        outside: Outside,
        inside: Hosts,
        delays: &[Picos],
        run: impl FnOnce() -> Result<Vec<Status>, Error>,
    ) -> Result<HostsOutcome, Error> {
        let stop = Stop::new()?;
        let start = Instant::now();
        let Emulation { up, down, seed, realtime } = emulation;
        let start_ms = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_millis();
        let started = |error| Error::system("start a thread", error);
        let thread = |name: &str| thread::Builder::new().name(name.into());
        thread::scope(|scope| {
            let stop = &stop;
            let _stop = Ended(stop);
            let logger = |link, direction: &Direction, file| {
                let to_write = direction.log.clone().zip(file);
                let Some((log, file)) = to_write else { return Ok((None, None)) };
                let (sender, receiver) = mpsc::channel();
                let (header, spec) = (log.header(link, start_ms as u64), direction.spec.clone());
                let write = move || {
                    let written = log::write(&receiver, file, &header, &spec);
                    written.map_err(|error| format!("{}: {error}", header.file))
                };
                let thread = thread("paceline-log").spawn_scoped(scope, write).map_err(started)?;
                Ok((Some(Log::new(sender)), Some(thread)))
            };
            let Watchers { logs: [up_file, down_file], observers: [up_watch, down_watch] } =
                watchers;
            let (up_log, up_writer) = logger("Uplink", &up, up_file)?;
            let (down_log, down_writer) = logger("Downlink", &down, down_file)?;
            let up = Forwarder::new(inside.another()?, outside.another()?, up, (seed, 0), up_log);
            let up = up.with_hosts_at_source(delays).observed_by(up_watch);
            let down = Forwarder::new(outside, inside, down, (seed, 1), down_log);
            let down = down.with_hosts_at_sink(delays).observed_by(down_watch);
            if let Some(names) = &self.names {
                let serve = || names.serve(stop);
                thread("paceline-names").spawn_scoped(scope, serve).map_err(started)?;
            }
            // They inherit it from this thread; what is started after them must not.
            let realtime = |wanted| {
                let set = if realtime { sys::set_realtime(wanted) } else { Ok(()) };
                set.map_err(no_priority)
            };
            realtime(true)?;
            let carry_up = || carry(up, start, stop);
            let up = thread("paceline-up").spawn_scoped(scope, carry_up).map_err(started)?;
            let carry_down = || carry(down, start, stop);
            let down = thread("paceline-down").spawn_scoped(scope, carry_down).map_err(started)?;
            realtime(false)?;
            let statuses = run();
            stop.now();
            let counts = |thread: thread::ScopedJoinHandle<'_, Counts>| {
                thread.join().map_err(|_| Error::Killed)
            };
            let (up, down) = (counts(up)?, counts(down)?);
            let mut log_failure = None;
            for writer in [up_writer, down_writer].into_iter().flatten() {
                log_failure = log_failure.or(writer.join().map_err(|_| Error::Killed)?.err());
            }
            Ok(HostsOutcome { statuses: statuses?, up, down, log_failure })
        })
    }

    /// Moves this thread into a new network namespace, sends the device there to `made`, and once that is joined to the outside
    /// runs the command.
    fn be_a_host(
        &self,
        index: usize,
        program: &Program,
        init: &AtomicI32,
        made: mpsc::Sender<(usize, Tun)>,
        when_joined: &mpsc::Receiver<()>,
    ) -> Result<Status, Error> {
        unshare(CloneFlags::CLONE_NEWNET)
            .map_err(|error| Error::system("make a network namespace", error))?;
        // If nobody waits for it, nobody sends the word.
        let _ = made.send((index, self.wiring.make_inside(index)?));
        drop(made);
        when_joined.recv().map_err(|_| Error::Killed)?;
        self.run_command(program, init)
    }

    fn run_command(&self, program: &Program, noted: &AtomicI32) -> Result<Status, Error> {
        unshare(CloneFlags::CLONE_NEWPID)
            .map_err(|error| Error::system("make a PID namespace", error))?;
        let pipe = || io::pipe().map_err(|error| Error::system("make a pipe", error));
        let (mut reports, report) = pipe()?;
        let (emulator, _alive) = pipe()?;
        let inside = Inside {
            command: program.pointers(),
            report: report.as_fd(),
            emulator: emulator.as_fd(),
            names: self.names.as_ref().map(|names| &names.configuration[..]),
            mask: self.mask,
        };
        let init = sys::spawn(|| inside.init());
        let init = init.map_err(|error| Error::system("start a process", error))?;
        noted.store(init.as_raw(), Ordering::Release);
        drop(inside);
        drop(report);
        let mut bytes = Vec::new();
        // Ends when the last process with the other end has.
        let read = reports.read_to_end(&mut bytes);
        // From here on the process may be reaped, and its number given to another.
        noted.store(ENDED, Ordering::Release);
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

/// Says that a host has ended, even if it never began.
struct EndedGuest<'a>(&'a AtomicI32);

impl Drop for EndedGuest<'_> {
    fn drop(&mut self) {
        self.0.store(ENDED, Ordering::Release);
    }
}

fn picos(time: Duration) -> Picos {
    time.as_nanos() as Picos * PS_PER_NS
}
