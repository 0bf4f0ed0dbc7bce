//! Latte in floating point, written from its report and released code (Kumar 2017), apart from the C that runs: whole history,
//! exact windows, packets and milliseconds.

use std::collections::VecDeque;

use paceline_cc::AckSample;

const NS_PER_MS: f64 = 1e6;
const HISTORY_MS: u64 = 15_000;

/// What a profile decides.
pub struct Settings {
    /// `None`: lambda is 1.6 + 4/w.
    pub lambda: Option<f64>,
    pub gamma: f64,
    pub paces_at_bandwidth: bool,
    pub gradient_cut: bool,
}

pub struct Law {
    settings: Settings,
    start_ns: u64,
    window: f64,
    lambda: f64,
    min_rtt_ms: f64,
    min_rtt_window_ns: u64,
    previous_rtt_ms: f64,
    gradient: f64,
    smoothed: f64,
    bandwidth: f64,
    delivered: u64,
    /// (ns, delivered by then), the latest of each ms.
    history: VecDeque<(u64, u64)>,
    /// (ns, RTT in ms) and (ns, packets/ms), all of the window.
    rtts: VecDeque<(u64, f64)>,
    rates: VecDeque<(u64, f64)>,
}

impl Law {
    pub fn new(settings: Settings, start_ns: u64) -> Self {
        Self {
            settings,
            start_ns,
            window: 50.0,
            lambda: f64::NAN,
            min_rtt_ms: 500.0,
            min_rtt_window_ns: 10_000_000_000,
            previous_rtt_ms: 100.0,
            gradient: 0.0,
            smoothed: 10.0,
            bandwidth: 10.0,
            delivered: 0,
            history: VecDeque::new(),
            rtts: VecDeque::new(),
            rates: VecDeque::new(),
        }
    }

    /// w, packets, not rounded.
    pub fn window(&self) -> f64 {
        self.window
    }

    /// Packets/ms.
    pub fn pacing(&self) -> f64 {
        let slower = self.settings.paces_at_bandwidth || self.smoothed < 0.8 * self.bandwidth;
        (if slower { self.bandwidth } else { self.smoothed }) / self.settings.gamma
    }

    pub fn min_rtt_ms(&self) -> f64 {
        self.min_rtt_ms
    }

    pub fn gradient(&self) -> f64 {
        self.gradient
    }

    pub fn lambda(&self) -> f64 {
        self.lambda
    }

    pub fn on_ack(&mut self, ack: &AckSample) {
        let now_ns = ack.now_ns;
        let millisecond = |ns: u64| ns / 1_000_000;
        self.delivered += u64::from(ack.acked_packets);
        if self.history.back().is_some_and(|&(t, _)| millisecond(t) == millisecond(now_ns)) {
            self.history.pop_back();
        }
        self.history.push_back((now_ns, self.delivered));
        let oldest = millisecond(now_ns).saturating_sub(HISTORY_MS);
        while self.history.front().is_some_and(|&(t, _)| millisecond(t) < oldest) {
            self.history.pop_front();
        }
        if ack.rtt_ns == 0 {
            return;
        }
        let rtt_ms = ack.rtt_ns as f64 / NS_PER_MS;
        let gradient = (rtt_ms - self.previous_rtt_ms) / self.min_rtt_ms;
        self.gradient = 0.3 * self.gradient + 0.7 * gradient;
        self.previous_rtt_ms = rtt_ms;
        self.min_rtt_ms = best(&mut self.rtts, now_ns, self.min_rtt_window_ns, rtt_ms, f64::min);
        self.min_rtt_window_ns = (100.0 * self.min_rtt_ms * NS_PER_MS) as u64;
        let sent_ns = now_ns - ack.rtt_ns;
        let then = self.history.iter().rev().find(|&&(t, _)| t <= sent_ns);
        let (t0, d0) = then.copied().unwrap_or((self.start_ns, 0));
        if now_ns > t0 {
            let rate = (self.delivered - d0) as f64 / ((now_ns - t0) as f64 / NS_PER_MS);
            self.smoothed = 0.3 * rate + 0.7 * self.smoothed;
            self.bandwidth = best(&mut self.rates, now_ns, 200_000_000, rate, f64::max);
        }
        let dynamic = if self.window > 10.0 { 1.6 + 4.0 / self.window } else { 2.0 };
        self.lambda = self.settings.lambda.unwrap_or(dynamic);
        let mut window = self.lambda * self.bandwidth * self.min_rtt_ms * self.min_rtt_ms / rtt_ms;
        if self.settings.gradient_cut && self.gradient > 0.1 {
            window *= 1.0 - self.gradient;
        }
        self.window = window.max(3.0);
    }
}

/// Adds `value` and takes the best of the window.
fn best(
    values: &mut VecDeque<(u64, f64)>,
    now_ns: u64,
    window_ns: u64,
    value: f64,
    better: fn(f64, f64) -> f64,
) -> f64 {
    values.push_back((now_ns, value));
    while values.front().is_some_and(|&(t, _)| now_ns - t > window_ns) {
        values.pop_front();
    }
    values.iter().map(|&(_, v)| v).reduce(better).unwrap()
}
