//! The exchange table as Arrow record batches of bounded size. Names (commands, users, shares …) are dictionaries,
//! separate for each batch.

use super::columns::{COLUMNS, CellText, Cells, ExchangeColumnKind, ExchangeRow};
use arrow_array::builder::{
    BooleanBuilder, Int64Builder, StringBuilder, StringDictionaryBuilder, UInt16Builder, UInt32Builder, UInt64Builder,
};
use arrow_array::types::Int32Type;
use arrow_array::{ArrayRef, RecordBatch};
use arrow_schema::{DataType, Field, Schema, SchemaRef};
use smbscope_model::Exchange;
use std::sync::Arc;

pub const BATCH_ROWS: usize = 8 << 10;
/// Text in bytes that ends a batch.
pub const BATCH_TEXT_BYTES: usize = 4 << 20;

/// Collects exchanges in batches of [`BATCH_ROWS`] rows, or fewer if their texts reach [`BATCH_TEXT_BYTES`].
pub struct ExchangeBatches {
    schema: SchemaRef,
    batch: RecordBatchBuilder,
}

impl Default for ExchangeBatches {
    fn default() -> ExchangeBatches {
        let fields = COLUMNS.map(|column| Field::new(column.name, data_type(column.kind), true));
        ExchangeBatches { schema: Arc::new(Schema::new(Vec::from(fields))), batch: RecordBatchBuilder::new() }
    }
}

impl ExchangeBatches {
    pub fn schema(&self) -> SchemaRef {
        Arc::clone(&self.schema)
    }

    /// Adds a row. Returns the batch if it is full.
    pub fn add(&mut self, exchange: &Exchange, exchange_id: u64, capture_names: &[String]) -> Option<RecordBatch> {
        self.batch.add(&ExchangeRow::new(exchange, exchange_id, capture_names));
        if self.batch.is_full() { self.rest() } else { None }
    }

    pub fn rest(&mut self) -> Option<RecordBatch> {
        let rows = self.batch.rows;
        (rows > 0).then(|| {
            let columns = self.batch.take();
            RecordBatch::try_new(self.schema(), columns).expect("columns and schema are made from one list")
        })
    }
}

fn data_type(kind: ExchangeColumnKind) -> DataType {
    match kind {
        ExchangeColumnKind::Ordinal
        | ExchangeColumnKind::Bytes
        | ExchangeColumnKind::Instant
        | ExchangeColumnKind::Duration => DataType::Int64,
        ExchangeColumnKind::Wide => DataType::UInt64,
        ExchangeColumnKind::Packets => DataType::UInt32,
        ExchangeColumnKind::Port => DataType::UInt16,
        ExchangeColumnKind::Flag => DataType::Boolean,
        ExchangeColumnKind::Name => DataType::Dictionary(Box::new(DataType::Int32), Box::new(DataType::Utf8)),
        ExchangeColumnKind::Text => DataType::Utf8,
    }
}

struct RecordBatchBuilder {
    columns: Vec<ColumnBuilder>,
    rows: usize,
    text_bytes: usize,
    /// Index of the next column.
    at: usize,
    scratch: String,
}

enum ColumnBuilder {
    Signed(Int64Builder),
    Wide(UInt64Builder),
    Packets(UInt32Builder),
    Port(UInt16Builder),
    Flag(BooleanBuilder),
    Name(StringDictionaryBuilder<Int32Type>),
    Text(StringBuilder),
}

impl ColumnBuilder {
    fn new(kind: ExchangeColumnKind) -> ColumnBuilder {
        match kind {
            ExchangeColumnKind::Ordinal
            | ExchangeColumnKind::Bytes
            | ExchangeColumnKind::Instant
            | ExchangeColumnKind::Duration => ColumnBuilder::Signed(Int64Builder::new()),
            ExchangeColumnKind::Wide => ColumnBuilder::Wide(UInt64Builder::new()),
            ExchangeColumnKind::Packets => ColumnBuilder::Packets(UInt32Builder::new()),
            ExchangeColumnKind::Port => ColumnBuilder::Port(UInt16Builder::new()),
            ExchangeColumnKind::Flag => ColumnBuilder::Flag(BooleanBuilder::new()),
            ExchangeColumnKind::Name => ColumnBuilder::Name(StringDictionaryBuilder::new()),
            ExchangeColumnKind::Text => ColumnBuilder::Text(StringBuilder::new()),
        }
    }

