//! What a comparison needs of a report, read from its JSON (`smbscope.report/1`); keys that it does not need are
//! passed over.

use crate::Report;
use crate::document::{self, Generator, ParseError};
use crate::json::KIND;
use crate::json::entries::{Command, Group, Row, Totals};
use serde::{Deserialize, Serialize};
use smbscope_model::{CaptureInfo, Nanos, Timestamp};

/// A report as its JSON says it.
#[derive(Debug, Clone, Deserialize)]
pub struct SavedReport {
    pub(super) generator: Generator,
    pub(super) title: Option<String>,
    /// The expression that chose the exchanges, where they are not all.
    pub(super) filter: Option<String>,
    pub(super) captures: Vec<Capture>,
    pub(super) quality: Quality,
    pub(super) totals: Totals,
    pub(super) connections: Vec<Connection>,
    pub(super) commands: Vec<Command>,
    pub(super) groups: Vec<Group>,
    pub(super) clients: Vec<Client>,
    pub(super) warnings: Vec<String>,
}

/// A capture of a report, as far as a comparison tells of it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Capture {
    name: String,
    format: String,
    packets: u64,
    bytes: u64,
    first_ns: Option<Timestamp>,
    last_ns: Option<Timestamp>,
    /// They stand among the notes.
    #[serde(skip_serializing)]
    pub(super) warnings: Vec<String>,
}

#[derive(Debug, Clone, Deserialize)]
pub(super) struct Quality {
    pub(super) sentence: String,
    pub(super) encrypted_frames: u64,
}

#[derive(Debug, Clone, Deserialize)]
pub(super) struct Connection {
    pub(super) dialect: Option<String>,
}

#[derive(Debug, Clone, Deserialize)]
pub(super) struct Client {
    pub(super) bytes_read: u64,
    pub(super) bytes_written: u64,
}

impl SavedReport {
    /// Reads a report saved as JSON.
    pub fn parse(text: &[u8]) -> Result<SavedReport, ParseError> {
        document::parse(KIND, text)
    }

    /// What would be read if the report were saved, so that it makes no difference whether it was.
    pub fn of(report: &Report) -> SavedReport {
        let clients = &report.aggregate.clients;
        let clients = clients.entries.iter().map(|(_, client)| client).chain(&clients.other);
        SavedReport {
            generator: Generator::new(&report.version),
            title: report.title.clone(),
            filter: report.filter.as_ref().map(|filter| filter.expression.clone()),
            captures: report.captures.iter().map(Capture::of).collect(),
            quality: Quality { sentence: report.quality_sentence(), encrypted_frames: report.quality.encrypted_frames },
            totals: Totals::of(report),
            connections: report
                .connections
                .iter()
                .map(|connection| Connection { dialect: connection.dialect.map(|dialect| dialect.to_string()) })
                .collect(),
            commands: report.aggregate.commands.iter().map(Command::of).collect(),
            groups: Group::all(&report.aggregate),
            clients: clients
                .map(|client| Client { bytes_read: client.bytes_read, bytes_written: client.bytes_written })
                .collect(),
            warnings: report.warnings.clone(),
        }
    }

    /// The row of a group, or of a part of one.
    pub(super) fn group(&self, name: &str) -> Option<&Row> {
        let all = self.groups.iter().flat_map(|group| std::iter::once(group).chain(&group.parts));
        all.filter(|group| group.group == name).map(|group| &group.row).next()
    }
}

impl Capture {
    fn of(info: &CaptureInfo) -> Capture {
        Capture {
            name: info.name.clone(),
            format: info.format.to_owned(),
            packets: info.packets,
            bytes: info.bytes,
            first_ns: info.first,
            last_ns: info.last,
            warnings: info.warnings.clone(),
        }
    }
}

impl Row {
    /// Error responses.
    pub(super) fn errors(&self) -> u64 {
        super::sum(self.errors.values().copied())
    }

    /// What can be said of several together: percentiles cannot be put together, and stay absent.
    pub(super) fn together(rows: &[&Row]) -> Row {
        if let [only] = rows.iter().filter(|row| row.timed > 0).collect::<Vec<_>>().as_slice() {
            // The others have no times.
            return Row { response_time: only.response_time, ..Row::added_up(rows) };
        }
        Row::added_up(rows)
    }

    fn added_up(rows: &[&Row]) -> Row {
        let mut all = Row::default();
        let mut sum = 0i128;
        for row in rows {
            all.count = all.count.saturating_add(row.count);
            all.timed = all.timed.saturating_add(row.timed);
            for (status, count) in &row.errors {
                let errors = all.errors.entry(status.clone()).or_default();
                *errors = errors.saturating_add(*count);
            }
            for (all, band) in all.distribution.iter_mut().zip(row.distribution) {
                *all = all.saturating_add(band);
            }
            all.response_time.max = all.response_time.max.max(row.response_time.max);
            sum += row.response_time.mean.map_or(0, |mean| i128::from(mean.0) * i128::from(row.timed));
        }
        all.response_time.mean = (all.timed > 0).then(|| Nanos((sum / i128::from(all.timed)) as i64));
        all
    }
}

impl Command {
    /// The entry holds the waits by design of the command.
    pub(super) fn is_waiting(&self) -> bool {
        self.groups == [smbscope_model::Group::Waiting]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn error(text: &str) -> ParseError {
        SavedReport::parse(text.as_bytes()).expect_err("no report")
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
