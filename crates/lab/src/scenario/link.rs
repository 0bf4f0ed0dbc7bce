//! `[link]`, `[[links]]` and `reverse`: from tables to the two directions of a link, and from there to the link crate's types
//! once the base RTT is known.

use std::sync::Arc;

use paceline_net::{
    Buffer, Capacity, DelayTrace, Jitter, LinkSpec, LossModel, Picos, QueueSpec, Reorder,
};

use super::error::{Fault, Locus, ScenarioError};
use super::quantity::{BufferSize, Delay, show_time};
use super::queue;
use super::reader::{Reader, nothing};
use super::trace::TraceSource;

/// One direction of a link, as the scenario says it.
#[derive(Clone, Debug)]
pub(crate) struct Direction {
    pub capacity: CapacitySource,
    pub propagation: Propagation,
    pub queue: QueueSpec,
    pub buffer: BufferSize,
    pub loss: Option<LossModel>,
    pub jitter: Option<JitterSource>,
    pub reorder: Option<Reorder>,
    /// Whom to blame when the buffer or the trace turns out impossible.
    pub buffer_at: Locus,
    pub trace_at: Locus,
}

/// One-way propagation delay.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Propagation {
    /// Its length, ps; the least where it changes.
    pub least_ps: Picos,
    pub trace: Option<Arc<DelayTrace>>,
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) enum CapacitySource {
    Unlimited,
    Constant(f64),
    /// A rate from each time on, the first from 0.
    Steps(Arc<[(Picos, f64)]>),
    Trace {
        source: TraceSource,
        once: bool,
    },
}

#[derive(Clone, Debug)]
pub(crate) struct JitterSource {
    mean: Delay,
    max: Option<Delay>,
    reorder: bool,
    at: Locus,
}

/// Both directions.
#[derive(Clone, Debug)]
pub(crate) struct Duplex {
    pub forward: Direction,
    pub reverse: Direction,
}

/// What a link depends on besides the flows that cross it.
#[derive(Clone, Copy)]
pub(crate) struct Run {
    pub seed: u64,
    pub duration_ps: Picos,
    /// A full data packet.
    pub packet_bytes: u16,
}

/// What the reverse direction is where the scenario does not say.
#[derive(Clone, Copy, PartialEq)]
pub(crate) enum ReverseDefault {
    /// Same delay, never a bottleneck.
    Unlimited,
    /// Same rate, delay and buffer.
    Same,
}

impl Duplex {
    /// The link that `reader`'s table describes.
    pub fn read(reader: &Reader<'_>, default: ReverseDefault) -> Result<Self, ScenarioError> {
        let empty = nothing();
        let (there, back_again) = propagations(reader)?;
        let capacity = capacity(reader)?.ok_or_else(|| {
            reader.error("", "neither `rate` nor `trace`", "allowed: exactly one of the two")
        })?;
        let forward = Direction::read(reader, there, capacity)?;
        let noise = jitter(reader, "noise")?;
        let back = reader.child("reverse", &empty)?;
        let mut reverse = reversed(&back, &forward, back_again, default)?;
        if noise.is_some() && reverse.jitter.is_some() {
            let what = "excludes `reverse.jitter`: both delay the ACKs at random";
            return Err(reader.error("noise", what, "allowed: one of the two"));
        }
        reverse.jitter = reverse.jitter.or(noise);
        Ok(Self { forward, reverse })
    }
}

/// The two ways.
fn propagations(reader: &Reader<'_>) -> Result<(Propagation, Propagation), ScenarioError> {
    if let Some(there) = propagation(reader)? {
        return Ok((there.clone(), there));
    }
    // An odd picosecond goes to the way back.
    let rtt = reader.time("rtt")?;
    let halves = rtt.map(|rtt| (Propagation::of(rtt / 2), Propagation::of(rtt - rtt / 2)));
    halves.ok_or_else(|| {
        reader.error(
            "",
            "none of `delay`, `delay_trace` and `rtt`",
            "allowed: exactly one of them, such as delay = \"10 ms\"",
        )
    })
}

/// The delay that `delay` or `delay_trace` gives.
pub(crate) fn propagation(reader: &Reader<'_>) -> Result<Option<Propagation>, ScenarioError> {
    let Some(trace) = super::trace::delay_trace(reader, "delay_trace")? else {
        return Ok(reader.time("delay")?.map(Propagation::of));
    };
    Ok(Some(Propagation { least_ps: trace.least_ps(), trace: Some(Arc::new(trace)) }))
}

