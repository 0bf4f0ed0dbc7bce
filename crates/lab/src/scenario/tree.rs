//! The scenario as written: a TOML document turned into a plain tree whose every value knows where it came from.
//!
//! The TOML library's editable document forgets positions, so values given on the command line (`--set`) are put into this tree
//! instead; an error then names either file and line or the option.

use std::sync::Arc;

use toml_edit::{Document, Item, TableLike, Value as Toml};

use super::error::{Fault, ScenarioError, one_line};
use super::keys::{self, Kind, Table};

/// Where a value came from.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Place {
    /// Line of the scenario file, from 1.
    Line(usize),
    /// A command-line option as given, and the dotted path it sets.
    Set { text: Arc<str>, path: Arc<str> },
}

/// A value and where it came from.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Node {
    pub value: Value,
    pub place: Place,
    /// As written, shortened where it is long.
    pub raw: String,
}

/// A TOML value.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Value {
    Text(String),
    Whole(i64),
    Real(f64),
    Bool(bool),
    Date,
    Array(Vec<Node>),
    Table(Vec<(String, Node)>),
}

static ROOT: Kind = Kind::Table(&keys::SCENARIO);
/// Deepest key that `--set` takes; no scenario key has more than five parts.
const DEPTH: usize = 16;
/// What stands for the text of a table or array that spans lines.
pub(crate) const TABLE: &str = "{ … }";
pub(crate) const ARRAY: &str = "[ … ]";
/// Longest value that an error quotes, characters.
const QUOTE: usize = 60;

impl Node {
    /// The tree of a TOML text.
    ///
    /// # Errors
    /// Anything that is not TOML, with its line.
    pub fn parse(file: &str, text: &str) -> Result<Self, ScenarioError> {
        let lines = Lines::of(text);
        let document = Document::parse(text).map_err(|error| {
            let line = error.span().map_or(1, |span| lines.at(span.start));
            ScenarioError {
                place: format!("{file}:{line}"),
                key: String::new(),
                value: None,
                what: format!("not TOML: {}", one_line(error.message())),
                hint: String::new(),
            }
        })?;
        Ok(lines.table(document.as_table(), Some(0)))
    }

    /// A value outside any file: TOML if it parses as such, otherwise text.
    pub fn from_option(text: &str, place: Place) -> Self {
        let raw = quote(text.trim());
        if let Some(node) = Self::lone_value(text.trim()) {
            let mut node = Self { raw, ..node };
            node.move_to(&place);
            return node;
        }
        Self { value: Value::Text(text.into()), place, raw: quote(&format!("{text:?}")) }
    }

    /// The value, if `text` is one TOML value and nothing else.
    fn lone_value(text: &str) -> Option<Self> {
        let line = format!("value = {text}");
        let document = Document::parse(line.as_str()).ok()?;
        let (Some(Item::Value(value)), 1) = (document.get("value"), document.len()) else {
            return None;
        };
        Some(Lines::of(&line).value(value, None))
    }

    fn move_to(&mut self, place: &Place) {
        self.place = place.clone();
        match &mut self.value {
            Value::Array(nodes) => nodes.iter_mut().for_each(|n| n.move_to(place)),
            Value::Table(entries) => entries.iter_mut().for_each(|(_, n)| n.move_to(place)),
            _ => {}
        }
    }

    /// The entry `key` of a table.
    pub fn get(&self, key: &str) -> Option<&Self> {
        match &self.value {
            Value::Table(entries) => entries.iter().find(|(k, _)| k == key).map(|(_, n)| n),
            _ => None,
        }
    }

    /// What kind of thing this is, for an error.
    pub fn what(&self) -> &'static str {
        match self.value {
            Value::Text(_) => "text",
            Value::Whole(_) => "a whole number",
            Value::Real(_) => "a real number",
            Value::Bool(_) => "true or false",
            Value::Date => "a date",
            Value::Array(_) => "an array",
            Value::Table(_) => "a table",
        }
    }
}

/// Byte offsets of the line starts of a text.
struct Lines<'a> {
    text: &'a str,
    starts: Vec<usize>,
}

impl<'a> Lines<'a> {
    fn of(text: &'a str) -> Self {
        let newlines = text.bytes().enumerate().filter(|(_, b)| *b == b'\n').map(|(i, _)| i + 1);
        Self { text, starts: std::iter::once(0).chain(newlines).collect() }
    }

    fn at(&self, offset: usize) -> usize {
        self.starts.partition_point(|start| *start <= offset).max(1)
    }

    fn table(&self, table: &dyn TableLike, offset: Option<usize>) -> Node {
        let mut entries = Vec::with_capacity(table.len());
        let mut first = None;
        for (name, item) in table.iter() {
            let at = table.key(name).and_then(|key| key.span()).map(|span| span.start);
            let at = at.or_else(|| item.span().map(|span| span.start));
            first = first.or(at);
            if let Some(node) = self.item(item, at) {
                entries.push((name.to_string(), node));
            }
        }
        self.node(Value::Table(entries), offset.or(first), TABLE)
    }

