//! The virtual machine: QEMU, whose clock counts instructions.

use std::fs::File;
use std::io::{self, Write};
use std::ops::ControlFlow;
use std::os::fd::AsRawFd;
use std::os::unix::fs::FileExt;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use paceline_net::Picos;
use rustix::fs::{MemfdFlags, memfd_create};
use rustix::process::{Signal, set_parent_process_death_signal};

use super::VmError;
use super::channel::{Answer, BYTES, Outer};

const QEMU: &str = "qemu-system-x86_64";
/// An instruction of the guest takes 2 to this power, ns.
pub const SHIFT: u32 = 0;
/// Memory of the guest, MiB.
const MEMORY_MIB: u32 = 768;
/// Nothing random comes from the host. Without its special copying instructions, of which every byte counts as an instruction, the
/// kernel copies words.
const PROCESSOR: &str = "max,-rdrand,-rdseed,-erms,-fsrm";
/// The clock is the processor's. What costs instructions and has no part in TCP is left out: access control, zeroing of memory that is
/// written anyway, choosing between states of sleep.
const KERNEL_OPTIONS: &str = "console=ttyS0 quiet loglevel=4 panic=-1 nokaslr mitigations=off tsc=reliable clocksource=tsc random.trust_cpu=off \
                              audit=0 lsm= init_on_alloc=0 cpuidle.off=1 nowatchdog";
/// How often the guest is looked at.
const WATCH: Duration = Duration::from_millis(20);
/// A guest hangs whose clock has stood still while QEMU has used so much processor time: start-up takes it some seconds, …
const PATIENCE_CPU_S: f64 = 100.0;
/// … or for so long without.
const PATIENCE: Duration = Duration::from_secs(1800);
/// Lines of the console that an error shows.
const SHOWN_LINES: usize = 40;
/// Of these at most so many bytes are read.
const SHOWN_BYTES: u64 = 8 << 10;

/// QEMU's version, as it names itself.
pub fn check() -> Result<String, VmError> {
    let output = Command::new(QEMU).arg("--version").output().map_err(|_| {
        VmError::Unavailable(format!(
            "world vm needs {QEMU} (Debian, Ubuntu: apt-get install qemu-system-x86; paceline doctor tells)"
        ))
    })?;
    let text = String::from_utf8_lossy(&output.stdout);
    let version = text.split_whitespace().nth(3).unwrap_or("of unknown version");
    Ok(format!("QEMU {version}"))
}

/// What is to run.
pub struct Machine<'a> {
    pub kernel: &'a File,
    pub root: &'a [u8],
    /// Of whatever the guest draws at random.
    pub seed: u64,
}

/// Ends the process when it goes.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        // It may have ended.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

