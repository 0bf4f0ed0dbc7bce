//! The sending side of TCP.
//!
//! Loss recovery follows RFC 6675 with the scoreboard's rules, PRR (RFC 9937) for controllers that do not pace themselves,
//! RFC 6298 for the timer, and RFC 2883 (DSACK) to notice that an episode was reordering.

use paceline_cc::{Ack, AckSample};
use paceline_net::{PS_PER_NS, PS_PER_S, Picos};

use super::scoreboard::{Lost, Scoreboard, TcpAck};
use crate::events::NEVER;
use crate::host::{AckFacts, Host};
use crate::meter::RttMeter;
use crate::packet::{Packet, expand};
use crate::plan::{MAX_IN_FLIGHT, TcpOptions};
use crate::prefetch::prefetch_unaligned;
use crate::sender::Links;
use crate::transfer::Transfer;

/// First timer of the handshake (RFC 6298 §2.1) and its bound (§2.5).
const SYN_TIMEOUT_PS: Picos = PS_PER_S;
const MAX_SYN_TIMEOUT_PS: Picos = 60 * PS_PER_S;

enum State {
    /// Nothing sent yet.
    Closed,
    /// The opening was sent `attempts` times; `expired` = send it again.
    Opening {
        attempts: u32,
        expired: bool,
    },
    Open,
}

/// The retransmission timer. Started anew by every ACK that brings something, so what it is set to is worked out only when it
/// is looked at: the timeout does not change in between.
#[derive(Clone, Copy)]
enum RetransmissionTimer {
    Off,
    /// The opening is repeated at [`TcpSender::timer_time`].
    Opening,
    /// Runs since [`TcpSender::timer_time`], for the timeout of RFC 6298.
    Running,
}

/// A stretch of repair: from the first loss until all that was sent before it is acknowledged.
struct Recovery {
    /// Ends when the cumulative acknowledgement reaches this.
    until: u64,
    /// Began with a timeout: the window restarts from one segment and may grow.
    timeout: bool,
    prr: Prr,
}

/// Proportional rate reduction (RFC 9937 §6), in packets.
#[derive(Default)]
struct Prr {
    /// Flight size at the start.
    recover_fs: u64,
    delivered: u64,
    out: u64,
    /// May be sent now.
    send_count: u64,
}

/// What it would take to find an episode spurious: one DSACK for every retransmission.
struct Suspicion {
    started_ns: u64,
    unconfirmed: u32,
    resent: bool,
}

impl Suspicion {
    fn of(started_ns: u64) -> Self {
        Self { started_ns, unconfirmed: 0, resent: false }
    }
}

/// What an ACK seldom touches is at the end, or in a box; see [`Host`].
#[repr(C)]
pub(crate) struct TcpSender {
    pub(crate) host: Host,
    board: Scoreboard,
    transfer: Transfer,
    /// What it says depends on `timer`.
    timer_time: Picos,
    /// ACKs of segments below this come from a full window.
    limited_until: u64,
    recovery: Option<Box<Recovery>>,
    /// How often the timer has expired since the last progress.
    expiries: u32,
    timer: RetransmissionTimer,
    waits_for_pacer: bool,
    /// See [`TcpOptions`].
    handshake: bool,
    prr: bool,
    state: State,
    suspicion: Option<Suspicion>,
}

impl TcpSender {
    pub(crate) fn new(host: Host, options: TcpOptions, transfer: Transfer) -> Self {
        Self {
            host,
            board: Scoreboard::new(),
            transfer,
            timer_time: 0,
            limited_until: 0,
            recovery: None,
            expiries: 0,
            timer: RetransmissionTimer::Off,
            waits_for_pacer: false,
            handshake: options.handshake,
            prr: options.prr,
            state: State::Closed,
            suspicion: None,
        }
    }

    pub(crate) fn in_flight(&self) -> u64 {
        self.board.in_flight()
    }

    /// The window in force, bytes: the controller's, or what proportional rate reduction makes of it.
    pub(crate) fn cwnd_bytes(&self) -> u64 {
        match self.recovery.as_deref() {
            Some(Recovery { timeout: false, prr, .. }) if self.prr && !self.host.is_paced() => {
                self.host.bytes_of(self.board.in_flight() + prr.send_count)
            }
            _ => self.host.asked.cwnd_bytes,
        }
    }

