//! Logs of a link, in the format of the mahimahi emulator.
//!
//! A log begins with comments (`#` at the start of a line); one of them says which time is 0: `# base timestamp: ms`. Then
//! every line is an event, times in whole ms:
//!
//! | line | what happened |
//! |---|---|
//! | `T + bytes` | a packet arrived at the link |
//! | `T # bytes` | the link could send so much |
//! | `T - bytes delay` | a packet has left the link, `delay` ms after it arrived |
//! | `T d packets bytes` | packets were dropped |
//!
//! [`LogWriter`] puts them in order and adds the opportunities; [`LogStats`] reads them again.

mod stats;

use std::collections::VecDeque;
use std::io::{self, Write};
use std::sync::Arc;

pub use stats::{LogError, LogStats};

use crate::{Capacity, LinkSpec, OPPORTUNITY_BYTES, PS_PER_MS, Picos, ServedLink, Trace};

/// What happened on a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LogEvent {
    /// A packet arrived.
    Arrival {
        /// When, ps.
        time: Picos,
        /// Its size.
        bytes: u32,
    },
    /// A packet leaves the link. Told in the order of leaving, at the latest before the first event after it.
    Departure {
        /// When its last bit is sent, ps.
        time: Picos,
        /// Its size.
        bytes: u32,
        /// When it arrived, ps.
        arrived: Picos,
    },
    /// A packet was dropped.
    Drop {
        /// When, ps.
        time: Picos,
        /// Its size.
        bytes: u32,
    },
    /// Nothing, but so much time has passed.
    Passed {
        /// Until when, ps.
        time: Picos,
    },
}

/// The comments at the beginning of a log.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LogHeader {
    /// "Uplink" or "Downlink".
    pub link: String,
    /// The trace, or the rate.
    pub capacity: String,
    /// The log itself.
    pub file: String,
    /// How it was made.
    pub command_line: String,
    /// Wall clock at the start, ms since 1970.
    pub start_ms: u64,
}

/// Longest text of a comment.
const MAX_COMMENT_CHARS: usize = 4000;
/// Text is handed on in pieces of about this size.
const CHUNK_BYTES: usize = 1 << 16;

/// Writes a log. Whole lines are handed on, so a log that ends early ends with a whole line.
pub struct LogWriter<W> {
    to: W,
    text: Vec<u8>,
    opportunities: Opportunities,
    departures: VecDeque<Departure>,
    /// Bytes of opportunities that the first of `departures` has used.
    credit: u64,
}

struct Departure {
    ms: u64,
    arrived_ms: u64,
    bytes: u32,
}

impl<W: Write> LogWriter<W> {
    /// The log of a link that has carried nothing.
    pub fn new(to: W, header: &LogHeader, spec: &LinkSpec) -> Self {
        let limits = [("bytes", spec.buffer.bytes), ("packets", spec.buffer.packets)];
        let limits = limits.map(|(unit, limit)| limit.map(|limit| format!("{unit}={limit}")));
        let limits: Vec<_> = limits.into_iter().flatten().collect();
        let queue = match (spec.queue.name(), limits.is_empty()) {
            ("droptail", true) => "infinite".into(),
            (name, true) => name.into(),
            (name, false) => format!("{name} [{}]", limits.join(", ")),
        };
        let [link, capacity, file, command_line] =
            [&header.link, &header.capacity, &header.file, &header.command_line]
                .map(|s| comment(s));
        let text = format!(
            "# mahimahi mm-link ({link}) [{capacity}] > {file}\n\
             # command line: {command_line}\n\
             # queue: {queue}\n\
             # init timestamp: {}\n\
             # base timestamp: 0\n",
            header.start_ms
        );
        Self {
            to,
            text: text.into_bytes(),
            opportunities: Opportunities::new(spec),
            departures: VecDeque::new(),
            credit: 0,
        }
    }

    /// Something happened. Times must not decrease from call to call, departures apart.
    ///
    /// # Errors
    /// Those of what is written to.
    pub fn add(&mut self, event: LogEvent) -> io::Result<()> {
        let (time, line) = match event {
            LogEvent::Departure { time, bytes, arrived } => {
                let (ms, arrived_ms) = (time / PS_PER_MS, arrived / PS_PER_MS);
                self.departures.push_back(Departure { ms, arrived_ms, bytes });
                return Ok(());
            }
            LogEvent::Arrival { time, bytes } => (time, Some(("+", bytes))),
            LogEvent::Drop { time, bytes } => (time, Some(("d 1", bytes))),
            LogEvent::Passed { time } => (time, None),
        };
        let now_ms = time / PS_PER_MS;
        self.advance(now_ms)?;
        if let Some((kind, bytes)) = line {
            writeln!(self.text, "{now_ms} {kind} {bytes}")?;
        }
        self.hand_on(CHUNK_BYTES)
    }

