//! The sender of both MPC papers: the rate that keeps the RTT between that of an empty and that of a full buffer, at little
//! variance of RTT and rate. Equation numbers are those of 2020 unless said; in 2019 (6)-(8) are another estimate of r_B, and
//! (7)-(8) are (9)-(10).
//!
//! Per ACK: (3)-(5) the extremes, (6) the bottleneck's rate, (7)-(8) the next rate; now and then a probe for either extreme.
//! Pure pacing: the window is only a safety cap. What the papers leave open is a parameter. The printed step dt is the time between ACKs, which leaves the loop undamped under
//! feedback delay; `horizon = "explicit"` is the same law looking `horizon_rtts` ahead.

use super::mpc_law::{
    CapacityGradient, CapacityIntegral, CapacityWindow, Extremes, Growth, State, Step,
};
use super::{MAX_PACING_BYTES_PER_S, MAX_WINDOW_PACKETS, pacing_rate, packet_size, window_bytes};
use crate::controller::{Control, Controller};
use crate::episode::EpisodeGate;
use crate::event::{Ack, AckSample, Loss, PathInfo, Timeout};
use crate::registry::Params;

pub(crate) mod params;

use params::{Capacity, Choices, LossUnit, Probe, Reaction};

pub(crate) fn build(params: &Params, path: &PathInfo) -> Box<dyn Controller> {
    let mut mpc = Mpc {
        choices: Choices::read(params),
        packet_bytes: packet_size(path),
        initial_window: f64::from(path.initial_window_packets),
        start_ns: path.now_ns,
        rate: 0.0,
        resume_rate: 0.0,
        delivery_rate_max: 0.0,
        phase: Phase::Steady,
        next_up_ns: 0,
        next_down_ns: 0,
        no_pulse_until_ns: 0,
        gate: EpisodeGate::default(),
        model: None,
        cwnd_bytes: 0,
    };
    let (low, high) = mpc.bounds();
    mpc.rate = if mpc.choices.start_at_min { low } else { high };
    mpc.phase = mpc.first_phase();
    mpc.schedule(path.now_ns);
    mpc.set_window(high);
    Box::new(mpc)
}

/// Where in its cycle the target pulses towards l_B and towards l_P.
const PULSE_UP: f64 = 0.25;
const PULSE_DOWN: f64 = 0.75;

#[derive(Clone, Copy, Debug, PartialEq)]
enum Phase {
    /// At twice the delivery rate until that stops growing; only where r_max is not given.
    Startup(Growth),
    Steady,
    /// Towards l_B, until a time in ns.
    Up(u64),
    /// Towards l_P; the flag says at r_min although gentle, because of a loss.
    Down(u64, bool),
}

/// The estimates, from the first ACK on.
#[derive(Clone, Copy, Debug)]
struct Model {
    last_ns: u64,
    rtt: f64,
    /// 2 packets per RTT, bytes/s: r_min where none is given.
    least_rate: f64,
    mean_rtt: f64,
    extremes: Extremes,
    bottleneck: f64,
    target_rtt: f64,
    integral: CapacityIntegral,
    window: CapacityWindow,
    gradient: CapacityGradient,
}

struct Mpc {
    choices: Choices,
    packet_bytes: f64,
    initial_window: f64,
    start_ns: u64,
    /// r, bytes/s.
    rate: f64,
    /// r before the probe.
    resume_rate: f64,
    delivery_rate_max: f64,
    phase: Phase,
    next_up_ns: u64,
    next_down_ns: u64,
    /// Until then there is no pulse towards l_B: a loss has ended it.
    no_pulse_until_ns: u64,
    gate: EpisodeGate,
    model: Option<Model>,
    /// The safety window.
    cwnd_bytes: u64,
}

