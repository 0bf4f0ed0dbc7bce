//! Endpoint and meters for a host in real time: the same code as in the simulator, driven by another clock.
//!
//! A host that sends real packets over real sockets ([`HostedDatagram`]), and one that sees what a link does with them
//! ([`Delivery`], [`LinkRecord`]), take from here the rules and the definitions, so that each measure means the same as in a
//! simulation. As everywhere in this crate, nothing reads a clock: times come in, ps since the start of the run.

use paceline_cc::rtt::RttEstimator;
use paceline_cc::{Field, Needs, PathInfo};
use paceline_net::{PS_PER_MS, PS_PER_NS, Picos};

use crate::datagram::DatagramSender;
use crate::flow::flow_seed;
use crate::host::{Host, SendCounters};
use crate::link_meter::LinkMeter;
use crate::meter::{DeliveryMeter, RttMeter};
use crate::outcome::{FlowOutcome, LinkOutcome, Stats};
use crate::packet::Packet;
use crate::plan::{DatagramOptions, FlowPlan, Stack};
use crate::recorder::{FLOW_COLUMNS, FlowFacts};
use crate::series::{Names, Rows, bps};
use crate::stats::{Distribution, Resolution};
use crate::transfer::Transfer;

/// What a hosted datagram endpoint gives a controller: all but telemetry, which no network writes.
pub const DATAGRAM_PROVIDES: Needs = Needs::PACING
    .and(Needs::RATE_SAMPLE)
    .and(Needs::SEND_EVENTS)
    .and(Needs::TIMERS)
    .and(Needs::CE_COUNT)
    .and(Needs::ECT1);

/// When a run measures.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Window {
    /// Statistics cover the time from here on, ps.
    pub warmup: Picos,
    /// … to here, the end of the run, ps; [`Picos::MAX`] while it is open.
    pub end: Picos,
    /// Distance of the samples, ps.
    pub sample: Picos,
}

/// A packet that a sender wants on the wire.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Departure {
    /// Its number.
    pub seq: u64,
    /// Its size on the wire, bytes.
    pub bytes: u16,
}

/// An acknowledgement of one packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DatagramAck {
    /// The packet that caused it.
    pub seq: u64,
    /// Packets that the receiver had found missing by then.
    pub missing: u64,
    /// Packets that had reached it marked.
    pub marked: u64,
}

/// The sending end of a datagram flow.
pub struct HostedDatagram {
    sender: DatagramSender,
    meter: RttMeter,
    packet_bytes: u16,
    completed: Option<Picos>,
    sent_bytes: u64,
    catch_up: Option<CatchUp>,
    record: SenderRecord,
}

/// What a pacer owes that has let packets go too late, and how it makes up for that.
///
/// Packets that were held back by nothing but the pacer keep their places in its schedule, at most [`CatchUp::MOST`] behind it;
/// what is older is lost. They leave at no more than twice the pacing rate, as `fq` and the TCP of Linux let packets that are late
/// (half a packet's time is credited), and in bursts of no more than 1 ms of it, as much as that TCP sends at once
/// (`tcp_tso_autosize`). So the path never sees more than the schedule has asked for, and no longer bursts than a paced TCP's.
#[derive(Debug, Default)]
struct CatchUp {
    /// When the next packet is due by the pacing rate.
    schedule: Picos,
    /// When it may leave by twice that rate.
    release: Picos,
    /// Since the last packet nothing but the pacer has held one back.
    is_owed: bool,
}

impl CatchUp {
    /// The longest delay that is made up for.
    const MOST: Picos = 100 * PS_PER_MS;
    /// What may leave at once, by the time that it takes at twice the pacing rate.
    const BURST: Picos = PS_PER_MS / 2;

    /// A packet leaves at `now` that could at `before`, and that takes `gap` at the pacing rate. When the next may leave.
    fn on_send(&mut self, before: Picos, now: Picos, gap: Picos) -> Picos {
        let held = |time: Picos, most: Picos| match self.is_owed {
            // A timeout lets the next one go earlier.
            true => time.min(before).max(now.saturating_sub(most)),
            false => before.max(now),
        };
        let (schedule, release) =
            (held(self.schedule, Self::MOST), held(self.release, Self::BURST));
        self.schedule = schedule.saturating_add(gap);
        self.release = release.saturating_add(gap / 2);
        self.is_owed = true;
        self.schedule.max(self.release)
    }
}

