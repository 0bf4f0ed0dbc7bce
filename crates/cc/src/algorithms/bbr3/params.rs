//! BBR version 3: the parameter table and what is read from it.

use crate::controller::{Field, Needs};
use crate::registry::{Family, Param, Params, Profile, Spec};

/// The registry entry.
pub(crate) static SPEC: Spec = Spec {
    name: "bbr3",
    title: "BBR version 3: version 1 with bounds from losses and probes",
    family: Family::ModelBased,
    source: "draft-ietf-ccwg-bbr, working group's text of August 2026",
    about: include_str!("../about/bbr3.md"),
    needs: Needs::PACING.and(Needs::RATE_SAMPLE),
    params: &[
        Param::number(
            "startup_gain",
            "1",
            4.0 * std::f64::consts::LN_2,
            (1.1, 10.0),
            "pacing gain of Startup, 4 ln 2",
        ),
        Param::number("drain_gain", "1", 0.5, (0.05, 1.0), "pacing gain of Drain"),
        Param::number(
            "cwnd_gain",
            "1",
            2.0,
            (1.0, 10.0),
            "window over bandwidth-delay product, but in ProbeBW_UP and ProbeRTT",
        ),
        Param::number("down_gain", "1", 0.9, (0.1, 1.0), "pacing gain of ProbeBW_DOWN"),
        Param::number("up_gain", "1", 1.25, (1.0, 4.0), "pacing gain of ProbeBW_UP"),
        Param::number("up_cwnd_gain", "1", 2.25, (1.0, 10.0), "window gain of ProbeBW_UP"),
        Param::number(
            "loss_threshold",
            "1",
            0.02,
            (0.0, 0.5),
            "part of a flight that may be lost while probing for bandwidth, LossThresh",
        ),
        Param::number(
            "beta",
            "1",
            0.7,
            (0.1, 1.0),
            "part of the bounds that a round with losses leaves at least, Beta",
        ),
        Param::number(
            "headroom",
            "1",
            0.15,
            (0.0, 0.9),
            "part of inflight_longterm that cruising leaves to others, Headroom",
        ),
        Param::integer(
            "startup_losses",
            "loss events",
            6.0,
            (1.0, 1000.0),
            "least loss events of a round that ends Startup by loss",
        ),
        Param::integer(
            "drain_rounds",
            "round trips",
            3.0,
            (0.0, 1000.0),
            "Drain ends after more than this many round trips in any case; 0 = it does not",
        ),
        Param::duration(
            "min_rtt_window",
            10.0,
            (0.1, 1000.0),
            "window of the minimum RTT, MinRTTFilterLen",
        ),
        Param::duration(
            "probe_rtt_interval",
            5.0,
            (0.1, 1000.0),
            "ProbeRTT begins when no smaller RTT was seen for so long",
        ),
        Param::duration("probe_rtt_duration", 0.2, (0.0, 10.0), "shortest stay in ProbeRTT"),
        Param::number(
            "probe_rtt_gain",
            "1",
            0.5,
            (0.0, 1.0),
            "window over bandwidth-delay product in ProbeRTT",
        ),
        Param::duration(
            "probe_wait",
            2.0,
            (0.0, 100.0),
            "shortest time from one ProbeBW_UP to the next ProbeBW_REFILL",
        ),
        Param::duration(
            "probe_wait_spread",
            1.0,
            (0.0, 100.0),
            "how much longer that time is at random",
        ),
        Param::integer(
            "reno_rounds",
            "round trips",
            63.0,
            (1.0, 10_000.0),
            "most rounds between probes, for a Reno flow of the same window would lose a packet as often",
        ),
        Param::integer("min_window", "packets", 4.0, (1.0, 1000.0), "smallest window, MinPipeCwnd"),
        Param::number(
            "pacing_margin",
            "1",
            0.01,
            (0.0, 0.5),
            "part of the bandwidth that pacing leaves unused, to drain queues",
        ),
        Param::choice(
            "sizes",
            &["draft", "linux"],
            "whose burst size and rounding: 1 ms of data; 2^-10 s, more below an RTT of 3 ms, whole packets and at most 100 ms for \
             aggregated ACKs",
        ),
    ],
    profiles: &[Profile {
        name: "linux",
        source: "Google's Linux tcp_bbr, version 3: its constants, in 256ths, its bursts and its rounding",
        values: &[
            ("startup_gain", 710.0 / 256.0),
            ("drain_gain", 88.0 / 256.0),
            ("down_gain", 232.0 / 256.0),
            ("loss_threshold", 5.0 / 256.0),
            ("beta", 180.0 / 256.0),
            ("headroom", 38.0 / 256.0),
            ("drain_rounds", 0.0),
            ("sizes", 1.0),
        ],
    }],
    fields: &[
        Field {
            name: "bandwidth",
            unit: "Mbit/s",
            doc: "what is paced with: max_bandwidth within its bound",
        },
        Field {
            name: "max_bandwidth",
            unit: "Mbit/s",
            doc: "largest delivery rate of two cycles, max_bw",
        },
        Field { name: "min_rtt", unit: "ms", doc: "smallest RTT" },
        Field {
            name: "inflight_longterm",
            unit: "packets",
            doc: "what a probe found too much, inflight_hi in Linux; none = no bound",
        },
        Field {
            name: "inflight_shortterm",
            unit: "packets",
            doc: "bound since the last losses, inflight_lo in Linux; none = no bound",
        },
        Field {
            name: "bw_shortterm",
            unit: "Mbit/s",
            doc: "bound since the last losses, bw_lo in Linux; none = no bound",
        },
        Field { name: "pacing_gain", unit: "1", doc: "pacing rate over bandwidth" },
        Field { name: "cwnd_gain", unit: "1", doc: "window over bandwidth-delay product" },
        Field {
            name: "state",
            unit: "1",
            doc: "0 Startup, 1 Drain, ProbeBW: 2 DOWN, 3 CRUISE, 4 REFILL, 5 UP; 6 ProbeRTT",
        },
    ],
    build: super::build,
};

