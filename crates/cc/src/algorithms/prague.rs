//! Prague (draft-briscoe-iccrg-prague-congestion-control): DCTCP made fit for the Internet, a scalable controller of L4S (RFC 9330,
//! RFC 9331) that sends ECT(1).
//!
//! What differs from DCTCP: it grows with every unmarked packet, in the round of a reduction too, for the coupled queue marks
//! a few packets in every round; flows of short RTT grow as if theirs were 25 ms; packets are paced; the window has a fraction, and
//! below two packets the pacing rate alone holds it.

use super::{MAX_WINDOW_PACKETS, pacing_rate, packet_size, window_bytes};
use crate::bounds::clamp;
use crate::controller::{Control, Controller, Field, Needs};
use crate::episode::EpisodeGate;
use crate::event::{Ack, AckSample, Loss, PathInfo, Timeout, Undo};
use crate::registry::{Family, Param, Params, Profile, Spec};
use crate::round::RoundCounter;
use crate::slow_start::{SlowStart, SlowStartKind};

/// The registry entry.
pub(crate) static SPEC: Spec = Spec {
    name: "prague",
    title: "Prague: the scalable controller of L4S",
    family: Family::MarkBased,
    source: "draft-briscoe-iccrg-prague-congestion-control-04; RFC 9331; L4STeam's Linux tcp_prague 0.7",
    about: include_str!("about/prague.md"),
    needs: Needs::CE_COUNT.and(Needs::ECT1).and(Needs::PACING),
    params: &[
        Param::number("g", "1", 1.0 / 16.0, (0.001, 1.0), "gain of the estimate, g"),
        Param::duration(
            "rtt_virt_min",
            0.025,
            (0.0, 1.0),
            "smallest virtual RTT: a flow of shorter RTT grows and reacts as if this were its own; 0 turns it off",
        ),
        Param::integer(
            "transition",
            "1",
            500.0,
            (0.0, 1_000_000.0),
            "round trips after slow start until the virtual RTT counts, D",
        ),
        Param::number("loss_beta", "1", 0.5, (0.1, 0.99), "fraction of the window kept at a loss"),
        Param::duration(
            "burst",
            0.000_25,
            (0.0, 0.1),
            "how long a burst may take at the pacing rate; 0 is one packet",
        ),
        Param::rate("min_rate", 100e3, (1000.0, 1e9), "rate that marks leave at least"),
        Param::choice(
            "slow_start",
            SlowStartKind::WORDS,
            "how slow start ends before the first mark: plain, RFC 9406, Linux's HyStart, or limited (RFC 3742)",
        ),
        Param::integer(
            "initial_window",
            "packets",
            0.0,
            (0.0, 1_000_000.0),
            "initial window; 0 = as the host starts (RFC 6928: 10)",
        ),
    ],
    profiles: &[Profile {
        name: "linux",
        source: "L4STeam's Linux tcp_prague 0.7: the virtual RTT counts after 4 rounds",
        values: &[("transition", 4.0)],
    }],
    fields: &[
        Field { name: "ssthresh_bytes", unit: "bytes", doc: "slow-start threshold" },
        Field { name: "alpha", unit: "1", doc: "estimated fraction of packets marked, alpha" },
        Field { name: "window", unit: "packets", doc: "congestion window, with its fraction" },
    ],
    build,
};

/// The smallest window that the host is given, packets; below it the pacing rate holds the flow.
const LEAST_WINDOW: f64 = 2.0;
const SECOND_NS: f64 = 1e9;

fn build(params: &Params, path: &PathInfo) -> Box<dyn Controller> {
    let window = match params.get("initial_window") {
        0.0 => f64::from(path.initial_window_packets),
        packets => packets,
    };
    let slow_start = SlowStartKind::from_word(params.get_choice("slow_start"));
    Box::new(Prague {
        g: params.get("g"),
        rtt_virt_min_ns: params.get_ns("rtt_virt_min"),
        transition: params.get("transition") as u64,
        loss_beta: params.get("loss_beta"),
        burst_s: params.get("burst"),
        min_bytes_per_s: params.get("min_rate") / 8.0,
        packet_bytes: packet_size(path),
        cwnd: clamp(window, MAX_WINDOW_PACKETS),
        ssthresh: MAX_WINDOW_PACKETS,
        before: None,
        alpha: None,
        updated_ns: path.now_ns,
        acked: 0,
        marked: 0,
        observed: RoundCounter::default(),
        rounds: RoundCounter::default(),
        rounds_avoiding: 0,
        gate: EpisodeGate::default(),
        reduced_ns: None,
        repairing: false,
        srtt_ns: 0,
        slow_start: SlowStart::new(slow_start, true),
    })
}

