//! The simulator keeps the host's side of the controller contract (`paceline_cc::controller`).

mod common;

use std::sync::{Arc, Mutex};

use common::*;
use paceline_cc::{Ack, Control, Controller, Loss, Needs, PathInfo, Sent, Timeout};
use paceline_net::{LinkSpec, LossModel, QueueSpec};
use paceline_sim::{DatagramOptions, FlowPlan, LossNotice, PlanError, Stack, TcpOptions, run};

/// What a controller was told, in order.
#[derive(Clone, Copy, Debug)]
enum Told {
    Ack { now: u64, in_flight: u64, delivered_total: u64 },
    Loss { now: u64, lost: u64, sent: u64, tx_in_flight: u64, since_sent: u64 },
    Timeout { now: u64 },
    Send { now: u64, in_flight: u64, cwnd: u64 },
    Timer { now: u64, due: u64 },
}

/// A paced window that halves on loss and keeps a diary.
struct Witness {
    diary: Arc<Mutex<Vec<Told>>>,
    control: Control,
    timer_every_ns: u64,
}

impl Witness {
    fn write(&self, told: Told) {
        self.diary.lock().unwrap().push(told);
    }
}

impl Controller for Witness {
    fn on_ack(&mut self, ack: &Ack<'_>) {
        self.control.cwnd_bytes += 100;
        let (now, in_flight) = (ack.now_ns, ack.in_flight_bytes);
        self.write(Told::Ack { now, in_flight, delivered_total: ack.delivered_total_bytes });
    }
    fn on_loss(&mut self, loss: &Loss) {
        if loss.starts_episode() {
            self.control.cwnd_bytes = (self.control.cwnd_bytes / 2).max(3000);
        }
        self.write(Told::Loss {
            now: loss.now_ns,
            lost: loss.lost_bytes,
            sent: loss.newest_lost_sent_ns,
            tx_in_flight: loss.tx_in_flight_bytes,
            since_sent: loss.lost_since_sent_bytes,
        });
    }
    fn on_rto(&mut self, timeout: &Timeout) {
        self.write(Told::Timeout { now: timeout.now_ns });
    }
    fn on_send(&mut self, sent: &Sent) {
        let cwnd = self.control.cwnd_bytes;
        self.write(Told::Send { now: sent.now_ns, in_flight: sent.in_flight_bytes, cwnd });
    }
    fn on_timer(&mut self, now_ns: u64) {
        self.write(Told::Timer { now: now_ns, due: self.control.next_timer_ns });
        self.control.next_timer_ns += self.timer_every_ns;
    }
    fn control(&self) -> Control {
        self.control
    }
}

const RATE_BYTES_PER_S: u64 = 5_000_000;
const TIMER_NS: u64 = 7_000_000;

fn diary(stack: Stack) -> Vec<Told> {
    let diary = Arc::new(Mutex::new(Vec::new()));
    let shared = Arc::clone(&diary);
    let lossy = LinkSpec { loss: Some(LossModel::Bernoulli(0.01)), ..bottleneck(30e6, 10.0, 40) };
    let mut flow = tcp(made(move |_: &PathInfo| Witness {
        diary: shared,
        control: Control {
            pacing_bytes_per_s: RATE_BYTES_PER_S,
            next_timer_ns: TIMER_NS,
            ..Control::window(30_000)
        },
        timer_every_ns: TIMER_NS,
    }));
    flow.stack = stack;
    flow.needs = Needs::PACING.and(Needs::SEND_EVENTS).and(Needs::TIMERS);
    run_checked(plan(vec![lossy, delay(10.0)], vec![flow], 10.0, 0.0));
    Arc::try_unwrap(diary).unwrap().into_inner().unwrap()
}

fn stacks() -> [Stack; 2] {
    [Stack::Tcp(TcpOptions::default()), Stack::Datagram(DatagramOptions::default())]
}

