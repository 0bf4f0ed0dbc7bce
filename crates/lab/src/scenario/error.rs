//! What is wrong with a scenario, and where.

use std::fmt;
use std::sync::Arc;

use super::tree::{ARRAY, Node, Place, TABLE};

/// A scenario that cannot be used. It prints as one line, `file:line: key = value: what is wrong; what is allowed`, or with the
/// command-line option in place of file and line when the value came from there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScenarioError {
    /// `file:line`, `file`, `--set KEY=VALUE` or `--controller TEXT`.
    pub place: String,
    /// Dotted path of the key, such as `link.rate` or `flows.0.controller`; empty where `place` already says it.
    pub key: String,
    /// The value as written; `None` for a missing key.
    pub value: Option<String>,
    /// What is wrong.
    pub what: String,
    /// The allowed values, or the nearest known key; empty when `what` says it all.
    pub hint: String,
}

impl fmt::Display for ScenarioError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { place, key, value, what, hint } = self;
        let mut said = format!("{place}: ");
        if !key.is_empty() {
            said += key;
            if let Some(value) = value {
                said += " = ";
                said += value;
            }
            said += ": ";
        }
        said += what;
        if !hint.is_empty() {
            said += "; ";
            said += hint;
        }
        f.write_str(&one_line(&said))
    }
}

/// The text with a space for every control character: a quoted key or a command line may hold line breaks.
pub(crate) fn one_line(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect()
}

impl std::error::Error for ScenarioError {}

/// What is wrong with a value, before anyone knows where it stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Fault {
    pub what: String,
    pub hint: String,
}

impl Fault {
    pub fn new(what: impl Into<String>, hint: impl Into<String>) -> Self {
        Self { what: what.into(), hint: hint.into() }
    }
}

/// Where a value stands: enough to blame it after the file is read.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Locus {
    file: Arc<str>,
    place: Place,
    path: String,
    value: Option<String>,
}

impl Locus {
    /// The value `node` at `path`.
    pub fn of(file: &Arc<str>, node: &Node, path: &str) -> Self {
        Self {
            file: file.clone(),
            place: node.place.clone(),
            path: path.into(),
            value: Some(node.raw.clone()).filter(|raw| raw != TABLE && raw != ARRAY),
        }
    }

    /// A key that is missing from the table `node`.
    pub fn absent(file: &Arc<str>, node: &Node, path: &str) -> Self {
        Self { value: None, ..Self::of(file, node, path) }
    }

    /// The error for `fault` here.
    pub fn blame(&self, fault: Fault) -> ScenarioError {
        let Self { file, place, path, value } = self;
        let (place, said) = match place {
            Place::Line(line) => (format!("{file}:{line}"), false),
            Place::Set { text, path: set } => (text.to_string(), **set == **path),
        };
        ScenarioError {
            place,
            key: if said { String::new() } else { path.clone() },
            value: if said { None } else { value.clone() },
            what: fault.what,
            hint: fault.hint,
        }
    }

    /// The error `what`, with `hint`, here.
    pub fn error(&self, what: impl Into<String>, hint: impl Into<String>) -> ScenarioError {
        self.blame(Fault::new(what, hint))
    }
}

/// Most names that a hint lists.
const LISTED: usize = 60;

/// `did you mean …?` when a known name is near, the list of `known` names otherwise.
pub(crate) fn suggest<'a>(written: &str, known: impl Iterator<Item = &'a str> + Clone) -> String {
    let length = written.chars().count();
    // One letter is one edit away from every other.
    let limit = (length / 3).max(1).min(length.saturating_sub(1));
    let near = known.clone().map(|name| (distance(written, name), name)).min_by_key(|(d, _)| *d);
    match near {
        Some((d, name)) if d <= limit && length > 0 => format!("did you mean `{name}`?"),
        _ => {
            let names: Vec<&str> = known.collect();
            match names.len() {
                0 => "allowed: none".into(),
                count if count > LISTED => {
                    format!("allowed: {}, … ({count} in all)", names[..LISTED].join(", "))
                }
                _ => format!("allowed: {}", names.join(", ")),
            }
        }
    }
}

/// Edits (insert, delete, replace, swap of neighbours) from `a` to `b`; case does not count.
fn distance(a: &str, b: &str) -> usize {
    // A long word is near to nothing we know, and the table below is quadratic.
    if a.len() > 64 {
        return usize::MAX;
    }
    let a: Vec<char> = a.to_lowercase().chars().collect();
    let b: Vec<char> = b.to_lowercase().chars().collect();
    let mut rows: Vec<Vec<usize>> = vec![(0..=b.len()).collect()];
    for i in 1..=a.len() {
        let mut row = vec![i];
        for j in 1..=b.len() {
            let replaced = rows[i - 1][j - 1] + usize::from(a[i - 1] != b[j - 1]);
            let mut best = replaced.min(rows[i - 1][j] + 1).min(row[j - 1] + 1);
            if i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] {
                best = best.min(rows[i - 2][j - 2] + 1);
            }
            row.push(best);
        }
        rows.push(row);
    }
    rows[a.len()][b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nearest_name_is_suggested_only_when_near() {
        let known = ["buffer", "rate", "delay"];
        assert_eq!(suggest("bufer", known.into_iter()), "did you mean `buffer`?");
        assert_eq!(suggest("Rate", known.into_iter()), "did you mean `rate`?");
        assert_eq!(suggest("dealy", known.into_iter()), "did you mean `delay`?");
        assert_eq!(suggest("colour", known.into_iter()), "allowed: buffer, rate, delay");
        assert_eq!(suggest("b", ["a"].into_iter()), "allowed: a");
        assert_eq!(suggest("x", [].into_iter()), "allowed: none");
    }

    #[test]
    fn distance_counts_edits() {
        assert_eq!(distance("kitten", "sitting"), 3);
        assert_eq!(distance("ab", "ba"), 1);
        assert_eq!(distance("", "abc"), 3);
    }
}
