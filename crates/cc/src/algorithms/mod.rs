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
mod exp_penalty;
mod fast;
mod fast_at;
mod hstcp;
mod htcp;
mod illinois;
mod latte;
mod ledbat;
mod ledbat_plus_plus;
pub mod mpc;
mod mpc_2020;
mod path_model;
mod pid;
mod reno;
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

use crate::bounds::{
    MAX_PACING_BYTES_PER_S, MAX_WINDOW_PACKETS, pacing_rate, packet_size, window_bytes,
};
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
];
