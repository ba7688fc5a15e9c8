//! Files in use by others (locks, oplock breaks, sharing violations), and requests that the server refuses.

use super::{Detect, Detector, Finding};
use crate::answer::{Confidence, Culprit, LostTime};
use crate::classify::Fact;
use crate::facts::{DiagnosisFacts, Pair, RefusalReason, Wait, file_name, named};
use smbscope_model::groups::opens;
use smbscope_model::prose::{counted, span, thousands, unbroken};
use smbscope_model::{Command, Nanos, Timestamp};
use smbscope_wire::status::NtStatus;
use smbscope_wire::{smb1, smb2};
use std::sync::Arc;

pub(super) const DETECTORS: &[&Detector] =
    &[&BREAK_TIMEOUT, &BREAK_STORM, &LOCK_WAIT, &CONFLICTS, &REFUSALS, &DISK_FULL, &SESSION_EXPIRED, &ASYNC_LIMIT];

const BREAK_TIMEOUT: Detector = Detector {
    id: "break-timeout",
    culprit: Culprit::Client,
    title: "Open waited for another client's oplock or lease",
    condition: "An open took `wait` while another client was asked to give back an oplock or lease, or it took 29 to 37 s: then servers stop waiting.",
    advice: "The holder of the oplock or lease did not answer the server: it sleeps, hangs, or its network does. Wake or restart it, or close the file there (smbstatus -L, Get-SmbOpenFile). On a share for files that many clients use at once, switch oplocks off (Samba: oplocks = no).",
    source: "Microsoft KB888562: the server waits 35 s for an oplock break; MS-SMB2 3.3.4.6",
    thresholds: &[("wait", "1s")],
    covers: &["server-hang", "request-unanswered", "office-slow-open", "filter-delay", "slow-storage"],
    detect: Detect::Peer(break_timeout),
};

/// Time after which servers stop waiting for a break acknowledgment: Windows 35 s, Samba 30 s.
const GIVES_UP: std::ops::Range<i64> = 29_000_000_000..37_000_000_000;

fn break_timeout(facts: &DiagnosisFacts<'_>, pair: &Pair<'_>) -> Option<Finding> {
    let limit = pair.time("break-timeout", "wait");
    let length = |wait: &Wait| pair.length(wait);
    let opened = pair.facts.waits.iter().filter(|wait| opens(wait.command) && length(wait) >= limit);
    let waits = opened.filter_map(|wait| {
        let holder = oplock_holder(facts, pair, wait);
        let gave_up = wait.to.is_some() && GIVES_UP.contains(&length(wait).0);
        (holder.is_some() || gave_up).then_some((wait, holder))
    });
    let waits: Vec<(&Wait, Option<String>)> = waits.collect();
    let (longest, holder) = waits.iter().max_by_key(|(wait, _)| length(wait))?;
    let sum = Nanos(waits.iter().map(|(wait, _)| length(wait).0).fold(0, i64::saturating_add));
    let by = match holder {
        Some(holder) => format!("{holder} held an oplock or lease on it and did not give it back in time"),
        None => "the server waited that long for the holder of an oplock or lease".to_owned(),
    };
    let path = file_name(&longest.path);
    let still = if longest.to.is_none() { " and still did at the end" } else { "" };
    let what = format!("{} waited {} to open {path}{still}: {by}", pair.client, unbroken(span(length(longest))));
    let confidence = if holder.is_some() { Confidence::High } else { Confidence::Medium };
    Some(
        Finding::new(confidence, what)
            .lost(LostTime::exactly(pair.once(sum)))
            .longest(length(longest))
            .from(Some(longest.from))
            .on(&longest.share, &longest.path)
            .filter(" && (smb2.cmd == 5 || smb2.cmd == 18 || smb.cmd == 0xa2 || smb.cmd == 0x24)"),
    )
}

fn oplock_holder(facts: &DiagnosisFacts<'_>, pair: &Pair<'_>, wait: &Wait) -> Option<String> {
    let to = wait.to.map_or(Timestamp(i64::MAX), |to| to.time);
    let others = facts.of_server(pair.server).filter(|other| other.client != pair.client);
    let asked = |other: &&Pair<'_>| {
        let soon = Timestamp(wait.from.time.0.saturating_add(2_000_000_000)).min(to);
        other.facts.breaks.iter().any(|(time, _)| (wait.from.time..=soon).contains(time))
    };
    others.filter(asked).map(|other| other.client.to_string()).next()
}

