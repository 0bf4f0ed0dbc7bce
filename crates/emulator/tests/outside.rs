//! The network behind the host, by address translation. A network namespace plays the host, another one what is outside, so no
//! real network is needed or touched. Needs root, /dev/net/tun and iproute2, and skips with a word where these are not.

use std::ffi::OsString;
use std::fs;
use std::io::{ErrorKind, Read as _, Write as _};
use std::net::{IpAddr, Ipv4Addr, Shutdown, TcpListener, TcpStream, UdpSocket};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use nix::mount::{MsFlags, mount};
use nix::sched::{CloneFlags, unshare};
use nix::unistd::gettid;
use paceline_emulator::{Direction, Emulation, Outcome, Reach, Status, run_reaching};
use paceline_net::{Capacity, LinkSpec, PS_PER_MS};

const SERVER: &str = "203.0.113.1";
const HOST: &str = "203.0.113.2";
/// On no network of the host's: behind a router.
const FAR: &str = "192.0.2.77";
const PORT: u16 = 7000;
/// What goes up and comes back by TCP.
const BYTES: usize = 4_000_000;

fn missing() -> Option<&'static str> {
    if Command::new("ip").arg("-V").output().is_err() {
        return Some("needs iproute2");
    }
    // The effective user of the process.
    let is_root = fs::metadata("/proc/self").map(|own| std::os::unix::fs::MetadataExt::uid(&own));
    if is_root.ok() != Some(0) {
        return Some("needs root");
    }
    let tun = fs::OpenOptions::new().read(true).write(true).open("/dev/net/tun");
    tun.err().map(|_| "needs /dev/net/tun")
}

fn ip(line: &str) {
    let status = Command::new("ip").args(line.split(' ')).status().unwrap();
    assert!(status.success(), "ip {line}");
}

fn on_a_thread<T: Send>(body: impl FnOnce() -> T + Send) -> T {
    thread::scope(|scope| scope.spawn(body).join().unwrap())
}

/// A file name of our own.
fn scratch(name: &str) -> PathBuf {
    std::env::temp_dir().join(format!("paceline-outside-{name}-{}", std::process::id()))
}

/// Runs `body` on a host that reaches a network, in which servers at [`PORT`] echo what they get.
fn on_a_host<T: Send>(body: impl FnOnce() -> T + Send) -> T {
    let (ready, when_ready) = mpsc::channel();
    let (joined, when_joined) = mpsc::channel::<()>();
    // Ends with the process.
    thread::spawn(move || {
        unshare(CloneFlags::CLONE_NEWNET).unwrap();
        ready.send(format!("/proc/{}/task/{}/ns/net", std::process::id(), gettid())).unwrap();
        when_joined.recv().unwrap();
        ip("link set lo up");
        ip(&format!("address add {SERVER}/24 dev wan"));
        ip(&format!("address add {FAR}/32 dev lo"));
        ip("link set wan up");
        // One for each address: it answers from there.
        for address in [SERVER, FAR] {
            let udp = UdpSocket::bind((address, PORT)).unwrap();
            thread::spawn(move || {
                let mut room = [0; 2000];
                while let Ok((_, from)) = udp.recv_from(&mut room) {
                    // Who is asking, as a resolver might want to know.
                    let _ = udp.send_to(from.ip().to_string().as_bytes(), from);
                }
            });
        }
        let tcp = TcpListener::bind(("0.0.0.0", PORT)).unwrap();
        ready.send(String::new()).unwrap();
        while let Ok((mut stream, _)) = tcp.accept() {
            let mut got = Vec::new();
            stream.read_to_end(&mut got).unwrap();
            stream.write_all(&got).unwrap();
        }
    });
    on_a_thread(move || {
        let network = when_ready.recv().unwrap();
        unshare(CloneFlags::CLONE_NEWNET | CloneFlags::CLONE_NEWNS).unwrap();
        let none = None::<&str>;
        mount(none, "/", none, MsFlags::MS_REC | MsFlags::MS_PRIVATE, none).unwrap();
        ip("link set lo up");
        ip(&format!("link add eth0 type veth peer name wan netns {network}"));
        ip(&format!("address add {HOST}/24 dev eth0"));
        ip("link set eth0 up");
        ip(&format!("route add default via {SERVER}"));
        fs::write("/proc/sys/net/ipv4/ip_forward", "0").unwrap();
        joined.send(()).unwrap();
        when_ready.recv().unwrap();
        body()
    })
}

