//! Columns of filter expressions: names, types and accessors.
//!
//! The names are those in the exchange table, except `exchange_id`, the row number. Derived columns follow.

use super::literal::{ScalarUnit, rank};
use crate::derived;
use smbscope_model::{
    Command, CommandGroup, Exchange, ExchangeOutcome, Half, Protocol, ResponseStatus, Stamp, Subcommand, TimeKind,
};
use std::fmt::{Display, Write};
use std::net::SocketAddr;
use std::sync::Arc;

#[derive(Debug, Clone)]
pub(super) struct FilterContext {
    pub(super) captures: Arc<[String]>,
    pub(super) scratch: String,
}

pub(super) struct FilterColumn {
    pub(super) name: &'static str,
    pub(super) value: ColumnAccessor,
}

pub(super) enum ColumnAccessor {
    Flag(fn(&Exchange) -> bool),
    Scalar(ScalarUnit, fn(&Exchange) -> Option<i128>),
    Address(fn(&Exchange) -> SocketAddr),
    Text(TextDomain, for<'a> fn(&'a Exchange, &'a mut FilterContext) -> Option<&'a str>),
}

pub(super) enum TextDomain {
    Any,
    /// A path. `/` is equivalent to `\`, and a leading separator is ignored.
    Path,
    /// A name from the specification, or a code. The common `prefixes` are optional.
    Known {
        all: fn() -> Vec<String>,
        prefixes: &'static [&'static str],
        codes: bool,
    },
}

impl FilterColumn {
    pub(super) fn type_name(&self) -> &'static str {
        match &self.value {
            ColumnAccessor::Flag(_) => "yes or no",
            ColumnAccessor::Scalar(ScalarUnit::Count, _) => "number",
            ColumnAccessor::Scalar(ScalarUnit::Bytes, _) => "size",
            ColumnAccessor::Scalar(ScalarUnit::Duration, _) => "duration",
            ColumnAccessor::Scalar(ScalarUnit::Time, _) => "time",
            ColumnAccessor::Scalar(ScalarUnit::Dialect, _) => "dialect",
            ColumnAccessor::Address(_) => "address",
            ColumnAccessor::Text(TextDomain::Any, _) => "text",
            ColumnAccessor::Text(TextDomain::Path, _) => "path",
            ColumnAccessor::Text(TextDomain::Known { .. }, _) => "name",
        }
    }
}

impl std::fmt::Debug for FilterColumn {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name)
    }
}

impl PartialEq for FilterColumn {
    fn eq(&self, other: &FilterColumn) -> bool {
        self.name == other.name
    }
}

pub(super) fn find(name: &str) -> Option<&'static FilterColumn> {
    COLUMNS.iter().find(|column| column.name == name)
}

pub(super) static COLUMNS: &[FilterColumn] = &[
    count("flow_id", |x| Some(x.flow.0.into())),
    address("client", |x| x.endpoints.client),
    count("client_port", |x| Some(x.endpoints.client.port().into())),
    address("server", |x| x.endpoints.server),
    count("server_port", |x| Some(x.endpoints.server.port().into())),
    named("protocol", protocols, &[], false, |x, context| context.shown(x.command.protocol())),
    scalar("dialect", ScalarUnit::Dialect, |x| x.dialect.map(rank)),
    named("command", commands, &["SMB_COM_"], true, |x, context| context.shown(x.command)),
    named("subcommand", subcommands, &["TRANS2_", "NT_TRANSACT_", "TRANS_", "FSCTL_"], true, |x, context| {
        x.subcommand.and_then(|subcommand| context.shown(subcommand))
    }),
    count("message_id", |x| x.message_id.map(i128::from)),
    count("session_id", |x| x.session_id.map(i128::from)),
    text("user", |x, _| x.user.as_deref()),
    count("tree_id", |x| x.tree_id.map(i128::from)),
    text("share", |x, _| x.share.as_deref()),
    text("file_id", |x, context| x.file_id.and_then(|id| context.shown(id))),
    path("path", |x, _| x.path.as_deref().map(derived::below_share)),
    named("status", statuses, &["STATUS_"], true, |x, context| x.status.and_then(|status| context.shown(status))),
    text("capture", |x, context| context.capture(x.request).or(context.capture(x.response))),
    count("request_first_packet", |x| packet(x.request.first)),
    count("request_last_packet", |x| packet(x.request.last)),
    count("response_first_packet", |x| packet(x.response.first)),
    count("response_last_packet", |x| packet(x.response.last)),
    count("request_first_ns", |x| time(x.request.first)),
    count("request_last_ns", |x| time(x.request.last)),
    count("interim_ns", |x| time(x.interim)),
    count("response_first_ns", |x| time(x.response.first)),
    count("response_last_ns", |x| time(x.response.last)),
    scalar("request_bytes", ScalarUnit::Bytes, |x| Some(x.request.bytes.into())),
    scalar("response_bytes", ScalarUnit::Bytes, |x| Some(x.response.bytes.into())),
    scalar("offset", ScalarUnit::Bytes, |x| x.offset.map(i128::from)),
    scalar("length", ScalarUnit::Bytes, |x| x.length.map(i128::from)),
    flag("compounded", |x| x.compounded),
    flag("signed", |x| x.signed),
    flag("encrypted", |x| x.encrypted),
    named("outcome", outcomes, &[], false, |x, _| Some(x.outcome.name())),
    count("request_packets", |x| Some(x.request.packets.into())),
    count("response_packets", |x| Some(x.response.packets.into())),
    count("retransmitted", |x| Some(x.retransmitted.into())),
    named("group", groups, &[], false, |x, _| Some(x.group.name())),
    text("response_capture", |x, context| {
        let request = context.capture(x.request);
        context.capture(x.response).filter(|response| request.is_some_and(|request| request != *response))
    }),
    count("response_time_ns", |x| nanos(x, TimeKind::ResponseTime)),
    count("service_time_ns", |x| nanos(x, TimeKind::ServiceTime)),
    count("server_time_ns", |x| nanos(x, TimeKind::ServerTime)),
    count("retransmission_delay_ns", |x| nanos(x, TimeKind::RetransmissionDelay)),
    count("think_time_ns", |x| nanos(x, TimeKind::ThinkTime)),
    text("process", |x, _| x.process.as_deref()),
    // Derived columns, absent from the table.
    scalar("time", ScalarUnit::Time, |x| x.start().map(|time| time.0.into())),
    scalar("request_first", ScalarUnit::Time, |x| time(x.request.first)),
    scalar("request_last", ScalarUnit::Time, |x| time(x.request.last)),
    scalar("interim", ScalarUnit::Time, |x| time(x.interim)),
    scalar("response_first", ScalarUnit::Time, |x| time(x.response.first)),
    scalar("response_last", ScalarUnit::Time, |x| time(x.response.last)),
    scalar("response_time", ScalarUnit::Duration, |x| nanos(x, TimeKind::ResponseTime)),
    scalar("service_time", ScalarUnit::Duration, |x| nanos(x, TimeKind::ServiceTime)),
    scalar("server_time", ScalarUnit::Duration, |x| nanos(x, TimeKind::ServerTime)),
    scalar("request_transfer", ScalarUnit::Duration, |x| nanos(x, TimeKind::RequestTransfer)),
    scalar("response_transfer", ScalarUnit::Duration, |x| nanos(x, TimeKind::ResponseTransfer)),
    scalar("srt", ScalarUnit::Duration, |x| nanos(x, TimeKind::Srt)),
    scalar("retransmission_delay", ScalarUnit::Duration, |x| nanos(x, TimeKind::RetransmissionDelay)),
    scalar("think_time", ScalarUnit::Duration, |x| nanos(x, TimeKind::ThinkTime)),
    scalar("size", ScalarUnit::Bytes, |x| Some(derived::size(x).into())),
    path("directory", |x, _| x.path.as_deref().map(derived::directory)),
    text("extension", |x, _| x.path.as_deref().map(derived::extension)),
    flag("error", derived::failed),
];

