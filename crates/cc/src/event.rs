//! What a host tells a controller.
//!
//! Every struct here is `#[repr(C)]` and mirrored by `bpf/include/cc_abi.h`, so that one C source can serve the
//! simulator and the kernel. Time is in nanoseconds from the origin of the run and never decreases; bytes are bytes of
//! whole packets as the link sees them (headers included), so that a rate compares directly with a link's capacity.

/// The path a controller is created for.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PathInfo {
    /// Time of creation, ns.
    pub now_ns: u64,
    /// Size of a full data packet on the wire, bytes. `cwnd_bytes / packet_bytes` is the window in packets.
    pub packet_bytes: u32,
    /// Window the host starts with unless the algorithm defines its own, packets (RFC 6928: 10).
    pub initial_window_packets: u32,
    /// Seed for an algorithm that draws random numbers; differs per flow.
    pub seed: u64,
}

/// One acknowledgement that newly acknowledges data; the first half of [`Ack`].
///
/// The rate sample (`delivered_bytes`, `interval_ns`, the two totals) is that of the BBR draft's delivery-rate
/// estimation: bytes delivered between the sending of the acknowledged packet and now, over the longer of the send
/// and the ACK interval.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct AckSample {
    /// Now, ns.
    pub now_ns: u64,
    /// Bytes newly acknowledged (cumulatively or selectively).
    pub acked_bytes: u64,
    /// Packets newly acknowledged.
    pub acked_packets: u32,
    /// Of these, packets whose congestion-experienced mark was newly reported.
    pub ce_packets: u32,
    /// Bytes in flight after this ACK.
    pub in_flight_bytes: u64,
    /// Bytes in flight before this ACK.
    pub prior_in_flight_bytes: u64,
    /// Round-trip time of the newest packet acknowledged, ns; 0 when there is no sample (Karn).
    pub rtt_ns: u64,
    /// Smoothed RTT (RFC 6298), ns; 0 before the first sample.
    pub srtt_ns: u64,
    /// Smallest RTT of the connection, ns; 0 before the first sample.
    pub min_rtt_ns: u64,
    /// Delay that the receiver reports to have added, ns; 0 = unknown.
    pub ack_delay_ns: u64,
    /// One-way delay of the newest packet acknowledged, ns; 0 = unknown.
    pub one_way_delay_ns: u64,
    /// When the newest packet acknowledged was sent, ns.
    pub sent_ns: u64,
    /// Rate sample: bytes delivered over `interval_ns`; 0 when there is no valid sample.
    pub delivered_bytes: u64,
    /// Rate sample: interval, ns; 0 when there is no valid sample.
    pub interval_ns: u64,
    /// Bytes delivered since the start of the connection, this ACK included.
    pub delivered_total_bytes: u64,
    /// `delivered_total_bytes` as it stood when the newest packet acknowledged was sent. A round trip has passed when
    /// this reaches the total noted at its start.
    pub prior_delivered_total_bytes: u64,
    /// Bytes in flight when the newest packet acknowledged was sent.
    pub tx_in_flight_bytes: u64,
    /// Bytes declared lost between the sending of that packet and now, without those of this step's [`Loss`].
    pub lost_since_sent_bytes: u64,
    /// [`AckSample::APP_LIMITED`] and its neighbours.
    pub flags: u32,
    /// Bytes that left the host in one piece with that packet, ahead of it, and are acknowledged with it: segmentation offload.
    /// The packet's RTT has their transmission in it. 0 where every packet is sent by itself.
    pub burst_bytes: u32,
}

impl AckSample {
    /// The sample was taken while the application, not the window, limited sending.
    pub const APP_LIMITED: u32 = 1;
    /// The window was full at some point in the last round trip: growth is justified (RFC 7661 in short).
    pub const CWND_LIMITED: u32 = 2;
    /// The newest packet acknowledged had been retransmitted.
    pub const RETRANSMIT: u32 = 4;
    /// The ACK moves the cumulative acknowledgement.
    pub const CUMULATIVE: u32 = 8;
    /// The host is repairing losses (from `on_loss` with `EPISODE_START` until all data sent before it is acknowledged).
    pub const IN_RECOVERY: u32 = 16;

