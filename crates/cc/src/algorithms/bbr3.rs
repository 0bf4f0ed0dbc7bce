//! BBR version 3 (draft-ietf-ccwg-bbr, the working group's text of August 2026): a model of the path as in version 1, and bounds
//! on rate and flight that losses lower and probes raise.
//!
//! ACKs with delivery-rate samples and losses in; pacing rate, window and burst size out. Section numbers are the draft's. Google's
//! Linux `tcp_bbr`, version 3, has other constants: the profile "linux".
//!
//! Deviations. Of packets found lost at once the newest is judged, with those before it as lost before; after a timeout the flight
//! of that moment. State is saved for an undo once per episode, as the draft's text and Linux have it; its pseudocode saves it in
//! every round with losses, so that the losses after the first would overwrite what is to be restored.

use super::bbr_part::{AckEpoch, Pacing, Plateau, RttProbe};
use super::{MAX_WINDOW_PACKETS, pacing_rate, packet_size, window_bytes};
use crate::controller::{Control, Controller};
use crate::event::{Ack, AckSample, Loss, PathInfo, Resume, Timeout, Undo};
use crate::filters::WindowedMax;
use crate::random::SplitMix64;
use crate::registry::Params;
use crate::round::RoundCounter;

mod min_rtt;
mod model;
mod params;
mod probe_bw;

use min_rtt::MinRtt;
use model::{Bounds, Flight, Model, Sample};
use params::Options;
pub(crate) use params::SPEC;
use probe_bw::Cycle;

/// §2.12 ExtraAckedFilterLen, round trips; one in Startup.
const EXTRA_ACKED_ROUNDS: u64 = 10;
/// §5.5.8.1: one burst queued in the host, one being segmented, one being aggregated by the receiver.
const OFFLOAD_QUANTA: f64 = 3.0;
/// Linux: ACKs are taken to be held back for at most so long, s.
const LINUX_EXTRA_ACKED_S: f64 = 0.1;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Startup,
    Drain,
    Down,
    Cruise,
    Refill,
    Up,
    ProbeRtt,
}

impl State {
    fn is_probe_bw(self) -> bool {
        matches!(self, Self::Down | Self::Cruise | Self::Refill | Self::Up)
    }

    /// §5.3.3.9 IsProbingBW.
    fn is_probing(self) -> bool {
        matches!(self, Self::Startup | Self::Refill | Self::Up)
    }
}

/// Whether losses are being repaired.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Recovery {
    None,
    Fast,
    /// Since a timeout, until this many bytes are delivered in total.
    Timeout(u64),
}

/// What to go back to if an episode was none (§2.15).
#[derive(Clone, Copy, Debug, Default)]
struct Saved {
    /// The state that its losses have ended.
    state: Option<State>,
    bounds: Bounds,
}

fn build(params: &Params, path: &PathInfo) -> Box<dyn Controller> {
    Box::new(Bbr3::new(Options::read(params), path))
}

struct Bbr3 {
    options: Options,
    packet_bytes: f64,
    initial_window_bytes: f64,
    random: SplitMix64,
    delivered_total_bytes: u64,
    rounds: RoundCounter,
    round_start: bool,

    state: State,
    model: Model,
    plateau: Plateau,
    /// The rate has reached a plateau since it was last looked for, and ever.
    full_bw_now: bool,
    full_bw_reached: bool,
    /// Steps with losses in this round.
    loss_events: u32,
    drain_start_round: u64,
    cycle: Cycle,
    min_rtt: MinRtt,
    rtt_probe: RttProbe,
    idle_restart: bool,
    ack_epoch: AckEpoch,
    extra_acked: WindowedMax<11>,

    cwnd: f64,
    prior_cwnd: f64,
    pacing: Pacing,
    recovery: Recovery,
    undo: Saved,
    /// Losses of this step, whose ACK is still to come.
    loss: Option<Loss>,
}

