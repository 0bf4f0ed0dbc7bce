//! The sending end of a datagram flow: [`Driver`] decides what to send when, [`send`] is the loop around it that has a socket
//! and a clock.

use std::net::UdpSocket;
use std::os::fd::AsFd;
use std::sync::atomic::{AtomicBool, Ordering};

use nix::poll::{PollFd, PollFlags, ppoll};
use nix::sys::time::TimeSpec;
use paceline_emulator::Alarm;
use paceline_net::{PS_PER_MS, PS_PER_NS, Picos};
use paceline_sim::MAX_IN_FLIGHT;
use paceline_sim::hosted::{DatagramAck, Departure, HostedDatagram, SenderRecord, Window};

use crate::clock::{Clock, ms};
use crate::sys::{self, Batch};
use crate::wire::{HEADER_BYTES, Header, IP_UDP_BYTES, Missing};

/// How long after their time packets may leave without the pacer counting from then on: a thread that slept too long makes up
/// for it.
const CATCH_UP: Picos = PS_PER_MS;
/// Datagrams in a system call: together they stay below the 64 KiB of an IP packet.
const SEND_BATCH: usize = 43;
/// Longest sleep: the wish to stop is looked for in between.
const LONGEST_SLEEP: Picos = 50 * PS_PER_MS;

/// What a sender does, without a clock or a socket.
pub struct Driver {
    host: HostedDatagram,
    missing: Missing,
    /// Latest time at which the host was asked.
    asked: Picos,
    catch_up: Picos,
    next_sample: Picos,
    window: Window,
}

impl Driver {
    /// Drives `host`, which begins at `start`. A `blocking` host makes up for no sleep that was too long.
    pub fn new(host: HostedDatagram, start: Picos, blocking: bool, window: Window) -> Self {
        Self {
            host,
            missing: Missing::default(),
            asked: start,
            catch_up: if blocking { 0 } else { CATCH_UP },
            next_sample: start.div_ceil(window.sample).max(1) * window.sample,
            window,
        }
    }

    /// A datagram that came at `arrived`. What is no ACK is ignored.
    pub fn on_datagram(&mut self, arrived: Picos, datagram: &[u8]) {
        let Some(header) = Header::from_bytes(datagram) else { return };
        let Some(ack) = header.ack else { return };
        let missing = self.missing.on_ack(header.sequence, ack.sequence);
        self.host.on_ack(arrived, DatagramAck { seq: ack.sequence, missing });
    }

    /// The next packet that is to have left by `now`, if any.
    pub fn next(&mut self, now: Picos) -> Option<Departure> {
        self.sample(now);
        if now >= self.window.end {
            return None;
        }
        loop {
            if let Some(departure) = self.host.poll_send(self.asked) {
                return Some(departure);
            }
            match self.host.deadline().filter(|deadline| *deadline <= now) {
                Some(deadline) => {
                    let late = now.saturating_sub(self.catch_up);
                    self.asked = self.asked.max(deadline).max(late);
                    self.host.wake(self.asked);
                }
                None if self.asked < now => self.asked = now,
                None => return None,
            }
        }
    }

    /// When there is something to do without a datagram coming; `None` when everything is done.
    pub fn due(&self) -> Option<Picos> {
        let end = (!self.is_over()).then_some(self.window.end);
        let sample = (self.next_sample <= self.window.end).then_some(self.next_sample);
        self.host.deadline().into_iter().chain(sample).chain(end).min()
    }

    fn is_over(&self) -> bool {
        self.next_sample > self.window.end
    }

    fn sample(&mut self, now: Picos) {
        while self.next_sample <= now.min(self.window.end) {
            self.host.sample(self.next_sample);
            self.next_sample += self.window.sample;
        }
    }

    /// The flow is over at `now`.
    pub fn finish(mut self, now: Picos) -> SenderRecord {
        self.sample(now);
        self.host.finish()
    }
}

