//! Delivery-opportunity traces, in the format of the mahimahi emulator.
//!
//! A file holds one non-negative integer per line: the millisecond at which one opportunity to send 1504 bytes occurs (a
//! 1500-byte IP packet and the 4-byte header of a TUN device). Equal lines are several opportunities in one millisecond.
//! The last line is also the period: there the trace starts again. Here a trace is read, checked, written
//! ([`Trace`]), described ([`TraceStats`]), made up ([`synth`]), and converted from and to rates ([`convert`]).

pub mod convert;
mod error;
mod stats;
pub mod synth;

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::path::Path;

pub use error::TraceError;
pub(crate) use error::excerpt;
pub use stats::{Percentiles, TraceStats};

/// Bytes that one opportunity serves.
pub const OPPORTUNITY_BYTES: u32 = 1504;

/// Bits that one opportunity serves.
const OPPORTUNITY_BITS: u64 = 8 * OPPORTUNITY_BYTES as u64;

/// The most opportunities a trace may hold: 20 minutes at 1 Gbit/s, 400 MB of memory.
pub const MAX_OPPORTUNITIES: usize = 100_000_000;

/// A trace: the milliseconds at which one opportunity of 1504 bytes occurs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Trace {
    /// Non-decreasing, at least one, last one > 0.
    opportunities_ms: Vec<u32>,
}

impl Trace {
    /// Reads the trace in `text`; `name` is what errors call it.
    ///
    /// Lines end in LF or CR LF; the last one may lack it.
    ///
    /// # Errors
    /// The first line that is empty, not a number, above 2^32 - 1 ms, or smaller than the one before it; an empty trace; a
    /// trace that ends at 0; more than [`MAX_OPPORTUNITIES`] lines.
    pub fn parse(text: &[u8], name: &str) -> Result<Self, TraceError> {
        Self::read(text, name)
    }

    /// Reads the trace file at `path`.
    ///
    /// # Errors
    /// A file that cannot be read, and those of [`Trace::parse`].
    pub fn load(path: impl AsRef<Path>) -> Result<Self, TraceError> {
        let path = path.as_ref();
        let name = path.display().to_string();
        let file = File::open(path).map_err(|error| TraceError::unreadable(&name, &error))?;
        Self::read(BufReader::with_capacity(1 << 16, file), &name)
    }

    /// A trace of the given opportunities, ms.
    ///
    /// # Errors
    /// As [`Trace::parse`], where a line is the position in the list, from 1.
    pub fn from_opportunities(opportunities_ms: Vec<u32>) -> Result<Self, TraceError> {
        let name = || "trace".to_owned();
        if opportunities_ms.len() > MAX_OPPORTUNITIES {
            return Err(TraceError::TooLong { name: name() });
        }
        if let Some(at) = opportunities_ms.windows(2).position(|pair| pair[1] < pair[0]) {
            return Err(TraceError::Decreasing {
                name: name(),
                line: at + 2,
                value: opportunities_ms[at + 1],
                previous: opportunities_ms[at],
            });
        }
        match opportunities_ms.last() {
            None => Err(TraceError::Empty { name: name() }),
            Some(0) => Err(TraceError::NoDuration { name: name(), line: opportunities_ms.len() }),
            Some(_) => Ok(Self { opportunities_ms }),
        }
    }

    /// Writes the trace, one line per opportunity.
    ///
    /// # Errors
    /// Those of `to`.
    pub fn write(&self, to: &mut impl Write) -> io::Result<()> {
        // Chunks, so that an unbuffered file does not pay for every line.
        let mut chunk = Vec::with_capacity(1 << 16);
        for ms in &self.opportunities_ms {
            writeln!(chunk, "{ms}")?;
            if chunk.len() > (1 << 16) - 16 {
                to.write_all(&chunk)?;
                chunk.clear();
            }
        }
        to.write_all(&chunk)
    }

    /// When the opportunities occur, ms, non-decreasing.
    #[inline]
    pub fn opportunities_ms(&self) -> &[u32] {
        &self.opportunities_ms
    }

    /// After how many ms the trace starts again: the time of the last opportunity.
    #[inline]
    pub fn period_ms(&self) -> u32 {
        // There is a last one by construction.
        self.opportunities_ms.last().copied().unwrap_or(1)
    }

    /// Mean capacity of the repeated trace, bit/s.
    pub fn mean_bps(&self) -> f64 {
        let bits = self.opportunities_ms.len() as u64 * OPPORTUNITY_BITS;
        bits as f64 * 1000.0 / f64::from(self.period_ms())
    }

    /// What the trace is like.
    pub fn stats(&self) -> TraceStats {
        TraceStats::new(self)
    }

