//! TIMELY (Mittal et al., SIGCOMM 2015): a rate that follows the gradient of the RTT between two thresholds, in data centres. One RTT
//! per completed segment in, a rate out.

use super::{pacing_rate, packet_size, window_bytes};
use crate::controller::{Control, Controller, Field, Needs};
use crate::event::{Ack, AckSample, Loss, PathInfo, Timeout};
use crate::registry::{Family, Param, Params, Profile, Spec};

/// Hyperactive increase: this many times delta (N).
const HAI_FACTOR: f64 = 5.0;
/// The authors' snippet: no update takes more than half of the rate.
const LEAST_FACTOR: f64 = 0.5;

/// The registry entry.
pub(crate) static SPEC: Spec = Spec {
    name: "timely",
    title: "TIMELY: rate from the RTT gradient",
    family: Family::DataCentre,
    source: "Mittal et al., TIMELY: RTT-based congestion control for the datacenter (SIGCOMM 2015), algorithm 1",
    about: include_str!("about/timely.md"),
    needs: Needs::PACING,
    params: &[
        Param::duration(
            "t_low",
            0.000_05,
            (0.0, 1.0),
            "RTT below which the rate only grows, T_low",
        ),
        Param::duration(
            "t_high",
            0.000_5,
            (0.000_001, 10.0),
            "RTT above which it only falls, T_high",
        ),
        Param::duration(
            "min_rtt",
            0.000_02,
            (0.000_001, 1.0),
            "RTT of the empty network, which normalises the gradient, minRTT",
        ),
        Param::rate("delta", 10e6, (1e3, 1e12), "additive increase delta"),
        Param::number("beta", "1", 0.8, (0.0, 1.0), "multiplicative decrease factor beta"),
        Param::number("alpha", "1", 0.875, (0.001, 1.0), "weight of a new RTT difference, alpha"),
        Param::integer(
            "hai",
            "segments",
            5.0,
            (1.0, 1000.0),
            "falling RTTs until growth is by 5 delta",
        ),
        Param::integer(
            "segment",
            "bytes",
            16_000.0,
            (1.0, 1e9),
            "data per update, and size of a burst",
        ),
        Param::rate(
            "line_rate",
            10e9,
            (1e3, 1e13),
            "rate at the start and at most: the network card's",
        ),
        Param::rate("min_rate", 10e6, (1e3, 1e12), "rate at least"),
        Param::flag(
            "scaled",
            false,
            "scale a step by the time since the last, in minRTT, and take half the rate at most",
        ),
        Param::flag("patched", false, "blend gradient and RTT, so that there is one fixed point"),
    ],
    profiles: &[
        Profile {
            name: "snippet",
            source: "the authors' code snippet: per packet, constants for that",
            values: &[
                ("t_low", 0.0),
                ("t_high", 0.001),
                ("alpha", 0.02),
                ("segment", 1.0),
                ("scaled", 1.0),
            ],
        },
        Profile {
            name: "patched",
            source: "Zhu et al., ECN or Delay (CoNEXT 2016), algorithm 2",
            values: &[("patched", 1.0), ("beta", 0.008)],
        },
        Profile {
            name: "wide-area",
            source: "ours: the paper's times a thousandfold, for RTTs of tens of milliseconds",
            values: &[("t_low", 0.05), ("t_high", 0.5), ("min_rtt", 0.02)],
        },
    ],
    fields: &[
        Field { name: "rate", unit: "Mbit/s", doc: "sending rate R" },
        Field { name: "gradient", unit: "1", doc: "smoothed RTT difference over minRTT" },
    ],
    build,
};

fn build(params: &Params, path: &PathInfo) -> Box<dyn Controller> {
    let bytes_per_s = |name: &str| params.get(name) / 8.0;
    Box::new(Timely {
        t_low_ns: params.get("t_low") * 1e9,
        t_high_ns: params.get("t_high") * 1e9,
        min_rtt_ns: params.get("min_rtt") * 1e9,
        delta: bytes_per_s("delta"),
        beta: params.get("beta"),
        alpha: params.get("alpha"),
        hai: params.get("hai") as u32,
        segment_bytes: params.get("segment") as u64,
        line_rate: bytes_per_s("line_rate"),
        min_rate: bytes_per_s("min_rate"),
        scaled: params.get_bool("scaled"),
        patched: params.get_bool("patched"),
        packet_bytes: packet_size(path),
        rate: bytes_per_s("line_rate").max(bytes_per_s("min_rate")),
        previous_rtt_ns: 0.0,
        difference_ns: 0.0,
        falling: 0,
        completed_bytes: 0,
        updated_ns: path.now_ns,
    })
}

