//! Carries packets from one device to the other through a [`Passage`].
//!
//! [`Forwarder`] is told the time and touches nothing but its two devices; [`carry`] is the loop around it that reads the
//! clock and sleeps.

use std::io::{self, ErrorKind, IoSlice};
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use nix::poll::{PollFd, PollFlags, ppoll};
use nix::sys::eventfd::{EfdFlags, EventFd};
use nix::sys::prctl;
use nix::sys::time::TimeSpec;
use paceline_net::{LinkSpec, PS_PER_MS, PS_PER_NS, PS_PER_S, PS_PER_US, Picos};

use crate::Error;
use crate::arena::{Arena, Place};
use crate::branch::{Access, BranchOf, Branches};
use crate::counts::Counts;
use crate::log::{Log, LogFile};
use crate::observer::Observer;
use crate::packet::{FRAME_HEADER_BYTES, MAX_FRAME_BYTES, Outgoing, Segments, tag};
use crate::passage::{Arrived, Carried, Passage};
use crate::tun::Device;

/// One direction of an emulated link.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Direction {
    /// The link.
    pub spec: LinkSpec,
    /// Bytes that the link carries for each packet besides its IP bytes. The link of the mahimahi emulator has 4.
    pub overhead_bytes: u32,
    /// Where it is written down what happens.
    pub log: Option<LogFile>,
    /// Delay before the link, ps: a packet reaches it so long after it was sent.
    pub delay_before_ps: Picos,
}

/// Frames read in a row before those that are due are written.
const BATCH: usize = 64;

/// A packet on its way: one of those that a frame stands for.
#[derive(Clone, Copy)]
struct Piece {
    frame: Place,
    segments: Segments,
    index: u16,
    branch: u32,
    /// What the observer calls its flow.
    flow: u32,
    /// When it reached the link.
    entered: Picos,
}

impl Carried for Piece {
    fn branch(&self) -> u32 {
        self.branch
    }
}

/// A frame on the way to the link.
struct Coming {
    frame: Place,
    segments: Segments,
    branch: u32,
}

/// How it is found out which branch a frame takes.
enum Branching {
    /// All take the same.
    None,
    /// That of the host which sent it.
    FromHost,
    /// That of the host which it is for.
    ToHost,
    /// That of its flow.
    OfFlow(BranchOf),
}

/// Packets of one frame that follow each other and leave together.
struct Run {
    first: Piece,
    count: u16,
    marked: bool,
}

impl Run {
    fn goes_on_with(&self, next: &Arrived<Piece>) -> bool {
        let piece = next.item;
        piece.frame == self.first.frame
            && piece.index == self.first.index + self.count
            && next.marked == self.marked
    }
}

/// Carries packets from `source` to `sink`.
pub struct Forwarder<S, D> {
    source: S,
    sink: D,
    branching: Branching,
    /// Between the source and the link.
    before: Access<Coming>,
    passage: Passage<Piece>,
    /// Between the link and the sink.
    after: Access<Piece>,
    overhead_bytes: u32,
    delay_before: Picos,
    arena: Arena,
    counts: Counts,
}

impl<S: Device, D: Device> Forwarder<S, D> {
    /// `seed` and `stream` pick the random streams of the link; `log` is told what happens.
    pub fn new(
        source: S,
        sink: D,
        direction: Direction,
        (seed, stream): (u64, u64),
        log: Option<Log>,
    ) -> Self {
        Self {
            source,
            sink,
            branching: Branching::None,
            before: Access::new(&[]),
            passage: Passage::new(direction.spec, seed, stream, log),
            after: Access::new(&[]),
            overhead_bytes: direction.overhead_bytes,
            delay_before: direction.delay_before_ps,
            arena: Arena::default(),
            counts: Counts::default(),
        }
    }

    /// The same, where `observer` is shown what happens.
    pub fn observed_by(self, observer: Option<Box<dyn Observer>>) -> Self {
        Self { passage: self.passage.observed_by(observer), ..self }
    }

    /// The same with a delay between the link and each host at the source.
    pub fn with_hosts_at_source(mut self, delays: &[Picos]) -> Self {
        self.before = Access::new(delays);
        let is_direct = self.before.is_direct();
        self.branching = if is_direct { Branching::None } else { Branching::FromHost };
        self
    }

