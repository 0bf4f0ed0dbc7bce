//! CUBIC, RFC 9438: the window follows a cubic of the time since the last reduction, and is at least what Reno would have.
//!
//! Computed in `f64` packets. The profile "linux" has Linux's constants and its reading of the curve where it differs
//! (`curve = "linux"`); each difference is named at its line.

use std::num::NonZeroU64;

use super::{MAX_WINDOW_PACKETS, window_bytes};
use crate::controller::{Control, Controller, Field, Needs};
use crate::episode::EpisodeGate;
use crate::event::{Ack, AckSample, Loss, PathInfo, Resume, Timeout, Undo};
use crate::registry::{Family, Param, Params, Profile, Spec};
use crate::reno_window::{
    INITIAL_SSTHRESH, INITIAL_WINDOW, RenoWindow, SLOW_START, SSTHRESH, WholePackets,
    initial_window,
};
use crate::slow_start::{SlowStart, SlowStartKind};

/// The registry entry.
pub(crate) static SPEC: Spec = Spec {
    name: "cubic",
    title: "CUBIC: growth by the time since the last loss",
    family: Family::LossBased,
    source: "RFC 9438; slow start: RFC 9406",
    about: include_str!("about/cubic.md"),
    needs: Needs::NONE,
    params: &[
        Param::number("c", "packets/s^3", 0.4, (0.001, 1000.0), "aggressiveness C of the cubic"),
        Param::number(
            "beta",
            "1",
            0.7,
            (0.1, 0.99),
            "beta_cubic: fraction of the window kept at a reduction",
        ),
        Param::number(
            "ecn_beta",
            "1",
            0.0,
            (0.0, 0.99),
            "fraction kept at a mark, beta_ecn; 0 = beta",
        ),
        Param::flag(
            "fast_convergence",
            true,
            "release more when the window did not reach its last maximum (RFC 9438 section 4.7)",
        ),
        SLOW_START.with_default(1.0),
        Param::choice("curve", &["rfc9438", "linux"], "reading of the growth law"),
        INITIAL_WINDOW,
        INITIAL_SSTHRESH,
    ],
    profiles: &[
        Profile {
            name: "linux",
            source: "Linux 6.x tcp_cubic: beta 717/1024, HyStart, whole packets, delay_min ahead of the curve",
            values: &[("beta", 717.0 / 1024.0), ("slow_start", 2.0), ("curve", 1.0)],
        },
        Profile {
            name: "ns-3",
            source: "ns-3 TcpCubic: Linux's curve with beta 0.7 (and Linux's HyStart, whose delay threshold ends at 16 ms, not 1 s)",
            values: &[("slow_start", 2.0), ("curve", 1.0)],
        },
        Profile {
            name: "abe",
            source: "RFC 8511, Alternative Backoff with ECN: a mark leaves 0.85 of the window",
            values: &[("ecn_beta", 0.85)],
        },
    ],
    fields: &[
        SSTHRESH,
        Field { name: "w_max", unit: "packets", doc: "window before the last reduction, W_max" },
        Field { name: "k", unit: "s", doc: "time from epoch start to W_max, K" },
        Field { name: "w_est", unit: "packets", doc: "window Reno would have, W_est" },
    ],
    build,
};

fn build(params: &Params, path: &PathInfo) -> Box<dyn Controller> {
    let beta = params.get("beta");
    let ecn_beta = match params.get("ecn_beta") {
        0.0 => beta,
        other => other,
    };
    Box::new(Cubic {
        c: params.get("c"),
        beta,
        ecn_beta,
        // RFC 9438 §4.3: alpha_cubic = 3 (1 - beta) / (1 + beta).
        alpha: reno_alpha(beta),
        fast_convergence: params.get_bool("fast_convergence"),
        linux: params.get_choice("curve") == "linux",
        packet_bytes: path.packet_bytes.max(1),
        cwnd: initial_window(params.get("initial_window"), path),
        growth: Growth {
            ssthresh: params.get("initial_ssthresh"),
            w_max: 0.0,
            cwnd_prior: 0.0,
            counter: WholePackets::default(),
            epoch: None,
        },
        before: None,
        slow_start: SlowStart::new(
            SlowStartKind::from_word(params.get_choice("slow_start")),
            false,
        ),
        gate: EpisodeGate::default(),
        last_ack_ns: path.now_ns,
        delay_min_ns: u64::MAX,
        in_fast_recovery: false,
    })
}

