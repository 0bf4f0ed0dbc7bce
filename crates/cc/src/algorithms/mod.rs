//! One file per algorithm. A new one is a file here, a line in `ALL`, and nothing else. What several share is a module beside this one,
//! first of all [`crate::reno_window`] and [`crate::window_law`].

mod aimd;
mod arx;
mod bbr1;
mod bbr3;
#[cfg(test)]
mod bbr_driver;
mod bbr_part;
mod bic;
mod cdg;
mod copa;
mod ctcp;
mod cubic;
mod cycle_gain;
mod dctcp;
mod delay_threshold;
mod exp_penalty;
mod fast;
mod fast_at;
mod horizon;
mod hpcc;
mod hstcp;
mod htcp;
mod illinois;
mod latte;
mod ledbat;
mod ledbat_plus_plus;
mod mpc;
mod mpc_2019;
mod mpc_2020;
mod mpc_law;
mod mpc_sender;
mod path_model;
mod pid;
mod prague;
mod reno;
mod rtt_aimd;
mod rtt_gradient;
mod scalable;
mod silences;
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

/// Every algorithm, by family, in the order of `paceline controllers`.
pub(crate) static ALL: &[&Spec] = &[
    // Loss-based: losses say when the window falls.
    &reno::SPEC,
    &cubic::SPEC,
    &bic::SPEC,
    &hstcp::SPEC,
    &htcp::SPEC,
    &scalable::SPEC,
    &westwood::SPEC,
    // Delay-based: the queueing delay decides, alone or beside losses.
    &cdg::SPEC,
    &copa::SPEC,
    &ctcp::SPEC,
    &fast::SPEC,
    &fast_at::SPEC,
    &illinois::SPEC,
    &ledbat::SPEC,
    &ledbat_plus_plus::SPEC,
    &vegas::SPEC,
    &veno::SPEC,
    &yeah::SPEC,
    // Model-based: an estimate of what the path delivers.
    &bbr1::SPEC,
    &bbr3::SPEC,
    &sprout::SPEC,
    // Rate-based: a rate that a utility, a cost or a setpoint chooses.
    &vivace::SPEC,
    &arx::SPEC,
    &mpc::SPEC,
    &mpc_2019::SPEC,
    &mpc_2020::SPEC,
    &pid::SPEC,
    // Mark-based: the share of packets marked.
    &dctcp::SPEC,
    &prague::SPEC,
    // Data centre: what clocks or switches tell.
    &hpcc::SPEC,
    &swift::SPEC,
    &timely::SPEC,
    // Contest (CS 244, Kumar 2017), from a fixed window to Latte.
    &window::SPEC,
    &aimd::SPEC,
    &delay_threshold::SPEC,
    &rtt_aimd::SPEC,
    &exp_penalty::SPEC,
    &rtt_gradient::SPEC,
    &cycle_gain::SPEC,
    &latte::SPEC,
    &horizon::SPEC,
];