    /// The same with a delay between the link and each host at the sink.
    pub fn with_hosts_at_sink(mut self, delays: &[Picos]) -> Self {
        self.after = Access::new(delays);
        let is_direct = self.after.is_direct();
        self.branching = if is_direct { Branching::None } else { Branching::ToHost };
        self
    }

    /// The same where flows have branches of their own. They end where the flows do: the observer is shown a packet as delivered
    /// at the end of its branch, not of the link.
    pub fn with_branches(mut self, branches: Option<Branches>) -> Self {
        let Some(Branches { before, behind, branch_of }) = branches else { return self };
        self.before = Access::new(&before);
        self.after = Access::new(&behind);
        self.branching = Branching::OfFlow(branch_of);
        self
    }

    /// Reads what has come, until there is no more or something is due. Whether there may be more.
    ///
    /// # Errors
    /// A source from which nothing will ever come again.
    pub fn take_in(&mut self, clock: &impl Fn() -> Picos) -> io::Result<bool> {
        for _ in 0..BATCH {
            let len = match self.source.read(self.arena.room(MAX_FRAME_BYTES)) {
                Ok(len) => len,
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(false),
                Err(error) if error.kind() == ErrorKind::Interrupted => continue,
                Err(error) => return Err(error),
            };
            let now = clock();
            self.enter(now, len);
            if self.due().is_some_and(|due| due <= now) {
                break;
            }
        }
        Ok(true)
    }

    /// A frame of `len` bytes has been read.
    fn enter(&mut self, now: Picos, len: usize) {
        if len <= FRAME_HEADER_BYTES {
            return;
        }
        let segments = Segments::of(&self.arena.room(len)[..len]);
        let frame = self.arena.keep(len, u32::from(segments.count));
        let coming = Coming { frame, segments, branch: self.branch_of(frame) };
        if self.before.is_direct() {
            self.enter_link(now, &coming);
        } else {
            let branch = coming.branch;
            self.before.push(branch, Arrived { item: coming, time: now, marked: false });
            self.take_over(now);
        }
    }

    /// The branch of the frame read last.
    fn branch_of(&self, frame: Place) -> u32 {
        let bytes = self.arena.bytes(frame);
        match &self.branching {
            Branching::None => 0,
            Branching::FromHost => self.source.source() as u32,
            Branching::ToHost => self.sink.host_of(bytes).unwrap_or_default() as u32,
            Branching::OfFlow(branch_of) => branch_of(&bytes[FRAME_HEADER_BYTES..]),
        }
    }

    /// Lets what has reached the link by `now` enter it.
    fn take_over(&mut self, now: Picos) {
        while let Some(packet) = self.before.pop(now) {
            self.enter_link(packet.time, &packet.item);
        }
    }

    /// The packets that a frame stands for reach the link.
    fn enter_link(&mut self, now: Picos, coming: &Coming) {
        let Coming { frame, segments, branch } = *coming;
        // What is behind a delay of one length comes in the order in which it was sent, so it may be told at once.
        let entered = now + self.delay_before;
        self.passage.sample(entered);
        let packet = &self.arena.bytes(frame)[FRAME_HEADER_BYTES..];
        let mut tag = tag(packet, 0);
        let flow = self.passage.observer().map_or(0, |observer| observer.flow_of(packet));
        for index in 0..segments.count {
            tag.bytes = segments.packet_bytes(index) + self.overhead_bytes;
            self.counts.on_entered(tag.bytes);
            if let Some(observer) = self.passage.observer() {
                observer.on_entered(entered, flow, tag.bytes);
            }
            let piece = Piece { frame, segments, index, branch, flow, entered };
            self.passage.enter(entered, tag, piece);
        }
        self.discard_dropped(entered);
    }

