//! The tables of a record, as Parquet files in memory.
//!
//! Columns are 64-bit integers, 64-bit floats and text, Snappy-compressed, which every reader of Parquet takes. Each column
//! carries its unit in the Arrow field metadata under `unit`. What was not measured is null. Nothing in a file depends on the
//! clock, the host or the order of a hash map: equal input gives equal bytes.

use std::collections::BTreeMap;
use std::sync::Arc;

use arrow_array::{ArrayRef, Float64Array, Int64Array, RecordBatch, StringArray, UInt64Array};
use arrow_schema::{ArrowError, DataType, Field, Schema};
use paceline_sim::{Column, Outcome, Series};
use parquet::arrow::ArrowWriter;
use parquet::basic::Compression;
use parquet::errors::ParquetError;
use parquet::file::properties::{EnabledStatistics, WriterProperties};

use super::summary::{FlowSummary, StatsSummary, Summary, finite};
use super::{RecordError, RunInfo};

/// `flows.parquet`: one row per flow.
pub const FLOWS: &str = "flows.parquet";
/// `links.parquet`: one row per link and sample.
pub const LINKS: &str = "links.parquet";
/// `series.parquet`: one row per flow and sample.
pub const SERIES: &str = "series.parquet";

/// Field metadata key of a column's unit.
pub const UNIT: &str = "unit";

/// Unit of a column of names.
const TEXT: &str = "text";
/// Unit of a column of pure numbers.
const ONE: &str = "1";

/// A table ready to be written.
#[derive(Clone, Debug, PartialEq)]
pub struct Table {
    /// File name.
    pub name: &'static str,
    /// The Parquet file.
    pub bytes: Vec<u8>,
    /// Rows.
    pub rows: u64,
    /// Name and unit of each column, in order.
    pub columns: Vec<(String, String)>,
}

/// The tables of a run: flows, links, series.
///
/// # Errors
/// A table that Parquet refuses.
pub fn all(info: &RunInfo, outcome: &Outcome) -> Result<[Table; 3], RecordError> {
    Ok([flows(info, outcome)?, links(outcome)?, series(info, outcome)?])
}

/// One row per flow: scenario, world and seed (so that the tables of a study can be read as one), then the flow's summary
/// with each distribution flattened to `<name>_mean` … `<name>_max`.
///
/// # Errors
/// A table that Parquet refuses.
pub fn flows(info: &RunInfo, outcome: &Outcome) -> Result<Table, RecordError> {
    let summary = Summary::new(info, outcome);
    let flows = &summary.flows;
    let mut table = TableBuilder::default();
    table.text("scenario", flows.iter().map(|_| &summary.scenario));
    table.text("world", flows.iter().map(|_| &summary.world));
    table.seed(flows.iter().map(|_| summary.seed));
    table.text("flow", flows.iter().map(|f| &f.name));
    table.text("controller", flows.iter().map(|f| &f.controller));
    table.text("controller_params", (0..flows.len()).map(|i| params_json(info, i)));
    table.text("stack", flows.iter().map(|f| &f.stack));
    for (name, unit, value) in FLOW_NUMBERS {
        table.numbers(name, unit, flows.iter().map(*value));
    }
    for (name, unit, value) in FLOW_COUNTERS {
        table.counters(name, unit, flows.iter().map(*value));
    }
    for (name, unit, value) in FLOW_STATS {
        for (i, (statistic, _)) in StatsSummary::default().named().iter().enumerate() {
            let values = flows.iter().map(|f| value(f).and_then(|s| s.named()[i].1));
            table.numbers(&format!("{name}_{statistic}"), unit, values);
        }
    }
    table.finish(FLOWS)
}

type Number = fn(&FlowSummary) -> Option<f64>;
type Counter = fn(&FlowSummary) -> u64;
type Distribution = fn(&FlowSummary) -> Option<StatsSummary>;

const FLOW_NUMBERS: &[(&str, &str, Number)] = &[
    ("start_s", "s", |f| f.start_s),
    ("end_s", "s", |f| f.end_s),
    ("throughput_bps", "bit/s", |f| f.throughput_bps),
    ("goodput_bps", "bit/s", |f| f.goodput_bps),
    ("loss_fraction", ONE, |f| f.loss_fraction),
    ("signal_delay_ms_p95", "ms", |f| f.signal_delay_ms.p95),
    ("power_score", "Mbit/s per s", |f| f.power_score),
    ("completion_s", "s", |f| f.completion_s),
];

