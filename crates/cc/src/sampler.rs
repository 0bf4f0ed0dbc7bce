//! Delivery-rate samples, draft-cheng-iccrg-delivery-rate-estimation. The host keeps a [`SendStamp`] with every packet in
//! flight and hands back the newest acknowledged one; the rate-sample fields of [`AckSample`] come out.
//!
//! The rate is the data delivered between two ACKs over the longer of the time it took to send and to acknowledge it, so
//! that neither a burst of ACKs nor a burst of sends can feign bandwidth.

use crate::event::AckSample;

/// What the host carries with a packet in flight. Half a cache line: a flow has as many as packets in flight, and each is written
/// once and read once, long after.
///
/// Packets are counted modulo 2^24: fewer than that are delivered or lost while one is on its way. An interval that began more
/// than 18 minutes before its packet was sent counts from there.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct SendStamp {
    /// When the packet was sent, ns.
    pub sent_ns: u64,
    /// By how much its send interval began before that, ns: when the packet was sent whose ACK came last before. Below it the
    /// packets delivered.
    sending_and_delivered: u64,
    /// By how much its ACK interval began before it was sent, ns: when the last of the delivered packets was. Below it the packets
    /// declared lost.
    acking_and_lost: u64,
    /// Packets in flight, this one included; above it whether the application limited sending, and the tag.
    in_flight_limit_tag: u32,
    /// What the host has noted; 0 to begin with. So is [`Self::tag`].
    pub note: u32,
}

const _: () = assert!(size_of::<SendStamp>() == 32);

const LIMITED_BIT: u32 = 1 << 23;
const TAG_SHIFT: u32 = 24;
const COUNT_BITS: u32 = 24;
const LONGEST_NS: u64 = (1 << (64 - COUNT_BITS)) - 1;

/// A time, capped, above a count modulo 2^24.
#[inline]
fn time_and_count(ns: u64, count: u32) -> u64 {
    ns.min(LONGEST_NS) << COUNT_BITS | u64::from(count & ((1 << COUNT_BITS) - 1))
}

/// How far `total` is ahead of the count of [`time_and_count`].
#[inline]
fn counted_since(total: u32, before: u64) -> u32 {
    total.wrapping_sub(before as u32) & ((1 << COUNT_BITS) - 1)
}

impl SendStamp {
    /// Most packets in flight that it can tell; more count as that.
    pub const MAX_IN_FLIGHT: u32 = LIMITED_BIT - 1;

    /// Packets in flight when this packet was sent, itself included.
    pub fn tx_in_flight_packets(&self) -> u32 {
        self.in_flight_limit_tag & Self::MAX_IN_FLIGHT
    }

    /// Whether the application, not the window, limited sending.
    pub fn app_limited(&self) -> bool {
        self.in_flight_limit_tag & LIMITED_BIT != 0
    }

    /// What the host has noted with [`Self::set_tag`].
    #[inline]
    pub fn tag(&self) -> u8 {
        (self.in_flight_limit_tag >> TAG_SHIFT) as u8
    }

    /// Eight bits that are the host's, which would otherwise take a word of their own.
    #[inline]
    pub fn set_tag(&mut self, tag: u8) {
        let rest = self.in_flight_limit_tag & (LIMITED_BIT | Self::MAX_IN_FLIGHT);
        self.in_flight_limit_tag = rest | u32::from(tag) << TAG_SHIFT;
    }

    /// Start of the send interval, ns.
    #[cfg(test)]
    fn first_sent_ns(&self) -> u64 {
        self.sent_ns - (self.sending_and_delivered >> COUNT_BITS)
    }

    /// Start of the ACK interval, ns.
    #[inline]
    fn delivered_ns(&self) -> u64 {
        self.sent_ns - (self.acking_and_lost >> COUNT_BITS)
    }
}

/// Makes the rate samples of one connection.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct RateSampler {
    delivered_packets: u64,
    delivered_ns: u64,
    first_sent_ns: u64,
    /// Delivered packets with which the application-limited bubble has left the path; 0 = not limited.
    limited_until_packets: u64,
    lost_packets: u32,
    /// Size of a packet.
    packet_bytes: u32,
}

impl RateSampler {
    /// For packets of this size.
    pub fn new(packet_bytes: u32) -> Self {
        Self { packet_bytes, ..Self::default() }
    }

