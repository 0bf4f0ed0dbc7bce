//! Recordings of what a controller was told and what it answered: `bpf/include/event_log.h`, with which the kernel's host writes the
//! same records. In go bytes, out come flows and their entries, or where the bytes are wrong and why.
//!
//! A file is [`HEAD_BYTES`] of head (the magic, a mark of the byte order, the version), then records in any interleaving of flows:
//! of one flow they are in order. It is written in the byte order of the machine that recorded. A recording that was ended properly
//! ends with a record that says how many were lost.

use std::net::{IpAddr, Ipv6Addr, SocketAddr};

use crate::controller::Control;
use crate::event::{AckSample, Loss, PathInfo, Resume, Timeout, Undo};
use crate::native::Portable;

/// Bytes before the first record.
pub const HEAD_BYTES: usize = 16;
/// Bytes of a record before what its kind says.
pub const RECORD_BYTES: usize = 16;
/// The version that is written, and the only one that is read.
pub const VERSION: u32 = 1;

const MAGIC: &[u8; 8] = b"PL-EVENT";
const ORDER: u32 = 0x0102_0304;
/// Of an algorithm's name in a record, bytes.
const NAME_BYTES: usize = 16;
/// More parameters than any algorithm has.
const MOST_PARAMS: u64 = 256;

/// The kinds of records, CC_RECORD_… of the C side.
const START: u32 = 1;
const ACK: u32 = 2;
const LOSS: u32 = 3;
const RTO: u32 = 4;
const SPURIOUS_LOSS: u32 = 5;
const RESUME: u32 = 6;
const PATH_CHANGE: u32 = 7;
const TIMER: u32 = 8;
const CAP: u32 = 9;
const CONTROL: u32 = 10;
const RELEASE: u32 = 11;
/// Ends the file; the host does not write it.
const CLOSED: u32 = 12;

/// What an algorithm is told after it was made.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Event {
    /// `on_ack`
    Ack(AckSample),
    /// `on_loss`
    Loss(Loss),
    /// `on_rto`
    Rto(Timeout),
    /// `on_spurious_loss`
    SpuriousLoss(Undo),
    /// `on_resume`
    Resume(Resume),
    /// `on_path_change`
    PathChange(PathInfo),
    /// `on_timer`, at this time, ns
    Timer(u64),
    /// The host's cap from now on, bytes/s; `u64::MAX` = none. Only for algorithms that know of caps.
    Cap(u64),
}

impl Event {
    /// The callback's name.
    pub fn name(&self) -> &'static str {
        kind_name(self.kind())
    }

    /// When it happened, ns; a cap has no time.
    pub fn now_ns(&self) -> Option<u64> {
        Some(match self {
            Self::Ack(ack) => ack.now_ns,
            Self::Loss(loss) => loss.now_ns,
            Self::Rto(timeout) => timeout.now_ns,
            Self::SpuriousLoss(undo) => undo.now_ns,
            Self::Resume(resume) => resume.now_ns,
            Self::PathChange(path) => path.now_ns,
            Self::Timer(now_ns) => *now_ns,
            Self::Cap(_) => return None,
        })
    }

    /// The number of its kind, CC_RECORD_… of `bpf/include/event_log.h`.
    pub fn kind(&self) -> u32 {
        match self {
            Self::Ack(_) => ACK,
            Self::Loss(_) => LOSS,
            Self::Rto(_) => RTO,
            Self::SpuriousLoss(_) => SPURIOUS_LOSS,
            Self::Resume(_) => RESUME,
            Self::PathChange(_) => PATH_CHANGE,
            Self::Timer(_) => TIMER,
            Self::Cap(_) => CAP,
        }
    }

    /// Appends the C struct of its kind.
    pub fn put(&self, out: &mut Vec<u8>) {
        match self {
            Self::Ack(ack) => ack.put(out),
            Self::Loss(loss) => loss.put(out),
            Self::Rto(timeout) => timeout.put(out),
            Self::SpuriousLoss(undo) => undo.put(out),
            Self::Resume(resume) => resume.put(out),
            Self::PathChange(path) => path.put(out),
            Self::Timer(word) | Self::Cap(word) => word.put(out),
        }
    }
}