/// RFC 9438 §4.3: the increase of an AIMD with decrease factor `beta` that is as fast as Reno.
fn reno_alpha(beta: f64) -> f64 {
    3.0 * (1.0 - beta) / (1.0 + beta)
}

/// RFC 9438 eq. (2): time in s that the cubic takes from `cwnd_epoch` to `w_max`.
fn time_to_w_max(w_max: f64, cwnd_epoch: f64, c: f64) -> f64 {
    libm::cbrt((w_max - cwnd_epoch).max(0.0) / c)
}

/// All that a spurious loss must restore beside the window (RFC 9438 §4.9).
#[repr(C)]
#[derive(Clone, Copy, Debug)]
struct Growth {
    ssthresh: f64,
    /// Window before the last reduction (RFC 9438 §4.1.2).
    cwnd_prior: f64,
    epoch: Option<Epoch>,
    w_max: f64,
    /// Linux only.
    counter: WholePackets,
}

/// A period of congestion avoidance.
#[derive(Clone, Copy, Debug)]
struct Epoch {
    /// The nanosecond after its start: never 0, so that no epoch takes no more room than one.
    after_start_ns: NonZeroU64,
    k: f64,
    /// W_max of the curve: the plateau.
    origin: f64,
    w_est: f64,
}

const _: () = assert!(size_of::<Option<Epoch>>() == 32);

impl Epoch {
    fn start_ns(&self) -> u64 {
        self.after_start_ns.get() - 1
    }

    fn set_start_ns(&mut self, start_ns: u64) {
        self.after_start_ns = after(start_ns);
    }

    /// RFC 9438 eq. (1), `t` s into the epoch.
    fn w_cubic(&self, t: f64, c: f64) -> f64 {
        let past = t - self.k;
        self.origin + c * past * past * past
    }
}

/// The nanosecond after `ns`.
fn after(ns: u64) -> NonZeroU64 {
    NonZeroU64::MIN.saturating_add(ns)
}

/// First what every ACK touches: a host with thousands of flows finds none of it in its cache.
#[repr(C)]
struct Cubic {
    in_fast_recovery: bool,
    linux: bool,
    fast_convergence: bool,
    packet_bytes: u32,
    last_ack_ns: u64,
    delay_min_ns: u64,
    c: f64,
    alpha: f64,
    cwnd: f64,
    growth: Growth,
    slow_start: SlowStart,
    beta: f64,
    ecn_beta: f64,
    gate: EpisodeGate,
    /// As it was before the last reduction; the window then is `growth.cwnd_prior`.
    before: Option<Box<Growth>>,
}

const _: () = assert!(size_of::<Cubic>() == 200 && size_of::<Growth>() == 64);

impl Cubic {
    fn packet_size(&self) -> f64 {
        f64::from(self.packet_bytes)
    }

    /// Takes time in which the window did not limit out of the epoch's clock (RFC 9438 §4.2, §5.8).
    fn pause_clock(&mut self, from_ns: u64, to_ns: u64) {
        if let Some(epoch) = &mut self.growth.epoch {
            let paused_ns = to_ns.saturating_sub(from_ns);
            epoch.set_start_ns(epoch.start_ns().saturating_add(paused_ns).min(to_ns));
        }
    }

    fn begin_epoch(&self, now_ns: u64) -> Epoch {
        let cwnd = self.cwnd;
        // RFC 9438 §4.8, §4.10: after a timeout or a slow start that ended without loss, K = 0 and W_max = cwnd.
        let origin = self.growth.w_max.max(cwnd);
        Epoch {
            after_start_ns: after(now_ns),
            k: time_to_w_max(origin, cwnd, self.c),
            origin,
            w_est: cwnd,
        }
    }

