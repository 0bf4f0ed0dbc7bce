//! Real links: real packets, processes and kills. They need root and /dev/net/tun, and skip with a word where these are not.
//!
//! The programs inside are this test binary again: `inside` is the test that is none.

mod common;

use std::ffi::OsString;
use std::fs;
use std::io::{Read as _, Write as _};
use std::net::{Ipv4Addr, SocketAddrV4, TcpListener, TcpStream, UdpSocket};
use std::os::fd::AsRawFd;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use common::turn;
use nix::sys::socket::{
    AddressFamily, MsgFlags, SockFlag, SockProtocol, SockType, SockaddrIn, sendto, socket,
};
use paceline_emulator::recorder::{Plan, Server, Way, record};
use paceline_emulator::{
    Direction, Emulation, Error, Host, LogFile, Outcome, Reach, Status, run, run_hosts,
};
use paceline_net::log::LogStats;
use paceline_net::random::{Purpose, RandomStream};
use paceline_net::{Buffer, Capacity, LinkSpec, PS_PER_MS, Trace};

fn both(spec: LinkSpec) -> Emulation {
    let direction = Direction { spec, ..Direction::default() };
    Emulation { up: direction.clone(), down: direction, seed: 1, realtime: false }
}

fn delay(ms: u64) -> Emulation {
    both(LinkSpec { delay_ps: ms * PS_PER_MS, ..LinkSpec::default() })
}

fn words(command: &[&str]) -> Vec<OsString> {
    command.iter().map(OsString::from).collect()
}

/// The command that does `task` (below) inside.
fn task(task: &str, port: u16, answer: &Path) -> Vec<OsString> {
    let exe = std::env::current_exe().unwrap();
    let settings =
        [format!("TASK={task}"), format!("PORT={port}"), format!("ANSWER={}", answer.display())];
    let mut command = words(&["env"]);
    command.extend(settings.map(OsString::from));
    command.push(exe.into());
    command.extend(words(&["inside", "--exact", "--ignored", "--nocapture", "-q"]));
    command
}

/// A file name of our own.
fn scratch(name: &str) -> PathBuf {
    std::env::temp_dir().join(format!("paceline-live-{name}-{}", std::process::id()))
}

fn numbers(answer: &Path) -> Vec<f64> {
    let text = fs::read_to_string(answer).expect("an answer");
    let _ = fs::remove_file(answer);
    text.split_whitespace().map(|number| number.parse().expect("a number")).collect()
}

/// Runs `inside` while this host echoes what comes to `port`, given to `command` by the caller.
fn with_echo(emulation: Emulation, command: impl FnOnce(u16) -> Vec<OsString>) -> Outcome {
    let socket = UdpSocket::bind("0.0.0.0:0").unwrap();
    socket.set_read_timeout(Some(Duration::from_millis(50))).unwrap();
    let port = socket.local_addr().unwrap().port();
    let done = std::sync::atomic::AtomicBool::new(false);
    thread::scope(|scope| {
        scope.spawn(|| {
            let mut room = [0; 2000];
            while !done.load(std::sync::atomic::Ordering::Relaxed) {
                if let Ok((len, from)) = socket.recv_from(&mut room) {
                    let _ = socket.send_to(&room[..len], from);
                }
            }
        });
        let outcome = run(emulation, &command(port));
        done.store(true, std::sync::atomic::Ordering::Relaxed);
        outcome.expect("a link")
    })
}

/// What the programs inside do. The answer goes to a file.
#[test]
#[ignore = "runs inside the links of the other tests"]
fn inside() {
    let Ok(task) = std::env::var("TASK") else { return };
    let variable = |name: &str| std::env::var(name).expect("set by the test");
    let port: u16 = variable("PORT").parse().unwrap();
    let answer = match task.as_str() {
        "round trips" => round_trips(&variable("PACELINE_BASE"), port),
        "garbage" => {
            garbage(&variable("PACELINE_BASE"));
            round_trips(&variable("PACELINE_BASE"), port)
        }
        "farewell" => {
            let mut stream = TcpStream::connect((variable("PACELINE_BASE"), port)).unwrap();
            return stream.write_all(b"farewell").unwrap();
        }
        "measure" => measure(&variable("PACELINE_BASE"), port),
        "flood" => flood(&variable("PACELINE_BASE"), port),
        "nest" => {
            let command = self::task("round trips", port, Path::new(&variable("ANSWER")));
            let outcome = run(delay(10), &command).expect("a link in a link");
            assert_eq!(outcome.status, Status::Exited(0));
            return;
        }
        "idle" => {
            let outcome = run(delay(1), &words(&["sleep", "1.2"])).expect("a link in a link");
            return nothing_has_crossed(&outcome);
        }
        "hold" => {
            let marker = variable("MARKER");
            let held = format!("setsid sleep {marker} & exec sleep {marker}");
            let _ = run(delay(1), &words(&["sh", "-c", &held]));
            return;
        }
        other => panic!("no task {other}"),
    };
    fs::write(variable("ANSWER"), answer).unwrap();
}

