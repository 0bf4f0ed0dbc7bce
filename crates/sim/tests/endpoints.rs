//! What the endpoints do on the wire, by hand-computed counts.

mod common;

use common::*;
use paceline_cc::{Ack, Control, Controller, Loss, Timeout};
use paceline_net::{LinkSpec, LossModel, Reorder};
use paceline_sim::{DatagramOptions, FlowOutcome, Stack, TcpOptions};

/// A controller that is told of one loss which never happened, so that one reduction can be watched on a path that loses nothing.
struct OneLoss {
    inner: Box<dyn Controller>,
    at_ns: u64,
}

impl Controller for OneLoss {
    fn on_ack(&mut self, ack: &Ack<'_>) {
        if ack.now_ns >= self.at_ns {
            self.at_ns = u64::MAX;
            let (now_ns, prior_in_flight_bytes) = (ack.now_ns, ack.prior_in_flight_bytes);
            let flags = Loss::EPISODE_START;
            let loss =
                Loss { now_ns, prior_in_flight_bytes, flags, lost_packets: 1, ..Loss::default() };
            self.inner.on_loss(&loss);
        }
        self.inner.on_ack(ack);
    }
    fn on_loss(&mut self, loss: &Loss) {
        self.inner.on_loss(loss);
    }
    fn on_rto(&mut self, timeout: &Timeout) {
        self.inner.on_rto(timeout);
    }
    fn control(&self) -> Control {
        self.inner.control()
    }
}

/// W(t) = 0.4 (t - K)^3 + W_max with K = cbrt(0.3 W_max / 0.4), from the cut to 1.3 W_max at 2 K.
#[test]
fn cubic_follows_its_curve_after_a_loss() {
    let values = [("slow_start", 0.0), ("initial_ssthresh", 1000.0)];
    let cubic = registered("cubic", None, &values);
    let flow = tcp(made(move |path| OneLoss { inner: cubic(path), at_ns: 5_000_000_000 }));
    let mut plan = plan(vec![delay(50.0), delay(50.0)], vec![flow], 26.0, 0.0);
    plan.sample_ps = MS;
    let outcome = run_checked(plan);
    let series = &outcome.flows[0].series;
    let cwnd: Vec<f64> =
        series.column("cwnd_bytes").expect("a column").values.iter().map(|b| b / 1500.0).collect();
    let cut = (1..cwnd.len()).find(|i| cwnd[*i] < cwnd[i - 1] * 0.9).expect("a reduction");
    let w_max = cwnd[cut - 1];
    assert_near(cwnd[cut], 0.7 * w_max, 0.01);
    let k = (0.3 * w_max / 0.4f64).cbrt();
    for part in [0.25, 0.5, 0.75, 1.0, 1.5, 2.0] {
        let t = part * k;
        let row = series.time_s().partition_point(|time| *time < series.time_s()[cut] + t);
        let expected = 0.4 * (t - k).powi(3) + w_max;
        println!(
            "W_max {w_max:.0}, K {k:.2} s: W({part} K) = {:.1}, curve {expected:.1}",
            cwnd[row]
        );
        assert_near(cwnd[row], expected, 0.01);
    }
}

#[test]
fn delayed_acks_halve_the_ack_stream() {
    let acks = |delayed_ack_ps| {
        let mut flow = tcp(registered("window", None, &[("packets", 20.0)]));
        flow.stack = Stack::Tcp(TcpOptions { delayed_ack_ps, ..TcpOptions::default() });
        let plan = plan(vec![delay(10.0), delay(10.0)], vec![flow], 20.0, 2.0);
        run_checked(plan).links[1].throughput_bps
    };
    assert_near(acks(Some(40 * MS)), acks(None) / 2.0, 0.01);
}

