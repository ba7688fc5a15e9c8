//! Writes that fail because no space is left.

use super::{Detect, Detector, Finding};
use crate::answer::{Confidence, Culprit, LostTime};
use crate::facts::{Pair, RefusalReason, named};
use smbscope_model::prose::{counted, span, unbroken};
use smbscope_wire::status::NtStatus;

pub(super) const DISK_FULL: Detector = Detector {
    id: "disk-full",
    culprit: Culprit::Server,
    title: "Disk full or quota used up",
    condition: "Writes failed with STATUS_DISK_FULL, STATUS_QUOTA_EXCEEDED or STATUS_DISK_QUOTA_EXCEEDED. It is a cause even if no time was lost, since operations failed; retries count as lost time if they took `wait`.",
    advice: "Make room on the server's volume, or raise the user's quota. The application tries again and again instead of reporting the error.",
    source: "MS-ERREF 2.3.1: STATUS_DISK_FULL, STATUS_QUOTA_EXCEEDED",
    thresholds: &[("wait", "500ms")],
    covers: &["conflicts", "small-io", "serial-client"],
    detect: Detect::Pair(detect),
};

fn detect(pair: &Pair<'_>) -> Option<Finding> {
    let refused = pair.facts.refused(RefusalReason::Full);
    let longest = refused.longest.as_ref()?;
    let status = longest.status;
    let why = match status {
        NtStatus::DISK_FULL => "the disk is full (STATUS_DISK_FULL)",
        _ => "the quota is used up (STATUS_QUOTA_EXCEEDED)",
    };
    let file = longest.path.as_deref().map_or_else(String::new, |path| format!(" to {}", named(path)));
    let tried = if refused.waited.0 > 0 { format!(" over {}", unbroken(span(refused.waited))) } else { String::new() };
    let failed = counted(refused.count, "write", "writes");
    let what = format!("{failed} of {}{file} failed{tried}: {why} on {}", pair.client, pair.server_name());
    let found = Finding::new(Confidence::High, what)
        .from(Some(longest.first))
        .on(&longest.share, &longest.path)
        .filter(&format!(" && smb2.nt_status == 0x{:08x}", status.0))
        .outside()
        .failed();
    // What fails at once costs no time, but the user's work.
    Some(match refused.waited >= pair.time("disk-full", "wait") {
        true => found.lost(LostTime::exactly(refused.waited)).longest(refused.waited),
        false => found,
    })
}