/// How a flow begins.
#[derive(Clone, Debug)]
pub struct Start {
    /// What the algorithm was made for.
    pub path: PathInfo,
    /// Between whom; addresses of zeros if the host had none.
    pub local: SocketAddr,
    /// See there.
    pub remote: SocketAddr,
    /// Which algorithm.
    pub algorithm: Portable,
    /// Its parameters, as [`Portable::to_integers`] has them.
    pub params: Vec<u64>,
}

impl Start {
    /// Number of the kind, as of [`Event::kind`].
    pub const KIND: u32 = START;
}

/// A record of a flow.
#[derive(Clone, Debug)]
pub enum Entry {
    /// The first.
    Start(Start),
    /// What the algorithm was told.
    Event(Event),
    /// What the host then read.
    Control(Control),
    /// The flow ended, or another controller took over.
    Release,
}

/// The records of one flow.
#[derive(Debug)]
pub struct FlowLog<'a> {
    /// Its number in this recording.
    pub flow: u64,
    /// How it began; `None` if that was lost or before the recording.
    pub start: Option<Start>,
    /// Records until the first that is missing: those before the gap.
    records: Vec<usize>,
    /// How many are missing there, 0 = none; and how many follow the gap.
    pub missing: u64,
    /// See there.
    pub after_gap: u64,
    /// Whether its end is recorded.
    pub released: bool,
    bytes: &'a [u8],
    next: u32,
    now_ns: u64,
}

impl FlowLog<'_> {
    /// The entries up to the first gap, with their places in the file; none if the start is missing.
    pub fn entries(&self) -> impl Iterator<Item = (usize, Entry)> + '_ {
        let known = self.start.is_some();
        self.records.iter().filter(move |_| known).filter_map(|position| {
            let mut cursor = Cursor { bytes: self.bytes, at: *position };
            // It was read once already.
            record(&mut cursor).ok().map(|record| (*position, record.entry))
        })
    }

    /// How many records there are, those after a gap included.
    pub fn recorded(&self) -> u64 {
        self.records.len() as u64 + self.after_gap
    }
}

/// A recording.
#[derive(Debug)]
pub struct Log<'a> {
    /// Its flows, in the order of their first records.
    pub flows: Vec<FlowLog<'a>>,
    /// How many records found the kernel's buffer full; `None` if the recording was not ended properly.
    pub lost: Option<u64>,
}

/// What is wrong with a recording.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("byte {position}: {reason}")]
pub struct LogError {
    /// Where the record begins that is wrong, bytes from the start of the file.
    pub position: usize,
    /// What is wrong, and what is expected.
    pub reason: String,
}

/// Begins a file.
pub fn put_head(out: &mut Vec<u8>) {
    out.extend_from_slice(MAGIC);
    ORDER.put(out);
    VERSION.put(out);
}

/// Ends a file: no further record, and `lost` found the buffer full.
pub fn put_closed(lost: u64, out: &mut Vec<u8>) {
    put_record(0, 0, CLOSED, out);
    lost.put(out);
}

/// Appends the record number `sequence` of `flow`.
pub fn put_entry(flow: u64, sequence: u32, entry: &Entry, out: &mut Vec<u8>) {
    match entry {
        Entry::Start(start) => {
            put_record(flow, sequence, START, out);
            start.path.put(out);
            for address in [start.local, start.remote] {
                let ip = match address.ip() {
                    IpAddr::V4(ip) => ip.to_ipv6_mapped(),
                    IpAddr::V6(ip) => ip,
                };
                out.extend_from_slice(&ip.octets());
            }
            u32::from(start.local.port()).put(out);
            u32::from(start.remote.port().to_be()).put(out);
            let mut name = [0; NAME_BYTES];
            let known = start.algorithm.spec().name.as_bytes();
            name[..known.len()].copy_from_slice(known);
            out.extend_from_slice(&name);
            (start.params.len() as u64).put(out);
            start.params.iter().for_each(|word| word.put(out));
        }
        Entry::Event(event) => {
            put_record(flow, sequence, event.kind(), out);
            event.put(out);
        }
        Entry::Control(control) => {
            put_record(flow, sequence, CONTROL, out);
            control.put(out);
        }
        Entry::Release => put_record(flow, sequence, RELEASE, out),
    }
}

