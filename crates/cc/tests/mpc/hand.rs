//! Pieces of the law, with numbers by hand.

use paceline_cc::{Ack, AckSample, Controller, Loss, PathInfo, registry};

const MS: u64 = 1_000_000;
const START: f64 = 0.0;
const STEADY: f64 = 1.0;
const DRAIN: f64 = 3.0;

/// A controller and a host on which bytes leave at a constant rate, whatever it does.
struct Drive {
    mpc: Box<dyn Controller>,
    now_ns: u64,
    /// What leaves, bytes/s; lost of it, a part.
    leaves: f64,
    lost: f64,
    in_flight: u64,
}

impl Drive {
    fn new(packet_bytes: u32, initial_window_packets: u32, settings: &[(&str, f64)]) -> Self {
        let spec = registry::find("mpc").expect("registered");
        let mut params = spec.params(None).unwrap();
        for (key, value) in settings {
            params.set(key, *value).unwrap();
        }
        let path = PathInfo { now_ns: 0, packet_bytes, initial_window_packets, seed: 0 };
        let mpc = (spec.build)(&params, &path);
        Self { mpc, now_ns: 1000 * MS, leaves: 0.0, lost: 0.0, in_flight: 0 }
    }

    /// An ACK `step_ns` later of a packet that took `rtt_ns`.
    fn ack(&mut self, step_ns: u64, rtt_ns: u64) {
        self.now_ns += step_ns;
        let bytes = |ns: u64, part: f64| (self.leaves * part * ns as f64 / 1e9) as u64;
        let now_ns = self.now_ns;
        let lost_bytes = bytes(step_ns, self.lost);
        if lost_bytes > 0 {
            self.mpc.on_loss(&Loss { now_ns, lost_bytes, ..Loss::default() });
        }
        let sample = AckSample {
            now_ns,
            rtt_ns,
            in_flight_bytes: self.in_flight,
            delivered_total_bytes: bytes(now_ns, 1.0 - self.lost),
            // What was sent before it: delivered then, in flight then, and found lost since.
            prior_delivered_total_bytes: bytes(now_ns - rtt_ns, 1.0 - self.lost),
            tx_in_flight_bytes: bytes(100 * MS, 1.0),
            lost_since_sent_bytes: bytes(rtt_ns - step_ns, self.lost),
            ..AckSample::default()
        };
        self.mpc.on_ack(&Ack { sample, hops: &[] });
    }

    /// ACKs every `step_ns` for `ms`.
    fn acks(&mut self, ms: u64, step_ns: u64, rtt_ns: u64) {
        (0..ms * MS / step_ns).for_each(|_| self.ack(step_ns, rtt_ns));
    }

    fn fields(&self) -> [f64; 8] {
        let mut out = [0.0; 8];
        self.mpc.observe(&mut out);
        out
    }

    fn state(&self) -> f64 {
        self.fields()[0]
    }

    fn rho(&self) -> f64 {
        self.fields()[1]
    }

    fn pacing(&self) -> f64 {
        self.mpc.control().pacing_bytes_per_s as f64
    }

    /// On a path of 100 ms from which 125 MB/s leave, start-up having been ended by a queue of `queue_ms`, and `ms` later.
    fn steady(queue_ms: u64, ms: u64, settings: &[(&str, f64)]) -> Self {
        let mut drive = Self::new(1000, 12_500, settings);
        drive.leaves = 125e6;
        drive.acks(20, MS / 10, 100 * MS);
        drive.acks(10, MS / 10, (100 + queue_ms) * MS);
        assert_eq!(drive.state(), STEADY);
        drive.acks(ms, MS / 10, (100 + queue_ms) * MS);
        drive
    }
}

fn close(got: f64, expected: f64, relative: f64) {
    assert!((got / expected - 1.0).abs() < relative, "{got}, not {expected}");
}

/// (2) at 4 Gbit/s and 1 Gbit/s, 25 ms, 100 ms and 1 ms: 370 us times 1 or 2, times 1, 4^0.2 or 25^-0.2, times l/(l + 2 ms).
#[test]
fn target_queue() {
    for (packets, rtt_ms, us) in
        [(1250, 25, 342.59), (312, 25, 685.73), (5000, 100, 478.64), (50, 1, 64.79)]
    {
        let mut drive = Drive::new(10_000, packets, &[]);
        drive.ack(0, rtt_ms * MS);
        assert_eq!(drive.fields()[5], f64::floor(us), "{packets} packets in {rtt_ms} ms");
    }
}

/// Before the first RTT the host's own window, unpaced; then rho is that window per RTT.
#[test]
fn window() {
    let mut drive = Drive::new(1000, 10, &[]);
    assert_eq!(drive.mpc.control().cwnd_bytes, 10_000);
    drive.ack(0, 50 * MS);
    // 10 packets in 50 ms; tau is the time of 40 packets, 200 ms; twice those 40, and 64.
    assert_eq!((drive.rho(), drive.fields()[4]), (200_000.0, 200_000.0));
    assert_eq!(drive.mpc.control().cwnd_bytes, 144_000);
}

/// 16 rho for a 64th of tau, in which rho makes 195,312 whole bytes.
#[test]
fn pulse() {
    let mut drive = Drive::new(10_000, 1250, &[]);
    drive.in_flight = 100_000;
    drive.ack(0, 25 * MS);
    assert_eq!((drive.rho(), drive.pacing()), (5e8, 8e9));
    assert_eq!(drive.mpc.control().cwnd_bytes, 16 * 195_312 + 100_000);
    // Not sent up to its end, it is over after twice its time.
    drive.ack(MS, 25 * MS);
    assert_eq!((drive.pacing(), drive.mpc.control().cwnd_bytes), (5e8, 25_640_000));
}

