//! Slices in the JSON report and in load points; slowest exchanges, and episodes in the JSON report.

use crate::format::{bytes, clean, counted, shorten_path};
use serde::de::{Error, MapAccess, Visitor};
use serde::ser::SerializeMap;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use smbscope_diagnose::{Episode, EpisodeKind};
use smbscope_model::{CommandGroup, Exchange, Nanos, Protocol, Stamp, TimeKind, Timestamp};
use smbscope_stats::{DurationStatistics, Field, SliceFieldValue, SliceStatistics};
use std::fmt;
use std::sync::Arc;

/// Most slices listed per load point. The rest is summed up in `other`.
const SLICES_LISTED: usize = 1_000;

/// Commands grouped by --by.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(crate) struct SliceListing {
    #[cfg_attr(feature = "schema", schemars(schema_with = "crate::schema::dimensions"))]
    pub(crate) by: Vec<String>,
    #[cfg_attr(feature = "schema", schemars(schema_with = "crate::schema::sorts"))]
    pub(crate) sort: String,
    /// Upper bound of the total wait of a key without an entry. 0 while all keys have an entry, which holds up to
    /// 20,000 keys.
    #[cfg_attr(feature = "schema", schemars(range(min = 0)))]
    pub(crate) missed_at_most_ns: i64,
    /// Slices in the order of `sort`. At most 1,000 per load point.
    pub(crate) entries: Vec<SliceEntry>,
    /// Sum of the slices that were evicted because of too many keys, or are not listed.
    pub(crate) other: Option<SliceFigures>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(crate) struct SliceEntry {
    /// Values of the dimensions. Null is unknown.
    #[cfg_attr(feature = "schema", schemars(schema_with = "crate::schema::slice_key"))]
    pub(crate) key: SliceEntryKey,
    /// Upper bound of this key's response time that is counted in `other`.
    #[cfg_attr(feature = "schema", schemars(range(min = 0)))]
    pub(crate) missed_at_most_ns: i64,
    #[serde(flatten)]
    pub(crate) figures: SliceFigures,
}

#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(crate) struct SliceFigures {
    /// Number of commands.
    pub(crate) count: u64,
    /// Commands with a response time: complete ones of the headline groups.
    pub(crate) timed: u64,
    /// Error responses.
    pub(crate) errors: u64,
    pub(crate) bytes_read: u64,
    pub(crate) bytes_written: u64,
    /// Total response time.
    pub(crate) response_time_sum_ns: i64,
    /// Response times. Percentiles are exact up to 256 values and within 1.6% above. Null for a sum of several slices.
    pub(crate) response_time: DurationStatistics,
    /// Time from the last packet of the request to the first of the response, with the same precision.
    pub(crate) service_time: DurationStatistics,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct SliceEntryKey(pub(crate) Vec<(Field, SliceEntryValue)>);

#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(untagged)]
pub(crate) enum SliceEntryValue {
    Number(u64),
    Text(String),
    Unknown,
}

impl SliceEntryValue {
    fn from_part(part: &SliceFieldValue) -> SliceEntryValue {
        match part {
            SliceFieldValue::Unknown => SliceEntryValue::Unknown,
            SliceFieldValue::Flow(flow) => SliceEntryValue::Number(flow.0),
            SliceFieldValue::Size(least) => SliceEntryValue::Number(*least),
            part => SliceEntryValue::Text(text(part)),
        }
    }
}

impl Serialize for SliceEntryKey {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut key = serializer.serialize_map(Some(self.0.len()))?;
        self.0.iter().try_for_each(|(field, value)| key.serialize_entry(field.name(), value))?;
        key.end()
    }
}

impl<'de> Deserialize<'de> for SliceEntryKey {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<SliceEntryKey, D::Error> {
        struct Fields;
        impl<'de> Visitor<'de> for Fields {
            type Value = SliceEntryKey;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("the fields of a slice")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<SliceEntryKey, A::Error> {
                let mut key = Vec::new();
                while let Some((name, value)) = map.next_entry::<String, SliceEntryValue>()? {
                    let field = Field::named(&name);
                    key.push((field.ok_or_else(|| A::Error::custom(format!("{name} is not a field")))?, value));
                }
                Ok(SliceEntryKey(key))
            }
        }
        from.deserialize_map(Fields)
    }
}

