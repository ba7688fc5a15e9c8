//! Coverage of the capture in one sentence: the share of commands not timed because of gaps in the capture, with the
//! main reason.

use crate::Report;
use crate::format::{counted, thousands};
use crate::whole::CommandOutcomes;
use smbscope_model::{Coverage, ExchangeOutcome, SkippedPackets};

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

/// Returns the reasons found in the capture, strongest evidence first.
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
    let mut causes = [
        (one_way, UntimedCause::OneDirection),
        (quality.foreign_replies, UntimedCause::OtherProtocol),
        (gaps, UntimedCause::LostPackets),
        (when(quality.snapped_packets > 0, quality.headers_truncated + quality.framing_cut), UntimedCause::SnapLength),
        (when(quality.responses_without_request > 0, quality.midstream_flows), UntimedCause::Beginning),
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

/// Formats the sentence, with another one about packets that could not be read.
pub(crate) fn quality(report: &Report) -> String {
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

/// Formats the sentence for a capture in which damage left no command untimed.
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
