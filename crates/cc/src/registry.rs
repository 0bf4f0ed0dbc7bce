//! Every algorithm by name, with the one table of its parameters.
//!
//! The table feeds scenario validation, `paceline controllers`, the docs, BPF read-only data and the factors of designed
//! experiments, so a parameter is described once.

use crate::algorithms;
use crate::controller::{Controller, Field, Needs};
use crate::event::PathInfo;

/// How a parameter is written and read. All values are held as `f64`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Kind {
    /// A real number.
    Number,
    /// A whole number.
    Integer,
    /// A duration, written "20 ms", held in seconds.
    Duration,
    /// A rate, written "5 Gbit/s", held in bit/s.
    Rate,
    /// `true` or `false`, held as 1 or 0.
    Bool,
    /// One of these words, held as its index.
    Choice(&'static [&'static str]),
}

/// One parameter of an algorithm.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Param {
    /// Key in the scenario, `snake_case`.
    pub name: &'static str,
    /// How it is written.
    pub kind: Kind,
    /// Unit of the number (`packets`, `s`, `bit/s`, `1`).
    pub unit: &'static str,
    /// Default, in `unit`.
    pub default: f64,
    /// Smallest value allowed, in `unit`.
    pub min: f64,
    /// Largest value allowed, in `unit`.
    pub max: f64,
    /// What it does, one line, with the symbol of the paper.
    pub doc: &'static str,
}

/// A named set of constants, for where sources differ.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Profile {
    /// `profile = "…"` in a scenario.
    pub name: &'static str,
    /// Where these constants come from.
    pub source: &'static str,
    /// Parameters that differ from their defaults.
    pub values: &'static [(&'static str, f64)],
}

/// The values of one algorithm's parameters, in the order of its table.
#[derive(Clone, Debug, PartialEq)]
pub struct Params {
    spec: &'static Spec,
    values: Vec<f64>,
}

/// A parameter that cannot be set so.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum ParamError {
    /// No such parameter.
    #[error("controller `{controller}` has no parameter `{name}` (it has: {known})")]
    Unknown {
        /// Which controller.
        controller: &'static str,
        /// The name given.
        name: String,
        /// The names it has.
        known: String,
    },
    /// No such profile.
    #[error("controller `{controller}` has no profile \"{name}\" (it has: {known})")]
    UnknownProfile {
        /// Which controller.
        controller: &'static str,
        /// The name given.
        name: String,
        /// The names it has.
        known: String,
    },
    /// Outside the range.
    #[error("parameter `{name}` of controller `{controller}` is {value}; allowed: {allowed}")]
    OutOfRange {
        /// Which controller.
        controller: &'static str,
        /// Which parameter.
        name: &'static str,
        /// The value given.
        value: String,
        /// The allowed range, with unit.
        allowed: String,
    },
}

impl Params {
    /// Value of parameter `name`, in the unit of its table.
    ///
    /// # Panics
    /// If the algorithm's own table has no such row: a mistake in the algorithm, caught by the registry's test, never by
    /// input.
    pub fn get(&self, name: &str) -> f64 {
        let row = self.spec.params.iter().position(|p| p.name == name);
        self.values[row.unwrap_or_else(|| panic!("{} has no parameter {name}", self.spec.name))]
    }

    /// Value of a duration parameter, ns.
    pub fn get_ns(&self, name: &str) -> u64 {
        (self.get(name) * 1e9) as u64
    }

    /// Value of a boolean parameter.
    pub fn get_bool(&self, name: &str) -> bool {
        self.get(name) != 0.0
    }

    /// Word of a choice parameter.
    pub fn get_choice(&self, name: &str) -> &'static str {
        let row = self.spec.params.iter().find(|p| p.name == name);
        match row.map(|p| p.kind) {
            Some(Kind::Choice(words)) => words[self.get(name) as usize],
            _ => panic!("{} has no choice parameter {name}", self.spec.name),
        }
    }

    /// Sets `name` to `value` (in the unit of the table).
    ///
    /// # Errors
    /// An unknown name, or a value outside the table's range.
    pub fn set(&mut self, name: &str, value: f64) -> Result<(), ParamError> {
        let spec = self.spec;
        let Some(row) = spec.params.iter().position(|p| p.name == name) else {
            return Err(ParamError::Unknown {
                controller: spec.name,
                name: name.into(),
                known: list(spec.params.iter().map(|p| p.name)),
            });
        };
        let param = &spec.params[row];
        let whole = !matches!(param.kind, Kind::Integer | Kind::Bool | Kind::Choice(_))
            || value.fract() == 0.0;
        if !(param.min..=param.max).contains(&value) || !whole {
            return Err(ParamError::OutOfRange {
                controller: spec.name,
                name: param.name,
                value: value.to_string(),
                allowed: param.allowed(),
            });
        }
        self.values[row] = value;
        Ok(())
    }

    /// Name and value of every parameter, in table order.
    pub fn iter(&self) -> impl Iterator<Item = (&'static Param, f64)> + '_ {
        self.spec.params.iter().zip(self.values.iter().copied())
    }
}

impl Param {
    /// A real number in `unit`, from `range.0` to `range.1`.
    pub const fn number(
        name: &'static str,
        unit: &'static str,
        default: f64,
        range: (f64, f64),
        doc: &'static str,
    ) -> Self {
        Self { name, kind: Kind::Number, unit, default, min: range.0, max: range.1, doc }
    }

