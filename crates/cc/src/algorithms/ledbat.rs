//! LEDBAT (RFC 6817): fills what others leave, and keeps the queueing delay it causes at a target.
//!
//! ACKs in, a window out. Section numbers are the RFC's. `ledbat_plus_plus.rs` shares the delay estimate.

use crate::controller::{Controller, Field, Needs};
use crate::event::{AckSample, PathInfo};
use crate::registry::{Family, Param, Params, Spec};
use crate::reno_window::RenoWindow;
use crate::window_law::{self, Signal, WindowLaw};

/// §2.4.2 BASE_HISTORY: minutes over which the smallest delay counts as the base delay.
const BASE_MINUTES: usize = 10;
const MINUTE_NS: u64 = 60_000_000_000;
/// §2.4.2 CURRENT_FILTER: samples of which the smallest is the current delay.
const CURRENT_SAMPLES: usize = 4;
/// §2.4.2 MIN_CWND.
const MIN_WINDOW_PACKETS: f64 = 2.0;

/// The registry entry.
pub(crate) static SPEC: Spec = Spec {
    name: "ledbat",
    title: "LEDBAT: low extra delay background transport",
    family: Family::DelayBased,
    source: "RFC 6817",
    about: include_str!("about/ledbat.md"),
    needs: Needs::NONE,
    params: &[
        Param::duration("target", 0.1, (0.001, 1.0), "TARGET: queueing delay aimed at"),
        Param::number("gain", "1", 1.0, (0.01, 1.0), "GAIN: packets per RTT at no queueing delay"),
        Param::number(
            "allowed_increase",
            "packets",
            1.0,
            (0.0, 1000.0),
            "ALLOWED_INCREASE: how far the window may exceed what is in flight",
        ),
        Param::integer("initial_window", "packets", 2.0, (1.0, 1_000_000.0), "INIT_CWND"),
    ],
    profiles: &[],
    fields: &[
        Field { name: "base_delay", unit: "ms", doc: "smallest delay of ten minutes" },
        Field { name: "queueing_delay", unit: "ms", doc: "current delay above it" },
    ],
    build,
};

fn build(params: &Params, path: &PathInfo) -> Box<dyn Controller> {
    let law = Ledbat {
        target_ns: params.get_ns("target") as f64,
        gain: params.get("gain"),
        allowed_increase: params.get("allowed_increase"),
        delays: DelayHistory::new(path.now_ns),
    };
    // RFC 6817 has no slow start.
    window_law::controller(
        law,
        RenoWindow::new(params.get("initial_window"), MIN_WINDOW_PACKETS, path),
    )
}

/// Base and current delay (§2.4.2, §3.1).
#[derive(Clone, Copy, Debug)]
pub(super) struct DelayHistory {
    /// Smallest delay of each of the last minutes; the newest last.
    minutes: [u64; BASE_MINUTES],
    minute_start_ns: u64,
    current: [u64; CURRENT_SAMPLES],
    next: usize,
}

impl DelayHistory {
    pub(super) fn new(now_ns: u64) -> Self {
        Self {
            minutes: [u64::MAX; BASE_MINUTES],
            minute_start_ns: now_ns,
            current: [u64::MAX; CURRENT_SAMPLES],
            next: 0,
        }
    }

    pub(super) fn add(&mut self, now_ns: u64, delay_ns: u64) {
        let passed = now_ns.saturating_sub(self.minute_start_ns) / MINUTE_NS;
        if passed > 0 {
            self.minute_start_ns += passed * MINUTE_NS;
            let shift = (passed as usize).min(BASE_MINUTES);
            self.minutes.rotate_left(shift);
            self.minutes[BASE_MINUTES - shift..].fill(u64::MAX);
        }
        let newest = &mut self.minutes[BASE_MINUTES - 1];
        *newest = (*newest).min(delay_ns);
        self.current[self.next] = delay_ns;
        self.next = (self.next + 1) % CURRENT_SAMPLES;
    }

    /// Base delay, ns; `None` before the first sample.
    pub(super) fn base_ns(&self) -> Option<u64> {
        self.minutes.iter().copied().min().filter(|ns| *ns != u64::MAX)
    }

    /// Queueing delay, ns: the smallest of the last samples above the base.
    pub(super) fn queueing_ns(&self) -> Option<f64> {
        let current_ns = self.current.iter().copied().min()?;
        self.base_ns().map(|base_ns| current_ns.saturating_sub(base_ns) as f64)
    }
}

struct Ledbat {
    target_ns: f64,
    gain: f64,
    allowed_increase: f64,
    delays: DelayHistory,
}

impl WindowLaw for Ledbat {
    fn measure(&mut self, ack: &AckSample, _window: &RenoWindow) {
        // Deviation: where the host knows no one-way delay the RTT stands for it, and a queue on the way back counts too.
        let delay_ns = if ack.one_way_delay_ns > 0 { ack.one_way_delay_ns } else { ack.rtt_ns };
        if delay_ns > 0 {
            self.delays.add(ack.now_ns, delay_ns);
        }
    }

    fn advance(&mut self, ack: &AckSample, window: &mut RenoWindow) {
        let Some(queueing_ns) = self.delays.queueing_ns() else { return };
        // §2.4.2: off_target from 1 at no queueing delay downwards.
        let off_target = (self.target_ns - queueing_ns) / self.target_ns;
        let cwnd = window.cwnd;
        let acked = f64::from(ack.acked_packets).min(cwnd);
        // At most half a window per round trip less, for delays far above the target.
        let step = (self.gain * off_target * acked / cwnd).max(-0.5 * acked);
        // A window that is not used is not kept either.
        let in_flight = ack.prior_in_flight_bytes as f64 / window.packet_bytes;
        let next = (cwnd + step).min(in_flight + self.allowed_increase);
        if next < cwnd {
            window.lower_to(next);
        } else {
            window.grow(next - cwnd);
        }
    }

    fn keep(&mut self, signal: &Signal<'_>, window: &RenoWindow) -> f64 {
        match signal {
            Signal::Timeout(timeout) => window.half_of_flight(timeout.in_flight_bytes),
            _ => window.cwnd / 2.0,
        }
    }

    fn path_changed(&mut self, path: &PathInfo, _window: &RenoWindow) {
        self.delays = DelayHistory::new(path.now_ns);
    }

    fn observe(&self, _window: &RenoWindow, out: &mut [f64]) {
        out.copy_from_slice(&[
            self.delays.base_ns().map_or(f64::NAN, |ns| ns as f64 * 1e-6),
            self.delays.queueing_ns().map_or(f64::NAN, |ns| ns * 1e-6),
        ]);
    }
}

#[cfg(test)]
#[path = "ledbat_tests.rs"]
mod tests;