#[test]
fn time_never_decreases_and_a_loss_precedes_its_ack() {
    for stack in stacks() {
        let diary = diary(stack);
        let time = |told: &Told| match *told {
            Told::Ack { now, .. } | Told::Loss { now, .. } | Told::Timeout { now } => now,
            Told::Send { now, .. } | Told::Timer { now, .. } => now,
        };
        assert!(diary.windows(2).all(|pair| time(&pair[0]) <= time(&pair[1])));
        let losses = diary.windows(2).filter(|pair| matches!(pair[0], Told::Loss { .. }));
        let followed = losses.map(|pair| match (pair[0], pair[1]) {
            (Told::Loss { now: lost, .. }, Told::Ack { now, .. }) => lost == now,
            _ => false,
        });
        let followed: Vec<bool> = followed.collect();
        assert!(followed.len() > 20, "losses happened");
        assert!(followed.iter().all(|f| *f), "each loss is followed by the ACK that told it");
    }
}

/// What a loss says of the flight in which its newest packet was sent is what was told when it left and since.
#[test]
fn a_loss_tells_of_the_flight_of_its_newest_packet() {
    for stack in stacks() {
        let diary = diary(stack);
        let mut checked = 0;
        for (at, told) in diary.iter().enumerate() {
            let Told::Loss { sent, tx_in_flight, since_sent, .. } = *told else { continue };
            let left = |told: &Told| matches!(*told, Told::Send { now, .. } if now == sent);
            let sending = diary[..at].iter().rposition(left).expect("it was sent");
            let Told::Send { in_flight, .. } = diary[sending] else { unreachable!() };
            assert_eq!(tx_in_flight, in_flight);
            let since = &diary[sending..=at];
            if since.iter().any(|told| matches!(told, Told::Timeout { .. })) {
                continue;
            }
            let losses =
                since.iter().map(|t| if let Told::Loss { lost, .. } = t { *lost } else { 0 });
            assert_eq!(since_sent, losses.sum::<u64>());
            checked += 1;
        }
        assert!(checked > 20, "losses happened");
    }
}

/// A sender that is told at the drop hears of every drop and of nothing else, one packet at a time, in the moment in which that
/// packet is sent; also where ACKs overtake each other.
#[test]
fn a_drop_can_be_told_at_its_instant() {
    let options = DatagramOptions { tell_losses: LossNotice::AtDrop, ..DatagramOptions::default() };
    let diary = diary(Stack::Datagram(options));
    let losses = diary.iter().enumerate().filter_map(|(at, told)| match *told {
        Told::Loss { now, lost, sent, .. } => Some((at, now, lost, sent)),
        _ => None,
    });
    let mut count = 0;
    for (at, now, lost, sent) in losses {
        assert_eq!((lost, sent), (1500, now));
        assert!(matches!(diary[at - 1], Told::Send { now: send, .. } if send == now));
        count += 1;
    }
    // The last ACK tells what arrived of what was sent until its packet left.
    let sent = diary.iter().filter(|told| matches!(told, Told::Send { .. })).count();
    let acked = diary.iter().filter(|told| matches!(told, Told::Ack { .. })).count();
    let in_flight = sent - acked - count;
    assert!(count > 20 && in_flight < 30, "{count} lost of {sent}, {in_flight} in flight");
}

/// Where a link drops that the sender does not sit at, or decides only later, nobody could tell it at the drop.
#[test]
fn drops_out_of_sight_are_refused() {
    let told = Stack::Datagram(DatagramOptions {
        tell_losses: LossNotice::AtDrop,
        ..DatagramOptions::default()
    });
    let small = bottleneck(10e6, 5.0, 20);
    let managed = LinkSpec { queue: QueueSpec::DropHead, ..small.clone() };
    let links = || vec![small.clone(), delay(5.0), managed.clone(), small.clone()];
    let refused = |forward: &[u32], other: &str| {
        let flows =
            vec![FlowPlan { stack: told, ..flow("reno", forward, &[1]) }, flow(other, &[0], &[1])];
        match run(plan(links(), flows, 0.1, 0.0)) {
            Err(PlanError::UnseenDrops { link, .. }) => Some(link),
            outcome => outcome.map(|_| None).expect("no other error"),
        }
    };
    assert_eq!(refused(&[0, 1], "reno"), None);
    assert_eq!(refused(&[1, 0], "reno").as_deref(), Some("link-0"));
    assert_eq!(refused(&[0, 1, 3], "reno").as_deref(), Some("link-3"));
    assert_eq!(refused(&[2, 1], "reno").as_deref(), Some("link-2"));
    assert_eq!(refused(&[0], "hpcc").as_deref(), Some("link-0"), "a link that is asked");
    assert_eq!(refused(&[3], "hpcc"), None);
}