    fn item(&self, item: &Item, at: Option<usize>) -> Option<Node> {
        Some(match item {
            Item::None => return None,
            Item::Value(value) => self.value(value, at),
            Item::Table(table) => self.table(table, table.span().map(|s| s.start).or(at)),
            Item::ArrayOfTables(tables) => {
                let start = |table: &toml_edit::Table| table.span().map(|s| s.start);
                let nodes = tables.iter().map(|t| self.table(t, start(t).or(at))).collect();
                self.node(Value::Array(nodes), at, ARRAY)
            }
        })
    }

    fn value(&self, value: &Toml, at: Option<usize>) -> Node {
        let span = value.span();
        let raw = span.clone().and_then(|span| self.text.get(span)).unwrap_or_default();
        let at = at.or(span.map(|span| span.start));
        let value = match value {
            Toml::String(text) => Value::Text(text.value().clone()),
            Toml::Integer(number) => Value::Whole(*number.value()),
            Toml::Float(number) => Value::Real(*number.value()),
            Toml::Boolean(flag) => Value::Bool(*flag.value()),
            Toml::Datetime(_) => Value::Date,
            Toml::Array(array) => {
                Value::Array(array.iter().map(|value| self.value(value, None)).collect())
            }
            Toml::InlineTable(table) => return Node { raw: quote(raw), ..self.table(table, at) },
        };
        self.node(value, at, raw)
    }

    fn node(&self, value: Value, offset: Option<usize>, raw: &str) -> Node {
        let line = offset.map_or(1, |offset| self.at(offset));
        Node { value, place: Place::Line(line), raw: quote(raw) }
    }
}

fn quote(raw: &str) -> String {
    let line = one_line(raw);
    if line.chars().count() <= QUOTE {
        return line;
    }
    line.chars().take(QUOTE - 1).chain(['…']).collect()
}

/// Puts `--set KEY=VALUE` into the tree. A key that excludes another (rate and trace) takes its place; a bare word on the
/// way (`controller = "window"`) becomes the table it stands for.
///
/// # Errors
/// No `=`, an index that is not there, a path through a number.
pub(crate) fn set(root: &mut Node, option: &str) -> Result<(), ScenarioError> {
    let text: Arc<str> = format!("--set {option}").into();
    let fail = |what: String, hint: &str| ScenarioError {
        place: one_line(&text),
        key: String::new(),
        value: None,
        what,
        hint: hint.into(),
    };
    let Some((path, value)) = option.split_once('=') else {
        return Err(fail("no `=`".into(), "allowed: KEY=VALUE, such as link.rate=50 Mbit/s"));
    };
    let path = path.trim();
    if path.split('.').any(|part| part.trim().is_empty()) {
        let what = "the key has an empty part".to_string();
        return Err(fail(what, "allowed: dotted keys, such as link.rate or flows.0.start"));
    }
    if path.split('.').count() > DEPTH {
        return Err(fail(format!("the key has more than {DEPTH} parts"), ""));
    }
    let place = Place::Set { text: one_line(&text).into(), path: path.into() };
    let node = Node::from_option(value.trim(), place.clone());
    let walk = Walk { place, parts: path.split('.').collect() };
    walk.put(root, Some(&ROOT), 0, node).map_err(|fault| fail(fault.what, &fault.hint))
}

/// The tree as TOML: plain values first, then one `[table]` or `[[array of tables]]` after the other, nested ones inline.
pub(crate) fn to_toml(root: &Node) -> String {
    let Value::Table(entries) = &root.value else { return String::new() };
    let is_table = |node: &Node| match &node.value {
        Value::Table(_) => true,
        Value::Array(nodes) => {
            !nodes.is_empty() && nodes.iter().all(|n| matches!(n.value, Value::Table(_)))
        }
        _ => false,
    };
    let mut text = String::new();
    for (key, node) in entries.iter().filter(|(_, node)| !is_table(node)) {
        text += &format!("{} = {}\n", toml_key(key), inline(node));
    }
    for (key, node) in entries.iter().filter(|(_, node)| is_table(node)) {
        let key = toml_key(key);
        let (head, tables) = match &node.value {
            Value::Array(nodes) => (format!("[[{key}]]"), nodes.as_slice()),
            _ => (format!("[{key}]"), std::slice::from_ref(node)),
        };
        for table in tables {
            text += &format!("\n{head}\n");
            let Value::Table(entries) = &table.value else { continue };
            for (key, node) in entries {
                text += &format!("{} = {}\n", toml_key(key), inline(node));
            }
        }
    }
    text
}

