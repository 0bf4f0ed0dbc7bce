//! What every algorithm asks for stays within these: finite, at least one packet, exact in the units of [`crate::Control`].

use crate::event::PathInfo;

/// Largest window any algorithm asks for, packets: keeps bytes exact in an `f64`.
pub(crate) const MAX_WINDOW_PACKETS: f64 = 1e9;

/// Largest pacing rate any algorithm asks for, bytes/s (8 Pbit/s): below `Control::UNPACED`.
pub(crate) const MAX_PACING_BYTES_PER_S: f64 = 1e15;

/// A window of `packets` in bytes: at least one packet, finite.
pub(crate) fn window_bytes(packets: f64, packet_bytes: f64) -> u64 {
    whole(clamp(packets, MAX_WINDOW_PACKETS) * packet_bytes)
}

/// A pacing rate, bytes/s: at least 1, finite.
pub(crate) fn pacing_rate(bytes_per_s: f64) -> u64 {
    whole(clamp(bytes_per_s, MAX_PACING_BYTES_PER_S))
}

/// `value` between 1 and `most`; 1 for a NaN.
pub(crate) fn clamp(value: f64, most: f64) -> f64 {
    if value.is_nan() { 1.0 } else { value.clamp(1.0, most) }
}

/// Size of a packet as a positive number.
pub(crate) fn packet_size(path: &PathInfo) -> f64 {
    f64::from(path.packet_bytes.max(1))
}

/// The whole part of a number from 0 to 2^63. Processors have an instruction for signed numbers only.
fn whole(value: f64) -> u64 {
    (value as i64).cast_unsigned()
}