impl HostedDatagram {
    /// The flow number `index` of a run with the seed `seed` begins at `now`.
    pub fn new(flow: FlowPlan, index: u32, seed: u64, now: Picos, window: Window) -> Self {
        let options = match flow.stack {
            Stack::Datagram(options) => options,
            Stack::Tcp(_) => DatagramOptions::default(),
        };
        let path = PathInfo {
            now_ns: now / PS_PER_NS,
            packet_bytes: u32::from(flow.packets.data_bytes),
            initial_window_packets: 10,
            seed: flow_seed(seed, index),
        };
        let host = Host::new(
            (flow.controller)(&path),
            &path,
            RttEstimator::new(RttEstimator::RFC_MIN_RTO_NS),
            flow.cap_bytes_per_s,
            flow.needs.contains(Needs::SEND_EVENTS),
            options.clock_ps,
        );
        let transfer = Transfer::new(index, flow.packets, flow.stop_ps, flow.size_bytes);
        Self {
            sender: DatagramSender::new(host, options, transfer),
            meter: RttMeter::new(window.warmup, Resolution::FULL),
            packet_bytes: flow.packets.data_bytes,
            completed: None,
            sent_bytes: 0,
            // A sender that sleeps after each packet makes up for no sleep that was too long: the contest's do not.
            catch_up: (!options.blocking).then(CatchUp::default),
            record: SenderRecord::new(now, flow.stop_ps, flow.fields, window),
        }
    }

    /// An ACK that reached this machine at `arrived`. What cannot be one is ignored: of a packet that was not sent, or not yet.
    pub fn on_ack(&mut self, arrived: Picos, ack: DatagramAck) {
        let DatagramAck { seq, missing, marked } = ack;
        let sent_ns = self.sender.sent_ns(seq).filter(|_| self.has_sent(seq));
        if !self.has_sent(missing) || sent_ns.is_none_or(|sent_ns| sent_ns > arrived / PS_PER_NS) {
            return;
        }
        let packet = Packet::data(0, seq, 0, 0, 0).acknowledging(missing, (0, 0), 0);
        // Counted modulo a power of two, on both sides.
        let packet = packet.reporting(0, marked as u16);
        self.sender.on_ack(arrived, &packet, &mut self.meter);
    }

    /// The next packet to send now, if any. `now` may be later than [`Self::deadline`]: then it makes up for that.
    pub fn poll_send(&mut self, now: Picos) -> Option<Departure> {
        let seq = self.sender.next_seq();
        let (before, in_burst) = self.sender.host.schedule();
        let packet = self.sender.poll_send(now, &mut self.meter);
        if packet.is_none() && self.completed.is_none() && self.sender.is_complete() {
            self.completed = Some(now);
        }
        if let Some(catch_up) = &mut self.catch_up {
            let host = &mut self.sender.host;
            let (next, _) = host.schedule();
            match packet {
                None => catch_up.is_owed &= self.sender.waits_for_pacer,
                Some(_) if host.pacing_bytes_per_s().is_none() => *catch_up = CatchUp::default(),
                Some(_) if in_burst => catch_up.schedule = next,
                Some(_) => {
                    let gap = next - before.max(now).min(next);
                    host.reschedule(catch_up.on_send(before, now, gap));
                }
            }
        }
        packet.map(|packet| Departure { seq, bytes: packet.bytes() })
    }

    /// When [`Self::wake`] has something to do, after a [`Self::poll_send`] that found nothing; `None` for never.
    pub fn deadline(&self) -> Option<Picos> {
        let deadline = self.sender.deadline();
        (deadline != Picos::MAX && self.completed.is_none()).then_some(deadline)
    }

    /// The deadline has come. To be polled then.
    pub fn wake(&mut self, now: Picos) {
        if self.deadline().is_some_and(|deadline| deadline <= now) {
            self.sender.on_timer(now);
        }
    }

    /// Packets in flight by its own account.
    pub fn in_flight(&self) -> u64 {
        self.sender.in_flight()
    }

    /// Whether there has been a packet `seq`.
    pub fn has_sent(&self, seq: u64) -> bool {
        seq < self.sender.next_seq()
    }

    /// Whether all that there was to send has been acknowledged.
    pub fn is_complete(&self) -> bool {
        self.completed.is_some()
    }

