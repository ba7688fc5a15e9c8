//! What limits the result, in words: every counter of [`Quality`] that says so, with its count and its share.

use crate::Report;
use crate::format::{counted, share, thousands};
use smbscope_model::Outcome;
#[cfg(doc)]
use smbscope_model::Quality;
use smbscope_stats::ENTITIES_MAX;
use std::collections::HashMap;

/// One warning.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Warning {
    pub(crate) text: String,
    /// How often, where it is something that is counted.
    pub(crate) count: Option<u64>,
    /// The share of the count, in percent, and of what.
    pub(crate) share: Option<(f64, &'static str)>,
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
const COUNTERS: &[(&str, Of, &str)] = &[
    ("truncated_captures", Of::Nothing, "capture ends in the middle of a record"),
    ("unreadable_records", Of::Packets, "record of the capture file unreadable, passed over"),
    ("packets_reordered_by_time", Of::Packets, "packet out of time order in its file, put in order"),
    ("packets_out_of_time_order", Of::Packets, "packet older than those before it"),
    ("snapped_packets", Of::Packets, "packet cut short by the snap length"),
    ("malformed_packets", Of::Packets, "packet with a malformed link, IP or TCP header"),
    ("ip_datagrams_incomplete", Of::Packets, "IP datagram incomplete, fragments missing"),
    ("duplicate_packets", Of::SmbPackets, "packet captured twice"),
    ("dropped_packets", Of::SmbPackets, "packet dropped by the capture (at least)"),
    ("capture_gaps", Of::Nothing, "gap in the captured data"),
    ("missing_unacknowledged_bytes", Of::Nothing, "byte neither captured nor acknowledged"),
    ("late_segments", Of::SmbPackets, "packet came after it had been given up as dropped"),
    ("retransmitted_segments", Of::SmbPackets, "packet retransmitted by TCP"),
    ("spurious_retransmissions", Of::SmbPackets, "packet retransmitted although acknowledged"),
    ("out_of_order_segments", Of::SmbPackets, "packet out of order"),
    ("zero_windows", Of::SmbPackets, "packet closed the receive window"),
    ("midstream_flows", Of::Connections, "connection began before the capture"),
    ("reset_flows", Of::Connections, "connection reset"),
    ("evicted_flows", Of::Nothing, "connection given up, too many at once"),
    ("reorder_buffer_overflows", Of::SmbPackets, "packet given up, reordering buffer full"),
    ("framing_lost", Of::Nothing, "loss of SMB framing"),
    ("bytes_skipped", Of::Nothing, "byte passed over to find SMB framing again"),
    ("unknown_frames", Of::Nothing, "frame that is no SMB message"),
    ("malformed_messages", Of::Commands, "malformed SMB message"),
    ("headers_truncated", Of::Commands, "SMB header cut off"),
    ("encrypted_frames", Of::Nothing, "encrypted frame, its command unknown"),
    ("compressed_frames_opaque", Of::Nothing, "compressed frame, its command unknown"),
    ("response_end_missing", Of::Commands, "final packet of response missing"),
    ("responses_without_request", Of::Commands, "response without command"),
    ("responses_not_captured", Of::Commands, "response not captured"),
    ("requests_unanswered", Of::Commands, "command never answered"),
    ("causality_refused", Of::Commands, "response refused, it precedes its command"),
    ("ambiguous_refused", Of::Commands, "response refused, its id may be recycled"),
    ("ids_reused", Of::Commands, "id used again before the response"),
    ("clock_steps", Of::Commands, "clock stepped backwards before the response"),
    ("evicted_requests", Of::Commands, "command given up, too many outstanding"),
    ("evicted_names", Of::Nothing, "session, share or file name given up, too many at once"),
];

/// Every warning of a report.
pub(crate) fn all(report: &Report) -> Vec<Warning> {
    let quality = &report.quality;
    let aggregate = &report.aggregate;
    let counters: HashMap<&str, u64> = quality.entries().into_iter().collect();
    let counter = |name: &str| counters.get(name).copied().unwrap_or(0);
    let mut warnings: Vec<Warning> = COUNTERS
        .iter()
        .map(|(name, of, text)| (counter(name), of, text))
        .filter(|(count, _, _)| *count > 0)
        .map(|(count, of, text)| {
            let whole = match of {
                Of::Nothing => None,
                Of::Packets => Some((quality.packets, "packets")),
                Of::SmbPackets => Some((quality.smb_flow_packets, "SMB packets")),
                Of::Commands => Some((aggregate.count, "commands")),
                Of::Connections => Some((report.connections.len() as u64, "connections")),
            };
            let share = whole.filter(|(whole, _)| *whole > 0).map(|(whole, name)| (share(count, whole), name));
            Warning { text: (*text).to_owned(), count: Some(count), share }
        })
        .collect();
    let plain = |text: String| Warning { text, count: None, share: None };
    let unpaired = aggregate.outcomes.iter().find(|(outcome, _)| *outcome == Outcome::NotPairable);
    if let Some((_, count)) = unpaired {
        let text = "encrypted frame not paired with its answer, others were under way".to_owned();
        let share = Some((share(*count, aggregate.count), "commands"));
        warnings.push(Warning { text, count: Some(*count), share });
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
        warnings.extend(capture.warnings.iter().map(|warning| plain(format!("{}: {warning}", capture.name))));
    }
    warnings.extend(report.warnings.iter().cloned().map(plain));
    warnings
}

/// The quality of the capture in one sentence.
pub(crate) fn verdict(report: &Report) -> String {
    let quality = &report.quality;
    let aggregate = &report.aggregate;
    if aggregate.count == 0 {
        return "no command was seen".to_owned();
    }
    let lost = quality.untimed_by_capture();
    // Messages whose header was cut off are no exchanges; they belong to the whole all the same.
    let whole = aggregate.count.max(aggregate.total.timed + lost) + quality.headers_truncated;
    if lost > 0 {
        let percent = share(lost, whole);
        let part = if percent < 0.1 {
            counted(lost, "command", "commands")
        } else {
            format!("about {percent:.1} % of commands")
        };
        return format!("{part} could not be timed because the capture lost packets");
    }
    let dropped = match quality.dropped_packets {
        0 if quality.capture_gaps == 0 => "the capture is complete".to_owned(),
        0 => "the capture has gaps".to_owned(),
        n => format!("the capture lost {} (at least)", counted(n, "packet", "packets")),
    };
    match (aggregate.untimed, quality.requests_unanswered) {
        (0, _) if quality.dropped_packets + quality.capture_gaps == 0 => format!("{dropped}: every command was timed"),
        (0, _) => format!("{dropped}, but every command was timed"),
        (n, unanswered) if n == unanswered => {
            format!("{dropped}; {} never answered", counted(n, "command was", "commands were"))
        }
        (n, _) => format!("{dropped}; {} not timed, see the warnings", counted(n, "command was", "commands were")),
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
}
