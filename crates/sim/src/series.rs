//! Time series while they grow, and the units they are in.

use paceline_net::{PS_PER_S, Picos};

use crate::outcome::{Column, Series};

/// Rows of a [`Series`] whose columns are named at its end: each a time in s and a value per column, one after the other, so that
/// a sample is one append.
#[derive(Debug, Default)]
pub(crate) struct Rows(Vec<f64>);

impl Rows {
    /// Appends a row and returns its `columns` values to be filled in, NaN so far. Every row must have as many.
    pub(crate) fn push(&mut self, time: Picos, columns: usize) -> &mut [f64] {
        self.0.push(seconds(time));
        let filled = self.0.len();
        self.0.resize(filled + columns, f64::NAN);
        &mut self.0[filled..]
    }

    /// The finished table; `columns` are names and units.
    pub(crate) fn into_series(self, columns: &[(&'static str, &'static str)]) -> Series {
        let nth = |n: usize| self.0.iter().skip(n).step_by(columns.len() + 1).copied().collect();
        let named = columns.iter().enumerate();
        Series {
            time_s: nth(0),
            columns: named
                .map(|(n, &(name, unit))| Column { name, unit, values: nth(n + 1) })
                .collect(),
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_become_columns() {
        let columns = [("a", "ms"), ("b", "bytes")];
        let mut rows = Rows::default();
        rows.push(PS_PER_S, 2).copy_from_slice(&[1.0, 2.0]);
        rows.push(2 * PS_PER_S, 2)[0] = 3.0;
        let series = rows.into_series(&columns);
        assert_eq!(series.time_s, [1.0, 2.0]);
        assert_eq!((series.columns[0].name, series.columns[1].unit), ("a", "bytes"));
        assert_eq!(series.columns[0].values, [1.0, 3.0]);
        assert!(series.columns[1].values[0] == 2.0 && series.columns[1].values[1].is_nan());
        let empty = Rows::default().into_series(&columns);
        assert_eq!((empty.time_s.len(), empty.columns.len()), (0, 2));
    }
}
