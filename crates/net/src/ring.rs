//! A window of consecutive sequence numbers with a record for each: constant-time lookup by number, whatever the window.
//!
//! In: records, each with the next number. Out: the oldest, or any by its number. What a sender has not had acknowledged is such a
//! window.

/// Records for the numbers `[first, next)`; by default none, and the first number is 0.
#[derive(Clone, Debug, Default)]
pub struct SeqRing<T> {
    slots: Box<[T]>,
    first: u64,
    next: u64,
}

impl<T: Copy + Default> SeqRing<T> {
    #[inline]
    fn len(&self) -> usize {
        (self.next - self.first) as usize
    }

    /// Oldest number held.
    #[inline]
    pub fn first(&self) -> u64 {
        self.first
    }

    /// One past the newest number held.
    #[inline]
    pub fn next(&self) -> u64 {
        self.next
    }

    #[inline]
    fn slot(&self, seq: u64) -> usize {
        seq as usize & self.slots.len().wrapping_sub(1)
    }

    /// The record of `seq`, if it is held.
    #[inline]
    pub fn get(&self, seq: u64) -> Option<&T> {
        (self.first..self.next).contains(&seq).then(|| &self.slots[self.slot(seq)])
    }

    /// Where the record of `seq` is or would be, whether or not it is held.
    #[inline]
    pub fn slot_of(&self, seq: u64) -> Option<&T> {
        self.slots.get(self.slot(seq))
    }

    /// The record of `seq`, if it is held.
    #[inline]
    pub fn get_mut(&mut self, seq: u64) -> Option<&mut T> {
        let slot = (self.first..self.next).contains(&seq).then(|| self.slot(seq))?;
        Some(&mut self.slots[slot])
    }

    /// Appends the record of number `next`.
    #[inline(always)]
    pub fn push(&mut self, record: T) {
        if self.len() == self.slots.len() {
            self.resize((2 * self.slots.len()).max(MIN_SLOTS));
        }
        let slot = self.slot(self.next);
        self.slots[slot] = record;
        self.next += 1;
    }

    /// Takes the record of number `first` if that is below `end`; the reference shows it until the ring is touched again.
    #[inline]
    pub fn pop_before(&mut self, end: u64) -> Option<(u64, &T)> {
        let seq = self.first;
        if seq >= end.min(self.next) {
            return None;
        }
        self.first += 1;
        let slot = self.slot(seq);
        Some((seq, &self.slots[slot]))
    }

    /// Gives back most of the room that a window which was wide for a while has left.
    pub fn shrink(&mut self) {
        let wanted = (self.len() + self.len() / 2).next_power_of_two().max(MIN_SLOTS);
        if wanted < self.slots.len() {
            self.resize(wanted);
        }
    }

    /// Moves to `size` slots, a power of two that is not less than what is held.
    #[cold]
    fn resize(&mut self, size: usize) {
        // The records that wrap around come to lie before that of `first`.
        let (held, from) = (self.len(), self.first as usize & (size - 1));
        let straight = held.min(size - from);
        let mut slots = Vec::with_capacity(size);
        self.copy(straight, held, &mut slots);
        slots.resize(from, T::default());
        self.copy(0, straight, &mut slots);
        slots.resize(size, T::default());
        self.slots = slots.into();
    }

    /// Appends the records from place `from` up to place `to` behind the oldest.
    fn copy(&self, from: usize, to: usize, out: &mut Vec<T>) {
        let mut at = from;
        while at < to {
            let slot = self.slot(self.first + at as u64);
            let length = (to - at).min(self.slots.len() - slot);
            out.extend_from_slice(&self.slots[slot..slot + length]);
            at += length;
        }
    }
}

/// A ring has at least this many slots once it has any.
const MIN_SLOTS: usize = 4;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn holds_a_sliding_window_while_growing() {
        let mut ring = SeqRing::default();
        for seq in 0..1000u64 {
            ring.push(seq * 10);
            if seq % 3 == 0 {
                assert_eq!(ring.pop_before(1000), Some((seq / 3, &(seq / 3 * 10))));
            }
        }
        assert_eq!((ring.first(), ring.next()), (334, 1000));
        assert!((334..1000).all(|seq| ring.get(seq) == Some(&(seq * 10))));
        assert_eq!((ring.get(333), ring.get(1000)), (None, None));
    }

    #[test]
    fn memory_is_given_back_on_request() {
        let mut ring = SeqRing::default();
        (0..1000u64).for_each(|seq| ring.push(seq));
        while ring.pop_before(990).is_some() {}
        assert_eq!(ring.slots.len(), 1024);
        ring.shrink();
        assert_eq!((ring.slots.len(), ring.first(), ring.next()), (16, 990, 1000));
        assert!((990..1000).all(|seq| ring.get(seq) == Some(&seq)));
    }
}
