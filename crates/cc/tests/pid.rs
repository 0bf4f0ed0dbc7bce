//! PID, compiled from `bpf/algorithms/pid.h`: setpoints and gains by hand, and its loop closed over the queue's equation.

use paceline_cc::{
    Ack, AckSample, Control, Controller, Loss, PathInfo, Resume, Timeout, Undo, registry,
};

const MS: u64 = 1_000_000;
const GAIN: f64 = 0.0;
const MANAGE: f64 = 1.0;
const CONTROL: f64 = 2.0;
/// Capacity of the path in these tests, bytes/s.
const C: f64 = 1e9;
const PATH: PathInfo =
    PathInfo { now_ns: 0, packet_bytes: 1000, initial_window_packets: 10, seed: 0 };

/// A controller and the path it is on: the host's counts, and time.
struct Drive {
    pid: Box<dyn Controller>,
    now_ns: u64,
    /// Delivered so far, bytes.
    delivered: f64,
    /// What the rate samples show, bytes/s.
    ddr: f64,
    flags: u32,
}

impl Drive {
    fn new(profile: Option<&str>, settings: &[(&str, f64)]) -> Self {
        let spec = registry::find("pid").expect("registered");
        let mut params = spec.params(profile).unwrap();
        for (key, value) in settings {
            params.set(key, *value).unwrap();
        }
        let pid = (spec.build)(&params, &PATH);
        Self { pid, now_ns: 0, delivered: 0.0, ddr: C, flags: 0 }
    }

    /// An ACK `step_ns` later of a packet that took `rtt_ns`.
    fn ack(&mut self, step_ns: u64, rtt_ns: u64) {
        self.now_ns += step_ns;
        self.delivered += self.ddr * step_ns as f64 / 1e9;
        let in_an_rtt = self.ddr * rtt_ns as f64 / 1e9;
        let sample = AckSample {
            now_ns: self.now_ns,
            rtt_ns,
            sent_ns: self.now_ns.saturating_sub(rtt_ns),
            acked_bytes: 1000,
            acked_packets: 1,
            delivered_bytes: in_an_rtt as u64,
            interval_ns: rtt_ns,
            delivered_total_bytes: self.delivered as u64,
            prior_delivered_total_bytes: (self.delivered - in_an_rtt).max(0.0) as u64,
            flags: self.flags,
            ..AckSample::default()
        };
        self.pid.on_ack(&Ack { sample, hops: &[] });
    }

    /// Constant RTT until the state is `state`; how long that took, ns.
    fn until(&mut self, state: f64, rtt_ns: u64) -> u64 {
        let from_ns = self.now_ns;
        for _ in 0..100_000 {
            if self.state() == state {
                return self.now_ns - from_ns;
            }
            self.ack(rtt_ns / 64, rtt_ns);
        }
        panic!("never in state {state}");
    }

    fn fields(&self) -> [f64; 4] {
        let mut out = [0.0; 4];
        self.pid.observe(&mut out);
        out
    }

    fn state(&self) -> f64 {
        self.fields()[0]
    }

    /// Rate over capacity.
    fn rate(&self) -> f64 {
        self.pid.control().pacing_bytes_per_s as f64 / C
    }
}

/// P1, and the alternative of 5 ms.
#[test]
fn setpoints_of_equation_1() {
    for (profile, min_rtt_ms, setpoint_us) in [
        (None, 10, 20_000.0),
        (None, 50, 62_500.0),
        (None, 100, 125_000.0),
        (Some("alpha-5ms"), 10, 15_000.0),
        (Some("alpha-5ms"), 50, 62_500.0),
    ] {
        let mut drive = Drive::new(profile, &[]);
        drive.until(CONTROL, min_rtt_ms * MS);
        assert_eq!(drive.fields()[1..3], [setpoint_us, (min_rtt_ms * 1000) as f64]);
    }
}

#[test]
fn gain_doubles_until_three_reports_are_flat() {
    let mut drive = Drive::new(None, &[]);
    let control = drive.pid.control();
    assert_eq!((control.cwnd_bytes, control.pacing_bytes_per_s), (10_000, Control::UNPACED));
    drive.ddr = 10_000.0 / 0.02;
    drive.ack(20 * MS, 20 * MS);
    // Ten packets of 1000 bytes in 20 ms, times 2/ln 2.
    assert!((drive.rate() * C / (500_000.0 * 2.885) - 1.0).abs() < 1e-3, "{}", drive.rate());
    assert_eq!(drive.pid.control().cwnd_bytes, (10_000.0_f64 * 2.885) as u64);
    for _ in 0..8 {
        drive.ddr *= 2.0;
        (0..64).for_each(|_| drive.ack(20 * MS / 64, 20 * MS));
        assert_eq!(drive.state(), GAIN);
        assert!((drive.rate() * C / (drive.ddr * 2.885) - 1.0).abs() < 1e-3);
    }
    // The rest of this round trip, then three flat ones.
    let took_ns = drive.until(MANAGE, 20 * MS);
    assert!((60 * MS..=82 * MS).contains(&took_ns), "{took_ns}");
    assert!((drive.rate() * C / (drive.ddr * 0.5) - 1.0).abs() < 1e-3, "half the rate");
}

