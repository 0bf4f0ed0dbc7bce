//! How much more than the bandwidth accounts for ACKs tell of at once: links and receivers that hold ACKs back would otherwise
//! leave a window of two bandwidth-delay products short. Source: Linux `tcp_bbr` since 5.1 (not in the draft).
//!
//! ACKs and the bandwidth in; the largest excess of the last 5 to 10 rounds out, bytes.

use crate::event::AckSample;

/// Rounds that one of the two windows lasts.
const WINDOW_ROUNDS: u32 = 5;
/// The excess is at most what the bandwidth delivers in this long, s.
const MAX_EXCESS_S: f64 = 0.1;

#[derive(Clone, Copy, Debug)]
pub(super) struct Aggregation {
    /// A stretch in which ACKs were ahead of the bandwidth: since when, ns, and bytes acknowledged in it.
    epoch_ns: u64,
    epoch_acked: f64,
    /// Largest excess of the current and of the previous window, bytes.
    excess: [f64; 2],
    rounds: u32,
}

impl Aggregation {
    pub(super) fn new(now_ns: u64) -> Self {
        Self { epoch_ns: now_ns, epoch_acked: 0.0, excess: [0.0; 2], rounds: 0 }
    }

    /// The flow was idle: a new stretch begins.
    pub(super) fn restart(&mut self, now_ns: u64) {
        self.epoch_ns = now_ns;
        self.epoch_acked = 0.0;
    }

    pub(super) fn on_ack(&mut self, ack: &AckSample, round_start: bool, bandwidth: f64, cwnd: f64) {
        if ack.acked_bytes == 0 || ack.interval_ns == 0 {
            return;
        }
        if round_start {
            self.rounds += 1;
            if self.rounds >= WINDOW_ROUNDS {
                self.rounds = 0;
                self.excess = [0.0, self.excess[0]];
            }
        }
        let elapsed_s = ack.now_ns.saturating_sub(self.epoch_ns) as f64 * 1e-9;
        let mut expected = bandwidth * elapsed_s;
        // Deviation: Linux also begins anew after 2^20 packets, the capacity of its counter.
        if self.epoch_acked <= expected {
            self.restart(ack.now_ns);
            expected = 0.0;
        }
        self.epoch_acked += ack.acked_bytes as f64;
        let excess = (self.epoch_acked - expected).min(cwnd);
        self.excess[0] = self.excess[0].max(excess);
    }

    /// By how much to widen the window, bytes.
    pub(super) fn extra_bytes(&self, bandwidth: f64) -> f64 {
        self.excess[0].max(self.excess[1]).min(bandwidth * MAX_EXCESS_S)
    }
}
