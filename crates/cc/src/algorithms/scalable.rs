//! Scalable TCP (Kelly 2003): a constant step per packet acknowledged and a constant share per loss, so that the time to
//! recover does not depend on the window.

use crate::controller::{Controller, Needs};
use crate::event::{AckSample, PathInfo};
use crate::registry::{Family, Param, Params, Profile, Spec};
use crate::reno_window::{INITIAL_SSTHRESH, INITIAL_WINDOW, RenoWindow, SLOW_START, SSTHRESH};
use crate::window_law::{self, Signal, WindowLaw};

/// The registry entry.
pub(crate) static SPEC: Spec = Spec {
    name: "scalable",
    title: "Scalable TCP: a constant step per packet acknowledged",
    family: Family::LossBased,
    source: "Kelly, Scalable TCP: improving performance in highspeed wide area networks (CCR 33:2, 2003)",
    about: include_str!("about/scalable.md"),
    needs: Needs::NONE,
    params: &[
        Param::number(
            "a",
            "packets",
            0.01,
            (0.0001, 1.0),
            "increase a: w += a per packet acknowledged",
        ),
        Param::number("b", "1", 0.125, (0.01, 0.5), "decrease b: w -= b w per loss"),
        Param::number(
            "legacy_window",
            "packets",
            16.0,
            (1.0, 100_000.0),
            "legacy window lwnd: Reno up to here",
        ),
        Param::choice("counting", &["exact", "linux"], "fractions of a packet, or Linux's counter"),
        SLOW_START,
        INITIAL_WINDOW,
        INITIAL_SSTHRESH,
    ],
    profiles: &[
        Profile {
            name: "linux",
            source: "Linux 6.1 tcp_scalable: a packet per min(w, 100) acknowledged, no legacy window",
            values: &[("counting", 1.0)],
        },
        Profile {
            name: "nist",
            source: "NIST SP 500-282 (2010): initial window 2, threshold 16",
            values: &[("initial_window", 2.0)],
        },
    ],
    fields: &[SSTHRESH],
    build,
};

fn build(params: &Params, path: &PathInfo) -> Box<dyn Controller> {
    let linux = params.get_choice("counting") == "linux";
    let law = Scalable {
        a: params.get("a"),
        b: params.get("b"),
        legacy_window: params.get("legacy_window"),
        linux,
    };
    let window = RenoWindow::from_params(params, path).in_whole_packets(linux);
    window_law::controller(law, window)
}

struct Scalable {
    a: f64,
    b: f64,
    legacy_window: f64,
    linux: bool,
}

impl WindowLaw for Scalable {
    fn advance(&mut self, ack: &AckSample, window: &mut RenoWindow) {
        let acked = window.slow_start(ack);
        if self.linux {
            // Linux has no legacy window: it grows like Reno up to 1/a, where both are equally fast.
            window.avoid(acked, window.cwnd.min(libm::round(1.0 / self.a)));
        } else if window.cwnd <= self.legacy_window {
            window.avoid(acked, window.cwnd);
        } else {
            // Kelly §3: the generalised Scalable TCP window update.
            window.grow(self.a * acked);
        }
    }

    fn keep(&mut self, _signal: &Signal<'_>, window: &RenoWindow) -> f64 {
        if self.linux || window.cwnd > self.legacy_window {
            window.cwnd - window.fraction(self.b)
        } else {
            window.cwnd / 2.0
        }
    }

    fn observe(&self, window: &RenoWindow, out: &mut [f64]) {
        out[0] = window.ssthresh_bytes();
    }
}

#[cfg(test)]
mod tests {
    use super::SPEC;
    use crate::driver::Driver;

    /// T5: ln(8/7) / ln(1.01) = 13.4 round trips from a loss back to the window before it, at any window.
    #[test]
    fn recovery_takes_14_round_trips_at_any_window() {
        for window in [100.0, 1000.0, 10_000.0] {
            let mut bench = Driver::avoiding(&SPEC, None, window);
            bench.lose();
            assert_eq!(bench.cwnd(), window * 0.875);
            let mut rounds = 0;
            while bench.cwnd() < window {
                bench.spread(bench.cwnd() as u64, bench.rtt_ns);
                rounds += 1;
            }
            assert_eq!(rounds, 14, "{window}");
        }
    }

    /// N1: Scalable acts above 16 packets, by the paper and at NIST.
    #[test]
    fn up_to_the_legacy_window_it_is_reno() {
        for profile in [None, Some("nist")] {
            assert_eq!(Driver::avoiding(&SPEC, profile, 16.0).per_packet(), 1.0 / 16.0);
            assert_eq!(Driver::avoiding(&SPEC, profile, 16.0).after_loss(), 8.0);
            let step = Driver::avoiding(&SPEC, profile, 17.0).per_packet();
            assert!((step - 0.01).abs() < 1e-12, "{step}");
            assert_eq!(Driver::avoiding(&SPEC, profile, 17.0).after_loss(), 17.0 * 0.875);
        }
    }

    #[test]
    fn linux_counts_whole_packets_and_has_no_legacy_window() {
        let linux = |window| Driver::avoiding(&SPEC, Some("linux"), window);
        // A packet for each window up to 100, for each 100 packets above.
        assert_eq!(linux(60.0).gained(59), 0.0);
        assert_eq!(linux(60.0).gained(60), 1.0);
        assert_eq!(linux(400.0).gained(99), 0.0);
        assert_eq!(linux(400.0).gained(400), 4.0);
        // w - floor(w / 8).
        assert_eq!(linux(15.0).after_loss(), 14.0);
        assert_eq!(linux(103.0).after_loss(), 91.0);
    }
}
