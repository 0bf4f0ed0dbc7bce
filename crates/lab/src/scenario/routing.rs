//! Static shortest-delay routing.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};

use paceline_net::Picos;

/// A directed link between two nodes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Edge {
    pub from: u32,
    pub to: u32,
    pub delay_ps: Picos,
}

/// Directed links and the trees of shortest paths asked for so far.
pub(crate) struct Routes {
    edges: Vec<Edge>,
    /// Indices into `edges` by node, ascending.
    leaving: Vec<Vec<u32>>,
    /// Per source, the last link on the way to each node.
    trees: BTreeMap<u32, Vec<Option<u32>>>,
}

impl Routes {
    /// Routes over `edges` between nodes `0..nodes`; edges beyond that are left out.
    pub fn new(nodes: usize, edges: Vec<Edge>) -> Self {
        let mut leaving = vec![Vec::new(); nodes];
        for (index, edge) in edges.iter().enumerate() {
            if (edge.to as usize) < nodes
                && let Some(list) = leaving.get_mut(edge.from as usize)
            {
                list.push(index as u32);
            }
        }
        Self { edges, leaving, trees: BTreeMap::new() }
    }

    /// Links from `from` to `to` in order: least delay, then fewest links, then, from the far end, the lowest link index.
    /// `None` when there is no way.
    pub fn path(&mut self, from: u32, to: u32) -> Option<Vec<u32>> {
        if !self.trees.contains_key(&from) {
            let tree = self.tree(from);
            self.trees.insert(from, tree);
        }
        let tree = self.trees.get(&from)?;
        let mut path = Vec::new();
        let mut at = to;
        while at != from {
            let link = (*tree.get(at as usize)?)?;
            path.push(link);
            at = self.edges[link as usize].from;
        }
        path.reverse();
        Some(path)
    }

    /// Dijkstra's algorithm over (delay, links), which grows strictly along a path, so zero-delay links are no exception.
    fn tree(&self, from: u32) -> Vec<Option<u32>> {
        let count = self.leaving.len();
        let mut best: Vec<Option<(Picos, u32)>> = vec![None; count];
        let mut last: Vec<Option<u32>> = vec![None; count];
        let mut heap = BinaryHeap::from([Reverse(((0, 0), from))]);
        if let Some(start) = best.get_mut(from as usize) {
            *start = Some((0, 0));
        }
        while let Some(Reverse((cost, node))) = heap.pop() {
            if best.get(node as usize).copied().flatten() != Some(cost) {
                continue;
            }
            for &link in &self.leaving[node as usize] {
                let edge = self.edges[link as usize];
                let next = (cost.0.saturating_add(edge.delay_ps), cost.1 + 1);
                let to = edge.to as usize;
                let better = best[to].is_none_or(|known| next < known);
                let tie = best[to] == Some(next) && last[to].is_some_and(|known| link < known);
                if better {
                    best[to] = Some(next);
                    heap.push(Reverse((next, edge.to)));
                }
                if better || tie {
                    last[to] = Some(link);
                }
            }
        }
        last
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn duplex(links: &[(u32, u32, Picos)]) -> Vec<Edge> {
        let both = |(from, to, delay_ps): &(u32, u32, Picos)| {
            let (from, to, delay_ps) = (*from, *to, *delay_ps);
            [Edge { from, to, delay_ps }, Edge { from: to, to: from, delay_ps }]
        };
        links.iter().flat_map(both).collect()
    }

    #[test]
    fn line_goes_straight_through() {
        let mut routes = Routes::new(4, duplex(&[(0, 1, 5), (1, 2, 5), (2, 3, 5)]));
        assert_eq!(routes.path(0, 3), Some(vec![0, 2, 4]));
        assert_eq!(routes.path(3, 0), Some(vec![5, 3, 1]));
        assert_eq!(routes.path(1, 1), Some(vec![]));
    }

    #[test]
    fn tie_goes_to_the_links_given_first() {
        // A diamond: 0 to 3 over 1 or over 2, equal delay, equal hops.
        let mut routes = Routes::new(4, duplex(&[(0, 2, 5), (0, 1, 5), (1, 3, 5), (2, 3, 5)]));
        // Links 4 (1 to 3) and 6 (2 to 3) tie; 4 was given first.
        assert_eq!(routes.path(0, 3), Some(vec![2, 4]));
    }

    #[test]
    fn less_delay_beats_fewer_links_and_fewer_links_break_the_tie() {
        let mut routes = Routes::new(3, duplex(&[(0, 2, 11), (0, 1, 5), (1, 2, 5)]));
        assert_eq!(routes.path(0, 2), Some(vec![2, 4]));
        let mut routes = Routes::new(3, duplex(&[(0, 1, 5), (1, 2, 5), (0, 2, 10)]));
        assert_eq!(routes.path(0, 2), Some(vec![4]));
    }

    #[test]
    fn zero_delay_cycles_end() {
        let mut routes = Routes::new(4, duplex(&[(0, 1, 0), (1, 2, 0), (2, 0, 0), (2, 3, 0)]));
        assert_eq!(routes.path(0, 3), Some(vec![5, 6]));
    }

    #[test]
    fn no_way_is_none() {
        let mut routes = Routes::new(4, duplex(&[(0, 1, 5), (2, 3, 5)]));
        assert_eq!(routes.path(0, 3), None);
        assert_eq!(routes.path(9, 0), None);
        assert_eq!(routes.path(0, 9), None);
    }

    #[test]
    fn grid_of_172_routers_has_manhattan_paths() {
        // 4 rows of 43, all links 1 ps.
        let (rows, columns) = (4, 43);
        let mut links = Vec::new();
        for row in 0..rows {
            for column in 0..columns {
                let node = row * columns + column;
                if column + 1 < columns {
                    links.push((node, node + 1, 1));
                }
                if row + 1 < rows {
                    links.push((node, node + columns, 1));
                }
            }
        }
        let nodes = rows * columns;
        let mut routes = Routes::new(nodes as usize, duplex(&links));
        for from in 0..nodes {
            for to in 0..nodes {
                let rows_apart = (from / columns).abs_diff(to / columns);
                let columns_apart = (from % columns).abs_diff(to % columns);
                let path = routes.path(from, to).expect("the grid is connected");
                assert_eq!(path.len() as u32, rows_apart + columns_apart);
            }
        }
    }
}
