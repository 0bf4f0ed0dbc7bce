//! HPCC (Li et al., SIGCOMM 2019): a window that every link of the path corrects by what it says of its own load, for data centres.
//! In-band telemetry in, a window and its pacing rate out.

use super::{pacing_rate, packet_size, window_bytes};
use crate::controller::{Control, Controller, Field, Needs};
use crate::event::{Ack, IntHop, Loss, PathInfo, Timeout, Undo};
use crate::registry::{Family, Param, Params, Profile, Spec};
use crate::round::RoundCounter;

/// Hops that a packet has room for (section 4.1).
const MAX_HOPS: usize = 5;

/// The registry entry.
pub(crate) static SPEC: Spec = Spec {
    name: "hpcc",
    title: "HPCC: window from in-band telemetry",
    family: Family::DataCentre,
    source: "Li et al., HPCC: High Precision Congestion Control (SIGCOMM 2019), algorithm 1",
    about: include_str!("about/hpcc.md"),
    needs: Needs::INT.and(Needs::PACING),
    params: &[
        Param::number("eta", "1", 0.95, (0.1, 1.0), "target utilisation eta"),
        Param::integer(
            "max_stage",
            "1",
            5.0,
            (0.0, 1000.0),
            "additive increases in a row until one by utilisation, maxStage",
        ),
        Param::number(
            "flows",
            "1",
            100.0,
            (1.0, 1e6),
            "flows among which 1 - eta of the link is shared, N: W_AI = W_init (1 - eta) / N",
        ),
        Param::duration(
            "base_rtt",
            0.0,
            (0.0, 10.0),
            "RTT of the empty network, T; 0: the smallest so far",
        ),
        Param::rate(
            "line_rate",
            0.0,
            (0.0, 1e13),
            "rate at the start and at most: the network card's; 0: that of the first link",
        ),
        Param::rate("min_rate", 0.0, (0.0, 1e12), "rate at least"),
        Param::flag(
            "per_hop",
            false,
            "a reference window for each hop, of which the smallest counts",
        ),
    ],
    profiles: &[
        Profile {
            name: "simulator",
            source: "the authors' public simulator, run.py: no additive stages, 1 Gbit/s at least, W_AI of 1/2500",
            values: &[("max_stage", 0.0), ("flows", 125.0), ("min_rate", 1e9)],
        },
        Profile {
            name: "per-hop",
            source: "the same with MULTI_RATE: a reference for each hop",
            values: &[("max_stage", 0.0), ("flows", 125.0), ("min_rate", 1e9), ("per_hop", 1.0)],
        },
    ],
    fields: &[
        Field { name: "window", unit: "packets", doc: "window W, with its fraction" },
        Field { name: "reference", unit: "packets", doc: "reference window W_c" },
        Field { name: "utilisation", unit: "1", doc: "estimate U of the most loaded hop" },
        Field { name: "stage", unit: "1", doc: "additive increases in a row, incStage" },
    ],
    build,
};

fn build(params: &Params, path: &PathInfo) -> Box<dyn Controller> {
    let bytes_per_s = |name: &str| params.get(name) / 8.0;
    let mut hpcc = Hpcc {
        eta: params.get("eta"),
        max_stage: params.get("max_stage") as u32,
        flows: params.get("flows"),
        base_rtt_s: params.get("base_rtt"),
        line_rate: bytes_per_s("line_rate"),
        min_rate: bytes_per_s("min_rate"),
        per_hop: params.get_bool("per_hop"),
        packet_bytes: packet_size(path),
        min_rtt_ns: u64::MAX,
        links: [IntHop::default(); MAX_HOPS],
        count: 0,
        references: [Reference::default(); MAX_HOPS],
        window: f64::from(path.initial_window_packets.max(1)) * packet_size(path),
        has_begun: false,
        rounds: RoundCounter::default(),
        prior_window: None,
    };
    if hpcc.base_rtt_s > 0.0 && hpcc.line_rate > 0.0 {
        hpcc.begin();
    }
    Box::new(hpcc)
}

