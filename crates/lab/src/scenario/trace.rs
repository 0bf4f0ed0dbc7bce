//! Where a link's trace comes from: a file, or a generator with a seed.

use std::path::Path;
use std::sync::Arc;

use paceline_net::{PS_PER_MS, Picos, Trace};

use super::error::{Fault, ScenarioError};
use super::reader::Reader;
use super::tree::{Place, Value};

/// Largest trace file that is read, bytes: an hour at 100 Gbit/s would be far beyond it.
const MAX_FILE: u64 = 1 << 30;

/// A trace as a scenario names it.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum TraceSource {
    /// Read from a file.
    File(Arc<Trace>),
    /// Generated: the generator's name, and its seed where the scenario pins one.
    Synth { name: String, seed: Option<u64> },
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
        // A path in the file goes with the file; one on the command line with the shell it was typed in.
        let path = match node.place {
            Place::Line(_) => reader.source.base_dir.join(text),
            Place::Set { .. } => text.into(),
        };
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
        if name.is_empty() {
            return Err(Fault::new("no generator after \"synth:\"", "allowed: synth:NAME"));
        }
        Ok(Self::Synth { name: name.into(), seed })
    }

    /// The opportunities, for a run of `duration_ps` with `run_seed`.
    pub fn resolve(&self, run_seed: u64, duration_ps: Picos) -> Result<Arc<Trace>, Fault> {
        match self {
            Self::File(trace) => Ok(trace.clone()),
            Self::Synth { name, seed } => {
                synthesize(name, seed.unwrap_or(run_seed), duration_ps.div_ceil(PS_PER_MS))
                    .map(Arc::new)
            }
        }
    }
}

/// The one place that asks the link crate for a generated trace, as long as the run.
fn synthesize(_name: &str, _seed: u64, _duration_ms: u64) -> Result<Trace, Fault> {
    Err(Fault::new(
        "generated traces are not available in this build",
        "allowed: the path of a trace file",
    ))
}

/// The one place that reads a trace file.
fn load(path: &Path) -> Result<Trace, Fault> {
    let hint = "allowed: the path of a trace file, one millisecond per line";
    let fail = |reason: String| Fault::new(format!("{}: {reason}", path.display()), hint);
    let size = std::fs::metadata(path).map_err(|e| fail(plain(&e)))?;
    if !size.is_file() || size.len() > MAX_FILE {
        return Err(fail("not a file of at most 1 GiB".into()));
    }
    let text = std::fs::read(path).map_err(|e| fail(plain(&e)))?;
    let mut opportunities_ms = Vec::new();
    for (i, line) in text.split(|b| *b == b'\n').enumerate() {
        let last = i > 0 && line.is_empty();
        let line = std::str::from_utf8(line).unwrap_or("?").trim_end_matches('\r');
        if line.is_empty() && last {
            continue;
        }
        let ms: Option<u32> = line.trim().parse().ok();
        let Some(ms) = ms.filter(|ms| opportunities_ms.last().is_none_or(|before| before <= ms))
        else {
            let what = format!("line {} is not a millisecond at or after the one before", i + 1);
            return Err(fail(what));
        };
        opportunities_ms.push(ms);
    }
    if opportunities_ms.last().is_none_or(|last| *last == 0) {
        return Err(fail("the last millisecond is not above 0".into()));
    }
    Ok(Trace { opportunities_ms })
}

/// Why a file cannot be read, without the system's error number.
pub(crate) fn plain(error: &std::io::Error) -> String {
    match error.kind() {
        std::io::ErrorKind::NotFound => "no such file".into(),
        std::io::ErrorKind::PermissionDenied => "permission denied".into(),
        _ => error.to_string(),
    }
}

/// Mean capacity of a trace that repeats, bit/s: opportunities of 1504 bytes over its period.
pub(crate) fn mean_bps(trace: &Trace) -> f64 {
    let period_ms = trace.opportunities_ms.last().copied().unwrap_or(0).max(1);
    trace.opportunities_ms.len() as f64 * 1504.0 * 8.0 * 1000.0 / f64::from(period_ms)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn generator_and_seed_are_read() {
        let synth = |text| TraceSource::synth(text).map_err(|fault| fault.what);
        let named = |name: &str, seed| Ok(TraceSource::Synth { name: name.into(), seed });
        assert_eq!(synth("lte"), named("lte", None));
        assert_eq!(synth("lte:7"), named("lte", Some(7)));
        assert!(synth("lte:x").is_err());
        assert!(synth("").is_err());
    }
}
