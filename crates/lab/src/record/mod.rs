//! A run on disk: one directory that holds the tables, and the manifest that says how to get them again.
//!
//! In go a [`RunInfo`] (what was asked for), an [`Outcome`] (what came of it) and a [`Provenance`] (where and when); out comes
//! a directory:
//!
//! | file | rows |
//! |---|---|
//! | `flows.parquet` | one per flow: the summary, flattened |
//! | `links.parquet` | one per link and sample |
//! | `series.parquet` | one per flow and sample |
//! | `manifest.json` | scenario, seed, versions, host, files with their hashes, result, checks |
//!
//! The tables are a pure function of `RunInfo` and `Outcome`: equal runs write equal bytes. The manifest also holds what may
//! differ between equal runs.

pub mod checks;
mod digest;
pub mod manifest;
pub mod provenance;
pub mod qlog;
pub mod read;
pub mod summary;
pub mod tables;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

use paceline_cc::registry::{Kind, Params};
use paceline_sim::{Outcome, PacketSizes};
use serde::{Deserialize, Serialize};

pub use manifest::{Manifest, read_manifest};
pub use provenance::{GitState, Host, Provenance};
pub use summary::Summary;
use tables::Table;

/// Version of this program, as records name it.
pub const VERSION: &str = env!("CARGO_PKG_VERSION");

/// Name of the manifest in a record directory.
pub const MANIFEST: &str = "manifest.json";

/// What a run was asked to do, as far as its record tells.
#[derive(Clone, Debug, PartialEq)]
pub struct RunInfo {
    /// Title, or the file's name where it has none.
    pub scenario: String,
    /// The scenario file; `None` for a scenario built in code.
    pub scenario_path: Option<PathBuf>,
    /// Its text, with every override applied, so that it runs again.
    pub scenario_text: String,
    /// `sim`, `live` or `vm`; `link` for the traffic of a program behind an emulated link.
    pub world: String,
    /// Master seed.
    pub seed: u64,
    /// Length of the run, s.
    pub duration_s: f64,
    /// Statistics and rates cover `[warmup, duration]`, s.
    pub warmup_s: f64,
    /// Flows, in the order of the outcome's.
    pub flows: Vec<FlowInfo>,
}

/// What one flow was asked to do.
#[derive(Clone, Debug, PartialEq)]
pub struct FlowInfo {
    /// Name in the record.
    pub name: String,
    /// Controller, whose name says which version it is.
    pub controller: String,
    /// Every parameter of the controller with the value it ran with. See [`controller_params`].
    pub controller_params: BTreeMap<String, ParamValue>,
    /// `tcp`, `datagram` or `quic`; of a program's traffic `tcp`, `udp` or `mixed`.
    pub stack: String,
    /// Sizes of its packets on the wire.
    pub packets: PacketSizes,
}

/// Value of a controller's parameter.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum ParamValue {
    /// `true` or `false`.
    Bool(bool),
    /// In the unit of the controller's parameter table. NaN and infinity are written as null.
    Number(Option<f64>),
    /// One of the parameter's words.
    Word(String),
}

/// The resolved parameters of a controller, as a manifest names them.
pub fn controller_params(params: &Params) -> BTreeMap<String, ParamValue> {
    let value = |kind, value: f64| match kind {
        Kind::Bool => ParamValue::Bool(value != 0.0),
        Kind::Choice(words) => {
            let word = words.get(value as usize).copied();
            ParamValue::Word(word.unwrap_or("unknown").to_string())
        }
        _ => ParamValue::Number(summary::finite(value)),
    };
    params.iter().map(|(param, v)| (param.name.to_string(), value(param.kind, v))).collect()
}

/// A record that cannot be written or read.
#[derive(Debug, thiserror::Error)]
pub enum RecordError {
    /// The operating system refused.
    #[error("cannot {action} {}: {source}", path.display())]
    Io {
        /// What was tried.
        action: &'static str,
        /// On what.
        path: PathBuf,
        /// Why not.
        source: io::Error,
    },
    /// The target holds something that is not ours to delete.
    #[error("{} {reason}; choose another directory or move it away", path.display())]
    InTheWay {
        /// The target.
        path: PathBuf,
        /// What is there.
        reason: String,
    },
    /// A table that Parquet cannot hold.
    #[error("cannot build {table}: {source}")]
    Table {
        /// Which file.
        table: &'static str,
        /// Why not.
        source: parquet::errors::ParquetError,
    },
    /// A manifest that is not one.
    #[error("{}: {reason}", path.display())]
    Manifest {
        /// The file.
        path: PathBuf,
        /// Line, column and what is wrong there.
        reason: String,
    },
    /// A manifest of a later version of this program.
    #[error("{}: record format {found}; this version reads up to {supported}", path.display())]
    Newer {
        /// The file.
        path: PathBuf,
        /// Its format version.
        found: u64,
        /// The newest one that can be read.
        supported: u64,
    },
    /// A table that is not one, or lacks what every such table has.
    #[error("{}: {reason}", path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        reason: String,
    },
    /// A flow that a file does not have.
    #[error("{}: no flow `{flow}`; it has {}", path.display(), quoted(known.iter().map(String::as_str)))]
    NoSuchFlow {
        /// The file.
        path: PathBuf,
        /// The flow asked for.
        flow: String,
        /// Those it has.
        known: Vec<String>,
    },
}

