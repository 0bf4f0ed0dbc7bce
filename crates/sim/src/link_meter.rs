//! What is measured of one recorded link while it runs.

use paceline_net::queue::Ecn;
use paceline_net::{Link, Picos, Sent, ServedLink, Verdict};

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
pub(crate) struct Metered<M> {
    pub(crate) model: M,
    pub(crate) meter: Option<LinkMeter>,
}

/// A link of which all is known as a packet enters.
pub(crate) type MeteredLink = Metered<Link>;

/// A link whose queue decides as the transmitter becomes free: it must be asked when it is due.
pub(crate) type QueueLink = Metered<ServedLink<Packet>>;

/// A link as the recorder sees it.
pub(crate) trait Recorded {
    /// Takes a sample at `now`, `interval` after the last.
    fn sample(&mut self, now: Picos, interval: Picos);
    /// The record, if there is to be one, with what fell in `[warmup, end]`.
    fn finish(self: Box<Self>, warmup: Picos, end: Picos) -> Option<LinkOutcome>;
}

impl MeteredLink {
    /// A packet of `bytes` enters at `now`. When it arrives at the far end; `None` when it is dropped.
    #[inline]
    pub(crate) fn transmit(&mut self, now: Picos, bytes: u16) -> Option<Picos> {
        let verdict = self.model.enqueue(now, u32::from(bytes));
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
}

impl QueueLink {
    /// The next packet whose service begins at or before `until`: when it arrives, and what it has become on the way.
    pub(crate) fn serve(&mut self, until: Picos) -> Option<(Picos, Packet)> {
        let Sent { packet, departs, arrives } = self.model.serve(until)?;
        let entered = packet.item;
        let marked = packet.tag.ecn == Ecn::Marked;
        if let Some(meter) = &mut self.meter {
            meter.on_departure(packet.arrived, departs, entered.bytes());
            meter.marks += u64::from(marked && !entered.is_marked());
        }
        Some((arrives, if marked { entered.marked() } else { entered }))
    }

    /// A packet that was dropped since the last call.
    pub(crate) fn take_dropped(&mut self) -> Option<Packet> {
        let (packet, _) = self.model.take_dropped()?;
        if let Some(meter) = &mut self.meter {
            meter.drops += 1;
        }
        Some(packet.item)
    }
}

impl Recorded for MeteredLink {
    fn sample(&mut self, now: Picos, interval: Picos) {
        if let Some(meter) = &mut self.meter {
            let backlog = self.model.backlog(now);
            let offered = self.model.offered_bytes(now - interval, now);
            meter.sample(now, offered, backlog.bytes);
        }
    }

    fn finish(self: Box<Self>, warmup: Picos, end: Picos) -> Option<LinkOutcome> {
        let offered = self.model.offered_bytes(warmup, end);
        self.meter.map(|meter| meter.finish(offered))
    }
}

impl Recorded for QueueLink {
    fn sample(&mut self, now: Picos, interval: Picos) {
        if let Some(meter) = &mut self.meter {
            let offered = self.model.offered_bytes(now - interval, now);
            meter.sample(now, offered, self.model.backlog().bytes);
        }
    }

    fn finish(self: Box<Self>, warmup: Picos, end: Picos) -> Option<LinkOutcome> {
        let offered = self.model.offered_bytes(warmup, end);
        self.meter.map(|meter| meter.finish(offered))
    }
}

/// Measurements of a link. Distributions and rates hold what fell in `[warmup, end]`; counters the whole run.
pub(crate) struct LinkMeter {
    name: String,
    warmup: Picos,
    end: Picos,
    sample: Picos,
    pub(crate) drops: u64,
    pub(crate) marks: u64,
    window_bytes: u64,
    queue: Distribution,
    /// Bytes that leave in each sample interval, but for the last one, which ends at `filled_to`.
    departed: Vec<u64>,
    departed_last: u64,
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
            queue: Distribution::new(0, Resolution::FULL.counters),
            departed: Vec::new(),
            departed_last: 0,
            filled_to: sample,
            queue_sum_ns: 0,
            queue_count: 0,
            rows: Rows::default(),
        }
    }

    /// A packet entered at `now` and leaves at `departs`. Departures never go back.
    #[inline(always)]
    pub(crate) fn on_departure(&mut self, now: Picos, departs: Picos, bytes: u16) {
        let queue_ns = (departs - now) / paceline_net::PS_PER_NS;
        self.queue_sum_ns += queue_ns;
        self.queue_count += 1;
        if now >= self.warmup {
            self.queue.add(now, queue_ns);
        }
        if departs > self.end {
            return;
        }
        if departs >= self.warmup {
            self.window_bytes += u64::from(bytes);
        }
        if departs > self.filled_to {
            self.fill_to(departs);
        }
        self.departed_last += u64::from(bytes);
    }

    /// Begins the sample interval in which `departs` lies.
    #[cold]
    #[inline(never)]
    fn fill_to(&mut self, departs: Picos) {
        while departs > self.filled_to {
            self.departed.push(std::mem::take(&mut self.departed_last));
            self.filled_to += self.sample;
        }
    }

    /// Takes a sample at `now`: what the link could have served since the last one, and what waits, bytes.
    pub(crate) fn sample(&mut self, now: Picos, offered: Option<f64>, waiting: u64) {
        let capacity = offered.map_or(f64::NAN, |bytes| bytes * 8.0 / seconds(self.sample));
        let queue_ms = self.queue_sum_ns as f64 / self.queue_count as f64 / 1e6;
        (self.queue_sum_ns, self.queue_count) = (0, 0);
        // Throughput is filled in at the end: departures are known ahead of time.
        let row = [capacity, 0.0, waiting as f64, queue_ms, self.drops as f64, self.marks as f64];
        let to_come = (self.end - now) / self.sample;
        self.rows.push(now, row.len(), to_come).copy_from_slice(&row);
    }

    /// The run, whose end was open, ends at `end`.
    pub(crate) fn close(&mut self, end: Picos) {
        self.end = end;
    }

    /// The record, given what the link could have served in the window, bytes.
    pub(crate) fn finish(mut self, offered: Option<f64>) -> LinkOutcome {
        let window = self.end - self.warmup;
        self.departed.push(self.departed_last);
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
