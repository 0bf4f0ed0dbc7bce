//! Routes of topologies small enough to work out by hand.

use paceline_net::{Buffer, Capacity, Jitter, LinkSpec, LossModel, PS_PER_MS, Reorder};

use super::*;

/// A pure delay.
fn delay(ms: u64) -> LinkSpec {
    LinkSpec { delay_ps: ms * PS_PER_MS, ..LinkSpec::default() }
}

/// A rate, a delay, and nothing to drop.
fn rate(ms: u64) -> LinkSpec {
    LinkSpec { capacity: Capacity::Constant(1e9), ..delay(ms) }
}

/// A rate with a buffer: never passed through.
fn bottleneck(ms: u64) -> LinkSpec {
    LinkSpec { buffer: Buffer { packets: Some(10), ..Buffer::default() }, ..rate(ms) }
}

fn routes<const N: usize>(links: &[LinkSpec], flows: [[&[u32]; 2]; N]) -> Routes {
    let unrecorded: Vec<_> = links.iter().map(|spec| (spec, false)).collect();
    Routes::new(&unrecorded, &flows)
}

/// The lanes as (link of the junction they leave, links passed through, link of the junction they lead to).
fn lanes(routes: &Routes) -> Vec<(u32, &[u32], u32)> {
    let link = |junction: u32| routes.junctions[junction as usize];
    routes.lanes.iter().map(|lane| (link(lane.from), &*lane.through, link(lane.to))).collect()
}

/// The hops and lanes of the path that begins at step `first`.
fn steps(routes: &Routes, first: u32) -> Vec<(u8, u32)> {
    let mut steps = Vec::new();
    for step in &routes.steps[first as usize..] {
        steps.push((step.hop, step.lane));
        if step.hop == Packet::AT_END {
            break;
        }
    }
    steps
}

#[test]
fn ends_sit_at_the_first_links_of_their_paths() {
    let routes = routes(&[delay(3), delay(7)], [[&[0], &[1]]]);
    assert_eq!(routes.junctions, [0, 1]);
    assert_eq!(lanes(&routes), [(1, &[][..], 0), (0, &[], 1)]);
    assert_eq!(routes.lanes.iter().map(|l| l.least_ps / PS_PER_MS).collect::<Vec<_>>(), [7, 3]);
    let [[forward, reverse]] = routes.first_step[..] else { panic!("one flow") };
    assert_eq!(steps(&routes, forward), [(Packet::AT_END, 1)]);
    assert_eq!(steps(&routes, reverse), [(Packet::AT_END, 0)]);
}

#[test]
fn delays_and_rates_of_ones_own_are_passed_through() {
    let links = [delay(1), rate(2), delay(0), bottleneck(8), rate(16), delay(32)];
    let routes = routes(&links, [[&[0, 1, 2, 3, 4], &[5]]]);
    assert_eq!(routes.junctions, [0, 3, 5]);
    assert_eq!(lanes(&routes), [(5, &[][..], 0), (0, &[1, 2], 3), (3, &[4], 5)]);
    // A link without delay still takes 1 ps.
    let least: Vec<u64> = routes.lanes.iter().map(|lane| lane.least_ps).collect();
    assert_eq!(least, [32 * PS_PER_MS, 3 * PS_PER_MS + 1, 24 * PS_PER_MS]);
    assert!(routes.lanes.iter().all(|lane| lane.in_order));
    let [[forward, reverse]] = routes.first_step[..] else { panic!("one flow") };
    assert_eq!(steps(&routes, forward), [(1, 1), (Packet::AT_END, 2)]);
    assert_eq!(steps(&routes, reverse), [(Packet::AT_END, 0)]);
}

#[test]
fn a_link_that_can_drop_hold_back_or_be_asked_is_a_junction() {
    let jitter = |reorder| Some(Jitter { mean_ps: 5, max_ps: 10, reorder });
    let reorder = Some(Reorder { probability: 0.1, extra_ps: 5 });
    for special in [
        bottleneck(1),
        LinkSpec { loss: Some(LossModel::Bernoulli(0.1)), ..delay(1) },
        LinkSpec { jitter: jitter(true), ..delay(1) },
        LinkSpec { jitter: jitter(false), ..delay(1) },
        LinkSpec { reorder, ..delay(1) },
    ] {
        let routes = routes(&[delay(1), special, delay(1)], [[&[0, 1], &[2]]]);
        assert_eq!(routes.junctions, [0, 1, 2]);
    }
    let links = [delay(1), delay(1), delay(1)];
    for (recorded, junctions) in [(false, &[0, 2][..]), (true, &[0, 1, 2])] {
        let links = [(&links[0], false), (&links[1], recorded), (&links[2], false)];
        assert_eq!(Routes::new(&links, &[[&[0, 1], &[2]]]).junctions, junctions);
    }
}

#[test]
fn a_rate_that_two_lanes_share_is_a_junction_and_a_shared_delay_is_not() {
    let flows: [[&[u32]; 2]; 2] = [[&[0, 2], &[3]], [&[1, 2], &[3]]];
    let shared_rate = routes(&[delay(1), delay(1), rate(1), delay(1)], flows);
    assert_eq!(shared_rate.junctions, [0, 1, 2, 3]);
    let back = [(3, &[][..], 0), (3, &[], 1)];
    assert_eq!(lanes(&shared_rate), [&back[..], &[(0, &[], 2), (1, &[], 2), (2, &[], 3)]].concat());
    let shared_delay = routes(&[delay(1), delay(1), delay(1), delay(1)], flows);
    assert_eq!(shared_delay.junctions, [0, 1, 3]);
    assert_eq!(lanes(&shared_delay), [&back[..], &[(0, &[2], 3), (1, &[2], 3)]].concat());
}

