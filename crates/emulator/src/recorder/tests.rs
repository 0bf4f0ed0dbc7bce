//! Links of the models, measured: both rules between them, in time that the test makes up. And both ends over loopback.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::io::{BufRead, BufReader, Write};
use std::net::TcpStream;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use paceline_net::random::{Purpose, RandomStream};
use paceline_net::trace::synth::Preset;
use paceline_net::{
    Buffer, Capacity, Link, LinkSpec, LossModel, PS_PER_MS, PS_PER_S, Picos, Trace, Verdict,
};

use super::recording::{Quality, Recording, read_ack};
use super::saturator::Saturator;
use super::{Plan, RecorderError, Server, Way, record};

/// How far the sender's clock is ahead of the receiver's.
const OFFSET_NS: u64 = 1_000_000_000_000;

/// Measures `spec` for `seconds` after 5 s to begin with; acknowledgements take 20 ms.
fn measure(spec: LinkSpec, seconds: u64) -> (Trace, Quality) {
    let mut link = Link::new(spec, 1, 0);
    let mut saturator = Saturator::new([750 * PS_PER_MS, 3000 * PS_PER_MS]);
    let begin = 5 * PS_PER_S;
    let end = begin + seconds * PS_PER_S;
    let mut recording = Recording::new([begin, end]);
    // Time, packet (number, when sent).
    let mut arrivals = BinaryHeap::new();
    let mut acks = std::collections::VecDeque::new();
    let mut now: Picos = 0;
    while now < end + PS_PER_S {
        while let Some(Reverse((at, number, sent))) = arrivals.peek().copied()
            && at <= now
        {
            arrivals.pop();
            recording.on_packet(at, 1500);
            recording.on_data(at, number, sent / 1000 + OFFSET_NS);
        }
        if recording.ack_due().is_some_and(|due| due <= now) {
            acks.push_back((now + 20 * PS_PER_MS, recording.ack(now)));
        }
        while let Some((at, (next, received, sent_ns, arrived_ns))) = acks.front().copied()
            && at <= now
        {
            acks.pop_front();
            let mut ack = read_ack(now, (next, received, sent_ns - OFFSET_NS, arrived_ns));
            ack.one_way_ns -= OFFSET_NS as i64;
            saturator.on_ack(now, ack);
        }
        while let Some(number) = saturator.to_send(now) {
            saturator.on_sent(now);
            if let Verdict::Pass { arrives, .. } = link.enqueue(now, 1504) {
                arrivals.push(Reverse((arrives, number, now)));
            }
        }
        // Whoever is next; the ends look again after a tenth of a millisecond at the latest.
        let next = arrivals.peek().map(|Reverse((at, ..))| *at);
        now = next.map_or(Picos::MAX, |next| next.max(now + 1)).min(now + PS_PER_MS / 10);
    }
    recording.finish().unwrap()
}

/// Opportunities in every second from `shift_ms` on, of a trace that goes through so many `turns`.
fn per_second(trace: &Trace, turns: u64, shift_ms: u64, seconds: usize) -> Vec<f64> {
    let mut counts = vec![0.0; seconds];
    for turn in 0..turns {
        let base = turn * u64::from(trace.period_ms());
        for ms in trace.opportunities_ms() {
            let at = base + u64::from(*ms);
            if let Some(count) =
                at.checked_sub(shift_ms).and_then(|at| counts.get_mut((at / 1000) as usize))
            {
                *count += 1.0;
            }
        }
    }
    counts
}

/// The recorded trace of a link with `trace` against that.
fn compare(trace: &Trace, recorded: &Trace, delay_ms: u64, seconds: usize) {
    let given = per_second(trace, 2, 5000 - delay_ms, seconds);
    let found = per_second(recorded, 1, 0, seconds);
    let (sum, found_sum) = (given.iter().sum::<f64>(), found.iter().sum::<f64>());
    assert!((found_sum / sum - 1.0).abs() < 0.02, "{found_sum} of {sum}");
    for (second, (given, found)) in given.iter().zip(&found).enumerate() {
        // An opportunity at the edge of a second may fall into the next.
        let allowed = (given * 0.05).max(3.0);
        assert!((given - found).abs() <= allowed, "second {second}: {found} of {given}");
    }
}

#[test]
fn a_trace_comes_out_as_it_went_in() {
    for (preset, seed) in [(Preset::Lte, 1), (Preset::Lte, 2), (Preset::Umts, 3), (Preset::Evdo, 4)]
    {
        let trace = preset.params(60_000, seed).generate().unwrap();
        for delay_ms in [1, 20, 100] {
            let spec = LinkSpec {
                capacity: Capacity::Trace { trace: Arc::new(trace.clone()), once: false },
                delay_ps: delay_ms * PS_PER_MS,
                ..LinkSpec::default()
            };
            let (recorded, quality) = measure(spec, 50);
            compare(&trace, &recorded, delay_ms, 50);
            assert_eq!(quality.lost, 0);
        }
    }
}

