//! What a log says of a link.

use std::collections::BTreeMap;
use std::io::{self, BufRead, Read};

/// A log in numbers, as mahimahi's own scripts work them out.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LogStats {
    /// From the first event to the last, s.
    pub duration_s: f64,
    /// Packets that arrived.
    pub arrived_packets: u64,
    /// Packets that left the link.
    pub delivered_packets: u64,
    /// Packets dropped.
    pub dropped_packets: u64,
    /// Mean of what the link could have sent, bit/s; `None` if the log does not say, or nothing lasted.
    pub capacity_bps: Option<f64>,
    /// Mean of what it sent, bit/s.
    pub throughput_bps: Option<f64>,
    /// 95th percentile of the time from arriving to leaving, ms.
    pub queue_p95_ms: Option<u64>,
    /// 95th percentile over all ms of the least time in which something that was sent then could have passed, ms.
    pub signal_delay_p95_ms: Option<u64>,
}

/// A log that cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LogError {
    /// It cannot be read.
    #[error("{name}: cannot be read: {reason}")]
    Unreadable {
        /// File.
        name: String,
        /// What the system says.
        reason: String,
    },
    /// A line that is no event.
    #[error("{name}:{line}: {what}")]
    Line {
        /// File.
        name: String,
        /// Line, from 1.
        line: usize,
        /// What is wrong with it.
        what: String,
    },
    /// No event.
    #[error("{name}: no events; a log of a link has lines such as `12 - 1504 3`")]
    Empty {
        /// File.
        name: String,
    },
}

/// Longest line, bytes.
const MAX_LINE: u64 = 1 << 16;
/// Largest number: sums of times keep in range.
const MAX_NUMBER: u64 = 1 << 40;

const BASE: &[u8] = b"# base timestamp: ";

impl LogStats {
    /// Reads the log `name`.
    ///
    /// # Errors
    /// What is no log, with the line.
    pub fn read(mut from: impl BufRead, name: &str) -> Result<Self, LogError> {
        let mut sums = Sums::default();
        let mut line = Vec::new();
        let unreadable = |error: io::Error| LogError::Unreadable {
            name: name.to_owned(),
            reason: error.to_string(),
        };
        for number in 1.. {
            line.clear();
            if from.by_ref().take(MAX_LINE).read_until(b'\n', &mut line).map_err(unreadable)? == 0 {
                break;
            }
            let text = line.strip_suffix(b"\n").unwrap_or(&line);
            sums.add_line(text).map_err(|what| LogError::Line {
                name: name.to_owned(),
                line: number,
                what,
            })?;
        }
        sums.finish().ok_or_else(|| LogError::Empty { name: name.to_owned() })
    }
}

#[derive(Default)]
struct Sums {
    base_ms: Option<u64>,
    /// First and last event, ms.
    span: Option<(u64, u64)>,
    arrived: u64,
    delivered: u64,
    dropped: u64,
    offered_bytes: Option<u64>,
    delivered_bytes: u64,
    delays: Vec<u64>,
    /// By ms of arrival: the least delay of what was delivered.
    least: BTreeMap<u64, u64>,
}

impl Sums {
    fn add_line(&mut self, line: &[u8]) -> Result<(), String> {
        if let Some(base) = line.strip_prefix(BASE) {
            if self.base_ms.replace(number(base)?).is_some() {
                return Err("a second base timestamp".into());
            }
            return Ok(());
        }
        if line.starts_with(b"#") {
            return Ok(());
        }
        let base = self.base_ms.ok_or("an event before the line `# base timestamp: …`")?;
        let words: Vec<_> = line.split(u8::is_ascii_whitespace).collect();
        let needs = |what: &str| Err(format!("{what} is needed, not `{}`", excerpt(line)));
        let [time, kind, numbers @ ..] = &words[..] else {
            return needs("a time and what happened");
        };
        let time = number(time)?;
        let since = |time: u64| {
            time.checked_sub(base)
                .ok_or(format!("{time} ms is before the base timestamp, {base} ms"))
        };
        match (*kind, numbers) {
            (b"+", [bytes]) => {
                number(bytes)?;
                self.arrived += 1;
            }
            (b"#", [bytes]) => {
                let offered = self.offered_bytes.get_or_insert(0);
                *offered = offered.saturating_add(number(bytes)?);
            }
            (b"-", [bytes, delay]) => {
                let (bytes, delay) = (number(bytes)?, number(delay)?);
                let arrived = since(time)?.checked_sub(delay);
                let arrived =
                    arrived.ok_or(format!("a delay of {delay} ms is longer than the log"))?;
                self.delivered += 1;
                self.delivered_bytes = self.delivered_bytes.saturating_add(bytes);
                self.delays.push(delay);
                let least = self.least.entry(arrived).or_insert(delay);
                *least = delay.min(*least);
            }
            (b"d", [packets, bytes]) => {
                number(bytes)?;
                self.dropped = self.dropped.saturating_add(number(packets)?);
            }
            _ => return needs("`+ bytes`, `# bytes`, `- bytes delay` or `d packets bytes`"),
        }
        let time = since(time)?;
        let (first, last) = self.span.get_or_insert((time, time));
        (*first, *last) = ((*first).min(time), time.max(*last));
        Ok(())
    }

