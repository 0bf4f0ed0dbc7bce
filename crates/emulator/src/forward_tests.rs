//! The forwarder between devices of paper, at times that the test makes up.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::rc::Rc;
use std::sync::mpsc;

use paceline_net::{Buffer, Capacity, LossModel, PS_PER_MS, QueueSpec};
use proptest::prelude::*;

use super::*;
use crate::packet::tests::tcp_frame;

/// With several hosts, the last byte of a frame says whose it is.
#[derive(Clone, Default)]
struct Paper(Rc<RefCell<VecDeque<Vec<u8>>>>, Rc<Cell<usize>>);

impl Device for Paper {
    fn read(&mut self, room: &mut [u8]) -> io::Result<usize> {
        let frame = self.0.borrow_mut().pop_front().ok_or(ErrorKind::WouldBlock)?;
        room[..frame.len()].copy_from_slice(&frame);
        self.1.set(frame[frame.len() - 1].into());
        Ok(frame.len())
    }

    fn source(&self) -> usize {
        self.1.get()
    }

    fn host_of(&self, frame: &[u8]) -> Option<usize> {
        frame.last().map(|last| usize::from(*last))
    }

    fn write(&mut self, parts: &[IoSlice<'_>]) -> io::Result<usize> {
        let frame: Vec<u8> = parts.iter().flat_map(|part| part.iter().copied()).collect();
        let len = frame.len();
        self.0.borrow_mut().push_back(frame);
        Ok(len)
    }
}

fn forwarder(spec: LinkSpec) -> (Paper, Paper, Forwarder<Paper, Paper>) {
    let (source, sink) = (Paper::default(), Paper::default());
    let direction = Direction { spec, ..Direction::default() };
    (source.clone(), sink.clone(), Forwarder::new(source, sink, direction, (1, 0), None))
}

/// Sizes of the packets written since the last call; of those that leave as one, of all together.
fn sizes(sink: &Paper) -> Vec<usize> {
    sink.0.borrow_mut().drain(..).map(|frame| frame.len() - FRAME_HEADER_BYTES).collect()
}

#[test]
fn a_large_frame_leaves_packet_by_packet_at_the_rate_of_the_link() {
    // Ten packets of 1500 bytes, 1 ms each.
    let spec = LinkSpec { capacity: Capacity::Constant(12e6), ..LinkSpec::default() };
    let (source, sink, mut forwarder) = forwarder(spec);
    source.0.borrow_mut().push_back(tcp_frame(false, 10 * 1460, 1460, 0x10, 0));
    assert!(!forwarder.take_in(&|| 0).unwrap());
    for ms in 1..=3 {
        assert_eq!(forwarder.due(), Some(ms * PS_PER_MS));
        forwarder.give_out(&|| ms * PS_PER_MS - 1);
        assert_eq!(sizes(&sink), [0; 0], "not before its time");
        forwarder.give_out(&|| ms * PS_PER_MS);
        assert_eq!(sizes(&sink), [1500]);
    }
    // A driver that slept finds six of them due, and writes them as one.
    forwarder.give_out(&|| 9 * PS_PER_MS + 7);
    assert_eq!(sizes(&sink), [40 + 6 * 1460]);
    forwarder.give_out(&|| 10 * PS_PER_MS);
    assert_eq!(sizes(&sink), [1500]);
    assert_eq!(forwarder.due(), None);
    let counts = &forwarder.counts;
    assert_eq!((counts.entered_packets, counts.left_packets), (10, 10));
    assert_eq!((counts.entered_bytes, counts.left_bytes), (15_000, 15_000));
    // Six packets up to 5 ms late, the rest in time.
    assert!(counts.lateness.max_us().unwrap() >= 5000.0);
}

/// Packets of two hosts, 10 ms and 30 ms from a link that takes 1 ms for a packet, in both directions.
#[test]
fn hosts_have_delays_of_their_own_and_share_the_link() {
    let delays = [10 * PS_PER_MS, 30 * PS_PER_MS];
    let frame = |host: u8| {
        let mut frame = tcp_frame(false, 1460, 0, 0x10, 0);
        (frame[1], *frame.last_mut().unwrap()) = (0, host);
        frame
    };
    // Host, when it sends, ms.
    let sent = [(1u8, 0), (0, 19), (0, 20), (1, 25)];
    // Host, when it is at the other end: they meet at the link at 29, 30, 30 and 55 ms.
    let up = [(0u8, 30), (1, 31), (0, 32), (1, 56)];
    // Or leave the link at 1, 20, 21 and 26 ms.
    let down = [(0, 30), (1, 31), (0, 31), (1, 56)];
    for (at_source, arrivals) in [(true, up), (false, down)] {
        let spec = LinkSpec { capacity: Capacity::Constant(12e6), ..LinkSpec::default() };
        let (source, sink, forwarder) = forwarder(spec);
        let mut forwarder = match at_source {
            true => forwarder.with_hosts_at_source(&delays),
            false => forwarder.with_hosts_at_sink(&delays),
        };
        let mut seen = Vec::new();
        let mut to_send = sent.iter().peekable();
        for ms in 0..100 {
            while let Some((host, _)) = to_send.next_if(|(_, at)| *at == ms) {
                source.0.borrow_mut().push_back(frame(*host));
            }
            while forwarder.take_in(&|| ms * PS_PER_MS).unwrap() {}
            // A driver that looks when something is due.
            if forwarder.due().is_some_and(|due| due <= ms * PS_PER_MS) {
                forwarder.give_out(&|| ms * PS_PER_MS);
            }
            seen.extend(sink.0.borrow_mut().drain(..).map(|frame| (*frame.last().unwrap(), ms)));
        }
        assert_eq!(seen, arrivals, "{at_source}");
        assert_eq!(forwarder.counts.lateness.max_us(), Some(0.0));
    }
}

/// What an observer is shown: branch of a departure or flow of a delivery, when it came to the link, and when it left or arrived, ms.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Shown {
    Departure(u32, u64, u64),
    Delivery(u32, u64, u64),
}

