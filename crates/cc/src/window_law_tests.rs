use super::*;
use crate::driver::{Driver, MS, PACKET, near};
use crate::registry::{Family, Spec};
use crate::reno_window::{INITIAL_SSTHRESH, INITIAL_WINDOW, SLOW_START, SSTHRESH};

/// Reno as a law: what is tested is what is common to all.
struct Halving;

impl WindowLaw for Halving {
    fn advance(&mut self, ack: &AckSample, window: &mut RenoWindow) {
        window.grow_as_reno(ack);
    }

    fn keep(&mut self, _signal: &Signal<'_>, window: &RenoWindow) -> f64 {
        window.fraction(0.5)
    }

    fn observe(&self, window: &RenoWindow, out: &mut [f64]) {
        out[0] = window.ssthresh_bytes();
    }
}

static HALVING: Spec = Spec {
    name: "halving",
    title: "",
    family: Family::LossBased,
    source: "",
    about: "",
    needs: crate::Needs::NONE,
    params: &[SLOW_START, INITIAL_WINDOW, INITIAL_SSTHRESH],
    profiles: &[],
    fields: &[SSTHRESH],
    build: |params, path| controller(Halving, RenoWindow::from_params(params, path)),
};

#[test]
fn slow_start_doubles_and_splits_at_the_threshold() {
    let values = [("initial_window", 10.0), ("initial_ssthresh", 30.0)];
    let mut run = Driver::new(&HALVING, None, &values);
    run.spread(10, 0);
    assert_eq!(run.cwnd(), 20.0);
    run.acks(16, 0);
    // Ten packets in slow start, six in avoidance.
    near(run.cwnd(), 30.2);
    for flags in [AckSample::CUMULATIVE, AckSample::CWND_LIMITED] {
        run.send(AckSample { flags, ..run.sample(30, 0) });
    }
    near(run.cwnd(), 30.2);
}

#[test]
fn one_reduction_per_episode_and_no_growth_within() {
    let mut run = Driver::avoiding(&HALVING, None, 100.0);
    assert_eq!(run.after_loss(), 50.0);
    run.lose_again(0);
    run.recovering = true;
    run.acks(20, 0);
    assert_eq!((run.cwnd(), run.fields()), (50.0, [50.0 * PACKET as f64]));
    run.recovering = false;
    run.acks(25, 0);
    assert_eq!(run.cwnd(), 50.5);
    (0..9).for_each(|_| run.lose());
    assert_eq!(run.cwnd(), 2.0);
}

/// RFC 3168 section 6.1.2: like a loss, but there is nothing to repair.
#[test]
fn a_mark_reduces_once_per_window() {
    let mut run = Driver::avoiding(&HALVING, None, 100.0);
    let mut mark = |now_ns, sent_ns| {
        run.send(AckSample { now_ns, sent_ns, ce_packets: 1, ..run.sample(1, 0) });
        run.cwnd()
    };
    assert_eq!(mark(100, 0), 50.0);
    assert_eq!(mark(150, 90), 50.0, "of the same window; and no ACK with a mark opens it");
    assert_eq!(mark(250, 110), 25.0);
}

#[test]
fn a_timeout_restarts_from_one_packet() {
    let mut run = Driver::avoiding(&HALVING, None, 100.0);
    run.time_out(1);
    run.time_out(2);
    assert_eq!((run.cwnd(), run.fields()), (1.0, [50.0 * PACKET as f64]));
    run.recovering = true;
    run.acks(49, 0);
    assert_eq!(run.cwnd(), 50.0);
    run.undo();
    assert_eq!((run.cwnd(), run.fields()), (100.0, [100.0 * PACKET as f64]));
}

#[test]
fn idleness_restarts_from_the_initial_window() {
    let mut run = Driver::avoiding(&HALVING, None, 20.0);
    run.spread(410, 0);
    let before = run.cwnd();
    assert!(before > 30.0);
    run.controller.on_resume(&Resume { idle_ns: 900 * MS, ..Resume::default() });
    assert_eq!(run.cwnd(), before);
    run.controller.on_resume(&Resume { idle_ns: 1001 * MS, ..Resume::default() });
    assert_eq!(run.cwnd(), 20.0);
}
