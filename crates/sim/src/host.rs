//! What both senders share: the controller, what it is fed from (RTT estimate, rate samples), and obedience to what it asks
//! (pacing). The rules of `paceline_cc::controller` are kept here.

use paceline_cc::event::{Ack, Loss, PathInfo, Resume, Sent, Timeout, Undo};
use paceline_cc::rtt::RttEstimator;
use paceline_cc::sampler::{RateSampler, SendStamp};
use paceline_cc::{AckSample, Control, Controller};
use paceline_net::{PS_PER_NS, PS_PER_S, PS_PER_US, Picos};

use crate::packet::Packet;
use crate::prefetch::prefetch_bytes;
use crate::telemetry::Telemetry;

/// Shortest distance between two timer calls.
const MIN_TIMER_PS: Picos = PS_PER_US;

/// What a flow counts over the whole run on its sending side.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct SendCounters {
    pub(crate) packets: u64,
    pub(crate) bytes: u64,
    pub(crate) retransmitted: u64,
    pub(crate) timeouts: u64,
}

/// The facts of one step that the endpoint knows and the controller is told.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct AckFacts<'a> {
    pub(crate) acked_packets: u32,
    pub(crate) prior_in_flight: u64,
    /// Stamp of the newest packet known to have arrived.
    pub(crate) newest: Option<&'a SendStamp>,
    /// When the oldest packet newly acknowledged was sent, ns, if it is known and not ambiguous (Karn).
    pub(crate) oldest_sent_ns: Option<u64>,
    /// [`Packet::marks_seen`] of the ACK.
    pub(crate) marks_seen: u16,
    pub(crate) flags: u32,
}

/// What the controller asks: its [`Control`], but for the timer.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Asked {
    pub(crate) cwnd_bytes: u64,
    pacing_bytes_per_s: u64,
    send_quantum_bytes: u64,
    timeout_ns: u64,
}

/// In the order in which an ACK and what it lets go touch it, and what they seldom touch at the end: with thousands of flows
/// the lines that it takes up are what a packet costs.
#[repr(C)]
pub(crate) struct Host {
    controller: Box<dyn Controller>,
    pub(crate) asked: Asked,
    /// For [`Self::silence`], so that it need not be worked out with every packet.
    least_silence: Picos,
    /// Upper bound of the pacing rate, or [`Control::UNPACED`].
    cap_bytes_per_s: u64,
    timer_at: Picos,
    /// The latest time the controller was told, ns.
    told_ns: u64,
    /// Granularity of the clock that the controller is shown, ns.
    clock_ns: u64,
    pub(crate) rtt: RttEstimator,
    sampler: RateSampler,
    /// Bytes the controller counts for a packet.
    packet_bytes: u16,
    /// Marks that the controller has been told of, modulo [`Packet::MARKS_MODULUS`].
    marks_told: u16,
    wants_send_events: bool,
    /// Nothing has been in flight since the last ACK.
    is_idle: bool,
    /// Size of the last packet, and so most likely of the next; 0 where `gap` is not known.
    gap_bytes: u16,
    /// What is left of the burst that the pacer let go last.
    burst_left_bytes: u64,
    /// Earliest time that these let a packet go.
    departure: Picos,
    pub(crate) counters: SendCounters,
    /// When the pacer lets the next packet leave.
    next_departure: Picos,
    /// How long a packet of `gap_bytes` takes at the pacing rate.
    gap: Picos,
    /// For a controller that needs it.
    pub(crate) telemetry: Option<Box<Telemetry>>,
}

