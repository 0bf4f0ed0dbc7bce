//! Swift (Kumar et al., SIGCOMM 2020): a window that grows while the delay is below a target and shrinks in proportion to its excess, in
//! data centres. The target grows with the number of hops and as the window shrinks; windows below a packet are paced.

use super::{pacing_rate, packet_size, window_bytes};
use crate::controller::{Control, Controller, Field, Needs};
use crate::event::{Ack, AckSample, Loss, PathInfo, Timeout, Undo};
use crate::registry::{Family, Param, Params, Profile, Spec};

/// RETX_RESET_THRESHOLD: timeouts in a row after which the window is the smallest.
const RESET_THRESHOLD: u32 = 5;

/// The registry entry.
pub(crate) static SPEC: Spec = Spec {
    name: "swift",
    title: "Swift: AIMD on a delay target",
    family: Family::DataCentre,
    source: "Kumar et al., Swift: delay is simple and effective for congestion control in the datacenter (SIGCOMM 2020), algorithms 1 and 2",
    about: include_str!("about/swift.md"),
    needs: Needs::PACING,
    params: &[
        Param::duration("base_target", 0.000_02, (0.000_001, 1.0), "base target delay"),
        Param::duration("per_hop", 0.000_003, (0.0, 0.1), "target per hop, h"),
        Param::integer("hops", "1", 3.0, (0.0, 255.0), "hops of the path"),
        Param::duration(
            "fs_range",
            0.000_1,
            (0.0, 1.0),
            "most that flow scaling adds to the target",
        ),
        Param::number(
            "fs_min_cwnd",
            "packets",
            0.1,
            (0.001, 1.0),
            "window from which down it adds all",
        ),
        Param::number(
            "fs_max_cwnd",
            "packets",
            100.0,
            (1.1, 1e6),
            "window from which up it adds nothing",
        ),
        Param::number("ai", "packets", 1.0, (0.0, 1000.0), "additive increase per RTT"),
        Param::number("beta", "1", 0.8, (0.0, 1.0), "multiplicative decrease constant beta"),
        Param::number("max_mdf", "1", 0.5, (0.0, 0.99), "largest decrease per RTT"),
        Param::number("min_cwnd", "packets", 0.001, (0.000_1, 1.0), "smallest window"),
        Param::number("max_cwnd", "packets", 10_000.0, (2.0, 1e9), "largest window"),
    ],
    profiles: &[Profile {
        name: "wide-area",
        source: "ours: targets for RTTs of tens of milliseconds",
        values: &[("base_target", 0.05), ("per_hop", 0.0), ("fs_range", 0.1)],
    }],
    fields: &[
        Field { name: "window", unit: "packets", doc: "congestion window, with its fraction" },
        Field { name: "target", unit: "us", doc: "target delay at that window" },
    ],
    build,
};

fn build(params: &Params, path: &PathInfo) -> Box<dyn Controller> {
    let ns = |name: &str| params.get(name) * 1e9;
    let max_cwnd = params.get("max_cwnd");
    let fs_max = 1.0 / params.get("fs_max_cwnd").sqrt();
    let fs_alpha = ns("fs_range") / (1.0 / params.get("fs_min_cwnd").sqrt() - fs_max);
    Box::new(Swift {
        base_ns: ns("base_target") + params.get("hops") * ns("per_hop"),
        fs_range_ns: ns("fs_range"),
        fs_alpha,
        fs_beta: -fs_alpha * fs_max,
        ai: params.get("ai"),
        beta: params.get("beta"),
        max_mdf: params.get("max_mdf"),
        min_cwnd: params.get("min_cwnd"),
        max_cwnd,
        packet_bytes: packet_size(path),
        cwnd: f64::from(path.initial_window_packets.max(1)).min(max_cwnd),
        rtt_ns: 0,
        decreased_ns: None,
        prior_cwnd: None,
    })
}

