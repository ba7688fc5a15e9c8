//! Patterns in which files and directories are opened, listed and looked for.

use crate::collector::PathKey;
use crate::facts::Fact;
use crate::finding::{Confidence, Finding};
use crate::path::PathFacts;
use crate::subject::{Subject, evidence, named, percent};
use smbscope_model::prose::{counted, span, thousands, unbroken};
use smbscope_model::{Nanos, units};

/// Commands on a path are one at a time up to this mean number of outstanding ones.
const ONE_AT_A_TIME: f64 = 1.2;
/// Bytes of an entry of a listing at least: FileIdBothDirectoryInformation without a name (MS-FSCC 2.4.17), and a name
/// of eight characters.
const ENTRY_BYTES: u64 = 104 + 16;

/// The same file opened again and again by one client, as an application does that reads an INI file by
/// GetPrivateProfileString: each setting an open, a read and a close.
pub(super) fn ini_pattern(subject: &Subject<'_>, key: &PathKey, facts: &PathFacts) -> Option<Finding> {
    const ID: &str = "ini-pattern";
    let most = f64::from(facts.opens_window.most);
    // A directory is opened for every listing and every look at what is in it.
    if most < subject.threshold(ID, "opens") || facts.list_commands > 0 {
        return None;
    }
    let depth = facts.response_time as f64 / facts.outstanding.max(1) as f64;
    let serial = if depth <= ONE_AT_A_TIME { ", one at a time" } else { "" };
    let each = (facts.commands as f64 / facts.opens as f64).round() as u64;
    let moved = match (facts.bytes_read, facts.bytes_written) {
        (0, 0) => String::new(),
        (read, 0) => format!(", and read {} of {}", bytes(read), of_file(facts.extent)),
        (0, written) => format!(", and wrote {} of {}", bytes(written), of_file(facts.extent)),
        (read, written) => format!(", read {} and wrote {} of {}", bytes(read), bytes(written), of_file(facts.extent)),
    };
    let what = format!(
        "opened {} {} times in {}{serial}, {} each{moved}",
        named(&key.path),
        thousands(facts.opens),
        unbroken(span(facts.span())),
        counted(each, "command", "commands"),
    );
    Some(about(subject.finding(ID, Confidence::High, &what, Some(Nanos(facts.outstanding))), key, facts))
}

/// The same directory listed again and again.
pub(super) fn relisting(subject: &Subject<'_>, key: &PathKey, facts: &PathFacts) -> Option<Finding> {
    const ID: &str = "relisting";
    if f64::from(facts.listings_window.most) < subject.threshold(ID, "listings") {
        return None;
    }
    let what = format!(
        "listed {} {} times in {}, {} each",
        named(&key.path),
        thousands(facts.listings),
        unbroken(span(facts.span())),
        bytes(facts.list_bytes / facts.listings.max(1)),
    );
    Some(about(subject.finding(ID, Confidence::High, &what, Some(Nanos(facts.list_wait))), key, facts))
}

/// Each entry of a directory opened, asked and closed after the listing that told the same.
pub(super) fn list_then_stat(subject: &Subject<'_>, key: &PathKey, facts: &PathFacts) -> Option<Finding> {
    const ID: &str = "list-then-stat";
    let entries = (facts.list_bytes / facts.listings.max(1) / ENTRY_BYTES).max(1) as f64;
    let each = facts.looked_at as f64 / facts.listings.max(1) as f64;
    if each < subject.threshold(ID, "entries") || each < entries * subject.threshold(ID, "share") {
        return None;
    }
    let what = format!(
        "listed {} and then opened and closed {} in it one by one without reading them",
        named(&key.path),
        counted(facts.looked_at, "entry", "entries"),
    );
    Some(about(subject.finding(ID, Confidence::Medium, &what, Some(Nanos(facts.looked_at_wait))), key, facts))
}

/// A listing in many small responses.
pub(super) fn small_list_buffer(subject: &Subject<'_>, key: &PathKey, facts: &PathFacts) -> Option<Finding> {
    const ID: &str = "small-list-buffer";
    let each = facts.list_commands as f64 / facts.listings.max(1) as f64;
    let limit = subject.threshold(ID, "buffer");
    if facts.listings == 0 || each <= subject.threshold(ID, "continuations") || facts.list_bytes_max as f64 > limit {
        return None;
    }
    let what = format!(
        "listed {} in {:.0} commands for each listing, the largest response {}",
        named(&key.path),
        each,
        bytes(facts.list_bytes_max),
    );
    Some(about(subject.finding(ID, Confidence::Medium, &what, Some(Nanos(facts.list_wait))), key, facts))
}

