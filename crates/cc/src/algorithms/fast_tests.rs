use super::*;
use crate::algorithms::fast_at;
use crate::event::{Ack, Loss, Timeout, Undo};

const MS: u64 = 1_000_000;
const PACKET: u64 = 1000;

/// A controller in congestion avoidance with window `w`, driven round by round.
struct Run {
    fast: Box<dyn Controller>,
    now_ns: u64,
    delivered: u64,
}

impl Run {
    fn of(spec: &'static Spec, window: f64, ssthresh: f64) -> Self {
        let mut params = spec.params(None).unwrap();
        params.set("initial_window", window).unwrap();
        params.set("initial_ssthresh", ssthresh).unwrap();
        let path = PathInfo {
            now_ns: 0,
            packet_bytes: PACKET as u32,
            initial_window_packets: 10,
            seed: 0,
        };
        Self { fast: (spec.build)(&params, &path), now_ns: 0, delivered: 0 }
    }

    fn new(window: f64) -> Self {
        Self::of(&SPEC, window, window)
    }

    /// A window of ACKs, all with `rtt_ns`. The first ends the round before.
    fn round(&mut self, rtt_ns: u64) {
        self.now_ns += rtt_ns;
        let (start, packets) = (self.delivered, self.window().floor() as u32);
        for _ in 0..packets {
            self.delivered += PACKET;
            let sample = AckSample {
                now_ns: self.now_ns,
                acked_packets: 1,
                rtt_ns,
                srtt_ns: rtt_ns,
                delivered_total_bytes: self.delivered,
                prior_delivered_total_bytes: start,
                flags: AckSample::CWND_LIMITED | AckSample::CUMULATIVE,
                ..AckSample::default()
            };
            self.fast.on_ack(&Ack { sample, hops: &[] });
        }
    }

    fn window(&self) -> f64 {
        self.fast.control().cwnd_bytes as f64 / PACKET as f64
    }

    fn observed(&self) -> [f64; 4] {
        let mut out = [0.0; 4];
        self.fast.observe(&mut out);
        out
    }
}

fn close(a: f64, b: f64, relative: f64) {
    assert!((a - b).abs() <= relative * b.abs(), "{a} against {b}");
}

#[test]
fn equation_3_by_hand() {
    let mut run = Run::new(1000.0);
    run.round(100 * MS);
    assert_eq!(run.window(), 1000.0);
    // No queue: (1 - 1/2) 1000 + 1/2 (1000 + 200) = 1100.
    run.round(100 * MS);
    close(run.observed()[3], 1100.0, 1e-12);
    close(run.window(), 1100.0, 1e-3);
    // Then a fifth of the RTT is queue, as far as the average shows it. The window that the equation multiplies is that of the
    // round before.
    let mut before = 1000.0;
    for _ in 0..4 {
        let (window, average) = (run.window(), run.observed()[2]);
        run.round(125 * MS);
        let expected = 0.5 * window + 0.5 * (100.0 / average * before + 200.0);
        close(run.observed()[3], expected, 1e-4);
        before = window;
    }
    close(run.observed()[2], 125.0, 1e-3);
}

/// In balance w (1 - baseRTT / RTT) = alpha: with 100 ms of propagation and 125 ms in all, w = 1000.
#[test]
fn balance_is_alpha_packets_in_the_queue() {
    let mut run = Run::new(1000.0);
    run.round(100 * MS);
    for _ in 0..200 {
        run.round(125 * MS);
    }
    close(run.window(), 1000.0, 0.01);
}

#[test]
fn never_more_than_twice() {
    let mut run = Run::new(10.0);
    run.round(100 * MS);
    run.round(100 * MS);
    close(run.observed()[3], 20.0, 1e-12);
}

#[test]
fn slow_start_ends_when_alpha_packets_stand() {
    let mut run = Run::of(&SPEC, 600.0, 1e9);
    run.round(100 * MS);
    assert_eq!(run.window(), 1200.0);
    // 1200 (1 - 100/115) = 157 do not stand yet; 2400 (1 - 100/115) = 313 do.
    run.round(115 * MS);
    assert_eq!(run.window(), 2400.0);
    run.round(115 * MS);
    assert_eq!(run.window(), 4800.0);
    run.round(115 * MS);
    assert!(run.window() < 4801.0, "{}", run.window());
}

#[test]
fn a_loss_halves_once_and_an_undo_restores() {
    let mut run = Run::new(1000.0);
    let loss = |flags| Loss { lost_packets: 1, flags, ..Loss::default() };
    run.fast.on_loss(&loss(Loss::EPISODE_START));
    run.fast.on_loss(&loss(0));
    assert_eq!(run.window(), 500.0);
    run.fast.on_spurious_loss(&Undo::default());
    assert_eq!(run.window(), 1000.0);
    let in_flight_bytes = 1000 * PACKET;
    run.fast.on_rto(&Timeout { in_flight_bytes, consecutive: 1, ..Timeout::default() });
    assert_eq!(run.window(), 1.0);
    for _ in 0..9 {
        run.round(100 * MS);
    }
    close(run.window(), 500.0, 0.03);
}

/// A window of 200 at 100 ms is 2000 packets/s: alpha 20; of 100, 1000 packets/s: alpha 8.
#[test]
fn tuned_alpha_follows_the_rate() {
    for (window, alpha) in [(100.0, 8.0), (200.0, 20.0), (2000.0, 200.0)] {
        let mut run = Run::of(&fast_at::SPEC, window, window);
        assert_eq!(run.observed()[0], 8.0);
        run.round(100 * MS);
        run.round(100 * MS);
        assert_eq!(run.observed()[0], alpha);
        close(run.observed()[3], window + alpha / 2.0, 1e-9);
    }
}