/// A dead link: only the opening is sent, again after 1, 3, 7, 15 and 31 s.
#[test]
fn the_opening_backs_off() {
    let dead = LinkSpec { loss: Some(LossModel::Bernoulli(1.0)), ..delay(10.0) };
    let flow = tcp(registered("reno", None, &[]));
    let outcome = run_checked(plan(vec![dead, delay(10.0)], vec![flow], 60.0, 0.0));
    assert_eq!((outcome.flows[0].timeouts, outcome.flows[0].sent_packets), (5, 0));
    assert_eq!(outcome.links[0].drops, 6);
}

/// The link dies after 1000 packets: the first timeout after 0.2 s (the floor), then twice as long each time.
#[test]
fn a_dead_path_is_probed_with_exponential_back_off() {
    let mut flow = tcp(registered("reno", None, &[]));
    flow.stack = Stack::Tcp(TcpOptions { handshake: false, ..TcpOptions::default() });
    // Dies for good: once the bad state is entered it is never left.
    let forward = LinkSpec {
        loss: Some(LossModel::GilbertElliott { p: 0.001, r: 0.0, loss_bad: 1.0, loss_good: 0.0 }),
        ..bottleneck(10e6, 10.0, 100)
    };
    let outcome = run_checked(plan(vec![forward, delay(10.0)], vec![flow], 110.0, 0.0));
    let flow = &outcome.flows[0];
    let last_delivery = flow.delivered_packets;
    // 0.2 * (2^9 - 1) = 102 s: nine probes fit, or eight where the RTT makes the first timeout longer.
    assert!(last_delivery > 0 && (8..=9).contains(&flow.timeouts), "{flow:?}");
}

/// Closes its window with the first ACK and leaves the rest to the host's silence timer.
struct Shut(Control);

impl Controller for Shut {
    fn on_ack(&mut self, _ack: &Ack<'_>) {
        self.0.cwnd_bytes = 0;
    }
    fn on_loss(&mut self, _loss: &Loss) {}
    fn on_rto(&mut self, _timeout: &Timeout) {}
    fn control(&self) -> Control {
        self.0
    }
}

/// A second of silence, a probe, its ACK after 20 ms: one every 1.02 s.
#[test]
fn a_shut_window_is_probed() {
    for blocking in [false, true] {
        let mut flow =
            tcp(made(|_| Shut(Control { timeout_ns: 1_000_000_000, ..Control::window(1500) })));
        flow.stack = Stack::Datagram(DatagramOptions { blocking, ..DatagramOptions::default() });
        let outcome = run_checked(plan(vec![delay(10.0), delay(10.0)], vec![flow], 10.0, 0.0));
        assert_eq!((outcome.flows[0].timeouts, outcome.flows[0].sent_packets), (9, 10));
    }
}

fn reordered(extra_ms: u64, probability: f64) -> FlowOutcome {
    let reorder = Some(Reorder { probability, extra_ps: extra_ms * MS });
    let forward = LinkSpec { reorder, ..bottleneck(12e6, 10.0, 1000) };
    let flow = tcp(registered("window", None, &[("packets", 60.0)]));
    run_checked(plan(vec![forward, delay(10.0)], vec![flow], 30.0, 1.0)).flows.remove(0)
}

/// 1 ms a packet: a packet held back by 2 ms is overtaken by two, by 5 ms by five. DupThresh is three.
#[test]
fn reordering_below_dup_thresh_is_no_loss() {
    assert_eq!(reordered(2, 0.05).retransmitted_packets, 0);
    let beyond = reordered(5, 0.05);
    assert!(beyond.retransmitted_packets > 100, "needless retransmissions are counted");
    assert_eq!(beyond.lost_packets, 0);
}

