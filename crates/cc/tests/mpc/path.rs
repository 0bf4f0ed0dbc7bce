//! One bottleneck and the flows on it, each controlled by `mpc` in integers; every event of every flow is recorded with what the
//! controller showed after it.

use std::collections::VecDeque;

use paceline_cc::{
    Ack, AckSample, Control, Controller, Loss, Params, PathInfo, Resume, Timeout, registry,
};

/// What happened to a flow.
#[derive(Clone, Debug)]
pub enum Event {
    Ack(Box<AckSample>),
    Loss(Loss),
    Timeout(u64),
    Resume(u64, u64),
}

/// What the controller showed after an event: window, pacing rate, fields.
#[derive(Clone, Copy, Debug)]
pub struct Shown {
    pub window: u64,
    pub pacing: u64,
    pub fields: [f64; 8],
}

/// All that a flow's controller heard and showed.
pub struct Log {
    pub name: &'static str,
    pub params: Params,
    pub path: PathInfo,
    pub events: Vec<(Event, Shown)>,
}

/// A bottleneck, and how long its flows run.
#[derive(Clone, Debug)]
pub struct Scenario {
    pub name: &'static str,
    /// (from s, bytes/s).
    pub capacity: Vec<(f64, f64)>,
    pub rtt_s: f64,
    /// Largest delay that an ACK has on top, s.
    pub noise_s: f64,
    pub buffer_s: f64,
    /// One packet in so many is lost; 0 = none.
    pub loses_one_in: u64,
    /// No packet passes in [from, to), s.
    pub outage: (f64, f64),
    pub packet_bytes: u32,
    pub seconds: f64,
    pub flows: Vec<FlowPlan>,
}

/// What is special of a flow.
#[derive(Clone, Debug, Default)]
pub struct FlowPlan {
    pub starts_s: f64,
    /// In [from, to), s, the application makes so much, bytes/s; else as much as can be sent.
    pub makes: f64,
    pub little: (f64, f64),
    /// It has nothing to send in [from, to), s.
    pub pause: (f64, f64),
    /// It sends so many packets as one, paced by what 1 ms makes if that is less, and one ACK comes for them; 0 = 1.
    pub burst: u64,
    pub settings: Vec<(&'static str, f64)>,
}

struct Packet {
    sent_ns: u64,
    /// `None`: lost.
    ack_ns: Option<u64>,
    prior_delivered: u64,
    tx_in_flight: u64,
    lost_before: u64,
    /// Bytes ahead of it in its burst; whether it is the last.
    ahead: u64,
    ends_burst: bool,
}

struct Flow {
    plan: FlowPlan,
    controller: Box<dyn Controller>,
    control: Control,
    log: Log,
    packets: VecDeque<Packet>,
    in_flight: u64,
    delivered: u64,
    lost: u64,
    next_send_ns: u64,
    last_ack_ns: u64,
    limited_ns: u64,
    idle: bool,
    timeout_ns: u64,
    /// Sent of the present burst, and delivered without an ACK, bytes.
    burst: u64,
    untold: u64,
}

fn ns(seconds: f64) -> u64 {
    (seconds * 1e9) as u64
}

/// Runs the scenario; one log for each flow.
pub fn record(scenario: &Scenario) -> Vec<Log> {
    let mut path = Path::new(scenario);
    while path.step() {}
    path.flows.into_iter().map(|flow| flow.log).collect()
}

struct Path<'a> {
    scenario: &'a Scenario,
    flows: Vec<Flow>,
    free_ns: f64,
    random: u64,
    end_ns: u64,
}

impl<'a> Path<'a> {
    fn new(scenario: &'a Scenario) -> Self {
        let flows =
            scenario.flows.iter().zip(1..).map(|(plan, seed)| Flow::new(scenario, plan, seed));
        Self {
            scenario,
            flows: flows.collect(),
            free_ns: 0.0,
            random: 0,
            end_ns: ns(scenario.seconds),
        }
    }