const BREAK_STORM: Detector = Detector {
    id: "break-storm",
    culprit: Culprit::Application,
    title: "Oplocks and leases broken all the time",
    condition: "`breaks` oplock or lease breaks, and more than `share` of the number of opens. Always a note.",
    advice: "Several clients work on the same files, so each caches and is told to stop. Keep such files apart; for databases on a share switch oplocks off on that share (Samba: veto oplock files), which costs caching for all others on it.",
    source: "Samba, smb.conf(5); MS-SMB2 3.3.4.6",
    thresholds: &[("breaks", "10"), ("share", "2%")],
    covers: &[],
    detect: Detect::Pair(break_storm),
};

fn break_storm(pair: &Pair<'_>) -> Option<Finding> {
    const ID: &str = "break-storm";
    let breaks = pair.facts.counted(Fact::Break);
    let share = pair.facts.share(Fact::Break, Fact::Open);
    if (breaks.count as f64) < pair.threshold(ID, "breaks") || share <= pair.threshold(ID, "share") {
        return None;
    }
    let what = format!(
        "{} lost {} to other clients or handles, {} for each 1,000 opens",
        pair.client,
        counted(breaks.count, "oplock or lease", "oplocks or leases"),
        thousands((share * 1_000.0).round() as u64),
    );
    Some(Finding::new(Confidence::Medium, what).first_of(breaks).filter(" && (smb2.cmd == 18 || smb.cmd == 0x24)"))
}

const LOCK_WAIT: Detector = Detector {
    id: "lock-wait",
    culprit: Culprit::Client,
    title: "Waiting for a lock",
    condition: "LOCK requests waited, or were refused and tried again, for `wait` in all. The report names the client that unlocked the file just before the grant.",
    advice: "Shorten the time for which the holder keeps the range locked, or let readers open without locks. A database on a share locks like this by design: move it to a database server.",
    source: "MS-SMB2 3.3.5.14; MS-CIFS 2.2.4.32",
    thresholds: &[("wait", "1s")],
    covers: &["conflicts", "server-hang", "request-unanswered"],
    detect: Detect::Peer(lock_wait),
};

fn lock_wait(facts: &DiagnosisFacts<'_>, pair: &Pair<'_>) -> Option<Finding> {
    let locks: Vec<&Wait> = pair.facts.waits.iter().filter(|wait| is_lock(wait.command)).collect();
    let length = |wait: &Wait| pair.length(wait);
    let blocked = Nanos(locks.iter().map(|wait| length(wait).0).fold(0, i64::saturating_add));
    let refused = pair.facts.refused(RefusalReason::Conflict);
    let retried = refused.longest.as_ref().filter(|attempts| attempts.status != NtStatus::SHARING_VIOLATION);
    let lost = Nanos(blocked.0.saturating_add(retried.map_or(0, |_| refused.waited.0)));
    if lost < pair.time("lock-wait", "wait") {
        return None;
    }
    let longest = locks.into_iter().max_by_key(|wait| length(wait));
    let (share, path, from, time, range) = match (longest, retried) {
        (Some(wait), retried) if retried.is_none_or(|retried| retried.length() <= length(wait)) => {
            (&wait.share, &wait.path, wait.from, length(wait), wait.range)
        }
        (_, Some(attempts)) => (&attempts.share, &attempts.path, attempts.first, attempts.length(), None),
        (_, None) => return None,
    };
    let granted = longest.and_then(|wait| wait.to).map(|to| to.time);
    let holder = granted.and_then(|granted| lock_holder(facts, pair, path, from.time, granted));
    let file = file_name(path);
    let bytes = range.map_or_else(String::new, |(offset, length)| match length {
        0 => String::new(),
        length => format!("bytes {offset} to {} of ", offset.saturating_add(length - 1)),
    });
    let by = holder.map_or_else(String::new, |holder| format!(", which {holder} had locked"));
    let what = format!("{} waited {} for a lock on {bytes}{file}{by}", pair.client, unbroken(span(time)));
    Some(
        Finding::new(Confidence::High, what)
            .lost(LostTime::exactly(lost))
            .longest(time)
            .from(Some(from))
            .on(share, path)
            .filter(" && (smb2.cmd == 10 || smb.cmd == 0x24)")
            .outside(),
    )
}

fn is_lock(command: Command) -> bool {
    matches!(command, Command::Smb2(smb2::Smb2Command::LOCK) | Command::Smb1(smb1::Smb1Command::LOCKING_ANDX))
}

