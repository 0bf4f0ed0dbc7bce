use super::*;
use crate::event::{Ack, Loss, Timeout, Undo};

const MS: u64 = 1_000_000;
const PACKET: u64 = 1000;
const BASE_NS: u64 = 100 * MS;

/// A controller in congestion avoidance with window `w`, driven round by round.
struct Run {
    ctcp: Box<dyn Controller>,
    now_ns: u64,
    delivered: u64,
}

impl Run {
    fn new(profile: Option<&str>, settings: &[(&str, f64)], window: f64) -> Self {
        let mut params = SPEC.params(profile).unwrap();
        params.set("initial_window", window).unwrap();
        params.set("initial_ssthresh", window).unwrap();
        for (key, value) in settings {
            params.set(key, *value).unwrap();
        }
        let path = PathInfo {
            now_ns: 0,
            packet_bytes: PACKET as u32,
            initial_window_packets: 10,
            seed: 0,
        };
        let mut run = Self { ctcp: build(&params, &path), now_ns: 0, delivered: 0 };
        // An ACK of nothing shows the base RTT and begins the first round.
        run.ack(0, 0, BASE_NS);
        run
    }

    fn ack(&mut self, packets: u32, sent_at_delivered: u64, rtt_ns: u64) {
        self.delivered += u64::from(packets) * PACKET;
        let sample = AckSample {
            now_ns: self.now_ns,
            acked_packets: packets,
            rtt_ns,
            srtt_ns: rtt_ns,
            delivered_total_bytes: self.delivered,
            prior_delivered_total_bytes: sent_at_delivered,
            flags: AckSample::CWND_LIMITED | AckSample::CUMULATIVE,
            ..AckSample::default()
        };
        self.ctcp.on_ack(&Ack { sample, hops: &[] });
    }

    /// A window of ACKs, all with `rtt_ns`.
    fn round(&mut self, rtt_ns: u64) {
        self.now_ns += rtt_ns;
        let (start, packets) = (self.delivered, self.window().floor() as u32);
        // The first ACK ends the round before.
        for _ in 0..packets {
            self.ack(1, start, rtt_ns);
        }
    }

    fn window(&self) -> f64 {
        let [reno, dwnd, ..] = self.observed();
        reno + dwnd
    }

    fn observed(&self) -> [f64; 4] {
        let mut out = [0.0; 4];
        self.ctcp.observe(&mut out);
        out
    }

    fn lose(&mut self) {
        self.ctcp.on_loss(&Loss {
            now_ns: self.now_ns,
            prior_in_flight_bytes: self.ctcp.control().cwnd_bytes,
            lost_packets: 1,
            flags: Loss::EPISODE_START,
            ..Loss::default()
        });
    }
}

fn close(a: f64, b: f64, relative: f64) {
    assert!((a - b).abs() <= relative * b.abs(), "{a} against {b}");
}

/// T8, and the rest of the table of section 3.1: alpha w^k - 1.
#[test]
fn the_delay_window_grows_by_alpha_w_to_the_k_less_one() {
    for (window, growth) in [(41.0, 1.03), (100.0, 2.95), (1000.0, 21.2), (10_000.0, 124.0)] {
        let mut run = Run::new(None, &[], window);
        run.round(BASE_NS);
        assert_eq!(run.observed()[1], 0.0, "the first round only looks");
        run.round(BASE_NS);
        let [reno, dwnd, diff, _] = run.observed();
        // What the law says of the first round's window, spread over the second's.
        close(dwnd, 0.125 * window.powf(0.75) - 1.0, 0.03);
        close(dwnd, growth, 0.03);
        close(reno, window + 2.0, 0.01);
        assert_eq!(diff, 0.0);
    }
}

/// Below the activation window one packet per RTT, as Reno; at it two; and no jump between.
#[test]
fn reno_below_the_activation_window() {
    for (profile, activation) in [(None, 38.0), (Some("nist"), 41.0)] {
        let mut run = Run::new(profile, &[], activation - 3.0);
        let (mut before, mut compound) = (0.0, 0);
        for _ in 0..9 {
            let start = run.window();
            run.round(BASE_NS);
            // A round acts on what the one before has shown.
            let packets = if before >= activation { 2.0 } else { 1.0 };
            close(run.window() - start, packets, 0.12);
            compound += i32::from(before >= activation);
            before = start;
        }
        assert!((2..7).contains(&compound), "both sides of the threshold were seen");
    }
}

