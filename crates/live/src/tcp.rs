//! Flows of this kernel's TCP: a sender that always has something to send, and one that takes it.

use std::io::{self, ErrorKind, Write};
use std::net::{SocketAddrV4, TcpListener, TcpStream};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};

use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::socket::{AddressFamily, SockFlag, SockType, SockaddrIn, connect, socket};
use paceline_net::queue::Ecn;
use paceline_net::{PS_PER_MS, Picos};
use paceline_sim::FlowPlan;
use paceline_sim::hosted::{SenderRecord, SenderSample, Times, Window};

use crate::clock::Clock;
use crate::sys;
use crate::tcp_info::TcpInfo;

/// Our controllers that the kernel may have, and what it calls them.
pub const KERNEL_NAMES: [(&str, &str); 14] = [
    ("reno", "reno"),
    ("cubic", "cubic"),
    ("bbr1", "bbr"),
    ("bic", "bic"),
    ("hstcp", "highspeed"),
    ("htcp", "htcp"),
    ("scalable", "scalable"),
    ("westwood", "westwood"),
    ("illinois", "illinois"),
    ("vegas", "vegas"),
    ("veno", "veno"),
    ("yeah", "yeah"),
    ("cdg", "cdg"),
    ("dctcp", DCTCP),
];
/// The one whose receiver has a part in it: it tells of each mark (RFC 8257, section 3.2).
const DCTCP: &str = "dctcp";

/// Socket buffers, bytes: 1 Gbit/s over half a second.
const BUFFER: usize = 64 << 20;
/// What may wait in the kernel unsent: a flow that is to stop soon does.
const UNSENT: u32 = 128 << 10;
/// How often the connection is looked at.
const LOOK: Picos = 5 * PS_PER_MS;
/// The wish to stop is looked for as often.
const LOOK_MS: u16 = 5;

/// What the kernel calls the controller `name`, of which the profile `linux` may be asked for; `None` if it has none.
pub fn kernel_name(name: &str) -> Option<&'static str> {
    let name = name.strip_suffix(":linux").unwrap_or(name);
    KERNEL_NAMES.iter().find(|(ours, _)| *ours == name).map(|(_, kernel)| *kernel)
}

/// What this kernel has, loaded.
pub fn available() -> Vec<String> {
    let path = "/proc/sys/net/ipv4/tcp_available_congestion_control";
    let text = std::fs::read_to_string(path).unwrap_or_default();
    text.split_whitespace().map(str::to_owned).collect()
}

/// What this network namespace makes of ECN: 0 nothing, 1 asks for it, 2 does so only when asked.
const ECN: &str = "/proc/sys/net/ipv4/tcp_ecn";
/// Whether it does without when the first attempt at a connection has no answer.
const ECN_FALLBACK: &str = "/proc/sys/net/ipv4/tcp_ecn_fallback";

/// Whether receivers of this network namespace take part in ECN.
pub fn accepts_ecn() -> bool {
    std::fs::read_to_string(ECN).is_ok_and(|text| text.trim() != "0")
}

/// The congestion control of a flow, as sockets name it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Congestion {
    /// For `TCP_CONGESTION`.
    pub name: String,
    /// Whether it paces.
    pub paces: bool,
}

impl Congestion {
    /// Of flow number `number` of a plan: one that was `loaded` for it, or the kernel's own.
    pub fn of(flow: &FlowPlan, number: u32, loaded: &[Option<Self>]) -> Option<Self> {
        let loaded = loaded.get(number as usize).cloned().flatten();
        loaded.or_else(|| Self::of_the_kernel(flow))
    }

    /// The kernel's own for `flow`; `None` if it has none.
    pub fn of_the_kernel(flow: &FlowPlan) -> Option<Self> {
        let name = kernel_name(&flow.controller_name)?;
        Some(Self { name: name.into(), paces: name == "bbr" })
    }
}

/// The receiving end of a flow before it is used; the connection inherits what is set.
pub fn listen(address: SocketAddrV4, congestion: Option<&Congestion>) -> io::Result<TcpListener> {
    let listener = TcpListener::bind(address)?;
    sys::set_buffers(&listener, BUFFER)?;
    if congestion.is_some_and(|congestion| congestion.name == DCTCP) {
        sys::set_congestion(&listener, DCTCP)?;
    }
    Ok(listener)
}

/// A flow's socket, which has chosen its congestion control.
pub struct Near {
    file: OwnedFd,
    paces: bool,
    /// Its packets are to be marked rather than dropped.
    ecn: bool,
}