/// One flow over three links of 10 Mbit/s, and one flow on each: all links full, nobody starves.
#[test]
fn a_parking_lot_fills_every_link() {
    let mut links: Vec<LinkSpec> = (0..3).map(|_| bottleneck(10e6, 5.0, 50)).collect();
    links.push(delay(15.0));
    let mut flows: Vec<_> = (0..4).map(|_| tcp(registered("reno", None, &[]))).collect();
    for (i, flow) in flows.iter_mut().enumerate() {
        flow.forward = if i == 0 { vec![0, 1, 2] } else { vec![i as u32 - 1] };
        flow.reverse = vec![3];
        flow.start_ps = i as u64 * 300 * MS;
    }
    let outcome = run_checked(plan(links, flows, 60.0, 10.0));
    for link in &outcome.links[..3] {
        assert!(link.utilization.unwrap() > 0.95, "{:?}", link.utilization);
    }
    let shares: Vec<f64> = outcome.flows.iter().map(|f| f.throughput_bps / 10e6).collect();
    println!("shares {shares:.2?}");
    // It is hit by the overflows of all three queues, and its RTT is three times theirs.
    assert!(shares[0] > 0.01 && shares[0] < shares[1], "the long flow gets less, but not nothing");
}

#[test]
fn flows_start_and_stop_when_told() {
    let mut flow = tcp(registered("window", None, &[("packets", 10.0)]));
    (flow.start_ps, flow.stop_ps) = (2000 * MS, Some(5000 * MS));
    let outcome = run_checked(plan(vec![delay(10.0), delay(10.0)], vec![flow], 10.0, 0.0));
    let flow = &outcome.flows[0];
    assert_eq!((flow.start_s, flow.end_s), (2.0, 5.0));
    let moving: Vec<f64> = (flow
        .series
        .time_s()
        .iter()
        .zip(flow.series.column("throughput_bps").expect("a column").values))
    .filter(|(_, bps)| **bps > 0.0)
    .map(|(time, _)| *time)
    .collect();
    assert!(moving[0] > 2.0 && moving[0] < 2.1, "{:?}", moving.first());
    assert!(*moving.last().unwrap() < 5.1);
    assert_eq!(flow.in_flight_packets, 0);
}

/// 20 packets leave at once at 0, 21, 42, ... ms; in the series they are counted from the start.
#[test]
fn the_series_count_every_packet_sent() {
    let mut flow = tcp(registered("window", None, &[("packets", 20.0)]));
    flow.stack = Stack::Tcp(TcpOptions { handshake: false, ..TcpOptions::default() });
    // Shorter than the first 210 ms, at which a window leaves at the very time of a sample.
    let outcome = run_checked(plan(vec![delay(11.0), delay(10.0)], vec![flow], 0.205, 0.0));
    let series = &outcome.flows[0].series;
    let column = |name| series.column(name).expect(name).values;
    let sent: Vec<f64> = (1..=20).map(|sample| f64::from(20 * (1 + sample * 10 / 21))).collect();
    assert_eq!(sent[..5], [20.0, 20.0, 40.0, 40.0, 60.0]);
    let first = series.time_s().partition_point(|time| *time < 0.005);
    assert_eq!(column("sent_packets")[first..first + 20], sent);
    // 20 packets of 12,000 bits in 10 ms.
    assert_eq!(column("send_bps")[first + 1..first + 3], [0.0, 24e6]);
}

/// PRR lets the window down with what is in flight (RFC 9937: cwnd = pipe + SndCnt).
#[test]
fn the_window_on_record_is_never_less_than_what_is_in_flight() {
    let mut plan = plan(
        vec![bottleneck(20e6, 20.0, 33), delay(20.0)],
        vec![flow("reno", &[0], &[1])],
        20.0,
        0.0,
    );
    plan.sample_ps = MS;
    let outcome = run_checked(plan);
    let column = |name| outcome.flows[0].series.column(name).expect("a column").values;
    let (cwnd, in_flight) = (column("cwnd_bytes"), column("in_flight_bytes"));
    assert!(outcome.flows[0].lost_packets > 0);
    for (row, (cwnd, in_flight)) in cwnd.iter().zip(in_flight).enumerate() {
        assert!(cwnd >= in_flight, "sample {row}: {cwnd} bytes, {in_flight} in flight");
    }
}
