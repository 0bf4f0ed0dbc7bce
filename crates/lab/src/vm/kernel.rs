//! The kernel that a guest boots: Debian's stock one, fetched once, or one in a folder of your own.

use std::env;
use std::ffi::OsStr;
use std::fs::{self, File};
use std::io::{self, Read, Seek, Write};
use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::{Mutex, PoisonError};

use rustix::fs::{MemfdFlags, memfd_create};

use super::VmError;

/// A folder with an unpacked kernel package, instead of the one that is fetched.
pub const FOLDER: &str = "PACELINE_VM_KERNEL";
/// Where what is fetched is kept, instead of `~/.cache/paceline`.
const CACHE: &str = "PACELINE_CACHE";
/// Without it there is no emulated link.
const TUN: &str = "drivers/net/tun.ko";

/// A kernel with its modules.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Kernel {
    /// The image, as packages have it or unpacked.
    image: PathBuf,
    /// Its release, `6.1.0-49-amd64`.
    pub release: String,
    modules: PathBuf,
}

/// In the cache.
const KERNEL: &str = "kernel";
const ELF: &[u8] = b"\x7fELF";
const PACKED: &str = "vmlinuz-";
const UNPACKED: &str = "vmlinux-";
/// How kernels are packed: the first bytes, and the program that unpacks them.
const PACKERS: [(&[u8], &str); 4] = [
    (b"\xfd7zXZ", "xz"),
    (b"\x28\xb5\x2f\xfd", "zstd"),
    (b"\x1f\x8b", "gzip"),
    (b"\x02\x21\x4c\x18", "lz4"),
];

/// Where the packed kernel is within the image (the boot protocol: Documentation/arch/x86/boot.rst); `None` in what is no image.
fn payload(image: &[u8]) -> Option<Range<usize>> {
    let word = |at: usize| -> Option<usize> {
        let word = u32::from_le_bytes(image.get(at..at + 4)?.try_into().ok()?);
        usize::try_from(word).ok()
    };
    if image.get(0x202..0x206)? != b"HdrS" {
        return None;
    }
    let setup_sectors = usize::from(image[0x1f1]);
    let start = ((if setup_sectors == 0 { 4 } else { setup_sectors }) + 1) * 512 + word(0x248)?;
    Some(start..start.checked_add(word(0x24c)?)?)
}

impl Kernel {
    /// The kernel of `$PACELINE_VM_KERNEL`, the one fetched before, or one fetched now.
    ///
    /// # Errors
    /// There is none, and it cannot be fetched.
    pub fn find() -> Result<Self, VmError> {
        // Runs beside each other need one kernel, and share the folder in which it is unpacked.
        static FETCHES: Mutex<()> = Mutex::new(());
        let _turn = FETCHES.lock().unwrap_or_else(PoisonError::into_inner);
        match Self::there()? {
            Some(kernel) => Ok(kernel),
            None => fetch(&cache()?),
        }
    }

    /// The same, where nothing is fetched.
    pub fn there() -> Result<Option<Self>, VmError> {
        if let Some(folder) = env::var_os(FOLDER).filter(|folder| !folder.is_empty()) {
            let named = |why| VmError::Unavailable(format!("{FOLDER}={}: {why}", folder.display()));
            return Self::within(Path::new(&folder)).map(Some).map_err(named);
        }
        Ok(Self::within(&cache()?.join(KERNEL)).ok())
    }

    /// The kernel in `folder`, to which its package was unpacked.
    fn within(folder: &Path) -> Result<Self, String> {
        let boot = folder.join("boot");
        let image = newest(&boot, UNPACKED).or_else(|| newest(&boot, PACKED));
        let image = image.ok_or("no boot/vmlinuz-* there")?;
        let name = file_name(&image);
        let release = name.trim_start_matches(UNPACKED).trim_start_matches(PACKED).to_owned();
        let mut head = Vec::new();
        let file = File::open(&image).and_then(|file| file.take(0x250).read_to_end(&mut head));
        file.map_err(|error| format!("{}: {error}", image.display()))?;
        if !head.starts_with(ELF) && payload(&head).is_none() {
            return Err(format!("{}: not an x86 kernel", image.display()));
        }
        let candidates = ["lib/modules", "usr/lib/modules"];
        let folders = candidates.map(|path| folder.join(path).join(&release).join("kernel"));
        let modules = folders.into_iter().find(|modules| modules.is_dir());
        let modules = modules.ok_or(format!("no lib/modules/{release}/kernel there"))?;
        let kernel = Self { image, release, modules };
        kernel.module(TUN).map(|_| ()).ok_or(format!("no module {TUN} there"))?;
        Ok(kernel)
    }