impl Bbr3 {
    fn new(options: Options, path: &PathInfo) -> Self {
        let packet_bytes = packet_size(path);
        let initial_window_bytes = f64::from(path.initial_window_packets.max(1)) * packet_bytes;
        Self {
            packet_bytes,
            initial_window_bytes,
            random: SplitMix64::new(path.seed),
            delivered_total_bytes: 0,
            rounds: RoundCounter::default(),
            round_start: false,
            state: State::Startup,
            model: Model::new(),
            plateau: Plateau::default(),
            full_bw_now: false,
            full_bw_reached: false,
            loss_events: 0,
            drain_start_round: 0,
            cycle: Cycle::new(),
            min_rtt: MinRtt::new(path.now_ns),
            rtt_probe: RttProbe::default(),
            idle_restart: false,
            ack_epoch: AckEpoch::new(path.now_ns),
            extra_acked: WindowedMax::new(1),
            cwnd: initial_window_bytes,
            prior_cwnd: 0.0,
            // §5.6.2 InitPacingRate.
            pacing: Pacing::new(options.startup_gain, initial_window_bytes),
            recovery: Recovery::None,
            undo: Saved::default(),
            loss: None,
            options,
        }
    }

    /// §5.6.1.
    fn pacing_gain(&self) -> f64 {
        match self.state {
            State::Startup => self.options.startup_gain,
            State::Drain => self.options.drain_gain,
            State::Down => self.options.down_gain,
            State::Up => self.options.up_gain,
            State::Cruise | State::Refill | State::ProbeRtt => 1.0,
        }
    }

    /// §5.6.1.
    fn cwnd_gain(&self) -> f64 {
        match self.state {
            State::Up => self.options.up_cwnd_gain,
            State::ProbeRtt => self.options.probe_rtt_gain,
            _ => self.options.cwnd_gain,
        }
    }

    /// MinPipeCwnd.
    fn min_window(&self) -> f64 {
        self.options.min_window * self.packet_bytes
    }

    /// §2.3: the rate sample, with what was lost in this step.
    fn sample(&self, ack: &AckSample, newly_lost_bytes: u64) -> Sample {
        Sample {
            delivered: ack.delivered_bytes as f64,
            rate: ack.delivery_rate().unwrap_or(0.0),
            prior_delivered: ack.prior_delivered_total_bytes,
            flight: Flight {
                bytes: ack.tx_in_flight_bytes as f64,
                lost: ack.lost_since_sent_bytes as f64 + newly_lost_bytes as f64,
                app_limited: ack.has(AckSample::APP_LIMITED) || self.rtt_probe.covers(ack),
            },
        }
    }

    /// §5.5.10.2 HandleLostPacket, before the ACK of the same step is looked at.
    fn on_lost_packets(&mut self, loss: &Loss) {
        if loss.starts_episode() {
            self.save_for_undo();
            self.recovery = Recovery::Fast;
        }
        self.model.note_loss(self.delivered_total_bytes);
        self.loss_events = self.loss_events.saturating_add(1);
        if !self.cycle.is_probe_sample {
            return;
        }
        let mut flight = Flight {
            bytes: loss.tx_in_flight_bytes as f64,
            lost: loss.lost_since_sent_bytes as f64,
            app_limited: loss.flags & Loss::APP_LIMITED != 0,
        };
        if flight.was_too_high(self.options.loss_threshold) {
            flight.bytes = flight.at_threshold(self.packet_bytes, self.options.loss_threshold);
            self.on_inflight_too_high(&flight, loss.now_ns);
        }
    }

    /// §5.5.11.1.
    fn save_for_undo(&mut self) {
        self.save_cwnd();
        self.undo = Saved { state: None, bounds: self.model.bounds() };
    }

    /// §5.6.4.4: the window that losses and ProbeRTT have not touched.
    fn save_cwnd(&mut self) {
        let is_good = self.recovery == Recovery::None && self.state != State::ProbeRtt;
        self.prior_cwnd = if is_good { self.cwnd } else { self.prior_cwnd.max(self.cwnd) };
    }

    fn restore_cwnd(&mut self) {
        self.cwnd = self.cwnd.max(self.prior_cwnd);
    }

    /// §5.6.4.4: when all is repaired the window returns.
    ///
    /// Deviation: the host does not say when a repair that began with a timeout is over. It counts as over when as much has
    /// been delivered as was in flight.
    fn check_recovery(&mut self, ack: &AckSample) {
        let is_over = match self.recovery {
            Recovery::None => false,
            Recovery::Fast => !ack.has(AckSample::IN_RECOVERY),
            Recovery::Timeout(until) => ack.delivered_total_bytes >= until,
        };
        if is_over {
            self.recovery = Recovery::None;
            self.restore_cwnd();
        }
    }

