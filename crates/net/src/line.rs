//! A queue with no more than a little room to spare. Doubled, as other rings are, the room in front of a bottleneck of thousands
//! of flows would be a tenth of all that a flow takes.
//!
//! In: records. Out: the oldest. What is on its way and what waits in front of a transmitter are such queues.

/// A queue of records.
#[derive(Clone, Debug, Default)]
pub struct Line<T> {
    slots: Vec<T>,
    /// Slot of the first.
    head: usize,
    length: usize,
}

impl<T: Copy + Default> Line<T> {
    /// How many records it holds.
    #[inline(always)]
    pub fn len(&self) -> usize {
        self.length
    }

    /// Whether it holds none.
    #[inline(always)]
    pub fn is_empty(&self) -> bool {
        self.length == 0
    }

    /// Appends a record.
    #[inline(always)]
    pub fn push(&mut self, record: T) {
        if self.length == self.slots.len() {
            self.grow();
        }
        let slot = self.slot(self.length);
        self.slots[slot] = record;
        self.length += 1;
    }

    /// The slot of the one `places` behind the first; `places` is below the number of slots.
    #[inline(always)]
    fn slot(&self, places: usize) -> usize {
        let slot = self.head + places;
        if slot >= self.slots.len() { slot - self.slots.len() } else { slot }
    }

    /// The first.
    #[inline(always)]
    pub fn front(&self) -> Option<&T> {
        if self.length > 0 { self.slots.get(self.head) } else { None }
    }

    /// Takes the first if it is `wanted`.
    #[inline(always)]
    pub fn pop_if(&mut self, wanted: impl FnOnce(&T) -> bool) -> Option<T> {
        if !wanted(self.front()?) {
            return None;
        }
        let first = self.slots[self.head];
        self.head += 1;
        if self.head == self.slots.len() {
            self.head = 0;
        }
        self.length -= 1;
        Some(first)
    }

    /// Takes the first.
    #[inline(always)]
    pub fn pop(&mut self) -> Option<T> {
        self.pop_if(|_| true)
    }

    /// The one `places` behind the first.
    #[inline]
    pub fn get(&self, places: usize) -> Option<&T> {
        if places < self.length { self.slots.get(self.slot(places)) } else { None }
    }

    /// All, the oldest first.
    pub fn iter(&self) -> impl Iterator<Item = &T> {
        self.stretches().into_iter().flatten()
    }

    /// All in two pieces, each in one place, the oldest first.
    #[inline]
    pub fn stretches(&self) -> [&[T]; 2] {
        let straight = self.length.min(self.slots.len() - self.head);
        [&self.slots[self.head..self.head + straight], &self.slots[..self.length - straight]]
    }

    /// In place, so that where the allocator can, it makes more room without a copy.
    #[cold]
    #[inline(never)]
    fn grow(&mut self) {
        let (size, more) = (self.slots.len(), (self.length / GROWTH).max(LEAST_GROWTH));
        self.slots.reserve_exact(more);
        self.slots.resize(size + more, T::default());
        if self.head <= more {
            self.slots.copy_within(..self.head, size);
        } else {
            self.slots.copy_within(self.head..size, self.head + more);
            self.head += more;
        }
    }
}

/// A full line grows by one part in so many, and by so many slots at least.
const GROWTH: usize = 8;
const LEAST_GROWTH: usize = 8;

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// Against a list, with pushes and pops in turns of random length.
        #[test]
        fn a_line_is_a_queue(turns in prop::collection::vec((0_usize..200, 0_usize..200), 1..20)) {
            let (mut line, mut entered, mut left) = (Line::default(), 0, 0);
            for (pushes, pops) in turns {
                for _ in 0..pushes {
                    line.push(entered);
                    entered += 1;
                }
                prop_assert!(line.iter().copied().eq(left..entered));
                for places in [0, line.length / 2, line.length] {
                    let time = Some(left + places as u64).filter(|time| *time < entered);
                    prop_assert_eq!(line.get(places).copied(), time);
                }
                let until = entered.min(left + pops as u64);
                while left < until {
                    prop_assert_eq!(line.pop_if(|record| *record < until), Some(left));
                    left += 1;
                }
                prop_assert_eq!(line.pop_if(|record| *record < until), None);
                prop_assert_eq!(line.front().copied(), Some(left).filter(|t| *t < entered));
            }
        }
    }
}
