//! ARX predictive pacing (Fridovich-Keil et al., Allerton 2017), the forerunner of MPC: a linear model of the next RTT in the last RTTs
//! and rates, learnt on line, and per interval the rate that trades the RTT it predicts, its variance and the rate.
//!
//! The law is that of the group's public code of July 2017. What a host without H-TCP beneath needs, start-up and bounds, is ours.

use super::{pacing_rate, packet_size};
use crate::controller::{Control, Controller, Field, Needs};
use crate::event::{Ack, AckSample, Loss, PathInfo, Timeout};
use crate::filters::WindowedMax;
use crate::registry::{Family, Param, Params, Spec};
use crate::round::RoundCounter;

/// Most coefficients of either kind.
const MAX_ORDER: usize = 16;
/// Start-up ends after this many round trips in which the delivery rate grew by less than a quarter.
const FLAT_ROUNDS: u32 = 3;
const SIGNIFICANT_GROWTH: f64 = 1.25;
/// Pacing gain of start-up, 2/ln 2: doubles the rate per round trip.
const START_UP_GAIN: f64 = 2.885;
/// The largest delivery rate is over this long, ns.
const DELIVERY_WINDOW_NS: u64 = 10_000_000_000;
/// An RTT of more than this many minima counts as this many.
const MAX_RTT: f64 = 1000.0;
/// No coefficient is larger; and no variance smaller than a thousandth of the smallest RTT, squared.
const MAX_COEFFICIENT: f64 = 10.0;
const MIN_VARIANCE: f64 = 1e-6;

/// The registry entry.
pub(crate) static SPEC: Spec = Spec {
    name: "arx",
    title: "Predictive pacing with a learnt linear model of the RTT",
    family: Family::RateBased,
    source: "Fridovich-Keil et al., A model predictive control approach to flow pacing for TCP (Allerton 2017)",
    about: include_str!("about/arx.md"),
    needs: Needs::PACING.and(Needs::RATE_SAMPLE),
    params: &[
        Param::integer("p", "1", 5.0, (1.0, 16.0), "past RTTs in the model, p"),
        Param::integer("q", "1", 1.0, (1.0, 16.0), "past rates in the model, q"),
        Param::number(
            "learning_rate",
            "1",
            0.5,
            (0.001, 1.0),
            "step alpha of the normalised LMS filter",
        ),
        Param::number("psi", "1", 1.0, (0.001, 1000.0), "weight psi of the RTT's variance"),
        Param::number("xi", "1", 0.1, (0.0, 1000.0), "weight xi of the rate"),
        Param::number(
            "gamma",
            "1",
            0.5,
            (0.0, 0.999),
            "weight gamma of the old value in the means",
        ),
        Param::duration("interval", 0.01, (0.000_1, 1.0), "time between two settings of the rate"),
        Param::number(
            "b_min",
            "1",
            0.01,
            (0.000_1, 1.0),
            "least b_1 that the optimum is computed with",
        ),
        Param::number(
            "min_rate",
            "1",
            0.1,
            (0.001, 0.9),
            "least rate, share of the largest delivery rate",
        ),
        Param::number("max_rate", "1", 2.0, (1.0, 10.0), "largest rate, the same"),
    ],
    profiles: &[],
    fields: &[
        Field { name: "predicted_rtt", unit: "ms", doc: "RTT predicted for the next interval" },
        Field { name: "mean_rtt", unit: "ms", doc: "mean RTT mu_l" },
        Field {
            name: "b_1",
            unit: "1",
            doc: "effect of the rate on the next RTT, in normal units",
        },
        Field { name: "delivery_rate", unit: "Mbit/s", doc: "largest delivery rate of 10 s" },
    ],
    build,
};

fn build(params: &Params, path: &PathInfo) -> Box<dyn Controller> {
    let packet_bytes = packet_size(path);
    Box::new(Arx {
        weights: Weights {
            psi: params.get("psi"),
            xi: params.get("xi"),
            b_min: params.get("b_min"),
        },
        gamma: params.get("gamma"),
        interval_ns: params.get_ns("interval"),
        bounds: (params.get("min_rate"), params.get("max_rate")),
        packet_bytes,
        initial_window_bytes: f64::from(path.initial_window_packets.clamp(1, 65_536))
            * packet_bytes,
        order: (params.get("p") as usize, params.get("q") as usize),
        learning_rate: params.get("learning_rate"),
        rounds: RoundCounter::default(),
        full_rate: 0.0,
        flat_rounds: 0,
        delivery: WindowedMax::new(DELIVERY_WINDOW_NS),
        min_rtt_ns: 0.0,
        rate: 0.0,
        control: None,
    })
}

/// The linear model: l(n+1) = sum a_i l(n-i) + sum b_j r(n-j).
#[derive(Clone, Copy, Debug)]
struct Model {
    a: [f64; MAX_ORDER],
    b: [f64; MAX_ORDER],
    /// Newest first, zeros until there are values.
    l: [f64; MAX_ORDER],
    r: [f64; MAX_ORDER],
    p: usize,
    q: usize,
    learning_rate: f64,
}

