//! The exchange table: a row per exchange, in several formats.
//!
//! [`COLUMNS`] defines name, type and value of each column, used by all formats so that they can't differ. Each format
//! implements `Cells`, to receive the values of a row, and [`ExchangeTable`]; [`ExchangeBatches`] builds Arrow record
//! batches of bounded size. The columns after `retransmitted` were added later.
//!
//! `capture` names the file of the request's first packet, and `response_capture` the response's file if it is another
//! one. Packet numbers in a file count from 1. Unknown values are empty in CSV and null in Parquet.

use crate::Filtered;
use arrow_array::builder::{
    BooleanBuilder, Int64Builder, StringBuilder, StringDictionaryBuilder, UInt16Builder, UInt32Builder, UInt64Builder,
};
use arrow_array::types::Int32Type;
use arrow_array::{ArrayRef, RecordBatch};
use arrow_schema::{DataType, Field, Schema, SchemaRef};
use smbscope_model::{
    CaptureInfo, EncapsulatedTraffic, Exchange, FileId, Protocol, Quality, SkippedPackets, Stamp, TimeKind,
};
use std::fmt::Display;
use std::io;
use std::sync::Arc;

pub trait ExchangeTable {
    /// Writes a row. `capture_names` are the file names by [`CaptureId`](smbscope_model::CaptureId).
    fn write(&mut self, exchange: &Exchange, exchange_id: u64, capture_names: &[String]) -> io::Result<()>;

    /// Writes all buffered rows and, if the format has room for it, the provenance.
    fn finish(self, provenance: &Provenance) -> io::Result<()>;
}

/// Origin of a table, known when all rows are written.
#[derive(Debug, Clone)]
pub struct Provenance<'a> {
    pub version: &'a str,
    pub captures: &'a [CaptureInfo],
    pub quality: &'a Quality,
    pub skipped: &'a [SkippedPackets],
    pub encapsulations: &'a [EncapsulatedTraffic],
    pub filter: Option<Filtered>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ExchangeColumn {
    pub name: &'static str,
    /// Markdown for `docs/exchange-table.md`. Empty if the column shares the last description of its data type.
    pub about: &'static str,
    pub kind: ExchangeColumnKind,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ExchangeColumnKind {
    /// Number that increases from row to row: of an exchange, flow or packet.
    Ordinal,
    Bytes,
    Packets,
    Port,
    /// Protocol value that may use all 64 bits.
    Wide,
    Instant,
    /// Duration in nanoseconds. Negative if the clock of the capture stepped back.
    Duration,
    Flag,
    /// One of a few words that are repeated on many rows.
    Name,
    Text,
}

/// Receives the values of a row, one call per column in the order of [`COLUMNS`], using the method of the column's
/// type. Unknown values are `None`. Formats treat an empty text as unknown.
pub(crate) trait Cells {
    fn ordinal(&mut self, value: Option<u64>);
    fn bytes(&mut self, value: u64);
    fn packets(&mut self, value: u32);
    fn port(&mut self, value: u16);
    fn wide(&mut self, value: Option<u64>);
    fn instant(&mut self, value: Option<i64>);
    fn duration(&mut self, value: Option<i64>);
    fn flag(&mut self, value: bool);
    fn name(&mut self, value: Option<impl CellText>);
    fn text(&mut self, value: Option<impl CellText>);
}

/// A value to be written as text. Strings need no formatting.
pub(crate) trait CellText {
    /// Returns the text. `scratch` is an empty buffer for values that need formatting.
    fn written<'a>(&'a self, scratch: &'a mut String) -> &'a str;
}

impl CellText for &str {
    fn written<'a>(&'a self, _: &'a mut String) -> &'a str {
        self
    }
}

struct FormattedValue<T>(T);

impl<T: Display> CellText for FormattedValue<T> {
    fn written<'a>(&'a self, scratch: &'a mut String) -> &'a str {
        use std::fmt::Write;
        write!(scratch, "{}", self.0).expect("writing to a String does not fail");
        scratch
    }
}

pub(crate) struct ExchangeRow<'a> {
    exchange: &'a Exchange,
    exchange_id: u64,
    protocol: Protocol,
    capture: Option<&'a str>,
    response_capture: Option<&'a str>,
}

impl<'a> ExchangeRow<'a> {
    pub(crate) fn new(exchange: &'a Exchange, exchange_id: u64, capture_names: &'a [String]) -> ExchangeRow<'a> {
        let name = |stamp: Option<Stamp>| {
            let name = capture_names.get(usize::from(stamp?.packet.capture().0));
            name.map(String::as_str)
        };
        let Exchange { request, response, .. } = exchange;
        let response_capture = name(response.first.or(response.last));
        let capture = name(request.first.or(request.last)).or(response_capture);
        let protocol = exchange.command.protocol();
        ExchangeRow {
            exchange,
            exchange_id,
            protocol,
            capture,
            response_capture: response_capture.filter(|_| capture != response_capture),
        }
    }
}

/// Maps a method of [`Cells`] to the type of its columns.
macro_rules! kind {
    (ordinal) => {
        ExchangeColumnKind::Ordinal
    };
    (bytes) => {
        ExchangeColumnKind::Bytes
    };
    (packets) => {
        ExchangeColumnKind::Packets
    };
    (port) => {
        ExchangeColumnKind::Port
    };
    (wide) => {
        ExchangeColumnKind::Wide
    };
    (instant) => {
        ExchangeColumnKind::Instant
    };
    (duration) => {
        ExchangeColumnKind::Duration
    };
    (flag) => {
        ExchangeColumnKind::Flag
    };
    (name) => {
        ExchangeColumnKind::Name
    };
    (text) => {
        ExchangeColumnKind::Text
    };
}

