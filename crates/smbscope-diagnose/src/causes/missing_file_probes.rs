//! Names that are looked for where they are not.

use super::{Detect, Detector, Finding};
use crate::answer::{Confidence, Culprit, LostTime};
use crate::facts::{Fact, Pair, named, percent};
use smbscope_model::Nanos;
use smbscope_model::prose::thousands;

pub(super) const MISSING_FILE_PROBES: Detector = Detector {
    id: "missing-file-probes",
    culprit: Culprit::Application,
    title: "Files looked for where they are not",
    condition: "`share` of at least `lookups` opens and path queries found nothing.",
    advice: "Applications search their paths for libraries, settings and language files. Shorten the search path, install the application locally, or put a share last in it. Windows clients remember missing names for FileNotFoundCacheLifetime.",
    source: "Microsoft, \"Performance tuning for SMB file servers\": FileNotFoundCacheEntriesMax",
    thresholds: &[("lookups", "50"), ("share", "30%")],
    covers: &["rtt-bound", "serial-client", "metadata-heavy", "slow-client-link"],
    detect: Detect::Pair(detect),
};

fn detect(pair: &Pair<'_>) -> Option<Finding> {
    const ID: &str = "missing-file-probes";
    let (missing, lookups) = (pair.facts.counted(Fact::Missing), pair.facts.counted(Fact::Lookup));
    let share = pair.facts.share(Fact::Missing, Fact::Lookup);
    if (lookups.count as f64) < pair.threshold(ID, "lookups") || share < pair.threshold(ID, "share") {
        return None;
    }
    let path = missing.path();
    let first = path.as_deref().map_or_else(String::new, |path| format!(", first for {}", named(path)));
    let what = format!(
        "{} looked for files that do not exist: {} of {} lookups ({}){first}",
        pair.client,
        thousands(missing.count),
        thousands(lookups.count),
        percent(share),
    );
    Some(
        Finding::new(Confidence::High, what)
            .lost(LostTime::exactly(pair.once(Nanos(missing.outstanding))))
            .first_of(missing)
            .on(&None, &path)
            .filter(
                " && (smb2.nt_status == 0xc0000034 || smb2.nt_status == 0xc000003a || smb.nt_status == 0xc0000034)",
            ),
    )
}
