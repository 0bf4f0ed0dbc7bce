//! How this binary was built, for `paceline --version`, `paceline doctor` and the manifest of a record.

use pyo3::prelude::*;
use pyo3::types::PyDict;

/// Version, build profile and target of the extension module.
///
/// Keys: `version`, `profile` (`release` or `debug`), `target` (`x86_64-linux`), `controllers` (how many are built in).
#[pyfunction]
pub fn build_info(py: Python<'_>) -> PyResult<Bound<'_, PyDict>> {
    let info = PyDict::new(py);
    info.set_item("version", env!("CARGO_PKG_VERSION"))?;
    info.set_item("profile", if cfg!(debug_assertions) { "debug" } else { "release" })?;
    info.set_item("target", format!("{}-{}", std::env::consts::ARCH, std::env::consts::OS))?;
    info.set_item("controllers", paceline_cc::registry::all().len())?;
    Ok(info)
}