    fn finish(mut self) -> Option<LogStats> {
        let (first, last) = self.span?;
        let duration_s = (last - first) as f64 / 1e3;
        let bps = |bytes: u64| (duration_s > 0.0).then(|| bytes as f64 * 8.0 / duration_s);
        let rank = self.delays.len() * 95 / 100;
        let queue_p95_ms =
            (!self.delays.is_empty()).then(|| *self.delays.select_nth_unstable(rank).1);
        Some(LogStats {
            duration_s,
            arrived_packets: self.arrived,
            delivered_packets: self.delivered,
            dropped_packets: self.dropped,
            capacity_bps: self.offered_bytes.and_then(bps),
            throughput_bps: bps(self.delivered_bytes),
            queue_p95_ms,
            signal_delay_p95_ms: signal_delay_p95_ms(&self.least),
        })
    }
}

impl LogStats {
    /// Throughput over capacity.
    pub fn utilization(&self) -> Option<f64> {
        let capacity = self.capacity_bps.filter(|bps| *bps > 0.0)?;
        Some(self.throughput_bps? / capacity)
    }

    /// Throughput in Mbit/s over the 95th percentile of the signal delay in s.
    pub fn power_score(&self) -> Option<f64> {
        let delay_ms = self.signal_delay_p95_ms.filter(|ms| *ms > 0)?;
        Some(self.throughput_bps? / 1e6 / (delay_ms as f64 / 1e3))
    }
}

/// Every ms has a value: that in which something arrived the least delay, one in which nothing did one more than the ms after
/// it. So an arrival stands for a range of values, from its own delay up, as long as the silence before it.
fn signal_delay_p95_ms(least: &BTreeMap<u64, u64>) -> Option<u64> {
    let (first, last) = (*least.first_key_value()?.0, *least.last_key_value()?.0);
    let mut previous = first.checked_sub(1);
    // Where ranges begin and end: how many more values there are from here on.
    let mut changes = BTreeMap::new();
    for (&ms, &delay) in least {
        let count = previous.map_or(1, |previous| ms - previous);
        *changes.entry(delay).or_insert(0i64) += 1;
        *changes.entry(delay + count).or_insert(0i64) -= 1;
        previous = Some(ms);
    }
    let rank = u128::from(last - first + 1) * 95 / 100;
    let (mut seen, mut from, mut height) = (0u128, 0, 0i64);
    for (value, change) in changes {
        let passed = u128::from(value - from) * height as u128;
        if seen + passed > rank {
            return Some(from + ((rank - seen) / height as u128) as u64);
        }
        (seen, from, height) = (seen + passed, value, height + change);
    }
    None
}

fn number(text: &[u8]) -> Result<u64, String> {
    let digits = !text.is_empty() && text.iter().all(u8::is_ascii_digit);
    let value = std::str::from_utf8(text).ok().and_then(|text| text.parse().ok());
    value
        .filter(|value| digits && *value <= MAX_NUMBER)
        .ok_or_else(|| format!("`{}` is not a whole number up to {MAX_NUMBER}", excerpt(text)))
}

