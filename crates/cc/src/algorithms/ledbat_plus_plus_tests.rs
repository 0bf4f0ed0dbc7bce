use super::*;
use crate::event::{Ack, Loss, Timeout, Undo};

const MS: u64 = 1_000_000;
const PACKET: u64 = 1000;

struct Run {
    ledbat: Box<dyn Controller>,
    now_ns: u64,
}

impl Run {
    fn new(window: f64, ssthresh: f64) -> Self {
        let mut params = SPEC.params(None).unwrap();
        params.set("initial_window", window).unwrap();
        params.set("initial_ssthresh", ssthresh).unwrap();
        let path = PathInfo {
            now_ns: 0,
            packet_bytes: PACKET as u32,
            initial_window_packets: 10,
            seed: 0,
        };
        Self { ledbat: build(&params, &path), now_ns: 0 }
    }

    fn ack(&mut self, gap_ms: u64, rtt_ms: u64) {
        self.now_ns += gap_ms * MS;
        let sample = AckSample {
            now_ns: self.now_ns,
            acked_packets: 1,
            rtt_ns: rtt_ms * MS,
            srtt_ns: rtt_ms * MS,
            flags: AckSample::CWND_LIMITED | AckSample::CUMULATIVE,
            ..AckSample::default()
        };
        self.ledbat.on_ack(&Ack { sample, hops: &[] });
    }

    fn cwnd(&self) -> f64 {
        self.ledbat.control().cwnd_bytes as f64 / PACKET as f64
    }

    fn slows_down(&self) -> bool {
        let mut out = [0.0; 4];
        self.ledbat.observe(&mut out);
        out[3] == 1.0
    }
}

fn close(a: f64, b: f64, relative: f64) {
    assert!((a - b).abs() <= relative * b.abs(), "{a} against {b}");
}

/// T13.
#[test]
fn gain_is_one_a_sixth_and_a_sixteenth() {
    for (base_ms, expected) in [(120.0, 1.0), (20.0, 1.0 / 6.0), (5.0, 1.0 / 16.0), (500.0, 1.0)] {
        assert_eq!(gain(60e6, base_ms * 1e6), expected);
    }
}

#[test]
fn slow_start_at_gain_ends_at_three_quarters_of_the_target() {
    let mut run = Run::new(20.0, 1e6);
    // Base 120 ms: a packet per packet.
    (0..10).for_each(|_| run.ack(1, 120));
    assert_eq!(run.cwnd(), 30.0);
    // 45 ms is not yet too much, once four samples show it; 46 ms is.
    (0..10).for_each(|_| run.ack(1, 165));
    assert_eq!(run.cwnd(), 40.0);
    (0..4).for_each(|_| run.ack(1, 166));
    assert!(run.cwnd() > 43.0 && run.cwnd() < 43.1, "{}", run.cwnd());
    // Base 20 ms: a sixth.
    let mut run = Run::new(20.0, 1e6);
    (0..12).for_each(|_| run.ack(1, 20));
    close(run.cwnd(), 22.0, 1e-3);
}

#[test]
fn additive_below_and_multiplicative_above_the_target() {
    let mut run = Run::new(50.0, 50.0);
    (0..50).for_each(|_| run.ack(0, 120));
    close(run.cwnd(), 51.0, 2e-3);
    // 72 ms of queue: 1 - 51 (72/60 - 1) = -9.2 per window.
    (0..3).for_each(|_| run.ack(0, 192));
    let before = run.cwnd();
    (0..10).for_each(|_| run.ack(0, 192));
    close(before - run.cwnd(), 10.0 / 51.0 * 9.2, 0.06);
    // 300 ms: at most half a packet per packet.
    (0..3).for_each(|_| run.ack(0, 420));
    run.ack(0, 420);
    let before = run.cwnd();
    (0..10).for_each(|_| run.ack(0, 420));
    close(before - run.cwnd(), 5.0, 1e-3);
}

/// Two RTTs after slow start: two packets for two RTTs, slow start back, and nine times as long until the next.
#[test]
fn slowdowns_take_a_tenth_of_the_time() {
    let mut run = Run::new(50.0, 50.0);
    run.ack(0, 120);
    run.ack(239, 120);
    assert!(!run.slows_down());
    run.ack(1, 120);
    assert!(run.slows_down());
    assert_eq!(run.cwnd(), 2.0);
    let before = 50.0 + 2.0 / 50.0;
    run.ack(239, 120);
    assert_eq!(run.cwnd(), 2.0);
    // A ramp of 60 ms: 48 packets and a bit.
    run.ack(1, 120);
    assert_eq!(run.cwnd(), 3.0);
    (0..48).for_each(|_| run.ack(1, 120));
    close(run.cwnd(), before, 1e-3);
    assert!(run.slows_down());
    run.ack(11, 120);
    assert!(!run.slows_down());
    // Lasted 240 + 48 + 11 ms.
    run.ack(9 * 299 - 1, 120);
    assert!(!run.slows_down());
    run.ack(1, 120);
    assert!(run.slows_down());
}

#[test]
fn losses_halve_what_a_slowdown_comes_back_to() {
    let loss = Loss { lost_packets: 1, flags: Loss::EPISODE_START, ..Loss::default() };
    let mut run = Run::new(50.0, 50.0);
    run.ledbat.on_loss(&loss);
    assert_eq!(run.cwnd(), 25.0);
    run.ledbat.on_spurious_loss(&Undo::default());
    assert_eq!(run.cwnd(), 50.0);
    run.ack(0, 120);
    run.ack(240, 120);
    run.ledbat.on_loss(&loss);
    assert_eq!(run.cwnd(), 2.0);
    run.ack(240, 120);
    (0..40).for_each(|_| run.ack(1, 120));
    close(run.cwnd(), 25.0, 0.05);
    run.ledbat.on_rto(&Timeout {
        in_flight_bytes: 20 * PACKET,
        consecutive: 1,
        ..Timeout::default()
    });
    assert_eq!(run.cwnd(), 1.0);
    (0..9).for_each(|_| run.ack(1, 120));
    assert_eq!(run.cwnd(), 10.0, "slow start to half of what was in flight");
}