impl Mpc {
    /// r_min and r_max, bytes/s, in order.
    fn bounds(&self) -> (f64, f64) {
        let high = match self.choices.r_max {
            // Before the first sample: the initial window within a millisecond.
            0.0 if self.delivery_rate_max == 0.0 => 1e3 * self.initial_window * self.packet_bytes,
            0.0 => 2.0 * self.delivery_rate_max,
            rate => rate,
        };
        let low = match (self.choices.r_min, &self.model) {
            (0.0, Some(m)) => m.least_rate.max(0.01 * m.bottleneck).min(high),
            (0.0, None) => self.packet_bytes,
            (rate, _) => rate,
        };
        let low = low.clamp(1.0, MAX_PACING_BYTES_PER_S);
        (low, high.clamp(low, MAX_PACING_BYTES_PER_S))
    }

    /// Deviation: the paper starts in the steady phase. Without a given r_max, (6) would then confirm whatever rate the
    /// flow happens to start with, for ever.
    fn first_phase(&self) -> Phase {
        if self.choices.r_max == 0.0 && !self.choices.start_at_min {
            Phase::Startup(Growth::default())
        } else {
            Phase::Steady
        }
    }

    /// Leaves start-up when the delivery rate stops growing or the RTT is a quarter above l_P.
    fn check_startup(&mut self, ack: &AckSample) {
        let (Phase::Startup(growth), Some(m)) = (&mut self.phase, &self.model) else { return };
        let queue_seen = m.rtt > 1.25 * m.extremes.empty_rtt;
        if growth.has_ended(ack, self.delivery_rate_max) || queue_seen {
            self.end_startup(ack.now_ns);
            self.phase = Phase::Steady;
        }
    }

    /// The delivery rate is r_B; (6) begins here.
    fn end_startup(&mut self, now_ns: u64) {
        if let Some(m) = &mut self.model {
            m.bottleneck = self.delivery_rate_max.max(1.0);
            m.integral = CapacityIntegral::default();
        }
        self.rate = self.delivery_rate_max;
        self.schedule(now_ns);
    }

    fn schedule(&mut self, now_ns: u64) {
        let period_ns = self.choices.probe_period_ns;
        self.next_up_ns = now_ns.saturating_add(period_ns);
        self.next_down_ns = self.next_up_ns.saturating_add(period_ns / 2);
    }

    /// r_B, by whichever reading is chosen. `dt` is the time since the last ACK, s, `weight` that of a new value in a mean. Returns [`Self::bounds`].
    fn estimate_bottleneck(
        &mut self,
        ack: &AckSample,
        delivery_rate: Option<f64>,
        dt: f64,
        weight: f64,
    ) -> (f64, f64) {
        let Some(m) = &mut self.model else { return self.bounds() };
        let busy_margin = (0.02 * m.extremes.empty_rtt).max(1e-3);
        let estimate = match self.choices.capacity {
            _ if ack.has(AckSample::APP_LIMITED) => {
                // The rate r was not what was sent: leave the time out.
                m.integral.skip(dt);
                m.gradient.skip(m.rtt);
                None
            }
            Capacity::Integral => m.integral.update(
                seconds(ack.now_ns.saturating_sub(self.start_ns)),
                m.rtt,
                self.rate * dt,
            ),
            Capacity::IntegralSend => {
                let sent_ns = ack.sent_ns.saturating_sub(self.start_ns);
                m.integral.update(seconds(sent_ns), m.rtt, ack.acked_bytes as f64)
            }
            Capacity::Gradient => {
                let (rtt, mean_rtt, bottleneck) = (m.rtt, m.mean_rtt, m.bottleneck);
                let step = Step { rtt, mean_rtt, rate: self.rate, dt, bottleneck };
                m.gradient.update(&step, weight, self.choices.eta)
            }
            Capacity::Windowed if m.rtt > m.extremes.empty_rtt + busy_margin => {
                let window = (self.choices.capacity_rtts * m.rtt).max(0.05);
                m.window.update(ack.acked_bytes as f64, dt, window)
            }
            // The queue is empty: the path carries at least what it delivers.
            Capacity::Windowed => delivery_rate.map(|rate| rate.max(m.bottleneck)),
        };
        if let Some(estimate) = estimate.filter(|e| e.is_finite()) {
            m.bottleneck = estimate;
        }
        m.bottleneck = m.bottleneck.min(MAX_PACING_BYTES_PER_S);
        // An r_B that is raised to r_min leaves r_min where it is: so these are the bounds after it, too.
        let (low, high) = self.bounds();
        if let Some(m) = &mut self.model {
            m.bottleneck = m.bottleneck.max(low);
        }
        debug_assert_eq!((low, high), self.bounds());
        (low, high)
    }

