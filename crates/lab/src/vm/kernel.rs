//! The kernel that a guest boots: Debian's stock one, fetched once, or one in a folder of your own.

use std::env;
use std::ffi::OsStr;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;

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
    /// The image.
    pub image: PathBuf,
    /// Its release, `6.1.0-49-amd64`.
    pub release: String,
    modules: PathBuf,
}

impl Kernel {
    /// The kernel of `$PACELINE_VM_KERNEL`, the one fetched before, or one fetched now.
    ///
    /// # Errors
    /// There is none, and it cannot be fetched.
    pub fn find() -> Result<Self, VmError> {
        if let Some(folder) = env::var_os(FOLDER).filter(|folder| !folder.is_empty()) {
            return Self::within(Path::new(&folder)).map_err(|why| {
                VmError::Unavailable(format!("{FOLDER}={}: {why}", folder.display()))
            });
        }
        let cache = cache()?;
        match Self::within(&cache.join("kernel")) {
            Ok(kernel) => Ok(kernel),
            Err(_) => fetch(&cache),
        }
    }

    /// The kernel in `folder`, to which its package was unpacked.
    fn within(folder: &Path) -> Result<Self, String> {
        let image = newest(&folder.join("boot"), "vmlinuz-").ok_or("no boot/vmlinuz-* there")?;
        let name = image.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let release = name.trim_start_matches("vmlinuz-").to_owned();
        // The boot protocol's signature (Documentation/arch/x86/boot.rst).
        let bytes = fs::read(&image).map_err(|error| format!("{}: {error}", image.display()))?;
        if bytes.get(0x202..0x206) != Some(b"HdrS".as_slice()) {
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

    /// The file of a module, `net/ipv4/tcp_bbr.ko`, which may be compressed; `None` for what is built in or not there.
    pub fn module(&self, path: &str) -> Option<PathBuf> {
        let names = ["", ".xz", ".zst", ".gz"].map(|end| self.modules.join(format!("{path}{end}")));
        names.into_iter().find(|file| file.is_file())
    }

    /// The modules of a run whose TCP flows use these congestion controls.
    pub fn modules_for<'a>(&self, congestion: impl Iterator<Item = &'a str>) -> Vec<PathBuf> {
        let mut paths = vec![TUN.to_owned()];
        for name in congestion {
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

/// What is kept of the package, below `lib/modules/RELEASE/kernel`.
const KEPT: [(&str, &str); 2] = [("drivers/net", "tun.ko"), ("net/ipv4", "tcp_")];

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
        copy(&kernel.image, kept.join("boot").join(file_name(&kernel.image)))?;
        let modules = kept.join("lib/modules").join(&kernel.release).join("kernel");
        for (folder, prefix) in KEPT {
            let entries = fs::read_dir(kernel.modules.join(folder)).map_err(io(&kernel.modules))?;
            let files = entries.filter_map(|entry| Some(entry.ok()?.path()));
            for file in files.filter(|file| file_name(file).starts_with(prefix)) {
                copy(&file, modules.join(folder).join(file_name(&file)))?;
            }
        }
        Kernel::within(&kept)?;
        let place = cache.join("kernel");
        // Another run may have been faster.
        match fs::rename(&kept, &place) {
            Err(_) if Kernel::within(&place).is_ok() => Ok(()),
            renamed => renamed.map_err(io(&place)),
        }
    };
    let fetched = attempt();
    let _ = fs::remove_dir_all(&work);
    fetched.map_err(fail)?;
    Kernel::within(&cache.join("kernel")).map_err(fail)
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
        let mut image = vec![0; 0x206];
        image[0x202..].copy_from_slice(b"HdrS");
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