impl Model {
    /// All coefficients are 1, as in the code.
    fn new((p, q): (usize, usize), learning_rate: f64) -> Self {
        let (p, q) = (p.min(MAX_ORDER), q.min(MAX_ORDER));
        let zeros = [0.0; MAX_ORDER];
        Self { a: [1.0; MAX_ORDER], b: [1.0; MAX_ORDER], l: zeros, r: zeros, p, q, learning_rate }
    }

    /// Prediction of the next RTT from the histories.
    fn predict(&self) -> f64 {
        dot(&self.a[..self.p], &self.l) + dot(&self.b[..self.q], &self.r)
    }

    /// Normalised LMS: theta -= alpha error phi / (|l|^2 + |r|^2); then `l` becomes the newest RTT.
    fn learn(&mut self, l: f64) {
        let norm = dot(&self.l[..self.p], &self.l) + dot(&self.r[..self.q], &self.r);
        if norm > 1e-16 {
            let step = self.learning_rate * (self.predict() - l) / norm;
            let adjust = |theta: &mut f64, phi: f64| {
                *theta = (*theta - step * phi).clamp(-MAX_COEFFICIENT, MAX_COEFFICIENT);
            };
            (0..self.p).for_each(|i| adjust(&mut self.a[i], self.l[i]));
            (0..self.q).for_each(|j| adjust(&mut self.b[j], self.r[j]));
        }
        push(&mut self.l, l);
    }
}

fn dot(weights: &[f64], values: &[f64]) -> f64 {
    weights.iter().zip(values).map(|(w, v)| w * v).sum()
}

fn push(history: &mut [f64; MAX_ORDER], newest: f64) {
    history.rotate_right(1);
    history[0] = newest;
}

/// Weights of the cost.
#[derive(Clone, Copy, Debug)]
struct Weights {
    psi: f64,
    xi: f64,
    b_min: f64,
}

/// Running means.
#[derive(Clone, Copy, Debug)]
struct Means {
    /// mu_l, mu_v and mu_r.
    rtt: f64,
    variance: f64,
    rate: f64,
}

impl Weights {
    /// The rate that minimises l/mu_l + psi (l - mu_l)^2 / mu_v - xi r/mu_r, where l = l_0 + b_1 r.
    fn optimum(&self, l_0: f64, b_1: f64, means: &Means) -> f64 {
        // Deviation: a b_1 near zero or below it makes the quotient meaningless; more rate never shortens a queue.
        let b_1 = b_1.max(self.b_min);
        let variance = means.variance.max(MIN_VARIANCE);
        let pull = (self.xi / means.rate - b_1 / means.rtt) * variance / (2.0 * self.psi * b_1);
        (means.rtt - l_0 + pull) / b_1
    }
}

/// State once start-up has found the units: RTTs count in smallest RTTs, rates in start-up's delivery rate.
#[derive(Clone, Copy, Debug)]
struct Predictor {
    model: Model,
    means: Means,
    l_hat: f64,
    rtt_unit_ns: f64,
    /// Bytes/s.
    rate_unit: f64,
    set_ns: u64,
}

struct Arx {
    weights: Weights,
    gamma: f64,
    interval_ns: u64,
    bounds: (f64, f64),
    packet_bytes: f64,
    initial_window_bytes: f64,
    order: (usize, usize),
    learning_rate: f64,
    rounds: RoundCounter,
    /// Start-up: delivery rate of the last significant growth, bytes/s, and round trips since.
    full_rate: f64,
    flat_rounds: u32,
    delivery: WindowedMax<16>,
    min_rtt_ns: f64,
    /// Pacing rate, bytes/s; 0 before the first RTT.
    rate: f64,
    /// `None` during start-up.
    control: Option<Predictor>,
}

impl Arx {
    fn max_delivery(&self) -> f64 {
        self.delivery.best().unwrap_or(0.0).max(1.0)
    }

    /// Deviation: the paper controls a flow of H-TCP that is already running. Double per round trip until delivery is flat.
    fn start_up(&mut self, ack: &AckSample, starts_round: bool) {
        let delivery = self.max_delivery();
        self.rate = START_UP_GAIN * delivery;
        if !starts_round || ack.has(AckSample::APP_LIMITED) {
            return;
        }
        if delivery >= SIGNIFICANT_GROWTH * self.full_rate {
            self.full_rate = delivery;
            self.flat_rounds = 0;
            return;
        }
        self.flat_rounds += 1;
        if self.flat_rounds >= FLAT_ROUNDS {
            self.rate = delivery;
            let rtt = ack.rtt_ns as f64 / self.min_rtt_ns;
            self.control = Some(Predictor {
                model: Model::new(self.order, self.learning_rate),
                means: Means { rtt, variance: 0.0, rate: 1.0 },
                l_hat: 0.0,
                // Deviation: the code has ms and Gbit/s, and a filter that depends on that. These units suit any path.
                rtt_unit_ns: self.min_rtt_ns,
                rate_unit: delivery,
                set_ns: ack.now_ns,
            });
        }
    }
}

