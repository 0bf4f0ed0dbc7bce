//! A propagation delay that changes over time.
//!
//! A file holds a line per change: the time and the one-way delay from then on, both in milliseconds, with a point and up to
//! nine decimals where needed (`1500 42.75`). The first time is 0, later ones ascend; the last delay holds for good.

use std::fs::File;
use std::io::{BufRead, BufReader, Read};
use std::path::Path;

use crate::trace::TraceError;
use crate::{PS_PER_MS, PS_PER_S, Picos};

/// The latest time and the longest delay that a line may have, ps.
const MAX_TIME: Picos = 30 * 86_400 * PS_PER_S;
const MAX_DELAY: Picos = 1000 * PS_PER_S;
/// The most changes a delay may have: one per ms over nearly three hours, 160 MB of memory.
const MAX_CHANGES: usize = 10_000_000;
/// What a line is.
pub(crate) const DELAY_LINE: &str =
    "a time and a delay in ms, such as `1500 42.75`, up to 2592000000 and 1000000";

/// How long propagation takes at what time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DelayTrace {
    /// From when on, and how much longer than the least delay, ps. The first is from 0; times ascend.
    changes: Vec<(Picos, Picos)>,
    least_ps: Picos,
}

impl DelayTrace {
    /// Reads the delays in `text`; `name` is what errors call it.
    ///
    /// # Errors
    /// The first line that is not a time and a delay in their ranges (30 days, 1000 s); a first time that is not 0; one that is
    /// not after the one before; no line; more than ten million lines.
    pub fn parse(text: &[u8], name: &str) -> Result<Self, TraceError> {
        Self::read(text, name)
    }

    /// Reads the file at `path`.
    ///
    /// # Errors
    /// A file that cannot be read, and those of [`DelayTrace::parse`].
    pub fn load(path: impl AsRef<Path>) -> Result<Self, TraceError> {
        let path = path.as_ref();
        let name = path.display().to_string();
        let file = File::open(path).map_err(|error| TraceError::unreadable(&name, &error))?;
        Self::read(BufReader::with_capacity(1 << 16, file), &name)
    }

    fn read(mut from: impl BufRead, name: &str) -> Result<Self, TraceError> {
        /// Two numbers of the longest kind, with room for leading zeros; a longer line is not read to its end.
        const MAX_LINE: u64 = 128;

        let mut changes: Vec<(Picos, Picos)> = Vec::new();
        let mut text = Vec::new();
        loop {
            text.clear();
            let read = from.by_ref().take(MAX_LINE).read_until(b'\n', &mut text);
            if read.map_err(|error| TraceError::unreadable(name, &error))? == 0 {
                break;
            }
            let line = changes.len() + 1;
            if line > MAX_CHANGES {
                return Err(TraceError::TooManyDelays { name: name.into(), most: MAX_CHANGES });
            }
            let Some(change) = parse_line(&text) else {
                return Err(TraceError::not_a_delay(name, line, &text));
            };
            match changes.last() {
                None if change.0 != 0 => return Err(TraceError::LateStart { name: name.into() }),
                Some(before) if change.0 <= before.0 => {
                    return Err(TraceError::NotAfter { name: name.into(), line });
                }
                _ => changes.push(change),
            }
        }
        let least = changes.iter().map(|(_, delay)| *delay).min();
        let least_ps = least.ok_or_else(|| TraceError::NoDelay { name: name.into() })?;
        changes.iter_mut().for_each(|(_, delay)| *delay -= least_ps);
        Ok(Self { changes, least_ps })
    }

    /// The least of the delays, ps.
    pub fn least_ps(&self) -> Picos {
        self.least_ps
    }

    /// How much longer than the least the delay is at `time`, ps. `at` is the change that held last, 0 at first; times do not
    /// decrease from call to call.
    #[inline]
    pub(crate) fn above_least(&self, time: Picos, at: &mut usize) -> Picos {
        while self.changes.get(*at + 1).is_some_and(|next| next.0 <= time) {
            *at += 1;
        }
        self.changes[*at].1
    }
}

/// The time and the delay of a line, ps.
fn parse_line(text: &[u8]) -> Option<(Picos, Picos)> {
    let text = std::str::from_utf8(text).ok()?;
    let mut words = text.split_ascii_whitespace();
    let (time, delay) = (picos(words.next()?)?, picos(words.next()?)?);
    (words.next().is_none() && time <= MAX_TIME && delay <= MAX_DELAY).then_some((time, delay))
}

/// A decimal number of ms in ps, exactly.
fn picos(text: &str) -> Option<Picos> {
    let (whole, decimals) = text.split_once('.').unwrap_or((text, "0"));
    let is_number = |digits: &str| !digits.is_empty() && digits.bytes().all(|b| b.is_ascii_digit());
    if !is_number(whole) || !is_number(decimals) || decimals.len() > 9 {
        return None;
    }
    let whole: Picos = whole.parse().ok()?;
    let decimals: Picos = format!("{decimals:0<9}").parse().ok()?;
    whole.checked_mul(PS_PER_MS)?.checked_add(decimals)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn error(text: &str) -> String {
        DelayTrace::parse(text.as_bytes(), "a.delay").expect_err("refused").to_string()
    }

    #[test]
    fn each_delay_holds_until_the_next_and_the_last_for_good() {
        let trace = DelayTrace::parse(b"0 20\n100\t35.5\r\n250.25 10.000000001", "t").unwrap();
        assert_eq!(trace.least_ps(), 10 * PS_PER_MS + 1);
        let mut at = 0;
        let quarter = PS_PER_MS / 4;
        for (time, delay) in [
            (0, 20 * PS_PER_MS),
            (100 * PS_PER_MS - 1, 20 * PS_PER_MS),
            (100 * PS_PER_MS, 35 * PS_PER_MS + PS_PER_MS / 2),
            (250 * PS_PER_MS + quarter - 1, 35 * PS_PER_MS + PS_PER_MS / 2),
            (250 * PS_PER_MS + quarter, 10 * PS_PER_MS + 1),
            (Picos::MAX, 10 * PS_PER_MS + 1),
        ] {
            assert_eq!(trace.least_ps() + trace.above_least(time, &mut at), delay, "{time}");
        }
    }

    #[test]
    fn errors_name_file_line_and_range() {
        assert_eq!(error(""), "a.delay: no line; at least `0 DELAY` is needed");
        assert_eq!(
            error("5 20\n"),
            "a.delay:1: the first time must be 0: from the start on there is a delay"
        );
        assert_eq!(
            error("0 20\n10 30\n10 40\n"),
            "a.delay:3: the time must be after that of the line before"
        );
        for bad in [
            "x",
            "",
            "10",
            "10 20 30",
            "10 -1",
            "10 1e3",
            "10 .5",
            "10 5.",
            "10 1.0123456789",
            "10 1000000.1",
        ] {
            let expected = format!("a.delay:2: `{bad}` is not {DELAY_LINE}");
            assert_eq!(error(&format!("0 20\n{bad}\n20 20")), expected);
        }
        assert!(error("0 20\n2592000001 20").starts_with("a.delay:2: `2592000001 20` is not"));
        let long = format!("0 {}", "9".repeat(500));
        assert!(error(&long).len() < 250, "cut short");
    }
}
