//! Which controller a flow runs, with which constants: `"name"`, `"name:profile"`, `"name,key=value"` or a table.

use std::fmt::Write;
use std::sync::Arc;

use paceline_cc::registry::{self, Kind as ParamKind, Param, ParamError, Params, Spec};
use paceline_net::PS_PER_S;

use super::error::{Fault, Locus, ScenarioError, suggest};
use super::quantity::{self, RATE, TIME, names, show, show_time};
use super::reader::Source;
use super::tree::{Node, Place, Value};

/// A controller from the registry, its profile and its parameters, all checked.
#[derive(Clone, Debug, PartialEq)]
pub struct ControllerChoice {
    spec: &'static Spec,
    profile: Option<String>,
    params: Params,
    /// Parameters set by name, as written, in the order given.
    set: Vec<(&'static str, String)>,
}

impl ControllerChoice {
    /// The registry entry.
    pub fn spec(&self) -> &'static Spec {
        self.spec
    }

    /// The profile asked for.
    pub fn profile(&self) -> Option<&str> {
        self.profile.as_deref()
    }

    /// The value of every parameter.
    pub fn params(&self) -> &Params {
        &self.params
    }

    /// The choice as `--controller` takes it: `name`, `name:profile`, `name,key=value`. Two choices that differ have
    /// different labels, so results of one never pass for results of the other.
    pub fn label(&self) -> String {
        let mut label = self.spec.name.to_string();
        if let Some(profile) = &self.profile {
            let _ = write!(label, ":{profile}");
        }
        for (name, value) in &self.set {
            let _ = write!(label, ",{name}={value}");
        }
        label
    }

