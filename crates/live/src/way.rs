//! From the paths of a plan's flows to one direction of an emulated link: the link with the queue, which all flows cross, and
//! delays around it, of which each flow may have its own.

use paceline_emulator::Direction;
use paceline_net::{Capacity, LinkSpec, Picos, QueueSpec};
use paceline_sim::hosted::{LinkRecord, Window};
use paceline_sim::{FlowPlan, NamedLink};

use crate::error::LiveError;
use crate::observe::{ObservedLink, Place};

/// The links of one direction, as the emulator has them.
pub struct Way {
    /// What the emulator carries.
    pub direction: Direction,
    /// Those that are recorded.
    pub links: Vec<ObservedLink>,
    /// Of each flow.
    pub flows: Vec<Distance>,
    /// Of each flow, what it has before the link and behind it beyond what all have, ps; `None` where flows need not be told
    /// apart.
    pub branches: Option<[Vec<Picos>; 2]>,
}

/// How far the ends of a flow are from each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Distance {
    /// Delay before the link with the queue, ps.
    pub before: Picos,
    /// Propagation over all links, ps.
    pub propagation: Picos,
}

/// Name and path of a flow.
type Course<'a> = (&'a str, &'a [u32]);

/// The two directions of the plan's flows: that of the data, and that of the ACKs.
pub fn both_ways(
    links: &[NamedLink],
    flows: &[FlowPlan],
    overhead_bytes: u16,
    window: Window,
) -> Result<[Way; 2], LiveError> {
    let data: Vec<Course<'_>> = flows.iter().map(|flow| (&*flow.name, &*flow.forward)).collect();
    let acks: Vec<Course<'_>> = flows.iter().map(|flow| (&*flow.name, &*flow.reverse)).collect();
    for (flow, path) in &data {
        let with_acks = acks.iter().find_map(|(other, acks)| {
            path.iter().find(|link| acks.contains(link)).map(|link| (other, link))
        });
        if let Some((other, link)) = with_acks {
            return Err(LiveError::Unsupported(format!(
                "link `{}` carries data of flow `{flow}` and ACKs of `{other}`: in a live run all data goes in one direction",
                links[*link as usize].name
            )));
        }
    }
    let way = |courses| way(links, courses, overhead_bytes, window);
    Ok([way(&data)?, way(&acks)?])
}

