//! What a live run can carry out: which flows, controllers and packets, by the keys of the scenario.

use paceline_net::queue::Ecn;
use paceline_sim::hosted::DATAGRAM_PROVIDES;
use paceline_sim::{FlowPlan, LossNotice, Plan, PlanError, Stack, TcpOptions};

use crate::error::LiveError;
use crate::tcp::{self, Congestion, KERNEL_NAMES};
use crate::wire::{HEADER_BYTES, IP_UDP_BYTES, MARKS_BYTES};

/// Largest IP packet.
const MTU: u16 = 1500;
/// A flow has threads of its own.
const MAX_FLOWS: usize = 250;
/// The kernel's TCP has no smaller packets.
const LEAST_PAYLOAD: u16 = 48;
/// IPv4 and TCP headers with timestamps, bytes.
const TCP_HEADER_BYTES: u16 = 52;

/// Refuses what a live run does not have, and names the scenario's key.
pub fn check(plan: &Plan, loaded: &[Option<Congestion>]) -> Result<(), LiveError> {
    let refuse = |why: String| Err(LiveError::Unsupported(why));
    let Some(first) = plan.flows.first() else { return refuse("no flow, nothing to run".into()) };
    if plan.flows.len() > MAX_FLOWS {
        return refuse(format!("{} flows; a live run has at most {MAX_FLOWS}", plan.flows.len()));
    }
    for (number, flow) in (0..).zip(&plan.flows) {
        let congestion = Congestion::of(flow, number, loaded);
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
    if flow.tag.ecn == Ecn::Scalable {
        return refuse("ecn = ect1: the kernel's TCP sends ECT(0); allowed: off, ect0".into());
    }
    if flow.tag.ecn != Ecn::NotCapable && !tcp::accepts_ecn() {
        return refuse(
            "ecn = ect0: this machine's TCP takes no part in ECN; allowed: off (or sudo sysctl net.ipv4.tcp_ecn=2)".into(),
        );
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
    let with_marks = matches!(flow.stack, Stack::Datagram(_)) && flow.tag.ecn != Ecn::NotCapable;
    flow.packets.ack_bytes = least + if with_marks { MARKS_BYTES as u16 } else { 0 };
}

/// The ECN field of the IP packets that carry the data of `flow`.
pub fn ecn_field(flow: &FlowPlan) -> u8 {
    match flow.tag.ecn {
        Ecn::NotCapable => 0,
        Ecn::Scalable => 1,
        Ecn::Capable => 2,
        Ecn::Marked => 3,
    }
}
