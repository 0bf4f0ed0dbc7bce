//! ProbeBW (§5.3.3): cruise below what the path takes, fill it, push until the rate no longer grows or too much is lost, drain.

use super::model::{Flight, Sample};
use super::{Bbr3, State};
use crate::event::AckSample;

/// After so many rounds of a probe the bound no longer grows twice as fast.
const MOST_DOUBLINGS: u32 = 30;

/// What the ACKs of these packets say of the last probe.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum AckPhase {
    Init,
    Refilling,
    ProbeStarting,
    ProbeFeedback,
    ProbeStopping,
}

/// The state of the probing cycle (§2.14).
#[derive(Clone, Copy, Debug)]
pub(super) struct Cycle {
    ack_phase: AckPhase,
    /// is_bw_probe_sample: losses speak of a probe that has not been answered yet.
    pub(super) is_probe_sample: bool,
    prev_probe_too_high: bool,
    prev_probe_precautionary: bool,
    start_ns: u64,
    wait_ns: u64,
    pub(super) rounds_since_probe: u64,
    up_rounds: u32,
    up_acked: f64,
    /// probe_up_acked_per_inc: bytes acknowledged for which inflight_longterm grows by a packet.
    up_acked_per_step: f64,
}

impl Cycle {
    pub(super) fn new() -> Self {
        Self {
            ack_phase: AckPhase::Init,
            is_probe_sample: false,
            prev_probe_too_high: false,
            prev_probe_precautionary: false,
            start_ns: 0,
            wait_ns: 0,
            rounds_since_probe: 0,
            up_rounds: 0,
            up_acked: 0.0,
            up_acked_per_step: f64::INFINITY,
        }
    }

    /// ProbeRTT has interrupted the cycle.
    pub(super) fn interrupt(&mut self) {
        self.ack_phase = AckPhase::ProbeStopping;
    }
}

impl Bbr3 {
    /// §5.3.3.9 UpdateProbeBWCyclePhase.
    pub(super) fn update_probe_bw(&mut self, ack: &AckSample, sample: &Sample) {
        if !self.full_bw_reached || self.adapt_longterm_model(ack, sample) {
            return;
        }
        match self.state {
            State::Down | State::Cruise if self.is_time_to_probe(ack.now_ns) => self.start_refill(),
            State::Down if self.is_time_to_cruise(ack) => self.state = State::Cruise,
            // One round at the estimated rate, so that what follows starts from a full pipe.
            State::Refill if self.round_start => {
                self.cycle.is_probe_sample = true;
                self.start_up(sample);
            }
            State::Up => self.check_up(ack, sample),
            _ => {}
        }
    }

    pub(super) fn start_down(&mut self, now_ns: u64) {
        self.model.reset_congestion_signals();
        self.cycle.up_acked_per_step = f64::INFINITY;
        self.pick_probe_wait();
        self.cycle.start_ns = now_ns;
        self.cycle.ack_phase = AckPhase::ProbeStopping;
        self.rounds.restart(self.delivered_total_bytes);
        self.state = State::Down;
    }

    pub(super) fn start_refill(&mut self) {
        self.model.reset_shortterm();
        self.cycle.up_rounds = 0;
        self.cycle.up_acked = 0.0;
        self.cycle.prev_probe_precautionary = false;
        self.cycle.ack_phase = AckPhase::Refilling;
        self.rounds.restart(self.delivered_total_bytes);
        self.state = State::Refill;
    }

    fn start_up(&mut self, sample: &Sample) {
        self.cycle.ack_phase = AckPhase::ProbeStarting;
        self.rounds.restart(self.delivered_total_bytes);
        self.restart_full_bw(sample.rate);
        self.state = State::Up;
        self.raise_longterm_slope();
    }

    /// §5.3.3.8.3 PickProbeWait: two to three seconds, or as many rounds as a Reno flow needs to grow by a window.
    fn pick_probe_wait(&mut self) {
        self.cycle.rounds_since_probe = self.random.below(2);
        let options = &self.options;
        let wait_ns = options.probe_wait_ns + options.probe_wait_spread_ns * self.random.uniform();
        self.cycle.wait_ns = wait_ns as u64;
    }

    fn is_time_to_probe(&self, now_ns: u64) -> bool {
        let elapsed_ns = now_ns.saturating_sub(self.cycle.start_ns);
        let reno_rounds =
            (self.target_inflight() / self.packet_bytes).min(self.options.reno_rounds);
        elapsed_ns > self.cycle.wait_ns || self.cycle.rounds_since_probe as f64 >= reno_rounds
    }