impl SliceListing {
    pub(crate) fn new(slices: &smbscope_stats::DimensionBreakdown) -> SliceListing {
        let entry = |slice: &SliceStatistics| SliceEntry {
            key: SliceEntryKey(
                slices.fields.iter().copied().zip(slice.key.iter().map(SliceEntryValue::from_part)).collect(),
            ),
            missed_at_most_ns: Nanos::saturating(slice.missed_at_most_ns).0,
            figures: SliceFigures::new(slice),
        };
        SliceListing {
            by: slices.by.iter().map(|dimension| dimension.name().to_owned()).collect(),
            sort: slices.sort.name().to_owned(),
            missed_at_most_ns: Nanos::saturating(slices.missed_at_most_ns).0,
            entries: slices.entries.iter().map(entry).collect(),
            other: slices.other.as_ref().map(SliceFigures::new),
        }
    }

    /// Keeps the first slices and sums up the rest. Limits the size of load points, each of which has slices of its
    /// own.
    pub(crate) fn listed(mut self) -> SliceListing {
        let rest = self.entries.split_off(self.entries.len().min(SLICES_LISTED));
        if !rest.is_empty() {
            let rest = rest.iter().map(|entry| &entry.figures).chain(&self.other);
            self.other = Some(SliceFigures::sum(rest));
        }
        self
    }
}

impl SliceFigures {
    fn new(SliceStatistics { figures, service_time, .. }: &SliceStatistics) -> SliceFigures {
        SliceFigures {
            count: figures.count,
            timed: figures.timed,
            errors: figures.errors,
            bytes_read: figures.bytes_read,
            bytes_written: figures.bytes_written,
            response_time_sum_ns: Nanos::saturating(figures.response_time.sum_ns).0,
            response_time: figures.response_time,
            service_time: *service_time,
        }
    }

    /// Sums up slices. Percentiles can't be combined and stay None.
    pub(crate) fn sum<'s>(slices: impl IntoIterator<Item = &'s SliceFigures>) -> SliceFigures {
        let mut all = slices.into_iter().fold(SliceFigures::default(), |mut all, one| {
            all.count = all.count.saturating_add(one.count);
            all.timed = all.timed.saturating_add(one.timed);
            all.errors = all.errors.saturating_add(one.errors);
            all.bytes_read = all.bytes_read.saturating_add(one.bytes_read);
            all.bytes_written = all.bytes_written.saturating_add(one.bytes_written);
            all.response_time_sum_ns = all.response_time_sum_ns.saturating_add(one.response_time_sum_ns);
            all.response_time.max = all.response_time.max.max(one.response_time.max);
            all
        });
        let mean =
            i64::try_from(all.timed).ok().filter(|timed| *timed > 0).map(|timed| all.response_time_sum_ns / timed);
        all.response_time =
            DurationStatistics { count: all.timed, mean: mean.map(smbscope_model::Nanos), ..all.response_time };
        all
    }
}

/// Formats a value for programs. Unknown is empty.
fn text(part: &SliceFieldValue) -> String {
    match part {
        SliceFieldValue::Address(address) => address.to_string(),
        SliceFieldValue::Socket(address) => address.to_string(),
        SliceFieldValue::Text(text) => text.to_string(),
        SliceFieldValue::Command(command) => command.to_string(),
        SliceFieldValue::Group(group) => group.to_string(),
        SliceFieldValue::Dialect(dialect) => dialect.to_string(),
        SliceFieldValue::Flow(flow) => flow.0.to_string(),
        SliceFieldValue::Ends(client, server) => format!("{client} > {server}"),
        SliceFieldValue::Status(status) => status.to_string(),
        SliceFieldValue::Size(least) => least.to_string(),
        SliceFieldValue::Unknown => String::new(),
    }
}

