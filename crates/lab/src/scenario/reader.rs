//! Typed access to one table of the tree, against its description in [`keys`](super::keys).

use std::borrow::Cow;
use std::path::PathBuf;
use std::sync::Arc;

use paceline_cc::Spec;
use paceline_net::Picos;

use super::error::{Fault, Locus, ScenarioError, suggest};
use super::keys::{Absent, Kind, MAX_TEXT, Table, Variants};
use super::quantity::{self, BufferSize, Delay};
use super::tree::{Node, Place, TABLE, Value};

/// The file a scenario came from.
#[derive(Clone, Debug)]
pub(crate) struct Source {
    /// As errors name it.
    pub file: Arc<str>,
    /// What paths in the file are relative to.
    pub base_dir: PathBuf,
    /// Controllers that are not in the registry but may be named.
    pub guests: Arc<[&'static Spec]>,
}

/// One table, its unknown, missing and contradictory keys already refused.
pub(crate) struct Reader<'a> {
    pub source: &'a Source,
    pub node: &'a Node,
    pub path: String,
    table: &'static Table,
}

impl<'a> Reader<'a> {
    /// The table `node` at `path`. Keys named in `extra` are somebody else's.
    pub fn open(
        source: &'a Source,
        node: &'a Node,
        path: &str,
        table: &'static Table,
        extra: &[&str],
    ) -> Result<Self, ScenarioError> {
        let reader = Self { source, node, path: path.into(), table };
        let Value::Table(entries) = &node.value else {
            let hint = format!("allowed: {}", Kind::Table(table).allowed());
            return Err(reader.error("", format!("expected a table, found {}", node.what()), hint));
        };
        for (name, child) in entries {
            if table.key(name).is_none() && !extra.contains(&name.as_str()) {
                let known = extra.iter().copied().chain(table.keys.iter().map(|key| key.name));
                let known: Vec<&str> = known.collect();
                let locus = Locus::of(&source.file, child, &reader.path_of(name));
                return Err(locus.error("unknown key", suggest(name, known.into_iter())));
            }
        }
        for (a, b) in table.exclusive {
            if let (Some(_), Some(_)) = (node.get(a), node.get(b)) {
                return Err(reader.error(b, format!("excludes `{a}`"), "allowed: one of the two"));
            }
        }
        for key in table.keys {
            if key.absent == Absent::Required && node.get(key.name).is_none() {
                return Err(reader.missing(key.name, &key.kind));
            }
        }
        Ok(reader)
    }

    fn missing(&self, name: &str, kind: &Kind) -> ScenarioError {
        let locus = Locus::absent(&self.source.file, self.node, &self.path_of(name));
        locus.error("missing", format!("allowed: {}", kind.allowed()))
    }

    /// Dotted path of key `name` of this table, or of the table itself for "".
    pub fn path_of(&self, name: &str) -> String {
        match (self.path.is_empty(), name.is_empty()) {
            (true, _) => name.into(),
            (false, true) => self.path.clone(),
            (false, false) => format!("{}.{name}", self.path),
        }
    }

    /// Where key `name` stands (or would stand).
    pub fn locus(&self, name: &str) -> Locus {
        let path = self.path_of(name);
        match self.node.get(name) {
            Some(child) => Locus::of(&self.source.file, child, &path),
            None if name.is_empty() => Locus::of(&self.source.file, self.node, &path),
            None => Locus::absent(&self.source.file, self.node, &path),
        }
    }

    /// An error about key `name`.
    pub fn error(
        &self,
        name: &str,
        what: impl Into<String>,
        hint: impl Into<String>,
    ) -> ScenarioError {
        self.locus(name).error(what, hint)
    }

    /// Whether the file (or an option) gives `name`.
    pub fn has(&self, name: &str) -> bool {
        self.node.get(name).is_some()
    }