fn nothing_has_crossed(outcome: &Outcome) {
    assert_eq!(outcome.status, Status::Exited(0));
    assert_eq!((outcome.up.entered_packets, outcome.down.entered_packets), (0, 0));
}

/// Round-trip times of packets sent one after the other, ms.
fn round_trips(base: &str, port: u16) -> String {
    let socket = UdpSocket::bind("0.0.0.0:0").unwrap();
    socket.set_read_timeout(Some(Duration::from_secs(10))).unwrap();
    socket.connect((base, port)).unwrap();
    let mut room = [0; 100];
    let times = (0..20).map(|_| {
        let sent = Instant::now();
        socket.send(&[1; 50]).unwrap();
        socket.recv(&mut room).expect("an echo");
        format!("{} ", sent.elapsed().as_secs_f64() * 1e3)
    });
    times.collect()
}

/// Measures the uplink for 8 s; the opportunities, ms.
fn measure(base: &str, port: u16) -> String {
    let server = SocketAddrV4::new(base.parse().unwrap(), port).into();
    let plan = Plan {
        warm_up: Duration::from_secs(2),
        least_wait: Duration::from_millis(250),
        most_wait: Duration::from_millis(1000),
        ..Plan::new(Way::Uplink, Duration::from_secs(8))
    };
    let trace = record(server, &plan, &|| false).unwrap().trace;
    trace.opportunities_ms().iter().map(|ms| format!("{ms} ")).collect()
}

/// A link that plays a trace, measured from inside: the trace comes out.
#[test]
fn a_recorded_trace_is_the_one_that_the_link_plays() {
    let Some(_turn) = turn("a_recorded_trace_is_the_one_that_the_link_plays") else { return };
    let mut server = Server::bind("0.0.0.0:0".parse().unwrap()).unwrap();
    let port = server.address().unwrap().port();
    let served = thread::spawn(move || server.serve(&|| false).unwrap().1);
    // One and two opportunities per ms by turns, 600 ms of each: 12 and 24 Mbit/s.
    let opportunities = (0..60_000u32).flat_map(|ms| vec![ms; 1 + (ms / 600 % 2) as usize]);
    let trace = Trace::from_opportunities(opportunities.collect()).unwrap();
    let given = trace.opportunities_ms().to_vec();
    let capacity = Capacity::Trace { trace: trace.into(), once: false };
    let spec = LinkSpec { capacity, delay_ps: 10 * PS_PER_MS, ..LinkSpec::default() };
    let up = Direction { spec, overhead_bytes: 4, ..Direction::default() };
    let answer = scratch("measure");
    let outcome = run(Emulation { up, ..delay(10) }, &task("measure", port, &answer)).unwrap();
    assert_eq!(outcome.status, Status::Exited(0));
    served.join().unwrap().unwrap();
    let found: Vec<u32> = numbers(&answer).into_iter().map(|ms| ms as u32).collect();
    let seconds = |times: &[u32], from: u32| {
        let mut counts = [0.0f64; 8];
        for at in times.iter().filter_map(|ms| ms.checked_sub(from)) {
            if let Some(count) = counts.get_mut((at / 1000) as usize) {
                *count += 1.0;
            }
        }
        counts
    };
    let found = seconds(&found, 0);
    // What is written late is recorded late.
    let late = outcome.up.lateness.max_us().unwrap() / 1e3 * 2.0;
    let differs = |from: u32| {
        let given = seconds(&given, from);
        let allowed = |given: f64| 0.05 * given + late;
        let within = given.iter().zip(&found).all(|(g, f)| (g - f).abs() <= allowed(*g));
        let sums = (given.iter().sum::<f64>(), found.iter().sum::<f64>());
        within && (sums.0 - sums.1).abs() <= 0.02 * sums.0 + late
    };
    // The recording began 2 s after the program inside had said hello, and the trace before that.
    assert!((2000..4000).any(differs), "{found:?}, late {late}");
}

