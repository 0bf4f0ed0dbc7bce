//! PCC Vivace (Dong et al. 2018): tries rates a little above and below its own, and follows the gradient of a utility.
//!
//! ACKs, losses and sent packets in; pacing rate out. Section numbers are the paper's (NSDI 2018).

use super::{pacing_rate, packet_size, window_bytes};
use crate::controller::{Control, Controller, Field, Needs};
use crate::event::{Ack, Loss, PathInfo, Sent, Timeout};
use crate::registry::{Family, Param, Params, Profile, Spec};

mod interval;

use interval::{Interval, Utility};

/// §4.1: two pairs of trials.
const TRIALS: usize = 4;
/// §4.3: boundary of the first change, and what each change that meets it adds.
const FIRST_BOUNDARY: f64 = 0.05;
const BOUNDARY_STEP: f64 = 0.1;
/// Packets an interval has at least, so that there is something to measure.
const MIN_INTERVAL_PACKETS: f64 = 10.0;
/// Smallest window, packets.
const MIN_WINDOW_PACKETS: f64 = 4.0;
const BITS_PER_MBIT: f64 = 1e6;

/// The registry entry.
pub(crate) static SPEC: Spec = Spec {
    name: "vivace",
    title: "PCC Vivace: the rate along the gradient of a utility",
    family: Family::RateBased,
    source: "Dong et al., PCC Vivace: online-learning congestion control (NSDI 2018)",
    about: include_str!("about/vivace.md"),
    needs: Needs::PACING.and(Needs::SEND_EVENTS),
    params: &[
        Param::number("exponent", "1", 0.9, (0.1, 0.99), "t: the utility of rate x is x^t"),
        Param::number(
            "latency_coefficient",
            "1",
            900.0,
            (0.0, 1e6),
            "b: weight of the RTT gradient; 0 = Vivace-loss",
        ),
        Param::number("loss_coefficient", "1", 11.35, (0.0, 1e6), "c: weight of the loss fraction"),
        Param::number(
            "epsilon",
            "1",
            0.05,
            (0.001, 0.5),
            "epsilon: trials are at r (1 +- epsilon)",
        ),
        Param::number("theta", "1", 1.0, (0.001, 1000.0), "theta_0: change of rate per gradient"),
        Param::number(
            "gradient_tolerance",
            "1",
            0.01,
            (0.0, 1.0),
            "RTT gradients smaller than this count as none",
        ),
        Param::rate("min_rate", 0.5e6, (1e3, 1e9), "smallest rate"),
    ],
    profiles: &[Profile {
        name: "loss",
        source: "Dong et al. 2018, section 3.3: Vivace-loss, b = 0",
        values: &[("latency_coefficient", 0.0)],
    }],
    fields: &[
        Field { name: "rate", unit: "Mbit/s", doc: "rate r that trials are around" },
        Field { name: "utility", unit: "1", doc: "utility of the last interval measured" },
        Field { name: "gradient", unit: "1/(Mbit/s)", doc: "gradient of the last decision" },
        Field { name: "amplifier", unit: "1", doc: "confidence amplifier m" },
    ],
    build,
};

