//! Which links of a plan need an ordered step of their own, and how packets get from one such step to the next.
//!
//! A *junction* is the entrance of a link where packets of several origins meet, where a sender or a receiver sits, or whose
//! link keeps something that is observed: packets must be handled there in the order of their times. Everything else is a
//! formula and is passed *through* in the same step as the junction before it:
//!
//! - a link without capacity, loss, jitter or record: it only adds its delay;
//! - a link with a constant rate and nothing to drop or record, all of whose packets come the same way from one junction:
//!   they enter it in the order in which they left there.
//!
//! A *lane* is such a way from one junction to the next. Packets leave it in the order they entered, so it is a queue.

use std::collections::{BTreeMap, BTreeSet};

use paceline_net::{Buffer, Capacity, LinkSpec, Picos};

use crate::packet::Packet;

/// What becomes of a packet that has crossed a link of its path.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Step {
    pub(crate) onward: Onward,
    /// [`Packet::hop`] from then on.
    pub(crate) hop: u8,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Onward {
    /// It crosses this link, numbered among those passed through, at once.
    Through(u32),
    /// It arrives over this lane.
    Lane(u32),
}

/// The way from one junction to another.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct LaneSpec {
    pub(crate) from: u32,
    pub(crate) to: u32,
    /// No packet takes less time, ps. At least 1.
    pub(crate) least_ps: Picos,
    pub(crate) in_order: bool,
}

/// The links of a plan by their part in it, and every flow's way over them.
#[derive(Debug, Default)]
pub(crate) struct Routes {
    /// Links that are junctions, ascending.
    pub(crate) junctions: Vec<u32>,
    /// Links that packets pass through, ascending.
    pub(crate) through: Vec<u32>,
    /// Lanes, by the junction they lead to, then in the order in which packets that arrive at the same time are handled.
    pub(crate) lanes: Vec<LaneSpec>,
    /// Steps of all paths; one per link.
    pub(crate) steps: Vec<Step>,
    /// Per flow, where the steps of its forward and of its reverse path begin.
    pub(crate) first_step: Vec<[u32; 2]>,
}

/// A path: its links and the first link of the way back, where it ends.
type Path<'a> = (&'a [u32], u32);

/// The links that a packet crosses between two junctions, the first of them a junction's own, and where it arrives.
type Way = (Vec<u32>, u32);

impl Routes {
    /// For flows with the given forward and reverse paths, over links of which some are `recorded`. Paths are not empty and
    /// name links that exist.
    pub(crate) fn new(links: &[(&LinkSpec, bool)], flows: &[[&[u32]; 2]]) -> Self {
        let mut paths: BTreeMap<Path<'_>, u32> = BTreeMap::new();
        for [forward, reverse] in flows {
            paths.insert((forward, reverse[0]), 0);
            paths.insert((reverse, forward[0]), 0);
        }
        let is_through = passed_through(links, paths.keys());
        let mut routes = Self::default();
        let mut number = vec![0; links.len()];
        for (link, number) in number.iter_mut().enumerate() {
            let list = if is_through[link] { &mut routes.through } else { &mut routes.junctions };
            *number = list.len() as u32;
            list.push(link as u32);
        }
        let lanes = lanes(paths.keys(), &is_through);
        routes.lanes = lanes.keys().map(|way| lane(way, links, &number)).collect();
        for ((links, end), first) in &mut paths {
            *first = routes.steps.len() as u32;
            routes.steps.extend(steps(links, *end, &is_through, &number, &lanes));
        }
        let first = |path: Path<'_>| paths.get(&path).copied().unwrap_or_default();
        routes.first_step = flows
            .iter()
            .map(|[forward, reverse]| [first((forward, reverse[0])), first((reverse, forward[0]))])
            .collect();
        routes
    }
}

impl Routes {
    /// The junction at the entrance of `link`, which must be one.
    pub(crate) fn junction(&self, link: u32) -> u32 {
        self.junctions.partition_point(|known| *known < link) as u32
    }
}

