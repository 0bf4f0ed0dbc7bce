//! Reno, compiled from `bpf/algorithms/reno.h`, by hand-computed numbers.

use paceline_cc::{
    Ack, AckSample, Control, Controller, Loss, PathInfo, Resume, Timeout, Undo, registry,
};

const PACKET: u64 = 1000;
const PATH: PathInfo =
    PathInfo { now_ns: 0, packet_bytes: PACKET as u32, initial_window_packets: 10, seed: 0 };
/// An ACK that may open the window.
const OPEN: u32 = AckSample::CWND_LIMITED | AckSample::CUMULATIVE;

fn reno(settings: &[(&str, f64)]) -> Box<dyn Controller> {
    let spec = registry::find("reno").unwrap();
    let mut params = spec.params(None).unwrap();
    for (key, value) in settings {
        params.set(key, *value).unwrap();
    }
    (spec.build)(&params, &PATH)
}

fn ack(reno: &mut dyn Controller, packets: u64, flags: u32) {
    let sample = AckSample {
        acked_bytes: packets * PACKET,
        acked_packets: packets as u32,
        flags,
        ..AckSample::default()
    };
    reno.on_ack(&Ack { sample, hops: &[] });
}

fn grow(reno: &mut dyn Controller, acks: u64) {
    (0..acks).for_each(|_| ack(reno, 1, OPEN));
}

fn cwnd(reno: &dyn Controller) -> u64 {
    reno.control().cwnd_bytes
}

fn lose(reno: &mut dyn Controller, in_flight: u64) {
    reno.on_loss(&Loss {
        prior_in_flight_bytes: in_flight * PACKET,
        lost_packets: 1,
        flags: Loss::EPISODE_START,
        ..Loss::default()
    });
}

fn ssthresh(reno: &dyn Controller) -> f64 {
    let mut out = [0.0];
    reno.observe(&mut out);
    out[0]
}

/// RFC 5681 section 3.1 and RFC 3168 section 6.1.2.
#[test]
fn neither_a_duplicate_nor_a_mark_opens_the_window() {
    let mut reno = reno(&[("initial_ssthresh", 10.0)]);
    ack(&mut *reno, 10, AckSample::CWND_LIMITED);
    ack(&mut *reno, 10, AckSample::CUMULATIVE);
    assert_eq!(reno.control().cwnd_bytes, 10 * PACKET);
    let marked =
        AckSample { acked_bytes: PACKET, ce_packets: 1, flags: OPEN, ..AckSample::default() };
    reno.on_ack(&Ack { sample: marked, hops: &[] });
    let reduced = reno.control().cwnd_bytes;
    reno.on_ack(&Ack { sample: marked, hops: &[] });
    assert_eq!(reno.control().cwnd_bytes, reduced);
    ack(&mut *reno, 10, OPEN);
    assert!(reno.control().cwnd_bytes > reduced);
}

#[test]
fn slow_start_doubles_per_window() {
    let mut reno = reno(&[]);
    assert_eq!(cwnd(&*reno), 10 * PACKET);
    assert_eq!(reno.control().pacing_bytes_per_s, Control::UNPACED);
    assert!(ssthresh(&*reno).is_nan());
    grow(&mut *reno, 10);
    assert_eq!(cwnd(&*reno), 20 * PACKET);
    // A delayed ACK of two counts as two.
    ack(&mut *reno, 2, OPEN);
    assert_eq!(cwnd(&*reno), 22 * PACKET);
    ack(&mut *reno, 1, 0);
    assert_eq!(cwnd(&*reno), 22 * PACKET, "the window did not limit");
}

#[test]
fn avoidance_adds_a_packet_per_window_without_losing_fractions() {
    let mut reno = reno(&[("initial_window", 10.0), ("initial_ssthresh", 10.0)]);
    ack(&mut *reno, 1, OPEN);
    assert_eq!(cwnd(&*reno), 10_100);
    ack(&mut *reno, 1, OPEN);
    // 1000 * 1000 / 10100 = 99.0099…
    assert_eq!(cwnd(&*reno), 10_199);
    // dw/dACK = 1/w: 10 -> 20 packets takes (20^2 - 10^2) / 2 = 150 ACKs.
    grow(&mut *reno, 148);
    let w = cwnd(&*reno) as f64 / PACKET as f64;
    assert!((w - 20.0).abs() < 0.05, "{w}");
}

#[test]
fn growth_across_ssthresh_is_split() {
    let mut reno = reno(&[("initial_window", 9.0), ("initial_ssthresh", 10.0)]);
    ack(&mut *reno, 3, OPEN);
    // One packet in slow start, two in avoidance: 1000 * 2000 / 10000.
    assert_eq!(cwnd(&*reno), 10_200);
}