fn build(params: &Params, path: &PathInfo) -> Box<dyn Controller> {
    let packet_bytes = packet_size(path);
    let window = f64::from(path.initial_window_packets).max(MIN_WINDOW_PACKETS);
    Box::new(Vivace {
        utility: Utility {
            exponent: params.get("exponent"),
            latency: params.get("latency_coefficient"),
            loss: params.get("loss_coefficient"),
            tolerance: params.get("gradient_tolerance"),
        },
        epsilon: params.get("epsilon"),
        theta: params.get("theta"),
        min_rate: params.get("min_rate") / 8.0,
        packet_bytes,
        initial_window: window,
        random: path.seed,
        now_ns: path.now_ns,
        srtt_ns: 0,
        rate: 0.0,
        phase: Phase::Starting { last: None },
        pending: [Interval::default(); TRIALS],
        started: 0,
        planned: 0,
        last_utility: f64::NAN,
        gradient: f64::NAN,
        step: Step::default(),
    })
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Phase {
    /// §4.1: the rate doubles while the utility rises; the last rate and utility.
    Starting { last: Option<(f64, f64)> },
    /// §4.2: two pairs of trials around the rate; whether the first of each pair is the higher.
    Probing { high_first: [bool; 2] },
}

/// §4.2-4.3: how large a change of rate may be.
#[derive(Clone, Copy, Debug, Default)]
struct Step {
    /// Decisions in this direction, tau.
    same: u32,
    up: bool,
    /// Changes that met the boundary, k.
    met: u32,
}

impl Step {
    /// Confidence amplifier m(tau).
    fn amplifier(&self) -> f64 {
        let tau = f64::from(self.same);
        if self.same <= 3 { tau } else { 2.0 * tau - 3.0 }
    }

    /// The change of `rate` for a gradient, in the same unit; `theta` converts.
    fn change(&mut self, rate: f64, gradient: f64, theta: f64) -> f64 {
        let up = gradient > 0.0;
        if self.same == 0 || up != self.up {
            *self = Self { same: 0, up, met: 0 };
        }
        self.same = self.same.saturating_add(1);
        let wanted = self.amplifier() * theta * gradient;
        let boundary = |met: u32| FIRST_BOUNDARY + f64::from(met) * BOUNDARY_STEP;
        let limit = boundary(self.met) * rate;
        if wanted.abs() > limit {
            self.met = (self.met + 1).min(10);
            return limit.copysign(wanted);
        }
        // Back to the boundary that the change needs.
        while self.met > 0 && wanted.abs() <= boundary(self.met - 1) * rate {
            self.met -= 1;
        }
        wanted
    }
}

struct Vivace {
    utility: Utility,
    epsilon: f64,
    theta: f64,
    /// Bytes/s.
    min_rate: f64,
    packet_bytes: f64,
    initial_window: f64,
    random: u64,
    now_ns: u64,
    srtt_ns: u64,
    /// r, bytes/s; 0 before the first RTT.
    rate: f64,
    phase: Phase,
    /// The trials under way: `started` of `planned` have begun.
    pending: [Interval; TRIALS],
    started: usize,
    planned: usize,
    last_utility: f64,
    gradient: f64,
    step: Step,
}

impl Vivace {
    /// Plans the trials of the phase, the first beginning now.
    fn plan(&mut self) {
        self.planned = match self.phase {
            Phase::Starting { .. } => 1,
            Phase::Probing { .. } => TRIALS,
        };
        self.started = 0;
        self.start_interval();
    }

    fn start_interval(&mut self) {
        let rate = match self.phase {
            Phase::Starting { .. } => self.rate,
            Phase::Probing { high_first } => {
                let high = high_first[self.started / 2] == self.started.is_multiple_of(2);
                self.rate * if high { 1.0 + self.epsilon } else { 1.0 - self.epsilon }
            }
        };
        // §4.1: a round trip; longer where too few packets would fit.
        let packets_s = MIN_INTERVAL_PACKETS * self.packet_bytes / rate;
        let length_ns = self.srtt_ns.max((packets_s * 1e9) as u64).max(1);
        self.pending[self.started] = Interval::new(rate, self.now_ns, length_ns);
        self.started += 1;
    }

    /// The interval that is being sent, if the trials are not all out.
    fn current(&self) -> Option<&Interval> {
        let interval = self.pending[..self.started].last()?;
        (self.now_ns < interval.end_ns).then_some(interval)
    }

    fn advance(&mut self, now_ns: u64) {
        self.now_ns = self.now_ns.max(now_ns);
        if self.rate > 0.0 && self.started < self.planned && self.current().is_none() {
            self.start_interval();
        }
    }

    fn interval_of(&mut self, sent_ns: u64) -> Option<&mut Interval> {
        self.pending[..self.started].iter_mut().find(|i| i.holds(sent_ns))
    }

    /// Decides once all trials are out and known of.
    fn decide(&mut self) {
        if self.planned == 0 || self.started < self.planned || self.current().is_some() {
            return;
        }
        let known =
            self.pending[..self.planned].iter().all(|i| i.is_known(self.now_ns, self.srtt_ns));
        if !known {
            return;
        }
        let utilities = self.pending.map(|interval| self.utility.of(&interval));
        self.last_utility = utilities[self.planned - 1];
        match self.phase {
            Phase::Starting { last } => self.start_faster(last, utilities[0]),
            Phase::Probing { high_first } => self.follow_gradient(high_first, &utilities),
        }
        self.rate = self.rate.clamp(self.min_rate, 1e15);
        self.plan();
    }

    /// §4.1: doubles while that pays.
    fn start_faster(&mut self, last: Option<(f64, f64)>, utility: f64) {
        match last {
            Some((rate, before)) if utility < before => {
                self.rate = rate;
                self.probe();
            }
            _ => {
                self.phase = Phase::Starting { last: Some((self.rate, utility)) };
                self.rate *= 2.0;
            }
        }
    }

    fn probe(&mut self) {
        let draw = self.draw();
        self.phase = Phase::Probing { high_first: [draw & 1 == 0, draw & 2 == 0] };
    }

    /// §4.2: r moves by theta times the mean gradient of the pairs, if they agree on its sign.
    fn follow_gradient(&mut self, high_first: [bool; 2], utilities: &[f64; TRIALS]) {
        let mbit = 8.0 / BITS_PER_MBIT;
        let gradient = |pair: usize| {
            let (first, second) = (utilities[2 * pair], utilities[2 * pair + 1]);
            let rise = if high_first[pair] { first - second } else { second - first };
            rise / (2.0 * self.epsilon * self.rate * mbit)
        };
        let gradients = [gradient(0), gradient(1)];
        self.probe();
        if gradients[0] * gradients[1] <= 0.0 {
            return;
        }
        self.gradient = (gradients[0] + gradients[1]) / 2.0;
        let change = self.step.change(self.rate * mbit, self.gradient, self.theta);
        self.rate += change / mbit;
    }

    /// SplitMix64.
    fn draw(&mut self) -> u64 {
        self.random = self.random.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.random;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// What is sent at now, bytes/s.
    fn sending_rate(&self) -> f64 {
        self.current().map_or(self.rate, |interval| interval.rate)
    }
}

impl Controller for Vivace {
    fn on_ack(&mut self, ack: &Ack<'_>) {
        if ack.srtt_ns > 0 {
            self.srtt_ns = ack.srtt_ns;
            if self.rate == 0.0 {
                // The paper begins with two packets per RTT; here it is the first window.
                let rate = self.initial_window * self.packet_bytes / (ack.srtt_ns as f64 * 1e-9);
                self.rate = rate.clamp(self.min_rate, 1e15);
                self.now_ns = ack.now_ns;
                self.plan();
            }
        }
        self.advance(ack.now_ns);
        if let Some(interval) = self.interval_of(ack.sent_ns) {
            interval.on_ack(&ack.sample);
        }
        self.decide();
    }

    fn on_loss(&mut self, loss: &Loss) {
        self.advance(loss.now_ns);
        if let Some(interval) = self.interval_of(loss.newest_lost_sent_ns) {
            interval.lost += f64::from(loss.lost_packets);
        }
        self.decide();
    }

    /// Deviation: the paper says nothing of timeouts; the rate is halved and probed anew.
    fn on_rto(&mut self, timeout: &Timeout) {
        self.now_ns = self.now_ns.max(timeout.now_ns);
        if self.rate > 0.0 {
            self.rate = (self.rate / 2.0).max(self.min_rate);
            self.step = Step::default();
            self.probe();
            self.plan();
        }
    }

    fn on_send(&mut self, sent: &Sent) {
        self.advance(sent.now_ns);
        let (now_ns, started) = (self.now_ns, self.started);
        if let Some(interval) = self.pending[..started].last_mut().filter(|i| i.holds(now_ns)) {
            interval.sent += 1.0;
        }
    }

    fn on_path_change(&mut self, path: &PathInfo) {
        self.packet_bytes = packet_size(path);
    }

    fn control(&self) -> Control {
        if self.rate == 0.0 {
            // Without an RTT, the initial window within a millisecond.
            let window = self.initial_window * self.packet_bytes;
            return Control {
                pacing_bytes_per_s: pacing_rate(window / 1e-3),
                ..Control::window(window as u64)
            };
        }
        // The rate is what controls; the window, of two round trips, stops it when ACKs stop.
        let in_flight = 2.0 * self.sending_rate() * self.srtt_ns as f64 * 1e-9 / self.packet_bytes;
        Control {
            pacing_bytes_per_s: pacing_rate(self.sending_rate()),
            ..Control::window(window_bytes(in_flight.max(MIN_WINDOW_PACKETS), self.packet_bytes))
        }
    }

    fn observe(&self, out: &mut [f64]) {
        out.copy_from_slice(&[
            self.rate * 8.0 / BITS_PER_MBIT,
            self.last_utility,
            self.gradient,
            self.step.amplifier(),
        ]);
    }
}

#[cfg(test)]
#[path = "vivace_tests.rs"]
mod tests;
