//! The model that the MPC controllers share: how the RTT follows the rate, and what the papers estimate from it.
//!
//! Lynn, Hanford and Ghosal 2019 ("v1") and Lynn, Ghosal and Hanford 2020, arXiv 2002.09825 ("v2"); equation numbers are
//! v2's. Times are seconds, rates bytes/s, both `f64`. The bottleneck is a queue that fills at `r - r_B`:
//! `dl/dt = (r - r_B) / r_B` (1).

use crate::event::AckSample;
use crate::round::RoundCounter;

/// The weights of the objective.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Law {
    /// c1: weight of the squared distance of the RTT from its target.
    pub c1: f64,
    /// c2: weight of the RTT's variance.
    pub c2: f64,
    /// c3: weight of the squared change of rate.
    pub c3: f64,
    /// alpha: weight of a new sample in the running mean and variance of the RTT.
    pub alpha: f64,
}

/// What the law looks at.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct State {
    /// l: the RTT, s.
    pub rtt: f64,
    /// l-bar: its running mean, s.
    pub mean_rtt: f64,
    /// l_P: RTT of the empty path, s.
    pub empty_rtt: f64,
    /// l_t: the RTT wanted, s.
    pub target_rtt: f64,
    /// r(n): the rate in force, bytes/s.
    pub rate: f64,
    /// r_B: rate of the bottleneck, bytes/s.
    pub bottleneck: f64,
}

impl Law {
    /// The rate r(n+1) that minimises [`Law::cost`] when it is held for `dt` seconds: eqs (7) and (8). Not yet clamped.
    ///
    /// Keeps the present rate where the optimum is undefined (all weights or `dt` zero, or an input that is not finite).
    pub fn next_rate(&self, state: &State, dt: f64) -> f64 {
        let &State { rtt, mean_rtt, empty_rtt, target_rtt, rate, bottleneck } = state;
        let curvature = self.c1 + self.alpha * self.c2;
        // (8)
        let lambda =
            curvature * (rtt - dt) - self.c1 * target_rtt - self.alpha * self.c2 * mean_rtt;
        // (7)
        let inertia = self.c3 * empty_rtt * empty_rtt;
        let numerator = inertia * rate - dt * bottleneck * lambda;
        let denominator = inertia + dt * dt * curvature;
        let optimum = numerator / denominator;
        if denominator > 0.0 && optimum.is_finite() { optimum } else { rate }
    }

    /// The objective J for the next rate `next`, given the running `variance` of the RTT (s^2):
    /// `c1 (l' - l_t)^2 + c2 v' + c3 (l_P / r_B)^2 (next - r)^2`, with the RTT l' that (2) predicts and its variance v'.
    #[cfg(test)]
    fn cost(&self, state: &State, dt: f64, variance: f64, next: f64) -> f64 {
        let predicted = predict(state.rtt, next, state.bottleneck, dt);
        let from_target = predicted - state.target_rtt;
        let from_mean = predicted - state.mean_rtt;
        let spread = (1.0 - self.alpha) * variance + self.alpha * from_mean * from_mean;
        let change = state.empty_rtt / state.bottleneck * (next - state.rate);
        self.c1 * from_target * from_target + self.c2 * spread + self.c3 * change * change
    }
}

/// (2): the RTT after sending at `rate` for `dt` seconds.
#[cfg(test)]
fn predict(rtt: f64, rate: f64, bottleneck: f64, dt: f64) -> f64 {
    rtt + (rate - bottleneck) / bottleneck * dt
}

/// l_P and l_B, (3)-(5): the RTT with an empty and with a full buffer.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Extremes {
    /// l_P, s.
    pub empty_rtt: f64,
    /// l_B, s.
    pub full_rtt: f64,
}

impl Extremes {
    /// Both at the first RTT.
    pub fn new(rtt: f64) -> Self {
        Self { empty_rtt: rtt, full_rtt: rtt }
    }