    /// The kernel as an ELF file. A guest that boots that need not unpack it, which takes it longer than all the rest.
    pub fn elf(&self) -> Result<File, VmError> {
        let fail = |why: String| VmError::Unavailable(format!("{}: {why}", self.image.display()));
        let io = |error: io::Error| fail(error.to_string());
        let bytes = fs::read(&self.image).map_err(io)?;
        if bytes.starts_with(ELF) {
            return File::open(&self.image).map_err(io);
        }
        let packed = payload(&bytes).and_then(|range| bytes.get(range));
        let packed = packed.ok_or_else(|| fail("not an x86 kernel".into()))?;
        let (_, program) = PACKERS
            .into_iter()
            .find(|(magic, _)| packed.starts_with(magic))
            .ok_or_else(|| fail("packed in a way that is not known".into()))?;
        let file = memfd_create("paceline-vm-kernel", MemfdFlags::CLOEXEC);
        let file = File::from(file.map_err(|error| fail(error.to_string()))?);
        // By a program of the system's: the kernel's filters are more than most libraries have.
        let mut child = Command::new(program)
            .arg("-dc")
            .stdin(Stdio::piped())
            .stdout(file.try_clone().map_err(io)?)
            .stderr(Stdio::null())
            .spawn()
            .map_err(|error| fail(format!("unpacking needs {program}: {error}")))?;
        // What follows the payload ends the program with an error: the result is looked at instead.
        let _ = child.stdin.take().map(|mut input| input.write_all(packed));
        child.wait().map_err(io)?;
        let mut head = [0; ELF.len()];
        if file.read_exact_at(&mut head, 0).is_err() || head != *ELF {
            return Err(fail(format!("{program} cannot unpack it")));
        }
        Ok(file)
    }

    /// The file of a module, `net/ipv4/tcp_bbr.ko`, which may be compressed; `None` for what is built in or not there.
    pub fn module(&self, path: &str) -> Option<PathBuf> {
        let names = ["", ".xz", ".zst", ".gz"].map(|end| self.modules.join(format!("{path}{end}")));
        names.into_iter().find(|file| file.is_file())
    }

    /// The modules of a run whose TCP flows use these congestion controls.
    pub fn modules_for<'a>(&self, congestion: impl Iterator<Item = &'a str>) -> Vec<PathBuf> {
        let mut paths = vec![TUN.to_owned()];
        // The kernel's YeAH is made of its Vegas.
        let needed = |name: &'a str| if name == "yeah" { vec!["vegas", name] } else { vec![name] };
        for name in congestion.flat_map(needed) {
            let path = format!("net/ipv4/tcp_{name}.ko");
            if !paths.contains(&path) {
                paths.push(path);
            }
        }
        paths.iter().filter_map(|path| self.module(path)).collect()
    }
}

fn newest(folder: &Path, prefix: &str) -> Option<PathBuf> {
    let entries = fs::read_dir(folder).ok()?;
    let named = entries.filter_map(|entry| Some(entry.ok()?.path()));
    named.filter(|path| file_name(path).starts_with(prefix)).max()
}

fn file_name(path: &Path) -> String {
    path.file_name().map(OsStr::to_string_lossy).unwrap_or_default().into_owned()
}

fn cache() -> Result<PathBuf, VmError> {
    let folder = |name: &str| env::var_os(name).filter(|v| !v.is_empty()).map(PathBuf::from);
    let ours = folder(CACHE)
        .or_else(|| Some(folder("XDG_CACHE_HOME")?.join("paceline")))
        .or_else(|| Some(folder("HOME")?.join(".cache/paceline")));
    let ours = ours
        .ok_or_else(|| VmError::Unavailable(format!("no place to keep a kernel: set {CACHE}")))?;
    Ok(ours.join("vm"))
}

/// What is kept of the package, below `lib/modules/RELEASE/kernel`: what our guests load, and what those load in which `qdisc/` is tried.
const KEPT: [(&str, &str); 4] = [
    ("drivers/net", "tun.ko"),
    ("drivers/net", "veth.ko"),
    ("net/ipv4", "tcp_"),
    ("net/sched", ""),
];