impl Near {
    /// Makes it in the network namespace of this thread. From here on the congestion control may lose its name.
    pub fn new(flow: &FlowPlan, congestion: Option<&Congestion>) -> io::Result<Self> {
        let flags = SockFlag::SOCK_CLOEXEC | SockFlag::SOCK_NONBLOCK;
        let file = socket(AddressFamily::Inet, SockType::Stream, flags, None)?;
        if let Some(congestion) = congestion {
            sys::set_congestion(&file, &congestion.name)?;
        }
        sys::set_buffers(&file, BUFFER)?;
        sys::set_unsent_limit(&file, UNSENT)?;
        let sizes = flow.packets;
        // The kernel counts the timestamps option as part of the segment.
        let overhead = sizes.header_bytes.saturating_sub(52);
        sys::set_max_segment(&file, (sizes.data_bytes - overhead - 40).min(1460))?;
        if let Some(cap) = flow.cap_bytes_per_s {
            let payload = u128::from(sizes.payload_bytes());
            let rate = u128::from(cap) * payload / u128::from(sizes.data_bytes.max(1));
            sys::set_max_pacing_rate(&file, rate as u64)?;
        }
        let paces = flow.cap_bytes_per_s.is_some() || congestion.is_some_and(|known| known.paces);
        let ecn = flow.tag.ecn != Ecn::NotCapable;
        Ok(Self { file, paces, ecn })
    }

    /// Connects, in the network namespace of the socket.
    fn connect(self, to: SocketAddrV4, opening: &Mutex<()>) -> io::Result<TcpStream> {
        self.begin(to, opening)?;
        while poll(&mut [PollFd::new(self.file.as_fd(), PollFlags::POLLOUT)], PollTimeout::NONE)
            == Err(Errno::EINTR)
        {}
        let stream = TcpStream::from(self.file);
        match stream.take_error()? {
            Some(error) => Err(error),
            None => Ok(stream),
        }
    }

    /// Sends the first packet of the connection, which asks for ECN if the namespace's setting says so at that moment.
    fn begin(&self, to: SocketAddrV4, opening: &Mutex<()>) -> io::Result<()> {
        let _turn = opening.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        if self.ecn {
            std::fs::write(ECN_FALLBACK, "0")?;
            std::fs::write(ECN, "1")?;
        }
        let begun = connect(self.file.as_raw_fd(), &SockaddrIn::from(to));
        if self.ecn {
            std::fs::write(ECN, "2")?;
        }
        match begun {
            Err(error) if error != Errno::EINPROGRESS => Err(error.into()),
            _ => Ok(()),
        }
    }
}

/// What a sender needs to know.
pub struct Sending<'a> {
    /// The receiver.
    pub to: SocketAddrV4,
    /// The clock of the run.
    pub clock: &'a Clock,
    /// When to measure.
    pub window: Window,
    /// Ends the flow at once.
    pub stop: &'a AtomicBool,
    /// Held while a connection begins: whether it asks for ECN is a setting that all have in common.
    pub opening: &'a Mutex<()>,
}

impl Sending<'_> {
    /// Sends `flow`, from now to the end of the run, on a thread whose sockets are inside.
    pub fn run(&self, flow: FlowPlan, near: Near) -> io::Result<SenderRecord> {
        let mut books = Books::new(&flow, self.window, near.paces);
        let with_ecn = near.ecn;
        let mut stream = near.connect(self.to, self.opening)?;
        if with_ecn && !TcpInfo::from_bytes(&sys::tcp_info(&stream)?).ecn {
            return Err(io::Error::other("the connection came about without ECN"));
        }
        let zeros = vec![0; UNSENT as usize];
        let mut left = flow.size_bytes.unwrap_or(u64::MAX);
        loop {
            let now = self.clock.now();
            let all_written = left == 0;
            if books.look(now, &stream)? && all_written && books.last.is_idle() {
                books.record.completed.get_or_insert(now);
            }
            if now >= self.window.end || self.stop.load(Ordering::Relaxed) {
                break;
            }
            let may_write = left > 0 && flow.stop_ps.is_none_or(|stop| now < stop);
            while may_write && left > 0 {
                let most = zeros.len().min(usize::try_from(left).unwrap_or(usize::MAX));
                match stream.write(&zeros[..most]) {
                    Ok(written) => {
                        left -= if flow.size_bytes.is_some() { written as u64 } else { 0 }
                    }
                    Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                    Err(error) if error.kind() == ErrorKind::Interrupted => {}
                    Err(error) => return Err(error),
                }
            }
            let wanted =
                if may_write && left > 0 { PollFlags::POLLOUT } else { PollFlags::empty() };
            // Woken early or not at all: the next look is due soon.
            let _ = poll(&mut [PollFd::new(stream.as_fd(), wanted)], PollTimeout::from(LOOK_MS));
        }
        // Nothing of it may still be under way in the next run.
        sys::abort_on_close(&stream)?;
        Ok(books.finish())
    }
}

