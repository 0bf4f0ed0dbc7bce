//! Ordered times: a heap of (time, id), and over it a schedule that knows for each id the one time that counts.

use paceline_net::Picos;

/// "Nothing due."
pub(crate) const NEVER: Picos = Picos::MAX;

/// A time and whose it is. Equal times go to the lowest id.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Entry {
    pub(crate) time: Picos,
    pub(crate) id: u32,
}

impl Entry {
    /// In the order of entries.
    #[inline]
    fn key(self) -> u128 {
        u128::from(self.time) << 64 | u128::from(self.id)
    }
}

/// Min-heap with four children a node.
#[derive(Default)]
pub(crate) struct Heap {
    entries: Vec<Entry>,
    /// The root was taken and not yet replaced: the next push fills it without a full pop and push.
    hole: bool,
}

const CHILDREN: usize = 4;

impl Heap {
    #[inline]
    pub(crate) fn push(&mut self, entry: Entry) {
        if self.hole {
            self.hole = false;
            self.sift_down(entry);
        } else {
            self.entries.push(entry);
            self.sift_up(self.entries.len() - 1, entry);
        }
    }

    /// The least entry.
    #[inline]
    pub(crate) fn peek(&mut self) -> Option<Entry> {
        if self.hole {
            self.close_hole();
        }
        self.entries.first().copied()
    }

    /// Takes away what [`Self::peek`] has just shown.
    #[inline]
    pub(crate) fn pop(&mut self) {
        self.hole = !self.entries.is_empty();
    }

    fn close_hole(&mut self) {
        self.hole = false;
        if let Some(last) = self.entries.pop()
            && !self.entries.is_empty()
        {
            self.sift_down(last);
        }
    }

    #[inline]
    fn sift_up(&mut self, mut at: usize, entry: Entry) {
        while at > 0 {
            let parent = (at - 1) / CHILDREN;
            if self.entries[parent].key() <= entry.key() {
                break;
            }
            self.entries[at] = self.entries[parent];
            at = parent;
        }
        self.entries[at] = entry;
    }

    /// Puts `entry` at the root, whose old content is void, and lets it sink.
    #[inline]
    fn sift_down(&mut self, entry: Entry) {
        let entries = &mut self.entries[..];
        let mut at = 0;
        while let Some((least, child)) = least_child(entries, at)
            && child.key() < entry.key()
        {
            entries[at] = child;
            at = least;
        }
        entries[at] = entry;
    }
}

/// The least child of the node at `at`, and where it is.
#[inline(always)]
fn least_child(entries: &[Entry], at: usize) -> Option<(usize, Entry)> {
    let first = at * CHILDREN + 1;
    let children = entries.get(first..)?;
    // Which one is least cannot be foreseen: so no branches.
    let least = if let Some([a, b, c, d]) = children.first_chunk::<CHILDREN>() {
        let left = usize::from(b.key() < a.key());
        let right = 2 + usize::from(d.key() < c.key());
        let is_right = children[right].key() < children[left].key();
        left + usize::from(is_right) * (right - left)
    } else {
        (0..children.len()).min_by_key(|child| children[*child].key())?
    };
    Some((first + least, children[least]))
}

/// For each of a fixed number of ids, when it is next due.
///
/// An earlier time may be set at any moment; the older entry then stays behind in the heap and is skipped when it surfaces.
pub(crate) struct Schedule {
    heap: Heap,
    due: Vec<Picos>,
}

impl Schedule {
    pub(crate) fn new(ids: usize) -> Self {
        Self { heap: Heap::default(), due: vec![NEVER; ids] }
    }

    /// Makes `id` due at `time`, unless it already is at that time or before.
    #[inline]
    pub(crate) fn arm(&mut self, id: u32, time: Picos) {
        if time < self.due[id as usize] {
            self.due[id as usize] = time;
            self.heap.push(Entry { time, id });
        }
    }

    /// When `id` is due.
    #[inline]
    pub(crate) fn due(&self, id: u32) -> Picos {
        self.due[id as usize]
    }

    /// Takes what is due first, if that is not after `end`. Its id is no longer armed.
    #[inline]
    pub(crate) fn next(&mut self, end: Picos) -> Option<Entry> {
        loop {
            let top = self.heap.peek().filter(|top| top.time <= end)?;
            self.heap.pop();
            let due = &mut self.due[top.id as usize];
            if *due == top.time {
                *due = NEVER;
                return Some(top);
            }
        }
    }
}

/// When to be called, for something with a `deadline` that is to be called at `armed` already: `None` if that is early enough.
#[inline]
pub(crate) fn alarm(armed: &mut Picos, deadline: Picos, now: Picos) -> Option<Picos> {
    let time = deadline.max(now + 1);
    let earlier = deadline != NEVER && time < *armed;
    earlier.then(|| {
        *armed = time;
        time
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    #[test]
    fn ties_go_to_the_lowest_id() {
        let mut schedule = Schedule::new(4);
        for id in [3, 1, 2, 0] {
            schedule.arm(id, 7);
        }
        let order: Vec<_> = std::iter::from_fn(|| schedule.next(7)).map(|e| e.id).collect();
        assert_eq!(order, [0, 1, 2, 3]);
    }

    #[test]
    fn an_earlier_time_replaces_a_later_one_and_a_later_one_is_ignored() {
        let mut schedule = Schedule::new(1);
        schedule.arm(0, 10);
        schedule.arm(0, 5);
        schedule.arm(0, 8);
        assert_eq!(schedule.next(100), Some(Entry { time: 5, id: 0 }));
        assert_eq!(schedule.next(100), None);
    }

    proptest! {
        /// Against an ordered set: arm a random id after each event, as the engine does.
        #[test]
        fn agrees_with_an_ordered_set(ops in prop::collection::vec((0u32..20, 0u64..50, any::<bool>()), 1..300)) {
            let mut schedule = Schedule::new(20);
            let mut model: BTreeSet<(Picos, u32)> = BTreeSet::new();
            let mut now = 0;
            for (id, ahead, take) in ops {
                let time = now + ahead;
                let pending = model.iter().find(|(_, a)| *a == id).copied();
                if pending.is_none_or(|(t, _)| time < t) {
                    if let Some(old) = pending {
                        model.remove(&old);
                    }
                    model.insert((time, id));
                }
                schedule.arm(id, time);
                if take {
                    let expected = model.pop_first();
                    prop_assert_eq!(schedule.next(NEVER - 1).map(|e| (e.time, e.id)), expected);
                    now = expected.map_or(now, |(t, _)| t);
                }
            }
        }
    }
}
