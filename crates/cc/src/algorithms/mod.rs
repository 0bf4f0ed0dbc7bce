//! One file per algorithm. A new one is a file here, a line in `ALL`, and nothing else.

mod window;

use crate::registry::Spec;

/// Every algorithm, alphabetical within families.
pub(crate) static ALL: &[&Spec] = &[&window::SPEC];