/// For each link, whether packets pass through it.
fn passed_through<'a>(
    links: &[(&LinkSpec, bool)],
    paths: impl Iterator<Item = &'a Path<'a>> + Clone,
) -> Vec<bool> {
    // Ends of flows sit at the first links of paths.
    let mut through: Vec<bool> = links.iter().map(|(spec, rec)| !rec && is_formula(spec)).collect();
    for (path, _) in paths.clone() {
        through[path[0] as usize] = false;
    }
    // Links with a rate stay only if all that enters them comes one way, which depends on what is passed through before.
    loop {
        let mut ways: BTreeMap<u32, Vec<u32>> = BTreeMap::new();
        let mut meeting = BTreeSet::new();
        for (path, _) in paths.clone() {
            let mut since = 0;
            for (at, &link) in path.iter().enumerate() {
                if !through[link as usize] {
                    since = at;
                } else if links[link as usize].0.capacity != Capacity::Unlimited {
                    let way = &path[since..at];
                    let ordered = links[way[0] as usize].0.keeps_order();
                    if !ordered || ways.entry(link).or_insert_with(|| way.to_vec()) != way {
                        meeting.insert(link);
                    }
                }
            }
        }
        if meeting.is_empty() {
            return through;
        }
        for link in meeting {
            through[link as usize] = false;
        }
    }
}

/// Whether the passage depends on nothing but when packets enter, in their order.
fn is_formula(spec: &LinkSpec) -> bool {
    let plain = spec.loss.is_none() && spec.jitter.is_none() && spec.reorder.is_none();
    plain
        && match spec.capacity {
            Capacity::Unlimited => true,
            Capacity::Constant(_) => spec.buffer == Buffer::default(),
            Capacity::Trace { .. } => false,
        }
}

/// Where each way begins, by its end and its links from the last to the first: in this order packets that arrive at one time
/// are handled, as if each link had been a step of its own and those of one moment had been taken by link number.
type Lanes = BTreeMap<(u32, Vec<u32>), u32>;

fn lanes<'a>(paths: impl Iterator<Item = &'a Path<'a>>, is_through: &[bool]) -> Lanes {
    let mut lanes = Lanes::new();
    for (path, end) in paths {
        for (way, to) in ways(path, *end, is_through) {
            lanes.insert((to, way.into_iter().rev().collect()), 0);
        }
    }
    for (number, lane) in (0..).zip(lanes.values_mut()) {
        *lane = number;
    }
    lanes
}

/// Cuts a path at its junctions.
fn ways(path: &[u32], end: u32, is_through: &[bool]) -> Vec<Way> {
    let mut ways: Vec<Way> = Vec::new();
    for &link in path {
        match ways.last_mut() {
            Some((way, _)) if is_through[link as usize] => way.push(link),
            last => {
                if let Some((_, to)) = last {
                    *to = link;
                }
                ways.push((vec![link], end));
            }
        }
    }
    ways
}

fn lane((to, reversed): &(u32, Vec<u32>), links: &[(&LinkSpec, bool)], number: &[u32]) -> LaneSpec {
    let specs = || reversed.iter().map(|link| links[*link as usize].0);
    let from = reversed.last().copied().unwrap_or(*to);
    LaneSpec {
        from: number[from as usize],
        to: number[*to as usize],
        least_ps: specs().map(|s| s.delay_ps.max(1)).fold(0, Picos::saturating_add),
        in_order: specs().all(LinkSpec::keeps_order),
    }
}

fn steps(path: &[u32], end: u32, is_through: &[bool], number: &[u32], lanes: &Lanes) -> Vec<Step> {
    let mut steps = Vec::with_capacity(path.len());
    for (way, to) in ways(path, end, is_through) {
        for link in &way[1..] {
            let hop = steps.len() as u8 + 1;
            steps.push(Step { onward: Onward::Through(number[*link as usize]), hop });
        }
        let lane = lanes.get(&(to, way.into_iter().rev().collect())).copied().unwrap_or_default();
        let hop =
            if steps.len() + 1 == path.len() { Packet::AT_END } else { steps.len() as u8 + 1 };
        steps.push(Step { onward: Onward::Lane(lane), hop });
    }
    steps
}

#[cfg(test)]
#[path = "route_tests.rs"]
mod tests;
