//! Plans for tests, and the law every run must keep: packets are conserved.
#![allow(dead_code)] // each test file uses its part

pub mod draft;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use paceline_cc::{Controller, Needs, PathInfo, registry};
use paceline_net::queue::{
    CakeSpec, ClassSpec, CodelSpec, DualPi2Spec, FqCodelSpec, FqSpec, HtbSpec, PieSpec, QueueSpec,
    RedSpec, Tag, TokenBucketSpec,
};
use paceline_net::{Buffer, Capacity, LinkSpec, PS_PER_S, Picos, Trace};
use paceline_sim::{
    ControllerFactory, FlowPlan, LossNotice, NamedLink, Outcome, PacketSizes, Plan, Stack,
    TcpOptions, run,
};

pub const MS: Picos = PS_PER_S / 1000;

/// A queue of each kind, quick to act, so that short runs see it drop and mark.
pub fn queues() -> Vec<QueueSpec> {
    let codel = CodelSpec { target_ps: MS, interval_ps: 10 * MS, ecn: true };
    let class = |rate_bps| ClassSpec { rate_bps, ceil_bps: 100e6, child: QueueSpec::DropTail };
    vec![
        QueueSpec::DropHead,
        QueueSpec::Step { packets: 5 },
        QueueSpec::Red(RedSpec { ecn: true, ..RedSpec::default() }),
        QueueSpec::Codel(codel),
        QueueSpec::Pie(PieSpec { target_ps: MS, max_burst_ps: 0, ..PieSpec::default() }),
        QueueSpec::Fq(FqSpec { flow_rate_bps: Some(3e6), ..FqSpec::default() }),
        QueueSpec::FqCodel(FqCodelSpec { flows: 4, codel, ..FqCodelSpec::default() }),
        QueueSpec::Cake(CakeSpec { tins: 2, target_ps: MS, ..CakeSpec::default() }),
        QueueSpec::DualPi2(DualPi2Spec { target_ps: MS, update_ps: MS, ..DualPi2Spec::default() }),
        QueueSpec::TokenBucket(TokenBucketSpec {
            rate_bps: 5e6,
            burst_bytes: 6000,
            child: Box::new(QueueSpec::Codel(codel)),
        }),
        QueueSpec::Htb(HtbSpec {
            rate_bps: 100e6,
            burst_bytes: 3028,
            classes: vec![class(2e6), class(5e6)],
        }),
    ]
}

/// A pure delay.
pub fn delay(ms: f64) -> LinkSpec {
    LinkSpec { delay_ps: (ms * MS as f64) as Picos, ..LinkSpec::default() }
}

/// A link of `bps` with a one-way delay and a buffer in packets.
pub fn bottleneck(bps: f64, delay_ms: f64, packets: u64) -> LinkSpec {
    LinkSpec {
        capacity: Capacity::Constant(bps),
        buffer: Buffer { packets: Some(packets), ..Buffer::default() },
        ..delay(delay_ms)
    }
}

/// A trace-driven link without propagation delay.
pub fn traced(trace: Trace) -> LinkSpec {
    LinkSpec { capacity: Capacity::Trace { trace: Arc::new(trace), once: false }, ..delay(0.0) }
}

/// A registered controller, with parameters.
pub fn registered(name: &str, profile: Option<&str>, values: &[(&str, f64)]) -> ControllerFactory {
    let spec = registry::find(name).unwrap_or_else(|| panic!("no controller {name}"));
    let mut params = spec.params(profile).expect("profile");
    for (key, value) in values {
        params.set(key, *value).expect("parameter");
    }
    Box::new(move |path: &PathInfo| (spec.build)(&params, path))
}

/// An endless TCP flow over link 0 and back over link 1.
pub fn tcp(controller: ControllerFactory) -> FlowPlan {
    FlowPlan {
        name: "flow".into(),
        controller_name: "test".into(),
        needs: Needs::NONE,
        fields: Vec::new(),
        controller,
        stack: Stack::Tcp(TcpOptions::default()),
        forward: vec![0],
        reverse: vec![1],
        start_ps: 0,
        stop_ps: None,
        size_bytes: None,
        cap_bytes_per_s: None,
        packets: PacketSizes { data_bytes: 1500, header_bytes: 52, ack_bytes: 52 },
        tag: Tag::default(),
    }
}

/// A flow of a registered controller, observed.
pub fn flow(name: &str, forward: &[u32], reverse: &[u32]) -> FlowPlan {
    let spec = registry::find(name).expect("a built-in controller");
    FlowPlan {
        needs: spec.needs,
        fields: spec.fields.to_vec(),
        forward: forward.to_vec(),
        reverse: reverse.to_vec(),
        ..tcp(registered(name, None, &[]))
    }
}

/// A factory for a controller made by the test itself.
pub fn made<C: Controller + 'static>(
    make: impl FnOnce(&PathInfo) -> C + Send + 'static,
) -> ControllerFactory {
    Box::new(move |path| Box::new(make(path)))
}

/// Those of the datagram flows that `wants` names are told of losses at the drop, where that can be: their first link alone may
/// drop, and is not asked for telemetry.
pub fn tell_at_drop(
    links: &[LinkSpec],
    mut flows: Vec<FlowPlan>,
    wants: impl Fn(usize) -> bool,
) -> Vec<FlowPlan> {
    let asking = flows.iter().filter(|flow| flow.needs.contains(Needs::INT));
    let asked: Vec<u32> = asking.flat_map(|flow| flow.forward.clone()).collect();
    for (number, flow) in flows.iter_mut().enumerate() {
        let (first, rest) = flow.forward.split_first().expect("a path has a link");
        let seen = links[*first as usize].queue == QueueSpec::DropTail
            && !asked.contains(first)
            && !rest.iter().any(|link| links[*link as usize].may_drop());
        if let Stack::Datagram(options) = &mut flow.stack
            && seen
            && wants(number)
        {
            options.tell_losses = LossNotice::AtDrop;
        }
    }
    flows
}

pub fn plan(links: Vec<LinkSpec>, flows: Vec<FlowPlan>, seconds: f64, warmup: f64) -> Plan {
    let links = links.into_iter().enumerate();
    Plan {
        links: links
            .map(|(i, spec)| NamedLink { name: format!("link-{i}"), spec, recorded: true })
            .collect(),
        flows,
        duration_ps: (seconds * PS_PER_S as f64) as Picos,
        warmup_ps: (warmup * PS_PER_S as f64) as Picos,
        sample_ps: 10 * MS,
        seed: 1,
    }
}

/// Runs and checks that no packet came from or went nowhere.
pub fn run_checked(plan: Plan) -> Outcome {
    let outcome = run(plan).expect("a valid plan");
    for flow in &outcome.flows {
        let accounted = flow.delivered_packets + flow.lost_packets + flow.in_flight_packets;
        assert_eq!(flow.sent_packets, accounted, "packets conserved: {flow:?}");
    }
    outcome
}

#[track_caller]
pub fn assert_near(got: f64, expected: f64, tolerance: f64) {
    let error = (got / expected - 1.0).abs();
    assert!(error <= tolerance, "{got} is {:.2} % off {expected}", error * 100.0);
}

/// Folder of the cellular traces, which are not part of the repository: `PACELINE_TRACES`, or `shared/traces` in a folder above.
pub fn traces_folder() -> Option<PathBuf> {
    if let Some(folder) = std::env::var_os("PACELINE_TRACES") {
        return Some(folder.into());
    }
    let above = Path::new(env!("CARGO_MANIFEST_DIR")).ancestors();
    above.map(|folder| folder.join("shared/traces")).find(|folder| folder.is_dir())
}
