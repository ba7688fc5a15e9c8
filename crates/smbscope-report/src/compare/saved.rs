//! The part of a report or load point that comparisons use. Equivalent commands of SMB1 and SMB2 are paired, so that
//! runs with different dialects can be compared.
//!
//! A row is paired only if each of its commands occurs in some columns, but no column has commands of both protocols.

use super::{ComparedCommand, ComparisonInput, DialectCount, Overview, row_of};
use crate::document::{self, ParseError};
use crate::format::{clean, visible_percent};
use crate::json::entries::{CommandEntry, ConnectionEntry, EntityEntry, GroupEntry};
use crate::json::listings::{SliceListing, SlowExchange};
use crate::json::offers::NegotiationEntry;
use crate::json::{KIND, ReportDocument, entries};
use crate::{Answer, Report};
use smbscope_model::units::short_bytes;
use smbscope_model::{CaptureInfo, Nanos, Protocol};
use smbscope_stats::{CommandStatistics, FileKey, HeatMap};
use std::collections::{BTreeMap, BTreeSet};

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
    pub(super) negotiated: Negotiated,
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
        let negotiated = Negotiated::new(&report.connections, &report.negotiations);
        let mut dialects: BTreeMap<Option<String>, u64> = BTreeMap::new();
        for connection in report.connections {
            *dialects.entry(connection.dialect).or_default() += 1;
        }
        let per = |count: u64, of: Option<usize>| Some(count as f64 / of.filter(|of| *of > 0)? as f64);
        let connections = report.time_split.connections;
        let overview = Overview {
            elapsed_ns: totals.elapsed_ns,
            commands: totals.commands,
            timed: totals.outcomes.get("complete").copied().unwrap_or(0),
            untimed: totals.untimed,
            errors: super::sum(report.groups.iter().map(|group| group.row.errors())),
            // Every command has one client, so the clients add up to the total.
            bytes_read: super::sum(report.clients.iter().map(|client| client.figures.bytes_read)),
            bytes_written: super::sum(report.clients.iter().map(|client| client.figures.bytes_written)),
            round_trips_per_file: per(report.time_split.round_trips, EntityEntry::number(&report.files)),
            connections_per_client: per(connections, EntityEntry::number(&report.clients)),
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
            negotiated,
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
            commands_per_megabyte: (bytes > 0).then(|| self.commands as f64 * 1e6 / bytes as f64),
            bytes_per_second: seconds.map(|seconds| bytes as f64 / seconds),
            commands_per_second: seconds.map(|seconds| self.commands as f64 / seconds),
            dialects,
            ..self
        }
    }
}

/// Compared capabilities: those with an effect on response times.
const CAPABILITIES: [&str; 5] = ["Large MTU", "Leasing", "Directory leasing", "Multichannel", "Persistent handles"];
/// Smallest ratio of credits that is a difference: servers grant them by demand.
const CREDITS: u16 = 2;

/// Limits and capabilities of a report's connections. Those that were not captured are absent.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Negotiated {
    values: BTreeMap<&'static str, BTreeSet<String>>,
    credits: u16,
}

