//! Turns bytes into a controller, its parameters and a hostile sequence of events, and checks what must hold after each.
//!
//! `fuzz/fuzz_targets/controller.rs` includes this file by path and calls [`any`] with its input; the property test feeds it
//! random bytes. Whatever the host gets wrong except the order of time may appear: zero and enormous RTTs, ACKs of nothing or
//! of more than was ever sent, losses of packets from the future and in bursts, storms of timeouts, another packet size,
//! hours of silence.

use paceline_cc::{
    Ack, AckSample, Control, Controller, IntHop, Kind, Loss, Params, PathInfo, Resume, Sent, Spec,
    Timeout, Undo, registry,
};

/// Reads numbers off a byte string; zeros when it has ended.
struct Bytes<'a>(&'a [u8]);

impl Bytes<'_> {
    fn byte(&mut self) -> u8 {
        let Some((first, rest)) = self.0.split_first() else { return 0 };
        self.0 = rest;
        *first
    }

    fn below(&mut self, n: usize) -> usize {
        usize::from(self.byte()) % n
    }

    /// A number of any magnitude, small ones and powers of two being likely.
    fn number(&mut self) -> u64 {
        let high_bits = u64::from_le_bytes(std::array::from_fn(|_| self.byte()));
        match self.below(4) {
            0 => 0,
            1 => u64::from(self.byte()),
            2 => high_bits >> self.below(64),
            _ => u64::MAX >> self.below(64),
        }
    }

    /// A duration from nothing to hours, ns.
    fn duration_ns(&mut self) -> u64 {
        let base = u64::from(self.byte());
        base * [0, 1, 1_000, 100_000, 1_000_000, 20_000_000, 1_000_000_000, 100_000_000_000]
            [self.below(8)]
    }
}

/// Interprets `bytes` as controller, parameters, path and events. Panics where a controller breaks its word.
pub fn any(bytes: &[u8]) {
    let specs = registry::all();
    let mut bytes = Bytes(bytes);
    let spec = specs[bytes.below(specs.len())];
    one(spec, bytes.0);
}

/// The same for one algorithm.
pub fn one(spec: &'static Spec, bytes: &[u8]) {
    with(spec, &spec.build, bytes);
}

/// The same for what `build` makes of the algorithm.
pub fn with(
    spec: &'static Spec,
    build: &dyn Fn(&Params, &PathInfo) -> Box<dyn Controller>,
    bytes: &[u8],
) {
    let mut bytes = Bytes(bytes);
    let params = params(spec, &mut bytes);
    let path = path(0, &mut bytes);
    let controller = build(&params, &path);
    let fields = vec![0.0; spec.fields.len()];
    let mut drive = Drive { spec, controller, path, totals: Totals::default(), fields };
    drive.check();
    while !bytes.0.is_empty() {
        drive.wait(bytes.duration_ns());
        drive.event(&mut bytes);
    }
}

/// A controller and its host.
struct Drive {
    spec: &'static Spec,
    controller: Box<dyn Controller>,
    path: PathInfo,
    totals: Totals,
    /// What the controller lets see.
    fields: Vec<f64>,
}

/// What a host counts.
#[derive(Default)]
struct Totals {
    now_ns: u64,
    delivered_bytes: u64,
    min_rtt_ns: u64,
}

impl Drive {
    fn wait(&mut self, ns: u64) {
        self.totals.now_ns = self.totals.now_ns.saturating_add(ns);
    }

    /// What holds at any time.
    fn check(&mut self) {
        let control = self.controller.control();
        let (name, fields) = (self.spec.name, &mut self.fields);
        let packet_bytes = u64::from(self.path.packet_bytes.max(1));
        assert!(control.cwnd_bytes >= packet_bytes, "{name}: {control:?}");
        assert!(control.cwnd_bytes < 1 << 62, "{name}: {control:?}");
        let pacing = control.pacing_bytes_per_s;
        let finite = pacing == Control::UNPACED || pacing < 1 << 62;
        assert!(pacing > 0 && finite, "{name}: {control:?}");
        self.controller.observe(fields);
        assert!(fields.iter().all(|v| !v.is_infinite()), "{name}: {fields:?}");
        assert_eq!(control, self.controller.control(), "{name}: changed without an event");
    }