#[test]
fn a_shallow_buffer_and_losses_do_not_deceive() {
    let trace = Trace::constant(24_000_000).unwrap();
    for (packets, loss) in [(30, None), (1000, None), (1000, Some(LossModel::Bernoulli(0.001)))] {
        let spec = LinkSpec {
            capacity: Capacity::Trace { trace: Arc::new(trace.clone()), once: false },
            delay_ps: 20 * PS_PER_MS,
            buffer: Buffer { packets: Some(packets), ..Buffer::default() },
            loss,
            ..LinkSpec::default()
        };
        let (recorded, quality) = measure(spec, 20);
        let ratio = recorded.mean_bps() / 24e6;
        assert!((0.98..1.02).contains(&ratio), "{packets}: {ratio} {quality:?}");
    }
}

#[test]
fn an_idle_link_is_told() {
    let (_, quality) =
        measure(LinkSpec { capacity: Capacity::Constant(12e6), ..LinkSpec::default() }, 5);
    assert!(quality.hardly_waited == 0 && quality.mean_wait_us > 700_000, "{quality:?}");
    let mut recording = Recording::new([0, PS_PER_S]);
    (0..10).for_each(|k| {
        recording.on_packet(k * PS_PER_MS, 1500);
        recording.on_data(k * PS_PER_MS, k, k * 1_000_000);
    });
    assert_eq!(recording.finish().unwrap().1.hardly_waited, 10);
    assert!(Recording::new([0, PS_PER_S]).finish().is_err());
}

fn never() -> bool {
    false
}

#[test]
fn both_ends_over_loopback() {
    let mut server = Server::bind("127.0.0.1:0".parse().unwrap()).unwrap();
    let address = server.address().unwrap();
    let plan = Plan {
        // Loopback has no bottleneck but the processor.
        least_wait: Duration::ZERO,
        most_wait: Duration::from_millis(1),
        warm_up: Duration::from_millis(100),
        ..Plan::new(Way::Uplink, Duration::from_millis(300))
    };
    let served = thread::spawn(move || {
        // Whoever speaks nonsense is sent away, and the next is served.
        let (_, first) = server.serve(&never).unwrap();
        assert!(matches!(first, Err(RecorderError::Garbled(_))), "{first:?}");
        [(); 2].map(|()| server.serve(&never).unwrap().1.unwrap().way)
    });
    let mut stream = TcpStream::connect(address).unwrap();
    stream.write_all(b"GET / HTTP/1.1\r\n\r\n").unwrap();
    let mut answer = String::new();
    BufReader::new(stream).read_line(&mut answer).unwrap();
    assert!(answer.starts_with("no the other end does not answer"), "{answer}");
    for way in [Way::Uplink, Way::Downlink] {
        let recorded = record(address, &Plan { way, ..plan }, &never).unwrap();
        assert!(recorded.quality.packets > 10, "{:?}", recorded.quality);
        assert!(recorded.trace.period_ms() < 300);
    }
    assert_eq!(served.join().unwrap(), [Way::Uplink, Way::Downlink]);
}

#[test]
fn what_cannot_be_measured_is_refused() {
    let address = "127.0.0.1:1".parse().unwrap();
    let error = |plan: Plan| record(address, &plan, &never).unwrap_err().to_string();
    let plan = Plan::new(Way::Uplink, Duration::from_secs(1));
    assert!(error(plan).starts_with("cannot reach 127.0.0.1:1: "), "{}", error(plan));
    assert!(error(Plan { packet_bytes: 9001, ..plan }).contains("100 B to 9000 B"));
    assert!(error(Plan { duration: Duration::ZERO, ..plan }).contains("1 ms to 3600 s"));
    assert!(error(Plan { least_wait: Duration::from_secs(4), ..plan }).contains("least wait"));
}

/// Clocks that disagree, and a peer that lies about them.
#[test]
fn nothing_that_arrives_is_trusted() {
    let mut random = RandomStream::new(1, 0, Purpose::Loss);
    let mut recording = Recording::new([0, PS_PER_S]);
    let mut saturator = Saturator::new([0, PS_PER_MS]);
    let mut draw = || {
        let bits = (random.uniform() * 64.0) as u32;
        (random.uniform() * 2f64.powi(bits as i32)) as u64
    };
    for k in 0..20_000 {
        recording.on_data(k * PS_PER_MS / 10, draw(), draw());
        let fields = (draw(), draw(), draw(), draw());
        saturator.on_ack(k * PS_PER_MS / 10, read_ack(k * PS_PER_MS / 10, fields));
        if saturator.to_send(k).is_some() {
            saturator.on_sent(k);
        }
        let _ = recording.ack(k);
    }
    assert!(recording.ack_due().is_none());
    assert!(saturator.to_send(Picos::MAX).is_some_and(|next| next > 0));
}
