//! The exceptions of `paceline`. The command line turns them into its exit status.

use pyo3::create_exception;
use pyo3::exceptions::PyException;
use pyo3::prelude::*;

create_exception!(
    paceline._native,
    PacelineError,
    PyException,
    "Whatever Paceline raises on purpose. Catch this to catch both kinds."
);
create_exception!(
    paceline._native,
    InputError,
    PacelineError,
    "The input cannot be used: a scenario, trace, parameter or path. The message says where and what is allowed. \
     Exit status 2."
);
create_exception!(
    paceline._native,
    RunError,
    PacelineError,
    "The run failed although its input was valid. Exit status 1."
);

/// An [`InputError`] with this message.
pub fn input_error(message: impl ToString) -> PyErr {
    InputError::new_err(message.to_string())
}

/// A [`RunError`] with this message.
pub fn run_error(message: impl ToString) -> PyErr {
    RunError::new_err(message.to_string())
}