pub(crate) fn capacity(reader: &Reader<'_>) -> Result<Option<CapacitySource>, ScenarioError> {
    let once = reader.flag("once")?;
    if reader.has("trace") {
        let source = TraceSource::read(reader, "trace")?;
        return Ok(Some(CapacitySource::Trace { source, once }));
    }
    if once {
        return Err(reader.error("once", "without a `trace`", "allowed: only beside `trace`"));
    }
    let steps = reader.tables("steps")?;
    let rate = reader.rate("rate")?;
    if steps.is_empty() {
        return Ok(rate.map(|rate| match rate {
            Some(bps) => CapacitySource::Constant(bps),
            None => CapacitySource::Unlimited,
        }));
    }
    let Some(Some(first)) = rate else {
        let what = "without a `rate` to change";
        return Err(reader.error("steps", what, "allowed: only beside a `rate` that is limited"));
    };
    let mut rates = vec![(0, first)];
    for step in steps {
        let (at, (before, _)) = (step.time_always("at")?, rates[rates.len() - 1]);
        if at <= before {
            let hint = format!("allowed: after {}", show_time(before as f64));
            return Err(step.error("at", "not after the step before", hint));
        }
        let missing = || step.error("rate", "missing", "");
        rates.push((at, step.rate("rate")?.flatten().ok_or_else(missing)?));
    }
    Ok(Some(CapacitySource::Steps(rates.into())))
}

/// The buffer given, or 1 BDP; nothing queues where the rate is unlimited.
pub(crate) fn buffer(
    reader: &Reader<'_>,
    key: &str,
    capacity: &CapacitySource,
    queue: &QueueSpec,
) -> Result<BufferSize, ScenarioError> {
    let given = reader.buffer(key)?;
    if *capacity != CapacitySource::Unlimited || queue.rate_bps().is_some() {
        return Ok(given.unwrap_or(BufferSize::Bdp(1.0)));
    }
    if reader.has(key) && given != Some(BufferSize::Unlimited) {
        let what = "nothing queues on a link of unlimited rate";
        return Err(reader.error(key, what, "allowed: \"unlimited\""));
    }
    Ok(BufferSize::Unlimited)
}

fn reversed(
    back: &Reader<'_>,
    forward: &Direction,
    same: Propagation,
    default: ReverseDefault,
) -> Result<Direction, ScenarioError> {
    let own = capacity(back)?;
    let (fallback, fallback_buffer, fallback_queue) = match default {
        ReverseDefault::Unlimited => {
            (CapacitySource::Unlimited, BufferSize::Unlimited, QueueSpec::DropTail)
        }
        ReverseDefault::Same => (forward.capacity.clone(), forward.buffer, forward.queue.clone()),
    };
    let given = own.is_some() || back.has("queue");
    let queue = if given { queue::read(back)? } else { fallback_queue };
    let (buffer, buffer_at) = match &own {
        Some(capacity) => (buffer(back, "buffer", capacity, &queue)?, back.locus("buffer")),
        None if back.has("buffer") => {
            (buffer(back, "buffer", &fallback, &queue)?, back.locus("buffer"))
        }
        None => (fallback_buffer, forward.buffer_at.clone()),
    };
    let trace_at = if own.is_some() { back.locus("trace") } else { forward.trace_at.clone() };
    Ok(Direction {
        capacity: own.unwrap_or(fallback),
        propagation: propagation(back)?.unwrap_or(same),
        queue,
        buffer,
        loss: loss(back)?,
        jitter: jitter(back, "jitter")?,
        reorder: reorder(back)?,
        buffer_at,
        trace_at,
    })
}