impl Host {
    pub(crate) fn new(
        controller: Box<dyn Controller>,
        path: &PathInfo,
        rtt: RttEstimator,
        cap_bytes_per_s: Option<u64>,
        wants_send_events: bool,
        clock_ps: Picos,
    ) -> Self {
        let control = controller.control();
        let mut this = Self {
            controller,
            asked: Asked {
                cwnd_bytes: control.cwnd_bytes,
                pacing_bytes_per_s: control.pacing_bytes_per_s,
                send_quantum_bytes: control.send_quantum_bytes,
                timeout_ns: control.timeout_ns,
            },
            least_silence: 0,
            cap_bytes_per_s: cap_bytes_per_s.unwrap_or(Control::UNPACED),
            timer_at: control.next_timer_ns.saturating_mul(PS_PER_NS),
            told_ns: 0,
            clock_ns: (clock_ps / PS_PER_NS).max(1),
            rtt,
            sampler: RateSampler::new(path.packet_bytes),
            // A packet on the wire is no larger.
            packet_bytes: path.packet_bytes.min(u16::MAX.into()) as u16,
            marks_told: 0,
            wants_send_events,
            is_idle: false,
            gap_bytes: 0,
            burst_left_bytes: 0,
            departure: 0,
            counters: SendCounters::default(),
            next_departure: 0,
            gap: 0,
            telemetry: None,
        };
        this.renew_departure();
        this.renew_silence();
        this
    }

    #[inline]
    pub(crate) fn prefetch_controller(&self) {
        // Most of what a controller takes; asking for its size would be one more miss.
        let start: *const dyn Controller = &*self.controller;
        prefetch_bytes(start.cast(), 144);
    }

    /// The clock as this host reads it, ns.
    #[inline]
    pub(crate) fn clock_ns(&self, now: Picos) -> u64 {
        let ns = now / PS_PER_NS;
        if self.clock_ns == 1 { ns } else { ns - ns % self.clock_ns }
    }

    /// The time to tell the controller. An ACK that waited for its host counts from its arrival, which may lie before what
    /// was told since; time never goes back (rule 2).
    #[inline]
    fn tell_ns(&mut self, now: Picos) -> u64 {
        self.told_ns = self.told_ns.max(self.clock_ns(now));
        self.told_ns
    }

    /// `packets` in the controller's bytes.
    #[inline]
    pub(crate) fn bytes_of(&self, packets: u64) -> u64 {
        packets * u64::from(self.packet_bytes)
    }

    /// The window in whole packets.
    pub(crate) fn cwnd_packets(&self) -> u64 {
        self.asked.cwnd_bytes / u64::from(self.packet_bytes)
    }

    /// Whether the window lets one more packet out when `in_flight` are (rule 3).
    #[inline]
    pub(crate) fn window_allows(&self, in_flight: u64) -> bool {
        self.bytes_of(in_flight + 1) <= self.asked.cwnd_bytes
    }

    /// The rate to pace at, bytes/s: the controller's or the cap, whichever is lower.
    #[inline]
    pub(crate) fn pacing_bytes_per_s(&self) -> Option<u64> {
        let rate = self.asked.pacing_bytes_per_s.min(self.cap_bytes_per_s);
        (rate != Control::UNPACED).then_some(rate.max(1))
    }

    /// Pacing has begun or ended.
    #[cold]
    #[inline(never)]
    fn on_pacing_change(&mut self) {
        self.renew_departure();
    }

    /// Whether the controller itself shapes its sending during recovery (then the host adds no PRR).
    #[inline]
    pub(crate) fn is_paced(&self) -> bool {
        self.asked.pacing_bytes_per_s != Control::UNPACED
    }

    /// Earliest time the pacer lets a packet go.
    #[inline]
    pub(crate) fn departure(&self) -> Picos {
        self.departure
    }

    /// When the next burst, or the next packet of one, is due by the pacing rate; and whether there is one to go on with.
    pub(crate) fn schedule(&self) -> (Picos, bool) {
        (self.next_departure, self.burst_left_bytes >= self.bytes_of(1))
    }

    /// Lets the pacer release the next packet at `time` instead.
    pub(crate) fn reschedule(&mut self, time: Picos) {
        self.next_departure = time;
        self.renew_departure();
    }

