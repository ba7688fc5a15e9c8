//! What limits the result, in words: every counter of [`Quality`] that says so, with its count and its share.

use crate::format::{counted, thousands};
use crate::sentence::coverage;
use crate::whole::Whole;
use crate::{Report, skipped};
#[cfg(doc)]
use smbscope_model::Quality;
use smbscope_model::{Coverage, Outcome};
use smbscope_stats::ENTITIES_MAX;
use std::collections::HashMap;

/// One warning.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Warning {
    pub(crate) text: String,
    /// How often, where it is something that is counted.
    pub(crate) count: Option<u64>,
    /// The whole that the count is a share of, and its name.
    pub(crate) share: Option<(u64, &'static str)>,
}

/// What a count is a share of.
#[derive(Debug, Clone, Copy)]
enum Of {
    Nothing,
    Packets,
    SmbPackets,
    Commands,
    Connections,
}

/// Counters of [`Quality`] by name, in the order of the report: the file, the network, the framing, the matching.
/// `[s]` belongs to the plural.
const COUNTERS: &[(&str, Of, &str)] = &[
    ("truncated_captures", Of::Nothing, "capture[s] cut off in the middle of a record"),
    ("unreadable_records", Of::Packets, "record[s] of the capture file unreadable, passed over"),
    ("packets_reordered_by_time", Of::Packets, "packet[s] out of time order in the file, put in order"),
    ("packets_out_of_time_order", Of::Packets, "packet[s] older than those before"),
    ("snapped_packets", Of::Packets, "packet[s] cut short by the snap length"),
    ("malformed_packets", Of::Packets, "packet[s] with a malformed link, IP or TCP header"),
    ("headers_not_captured", Of::Packets, "packet[s] cut off inside link, IP or TCP headers by the snap length"),
    ("ip_datagrams_incomplete", Of::Packets, "IP datagram[s] incomplete, fragments missing"),
    ("duplicate_packets", Of::SmbPackets, "packet[s] captured twice"),
    ("copies_behind_router", Of::SmbPackets, "of them on both sides of a router, with another time to live"),
    ("dropped_packets", Of::SmbPackets, "packet[s] dropped by the capture (at least)"),
    ("capture_gaps", Of::Nothing, "gap[s] in the captured data"),
    ("missing_unacknowledged_bytes", Of::Nothing, "byte[s] neither captured nor acknowledged"),
    ("late_segments", Of::SmbPackets, "packet[s] came after being given up as dropped"),
    ("retransmitted_segments", Of::SmbPackets, "packet[s] retransmitted by TCP"),
    ("spurious_retransmissions", Of::SmbPackets, "of them in vain, the receiver had acknowledged the data"),
    ("retransmissions_seen_once", Of::SmbPackets, "packet[s] sent again, lost before the capture could see the first"),
    ("out_of_order_segments", Of::SmbPackets, "packet[s] out of order"),
    ("zero_windows", Of::SmbPackets, "packet[s] closed the receive window"),
    ("midstream_flows", Of::Connections, "connection[s] began before the capture"),
    ("reset_flows", Of::Connections, "connection[s] reset"),
    ("evicted_flows", Of::Nothing, "connection[s] given up, too many at once"),
    ("reorder_buffer_overflows", Of::SmbPackets, "packet[s] given up, reordering buffer full"),
    ("framing_lost", Of::Nothing, "loss[es] of SMB framing"),
    ("bytes_skipped", Of::Nothing, "byte[s] passed over to find SMB framing again"),
    ("unknown_frames", Of::Nothing, "frame[s] other than SMB messages"),
    ("foreign_replies", Of::Connections, "connection[s] whose server answered in another protocol"),
    ("malformed_messages", Of::Nothing, "malformed SMB message[s]"),
    ("headers_truncated", Of::Nothing, "SMB header[s] cut off"),
    ("names_cut", Of::Nothing, "name[s] of files or shares cut off"),
    ("encrypted_frames", Of::Nothing, "encrypted frame[s], command unknown"),
    ("compressed_frames_opaque", Of::Nothing, "compressed frame[s], command unknown"),
    ("response_end_missing", Of::Commands, "response[s] whose end was not captured"),
    ("responses_without_request", Of::Commands, "response[s] whose request was not captured"),
    ("responses_not_captured", Of::Commands, "command[s] whose response was not captured"),
    ("requests_unanswered", Of::Commands, "command[s] without an answer by the end of the capture"),
    ("causality_refused", Of::Commands, "response[s] refused, older than the command"),
    ("ambiguous_refused", Of::Commands, "response[s] refused, the id may be recycled"),
    ("ids_reused", Of::Commands, "command[s] whose id was used again before the response"),
    ("clock_steps", Of::Commands, "command[s] across a step of the clock, matched but not timed"),
    ("early_responses", Of::Commands, "response[s] captured before the end of the request, no service time"),
    ("evicted_requests", Of::Commands, "command[s] given up, too many outstanding"),
    ("evicted_names", Of::Nothing, "session, share or file name[s] given up, too many at once"),
];

