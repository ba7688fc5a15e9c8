//! Requests that the server refused for want of resources.

use super::{Detect, Detector, Finding};
use crate::answer::{Confidence, Culprit};
use crate::facts::{Fact, Pair};
use smbscope_model::prose::counted;

pub(super) const REFUSALS: Detector = Detector {
    id: "refusals",
    culprit: Culprit::Server,
    title: "Server out of resources",
    condition: "A response with STATUS_INSUFFICIENT_RESOURCES, STATUS_INSUFF_SERVER_RESOURCES, STATUS_TOO_MANY_OPENED_FILES, STATUS_TOO_MANY_SESSIONS or STATUS_REQUEST_NOT_ACCEPTED. Always a note.",
    advice: "Raise the server's limits (Samba: max open files, max smbd processes; Windows: work items and memory), or find the client that leaks handles or sessions.",
    source: "MS-SMB2 3.3.5; Samba, smb.conf(5)",
    thresholds: &[],
    covers: &[],
    detect: Detect::Pair(detect),
};

fn detect(pair: &Pair<'_>) -> Option<Finding> {
    let refusals = pair.facts.counted(Fact::Refusal);
    if refusals.count == 0 {
        return None;
    }
    let what = format!(
        "{} refused {} of {} because it has no resources left",
        pair.server_name(),
        counted(refusals.count, "request", "requests"),
        pair.client,
    );
    // A refused request fails; that it took no time makes it no better.
    Some(Finding::new(Confidence::High, what).first_of(refusals))
}