    /// Takes an RTT sample `dt` seconds after the last; without new extremes both drift to `mean_rtt` with the time
    /// constant `tau_d`.
    ///
    /// Deviation: (3) is an Euler step, which overshoots for dt > tau_d; this is the exact solution over dt.
    pub fn update(&mut self, rtt: f64, mean_rtt: f64, dt: f64, tau_d: f64) {
        let closed = -libm::expm1(-dt / tau_d);
        let drift = |x: f64| x + (mean_rtt - x) * closed; // (3)
        self.empty_rtt = rtt.min(drift(self.empty_rtt)); // (4)
        self.full_rtt = rtt.max(drift(self.full_rtt)); // (5)
    }
}

/// r_B by (6): everything sent since a first packet, over the time it took plus the growth of the RTT.
///
/// It is the average delivery rate of the connection's life. On an under-loaded path it returns the sender's own rate, and
/// after a change of capacity it forgets the past only as 1/t.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct CapacityIntegral {
    /// Time and RTT of the first sample, s.
    first: Option<(f64, f64)>,
    sent_bytes: f64,
}

impl CapacityIntegral {
    /// Takes the RTT `rtt` at time `at`, `sent_bytes` having been sent since the last sample. Returns r_B, bytes/s.
    ///
    /// None while the denominator is less than half the elapsed time: the RTT has fallen faster than the model allows.
    pub fn update(&mut self, at: f64, rtt: f64, sent_bytes: f64) -> Option<f64> {
        let Some((first_at, first_rtt)) = self.first else {
            self.first = Some((at, rtt));
            return None;
        };
        self.sent_bytes += sent_bytes;
        let elapsed = at - first_at;
        let denominator = rtt - first_rtt + elapsed; // (6)
        (elapsed > 0.0 && denominator >= 0.5 * elapsed).then(|| self.sent_bytes / denominator)
    }

    /// Leaves `seconds` out of the clock: nothing was offered in them.
    pub fn skip(&mut self, seconds: f64) {
        if let Some((first_at, _)) = &mut self.first {
            *first_at += seconds;
        }
    }
}

/// r_B by gradient descent, (6)-(8) of v1: it moves against the error of the model's last prediction.
///
/// With the predicted RTT l' = l(n-1) + (r / r_B - 1) dt and the error e = l' - l(n), the squared error falls along
/// 2 e r dt / r_B^2: an RTT that rose less than predicted says that the bottleneck is faster. The scan of v1 has lost signs and a
/// denominator; this is the derivative. eta is made dimensionless by the squared ratio of the mean rate to the mean RTT, as in the
/// code that the authors released.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct CapacityGradient {
    /// l(n-1), s.
    last_rtt: Option<f64>,
    /// Running mean of r, bytes/s.
    mean_rate: f64,
}

/// What the gradient looks at.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Step {
    /// l(n), s.
    pub rtt: f64,
    /// Its running mean, s.
    pub mean_rtt: f64,
    /// r: the rate since the last sample, bytes/s.
    pub rate: f64,
    /// Time since the last sample, s.
    pub dt: f64,
    /// r_B so far, bytes/s.
    pub bottleneck: f64,
}

impl CapacityGradient {
    /// Takes a sample; `weight` is that of the rate in its mean. Returns r_B, bytes/s.
    pub fn update(&mut self, step: &Step, weight: f64, eta: f64) -> Option<f64> {
        let &Step { rtt, mean_rtt, rate, dt, bottleneck } = step;
        let Some(last_rtt) = self.last_rtt.replace(rtt) else {
            self.mean_rate = rate;
            return None;
        };
        self.mean_rate += weight * (rate - self.mean_rate);
        let error = last_rtt + (rate / bottleneck - 1.0) * dt - rtt;
        let scale = self.mean_rate / (mean_rtt * bottleneck);
        Some(bottleneck + 2.0 * eta * error * rate * dt * scale * scale)
    }

    /// Leaves out the time since the last sample: r was not what was sent in it.
    pub fn skip(&mut self, rtt: f64) {
        self.last_rtt = self.last_rtt.map(|_| rtt);
    }
}

const SLOTS: usize = 8;

/// r_B as the delivery rate over a window of busy time: (6) with a bounded memory.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct CapacityWindow {
    /// Bytes and seconds of each slot; the window is all of them.
    slots: [(f64, f64); SLOTS],
    current: usize,
}

