//! The report as one JSON object, `smbscope.report/1`, described by `schema/smbscope.report-1.schema.json`.
//!
//! Times are integers in nanoseconds; what is unknown or absent is `null`. The order of keys and entries is fixed.

mod entries;
mod slices;

use crate::Report;
use entries::{Capture, Connection, Entity, Generator, Group, Row, Timeline, Totals};
use serde::Serialize;
use smbscope_model::Quality;
use smbscope_stats::FileKey;
use std::io::{self, Write};
use std::net::{IpAddr, SocketAddr};

/// The value of the key `schema`.
pub const SCHEMA: &str = "smbscope.report/1";

/// Writes the report, indented, with a line end after it.
pub fn write(report: &Report, mut out: impl Write) -> io::Result<()> {
    serde_json::to_writer_pretty(&mut out, &Document::of(report))?;
    out.write_all(b"\n")
}

#[derive(Serialize)]
struct Document<'a> {
    schema: &'static str,
    generator: Generator<'a>,
    title: Option<&'a str>,
    filter: Option<&'a str>,
    matched: Option<Matched>,
    captures: Vec<Capture<'a>>,
    quality: QualityEntry<'a>,
    totals: Totals<'a>,
    connections: Vec<Connection<'a>>,
    commands: Vec<entries::Command<'a>>,
    groups: Vec<Group<'a>>,
    shares: Vec<Entity<ShareName<'a>>>,
    files: Vec<Entity<FileName<'a>>>,
    clients: Vec<Entity<ClientName>>,
    servers: Vec<Entity<ServerName>>,
    users: Vec<Entity<UserName<'a>>>,
    slices: Option<slices::Slices<'a>>,
    timeline: Timeline,
    findings: [(); 0],
    warnings: &'a [String],
}

/// How many exchanges a filter chose.
#[derive(Serialize)]
struct Matched {
    exchanges: u64,
    of: u64,
}

#[derive(Serialize)]
struct QualityEntry<'a> {
    sentence: String,
    #[serde(flatten)]
    counters: &'a Quality,
}

/// The name of what was added up because there was no room to tell it apart.
const OTHER: &str = "(other)";

#[derive(Serialize)]
struct ShareName<'a> {
    share: &'a str,
}

#[derive(Serialize)]
struct FileName<'a> {
    share: Option<&'a str>,
    path: &'a str,
}

#[derive(Serialize)]
struct ClientName {
    client: String,
}

#[derive(Serialize)]
struct ServerName {
    server: String,
    server_port: Option<u16>,
}

#[derive(Serialize)]
struct UserName<'a> {
    user: &'a str,
}

impl<'a> Document<'a> {
    fn of(report: &'a Report) -> Document<'a> {
        let aggregate = &report.aggregate;
        Document {
            schema: SCHEMA,
            generator: Generator { name: "smbscope", version: &report.version },
            title: report.title.as_deref(),
            filter: report.filter.as_ref().map(|filter| filter.expression.as_str()),
            matched: report
                .filter
                .as_ref()
                .map(|filter| Matched { exchanges: filter.matched, of: filter.whole.exchanges }),
            captures: report.captures.iter().map(Capture::of).collect(),
            quality: QualityEntry { sentence: report.quality_sentence(), counters: &report.quality },
            totals: Totals {
                commands: aggregate.count,
                untimed: aggregate.untimed,
                outcomes: entries::outcomes(&aggregate.outcomes),
                first_ns: report.first,
                last_ns: report.last,
                elapsed_ns: report.first.zip(report.last).map(|(first, last)| last - first),
                headline: Row::of(&aggregate.total),
            },
            connections: report.connections.iter().map(Connection::of).collect(),
            commands: aggregate.commands.iter().map(entries::Command::of).collect(),
            groups: Group::all(aggregate),
            shares: Entity::table(&aggregate.shares, |share| ShareName { share }, || ShareName { share: OTHER }),
            files: Entity::table(
                &aggregate.files,
                |FileKey { share, path }| FileName { share: share.as_deref(), path },
                || FileName { share: None, path: OTHER },
            ),
            clients: Entity::table(
                &aggregate.clients,
                |client: &IpAddr| ClientName { client: client.to_string() },
                || ClientName { client: OTHER.to_owned() },
            ),
            servers: Entity::table(
                &aggregate.servers,
                |server: &SocketAddr| ServerName { server: server.ip().to_string(), server_port: Some(server.port()) },
                || ServerName { server: OTHER.to_owned(), server_port: None },
            ),
            users: Entity::table(&aggregate.users, |user| UserName { user }, || UserName { user: OTHER }),
            slices: report.slices.as_ref().map(slices::Slices::of),
            timeline: Timeline::of(&aggregate.timeline),
            findings: [],
            warnings: &report.warnings,
        }
    }
}
