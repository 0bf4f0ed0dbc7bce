//! The datagram endpoint: every packet is acknowledged, losses are counted, nothing is sent again.
//!
//! It is the model of the contest and of the MPC papers. An ACK tells how many packets the receiver has found missing, so
//! ACKs may be lost or reordered without being mistaken for losses. A packet is in flight until a later one is acknowledged,
//! also if its loss is told before ([`LossNotice::AtDrop`]): a window that dropped packets left at once would never be full.

use std::collections::VecDeque;

use paceline_cc::sampler::SendStamp;
use paceline_cc::{Ack, AckSample};
use paceline_net::{PS_PER_US, Picos};

use crate::events::{Alarm, NEVER};
use crate::host::{AckFacts, Host};
use crate::meter::RttMeter;
use crate::packet::{Packet, expand};
use crate::plan::{DatagramOptions, LossNotice, MAX_IN_FLIGHT};
use crate::prefetch::prefetch;
use crate::sender::Links;
use crate::transfer::Transfer;
use paceline_net::ring::SeqRing;

/// How many packets ahead to ask for a stamp: windows are megabytes, and each flow's ACKs and sendings a stream of their own.
const AHEAD: u64 = 4;

/// Stamps kept of packets below the highest acknowledged, so that a reordered ACK still gives an RTT sample.
const LATE_ACKS: u64 = 64;

pub(crate) struct DatagramSender {
    pub(crate) host: Host,
    /// See [`DatagramOptions`].
    overhead_ps: Picos,
    /// `None`: the ideal host, which handles an ACK in the moment that brings it, and never sleeps.
    slow: Option<Box<SlowHost>>,
    transfer: Transfer,
    sendings: SeqRing<SendStamp>,
    /// One past the highest packet acknowledged.
    acked_to: u64,
    /// Packets the receiver has reported missing, where it is asked.
    lost: u64,
    /// A loss episode lasts until this packet is acknowledged.
    episode_until: u64,
    /// When the silence began that the timeout measures.
    quiet_since: Picos,
    expiries: u32,
    /// See [`DatagramOptions`].
    blocking: bool,
    tell_losses: LossNotice,
    /// Send one packet whatever the window says.
    probe: bool,
    pub(crate) waits_for_pacer: bool,
    limited_until: u64,
    /// When there is something to do without a packet arriving, as of the last poll that found nothing to send.
    deadline: Picos,
}

/// What a host that takes time has beside.
#[derive(Default)]
struct SlowHost {
    /// ACKs that the host has not looked at yet, and when they came. The host can look `overhead_ps` later, but the
    /// socket has stamped them on arrival, and that is the time that counts for the RTT.
    inbox: VecDeque<(Picos, Packet)>,
    /// The blocking host sleeps until then, if `sleeps`.
    asleep_until: Picos,
    sleeps: bool,
}

impl DatagramSender {
    pub(crate) fn new(host: Host, options: DatagramOptions, transfer: Transfer) -> Self {
        Self {
            host,
            overhead_ps: options.overhead_ps,
            slow: (options.blocking || options.overhead_ps > 0).then(Box::default),
            transfer,
            sendings: SeqRing::default(),
            acked_to: 0,
            lost: 0,
            episode_until: 0,
            quiet_since: 0,
            expiries: 0,
            blocking: options.blocking,
            tell_losses: options.tell_losses,
            probe: false,
            waits_for_pacer: false,
            limited_until: 0,
            deadline: NEVER,
        }
    }

    #[inline]
    pub(crate) fn in_flight(&self) -> u64 {
        self.sendings.next() - self.acked_to
    }

    #[inline]
    pub(crate) fn is_complete(&self) -> bool {
        self.transfer.is_complete(self.acked_to)
    }

    /// An ACK reaches the host. The ideal one handles it now, any other in [`Self::poll_send`] when it gets to it. Whether
    /// there is need to poll.
    #[inline]
    pub(crate) fn on_ack(&mut self, now: Picos, packet: &Packet, meter: &mut RttMeter) -> bool {
        if let Some(slow) = &mut self.slow {
            slow.inbox.push_back((now, *packet));
            return true;
        }
        self.quiet_since = now;
        self.handle_ack(now, packet, meter);
        !self.still_waits_for_pacer(now)
    }

    /// Whether a poll of the ideal host would find what the last one has found: the pacer holds the next packet back, for as
    /// long as it did, and nothing else is due before. Most ACKs of a paced flow come while it waits so.
    #[inline]
    fn still_waits_for_pacer(&self, now: Picos) -> bool {
        let departure = self.host.departure();
        self.waits_for_pacer
            && departure > now
            && departure == self.deadline
            && departure <= self.host.timer()
            && self.host.window_allows(self.in_flight())
            && self.transfer.offers(self.sendings.next(), now)
            && self.timeout_before(departure).is_none()
    }

