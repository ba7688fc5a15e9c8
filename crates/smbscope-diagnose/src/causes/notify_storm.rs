//! Changes of directories that come faster than a client can use them.

use super::{Detect, Detector, Finding};
use crate::answer::{Confidence, Culprit};
use crate::facts::{Fact, Pair, named};
use smbscope_model::prose::counted;

pub(super) const NOTIFY_STORM: Detector = Detector {
    id: "notify-storm",
    culprit: Culprit::Application,
    title: "Directory changes reported faster than they can be used",
    condition: "More than `rate` change notifications within a second. Always a note.",
    advice: "Each notification makes a client list the directory anew. Watch fewer directories, or not whole trees; look for an application that writes into a watched directory all the time.",
    source: "MS-SMB2 3.3.5.19",
    thresholds: &[("rate", "10")],
    covers: &[],
    detect: Detect::Pair(detect),
};

fn detect(pair: &Pair<'_>) -> Option<Finding> {
    let most = f64::from(pair.facts.notified.most);
    if most <= pair.threshold("notify-storm", "rate") {
        return None;
    }
    let notified = pair.facts.counted(Fact::Notified);
    let path = notified.path();
    let first = path.as_deref().map_or_else(String::new, |path| format!(", first in {}", named(path)));
    let what = format!(
        "{} was notified of changes in directories {}, up to {most:.0} in a second{first}",
        pair.client,
        counted(notified.count, "time", "times"),
    );
    Some(
        Finding::new(Confidence::High, what)
            .first_of(notified)
            .on(&None, &path)
            .filter(" && (smb2.cmd == 15 || smb.nt.function == 4)"),
    )
}
