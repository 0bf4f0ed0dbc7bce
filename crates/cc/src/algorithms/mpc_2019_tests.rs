use super::*;
use crate::controller::Controller;
use crate::event::{Ack, AckSample, Loss, PathInfo};

const MS: u64 = 1_000_000;

fn mpc(profile: Option<&str>, settings: &[(&str, f64)]) -> Box<dyn Controller> {
    let mut params = SPEC.params(profile).unwrap();
    for (key, value) in settings {
        params.set(key, *value).unwrap();
    }
    let path = PathInfo { now_ns: 0, packet_bytes: 1500, initial_window_packets: 10, seed: 0 };
    build(&params, &path)
}

/// Mbit/s, Mbit/s and ms, as in the registry.
fn observed(mpc: &dyn Controller) -> [f64; 7] {
    let mut out = [0.0; 7];
    mpc.observe(&mut out);
    out
}

fn ack(mpc: &mut dyn Controller, now_ns: u64, rtt_ns: u64) {
    let sample = AckSample { now_ns, rtt_ns, acked_bytes: 1500, ..AckSample::default() };
    mpc.on_ack(&Ack { sample, hops: &[] });
}

/// 8 Gbit/s = 1e9 bytes/s throughout, so that the law leaves the rate alone: the RTT is the target.
const LINK: &[(&str, f64)] = &[("r_max", 8e9), ("r_min", 1e6), ("probe", 3.0), ("c3", 1.0)];

/// (6)-(8) by hand. At r = r_B the model predicts no change, and the RTT falls by 1 ms within 1 ms: e = 1 ms, lbar = 24.875 ms, and
/// r_B grows by 2 * 10 * 1e-3 * 1e-3 / 0.024875^2 of itself. It falls when the RTT comes back.
#[test]
fn the_gradient_moves_r_b_as_the_model_errs() {
    let mut mpc = mpc(None, LINK);
    ack(&mut *mpc, 25 * MS, 25 * MS);
    assert_eq!(observed(&*mpc)[1], 8000.0);
    ack(&mut *mpc, 26 * MS, 24 * MS);
    let grown = 1.0 + 20.0 * 1e-6 / 0.024_875_f64.powi(2);
    assert!((observed(&*mpc)[1] / 8000.0 - grown).abs() < 1e-6, "{:?}", observed(&*mpc));
    ack(&mut *mpc, 27 * MS, 27 * MS);
    assert!(observed(&*mpc)[1] < 8000.0 * grown);
}

/// Each lost packet is a cut of 0.7, also within one window of data and if several are told together; the probes go on.
#[test]
fn each_lost_packet_cuts_the_rate() {
    for (profile, cut) in [(None, 0.7), (Some("simulator"), 0.5)] {
        let mut mpc = mpc(profile, LINK);
        ack(&mut *mpc, 25 * MS, 25 * MS);
        let lost = |lost_packets| Loss {
            now_ns: 26 * MS,
            newest_lost_sent_ns: MS,
            lost_packets,
            ..Loss::default()
        };
        let before = observed(&*mpc)[0];
        mpc.on_loss(&lost(1));
        assert!((observed(&*mpc)[0] / before - cut).abs() < 1e-12);
        mpc.on_loss(&lost(2));
        assert!((observed(&*mpc)[0] / before - cut * cut * cut).abs() < 1e-12);
        assert_eq!(mpc.control().pacing_bytes_per_s, (before * cut * cut * cut * 125e3) as u64);
    }
    let mut once = mpc(None, &[LINK, &[("loss_per", 0.0)]].concat());
    ack(&mut *once, 25 * MS, 25 * MS);
    for _ in 0..3 {
        let (now_ns, newest_lost_sent_ns) = (26 * MS, MS);
        once.on_loss(&Loss { now_ns, newest_lost_sent_ns, lost_packets: 1, ..Loss::default() });
    }
    assert!((observed(&*once)[0] / 8000.0 - 0.7).abs() < 1e-3, "{:?}", observed(&*once));
}

/// The target of the defaults swings to 1.135 l_B at a quarter of the 10 s and to l_P at three quarters, and is at 0.1 between.
#[test]
fn the_target_pulses() {
    let mut mpc = mpc(None, &[("r_max", 8e9), ("r_min", 1e6), ("tau_d", 3600.0)]);
    ack(&mut *mpc, 1, 25 * MS);
    ack(&mut *mpc, 2, 50 * MS);
    for (at_ms, wanted) in [(2_500, 1.135 * 50.0), (5_000, 27.5), (7_500, 25.0)] {
        ack(&mut *mpc, at_ms * MS, 30 * MS);
        let [.., l_t, _] = observed(&*mpc);
        assert!((l_t - wanted).abs() < 0.2, "{at_ms}: {l_t}");
    }
}

/// A loss in the quarter of the cycle around it ends the pulse towards l_B, and no other; that towards l_P goes on.
#[test]
fn a_loss_ends_the_pulse() {
    let mut mpc = mpc(None, &[("r_max", 8e9), ("r_min", 1e6), ("tau_d", 3600.0)]);
    let mut target_at = |at_ms: u64, lost_packets| {
        let now_ns = at_ms * MS;
        if lost_packets > 0 {
            mpc.on_loss(&Loss { now_ns, lost_packets, ..Loss::default() });
        }
        ack(&mut *mpc, now_ns, if at_ms == 1 { 50 * MS } else { 25 * MS });
        observed(&*mpc)[5]
    };
    target_at(0, 0);
    target_at(1, 0);
    let (base, top) = (27.5, 1.135 * 50.0);
    for (at_ms, lost_packets, wanted) in [
        (1_200, 1, base),
        (2_500, 0, top),
        (2_501, 1, base),
        (3_000, 0, base),
        (7_500, 1, 25.0),
        (12_500, 0, top),
        (21_300, 1, base),
        (22_500, 0, base),
        (32_500, 0, top),
    ] {
        let l_t = target_at(at_ms, lost_packets);
        assert!((l_t - wanted).abs() < 0.5, "{at_ms}: {l_t}");
    }
}

/// `integral` is the estimate of 2020: after two ACKs 1 ms apart, r dt / (l - l(0) + dt).
#[test]
fn the_profile_integrates() {
    let mut mpc = mpc(Some("integral"), LINK);
    ack(&mut *mpc, 25 * MS, 25 * MS);
    ack(&mut *mpc, 26 * MS, 25 * MS + MS / 4);
    assert!((observed(&*mpc)[1] / 8000.0 - 1.0 / 1.25).abs() < 1e-9);
}