type ScalarOf = fn(&Exchange) -> Option<i128>;
type TextOf = for<'a> fn(&'a Exchange, &'a mut FilterContext) -> Option<&'a str>;

const fn flag(name: &'static str, get: fn(&Exchange) -> bool) -> FilterColumn {
    FilterColumn { name, value: ColumnAccessor::Flag(get) }
}

const fn scalar(name: &'static str, unit: ScalarUnit, get: ScalarOf) -> FilterColumn {
    FilterColumn { name, value: ColumnAccessor::Scalar(unit, get) }
}

const fn count(name: &'static str, get: ScalarOf) -> FilterColumn {
    scalar(name, ScalarUnit::Count, get)
}

const fn address(name: &'static str, get: fn(&Exchange) -> SocketAddr) -> FilterColumn {
    FilterColumn { name, value: ColumnAccessor::Address(get) }
}

const fn text(name: &'static str, get: TextOf) -> FilterColumn {
    FilterColumn { name, value: ColumnAccessor::Text(TextDomain::Any, get) }
}

const fn path(name: &'static str, get: TextOf) -> FilterColumn {
    FilterColumn { name, value: ColumnAccessor::Text(TextDomain::Path, get) }
}

const fn named(
    name: &'static str,
    all: fn() -> Vec<String>,
    prefixes: &'static [&'static str],
    codes: bool,
    get: TextOf,
) -> FilterColumn {
    FilterColumn { name, value: ColumnAccessor::Text(TextDomain::Known { all, prefixes, codes }, get) }
}

impl FilterContext {
    fn shown(&mut self, value: impl Display) -> Option<&str> {
        self.scratch.clear();
        write!(self.scratch, "{value}").ok()?;
        Some(&self.scratch)
    }

    fn capture(&self, half: Half) -> Option<&str> {
        let stamp = half.first.or(half.last)?;
        self.captures.get(usize::from(stamp.packet.capture().0)).map(String::as_str)
    }
}

fn packet(stamp: Option<Stamp>) -> Option<i128> {
    stamp.map(|stamp| stamp.packet.number().into())
}

fn time(stamp: Option<Stamp>) -> Option<i128> {
    stamp.map(|stamp| stamp.time.0.into())
}

fn nanos(exchange: &Exchange, kind: TimeKind) -> Option<i128> {
    exchange.time(kind).map(|time| time.0.into())
}

fn names_of<T: ToString>(known: impl IntoIterator<Item = T>) -> Vec<String> {
    known.into_iter().map(|value| value.to_string()).collect()
}

fn protocols() -> Vec<String> {
    names_of([Protocol::Smb1, Protocol::Smb2])
}

fn commands() -> Vec<String> {
    names_of(Command::known())
}

fn subcommands() -> Vec<String> {
    names_of(Subcommand::known())
}

fn statuses() -> Vec<String> {
    names_of(ResponseStatus::known())
}

fn outcomes() -> Vec<String> {
    names_of(ExchangeOutcome::ALL)
}

fn groups() -> Vec<String> {
    names_of(CommandGroup::ALL)
}