    /// Hands on what has been said so far.
    ///
    /// # Errors
    /// Those of what is written to.
    pub fn flush(&mut self) -> io::Result<()> {
        self.hand_on(1)?;
        self.to.flush()
    }

    fn hand_on(&mut self, least: usize) -> io::Result<()> {
        if self.text.len() >= least {
            self.to.write_all(&self.text)?;
            self.text.clear();
        }
        Ok(())
    }

    /// Opportunities and departures up to and including `until_ms`: each opportunity before what it lets depart.
    fn advance(&mut self, until_ms: u64) -> io::Result<()> {
        loop {
            let due = self.opportunities.next_ms().filter(|ms| *ms <= until_ms);
            let before = due.unwrap_or(until_ms.saturating_add(1));
            self.depart(|departure| departure.ms < before)?;
            let Some(now_ms) = due else { return Ok(()) };
            if let Some(bytes) = self.opportunities.take() {
                writeln!(self.text, "{now_ms} # {bytes}")?;
                self.credit += bytes;
            }
            let mut credit = self.credit;
            self.depart(|departure| {
                let served = departure.ms == now_ms && u64::from(departure.bytes) <= credit;
                credit -= if served { u64::from(departure.bytes) } else { 0 };
                served
            })?;
            // What nobody was there to use is lost.
            let is_wanted = self.departures.front().is_some_and(|next| next.arrived_ms < now_ms);
            self.credit = if is_wanted { credit } else { 0 };
            self.hand_on(CHUNK_BYTES)?;
        }
    }

    /// Packets depart as long as `has_departed`.
    fn depart(&mut self, mut has_departed: impl FnMut(&Departure) -> bool) -> io::Result<()> {
        while let Some(first) = self.departures.front()
            && has_departed(first)
        {
            let Departure { ms, arrived_ms, bytes } = *first;
            writeln!(self.text, "{ms} - {bytes} {}", ms.saturating_sub(arrived_ms))?;
            self.departures.pop_front();
        }
        Ok(())
    }
}

/// `text` as part of a line, and not too long.
fn comment(text: &str) -> String {
    let line = text.chars().map(|c| if c.is_control() { ' ' } else { c });
    line.take(MAX_COMMENT_CHARS).collect()
}

/// What a link could send, and when.
enum Opportunities {
    /// Anything, at any time.
    Unlimited,
    /// As the trace says.
    Trace { trace: Arc<Trace>, once: bool, next: usize, cycle_start_ms: u64 },
    /// The bytes of a millisecond, at its end.
    Rate { link: Box<ServedLink<()>>, next_ms: u64, offered_bytes: u64 },
}

impl Opportunities {
    fn new(spec: &LinkSpec) -> Self {
        if let Capacity::Trace { trace, once } = &spec.capacity {
            return Self::Trace { trace: trace.clone(), once: *once, next: 0, cycle_start_ms: 0 };
        }
        // A rate may be the queue's.
        let queue = spec.queue.clone();
        let spec = LinkSpec { capacity: spec.capacity.clone(), queue, ..LinkSpec::default() };
        let link = Box::new(ServedLink::new(spec, 0, 0));
        match link.offered_bytes(0, PS_PER_MS) {
            Some(_) => Self::Rate { link, next_ms: 1, offered_bytes: 0 },
            None => Self::Unlimited,
        }
    }

    /// When the next opportunity is; `None` for never.
    fn next_ms(&self) -> Option<u64> {
        match self {
            Self::Unlimited => None,
            Self::Trace { trace, next, cycle_start_ms, .. } => {
                Some(cycle_start_ms + u64::from(*trace.opportunities_ms().get(*next)?))
            }
            Self::Rate { next_ms, .. } => Some(*next_ms),
        }
    }

