//! What is measured of one recorded link while it runs.

use paceline_net::queue::Ecn;
use paceline_net::{Link, LinkSpec, Picos, QueueSpec, Sent, ServedLink, Verdict};

use crate::events::NEVER;
use crate::outcome::LinkOutcome;
use crate::packet::Packet;
use crate::series::{Names, Rows, bps, seconds};
use crate::stats::{Distribution, Resolution, summarize};

const LINK_COLUMNS: [(&str, &str); 6] = [
    ("capacity_bps", "bit/s"),
    ("throughput_bps", "bit/s"),
    ("queue_bytes", "bytes"),
    ("queue_ms", "ms"),
    ("drops", "packets"),
    ("marks", "packets"),
];

/// A link, and what is measured of it if it is recorded.
pub(crate) struct MeteredLink {
    pub(crate) model: Model,
    meter: Option<LinkMeter>,
}

/// How a link's packets are served.
pub(crate) enum Model {
    /// All is known as a packet enters.
    Formula(Link),
    /// A queue decides as the transmitter becomes free: the link must be asked when it is due.
    Served(Box<ServedLink<Packet>>),
}

impl MeteredLink {
    pub(crate) fn new(spec: LinkSpec, seed: u64, stream: u64, meter: Option<LinkMeter>) -> Self {
        let model = if spec.queue == QueueSpec::DropTail {
            Model::Formula(Link::new(spec, seed, stream))
        } else {
            Model::Served(Box::new(ServedLink::new(spec, seed, stream)))
        };
        Self { model, meter }
    }

    /// A packet of `bytes` enters a link that is a formula at `now`. When it arrives at the far end; `None` when it is dropped.
    #[inline]
    pub(crate) fn transmit(&mut self, now: Picos, bytes: u16) -> Option<Picos> {
        let Model::Formula(model) = &mut self.model else { return None };
        let verdict = model.enqueue(now, u32::from(bytes));
        if let Some(meter) = &mut self.meter {
            match verdict {
                Verdict::Pass { departs, .. } => meter.on_departure(now, departs, bytes),
                Verdict::Drop(_) => meter.drops += 1,
            }
        }
        match verdict {
            Verdict::Pass { arrives, .. } => Some(arrives),
            Verdict::Drop(_) => None,
        }
    }

    /// The next packet whose service begins at or before `until`, on a link that is served: when it arrives, and what it has
    /// become on the way.
    pub(crate) fn serve(&mut self, until: Picos) -> Option<(Picos, Packet)> {
        let Model::Served(model) = &mut self.model else { return None };
        let Sent { packet, departs, arrives } = model.serve(until)?;
        let entered = packet.item;
        let marked = packet.tag.ecn == Ecn::Marked;
        if let Some(meter) = &mut self.meter {
            meter.on_departure(packet.arrived, departs, entered.bytes());
            meter.marks += u64::from(marked && !entered.is_marked());
        }
        Some((arrives, if marked { entered.marked() } else { entered }))
    }

    /// A packet that a link that is served has dropped since the last call.
    pub(crate) fn take_dropped(&mut self) -> Option<Packet> {
        let Model::Served(model) = &mut self.model else { return None };
        let (packet, _) = model.take_dropped()?;
        if let Some(meter) = &mut self.meter {
            meter.drops += 1;
        }
        Some(packet.item)
    }

    /// The packets that wait at `now`, the end, in front of a link that is served.
    pub(crate) fn drain(&mut self, now: Picos) -> Vec<Packet> {
        match &mut self.model {
            Model::Formula(_) => Vec::new(),
            Model::Served(model) => model.drain(now),
        }
    }

    /// When [`Self::serve`] has something to do, unless something arrives before.
    #[inline]
    pub(crate) fn due(&self) -> Picos {
        match &self.model {
            Model::Formula(_) => NEVER,
            Model::Served(model) => model.due(),
        }
    }

    /// The record, if there is to be one.
    pub(crate) fn finish(self, warmup: Picos, end: Picos) -> Option<LinkOutcome> {
        let offered = self.offered_bytes(warmup, end);
        self.meter.map(|meter| meter.finish(offered))
    }

    fn offered_bytes(&self, from: Picos, to: Picos) -> Option<f64> {
        match &self.model {
            Model::Formula(model) => model.offered_bytes(from, to),
            Model::Served(model) => model.offered_bytes(from, to),
        }
    }

