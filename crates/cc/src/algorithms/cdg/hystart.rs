//! The slow start of Linux's CDG: HyStart (Ha and Rhee 2011) at any window, with other limits than that of CUBIC.

use super::gradient::RttRange;

const US: u64 = 1000;
/// ACKs this close belong to one train.
const ACK_TRAIN_GAP_NS: u64 = 3000 * US;
/// Shortest train and smallest delay that count.
const LEAST_NS: u64 = 125 * US;
/// Samples a round needs before its smallest RTT counts.
const MIN_SAMPLES: u32 = 8;

#[derive(Clone, Copy, Debug, Default)]
pub(super) struct HybridSlowStart {
    delay_min_ns: u64,
    /// Start of the train and its last ACK.
    train: Option<(u64, u64)>,
    samples: u32,
}

impl HybridSlowStart {
    pub(super) fn begin_round(&mut self) {
        (self.train, self.samples) = (None, 0);
    }

    /// An ACK arrives in slow start; `rtt` is what the round has shown so far. Whether slow start ends: the ACK train spans half
    /// the smallest RTT, or the round's smallest RTT is an eighth above it.
    pub(super) fn ends(&mut self, now_ns: u64, limited: bool, rtt: &RttRange) -> bool {
        if rtt.min_ns > 0 && (self.delay_min_ns == 0 || rtt.min_ns < self.delay_min_ns) {
            self.delay_min_ns = rtt.min_ns;
        }
        if self.delay_min_ns == 0 {
            return false;
        }
        match self.train {
            Some((start_ns, last_ns)) if limited => {
                if now_ns < last_ns.saturating_add(ACK_TRAIN_GAP_NS) {
                    self.train = Some((start_ns, now_ns));
                    let span_ns = now_ns.saturating_sub(start_ns);
                    if span_ns > (self.delay_min_ns / 2).max(LEAST_NS) {
                        return true;
                    }
                }
            }
            _ => self.train = Some((now_ns, now_ns)),
        }
        if self.samples < MIN_SAMPLES {
            self.samples += 1;
            return false;
        }
        let threshold_ns = self.delay_min_ns.saturating_add(self.delay_min_ns / 8);
        rtt.min_ns > threshold_ns.max(LEAST_NS)
    }
}
