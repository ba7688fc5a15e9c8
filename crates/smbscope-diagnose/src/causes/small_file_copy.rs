//! Many small files copied one after the other.

use super::{Detect, Detector, Finding};
use crate::answer::{Confidence, Culprit, LostTime};
use crate::facts::{Fact, Pair, bytes};
use smbscope_model::Nanos;
use smbscope_model::prose::{counted, span, unbroken};
use smbscope_stats::TimePart;

pub(super) const SMALL_FILE_COPY: Detector = Detector {
    id: "small-file-copy",
    culprit: Culprit::Application,
    title: "Many small files, one after the other",
    condition: "`files` different files of at most 64 KiB were read or written within a minute, with at most `outstanding` commands outstanding, and took `share` of the waits, at least `each` for each file.",
    advice: "Copy with several files at a time (robocopy /MT, rsync in parallel), or pack the files into one archive or disk image: each file costs several round trips whatever its size. For profiles: keep caches and temporary files out of what is redirected.",
    source: "Microsoft, \"Slow SMB file transfer speed\": small files; docs/studies.md: logons that copy 18,460 files",
    thresholds: &[("files", "100"), ("outstanding", "12"), ("share", "40%"), ("each", "4ms")],
    covers: &["rtt-bound", "serial-client", "metadata-heavy", "small-io"],
    detect: Detect::Pair(detect),
};

fn detect(pair: &Pair<'_>) -> Option<Finding> {
    const ID: &str = "small-file-copy";
    let small = pair.facts.counted(Fact::SmallFile);
    let depth = pair.depth();
    let per_minute = f64::from(pair.facts.small_files.most);
    let waited = pair.once(Nanos(small.outstanding));
    let share = waited.0 as f64 / pair.whole.waited.0.max(1) as f64;
    let each = Nanos(waited.0 / small.count.max(1) as i64);
    if per_minute < pair.threshold(ID, "files")
        // Nobody can copy them faster.
        || each < pair.time(ID, "each")
        || depth > pair.threshold(ID, "outstanding")
        || share < pair.threshold(ID, "share")
    {
        return None;
    }
    let what = format!(
        "{} read or wrote {} of at most 64 KiB ({} in all) in {}, with {depth:.1} commands outstanding",
        pair.client,
        counted(small.count, "file", "files"),
        bytes(small.bytes),
        unbroken(span(small.span())),
    );
    // One archive would need a few commands; what the server itself took remains at least in part.
    let busy = (pair.split.waited().0 as f64).max(1.0);
    let server = pair.split.part(TimePart::Server).0 as f64 / busy;
    let low = Nanos((waited.0 as f64 * (1.0 - server.min(0.9))) as i64);
    Some(Finding::new(Confidence::High, what).lost(LostTime::between(low, waited, waited)).first_of(small))
}
