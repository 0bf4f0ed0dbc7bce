//! The registry of controllers as JSON: what `paceline controllers` prints.

use paceline_cc::registry::{self, Kind, Param, Spec};
use pyo3::prelude::*;
use serde_json::{Value, json};

/// Every built-in controller, as a JSON list in the registry's order.
///
/// Each entry: `name`, `title`, `family`, `source`, `about` (Markdown), `needs`, `params` (`name`, `kind`, `unit`, `default`, `min`,
/// `max`, `choices`, `allowed`, `doc`), `profiles` (`name`, `source`, `values`), `fields` (`name`, `unit`, `doc`). Numbers are in
/// the parameter's `unit`; durations are held in seconds and rates in bit/s.
#[pyfunction]
pub fn controllers() -> String {
    Value::Array(registry::all().iter().map(|spec| spec_json(spec)).collect()).to_string()
}

fn spec_json(spec: &Spec) -> Value {
    json!({
        "name": spec.name,
        "title": spec.title,
        "family": spec.family.name(),
        "source": spec.source,
        "about": spec.about,
        "needs": spec.needs.names(),
        "params": spec.params.iter().map(param_json).collect::<Vec<_>>(),
        "profiles": spec.profiles.iter().map(|profile| json!({
            "name": profile.name,
            "source": profile.source,
            "values": profile.values.iter()
                .map(|(name, value)| (name.to_string(), profile_value(spec, name, *value)))
                .collect::<serde_json::Map<_, _>>(),
        })).collect::<Vec<_>>(),
        "fields": spec.fields.iter().map(|field| json!({
            "name": field.name, "unit": field.unit, "doc": field.doc,
        })).collect::<Vec<_>>(),
    })
}

fn param_json(param: &Param) -> Value {
    let (kind, choices) = match param.kind {
        Kind::Number => ("number", Value::Null),
        Kind::Integer => ("integer", Value::Null),
        Kind::Duration => ("duration", Value::Null),
        Kind::Rate => ("rate", Value::Null),
        Kind::Bool => ("bool", Value::Null),
        Kind::Choice(words) => ("choice", json!(words)),
    };
    let ranged = !matches!(param.kind, Kind::Bool | Kind::Choice(_));
    json!({
        "name": param.name,
        "kind": kind,
        "unit": param.unit,
        "default": value_json(param, param.default),
        "min": if ranged { value_json(param, param.min) } else { Value::Null },
        "max": if ranged { value_json(param, param.max) } else { Value::Null },
        "choices": choices,
        "allowed": param.allowed(),
        "doc": param.doc,
    })
}

fn profile_value(spec: &Spec, name: &str, value: f64) -> Value {
    match spec.params.iter().find(|param| param.name == name) {
        Some(param) => value_json(param, value),
        None => json!(value),
    }
}

/// A value held as `f64`, as the scenario would write it without its unit. An infinite bound is null: JSON has none.
fn value_json(param: &Param, value: f64) -> Value {
    match param.kind {
        Kind::Bool => json!(value != 0.0),
        Kind::Choice(words) => json!(words.get(value as usize)),
        Kind::Integer if value.abs() < 9e15 => json!(value as i64),
        _ => json!(value),
    }
}