/// Sends 400 packets of 1000 bytes at once; how many came back, and in how many ms.
fn flood(base: &str, port: u16) -> String {
    let socket = UdpSocket::bind("0.0.0.0:0").unwrap();
    socket.set_read_timeout(Some(Duration::from_secs(1))).unwrap();
    socket.connect((base, port)).unwrap();
    let sent = Instant::now();
    for _ in 0..400 {
        // 20 bytes of IP, 8 of UDP.
        socket.send(&[2; 972]).unwrap();
    }
    let (mut count, mut last) = (0, sent);
    while socket.recv(&mut [0; 2000]).is_ok() {
        count += 1;
        last = Instant::now();
    }
    format!("{count} {}", (last - sent).as_secs_f64() * 1e3)
}

/// Sends 2000 packets of random bytes to `base`: random protocols, options, fragments, transport headers. What the kernel needs
/// of the header to send them at all is right.
fn garbage(base: &str) {
    let raw = socket(AddressFamily::Inet, SockType::Raw, SockFlag::empty(), SockProtocol::Raw);
    let raw = raw.unwrap();
    let base: Ipv4Addr = base.parse().unwrap();
    let to = SockaddrIn::from(SocketAddrV4::new(base, 0));
    let mut random = RandomStream::new(1, 0, Purpose::Loss);
    let mut draw = |below: usize| (random.uniform() * below as f64) as usize;
    for k in 0..2000 {
        let mut bytes: Vec<u8> = (0..60 + draw(1441)).map(|_| draw(256) as u8).collect();
        bytes[0] = if k % 2 == 0 { 0x45 } else { 0x4f };
        bytes[16..20].copy_from_slice(&base.octets());
        // Some are refused already.
        let _ = sendto(raw.as_raw_fd(), &bytes, &to, MsgFlags::empty());
    }
}

#[test]
fn garbage_passes_and_harms_nobody() {
    let Some(_turn) = turn("garbage_passes_and_harms_nobody") else { return };
    let answer = scratch("garbage");
    let outcome = with_echo(delay(1), |port| task("garbage", port, &answer));
    assert_eq!(outcome.status, Status::Exited(0));
    assert_eq!(numbers(&answer).len(), 20);
    let up = outcome.up;
    assert!(up.entered_packets > 1000, "{up:?}");
    assert_eq!(up.left_packets + up.dropped_packets(), up.entered_packets);
}

#[test]
fn the_status_of_the_command_is_passed_on() {
    let Some(_turn) = turn("the_status_of_the_command_is_passed_on") else { return };
    let status = |script: &str| run(delay(0), &words(&["sh", "-c", script])).unwrap().status;
    assert_eq!(status("exit 7"), Status::Exited(7));
    assert_eq!(status("kill -9 $$"), Status::Killed(9));
    assert_eq!(status("kill -9 $$").code(), 137);
    // Only what the caller had opened is open, and the signals are as they were.
    assert_eq!(status("trap 'exit 3' TERM; kill -TERM $$; exit 4"), Status::Exited(3));
    let error = run(delay(0), &words(&["no-such-program"])).unwrap_err();
    assert!(matches!(error, Error::Command { .. }), "{error}");
    assert!(error.to_string().starts_with("cannot run no-such-program: No such file"), "{error}");
}

#[test]
fn a_round_trip_takes_both_delays() {
    let Some(_turn) = turn("a_round_trip_takes_both_delays") else { return };
    let answer = scratch("delay");
    let outcome = with_echo(delay(15), |port| task("round trips", port, &answer));
    assert_eq!(outcome.status, Status::Exited(0));
    let times = numbers(&answer);
    assert!(times.iter().all(|ms| *ms >= 30.0), "never early: {times:?}");
    let least = times.iter().copied().fold(f64::MAX, f64::min);
    assert!(least < 100.0, "{times:?}");
    for counts in [outcome.up, outcome.down] {
        assert!(counts.left_packets >= 20);
        assert_eq!(counts.dropped_packets() + counts.unwritable_packets, 0);
    }
}

