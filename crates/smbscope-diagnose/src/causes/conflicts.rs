//! Files that others have open in a way that excludes a second open.

use super::{Detect, Detector, Found};
use crate::answer::{Confidence, Culprit, Lost};
use crate::facts::{Pair, Refusal, file_name};
use smbscope_model::prose::{counted, span, unbroken};
use smbscope_wire::status::NtStatus;

pub(super) const CONFLICTS: Detector = Detector {
    id: "conflicts",
    culprit: Culprit::Client,
    title: "File in use by others",
    condition: "Opens failed with STATUS_SHARING_VIOLATION and were tried again, `attempts` times in `wait`: from the first refusal until success or the last attempt.",
    advice: "Find out who has the file open (smbstatus -L, Get-SmbOpenFile). Applications that try again in a loop make users wait for each attempt; virus scanners, search indexers and backups open files without sharing them.",
    source: "MS-SMB2 3.3.5.9; MS-FSA 2.1.5",
    thresholds: &[("wait", "1s"), ("attempts", "3")],
    covers: &[],
    detect: Detect::Pair(detect),
};

fn detect(pair: &Pair<'_>) -> Option<Found> {
    let refused = pair.facts.refused(Refusal::Conflict);
    let longest = refused.longest.as_ref()?;
    // A server may hold back a refusal for a second; who does not try again has given up.
    if refused.waited < pair.time("conflicts", "wait")
        || (longest.count as f64) < pair.threshold("conflicts", "attempts")
        || longest.status != NtStatus::SHARING_VIOLATION
    {
        return None;
    }
    let file = file_name(&longest.path);
    let others = match refused.files.saturating_sub(1) {
        0 => String::new(),
        n => format!(", and {} more", counted(n, "file", "files")),
    };
    let outcome = if longest.succeeded { "until it could open it" } else { "and gave up" };
    let what = format!(
        "{} tried {} for {} to open {file}, which somebody else has open (STATUS_SHARING_VIOLATION), {outcome}{others}",
        pair.client,
        counted(longest.count + u64::from(longest.succeeded), "time", "times"),
        unbroken(span(longest.length())),
    );
    Some(
        Found::new(Confidence::High, what)
            .lost(Lost::exactly(refused.waited))
            .longest(longest.length())
            .from(Some(longest.first))
            .on(&longest.share, &longest.path)
            .filter(" && smb2.nt_status == 0xc0000043")
            .outside(),
    )
}
