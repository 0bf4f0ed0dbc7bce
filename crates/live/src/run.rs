//! Carries a plan out: sockets, threads, and what came of it.

use std::io;
use std::net::{Ipv4Addr, SocketAddr, SocketAddrV4, TcpListener, UdpSocket};
use std::ops::ControlFlow;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{self, Receiver};
use std::thread;
use std::time::Duration;

use paceline_emulator::{Branches, Counts, Emulation, Ends, Error, Observer, host, set_realtime};
use paceline_net::{PS_PER_NS, Picos};
use paceline_sim::hosted::{Delivery, HostedDatagram, SenderRecord, Window};
use paceline_sim::{
    EngineStats, FlowPlan, LinkOutcome, Outcome, PacketSizes, Plan, PlanError, Stack,
};

use serde::{Deserialize, Serialize};

use crate::clock::Clock;
use crate::error::LiveError;
use crate::observe::{Observed, ObservedFlow, Watch};
use crate::ports::{Port, Ports, Side};
use crate::receive::{self, Receiver as DatagramReceiver};
use crate::route;
use crate::send::{self, Driver, Ended};
use crate::tcp::Congestion;
use crate::way::{Way, both_ways};
use crate::{sys, tcp};

/// How often the run is shown to its watch.
const WATCH: Duration = Duration::from_millis(50);
/// At the end no sleep is shorter.
const SHORTEST_WATCH: Duration = Duration::from_millis(1);

/// How a live run is carried out.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Options {
    /// Emulator and datagram endpoints run before all programs without real-time priority.
    pub realtime: bool,
}

/// Congestion controls that were loaded into the kernel for a run, in the place of its own.
#[derive(Default)]
pub struct Loaded {
    /// Of each flow of the plan, by number; `None`, or none at all: the kernel's own.
    pub of_flows: Vec<Option<Congestion>>,
    /// Dropped as soon as all sockets have chosen theirs: what is taken out of the kernel then goes with the last flow.
    pub hold: Option<Box<dyn Send>>,
}

/// How well this machine kept up.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Health {
    /// Data packets that senders sent and the link never saw.
    pub unseen_packets: u64,
    /// Data packets that the link delivered and the kernel refused.
    pub unwritable_packets: u64,
    /// How long after their time packets left the link, us: mean, and what 99 % do not exceed. `None` without packets.
    pub late_us: Option<[f64; 2]>,
}

/// A live run that came to its end.
#[derive(Clone, Debug, Serialize, Deserialize)]
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
    plan: Plan,
    options: Options,
    watch: &mut (dyn FnMut(Picos) -> ControlFlow<()> + Send),
) -> Result<Option<Finished>, LiveError> {
    run_with(plan, options, Loaded::default(), watch)
}

