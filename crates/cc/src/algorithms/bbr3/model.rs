//! What a flow believes of its path (§5.5): how fast it delivers and how much may be in flight.
//!
//! Two time scales: the largest delivery rate of two probing cycles and what a probe found too much (long-term), and what the
//! losses since the last probe leave of both (short-term).

use crate::event::AckSample;
use crate::filters::WindowedMax;

/// MaxBwFilterLen: the current probing cycle and the one before.
const MAX_BW_CYCLES: u64 = 1;

/// The rate sample RS of §2.3, in bytes and bytes/s.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sample {
    /// Delivered between the sending of the packet and now, and the rate of that; 0 without a valid sample.
    pub(super) delivered: f64,
    pub(super) rate: f64,
    pub(super) prior_delivered: u64,
    pub(super) flight: Flight,
}

/// What became of the packets in flight when one was sent.
#[derive(Clone, Copy, Debug)]
pub(super) struct Flight {
    /// In flight when the packet was sent, itself included; 0 = unknown.
    pub(super) bytes: f64,
    /// Declared lost since.
    pub(super) lost: f64,
    pub(super) app_limited: bool,
}

impl Flight {
    /// §5.5.10.2 IsInflightTooHigh.
    pub(super) fn was_too_high(&self, loss_threshold: f64) -> bool {
        // As in Linux, a packet of which nothing is known says nothing.
        self.bytes > 0.0 && self.lost > self.bytes * loss_threshold
    }

    /// §5.5.10.2 InflightAtLoss: how much was in flight when, within the last `size` bytes of it, losses crossed the threshold.
    pub(super) fn at_threshold(&self, size: f64, loss_threshold: f64) -> f64 {
        let flight_before = (self.bytes - size).max(0.0);
        let lost_before = self.lost - size;
        let budget = loss_threshold * flight_before - lost_before;
        // Linux: earlier losses may have crossed it.
        flight_before + budget.max(0.0) / (1.0 - loss_threshold)
    }
}

/// The model.
#[derive(Clone, Debug)]
pub(super) struct Model {
    /// Delivery rates in bytes/s over probing cycles.
    max_bw: WindowedMax<2>,
    cycle: u64,
    /// Largest rate and volume delivered in the last round trip.
    bw_latest: f64,
    pub(super) inflight_latest: f64,
    /// The round in which losses are looked for ends with data sent from here on.
    loss_round_delivered: u64,
    pub(super) loss_round_start: bool,
    loss_in_round: bool,
    /// Bounds; infinite = none.
    pub(super) bw_shortterm: f64,
    pub(super) inflight_shortterm: f64,
    pub(super) inflight_longterm: f64,
}

impl Model {
    pub(super) fn new() -> Self {
        Self {
            max_bw: WindowedMax::new(MAX_BW_CYCLES),
            cycle: 0,
            bw_latest: 0.0,
            inflight_latest: 0.0,
            loss_round_delivered: 0,
            loss_round_start: false,
            loss_in_round: false,
            bw_shortterm: f64::INFINITY,
            inflight_shortterm: f64::INFINITY,
            inflight_longterm: f64::INFINITY,
        }
    }

    /// Bytes/s; 0 before the first sample.
    pub(super) fn max_bw(&self) -> f64 {
        self.max_bw.best().unwrap_or(0.0)
    }

    /// §5.5.10.3 BoundBWForModel, bytes/s.
    pub(super) fn bw(&self) -> f64 {
        self.max_bw().min(self.bw_shortterm)
    }

    /// §5.5.5: a sample of an application-limited flow counts only if it is larger.
    pub(super) fn update_max_bw(&mut self, sample: &Sample) {
        if sample.rate > 0.0 && (sample.rate >= self.max_bw() || !sample.flight.app_limited) {
            self.max_bw.update(self.cycle, sample.rate);
        }
    }

    /// §5.5.6.
    pub(super) fn advance_max_bw(&mut self) {
        self.cycle += 1;
    }

    /// §5.5.10.3 UpdateLatestDeliverySignals: near the start of an ACK.
    pub(super) fn update_latest(&mut self, sample: &Sample, ack: &AckSample) {
        self.bw_latest = self.bw_latest.max(sample.rate);
        self.inflight_latest = self.inflight_latest.max(sample.delivered);
        self.loss_round_start = sample.prior_delivered >= self.loss_round_delivered;
        if self.loss_round_start {
            self.loss_round_delivered = ack.delivered_total_bytes;
        }
    }

    /// §5.5.10.3 AdvanceLatestDeliverySignals: near its end.
    pub(super) fn advance_latest(&mut self, sample: &Sample) {
        if self.loss_round_start {
            self.bw_latest = sample.rate;
            self.inflight_latest = sample.delivered;
        }
    }

    /// §5.5.10.2 NoteLoss: the round that counts begins with its first loss.
    pub(super) fn note_loss(&mut self, delivered_total_bytes: u64) {
        if !self.loss_in_round {
            self.loss_round_delivered = delivered_total_bytes;
        }
        self.loss_in_round = true;
    }

    /// §5.5.10.3 AdaptLowerBoundsFromCongestion, at the end of a round: one with losses lowers the bounds towards what was delivered
    /// in it. Not while probing, when losses are expected.
    pub(super) fn end_loss_round(&mut self, probing: bool, cwnd: f64, beta: f64) {
        if self.loss_in_round && !probing {
            if self.bw_shortterm.is_infinite() {
                self.bw_shortterm = self.max_bw();
            }
            if self.inflight_shortterm.is_infinite() {
                self.inflight_shortterm = cwnd;
            }
            self.bw_shortterm = self.bw_latest.max(beta * self.bw_shortterm);
            self.inflight_shortterm = self.inflight_latest.max(beta * self.inflight_shortterm);
        }
        self.loss_in_round = false;
    }

    /// §5.5.10.3 ResetCongestionSignals.
    pub(super) fn reset_congestion_signals(&mut self) {
        self.loss_in_round = false;
        self.bw_latest = 0.0;
        self.inflight_latest = 0.0;
    }

    /// §5.5.10.3 ResetShortTermModel.
    pub(super) fn reset_shortterm(&mut self) {
        self.bw_shortterm = f64::INFINITY;
        self.inflight_shortterm = f64::INFINITY;
    }

    /// §5.5.11.2: restores the bounds of before a loss that was none.
    pub(super) fn restore(&mut self, before: &Bounds) {
        self.loss_in_round = false;
        self.bw_shortterm = self.bw_shortterm.max(before.bw_shortterm);
        self.inflight_shortterm = self.inflight_shortterm.max(before.inflight_shortterm);
        self.inflight_longterm = self.inflight_longterm.max(before.inflight_longterm);
    }

    pub(super) fn bounds(&self) -> Bounds {
        Bounds {
            bw_shortterm: self.bw_shortterm,
            inflight_shortterm: self.inflight_shortterm,
            inflight_longterm: self.inflight_longterm,
        }
    }
}

/// What losses lower.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Bounds {
    bw_shortterm: f64,
    inflight_shortterm: f64,
    inflight_longterm: f64,
}
