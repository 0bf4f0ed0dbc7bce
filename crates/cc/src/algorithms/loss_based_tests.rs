//! What the laws share, and a bench on which their tests put them.

use super::*;
use crate::registry::Spec;

/// A large packet, so that a window in whole bytes shows a millionth of one.
const PACKET: u64 = 1_000_000;
const MS: u64 = 1_000_000;
/// Flags of an ACK that may open the window.
pub(in super::super) const GROW: u32 = AckSample::CWND_LIMITED | AckSample::CUMULATIVE;

/// A controller in congestion avoidance at a given window, fed ACKs of one packet each.
pub(in super::super) struct Bench {
    controller: Box<dyn Controller>,
    fields: usize,
    pub(in super::super) now_ns: u64,
    pub(in super::super) rtt_ns: u64,
    delivered_bytes: u64,
}

impl Bench {
    /// At `window` packets, which is the slow-start threshold too, with a round trip of 100 ms.
    pub(in super::super) fn new(spec: &'static Spec, profile: Option<&str>, window: f64) -> Self {
        Self::with(
            spec,
            profile,
            &[("initial_window", window), ("initial_ssthresh", window.max(2.0))],
        )
    }

    pub(in super::super) fn with(
        spec: &'static Spec,
        profile: Option<&str>,
        values: &[(&str, f64)],
    ) -> Self {
        let mut params = spec.params(profile).unwrap();
        for (key, value) in values {
            params.set(key, *value).unwrap();
        }
        let packet_bytes = PACKET as u32;
        let path = PathInfo { now_ns: 0, packet_bytes, initial_window_packets: 10, seed: 0 };
        Self {
            controller: (spec.build)(&params, &path),
            fields: spec.fields.len(),
            now_ns: 0,
            rtt_ns: 100 * MS,
            delivered_bytes: 0,
        }
    }

    /// The window in packets, to a millionth.
    pub(in super::super) fn window(&self) -> f64 {
        self.controller.control().cwnd_bytes as f64 / PACKET as f64
    }

    /// The field of this number.
    pub(in super::super) fn field(&self, index: usize) -> f64 {
        let mut out = vec![0.0; self.fields];
        self.controller.observe(&mut out);
        out[index]
    }

    /// An ACK of `packets`, with these flags.
    pub(in super::super) fn ack(&mut self, packets: u32, flags: u32) {
        let acked_bytes = u64::from(packets) * PACKET;
        self.delivered_bytes += acked_bytes;
        let sample = AckSample {
            now_ns: self.now_ns,
            acked_bytes,
            acked_packets: packets,
            rtt_ns: self.rtt_ns,
            srtt_ns: self.rtt_ns,
            delivered_total_bytes: self.delivered_bytes,
            flags,
            ..AckSample::default()
        };
        self.controller.on_ack(&Ack { sample, hops: &[] });
    }

    /// `packets` ACKs of one packet each, spread over `over_ns`.
    pub(in super::super) fn acks(&mut self, packets: u64, over_ns: u64) {
        let start_ns = self.now_ns;
        for n in 1..=packets {
            self.now_ns = start_ns + over_ns * n / packets;
            self.ack(1, GROW);
        }
    }

    /// A window of ACKs in a round-trip time.
    pub(in super::super) fn round(&mut self) {
        self.acks(self.window() as u64, self.rtt_ns);
    }

    /// What `packets` ACKs at one moment add to the window.
    pub(in super::super) fn gained(&mut self, packets: u64) -> f64 {
        let before = self.window();
        self.acks(packets, 0);
        self.window() - before
    }

    /// What one packet adds, by the ACK of a window of packets.
    pub(in super::super) fn per_packet(&mut self) -> f64 {
        let packets = self.window().floor().max(1.0);
        let before = self.window();
        self.ack(packets as u32, GROW);
        (self.window() - before) / packets
    }

    /// An episode of loss that the next ACK ends.
    pub(in super::super) fn lose(&mut self) {
        self.controller.on_loss(&Loss {
            now_ns: self.now_ns,
            lost_packets: 1,
            flags: Loss::EPISODE_START,
            ..Loss::default()
        });
    }

    /// The window after a loss.
    pub(in super::super) fn after_loss(&mut self) -> f64 {
        self.lose();
        self.window()
    }

    pub(in super::super) fn time_out(&mut self, consecutive: u32) {
        self.controller.on_rto(&Timeout { now_ns: self.now_ns, consecutive, ..Timeout::default() });
    }

    pub(in super::super) fn undo(&mut self) {
        self.controller.on_spurious_loss(&Undo::default());
    }
}

