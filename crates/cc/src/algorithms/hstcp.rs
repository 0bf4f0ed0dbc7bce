//! HighSpeed TCP (RFC 3649): AIMD whose increase a(w) and decrease b(w) depend on the window, so that its mean window follows
//! a straight line between two points of the log-log response function; Reno up to `low_window`. Linux calls it `highspeed`.

use crate::controller::{Controller, Field, Needs};
use crate::event::{AckSample, PathInfo};
use crate::registry::{Family, Param, Params, Profile, Spec};
use crate::reno_window::{INITIAL_SSTHRESH, INITIAL_WINDOW, RenoWindow, SLOW_START, SSTHRESH};
use crate::window_law::{self, Signal, WindowLaw};

/// The registry entry.
pub(crate) static SPEC: Spec = Spec {
    name: "hstcp",
    title: "HighSpeed TCP: steps that grow with the window (Linux: highspeed)",
    family: Family::LossBased,
    source: "RFC 3649",
    about: include_str!("about/hstcp.md"),
    needs: Needs::NONE,
    params: &[
        Param::number(
            "low_window",
            "packets",
            38.0,
            (2.0, 10_000.0),
            "Low_Window W: Reno up to here",
        ),
        Param::number(
            "high_window",
            "packets",
            83_000.0,
            (20_000.0, 10_000_000.0),
            "High_Window W_1",
        ),
        Param::number("low_p", "1", 1e-3, (2e-4, 0.1), "Low_P: loss rate at Low_Window"),
        Param::number("high_p", "1", 1e-7, (1e-12, 1e-4), "High_P P_1: loss rate at High_Window"),
        Param::number(
            "high_decrease",
            "1",
            0.1,
            (0.01, 0.5),
            "High_Decrease B: share removed at High_Window",
        ),
        Param::choice(
            "increase",
            &["rfc3649", "rounded", "table"],
            "a(w): section 5, the fit p = 0.078/w^1.2 rounded to whole packets, or the table of appendix B",
        ),
        SLOW_START,
        INITIAL_WINDOW,
        INITIAL_SSTHRESH,
    ],
    profiles: &[
        Profile {
            name: "linux",
            source: "Linux 6.1 tcp_highspeed: the table of appendix B, whole packets, growth per ACK",
            values: &[("increase", 2.0)],
        },
        Profile {
            name: "nist",
            source: "NIST SP 500-282 (2010): initial window 2, threshold 31, a(w) rounded",
            values: &[("initial_window", 2.0), ("low_window", 31.0), ("increase", 1.0)],
        },
    ],
    fields: &[
        SSTHRESH,
        Field { name: "a", unit: "packets", doc: "increase per round trip, a(w)" },
        Field { name: "b", unit: "1", doc: "share removed by a loss, b(w)" },
    ],
    build,
};

fn build(params: &Params, path: &PathInfo) -> Box<dyn Controller> {
    let response = Response {
        low_window: params.get("low_window"),
        high_window: params.get("high_window"),
        low_p: params.get("low_p"),
        high_p: params.get("high_p"),
        high_decrease: params.get("high_decrease"),
    };
    let window = RenoWindow::from_params(params, path);
    match params.get_choice("increase") {
        "table" => window_law::controller(Table { row: 0, credit: 0.0 }, window),
        choice => {
            let rounded = choice == "rounded";
            window_law::controller(Hstcp { response, rounded, at: 0.0, a: 1.0, b: 0.5 }, window)
        }
    }
}

/// The response function of RFC 3649 §5.
#[derive(Clone, Copy, Debug)]
struct Response {
    low_window: f64,
    high_window: f64,
    low_p: f64,
    high_p: f64,
    high_decrease: f64,
}

impl Response {
    /// How far between the two windows `w` lies, on a log scale.
    fn share(&self, w: f64) -> f64 {
        libm::log(w / self.low_window) / libm::log(self.high_window / self.low_window)
    }

    /// Loss rate at which the mean window is `w` (§5, from w = (p / Low_P)^S Low_Window).
    fn p(&self, w: f64) -> f64 {
        self.low_p * libm::pow(self.high_p / self.low_p, self.share(w))
    }

    /// Share removed by a loss (§5). The RFC ends at High_Window; from there on b stays.
    fn b(&self, w: f64) -> f64 {
        0.5 + (self.high_decrease - 0.5) * self.share(w).min(1.0)
    }

    /// Increase per round trip at which AIMD with decrease `b` has the mean window `w` at loss rate `p` (§5).
    fn a(w: f64, p: f64, b: f64) -> f64 {
        w * w * p * 2.0 * b / (2.0 - b)
    }
}