fn lock_holder(
    facts: &DiagnosisFacts<'_>,
    pair: &Pair<'_>,
    path: &Option<Arc<str>>,
    asked: Timestamp,
    granted: Timestamp,
) -> Option<String> {
    let others = facts.of_server(pair.server).filter(|other| other.client != pair.client);
    let released = others.filter_map(|other| {
        let events = other.facts.releases.iter();
        let last = events.filter(|(time, file)| *time >= asked && *time <= granted && (file == path || path.is_none()));
        last.map(|(time, _)| *time).max().map(|time| (time, other.client))
    });
    released.max().map(|(_, client)| client.to_string())
}

const CONFLICTS: Detector = Detector {
    id: "conflicts",
    culprit: Culprit::Client,
    title: "File in use by others",
    condition: "Opens of one file failed with STATUS_SHARING_VIOLATION `attempts` times, or opens of as many files did, and cost `wait`, from the first attempt until success or the last refusal. Not reported if the client itself gave an oplock back for them: its own handles were in the way.",
    advice: "Find out who has the file open (smbstatus -L, Get-SmbOpenFile). Applications that try again in a loop make users wait for each attempt; virus scanners, search indexers and backups open files without sharing them.",
    source: "MS-SMB2 3.3.5.9; MS-FSA 2.1.5",
    thresholds: &[("wait", "1s"), ("attempts", "3")],
    covers: &[],
    detect: Detect::Pair(conflicts),
};

fn conflicts(pair: &Pair<'_>) -> Option<Finding> {
    let refused = pair.facts.refused(RefusalReason::Conflict);
    let longest = refused.longest.as_ref()?;
    // A server may delay a refusal by a second (Samba, and Windows with SMB1).
    let attempts = pair.threshold("conflicts", "attempts");
    let is_repeated = longest.count as f64 >= attempts || refused.files as f64 >= attempts;
    let is_own = pair.held_up_by_itself().0.saturating_mul(2) >= refused.waited.0;
    if refused.waited < pair.time("conflicts", "wait")
        || !is_repeated
        || is_own
        || longest.status != NtStatus::SHARING_VIOLATION
    {
        return None;
    }
    let file = file_name(&longest.path);
    let others = match refused.files.saturating_sub(1) {
        0 => String::new(),
        n => format!(", and {} more", counted(n, "file", "files")),
    };
    let tries = longest.count + u64::from(longest.succeeded);
    let time = unbroken(span(longest.length()));
    let why = "which is open elsewhere (STATUS_SHARING_VIOLATION)";
    let outcome = if longest.succeeded { "until it could open it" } else { "and gave up" };
    let what = match tries {
        1 => format!("{} waited {time} for the refusal to open {file}, {why}{others}", pair.client),
        _ => {
            let tries = counted(tries, "time", "times");
            format!("{} tried {tries} for {time} to open {file}, {why}, {outcome}{others}", pair.client)
        }
    };
    Some(
        Finding::new(Confidence::High, what)
            .lost(LostTime::exactly(refused.waited))
            .longest(longest.length())
            .from(Some(longest.first))
            .on(&longest.share, &longest.path)
            .filter(" && smb2.nt_status == 0xc0000043")
            .outside(),
    )
}

const REFUSALS: Detector = Detector {
    id: "refusals",
    culprit: Culprit::Server,
    title: "Server out of resources",
    condition: "A response with STATUS_INSUFFICIENT_RESOURCES, STATUS_INSUFF_SERVER_RESOURCES, STATUS_TOO_MANY_OPENED_FILES, STATUS_TOO_MANY_SESSIONS or STATUS_REQUEST_NOT_ACCEPTED. Always a note.",
    advice: "Raise the server's limits (Samba: max open files, max smbd processes; Windows: work items and memory), or find the client that leaks handles or sessions.",
    source: "MS-SMB2 3.3.5; Samba, smb.conf(5)",
    thresholds: &[],
    covers: &[],
    detect: Detect::Pair(refusals),
};

fn refusals(pair: &Pair<'_>) -> Option<Finding> {
    let refusals = pair.facts.counted(Fact::Refusal);
    if refusals.count == 0 {
        return None;
    }
    let what = format!(
        "{} refused {} of {} because it has no resources left",
        pair.server_name(),
        counted(refusals.count, "request", "requests"),
        pair.client,
    );
    // The refused request failed, however fast.
    Some(Finding::new(Confidence::High, what).first_of(refusals))
}