#[test]
fn a_rate_is_kept_and_a_full_buffer_drops() {
    let Some(_turn) = turn("a_rate_is_kept_and_a_full_buffer_drops") else { return };
    // 1000 bytes in 2 ms: 400 packets in 800 ms.
    let capacity = Capacity::Constant(4e6);
    let up = |packets| {
        let buffer = Buffer { packets, ..Buffer::default() };
        let spec = LinkSpec { capacity: capacity.clone(), buffer, ..LinkSpec::default() };
        Emulation { up: Direction { spec, ..Direction::default() }, ..delay(0) }
    };
    let answer = scratch("rate");
    with_echo(up(None), |port| task("flood", port, &answer));
    let [count, ms] = numbers(&answer)[..] else { panic!("two numbers") };
    // Never faster than the link; how much later than it depends on the machine, and so does what the receiver loses.
    assert!(count <= 400.0 && ms >= 2.0 * (count - 1.0), "{count} in {ms} ms");

    let outcome = with_echo(up(Some(100)), |port| task("flood", port, &answer));
    let [count, ms] = numbers(&answer)[..] else { panic!("two numbers") };
    let up = outcome.up;
    assert_eq!(up.left_packets + up.dropped_packets(), up.entered_packets);
    assert_eq!(up.dropped_packets(), up.dropped_full);
    // A receiver that gets no processor in time loses some of what has left.
    assert!(count <= up.left_packets as f64 && count + up.dropped_full as f64 <= 400.0);
    // 100 wait and one is sent; the slower the sender, the more get through, one in 2 ms.
    assert!(up.left_packets >= 101 && count <= 102.0 + ms / 2.0, "{count} in {ms} ms");
}

#[test]
fn a_log_agrees_with_the_counts_also_when_the_command_is_killed() {
    let Some(_turn) = turn("a_log_agrees_with_the_counts_also_when_the_command_is_killed") else {
        return;
    };
    let paths = ["up.log", "down.log"].map(scratch);
    let buffer = Buffer { packets: Some(100), ..Buffer::default() };
    let spec = LinkSpec { capacity: Capacity::Constant(4e6), buffer, ..LinkSpec::default() };
    let direction = |path: &PathBuf| {
        let path = path.clone();
        let log = LogFile { path, capacity: "4 Mbit/s".into(), command_line: "test".into() };
        Direction { spec: spec.clone(), log: Some(log), ..Direction::default() }
    };
    let emulation = Emulation { up: direction(&paths[0]), down: direction(&paths[1]), ..delay(0) };
    let answer = scratch("log");
    let outcome = with_echo(emulation.clone(), |port| task("flood", port, &answer));
    let [back, ms] = numbers(&answer)[..] else { panic!("two numbers") };
    assert_eq!(outcome.log_failure, None);
    for (path, counts) in paths.iter().zip([&outcome.up, &outcome.down]) {
        let stats = stats(path);
        assert_eq!(stats.arrived_packets, counts.entered_packets);
        assert_eq!(stats.delivered_packets, counts.left_packets);
        assert_eq!(stats.dropped_packets, counts.dropped_full);
        let capacity = stats.capacity_bps.unwrap();
        assert!((3.9e6..4.1e6).contains(&capacity), "{capacity}");
    }
    assert!(outcome.up.dropped_full > 0 && back > 100.0);
    // 100 packets of 2 ms each.
    let queue_ms = stats(&paths[0]).queue_p95_ms.unwrap();
    assert!((100..=203).contains(&queue_ms), "{queue_ms} of {ms}");

    let outcome = run(emulation, &words(&["sh", "-c", "kill -9 $$"])).unwrap();
    assert_eq!(outcome.status, Status::Killed(9));
    for path in paths {
        let text = fs::read_to_string(&path).unwrap();
        assert!(text.starts_with("# mahimahi mm-link ("), "{text}");
        assert!(text.ends_with('\n'));
        fs::remove_file(path).unwrap();
    }
}

/// What the log at `path` says.
fn stats(path: &Path) -> LogStats {
    LogStats::read(&fs::read(path).unwrap()[..], "log").unwrap()
}

#[test]
fn a_log_that_cannot_be_written_is_named_before_anything_begins() {
    let path = PathBuf::from("/no/such/directory/up.log");
    let log = LogFile { path, capacity: String::new(), command_line: String::new() };
    let up = Direction { log: Some(log), ..Direction::default() };
    let error = run(Emulation { up, ..delay(0) }, &words(&["true"])).unwrap_err().to_string();
    assert!(error.starts_with("/no/such/directory/up.log: No such file"), "{error}");
}

