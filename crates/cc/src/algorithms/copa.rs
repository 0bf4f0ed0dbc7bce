//! Copa (Arun, Balakrishnan 2018): the rate aims at the inverse of the queueing delay; a flow of it that meets buffer-filling
//! ones gives up its delay target while they last.
//!
//! ACKs in; window and pacing rate out. Section numbers are the paper's (NSDI 2018).

use super::{MAX_WINDOW_PACKETS, pacing_rate, packet_size, window_bytes};
use crate::controller::{Control, Controller, Field, Needs};
use crate::event::{Ack, AckSample, Loss, PathInfo, Timeout};
use crate::filters::{WindowedMax, WindowedMin};
use crate::registry::{Family, Param, Params, Profile, Spec};
use crate::round::RoundCounter;

/// §2.1: how long the smallest RTT is remembered, ns.
const MIN_RTT_WINDOW_NS: u64 = 10_000_000_000;
/// §2.1.1: the velocity doubles once the direction has been the same for this many round trips.
const STEADY_ROUNDS: u32 = 3;
/// §2.2: the queue must have been nearly empty within this many round trips.
const EMPTY_ROUNDS: u64 = 5;
/// §2.2: RTTmax is that of this many round trips.
const MAX_RTT_ROUNDS: u64 = 4;
/// §2.2: nearly empty is below this share of the largest queueing delay.
const NEARLY_EMPTY: f64 = 0.1;
const MIN_WINDOW_PACKETS: f64 = 2.0;
const CANDIDATES: usize = 64;

/// The registry entry.
pub(crate) static SPEC: Spec = Spec {
    name: "copa",
    title: "Copa: the rate that a queueing delay calls for",
    family: Family::DelayBased,
    source: "Arun and Balakrishnan, Copa: practical delay-based congestion control for the Internet (NSDI 2018)",
    about: include_str!("about/copa.md"),
    needs: Needs::PACING,
    params: &[
        Param::number(
            "delta",
            "1/packet",
            0.5,
            (0.001, 100.0),
            "delta of the default mode: 1/delta packets are kept in the queue on average",
        ),
        Param::flag(
            "mode_switch",
            true,
            "compete when the queue is not seen to empty: 1/delta grows by 1 per RTT and is halved at losses",
        ),
    ],
    profiles: &[Profile {
        name: "default-mode",
        source: "Arun, Balakrishnan 2018, section 2.1 alone: delta stays",
        values: &[("mode_switch", 0.0)],
    }],
    fields: &[
        Field { name: "delta", unit: "1/packet", doc: "delta in use" },
        Field { name: "velocity", unit: "1", doc: "velocity v" },
        Field { name: "queueing_delay", unit: "ms", doc: "RTTstanding - RTTmin, d_q" },
        Field { name: "target_rate", unit: "packets/s", doc: "1 / (delta d_q), lambda_t" },
        Field { name: "competitive", unit: "1", doc: "1 in competitive mode" },
    ],
    build,
};

fn build(params: &Params, path: &PathInfo) -> Box<dyn Controller> {
    let delta = params.get("delta");
    Box::new(Copa {
        default_delta: delta,
        mode_switch: params.get_bool("mode_switch"),
        packet_bytes: packet_size(path),
        cwnd: f64::from(path.initial_window_packets).max(MIN_WINDOW_PACKETS),
        delta,
        competitive: false,
        slow_start: true,
        velocity: Velocity { v: 1.0, up: true, steady_rounds: 0, start_cwnd: 0.0 },
        rounds: RoundCounter::default(),
        lost_in_round: false,
        halved_in_round: false,
        min_rtt: WindowedMin::new(MIN_RTT_WINDOW_NS),
        standing_rtt: WindowedMin::new(0),
        max_rtt: WindowedMax::new(0),
        nearly_empty_ns: path.now_ns,
        srtt_ns: 0,
        queueing_ns: f64::NAN,
    })
}

/// §2.1.1: how fast the window moves in its direction.
#[derive(Clone, Copy, Debug)]
struct Velocity {
    v: f64,
    up: bool,
    /// Round trips in this direction.
    steady_rounds: u32,
    /// Window when the round began.
    start_cwnd: f64,
}

impl Velocity {
    fn restart(&mut self, up: bool) {
        *self = Self { v: 1.0, up, steady_rounds: 0, ..*self };
    }

    /// A round ends with the window at `cwnd`.
    fn end_round(&mut self, cwnd: f64, delta: f64) {
        let up = cwnd > self.start_cwnd;
        self.start_cwnd = cwnd;
        if up != self.up {
            self.restart(up);
            return;
        }
        self.steady_rounds += 1;
        if self.steady_rounds >= STEADY_ROUNDS {
            // Deviation: no more than a window per round trip, so that v stays finite on the way down.
            self.v = (2.0 * self.v).min((delta * cwnd).max(1.0));
        }
    }
}

struct Copa {
    default_delta: f64,
    mode_switch: bool,
    packet_bytes: f64,
    cwnd: f64,
    delta: f64,
    competitive: bool,
    slow_start: bool,
    velocity: Velocity,
    rounds: RoundCounter,
    lost_in_round: bool,
    halved_in_round: bool,
    min_rtt: WindowedMin<CANDIDATES>,
    standing_rtt: WindowedMin<CANDIDATES>,
    max_rtt: WindowedMax<CANDIDATES>,
    /// When the queue was last nearly empty.
    nearly_empty_ns: u64,
    srtt_ns: u64,
    /// d_q; NaN before the first sample.
    queueing_ns: f64,
}

