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
use crate::prefetch::{prefetch, prefetch_unaligned};

/// DupThresh of RFC 5681 and 6675.
const DUP_THRESH: usize = 3;

/// What is known of a segment from its sending to its cumulative acknowledgement: the stamp of the latest transmission. Its tag
/// holds how often the segment was sent, and whether it is sacked or lost. Most of what a flow takes in memory, and two of them
/// are touched by every ACK: 32 bytes.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Segment(SendStamp);

const _: () = assert!(size_of::<Segment>() == 32);

impl Segment {
    /// Selectively acknowledged.
    const SACKED: u8 = 1;
    /// Declared lost and not sent again since.
    const LOST: u8 = 2;
    /// The rest of the tag: times sent. Beyond what it can hold it is right modulo 16, and above 1.
    const ONE_COPY: u8 = 4;

    #[inline]
    fn first(mut stamp: SendStamp, order: u32) -> Self {
        stamp.set_tag(Self::ONE_COPY);
        stamp.note = order;
        Self(stamp)
    }

    #[inline]
    fn send_again(&mut self, mut stamp: SendStamp, order: u32) {
        let copies = match self.copies() {
            63 => 48,
            fewer => fewer + 1,
        };
        stamp.set_tag(copies * Self::ONE_COPY);
        stamp.note = order;
        *self = Self(stamp);
    }

    /// Place of the latest transmission among all transmissions of the flow. From a selectively acknowledged segment, of which
    /// that is no longer asked, how far it is safe to jump towards the next that is not.
    #[inline]
    fn order_or_skip(&self) -> u32 {
        self.0.note
    }

    #[inline]
    pub(crate) fn copies(&self) -> u8 {
        self.0.tag() / Self::ONE_COPY
    }

    #[inline]
    pub(crate) fn is_sacked(&self) -> bool {
        self.0.tag() & Self::SACKED != 0
    }

    #[inline]
    pub(crate) fn is_lost(&self) -> bool {
        self.0.tag() & Self::LOST != 0
    }

    /// Counted in flight.
    #[inline]
    fn in_flight(&self) -> bool {
        self.0.tag() & (Self::SACKED | Self::LOST) == 0
    }

    #[inline]
    fn sack(&mut self) {
        self.0.set_tag(self.0.tag() | Self::SACKED);
        self.0.note = 1;
    }

    #[inline]
    fn lose(&mut self) {
        self.0.set_tag(self.0.tag() | Self::LOST);
    }
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
    /// When the oldest segment among them was sent that was sent but once, ns.
    pub(crate) oldest_sent_ns: Option<u64>,
    /// The segment whose latest transmission is the newest that is known to have arrived, by this ACK.
    pub(crate) newest: Option<u64>,
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

/// What has been sent, what has arrived and what is on the way.
#[derive(Debug, Default)]
struct Transmissions {
    /// Sent, not acknowledged, not declared lost.
    in_flight: u64,
    /// Order of the newest transmission known to have arrived.
    newest_order: u32,
    /// How many so far.
    count: u32,
}

impl Transmissions {
    /// Segment `seq` has been delivered: counts it, and notes what it tells of the path.
    #[inline]
    fn deliver(&mut self, seq: u64, segment: &Segment, ack: &TcpAck, delivered: &mut Delivered) {
        delivered.packets += 1;
        self.in_flight -= u64::from(segment.in_flight());
        // Of a segment sent several times, only the echo tells which copy arrived (Karn's algorithm).
        let (copies, order) = (segment.copies(), segment.order_or_skip());
        let known = copies == 1 || (seq == ack.trigger && copies & 15 == ack.copy);
        if !known {
            return;
        }
        if later(order, self.newest_order) {
            self.newest_order = order;
        }
        if delivered.oldest_sent_ns.is_none() && copies == 1 {
            delivered.oldest_sent_ns = Some(segment.0.sent_ns);
        }
        if delivered.newest.is_none() || later(order, delivered.newest_order) {
            delivered.newest = Some(seq);
            delivered.newest_order = order;
            delivered.retransmitted = copies > 1;
        }
    }
}

/// What there is to know while segments are missing.
#[derive(Debug, Default)]
struct Holes {
    /// One past each of the highest segments selectively acknowledged, highest first; 0 = none.
    highest_sacked: [u64; DUP_THRESH],
    /// Segments below this have been judged by DupThresh.
    judged: u64,
    /// Lost segments to send again, in the order to send them.
    to_resend: VecDeque<u64>,
    /// Retransmissions under way, in the order sent, with their transmission order.
    resent: VecDeque<(u64, u32)>,
    /// Stamp of the newest of the segments that were declared lost last.
    newest_lost: SendStamp,
}

impl Holes {
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

