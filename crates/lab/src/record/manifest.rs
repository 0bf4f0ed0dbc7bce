//! `manifest.json`: what produced a record, what is in it, and whether to believe it.
//!
//! The first members name the format and its version. Readers ignore members they do not know and fill in absent optional
//! ones, so records stay readable; only a change that would mislead an old reader raises [`FORMAT_VERSION`].

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use paceline_sim::{Outcome, PacketSizes};
use serde::{Deserialize, Serialize};

use super::checks::{self, Check};
use super::digest::sha256_hex;
use super::provenance::{GitState, Host, Provenance, rfc3339_utc};
use super::summary::{Summary, finite};
use super::tables::Table;
use super::{FlowInfo, MANIFEST, ParamValue, RecordError, RunInfo};

/// Value of `format`.
pub const FORMAT: &str = "paceline-record";
/// The newest `format_version` that this program writes and reads.
pub const FORMAT_VERSION: u64 = 1;

/// `manifest.json`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Manifest {
    /// [`FORMAT`].
    pub format: String,
    /// [`FORMAT_VERSION`] of the writer.
    pub format_version: u64,
    /// Version of the writer.
    pub paceline_version: String,
    /// Commit of the writer.
    pub git: GitState,
    /// What was run.
    pub scenario: ScenarioEntry,
    /// `sim`, `live` or `vm`.
    pub world: String,
    /// Master seed.
    pub seed: u64,
    /// Length of the run, s.
    pub duration_s: Option<f64>,
    /// Statistics and rates cover `[warmup, duration]`, s.
    pub warmup_s: Option<f64>,
    /// The flows as they were set up.
    pub flows: Vec<FlowEntry>,
    /// The command as typed, program first.
    pub command_line: Vec<String>,
    /// What it ran on.
    pub host: Host,
    /// When it began, RFC 3339, UTC.
    pub started: String,
    /// How long it took, s.
    pub wall_s: Option<f64>,
    /// The other files of the directory.
    pub files: Vec<FileEntry>,
    /// Statements about whether the result can be believed.
    pub checks: Vec<Check>,
    /// What `run --json` printed.
    pub result: Summary,
}

/// The scenario, whole: a record can be run again without the file it came from.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ScenarioEntry {
    /// Title or name.
    pub name: String,
    /// The file, as it was named; null for a scenario built in code.
    pub path: Option<String>,
    /// SHA-256 of `text`, hex.
    pub sha256: String,
    /// The text, with overrides applied.
    pub text: String,
}

/// A flow as it was set up.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct FlowEntry {
    /// Name.
    pub name: String,
    /// Controller.
    pub controller: String,
    /// Its parameters, every one.
    pub controller_params: BTreeMap<String, ParamValue>,
    /// Endpoint.
    pub stack: String,
    /// Packet sizes.
    pub packet_bytes: PacketBytes,
}

/// Sizes on the wire, bytes.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct PacketBytes {
    /// A full data packet.
    pub data: u16,
    /// Of which headers.
    pub header: u16,
    /// An ACK.
    pub ack: u16,
}

/// A file of the record.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct FileEntry {
    /// Name, relative to the manifest.
    pub name: String,
    /// SHA-256 of the bytes, hex. Equal for equal runs.
    pub sha256: String,
    /// Size.
    pub bytes: u64,
    /// Rows of the table.
    pub rows: u64,
    /// Its columns, in order.
    pub columns: Vec<ColumnEntry>,
}

/// A column of a table.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ColumnEntry {
    /// Name.
    pub name: String,
    /// Unit of its values.
    pub unit: String,
}

impl Manifest {
    /// Describes a run and the tables that hold it.
    pub fn new(
        info: &RunInfo,
        outcome: &Outcome,
        provenance: &Provenance,
        tables: &[Table],
    ) -> Self {
        Self {
            format: FORMAT.into(),
            format_version: FORMAT_VERSION,
            paceline_version: super::VERSION.into(),
            git: GitState::of_this_build(),
            scenario: ScenarioEntry {
                name: info.scenario.clone(),
                path: info.scenario_path.as_ref().map(|p| p.to_string_lossy().into_owned()),
                sha256: sha256_hex(info.scenario_text.as_bytes()),
                text: info.scenario_text.clone(),
            },
            world: info.world.clone(),
            seed: info.seed,
            duration_s: finite(info.duration_s),
            warmup_s: finite(info.warmup_s),
            flows: info.flows.iter().map(FlowEntry::from).collect(),
            command_line: provenance.command_line.clone(),
            host: provenance.host.clone(),
            started: rfc3339_utc(provenance.started),
            wall_s: finite(provenance.wall_s),
            files: tables.iter().map(FileEntry::from).collect(),
            checks: checks::all(info, outcome)
                .into_iter()
                .chain(provenance.checks.clone())
                .collect(),
            result: Summary::new(info, outcome),
        }
    }

