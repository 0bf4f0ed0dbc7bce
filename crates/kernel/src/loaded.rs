//! What is loaded: found by asking the kernel for every map, for nothing else remembers it.

use libbpf_rs::query::{MapInfoIter, ProgInfoIter, ProgInfoQueryOptions};
use libbpf_rs::{MapCore, MapFlags, MapHandle, MapType};
use paceline_cc::Portable;

use crate::kernel::{Layout, NAME_BYTES, available};
use crate::objects::PREFIX;
use crate::{Error, Result};

/// Of enum bpf_struct_ops_state: sockets can choose it.
const IN_USE: u32 = 1;
/// Of the same: sockets can choose it as long as there is a link to it.
const READY: u32 = 3;
const FLOWS_MAP: &str = "paceline_flows";
const CAPS_MAP: &str = "paceline_caps";
/// Records, and how many did not fit.
pub(crate) const RING_MAP: &str = "paceline_events";
pub(crate) const LOST_MAP: &str = "paceline_lost";

/// A controller that the kernel holds.
#[derive(Clone, Debug)]
pub struct Loaded {
    /// As sockets name it.
    pub name: String,
    /// Its algorithm.
    pub algorithm: Portable,
    /// The kernel's number for it.
    pub id: u32,
    /// Whether sockets can still choose it. Else it goes when the last flow does that uses it.
    pub registered: bool,
    /// Whether it leaves with the process that loaded it ([`crate::hold`]), and not before.
    pub held: bool,
    /// What each program cost the verifier.
    pub programs: Vec<ProgramCost>,
    /// The maps of its flows and caps.
    pub(crate) flows: u32,
    pub(crate) caps: u32,
    /// The maps of its records, if it records.
    pub(crate) recording: Option<(u32, u32)>,
}

/// A program of a controller.
#[derive(Clone, Debug)]
pub struct ProgramCost {
    /// Its name.
    pub name: String,
    /// Instructions that the verifier looked at; one million is its limit.
    pub verified_instructions: u32,
}

impl Loaded {
    /// Whether it was loaded to record.
    pub fn records(&self) -> bool {
        self.recording.is_some()
    }

    pub(crate) fn map(&self, id: u32) -> Result<MapHandle> {
        MapHandle::from_map_id(id)
            .map_err(Error::kernel(format!("reach the flows of {}", self.name)))
    }
}

/// Every controller of ours that the kernel holds, in the order of loading.
///
/// # Errors
/// A machine or user that cannot load any.
pub fn loaded() -> Result<Vec<Loaded>> {
    crate::check()?;
    let layout = Layout::read()?;
    let programs: Vec<_> =
        ProgInfoIter::with_query_opts(ProgInfoQueryOptions::default().include_map_ids(true))
            .collect();
    let known = available();
    let mut found = Vec::new();
    for info in MapInfoIter::default().filter(|info| info.ty == MapType::StructOps) {
        let name = info.name.to_string_lossy().into_owned();
        let Some(algorithm) = name.strip_prefix(PREFIX).and_then(Portable::find) else { continue };
        // It may go at any moment.
        let Ok(map) = MapHandle::from_map_id(info.id) else { continue };
        let Ok(Some(value)) = map.lookup(&0_u32.to_ne_bytes(), MapFlags::ANY) else { continue };
        let ops = &value[layout.ops..];
        let ids: Vec<u32> = layout.callbacks.iter().map(|at| word(ops, *at)).collect();
        let own = programs.iter().filter(|program| ids.contains(&program.id));
        let maps = own.clone().flat_map(|program| program.map_ids.iter().copied());
        let map_called = |wanted: &str| {
            maps.clone()
                .find(|id| MapHandle::from_map_id(*id).is_ok_and(|map| map.name() == wanted))
        };
        let (Some(flows), Some(caps)) = (map_called(FLOWS_MAP), map_called(CAPS_MAP)) else {
            continue;
        };
        let called = &ops[layout.name..layout.name + NAME_BYTES];
        let end = called.iter().position(|byte| *byte == 0).unwrap_or(called.len());
        let name = String::from_utf8_lossy(&called[..end]).into_owned();
        let state = word(&value, layout.state);
        found.push(Loaded {
            registered: state == IN_USE
                || state == READY && known.split_whitespace().any(|known| known == name),
            held: state == READY,
            name,
            algorithm,
            id: info.id,
            programs: own
                .map(|program| ProgramCost {
                    name: program.name.to_string_lossy().into_owned(),
                    verified_instructions: program.verified_insns,
                })
                .collect(),
            flows,
            caps,
            recording: map_called(RING_MAP).zip(map_called(LOST_MAP)),
        });
    }
    Ok(found)
}

/// The 32 bits at `at`.
fn word(bytes: &[u8], at: usize) -> u32 {
    bytes.get(at..at + 4).map_or(0, |four| u32::from_ne_bytes(four.try_into().expect("four bytes")))
}

/// The loaded controllers that `name` means: the one that sockets can choose, or all that go by it.
pub(crate) fn called(name: &str) -> Result<Vec<Loaded>> {
    let all = loaded()?;
    let known: Vec<String> = all.iter().map(|loaded| loaded.name.clone()).collect();
    let found: Vec<Loaded> = all.into_iter().filter(|loaded| loaded.name == name).collect();
    if found.is_empty() {
        let known = if known.is_empty() { "none".to_owned() } else { known.join(", ") };
        return Err(Error::Input(format!(
            "no controller \"{name}\" of Paceline is loaded (loaded: {known})"
        )));
    }
    Ok(found)
}

/// Takes a controller out of the kernel: no socket can choose it any more. Flows that use it go on with it, and with the last of them
/// its programs and maps go.
///
/// # Errors
/// No controller of that name, or one that a run holds.
pub fn unload(name: &str) -> Result<()> {
    let controllers = called(name)?;
    let Some(controller) = controllers.iter().find(|loaded| loaded.registered) else {
        return Err(Error::Input(format!("\"{name}\" is unloaded already; flows still use it")));
    };
    if controller.held {
        return Err(Error::Input(format!("\"{name}\" belongs to a run and goes with it")));
    }
    let map = controller.map(controller.id)?;
    map.delete(&0_u32.to_ne_bytes()).map_err(Error::kernel(format!("unload {name}")))
}
