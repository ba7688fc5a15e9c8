//! A directory with very many entries.

use super::list_then_stat::ENTRY_BYTES;
use super::{Detect, Detector, Finding};
use crate::answer::{Confidence, Culprit, LostTime};
use crate::facts::{Pair, PathFacts, PathKey, bytes, named};
use smbscope_model::Nanos;
use smbscope_model::prose::thousands;

pub(super) const HUGE_DIRECTORY: Detector = Detector {
    id: "huge-directory",
    culprit: Culprit::Application,
    title: "Very large directory",
    condition: "A listing was long enough for `entries` entries, estimated from its bytes.",
    advice: "Divide the directory: listing it takes long for every client, and many applications list what they open. Switch 8.3 names off on the server where it makes them.",
    source: "Microsoft, \"Performance tuning for SMB file servers\"",
    thresholds: &[("entries", "10000")],
    covers: &["rtt-bound", "serial-client", "metadata-heavy", "small-list-buffer"],
    detect: Detect::Path(detect),
};

fn detect(pair: &Pair<'_>, key: &PathKey, facts: &PathFacts) -> Option<Finding> {
    let each = facts.list_bytes / facts.listings.max(1);
    let entries = each / ENTRY_BYTES;
    if facts.listings == 0 || (entries as f64) < pair.threshold("huge-directory", "entries") {
        return None;
    }
    let what = format!(
        "{} listed {}: {} in each listing, up to {} entries",
        pair.client,
        named(&key.path),
        bytes(each),
        thousands(entries),
    );
    Some(Finding::new(Confidence::Medium, what).lost(LostTime::exactly(pair.once(Nanos(facts.list_wait)))))
}