    /// l_t: between the extremes, or where the pulses are.
    fn target(&self, extremes: &Extremes, now_ns: u64) -> f64 {
        let &Extremes { empty_rtt, full_rtt } = extremes;
        let base = empty_rtt + self.choices.target * (full_rtt - empty_rtt);
        if self.choices.probe != Probe::Pulse {
            return base;
        }
        let phase = self.cycle_phase(now_ns);
        // A Lorentzian of the distance to its centre.
        let pulse = |centre: f64| {
            let x = (phase - centre) / self.choices.pulse_width;
            1.0 / (1.0 + x * x)
        };
        let up = if now_ns < self.no_pulse_until_ns { 0.0 } else { pulse(PULSE_UP) };
        let top = self.choices.pulse_top * full_rtt;
        base + (top - base) * up + (empty_rtt - base) * pulse(PULSE_DOWN)
    }

    /// Where in the cycle of the pulses `now_ns` is, from 0 to 1.
    fn cycle_phase(&self, now_ns: u64) -> f64 {
        let period_ns = self.choices.probe_period_ns.max(1);
        (now_ns.saturating_sub(self.start_ns) % period_ns) as f64 / period_ns as f64
    }

    /// A loss ends the pulse towards l_B: both papers' probing "immediately stops when a loss is detected".
    ///
    /// A Lorentzian begins and ends nowhere: the pulse is taken to last for the quarter of the cycle around its centre.
    fn end_pulse(&mut self, now_ns: u64) {
        let left = PULSE_UP + 0.125 - self.cycle_phase(now_ns);
        if (0.0..=0.25).contains(&left) {
            let left_ns = (left * self.choices.probe_period_ns as f64) as u64;
            self.no_pulse_until_ns = now_ns.saturating_add(left_ns);
        }
    }

    /// Begins and ends probes.
    fn advance_phase(&mut self, now_ns: u64, mean_rtt: f64) {
        let until = || now_ns.saturating_add((self.choices.probe_rtts * mean_rtt * 1e9) as u64);
        let next = match (&self.phase, self.choices.probe) {
            (Phase::Up(end), Probe::Steady) if now_ns >= *end => Phase::Down(until(), false),
            (Phase::Up(end) | Phase::Down(end, _), _) if now_ns >= *end => {
                if self.choices.restore {
                    self.rate = self.resume_rate;
                }
                Phase::Steady
            }
            (Phase::Steady, Probe::Steady | Probe::Gentle) if now_ns >= self.next_up_ns => {
                self.next_up_ns = now_ns.saturating_add(self.choices.probe_period_ns);
                self.resume_rate = self.rate;
                Phase::Up(until())
            }
            (Phase::Steady, Probe::Gentle) if now_ns >= self.next_down_ns => {
                self.next_down_ns = now_ns.saturating_add(self.choices.probe_period_ns);
                self.resume_rate = self.rate;
                Phase::Down(until(), false)
            }
            _ => return,
        };
        self.phase = next;
    }

