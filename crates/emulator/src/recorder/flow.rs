//! One end of a measurement: a socket, the clock, what is sent and what is recorded.

use std::io::{self, IoSliceMut};
use std::net::{SocketAddr, UdpSocket};
use std::os::fd::{AsFd, AsRawFd};
use std::time::{Instant, SystemTime, UNIX_EPOCH};

use nix::poll::{PollFd, PollFlags, ppoll};
use nix::sys::socket::sockopt::{RcvBuf, ReceiveTimestampns};
use nix::sys::socket::{ControlMessageOwned, MsgFlags, SockaddrStorage, recvmsg, setsockopt};
use nix::sys::time::TimeSpec;
use paceline_net::{PS_PER_MS, PS_PER_NS, Picos};

use super::RecorderError;
use super::recording::{Recording, read_ack};
use super::saturator::Saturator;
use super::wire::{Datagram, HEADER_BYTES};

/// Datagrams sent or read in a row.
const BATCH: usize = 64;
/// Bytes that may wait in the socket: what comes while this process has no processor.
const SOCKET_BYTES: usize = 4 << 20;
/// How often to look whether the user wants to end.
const LOOK: Picos = 100 * PS_PER_MS;

/// A UDP socket whose datagrams carry the time of their arrival.
pub struct Endpoint {
    pub socket: UdpSocket,
    start: Instant,
    room: Box<[u8]>,
}

/// A datagram that has come.
struct Came {
    bytes: usize,
    from: SocketAddr,
    at: Picos,
}

impl Endpoint {
    pub fn bind(address: SocketAddr) -> io::Result<Self> {
        let socket = UdpSocket::bind(address)?;
        socket.set_nonblocking(true)?;
        setsockopt(&socket, ReceiveTimestampns, &true)?;
        // As much as the host allows.
        let _ = setsockopt(&socket, RcvBuf, &SOCKET_BYTES);
        Ok(Self { socket, start: Instant::now(), room: vec![0; 1 << 16].into() })
    }

    pub fn now(&self) -> Picos {
        self.start.elapsed().as_nanos() as Picos * PS_PER_NS
    }

    /// The next datagram, if one is there. It came when the kernel says, not when this process had the time to look.
    fn receive(&mut self) -> Option<Came> {
        let mut space = nix::cmsg_space!(TimeSpec);
        let fd = self.socket.as_raw_fd();
        // An error is that of an earlier datagram, and no reason to stop.
        for _ in 0..3 {
            let mut parts = [IoSliceMut::new(&mut self.room)];
            let got =
                recvmsg::<SockaddrStorage>(fd, &mut parts, Some(&mut space), MsgFlags::empty());
            let Ok(got) = got else { continue };
            let stamp = got.cmsgs().ok().and_then(|mut all| {
                all.find_map(|one| match one {
                    ControlMessageOwned::ScmTimestampns(time) => Some(time),
                    _ => None,
                })
            });
            let Some(from) = got.address.as_ref().and_then(address) else { continue };
            let bytes = got.bytes;
            let at = self.now().saturating_sub(stamp.map_or(0, age));
            return Some(Came { bytes, from, at });
        }
        None
    }

    /// Waits until something has come or `until` is there, at most 100 ms.
    pub fn wait(&self, until: Option<Picos>, to_write: bool) {
        let now = self.now();
        let left = until.map_or(LOOK, |until| until.saturating_sub(now).min(LOOK));
        let ns = (left / PS_PER_NS) as i64;
        let flags =
            if to_write { PollFlags::POLLIN | PollFlags::POLLOUT } else { PollFlags::POLLIN };
        let timeout = TimeSpec::new(ns / 1_000_000_000, ns % 1_000_000_000);
        // On an error the caller looks again.
        let _ = ppoll(&mut [PollFd::new(self.socket.as_fd(), flags)], Some(timeout), None);
    }

    /// Says hello to `to` every 100 ms until somebody whom `is_peer` accepts answers; who that is.
    pub fn greet(
        &mut self,
        token: u64,
        to: Option<SocketAddr>,
        is_peer: impl Fn(SocketAddr) -> bool,
        until: Picos,
        interrupted: &dyn Fn() -> bool,
    ) -> Result<Option<SocketAddr>, RecorderError> {
        while self.now() < until {
            if let Some(to) = to {
                let _ = self.socket.send_to(&Datagram::Hello.header(token), to);
            }
            self.wait(None, false);
            if interrupted() {
                return Err(RecorderError::Interrupted);
            }
            while let Some(came) = self.receive() {
                // Data says that the other end has heard us as well.
                let known = Datagram::parse(&self.room[..came.bytes], token);
                if known.is_some() && is_peer(came.from) {
                    let _ = self.socket.send_to(&Datagram::Hello.header(token), came.from);
                    return Ok(Some(came.from));
                }
            }
        }
        Ok(None)
    }
}

