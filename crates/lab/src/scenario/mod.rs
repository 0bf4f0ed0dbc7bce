//! The scenario language: a TOML file in, a checked [`Scenario`] out, and from that a [`Plan`] for the simulator.
//!
//! What may be written, in which unit and range, with which default, stands in one table per kind of TOML table
//! (`keys.rs`); reading, the JSON [`schema()`] and the [`reference()`] page all follow it. Every quantity carries its
//! unit. Nothing unknown is ignored: an error shows file, line, key, value and what is allowed.
//!
//! ```
//! use std::path::Path;
//! use paceline_lab::scenario::Scenario;
//!
//! let text = r#"
//!     duration = "10 s"
//!     [link]
//!     rate = "100 Mbit/s"
//!     delay = "20 ms"
//!     [[flows]]
//!     controller = "window"
//! "#;
//! let scenario = Scenario::parse(text, "example.toml", Path::new("."), &[])?;
//! assert_eq!(scenario.flows()[0].path.base_rtt_ps, 40_000_000_000);
//! // 1 BDP of buffer: 100 Mbit/s x 40 ms.
//! assert_eq!(scenario.plan(None)?.links[0].spec.buffer.bytes, Some(500_000));
//!
//! let set = ["link.rate=20".to_string()];
//! let error = Scenario::parse(text, "example.toml", Path::new("."), &set).unwrap_err();
//! assert!(error.to_string().starts_with("--set link.rate=20: a rate needs a unit"));
//! # Ok::<(), paceline_lab::scenario::ScenarioError>(())
//! ```

mod controller;
mod emulated;
mod error;
mod flow;
mod keys;
mod link;
mod loss;
mod network;
mod quantity;
mod queue;
mod reader;
mod routing;
mod schema;
mod trace;
mod tree;

use std::path::{Path as FilePath, PathBuf};
use std::sync::Arc;

use paceline_cc::Spec;
use paceline_net::queue::Tag;
use paceline_net::{PS_PER_MS, PS_PER_S, Picos};
use paceline_sim::{FlowPlan, NamedLink, Plan};
use rand_core::RngCore;
use rand_pcg::Pcg64;

pub use controller::{ControllerChoice, controller_choice};
pub use emulated::{EmulatedDirection, emulated_link};
pub use error::ScenarioError;
pub use flow::{Flow, Path};
pub use schema::{reference, schema};

use flow::GivenSizes;
use link::Run;
use network::{DirectedLink, Network};
use quantity::show_time;
use reader::{Reader, Source, nothing};
use tree::{Node, Value};

/// Largest scenario file, bytes.
const MAX_FILE: u64 = 64 << 20;

/// A scenario whose every value is checked.
#[derive(Clone, Debug)]
pub struct Scenario {
    source: Source,
    text: Arc<str>,
    overrides: Vec<String>,
    tree: Node,
    title: String,
    seed: u64,
    duration_ps: Picos,
    warmup_ps: Picos,
    sample_ps: Picos,
    packet_bytes: u16,
    links: Vec<DirectedLink>,
    flows: Vec<Flow>,
}

/// A directed link of a scenario, as a record describes it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LinkInfo<'a> {
    /// Name in the record.
    pub name: &'a str,
    /// Whether the record shows it.
    pub recorded: bool,
    /// Constant rate, bit/s; `None` for a trace or an unlimited rate.
    pub rate_bps: Option<f64>,
    /// Propagation delay, ps; the least where it changes.
    pub delay_ps: Picos,
    /// Longest base RTT of the flows that cross it (of all flows where none does), ps: what its BDP is taken with.
    pub base_rtt_ps: Picos,
}

impl Scenario {
    /// The scenario in the file `path`, with `overrides` (`KEY=VALUE`) applied.
    ///
    /// # Errors
    /// A file that cannot be read, and everything [`Scenario::parse`] refuses.
    pub fn load(path: impl AsRef<FilePath>, overrides: &[String]) -> Result<Self, ScenarioError> {
        let path = path.as_ref();
        let file = path.display().to_string();
        let fail = |what: String| ScenarioError {
            place: file.clone(),
            key: String::new(),
            value: None,
            what,
            hint: String::new(),
        };
        let size = std::fs::metadata(path).map_err(|error| fail(trace::plain(&error)))?;
        if !size.is_file() || size.len() > MAX_FILE {
            return Err(fail("not a file of at most 64 MiB".into()));
        }
        let bytes = std::fs::read(path).map_err(|error| fail(trace::plain(&error)))?;
        let text = String::from_utf8(bytes).map_err(|_| fail("not UTF-8 text".into()))?;
        let base_dir = path.parent().map_or_else(PathBuf::new, FilePath::to_path_buf);
        Self::parse(&text, &file, &base_dir, overrides)
    }

