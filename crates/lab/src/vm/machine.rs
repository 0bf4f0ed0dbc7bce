//! The virtual machine: QEMU, whose clock counts instructions.

use std::collections::VecDeque;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Write};
use std::ops::ControlFlow;
use std::os::fd::AsRawFd;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};
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
/// How often the guest is looked at.
const WATCH: Duration = Duration::from_millis(20);
/// A guest whose clock has stood still for so long hangs.
const PATIENCE: Duration = Duration::from_secs(180);
/// Lines of the console that an error shows.
const SHOWN_LINES: usize = 12;

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

/// The last lines of the console.
type Console = Arc<Mutex<VecDeque<String>>>;

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
        let (output, input) = io::pipe().map_err(fail("a pipe"))?;
        let mut command = self.command(&path_of(&shared), &path_of(&root));
        let copy = input.try_clone().map_err(fail("a pipe"))?;
        command.stdin(Stdio::null()).stdout(input).stderr(copy);
        // SAFETY: between fork and exec only a system call is made.
        unsafe {
            command.pre_exec(|| Ok(set_parent_process_death_signal(Some(Signal::KILL))?));
        }
        let mut child = Running(command.spawn().map_err(fail("start QEMU"))?);
        // It holds the other end of the pipe.
        drop(command);
        let console = Console::default();
        let lines = console.clone();
        let reader = thread::Builder::new().name("paceline-console".into());
        let reader = reader.spawn(move || keep_lines(BufReader::new(output), &lines));
        let reader = reader.map_err(fail("start a thread"))?;
        let channel = Outer(&shared);
        let (mut last, mut moved) = (0, Instant::now());
        let status = loop {
            if let Some(status) = child.0.try_wait().map_err(fail("wait for QEMU"))? {
                break status;
            }
            let now = channel.reached().map_err(fail("shared memory"))?;
            if watch(now).is_break() {
                return Ok(None);
            }
            if now != last {
                (last, moved) = (now, Instant::now());
            }
            if moved.elapsed() > PATIENCE {
                let seconds = PATIENCE.as_secs();
                let why = format!(
                    "the guest's clock stood still for {seconds} s at {:.3} s",
                    last as f64 / 1e12
                );
                return Err(VmError::Failed(why + &shown(&console)));
            }
            thread::sleep(WATCH);
        };
        // With QEMU the pipe ends.
        let _ = reader.join();
        match channel.answer().map_err(fail("shared memory"))? {
            Some(answer) => Ok(Some(answer)),
            None => Err(VmError::Failed(format!(
                "the guest ended without an answer (QEMU: {status}){}",
                shown(&console)
            ))),
        }
    }

    fn command(&self, shared: &str, root: &str) -> Command {
        let mut command = Command::new(QEMU);
        let mebibytes = BYTES >> 20;
        // One processor, whose every instruction takes the same time and which skips what it would sleep: guest time depends on the
        // guest alone. Nothing random comes from the host.
        command.args(["-nodefaults", "-no-user-config", "-display", "none", "-no-reboot"]);
        command.args(["-accel", "tcg,thread=single", "-smp", "1", "-cpu", "max,-rdrand,-rdseed"]);
        command.arg("-icount").arg(format!("shift={SHIFT},align=off,sleep=off"));
        command.args(["-rtc", "base=2026-01-01T00:00:00,clock=vm"]);
        command.arg("-seed").arg(self.seed.to_string());
        command.arg("-m").arg(MEMORY_MIB.to_string());
        command.args(["-kernel", &path_of(self.kernel), "-initrd", root]);
        command.args([
            "-append",
            "console=ttyS0 quiet loglevel=4 panic=-1 mitigations=off nokaslr tsc=reliable clocksource=tsc random.trust_cpu=off",
        ]);
        command.args(["-chardev", "stdio,id=console,signal=off", "-serial", "chardev:console"]);
        let memory =
            format!("memory-backend-file,id=shared,size={mebibytes}M,mem-path={shared},share=on");
        command.args(["-object", &memory, "-device", "ivshmem-plain,memdev=shared"]);
        command
    }
}

/// A path under which another process of this user finds `file`.
fn path_of(file: &File) -> String {
    format!("/proc/{}/fd/{}", std::process::id(), file.as_raw_fd())
}

fn keep_lines(from: impl BufRead, into: &Mutex<VecDeque<String>>) {
    for line in from.split(b'\n').map_while(Result::ok) {
        let text = String::from_utf8_lossy(&line);
        let text: String = text.chars().filter(|c| !c.is_control()).take(300).collect();
        if text.trim().is_empty() {
            continue;
        }
        let mut lines = into.lock().expect("no holder panics");
        lines.push_back(text);
        if lines.len() > SHOWN_LINES {
            lines.pop_front();
        }
    }
}

fn shown(console: &Console) -> String {
    let lines = console.lock().expect("no holder panics");
    let lines: Vec<String> = lines.iter().map(|line| format!("\n  {line}")).collect();
    if lines.is_empty() {
        "; its console shows nothing".into()
    } else {
        format!("; its console:{}", lines.concat())
    }
}
