//! Tells the manifest which commit the binary was built from, and whether the sources differed from it.
//!
//! Out come `PACELINE_GIT_COMMIT` (40 hex digits or `unknown`) and `PACELINE_GIT_DIRTY` (`true`, `false` or `unknown`) for
//! `env!`. A packager without a checkout may set `PACELINE_GIT_COMMIT` in the environment.

use std::path::Path;
use std::process::Command;

/// What the binary is built from, relative to this crate: a change elsewhere does not make a record doubtful.
const SOURCES: [&str; 4] = ["../../crates", "../../Cargo.toml", "../../Cargo.lock", "../../bpf"];

fn main() {
    println!("cargo::rerun-if-env-changed=PACELINE_GIT_COMMIT");
    println!("cargo::rerun-if-changed=build.rs");
    let (commit, dirty) = match std::env::var("PACELINE_GIT_COMMIT") {
        Ok(commit) => (commit, "unknown".to_string()),
        Err(_) => from_git().unwrap_or_else(|| ("unknown".into(), "unknown".into())),
    };
    println!("cargo::rustc-env=PACELINE_GIT_COMMIT={commit}");
    println!("cargo::rustc-env=PACELINE_GIT_DIRTY={dirty}");
}

fn from_git() -> Option<(String, String)> {
    let sources = SOURCES.iter().copied().filter(|source| Path::new(source).exists());
    let sources: Vec<&str> = sources.collect();
    // The log of HEAD grows with every commit and checkout; watching the index would rebuild after each `git status`.
    let head_log = git(&["rev-parse", "--git-path", "logs/HEAD"]);
    for watched in sources.iter().copied().chain(head_log.as_deref()) {
        if Path::new(watched).exists() {
            println!("cargo::rerun-if-changed={watched}");
        }
    }
    // An unpacked source archive may lie inside somebody else's checkout: that commit is not ours.
    git(&["ls-files", "--error-unmatch", "build.rs"])?;
    let commit = git(&["rev-parse", "HEAD"])?;
    let status = [&["--no-optional-locks", "status", "--porcelain", "--"], sources.as_slice()];
    let dirty = match git(&status.concat()) {
        Some(changes) => (!changes.is_empty()).to_string(),
        None => "unknown".into(),
    };
    Some((commit, dirty))
}

/// Trimmed output of `git`, or `None` when it is missing or fails.
fn git(arguments: &[&str]) -> Option<String> {
    let output = Command::new("git").args(arguments).output().ok()?;
    let text = String::from_utf8(output.stdout).ok()?;
    output.status.success().then(|| text.trim().to_string())
}