    /// A whole number in `unit`.
    pub const fn integer(
        name: &'static str,
        unit: &'static str,
        default: f64,
        range: (f64, f64),
        doc: &'static str,
    ) -> Self {
        Self { name, kind: Kind::Integer, unit, default, min: range.0, max: range.1, doc }
    }

    /// A duration; default and range in seconds.
    pub const fn duration(
        name: &'static str,
        default: f64,
        range: (f64, f64),
        doc: &'static str,
    ) -> Self {
        Self { name, kind: Kind::Duration, unit: "s", default, min: range.0, max: range.1, doc }
    }

    /// A rate; default and range in bit/s.
    pub const fn rate(
        name: &'static str,
        default: f64,
        range: (f64, f64),
        doc: &'static str,
    ) -> Self {
        Self { name, kind: Kind::Rate, unit: "bit/s", default, min: range.0, max: range.1, doc }
    }

    /// A boolean.
    pub const fn flag(name: &'static str, default: bool, doc: &'static str) -> Self {
        let default = if default { 1.0 } else { 0.0 };
        Self { name, kind: Kind::Bool, unit: "1", default, min: 0.0, max: 1.0, doc }
    }

    /// One of `words`, the first being the default.
    pub const fn choice(
        name: &'static str,
        words: &'static [&'static str],
        doc: &'static str,
    ) -> Self {
        let max = (words.len() - 1) as f64;
        Self { name, kind: Kind::Choice(words), unit: "1", default: 0.0, min: 0.0, max, doc }
    }

    /// The same parameter with another default.
    pub const fn with_default(self, default: f64) -> Self {
        Self { default, ..self }
    }

    /// The allowed values, as an error or a help page shows them.
    pub fn allowed(&self) -> String {
        match self.kind {
            Kind::Choice(words) => list(words.iter().copied()),
            Kind::Bool => "true, false".into(),
            Kind::Integer => format!("whole numbers {} to {} ({})", self.min, self.max, self.unit),
            _ => format!("{} to {} ({})", self.min, self.max, self.unit),
        }
    }
}

/// What a controller mainly goes by; lists are grouped by it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Family {
    /// Losses say when the window falls.
    LossBased,
    /// The queueing delay decides, alone or beside losses.
    DelayBased,
    /// An estimate of what the path delivers.
    ModelBased,
    /// A rate that a utility, a cost or a setpoint chooses.
    RateBased,
    /// The share of packets that a queue has marked.
    MarkBased,
    /// What clocks or switches of a data centre tell.
    DataCentre,
    /// The senders of the CS 244 contest.
    Contest,
    /// Not in the registry: a controller that a caller brings for a run.
    Guest,
}

impl Family {
    /// As lists and JSON have it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::LossBased => "loss-based",
            Self::DelayBased => "delay-based",
            Self::ModelBased => "model-based",
            Self::RateBased => "rate-based",
            Self::MarkBased => "mark-based",
            Self::DataCentre => "data-centre",
            Self::Contest => "contest",
            Self::Guest => "guest",
        }
    }
}

/// An algorithm: its name, its tables, how to make one.
#[derive(Clone, Copy, Debug)]
pub struct Spec {
    /// Name in scenarios; says which version it is.
    pub name: &'static str,
    /// One line.
    pub title: &'static str,
    /// What it mainly goes by.
    pub family: Family,
    /// Paper or RFC.
    pub source: &'static str,
    /// Idea and equations, Markdown, a page at most: `algorithms/about/NAME.md`.
    pub about: &'static str,
    /// What the host must provide.
    pub needs: Needs,
    /// Parameter table.
    pub params: &'static [Param],
    /// Named sets of constants.
    pub profiles: &'static [Profile],
    /// What `observe` writes.
    pub fields: &'static [Field],
    /// Makes one for a path.
    pub build: fn(&Params, &PathInfo) -> Box<dyn Controller>,
}

impl PartialEq for Spec {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name
    }
}

impl Spec {
    /// The parameters with their defaults, or those of `profile`.
    ///
    /// # Errors
    /// An unknown profile.
    pub fn params(&'static self, profile: Option<&str>) -> Result<Params, ParamError> {
        let mut params =
            Params { spec: self, values: self.params.iter().map(|p| p.default).collect() };
        if let Some(name) = profile {
            let found = self.profiles.iter().find(|p| p.name == name);
            let found = found.ok_or_else(|| ParamError::UnknownProfile {
                controller: self.name,
                name: name.into(),
                known: list(self.profiles.iter().map(|p| p.name)),
            })?;
            for (key, value) in found.values {
                params.set(key, *value)?;
            }
        }
        Ok(params)
    }
}

fn list<'a>(names: impl Iterator<Item = &'a str>) -> String {
    let names: Vec<&str> = names.collect();
    if names.is_empty() { "none".into() } else { names.join(", ") }
}

/// Every algorithm, in the order `paceline controllers` prints.
pub fn all() -> &'static [&'static Spec] {
    algorithms::ALL
}

/// The algorithm called `name`.
pub fn find(name: &str) -> Option<&'static Spec> {
    all().iter().copied().find(|s| s.name == name)
}