    /// Whether nothing of it matters any more, with everything below `una` acknowledged.
    fn are_filled(&self, una: u64) -> bool {
        let [highest, ..] = self.highest_sacked;
        highest.max(self.judged) <= una && self.to_resend.is_empty() && self.resent.is_empty()
    }
}

pub(crate) struct Scoreboard {
    segments: SeqRing<Segment>,
    sent: Transmissions,
    /// From the first one on, until all is repaired.
    holes: Option<Box<Holes>>,
}

impl Scoreboard {
    pub(crate) fn new() -> Self {
        Self { segments: SeqRing::default(), sent: Transmissions::default(), holes: None }
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

    /// Fetches what an ACK caused by segment `trigger` will look at: that segment, the oldest, and the place of the next; and what
    /// is known of holes.
    #[inline]
    pub(crate) fn prefetch(&self, trigger: u32) {
        for seq in [self.una(), self.next(), expand(self.una(), trigger)] {
            if let Some(slot) = self.segments.slot_of(seq) {
                prefetch(slot);
            }
        }
        self.holes.iter().for_each(|holes| prefetch_unaligned(&**holes));
    }

    /// Packets in flight: sent, not acknowledged, not declared lost ("pipe" of RFC 6675).
    #[inline]
    pub(crate) fn in_flight(&self) -> u64 {
        self.sent.in_flight
    }

    #[cfg(test)]
    pub(crate) fn segment(&self, seq: u64) -> Option<&Segment> {
        self.segments.get(seq)
    }

    /// Segment `seq` was sent: the next new one, or one taken from [`Self::next_to_resend`]. Returns which copy it is, modulo 16.
    #[inline(always)]
    pub(crate) fn on_send(&mut self, seq: u64, stamp: SendStamp) -> u8 {
        self.sent.count = self.sent.count.wrapping_add(1);
        self.sent.in_flight += 1;
        let order = self.sent.count;
        match self.segments.get_mut(seq) {
            None => {
                self.segments.push(Segment::first(stamp, order));
                1
            }
            Some(segment) => {
                segment.send_again(stamp, order);
                let copies = segment.copies();
                self.holes.get_or_insert_default().resent.push_back((seq, order));
                copies & 15
            }
        }
    }

    /// What was noted when segment `seq` was sent last: of one that is held, or that the last ACK has taken.
    #[inline]
    pub(crate) fn stamp(&self, seq: u64) -> Option<&SendStamp> {
        self.segments.slot_of(seq).map(|segment| &segment.0)
    }

    /// Takes in an acknowledgement.
    pub(crate) fn on_ack(&mut self, ack: &TcpAck) -> Delivered {
        let mut delivered = Delivered::default();
        let cumulative = ack.cumulative.min(self.next());
        delivered.cumulative = self.una() < cumulative;
        while let Some((seq, segment)) = self.segments.pop_before(cumulative) {
            if !segment.is_sacked() {
                self.sent.deliver(seq, segment, ack, &mut delivered);
            }
        }
        // Mostly there is no block: then the segment behind the last acknowledged is not looked at.
        let (start, end) = (ack.block.0.max(self.una()), ack.block.1.min(self.next()));
        if start < end {
            self.take_block(start, end, ack, &mut delivered);
        }
        delivered
    }

    /// The segments from `start` to `end` have arrived, some of them before.
    fn take_block(&mut self, start: u64, end: u64, ack: &TcpAck, delivered: &mut Delivered) {
        let mut seq = self.next_unsacked(start);
        while seq < end {
            if let Some(segment) = self.segments.get_mut(seq) {
                self.sent.deliver(seq, segment, ack, delivered);
                segment.sack();
                self.holes.get_or_insert_default().note_highest(seq + 1);
            }
            seq = self.next_unsacked(seq + 1);
        }
    }

    /// The first segment at or above `seq` that is not selectively acknowledged; shortens the path for the next call.
    #[inline]
    fn next_unsacked(&mut self, seq: u64) -> u64 {
        let mut end = seq;
        while let Some(segment) = self.segments.get(end)
            && segment.is_sacked()
        {
            end += u64::from(segment.order_or_skip());
        }
        let mut at = seq;
        while at < end
            && let Some(segment) = self.segments.get_mut(at)
        {
            let step = u64::from(segment.order_or_skip());
            segment.0.note = u32::try_from(end - at).unwrap_or(u32::MAX);
            at += step;
        }
        end
    }

    /// Declares losses by the two rules of the module head.
    #[inline]
    pub(crate) fn detect_losses(&mut self) -> Lost {
        if self.holes.is_none() { Lost::default() } else { self.look_for_losses() }
    }

    fn look_for_losses(&mut self) -> Lost {
        let mut lost = Lost::default();
        let Some(mut holes) = self.holes.take() else { return lost };
        let edge = holes.highest_sacked[DUP_THRESH - 1].saturating_sub(1);
        let mut seq = holes.judged.max(self.una());
        while seq < edge {
            seq = self.next_unsacked(seq);
            if seq < edge
                && self.segments.get(seq).is_some_and(|s| s.copies() == 1 && s.in_flight())
            {
                self.lose(seq, &mut holes, &mut lost);
            }
            seq += 1;
        }
        holes.judged = holes.judged.max(edge);
        while let Some(&(seq, order)) = holes.resent.front() {
            let segment = self.segments.get(seq);
            let current = segment.is_some_and(|s| s.in_flight() && s.order_or_skip() == order);
            let overtaken =
                later(self.sent.newest_order, order.wrapping_add(DUP_THRESH as u32 - 1));
            if current && !overtaken {
                break;
            }
            holes.resent.pop_front();
            if current {
                self.lose(seq, &mut holes, &mut lost);
            }
        }
        self.holes = Some(holes);
        lost
    }

    fn lose(&mut self, seq: u64, holes: &mut Holes, lost: &mut Lost) {
        let Some(segment) = self.segments.get_mut(seq) else { return };
        segment.lose();
        lost.packets += 1;
        if segment.0.sent_ns >= lost.newest_sent_ns {
            lost.newest_sent_ns = segment.0.sent_ns;
            holes.newest_lost = segment.0;
        }
        self.sent.in_flight -= 1;
        holes.to_resend.push_back(seq);
    }

    /// What was noted when the newest of the segments was sent that [`Self::detect_losses`] has found last.
    pub(crate) fn newest_lost(&self) -> SendStamp {
        self.holes.as_ref().map_or_else(SendStamp::default, |holes| holes.newest_lost)
    }

    /// The lost segment to send next, if any; stays first until sent.
    #[inline]
    pub(crate) fn next_to_resend(&mut self) -> Option<u64> {
        let holes = self.holes.as_mut()?;
        while let Some(&seq) = holes.to_resend.front() {
            if self.segments.get(seq).is_some_and(|s| s.is_lost() && !s.is_sacked()) {
                return Some(seq);
            }
            holes.to_resend.pop_front();
        }
        None
    }

    /// An episode is over: gives back the memory of its retransmissions and of the window before it.
    pub(crate) fn on_repaired(&mut self) {
        self.segments.shrink();
        let una = self.una();
        if let Some(holes) = &mut self.holes {
            if holes.are_filled(una) {
                self.holes = None;
            } else {
                holes.to_resend.shrink_to_fit();
                holes.resent.shrink_to_fit();
            }
        }
    }

    /// The retransmission timer expired: everything not selectively acknowledged counts as lost (RFC 6675 §5.1).
    pub(crate) fn on_rto(&mut self) -> Lost {
        let mut lost = Lost::default();
        let holes = self.holes.get_or_insert_default();
        holes.to_resend.clear();
        holes.resent.clear();
        for seq in self.segments.first()..self.segments.next() {
            let Some(segment) = self.segments.get_mut(seq) else { continue };
            if segment.is_sacked() {
                continue;
            }
            if segment.in_flight() {
                lost.packets += 1;
                lost.newest_sent_ns = lost.newest_sent_ns.max(segment.0.sent_ns);
            }
            segment.lose();
            holes.to_resend.push_back(seq);
        }
        self.sent.in_flight = 0;
        holes.judged = self.segments.next();
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
