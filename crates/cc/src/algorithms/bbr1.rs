//! BBR version 1 (Cardwell et al. 2016): send at the rate the bottleneck delivers, with about one bandwidth-delay product in
//! flight, and probe for more bandwidth and for a shorter RTT in turns.
//!
//! ACKs with delivery-rate samples in; pacing rate, window and burst size out. Section numbers are those of
//! draft-cardwell-iccrg-bbr-congestion-control-00. Where Linux's `tcp_bbr` and ns-3's `TcpBbr` have other constants they are
//! parameters, and the profiles "linux" and "ns-3" set them.
//!
//! Deviation: two things that Linux has and the draft has not are left out: long-term sampling, which detects token-bucket
//! policers, and starting the full-pipe test anew after a timeout.

use super::bbr_part::{Pacing, Plateau, RttProbe};
use super::{MAX_WINDOW_PACKETS, pacing_rate, packet_size, window_bytes};
use crate::controller::{Control, Controller};
use crate::event::{Ack, AckSample, Loss, PathInfo, Resume, Timeout, Undo};
use crate::filters::WindowedMax;
use crate::random::SplitMix64;
use crate::registry::Params;
use crate::round::RoundCounter;

mod aggregation;
mod params;

use aggregation::Aggregation;
pub(crate) use params::SPEC;
use params::{Options, Sizes};

/// §4.3.4.2: the pacing gains of ProbeBW, one RTprop each.
const CYCLE_GAINS: [f64; 8] = [1.25, 0.75, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0];
/// §4.2.3: headroom of the window, in send quanta: one in each offload engine and one being aggregated.
const HEADROOM_QUANTA: f64 = 3.0;
/// One more than the rounds of the default bandwidth window, which makes that window exact.
const BANDWIDTH_CANDIDATES: usize = 11;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Mode {
    Startup,
    Drain,
    ProbeBw,
    ProbeRtt,
}

/// What the window is doing about losses (§4.2.3.4).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Recovery {
    None,
    /// The next ACK is the one that told of the loss.
    Entering,
    /// The first round: as much leaves as arrives.
    Conserving,
    /// Later rounds: the window grows again.
    Growing,
    /// Since a timeout, until this many bytes are delivered in total.
    Timeout(u64),
}

fn build(params: &Params, path: &PathInfo) -> Box<dyn Controller> {
    Box::new(Bbr1::new(Options::read(params), path))
}

struct Bbr1 {
    options: Options,
    packet_bytes: f64,
    initial_window_bytes: f64,
    /// Draws the first phase of the gain cycle.
    random: SplitMix64,

    rounds: RoundCounter,
    round_start: bool,
    /// BtlBw: delivery rates in bytes/s over rounds.
    bandwidths: WindowedMax<BANDWIDTH_CANDIDATES>,
    /// RTprop and when it was last seen, ns.
    min_rtt_ns: Option<u64>,
    min_rtt_stamp_ns: u64,
    plateau: Plateau,
    filled_pipe: bool,
    aggregation: Aggregation,

    mode: Mode,
    cycle_index: usize,
    cycle_start_ns: u64,
    rtt_probe: RttProbe,
    idle_restart: bool,

    cwnd: f64,
    prior_cwnd: f64,
    pacing: Pacing,
    recovery: Recovery,
    lost_bytes: f64,
    delivered_total_bytes: u64,
}

impl Bbr1 {
    fn new(options: Options, path: &PathInfo) -> Self {
        let packet_bytes = packet_size(path);
        let initial_window_bytes = f64::from(path.initial_window_packets.max(1)) * packet_bytes;
        Self {
            packet_bytes,
            initial_window_bytes,
            random: SplitMix64::new(path.seed),
            rounds: RoundCounter::default(),
            round_start: false,
            bandwidths: WindowedMax::new(options.bandwidth_rounds),
            min_rtt_ns: None,
            min_rtt_stamp_ns: path.now_ns,
            plateau: Plateau::default(),
            filled_pipe: false,
            aggregation: Aggregation::new(path.now_ns),
            mode: Mode::Startup,
            cycle_index: 0,
            cycle_start_ns: path.now_ns,
            rtt_probe: RttProbe::default(),
            idle_restart: false,
            cwnd: initial_window_bytes,
            prior_cwnd: 0.0,
            // §4.2.1.
            pacing: Pacing::new(options.startup_gain, initial_window_bytes),
            recovery: Recovery::None,
            lost_bytes: 0.0,
            delivered_total_bytes: 0,
            options,
        }
    }

