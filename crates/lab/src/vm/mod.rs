//! World `vm`: a scenario on a stock kernel under virtual time.
//!
//! The guest is a virtual machine whose clock counts instructions, and what it runs is world `live`: the same emulator, sockets and meters,
//! in the program `paceline-guest`. A busy host makes a run longer, not different.

mod channel;
pub mod guest;
mod initrd;
mod kernel;
mod machine;

use std::fs;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::process::Command;

use paceline_live::Finished;
use paceline_net::Picos;
use paceline_sim::Stack;

use crate::record::Host;
use crate::scenario::Scenario;
use channel::{Answer, Job};
use initrd::Archive;
use kernel::Kernel;
pub use machine::SHIFT;

/// A guest that did not do what it was to.
#[derive(Debug, thiserror::Error)]
pub enum VmError {
    /// This machine lacks something.
    #[error("{0}")]
    Unavailable(String),
    /// The scenario asks for what a guest does not have.
    #[error("{0}")]
    Unsupported(String),
    /// The run failed.
    #[error("world vm: {0}")]
    Failed(String),
}

/// What runs in a guest, and what carries it.
#[derive(Clone, Debug)]
pub struct Options {
    /// The program `paceline-guest` of this version.
    pub guest: PathBuf,
}

/// A run that came to its end, and the machine it ran on.
pub(crate) struct Guest {
    pub(crate) finished: Finished,
    pub(crate) host: Host,
}

/// What this machine lacks to run a guest with the kernel that is there or can be fetched; `None` if nothing.
pub fn missing() -> Option<String> {
    let kernel = || machine::check().and_then(|_| Kernel::find());
    kernel().err().map(|error| error.to_string())
}

/// The release of the kernel that guests boot; `None` if none is there yet.
///
/// # Errors
/// The folder that was named has none.
pub fn kernel_release() -> Result<Option<String>, VmError> {
    Ok(Kernel::there()?.map(|kernel| kernel.release))
}

/// Carries `scenario` out in a guest; `None` when `watch` broke it off.
pub(crate) fn run(
    scenario: &Scenario,
    seed: u64,
    options: &Options,
    watch: &mut dyn FnMut(Picos) -> ControlFlow<()>,
) -> Result<Option<Guest>, VmError> {
    let flows = scenario.flows();
    if let Some(flow) = flows.iter().find(|flow| {
        paceline_cc::registry::find(flow.controller.spec().name)
            .is_none_or(|known| !std::ptr::eq(known, flow.controller.spec()))
    }) {
        return Err(VmError::Unsupported(format!(
            "flow `{}`: controller = {}: a guest has no Python; world vm runs controllers of the registry",
            flow.name,
            flow.controller.label()
        )));
    }
    let emulator = machine::check()?;
    let kernel = Kernel::find()?;
    let tcp = flows.iter().filter(|flow| matches!(flow.stack, Stack::Tcp(_)));
    let names: Vec<&str> =
        tcp.filter_map(|flow| paceline_live::kernel_name(&flow.controller.label())).collect();
    let archive = root(scenario, seed, options, &kernel.modules_for(names.into_iter()))?;
    let image = kernel.elf()?;
    let console = machine::Machine { kernel: &image, root: &archive, seed };
    match console.run(watch)? {
        None => Ok(None),
        Some(Answer::Finished(finished)) => {
            let host = Host {
                os: Some("linux".into()),
                kernel: Some(kernel.release),
                arch: Some("x86_64".into()),
                cpu_model: Some(format!("{emulator}, 2^{SHIFT} ns per instruction")),
                cores: Some(1),
            };
            Ok(Some(Guest { finished: *finished, host }))
        }
        Some(Answer::Unsupported(why)) => Err(VmError::Unsupported(why)),
        Some(Answer::Failed(why)) => Err(VmError::Failed(why)),
    }
}

/// The guest's root: the program with its libraries, the modules, the scenario with its traces.
fn root(
    scenario: &Scenario,
    seed: u64,
    options: &Options,
    modules: &[PathBuf],
) -> Result<Vec<u8>, VmError> {
    let read = |path: &Path| {
        fs::read(path).map_err(|error| VmError::Unavailable(format!("{}: {error}", path.display())))
    };
    let mut archive = Archive::default();
    for folder in ["proc", "sys", "dev", "tmp"] {
        archive.folder(folder);
    }
    archive.program("init", &read(&options.guest)?);
    for library in libraries(&options.guest)? {
        archive.program(&library.to_string_lossy(), &read(&library)?);
    }
    let mut names = Vec::new();
    for module in modules {
        let name = module.file_name().unwrap_or_default().to_string_lossy().into_owned();
        archive.file(&format!("{}/{name}", guest::MODULES), &read(module)?);
        names.push(name);
    }
    archive.folder(guest::SCENARIO.trim_start_matches('/'));
    let (text, traces) = scenario.with_traces_beside_it();
    for (name, path) in traces {
        archive.file(&format!("{}/{name}", guest::SCENARIO), &read(&path)?);
    }
    let job = Job { scenario: text, seed, modules: names };
    let job = postcard::to_stdvec(&job).map_err(|error| VmError::Failed(error.to_string()))?;
    archive.file(guest::JOB, &job);
    Ok(archive.finish())
}

/// The libraries that `program` is linked to, the loader among them.
fn libraries(program: &Path) -> Result<Vec<PathBuf>, VmError> {
    let fail = |why: String| VmError::Unavailable(format!("ldd {}: {why}", program.display()));
    let output = Command::new("ldd").arg(program).output().map_err(|e| fail(e.to_string()))?;
    let text = String::from_utf8_lossy(&output.stdout);
    if !output.status.success() {
        // A program without libraries is fine.
        let said = format!("{text}{}", String::from_utf8_lossy(&output.stderr));
        return if said.contains("not a dynamic") { Ok(Vec::new()) } else { Err(fail(said)) };
    }
    let paths = text.split_whitespace().filter(|word| word.starts_with('/'));
    Ok(paths.map(PathBuf::from).collect())
}