    /// The bytes of that one, which is over then; `None` for none that could be named.
    fn take(&mut self) -> Option<u64> {
        match self {
            Self::Unlimited => None,
            Self::Trace { trace, once, next, cycle_start_ms } => {
                *next += 1;
                if *next == trace.opportunities_ms().len() && !*once {
                    *next = 0;
                    *cycle_start_ms += u64::from(trace.period_ms());
                }
                Some(u64::from(OPPORTUNITY_BYTES))
            }
            Self::Rate { link, next_ms, offered_bytes } => {
                let until = next_ms.saturating_mul(PS_PER_MS);
                let so_far = link.offered_bytes(0, until).unwrap_or(0.0) as u64;
                let bytes = so_far.saturating_sub(*offered_bytes);
                (*next_ms, *offered_bytes) = (*next_ms + 1, so_far);
                (bytes > 0).then_some(bytes)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::queue::CodelSpec;
    use crate::{Buffer, Link, QueueSpec, Verdict};

    fn header() -> LogHeader {
        LogHeader {
            link: "Uplink".into(),
            capacity: "up.trace".into(),
            file: "up.log".into(),
            command_line: "paceline link -- sh -c 'a\nb'".into(),
            start_ms: 1_700_000_000_123,
        }
    }

    /// The events, after the header, of packets that arrive at `arrivals` (ms, bytes) at a drop-tail link, and then until `end_ms`.
    fn events(spec: LinkSpec, arrivals: &[(u64, u32)], end_ms: u64) -> Vec<String> {
        let mut log = LogWriter::new(Vec::new(), &header(), &spec);
        let mut link = Link::new(spec, 1, 0);
        for &(ms, bytes) in arrivals {
            let time = ms * PS_PER_MS;
            log.add(LogEvent::Arrival { time, bytes }).unwrap();
            let event = match link.enqueue(time, bytes) {
                Verdict::Pass { departs, .. } => {
                    LogEvent::Departure { time: departs, bytes, arrived: time }
                }
                Verdict::Drop(_) => LogEvent::Drop { time, bytes },
            };
            log.add(event).unwrap();
        }
        log.add(LogEvent::Passed { time: end_ms * PS_PER_MS }).unwrap();
        log.flush().unwrap();
        let text = String::from_utf8(log.to).unwrap();
        text.lines().filter(|line| !line.starts_with('#')).map(String::from).collect()
    }

    fn trace(times: &[u32], once: bool) -> Capacity {
        Capacity::Trace { trace: Trace::from_opportunities(times.into()).unwrap().into(), once }
    }

    #[test]
    fn the_header_is_as_in_mahimahi() {
        let mut log = LogWriter::new(Vec::new(), &header(), &LinkSpec::default());
        log.flush().unwrap();
        let expected = "# mahimahi mm-link (Uplink) [up.trace] > up.log\n\
                        # command line: paceline link -- sh -c 'a b'\n\
                        # queue: infinite\n\
                        # init timestamp: 1700000000123\n\
                        # base timestamp: 0\n";
        assert_eq!(String::from_utf8(log.to).unwrap(), expected);
        let spec = LinkSpec {
            queue: QueueSpec::Codel(CodelSpec::default()),
            buffer: Buffer { packets: Some(100), bytes: Some(9000), wait_ps: None },
            ..LinkSpec::default()
        };
        let log = LogWriter::new(Vec::new(), &header(), &spec);
        let text = String::from_utf8(log.text).unwrap();
        assert!(text.contains("\n# queue: codel [bytes=9000, packets=100]\n"), "{text}");
    }

    #[test]
    fn a_trace_gives_an_opportunity_before_what_it_serves() {
        // Three packets wait for the two opportunities at 5 ms and the one at 8 ms. The fourth, small, uses what the third
        // leaves of the repetition at 8 + 5 ms, and one that comes in that millisecond nothing.
        let spec = LinkSpec { capacity: trace(&[5, 5, 8], false), ..LinkSpec::default() };
        let arrivals = [(0, 1504), (0, 1504), (2, 1500), (5, 1504), (8, 80), (13, 80)];
        let expected = [
            "0 + 1504",
            "0 + 1504",
            "2 + 1500",
            "5 # 1504",
            "5 - 1504 5",
            "5 # 1504",
            "5 - 1504 5",
            "5 + 1504",
            "8 # 1504",
            "8 - 1500 6",
            "8 + 80",
            "13 # 1504",
            // It had four bytes already.
            "13 - 1504 8",
            "13 # 1504",
            "13 - 80 5",
            "13 + 80",
            "16 # 1504",
            "16 - 80 3",
        ];
        assert_eq!(events(spec, &arrivals, 20), expected);
    }

    #[test]
    fn a_trace_that_is_over_and_a_full_buffer() {
        let spec = LinkSpec {
            capacity: trace(&[1, 3], true),
            buffer: Buffer { packets: Some(1), ..Buffer::default() },
            ..LinkSpec::default()
        };
        let expected = ["0 + 1504", "0 + 100", "0 d 1 100", "1 # 1504", "1 - 1504 1", "3 # 1504"];
        assert_eq!(events(spec, &[(0, 1504), (0, 100)], 100), expected);
    }

    #[test]
    fn a_rate_gives_the_bytes_of_each_millisecond() {
        // 12.004 Mbit/s: 1500.5 bytes in a millisecond.
        let spec = LinkSpec { capacity: Capacity::Constant(12.004e6), ..LinkSpec::default() };
        let expected =
            ["0 + 3001", "1 # 1500", "2 # 1501", "2 - 3001 2", "3 # 1500", "4 # 1501", "4 + 10"];
        assert_eq!(events(spec, &[(0, 3001), (4, 10)], 4)[..7], expected);
        let expected = ["7 + 10", "7 - 10 0"];
        assert_eq!(events(LinkSpec::default(), &[(7, 10)], 9), expected);
    }
}