/// One of the slowest exchanges, or a command of an episode. Expected waits are excluded.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(crate) struct SlowExchange {
    flow_id: u64,
    client: String,
    client_port: u16,
    server: String,
    server_port: u16,
    protocol: Protocol,
    pub(crate) command: String,
    subcommand: Option<String>,
    group: CommandGroup,
    user: Option<Arc<str>>,
    share: Option<Arc<str>>,
    pub(crate) path: Option<Arc<str>>,
    pub(crate) status: Option<String>,
    /// Name of the capture file with the request.
    capture: Option<Arc<str>>,
    /// Name of the capture file with the response, if it is another one.
    response_capture: Option<Arc<str>>,
    /// Packet numbers in that file as in Wireshark, from 1; 0 if not seen.
    #[cfg_attr(feature = "schema", schemars(with = "u64"))]
    request_first_packet: Option<u64>,
    #[cfg_attr(feature = "schema", schemars(with = "u64"))]
    request_last_packet: Option<u64>,
    #[cfg_attr(feature = "schema", schemars(with = "u64"))]
    response_first_packet: Option<u64>,
    #[cfg_attr(feature = "schema", schemars(with = "u64"))]
    response_last_packet: Option<u64>,
    #[cfg_attr(feature = "schema", schemars(with = "Timestamp"))]
    pub(crate) request_first_ns: Option<Timestamp>,
    #[cfg_attr(feature = "schema", schemars(with = "Nanos"))]
    pub(crate) response_time_ns: Option<Nanos>,
    request_transfer_ns: Option<Nanos>,
    pub(crate) service_time_ns: Option<Nanos>,
    server_time_ns: Option<Nanos>,
    response_transfer_ns: Option<Nanos>,
    retransmission_delay_ns: Option<Nanos>,
    request_bytes: u64,
    response_bytes: u64,
}

impl SlowExchange {
    pub(crate) fn new(exchange: &Exchange, captures: &[Arc<str>]) -> SlowExchange {
        let Exchange { endpoints, request, response, .. } = exchange;
        let packet = |stamp: Option<Stamp>| stamp.map(|stamp| stamp.packet.number());
        let file =
            |stamp: Option<Stamp>| stamp.and_then(|stamp| captures.get(usize::from(stamp.packet.capture().0))).cloned();
        let capture = file(request.first);
        SlowExchange {
            flow_id: exchange.flow.0,
            client: endpoints.client.ip().to_string(),
            client_port: endpoints.client.port(),
            server: endpoints.server.ip().to_string(),
            server_port: endpoints.server.port(),
            protocol: exchange.command.protocol(),
            command: exchange.command.to_string(),
            subcommand: exchange.subcommand.map(|subcommand| subcommand.to_string()),
            group: exchange.group,
            user: exchange.user.clone(),
            share: exchange.share.clone(),
            path: exchange.path.clone(),
            status: exchange.status.map(|status| status.to_string()),
            response_capture: file(response.first).filter(|name| Some(name) != capture.as_ref()),
            capture,
            request_first_packet: packet(request.first),
            request_last_packet: packet(request.last),
            response_first_packet: packet(response.first),
            response_last_packet: packet(response.last),
            request_first_ns: request.first.map(|stamp| stamp.time),
            response_time_ns: exchange.time(TimeKind::ResponseTime),
            request_transfer_ns: exchange.time(TimeKind::RequestTransfer),
            service_time_ns: exchange.time(TimeKind::ServiceTime),
            server_time_ns: exchange.time(TimeKind::ServerTime),
            response_transfer_ns: exchange.time(TimeKind::ResponseTransfer),
            retransmission_delay_ns: exchange.time(TimeKind::RetransmissionDelay),
            request_bytes: request.bytes,
            response_bytes: response.bytes,
        }
    }
}

/// Commands for time axes: of the selected episode, or of all episodes.
pub(super) const BARS_MAX: usize = 5_000;

/// Burst of work of one client. Its commands are less than 2 s apart, or further if the client has more than 64 bursts.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(rename = "Episode"))]
pub(crate) struct EpisodeEntry {
    /// Number for --episode, from 1.
    number: usize,
    client: String,
    /// Kind of work, guessed from the files used.
    kind: EpisodeKind,
    /// Program, document or settings opened most often.
    about: Option<Arc<str>>,
    /// Description in words.
    label: String,
    start_ns: Timestamp,
    end_ns: Timestamp,
    duration_ns: Nanos,
    /// Time with a command outstanding, summed over connections.
    waited_ns: Nanos,
    /// Rest of the duration.
    think_ns: Nanos,
    /// Number of commands; equal to round trips if they are sequential.
    commands: u64,
    opens: u64,
    /// Distinct paths opened; from 64 on an estimate (13% error).
    files: u64,
    bytes_read: u64,
    bytes_written: u64,
    /// Commands with a response time, without expected waits.
    timed: u64,
    /// The longest of these, longest first: up to 250, fewer if many clients or episodes share the room. The document
    /// lists 5,000 in all, of the episodes with the longest wait, or none if `waterfall` has commands.
    longest: Vec<SlowExchange>,
}