    /// One event, or several of a kind; after each, what must hold is checked.
    fn event(&mut self, bytes: &mut Bytes) {
        let now_ns = self.totals.now_ns;
        match bytes.below(16) {
            0 => {
                // A burst: detection after detection at one moment.
                for _ in 0..bytes.below(4) {
                    self.controller.on_loss(&loss(now_ns, bytes));
                    self.check();
                }
                self.controller.on_loss(&loss(now_ns, bytes));
            }
            1 => return self.timeouts(bytes),
            2 => {
                let started_ns = now_ns.saturating_sub(bytes.duration_ns());
                self.controller.on_spurious_loss(&Undo { now_ns, started_ns });
            }
            3 => self.controller.on_resume(&Resume { now_ns, idle_ns: bytes.duration_ns() }),
            4 => {
                self.path = path(now_ns, bytes);
                self.controller.on_path_change(&self.path);
            }
            5 => {
                let (bytes, in_flight_bytes) = (bytes.number(), bytes.number());
                self.controller.on_send(&Sent { now_ns, bytes, in_flight_bytes });
            }
            6 => {
                // When it asks for it, unless that is in years.
                let wait_ns = self.controller.control().next_timer_ns.saturating_sub(now_ns);
                if wait_ns < 1 << 55 {
                    self.wait(wait_ns);
                }
                self.controller.on_timer(self.totals.now_ns);
            }
            7 => {
                let sample = hostile_ack(now_ns, bytes);
                self.controller.on_ack(&Ack { sample, hops: &[] });
            }
            8 => {
                let hop = IntHop {
                    hop_id: bytes.number(),
                    queue_bytes: bytes.number(),
                    tx_bytes: bytes.number(),
                    timestamp_ns: bytes.number(),
                    link_bytes_per_s: bytes.number(),
                };
                let sample = plausible_ack(&self.path, &mut self.totals, bytes);
                self.controller.on_ack(&Ack { sample, hops: &[hop, hop] });
            }
            9 => {
                // As many links as it comes, each as a link would speak.
                let count = bytes.below(8) as u64;
                let sample = plausible_ack(&self.path, &mut self.totals, bytes);
                let age_ns = bytes.duration_ns();
                let load = u64::from(bytes.byte());
                let delivered_bytes = self.totals.delivered_bytes;
                let hop = |hop_id: u64| IntHop {
                    hop_id,
                    queue_bytes: load * hop_id * 100,
                    tx_bytes: delivered_bytes.saturating_mul(1 + hop_id),
                    timestamp_ns: now_ns.saturating_sub(age_ns),
                    link_bytes_per_s: 1_250_000 << hop_id,
                };
                let hops: Vec<IntHop> = (0..count).map(hop).collect();
                self.controller.on_ack(&Ack { sample, hops: &hops });
            }
            _ => {
                let sample = plausible_ack(&self.path, &mut self.totals, bytes);
                self.controller.on_ack(&Ack { sample, hops: &[] });
            }
        }
        self.check();
    }

    /// A storm: timeout after timeout, with twice the wait each time or none at all.
    fn timeouts(&mut self, bytes: &mut Bytes) {
        let wait_ns = bytes.duration_ns();
        for consecutive in 1..=1 + bytes.below(8) as u32 {
            let in_flight_bytes = bytes.number();
            let now_ns = self.totals.now_ns;
            let timeout = Timeout { now_ns, in_flight_bytes, consecutive, reserved: 0 };
            self.controller.on_rto(&timeout);
            self.check();
            self.wait(wait_ns << consecutive);
        }
    }
}