    /// Writes what is due now.
    pub fn give_out(&mut self, clock: &impl Fn() -> Picos) {
        let until = clock();
        let mut now = until;
        let mut run: Option<Run> = None;
        self.take_over(until);
        while let Some(packet) = self.leave(until) {
            let piece = packet.item;
            match &mut run {
                Some(run) if run.goes_on_with(&packet) => run.count += 1,
                _ => {
                    let next = Run { first: piece, count: 1, marked: packet.marked };
                    if let Some(done) = run.replace(next) {
                        self.write(&done);
                        // For the count only: what has become due meanwhile waits until the source has been looked at.
                        now = clock();
                    }
                }
            }
            let bytes = piece.segments.packet_bytes(piece.index) + self.overhead_bytes;
            self.counts.on_left(bytes, now - packet.time);
            if !self.shows_at_link() {
                self.show_delivered(&packet);
            }
        }
        if let Some(done) = run {
            self.write(&done);
        }
        self.discard_dropped(until);
    }

    /// Whether the observer sees packets as delivered before they have reached their hosts.
    fn shows_at_link(&self) -> bool {
        matches!(self.branching, Branching::ToHost)
    }

    /// A packet that has reached the sink by `until`.
    fn leave(&mut self, until: Picos) -> Option<Arrived<Piece>> {
        if self.after.is_direct() {
            return self.passage.leave(until);
        }
        while let Some(packet) = self.passage.leave(until) {
            if self.shows_at_link() {
                self.show_delivered(&packet);
            }
            self.after.push(packet.item.branch, packet);
        }
        self.after.pop(until)
    }

    /// Shows the observer a packet that has been delivered.
    fn show_delivered(&mut self, packet: &Arrived<Piece>) {
        let piece = packet.item;
        let bytes = piece.segments.packet_bytes(piece.index) + self.overhead_bytes;
        if let Some(observer) = self.passage.observer() {
            observer.on_delivered(packet.time, piece.flow, bytes, piece.entered);
        }
    }

    fn write(&mut self, run: &Run) {
        let Run { first, count, marked } = *run;
        let frame = self.arena.bytes_mut(first.frame);
        let out = Outgoing::new(frame, first.segments, first.index, count, marked);
        let [head, payload] = out.parts(frame);
        let parts = [IoSlice::new(head), IoSlice::new(payload)];
        let parts = if head.is_empty() { &parts[1..] } else { &parts[..] };
        // A device that is down, or a packet that the kernel finds malformed.
        if self.sink.write(parts).is_err() {
            self.counts.unwritable_packets += u64::from(count);
            if let Some(observer) = self.passage.observer() {
                (0..count).for_each(|_| observer.on_unwritable(first.flow));
            }
        }
        for _ in 0..count {
            self.arena.give_back(first.frame);
        }
    }

    fn discard_dropped(&mut self, now: Picos) {
        while let Some((piece, reason)) = self.passage.take_dropped() {
            self.counts.on_dropped(reason);
            let bytes = piece.segments.packet_bytes(piece.index) + self.overhead_bytes;
            if let Some(observer) = self.passage.observer() {
                observer.on_dropped(now, piece.flow, bytes);
            }
            self.arena.give_back(piece.frame);
        }
    }

    /// When [`Self::give_out`] has something to do; `None` for never, unless something comes.
    pub fn due(&self) -> Option<Picos> {
        [self.before.due(), self.passage.due(), self.after.due()].into_iter().flatten().min()
    }
}

/// Tells the loops to end.
pub struct Stop {
    wanted: AtomicBool,
    wake: EventFd,
}

impl Stop {
    /// Nothing is to end yet.
    pub fn new() -> Result<Self, Error> {
        let wake = EventFd::from_flags(EfdFlags::EFD_CLOEXEC | EfdFlags::EFD_NONBLOCK);
        let wake = wake.map_err(|error| Error::system("make an eventfd", error))?;
        Ok(Self { wanted: AtomicBool::new(false), wake })
    }

    /// Ends every loop soon.
    pub fn now(&self) {
        self.wanted.store(true, Ordering::Release);
        // It fails only when the count is full, and then it wakes as well.
        let _ = self.wake.write(1);
    }

    fn is_wanted(&self) -> bool {
        self.wanted.load(Ordering::Acquire)
    }
}

impl AsFd for Stop {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.wake.as_fd()
    }
}

/// How long packets that are under way at the end may still arrive, so that who is outside hears of the end.
const LINGER: Picos = PS_PER_S;