    #[cold]
    #[inline(never)]
    fn renew_silence(&mut self) {
        let asked_ns = self.asked.timeout_ns;
        let least_ns = if asked_ns > 0 { asked_ns } else { self.rtt.min_rto_ns() };
        self.least_silence = least_ns.saturating_mul(PS_PER_NS);
    }

    /// How long a silence may last, in a host that heeds the controller's timeout: [`Self::silence`] is never less.
    #[inline]
    pub(crate) fn least_silence(&self) -> Picos {
        self.least_silence
    }

    /// How long it may last now.
    pub(crate) fn silence(&self) -> Picos {
        match self.asked.timeout_ns {
            0 => self.rtt.rto_ns().saturating_mul(PS_PER_NS),
            asked_ns => asked_ns.saturating_mul(PS_PER_NS),
        }
    }

    #[inline]
    fn renew_departure(&mut self) {
        let is_free =
            self.burst_left_bytes >= self.bytes_of(1) || self.pacing_bytes_per_s().is_none();
        self.departure = if is_free { 0 } else { self.next_departure };
    }

    /// Time a packet of `bytes` takes at the pacing rate; 0 without one.
    #[inline]
    pub(crate) fn pacing_gap(&mut self, bytes: u16) -> Picos {
        let Some(rate) = self.pacing_bytes_per_s() else { return 0 };
        if self.gap_bytes != bytes {
            self.gap_bytes = bytes;
            // 2^16 bytes x 10^12 fit.
            self.gap = u64::from(bytes) * PS_PER_S / rate;
        }
        self.gap
    }

    /// A packet leaves: charges the pacer, tells the controller, stamps the packet.
    #[inline(always)]
    pub(crate) fn on_send(
        &mut self,
        now: Picos,
        packet_bytes: u16,
        in_flight: u64,
        again: bool,
    ) -> SendStamp {
        let bytes = u64::from(packet_bytes);
        self.counters.packets += 1;
        self.counters.bytes += bytes;
        self.counters.retransmitted += u64::from(again);
        let now_ns = self.clock_ns(now);
        if in_flight == 0 && self.is_idle {
            self.on_resume(now);
        }
        if self.pacing_bytes_per_s().is_some() {
            let gap = self.pacing_gap(packet_bytes);
            if self.burst_left_bytes >= bytes {
                self.burst_left_bytes -= bytes;
                self.next_departure = self.next_departure.saturating_add(gap);
            } else {
                self.burst_left_bytes = self.asked.send_quantum_bytes.saturating_sub(bytes);
                self.next_departure = self.next_departure.max(now).saturating_add(gap);
            }
            self.renew_departure();
        }
        let stamp = self.sampler.on_send(now_ns, in_flight);
        if self.wants_send_events {
            self.tell_of_sending(now, bytes, in_flight + 1);
        }
        stamp
    }

    /// Apart, as [`Self::tell_of_sending`] is: in line, they would take registers from what every packet needs.
    #[cold]
    #[inline(never)]
    fn on_resume(&mut self, now: Picos) {
        self.is_idle = false;
        let idle_ns = self.clock_ns(now).saturating_sub(self.sampler.last_ack_ns());
        let now_ns = self.tell_ns(now);
        self.controller.on_resume(&Resume { now_ns, idle_ns });
        self.reread();
    }

    #[inline(never)]
    fn tell_of_sending(&mut self, now: Picos, bytes: u64, in_flight: u64) {
        let in_flight_bytes = self.bytes_of(in_flight);
        let now_ns = self.tell_ns(now);
        self.controller.on_send(&Sent { now_ns, bytes, in_flight_bytes });
        self.reread();
    }