fn inline(node: &Node) -> String {
    match &node.value {
        Value::Text(text) => Toml::from(text.as_str()).to_string(),
        Value::Whole(number) => number.to_string(),
        Value::Real(number) => Toml::from(*number).to_string(),
        Value::Bool(flag) => flag.to_string(),
        // No key of a scenario takes a date, so a checked tree holds none.
        Value::Date => node.raw.clone(),
        Value::Array(nodes) => {
            format!("[{}]", nodes.iter().map(inline).collect::<Vec<_>>().join(", "))
        }
        Value::Table(entries) => {
            let entry =
                |(key, node): &(String, Node)| format!("{} = {}", toml_key(key), inline(node));
            format!("{{ {} }}", entries.iter().map(entry).collect::<Vec<_>>().join(", "))
        }
    }
}

fn toml_key(key: &str) -> String {
    let bare = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    if !key.is_empty() && key.chars().all(bare) {
        key.to_string()
    } else {
        Toml::from(key).to_string()
    }
}

struct Walk<'a> {
    place: Place,
    parts: Vec<&'a str>,
}

impl Walk<'_> {
    fn put(
        &self,
        at: &mut Node,
        kind: Option<&'static Kind>,
        depth: usize,
        node: Node,
    ) -> Result<(), Fault> {
        let Some(part) = self.parts.get(depth) else {
            *at = node;
            return Ok(());
        };
        if let (Value::Text(_), Some(tag)) = (&at.value, kind.and_then(Kind::shorthand)) {
            let word = Node { place: self.place.clone(), ..at.clone() };
            at.value = Value::Table(vec![(tag.into(), word)]);
        }
        let here = || self.parts[..depth].join(".");
        match &mut at.value {
            Value::Array(nodes) => {
                let count = nodes.len();
                let chosen = part.parse().ok().and_then(|i: usize| nodes.get_mut(i));
                let chosen = chosen.ok_or_else(|| {
                    let hint = match count {
                        0 => "it is empty".to_string(),
                        1 => "allowed: 0".to_string(),
                        n => format!("allowed: 0 to {}", n - 1),
                    };
                    Fault::new(format!("`{}` has no entry `{part}`", here()), hint)
                })?;
                // The kind of an array is that of its entries.
                self.put(chosen, kind, depth + 1, node)
            }
            Value::Table(entries) => {
                let table = kind.and_then(Kind::table);
                if depth + 1 == self.parts.len() {
                    displace(entries, table, part);
                }
                let child = table.and_then(|t| t.key(part)).map(|key| &key.kind);
                if let Some((_, found)) = entries.iter_mut().find(|(key, _)| key == part) {
                    return self.put(found, child, depth + 1, node);
                }
                let empty = Value::Table(Vec::new());
                let mut made = Node { value: empty, place: self.place.clone(), raw: TABLE.into() };
                self.put(&mut made, child, depth + 1, node)?;
                entries.push((part.to_string(), made));
                Ok(())
            }
            _ => Err(Fault::new(format!("`{}` is {}, not a table", here(), at.what()), "")),
        }
    }
}

/// Takes out what the file says for the keys that `part` excludes. What another `--set` says stays, and is an error later.
fn displace(entries: &mut Vec<(String, Node)>, table: Option<&'static Table>, part: &str) {
    let excluded = |key: &str| {
        table.is_some_and(|t| {
            t.exclusive.iter().any(|(a, b)| (*a == part && *b == key) || (*b == part && *a == key))
        })
    };
    entries.retain(|(key, node)| !excluded(key) || !matches!(node.place, Place::Line(_)));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_know_their_lines() {
        let tree = Node::parse(
            "a.toml",
            "x = 1\n\n[link]\nrate = \"a\"\nb.c = 2\n[[flows]]\n\n[[flows]]\nn = 1",
        )
        .expect("valid TOML");
        let line = |node: Option<&Node>| node.map(|n| n.place.clone());
        assert_eq!(line(tree.get("x")), Some(Place::Line(1)));
        let link = tree.get("link").expect("present");
        assert_eq!(link.place, Place::Line(3));
        assert_eq!(line(link.get("rate")), Some(Place::Line(4)));
        assert_eq!(line(link.get("b").and_then(|b| b.get("c"))), Some(Place::Line(5)));
        let Some(Node { value: Value::Array(flows), .. }) = tree.get("flows") else {
            panic!("flows is an array");
        };
        assert_eq!(flows[0].place, Place::Line(6));
        assert_eq!(flows[1].place, Place::Line(8));
    }

    #[test]
    fn option_values_are_toml_or_text() {
        let place = Place::Line(1);
        let value = |text| Node::from_option(text, place.clone()).value;
        assert_eq!(value("10"), Value::Whole(10));
        assert_eq!(value("true"), Value::Bool(true));
        assert_eq!(value("50 Mbit/s"), Value::Text("50 Mbit/s".into()));
        assert_eq!(value("\"a\""), Value::Text("a".into()));
        assert!(matches!(value("{ kind = 'x' }"), Value::Table(_)));
        assert_eq!(value(""), Value::Text(String::new()));
    }
}
