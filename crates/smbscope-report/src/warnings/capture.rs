//! Warnings about gaps in a capture: every such counter of [`Quality`] with its count and share.

use super::{Warning, inflected};
use crate::Report;
use crate::format::{counted, thousands};
use crate::sentence::{one_way_connections, protocols};
use crate::whole::CommandOutcomes;
use smbscope_model::ExchangeOutcome;
#[cfg(doc)]
use smbscope_model::Quality;
use smbscope_stats::ENTITIES_MAX;
use std::collections::HashMap;

#[derive(Debug, Clone, Copy)]
enum Of {
    Nothing,
    Packets,
    SmbPackets,
    Commands,
    Connections,
}

/// Counters of [`Quality`] by name, in report order: file, network, framing, matching. `[s]` is only written for the
/// plural.
const COUNTERS: &[(&str, Of, &str)] = &[
    ("truncated_captures", Of::Nothing, "capture[s] cut off in the middle of a record"),
    ("unreadable_records", Of::Packets, "record[s] of the capture file unreadable, skipped"),
    ("packets_reordered_by_time", Of::Packets, "packet[s] out of time order in the file, put in order"),
    ("packets_out_of_time_order", Of::Packets, "packet[s] older than those before"),
    ("snapped_packets", Of::Packets, "packet[s] cut short by the snap length"),
    ("malformed_packets", Of::Packets, "packet[s] with a malformed link, IP or TCP header"),
    ("headers_not_captured", Of::Packets, "packet[s] cut off inside link, IP or TCP headers by the snap length"),
    ("ip_datagrams_incomplete", Of::Packets, "IP datagram[s] incomplete, fragments missing"),
    ("duplicate_packets", Of::SmbPackets, "packet[s] captured twice"),
    ("copies_behind_router", Of::SmbPackets, "of them on both sides of a router, with another time to live"),
    (
        "copies_at_two_layers",
        Of::SmbPackets,
        "of them captured at two layers of a host, before and after segmentation offload",
    ),
    ("dropped_packets", Of::SmbPackets, "packet[s] dropped by the capture (at least)"),
    ("capture_gaps", Of::Nothing, "gap[s] in the captured data"),
    ("missing_unacknowledged_bytes", Of::Nothing, "byte[s] neither captured nor acknowledged"),
    ("late_segments", Of::SmbPackets, "packet[s] came too late, after their gap was counted"),
    ("retransmitted_segments", Of::SmbPackets, "packet[s] retransmitted by TCP"),
    ("spurious_retransmissions", Of::SmbPackets, "of them in vain, the receiver had acknowledged the data"),
    ("retransmissions_seen_once", Of::SmbPackets, "packet[s] sent again, lost before the capture could see the first"),
    ("out_of_order_segments", Of::SmbPackets, "packet[s] out of order"),
    ("zero_windows", Of::SmbPackets, "packet[s] closed the receive window"),
    ("midstream_flows", Of::Connections, "connection[s] began before the capture"),
    ("sides_guessed", Of::Connections, "of them where the port numbers had to tell client and server"),
    ("reset_flows", Of::Connections, "connection[s] reset"),
    ("evicted_flows", Of::Nothing, "connection[s] evicted, too many at once"),
    ("reorder_buffer_overflows", Of::SmbPackets, "packet[s] evicted, reordering buffer full"),
    ("framing_lost", Of::Nothing, "loss[es] of SMB framing"),
    ("framing_cut", Of::Nothing, "of them where the snap length cut a frame header off"),
    ("bytes_skipped", Of::Nothing, "byte[s] skipped to find SMB framing again"),
    ("unknown_frames", Of::Nothing, "frame[s] other than SMB messages"),
    ("foreign_replies", Of::Connections, "connection[s] whose server answered in another protocol"),
    ("malformed_messages", Of::Nothing, "malformed SMB message[s]"),
    ("headers_truncated", Of::Nothing, "SMB header[s] cut off"),
    ("names_cut", Of::Nothing, "name[s] of files or shares cut off"),
    ("encrypted_frames", Of::Nothing, "encrypted frame[s], command unknown"),
    ("compressed_frames_opaque", Of::Nothing, "compressed frame[s], command unknown"),
    ("request_end_missing", Of::Commands, "command[s] whose end was not captured, no service time"),
    ("response_end_missing", Of::Commands, "response[s] whose end was not captured"),
    ("responses_without_request", Of::Commands, "response[s] whose request was not captured"),
    ("responses_not_captured", Of::Commands, "command[s] whose response was not captured"),
    ("requests_unanswered", Of::Commands, "command[s] without an answer by the end of the capture"),
    ("causality_refused", Of::Commands, "response[s] refused, older than the command"),
    ("ambiguous_refused", Of::Commands, "response[s] refused, the id may be recycled"),
    ("ids_reused", Of::Commands, "command[s] whose id was used again before the response"),
    ("clock_steps", Of::Commands, "command[s] across a step of the clock, matched but not timed"),
    ("early_responses", Of::Commands, "response[s] captured before the end of the request, no service time"),
    ("evicted_requests", Of::Commands, "command[s] evicted, too many outstanding"),
    ("evicted_names", Of::Nothing, "session, share or file name[s] evicted, too many at once"),
];

