//! Time series while they grow, and the units they are in.

use std::sync::Arc;

use paceline_net::{PS_PER_S, Picos};

use crate::outcome::Series;
use crate::prefetch::prefetch_bytes;

/// Rows of a [`Series`] whose columns are named at its end: each a time in s and a value per column, one after the other, so that
/// a sample is one append.
#[derive(Debug, Default)]
pub(crate) struct Rows(Vec<f64>);

/// Names and units of columns.
pub(crate) type Names = Arc<[(&'static str, &'static str)]>;

/// A table that can only come to have so many rows has room for all from the first one on.
const FEW_ROWS: u64 = 32;
/// Room that another one has at first.
const FIRST_ROWS: usize = 4;

impl Rows {
    /// Appends a row and returns its `columns` values to be filled in, NaN so far. Every row must have as many, and after this one
    /// there will be at most `to_come`.
    pub(crate) fn push(&mut self, time: Picos, columns: usize, to_come: u64) -> &mut [f64] {
        let (filled, width) = (self.0.len(), columns + 1);
        if self.0.capacity() - filled < width {
            self.grow(width, to_come);
        }
        self.0.push(seconds(time));
        self.0.resize(filled + width, f64::NAN);
        &mut self.0[filled + 1..]
    }

    #[cold]
    #[inline(never)]
    fn grow(&mut self, width: usize, to_come: u64) {
        let rows = if to_come < FEW_ROWS {
            to_come as usize + 1
        } else {
            (self.0.len() / width).max(FIRST_ROWS)
        };
        self.0.reserve_exact(rows * width);
    }

    /// There will be no more rows.
    pub(crate) fn shrink(&mut self) {
        self.0.shrink_to_fit();
    }

    /// The values of each row.
    pub(crate) fn iter_mut(&mut self, columns: usize) -> impl Iterator<Item = &mut [f64]> {
        self.0.chunks_exact_mut(columns + 1).map(|row| &mut row[1..])
    }

    /// Fetches where the next row of `columns` values will be.
    #[inline]
    pub(crate) fn prefetch(&self, columns: usize) {
        prefetch_bytes(self.0.as_ptr().wrapping_add(self.0.len()).cast(), (columns + 1) * 8);
    }

    /// The finished table. `scratch` is overwritten.
    pub(crate) fn into_series(self, names: &Names, scratch: &mut Vec<f64>) -> Series {
        let mut values = self.0;
        let width = names.len() + 1;
        let rows = values.len() / width;
        // Columns instead of rows, in the same memory.
        scratch.clone_from(&values);
        for (column, values) in values.chunks_exact_mut(rows.max(1)).enumerate() {
            let from = scratch.iter().skip(column).step_by(width);
            values.iter_mut().zip(from).for_each(|(value, from)| *value = *from);
        }
        Series::of_values(Arc::clone(names), values)
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
        let names = Arc::from([("a", "ms"), ("b", "bytes")]);
        let (mut rows, mut scratch) = (Rows::default(), Vec::new());
        rows.push(PS_PER_S, 2, 100).copy_from_slice(&[1.0, 2.0]);
        rows.push(2 * PS_PER_S, 2, 99)[0] = 3.0;
        let series = rows.into_series(&names, &mut scratch);
        let [a, b] = ["a", "b"].map(|name| series.column(name).unwrap());
        assert_eq!((series.rows(), series.time_s()), (2, &[1.0, 2.0][..]));
        assert_eq!((a.unit, a.values, b.unit), ("ms", &[1.0, 3.0][..], "bytes"));
        assert!(b.values[0] == 2.0 && b.values[1].is_nan());
        let empty = Rows::default().into_series(&names, &mut scratch);
        assert_eq!((empty.time_s().len(), empty.columns().len()), (0, 2));
    }

    #[test]
    fn there_is_room_for_the_rows_to_come_and_no_more() {
        let room = |samples: u64| {
            let mut rows = Rows::default();
            (0..samples).for_each(|n| rows.push(n, 3, samples - 1 - n)[0] = 1.0);
            (rows.0.len() / 4, rows.0.capacity() / 4)
        };
        assert_eq!([room(1), room(20), room(32), room(48)], [(1, 1), (20, 20), (32, 32), (48, 48)]);
    }
}