    #[inline]
    pub(crate) fn on_timer(&mut self, now: Picos) {
        self.host.run_timer(now);
        if self.timeout_before(now + 1).is_some() && self.inbox_due() > now {
            self.expiries += 1;
            self.quiet_since = now;
            self.probe = true;
            self.host.on_rto(now, 0, self.in_flight(), self.expiries);
        }
    }

    /// See [`crate::sender::Sender::send_all`].
    #[inline(always)]
    pub(crate) fn send_all(
        &mut self,
        now: Picos,
        meter: &mut RttMeter,
        links: &mut impl Links,
        junction: u32,
    ) -> bool {
        if self.slow.is_some() || self.tell_losses == LossNotice::AtDrop {
            return self.send_one_by_one(now, meter, links, junction);
        }
        if !self.may_send(now) {
            self.renew_deadline();
            return true;
        }
        let packet = self.send(now);
        if self.in_flight() >= MAX_IN_FLIGHT {
            return false;
        }
        // Before the packet goes its way, while what there is to look at is at hand: what becomes of it has no say in it.
        let waits = !self.may_send(now);
        if waits {
            self.renew_deadline();
        }
        links.transmit(junction, now, packet);
        // Seldom two packets leave at once: what comes every time is no loop, which would keep what it needs again.
        waits || self.send_one_by_one(now, meter, links, junction)
    }

    /// The same, where what becomes of a packet may have a say in the next, or more than one leaves.
    #[cold]
    #[inline(never)]
    fn send_one_by_one(
        &mut self,
        now: Picos,
        meter: &mut RttMeter,
        links: &mut impl Links,
        junction: u32,
    ) -> bool {
        while let Some(packet) = self.poll_send(now, meter) {
            if self.in_flight() >= MAX_IN_FLIGHT {
                return false;
            }
            if !links.transmit(junction, now, packet) {
                self.on_drop(now, &packet);
            }
        }
        true
    }

    /// The next packet to send now, if any. Takes in the ACKs that the host looks at on the way.
    pub(crate) fn poll_send(&mut self, now: Picos, meter: &mut RttMeter) -> Option<Packet> {
        let packet =
            if self.slow.is_none() { self.try_send(now) } else { self.poll_slow_host(now, meter) };
        if packet.is_none() {
            self.renew_deadline();
        }
        packet
    }

    /// See [`Self::poll_send`].
    fn poll_slow_host(&mut self, now: Picos, meter: &mut RttMeter) -> Option<Packet> {
        if !self.blocking {
            while self.take_ack(now, meter) {}
            return self.try_send(now);
        }
        // The contest's loop: fill the window first, sleeping after each packet; only then look at one ACK.
        loop {
            if let Some(slow) = &mut self.slow {
                slow.sleeps = now < slow.asleep_until;
                if slow.sleeps {
                    return None;
                }
            }
            if self.is_allowed_to_send(now) {
                return Some(self.send_and_sleep(now));
            }
            if !self.take_ack(now, meter) {
                return None;
            }
        }
    }

    fn take_ack(&mut self, now: Picos, meter: &mut RttMeter) -> bool {
        if self.inbox_due() > now {
            return false;
        }
        let oldest = self.slow.as_mut().and_then(|slow| slow.inbox.pop_front());
        let Some((arrived, packet)) = oldest else { return false };
        self.quiet_since = now;
        self.handle_late_ack(arrived, &packet, meter);
        true
    }

    #[inline(never)]
    fn handle_late_ack(&mut self, arrived: Picos, packet: &Packet, meter: &mut RttMeter) {
        self.handle_ack(arrived, packet, meter);
    }

    /// When the host can look at the next ACK.
    #[inline]
    fn inbox_due(&self) -> Picos {
        let oldest = self.slow.as_ref().and_then(|slow| slow.inbox.front());
        oldest.map_or(NEVER, |(arrived, _)| arrived + self.overhead_ps)
    }