/// Carries packets until `stop`, and then what is under way, for a while; time 0 of the link is `start`.
pub fn carry<S: Device + AsFd, D: Device>(
    mut forwarder: Forwarder<S, D>,
    start: Instant,
    stop: &Stop,
) -> Counts {
    // The kernel may otherwise wake this thread 50 us late, to spare others a wake-up.
    let _ = prctl::set_timerslack(1);
    let clock = || start.elapsed().as_nanos() as Picos * PS_PER_NS;
    let mut alarm = Alarm::default();
    let mut end = None;
    loop {
        if end.is_none() && stop.is_wanted() {
            end = Some(clock() + LINGER);
        }
        if end.is_some_and(|end| end <= clock()) {
            break;
        }
        match forwarder.take_in(&clock) {
            Ok(true) => forwarder.give_out(&clock),
            Ok(false) => {
                forwarder.give_out(&clock);
                let now = clock();
                let due = forwarder.due();
                if end.is_some() && due.is_none() {
                    break;
                }
                let due = due.into_iter().chain(end).min();
                let sleep = alarm.sleep(now, due);
                // Once it has come, the wish to stop wakes nobody any more.
                let stop = end.is_none().then_some(stop);
                if wait(&forwarder.source, stop, sleep) == Ok(0)
                    && let Some(sleep) = sleep
                {
                    alarm.woke(now + sleep, clock());
                }
            }
            // The device is gone: whoever is inside may remove it.
            Err(_) => break,
        }
    }
    forwarder.passage.end(clock());
    forwarder.counts
}

/// Says when to wake up. A sleeping thread wakes late, by tens of microseconds where the processor sleeps too; so it sets its
/// alarm early by what it has learnt, and stays awake for the rest. That costs processor time, of which it has a budget.
#[derive(Debug, Default)]
pub struct Alarm {
    /// How much too early the alarm is set.
    early: Picos,
    /// Time that may be spent awake.
    budget: Picos,
    is_awake: bool,
    /// When it was last asked.
    asked: Picos,
}

impl Alarm {
    /// The most that the alarm is early: later wake-ups are the work of other programs, and no rule.
    const MOST_EARLY: Picos = 200 * PS_PER_US;
    /// One part in so many of the time may be spent waiting awake, …
    const SHARE: Picos = 10;
    /// … and this much in a row.
    const MOST_BUDGET: Picos = 2 * PS_PER_MS;

    /// How long to sleep at `now` when something is due at `due`; zero: stay awake and look again. `None` for ever.
    pub fn sleep(&mut self, now: Picos, due: Option<Picos>) -> Option<Picos> {
        let passed = now - self.asked;
        let spent = if self.is_awake { passed } else { 0 };
        self.budget = (self.budget + passed / Self::SHARE).saturating_sub(spent);
        self.budget = self.budget.min(Self::MOST_BUDGET);
        self.asked = now;
        let left = due.map(|due| due.saturating_sub(now));
        self.is_awake = self.budget > 0 && left.is_some_and(|left| left <= self.early);
        let early = if self.budget > 0 { self.early } else { 0 };
        left.map(|left| left.saturating_sub(early))
    }

    /// It was to wake at `wanted` and woke at `now`.
    pub fn woke(&mut self, wanted: Picos, now: Picos) {
        let late = now.saturating_sub(wanted).min(Self::MOST_EARLY);
        // Quickly up, slowly down: rather awake too long than late.
        if late > self.early {
            self.early += (late - self.early) / 4;
        } else {
            self.early -= (self.early - late) / 64;
        }
    }
}

/// Sleeps until something can be read, `stop`, or the time is over, and then returns 0.
fn wait(source: &impl AsFd, stop: Option<&Stop>, time: Option<Picos>) -> nix::Result<i32> {
    if time == Some(0) {
        return Ok(1);
    }
    let timeout = time.map(|ps| {
        let ns = ps.div_ceil(PS_PER_NS) as i64;
        TimeSpec::new(ns / 1_000_000_000, ns % 1_000_000_000)
    });
    let readable = |file| PollFd::new(file, PollFlags::POLLIN);
    let stop = stop.map_or(source.as_fd(), |stop| stop.as_fd());
    // On an error the loop looks again.
    ppoll(&mut [readable(source.as_fd()), readable(stop)], timeout, None)
}

#[cfg(test)]
#[path = "forward_tests.rs"]
mod tests;
