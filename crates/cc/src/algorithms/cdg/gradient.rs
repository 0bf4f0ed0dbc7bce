//! How fast the smallest and the largest RTT of a round grow from round to round, smoothed (Hayes and Armitage 2011, §3.1).

use crate::event::AckSample;

/// Linux: largest count of ACKs that were seen to be delayed.
const MOST_DELAYED: u32 = 5;

/// The smallest and the largest RTT of a round, ns; 0 while unknown.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct RttRange {
    pub(super) min_ns: u64,
    pub(super) max_ns: u64,
    /// Linux: ACKs of single packets still to be taken for delayed ones.
    pub(super) delayed: u32,
}

impl RttRange {
    pub(super) fn is_known(&self) -> bool {
        self.max_ns > 0
    }

    /// Notes the sample of an ACK, if it has one.
    ///
    /// Linux tells delayed ACKs: where others acknowledge several packets, one of a single packet waited at the receiver,
    /// and counts only if it lowers the smallest RTT.
    pub(super) fn note(&mut self, ack: &AckSample, filtered: bool) {
        let rtt_ns = ack.rtt_ns;
        if rtt_ns == 0 {
            return;
        }
        if filtered && ack.has(AckSample::CUMULATIVE) {
            if ack.acked_packets == 1 && self.delayed > 0 {
                self.min_ns = self.min_ns.min(rtt_ns);
                self.delayed -= 1;
                return;
            }
            if ack.acked_packets > 1 && self.delayed < MOST_DELAYED {
                self.delayed += 1;
            }
        }
        self.min_ns = if self.min_ns == 0 { rtt_ns } else { self.min_ns.min(rtt_ns) };
        self.max_ns = self.max_ns.max(rtt_ns);
    }

    /// By how much both have grown since the round with `previous`.
    pub(super) fn since(&self, previous: &Self) -> Gradient {
        let ms = |now_ns: u64, then_ns: u64| (now_ns as f64 - then_ns as f64) * 1e-6;
        Gradient {
            min_ms: ms(self.min_ns, previous.min_ns),
            max_ms: ms(self.max_ns, previous.max_ns),
        }
    }
}

/// Growth of the smallest and of the largest RTT, ms per round.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Gradient {
    pub(super) min_ms: f64,
    pub(super) max_ms: f64,
}

/// The gradients of the last rounds.
pub(super) struct Gradients {
    /// A ring, 0 where there is none yet.
    ring: Vec<Gradient>,
    next: usize,
    filled: bool,
}

impl Gradients {
    /// Room for `window` rounds, at least one.
    pub(super) fn new(window: usize) -> Self {
        Self { ring: vec![Gradient::default(); window.max(1)], next: 0, filled: false }
    }

    pub(super) fn window(&self) -> usize {
        self.ring.len()
    }

    /// Adds the gradient of a round; their mean over the window. While the window is not full, missing rounds count as 0, or
    /// as those that are there if `extrapolated`.
    pub(super) fn add(&mut self, gradient: Gradient, extrapolated: bool) -> Gradient {
        self.ring[self.next] = gradient;
        self.next = (self.next + 1) % self.ring.len();
        self.filled |= self.next == 0;
        let rounds = if extrapolated && !self.filled { self.next } else { self.ring.len() };
        let sum = self.sum();
        Gradient { min_ms: sum.min_ms / rounds as f64, max_ms: sum.max_ms / rounds as f64 }
    }

    pub(super) fn sum(&self) -> Gradient {
        self.ring.iter().fold(Gradient::default(), |sum, g| Gradient {
            min_ms: sum.min_ms + g.min_ms,
            max_ms: sum.max_ms + g.max_ms,
        })
    }

    pub(super) fn clear(&mut self) {
        self.ring.fill(Gradient::default());
        (self.next, self.filled) = (0, false);
    }
}