    /// Packets were found lost, the newest of them carrying `newest`. `in_flight` is what is left.
    pub(crate) fn on_loss(
        &mut self,
        now: Picos,
        lost: u32,
        newest: &SendStamp,
        in_flight: u64,
        starts: bool,
    ) {
        let lost_bytes = self.bytes_of(u64::from(lost));
        self.sampler.on_loss(lost);
        let flag = |on: bool, flag: u32| if on { flag } else { 0 };
        let in_flight_bytes = self.bytes_of(in_flight);
        let now_ns = self.tell_ns(now);
        self.controller.on_loss(&Loss {
            now_ns,
            lost_bytes,
            newest_lost_sent_ns: newest.sent_ns,
            in_flight_bytes,
            prior_in_flight_bytes: in_flight_bytes + lost_bytes,
            lost_packets: lost,
            flags: flag(starts, Loss::EPISODE_START)
                | flag(newest.app_limited(), Loss::APP_LIMITED),
            tx_in_flight_bytes: self.bytes_of(newest.tx_in_flight_packets().into()),
            lost_since_sent_bytes: self.bytes_of(self.sampler.lost_since(newest).into()),
        });
        self.reread();
    }

    /// Writes the RTT and the rate sample of an ACK into `ack`, before losses are looked for. Returns the RTT that the estimate
    /// takes in, ns, or 0: that of the oldest packet newly acknowledged, as a timestamp measures it (RFC 7323 §4.3), so that a
    /// timeout allows for a delayed ACK. The controller is shown the newest packet's, which is the path's.
    ///
    /// In place: to return it would be to copy it, right after it was written piece by piece.
    #[inline(always)]
    pub(crate) fn sample(&mut self, now: Picos, facts: &AckFacts<'_>, ack: &mut Ack<'_>) -> u64 {
        let rtt_ns = facts.newest.map_or(0, |stamp| self.clock_ns(now) - stamp.sent_ns);
        let now_ns = self.tell_ns(now);
        let longest_ns = match facts.oldest_sent_ns {
            Some(sent_ns) if facts.flags & AckSample::RETRANSMIT == 0 => {
                self.clock_ns(now) - sent_ns
            }
            _ => rtt_ns,
        };
        if rtt_ns > 0 {
            self.rtt.on_ack(longest_ns, rtt_ns);
        }
        let acked_bytes = self.bytes_of(u64::from(facts.acked_packets));
        let sample = &mut ack.sample;
        sample.now_ns = now_ns;
        sample.acked_bytes = acked_bytes;
        sample.acked_packets = facts.acked_packets;
        sample.rtt_ns = rtt_ns;
        sample.srtt_ns = self.rtt.srtt_ns();
        sample.min_rtt_ns = self.rtt.min_rtt_ns();
        sample.prior_in_flight_bytes = self.bytes_of(facts.prior_in_flight);
        sample.flags = facts.flags;
        if facts.marks_seen != self.marks_told {
            sample.ce_packets = self.new_marks(facts);
        }
        match facts.newest {
            Some(stamp) => {
                let min_rtt_ns = self.rtt.min_rtt_ns();
                self.sampler.on_ack(now_ns, facts.acked_packets, stamp, min_rtt_ns, sample);
            }
            None => self.sampler.on_unsampled_ack(now_ns, facts.acked_packets, sample),
        }
        longest_ns
    }

    /// The marks that an ACK newly reports: no more than it acknowledges packets, the rest with the next. An ACK that was overtaken
    /// reports none.
    #[cold]
    fn new_marks(&mut self, facts: &AckFacts<'_>) -> u32 {
        let ahead = facts.marks_seen.wrapping_sub(self.marks_told) % Packet::MARKS_MODULUS;
        if ahead >= Packet::MARKS_MODULUS / 2 {
            return 0;
        }
        let told = u32::from(ahead).min(facts.acked_packets);
        self.marks_told = (self.marks_told + told as u16) % Packet::MARKS_MODULUS;
        told
    }

