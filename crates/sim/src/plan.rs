//! What the simulator is asked to run: links, flows, how long, which seed. Everything is resolved to plain numbers here;
//! units, defaults and files are `lab`'s business.

use paceline_cc::{Controller, Field, Needs, PathInfo};
use paceline_net::queue::Tag;
use paceline_net::{LinkSpec, Picos};

/// A whole run.
pub struct Plan {
    /// Directed links. A flow's path names them by index.
    pub links: Vec<NamedLink>,
    /// Flows, in the order of the record.
    pub flows: Vec<FlowPlan>,
    /// Simulated time, ps.
    pub duration_ps: Picos,
    /// Statistics and rates cover `[warmup, duration]`; counters the whole run.
    pub warmup_ps: Picos,
    /// Distance of the samples in the time series, ps. At least 1.
    pub sample_ps: Picos,
    /// Master seed: every link and every flow draws from its own stream derived from it.
    pub seed: u64,
}

/// A directed link and what to call it in the record.
pub struct NamedLink {
    /// Name in the record.
    pub name: String,
    /// The model.
    pub spec: LinkSpec,
    /// Whether it appears in the record. Access links that no scenario names stay out of it.
    pub recorded: bool,
}

/// One flow.
pub struct FlowPlan {
    /// Name in the record.
    pub name: String,
    /// Name of the controller, for the record.
    pub controller_name: String,
    /// What the controller needs of its host.
    pub needs: Needs,
    /// What the controller's `observe` writes; empty = do not observe.
    pub fields: Vec<Field>,
    /// Makes the controller when the flow starts (a flow that has not begun costs no state). Called once.
    pub controller: ControllerFactory,
    /// The endpoint.
    pub stack: Stack,
    /// Links that data crosses, in order; indices into [`Plan::links`].
    pub forward: Vec<u32>,
    /// Links that ACKs cross, in order.
    pub reverse: Vec<u32>,
    /// When the flow begins, ps.
    pub start_ps: Picos,
    /// When the sender stops sending new data, ps; `None` = end of the run.
    pub stop_ps: Option<Picos>,
    /// Payload to transfer, bytes; `None` = endless.
    pub size_bytes: Option<u64>,
    /// Ceiling of the sending rate, bytes/s on the wire; `None` = no cap.
    pub cap_bytes_per_s: Option<u64>,
    /// Sizes of the packets.
    pub packets: PacketSizes,
    /// What queues may know of its data packets; size and flow are filled in.
    pub tag: Tag,
}

/// Makes a flow's controller from what is known of its path.
pub type ControllerFactory = Box<dyn FnOnce(&PathInfo) -> Box<dyn Controller> + Send>;

/// Sizes on the wire, bytes.
#[derive(Clone, Copy, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct PacketSizes {
    /// A full data packet.
    pub data_bytes: u16,
    /// Of which headers: goodput counts the rest.
    pub header_bytes: u16,
    /// An ACK.
    pub ack_bytes: u16,
}

impl PacketSizes {
    /// Payload of a full data packet, bytes.
    pub fn payload_bytes(&self) -> u16 {
        self.data_bytes.saturating_sub(self.header_bytes)
    }
}

/// Which endpoint carries the flow.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Stack {
    /// Reliable byte stream: SACK, fast retransmit, RTO.
    Tcp(TcpOptions),
    /// Every packet acknowledged, losses counted, nothing retransmitted.
    Datagram(DatagramOptions),
}

impl Stack {
    /// Whether the receiver may hold an ACK back, so that it needs a timer.
    pub(crate) fn delays_acks(&self) -> bool {
        match self {
            Self::Tcp(options) => options.delayed_ack_ps.is_some(),
            Self::Datagram(options) => options.overhead_ps > 0,
        }
    }
}