/// As [`run`], where flows of the kernel's TCP may have a congestion control that was `loaded` for them.
///
/// # Errors
/// See [`LiveError`].
pub fn run_with(
    mut plan: Plan,
    options: Options,
    loaded: Loaded,
    watch: &mut (dyn FnMut(Picos) -> ControlFlow<()> + Send),
) -> Result<Option<Finished>, LiveError> {
    route::check(&plan, &loaded.of_flows)?;
    plan.flows.iter_mut().for_each(route::adapt);
    let window = Window { warmup: plan.warmup_ps, end: plan.duration_ps, sample: plan.sample_ps };
    let overhead = route::overhead_bytes(&plan.flows[0]);
    let [up, down] = both_ways(&plan.links, &plan.flows, overhead, window)?;
    let packets: Vec<PacketSizes> = plan.flows.iter().map(|flow| flow.packets).collect();
    let observed = up.flows.iter().zip(&packets).map(|(distance, sizes)| ObservedFlow {
        delivery: Delivery::new(window, distance.propagation, sizes.header_bytes),
        before: distance.before,
    });

    let ports = Ports::default();
    let (up_sender, up_observed) = mpsc::channel();
    let (down_sender, down_observed) = mpsc::channel();
    let (up_flows, down_flows) = (observed.collect(), Vec::new());
    let branches = [branches(&up, &ports, Side::Data), branches(&down, &ports, Side::Acks)];
    let Way { direction: up_direction, links: up_links, .. } = up;
    let Way { direction: down_direction, links: down_links, .. } = down;
    let observers: [Option<Box<dyn Observer>>; 2] = [
        Some(Box::new(Watch::new(window, up_links, up_flows, ports.clone(), up_sender))),
        Some(Box::new(Watch::new(window, down_links, down_flows, ports.clone(), down_sender))),
    ];
    let (seed, realtime) = (plan.seed, options.realtime);
    let emulation = Emulation { up: up_direction, down: down_direction, seed, realtime };
    let flows = plan.flows;
    let congestions = (0..).zip(&flows).map(|(n, flow)| Congestion::of(flow, n, &loaded.of_flows));
    let stacks: Vec<(Stack, Option<Congestion>)> =
        flows.iter().map(|flow| flow.stack).zip(congestions).collect();
    let crew = Crew {
        window,
        seed,
        overhead,
        realtime,
        cpu_ns: AtomicU64::new(0),
        failed: AtomicBool::new(false),
        opening: Mutex::new(()),
    };
    let outside = |ends: &Ends| {
        let far = |(stack, congestion): &(Stack, Option<Congestion>)| {
            Far::new(*stack, congestion.as_ref(), ends.outside)
        };
        let sockets = stacks.iter().map(far);
        let sockets: Vec<Far> = sockets.collect::<io::Result<_>>().map_err(broken)?;
        let known: io::Result<Vec<Port>> = sockets.iter().map(Far::port).collect();
        ports.set(known.map_err(broken)?);
        Ok(sockets)
    };
    let hosted = host(emulation, observers, branches, outside, |ends, sockets| {
        crew.run(ends, flows, loaded, sockets, watch)
    })?;
    let Some(reports) = hosted.result? else { return Ok(None) };
    let observed =
        |from: Receiver<Observed>| from.recv().map_err(|_| LiveError::Emulator(Error::Killed));
    let (up, down) = (observed(up_observed)?, observed(down_observed)?);
    let cpu_s = crew.cpu_ns.load(Ordering::Relaxed) as f64 / 1e9;
    Ok(Some(finish(reports, up, down, [&hosted.up, &hosted.down], packets, cpu_s)))
}

/// The branches that the flows of `way` have, if they have any.
fn branches(way: &Way, ports: &Ports, side: Side) -> Option<Branches> {
    let [before, behind] = way.branches.clone()?;
    let ports = ports.clone();
    let flow_of =
        move |packet: &[u8]| ports.flow_of(packet, side).map_or(u32::MAX, |(flow, _)| flow);
    Some(Branches { before, behind, branch_of: Box::new(flow_of) })
}

fn broken(error: io::Error) -> Error {
    Error::System { what: "make a socket", reason: error }
}

/// The receiving end of a flow before it is used.
enum Far {
    Datagram(UdpSocket),
    Tcp(TcpListener),
}

impl Far {
    fn new(stack: Stack, congestion: Option<&Congestion>, address: Ipv4Addr) -> io::Result<Self> {
        let address = SocketAddrV4::new(address, 0);
        Ok(match stack {
            Stack::Datagram(_) => Self::Datagram(sys::datagram_socket(address)?),
            Stack::Tcp(_) => Self::Tcp(tcp::listen(address, congestion)?),
        })
    }

    fn port(&self) -> io::Result<Port> {
        Ok(match self {
            Self::Datagram(socket) => Port::Udp(socket.local_addr()?.port()),
            Self::Tcp(listener) => Port::Tcp(listener.local_addr()?.port()),
        })
    }
}

/// What the ends of the flows know, in the order of the plan.
struct Reports {
    senders: Vec<SenderRecord>,
    /// Of a TCP flow: payload that its receiver took within the window, bytes.
    payloads: Vec<Option<u64>>,
}

/// What the threads of a run share.
struct Crew {
    window: Window,
    seed: u64,
    overhead: u16,
    realtime: bool,
    /// CPU time of the endpoints, ns.
    cpu_ns: AtomicU64,
    /// Whether a flow has failed.
    failed: AtomicBool,
    /// See [`tcp::Sending::opening`].
    opening: Mutex<()>,
}