impl RecordError {
    fn io(action: &'static str, path: &Path) -> impl FnOnce(io::Error) -> Self {
        let path = path.to_path_buf();
        move |source| Self::Io { action, path, source }
    }
}

/// `` `a`, `b` `` for an error, cut short after 20 names.
fn quoted<'a>(names: impl ExactSizeIterator<Item = &'a str>) -> String {
    const SHOWN: usize = 20;
    let more = names.len().saturating_sub(SHOWN);
    let shown: Vec<String> = names.take(SHOWN).map(|name| format!("`{name}`")).collect();
    match (shown.is_empty(), more) {
        (true, _) => "none".into(),
        (_, 0) => shown.join(", "),
        _ => format!("{} and {more} more", shown.join(", ")),
    }
}

/// Writes the record of a run to `dir` and returns that path.
///
/// Everything goes to a hidden sibling (`.<name>.partial-<process>`) first, which is then renamed: a killed run leaves no
/// half-written record under `dir`. An existing record there is replaced, after the new one is complete; only a kill between
/// the two renames that takes leaves `dir` absent, with the old record beside it as `.<name>.old-<process>`. Nothing is synced
/// to the disk: after a power cut the hashes in the manifest tell what survived.
///
/// # Errors
/// An operating-system error, with the path; [`RecordError::InTheWay`] when `dir` holds anything but a record, or a record
/// to which files were added. What `dir` held stays, and the sibling is removed.
pub fn write(
    dir: &Path,
    info: &RunInfo,
    outcome: &Outcome,
    provenance: &Provenance,
) -> Result<PathBuf, RecordError> {
    // Before the work as well as after it: a target that cannot be written is known at once.
    replaceable(dir)?;
    let tables = tables::all(info, outcome)?;
    let manifest = Manifest::new(info, outcome, provenance, &tables);
    commit(dir, &tables, &manifest.to_json())?;
    Ok(dir.to_path_buf())
}

/// Whether [`write`] would put a record at `dir`, as far as can be told before.
///
/// # Errors
/// Those of [`write`] that do not depend on what is written.
pub fn check_target(dir: &Path) -> Result<(), RecordError> {
    let _turn = turn();
    replaceable(dir)?;
    Ok(())
}

/// The threads of a process put their records in place one after the other: what lies beside a directory on the way carries the
/// number of the process alone, and two threads with one directory would mix their records.
fn turn() -> MutexGuard<'static, ()> {
    static TURN: Mutex<()> = Mutex::new(());
    TURN.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Writes the files beside `dir` and puts them in its place.
fn commit(dir: &Path, tables: &[Table], manifest: &str) -> Result<(), RecordError> {
    let _turn = turn();
    let parent = parent_of(dir);
    fs::create_dir_all(parent).map_err(RecordError::io("create", parent))?;
    let partial = Partial::create(sibling(dir, "partial"))?;
    for table in tables {
        put(&partial.path.join(table.name), &table.bytes)?;
    }
    put(&partial.path.join(MANIFEST), manifest.as_bytes())?;
    if !replaceable(dir)? {
        return fs::rename(&partial.path, dir).map_err(RecordError::io("write", dir));
    }
    let old = sibling(dir, "old");
    remove_stale(&old)?;
    fs::rename(dir, &old).map_err(RecordError::io("replace", dir))?;
    if let Err(error) = fs::rename(&partial.path, dir) {
        // Best effort: the first error is the one to report.
        let _ = fs::rename(&old, dir);
        return Err(RecordError::io("write", dir)(error));
    }
    fs::remove_dir_all(&old).map_err(RecordError::io("remove", &old))
}

