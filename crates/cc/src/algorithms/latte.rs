//! Latte (Kumar 2017): window = lambda * bandwidth * min RTT, scaled down by min RTT / RTT, and the pacing gap gamma / rate.
//!
//! Per ACK, all in packets and milliseconds. The window is computed from scratch each time, so nothing has to be decided
//! when the application limits sending: only the bandwidth estimate shrinks. A datagram algorithm: losses are not seen, and
//! the silence timer sends a probe without changing the window.

use std::collections::VecDeque;

use super::{MAX_WINDOW_PACKETS, pacing_rate, packet_size, window_bytes};
use crate::controller::{Control, Controller, Field, Needs};
use crate::event::{Ack, Loss, PathInfo, Timeout};
use crate::filters::{WindowedMax, WindowedMin};
use crate::registry::{Param, Params, Profile, Spec};

const NS_PER_MS: f64 = 1e6;
/// Deliveries remembered, one entry per millisecond.
const HISTORY_MS: u64 = 15_000;
/// Bandwidth is the maximum over this long, ns.
const BANDWIDTH_WINDOW_NS: u64 = 200_000_000;
/// Window of the RTT minimum before the first ACK, ns; afterwards `MIN_RTT_WINDOW` times the minimum.
const FIRST_MIN_RTT_WINDOW_NS: u64 = 10_000_000_000;
const MIN_RTT_WINDOW: f64 = 100.0;
/// Candidates kept by the filters: the bandwidth window is exact to below a millisecond.
const CANDIDATES: usize = 256;
/// Weight of a new sample in the RTT gradient's mean; of the old value in the bandwidth's.
const EWMA_WEIGHT: f64 = 0.7;
/// A gradient above this cuts the window.
const GRADIENT_THRESHOLD: f64 = 0.1;
const MIN_WINDOW_PACKETS: f64 = 3.0;
/// The timeout is this many minimum RTTs.
const TIMEOUT_RTTS: f64 = 1.5;

/// The registry entry.
pub(crate) static SPEC: Spec = Spec {
    name: "latte",
    title: "Latte: bandwidth-delay product scaled by min RTT / RTT",
    source: "CS 244 congestion-control contest (Kumar 2017), section 4, and its released code",
    about: include_str!("about/latte.md"),
    needs: Needs::PACING,
    params: &[
        Param::choice(
            "lambda_mode",
            &["dynamic", "fixed"],
            "dynamic: lambda = 1.6 + 4/w, 2 for w <= 10; fixed: the parameter lambda",
        ),
        Param::number("lambda", "1", 1.7, (0.1, 100.0), "window gain lambda, used when fixed"),
        Param::number(
            "gamma",
            "1",
            0.8,
            (0.01, 100.0),
            "pacing gap gamma / rate after each packet",
        ),
        Param::flag(
            "gradient_cut",
            false,
            "cut the window by the smoothed RTT gradient g when g > 0.1",
        ),
    ],
    profiles: &[
        Profile {
            name: "report",
            source: "Kumar 2017, section 4.2: the gradient cut was dropped",
            values: &[("gradient_cut", 0.0)],
        },
        Profile {
            name: "released",
            source: "the contest entry's public code, which still has the gradient cut",
            values: &[("gradient_cut", 1.0)],
        },
        Profile {
            name: "fixed",
            source: "Kumar 2017, section 4.2: lambda 1.7, power score 42.56",
            values: &[("lambda_mode", 1.0), ("lambda", 1.7), ("gradient_cut", 1.0)],
        },
    ],
    fields: &[
        Field { name: "bandwidth", unit: "packets/ms", doc: "largest delivery rate of 200 ms, B" },
        Field { name: "min_rtt", unit: "ms", doc: "smallest RTT of 100 minimum RTTs" },
        Field { name: "gradient", unit: "1", doc: "smoothed RTT gradient g" },
        Field { name: "lambda", unit: "1", doc: "window gain of the last ACK" },
    ],
    build,
};

