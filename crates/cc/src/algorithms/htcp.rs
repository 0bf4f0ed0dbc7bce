//! H-TCP (Leith and Shorten 2004): the increase grows with the time since the last congestion event, and the decrease empties
//! the queue and no more, by the ratio of the smallest and the largest round-trip time.

use crate::controller::{Controller, Field, Needs};
use crate::event::{AckSample, PathInfo};
use crate::jiffies;
use crate::registry::{Family, Param, Params, Profile, Spec};
use crate::reno_window::{INITIAL_SSTHRESH, INITIAL_WINDOW, RenoWindow, SLOW_START, SSTHRESH};
use crate::window_law::{self, Signal, WindowLaw};

/// Relative change of throughput from which the path is taken for another one, Delta_B.
const DELTA_B: f64 = 0.2;
/// Linux's limits in jiffies: a rise of RTTmax by 20 ms at once, and a smallest RTT of 10 ms.
const LINUX_RTT_RISE: f64 = 5.0;
const LINUX_LEAST_RTT: f64 = 3.0;
/// What is left of RTTmax - RTTmin after a congestion event, so that an old maximum fades.
const RTT_MAX_MEMORY: f64 = 0.95;
/// After this many round trips of an epoch its throughput is smoothed; before, taken as it comes.
const SETTLING_ROUNDS: f64 = 3.0;

/// The registry entry.
pub(crate) static SPEC: Spec = Spec {
    name: "htcp",
    title: "H-TCP: growth by the time since the last loss, reduction by the queue",
    family: Family::LossBased,
    source: "Leith and Shorten, H-TCP: TCP for high-speed and long-distance networks (PFLDnet 2004); draft-leith-tcp-htcp-06",
    about: include_str!("about/htcp.md"),
    needs: Needs::NONE,
    params: &[
        Param::duration(
            "delta_l",
            1.0,
            (0.0, 60.0),
            "time since the last event up to which the increase is Reno's, Delta_L",
        ),
        Param::number("beta_min", "1", 0.5, (0.1, 0.5), "smallest share of the window kept"),
        Param::number("beta_max", "1", 0.8, (0.5, 0.99), "largest share of the window kept"),
        Param::flag("rtt_scaling", false, "make the increase per second the same at any RTT"),
        Param::flag(
            "bandwidth_switch",
            true,
            "keep beta_min when the throughput changed by more than 20 % since the last event",
        ),
        Param::choice(
            "arithmetic",
            &["exact", "linux"],
            "real numbers, or Linux's jiffies, 128ths and whole packets",
        ),
        SLOW_START,
        INITIAL_WINDOW,
        INITIAL_SSTHRESH,
    ],
    profiles: &[
        Profile {
            name: "linux",
            source: "Linux 6.1 tcp_htcp at HZ = 250: RTT scaling, integers, whole packets",
            values: &[("beta_max", 102.0 / 128.0), ("rtt_scaling", 1.0), ("arithmetic", 1.0)],
        },
        Profile {
            name: "nist",
            source: "NIST SP 500-282 (2010): initial window 2, high-speed mode 1 s after a loss",
            values: &[("initial_window", 2.0)],
        },
    ],
    fields: &[
        SSTHRESH,
        Field { name: "alpha", unit: "packets", doc: "increase per round trip, alpha" },
        Field { name: "beta", unit: "1", doc: "share kept at the last reduction, beta" },
        Field { name: "rtt_max_ms", unit: "ms", doc: "largest RTT, fading, RTTmax" },
    ],
    build,
};

fn build(params: &Params, path: &PathInfo) -> Box<dyn Controller> {
    let clock = Clock { linux: params.get_choice("arithmetic") == "linux" };
    let law = Htcp {
        clock,
        delta_l: params.get("delta_l"),
        beta_min: params.get("beta_min"),
        beta_max: params.get("beta_max"),
        rtt_scaling: params.get_bool("rtt_scaling"),
        bandwidth_switch: params.get_bool("bandwidth_switch"),
        backoff: Backoff {
            event: clock.at(path.now_ns),
            alpha: 1.0,
            beta: params.get("beta_min"),
            settled: false,
            rtt_max: 0.0,
            last_most: 0.0,
        },
        before: None,
        rtt_min: 0.0,
        throughput: Throughput { since: clock.at(path.now_ns), ..Throughput::default() },
        last_acked: 1.0,
        counter: 0.0,
    };
    window_law::controller(law, RenoWindow::from_params(params, path).in_whole_packets(clock.linux))
}

