//! Cycle gain (CS 244 contest, Kumar 2017, section 4.1.4, after BBR): lambda bandwidth-delay products, paced by a gain that goes up
//! for one minimum RTT, down for the next, and then rests.

use super::path_model::{self, INITIAL_WINDOW_PACKETS, PathModel, bounded};
use crate::controller::{Control, Controller, Field, Needs};
use crate::event::{Ack, Loss, PathInfo, Timeout};
use crate::registry::{Family, Param, Params, Profile, Spec};

const NS_PER_MS: f64 = 1e6;

/// The registry entry.
pub(crate) static SPEC: Spec = Spec {
    name: "cycle-gain",
    title: "Bandwidth-delay product, paced with BBR's gain cycle",
    family: Family::Contest,
    source: "CS 244 congestion-control contest (Kumar 2017), sections 4.1.1 and 4.1.4, and its code of 26 April 2017",
    about: include_str!("about/cycle-gain.md"),
    needs: Needs::PACING,
    params: &[
        path_model::LAMBDA,
        path_model::GAMMA.with_default(0.9),
        Param::number("up", "1", 1.25, (0.01, 100.0), "pacing gain of the first phase"),
        Param::number("down", "1", 0.75, (0.01, 100.0), "pacing gain of the second phase"),
        Param::integer(
            "phases",
            "1",
            5.0,
            (2.0, 100.0),
            "phases of a cycle; all but two have gain 1",
        ),
        path_model::BANDWIDTH_WINDOW,
        path_model::MIN_RTT_WINDOW,
        path_model::TIMEOUT,
    ],
    profiles: &[Profile {
        name: "bbr",
        source: "BBR (Cardwell et al. 2016): eight phases, whose mean gain is 1",
        values: &[("gamma", 1.0), ("phases", 8.0)],
    }],
    fields: &[
        path_model::BANDWIDTH_FIELD,
        path_model::MIN_RTT_FIELD,
        Field { name: "gain", unit: "1", doc: "pacing gain of the phase" },
    ],
    build,
};

fn build(params: &Params, path: &PathInfo) -> Box<dyn Controller> {
    Box::new(CycleGain {
        lambda: params.get("lambda"),
        gamma: params.get("gamma"),
        up: params.get("up"),
        down: params.get("down"),
        phases: params.get("phases") as u32,
        phase: 0,
        phase_start_ns: path.now_ns,
        timeout_rtts: params.get("timeout"),
        window: INITIAL_WINDOW_PACKETS,
        model: PathModel::new(path_model::settings(params, 0.0), path),
    })
}

struct CycleGain {
    lambda: f64,
    gamma: f64,
    up: f64,
    down: f64,
    phases: u32,
    phase: u32,
    phase_start_ns: u64,
    timeout_rtts: f64,
    /// w, packets.
    window: f64,
    model: PathModel,
}

impl CycleGain {
    /// Pacing gain of the phase. The code has its reciprocal, a factor of the gap.
    fn gain(&self) -> f64 {
        match self.phase {
            0 => self.up,
            1 => self.down,
            _ => 1.0,
        }
    }
}

impl Controller for CycleGain {
    fn on_ack(&mut self, ack: &Ack<'_>) {
        if self.model.on_ack(ack).is_none() {
            return;
        }
        let elapsed_ns = ack.now_ns.saturating_sub(self.phase_start_ns);
        if elapsed_ns as f64 > self.model.min_rtt_ms * NS_PER_MS {
            self.phase = (self.phase + 1) % self.phases;
            self.phase_start_ns = ack.now_ns;
        }
        self.window = bounded(self.lambda * self.model.bdp());
    }

    fn on_loss(&mut self, _loss: &Loss) {}

    fn on_rto(&mut self, _timeout: &Timeout) {}

    fn on_path_change(&mut self, path: &PathInfo) {
        self.model.on_path_change(path);
    }

    fn control(&self) -> Control {
        let gap = self.gamma / self.gain();
        self.model.control(self.window, self.model.bandwidth, gap, self.timeout_rtts)
    }

    fn observe(&self, out: &mut [f64]) {
        out.copy_from_slice(&[self.model.bandwidth, self.model.min_rtt_ms, self.gain()]);
    }
}
