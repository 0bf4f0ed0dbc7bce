//! Carries a plan out: sockets, threads, and what came of it.

use std::net::{SocketAddrV4, UdpSocket};
use std::ops::ControlFlow;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{self, Receiver};
use std::sync::{Arc, OnceLock};
use std::thread;
use std::time::Duration;

use paceline_emulator::{Counts, Emulation, Ends, Error, Observer, host, set_realtime};
use paceline_net::{PS_PER_NS, Picos};
use paceline_sim::hosted::{HostedDatagram, SenderRecord, Window};
use paceline_sim::{
    EngineStats, FlowPlan, LinkOutcome, Outcome, PacketSizes, Plan, PlanError, Stack,
};

use crate::clock::Clock;
use crate::observe::{Observed, Watch};
use crate::receive::{self, Receiver as DatagramReceiver};
use crate::route::{self, Way};
use crate::send::{self, Driver, Ended};
use crate::sys;

/// Socket buffers, bytes: a second at 100 Mbit/s, should a thread be held up.
const DATAGRAM_BUFFER: usize = 16 << 20;
/// How often the run is shown to its watch.
const WATCH: Duration = Duration::from_millis(50);

/// How a live run is carried out.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Options {
    /// Emulator and datagram endpoints run before all programs without real-time priority.
    pub realtime: bool,
}