    /// Takes the sample that is due at `now`.
    pub fn sample(&mut self, now: Picos) {
        let host = &self.sender.host;
        let srtt_ns = host.rtt.srtt_ns();
        let sample = SenderSample {
            send_bps: bps(host.counters.bytes - self.sent_bytes, self.record.window.sample),
            cwnd_bytes: host.asked.cwnd_bytes as f64,
            in_flight_bytes: self.sender.in_flight() as f64 * f64::from(self.packet_bytes),
            sent_packets: host.counters.packets as f64,
            pacing_bps: host.pacing_bytes_per_s().map_or(f64::NAN, |rate| rate as f64 * 8.0),
            rtt_ms: self.meter.interval.take_ms(),
            srtt_ms: if srtt_ns == 0 { f64::NAN } else { srtt_ns as f64 / 1e6 },
            retransmitted_packets: host.counters.retransmitted as f64,
        };
        self.sent_bytes = host.counters.bytes;
        let observed = self.record.push(now, &sample);
        if !observed.is_empty() {
            host.observe(observed);
        }
    }

    /// The flow is over.
    pub fn finish(self) -> SenderRecord {
        let SendCounters { packets, retransmitted, timeouts, .. } = self.sender.host.counters;
        SenderRecord {
            completed: self.completed,
            sent_packets: packets,
            retransmitted_packets: retransmitted,
            timeouts,
            rtt_ms: self.meter.rtt.stats(1e-6),
            ..self.record
        }
    }
}

/// A sender's part of a row of the series; NaN = not known. Packets are counted from the start.
#[derive(Clone, Copy, Debug, PartialEq)]
#[allow(missing_docs)] // The names and units are those of the columns.
pub struct SenderSample {
    pub send_bps: f64,
    pub cwnd_bytes: f64,
    pub in_flight_bytes: f64,
    pub sent_packets: f64,
    pub pacing_bps: f64,
    pub rtt_ms: f64,
    pub srtt_ms: f64,
    pub retransmitted_packets: f64,
}

/// What is known of a flow at its sending end.
pub struct SenderRecord {
    window: Window,
    start: Picos,
    stop: Option<Picos>,
    fields: Vec<Field>,
    /// The columns of the record, of which [`Delivery`] fills in its own.
    rows: Rows,
    /// When the last byte of a finite transfer was acknowledged.
    pub completed: Option<Picos>,
    /// Data packets sent, retransmissions included.
    pub sent_packets: u64,
    /// Of these, retransmissions.
    pub retransmitted_packets: u64,
    /// Timeouts.
    pub timeouts: u64,
    /// RTT samples, ms.
    pub rtt_ms: Option<Stats>,
}

impl SenderRecord {
    /// Of a flow that begins at `start`, and of whose controller `fields` are observed.
    pub fn new(start: Picos, stop: Option<Picos>, fields: Vec<Field>, window: Window) -> Self {
        Self {
            window,
            start,
            stop,
            fields,
            rows: Rows::default(),
            completed: None,
            sent_packets: 0,
            retransmitted_packets: 0,
            timeouts: 0,
            rtt_ms: None,
        }
    }

    /// It begins at `now`, before its first sample.
    pub fn begin(&mut self, now: Picos) {
        self.start = now;
    }

    /// Adds the sample taken at `now`. Returns the places of what is observed of the controller, NaN so far.
    pub fn push(&mut self, now: Picos, sample: &SenderSample) -> &mut [f64] {
        let to_come = self.window.end.saturating_sub(now) / self.window.sample;
        let row = self.rows.push(now, FLOW_COLUMNS.len() + self.fields.len(), to_come);
        let (own, observed) = row.split_at_mut(FLOW_COLUMNS.len());
        let SenderSample { send_bps, cwnd_bytes, in_flight_bytes, .. } = *sample;
        own[1..=3].copy_from_slice(&[send_bps, cwnd_bytes, in_flight_bytes]);
        own[4..=5].copy_from_slice(&[sample.sent_packets, sample.pacing_bps]);
        own[6..=7].copy_from_slice(&[sample.rtt_ms, sample.srtt_ms]);
        own[11] = sample.retransmitted_packets;
        observed
    }
}

/// What a link does with the packets of a flow: the receiving half of its record.
pub struct Delivery {
    window: Window,
    header_bytes: u16,
    meter: DeliveryMeter,
    entered: u64,
    lost: u64,
    delivered_bytes: u64,
    next_sample: Picos,
    /// Throughput in bit/s, queueing delay in ms, packets delivered and lost so far, at each sample.
    rows: Vec<[f64; 4]>,
}

