//! Sprout (Winstein, Sivaraman, Balakrishnan 2013): infers the rate of a cellular link from arrivals, forecasts what it will
//! cautiously deliver in the next 100 ms, and has no more than that in flight.
//!
//! ACKs and a timer in, a window out. Section numbers are the paper's (NSDI 2013).
//!
//! Deviation: in the paper the receiver infers and sends its forecast; here the sender does, from the arrival of ACKs, each of
//! which stands for a packet that has arrived.

use super::{packet_size, window_bytes};
use crate::controller::{Control, Controller, Field, Needs};
use crate::event::{Ack, Loss, PathInfo, Resume, Timeout};
use crate::registry::{Family, Param, Params, Spec};

mod model;

use model::{Model, Observation};

/// §3.1: length of a tick, ns.
const TICK_NS: u64 = 20_000_000;
/// Ticks without a callback that are caught up with; more change the belief no further.
const MAX_LATE_TICKS: u64 = 2;

/// The registry entry.
pub(crate) static SPEC: Spec = Spec {
    name: "sprout",
    title: "Sprout: a forecast of deliveries, made at the sender",
    family: Family::ModelBased,
    source: "Winstein, Sivaraman and Balakrishnan, Stochastic forecasts achieve high throughput and low delay over cellular networks (NSDI 2013)",
    about: include_str!("about/sprout.md"),
    needs: Needs::TIMERS,
    params: &[
        Param::number(
            "max_rate",
            "packets/s",
            1000.0,
            // Poisson probabilities of more packets than 4000/s deliver in 8 ticks are too small for an f64.
            (10.0, 4000.0),
            "largest rate the model knows; the paper's link has 1000",
        ),
        Param::number(
            "sigma",
            "packets/s^1.5",
            200.0,
            (1.0, 1e6),
            "sigma: noise power of the Brownian motion of the rate",
        ),
        Param::number(
            "outage_escape_rate",
            "1/s",
            1.0,
            (0.001, 1000.0),
            "lambda_z: how fast an outage ends",
        ),
        Param::number(
            "percentile",
            "1",
            0.05,
            (0.001, 0.999),
            "the forecast delivers at least this with all but this probability",
        ),
        Param::integer(
            "ticks",
            "1",
            5.0,
            (1.0, 8.0),
            "ticks of 20 ms in which all must be delivered",
        ),
    ],
    profiles: &[],
    fields: &[
        Field { name: "rate", unit: "packets/s", doc: "mean of the belief about the link's rate" },
        Field { name: "outage", unit: "1", doc: "probability of an outage" },
        Field { name: "forecast", unit: "packets", doc: "deliveries forecast, cautiously" },
    ],
    build,
};

fn build(params: &Params, path: &PathInfo) -> Box<dyn Controller> {
    let model = Model::new(
        params.get("max_rate"),
        params.get("sigma"),
        params.get("outage_escape_rate"),
        TICK_NS as f64 * 1e-9,
        params.get("ticks"),
    );
    let mut sprout = Sprout {
        model,
        percentile: params.get("percentile"),
        packet_bytes: packet_size(path),
        tick_end_ns: path.now_ns.saturating_add(TICK_NS),
        arrived: 0.0,
        in_flight: false,
        min_rtt_ns: u64::MAX,
        last_rtt_ns: 0,
        waiting_since_ns: path.now_ns,
        forecast: 0,
    };
    sprout.renew_forecast();
    Box::new(sprout)
}

struct Sprout {
    model: Model,
    percentile: f64,
    packet_bytes: f64,
    tick_end_ns: u64,
    /// Packets that arrived in this tick.
    arrived: f64,
    in_flight: bool,
    min_rtt_ns: u64,
    /// RTT of the newest sample.
    last_rtt_ns: u64,
    /// Since when a packet is in flight of which nothing has been heard: the last ACK, or the first packet after idleness.
    waiting_since_ns: u64,
    /// Packets.
    forecast: u32,
}

impl Sprout {
    /// Ends every tick that is over at `now_ns`.
    fn advance(&mut self, now_ns: u64) {
        if now_ns < self.tick_end_ns {
            return;
        }
        let over = (now_ns - self.tick_end_ns) / TICK_NS + 1;
        self.tick_end_ns =
            self.tick_end_ns.saturating_add((over - over.min(MAX_LATE_TICKS)) * TICK_NS);
        for _ in 0..over.min(MAX_LATE_TICKS) {
            let seen = self.observation();
            self.model.evolve();
            self.model.observe(seen);
            self.arrived = 0.0;
            self.tick_end_ns = self.tick_end_ns.saturating_add(TICK_NS);
        }
        self.renew_forecast();
    }

    /// What the tick that ends says of the link (§3.2). Only a queue that was never empty shows the link's rate; else it is
    /// at least what arrived. (The paper's sender marks its packets for that; here the RTT tells.)
    fn observation(&self) -> Observation {
        let tick_start_ns = self.tick_end_ns.saturating_sub(TICK_NS);
        if self.arrived > 0.0 {
            // The newest packet to arrive had waited for longer than the tick.
            let waited_ns = self.last_rtt_ns.saturating_sub(self.min_rtt_ns);
            if waited_ns >= TICK_NS {
                Observation::Exactly(self.arrived)
            } else {
                Observation::AtLeast(self.arrived)
            }
        } else if self.in_flight
            && self.min_rtt_ns != u64::MAX
            && self.waiting_since_ns.saturating_add(self.min_rtt_ns) <= tick_start_ns
        {
            // A packet has been due for all of the tick.
            Observation::Exactly(0.0)
        } else {
            Observation::Nothing
        }
    }

    /// §3.3.
    fn renew_forecast(&mut self) {
        self.forecast = self.model.forecast(self.percentile);
    }
}

impl Controller for Sprout {
    fn on_ack(&mut self, ack: &Ack<'_>) {
        self.advance(ack.now_ns);
        self.arrived += f64::from(ack.acked_packets);
        if ack.rtt_ns > 0 {
            self.last_rtt_ns = ack.rtt_ns;
            self.min_rtt_ns = self.min_rtt_ns.min(ack.rtt_ns);
        }
        self.in_flight = ack.in_flight_bytes > 0;
        self.waiting_since_ns = ack.now_ns;
    }

    fn on_loss(&mut self, loss: &Loss) {
        self.advance(loss.now_ns);
    }

    fn on_rto(&mut self, timeout: &Timeout) {
        self.advance(timeout.now_ns);
    }

    fn on_resume(&mut self, resume: &Resume) {
        self.advance(resume.now_ns);
        self.in_flight = true;
        self.waiting_since_ns = resume.now_ns;
    }

    fn on_path_change(&mut self, path: &PathInfo) {
        self.packet_bytes = packet_size(path);
        self.min_rtt_ns = u64::MAX;
    }

    fn on_timer(&mut self, now_ns: u64) {
        self.advance(now_ns);
    }

    fn control(&self) -> Control {
        Control {
            next_timer_ns: self.tick_end_ns,
            ..Control::window(window_bytes(f64::from(self.forecast), self.packet_bytes))
        }
    }

    fn observe(&self, out: &mut [f64]) {
        out.copy_from_slice(&[self.model.mean(), self.model.outage(), f64::from(self.forecast)]);
    }
}

#[cfg(test)]
#[path = "sprout_tests.rs"]
mod tests;