fn excerpt(text: &[u8]) -> String {
    crate::trace::excerpt(text)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn read(text: &str) -> Result<LogStats, String> {
        LogStats::read(text.as_bytes(), "x.log").map_err(|error| error.to_string())
    }

    #[test]
    fn by_hand() {
        // 10 ms; 5 opportunities: 7520 bytes, 6.016 Mbit/s. 3 packets delivered, 3088 bytes: 2.4704 Mbit/s.
        let text = "# mahimahi mm-link (Uplink) [x] > y\n# base timestamp: 1000\n\
            1002 + 1504\n1003 # 1504\n1003 - 1504 1\n1004 + 80\n1004 + 1504\n1005 d 1 1504\n1006 # 1504\n\
            1006 - 80 2\n1008 # 1504\n1010 # 1504\n1011 + 1504\n1012 # 1504\n1012 - 1504 1\n";
        let stats = read(text).unwrap();
        assert_eq!(stats.duration_s, 0.01);
        let packets = (stats.arrived_packets, stats.delivered_packets, stats.dropped_packets);
        assert_eq!(packets, (4, 3, 1));
        let near = |found: Option<f64>, expected: f64| {
            let found = found.unwrap();
            assert!((found / expected - 1.0).abs() < 1e-12, "{found} {expected}");
        };
        near(stats.capacity_bps, 6_016_000.0);
        near(stats.throughput_bps, 2_470_400.0);
        near(stats.utilization(), 3088.0 / 7520.0);
        // Delays 1, 1, 2: the element 2 of 0 to 2.
        assert_eq!(stats.queue_p95_ms, Some(2));
        // Sent at 2 (1 ms), 4 (2 ms), 11 (1 ms). At 3: 3; at 10, 9, … 5: 2, 3, … 7. Sorted: 1 1 2 2 3 3 4 5 6 7; the element 9.
        assert_eq!(stats.signal_delay_p95_ms, Some(7));
        near(stats.power_score(), 2.4704 / 0.007);
    }

    #[test]
    fn what_is_not_there_is_not_made_up() {
        let stats = read("# base timestamp: 0\n5 + 100\n").unwrap();
        assert_eq!((stats.capacity_bps, stats.throughput_bps), (None, None));
        assert_eq!((stats.queue_p95_ms, stats.signal_delay_p95_ms), (None, None));
        assert_eq!((stats.utilization(), stats.power_score()), (None, None));
    }

    #[test]
    fn errors_name_file_and_line() {
        let error = |text: &str| read(text).unwrap_err();
        assert_eq!(
            error("# a\n"),
            "x.log: no events; a log of a link has lines such as `12 - 1504 3`"
        );
        assert_eq!(
            error("# a\n5 + 1\n"),
            "x.log:2: an event before the line `# base timestamp: …`"
        );
        let error = |line: &str| error(&format!("# base timestamp: 7\n{line}\n"));
        assert_eq!(error("6 + 1"), "x.log:2: 6 ms is before the base timestamp, 7 ms");
        assert_eq!(error("9 - 1 3"), "x.log:2: a delay of 3 ms is longer than the log");
        let kinds = "`+ bytes`, `# bytes`, `- bytes delay` or `d packets bytes` is needed";
        assert_eq!(error("9 - 1"), format!("x.log:2: {kinds}, not `9 - 1`"));
        assert_eq!(error("9 x 1"), format!("x.log:2: {kinds}, not `9 x 1`"));
        assert_eq!(error("9 + -1"), "x.log:2: `-1` is not a whole number up to 1099511627776");
        assert_eq!(error(""), "x.log:2: a time and what happened is needed, not ``");
        assert_eq!(error("# base timestamp: 8"), "x.log:2: a second base timestamp");
    }

    proptest! {
        #[test]
        fn the_signal_delay_is_that_of_every_millisecond_by_itself(
            sendings in prop::collection::btree_map(0u64..300, 0u64..50, 1..40)
        ) {
            let last = *sendings.last_key_value().unwrap().0;
            let first = *sendings.first_key_value().unwrap().0;
            let mut values = Vec::new();
            for ms in (first..=last).rev() {
                let value = sendings.get(&ms).copied();
                values.push(value.unwrap_or_else(|| values.last().unwrap() + 1));
            }
            values.sort_unstable();
            prop_assert_eq!(signal_delay_p95_ms(&sendings), Some(values[values.len() * 95 / 100]));
        }

        #[test]
        fn no_input_panics(text in "(# base timestamp: [0-9]{1,13}\n)?([0-9]{1,13} [-+#d] [0-9]{1,13}( [0-9]{1,13})?\n){0,9}") {
            let _ = LogStats::read(text.as_bytes(), "x");
        }
    }
}
