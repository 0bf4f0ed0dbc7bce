//! One flow's time series, read back from a record.
//!
//! In goes a record directory and the name of a flow, out come its rows of `series.parquet` as columns of `f64`. Which columns
//! there are is for the file to say: each world and each controller adds its own. Only `time_s` and `flow` must be there.

use std::collections::BTreeSet;
use std::fs::File;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;

use arrow_array::cast::AsArray;
use arrow_array::types::{
    ArrowPrimitiveType, Float32Type, Float64Type, Int8Type, Int16Type, Int32Type, Int64Type,
    UInt8Type, UInt16Type, UInt32Type, UInt64Type,
};
use arrow_array::{Array, RecordBatch};
use arrow_schema::{DataType, Schema};
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;

use super::{RecordError, tables};

/// The samples of one flow.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct FlowTable {
    /// Sample times, s, in the order of the file; NaN where the file has none.
    pub time_s: Vec<f64>,
    /// Name and values of every other integer or floating-point column, in the order of the file, with one value per time.
    /// NaN = not measured. The unit is the one that the manifest names.
    pub columns: Vec<(String, Vec<f64>)>,
}

impl FlowTable {
    /// The values of a column; `None` if the record does not have it.
    pub fn column(&self, name: &str) -> Option<&[f64]> {
        self.columns.iter().find(|(n, _)| n == name).map(|(_, values)| values.as_slice())
    }
}

/// Reads the rows of `series.parquet` in `dir` that are of `flow`.
///
/// # Errors
/// A file that cannot be opened; one that is not Parquet, or is damaged, or lacks `time_s` or `flow`
/// ([`RecordError::Unreadable`]); a flow without samples ([`RecordError::NoSuchFlow`], which lists those that have some). No
/// bytes make it panic.
pub fn flow_series(dir: &Path, flow: &str) -> Result<FlowTable, RecordError> {
    let path = dir.join(tables::SERIES);
    let file = File::open(&path).map_err(RecordError::io("read", &path))?;
    // The Parquet reader answers most damage with an error, but not all of it: it also indexes and adds unchecked. Nothing of
    // its state is looked at after a panic.
    let read = catch_unwind(AssertUnwindSafe(|| read_flow(file, flow)))
        .unwrap_or_else(|_| Err("damaged Parquet".into()));
    match read {
        Ok(Found::Flow(table)) => Ok(table),
        Ok(Found::Others(known)) => Err(RecordError::NoSuchFlow { path, flow: flow.into(), known }),
        Err(reason) => Err(RecordError::Unreadable { path, reason }),
    }
}

/// What a table has of the flow asked for.
enum Found {
    Flow(FlowTable),
    /// Nothing; the flows it has instead.
    Others(Vec<String>),
}

/// The error says what is wrong, without the file's name.
fn read_flow(file: File, flow: &str) -> Result<Found, String> {
    let not_parquet = |e| format!("not a Parquet file: {e}");
    let damaged = |e: &dyn std::fmt::Display| format!("damaged Parquet: {e}");
    let builder = ParquetRecordBatchReaderBuilder::try_new(file).map_err(not_parquet)?;
    let places = Places::in_schema(builder.schema())?;
    let columns = places.others.iter().map(|(_, name, _)| (name.clone(), Vec::new())).collect();
    let mut table = FlowTable { time_s: Vec::new(), columns };
    let mut flows = BTreeSet::new();
    for batch in builder.build().map_err(|e| damaged(&e))? {
        places.take(&batch.map_err(|e| damaged(&e))?, flow, &mut table, &mut flows)?;
    }
    Ok(if flows.contains(flow) {
        Found::Flow(table)
    } else {
        Found::Others(flows.into_iter().collect())
    })
}

/// Where the columns of a table are.
struct Places {
    flow: usize,
    time: (usize, Append),
    /// Place, name and how to read it.
    others: Vec<(usize, String, Append)>,
}

