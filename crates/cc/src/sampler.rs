//! Delivery-rate samples, draft-cheng-iccrg-delivery-rate-estimation. The host keeps a [`SendStamp`] with every packet in
//! flight and hands back the newest acknowledged one; the rate-sample fields of [`AckSample`] come out.
//!
//! The rate is the data delivered between two ACKs over the longer of the time it took to send and to acknowledge it, so
//! that neither a burst of ACKs nor a burst of sends can feign bandwidth.

use crate::event::AckSample;

/// What the host carries with a packet in flight. 48 bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct SendStamp {
    /// When the packet was sent, ns.
    pub sent_ns: u64,
    /// When the packet was sent whose ACK came last before this one left, ns: start of the send interval.
    pub first_sent_ns: u64,
    /// Bytes delivered when this packet was sent.
    pub delivered_total_bytes: u64,
    /// When the last of those was delivered, ns: start of the ACK interval.
    pub delivered_ns: u64,
    /// Bytes declared lost when this packet was sent.
    pub lost_total_bytes: u64,
    /// Bytes in flight, this packet included; the top bit says application-limited.
    tx_in_flight_and_limit: u64,
}

const LIMITED_BIT: u64 = 1 << 63;

impl SendStamp {
    /// Bytes in flight when this packet was sent, itself included.
    pub fn tx_in_flight_bytes(&self) -> u64 {
        self.tx_in_flight_and_limit & !LIMITED_BIT
    }

    /// Whether the application, not the window, limited sending.
    pub fn app_limited(&self) -> bool {
        self.tx_in_flight_and_limit & LIMITED_BIT != 0
    }

    /// Whether this packet is the newer of two acknowledged together: the sample is taken from the newest.
    pub fn is_newer_than(&self, other: &Self) -> bool {
        (self.sent_ns, self.delivered_total_bytes) > (other.sent_ns, other.delivered_total_bytes)
    }
}

/// Makes the rate samples of one connection.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct RateSampler {
    delivered_total_bytes: u64,
    delivered_ns: u64,
    first_sent_ns: u64,
    lost_total_bytes: u64,
    /// Delivered total at which the application-limited bubble has left the path; 0 = not limited.
    limited_until_bytes: u64,
}

impl RateSampler {
    /// A packet of `bytes` leaves at `now_ns` while `in_flight_bytes` are out without it. Returns what to carry with it.
    #[inline]
    pub fn on_send(&mut self, now_ns: u64, bytes: u64, in_flight_bytes: u64) -> SendStamp {
        if in_flight_bytes == 0 {
            // Nothing in flight: both intervals restart, so that idle time is not counted.
            self.first_sent_ns = now_ns;
            self.delivered_ns = now_ns;
        }
        let limited = if self.limited_until_bytes > 0 { LIMITED_BIT } else { 0 };
        let tx_in_flight = in_flight_bytes.saturating_add(bytes) & !LIMITED_BIT;
        SendStamp {
            sent_ns: now_ns,
            first_sent_ns: self.first_sent_ns,
            delivered_total_bytes: self.delivered_total_bytes,
            delivered_ns: self.delivered_ns,
            lost_total_bytes: self.lost_total_bytes,
            tx_in_flight_and_limit: tx_in_flight | limited,
        }
    }

    /// `bytes` are declared lost.
    pub fn on_loss(&mut self, bytes: u64) {
        self.lost_total_bytes = self.lost_total_bytes.saturating_add(bytes);
    }

    /// The application has nothing to send although the window is open, with `in_flight_bytes` out.
    pub fn on_app_limited(&mut self, in_flight_bytes: u64) {
        self.limited_until_bytes =
            self.delivered_total_bytes.saturating_add(in_flight_bytes).max(1);
    }

    /// An ACK at `now_ns` newly acknowledges `acked_bytes`, the newest packet carrying `newest`. Writes the rate sample and
    /// the totals into `sample`; samples over less than `min_rtt_ns` are invalid (0 bytes over 0 ns).
    pub fn on_ack(
        &mut self,
        now_ns: u64,
        acked_bytes: u64,
        newest: &SendStamp,
        min_rtt_ns: u64,
        sample: &mut AckSample,
    ) {
        self.delivered_total_bytes = self.delivered_total_bytes.saturating_add(acked_bytes);
        self.delivered_ns = now_ns;
        self.first_sent_ns = newest.sent_ns;
        if self.limited_until_bytes > 0 && self.delivered_total_bytes > self.limited_until_bytes {
            self.limited_until_bytes = 0;
        }
        let send_elapsed_ns = newest.sent_ns.saturating_sub(newest.first_sent_ns);
        let ack_elapsed_ns = now_ns.saturating_sub(newest.delivered_ns);
        let interval_ns = send_elapsed_ns.max(ack_elapsed_ns);
        let valid = interval_ns > 0 && interval_ns >= min_rtt_ns;
        let delivered = self.delivered_total_bytes.saturating_sub(newest.delivered_total_bytes);

        sample.sent_ns = newest.sent_ns;
        sample.delivered_bytes = if valid { delivered } else { 0 };
        sample.interval_ns = if valid { interval_ns } else { 0 };
        sample.delivered_total_bytes = self.delivered_total_bytes;
        sample.prior_delivered_total_bytes = newest.delivered_total_bytes;
        sample.tx_in_flight_bytes = newest.tx_in_flight_bytes();
        sample.lost_since_sent_bytes =
            self.lost_total_bytes.saturating_sub(newest.lost_total_bytes);
        if newest.app_limited() {
            sample.flags |= AckSample::APP_LIMITED;
        }
    }

