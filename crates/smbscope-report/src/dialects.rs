//! Dialects of the connections, SMB1 first.

use crate::Report;
use crate::format::{counted, thousands};
use crate::offers::held_back_by;
use crate::smb1;
use smbscope_model::{Command, Dialect, Protocol};
use std::collections::BTreeMap;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct DialectLine {
    pub(crate) text: String,
    pub(crate) is_smb1: bool,
}

/// Returns a line per dialect, SMB1 first, then the newest first. A connection that negotiated SMB2 does not count as
/// SMB1, even if it started with an SMB1 NEGOTIATE.
pub(crate) fn lines(report: &Report) -> Vec<DialectLine> {
    let connections = report.connections.len() as u64;
    let mut counts: BTreeMap<Dialect, u64> = BTreeMap::new();
    for dialect in report.connections.iter().filter_map(|connection| connection.dialect) {
        *counts.entry(dialect).or_default() += 1;
    }
    let unknown = connections - counts.values().sum::<u64>();
    let mut lines = Vec::new();
    let smb1 = counts.iter().filter(|(dialect, _)| dialect.protocol() == Protocol::Smb1);
    for (dialect, count) in smb1 {
        let name = match dialect {
            Dialect::OtherSmb1 => "SMB1".to_owned(),
            _ => format!("SMB1 ({dialect})"),
        };
        lines.push(DialectLine { text: format!("{name} in use on {}", share(*count, connections)), is_smb1: true });
    }
    if lines.is_empty() && unknown > 0 && smb1::commands(report) > 0 {
        let commands = counted(smb1::commands(report), "command", "commands");
        let text = format!("SMB1 in use ({commands}; its negotiation was not captured)");
        lines.push(DialectLine { text, is_smb1: true });
    }
    let smb2 = counts.iter().rev().filter(|(dialect, _)| dialect.protocol() == Protocol::Smb2);
    for (dialect, count) in smb2 {
        let mut text = format!("SMB {dialect} on {}", share(*count, connections));
        if let Some(reason) = held_back(report, *dialect) {
            text += &format!(": {reason}");
        }
        lines.push(DialectLine { text, is_smb1: false });
    }
    let said = smb1::commands(report) > 0 && unknown == connections;
    if unknown > 0 && !said {
        let smb1 = report.aggregate.commands.iter().any(|row| matches!(row.command, Command::Smb1(_)));
        let smb2 = report.aggregate.commands.iter().any(|row| matches!(row.command, Command::Smb2(_)));
        let name = if smb2 && !smb1 { "SMB2/3, dialect" } else { "dialect" };
        let text = format!("{name} not seen on {}", share(unknown, connections));
        lines.push(DialectLine { text, is_smb1: false });
    }
    lines
}

/// Returns the reason for an old dialect, if it is known and the same on all connections.
fn held_back(report: &Report, dialect: Dialect) -> Option<String> {
    let mut those = report.connections.iter().filter(|connection| connection.dialect == Some(dialect));
    let reason = held_back_by(&those.next()?.offers)?;
    those.all(|connection| held_back_by(&connection.offers).as_ref() == Some(&reason)).then_some(reason)
}

fn share(count: u64, all: u64) -> String {
    match (count, all) {
        (1, 1) => "the only connection".to_owned(),
        _ => format!("{} of {} connections", thousands(count), thousands(all)),
    }
}
