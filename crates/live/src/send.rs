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
use crate::wire::{HEADER_BYTES, Header, IP_UDP_BYTES, Missing, marks_in};

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
    next_sample: Picos,
    window: Window,
}

impl Driver {
    /// Drives `host`, which begins at `start`.
    pub fn new(host: HostedDatagram, start: Picos, window: Window) -> Self {
        Self {
            host,
            missing: Missing::default(),
            asked: start,
            next_sample: start.div_ceil(window.sample).max(1) * window.sample,
            window,
        }
    }

    /// A datagram that came at `arrived`. What is no ACK is ignored.
    pub fn on_datagram(&mut self, arrived: Picos, datagram: &[u8]) {
        let Some(header) = Header::from_bytes(datagram) else { return };
        let Some(ack) = header.ack.filter(|ack| self.host.has_sent(ack.sequence)) else { return };
        let missing = self.missing.on_ack(header.sequence, ack.sequence);
        self.asked = self.asked.max(arrived);
        let marked = marks_in(datagram);
        self.host.on_ack(arrived, DatagramAck { seq: ack.sequence, missing, marked });
    }

    /// The next packet that is to leave at `now`, if any. The host makes up for what `now` is later than it asked for.
    pub fn next(&mut self, now: Picos) -> Option<Departure> {
        self.sample(now);
        if now >= self.window.end {
            return None;
        }
        self.asked = self.asked.max(now);
        loop {
            let is_due = self.host.deadline().is_some_and(|deadline| deadline <= now);
            if is_due {
                self.host.wake(self.asked);
            }
            let departure = self.host.poll_send(self.asked);
            if departure.is_some() || !is_due {
                return departure;
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

    /// Packets that the receiver has acknowledged, and that it has found missing.
    pub fn acknowledged(&self) -> (u64, u64) {
        self.missing.so_far()
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::Acked;
    use paceline_cc::{Needs, PathInfo, registry};
    use paceline_net::PS_PER_S;
    use paceline_net::queue::Tag;
    use paceline_sim::{DatagramOptions, FlowPlan, PacketSizes, Stack};
    use proptest::prelude::*;

    const WINDOW: Window = Window { warmup: 0, end: PS_PER_S, sample: PS_PER_S / 10 };

    /// A flow with a fixed window, and at most so many packets a second.
    fn driver(window: u32, cap: Option<u64>) -> Driver {
        let spec = registry::find("window").unwrap();
        let mut params = spec.params(None).unwrap();
        params.set("packets", window.into()).unwrap();
        let flow = FlowPlan {
            name: "flow".into(),
            controller_name: "window".into(),
            needs: Needs::NONE,
            fields: Vec::new(),
            controller: Box::new(move |path: &PathInfo| (spec.build)(&params, path)),
            stack: Stack::Datagram(DatagramOptions::default()),
            forward: Vec::new(),
            reverse: Vec::new(),
            start_ps: 0,
            stop_ps: None,
            size_bytes: None,
            cap_bytes_per_s: cap.map(|packets| packets * 1500),
            packets: PacketSizes { data_bytes: 1500, header_bytes: 76, ack_bytes: 76 },
            tag: Tag::default(),
        };
        Driver::new(HostedDatagram::new(flow, 0, 1, 0, WINDOW), 0, WINDOW)
    }

    fn sent(driver: &mut Driver, now: Picos) -> Vec<u64> {
        std::iter::from_fn(|| driver.next(now)).map(|departure| departure.seq).collect()
    }

    fn ack(number: u64, sequence: u64) -> [u8; HEADER_BYTES] {
        let acked = Acked { sequence, sent_ms: 0, received_ms: 0, payload_bytes: 1424 };
        Header { sequence: number, sent_ms: 0, ack: Some(acked) }.to_bytes()
    }

    #[test]
    fn a_window_is_filled_and_an_ack_makes_room() {
        let mut driver = driver(3, None);
        assert_eq!(sent(&mut driver, 0), [0, 1, 2]);
        assert_eq!(sent(&mut driver, PS_PER_MS), []);
        driver.on_datagram(40 * PS_PER_MS, &ack(0, 0));
        assert_eq!(sent(&mut driver, 41 * PS_PER_MS), [3]);
        // Packets 1 and 2 are missing; they are in flight no more.
        driver.on_datagram(80 * PS_PER_MS, &ack(1, 3));
        assert_eq!(sent(&mut driver, 80 * PS_PER_MS), [4, 5, 6]);
        assert_eq!(driver.acknowledged(), (2, 2));
        let record = driver.finish(PS_PER_S);
        assert_eq!((record.sent_packets, record.timeouts), (7, 0));
        let rtt = record.rtt_ms.unwrap();
        assert_eq!((rtt.min, rtt.max), (39.0, 40.0), "from the sending to the kernel's time stamp");
    }

    #[test]
    fn silence_is_answered_by_a_probe() {
        let mut driver = driver(2, None);
        assert_eq!(sent(&mut driver, 0), [0, 1]);
        assert_eq!(sent(&mut driver, 999 * PS_PER_MS), []);
        assert_eq!(driver.finish(999 * PS_PER_MS).timeouts, 0, "RFC 6298: 1 s");
    }

    #[test]
    fn a_late_thread_makes_up_for_what_it_missed() {
        // 10,000 packets/s: one every 0.1 ms.
        let mut driver = driver(10_000, Some(10_000));
        let at = |tenths: u64| tenths * PS_PER_MS / 10;
        assert_eq!(sent(&mut driver, 0).len(), 1);
        assert_eq!(sent(&mut driver, at(5)).len(), 5);
        assert_eq!(driver.due(), Some(at(6)));
        // 50 packets are due, the first 5 ms late. A burst of 0.5 ms at twice the rate and the one that is due now: 11 packets at once, …
        assert_eq!(sent(&mut driver, at(55)).len(), 11);
        // … then two per 0.1 ms, until after 4 ms all is made up for: 50 + 40 are due by then.
        assert_eq!(driver.due(), Some(at(55) + PS_PER_MS / 20));
        let late = (1..=80).map(|k| sent(&mut driver, at(55) + k * PS_PER_MS / 20).len());
        assert_eq!(late.sum::<usize>(), 79);
        assert_eq!(driver.due(), Some(at(96)));
        assert_eq!(sent(&mut driver, at(96)).len(), 1);
    }

    #[test]
    fn what_is_later_than_a_tenth_of_a_second_is_lost() {
        let mut driver = driver(10_000, Some(10_000));
        assert_eq!(sent(&mut driver, 0).len(), 1);
        // 300 ms late: of 3000 packets a third is still owed, and 1000 more become due while these leave.
        let start = 300 * PS_PER_MS;
        let sent = (0..=4000).map(|k| sent(&mut driver, start + k * PS_PER_MS / 20).len());
        assert_eq!(sent.sum::<usize>(), 1000 + 2001);
    }

    #[test]
    fn what_the_window_held_back_is_not_owed() {
        let mut driver = driver(2, Some(10_000));
        assert_eq!((sent(&mut driver, 0).len(), sent(&mut driver, PS_PER_MS / 10).len()), (1, 1));
        assert_eq!(sent(&mut driver, PS_PER_MS / 5).len(), 0, "the window is full");
        driver.on_datagram(40 * PS_PER_MS, &ack(0, 0));
        driver.on_datagram(40 * PS_PER_MS, &ack(1, 1));
        assert_eq!(sent(&mut driver, 40 * PS_PER_MS).len(), 1, "the second waits for the pacer");
    }

    #[test]
    fn nothing_leaves_from_the_end_on() {
        let mut driver = driver(10, None);
        assert_eq!(sent(&mut driver, WINDOW.end), []);
        assert_eq!(driver.due(), None);
    }

    proptest! {
        /// Nothing that a peer can send opens the window further, or stops the sender.
        #[test]
        fn malformed_datagrams_do_nothing(
            datagrams in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..64), 0..20),
            acks in prop::collection::vec((any::<u64>(), 8..u64::MAX), 0..20),
        ) {
            let mut driver = driver(8, None);
            prop_assert_eq!(sent(&mut driver, 0).len(), 8);
            for datagram in datagrams {
                // The third number of a header of a true ACK would be below 8: not by chance.
                driver.on_datagram(PS_PER_MS, &datagram);
            }
            for (number, sequence) in acks {
                driver.on_datagram(PS_PER_MS, &ack(number, sequence));
            }
            prop_assert_eq!(sent(&mut driver, 2 * PS_PER_MS).len(), 0);
            driver.on_datagram(PS_PER_MS, &ack(0, 0));
            prop_assert_eq!(sent(&mut driver, 2 * PS_PER_MS).len(), 1);
        }
    }
}