impl EpisodeEntry {
    /// Describes the episodes in their order, with at most `commands` commands in all.
    pub(super) fn all(episodes: &[Episode], captures: &[Arc<str>], commands: usize) -> Vec<EpisodeEntry> {
        let mut by_wait: Vec<usize> = (0..episodes.len()).collect();
        by_wait.sort_by_key(|at| std::cmp::Reverse(episodes[*at].waited));
        let (mut listed, mut left) = (vec![0; episodes.len()], commands);
        for at in by_wait {
            listed[at] = episodes[at].longest.len().min(left);
            left -= listed[at];
        }
        let entry = |(at, episode)| EpisodeEntry::new(at + 1, episode, captures, listed[at]);
        episodes.iter().enumerate().map(entry).collect()
    }

    fn new(number: usize, episode: &Episode, captures: &[Arc<str>], listed: usize) -> EpisodeEntry {
        EpisodeEntry {
            number,
            client: episode.client.to_string(),
            kind: episode.kind,
            about: episode.about.clone(),
            label: label(episode),
            start_ns: episode.start,
            end_ns: episode.end,
            duration_ns: episode.duration(),
            waited_ns: episode.waited,
            think_ns: episode.think(),
            commands: episode.commands,
            opens: episode.opens,
            files: episode.files,
            bytes_read: episode.bytes_read,
            bytes_written: episode.bytes_written,
            timed: episode.timed,
            longest: episode.longest.iter().take(listed).map(|one| SlowExchange::new(one, captures)).collect(),
        }
    }
}

const NAME_MAX: usize = 40;

/// Describes an episode: `start of app\office.exe`, `saved docs\report.docx`, `uploaded 40 files (12.0 MB)`.
pub(crate) fn label(episode: &Episode) -> String {
    let about = episode.about.as_ref().map(|path| shorten_path(&clean(path), NAME_MAX));
    let of = |what: &str, alone: &str| match &about {
        Some(about) => format!("{what} {about}"),
        None => alone.to_owned(),
    };
    let moved = |what: &str, size: u64| match episode.files {
        0 => format!("{what} {}", bytes(size)),
        files => format!("{what} {} ({})", counted(files, "file", "files"), bytes(size)),
    };
    match episode.kind {
        EpisodeKind::Logon => "logon".to_owned(),
        EpisodeKind::Logoff => "logoff".to_owned(),
        EpisodeKind::Launch => of("start of", "program start"),
        EpisodeKind::Document => of("opened", "opened a document"),
        EpisodeKind::Save => of("saved", "saved a document"),
        EpisodeKind::Settings => of("read the settings", "read settings"),
        EpisodeKind::Download => moved("downloaded", episode.bytes_read),
        EpisodeKind::Upload => moved("uploaded", episode.bytes_written),
        EpisodeKind::Search => "search".to_owned(),
        EpisodeKind::Other => "other work".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use smbscope_testkit::exchange::read;

    fn episode(waited: i64, commands: i64) -> Episode {
        Episode {
            client: [10, 0, 0, 1].into(),
            start: Timestamp(0),
            end: Timestamp(9),
            kind: EpisodeKind::Other,
            about: None,
            commands: commands as u64,
            opens: 0,
            files: 0,
            bytes_read: 0,
            bytes_written: 0,
            waited: Nanos(waited),
            response_time: Nanos(waited),
            timed: commands as u64,
            longest: (0..commands).map(|n| read(n, 100 - n)).collect(),
        }
    }

    #[test]
    fn commands_are_listed_for_the_episodes_with_the_longest_wait() {
        let episodes = [episode(1, 4), episode(7, 5), episode(3, 2), episode(5, 6)];
        let listed = |commands| -> Vec<usize> {
            EpisodeEntry::all(&episodes, &[], commands).iter().map(|entry| entry.longest.len()).collect()
        };
        assert_eq!(listed(usize::MAX), [4, 5, 2, 6]);
        // 5 of the second and 4 of the fourth, which are its longest.
        assert_eq!(listed(9), [0, 5, 0, 4]);
        let last = EpisodeEntry::all(&episodes, &[], 9).remove(3);
        assert_eq!(last.longest.last().and_then(|command| command.response_time_ns), Some(Nanos(97)));
        assert_eq!(listed(0), [0; 4]);
    }
}
