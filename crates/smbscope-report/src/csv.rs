//! The exchange table as CSV (RFC 4180): a row an exchange, written as it comes.
//!
//! The columns up to `retransmitted` are those of DESIGN §5 in their order; the rest are additions. What is unknown is
//! an empty field. Packet numbers count from 1 in the file named by `capture`, that of the request's first packet;
//! `response_capture` names the response's file where it is another one.

use csv::ByteRecord;
use smbscope_model::{Exchange, FileId, Protocol, Stamp, TimeKind};
use std::fmt::{Display, Write as _};
use std::io::{self, Write};

/// The columns in order.
pub const COLUMNS: [&str; 46] = [
    "exchange_id",
    "flow_id",
    "client",
    "client_port",
    "server",
    "server_port",
    "protocol",
    "dialect",
    "command",
    "subcommand",
    "message_id",
    "session_id",
    "user",
    "tree_id",
    "share",
    "file_id",
    "path",
    "status",
    "capture",
    "request_first_packet",
    "request_last_packet",
    "response_first_packet",
    "response_last_packet",
    "request_first_ns",
    "request_last_ns",
    "interim_ns",
    "response_first_ns",
    "response_last_ns",
    "request_bytes",
    "response_bytes",
    "offset",
    "length",
    "compounded",
    "signed",
    "encrypted",
    "outcome",
    "request_packets",
    "response_packets",
    "retransmitted",
    "group",
    "response_capture",
    "response_time_ns",
    "service_time_ns",
    "server_time_ns",
    "retransmission_delay_ns",
    "think_time_ns",
];

/// Writes exchanges as rows.
pub struct ExchangeWriter<W: Write> {
    out: csv::Writer<W>,
    row: Row,
}

/// A row under construction; its buffers are used again for each.
#[derive(Default)]
struct Row {
    record: ByteRecord,
    scratch: String,
}

impl<W: Write> ExchangeWriter<W> {
    /// Writes the header.
    pub fn new(out: W) -> io::Result<ExchangeWriter<W>> {
        let mut out = csv::WriterBuilder::new().buffer_capacity(1 << 16).from_writer(out);
        out.write_record(COLUMNS).map_err(io_error)?;
        Ok(ExchangeWriter { out, row: Row::default() })
    }

    /// Writes a row. `capture_names` are the files by [`CaptureId`](smbscope_model::CaptureId).
    pub fn write(&mut self, exchange: &Exchange, exchange_id: u64, capture_names: &[String]) -> io::Result<()> {
        self.row.fill(exchange, exchange_id, capture_names);
        self.out.write_byte_record(&self.row.record).map_err(io_error)
    }

    /// Writes what is still buffered.
    pub fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }

    /// Writes what is still buffered and gives the output back.
    pub fn into_inner(self) -> io::Result<W> {
        self.out.into_inner().map_err(|error| io::Error::new(error.error().kind(), error.to_string()))
    }
}

impl Row {
    fn fill(&mut self, exchange: &Exchange, exchange_id: u64, capture_names: &[String]) {
        let Exchange { endpoints, request, response, .. } = exchange;
        let protocol = exchange.command.protocol();
        self.record.clear();
        self.number(Some(exchange_id));
        self.number(Some(exchange.flow.0));
        self.shown(endpoints.client.ip());
        self.number(Some(endpoints.client.port().into()));
        self.shown(endpoints.server.ip());
        self.number(Some(endpoints.server.port().into()));
        self.shown(protocol);
        self.optional(exchange.dialect);
        self.shown(exchange.command);
        self.optional(exchange.subcommand);
        self.number(exchange.message_id);
        match protocol {
            Protocol::Smb1 => self.optional(exchange.session_id.map(|id| Hex(id, 4))),
            Protocol::Smb2 => self.optional(exchange.session_id.map(|id| Hex(id, 16))),
        }
        self.text(exchange.user.as_deref());
        match protocol {
            Protocol::Smb1 => self.optional(exchange.tree_id.map(|id| Hex(id.into(), 4))),
            Protocol::Smb2 => self.optional(exchange.tree_id.map(|id| Hex(id.into(), 8))),
        }
        self.text(exchange.share.as_deref());
        self.optional::<FileId>(exchange.file_id);
        self.text(exchange.path.as_deref());
        self.optional(exchange.status);

        let name =
            |stamp: Option<Stamp>| stamp.and_then(|stamp| capture_names.get(usize::from(stamp.packet.capture.0)));
        let request_capture = name(request.first.or(request.last));
        let response_capture = name(response.first.or(response.last));
        let capture = request_capture.or(response_capture);
        self.text(capture.map(String::as_str));
        let stamps = [request.first, request.last, response.first, response.last];
        stamps.iter().for_each(|stamp| self.number(stamp.map(|stamp| stamp.packet.number)));
        let stamps = [request.first, request.last, exchange.interim, response.first, response.last];
        stamps.iter().for_each(|stamp| self.signed(stamp.map(|stamp| stamp.time.0)));
        self.number(Some(request.bytes));
        self.number(Some(response.bytes));
        self.number(exchange.offset);
        self.number(exchange.length);
        let flags = [exchange.compounded, exchange.signed, exchange.encrypted];
        flags.iter().for_each(|flag| self.text(Some(if *flag { "true" } else { "false" })));
        self.text(Some(exchange.outcome.name()));
        self.number(Some(request.packets.into()));
        self.number(Some(response.packets.into()));
        self.number(Some(exchange.retransmitted.into()));

        self.text(Some(exchange.group.name()));
        self.text(response_capture.filter(|name| capture != Some(*name)).map(String::as_str));
        let kinds = [
            TimeKind::ResponseTime,
            TimeKind::ServiceTime,
            TimeKind::ServerTime,
            TimeKind::RetransmissionDelay,
            TimeKind::ThinkTime,
        ];
        kinds.iter().for_each(|kind| self.signed(exchange.time(*kind).map(|time| time.0)));
    }

    fn text(&mut self, text: Option<&str>) {
        self.record.push_field(text.unwrap_or_default().as_bytes());
    }

    fn shown(&mut self, value: impl Display) {
        self.scratch.clear();
        write!(self.scratch, "{value}").expect("writing to a String does not fail");
        self.record.push_field(self.scratch.as_bytes());
    }

    fn optional<T: Display>(&mut self, value: Option<T>) {
        match value {
            Some(value) => self.shown(value),
            None => self.text(None),
        }
    }

    fn signed(&mut self, value: Option<i64>) {
        match value {
            Some(value) if value < 0 => self.shown(value),
            value => self.number(value.map(i64::unsigned_abs)),
        }
    }

    /// Decimal digits without going through a formatter: a row has twenty numbers.
    fn number(&mut self, value: Option<u64>) {
        let Some(mut rest) = value else { return self.text(None) };
        let mut digits = [0; 20];
        let mut at = digits.len();
        loop {
            at -= 1;
            digits[at] = b'0' + (rest % 10) as u8;
            rest /= 10;
            if rest == 0 {
                break;
            }
        }
        self.record.push_field(&digits[at..]);
    }
}

/// A number as `0x` and at least so many digits.
struct Hex(u64, usize);

impl Display for Hex {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "0x{:0width$x}", self.0, width = self.1)
    }
}

fn io_error(error: csv::Error) -> io::Error {
    match error.into_kind() {
        csv::ErrorKind::Io(error) => error,
        kind => io::Error::other(format!("{kind:?}")),
    }
}
