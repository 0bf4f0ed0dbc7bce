//! A fixed window: the contest's part A, and the simplest controller there is.

use crate::controller::{Control, Controller, Needs};
use crate::event::{Ack, Loss, PathInfo, Timeout};
use crate::registry::{Kind, Param, Params, Spec};

/// The registry entry.
pub(crate) static SPEC: Spec = Spec {
    name: "window",
    title: "Fixed window",
    source: "CS 244 congestion-control contest (Kumar 2017), part A",
    needs: Needs::NONE,
    params: &[Param {
        name: "packets",
        kind: Kind::Integer,
        unit: "packets",
        default: 12.0,
        min: 1.0,
        max: 10_000_000.0,
        doc: "window w; 12 is the contest's best",
    }],
    profiles: &[],
    fields: &[],
    build,
};

fn build(params: &Params, path: &PathInfo) -> Box<dyn Controller> {
    Box::new(Window { cwnd_bytes: params.get("packets") as u64 * u64::from(path.packet_bytes) })
}

struct Window {
    cwnd_bytes: u64,
}

impl Controller for Window {
    fn on_ack(&mut self, _ack: &Ack<'_>) {}
    fn on_loss(&mut self, _loss: &Loss) {}
    fn on_rto(&mut self, _timeout: &Timeout) {}
    fn control(&self) -> Control {
        Control { timeout_ns: 1_000_000_000, ..Control::window(self.cwnd_bytes) }
    }
}