    #[inline(always)]
    fn handle_ack(&mut self, now: Picos, packet: &Packet, meter: &mut RttMeter) {
        let seq = expand(self.sendings.next(), packet.seq());
        self.expiries = 0;
        let in_flight = self.in_flight();
        let Some(stamp) = self.sendings.get(seq) else { return };
        self.sendings.slot_of(seq + AHEAD).into_iter().for_each(prefetch);
        let limited = seq < self.limited_until;
        self.acked_to = self.acked_to.max(seq + 1);
        let facts = AckFacts {
            acked_packets: 1,
            prior_in_flight: in_flight,
            newest: Some(stamp),
            marks_seen: packet.marks_seen(),
            flags: AckSample::CUMULATIVE | if limited { AckSample::CWND_LIMITED } else { 0 },
            oldest_sent_ns: None,
        };
        let mut ack = Ack::default();
        self.host.sample(now, &facts, &mut ack);
        meter.on_rtt(now, ack.rtt_ns);
        let lost = expand(self.lost, packet.acknowledged().0);
        if lost > self.lost && self.tell_losses == LossNotice::Detected {
            let newly = (lost - self.lost) as u32;
            self.lost = lost;
            let newest = self.sendings.get(seq.wrapping_sub(1)).copied().unwrap_or_default();
            self.tell_loss(now, seq, newly, &newest, self.in_flight());
        }
        if seq < self.episode_until {
            ack.sample.flags |= AckSample::IN_RECOVERY;
        }
        if let Some(telemetry) = &mut self.host.telemetry {
            telemetry.on_ack(seq, packet, self.sendings.first());
        }
        let nothing_left = self.in_flight() == 0;
        self.host.on_ack(&mut ack, self.in_flight(), nothing_left);
        let kept_from = self.acked_to.saturating_sub(self.in_flight() + LATE_ACKS);
        while self.sendings.pop_before(kept_from).is_some() {}
    }

    /// The first link drops `packet`, which has just been sent.
    pub(crate) fn on_drop(&mut self, now: Picos, packet: &Packet) {
        let seq = expand(self.sendings.next(), packet.seq());
        if self.tell_losses == LossNotice::AtDrop
            && let Some(stamp) = self.sendings.get(seq).copied()
        {
            self.tell_loss(now, seq, 1, &stamp, self.in_flight() - 1);
        }
    }

    /// Tells the controller of `newly` lost packets, known by what happened to packet `seq`.
    fn tell_loss(&mut self, now: Picos, seq: u64, newly: u32, newest: &SendStamp, in_flight: u64) {
        let starts = seq >= self.episode_until;
        if starts {
            self.episode_until = self.sendings.next();
        }
        self.host.on_loss(now, newly, newest, in_flight, starts);
    }

    fn try_send(&mut self, now: Picos) -> Option<Packet> {
        self.may_send(now).then(|| self.send(now))
    }

    /// Whether a packet may leave now; takes note of what holds it back.
    #[inline(always)]
    fn may_send(&mut self, now: Picos) -> bool {
        let is_allowed = self.is_allowed_to_send(now);
        self.waits_for_pacer = is_allowed && self.host.departure() > now;
        is_allowed && !self.waits_for_pacer
    }

    /// Whether a packet may leave now as far as the pacer has no say in it. A host that sleeps between packets asks no more.
    #[inline(always)]
    fn is_allowed_to_send(&mut self, now: Picos) -> bool {
        let seq = self.sendings.next();
        if !self.transfer.offers(seq, now) {
            self.host.on_app_limited(self.in_flight());
            return false;
        }
        if !self.host.window_allows(self.in_flight()) && !self.probe {
            self.limited_until = seq;
            return false;
        }
        true
    }

    /// The blocking host sends, and sleeps as long as the packet takes at the pacing rate.
    fn send_and_sleep(&mut self, now: Picos) -> Packet {
        let is_paced = self.host.pacing_bytes_per_s().is_some();
        // Before the controller hears of the packet.
        let gap = self.host.pacing_gap(self.transfer.data(self.sendings.next(), now).bytes());
        let packet = self.send(now);
        self.quiet_since = now;
        if is_paced && let Some(slow) = &mut self.slow {
            // usleep() takes whole microseconds.
            let gap = gap / PS_PER_US * PS_PER_US;
            slow.asleep_until = now.saturating_add(gap).saturating_add(self.overhead_ps);
            self.quiet_since = slow.asleep_until;
        }
        packet
    }

    #[inline(always)]
    fn send(&mut self, now: Picos) -> Packet {
        let (seq, in_flight) = (self.sendings.next(), self.in_flight());
        self.probe = false;
        if in_flight == 0 {
            self.quiet_since = now;
        }
        let packet = self.transfer.data(seq, now);
        let stamp = self.host.on_send(now, packet.bytes(), in_flight, false);
        self.sendings.push(stamp);
        self.sendings.slot_of(seq + AHEAD).into_iter().for_each(prefetch);
        packet
    }

