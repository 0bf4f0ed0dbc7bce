//! In-band telemetry by hand: what links write into packets, and what of it a controller sees.

mod common;

use std::sync::{Arc, Mutex};

use common::*;
use paceline_cc::{Ack, Control, Controller, IntHop, Loss, Needs, PathInfo, Timeout};
use paceline_net::{Capacity, LinkSpec, LossModel, PS_PER_S};
use paceline_sim::{DatagramOptions, FlowPlan, Stack, TcpOptions, run};

/// The hops of each ACK, and when it came, ns.
type Told = Arc<Mutex<Vec<(u64, Vec<IntHop>)>>>;

/// A held window that keeps what it is told.
struct Listener {
    told: Told,
    window: u64,
}

impl Controller for Listener {
    fn on_ack(&mut self, ack: &Ack<'_>) {
        self.told.lock().unwrap().push((ack.now_ns, ack.hops.to_vec()));
    }
    fn on_loss(&mut self, _loss: &Loss) {}
    fn on_rto(&mut self, _timeout: &Timeout) {}
    fn control(&self) -> Control {
        Control::window(self.window)
    }
}

const NO_HANDSHAKE: TcpOptions = TcpOptions {
    initial_window_packets: 10,
    delayed_ack_ps: None,
    min_rto_ps: 200 * MS,
    handshake: false,
    prr: true,
};

/// A flow of `packets`, all within its window, that needs telemetry; and what it is told.
fn listener(packets: u64, window: u64, forward: &[u32], reverse: &[u32]) -> (FlowPlan, Told) {
    let told = Told::default();
    let shared = Arc::clone(&told);
    let flow = FlowPlan {
        needs: Needs::INT,
        forward: forward.to_vec(),
        reverse: reverse.to_vec(),
        stack: Stack::Tcp(NO_HANDSHAKE),
        size_bytes: Some(packets * 1448),
        ..tcp(made(move |path: &PathInfo| Listener {
            told: shared,
            window: window * u64::from(path.packet_bytes),
        }))
    };
    (flow, told)
}

fn take(told: &Told) -> Vec<(u64, Vec<IntHop>)> {
    std::mem::take(&mut told.lock().unwrap())
}

/// Of a hop: time in us, queue and sent bytes.
fn seen(hop: &IntHop) -> (u64, u64, u64) {
    assert_eq!(hop.timestamp_ns % 1000, 0);
    (hop.timestamp_ns / 1000, hop.queue_bytes, hop.tx_bytes)
}

/// Four packets at once over 12 Mbit/s, 1 ms each, 5 ms away, and then over 4 Mbit/s, 3 ms each. A delay in between writes nothing.
#[test]
fn two_hops_by_hand() {
    let rate = |bps, ms| LinkSpec { capacity: Capacity::Constant(bps), ..delay(ms) };
    let links = vec![rate(12e6, 5.0), delay(2.0), rate(4e6, 1.0), delay(3.0)];
    let (flow, told) = listener(4, 4, &[0, 1, 2], &[3]);
    run_checked(plan(links, vec![flow], 0.1, 0.0));
    let told = take(&told);
    assert_eq!(told.len(), 4);
    for (packet, (now_ns, hops)) in (0..).zip(&told) {
        assert_eq!(hops.len(), 2);
        assert_eq!((hops[0].hop_id, hops[0].link_bytes_per_s), (0, 1_500_000));
        assert_eq!((hops[1].hop_id, hops[1].link_bytes_per_s), (2, 500_000));
        // The first goes before the others have come.
        let left = [0, 2, 1, 0][packet as usize];
        assert_eq!(seen(&hops[0]), (packet * 1000, left * 1500, packet * 1500));
        // They reach the second at 8, 9, 10, 11 ms and go at 8, 11, 14, 17: at 11 ms the last comes as the second goes, which then is
        // before it.
        let left = [0, 1, 1, 0][packet as usize];
        assert_eq!(seen(&hops[1]), (8000 + packet * 3000, left * 1500, packet * 1500));
        // 3 ms of service, 1 there and 3 back.
        assert_eq!(*now_ns, (8 + 3 * packet + 7) * 1_000_000);
    }
}

/// A hop speaks of all that crosses it, whoever sends it: here a window of seven that nobody tells anything.
#[test]
fn others_count() {
    let links = vec![bottleneck(12e6, 1.0, 100), delay(1.0)];
    let (flow, told) = listener(1, 1, &[0], &[1]);
    let start_ps = 2 * MS + MS / 2;
    let other = FlowPlan {
        stack: Stack::Tcp(NO_HANDSHAKE),
        size_bytes: Some(7 * 1448),
        ..tcp(registered("window", None, &[("packets", 7.0)]))
    };
    run_checked(plan(links, vec![other, FlowPlan { start_ps, ..flow }], 0.1, 0.0));
    let told = take(&told);
    // It goes when all seven have gone.
    assert_eq!(seen(&told[0].1[0]), (7000, 0, 7 * 1500));
}