    fn pacing_gain(&self) -> f64 {
        match self.mode {
            Mode::Startup => self.options.startup_gain,
            // §4.3.3: the inverse, which drains in one round what Startup queued.
            Mode::Drain => 1.0 / self.options.startup_gain,
            Mode::ProbeBw => CYCLE_GAINS[self.cycle_index],
            Mode::ProbeRtt => 1.0,
        }
    }

    fn cwnd_gain(&self) -> f64 {
        match self.mode {
            Mode::Startup | Mode::Drain => self.options.startup_gain,
            Mode::ProbeBw => self.options.cwnd_gain,
            Mode::ProbeRtt => 1.0,
        }
    }

    /// BtlBw, bytes/s; 0 before the first sample.
    fn bandwidth(&self) -> f64 {
        self.bandwidths.best().unwrap_or(0.0)
    }

    fn min_window(&self) -> f64 {
        self.options.probe_rtt_packets * self.packet_bytes
    }

    /// §4.2.3.2: `gain` bandwidth-delay products and `extra` bytes, with headroom for bursts.
    fn inflight(&self, gain: f64, extra: f64) -> f64 {
        let (Some(min_rtt_ns), Some(bandwidth)) = (self.min_rtt_ns, self.bandwidths.best()) else {
            return self.initial_window_bytes;
        };
        let bdp = bandwidth * min_rtt_ns as f64 * 1e-9;
        let window = gain * bdp + extra + HEADROOM_QUANTA * self.send_quantum();
        let probes = self.mode == Mode::ProbeBw && self.cycle_index == 0;
        let probe = if probes { 2.0 * self.packet_bytes } else { 0.0 };
        match self.options.sizes {
            Sizes::Draft => window,
            // An even number of packets, for receivers that acknowledge every second one.
            Sizes::Linux => {
                let pairs = (window / (2.0 * self.packet_bytes)).ceil();
                2.0 * pairs * self.packet_bytes + probe
            }
            Sizes::Ns3 => window + probe,
        }
    }

    /// §4.2.2: what may leave in one burst, bytes.
    fn send_quantum(&self) -> f64 {
        let rate = self.pacing.rate;
        let rate_bps = rate * 8.0;
        let floor = if rate_bps < 1.2e6 { 1.0 } else { 2.0 } * self.packet_bytes;
        match self.options.sizes {
            Sizes::Draft if rate_bps < 24e6 => floor,
            Sizes::Draft => (rate * 1e-3).min(65_536.0).max(self.packet_bytes),
            // Whole packets, of 2^-10 s at most.
            Sizes::Linux => {
                let packets = ((rate / 1024.0).min(65_536.0) / self.packet_bytes).floor();
                (packets * self.packet_bytes).max(floor).min(127.0 * self.packet_bytes)
            }
            Sizes::Ns3 => self.packet_bytes,
        }
    }

    /// §4.1.1.3: a sample of an application-limited flow counts only if it is larger.
    fn update_bandwidth(&mut self, ack: &AckSample) -> bool {
        self.round_start = self.rounds.on_ack(ack);
        let limited = ack.has(AckSample::APP_LIMITED) || self.rtt_probe.covers(ack);
        if let Some(rate) = ack.delivery_rate()
            && (!limited || rate >= self.bandwidth())
        {
            self.bandwidths.update(self.rounds.count(), rate);
        }
        limited
    }

    /// §4.3.4.3.
    fn check_cycle_phase(&mut self, ack: &AckSample) {
        if self.mode != Mode::ProbeBw {
            return;
        }
        let elapsed_ns = ack.now_ns.saturating_sub(self.cycle_start_ns);
        let full_length = self.min_rtt_ns.is_some_and(|rtprop_ns| elapsed_ns > rtprop_ns);
        let in_flight = ack.prior_in_flight_bytes as f64;
        let gain = self.pacing_gain();
        let next = if gain > 1.0 {
            // Until the path holds what was asked for, or cannot.
            full_length && (self.lost_bytes > 0.0 || in_flight >= self.inflight(gain, 0.0))
        } else if gain < 1.0 {
            full_length || in_flight <= self.inflight(1.0, 0.0)
        } else {
            full_length
        };
        if next {
            self.advance_cycle_phase(ack.now_ns);
        }
    }

