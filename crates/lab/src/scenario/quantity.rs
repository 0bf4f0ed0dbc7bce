//! Numbers with units, and the other small grammars of values: each turns a [`Node`] into plain numbers or a [`Fault`].

use paceline_net::{PS_PER_MS, PS_PER_NS, PS_PER_S, PS_PER_US, Picos};

use super::error::{Fault, suggest};
use super::keys::Kind;
use super::tree::{Node, Value};

/// A unit and its size in the dimension's base unit.
pub(crate) type Unit = (&'static str, f64);

/// Time, in ps.
pub(crate) static TIME: [Unit; 6] = [
    ("ns", PS_PER_NS as f64),
    ("us", PS_PER_US as f64),
    ("µs", PS_PER_US as f64),
    ("ms", PS_PER_MS as f64),
    ("s", PS_PER_S as f64),
    ("min", 60.0 * PS_PER_S as f64),
];
/// Rates, in bit/s.
pub(crate) static RATE: [Unit; 5] =
    [("bit/s", 1.0), ("kbit/s", 1e3), ("Mbit/s", 1e6), ("Gbit/s", 1e9), ("Tbit/s", 1e12)];
/// Sizes, in bytes.
pub(crate) static BYTES: [Unit; 7] = [
    ("B", 1.0),
    ("kB", 1e3),
    ("KiB", 1024.0),
    ("MB", 1e6),
    ("MiB", 1_048_576.0),
    ("GB", 1e9),
    ("GiB", 1_073_741_824.0),
];
/// Counts of packets.
pub(crate) static PACKETS: [Unit; 2] = [("packets", 1.0), ("packet", 1.0)];
/// Multiples of the bandwidth-delay product.
pub(crate) static BDP: [Unit; 1] = [("BDP", 1.0)];
/// Shares, as fractions.
pub(crate) static SHARE: [Unit; 1] = [("%", 0.01)];
/// Shares of the base RTT, as fractions.
pub(crate) static RTT_SHARE: [Unit; 1] = [("% rtt", 0.01)];

/// How much may wait at a link.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum BufferSize {
    /// No limit.
    Unlimited,
    /// Multiples of rate × base RTT.
    Bdp(f64),
    /// Packets.
    Packets(u64),
    /// Bytes.
    Bytes(u64),
    /// Longest wait before service, ps.
    Wait(Picos),
}

/// An amount of delay.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Delay {
    Time(Picos),
    /// Fraction of the base RTT.
    OfRtt(f64),
}

/// Splits "12.5 ms" into its number and its unit (which may be empty); `None` where no number begins the text.
fn split(text: &str) -> Option<(f64, &str)> {
    let text = text.trim();
    let bytes = text.as_bytes();
    let digits = |from: usize| bytes[from..].iter().take_while(|b| b.is_ascii_digit()).count();
    let sign = usize::from(matches!(bytes.first(), Some(b'+' | b'-')));
    let mut end = sign + digits(sign);
    let mut figures = end - sign;
    if bytes.get(end) == Some(&b'.') {
        let more = digits(end + 1);
        figures += more;
        end += 1 + more;
    }
    if figures == 0 {
        return None;
    }
    // An `e` is an exponent only when digits follow.
    if matches!(bytes.get(end), Some(b'e' | b'E')) {
        let sign = usize::from(matches!(bytes.get(end + 1), Some(b'+' | b'-')));
        match digits((end + 1 + sign).min(bytes.len())) {
            0 => {}
            more => end += 1 + sign + more,
        }
    }
    Some((text[..end].parse().ok()?, text[end..].trim()))
}

/// Number and unit of a text value, in the base unit.
fn measure(
    node: &Node,
    noun: &str,
    units: &'static [Unit],
    kind: &Kind,
) -> Result<(f64, Unit), Fault> {
    let allowed = || format!("allowed: {}", kind.allowed());
    let text = match &node.value {
        Value::Text(text) => text,
        Value::Whole(_) | Value::Real(_) => {
            return Err(Fault::new(format!("{noun} needs a unit"), allowed()));
        }
        _ => return Err(Fault::new(format!("expected {noun}, found {}", node.what()), allowed())),
    };
    let Some((number, unit)) = split(text) else {
        return Err(Fault::new(format!("not {noun}"), allowed()));
    };
    if unit.is_empty() {
        return Err(Fault::new(format!("{noun} needs a unit"), allowed()));
    }
    match units.iter().find(|(name, _)| *name == unit) {
        Some(found) => Ok((number * found.1, *found)),
        None => {
            let hint = suggest(unit, units.iter().map(|(name, _)| *name));
            let hint = if hint.starts_with("did") { hint } else { allowed() };
            Err(Fault::new(format!("unknown unit \"{}\"", shorten(unit)), hint))
        }
    }
}

fn shorten(text: &str) -> String {
    let plain = |c: char| if c.is_control() { ' ' } else { c };
    text.chars().take(20).map(plain).collect()
}

pub(crate) fn out_of_range(kind: &Kind) -> Fault {
    Fault::new("out of range", format!("allowed: {}", kind.allowed()))
}