    /// The rate of the phase: (7)-(8) clamped, or the probe's.
    fn set_rate(&mut self, ack: &AckSample, dt: f64, target_rtt: f64, (low, high): (f64, f64)) {
        let Some(m) = &mut self.model else { return };
        m.target_rtt = target_rtt;
        let gentle = self.choices.probe == Probe::Gentle;
        let rate = match self.phase {
            Phase::Up(_) if gentle => self.choices.probe_up * m.bottleneck,
            Phase::Up(_) | Phase::Startup(_) => high,
            Phase::Down(_, false) if gentle => self.choices.probe_down * m.bottleneck,
            Phase::Down(..) => low,
            Phase::Steady => {
                let state = State {
                    rtt: m.rtt,
                    mean_rtt: m.mean_rtt,
                    empty_rtt: m.extremes.empty_rtt.max(self.choices.l_p_floor),
                    target_rtt,
                    rate: self.rate,
                    bottleneck: m.bottleneck,
                };
                let horizon = self.choices.horizon_rtts.map_or(dt, |h| (h * m.rtt).max(1e-3));
                let next = self.choices.law.next_rate(&state, horizon);
                // A rate that the application does not use must not grow.
                if ack.has(AckSample::APP_LIMITED) { next.min(self.rate) } else { next }
            }
        };
        self.rate = rate.clamp(low, high);
    }

    /// The safety window, given r_max.
    fn set_window(&mut self, high: f64) {
        let packets = match &self.model {
            Some(m) => {
                let window =
                    self.choices.cwnd_gain * high * m.extremes.full_rtt / self.packet_bytes;
                window.max(self.initial_window)
            }
            // Without an RTT there is no product; a given r_max is the host's word that it may be sent.
            None if self.choices.r_max > 0.0 => MAX_WINDOW_PACKETS,
            None => self.initial_window,
        };
        self.cwnd_bytes = window_bytes(packets, self.packet_bytes);
    }

    /// `packets` were lost, the newest of them sent at `sent_ns`. 2020, section III: "stop probing up and probe for l_P"; 2019 cuts
    /// the rate.
    ///
    /// Deviation: the papers do not mention marks; one counts as a loss.
    fn on_congestion(&mut self, now_ns: u64, sent_ns: u64, packets: u32) {
        let losses = match self.choices.loss_per {
            LossUnit::Window if !self.gate.admits(now_ns, sent_ns) => return,
            LossUnit::Window => 1,
            LossUnit::Packet => packets,
        };
        if matches!(self.phase, Phase::Startup(_)) && self.choices.loss != Reaction::Ignore {
            self.end_startup(now_ns);
            self.phase = Phase::Steady;
        }
        if self.choices.loss != Reaction::Ignore {
            self.end_pulse(now_ns);
        }
        match self.choices.loss {
            Reaction::Probe if !matches!(self.phase, Phase::Down(..)) => {
                if self.phase == Phase::Steady {
                    self.resume_rate = self.rate;
                }
                let mean_rtt = self.model.map_or(0.0, |m| m.mean_rtt);
                let length_ns = (self.choices.loss_rtts * mean_rtt * 1e9) as u64;
                self.phase = Phase::Down(now_ns.saturating_add(length_ns), true);
                self.rate = self.bounds().0;
            }
            Reaction::Cut => {
                if matches!(self.phase, Phase::Up(_)) {
                    self.phase = Phase::Steady;
                }
                let (low, high) = self.bounds();
                let cut = libm::pow(self.choices.loss_cut, f64::from(losses));
                self.rate = (self.rate * cut).clamp(low, high);
            }
            _ => {}
        }
    }
}

