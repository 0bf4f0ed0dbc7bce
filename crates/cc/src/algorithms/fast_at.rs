//! FAST-AT: FAST TCP with alpha tuned to the rate, as NIST SP 500-282 (2010) runs it beside FAST.
//!
//! The equation is in `fast.rs`. A flow of a slow link keeps few packets in its queue, one of a fast link many; both then see a
//! queueing delay of some milliseconds.

use super::fast::{self, FIELDS, GAMMA};
use crate::controller::{Controller, Needs};
use crate::event::PathInfo;
use crate::registry::{Family, Param, Params, Spec};
use crate::reno_window::{INITIAL_SSTHRESH, INITIAL_WINDOW, NIST, SLOW_START};

/// The registry entry.
pub(crate) static SPEC: Spec = Spec {
    name: "fast-at",
    title: "FAST TCP with alpha tuned to the rate",
    family: Family::DelayBased,
    source: "Jin, Wei and Low, FAST TCP: motivation, architecture, algorithms, performance (INFOCOM 2004); alpha tuning as in NIST SP 500-282 (2010)",
    about: include_str!("about/fast-at.md"),
    needs: Needs::NONE,
    params: &[
        Param::number("alpha_low", "packets", 8.0, (1.0, 100_000.0), "alpha of a slow flow"),
        Param::number("alpha_middle", "packets", 20.0, (1.0, 100_000.0), "alpha of a faster one"),
        Param::number("alpha_high", "packets", 200.0, (1.0, 100_000.0), "alpha of a fast one"),
        threshold("up_middle", 1500.0, "rate above which alpha goes from low to middle"),
        threshold("up_high", 15_000.0, "rate above which alpha goes from middle to high"),
        threshold("down_low", 1250.0, "rate below which alpha goes from middle to low"),
        threshold("down_middle", 12_500.0, "rate below which alpha goes from high to middle"),
        GAMMA,
        SLOW_START,
        INITIAL_WINDOW,
        INITIAL_SSTHRESH,
    ],
    profiles: NIST,
    fields: FIELDS,
    build,
};

const fn threshold(name: &'static str, default: f64, doc: &'static str) -> Param {
    Param::number(name, "packets/s", default, (1.0, 1e9), doc)
}

fn build(params: &Params, path: &PathInfo) -> Box<dyn Controller> {
    let ladder = Ladder {
        alphas: ["alpha_low", "alpha_middle", "alpha_high"].map(|name| params.get(name)),
        up: ["up_middle", "up_high"].map(|name| params.get(name)),
        down: ["down_low", "down_middle"].map(|name| params.get(name)),
        rung: 0,
    };
    fast::controller(params, path, ladder.alphas[0], Some(ladder))
}

/// Alpha as a function of the rate, with hysteresis.
#[derive(Clone, Copy, Debug)]
pub(super) struct Ladder {
    alphas: [f64; 3],
    /// Packets/s above which each of the lower two rungs is left.
    up: [f64; 2],
    /// Packets/s below which one comes back to it.
    down: [f64; 2],
    rung: usize,
}

impl Ladder {
    /// Alpha at a rate of `packets_per_s`.
    pub(super) fn at(&mut self, packets_per_s: f64) -> f64 {
        let before = self.rung;
        while self.rung < 2 && packets_per_s > self.up[self.rung] {
            self.rung += 1;
        }
        if self.rung == before {
            while self.rung > 0 && packets_per_s < self.down[self.rung - 1] {
                self.rung -= 1;
            }
        }
        self.alphas[self.rung]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// T9, the ladder of section 3.3, in packets/ms.
    #[test]
    fn alpha_climbs_with_hysteresis() {
        let mut ladder = Ladder {
            alphas: [8.0, 20.0, 200.0],
            up: [1500.0, 15_000.0],
            down: [1250.0, 12_500.0],
            rung: 0,
        };
        let steps = [
            (1.4, 8.0),
            (1.6, 20.0),
            (16.0, 200.0),
            (13.0, 200.0),
            (12.0, 20.0),
            (1.3, 20.0),
            (1.2, 8.0),
            (16.0, 200.0),
            (1.2, 8.0),
        ];
        for (packets_per_ms, alpha) in steps {
            assert_eq!(ladder.at(packets_per_ms * 1e3), alpha, "{packets_per_ms}");
        }
    }
}
