//! The same directory listed again and again.

use super::{Detect, Detector, Finding};
use crate::answer::{Confidence, Culprit, LostTime};
use crate::facts::{Pair, PathFacts, PathKey, bytes, named};
use smbscope_model::Nanos;
use smbscope_model::prose::{span, thousands, unbroken};

pub(super) const RELISTING: Detector = Detector {
    id: "relisting",
    culprit: Culprit::Application,
    title: "The same directory listed again and again",
    condition: "One directory was listed `listings` times within 10 s.",
    advice: "Find the application that lists it (a thumbnail view, a virus scanner, a backup agent) and have it use change notifications. On Windows clients DirectoryCacheLifetime and DirectoryCacheEntriesMax decide how long a listing is kept.",
    source: "Microsoft, \"Performance tuning for SMB file servers\": client parameters",
    thresholds: &[("listings", "3")],
    covers: &["rtt-bound", "serial-client", "metadata-heavy", "huge-directory", "small-list-buffer"],
    detect: Detect::Path(detect),
};

fn detect(pair: &Pair<'_>, key: &PathKey, facts: &PathFacts) -> Option<Finding> {
    if f64::from(facts.listings_window.most) < pair.threshold("relisting", "listings") {
        return None;
    }
    let what = format!(
        "{} listed {} {} times in {}, {} each",
        pair.client,
        named(&key.path),
        thousands(facts.listings),
        unbroken(span(facts.span())),
        bytes(facts.list_bytes / facts.listings.max(1)),
    );
    // One listing would have done.
    let lost = pair.once(Nanos((facts.list_wait as f64 * (1.0 - 1.0 / facts.listings.max(1) as f64)) as i64));
    Some(Finding::new(Confidence::High, what).lost(LostTime::exactly(lost)))
}