fn loss(reader: &Reader<'_>) -> Result<Option<LossModel>, ScenarioError> {
    let Some(node) = reader.raw("loss") else { return Ok(None) };
    if !matches!(node.value, super::tree::Value::Table(_)) {
        return Ok(Some(LossModel::Bernoulli(reader.probability("loss")?)));
    }
    let empty = nothing();
    let Some((kind, table)) = reader.variant("loss", &empty)? else { return Ok(None) };
    Ok(Some(match kind {
        "bernoulli" => LossModel::Bernoulli(table.probability("probability")?),
        "periodic" => {
            let every = table.whole("every")?;
            LossModel::Periodic(every.ok_or_else(|| table.error("every", "missing", ""))?)
        }
        "on-off" => {
            LossModel::OnOff { on_ps: table.time_always("on")?, off_ps: table.time_always("off")? }
        }
        _ => LossModel::GilbertElliott {
            p: table.probability("p")?,
            r: table.probability("r")?,
            loss_bad: table.probability("loss_bad")?,
            loss_good: table.probability("loss_good")?,
        },
    }))
}

fn jitter(reader: &Reader<'_>, name: &str) -> Result<Option<JitterSource>, ScenarioError> {
    let empty = nothing();
    let Some((_, table)) = reader.variant(name, &empty)? else { return Ok(None) };
    let mean = table.delay("mean")?;
    let mean = mean.ok_or_else(|| table.error("mean", "missing", "allowed: a time"))?;
    Ok(Some(JitterSource {
        mean,
        max: table.delay("max")?,
        reorder: table.flag("reorder")?,
        at: table.locus(if table.has("max") { "max" } else { "mean" }),
    }))
}

fn reorder(reader: &Reader<'_>) -> Result<Option<Reorder>, ScenarioError> {
    if !reader.has("reorder") {
        return Ok(None);
    }
    let empty = nothing();
    let table = reader.child("reorder", &empty)?;
    Ok(Some(Reorder {
        probability: table.probability("probability")?,
        extra_ps: table.time_always("extra")?,
    }))
}

impl Propagation {
    /// One that does not change.
    pub fn of(delay_ps: Picos) -> Self {
        Self { least_ps: delay_ps, trace: None }
    }
}

impl Direction {
    /// The direction with this delay and capacity of which `reader`'s table says the rest.
    pub fn read(
        reader: &Reader<'_>,
        propagation: Propagation,
        capacity: CapacitySource,
    ) -> Result<Self, ScenarioError> {
        let queue = queue::read(reader)?;
        Ok(Self {
            propagation,
            buffer: buffer(reader, "buffer", &capacity, &queue)?,
            queue,
            loss: loss(reader)?,
            jitter: jitter(reader, "jitter")?,
            reorder: reorder(reader)?,
            buffer_at: reader.locus("buffer"),
            trace_at: reader.locus("trace"),
            capacity,
        })
    }

    /// A pure delay.
    pub fn wire(delay_ps: Picos, at: &Locus) -> Self {
        Self {
            capacity: CapacitySource::Unlimited,
            propagation: Propagation::of(delay_ps),
            queue: QueueSpec::DropTail,
            buffer: BufferSize::Unlimited,
            loss: None,
            jitter: None,
            reorder: None,
            buffer_at: at.clone(),
            trace_at: at.clone(),
        }
    }

    /// Whether there is anything to record.
    pub fn is_plain(&self) -> bool {
        let shaped = self.queue.rate_bps().is_some();
        self.capacity == CapacitySource::Unlimited && self.loss.is_none() && !shaped
    }

    /// Whether the run's seed decides what the link is like.
    pub fn depends_on_seed(&self) -> bool {
        let CapacitySource::Trace { source, .. } = &self.capacity else { return false };
        matches!(source, TraceSource::Synth { .. })
    }

    /// Rate, bit/s; the first of several.
    pub fn rate_bps(&self) -> Option<f64> {
        match self.capacity {
            CapacitySource::Constant(bps) => Some(bps),
            CapacitySource::Steps(ref steps) => steps.first().map(|step| step.1),
            _ => None,
        }
    }