const FLOW_COUNTERS: &[(&str, &str, Counter)] = &[
    ("sent_packets", "packets", |f| f.sent_packets),
    ("delivered_packets", "packets", |f| f.delivered_packets),
    ("lost_packets", "packets", |f| f.lost_packets),
    ("in_flight_packets", "packets", |f| f.in_flight_packets),
    ("retransmitted_packets", "packets", |f| f.retransmitted_packets),
    ("timeouts", ONE, |f| f.timeouts),
];

const FLOW_STATS: &[(&str, &str, Distribution)] = &[
    ("rate_bps", "bit/s", |f| f.rate_bps),
    ("rtt_ms", "ms", |f| f.rtt_ms),
    ("cwnd_bytes", "bytes", |f| f.cwnd_bytes),
    ("pacing_bps", "bit/s", |f| f.pacing_bps),
    ("queueing_delay_ms", "ms", |f| f.queueing_delay_ms),
];

/// The parameters of flow `index` as a JSON object.
fn params_json(info: &RunInfo, index: usize) -> String {
    let params = info.flows.get(index).map(|f| &f.controller_params);
    // Words, booleans and optional numbers under string keys are always valid JSON.
    params.map_or_else(|| "{}".into(), |p| serde_json::to_string(p).unwrap_or_default())
}

/// One row per link and sample: `time_s`, `link`, then the union of the links' columns.
///
/// # Errors
/// A table that Parquet refuses.
pub fn links(outcome: &Outcome) -> Result<Table, RecordError> {
    let names = outcome.links.iter().map(|l| l.name.clone()).collect();
    long_table(LINKS, "link", names, outcome.links.iter().map(|l| &l.series).collect())
}

/// One row per flow and sample: `time_s`, `flow`, then the union of the flows' columns, null where a flow lacks one.
///
/// # Errors
/// A table that Parquet refuses.
pub fn series(info: &RunInfo, outcome: &Outcome) -> Result<Table, RecordError> {
    let name = |i: usize| info.flows.get(i).map_or_else(|| format!("flow{i}"), |f| f.name.clone());
    let names = (0..outcome.flows.len()).map(name).collect();
    long_table(SERIES, "flow", names, outcome.flows.iter().map(|f| &f.series).collect())
}

/// Stacks the series of several sources under one set of columns, in order of first appearance.
fn long_table(
    file: &'static str,
    source: &str,
    names: Vec<String>,
    series: Vec<&Series>,
) -> Result<Table, RecordError> {
    let mut union = Union::new(&["time_s", source]);
    // Where each column of each source goes.
    let places: Vec<Vec<usize>> = series.iter().map(|s| union.place(s.columns())).collect();

    let mut table = TableBuilder::default();
    table.numbers("time_s", "s", series.iter().flat_map(|s| s.time_s().iter().map(|t| finite(*t))));
    let rows = names.iter().zip(&series);
    table.text(source, rows.flat_map(|(n, s)| std::iter::repeat_n(n, s.rows())));
    for (place, (name, unit)) in union.columns.iter().enumerate() {
        let values = series.iter().zip(&places).flat_map(|(series, places)| {
            let column = places.iter().position(|p| *p == place);
            let column = column.and_then(|nth| series.columns().nth(nth));
            (0..series.rows()).map(move |i| finite(column?.values[i]))
        });
        table.numbers(name, unit, values);
    }
    table.finish(file)
}

/// The columns of a stacked table. Two controllers may use one name for quantities of different units: the later one is then
/// called `<name>_<unit>`, because a column has one unit.
struct Union {
    /// Name and unit.
    columns: Vec<(String, String)>,
    /// Place by name, unit, and how often the same pair came before it in the same source.
    places: BTreeMap<(&'static str, &'static str, usize), usize>,
    reserved: Vec<String>,
}

impl Union {
    fn new(reserved: &[&str]) -> Self {
        let reserved = reserved.iter().map(|name| name.to_string()).collect();
        Self { columns: Vec::new(), places: BTreeMap::new(), reserved }
    }