fn build(params: &Params, path: &PathInfo) -> Box<dyn Controller> {
    Box::new(Latte {
        fixed_lambda: (params.get_choice("lambda_mode") == "fixed").then(|| params.get("lambda")),
        gamma: params.get("gamma"),
        gradient_cut: params.get_bool("gradient_cut"),
        packet_bytes: packet_size(path),
        start_ns: path.now_ns,
        window: 50.0,
        lambda: f64::NAN,
        min_rtt_ms: 500.0,
        previous_rtt_ms: 100.0,
        gradient: 0.0,
        smoothed: 10.0,
        bandwidth: 10.0,
        delivered: 0,
        history: VecDeque::with_capacity(HISTORY_MS as usize + 2),
        bandwidths: WindowedMax::new(BANDWIDTH_WINDOW_NS),
        rtts: WindowedMin::new(FIRST_MIN_RTT_WINDOW_NS),
    })
}

struct Latte {
    fixed_lambda: Option<f64>,
    gamma: f64,
    gradient_cut: bool,
    packet_bytes: f64,
    start_ns: u64,
    /// w, packets.
    window: f64,
    lambda: f64,
    min_rtt_ms: f64,
    previous_rtt_ms: f64,
    /// g.
    gradient: f64,
    /// S, packets/ms.
    smoothed: f64,
    /// B, packets/ms.
    bandwidth: f64,
    delivered: u64,
    /// (time in ns, packets delivered by then), the latest of each millisecond. Never grows beyond its first capacity.
    history: VecDeque<(u64, u64)>,
    bandwidths: WindowedMax<CANDIDATES>,
    rtts: WindowedMin<CANDIDATES>,
}

impl Latte {
    /// Step 3: remembers what is delivered now, forgets what is too old.
    fn remember(&mut self, now_ns: u64) {
        let millisecond = |ns: u64| ns / 1_000_000;
        if self.history.back().is_some_and(|&(t, _)| millisecond(t) == millisecond(now_ns)) {
            self.history.pop_back();
        }
        self.history.push_back((now_ns, self.delivered));
        let oldest = millisecond(now_ns).saturating_sub(HISTORY_MS);
        while self.history.front().is_some_and(|&(t, _)| millisecond(t) < oldest) {
            self.history.pop_front();
        }
    }

    /// Index of the first entry later than `sent_ns`.
    fn first_after(&self, sent_ns: u64, now_ns: u64) -> usize {
        let is_older = |at: usize| self.history.get(at).is_some_and(|&(t, _)| t <= sent_ns);
        // There is at most one entry for each millisecond since then, and exactly one unless ACKs are sparse.
        let most = (now_ns / 1_000_000).saturating_sub(sent_ns / 1_000_000) as usize + 1;
        let least = self.history.len().saturating_sub(most);
        if !is_older(least) {
            least
        } else if !is_older(least + 1) {
            least + 1
        } else {
            self.history.partition_point(|&(t, _)| t <= sent_ns)
        }
    }

    /// Step 3: delivery rate since the acknowledged packet was sent, packets/ms.
    fn rate_since(&self, sent_ns: u64, now_ns: u64) -> Option<f64> {
        let after = self.first_after(sent_ns, now_ns);
        let before = after.checked_sub(1).and_then(|i| self.history.get(i));
        let (t0, d0) = before.copied().unwrap_or((self.start_ns, 0));
        (now_ns > t0).then(|| (self.delivered - d0) as f64 / ((now_ns - t0) as f64 / NS_PER_MS))
    }

    /// Step 4: the window for an RTT of `rtt_ms`.
    fn resize(&mut self, rtt_ms: f64) {
        self.lambda = self.fixed_lambda.unwrap_or(if self.window > 10.0 {
            1.6 + 0.4 * 10.0 / self.window
        } else {
            2.0
        });
        let mut window = self.lambda * self.bandwidth * self.min_rtt_ms;
        if rtt_ms > self.min_rtt_ms {
            window *= self.min_rtt_ms / rtt_ms;
        }
        if self.gradient_cut && self.gradient > GRADIENT_THRESHOLD {
            window *= 1.0 - self.gradient;
        }
        self.window = window.clamp(MIN_WINDOW_PACKETS, MAX_WINDOW_PACKETS);
    }
}