    /// The value of `name` or its default, converted by `convert`; `None` where it has neither.
    fn read<T>(
        &self,
        name: &str,
        convert: impl FnOnce(&Node, &Kind) -> Result<T, Fault>,
    ) -> Result<Option<T>, ScenarioError> {
        // The names are the program's own: a wrong one fails on every scenario, never on a particular one.
        let key =
            self.table.key(name).unwrap_or_else(|| panic!("{} has no {name}", self.table.name));
        let node = match (self.node.get(name), key.absent) {
            (Some(node), _) => Cow::Borrowed(node),
            (None, Absent::Default(text)) => {
                Cow::Owned(Node::from_option(text, self.node.place.clone()))
            }
            (None, _) => return Ok(None),
        };
        convert(&node, &key.kind)
            .map(Some)
            .map_err(|fault| Locus::of(&self.source.file, &node, &self.path_of(name)).blame(fault))
    }

    fn always<T>(
        &self,
        name: &str,
        convert: impl FnOnce(&Node, &Kind) -> Result<T, Fault>,
    ) -> Result<T, ScenarioError> {
        let value = self.read(name, convert)?;
        value.ok_or_else(|| self.error(name, "missing", ""))
    }

    /// Text: a title or a name.
    pub fn text(&self, name: &str) -> Result<Option<String>, ScenarioError> {
        self.read(name, |node, kind| {
            let fault = |what: String| Fault::new(what, format!("allowed: {}", kind.allowed()));
            let Value::Text(text) = &node.value else {
                return Err(fault(format!("expected text, found {}", node.what())));
            };
            let long = text.chars().count() > MAX_TEXT;
            if text.trim().is_empty() || long || text.chars().any(char::is_control) {
                return Err(fault("not a usable text".into()));
            }
            Ok(text.clone())
        })
    }

    /// `true` or `false`; it has a default.
    pub fn flag(&self, name: &str) -> Result<bool, ScenarioError> {
        self.always(name, |node, kind| match node.value {
            Value::Bool(flag) => Ok(flag),
            _ => Err(Fault::new(
                format!("expected true or false, found {}", node.what()),
                format!("allowed: {}", kind.allowed()),
            )),
        })
    }

    /// A whole number.
    pub fn whole(&self, name: &str) -> Result<Option<u64>, ScenarioError> {
        self.read(name, |node, kind| {
            let Kind::Whole { min, max } = kind else { return Err(quantity::out_of_range(kind)) };
            match node.value {
                Value::Whole(number) if (*min..=*max).contains(&number) => Ok(number as u64),
                Value::Whole(_) => Err(quantity::out_of_range(kind)),
                _ => Err(Fault::new(
                    format!("expected a whole number, found {}", node.what()),
                    format!("allowed: {}", kind.allowed()),
                )),
            }
        })
    }

    /// A number.
    pub fn number(&self, name: &str) -> Result<Option<f64>, ScenarioError> {
        self.read(name, |node, kind| match *kind {
            Kind::Number { min, max } => quantity::number(node, min, max, kind),
            _ => Err(quantity::out_of_range(kind)),
        })
    }

    /// A duration, ps; "exact" rules and the like are the caller's.
    pub fn time(&self, name: &str) -> Result<Option<Picos>, ScenarioError> {
        let value = self.read(name, |node, kind| match (*kind, &node.value) {
            (Kind::TimeOrFalse { .. }, Value::Bool(false)) => Ok(None),
            (
                Kind::Time { min, max }
                | Kind::TimeOrFalse { min, max }
                | Kind::TimeOrSpread { min, max, .. },
                _,
            ) => quantity::time(node, min, max, kind).map(Some),
            _ => Err(quantity::out_of_range(kind)),
        })?;
        Ok(value.flatten())
    }

    /// A duration that has a default or is required, ps.
    pub fn time_always(&self, name: &str) -> Result<Picos, ScenarioError> {
        self.time(name)?.ok_or_else(|| self.error(name, "missing", ""))
    }