    fn named(name: &str, guests: &[&'static Spec]) -> Result<Self, Fault> {
        let guest = guests.iter().copied().find(|spec| spec.name == name);
        let spec = guest.or_else(|| registry::find(name)).ok_or_else(|| {
            let known = guests.iter().chain(registry::all());
            let hint = suggest(name, known.map(|spec| spec.name));
            Fault::new(format!("unknown controller \"{name}\""), hint)
        })?;
        let params = spec.params(None).map_err(|error| Fault::new(error.to_string(), ""))?;
        Ok(Self { spec, profile: None, params, set: Vec::new() })
    }

    fn with_profile(mut self, profile: &str) -> Result<Self, Fault> {
        self.params = self.spec.params(Some(profile)).map_err(|error| match error {
            ParamError::UnknownProfile { controller, name, .. } => {
                let hint = suggest(&name, self.spec.profiles.iter().map(|p| p.name));
                Fault::new(format!("{controller} has no profile \"{name}\""), hint)
            }
            other => Fault::new(other.to_string(), ""),
        })?;
        self.profile = Some(profile.into());
        Ok(self)
    }

    fn assign(&mut self, name: &str, node: &Node) -> Result<(), Fault> {
        let Some(param) = self.spec.params.iter().find(|param| param.name == name) else {
            let hint = suggest(name, self.spec.params.iter().map(|param| param.name));
            return Err(Fault::new(format!("{} has no parameter `{name}`", self.spec.name), hint));
        };
        let value = read_param(param, node)?;
        self.params
            .set(name, value)
            .map_err(|_| Fault::new("out of range", format!("allowed: {}", allowed(param))))?;
        let written = match &node.value {
            Value::Text(text) => text.clone(),
            _ => node.raw.clone(),
        };
        self.set.retain(|(set, _)| *set != param.name);
        self.set.push((param.name, written));
        Ok(())
    }

    /// `name[:profile][,key=value]…`.
    fn inline(text: &str, place: &Place, guests: &[&'static Spec]) -> Result<Self, Fault> {
        let mut parts = text.split(',');
        let head = parts.next().unwrap_or_default().trim();
        let mut choice = match head.split_once(':') {
            Some((name, profile)) => {
                Self::named(name.trim(), guests)?.with_profile(profile.trim())?
            }
            None => Self::named(head, guests)?,
        };
        for part in parts {
            let Some((key, value)) = part.split_once('=') else {
                let what = format!("\"{}\" is not KEY=VALUE", part.trim());
                return Err(Fault::new(what, "allowed: \"NAME,KEY=VALUE\""));
            };
            let node = Node::from_option(value.trim(), place.clone());
            choice.assign(key.trim(), &node).map_err(|fault| {
                Fault::new(format!("{} = {}: {}", key.trim(), node.raw, fault.what), fault.hint)
            })?;
        }
        Ok(choice)
    }

    /// The value of a `controller` key.
    pub(crate) fn read(source: &Source, node: &Node, path: &str) -> Result<Self, ScenarioError> {
        let locus = Locus::of(&source.file, node, path);
        let entries = match &node.value {
            Value::Text(text) => {
                return Self::inline(text, &node.place, &source.guests)
                    .map_err(|fault| locus.blame(fault));
            }
            Value::Table(entries) => entries,
            _ => {
                let what = format!("expected a controller, found {}", node.what());
                return Err(locus.error(what, "allowed: a name, or a table with name"));
            }
        };
        let at = |key: &str, child: &Node| Locus::of(&source.file, child, &format!("{path}.{key}"));
        let Some(name) = node.get("name") else {
            let locus = Locus::absent(&source.file, node, &format!("{path}.name"));
            let names: Vec<&str> = registry::all().iter().map(|spec| spec.name).collect();
            return Err(locus.error("missing", format!("allowed: {}", names.join(", "))));
        };
        let text = |key: &str, child: &Node| match &child.value {
            Value::Text(text) => Ok(text.clone()),
            _ => Err(at(key, child).error(format!("expected text, found {}", child.what()), "")),
        };
        let mut choice = Self::inline(&text("name", name)?, &name.place, &source.guests)
            .map_err(|fault| at("name", name).blame(fault))?;
        if let Some(profile) = node.get("profile") {
            choice = choice
                .with_profile(&text("profile", profile)?)
                .map_err(|fault| at("profile", profile).blame(fault))?;
        }
        for (key, child) in entries.iter().filter(|(key, _)| key != "name" && key != "profile") {
            choice.assign(key, child).map_err(|fault| at(key, child).blame(fault))?;
        }
        Ok(choice)
    }
}

/// The controller that `text` means, written as `--controller` takes it: `name[:profile][,key=value]…`.
///
/// # Errors
/// An unknown name, profile or parameter, or a value outside its range.
pub fn controller_choice(text: &str) -> Result<ControllerChoice, ScenarioError> {
    let source = Source { file: "".into(), base_dir: Default::default(), guests: [].into() };
    ControllerChoice::read(&source, &option(text, "controller"), "controller")
}

/// The option `--controller TEXT` as the value of a `controller` key at `path`.
pub(crate) fn option(text: &str, path: &str) -> Node {
    let shown: String = text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
    let shown: Arc<str> = format!("--controller {shown}").into();
    let place = Place::Set { text: shown, path: path.into() };
    Node { value: Value::Text(text.into()), place, raw: format!("{text:?}") }
}

/// The number that `node` means for `param`, in the parameter's unit.
fn read_param(param: &Param, node: &Node) -> Result<f64, Fault> {
    let wrong = |noun: &str| {
        let what = format!("expected {noun}, found {}", node.what());
        Fault::new(what, format!("allowed: {}", allowed(param)))
    };
    let rehint = |fault: Fault| {
        let near = fault.hint.starts_with("did");
        let hint = if near { fault.hint } else { format!("allowed: {}", allowed(param)) };
        Fault::new(fault.what, hint)
    };
    match (param.kind, &node.value) {
        (ParamKind::Number, Value::Real(number)) if number.is_finite() => Ok(*number),
        (ParamKind::Number | ParamKind::Integer, Value::Whole(number)) => Ok(*number as f64),
        (ParamKind::Number, _) => Err(wrong("a number")),
        (ParamKind::Integer, _) => Err(wrong("a whole number")),
        (ParamKind::Bool, Value::Bool(flag)) => Ok(f64::from(u8::from(*flag))),
        (ParamKind::Bool, _) => Err(wrong("true or false")),
        (ParamKind::Choice(words), Value::Text(text)) => {
            let row = words.iter().position(|word| word == text);
            let hint = || suggest(text, words.iter().copied());
            row.map(|row| row as f64).ok_or_else(|| Fault::new("unknown word", hint()))
        }
        (ParamKind::Choice(_), _) => Err(wrong("a word")),
        (ParamKind::Duration, _) => quantity::seconds(node).map_err(rehint),
        (ParamKind::Rate, _) => quantity::bits_per_s(node).map_err(rehint),
    }
}

/// The allowed values of `param`, in the units a scenario writes them in.
pub(crate) fn allowed(param: &Param) -> String {
    match param.kind {
        ParamKind::Duration => {
            let show = |s: f64| show_time(s * PS_PER_S as f64);
            format!("{} to {} (units: {})", show(param.min), show(param.max), names(&TIME))
        }
        ParamKind::Rate => {
            let (min, max) = (show(param.min, &RATE), show(param.max, &RATE));
            format!("{min} to {max} (units: {})", names(&RATE))
        }
        _ => param.allowed(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn param(kind: ParamKind, min: f64, max: f64) -> Param {
        Param { name: "x", kind, unit: "1", default: min, min, max, doc: "" }
    }

    fn read(kind: ParamKind, text: &str) -> Result<f64, Fault> {
        read_param(&param(kind, 0.001, 10.0), &Node::from_option(text, Place::Line(1)))
    }

    #[test]
    fn every_kind_of_parameter_is_read_in_its_unit() {
        assert_eq!(read(ParamKind::Number, "0.5"), Ok(0.5));
        assert_eq!(read(ParamKind::Number, "2"), Ok(2.0));
        assert_eq!(read(ParamKind::Integer, "7"), Ok(7.0));
        assert_eq!(read(ParamKind::Bool, "true"), Ok(1.0));
        assert_eq!(read(ParamKind::Duration, "20 ms"), Ok(0.02));
        assert_eq!(read(ParamKind::Rate, "5 Gbit/s"), Ok(5e9));
        assert_eq!(read(ParamKind::Choice(&["a", "b"]), "b"), Ok(1.0));
    }

    #[test]
    fn wrong_parameter_values_say_what_is_allowed() {
        let error = |kind, text| read(kind, text).map_err(|f| format!("{}; {}", f.what, f.hint));
        let time = "allowed: 1 ms to 10 s (units: ns, us, µs, ms, s, min)";
        let needs_unit = Err(format!("a time needs a unit; {time}"));
        assert_eq!(error(ParamKind::Duration, "20"), needs_unit);
        let number = "expected a number, found text; allowed: 0.001 to 10 (1)";
        assert_eq!(error(ParamKind::Number, "many"), Err(number.into()));
        assert!(error(ParamKind::Number, "nan").is_err());
        let word = "unknown word; allowed: fast, slow";
        let choice = ParamKind::Choice(&["fast", "slow"]);
        assert_eq!(error(choice, "medium"), Err(word.into()));
        let near = "unknown word; did you mean `slow`?";
        assert_eq!(error(choice, "slwo"), Err(near.into()));
    }

    #[test]
    fn label_tells_choices_apart() {
        let label = |text: &str| {
            ControllerChoice::inline(text, &Place::Line(1), &[]).map(|choice| choice.label())
        };
        assert_eq!(label("window"), Ok("window".into()));
        assert_eq!(label("window, packets = 20"), Ok("window,packets=20".into()));
        assert_eq!(label("window,packets=20,packets=30"), Ok("window,packets=30".into()));
    }
}
