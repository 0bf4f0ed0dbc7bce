//! Controllers in the running kernel: loaded, used by a real flow, capped, unloaded. Needs root and a kernel with struct_ops; says
//! so when it skips.

use std::io::{Read, Write};
use std::net::{IpAddr, TcpListener, TcpStream};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use nix::sys::socket::{setsockopt, sockopt::TcpCongestion};
use paceline_cc::Portable;
use paceline_cc::event_log::{self, Entry};
use paceline_kernel::{Cap, Error, Flow, Loaded, Replayer, Request};

/// Whether the machine lacks what these tests need; says so past the test harness, which hides what passing tests print.
fn skipped() -> bool {
    let Err(reason) = paceline_kernel::check() else { return false };
    let line = format!("\nSKIPPED controllers in the kernel: {reason}\n");
    let _ = std::io::stderr().write_all(line.as_bytes());
    true
}

/// A loaded controller that goes with the test.
struct Guard(Loaded);

impl Drop for Guard {
    fn drop(&mut self) {
        let _ = paceline_kernel::unload(&self.0.name);
    }
}

fn request(algorithm: &str, name: &str) -> Request {
    let algorithm = Portable::find(algorithm).unwrap();
    Request {
        algorithm,
        params: algorithm.spec().params(None).unwrap(),
        name: Some(name.into()),
        record: false,
    }
}

fn load(algorithm: &str, name: &str) -> Guard {
    load_as(algorithm, request(algorithm, name))
}

fn load_as(algorithm: &str, request: Request) -> Guard {
    Guard(paceline_kernel::load(&request).unwrap_or_else(|e| panic!("{algorithm}: {e}")))
}

/// Sends over loopback with the controller called `name` for `duration`, looking at the flow half-way. Returns the bytes that arrived
/// and what was seen.
fn send(controller: &Loaded, duration: Duration) -> (u64, Flow) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let receiver = std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        let (mut buffer, mut received) = (vec![0; 1 << 16], 0);
        loop {
            match stream.read(&mut buffer).unwrap() {
                0 => return received,
                bytes => received += bytes as u64,
            }
        }
    });
    let mut stream = TcpStream::connect(("127.0.0.1", port)).unwrap();
    setsockopt(&stream, TcpCongestion, &controller.name.clone().into()).unwrap();
    let (began, data, mut seen, mut sent) = (Instant::now(), vec![7; 1 << 16], None, 0);
    while began.elapsed() < duration {
        sent += stream.write(&data).unwrap() as u64;
        if seen.is_none() && began.elapsed() > duration / 2 {
            let flows = paceline_kernel::flows(controller).unwrap();
            seen = flows.into_iter().find(|flow| flow.remote.port() == port);
        }
    }
    drop(stream);
    let received = receiver.join().unwrap();
    assert_eq!(received, sent);
    (received, seen.expect("the flow is among those that the kernel writes out"))
}

#[test]
fn a_flow_runs_with_each_controller() {
    if skipped() {
        return;
    }
    for algorithm in paceline_kernel::algorithms() {
        let guard = load(algorithm, &format!("pltest_{algorithm}"));
        let (received, flow) = send(&guard.0, Duration::from_millis(600));
        println!("{algorithm}: {received} bytes, {flow:?}");
        assert!(received > 1_000_000, "{algorithm}: {received}");
        assert!(flow.delivered_bytes > 500_000 && flow.delivered_bytes < 2 * received, "{flow:?}");
        assert!(flow.cwnd_bytes >= u64::from(flow.packet_bytes), "{flow:?}");
        assert!(flow.packet_bytes > flow.payload_bytes, "{flow:?}");
        assert!(flow.srtt_ns > 0 && flow.min_rtt_ns <= flow.srtt_ns, "{flow:?}");
        assert_eq!(flow.observed.len(), guard.0.algorithm.spec().fields.len());
        assert_eq!(flow.local.ip(), IpAddr::from([127, 0, 0, 1]));
    }
}