pub(crate) fn of_report(report: &Report) -> Vec<Warning> {
    let quality = &report.quality;
    let aggregate = &report.aggregate;
    let whole = CommandOutcomes::new(report);
    let counters: HashMap<&str, u64> = quality.entries().into_iter().collect();
    let counter = |name: &str| counters.get(name).copied().unwrap_or(0);
    let counted_as = |text: &str, count: u64, of: Of| {
        let share = match of {
            Of::Nothing => None,
            Of::Packets => Some((quality.packets, "packets")),
            Of::SmbPackets => Some((quality.smb_flow_packets, "SMB packets")),
            Of::Commands => Some((whole.count, "commands")),
            Of::Connections => Some((report.connections.len() as u64, "connections")),
        };
        (count > 0).then(|| Warning::counted(inflected(text, count), count, share))
    };
    let of_counters = COUNTERS.iter().filter_map(|(name, of, text)| {
        let enough = quality.snap_length_for_names().filter(|_| *name == "names_cut");
        let advice = enough.map_or_else(String::new, |enough| format!("; a snap length of {enough} keeps them whole"));
        let warning = counted_as(&format!("{text}{advice}"), counter(name), *of)?;
        Some(Warning { counter: Some(name), ..warning })
    });
    let mut warnings: Vec<Warning> = of_counters.collect();
    // Packets other than TCP: each protocol that may hide SMB, and the rest together.
    let (hiding, others): (Vec<_>, Vec<_>) =
        report.skipped.iter().copied().partition(|skipped| skipped.protocol.may_carry_smb());
    warnings.extend(hiding.iter().filter_map(|skipped| {
        let text = format!("packet[s] not read, SMB may be in there: {}", skipped.protocol);
        counted_as(&text, skipped.packets, Of::Packets)
    }));
    let count = others.iter().map(|skipped| skipped.packets).sum();
    warnings.extend(counted_as(
        &format!("packet[s] without TCP, not read: {}", protocols(&others)),
        count,
        Of::Packets,
    ));
    let plain = Warning::from;
    warnings.extend(one_way(report).map(plain));
    warnings.extend(counted_as(
        "encrypted request[s] not paired with an answer, others were outstanding",
        whole.ended(ExchangeOutcome::NotPairable),
        Of::Commands,
    ));
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
            let text = format!("more than {} {name}: {commands} not listed", thousands(ENTITIES_MAX as u64));
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
        let page = include_str!("../../../../docs/figures.md");
        let warnings = page.split("## Warnings").nth(1).expect("the page explains warnings");
        let warnings = warnings.split("\n## ").next().expect("a section has an end");
        for (name, _, _) in COUNTERS {
            assert!(warnings.contains(&format!("(`{name}`)")), "docs/figures.md says nothing of {name}");
        }
    }
}