    /// Whether a window of less than a packet holds the next one back. Nothing but the timeout will open it.
    fn is_shut(&self) -> bool {
        self.limited_until == self.sendings.next() && !self.host.window_allows(0)
    }

    /// When the silence will have lasted too long, if that is before `limit`.
    #[inline(always)]
    fn timeout_before(&self, limit: Picos) -> Option<Picos> {
        if self.in_flight() == 0 && !self.is_shut() {
            return None;
        }
        // The least that it can be settles it nearly always.
        if self.quiet_since.saturating_add(self.host.least_silence()) >= limit {
            return None;
        }
        Some(self.quiet_since.saturating_add(self.host.silence())).filter(|at| *at < limit)
    }

    /// The packet that will be sent next.
    pub(crate) fn next_seq(&self) -> u64 {
        self.sendings.next()
    }

    /// When packet `seq` was sent, ns; `None` if it was not, or so long ago that it is forgotten.
    pub(crate) fn sent_ns(&self, seq: u64) -> Option<u64> {
        self.sendings.get(seq).map(|stamp| stamp.sent_ns)
    }

    /// When [`Self::on_timer`] or [`Self::poll_send`] has something to do without a packet arriving. To be polled first.
    #[inline]
    pub(crate) fn deadline(&self) -> Picos {
        self.deadline
    }

    #[inline(always)]
    fn renew_deadline(&mut self) {
        let pacer = if self.waits_for_pacer { self.host.departure() } else { NEVER };
        let mut first = pacer.min(self.host.timer());
        let Some(slow) = &self.slow else {
            self.deadline = self.timeout_before(first).unwrap_or(first);
            return;
        };
        let awake = slow.asleep_until;
        first = first.min(self.inbox_due().max(awake));
        if slow.sleeps {
            first = first.min(awake);
        }
        self.deadline =
            self.timeout_before(first).map_or(first, |timeout| timeout.max(awake).min(first));
    }
}

/// The receiving side: acknowledges each packet, at once or, on a host that takes time, that much after it came.
#[derive(Debug)]
pub(crate) struct DatagramReceiver {
    /// One past the highest packet received.
    next: u64,
    /// Packets below it that have not come.
    missing: u64,
    /// Of a host that takes time.
    outbox: Option<Box<Outbox>>,
}

/// ACKs that the host has not sent yet.
#[derive(Debug)]
struct Outbox {
    overhead_ps: Picos,
    /// By when they are due.
    acks: VecDeque<(Picos, Packet)>,
    alarm: Alarm,
}

impl DatagramReceiver {
    /// Of a host that takes `overhead_ps` for a packet.
    pub(crate) fn new(overhead_ps: Picos) -> Self {
        let outbox = || Outbox { overhead_ps, acks: VecDeque::new(), alarm: Alarm::default() };
        Self { next: 0, missing: 0, outbox: (overhead_ps > 0).then(|| Box::new(outbox())) }
    }

    /// A data packet comes. The ACK to send at once; that of a host that takes time waits for [`Self::on_timer`].
    #[inline]
    pub(crate) fn on_data(&mut self, now: Picos, packet: &Packet) -> Option<Packet> {
        let seq = expand(self.next, packet.seq());
        if seq >= self.next {
            self.missing += seq - self.next;
            self.next = seq + 1;
        } else {
            self.missing = self.missing.saturating_sub(1);
        }
        let ack = packet.acknowledging(self.missing, (0, 0), 0);
        let Some(outbox) = &mut self.outbox else { return Some(ack) };
        outbox.acks.push_back((now + outbox.overhead_ps, ack));
        None
    }

    /// The alarm has gone off, or may have: the next ACK that is due, if any.
    pub(crate) fn on_timer(&mut self, now: Picos) -> Option<Packet> {
        let outbox = self.outbox.as_mut()?;
        outbox.alarm.goes_off(now);
        let is_due = outbox.acks.front().is_some_and(|(due, _)| *due <= now);
        if is_due { outbox.acks.pop_front().map(|(_, ack)| ack) } else { None }
    }

    /// When [`Self::on_timer`] is to be called.
    pub(crate) fn deadline(&self) -> Picos {
        let first = self.outbox.as_ref().and_then(|outbox| outbox.acks.front());
        first.map_or(NEVER, |(due, _)| *due)
    }

    /// The alarm to set after a step, if one is needed.
    #[inline]
    pub(crate) fn alarm(&mut self, now: Picos) -> Option<Picos> {
        let deadline = self.deadline();
        self.outbox.as_mut()?.alarm.until(deadline, now)
    }
}