impl Controller for Mpc {
    fn on_ack(&mut self, ack: &Ack<'_>) {
        let delivery_rate = ack.delivery_rate();
        if let Some(rate) = delivery_rate {
            self.delivery_rate_max = self.delivery_rate_max.max(rate).min(MAX_PACING_BYTES_PER_S);
        }
        if ack.ce_packets > 0 {
            self.on_congestion(ack.now_ns, ack.sent_ns, ack.ce_packets);
        }
        if ack.rtt_ns == 0 {
            return self.set_window(self.bounds().1);
        }
        let rtt = seconds(ack.rtt_ns);
        let (rate, least_rate) = (self.rate, 2.0 * self.packet_bytes / rtt.max(1e-6));
        let m = self.model.get_or_insert_with(|| Model {
            last_ns: ack.now_ns,
            rtt,
            least_rate,
            mean_rtt: rtt,
            extremes: Extremes::new(rtt),
            bottleneck: rate,
            target_rtt: rtt,
            integral: CapacityIntegral::default(),
            window: CapacityWindow::default(),
            gradient: CapacityGradient::default(),
        });
        let dt = seconds(ack.now_ns.saturating_sub(m.last_ns));
        m.last_ns = ack.now_ns;
        (m.rtt, m.least_rate) = (rtt, least_rate);
        let Choices { law, alpha_per_rtt, tau_d, .. } = &self.choices;
        let weight = if *alpha_per_rtt { -libm::expm1(-law.alpha * dt / rtt) } else { law.alpha };
        m.mean_rtt += weight * (rtt - m.mean_rtt);
        m.extremes.update(rtt, m.mean_rtt, dt, *tau_d);
        let (extremes, mean_rtt) = (m.extremes, m.mean_rtt);
        self.check_startup(ack);
        let bounds = self.estimate_bottleneck(ack, delivery_rate, dt, weight);
        let target_rtt = self.target(&extremes, ack.now_ns);
        self.advance_phase(ack.now_ns, mean_rtt);
        self.set_rate(ack, dt, target_rtt, bounds);
        self.set_window(bounds.1);
    }

    fn on_loss(&mut self, loss: &Loss) {
        self.on_congestion(loss.now_ns, loss.newest_lost_sent_ns, loss.lost_packets);
        self.set_window(self.bounds().1);
    }

    fn on_rto(&mut self, timeout: &Timeout) {
        // The paper says nothing: send at r_min, learn r_B anew, keep l_P.
        self.gate.open(timeout.now_ns);
        self.rate = self.bounds().0;
        self.delivery_rate_max = 0.0;
        self.phase = self.first_phase();
        if let Some(m) = &mut self.model {
            m.integral = CapacityIntegral::default();
            m.window = CapacityWindow::default();
            m.gradient = CapacityGradient::default();
        }
        self.set_window(self.bounds().1);
    }

    fn on_path_change(&mut self, path: &PathInfo) {
        // Another path has other extremes: start the model again from the next ACK.
        self.packet_bytes = packet_size(path);
        self.model = None;
        self.delivery_rate_max = 0.0;
        self.phase = self.first_phase();
        self.set_window(self.bounds().1);
    }

    fn control(&self) -> Control {
        Control {
            cwnd_bytes: self.cwnd_bytes,
            pacing_bytes_per_s: pacing_rate(self.rate),
            send_quantum_bytes: 0,
            next_timer_ns: Control::NEVER,
            timeout_ns: 0,
        }
    }

    fn observe(&self, out: &mut [f64]) {
        let of = |get: fn(&Model) -> f64| self.model.as_ref().map_or(f64::NAN, get);
        out.copy_from_slice(&[
            self.rate * 8e-6,
            of(|m| m.bottleneck * 8e-6),
            of(|m| m.mean_rtt * 1e3),
            of(|m| m.extremes.empty_rtt * 1e3),
            of(|m| m.extremes.full_rtt * 1e3),
            of(|m| m.target_rtt * 1e3),
            match self.phase {
                Phase::Startup(_) => 2.0,
                Phase::Steady => 0.0,
                Phase::Up(_) => 1.0,
                Phase::Down(..) => -1.0,
            },
        ]);
    }
}

fn seconds(ns: u64) -> f64 {
    ns as f64 * 1e-9
}

#[cfg(test)]
#[path = "mpc_sender_tests.rs"]
mod tests;
