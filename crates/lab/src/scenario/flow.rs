//! `[[flows]]`: groups of equal flows, placed on the network.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use paceline_cc::Needs;
use paceline_net::Picos;
use paceline_net::queue::Ecn;
use paceline_sim::{DatagramOptions, LossNotice, PacketSizes, Stack, TcpOptions};

use super::controller::ControllerChoice;
use super::error::ScenarioError;
use super::keys::MAX_FLOWS;
use super::network::Network;
use super::quantity::show_time;
use super::reader::{Reader, nothing};
use super::routing::Routes;

/// One flow of a scenario.
#[derive(Clone, Debug)]
pub struct Flow {
    /// Name in the record, unique in the run.
    pub name: String,
    /// What controls it.
    pub controller: Arc<ControllerChoice>,
    /// What carries it.
    pub stack: Stack,
    /// Earliest start, ps.
    pub start_ps: Picos,
    /// Up to how much later it starts, at random, ps.
    pub start_spread_ps: Picos,
    /// When it stops sending new data, ps; `None` = the end of the run.
    pub stop_ps: Option<Picos>,
    /// Payload, bytes; `None` = endless.
    pub size_bytes: Option<u64>,
    /// Ceiling of the sending rate, bytes/s on the wire.
    pub cap_bytes_per_s: Option<u64>,
    /// Sizes of its packets.
    pub packets: PacketSizes,
    /// ECN field of its data packets.
    pub ecn: Ecn,
    /// Its class, for queues that have classes.
    pub class: u16,
    /// Where it goes.
    pub path: Arc<Path>,
}

/// The links that a flow crosses.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Path {
    /// Data, in order; indices into the plan's links.
    pub forward: Vec<u32>,
    /// ACKs, in order.
    pub reverse: Vec<u32>,
    /// Propagation delay there and back, ps.
    pub base_rtt_ps: Picos,
    /// Numbers of the nodes at both ends.
    pub ends: [u32; 2],
}

/// Sizes given in `[packets]`; the rest depends on the stack.
#[derive(Clone, Copy, Debug)]
pub(crate) struct GivenSizes {
    data: u16,
    header: Option<u16>,
    ack: Option<u16>,
}

impl GivenSizes {
    /// The table `[packets]`.
    pub fn read(table: &Reader<'_>) -> Result<Self, ScenarioError> {
        // The ranges in the key table end at 65,535, so that nothing is cut here.
        let size = |name| table.bytes(name).map(|bytes| bytes.map(|bytes| bytes as u16));
        let data = size("data")?.ok_or_else(|| table.error("data", "missing", ""))?;
        let (header, ack) = (size("header")?, size("ack")?);
        if header.is_some_and(|header| header >= data) {
            let hint = format!("allowed: less than data, {data} B");
            return Err(table.error("header", "leaves no room for payload", hint));
        }
        Ok(Self { data, header, ack })
    }

    /// A full data packet, bytes.
    pub fn data_bytes(&self) -> u16 {
        self.data
    }

    fn of(&self, stack: &Stack) -> PacketSizes {
        let (header, ack) = match stack {
            Stack::Tcp(_) => (52, 52),
            Stack::Datagram(_) => (28, 40),
        };
        PacketSizes {
            data_bytes: self.data,
            header_bytes: self.header.unwrap_or(header),
            ack_bytes: self.ack.unwrap_or(ack),
        }
    }
}