const DISK_FULL: Detector = Detector {
    id: "disk-full",
    culprit: Culprit::Server,
    title: "Disk full or quota used up",
    condition: "Writes failed with STATUS_DISK_FULL, STATUS_QUOTA_EXCEEDED or STATUS_DISK_QUOTA_EXCEEDED. It is a cause even if no time was lost, since operations failed; retries count as lost time if they took `wait`.",
    advice: "Make room on the server's volume, or raise the user's quota. The application keeps retrying instead of reporting the error.",
    source: "MS-ERREF 2.3.1: STATUS_DISK_FULL, STATUS_QUOTA_EXCEEDED",
    thresholds: &[("wait", "500ms")],
    covers: &["conflicts", "small-io", "serial-client"],
    detect: Detect::Pair(disk_full),
};

fn disk_full(pair: &Pair<'_>) -> Option<Finding> {
    let refused = pair.facts.refused(RefusalReason::Full);
    let longest = refused.longest.as_ref()?;
    let status = longest.status;
    let why = match status {
        NtStatus::DISK_FULL => "the disk is full (STATUS_DISK_FULL)",
        _ => "the quota is used up (STATUS_QUOTA_EXCEEDED)",
    };
    let file = longest.path.as_deref().map_or_else(String::new, |path| format!(" to {}", named(path)));
    let tried = if refused.waited.0 > 0 { format!(" over {}", unbroken(span(refused.waited))) } else { String::new() };
    let failed = counted(refused.count, "write", "writes");
    let what = format!("{failed} of {}{file} failed{tried}: {why} on {}", pair.client, pair.server_name());
    let found = Finding::new(Confidence::High, what)
        .from(Some(longest.first))
        .on(&longest.share, &longest.path)
        .filter(&format!(" && smb2.nt_status == 0x{:08x}", status.0))
        .outside()
        .failed();
    // A write that fails at once costs no time, but it costs the user's work.
    Some(match refused.waited >= pair.time("disk-full", "wait") {
        true => found.lost(LostTime::exactly(refused.waited)).longest(refused.waited),
        false => found,
    })
}

const SESSION_EXPIRED: Detector = Detector {
    id: "session-expired",
    culprit: Culprit::Server,
    title: "Sessions expire and log on again",
    condition: "`refusals` requests failed with STATUS_NETWORK_SESSION_EXPIRED or STATUS_USER_SESSION_DELETED.",
    advice: "Compare the lifetime of Kerberos tickets with how long sessions last, and the clocks of client, server and domain controller. Clients that can't log on again show an error.",
    source: "MS-SMB2 3.3.5.2.9: STATUS_NETWORK_SESSION_EXPIRED",
    thresholds: &[("refusals", "3")],
    covers: &["slow-logon", "negotiate-churn"],
    detect: Detect::Pair(session_expired),
};

fn session_expired(pair: &Pair<'_>) -> Option<Finding> {
    let refused = pair.facts.refused(RefusalReason::Session);
    let longest = refused.longest.as_ref()?;
    if (refused.count as f64) < pair.threshold("session-expired", "refusals") {
        return None;
    }
    let what = format!(
        "{} refused {} of {} because the session had expired",
        pair.server_name(),
        counted(refused.count, "request", "requests"),
        pair.client,
    );
    let lost = Nanos(refused.waited.0.max(pair.once(Nanos(pair.facts.counted(Fact::SessionSetup).outstanding)).0));
    Some(
        Finding::new(Confidence::High, what)
            .lost(LostTime::between(refused.waited, lost, lost))
            .from(Some(longest.first)),
    )
}

const ASYNC_LIMIT: Detector = Detector {
    id: "async-limit",
    culprit: Culprit::Application,
    title: "Pending commands near the server's limit",
    condition: "`commands` commands were pending (STATUS_PENDING) at once on a connection; servers allow 512 by default. Always a note.",
    advice: "A server refuses further asynchronous commands beyond its limit, and the application fails. Find the pending commands: change notifications of many directories (an indexer, a web server with its content on the share), blocking locks, reads from pipes. Watch fewer directories, or raise AsynchronousCredits on a Windows server.",
    source: "Microsoft, \"Performance tuning for SMB file servers\": AsynchronousCredits (512)",
    thresholds: &[("commands", "460")],
    covers: &[],
    detect: Detect::Pair(async_limit),
};

fn async_limit(pair: &Pair<'_>) -> Option<Finding> {
    let most = pair.connections.iter().map(|connection| connection.max_asynchronous).max()?;
    if f64::from(most) < pair.threshold("async-limit", "commands") {
        return None;
    }
    let what = format!(
        "{} had {} commands pending at once on a connection; servers allow 512 by default",
        pair.client,
        thousands(u64::from(most))
    );
    Some(Finding::new(Confidence::High, what).filter(" && smb2.nt_status == 0x00000103"))
}
