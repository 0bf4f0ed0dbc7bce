use super::*;
use crate::event::AckSample;

const MS: u64 = 1_000_000;
const PACKET: u64 = 1000;

struct Run {
    ledbat: Box<dyn Controller>,
    now_ns: u64,
}

impl Run {
    fn new(window: f64) -> Self {
        let mut params = SPEC.params(None).unwrap();
        params.set("initial_window", window).unwrap();
        let path = PathInfo {
            now_ns: 0,
            packet_bytes: PACKET as u32,
            initial_window_packets: 10,
            seed: 0,
        };
        Self { ledbat: build(&params, &path), now_ns: 0 }
    }

    fn sample(&self, rtt_ms: u64, in_flight: f64) -> AckSample {
        AckSample {
            now_ns: self.now_ns,
            acked_packets: 1,
            rtt_ns: rtt_ms * MS,
            prior_in_flight_bytes: (in_flight * PACKET as f64) as u64,
            ..AckSample::default()
        }
    }

    fn ack(&mut self, rtt_ms: u64) {
        let sample = self.sample(rtt_ms, self.cwnd());
        self.ledbat.on_ack(&Ack { sample, hops: &[] });
    }

    fn cwnd(&self) -> f64 {
        self.ledbat.control().cwnd_bytes as f64 / PACKET as f64
    }
}

fn close(a: f64, b: f64, relative: f64) {
    assert!((a - b).abs() <= relative * b.abs(), "{a} against {b}");
}

#[test]
fn grows_by_gain_times_off_target() {
    let mut run = Run::new(50.0);
    // off_target 1: a packet per window.
    (0..50).for_each(|_| run.ack(40));
    close(run.cwnd(), 51.0, 2e-3);
    // The smallest of four samples counts: three of 90 ms change nothing yet.
    let before = run.cwnd();
    (0..3).for_each(|_| run.ack(90));
    close(run.cwnd() - before, 3.0 / 51.0, 0.05);
    // 50 ms of queue: half; 100 ms: nothing; 200 ms: a packet less per window.
    run.ack(90);
    let before = run.cwnd();
    (0..51).for_each(|_| run.ack(90));
    close(run.cwnd() - before, 0.5, 0.05);
    (0..4).for_each(|_| run.ack(140));
    let before = run.cwnd();
    (0..50).for_each(|_| run.ack(140));
    close(run.cwnd(), before, 1e-9);
    (0..4).for_each(|_| run.ack(240));
    let before = run.cwnd();
    (0..51).for_each(|_| run.ack(240));
    close(before - run.cwnd(), 1.0, 0.05);
}

#[test]
fn what_is_in_flight_limits_the_window() {
    let mut run = Run::new(50.0);
    for _ in 0..100 {
        let sample = run.sample(40, 49.5);
        run.ledbat.on_ack(&Ack { sample, hops: &[] });
    }
    close(run.cwnd(), 50.5, 1e-3);
    // §2.4.2: cwnd = min(cwnd, flightsize + ALLOWED_INCREASE), for one that was not used too; at least 2.
    for (in_flight, expected) in [(20.0, 21.0), (0.5, 2.0)] {
        let sample = run.sample(40, in_flight);
        run.ledbat.on_ack(&Ack { sample, hops: &[] });
        assert_eq!(run.cwnd(), expected);
    }
}

#[test]
fn a_one_way_delay_is_preferred() {
    let mut run = Run::new(50.0);
    for delay_ms in [20, 70, 70, 70, 70] {
        let sample = AckSample { one_way_delay_ns: delay_ms * MS, ..run.sample(500, 50.0) };
        run.ledbat.on_ack(&Ack { sample, hops: &[] });
    }
    let mut out = [0.0; 2];
    run.ledbat.observe(&mut out);
    assert_eq!(out, [20.0, 50.0]);
}

#[test]
fn the_base_is_forgotten_after_ten_minutes() {
    let mut history = DelayHistory::new(0);
    history.add(0, 10 * MS);
    for minute in 1..10 {
        history.add(minute * MINUTE_NS, 30 * MS);
        assert_eq!(history.base_ns(), Some(10 * MS));
    }
    history.add(10 * MINUTE_NS, 30 * MS);
    assert_eq!(history.base_ns(), Some(30 * MS));
    history.add(1000 * MINUTE_NS, 40 * MS);
    assert_eq!(history.base_ns(), Some(40 * MS));
}

#[test]
fn a_loss_halves_and_a_timeout_restarts() {
    let mut run = Run::new(50.0);
    let loss = |flags| Loss { lost_packets: 1, flags, ..Loss::default() };
    run.ledbat.on_loss(&loss(Loss::EPISODE_START));
    run.ledbat.on_loss(&loss(0));
    assert_eq!(run.cwnd(), 25.0);
    run.ledbat.on_spurious_loss(&Undo::default());
    assert_eq!(run.cwnd(), 50.0);
    run.ledbat.on_rto(&Timeout::default());
    assert_eq!(run.cwnd(), 1.0);
    run.ack(40);
    assert_eq!(run.cwnd(), 2.0);
}
