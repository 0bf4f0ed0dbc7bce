//! A fixed window: the contest's part A, and the simplest controller there is.

use super::{packet_size, window_bytes};
use crate::controller::{Control, Controller, Needs};
use crate::event::{Ack, Loss, PathInfo, Timeout};
use crate::registry::{Family, Param, Params, Spec};

/// The registry entry.
pub(crate) static SPEC: Spec = Spec {
    name: "window",
    title: "Fixed window",
    family: Family::Contest,
    source: "CS 244 congestion-control contest (Kumar 2017), part A",
    about: include_str!("about/window.md"),
    needs: Needs::NONE,
    params: &[Param::integer(
        "packets",
        "packets",
        12.0,
        (1.0, 10_000_000.0),
        "window w; 12 is the contest's best",
    )],
    profiles: &[],
    fields: &[],
    build,
};

fn build(params: &Params, path: &PathInfo) -> Box<dyn Controller> {
    Box::new(Window { packets: params.get("packets"), packet_bytes: packet_size(path) })
}

struct Window {
    packets: f64,
    packet_bytes: f64,
}

impl Controller for Window {
    fn on_ack(&mut self, _ack: &Ack<'_>) {}

    fn on_loss(&mut self, _loss: &Loss) {}

    fn on_rto(&mut self, _timeout: &Timeout) {}

    fn on_path_change(&mut self, path: &PathInfo) {
        self.packet_bytes = packet_size(path);
    }

    fn control(&self) -> Control {
        let window = window_bytes(self.packets, self.packet_bytes);
        Control { timeout_ns: 1_000_000_000, ..Control::window(window) }
    }
}
