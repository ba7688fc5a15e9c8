//! Files that others have open in a way that excludes a second open.

use super::{Detect, Detector, Finding};
use crate::answer::{Confidence, Culprit, LostTime};
use crate::facts::{Pair, RefusalReason, file_name};
use smbscope_model::prose::{counted, span, unbroken};
use smbscope_wire::status::NtStatus;

pub(super) const CONFLICTS: Detector = Detector {
    id: "conflicts",
    culprit: Culprit::Client,
    title: "File in use by others",
    condition: "Opens of one file failed with STATUS_SHARING_VIOLATION `attempts` times, or those of as many files, and cost `wait`: from the first attempt until success or the last refusal. Unless the client itself gave an oplock back for them: its own handles were in the way.",
    advice: "Find out who has the file open (smbstatus -L, Get-SmbOpenFile). Applications that try again in a loop make users wait for each attempt; virus scanners, search indexers and backups open files without sharing them.",
    source: "MS-SMB2 3.3.5.9; MS-FSA 2.1.5",
    thresholds: &[("wait", "1s"), ("attempts", "3")],
    covers: &[],
    detect: Detect::Pair(detect),
};

fn detect(pair: &Pair<'_>) -> Option<Finding> {
    let refused = pair.facts.refused(RefusalReason::Conflict);
    let longest = refused.longest.as_ref()?;
    // A server may hold back a refusal for a second (Samba, and Windows with SMB1).
    let attempts = pair.threshold("conflicts", "attempts");
    let is_repeated = longest.count as f64 >= attempts || refused.files as f64 >= attempts;
    let is_own = pair.held_up_by_itself().0.saturating_mul(2) >= refused.waited.0;
    if refused.waited < pair.time("conflicts", "wait")
        || !is_repeated
        || is_own
        || longest.status != NtStatus::SHARING_VIOLATION
    {
        return None;
    }
    let file = file_name(&longest.path);
    let others = match refused.files.saturating_sub(1) {
        0 => String::new(),
        n => format!(", and {} more", counted(n, "file", "files")),
    };
    let tries = longest.count + u64::from(longest.succeeded);
    let time = unbroken(span(longest.length()));
    let why = "which somebody else has open (STATUS_SHARING_VIOLATION)";
    let outcome = if longest.succeeded { "until it could open it" } else { "and gave up" };
    let what = match tries {
        1 => format!("{} waited {time} for the refusal to open {file}, {why}{others}", pair.client),
        _ => {
            let tries = counted(tries, "time", "times");
            format!("{} tried {tries} for {time} to open {file}, {why}, {outcome}{others}", pair.client)
        }
    };
    Some(
        Finding::new(Confidence::High, what)
            .lost(LostTime::exactly(refused.waited))
            .longest(longest.length())
            .from(Some(longest.first))
            .on(&longest.share, &longest.path)
            .filter(" && smb2.nt_status == 0xc0000043")
            .outside(),
    )
}