#[track_caller]
pub(in super::super) fn near(got: f64, expected: f64) {
    assert!((got - expected).abs() < 1e-5, "{got}, not {expected}");
}

/// Reno as a law: the shell's own behaviour is what is tested.
#[derive(Clone, Copy)]
struct Halving;

impl Law for Halving {
    fn gain(&mut self, window: f64, acked: f64, _now_ns: u64) -> f64 {
        acked / window
    }
    fn keep(&mut self, window: f64, _now_ns: u64) -> f64 {
        window / 2.0
    }
    fn observe(&self, _out: &mut [f64]) {}
}

static HALVING: Spec = Spec {
    name: "halving",
    title: "",
    family: crate::registry::Family::LossBased,
    source: "",
    about: "",
    needs: crate::Needs::NONE,
    params: &[SLOW_START, INITIAL_WINDOW, INITIAL_SSTHRESH],
    profiles: &[],
    fields: &[SSTHRESH],
    build: |params, path| controller(Halving, params, path),
};

#[test]
fn slow_start_doubles_and_splits_at_the_threshold() {
    let values = [("initial_window", 10.0), ("initial_ssthresh", 30.0)];
    let mut bench = Bench::with(&HALVING, None, &values);
    bench.acks(10, 0);
    assert_eq!(bench.window(), 20.0);
    bench.ack(16, GROW);
    // Ten packets in slow start, six in avoidance.
    near(bench.window(), 30.2);
    bench.ack(30, AckSample::CUMULATIVE);
    bench.ack(30, AckSample::CWND_LIMITED);
    near(bench.window(), 30.2);
}

#[test]
fn one_reduction_per_episode_and_no_growth_within() {
    let mut bench = Bench::new(&HALVING, None, 100.0);
    assert_eq!(bench.after_loss(), 50.0);
    bench.controller.on_loss(&Loss { lost_packets: 3, ..Loss::default() });
    bench.ack(20, GROW | AckSample::IN_RECOVERY);
    assert_eq!((bench.window(), bench.field(0)), (50.0, 50_000_000.0));
    bench.ack(25, GROW);
    assert_eq!(bench.window(), 50.5);
    (0..9).for_each(|_| bench.lose());
    assert_eq!(bench.window(), 2.0);
}

#[test]
fn a_mark_reduces_once_per_window() {
    let mut bench = Bench::new(&HALVING, None, 100.0);
    let mut mark = |now_ns, sent_ns| {
        let sample = AckSample { now_ns, sent_ns, ce_packets: 1, ..AckSample::default() };
        bench.controller.on_ack(&Ack { sample, hops: &[] });
        bench.window()
    };
    assert_eq!(mark(100, 0), 50.0);
    assert_eq!(mark(150, 90), 50.0);
    assert_eq!(mark(250, 110), 25.0);
}

#[test]
fn a_timeout_restarts_from_one_packet() {
    let mut bench = Bench::new(&HALVING, None, 100.0);
    bench.time_out(1);
    bench.time_out(2);
    assert_eq!((bench.window(), bench.field(0)), (1.0, 50_000_000.0));
    bench.ack(49, GROW | AckSample::IN_RECOVERY);
    assert_eq!(bench.window(), 50.0);
    bench.undo();
    assert_eq!((bench.window(), bench.field(0)), (100.0, 100_000_000.0));
}

#[test]
fn idleness_restarts_from_the_initial_window() {
    let mut bench = Bench::new(&HALVING, None, 20.0);
    bench.acks(410, 0);
    assert!(bench.window() > 30.0);
    let before = bench.window();
    bench.controller.on_resume(&Resume { idle_ns: 900 * MS, ..Resume::default() });
    assert_eq!(bench.window(), before);
    bench.controller.on_resume(&Resume { idle_ns: 1001 * MS, ..Resume::default() });
    assert_eq!(bench.window(), 20.0);
}

#[test]
fn whole_packets_carry_the_rest_and_spend_old_credit_gently() {
    let mut counter = WholePackets::default();
    assert_eq!(counter.gain(10.0, 9.0), 0.0);
    assert_eq!(counter.gain(10.0, 12.0), 2.0);
    // One is left; at 100 the credit gathers, at 5 it is worth one packet.
    assert_eq!(counter.gain(100.0, 60.0), 0.0);
    assert_eq!(counter.gain(5.0, 2.0), 1.0);
    assert_eq!(counter.gain(5.0, 3.0), 1.0);
}

#[test]
fn jiffies_round_down_a_time_and_up_a_duration() {
    assert_eq!((jiffies::at(7_999_999), jiffies::at(8_000_000)), (1, 2));
    assert_eq!((jiffies::lasting(40_000_000), jiffies::lasting(40_000_001)), (10, 11));
}
