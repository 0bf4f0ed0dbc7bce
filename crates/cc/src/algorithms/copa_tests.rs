use super::*;

const MS: u64 = 1_000_000;
const PACKET: u64 = 1000;

struct Run {
    copa: Box<dyn Controller>,
    now_ns: u64,
    delivered: u64,
}

impl Run {
    fn new(profile: Option<&str>, settings: &[(&str, f64)]) -> Self {
        let mut params = SPEC.params(profile).unwrap();
        for (key, value) in settings {
            params.set(key, *value).unwrap();
        }
        let path = PathInfo {
            now_ns: 0,
            packet_bytes: PACKET as u32,
            initial_window_packets: 10,
            seed: 0,
        };
        Self { copa: build(&params, &path), now_ns: 0, delivered: 0 }
    }

    /// One ACK, `gap_ns` after the last; `new_round` when its packet was sent after the last ACK.
    fn ack(&mut self, gap_ns: u64, rtt_ns: u64, new_round: bool) {
        self.now_ns += gap_ns;
        let before = self.delivered;
        self.delivered += PACKET;
        let sample = AckSample {
            now_ns: self.now_ns,
            acked_packets: 1,
            rtt_ns,
            srtt_ns: rtt_ns,
            delivered_total_bytes: self.delivered,
            prior_delivered_total_bytes: if new_round { before } else { 0 },
            flags: AckSample::CWND_LIMITED,
            ..AckSample::default()
        };
        self.copa.on_ack(&Ack { sample, hops: &[] });
    }

    /// Leaves slow start: 10 packets at 100 ms of propagation, then a standing queue of `queue_ms`.
    fn settled(&mut self, queue_ms: u64) {
        self.ack(MS, 100 * MS, false);
        // Past the window of RTTstanding.
        self.ack(200 * MS, (100 + queue_ms) * MS, false);
    }

    fn cwnd(&self) -> f64 {
        self.copa.control().cwnd_bytes as f64 / PACKET as f64
    }

    fn observed(&self) -> [f64; 5] {
        let mut out = [0.0; 5];
        self.copa.observe(&mut out);
        out
    }

    fn lose(&mut self) {
        self.copa.on_loss(&Loss { lost_packets: 1, flags: Loss::EPISODE_START, ..Loss::default() });
    }
}

fn close(a: f64, b: f64, relative: f64) {
    assert!((a - b).abs() <= relative * b.abs(), "{a} against {b}");
}

/// T20: delta 0.5, d_q 20 ms: 100 packets/s.
#[test]
fn target_rate_by_hand() {
    let mut run = Run::new(None, &[]);
    run.settled(20);
    let [delta, v, queueing, target, _] = run.observed();
    assert_eq!((delta, v), (0.5, 1.0));
    close(queueing, 20.0, 1e-12);
    close(target, 100.0, 1e-12);
}

#[test]
fn nothing_waiting_is_no_bound() {
    let mut run = Run::new(None, &[]);
    for _ in 0..10 {
        run.ack(MS, 100 * MS, false);
    }
    assert!(run.observed()[3].is_nan());
    assert_eq!(run.cwnd(), 20.0, "slow start: a packet per packet");
    // Paced at twice the window per RTT.
    assert_eq!(run.copa.control().pacing_bytes_per_s, 2 * 20 * PACKET * 10);
}

/// At lambda = 11 / 120 ms = 92 packets/s below the target of 100, then above that of 67.
#[test]
fn the_window_moves_by_v_over_delta_w() {
    let mut run = Run::new(None, &[]);
    run.settled(200);
    // 10 packets in slow start, one more with the first ACK; then 11 / 0.3 s = 37 > 1 / (0.5 * 0.2 s) = 10: down.
    let expected = 11.0 - 1.0 / (0.5 * 11.0);
    close(run.cwnd(), expected, 1e-3);
    run.ack(MS, 300 * MS, false);
    close(run.cwnd(), expected - 1.0 / (0.5 * expected), 1e-3);
    // The queue goes: the minimum of the last 50 ms is 100 ms again, without bound.
    let before = run.cwnd();
    run.ack(MS, 100 * MS, false);
    close(run.cwnd(), before + 1.0 / (0.5 * before), 1e-3);
}

#[test]
fn velocity_doubles_after_three_rounds_and_a_turn_resets_it() {
    let mut velocity = Velocity { v: 1.0, up: true, steady_rounds: 0, start_cwnd: 100.0 };
    let mut seen = Vec::new();
    for cwnd in [102.0, 104.0, 106.0, 110.0, 118.0, 134.0, 130.0, 129.0] {
        velocity.end_round(cwnd, 0.5);
        seen.push(velocity.v);
    }
    assert_eq!(seen, [1.0, 1.0, 2.0, 4.0, 8.0, 16.0, 1.0, 1.0]);
    // Never more than a window per round trip: v / delta <= w.
    let mut velocity = Velocity { v: 8.0, up: false, steady_rounds: 9, start_cwnd: 30.0 };
    velocity.end_round(20.0, 0.5);
    assert_eq!(velocity.v, 10.0);
}

/// Without a nearly empty queue for five round trips 1/delta is additively increased, and halved at a loss.
#[test]
fn competes_while_the_queue_stays() {
    let mut run = Run::new(None, &[]);
    run.settled(100);
    for _ in 0..4 {
        run.ack(200 * MS, 200 * MS, true);
    }
    assert_eq!(run.observed()[4], 0.0);
    let mut inverse = Vec::new();
    for _ in 0..5 {
        run.ack(200 * MS, 200 * MS, true);
        inverse.push((1.0 / run.observed()[0]).round());
    }
    assert_eq!(run.observed()[4], 1.0);
    assert_eq!(inverse, [2.0, 3.0, 4.0, 5.0, 6.0]);
    run.lose();
    run.lose();
    close(1.0 / run.observed()[0], 3.0, 1e-9);
    // A round with a loss adds nothing; 1/delta stays at least 2.
    run.ack(200 * MS, 200 * MS, true);
    close(1.0 / run.observed()[0], 3.0, 1e-9);
    for _ in 0..3 {
        run.lose();
        run.ack(200 * MS, 200 * MS, true);
    }
    close(1.0 / run.observed()[0], 2.0, 1e-9);
    // The queue empties: default mode at the next round.
    run.ack(200 * MS, 100 * MS, true);
    run.ack(100 * MS, 100 * MS, true);
    assert_eq!((run.observed()[0], run.observed()[4]), (0.5, 0.0));
}

#[test]
fn default_mode_ignores_losses_and_need_not_switch() {
    let mut run = Run::new(Some("default-mode"), &[]);
    run.settled(100);
    for _ in 0..20 {
        run.ack(200 * MS, 200 * MS, true);
    }
    let before = (run.observed()[0], run.cwnd());
    run.lose();
    assert_eq!((run.observed()[0], run.cwnd()), before);
    assert_eq!(before.0, 0.5);
}

#[test]
fn a_timeout_probes_anew() {
    let mut run = Run::new(None, &[]);
    run.settled(100);
    run.copa.on_rto(&Timeout::default());
    assert_eq!(run.cwnd(), 2.0);
    for _ in 0..3 {
        run.ack(60 * MS, 100 * MS, false);
    }
    assert_eq!(run.cwnd(), 5.0, "slow start");
}