#[test]
fn an_idle_application_does_not_end_gain() {
    let mut drive = Drive::new(None, &[]);
    drive.flags = AckSample::APP_LIMITED;
    (0..6400).for_each(|_| drive.ack(20 * MS / 64, 20 * MS));
    assert_eq!(drive.state(), GAIN);
}

/// 50 ms; but a round trip and the time to drain, which is twice the queue at half the rate, when that is longer.
#[test]
fn manage_lasts_until_an_empty_queue_has_been_seen() {
    let length_ms = |min_rtt: u64, rtt: u64| {
        let mut drive = Drive::new(None, &[]);
        drive.ack(MS, min_rtt * MS);
        drive.until(MANAGE, rtt * MS);
        drive.until(CONTROL, rtt * MS) / MS
    };
    assert!((50..=52).contains(&length_ms(10, 20)));
    assert!((160..=165).contains(&length_ms(40, 80)), "80 + 2 * 40");
    assert!((200..=204).contains(&length_ms(200, 200)));
}

/// The rate of an error held for a while: mu (1 + 2 e/tau + e t/tau^2), the derivative being that of a step.
#[test]
fn the_law_by_hand() {
    let mut drive = Drive::new(None, &[("manage", 0.0)]);
    drive.until(CONTROL, 100 * MS);
    assert_eq!(drive.rate(), 1.0, "mu");
    // SP = 125 ms, tau = 500 ms; e = 5 ms: 1 + 0.02 + 0.01 t/tau.
    let law = |t_ms: u64| 1.02 + 0.01 * t_ms as f64 / 500.0;
    for t_ms in 1..=400 {
        drive.ack(MS, 120 * MS);
        // One sample in 7.8 ms.
        let got = drive.rate();
        assert!(t_ms < 9 || (law(t_ms - 9)..=law(t_ms) + 1e-5).contains(&got), "{t_ms}: {got}");
    }
    // 2.5 times SP: proportional -0.75 and an integral that falls; never below an eighth.
    drive.ack(8 * MS, 312 * MS);
    assert!((drive.rate() - (law(400) - 0.02 - 0.748)).abs() < 0.02, "{}", drive.rate());
    (0..60).for_each(|_| drive.ack(8 * MS, 312 * MS));
    assert!((drive.rate() - 0.125).abs() < 1e-3 || drive.state() == MANAGE);
}

/// A plant dl/dt = (r - C)/C on which a rate acts `delay` later. (Time since Control began, RTT) in ms, as long as Control lasts.
fn closed_loop(settings: &[(&str, f64)], delay_ns: u64, seconds: f64) -> Vec<(f64, f64)> {
    const BASE_NS: f64 = 100e6;
    const STEP_NS: u64 = MS / 4;
    let mut drive = Drive::new(None, settings);
    drive.until(CONTROL, 100 * MS);
    let (mut rtt_ns, start_ns) = (BASE_NS, drive.now_ns);
    let lag = (delay_ns / STEP_NS) as usize;
    let mut rates = std::collections::VecDeque::from(vec![1.0; lag]);
    let mut seen = Vec::new();
    while drive.now_ns < start_ns + (seconds * 1e9) as u64 && drive.state() == CONTROL {
        rates.push_back(drive.rate());
        let rate = rates.pop_front().expect("one was pushed");
        rtt_ns = (rtt_ns + (rate - 1.0) * STEP_NS as f64).max(BASE_NS);
        drive.ack(STEP_NS, rtt_ns as u64);
        seen.push(((drive.now_ns - start_ns) as f64 / 1e6, rtt_ns / 1e6));
    }
    seen
}

/// P2. Without delay both poles are at -1/tau: e(t) = e0 (1 - t/tau) e^(-t/tau), SP = 125 ms, tau = 500 ms, e0 = 25 ms.
#[test]
fn undelayed_loop_is_critically_damped() {
    for (t_ms, rtt_ms) in closed_loop(&[], 0, 4.0) {
        let x = t_ms / 500.0;
        let expected = 125.0 - 25.0 * (1.0 - x) * (-x).exp();
        assert!((rtt_ms - expected).abs() < 0.05 * 25.0, "{rtt_ms} for {expected} at {t_ms} ms");
    }
}

