//! A lock on a range of a file that another client holds.

use super::{Detect, Detector, Finding};
use crate::answer::{Confidence, Culprit, LostTime};
use crate::facts::{DiagnosisFacts, Pair, RefusalReason, Wait, file_name};
use smbscope_model::prose::{span, unbroken};
use smbscope_model::{Command, Nanos, Timestamp};
use smbscope_wire::status::NtStatus;
use smbscope_wire::{smb1, smb2};
use std::sync::Arc;

pub(super) const LOCK_WAIT: Detector = Detector {
    id: "lock-wait",
    culprit: Culprit::Client,
    title: "Waiting for a lock",
    condition: "LOCK requests waited, or were refused and tried again, for `wait` in all. The report names the client that unlocked the file just before the grant.",
    advice: "Shorten the time for which the holder keeps the range locked, or let readers open without locks. A database on a share locks like this by design: move it to a database server.",
    source: "MS-SMB2 3.3.5.14; MS-CIFS 2.2.4.32",
    thresholds: &[("wait", "1s")],
    covers: &["conflicts", "server-hang", "request-unanswered"],
    detect: Detect::Peer(detect),
};

fn detect(facts: &DiagnosisFacts<'_>, pair: &Pair<'_>) -> Option<Finding> {
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
    let holder = granted.and_then(|granted| holder(facts, pair, path, from.time, granted));
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

/// The client that released the file just before the lock was granted.
fn holder(
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
