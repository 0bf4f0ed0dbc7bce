//! What the versions of BBR have in common: how they find the pipe full, pace, notice that ACKs are held back, and probe the RTT.

use crate::event::AckSample;
use crate::round::RoundCounter;

/// The rate has reached a plateau when it has grown by less than a quarter in three rounds.
const PLATEAU_GROWTH: f64 = 1.25;
const PLATEAU_ROUNDS: u32 = 3;

/// Whether sending faster still brings a higher rate.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Plateau {
    baseline: f64,
    stalled_rounds: u32,
}

impl Plateau {
    /// Looks anew for growth over `baseline`.
    pub(super) fn restart(&mut self, baseline: f64) {
        *self = Self { baseline, stalled_rounds: 0 };
    }

    /// A round brought `rate`; true when there is no more to find.
    pub(super) fn on_round(&mut self, rate: f64) -> bool {
        if rate >= self.baseline * PLATEAU_GROWTH {
            self.restart(rate);
        } else {
            self.stalled_rounds += 1;
        }
        self.stalled_rounds >= PLATEAU_ROUNDS
    }
}

/// The pacing rate.
#[derive(Clone, Copy, Debug)]
pub(super) struct Pacing {
    /// Bytes/s.
    pub(super) rate: f64,
    has_rtt: bool,
}

impl Pacing {
    /// Without an RTT: `gain` windows within a millisecond.
    pub(super) fn new(gain: f64, window_bytes: f64) -> Self {
        Self { rate: gain * window_bytes / 1e-3, has_rtt: false }
    }

    /// The first RTT: `gain` windows within it. The drafts take that of the handshake; like Linux we take the first one we hear of.
    pub(super) fn on_rtt(&mut self, srtt_ns: u64, gain: f64, window_bytes: f64) {
        if !self.has_rtt && srtt_ns > 0 {
            self.has_rtt = true;
            self.rate = gain * window_bytes / (srtt_ns as f64 * 1e-9);
        }
    }

    /// Paces at `rate`; only upwards until the pipe was found full.
    pub(super) fn set(&mut self, rate: f64, filled_pipe: bool) {
        if filled_pipe || rate > self.rate {
            self.rate = rate;
        }
    }
}

/// A stretch in which ACKs are ahead of the bandwidth.
#[derive(Clone, Copy, Debug)]
pub(super) struct AckEpoch {
    start_ns: u64,
    acked_bytes: f64,
}

impl AckEpoch {
    pub(super) fn new(now_ns: u64) -> Self {
        Self { start_ns: now_ns, acked_bytes: 0.0 }
    }

    /// By how much the data acknowledged in this stretch exceeds what the bandwidth accounts for, bytes.
    pub(super) fn on_ack(&mut self, ack: &AckSample, bandwidth: f64) -> f64 {
        let elapsed_s = ack.now_ns.saturating_sub(self.start_ns) as f64 * 1e-9;
        let mut expected = bandwidth * elapsed_s;
        // Deviation: Linux also begins anew after 2^20 packets, the capacity of its counter.
        if self.acked_bytes <= expected {
            *self = Self::new(ack.now_ns);
            expected = 0.0;
        }
        self.acked_bytes += ack.acked_bytes as f64;
        self.acked_bytes - expected
    }
}

/// A visit to ProbeRTT, and what its packets are worth.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct RttProbe {
    /// When it may end, ns; none before the path has emptied.
    done_ns: Option<u64>,
    round_done: bool,
    /// Packets sent from this time on, and before this much was delivered, tell nothing of the bandwidth: too few were in flight.
    low_rate: Option<(u64, u64)>,
}

impl RttProbe {
    pub(super) fn begin(&mut self, now_ns: u64) {
        *self = Self { done_ns: None, round_done: false, low_rate: Some((now_ns, 0)) };
    }

    /// An ACK during the probe: waits until no more than `target_bytes` are in flight, then for `duration_ns` and a round. True when
    /// it is over.
    pub(super) fn on_ack(
        &mut self,
        ack: &AckSample,
        target_bytes: f64,
        duration_ns: u64,
        round_start: bool,
        rounds: &mut RoundCounter,
    ) -> bool {
        if let Some((_, until)) = &mut self.low_rate {
            *until = ack.delivered_total_bytes.saturating_add(ack.in_flight_bytes);
        }
        if self.done_ns.is_none() {
            if ack.in_flight_bytes as f64 <= target_bytes {
                self.done_ns = Some(ack.now_ns.saturating_add(duration_ns));
                self.round_done = false;
                rounds.restart(ack.delivered_total_bytes);
            }
            return false;
        }
        self.round_done |= round_start;
        self.round_done && self.is_due(ack.now_ns)
    }

    /// Whether it has lasted long enough.
    pub(super) fn is_due(&self, now_ns: u64) -> bool {
        self.done_ns.is_some_and(|done_ns| now_ns > done_ns)
    }

    /// Whether the sample comes from such a probe.
    pub(super) fn covers(&self, ack: &AckSample) -> bool {
        self.low_rate.is_some_and(|(from_ns, until)| {
            ack.sent_ns >= from_ns && ack.prior_delivered_total_bytes <= until
        })
    }
}
