//! Counts round trips by the data they deliver: a round ends when data sent after its start is acknowledged.
//! Source: BBR (Cardwell et al. 2016), "delivered" totals instead of sequence numbers.

use crate::event::AckSample;

/// The round trip under way. By default none is: the first ACK starts one.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Round {
    ends_at_delivered: u64,
}

impl Round {
    /// Notes an ACK; true when it starts a new round.
    pub fn on_ack(&mut self, ack: &AckSample) -> bool {
        let starts = ack.prior_delivered_total_bytes >= self.ends_at_delivered;
        if starts {
            self.ends_at_delivered = ack.delivered_total_bytes;
        }
        starts
    }
}

/// Counts round trips.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct RoundCounter {
    round: Round,
    rounds: u64,
}

impl RoundCounter {
    /// Notes an ACK; true when it starts a new round. The first ACK does.
    pub fn on_ack(&mut self, ack: &AckSample) -> bool {
        if self.rounds == 0 {
            self.restart(0);
        }
        let starts = self.round.on_ack(ack);
        self.rounds += u64::from(starts);
        starts
    }

    /// Lets the current round end with data sent from now on, when `delivered_total_bytes` have been delivered.
    pub fn restart(&mut self, delivered_total_bytes: u64) {
        self.round.ends_at_delivered = delivered_total_bytes;
    }

    /// Rounds begun so far.
    pub fn count(&self) -> u64 {
        self.rounds
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_round_is_a_window_of_data() {
        let ack = |prior, total| AckSample {
            prior_delivered_total_bytes: prior,
            delivered_total_bytes: total,
            ..AckSample::default()
        };
        let mut rounds = RoundCounter::default();
        // Three packets sent together, then one for each ACK.
        let steps = [(0, 1), (0, 2), (0, 3), (1, 4), (2, 5), (3, 6), (4, 7)];
        let starts: Vec<bool> = steps.iter().map(|&(p, t)| rounds.on_ack(&ack(p, t))).collect();
        assert_eq!(starts, [true, false, false, true, false, false, true]);
        assert_eq!(rounds.count(), 3);
    }
}
