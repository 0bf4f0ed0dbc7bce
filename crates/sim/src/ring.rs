//! A window of consecutive sequence numbers with a record for each: constant-time lookup by number, whatever the window.

/// Records for the numbers `[first, next)`.
#[derive(Debug)]
pub(crate) struct SeqRing<T> {
    slots: Vec<T>,
    first: u64,
    next: u64,
}

impl<T: Copy + Default> SeqRing<T> {
    pub(crate) fn new() -> Self {
        Self { slots: Vec::new(), first: 0, next: 0 }
    }

    /// Oldest number held.
    #[inline]
    pub(crate) fn first(&self) -> u64 {
        self.first
    }

    /// One past the newest number held.
    #[inline]
    pub(crate) fn next(&self) -> u64 {
        self.next
    }

    #[inline]
    fn slot(&self, seq: u64) -> usize {
        seq as usize & (self.slots.len() - 1)
    }

    /// The record of `seq`, if it is held.
    #[inline]
    pub(crate) fn get(&self, seq: u64) -> Option<&T> {
        (self.first..self.next).contains(&seq).then(|| &self.slots[self.slot(seq)])
    }

    /// The record of `seq`, if it is held.
    #[inline]
    pub(crate) fn get_mut(&mut self, seq: u64) -> Option<&mut T> {
        let slot = (self.first..self.next).contains(&seq).then(|| self.slot(seq))?;
        Some(&mut self.slots[slot])
    }

    /// Appends the record of number `next`.
    #[inline(always)]
    pub(crate) fn push(&mut self, record: T) {
        if (self.next - self.first) as usize == self.slots.len() {
            self.grow();
        }
        let slot = self.slot(self.next);
        self.slots[slot] = record;
        self.next += 1;
    }

    /// Takes the record of number `first`.
    #[inline]
    pub(crate) fn pop(&mut self) -> Option<T> {
        let record = *self.get(self.first)?;
        self.first += 1;
        Some(record)
    }

    /// Takes the record of number `first` if that is below `end`; it stays readable until the next push.
    #[inline]
    pub(crate) fn pop_before(&mut self, end: u64) -> Option<(u64, &T)> {
        let seq = self.first;
        if seq >= end.min(self.next) {
            return None;
        }
        self.first += 1;
        let slot = self.slot(seq);
        Some((seq, &self.slots[slot]))
    }

    #[cold]
    fn grow(&mut self) {
        let mut slots = vec![T::default(); (self.slots.len() * 2).max(16)];
        let mask = slots.len() - 1;
        for seq in self.first..self.next {
            slots[seq as usize & mask] = self.slots[self.slot(seq)];
        }
        self.slots = slots;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn holds_a_sliding_window_while_growing() {
        let mut ring = SeqRing::new();
        for seq in 0..1000u64 {
            ring.push(seq * 10);
            if seq % 3 == 0 {
                assert_eq!(ring.pop(), Some(seq / 3 * 10));
            }
        }
        assert_eq!((ring.first(), ring.next()), (334, 1000));
        assert!((334..1000).all(|seq| ring.get(seq) == Some(&(seq * 10))));
        assert_eq!((ring.get(333), ring.get(1000)), (None, None));
    }
}
