//! The simulator against closed forms.

mod common;

use common::*;
use paceline_cc::{Ack, Control, Controller, Loss, Needs, PathInfo, Sent, Timeout};
use paceline_net::{LossModel, PS_PER_S};
use paceline_sim::{DatagramOptions, PacketSizes, Stack, TcpOptions};

/// Reno's mean window is sqrt(3/2)/sqrt(p) packets (algorithms: 1.2247/sqrt(p)). On a path of constant RTT the mean window is
/// throughput times RTT.
fn reno_window(loss: LossModel, seconds: f64) -> f64 {
    let link = paceline_net::LinkSpec { loss: Some(loss), ..delay(50.0) };
    let flow = tcp(registered("reno", None, &[]));
    let outcome = run_checked(plan(vec![link, delay(50.0)], vec![flow], seconds, seconds / 10.0));
    outcome.flows[0].throughput_bps / 8.0 / 1500.0 * 0.100
}

#[test]
fn reno_square_root_law_under_periodic_loss() {
    for every in [10_000, 100_000] {
        let p = 1.0 / every as f64;
        let window = reno_window(LossModel::Periodic(every), 6000.0);
        println!("periodic loss 1/{every}: mean window {window:.2}, law {:.2}", 1.2247 / p.sqrt());
        assert_near(window, 1.2247 / p.sqrt(), 0.03);
    }
}

#[test]
fn reno_square_root_law_under_random_loss() {
    for p in [1e-3, 1e-4] {
        let window = reno_window(LossModel::Bernoulli(p), 5000.0);
        println!("random loss {p}: mean window {window:.2}, law {:.2}", 1.2247 / p.sqrt());
        assert_near(window, 1.2247 / p.sqrt(), 0.10);
    }
}

#[test]
fn a_fixed_window_gives_w_per_rtt_until_the_link_is_full() {
    // 12 Mbit/s, 1500 bytes: 1 ms a packet; with 2 x 20 ms of delay the path holds 41 packets.
    for window in [1, 10, 40, 41, 60] {
        let links = vec![bottleneck(12e6, 20.0, 1000), delay(20.0)];
        let mut flow = tcp(registered("window", None, &[("packets", f64::from(window))]));
        flow.packets = PacketSizes { data_bytes: 1500, header_bytes: 0, ack_bytes: 40 };
        let outcome = run_checked(plan(links, vec![flow], 42.0, 1.0));
        let expected = (f64::from(window) / 0.041).min(1000.0) * 12_000.0;
        assert_near(outcome.flows[0].throughput_bps, expected, 1e-3);
        let rtt = outcome.flows[0].rtt_ms.unwrap();
        assert_near(rtt.mean, f64::from(window.max(41)), 1e-3);
    }
}

/// Sends with exponential gaps of a given mean: a Poisson source, whatever the ACKs say.
struct Poisson {
    rate_bytes_per_s: f64,
    state: u64,
    control: Control,
}

