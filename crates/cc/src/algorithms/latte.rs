//! Latte (Kumar 2017): window = lambda * bandwidth * min RTT, scaled down by min RTT / RTT, and the pacing gap gamma / rate.
//!
//! Per ACK, all in packets and milliseconds. The window is computed from scratch each time, so nothing has to be decided
//! when the application limits sending: only the bandwidth estimate shrinks. A datagram algorithm: losses are not seen, and
//! the silence timer sends a probe without changing the window.

use super::path_model::{self, INITIAL_WINDOW_PACKETS, PathModel, Settings, bounded};
use crate::controller::{Control, Controller, Field, Needs};
use crate::event::{Ack, Loss, PathInfo, Timeout};
use crate::registry::{Family, Param, Params, Profile, Spec};

/// Weight of a new sample in the RTT gradient's mean.
const GRADIENT_WEIGHT: f64 = 0.7;
/// Window of the RTT minimum before the first ACK, ns; afterwards `min_rtt_window` times the minimum.
const FIRST_MIN_RTT_WINDOW_NS: u64 = 10_000_000_000;
/// A gradient above this cuts the window.
const GRADIENT_THRESHOLD: f64 = 0.1;

/// The registry entry.
pub(crate) static SPEC: Spec = Spec {
    name: "latte",
    title: "Latte: bandwidth-delay product scaled by min RTT / RTT",
    family: Family::Contest,
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
        path_model::GAMMA,
        Param::choice(
            "pacing",
            &["smoothed", "bandwidth"],
            "rate of the gap; smoothed: the mean S, or B where S < 0.8 B; bandwidth: always B",
        ),
        Param::flag(
            "gradient_cut",
            false,
            "cut the window by the smoothed RTT gradient g when g > 0.1",
        ),
        path_model::BANDWIDTH_WINDOW,
        Param::number(
            "min_rtt_window",
            "min RTTs",
            100.0,
            (1.0, 10_000.0),
            "the minimum RTT is over this many of it, W_R (before the first ACK: 10 s)",
        ),
        path_model::TIMEOUT,
    ],
    profiles: &[
        Profile {
            name: "report",
            source: "Kumar 2017, section 4.2: no gradient cut, the gap is gamma / B",
            values: &[("gradient_cut", 0.0), ("pacing", 1.0)],
        },
        Profile {
            name: "report-fixed",
            source: "Kumar 2017, section 4.2.1, power score 42.56: lambda 1.7",
            values: &[
                ("lambda_mode", 1.0),
                ("lambda", 1.7),
                ("gradient_cut", 0.0),
                ("pacing", 1.0),
            ],
        },
        Profile {
            name: "released",
            source: "the contest entry's public code, which still has the gradient cut",
            values: &[("gradient_cut", 1.0)],
        },
        Profile {
            name: "fixed",
            source: "the public code with lambda 1.7 instead of the dynamic one",
            values: &[("lambda_mode", 1.0), ("lambda", 1.7), ("gradient_cut", 1.0)],
        },
    ],
    fields: &[
        path_model::BANDWIDTH_FIELD,
        path_model::MIN_RTT_FIELD,
        Field { name: "gradient", unit: "1", doc: "smoothed RTT gradient g" },
        Field { name: "lambda", unit: "1", doc: "window gain of the last ACK" },
    ],
    build,
};

fn build(params: &Params, path: &PathInfo) -> Box<dyn Controller> {
    let settings = Settings {
        bandwidth_window_ns: params.get_ns("bandwidth_window"),
        min_rtt_window_ns: FIRST_MIN_RTT_WINDOW_NS,
        min_rtt_window_rtts: Some(params.get("min_rtt_window")),
        gradient_weight: GRADIENT_WEIGHT,
    };
    Box::new(Latte {
        fixed_lambda: (params.get_choice("lambda_mode") == "fixed").then(|| params.get("lambda")),
        gamma: params.get("gamma"),
        paces_at_bandwidth: params.get_choice("pacing") == "bandwidth",
        gradient_cut: params.get_bool("gradient_cut"),
        timeout_rtts: params.get("timeout"),
        window: INITIAL_WINDOW_PACKETS,
        lambda: f64::NAN,
        model: PathModel::new(settings, path),
    })
}

struct Latte {
    fixed_lambda: Option<f64>,
    gamma: f64,
    paces_at_bandwidth: bool,
    gradient_cut: bool,
    timeout_rtts: f64,
    /// w, packets.
    window: f64,
    lambda: f64,
    model: PathModel,
}

impl Latte {
    /// Step 4: the window for an RTT of `rtt_ms`.
    fn resize(&mut self, rtt_ms: f64) {
        let model = &self.model;
        self.lambda = self.fixed_lambda.unwrap_or(if self.window > 10.0 {
            1.6 + 0.4 * 10.0 / self.window
        } else {
            2.0
        });
        let mut window = self.lambda * model.bandwidth * model.min_rtt_ms;
        if rtt_ms > model.min_rtt_ms {
            window *= model.min_rtt_ms / rtt_ms;
        }
        if self.gradient_cut && model.gradient > GRADIENT_THRESHOLD {
            window *= 1.0 - model.gradient;
        }
        self.window = bounded(window);
    }
}

impl Controller for Latte {
    fn on_ack(&mut self, ack: &Ack<'_>) {
        if let Some(rtt_ms) = self.model.on_ack(ack) {
            self.resize(rtt_ms);
        }
    }

    fn on_loss(&mut self, _loss: &Loss) {}

    fn on_rto(&mut self, _timeout: &Timeout) {}

    fn on_path_change(&mut self, path: &PathInfo) {
        self.model.on_path_change(path);
    }

    fn control(&self) -> Control {
        // Step 5.
        let PathModel { smoothed, bandwidth, .. } = self.model;
        let slower = self.paces_at_bandwidth || smoothed < 0.8 * bandwidth;
        let rate = if slower { bandwidth } else { smoothed };
        // Step 6.
        self.model.control(self.window, rate, self.gamma, self.timeout_rtts)
    }

    fn observe(&self, out: &mut [f64]) {
        let model = &self.model;
        out.copy_from_slice(&[model.bandwidth, model.min_rtt_ms, model.gradient, self.lambda]);
    }
}

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;

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
