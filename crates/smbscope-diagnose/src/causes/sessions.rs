//! Slow logons, tree connects and DFS referrals, and connections that are set up too often.

use super::{Detect, Detector, Finding};
use crate::answer::{Confidence, Culprit, LostTime};
use crate::classify::Fact;
use crate::facts::{CommandClass, Pair};
use smbscope_model::prose::{counted, span, thousands, unbroken};
use smbscope_model::{Command, Nanos};
use smbscope_wire::{smb1, smb2};

pub(super) const DETECTORS: &[&Detector] = &[&SLOW_LOGON, &SLOW_TREE_CONNECT, &DFS_REFERRAL, &NEGOTIATE_CHURN];

const SLOW_LOGON: Detector = Detector {
    id: "slow-logon",
    culprit: Culprit::Server,
    title: "Slow or failed login",
    condition: "A SESSION_SETUP took `longest`, or `failures` logins failed.",
    advice: "A domain controller that is slow, far away or not found makes each login slow; a fallback from Kerberos to NTLM costs further round trips. Look at DNS, the SPN of the server's name and the clock of both sides. If logins fail: look for a stored password that is wrong or expired.",
    source: "MS-SMB2 3.3.5.5; MS-KILE",
    thresholds: &[("longest", "500ms"), ("failures", "5")],
    covers: &["server-hang", "negotiate-churn", "request-unanswered"],
    detect: Detect::Pair(slow_logon),
};

fn slow_logon(pair: &Pair<'_>) -> Option<Finding> {
    const ID: &str = "slow-logon";
    let (setups, failures) = (pair.facts.counted(Fact::SessionSetup), pair.facts.counted(Fact::LoginFailure));
    let slow = Nanos(setups.longest) >= pair.time(ID, "longest");
    if !slow && (failures.count as f64) < pair.threshold(ID, "failures") {
        return None;
    }
    let failed = match failures.count {
        0 => String::new(),
        n => format!("; {} failed", thousands(n)),
    };
    let what = format!(
        "{} took up to {} to log on at {} ({}{failed})",
        pair.client,
        unbroken(Nanos(setups.longest)),
        pair.server_name(),
        counted(setups.count, "SESSION_SETUP", "SESSION_SETUPs"),
    );
    Some(
        Finding::new(Confidence::High, what)
            .lost(LostTime::exactly(pair.once(Nanos(setups.outstanding))))
            .longest(Nanos(setups.longest))
            .first_of(setups)
            .filter(" && (smb2.cmd == 1 || smb.cmd == 0x73)"),
    )
}

const SLOW_TREE_CONNECT: Detector = Detector {
    id: "slow-tree-connect",
    culprit: Culprit::Server,
    title: "Connecting to the share is slow",
    condition: "A TREE_CONNECT took `longest`, and tree connects took at least twice as long as logins on average.",
    advice: "The server does something before it lets a client use the share: a script (Samba: root preexec), a check of access rights against a slow domain controller, an automounted or tiered volume. Look at the server's log at that time.",
    source: "MS-SMB2 3.3.5.7; Samba, smb.conf(5): preexec",
    thresholds: &[("longest", "500ms")],
    covers: &["server-hang", "server-saturation", "slow-logon", "request-unanswered"],
    detect: Detect::Pair(slow_tree_connect),
};

fn slow_tree_connect(pair: &Pair<'_>) -> Option<Finding> {
    const ID: &str = "slow-tree-connect";
    let connects = pair.served(CommandClass::TreeConnect);
    let sessions = pair.served(CommandClass::Session);
    if Nanos(connects.longest) < pair.time(ID, "longest") || sessions.mean().0 * 2 > connects.mean().0 {
        return None;
    }
    let share = pair.facts.waits.iter().find(|wait| {
        matches!(
            wait.command,
            Command::Smb2(smb2::Smb2Command::TREE_CONNECT) | Command::Smb1(smb1::Smb1Command::TREE_CONNECT_ANDX)
        )
    });
    let what = format!(
        "{} took {} for {} (TREE_CONNECT) of {}, up to {} each",
        pair.server_name(),
        unbroken(span(connects.sum())),
        counted(connects.count, "tree connect", "tree connects"),
        pair.client,
        unbroken(Nanos(connects.longest)),
    );
    let found = Finding::new(Confidence::High, what)
        .lost(LostTime::exactly(pair.once(connects.sum())))
        .longest(Nanos(connects.longest))
        .filter(" && (smb2.cmd == 3 || smb.cmd == 0x75)");
    Some(match share {
        Some(wait) => found.from(Some(wait.from)).on(&wait.share, &None),
        None => found,
    })
}