/// The last thing that a command sends arrives, though it ends at once.
#[test]
fn what_is_under_way_at_the_end_arrives() {
    let Some(_turn) = turn("what_is_under_way_at_the_end_arrives") else { return };
    let listener = TcpListener::bind("0.0.0.0:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let said = thread::spawn(move || {
        let mut said = String::new();
        listener.accept().unwrap().0.read_to_string(&mut said).unwrap();
        said
    });
    let outcome = run(delay(50), &task("farewell", port, &scratch("farewell"))).unwrap();
    assert_eq!(outcome.status, Status::Exited(0));
    assert_eq!(said.join().unwrap(), "farewell");
}

#[test]
fn links_nest() {
    let Some(_turn) = turn("links_nest") else { return };
    let answer = scratch("nest");
    let outcome = with_echo(delay(15), |port| task("nest", port, &answer));
    assert_eq!(outcome.status, Status::Exited(0));
    let times = numbers(&answer);
    assert!(times.len() == 20 && times.iter().all(|ms| *ms >= 50.0), "{times:?}");
}

/// A kernel may announce what it listens to, for a second after a device is up: around a link, inside it and inside one in it.
#[test]
fn nothing_crosses_a_link_but_what_programs_send() {
    let Some(_turn) = turn("nothing_crosses_a_link_but_what_programs_send") else { return };
    nothing_has_crossed(&run(delay(1), &task("idle", 0, Path::new("none"))).unwrap());
}

/// Two hosts behind a link of 2 × 10 ms, one of them 2 × 30 ms from it; they do not reach each other.
#[test]
fn hosts_share_a_link() {
    let Some(_turn) = turn("hosts_share_a_link") else { return };
    let answers = ["near", "far"].map(scratch);
    let mut hosts = Vec::new();
    let mut command = |port: u16| {
        for (answer, ms) in answers.iter().zip([0, 30]) {
            let command = task("round trips", port, answer);
            hosts.push(Host { access_delay: Duration::from_millis(ms), command });
        }
    };
    let socket = UdpSocket::bind("0.0.0.0:0").unwrap();
    command(socket.local_addr().unwrap().port());
    socket.set_read_timeout(Some(Duration::from_secs(2))).unwrap();
    let echo = thread::spawn(move || {
        let (mut room, mut guests) = ([0; 2000], std::collections::BTreeSet::new());
        while let Ok((len, from)) = socket.recv_from(&mut room) {
            guests.insert(from.ip());
            let _ = socket.send_to(&room[..len], from);
        }
        guests.len()
    });
    let outcome = run_hosts(delay(10), Reach::Host, &hosts).unwrap();
    assert_eq!(outcome.statuses, [Status::Exited(0); 2]);
    for (answer, least) in answers.iter().zip([20.0, 80.0]) {
        let times = numbers(answer);
        assert!(times.iter().all(|ms| *ms >= least), "{times:?}");
        assert!(times.iter().copied().fold(f64::MAX, f64::min) < least + 50.0, "{times:?}");
    }
    assert_eq!(echo.join().unwrap(), 2, "each has an address of its own");
    assert!(outcome.up.left_packets >= 40 && outcome.down.left_packets >= 40);

    // Number, exit status; a program that is not there.
    let host =
        |script: &str| Host { access_delay: Duration::ZERO, command: words(&["sh", "-c", script]) };
    let hosts = [host("exit $PACELINE_HOST"), host("exit $PACELINE_HOST"), host("kill -9 $$")];
    let outcome = run_hosts(delay(0), Reach::Host, &hosts).unwrap();
    assert_eq!(outcome.statuses, [Status::Exited(1), Status::Exited(2), Status::Killed(9)]);
    let missing = Host { command: words(&["no-such-program"]), ..host("") };
    let error = run_hosts(delay(0), Reach::Host, &[host("true"), missing]).unwrap_err();
    assert!(error.to_string().starts_with("cannot run no-such-program: No such"), "{error}");
    assert!(run_hosts(delay(0), Reach::Host, &[]).is_err());
    assert!(run_hosts(delay(0), Reach::Host, &vec![host("true"); 65]).is_err());
}