/// A live run that did not come about.
#[derive(Debug, thiserror::Error)]
pub enum LiveError {
    /// The plan asks for something that a live run does not have.
    #[error("{0}")]
    Unsupported(String),
    /// The plan cannot run in any world.
    #[error(transparent)]
    Plan(#[from] PlanError),
    /// There is no emulated link.
    #[error(transparent)]
    Emulator(#[from] Error),
    /// A socket or a thread cannot be had.
    #[error("cannot {what}: {reason}")]
    System {
        /// What was attempted.
        what: &'static str,
        /// Why it failed.
        reason: std::io::Error,
    },
}

impl LiveError {
    fn system(what: &'static str) -> impl FnOnce(std::io::Error) -> Self {
        move |reason| Self::System { what, reason }
    }
}

/// How well this machine kept up.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Health {
    /// Data packets that senders sent and the link never saw.
    pub unseen_packets: u64,
    /// Data packets that the link delivered and the kernel refused.
    pub unwritable_packets: u64,
    /// How long after their time packets left the link, us: mean, and what 99 % do not exceed. `None` without packets.
    pub late_us: Option<[f64; 2]>,
}

/// A live run that came to its end.
#[derive(Clone, Debug)]
pub struct Finished {
    /// What came of it.
    pub outcome: Outcome,
    /// The sizes that the packets of each flow had.
    pub packets: Vec<PacketSizes>,
    /// How well this machine kept up.
    pub health: Health,
}

/// Carries out `plan` in real time, showing `watch` the time, ps, twenty times a second; `None` when it broke the run off.
///
/// # Errors
/// See [`LiveError`].
pub fn run(
    mut plan: Plan,
    options: Options,
    watch: &mut (dyn FnMut(Picos) -> ControlFlow<()> + Send),
) -> Result<Option<Finished>, LiveError> {
    route::check(&plan)?;
    plan.flows.iter_mut().for_each(route::set_sizes);
    let window = Window { warmup: plan.warmup_ps, end: plan.duration_ps, sample: plan.sample_ps };
    let overhead = route::overhead_bytes(&plan.flows[0]);
    let way = |path: &[u32]| route::way(&plan.links, path, overhead, window);
    let (up, down) = (way(&plan.flows[0].forward)?, way(&plan.flows[0].reverse)?);
    let packets: Vec<PacketSizes> = plan.flows.iter().map(|flow| flow.packets).collect();
    let deliveries = plan.flows.iter().map(|flow| {
        paceline_sim::hosted::Delivery::new(window, up.propagation, flow.packets.header_bytes)
    });

    let ports = Arc::new(OnceLock::new());
    let (up_sender, up_observed) = mpsc::channel();
    let (down_sender, down_observed) = mpsc::channel();
    let (up_flows, down_flows) = (deliveries.collect(), Vec::new());
    let Way { direction: up_direction, links: up_links, .. } = up;
    let Way { direction: down_direction, links: down_links, .. } = down;
    let observers: [Option<Box<dyn Observer>>; 2] = [
        Some(Box::new(Watch::new(window, up_links, up_flows, ports.clone(), up_sender))),
        Some(Box::new(Watch::new(window, down_links, down_flows, ports.clone(), down_sender))),
    ];
    let (seed, realtime) = (plan.seed, options.realtime);
    let emulation = Emulation { up: up_direction, down: down_direction, seed, realtime };
    let flows = plan.flows;
    let count = flows.len();
    let crew = Crew { window, seed, overhead, realtime, cpu_ns: AtomicU64::new(0) };
    let outside = |ends: &Ends| {
        let sockets = (0..count).map(|_| socket_at(SocketAddrV4::new(ends.outside, 0)));
        let sockets: Vec<UdpSocket> = sockets.collect::<std::io::Result<_>>().map_err(broken)?;
        let known: std::io::Result<Vec<u16>> =
            sockets.iter().map(|socket| Ok(socket.local_addr()?.port())).collect();
        let _ = ports.set(known.map_err(broken)?);
        Ok(sockets)
    };
    let hosted =
        host(emulation, observers, outside, |ends, sockets| crew.run(ends, flows, sockets, watch))?;
    let Some(senders) = hosted.result? else { return Ok(None) };
    let observed =
        |from: Receiver<Observed>| from.recv().map_err(|_| LiveError::Emulator(Error::Killed));
    let (up, down) = (observed(up_observed)?, observed(down_observed)?);
    let cpu_s = crew.cpu_ns.load(Ordering::Relaxed) as f64 / 1e9;
    Ok(Some(finish(senders, up, down, [&hosted.up, &hosted.down], packets, cpu_s)))
}

fn broken(error: std::io::Error) -> Error {
    Error::System { what: "make a socket", reason: error }
}

fn socket_at(address: SocketAddrV4) -> std::io::Result<UdpSocket> {
    let socket = UdpSocket::bind(address)?;
    sys::note_arrivals(&socket)?;
    sys::set_buffers(&socket, DATAGRAM_BUFFER)?;
    Ok(socket)
}

/// What the threads of a run share.
struct Crew {
    window: Window,
    seed: u64,
    overhead: u16,
    realtime: bool,
    cpu_ns: AtomicU64,
}

impl Crew {
    /// Runs both ends of all flows, on a thread whose sockets are inside; `None` when the watch broke it off.
    fn run(
        &self,
        ends: &Ends,
        flows: Vec<FlowPlan>,
        outside: Vec<UdpSocket>,
        watch: &mut (dyn FnMut(Picos) -> ControlFlow<()> + Send),
    ) -> Result<Option<Vec<SenderRecord>>, LiveError> {
        let clock = Clock::new(ends.start);
        let (stop, over) = (AtomicBool::new(false), AtomicBool::new(false));
        let broken = LiveError::system;
        thread::scope(|scope| {
            // Whatever way this is left, nobody may be waited for in vain.
            let _over = Finally(&over);
            let _stop = Finally(&stop);
            let mut senders = Vec::new();
            let mut receivers = Vec::new();
            for ((number, flow), far) in (0..).zip(flows).zip(outside) {
                let near = socket_at(SocketAddrV4::new(ends.inside, 0))
                    .map_err(broken("make a socket"))?;
                let connect = |socket: &UdpSocket, to: &UdpSocket| socket.connect(to.local_addr()?);
                connect(&near, &far).map_err(broken("connect a socket"))?;
                connect(&far, &near).map_err(broken("connect a socket"))?;
                receivers.push(DatagramReceiver::new(far));
                let (stop, clock) = (&stop, &clock);
                let work = move || self.send(flow, number, &near, clock, stop);
                let thread = thread::Builder::new().name("paceline-send".into());
                senders.push(thread.spawn_scoped(scope, work).map_err(broken("start a thread"))?);
            }
            let (over_flag, clock_ref) = (&over, &clock);
            let thread = thread::Builder::new().name("paceline-receive".into());
            let work = move || {
                self.begin();
                receive::receive(&mut receivers, clock_ref, over_flag);
                self.end();
            };
            thread.spawn_scoped(scope, work).map_err(broken("start a thread"))?;
            let mut broken_off = false;
            while !senders.iter().all(|sender| sender.is_finished()) {
                thread::sleep(WATCH);
                if watch(clock.now().min(self.window.end)).is_break() {
                    broken_off = true;
                    stop.store(true, Ordering::Relaxed);
                }
            }
            let records: Result<Vec<SenderRecord>, LiveError> = senders
                .into_iter()
                // A panic there is a bug; it has been printed.
                .map(|sender| sender.join().unwrap_or(Err(LiveError::Emulator(Error::Killed))))
                .collect();
            if broken_off {
                return Ok(None);
            }
            // Flows that completed early have ended; the run has not.
            while clock.now() < self.window.end {
                thread::sleep(WATCH.min(Duration::from_nanos(
                    (self.window.end - clock.now().min(self.window.end)) / PS_PER_NS,
                )));
                if watch(clock.now().min(self.window.end)).is_break() {
                    return Ok(None);
                }
            }
            records.map(Some)
        })
    }