fn wait_until(what: &str, mut holds: impl FnMut() -> bool) {
    let begin = Instant::now();
    while !holds() {
        assert!(begin.elapsed() < Duration::from_secs(20), "{what}");
        thread::sleep(Duration::from_millis(5));
    }
}

/// The command that does `task` (below).
fn command(task: &str, answer: &Path) -> Vec<OsString> {
    let settings = [format!("TASK={task}"), format!("ANSWER={}", answer.display())];
    let mut command: Vec<OsString> = vec!["env".into()];
    command.extend(settings.map(OsString::from));
    command.push(std::env::current_exe().unwrap().into());
    command
        .extend(["inside_main", "--exact", "--ignored", "--nocapture", "-q"].map(OsString::from));
    command
}

fn emulation() -> Emulation {
    let spec = LinkSpec {
        capacity: Capacity::Constant(200e6),
        delay_ps: 5 * PS_PER_MS,
        ..LinkSpec::default()
    };
    let direction = Direction { spec, ..Direction::default() };
    Emulation { up: direction.clone(), down: direction, ..Emulation::default() }
}

/// Runs the task (below) behind a link; its answer, and what became of the link.
fn inside(task: &str, reach: Reach) -> (String, Outcome) {
    let answer = scratch(task);
    let outcome = run_reaching(emulation(), reach, &command(task, &answer)).expect("a link");
    assert_eq!(outcome.status, Status::Exited(0));
    let text = fs::read_to_string(&answer).expect("an answer");
    let _ = fs::remove_file(answer);
    (text, outcome)
}

/// Devices, rules and sockets of links on this host.
fn remains() -> Vec<String> {
    let table = |name: &str| fs::read_to_string(format!("/proc/thread-self/net/{name}")).unwrap();
    let lines = |name: &str, mark: &str| {
        let text = table(name);
        let found = text.lines().filter(|line| line.contains(mark)).map(str::to_owned);
        found.collect::<Vec<_>>()
    };
    // Listening sockets; of UDP all, for there are no others; of raw and packet sockets all but the line of titles.
    let sockets = [lines("tcp", " 0A "), lines("udp", ": "), lines("raw", ": ")].concat();
    let packets = table("packet").lines().skip(1).map(str::to_owned).collect();
    let forwards = fs::read_to_string("/proc/sys/net/ipv4/ip_forward").unwrap();
    let forwards = if forwards.trim() == "0" { vec![] } else { vec!["ip_forward".to_owned()] };
    [lines("dev", "paceline"), sockets, packets, forwards].concat()
}

/// What the programs inside do.
mod tasks {
    use super::*;

    pub fn reach_outside() -> String {
        let far: Ipv4Addr = FAR.parse().unwrap();
        let mut said = format!("{} {}\n", ask(SERVER), ask(FAR));
        let sent: Vec<u8> = (0..BYTES).map(|k| (k % 251) as u8).collect();
        let mut stream = TcpStream::connect((far, PORT)).unwrap();
        stream.write_all(&sent).unwrap();
        stream.shutdown(Shutdown::Write).unwrap();
        let mut got = Vec::new();
        stream.read_to_end(&mut got).unwrap();
        said += if got == sent { "all came back\n" } else { "garbled\n" };
        let error = TcpStream::connect((far, PORT + 1)).unwrap_err().kind();
        said += &format!("{error:?}\n");
        // Nobody is there, and an ICMP error says so.
        let socket = UdpSocket::bind("0.0.0.0:0").unwrap();
        socket.set_read_timeout(Some(Duration::from_secs(5))).unwrap();
        socket.connect((far, PORT + 1)).unwrap();
        socket.send(b"?").unwrap();
        said += &format!("{:?}\n", socket.recv(&mut [0; 10]).unwrap_err().kind());
        let ping = Command::new("ping").args(["-n", "-c", "1", "-W", "5", FAR]).output();
        let is_answered = ping.is_ok_and(|ping| ping.status.success());
        said + if is_answered { "pong\n" } else { "no pong\n" }
    }

    pub fn stay_inside() -> String {
        let timeout = Duration::from_millis(500);
        let address = (SERVER.parse::<IpAddr>().unwrap(), PORT).into();
        format!("{:?}", TcpStream::connect_timeout(&address, timeout).unwrap_err().kind())
    }

    /// Talks without an end, so that ports are held.
    pub fn chatter(started: &Path) -> String {
        let _stream = TcpStream::connect((SERVER, PORT)).unwrap();
        loop {
            ask(SERVER);
            fs::write(started, "").unwrap();
        }
    }