/// Calls a flow by the last byte of its packets, and tells what it is shown.
struct Teller(mpsc::Sender<Shown>);

impl Observer for Teller {
    fn flow_of(&mut self, packet: &[u8]) -> u32 {
        packet.last().copied().unwrap_or_default().into()
    }
    fn on_entered(&mut self, _: Picos, _: u32, _: u32) {}
    fn on_departure(&mut self, branch: u32, entered: Picos, departs: Picos, _: u32, _: bool) {
        let _ = self.0.send(Shown::Departure(branch, entered / PS_PER_MS, departs / PS_PER_MS));
    }
    fn on_dropped(&mut self, _: Picos, _: u32, _: u32) {}
    fn on_delivered(&mut self, now: Picos, flow: u32, _: u32, entered: Picos) {
        let _ = self.0.send(Shown::Delivery(flow, entered / PS_PER_MS, now / PS_PER_MS));
    }
    fn on_unwritable(&mut self, _: u32) {}
    fn next_sample(&self) -> Option<(Picos, Picos)> {
        None
    }
    fn on_sample(&mut self, _: Picos, _: Option<f64>, _: u64) {}
    fn window(&self) -> [Picos; 2] {
        [0, 0]
    }
    fn on_end(self: Box<Self>, _: Picos, _: Option<f64>) {}
}

