//! Encrypted frames: their commands and files are hidden.

use super::{Detect, Detector, Finding};
use crate::answer::{Confidence, Culprit};
use crate::facts::{Fact, Pair};
use smbscope_model::prose::counted;

pub(super) const ENCRYPTED: Detector = Detector {
    id: "encrypted",
    culprit: Culprit::Capture,
    title: "Encrypted traffic",
    condition: "Any encrypted request. Always a note.",
    advice: "To see commands and files, capture with encryption off for this share, or measure with bench, which sees its own commands. Encryption protects the data on the network; turn it off for a test only.",
    source: "MS-SMB2 2.2.41",
    thresholds: &[],
    covers: &[],
    detect: Detect::Pair(detect),
};

fn detect(pair: &Pair<'_>) -> Option<Finding> {
    let frames = pair.facts.counted(Fact::Encrypted);
    if frames.count == 0 {
        return None;
    }
    let what = format!(
        "{} encrypted {}: how long they took is visible, their commands and files are not",
        pair.client,
        counted(frames.count, "request", "requests"),
    );
    Some(Finding::new(Confidence::High, what).first_of(frames).filter(" && smb2.header.transform.signature"))
}