/// Every warning of a report.
pub(crate) fn all(report: &Report) -> Vec<Warning> {
    let quality = &report.quality;
    let aggregate = &report.aggregate;
    let whole = Whole::of(report);
    let counters: HashMap<&str, u64> = quality.entries().into_iter().collect();
    let counter = |name: &str| counters.get(name).copied().unwrap_or(0);
    let mut warnings: Vec<Warning> = COUNTERS
        .iter()
        .map(|(name, of, text)| (name, counter(name), of, text))
        .filter(|(_, count, _, _)| *count > 0)
        .map(|(name, count, of, text)| {
            let share = match of {
                Of::Nothing => None,
                Of::Packets => Some((quality.packets, "packets")),
                Of::SmbPackets => Some((quality.smb_flow_packets, "SMB packets")),
                Of::Commands => Some((whole.count, "commands")),
                Of::Connections => Some((report.connections.len() as u64, "connections")),
            };
            let mut text = inflected(text, count);
            if let Some(enough) = quality.snap_length_for_names().filter(|_| *name == "names_cut") {
                text += &format!("; a snap length of {enough} keeps them whole");
            }
            Warning { text, count: Some(count), share: share.filter(|(whole, _)| *whole > 0) }
        })
        .collect();
    warnings.extend(skipped::warnings(report));
    let plain = |text: String| Warning { text, count: None, share: None };
    warnings.extend(one_way(report).map(plain));
    let unpaired = whole.ended(Outcome::NotPairable);
    if unpaired > 0 {
        let text = inflected("encrypted request[s] not paired with an answer, others were under way", unpaired);
        warnings.push(Warning { text, count: Some(unpaired), share: Some((whole.count, "commands")) });
    }
    if aggregate.folded > 0 {
        let commands = counted(aggregate.folded, "command is", "commands are");
        warnings.push(plain(format!("{commands} counted in their groups only: too many different commands")));
    }
    let tables = [
        ("shares", aggregate.shares.other.as_ref()),
        ("files", aggregate.files.other.as_ref()),
        ("clients", aggregate.clients.other.as_ref()),
        ("servers", aggregate.servers.other.as_ref()),
        ("users", aggregate.users.other.as_ref()),
    ];
    for (name, other) in tables {
        if let Some(other) = other {
            let commands = counted(other.count, "command is", "commands are");
            let text = format!("more than {} {name}: {commands} not told apart", thousands(ENTITIES_MAX as u64));
            warnings.push(plain(text));
        }
    }
    for capture in &report.captures {
        let prefix = format!("{}: ", capture.name);
        let named = |warning: &String| match warning.starts_with(&prefix) {
            true => warning.clone(),
            false => format!("{prefix}{warning}"),
        };
        warnings.extend(capture.warnings.iter().map(named).map(plain));
    }
    warnings.extend(report.warnings.iter().cloned().map(plain));
    warnings
}

/// Connections of which the capture holds one direction.
pub(crate) fn one_way_connections(report: &Report) -> (usize, usize) {
    let packets =
        report.connections.iter().map(|connection| (connection.to_server.packets, connection.to_client.packets));
    packets.fold((0, 0), |(to_server, to_client), packets| match packets {
        (1.., 0) => (to_server + 1, to_client),
        (0, 1..) => (to_server, to_client + 1),
        _ => (to_server, to_client),
    })
}

fn one_way(report: &Report) -> Option<String> {
    let (to_server, to_client) = one_way_connections(report);
    let connections = counted((to_server + to_client) as u64, "connection", "connections");
    let which = match (to_server, to_client) {
        (0, 0) => return None,
        (_, 0) => "from client to server",
        (0, _) => "from server to client",
        _ => "one or the other",
    };
    Some(format!(
        "only one direction of {connections} was captured, {which}: nothing can be timed; mirror both directions"
    ))
}