    /// §5.5.10.3 UpdateCongestionSignals.
    fn update_congestion_signals(&mut self, ack: &AckSample, sample: &Sample) {
        self.round_start = self.rounds.on_ack(ack);
        if self.round_start {
            self.cycle.rounds_since_probe += 1;
        }
        self.model.update_max_bw(sample);
        if self.model.loss_round_start {
            self.model.end_loss_round(self.state.is_probing(), self.cwnd, self.options.beta);
        }
    }

    /// §5.5.9.
    fn update_extra_acked(&mut self, ack: &AckSample) {
        let extra = self.ack_epoch.on_ack(ack, self.model.bw()).min(self.cwnd);
        self.extra_acked.set_window(if self.full_bw_reached { EXTRA_ACKED_ROUNDS } else { 1 });
        self.extra_acked.update(self.rounds.count(), extra);
    }

    /// §5.3.1.2 ResetFullBW.
    fn restart_full_bw(&mut self, baseline: f64) {
        self.plateau.restart(baseline);
        self.full_bw_now = false;
    }

    /// §5.3.1.2 CheckFullBWReached.
    fn check_full_bw(&mut self, sample: &Sample) {
        if self.full_bw_now || !self.round_start || sample.flight.app_limited {
            return;
        }
        self.full_bw_now = self.plateau.on_round(sample.rate);
        self.full_bw_reached |= self.full_bw_now;
    }

    /// §5.3.1.1 CheckStartupDone.
    fn check_startup(&mut self, ack: &AckSample, sample: &Sample) {
        if self.state == State::Startup {
            self.check_startup_loss(ack, sample);
            if self.full_bw_reached {
                self.state = State::Drain;
                self.drain_start_round = self.rounds.count();
            }
        }
        if self.model.loss_round_start {
            self.loss_events = 0;
        }
    }

    /// §5.3.1.3: a full round of repair with enough losses, in number and in share.
    fn check_startup_loss(&mut self, ack: &AckSample, sample: &Sample) {
        if self.model.loss_round_start
            && ack.has(AckSample::IN_RECOVERY)
            && self.loss_events >= self.options.startup_losses
            && sample.flight.was_too_high(self.options.loss_threshold)
        {
            self.undo.state = Some(State::Startup);
            self.full_bw_now = true;
            self.full_bw_reached = true;
            let bdp = self.bdp(self.model.bw(), 1.0);
            self.model.inflight_longterm = bdp.max(self.model.inflight_latest);
        }
    }

    /// §5.3.2.
    fn check_drain(&mut self, ack: &AckSample) {
        if self.state != State::Drain {
            return;
        }
        let limit = self.options.drain_rounds;
        let too_long = limit > 0 && self.rounds.count() > self.drain_start_round + limit;
        if too_long || ack.in_flight_bytes as f64 <= self.inflight(self.model.bw(), 1.0) {
            self.start_down(ack.now_ns);
        }
    }

    /// §5.3.4.3.
    fn check_probe_rtt(&mut self, ack: &AckSample, due: bool) {
        if self.state != State::ProbeRtt && due && !self.idle_restart {
            self.save_cwnd();
            self.state = State::ProbeRtt;
            self.rtt_probe.begin(ack.now_ns);
            self.cycle.interrupt();
            self.rounds.restart(ack.delivered_total_bytes);
        }
        if self.state == State::ProbeRtt {
            let target = self.probe_rtt_cwnd();
            let duration_ns = self.options.probe_rtt_duration_ns;
            let (round_start, rounds) = (self.round_start, &mut self.rounds);
            if self.rtt_probe.on_ack(ack, target, duration_ns, round_start, rounds) {
                self.exit_probe_rtt(ack.now_ns);
            }
        }
        if ack.delivered_bytes > 0 {
            self.idle_restart = false;
        }
    }

    /// §5.3.4.4: the flight is small, so there is nothing to drain, but others may not expect the window back: no probe soon.
    fn exit_probe_rtt(&mut self, now_ns: u64) {
        self.min_rtt.on_probed(now_ns);
        self.restore_cwnd();
        self.model.reset_shortterm();
        if self.full_bw_reached {
            self.start_down(now_ns);
            self.state = State::Cruise;
        } else {
            self.state = State::Startup;
        }
    }

