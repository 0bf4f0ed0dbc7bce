//! What a controller written in Python hears: the events of `paceline_cc::event` as read-only Python objects.
//!
//! Names and units are those of the Rust structs. Where Rust writes 0 for "no sample", Python has `None`.

use paceline_cc::{AckSample, Loss, PathInfo, Resume, Sent, Timeout, Undo};
use pyo3::prelude::*;

fn sample(ns: u64) -> Option<u64> {
    (ns > 0).then_some(ns)
}

fn sample_ms(ns: u64) -> Option<f64> {
    (ns > 0).then_some(ns as f64 / 1e6)
}

/// The path a controller is created for.
#[pyclass(frozen, name = "PathInfo", module = "paceline._native")]
pub struct PyPathInfo(pub PathInfo);

#[pymethods]
impl PyPathInfo {
    /// Time of creation, ns from the start of the run.
    #[getter]
    fn now_ns(&self) -> u64 {
        self.0.now_ns
    }
    /// Size of a full data packet on the wire, bytes.
    #[getter]
    fn packet_bytes(&self) -> u32 {
        self.0.packet_bytes
    }
    /// Window the host starts with, packets.
    #[getter]
    fn initial_window_packets(&self) -> u32 {
        self.0.initial_window_packets
    }
    /// Seed for a controller that draws random numbers; differs per flow.
    #[getter]
    fn seed(&self) -> u64 {
        self.0.seed
    }
    fn __repr__(&self) -> String {
        format!(
            "PathInfo(packet_bytes={}, initial_window_packets={}, seed={})",
            self.0.packet_bytes, self.0.initial_window_packets, self.0.seed
        )
    }
}

/// One acknowledgement that newly acknowledges data.
#[pyclass(frozen, name = "Ack", module = "paceline._native")]
pub struct PyAck(pub AckSample);

