//! Office documents that open slowly.

use super::{Detect, Detector, Finding};
use crate::answer::{Confidence, Culprit, LostTime};
use crate::facts::{Fact, Pair};
use smbscope_model::Nanos;
use smbscope_model::prose::{counted, unbroken};

pub(super) const OFFICE_SLOW_OPEN: Detector = Detector {
    id: "office-slow-open",
    culprit: Culprit::Server,
    title: "Office documents open slowly",
    condition: "An open of an Office document or its owner file (`~$`) took `longest`.",
    advice: "See what the slow open waited for: another user's lock on the owner file (~$), a lease break, or a virus scanner on the server. Compare with the same document on the local disk.",
    source: "Microsoft, \"Slow SMB file transfer speed\": slow open of Office documents",
    thresholds: &[("longest", "2s")],
    covers: &[],
    detect: Detect::Pair(detect),
};

fn detect(pair: &Pair<'_>) -> Option<Finding> {
    let opens = pair.facts.counted(Fact::OfficeOpen);
    if Nanos(opens.longest) < pair.time("office-slow-open", "longest") {
        return None;
    }
    let what = format!(
        "{} opened Office documents and their owner files (~$) {}; the slowest open took {}",
        pair.client,
        counted(opens.count, "time", "times"),
        unbroken(Nanos(opens.longest)),
    );
    Some(
        Finding::new(Confidence::Low, what)
            .lost(LostTime::between(Nanos(opens.longest), Nanos(opens.longest), pair.once(Nanos(opens.outstanding))))
            .longest(Nanos(opens.longest))
            .first_of(opens),
    )
}
