//! Slowest exchanges, and episodes in the JSON report.

use crate::format::{bytes, clean, counted, shorten_path};
use serde::{Deserialize, Serialize};
use smbscope_diagnose::{Episode, EpisodeKind};
use smbscope_model::{CommandGroup, Exchange, Nanos, Protocol, Stamp, TimeKind, Timestamp};
use std::sync::Arc;

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