    /// §5.6.2.
    fn pace_with_gain(&mut self, gain: f64) {
        let rate = gain * self.model.bw() * (1.0 - self.options.pacing_margin);
        self.pacing.set(rate, self.full_bw_reached);
    }

    /// §5.6.3, bytes.
    fn send_quantum(&self) -> f64 {
        let least = 2.0 * self.packet_bytes;
        if !self.options.linux_sizes {
            return (self.pacing.rate * 1e-3).min(65_536.0).max(least);
        }
        // 2^-10 s, and 64 KiB, halved for every 512 us of RTT; whole packets.
        let halvings = self.min_rtt.ns().map_or(u64::MAX, |rtt_ns| rtt_ns / 512_000);
        let near = if halvings < 32 { f64::from(65_536_u32 >> halvings) } else { 0.0 };
        let bytes = (self.pacing.rate / 1024.0 + near).min(65_536.0);
        ((bytes / self.packet_bytes).floor() * self.packet_bytes)
            .max(least)
            .min(127.0 * self.packet_bytes)
    }

    /// §5.6.4.2 BDPMultiple, bytes.
    fn bdp(&self, bw: f64, gain: f64) -> f64 {
        let Some(min_rtt_ns) = self.min_rtt.ns() else { return self.initial_window_bytes };
        let bdp = gain * bw * (min_rtt_ns as f64 * 1e-9);
        if self.options.linux_sizes {
            (bdp / self.packet_bytes).ceil() * self.packet_bytes
        } else {
            bdp
        }
    }

    /// §5.6.4.2 Inflight.
    fn inflight(&self, bw: f64, gain: f64) -> f64 {
        self.with_quanta(self.bdp(bw, gain))
    }

    /// §5.6.4.2 QuantizationBudget.
    fn with_quanta(&self, inflight: f64) -> f64 {
        let least = self.min_window().max(OFFLOAD_QUANTA * self.send_quantum());
        let probe = if self.state == State::Up { 2.0 * self.packet_bytes } else { 0.0 };
        inflight.max(least) + probe
    }

    /// §5.6.4.2 UpdateMaxInflight.
    fn max_inflight(&self) -> f64 {
        let extra = self.extra_acked.best().unwrap_or(0.0);
        let most = if self.options.linux_sizes {
            self.model.bw() * LINUX_EXTRA_ACKED_S
        } else {
            f64::INFINITY
        };
        self.with_quanta(self.bdp(self.model.bw(), self.cwnd_gain()) + extra.min(most))
    }

    /// §5.6.4.5.
    fn probe_rtt_cwnd(&self) -> f64 {
        self.bdp(self.model.bw(), self.options.probe_rtt_gain).max(self.min_window())
    }

    /// §5.6.4.6.
    fn set_cwnd(&mut self, ack: &AckSample) {
        let acked = ack.acked_bytes as f64;
        let max_inflight = self.max_inflight();
        if self.full_bw_reached {
            self.cwnd = (self.cwnd + acked).min(max_inflight);
        } else if self.cwnd < max_inflight
            || (ack.delivered_total_bytes as f64) < self.initial_window_bytes
        {
            self.cwnd += acked;
        }
        self.cwnd = self.cwnd.max(self.min_window());
        if self.state == State::ProbeRtt {
            self.cwnd = self.cwnd.min(self.probe_rtt_cwnd());
        }
        self.cwnd = self.cwnd.min(self.cwnd_cap()).min(MAX_WINDOW_PACKETS * self.packet_bytes);
    }

    /// §5.6.4.7 BoundCwndForModel.
    fn cwnd_cap(&self) -> f64 {
        let longterm = match self.state {
            State::Startup | State::Drain => f64::INFINITY,
            State::Down | State::Refill | State::Up => self.model.inflight_longterm,
            State::Cruise | State::ProbeRtt => self.inflight_with_headroom(),
        };
        longterm.min(self.model.inflight_shortterm).max(self.min_window())
    }
}