#[pymethods]
impl PyAck {
    /// Now, ns from the start of the run.
    #[getter]
    fn now_ns(&self) -> u64 {
        self.0.now_ns
    }
    /// Now, s from the start of the run.
    #[getter]
    fn now_s(&self) -> f64 {
        self.0.now_ns as f64 / 1e9
    }
    /// Bytes newly acknowledged.
    #[getter]
    fn acked_bytes(&self) -> u64 {
        self.0.acked_bytes
    }
    /// Packets newly acknowledged.
    #[getter]
    fn acked_packets(&self) -> u32 {
        self.0.acked_packets
    }
    /// Of these, packets whose congestion-experienced mark was newly reported.
    #[getter]
    fn ce_packets(&self) -> u32 {
        self.0.ce_packets
    }
    /// Bytes in flight after this ACK.
    #[getter]
    fn in_flight_bytes(&self) -> u64 {
        self.0.in_flight_bytes
    }
    /// Bytes in flight before this ACK.
    #[getter]
    fn prior_in_flight_bytes(&self) -> u64 {
        self.0.prior_in_flight_bytes
    }
    /// Round-trip time of the newest packet acknowledged, ns; None when there is no sample.
    #[getter]
    fn rtt_ns(&self) -> Option<u64> {
        sample(self.0.rtt_ns)
    }
    /// Round-trip time of the newest packet acknowledged, ms; None when there is no sample.
    #[getter]
    fn rtt_ms(&self) -> Option<f64> {
        sample_ms(self.0.rtt_ns)
    }
    /// Smoothed RTT (RFC 6298), ns; None before the first sample.
    #[getter]
    fn srtt_ns(&self) -> Option<u64> {
        sample(self.0.srtt_ns)
    }
    /// Smoothed RTT (RFC 6298), ms; None before the first sample.
    #[getter]
    fn srtt_ms(&self) -> Option<f64> {
        sample_ms(self.0.srtt_ns)
    }
    /// Smallest RTT of the connection, ns; None before the first sample.
    #[getter]
    fn min_rtt_ns(&self) -> Option<u64> {
        sample(self.0.min_rtt_ns)
    }
    /// Smallest RTT of the connection, ms; None before the first sample.
    #[getter]
    fn min_rtt_ms(&self) -> Option<f64> {
        sample_ms(self.0.min_rtt_ns)
    }
    /// Delay that the receiver reports to have added, ns; None when unknown.
    #[getter]
    fn ack_delay_ns(&self) -> Option<u64> {
        sample(self.0.ack_delay_ns)
    }
    /// One-way delay of the newest packet acknowledged, ns; None when unknown.
    #[getter]
    fn one_way_delay_ns(&self) -> Option<u64> {
        sample(self.0.one_way_delay_ns)
    }
    /// One-way delay of the newest packet acknowledged, ms; None when unknown.
    #[getter]
    fn one_way_delay_ms(&self) -> Option<f64> {
        sample_ms(self.0.one_way_delay_ns)
    }
    /// When the newest packet acknowledged was sent, ns.
    #[getter]
    fn sent_ns(&self) -> u64 {
        self.0.sent_ns
    }
    /// Delivery rate of the rate sample, bit/s; None when there is no valid sample.
    #[getter]
    fn delivery_rate_bps(&self) -> Option<f64> {
        self.0.delivery_rate().map(|bytes_per_s| bytes_per_s * 8.0)
    }
    /// Rate sample: bytes delivered over `interval_ns`; 0 when there is no valid sample.
    #[getter]
    fn delivered_bytes(&self) -> u64 {
        self.0.delivered_bytes
    }
    /// Rate sample: interval, ns; None when there is no valid sample.
    #[getter]
    fn interval_ns(&self) -> Option<u64> {
        sample(self.0.interval_ns)
    }
    /// Bytes delivered since the start of the connection, this ACK included.
    #[getter]
    fn delivered_total_bytes(&self) -> u64 {
        self.0.delivered_total_bytes
    }
    /// `delivered_total_bytes` when the newest packet acknowledged was sent. A round trip has passed when this reaches
    /// the total noted at its start.
    #[getter]
    fn prior_delivered_total_bytes(&self) -> u64 {
        self.0.prior_delivered_total_bytes
    }
    /// Bytes in flight when the newest packet acknowledged was sent.
    #[getter]
    fn tx_in_flight_bytes(&self) -> u64 {
        self.0.tx_in_flight_bytes
    }
    /// Bytes declared lost between the sending of that packet and now, without those of this step's `Loss`.
    #[getter]
    fn lost_since_sent_bytes(&self) -> u64 {
        self.0.lost_since_sent_bytes
    }
    /// The application, not the window, limited sending.
    #[getter]
    fn app_limited(&self) -> bool {
        self.0.has(AckSample::APP_LIMITED)
    }
    /// The window was full at some point in the last round trip.
    #[getter]
    fn cwnd_limited(&self) -> bool {
        self.0.has(AckSample::CWND_LIMITED)
    }
    /// The newest packet acknowledged had been retransmitted.
    #[getter]
    fn retransmit(&self) -> bool {
        self.0.has(AckSample::RETRANSMIT)
    }
    /// The ACK moves the cumulative acknowledgement.
    #[getter]
    fn cumulative(&self) -> bool {
        self.0.has(AckSample::CUMULATIVE)
    }
    /// The host is repairing losses.
    #[getter]
    fn in_recovery(&self) -> bool {
        self.0.has(AckSample::IN_RECOVERY)
    }
    fn __repr__(&self) -> String {
        let rtt = self.rtt_ms().map_or("None".into(), |ms| ms.to_string());
        format!(
            "Ack(now_s={}, acked_packets={}, rtt_ms={rtt}, in_flight_bytes={})",
            self.now_s(),
            self.0.acked_packets,
            self.0.in_flight_bytes
        )
    }
}

/// Packets newly found lost.
#[pyclass(frozen, name = "Loss", module = "paceline._native")]
pub struct PyLoss(pub Loss);