fn within(value: f64, min: f64, max: f64, kind: &Kind) -> Result<f64, Fault> {
    // Infinity ("1e999 s") fails here too.
    if (min..=max).contains(&value) { Ok(value) } else { Err(out_of_range(kind)) }
}

fn whole(value: f64, kind: &Kind) -> Result<u64, Fault> {
    if value.fract() == 0.0 {
        return Ok(value as u64);
    }
    Err(Fault::new("not a whole number", format!("allowed: {}", kind.allowed())))
}

fn is_word(node: &Node, word: &str) -> bool {
    matches!(&node.value, Value::Text(text) if text.trim() == word)
}

/// A duration, ps.
pub(crate) fn time(node: &Node, min: Picos, max: Picos, kind: &Kind) -> Result<Picos, Fault> {
    let (ps, _) = measure(node, "a time", &TIME, kind)?;
    Ok(within(ps.round(), min as f64, max as f64, kind)? as Picos)
}

/// A rate, bit/s.
pub(crate) fn rate(node: &Node, min: f64, max: f64, kind: &Kind) -> Result<f64, Fault> {
    let (bps, _) = measure(node, "a rate", &RATE, kind)?;
    within(bps, min, max, kind)
}

/// A rate, bit/s, or `None` for "unlimited".
pub(crate) fn rate_or_unlimited(
    node: &Node,
    min: f64,
    max: f64,
    kind: &Kind,
) -> Result<Option<f64>, Fault> {
    if is_word(node, "unlimited") { Ok(None) } else { rate(node, min, max, kind).map(Some) }
}

/// A duration of any length, s, for tables with ranges of their own.
pub(crate) fn seconds(node: &Node) -> Result<f64, Fault> {
    let kind = Kind::Time { min: 0, max: Picos::MAX };
    let (ps, unit) = measure(node, "a time", &TIME, &kind)?;
    // Back to the number as written: a detour by picoseconds must not cost "20 ms" its last bit.
    let per_s = PS_PER_S as f64 / unit.1;
    let seconds = if unit.1 <= PS_PER_S as f64 { ps / unit.1 / per_s } else { ps / 1e12 };
    if seconds.is_finite() { Ok(seconds) } else { Err(out_of_range(&kind)) }
}

/// A rate of any size, bit/s, for tables with ranges of their own.
pub(crate) fn bits_per_s(node: &Node) -> Result<f64, Fault> {
    let kind = Kind::Rate { min: 0.0, max: 1e14 };
    let (bps, _) = measure(node, "a rate", &RATE, &kind)?;
    if bps.is_finite() { Ok(bps) } else { Err(out_of_range(&kind)) }
}

/// A size, bytes.
pub(crate) fn bytes(node: &Node, min: u64, max: u64, kind: &Kind) -> Result<u64, Fault> {
    let (bytes, _) = measure(node, "a size", &BYTES, kind)?;
    // 1.1 kB is 1100.0000000000002 in binary: only a real fraction of a byte is an error.
    let near = bytes.round();
    let bytes = if (bytes - near).abs() < 1e-6 { near } else { bytes };
    whole(within(bytes, min as f64, max as f64, kind)?, kind)
}

/// A count of packets.
pub(crate) fn packets(node: &Node, min: u64, max: u64, kind: &Kind) -> Result<u64, Fault> {
    let (packets, _) = measure(node, "a number of packets", &PACKETS, kind)?;
    whole(within(packets, min as f64, max as f64, kind)?, kind)
}

/// A number without a unit.
pub(crate) fn number(node: &Node, min: f64, max: f64, kind: &Kind) -> Result<f64, Fault> {
    let value = match node.value {
        Value::Whole(number) => number as f64,
        Value::Real(number) => number,
        _ => {
            let what = format!("expected a number, found {}", node.what());
            return Err(Fault::new(what, format!("allowed: {}", kind.allowed())));
        }
    };
    within(value, min, max, kind)
}

/// A probability: "0.1%" or 0.001.
pub(crate) fn probability(node: &Node, max: f64, kind: &Kind) -> Result<f64, Fault> {
    let value = match node.value {
        Value::Whole(number) => number as f64,
        Value::Real(number) => number,
        _ => measure(node, "a probability", &SHARE, kind)?.0,
    };
    within(value, 0.0, max, kind)
}

/// A time, or a share of the base RTT.
pub(crate) fn delay(node: &Node, max: Picos, kind: &Kind) -> Result<Delay, Fault> {
    if let Value::Text(text) = &node.value {
        let squeezed: String = text.split_whitespace().collect();
        if squeezed.ends_with("%rtt") {
            let spaced = squeezed.replacen("%rtt", "% rtt", 1);
            let node = Node { value: Value::Text(spaced), ..node.clone() };
            let (share, _) = measure(&node, "a time", &RTT_SHARE, kind)?;
            return Ok(Delay::OfRtt(within(share, 0.0, MAX_RTT_SHARE, kind)?));
        }
    }
    Ok(Delay::Time(time(node, 0, max, kind)?))
}