/// A directory with very many entries.
pub(super) fn huge_directory(subject: &Subject<'_>, key: &PathKey, facts: &PathFacts) -> Option<Finding> {
    const ID: &str = "huge-directory";
    let each = facts.list_bytes / facts.listings.max(1);
    let entries = each / ENTRY_BYTES;
    if facts.listings == 0 || (entries as f64) < subject.threshold(ID, "entries") {
        return None;
    }
    let what = format!(
        "listed {}, {} in each listing, which are up to {} entries",
        named(&key.path),
        bytes(each),
        thousands(entries),
    );
    Some(about(subject.finding(ID, Confidence::Medium, &what, Some(Nanos(facts.list_wait))), key, facts))
}

/// Many small files copied one after the other.
pub(super) fn small_file_copy(subject: &Subject<'_>) -> Option<Finding> {
    const ID: &str = "small-file-copy";
    let small = subject.facts.of(Fact::SmallFile);
    let depth = subject.facts.of(Fact::Command).depth();
    let per_minute = f64::from(subject.facts.small_files.most);
    if per_minute < subject.threshold(ID, "files") || depth > subject.threshold(ID, "outstanding") {
        return None;
    }
    let what = format!(
        "read or wrote {} of at most 64 KiB ({} in all) one after the other in {}, {depth:.1} commands outstanding",
        counted(small.count, "file", "files"),
        bytes(small.bytes),
        unbroken(span(small.span())),
    );
    let mut finding = subject.finding_on(ID, Confidence::High, &what, small);
    finding.whose.path = None;
    Some(finding)
}

/// Names that are looked for where they are not.
pub(super) fn missing_file_probes(subject: &Subject<'_>) -> Option<Finding> {
    const ID: &str = "missing-file-probes";
    let (missing, lookups) = (subject.facts.of(Fact::Missing), subject.facts.of(Fact::Lookup));
    let share = subject.facts.share(Fact::Missing, Fact::Lookup);
    if (lookups.count as f64) < subject.threshold(ID, "lookups") || share < subject.threshold(ID, "share") {
        return None;
    }
    let first = missing.first.as_ref().and_then(|(_, path)| path.as_deref());
    let first = first.map_or_else(String::new, |path| format!(", first for {}", named(path)));
    let what = format!(
        "looked for files that are not there: {} of {} lookups ({}){first}",
        thousands(missing.count),
        thousands(lookups.count),
        percent(share),
    );
    Some(subject.finding_on(ID, Confidence::High, &what, missing))
}

/// Companions of files that macOS looks for on every server.
pub(super) fn mac_metadata(subject: &Subject<'_>) -> Option<Finding> {
    const ID: &str = "mac-metadata";
    let share = subject.facts.share(Fact::MacName, Fact::Open);
    let opens = subject.facts.count(Fact::Open) as f64;
    if opens < subject.threshold(ID, "opens") || share < subject.threshold(ID, "share") {
        return None;
    }
    let names = subject.facts.of(Fact::MacName);
    let what = format!(
        "opened names that only macOS uses (._* and .DS_Store): {} of its opens ({})",
        thousands(names.count),
        percent(share)
    );
    Some(subject.finding_on(ID, Confidence::High, &what, names))
}

/// Office documents that open slowly.
pub(super) fn office_slow_open(subject: &Subject<'_>) -> Option<Finding> {
    const ID: &str = "office-slow-open";
    let opens = subject.facts.of(Fact::OfficeOpen);
    if Nanos(opens.longest) < subject.time(ID, "longest") {
        return None;
    }
    let what = format!(
        "opened Office documents and their owner files (~$) {}, the slowest open took {}",
        counted(opens.count, "time", "times"),
        unbroken(Nanos(opens.longest)),
    );
    Some(subject.finding_on(ID, Confidence::Medium, &what, opens))
}

/// A finding about a path, with the packet that began it and a filter for it.
fn about(mut finding: Finding, key: &PathKey, facts: &PathFacts) -> Finding {
    finding.whose.share.clone_from(&key.share);
    finding.whose.path = Some(key.path.clone());
    finding.evidence.extend(facts.first.map(evidence));
    if !key.path.is_empty() {
        let path = key.path.replace('\\', r"\\").replace('"', "\\\"");
        finding.wireshark += &format!(" && (smb2.filename == \"{path}\" || smb.file == \"{path}\")");
    }
    finding
}

/// `a 53.0 kB file`
fn of_file(extent: u64) -> String {
    format!("a {} file", bytes(extent))
}

fn bytes(n: u64) -> String {
    unbroken(units::short_bytes(n as f64))
}
