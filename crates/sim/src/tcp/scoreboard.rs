//! What a TCP sender knows of each segment it has sent: SACK scoreboard and loss detection (RFC 2018, 6675).
//!
//! Every operation is amortised O(1) in the window: a selective acknowledgement jumps over runs already known, loss
//! detection scans each segment once, and retransmissions come from a queue. A linked list per ACK is what makes other
//! simulators slow on one fat flow.
//!
//! Loss rules: a segment sent once is lost when three segments above it have been selectively acknowledged (DupThresh,
//! RFC 6675 §4 in whole segments). A retransmission is lost when a segment transmitted three or more transmissions later has
//! been delivered: RACK's rule (RFC 8985 §6) with a reordering window counted in packets, since RFC 6675 has none.

use std::collections::VecDeque;

use paceline_cc::sampler::SendStamp;

use paceline_net::ring::SeqRing;

use crate::packet::expand;
use crate::prefetch::prefetch;

/// DupThresh of RFC 5681 and 6675.
const DUP_THRESH: usize = 3;

#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Segment {
    pub(crate) stamp: SendStamp,
    /// Place of the latest transmission among all transmissions of the flow.
    order: u32,
    /// From a selectively acknowledged segment, how far it is safe to jump towards the next that is not.
    skip: u32,
    /// Times sent.
    pub(crate) copies: u32,
    sacked: bool,
    /// Declared lost and not sent again since.
    lost: bool,
    /// Counted in flight.
    in_flight: bool,
}

/// An acknowledgement in the sender's own 64-bit numbers.
#[derive(Clone, Copy, Debug)]
pub(crate) struct TcpAck {
    /// Next segment the receiver expects.
    pub(crate) cumulative: u64,
    /// Received range above it, `[start, end)`.
    pub(crate) block: (u64, u64),
    /// Segment whose arrival caused the ACK, and which transmission of it, modulo 16.
    pub(crate) trigger: u64,
    pub(crate) copy: u8,
}

/// What an ACK newly tells.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Delivered {
    pub(crate) packets: u32,
    /// Whether the cumulative acknowledgement moved.
    pub(crate) cumulative: bool,
    /// The stamp of the newest transmission known to have arrived, by this ACK.
    pub(crate) newest: Option<SendStamp>,
    /// Its place among all transmissions.
    newest_order: u32,
    /// That `newest` was sent more than once.
    pub(crate) retransmitted: bool,
}

/// What loss detection newly found.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Lost {
    pub(crate) packets: u32,
    pub(crate) newest_sent_ns: u64,
}

/// What has arrived and what is on the way.
#[derive(Debug, Default)]
struct Arrivals {
    /// Sent, not acknowledged, not declared lost.
    in_flight: u64,
    /// Order of the newest transmission known to have arrived.
    newest_order: u32,
}

impl Arrivals {
    /// Segment `seq` has been delivered: counts it, and notes what it tells of the path.
    #[inline]
    fn deliver(&mut self, seq: u64, segment: &Segment, ack: &TcpAck, delivered: &mut Delivered) {
        delivered.packets += 1;
        self.in_flight -= u64::from(segment.in_flight);
        // Of a segment sent several times, only the echo tells which copy arrived (Karn's algorithm).
        let known = segment.copies == 1
            || (seq == ack.trigger && segment.copies & 15 == u32::from(ack.copy));
        if !known {
            return;
        }
        if later(segment.order, self.newest_order) {
            self.newest_order = segment.order;
        }
        if delivered.newest.is_none() || later(segment.order, delivered.newest_order) {
            delivered.newest = Some(segment.stamp);
            delivered.newest_order = segment.order;
            delivered.retransmitted = segment.copies > 1;
        }
    }
}

pub(crate) struct Scoreboard {
    segments: SeqRing<Segment>,
    arrivals: Arrivals,
    /// Transmissions so far.
    transmissions: u32,
    /// One past each of the highest segments selectively acknowledged, highest first; 0 = none.
    highest_sacked: [u64; DUP_THRESH],
    /// Segments below this have been judged by DupThresh.
    judged: u64,
    /// Lost segments to send again, in the order to send them.
    to_resend: VecDeque<u64>,
    /// Retransmissions under way, in the order sent, with their transmission order.
    resent: VecDeque<(u64, u32)>,
}

impl Scoreboard {
    pub(crate) fn new() -> Self {
        Self {
            segments: SeqRing::new(),
            arrivals: Arrivals::default(),
            transmissions: 0,
            highest_sacked: [0; DUP_THRESH],
            judged: 0,
            to_resend: VecDeque::new(),
            resent: VecDeque::new(),
        }
    }

    /// Oldest segment not cumulatively acknowledged.
    #[inline]
    pub(crate) fn una(&self) -> u64 {
        self.segments.first()
    }

    /// Next segment never sent.
    #[inline]
    pub(crate) fn next(&self) -> u64 {
        self.segments.next()
    }

    /// Fetches what an ACK caused by segment `trigger` will look at: that segment, the oldest, and the place of the next.
    #[inline]
    pub(crate) fn prefetch(&self, trigger: u32) {
        for seq in [self.una(), self.next(), expand(self.una(), trigger)] {
            if let Some(slot) = self.segments.slot_of(seq) {
                prefetch(slot);
            }
        }
    }

    /// Packets in flight: sent, not acknowledged, not declared lost ("pipe" of RFC 6675).
    #[inline]
    pub(crate) fn in_flight(&self) -> u64 {
        self.arrivals.in_flight
    }

    #[cfg(test)]
    pub(crate) fn segment(&self, seq: u64) -> Option<&Segment> {
        self.segments.get(seq)
    }