    #[inline]
    pub(crate) fn prefetch_segments(&self, ack: &Packet) {
        self.board.prefetch(ack.seq());
        self.prefetch_recovery();
    }

    /// Fetches what [`Self::cwnd_bytes`] looks at outside this struct.
    #[inline]
    pub(crate) fn prefetch_recovery(&self) {
        self.recovery.iter().for_each(|recovery| prefetch_unaligned(&**recovery));
    }

    /// Everything was delivered and acknowledged.
    pub(crate) fn is_complete(&self) -> bool {
        self.transfer.is_complete(self.board.una())
    }

    pub(crate) fn on_ack(&mut self, now: Picos, packet: &Packet, meter: &mut RttMeter) {
        if packet.flags() & Packet::SYN != 0 {
            return self.on_syn_ack(now, meter);
        }
        let una = self.board.una();
        let (cumulative, block) = packet.acknowledged();
        let ack = TcpAck {
            cumulative: expand(una, cumulative),
            block: (expand(una, block.0), expand(una, block.1)),
            trigger: expand(una, packet.seq()),
            copy: packet.copy(),
        };
        let prior_in_flight = self.board.in_flight();
        let delivered = self.board.on_ack(&ack);
        if packet.flags() & Packet::DUPLICATE != 0 {
            self.on_duplicate(now);
        }
        if delivered.packets == 0 {
            return;
        }
        let mut facts = AckFacts {
            acked_packets: delivered.packets,
            prior_in_flight,
            newest: delivered.newest.and_then(|seq| self.board.stamp(seq)),
            oldest_sent_ns: delivered.oldest_sent_ns,
            marks_seen: packet.marks_seen(),
            ..AckFacts::default()
        };
        let flag = |on: bool, flag: u32| if on { flag } else { 0 };
        facts.flags = flag(delivered.retransmitted, AckSample::RETRANSMIT)
            | flag(delivered.cumulative, AckSample::CUMULATIVE)
            | flag(una < self.limited_until, AckSample::CWND_LIMITED);
        let mut sample = Ack::default();
        let rtt_ns = self.host.sample(now, &facts, &mut sample);
        meter.on_rtt(now, rtt_ns);

        let lost = self.board.detect_losses();
        if lost.packets > 0 {
            self.on_loss(now, &lost);
        }
        if self.recovery.as_ref().is_some_and(|r| self.board.una() >= r.until) {
            self.recovery = None;
            self.board.on_repaired();
        }
        if self.recovery.as_ref().is_some_and(|r| !r.timeout) {
            sample.sample.flags |= AckSample::IN_RECOVERY;
        }
        if let Some(telemetry) = &mut self.host.telemetry {
            telemetry.on_ack(ack.trigger, packet, self.board.una());
        }
        let nothing_left = self.board.una() == self.board.next();
        self.host.on_ack(&mut sample, self.board.in_flight(), nothing_left);
        self.update_prr(u64::from(delivered.packets), delivered.cumulative && lost.packets == 0);
        self.expiries = 0;
        self.timer_time = now;
        self.timer =
            if nothing_left { RetransmissionTimer::Off } else { RetransmissionTimer::Running };
    }

    fn on_syn_ack(&mut self, now: Picos, meter: &mut RttMeter) {
        if let State::Opening { attempts, .. } = self.state {
            self.state = State::Open;
            self.timer = RetransmissionTimer::Off;
            if attempts == 1 {
                let sent = self.timer_time - SYN_TIMEOUT_PS;
                let rtt_ns = self.host.clock_ns(now) - self.host.clock_ns(sent);
                self.host.rtt.on_sample(rtt_ns);
                meter.on_rtt(now, rtt_ns);
            }
        }
    }

    fn on_loss(&mut self, now: Picos, lost: &Lost) {
        let starts = self.recovery.is_none();
        if starts {
            let flight = self.board.next() - self.board.una();
            let prr = Prr { recover_fs: flight, send_count: 1, ..Prr::default() };
            let until = self.board.next();
            self.recovery = Some(Box::new(Recovery { until, timeout: false, prr }));
            self.suspicion = Some(Suspicion::of(self.host.clock_ns(now)));
        }
        self.host.on_loss(
            now,
            lost.packets,
            &self.board.newest_lost(),
            self.board.in_flight(),
            starts,
        );
    }

