//! Compiles the C algorithms: for every header of `bpf/algorithms` a shim that exports its callbacks.

use std::path::{Path, PathBuf};
use std::{env, fs};

/// What algorithms in Rust call of Latte's C.
const PATH_MODEL: &str = "src/algorithms/path_model.c";

fn main() {
    let bpf = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../bpf");
    let out = PathBuf::from(env::var_os("OUT_DIR").expect("cargo sets OUT_DIR"));
    // A directory is watched by its modification time, each header by its own.
    for folder in ["algorithms", "algorithms/latte", "algorithms/mpc", "include"] {
        println!("cargo::rerun-if-changed={}", bpf.join(folder).display());
        for header in headers(&bpf.join(folder)) {
            println!("cargo::rerun-if-changed={}", header.display());
        }
    }
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-changed={PATH_MODEL}");

    let (mut symbols, mut table) = (String::new(), String::new());
    let mut build = cc::Build::new();
    build.include(&bpf).std("c11").warnings(true).extra_warnings(true).warnings_into_errors(true);
    for header in headers(&bpf.join("algorithms")) {
        let name = header.file_stem().and_then(|s| s.to_str()).expect("headers have plain names");
        let shim = out.join(format!("{name}_native.c"));
        let source = format!(
            "#include \"algorithms/{name}.h\"\n#include \"include/cc_native.h\"\n\nCC_NATIVE({name}, {}_FIELDS);\n",
            name.to_uppercase()
        );
        fs::write(&shim, source).expect("OUT_DIR is writable");
        build.file(&shim);
        table += &format!("    (\"{name}\", unsafe {{ &paceline_cc_{name} }}),\n");
        symbols += &format!("    static paceline_cc_{name}: Vtable;\n");
    }
    build.file(PATH_MODEL);
    let table = format!(
        "unsafe extern \"C\" {{\n{symbols}}}\n\n\
         // SAFETY: compiled from `CC_NATIVE`, whose struct `Vtable` mirrors; constant.\n\
         static ALL: &[(&str, &Vtable)] = &[\n{table}];\n"
    );
    fs::write(out.join("algorithms.rs"), table).expect("OUT_DIR is writable");
    build.compile("paceline_cc_algorithms");
}

/// The headers in `folder`, sorted by name.
fn headers(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).unwrap_or_else(|e| panic!("{}: {e}", folder.display()));
    let mut headers: Vec<PathBuf> = entries
        .filter_map(|entry| entry.ok().map(|e| e.path()))
        .filter(|path| path.extension().is_some_and(|e| e == "h"))
        .collect();
    headers.sort();
    headers
}
