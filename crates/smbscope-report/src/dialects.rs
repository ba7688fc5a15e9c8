//! Dialects of the connections, SMB1 first, and usage of SMB1: clients, servers, users and shares.

use crate::Report;
use crate::format::{counted, thousands, unbroken};
use crate::offers::held_back_by;
use smbscope_model::{Command, ConnectionSummary, Dialect, Protocol};
use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, SocketAddr};

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
    if lines.is_empty() && unknown > 0 && smb1_commands(report) > 0 {
        let commands = counted(smb1_commands(report), "command", "commands");
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
    let said = smb1_commands(report) > 0 && unknown == connections;
    if unknown > 0 && !said {
        let smb1 = report.aggregate.commands.iter().any(|row| matches!(row.command, Command::Smb1(_)));
        let smb2 = report.aggregate.commands.iter().any(|row| matches!(row.command, Command::Smb2(_)));
        let name = if smb2 && !smb1 { "SMB2/3, dialect" } else { "dialect" };
        let text = format!("{name} not seen on {}", share(unknown, connections));
        lines.push(DialectLine { text, is_smb1: false });
    }
    lines
}

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

const SMB1_NAMED: usize = 4;
pub(crate) const SMB1_LISTED: usize = 100;
/// NEGOTIATE, which SMB2 clients may send too.
const NEGOTIATE: u8 = 0x72;

#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Smb1InUse<'r> {
    pub(crate) connections: u64,
    pub(crate) of: u64,
    pub(crate) clients: BTreeSet<IpAddr>,
    pub(crate) servers: BTreeSet<SocketAddr>,
    pub(crate) users: BTreeSet<&'r str>,
    /// Shares, without IPC$ if there are others.
    pub(crate) shares: BTreeSet<&'r str>,
}

impl<'r> Smb1InUse<'r> {
    /// Returns None if SMB1 is not in use. A connection that negotiated SMB2 does not count, even if it started with an
    /// SMB1 NEGOTIATE.
    pub(crate) fn from_report(report: &'r Report) -> Option<Smb1InUse<'r>> {
        let speaks = |connection: &&ConnectionSummary| {
            connection.dialect.is_some_and(|dialect| dialect.protocol() == Protocol::Smb1)
        };
        let mut found = Smb1InUse {
            connections: 0,
            of: report.connections.len() as u64,
            clients: BTreeSet::new(),
            servers: BTreeSet::new(),
            users: BTreeSet::new(),
            shares: BTreeSet::new(),
        };
        for connection in report.connections.iter().filter(speaks) {
            found.connections += 1;
            found.clients.insert(connection.endpoints.client.ip());
            found.servers.insert(connection.endpoints.server);
            found.users.extend(connection.users.iter().map(|name| &**name));
            found.shares.extend(connection.shares.iter().map(|name| &**name));
        }
        let is_pipe = |share: &str| share.eq_ignore_ascii_case("IPC$");
        if found.shares.iter().any(|share| !is_pipe(share)) {
            found.shares.retain(|share| !is_pipe(share));
        }
        (found.connections > 0 || smb1_commands(report) > 0).then_some(found)
    }

    /// Formats `SMB1 in use: 10.0.0.7 and 10.0.0.8 (LAB\dave) on share data of 10.0.0.9:445, 2 of 5 connections`.
    pub(crate) fn sentence(&self) -> String {
        if self.connections == 0 {
            return "SMB1 in use; who uses it was not captured".to_owned();
        }
        let shown = |names: Vec<String>| some_of(&names);
        let texts = |names: &BTreeSet<&str>| names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>();
        let mut text = format!("SMB1 in use: {}", shown(self.clients.iter().map(IpAddr::to_string).collect()));
        if !self.users.is_empty() {
            text += &format!(" ({})", shown(texts(&self.users)));
        }
        text += match self.shares.len() {
            0 => "",
            1 => " on share ",
            _ => " on shares ",
        };
        text += &shown(texts(&self.shares));
        text += &format!(" of {}", shown(self.servers.iter().map(SocketAddr::to_string).collect()));
        let connections = counted(self.of, "connection", "connections");
        let share = match (self.connections, self.of) {
            (1, 1) => "the only connection".to_owned(),
            (count, all) if count == all => format!("all {connections}"),
            (count, _) => format!("{count} of {connections}"),
        };
        format!("{text}, {}", unbroken(share))
    }
}

fn some_of(names: &[String]) -> String {
    match names {
        [] => String::new(),
        [only] => only.clone(),
        [first @ .., last] if names.len() <= SMB1_NAMED => format!("{} and {last}", first.join(", ")),
        _ => format!("{} and {} more", names[..SMB1_NAMED].join(", "), names.len() - SMB1_NAMED),
    }
}

pub(crate) fn smb1_commands(report: &Report) -> u64 {
    let rows = report.aggregate.commands.iter();
    rows.filter(|row| matches!(row.command, Command::Smb1(code) if code.0 != NEGOTIATE)).map(|row| row.row.count).sum()
}
