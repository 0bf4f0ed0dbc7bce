//! RTT + AIMD (CS 244 contest, Kumar 2017, section 3.2): the window grows by 1/w per ACK while the RTT is below a threshold and is
//! halved while it is not: with each such ACK, as the report and its code have it, or once per round trip.

use super::{MAX_WINDOW_PACKETS, packet_size, window_bytes};
use crate::controller::{Control, Controller, Field, Needs};
use crate::episode::EpisodeGate;
use crate::event::{Ack, AckSample, Loss, PathInfo, Timeout};
use crate::registry::{Family, Param, Params, Profile, Spec};

/// The registry entry.
pub(crate) static SPEC: Spec = Spec {
    name: "rtt-aimd",
    title: "Additive increase below an RTT threshold, halving above",
    family: Family::Contest,
    source: "CS 244 congestion-control contest (Kumar 2017), section 3.2, and its released code",
    about: include_str!("about/rtt-aimd.md"),
    needs: Needs::NONE,
    params: &[
        Param::number("initial_window", "packets", 50.0, (1.0, 1_000_000.0), "window at the start"),
        Param::duration(
            "threshold",
            0.12,
            (0.000_001, 60.0),
            "RTT from which on the window is halved; 120 ms is the contest's best",
        ),
        Param::choice(
            "decrease",
            &["per-ack", "per-rtt"],
            "halve with every ACK whose RTT reaches the threshold, or once per round trip",
        ),
        Param::duration("timeout", 1.0, (0.001, 60.0), "silence after which the window is halved"),
    ],
    profiles: &[Profile {
        name: "once",
        source: "the textbook form: one halving per round trip, as AIMD on losses has it",
        values: &[("decrease", 1.0)],
    }],
    fields: &[Field { name: "window", unit: "packets", doc: "window w, with its fraction" }],
    build,
};

fn build(params: &Params, path: &PathInfo) -> Box<dyn Controller> {
    let once = params.get_choice("decrease") == "per-rtt";
    Box::new(RttAimd {
        w: params.get("initial_window"),
        threshold_ns: params.get_ns("threshold"),
        gate: once.then(EpisodeGate::default),
        timeout_ns: params.get_ns("timeout"),
        packet_bytes: packet_size(path),
    })
}

struct RttAimd {
    /// Window w, packets.
    w: f64,
    threshold_ns: u64,
    /// Lets one halving through per round trip; `None` = every one.
    gate: Option<EpisodeGate>,
    timeout_ns: u64,
    packet_bytes: f64,
}

impl Controller for RttAimd {
    fn on_ack(&mut self, ack: &Ack<'_>) {
        // An RTT of 0 is no sample.
        if ack.rtt_ns >= self.threshold_ns {
            let halves = match &mut self.gate {
                None => true,
                Some(gate) => gate.admits(ack.now_ns, ack.sent_ns),
            };
            // With each ACK, w falls below 2 within a round trip: as the report has it, who means volatile links.
            if self.w >= 2.0 && halves {
                self.w /= 2.0;
            }
        } else if ack.rtt_ns > 0 && ack.has(AckSample::CWND_LIMITED) {
            let step = f64::from(ack.acked_packets) / self.w;
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
