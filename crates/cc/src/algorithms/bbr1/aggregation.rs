//! How much more than the bandwidth accounts for ACKs tell of at once: links and receivers that hold ACKs back would otherwise
//! leave a window of two bandwidth-delay products short. Source: Linux `tcp_bbr` since 5.1 (not in the draft).
//!
//! ACKs and the bandwidth in; the largest excess of the last 5 to 10 rounds out, bytes.

use super::super::bbr_part::AckEpoch;
use crate::event::AckSample;

/// Rounds that one of the two windows lasts.
const WINDOW_ROUNDS: u32 = 5;
/// The excess is at most what the bandwidth delivers in this long, s.
const MAX_EXCESS_S: f64 = 0.1;

#[derive(Clone, Copy, Debug)]
pub(super) struct Aggregation {
    epoch: AckEpoch,
    /// Largest excess of the current and of the previous window, bytes.
    excess: [f64; 2],
    rounds: u32,
}

impl Aggregation {
    pub(super) fn new(now_ns: u64) -> Self {
        Self { epoch: AckEpoch::new(now_ns), excess: [0.0; 2], rounds: 0 }
    }

    /// The flow was idle: a new stretch begins.
    pub(super) fn restart(&mut self, now_ns: u64) {
        self.epoch = AckEpoch::new(now_ns);
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
        let excess = self.epoch.on_ack(ack, bandwidth).min(cwnd);
        self.excess[0] = self.excess[0].max(excess);
    }

    /// By how much to widen the window, bytes.
    pub(super) fn extra_bytes(&self, bandwidth: f64) -> f64 {
        self.excess[0].max(self.excess[1]).min(bandwidth * MAX_EXCESS_S)
    }
}