struct Hpcc {
    eta: f64,
    max_stage: u32,
    /// N.
    flows: f64,
    /// T; 0: the smallest RTT.
    base_rtt_s: f64,
    /// Bytes/s; 0: that of the first link.
    line_rate: f64,
    min_rate: f64,
    per_hop: bool,
    packet_bytes: f64,
    min_rtt_ns: u64,
    /// L: what the links said last.
    links: [IntHop; MAX_HOPS],
    count: usize,
    /// One for each hop, or the first for all.
    references: [Reference; MAX_HOPS],
    /// W, bytes.
    window: f64,
    /// W_init is known.
    has_begun: bool,
    rounds: RoundCounter,
    /// W_c before the last timeout, bytes.
    prior_window: Option<f64>,
}

/// What a window is corrected from.
#[derive(Clone, Copy)]
struct Reference {
    /// U.
    utilisation: f64,
    /// W_c, bytes.
    window: f64,
    /// incStage.
    stage: u32,
}

impl Default for Reference {
    fn default() -> Self {
        // The paper does not say where U begins; in the public simulator, at 1.
        Self { utilisation: 1.0, window: 0.0, stage: 0 }
    }
}

/// The load of a link between two ACKs.
#[derive(Clone, Copy)]
struct Load {
    /// u'.
    utilisation: f64,
    /// tau.
    interval_s: f64,
}

impl Hpcc {
    /// T.
    fn base_rtt_s(&self) -> f64 {
        if self.base_rtt_s > 0.0 { self.base_rtt_s } else { self.min_rtt_ns as f64 / 1e9 }
    }

    /// W_init: what the line rate fills.
    fn most(&self) -> f64 {
        let first_link = self.links[0].link_bytes_per_s as f64;
        let rate = if self.line_rate > 0.0 { self.line_rate } else { first_link };
        rate * self.base_rtt_s()
    }

    fn bounded(&self, window: f64) -> f64 {
        window.min(self.most()).max(self.min_rate * self.base_rtt_s()).max(1.0)
    }

    fn set_references(&mut self, window: f64) {
        for reference in &mut self.references {
            (reference.window, reference.stage) = (window, 0);
        }
        self.window = window;
    }

    /// A flow starts at line rate (section 3.2).
    fn begin(&mut self) {
        self.has_begun = true;
        self.set_references(self.bounded(self.most()));
    }

    /// MeasureInflight, lines 4 to 6, for one link; none if no time has passed there.
    fn load(&self, before: &IntHop, now: &IntHop) -> Option<Load> {
        let interval_ns = now.timestamp_ns.checked_sub(before.timestamp_ns).filter(|ns| *ns > 0)?;
        let (interval_s, rate) = (interval_ns as f64 / 1e9, now.link_bytes_per_s.max(1) as f64);
        let tx_rate = now.tx_bytes.saturating_sub(before.tx_bytes) as f64 / interval_s;
        let queue = now.queue_bytes.min(before.queue_bytes) as f64;
        let utilisation = queue / (rate * self.base_rtt_s()) + tx_rate / rate;
        Some(Load { utilisation, interval_s })
    }

    /// Lines 7 to 17: the window that `load` makes of a reference, which is renewed once per round trip.
    fn react(&self, mut reference: Reference, load: Load, renews: bool) -> (Reference, f64) {
        let weight = (load.interval_s / self.base_rtt_s()).min(1.0);
        reference.utilisation = (1.0 - weight) * reference.utilisation + weight * load.utilisation;
        let w_ai = self.most() * (1.0 - self.eta) / self.flows;
        let by_load = reference.utilisation >= self.eta || reference.stage >= self.max_stage;
        let factor = if by_load { self.eta / reference.utilisation } else { 1.0 };
        let window = self.bounded(reference.window * factor + w_ai);
        if renews {
            reference.stage = if by_load { 0 } else { reference.stage + 1 };
            reference.window = window;
        }
        (reference, window)
    }
}