    /// The scenario `text`; errors call it `file_name`, and paths in it are relative to `base_dir`.
    ///
    /// Each override is `KEY=VALUE` with a dotted key (`link.rate=50 Mbit/s`, `flows.0.controller=window`), applied in order
    /// before anything is checked. A value that is TOML is read as such, anything else as text. Setting one of two keys that
    /// exclude each other (`rate` and `trace`) takes the other out of the file.
    ///
    /// # Errors
    /// Text that is not TOML, unknown or missing keys, values without unit or out of range, traces that cannot be read,
    /// nodes that no link reaches.
    pub fn parse(
        text: &str,
        file_name: &str,
        base_dir: &FilePath,
        overrides: &[String],
    ) -> Result<Self, ScenarioError> {
        Self::parse_with_guests(text, file_name, base_dir, overrides, &[])
    }

    /// As [`Scenario::parse`], where flows may also name `guests`: controllers that are not in the registry. A guest wins over
    /// a registered controller of the same name.
    ///
    /// # Errors
    /// As [`Scenario::parse`].
    pub fn parse_with_guests(
        text: &str,
        file_name: &str,
        base_dir: &FilePath,
        overrides: &[String],
        guests: &[&'static Spec],
    ) -> Result<Self, ScenarioError> {
        let mut tree = Node::parse(file_name, text)?;
        for option in overrides {
            tree::set(&mut tree, option)?;
        }
        let (file, base_dir) = (file_name.into(), base_dir.into());
        let source = Source { file, base_dir, guests: guests.into() };
        Self::check(source, text.into(), overrides.to_vec(), tree)
    }

    fn check(
        source: Source,
        text: Arc<str>,
        overrides: Vec<String>,
        tree: Node,
    ) -> Result<Self, ScenarioError> {
        let root = Reader::open(&source, &tree, "", &keys::SCENARIO, &[])?;
        let (duration_ps, warmup_ps, sample_ps) = times(&root)?;
        let empty = nothing();
        let sizes = GivenSizes::read(&root.child("packets", &empty)?)?;
        let groups = root.tables("flows")?;
        let flow_count = flow::count(&groups)?;
        let sample_ps = sample_ps.unwrap_or_else(|| default_sample(duration_ps, flow_count));
        let mut network = Network::read(&root, flow_count)?;
        let flows = flow::read(&groups, sizes, duration_ps, &mut network)?;
        let file_stem = || {
            let stem = FilePath::new(&*source.file).file_stem();
            stem.map_or("scenario".into(), |stem| stem.to_string_lossy().into_owned())
        };
        let scenario = Self {
            title: root.text("title")?.unwrap_or_else(file_stem),
            seed: root.whole("seed")?.unwrap_or(1),
            duration_ps,
            warmup_ps,
            sample_ps,
            packet_bytes: sizes.data_bytes(),
            links: network.links,
            flows,
            text,
            overrides,
            source: source.clone(),
            tree: tree.clone(),
        };
        // What depends on no seed is worked out now, so that an impossible buffer is found before the run.
        for link in scenario.links.iter().filter(|link| !link.direction.depends_on_seed()) {
            link.direction.resolve(link.base_rtt_ps, scenario.run(scenario.seed))?;
        }
        Ok(scenario)
    }

    /// The same scenario with every flow under one controller: `name`, `name:profile` or `name,key=value,…`.
    ///
    /// # Errors
    /// An unknown controller, profile or parameter, or a value out of range; the error names `--controller`.
    pub fn with_controller(&self, choice: &str) -> Result<Self, ScenarioError> {
        let mut tree = self.tree.clone();
        let Value::Table(entries) = &mut tree.value else { return Ok(self.clone()) };
        let flows = entries.iter_mut().filter(|(key, _)| key == "flows");
        for (_, flows) in flows {
            let Value::Array(groups) = &mut flows.value else { continue };
            for (i, group) in groups.iter_mut().enumerate() {
                let Value::Table(keys) = &mut group.value else { continue };
                keys.retain(|(key, _)| key != "controller");
                let option = controller::option(choice, &format!("flows.{i}.controller"));
                keys.push(("controller".into(), option));
            }
        }
        Self::check(self.source.clone(), self.text.clone(), self.overrides.clone(), tree)
    }

    /// What the simulator is to run, with `seed` or the scenario's own. The result depends on nothing else.
    ///
    /// # Errors
    /// A trace that cannot be generated, and buffers that turn out impossible with it.
    pub fn plan(&self, seed: Option<u64>) -> Result<Plan, ScenarioError> {
        let seed = seed.unwrap_or(self.seed);
        let link = |link: &DirectedLink| {
            let spec = link.direction.resolve(link.base_rtt_ps, self.run(seed))?;
            Ok(NamedLink { name: link.name.clone(), spec, recorded: link.recorded })
        };
        let mut starts = start_offsets(seed);
        Ok(Plan {
            links: self.links.iter().map(link).collect::<Result<_, ScenarioError>>()?,
            flows: self.flows.iter().map(|flow| plan_flow(flow, &mut starts)).collect(),
            duration_ps: self.duration_ps,
            warmup_ps: self.warmup_ps,
            sample_ps: self.sample_ps,
            seed,
        })
    }

    fn run(&self, seed: u64) -> Run {
        Run { seed, duration_ps: self.duration_ps, packet_bytes: self.packet_bytes }
    }

    /// One line that says what the run shows; the file's name where the scenario has none.
    pub fn title(&self) -> &str {
        &self.title
    }

    /// The file as errors name it.
    pub fn file_name(&self) -> &str {
        &self.source.file
    }

    /// The text as it was read, overrides not applied.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// The scenario as it runs, overrides and a `--controller` applied: TOML that runs again by itself.
    pub fn effective_text(&self) -> String {
        tree::to_toml(&self.tree)
    }

    /// [`Self::effective_text`] with other paths for its traces, and the file of each: put there, beside the text, it runs in another
    /// place.
    pub fn with_traces_beside_it(&self) -> (String, Vec<(String, PathBuf)>) {
        let mut tree = self.tree.clone();
        let mut files = Vec::new();
        trace::rename(&mut tree, &self.source.base_dir, &mut files);
        (tree::to_toml(&tree), files)
    }

    /// The overrides applied to the text, in order.
    pub fn overrides(&self) -> &[String] {
        &self.overrides
    }

    /// The scenario's own seed.
    pub fn seed(&self) -> u64 {
        self.seed
    }

    /// Simulated time, ps.
    pub fn duration_ps(&self) -> Picos {
        self.duration_ps
    }

    /// Statistics cover the time from here to the end, ps.
    pub fn warmup_ps(&self) -> Picos {
        self.warmup_ps
    }

    /// Distance of samples in the time series, ps.
    pub fn sample_ps(&self) -> Picos {
        self.sample_ps
    }

    /// The flows, in the order of the plan.
    pub fn flows(&self) -> &[Flow] {
        &self.flows
    }

    /// The directed links, in the order of the plan.
    pub fn links(&self) -> impl ExactSizeIterator<Item = LinkInfo<'_>> {
        self.links.iter().map(|link| LinkInfo {
            name: &link.name,
            recorded: link.recorded,
            rate_bps: link.direction.rate_bps(),
            delay_ps: link.direction.propagation.least_ps,
            base_rtt_ps: link.base_rtt_ps,
        })
    }
}

