//! The parameters that `mpc-2019` and `mpc-2020` have in common, and their values as the sender uses them.
//!
//! What the papers leave open is a parameter; the two differ in defaults.

use super::super::mpc_law::Law;
use crate::controller::Field;
use crate::registry::{Param, Params};

/// Rate range of r_min and r_max, bit/s; 0 = derived from what is seen.
const RATES: (f64, f64) = (0.0, 1e15);

/// In what the two papers' defaults differ.
pub(crate) struct Defaults {
    pub(crate) capacity: Capacity,
    pub(crate) probe: Probe,
    pub(crate) loss: Reaction,
    pub(crate) loss_per: LossUnit,
}

/// How many parameters there are.
pub(crate) const COUNT: usize = 29;

/// The parameter table.
pub(crate) const fn table(defaults: &Defaults) -> [Param; COUNT] {
    [
        Param::number(
            "c1",
            "1",
            0.1,
            (0.001, 1.0),
            "weight c1 of the distance from the target RTT",
        ),
        Param::number("c2", "1", 0.6, (0.0, 1.0), "weight c2 of the RTT's variance"),
        Param::number("c3", "1", 0.3, (0.0, 1.0), "weight c3 of the change of rate"),
        Param::number("alpha", "1", 0.125, (0.0001, 1.0), "weight alpha of a new RTT in its mean"),
        Param::choice(
            "alpha_per",
            &["ack", "rtt"],
            "whether alpha is the weight of one ACK or of one RTT",
        ),
        Param::number(
            "target",
            "1",
            0.1,
            (0.0, 1.0),
            "target fill f: l_t = l_P + f (l_B - l_P); paper text 0.5",
        ),
        Param::duration(
            "tau_d",
            10.0,
            (0.01, 3600.0),
            "time constant tau_d with which l_P and l_B forget",
        ),
        Param::rate(
            "r_min",
            0.0,
            RATES,
            "smallest rate r_min; 0 = 2 packets per RTT, at least 1 % of r_B",
        ),
        Param::rate(
            "r_max",
            0.0,
            RATES,
            "largest rate r_max; 0 = twice the largest delivery rate seen",
        ),
        Param::choice(
            "start",
            &["r_max", "r_min"],
            "rate before the first ACK; r_max without a value: start-up, doubling per RTT",
        ),
        Param::choice(
            "horizon",
            &["printed", "explicit"],
            "dt of (7)-(8): time since the last ACK, or horizon_rtts",
        ),
        Param::number(
            "horizon_rtts",
            "RTT",
            2.0,
            (0.1, 64.0),
            "explicit horizon H, in present RTTs",
        ),
        Param::choice(
            "capacity",
            &["integral", "integral-send", "windowed", "gradient"],
            "r_B: (6) of 2020 at ACK times with r dt, the same at send times with bytes delivered, a busy-time window, or the gradient (6)-(8) of 2019",
        )
        .with_default(defaults.capacity as u8 as f64),
        Param::number(
            "eta",
            "1",
            10.0,
            (0.001, 1e6),
            "gradient: learning rate eta, made dimensionless by (mean rate / mean RTT)^2",
        ),
        Param::number(
            "capacity_rtts",
            "RTT",
            4.0,
            (0.5, 1000.0),
            "window of capacity = windowed, at least 50 ms",
        ),
        Param::choice(
            "probe",
            &["steady", "gentle", "pulse", "none"],
            "up at r_max then down at r_min; up and down by gains of r_B half a period apart; Lorentzian pulses of l_t; never",
        )
        .with_default(defaults.probe as u8 as f64),
        Param::duration("probe_period", 10.0, (0.05, 3600.0), "time from one up-probe to the next"),
        Param::number(
            "probe_rtts",
            "RTT",
            8.0,
            (0.5, 1000.0),
            "length of an up- or down-probe, in mean RTTs",
        ),
        Param::number("probe_up", "1", 1.25, (1.0, 16.0), "gentle: up-probe's rate over r_B"),
        Param::number("probe_down", "1", 0.5, (0.01, 1.0), "gentle: down-probe's rate over r_B"),
        Param::number(
            "pulse_width",
            "1",
            1.0 / 64.0,
            (0.001, 0.2),
            "pulse: half-width over the period",
        ),
        Param::number("pulse_top", "1", 1.135, (1.0, 4.0), "pulse: peak of l_t over l_B"),
        Param::choice(
            "after_probe",
            &["continue", "restore"],
            "go on from the probe's rate or from the one before",
        ),
        Param::choice(
            "loss",
            &["probe", "cut", "none"],
            "probe l_P at r_min for loss_rtts, multiply r by loss_cut, or ignore",
        )
        .with_default(defaults.loss as u8 as f64),
        Param::choice(
            "loss_per",
            &["window", "packet"],
            "whether a loss counts once per window of data, or each lost packet for itself",
        )
        .with_default(defaults.loss_per as u8 as f64),
        Param::number(
            "loss_rtts",
            "RTT",
            8.0,
            (0.5, 1000.0),
            "length of the probe after a loss, in mean RTTs",
        ),
        Param::number("loss_cut", "1", 0.7, (0.01, 1.0), "factor of the rate after a loss"),
        Param::duration("l_p_floor", 1e-4, (1e-9, 1.0), "smallest l_P in the law's inertia"),
        Param::number("cwnd_gain", "1", 2.0, (1.0, 1000.0), "safety window over r_max l_B"),
    ]
}

