//! The `smbscope.report/1` document, as described by `schema/smbscope.report-1.schema.json`.
//!
//! Times are integers in nanoseconds; unknown or absent values are `null`. Keys and entries have a fixed order.
//! Comparisons parse some parts of the document with the same types. Parts added later may be missing.

pub(crate) mod entries;
pub(crate) mod listings;
pub(crate) mod offers;

use crate::Report;
pub use crate::document::line;
use crate::document::{DocumentKind, Generator, write_indented};
use entries::{CommandEntry, ConnectionEntry, EntityEntry, GroupEntry, ReportTimeline, Totals};
use listings::{BARS_MAX, EpisodeEntry, SliceListing, SlowExchange};
use offers::{NegotiationEntry, NegotiationIndex, Smb1Usage};
use serde::{Deserialize, Serialize};
use smbscope_diagnose::Answer;
use smbscope_model::{CaptureInfo, EncapsulatedTraffic, Quality, SkippedPackets, UntimedShare};
use smbscope_stats::sides::SidesFigures;
use smbscope_stats::{CachingFigures, Concurrency, FileKey, HeatMap, OTHER, TimeSplit};
use std::borrow::Cow;
use std::io::{self, Write};
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

pub const SCHEMA: &str = "smbscope.report/1";

pub(crate) const KIND: DocumentKind =
    DocumentKind { schema: SCHEMA, advice: "give a report made with analyze --format json" };

pub fn write(report: &Report, out: impl Write) -> io::Result<()> {
    write_indented(&ReportDocument::within(report, usize::MAX), out)
}

pub(crate) fn captures(report: &Report) -> serde_json::Result<String> {
    serde_json::to_string(&report.captures)
}

pub(crate) fn quality(report: &Report) -> serde_json::Result<String> {
    serde_json::to_string(&QualityEntry::new(report))
}

/// Output of `smbscope analyze --format json`. Times are integers in nanoseconds, timestamps count from the Unix epoch.
/// Null is unknown or, for a statistic, based on too few values.
#[derive(Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(crate) struct ReportDocument<'a> {
    #[serde(skip_deserializing)]
    #[cfg_attr(feature = "schema", schemars(extend("const" = SCHEMA)))]
    schema: &'static str,
    pub(crate) generator: Generator,
    pub(crate) title: Option<Cow<'a, str>>,
    /// Expression of --filter, as described in docs/filter.md. Null if the statistics cover all exchanges. Captures,
    /// quality and connections always cover everything.
    pub(crate) filter: Option<Cow<'a, str>>,
    /// Exchanges selected by the filter.
    #[serde(skip_deserializing)]
    matched: Option<Matched>,
    /// Captures in the order in which exchanges number them.
    pub(crate) captures: Cow<'a, [CaptureInfo]>,
    pub(crate) quality: QualityEntry<'a>,
    pub(crate) totals: Totals,
    /// Cause of waits, culprit, and advice.
    #[serde(skip_deserializing)]
    pub(crate) answer: Answer,
    /// SMB1 in use: clients, servers, users and shares. Null if SMB1 is not in use.
    #[serde(skip_deserializing)]
    smb1: Option<Smb1Usage>,
    /// Bursts of work of single clients, in time order.
    episodes: Vec<EpisodeEntry>,
    /// Commands of the episode selected by --episode, in time order, the first 5,000.
    #[serde(skip_deserializing)]
    waterfall: Vec<SlowExchange>,
    /// Time by phase, summed over all connections.
    pub(crate) time_split: TimeSplit,
    /// Ways between the capture points, if there are several, such as client and server. All other figures then come
    /// from the point nearest to the client. Absent for captures of one point.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) sides: Option<Cow<'a, SidesFigures>>,
    /// Offers of both sides in protocol negotiation and the outcome, most connections first.
    pub(crate) negotiations: Vec<NegotiationEntry>,
    /// TCP connections that carried SMB.
    pub(crate) connections: Vec<ConnectionEntry<'a>>,
    /// By command. Expected waits of a command are a separate entry with the group Waiting.
    pub(crate) commands: Vec<CommandEntry>,
    /// By operation group. The entries add up; `Other` holds its parts.
    pub(crate) groups: Vec<GroupEntry>,
    #[serde(skip_deserializing)]
    shares: Vec<EntityEntry<ShareName<'a>>>,
    pub(crate) files: Vec<EntityEntry<FileKey>>,
    pub(crate) clients: Vec<EntityEntry<ClientName>>,
    #[serde(skip_deserializing)]
    servers: Vec<EntityEntry<ServerName>>,
    #[serde(skip_deserializing)]
    users: Vec<EntityEntry<UserName>>,
    #[serde(skip_deserializing)]
    caching: Cow<'a, CachingFigures>,
    /// Commands grouped by --by. Null without it.
    pub(crate) slices: Option<SliceListing>,
    #[serde(skip_deserializing)]
    timeline: ReportTimeline,
    pub(crate) heatmap: Cow<'a, HeatMap>,
    #[serde(skip_deserializing)]
    concurrency: Cow<'a, [Concurrency]>,
    /// Slowest exchanges, slowest first, at most 100.
    pub(crate) slowest: Vec<SlowExchange>,
    #[serde(skip_deserializing)]
    omitted: Omitted,
    pub(crate) warnings: Cow<'a, [String]>,
}