    /// §5.3.3.1: no queue, and room for others.
    fn is_time_to_cruise(&self, ack: &AckSample) -> bool {
        let in_flight = ack.in_flight_bytes as f64;
        in_flight <= self.inflight_with_headroom()
            && in_flight <= self.inflight(self.model.max_bw(), 1.0)
    }

    fn check_up(&mut self, ack: &AckSample, sample: &Sample) {
        if self.is_time_to_go_down(ack, sample) {
            // No losses yet.
            self.cycle.prev_probe_too_high = false;
            self.start_down(ack.now_ns);
        }
    }

    /// §5.3.3.7.
    fn is_time_to_go_down(&mut self, ack: &AckSample, sample: &Sample) -> bool {
        let longterm = self.model.inflight_longterm;
        if self.cycle.prev_probe_too_high && ack.in_flight_bytes as f64 >= longterm {
            // As much as was too much the last time: first see what becomes of it.
            self.cycle.prev_probe_precautionary = true;
            return true;
        }
        if ack.has(AckSample::CWND_LIMITED) && self.cwnd >= longterm {
            // The bound keeps the rate from growing.
            self.restart_full_bw(sample.rate);
            return false;
        }
        self.full_bw_now
    }

    /// §5.3.3.9 AdaptLongTermModel; true when it has changed the state.
    fn adapt_longterm_model(&mut self, ack: &AckSample, sample: &Sample) -> bool {
        if self.cycle.ack_phase == AckPhase::ProbeStarting && self.round_start {
            self.cycle.ack_phase = AckPhase::ProbeFeedback;
        }
        if self.cycle.ack_phase == AckPhase::ProbeStopping && self.round_start {
            self.cycle.is_probe_sample = false;
            self.cycle.ack_phase = AckPhase::Init;
            if self.state.is_probe_bw() {
                if !sample.flight.app_limited {
                    self.model.advance_max_bw();
                }
                if self.cycle.prev_probe_precautionary && !self.cycle.prev_probe_too_high {
                    // It did no harm: now go beyond.
                    self.start_refill();
                    return true;
                }
            }
        }
        let longterm = self.model.inflight_longterm;
        if longterm.is_finite() && !sample.flight.was_too_high(self.options.loss_threshold) {
            self.model.inflight_longterm = longterm.max(sample.flight.bytes);
            if self.state == State::Up {
                self.probe_longterm_upward(ack);
            }
        }
        false
    }

    /// §5.3.3.9 ProbeInflightLongtermUpward: by 1, 2, 4, … packets a round.
    fn probe_longterm_upward(&mut self, ack: &AckSample) {
        if !ack.has(AckSample::CWND_LIMITED) || self.cwnd < self.model.inflight_longterm {
            return;
        }
        self.cycle.up_acked += ack.acked_bytes as f64;
        let steps = (self.cycle.up_acked / self.cycle.up_acked_per_step).floor();
        if steps > 0.0 {
            self.cycle.up_acked -= steps * self.cycle.up_acked_per_step;
            self.model.inflight_longterm += steps * self.packet_bytes;
        }
        if self.round_start {
            self.raise_longterm_slope();
        }
    }

    fn raise_longterm_slope(&mut self) {
        let growth = f64::from(1_u32 << self.cycle.up_rounds);
        self.cycle.up_rounds = (self.cycle.up_rounds + 1).min(MOST_DOUBLINGS);
        self.cycle.up_acked_per_step = (self.cwnd / growth).max(self.packet_bytes);
    }

    /// §5.5.10.2 HandleInflightTooHigh: a probe lost more than the threshold of `flight`.
    pub(super) fn on_inflight_too_high(&mut self, flight: &Flight, now_ns: u64) {
        self.cycle.prev_probe_too_high = true;
        self.cycle.is_probe_sample = false;
        if !flight.app_limited {
            let least = self.target_inflight() * self.options.beta;
            self.model.inflight_longterm = flight.bytes.max(least);
        }
        if self.state == State::Up {
            self.undo.state = Some(State::Up);
            self.start_down(now_ns);
        }
    }

    /// §5.3.3.9.
    pub(super) fn inflight_with_headroom(&self) -> f64 {
        let longterm = self.model.inflight_longterm;
        if longterm.is_infinite() {
            return longterm;
        }
        let headroom = self.packet_bytes.max(self.options.headroom * longterm);
        (longterm - headroom).max(self.min_window())
    }

    /// §5.3.3.8.3 TargetInflight: a bandwidth-delay product, unless congestion has cut the window.
    fn target_inflight(&self) -> f64 {
        self.bdp(self.model.bw(), 1.0).min(self.cwnd)
    }
}