/// A profile or the defaults, then some parameters at or between the ends of their ranges.
fn params(spec: &'static Spec, bytes: &mut Bytes) -> Params {
    let profile = spec.profiles.get(bytes.below(spec.profiles.len() + 1)).map(|p| p.name);
    let mut params = spec.params(profile).expect("a registered profile is valid");
    for row in spec.params {
        let share = match bytes.below(8) {
            0 => 0.0,
            1 => 1.0,
            2 => f64::from(bytes.byte()) / 255.0,
            _ => continue,
        };
        let value = row.min + share * (row.max - row.min);
        let whole = matches!(row.kind, Kind::Integer | Kind::Bool | Kind::Choice(_));
        let value = if whole { value.round() } else { value };
        params.set(row.name, value).expect("within the range");
    }
    params
}

fn path(now_ns: u64, bytes: &mut Bytes) -> PathInfo {
    PathInfo {
        now_ns,
        packet_bytes: [1, 64, 1500, 1504, 9000, 65535, 0][bytes.below(7)],
        initial_window_packets: [10, 0, 1, 2, 100, u32::MAX][bytes.below(6)],
        seed: u64::from(bytes.byte()),
    }
}

fn loss(now_ns: u64, bytes: &mut Bytes) -> Loss {
    Loss {
        now_ns,
        lost_bytes: bytes.number(),
        newest_lost_sent_ns: now_ns.saturating_sub(bytes.duration_ns()),
        in_flight_bytes: bytes.number(),
        prior_in_flight_bytes: bytes.number(),
        lost_packets: bytes.number() as u32,
        flags: u32::from(bytes.byte()) & (Loss::EPISODE_START | Loss::APP_LIMITED),
        tx_in_flight_bytes: bytes.number(),
        lost_since_sent_bytes: bytes.number(),
    }
}

/// What a sane host could say.
fn plausible_ack(path: &PathInfo, totals: &mut Totals, bytes: &mut Bytes) -> AckSample {
    let acked_packets = bytes.below(64) as u32;
    let acked_bytes = u64::from(acked_packets) * u64::from(path.packet_bytes);
    let prior = totals.delivered_bytes.saturating_sub(bytes.below(4) as u64 * acked_bytes);
    totals.delivered_bytes += acked_bytes;
    let rtt_ns = bytes.duration_ns().min(totals.now_ns);
    if rtt_ns > 0 && (totals.min_rtt_ns == 0 || rtt_ns < totals.min_rtt_ns) {
        totals.min_rtt_ns = rtt_ns;
    }
    let flight = u64::from(bytes.byte()) * u64::from(path.packet_bytes);
    AckSample {
        now_ns: totals.now_ns,
        acked_bytes,
        acked_packets,
        ce_packets: acked_packets.min(bytes.below(32) as u32 / 28),
        in_flight_bytes: flight,
        prior_in_flight_bytes: flight + acked_bytes,
        rtt_ns,
        srtt_ns: rtt_ns,
        min_rtt_ns: totals.min_rtt_ns,
        sent_ns: totals.now_ns - rtt_ns,
        delivered_bytes: totals.delivered_bytes - prior,
        interval_ns: rtt_ns,
        delivered_total_bytes: totals.delivered_bytes,
        prior_delivered_total_bytes: prior,
        tx_in_flight_bytes: flight,
        flags: u32::from(bytes.byte()) & 31,
        ..AckSample::default()
    }
}

/// Anything but a time in the past.
fn hostile_ack(now_ns: u64, bytes: &mut Bytes) -> AckSample {
    AckSample {
        now_ns,
        acked_bytes: bytes.number(),
        acked_packets: bytes.number() as u32,
        ce_packets: bytes.number() as u32,
        in_flight_bytes: bytes.number(),
        prior_in_flight_bytes: bytes.number(),
        rtt_ns: bytes.number(),
        srtt_ns: bytes.number(),
        min_rtt_ns: bytes.number(),
        ack_delay_ns: bytes.number(),
        one_way_delay_ns: bytes.number(),
        sent_ns: bytes.number(),
        delivered_bytes: bytes.number(),
        interval_ns: bytes.number(),
        delivered_total_bytes: bytes.number(),
        prior_delivered_total_bytes: bytes.number(),
        tx_in_flight_bytes: bytes.number(),
        lost_since_sent_bytes: bytes.number(),
        flags: bytes.number() as u32,
        burst_bytes: bytes.number() as u32,
    }
}