#[test]
fn a_recorded_flow_gives_the_same_answers_again() {
    if skipped() {
        return;
    }
    for algorithm in paceline_kernel::algorithms() {
        let name = format!("pltest_r{algorithm}");
        let guard = load_as(algorithm, Request { record: true, ..request(algorithm, &name) });
        let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("{name}.events"));
        let cap = Cap { destination: [127, 0, 0, 1].into(), port: None, bytes_per_s: 20_000_000 };
        paceline_kernel::set_cap(Some(&name), &cap).unwrap();
        let (began, stop) = (AtomicBool::new(false), AtomicBool::new(false));
        let stopped = || {
            began.store(true, Ordering::Relaxed);
            stop.load(Ordering::Relaxed)
        };
        let recorded = std::thread::scope(|scope| {
            let recorder =
                scope.spawn(|| paceline_kernel::record(Some(&name), &path, None, &stopped));
            while !began.load(Ordering::Relaxed) && !recorder.is_finished() {
                std::thread::yield_now();
            }
            send(&guard.0, Duration::from_millis(600));
            let again = paceline_kernel::record(Some(&name), &path, None, &|| true);
            stop.store(true, Ordering::Relaxed);
            assert!(matches!(again, Err(Error::Input(_))), "{again:?}");
            recorder.join().unwrap().unwrap()
        });
        let bytes = std::fs::read(&path).unwrap();
        let log = event_log::parse(&bytes).unwrap();
        assert_eq!((log.lost, recorded.lost), (Some(0), 0));
        let replayed = Replayer::new(true).replay(&log).unwrap();
        assert_eq!(replayed.bpf_skipped, None);
        let flow = replayed.flows.iter().max_by_key(|flow| flow.events).unwrap();
        println!("{algorithm}: {recorded:?}, {} events, {} answers", flow.events, flow.answers);
        assert!(flow.events > 50 && flow.answers > 50, "{flow:?}");
        assert_eq!(flow.start.as_ref().unwrap().local.ip(), IpAddr::from([127, 0, 0, 1]));
        assert!(replayed.equal(), "{replayed:?}");
        // Another window than it answered.
        let mut tampered = bytes.clone();
        let is_answer = |(at, entry)| matches!(entry, Entry::Control(_)).then_some(at);
        let answers = log.flows.iter().flat_map(|flow| flow.entries()).filter_map(is_answer);
        tampered[answers.last().unwrap() + event_log::RECORD_BYTES] ^= 1;
        let replayed = Replayer::new(true).replay(&event_log::parse(&tampered).unwrap()).unwrap();
        let difference = replayed.flows.last().unwrap().difference.as_ref().unwrap();
        assert_eq!(difference.what, "cwnd_bytes");
        assert_eq!(difference.values[1].1, difference.values[2].1);
        assert!(!replayed.equal());
    }
}

#[test]
fn a_cap_of_the_table_holds() {
    if skipped() {
        return;
    }
    let guard = load("mpc", "pltest_cap");
    let cap = Cap { destination: [127, 0, 0, 1].into(), port: None, bytes_per_s: 5_000_000 };
    paceline_kernel::set_cap(Some("pltest_cap"), &cap).unwrap();
    assert_eq!(paceline_kernel::caps(&guard.0).unwrap(), [cap]);
    // What does not leave the socket's buffer in time arrives later: the rate is what was delivered by then.
    let (_, flow) = send(&guard.0, Duration::from_secs(2));
    assert_eq!(flow.cap_bytes_per_s, Some(5_000_000));
    let seconds = (flow.acked_ns - flow.started_ns) as f64 / 1e9;
    let payload =
        flow.delivered_bytes as f64 * f64::from(flow.payload_bytes) / f64::from(flow.packet_bytes);
    let rate = payload / seconds;
    // Without the cap it is a thousand times as fast; how far below it a busy machine stays says nothing.
    assert!((500_000.0..6_000_000.0).contains(&rate), "{rate} B/s, {flow:?}");
    paceline_kernel::set_cap(None, &Cap { bytes_per_s: u64::MAX, ..cap }).unwrap();
    assert_eq!(paceline_kernel::caps(&guard.0).unwrap(), []);
}

