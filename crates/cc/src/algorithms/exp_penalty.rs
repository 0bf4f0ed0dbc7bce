//! Exponential penalty (CS 244 contest, Kumar 2017, section 4.1.2): the bandwidth-delay product times lambda, cut by
//! e^(RTT/minRTT - 1). Computed from scratch per ACK, so that a single bad RTT is forgotten with the next.

use super::path_model::{self, INITIAL_WINDOW_PACKETS, PathModel, bounded};
use crate::controller::{Control, Controller, Field, Needs};
use crate::event::{Ack, Loss, PathInfo, Timeout};
use crate::registry::{Family, Params, Spec};

/// The registry entry.
pub(crate) static SPEC: Spec = Spec {
    name: "exp-penalty",
    title: "Bandwidth-delay product, cut exponentially as the RTT rises",
    family: Family::Contest,
    source: "CS 244 congestion-control contest (Kumar 2017), section 4.1.2, and its code of 26 April 2017",
    about: include_str!("about/exp-penalty.md"),
    needs: Needs::PACING,
    params: &[
        path_model::LAMBDA,
        path_model::GAMMA,
        path_model::BANDWIDTH_WINDOW,
        path_model::MIN_RTT_WINDOW,
        path_model::TIMEOUT,
    ],
    profiles: &[],
    fields: &[
        path_model::BANDWIDTH_FIELD,
        path_model::MIN_RTT_FIELD,
        Field { name: "penalty", unit: "1", doc: "what the last ACK's RTT left of the window" },
    ],
    build,
};

fn build(params: &Params, path: &PathInfo) -> Box<dyn Controller> {
    Box::new(ExpPenalty {
        lambda: params.get("lambda"),
        gamma: params.get("gamma"),
        timeout_rtts: params.get("timeout"),
        window: INITIAL_WINDOW_PACKETS,
        penalty: f64::NAN,
        model: PathModel::new(path_model::settings(params, 0.0), path),
    })
}

struct ExpPenalty {
    lambda: f64,
    gamma: f64,
    timeout_rtts: f64,
    /// w, packets.
    window: f64,
    penalty: f64,
    model: PathModel,
}

impl Controller for ExpPenalty {
    fn on_ack(&mut self, ack: &Ack<'_>) {
        if let Some(rtt_ms) = self.model.on_ack(ack) {
            // An RTT is never below the minimum that it is part of: the penalty is at most 1.
            self.penalty = libm::exp(1.0 - rtt_ms / self.model.min_rtt_ms);
            self.window = bounded(self.lambda * self.model.bdp() * self.penalty);
        }
    }

    fn on_loss(&mut self, _loss: &Loss) {}

    fn on_rto(&mut self, _timeout: &Timeout) {}

    fn on_path_change(&mut self, path: &PathInfo) {
        self.model.on_path_change(path);
    }

    fn control(&self) -> Control {
        self.model.control(self.window, self.model.bandwidth, self.gamma, self.timeout_rtts)
    }

    fn observe(&self, out: &mut [f64]) {
        out.copy_from_slice(&[self.model.bandwidth, self.model.min_rtt_ms, self.penalty]);
    }
}
