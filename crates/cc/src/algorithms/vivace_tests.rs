use super::*;
use crate::event::AckSample;

const MS: u64 = 1_000_000;

fn close(a: f64, b: f64, absolute: f64) {
    assert!((a - b).abs() <= absolute, "{a} against {b}");
}

const UTILITY: Utility = Utility { exponent: 0.9, latency: 900.0, loss: 11.35, tolerance: 0.01 };

/// An interval at 10 Mbit/s with an ACK per ms whose RTT grows by `slope`, and `lost` packets of 100.
fn interval(slope: f64, lost: f64) -> Interval {
    let mut interval = Interval::new(10e6 / 8.0, 0, 100 * MS);
    for n in 0..100 - lost as u64 {
        let sent_ns = n * MS;
        let rtt_ns = (40e6 + slope * sent_ns as f64) as u64;
        interval.on_ack(&AckSample { sent_ns, rtt_ns, acked_packets: 1, ..AckSample::default() });
    }
    interval.lost = lost;
    interval
}

#[test]
fn utility_by_hand() {
    let u = 10_f64.powf(0.9);
    close(UTILITY.of(&interval(0.0, 0.0)), u, 1e-9);
    // 900 * 10 * 0.05 = 450.
    close(UTILITY.of(&interval(0.05, 0.0)), u - 450.0, 1e-3);
    close(UTILITY.of(&interval(0.005, 0.0)), u, 1e-9);
    close(UTILITY.of(&interval(-0.05, 0.0)), u, 1e-9);
    // 11.35 * 10 * 0.02 = 2.27.
    close(UTILITY.of(&interval(0.0, 2.0)), u - 2.27, 1e-9);
    let loss_only = Utility { latency: 0.0, ..UTILITY };
    close(loss_only.of(&interval(0.5, 2.0)), u - 2.27, 1e-9);
}

#[test]
fn the_slope_is_that_of_a_regression() {
    close(interval(0.05, 0.0).rtt_slope(), 0.05, 1e-6);
    close(Interval::new(1.0, 0, 1).rtt_slope(), 0.0, 0.0);
    // Two outliers at the ends move it little: ends alone would give 0.2.
    let mut noisy = interval(0.0, 0.0);
    noisy.on_ack(&AckSample {
        sent_ns: 99 * MS,
        rtt_ns: 60 * MS,
        acked_packets: 1,
        ..AckSample::default()
    });
    assert!(noisy.rtt_slope() < 0.02, "{}", noisy.rtt_slope());
}

#[test]
fn steps_grow_with_confidence_and_are_bounded() {
    let mut step = Step::default();
    // m: 1, 2, 3, 5, 7 times theta times the gradient.
    let changes: Vec<f64> = (0..5).map(|_| step.change(1000.0, 0.5, 1.0)).collect();
    assert_eq!(changes, [0.5, 1.0, 1.5, 2.5, 3.5]);
    assert_eq!(step.change(1000.0, -0.5, 1.0), -0.5, "a turn starts anew");
    // 5 %, then 15 %, 25 % of the rate while the bound is met; a turn starts anew.
    for expected in [-0.5, -1.5, -2.5] {
        close(step.change(10.0, -100.0, 1.0), expected, 1e-12);
    }
    assert_eq!(step.change(10.0, 100.0, 1.0), 0.5);
}

/// A Vivace on a path of 40 ms, driven by the test as host: every packet is acknowledged 40 ms later.
struct Run {
    vivace: Box<dyn Controller>,
    now_ns: u64,
}

impl Run {
    fn new() -> Self {
        let path = PathInfo { now_ns: 0, packet_bytes: 1250, initial_window_packets: 10, seed: 3 };
        Self { vivace: build(&SPEC.params(None).unwrap(), &path), now_ns: 0 }
    }

    fn rate_mbps(&self) -> f64 {
        self.vivace.control().pacing_bytes_per_s as f64 * 8e-6
    }

    /// Sends for `ms` at the rate asked for. The RTT is `rtt_ms` of the sending time and rate.
    fn run(&mut self, ms: u64, rtt_ms: impl Fn(f64) -> f64) -> Vec<f64> {
        let (until_ns, mut rates, mut out) =
            (self.now_ns + ms * MS, Vec::new(), std::collections::VecDeque::new());
        let mut next_ns = self.now_ns;
        while self.now_ns < until_ns {
            let due_ns = out.front().map_or(u64::MAX, |(at, _, _): &(u64, u64, u64)| *at);
            self.now_ns = due_ns.min(next_ns);
            if due_ns <= next_ns {
                let (_, sent_ns, rtt_ns) = out.pop_front().unwrap();
                let sample = AckSample {
                    now_ns: self.now_ns,
                    acked_packets: 1,
                    sent_ns,
                    rtt_ns,
                    srtt_ns: rtt_ns,
                    ..AckSample::default()
                };
                self.vivace.on_ack(&Ack { sample, hops: &[] });
                continue;
            }
            self.vivace.on_send(&Sent { now_ns: self.now_ns, bytes: 1250, in_flight_bytes: 0 });
            let rate = self.rate_mbps();
            rates.push(rate);
            let rtt_ns = (rtt_ms(rate) * 1e6) as u64;
            out.push_back((self.now_ns + rtt_ns, self.now_ns, rtt_ns));
            next_ns = self.now_ns + (1250.0 * 8e3 / rate) as u64;
        }
        rates
    }
}

#[test]
fn doubles_at_the_start() {
    let mut run = Run::new();
    assert_eq!(run.vivace.control().cwnd_bytes, 12_500);
    run.run(50, |_| 40.0);
    // Ten packets per 40 ms.
    close(run.rate_mbps(), 2.5, 0.01);
    let rates = run.run(400, |_| 40.0);
    for rate in &rates {
        let doublings = (rate / 2.5).log2();
        close(doublings, doublings.round(), 1e-3);
    }
    assert!(*rates.last().unwrap() >= 20.0);
}

#[test]
fn tries_both_sides_in_pairs() {
    let mut run = Run::new();
    run.run(50, |_| 40.0);
    // A timeout halves the rate and begins to probe.
    let timeout = Timeout { now_ns: run.now_ns, consecutive: 1, ..Timeout::default() };
    run.vivace.on_rto(&timeout);
    let rates = run.run(140, |_| 40.0);
    assert!(rates.iter().all(|rate| (rate / 1.25 - 1.0).abs() < 0.051));
    let high = rates.iter().filter(|rate| (**rate / 1.25 - 1.05).abs() < 1e-3).count();
    let low = rates.iter().filter(|rate| (**rate / 1.25 - 0.95).abs() < 1e-3).count();
    assert!(high > 0 && low > 0, "{rates:?}");
    // On a path without a bound it goes up, by theta times a gradient of about 0.9 x^-0.1.
    let mut gradient = [0.0; 4];
    run.run(2000, |_| 40.0);
    run.vivace.observe(&mut gradient);
    close(gradient[2], 0.9 * gradient[0].powf(-0.1), 0.1);
    assert!(gradient[0] > 2.0, "{gradient:?}");
}
