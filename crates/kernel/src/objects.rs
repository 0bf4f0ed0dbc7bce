//! The compiled BPF objects, as the build script embedded them.

use crate::{Error, Result};

include!(concat!(env!("OUT_DIR"), "/objects.rs"));

/// Writes flows out; every other object is an algorithm.
pub(crate) const FLOWS: &str = "flows";
/// Begins the names of our controllers, which so cannot clash with the kernel's own.
pub(crate) const PREFIX: &str = "pl_";

/// The object `NAME.bpf.c` was compiled to.
pub(crate) fn find(name: &str) -> Result<&'static [u8]> {
    if let Some(reason) = MISSING {
        return Err(Error::Unavailable(format!("no controllers for the kernel: {reason}")));
    }
    let found = OBJECTS.iter().find(|(known, _)| *known == name);
    found.map(|(_, bytes)| *bytes).ok_or_else(|| {
        let known: Vec<&str> = algorithms().collect();
        Error::Input(format!(
            "no controller `{name}` for the kernel (there are: {})",
            known.join(", ")
        ))
    })
}

/// The object of algorithm `name` without a host, for [`crate::replay`].
pub(crate) fn find_replay(name: &str) -> Result<&'static [u8]> {
    find(name)?;
    let found = REPLAYS.iter().find(|(known, _)| *known == name);
    found
        .map(|(_, bytes)| *bytes)
        .ok_or_else(|| Error::Input(format!("`{name}` cannot be replayed")))
}

/// The algorithms that can be loaded.
pub fn algorithms() -> impl Iterator<Item = &'static str> {
    OBJECTS.iter().map(|(name, _)| *name).filter(|name| *name != FLOWS)
}