    /// The sending end of a datagram flow, from its start to its end.
    fn send(
        &self,
        flow: FlowPlan,
        number: u32,
        socket: &UdpSocket,
        clock: &Clock,
        stop: &AtomicBool,
    ) -> Result<SenderRecord, LiveError> {
        self.begin();
        let (start, window) = (flow.start_ps, self.window);
        while clock.now() < start && !stop.load(Ordering::Relaxed) {
            let left = Duration::from_nanos((start - clock.now().min(start)) / PS_PER_NS);
            thread::sleep(left.min(WATCH));
        }
        let name = flow.name.clone();
        let mut flow = flow;
        let blocking = match &mut flow.stack {
            Stack::Datagram(options) => {
                // This machine has its own.
                options.overhead_ps = 0;
                options.blocking
            }
            Stack::Tcp(_) => false,
        };
        let host = HostedDatagram::new(flow, number, self.seed, start, window);
        let mut driver = Driver::new(host, start, blocking, window);
        let ended = send::send(&mut driver, socket, clock, self.overhead.into(), stop);
        self.end();
        match ended {
            Ended::Over => Ok(driver.finish(clock.now())),
            Ended::Unbounded => {
                let at_s = clock.now() as f64 / 1e12;
                Err(LiveError::Plan(PlanError::Unbounded { flow: name, at_s }))
            }
        }
    }

    /// A thread of an endpoint begins.
    fn begin(&self) {
        if self.realtime {
            // The emulator's threads have it too, so it is allowed.
            let _ = set_realtime(true);
        }
        let _ = nix::sys::prctl::set_timerslack(1);
    }

    /// It ends.
    fn end(&self) {
        self.cpu_ns.fetch_add((sys::thread_cpu_s() * 1e9) as u64, Ordering::Relaxed);
    }
}

/// Raises a flag when it goes.
struct Finally<'a>(&'a AtomicBool);

impl Drop for Finally<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

fn finish(
    senders: Vec<SenderRecord>,
    up: Observed,
    down: Observed,
    counts: [&Counts; 2],
    packets: Vec<PacketSizes>,
    cpu_s: f64,
) -> Finished {
    let sent: u64 = senders.iter().map(|sender| sender.sent_packets).sum();
    let entered: u64 = up.flows.iter().map(|flow| flow.entered_packets()).sum();
    let mut links: Vec<(usize, LinkOutcome)> = up.links.into_iter().chain(down.links).collect();
    links.sort_by_key(|(number, _)| *number);
    let flows =
        up.flows.into_iter().zip(senders).map(|(delivery, sender)| delivery.outcome(sender));
    let flows: Vec<_> = flows.collect();
    let late = |of: &Counts| Some([of.lateness.mean_us()?, of.lateness.quantile_us(0.99)?]);
    let delivered = flows.iter().map(|flow| flow.delivered_packets).sum();
    let outcome = Outcome {
        flows,
        links: links.into_iter().map(|(_, link)| link).collect(),
        engine: EngineStats { events: 0, packets: delivered, cpu_s, bytes_per_flow: f64::NAN },
    };
    let health = Health {
        unseen_packets: sent.saturating_sub(entered),
        unwritable_packets: up.unwritable_packets,
        late_us: late(counts[0]),
    };
    Finished { outcome, packets, health }
}
