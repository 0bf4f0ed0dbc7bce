//! RTT threshold (CS 244 contest, Kumar 2017, section 3.1): the window grows by 1/w per ACK while the RTT is below a threshold and
//! shrinks by 1/w while it is not. The contest's sender does not see losses, only silence.

use super::{MAX_WINDOW_PACKETS, packet_size, window_bytes};
use crate::controller::{Control, Controller, Field, Needs};
use crate::event::{Ack, AckSample, Loss, PathInfo, Timeout};
use crate::registry::{Family, Param, Params, Spec};

/// The registry entry.
pub(crate) static SPEC: Spec = Spec {
    name: "delay-threshold",
    title: "Additive increase below an RTT threshold, additive decrease above",
    family: Family::Contest,
    source: "CS 244 congestion-control contest (Kumar 2017), section 3.1, and its released code",
    about: include_str!("about/delay-threshold.md"),
    needs: Needs::NONE,
    params: &[
        Param::number("initial_window", "packets", 50.0, (1.0, 1_000_000.0), "window at the start"),
        Param::duration(
            "threshold",
            0.075,
            (0.000_001, 60.0),
            "RTT from which on the window shrinks; 75 ms is the contest's best",
        ),
        Param::duration("timeout", 1.0, (0.001, 60.0), "silence after which the window is halved"),
    ],
    profiles: &[],
    fields: &[Field { name: "window", unit: "packets", doc: "window w, with its fraction" }],
    build,
};

fn build(params: &Params, path: &PathInfo) -> Box<dyn Controller> {
    Box::new(DelayThreshold {
        w: params.get("initial_window"),
        threshold_ns: params.get_ns("threshold"),
        timeout_ns: params.get_ns("timeout"),
        packet_bytes: packet_size(path),
    })
}

struct DelayThreshold {
    /// Window w, packets.
    w: f64,
    threshold_ns: u64,
    timeout_ns: u64,
    packet_bytes: f64,
}

impl Controller for DelayThreshold {
    fn on_ack(&mut self, ack: &Ack<'_>) {
        let step = f64::from(ack.acked_packets) / self.w;
        // An RTT of 0 is no sample.
        if ack.rtt_ns >= self.threshold_ns {
            // Deviation: w stays at 1 or above. Below, a single ACK can multiply it, and the report sees it stall there.
            self.w = (self.w - step).max(1.0);
        } else if ack.rtt_ns > 0 && ack.has(AckSample::CWND_LIMITED) {
            self.w = (self.w + step).min(MAX_WINDOW_PACKETS);
        }
    }

    fn on_loss(&mut self, _loss: &Loss) {}

    fn on_rto(&mut self, _timeout: &Timeout) {
        self.w = (self.w / 2.0).max(1.0);
    }

    fn on_path_change(&mut self, path: &PathInfo) {
        self.packet_bytes = packet_size(path);
    }

    fn control(&self) -> Control {
        // The window used is floor(w).
        let window = window_bytes(libm::floor(self.w), self.packet_bytes);
        Control { timeout_ns: self.timeout_ns, ..Control::window(window) }
    }

    fn observe(&self, out: &mut [f64]) {
        out[0] = self.w;
    }
}