#[test]
fn cap() {
    let mut drive = Drive::new(10_000, 1250, &[("cap", 100e6)]);
    drive.ack(0, 25 * MS);
    assert_eq!((drive.rho(), drive.pacing()), (12.5e6, 12.5e6));
}

/// (11): half more per tau. Blocks are of 8 ACKs; the packets that tell them are 8 ms apart.
#[test]
fn growth_of_start_up() {
    let mut drive = Drive::new(1000, 1000, &[]);
    (0..8 * 26).for_each(|_| drive.ack(MS, 100 * MS));
    // 200 ms; 0.585 is a little more than log2 of 1.5.
    close(drive.rho(), 1e7 * 2.250_12, 2e-5);
    let rho = drive.rho();
    // 1.2 ms, the time of a packet, 43 us, and three times the noise, a 20th of the change at first, are no queue yet.
    (0..8).for_each(|_| drive.ack(MS, 101_450_000));
    assert_eq!(drive.state(), START);
    assert!(drive.rho() > rho);
    let rho = drive.rho();
    (0..8).for_each(|_| drive.ack(MS, 101_450_000));
    assert_eq!(drive.state(), STEADY);
    // 2^(0.585 * 0.08), of which one half is kept.
    close(drive.rho(), rho * 1.032_97 / 2.0, 2e-5);
}

/// (3): what leaves; less by what is lost; and by the queue's growth.
#[test]
fn departure_rate() {
    let mut drive = Drive::steady(2, 300, &[]);
    close(drive.fields()[2], 125e6, 1e-5);
    drive.lost = 0.2;
    drive.now_ns += 1000 * MS;
    drive.acks(400, MS / 10, 102 * MS);
    close(drive.fields()[2], 100e6, 1e-3);
    let mut drive = Drive::steady(2, 300, &[]);
    // A ms of queue in 11 ms: packets sent in 10 ms leave in 11.
    (0..1500).for_each(|n| drive.ack(MS / 10, 102 * MS + n * MS / 110));
    close(drive.fields()[2], 125e6 / 1.1, 1e-3);
}

/// (4), (5). At 125 MB/s q_t is 0.957 ms, half of tau 51 ms, and the queue seen is 2 ms. What is in flight beyond the 12.5 MB that
/// leave in the 100 ms of the path will be queue.
#[test]
fn steered_rate() {
    let large = [("queue", 0.01)];
    for (settings, surplus_ms, expected) in [
        (&[][..], 0.0, 1.0 - 1.043 / 51.0),
        (&[], 5.1, 0.9 - 1.043 / 51.0),
        (&[], 60.0, 0.4),
        // Not less than an empty queue.
        (&[], -60.0, 1.0 + 0.957 / 51.0),
        // q_t is 25.9 ms.
        (&large, 0.0, 1.1),
    ] {
        let mut drive = Drive::steady(2, 750, settings);
        assert_eq!(drive.state(), STEADY);
        drive.in_flight = (12.5e6 + surplus_ms * 125e3) as u64;
        drive.ack(MS / 10, 102 * MS);
        close(drive.rho(), 125e6, 1e-4);
        close(drive.pacing(), expected * 125e6, 2e-4);
    }
}

/// (6), (7): rho settles where r_B (1 + 1.5 k F) is. A queue of 2 ms in a tau of 102 ms bears F = 1.5 * 2/102 / (1.5 k H) = 0.6275;
/// without restraint F = 2 ln(q_t / 2 ms), q_t being 0.957 ms times (rho / r_B)^-0.5: rho = 0.8744 r_B.
#[test]
fn force() {
    let drive = Drive::steady(2, 700, &[]);
    close(drive.rho(), 125e6, 1e-4);
    for (restraint, expected) in [(1.5, 0.941_18), (100.0, 0.874_43)] {
        let drive = Drive::steady(2, 2500, &[("restraint", restraint)]);
        close(drive.rho(), 125e6 * expected, 3e-4);
    }
}

/// (9): a quarter of rho until 2 ms of queue, a quarter more and a packet are gone, at 3/4 of rho; then 7/4 until the 2 ms are made
/// up for. The queue does not go, so the next is half longer and made up for in full.
#[test]
fn drains() {
    let mut drive = Drive::steady(2, 0, &[]);
    for (drained_ms, refilled_ms) in [(3.344, 2.667), (5.016, 5.016)] {
        while drive.state() != DRAIN {
            drive.ack(MS / 100, 102 * MS);
        }
        let mut lasted_ms = [0.0_f64; 2];
        while drive.state() == DRAIN {
            let quarters = drive.pacing() / drive.rho() * 4.0;
            assert!((quarters - quarters.round()).abs() < 1e-4);
            lasted_ms[usize::from(quarters > 4.0)] += 0.01;
            assert!(quarters.round() == 1.0 || quarters.round() == 7.0);
            drive.ack(MS / 100, 102 * MS);
        }
        assert!((lasted_ms[0] - drained_ms).abs() < 0.02, "{lasted_ms:?}");
        assert!((lasted_ms[1] - refilled_ms).abs() < 0.02, "{lasted_ms:?}");
    }
}
