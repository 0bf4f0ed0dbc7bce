//! A scenario carried out in a world: plan, run, and what the record needs of both.

use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::time::{Instant, SystemTime};

use paceline_live::traffic::{Seen, SeenFlow};
use paceline_live::{Finished, Health, LiveError};
use paceline_net::{PS_PER_S, Picos};
use paceline_sim::{FlowPlan, Outcome, PacketSizes, PlanError, Stack};

use crate::record::checks::{self, Check};
use crate::record::{FlowInfo, Host, Provenance, RunInfo, controller_params};
use crate::scenario::{Scenario, ScenarioError};
use crate::{congestion, vm};

/// A finished run, ready to be recorded.
#[derive(Clone, Debug)]
pub struct Run {
    /// What was asked for.
    pub info: RunInfo,
    /// What came of it.
    pub outcome: Outcome,
    /// Where, when and by which command.
    pub provenance: Provenance,
}

/// A run that did not come about.
#[derive(Debug, thiserror::Error)]
pub enum WorldError {
    /// The scenario cannot be resolved with this seed.
    #[error(transparent)]
    Scenario(#[from] ScenarioError),
    /// The simulator refuses the plan.
    #[error(transparent)]
    Plan(#[from] PlanError),
    /// It cannot be carried out over real sockets, or not on this machine.
    #[error(transparent)]
    Live(#[from] LiveError),
    /// A controller cannot be loaded into the kernel.
    #[error(transparent)]
    Kernel(#[from] paceline_kernel::Error),
    /// There is no guest, or it failed.
    #[error(transparent)]
    Vm(#[from] vm::VmError),
    /// The watch broke the run off.
    #[error("the run was interrupted")]
    Interrupted,
}

/// Carries `scenario` out in the simulator, with `seed` or the scenario's own.
///
/// `adapt` sees each flow's plan before the run and may replace its controller (controllers written in Python come in here).
/// `watch` is shown the simulated time, ps, now and then, and may break the run off.
///
/// # Errors
/// See [`WorldError`].
pub fn simulate(
    scenario: &Scenario,
    seed: Option<u64>,
    command_line: Vec<String>,
    adapt: &mut dyn FnMut(&mut FlowPlan),
    watch: &mut dyn FnMut(Picos) -> ControlFlow<()>,
) -> Result<Run, WorldError> {
    let started = SystemTime::now();
    let clock = Instant::now();
    let seed = seed.unwrap_or(scenario.seed());
    let mut plan = scenario.plan(Some(seed))?;
    plan.flows.iter_mut().for_each(adapt);
    let cpu = thread_cpu_s();
    let outcome = paceline_sim::run_watched(plan, watch)?;
    let mut outcome = outcome.ok_or(WorldError::Interrupted)?;
    outcome.engine.cpu_s = thread_cpu_s() - cpu;
    let provenance = provenance(command_line, started, clock, Vec::new());
    Ok(Run { info: info(scenario, seed, "sim"), outcome, provenance })
}

/// Carries `scenario` out over real sockets and the link emulator, in real time; as [`simulate`] otherwise.
///
/// # Errors
/// See [`WorldError`].
pub fn carry_out(
    scenario: &Scenario,
    seed: Option<u64>,
    command_line: Vec<String>,
    options: paceline_live::Options,
    adapt: &mut dyn FnMut(&mut FlowPlan),
    watch: &mut (dyn FnMut(Picos) -> ControlFlow<()> + Send),
) -> Result<Run, WorldError> {
    let started = SystemTime::now();
    let clock = Instant::now();
    let seed = seed.unwrap_or(scenario.seed());
    let finished = over_sockets(scenario, seed, options, adapt, watch)?;
    Ok(carried_out(
        scenario,
        seed,
        "live",
        finished,
        provenance(command_line, started, clock, Vec::new()),
    ))
}

/// Carries `scenario` out in a guest under virtual time; as [`simulate`] otherwise, but for `adapt`.
///
/// # Errors
/// See [`WorldError`].
pub fn virtualise(
    scenario: &Scenario,
    seed: Option<u64>,
    command_line: Vec<String>,
    options: &vm::Options,
    watch: &mut dyn FnMut(Picos) -> ControlFlow<()>,
) -> Result<Run, WorldError> {
    let started = SystemTime::now();
    let clock = Instant::now();
    let seed = seed.unwrap_or(scenario.seed());
    let guest = vm::run(scenario, seed, options, watch)?.ok_or(WorldError::Interrupted)?;
    let provenance = provenance(command_line, started, clock, Vec::new());
    let provenance = Provenance { host: guest.host, ..provenance };
    Ok(carried_out(scenario, seed, "vm", guest.finished, provenance))
}

/// World `live` without a record.
pub(crate) fn over_sockets(
    scenario: &Scenario,
    seed: u64,
    options: paceline_live::Options,
    adapt: &mut dyn FnMut(&mut FlowPlan),
    watch: &mut (dyn FnMut(Picos) -> ControlFlow<()> + Send),
) -> Result<Finished, WorldError> {
    let mut plan = scenario.plan(Some(seed))?;
    plan.flows.iter_mut().for_each(adapt);
    let loaded = congestion::load(scenario)?;
    paceline_live::run_with(plan, options, loaded, watch)?.ok_or(WorldError::Interrupted)
}

fn carried_out(
    scenario: &Scenario,
    seed: u64,
    world: &str,
    finished: Finished,
    mut provenance: Provenance,
) -> Run {
    let mut info = info(scenario, seed, world);
    let flows = info.flows.iter_mut().zip(scenario.flows()).zip(finished.packets);
    for ((flow, asked), packets) in flows {
        flow.packets = packets;
        if flow.stack == "tcp" && !congestion::is_loaded(asked) {
            // They are those of our controller, and this was the kernel's.
            flow.controller_params.clear();
        }
    }
    provenance.checks.push(checks::machine_kept_up(&finished.health));
    Run { info, outcome: finished.outcome, provenance }
}

/// What is recorded of a program that ran behind an emulated link: its traffic in each direction, as [`Seen`] has it.
///
/// `title` names the run, `text` says how the link was made. `data_bytes` is what a full packet counts on the link.
pub fn watched(
    (title, text): (String, String),
    seed: u64,
    data_bytes: u16,
    seen: Seen,
    health: &Health,
    (command_line, started): (Vec<String>, SystemTime),
) -> Run {
    let flow = |flow: SeenFlow| FlowInfo {
        name: flow.name,
        controller: "unknown".into(),
        controller_params: BTreeMap::new(),
        stack: flow.stack.into(),
        packets: PacketSizes {
            data_bytes,
            header_bytes: flow.header_bytes,
            ack_bytes: flow.header_bytes,
        },
    };
    let info = RunInfo {
        scenario: title,
        scenario_path: None,
        scenario_text: text,
        world: "link".into(),
        seed,
        duration_s: seen.duration_s,
        warmup_s: 0.0,
        flows: seen.flows.into_iter().map(flow).collect(),
    };
    let wall_s = started.elapsed().unwrap_or_default().as_secs_f64();
    let checks = vec![checks::machine_kept_up(health)];
    let host = Host::this_machine();
    let provenance = Provenance { command_line, started, wall_s, host, checks };
    Run { info, outcome: seen.outcome, provenance }
}

fn provenance(
    command_line: Vec<String>,
    started: SystemTime,
    clock: Instant,
    checks: Vec<Check>,
) -> Provenance {
    let wall_s = clock.elapsed().as_secs_f64();
    Provenance { command_line, started, wall_s, host: Host::this_machine(), checks }
}

fn info(scenario: &Scenario, seed: u64, world: &str) -> RunInfo {
    let seconds = |time: Picos| time as f64 / PS_PER_S as f64;
    let flows = scenario.flows().iter().map(|flow| FlowInfo {
        name: flow.name.clone(),
        controller: flow.controller.label(),
        controller_params: controller_params(flow.controller.params()),
        stack: stack_name(flow.stack).into(),
        packets: flow.packets,
    });
    let path = std::path::PathBuf::from(scenario.file_name());
    RunInfo {
        scenario: scenario.title().into(),
        scenario_path: path.is_file().then_some(path),
        scenario_text: scenario.effective_text(),
        world: world.into(),
        seed,
        duration_s: seconds(scenario.duration_ps()),
        warmup_s: seconds(scenario.warmup_ps()),
        flows: flows.collect(),
    }
}

/// The stack's name in scenarios and records.
pub fn stack_name(stack: Stack) -> &'static str {
    match stack {
        Stack::Tcp(_) => "tcp",
        Stack::Datagram(_) => "datagram",
    }
}

/// CPU time of this thread, s.
fn thread_cpu_s() -> f64 {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    time.tv_sec as f64 + time.tv_nsec as f64 * 1e-9
}
