//! Where a link's trace comes from: a file, or a generator with a seed.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use paceline_net::trace::synth::{MAX_DURATION_MS, Preset};
use paceline_net::{DelayTrace, PS_PER_MS, Picos, Trace};

use super::error::{Fault, ScenarioError};
use super::reader::Reader;
use super::tree::{Node, Place, Value};

/// Gives every trace file in the tree a name of its own, and notes which file that is.
pub(crate) fn rename(node: &mut Node, base_dir: &Path, files: &mut Vec<(String, PathBuf)>) {
    match &mut node.value {
        Value::Array(nodes) => nodes.iter_mut().for_each(|node| rename(node, base_dir, files)),
        Value::Table(entries) => {
            for (key, node) in entries {
                let file = match &node.value {
                    Value::Text(text) if names_a_file(key, text) => path_of(base_dir, node, text),
                    _ => {
                        rename(node, base_dir, files);
                        continue;
                    }
                };
                let name = format!("trace-{}", files.len());
                node.value = Value::Text(name.clone());
                files.push((name, file));
            }
        }
        _ => {}
    }
}

fn names_a_file(key: &str, text: &str) -> bool {
    key == "delay_trace" || key == "trace" && !text.starts_with("synth:")
}

/// A trace as a scenario names it.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum TraceSource {
    /// Read from a file.
    File(Arc<Trace>),
    /// Generated, with its seed where the scenario pins one.
    Synth { preset: Preset, seed: Option<u64> },
}

impl TraceSource {
    /// The value of key `name`, which must be present.
    pub fn read(reader: &Reader<'_>, name: &str) -> Result<Self, ScenarioError> {
        let hint = "allowed: the path of a trace file, \"synth:NAME\" or \"synth:NAME:SEED\"";
        let Some(node) = reader.raw(name) else { return Err(reader.error(name, "missing", hint)) };
        let Value::Text(text) = &node.value else {
            return Err(reader.error(name, format!("expected text, found {}", node.what()), hint));
        };
        if let Some(generator) = text.strip_prefix("synth:") {
            return Self::synth(generator).map_err(|fault| reader.locus(name).blame(fault));
        }
        let path = path_of(&reader.source.base_dir, node, text);
        let trace = load(&path).map_err(|fault| reader.locus(name).blame(fault))?;
        Ok(Self::File(Arc::new(trace)))
    }

    fn synth(text: &str) -> Result<Self, Fault> {
        let (name, seed) = match text.split_once(':') {
            None => (text, None),
            Some((name, seed)) => {
                let parsed = seed.parse().ok();
                let seed = parsed.ok_or_else(|| {
                    let allowed = "allowed: a whole number of 0 or more";
                    Fault::new("the seed after \"synth:NAME:\" is not a number", allowed)
                })?;
                (name, Some(seed))
            }
        };
        let preset = Preset::from_name(name).ok_or_else(|| {
            let names = Preset::ALL.map(Preset::name).join(", ");
            Fault::new(format!("no generator called \"{name}\""), format!("allowed: {names}"))
        })?;
        Ok(Self::Synth { preset, seed })
    }

    /// The opportunities, for a run of `duration_ps` with `run_seed`.
    pub fn resolve(&self, run_seed: u64, duration_ps: Picos) -> Result<Arc<Trace>, Fault> {
        match self {
            Self::File(trace) => Ok(trace.clone()),
            Self::Synth { preset, seed } => {
                // As long as the run: it does not repeat unless it has to.
                let run_ms = duration_ps.div_ceil(PS_PER_MS).clamp(1000, MAX_DURATION_MS.into());
                let params = preset.params(run_ms as u32, seed.unwrap_or(run_seed));
                let trace = params.generate();
                trace.map(Arc::new).map_err(|error| Fault::new(error.to_string(), ""))
            }
        }
    }
}

/// The delays in the file that key `name` gives, if it does.
pub(crate) fn delay_trace(
    reader: &Reader<'_>,
    name: &str,
) -> Result<Option<DelayTrace>, ScenarioError> {
    let hint = "allowed: the path of a file with a line `TIME DELAY` per change, in ms";
    let Some(node) = reader.raw(name) else { return Ok(None) };
    let Value::Text(text) = &node.value else {
        return Err(reader.error(name, format!("expected text, found {}", node.what()), hint));
    };
    let path = path_of(&reader.source.base_dir, node, text);
    let trace = readable(&path, hint).and_then(|()| {
        DelayTrace::load(&path).map_err(|error| Fault::new(error.to_string(), hint))
    });
    trace.map(Some).map_err(|fault| reader.locus(name).blame(fault))
}

/// A path in the file goes with the file; one on the command line with the shell it was typed in.
fn path_of(base_dir: &Path, node: &Node, text: &str) -> PathBuf {
    match node.place {
        Place::Line(_) => base_dir.join(text),
        Place::Set { .. } => text.into(),
    }
}

/// Whether there is such a file.
fn readable(path: &Path, hint: &str) -> Result<(), Fault> {
    let fault = |error| Fault::new(format!("{}: {}", path.display(), plain(&error)), hint);
    std::fs::metadata(path).map(drop).map_err(fault)
}

/// Reads a trace file.
fn load(path: &Path) -> Result<Trace, Fault> {
    let hint = "allowed: the path of a trace file, one millisecond per line";
    readable(path, hint)?;
    Trace::load(path).map_err(|error| Fault::new(error.to_string(), hint))
}

/// Why a file cannot be read, without the system's error number.
pub(crate) fn plain(error: &std::io::Error) -> String {
    match error.kind() {
        std::io::ErrorKind::NotFound => "no such file".into(),
        std::io::ErrorKind::PermissionDenied => "permission denied".into(),
        _ => error.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn generator_and_seed_are_read() {
        let synth = |text| TraceSource::synth(text).map_err(|fault| fault.what);
        let lte = |seed| Ok(TraceSource::Synth { preset: Preset::Lte, seed });
        assert_eq!(synth("lte"), lte(None));
        assert_eq!(synth("lte:7"), lte(Some(7)));
        assert!(synth("5g").is_err());
        assert!(synth("lte:x").is_err());
        assert!(synth("").is_err());
    }
}