#[test]
fn unloading_leaves_live_flows_alone() {
    if skipped() {
        return;
    }
    let guard = load("reno", "pltest_unload");
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let mut sender = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
    let (mut receiver, _) = listener.accept().unwrap();
    setsockopt(&sender, TcpCongestion, &"pltest_unload".to_owned().into()).unwrap();
    paceline_kernel::unload("pltest_unload").unwrap();
    let refused = setsockopt(&receiver, TcpCongestion, &"pltest_unload".to_owned().into());
    assert!(refused.is_err(), "no socket can choose it any more");
    assert!(matches!(paceline_kernel::unload("pltest_unload"), Err(Error::Input(_))));
    let leaving =
        paceline_kernel::loaded().unwrap().into_iter().find(|c| c.id == guard.0.id).unwrap();
    assert!(!leaving.registered);
    assert_eq!(paceline_kernel::flows(&leaving).unwrap().len(), 1);
    sender.write_all(b"still here").unwrap();
    let mut heard = [0; 10];
    receiver.read_exact(&mut heard).unwrap();
    assert_eq!(&heard, b"still here");
}

#[test]
fn what_cannot_be_loaded_is_refused() {
    if skipped() {
        return;
    }
    for name in ["", "longer than fifteen", "cubic"] {
        let error = paceline_kernel::load(&request("reno", name)).unwrap_err();
        assert!(matches!(error, Error::Input(_)), "{name}: {error}");
    }
    assert!(matches!(paceline_kernel::unload("cubic"), Err(Error::Input(_))));
}

/// What each program costs the verifier, by kernel: `tests/verifier.txt`, blessed with PACELINE_BLESS=1. A fifth more is too much, for
/// the cost grows in jumps; a kernel that is not on file may use a quarter of the verifier's limit.
#[test]
fn the_verifier_needs_no_more_than_on_file() {
    if skipped() {
        return;
    }
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/verifier.txt");
    let release = std::fs::read_to_string("/proc/sys/kernel/osrelease").unwrap();
    let release: Vec<&str> = release.split('.').take(2).collect();
    let release = release.join(".");
    let on_file = std::fs::read_to_string(path).unwrap_or_default();
    let mut measured = String::new();
    let recording = |algorithm| [(algorithm, false, ""), (algorithm, true, "-recording")];
    for (algorithm, record, suffix) in paceline_kernel::algorithms().flat_map(recording) {
        let request = Request { record, ..request(algorithm, &format!("plcost_{algorithm}")) };
        let mut programs = load_as(algorithm, request).0.programs.clone();
        programs.sort_by(|a, b| a.name.cmp(&b.name));
        for program in programs {
            let key = format!("{release} {algorithm}{suffix} {} ", program.name);
            let known =
                on_file.lines().find_map(|line| line.strip_prefix(&key)?.parse::<u32>().ok());
            println!("{key}{} (on file: {known:?})", program.verified_instructions);
            measured += &format!("{key}{}\n", program.verified_instructions);
            let most = known.map_or(250_000, |known| known + known / 5 + 10);
            let blessed = std::env::var_os("PACELINE_BLESS").is_some();
            assert!(
                blessed || program.verified_instructions <= most,
                "{key}: {program:?}, at most {most}"
            );
        }
    }
    if std::env::var_os("PACELINE_BLESS").is_some() {
        let others = on_file.lines().filter(|line| !line.starts_with(&format!("{release} ")));
        let others: String = others.map(|line| format!("{line}\n")).collect();
        std::fs::write(path, others + &measured).unwrap();
    }
}
