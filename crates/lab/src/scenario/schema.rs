//! The key tables as a JSON Schema and as a reference page.

use std::fmt::Write;

use paceline_cc::registry::{self, Kind as ParamKind, Param, Spec};
use serde_json::{Map, Value as Json, json};

use super::controller;
use super::keys::{self, Absent, Key, Kind, Table, Variants};
use super::quantity::{BUFFER_UNITS, BYTES, PACKETS, RATE, RTT_SHARE, SHARE, TIME, Unit};

/// A JSON Schema (draft 2020-12) of the scenario file, for editors and other programs.
pub fn schema() -> Json {
    let mut definitions = Map::new();
    let mut root = table_schema(&keys::SCENARIO, &mut definitions);
    definitions.insert("controller".into(), controller_schema());
    root.insert("$schema".into(), json!("https://json-schema.org/draft/2020-12/schema"));
    root.insert("title".into(), json!("Paceline scenario"));
    root.insert("$defs".into(), Json::Object(definitions));
    Json::Object(root)
}

fn table_schema(table: &'static Table, definitions: &mut Map<String, Json>) -> Map<String, Json> {
    let mut properties = Map::new();
    let mut required = Vec::new();
    for key in table.keys {
        let mut property = kind_schema(&key.kind, definitions);
        property.insert("description".into(), json!(describe(key)));
        if let Absent::Default(text) = key.absent {
            property.insert("default".into(), default_value(&key.kind, text));
        }
        if key.absent == Absent::Required {
            required.push(key.name);
        }
        properties.insert(key.name.into(), Json::Object(property));
    }
    let apart = |(a, b): &(&str, &str)| json!({ "not": { "required": [a, b] } });
    let mut object = object(&[
        ("type", json!("object")),
        ("description", json!(table.doc)),
        ("properties", Json::Object(properties)),
        ("required", json!(required)),
        ("additionalProperties", json!(false)),
    ]);
    if !table.exclusive.is_empty() {
        object.insert("allOf".into(), table.exclusive.iter().map(apart).collect());
    }
    object
}

fn describe(key: &Key) -> String {
    match key.absent {
        Absent::Rule(rule) => format!("{} Without it: {rule}.", key.doc),
        _ => key.doc.into(),
    }
}

fn default_value(kind: &Kind, text: &str) -> Json {
    match kind {
        Kind::Bool | Kind::Whole { .. } | Kind::Number { .. } | Kind::Table(_) => {
            serde_json::from_str(text).unwrap_or_else(|_| json!(text))
        }
        Kind::TimeOrFalse { .. } if text == "false" => json!(false),
        _ => json!(text),
    }
}

fn object(entries: &[(&str, Json)]) -> Map<String, Json> {
    entries.iter().map(|(key, value)| (key.to_string(), value.clone())).collect()
}

fn reference_to(name: &str) -> Map<String, Json> {
    object(&[("$ref", json!(format!("#/$defs/{name}")))])
}

fn kind_schema(kind: &'static Kind, definitions: &mut Map<String, Json>) -> Map<String, Json> {
    let text = |units: &[&[Unit]]| {
        object(&[("type", json!("string")), ("pattern", json!(pattern(&units.concat())))])
    };
    let any = |parts: &[Map<String, Json>]| object(&[("anyOf", json!(parts))]);
    let constant = |value: Json| object(&[("const", value)]);
    let number = |max: f64| {
        object(&[("type", json!("number")), ("minimum", json!(0)), ("maximum", json!(max))])
    };
    match kind {
        Kind::Text => object(&[
            ("type", json!("string")),
            ("minLength", json!(1)),
            ("maxLength", json!(keys::MAX_TEXT)),
        ]),
        Kind::Bool => object(&[("type", json!("boolean"))]),
        Kind::Whole { min, max } => {
            object(&[("type", json!("integer")), ("minimum", json!(min)), ("maximum", json!(max))])
        }
        Kind::Number { min, max } => {
            object(&[("type", json!("number")), ("minimum", json!(min)), ("maximum", json!(max))])
        }
        Kind::Probability { max } => any(&[number(*max), text(&[&SHARE])]),
        Kind::Time { .. } => text(&[&TIME]),
        Kind::TimeOrFalse { .. } => any(&[text(&[&TIME]), constant(json!(false))]),
        Kind::TimeOrSpread { or, .. } => {
            define(or, definitions);
            any(&[text(&[&TIME]), reference_to(or.name)])
        }
        Kind::TimeOrRtt { .. } => text(&[&TIME, &RTT_SHARE]),
        Kind::Rate { .. } => text(&[&RATE]),
        Kind::RateOrUnlimited { .. } => any(&[text(&[&RATE]), constant(json!("unlimited"))]),
        Kind::Bytes { .. } => text(&[&BYTES]),
        Kind::Packets { .. } => text(&[&PACKETS]),
        Kind::Buffer => any(&[text(&[&BUFFER_UNITS]), constant(json!("unlimited"))]),
        Kind::Trace | Kind::DelayTrace => {
            object(&[("type", json!("string")), ("minLength", json!(1))])
        }
        Kind::Table(table) => {
            define(table, definitions);
            reference_to(table.name)
        }
        Kind::Tables(table) => {
            define(table, definitions);
            object(&[
                ("type", json!("array")),
                ("minItems", json!(1)),
                ("items", Json::Object(reference_to(table.name))),
            ])
        }
        Kind::Variants(variants) => any(&variants_schema(variants, definitions)),
        Kind::ProbabilityOr { max, or } => {
            let mut parts = vec![number(*max), text(&[&SHARE])];
            parts.extend(variants_schema(or, definitions));
            any(&parts)
        }
        Kind::Controller => reference_to("controller"),
    }
}

