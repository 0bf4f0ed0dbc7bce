//! DualPI2 (RFC 9332): a queue for scalable senders that is kept shallow by early marks, beside one for the others, coupled so
//! that both get like rates. Section and appendix numbers are those of the RFC.
//!
//! Drops and marks come at regular distances (`recur`, appendix A.1), so nothing is drawn.

use super::fifo::Fifo;
use super::{Dropped, Ecn, Limit, Next, Queue, Queued, seconds};
use crate::link::{Backlog, DropReason};
use crate::{PS_PER_MS, PS_PER_US, Picos};

/// Parameters of DualPI2.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct DualPi2Spec {
    /// target: delay of the classic queue to hold, ps.
    pub target_ps: Picos,
    /// RTT_max: largest RTT to be stable for, ps. The gains follow from it.
    pub rtt_max_ps: Picos,
    /// Tupdate: time between updates, ps.
    pub update_ps: Picos,
    /// alpha, Hz; open: 0.1 Tupdate / RTT_max^2.
    pub alpha_hz: Option<f64>,
    /// beta, Hz; open: 0.3 / RTT_max.
    pub beta_hz: Option<f64>,
    /// k: coupling of the two queues' probabilities.
    pub coupling: f64,
    /// minTh: delay of the scalable queue from which on it is marked by itself, ps …
    pub ramp_min_ps: Picos,
    /// … and how far above that everything is marked, ps. 0 is a step.
    pub ramp_range_ps: Picos,
    /// Share of the link that the classic queue has when both have something to send: a tenth as in Linux; §4.2.2 asks for a
    /// small one, such as a sixteenth.
    pub classic_share: f64,
}

impl Default for DualPi2Spec {
    fn default() -> Self {
        Self {
            target_ps: 15 * PS_PER_MS,
            rtt_max_ps: 100 * PS_PER_MS,
            update_ps: 15 * PS_PER_MS,
            alpha_hz: None,
            beta_hz: None,
            coupling: 2.0,
            ramp_min_ps: 800 * PS_PER_US,
            ramp_range_ps: 400 * PS_PER_US,
            classic_share: 0.1,
        }
    }
}

impl DualPi2Spec {
    pub(super) fn fault(&self) -> Option<(&'static str, f64, &'static str)> {
        let gain = |key, value: Option<f64>| {
            let value = value.filter(|v| !(v.is_finite() && *v >= 0.0))?;
            Some((key, value, "a finite number from 0"))
        };
        if self.update_ps == 0 || self.rtt_max_ps == 0 {
            let key = if self.update_ps == 0 { "queue.update" } else { "queue.rtt_max" };
            return Some((key, 0.0, "a time above 0"));
        }
        if !(self.coupling.is_finite() && self.coupling >= 1.0) {
            return Some(("queue.coupling", self.coupling, "a finite number from 1"));
        }
        if !(0.0..1.0).contains(&self.classic_share) {
            return Some(("queue.classic_share", self.classic_share, "from 0 to below 1"));
        }
        gain("queue.alpha", self.alpha_hz).or_else(|| gain("queue.beta", self.beta_hz))
    }

    fn gains_hz(&self) -> (f64, f64) {
        let (update, rtt_max) = (seconds(self.update_ps), seconds(self.rtt_max_ps));
        let alpha = self.alpha_hz.unwrap_or(0.1 * update / (rtt_max * rtt_max));
        (alpha, self.beta_hz.unwrap_or(0.3 / rtt_max))
    }
}

/// The scalable queue is not marked by itself for a single packet (A.1: Th_len).
const LONE_PACKET_BYTES: u64 = 1514;

/// Strikes with a given frequency, at regular distances (A.1: recur).
#[derive(Clone, Copy, Debug, Default)]
struct Recurrence(f64);

impl Recurrence {
    fn strikes(&mut self, probability: f64) -> bool {
        self.0 += probability;
        let strikes = self.0 > 1.0;
        if strikes {
            self.0 -= 1.0;
        }
        strikes
    }
}

/// Both queues and what couples them.
#[derive(Debug)]
pub(super) struct DualPi2<T> {
    spec: DualPi2Spec,
    limit: Limit,
    scalable: Fifo<T>,
    classic: Fifo<T>,
    /// p': base probability.
    base: f64,
    /// Delay at the last update, s.
    old_delay_s: f64,
    next_update: Picos,
    /// Bytes by which the classic queue is behind its share.
    classic_credit: f64,
    marks: Recurrence,
    classic_strikes: Recurrence,
    overload_drops: Recurrence,
}

impl<T> DualPi2<T> {
    pub(super) fn new(spec: &DualPi2Spec, limit: Limit) -> Self {
        Self {
            spec: *spec,
            limit,
            scalable: Fifo::default(),
            classic: Fifo::default(),
            base: 0.0,
            old_delay_s: 0.0,
            next_update: spec.update_ps,
            classic_credit: 0.0,
            marks: Recurrence::default(),
            classic_strikes: Recurrence::default(),
            overload_drops: Recurrence::default(),
        }
    }