    /// Returns the values as an array and starts a new one.
    fn take(&mut self) -> ArrayRef {
        match self {
            ColumnBuilder::Signed(values) => Arc::new(values.finish()),
            ColumnBuilder::Wide(values) => Arc::new(values.finish()),
            ColumnBuilder::Packets(values) => Arc::new(values.finish()),
            ColumnBuilder::Port(values) => Arc::new(values.finish()),
            ColumnBuilder::Flag(values) => Arc::new(values.finish()),
            ColumnBuilder::Name(values) => Arc::new(values.finish()),
            ColumnBuilder::Text(values) => Arc::new(values.finish()),
        }
    }
}

impl RecordBatchBuilder {
    fn new() -> RecordBatchBuilder {
        let columns = COLUMNS.iter().map(|column| ColumnBuilder::new(column.kind)).collect();
        RecordBatchBuilder { columns, rows: 0, text_bytes: 0, at: 0, scratch: String::new() }
    }

    fn add(&mut self, row: &ExchangeRow) {
        self.at = 0;
        row.fill(self);
        self.rows += 1;
    }

    fn is_full(&self) -> bool {
        self.rows >= BATCH_ROWS || self.text_bytes >= BATCH_TEXT_BYTES
    }

    fn take(&mut self) -> Vec<ArrayRef> {
        (self.rows, self.text_bytes) = (0, 0);
        self.columns.iter_mut().map(ColumnBuilder::take).collect()
    }

    fn next(&mut self) -> &mut ColumnBuilder {
        self.at += 1;
        &mut self.columns[self.at - 1]
    }

    fn signed(&mut self, value: Option<i64>) {
        match self.next() {
            ColumnBuilder::Signed(values) => values.append_option(value),
            _ => unreachable!("{DIFFERENT}"),
        }
    }
}

/// Panic message for a value that doesn't match its column.
const DIFFERENT: &str = "kinds and calls are made from one list, in `columns.rs`";

impl Cells for RecordBatchBuilder {
    fn ordinal(&mut self, value: Option<u64>) {
        // Ordinals are counted one by one and never exceed 63 bits.
        self.signed(value.map(|value| i64::try_from(value).unwrap_or(i64::MAX)));
    }

    fn bytes(&mut self, value: u64) {
        self.ordinal(Some(value));
    }

    fn packets(&mut self, value: u32) {
        match self.next() {
            ColumnBuilder::Packets(values) => values.append_value(value),
            _ => unreachable!("{DIFFERENT}"),
        }
    }

    fn port(&mut self, value: u16) {
        match self.next() {
            ColumnBuilder::Port(values) => values.append_value(value),
            _ => unreachable!("{DIFFERENT}"),
        }
    }

    fn wide(&mut self, value: Option<u64>) {
        match self.next() {
            ColumnBuilder::Wide(values) => values.append_option(value),
            _ => unreachable!("{DIFFERENT}"),
        }
    }

    fn instant(&mut self, value: Option<i64>) {
        self.signed(value);
    }

    fn duration(&mut self, value: Option<i64>) {
        self.signed(value);
    }

    fn flag(&mut self, value: bool) {
        match self.next() {
            ColumnBuilder::Flag(values) => values.append_value(value),
            _ => unreachable!("{DIFFERENT}"),
        }
    }

    fn name(&mut self, value: Option<impl CellText>) {
        self.text(value);
    }

    fn text(&mut self, value: Option<impl CellText>) {
        self.scratch.clear();
        self.at += 1;
        let text = value.as_ref().map_or("", |value| value.written(&mut self.scratch));
        self.text_bytes += text.len();
        let text = Some(text).filter(|text| !text.is_empty());
        match &mut self.columns[self.at - 1] {
            ColumnBuilder::Name(values) => values.append_option(text),
            ColumnBuilder::Text(values) => values.append_option(text),
            _ => unreachable!("{DIFFERENT}"),
        }
    }
}