impl Places {
    fn in_schema(schema: &Schema) -> Result<Self, String> {
        let place = |name: &str| {
            let fields = schema.fields();
            fields.iter().position(|f| f.name() == name).ok_or_else(|| {
                let names = fields.iter().map(|f| f.name().as_str());
                format!("no column `{name}`; it has {}", super::quoted(names))
            })
        };
        let (time, flow) = (place("time_s")?, place("flow")?);
        let kind = schema.field(time).data_type();
        let append =
            appender(kind).ok_or_else(|| format!("column `time_s` is {kind}, not a number"))?;
        let others = schema.fields().iter().enumerate().filter(|(i, _)| *i != time && *i != flow);
        let others = others
            .filter_map(|(i, f)| Some((i, f.name().clone(), appender(f.data_type())?)))
            .collect();
        Ok(Self { flow, time: (time, append), others })
    }

    /// Adds the rows of `flow` to `table`, and every flow's name to `flows`.
    fn take(
        &self,
        batch: &RecordBatch,
        flow: &str,
        table: &mut FlowTable,
        flows: &mut BTreeSet<String>,
    ) -> Result<(), String> {
        let column = batch.column(self.flow);
        let names = texts(column)
            .ok_or_else(|| format!("column `flow` is {}, not text", column.data_type()))?;
        let mut last = None;
        let mut rows = Vec::new();
        for (row, name) in names.into_iter().enumerate() {
            let Some(name) = name else { continue };
            // Flows come in long stretches of rows.
            if last.replace(name) != Some(name) && !flows.contains(name) {
                flows.insert(name.to_string());
            }
            if name == flow {
                rows.push(row);
            }
        }
        let (time, append) = self.time;
        append(batch.column(time), &rows, &mut table.time_s);
        for ((place, _, append), (_, values)) in self.others.iter().zip(&mut table.columns) {
            append(batch.column(*place), &rows, values);
        }
        Ok(())
    }
}

/// The values of a text column, whichever way Arrow holds it.
fn texts(array: &dyn Array) -> Option<Vec<Option<&str>>> {
    if let Some(array) = array.as_string_opt::<i32>() {
        return Some(array.iter().collect());
    }
    if let Some(array) = array.as_string_opt::<i64>() {
        return Some(array.iter().collect());
    }
    array.as_string_view_opt().map(|array| array.iter().collect())
}

/// Appends the values at some rows of a column.
type Append = fn(&dyn Array, &[usize], &mut Vec<f64>);

/// How to read a column of this type; `None` if it does not hold integers or floats. Integers beyond 2^53 are rounded.
fn appender(kind: &DataType) -> Option<Append> {
    Some(match kind {
        DataType::Float64 => |a, rows, to| append::<Float64Type>(a, rows, to, |v| v),
        DataType::Float32 => |a, rows, to| append::<Float32Type>(a, rows, to, f64::from),
        DataType::Int64 => |a, rows, to| append::<Int64Type>(a, rows, to, |v| v as f64),
        DataType::UInt64 => |a, rows, to| append::<UInt64Type>(a, rows, to, |v| v as f64),
        DataType::Int32 => |a, rows, to| append::<Int32Type>(a, rows, to, f64::from),
        DataType::UInt32 => |a, rows, to| append::<UInt32Type>(a, rows, to, f64::from),
        DataType::Int16 => |a, rows, to| append::<Int16Type>(a, rows, to, f64::from),
        DataType::UInt16 => |a, rows, to| append::<UInt16Type>(a, rows, to, f64::from),
        DataType::Int8 => |a, rows, to| append::<Int8Type>(a, rows, to, f64::from),
        DataType::UInt8 => |a, rows, to| append::<UInt8Type>(a, rows, to, f64::from),
        _ => return None,
    })
}

fn append<T: ArrowPrimitiveType>(
    array: &dyn Array,
    rows: &[usize],
    to: &mut Vec<f64>,
    number: fn(T::Native) -> f64,
) {
    // A batch has the types of its schema, by which `append` was chosen.
    let array = array.as_primitive::<T>();
    to.extend(rows.iter().map(|row| match array.is_null(*row) {
        true => f64::NAN,
        false => number(array.value(*row)),
    }));
}

#[cfg(test)]
mod tests;
