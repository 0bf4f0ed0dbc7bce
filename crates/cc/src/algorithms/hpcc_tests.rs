//! By hand: 10 Gbit/s and T = 100 us hold 125,000 bytes; W_AI = 125,000 * 0.05 / 100 = 62.5 bytes.

use super::*;
use crate::event::AckSample;

const RATE: u64 = 1_250_000_000;
const T_NS: u64 = 100_000;
const BDP: f64 = 125_000.0;
const W_AI: f64 = 62.5;
const PACKET: f64 = 1000.0;

struct Run {
    hpcc: Box<dyn Controller>,
    now_ns: u64,
    /// Of each hop: queue, sent bytes, time.
    hops: Vec<IntHop>,
    /// Packets delivered.
    delivered: u64,
    round_start: u64,
}

impl Run {
    /// Over `hops` links, after the first ACK.
    fn new(profile: Option<&str>, settings: &[(&str, f64)], hops: u64) -> Self {
        let mut params = SPEC.params(profile).unwrap();
        for (name, value) in settings {
            params.set(name, *value).unwrap();
        }
        let path = PathInfo { now_ns: 0, packet_bytes: 1000, initial_window_packets: 10, seed: 0 };
        let hop = |hop_id| IntHop { hop_id, link_bytes_per_s: RATE, ..IntHop::default() };
        let hops = (0..hops).map(hop).collect();
        let mut run =
            Self { hpcc: build(&params, &path), now_ns: 0, hops, delivered: 0, round_start: 0 };
        run.ack(T_NS, &[]);
        run
    }

    /// An ACK of a packet that passed the links `interval_ns` after the last, with a load (sent share, queue as a share of B T) of
    /// each; idle where none is given. The queue is what it was before, too.
    fn ack(&mut self, interval_ns: u64, loads: &[(f64, f64)]) {
        self.now_ns += interval_ns;
        let loads = loads.iter().copied().chain(std::iter::repeat((0.0, 0.0)));
        for (hop, (sent, queue)) in self.hops.iter_mut().zip(loads) {
            hop.timestamp_ns += interval_ns;
            hop.tx_bytes += (sent * interval_ns as f64 * RATE as f64 / 1e9).round() as u64;
            hop.queue_bytes = (queue * BDP) as u64;
        }
        self.echo();
    }

    fn echo(&mut self) {
        self.delivered += 1;
        let sample = AckSample {
            now_ns: self.now_ns,
            rtt_ns: T_NS,
            acked_packets: 1,
            delivered_total_bytes: self.delivered,
            prior_delivered_total_bytes: self.round_start,
            ..AckSample::default()
        };
        self.hpcc.on_ack(&Ack { sample, hops: &self.hops });
    }

    /// The next ACK is of a packet sent after the last.
    fn next_round(&mut self) {
        self.round_start = self.delivered;
    }

    fn seen(&self) -> [f64; 4] {
        let mut out = [0.0; 4];
        self.hpcc.observe(&mut out);
        out
    }

    fn window(&self) -> f64 {
        self.seen()[0] * PACKET
    }

    fn reference(&self) -> f64 {
        self.seen()[1] * PACKET
    }
}

#[track_caller]
fn near(got: f64, expected: f64) {
    assert!((got / expected - 1.0).abs() < 1e-6, "{got} for {expected}");
}

#[test]
fn the_first_ack_is_kept_and_the_flow_goes_to_line_rate() {
    let mut run = Run::new(None, &[], 1);
    near(run.window(), BDP);
    assert_eq!(run.hpcc.control().cwnd_bytes, 125_000);
    assert_eq!(run.hpcc.control().pacing_bytes_per_s, RATE);
    // Nothing at all to say.
    run.hpcc.on_ack(&Ack { sample: AckSample { rtt_ns: T_NS, ..AckSample::default() }, hops: &[] });
    near(run.window(), BDP);
    // Before it the host's window, unless line rate and T are known.
    let path = PathInfo { now_ns: 0, packet_bytes: 1000, initial_window_packets: 10, seed: 0 };
    let mut params = SPEC.params(None).unwrap();
    let control = build(&params, &path).control();
    assert_eq!((control.cwnd_bytes, control.pacing_bytes_per_s), (10_000, Control::UNPACED));
    params.set("line_rate", 1e10).unwrap();
    params.set("base_rtt", 0.0002).unwrap();
    let control = build(&params, &path).control();
    assert_eq!((control.cwnd_bytes, control.pacing_bytes_per_s), (250_000, RATE));
}