impl Controller for Latte {
    fn on_ack(&mut self, ack: &Ack<'_>) {
        self.delivered = self.delivered.saturating_add(u64::from(ack.acked_packets));
        self.remember(ack.now_ns);
        // The contest's sender never retransmits; elsewhere an ambiguous RTT teaches nothing.
        if ack.rtt_ns == 0 {
            return;
        }
        let rtt_ms = ack.rtt_ns as f64 / NS_PER_MS;
        // Step 1, with the previous minimum.
        let gradient = (rtt_ms - self.previous_rtt_ms) / self.min_rtt_ms;
        self.gradient = (1.0 - EWMA_WEIGHT) * self.gradient + EWMA_WEIGHT * gradient;
        self.previous_rtt_ms = rtt_ms;
        // Step 2.
        self.min_rtt_ms = self.rtts.update(ack.now_ns, rtt_ms).unwrap_or(rtt_ms);
        self.rtts.set_window((MIN_RTT_WINDOW * self.min_rtt_ms * NS_PER_MS) as u64);
        // Step 3.
        let sent_ns = ack.now_ns.saturating_sub(ack.rtt_ns);
        if let Some(rate) = self.rate_since(sent_ns, ack.now_ns) {
            self.smoothed = (1.0 - EWMA_WEIGHT) * rate + EWMA_WEIGHT * self.smoothed;
            self.bandwidth = self.bandwidths.update(ack.now_ns, rate).unwrap_or(rate);
        }
        // Step 4.
        self.resize(rtt_ms);
    }

    fn on_loss(&mut self, _loss: &Loss) {}

    fn on_rto(&mut self, _timeout: &Timeout) {}

    fn on_path_change(&mut self, path: &PathInfo) {
        self.packet_bytes = packet_size(path);
    }

    fn control(&self) -> Control {
        // Step 5. Deviation: the contest's sender truncates the gap to whole microseconds.
        let slower = self.smoothed < 0.8 * self.bandwidth;
        let rate = if slower { self.bandwidth } else { self.smoothed };
        // Step 6.
        let timeout_ms = libm::floor(TIMEOUT_RTTS * self.min_rtt_ms).max(1.0);
        Control {
            cwnd_bytes: window_bytes(libm::floor(self.window), self.packet_bytes),
            pacing_bytes_per_s: pacing_rate(self.packet_bytes * rate * 1e3 / self.gamma),
            send_quantum_bytes: 0,
            next_timer_ns: Control::NEVER,
            timeout_ns: (timeout_ms * NS_PER_MS) as u64,
        }
    }

