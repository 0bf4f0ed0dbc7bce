//! The shape of the workspace: which crate may depend on which, and how long a source file may grow.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

/// Each crate and those of ours it may depend on. A new crate states its place here.
const GRAPH: [(&str, &[&str]); 8] = [
    ("paceline-cc", &[]),
    ("paceline-net", &[]),
    ("paceline-sim", &["paceline-cc", "paceline-net"]),
    ("paceline-emulator", &["paceline-net"]),
    ("paceline-live", &["paceline-cc", "paceline-net", "paceline-sim", "paceline-emulator"]),
    ("paceline-kernel", &["paceline-cc"]),
    (
        "paceline-lab",
        &["paceline-cc", "paceline-net", "paceline-sim", "paceline-live", "paceline-kernel"],
    ),
    (
        "paceline-python",
        &[
            "paceline-cc",
            "paceline-net",
            "paceline-sim",
            "paceline-emulator",
            "paceline-live",
            "paceline-kernel",
            "paceline-lab",
        ],
    ),
];

/// What the pure crates may use of others: arithmetic, explicit random streams, error types. Nothing that reads a clock or
/// touches the OS.
const PURE: [(&str, &[&str]); 2] = [
    ("paceline-cc", &["libm", "thiserror"]),
    ("paceline-net", &["libm", "rand_core", "rand_pcg", "thiserror"]),
];

/// Longest source file, lines.
const MAX_LINES: usize = 800;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// A dependency as a manifest states it.
struct Dependency {
    name: String,
    /// `normal`, `dev` or `build`.
    kind: String,
}

/// Every crate of the workspace with what its manifest depends on.
fn manifests() -> BTreeMap<String, Vec<Dependency>> {
    let output = Command::new(env!("CARGO"))
        .args(["metadata", "--no-deps", "--format-version", "1", "--offline"])
        .current_dir(root())
        .output()
        .expect("cargo runs: it runs this test");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let metadata: Value = serde_json::from_slice(&output.stdout).expect("cargo prints JSON");
    let list = |value: &Value| value.as_array().cloned().unwrap_or_default();
    let text = |value: &Value| value.as_str().unwrap_or("normal").to_string();
    let dependency = |d: &Value| Dependency { name: text(&d["name"]), kind: text(&d["kind"]) };
    list(&metadata["packages"])
        .iter()
        .map(|p| (text(&p["name"]), list(&p["dependencies"]).iter().map(dependency).collect()))
        .collect()
}

#[test]
fn dependencies_point_one_way() {
    let manifests = manifests();
    let known: Vec<&str> = GRAPH.iter().map(|(name, _)| *name).collect();
    assert_eq!(manifests.len(), GRAPH.len(), "{:?}", manifests.keys());
    for (name, allowed) in GRAPH {
        let dependencies = manifests.get(name).unwrap_or_else(|| panic!("no crate {name}"));
        for dependency in dependencies.iter().filter(|d| known.contains(&d.name.as_str())) {
            assert!(
                allowed.contains(&dependency.name.as_str()),
                "{name} depends on {}, which its place in the graph does not allow",
                dependency.name
            );
        }
    }
}

#[test]
fn pure_crates_use_nothing_that_touches_the_world() {
    let manifests = manifests();
    for (name, allowed) in PURE {
        for dependency in manifests[name].iter().filter(|d| d.kind == "normal") {
            assert!(allowed.contains(&dependency.name.as_str()), "{name} uses {}", dependency.name);
        }
    }
}

#[test]
fn one_crate_knows_python() {
    for (name, dependencies) in manifests() {
        let binds = dependencies.iter().any(|d| d.name.starts_with("pyo3"));
        assert_eq!(binds, name == "paceline-python", "{name}");
    }
}

/// The source files below `folder`.
fn sources(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).unwrap_or_else(|e| panic!("{}: {e}", folder.display())) {
        let path = entry.expect("a readable folder").path();
        let suffix = path.extension().and_then(|s| s.to_str()).unwrap_or_default();
        if path.is_dir() {
            sources(&path, found);
        } else if ["rs", "c", "h", "py", "pyi", "js", "css", "html", "toml"].contains(&suffix) {
            found.push(path);
        }
    }
}

#[test]
fn no_source_file_is_a_monster() {
    let mut found = Vec::new();
    for entry in fs::read_dir(root().join("crates")).expect("crates/ exists") {
        sources(&entry.expect("a readable folder").path().join("src"), &mut found);
    }
    for folder in ["bpf", "qdisc", "python/paceline"] {
        sources(&root().join(folder), &mut found);
    }
    assert!(found.len() > 100, "only {} source files found", found.len());
    let lines = |path: &PathBuf| fs::read_to_string(path).map_or(0, |text| text.lines().count());
    let long: Vec<_> = found.iter().filter(|path| lines(path) > MAX_LINES).collect();
    assert!(long.is_empty(), "longer than {MAX_LINES} lines: {long:?}");
}