/// `path` as the C struct.
pub fn path_bytes(path: &PathInfo) -> Vec<u8> {
    let mut bytes = Vec::new();
    path.put(&mut bytes);
    bytes
}

/// What the C struct at the start of `bytes` asks for; `None` if they are too few.
pub fn control_from(bytes: &[u8]) -> Option<Control> {
    Control::take(&mut Cursor { bytes, at: 0 }, "control").ok()
}

fn put_record(flow: u64, sequence: u32, kind: u32, out: &mut Vec<u8>) {
    flow.put(out);
    sequence.put(out);
    kind.put(out);
}

/// Reads a file.
///
/// # Errors
/// Another format, version or byte order; a record that is cut off, of an unknown kind or algorithm, or says what cannot be.
pub fn parse(bytes: &[u8]) -> Result<Log<'_>, LogError> {
    let mut cursor = Cursor { bytes, at: 0 };
    head(&mut cursor)?;
    let mut log = Log { flows: Vec::new(), lost: None };
    // Flows by number; a binary search, for their order in the file is not that of their numbers.
    let mut known: Vec<(u64, usize)> = Vec::new();
    while cursor.at < bytes.len() {
        let position = cursor.at;
        let wrong = |reason: String| LogError { position, reason };
        if log.lost.is_some() {
            return Err(wrong("a record after the one that ends the file".into()));
        }
        if kind_at(bytes, position) == Some(CLOSED) {
            cursor.at += RECORD_BYTES;
            let lost = u64::take(&mut cursor, "the last record");
            log.lost = Some(lost.map_err(|error| wrong(error.reason))?);
            continue;
        }
        let record = record(&mut cursor).map_err(|error| wrong(error.reason))?;
        let place = match known.binary_search_by_key(&record.flow, |(flow, _)| *flow) {
            Ok(found) => known[found].1,
            Err(free) => {
                known.insert(free, (record.flow, log.flows.len()));
                log.flows.push(FlowLog {
                    flow: record.flow,
                    start: None,
                    records: Vec::new(),
                    missing: 0,
                    after_gap: 0,
                    released: false,
                    bytes,
                    next: 0,
                    now_ns: 0,
                });
                log.flows.len() - 1
            }
        };
        log.flows[place].add(position, record).map_err(wrong)?;
    }
    Ok(log)
}

/// Checks the magic, the byte order and the version.
fn head(cursor: &mut Cursor<'_>) -> Result<(), LogError> {
    let wrong = |position, reason| Err(LogError { position, reason });
    if cursor.bytes.get(..MAGIC.len()) != Some(MAGIC) {
        return wrong(
            0,
            "is no recording of a controller's events (paceline kernel record)".into(),
        );
    }
    cursor.at = MAGIC.len();
    let order = u32::take(cursor, "the head")?;
    if order == ORDER.swap_bytes() {
        return wrong(8, "was recorded on a machine of the other byte order".into());
    }
    if order != ORDER {
        return wrong(8, format!("{order:#010x} is no mark of a byte order"));
    }
    let version = u32::take(cursor, "the head")?;
    if version != VERSION {
        return wrong(12, format!("is of version {version}; this Paceline reads {VERSION}"));
    }
    Ok(())
}

