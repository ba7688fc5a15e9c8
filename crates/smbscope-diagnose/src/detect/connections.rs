//! What connections speak, how often they are made, and what they begin with.

use crate::facts::Fact;
use crate::finding::{Confidence, Finding};
use crate::subject::Subject;
use smbscope_model::prose::{counted, thousands, unbroken};
use smbscope_model::{Nanos, Protocol};
use std::collections::BTreeSet;

/// SMB1 beyond negotiation: without pipelining or leases, and no longer secure.
pub(super) fn smb1_in_use(subject: &Subject<'_>) -> Option<Finding> {
    let smb1 = subject.facts.of(Fact::Smb1);
    if smb1.count == 0 {
        return None;
    }
    let speaks = |connection: &&&smbscope_model::Connection| {
        connection.dialect.is_some_and(|dialect| dialect.protocol() == Protocol::Smb1)
    };
    let shares: BTreeSet<&str> = subject
        .connections
        .iter()
        .filter(speaks)
        .flat_map(|connection| &connection.shares)
        .map(AsRef::as_ref)
        .collect();
    let shares: Vec<String> = shares.into_iter().map(smbscope_model::prose::clean).collect();
    let on = if shares.is_empty() { String::new() } else { format!(" on {}", shares.join(", ")) };
    let what = format!("spoke SMB1{on}: {}", counted(smb1.count, "command", "commands"));
    let mut finding = subject.finding_on("smb1-in-use", Confidence::High, &what, smb1);
    // What it costs is not what it waited: some of it would be waited for with any dialect.
    finding.lost_ns = None;
    finding.sentence = format!("{} {what}.", subject.client);
    finding.whose.path = None;
    finding.wireshark += " && smb";
    Some(finding)
}

/// Frames that say nothing.
pub(super) fn encrypted(subject: &Subject<'_>) -> Option<Finding> {
    let frames = subject.facts.of(Fact::Encrypted);
    if frames.count == 0 {
        return None;
    }
    let what = format!(
        "encrypted {}: which files and commands they were for cannot be seen, only how long they took",
        counted(frames.count, "request", "requests"),
    );
    let mut finding = subject.finding("encrypted", Confidence::High, &what, None);
    finding.evidence.extend(frames.first.as_ref().map(|(stamp, _)| crate::subject::evidence(*stamp)));
    finding.wireshark += " && smb2.header.transform.signature";
    Some(finding)
}

/// A negotiation for every few opens.
pub(super) fn negotiate_churn(subject: &Subject<'_>) -> Option<Finding> {
    const ID: &str = "negotiate-churn";
    let share = subject.facts.share(Fact::Negotiate, Fact::Open);
    let negotiations = subject.facts.of(Fact::Negotiate);
    if (negotiations.count as f64) < subject.threshold(ID, "negotiations") || share <= subject.threshold(ID, "share") {
        return None;
    }
    let setups = subject.facts.of(Fact::SessionSetup);
    let what = format!(
        "connected and negotiated again and again: {} NEGOTIATE and {} SESSION_SETUP for {}",
        thousands(negotiations.count),
        thousands(setups.count),
        counted(subject.facts.count(Fact::Open), "open", "opens"),
    );
    let lost = Nanos(negotiations.outstanding.saturating_add(setups.outstanding));
    let mut finding = subject.finding(ID, Confidence::High, &what, Some(lost));
    finding.evidence.extend(negotiations.first.as_ref().map(|(stamp, _)| crate::subject::evidence(*stamp)));
    finding.wireshark += " && (smb2.cmd == 0 || smb.cmd == 0x72)";
    Some(finding)
}

/// Many connections of one client to one server at the same time.
pub(super) fn many_channels(subject: &Subject<'_>) -> Option<Finding> {
    const ID: &str = "many-channels";
    let mut events: Vec<(std::net::SocketAddr, smbscope_model::Timestamp, i64)> = Vec::new();
    // SMB 3 has several channels in a session; older clients with many connections are several programs or users.
    let has_channels = |connection: &&&smbscope_model::Connection| {
        matches!(connection.dialect, Some(smbscope_model::Dialect::Smb2(revision)) if revision >= 0x0300)
            && connection.users == subject.connections[0].users
    };
    for connection in subject.connections.iter().filter(has_channels) {
        events.push((connection.endpoints.server, connection.first, 1));
        events.push((connection.endpoints.server, connection.last, -1));
    }
    events.sort_by_key(|(server, time, step)| (*server, *time, -*step));
    let (mut most, mut open, mut of) = (0, 0, None);
    for (server, _, step) in events {
        if of != Some(server) {
            (of, open) = (Some(server), 0);
        }
        open += step;
        most = most.max(open);
    }
    if (most as f64) <= subject.threshold(ID, "connections") {
        return None;
    }
    let what = format!("had {most} connections to one server open at the same time");
    let finding = subject.finding(ID, Confidence::Medium, &what, None);
    Some(Finding { wireshark: finding.wireshark.clone() + " && tcp.flags.syn == 1", ..finding })
}

/// Logins that take long or fail.
pub(super) fn slow_logon(subject: &Subject<'_>) -> Option<Finding> {
    const ID: &str = "slow-logon";
    let (setups, failures) = (subject.facts.of(Fact::SessionSetup), subject.facts.of(Fact::LoginFailure));
    let slow = Nanos(setups.longest) >= subject.time(ID, "longest");
    if !slow && (failures.count as f64) < subject.threshold(ID, "failures") {
        return None;
    }
    let failed = match failures.count {
        0 => String::new(),
        n => format!(", {} failed", thousands(n)),
    };
    let what = format!(
        "logged in with {} SESSION_SETUP, the slowest took {}{failed}",
        thousands(setups.count),
        unbroken(Nanos(setups.longest)),
    );
    let mut finding = subject.finding_on(ID, Confidence::High, &what, setups);
    finding.whose.path = None;
    finding.wireshark += " && (smb2.cmd == 1 || smb.cmd == 0x73)";
    Some(finding)
}

/// DFS referrals that take long.
pub(super) fn dfs_referral(subject: &Subject<'_>) -> Option<Finding> {
    const ID: &str = "dfs-referral";
    let referrals = subject.facts.of(Fact::Referral);
    if Nanos(referrals.longest) < subject.time(ID, "longest") {
        return None;
    }
    let what = format!(
        "asked for {}, the slowest took {}",
        counted(referrals.count, "DFS referral", "DFS referrals"),
        unbroken(Nanos(referrals.longest)),
    );
    let finding = subject.finding_on(ID, Confidence::High, &what, referrals);
    Some(Finding { wireshark: finding.wireshark.clone() + " && dfs.referral.version", ..finding })
}