    /// Takes a sample at `now`, `interval` after the last.
    pub(crate) fn sample(&mut self, now: Picos, interval: Picos) {
        let offered = self.offered_bytes(now - interval, now);
        if let Some(meter) = &mut self.meter {
            let backlog = match &mut self.model {
                Model::Formula(model) => model.backlog(now),
                Model::Served(model) => model.backlog(),
            };
            meter.sample(now, offered, backlog.bytes);
        }
    }
}

/// Measurements of a link. Distributions and rates hold what fell in `[warmup, end]`; counters the whole run.
pub(crate) struct LinkMeter {
    name: String,
    warmup: Picos,
    end: Picos,
    sample: Picos,
    drops: u64,
    marks: u64,
    window_bytes: u64,
    queue: Distribution,
    /// Bytes that leave in each sample interval; the last one ends at `filled_to`.
    departed: Vec<u64>,
    filled_to: Picos,
    queue_sum_ns: u64,
    queue_count: u64,
    rows: Rows,
}

impl LinkMeter {
    pub(crate) fn new(name: String, warmup: Picos, end: Picos, sample: Picos) -> Self {
        Self {
            name,
            warmup,
            end,
            sample,
            drops: 0,
            marks: 0,
            window_bytes: 0,
            queue: Distribution::new(Resolution::FULL.counters),
            departed: Vec::new(),
            filled_to: 0,
            queue_sum_ns: 0,
            queue_count: 0,
            rows: Rows::default(),
        }
    }

    /// A packet entered at `now` and leaves at `departs`. Departures never go back.
    #[inline]
    pub(crate) fn on_departure(&mut self, now: Picos, departs: Picos, bytes: u16) {
        let queue_ns = (departs - now) / paceline_net::PS_PER_NS;
        self.queue_sum_ns += queue_ns;
        self.queue_count += 1;
        if now >= self.warmup {
            self.queue.add(queue_ns);
        }
        if departs > self.end {
            return;
        }
        if departs >= self.warmup {
            self.window_bytes += u64::from(bytes);
        }
        while departs > self.filled_to || self.departed.is_empty() {
            self.departed.push(0);
            self.filled_to += self.sample;
        }
        if let Some(last) = self.departed.last_mut() {
            *last += u64::from(bytes);
        }
    }

    /// Takes a sample at `now`: what the link could have served since the last one, and what waits, bytes.
    fn sample(&mut self, now: Picos, offered: Option<f64>, waiting: u64) {
        let capacity = offered.map_or(f64::NAN, |bytes| bytes * 8.0 / seconds(self.sample));
        let queue_ms = self.queue_sum_ns as f64 / self.queue_count as f64 / 1e6;
        (self.queue_sum_ns, self.queue_count) = (0, 0);
        // Throughput is filled in at the end: departures are known ahead of time.
        let row = [capacity, 0.0, waiting as f64, queue_ms, self.drops as f64, self.marks as f64];
        let to_come = (self.end - now) / self.sample;
        self.rows.push(now, row.len(), to_come).copy_from_slice(&row);
    }

    /// The record, given what the link could have served in the window, bytes.
    fn finish(self, offered: Option<f64>) -> LinkOutcome {
        let window = self.end - self.warmup;
        let mut rows = self.rows;
        for (number, row) in rows.iter_mut(LINK_COLUMNS.len()).enumerate() {
            row[1] = bps(self.departed.get(number).copied().unwrap_or(0), self.sample);
        }
        let mut scratch = Vec::new();
        let series = rows.into_series(&Names::from(LINK_COLUMNS), &mut scratch);
        let from = seconds(self.warmup);
        let after = series.time_s().partition_point(|t| *t <= from);
        let throughput_bps = bps(self.window_bytes, window);
        let capacity_bps = offered.map(|bytes| bytes * 8.0 / seconds(window));
        LinkOutcome {
            name: self.name,
            capacity_bps,
            throughput_bps,
            utilization: capacity_bps.filter(|c| *c > 0.0).map(|c| throughput_bps / c),
            drops: self.drops,
            marks: self.marks,
            queue_ms: self.queue.stats(1e-6),
            queue_bytes: series
                .column("queue_bytes")
                .and_then(|c| summarize(&c.values[after..], &mut scratch)),
            series,
        }
    }
}
