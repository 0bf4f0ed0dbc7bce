//! AIMD as in the CS 244 contest (Kumar 2017, part B): the window grows by a/w per ACK and is divided by d when nothing has
//! been heard for a while. The contest's sender does not see losses, only silence.

use super::{MAX_WINDOW_PACKETS, packet_size, window_bytes};
use crate::controller::{Control, Controller, Needs};
use crate::event::{Ack, AckSample, Loss, PathInfo, Timeout};
use crate::registry::{Family, Param, Params, Profile, Spec};

/// The registry entry.
pub(crate) static SPEC: Spec = Spec {
    name: "aimd",
    title: "Additive increase per ACK, multiplicative decrease per timeout",
    family: Family::Contest,
    source: "CS 244 congestion-control contest (Kumar 2017), part B",
    about: include_str!("about/aimd.md"),
    needs: Needs::NONE,
    params: &[
        Param::number("initial_window", "packets", 50.0, (1.0, 1_000_000.0), "window at the start"),
        Param::number(
            "a",
            "packets",
            1.0,
            (0.0, 1000.0),
            "additive increase a: w += a/w per packet acknowledged",
        ),
        Param::number("d", "1", 2.0, (1.0, 1000.0), "decrease d: w /= d per timeout while w > 1"),
        Param::duration("timeout", 1.0, (0.001, 60.0), "silence that counts as a timeout"),
    ],
    profiles: &[
        Profile {
            name: "a5",
            source: "Kumar 2017, figures 5-6: additive increase 5",
            values: &[("a", 5.0)],
        },
        Profile {
            name: "a10",
            source: "Kumar 2017, figures 5-6: additive increase 10",
            values: &[("a", 10.0)],
        },
    ],
    fields: &[],
    build,
};

fn build(params: &Params, path: &PathInfo) -> Box<dyn Controller> {
    Box::new(Aimd {
        w: params.get("initial_window"),
        a: params.get("a"),
        d: params.get("d"),
        timeout_ns: params.get_ns("timeout"),
        packet_bytes: packet_size(path),
    })
}

struct Aimd {
    /// Window w, packets.
    w: f64,
    a: f64,
    d: f64,
    timeout_ns: u64,
    packet_bytes: f64,
}

impl Controller for Aimd {
    fn on_ack(&mut self, ack: &Ack<'_>) {
        if ack.has(AckSample::CWND_LIMITED) {
            self.w += self.a * f64::from(ack.acked_packets) / self.w.max(1.0);
            self.w = self.w.min(MAX_WINDOW_PACKETS);
        }
    }

    fn on_loss(&mut self, _loss: &Loss) {}

    fn on_rto(&mut self, _timeout: &Timeout) {
        if self.w > 1.0 {
            self.w /= self.d;
        }
    }

    fn on_path_change(&mut self, path: &PathInfo) {
        self.packet_bytes = packet_size(path);
    }

    fn control(&self) -> Control {
        // The window used is floor(w).
        Control {
            timeout_ns: self.timeout_ns,
            ..Control::window(window_bytes(libm::floor(self.w), self.packet_bytes))
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::event::{Ack, AckSample, PathInfo, Timeout};

    #[test]
    fn grows_by_a_per_window_and_halves_on_silence() {
        let path = PathInfo { now_ns: 0, packet_bytes: 1500, initial_window_packets: 10, seed: 0 };
        let mut aimd = (super::SPEC.build)(&super::SPEC.params(None).unwrap(), &path);
        let ack = |flags| Ack {
            sample: AckSample { acked_packets: 1, flags, ..AckSample::default() },
            hops: &[],
        };
        assert_eq!(aimd.control().cwnd_bytes, 50 * 1500);
        assert_eq!(aimd.control().timeout_ns, 1_000_000_000);
        for _ in 0..51 {
            aimd.on_ack(&ack(AckSample::CWND_LIMITED));
        }
        assert_eq!(aimd.control().cwnd_bytes, 51 * 1500);
        for _ in 0..1000 {
            aimd.on_ack(&ack(0));
        }
        assert_eq!(aimd.control().cwnd_bytes, 51 * 1500, "no growth when not limited");
        aimd.on_rto(&Timeout::default());
        assert_eq!(aimd.control().cwnd_bytes, 25 * 1500);
        for _ in 0..10 {
            aimd.on_rto(&Timeout::default());
        }
        assert_eq!(aimd.control().cwnd_bytes, 1500);
    }
}