    /// Delivery rate of the sample, bytes/s; `None` when there is no valid sample.
    #[inline]
    pub fn delivery_rate(&self) -> Option<f64> {
        (self.interval_ns > 0).then(|| self.delivered_bytes as f64 * 1e9 / self.interval_ns as f64)
    }

    /// Whether `flag` is set.
    pub fn has(&self, flag: u32) -> bool {
        self.flags & flag != 0
    }
}

/// Telemetry that one hop wrote into a packet (in-band network telemetry, as HPCC uses), at the moment in which the packet left the
/// hop's queue and its transmission began.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct IntHop {
    /// Which link.
    pub hop_id: u64,
    /// Bytes that the packet left in the queue.
    pub queue_bytes: u64,
    /// Bytes that the link had transmitted before it.
    pub tx_bytes: u64,
    /// When, ns.
    pub timestamp_ns: u64,
    /// Capacity of the link then, bytes/s.
    pub link_bytes_per_s: u64,
}

/// One acknowledgement with everything known about it. Dereferences to its [`AckSample`].
#[derive(Clone, Copy, Debug, Default)]
pub struct Ack<'a> {
    /// The fixed-size part, the only one the kernel has.
    pub sample: AckSample,
    /// Telemetry of the links of the forward path that have a rate, in path order, from the packet that caused the ACK. Empty unless
    /// the controller needs it ([`crate::Needs::INT`]), and if that packet had arrived before.
    pub hops: &'a [IntHop],
}

impl std::ops::Deref for Ack<'_> {
    type Target = AckSample;
    fn deref(&self) -> &AckSample {
        &self.sample
    }
}

/// Packets newly found lost; at most one event per step, before the `on_ack` of that step.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Loss {
    /// Now, ns.
    pub now_ns: u64,
    /// Bytes newly declared lost.
    pub lost_bytes: u64,
    /// When the newest of them was sent, ns.
    pub newest_lost_sent_ns: u64,
    /// Bytes in flight after the loss is accounted.
    pub in_flight_bytes: u64,
    /// Bytes in flight before it (FlightSize of RFC 5681).
    pub prior_in_flight_bytes: u64,
    /// Packets newly declared lost.
    pub lost_packets: u32,
    /// [`Loss::EPISODE_START`] and its neighbour.
    pub flags: u32,
    /// Bytes in flight when the newest of them was sent, itself included.
    pub tx_in_flight_bytes: u64,
    /// Bytes declared lost between the sending of the newest of them and now, these included.
    pub lost_since_sent_bytes: u64,
}

impl Loss {
    /// This loss opens a recovery episode: the window is reduced once per episode, not once per loss.
    pub const EPISODE_START: u32 = 1;
    /// When the newest of them was sent, the application, not the window, limited sending.
    pub const APP_LIMITED: u32 = 2;

    /// Whether this loss opens a recovery episode.
    pub fn starts_episode(&self) -> bool {
        self.flags & Self::EPISODE_START != 0
    }
}

/// A retransmission timeout (TCP), or the expiry of [`crate::Control::timeout_ns`] without an ACK (datagram hosts).
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Timeout {
    /// Now, ns.
    pub now_ns: u64,
    /// Bytes in flight before the timeout.
    pub in_flight_bytes: u64,
    /// 1 for the first expiry since an ACK, 2 for the next, …
    pub consecutive: u32,
    /// Keeps the layout free of padding.
    pub reserved: u32,
}

/// The loss episode or timeout that began at `started_ns` was no loss: packets had been reordered or delayed.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Undo {
    /// Now, ns.
    pub now_ns: u64,
    /// When the episode began, ns.
    pub started_ns: u64,
}

/// A packet leaves the host. Only for controllers that need [`crate::Needs::SEND_EVENTS`].
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Sent {
    /// Now, ns.
    pub now_ns: u64,
    /// Size of the packet, bytes.
    pub bytes: u64,
    /// Bytes in flight, this packet included.
    pub in_flight_bytes: u64,
}

/// First packet after the flow had nothing in flight.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Resume {
    /// Now, ns.
    pub now_ns: u64,
    /// How long nothing was in flight, ns.
    pub idle_ns: u64,
}