    /// Hands the finished sample to the controller.
    #[inline(always)]
    pub(crate) fn on_ack(&mut self, ack: &mut Ack<'_>, in_flight: u64, nothing_left: bool) {
        ack.sample.in_flight_bytes = self.bytes_of(in_flight);
        self.is_idle |= nothing_left;
        let control = if self.telemetry.is_some() {
            self.tell_with_telemetry(ack)
        } else {
            self.controller.answer(ack)
        };
        self.obey(&control);
    }

    /// Apart, so that other flows do not pay for the copy.
    #[cold]
    #[inline(never)]
    fn tell_with_telemetry(&mut self, ack: &Ack<'_>) -> Control {
        let hops = self.telemetry.as_ref().map_or(&[][..], |telemetry| telemetry.echoed());
        self.controller.answer(&Ack { sample: ack.sample, hops })
    }

    pub(crate) fn on_rto(&mut self, now: Picos, lost: u32, prior_in_flight: u64, consecutive: u32) {
        self.counters.timeouts += 1;
        self.rtt.on_timeout();
        self.sampler.on_loss(lost);
        let now_ns = self.tell_ns(now);
        self.controller.on_rto(&Timeout {
            now_ns,
            in_flight_bytes: self.bytes_of(prior_in_flight),
            consecutive,
            reserved: 0,
        });
        self.next_departure = self.next_departure.min(now);
        self.renew_departure();
        self.reread();
    }

    pub(crate) fn on_spurious_loss(&mut self, now: Picos, started_ns: u64) {
        let now_ns = self.tell_ns(now);
        self.controller.on_spurious_loss(&Undo { now_ns, started_ns });
        self.reread();
    }

    /// Calls the controller's timer if it is due.
    #[inline]
    pub(crate) fn run_timer(&mut self, now: Picos) {
        if self.timer_at <= now {
            self.run_due_timer(now);
        }
    }

    #[inline(never)]
    fn run_due_timer(&mut self, now: Picos) {
        let now_ns = self.tell_ns(now);
        self.controller.on_timer(now_ns);
        self.reread();
        // A timer left in the past must not stop time.
        self.timer_at = self.timer_at.max(now + MIN_TIMER_PS);
    }

    /// When the controller wants its timer.
    #[inline]
    pub(crate) fn timer(&self) -> Picos {
        self.timer_at
    }

    /// Nothing more to send for now: the following rate samples are the application's doing, not the path's.
    pub(crate) fn on_app_limited(&mut self, in_flight: u64) {
        self.sampler.on_app_limited(in_flight);
    }

    pub(crate) fn observe(&self, out: &mut [f64]) {
        self.controller.observe(out);
    }

    fn reread(&mut self) {
        let control = self.controller.control();
        self.obey(&control);
    }

    #[inline(always)]
    fn obey(&mut self, control: &Control) {
        // Field by field, and only what is new: a copy in one piece of what was written piece by piece this moment would have
        // to wait for it.
        if control.cwnd_bytes != self.asked.cwnd_bytes {
            self.asked.cwnd_bytes = control.cwnd_bytes;
        }
        if control.send_quantum_bytes != self.asked.send_quantum_bytes {
            self.asked.send_quantum_bytes = control.send_quantum_bytes;
        }
        if control.timeout_ns != self.asked.timeout_ns {
            self.asked.timeout_ns = control.timeout_ns;
            self.renew_silence();
        }
        let rate = control.pacing_bytes_per_s;
        if rate != self.asked.pacing_bytes_per_s {
            let before = std::mem::replace(&mut self.asked.pacing_bytes_per_s, rate);
            self.gap_bytes = 0;
            // From one rate to another, what is due stays due.
            if before == Control::UNPACED || rate == Control::UNPACED {
                self.on_pacing_change();
            }
        }
        self.timer_at = control.next_timer_ns.saturating_mul(PS_PER_NS);
        if self.burst_left_bytes > 0 && !self.is_paced() {
            self.end_burst();
        }
    }

    #[inline(never)]
    fn end_burst(&mut self) {
        self.burst_left_bytes = 0;
        self.renew_departure();
    }
}