/// What is written down of a connection.
struct Books {
    window: Window,
    packet_bytes: f64,
    paces: bool,
    rtt: Times,
    /// Sum and number of the RTTs since the last sample.
    interval: (f64, u32),
    next_sample: Picos,
    next_look: Picos,
    last: TcpInfo,
    sent_at_sample: u32,
    record: SenderRecord,
}

impl Books {
    fn new(flow: &FlowPlan, window: Window, paces: bool) -> Self {
        Self {
            window,
            packet_bytes: f64::from(flow.packets.data_bytes),
            paces,
            rtt: Times::new(window),
            interval: (0.0, 0),
            next_sample: flow.start_ps.div_ceil(window.sample).max(1) * window.sample,
            next_look: 0,
            last: TcpInfo::default(),
            sent_at_sample: 0,
            record: SenderRecord::new(flow.start_ps, flow.stop_ps, Vec::new(), window),
        }
    }

    /// Looks at the connection, if it is time to, and takes the samples that are due. Whether it was.
    fn look(&mut self, now: Picos, stream: &TcpStream) -> io::Result<bool> {
        let is_time = now >= self.next_look || now >= self.next_sample;
        if is_time {
            self.next_look = now + LOOK;
            self.note(now, TcpInfo::from_bytes(&sys::tcp_info(stream)?));
        }
        Ok(is_time)
    }

    fn note(&mut self, now: Picos, info: TcpInfo) {
        // Of a flow that rests, the estimate stays as it was: that is no measurement.
        let is_news = info.delivered != self.last.delivered;
        self.last = info;
        let end = self.window.end;
        if is_news && info.srtt_us > 0 && now <= end {
            self.rtt.add(now, u64::from(info.srtt_us) * 1000);
            self.interval.0 += f64::from(info.srtt_us) / 1e3;
            self.interval.1 += 1;
        }
        while self.next_sample <= now.min(end) {
            let seconds = self.window.sample as f64 / 1e12;
            let sent = info.sent.wrapping_sub(self.sent_at_sample);
            let sample = SenderSample {
                send_bps: f64::from(sent) * self.packet_bytes * 8.0 / seconds,
                cwnd_bytes: f64::from(info.cwnd) * self.packet_bytes,
                in_flight_bytes: f64::from(info.in_flight()) * self.packet_bytes,
                sent_packets: f64::from(info.sent),
                // Before the controller has set one, it is the largest number there is.
                pacing_bps: if self.paces && info.pacing_bytes_per_s != u64::MAX {
                    info.pacing_bytes_per_s as f64 * 8.0
                } else {
                    f64::NAN
                },
                rtt_ms: self.interval.0 / f64::from(self.interval.1),
                srtt_ms: if info.srtt_us > 0 { f64::from(info.srtt_us) / 1e3 } else { f64::NAN },
                retransmitted_packets: f64::from(info.retransmitted),
            };
            self.record.push(self.next_sample, &sample);
            self.sent_at_sample = info.sent;
            self.interval = (0.0, 0);
            self.next_sample += self.window.sample;
        }
    }

    fn finish(self) -> SenderRecord {
        let Self { mut record, last, rtt, .. } = self;
        record.sent_packets = last.sent.into();
        record.retransmitted_packets = last.retransmitted.into();
        record.timeouts = last.timeouts.unwrap_or_default().into();
        record.rtt_ms = rtt.stats_ms();
        record
    }
}

/// Takes what comes over the first connection to `listener` until `stop`. Payload that came within `[from, to]`, bytes.
pub fn sink(
    listener: &TcpListener,
    clock: &Clock,
    [from, to]: [Picos; 2],
    stop: &AtomicBool,
) -> io::Result<u64> {
    let mut taken = 0;
    let comes = |fd: BorrowedFd<'_>| {
        poll(&mut [PollFd::new(fd, PollFlags::POLLIN)], PollTimeout::from(50_u8))
            .is_ok_and(|n| n > 0)
    };
    while !stop.load(Ordering::Relaxed) {
        if !comes(listener.as_fd()) {
            continue;
        }
        let (stream, _) = listener.accept()?;
        while !stop.load(Ordering::Relaxed) {
            if !comes(stream.as_fd()) {
                continue;
            }
            match sys::discard(&stream, 4 << 20) {
                // The end, orderly or not.
                Ok(0) => return Ok(taken),
                Err(error) if error.kind() == ErrorKind::ConnectionReset => return Ok(taken),
                Ok(bytes) => {
                    let now = clock.now();
                    taken += if now >= from && now <= to { bytes as u64 } else { 0 };
                }
                Err(error) => return Err(error),
            }
        }
    }
    Ok(taken)
}