/// The second would not have to be: all of its packets come from the first.
#[test]
fn rates_in_a_row_that_lanes_share_are_all_junctions() {
    let links = [delay(1), delay(1), delay(1), rate(1), rate(1), delay(1)];
    let routes = routes(&links, [[&[0, 3, 4], &[5]], [&[1, 3, 4], &[5]]]);
    assert_eq!(routes.junctions, [0, 1, 3, 4, 5]);
}

#[test]
fn flows_over_one_lane_share_its_rate_if_they_end_at_one_place() {
    let links = [delay(1), rate(1), delay(1), delay(1)];
    let together = routes(&links, [[&[0, 1], &[2]], [&[0, 1], &[2]]]);
    assert_eq!(together.junctions, [0, 2]);
    assert_eq!(together.first_step[0], together.first_step[1], "equal paths are kept once");
    let apart = routes(&links, [[&[0, 1], &[2]], [&[0, 1], &[3]]]);
    assert_eq!(apart.junctions, [0, 1, 2, 3], "link 1 leads to two places");
}

#[test]
fn a_rate_behind_overtaking_is_a_junction_and_a_delay_is_not() {
    let overtaking =
        LinkSpec { reorder: Some(Reorder { probability: 0.1, extra_ps: 5 }), ..rate(1) };
    let held =
        LinkSpec { jitter: Some(Jitter { mean_ps: 5, max_ps: 10, reorder: false }), ..rate(1) };
    for (first, second, junctions) in [
        (&overtaking, rate(1), &[0, 1, 2][..]),
        (&overtaking, delay(1), &[0, 2]),
        (&held, rate(1), &[0, 2]),
    ] {
        let routes = routes(&[first.clone(), second, delay(1)], [[&[0, 1], &[2]]]);
        assert_eq!(routes.junctions, junctions);
        assert_eq!(routes.lanes.iter().all(|lane| lane.in_order), first.keeps_order());
    }
}

#[test]
fn a_rate_that_a_lane_crosses_twice_is_a_junction_and_a_delay_is_not() {
    let flow: [[&[u32]; 2]; 1] = [[&[0, 1, 2, 1], &[3]]];
    let with_rate = routes(&[delay(1), rate(1), delay(1), delay(1)], flow);
    assert_eq!(with_rate.junctions, [0, 1, 3]);
    assert_eq!(lanes(&with_rate), [(3, &[][..], 0), (0, &[], 1), (1, &[2], 1), (1, &[], 3)]);
    let [[forward, _]] = with_rate.first_step[..] else { panic!("one flow") };
    assert_eq!(steps(&with_rate, forward), [(1, 1), (2, 2), (Packet::AT_END, 3)]);
    let with_delay = routes(&[delay(1), delay(1), delay(1), delay(1)], flow);
    assert_eq!(with_delay.junctions, [0, 3]);
    assert_eq!(lanes(&with_delay), [(3, &[][..], 0), (0, &[1, 2, 1], 3)]);
}

/// As if each link were a step of its own: who arrives over the lower link is first, and on one link who entered it first.
#[test]
fn lanes_are_ordered_by_their_links_from_the_last_to_the_first() {
    let mut links = vec![bottleneck(1), delay(1)];
    links.extend((2..10).map(|_| delay(1)));
    let ways: [&[u32]; 5] = [&[2, 9, 0], &[3, 8, 0], &[7, 0], &[5, 6, 8, 0], &[4, 9, 0]];
    let unrecorded: Vec<_> = links.iter().map(|spec| (spec, false)).collect();
    let flows: Vec<[&[u32]; 2]> = ways.iter().map(|way| [*way, &[1][..]]).collect();
    let routes = Routes::new(&unrecorded, &flows);
    let to_the_bottleneck: Vec<_> =
        lanes(&routes).into_iter().filter(|(.., to)| *to == 0).map(|(f, t, _)| (f, t)).collect();
    assert_eq!(to_the_bottleneck, [(7, &[][..]), (3, &[8]), (5, &[6, 8]), (2, &[9]), (4, &[9])]);
    let ends: Vec<u32> = routes.lanes.iter().map(|lane| lane.to).collect();
    assert!(ends.is_sorted(), "the lanes of a junction are consecutive");
}

#[test]
fn an_unused_link_costs_a_junction_only_if_it_is_more_than_plain() {
    let links = [delay(1), delay(1), delay(9), rate(9), bottleneck(9)];
    let routes = routes(&links, [[&[0], &[1]]]);
    assert_eq!(routes.junctions, [0, 1, 4]);
    assert_eq!(lanes(&routes), [(1, &[][..], 0), (0, &[], 1)]);
}

#[test]
fn flows_in_both_directions_meet_at_both_junctions() {
    let routes = routes(&[delay(1), delay(1)], [[&[0], &[1]], [&[1], &[0]]]);
    assert_eq!(lanes(&routes), [(1, &[][..], 0), (0, &[], 1)]);
    let [[a, b], [c, d]] = routes.first_step[..] else { panic!("two flows") };
    assert_eq!((a, b), (d, c), "the data of one takes the way of the ACKs of the other");
}

#[test]
fn the_longest_path_has_255_steps() {
    let links: Vec<LinkSpec> = (0..256).map(|_| bottleneck(1)).collect();
    let path: Vec<u32> = (0..255).collect();
    let routes = routes(&links, [[&path, &[255]]]);
    let [[forward, _]] = routes.first_step[..] else { panic!("one flow") };
    let hops: Vec<u8> = steps(&routes, forward).iter().map(|(hop, _)| *hop).collect();
    assert_eq!(hops, (1..=255).collect::<Vec<u8>>());
}
