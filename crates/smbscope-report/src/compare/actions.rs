//! Pairs equivalent commands of SMB1 and SMB2, so that runs with different dialects can be compared.
//!
//! A row is paired only if each of its commands occurs in some columns, but no column has commands of both protocols.

use super::saved::together;
use super::{ComparedCommand, ComparisonInput, row_of};
use crate::json::entries;
use smbscope_model::Protocol;
use smbscope_stats::CommandStatistics;
use std::collections::BTreeMap;

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

pub(super) fn rows(inputs: &[ComparisonInput]) -> Vec<ComparedCommand> {
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
