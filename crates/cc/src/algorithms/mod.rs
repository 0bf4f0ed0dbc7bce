//! One file per algorithm. A new one is a file here, a line in `ALL`, and nothing else.

mod aimd;
mod arx;
mod bbr1;
mod bic;
mod cdg;
mod copa;
mod ctcp;
mod cubic;
mod cycle_gain;
mod delay_threshold;
#[cfg(test)]
mod driver;
mod exp_penalty;
mod fast;
mod fast_at;
mod hpcc;
mod hstcp;
mod htcp;
mod illinois;
mod latte;
mod ledbat;
mod ledbat_plus_plus;
mod loss_based;
pub mod mpc;
mod mpc_2020;
mod path_model;
mod pid;
mod reno;
mod reno_part;
mod reno_window;
mod rtt_aimd;
mod rtt_gradient;
mod scalable;
mod sprout;
mod swift;
mod timely;
mod vegas;
mod veno;
mod vivace;
mod westwood;
mod window;
mod yeah;

use crate::registry::Spec;

/// Every algorithm, alphabetical within families.
pub(crate) static ALL: &[&Spec] = &[
    &window::SPEC,
    &aimd::SPEC,
    &delay_threshold::SPEC,
    &rtt_aimd::SPEC,
    &exp_penalty::SPEC,
    &rtt_gradient::SPEC,
    &cycle_gain::SPEC,
    &reno::SPEC,
    &cubic::SPEC,
    &bic::SPEC,
    &hstcp::SPEC,
    &htcp::SPEC,
    &scalable::SPEC,
    &westwood::SPEC,
    &cdg::SPEC,
    &illinois::SPEC,
    &vegas::SPEC,
    &veno::SPEC,
    &yeah::SPEC,
    &ctcp::SPEC,
    &fast::SPEC,
    &fast_at::SPEC,
    &ledbat::SPEC,
    &ledbat_plus_plus::SPEC,
    &bbr1::SPEC,
    &copa::SPEC,
    &vivace::SPEC,
    &sprout::SPEC,
    &latte::SPEC,
    &arx::SPEC,
    &mpc_2020::SPEC,
    &pid::SPEC,
    &timely::SPEC,
    &swift::SPEC,
    &hpcc::SPEC,
];

/// Largest window any algorithm asks for, packets: keeps bytes exact in an `f64`.
const MAX_WINDOW_PACKETS: f64 = 1e9;

/// Largest pacing rate any algorithm asks for, bytes/s (8 Pbit/s): below `Control::UNPACED`.
const MAX_PACING_BYTES_PER_S: f64 = 1e15;

/// A window of `packets` in bytes: at least one packet, finite.
fn window_bytes(packets: f64, packet_bytes: f64) -> u64 {
    whole(clamp(packets, MAX_WINDOW_PACKETS) * packet_bytes)
}

/// A pacing rate, bytes/s: at least 1, finite.
fn pacing_rate(bytes_per_s: f64) -> u64 {
    whole(clamp(bytes_per_s, MAX_PACING_BYTES_PER_S))
}

/// The whole part of a number from 0 to 2^63. Processors have an instruction for signed numbers only.
fn whole(value: f64) -> u64 {
    (value as i64).cast_unsigned()
}

/// `value` between 1 and `most`; 1 for a NaN.
fn clamp(value: f64, most: f64) -> f64 {
    if value.is_nan() { 1.0 } else { value.clamp(1.0, most) }
}

/// Size of a packet as a positive number.
fn packet_size(path: &crate::event::PathInfo) -> f64 {
    f64::from(path.packet_bytes.max(1))
}
