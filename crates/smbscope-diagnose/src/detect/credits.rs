//! What the server lets a client have outstanding.

use crate::finding::{Confidence, Finding};
use crate::subject::Subject;
use smbscope_model::Nanos;
use smbscope_model::prose::{counted, thousands};

/// A client that waits for credits before it can send the next request.
pub(super) fn credit_starved(subject: &Subject<'_>) -> Option<Finding> {
    const ID: &str = "credit-starved";
    let waits = subject.connections.iter().map(|connection| connection.credit_wait.0);
    let waited = Nanos(waits.fold(0, i64::saturating_add));
    let active = subject.split().active().0 as f64;
    if waited.0 == 0 || (waited.0 as f64) < active * subject.threshold(ID, "share") {
        return None;
    }
    let most = subject.connections.iter().max_by_key(|connection| connection.credit_wait)?.max_outstanding;
    let what = format!(
        "had no credits left for its next request, with at most {} outstanding",
        counted(u64::from(most), "request", "requests"),
    );
    let mut finding = subject.finding(ID, Confidence::High, &what, Some(waited));
    finding.wireshark += " && smb2.credits.granted";
    Some(finding)
}

/// Asynchronous commands that the server has put off, near its limit.
pub(super) fn async_limit(subject: &Subject<'_>) -> Option<Finding> {
    const ID: &str = "async-limit";
    let most = subject.connections.iter().map(|connection| connection.max_asynchronous).max()?;
    if f64::from(most) < subject.threshold(ID, "commands") {
        return None;
    }
    let what = format!(
        "had {} commands pending at once on a connection, of 512 that servers allow by default",
        thousands(u64::from(most))
    );
    let mut finding = subject.finding(ID, Confidence::High, &what, None);
    finding.wireshark += " && smb2.nt_status == 0x00000103";
    Some(finding)
}
