//! The event set: which actor acts next.
//!
//! An *actor* is whatever can have something due: a link (its head packet arrives), a sender, a receiver, the recorder.
//! Each has at most one pending event that counts, so the set holds as many entries as there are busy links and flows, not
//! as there are packets. Ties are broken by actor number, which makes the order a property of the scenario and not of
//! insertion history.

use paceline_net::Picos;

/// "Nothing due."
pub(crate) const NEVER: Picos = Picos::MAX;

/// An actor's place in the run: links first, then senders, receivers, the recorder.
pub(crate) type Actor = u32;

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Entry {
    time: Picos,
    actor: Actor,
}

/// Min-heap of (time, actor) with four children a node, and for each actor the one time that counts.
///
/// An earlier time may be set for an actor at any moment; its older entry then stays behind and is skipped when it surfaces.
pub(crate) struct Events {
    heap: Vec<Entry>,
    due: Vec<Picos>,
    /// The root was taken and not yet replaced: the next `arm` fills it without a full pop and push.
    hole: bool,
}

const CHILDREN: usize = 4;

impl Events {
    pub(crate) fn new(actors: usize) -> Self {
        Self { heap: Vec::with_capacity(actors + 1), due: vec![NEVER; actors], hole: false }
    }

    /// Makes `actor` act at `time`, unless it already acts at that time or before.
    #[inline]
    pub(crate) fn arm(&mut self, actor: Actor, time: Picos) {
        if time < self.due[actor as usize] {
            self.due[actor as usize] = time;
            self.push(Entry { time, actor });
        }
    }

    /// Takes the next event not after `end`. The actor is no longer armed.
    #[inline]
    pub(crate) fn next(&mut self, end: Picos) -> Option<(Picos, Actor)> {
        loop {
            if self.hole {
                self.close_hole();
            }
            let top = *self.heap.first()?;
            if top.time > end {
                return None;
            }
            self.hole = true;
            let due = &mut self.due[top.actor as usize];
            if *due == top.time {
                *due = NEVER;
                return Some((top.time, top.actor));
            }
        }
    }

    fn push(&mut self, entry: Entry) {
        if self.hole {
            self.hole = false;
            self.sift_down(entry);
        } else {
            self.heap.push(entry);
            self.sift_up(self.heap.len() - 1, entry);
        }
    }

    fn close_hole(&mut self) {
        self.hole = false;
        if let Some(last) = self.heap.pop()
            && !self.heap.is_empty()
        {
            self.sift_down(last);
        }
    }

    #[inline]
    fn sift_up(&mut self, mut at: usize, entry: Entry) {
        while at > 0 {
            let parent = (at - 1) / CHILDREN;
            if self.heap[parent] <= entry {
                break;
            }
            self.heap[at] = self.heap[parent];
            at = parent;
        }
        self.heap[at] = entry;
    }

    /// Puts `entry` at the root, whose old content is void, and lets it sink.
    #[inline]
    fn sift_down(&mut self, entry: Entry) {
        let len = self.heap.len();
        let mut at = 0;
        loop {
            let first = at * CHILDREN + 1;
            if first >= len {
                break;
            }
            let mut least = first;
            for child in first + 1..(first + CHILDREN).min(len) {
                if self.heap[child] < self.heap[least] {
                    least = child;
                }
            }
            if entry <= self.heap[least] {
                break;
            }
            self.heap[at] = self.heap[least];
            at = least;
        }
        self.heap[at] = entry;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    #[test]
    fn ties_go_to_the_lowest_actor() {
        let mut events = Events::new(4);
        for actor in [3, 1, 2, 0] {
            events.arm(actor, 7);
        }
        let order: Vec<_> = std::iter::from_fn(|| events.next(7)).map(|(_, a)| a).collect();
        assert_eq!(order, [0, 1, 2, 3]);
    }

    #[test]
    fn an_earlier_time_replaces_a_later_one_and_a_later_one_is_ignored() {
        let mut events = Events::new(1);
        events.arm(0, 10);
        events.arm(0, 5);
        events.arm(0, 8);
        assert_eq!(events.next(100), Some((5, 0)));
        assert_eq!(events.next(100), None);
    }

    proptest! {
        /// Against an ordered set: arm a random actor after each event, as the engine does.
        #[test]
        fn agrees_with_an_ordered_set(ops in prop::collection::vec((0u32..20, 0u64..50, any::<bool>()), 1..300)) {
            let mut events = Events::new(20);
            let mut model: BTreeSet<(Picos, Actor)> = BTreeSet::new();
            let mut now = 0;
            for (actor, ahead, take) in ops {
                let time = now + ahead;
                let pending = model.iter().find(|(_, a)| *a == actor).copied();
                if pending.is_none_or(|(t, _)| time < t) {
                    if let Some(old) = pending {
                        model.remove(&old);
                    }
                    model.insert((time, actor));
                }
                events.arm(actor, time);
                if take {
                    let expected = model.pop_first();
                    prop_assert_eq!(events.next(NEVER - 1), expected);
                    now = expected.map_or(now, |(t, _)| t);
                }
            }
        }
    }
}
