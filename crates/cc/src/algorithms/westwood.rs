//! Westwood+ (Grieco and Mascolo 2004): Reno, but a loss sets the window to what the path was seen to deliver in its smallest
//! round-trip time.

use crate::bounds::packet_size;
use crate::controller::{Controller, Field, Needs};
use crate::event::{AckSample, PathInfo};
use crate::jiffies;
use crate::registry::{Family, Param, Params, Profile, Spec};
use crate::reno_window::{INITIAL_SSTHRESH, INITIAL_WINDOW, RenoWindow, SLOW_START, SSTHRESH};
use crate::window_law::{self, Signal, WindowLaw};

/// The registry entry.
pub(crate) static SPEC: Spec = Spec {
    name: "westwood",
    title: "Westwood+: a loss keeps what the path delivers",
    family: Family::LossBased,
    source: "Grieco and Mascolo, Performance evaluation and comparison of Westwood+, New Reno, and Vegas TCP congestion control (CCR 34:2, 2004)",
    about: include_str!("about/westwood.md"),
    needs: Needs::NONE,
    params: &[
        Param::number("alpha", "1", 0.9, (0.0, 0.999), "weight of the old estimate, alpha"),
        Param::duration(
            "min_interval",
            0.050,
            (0.0, 10.0),
            "shortest time over which the bandwidth is sampled; the RTT if that is longer",
        ),
        Param::choice(
            "arithmetic",
            &["exact", "linux"],
            "real numbers and one filter, or Linux's jiffies, bytes and two filters",
        ),
        SLOW_START,
        INITIAL_WINDOW,
        INITIAL_SSTHRESH,
    ],
    profiles: &[Profile {
        name: "linux",
        source: "Linux 6.1 tcp_westwood at HZ = 250: two filters of 7/8, integers, window set at the end of recovery",
        values: &[("alpha", 0.875), ("arithmetic", 1.0)],
    }],
    fields: &[
        SSTHRESH,
        Field { name: "bwe", unit: "Mbit/s", doc: "bandwidth estimate, BWE" },
        Field { name: "rtt_min_ms", unit: "ms", doc: "smallest RTT, RTTmin" },
    ],
    build,
};

fn build(params: &Params, path: &PathInfo) -> Box<dyn Controller> {
    let alpha = params.get("alpha");
    let min_interval_ns = params.get_ns("min_interval");
    let window = RenoWindow::from_params(params, path);
    if params.get_choice("arithmetic") == "linux" {
        let law = Linux {
            alpha,
            least_interval: jiffies::at(min_interval_ns),
            packet_bytes: packet_size(path),
            rate: 0.0,
            smoothed: 0.0,
            since: jiffies::at(path.now_ns),
            bytes: 0,
            rtt: LINUX_FIRST_RTT,
            rtt_min: LINUX_FIRST_RTT,
            forget_rtt_min: true,
        };
        return window_law::controller(law, window.in_whole_packets(true));
    }
    let law = Westwood {
        alpha,
        min_interval_ns,
        packet_bytes: packet_size(path),
        bwe: 0.0,
        since_ns: path.now_ns,
        bytes: 0,
        rtt_min_ns: 0,
    };
    window_law::controller(law, window)
}

struct Westwood {
    alpha: f64,
    min_interval_ns: u64,
    packet_bytes: f64,
    /// Bandwidth estimate, bytes/s; 0 = none yet.
    bwe: f64,
    /// The sample in progress: its start, and what was acknowledged since.
    since_ns: u64,
    bytes: u64,
    rtt_min_ns: u64,
}

impl WindowLaw for Westwood {
    fn measure(&mut self, ack: &AckSample, _window: &RenoWindow) {
        self.bytes = self.bytes.saturating_add(ack.acked_bytes);
        if ack.rtt_ns > 0 {
            let known = self.rtt_min_ns > 0 && self.rtt_min_ns <= ack.rtt_ns;
            self.rtt_min_ns = if known { self.rtt_min_ns } else { ack.rtt_ns };
        }
        // §2: a sample b_k = d_k / Delta_k per round trip, then bwe_k = alpha bwe_(k-1) + (1 - alpha) b_k.
        let over_ns = ack.now_ns.saturating_sub(self.since_ns);
        if over_ns < self.min_interval_ns.max(ack.rtt_ns).max(1) || ack.rtt_ns == 0 {
            return;
        }
        let sample = self.bytes as f64 * 1e9 / over_ns as f64;
        let old = if self.bwe > 0.0 { self.bwe } else { sample };
        self.bwe = self.alpha * old + (1.0 - self.alpha) * sample;
        (self.since_ns, self.bytes) = (ack.now_ns, 0);
    }