    /// p' that makes the coupled marks certain (A.2: p_Lmax = 1). Beyond it the queues are overloaded.
    fn overload(&self) -> f64 {
        1.0 / self.spec.coupling
    }

    /// p_C.
    fn classic_probability(&self) -> f64 {
        self.base * self.base
    }

    /// p_CL.
    fn coupled_probability(&self) -> f64 {
        (self.spec.coupling * self.base).min(1.0)
    }

    fn is_overloaded(&self) -> bool {
        self.base >= self.overload()
    }

    /// The updates that were due before `now` (A.1: dualpi2_update).
    fn catch_up(&mut self, now: Picos) {
        let (alpha, beta) = self.spec.gains_hz();
        while self.next_update <= now {
            let at = self.next_update;
            let heads = [&self.scalable, &self.classic];
            let wait = heads.iter().filter_map(|fifo| fifo.front()).map(|head| head.wait(at)).max();
            if wait.is_none() && self.base == 0.0 && self.old_delay_s == 0.0 {
                let skipped = (now - at) / self.spec.update_ps + 1;
                self.next_update += skipped * self.spec.update_ps;
                return;
            }
            let delay_s = seconds(wait.unwrap_or(0));
            let error = delay_s - seconds(self.spec.target_ps);
            self.base += alpha * error + beta * (delay_s - self.old_delay_s);
            self.base = self.base.clamp(0.0, 1.0);
            self.old_delay_s = delay_s;
            self.next_update += self.spec.update_ps;
        }
    }

    /// Weighted round robin: whether the scalable queue is next. Not called when nothing waits.
    fn scalable_is_next(&self) -> bool {
        let both = self.scalable.front().is_some() && self.classic.front().is_some();
        if both { self.classic_credit <= 0.0 } else { self.scalable.front().is_some() }
    }

    /// Keeps account of who is behind.
    fn charge(&mut self, bytes: u32, scalable: bool) {
        let (share, bytes) = (self.spec.classic_share, f64::from(bytes));
        let other = if scalable { &self.classic } else { &self.scalable };
        self.classic_credit = match (other.front().is_some(), scalable) {
            (false, _) => 0.0,
            (true, true) => self.classic_credit + share * bytes,
            (true, false) => self.classic_credit - (1.0 - share) * bytes,
        };
    }

    /// p'_L: by the delay of the packet that leaves (A.1: laqm).
    fn native_probability(&self, wait: Picos, bytes: u32) -> f64 {
        if self.scalable.backlog().bytes + u64::from(bytes) <= LONE_PACKET_BYTES {
            return 0.0;
        }
        match wait.checked_sub(self.spec.ramp_min_ps) {
            None | Some(0) => 0.0,
            Some(above) if above >= self.spec.ramp_range_ps => 1.0,
            Some(above) => above as f64 / self.spec.ramp_range_ps as f64,
        }
    }

    /// Whether a packet is to be dropped on its way out; it may be marked instead (A.1, A.2).
    fn condemns(&mut self, now: Picos, packet: &mut Queued<T>, scalable: bool) -> bool {
        let p_c = self.classic_probability();
        if scalable {
            // Under overload marks alone do not help any more.
            if self.is_overloaded() && self.overload_drops.strikes(p_c) {
                return true;
            }
            let native = self.native_probability(packet.wait(now), packet.tag.bytes);
            if self.marks.strikes(native.max(self.coupled_probability())) {
                packet.tag.ecn.mark();
            }
            return false;
        }
        self.classic_strikes.strikes(p_c) && (self.is_overloaded() || !packet.tag.ecn.mark())
    }
}

impl<T: Send> Queue<T> for DualPi2<T> {
    fn enqueue(&mut self, now: Picos, packet: Queued<T>, dropped: &mut Dropped<T>) {
        self.catch_up(now);
        if !self.limit.admits(self.backlog(), packet.tag.bytes) {
            return dropped.push((packet, DropReason::Buffer));
        }
        match packet.tag.ecn {
            Ecn::Scalable | Ecn::Marked => self.scalable.push(packet),
            Ecn::NotCapable | Ecn::Capable => self.classic.push(packet),
        }
    }

    fn dequeue(&mut self, now: Picos, dropped: &mut Dropped<T>) -> Next<T> {
        self.catch_up(now);
        loop {
            let scalable = self.scalable_is_next();
            let fifo = if scalable { &mut self.scalable } else { &mut self.classic };
            let Some(mut packet) = fifo.pop() else { return Next::Empty };
            if self.condemns(now, &mut packet, scalable) {
                dropped.push((packet, DropReason::Managed));
                continue;
            }
            self.charge(packet.tag.bytes, scalable);
            return Next::Packet(packet);
        }
    }