/// Times in ticks: nanoseconds, or Linux's jiffies.
#[derive(Clone, Copy, Debug)]
struct Clock {
    linux: bool,
}

impl Clock {
    /// Ticks per second.
    fn hz(self) -> f64 {
        if self.linux { jiffies::HZ as f64 } else { 1e9 }
    }

    fn at(self, now_ns: u64) -> f64 {
        (if self.linux { jiffies::at(now_ns) } else { now_ns }) as f64
    }

    fn lasting(self, duration_ns: u64) -> f64 {
        (if self.linux { jiffies::lasting(duration_ns) } else { duration_ns }) as f64
    }
}

/// Throughput reached in an epoch, packets per tick.
#[derive(Clone, Copy, Debug, Default)]
struct Throughput {
    /// Packets acknowledged since `since`.
    packets: f64,
    since: f64,
    smoothed: f64,
    most: f64,
}

/// What a congestion event changes, and an undo restores.
#[derive(Clone, Copy, Debug)]
struct Backoff {
    /// When it was.
    event: f64,
    alpha: f64,
    beta: f64,
    /// Linux: an event since the throughput last changed.
    settled: bool,
    /// Largest round-trip time, fading; 0 = unknown.
    rtt_max: f64,
    /// Most throughput of the epoch before it.
    last_most: f64,
}

struct Htcp {
    clock: Clock,
    delta_l: f64,
    beta_min: f64,
    beta_max: f64,
    rtt_scaling: bool,
    bandwidth_switch: bool,
    backoff: Backoff,
    before: Option<Backoff>,
    /// Smallest round-trip time; 0 = unknown.
    rtt_min: f64,
    throughput: Throughput,
    /// Linux: packets of the latest ACK, and those that the window has not grown for.
    last_acked: f64,
    counter: f64,
}

impl Htcp {
    fn measure_rtt(&mut self, rtt: f64, in_order: bool) {
        if self.rtt_min == 0.0 || rtt < self.rtt_min {
            self.rtt_min = rtt;
        }
        if in_order {
            self.backoff.rtt_max = self.backoff.rtt_max.max(self.rtt_min);
            // Linux takes a rise of more than 20 ms at once for an outlier.
            let limit = if self.clock.linux {
                self.backoff.rtt_max + LINUX_RTT_RISE
            } else {
                f64::INFINITY
            };
            if rtt <= limit {
                self.backoff.rtt_max = self.backoff.rtt_max.max(rtt);
            }
        }
    }

    /// Throughput of about a round trip, once a window has been acknowledged.
    fn measure_throughput(&mut self, now: f64, acked: f64, window: f64) {
        let t = &mut self.throughput;
        t.packets += acked;
        let over = now - t.since;
        let whole = libm::floor(self.backoff.alpha).max(1.0);
        if t.packets < window - whole || self.rtt_min == 0.0 || over < self.rtt_min {
            return;
        }
        let rate = t.packets / over;
        if libm::floor((now - self.backoff.event) / self.rtt_min) <= SETTLING_ROUNDS {
            t.smoothed = rate;
            t.most = rate;
        } else {
            t.smoothed = (3.0 * t.smoothed + rate) / 4.0;
            t.most = t.most.max(t.smoothed);
        }
        (t.packets, t.since) = (0.0, now);
    }

    /// Adaptive backoff: beta = RTTmin / RTTmax, within its limits.
    fn update_beta(&mut self) {
        let most = self.throughput.most;
        let last_most = std::mem::replace(&mut self.backoff.last_most, most);
        self.backoff.beta = self.beta_min;
        let first = last_most == 0.0 && !self.clock.linux;
        let changed = (most - last_most).abs() > DELTA_B * last_most;
        if self.bandwidth_switch && (first || changed) {
            self.backoff.settled = false;
            return;
        }
        if self.clock.linux && !(self.backoff.settled && self.rtt_min > LINUX_LEAST_RTT) {
            // Linux waits for one more event after a change, and wants more than 10 ms.
            self.backoff.settled = true;
            return;
        }
        if self.backoff.rtt_max > 0.0 {
            let ratio = self.rtt_min / self.backoff.rtt_max;
            let ratio = if self.clock.linux { libm::floor(128.0 * ratio) / 128.0 } else { ratio };
            self.backoff.beta = ratio.max(self.beta_min).min(self.beta_max);
        }
    }