struct Prague {
    g: f64,
    rtt_virt_min_ns: u64,
    transition: u64,
    loss_beta: f64,
    burst_s: f64,
    min_bytes_per_s: f64,
    packet_bytes: f64,
    /// Window and threshold, packets.
    cwnd: f64,
    ssthresh: f64,
    /// The same before the last loss or timeout.
    before: Option<(f64, f64)>,
    /// `None` before the first mark: nothing tells of a queue that marks.
    alpha: Option<f64>,
    updated_ns: u64,
    /// Packets acknowledged and marked since the last update.
    acked: u64,
    marked: u64,
    /// Rounds since the last update, and round trips.
    observed: RoundCounter,
    rounds: RoundCounter,
    /// Round trips in congestion avoidance.
    rounds_avoiding: u64,
    gate: EpisodeGate,
    /// When a mark last reduced the window.
    reduced_ns: Option<u64>,
    repairing: bool,
    srtt_ns: u64,
    slow_start: SlowStart,
}

impl Prague {
    fn in_slow_start(&self) -> bool {
        self.cwnd < self.ssthresh
    }

    /// The RTT by which the flow behaves: 25 ms at least, once it has lasted so long that sharing with others matters.
    fn virtual_rtt_ns(&self) -> u64 {
        if self.is_rtt_independent() {
            self.srtt_ns.max(self.rtt_virt_min_ns)
        } else {
            self.srtt_ns
        }
    }

    fn is_rtt_independent(&self) -> bool {
        !self.in_slow_start() && self.rounds_avoiding >= self.transition
    }

    /// Counts marks, and takes them into alpha once per virtual RTT and at most once per round trip.
    fn observe_marks(&mut self, ack: &AckSample) {
        if self.rounds.on_ack(ack) && !self.in_slow_start() {
            self.rounds_avoiding += 1;
        }
        if !self.is_early(ack.now_ns, self.updated_ns) && self.observed.on_ack(ack) {
            if let Some(alpha) = &mut self.alpha
                && self.acked > 0
            {
                *alpha += self.g * (self.marked as f64 / self.acked as f64 - *alpha);
            }
            (self.acked, self.marked) = (0, 0);
            self.updated_ns = ack.now_ns;
        }
        self.acked += u64::from(ack.acked_packets);
        self.marked += u64::from(ack.ce_packets.min(ack.acked_packets));
        if ack.ce_packets > 0 {
            // The first mark counts for a loss: it ends slow start.
            self.alpha.get_or_insert(1.0);
        }
    }

    /// Whether too little has passed since `then_ns` to act again: less than the virtual RTT.
    fn is_early(&self, now_ns: u64, then_ns: u64) -> bool {
        self.is_rtt_independent() && now_ns.saturating_sub(then_ns) < self.rtt_virt_min_ns
    }

    /// Whether a mark may reduce the window: once per round trip and per virtual RTT.
    fn may_reduce(&mut self, ack: &AckSample) -> bool {
        let early = self.reduced_ns.is_some_and(|at| self.is_early(ack.now_ns, at));
        !early && self.gate.admits(ack.now_ns, ack.sent_ns)
    }

    fn reduce(&mut self, alpha: f64, now_ns: u64) {
        self.reduced_ns = Some(now_ns);
        self.set(self.cwnd * (1.0 - alpha / 2.0));
        self.ssthresh = self.cwnd;
    }

    /// Sets the window, at least what the smallest rate takes.
    fn set(&mut self, cwnd: f64) {
        let least = self.min_bytes_per_s * self.srtt_ns as f64 / SECOND_NS / self.packet_bytes;
        self.cwnd = cwnd.max(least.min(LEAST_WINDOW)).min(MAX_WINDOW_PACKETS);
    }