/// The direction of the flows with these `courses`.
fn way(
    links: &[NamedLink],
    courses: &[Course<'_>],
    overhead_bytes: u16,
    window: Window,
) -> Result<Way, LiveError> {
    let delay = |path: &[u32]| -> Picos {
        let delays = path.iter().map(|link| links[*link as usize].spec.delay_ps);
        delays.fold(0, Picos::saturating_add)
    };
    let shared = shared_link(links, courses)?;
    let places: Vec<Option<usize>> = courses
        .iter()
        .map(|(_, path)| path.iter().position(|link| Some(*link) == shared))
        .collect();
    let parts: Vec<[&[u32]; 2]> = courses
        .iter()
        .zip(&places)
        .map(|((_, path), place)| match *place {
            Some(at) => [&path[..at], &path[at + 1..]],
            None => [&path[..0], *path],
        })
        .collect();
    let mut spec = shared.map_or_else(LinkSpec::default, |link| links[link as usize].spec.clone());
    let own = spec.delay_ps;
    let [mut before, mut behind] = [0, 1]
        .map(|side: usize| -> Vec<Picos> { parts.iter().map(|of| delay(of[side])).collect() });
    let flows = before.iter().zip(&behind).map(|(before, behind)| Distance {
        before: *before,
        propagation: before.saturating_add(own).saturating_add(*behind),
    });
    let flows = flows.collect();
    let [all_before, all_behind] =
        [&mut before, &mut behind].map(|delays| take_least(delays.as_mut_slice()));
    spec.delay_ps = own.saturating_add(all_behind);

    let place = |flow: usize, at: usize| {
        let path = courses[flow].1;
        match places[flow] {
            Some(queue) if at < queue => Place::Before(delay(&path[at..queue])),
            Some(queue) if at == queue => Place::Queue,
            Some(queue) => Place::Behind(delay(&path[queue..at])),
            None => Place::Behind(delay(&path[..at])),
        }
    };
    let observed = observed_links(links, courses, place, window)?;
    let is_plain = before.iter().chain(&behind).all(|delay| *delay == 0)
        && observed.iter().all(|link| link.branches.is_none());
    Ok(Way {
        links: observed,
        flows,
        branches: (!is_plain).then_some([before, behind]),
        direction: Direction {
            spec,
            overhead_bytes: overhead_bytes.into(),
            log: None,
            delay_before_ps: all_before,
        },
    })
}

/// The link that the emulator has: the one with a queue, which all flows must cross, or else any that all cross, if there is one.
fn shared_link(links: &[NamedLink], courses: &[Course<'_>]) -> Result<Option<u32>, LiveError> {
    let name = |link: u32| &links[link as usize].name;
    let mut shared: Option<(u32, &str)> = None;
    for (flow, path) in courses {
        let mut queues = path.iter().filter(|link| !is_a_delay(&links[**link as usize].spec));
        let queue = queues.next();
        if let (Some(first), Some(second)) = (queue, queues.next()) {
            return Err(LiveError::Unsupported(format!(
                "links `{}` and `{}` both have a rate, a queue, loss, jitter or a delay that changes: a live run has one such link on \
                 a path, and else delays (the access links of a `topology` are such, unless `access_rate` is unlimited)",
                name(*first),
                name(*second)
            )));
        }
        shared = shared.or(queue.map(|link| (*link, *flow)));
    }
    let Some((shared, flow)) = shared else {
        let is_on_all = |link: &&u32| courses.iter().all(|(_, path)| path.contains(link));
        return Ok(courses.first().and_then(|(_, path)| path.iter().find(is_on_all)).copied());
    };
    match courses.iter().find(|(_, path)| !path.contains(&shared)) {
        None => Ok(Some(shared)),
        Some((other, _)) => Err(LiveError::Unsupported(format!(
            "flow `{other}` does not cross link `{}`, as `{flow}` does: a live run has one link with a rate, a queue, loss, jitter or a \
             delay that changes in each direction, which all flows cross; their other links may differ (`rtt`, `from` and `to` of a \
             flow, access links of a `topology`)",
            name(shared)
        ))),
    }
}

/// The links that are recorded. `place` says where the link number `at` on the path of a flow stands.
fn observed_links(
    links: &[NamedLink],
    courses: &[Course<'_>],
    place: impl Fn(usize, usize) -> Place,
    window: Window,
) -> Result<Vec<ObservedLink>, LiveError> {
    let mut observed: Vec<ObservedLink> = Vec::new();
    for (number, link) in links.iter().enumerate().filter(|(_, link)| link.recorded) {
        let mut stands: Option<(Place, &str)> = None;
        let mut crossed_by = vec![false; courses.len()];
        for (flow, (name, path)) in courses.iter().enumerate() {
            let Some(at) = path.iter().position(|other| *other as usize == number) else {
                continue;
            };
            let here = place(flow, at);
            let (known, first) = *stands.get_or_insert((here, name));
            if here != known {
                return Err(LiveError::Unsupported(format!(
                    "link `{}` is recorded, and flows `{first}` and `{name}` have different delays between it and the link that all \
                     cross: a live run measures a link in one place",
                    link.name
                )));
            }
            crossed_by[flow] = true;
        }
        if let Some((place, _)) = stands {
            let record = LinkRecord::new(link.name.clone(), window);
            let branches = crossed_by.contains(&false).then_some(crossed_by);
            observed.push(ObservedLink { number, record, place, branches });
        }
    }
    Ok(observed)
}

/// Takes the least of `delays` from all of them.
fn take_least(delays: &mut [Picos]) -> Picos {
    let least = delays.iter().copied().min().unwrap_or(0);
    delays.iter_mut().for_each(|delay| *delay -= least);
    least
}

/// Whether a link does nothing but delay.
fn is_a_delay(spec: &LinkSpec) -> bool {
    spec.capacity == Capacity::Unlimited
        && spec.queue == QueueSpec::DropTail
        && spec.delay_trace.is_none()
        && spec.loss.is_none()
        && spec.jitter.is_none()
        && spec.reorder.is_none()
}

#[cfg(test)]
mod tests {
    use super::*;
    use paceline_net::{PS_PER_MS, PS_PER_S};

    const WINDOW: Window = Window { warmup: 0, end: PS_PER_S, sample: PS_PER_MS };

    fn link(name: &str, capacity: Capacity, delay_ms: u64) -> NamedLink {
        let spec = LinkSpec { capacity, delay_ps: delay_ms * PS_PER_MS, ..LinkSpec::default() };
        NamedLink { name: name.into(), spec, recorded: true }
    }

    fn wire(name: &str, delay_ms: u64) -> NamedLink {
        link(name, Capacity::Unlimited, delay_ms)
    }

    fn queue(name: &str, delay_ms: u64) -> NamedLink {
        link(name, Capacity::Constant(1e6), delay_ms)
    }

    fn ms(values: &[u64]) -> Vec<Picos> {
        values.iter().map(|value| value * PS_PER_MS).collect()
    }

    fn error(links: &[NamedLink], courses: &[Course<'_>]) -> String {
        way(links, courses, 0, WINDOW).err().expect("it is refused").to_string()
    }

    #[test]
    fn delays_around_the_queue_are_folded_in() {
        let links = [wire("a", 3), queue("b", 5), wire("c", 7)];
        let way = way(&links, &[("flow", &[0, 1, 2])], 4, WINDOW).unwrap();
        assert_eq!(way.direction.delay_before_ps, 3 * PS_PER_MS);
        assert_eq!(way.direction.spec.delay_ps, 12 * PS_PER_MS);
        let distance = Distance { before: 3 * PS_PER_MS, propagation: 15 * PS_PER_MS };
        assert_eq!(way.flows, [distance]);
        let places: Vec<Place> = way.links.iter().map(|link| link.place).collect();
        let expected = [Place::Before(3 * PS_PER_MS), Place::Queue, Place::Behind(5 * PS_PER_MS)];
        assert_eq!(places, expected);
        assert!(way.branches.is_none() && way.links.iter().all(|link| link.branches.is_none()));
    }

    #[test]
    fn flows_keep_what_they_have_beyond_each_other() {
        // Flow x crosses a, q and z; flow y crosses b, c and q.
        let links = [wire("a", 3), queue("q", 5), wire("z", 7), wire("b", 1), wire("c", 10)];
        let way = way(&links, &[("x", &[0, 1, 2]), ("y", &[3, 4, 1])], 0, WINDOW).unwrap();
        assert_eq!(way.direction.delay_before_ps, 3 * PS_PER_MS);
        assert_eq!(way.direction.spec.delay_ps, 5 * PS_PER_MS);
        assert_eq!(way.branches, Some([ms(&[0, 8]), ms(&[7, 0])]));
        let distance = |[before, propagation]: [u64; 2]| Distance {
            before: before * PS_PER_MS,
            propagation: propagation * PS_PER_MS,
        };
        assert_eq!(way.flows, [[3, 15], [11, 16]].map(distance));
        let seen: Vec<(usize, Place, Option<Vec<bool>>)> =
            way.links.into_iter().map(|link| (link.number, link.place, link.branches)).collect();
        let expected = [
            (0, Place::Before(3 * PS_PER_MS), Some(vec![true, false])),
            (1, Place::Queue, None),
            (2, Place::Behind(5 * PS_PER_MS), Some(vec![true, false])),
            (3, Place::Before(11 * PS_PER_MS), Some(vec![false, true])),
            (4, Place::Before(10 * PS_PER_MS), Some(vec![false, true])),
        ];
        assert_eq!(seen, expected);
    }

    #[test]
    fn without_a_queue_any_link_of_all_will_do_or_none() {
        let links = [wire("a", 3), wire("b", 5), wire("c", 7)];
        let shared = way(&links, &[("x", &[0, 1]), ("y", &[2, 1])], 0, WINDOW).unwrap();
        assert_eq!(shared.branches, Some([ms(&[0, 4]), ms(&[0, 0])]));
        assert_eq!(shared.direction.spec.delay_ps, 5 * PS_PER_MS);
        let apart = way(&links, &[("x", &[0, 1]), ("y", &[2])], 0, WINDOW).unwrap();
        assert_eq!(apart.branches, Some([ms(&[0, 0]), ms(&[1, 0])]));
        assert_eq!(apart.direction.spec.delay_ps, 7 * PS_PER_MS);
        let places: Vec<Place> = apart.links.iter().map(|link| link.place).collect();
        assert_eq!(places, [Place::Behind(0), Place::Behind(3 * PS_PER_MS), Place::Behind(0)]);
    }

    #[test]
    fn what_a_link_cannot_stand_for_is_refused_by_name() {
        let links = [queue("a", 0), queue("b", 0), wire("c", 1), wire("d", 2), wire("z", 3)];
        let two = error(&links, &[("x", &[0, 1])]);
        assert!(two.starts_with("links `a` and `b` both"), "{two}");
        for other in [&[2][..], &[1]] {
            let error = error(&links, &[("x", &[0]), ("y", other)]);
            assert!(error.starts_with("flow `y` does not cross link `a`, as `x` does"), "{error}");
        }
        // Link z would see packets of one moment at the queue in two moments.
        let twice = error(&links, &[("x", &[0, 2, 4]), ("y", &[0, 3, 4])]);
        assert!(twice.starts_with("link `z` is recorded, and flows `x` and `y`"), "{twice}");
    }
}