/// What a link says it has sent is what has been delivered, if nobody else crosses it.
#[test]
fn sent_bytes_are_delivered_bytes() {
    let links = vec![bottleneck(12e6, 1.0, 30), bottleneck(10e6, 1.0, 20), delay(1.0)];
    let (flow, told) = listener(2000, 60, &[0, 1], &[2]);
    let outcome = run_checked(plan(links, vec![flow], 20.0, 0.0));
    let flow = &outcome.flows[0];
    assert!(flow.completion_s.is_some() && outcome.links[1].drops > 0);
    let told = take(&told);
    let most = |hop: usize| {
        told.iter().filter_map(|(_, hops)| hops.get(hop)).map(|hop| hop.tx_bytes).max().unwrap()
    };
    // Before the last packet, that is.
    assert_eq!(most(1) + 1500, flow.delivered_packets * 1500);
    let crossed = flow.sent_packets - outcome.links[0].drops;
    assert_eq!(most(0) + 1500, crossed * 1500);
}

/// Whatever is lost, held back or sent again, an ACK speaks of the packet that caused it: times ascend over the hops, it was there
/// before it is told, and totals grow with time.
#[test]
fn records_belong_to_the_packet_that_is_acknowledged() {
    let lossy = |link| LinkSpec { loss: Some(LossModel::Bernoulli(0.02)), ..link };
    let delayed = TcpOptions { delayed_ack_ps: Some(40 * MS), ..NO_HANDSHAKE };
    let ideal = DatagramOptions::default();
    let sleeps = DatagramOptions { blocking: true, overhead_ps: MS / 10, ..ideal };
    for stack in [
        Stack::Tcp(NO_HANDSHAKE),
        Stack::Tcp(delayed),
        Stack::Datagram(ideal),
        Stack::Datagram(sleeps),
    ] {
        let links = vec![
            lossy(bottleneck(30e6, 2.0, 30)),
            lossy(bottleneck(20e6, 3.0, 30)),
            lossy(delay(5.0)),
        ];
        let (flow, told) = listener(5000, 40, &[0, 1], &[2]);
        let outcome = run_checked(plan(links, vec![FlowPlan { stack, ..flow }], 60.0, 0.0));
        assert!(outcome.flows[0].lost_packets > 0);
        let told = take(&told);
        let speaking: Vec<_> = told.iter().filter(|(_, hops)| !hops.is_empty()).collect();
        // A duplicate's ACK says nothing; there are few.
        assert!(speaking.len() > 1000 && speaking.len() * 100 > told.len() * 98);
        for (now_ns, hops) in &speaking {
            let [first, second] = &hops[..] else { panic!("two hops: {hops:?}") };
            // Service and propagation of the first link lie between: 0.4 ms and 2.
            assert!(second.timestamp_ns >= first.timestamp_ns + 2_400_000);
            assert!(*now_ns >= second.timestamp_ns + 600_000 + 8_000_000);
        }
        for hop in 0..2 {
            let mut by_time: Vec<_> = speaking.iter().map(|(_, hops)| hops[hop]).collect();
            by_time.sort_by_key(|hop| hop.timestamp_ns);
            let grows = |pair: &[IntHop]| pair[0].tx_bytes + 1500 <= pair[1].tx_bytes;
            assert!(by_time.windows(2).all(grows), "each record is another packet's");
        }
    }
}

/// A link's rate, and with it what it says of it, changes; the ACKs of a flow that needs nothing carry nothing.
#[test]
fn rates_change_and_others_are_told_nothing() {
    let capacity = Capacity::Steps([(0, 12e6), (50 * MS, 24e6)].into());
    let links = vec![LinkSpec { capacity, ..delay(1.0) }, delay(1.0)];
    let (flow, told) = listener(200, 4, &[0], &[1]);
    let (other, others) = listener(200, 4, &[0], &[1]);
    let other = FlowPlan { needs: Needs::NONE, ..other };
    run_checked(plan(links, vec![flow, other], 1.0, 0.0));
    for (_, hops) in take(&told) {
        let rate = if hops[0].timestamp_ns < 50_000_000 { 1_500_000 } else { 3_000_000 };
        assert_eq!(hops[0].link_bytes_per_s, rate);
    }
    let others = take(&others);
    assert!(others.len() == 200 && others.iter().all(|(_, hops)| hops.is_empty()));
}

#[test]
fn a_path_of_more_hops_than_a_packet_has_room_for_is_refused() {
    let error = |hops: u32| {
        let mut links = vec![bottleneck(1e7, 1.0, 10); hops as usize];
        links.push(delay(1.0));
        let forward: Vec<u32> = (0..=hops).collect();
        let (flow, _) = listener(1, 1, &forward, &[hops]);
        run(plan(links, vec![flow], 0.1, 0.0)).err().map(|error| error.to_string())
    };
    assert_eq!(error(5), None);
    assert_eq!(
        error(6).unwrap(),
        "flow `flow`: controller `test` needs telemetry of 6 links with a rate; packets have room for that of 5"
    );
}

/// A limit on the wait is a formula's; with telemetry the queue decides. Neither flow sees the difference.
#[test]
fn a_flow_is_not_moved_by_being_told() {
    let outcome = |needs| {
        let buffer = paceline_net::Buffer { wait_ps: Some(20 * MS), ..Default::default() };
        let links = vec![LinkSpec { buffer, ..bottleneck(20e6, 5.0, 0) }, delay(5.0)];
        let flows = ["cubic", "reno"].map(|name| FlowPlan { needs, ..flow(name, &[0], &[1]) });
        let mut plan = plan(links, flows.into(), 10.0, 1.0);
        plan.sample_ps = PS_PER_S / 10;
        run_checked(plan).flows
    };
    let told = outcome(Needs::INT);
    assert!(told.iter().all(|flow| flow.lost_packets > 0));
    assert_eq!(format!("{told:?}"), format!("{:?}", outcome(Needs::NONE)));
}
