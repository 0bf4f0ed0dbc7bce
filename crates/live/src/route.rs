//! From a plan to an emulated link: which of its links is the one with the queue, and what cannot be emulated.

use paceline_emulator::Direction;
use paceline_net::queue::Ecn;
use paceline_net::{Capacity, LinkSpec, Picos, QueueSpec};
use paceline_sim::hosted::{DATAGRAM_PROVIDES, LinkRecord, Window};
use paceline_sim::{FlowPlan, LossNotice, NamedLink, Plan, PlanError, Stack, TcpOptions};

use crate::observe::{ObservedLink, Place};
use crate::run::{self, LiveError};
use crate::tcp::{self, Congestion, KERNEL_NAMES};
use crate::wire::{HEADER_BYTES, IP_UDP_BYTES};

/// Largest IP packet.
const MTU: u16 = 1500;
/// A flow has threads of its own.
const MAX_FLOWS: usize = 250;
/// The kernel's TCP has no smaller packets.
const LEAST_PAYLOAD: u16 = 48;
/// IPv4 and TCP headers with timestamps, bytes.
const TCP_HEADER_BYTES: u16 = 52;

/// The links of one direction, as the emulator has them.
pub struct Way {
    /// What the emulator carries.
    pub direction: Direction,
    /// Those that are recorded.
    pub links: Vec<ObservedLink>,
    /// Propagation over all of them, ps.
    pub propagation: Picos,
}

/// Refuses what a live run does not have, and names the scenario's key.
pub fn check(plan: &Plan, loaded: &[Option<Congestion>]) -> Result<(), LiveError> {
    let refuse = |why: String| Err(LiveError::Unsupported(why));
    let Some(first) = plan.flows.first() else { return refuse("no flow, nothing to run".into()) };
    if plan.flows.len() > MAX_FLOWS {
        return refuse(format!("{} flows; a live run has at most {MAX_FLOWS}", plan.flows.len()));
    }
    for (number, flow) in (0..).zip(&plan.flows) {
        let name = &flow.name;
        if (&flow.forward, &flow.reverse) != (&first.forward, &first.reverse) {
            return refuse(format!(
                "flow `{name}` does not cross the links of `{}`: a live run has one path for all (no `rtt`, `from` and `to` of a \
                 flow, no access links of a `topology`)",
                first.name
            ));
        }
        let congestion = run::congestion(loaded, number, flow);
        check_flow_with(flow, congestion.as_ref())?;
    }
    let overhead = overhead_bytes(first);
    if let Some(other) = plan.flows.iter().find(|flow| overhead_bytes(flow) != overhead) {
        return refuse(format!(
            "flow `{}`: packets.data must be one size for all flows",
            other.name
        ));
    }
    Ok(())
}

/// Refuses a flow that a live run does not have.
pub fn check_flow(flow: &FlowPlan) -> Result<(), LiveError> {
    check_flow_with(flow, Congestion::of_the_kernel(flow).as_ref())
}

fn check_flow_with(flow: &FlowPlan, congestion: Option<&Congestion>) -> Result<(), LiveError> {
    let name = &flow.name;
    let refuse = |why: String| Err(LiveError::Unsupported(format!("flow `{name}`: {why}")));
    let provided = match flow.stack {
        Stack::Datagram(options) => {
            if options.tell_losses == LossNotice::AtDrop {
                return refuse(
                    "stack.tell_losses = drop: no network tells of a drop when it happens".into(),
                );
            }
            if flow.tag.ecn != Ecn::NotCapable {
                return refuse(
                    "ecn: the datagram endpoint's ACKs have no room for marks; allowed: off".into(),
                );
            }
            DATAGRAM_PROVIDES
        }
        Stack::Tcp(options) => return check_tcp(flow, &options, congestion),
    };
    let missing = flow.needs.missing_from(provided);
    if !missing.is_empty() {
        return Err(LiveError::Plan(PlanError::Needs {
            flow: name.clone(),
            controller: flow.controller_name.clone(),
            missing: missing.join(", "),
            stack: "live datagram",
        }));
    }
    check_size(flow)
}

/// The kernel's TCP: which controllers it has, and what it cannot be told.
fn check_tcp(
    flow: &FlowPlan,
    options: &TcpOptions,
    congestion: Option<&Congestion>,
) -> Result<(), LiveError> {
    let (name, controller) = (&flow.name, &flow.controller_name);
    let refuse = |why: String| Err(LiveError::Unsupported(format!("flow `{name}`: {why}")));
    let Some(congestion) = congestion else {
        let ours = KERNEL_NAMES.map(|(ours, _)| ours).join(", ");
        return refuse(format!(
            "controller = {controller}: stack `tcp` is the kernel's here, which has {ours}, without parameters, and runs those that \
             `paceline kernel` loads; stack `datagram` hosts any controller"
        ));
    };
    let (wanted, available) = (&congestion.name, tcp::available());
    if !available.contains(wanted) {
        return refuse(format!(
            "controller = {controller}: this kernel has no {wanted}; it has {} (try: sudo modprobe tcp_{wanted})",
            available.join(", ")
        ));
    }
    if flow.tag.ecn != Ecn::NotCapable {
        return refuse("ecn: is not set per flow in the kernel's TCP; allowed: off".into());
    }
    // Delayed ACKs are left out: the kernel has its own rule for them, and scenarios say so to come near it.
    let own = TcpOptions { delayed_ack_ps: options.delayed_ack_ps, ..TcpOptions::default() };
    if *options != own {
        return refuse(
            "stack: the kernel's TCP has its own min_rto, initial_window, handshake and prr; allowed: their defaults".into(),
        );
    }
    check_size(flow)
}