/// What [`super::Sender`] shows.
pub(crate) const FIELDS: &[Field] = &[
    Field { name: "rate", unit: "Mbit/s", doc: "pacing rate r" },
    Field { name: "r_b", unit: "Mbit/s", doc: "estimated bottleneck rate r_B" },
    Field { name: "mean_rtt", unit: "ms", doc: "running mean of the RTT" },
    Field { name: "l_p", unit: "ms", doc: "RTT of an empty buffer, l_P" },
    Field { name: "l_b", unit: "ms", doc: "RTT of a full buffer, l_B" },
    Field { name: "l_t", unit: "ms", doc: "target RTT, l_t" },
    Field { name: "phase", unit: "1", doc: "0 steady, 1 probing up, -1 probing down, 2 start-up" },
];

// The words of the choices, in the order of the table.

#[derive(Clone, Copy, PartialEq)]
pub(crate) enum Capacity {
    Integral,
    IntegralSend,
    Windowed,
    Gradient,
}

#[derive(Clone, Copy, PartialEq)]
pub(crate) enum Probe {
    Steady,
    Gentle,
    Pulse,
    Never,
}

#[derive(Clone, Copy, PartialEq)]
pub(crate) enum Reaction {
    Probe,
    Cut,
    Ignore,
}

#[derive(Clone, Copy, PartialEq)]
pub(crate) enum LossUnit {
    Window,
    Packet,
}

/// The parameters, read once. Rates in bytes/s, times in seconds unless named.
#[derive(Clone, Copy)]
pub(super) struct Choices {
    pub(super) law: Law,
    pub(super) alpha_per_rtt: bool,
    pub(super) target: f64,
    pub(super) tau_d: f64,
    pub(super) r_min: f64,
    pub(super) r_max: f64,
    pub(super) start_at_min: bool,
    /// `None`: the printed dt.
    pub(super) horizon_rtts: Option<f64>,
    pub(super) capacity: Capacity,
    pub(super) capacity_rtts: f64,
    pub(super) eta: f64,
    pub(super) probe: Probe,
    pub(super) probe_period_ns: u64,
    pub(super) probe_rtts: f64,
    pub(super) probe_up: f64,
    pub(super) probe_down: f64,
    pub(super) pulse_width: f64,
    pub(super) pulse_top: f64,
    pub(super) restore: bool,
    pub(super) loss: Reaction,
    pub(super) loss_rtts: f64,
    pub(super) loss_cut: f64,
    pub(super) loss_per: LossUnit,
    pub(super) l_p_floor: f64,
    pub(super) cwnd_gain: f64,
}

impl Choices {
    pub(super) fn read(params: &Params) -> Self {
        let get = |name| params.get(name);
        let word = |name| params.get_choice(name);
        Self {
            law: Law { c1: get("c1"), c2: get("c2"), c3: get("c3"), alpha: get("alpha") },
            alpha_per_rtt: word("alpha_per") == "rtt",
            target: get("target"),
            tau_d: get("tau_d"),
            r_min: get("r_min") / 8.0,
            r_max: get("r_max") / 8.0,
            start_at_min: word("start") == "r_min",
            horizon_rtts: (word("horizon") == "explicit").then(|| get("horizon_rtts")),
            capacity: match word("capacity") {
                "windowed" => Capacity::Windowed,
                "integral-send" => Capacity::IntegralSend,
                "gradient" => Capacity::Gradient,
                _ => Capacity::Integral,
            },
            capacity_rtts: get("capacity_rtts"),
            eta: get("eta"),
            probe: match word("probe") {
                "gentle" => Probe::Gentle,
                "pulse" => Probe::Pulse,
                "none" => Probe::Never,
                _ => Probe::Steady,
            },
            probe_period_ns: params.get_ns("probe_period"),
            probe_rtts: get("probe_rtts"),
            probe_up: get("probe_up"),
            probe_down: get("probe_down"),
            pulse_width: get("pulse_width"),
            pulse_top: get("pulse_top"),
            restore: word("after_probe") == "restore",
            loss: match word("loss") {
                "cut" => Reaction::Cut,
                "none" => Reaction::Ignore,
                _ => Reaction::Probe,
            },
            loss_rtts: get("loss_rtts"),
            loss_cut: get("loss_cut"),
            loss_per: match word("loss_per") {
                "packet" => LossUnit::Packet,
                _ => LossUnit::Window,
            },
            l_p_floor: get("l_p_floor"),
            cwnd_gain: get("cwnd_gain"),
        }
    }
}
