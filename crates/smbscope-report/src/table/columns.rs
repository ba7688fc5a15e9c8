//! Name, type and value of each column, used by all formats so that they can't differ.

use smbscope_model::{Exchange, FileId, Protocol, Stamp, TimeKind};
use std::fmt::Display;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ExchangeColumn {
    pub name: &'static str,
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
    /// Text that differs from row to row.
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

/// Defines the columns: each with its name and the call that writes its value, which also determines the type.
macro_rules! columns {
    ($row:ident, $exchange:ident: $($name:ident => $method:ident($value:expr);)*) => {
        /// All columns in order.
        pub const COLUMNS: [ExchangeColumn; 46] = [$(ExchangeColumn { name: stringify!($name), kind: kind!($method) },)*];

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
    exchange_id => ordinal(Some(row.exchange_id));
    flow_id => ordinal(Some(exchange.flow.0));
    client => name(Some(FormattedValue(exchange.endpoints.client.ip())));
    client_port => port(exchange.endpoints.client.port());
    server => name(Some(FormattedValue(exchange.endpoints.server.ip())));
    server_port => port(exchange.endpoints.server.port());
    protocol => name(Some(FormattedValue(row.protocol)));
    dialect => name(exchange.dialect.map(FormattedValue));
    command => name(Some(FormattedValue(exchange.command)));
    subcommand => name(exchange.subcommand.map(FormattedValue));
    message_id => wide(exchange.message_id);
    session_id => text(exchange.session_id.map(|id| FormattedValue(Hex { id, digits: row.id_digits(16) })));
    user => name(exchange.user.as_deref());
    tree_id => text(exchange.tree_id.map(|id| FormattedValue(Hex { id: id.into(), digits: row.id_digits(8) })));
    share => name(exchange.share.as_deref());
    file_id => text(exchange.file_id.map(FormattedValue::<FileId>));
    path => text(exchange.path.as_deref());
    status => name(exchange.status.map(FormattedValue));
    capture => name(row.capture);
    request_first_packet => ordinal(number(exchange.request.first));
    request_last_packet => ordinal(number(exchange.request.last));
    response_first_packet => ordinal(number(exchange.response.first));
    response_last_packet => ordinal(number(exchange.response.last));
    request_first_ns => instant(time(exchange.request.first));
    request_last_ns => instant(time(exchange.request.last));
    interim_ns => instant(time(exchange.interim));
    response_first_ns => instant(time(exchange.response.first));
    response_last_ns => instant(time(exchange.response.last));
    request_bytes => bytes(exchange.request.bytes);
    response_bytes => bytes(exchange.response.bytes);
    offset => wide(exchange.offset);
    length => wide(exchange.length);
    compounded => flag(exchange.compounded);
    signed => flag(exchange.signed);
    encrypted => flag(exchange.encrypted);
    outcome => name(Some(exchange.outcome.name()));
    request_packets => packets(exchange.request.packets);
    response_packets => packets(exchange.response.packets);
    retransmitted => packets(exchange.retransmitted);
    group => name(Some(exchange.group.name()));
    response_capture => name(row.response_capture);
    response_time_ns => duration(row.duration(TimeKind::ResponseTime));
    service_time_ns => duration(row.duration(TimeKind::ServiceTime));
    server_time_ns => duration(row.duration(TimeKind::ServerTime));
    retransmission_delay_ns => duration(row.duration(TimeKind::RetransmissionDelay));
    think_time_ns => duration(row.duration(TimeKind::ThinkTime));
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

/// A number formatted as `0x` and at least `digits` digits.
struct Hex {
    id: u64,
    digits: usize,
}

impl Display for Hex {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "0x{:0digits$x}", self.id, digits = self.digits)
    }
}