/// Samples that a default takes at most, all flows together.
const MAX_DEFAULT_SAMPLES: u64 = 200_000;

/// Distance of samples where the scenario does not say, ps.
fn default_sample(duration_ps: Picos, flows: u64) -> Picos {
    let thousandth = (duration_ps / 1000).clamp(PS_PER_MS, PS_PER_S);
    let room = (MAX_DEFAULT_SAMPLES / flows.max(1)).max(1);
    thousandth.max(duration_ps / room).min(duration_ps)
}

/// Duration, warm-up and distance of samples where it is given, ps.
fn times(root: &Reader<'_>) -> Result<(Picos, Picos, Option<Picos>), ScenarioError> {
    let duration_ps = root.time_always("duration")?;
    let shown = show_time(duration_ps as f64);
    let warmup_ps = root.time_always("warmup")?;
    if warmup_ps >= duration_ps {
        let hint = format!("allowed: less than duration, {shown}");
        return Err(root.error("warmup", "leaves nothing to measure", hint));
    }
    let sample_ps = root.time("sample")?;
    if let Some(sample_ps) = sample_ps {
        if sample_ps > duration_ps {
            let hint = format!("allowed: at most duration, {shown}");
            return Err(root.error("sample", "longer than the run", hint));
        }
        if duration_ps / sample_ps > keys::MAX_SAMPLES {
            let what = format!("{} samples in all", duration_ps / sample_ps);
            let hint = format!("allowed: at most {}", keys::MAX_SAMPLES);
            return Err(root.error("sample", what, hint));
        }
    }
    Ok((duration_ps, warmup_ps, sample_ps))
}

/// The random stream of the start times; links and flows have theirs in the simulator.
fn start_offsets(seed: u64) -> Pcg64 {
    const STREAM: u128 = 0x7374_6172_7473;
    let mut random = Pcg64::new(u128::from(seed), STREAM);
    // Neighbouring seeds begin alike; one step of the generator spreads them over its whole state.
    let state = u128::from(random.next_u64()) << 64 | u128::from(random.next_u64());
    Pcg64::new(state, STREAM)
}

fn plan_flow(flow: &Flow, starts: &mut Pcg64) -> FlowPlan {
    let offset = match flow.start_spread_ps {
        0 => 0,
        // Multiply and shift: uniform over 0..=spread to within 2^-64.
        spread => ((u128::from(starts.next_u64()) * (u128::from(spread) + 1)) >> 64) as Picos,
    };
    let choice = flow.controller.clone();
    FlowPlan {
        name: flow.name.clone(),
        controller_name: choice.label(),
        needs: choice.spec().needs,
        fields: choice.spec().fields.to_vec(),
        controller: Box::new(move |path| (choice.spec().build)(choice.params(), path)),
        stack: flow.stack,
        forward: flow.path.forward.clone(),
        reverse: flow.path.reverse.clone(),
        start_ps: flow.start_ps + offset,
        stop_ps: flow.stop_ps,
        size_bytes: flow.size_bytes,
        cap_bytes_per_s: flow.cap_bytes_per_s,
        packets: flow.packets,
        tag: Tag { hosts: flow.path.ends, class: flow.class, ecn: flow.ecn, ..Tag::default() },
    }
}
