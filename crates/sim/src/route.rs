//! Which links of a plan need an ordered step of their own, and how packets get from one such step to the next.
//!
//! A *junction* is the entrance of a link where packets of several origins meet, where a sender or a receiver sits, or whose
//! link keeps something that is observed: packets must be handled there in the order of their times. Everything else is a
//! formula ([`PlainLink`]) and is passed *through* in the same step as the junction before it:
//!
//! - a pure delay, which treats all packets alike;
//! - a link with a constant rate and nothing to drop or record, all of whose packets come the same way from one junction and
//!   go on the same way: they enter it in the order in which they left there.
//!
//! A *lane* is such a way from one junction to the next. Packets leave it in the order they entered, so it is a queue.

use std::collections::{BTreeMap, BTreeSet};

use paceline_net::{LinkSpec, Picos, PlainLink};

use crate::packet::Packet;

/// What becomes of a packet that leaves a junction.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Step {
    /// The lane it takes.
    pub(crate) lane: u32,
    /// [`Packet::hop`] when it arrives.
    pub(crate) hop: u8,
}

/// The way from one junction to another.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct LaneSpec {
    pub(crate) from: u32,
    pub(crate) to: u32,
    /// Links passed through, after the junction's own.
    pub(crate) through: Vec<u32>,
    /// No packet takes less time, ps. At least 1.
    pub(crate) least_ps: Picos,
    pub(crate) in_order: bool,
}

/// The links of a plan by their part in it, and every flow's way over them.
#[derive(Debug, Default)]
pub(crate) struct Routes {
    /// Links that are junctions, ascending. All else that packets cross is passed through.
    pub(crate) junctions: Vec<u32>,
    /// Lanes, by the junction they lead to, then in the order in which packets that arrive at the same time are handled.
    pub(crate) lanes: Vec<LaneSpec>,
    /// Steps of all paths, one per junction.
    pub(crate) steps: Vec<Step>,
    /// Per flow, where the steps of its forward and of its reverse path begin.
    pub(crate) first_step: Vec<[u32; 2]>,
}

/// A path: its links, and the first link of the way back, where it ends.
type Path<'a> = (&'a [u32], u32);

/// The links that a packet crosses between two junctions, the first of them a junction's own, and where it arrives.
type Way<'a> = (&'a [u32], u32);

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
        let junctions = (0..).zip(&is_through).filter(|(_, through)| !**through);
        let mut routes =
            Self { junctions: junctions.map(|(link, _)| link).collect(), ..Self::default() };
        // By the links from the last to the first: in this order packets that arrive at one time are handled, as if each link
        // were a step of its own and those of one moment were taken by link number.
        let mut lanes: BTreeMap<(u32, Vec<u32>), u32> = BTreeMap::new();
        let key = |(way, to): Way<'_>| (to, way.iter().rev().copied().collect());
        for way in paths.keys().flat_map(|path| ways(*path, &is_through)) {
            lanes.insert(key(way), 0);
        }
        for (number, ((to, reversed), lane)) in (0..).zip(&mut lanes) {
            *lane = number;
            let way: Vec<u32> = reversed.iter().rev().copied().collect();
            let spec = routes.lane(&way, *to, links);
            routes.lanes.push(spec);
        }
        for (path, first) in &mut paths {
            *first = routes.steps.len() as u32;
            let lanes = ways(*path, &is_through).into_iter().map(|way| lanes[&key(way)]);
            routes.steps.extend((1..=u8::MAX).zip(lanes).map(|(hop, lane)| Step { lane, hop }));
            if let Some(last) = routes.steps.last_mut() {
                last.hop = Packet::AT_END;
            }
        }
        routes.first_step = flows
            .iter()
            .map(|[forward, reverse]| {
                [paths[&(*forward, reverse[0])], paths[&(*reverse, forward[0])]]
            })
            .collect();
        routes
    }

    /// The junction at the entrance of `link`, which must be one.
    pub(crate) fn junction(&self, link: u32) -> u32 {
        self.junctions.partition_point(|known| *known < link) as u32
    }

    /// The link whose junction most lanes lead to, and how many.
    pub(crate) fn busiest(&self) -> Option<(u32, usize)> {
        let per_junction = self.lanes.chunk_by(|a, b| a.to == b.to);
        let most = per_junction.max_by_key(|lanes| lanes.len())?;
        Some((self.junctions[most[0].to as usize], most.len()))
    }

    fn lane(&self, way: &[u32], to: u32, links: &[(&LinkSpec, bool)]) -> LaneSpec {
        let specs = || way.iter().map(|link| links[*link as usize].0);
        LaneSpec {
            from: self.junction(way[0]),
            to: self.junction(to),
            through: way[1..].to_vec(),
            least_ps: specs().map(|spec| spec.delay_ps.max(1)).fold(0, Picos::saturating_add),
            in_order: specs().all(LinkSpec::keeps_order),
        }
    }
}

/// For each link, whether packets pass through it.
fn passed_through<'a>(
    links: &[(&LinkSpec, bool)],
    paths: impl Iterator<Item = &'a Path<'a>> + Clone,
) -> Vec<bool> {
    let plain: Vec<Option<PlainLink>> =
        links.iter().map(|(spec, recorded)| PlainLink::new(spec).filter(|_| !recorded)).collect();
    let mut through: Vec<bool> = plain.iter().map(Option::is_some).collect();
    // Ends of flows sit at the first links of paths.
    for (path, _) in paths.clone() {
        through[path[0] as usize] = false;
    }
    // Links with a rate stay only while they belong to one lane, and that depends on which links are passed through.
    let is_delay = |link: u32| plain[link as usize].as_ref().is_none_or(PlainLink::is_pure_delay);
    loop {
        let mut lane_of: BTreeMap<u32, Way<'_>> = BTreeMap::new();
        let mut shared = BTreeSet::new();
        for way in paths.clone().flat_map(|path| ways(*path, &through)) {
            let in_order = links[way.0[0] as usize].0.keeps_order();
            for &link in way.0[1..].iter().filter(|link| !is_delay(**link)) {
                let twice = way.0.iter().filter(|other| **other == link).count() > 1;
                if !in_order || twice || *lane_of.entry(link).or_insert(way) != way {
                    shared.insert(link);
                }
            }
        }
        if shared.is_empty() {
            return through;
        }
        for link in shared {
            through[link as usize] = false;
        }
    }
}

/// Cuts a path at its junctions.
fn ways<'a>((path, end): Path<'a>, is_through: &[bool]) -> Vec<Way<'a>> {
    let starts: Vec<usize> = (0..path.len()).filter(|at| !is_through[path[*at] as usize]).collect();
    let ends = starts.iter().skip(1).copied().chain([path.len()]);
    let to = |at: usize| path.get(at).copied().unwrap_or(end);
    starts.iter().zip(ends).map(|(from, until)| (&path[*from..until], to(until))).collect()
}

#[cfg(test)]
#[path = "route_tests.rs"]
mod tests;