impl Controller for Bbr3 {
    /// §5.2.3.
    fn on_ack(&mut self, ack: &Ack<'_>) {
        self.delivered_total_bytes = ack.delivered_total_bytes;
        let loss = self.loss.take();
        if let Some(loss) = &loss {
            self.on_lost_packets(loss);
        }
        self.check_recovery(ack);
        let sample = self.sample(ack, loss.map_or(0, |loss| loss.lost_bytes));

        self.model.update_latest(&sample, ack);
        self.update_congestion_signals(ack, &sample);
        self.update_extra_acked(ack);
        self.check_full_bw(&sample);
        self.check_startup(ack, &sample);
        self.check_drain(ack);
        self.update_probe_bw(ack, &sample);
        let options = &self.options;
        let (interval_ns, window_ns) = (options.probe_rtt_interval_ns, options.min_rtt_window_ns);
        let due = self.min_rtt.update(ack, interval_ns, window_ns);
        self.check_probe_rtt(ack, due);
        self.model.advance_latest(&sample);

        self.pacing.on_rtt(ack.srtt_ns, self.options.startup_gain, self.cwnd);
        self.pace_with_gain(self.pacing_gain());
        self.set_cwnd(ack);
    }

    /// Kept for the ACK of the same step, which says how much had been delivered by then.
    fn on_loss(&mut self, loss: &Loss) {
        self.loss = Some(*loss);
    }

    /// §5.6.4.4.
    fn on_rto(&mut self, timeout: &Timeout) {
        if !matches!(self.recovery, Recovery::Timeout(_)) {
            self.save_for_undo();
        }
        self.model.note_loss(self.delivered_total_bytes);
        if self.cycle.is_probe_sample {
            // All that was in flight is lost.
            let bytes = timeout.in_flight_bytes as f64;
            let flight = Flight { bytes, lost: bytes, app_limited: false };
            self.on_inflight_too_high(&flight, timeout.now_ns);
        }
        let until = self.delivered_total_bytes.saturating_add(timeout.in_flight_bytes);
        self.recovery = Recovery::Timeout(until);
        // Nothing counts as in flight.
        self.cwnd = self.packet_bytes;
    }

    /// §5.5.11.2.
    fn on_spurious_loss(&mut self, _undo: &Undo) {
        self.recovery = Recovery::None;
        self.restore_cwnd();
        self.restart_full_bw(0.0);
        self.model.restore(&self.undo.bounds);
        match self.undo.state.take() {
            Some(State::Startup) if self.state != State::Startup => {
                self.full_bw_reached = false;
                if self.state != State::ProbeRtt {
                    self.state = State::Startup;
                }
            }
            Some(State::Up) if !matches!(self.state, State::Up | State::ProbeRtt) => {
                self.start_refill();
            }
            _ => {}
        }
    }

    /// §5.4.1.
    fn on_resume(&mut self, resume: &Resume) {
        self.idle_restart = true;
        self.ack_epoch = AckEpoch::new(resume.now_ns);
        if self.state.is_probe_bw() {
            self.pace_with_gain(1.0);
        } else if self.state == State::ProbeRtt && self.rtt_probe.is_due(resume.now_ns) {
            self.exit_probe_rtt(resume.now_ns);
        }
    }

    fn on_path_change(&mut self, path: &PathInfo) {
        self.packet_bytes = packet_size(path);
    }

    fn control(&self) -> Control {
        Control {
            pacing_bytes_per_s: pacing_rate(self.pacing.rate),
            send_quantum_bytes: self.send_quantum() as u64,
            ..Control::window(window_bytes(self.cwnd / self.packet_bytes, self.packet_bytes))
        }
    }

    fn observe(&self, out: &mut [f64]) {
        let bounded = |value: f64| if value.is_finite() { value } else { f64::NAN };
        let known = self.model.max_bw() > 0.0;
        let mbit_per_s = |rate: f64| if known { rate * 8.0 / 1e6 } else { f64::NAN };
        out.copy_from_slice(&[
            mbit_per_s(self.model.bw()),
            mbit_per_s(self.model.max_bw()),
            self.min_rtt.ns().map_or(f64::NAN, |rtt_ns| rtt_ns as f64 / 1e6),
            bounded(self.model.inflight_longterm / self.packet_bytes),
            bounded(self.model.inflight_shortterm / self.packet_bytes),
            bounded(self.model.bw_shortterm * 8.0 / 1e6),
            self.pacing_gain(),
            self.cwnd_gain(),
            f64::from(self.state as u8),
        ]);
    }
}

#[cfg(test)]
#[path = "bbr3_tests.rs"]
mod tests;