    /// The first and the last of a series of durations, ps; a single duration is both.
    pub fn spread(&self, name: &str) -> Result<(Picos, Picos), ScenarioError> {
        if let Some(node) = self.node.get(name)
            && matches!(node.value, Value::Table(_))
        {
            let ends = self.child(name, node)?;
            return Ok((ends.time_always("from")?, ends.time_always("to")?));
        }
        let time = self.time_always(name)?;
        Ok((time, time))
    }

    /// A time or a share of the base RTT.
    pub fn delay(&self, name: &str) -> Result<Option<Delay>, ScenarioError> {
        self.read(name, |node, kind| match kind {
            Kind::TimeOrRtt { max } => quantity::delay(node, *max, kind),
            _ => Err(quantity::out_of_range(kind)),
        })
    }

    /// A rate, bit/s; the inner `None` is "unlimited".
    pub fn rate(&self, name: &str) -> Result<Option<Option<f64>>, ScenarioError> {
        self.read(name, |node, kind| match *kind {
            Kind::Rate { min, max } => quantity::rate(node, min, max, kind).map(Some),
            Kind::RateOrUnlimited { min, max } => quantity::rate_or_unlimited(node, min, max, kind),
            _ => Err(quantity::out_of_range(kind)),
        })
    }

    /// A size, bytes.
    pub fn bytes(&self, name: &str) -> Result<Option<u64>, ScenarioError> {
        self.read(name, |node, kind| match *kind {
            Kind::Bytes { min, max } => quantity::bytes(node, min, max, kind),
            _ => Err(quantity::out_of_range(kind)),
        })
    }

    /// A count of packets that has a default.
    pub fn packets(&self, name: &str) -> Result<u64, ScenarioError> {
        self.always(name, |node, kind| match *kind {
            Kind::Packets { min, max } => quantity::packets(node, min, max, kind),
            _ => Err(quantity::out_of_range(kind)),
        })
    }

    /// A probability that is required or has a default.
    pub fn probability(&self, name: &str) -> Result<f64, ScenarioError> {
        self.always(name, |node, kind| match *kind {
            Kind::Probability { max } | Kind::ProbabilityOr { max, .. } => {
                quantity::probability(node, max, kind)
            }
            _ => Err(quantity::out_of_range(kind)),
        })
    }

    /// A buffer.
    pub fn buffer(&self, name: &str) -> Result<Option<BufferSize>, ScenarioError> {
        self.read(name, quantity::buffer)
    }

    /// The table `name`; `absent` (an empty table) where it is not given.
    pub fn child<'b>(&'b self, name: &str, absent: &'b Node) -> Result<Reader<'b>, ScenarioError> {
        let node = self.node.get(name).unwrap_or(absent);
        let table = self.table.key(name).and_then(|key| key.kind.table());
        let table = table.unwrap_or_else(|| panic!("{} has no table {name}", self.table.name));
        Reader::open(self.source, node, &self.path_of(name), table, &[])
    }

