//! BBR version 1: the parameter table and what is read from it.

use crate::controller::{Field, Needs};
use crate::registry::{Family, Param, Params, Profile, Spec};

/// The registry entry.
pub(crate) static SPEC: Spec = Spec {
    name: "bbr1",
    title: "BBR version 1: a model of bandwidth and propagation delay",
    family: Family::ModelBased,
    source: "Cardwell et al., BBR: congestion-based congestion control (ACM Queue 14:5, 2016); draft-cardwell-iccrg-bbr-congestion-control-00",
    about: include_str!("../about/bbr1.md"),
    needs: Needs::PACING.and(Needs::RATE_SAMPLE),
    params: &[
        Param::number(
            "startup_gain",
            "1",
            2.0 / std::f64::consts::LN_2,
            (1.1, 10.0),
            "pacing and window gain of Startup, 2/ln 2; Drain paces with its inverse",
        ),
        Param::number("cwnd_gain", "1", 2.0, (1.0, 10.0), "window gain of ProbeBW"),
        Param::integer(
            "bandwidth_rounds",
            "round trips",
            10.0,
            (1.0, 1000.0),
            "window of the maximum of the delivery rate, BtlBw",
        ),
        Param::duration(
            "min_rtt_window",
            10.0,
            (0.1, 1000.0),
            "window of the minimum RTT, RTprop; ProbeRTT begins when it has not been seen again",
        ),
        Param::flag(
            "equal_rtt_postpones",
            true,
            "an RTT as short as RTprop postpones ProbeRTT; otherwise only a shorter one does",
        ),
        Param::duration("probe_rtt_duration", 0.2, (0.0, 10.0), "shortest stay in ProbeRTT"),
        Param::integer(
            "probe_rtt_packets",
            "packets",
            4.0,
            (1.0, 1000.0),
            "window in ProbeRTT, and smallest window outside recovery",
        ),
        Param::number(
            "pacing_margin",
            "1",
            0.0,
            (0.0, 0.5),
            "part of the bandwidth that pacing leaves unused, to drain queues",
        ),
        Param::choice(
            "sizes",
            &["draft", "linux", "ns-3"],
            "whose burst size and window headroom: 1 ms of data and three bursts; 2^-10 s, and \
             an even number of packets, two more while probing; one packet, two more while probing",
        ),
        Param::flag(
            "aggregation",
            false,
            "widen the window by how much more than the bandwidth ACKs tell of at once",
        ),
    ],
    profiles: &[
        Profile {
            name: "linux",
            source: "Linux 6.x tcp_bbr: gain 739/256, pacing margin, bursts, ACK aggregation, ProbeRTT unless a shorter RTT comes",
            values: &[
                ("startup_gain", 739.0 / 256.0),
                ("pacing_margin", 0.01),
                ("sizes", 1.0),
                ("equal_rtt_postpones", 0.0),
                ("aggregation", 1.0),
            ],
        },
        Profile {
            name: "ns-3",
            source: "ns-3 TcpBbr: gain 2.89, pacing margin, no segmentation offload, ACK aggregation",
            values: &[
                ("startup_gain", 2.89),
                ("pacing_margin", 0.01),
                ("sizes", 2.0),
                ("aggregation", 1.0),
            ],
        },
    ],
    fields: &[
        Field { name: "bandwidth", unit: "Mbit/s", doc: "largest delivery rate, BtlBw" },
        Field { name: "min_rtt", unit: "ms", doc: "smallest RTT, RTprop" },
        Field { name: "pacing_gain", unit: "1", doc: "pacing rate over bandwidth" },
        Field { name: "cwnd_gain", unit: "1", doc: "window over bandwidth-delay product" },
        Field { name: "state", unit: "1", doc: "0 Startup, 1 Drain, 2 ProbeBW, 3 ProbeRTT" },
    ],
    build: super::build,
};

/// Whose burst size and window headroom.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Sizes {
    Draft,
    Linux,
    Ns3,
}

/// The parameters, read.
#[derive(Clone, Copy, Debug)]
pub(super) struct Options {
    pub(super) startup_gain: f64,
    pub(super) cwnd_gain: f64,
    pub(super) bandwidth_rounds: u64,
    pub(super) min_rtt_window_ns: u64,
    pub(super) equal_rtt_postpones: bool,
    pub(super) probe_rtt_duration_ns: u64,
    pub(super) probe_rtt_packets: f64,
    pub(super) pacing_margin: f64,
    pub(super) sizes: Sizes,
    pub(super) aggregation: bool,
}

impl Options {
    pub(super) fn read(params: &Params) -> Self {
        Self {
            startup_gain: params.get("startup_gain"),
            cwnd_gain: params.get("cwnd_gain"),
            bandwidth_rounds: params.get("bandwidth_rounds") as u64,
            min_rtt_window_ns: params.get_ns("min_rtt_window"),
            equal_rtt_postpones: params.get_bool("equal_rtt_postpones"),
            probe_rtt_duration_ns: params.get_ns("probe_rtt_duration"),
            probe_rtt_packets: params.get("probe_rtt_packets"),
            pacing_margin: params.get("pacing_margin"),
            sizes: match params.get_choice("sizes") {
                "linux" => Sizes::Linux,
                "ns-3" => Sizes::Ns3,
                _ => Sizes::Draft,
            },
            aggregation: params.get_bool("aggregation"),
        }
    }
}
