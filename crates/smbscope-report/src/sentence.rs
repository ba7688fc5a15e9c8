//! How far the figures cover the capture, in one plain sentence: which share of the commands could not be timed because
//! the capture is damaged, and the main reason.
//!
//! Only damage counts here: packets that the capture lost, a beginning in the middle of connections, a snap length that
//! is too short, a clock that stepped back, an end in the middle of a response. A server that never answers and
//! encryption are no damage.

use crate::format::{counted, thousands};
use crate::whole::Whole;
use crate::{Report, skipped, warnings};
use smbscope_model::Outcome;

/// Why commands could not be timed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Cause {
    OneDirection,
    OtherProtocol,
    LostPackets,
    SnapLength,
    Beginning,
    Clock,
    End,
}

impl Cause {
    /// What the capture did.
    fn text(self) -> &'static str {
        match self {
            Cause::OneDirection => "the capture holds only one direction of the traffic",
            Cause::OtherProtocol => "the server answered in another protocol than SMB",
            Cause::LostPackets => "the capture lost packets",
            Cause::SnapLength => "the snap length cut their headers off",
            Cause::Beginning => "the capture began in the middle of connections",
            Cause::Clock => "the clock of the capture stepped back",
            Cause::End => "the capture ended before their last packets",
        }
    }
}

/// Commands as the capture shows them.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Coverage {
    /// Commands that could be timed.
    timed: u64,
    /// Commands that the capture shows in part and that damage left without a time.
    pub(crate) in_part: u64,
    /// Commands of which it shows nothing, as an estimate.
    unseen: f64,
    /// Commands without a time for another reason than damage.
    others: u64,
}

impl Coverage {
    pub(crate) fn of(report: &Report) -> Coverage {
        let whole = Whole::of(report);
        let count = |wanted| whole.ended(wanted);
        let timed = count(Outcome::Complete);
        let requests = count(Outcome::ResponseNotCaptured);
        let responses = count(Outcome::RequestNotCaptured);
        let both_halves = count(Outcome::ResponseEndMissing) + count(Outcome::ClockStep);
        let halves = requests + responses + count(Outcome::AmbiguousMatch);
        // A message whose header was cut off is half of a command: one of which the other half is counted already, as
        // long as there are such, then one of which both halves are cut.
        let cut = report.quality.headers_truncated.saturating_sub(halves).div_ceil(2);
        let others = whole.untimed.saturating_sub(halves + both_halves);
        let seen_whole = timed + both_halves;
        // Two looks at the same commands, one at the requests and one at the responses: how many both missed follows
        // from how many each missed (Lincoln 1930). It is too low where packets are lost in bursts.
        let lost_both = main_causes(report).first() == Some(&Cause::LostPackets) && seen_whole > 0;
        let unseen = if lost_both { requests as f64 * responses as f64 / seen_whole as f64 } else { 0.0 };
        Coverage { timed, in_part: halves + both_halves + cut, unseen, others }
    }

    /// The share of commands that damage left without a time.
    fn percent(&self) -> f64 {
        let missed = self.in_part as f64 + self.unseen;
        let all = missed + (self.timed + self.others) as f64;
        if all > 0.0 { 100.0 * missed / all } else { 0.0 }
    }
}

/// The reasons that the capture gives, the one with the most evidence first.
fn main_causes(report: &Report) -> Vec<Cause> {
    let quality = &report.quality;
    let gaps = quality.capture_gaps.max(u64::from(quality.dropped_packets + quality.missing_unacknowledged_bytes > 0));
    let when = |seen: bool, weight: u64| if seen { weight } else { 0 };
    let ended = quality.response_end_missing > 0 && gaps == 0;
    // What looks like gaps is the other direction.
    let (to_server, to_client) = warnings::one_way_connections(report);
    let one_way = (to_server + to_client) as u64;
    let (gaps, one_way) = match report.connections.len() as u64 {
        0 => (gaps, 0),
        all => (gaps * (all - one_way) / all, gaps.max(1) * one_way / all),
    };
    let mut causes = [
        (one_way, Cause::OneDirection),
        (quality.foreign_replies, Cause::OtherProtocol),
        (gaps, Cause::LostPackets),
        (when(quality.snapped_packets > 0, quality.headers_truncated), Cause::SnapLength),
        (when(quality.responses_without_request > 0, quality.midstream_flows), Cause::Beginning),
        (quality.clock_steps, Cause::Clock),
        (when(ended, quality.response_end_missing), Cause::End),
    ];
    // Sorting keeps the order of equals.
    causes.sort_by_key(|(weight, _)| std::cmp::Reverse(*weight));
    causes.into_iter().filter(|(weight, _)| *weight > 0).map(|(_, cause)| cause).collect()
}

/// The sentence, and another one where a part of the packets could not be read at all.
pub(crate) fn quality(report: &Report) -> String {
    let of_commands = of_commands(report);
    match skipped::hidden(report) {
        Some(hidden) => format!("{of_commands} {hidden}."),
        None => of_commands,
    }
}

fn of_commands(report: &Report) -> String {
    let coverage = Coverage::of(report);
    let encrypted = report.quality.encrypted_frames > 0;
    if coverage.in_part == 0 {
        return undamaged(report, &coverage);
    }
    let (commands, command) = match encrypted {
        false => ("commands", "command"),
        true => ("commands and encrypted frames", "command or encrypted frame"),
    };
    let causes = main_causes(report);
    let mainly = if causes.len() > 1 { ", mainly" } else { "" };
    let why = causes.first().map_or("packets are missing", |cause| cause.text());
    match coverage.percent() {
        _ if coverage.timed == 0 => format!("No {command} could be timed{mainly} because {why}."),
        percent if percent < 0.05 => format!("Less than 0.1 % of {commands} could not be timed{mainly} because {why}."),
        percent => format!("About {percent:.1} % of {commands} could not be timed{mainly} because {why}."),
    }
}

/// The sentence where damage cost no command its time.
fn undamaged(report: &Report, coverage: &Coverage) -> String {
    let whole = Whole::of(report);
    let count = whole.count;
    let what = match whole.encrypted {
        _ if count == 0 => return "No SMB command was seen.".to_owned(),
        0 => "command",
        n if n == count => "encrypted frame",
        _ => "command and encrypted frame",
    };
    let unanswered = whole.ended(Outcome::Unanswered);
    let others = coverage.others.saturating_sub(unanswered);
    let answers = match unanswered {
        0 => String::new(),
        1 => "1 without an answer by its end".to_owned(),
        n => format!("{} without answers by its end", thousands(n)),
    };
    let others = if others > 0 {
        counted(others, "that has no clear answer", "that have no clear answers")
    } else {
        String::new()
    };
    let exceptions: Vec<String> = [answers, others].into_iter().filter(|text| !text.is_empty()).collect();
    let exceptions =
        if exceptions.is_empty() { String::new() } else { format!(", but for {}", exceptions.join(" and ")) };
    let quality = &report.quality;
    if quality.dropped_packets + quality.capture_gaps > 0 {
        return format!("Every {what} that the capture shows could be timed{exceptions}, although it lost packets.");
    }
    format!("Every {what} in the capture could be timed{exceptions}.")
}
