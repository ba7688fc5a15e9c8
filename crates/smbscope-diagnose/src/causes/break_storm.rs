//! Oplocks and leases that are broken more often than they help.

use super::{Detect, Detector, Finding};
use crate::answer::{Confidence, Culprit};
use crate::facts::{Fact, Pair};
use smbscope_model::prose::{counted, thousands};

pub(super) const BREAK_STORM: Detector = Detector {
    id: "break-storm",
    culprit: Culprit::Application,
    title: "Oplocks and leases broken all the time",
    condition: "`breaks` oplock or lease breaks, and more than `share` of the number of opens. Always a note.",
    advice: "Several clients work on the same files, so each caches and is told to stop. Keep such files apart; for databases on a share switch oplocks off on that share (Samba: veto oplock files), which costs caching for all others on it.",
    source: "Samba, smb.conf(5); MS-SMB2 3.3.4.6",
    thresholds: &[("breaks", "10"), ("share", "2%")],
    covers: &[],
    detect: Detect::Pair(detect),
};

fn detect(pair: &Pair<'_>) -> Option<Finding> {
    const ID: &str = "break-storm";
    let breaks = pair.facts.counted(Fact::Break);
    let share = pair.facts.share(Fact::Break, Fact::Open);
    if (breaks.count as f64) < pair.threshold(ID, "breaks") || share <= pair.threshold(ID, "share") {
        return None;
    }
    let what = format!(
        "{} lost {} to other clients or handles, {} for each 1,000 opens",
        pair.client,
        counted(breaks.count, "oplock or lease", "oplocks or leases"),
        thousands((share * 1_000.0).round() as u64),
    );
    Some(Finding::new(Confidence::Medium, what).first_of(breaks).filter(" && (smb2.cmd == 18 || smb.cmd == 0x24)"))
}