    fn advance(&mut self, ack: &AckSample, window: &mut RenoWindow) {
        window.grow_as_reno(ack);
    }

    fn keep(&mut self, _signal: &Signal<'_>, window: &RenoWindow) -> f64 {
        if self.bwe == 0.0 {
            return window.cwnd / 2.0;
        }
        // §2: ssthresh = BWE RTTmin / segment size.
        self.bwe * self.rtt_min_ns as f64 * 1e-9 / self.packet_bytes
    }

    fn path_changed(&mut self, path: &PathInfo, _window: &RenoWindow) {
        self.packet_bytes = packet_size(path);
        (self.bwe, self.rtt_min_ns) = (0.0, 0);
    }

    fn observe(&self, window: &RenoWindow, out: &mut [f64]) {
        observe(window, self.bwe, self.rtt_min_ns as f64 * 1e-6, out);
    }
}

/// Linux's RTT before the first sample: 20 s, in jiffies.
const LINUX_FIRST_RTT: u64 = 20 * jiffies::HZ;

/// Westwood+ as Linux has it. Times are in jiffies, rates in bytes per jiffy, both whole.
struct Linux {
    alpha: f64,
    least_interval: u64,
    packet_bytes: f64,
    /// The first filter and the second.
    rate: f64,
    smoothed: f64,
    since: u64,
    bytes: u64,
    rtt: u64,
    rtt_min: u64,
    /// The next ACK's RTT replaces the smallest.
    forget_rtt_min: bool,
}

impl Linux {
    fn filter(&self, old: f64, new: f64) -> f64 {
        libm::floor(self.alpha * old + (1.0 - self.alpha) * new)
    }

    /// BWE RTTmin, packets.
    fn path_holds(&self) -> f64 {
        libm::floor(self.smoothed * self.rtt_min as f64 / self.packet_bytes)
    }
}

impl WindowLaw for Linux {
    fn measure(&mut self, ack: &AckSample, _window: &RenoWindow) {
        let now = jiffies::at(ack.now_ns);
        let over = now.saturating_sub(self.since);
        if over > self.rtt.max(self.least_interval) {
            let sample = libm::floor(self.bytes as f64 / over as f64);
            if self.rate == 0.0 && self.smoothed == 0.0 {
                (self.rate, self.smoothed) = (sample, sample);
            } else {
                self.rate = self.filter(self.rate, sample);
                self.smoothed = self.filter(self.smoothed, self.rate);
            }
            (self.since, self.bytes) = (now, 0);
        }
        self.bytes = self.bytes.saturating_add(ack.acked_bytes);
        // The RTT of the ACK before: this one's is known only after the estimate in Linux's order.
        self.rtt_min = if self.forget_rtt_min { self.rtt } else { self.rtt_min.min(self.rtt) };
        self.forget_rtt_min = false;
        if ack.rtt_ns > 0 {
            self.rtt = jiffies::lasting(ack.rtt_ns);
        }
    }

    fn repaired(&mut self, _ack: &AckSample, window: &mut RenoWindow) {
        window.set(self.path_holds());
    }

    fn advance(&mut self, ack: &AckSample, window: &mut RenoWindow) {
        window.grow_as_reno(ack);
    }

    /// Half while the losses are repaired.
    fn keep(&mut self, signal: &Signal<'_>, window: &RenoWindow) -> f64 {
        if let Signal::Timeout(_) = signal {
            self.forget_rtt_min = true;
            return self.path_holds();
        }
        window.fraction(0.5)
    }

    fn path_changed(&mut self, path: &PathInfo, _window: &RenoWindow) {
        self.packet_bytes = packet_size(path);
        self.forget_rtt_min = true;
    }

    fn observe(&self, window: &RenoWindow, out: &mut [f64]) {
        let hz = jiffies::HZ as f64;
        observe(window, self.smoothed * hz, self.rtt_min as f64 * 1e3 / hz, out);
    }
}

/// Writes the threshold, the estimate, given in bytes/s, and the smallest RTT; NaN where there is none.
fn observe(window: &RenoWindow, bytes_per_s: f64, rtt_min_ms: f64, out: &mut [f64]) {
    let known = |value: f64| if value > 0.0 { value } else { f64::NAN };
    out.copy_from_slice(&[window.ssthresh_bytes(), known(bytes_per_s * 8e-6), known(rtt_min_ms)]);
}

#[cfg(test)]
#[path = "westwood_tests.rs"]
mod tests;