#[test]
fn the_delay_window_gives_way_by_its_queue() {
    let mut run = Run::new(None, &[], 300.0);
    for _ in 0..20 {
        run.round(BASE_NS);
    }
    let (window, dwnd) = (run.window(), run.observed()[1]);
    // diff = w / 11 >= 30 once w >= 330.
    assert!(window > 340.0 && dwnd > 60.0, "{window} {dwnd}");
    run.round(110 * MS);
    let (before, dwnd) = (run.window(), run.observed()[1]);
    run.ack(0, run.delivered, 110 * MS);
    let [_, after, diff, _] = run.observed();
    close(diff, window / 11.0, 1e-6);
    close(dwnd - after, diff, 1e-9);
    close(before - run.window(), diff, 1e-9);
    // Never below nothing.
    for _ in 0..10 {
        run.round(200 * MS);
    }
    assert_eq!(run.observed()[1], 0.0);
}

#[test]
fn a_loss_halves_both_and_an_undo_restores() {
    let mut run = Run::new(Some("nist"), &[], 300.0);
    for _ in 0..10 {
        run.round(BASE_NS);
    }
    let [reno, dwnd, ..] = run.observed();
    run.lose();
    let [reno_after, dwnd_after, ..] = run.observed();
    close(reno_after, reno / 2.0, 1e-12);
    close(dwnd_after, dwnd / 2.0, 1e-9);
    run.ctcp.on_spurious_loss(&Undo::default());
    assert_eq!(run.observed()[..2], [reno, dwnd]);
    // Below the activation window the whole window is Reno's.
    let mut run = Run::new(Some("nist"), &[], 60.0);
    for _ in 0..4 {
        run.round(BASE_NS);
    }
    let window = run.window();
    assert!(run.observed()[1] > 0.0 && window < 82.0);
    run.lose();
    assert_eq!(run.observed()[..2], [window / 2.0, 0.0]);
}

#[test]
fn beta_keeps_more_than_half() {
    let mut run = Run::new(None, &[("beta", 0.25)], 300.0);
    for _ in 0..10 {
        run.round(BASE_NS);
    }
    let (window, reno) = (run.window(), run.observed()[0]);
    run.lose();
    close(run.window(), 0.75 * window, 1e-12);
    close(run.observed()[0], reno / 2.0, 1e-12);
}

/// gamma <- (1 - lambda) gamma + lambda 3/4 diff_reno, between 5 and 30, once per measurement.
#[test]
fn gamma_learns_from_the_queue_at_losses() {
    let gamma_after = |profile: Option<&str>, rtt_ms: u64| {
        let mut run = Run::new(profile, &[("activation", 100_000.0)], 200.0);
        run.round(BASE_NS);
        run.round(rtt_ms * MS);
        run.ack(0, run.delivered, rtt_ms * MS);
        run.lose();
        let gamma = run.observed()[3];
        run.lose();
        assert_eq!(run.observed()[3], gamma, "no new measurement");
        gamma
    };
    // diff_reno = 201 (1 - 100/105) = 9.57; 0.75 * 30 + 0.25 * 0.75 * 9.57 = 24.29.
    close(gamma_after(None, 105), 24.29, 1e-3);
    assert_eq!(gamma_after(None, 1000), 30.0, "clipped");
    assert_eq!(gamma_after(Some("nist"), 105), 30.0);
    let mut run = Run::new(None, &[("lambda", 1.0), ("activation", 100_000.0)], 200.0);
    run.round(BASE_NS);
    run.ack(0, run.delivered, BASE_NS);
    run.lose();
    assert_eq!(run.observed()[3], 5.0);
    run.ctcp.on_rto(&Timeout { consecutive: 1, ..Timeout::default() });
    assert_eq!(run.observed()[3], 30.0);
}

#[test]
fn a_timeout_takes_the_delay_window() {
    let mut run = Run::new(None, &[], 300.0);
    for _ in 0..5 {
        run.round(BASE_NS);
    }
    let in_flight_bytes = 200 * PACKET;
    run.ctcp.on_rto(&Timeout { in_flight_bytes, consecutive: 1, ..Timeout::default() });
    assert_eq!(run.observed()[..2], [1.0, 0.0]);
    // Slow start to 100 without dwnd, then avoidance.
    for _ in 0..7 {
        run.round(BASE_NS);
        assert_eq!(run.observed()[1], 0.0);
    }
    close(run.window(), 100.0, 0.01);
}

#[test]
fn too_few_samples_teach_nothing() {
    let mut run = Run::new(None, &[], 300.0);
    for _ in 0..6 {
        // Two ACKs a round.
        let start = run.delivered;
        run.ack(150, start, BASE_NS);
        run.ack(150, start, BASE_NS);
    }
    assert_eq!(run.observed()[1], 0.0);
}
