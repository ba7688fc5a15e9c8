//! Each entry of a directory opened, asked and closed after the listing that told the same.

use super::{Detect, Detector, Finding};
use crate::answer::{Confidence, Culprit, LostTime};
use crate::facts::{Pair, PathFacts, PathKey, named};
use smbscope_model::Nanos;
use smbscope_model::prose::counted;

pub(super) const LIST_THEN_STAT: Detector = Detector {
    id: "list-then-stat",
    culprit: Culprit::Application,
    title: "Each entry of a directory opened after listing it",
    condition: "After a listing, at least `entries` of its entries, and `share` of all, were opened and closed without a read or write.",
    advice: "The listing already tells sizes, times and attributes. Have the application use them (FindFirstFile instead of GetFileAttributes for each file); look for shell extensions and scanners that open every file to look at it.",
    source: "MS-FSCC 2.4: what a directory listing returns",
    thresholds: &[("entries", "50"), ("share", "80%")],
    covers: &["rtt-bound", "serial-client", "metadata-heavy", "small-file-copy", "slow-client-link"],
    detect: Detect::Path(detect),
};

/// Least size of an entry of a listing: FileIdBothDirectoryInformation without a name (MS-FSCC 2.4.17), and a name of
/// eight characters.
pub(super) const ENTRY_BYTES: u64 = 104 + 16;

fn detect(pair: &Pair<'_>, key: &PathKey, facts: &PathFacts) -> Option<Finding> {
    const ID: &str = "list-then-stat";
    let entries = (facts.list_bytes / facts.listings.max(1) / ENTRY_BYTES).max(1) as f64;
    let each = facts.looked_at as f64 / facts.listings.max(1) as f64;
    if each < pair.threshold(ID, "entries") || each < entries * pair.threshold(ID, "share") {
        return None;
    }
    let what = format!(
        "{} listed {} and then opened and closed {} in it one by one without reading them",
        pair.client,
        named(&key.path),
        counted(facts.looked_at, "entry", "entries"),
    );
    Some(Finding::new(Confidence::Medium, what).lost(LostTime::exactly(pair.once(Nanos(facts.looked_at_wait)))))
}