impl Delivery {
    /// Of packets with so many bytes of headers, over a path with this propagation delay.
    pub fn new(window: Window, propagation: Picos, header_bytes: u16) -> Self {
        Self {
            window,
            header_bytes,
            meter: DeliveryMeter::new(window.warmup, propagation, Resolution::FULL),
            entered: 0,
            lost: 0,
            delivered_bytes: 0,
            next_sample: window.sample,
            rows: Vec::new(),
        }
    }

    /// A packet comes to the link.
    pub fn on_entered(&mut self) {
        self.entered += 1;
    }

    /// The link drops one at `now`.
    pub fn on_dropped(&mut self, now: Picos) {
        self.lost += u64::from(now <= self.window.end);
    }

    /// One of `bytes` that had entered at `entered` has arrived at `now`.
    pub fn on_delivered(&mut self, now: Picos, bytes: u32, entered: Picos) {
        if now <= self.window.end {
            self.sample_before(now);
            let payload = bytes.saturating_sub(self.header_bytes.into());
            self.meter.on_delivery(now, bytes.into(), payload.into(), entered);
        }
    }

    /// Takes the samples of the time before `now`.
    fn sample_before(&mut self, now: Picos) {
        while self.next_sample < now {
            let bytes = self.meter.bytes - self.delivered_bytes;
            self.delivered_bytes = self.meter.bytes;
            let (delivered, lost) = (self.meter.packets as f64, self.lost as f64);
            let queueing_ms = self.meter.interval.take_ms();
            self.rows.push([bps(bytes, self.window.sample), queueing_ms, delivered, lost]);
            self.next_sample += self.window.sample;
        }
    }

    /// The run, whose end was open, ends at `end`.
    pub fn close(&mut self, end: Picos) {
        self.window.end = end;
    }

    /// Payload that came within the window, bytes, where the receiver knows better: it counts none twice.
    pub fn set_payload(&mut self, bytes: u64) {
        self.meter.window_payload_bytes = bytes;
    }

    /// Data packets that came to the link.
    pub fn entered_packets(&self) -> u64 {
        self.entered
    }

    /// What came of the flow whose sender knows `sender`.
    pub fn outcome(mut self, sender: SenderRecord) -> FlowOutcome {
        self.sample_before(self.window.end + 1);
        let Window { warmup, end, sample } = self.window;
        let columns = FLOW_COLUMNS.len() + sender.fields.len();
        let mut rows = sender.rows;
        // Its first sample is the first one not before its start.
        let first = (sender.start.div_ceil(sample).max(1) - 1) as usize;
        let delivered = self.rows.iter().skip(first);
        for (row, [throughput, queueing, delivered, lost]) in rows.iter_mut(columns).zip(delivered)
        {
            (row[0], row[8], row[9], row[10]) = (*throughput, *queueing, *delivered, *lost);
        }
        let observed = sender.fields.iter().map(|field| (field.name, field.unit));
        let names: Names = FLOW_COLUMNS.into_iter().chain(observed).collect();
        let mut scratch = Vec::new();
        let series = rows.into_series(&names, &mut scratch);
        let facts = FlowFacts {
            start: sender.start,
            stop: sender.stop,
            completed: sender.completed,
            counters: SendCounters {
                packets: sender.sent_packets,
                bytes: 0,
                retransmitted: sender.retransmitted_packets,
                timeouts: sender.timeouts,
            },
            rtt_ms: sender.rtt_ms,
            delivery: Some(&self.meter),
            lost_packets: self.lost,
            in_flight_packets: self.entered - self.meter.packets - self.lost,
        };
        facts.outcome(series, [warmup, end], &mut scratch)
    }
}

/// What is measured of a link.
pub struct LinkRecord {
    meter: LinkMeter,
    end: Picos,
}

impl LinkRecord {
    /// Of a link called `name`.
    pub fn new(name: String, window: Window) -> Self {
        let Window { warmup, end, sample } = window;
        Self { meter: LinkMeter::new(name, warmup, end, sample), end }
    }

    /// A packet that entered at `entered` leaves, or will leave, the link at `departs`. Departures never go back.
    pub fn on_departure(&mut self, entered: Picos, departs: Picos, bytes: u32, newly_marked: bool) {
        if entered <= self.end {
            let bytes = bytes.min(u16::MAX.into()) as u16;
            self.meter.on_departure(entered, departs, bytes);
            self.meter.marks += u64::from(newly_marked);
        }
    }

    /// The link drops a packet at `now`.
    pub fn on_dropped(&mut self, now: Picos) {
        self.meter.drops += u64::from(now <= self.end);
    }