    /// SplitMix64 (Steele, Lea and Flood 2014), in [0, 1).
    fn chance(&mut self) -> f64 {
        self.random = self.random.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let z = (self.random ^ (self.random >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((z ^ (z >> 31)) >> 11) as f64 / (1_u64 << 53) as f64
    }

    /// The next event of all flows; whether there was one before the end.
    fn step(&mut self) -> bool {
        let next = |flow: &Flow| flow.next_ack_ns().min(flow.sends_ns()).min(flow.timeout_ns);
        let Some((at, now_ns)) =
            self.flows.iter().map(next).enumerate().min_by_key(|(_, at_ns)| *at_ns)
        else {
            return false;
        };
        if now_ns >= self.end_ns {
            return false;
        }
        let flow = &mut self.flows[at];
        if flow.next_ack_ns() == now_ns {
            flow.ack(now_ns);
        } else if flow.sends_ns() == now_ns {
            self.send(at, now_ns);
        } else {
            flow.time_out(now_ns);
        }
        true
    }

    fn send(&mut self, at: usize, now_ns: u64) {
        let (scenario, now) = (self.scenario, now_ns as f64);
        let bytes = u64::from(scenario.packet_bytes);
        let capacity = scenario.capacity.iter().rev().find(|(from, _)| *from * 1e9 <= now);
        let capacity = capacity.expect("one from 0 s").1;
        let wait_ns = (self.free_ns - now).max(0.0);
        let lost = wait_ns > scenario.buffer_s * 1e9
            || (scenario.outage.0..scenario.outage.1).contains(&(now / 1e9))
            || (scenario.loses_one_in > 0 && self.chance() * (scenario.loses_one_in as f64) < 1.0);
        let noise_ns = self.chance() * scenario.noise_s * 1e9;
        let mut ack_ns = None;
        if !lost {
            self.free_ns = now + wait_ns + bytes as f64 * 1e9 / capacity;
            ack_ns = Some((self.free_ns + scenario.rtt_s * 1e9 + noise_ns) as u64);
        }
        self.flows[at].send(now_ns, bytes, ack_ns);
    }
}

impl Flow {
    fn new(scenario: &Scenario, plan: &FlowPlan, seed: u64) -> Self {
        let spec = registry::find("mpc").expect("registered");
        let mut params = spec.params(None).expect("the defaults");
        for (name, value) in &plan.settings {
            params.set(name, *value).expect("in its range");
        }
        let now_ns = ns(plan.starts_s);
        let packet_bytes = scenario.packet_bytes;
        let path = PathInfo { now_ns, packet_bytes, initial_window_packets: 10, seed };
        let controller = (spec.build)(&params, &path);
        let control = controller.control();
        Self {
            plan: plan.clone(),
            controller,
            control,
            log: Log { name: scenario.name, params, path, events: Vec::new() },
            packets: VecDeque::new(),
            in_flight: 0,
            delivered: 0,
            lost: 0,
            next_send_ns: now_ns,
            last_ack_ns: now_ns,
            limited_ns: 0,
            idle: false,
            timeout_ns: u64::MAX,
            burst: 0,
            untold: 0,
        }
    }

    fn packet_bytes(&self) -> u64 {
        u64::from(self.log.path.packet_bytes)
    }

    fn next_ack_ns(&self) -> u64 {
        let first = self.packets.iter().find_map(|packet| packet.ack_ns);
        first.map_or(u64::MAX, |ack_ns| ack_ns.max(self.last_ack_ns))
    }

    /// When it sends next.
    fn sends_ns(&self) -> u64 {
        if self.in_flight + self.packet_bytes() > self.control.cwnd_bytes {
            return u64::MAX;
        }
        let at_ns = self.next_send_ns.max(self.last_ack_ns);
        let (from_ns, to_ns) = (ns(self.plan.pause.0), ns(self.plan.pause.1));
        if (from_ns..to_ns).contains(&at_ns) { to_ns } else { at_ns }
    }

    fn show(&mut self, event: Event) {
        self.control = self.controller.control();
        let mut fields = [0.0; 8];
        self.controller.observe(&mut fields);
        let (window, pacing) = (self.control.cwnd_bytes, self.control.pacing_bytes_per_s);
        self.log.events.push((event, Shown { window, pacing, fields }));
    }

    fn send(&mut self, now_ns: u64, bytes: u64, ack_ns: Option<u64>) {
        if self.idle {
            self.idle = false;
            let idle_ns = now_ns - self.last_ack_ns;
            self.controller.on_resume(&Resume { now_ns, idle_ns });
            self.show(Event::Resume(now_ns, idle_ns));
        }
        self.in_flight += bytes;
        let ahead = self.burst;
        self.burst += bytes;
        let full = self.burst >= self.burst_bytes();
        self.packets.push_back(Packet {
            sent_ns: now_ns,
            ack_ns,
            prior_delivered: self.delivered,
            tx_in_flight: self.in_flight,
            lost_before: self.lost,
            ahead,
            ends_burst: full,
        });
        let mut gap_ns = 0;
        if self.control.pacing_bytes_per_s != Control::UNPACED {
            gap_ns =
                if full { self.burst } else { 0 } * 1_000_000_000 / self.control.pacing_bytes_per_s;
        }
        if (ns(self.plan.little.0)..ns(self.plan.little.1)).contains(&now_ns) {
            let made_ns = (bytes as f64 * 1e9 / self.plan.makes) as u64;
            if made_ns > gap_ns {
                self.limited_ns = now_ns;
                gap_ns = made_ns;
            }
        }
        if full {
            self.burst = 0;
        }
        self.next_send_ns = now_ns + gap_ns;
        self.timeout_ns = self.timeout_ns.min(now_ns + self.patience_ns());
    }

    /// As Linux does it: what the rate makes in a millisecond or so, at most what the plan says.
    fn burst_bytes(&self) -> u64 {
        let made = self.control.pacing_bytes_per_s >> 10;
        made.min(self.plan.burst * self.packet_bytes())
    }

    fn patience_ns(&self) -> u64 {
        let rtt_us = self.log.events.last().map_or(f64::NAN, |(_, shown)| shown.fields[4]);
        let rtt_us = if rtt_us.is_nan() { 1e6 } else { rtt_us };
        200_000_000 + (rtt_us * 3000.0) as u64
    }

    /// The ACK of the first packet that was not lost. None overtakes another, so it tells of those lost before it.
    fn ack(&mut self, now_ns: u64) {
        let at = self.packets.iter().position(|p| p.ack_ns.is_some()).expect("there is one");
        let bytes = self.packet_bytes();
        let prior_in_flight_bytes = self.in_flight;
        let lost_before_step = self.lost;
        if at > 0 {
            self.packets.drain(..at);
            let lost_bytes = at as u64 * bytes;
            self.in_flight -= lost_bytes;
            self.lost += lost_bytes;
            let loss = Loss {
                now_ns,
                lost_bytes,
                lost_packets: at as u32,
                in_flight_bytes: self.in_flight,
                prior_in_flight_bytes,
                ..Loss::default()
            };
            self.controller.on_loss(&loss);
            self.show(Event::Loss(loss));
        }
        let packet = self.packets.pop_front().expect("the one found");
        self.in_flight -= bytes;
        self.delivered += bytes;
        self.untold += bytes;
        self.last_ack_ns = now_ns;
        if !packet.ends_burst && !self.packets.is_empty() {
            return;
        }
        let acked_bytes = std::mem::take(&mut self.untold);
        let limited = self.limited_ns > 0 && packet.sent_ns <= self.limited_ns + bytes;
        let sample = AckSample {
            now_ns,
            acked_bytes,
            acked_packets: (acked_bytes / bytes) as u32,
            in_flight_bytes: self.in_flight,
            prior_in_flight_bytes,
            rtt_ns: now_ns - packet.sent_ns,
            sent_ns: packet.sent_ns,
            delivered_total_bytes: self.delivered,
            prior_delivered_total_bytes: packet.prior_delivered,
            tx_in_flight_bytes: packet.tx_in_flight,
            lost_since_sent_bytes: lost_before_step - packet.lost_before,
            flags: if limited { AckSample::APP_LIMITED } else { 0 },
            burst_bytes: packet.ahead.min(acked_bytes - bytes) as u32,
            ..AckSample::default()
        };
        self.controller.on_ack(&Ack { sample, hops: &[] });
        self.last_ack_ns = now_ns;
        self.show(Event::Ack(Box::new(sample)));
        self.idle = self.packets.is_empty();
        self.timeout_ns = if self.idle { u64::MAX } else { now_ns + self.patience_ns() };
    }

    /// Everything in flight is lost.
    fn time_out(&mut self, now_ns: u64) {
        let lost_bytes = self.in_flight;
        self.packets.clear();
        self.lost += lost_bytes;
        self.in_flight = 0;
        let loss = Loss { now_ns, lost_bytes, ..Loss::default() };
        self.controller.on_loss(&loss);
        self.show(Event::Loss(loss));
        self.controller.on_rto(&Timeout { now_ns, consecutive: 1, ..Timeout::default() });
        self.show(Event::Timeout(now_ns));
        self.next_send_ns = self.next_send_ns.max(now_ns);
        self.timeout_ns = u64::MAX;
    }
}