struct Timely {
    t_low_ns: f64,
    t_high_ns: f64,
    min_rtt_ns: f64,
    /// Bytes/s.
    delta: f64,
    beta: f64,
    alpha: f64,
    hai: u32,
    segment_bytes: u64,
    line_rate: f64,
    min_rate: f64,
    scaled: bool,
    patched: bool,
    packet_bytes: f64,
    /// R, bytes/s.
    rate: f64,
    /// 0 before the first.
    previous_rtt_ns: f64,
    /// Smoothed RTT difference.
    difference_ns: f64,
    /// Segments in a row whose gradient was not positive.
    falling: u32,
    completed_bytes: u64,
    updated_ns: u64,
}

impl Timely {
    fn gradient(&self) -> f64 {
        self.difference_ns / self.min_rtt_ns
    }

    /// Algorithm 1, for a segment that took `rtt_ns`. Growth is for a flow that has data to send.
    fn update(&mut self, rtt_ns: f64, now_ns: u64, grows: bool) {
        if self.previous_rtt_ns == 0.0 {
            self.previous_rtt_ns = rtt_ns;
        }
        let difference_ns = rtt_ns - self.previous_rtt_ns;
        self.previous_rtt_ns = rtt_ns;
        self.difference_ns = (1.0 - self.alpha) * self.difference_ns + self.alpha * difference_ns;
        let gradient = self.gradient();
        let elapsed_ns = now_ns.saturating_sub(self.updated_ns) as f64;
        self.updated_ns = now_ns;
        let scale = if self.scaled { (elapsed_ns / self.min_rtt_ns).min(1.0) } else { 1.0 };
        let in_band = rtt_ns >= self.t_low_ns && rtt_ns <= self.t_high_ns;
        self.falling = if in_band && gradient <= 0.0 { self.falling.saturating_add(1) } else { 0 };
        let add = if grows { scale * self.delta } else { 0.0 };
        let next = if rtt_ns < self.t_low_ns {
            self.rate + add
        } else if rtt_ns > self.t_high_ns {
            self.rate * (1.0 - scale * self.beta * (1.0 - self.t_high_ns / rtt_ns))
        } else if self.patched {
            // Zhu et al.: weight of the decrease, and the distance from T_low in its place.
            let weight = (2.0 * gradient + 0.5).clamp(0.0, 1.0);
            let error = (rtt_ns - self.t_low_ns) / self.t_low_ns.max(1.0);
            add * (1.0 - weight) + self.rate * (1.0 - self.beta * weight * error).max(0.0)
        } else if gradient <= 0.0 {
            self.rate + if self.falling >= self.hai { HAI_FACTOR } else { 1.0 } * add
        } else {
            // A gradient above 1/beta would make the rate negative.
            self.rate * (1.0 - self.beta * gradient).max(0.0)
        };
        let least = if self.scaled { LEAST_FACTOR * self.rate } else { 0.0 };
        self.rate = next.max(least).min(self.line_rate).max(self.min_rate);
    }
}

impl Controller for Timely {
    fn on_ack(&mut self, ack: &Ack<'_>) {
        self.completed_bytes = self.completed_bytes.saturating_add(ack.acked_bytes);
        if ack.rtt_ns == 0 || self.completed_bytes < self.segment_bytes {
            return;
        }
        self.completed_bytes = 0;
        // Deviation: the paper subtracts the segment's own transmission from its completion time; this RTT is a packet's.
        self.update(ack.rtt_ns as f64, ack.now_ns, !ack.has(AckSample::APP_LIMITED));
    }

    fn on_loss(&mut self, _loss: &Loss) {
        // The paper's network is lossless; the host repairs what is lost elsewhere.
    }

    fn on_rto(&mut self, _timeout: &Timeout) {
        // Deviation: the paper has no timeouts. What makes one is no small queue.
        self.rate = (self.rate / 2.0).max(self.min_rate);
    }

    fn on_path_change(&mut self, path: &PathInfo) {
        self.packet_bytes = packet_size(path);
    }

    fn control(&self) -> Control {
        // The rate controls; the window bounds what is sent when ACKs stop.
        let rtt_ns = self.previous_rtt_ns.max(self.t_high_ns);
        let bytes = (2.0 * self.rate * rtt_ns / 1e9).max(2.0 * self.segment_bytes as f64);
        Control {
            pacing_bytes_per_s: pacing_rate(self.rate),
            send_quantum_bytes: self.segment_bytes,
            ..Control::window(window_bytes(bytes / self.packet_bytes, self.packet_bytes))
        }
    }

    fn observe(&self, out: &mut [f64]) {
        out.copy_from_slice(&[self.rate * 8e-6, self.gradient()]);
    }
}
