//! Into the kernel.

use std::sync::Mutex;

use libbpf_rs::{Link, MapCore, ObjectBuilder, OpenObject, PrintLevel, libbpf_sys};
use paceline_cc::{Params, Portable};

use crate::kernel::{Layout, NAME_BYTES, available};
use crate::loaded::{self, Loaded};
use crate::objects::PREFIX;
use crate::{Error, Result, check, objects};

/// What to load.
#[derive(Clone, Debug)]
pub struct Request {
    /// Which algorithm.
    pub algorithm: Portable,
    /// Its parameters.
    pub params: Params,
    /// The name for `TCP_CONGESTION`; `pl_` and the algorithm's if none.
    pub name: Option<String>,
    /// Whether what its flows hear and answer goes into a buffer, for [`crate::record`]; if not, there is none.
    pub record: bool,
}

/// Of the kernel's buffer for records, bytes: a power of two. Some 70,000 ACKs.
const RING_BYTES: u32 = 1 << 24;

impl Request {
    fn name(&self) -> Result<String> {
        let name =
            self.name.clone().unwrap_or_else(|| format!("{PREFIX}{}", self.algorithm.spec().name));
        let plain = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-' || c == '.';
        if name.is_empty() || name.len() >= NAME_BYTES || !name.chars().all(plain) {
            return Err(Error::Input(format!(
                "\"{name}\" cannot be a congestion control's name: 1 to {} letters, digits, `_`, `-` and `.`",
                NAME_BYTES - 1
            )));
        }
        Ok(name)
    }
}

/// Loads a controller: from then on sockets can choose it by name. No default is changed.
///
/// # Errors
/// A name that is taken or cannot be one, a machine that cannot, a program that the verifier refuses.
pub fn load(request: &Request) -> Result<Loaded> {
    let name = request.name()?;
    let mut registration = register(request, &name, &Layout::read()?, Until::Unload)?;
    // The one step that leaves something behind: the kernel then holds programs and maps until they are unloaded.
    registration.disconnect();
    let found =
        loaded::loaded()?.into_iter().find(|loaded| loaded.name == name && loaded.registered);
    found.ok_or_else(|| Error::Unavailable(format!("\"{name}\" was loaded, and is gone already")))
}

/// A controller in the kernel that is unloaded as this is dropped.
pub struct Held {
    name: String,
    /// `None` where the kernel has no links.
    link: Option<Link>,
}

impl Drop for Held {
    fn drop(&mut self) {
        if self.link.take().is_none() {
            // It can only be gone already.
            let _ = loaded::unload(&self.name);
        }
    }
}

/// Loads a controller for as long as [`Held`] is kept. Since Linux 6.4 the kernel takes the name away also if this process is killed.
///
/// # Errors
/// As [`load`].
pub fn hold(request: &Request) -> Result<Held> {
    let (name, layout) = (request.name()?, Layout::read()?);
    if layout.has_links {
        let link = register(request, &name, &layout, Until::Drop)?;
        return Ok(Held { name, link: Some(link) });
    }
    register(request, &name, &layout, Until::Unload)?.disconnect();
    Ok(Held { name, link: None })
}

/// What ends a registration.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Until {
    Unload,
    /// The end of the link.
    Drop,
}

fn register(request: &Request, name: &str, layout: &Layout, until: Until) -> Result<Link> {
    let algorithm = request.algorithm.spec().name;
    let bytes = objects::find(algorithm)?;
    check()?;
    if available().split_whitespace().any(|known| known == name) {
        return Err(Error::Input(format!(
            "this kernel has a congestion control \"{name}\" already"
        )));
    }
    let log = Log::begin();
    let refused =
        |reason| Error::Kernel { what: format!("load {algorithm}"), reason, log: log.tail() };
    let mut object = ObjectBuilder::default();
    let mut object =
        object.name(algorithm).and_then(|builder| builder.open_memory(bytes)).map_err(refused)?;
    write_settings(&mut object, request, name, layout)?;
    let ops_name = format!("{PREFIX}{algorithm}");
    if until == Until::Drop {
        for mut map in object.maps_mut().filter(|map| map.name() == ops_name.as_str()) {
            map.set_map_flags(libbpf_sys::BPF_F_LINK).map_err(refused)?;
        }
    }
    let mut object = object.load().map_err(refused)?;
    let mut maps = object.maps_mut();
    let mut ops = maps.find(|map| map.name() == ops_name.as_str()).ok_or_else(|| {
        Error::Unavailable(format!("the object of {algorithm} has no {ops_name}"))
    })?;
    ops.attach_struct_ops().map_err(refused)
}

fn write_settings(
    object: &mut OpenObject,
    request: &Request,
    name: &str,
    layout: &Layout,
) -> Result<()> {
    let ops_name = format!("{PREFIX}{}", request.algorithm.spec().name);
    let algorithm = request.algorithm.spec().name.as_bytes();
    let mut settings = layout.sample_argument.to_ne_bytes().to_vec();
    settings.extend(u64::from(request.record).to_ne_bytes());
    settings.extend(algorithm);
    settings.resize(settings.len() + NAME_BYTES - algorithm.len(), 0);
    settings.extend(
        request.algorithm.to_integers(&request.params).iter().flat_map(|word| word.to_ne_bytes()),
    );
    let (mut has_settings, mut has_name) = (false, false);
    for mut map in object.maps_mut() {
        let map_name = map.name().to_string_lossy().into_owned();
        if map_name == loaded::RING_MAP && request.record {
            map.set_max_entries(RING_BYTES).map_err(Error::kernel("size the buffer"))?;
        } else if [loaded::RING_MAP, loaded::LOST_MAP].contains(&map_name.as_str()) {
            map.set_autocreate(request.record).map_err(Error::kernel("set up the buffer"))?;
        }
        let Some(value) = map.initial_value_mut() else { continue };
        if map_name.ends_with(".rodata") && value.len() == settings.len() {
            value.copy_from_slice(&settings);
            has_settings = true;
        } else if map_name == ops_name && value.len() >= NAME_BYTES {
            // The name is the last member of the struct in bpf/include/kernel.h.
            let start = value.len() - NAME_BYTES;
            value[start..].fill(0);
            value[start..start + name.len()].copy_from_slice(name.as_bytes());
            has_name = true;
        }
    }
    if has_settings && has_name {
        return Ok(());
    }
    Err(Error::Unavailable(format!("the object of {ops_name} does not match its parameter table")))
}

static LINES: Mutex<Vec<String>> = Mutex::new(Vec::new());

/// What libbpf says while this lives, which it tells to the process as a whole.
pub(crate) struct Log(Option<(PrintLevel, libbpf_rs::PrintCallback)>);

impl Log {
    pub(crate) fn begin() -> Self {
        LINES.lock().expect("no holder panics").clear();
        Self(libbpf_rs::set_print(Some((PrintLevel::Warn, |_, line| {
            LINES.lock().expect("no holder panics").push(line.trim_end().to_owned());
        }))))
    }

    /// The last lines.
    pub(crate) fn tail(&self) -> String {
        let lines = LINES.lock().expect("no holder panics").join("\n");
        let lines: Vec<&str> = lines.lines().collect();
        lines[lines.len().saturating_sub(20)..].join("\n")
    }
}

impl Drop for Log {
    fn drop(&mut self) {
        libbpf_rs::set_print(self.0.take());
    }
}