fn define(table: &'static Table, definitions: &mut Map<String, Json>) {
    if !definitions.contains_key(table.name) {
        let made = table_schema(table, definitions);
        definitions.insert(table.name.into(), Json::Object(made));
    }
}

fn variants_schema(
    variants: &'static Variants,
    definitions: &mut Map<String, Json>,
) -> Vec<Map<String, Json>> {
    let mut parts = Vec::new();
    if variants.bare {
        let words: Vec<&str> = variants.words().collect();
        parts.push(object(&[("enum", json!(words))]));
    }
    for (index, variant) in variants.list.iter().enumerate() {
        let mut table = table_schema(variant.table, definitions);
        if let Some(Json::Object(properties)) = table.get_mut("properties") {
            properties.insert("kind".into(), json!({ "const": variant.name }));
        }
        if let Some(Json::Array(required)) = table.get_mut("required") {
            // The first is the default: a table without `kind` is of that form.
            if !variants.bare || index > 0 {
                required.insert(0, json!("kind"));
            }
        }
        parts.push(table);
    }
    parts
}

/// A number and one of `units`.
fn pattern(units: &[Unit]) -> String {
    let names: Vec<String> = units.iter().map(|(name, _)| name.replace(' ', r"\s*")).collect();
    format!(r"^\s*\+?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?\s*({})\s*$", names.join("|"))
}

fn controller_schema() -> Json {
    // `+` is the only character of a name that means something in a pattern.
    let names: Vec<String> =
        registry::all().iter().map(|spec| spec.name.replace('+', r"\+")).collect();
    let inline = format!("^({})(:[^,]+)?(,[^,=]+=[^,]+)*$", names.join("|"));
    let mut choices = vec![json!({ "type": "string", "pattern": inline })];
    choices.extend(registry::all().iter().map(|spec| spec_schema(spec)));
    json!({
        "description": "A congestion controller: its name, or a table of its name, profile and parameters.",
        "anyOf": choices,
    })
}

fn spec_schema(spec: &Spec) -> Json {
    let mut properties = Map::new();
    properties.insert("name".into(), json!({ "const": spec.name, "description": spec.title }));
    let profiles: Vec<&str> = spec.profiles.iter().map(|profile| profile.name).collect();
    if !profiles.is_empty() {
        properties.insert("profile".into(), json!({ "enum": profiles }));
    }
    for param in spec.params {
        properties.insert(param.name.into(), Json::Object(param_schema(param)));
    }
    json!({
        "type": "object",
        "description": spec.title,
        "properties": properties,
        "required": ["name"],
        "additionalProperties": false,
    })
}

fn param_schema(param: &Param) -> Map<String, Json> {
    let ranged = |kind: &str| {
        object(&[
            ("type", json!(kind)),
            ("minimum", json!(param.min)),
            ("maximum", json!(param.max)),
        ])
    };
    let text =
        |units: &[Unit]| object(&[("type", json!("string")), ("pattern", json!(pattern(units)))]);
    let mut schema = match param.kind {
        ParamKind::Number => ranged("number"),
        ParamKind::Integer => ranged("integer"),
        ParamKind::Duration => text(&TIME),
        ParamKind::Rate => text(&RATE),
        ParamKind::Bool => object(&[("type", json!("boolean"))]),
        ParamKind::Choice(words) => object(&[("enum", json!(words))]),
    };
    let description = format!("{} ({})", param.doc, controller::allowed(param));
    schema.insert("description".into(), json!(description));
    schema
}

