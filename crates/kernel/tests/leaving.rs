//! What is left in the running kernel: of a `load` or of a holder that is killed nothing, of an unloaded controller nothing after its
//! last flow.
//! Needs root and a kernel with struct_ops; says so when it skips.

use std::collections::BTreeSet;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use libbpf_rs::MapType;
use libbpf_rs::query::MapInfoIter;
use nix::sys::socket::{setsockopt, sockopt::TcpCongestion};
use paceline_cc::Portable;
use paceline_kernel::{Loaded, Request};

/// Tells the child which name to load.
const NAME: &str = "PACELINE_TEST_LOAD";

/// Whether the machine lacks what these tests need; says so past the test harness, which hides what passing tests print.
fn skipped() -> bool {
    let Err(reason) = paceline_kernel::check() else { return false };
    let line = format!("\nSKIPPED what controllers leave in the kernel: {reason}\n");
    let _ = std::io::stderr().write_all(line.as_bytes());
    true
}

fn request(algorithm: &str, name: &str) -> Request {
    let algorithm = Portable::find(algorithm).unwrap();
    let params = algorithm.spec().params(None).unwrap();
    Request { algorithm, params, name: Some(name.into()), record: false }
}

/// Until `done`, for at most ten seconds: what others on this machine do meanwhile takes less.
fn soon(done: impl Fn() -> bool) -> bool {
    let began = Instant::now();
    while !done() {
        if began.elapsed() > Duration::from_secs(10) {
            return false;
        }
        std::thread::sleep(Duration::from_millis(50));
    }
    true
}

/// The struct_ops maps of ours in the kernel, registered or not.
fn struct_ops_maps() -> BTreeSet<u32> {
    let ours = |name: &std::ffi::OsStr| name.as_encoded_bytes().starts_with(b"pl_");
    let all = MapInfoIter::default();
    all.filter(|map| map.ty == MapType::StructOps && ours(&map.name)).map(|map| map.id).collect()
}

/// The other test starts this one in a process of its own, and kills it.
#[test]
#[ignore = "is a part of another test"]
fn child_that_loads() {
    let Ok(name) = std::env::var(NAME) else { return };
    println!("ready");
    paceline_kernel::load(&request("mpc", &name)).unwrap();
}

/// The same, with one that the child holds.
#[test]
#[ignore = "is a part of another test"]
fn child_that_holds() {
    let Ok(name) = std::env::var(NAME) else { return };
    let _held = paceline_kernel::hold(&request("reno", &name)).unwrap();
    println!("ready");
    // Until it is killed.
    loop {
        std::thread::park();
    }
}

/// A process that `does` something with a controller of this name and has said that it is ready, and what it prints to.
fn child(does: &str, name: &str) -> (Child, impl Iterator) {
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args([does, "--exact", "--ignored", "--nocapture"])
        .env(NAME, name)
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    assert!(lines.any(|line| line.unwrap() == "ready"));
    (child, lines)
}

fn called(name: &str) -> Option<Loaded> {
    paceline_kernel::loaded().unwrap().into_iter().find(|loaded| loaded.name == name)
}

#[test]
fn a_load_that_is_killed_leaves_nothing() {
    if skipped() {
        return;
    }
    let before = struct_ops_maps();
    // How long it takes when it is left alone.
    let own = std::process::id();
    let name = format!("plk{own}");
    let (mut alone, lines) = child("child_that_loads", &name);
    let began = Instant::now();
    lines.for_each(drop);
    assert!(alone.wait().unwrap().success());
    let whole = began.elapsed();
    paceline_kernel::unload(&name).unwrap();
    let (kills, mut finished) = (12, 0);
    for kill in 0..kills {
        let name = format!("plk{own}_{kill}");
        let (mut child, _lines) = child("child_that_loads", &name);
        std::thread::sleep(whole * kill / kills);
        child.kill().unwrap();
        child.wait().unwrap();
        // It came through, or there is nothing of that name.
        if called(&name).is_some() {
            finished += 1;
            paceline_kernel::unload(&name).unwrap();
        }
    }
    println!("{finished} of {kills} loads were done before they were killed, in {whole:?}");
    // Others may load controllers meanwhile: theirs are registered, or about to be.
    let left = || {
        let known: BTreeSet<u32> =
            paceline_kernel::loaded().unwrap().iter().map(|l| l.id).collect();
        let left = &(&struct_ops_maps() - &before) - &known;
        left.is_empty()
    };
    assert!(soon(left), "{before:?}, {:?}", struct_ops_maps());
}

#[test]
fn what_is_held_goes_with_its_holder() {
    if skipped() {
        return;
    }
    let dropped = format!("plh{}", std::process::id());
    let held = paceline_kernel::hold(&request("reno", &dropped)).unwrap();
    let listed = called(&dropped).unwrap();
    assert!(listed.registered);
    if listed.held {
        let refused = paceline_kernel::unload(&dropped).unwrap_err().to_string();
        assert!(refused.contains("belongs to a run"), "{refused}");
    }
    drop(held);
    assert!(soon(|| called(&dropped).is_none()));

    let killed = format!("plk{}_h", std::process::id());
    let (mut child, _lines) = child("child_that_holds", &killed);
    let held = called(&killed).unwrap().held;
    child.kill().unwrap();
    child.wait().unwrap();
    if !held {
        let line = "\nSKIPPED the end of a killed holder's controller: this kernel has no links of struct_ops\n";
        let _ = std::io::stderr().write_all(line.as_bytes());
        paceline_kernel::unload(&killed).unwrap();
    }
    assert!(soon(|| called(&killed).is_none()));
}

#[test]
fn an_unloaded_controller_leaves_with_its_last_busy_flow() {
    if skipped() {
        return;
    }
    for algorithm in paceline_kernel::algorithms() {
        let name = format!("plbusy_{algorithm}");
        let id = paceline_kernel::load(&request(algorithm, &name)).unwrap().id;
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let mut sender = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let (mut receiver, _) = listener.accept().unwrap();
        let received = std::thread::spawn(move || {
            let (mut buffer, mut received) = (vec![0; 1 << 16], 0);
            loop {
                match receiver.read(&mut buffer).unwrap() {
                    0 => return received,
                    bytes => received += bytes,
                }
            }
        });
        setsockopt(&sender, TcpCongestion, &name.clone().into()).unwrap();
        let (data, mut sent) = (vec![7; 1 << 16], 0);
        for round in 0..200 {
            sender.write_all(&data).unwrap();
            sent += data.len();
            if round == 50 {
                paceline_kernel::unload(&name).unwrap();
            }
            if round == 150 {
                let leaving = called(&name).unwrap();
                assert!(!leaving.registered);
                assert_eq!(paceline_kernel::flows(&leaving).unwrap().len(), 1, "{algorithm}");
            }
        }
        drop(sender);
        assert_eq!(received.join().unwrap(), sent);
        assert!(soon(|| !struct_ops_maps().contains(&id)), "{algorithm} did not leave");
    }
}
