//! A monitor interval: what became of the packets of one trial, and what that is worth.

use crate::event::AckSample;

/// Round trips after an interval's end from which on missing news of its packets is waited for no longer.
const GRACE_RTTS: u64 = 2;

/// §3.2: utility of a rate.
#[derive(Clone, Copy, Debug)]
pub(super) struct Utility {
    /// t.
    pub(super) exponent: f64,
    /// b.
    pub(super) latency: f64,
    /// c.
    pub(super) loss: f64,
    /// RTT gradients smaller than this count as none (§4.4).
    pub(super) tolerance: f64,
}

impl Utility {
    /// Eq. (2): u = x^t - b x dRTT/dT - c x L, x in Mbit/s. A falling RTT is no merit.
    pub(super) fn of(&self, interval: &Interval) -> f64 {
        let x = interval.rate * 8e-6;
        let slope = interval.rtt_slope();
        let slope = if slope < self.tolerance { 0.0 } else { slope };
        libm::pow(x, self.exponent) - self.latency * x * slope - self.loss * x * interval.loss()
    }
}

/// The packets sent from `start_ns` to `end_ns` at `rate`.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Interval {
    /// Bytes/s.
    pub(super) rate: f64,
    start_ns: u64,
    pub(super) end_ns: u64,
    pub(super) sent: f64,
    acked: f64,
    pub(super) lost: f64,
    /// Sums for the regression of RTT over sending time, both in s from the first sample.
    first: Option<(u64, u64)>,
    n: f64,
    t: f64,
    r: f64,
    tt: f64,
    tr: f64,
}

impl Interval {
    pub(super) fn new(rate: f64, now_ns: u64, length_ns: u64) -> Self {
        let end_ns = now_ns.saturating_add(length_ns);
        Self { rate, start_ns: now_ns, end_ns, ..Self::default() }
    }

    /// Whether a packet sent at `sent_ns` belongs to it.
    pub(super) fn holds(&self, sent_ns: u64) -> bool {
        (self.start_ns..self.end_ns).contains(&sent_ns)
    }

    pub(super) fn on_ack(&mut self, ack: &AckSample) {
        self.acked += f64::from(ack.acked_packets);
        if ack.rtt_ns == 0 {
            return;
        }
        let (t0_ns, r0_ns) = *self.first.get_or_insert((ack.sent_ns, ack.rtt_ns));
        let t = (ack.sent_ns as f64 - t0_ns as f64) * 1e-9;
        let r = (ack.rtt_ns as f64 - r0_ns as f64) * 1e-9;
        self.n += 1.0;
        self.t += t;
        self.r += r;
        self.tt += t * t;
        self.tr += t * r;
    }

    /// Every packet is accounted for, or should have been long ago.
    pub(super) fn is_known(&self, now_ns: u64, srtt_ns: u64) -> bool {
        let overdue_ns = self.end_ns.saturating_add(srtt_ns.saturating_mul(GRACE_RTTS));
        (self.sent > 0.0 && self.acked + self.lost >= self.sent) || now_ns >= overdue_ns
    }

    /// L.
    pub(super) fn loss(&self) -> f64 {
        let known = self.acked + self.lost;
        if known > 0.0 { self.lost / known } else { 0.0 }
    }

    /// §4.4: dRTT/dT by linear regression, 0 without two different times.
    pub(super) fn rtt_slope(&self) -> f64 {
        let spread = self.n * self.tt - self.t * self.t;
        if spread > 0.0 { (self.n * self.tr - self.t * self.r) / spread } else { 0.0 }
    }
}