/// Every key with its values, default and meaning, as Markdown.
pub fn reference() -> String {
    let mut page = String::from("# Scenario reference\n");
    let mut queue: Vec<(&'static Table, Option<&str>)> = vec![(&keys::SCENARIO, None)];
    let mut done: Vec<&str> = Vec::new();
    let mut next = 0;
    while let Some((table, kind)) = queue.get(next).copied() {
        next += 1;
        if table.name.is_empty() || done.contains(&table.name) {
            continue;
        }
        done.push(table.name);
        describe_table(&mut page, table, kind);
        for key in table.keys {
            match key.kind {
                Kind::Table(table) | Kind::Tables(table) | Kind::TimeOrSpread { or: table, .. } => {
                    queue.push((table, None));
                }
                Kind::Variants(variants) | Kind::ProbabilityOr { or: variants, .. } => {
                    queue.extend(variants.list.iter().map(|v| (v.table, Some(v.name))));
                }
                _ => {}
            }
        }
    }
    page
}

fn describe_table(page: &mut String, table: &Table, kind: Option<&str>) {
    let cell = |text: &str| text.replace('|', "\\|");
    let _ = write!(page, "\n## {}\n\n{}\n\n", table.name, table.doc);
    let _ = writeln!(page, "| key | values | default | meaning |\n|---|---|---|---|");
    if let Some(kind) = kind {
        let _ = writeln!(page, "| `kind` | \"{kind}\" | required | Picks this form. |");
    }
    for key in table.keys {
        let default = match key.absent {
            Absent::Required => "required".into(),
            Absent::Default(text) => format!("`{text}`"),
            Absent::Rule(rule) => cell(rule),
        };
        let values = match key.kind {
            Kind::Table(table) => format!("a table: see {}", table.name),
            Kind::Tables(table) => format!("an array of tables: see {}", table.name),
            kind => kind.allowed(),
        };
        let _ = writeln!(
            page,
            "| `{}` | {} | {default} | {} |",
            key.name,
            cell(&values),
            cell(key.doc)
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tables(value: &Json, found: &mut Vec<Json>) {
        match value {
            Json::Object(map) => {
                if map.contains_key("properties") {
                    found.push(value.clone());
                }
                map.values().for_each(|child| tables(child, found));
            }
            Json::Array(list) => list.iter().for_each(|child| tables(child, found)),
            _ => {}
        }
    }

    #[test]
    fn schema_holds_every_key_and_every_reference_resolves() {
        let schema = schema();
        assert_eq!(schema["$schema"], "https://json-schema.org/draft/2020-12/schema");
        assert_eq!(schema["required"], json!(["duration", "flows"]));
        for key in keys::SCENARIO.keys {
            assert!(schema["properties"][key.name].is_object(), "{}", key.name);
        }
        for key in keys::LINK.keys {
            assert!(schema["$defs"]["link"]["properties"][key.name].is_object(), "{}", key.name);
        }
        let text = schema.to_string();
        for reference in text.split("#/$defs/").skip(1) {
            let name = reference.split('"').next().unwrap_or_default();
            assert!(schema["$defs"][name].is_object(), "{name} is not defined");
        }
        let mut found = Vec::new();
        tables(&schema, &mut found);
        assert!(found.len() > 15);
        for table in found {
            assert_eq!(table["additionalProperties"], json!(false));
            for required in table["required"].as_array().expect("always written") {
                let name = required.as_str().expect("a key name");
                assert!(table["properties"][name].is_object(), "{name}");
            }
        }
    }

    #[test]
    fn the_first_of_bare_variants_is_the_default() {
        for table in [&keys::LINK, &keys::LINKS, &keys::FLOW] {
            for key in table.keys {
                if let Kind::Variants(variants) = key.kind
                    && variants.bare
                {
                    let first = Absent::Default(variants.list[0].name);
                    assert!(key.absent == first || matches!(key.absent, Absent::Rule(_)));
                }
            }
        }
    }

    #[test]
    fn reference_names_every_key() {
        let page = reference();
        for table in [&keys::SCENARIO, &keys::LINK, &keys::LINKS, &keys::REVERSE, &keys::FLOW] {
            assert!(page.contains(&format!("\n## {}\n", table.name)));
            for key in table.keys {
                assert!(page.contains(&format!("| `{}` |", key.name)), "{}", key.name);
            }
        }
        assert!(page.contains("## loss: gilbert-elliott"));
    }
}