impl Controller for Poisson {
    fn on_ack(&mut self, _: &Ack<'_>) {}
    fn on_loss(&mut self, _: &Loss) {}
    fn on_rto(&mut self, _: &Timeout) {}
    fn on_send(&mut self, _: &Sent) {
        self.state ^= self.state << 13;
        self.state ^= self.state >> 7;
        self.state ^= self.state << 17;
        let uniform = ((self.state >> 11) as f64 + 0.5) / (1u64 << 53) as f64;
        self.control.pacing_bytes_per_s = (self.rate_bytes_per_s / -uniform.ln()).max(1.0) as u64;
    }
    fn control(&self) -> Control {
        self.control
    }
}

#[test]
fn an_md1_queue_has_the_delay_of_pollaczek_and_khinchine() {
    for load in [0.5, 0.8] {
        let links = vec![bottleneck(120e6, 5.0, 1_000_000), delay(5.0)];
        let mut flow = tcp(made(move |path: &PathInfo| Poisson {
            rate_bytes_per_s: load * 15e6,
            state: path.seed,
            control: Control { pacing_bytes_per_s: 1_000_000, ..Control::window(1 << 40) },
        }));
        flow.stack = Stack::Datagram(DatagramOptions::default());
        flow.needs = Needs::PACING.and(Needs::SEND_EVENTS);
        let outcome = run_checked(plan(links, vec![flow], 400.0, 5.0));
        // A packet takes 0.1 ms; it waits load/(2(1-load)) of that on average, and is served.
        let expected = 0.1 * (load / (2.0 * (1.0 - load)) + 1.0);
        let got = outcome.flows[0].queueing_delay_ms.unwrap().mean;
        println!("M/D/1 at load {load}: {got:.5} ms, theory {expected:.5} ms");
        assert_near(got, expected, 0.02);
        assert_near(outcome.links[0].utilization.unwrap(), load, 0.01);
    }
}

#[test]
fn a_finite_transfer_completes_with_every_byte() {
    let size = 1_000_000;
    for loss in [None, Some(LossModel::Bernoulli(0.05))] {
        let forward = paceline_net::LinkSpec { loss, ..bottleneck(10e6, 10.0, 20) };
        let mut flow = tcp(registered("reno", None, &[]));
        flow.size_bytes = Some(size);
        let outcome = run_checked(plan(vec![forward, delay(10.0)], vec![flow], 300.0, 0.0));
        let flow = &outcome.flows[0];
        let completion = flow.completion_s.expect("completes");
        let payload = flow.goodput_bps * completion / 8.0;
        assert_near(payload, size as f64, 1e-9);
        assert!(completion > size as f64 * 8.0 / 10e6, "not faster than the link");
        assert_eq!(flow.sent_packets - flow.retransmitted_packets, size.div_ceil(1448));
    }
}

#[test]
fn a_cap_is_kept_by_every_host() {
    let blocking = DatagramOptions { blocking: true, ..DatagramOptions::default() };
    let ideal = DatagramOptions::default();
    let tcp_host = Stack::Tcp(TcpOptions::default());
    for stack in [tcp_host, Stack::Datagram(ideal), Stack::Datagram(blocking)] {
        let links = vec![bottleneck(100e6, 10.0, 200), delay(10.0)];
        let mut flow = tcp(registered("window", None, &[("packets", 500.0)]));
        flow.stack = stack;
        flow.cap_bytes_per_s = Some(2_500_000);
        let outcome = run_checked(plan(links, vec![flow], 20.0, 2.0));
        assert_near(outcome.flows[0].throughput_bps, 20e6, 1e-3);
    }
}

#[test]
fn equal_runs_are_equal_and_seeds_matter() {
    let outcome = |seed| {
        let lossy = paceline_net::LinkSpec {
            loss: Some(LossModel::Bernoulli(0.01)),
            ..bottleneck(20e6, 10.0, 50)
        };
        let flows = (0..3).map(|_| tcp(registered("reno", None, &[]))).collect();
        let mut plan = plan(vec![lossy, delay(10.0)], flows, 20.0, 1.0);
        plan.seed = seed;
        format!("{:?}", run_checked(plan))
    };
    assert_eq!(outcome(7), outcome(7));
    assert_ne!(outcome(7), outcome(8));
}

#[test]
fn the_link_fills_in_time_at_the_ends_of_the_scale() {
    // 384 Gbit/s, where a packet lasts 31.25 ns, and 1 kbit/s, where it lasts 12 s.
    for (bps, seconds, window) in [(384e9, 0.01, 1000.0), (1e3, 3600.0, 4.0)] {
        let links = vec![bottleneck(bps, 0.001, 1_000_000), delay(0.001)];
        let flow = tcp(registered("window", None, &[("packets", window)]));
        let mut plan = plan(links, vec![flow], seconds, seconds / 4.0);
        plan.sample_ps = (seconds * PS_PER_S as f64 / 100.0) as u64;
        let outcome = run_checked(plan);
        assert_near(outcome.links[0].utilization.unwrap(), 1.0, 0.005);
    }
}