    /// RFC 9438 §4.2-4.5 for `acked` packets.
    fn avoid(&mut self, ack: &AckSample, acked: f64) {
        let mut epoch = match self.growth.epoch {
            Some(epoch) => epoch,
            None => self.begin_epoch(ack.now_ns),
        };
        let cwnd = self.cwnd;
        // RFC 9438 eq. (4). Linux keeps alpha below 1 for good.
        let catching_up = self.linux || epoch.w_est < self.growth.cwnd_prior;
        let alpha = if catching_up { self.alpha } else { 1.0 };
        epoch.w_est = (epoch.w_est + alpha * acked / cwnd).min(MAX_WINDOW_PACKETS);
        let t = ack.now_ns.saturating_sub(epoch.start_ns()) as f64 * 1e-9;
        self.cwnd = if self.linux {
            self.linux_window(&epoch, t, acked)
        } else if epoch.w_cubic(t, self.c) < epoch.w_est {
            // §4.3: Reno-friendly region.
            cwnd.max(epoch.w_est)
        } else {
            // §4.4, §4.5: towards where the cubic will be one RTT from now, at most 1.5 times the window per RTT.
            let ahead = epoch.w_cubic(t + ack.srtt_ns as f64 * 1e-9, self.c);
            let target = ahead.max(cwnd).min(1.5 * cwnd);
            cwnd + (target - cwnd) / cwnd * acked
        }
        .min(MAX_WINDOW_PACKETS);
        self.growth.epoch = Some(epoch);
    }

    /// The window after `acked` packets as Linux computes it: in whole packets, one more for every `per_packet` packets
    /// acknowledged.
    ///
    /// The distance to W_max is rounded down, so the window comes to rest on W_max already cbrt(1/C) = 1.36 s before K and
    /// leaves it as long after. A loss at W_max thus comes that much earlier than on the curve of the RFC.
    ///
    /// Deviation: Linux counts time in jiffies and recomputes at most every 31 ms while the window stands.
    fn linux_window(&mut self, epoch: &Epoch, t: f64, acked: f64) -> f64 {
        let cwnd = self.cwnd;
        // Linux looks ahead by the smallest RTT, not the smoothed one.
        let ahead = if self.delay_min_ns == u64::MAX { 0.0 } else { self.delay_min_ns as f64 };
        let distance = epoch.w_cubic(t + ahead * 1e-9, self.c) - epoch.origin;
        let target = epoch.origin + distance.trunc();
        let mut per_packet =
            if target > cwnd { (cwnd / (target - cwnd)).floor() } else { 100.0 * cwnd };
        if self.growth.w_max == 0.0 {
            // No maximum is known yet: at least 5 % per RTT.
            per_packet = per_packet.min(20.0);
        }
        let behind_reno = epoch.w_est.floor() - cwnd;
        if behind_reno > 0.0 {
            per_packet = per_packet.min((cwnd / behind_reno).floor());
        }
        // At most 1.5 times the window per RTT.
        cwnd + self.growth.counter.gain(acked, per_packet.max(2.0))
    }

    /// RFC 9438 §4.6-4.7: keeps `kept` of the window. `floor` is the smallest window in packets; Linux and RFC differ in what
    /// they cut.
    fn reduce(&mut self, kept: f64, in_flight_bytes: u64, floor: f64) {
        let cwnd = self.cwnd;
        match &mut self.before {
            Some(before) => **before = self.growth,
            None => self.before = Some(Box::new(self.growth)),
        }
        // RFC 9438 §4.7 (Linux alike): fast convergence.
        let short_of_max = self.fast_convergence && cwnd < self.growth.w_max;
        let w_max = if short_of_max { cwnd * (1.0 + self.beta) / 2.0 } else { cwnd };
        self.growth.w_max = if self.linux { w_max.floor() } else { w_max };
        self.growth.cwnd_prior = cwnd;
        // RFC 9438 eq. (5) cuts what is in flight; Linux cuts the window.
        let in_flight = (in_flight_bytes as f64 / self.packet_size()).min(cwnd);
        let kept = if self.linux { (cwnd * kept).floor() } else { in_flight * kept };
        self.growth.ssthresh = kept.max(2.0);
        self.cwnd = kept.max(floor).min(cwnd.max(floor));
        self.growth.counter = WholePackets::default();
        self.growth.epoch = None;
    }
}