#[test]
fn two_links_at_once_do_not_meet() {
    let Some(_turn) = turn("two_links_at_once_do_not_meet") else { return };
    let answers = ["one", "two"].map(scratch);
    thread::scope(|scope| {
        for answer in &answers {
            scope.spawn(move || {
                let script = format!("echo $PACELINE_BASE > {}; sleep 0.5", answer.display());
                run(delay(1), &words(&["sh", "-c", &script])).unwrap();
            });
        }
    });
    let bases = answers.map(|answer| {
        let base = fs::read_to_string(&answer).unwrap();
        let _ = fs::remove_file(&answer);
        base
    });
    assert_ne!(bases[0], bases[1]);
}

/// Interfaces of links on this host.
fn devices() -> Vec<String> {
    let names = fs::read_dir("/sys/class/net").unwrap();
    let names = names.map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned());
    names.filter(|name| name.starts_with("paceline")).collect()
}

/// Processes that have `marker` as an argument.
fn marked(marker: &str) -> Vec<i32> {
    let processes = fs::read_dir("/proc").unwrap();
    let ids = processes.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok());
    let has = |id: &i32| {
        let line = fs::read(format!("/proc/{id}/cmdline")).unwrap_or_default();
        line.split(|byte| *byte == 0).any(|argument| argument == marker.as_bytes())
    };
    ids.filter(has).collect()
}

/// Children of a process, by the threads that started them.
fn children(id: i32) -> Vec<i32> {
    let tasks = fs::read_dir(format!("/proc/{id}/task")).into_iter().flatten().flatten();
    let lists = tasks.filter_map(|task| fs::read_to_string(task.path().join("children")).ok());
    lists
        .flat_map(|list| list.split_whitespace().map(|id| id.parse().unwrap()).collect::<Vec<_>>())
        .collect()
}

/// A process with a link, in which a command and a daemon sleep.
fn hold(marker: &str) -> Child {
    Command::new(std::env::current_exe().unwrap())
        .args(["inside", "--exact", "--ignored", "--nocapture", "-q"])
        .envs([("TASK", "hold"), ("PORT", "0"), ("MARKER", marker)])
        .stdout(Stdio::null())
        .spawn()
        .unwrap()
}

fn kill(id: i32, signal: &str) {
    // It may be gone already.
    let _ = Command::new("kill").args([signal, &id.to_string()]).stderr(Stdio::null()).status();
}

fn wait_until(what: &str, mut holds: impl FnMut() -> bool) {
    let begin = Instant::now();
    while !holds() {
        assert!(begin.elapsed() < Duration::from_secs(20), "{what}");
        thread::sleep(Duration::from_millis(5));
    }
}

#[test]
fn daemons_end_with_the_command() {
    let Some(_turn) = turn("daemons_end_with_the_command") else { return };
    let marker = format!("86399.{}", std::process::id());
    let script = format!("setsid sleep {marker} & setsid setsid sleep {marker} & exit 5");
    let outcome = run(delay(1), &words(&["sh", "-c", &script])).unwrap();
    assert_eq!(outcome.status, Status::Exited(5));
    wait_until("the daemons are gone", || marked(&marker).is_empty());
}

/// Whoever is killed, at whatever moment: nothing stays.
#[test]
fn kills_at_random_moments_leave_nothing() {
    let Some(_turn) = turn("kills_at_random_moments_leave_nothing") else { return };
    let before = devices();
    let seed = u64::from(std::process::id());
    let mut random = RandomStream::new(seed, 0, Purpose::Loss);
    for round in 0..30 {
        let marker = format!("86398.{}{round:02}", std::process::id());
        let mut emulator = hold(&marker);
        let id = emulator.id() as i32;
        thread::sleep(Duration::from_secs_f64(0.08 * random.uniform()));
        let victim = match round % 3 {
            0 => id,
            // The init of the processes inside, if it is there yet; then the command itself.
            1 => children(id).first().copied().unwrap_or(id),
            _ => marked(&marker).first().copied().unwrap_or(id),
        };
        kill(victim, "-KILL");
        if victim != id {
            // The daemon may have been the victim; then the command runs on. The test runner dies of the signal.
            thread::sleep(Duration::from_millis(20));
            kill(id, "-TERM");
        }
        emulator.wait().unwrap();
        wait_until(&format!("round {round}, seed {seed}: processes"), || {
            marked(&marker).is_empty()
        });
    }
    wait_until("devices", || devices().iter().all(|name| before.contains(name)));
}
