//! Filling a [`Series`], and the units it is in.

use paceline_net::{PS_PER_S, Picos};

use crate::outcome::{Column, Series};

impl Series {
    pub(crate) fn new(columns: &[(&'static str, &'static str)]) -> Self {
        let column = |&(name, unit)| Column { name, unit, values: Vec::new() };
        Self { time_s: Vec::new(), columns: columns.iter().map(column).collect() }
    }

    /// Appends one value per column.
    pub(crate) fn push(&mut self, time: Picos, values: &[f64]) {
        self.time_s.push(seconds(time));
        for (column, value) in self.columns.iter_mut().zip(values) {
            column.values.push(*value);
        }
    }
}

pub(crate) fn seconds(time: Picos) -> f64 {
    time as f64 / PS_PER_S as f64
}

/// `bytes` over a time, bit/s.
pub(crate) fn bps(bytes: u64, over: Picos) -> f64 {
    bytes as f64 * 8.0 / seconds(over)
}
