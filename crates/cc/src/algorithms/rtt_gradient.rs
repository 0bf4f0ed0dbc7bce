//! RTT gradient (CS 244 contest, Kumar 2017, section 4.1.3, after TIMELY): the bandwidth-delay product times lambda, cut in
//! proportion to the smoothed gradient of the RTT while that is positive.

use super::path_model::{self, INITIAL_WINDOW_PACKETS, PathModel, bounded};
use crate::controller::{Control, Controller, Field, Needs};
use crate::event::{Ack, Loss, PathInfo, Timeout};
use crate::registry::{Family, Param, Params, Profile, Spec};

/// The registry entry.
pub(crate) static SPEC: Spec = Spec {
    name: "rtt-gradient",
    title: "Bandwidth-delay product, cut by the RTT gradient",
    family: Family::Contest,
    source: "CS 244 congestion-control contest (Kumar 2017), section 4.1.3, and its code of 26 April 2017",
    about: include_str!("about/rtt-gradient.md"),
    needs: Needs::PACING,
    params: &[
        path_model::LAMBDA,
        path_model::GAMMA,
        Param::number(
            "alpha",
            "1",
            0.5,
            (0.0, 1.0),
            "weight alpha of a new sample in the gradient",
        ),
        Param::number("beta", "1", 2.0, (0.0, 100.0), "cut beta: w *= 1 - beta g for g > 0"),
        path_model::BANDWIDTH_WINDOW,
        path_model::MIN_RTT_WINDOW,
        path_model::TIMEOUT,
    ],
    profiles: &[Profile {
        name: "released",
        source: "the gradient cut's constants in the contest entry's last code",
        values: &[("alpha", 0.7), ("beta", 1.0)],
    }],
    fields: &[
        path_model::BANDWIDTH_FIELD,
        path_model::MIN_RTT_FIELD,
        Field { name: "gradient", unit: "1", doc: "smoothed RTT gradient g" },
    ],
    build,
};

fn build(params: &Params, path: &PathInfo) -> Box<dyn Controller> {
    Box::new(RttGradient {
        lambda: params.get("lambda"),
        gamma: params.get("gamma"),
        beta: params.get("beta"),
        timeout_rtts: params.get("timeout"),
        window: INITIAL_WINDOW_PACKETS,
        model: PathModel::new(path_model::settings(params, params.get("alpha")), path),
    })
}

struct RttGradient {
    lambda: f64,
    gamma: f64,
    beta: f64,
    timeout_rtts: f64,
    /// w, packets.
    window: f64,
    model: PathModel,
}

impl Controller for RttGradient {
    fn on_ack(&mut self, ack: &Ack<'_>) {
        if self.model.on_ack(ack).is_some() {
            let cut = 1.0 - self.beta * self.model.gradient.max(0.0);
            self.window = bounded(self.lambda * self.model.bdp() * cut);
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
        let model = &self.model;
        out.copy_from_slice(&[model.bandwidth, model.min_rtt_ms, model.gradient]);
    }
}