impl Crew {
    /// Runs both ends of all flows, on a thread whose sockets are inside; `None` when the watch broke it off.
    fn run(
        &self,
        ends: &Ends,
        flows: Vec<FlowPlan>,
        loaded: Loaded,
        outside: Vec<Far>,
        watch: &mut (dyn FnMut(Picos) -> ControlFlow<()> + Send),
    ) -> Result<Option<Reports>, LiveError> {
        let clock = &Clock::new(ends.start);
        let (stop, over) = (&AtomicBool::new(false), &AtomicBool::new(false));
        thread::scope(|scope| {
            // Whatever way this is left, nobody may be waited for in vain.
            let (_stop, over_at_last) = (Finally(stop), Finally(over));
            let (mut senders, mut sinks, mut receivers) = (Vec::new(), Vec::new(), Vec::new());
            for ((number, flow), far) in (0..).zip(flows).zip(outside) {
                let sender = named("paceline-send");
                match far {
                    Far::Datagram(far) => {
                        let near = sys::datagram_socket(SocketAddrV4::new(ends.inside, 0));
                        let near = near.map_err(LiveError::system("make a socket"))?;
                        sys::set_ecn(&near, route::ecn_field(&flow))
                            .map_err(LiveError::system("set up a socket"))?;
                        join(&near, &far).map_err(LiveError::system("connect a socket"))?;
                        receivers.push(DatagramReceiver::new(far));
                        let work = move || self.send(flow, number, &near, clock, stop);
                        senders.push(sender.spawn_scoped(scope, work).map_err(thread_failed)?);
                        sinks.push(None);
                    }
                    Far::Tcp(listener) => {
                        let to = listener.local_addr();
                        let to = to.map_err(LiveError::system("make a socket"))?;
                        let from = flow.start_ps.max(self.window.warmup);
                        let last = flow.stop_ps.unwrap_or(self.window.end).min(self.window.end);
                        let work = move || self.sink(&listener, clock, [from, last], over);
                        let sink = named("paceline-receive").spawn_scoped(scope, work);
                        sinks.push(Some(sink.map_err(thread_failed)?));
                        let chosen = Congestion::of(&flow, number, &loaded.of_flows);
                        let near = tcp::Near::new(&flow, chosen.as_ref());
                        let near = near.map_err(LiveError::system("make a socket"))?;
                        let work = move || self.send_tcp(flow, near, to, clock, stop);
                        senders.push(sender.spawn_scoped(scope, work).map_err(thread_failed)?);
                    }
                }
            }
            drop(loaded);
            let work = move || self.work(|| receive::receive(&mut receivers, clock, over));
            named("paceline-receive").spawn_scoped(scope, work).map_err(thread_failed)?;
            let mut broken_off = false;
            // Flows that have completed early are over; the run is not.
            while !broken_off && (clock.now() < self.window.end || !all_over(&senders)) {
                let left = self.window.end.saturating_sub(clock.now()) / PS_PER_NS;
                thread::sleep(Duration::from_nanos(left).clamp(SHORTEST_WATCH, WATCH));
                broken_off = watch(clock.now().min(self.window.end)).is_break();
                // Why is found out below.
                broken_off |= self.failed.load(Ordering::Relaxed);
            }
            stop.store(broken_off, Ordering::Relaxed);
            // A panic there is a bug; it has been printed.
            let panicked = |_| LiveError::Emulator(Error::Killed);
            let senders: Vec<Result<SenderRecord, LiveError>> =
                senders.into_iter().map(|sender| sender.join().map_err(panicked)?).collect();
            drop(over_at_last);
            let payloads: Vec<Result<Option<u64>, LiveError>> = sinks
                .into_iter()
                .map(|sink| sink.map(|sink| sink.join().map_err(panicked)?).transpose())
                .collect();
            let senders = senders.into_iter().collect::<Result<_, LiveError>>()?;
            let payloads = payloads.into_iter().collect::<Result<_, LiveError>>()?;
            Ok((!broken_off).then_some(Reports { senders, payloads }))
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
        let (start, window) = (flow.start_ps, self.window);
        sleep_until(start, clock, stop);
        let name = flow.name.clone();
        let mut flow = flow;
        if let Stack::Datagram(options) = &mut flow.stack {
            // This machine has its own.
            options.overhead_ps = 0;
        }
        let host = HostedDatagram::new(flow, number, self.seed, start, window);
        let mut driver = Driver::new(host, start, window);
        let overhead = self.overhead.into();
        let ended = self.work(|| send::send(&mut driver, socket, clock, overhead, stop));
        match ended {
            Ended::Over => Ok(driver.finish(clock.now())),
            Ended::Unbounded => {
                self.failed.store(true, Ordering::Relaxed);
                let at_s = clock.now() as f64 / 1e12;
                Err(LiveError::Plan(PlanError::Unbounded { flow: name, at_s }))
            }
        }
    }

    /// The sending end of a TCP flow, from its start to the end of the run.
    fn send_tcp(
        &self,
        flow: FlowPlan,
        near: tcp::Near,
        to: SocketAddr,
        clock: &Clock,
        stop: &AtomicBool,
    ) -> Result<SenderRecord, LiveError> {
        let SocketAddr::V4(to) = to else { unreachable!("it was bound to an IPv4 address") };
        sleep_until(flow.start_ps, clock, stop);
        let (window, opening) = (self.window, &self.opening);
        let sending = tcp::Sending { to, clock, window, stop, opening };
        let record = self.work(|| sending.run(flow, near));
        record.map_err(|error| {
            self.failed.store(true, Ordering::Relaxed);
            LiveError::system("send over TCP")(error)
        })
    }

    /// The receiving end of a TCP flow.
    fn sink(
        &self,
        listener: &TcpListener,
        clock: &Clock,
        window: [Picos; 2],
        over: &AtomicBool,
    ) -> Result<u64, LiveError> {
        let taken = self.work(|| tcp::sink(listener, clock, window, over));
        taken.map_err(LiveError::system("receive over TCP"))
    }

    /// Does the work of an endpoint, on a thread of its own.
    fn work<T>(&self, work: impl FnOnce() -> T) -> T {
        if self.realtime {
            // The emulator's threads have it too, so it is allowed.
            let _ = set_realtime(true);
        }
        let _ = nix::sys::prctl::set_timerslack(1);
        let before = sys::thread_cpu_s();
        let result = work();
        let cpu_s = sys::thread_cpu_s() - before;
        self.cpu_ns.fetch_add((cpu_s * 1e9) as u64, Ordering::Relaxed);
        result
    }
}

fn named(name: &str) -> thread::Builder {
    thread::Builder::new().name(name.into())
}

fn thread_failed(error: io::Error) -> LiveError {
    LiveError::system("start a thread")(error)
}

fn all_over<T>(threads: &[thread::ScopedJoinHandle<'_, T>]) -> bool {
    threads.iter().all(|thread| thread.is_finished())
}

/// Connects two sockets with each other.
fn join(near: &UdpSocket, far: &UdpSocket) -> io::Result<()> {
    near.connect(far.local_addr()?)?;
    far.connect(near.local_addr()?)
}

fn sleep_until(time: Picos, clock: &Clock, stop: &AtomicBool) {
    while !stop.load(Ordering::Relaxed)
        && let Some(left) = time.checked_sub(clock.now()).filter(|left| *left > 0)
    {
        thread::sleep(Duration::from_nanos(left.div_ceil(PS_PER_NS)).min(WATCH));
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
    reports: Reports,
    mut up: Observed,
    down: Observed,
    counts: [&Counts; 2],
    packets: Vec<PacketSizes>,
    cpu_s: f64,
) -> Finished {
    let Reports { mut senders, payloads } = reports;
    let mut unseen_packets = 0;
    let ends = senders.iter_mut().zip(payloads);
    for (delivery, (sender, payload)) in up.flows.iter_mut().zip(ends) {
        let entered = delivery.entered_packets();
        match payload {
            // The kernel's count is of another moment than the end of the run.
            Some(payload) => {
                sender.sent_packets = entered;
                delivery.set_payload(payload);
            }
            None => unseen_packets += sender.sent_packets.saturating_sub(entered),
        }
    }
    let flows = up.flows.into_iter().zip(senders);
    let flows: Vec<_> = flows.map(|(delivery, sender)| delivery.outcome(sender)).collect();
    let mut links: Vec<(usize, LinkOutcome)> = up.links.into_iter().chain(down.links).collect();
    links.sort_by_key(|(number, _)| *number);
    let links = links.into_iter().map(|(_, link)| link).collect();
    let late = |of: &Counts| Some([of.lateness.mean_us()?, of.lateness.quantile_us(0.99)?]);
    let engine = EngineStats {
        events: 0,
        packets: flows.iter().map(|flow| flow.delivered_packets).sum(),
        cpu_s,
        bytes_per_flow: f64::NAN,
    };
    let unwritable_packets = up.unwritable_packets;
    let health = Health { unseen_packets, unwritable_packets, late_us: late(counts[0]) };
    Finished { outcome: Outcome { flows, links, engine }, packets, health }
}
