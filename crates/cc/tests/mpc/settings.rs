//! The parameters of `mpc`, as floating point has them.

use paceline_cc::{Kind, Params};

/// Bytes/s.
pub const MAX_RATE: f64 = 1_099_511_627_776.0;

/// Names are those of the registry.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Settings {
    pub cap: f64,
    pub queue: f64,
    pub rate_exponent: f64,
    pub rtt_exponent: f64,
    pub knee: f64,
    pub horizon: f64,
    pub fairness: f64,
    pub restraint: f64,
    pub memory: f64,
    pub settle: f64,
    pub drain_interval: f64,
    pub drain_margin: f64,
    pub growth: f64,
    pub growth_max: f64,
    pub hold: f64,
    pub least_packets: f64,
    pub start_growth: f64,
    pub start_queue: f64,
}

impl Settings {
    /// As the controller gets them: numbers in units of 2^-16, rates in whole bytes/s.
    pub fn new(params: &Params) -> Self {
        let get = |name: &str| {
            let (row, value) = params.iter().find(|(row, _)| row.name == name).expect("a row");
            match row.kind {
                Kind::Number => (value * 65536.0).round() / 65536.0,
                Kind::Rate => (value / 8.0).round(),
                Kind::Duration => (value * 1e9).round() / 1e9,
                _ => value,
            }
        };
        let cap = get("cap");
        Self {
            cap: if cap > 0.0 { cap.min(MAX_RATE) } else { MAX_RATE },
            queue: get("queue"),
            rate_exponent: get("rate_exponent"),
            rtt_exponent: get("rtt_exponent"),
            knee: get("knee"),
            horizon: get("horizon"),
            fairness: get("fairness"),
            restraint: get("restraint"),
            memory: get("memory"),
            settle: get("settle"),
            drain_interval: get("drain_interval"),
            drain_margin: get("drain_margin"),
            growth: get("growth"),
            growth_max: get("growth_max"),
            hold: get("hold"),
            least_packets: get("least_packets"),
            start_growth: get("start_growth"),
            start_queue: get("start_queue"),
        }
    }
}
