//! Horizon: as much in flight as the path will deliver within a horizon, which grows with the silences that the path is known for;
//! and probes, ever further apart, while it is silent.
//!
//! ACKs in, a window, a pace and a silence timer out. Packets and milliseconds. Equation numbers are those of the algorithm's text.
//! Losses are not seen: the window follows what is delivered.

use super::path_model::{self, INITIAL_WINDOW_PACKETS, PathModel, Settings, bounded};
use super::silences::Silences;
use crate::controller::{Control, Controller, Field, Needs};
use crate::event::{Ack, AckSample, Loss, PathInfo, Resume, Timeout};
use crate::registry::{Family, Param, Params, Spec};

const NS_PER_MS: f64 = 1e6;
/// The silence that only this share of all moments exceeds sets the horizon: power counts a 95th percentile.
const SILENCE_SHARE: f64 = 0.05;
/// Each probe of a silence waits this many times as long as the one before: a dead path is not filled.
const PROBE_GROWTH: f64 = 1.05;
/// From this many probes on the distance stays: 17 times the first.
const MAX_GROWN_PROBES: u32 = 58;
/// Packets in flight while the queue drains.
const DRAIN_PACKETS: f64 = 3.0;

/// The registry entry.
pub(crate) static SPEC: Spec = Spec {
    name: "horizon",
    title: "Horizon: what is delivered within a time that the path's silences set",
    family: Family::Contest,
    source: "Paceline; docs/better-than-latte.md has how it was made and judged",
    about: include_str!("about/horizon.md"),
    needs: Needs::PACING,
    params: &[
        Param::number("horizon", "min RTTs", 1.2, (0.1, 100.0), "fixed part a of the horizon"),
        Param::number(
            "silence_gain",
            "1",
            0.15,
            (0.0, 100.0),
            "weight b of sqrt(m W) in the horizon, W the 95th percentile of the silences",
        ),
        Param::number("extra", "packets", 2.5, (0.0, 1000.0), "w0, in flight beyond the horizon"),
        Param::number(
            "exponent",
            "1",
            0.7,
            (0.0, 10.0),
            "alpha: how fast the window falls as the RTT rises above its aim",
        ),
        Param::number("gamma", "1", 0.5, (0.01, 100.0), "pacing gap gamma / B after each packet"),
        Param::duration(
            "bandwidth_window",
            0.15,
            (0.001, 10.0),
            "B is the largest delivery rate of this long",
        ),
        Param::number(
            "probe_rtts",
            "min RTTs",
            0.4,
            (0.0, 100.0),
            "t1: silence before the first probe, part that goes with the RTT",
        ),
        Param::number(
            "probe_packets",
            "packets",
            1.5,
            (0.0, 1000.0),
            "t2: and part that goes with the time of a packet, 1/B",
        ),
        Param::duration("memory", 60.0, (0.1, 3600.0), "silences are remembered for this long"),
        Param::duration(
            "drain_every",
            10.0,
            (0.1, 3600.0),
            "the queue is drained when the least RTT was not seen for this long; it is forgotten after twice that",
        ),
    ],
    profiles: &[],
    fields: &[
        path_model::BANDWIDTH_FIELD,
        path_model::MIN_RTT_FIELD,
        Field { name: "silence", unit: "ms", doc: "95th percentile W of the wait for an ACK" },
        Field { name: "horizon", unit: "ms", doc: "horizon H" },
        Field { name: "draining", unit: "1", doc: "1 while the queue is drained" },
    ],
    build,
};

fn build(params: &Params, path: &PathInfo) -> Box<dyn Controller> {
    let drain_every_ns = params.get_ns("drain_every");
    let settings = Settings {
        bandwidth_window_ns: params.get_ns("bandwidth_window"),
        min_rtt_window_ns: 2 * drain_every_ns,
        gradient_weight: 1.0,
    };
    Box::new(Horizon {
        a: params.get("horizon"),
        b: params.get("silence_gain"),
        extra: params.get("extra"),
        exponent: params.get("exponent"),
        gamma: params.get("gamma"),
        probe_rtts: params.get("probe_rtts"),
        probe_packets: params.get("probe_packets"),
        window: INITIAL_WINDOW_PACKETS,
        horizon_ms: f64::NAN,
        probe_growth: 1.0,
        last_ack_ns: path.now_ns,
        silences: Silences::new(params.get("memory") * 1e3, SILENCE_SHARE),
        drain: Drain { every_ns: drain_every_ns, seen_ns: path.now_ns, until_sent_ns: None },
        model: PathModel::new(settings, path),
    })
}