    fn advance_cycle_phase(&mut self, now_ns: u64) {
        self.cycle_start_ns = now_ns;
        self.cycle_index = (self.cycle_index + 1) % CYCLE_GAINS.len();
    }

    /// §4.3.4.2: any phase but the one that drains.
    fn enter_probe_bw(&mut self, now_ns: u64) {
        self.mode = Mode::ProbeBw;
        self.cycle_index =
            CYCLE_GAINS.len() - 1 - self.random.below(CYCLE_GAINS.len() as u64 - 1) as usize;
        self.advance_cycle_phase(now_ns);
    }

    /// §4.3.2.2.
    fn check_full_pipe(&mut self, limited: bool) {
        if !self.filled_pipe && self.round_start && !limited {
            self.filled_pipe = self.plateau.on_round(self.bandwidth());
        }
    }

    /// §4.3.3.
    fn check_drain(&mut self, ack: &AckSample) {
        if self.mode == Mode::Startup && self.filled_pipe {
            self.mode = Mode::Drain;
        }
        if self.mode == Mode::Drain && ack.in_flight_bytes as f64 <= self.inflight(1.0, 0.0) {
            self.enter_probe_bw(ack.now_ns);
        }
    }

    /// §4.1.2.3; true when the filter's time was up.
    fn update_min_rtt(&mut self, ack: &AckSample) -> bool {
        let age_ns = ack.now_ns.saturating_sub(self.min_rtt_stamp_ns);
        let expired = age_ns > self.options.min_rtt_window_ns;
        let lower = self.min_rtt_ns.is_none_or(|min_rtt_ns| {
            let renews = self.options.equal_rtt_postpones && ack.rtt_ns == min_rtt_ns;
            ack.rtt_ns < min_rtt_ns || renews
        });
        if ack.rtt_ns > 0 && (lower || expired) {
            self.min_rtt_ns = Some(ack.rtt_ns);
            self.min_rtt_stamp_ns = ack.now_ns;
        }
        expired
    }

    /// §4.3.5.
    fn check_probe_rtt(&mut self, ack: &AckSample, expired: bool) {
        if self.mode != Mode::ProbeRtt && expired && !self.idle_restart {
            self.prior_cwnd = self.cwnd_to_save();
            self.mode = Mode::ProbeRtt;
            self.rtt_probe.begin(ack.now_ns);
        }
        if self.mode == Mode::ProbeRtt {
            self.handle_probe_rtt(ack);
        }
        if ack.delivered_bytes > 0 {
            self.idle_restart = false;
        }
    }

    fn handle_probe_rtt(&mut self, ack: &AckSample) {
        let target = self.min_window();
        let duration_ns = self.options.probe_rtt_duration_ns;
        let (round_start, rounds) = (self.round_start, &mut self.rounds);
        if self.rtt_probe.on_ack(ack, target, duration_ns, round_start, rounds) {
            self.min_rtt_stamp_ns = ack.now_ns;
            self.restore_cwnd();
            self.exit_probe_rtt(ack.now_ns);
        }
    }

    fn exit_probe_rtt(&mut self, now_ns: u64) {
        if self.filled_pipe {
            self.enter_probe_bw(now_ns);
        } else {
            self.mode = Mode::Startup;
        }
    }

    /// §4.2.1.
    fn set_pacing_rate(&mut self, ack: &AckSample) {
        self.pacing.on_rtt(ack.srtt_ns, self.options.startup_gain, self.cwnd);
        self.pace_with_gain(self.pacing_gain());
    }

    fn pace_with_gain(&mut self, gain: f64) {
        let rate = gain * self.bandwidth() * (1.0 - self.options.pacing_margin);
        self.pacing.set(rate, self.filled_pipe);
    }

    /// §4.2.3.6.
    fn set_cwnd(&mut self, ack: &AckSample) {
        let acked = ack.acked_bytes as f64;
        self.modulate_for_recovery(ack);
        if !matches!(self.recovery, Recovery::Entering | Recovery::Conserving) {
            let bandwidth = self.bandwidth();
            let compensate = self.options.aggregation && self.filled_pipe;
            let extra = if compensate { self.aggregation.extra_bytes(bandwidth) } else { 0.0 };
            let target = self.inflight(self.cwnd_gain(), extra);
            if self.filled_pipe {
                self.cwnd = (self.cwnd + acked).min(target);
            } else if self.cwnd < target
                || (ack.delivered_total_bytes as f64) < self.initial_window_bytes
            {
                self.cwnd += acked;
            }
            self.cwnd = self.cwnd.max(self.min_window());
        }
        if self.mode == Mode::ProbeRtt {
            // §4.2.3.5.
            self.cwnd = self.cwnd.min(self.min_window());
        }
        self.cwnd = self.cwnd.min(MAX_WINDOW_PACKETS * self.packet_bytes);
    }