    /// A segment arrived twice: its retransmission had been needless.
    fn on_duplicate(&mut self, now: Picos) {
        let Some(suspicion) = &mut self.suspicion else { return };
        suspicion.unconfirmed = suspicion.unconfirmed.saturating_sub(1);
        if suspicion.resent && suspicion.unconfirmed == 0 {
            let started_ns = suspicion.started_ns;
            (self.suspicion, self.recovery) = (None, None);
            self.host.on_spurious_loss(now, started_ns);
        }
    }

    fn update_prr(&mut self, delivered: u64, safe: bool) {
        let Some(Recovery { prr, timeout: false, .. }) = self.recovery.as_deref_mut() else {
            return;
        };
        let (ssthresh, pipe) = (self.host.cwnd_packets(), self.board.in_flight());
        prr.delivered += delivered;
        prr.send_count = if pipe > ssthresh {
            (prr.delivered * ssthresh).div_ceil(prr.recover_fs.max(1)).saturating_sub(prr.out)
        } else {
            let limit = prr.delivered.saturating_sub(prr.out).max(delivered) + u64::from(safe);
            limit.min(ssthresh - pipe)
        };
        if prr.out == 0 {
            prr.send_count = prr.send_count.max(1);
        }
    }

    /// Handles whatever timer is due.
    pub(crate) fn on_timer(&mut self, now: Picos) {
        if self.expires_at() <= now {
            match &mut self.state {
                State::Opening { expired, .. } => {
                    *expired = true;
                    self.host.counters.timeouts += 1;
                }
                _ => self.on_rto(now),
            }
        }
        self.host.run_timer(now);
    }

    fn on_rto(&mut self, now: Picos) {
        let prior_in_flight = self.board.in_flight();
        let lost = self.board.on_rto();
        self.expiries += 1;
        let until = self.board.next();
        self.recovery = Some(Box::new(Recovery { until, timeout: true, prr: Prr::default() }));
        self.suspicion = Some(Suspicion::of(self.host.clock_ns(now)));
        self.host.on_rto(now, lost.packets, prior_in_flight, self.expiries);
        (self.timer, self.timer_time) = (RetransmissionTimer::Running, now);
    }

    /// When the retransmission timer expires.
    fn expires_at(&self) -> Picos {
        match self.timer {
            RetransmissionTimer::Off => NEVER,
            RetransmissionTimer::Opening => self.timer_time,
            RetransmissionTimer::Running => self.timeout_after(self.host.rtt.rto_ns()),
        }
    }

    /// When the running timer expires if the timeout is `timeout_ns`.
    #[inline]
    fn timeout_after(&self, timeout_ns: u64) -> Picos {
        self.timer_time.saturating_add(timeout_ns.saturating_mul(PS_PER_NS))
    }

    /// See [`crate::sender::Sender::send_all`].
    #[inline(always)]
    pub(crate) fn send_all(&mut self, now: Picos, links: &mut impl Links, junction: u32) -> bool {
        if !self.is_open() {
            self.open(now, links, junction);
            return true;
        }
        let Some((seq, again)) = self.next_to_send(now) else { return true };
        let packet = self.send(now, seq, again);
        if self.in_flight() >= MAX_IN_FLIGHT {
            return false;
        }
        // Before the packet goes its way, while what there is to look at is at hand: what becomes of it has no say in it.
        let next = self.next_to_send(now);
        links.transmit(junction, now, packet);
        // Mostly one packet leaves when one has arrived: what comes every time is no loop, which would keep what it needs again.
        next.is_none_or(|next| self.send_from(next, now, links, junction))
    }

    /// Sends the packet `first`, and all that may leave after it. False if [`MAX_IN_FLIGHT`] then are in flight.
    #[inline(never)]
    fn send_from(
        &mut self,
        first: (u64, bool),
        now: Picos,
        links: &mut impl Links,
        junction: u32,
    ) -> bool {
        let mut next = Some(first);
        while let Some((seq, again)) = next {
            let packet = self.send(now, seq, again);
            if self.in_flight() >= MAX_IN_FLIGHT {
                return false;
            }
            links.transmit(junction, now, packet);
            next = self.next_to_send(now);
        }
        true
    }

    #[cold]
    #[inline(never)]
    fn open(&mut self, now: Picos, links: &mut impl Links, junction: u32) {
        if let Some(opening) = self.poll_syn(now) {
            links.transmit(junction, now, opening);
        }
    }