impl Controller for Hpcc {
    fn on_ack(&mut self, ack: &Ack<'_>) {
        if ack.rtt_ns > 0 {
            self.min_rtt_ns = self.min_rtt_ns.min(ack.rtt_ns);
        }
        let hops = &ack.hops[..ack.hops.len().min(MAX_HOPS)];
        if hops.is_empty() || self.min_rtt_ns == u64::MAX {
            return;
        }
        let before = self.links;
        let pairs = || before.iter().zip(hops);
        if self.count != hops.len() || pairs().any(|(before, now)| before.hop_id != now.hop_id) {
            // The first ACK, or another path: there is nothing to compare with.
            self.links[..hops.len()].copy_from_slice(hops);
            self.count = hops.len();
            self.rounds.on_ack(ack);
            if !self.has_begun {
                self.begin();
            }
            return;
        }
        if pairs().any(|(before, now)| now.timestamp_ns < before.timestamp_ns) {
            // An ACK that was overtaken: what it tells is known.
            return;
        }
        let mut loads = [None; MAX_HOPS];
        for (load, (before, now)) in loads.iter_mut().zip(pairs()) {
            *load = self.load(before, now);
        }
        if !self.per_hop {
            // Line 6: the most loaded link.
            let by_load = |a: &Load, b: &Load| a.utilisation.total_cmp(&b.utilisation);
            let most = loads.into_iter().flatten().max_by(by_load);
            loads = [None; MAX_HOPS];
            loads[0] = most;
        }
        if loads.iter().all(Option::is_none) {
            return;
        }
        let renews = self.rounds.on_ack(ack);
        let mut window = self.most();
        let used = if self.per_hop { hops.len() } else { 1 };
        for (at, load) in loads.into_iter().enumerate().take(used) {
            let of_hop = match load {
                None => self.references[at].window,
                Some(load) => {
                    let (reference, of_hop) = self.react(self.references[at], load, renews);
                    self.references[at] = reference;
                    of_hop
                }
            };
            window = window.min(of_hop);
        }
        self.window = self.bounded(window);
        self.links[..hops.len()].copy_from_slice(hops);
    }

    fn on_loss(&mut self, _loss: &Loss) {
        // The paper's network loses nothing. A full queue is a load above 1, which the next ACK tells.
    }

    fn on_rto(&mut self, _timeout: &Timeout) {
        // Deviation: the paper has no timeouts. Without ACKs nobody tells the load: one packet, as any TCP.
        if self.has_begun {
            self.prior_window.get_or_insert(self.references[0].window);
            self.set_references(self.packet_bytes);
        }
    }

    fn on_spurious_loss(&mut self, _undo: &Undo) {
        if let Some(prior) = self.prior_window.take() {
            self.set_references(self.window.max(prior));
        }
    }

    fn on_path_change(&mut self, path: &PathInfo) {
        self.packet_bytes = packet_size(path);
    }

    fn control(&self) -> Control {
        // The packet that begins within the window is sent whole; how far apart they are is the pacer's.
        let packets = libm::ceil(self.window / self.packet_bytes);
        let window = Control::window(window_bytes(packets, self.packet_bytes));
        if !self.has_begun {
            return window;
        }
        Control { pacing_bytes_per_s: pacing_rate(self.window / self.base_rtt_s()), ..window }
    }

    fn observe(&self, out: &mut [f64]) {
        let used = if self.per_hop { self.count.max(1) } else { 1 };
        let by_window = |a: &&Reference, b: &&Reference| a.window.total_cmp(&b.window);
        let least = self.references[..used].iter().min_by(by_window).copied().unwrap_or_default();
        let most_loaded = self.references[..used].iter().map(|r| r.utilisation).fold(0.0, f64::max);
        let reference = if self.has_begun { least.window / self.packet_bytes } else { f64::NAN };
        out.copy_from_slice(&[
            self.window / self.packet_bytes,
            reference,
            most_loaded,
            f64::from(least.stage),
        ]);
    }
}

#[cfg(test)]
#[path = "hpcc_tests.rs"]
mod tests;