/// Two flows of one host: one has 30 ms behind a link that takes 1 ms for a packet, the other 20 ms before it.
#[test]
fn flows_have_delays_of_their_own_on_both_sides_of_the_link() {
    let branches = Branches {
        before: vec![0, 20 * PS_PER_MS],
        behind: vec![30 * PS_PER_MS, 0],
        branch_of: Box::new(|packet| packet.last().copied().unwrap_or_default().into()),
    };
    let frame = |flow: u8| {
        let mut frame = tcp_frame(false, 1460, 0, 0x10, 0);
        (frame[1], *frame.last_mut().unwrap()) = (0, flow);
        frame
    };
    let (tell, shown) = mpsc::channel();
    let spec = LinkSpec { capacity: Capacity::Constant(12e6), ..LinkSpec::default() };
    let (source, sink, forwarder) = forwarder(spec);
    let forwarder = forwarder.with_branches(Some(branches));
    let mut forwarder = forwarder.observed_by(Some(Box::new(Teller(tell))));
    // Flow, when it sends, ms. They meet at the link at 20, 19, 20 and 45 ms; at 20 ms the one that was sent first comes first.
    let mut to_send = [(1u8, 0), (0, 19), (0, 20), (1, 25)].into_iter().peekable();
    let (mut seen, mut now) = (Vec::new(), 0);
    while now < 100 * PS_PER_MS {
        while let Some((flow, _)) = to_send.next_if(|(_, at)| at * PS_PER_MS == now) {
            source.0.borrow_mut().push_back(frame(flow));
        }
        while forwarder.take_in(&|| now).unwrap() {}
        forwarder.give_out(&|| now);
        seen.extend(sink.0.borrow_mut().drain(..).map(|frame| (*frame.last().unwrap(), now)));
        // At every time that it names, and a picosecond before, when nothing may leave yet.
        let next_sent = to_send.peek().map_or(Picos::MAX, |(_, at)| at * PS_PER_MS);
        let next = next_sent.min(forwarder.due().unwrap_or(Picos::MAX)).min(100 * PS_PER_MS);
        now = if next > now + 1 { next - 1 } else { next };
    }
    let ms = |(flow, ms)| (flow, ms * PS_PER_MS);
    assert_eq!(seen, [(1, 21), (1, 46), (0, 50), (0, 52)].map(ms));
    drop(forwarder);
    let shown: Vec<Shown> = shown.into_iter().collect();
    let departures = shown.iter().filter(|shown| matches!(shown, Shown::Departure(..))).copied();
    let expected = [(0, 19, 20), (1, 20, 21), (0, 20, 22), (1, 45, 46)];
    assert_eq!(departures.collect::<Vec<_>>(), expected.map(|(b, e, d)| Shown::Departure(b, e, d)));
    let deliveries = shown.iter().filter(|shown| matches!(shown, Shown::Delivery(..))).copied();
    let expected = [(1, 20, 21), (1, 45, 46), (0, 19, 50), (0, 20, 52)];
    assert_eq!(deliveries.collect::<Vec<_>>(), expected.map(|(f, e, a)| Shown::Delivery(f, e, a)));
}

#[test]
fn an_undivided_frame_is_handed_on_as_it_came() {
    let (source, sink, mut forwarder) = forwarder(LinkSpec::default());
    let frames =
        [tcp_frame(true, 5000, 1400, 0x18, 1), tcp_frame(false, 100, 0, 2, 0), vec![9; 60]];
    source.0.borrow_mut().extend(frames.clone());
    let now = Cell::new(0);
    let clock = || {
        now.set(now.get() + 1);
        now.get()
    };
    while forwarder.take_in(&clock).unwrap() {}
    forwarder.give_out(&|| PS_PER_MS);
    assert_eq!(sink.0.borrow().iter().cloned().collect::<Vec<_>>(), frames);
}

