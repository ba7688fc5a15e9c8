//! Signed bulk data where somebody waits for it.

use super::{Detect, Detector, Finding};
use crate::answer::{Confidence, Culprit};
use crate::facts::{Fact, Pair, bytes, percent};

pub(super) const SIGNING_COST: Detector = Detector {
    id: "signing-cost",
    culprit: Culprit::Server,
    title: "Bulk data is signed",
    condition: "The client moved `bytes` of signed file data, more than `share` of all its file data, and waited for it during `waited` of its active time. Always a note: a capture can't tell how much of the wait is signing.",
    advice: "Signing costs both sides processor time for each byte; with AES-GMAC (SMB 3.1.1, Windows 11, Server 2022) far less than with HMAC-SHA256. Use a dialect and cipher that the processors support. Without signing anybody on the network can change data: keep it on.",
    source: "MS-SMB2 3.1.4.1; docs/load.md has what it costs here",
    thresholds: &[("bytes", "100MB"), ("share", "50%"), ("waited", "50%")],
    covers: &[],
    detect: Detect::Pair(detect),
};

fn detect(pair: &Pair<'_>) -> Option<Finding> {
    const ID: &str = "signing-cost";
    let (signed, all) = (pair.facts.counted(Fact::SignedTransfer), pair.facts.counted(Fact::Transfer));
    let share = signed.bytes as f64 / all.bytes.max(1) as f64;
    let waited = signed.outstanding as f64 / pair.split.active().0.max(1) as f64;
    if (signed.bytes as f64) < pair.threshold(ID, "bytes")
        || share <= pair.threshold(ID, "share")
        || waited < pair.threshold(ID, "waited")
    {
        return None;
    }
    let what = format!("{} moved {} of signed file data ({} of it)", pair.client, bytes(signed.bytes), percent(share));
    // Signing is a part of the wait; how much can't be seen from outside.
    Some(Finding::new(Confidence::Low, what).first_of(signed))
}