    /// What unmarked packets give: in slow start themselves, then one packet per round trip, less for a short RTT.
    fn grow(&mut self, ack: &Ack<'_>) {
        let mut unmarked = f64::from(ack.acked_packets.saturating_sub(ack.ce_packets));
        if self.in_slow_start() {
            let acked_packets = unmarked as u32;
            let step =
                self.slow_start.on_ack(&AckSample { acked_packets, ..ack.sample }, self.cwnd);
            let room = self.ssthresh - self.cwnd;
            self.cwnd += step.growth_packets.min(room);
            if step.exit {
                self.ssthresh = self.cwnd;
            }
            unmarked = (step.growth_packets - room).max(0.0);
        }
        if unmarked > 0.0 && !self.in_slow_start() {
            // In rates: one packet per virtual RTT more, per virtual RTT.
            let ratio = match self.virtual_rtt_ns() {
                0 => 1.0,
                virtual_ns => self.srtt_ns as f64 / virtual_ns as f64,
            };
            // A window far below a packet must not leap.
            self.set(self.cwnd + (unmarked * ratio * ratio / self.cwnd).min(unmarked));
        }
    }

    /// Rate of the window, bytes/s; `None` before the first RTT.
    fn rate_bytes_per_s(&self) -> Option<f64> {
        let rtt_s = self.srtt_ns as f64 / SECOND_NS;
        (self.srtt_ns > 0).then(|| self.cwnd * self.packet_bytes / rtt_s)
    }
}

impl Controller for Prague {
    fn on_ack(&mut self, ack: &Ack<'_>) {
        self.srtt_ns = ack.srtt_ns;
        self.observe_marks(ack);
        self.repairing &= ack.has(AckSample::IN_RECOVERY);
        if self.repairing {
            return;
        }
        if ack.ce_packets > 0
            && let Some(alpha) = self.alpha
            && self.may_reduce(ack)
        {
            self.reduce(alpha, ack.now_ns);
        }
        // A paced flow seldom fills its window; it is held back by the pacer, or has nothing to send.
        if !ack.has(AckSample::APP_LIMITED) {
            self.grow(ack);
        }
    }

    fn on_loss(&mut self, loss: &Loss) {
        if loss.starts_episode() {
            self.gate.open(loss.now_ns);
            self.repairing = true;
            self.before = Some((self.cwnd, self.ssthresh));
            self.set(self.cwnd * self.loss_beta);
            self.ssthresh = self.cwnd;
        }
    }

    fn on_rto(&mut self, timeout: &Timeout) {
        self.gate.open(timeout.now_ns);
        self.repairing = false;
        if timeout.consecutive <= 1 {
            self.before = Some((self.cwnd, self.ssthresh));
            self.ssthresh = (self.cwnd * self.loss_beta).max(LEAST_WINDOW);
        }
        // RFC 5681 §3.1.
        self.cwnd = 1.0;
        self.slow_start.on_rto();
    }

    fn on_spurious_loss(&mut self, _undo: &Undo) {
        self.repairing = false;
        if let Some((cwnd, ssthresh)) = self.before.take() {
            self.cwnd = self.cwnd.max(cwnd);
            self.ssthresh = self.ssthresh.max(ssthresh);
        }
    }

    fn on_path_change(&mut self, path: &PathInfo) {
        self.packet_bytes = packet_size(path);
    }

    fn control(&self) -> Control {
        let packets = libm::ceil(self.cwnd).max(LEAST_WINDOW);
        let window = Control::window(window_bytes(packets, self.packet_bytes));
        let Some(rate) = self.rate_bytes_per_s() else { return window };
        // Twice the rate in slow start, until it is near its threshold.
        let rate = if self.cwnd < self.ssthresh / 2.0 { 2.0 * rate } else { rate };
        let rate = pacing_rate(rate);
        Control {
            pacing_bytes_per_s: rate,
            send_quantum_bytes: (rate as f64 * self.burst_s) as u64,
            ..window
        }
    }

    fn observe(&self, out: &mut [f64]) {
        let ssthresh = self.ssthresh * self.packet_bytes;
        out.copy_from_slice(&[
            if self.ssthresh < MAX_WINDOW_PACKETS { ssthresh } else { f64::NAN },
            self.alpha.unwrap_or(f64::NAN),
            self.cwnd,
        ]);
    }
}

#[cfg(test)]
#[path = "prague_tests.rs"]
mod tests;