/// How long ago a moment of the clock on the wall was, ps, at most a second: that clock may be set.
fn age(stamp: TimeSpec) -> Picos {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_nanos() as i128;
    let then = i128::from(stamp.tv_sec()) * 1_000_000_000 + i128::from(stamp.tv_nsec());
    (now - then).clamp(0, 1_000_000_000) as Picos * PS_PER_NS
}

fn address(from: &SockaddrStorage) -> Option<SocketAddr> {
    let v4 = from.as_sockaddr_in().map(|v4| SocketAddr::V4((*v4).into()));
    v4.or_else(|| from.as_sockaddr_in6().map(|v6| SocketAddr::V6((*v6).into())))
}

/// A measurement under way at one end.
pub struct Flow {
    pub token: u64,
    pub peer: SocketAddr,
    /// Size of the packets sent, bytes of IP.
    pub packet_bytes: u16,
    pub sender: Option<Saturator>,
    pub recording: Option<Recording>,
    /// When it is over.
    pub end: Picos,
}

impl Flow {
    /// Runs the measurement to its end.
    pub fn run(
        &mut self,
        endpoint: &mut Endpoint,
        interrupted: &dyn Fn() -> bool,
    ) -> Result<(), RecorderError> {
        let headers = if self.peer.is_ipv4() { 20 + 8 } else { 40 + 8 };
        let mut payload =
            vec![0; (usize::from(self.packet_bytes).saturating_sub(headers)).max(HEADER_BYTES)];
        let mut looked = 0;
        loop {
            let now = endpoint.now();
            if now >= self.end {
                return Ok(());
            }
            if now >= looked + LOOK {
                looked = now;
                if interrupted() {
                    return Err(RecorderError::Interrupted);
                }
            }
            let mut more = self.take_in(endpoint, headers as u32);
            self.acknowledge(endpoint);
            let is_full = self.send(endpoint, &mut payload, &mut more);
            if !more {
                let ack_due = self.recording.as_ref().and_then(Recording::ack_due);
                endpoint.wait(ack_due.into_iter().chain([self.end]).min(), is_full);
            }
        }
    }

    /// Reads what has come. Whether there may be more.
    fn take_in(&mut self, endpoint: &mut Endpoint, headers: u32) -> bool {
        for _ in 0..BATCH {
            let Some(came) = endpoint.receive() else { return false };
            let datagram = Datagram::parse(&endpoint.room[..came.bytes], self.token);
            let Some(datagram) = datagram.filter(|_| came.from == self.peer) else { continue };
            if let Some(recording) = &mut self.recording {
                recording.on_packet(came.at, came.bytes as u32 + headers);
            }
            match (datagram, &mut self.recording, &mut self.sender) {
                (Datagram::Data { sequence, sent_ns }, Some(recording), _) => {
                    recording.on_data(came.at, sequence, sent_ns);
                }
                (Datagram::Ack { next, received, sent_ns, arrived_ns }, _, Some(sender)) => {
                    let now = endpoint.now();
                    sender.on_ack(now, read_ack(now, (next, received, sent_ns, arrived_ns)));
                }
                // The first answer was lost.
                (Datagram::Hello, ..) => {
                    let answer = Datagram::Hello.header(self.token);
                    // Not if there is data: that is an answer.
                    if self.sender.is_none() {
                        let _ = endpoint.socket.send_to(&answer, self.peer);
                    }
                }
                _ => {}
            }
        }
        true
    }

    fn acknowledge(&mut self, endpoint: &Endpoint) {
        let Some(recording) = &mut self.recording else { return };
        let now = endpoint.now();
        if recording.ack_due().is_some_and(|due| due <= now) {
            let (next, received, sent_ns, arrived_ns) = recording.ack(now);
            let ack = Datagram::Ack { next, received, sent_ns, arrived_ns };
            let _ = endpoint.socket.send_to(&ack.header(self.token), self.peer);
        }
    }

    /// Sends what may be sent. Whether the socket is full; sets `more` if there is more to send.
    fn send(&mut self, endpoint: &Endpoint, payload: &mut [u8], more: &mut bool) -> bool {
        let Some(sender) = &mut self.sender else { return false };
        for _ in 0..BATCH {
            let now = endpoint.now();
            let Some(sequence) = sender.to_send(now) else { return false };
            let data = Datagram::Data { sequence, sent_ns: now / PS_PER_NS };
            payload[..HEADER_BYTES].copy_from_slice(&data.header(self.token));
            match endpoint.socket.send_to(payload, self.peer) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return true,
                // Whatever it is, the packet is lost.
                _ => sender.on_sent(now),
            }
        }
        *more = true;
        false
    }
}
