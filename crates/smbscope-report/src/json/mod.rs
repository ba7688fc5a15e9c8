//! The report as one JSON object, `smbscope.report/1`, described by `schema/smbscope.report-1.schema.json`.
//!
//! Times are integers in nanoseconds; what is unknown or absent is `null`. The order of keys and entries is fixed.
//!
//! What a comparison needs is read back by the same types; the rest is written only. What was not always there may be
//! missing.

mod caching;
pub(crate) mod entries;
pub(crate) mod episodes;
pub(crate) mod escaped;
mod offers;
pub(crate) mod slices;
pub(crate) mod waits;

use crate::Report;
use crate::document::{DocumentKind, Generator};
use caching::CachingEntry;
use entries::{CommandEntry, ConnectionEntry, EntityEntry, GroupEntry, ReportTimeline, Totals};
use episodes::{BARS_MAX, EpisodeEntry, WhatIf};
pub use escaped::line;
use offers::{NegotiationEntry, NegotiationIndex, Smb1Usage};
use serde::{Deserialize, Serialize};
use smbscope_diagnose::Answer;
use smbscope_model::{CaptureInfo, Quality, SkippedPackets, UntimedShare};
use smbscope_stats::{Concurrency, FileKey, HeatMap};
use std::borrow::Cow;
use std::io::{self, Write};
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use waits::{SlowExchange, TimeSplitEntry};

/// The value of the key `schema`.
pub const SCHEMA: &str = "smbscope.report/1";

pub(crate) const KIND: DocumentKind =
    DocumentKind { schema: SCHEMA, advice: "give a report made with analyze --format json" };

/// Writes the report, indented, with a line end after it.
pub fn write(report: &Report, out: impl Write) -> io::Result<()> {
    escaped::write_indented(&ReportDocument::within(report, usize::MAX), out)
}

/// The array `captures` alone, in one line.
pub(crate) fn captures(report: &Report) -> serde_json::Result<String> {
    serde_json::to_string(&report.captures)
}

/// The object `quality` alone, in one line.
pub(crate) fn quality(report: &Report) -> serde_json::Result<String> {
    serde_json::to_string(&QualityEntry::new(report))
}

/// What `smbscope analyze --format json` prints. All times are integers in nanoseconds, points in time since the Unix
/// epoch; null is unknown or, for a statistic, not supported by enough values.
#[derive(Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(crate) struct ReportDocument<'a> {
    #[serde(skip_deserializing)]
    #[cfg_attr(feature = "schema", schemars(extend("const" = SCHEMA)))]
    schema: &'static str,
    pub(crate) generator: Generator,
    pub(crate) title: Option<Cow<'a, str>>,
    /// The expression of --filter, where the statistics are about chosen exchanges only; docs/filter.md describes it.
    /// Captures, quality and connections are those of the whole.
    pub(crate) filter: Option<Cow<'a, str>>,
    /// How many exchanges the filter chose, of how many.
    #[serde(skip_deserializing)]
    matched: Option<Matched>,
    /// The captures, in the order in which exchanges number them.
    pub(crate) captures: Cow<'a, [CaptureInfo]>,
    pub(crate) quality: QualityEntry<'a>,
    pub(crate) totals: Totals,
    /// Why users wait, whose it is, and what to do.
    #[serde(skip_deserializing)]
    pub(crate) answer: Answer,
    /// SMB1 in use: by whom, on which shares; null where nobody uses it.
    #[serde(skip_deserializing)]
    smb1: Option<Smb1Usage>,
    /// Bursts of work of single clients, in the order of time.
    episodes: Vec<EpisodeEntry>,
    /// With --episode its commands, in the order of time, the first 5,000.
    #[serde(skip_deserializing)]
    waterfall: Vec<SlowExchange>,
    /// With --what-if how long the episode would take.
    #[serde(skip_deserializing)]
    what_if: Vec<WhatIf>,
    /// Where the time went, summed over all connections.
    #[serde(skip_deserializing)]
    time_split: TimeSplitEntry,
    /// What both sides of the connections offered when they negotiated, and what came of it; those of most connections
    /// first.
    #[serde(skip_deserializing)]
    negotiations: Vec<NegotiationEntry>,
    /// TCP connections that carried SMB.
    pub(crate) connections: Vec<ConnectionEntry<'a>>,
    /// By command; expected waits of a command are an entry of their own, with group Waiting.
    pub(crate) commands: Vec<CommandEntry>,
    /// By operation group; the entries add up, Other holds its parts.
    pub(crate) groups: Vec<GroupEntry>,
    #[serde(skip_deserializing)]
    shares: Vec<EntityEntry<ShareName<'a>>>,
    pub(crate) files: Vec<EntityEntry<FileName>>,
    pub(crate) clients: Vec<EntityEntry<ClientName>>,
    #[serde(skip_deserializing)]
    servers: Vec<EntityEntry<ServerName>>,
    #[serde(skip_deserializing)]
    users: Vec<EntityEntry<UserName>>,
    #[serde(skip_deserializing)]
    caching: CachingEntry,
    /// The commands divided by --by; null without it.
    pub(crate) slices: Option<slices::SliceListing>,
    #[serde(skip_deserializing)]
    timeline: ReportTimeline,
    pub(crate) heatmap: Cow<'a, HeatMap>,
    #[serde(skip_deserializing)]
    concurrency: Cow<'a, [Concurrency]>,
    /// The slowest exchanges, slowest first, at most 100.
    pub(crate) slowest: Vec<SlowExchange>,
    #[serde(skip_deserializing)]
    omitted: Omitted,
    pub(crate) warnings: Cow<'a, [String]>,
}

