//! Quality of a capture in words: warnings about gaps, and the coverage in one sentence.
//!
//! [`of_report`] returns a warning for every counter of [`Quality`](smbscope_model::Quality) that shows a gap, with its
//! count and share. [`quality_sentence`] states the share of commands not timed because of gaps in the capture, with the
//! main reason.

use crate::Report;
use crate::format::{counted, thousands};
use crate::totals::CommandOutcomes;
use smbscope_model::{Coverage, ExchangeOutcome, SkippedPackets};
use smbscope_stats::{Aggregate, ENTITIES_MAX};
use std::collections::HashMap;

#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Warning {
    pub(crate) text: String,
    pub(crate) counter: Option<&'static str>,
    pub(crate) count: Option<u64>,
    /// Total that `count` is a share of, and its name.
    pub(crate) share: Option<(u64, &'static str)>,
}

impl Warning {
    /// Creates a warning with a count. The share is omitted if the total is 0 or less than the count: more packets can
    /// be missing than were captured.
    fn counted(text: String, count: u64, share: Option<(u64, &'static str)>) -> Warning {
        Warning {
            text,
            counter: None,
            count: Some(count),
            share: share.filter(|(whole, _)| *whole > 0 && count <= *whole),
        }
    }
}

impl From<String> for Warning {
    fn from(text: String) -> Warning {
        Warning { text, counter: None, count: None, share: None }
    }
}

/// Chooses the form for a count: `[s]` is removed for 1.
fn inflected(text: &str, count: u64) -> String {
    match text.split_once('[').and_then(|(start, rest)| Some((start, rest.split_once(']')?))) {
        Some((start, (_, end))) if count == 1 => format!("{start}{end}"),
        Some((start, (plural, end))) => format!("{start}{plural}{end}"),
        None => text.to_owned(),
    }
}

#[derive(Debug, Clone, Copy)]
enum Of {
    Nothing,
    Packets,
    SmbPackets,
    Commands,
    Connections,
}

/// Counters of [`Quality`](smbscope_model::Quality) by name, in report order: file, network, framing, matching. `[s]` is only written for the
/// plural.
const COUNTERS: &[(&str, Of, &str)] = &[
    ("truncated_captures", Of::Nothing, "capture[s] cut off in the middle of a record"),
    ("unreadable_records", Of::Packets, "record[s] of the capture file unreadable, skipped"),
    ("packets_dropped_by_kernel", Of::Packets, "packet[s] dropped by the kernel, the capture was too slow"),
    ("packets_dropped_by_interface", Of::Packets, "packet[s] of any traffic dropped by the network interface"),
    ("packets_reordered_by_time", Of::Packets, "packet[s] out of time order in the file, put in order"),
    ("packets_out_of_time_order", Of::Packets, "packet[s] older than those before"),
    ("snapped_packets", Of::Packets, "packet[s] cut short by the snap length"),
    ("malformed_packets", Of::Packets, "packet[s] with a malformed link, IP or TCP header"),
    ("headers_not_captured", Of::Packets, "packet[s] cut off inside link, IP or TCP headers by the snap length"),
    ("origins_left_out", Of::Packets, "packet[s] whose tunnel and process are not named, too many different ones"),
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
    ("requests_before_capture", Of::Commands, "of them where the request was sent before the capture began"),
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
    warnings.extend(merged(&report.aggregate).into_iter().map(plain));
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

/// Notes commands, shares, files and other names that were merged because there were too many.
fn merged(aggregate: &Aggregate) -> Vec<String> {
    let mut found = Vec::new();
    if aggregate.folded > 0 {
        let commands = counted(aggregate.folded, "command is", "commands are");
        found.push(format!("{commands} counted in their groups only: too many different commands"));
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
            found.push(format!("more than {} {name}: {commands} not listed", thousands(ENTITIES_MAX as u64)));
        }
    }
    found
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

const NAMED: usize = 4;
/// Smallest share of timed commands that is reported as all commands with exceptions.
const NEARLY_ALL: f64 = 0.75;

/// Percentage of packets with protocols that may hide SMB above which the sentence mentions them.
const NOTABLE_PERCENT: u64 = 1;
/// The same threshold for unnamed protocols, which may be anything.
const UNKNOWN_PERCENT: u64 = 5;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum UntimedCause {
    OneDirection,
    OtherProtocol,
    LostPackets,
    SnapLength,
    Beginning,
    Clock,
    End,
}

impl UntimedCause {
    fn text(self) -> &'static str {
        match self {
            UntimedCause::OneDirection => "only one direction of the traffic was captured",
            UntimedCause::OtherProtocol => "the server answered in another protocol than SMB",
            UntimedCause::LostPackets => "packets missing from the capture",
            UntimedCause::SnapLength => "the snap length cut off their headers",
            UntimedCause::Beginning => "the capture began in the middle of connections",
            UntimedCause::Clock => "the clock of the capture stepped",
            UntimedCause::End => "the capture ended before their last packets",
        }
    }
}

pub(crate) fn coverage(report: &Report) -> Coverage {
    let whole = CommandOutcomes::new(report);
    Coverage::new(|outcome| whole.ended(outcome), whole.untimed, &report.quality)
}

fn main_causes(report: &Report) -> Vec<UntimedCause> {
    let quality = &report.quality;
    let gaps = quality.capture_gaps.max(u64::from(quality.dropped_packets + quality.missing_unacknowledged_bytes > 0));
    let when = |seen: bool, weight: u64| if seen { weight } else { 0 };
    let ended = quality.response_end_missing > 0 && gaps == 0;
    // The other direction looks like gaps.
    let (to_server, to_client) = one_way_connections(report);
    let one_way = (to_server + to_client) as u64;
    let (gaps, one_way) = match report.connections.len() as u64 {
        0 => (gaps, 0),
        all => (gaps * (all - one_way) / all, gaps.max(1) * one_way / all),
    };
    let midstream = when(quality.responses_without_request > 0, quality.midstream_flows);
    let beginning = midstream.max(quality.requests_before_capture);
    let mut causes = [
        (one_way, UntimedCause::OneDirection),
        (quality.foreign_replies, UntimedCause::OtherProtocol),
        (gaps, UntimedCause::LostPackets),
        (when(quality.snapped_packets > 0, quality.headers_truncated + quality.framing_cut), UntimedCause::SnapLength),
        (beginning, UntimedCause::Beginning),
        (quality.clock_steps, UntimedCause::Clock),
        (when(ended, quality.response_end_missing), UntimedCause::End),
    ];
    // The sort is stable.
    causes.sort_by_key(|(weight, _)| std::cmp::Reverse(*weight));
    causes.into_iter().filter(|(weight, _)| *weight > 0).map(|(_, cause)| cause).collect()
}

/// Returns true if the sentence reports damage or unread packets.
pub(crate) fn is_alarming(report: &Report) -> bool {
    coverage(report).missed() > 0 || hidden(report).is_some()
}

pub(crate) fn quality_sentence(report: &Report) -> String {
    let of_commands = of_commands(report);
    match hidden(report) {
        Some(hidden) => format!("{of_commands} {hidden}."),
        None => of_commands,
    }
}

fn of_commands(report: &Report) -> String {
    let coverage = coverage(report);
    let encrypted = report.quality.encrypted_frames > 0;
    if coverage.missed() == 0 {
        return undamaged(report, &coverage);
    }
    let (commands, command) = match encrypted {
        false => ("commands", "command"),
        true => ("commands and encrypted frames", "command or encrypted frame"),
    };
    let causes = main_causes(report);
    let mainly = if causes.len() > 1 { ", mainly" } else { "" };
    let why = causes.first().map_or(UntimedCause::LostPackets, |cause| *cause).text();
    let share = coverage.not_timed();
    let how_many = match share.percent {
        _ if coverage.timed == 0 => return format!("No {command} was timed{mainly}: {why}."),
        percent if share.at_most < 0.05 || (percent < 0.05 && share.is_sure()) => {
            format!("Less than 0.1% of {commands}")
        }
        percent if share.is_sure() => format!("About {percent:.1}% of {commands}"),
        _ => format!("An estimated {:.1} to {:.1}% of {commands}", share.at_least, share.at_most),
    };
    format!("{how_many} were not timed{mainly}: {why}.")
}

fn undamaged(report: &Report, coverage: &Coverage) -> String {
    let whole = CommandOutcomes::new(report);
    let count = whole.count;
    let what = match whole.encrypted {
        _ if count == 0 => return "No SMB command was seen.".to_owned(),
        0 => "commands",
        n if n == count => "encrypted frames",
        _ => "commands and encrypted frames",
    };
    let unanswered = whole.ended(ExchangeOutcome::Unanswered);
    let others = coverage.others.saturating_sub(unanswered);
    let exceptions: Vec<String> =
        [(unanswered, "had no response when the capture ended"), (others, "had no response that is certain")]
            .into_iter()
            .filter(|(n, _)| *n > 0)
            .map(|(n, text)| format!("{} {text}", thousands(n)))
            .collect();
    let quality = &report.quality;
    let lossy = quality.dropped_packets + quality.capture_gaps > 0;
    let timed = coverage.timed as f64;
    if coverage.timed == 0 && !exceptions.is_empty() {
        return format!("None of the {what} in the capture was timed: {}.", exceptions.join(" and "));
    }
    if timed < NEARLY_ALL * (timed + others as f64) {
        let (timed, all) = (thousands(coverage.timed), thousands(coverage.timed + coverage.others));
        let lossy = if lossy { "Packets are missing from the capture. " } else { "" };
        return format!("{lossy}{timed} of {all} {what} were timed: {}.", exceptions.join(" and "));
    }
    let exceptions = if exceptions.is_empty() { String::new() } else { format!(", but {}", exceptions.join(" and ")) };
    if lossy {
        return format!("Packets are missing from the capture, but all {what} in it were timed{exceptions}.");
    }
    format!("All {what} in the capture were timed{exceptions}.")
}

/// Describes packets that could not be read and may contain SMB, if there are more than a few.
fn hidden(report: &Report) -> Option<String> {
    let quality = &report.quality;
    let mut hiding: Vec<SkippedPackets> = report.skipped.clone();
    // If most of the capture isn't TCP, mention all of it.
    if quality.not_tcp < quality.packets.saturating_sub(quality.not_tcp) {
        let is_unknown = |skipped: &SkippedPackets| skipped.protocol.name().is_none();
        let unknown: u64 = hiding.iter().filter(|skipped| is_unknown(skipped)).map(|skipped| skipped.packets).sum();
        let counts_unknown = unknown * 100 >= quality.packets * UNKNOWN_PERCENT;
        hiding.retain(|skipped| skipped.protocol.may_carry_smb() || counts_unknown && is_unknown(skipped));
    }
    let skipped: u64 = hiding.iter().map(|skipped| skipped.packets).sum();
    let cut = quality.headers_not_captured;
    if skipped + cut == 0 || (skipped + cut) * 100 < quality.packets * NOTABLE_PERCENT {
        return None;
    }
    let mut reasons = protocols(&hiding);
    if cut > 0 {
        let cut = counted(cut, "packet", "packets");
        let separator = if reasons.is_empty() { "" } else { "; " };
        reasons.push_str(&format!("{separator}the snap length cut {cut} off inside IP or TCP headers"));
    }
    Some(format!("{} of {} packets were not read: {reasons}", thousands(skipped + cut), thousands(quality.packets)))
}

/// Formats `EtherType 0x0806 (ARP) 12, UDP port 53 (DNS) 7`.
pub(crate) fn protocols(skipped: &[SkippedPackets]) -> String {
    let mut names: Vec<String> = skipped
        .iter()
        .take(NAMED)
        .map(|SkippedPackets { protocol, packets }| format!("{protocol} {}", thousands(*packets)))
        .collect();
    if skipped.len() > NAMED {
        let more: u64 = skipped.iter().skip(NAMED).map(|skipped| skipped.packets).sum();
        names.push(format!("others {}", thousands(more)));
    }
    names.join(", ")
}

/// Returns the number of connections with packets only to the server, and only to the client.
pub(crate) fn one_way_connections(report: &Report) -> (usize, usize) {
    let packets =
        report.connections.iter().map(|connection| (connection.to_server.packets, connection.to_client.packets));
    packets.fold((0, 0), |(to_server, to_client), packets| match packets {
        (1.., 0) => (to_server + 1, to_client),
        (0, 1..) => (to_server, to_client + 1),
        _ => (to_server, to_client),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use smbscope_model::Quality;

    #[test]
    fn one_is_not_plural() {
        assert_eq!([1, 2].map(|n| inflected("loss[es] of framing", n)), ["loss of framing", "losses of framing"]);
        assert_eq!(inflected("nothing to say", 2), "nothing to say");
    }

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
}
