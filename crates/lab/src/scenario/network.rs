//! The network: nodes, directed links, and who talks to whom; from `[link]`, `[[links]]` or `[topology]`.

use std::collections::BTreeMap;

use paceline_net::Picos;

use super::error::{Locus, ScenarioError, suggest};
use super::link::{self, CapacitySource, Direction, Duplex, ReverseDefault};
use super::reader::{Reader, nothing};
use super::routing::{Edge, Routes};

/// A directed link.
#[derive(Clone, Debug)]
pub(crate) struct DirectedLink {
    pub name: String,
    pub direction: Direction,
    pub recorded: bool,
    /// Longest base RTT of the flows that cross it, ps; 0 until the flows are placed.
    pub base_rtt_ps: Picos,
}

/// Nodes and links.
pub(crate) struct Network {
    pub links: Vec<DirectedLink>,
    nodes: Vec<String>,
    index: BTreeMap<String, u32>,
    edges: Vec<Edge>,
    ends: Ends,
}

/// Between which nodes a flow goes that does not say.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Ends {
    /// There is but one way: `from` and `to` are refused.
    Only(u32, u32),
    /// These, unless it says otherwise.
    Usually(u32, u32),
    /// In turn: `sender-k` to `receiver-k`, for so many pairs.
    Pairs(u32),
    /// It must say.
    Required,
}

impl Network {
    /// The network of the scenario `root`, for `flows` flows.
    pub fn read(root: &Reader<'_>, flows: u64) -> Result<Self, ScenarioError> {
        let mut network = Self {
            links: Vec::new(),
            nodes: Vec::new(),
            index: BTreeMap::new(),
            edges: Vec::new(),
            ends: Ends::Required,
        };
        if root.has("links") {
            if root.has("topology") {
                let what = "is made from `[link]`, and there is none";
                return Err(root.error("topology", what, "allowed: `[link]` beside it"));
            }
            network.join_named(root)?;
            return Ok(network);
        }
        if !root.has("link") {
            let what = "neither `[link]` nor `[[links]]`";
            return Err(root.error("link", what, "allowed: exactly one of the two"));
        }
        let empty = nothing();
        let link = Duplex::read(&root.child("link", &empty)?, ReverseDefault::Unlimited)?;
        match root.variant("topology", &empty)? {
            None => {
                let (a, b) = (network.node("sender"), network.node("receiver"));
                network.join("bottleneck", a, b, link, true);
                network.ends = Ends::Only(a, b);
            }
            Some(("dumbbell", table)) => network.dumbbell(&table, link, flows)?,
            Some((_, table)) => network.parking_lot(&table, &link)?,
        }
        Ok(network)
    }

    fn node(&mut self, name: &str) -> u32 {
        if let Some(known) = self.index.get(name) {
            return *known;
        }
        let node = self.nodes.len() as u32;
        self.nodes.push(name.into());
        self.index.insert(name.into(), node);
        node
    }

    /// Adds both directions of `link`; the forward one leads from `a` to `b`.
    fn join(&mut self, name: &str, a: u32, b: u32, link: Duplex, recorded: bool) {
        let reverse = format!("{name}-reverse");
        let back_recorded = recorded && !link.reverse.is_plain();
        let both = [
            (name.to_string(), a, b, link.forward, recorded),
            (reverse, b, a, link.reverse, back_recorded),
        ];
        for (name, from, to, direction, recorded) in both {
            self.edges.push(Edge { from, to, delay_ps: direction.propagation.least_ps });
            self.links.push(DirectedLink { name, direction, recorded, base_rtt_ps: 0 });
        }
    }

    fn join_named(&mut self, root: &Reader<'_>) -> Result<(), ScenarioError> {
        let mut taken = BTreeMap::new();
        for (i, table) in root.tables("links")?.iter().enumerate() {
            let link = Duplex::read(table, ReverseDefault::Same)?;
            let name = table.text("name")?.unwrap_or_else(|| format!("link-{}", i + 1));
            let [from, to] = [end(table, "from")?, end(table, "to")?];
            if from == to {
                return Err(table.error("to", "is where the link begins", "allowed: another node"));
            }
            for name in [name.clone(), format!("{name}-reverse")] {
                if let Some(other) = taken.insert(name.clone(), i) {
                    let what = format!("the name `{name}` is that of links.{other} already");
                    return Err(table.error("name", what, "allowed: a name of its own"));
                }
            }
            let (a, b) = (self.node(&from), self.node(&to));
            self.join(&name, a, b, link, true);
        }
        Ok(())
    }

