//! Clients that hold each other up, and servers that refuse.

use crate::facts::Fact;
use crate::finding::{Confidence, Finding};
use crate::subject::{Subject, named, percent};
use smbscope_model::Nanos;
use smbscope_model::prose::{counted, thousands, unbroken};

/// Oplocks and leases that are broken more often than they help.
pub(super) fn break_storm(subject: &Subject<'_>) -> Option<Finding> {
    const ID: &str = "break-storm";
    let breaks = subject.facts.of(Fact::Break);
    let share = subject.facts.share(Fact::Break, Fact::Open);
    if (breaks.count as f64) < subject.threshold(ID, "breaks") || share <= subject.threshold(ID, "share") {
        return None;
    }
    let what = format!(
        "lost {} to other clients or handles, {} for each 1,000 opens",
        counted(breaks.count, "oplock or lease", "oplocks or leases"),
        thousands((share * 1_000.0).round() as u64),
    );
    let mut finding = subject.finding(ID, Confidence::Medium, &what, None);
    finding.evidence.extend(breaks.first.as_ref().map(|(stamp, _)| crate::subject::evidence(*stamp)));
    finding.wireshark += " && (smb2.cmd == 18 || smb.cmd == 0x24)";
    Some(finding)
}

/// An open that waited for another client to give its oplock or lease back, until the server gave up.
pub(super) fn break_timeout(subject: &Subject<'_>) -> Option<Finding> {
    let held = subject.facts.of(Fact::BreakTimeout);
    let (_, path) = held.first.as_ref()?;
    let on = path.as_deref().map_or_else(String::new, |path| format!(" of {}", named(path)));
    let what = format!(
        "waited for {} until the server stopped waiting for the holder of an oplock or lease, the longest{on} took {}",
        counted(held.count, "open", "opens"),
        unbroken(Nanos(held.longest)),
    );
    Some(subject.finding_on("break-timeout", Confidence::Medium, &what, held))
}

/// Files and ranges that somebody else has.
pub(super) fn conflicts(subject: &Subject<'_>) -> Option<Finding> {
    const ID: &str = "conflicts";
    let conflicts = subject.facts.of(Fact::Conflict);
    let share = subject.facts.share(Fact::Conflict, Fact::Command);
    if (conflicts.count as f64) < subject.threshold(ID, "commands") || share <= subject.threshold(ID, "share") {
        return None;
    }
    let first = conflicts.first.as_ref().and_then(|(_, path)| path.as_deref());
    let first = first.map_or_else(String::new, |path| format!(", first on {}", named(path)));
    let what = format!(
        "was refused {} because others have the file or range ({} of its commands){first}",
        counted(conflicts.count, "time", "times"),
        percent(share),
    );
    Some(subject.finding_on(ID, Confidence::High, &what, conflicts))
}

/// A server without resources.
pub(super) fn refusals(subject: &Subject<'_>) -> Option<Finding> {
    let refusals = subject.facts.of(Fact::Refusal);
    if refusals.count == 0 {
        return None;
    }
    let what =
        format!("was refused {} because the server has no resources left", counted(refusals.count, "time", "times"));
    // Whoever is refused fails; that it took no time makes it no better.
    let mut finding = subject.finding("refusals", Confidence::High, &what, None);
    if let Some((stamp, path)) = &refusals.first {
        finding.evidence.push(crate::subject::evidence(*stamp));
        finding.whose.path.clone_from(path);
    }
    Some(finding)
}

/// Changes that are told faster than anybody can look at them.
pub(super) fn notify_storm(subject: &Subject<'_>) -> Option<Finding> {
    const ID: &str = "notify-storm";
    let most = f64::from(subject.facts.notified.most);
    if most <= subject.threshold(ID, "rate") {
        return None;
    }
    let notified = subject.facts.of(Fact::Notified);
    let first = notified.first.as_ref().and_then(|(_, path)| path.as_deref());
    let first = first.map_or_else(String::new, |path| format!(", first of {}", named(path)));
    let what = format!(
        "was told of changes in directories {}, up to {most:.0} in a second{first}",
        counted(notified.count, "time", "times"),
    );
    let mut finding = subject.finding(ID, Confidence::High, &what, None);
    finding.evidence.extend(notified.first.as_ref().map(|(stamp, _)| crate::subject::evidence(*stamp)));
    finding.wireshark += " && (smb2.cmd == 15 || smb.nt.function == 4)";
    Some(finding)
}