    /// Takes the sample that is due at `now`: what the link could have carried since the last one, and what waits, bytes.
    pub fn sample(&mut self, now: Picos, offered: Option<f64>, waiting: u64) {
        self.meter.sample(now, offered, waiting);
    }

    /// The run, whose end was open, ends at `end`. What leaves the link after that is not to be shown before.
    pub fn close(&mut self, end: Picos) {
        self.end = end;
        self.meter.close(end);
    }

    /// The record, given what the link could have carried in the window, bytes.
    pub fn finish(self, offered: Option<f64>) -> LinkOutcome {
        self.meter.finish(offered)
    }
}

/// A distribution of times, without the samples.
pub struct Times(Distribution);

impl Times {
    /// Of samples from `window.warmup` on.
    pub fn new(window: Window) -> Self {
        Self(Distribution::new(window.warmup, Resolution::FULL.counters))
    }

    /// One sample, taken at `now`.
    pub fn add(&mut self, now: Picos, ns: u64) {
        self.0.add(now, ns);
    }

    /// In ms; `None` without samples.
    pub fn stats_ms(&self) -> Option<Stats> {
        self.0.stats(1e-6)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;

    use paceline_cc::registry;
    use paceline_net::queue::Tag;
    use paceline_net::{PS_PER_S, PS_PER_US};

    use super::*;
    use crate::plan::PacketSizes;

    const END: Picos = 3 * PS_PER_S;
    const RTT: Picos = 20 * PS_PER_MS;
    /// What a packet takes at the bottleneck.
    const SERVICE: Picos = 120 * PS_PER_US;
    /// How long the queue may become.
    const MOST_WAIT: Picos = 15 * PS_PER_MS;

    /// When a flow of `controller` sends what, over a link of 100 Mbit/s, asked in time; `None` for one that needs more.
    fn departures(spec: &'static registry::Spec, catches_up: bool) -> Option<Vec<(Picos, u64)>> {
        let params = spec.params(None).ok()?;
        let flow = FlowPlan {
            name: "flow".into(),
            controller_name: spec.name.into(),
            needs: spec.needs,
            fields: Vec::new(),
            controller: Box::new(move |path: &PathInfo| (spec.build)(&params, path)),
            stack: Stack::Datagram(DatagramOptions::default()),
            forward: Vec::new(),
            reverse: Vec::new(),
            start_ps: 0,
            stop_ps: None,
            size_bytes: None,
            cap_bytes_per_s: Some(50_000_000),
            packets: PacketSizes { data_bytes: 1500, header_bytes: 76, ack_bytes: 76 },
            tag: Tag::default(),
        };
        let window = Window { warmup: 0, end: END, sample: END };
        let mut host = HostedDatagram::new(flow, 0, 1, 0, window);
        assert!(host.catch_up.is_some());
        host.catch_up = host.catch_up.filter(|_| catches_up);
        let (mut sent, mut acks) = (Vec::new(), VecDeque::new());
        let (mut now, mut free, mut missing) = (0, 0, 0);
        while now < END {
            while let Some(departure) = host.poll_send(now) {
                sent.push((now, departure.seq));
                if free > now + MOST_WAIT {
                    missing += 1;
                } else {
                    free = now.max(free) + SERVICE;
                    acks.push_back((
                        free + RTT,
                        DatagramAck { seq: departure.seq, missing, marked: 0 },
                    ));
                }
            }
            let ack = acks.front().map_or(Picos::MAX, |(arrives, _)| *arrives);
            now = ack.min(host.deadline().unwrap_or(Picos::MAX));
            while let Some((_, ack)) = acks.front().filter(|(arrives, _)| *arrives <= now) {
                host.on_ack(now, *ack);
                acks.pop_front();
            }
            host.wake(now);
        }
        Some(sent)
    }

    #[test]
    fn a_host_that_is_asked_in_time_has_nothing_to_make_up_for() {
        let mut paced = 0;
        for spec in registry::all() {
            if !spec.needs.missing_from(DATAGRAM_PROVIDES).is_empty() {
                continue;
            }
            let Some(plain) = departures(spec, false) else { continue };
            assert!(plain.len() > 10, "{}", spec.name);
            assert_eq!(plain, departures(spec, true).unwrap_or_default(), "{}", spec.name);
            paced += usize::from(spec.needs.contains(Needs::PACING));
        }
        assert!(paced > 3, "{paced} controllers that pace");
    }
}