const DFS_REFERRAL: Detector = Detector {
    id: "dfs-referral",
    culprit: Culprit::Server,
    title: "Slow DFS referrals",
    condition: "A DFS referral took `longest`.",
    advice: "Each path of a DFS namespace is looked up first. Look for namespace servers or targets that are gone, and for clients that are sent to a server of another site.",
    source: "MS-DFSC 3.1",
    thresholds: &[("longest", "100ms")],
    covers: &["server-hang"],
    detect: Detect::Pair(dfs_referral),
};

fn dfs_referral(pair: &Pair<'_>) -> Option<Finding> {
    let referrals = pair.facts.counted(Fact::Referral);
    if Nanos(referrals.longest) < pair.time("dfs-referral", "longest") {
        return None;
    }
    let what = format!(
        "{} asked for {}; the slowest took {}",
        pair.client,
        counted(referrals.count, "DFS referral", "DFS referrals"),
        unbroken(Nanos(referrals.longest)),
    );
    Some(
        Finding::new(Confidence::High, what)
            .lost(LostTime::exactly(pair.once(Nanos(referrals.outstanding))))
            .first_of(referrals)
            .filter(" && dfs.referral.version"),
    )
}

const NEGOTIATE_CHURN: Detector = Detector {
    id: "negotiate-churn",
    culprit: Culprit::Application,
    title: "Connections made repeatedly",
    condition: "At least `negotiations` NEGOTIATE requests, and more than `share` of the number of opens, on connections that mostly follow one another.",
    advice: "Find out why the client reconnects: short time-outs on server or firewall, credentials that change, a mount for each access. Each connection costs TCP, NEGOTIATE, two SESSION_SETUP and TREE_CONNECT.",
    source: "MS-SMB2 3.2.4.2: connecting to a share; docs/studies.md",
    thresholds: &[("negotiations", "5"), ("share", "2%")],
    covers: &["rtt-bound", "serial-client", "metadata-heavy", "slow-logon", "slow-client-link", "many-channels"],
    detect: Detect::Pair(negotiate_churn),
};

fn negotiate_churn(pair: &Pair<'_>) -> Option<Finding> {
    const ID: &str = "negotiate-churn";
    let share = pair.facts.share(Fact::Negotiate, Fact::Open);
    let negotiations = pair.facts.counted(Fact::Negotiate);
    let is_churn =
        (negotiations.count as f64) >= pair.threshold(ID, "negotiations") && share > pair.threshold(ID, "share");
    // Concurrent connections are channels or users, not reconnects.
    if !is_churn || at_once(pair) * 2 > pair.connections.len() {
        return None;
    }
    let setups = pair.facts.counted(Fact::SessionSetup);
    let connects = pair.served(CommandClass::TreeConnect);
    let trip = pair.round_trip().unwrap_or_default();
    let what = format!(
        "{} connected to {} repeatedly: {} NEGOTIATE, {} SESSION_SETUP and {} TREE_CONNECT for {}",
        pair.client,
        pair.server_name(),
        thousands(negotiations.count),
        thousands(setups.count),
        thousands(connects.count),
        counted(pair.facts.count(Fact::Open), "open", "opens"),
    );
    // The TCP handshake takes a round trip, and so does each TREE_CONNECT.
    let trips = (negotiations.count + connects.count) as i64;
    let commands = negotiations.outstanding.saturating_add(setups.outstanding).saturating_add(connects.sum().0);
    let lost = Nanos(pair.once(Nanos(commands)).0.saturating_add(trips.saturating_mul(trip.0)));
    Some(
        Finding::new(Confidence::High, what)
            .lost(LostTime::between(pair.once(Nanos(commands)), lost, lost))
            .first_of(negotiations)
            .filter(" && (smb2.cmd == 0 || smb.cmd == 0x72)"),
    )
}

fn at_once(pair: &Pair<'_>) -> usize {
    let mut events: Vec<(smbscope_model::Timestamp, i32)> = Vec::new();
    pair.connections.iter().for_each(|connection| events.extend([(connection.first, 1), (connection.last, -1)]));
    events.sort_unstable();
    let (mut open, mut most) = (0i32, 0);
    for (_, step) in events {
        open += step;
        most = most.max(open);
    }
    usize::try_from(most).unwrap_or(0)
}