    fn observe(&self, out: &mut [f64]) {
        out.copy_from_slice(&[self.bandwidth, self.min_rtt_ms, self.gradient, self.lambda]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::AckSample;

    const MS: u64 = 1_000_000;

    fn latte(settings: &[(&str, f64)]) -> Box<dyn Controller> {
        let mut params = SPEC.params(None).unwrap();
        for (key, value) in settings {
            params.set(key, *value).unwrap();
        }
        let path = PathInfo { now_ns: 0, packet_bytes: 1500, initial_window_packets: 10, seed: 0 };
        build(&params, &path)
    }

    fn ack(now_ns: u64, rtt_ns: u64) -> Ack<'static> {
        let sent_ns = now_ns - rtt_ns;
        let sample =
            AckSample { now_ns, rtt_ns, sent_ns, acked_packets: 1, ..AckSample::default() };
        Ack { sample, hops: &[] }
    }

    #[test]
    fn starts_as_the_contest_entry() {
        let control = latte(&[]).control();
        assert_eq!(control.cwnd_bytes, 50 * 1500);
        assert_eq!(control.timeout_ns, 750 * MS);
        // 10 packets/ms with gamma 0.8: a gap of 80 us.
        assert_eq!(control.pacing_bytes_per_s, 1500 * 12_500);
    }

    #[test]
    fn first_acks_by_hand() {
        let mut latte = latte(&[("gradient_cut", 1.0)]);
        latte.on_ack(&ack(50 * MS, 50 * MS));
        let mut seen = [0.0; 4];
        latte.observe(&mut seen);
        // b = 1/50; g = 0.7 (50 - 100)/500; lambda of the old window 50; w = 1.68 * 0.02 * 50 = 1.68, floored at 3.
        assert_eq!((seen[0], seen[1]), (0.02, 50.0));
        assert!((seen[2] + 0.07).abs() < 1e-12 && (seen[3] - 1.68).abs() < 1e-12, "{seen:?}");
        let control = latte.control();
        assert_eq!((control.cwnd_bytes, control.timeout_ns), (3 * 1500, 75 * MS));
        // S = 0.3 * 0.02 + 0.7 * 10 is not below 0.8 B: R = S.
        assert_eq!(control.pacing_bytes_per_s, (1500.0 * 7006.0 / 0.8) as u64);
        latte.on_ack(&ack(60 * MS, 60 * MS));
        latte.observe(&mut seen);
        // b = 2/60; g = 0.3 (-0.07) + 0.7 * 10/50; the old window 3 gives lambda 2.
        assert!((seen[0] - 2.0 / 60.0).abs() < 1e-12);
        assert!((seen[2] - 0.119).abs() < 1e-12 && seen[3] == 2.0, "{seen:?}");
    }

    /// L1: on a link of fixed rate the RTT settles at sqrt(lambda) times its minimum.
    #[test]
    fn steady_rtt_is_sqrt_lambda() {
        for lambda in [1.7, 2.5] {
            let rtt = steady_rtt_ms(lambda);
            let expected = 40.0 * lambda.sqrt();
            assert!((rtt / expected - 1.0).abs() < 0.05, "{rtt} against {expected}");
        }
    }

    /// Mean RTT over 1.5-3.5 s (the minimum is forgotten after 100 RTTs) at 5 packets/ms and a base RTT of 40 ms.
    fn steady_rtt_ms(lambda: f64) -> f64 {
        const BASE_NS: u64 = 40 * MS;
        const SERVICE_NS: u64 = MS / 5;
        let mut latte = latte(&[("lambda_mode", 1.0), ("lambda", lambda)]);
        let (mut now_ns, mut next_send_ns, mut link_free_ns) = (0_u64, 0_u64, 0_u64);
        let mut in_flight = VecDeque::new(); // (ACK arrives, sent)
        let (mut sum, mut count) = (0.0, 0.0);
        while now_ns < 3500 * MS {
            let control = latte.control();
            let open = (in_flight.len() as u64) < control.cwnd_bytes / 1500;
            let acked_ns = in_flight.front().map_or(u64::MAX, |&(at, _)| at);
            if open && next_send_ns.max(now_ns) <= acked_ns {
                now_ns = now_ns.max(next_send_ns);
                link_free_ns = link_free_ns.max(now_ns) + SERVICE_NS;
                in_flight.push_back((link_free_ns + BASE_NS - SERVICE_NS, now_ns));
                next_send_ns = now_ns + 1500 * 1_000_000_000 / control.pacing_bytes_per_s;
                continue;
            }
            let (at, sent_ns) = in_flight.pop_front().unwrap();
            now_ns = now_ns.max(at);
            latte.on_ack(&ack(now_ns, now_ns - sent_ns));
            if now_ns > 1500 * MS {
                sum += (now_ns - sent_ns) as f64 / 1e6;
                count += 1.0;
            }
        }
        sum / count
    }

    /// L2: power score = throughput in Mbit/s over the 95 % signal delay in s.
    #[test]
    fn power_scores_of_the_report() {
        for (mbps, delay_s, score) in [(3.83, 0.093, 41.18), (3.83, 0.090, 42.56)] {
            let power: f64 = mbps / delay_s;
            assert!((power - score).abs() < 0.01, "{power}");
        }
        assert!((2.282 / 0.1772 - 12.88_f64).abs() < 0.01);
    }

    #[test]
    fn a_timeout_and_a_loss_change_nothing() {
        let mut latte = latte(&[]);
        latte.on_ack(&ack(50 * MS, 50 * MS));
        let before = latte.control();
        latte.on_rto(&Timeout::default());
        latte.on_loss(&Loss { lost_packets: 3, ..Loss::default() });
        assert_eq!(latte.control(), before);
    }
}