    /// Place of each of one source's columns.
    fn place<'a>(&mut self, columns: impl ExactSizeIterator<Item = Column<'a>>) -> Vec<usize> {
        let mut seen: BTreeMap<(&str, &str), usize> = BTreeMap::new();
        let mut places = Vec::with_capacity(columns.len());
        for column in columns {
            let repeat = seen.entry((column.name, column.unit)).or_default();
            let key = (column.name, column.unit, *repeat);
            *repeat += 1;
            let place = match self.places.get(&key) {
                Some(place) => *place,
                None => {
                    let name = self.free_name(&column);
                    self.columns.push((name, column.unit.to_string()));
                    self.places.insert(key, self.columns.len() - 1);
                    self.columns.len() - 1
                }
            };
            places.push(place);
        }
        places
    }

    fn free_name(&self, column: &Column<'_>) -> String {
        let taken = |name: &String| {
            self.reserved.contains(name) || self.columns.iter().any(|(other, _)| other == name)
        };
        let unit = column.unit.to_ascii_lowercase();
        let unit = unit.replace(|c: char| !c.is_ascii_alphanumeric(), "_");
        let with_unit = format!("{}_{unit}", column.name);
        let mut names = [column.name.to_string(), with_unit.clone()].into_iter();
        let free = names.find(|name| !taken(name));
        free.unwrap_or_else(|| {
            let mut numbered = (2u64..).map(|n| format!("{with_unit}_{n}"));
            // There are more numbers than columns.
            numbered.find(|name| !taken(name)).unwrap_or(with_unit)
        })
    }
}

/// Collects columns of equal length.
#[derive(Default)]
struct TableBuilder {
    fields: Vec<Field>,
    arrays: Vec<ArrayRef>,
    columns: Vec<(String, String)>,
}

impl TableBuilder {
    fn numbers(&mut self, name: &str, unit: &str, values: impl Iterator<Item = Option<f64>>) {
        let array: Float64Array = values.collect();
        self.push(name, unit, DataType::Float64, Arc::new(array));
    }

    /// Signed, so that differences in a query cannot wrap; saturates at 2^63 - 1, far above any run.
    fn counters(&mut self, name: &str, unit: &str, values: impl Iterator<Item = u64>) {
        let values = values.map(|v| Some(i64::try_from(v).unwrap_or(i64::MAX)));
        let array: Int64Array = values.collect();
        self.push(name, unit, DataType::Int64, Arc::new(array));
    }

    fn seed(&mut self, values: impl Iterator<Item = u64>) {
        let array: UInt64Array = values.map(Some).collect();
        self.push("seed", ONE, DataType::UInt64, Arc::new(array));
    }

    fn text(&mut self, name: &str, values: impl Iterator<Item = impl AsRef<str>>) {
        let array = StringArray::from_iter_values(values);
        self.push(name, TEXT, DataType::Utf8, Arc::new(array));
    }

    fn push(&mut self, name: &str, unit: &str, data_type: DataType, array: ArrayRef) {
        let metadata = [(UNIT.to_string(), unit.to_string())];
        self.fields.push(Field::new(name, data_type, true).with_metadata(metadata));
        self.arrays.push(array);
        self.columns.push((name.to_string(), unit.to_string()));
    }

    fn finish(self, name: &'static str) -> Result<Table, RecordError> {
        let failed = |source: ParquetError| RecordError::Table { table: name, source };
        let arrow_failed = |error: ArrowError| failed(ParquetError::from(error));
        let schema = Arc::new(Schema::new(self.fields));
        let batch = RecordBatch::try_new(schema.clone(), self.arrays).map_err(arrow_failed)?;
        let properties = WriterProperties::builder()
            .set_compression(Compression::SNAPPY)
            .set_created_by(format!("paceline version {}", super::VERSION))
            // Indexes of pages would outweigh tables this small, many times over in a study.
            .set_statistics_enabled(EnabledStatistics::Chunk)
            .set_offset_index_disabled(true)
            .build();
        let mut bytes = Vec::new();
        let mut writer =
            ArrowWriter::try_new(&mut bytes, schema, Some(properties)).map_err(failed)?;
        writer.write(&batch).map_err(failed)?;
        writer.close().map_err(failed)?;
        Ok(Table { name, bytes, rows: batch.num_rows() as u64, columns: self.columns })
    }
}
