//! The Python extension module `paceline._native`: the only crate that knows PyO3.
//!
//! In go scenario text, names and Python classes; out come JSON and exceptions. Tables cross the border as Parquet files,
//! never as Python objects, so the package above reads the same record whoever wrote it. `python/paceline/_native.pyi`
//! states every signature and is checked against this binary by `make lint`.

mod build_info;
mod contest;
mod controllers;
mod drive;
mod errors;
mod events;
mod kernel;
mod link;
mod py_controller;
mod recorder;
mod run;
mod trace;

use pyo3::prelude::*;

/// Every name the module exports.
#[pymodule]
mod _native {
    #[pymodule_export]
    use crate::build_info::build_info;
    #[pymodule_export]
    use crate::contest::{contest_receive, contest_send};
    #[pymodule_export]
    use crate::controllers::controllers;
    #[pymodule_export]
    use crate::drive::drive_controller;
    #[pymodule_export]
    use crate::errors::{InputError, PacelineError, RunError};
    #[pymodule_export]
    use crate::events::{PyAck, PyLoss, PyPathInfo, PyResume, PySent, PyTimeout, PyUndo};
    #[pymodule_export]
    use crate::kernel::{
        kernel_algorithms, kernel_cap, kernel_flows, kernel_list, kernel_load, kernel_missing,
        kernel_record, kernel_replay, kernel_unload,
    };
    #[pymodule_export]
    use crate::link::run_link;
    #[pymodule_export]
    use crate::py_controller::ControllerCore;
    #[pymodule_export]
    use crate::recorder::{trace_record, trace_serve};
    #[pymodule_export]
    use crate::run::{check_scenario, export_qlog, run, scenario_schema, vm_kernel, vm_missing};
    #[pymodule_export]
    use crate::trace::{trace_convert, trace_info, trace_synth};
}
