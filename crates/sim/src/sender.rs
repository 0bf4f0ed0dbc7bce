//! The sending end of a flow, whatever carries it.

use paceline_cc::rtt::RttEstimator;
use paceline_cc::{Controller, PathInfo};
use paceline_net::{PS_PER_NS, Picos};

use crate::datagram::DatagramSender;
use crate::events::{Alarm, NEVER};
use crate::flow::FlowKind;
use crate::host::Host;
use crate::meter::RttMeter;
use crate::packet::Packet;
use crate::plan::Stack;
use crate::stats::Resolution;
use crate::tcp::TcpSender;
use crate::transfer::Transfer;

/// Begins with a cache line: so it takes up as few as it can.
#[repr(C, align(64))]
pub(crate) struct Sender {
    pub(crate) meter: RttMeter,
    /// For [`Self::wake`].
    alarm: Alarm,
    /// When the last byte of a finite transfer was acknowledged, or [`NEVER`].
    completed: Picos,
    end: End,
}

const _: () = assert!(size_of::<Sender>() == 8 * 64);

/// Where senders send to.
pub(crate) trait Links {
    /// Puts `packet` on the link of `junction`; false when it is dropped.
    fn transmit(&mut self, junction: u32, now: Picos, packet: Packet) -> bool;
}

enum End {
    Tcp(TcpSender),
    Datagram(DatagramSender),
}

impl Sender {
    pub(crate) fn new(
        kind: &FlowKind,
        transfer: Transfer,
        path: &PathInfo,
        controller: Box<dyn Controller>,
        warmup: Picos,
        resolution: Resolution,
    ) -> Self {
        let host = |min_rto_ns, clock_ps| {
            let (rtt, cap) = (RttEstimator::new(min_rto_ns), kind.cap_bytes_per_s);
            let mut host = Host::new(controller, path, rtt, cap, kind.wants_send_events, clock_ps);
            host.telemetry = kind.wants_telemetry.then(Box::default);
            host
        };
        let end = match kind.stack {
            Stack::Tcp(options) => {
                let host = host(options.min_rto_ps / PS_PER_NS, 1);
                End::Tcp(TcpSender::new(host, options, transfer))
            }
            Stack::Datagram(options) => {
                let host = host(RttEstimator::RFC_MIN_RTO_NS, options.clock_ps);
                End::Datagram(DatagramSender::new(host, options, transfer))
            }
        };
        Self {
            meter: RttMeter::new(warmup, resolution),
            alarm: Alarm::default(),
            completed: NEVER,
            end,
        }
    }

    /// A packet came to the end of the reverse path. False if there is certainly nothing to send and no alarm to set.
    #[inline]
    pub(crate) fn on_ack(&mut self, now: Picos, packet: &Packet) -> bool {
        match &mut self.end {
            End::Tcp(sender) => {
                sender.on_ack(now, packet, &mut self.meter);
                true
            }
            End::Datagram(sender) => sender.on_ack(now, packet, &mut self.meter),
        }
    }

    /// Puts on the link of `junction`, the first of the forward path, what may leave now. False if [`crate::plan::MAX_IN_FLIGHT`] then
    /// are in flight.
    #[inline(always)]
    pub(crate) fn send_all(&mut self, now: Picos, links: &mut impl Links, junction: u32) -> bool {
        match &mut self.end {
            End::Tcp(sender) => sender.send_all(now, links, junction),
            End::Datagram(sender) => sender.send_all(now, &mut self.meter, links, junction),
        }
    }

    /// The next packet to put on the forward path: [`Self::send_all`] one by one.
    #[cfg(test)]
    pub(crate) fn poll_send(&mut self, now: Picos) -> Option<Packet> {
        match &mut self.end {
            End::Tcp(sender) => sender.poll_send(now),
            End::Datagram(sender) => sender.poll_send(now, &mut self.meter),
        }
    }

    /// The first link drops `packet`, which has just been sent.
    #[cfg(test)]
    pub(crate) fn on_drop(&mut self, now: Picos, packet: &Packet) {
        if let End::Datagram(sender) = &mut self.end {
            sender.on_drop(now, packet);
        }
    }

    /// The alarm has gone off: handles the timer if it is indeed due. Whether it was, so that there may be something to send.
    pub(crate) fn wake(&mut self, now: Picos) -> bool {
        self.alarm.goes_off(now);
        let due = self.deadline() <= now;
        if due {
            match &mut self.end {
                End::Tcp(sender) => sender.on_timer(now),
                End::Datagram(sender) => sender.on_timer(now),
            }
        }
        due
    }

    /// The alarm to set after a step, if one is needed. Timers that moved back keep their old alarm: looked at then, they are
    /// found not to be due, so that an ACK costs no alarm.
    #[inline]
    pub(crate) fn alarm(&mut self, now: Picos) -> Option<Picos> {
        self.note_completion(now);
        if let End::Tcp(sender) = &self.end
            && self.alarm.is_by(sender.earliest_deadline())
        {
            return None;
        }
        let deadline = self.deadline();
        self.alarm.until(deadline, now)
    }

    #[inline]
    pub(crate) fn note_completion(&mut self, now: Picos) {
        let complete = match &self.end {
            End::Tcp(sender) => sender.is_complete(),
            End::Datagram(sender) => sender.is_complete(),
        };
        if complete {
            self.completed = self.completed.min(now);
        }
    }

    /// When the last byte of a finite transfer was acknowledged.
    pub(crate) fn completed(&self) -> Option<Picos> {
        (self.completed != NEVER).then_some(self.completed)
    }

    /// When [`Self::wake`] has something to do.
    pub(crate) fn deadline(&self) -> Picos {
        if self.completed != NEVER {
            return NEVER;
        }
        match &self.end {
            End::Tcp(sender) => sender.deadline(),
            End::Datagram(sender) => sender.deadline(),
        }
    }

    /// Packets in flight by its own account.
    #[inline]
    pub(crate) fn in_flight(&self) -> u64 {
        match &self.end {
            End::Tcp(sender) => sender.in_flight(),
            End::Datagram(sender) => sender.in_flight(),
        }
    }

    /// The window in force, bytes.
    pub(crate) fn cwnd_bytes(&self) -> u64 {
        match &self.end {
            End::Tcp(sender) => sender.cwnd_bytes(),
            End::Datagram(sender) => sender.host.asked.cwnd_bytes,
        }
    }

    #[inline]
    pub(crate) fn host(&self) -> &Host {
        match &self.end {
            End::Tcp(sender) => &sender.host,
            End::Datagram(sender) => &sender.host,
        }
    }

    pub(crate) fn host_mut(&mut self) -> &mut Host {
        match &mut self.end {
            End::Tcp(sender) => &mut sender.host,
            End::Datagram(sender) => &mut sender.host,
        }
    }

    /// Fetches what `ack` will touch outside this struct.
    #[inline]
    pub(crate) fn prefetch_parts(&self, ack: &Packet) {
        self.host().prefetch_controller();
        self.meter.rtt.prefetch();
        if let End::Tcp(sender) = &self.end {
            sender.prefetch_segments(ack);
        }
    }

    /// Fetches what a sample reads outside this struct.
    #[inline]
    pub(crate) fn prefetch_sampled(&self) {
        self.host().prefetch_controller();
        if let End::Tcp(sender) = &self.end {
            sender.prefetch_recovery();
        }
    }

    /// State held, bytes: everything but the records of packets in flight and the controller's own.
    pub(crate) fn state_bytes(&self) -> usize {
        size_of::<Self>() + self.meter.rtt.heap_bytes()
    }
}
