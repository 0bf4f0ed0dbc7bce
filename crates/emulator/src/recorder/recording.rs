//! Makes of the arrivals at the far end of a saturated link the trace of that link.

use paceline_net::trace::MAX_OPPORTUNITIES;
use paceline_net::{OPPORTUNITY_BYTES, PS_PER_MS, Picos, Trace, TraceError};

use super::saturator::Ack;

/// What an IP packet counts besides its own bytes, so that one of 1500 bytes takes an opportunity.
const OVERHEAD_BYTES: u32 = OPPORTUNITY_BYTES - 1500;
/// A packet that waited for less may have found the link idle.
const HARDLY: i64 = 10_000_000;
/// An acknowledgement is for so many packets at least …
const PACKETS_PER_ACK: u32 = 2;
/// … unless a packet has waited so long for one; …
const MOST_ACK_DELAY: Picos = 10 * PS_PER_MS;
/// … and so far from the last.
const LEAST_ACK_GAP: Picos = PS_PER_MS;

/// How trustworthy a measurement is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Quality {
    /// Packets that arrived while it was recorded.
    pub packets: u64,
    /// Packets that did not, since the beginning.
    pub lost: u64,
    /// Of those that arrived, those that waited for less than 10 ms: the link may have been idle before them.
    pub hardly_waited: u64,
    /// How long packets waited on average, us.
    pub mean_wait_us: u64,
    /// How long at most, us.
    pub max_wait_us: u64,
}

/// The receiver's account of a direction.
#[derive(Clone, Debug)]
pub struct Recording {
    /// When the trace begins and ends.
    span: [Picos; 2],
    opportunities_ms: Vec<u32>,
    /// Bytes that have arrived and are no opportunity yet.
    rest: u32,
    next: u64,
    received: u64,
    /// Of the packet with the highest number, ns.
    latest: (u64, u64),
    least_one_way_ns: i64,
    unacked: u32,
    /// When the oldest packet that has not been acknowledged came, and when the last acknowledgement went.
    acks: [Picos; 2],
    wait_sum_us: u64,
    quality: Quality,
}

impl Recording {
    /// Of what arrives from the first time of `span` to the second.
    pub fn new(span: [Picos; 2]) -> Self {
        Self {
            span,
            opportunities_ms: Vec::new(),
            rest: 0,
            next: 0,
            received: 0,
            latest: (0, 0),
            least_one_way_ns: i64::MAX,
            unacked: 0,
            acks: [0, 0],
            wait_sum_us: 0,
            quality: Quality::default(),
        }
    }

    /// A data packet arrives at `now` that was sent at `sent_ns` by the sender's clock.
    pub fn on_data(&mut self, now: Picos, sequence: u64, sent_ns: u64) {
        let arrived_ns = now / 1000;
        let one_way_ns = arrived_ns.wrapping_sub(sent_ns) as i64;
        self.least_one_way_ns = self.least_one_way_ns.min(one_way_ns);
        self.received += 1;
        if sequence >= self.next {
            self.next = sequence.saturating_add(1);
            self.latest = (sent_ns, arrived_ns);
        }
        if self.unacked == 0 {
            self.acks[0] = now;
        }
        self.unacked += 1;
        if self.is_within(now) {
            let wait_ns = one_way_ns.saturating_sub(self.least_one_way_ns);
            let wait_us = wait_ns as u64 / 1000;
            self.wait_sum_us = self.wait_sum_us.saturating_add(wait_us);
            self.quality.packets += 1;
            self.quality.hardly_waited += u64::from(wait_ns < HARDLY);
            self.quality.max_wait_us = self.quality.max_wait_us.max(wait_us);
        }
    }

    /// An IP packet of `bytes` arrives at `now`, of whatever kind: the link has carried it.
    pub fn on_packet(&mut self, now: Picos, bytes: u32) {
        if !self.is_within(now) {
            return;
        }
        self.rest += bytes + OVERHEAD_BYTES;
        while self.rest >= OPPORTUNITY_BYTES {
            self.rest -= OPPORTUNITY_BYTES;
            if self.opportunities_ms.len() < MAX_OPPORTUNITIES {
                self.opportunities_ms.push(((now - self.span[0]) / PS_PER_MS) as u32);
            }
        }
    }

    fn is_within(&self, now: Picos) -> bool {
        (self.span[0]..self.span[1]).contains(&now)
    }

    /// When an acknowledgement is to be sent.
    pub fn ack_due(&self) -> Option<Picos> {
        let [oldest, last] = self.acks;
        match self.unacked {
            0 => None,
            PACKETS_PER_ACK.. => Some(last + LEAST_ACK_GAP),
            _ => Some(oldest.max(last) + MOST_ACK_DELAY),
        }
    }

    /// The acknowledgement to send at `now`: the next number, packets received, when the latest was sent and arrived, ns.
    pub fn ack(&mut self, now: Picos) -> (u64, u64, u64, u64) {
        self.unacked = 0;
        self.acks[1] = now;
        (self.next, self.received.min(self.next), self.latest.0, self.latest.1)
    }

    /// The trace, and how far to trust it.
    ///
    /// # Errors
    /// Nothing has arrived.
    pub fn finish(self) -> Result<(Trace, Quality), TraceError> {
        let mut quality = self.quality;
        quality.lost = self.next.saturating_sub(self.received);
        quality.mean_wait_us = self.wait_sum_us / quality.packets.max(1);
        Ok((Trace::from_opportunities(self.opportunities_ms)?, quality))
    }
}

/// What the sender reads out of an acknowledgement that comes at `now`.
pub fn read_ack(now: Picos, (next, received, sent_ns, arrived_ns): (u64, u64, u64, u64)) -> Ack {
    Ack {
        next,
        received,
        rtt: now.saturating_sub(sent_ns.saturating_mul(1000)),
        one_way_ns: arrived_ns.wrapping_sub(sent_ns) as i64,
    }
}