    fn dumbbell(
        &mut self,
        table: &Reader<'_>,
        link: Duplex,
        flows: u64,
    ) -> Result<(), ScenarioError> {
        let pairs = table.whole("pairs")?.unwrap_or(flows.min(10)) as u32;
        let at = table.locus("access_rate");
        let (first_ps, last_ps) = table.spread("access_delay")?;
        let mut access = Direction::wire(first_ps, &at);
        let tenfold = link.forward.rate_bps().map(|bps| bps * 10.0);
        if let Some(bps) = table.rate("access_rate")?.unwrap_or(tenfold) {
            access.capacity = CapacitySource::Constant(bps);
        }
        access.buffer = link::buffer(table, "access_buffer", &access.capacity, &access.queue)?;
        access.buffer_at = table.locus("access_buffer");
        let (left, right) = (self.node("left"), self.node("right"));
        self.join("bottleneck", left, right, link, true);
        for pair in 1..=pairs {
            access.propagation.least_ps = between(first_ps, last_ps, pair - 1, pairs - 1);
            let access = Duplex { forward: access.clone(), reverse: access.clone() };
            let sender = self.node(&format!("sender-{pair}"));
            self.join(&format!("access-sender-{pair}"), sender, left, access.clone(), false);
            let receiver = self.node(&format!("receiver-{pair}"));
            self.join(&format!("access-receiver-{pair}"), right, receiver, access, false);
        }
        self.ends = Ends::Pairs(pairs);
        Ok(())
    }

    fn parking_lot(&mut self, table: &Reader<'_>, link: &Duplex) -> Result<(), ScenarioError> {
        let hops = table.whole("hops")?.unwrap_or(1);
        let first = self.node("r0");
        let mut at = first;
        for hop in 1..=hops {
            let next = self.node(&format!("r{hop}"));
            self.join(&format!("hop-{hop}"), at, next, link.clone(), true);
            at = next;
        }
        self.ends = Ends::Usually(first, at);
        Ok(())
    }

    /// The routes over these links.
    pub fn routes(&self) -> Routes {
        Routes::new(self.nodes.len(), self.edges.clone())
    }

    /// Sender and receiver of flow number `flow` (of the whole run) in the group that `group` reads.
    pub fn ends(&self, group: &Reader<'_>, flow: u64) -> Result<(u32, u32), ScenarioError> {
        let mut given = [None, None];
        for (key, node) in ["from", "to"].into_iter().zip(&mut given) {
            *node = self.named(group, key)?;
        }
        let (from, to) = match (self.ends, given) {
            (_, [Some(from), Some(to)]) => (from, to),
            (Ends::Only(from, to), _) => (from, to),
            (Ends::Usually(from, to), [a, b]) => (a.unwrap_or(from), b.unwrap_or(to)),
            (Ends::Pairs(pairs), [a, b]) => {
                // `join` numbers the nodes left, right, sender-1, receiver-1, sender-2, …
                let pair = (flow % u64::from(pairs.max(1))) as u32;
                (a.unwrap_or(2 + 2 * pair), b.unwrap_or(3 + 2 * pair))
            }
            (Ends::Required, [from, _]) => {
                let key = if from.is_none() { "from" } else { "to" };
                return Err(group.error(key, "missing", self.known("")));
            }
        };
        if from == to {
            let key = if group.has("to") { "to" } else { "from" };
            return Err(group.error(key, "is where the flow begins", "allowed: another node"));
        }
        Ok((from, to))
    }

    fn named(&self, group: &Reader<'_>, key: &str) -> Result<Option<u32>, ScenarioError> {
        let Some(name) = group.text(key)? else { return Ok(None) };
        if let Ends::Only(..) = self.ends {
            let hint = "allowed: only with `[[links]]` or `[topology]`";
            return Err(group.error(key, "`[link]` alone joins all flows", hint));
        }
        match self.index.get(name.trim()) {
            Some(node) => Ok(Some(*node)),
            None => Err(group.error(key, "no such node", self.known(&name))),
        }
    }

    fn known(&self, name: &str) -> String {
        suggest(name, self.nodes.iter().map(String::as_str))
    }

    /// Name of a node.
    pub fn node_name(&self, node: u32) -> &str {
        self.nodes.get(node as usize).map_or("?", String::as_str)
    }

    /// A pure delay of its own for flows that are farther away than the links say; returns its index.
    pub fn add_wire(&mut self, name: String, delay_ps: Picos, at: &Locus) -> u32 {
        let direction = Direction::wire(delay_ps, at);
        self.links.push(DirectedLink { name, direction, recorded: false, base_rtt_ps: 0 });
        self.links.len() as u32 - 1
    }
}

/// Step number `step` of `steps` equal ones from `first` to `last`, to the nearest picosecond; `first` where there is none.
fn between(first: Picos, last: Picos, step: u32, steps: u32) -> Picos {
    let (step, steps) = (u128::from(step), u128::from(steps.max(1)));
    let weighted = u128::from(first) * (steps - step) + u128::from(last) * step;
    ((weighted + steps / 2) / steps) as Picos
}

fn end(table: &Reader<'_>, key: &str) -> Result<String, ScenarioError> {
    let name = table.text(key)?.ok_or_else(|| table.error(key, "missing", "allowed: a node"))?;
    Ok(name.trim().into())
}
