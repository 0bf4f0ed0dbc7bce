//! What runs inside: the first process of the guest. It makes the machine usable, carries the scenario out as world `live` does, and
//! switches the machine off.

use std::ffi::CString;
use std::fs::{self, File, OpenOptions};
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

use paceline_live::LiveError;
use rustix::mm::{MapFlags, ProtFlags, mmap};
use rustix::mount::{MountFlags, mount};
use rustix::system::{RebootCommand, finit_module, reboot};

use super::channel::{Answer, BYTES, Inner, Job};
use crate::scenario::Scenario;
use crate::world::{WorldError, over_sockets};

/// Where the job is.
pub const JOB: &str = "/job";
/// Where modules are.
pub const MODULES: &str = "/modules";
/// The folder of the scenario's traces.
pub const SCENARIO: &str = "/scenario";
/// PCI vendor and device of shared memory (QEMU's docs/specs/ivshmem-spec).
const SHARED_MEMORY: [&str; 2] = ["0x1af4", "0x1110"];
/// MODULE_INIT_COMPRESSED_FILE.
const COMPRESSED: i32 = 4;

/// Does the guest's work. Returns only when it is not the first process of a machine.
pub fn main() {
    if std::process::id() != 1 {
        eprintln!(
            "paceline-guest: runs as the first process of a virtual machine (paceline run --on vm)"
        );
        return;
    }
    let done = prepare().and_then(|job| {
        let mut channel = Inner(shared_memory()?);
        let answer = carry_out(&job, &mut channel);
        channel.answer(&answer);
        Ok(())
    });
    if let Err(why) = done {
        // To the console, of which the host shows the end.
        eprintln!("paceline-guest: {why}");
    }
    let _ = reboot(RebootCommand::Restart);
}

/// File systems and settings of the machine, and the job.
fn prepare() -> Result<Job, String> {
    for (kind, place) in
        [("proc", "/proc"), ("sysfs", "/sys"), ("devtmpfs", "/dev"), ("bpf", "/sys/fs/bpf")]
    {
        mount(kind, place, kind, MountFlags::empty(), None)
            .map_err(|error| format!("mount {place}: {error}"))?;
    }
    // The emulator's threads are the network: nothing may take the processor from them.
    let set = |path: &str, value: &str| {
        fs::write(path, value).map_err(|error| format!("{path}: {error}"))
    };
    set("/proc/sys/kernel/sched_rt_runtime_us", "-1")?;
    let bytes = fs::read(JOB).map_err(|error| format!("{JOB}: {error}"))?;
    let job: Job = postcard::from_bytes(&bytes).map_err(|error| format!("{JOB}: {error}"))?;
    for name in &job.modules {
        let path = Path::new(MODULES).join(name);
        let load = || -> std::io::Result<()> {
            let flags = if name.ends_with(".ko") { 0 } else { COMPRESSED };
            Ok(finit_module(File::open(&path)?, &CString::default(), flags)?)
        };
        load().map_err(|error| format!("load the module {name}: {error}"))?;
    }
    Ok(job)
}

/// The memory that the host sees.
fn shared_memory() -> Result<&'static mut [u8], String> {
    let read = |path: PathBuf| fs::read_to_string(path).unwrap_or_default();
    let devices = fs::read_dir("/sys/bus/pci/devices").map_err(|error| format!("PCI: {error}"))?;
    let mut devices = devices.filter_map(|entry| Some(entry.ok()?.path()));
    let wanted = |device: &PathBuf| {
        [read(device.join("vendor")), read(device.join("device"))]
            .map(|text| text.trim().to_owned())
            == SHARED_MEMORY
    };
    let device = devices.find(wanted).ok_or("there is no shared memory")?;
    fs::write(device.join("enable"), "1").map_err(|error| format!("shared memory: {error}"))?;
    let file = OpenOptions::new().read(true).write(true).open(device.join("resource2"));
    let file = file.map_err(|error| format!("shared memory: {error}"))?;
    let access = ProtFlags::READ | ProtFlags::WRITE;
    // SAFETY: a new mapping, which nothing else in this machine uses and which stays until its end. The host reads it while the
    // guest writes; it takes no word for complete before the guest's last one.
    unsafe {
        let start = mmap(std::ptr::null_mut(), BYTES, access, MapFlags::SHARED, &file, 0);
        let start = start.map_err(|error| format!("shared memory: {error}"))?;
        Ok(std::slice::from_raw_parts_mut(start.cast::<u8>(), BYTES))
    }
}

fn carry_out(job: &Job, channel: &mut Inner<'_>) -> Answer {
    let scenario = Scenario::parse(&job.scenario, "scenario", Path::new(SCENARIO), &[]);
    let scenario = match scenario {
        Ok(scenario) => scenario,
        Err(error) => return Answer::Failed(error.to_string()),
    };
    let options = paceline_live::Options { realtime: true };
    let mut watch = |now| {
        channel.reached(now);
        ControlFlow::Continue(())
    };
    match over_sockets(&scenario, job.seed, options, &mut |_| {}, &mut watch) {
        Ok(finished) => Answer::Finished(Box::new(finished)),
        Err(WorldError::Live(LiveError::Unsupported(why))) => Answer::Unsupported(why),
        Err(WorldError::Live(LiveError::Plan(why))) => Answer::Unsupported(why.to_string()),
        Err(error) => Answer::Failed(error.to_string()),
    }
}