/// P2. With a delay of tau/4 the loop does not keep swinging: within 2 % of e0 after 10 tau. With tau = SP, where the delay is all
/// of tau, it swings until the setpoint counts as unreachable.
#[test]
fn delayed_loop_settles() {
    for settings in [&[][..], &[("kd", 0.1)], &[("kp", 3.0)]] {
        let seen = closed_loop(settings, 125 * MS, 8.0);
        assert!(seen.last().unwrap().0 > 7990.0, "{settings:?} left Control");
        let late = seen.iter().filter(|(t_ms, _)| *t_ms > 5000.0);
        let error = late.map(|(_, rtt_ms)| (rtt_ms - 125.0).abs()).fold(0.0, f64::max);
        println!("{settings:?}: largest error after 10 tau {error:.3} ms");
        assert!(error < 0.5, "{error}");
    }
    assert!(closed_loop(&[("tau", 1.0)], 125 * MS, 8.0).last().unwrap().0 < 7990.0);
}

#[test]
fn a_drop_of_the_delivery_rate_leads_to_manage() {
    for (share, expected) in [(0.85, CONTROL), (0.75, MANAGE)] {
        let mut drive = Drive::new(None, &[]);
        drive.until(CONTROL, 100 * MS);
        (0..640).for_each(|_| drive.ack(2 * MS, 125 * MS));
        drive.ddr *= share;
        (0..80).for_each(|_| drive.ack(2 * MS, 125 * MS));
        assert_eq!(drive.state(), expected);
    }
}

#[test]
fn reports_of_manage_do_not_count() {
    let mut drive = Drive::new(None, &[]);
    drive.until(MANAGE, 100 * MS);
    drive.ddr = C / 2.0;
    drive.until(CONTROL, 100 * MS);
    (0..120).for_each(|_| drive.ack(MS, 100 * MS));
    assert_eq!((drive.state(), drive.fields()[3]), (CONTROL, C));
}

#[test]
fn a_new_path_is_measured_anew() {
    let mut drive = Drive::new(None, &[]);
    drive.until(CONTROL, 100 * MS);
    // Rerouting: 300 ms. The rate falls to its bound, the setpoint stays out of reach, Manage sees 300 ms: SP = 375 ms.
    drive.until(MANAGE, 300 * MS);
    drive.until(CONTROL, 300 * MS);
    assert_eq!(drive.fields()[1..3], [375_000.0, 300_000.0]);
}

/// Others have come and keep the queue filled: what Manage sees then is no distance. A smaller RTT always counts.
#[test]
fn a_drop_does_not_raise_the_setpoint() {
    let mut drive = Drive::new(None, &[]);
    drive.until(CONTROL, 100 * MS);
    (0..640).for_each(|_| drive.ack(2 * MS, 125 * MS));
    drive.ddr = C / 2.0;
    drive.until(MANAGE, 125 * MS);
    drive.until(CONTROL, 125 * MS);
    assert_eq!(drive.fields()[1..3], [125_000.0, 100_000.0]);
    drive.ack(MS, 80 * MS);
    assert_eq!(drive.fields()[1..3], [100_000.0, 80_000.0], "a shorter path");
}

#[test]
fn losses_and_marks_above_two_percent_lead_to_manage() {
    // A round trip delivers 125 MB; 2.5 MB of them are 2 %.
    for (lost_bytes, expected) in [(2_000_000, CONTROL), (3_000_000, MANAGE)] {
        let mut drive = Drive::new(None, &[]);
        drive.until(CONTROL, 100 * MS);
        (0..1280).for_each(|_| drive.ack(MS, 125 * MS));
        drive.pid.on_loss(&Loss { lost_bytes, ..Loss::default() });
        (0..130).for_each(|_| drive.ack(MS, 125 * MS));
        assert_eq!(drive.state(), expected);
        if expected == MANAGE {
            drive.pid.on_spurious_loss(&Undo::default());
            assert_eq!((drive.state(), drive.rate() > 0.9), (CONTROL, true), "it was reordering");
        }
    }
}

#[test]
fn a_timeout_begins_gain_and_can_be_undone() {
    let mut drive = Drive::new(None, &[]);
    drive.until(CONTROL, 100 * MS);
    let before = drive.pid.control();
    for consecutive in 1..=2 {
        let now_ns = drive.now_ns;
        drive.pid.on_rto(&Timeout { now_ns, consecutive, ..Timeout::default() });
    }
    // Two packets in 100 ms, times 2/ln 2.
    assert_eq!(drive.state(), GAIN);
    assert!((drive.rate() * C - 20_000.0 * 2.885).abs() < 2.0);
    drive.pid.on_spurious_loss(&Undo::default());
    assert_eq!(drive.pid.control(), before);
    drive.pid.on_spurious_loss(&Undo::default());
    assert_eq!(drive.pid.control(), before, "once");
}

#[test]
fn idleness_is_no_error() {
    let mut drive = Drive::new(None, &[("manage", 0.0)]);
    drive.until(CONTROL, 100 * MS);
    drive.now_ns += 10_000 * MS;
    drive.pid.on_resume(&Resume { now_ns: drive.now_ns, idle_ns: 10_000 * MS });
    drive.ack(8 * MS, 120 * MS);
    assert!((drive.rate() - 1.02).abs() < 1e-3, "proportional part alone: {}", drive.rate());
}