/// How many exchanges the filter chose, of how many.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct Matched {
    exchanges: u64,
    of: u64,
}

/// What the captures could not show: in one sentence, and counted by reason.
#[derive(Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(rename = "Quality"))]
pub(crate) struct QualityEntry<'a> {
    /// Which share of the commands were not timed because the capture is damaged, and why, in plain English.
    pub(crate) sentence: String,
    /// That share in percent: commands seen in part, and those of which the capture shows nothing (commands_unseen),
    /// which are an estimate where the bounds differ.
    not_timed: UntimedShare,
    #[serde(flatten)]
    pub(crate) counters: Cow<'a, Quality>,
    /// Packets that are no TCP, by protocol, most packets first, at most 33 entries; they add up to `not_tcp`.
    #[serde(skip_deserializing)]
    skipped: Vec<SkippedProtocolEntry>,
}

/// Packets of a protocol that is not read.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct SkippedProtocolEntry {
    /// Whose number it is.
    #[cfg_attr(feature = "schema", schemars(schema_with = "crate::schema::layers"))]
    layer: &'static str,
    /// The number, where there is one; of UDP the port that is known, or else the lower one.
    number: Option<u32>,
    /// The usual name.
    name: Option<&'static str>,
    #[cfg_attr(feature = "schema", schemars(range(min = 1)))]
    packets: u64,
}

/// Entries that were left out of lists to bound the size of the document (HTML only): the least by total response time.
#[derive(Serialize, Default)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct Omitted {
    connections: usize,
    shares: usize,
    files: usize,
    clients: usize,
    servers: usize,
    users: usize,
}

impl Omitted {
    fn new(report: &Report, listed: usize) -> Omitted {
        let aggregate = &report.aggregate;
        let left = |length: usize| length.saturating_sub(listed);
        Omitted {
            connections: left(report.connections.len()),
            shares: left(aggregate.shares.entries.len()),
            files: left(aggregate.files.entries.len()),
            clients: left(aggregate.clients.entries.len()),
            servers: left(aggregate.servers.entries.len()),
            users: left(aggregate.users.entries.len()),
        }
    }
}

/// The connections that had commands outstanding for longest, in the order of their first packet.
fn busiest(report: &Report, listed: usize) -> impl Iterator<Item = &smbscope_model::ConnectionSummary> {
    let busy = |flow| report.aggregate.splits.connection(flow).map(|split| split.busy);
    let mut chosen: Vec<&smbscope_model::ConnectionSummary> = report.connections.iter().collect();
    if chosen.len() > listed {
        chosen.sort_by_key(|connection| std::cmp::Reverse(busy(connection.flow)));
        chosen.truncate(listed);
        chosen.sort_by_key(|connection| connection.flow);
    }
    chosen.into_iter()
}

impl QualityEntry<'_> {
    fn new(report: &Report) -> QualityEntry<'_> {
        let skipped = |skipped: &SkippedPackets| SkippedProtocolEntry {
            layer: skipped.protocol.layer(),
            number: skipped.protocol.number(),
            name: skipped.protocol.name(),
            packets: skipped.packets,
        };
        QualityEntry {
            sentence: report.quality_sentence(),
            not_timed: report.not_timed(),
            counters: Cow::Borrowed(&report.quality),
            skipped: report.skipped.iter().map(skipped).collect(),
        }
    }
}

/// The name of what was added up because there was no room to tell it apart.
const OTHER: &str = "(other)";

#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(rename = "Share"))]
struct ShareName<'a> {
    share: &'a str,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(rename = "File"))]
