//! Deficit round robin with priority for queues that are new (RFC 8290 §4.2, "DRR++"): whose turn it is, by index.

use std::collections::VecDeque;

/// The queues that have something to send, each in one of two lists.
#[derive(Clone, Debug, Default)]
pub(super) struct Rounds {
    new: VecDeque<usize>,
    old: VecDeque<usize>,
}

impl Rounds {
    /// A queue that was in neither list gets something to send.
    pub(super) fn join(&mut self, queue: usize) {
        self.new.push_back(queue);
    }

    /// A queue that was in neither list comes back, without priority.
    pub(super) fn rejoin(&mut self, queue: usize) {
        self.old.push_back(queue);
    }

    /// Whose turn it is: the oldest of the new queues, else of the others.
    pub(super) fn turn(&self) -> Option<usize> {
        self.new.front().or_else(|| self.old.front()).copied()
    }

    /// All queues that have something to send, and some that have run empty.
    pub(super) fn iter(&self) -> impl Iterator<Item = usize> + '_ {
        self.new.iter().chain(&self.old).copied()
    }

    /// The queue whose turn it is has used up its deficit: the next one, please.
    pub(super) fn yield_turn(&mut self) {
        if let Some(queue) = self.new.pop_front().or_else(|| self.old.pop_front()) {
            self.old.push_back(queue);
        }
    }

    /// The queue whose turn it is has nothing to send. One that was new must wait a round before it may be new again; whether it
    /// is in neither list now.
    pub(super) fn finish_turn(&mut self) -> bool {
        match self.new.pop_front() {
            Some(queue) => self.old.push_back(queue),
            None => {
                self.old.pop_front();
                return true;
            }
        }
        false
    }

    /// Takes the queue whose turn it is out of both lists.
    pub(super) fn suspend(&mut self) {
        if self.new.pop_front().is_none() {
            self.old.pop_front();
        }
    }
}