#[test]
fn a_device_that_refuses_packets_is_counted() {
    struct Down;
    impl Device for Down {
        fn read(&mut self, _: &mut [u8]) -> io::Result<usize> {
            Err(io::Error::from_raw_os_error(libc::EBADFD))
        }
        fn write(&mut self, _: &[IoSlice<'_>]) -> io::Result<usize> {
            Err(io::Error::from_raw_os_error(libc::EIO))
        }
    }
    let source = Paper::default();
    source.0.borrow_mut().push_back(tcp_frame(false, 3000, 1000, 0, 0));
    let mut forwarder = Forwarder::new(source, Down, Direction::default(), (1, 0), None);
    assert!(!forwarder.take_in(&|| 5).unwrap());
    forwarder.give_out(&|| PS_PER_MS);
    assert_eq!(forwarder.counts.unwritable_packets, 3);
    let mut gone = Forwarder::new(Down, Paper::default(), Direction::default(), (1, 0), None);
    assert!(gone.take_in(&|| 0).is_err(), "nothing will ever come again");
}

#[test]
fn an_alarm_learns_how_late_it_is_and_stays_within_its_budget() {
    let mut alarm = Alarm::default();
    let (mut now, mut awake, mut late) = (0, 0, 0);
    // Something is due every millisecond; sleeping takes 80 us longer than wanted, looking again 1 us.
    for ms in 1..=2000 {
        let due = ms * PS_PER_MS;
        while now < due {
            let sleep = alarm.sleep(now, Some(due)).unwrap();
            if sleep == 0 {
                now += PS_PER_US;
                awake += PS_PER_US;
            } else {
                let wanted = now + sleep;
                now = wanted + 80 * PS_PER_US;
                alarm.woke(wanted, now);
            }
        }
        late = now - due;
    }
    assert!(late <= 2 * PS_PER_US, "{late}");
    assert!(awake < now / 20, "{awake}");
    // Time without anything to do is not time spent awake.
    assert_eq!(alarm.sleep(now, Some(now + 1)), Some(0));
    assert_eq!(alarm.sleep(now + PS_PER_US, None), None);
    now += 100 * PS_PER_MS;
    assert_eq!(alarm.sleep(now, Some(now + 1)), Some(0));
    // Due every 50 us: it would be awake all the time, and may a tenth of it.
    let (begin, before) = (now, awake);
    while now < begin + 100 * PS_PER_MS {
        let due = (now + 1).next_multiple_of(50 * PS_PER_US);
        let sleep = alarm.sleep(now, Some(due)).unwrap();
        let wanted = now + sleep;
        now += if sleep == 0 { PS_PER_US } else { sleep + 80 * PS_PER_US };
        if sleep == 0 {
            awake += PS_PER_US;
        } else {
            alarm.woke(wanted, now);
        }
    }
    let share = (awake - before) as f64 / (now - begin) as f64;
    assert!((0.08..0.15).contains(&share), "{share}");
}

proptest! {
    /// Whatever enters leaves or is dropped, once, with all its bytes, whenever the driver looks.
    #[test]
    fn nothing_is_lost_or_made_up(
        frames in prop::collection::vec((0usize..20_000, 0u16..1500, any::<bool>(), 0u64..3), 1..60),
        codel in any::<bool>(),
        packets in 1u64..100,
        tick in 1u64..5,
        delays in prop::option::of((0u64..4, 0u64..4)),
    ) {
        let branches = delays.map(|(before, behind)| Branches {
            before: vec![before * PS_PER_MS],
            behind: vec![0, behind * PS_PER_MS],
            branch_of: Box::new(|packet| packet.len() as u32 % 3),
        });
        let spec = LinkSpec {
            capacity: Capacity::Constant(100e6),
            delay_ps: PS_PER_MS,
            queue: if codel { QueueSpec::Codel(Default::default()) } else { QueueSpec::DropTail },
            buffer: Buffer { packets: Some(packets), ..Buffer::default() },
            loss: Some(LossModel::Bernoulli(0.05)),
            ..LinkSpec::default()
        };
        let (source, sink, forwarder) = forwarder(spec);
        let mut forwarder = forwarder.with_branches(branches);
        let now = Cell::new(0);
        for (payload, segment, v6, gap) in frames {
            now.set(now.get() + gap * PS_PER_MS);
            source.0.borrow_mut().push_back(tcp_frame(v6, payload, segment, 0x18, 2));
            while forwarder.take_in(&|| now.get()).unwrap() {
                forwarder.give_out(&|| now.get());
            }
        }
        while let Some(due) = forwarder.due() {
            now.set(due.next_multiple_of(tick * PS_PER_MS).max(now.get()));
            forwarder.give_out(&|| now.get());
        }
        let counts = forwarder.counts.clone();
        prop_assert_eq!(counts.left_packets + counts.dropped_packets(), counts.entered_packets);
        let (mut packets, mut bytes) = (0, 0);
        for frame in sink.0.borrow().iter() {
            let segments = Segments::of(frame);
            packets += u64::from(segments.count);
            bytes += (0..segments.count).map(|k| u64::from(segments.packet_bytes(k))).sum::<u64>();
        }
        prop_assert_eq!((packets, bytes), (counts.left_packets, counts.left_bytes));
    }
}