impl Predictor {
    /// One interval: learns from the RTT `l`, sets the best rate within `bounds` (bytes/s), returns it.
    fn step(&mut self, l: f64, gamma: f64, weights: &Weights, bounds: (f64, f64)) -> f64 {
        self.model.learn(l);
        let mean = |old: f64, new: f64| (1.0 - gamma) * new + gamma * old;
        self.means.rtt = mean(self.means.rtt, l);
        let deviation = self.l_hat - self.means.rtt;
        self.means.variance = mean(self.means.variance, deviation * deviation);
        push(&mut self.model.r, 0.0);
        let best = weights.optimum(self.model.predict(), self.model.b[0], &self.means);
        let (least, most) = (bounds.0 / self.rate_unit, bounds.1 / self.rate_unit);
        let rate = if best.is_nan() { 1.0 } else { best }.clamp(least, most);
        self.model.r[0] = rate;
        self.means.rate = mean(self.means.rate, rate);
        self.l_hat = self.model.predict().clamp(-MAX_RTT, MAX_RTT);
        rate * self.rate_unit
    }
}

impl Controller for Arx {
    fn on_ack(&mut self, ack: &Ack<'_>) {
        let starts_round = self.rounds.on_ack(ack);
        if let Some(rate) = ack.delivery_rate() {
            // As in BBR: with little to send, only a larger rate says anything.
            if !ack.has(AckSample::APP_LIMITED) || rate >= self.max_delivery() {
                self.delivery.update(ack.now_ns, rate.min(1e15));
            }
        }
        if ack.rtt_ns == 0 {
            return;
        }
        let rtt_ns = ack.rtt_ns as f64;
        if self.min_rtt_ns == 0.0 || rtt_ns < self.min_rtt_ns {
            self.min_rtt_ns = rtt_ns;
        }
        if self.rate == 0.0 {
            self.delivery.update(ack.now_ns, self.initial_window_bytes * 1e9 / rtt_ns);
        }
        let Some(mut predictor) = self.control else { return self.start_up(ack, starts_round) };
        if ack.now_ns.saturating_sub(predictor.set_ns) < self.interval_ns {
            return;
        }
        predictor.set_ns = ack.now_ns;
        let delivery = self.max_delivery();
        let bounds = (self.bounds.0 * delivery, self.bounds.1 * delivery);
        let l = (rtt_ns / predictor.rtt_unit_ns).min(MAX_RTT);
        self.rate = predictor.step(l, self.gamma, &self.weights, bounds);
        self.control = Some(predictor);
    }

    fn on_loss(&mut self, loss: &Loss) {
        // The paper leaves losses to H-TCP. Start-up ends with them: the buffer is full.
        if loss.starts_episode() && self.control.is_none() {
            self.flat_rounds = FLAT_ROUNDS - 1;
        }
    }

    fn on_rto(&mut self, _timeout: &Timeout) {
        // Nothing is known any more.
        self.control = None;
        self.delivery.clear();
        self.full_rate = 0.0;
        self.flat_rounds = 0;
        self.rate = if self.min_rtt_ns > 0.0 {
            2.0 * self.packet_bytes * 1e9 / self.min_rtt_ns
        } else {
            0.0
        };
    }

    fn on_path_change(&mut self, path: &PathInfo) {
        self.packet_bytes = packet_size(path);
    }

    fn control(&self) -> Control {
        if self.rate == 0.0 {
            return Control::window(super::window_bytes(
                self.initial_window_bytes / self.packet_bytes,
                self.packet_bytes,
            ));
        }
        // The rate controls; the window bounds what is sent when ACKs stop.
        let rtt_ns = self.control.map_or(self.min_rtt_ns, |p| p.means.rtt * p.rtt_unit_ns);
        let packets = 2.0 * self.max_delivery().max(self.rate) * rtt_ns / 1e9 / self.packet_bytes;
        Control {
            pacing_bytes_per_s: pacing_rate(self.rate),
            ..Control::window(super::window_bytes(packets.max(4.0), self.packet_bytes))
        }
    }

    fn observe(&self, out: &mut [f64]) {
        let ms = |p: &Predictor, rtt: f64| rtt * p.rtt_unit_ns / 1e6;
        let of = |value: &dyn Fn(&Predictor) -> f64| self.control.as_ref().map_or(f64::NAN, value);
        out[0] = of(&|p| ms(p, p.l_hat));
        out[1] = of(&|p| ms(p, p.means.rtt));
        out[2] = of(&|p| p.model.b[0]);
        out[3] = self.delivery.best().map_or(f64::NAN, |rate| rate * 8e-6);
    }
}

#[cfg(test)]
#[path = "arx_tests.rs"]
mod tests;