impl FlowLog<'_> {
    /// One more record, if it can follow those before.
    fn add(&mut self, position: usize, record: Record) -> Result<(), String> {
        if self.released {
            return Err(format!("flow {:016x} goes on after its end", self.flow));
        }
        let first = self.records.is_empty();
        let skipped = record.sequence.wrapping_sub(self.next);
        // Half of the range, as for any sequence number: more is not ahead but behind.
        if skipped > u32::MAX / 2 {
            return Err(format!(
                "record {} of flow {:016x} comes after record {}",
                record.sequence,
                self.flow,
                self.next.wrapping_sub(1)
            ));
        }
        let now_ns = match &record.entry {
            Entry::Start(start) => Some(start.path.now_ns),
            Entry::Event(event) => event.now_ns(),
            Entry::Control(_) | Entry::Release => None,
        };
        if let Some(now_ns) = now_ns {
            if now_ns < self.now_ns {
                return Err(format!("time goes back from {} ns to {now_ns} ns", self.now_ns));
            }
            self.now_ns = now_ns;
        }
        self.next = record.sequence.wrapping_add(1);
        if skipped > 0 && self.missing == 0 {
            self.missing = u64::from(skipped);
        }
        match record.entry {
            Entry::Start(start) => {
                if !first || record.sequence != 0 {
                    return Err(format!("flow {:016x} begins twice", self.flow));
                }
                self.start = Some(start);
            }
            Entry::Event(Event::Cap(_)) => {
                let algorithm = self.start.as_ref().map(|start| start.algorithm);
                if let Some(algorithm) = algorithm.filter(|algorithm| !algorithm.knows_caps()) {
                    return Err(format!("a cap, of which {} does not know", algorithm.spec().name));
                }
            }
            Entry::Event(_) | Entry::Control(_) => {}
            Entry::Release => self.released = true,
        }
        if record.sequence == 0 && self.start.is_none() {
            return Err(format!("flow {:016x} does not begin with its start", self.flow));
        }
        if self.missing > 0 {
            self.after_gap += 1;
        } else {
            self.records.push(position);
        }
        Ok(())
    }
}

struct Record {
    flow: u64,
    sequence: u32,
    entry: Entry,
}

/// The kind of the record at `position`.
fn kind_at(bytes: &[u8], position: usize) -> Option<u32> {
    let kind = bytes.get(position..)?.get(RECORD_BYTES - 4..RECORD_BYTES)?;
    kind.try_into().ok().map(u32::from_ne_bytes)
}

fn kind_name(kind: u32) -> &'static str {
    match kind {
        START => "init",
        ACK => "on_ack",
        LOSS => "on_loss",
        RTO => "on_rto",
        SPURIOUS_LOSS => "on_spurious_loss",
        RESUME => "on_resume",
        PATH_CHANGE => "on_path_change",
        TIMER => "on_timer",
        CAP => "set_cap",
        CONTROL => "control",
        RELEASE => "release",
        _ => "record",
    }
}

fn record(cursor: &mut Cursor<'_>) -> Result<Record, LogError> {
    let position = cursor.at;
    let flow = u64::take(cursor, "a record")?;
    let sequence = u32::take(cursor, "a record")?;
    let kind = u32::take(cursor, "a record")?;
    let what = kind_name(kind);
    let entry = match kind {
        START => Entry::Start(start(cursor, position)?),
        ACK => Entry::Event(Event::Ack(AckSample::take(cursor, what)?)),
        LOSS => Entry::Event(Event::Loss(Loss::take(cursor, what)?)),
        RTO => Entry::Event(Event::Rto(Timeout::take(cursor, what)?)),
        SPURIOUS_LOSS => Entry::Event(Event::SpuriousLoss(Undo::take(cursor, what)?)),
        RESUME => Entry::Event(Event::Resume(Resume::take(cursor, what)?)),
        PATH_CHANGE => Entry::Event(Event::PathChange(PathInfo::take(cursor, what)?)),
        TIMER => Entry::Event(Event::Timer(u64::take(cursor, what)?)),
        CAP => Entry::Event(Event::Cap(u64::take(cursor, what)?)),
        CONTROL => Entry::Control(Control::take(cursor, what)?),
        RELEASE => Entry::Release,
        _ => {
            let reason = format!("{kind} is no kind of record; allowed: {START} to {CLOSED}");
            return Err(LogError { position, reason });
        }
    };
    Ok(Record { flow, sequence, entry })
}