pub(crate) struct FileName {
    share: Option<Arc<str>>,
    /// Path below the share; an ellipsis (…) at the end stands for what the capture does not hold.
    pub(crate) path: Arc<str>,
}

impl FileName {
    pub(crate) fn new(FileKey { share, path }: &FileKey) -> FileName {
        FileName { share: share.clone(), path: path.clone() }
    }

    pub(crate) fn other() -> FileName {
        FileName { share: None, path: OTHER.into() }
    }
}

#[derive(Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(rename = "Client"))]
pub(crate) struct ClientName {
    /// IP address.
    client: String,
    /// Sum over its connections; null for what is not listed.
    time_split: Option<TimeSplitEntry>,
}

#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(rename = "Server"))]
struct ServerName {
    /// IP address.
    server: String,
    server_port: Option<u16>,
    /// Sum over its connections; null for what is not listed.
    time_split: Option<TimeSplitEntry>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(rename = "User"))]
pub(crate) struct UserName {
    user: Arc<str>,
}

impl UserName {
    pub(crate) fn new(user: &Arc<str>) -> UserName {
        UserName { user: user.clone() }
    }

    pub(crate) fn other() -> UserName {
        UserName { user: OTHER.into() }
    }
}

impl<'a> ReportDocument<'a> {
    /// The document; lists of connections, files and others hold `listed` entries at most, those that took longest.
    pub(crate) fn within(report: &'a Report, listed: usize) -> ReportDocument<'a> {
        let aggregate = &report.aggregate;
        let splits = &aggregate.splits;
        let negotiated = NegotiationIndex::new(report);
        let connection = |connection| ConnectionEntry::new(connection, splits, &negotiated);
        let capture_names: Vec<Arc<str>> = report.captures.iter().map(|capture| capture.name.as_str().into()).collect();
        ReportDocument {
            schema: SCHEMA,
            generator: Generator::new(&report.version),
            title: report.title.as_deref().map(Cow::Borrowed),
            filter: report.filter.as_ref().map(|filter| filter.expression.as_str().into()),
            matched: report
                .filter
                .as_ref()
                .map(|filter| Matched { exchanges: filter.matched, of: filter.whole.exchanges }),
            captures: report.captures.as_slice().into(),
            quality: QualityEntry::new(report),
            totals: Totals::new(report),
            answer: report.explanation.answer.clone().into_plain(),
            smb1: Smb1Usage::from_report(report),
            episodes: EpisodeEntry::all(&report.explanation.episodes),
            waterfall: report
                .explanation
                .waterfall
                .iter()
                .take(BARS_MAX)
                .map(|exchange| SlowExchange::new(exchange, &capture_names))
                .collect(),
            what_if: report.explanation.what_if.iter().map(WhatIf::new).collect(),
            time_split: TimeSplitEntry::new(&splits.whole),
            connections: busiest(report, listed).map(connection).collect(),
            negotiations: negotiated.entries,
            commands: aggregate.commands.iter().map(CommandEntry::new).collect(),
            groups: GroupEntry::all(aggregate),
            shares: EntityEntry::table(
                &aggregate.shares,
                listed,
                |share| ShareName { share },
                || ShareName { share: OTHER },
            ),
            files: EntityEntry::table(&aggregate.files, listed, FileName::new, FileName::other),
            clients: EntityEntry::table(
                &aggregate.clients,
                listed,
                |client: &IpAddr| ClientName {
                    client: client.to_string(),
                    time_split: splits.client(client).map(TimeSplitEntry::new),
                },
                || ClientName { client: OTHER.to_owned(), time_split: None },
            ),
            servers: EntityEntry::table(
                &aggregate.servers,
                listed,
                |server: &SocketAddr| ServerName {
                    server: server.ip().to_string(),
                    server_port: Some(server.port()),
                    time_split: splits.server(server).map(TimeSplitEntry::new),
                },
                || ServerName { server: OTHER.to_owned(), server_port: None, time_split: None },
            ),
            users: EntityEntry::table(&aggregate.users, listed, UserName::new, UserName::other),
            caching: CachingEntry::new(&aggregate.caching, listed),
            slices: report.aggregate.slices.as_ref().map(slices::SliceListing::new),
            timeline: ReportTimeline::new(&aggregate.timeline),
            heatmap: Cow::Borrowed(&aggregate.heat_map),
            concurrency: aggregate.concurrency.as_slice().into(),
            slowest: aggregate.slowest.iter().map(|exchange| SlowExchange::new(exchange, &capture_names)).collect(),
            omitted: Omitted::new(report, listed),
            warnings: report.warnings.as_slice().into(),
        }
    }
}
