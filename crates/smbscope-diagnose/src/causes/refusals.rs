//! Requests that the server refuses: out of resources, disk full, session expired.

use super::{Detect, Detector, Finding};
use crate::answer::{Confidence, Culprit, LostTime};
use crate::classify::Fact;
use crate::facts::{Pair, RefusalReason, named};
use smbscope_model::Nanos;
use smbscope_model::prose::{counted, span, thousands, unbroken};
use smbscope_wire::status::NtStatus;

pub(super) const REFUSALS: Detector = Detector {
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

pub(super) const DISK_FULL: Detector = Detector {
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

pub(super) const SESSION_EXPIRED: Detector = Detector {
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

pub(super) const ASYNC_LIMIT: Detector = Detector {
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
