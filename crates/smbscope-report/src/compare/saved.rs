//! What a comparison needs of a report, read from its JSON (`smbscope.report/1`); keys that it does not need are
//! passed over.

use crate::{Report, json};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fmt;

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

#[derive(Debug, Clone, Deserialize)]
pub(super) struct Generator {
    pub(super) version: String,
}

/// A capture of a report.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Capture {
    name: String,
    format: String,
    packets: u64,
    bytes: u64,
    first_ns: Option<i64>,
    last_ns: Option<i64>,
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
pub(super) struct Totals {
    pub(super) commands: u64,
    pub(super) untimed: u64,
    pub(super) outcomes: BTreeMap<String, u64>,
    pub(super) elapsed_ns: Option<i64>,
    pub(super) headline: Row,
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

#[derive(Debug, Clone, Deserialize)]
pub(super) struct Command {
    pub(super) protocol: Protocol,
    pub(super) command: String,
    groups: Vec<String>,
    #[serde(flatten)]
    pub(super) row: Row,
    #[serde(default)]
    pub(super) subcommands: Vec<Subcommand>,
}

/// A part of a command.
#[derive(Debug, Clone, Deserialize)]
pub(super) struct Subcommand {
    pub(super) subcommand: String,
    #[serde(flatten)]
    pub(super) row: Row,
}

#[derive(Debug, Clone, Copy, Deserialize)]
pub(super) enum Protocol {
    #[serde(rename = "SMB1")]
    Smb1,
    #[serde(rename = "SMB2")]
    Smb2,
}

#[derive(Debug, Clone, Deserialize)]
pub(super) struct Group {
    group: String,
    parts: Vec<Group>,
    #[serde(flatten)]
    pub(super) row: Row,
}

/// Counts and times of a set of exchanges.
#[derive(Debug, Clone, Default, Deserialize)]
pub(super) struct Row {
    pub(super) count: u64,
    pub(super) timed: u64,
    pub(super) errors: BTreeMap<String, u64>,
    pub(super) distribution: [u64; 10],
    pub(super) response_time: Times,
}

/// Figures in nanoseconds.
#[derive(Debug, Clone, Default, Deserialize)]
pub(super) struct Times {
    pub(super) mean: Option<i64>,
    pub(super) p50: Option<i64>,
    pub(super) p95: Option<i64>,
    pub(super) p99: Option<i64>,
    pub(super) max: Option<i64>,
}

/// Why a file is no report.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SavedError {
    /// It is no JSON.
    NotJson(String),
    /// It is JSON of another kind, which says this of itself.
    AnotherKind(Option<String>),
    /// It says that it is a report, and is not as one is.
    NotAsDescribed(String),
}

impl fmt::Display for SavedError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            SavedError::NotJson(why) => write!(f, "not JSON, or not all of it: {why}"),
            SavedError::AnotherKind(Some(found)) => {
                write!(f, "its `schema` is {found:?}, and not {:?}: give a report made with analyze", json::SCHEMA)
            }
            SavedError::AnotherKind(None) => {
                write!(f, "JSON without `schema`: give a report made with analyze --format json")
            }
            SavedError::NotAsDescribed(why) => write!(f, "not as {:?} describes it: {why}", json::SCHEMA),
        }
    }
}

impl std::error::Error for SavedError {}

impl SavedReport {
    /// Reads a report saved as JSON.
    pub fn parse(text: &[u8]) -> Result<SavedReport, SavedError> {
        /// What every document of smbscope begins with.
        #[derive(Deserialize)]
        struct Head {
            schema: Option<serde_json::Value>,
        }
        let head: Head = serde_json::from_slice(text).map_err(|error| SavedError::NotJson(error.to_string()))?;
        match head.schema {
            Some(serde_json::Value::String(schema)) if schema == json::SCHEMA => {}
            Some(serde_json::Value::String(schema)) => return Err(SavedError::AnotherKind(Some(schema))),
            _ => return Err(SavedError::AnotherKind(None)),
        }
        serde_json::from_slice(text).map_err(|error| SavedError::NotAsDescribed(error.to_string()))
    }

    /// What would be read if the report were saved, so that it makes no difference whether it was.
    pub fn of(report: &Report) -> SavedReport {
        let mut text = Vec::new();
        json::write(report, &mut text).expect("writing to memory does not fail");
        SavedReport::parse(&text).expect("a report is as its schema describes it")
    }

    /// The row of a group, or of a part of one.
    pub(super) fn group(&self, name: &str) -> Option<&Row> {
        let all = self.groups.iter().flat_map(|group| std::iter::once(group).chain(&group.parts));
        all.filter(|group| group.group == name).map(|group| &group.row).next()
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
            let figures = only.response_time.clone();
            return Row { response_time: figures, ..Row::added_up(rows) };
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
            sum += row.response_time.mean.map_or(0, |mean| i128::from(mean) * i128::from(row.timed));
        }
        all.response_time.mean = (all.timed > 0).then(|| (sum / i128::from(all.timed)) as i64);
        all
    }
}

impl Group {
    pub(super) fn new(group: String, parts: Vec<Group>, row: Row) -> Group {
        Group { group, parts, row }
    }
}

impl Command {
    pub(super) fn new(
        protocol: Protocol,
        command: String,
        groups: Vec<String>,
        row: Row,
        subcommands: Vec<Subcommand>,
    ) -> Command {
        Command { protocol, command, groups, row, subcommands }
    }

    /// The entry holds the waits by design of the command.
    pub(super) fn is_waiting(&self) -> bool {
        self.groups == [smbscope_model::Group::Waiting.name()]
    }
}

impl From<Protocol> for smbscope_model::Protocol {
    fn from(protocol: Protocol) -> smbscope_model::Protocol {
        match protocol {
            Protocol::Smb1 => smbscope_model::Protocol::Smb1,
            Protocol::Smb2 => smbscope_model::Protocol::Smb2,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn error(text: &str) -> SavedError {
        SavedReport::parse(text.as_bytes()).expect_err("no report")
    }

    #[test]
    fn what_is_no_report_says_what_it_is() {
        assert!(matches!(error("{\"schema\": "), SavedError::NotJson(_)));
        assert_eq!(error("{}"), SavedError::AnotherKind(None));
        assert_eq!(error(r#"{"schema": 7}"#), SavedError::AnotherKind(None));
        let other = error(r#"{"schema": "smbscope.compare/1"}"#);
        let expected = "its `schema` is \"smbscope.compare/1\", and not \"smbscope.report/1\": give a report made with \
                        analyze";
        assert_eq!(other.to_string(), expected);
        assert!(matches!(error(r#"{"schema": "smbscope.report/1"}"#), SavedError::NotAsDescribed(_)));
    }
}