/// How a sending loop ended.
pub enum Ended {
    /// At the end of the run, or when there was nothing more to send.
    Over,
    /// The window outgrew every memory.
    Unbounded,
}

/// Sends over `socket`, which is connected, until the end of the run, or `stop`. Times are those of `clock`.
pub fn send(
    driver: &mut Driver,
    socket: &UdpSocket,
    clock: &Clock,
    overhead_bytes: usize,
    stop: &AtomicBool,
) -> Ended {
    let mut received = Batch::default();
    let mut outbox = Outbox::new(overhead_bytes);
    let mut alarm = Alarm::default();
    loop {
        // An error is that of an earlier packet: the far end is not there yet, or no more.
        loop {
            let offset = clock.offset();
            let came = received.receive(socket, |datagram| {
                driver.on_datagram(offset.arrival(datagram.received_ns), datagram.kept());
            });
            if !came.is_ok_and(|count| count == sys::RECEIVE_BATCH) {
                break;
            }
        }
        let now = clock.now();
        while let Some(departure) = driver.next(now) {
            outbox.push(departure, ms(now));
            if outbox.is_full() {
                break;
            }
        }
        let more = outbox.is_full();
        outbox.flush(socket);
        if driver.host.in_flight() > MAX_IN_FLIGHT {
            return Ended::Unbounded;
        }
        let now = clock.now();
        if now >= driver.window.end || driver.host.is_complete() || stop.load(Ordering::Relaxed) {
            return Ended::Over;
        }
        if more {
            continue;
        }
        let due = driver.due().unwrap_or(Picos::MAX).min(now + LONGEST_SLEEP);
        let sleep = alarm.sleep(now, Some(due)).unwrap_or_default();
        if sleep > 0 {
            let ns = sleep.div_ceil(PS_PER_NS) as i64;
            let timeout = TimeSpec::new(ns / 1_000_000_000, ns % 1_000_000_000);
            let woken =
                ppoll(&mut [PollFd::new(socket.as_fd(), PollFlags::POLLIN)], Some(timeout), None);
            let woke = clock.now();
            if woken == Ok(0) {
                alarm.woke(now + sleep, woke);
            }
        }
    }
}

/// Packets that leave together.
struct Outbox {
    overhead_bytes: usize,
    /// One after the other.
    bytes: Vec<u8>,
    /// Size of each but the last.
    segment: usize,
    count: usize,
    /// Whether the kernel cuts large datagrams.
    segments: bool,
}

impl Outbox {
    fn new(overhead_bytes: usize) -> Self {
        Self { overhead_bytes, bytes: Vec::new(), segment: 0, count: 0, segments: true }
    }

    fn is_full(&self) -> bool {
        self.count >= SEND_BATCH || (self.count > 0 && self.bytes.len() < self.count * self.segment)
    }

    fn push(&mut self, departure: Departure, now_ms: u64) {
        let wire = usize::from(departure.bytes).saturating_sub(self.overhead_bytes + IP_UDP_BYTES);
        let bytes = wire.max(HEADER_BYTES);
        if self.count == 0 {
            self.segment = bytes;
        }
        let header = Header { sequence: departure.seq, sent_ms: now_ms, ack: None };
        self.bytes.extend_from_slice(&header.to_bytes());
        self.bytes.resize(self.bytes.len() + bytes - HEADER_BYTES, 0);
        self.count += 1;
    }

    /// Sends what is in it. What the kernel refuses is lost, as on any link.
    fn flush(&mut self, socket: &UdpSocket) {
        if self.count == 0 {
            return;
        }
        let whole =
            self.segments && sys::send_segments(socket, &self.bytes, self.segment, None).is_ok();
        if !whole {
            // The first error may be that of an earlier packet. If it is not, the device does not segment.
            self.segments = self.count == 1;
            for datagram in self.bytes.chunks(self.segment) {
                let _ = socket.send(datagram).or_else(|_| socket.send(datagram));
            }
        }
        self.bytes.clear();
        self.count = 0;
    }
}