impl CapacityWindow {
    /// `bytes` were delivered in the last `dt` seconds, all of them with a queue at the bottleneck. Returns r_B over the
    /// last `window` seconds of such time, bytes/s.
    pub fn update(&mut self, bytes: f64, dt: f64, window: f64) -> Option<f64> {
        if self.slots[self.current].1 >= window / SLOTS as f64 {
            self.current = (self.current + 1) % SLOTS;
            self.slots[self.current] = (0.0, 0.0);
        }
        let slot = &mut self.slots[self.current];
        *slot = (slot.0 + bytes, slot.1 + dt);
        let (bytes, seconds) = self.slots.iter().fold((0.0, 0.0), |a, s| (a.0 + s.0, a.1 + s.1));
        (seconds > 0.0).then(|| bytes / seconds)
    }
}

/// Whether the delivery rate still grows: the end of a start-up, as BBR finds it (Cardwell et al. 2016).
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Growth {
    rounds: RoundCounter,
    best: f64,
    stalled_rounds: u32,
}

impl Growth {
    /// Notes an ACK and the largest delivery rate so far; true when it has not grown by 25 % in three rounds.
    pub fn has_ended(&mut self, ack: &AckSample, delivery_rate_max: f64) -> bool {
        if self.rounds.on_ack(ack) {
            if delivery_rate_max >= 1.25 * self.best {
                self.best = delivery_rate_max;
                self.stalled_rounds = 0;
            } else {
                self.stalled_rounds += 1;
            }
        }
        self.stalled_rounds >= 3
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Uniform numbers in [0, 1).
    struct Uniform(u64);

    impl Uniform {
        fn next(&mut self) -> f64 {
            self.0 = self.0.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            (self.0 >> 11) as f64 / (1_u64 << 53) as f64
        }

        fn between(&mut self, low: f64, high: f64) -> f64 {
            low + (high - low) * self.next()
        }
    }

    fn random(uniform: &mut Uniform) -> (Law, State, f64) {
        let law = Law {
            c1: uniform.between(0.01, 1.0),
            c2: uniform.between(0.0, 1.0),
            c3: uniform.between(0.01, 1.0),
            alpha: uniform.between(0.01, 1.0),
        };
        let empty_rtt = uniform.between(0.001, 0.2);
        let bottleneck = uniform.between(1e5, 1e10);
        let state = State {
            rtt: empty_rtt * uniform.between(1.0, 3.0),
            mean_rtt: empty_rtt * uniform.between(1.0, 3.0),
            empty_rtt,
            target_rtt: empty_rtt * uniform.between(1.0, 3.0),
            rate: bottleneck * uniform.between(0.1, 2.0),
            bottleneck,
        };
        (law, state, empty_rtt * uniform.between(0.001, 3.0))
    }

    /// M1: the printed formula is the minimum of J, found without it: where the slope of J changes sign. J is quadratic,
    /// so its central difference is its slope at any step.
    #[test]
    fn next_rate_is_the_numerical_minimum() {
        let mut uniform = Uniform(1);
        for _ in 0..1000 {
            let (law, state, dt) = random(&mut uniform);
            let variance = uniform.between(0.0, 1e-4);
            let step = state.bottleneck;
            let slope = |x: f64| {
                law.cost(&state, dt, variance, x + step) - law.cost(&state, dt, variance, x - step)
            };
            let (mut low, mut high) = (-1e4 * state.bottleneck, 1e4 * state.bottleneck);
            for _ in 0..200 {
                let middle = 0.5 * (low + high);
                if slope(middle) > 0.0 { high = middle } else { low = middle }
            }
            let error = (law.next_rate(&state, dt) - 0.5 * (low + high)).abs();
            assert!(error < 1e-9 * state.bottleneck, "{law:?} {state:?} {dt}: {error}");
        }
    }

    /// M2.
    #[test]
    fn the_target_at_the_bottleneck_rate_is_a_fixed_point() {
        let mut uniform = Uniform(2);
        for _ in 0..1000 {
            let (law, mut state, dt) = random(&mut uniform);
            state.mean_rtt = state.rtt;
            state.target_rtt = state.rtt;
            state.rate = state.bottleneck;
            let next = law.next_rate(&state, dt);
            assert!((next / state.bottleneck - 1.0).abs() < 1e-12, "{law:?} {state:?} {dt}");
        }
    }

    /// M3: without inertia the next RTT is L = (c1 l_t + alpha c2 lbar) / (c1 + alpha c2).
    #[test]
    fn without_c3_the_law_is_dead_beat() {
        let mut uniform = Uniform(3);
        for _ in 0..1000 {
            let (mut law, state, dt) = random(&mut uniform);
            law.c3 = 0.0;
            let wanted = (law.c1 * state.target_rtt + law.alpha * law.c2 * state.mean_rtt)
                / (law.c1 + law.alpha * law.c2);
            let next = predict(state.rtt, law.next_rate(&state, dt), state.bottleneck, dt);
            assert!((next - wanted).abs() < 1e-9, "{law:?} {state:?} {dt}");
        }
    }

    #[test]
    fn undefined_optima_keep_the_rate() {
        let (mut law, state, _) = random(&mut Uniform(4));
        assert_eq!(law.next_rate(&state, 0.0), state.rate);
        assert_eq!(law.next_rate(&State { rtt: f64::NAN, ..state }, 0.1), state.rate);
        (law.c1, law.c2, law.c3) = (0.0, 0.0, 0.0);
        assert_eq!(law.next_rate(&state, 0.1), state.rate);
    }

    /// M9: after tau_d the gap to the mean is 36.8 % of what it was, at any step.
    #[test]
    fn extremes_close_their_gap_with_tau_d() {
        for steps in [1, 7, 1000] {
            let mut extremes = Extremes { empty_rtt: 0.025, full_rtt: 0.075 };
            for _ in 0..steps {
                extremes.update(0.050, 0.050, 10.0 / f64::from(steps), 10.0);
            }
            assert!(((0.050 - extremes.empty_rtt) / 0.025 - (-1.0_f64).exp()).abs() < 1e-9);
            assert!(((extremes.full_rtt - 0.050) / 0.025 - (-1.0_f64).exp()).abs() < 1e-9);
        }
        let mut extremes = Extremes::new(0.025);
        extremes.update(0.020, 0.022, 0.001, 10.0);
        extremes.update(0.040, 0.022, 0.001, 10.0);
        assert_eq!(extremes.full_rtt, 0.040);
        assert!((extremes.empty_rtt - 0.020).abs() < 1e-6);
    }

    /// M6: with the clock of the sending times, (6) is what was delivered over the time between the ACKs.
    #[test]
    fn integral_on_send_times_is_the_delivery_rate() {
        let mut uniform = Uniform(6);
        let mut integral = CapacityIntegral::default();
        let (mut sent_at, mut delivered, mut first_ack) = (0.0, 0.0, None);
        for _ in 0..5000 {
            let rtt = 0.025 + 0.010 * uniform.next();
            let ack_at = sent_at + rtt;
            let bytes = if first_ack.is_some() { 1500.0 } else { 0.0 };
            delivered += bytes;
            let first_ack = *first_ack.get_or_insert(ack_at);
            if let Some(estimate) = integral.update(sent_at, rtt, bytes) {
                let rate = delivered / (ack_at - first_ack);
                assert!((estimate / rate - 1.0).abs() < 1e-9, "{estimate} {rate}");
            }
            sent_at += 1e-3 * uniform.between(0.5, 1.5);
        }
    }

    /// M7, a known limitation: on an under-loaded path (6) returns the sender's own mean rate, whatever the capacity.
    #[test]
    fn integral_on_an_empty_path_returns_the_own_rate() {
        let mut integral = CapacityIntegral::default();
        let mut estimate = None;
        for n in 0..10_000 {
            let rate = if n % 2 == 0 { 1e6 } else { 3e6 };
            estimate = integral.update(f64::from(n) * 1e-3, 0.025, rate * 1e-3);
        }
        assert!((estimate.unwrap() / 2e6 - 1.0).abs() < 0.01, "{estimate:?}");
    }

    /// M8, and the step in numbers: the RTT was to rise by 1 ms and did not. e = 1 ms, and with eta = 10, the mean rate equal to r_B
    /// and a mean RTT of 25 ms, r_B grows by 2 * 10 * 1e-3 * 1.5e6 * 2e-3 / 0.025^2 = 96,000 bytes/s; it falls by as much if the RTT
    /// rose by 2 ms instead.
    #[test]
    fn gradient_follows_the_error_of_the_prediction() {
        let step = |rtt, rate| Step { rtt, mean_rtt: 0.025, rate, dt: 0.002, bottleneck: 1e6 };
        for (rtt, wanted) in [(0.025, 1_096_000.0), (0.026, 1_000_000.0), (0.027, 904_000.0)] {
            let mut gradient = CapacityGradient::default();
            assert_eq!(gradient.update(&step(0.025, 1e6), 0.0, 10.0), None);
            let estimate = gradient.update(&step(rtt, 1.5e6), 0.0, 10.0).unwrap();
            assert!((estimate - wanted).abs() < 1e-3, "{rtt}: {estimate}");
        }
        let mut uniform = Uniform(8);
        for _ in 0..1000 {
            let mut gradient = CapacityGradient::default();
            let (bottleneck, dt) = (uniform.between(1e5, 1e10), uniform.between(1e-6, 0.1));
            let rate = bottleneck * uniform.between(0.1, 2.0);
            let step = |rtt| Step { rtt, mean_rtt: 0.05, rate, dt, bottleneck };
            gradient.update(&step(0.05), 0.125, 10.0);
            let predicted = 0.05 + (rate / bottleneck - 1.0) * dt;
            let measured = predicted + uniform.between(-0.01, 0.01);
            let estimate = gradient.update(&step(measured), 0.125, 10.0).unwrap();
            assert_eq!(estimate > bottleneck, measured < predicted);
        }
    }

    /// M7 for the gradient: where the RTT does not move, it too returns the sender's own rate.
    #[test]
    fn gradient_on_an_empty_path_returns_the_own_rate() {
        let (mut gradient, mut bottleneck) = (CapacityGradient::default(), 1e6);
        for _ in 0..2000 {
            let step = Step { rtt: 0.025, mean_rtt: 0.025, rate: 2e6, dt: 1e-3, bottleneck };
            bottleneck = gradient.update(&step, 0.125, 10.0).unwrap_or(bottleneck);
        }
        assert!((bottleneck / 2e6 - 1.0).abs() < 0.01, "{bottleneck}");
    }

    /// A queue served at 1 MB/s and fed at 0.9 and 1.1 MB/s in turn, the model started at 1.5 and 0.7 MB/s: the gradient finds it. eta of
    /// the paper's size, with steps of 1 ms and an RTT of 25 ms, closes 2 eta (dt / l)^2 = 3.2 % of the gap a step.
    #[test]
    fn gradient_finds_the_bottleneck_of_a_busy_queue() {
        for start in [1.5e6, 0.7e6] {
            let (mut gradient, mut bottleneck) = (CapacityGradient::default(), start);
            let mut rtt = 0.025;
            for n in 0..2000 {
                let rate = if n / 10 % 2 == 0 { 1.1e6 } else { 0.9e6 };
                rtt += (rate / 1e6 - 1.0) * 1e-3;
                let step = Step { rtt, mean_rtt: 0.025, rate, dt: 1e-3, bottleneck };
                bottleneck = gradient.update(&step, 0.125, 10.0).unwrap_or(bottleneck);
            }
            assert!((bottleneck / 1e6 - 1.0).abs() < 1e-6, "{start}: {bottleneck}");
        }
    }

    #[test]
    fn window_forgets_what_integral_remembers() {
        let mut window = CapacityWindow::default();
        let mut integral = CapacityIntegral::default();
        let (mut short, mut long) = (None, None);
        for n in 0..20_000 {
            let bytes = if n < 10_000 { 1000.0 } else { 500.0 };
            short = window.update(bytes, 1e-3, 0.1);
            long = integral.update(f64::from(n) * 1e-3, 0.025, bytes);
        }
        assert!((short.unwrap() / 5e5 - 1.0).abs() < 1e-9);
        assert!((long.unwrap() / 7.5e5 - 1.0).abs() < 1e-3);
    }
}