/// Most noise, as a multiple of the base RTT.
pub(crate) const MAX_RTT_SHARE: f64 = 10.0;
/// Smallest and largest buffer in BDP.
pub(crate) const BUFFER_BDP: (f64, f64) = (0.0001, 10_000.0);
/// Smallest and largest buffer in packets.
pub(crate) const BUFFER_PACKETS: (f64, f64) = (1.0, 1e9);
/// Smallest and largest buffer in bytes.
pub(crate) const BUFFER_BYTES: (f64, f64) = (1.0, 1e12);
/// Smallest and largest buffer in time, ps.
pub(crate) const BUFFER_WAIT: (f64, f64) = (PS_PER_US as f64, 1000.0 * PS_PER_S as f64);

/// A buffer: "1 BDP", "500 packets", "64 KiB", "10 ms", "unlimited".
pub(crate) fn buffer(node: &Node, kind: &Kind) -> Result<BufferSize, Fault> {
    if is_word(node, "unlimited") {
        return Ok(BufferSize::Unlimited);
    }
    let (value, unit) = measure(node, "a buffer size", &BUFFER_UNITS, kind)?;
    let is = |units: &[Unit]| units.contains(&unit);
    let inside = |(min, max)| within(value, min, max, kind);
    Ok(match () {
        () if is(&BDP) => BufferSize::Bdp(inside(BUFFER_BDP)?),
        () if is(&PACKETS) => BufferSize::Packets(whole(inside(BUFFER_PACKETS)?, kind)?),
        () if is(&BYTES) => BufferSize::Bytes(whole(inside(BUFFER_BYTES)?.round(), kind)?),
        () => BufferSize::Wait(inside(BUFFER_WAIT)?.round() as Picos),
    })
}

/// Every unit a buffer may have.
pub(crate) static BUFFER_UNITS: [Unit; 16] = {
    let mut units = [BDP[0]; 16];
    let (mut at, mut i) = (1, 0);
    while i < PACKETS.len() {
        units[at] = PACKETS[i];
        (at, i) = (at + 1, i + 1);
    }
    i = 0;
    while i < BYTES.len() {
        units[at] = BYTES[i];
        (at, i) = (at + 1, i + 1);
    }
    i = 0;
    while i < TIME.len() {
        units[at] = TIME[i];
        (at, i) = (at + 1, i + 1);
    }
    units
};

/// `value` in the largest unit that leaves it at least 1.
pub(crate) fn show(value: f64, units: &[Unit]) -> String {
    let mut best = units[0];
    for unit in units {
        if value >= unit.1 && unit.1 > best.1 {
            best = *unit;
        }
    }
    format!("{} {}", value / best.1, best.0)
}

/// A size, in the largest decimal unit that leaves a whole number.
pub(crate) fn show_bytes(bytes: u64) -> String {
    match bytes {
        0 => "0 B".into(),
        _ if bytes.is_multiple_of(1_000_000_000) => format!("{} GB", bytes / 1_000_000_000),
        _ if bytes.is_multiple_of(1_000_000) => format!("{} MB", bytes / 1_000_000),
        _ if bytes.is_multiple_of(1000) => format!("{} kB", bytes / 1000),
        _ => format!("{bytes} B"),
    }
}

/// A duration for people, never in minutes.
pub(crate) fn show_time(ps: f64) -> String {
    if ps == 0.0 {
        return "0 s".into();
    }
    show(ps, &TIME[..5])
}

/// The names of `units`, for an error.
pub(crate) fn names(units: &[Unit]) -> String {
    units.iter().map(|(name, _)| *name).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_split_from_units() {
        assert_eq!(split("12.5 ms"), Some((12.5, "ms")));
        assert_eq!(split("  1e3B "), Some((1000.0, "B")));
        assert_eq!(split("5EB"), Some((5.0, "EB")));
        assert_eq!(split(".5%"), Some((0.5, "%")));
        assert_eq!(split("1.s"), Some((1.0, "s")));
        assert_eq!(split("-3 s"), Some((-3.0, "s")));
        assert_eq!(split("7"), Some((7.0, "")));
        for bad in ["", "ms", ".", "-", "+.", "inf s", "nan s", "e5 s", "µs"] {
            assert_eq!(split(bad), None, "{bad}");
        }
        assert_eq!(split("1e"), Some((1.0, "e")));
        assert_eq!(split("1e+"), Some((1.0, "e+")));
        assert_eq!(split("3 µs"), Some((3.0, "µs")));
    }

    #[test]
    fn quantities_show_in_their_own_size() {
        assert_eq!(show_time(2.5e9), "2.5 ms");
        assert_eq!(show_time(1e12), "1 s");
        assert_eq!(show(1e14, &RATE), "100 Tbit/s");
        assert_eq!(show(1.0, &RATE), "1 bit/s");
    }

    #[test]
    fn buffer_units_are_all_there() {
        let count = BDP.len() + PACKETS.len() + BYTES.len() + TIME.len();
        assert_eq!(count, BUFFER_UNITS.len());
        assert_eq!(BUFFER_UNITS[15].0, "min");
    }
}
