//! The receiving ends of datagram flows, and what the contest's receiver is on its own.

use std::net::{SocketAddrV4, UdpSocket};
use std::os::fd::AsFd;
use std::sync::atomic::{AtomicBool, Ordering};

use nix::poll::{PollFd, PollFlags, PollTimeout, poll};

use crate::clock::{Clock, ms};
use crate::sys::{self, Batch};
use crate::wire::{Acknowledger, HEADER_BYTES};

/// Longest sleep, ms: the wish to stop is looked for in between.
const LONGEST_SLEEP_MS: u16 = 50;

/// The receiver of one flow.
pub struct Receiver {
    socket: UdpSocket,
    acknowledger: Acknowledger,
    /// ACKs to be sent together, and to whom.
    outbox: Vec<u8>,
    to: Option<SocketAddrV4>,
}

impl Receiver {
    /// Answers what comes to `socket`.
    pub fn new(socket: UdpSocket) -> Self {
        Self { socket, acknowledger: Acknowledger::default(), outbox: Vec::new(), to: None }
    }

    /// Answers everything that has come. What is no data packet is ignored.
    fn answer(&mut self, clock: &Clock, batch: &mut Batch) {
        loop {
            let offset = clock.offset();
            let Self { socket, acknowledger, outbox, to } = self;
            let came = batch.receive(socket, |datagram| {
                let received = offset.arrival(datagram.received_ns);
                let (bytes, now) = (datagram.bytes, ms(offset.now()));
                let ack = acknowledger.answer(datagram.kept(), bytes, ms(received), now);
                let Some(ack) = ack else { return };
                if to.is_some_and(|to| to != datagram.source) {
                    flush(socket, outbox, *to);
                }
                *to = Some(datagram.source);
                outbox.extend_from_slice(&ack.to_bytes());
            });
            flush(&self.socket, &mut self.outbox, self.to);
            if !came.is_ok_and(|count| count == sys::RECEIVE_BATCH) {
                return;
            }
        }
    }
}

/// Sends ACKs. One that the kernel refuses is lost, as on any link.
fn flush(socket: &UdpSocket, acks: &mut Vec<u8>, to: Option<SocketAddrV4>) {
    if acks.is_empty() {
        return;
    }
    if sys::send_segments(socket, acks, HEADER_BYTES, to).is_err() {
        for ack in acks.chunks(HEADER_BYTES) {
            let _ = sys::send_segments(socket, ack, HEADER_BYTES, to);
        }
    }
    acks.clear();
}

/// Answers data packets until `stop`.
pub fn receive(receivers: &mut [Receiver], clock: &Clock, stop: &AtomicBool) {
    let mut batch = Batch::default();
    while !stop.load(Ordering::Relaxed) {
        let mut files: Vec<PollFd<'_>> = receivers
            .iter()
            .map(|receiver| PollFd::new(receiver.socket.as_fd(), PollFlags::POLLIN))
            .collect();
        if poll(&mut files, PollTimeout::from(LONGEST_SLEEP_MS)).is_err() {
            continue;
        }
        let ready: Vec<bool> = files.iter().map(|file| file.any().unwrap_or(true)).collect();
        for (receiver, _) in receivers.iter_mut().zip(ready).filter(|(_, ready)| *ready) {
            receiver.answer(clock, &mut batch);
        }
    }
}