    pub fn ask_a_name() -> String {
        let text = fs::read_to_string("/etc/resolv.conf").unwrap();
        let server = text.trim().strip_prefix("nameserver ").unwrap();
        let socket = UdpSocket::bind("0.0.0.0:0").unwrap();
        socket.set_read_timeout(Some(Duration::from_secs(5))).unwrap();
        socket.connect((server, 53)).unwrap();
        socket.send(b"name").unwrap();
        let mut room = [0; 100];
        let len = socket.recv(&mut room).unwrap();
        String::from_utf8_lossy(&room[..len]).into_owned()
    }

    /// Who `server` thinks that we are.
    fn ask(server: &str) -> String {
        let socket = UdpSocket::bind("0.0.0.0:0").unwrap();
        socket.set_read_timeout(Some(Duration::from_secs(5))).unwrap();
        socket.connect((server, PORT)).unwrap();
        socket.send(b"who am I?").unwrap();
        let mut room = [0; 100];
        let len = socket.recv(&mut room).unwrap();
        String::from_utf8_lossy(&room[..len]).into_owned()
    }
}

#[test]
#[ignore = "run by the other tests, behind a link"]
fn inside_main() {
    let Ok(task) = std::env::var("TASK") else { return };
    let path = PathBuf::from(std::env::var("ANSWER").unwrap());
    let answer = match task.as_str() {
        "chatter" => tasks::chatter(&path),
        "emulator" => {
            let _ = run_reaching(emulation(), Reach::Outside, &command("chatter", &path));
            return;
        }
        "outside" => tasks::reach_outside(),
        "host" => tasks::stay_inside(),
        "names" => tasks::ask_a_name(),
        other => panic!("no task {other}"),
    };
    fs::write(path, answer).unwrap();
}

/// Everything in one test: hosts are played one after the other.
#[test]
fn a_program_reaches_what_the_host_reaches_when_asked() {
    if let Some(why) = missing() {
        let line = format!("\nSKIPPED a_program_reaches_…: {why}\n");
        let _ = std::io::stderr().write_all(line.as_bytes());
        return;
    }
    on_a_host(|| {
        let (said, outcome) = inside("outside", Reach::Outside);
        let lines: Vec<&str> = said.lines().collect();
        let us = format!("{HOST} {HOST}");
        assert_eq!(lines[..4], [&us, "all came back", "ConnectionRefused", "ConnectionRefused"]);
        if Command::new("ping").arg("-V").output().is_ok() {
            assert_eq!(lines[4], "pong");
        }
        assert!(outcome.up.left_packets as usize > BYTES / 1500, "{:?}", outcome.up);
        assert!(outcome.down.left_packets as usize > BYTES / 1500, "{:?}", outcome.down);
        // Not asked for: nothing.
        let (said, _) = inside("host", Reach::Host);
        assert_ne!(said, format!("{:?}", ErrorKind::ConnectionRefused));
        assert_eq!(remains(), [""; 0]);
        // Whenever the emulator is killed.
        let started = scratch("started");
        for round in 0..8 {
            let words = command("emulator", &started);
            let mut emulator = Command::new(&words[0]);
            let mut emulator =
                emulator.args(&words[1..]).stdout(Stdio::null()).spawn().expect("an emulator");
            if round % 2 == 0 {
                wait_until("it talks", || started.exists());
                assert!(remains().len() > 4, "{:?}", remains());
            } else {
                thread::sleep(Duration::from_millis(7 * round));
            }
            emulator.kill().unwrap();
            emulator.wait().unwrap();
            wait_until("nothing is left", || remains().is_empty());
            let _ = fs::remove_file(&started);
        }
        // A resolver that listens on this host alone.
        let resolver = UdpSocket::bind("127.0.0.1:53").unwrap();
        thread::spawn(move || {
            let mut room = [0; 100];
            while let Ok((len, from)) = resolver.recv_from(&mut room) {
                room[..len].reverse();
                let _ = resolver.send_to(&room[..len], from);
            }
        });
        let configuration = scratch("resolv.conf");
        fs::write(&configuration, "nameserver 127.0.0.1\n").unwrap();
        let none = None::<&str>;
        mount(Some(&configuration), "/etc/resolv.conf", none, MsFlags::MS_BIND, none).unwrap();
        assert_eq!(inside("names", Reach::Outside).0, "eman");
        fs::remove_file(configuration).unwrap();
    });
}