/// Where a run goes when the user names no directory: `<base>/<scenario>-<controller>-<seed>`, with `-2`, `-3`, … behind it
/// while that is taken. `mixed` stands for more than one controller.
pub fn default_dir(base: &Path, info: &RunInfo) -> PathBuf {
    let file = info.scenario_path.as_deref().and_then(Path::file_stem).and_then(|s| s.to_str());
    let mut controllers: Vec<&str> = info.flows.iter().map(|f| f.controller.as_str()).collect();
    controllers.sort_unstable();
    controllers.dedup();
    let controller = match controllers[..] {
        [] => "none",
        [one] => one,
        _ => "mixed",
    };
    let (scenario, controller) = (slug(file.unwrap_or(&info.scenario)), slug(controller));
    let name = format!("{scenario}-{controller}-{}", info.seed);
    let numbered = (2u64..).map(|n| format!("{name}-{n}"));
    let mut candidates = std::iter::once(name.clone()).chain(numbered).map(|n| base.join(n));
    // The numbers outlast any directory.
    candidates.find(|dir| fs::symlink_metadata(dir).is_err()).unwrap_or_else(|| base.join(&name))
}

/// Letters, digits and single dashes, at most 60 of them: a name for every file system.
fn slug(text: &str) -> String {
    let mut slug = String::new();
    for c in text.chars().flat_map(char::to_lowercase) {
        if c.is_ascii_alphanumeric() {
            slug.push(c);
        } else if !slug.is_empty() && !slug.ends_with('-') {
            slug.push('-');
        }
        if slug.len() == 60 {
            break;
        }
    }
    let slug = slug.trim_end_matches('-');
    if slug.is_empty() { "run".into() } else { slug.into() }
}

/// Whether `dir` holds a record that may be replaced (`false`: nothing is there, or an empty directory).
fn replaceable(dir: &Path) -> Result<bool, RecordError> {
    let in_the_way = |reason: String| RecordError::InTheWay { path: dir.to_path_buf(), reason };
    if dir.file_name().is_none() {
        return Err(in_the_way("does not name a directory of its own".into()));
    }
    match fs::symlink_metadata(dir) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(false),
        Err(error) => return Err(RecordError::io("look at", dir)(error)),
        Ok(found) if !found.is_dir() => return Err(in_the_way("is not a directory".into())),
        Ok(_) => {}
    }
    let mut names = Vec::new();
    for entry in fs::read_dir(dir).map_err(RecordError::io("list", dir))? {
        let entry = entry.map_err(RecordError::io("list", dir))?;
        names.push(entry.file_name().to_string_lossy().into_owned());
    }
    names.sort_unstable();
    if names.is_empty() {
        return Ok(false);
    }
    let Ok(manifest) = read_manifest(dir) else {
        return Err(in_the_way("exists and is not a record".into()));
    };
    let ours = |name: &String| name == MANIFEST || manifest.files.iter().any(|f| f.name == *name);
    match names.iter().find(|name| !ours(name)) {
        Some(added) => Err(in_the_way(format!("is a record to which `{added}` was added"))),
        None => Ok(true),
    }
}

/// A directory that goes away unless it was renamed.
struct Partial {
    path: PathBuf,
}

impl Partial {
    fn create(path: PathBuf) -> Result<Self, RecordError> {
        remove_stale(&path)?;
        fs::create_dir(&path).map_err(RecordError::io("create", &path))?;
        Ok(Self { path })
    }
}

impl Drop for Partial {
    fn drop(&mut self) {
        // Gone already after the rename; a failure to clean up must not hide the error that led here.
        let _ = fs::remove_dir_all(&self.path);
    }
}

/// Removes what a killed process left under our number: in a container every run may have the same.
fn remove_stale(path: &Path) -> Result<(), RecordError> {
    match fs::remove_dir_all(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => {
            Err(RecordError::io("remove", path)(error))
        }
        _ => Ok(()),
    }
}

/// `.<name>.<suffix>-<process>` beside `dir`: on the same file system, so that a rename is atomic.
fn sibling(dir: &Path, suffix: &str) -> PathBuf {
    let name = dir.file_name().unwrap_or_default().to_string_lossy();
    parent_of(dir).join(format!(".{name}.{suffix}-{}", std::process::id()))
}

fn parent_of(dir: &Path) -> &Path {
    match dir.parent() {
        Some(parent) if parent != Path::new("") => parent,
        _ => Path::new("."),
    }
}

fn put(path: &Path, bytes: &[u8]) -> Result<(), RecordError> {
    fs::write(path, bytes).map_err(RecordError::io("write", path))
}