struct Hstcp {
    response: Response,
    rounded: bool,
    /// The whole window that `a` and `b` are for: they cost two logarithms and a power.
    at: f64,
    a: f64,
    b: f64,
}

impl Hstcp {
    fn look_up(&mut self, window: f64) {
        let whole = libm::floor(window);
        if whole == self.at {
            return;
        }
        self.at = whole;
        if whole <= self.response.low_window {
            (self.a, self.b) = (1.0, 0.5);
            return;
        }
        self.b = self.response.b(whole);
        self.a = if self.rounded {
            // NIST SP 500-282: the power that RFC 3649 §5 fits to p(w), a(w) in whole packets.
            let p = 0.078 / libm::pow(whole, 1.2);
            libm::floor(Response::a(whole, p, self.b) + 0.5)
        } else {
            Response::a(whole, self.response.p(whole), self.b)
        };
    }
}

impl WindowLaw for Hstcp {
    fn advance(&mut self, ack: &AckSample, window: &mut RenoWindow) {
        let acked = window.slow_start(ack);
        if acked > 0.0 {
            self.look_up(window.cwnd);
            // RFC 3649 §4: w <- w + a(w)/w.
            window.grow(self.a * acked / window.cwnd);
        }
    }

    fn keep(&mut self, _signal: &Signal<'_>, window: &RenoWindow) -> f64 {
        self.look_up(window.cwnd);
        // RFC 3649 §4: w <- (1 - b(w)) w.
        window.cwnd - self.b * window.cwnd
    }

    fn observe(&self, window: &RenoWindow, out: &mut [f64]) {
        out.copy_from_slice(&[window.ssthresh_bytes(), self.a, self.b]);
    }
}

/// RFC 3649, appendix B: the largest window at which a(w) = 1, 2, 3, …; the RFC's last row, 94,717, is not in Linux.
const ROWS: [u32; 72] = [
    38, 118, 221, 347, 495, 663, 851, 1058, 1284, 1529, 1793, 2076, 2378, 2699, 3039, 3399, 3778,
    4177, 4596, 5036, 5497, 5979, 6483, 7009, 7558, 8130, 8726, 9346, 9991, 10661, 11358, 12082,
    12834, 13614, 14424, 15265, 16137, 17042, 17981, 18955, 19965, 21013, 22101, 23230, 24402,
    25618, 26881, 28193, 29557, 30975, 32450, 33986, 35586, 37253, 38992, 40808, 42707, 44694,
    46776, 48961, 51258, 53677, 56230, 58932, 61799, 64851, 68113, 71617, 75401, 79517, 84035,
    89053,
];

/// HighSpeed TCP as Linux has it.
struct Table {
    /// Row of the table, moved only by ACKs in congestion avoidance: the first loss after slow start is cut as at row 0.
    row: usize,
    credit: f64,
}

impl Table {
    fn a(&self) -> f64 {
        (self.row + 1) as f64
    }

    /// b(w) at the row's window in 256ths, rounded down.
    fn b(&self) -> f64 {
        let share = libm::log(f64::from(ROWS[self.row]) / 38.0) / libm::log(83_000.0 / 38.0);
        libm::floor(256.0 * (0.5 - 0.4 * share)) / 256.0
    }
}

impl WindowLaw for Table {
    fn advance(&mut self, ack: &AckSample, window: &mut RenoWindow) {
        if window.slow_start(ack) == 0.0 {
            return;
        }
        let cwnd = window.cwnd;
        while self.row + 1 < ROWS.len() && cwnd > f64::from(ROWS[self.row]) {
            self.row += 1;
        }
        while self.row > 0 && cwnd <= f64::from(ROWS[self.row - 1]) {
            self.row -= 1;
        }
        // Once per ACK, however much it acknowledges: a receiver that delays ACKs halves the growth.
        self.credit += self.a();
        if self.credit >= cwnd {
            self.credit -= cwnd;
            window.grow(1.0);
        }
    }

    fn keep(&mut self, _signal: &Signal<'_>, window: &RenoWindow) -> f64 {
        self.credit = 0.0;
        window.cwnd - libm::floor(window.cwnd * self.b())
    }

    fn observe(&self, window: &RenoWindow, out: &mut [f64]) {
        out.copy_from_slice(&[window.ssthresh_bytes(), self.a(), self.b()]);
    }
}

#[cfg(test)]
#[path = "hstcp_tests.rs"]
mod tests;