#[test]
fn a_loss_halves_what_is_in_flight_once_per_episode() {
    let mut reno = reno(&[("initial_window", 100.0)]);
    lose(&mut *reno, 80);
    assert_eq!((cwnd(&*reno), ssthresh(&*reno)), (40 * PACKET, 40_000.0));
    reno.on_loss(&Loss { lost_packets: 3, ..Loss::default() });
    ack(&mut *reno, 5, OPEN | AckSample::IN_RECOVERY);
    assert_eq!(cwnd(&*reno), 40 * PACKET, "neither cut nor grown during the episode");
    lose(&mut *reno, 200);
    assert_eq!(cwnd(&*reno), 20 * PACKET, "no more than the window counts as in flight");
    (0..5).for_each(|_| lose(&mut *reno, 1));
    assert_eq!(cwnd(&*reno), 2 * PACKET);
}

/// RFC 3168; RFC 8511 (ABE) keeps 0.8 of the window at a mark, and half at a loss as ever.
#[test]
fn a_mark_reduces_once_per_window() {
    for (settings, first, second, at_loss) in
        [(&[][..], 50, 25, 12), (&[("ecn_beta", 0.8)][..], 80, 64, 32)]
    {
        let mut reno = reno(&[&[("initial_window", 100.0)], settings].concat());
        let mut mark = |now_ns, sent_ns| {
            let sample = AckSample {
                now_ns,
                sent_ns,
                ce_packets: 1,
                prior_in_flight_bytes: 1000 * PACKET,
                ..AckSample::default()
            };
            reno.on_ack(&Ack { sample, hops: &[] });
            reno.control().cwnd_bytes / PACKET
        };
        assert_eq!(mark(100, 0), first);
        assert_eq!(mark(150, 90), first);
        assert_eq!(mark(250, 110), second);
        lose(&mut *reno, 1000);
        assert_eq!(cwnd(&*reno) / PACKET, at_loss);
    }
}

#[test]
fn a_timeout_restarts_from_one_packet() {
    let mut reno = reno(&[("initial_window", 100.0)]);
    let mut timeout = |consecutive| {
        reno.on_rto(&Timeout { in_flight_bytes: 100 * PACKET, consecutive, ..Timeout::default() });
    };
    timeout(1);
    timeout(2);
    assert_eq!((cwnd(&*reno), ssthresh(&*reno)), (PACKET, 50_000.0));
    // The host may still call itself in recovery; slow start goes on.
    for _ in 0..49 {
        ack(&mut *reno, 1, OPEN | AckSample::IN_RECOVERY);
    }
    assert_eq!(cwnd(&*reno), 50 * PACKET);
    grow(&mut *reno, 1);
    assert_eq!(cwnd(&*reno), 50 * PACKET + 20);
}

#[test]
fn an_undo_restores_and_idleness_restarts() {
    let mut reno = reno(&[("initial_window", 100.0)]);
    lose(&mut *reno, 100);
    reno.on_spurious_loss(&Undo::default());
    assert_eq!(cwnd(&*reno), 100 * PACKET);
    reno.on_resume(&Resume { idle_ns: 500_000_000, ..Resume::default() });
    assert_eq!(cwnd(&*reno), 100 * PACKET);
    grow(&mut *reno, 100);
    reno.on_resume(&Resume { idle_ns: 1_100_000_000, ..Resume::default() });
    assert_eq!(cwnd(&*reno), 100 * PACKET);
}

/// T1: every 1/p-th packet lost, mean window sqrt(3 / (2 p)) = 122.5 at p = 1e-4.
#[test]
fn mean_window_under_deterministic_loss() {
    let mut reno = reno(&[("initial_window", 150.0), ("initial_ssthresh", 150.0)]);
    let (mut area, mut rtts) = (0.0, 0.0);
    for cycle in 0..60 {
        for _ in 0..10_000 {
            // Each ACK takes 1/w of an RTT.
            let w = cwnd(&*reno) as f64 / PACKET as f64;
            if cycle >= 20 {
                area += 1.0;
                rtts += 1.0 / w;
            }
            ack(&mut *reno, 1, OPEN);
        }
        let w = cwnd(&*reno) / PACKET;
        lose(&mut *reno, w);
        ack(&mut *reno, 0, 0);
    }
    let mean: f64 = area / rtts;
    assert!((mean / 122.5 - 1.0).abs() < 0.03, "{mean}");
}