impl Negotiated {
    fn new(connections: &[ConnectionEntry<'_>], negotiations: &[NegotiationEntry]) -> Negotiated {
        let mut found = Negotiated::default();
        let (mut signed, mut messages, mut encrypting) = (0u64, 0u64, 0);
        for connection in connections {
            connection.dialect.iter().for_each(|dialect| found.add("dialect", dialect.clone()));
            found.credits = found.credits.max(connection.max_credits_granted);
            signed = signed.saturating_add(connection.signed_messages);
            messages = messages.saturating_add(connection.messages);
            encrypting += usize::from(connection.encrypted_frames > 0);
            if let Some(negotiation) = connection.negotiation.and_then(|at| negotiations.get(at)) {
                found.add_offers(negotiation);
            }
        }
        if messages > 0 {
            found.add("signed messages", some_of(signed, messages));
        }
        if !connections.is_empty() {
            found.add("encrypted connections", some_of(encrypting as u64, connections.len() as u64));
        }
        found
    }

    fn add(&mut self, name: &'static str, value: String) {
        self.values.entry(name).or_default().insert(value);
    }

    fn add_offers(&mut self, negotiation: &NegotiationEntry) {
        for feature in &negotiation.features {
            let known = CAPABILITIES.into_iter().find(|name| *name == feature.feature);
            if let Some((name, is_available)) = known.zip(feature.is_available()) {
                self.add(name, if is_available { "yes" } else { "no" }.to_owned());
            }
        }
        let Some(server) = &negotiation.server else { return };
        let sizes = [("largest read", server.max_read), ("largest write", server.max_write)];
        for (name, size) in sizes {
            size.into_iter().for_each(|size| self.add(name, short_bytes(size.into())));
        }
        let algorithms = &server.algorithms;
        let chosen = [
            ("cipher", &algorithms.ciphers),
            ("signing algorithm", &algorithms.signing_algorithms),
            ("compression", &algorithms.compression_algorithms),
        ];
        for (name, chosen) in chosen {
            chosen.iter().flatten().for_each(|algorithm| self.add(name, clean(algorithm)));
        }
    }

    /// Formats `Negotiated: dialect 2.1 → 3.1.1; signed messages none → all.` Values known on one side only are left
    /// out. Returns None if there is no difference.
    pub(super) fn difference(&self, base: &Negotiated) -> Option<String> {
        let listed = |values: &BTreeSet<String>| values.iter().map(String::as_str).collect::<Vec<_>>().join(" and ");
        let changed = self.values.iter().filter_map(|(name, new)| {
            let old = base.values.get(name).filter(|old| *old != new)?;
            let name = if CAPABILITIES.contains(name) { name.to_lowercase() } else { (*name).to_owned() };
            Some(format!("{name} {} → {}", listed(old), listed(new)))
        });
        let mut changed: Vec<String> = changed.collect();
        let (fewer, more) = (self.credits.min(base.credits), self.credits.max(base.credits));
        if fewer > 0 && more / fewer >= CREDITS {
            changed.push(format!("credits in one response up to {} → {}", base.credits, self.credits));
        }
        // The dialect explains the other differences.
        changed.sort_by_key(|change| !change.starts_with("dialect "));
        (!changed.is_empty()).then(|| format!("Negotiated: {}.", changed.join("; ")))
    }
}

fn some_of(part: u64, whole: u64) -> String {
    match part {
        0 => "none".to_owned(),
        part if part >= whole => "all".to_owned(),
        part => format!("{}%", visible_percent(part, whole)),
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

/// SMB2 commands and their SMB1 equivalents without the prefix `SMB_COM_`. Actions that take several commands in one
/// protocol have no pair: in SMB2, deleting a file takes CREATE, SET_INFO and CLOSE.
const PAIRS: [(&str, &[&str]); 17] = [
    ("NEGOTIATE", &["NEGOTIATE"]),
    ("SESSION_SETUP", &["SESSION_SETUP_ANDX"]),
    ("LOGOFF", &["LOGOFF_ANDX"]),
    ("TREE_CONNECT", &["TREE_CONNECT", "TREE_CONNECT_ANDX"]),
    ("TREE_DISCONNECT", &["TREE_DISCONNECT"]),
    (
        "CREATE",
        &[
            "OPEN",
            "CREATE",
            "CREATE_TEMPORARY",
            "CREATE_NEW",
            "OPEN_ANDX",
            "NT_CREATE_ANDX",
            "NT_TRANSACT_CREATE",
            "TRANS2_OPEN2",
        ],
    ),
    ("CLOSE", &["CLOSE"]),
    ("FLUSH", &["FLUSH"]),
    ("READ", &["READ", "LOCK_AND_READ", "READ_RAW", "READ_MPX", "READ_ANDX"]),
    ("WRITE", &["WRITE", "WRITE_AND_UNLOCK", "WRITE_RAW", "WRITE_MPX", "WRITE_AND_CLOSE", "WRITE_ANDX"]),
    ("LOCK", &["LOCK_BYTE_RANGE", "UNLOCK_BYTE_RANGE", "LOCKING_ANDX"]),
    ("ECHO", &["ECHO"]),
    ("IOCTL", &["IOCTL", "NT_TRANSACT_IOCTL"]),
    ("QUERY_DIRECTORY", &["SEARCH", "FIND", "FIND_UNIQUE", "TRANS2_FIND_FIRST2", "TRANS2_FIND_NEXT2"]),
    ("CHANGE_NOTIFY", &["NT_TRANSACT_NOTIFY_CHANGE"]),
    (
        "QUERY_INFO",
        &[
            "QUERY_INFORMATION",
            "QUERY_INFORMATION2",
            "QUERY_INFORMATION_DISK",
            "TRANS2_QUERY_FS_INFORMATION",
            "TRANS2_QUERY_PATH_INFORMATION",
            "TRANS2_QUERY_FILE_INFORMATION",
            "NT_TRANSACT_QUERY_SECURITY_DESC",
        ],
    ),
    (
        "SET_INFO",
        &[
            "SET_INFORMATION",
            "SET_INFORMATION2",
            "TRANS2_SET_FS_INFORMATION",
            "TRANS2_SET_PATH_INFORMATION",
            "TRANS2_SET_FILE_INFORMATION",
            "NT_TRANSACT_SET_SECURITY_DESC",
        ],
    ),
];

/// A command or part of one: protocol, name, and true for expected waits.
type ComparedCommandKey<'a> = (Protocol, &'a str, bool);

pub(super) fn command_rows(inputs: &[ComparisonInput]) -> Vec<ComparedCommand> {
    let columns: Vec<BTreeMap<ComparedCommandKey<'_>, &entries::CommandEntry>> =
        inputs.iter().map(|input| by_key(input)).collect();
    let mut paired = Vec::new();
    // Commands per column that are already counted in a paired row.
    let mut taken: Vec<BTreeMap<ComparedCommandKey<'_>, u64>> = vec![BTreeMap::new(); columns.len()];
    for waiting in [false, true] {
        for (name, smb1) in PAIRS {
            let members: Vec<Members<'_>> =
                columns.iter().map(|column| Members::new(column, name, smb1, waiting)).collect();
            let is = |of: fn(&Members<'_>) -> bool| members.iter().any(of);
            let crosses =
                is(|m| m.smb1.is_empty() && m.smb2.is_some()) && is(|m| !m.smb1.is_empty() && m.smb2.is_none());
            if !crosses || is(|m| !m.smb1.is_empty() && m.smb2.is_some()) {
                continue;
            }
            for (taken, members) in taken.iter_mut().zip(&members) {
                members.counted().for_each(|(key, count)| *taken.entry(key).or_default() += count);
            }
            let merged: Vec<Option<CommandStatistics>> = members.iter().map(Members::row).collect();
            paired.push(ComparedCommand {
                protocol: Protocol::Smb2,
                command: name.to_owned(),
                waiting,
                members: Some(members.iter().map(Members::names).collect()),
                cells: row_of(merged.iter().map(Option::as_ref)),
            });
        }
    }
    let mut keys: BTreeMap<ComparedCommandKey<'_>, Vec<Option<&CommandStatistics>>> = BTreeMap::new();
    for (at, column) in columns.iter().enumerate() {
        for (key, command) in column {
            // A transaction may be paired completely or in part. The rest gets a row of its own.
            if taken[at].get(key).copied().unwrap_or(0) < command.row.count {
                keys.entry(*key).or_insert_with(|| vec![None; columns.len()])[at] = Some(&command.row);
            }
        }
    }
    let single = keys.into_iter().map(|((protocol, command, waiting), rows)| ComparedCommand {
        protocol,
        command: command.to_owned(),
        waiting,
        members: None,
        cells: row_of(rows.into_iter()),
    });
    paired.into_iter().chain(single).collect()
}

fn by_key(input: &ComparisonInput) -> BTreeMap<ComparedCommandKey<'_>, &entries::CommandEntry> {
    // Entries without a count only hold subcommands that are listed separately.
    let commands = input.report.commands.iter().filter(|command| command.row.count > 0);
    commands.map(|command| ((command.protocol, command.command.as_str(), command.is_waiting()), command)).collect()
}

struct Members<'a> {
    /// Commands and subcommands of SMB1: parent command, name and figures.
    smb1: Vec<(ComparedCommandKey<'a>, &'a str, &'a CommandStatistics)>,
    smb2: Option<(ComparedCommandKey<'a>, &'a CommandStatistics)>,
}

impl<'a> Members<'a> {
    fn new(
        column: &BTreeMap<ComparedCommandKey<'a>, &'a entries::CommandEntry>,
        name: &str,
        smb1: &[&str],
        waiting: bool,
    ) -> Members<'a> {
        let mut members = Members { smb1: Vec::new(), smb2: None };
        for (key, command) in column.iter().filter(|((_, _, waits), _)| *waits == waiting) {
            match key.0 {
                Protocol::Smb2 if key.1 == name => members.smb2 = Some((*key, &command.row)),
                Protocol::Smb2 => {}
                Protocol::Smb1 if smb1.contains(&short(key.1)) => members.smb1.push((*key, key.1, &command.row)),
                Protocol::Smb1 => {
                    let parts = command.subcommands.iter();
                    let parts = parts.filter(|part| part.row.count > 0 && smb1.contains(&part.subcommand.as_str()));
                    members.smb1.extend(parts.map(|part| (*key, part.subcommand.as_str(), &part.row)));
                }
            }
        }
        members
    }

    fn counted(&self) -> impl Iterator<Item = (ComparedCommandKey<'a>, u64)> {
        let smb1 = self.smb1.iter().map(|(key, _, row)| (*key, row.count));
        smb1.chain(self.smb2.iter().map(|(key, row)| (*key, row.count)))
    }

    fn names(&self) -> Vec<String> {
        let smb2 = self.smb2.iter().map(|((_, name, _), _)| (*name).to_owned());
        self.smb1.iter().map(|(_, name, _)| (*name).to_owned()).chain(smb2).collect()
    }

    fn row(&self) -> Option<CommandStatistics> {
        let rows: Vec<&CommandStatistics> =
            self.smb1.iter().map(|(_, _, row)| *row).chain(self.smb2.iter().map(|(_, row)| *row)).collect();
        match rows.as_slice() {
            [] => None,
            [only] => Some((*only).clone()),
            several => Some(together(several)),
        }
    }
}

fn short(name: &str) -> &str {
    name.strip_prefix("SMB_COM_").unwrap_or(name)
}

#[cfg(test)]
mod tests {
    use super::*;
    use smbscope_model::Subcommand;
    use smbscope_wire::names::{NtTransact, Trans2};
    use smbscope_wire::{smb1, smb2};

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

    #[test]
    fn every_name_is_one_of_the_specification() {
        let smb2: Vec<String> = (0..0x13).map(|code| smb2::Smb2Command(code).to_string()).collect();
        let commands = (0..=0xff).map(|code| smb1::Smb1Command(code).to_string());
        let trans2 = (0..0x20).map(|code| Subcommand::Trans2(Trans2(code)).to_string());
        let transact = (0..0x20).map(|code| Subcommand::NtTransact(NtTransact(code)).to_string());
        let smb1: Vec<String> = commands.map(|name| short(&name).to_owned()).chain(trans2).chain(transact).collect();
        for (name, pairs) in PAIRS {
            assert!(smb2.iter().any(|known| known == name), "{name}");
            for pair in pairs {
                assert!(smb1.iter().any(|known| known == pair), "{pair}");
            }
        }
        let mut all: Vec<&str> = PAIRS.iter().flat_map(|(_, pairs)| pairs.iter().copied()).collect();
        let count = all.len();
        all.sort_unstable();
        all.dedup();
        assert_eq!(all.len(), count, "a command is in one place");
    }
}