/// Exchanges selected by the filter, out of all.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct Matched {
    exchanges: u64,
    of: u64,
}

/// Gaps in the captures: in one sentence, and counted by reason.
#[derive(Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(rename = "Quality"))]
pub(crate) struct QualityEntry<'a> {
    /// Share of commands not timed because of gaps in the capture, with the reason, in plain English.
    pub(crate) sentence: String,
    /// That share in percent: commands seen in part, and commands missing completely (`commands_unseen`), which are an
    /// estimate if the bounds differ.
    not_timed: UntimedShare,
    #[serde(flatten)]
    pub(crate) counters: Cow<'a, Quality>,
    /// Packets other than TCP by protocol, most packets first, at most 33 entries. They add up to `not_tcp`.
    #[serde(skip_deserializing)]
    skipped: Vec<SkippedProtocolEntry>,
    /// SMB connections in other headers than Ethernet and IP (link types, tags, tunnels), most packets first.
    #[serde(skip_deserializing)]
    encapsulations: Cow<'a, [EncapsulatedTraffic]>,
}

/// Packets of a protocol that is not analysed.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct SkippedProtocolEntry {
    /// Layer that assigns the number.
    #[cfg_attr(feature = "schema", schemars(schema_with = "crate::schema::layers"))]
    layer: &'static str,
    /// Protocol number, if there is one. For UDP the well-known port, or the lower one.
    number: Option<u32>,
    /// Common name.
    name: Option<&'static str>,
    #[cfg_attr(feature = "schema", schemars(range(min = 1)))]
    packets: u64,
}

/// Number of entries left out of lists to limit the size of the document (HTML only), those with the shortest total
/// response time.
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

/// Returns the `listed` connections with the longest busy time, in the order of their first packet.
fn busiest(report: &Report, listed: usize) -> impl Iterator<Item = &smbscope_model::ConnectionSummary> {
    let busy = |flow| report.aggregate.splits.connection(flow).map(|split| split.busy_ns);
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
            encapsulations: report.encapsulations.as_slice().into(),
        }
    }
}

#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(rename = "Share"))]
struct ShareName<'a> {
    share: &'a str,
}

/// Returns the name of the sum of all files that are not listed.
pub(crate) fn other_files() -> FileKey {
    FileKey { share: None, path: OTHER.into() }
}

#[derive(Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(rename = "Client"))]
pub(crate) struct ClientName {
    /// IP address.
    client: String,
    /// Sum over the client's connections. Null for the entry `(other)`.
    time_split: Option<TimeSplit>,
}

#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(rename = "Server"))]
struct ServerName {
    /// IP address.
    server: String,
    server_port: Option<u16>,
    /// Sum over the server's connections. Null for the entry `(other)`.
    time_split: Option<TimeSplit>,
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
    /// Creates the document. Lists of connections, files etc. keep the `listed` entries that took longest.
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
            episodes: EpisodeEntry::all(
                &report.explanation.episodes,
                &capture_names,
                if report.explanation.waterfall.is_empty() { BARS_MAX } else { 0 },
            ),
            waterfall: report
                .explanation
                .waterfall
                .iter()
                .take(BARS_MAX)
                .map(|exchange| SlowExchange::new(exchange, &capture_names))
                .collect(),
            time_split: splits.whole,
            sides: report.sides.as_ref().map(Cow::Borrowed),
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
            files: EntityEntry::table(&aggregate.files, listed, FileKey::clone, other_files),
            clients: EntityEntry::table(
                &aggregate.clients,
                listed,
                |client: &IpAddr| ClientName { client: client.to_string(), time_split: splits.client(client).copied() },
                || ClientName { client: OTHER.to_owned(), time_split: None },
            ),
            servers: EntityEntry::table(
                &aggregate.servers,
                listed,
                |server: &SocketAddr| ServerName {
                    server: server.ip().to_string(),
                    server_port: Some(server.port()),
                    time_split: splits.server(server).copied(),
                },
                || ServerName { server: OTHER.to_owned(), server_port: None, time_split: None },
            ),
            users: EntityEntry::table(&aggregate.users, listed, UserName::new, UserName::other),
            caching: entries::caching(&aggregate.caching, listed),
            slices: report.aggregate.slices.as_ref().map(SliceListing::new),
            timeline: ReportTimeline::new(&aggregate.timeline),
            heatmap: Cow::Borrowed(&aggregate.heat_map),
            concurrency: aggregate.concurrency.as_slice().into(),
            slowest: aggregate.slowest.iter().map(|exchange| SlowExchange::new(exchange, &capture_names)).collect(),
            omitted: Omitted::new(report, listed),
            warnings: report.warnings.as_slice().into(),
        }
    }
}