#[pymethods]
impl PyLoss {
    /// Now, ns from the start of the run.
    #[getter]
    fn now_ns(&self) -> u64 {
        self.0.now_ns
    }
    /// Bytes newly declared lost.
    #[getter]
    fn lost_bytes(&self) -> u64 {
        self.0.lost_bytes
    }
    /// Packets newly declared lost.
    #[getter]
    fn lost_packets(&self) -> u32 {
        self.0.lost_packets
    }
    /// When the newest of them was sent, ns.
    #[getter]
    fn newest_lost_sent_ns(&self) -> u64 {
        self.0.newest_lost_sent_ns
    }
    /// Bytes in flight after the loss is accounted.
    #[getter]
    fn in_flight_bytes(&self) -> u64 {
        self.0.in_flight_bytes
    }
    /// Bytes in flight before it.
    #[getter]
    fn prior_in_flight_bytes(&self) -> u64 {
        self.0.prior_in_flight_bytes
    }
    /// Bytes in flight when the newest of them was sent, itself included.
    #[getter]
    fn tx_in_flight_bytes(&self) -> u64 {
        self.0.tx_in_flight_bytes
    }
    /// Bytes declared lost between the sending of the newest of them and now, these included.
    #[getter]
    fn lost_since_sent_bytes(&self) -> u64 {
        self.0.lost_since_sent_bytes
    }
    /// When the newest of them was sent, the application, not the window, limited sending.
    #[getter]
    fn app_limited(&self) -> bool {
        self.0.flags & Loss::APP_LIMITED != 0
    }
    /// This loss opens a recovery episode: reduce the window once per episode, not once per loss.
    #[getter]
    fn starts_episode(&self) -> bool {
        self.0.starts_episode()
    }
    fn __repr__(&self) -> String {
        format!(
            "Loss(now_ns={}, lost_packets={}, starts_episode={})",
            self.0.now_ns,
            self.0.lost_packets,
            if self.starts_episode() { "True" } else { "False" }
        )
    }
}

/// A retransmission timeout (TCP) or the silence timer of a datagram host.
#[pyclass(frozen, name = "Timeout", module = "paceline._native")]
pub struct PyTimeout(pub Timeout);

#[pymethods]
impl PyTimeout {
    /// Now, ns from the start of the run.
    #[getter]
    fn now_ns(&self) -> u64 {
        self.0.now_ns
    }
    /// Bytes in flight before the timeout.
    #[getter]
    fn in_flight_bytes(&self) -> u64 {
        self.0.in_flight_bytes
    }
    /// 1 for the first expiry since an ACK, 2 for the next, …
    #[getter]
    fn consecutive(&self) -> u32 {
        self.0.consecutive
    }
}

/// The episode that began at `started_ns` was no loss: packets had been reordered or delayed.
#[pyclass(frozen, name = "Undo", module = "paceline._native")]
pub struct PyUndo(pub Undo);

#[pymethods]
impl PyUndo {
    /// Now, ns from the start of the run.
    #[getter]
    fn now_ns(&self) -> u64 {
        self.0.now_ns
    }
    /// When the episode began, ns.
    #[getter]
    fn started_ns(&self) -> u64 {
        self.0.started_ns
    }
}

/// A packet leaves the host.
#[pyclass(frozen, name = "Sent", module = "paceline._native")]
pub struct PySent(pub Sent);

#[pymethods]
impl PySent {
    /// Now, ns from the start of the run.
    #[getter]
    fn now_ns(&self) -> u64 {
        self.0.now_ns
    }
    /// Size of the packet, bytes.
    #[getter]
    fn bytes(&self) -> u64 {
        self.0.bytes
    }
    /// Bytes in flight, this packet included.
    #[getter]
    fn in_flight_bytes(&self) -> u64 {
        self.0.in_flight_bytes
    }
}

/// First packet after the flow had nothing in flight.
#[pyclass(frozen, name = "Resume", module = "paceline._native")]
pub struct PyResume(pub Resume);

#[pymethods]
impl PyResume {
    /// Now, ns from the start of the run.
    #[getter]
    fn now_ns(&self) -> u64 {
        self.0.now_ns
    }
    /// How long nothing was in flight, ns.
    #[getter]
    fn idle_ns(&self) -> u64 {
        self.0.idle_ns
    }
}