/// T16.
#[test]
fn a_load_of_1_9_halves_the_window() {
    let mut run = Run::new(None, &[], 1);
    run.ack(T_NS, &[(1.0, 0.0)]); // the queue was 0 before: U = 1
    near(run.window(), BDP * 0.95 + W_AI);
    let mut run = Run::new(None, &[], 1);
    run.hops[0].queue_bytes = 112_500;
    run.echo(); // no time has passed: nothing to learn
    near(run.window(), BDP);
    run.ack(T_NS, &[(1.0, 0.9)]); // the queue was 0 when it was last kept
    run.next_round();
    let reference = run.reference();
    run.ack(T_NS, &[(1.0, 0.9)]);
    near(run.seen()[2], 1.9);
    near(run.window(), reference / 2.0 + W_AI);
}

#[test]
fn acks_of_one_round_do_not_add_up() {
    let mut run = Run::new(None, &[], 1);
    run.next_round();
    run.ack(T_NS, &[(1.9, 0.0)]);
    let reference = BDP / 2.0 + W_AI;
    near(run.reference(), reference);
    // The same load again and again: W from the same W_c.
    for _ in 0..10 {
        run.ack(T_NS, &[(1.9, 0.0)]);
        near(run.window(), reference / 2.0 + W_AI);
        near(run.reference(), reference);
    }
    run.next_round();
    run.ack(T_NS, &[(1.9, 0.0)]);
    near(run.reference(), reference / 2.0 + W_AI);
}

#[test]
fn the_estimate_weighs_a_load_by_the_time_it_is_of() {
    let mut run = Run::new(None, &[], 1);
    run.ack(T_NS / 4, &[(2.0, 0.0)]);
    near(run.seen()[2], 0.75 + 0.25 * 2.0); // U begins at 1
    run.ack(3 * T_NS, &[(0.5, 0.0)]);
    near(run.seen()[2], 0.5); // no more than T
}

#[test]
fn five_additive_steps_then_one_by_load() {
    let mut run = Run::new(None, &[("line_rate", 1e11), ("flows", 1000.0)], 1);
    // A tenth of the line: W_AI = 1,250,000 * 0.05 / 1000.
    near(run.window(), 10.0 * BDP);
    run.next_round();
    run.ack(T_NS, &[(9.5, 0.0)]);
    let mut expected = BDP + W_AI;
    near(run.reference(), expected);
    for stage in 1..=5 {
        run.next_round();
        run.ack(T_NS, &[(0.5, 0.0)]);
        expected += W_AI;
        near(run.reference(), expected);
        assert_eq!(run.seen()[3], f64::from(stage));
        // Within the round neither counts nor adds.
        run.ack(T_NS, &[(0.5, 0.0)]);
        assert_eq!(run.seen()[3], f64::from(stage));
    }
    run.next_round();
    run.ack(T_NS, &[(0.5, 0.0)]);
    near(run.reference(), expected / (0.5 / 0.95) + W_AI);
    assert_eq!(run.seen()[3], 0.0);
}

#[test]
fn the_most_loaded_hop_counts() {
    let mut run = Run::new(None, &[], 3);
    run.next_round();
    run.ack(T_NS, &[(0.3, 0.0), (1.9, 0.0), (1.0, 0.0)]);
    near(run.seen()[2], 1.9);
    near(run.window(), BDP / 2.0 + W_AI);
    // By its queue, too: 0.5 + 1.4.
    let mut run = Run::new(None, &[], 2);
    run.ack(T_NS, &[(1.0, 0.0), (0.5, 1.4)]);
    run.next_round();
    run.ack(T_NS, &[(1.0, 0.0), (0.5, 1.4)]);
    near(run.seen()[2], 1.9);
}