/// Fetches Debian's kernel package, whose signature apt verifies, and keeps what a guest needs of it.
fn fetch(cache: &Path) -> Result<Kernel, VmError> {
    let by_hand = format!(
        "a guest needs Debian's kernel package: apt-get download \"$(apt-cache depends linux-image-amd64 | awk '/Depends/{{print $2; exit}}')\" \
         && dpkg -x linux-image-*.deb FOLDER, and set {FOLDER}=FOLDER"
    );
    let fail =
        |what: String| VmError::Unavailable(format!("no kernel for world vm: {what}; {by_hand}"));
    let io = |path: &Path| {
        let path = path.display().to_string();
        move |error: io::Error| format!("{path}: {error}")
    };
    let work = cache.join(format!("fetching-{}", std::process::id()));
    let attempt = || -> Result<(), String> {
        let unpacked = work.join("all");
        fs::create_dir_all(&unpacked).map_err(io(&unpacked))?;
        let depends = output(Command::new("apt-cache").args(["depends", "linux-image-amd64"]))?;
        let mut lines = depends.lines().filter_map(|line| line.trim().strip_prefix("Depends:"));
        let package = lines.next().ok_or("apt knows no package linux-image-amd64")?.trim();
        output(Command::new("apt-get").args(["download", "-q", package]).current_dir(&work))?;
        let file = newest(&work, package).ok_or(format!("apt-get brought no {package}"))?;
        output(Command::new("dpkg").arg("-x").arg(&file).arg(&unpacked))?;
        let kernel = Kernel::within(&unpacked)?;
        let kept = work.join("kernel");
        let copy = |from: &Path, to: PathBuf| -> Result<(), String> {
            fs::create_dir_all(to.parent().unwrap_or(&to)).map_err(io(&to))?;
            fs::copy(from, &to).map_err(io(&to)).map(drop)
        };
        let mut elf = kernel.elf().map_err(|error| error.to_string())?;
        let image = kept.join("boot").join(format!("{UNPACKED}{}", kernel.release));
        fs::create_dir_all(kept.join("boot")).map_err(io(&image))?;
        let mut file = File::create(&image).map_err(io(&image))?;
        elf.rewind().and_then(|()| io::copy(&mut elf, &mut file)).map_err(io(&image))?;
        let modules = kept.join("lib/modules").join(&kernel.release).join("kernel");
        for (folder, prefix) in KEPT {
            let entries = fs::read_dir(kernel.modules.join(folder)).map_err(io(&kernel.modules))?;
            let files = entries.filter_map(|entry| Some(entry.ok()?.path()));
            for file in files.filter(|file| file_name(file).starts_with(prefix)) {
                copy(&file, modules.join(folder).join(file_name(&file)))?;
            }
        }
        Kernel::within(&kept)?;
        let place = cache.join(KERNEL);
        // Another run may have been faster.
        match fs::rename(&kept, &place) {
            Err(_) if Kernel::within(&place).is_ok() => Ok(()),
            renamed => renamed.map_err(io(&place)),
        }
    };
    let fetched = attempt();
    let _ = fs::remove_dir_all(&work);
    fetched.map_err(fail)?;
    Kernel::within(&cache.join(KERNEL)).map_err(fail)
}

/// What `command` prints.
fn output(command: &mut Command) -> Result<String, String> {
    let name = command.get_program().to_string_lossy().into_owned();
    let output = command.output().map_err(|error| format!("{name}: {error}"))?;
    if output.status.success() {
        return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
    }
    let said = String::from_utf8_lossy(&output.stderr);
    Err(format!("{name}: {}", said.trim().lines().last().unwrap_or("failed")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_without_a_kernel_says_what_is_missing() {
        let folder = env::temp_dir().join(format!("paceline-kernel-{}", std::process::id()));
        let boot = folder.join("boot");
        fs::create_dir_all(&boot).unwrap();
        let why = |folder: &Path| Kernel::within(folder).unwrap_err();
        assert_eq!(why(&folder), "no boot/vmlinuz-* there");
        fs::write(boot.join("vmlinuz-1.2-x"), "no kernel").unwrap();
        assert!(why(&folder).ends_with("vmlinuz-1.2-x: not an x86 kernel"));
        let mut image = vec![0; 0x250];
        image[0x202..0x206].copy_from_slice(b"HdrS");
        fs::write(boot.join("vmlinuz-1.2-x"), image).unwrap();
        assert_eq!(why(&folder), "no lib/modules/1.2-x/kernel there");
        let tun = folder.join("usr/lib/modules/1.2-x/kernel/drivers/net");
        fs::create_dir_all(&tun).unwrap();
        assert_eq!(why(&folder), "no module drivers/net/tun.ko there");
        fs::write(tun.join("tun.ko.xz"), "").unwrap();
        let kernel = Kernel::within(&folder).unwrap();
        assert_eq!(kernel.release, "1.2-x");
        assert_eq!(kernel.modules_for(["cubic"].into_iter()), [tun.join("tun.ko.xz")]);
        fs::remove_dir_all(&folder).unwrap();
    }
}