    fn backlog(&self) -> Backlog {
        let (a, b) = (self.scalable.backlog(), self.classic.backlog());
        Backlog { packets: a.packets + b.packets, bytes: a.bytes + b.bytes }
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::*;
    use super::*;

    fn dual() -> DualPi2<u64> {
        DualPi2::new(&DualPi2Spec::default(), Limit::default())
    }

    /// Gains by the rule of appendix A.1; with 16 ms they are those of Linux but for rounding (0.16 and 3 Hz).
    #[test]
    fn gains_follow_from_the_largest_rtt() {
        let gains = |update_ms| {
            let update_ps = update_ms * PS_PER_MS;
            DualPi2Spec { update_ps, ..DualPi2Spec::default() }.gains_hz()
        };
        assert!((gains(16).0 - 0.16).abs() < 1e-12 && (gains(16).1 - 3.0).abs() < 1e-12);
        assert!((gains(15).0 - 0.15).abs() < 1e-12);
    }

    /// T25: p' = 0.1 drops 1 % of the classic and marks 20 % of the scalable packets.
    #[test]
    fn the_square_and_the_coupling() {
        for (ecn, dropped_of_10000, marked_of_10000) in
            [(Ecn::NotCapable, 100, 0), (Ecn::Capable, 0, 100), (Ecn::Scalable, 0, 2000)]
        {
            let mut queue = dual();
            queue.base = 0.1;
            queue.next_update = Picos::MAX;
            let (mut dropped, mut marked) = (Vec::new(), 0_u64);
            for k in 0..10_000 {
                queue.enqueue(0, with_ecn(0, k, ecn), &mut dropped);
                if let Next::Packet(packet) = queue.dequeue(0, &mut dropped) {
                    marked += u64::from(packet.tag.ecn == Ecn::Marked);
                }
            }
            // The first of each stretch is one short: recur strikes beyond 1, not at it.
            assert!(
                (dropped.len() as i64 - dropped_of_10000).abs() <= 1,
                "{ecn:?}: {}",
                dropped.len()
            );
            assert!((marked as i64 - marked_of_10000).abs() <= 1, "{ecn:?}: {marked}");
        }
    }

    #[test]
    fn one_update() {
        let mut queue = dual();
        queue.enqueue(0, packet(0, 0), &mut Vec::new());
        // 15 ms at the first update: the error is 0, the change 15 ms x 3 Hz.
        queue.catch_up(15 * PS_PER_MS);
        assert!((queue.base - 0.045).abs() < 1e-12);
        // 30 ms at the second: 0.15 Hz x 15 ms more, and the change again.
        queue.catch_up(30 * PS_PER_MS);
        assert!((queue.base - (0.09 + 0.15 * 0.015)).abs() < 1e-12);
    }

    #[test]
    fn the_scalable_queue_is_marked_by_a_ramp() {
        let mut queue = dual();
        queue.scalable.push(packet(0, 0));
        for (us, expected) in [(0, 0.0), (800, 0.0), (1000, 0.5), (1200, 1.0), (5000, 1.0)] {
            assert_eq!(queue.native_probability(us * PS_PER_US, 1500), expected);
        }
        queue.scalable.pop();
        assert_eq!(queue.native_probability(5 * PS_PER_MS, 1500), 0.0, "a lone packet");
    }

    #[test]
    fn the_classic_queue_keeps_its_share() {
        let mut queue = dual();
        queue.next_update = Picos::MAX;
        let (mut dropped, mut classic) = (Vec::new(), 0);
        for k in 0..10_000 {
            for ecn in [Ecn::Scalable, Ecn::NotCapable] {
                queue.enqueue(0, with_ecn(0, k, ecn), &mut dropped);
            }
            let Next::Packet(packet) = queue.dequeue(0, &mut dropped) else { panic!("empty") };
            classic += u64::from(packet.tag.ecn == Ecn::NotCapable);
        }
        assert!((999..=1001).contains(&classic), "{classic}");
    }

    #[test]
    fn overload_is_dropped_from_both() {
        let mut queue = dual();
        queue.base = queue.overload();
        queue.next_update = Picos::MAX;
        let mut dropped = Vec::new();
        for k in 0..1000 {
            for ecn in [Ecn::Scalable, Ecn::Capable] {
                queue.enqueue(0, with_ecn(0, k, ecn), &mut dropped);
            }
        }
        while let Next::Packet(_) = queue.dequeue(0, &mut dropped) {}
        // p_C = 25 % of either kind.
        assert!((dropped.len() as i64 - 500).abs() <= 2, "{}", dropped.len());
    }

    /// Twice the rate of the link in scalable packets that heed no mark: half must go, p' = 0.71, above the 0.5 at which marks are
    /// certain. A.1: p' is bounded by 1 alone.
    #[test]
    fn overload_beyond_a_third_is_held_at_the_target() {
        let mut queue = dual();
        let (mut dropped, mut waits) = (Vec::new(), Vec::new());
        for ms in 0..20_000 {
            let now = ms * PS_PER_MS;
            for k in 0..2 {
                queue.enqueue(now, with_ecn(now, k, Ecn::Scalable), &mut dropped);
            }
            let Next::Packet(packet) = queue.dequeue(now, &mut dropped) else { panic!("empty") };
            waits.push(packet.wait(now) / PS_PER_MS);
        }
        assert!((queue.base - 0.5_f64.sqrt()).abs() < 0.02, "p' {}", queue.base);
        let end = &waits[10_000..];
        let mean = end.iter().sum::<u64>() as f64 / end.len() as f64;
        assert!((mean - 15.0).abs() < 1.5, "mean wait {mean} ms");
    }
}