fn start(cursor: &mut Cursor<'_>, position: usize) -> Result<Start, LogError> {
    let what = kind_name(START);
    let wrong = |reason: String| LogError { position, reason: format!("{what}: {reason}") };
    let path = PathInfo::take(cursor, what)?;
    let local = Ipv6Addr::from(cursor.take::<16>(what)?).to_canonical();
    let remote = Ipv6Addr::from(cursor.take::<16>(what)?).to_canonical();
    let (local_port, remote_port) = (u32::take(cursor, what)?, u32::take(cursor, what)?);
    let port = |number: u32| {
        u16::try_from(number)
            .map_err(|_| wrong(format!("{number} is no port; allowed: 0 to 65535")))
    };
    let name = cursor.take::<NAME_BYTES>(what)?;
    let name = name.split(|byte| *byte == 0).next().unwrap_or_default();
    let name = String::from_utf8_lossy(name).into_owned();
    let algorithm = Portable::find(&name)
        .ok_or_else(|| wrong(format!("\"{}\" is no algorithm in C", name.escape_debug())))?;
    let count = u64::take(cursor, what)?;
    if count > MOST_PARAMS {
        return Err(wrong(format!("{count} parameters; allowed: at most {MOST_PARAMS}")));
    }
    let params = (0..count).map(|_| u64::take(cursor, what)).collect::<Result<Vec<_>, _>>()?;
    algorithm.check(&params).map_err(wrong)?;
    Ok(Start {
        path,
        local: SocketAddr::new(local, port(local_port)?),
        remote: SocketAddr::new(remote, u16::from_be(port(remote_port)?)),
        algorithm,
        params,
    })
}

/// Reads one thing after the other.
struct Cursor<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl Cursor<'_> {
    fn take<const N: usize>(&mut self, what: &str) -> Result<[u8; N], LogError> {
        let rest = &self.bytes[self.at..];
        let found = rest.first_chunk::<N>().copied().ok_or_else(|| LogError {
            position: self.at,
            reason: format!("the file ends within {what}: it was cut off"),
        })?;
        self.at += N;
        Ok(found)
    }
}

/// Numbers, and structs of numbers without padding, in the machine's byte order.
trait Wire: Sized {
    /// Appends it.
    fn put(&self, out: &mut Vec<u8>);
    /// Reads it, as a part of `what`.
    fn take(cursor: &mut Cursor<'_>, what: &str) -> Result<Self, LogError>;
}

macro_rules! wire_words {
    ($($word:ty),+) => {
        $(impl Wire for $word {
            fn put(&self, out: &mut Vec<u8>) {
                out.extend_from_slice(&self.to_ne_bytes());
            }

            fn take(cursor: &mut Cursor<'_>, what: &str) -> Result<Self, LogError> {
                Ok(Self::from_ne_bytes(cursor.take(what)?))
            }
        })+
    };
}
wire_words!(u32, u64);

macro_rules! wire_structs {
    ($($name:ident: $($field:ident),+;)+) => {
        $(impl Wire for $name {
            fn put(&self, out: &mut Vec<u8>) {
                $(self.$field.put(out);)+
            }

            fn take(cursor: &mut Cursor<'_>, what: &str) -> Result<Self, LogError> {
                $(let $field = Wire::take(cursor, what)?;)+
                Ok(Self { $($field),+ })
            }
        })+
    };
}
// In the order of the C structs; crates/cc/src/native.rs asserts their layout.
wire_structs! {
    PathInfo: now_ns, packet_bytes, initial_window_packets, seed;
    AckSample: now_ns, acked_bytes, acked_packets, ce_packets, in_flight_bytes, prior_in_flight_bytes, rtt_ns, srtt_ns,
        min_rtt_ns, ack_delay_ns, one_way_delay_ns, sent_ns, delivered_bytes, interval_ns, delivered_total_bytes,
        prior_delivered_total_bytes, tx_in_flight_bytes, lost_since_sent_bytes, flags, burst_bytes;
    Loss: now_ns, lost_bytes, newest_lost_sent_ns, in_flight_bytes, prior_in_flight_bytes, lost_packets, flags,
        tx_in_flight_bytes, lost_since_sent_bytes;
    Timeout: now_ns, in_flight_bytes, consecutive, reserved;
    Undo: now_ns, started_ns;
    Resume: now_ns, idle_ns;
    Control: cwnd_bytes, pacing_bytes_per_s, send_quantum_bytes, next_timer_ns, timeout_ns;
}