/// How the TCP endpoint behaves where RFCs leave a choice.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TcpOptions {
    /// Initial window, packets (RFC 6928: 10).
    pub initial_window_packets: u32,
    /// Acknowledge every second packet, and a single one after this long, ps (RFC 1122, 5681); `None` = every packet.
    pub delayed_ack_ps: Option<Picos>,
    /// Floor of the retransmission timeout, ps (RFC 6298: 1 s; Linux: 200 ms).
    pub min_rto_ps: Picos,
    /// Three-way handshake before the first data: one round trip, and the first RTT sample.
    pub handshake: bool,
    /// Proportional rate reduction during recovery (RFC 9937); without it the window the controller sets applies at once.
    pub prr: bool,
}

impl Default for TcpOptions {
    fn default() -> Self {
        Self {
            initial_window_packets: 10,
            delayed_ack_ps: None,
            min_rto_ps: 200_000_000_000,
            handshake: true,
            prr: true,
        }
    }
}

/// How the datagram endpoint behaves.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct DatagramOptions {
    /// The contest's sender loop: after each packet it sleeps the pacing gap and looks at no ACK until the window is full;
    /// then it handles one ACK per turn. `false` = an ideal host that reacts at once.
    pub blocking: bool,
    /// Processing time the host adds to each packet it receives and to each pacing sleep, ps.
    pub overhead_ps: Picos,
    /// Granularity of the host's timestamps, ps (the contest: 1 ms). 1 = exact.
    pub clock_ps: Picos,
    /// How the sender learns of a loss.
    pub tell_losses: LossNotice,
}

/// How a datagram sender learns of a loss.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub enum LossNotice {
    /// From the ACK of a later packet.
    #[default]
    Detected,
    /// At the instant of the drop, packet by packet, as in the simulations of the MPC papers. No network does so; here the
    /// first link can, because the sender sits at its entrance.
    AtDrop,
}

impl Default for DatagramOptions {
    fn default() -> Self {
        Self { blocking: false, overhead_ps: 0, clock_ps: 1, tell_losses: LossNotice::Detected }
    }
}

/// Most packets that a flow may have in flight: 1 Tbit/s over 100 ms. More is no path but a mistake, and no machine has the
/// memory for what comes next.
pub const MAX_IN_FLIGHT: u64 = 1 << 23;

/// A plan that cannot run.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum PlanError {
    /// A path names a link that does not exist.
    #[error("flow `{flow}` crosses link {link}, but there are only {count} links")]
    NoSuchLink {
        /// The flow.
        flow: String,
        /// The index.
        link: u32,
        /// How many links there are.
        count: usize,
    },
    /// A controller needs what the endpoint does not provide.
    #[error(
        "controller `{controller}` of flow `{flow}` needs {missing}, which the {stack} endpoint does not provide"
    )]
    Needs {
        /// The flow.
        flow: String,
        /// Its controller.
        controller: String,
        /// What is missing.
        missing: String,
        /// The endpoint.
        stack: &'static str,
    },
    /// A flow is to be told of losses at the drop, and a link drops where its sender does not see it.
    #[error(
        "flow `{flow}` cannot be told of losses at the drop: link `{link}` may drop its packets elsewhere than at the entrance of \
         the flow's first link; allowed: limits, loss and drop-tail on that, no telemetry of it"
    )]
    UnseenDrops {
        /// The flow.
        flow: String,
        /// The first such link of its path.
        link: String,
    },
    /// Neither capacity nor delay on the way there and back: time would stand still.
    #[error(
        "flow `{flow}`: no link of its path has a capacity or a delay, so its packets would take no time at all"
    )]
    Instant {
        /// The flow.
        flow: String,
    },
    /// Found while running: the window outgrew every memory.
    #[error(
        "flow `{flow}` had {MAX_IN_FLIGHT} packets in flight at {at_s} s: nothing on its path limits it"
    )]
    Unbounded {
        /// The flow.
        flow: String,
        /// When, s.
        at_s: f64,
    },
    /// A number outside what the engine represents.
    #[error("{0}")]
    Range(String),
}