    /// Segment `seq` was sent: the next new one, or one taken from [`Self::next_to_resend`]. Returns which copy it is.
    #[inline(always)]
    pub(crate) fn on_send(&mut self, seq: u64, stamp: SendStamp) -> u32 {
        self.transmissions = self.transmissions.wrapping_add(1);
        self.arrivals.in_flight += 1;
        let order = self.transmissions;
        match self.segments.get_mut(seq) {
            None => {
                self.segments.push(Segment {
                    stamp,
                    order,
                    skip: 1,
                    copies: 1,
                    in_flight: true,
                    ..Segment::default()
                });
                1
            }
            Some(segment) => {
                segment.stamp = stamp;
                segment.order = order;
                segment.copies += 1;
                segment.lost = false;
                segment.in_flight = true;
                let copies = segment.copies;
                self.resent.push_back((seq, order));
                copies
            }
        }
    }

    /// Takes in an acknowledgement.
    pub(crate) fn on_ack(&mut self, ack: &TcpAck) -> Delivered {
        let mut delivered = Delivered::default();
        let cumulative = ack.cumulative.min(self.next());
        delivered.cumulative = self.una() < cumulative;
        while let Some((seq, segment)) = self.segments.pop_before(cumulative) {
            if !segment.sacked {
                self.arrivals.deliver(seq, segment, ack, &mut delivered);
            }
        }
        let end = ack.block.1.min(self.next());
        let mut seq = self.next_unsacked(ack.block.0.max(self.una()));
        while seq < end {
            if let Some(segment) = self.segments.get_mut(seq) {
                self.arrivals.deliver(seq, segment, ack, &mut delivered);
                segment.sacked = true;
                segment.in_flight = false;
                self.note_highest(seq + 1);
            }
            seq = self.next_unsacked(seq + 1);
        }
        delivered
    }

    /// The first segment at or above `seq` that is not selectively acknowledged; shortens the path for the next call.
    fn next_unsacked(&mut self, seq: u64) -> u64 {
        let mut end = seq;
        while let Some(segment) = self.segments.get(end)
            && segment.sacked
        {
            end += u64::from(segment.skip);
        }
        let mut at = seq;
        while at < end
            && let Some(segment) = self.segments.get_mut(at)
        {
            let step = u64::from(segment.skip);
            segment.skip = u32::try_from(end - at).unwrap_or(u32::MAX);
            at += step;
        }
        end
    }

    fn note_highest(&mut self, end: u64) {
        let [a, b, c] = self.highest_sacked;
        self.highest_sacked = if end > a {
            [end, a, b]
        } else if end > b {
            [a, end, b]
        } else {
            [a, b, c.max(end)]
        };
    }

    /// Declares losses by the two rules of the module head.
    pub(crate) fn detect_losses(&mut self) -> Lost {
        let mut lost = Lost::default();
        let edge = self.highest_sacked[DUP_THRESH - 1].saturating_sub(1);
        let mut seq = self.next_unsacked(self.judged.max(self.una()));
        while seq < edge {
            if self.segments.get(seq).is_some_and(|s| s.copies == 1 && s.in_flight) {
                self.lose(seq, &mut lost);
            }
            seq = self.next_unsacked(seq + 1);
        }
        self.judged = self.judged.max(edge);
        while let Some(&(seq, order)) = self.resent.front() {
            let current = self.segments.get(seq).is_some_and(|s| s.in_flight && s.order == order);
            let overtaken =
                later(self.arrivals.newest_order, order.wrapping_add(DUP_THRESH as u32 - 1));
            if current && !overtaken {
                break;
            }
            self.resent.pop_front();
            if current {
                self.lose(seq, &mut lost);
            }
        }
        lost
    }

    fn lose(&mut self, seq: u64, lost: &mut Lost) {
        let Some(segment) = self.segments.get_mut(seq) else { return };
        segment.lost = true;
        segment.in_flight = false;
        lost.packets += 1;
        lost.newest_sent_ns = lost.newest_sent_ns.max(segment.stamp.sent_ns);
        self.arrivals.in_flight -= 1;
        self.to_resend.push_back(seq);
    }

    /// The lost segment to send next, if any; stays first until sent.
    pub(crate) fn next_to_resend(&mut self) -> Option<u64> {
        while let Some(&seq) = self.to_resend.front() {
            if self.segments.get(seq).is_some_and(|s| s.lost && !s.sacked) {
                return Some(seq);
            }
            self.to_resend.pop_front();
        }
        None
    }

    /// An episode is over: gives back the memory of its retransmissions and of the window before it.
    pub(crate) fn on_repaired(&mut self) {
        self.segments.shrink();
        self.to_resend.shrink_to_fit();
        self.resent.shrink_to_fit();
    }

    /// The retransmission timer expired: everything not selectively acknowledged counts as lost (RFC 6675 §5.1).
    pub(crate) fn on_rto(&mut self) -> Lost {
        let mut lost = Lost::default();
        self.to_resend.clear();
        self.resent.clear();
        for seq in self.una()..self.next() {
            let Some(segment) = self.segments.get_mut(seq) else { continue };
            if segment.sacked {
                continue;
            }
            if segment.in_flight {
                lost.packets += 1;
                lost.newest_sent_ns = lost.newest_sent_ns.max(segment.stamp.sent_ns);
            }
            segment.lost = true;
            segment.in_flight = false;
            self.to_resend.push_back(seq);
        }
        self.arrivals.in_flight = 0;
        self.judged = self.next();
        lost
    }
}

/// Whether transmission `a` came after `b`.
#[inline]
fn later(a: u32, b: u32) -> bool {
    (a.wrapping_sub(b) as i32) > 0
}

#[cfg(test)]
#[path = "scoreboard_tests.rs"]
mod tests;