#[test]
fn the_window_and_the_pacer_are_obeyed() {
    for stack in stacks() {
        let diary = diary(stack);
        let mut last = None;
        let (mut full, mut beyond) = (0, 0);
        for told in &diary {
            let Told::Send { now, in_flight, cwnd } = *told else { continue };
            if in_flight > cwnd {
                beyond += 1;
            }
            full += u32::from(in_flight + 1500 > cwnd);
            if let Some(before) = last.replace(now) {
                // 1500 bytes at 5 MB/s: 300 us, less the rounding to whole nanoseconds.
                assert!(now - before >= 299_999, "paced: {before} {now}");
            }
        }
        assert!(full > 100, "the window was the limit at times");
        // Exempt: the first retransmission of an episode.
        let episodes = diary.iter().filter(|t| matches!(t, Told::Loss { .. })).count();
        assert!(beyond <= episodes, "{beyond} sent beyond the window in {episodes} losses");
    }
}

#[test]
fn timers_come_at_their_time_and_totals_only_grow() {
    for stack in stacks() {
        let (mut timers, mut total) = (0, 0);
        for told in diary(stack) {
            match told {
                Told::Timer { now, due } => {
                    assert_eq!(now, due);
                    timers += 1;
                }
                Told::Ack { delivered_total, in_flight, .. } => {
                    assert!(delivered_total > total && in_flight < 1 << 30);
                    total = delivered_total;
                }
                _ => {}
            }
        }
        // Every 7 ms over 10 s, less the handshake.
        assert!((1420..=1428).contains(&timers), "{timers}");
    }
}

#[test]
fn what_a_host_cannot_give_is_refused_by_name() {
    let mut flow = tcp(registered("window", None, &[]));
    flow.needs = Needs::INT.and(Needs::PACING).and(Needs::ONE_WAY_DELAY);
    let error = run(plan(vec![delay(1.0), delay(1.0)], vec![flow], 1.0, 0.0)).unwrap_err();
    assert!(matches!(error, PlanError::Needs { .. }));
    assert_eq!(
        error.to_string(),
        "controller `test` of flow `flow` needs one-way-delay, which the tcp endpoint does not provide"
    );
}

#[test]
fn a_link_out_of_range_is_refused_by_name() {
    let lossy = LinkSpec { loss: Some(LossModel::Bernoulli(1.5)), ..delay(1.0) };
    let flow = tcp(registered("window", None, &[]));
    let error = run(plan(vec![lossy, delay(1.0)], vec![flow], 1.0, 0.0)).unwrap_err();
    assert!(error.to_string().starts_with("link `link-0`: loss"), "{error}");
}

#[test]
fn a_path_that_takes_no_time_and_a_window_without_bound_are_refused() {
    let flow = || tcp(registered("reno", None, &[]));
    let error = |ms| run(plan(vec![delay(ms), delay(ms)], vec![flow()], 1.0, 0.0)).unwrap_err();
    assert_eq!(error(0.0), PlanError::Instant { flow: "flow".into() });
    // Slow start doubles every 2 us: 2^23 packets after 23 round trips.
    let PlanError::Unbounded { at_s, .. } = error(0.001) else { panic!("not unbounded") };
    assert!(at_s < 1e-3);
}