impl Machine<'_> {
    /// Runs it to its end, showing `watch` the guest's time, ps; `None` when that broke it off. Nothing is left behind, whatever ends
    /// this process: files are in memory alone, and QEMU goes with the thread that started it.
    pub fn run(
        &self,
        watch: &mut dyn FnMut(Picos) -> ControlFlow<()>,
    ) -> Result<Option<Answer>, VmError> {
        let fail = |what: &'static str| {
            move |error: io::Error| VmError::Failed(format!("{what}: {error}"))
        };
        let in_memory = |name: &str| memfd_create(name, MemfdFlags::CLOEXEC).map(File::from);
        let shared = in_memory("paceline-vm").map_err(|e| fail("shared memory")(e.into()))?;
        shared.set_len(BYTES as u64).map_err(fail("shared memory"))?;
        let mut root =
            in_memory("paceline-vm-root").map_err(|e| fail("the guest's root")(e.into()))?;
        root.write_all(self.root).map_err(fail("the guest's root"))?;
        // Written without waiting for anybody: a guest is not to notice how fast its console is read.
        let console =
            in_memory("paceline-vm-console").map_err(|e| fail("the console")(e.into()))?;
        let mut command = self.command(&path_of(&shared), &path_of(&root), &path_of(&console));
        let errors = console.try_clone().map_err(fail("the console"))?;
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(errors);
        // SAFETY: between fork and exec only a system call is made.
        unsafe {
            command.pre_exec(|| Ok(set_parent_process_death_signal(Some(Signal::KILL))?));
        }
        let mut child = Running(command.spawn().map_err(fail("start QEMU"))?);
        let channel = Outer(&shared);
        let (mut last, mut moved, mut moved_cpu_s) = (0, Instant::now(), 0.0);
        let status = loop {
            if let Some(status) = child.0.try_wait().map_err(fail("wait for QEMU"))? {
                break status;
            }
            let now = channel.reached().map_err(fail("shared memory"))?;
            if watch(now).is_break() {
                return Ok(None);
            }
            let cpu_s = cpu_s(child.0.id());
            if now != last {
                (last, moved, moved_cpu_s) = (now, Instant::now(), cpu_s);
            }
            if moved.elapsed() > PATIENCE || cpu_s - moved_cpu_s > PATIENCE_CPU_S {
                let at_s = last as f64 / 1e12;
                let why = format!("the guest hangs, {at_s:.3} s into the run{}", shown(&console));
                return Err(VmError::Failed(why));
            }
            thread::sleep(WATCH);
        };
        match channel.answer().map_err(fail("shared memory"))? {
            Some(answer) => Ok(Some(answer)),
            None => Err(VmError::Failed(format!(
                "the guest ended without an answer (QEMU: {status}){}",
                shown(&console)
            ))),
        }
    }

    fn command(&self, shared: &str, root: &str, console: &str) -> Command {
        let mut command = Command::new(QEMU);
        let mebibytes = BYTES >> 20;
        // One processor, whose every instruction takes the same time and which skips what it would sleep: guest time depends on the
        // guest alone. Nothing random comes from the host. The recording (to nowhere) is for its lock: without it QEMU's two threads
        // may both advance the clock when the processor goes to sleep, now and then, on a busy host.
        command.args(["-nodefaults", "-no-user-config", "-display", "none", "-no-reboot"]);
        command.args(["-accel", "tcg,thread=single", "-smp", "1", "-cpu", PROCESSOR]);
        command
            .arg("-icount")
            .arg(format!("shift={SHIFT},align=off,sleep=off,rr=record,rrfile=/dev/null"));
        command.args(["-rtc", "base=2026-01-01T00:00:00,clock=vm"]);
        command.arg("-seed").arg(self.seed.to_string());
        command.arg("-m").arg(MEMORY_MIB.to_string());
        command.args(["-kernel", &path_of(self.kernel), "-initrd", root]);
        command.args(["-append", KERNEL_OPTIONS]);
        let console = format!("file,id=console,path={console},append=on");
        command.args(["-chardev", &console, "-serial", "chardev:console"]);
        let memory =
            format!("memory-backend-file,id=shared,size={mebibytes}M,mem-path={shared},share=on");
        command.args(["-object", &memory, "-device", "ivshmem-plain,memdev=shared"]);
        command
    }
}

/// Processor time of another process, s; 0 when it is over.
fn cpu_s(process: u32) -> f64 {
    let stat = std::fs::read_to_string(format!("/proc/{process}/stat")).unwrap_or_default();
    // Behind the name, which may hold anything: utime and stime, the 14th and 15th of proc(5), in hundredths on every x86.
    let fields = stat.rsplit(')').next().unwrap_or_default().split_whitespace();
    fields.skip(11).take(2).filter_map(|field| field.parse::<f64>().ok()).sum::<f64>() / 100.0
}

/// A path under which another process of this user finds `file`.
fn path_of(file: &File) -> String {
    format!("/proc/{}/fd/{}", std::process::id(), file.as_raw_fd())
}

/// The last lines of the console, as an error ends with them.
fn shown(console: &File) -> String {
    let length = console.metadata().map_or(0, |data| data.len());
    let shown = length.min(SHOWN_BYTES);
    let mut bytes = vec![0; shown as usize];
    // What cannot be read is not shown.
    let _ = console.read_exact_at(&mut bytes, length - shown);
    let text = String::from_utf8_lossy(&bytes);
    let lines = text.lines().map(|line| line.replace(char::is_control, ""));
    let lines: Vec<String> = lines.filter(|line| !line.trim().is_empty()).collect();
    let last = &lines[lines.len().saturating_sub(SHOWN_LINES)..];
    match last {
        [] => "; its console shows nothing".into(),
        _ => format!("; its console:\n  {}", last.join("\n  ")),
    }
}
