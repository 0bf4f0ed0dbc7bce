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
    /// ACKs to be sent together, …
    outbox: Vec<u8>,
    /// … the size of each, bytes, …
    size: usize,
    /// … and to whom.
    to: Option<SocketAddrV4>,
}

impl Receiver {
    /// Answers what comes to `socket`.
    pub fn new(socket: UdpSocket) -> Self {
        let acknowledger = Acknowledger::default();
        Self { socket, acknowledger, outbox: Vec::new(), size: HEADER_BYTES, to: None }
    }

    /// Answers everything that has come. What is no data packet is ignored.
    fn answer(&mut self, clock: &Clock, batch: &mut Batch) {
        loop {
            let offset = clock.offset();
            let Self { socket, acknowledger, outbox, size, to } = self;
            let came = batch.receive(socket, |datagram| {
                let received = offset.arrival(datagram.received_ns);
                let (bytes, now) = (datagram.bytes, ms(offset.now()));
                let ack = acknowledger.answer(datagram.kept(), bytes, ms(received), now);
                let Some(ack) = ack else { return };
                let marks = acknowledger.marks(datagram.ecn);
                let marks = marks.as_ref().map_or(&[][..], |marks| marks);
                let own_size = HEADER_BYTES + marks.len();
                if to.is_some_and(|to| to != datagram.source) || *size != own_size {
                    flush(socket, outbox, *size, *to);
                }
                (*to, *size) = (Some(datagram.source), own_size);
                outbox.extend_from_slice(&ack.to_bytes());
                outbox.extend_from_slice(marks);
            });
            flush(&self.socket, &mut self.outbox, self.size, self.to);
            if !came.is_ok_and(|count| count == sys::RECEIVE_BATCH) {
                return;
            }
        }
    }
}

/// Sends ACKs of `size` bytes each. One that the kernel refuses is lost, as on any link.
fn flush(socket: &UdpSocket, acks: &mut Vec<u8>, size: usize, to: Option<SocketAddrV4>) {
    if acks.is_empty() {
        return;
    }
    if sys::send_segments(socket, acks, size, to).is_err() {
        for ack in acks.chunks(size) {
            let _ = sys::send_segments(socket, ack, size, to);
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
