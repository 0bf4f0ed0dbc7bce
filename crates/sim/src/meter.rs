//! What is measured of one flow while it runs.

use paceline_net::{PS_PER_MS, PS_PER_NS, Picos};

use crate::stats::{Distribution, Resolution, SignalDelay};

/// Measurements of a flow. Distributions hold what fell in `[warmup, end]`; counters the whole run.
#[derive(Debug)]
pub(crate) struct FlowMeter {
    warmup: Picos,
    pub(crate) rtt: Distribution,
    pub(crate) queueing: Distribution,
    pub(crate) signal: SignalDelay,
    /// Data packets and their bytes that reached the receiver.
    pub(crate) delivered_packets: u64,
    pub(crate) delivered_bytes: u64,
    /// Of those after the warm-up: bytes on the wire, and payload counted once.
    pub(crate) window_bytes: u64,
    pub(crate) window_payload_bytes: u64,
    /// Data packets that links dropped.
    pub(crate) dropped_packets: u64,
    pub(crate) interval: Interval,
}

/// What is averaged between two samples of the series.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Interval {
    rtt_sum_ns: u64,
    rtt_count: u64,
    queueing_sum_ns: u64,
    queueing_count: u64,
}

impl Interval {
    pub(crate) fn rtt_ms(&self) -> f64 {
        self.rtt_sum_ns as f64 / self.rtt_count as f64 / 1e6
    }

    pub(crate) fn queueing_ms(&self) -> f64 {
        self.queueing_sum_ns as f64 / self.queueing_count as f64 / 1e6
    }
}

impl FlowMeter {
    pub(crate) fn new(warmup: Picos, resolution: Resolution) -> Self {
        Self {
            warmup,
            rtt: Distribution::new(resolution.counters),
            queueing: Distribution::new(resolution.counters),
            signal: SignalDelay::new(resolution.places),
            delivered_packets: 0,
            delivered_bytes: 0,
            window_bytes: 0,
            window_payload_bytes: 0,
            dropped_packets: 0,
            interval: Interval::default(),
        }
    }

    /// Memory it holds beyond its own size, bytes.
    pub(crate) fn heap_bytes(&self) -> usize {
        self.rtt.heap_bytes() + self.queueing.heap_bytes() + self.signal.heap_bytes()
    }

    #[inline]
    pub(crate) fn on_rtt(&mut self, now: Picos, rtt_ns: u64) {
        if rtt_ns == 0 {
            return;
        }
        self.interval.rtt_sum_ns += rtt_ns;
        self.interval.rtt_count += 1;
        if now >= self.warmup {
            self.rtt.add(rtt_ns);
        }
    }

    /// A data packet of `bytes` reached the receiver; `payload` is 0 for a duplicate. `sent_ps` is when it was sent, if
    /// that is known, and `propagation` the part of its travel that no queue is to blame for.
    #[inline]
    pub(crate) fn on_delivery(
        &mut self,
        now: Picos,
        bytes: u64,
        payload: u64,
        sent_ps: Option<Picos>,
        propagation: Picos,
    ) {
        self.delivered_packets += 1;
        self.delivered_bytes += bytes;
        let counts = now >= self.warmup;
        if counts {
            self.window_bytes += bytes;
            self.window_payload_bytes += payload;
        }
        let Some(sent) = sent_ps else { return };
        let left = now.saturating_sub(propagation).max(sent);
        let delay_ns = (left - sent) / PS_PER_NS;
        self.interval.queueing_sum_ns += delay_ns;
        self.interval.queueing_count += 1;
        if counts {
            self.queueing.add(delay_ns);
            let sent_ms = sent / PS_PER_MS;
            self.signal.add(sent_ms, left / PS_PER_MS - sent_ms);
        }
    }
}