    /// The next packet to send now, if the window and the pacer allow one.
    #[cfg(test)]
    pub(crate) fn poll_send(&mut self, now: Picos) -> Option<Packet> {
        if !self.is_open() {
            return self.poll_syn(now);
        }
        let (seq, again) = self.next_to_send(now)?;
        Some(self.send(now, seq, again))
    }

    /// The number of the packet to send now, if one may leave, and whether it is sent again.
    #[inline(always)]
    fn next_to_send(&mut self, now: Picos) -> Option<(u64, bool)> {
        self.waits_for_pacer = false;
        let lost = self.board.next_to_resend();
        let seq = lost.or_else(|| self.next_new(now))?;
        if !self.window_allows() {
            self.limited_until = self.board.next();
            return None;
        }
        if self.host.departure() > now {
            self.waits_for_pacer = true;
            return None;
        }
        Some((seq, lost.is_some()))
    }

    /// Whether data may be sent: at once if the connection needs no handshake.
    #[inline]
    fn is_open(&mut self) -> bool {
        if !self.handshake {
            self.state = State::Open;
        }
        matches!(self.state, State::Open)
    }

    fn poll_syn(&mut self, now: Picos) -> Option<Packet> {
        let attempts = match self.state {
            State::Closed => 1,
            State::Opening { attempts, expired: true, .. } => attempts + 1,
            _ => return None,
        };
        self.state = State::Opening { attempts, expired: false };
        let timeout = (SYN_TIMEOUT_PS << (attempts - 1).min(6)).min(MAX_SYN_TIMEOUT_PS);
        (self.timer, self.timer_time) = (RetransmissionTimer::Opening, now + timeout);
        Some(self.transfer.opening(now))
    }

    fn next_new(&mut self, now: Picos) -> Option<u64> {
        let seq = self.board.next();
        let more = self.transfer.offers(seq, now);
        if !more {
            self.host.on_app_limited(self.board.in_flight());
        }
        more.then_some(seq)
    }

    fn window_allows(&self) -> bool {
        match self.recovery.as_deref() {
            Some(Recovery { timeout: false, prr, .. }) if self.prr && !self.host.is_paced() => {
                prr.send_count > 0
            }
            // One retransmission at the start of an episode is exempt from the window (rule 3).
            Some(Recovery { timeout: false, prr: Prr { out: 0, .. }, .. }) => true,
            _ => self.host.window_allows(self.board.in_flight()),
        }
    }

    #[inline(always)]
    fn send(&mut self, now: Picos, seq: u64, again: bool) -> Packet {
        let packet = self.transfer.data(seq, now);
        let in_flight = self.board.in_flight();
        let stamp = self.host.on_send(now, packet.bytes(), in_flight, again);
        let copies = self.board.on_send(seq, stamp);
        if let Some(recovery) = &mut self.recovery {
            recovery.prr.out += 1;
            recovery.prr.send_count = recovery.prr.send_count.saturating_sub(1);
        }
        if let Some(suspicion) = &mut self.suspicion
            && again
        {
            suspicion.unconfirmed += 1;
            suspicion.resent = true;
        }
        if let RetransmissionTimer::Off = self.timer {
            (self.timer, self.timer_time) = (RetransmissionTimer::Running, now);
        }
        packet.as_copy(copies).of_path(self.host.rtt.srtt_ns())
    }

    /// When [`Self::on_timer`] or [`Self::poll_send`] has something to do without an ACK.
    pub(crate) fn deadline(&self) -> Picos {
        self.expires_at().min(self.other_deadline())
    }

    /// A time that [`Self::deadline`] is not before, found without working out the timeout.
    #[inline]
    pub(crate) fn earliest_deadline(&self) -> Picos {
        let expires = match self.timer {
            RetransmissionTimer::Off => NEVER,
            RetransmissionTimer::Opening => self.timer_time,
            RetransmissionTimer::Running => self.timeout_after(self.host.rtt.min_rto_ns()),
        };
        expires.min(self.other_deadline())
    }

    #[inline]
    fn other_deadline(&self) -> Picos {
        let pacer = if self.waits_for_pacer { self.host.departure() } else { NEVER };
        pacer.min(self.host.timer())
    }
}
