//! Parameters of `mpc-2020`: the registry entry, and the values as the controller uses them.

use super::super::mpc::Law;
use super::build;
use crate::controller::{Field, Needs};
use crate::registry::{Family, Param, Params, Profile, Spec};

/// Rate range of r_min and r_max, bit/s; 0 = derived from what is seen.
const RATES: (f64, f64) = (0.0, 1e15);

/// The registry entry.
pub(crate) static SPEC: Spec = Spec {
    name: "mpc-2020",
    title: "Model predictive control, as printed in 2020",
    family: Family::RateBased,
    source: "Lynn, Ghosal and Hanford, Model predictive congestion control for TCP endpoints (arXiv 2002.09825, 2020), eqs 1-8",
    about: include_str!("../about/mpc-2020.md"),
    needs: Needs::PACING.and(Needs::RATE_SAMPLE),
    params: &[
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
            &["integral", "integral-send", "windowed"],
            "r_B: (6) at ACK times with r dt, (6) at send times with bytes delivered, or a busy-time window",
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
            "up at r_max then down at r_min; up and down by gains of r_B half a period apart; pulses of l_t; never",
        ),
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
        ),
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
    ],
    profiles: &[
        Profile {
            name: "gentle",
            source: "the same constants with probes of 1.25 and 0.5 r_B for 2 RTTs",
            values: &[("probe", 1.0), ("probe_rtts", 2.0)],
        },
        Profile {
            name: "simulator",
            source: "constants of the released simulator (2020): target pulses, halving on loss",
            values: &[("probe", 2.0), ("loss", 1.0), ("loss_cut", 0.5)],
        },
        Profile {
            name: "kernel",
            source: "constants of the released kernel module (2020)",
            values: &[
                ("c1", 0.98),
                ("c2", 0.01),
                ("c3", 0.01),
                ("alpha", 0.1),
                ("target", 0.95),
                ("r_min", 16e6),
                ("r_max", 1_048_576e6),
                ("start", 1.0),
            ],
        },
        Profile {
            name: "stable",
            source: "Paceline: horizon of 2 RTTs, windowed capacity, short probes",
            values: &[
                ("c1", 0.4),
                ("c2", 0.2),
                ("c3", 0.4),
                ("alpha_per", 1.0),
                ("target", 0.25),
                ("tau_d", 30.0),
                ("horizon", 1.0),
                ("capacity", 2.0),
                ("probe", 1.0),
                ("probe_rtts", 2.0),
                ("after_probe", 1.0),
                ("loss", 1.0),
            ],
        },
    ],
    fields: &[
        Field { name: "rate", unit: "Mbit/s", doc: "pacing rate r" },
        Field { name: "r_b", unit: "Mbit/s", doc: "estimated bottleneck rate r_B" },
        Field { name: "mean_rtt", unit: "ms", doc: "running mean of the RTT" },
        Field { name: "l_p", unit: "ms", doc: "RTT of an empty buffer, l_P" },
        Field { name: "l_b", unit: "ms", doc: "RTT of a full buffer, l_B" },
        Field { name: "l_t", unit: "ms", doc: "target RTT, l_t" },
        Field {
            name: "phase",
            unit: "1",
            doc: "0 steady, 1 probing up, -1 probing down, 2 start-up",
        },
    ],
    build,
};

#[derive(Clone, Copy, PartialEq)]
pub(super) enum Capacity {
    Integral,
    IntegralSend,
    Windowed,
}

#[derive(Clone, Copy, PartialEq)]
pub(super) enum Probe {
    Steady,
    Gentle,
    Pulse,
    Never,
}

#[derive(Clone, Copy, PartialEq)]
pub(super) enum Reaction {
    Probe,
    Cut,
    Ignore,
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
                _ => Capacity::Integral,
            },
            capacity_rtts: get("capacity_rtts"),
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
            l_p_floor: get("l_p_floor"),
            cwnd_gain: get("cwnd_gain"),
        }
    }
}
