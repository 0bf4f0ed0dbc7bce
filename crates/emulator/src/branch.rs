//! What lies between a link and its hosts, or its flows: a branch for each, which is a delay of its own.

use std::collections::VecDeque;

use paceline_net::Picos;

use crate::passage::Arrived;

/// Which branch an IP packet takes. Numbers beyond those that have a delay are of branches that have none.
pub type BranchOf = Box<dyn Fn(&[u8]) -> u32 + Send>;

/// The branches of one direction.
pub struct Branches {
    /// Of each branch: delay before the link, ps.
    pub before: Vec<Picos>,
    /// Of each branch: delay behind it, ps.
    pub behind: Vec<Picos>,
    /// Asked once for each frame, when it comes.
    pub branch_of: BranchOf,
}

/// What is on its way over the branches at one end of the link.
pub struct Access<T> {
    /// The lane of each branch; none where nothing is delayed.
    lane_of: Vec<usize>,
    /// From the longest delay to the shortest, which is that of all other branches: none.
    lanes: Vec<Lane<T>>,
}

/// Branches of one delay: what enters them in order leaves them in order.
struct Lane<T> {
    delay: Picos,
    under_way: VecDeque<Arrived<T>>,
}

impl<T> Access<T> {
    /// `delays` of the branches.
    pub fn new(delays: &[Picos]) -> Self {
        if delays.iter().all(|delay| *delay == 0) {
            return Self { lane_of: Vec::new(), lanes: Vec::new() };
        }
        let mut lengths = [delays, &[0]].concat();
        lengths.sort_unstable_by(|a, b| b.cmp(a));
        lengths.dedup();
        let lane_of = |delay| lengths.partition_point(|length| length > delay);
        Self {
            lane_of: delays.iter().map(lane_of).collect(),
            lanes: lengths
                .iter()
                .map(|delay| Lane { delay: *delay, under_way: VecDeque::new() })
                .collect(),
        }
    }

    /// Nothing is delayed.
    pub fn is_direct(&self) -> bool {
        self.lanes.is_empty()
    }

    /// `packet`, whose time is that at which it enters, takes `branch`. Times must not decrease from call to call.
    pub fn push(&mut self, branch: u32, mut packet: Arrived<T>) {
        let shortest = self.lanes.len() - 1;
        let lane = self.lane_of.get(branch as usize).copied().unwrap_or(shortest);
        let lane = &mut self.lanes[lane];
        packet.time += lane.delay;
        lane.under_way.push_back(packet);
    }

    /// What has arrived by `now`. Of packets that arrive at one moment, the one that entered first comes first.
    pub fn pop(&mut self, now: Picos) -> Option<Arrived<T>> {
        // The first of the least: of one moment, the one with the longest delay, which entered before the others.
        let of_lane = |lane: &&mut Lane<T>| lane.under_way.front().map(|packet| packet.time);
        let lanes = self.lanes.iter_mut().filter(|lane| of_lane(lane).is_some_and(|at| at <= now));
        lanes.min_by_key(of_lane)?.under_way.pop_front()
    }

    /// When the next arrives.
    pub fn due(&self) -> Option<Picos> {
        self.lanes.iter().filter_map(|lane| lane.under_way.front()).map(|packet| packet.time).min()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Item and time of what has arrived by `now`.
    fn arrived(access: &mut Access<usize>, now: Picos) -> Vec<(usize, Picos)> {
        std::iter::from_fn(|| access.pop(now)).map(|packet| (packet.item, packet.time)).collect()
    }

    fn packet(item: usize, time: Picos) -> Arrived<usize> {
        Arrived { item, time, marked: false }
    }

    #[test]
    fn each_branch_by_hand() {
        assert!(Access::<()>::new(&[0, 0]).is_direct() && Access::<()>::new(&[]).is_direct());
        let mut access = Access::new(&[30, 10, 30]);
        // Number 3 is of no branch.
        for (item, (branch, time)) in
            [(0, 0), (1, 5), (3, 6), (2, 7), (1, 20)].into_iter().enumerate()
        {
            access.push(branch, packet(item, time));
        }
        assert_eq!(access.due(), Some(6));
        assert_eq!(arrived(&mut access, 5), []);
        assert_eq!(arrived(&mut access, 29), [(2, 6), (1, 15)]);
        // The first and the last arrive at one moment, and the first was sent first.
        assert_eq!(arrived(&mut access, 30), [(0, 30), (4, 30)]);
        assert_eq!(arrived(&mut access, 100), [(3, 37)]);
        assert_eq!(access.due(), None);
    }

    proptest! {
        /// As a list sorted by time, and of one moment by who entered first.
        #[test]
        fn as_a_sorted_list(
            delays in prop::collection::vec(0u64..6, 1..5),
            packets in prop::collection::vec((0u32..6, 0u64..3), 0..60),
            tick in 1u64..5,
        ) {
            prop_assume!(delays.iter().any(|delay| *delay > 0));
            let mut access = Access::new(&delays);
            let (mut now, mut seen, mut expected) = (0, Vec::new(), Vec::new());
            for (item, (branch, gap)) in packets.into_iter().enumerate() {
                now += gap;
                // What came before is looked at now and then; what is due and was not looked at comes later, in the same order.
                if now % tick == 0 {
                    seen.extend(arrived(&mut access, now));
                }
                access.push(branch, packet(item, now));
                let delay = delays.get(branch as usize).copied().unwrap_or(0);
                expected.push((item, now + delay));
            }
            seen.extend(arrived(&mut access, now + 10));
            expected.sort_by_key(|(item, time)| (*time, *item));
            prop_assert_eq!(seen, expected);
        }
    }
}