impl Copa {
    /// §2.1 (2): 1 / (delta d_q), packets/s; without bound when nothing waits.
    fn target_rate(&self) -> f64 {
        if self.queueing_ns > 0.0 { 1e9 / (self.delta * self.queueing_ns) } else { f64::INFINITY }
    }

    /// RTTstanding, ns.
    fn standing_ns(&self) -> Option<f64> {
        self.standing_rtt.best()
    }

    fn on_rtt(&mut self, now_ns: u64, rtt_ns: u64, srtt_ns: u64) {
        self.srtt_ns = srtt_ns.max(1);
        // §2.1: the smallest RTT of half a round trip: what stands, not what an ACK has met.
        self.standing_rtt.set_window(self.srtt_ns / 2);
        self.max_rtt.set_window(self.srtt_ns.saturating_mul(MAX_RTT_ROUNDS));
        let rtt = rtt_ns as f64;
        let min = self.min_rtt.update(now_ns, rtt).unwrap_or(rtt);
        let standing = self.standing_rtt.update(now_ns, rtt).unwrap_or(rtt);
        let max = self.max_rtt.update(now_ns, rtt).unwrap_or(rtt);
        self.queueing_ns = (standing - min).max(0.0);
        // §2.2. Deviation: "or equal", for paths on which nothing ever waits.
        if self.queueing_ns <= NEARLY_EMPTY * (max - min) {
            self.nearly_empty_ns = now_ns;
        }
    }

    /// §2.2: once per round trip.
    fn choose_mode(&mut self, now_ns: u64) {
        if !self.mode_switch {
            return;
        }
        let filled_ns = now_ns.saturating_sub(self.nearly_empty_ns);
        let compete = filled_ns > self.srtt_ns.saturating_mul(EMPTY_ROUNDS);
        if !compete {
            self.delta = self.default_delta;
        } else if self.competitive && !self.lost_in_round {
            self.delta = 1.0 / (1.0 / self.delta + 1.0);
        }
        self.competitive = compete;
        self.lost_in_round = false;
        self.halved_in_round = false;
    }

    fn move_window(&mut self, ack: &AckSample) {
        let Some(standing_ns) = self.standing_ns() else { return };
        let acked = f64::from(ack.acked_packets).min(self.cwnd);
        // §2.1 (1), (3).
        let grow = self.cwnd / (standing_ns * 1e-9) <= self.target_rate();
        let limited = ack.has(AckSample::CWND_LIMITED);
        if self.slow_start && grow {
            // §2.1: doubles per round trip until it exceeds the target.
            self.cwnd += if limited { acked } else { 0.0 };
        } else {
            if self.slow_start {
                self.slow_start = false;
                self.velocity.start_cwnd = self.cwnd;
                self.velocity.restart(false);
            }
            if grow != self.velocity.up && self.velocity.v > 1.0 {
                // A turn: the speed of the way here must not carry it on.
                self.velocity.restart(grow);
            }
            let step = self.velocity.v / (self.delta * self.cwnd) * acked;
            // A window that was not used is not enlarged.
            self.cwnd += match (grow, limited) {
                (true, true) => step.min(acked),
                (true, false) => 0.0,
                (false, _) => -step,
            };
        }
        self.cwnd = self.cwnd.clamp(MIN_WINDOW_PACKETS, MAX_WINDOW_PACKETS);
    }
}

impl Controller for Copa {
    fn on_ack(&mut self, ack: &Ack<'_>) {
        if ack.rtt_ns > 0 {
            self.on_rtt(ack.now_ns, ack.rtt_ns, ack.srtt_ns);
        }
        if self.rounds.on_ack(ack) {
            self.choose_mode(ack.now_ns);
            if !self.slow_start {
                self.velocity.end_round(self.cwnd, self.delta);
            }
        }
        self.move_window(ack);
    }

    /// §2.2: losses count in competitive mode only, at most once per round trip.
    fn on_loss(&mut self, _loss: &Loss) {
        self.lost_in_round = true;
        if self.competitive && !self.halved_in_round {
            self.halved_in_round = true;
            self.delta = (2.0 * self.delta).min(self.default_delta);
        }
    }

    /// Deviation: the paper says nothing of timeouts; after one the path is probed anew.
    fn on_rto(&mut self, _timeout: &Timeout) {
        self.cwnd = MIN_WINDOW_PACKETS;
        self.slow_start = true;
        self.velocity.restart(true);
    }

    fn on_path_change(&mut self, path: &PathInfo) {
        self.packet_bytes = packet_size(path);
        self.min_rtt.clear();
    }

    fn control(&self) -> Control {
        // §2.1: paced at twice the rate of the window, so that bursts do not look like a queue.
        let pacing = match self.standing_ns() {
            Some(ns) => pacing_rate(2.0 * self.cwnd * self.packet_bytes / (ns * 1e-9)),
            None => Control::UNPACED,
        };
        Control {
            pacing_bytes_per_s: pacing,
            ..Control::window(window_bytes(self.cwnd, self.packet_bytes))
        }
    }

    fn observe(&self, out: &mut [f64]) {
        let target = self.target_rate();
        out.copy_from_slice(&[
            self.delta,
            self.velocity.v,
            self.queueing_ns * 1e-6,
            if target.is_finite() { target } else { f64::NAN },
            f64::from(u8::from(self.competitive)),
        ]);
    }
}

#[cfg(test)]
#[path = "copa_tests.rs"]
mod tests;
