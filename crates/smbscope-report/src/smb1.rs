//! Usage of SMB1: clients, servers, users and shares.

use crate::Report;
use crate::format::{counted, unbroken};
use smbscope_model::{Command, ConnectionSummary, Protocol};
use std::collections::BTreeSet;
use std::net::{IpAddr, SocketAddr};

const NAMED: usize = 4;
pub(crate) const LISTED: usize = 100;
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
        (found.connections > 0 || commands(report) > 0).then_some(found)
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
        [first @ .., last] if names.len() <= NAMED => format!("{} and {last}", first.join(", ")),
        _ => format!("{} and {} more", names[..NAMED].join(", "), names.len() - NAMED),
    }
}

/// Counts the SMB1 commands that prove its use.
pub(crate) fn commands(report: &Report) -> u64 {
    let rows = report.aggregate.commands.iter();
    rows.filter(|row| matches!(row.command, Command::Smb1(code) if code.0 != NEGOTIATE)).map(|row| row.row.count).sum()
}