/// The text for a count: `[s]` goes where there is only one.
fn inflected(text: &str, count: u64) -> String {
    match text.split_once('[').and_then(|(start, rest)| Some((start, rest.split_once(']')?))) {
        Some((start, (_, end))) if count == 1 => format!("{start}{end}"),
        Some((start, (plural, end))) => format!("{start}{plural}{end}"),
        None => text.to_owned(),
    }
}

/// What the capture is like, and how many commands it shows in part.
pub(crate) fn verdict(report: &Report) -> String {
    let quality = &report.quality;
    let whole = Whole::of(report);
    let headers = quality.headers_truncated;
    if whole.count == 0 {
        return match headers {
            0 => "no command was seen".to_owned(),
            n => {
                let cut = counted(n, "SMB header is", "SMB headers are");
                let advice = if quality.snapped_packets > 0 { "; use a snap length of 128 or more" } else { "" };
                format!("no command could be read: {cut} cut off{advice}")
            }
        };
    }
    let Coverage { in_part, unseen, .. } = coverage(report);
    // A file that was cut off may lack anything behind its end.
    let cut = quality.truncated_captures + quality.unreadable_records > 0;
    let complete = quality.dropped_packets + quality.capture_gaps == 0 && !cut;
    let (to_server, to_client) = one_way_connections(report);
    let is_one_way = to_server + to_client > 0 && to_server + to_client == report.connections.len();
    let capture = match quality.dropped_packets {
        _ if is_one_way => "the capture holds only one direction of the traffic".to_owned(),
        0 if quality.capture_gaps > 0 => "the capture has gaps".to_owned(),
        0 if in_part > 0 && quality.midstream_flows > 0 => {
            let connections = counted(quality.midstream_flows, "connection", "connections");
            format!("the capture lacks the beginning of {connections}")
        }
        0 if quality.truncated_captures > 0 => "the capture was cut off in the middle of a record".to_owned(),
        0 if quality.unreadable_records > 0 => "the capture has unreadable records".to_owned(),
        0 if in_part > 0 => "the capture lacks packets, or parts of them".to_owned(),
        0 => skipped::hidden(report).unwrap_or_else(|| "the capture is complete".to_owned()),
        n => format!("the capture lost at least {}", counted(n, "packet", "packets")),
    };
    if in_part + unseen > 0 {
        let commands = counted(in_part, "command", "commands");
        let unseen = if unseen > 0 { format!(", about {} not at all", thousands(unseen)) } else { String::new() };
        return format!("{capture}; {commands} seen in part only{unseen}");
    }
    let seen = if quality.encrypted_frames > 0 { "every command or encrypted frame" } else { "every command" };
    match (whole.untimed, quality.requests_unanswered) {
        (0, _) if complete => format!("{capture}: {seen} was timed"),
        (0, _) => format!("{capture}, but {seen} that it holds was timed"),
        (n, unanswered) if n == unanswered => {
            format!("{capture}; {} no answer by its end", counted(n, "command has", "commands have"))
        }
        (n, _) => format!("{capture}; {} not timed, see the warnings", counted(n, "command was", "commands were")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use smbscope_model::Quality;

    #[test]
    fn every_warning_is_about_a_counter_that_exists() {
        let names: Vec<&str> = Quality::default().entries().into_iter().map(|(name, _)| name).collect();
        for (name, _, _) in COUNTERS {
            assert!(names.contains(name), "{name}");
        }
    }

    #[test]
    fn every_warning_is_explained_to_users() {
        let page = include_str!("../../../docs/figures.md");
        let warnings = page.split("## Warnings").nth(1).expect("the page explains warnings");
        let warnings = warnings.split("\n## ").next().expect("a section has an end");
        for (name, _, _) in COUNTERS {
            assert!(warnings.contains(&format!("(`{name}`)")), "docs/figures.md says nothing of {name}");
        }
    }

    #[test]
    fn one_is_not_plural() {
        assert_eq!([1, 2].map(|n| inflected("loss[es] of framing", n)), ["loss of framing", "losses of framing"]);
        assert_eq!(inflected("nothing to say", 2), "nothing to say");
    }
}