/// Two hops in turns: for one window the estimates mix, for two they do not.
#[test]
fn a_reference_for_each_hop() {
    let settings = [("min_rate", 0.0)];
    let mut run = Run::new(Some("per-hop"), &settings, 2);
    let w_ai = BDP * 0.05 / 125.0;
    run.next_round();
    run.ack(T_NS, &[(1.9, 0.0), (0.95, 0.0)]);
    near(run.window(), BDP / 2.0 + w_ai);
    run.next_round();
    run.ack(T_NS, &[(0.95, 0.0), (1.9, 0.0)]);
    // The first stays, the second, of BDP, halves: the first plus W_AI is above it.
    near(run.window(), BDP / 2.0 + w_ai);
    let mut run = Run::new(Some("simulator"), &settings, 2);
    run.next_round();
    run.ack(T_NS, &[(1.9, 0.0), (0.95, 0.0)]);
    run.next_round();
    run.ack(T_NS, &[(0.95, 0.0), (1.9, 0.0)]);
    near(run.window(), (BDP / 2.0 + w_ai) / 2.0 + w_ai);
}

#[test]
fn the_window_stays_between_least_and_line_rate() {
    let mut run = Run::new(Some("simulator"), &[], 1);
    for _ in 0..40 {
        run.next_round();
        run.ack(T_NS, &[(100.0, 0.0)]);
    }
    near(run.window(), 12_500.0);
    for _ in 0..40 {
        run.next_round();
        run.ack(T_NS, &[(0.01, 0.0)]);
    }
    near(run.window(), BDP);
}

#[test]
fn t_is_the_smallest_rtt_unless_given() {
    let mut run = Run::new(None, &[("base_rtt", 0.0002)], 1);
    near(run.window(), 2.0 * BDP);
    run.ack(2 * T_NS, &[(1.9, 0.0)]);
    near(run.window(), BDP + 2.0 * W_AI);
    assert_eq!(run.hpcc.control().pacing_bytes_per_s, ((BDP + 2.0 * W_AI) / 0.0002) as u64);
}

/// Sections 3 and 5 have no losses; what is done is ours.
#[test]
fn a_loss_changes_nothing_and_a_timeout_leaves_one_packet_that_an_undo_takes_back() {
    let mut run = Run::new(None, &[], 1);
    run.hpcc.on_loss(&Loss { flags: Loss::EPISODE_START, ..Loss::default() });
    near(run.window(), BDP);
    run.hpcc.on_rto(&Timeout::default());
    run.hpcc.on_rto(&Timeout::default());
    near(run.window(), PACKET);
    assert_eq!(run.hpcc.control().cwnd_bytes, 1000);
    run.hpcc.on_spurious_loss(&Undo::default());
    near(run.window(), BDP);
    // Else it comes back by what the links say: 5 times W_AI, then by load.
    run.hpcc.on_rto(&Timeout::default());
    for _ in 0..6 {
        run.next_round();
        run.ack(T_NS, &[(0.01, 0.0)]);
    }
    near(run.window(), (PACKET + 5.0 * W_AI) * 95.0 + W_AI);
}

#[test]
fn an_ack_that_was_overtaken_and_another_path_teach_nothing() {
    let mut run = Run::new(None, &[], 2);
    run.ack(T_NS, &[(1.0, 0.0), (0.5, 0.0)]);
    let (window, late) = (run.window(), run.hops.clone());
    run.ack(T_NS, &[(1.0, 0.0), (0.5, 0.0)]);
    let newest = std::mem::replace(&mut run.hops, late);
    run.echo();
    near(run.window(), window);
    run.hops = newest;
    run.hops[1].hop_id = 7;
    run.hops.iter_mut().for_each(|hop| (hop.timestamp_ns, hop.tx_bytes) = (0, 0));
    run.echo();
    near(run.window(), window);
    run.ack(T_NS, &[(1.9, 0.0)]);
    near(run.window(), run.reference() / 2.0 + W_AI);
}