/// The parameters, read.
#[derive(Clone, Copy, Debug)]
pub(super) struct Options {
    pub(super) startup_gain: f64,
    pub(super) drain_gain: f64,
    pub(super) cwnd_gain: f64,
    pub(super) down_gain: f64,
    pub(super) up_gain: f64,
    pub(super) up_cwnd_gain: f64,
    pub(super) loss_threshold: f64,
    pub(super) beta: f64,
    pub(super) headroom: f64,
    pub(super) startup_losses: u32,
    pub(super) drain_rounds: u64,
    pub(super) min_rtt_window_ns: u64,
    pub(super) probe_rtt_interval_ns: u64,
    pub(super) probe_rtt_duration_ns: u64,
    pub(super) probe_rtt_gain: f64,
    pub(super) probe_wait_ns: f64,
    pub(super) probe_wait_spread_ns: f64,
    pub(super) reno_rounds: f64,
    pub(super) min_window: f64,
    pub(super) pacing_margin: f64,
    pub(super) linux_sizes: bool,
}

impl Options {
    pub(super) fn read(params: &Params) -> Self {
        Self {
            startup_gain: params.get("startup_gain"),
            drain_gain: params.get("drain_gain"),
            cwnd_gain: params.get("cwnd_gain"),
            down_gain: params.get("down_gain"),
            up_gain: params.get("up_gain"),
            up_cwnd_gain: params.get("up_cwnd_gain"),
            loss_threshold: params.get("loss_threshold"),
            beta: params.get("beta"),
            headroom: params.get("headroom"),
            startup_losses: params.get("startup_losses") as u32,
            drain_rounds: params.get("drain_rounds") as u64,
            min_rtt_window_ns: params.get_ns("min_rtt_window"),
            probe_rtt_interval_ns: params.get_ns("probe_rtt_interval"),
            probe_rtt_duration_ns: params.get_ns("probe_rtt_duration"),
            probe_rtt_gain: params.get("probe_rtt_gain"),
            probe_wait_ns: params.get("probe_wait") * 1e9,
            probe_wait_spread_ns: params.get("probe_wait_spread") * 1e9,
            reno_rounds: params.get("reno_rounds"),
            min_window: params.get("min_window"),
            pacing_margin: params.get("pacing_margin"),
            linux_sizes: params.get_choice("sizes") == "linux",
        }
    }
}
