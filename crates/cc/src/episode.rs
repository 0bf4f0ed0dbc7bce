//! One reaction per window of data: a congestion signal counts only if it concerns a packet sent after the last reaction
//! (RFC 5681 §4.3, RFC 3168 §6.1.2).

/// Lets one congestion signal through per window of data.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct EpisodeGate {
    /// The nanosecond after the last reaction; 0 before the first.
    from_ns: u64,
}

impl EpisodeGate {
    /// Whether a signal about a packet sent at `sent_ns` opens a new episode; if so the episode opens now.
    pub fn admits(&mut self, now_ns: u64, sent_ns: u64) -> bool {
        // A packet sent in the very nanosecond of the reaction may have left before it.
        let new = sent_ns >= self.from_ns;
        if new {
            self.open(now_ns);
        }
        new
    }

    /// Opens an episode that something else (the host, a timeout) has found.
    pub fn open(&mut self, now_ns: u64) {
        self.from_ns = now_ns.saturating_add(1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_reaction_per_window() {
        let mut gate = EpisodeGate::default();
        assert!(gate.admits(100, 0));
        assert!(!gate.admits(150, 50));
        assert!(!gate.admits(200, 100), "sent in the nanosecond of the reaction");
        assert!(gate.admits(201, 101));
        gate.open(300);
        assert!(!gate.admits(310, 250));
    }
}