    fn read(mut from: impl BufRead, name: &str) -> Result<Self, TraceError> {
        /// No number allowed here is longer, with room for leading zeros; a longer line is not read to its end.
        const MAX_LINE: u64 = 64;

        let mut opportunities_ms: Vec<u32> = Vec::new();
        let mut line = Vec::new();
        let mut previous = 0;
        loop {
            line.clear();
            let read = from.by_ref().take(MAX_LINE).read_until(b'\n', &mut line);
            if read.map_err(|error| TraceError::unreadable(name, &error))? == 0 {
                break;
            }
            let number = opportunities_ms.len() + 1;
            if number > MAX_OPPORTUNITIES {
                return Err(TraceError::TooLong { name: name.to_owned() });
            }
            let value = parse_line(&line, name, number)?;
            if value < previous {
                let name = name.to_owned();
                return Err(TraceError::Decreasing { name, line: number, value, previous });
            }
            opportunities_ms.push(value);
            previous = value;
        }
        match previous {
            _ if opportunities_ms.is_empty() => Err(TraceError::Empty { name: name.to_owned() }),
            0 => {
                Err(TraceError::NoDuration { name: name.to_owned(), line: opportunities_ms.len() })
            }
            _ => Ok(Self { opportunities_ms }),
        }
    }
}

/// The number on one line.
fn parse_line(line: &[u8], name: &str, number: usize) -> Result<u32, TraceError> {
    let digits = line.strip_suffix(b"\n").unwrap_or(line);
    let digits = digits.strip_suffix(b"\r").unwrap_or(digits);
    if digits.is_empty() {
        return Err(TraceError::BlankLine { name: name.to_owned(), line: number });
    }
    let mut value = 0u64;
    for &byte in digits {
        if !byte.is_ascii_digit() {
            return Err(TraceError::not_a_time(name, number, digits));
        }
        value = value.saturating_mul(10).saturating_add(u64::from(byte - b'0'));
    }
    u32::try_from(value).map_err(|_| TraceError::not_a_time(name, number, digits))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn error(text: &[u8]) -> String {
        Trace::parse(text, "x.down").expect_err("refused").to_string()
    }

    #[test]
    fn reads_what_it_writes() {
        let trace = Trace::from_opportunities((0..50_000).map(|k| k / 3).collect()).unwrap();
        let mut text = Vec::new();
        trace.write(&mut text).unwrap();
        assert_eq!(Trace::parse(&text, "t").unwrap(), trace);
        assert_eq!(&text[..8], b"0\n0\n0\n1\n");
    }

    #[test]
    fn line_ends() {
        let expected = Trace::from_opportunities(vec![0, 3, 10]).unwrap();
        for text in ["0\n3\n10\n", "0\n3\n10", "0\r\n3\r\n10\r\n", "0\r\n3\r\n10\r", "000\n03\n10"]
        {
            assert_eq!(Trace::parse(text.as_bytes(), "t").unwrap(), expected);
        }
        assert_eq!(expected.period_ms(), 10);
        assert_eq!(expected.opportunities_ms(), [0, 3, 10]);
    }

    #[test]
    fn errors_name_file_line_value_and_range() {
        let range = "a whole number of ms from 0 to 4294967295";
        assert_eq!(error(b""), "x.down: no opportunities; at least one line is needed");
        assert_eq!(error(b"1\n\n2\n"), format!("x.down:2: the line is empty; {range} is needed"));
        assert_eq!(error(b"\n"), format!("x.down:1: the line is empty; {range} is needed"));
        assert_eq!(error(b"1\n2\n\n"), format!("x.down:3: the line is empty; {range} is needed"));
        assert_eq!(error(b"1\n2.5\n"), format!("x.down:2: `2.5` is not {range}"));
        for bad in ["-1", " 1", "1 ", "+1", "1e3", "0x1", "4294967296", "99999999999999999999999"] {
            assert_eq!(error(bad.as_bytes()), format!("x.down:1: `{bad}` is not {range}"));
        }
        assert_eq!(error(b"\xff\x00\n"), format!("x.down:1: `\\xff\\x00` is not {range}"));
        assert_eq!(
            error(b"5\n4\n"),
            "x.down:2: 4 ms comes after 5 ms; the times must not decrease"
        );
        assert_eq!(
            error(b"0\n0\n"),
            "x.down:2: the last time is 0 ms; it is the period and must be at least 1 ms"
        );
    }

    #[test]
    fn long_lines_are_cut_short() {
        let text = vec![b'7'; 1 << 20];
        let message = error(&text);
        assert!(message.len() < 150, "{message}");
        assert!(message.contains("…"), "{message}");
        // Leading zeros are harmless, as long as the line is.
        let line = format!("{}5\n", "0".repeat(62));
        assert_eq!(Trace::parse(line.as_bytes(), "t").unwrap().period_ms(), 5);
    }

    #[test]
    fn opportunities_are_checked_alike() {
        assert!(matches!(Trace::from_opportunities(vec![]), Err(TraceError::Empty { .. })));
        assert!(matches!(
            Trace::from_opportunities(vec![0]),
            Err(TraceError::NoDuration { line: 1, .. })
        ));
        assert!(matches!(
            Trace::from_opportunities(vec![1, 3, 2, 4]),
            Err(TraceError::Decreasing { line: 3, value: 2, previous: 3, .. })
        ));
    }

    #[test]
    fn unreadable_files_are_named() {
        let message = Trace::load("/nonexistent/x.down").expect_err("absent").to_string();
        assert!(message.starts_with("/nonexistent/x.down: cannot be read: "), "{message}");
        assert!(Trace::load("/").is_err());
    }

    #[test]
    fn mean_rate() {
        // mahimahi's example: a file that holds just `1`.
        assert_eq!(Trace::from_opportunities(vec![1]).unwrap().mean_bps(), 12_032_000.0);
    }
}
