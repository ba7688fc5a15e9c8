//! The part of a report or load point that comparisons use.

use super::{DialectCount, Overview};
use crate::document::{self, ParseError};
use crate::json::entries::{CommandEntry, EntityEntry, GroupEntry};
use crate::json::slices::SliceListing;
use crate::json::waits::SlowExchange;
use crate::json::{KIND, ReportDocument};
use crate::{Answer, Report};
use smbscope_model::{CaptureInfo, Nanos};
use smbscope_stats::{CommandStatistics, FileKey, HeatMap};
use std::collections::BTreeMap;

pub(super) const LISTED_MAX: usize = 20;

#[derive(Debug, Clone)]
pub struct ComparableReport {
    pub(super) title: Option<String>,
    pub(super) filter: Option<String>,
    pub(super) version: String,
    pub(super) captures: Vec<CaptureInfo>,
    pub(super) quality: String,
    pub(super) encrypted_frames: u64,
    pub(super) overview: Overview,
    pub(super) headline: CommandStatistics,
    pub(super) groups: Vec<GroupEntry>,
    pub(super) commands: Vec<CommandEntry>,
    pub(super) heatmap: Option<HeatMap>,
    pub(super) slowest: Vec<SlowExchange>,
    pub(super) files: Vec<EntityEntry<FileKey>>,
    pub(super) slices: Option<SliceListing>,
    pub(super) warnings: Vec<String>,
    pub(super) answer: Answer,
}

impl ComparableReport {
    pub fn parse(text: &[u8]) -> Result<ComparableReport, ParseError> {
        document::parse(KIND, text).map(ComparableReport::of_document)
    }

    /// Equivalent to saving the report and parsing the file.
    pub fn from_report(report: &Report) -> ComparableReport {
        ComparableReport::of_document(ReportDocument::within(report, usize::MAX))
    }

    fn of_document(report: ReportDocument<'_>) -> ComparableReport {
        let totals = report.totals;
        let mut dialects: BTreeMap<Option<String>, u64> = BTreeMap::new();
        for connection in report.connections {
            *dialects.entry(connection.dialect).or_default() += 1;
        }
        let overview = Overview {
            elapsed_ns: totals.elapsed_ns,
            commands: totals.commands,
            timed: totals.outcomes.get("complete").copied().unwrap_or(0),
            untimed: totals.untimed,
            errors: super::sum(report.groups.iter().map(|group| group.row.errors())),
            // Every command has one client, so the clients add up to the total.
            bytes_read: super::sum(report.clients.iter().map(|client| client.figures.bytes_read)),
            bytes_written: super::sum(report.clients.iter().map(|client| client.figures.bytes_written)),
            ..Overview::default()
        };
        ComparableReport {
            title: report.title.map(Into::into),
            filter: report.filter.map(Into::into),
            version: report.generator.version,
            captures: report.captures.into_owned(),
            quality: report.quality.sentence,
            encrypted_frames: report.quality.counters.encrypted_frames,
            overview: overview.completed(dialects),
            headline: totals.headline,
            groups: report.groups,
            commands: report.commands,
            heatmap: report.heatmap.into_owned().if_any(),
            slowest: report.slowest.into_iter().take(LISTED_MAX).collect(),
            files: report.files.into_iter().take(LISTED_MAX).collect(),
            slices: report.slices,
            warnings: report.warnings.into_owned(),
            answer: report.answer,
        }
    }

    pub(super) fn group(&self, name: &str) -> Option<&GroupEntry> {
        GroupEntry::find(&self.groups, name)
    }
}

impl Overview {
    pub(super) fn completed(self, dialects: BTreeMap<Option<String>, u64>) -> Overview {
        let seconds = self.elapsed_ns.filter(|elapsed| elapsed.0 > 0).map(Nanos::as_secs_f64);
        let bytes = self.bytes_read.saturating_add(self.bytes_written);
        let mut dialects: Vec<DialectCount> =
            dialects.into_iter().map(|(dialect, connections)| DialectCount { dialect, connections }).collect();
        dialects.sort_by_key(|found| (std::cmp::Reverse(found.connections), found.dialect.is_none()));
        Overview {
            connections: super::sum(dialects.iter().map(|found| found.connections)),
            bytes_per_second: seconds.map(|seconds| bytes as f64 / seconds),
            commands_per_second: seconds.map(|seconds| self.commands as f64 / seconds),
            dialects,
            ..self
        }
    }
}

/// Combines rows. Percentiles can't be combined, so they stay None unless only one row has times.
pub(super) fn together(rows: &[&CommandStatistics]) -> CommandStatistics {
    let mut all = CommandStatistics::default();
    let mut sum = 0i128;
    for row in rows {
        all.count = all.count.saturating_add(row.count);
        all.timed = all.timed.saturating_add(row.timed);
        for (status, count) in &row.errors {
            let errors = all.errors.entry(status.clone()).or_default();
            *errors = errors.saturating_add(*count);
        }
        all.distribution.merge(&row.distribution);
        all.response_time.max = all.response_time.max.max(row.response_time.max);
        sum += row.response_time.mean.map_or(0, |mean| i128::from(mean.0) * i128::from(row.timed));
    }
    all.response_time.mean = (all.timed > 0).then(|| Nanos((sum / i128::from(all.timed)) as i64));
    if let [only] = rows.iter().filter(|row| row.timed > 0).collect::<Vec<_>>().as_slice() {
        all.response_time = only.response_time;
    }
    all
}

impl CommandEntry {
    pub(super) fn is_waiting(&self) -> bool {
        self.groups == [smbscope_model::CommandGroup::Waiting]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn error(text: &str) -> ParseError {
        ComparableReport::parse(text.as_bytes()).expect_err("no report")
    }

    #[test]
    fn what_is_no_report_says_what_it_is() {
        assert!(matches!(error("{\"schema\": "), ParseError::NotJson(_)));
        assert_eq!(error("{}"), ParseError::AnotherKind(KIND, None));
        assert_eq!(error(r#"{"schema": 7}"#), ParseError::AnotherKind(KIND, None));
        let other = error(r#"{"schema": "smbscope.compare/1"}"#);
        let expected = "its `schema` is \"smbscope.compare/1\", and not \"smbscope.report/1\": give a report made with \
                        analyze --format json";
        assert_eq!(other.to_string(), expected);
        assert!(matches!(error(r#"{"schema": "smbscope.report/1"}"#), ParseError::NotAsDescribed(..)));
    }
}