    /// alpha = 2 (1 - beta) alpha(Delta), which keeps the mean window of Reno's 1 at any beta.
    fn update_alpha(&mut self, now: f64) {
        let hz = self.clock.hz();
        let past = now - self.backoff.event - self.delta_l * hz;
        let mut factor = 1.0;
        if past > 0.0 && self.clock.linux {
            let half = libm::floor(past / 2.0);
            factor = 1.0 + libm::floor((10.0 * past + libm::floor(half * half / hz)) / hz);
        } else if past > 0.0 {
            let past_s = past / hz;
            factor = 1.0 + 10.0 * past_s + (past_s / 2.0) * (past_s / 2.0);
        }
        if self.rtt_scaling && self.rtt_min > 0.0 {
            // An RTT of 100 ms is left alone; Linux counts the scale in eighths.
            let (unit, floor): (f64, fn(f64) -> f64) =
                if self.clock.linux { (8.0, libm::floor) } else { (1.0, |x| x) };
            let scale = floor(unit * hz / (10.0 * self.rtt_min)).max(0.5 * unit).min(10.0 * unit);
            factor = floor(unit * factor / scale).max(1.0);
        }
        self.backoff.alpha = 2.0 * (1.0 - self.backoff.beta) * factor;
    }
}

impl WindowLaw for Htcp {
    fn measure(&mut self, ack: &AckSample, window: &RenoWindow) {
        let in_recovery = ack.has(AckSample::IN_RECOVERY);
        let in_order = ack.has(AckSample::CUMULATIVE) && !in_recovery;
        let acked = f64::from(ack.acked_packets);
        if in_order {
            self.last_acked = acked;
        }
        if ack.rtt_ns > 0 {
            self.measure_rtt(self.clock.lasting(ack.rtt_ns), in_order);
        }
        let now = self.clock.at(ack.now_ns);
        if in_recovery {
            self.throughput.packets = 0.0;
            self.throughput.since = now;
        } else {
            self.measure_throughput(now, acked, window.cwnd);
        }
    }

    fn repaired(&mut self, ack: &AckSample, _window: &mut RenoWindow) {
        if self.clock.linux {
            // Linux counts Delta from the end of the repair.
            self.backoff.event = self.clock.at(ack.now_ns);
        }
    }

    fn advance(&mut self, ack: &AckSample, window: &mut RenoWindow) {
        let acked = window.slow_start(ack);
        if acked == 0.0 {
            return;
        }
        let now = self.clock.at(ack.now_ns);
        if !self.clock.linux {
            self.update_alpha(now);
            window.grow(self.backoff.alpha * acked / window.cwnd);
        } else if libm::floor(self.counter * self.backoff.alpha) < window.cwnd {
            self.counter += self.last_acked;
        } else {
            // The ACK that completes a packet's worth does not count for the next, and alpha is renewed only then.
            self.counter = 0.0;
            self.update_alpha(now);
            window.grow(1.0);
        }
    }

    fn keep(&mut self, signal: &Signal<'_>, window: &RenoWindow) -> f64 {
        self.before = Some(self.backoff);
        let now = self.clock.at(signal.now_ns());
        self.update_beta();
        self.update_alpha(now);
        self.backoff.rtt_max =
            self.rtt_min + RTT_MAX_MEMORY * (self.backoff.rtt_max - self.rtt_min).max(0.0);
        self.backoff.event = now;
        self.counter = 0.0;
        window.fraction(self.backoff.beta)
    }

    fn undo(&mut self, window: &mut RenoWindow) {
        if window.undo()
            && let Some(before) = self.before.take()
        {
            let rtt_max = self.backoff.rtt_max.max(before.rtt_max);
            self.backoff = Backoff { rtt_max, ..before };
        }
    }

    fn path_changed(&mut self, _path: &PathInfo, _window: &RenoWindow) {
        (self.rtt_min, self.backoff.rtt_max) = (0.0, 0.0);
    }

    fn observe(&self, window: &RenoWindow, out: &mut [f64]) {
        let Backoff { alpha, beta, rtt_max, .. } = self.backoff;
        let rtt_max_ms = if rtt_max > 0.0 { 1e3 * rtt_max / self.clock.hz() } else { f64::NAN };
        out.copy_from_slice(&[window.ssthresh_bytes(), alpha, beta, rtt_max_ms]);
    }
}

#[cfg(test)]
#[path = "htcp_tests.rs"]
mod tests;