    /// `acked_bytes` were delivered, but of no packet is it known which copy arrived: no sample, only the total.
    pub fn on_unsampled_ack(&mut self, now_ns: u64, acked_bytes: u64, sample: &mut AckSample) {
        self.delivered_total_bytes = self.delivered_total_bytes.saturating_add(acked_bytes);
        self.delivered_ns = now_ns;
        sample.delivered_total_bytes = self.delivered_total_bytes;
    }

    /// Bytes delivered since the start.
    pub fn delivered_total_bytes(&self) -> u64 {
        self.delivered_total_bytes
    }
}

const _: () = assert!(size_of::<SendStamp>() == 48);

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    /// Packets of 1000 bytes sent at 0, 10, 20 ms and acknowledged 100 ms later, 20 ms apart.
    #[test]
    fn by_hand_the_longer_interval_counts() {
        let mut sampler = RateSampler::default();
        let stamps: Vec<SendStamp> =
            (0..3).map(|i| sampler.on_send(i * 10 * MS, 1000, i * 1000)).collect();
        assert_eq!(stamps[2].tx_in_flight_bytes(), 3000);
        let mut sample = AckSample::default();
        sampler.on_ack(100 * MS, 1000, &stamps[0], 100 * MS, &mut sample);
        // Send interval 0, ACK interval 100 ms from the start of the flight.
        assert_eq!((sample.delivered_bytes, sample.interval_ns), (1000, 100 * MS));
        let reply = sampler.on_send(100 * MS, 1000, 2000);
        assert_eq!((reply.first_sent_ns, reply.delivered_ns), (0, 100 * MS));
        sampler.on_ack(120 * MS, 1000, &stamps[1], 100 * MS, &mut sample);
        assert_eq!((sample.delivered_bytes, sample.interval_ns), (2000, 120 * MS));
        sampler.on_ack(140 * MS, 1000, &stamps[2], 100 * MS, &mut sample);
        assert_eq!((sample.delivered_bytes, sample.interval_ns), (3000, 140 * MS));
        sampler.on_loss(1000);
        sampler.on_ack(200 * MS, 1000, &reply, 100 * MS, &mut sample);
        // Sent at 100 against a send reference of 0; delivered 3 packets since its ACK reference at 100.
        assert_eq!((sample.delivered_bytes, sample.interval_ns), (3000, 100 * MS));
        assert_eq!(sample.delivery_rate(), Some(30_000.0));
        assert_eq!(sample.prior_delivered_total_bytes, 1000);
        assert_eq!(sample.delivered_total_bytes, 4000);
        assert_eq!(sample.lost_since_sent_bytes, 1000);
    }

    #[test]
    fn too_short_is_invalid_and_idleness_restarts() {
        let mut sampler = RateSampler::default();
        let stamp = sampler.on_send(0, 1000, 0);
        let mut sample = AckSample::default();
        sampler.on_ack(50 * MS, 1000, &stamp, 100 * MS, &mut sample);
        assert_eq!(sample.delivery_rate(), None);
        let after_idle = sampler.on_send(9000 * MS, 1000, 0);
        sampler.on_ack(9100 * MS, 1000, &after_idle, 100 * MS, &mut sample);
        assert_eq!((sample.delivered_bytes, sample.interval_ns), (1000, 100 * MS));
    }

    #[test]
    fn app_limited_until_the_bubble_has_left() {
        let mut sampler = RateSampler::default();
        let first = sampler.on_send(0, 1000, 0);
        sampler.on_app_limited(1000);
        let second = sampler.on_send(MS, 1000, 1000);
        assert!(!first.app_limited() && second.app_limited());
        let mut sample = AckSample::default();
        sampler.on_ack(100 * MS, 1000, &first, 0, &mut sample);
        assert!(!sample.has(AckSample::APP_LIMITED));
        sampler.on_ack(101 * MS, 1000, &second, 0, &mut sample);
        assert!(sample.has(AckSample::APP_LIMITED));
        assert!(!sampler.on_send(102 * MS, 1000, 1000).app_limited());
        assert!(second.is_newer_than(&first));
    }
}