    /// The manifest as indented JSON with a final newline.
    pub fn to_json(&self) -> String {
        // Strings, integers and finite numbers under string keys: nothing in here that JSON cannot hold.
        let mut text = serde_json::to_string_pretty(self).expect("a manifest is always valid JSON");
        text.push('\n');
        text
    }

    /// Names of the record's files whose bytes are not what they were when it was written, or that are gone.
    ///
    /// # Errors
    /// A file that is there and cannot be read.
    pub fn altered_files(&self, dir: &Path) -> Result<Vec<String>, RecordError> {
        let mut altered = Vec::new();
        for file in &self.files {
            // A manifest from elsewhere may name anything; only what lies in the directory is part of the record.
            if Path::new(&file.name).file_name() != Some(file.name.as_ref()) {
                altered.push(file.name.clone());
                continue;
            }
            let path = dir.join(&file.name);
            match fs::read(&path) {
                Ok(bytes) if sha256_hex(&bytes) == file.sha256 => {}
                Ok(_) => altered.push(file.name.clone()),
                Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
                    altered.push(file.name.clone());
                }
                Err(error) => return Err(RecordError::io("read", &path)(error)),
            }
        }
        Ok(altered)
    }
}

impl From<&FlowInfo> for FlowEntry {
    fn from(flow: &FlowInfo) -> Self {
        Self {
            name: flow.name.clone(),
            controller: flow.controller.clone(),
            controller_params: flow.controller_params.clone(),
            stack: flow.stack.clone(),
            packet_bytes: flow.packets.into(),
        }
    }
}

impl From<PacketSizes> for PacketBytes {
    fn from(sizes: PacketSizes) -> Self {
        Self { data: sizes.data_bytes, header: sizes.header_bytes, ack: sizes.ack_bytes }
    }
}

impl From<&Table> for FileEntry {
    fn from(table: &Table) -> Self {
        let column = |(name, unit): &(String, String)| ColumnEntry {
            name: name.clone(),
            unit: unit.clone(),
        };
        Self {
            name: table.name.into(),
            sha256: sha256_hex(&table.bytes),
            bytes: table.bytes.len() as u64,
            rows: table.rows,
            columns: table.columns.iter().map(column).collect(),
        }
    }
}

/// Reads the manifest of the record in `dir`.
///
/// # Errors
/// A file that cannot be read; one that is not a manifest, with line and column; one of a later format.
pub fn read_manifest(dir: &Path) -> Result<Manifest, RecordError> {
    let path = dir.join(MANIFEST);
    let bytes = fs::read(&path).map_err(RecordError::io("read", &path))?;
    parse_manifest(&bytes, &path)
}

/// Parses a manifest; `path` is for the error. No bytes make it panic.
///
/// # Errors
/// As [`read_manifest`].
pub fn parse_manifest(bytes: &[u8], path: &Path) -> Result<Manifest, RecordError> {
    /// What every version of the format has.
    #[derive(Deserialize)]
    struct Header {
        format: Option<String>,
        format_version: Option<u64>,
    }

    let invalid = |reason: String| RecordError::Manifest { path: path.to_path_buf(), reason };
    // serde_json's message ends in the line and the column.
    let header: Header =
        serde_json::from_slice(bytes).map_err(|e| invalid(format!("not a manifest: {e}")))?;
    if header.format.as_deref() != Some(FORMAT) {
        let found = header.format.map_or("absent".into(), |f| format!("{f:?}"));
        return Err(invalid(format!("not a manifest: `format` is {found}, not {FORMAT:?}")));
    }
    match header.format_version {
        Some(1..=FORMAT_VERSION) => {}
        Some(found) if found > FORMAT_VERSION => {
            let path = path.to_path_buf();
            return Err(RecordError::Newer { path, found, supported: FORMAT_VERSION });
        }
        found => {
            let found = found.map_or("absent".into(), |v| v.to_string());
            let allowed = format!("1 to {FORMAT_VERSION}");
            return Err(invalid(format!("`format_version` is {found}; allowed: {allowed}")));
        }
    }
    serde_json::from_slice(bytes).map_err(|e| invalid(e.to_string()))
}