    /// A packet leaves at `now_ns` while `in_flight_packets` are out without it. Returns what to carry with it.
    #[inline]
    pub fn on_send(&mut self, now_ns: u64, in_flight_packets: u64) -> SendStamp {
        if in_flight_packets == 0 {
            // Nothing in flight: both intervals restart, so that idle time is not counted.
            self.first_sent_ns = now_ns;
            self.delivered_ns = now_ns;
        }
        let limited = if self.limited_until_packets > 0 { LIMITED_BIT } else { 0 };
        let tx_in_flight = (in_flight_packets + 1).min(SendStamp::MAX_IN_FLIGHT.into()) as u32;
        SendStamp {
            sent_ns: now_ns,
            sending_and_delivered: time_and_count(
                now_ns.saturating_sub(self.first_sent_ns),
                self.delivered_packets as u32,
            ),
            acking_and_lost: time_and_count(
                now_ns.saturating_sub(self.delivered_ns),
                self.lost_packets,
            ),
            in_flight_limit_tag: tx_in_flight | limited,
            note: 0,
        }
    }

    /// Packets are declared lost.
    pub fn on_loss(&mut self, packets: u32) {
        self.lost_packets = self.lost_packets.wrapping_add(packets);
    }

    /// Packets declared lost since the one with this stamp was sent.
    #[inline]
    pub fn lost_since(&self, stamp: &SendStamp) -> u32 {
        counted_since(self.lost_packets, stamp.acking_and_lost)
    }

    /// The application has nothing to send although the window is open, with `in_flight_packets` out.
    pub fn on_app_limited(&mut self, in_flight_packets: u64) {
        self.limited_until_packets = self.delivered_packets + in_flight_packets + 1;
    }

    /// An ACK at `now_ns` newly acknowledges packets, the newest of them carrying `newest`. Writes the rate sample and the
    /// totals into `sample`; samples over less than `min_rtt_ns` are invalid (0 bytes over 0 ns).
    #[inline]
    pub fn on_ack(
        &mut self,
        now_ns: u64,
        acked_packets: u32,
        newest: &SendStamp,
        min_rtt_ns: u64,
        sample: &mut AckSample,
    ) {
        self.delivered_packets += u64::from(acked_packets);
        self.delivered_ns = now_ns;
        self.first_sent_ns = newest.sent_ns;
        if self.delivered_packets >= self.limited_until_packets {
            self.limited_until_packets = 0;
        }
        let send_elapsed_ns = newest.sending_and_delivered >> COUNT_BITS;
        let ack_elapsed_ns = now_ns.saturating_sub(newest.delivered_ns());
        let interval_ns = send_elapsed_ns.max(ack_elapsed_ns);
        let valid = interval_ns > 0 && interval_ns >= min_rtt_ns;
        let bytes = |packets: u32| u64::from(packets) * u64::from(self.packet_bytes);
        let since_sent = counted_since(self.delivered_packets as u32, newest.sending_and_delivered);
        let delivered_bytes = bytes(since_sent);

        sample.sent_ns = newest.sent_ns;
        sample.delivered_bytes = if valid { delivered_bytes } else { 0 };
        sample.interval_ns = if valid { interval_ns } else { 0 };
        sample.delivered_total_bytes = self.delivered_total_bytes();
        sample.prior_delivered_total_bytes = sample.delivered_total_bytes - delivered_bytes;
        sample.tx_in_flight_bytes = bytes(newest.tx_in_flight_packets());
        sample.lost_since_sent_bytes = bytes(self.lost_since(newest));
        if newest.app_limited() {
            sample.flags |= AckSample::APP_LIMITED;
        }
    }

    /// Packets were delivered, but of none is it known which copy arrived: no sample, only the total.
    pub fn on_unsampled_ack(&mut self, now_ns: u64, acked_packets: u32, sample: &mut AckSample) {
        self.delivered_packets += u64::from(acked_packets);
        self.delivered_ns = now_ns;
        sample.delivered_total_bytes = self.delivered_total_bytes();
    }

    /// When the last ACK came, ns; 0 before the first.
    #[inline]
    pub fn last_ack_ns(&self) -> u64 {
        self.delivered_ns
    }

