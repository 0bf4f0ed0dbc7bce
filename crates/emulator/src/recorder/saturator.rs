//! How much to send so that a link never runs out of packets, without filling it without bound.
//!
//! The rule of the Saturator of Winstein, Sivaraman and Balakrishnan (Stochastic Forecasts Achieve High Throughput and Low
//! Delay over Cellular Networks, NSDI 2013, §4.1): a window of packets, larger while packets are delayed by too little to be
//! sure that the link is busy, smaller when they are delayed so much that the network might give up. Theirs is the round-trip
//! time over a second, idle link back; here it is the time that packets wait in this direction alone, so that no second link
//! is needed. And the window keeps a floor, of twice what the link has carried in a round trip at its best:
//! after an outage, delays are long although there is room.

use paceline_net::{PS_PER_MS, Picos};

/// Window at the start, packets.
const FIRST_WINDOW: u64 = 10;
/// The largest window, packets: 1.5 GB under way.
const MOST_WINDOW: u64 = 1 << 20;
/// When nothing is acknowledged, a packet goes out every so often, to find out when something passes again.
const PROBE_GAP: Picos = 250 * PS_PER_MS;

/// What an acknowledgement says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ack {
    /// One more than the highest number that has arrived.
    pub next: u64,
    /// Packets that have arrived.
    pub received: u64,
    /// Since the packet of the highest number was sent, by the sender's clock.
    pub rtt: Picos,
    /// From its departure to its arrival, ns, by two clocks: only differences mean something.
    pub one_way_ns: i64,
}

/// The sender's rule.
#[derive(Clone, Debug)]
pub struct Saturator {
    /// Waiting times between which the window stays as it is.
    band: [Picos; 2],
    window: u64,
    /// Number of the next packet.
    next: u64,
    acked: u64,
    received: u64,
    /// Losses reduce the window once per round trip: not again before this number is acknowledged.
    recovered: u64,
    least_one_way_ns: i64,
    least_rtt: Picos,
    /// When the count of packets per round trip began, and with how many.
    count: (Picos, u64),
    /// The most packets received in the least round-trip time.
    best: u64,
    /// When something last happened that proves the link alive, or a probe went out.
    alive: Picos,
}

impl Saturator {
    /// `band`: packets shall wait longer than the first, and not longer than the second.
    pub fn new(band: [Picos; 2]) -> Self {
        Self {
            band,
            window: FIRST_WINDOW,
            next: 0,
            acked: 0,
            received: 0,
            recovered: 0,
            least_one_way_ns: i64::MAX,
            least_rtt: Picos::MAX,
            count: (0, 0),
            best: 0,
            alive: 0,
        }
    }

    /// Number of the packet to send at `now`, if one is to be sent.
    pub fn to_send(&self, now: Picos) -> Option<u64> {
        let may = self.next - self.acked < self.window || now >= self.alive + PROBE_GAP;
        may.then_some(self.next)
    }

    /// The packet of [`Self::to_send`] has been sent.
    pub fn on_sent(&mut self, now: Picos) {
        if self.next - self.acked >= self.window {
            self.alive = now;
        }
        self.next += 1;
    }

    /// An acknowledgement has come.
    pub fn on_ack(&mut self, now: Picos, ack: Ack) {
        let is_old = ack.next <= self.acked || ack.received <= self.received;
        if is_old || ack.next > self.next || ack.received > ack.next {
            return;
        }
        let newly = ack.received - self.received;
        let is_loss = ack.next - ack.received > self.acked - self.received;
        (self.acked, self.received, self.alive) = (ack.next, ack.received, now);
        self.least_rtt = self.least_rtt.min(ack.rtt.max(1));
        self.least_one_way_ns = self.least_one_way_ns.min(ack.one_way_ns);
        self.measure(now);
        let floor = FIRST_WINDOW + 2 * self.best;
        let waited_ns = ack.one_way_ns.saturating_sub(self.least_one_way_ns);
        let waited = (waited_ns as Picos).saturating_mul(1000);
        if is_loss && self.acked > self.recovered {
            // Somewhere a buffer is full: so it is not empty.
            self.recovered = self.next;
            self.window = (self.window * 9 / 10).max(floor);
        } else if waited < self.band[0] && self.acked > self.recovered {
            self.window += newly;
        } else if waited > self.band[1] {
            self.window = self.window.saturating_sub(newly).max(floor);
        }
        self.window = self.window.min(MOST_WINDOW);
    }

    /// Renews the most that arrived within the least round-trip time.
    fn measure(&mut self, now: Picos) {
        let (begin, count) = self.count;
        let passed = now - begin;
        if passed >= self.least_rtt {
            let arrived = u128::from(self.received - count) * u128::from(self.least_rtt);
            self.best = self.best.max((arrived / u128::from(passed)) as u64);
            self.count = (now, self.received);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ack(next: u64, received: u64, waited_ms: i64) -> Ack {
        let one_way_ns = -5_000_000 + waited_ms * 1_000_000;
        Ack { next, received, rtt: PS_PER_MS * (40 + waited_ms as u64), one_way_ns }
    }

    fn saturator(sent: u64) -> Saturator {
        let mut saturator = Saturator::new([750 * PS_PER_MS, 3000 * PS_PER_MS]);
        (0..sent).for_each(|_| saturator.on_sent(0));
        saturator
    }

    #[test]
    fn the_window_grows_below_the_band_and_shrinks_above() {
        let mut saturator = saturator(1000);
        saturator.on_ack(40 * PS_PER_MS, ack(10, 10, 0));
        assert_eq!(saturator.window, 20);
        saturator.on_ack(80 * PS_PER_MS, ack(400, 400, 749));
        assert_eq!(saturator.window, 410);
        saturator.on_ack(90 * PS_PER_MS, ack(500, 500, 1500));
        assert_eq!(saturator.window, 410, "within the band");
        saturator.best = 50;
        saturator.on_ack(90 * PS_PER_MS, ack(510, 510, 3001));
        assert_eq!(saturator.window, 400);
        saturator.on_ack(91 * PS_PER_MS, ack(900, 900, 9000));
        assert_eq!(saturator.window, 110, "twice what a round trip carried, and ten");
    }

    #[test]
    fn losses_shrink_it_once_a_round_trip_and_leave_nothing_under_way() {
        let mut saturator = saturator(1000);
        saturator.on_ack(PS_PER_MS, ack(800, 800, 0));
        assert_eq!(saturator.window, 810);
        saturator.on_ack(PS_PER_MS, ack(900, 890, 0));
        saturator.on_ack(PS_PER_MS, ack(950, 930, 0));
        assert_eq!(saturator.window, 729);
        assert_eq!(saturator.to_send(PS_PER_MS), Some(1000), "what is lost does not count");
    }

    #[test]
    fn silence_is_probed() {
        let mut saturator = saturator(10);
        assert_eq!(saturator.to_send(249 * PS_PER_MS), None);
        assert_eq!(saturator.to_send(250 * PS_PER_MS), Some(10));
        saturator.on_sent(250 * PS_PER_MS);
        assert_eq!(saturator.to_send(499 * PS_PER_MS), None);
    }

    #[test]
    fn acknowledgements_that_cannot_be_true_are_ignored() {
        let mut saturator = saturator(100);
        for ack in [ack(101, 1, 0), ack(50, 51, 0), ack(0, 0, 0), ack(u64::MAX, u64::MAX, 1)] {
            saturator.on_ack(PS_PER_MS, ack);
        }
        assert_eq!((saturator.acked, saturator.received, saturator.window), (0, 0, 10));
    }
}