/// Defines the columns: each with its name, its description, and the call that writes its value, which also determines
/// the type.
macro_rules! columns {
    ($row:ident, $exchange:ident: $($name:ident $(, $about:literal)? => $method:ident($value:expr);)*) => {
        pub const COLUMNS: [ExchangeColumn; 47] = [$(ExchangeColumn {
            name: stringify!($name),
            about: concat!($($about)?),
            kind: kind!($method),
        },)*];

        impl ExchangeRow<'_> {
            pub(crate) fn fill(&self, cells: &mut impl Cells) {
                let $row = self;
                let $exchange = self.exchange;
                $(cells.$method($value);)*
            }
        }
    };
}

columns! { row, exchange:
    exchange_id, "in the order in which exchanges ended; a flow is a TCP connection" => ordinal(Some(row.exchange_id));
    flow_id => ordinal(Some(exchange.flow.0));
    client, "addresses" => name(Some(FormattedValue(exchange.endpoints.client.ip())));
    client_port, "TCP ports" => port(exchange.endpoints.client.port());
    server => name(Some(FormattedValue(exchange.endpoints.server.ip())));
    server_port => port(exchange.endpoints.server.port());
    protocol, "names of the specification; the subcommand is the use of the command" =>
        name(Some(FormattedValue(row.protocol)));
    dialect => name(exchange.dialect.map(FormattedValue));
    command => name(Some(FormattedValue(exchange.command)));
    subcommand => name(exchange.subcommand.map(FormattedValue));
    message_id, "SMB2 MessageId, SMB1 MID" => wide(exchange.message_id);
    session_id, "hexadecimal" =>
        text(exchange.session_id.map(|id| FormattedValue(Hex { id, digits: row.id_digits(16) })));
    user, "ends with `…` if it was cut: by the snap length, or at 4 KiB" => name(exchange.user.as_deref());
    tree_id => text(exchange.tree_id.map(|id| FormattedValue(Hex { id: id.into(), digits: row.id_digits(8) })));
    share => name(exchange.share.as_deref());
    file_id => text(exchange.file_id.map(FormattedValue::<FileId>));
    path, "cut in the same way" => text(exchange.path.as_deref());
    status, "of the final response" => name(exchange.status.map(FormattedValue));
    capture, "file with the request" => name(row.capture);
    request_first_packet, "packet numbers as in Wireshark, from 1" => ordinal(number(exchange.request.first));
    request_last_packet => ordinal(number(exchange.request.last));
    response_first_packet => ordinal(number(exchange.response.first));
    response_last_packet => ordinal(number(exchange.response.last));
    request_first_ns, "nanoseconds since 1970-01-01 00:00 UTC" => instant(time(exchange.request.first));
    request_last_ns => instant(time(exchange.request.last));
    interim_ns => instant(time(exchange.interim));
    response_first_ns => instant(time(exchange.response.first));
    response_last_ns => instant(time(exchange.response.last));
    request_bytes, "of the SMB messages" => bytes(exchange.request.bytes);
    response_bytes => bytes(exchange.response.bytes);
    offset, "of reads, writes and locks; may use all 64 bits" => wide(exchange.offset);
    length => wide(exchange.length);
    compounded, "true or false" => flag(exchange.compounded);
    signed => flag(exchange.signed);
    encrypted => flag(exchange.encrypted);
    outcome, "`complete`, or [the reason](definitions.md#what-counts) why the exchange has no times in the report" =>
        name(Some(exchange.outcome.name()));
    request_packets, "packets of each half, and retransmitted segments" => packets(exchange.request.packets);
    response_packets => packets(exchange.response.packets);
    retransmitted => packets(exchange.retransmitted);
    group, "the [group](definitions.md#groups); `Waiting` is an expected wait" => name(Some(exchange.group.name()));
    response_capture, "file with the response, if it is another" => name(row.response_capture);
    response_time_ns, "durations in nanoseconds" => duration(row.duration(TimeKind::ResponseTime));
    service_time_ns => duration(row.duration(TimeKind::ServiceTime));
    server_time_ns => duration(row.duration(TimeKind::ServerTime));
    retransmission_delay_ns => duration(row.duration(TimeKind::RetransmissionDelay));
    think_time_ns => duration(row.duration(TimeKind::ThinkTime));
    process, "process that the capture names for the request, as `name (id)`: PKTAP, pcapng of macOS and of Windows traces, Network Monitor" =>
        name(exchange.process.as_deref());
}

impl ExchangeRow<'_> {
    /// Returns the number of hexadecimal digits. IDs have 16 bits in SMB1.
    fn id_digits(&self, smb2: usize) -> usize {
        match self.protocol {
            Protocol::Smb1 => 4,
            Protocol::Smb2 => smb2,
        }
    }

    fn duration(&self, kind: TimeKind) -> Option<i64> {
        self.exchange.time(kind).map(|time| time.0)
    }
}

fn number(stamp: Option<Stamp>) -> Option<u64> {
    stamp.map(|stamp| stamp.packet.number())
}

fn time(stamp: Option<Stamp>) -> Option<i64> {
    stamp.map(|stamp| stamp.time.0)
}

struct Hex {
    id: u64,
    digits: usize,
}

impl Display for Hex {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "0x{:0digits$x}", self.id, digits = self.digits)
    }
}

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
const DIFFERENT: &str = "kinds and calls are made from one list, in `columns!`";

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