    /// Bytes delivered since the start.
    pub fn delivered_total_bytes(&self) -> u64 {
        self.delivered_packets * u64::from(self.packet_bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    /// Packets of 1000 bytes sent at 0, 10, 20 ms and acknowledged 100 ms later, 20 ms apart.
    #[test]
    fn by_hand_the_longer_interval_counts() {
        let mut sampler = RateSampler::new(1000);
        let stamps: Vec<SendStamp> = (0..3).map(|i| sampler.on_send(i * 10 * MS, i)).collect();
        assert_eq!(stamps[2].tx_in_flight_packets(), 3);
        let mut sample = AckSample::default();
        sampler.on_ack(100 * MS, 1, &stamps[0], 100 * MS, &mut sample);
        // Send interval 0, ACK interval 100 ms from the start of the flight.
        assert_eq!((sample.delivered_bytes, sample.interval_ns), (1000, 100 * MS));
        let reply = sampler.on_send(100 * MS, 2);
        assert_eq!((reply.first_sent_ns(), reply.delivered_ns()), (0, 100 * MS));
        sampler.on_ack(120 * MS, 1, &stamps[1], 100 * MS, &mut sample);
        assert_eq!((sample.delivered_bytes, sample.interval_ns), (2000, 120 * MS));
        sampler.on_ack(140 * MS, 1, &stamps[2], 100 * MS, &mut sample);
        assert_eq!((sample.delivered_bytes, sample.interval_ns), (3000, 140 * MS));
        sampler.on_loss(1);
        sampler.on_ack(200 * MS, 1, &reply, 100 * MS, &mut sample);
        // Sent at 100 against a send reference of 0; delivered 3 packets since its ACK reference at 100.
        assert_eq!((sample.delivered_bytes, sample.interval_ns), (3000, 100 * MS));
        assert_eq!(sample.delivery_rate(), Some(30_000.0));
        assert_eq!(sample.prior_delivered_total_bytes, 1000);
        assert_eq!(sample.delivered_total_bytes, 4000);
        assert_eq!(sample.lost_since_sent_bytes, 1000);
    }

    #[test]
    fn too_short_is_invalid_and_idleness_restarts() {
        let mut sampler = RateSampler::new(1000);
        let stamp = sampler.on_send(0, 0);
        let mut sample = AckSample::default();
        sampler.on_ack(50 * MS, 1, &stamp, 100 * MS, &mut sample);
        assert_eq!(sample.delivery_rate(), None);
        let after_idle = sampler.on_send(9000 * MS, 0);
        sampler.on_ack(9100 * MS, 1, &after_idle, 100 * MS, &mut sample);
        assert_eq!((sample.delivered_bytes, sample.interval_ns), (1000, 100 * MS));
    }

    #[test]
    fn app_limited_until_the_bubble_has_left() {
        let mut sampler = RateSampler::new(1000);
        let first = sampler.on_send(0, 0);
        sampler.on_app_limited(1);
        let second = sampler.on_send(MS, 1);
        assert!(!first.app_limited() && second.app_limited());
        let mut sample = AckSample::default();
        sampler.on_ack(100 * MS, 1, &first, 0, &mut sample);
        assert!(!sample.has(AckSample::APP_LIMITED));
        sampler.on_ack(101 * MS, 1, &second, 0, &mut sample);
        assert!(sample.has(AckSample::APP_LIMITED));
        assert!(!sampler.on_send(102 * MS, 1).app_limited());
    }

    #[test]
    fn an_open_window_before_anything_was_sent_limits_the_first_packet_only() {
        let mut sampler = RateSampler::new(1000);
        sampler.on_app_limited(0);
        let first = sampler.on_send(0, 0);
        let mut sample = AckSample::default();
        sampler.on_ack(MS, 1, &first, 0, &mut sample);
        assert!(first.app_limited() && !sampler.on_send(MS, 0).app_limited());
    }

    #[test]
    fn totals_outlast_the_counts_of_a_stamp() {
        let mut sampler = RateSampler::new(1000);
        sampler.delivered_packets = (1 << 32) - 1;
        sampler.lost_packets = u32::MAX;
        let stamp = sampler.on_send(0, 0);
        sampler.on_loss(2);
        let mut sample = AckSample::default();
        sampler.on_ack(MS, 3, &stamp, 0, &mut sample);
        assert_eq!((sample.delivered_bytes, sample.lost_since_sent_bytes), (3000, 2000));
        assert_eq!(sample.prior_delivered_total_bytes, ((1 << 32) - 1) * 1000);
    }

    #[test]
    fn a_tag_leaves_the_rest_alone() {
        let mut sampler = RateSampler::new(1000);
        sampler.on_app_limited(0);
        let mut stamp = sampler.on_send(0, 1 << 30);
        assert_eq!((stamp.tag(), stamp.tx_in_flight_packets()), (0, SendStamp::MAX_IN_FLIGHT));
        stamp.set_tag(255);
        stamp.set_tag(129);
        assert_eq!((stamp.tag(), stamp.tx_in_flight_packets()), (129, SendStamp::MAX_IN_FLIGHT));
        assert!(stamp.app_limited());
    }
}