fn check_size(flow: &FlowPlan) -> Result<(), LiveError> {
    let (name, data) = (&flow.name, flow.packets.data_bytes);
    let least = least_bytes(flow) + LEAST_PAYLOAD;
    if data < least {
        return Err(LiveError::Unsupported(format!(
            "flow `{name}`: packets.data = {data} B; allowed: {least} B or more"
        )));
    }
    Ok(())
}

/// Headers within a data packet on the wire, bytes.
fn least_bytes(flow: &FlowPlan) -> u16 {
    let headers = match flow.stack {
        Stack::Datagram(_) => (IP_UDP_BYTES + HEADER_BYTES) as u16,
        Stack::Tcp(_) => TCP_HEADER_BYTES,
    };
    headers + overhead_bytes(flow)
}

/// What a packet counts on the link besides its IP bytes: what its planned size has more than IP packets can have here.
pub fn overhead_bytes(flow: &FlowPlan) -> u16 {
    flow.packets.data_bytes.saturating_sub(MTU)
}

/// Sets the sizes that the packets of `flow` really have. Of a controller in the kernel nothing can be observed.
pub fn adapt(flow: &mut FlowPlan) {
    if matches!(flow.stack, Stack::Tcp(_)) {
        flow.fields.clear();
    }
    let least = least_bytes(flow);
    flow.packets.header_bytes = least;
    flow.packets.ack_bytes = least;
}

/// The links `path` of `plan` as one direction of an emulated link.
pub fn way(
    links: &[NamedLink],
    path: &[u32],
    overhead_bytes: u16,
    window: Window,
) -> Result<Way, LiveError> {
    let crossed: Vec<(usize, &NamedLink)> =
        path.iter().map(|link| (*link as usize, &links[*link as usize])).collect();
    let mut queues = crossed.iter().enumerate().filter(|(_, (_, link))| !is_a_delay(&link.spec));
    let queue = queues.next().map_or(0, |(at, _)| at);
    if let Some((_, (_, second))) = queues.next() {
        let (first, second) = (&crossed[queue].1.name, &second.name);
        return Err(LiveError::Unsupported(format!(
            "links `{first}` and `{second}` both have a rate, a queue, loss, jitter or a delay that changes: a live run has one such link on a path, and \
             else delays (the access links of a `topology` are such, unless `access_rate` is unlimited)"
        )));
    }
    let delay = |links: &[(usize, &NamedLink)]| -> Picos {
        links.iter().map(|(_, link)| link.spec.delay_ps).fold(0, Picos::saturating_add)
    };
    let (before, behind) = (delay(&crossed[..queue]), delay(&crossed[queue + 1..]));
    let mut spec = crossed[queue].1.spec.clone();
    let own = spec.delay_ps;
    spec.delay_ps = own.saturating_add(behind);
    let place = |at: usize| match at.cmp(&queue) {
        std::cmp::Ordering::Less => Place::Before(delay(&crossed[at..queue])),
        std::cmp::Ordering::Equal => Place::Queue,
        std::cmp::Ordering::Greater => Place::Behind(delay(&crossed[queue..at])),
    };
    let observed = crossed.iter().enumerate().filter(|(_, (_, link))| link.recorded);
    let observed = observed.map(|(at, (number, link))| ObservedLink {
        number: *number,
        record: LinkRecord::new(link.name.clone(), window),
        place: place(at),
    });
    Ok(Way {
        links: observed.collect(),
        // The delay before the link is not part of what its packets are seen to take.
        propagation: own.saturating_add(behind),
        direction: Direction {
            spec,
            overhead_bytes: overhead_bytes.into(),
            log: None,
            delay_before_ps: before,
        },
    })
}

/// Whether a link does nothing but delay.
fn is_a_delay(spec: &LinkSpec) -> bool {
    spec.capacity == Capacity::Unlimited
        && spec.queue == QueueSpec::DropTail
        && spec.delay_trace.is_none()
        && spec.loss.is_none()
        && spec.jitter.is_none()
        && spec.reorder.is_none()
}

#[cfg(test)]
mod tests {
    use super::*;
    use paceline_net::{PS_PER_MS, PS_PER_S};

    const WINDOW: Window = Window { warmup: 0, end: PS_PER_S, sample: PS_PER_MS };

    fn link(name: &str, capacity: Capacity, delay_ms: u64) -> NamedLink {
        let spec = LinkSpec { capacity, delay_ps: delay_ms * PS_PER_MS, ..LinkSpec::default() };
        NamedLink { name: name.into(), spec, recorded: true }
    }

    #[test]
    fn delays_around_the_queue_are_folded_in() {
        let links = [
            link("a", Capacity::Unlimited, 3),
            link("b", Capacity::Constant(1e6), 5),
            link("c", Capacity::Unlimited, 7),
        ];
        let way = way(&links, &[0, 1, 2], 4, WINDOW).unwrap();
        assert_eq!(way.direction.delay_before_ps, 3 * PS_PER_MS);
        assert_eq!(way.direction.spec.delay_ps, 12 * PS_PER_MS);
        assert_eq!(way.propagation, 12 * PS_PER_MS);
        let places: Vec<Place> = way.links.iter().map(|link| link.place).collect();
        let expected = [Place::Before(3 * PS_PER_MS), Place::Queue, Place::Behind(5 * PS_PER_MS)];
        assert_eq!(places, expected);
    }

    #[test]
    fn two_queues_are_refused_by_name() {
        let links = [link("a", Capacity::Constant(1e6), 0), link("b", Capacity::Constant(1e6), 0)];
        let error = way(&links, &[0, 1], 0, WINDOW).err().unwrap().to_string();
        assert!(error.starts_with("links `a` and `b` both"), "{error}");
    }
}