/// How many flows the groups hold together.
pub(crate) fn count(groups: &[Reader<'_>]) -> Result<u64, ScenarioError> {
    let mut total = 0;
    for group in groups {
        total += group.whole("count")?.unwrap_or(1);
        if total > MAX_FLOWS as u64 {
            let what = format!("{total} flows in all");
            return Err(group.error("count", what, format!("allowed: at most {MAX_FLOWS}")));
        }
    }
    Ok(total)
}

/// Every flow of `groups`, in order.
pub(crate) fn read(
    groups: &[Reader<'_>],
    sizes: GivenSizes,
    duration_ps: Picos,
    network: &mut Network,
) -> Result<Vec<Flow>, ScenarioError> {
    let mut flows: Vec<Flow> = Vec::new();
    let mut placing = Placing { routes: network.routes(), network, known: BTreeMap::new() };
    let mut bases = Vec::with_capacity(groups.len());
    for group in groups {
        let model = model(group, sizes, duration_ps)?;
        bases.push((model.name.clone(), group.whole("count")?.unwrap_or(1)));
        for _ in 0..group.whole("count")?.unwrap_or(1) {
            let path = placing.path(group, flows.len() as u64)?;
            flows.push(Flow { path, ..model.clone() });
        }
    }
    number(groups, &bases, &mut flows)?;
    placing.measure(&flows);
    Ok(flows)
}

/// A flow of the group, its path apart.
fn model(group: &Reader<'_>, sizes: GivenSizes, duration_ps: Picos) -> Result<Flow, ScenarioError> {
    let missing = || group.error("controller", "missing", "");
    let node = group.raw("controller").ok_or_else(missing)?;
    let path = group.path_of("controller");
    let controller = ControllerChoice::read(group.source, node, &path)?;
    let name = group.text("name")?.unwrap_or_else(|| controller.spec().name.into());
    let stack = stack(group)?;
    let start_ps = group.time_always("start")?;
    let start_spread_ps = group.time_always("start_spread")?;
    let stop_ps = group.time("stop")?;
    let latest = start_ps.saturating_add(start_spread_ps);
    if latest >= duration_ps {
        let key = if start_ps >= duration_ps { "start" } else { "start_spread" };
        let hint = format!("allowed: start + start_spread below {}", show_time(duration_ps as f64));
        return Err(group.error(key, "a flow would start after the end of the run", hint));
    }
    if stop_ps.is_some_and(|stop| stop <= latest) {
        let hint = format!("allowed: above start + start_spread, {}", show_time(latest as f64));
        return Err(group.error("stop", "a flow would stop before it starts", hint));
    }
    let packets = sizes.of(&stack);
    if packets.header_bytes >= packets.data_bytes {
        let what = format!("headers of {} B fill the packet", packets.header_bytes);
        return Err(group.error("stack", what, "allowed: a larger packets.data"));
    }
    let ecn = ecn(group, controller.spec().needs)?;
    Ok(Flow {
        name,
        controller: Arc::new(controller),
        stack,
        start_ps,
        start_spread_ps,
        stop_ps,
        size_bytes: group.bytes("size")?,
        cap_bytes_per_s: group.rate("cap")?.flatten().map(|bps| (bps / 8.0) as u64),
        packets,
        ecn,
        // The key's range ends at 65,535.
        class: group.whole("class")?.unwrap_or_default() as u16,
        path: Arc::default(),
    })
}

/// What the flow's packets say of ECN: as given, or as the controller wants it.
fn ecn(group: &Reader<'_>, needs: Needs) -> Result<Ecn, ScenarioError> {
    let empty = nothing();
    Ok(match group.variant("ecn", &empty)? {
        None if needs.contains(Needs::ECT1) => Ecn::Scalable,
        None if needs.contains(Needs::CE_COUNT) => Ecn::Capable,
        None => Ecn::NotCapable,
        Some(("off", _)) if needs.contains(Needs::CE_COUNT) => {
            let what = "the controller reacts to marks, and packets would not be marked";
            return Err(group.error("ecn", what, "allowed: ect0, ect1"));
        }
        Some(("off", _)) => Ecn::NotCapable,
        Some(("ect0", _)) => Ecn::Capable,
        Some(_) => Ecn::Scalable,
    })
}

fn stack(group: &Reader<'_>) -> Result<Stack, ScenarioError> {
    let empty = nothing();
    let Some((kind, table)) = group.variant("stack", &empty)? else {
        return Ok(Stack::Tcp(TcpOptions::default()));
    };
    Ok(match kind {
        "tcp" => Stack::Tcp(TcpOptions {
            // The key's range ends at 10,000.
            initial_window_packets: table.packets("initial_window")? as u32,
            delayed_ack_ps: table.time("delayed_ack")?,
            min_rto_ps: table.time_always("min_rto")?,
            handshake: table.flag("handshake")?,
            prr: table.flag("prr")?,
        }),
        _ => Stack::Datagram(DatagramOptions {
            blocking: table.flag("blocking")?,
            overhead_ps: table.time_always("overhead")?,
            clock_ps: table.time("clock")?.unwrap_or(1),
            tell_losses: match table.variant("tell_losses", &empty)? {
                Some(("drop", _)) => LossNotice::AtDrop,
                _ => LossNotice::Detected,
            },
        }),
    })
}

/// Numbers the flows whose name several share, and makes sure that none is used twice.
fn number(
    groups: &[Reader<'_>],
    bases: &[(String, u64)],
    flows: &mut [Flow],
) -> Result<(), ScenarioError> {
    let mut shared: BTreeMap<&str, u64> = BTreeMap::new();
    for (base, count) in bases {
        *shared.entry(base).or_default() += count;
    }
    let mut used: BTreeMap<&str, u64> = BTreeMap::new();
    let mut taken = BTreeSet::new();
    let mut flows = flows.iter_mut();
    for (group, (base, count)) in groups.iter().zip(bases) {
        for flow in flows.by_ref().take(*count as usize) {
            if shared.get(base.as_str()).is_some_and(|sharing| *sharing > 1) {
                let last = used.entry(base).or_default();
                *last += 1;
                flow.name = format!("{base}-{last}");
            }
            if !taken.insert(flow.name.clone()) {
                let what = format!("two flows would be called `{}`", flow.name);
                return Err(group.error("name", what, "allowed: a name of its own"));
            }
        }
    }
    Ok(())
}

/// Finds the links of each flow; equal flows share one path.
struct Placing<'a> {
    network: &'a mut Network,
    routes: Routes,
    /// By sender, receiver and the RTT asked for.
    known: BTreeMap<(u32, u32, Option<Picos>), Arc<Path>>,
}

impl Placing<'_> {
    fn path(&mut self, group: &Reader<'_>, flow: u64) -> Result<Arc<Path>, ScenarioError> {
        let (from, to) = self.network.ends(group, flow)?;
        let rtt = group.time("rtt")?;
        if let Some(known) = self.known.get(&(from, to, rtt)) {
            return Ok(known.clone());
        }
        let mut unreachable = |from: u32, to: u32| {
            self.routes.path(from, to).ok_or_else(|| {
                let name = |node| self.network.node_name(node);
                let what = format!("no way from `{}` to `{}`", name(from), name(to));
                group.error("to", what, "allowed: a node that the links reach")
            })
        };
        let mut path = Path {
            forward: unreachable(from, to)?,
            reverse: unreachable(to, from)?,
            base_rtt_ps: 0,
            ends: [from, to],
        };
        path.base_rtt_ps = self.propagation(&path);
        if let Some(rtt) = rtt {
            self.stretch(&mut path, rtt, group)?;
        }
        let path = Arc::new(path);
        self.known.insert((from, to, rtt), path.clone());
        Ok(path)
    }

    fn propagation(&self, path: &Path) -> Picos {
        let delay = |link: &u32| self.network.links[*link as usize].direction.propagation.least_ps;
        path.forward.iter().chain(&path.reverse).map(delay).fold(0, Picos::saturating_add)
    }

    /// Brings the base RTT up to `rtt` with delay on the sender's side, half of it each way.
    fn stretch(
        &mut self,
        path: &mut Path,
        rtt: Picos,
        group: &Reader<'_>,
    ) -> Result<(), ScenarioError> {
        let Some(extra) = rtt.checked_sub(path.base_rtt_ps) else {
            let hint = format!("allowed: {} or more", show_time(path.base_rtt_ps as f64));
            return Err(group.error("rtt", "less than the propagation of its links", hint));
        };
        if extra > 0 {
            let name = format!("rtt-{}", self.known.len() + 1);
            let at = group.locus("rtt");
            let out = self.network.add_wire(name.clone(), extra / 2, &at);
            path.forward.insert(0, out);
            let back = self.network.add_wire(format!("{name}-reverse"), extra - extra / 2, &at);
            path.reverse.push(back);
        }
        path.base_rtt_ps = rtt;
        Ok(())
    }

    /// Notes at each link the longest base RTT of the flows that cross it, or of all where none does.
    fn measure(self, flows: &[Flow]) {
        let longest = flows.iter().map(|flow| flow.path.base_rtt_ps).max().unwrap_or(0);
        for path in self.known.values() {
            for link in path.forward.iter().chain(&path.reverse) {
                let known = &mut self.network.links[*link as usize].base_rtt_ps;
                *known = path.base_rtt_ps.max(*known);
            }
        }
        let crossed: BTreeSet<u32> = self
            .known
            .values()
            .flat_map(|path| path.forward.iter().chain(&path.reverse))
            .copied()
            .collect();
        for (index, link) in self.network.links.iter_mut().enumerate() {
            if !crossed.contains(&(index as u32)) {
                link.base_rtt_ps = longest;
            }
        }
    }
}
