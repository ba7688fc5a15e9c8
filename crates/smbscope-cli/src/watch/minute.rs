//! A minute of `watch`, as a line of text or JSON.

use super::server;
use serde::Serialize;
use smbscope_capture::live::PacketDrops;
use smbscope_model::prose::{clean, time_of_day};
use smbscope_model::{Nanos, Timestamp};
use smbscope_report::{Answer, Report, counted, or_dash, rate};
use smbscope_run::ServerMinute;
use smbscope_run::analysis::AnalysisError;
use smbscope_run::analysis::live::{LiveMinute, LiveSecond};
use smbscope_stats::DurationStatistics;

/// `smbscope.minute/1`. Durations are in nanoseconds, moments in nanoseconds since the Unix epoch.
#[derive(Debug, Clone, Serialize)]
pub(super) struct Minute {
    schema: &'static str,
    pub(super) from_ns: Timestamp,
    pub(super) to_ns: Timestamp,
    /// Commands that ended in the minute, and those outstanding for a second or longer at its end.
    pub(super) commands: u64,
    pub(super) errors: u64,
    /// Commands outstanding at the end of the minute, and the time since the oldest was sent.
    pub(super) outstanding: u64,
    oldest_outstanding_ns: Option<Nanos>,
    pub(super) response_time: DurationStatistics,
    groups: Vec<MinuteGroup>,
    retransmitted_segments: u64,
    /// Packets missing from the connections of this minute.
    missing_packets: u64,
    /// Packets that the kernel dropped since the start. Null if the capture program doesn't tell.
    kernel_dropped_packets: Option<u64>,
    /// Packets of any traffic that the network interface dropped since the start. Null if that is unknown.
    interface_dropped_packets: Option<u64>,
    /// Times marked on the display with the key `k`.
    pub(super) marks: Vec<Timestamp>,
    #[serde(flatten)]
    pub(super) server: ServerMinute,
    /// One sentence about the minute.
    pub(super) headline: String,
    /// Null for a minute without commands.
    pub(super) answer: Option<Answer>,
    hour_from_ns: Timestamp,
    pub(super) hour_headline: String,
    hour_answer: Option<Answer>,
}

#[derive(Debug, Clone, Serialize)]
struct MinuteGroup {
    group: &'static str,
    commands: u64,
    errors: u64,
    response_time: DurationStatistics,
}

impl Minute {
    pub(super) fn new(live: &LiveMinute, second: &LiveSecond, dropped: Option<PacketDrops>) -> Minute {
        let report = live.minute.as_ref().ok();
        let answer = |report: &Result<Report, AnalysisError>| {
            let report = report.as_ref().ok().filter(|report| report.aggregate.count > 0)?;
            Some(report.explanation.answer.clone())
        };
        let groups = report.into_iter().flat_map(|report| &report.aggregate.groups).map(|group| MinuteGroup {
            group: group.group.name(),
            commands: group.row.count,
            errors: group.row.errors(),
            response_time: group.row.response_time,
        });
        let aggregate = report.map(|report| &report.aggregate);
        let quality = report.map(|report| &report.quality);
        Minute {
            schema: "smbscope.minute/1",
            from_ns: live.from,
            to_ns: live.to,
            commands: aggregate.map_or(0, |aggregate| aggregate.count),
            errors: aggregate.map_or(0, |aggregate| aggregate.errors),
            outstanding: second.outstanding_count,
            oldest_outstanding_ns: second.outstanding.first().map(|oldest| live.to - oldest.since),
            response_time: aggregate.map(|aggregate| aggregate.total.response_time).unwrap_or_default(),
            groups: groups.collect(),
            retransmitted_segments: quality.map_or(0, |quality| quality.retransmitted_segments),
            missing_packets: quality.map_or(0, |quality| quality.dropped_packets),
            kernel_dropped_packets: dropped.map(|dropped| dropped.kernel),
            interface_dropped_packets: dropped.map(|dropped| dropped.interface),
            marks: Vec::new(),
            server: ServerMinute::default(),
            headline: headline(&live.minute),
            answer: answer(&live.minute),
            hour_from_ns: live.hour_from,
            hour_headline: headline(&live.hour),
            hour_answer: answer(&live.hour),
        }
    }

    pub(super) fn json(&self) -> String {
        serde_json::to_string(self).unwrap_or_default()
    }

    /// `14:02 UTC  1,234 commands, 20.6/s, median 1.2 ms, p95 14 ms, p99 80 ms, 3 errors: Nothing is slow.`
    pub(super) fn line(&self) -> String {
        let time = time_of_day(self.from_ns, 0);
        if self.commands == 0 {
            let server = self.server_words().map(|words| format!(", {words}")).unwrap_or_default();
            return format!("{} UTC  {}{server}", &time[..5], self.headline);
        }
        let seconds = (self.to_ns - self.from_ns).0 as f64 / 1e9;
        let DurationStatistics { p50, p95, p99, .. } = self.response_time;
        let mut line = format!(
            "{} UTC  {}, {}/s, median {}, p95 {}, p99 {}",
            &time[..5],
            counted(self.commands, "command", "commands"),
            rate(self.commands as f64 / seconds.max(1e-3)),
            or_dash(p50),
            or_dash(p95),
            or_dash(p99),
        );
        let counts = [(self.errors, "error", "errors"), (self.outstanding, "outstanding", "outstanding")];
        for (count, one, many) in counts.into_iter().filter(|(count, ..)| *count > 0) {
            line += &format!(", {}", counted(count, one, many));
        }
        let dropped = [(self.kernel_dropped_packets, "kernel"), (self.interface_dropped_packets, "network interface")];
        for (packets, place) in dropped {
            if let Some(packets) = packets.filter(|packets| *packets > 0) {
                line += &format!(", {} dropped by the {place} since the start", counted(packets, "packet", "packets"));
            }
        }
        if let Some(words) = self.server_words() {
            line += &format!(", {words}");
        }
        format!("{line}: {}", self.headline)
    }

    /// Returns what the server did in words, or `None` if that is unknown.
    pub(super) fn server_words(&self) -> Option<String> {
        Some(server::words(&self.server)).filter(|words| !words.is_empty())
    }
}

/// Returns the answer in one sentence, or the reason if it is missing.
pub(super) fn headline(report: &Result<Report, AnalysisError>) -> String {
    match report {
        Ok(report) if report.aggregate.count == 0 => "no commands".to_owned(),
        Ok(report) => clean(&report.explanation.answer.headline),
        Err(AnalysisError::NoSmb(_)) => "no SMB".to_owned(),
        Err(error) => clean(&error.to_string()),
    }
}