    /// The link model, with everything that depends on the flows and the run worked out. `base_rtt_ps` is the longest base RTT
    /// of the flows that cross.
    pub fn resolve(&self, base_rtt_ps: Picos, run: Run) -> Result<LinkSpec, ScenarioError> {
        let (capacity, bps) = match &self.capacity {
            CapacitySource::Unlimited => (Capacity::Unlimited, f64::INFINITY),
            CapacitySource::Constant(bps) => (Capacity::Constant(*bps), *bps),
            CapacitySource::Steps(steps) => {
                (Capacity::Steps(steps.clone()), steps.first().map_or(0.0, |step| step.1))
            }
            CapacitySource::Trace { source, once } => {
                let trace = source.resolve(run.seed, run.duration_ps);
                let trace = trace.map_err(|fault| self.trace_at.blame(fault))?;
                let bps = trace.mean_bps();
                (Capacity::Trace { trace, once: *once }, bps)
            }
        };
        let bps = self.queue.rate_bps().map_or(bps, |shaped| bps.min(shaped));
        let mut buffer = resolve_buffer(self.buffer, bps, base_rtt_ps, run.packet_bytes)
            .map_err(|fault| self.buffer_at.blame(fault))?;
        if self.queue != QueueSpec::DropTail
            && let Some(wait) = buffer.wait_ps.take()
        {
            // Only a queue that knows on arrival when it will serve can limit the wait itself.
            buffer.bytes = Some(queue::bytes_of_wait(wait, bps));
        }
        let jitter = self.jitter.as_ref().map(|jitter| jitter.resolve(base_rtt_ps)).transpose()?;
        Ok(LinkSpec {
            capacity,
            delay_ps: self.propagation.least_ps,
            delay_trace: self.propagation.trace.clone(),
            queue: self.queue.clone(),
            buffer,
            loss: self.loss,
            jitter,
            reorder: self.reorder,
        })
    }
}

fn resolve_buffer(
    size: BufferSize,
    bps: f64,
    base_rtt_ps: Picos,
    packet_bytes: u16,
) -> Result<Buffer, Fault> {
    let bytes = match size {
        BufferSize::Unlimited => return Ok(Buffer::default()),
        BufferSize::Packets(packets) => {
            return Ok(Buffer { packets: Some(packets), ..Buffer::default() });
        }
        BufferSize::Wait(wait) => return Ok(Buffer { wait_ps: Some(wait), ..Buffer::default() }),
        BufferSize::Bytes(bytes) => bytes,
        BufferSize::Bdp(share) => (share * bps / 8.0 * (base_rtt_ps as f64 / 1e12)).round() as u64,
    };
    if bytes < u64::from(packet_bytes) {
        let what = match size {
            BufferSize::Bdp(share) => format!(
                "{share} BDP is {bytes} bytes at a base RTT of {}, less than one data packet",
                show_time(base_rtt_ps as f64)
            ),
            _ => "less than one data packet".into(),
        };
        return Err(Fault::new(what, format!("allowed: {packet_bytes} B or more")));
    }
    Ok(Buffer { bytes: Some(bytes), ..Buffer::default() })
}

impl JitterSource {
    fn resolve(&self, base_rtt_ps: Picos) -> Result<Jitter, ScenarioError> {
        let amount = |delay| match delay {
            Delay::Time(ps) => ps,
            Delay::OfRtt(share) => (share * base_rtt_ps as f64).round() as Picos,
        };
        let mean_ps = amount(self.mean);
        let max_ps = self.max.map_or(mean_ps.saturating_mul(10), amount);
        // Redrawing until below a bound under the mean would mostly throw draws away.
        if max_ps < mean_ps {
            let hint = format!("allowed: {} or more", show_time(mean_ps as f64));
            return Err(self.at.error("`max` is below the mean", hint));
        }
        Ok(Jitter { mean_ps, max_ps, reorder: self.reorder })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bdp_is_rate_times_rtt() {
        // 1 Gbit/s x 25 ms = 3,125,000 bytes.
        let one = resolve_buffer(BufferSize::Bdp(1.0), 1e9, 25_000_000_000, 1500);
        assert_eq!(one, Ok(Buffer { bytes: Some(3_125_000), ..Buffer::default() }));
        let quarter = resolve_buffer(BufferSize::Bdp(0.25), 40e9, 25_000_000_000, 1500);
        assert_eq!(quarter, Ok(Buffer { bytes: Some(31_250_000), ..Buffer::default() }));
    }

    #[test]
    fn a_buffer_below_one_packet_is_refused() {
        assert!(resolve_buffer(BufferSize::Bytes(1499), 1e9, 0, 1500).is_err());
        assert!(resolve_buffer(BufferSize::Bytes(1500), 1e9, 0, 1500).is_ok());
        assert!(resolve_buffer(BufferSize::Bdp(1.0), 1e9, 0, 1500).is_err());
    }
}