    /// §4.2.3.4: for one round the losses come off and as much leaves as arrives; afterwards the window of before returns.
    fn modulate_for_recovery(&mut self, ack: &AckSample) {
        let lost = std::mem::take(&mut self.lost_bytes);
        if lost > 0.0 {
            self.cwnd = (self.cwnd - lost).max(self.packet_bytes);
        }
        let arrives = (ack.in_flight_bytes as f64) + ack.acked_bytes as f64;
        let repairing = ack.has(AckSample::IN_RECOVERY);
        self.recovery = match self.recovery {
            Recovery::Entering if repairing => {
                self.rounds.restart(ack.delivered_total_bytes);
                self.cwnd = arrives.max(self.packet_bytes);
                Recovery::Conserving
            }
            Recovery::Conserving if repairing && !self.round_start => {
                self.cwnd = self.cwnd.max(arrives);
                Recovery::Conserving
            }
            Recovery::Conserving | Recovery::Growing if repairing => Recovery::Growing,
            Recovery::Timeout(until) if ack.delivered_total_bytes < until => self.recovery,
            Recovery::None => Recovery::None,
            _ => {
                self.restore_cwnd();
                Recovery::None
            }
        };
    }

    /// The window to come back to.
    fn cwnd_to_save(&self) -> f64 {
        if self.recovery == Recovery::None && self.mode != Mode::ProbeRtt {
            self.cwnd
        } else {
            self.prior_cwnd.max(self.cwnd)
        }
    }

    fn restore_cwnd(&mut self) {
        self.cwnd = self.cwnd.max(self.prior_cwnd);
    }
}

impl Controller for Bbr1 {
    fn on_ack(&mut self, ack: &Ack<'_>) {
        self.delivered_total_bytes = ack.delivered_total_bytes;
        let limited = self.update_bandwidth(ack);
        self.aggregation.on_ack(ack, self.round_start, self.bandwidth(), self.cwnd);
        self.check_cycle_phase(ack);
        self.check_full_pipe(limited);
        self.check_drain(ack);
        let expired = self.update_min_rtt(ack);
        self.check_probe_rtt(ack, expired);
        self.set_pacing_rate(ack);
        self.set_cwnd(ack);
    }

    fn on_loss(&mut self, loss: &Loss) {
        self.lost_bytes += loss.lost_bytes as f64;
        if loss.starts_episode() {
            self.prior_cwnd = self.cwnd_to_save();
            self.recovery = Recovery::Entering;
            self.cwnd = loss.in_flight_bytes as f64 + self.packet_bytes;
        }
    }

    /// §4.2.3.4.
    ///
    /// Deviation: the host does not say when a repair that began with a timeout is over. It counts as over when as much has
    /// been delivered as was in flight.
    fn on_rto(&mut self, timeout: &Timeout) {
        self.prior_cwnd = self.cwnd_to_save();
        let until = self.delivered_total_bytes.saturating_add(timeout.in_flight_bytes);
        self.recovery = Recovery::Timeout(until);
        self.cwnd = self.packet_bytes;
        self.lost_bytes = 0.0;
    }

    fn on_spurious_loss(&mut self, _undo: &Undo) {
        if self.recovery != Recovery::None {
            self.recovery = Recovery::None;
            self.restore_cwnd();
        }
    }

    /// §4.3.4.4.
    fn on_resume(&mut self, resume: &Resume) {
        self.idle_restart = true;
        self.aggregation.restart(resume.now_ns);
        if self.mode == Mode::ProbeBw {
            self.pace_with_gain(1.0);
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
        out.copy_from_slice(&[
            self.bandwidths.best().map_or(f64::NAN, |rate| rate * 8.0 / 1e6),
            self.min_rtt_ns.map_or(f64::NAN, |rtt_ns| rtt_ns as f64 / 1e6),
            self.pacing_gain(),
            self.cwnd_gain(),
            f64::from(self.mode as u8),
        ]);
    }
}

#[cfg(test)]
#[path = "bbr1_tests.rs"]
mod tests;