impl Controller for Cubic {
    fn on_ack(&mut self, ack: &Ack<'_>) {
        let previous_ns = std::mem::replace(&mut self.last_ack_ns, ack.now_ns);
        if ack.rtt_ns > 0 {
            self.delay_min_ns = self.delay_min_ns.min(ack.rtt_ns);
        }
        self.in_fast_recovery &= ack.has(AckSample::IN_RECOVERY);
        if self.in_fast_recovery {
            return;
        }
        if ack.ce_packets > 0 && self.gate.admits(ack.now_ns, ack.sent_ns) {
            // RFC 9438 §4.6: one packet is the floor after a mark. RFC 8511 may keep more than after a loss.
            self.reduce(self.ecn_beta, ack.prior_in_flight_bytes, 1.0);
            return;
        }
        if !ack.has(AckSample::CWND_LIMITED) {
            self.pause_clock(previous_ns, ack.now_ns);
            return;
        }
        if !RenoWindow::may_grow(ack) {
            return;
        }
        let mut acked = f64::from(ack.acked_packets);
        if self.cwnd < self.growth.ssthresh {
            let step = self.slow_start.on_ack(ack, self.cwnd);
            let room = self.growth.ssthresh - self.cwnd;
            self.cwnd += step.growth_packets.min(room);
            if step.exit {
                self.growth.ssthresh = self.cwnd;
            }
            // What crossed the threshold counts for congestion avoidance.
            acked = (step.growth_packets - room).max(0.0);
        }
        if acked > 0.0 && self.cwnd >= self.growth.ssthresh {
            self.avoid(ack, acked.min(self.cwnd));
        }
    }

    fn on_loss(&mut self, loss: &Loss) {
        if loss.starts_episode() {
            self.gate.open(loss.now_ns);
            self.reduce(self.beta, loss.prior_in_flight_bytes, 2.0);
            self.in_fast_recovery = true;
        }
    }

    fn on_rto(&mut self, timeout: &Timeout) {
        self.gate.open(timeout.now_ns);
        self.in_fast_recovery = false;
        if timeout.consecutive <= 1 {
            // RFC 9438 §4.8: ssthresh with beta_cubic, the window as Reno.
            self.reduce(self.beta, timeout.in_flight_bytes, 1.0);
        }
        self.cwnd = 1.0;
        // K = 0 and W_max = cwnd when avoidance begins again.
        self.growth.w_max = 0.0;
        self.growth.epoch = None;
        self.slow_start.on_rto();
    }

    fn on_spurious_loss(&mut self, _undo: &Undo) {
        // RFC 9438 §4.9.
        if let Some(before) = self.before.take()
            && self.cwnd < self.growth.cwnd_prior
        {
            self.cwnd = self.growth.cwnd_prior;
            self.growth = *before;
        }
        self.in_fast_recovery = false;
    }

    fn on_resume(&mut self, resume: &Resume) {
        let idle_from_ns = resume.now_ns.saturating_sub(resume.idle_ns).max(self.last_ack_ns);
        self.pause_clock(idle_from_ns, resume.now_ns);
        self.last_ack_ns = self.last_ack_ns.max(resume.now_ns);
    }

    fn on_path_change(&mut self, path: &PathInfo) {
        self.packet_bytes = path.packet_bytes.max(1);
        self.delay_min_ns = u64::MAX;
    }

    fn control(&self) -> Control {
        Control::window(window_bytes(self.cwnd, self.packet_size()))
    }

    fn observe(&self, out: &mut [f64]) {
        let epoch = self.growth.epoch;
        let known = |value: f64, known: bool| if known { value } else { f64::NAN };
        out.copy_from_slice(&[
            known(
                self.growth.ssthresh * self.packet_size(),
                self.growth.ssthresh < MAX_WINDOW_PACKETS,
            ),
            known(self.growth.w_max, self.growth.w_max > 0.0),
            epoch.map_or(f64::NAN, |e| e.k),
            epoch.map_or(f64::NAN, |e| e.w_est),
        ]);
    }
}

#[cfg(test)]
#[path = "cubic_tests.rs"]
mod tests;
