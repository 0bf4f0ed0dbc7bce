//! What may be wrong with a trace or with rates to be made into one.

use std::io;

use super::MAX_OPPORTUNITIES;
use crate::delay_trace::DELAY_LINE;

const TIME: &str = "a whole number of ms from 0 to 4294967295";

/// A trace, of opportunities or of delays, that cannot be used. `name` is the file, or what the caller called the text; lines count from 1.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TraceError {
    /// The file cannot be read.
    #[error("{name}: cannot be read: {reason}")]
    Unreadable {
        /// File.
        name: String,
        /// What the system says.
        reason: String,
    },
    /// No line at all.
    #[error("{name}: no opportunities; at least one line is needed")]
    Empty {
        /// File.
        name: String,
    },
    /// An empty line.
    #[error("{name}:{line}: the line is empty; {TIME} is needed")]
    BlankLine {
        /// File.
        name: String,
        /// Line.
        line: usize,
    },
    /// A line that is not a time.
    #[error("{name}:{line}: `{text}` is not {TIME}")]
    NotATime {
        /// File.
        name: String,
        /// Line.
        line: usize,
        /// What it says, cut short and escaped.
        text: String,
    },
    /// A time before its predecessor.
    #[error("{name}:{line}: {value} ms comes after {previous} ms; the times must not decrease")]
    Decreasing {
        /// File.
        name: String,
        /// Line.
        line: usize,
        /// Its time, ms.
        value: u32,
        /// Time on the line before, ms.
        previous: u32,
    },
    /// The last time, which is the period, is 0.
    #[error("{name}:{line}: the last time is 0 ms; it is the period and must be at least 1 ms")]
    NoDuration {
        /// File.
        name: String,
        /// Line.
        line: usize,
    },
    /// Too many opportunities.
    #[error("{name}: more than {MAX_OPPORTUNITIES} opportunities, the most a trace may hold")]
    TooLong {
        /// File.
        name: String,
    },
    /// A line that is not a time and a delay.
    #[error("{name}:{line}: `{text}` is not {DELAY_LINE}")]
    NotADelay {
        /// File.
        name: String,
        /// Line.
        line: usize,
        /// What it says, cut short and escaped.
        text: String,
    },
    /// No line of delays.
    #[error("{name}: no line; at least `0 DELAY` is needed")]
    NoDelay {
        /// File.
        name: String,
    },
    /// Delays that do not begin at 0.
    #[error("{name}:1: the first time must be 0: from the start on there is a delay")]
    LateStart {
        /// File.
        name: String,
    },
    /// The time of a delay is not after that of the one before.
    #[error("{name}:{line}: the time must be after that of the line before")]
    NotAfter {
        /// File.
        name: String,
        /// Line.
        line: usize,
    },
    /// Too many delays.
    #[error("{name}: more than {most} lines, the most that delays may have")]
    TooManyDelays {
        /// File.
        name: String,
        /// How many are allowed.
        most: usize,
    },
}

impl TraceError {
    pub(crate) fn unreadable(name: &str, error: &io::Error) -> Self {
        Self::Unreadable { name: name.to_owned(), reason: error.to_string() }
    }

    pub(crate) fn not_a_delay(name: &str, line: usize, text: &[u8]) -> Self {
        let text = text.trim_ascii_end();
        Self::NotADelay { name: name.to_owned(), line, text: excerpt(text) }
    }

    pub(crate) fn not_a_time(name: &str, line: usize, text: &[u8]) -> Self {
        Self::NotATime { name: name.to_owned(), line, text: excerpt(text) }
    }
}

/// `text` made fit for an error message: printable, and not long.
pub(crate) fn excerpt(text: &[u8]) -> String {
    const LONGEST: usize = 40;
    match text.get(..LONGEST) {
        Some(start) if text.len() > LONGEST => format!("{}…", start.escape_ascii()),
        _ => text.escape_ascii().to_string(),
    }
}
