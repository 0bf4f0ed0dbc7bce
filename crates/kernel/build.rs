//! Compiles `bpf/*.bpf.c` and embeds the objects; `replay.bpf.c` once per algorithm. Without a clang for BPF the crate builds, and says so when asked to load.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::{env, fs};

/// Of the file that holds an algorithm without a host.
const REPLAYED: &str = "-replay";

fn main() {
    let bpf = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../bpf");
    let out = PathBuf::from(env::var_os("OUT_DIR").expect("cargo sets OUT_DIR"));
    let clang = env::var("PACELINE_CLANG").unwrap_or_else(|_| "clang".into());
    println!("cargo::rerun-if-env-changed=PACELINE_CLANG");
    println!("cargo::rerun-if-changed=build.rs");
    watch(&bpf);

    let sources = files(&bpf).into_iter().filter(|path| path.to_string_lossy().ends_with(".bpf.c"));
    let (mut objects, mut replays) = (String::new(), String::new());
    let mut missing = None;
    let mut embed = |source: &Path, name: &str, defines: &[String], list: &mut String| {
        let object = out.join(format!("{name}.bpf.o"));
        let name = name.trim_end_matches(REPLAYED);
        match compile(&clang, &bpf, source, &object, defines) {
            Ok(()) => {
                let object = object.display().to_string();
                *list += &format!("    ({name:?}, include_bytes!({object:?})),\n");
            }
            Err(reason) => missing = Some(reason),
        }
    };
    let replay = bpf.join("replay.bpf.c");
    for source in sources.filter(|source| *source != replay) {
        let file = source.file_name().expect("a file has a name").to_string_lossy();
        let name = file.trim_end_matches(".bpf.c");
        embed(&source, name, &[], &mut objects);
        // What has a header of an algorithm is one.
        if bpf.join(format!("algorithms/{name}.h")).exists() {
            let defines = [
                format!("-DCC_HEADER=\"algorithms/{name}.h\""),
                format!("-DCC_ALGORITHM={name}"),
                format!("-DCC_FIELDS={}_FIELDS", name.to_uppercase()),
            ];
            embed(&replay, &format!("{name}{REPLAYED}"), &defines, &mut replays);
        }
    }
    if let Some(reason) = &missing {
        objects.clear();
        replays.clear();
        println!("cargo::warning=no controllers for the kernel: {reason}");
    }
    let code = format!(
        "const OBJECTS: &[(&str, &[u8])] = &[\n{objects}];\nconst REPLAYS: &[(&str, &[u8])] = &[\n{replays}];\nconst MISSING: Option<&str> = {missing:?};\n"
    );
    fs::write(out.join("objects.rs"), code).expect("OUT_DIR is writable");
}

/// The reason if there is no clang that can. What is wrong in the source stops the build.
fn compile(
    clang: &str,
    bpf: &Path,
    source: &Path,
    object: &Path,
    defines: &[String],
) -> Result<(), String> {
    let output = Command::new(clang)
        .args([
            "-target",
            "bpf",
            "-mcpu=v3",
            "-O2",
            "-g",
            "-std=gnu11",
            "-Wall",
            "-Wextra",
            "-Werror",
        ])
        .args(defines)
        // Paths of this machine have no place in what is shipped.
        .arg(format!("-ffile-prefix-map={}=bpf", bpf.display()))
        .arg("-I")
        .arg(bpf)
        .arg("-c")
        .arg(source)
        .arg("-o")
        .arg(object)
        .output()
        .map_err(|_| format!("{clang} was not found when this was built"))?;
    let errors = String::from_utf8_lossy(&output.stderr);
    if errors.contains("unknown target triple") || errors.contains("No available targets") {
        return Err(format!("{clang}, with which this was built, has no BPF target"));
    }
    assert!(output.status.success(), "{}: {errors}", source.display());
    Ok(())
}

/// A directory is watched by its modification time, each file by its own.
fn watch(folder: &Path) {
    println!("cargo::rerun-if-changed={}", folder.display());
    for path in files(folder) {
        if path.is_dir() {
            watch(&path);
        } else {
            println!("cargo::rerun-if-changed={}", path.display());
        }
    }
}

fn files(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).unwrap_or_else(|e| panic!("{}: {e}", folder.display()));
    let mut paths: Vec<PathBuf> =
        entries.filter_map(|entry| entry.ok().map(|e| e.path())).collect();
    paths.sort();
    paths
}