struct Swift {
    /// Base target and that of the hops.
    base_ns: f64,
    fs_range_ns: f64,
    fs_alpha: f64,
    fs_beta: f64,
    ai: f64,
    beta: f64,
    max_mdf: f64,
    min_cwnd: f64,
    max_cwnd: f64,
    packet_bytes: f64,
    /// Packets.
    cwnd: f64,
    /// The last RTT; 0 before the first.
    rtt_ns: u64,
    decreased_ns: Option<u64>,
    /// Before the last loss or timeout.
    prior_cwnd: Option<f64>,
}

impl Swift {
    /// Section 3.5.
    fn target_ns(&self) -> f64 {
        let scaling = self.fs_alpha / self.cwnd.sqrt() + self.fs_beta;
        self.base_ns + scaling.min(self.fs_range_ns).max(0.0)
    }

    /// Once per RTT.
    fn can_decrease(&self, now_ns: u64) -> bool {
        self.decreased_ns.is_none_or(|at| now_ns.saturating_sub(at) >= self.rtt_ns)
    }

    fn set(&mut self, cwnd: f64, now_ns: u64) {
        let cwnd = cwnd.min(self.max_cwnd).max(self.min_cwnd);
        if cwnd < self.cwnd {
            self.decreased_ns = Some(now_ns);
        }
        self.cwnd = cwnd;
    }

    /// A loss: the largest decrease, if one may be.
    fn retreat(&mut self, now_ns: u64) {
        if self.can_decrease(now_ns) {
            self.prior_cwnd = Some(self.cwnd);
            self.set(self.cwnd * (1.0 - self.max_mdf), now_ns);
        }
    }
}

impl Controller for Swift {
    fn on_ack(&mut self, ack: &Ack<'_>) {
        if ack.rtt_ns == 0 {
            return;
        }
        self.rtt_ns = ack.rtt_ns;
        // Deviation: the fabric's delay alone. The second window, of the end hosts' delay, needs their time stamps.
        let delay_ns = ack.rtt_ns.saturating_sub(ack.ack_delay_ns) as f64;
        let target_ns = self.target_ns();
        if delay_ns < target_ns {
            // A window of less than a packet is always full.
            if self.cwnd < 1.0 || ack.has(AckSample::CWND_LIMITED) {
                let acked = f64::from(ack.acked_packets);
                let growth = if self.cwnd >= 1.0 { acked / self.cwnd } else { acked };
                self.set(self.cwnd + self.ai * growth, ack.now_ns);
            }
        } else if self.can_decrease(ack.now_ns) {
            let excess = (delay_ns - target_ns) / delay_ns;
            let factor = (1.0 - self.beta * excess).max(1.0 - self.max_mdf);
            self.set(self.cwnd * factor, ack.now_ns);
        }
    }

    fn on_loss(&mut self, loss: &Loss) {
        if loss.starts_episode() {
            self.retreat(loss.now_ns);
        }
    }

    fn on_rto(&mut self, timeout: &Timeout) {
        if timeout.consecutive >= RESET_THRESHOLD {
            self.set(self.min_cwnd, timeout.now_ns);
        } else {
            self.retreat(timeout.now_ns);
        }
    }

    fn on_spurious_loss(&mut self, _undo: &Undo) {
        if let Some(prior) = self.prior_cwnd.take() {
            self.cwnd = self.cwnd.max(prior);
        }
    }

    fn on_path_change(&mut self, path: &PathInfo) {
        self.packet_bytes = packet_size(path);
    }

    fn control(&self) -> Control {
        let window = Control::window(window_bytes(libm::floor(self.cwnd), self.packet_bytes));
        if self.cwnd >= 1.0 || self.rtt_ns == 0 {
            return window;
        }
        // Section 3.1.2: a packet every RTT/cwnd.
        let rate = self.packet_bytes * self.cwnd * 1e9 / self.rtt_ns as f64;
        Control { pacing_bytes_per_s: pacing_rate(rate), ..window }
    }

    fn observe(&self, out: &mut [f64]) {
        out.copy_from_slice(&[self.cwnd, self.target_ns() / 1e3]);
    }
}
