//! What is measured of one flow while it runs, apart at its two ends.

use paceline_net::{PS_PER_MS, PS_PER_NS, Picos};

use crate::stats::{Distribution, Resolution, SignalDelay};

/// A mean over the samples between two rows of the series.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct IntervalMean {
    sum_ns: u64,
    count: u64,
}

impl IntervalMean {
    #[inline]
    fn add(&mut self, ns: u64) {
        self.sum_ns += ns;
        self.count += 1;
    }

    /// The mean since the last call, ms; NaN without samples.
    pub(crate) fn take_ms(&mut self) -> f64 {
        let Self { sum_ns, count } = std::mem::take(self);
        sum_ns as f64 / count as f64 / 1e6
    }
}

/// At the sender: round-trip times. The distribution holds those from the warm-up on.
#[derive(Debug)]
pub(crate) struct RttMeter {
    pub(crate) rtt: Distribution,
    pub(crate) interval: IntervalMean,
}

impl RttMeter {
    pub(crate) fn new(warmup: Picos, resolution: Resolution) -> Self {
        let rtt = Distribution::new(warmup, resolution.counters);
        Self { rtt, interval: IntervalMean::default() }
    }

    #[inline]
    pub(crate) fn on_rtt(&mut self, now: Picos, rtt_ns: u64) {
        if rtt_ns == 0 {
            return;
        }
        self.interval.add(rtt_ns);
        self.rtt.add(now, rtt_ns);
    }
}

/// At the receiver: what arrives. Distributions hold what came in `[warmup, end]`; counters the whole run.
#[derive(Debug)]
pub(crate) struct DeliveryMeter {
    /// The part of a packet's travel that no queue is to blame for.
    propagation: Picos,
    pub(crate) queueing: Distribution,
    pub(crate) signal: SignalDelay,
    /// Data packets and their bytes that reached the receiver.
    pub(crate) packets: u64,
    pub(crate) bytes: u64,
    /// Of those after the warm-up: bytes on the wire, and payload counted once.
    pub(crate) window_bytes: u64,
    pub(crate) window_payload_bytes: u64,
    pub(crate) interval: IntervalMean,
}

impl DeliveryMeter {
    pub(crate) fn new(warmup: Picos, propagation: Picos, resolution: Resolution) -> Self {
        Self {
            propagation,
            queueing: Distribution::new(warmup, resolution.counters),
            signal: SignalDelay::new(resolution.places),
            packets: 0,
            bytes: 0,
            window_bytes: 0,
            window_payload_bytes: 0,
            interval: IntervalMean::default(),
        }
    }

    /// A data packet of `bytes`, sent at `sent`, is here; `payload` is 0 for a duplicate.
    #[inline]
    pub(crate) fn on_delivery(&mut self, now: Picos, bytes: u64, payload: u64, sent: Picos) {
        self.packets += 1;
        self.bytes += bytes;
        let left = now.saturating_sub(self.propagation).max(sent);
        let delay_ns = (left - sent) / PS_PER_NS;
        self.interval.add(delay_ns);
        if self.queueing.add(now, delay_ns) {
            self.window_bytes += bytes;
            self.window_payload_bytes += payload;
            let sent_ms = sent / PS_PER_MS;
            self.signal.add(sent_ms, left / PS_PER_MS - sent_ms);
        }
    }
}