struct Horizon {
    a: f64,
    b: f64,
    /// w0, packets.
    extra: f64,
    /// alpha.
    exponent: f64,
    gamma: f64,
    probe_rtts: f64,
    probe_packets: f64,
    /// w, packets.
    window: f64,
    /// H.
    horizon_ms: f64,
    /// How many times as long as the first probe the next one waits.
    probe_growth: f64,
    last_ack_ns: u64,
    silences: Silences,
    drain: Drain,
    model: PathModel,
}

/// When to empty the queue, so that the least RTT stays known on a path that never does it by itself.
struct Drain {
    every_ns: u64,
    /// When the least RTT was last seen, or looked for.
    seen_ns: u64,
    /// While draining: what is sent from then on finds the queue empty.
    until_sent_ns: Option<u64>,
}

impl Drain {
    fn on_ack(&mut self, ack: &AckSample, min_rtt_ms: f64) {
        let sent_ns = ack.now_ns.saturating_sub(ack.rtt_ns);
        if self.until_sent_ns.is_some_and(|until_ns| sent_ns >= until_ns) {
            self.until_sent_ns = None;
            self.seen_ns = ack.now_ns;
        }
        if ack.rtt_ns as f64 <= min_rtt_ms * NS_PER_MS {
            self.seen_ns = ack.now_ns;
        } else if self.until_sent_ns.is_none() && ack.now_ns - self.seen_ns >= self.every_ns {
            self.until_sent_ns = Some(ack.now_ns.saturating_add(ack.rtt_ns));
        }
    }
}

impl Horizon {
    /// (1) to (3).
    fn resize(&mut self, rtt_ms: f64) {
        let PathModel { min_rtt_ms, bandwidth, .. } = self.model;
        let spare_ms = self.b * libm::sqrt(min_rtt_ms * self.silences.quantile_ms());
        self.horizon_ms = self.a * min_rtt_ms + spare_ms;
        let aim_ms = min_rtt_ms + spare_ms;
        let mut window = bandwidth * self.horizon_ms;
        if rtt_ms > aim_ms {
            window *= libm::pow(aim_ms / rtt_ms, self.exponent);
        }
        self.window = bounded(self.extra + window);
    }
}

impl Controller for Horizon {
    fn on_ack(&mut self, ack: &Ack<'_>) {
        self.silences.add((ack.now_ns - self.last_ack_ns) as f64 / NS_PER_MS);
        self.last_ack_ns = ack.now_ns;
        self.probe_growth = 1.0;
        if let Some(rtt_ms) = self.model.on_ack(ack) {
            self.drain.on_ack(ack, self.model.min_rtt_ms);
            self.resize(rtt_ms);
        }
    }

    fn on_loss(&mut self, _loss: &Loss) {}

    fn on_rto(&mut self, timeout: &Timeout) {
        let probes = timeout.consecutive.min(MAX_GROWN_PROBES);
        self.probe_growth = libm::pow(PROBE_GROWTH, f64::from(probes));
    }

    /// Silence with nothing in flight says nothing of the path.
    fn on_resume(&mut self, resume: &Resume) {
        self.last_ack_ns = resume.now_ns;
    }

    fn on_path_change(&mut self, path: &PathInfo) {
        self.model.on_path_change(path);
    }

    fn control(&self) -> Control {
        let PathModel { min_rtt_ms, bandwidth, .. } = self.model;
        let window = if self.drain.until_sent_ns.is_some() { DRAIN_PACKETS } else { self.window };
        // (4), (5).
        let first_ms = self.probe_rtts * min_rtt_ms + self.probe_packets / bandwidth;
        let silence_rtts = first_ms * self.probe_growth / min_rtt_ms;
        self.model.control(window, bandwidth, self.gamma, silence_rtts)
    }

    fn observe(&self, out: &mut [f64]) {
        let (model, draining) = (&self.model, self.drain.until_sent_ns.is_some());
        let silence_ms = self.silences.quantile_ms();
        out.copy_from_slice(&[
            model.bandwidth,
            model.min_rtt_ms,
            silence_ms,
            self.horizon_ms,
            f64::from(u8::from(draining)),
        ]);
    }
}

#[cfg(test)]
#[path = "horizon_tests.rs"]
mod tests;