    /// The tables of the array `name`.
    pub fn tables(&self, name: &str) -> Result<Vec<Reader<'a>>, ScenarioError> {
        let key = self.table.key(name).unwrap_or_else(|| panic!("no {name}"));
        let Some(table) = key.kind.table() else { return Ok(Vec::new()) };
        let Some(node) = self.node.get(name) else { return Ok(Vec::new()) };
        let hint = || format!("allowed: {}", key.kind.allowed());
        match &node.value {
            Value::Array(nodes) if !nodes.is_empty() => {
                let entry = |(i, node)| {
                    let path = format!("{}.{i}", self.path_of(name));
                    Reader::open(self.source, node, &path, table, &[])
                };
                nodes.iter().enumerate().map(entry).collect()
            }
            Value::Array(_) => Err(self.error(name, "is empty", hint())),
            Value::Table(_) => {
                let what = format!("expected an array; write [[{name}]]");
                Err(self.error(name, what, ""))
            }
            _ => Err(self.error(name, format!("expected an array, found {}", node.what()), hint())),
        }
    }

    /// The variant that `name` picks and the reader of its keys; `None` where it is not given. A bare word is read as a
    /// table without keys, which `bare` stands for.
    pub fn variant<'b>(
        &'b self,
        name: &str,
        bare: &'b Node,
    ) -> Result<Option<(&'static str, Reader<'b>)>, ScenarioError> {
        let key = self.table.key(name).unwrap_or_else(|| panic!("no {name}"));
        let (Kind::Variants(variants) | Kind::ProbabilityOr { or: variants, .. }) = key.kind else {
            return Ok(None);
        };
        let path = self.path_of(name);
        match (self.node.get(name), key.absent) {
            (None, Absent::Default(word)) => {
                let word = Node::from_option(word, self.node.place.clone());
                let locus = Locus::of(&self.source.file, &word, &path);
                self.chosen(&word, locus, variants, bare, &path).map(Some)
            }
            (None, _) => Ok(None),
            (Some(node), _) if matches!(node.value, Value::Table(_)) => {
                let path_kind = format!("{path}.kind");
                let word = match (node.get("kind"), variants.list) {
                    (Some(word), _) => Cow::Borrowed(word),
                    (None, [first, ..]) if variants.bare => {
                        Cow::Owned(Node::from_option(first.name, node.place.clone()))
                    }
                    (None, _) => {
                        let locus = Locus::absent(&self.source.file, node, &path_kind);
                        let hint = format!("allowed: {}", Kind::Variants(variants).allowed());
                        return Err(locus.error("missing", hint));
                    }
                };
                let locus = Locus::of(&self.source.file, &word, &path_kind);
                self.chosen(&word, locus, variants, node, &path).map(Some)
            }
            (Some(node), _) if variants.bare => {
                let locus = Locus::of(&self.source.file, node, &path);
                self.chosen(node, locus, variants, bare, &path).map(Some)
            }
            (Some(node), _) => {
                let words: Vec<&str> = variants.words().collect();
                let hint = format!("allowed: a table with kind = {}", words.join(", "));
                Err(self.error(name, format!("expected a table, found {}", node.what()), hint))
            }
        }
    }

    fn chosen<'b>(
        &'b self,
        word: &Node,
        locus: Locus,
        variants: &'static Variants,
        node: &'b Node,
        path: &str,
    ) -> Result<(&'static str, Reader<'b>), ScenarioError> {
        let Value::Text(text) = &word.value else {
            let hint = format!("allowed: {}", Kind::Variants(variants).allowed());
            return Err(locus.error(format!("expected text, found {}", word.what()), hint));
        };
        if let Some(variant) = variants.list.iter().find(|variant| variant.name == text) {
            let reader = Reader::open(self.source, node, path, variant.table, &["kind"])?;
            return Ok((variant.name, reader));
        }
        if let Some((name, why)) = variants.unavailable.iter().find(|(name, _)| name == text) {
            let hint = format!("allowed: {}", Kind::Variants(variants).allowed());
            return Err(locus.error(format!("{} \"{name}\" {why}", variants.name), hint));
        }
        Err(locus.error(format!("unknown {}", variants.name), suggest(text, variants.words())))
    }

    /// An empty table where `name` stands, for a bare word there.
    pub fn nothing_at(&self, name: &str) -> Node {
        let place = self.node.get(name).map(|node| node.place.clone());
        Node { place: place.unwrap_or_else(|| self.node.place.clone()), ..nothing() }
    }

    /// The raw node of `name`.
    pub fn raw(&self, name: &str) -> Option<&'a Node> {
        self.node.get(name)
    }
}

/// An empty table, to read defaults from.
pub(crate) fn nothing() -> Node {
    Node { value: Value::Table(Vec::new()), place: Place::Line(1), raw: TABLE.into() }
}
