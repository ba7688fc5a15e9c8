//! Companions of files that macOS looks for on every server.

use super::{Detect, Detector, Finding};
use crate::answer::{Confidence, Culprit, LostTime};
use crate::facts::{Fact, Pair, percent};
use smbscope_model::Nanos;
use smbscope_model::prose::thousands;

pub(super) const MAC_METADATA: Detector = Detector {
    id: "mac-metadata",
    culprit: Culprit::Application,
    title: "macOS metadata files",
    condition: "`share` of at least `opens` opens were for `._*` or `.DS_Store`.",
    advice: "Serve macOS clients with vfs_fruit (Samba), which keeps this metadata in streams; or switch it off on the clients: defaults write com.apple.desktopservices DSDontWriteNetworkStores -bool TRUE.",
    source: "Samba, vfs_fruit(8)",
    thresholds: &[("opens", "50"), ("share", "10%")],
    covers: &["missing-file-probes", "metadata-heavy"],
    detect: Detect::Pair(detect),
};

fn detect(pair: &Pair<'_>) -> Option<Finding> {
    const ID: &str = "mac-metadata";
    let share = pair.facts.share(Fact::MacName, Fact::Open);
    let opens = pair.facts.count(Fact::Open) as f64;
    if opens < pair.threshold(ID, "opens") || share < pair.threshold(ID, "share") {
        return None;
    }
    let names = pair.facts.counted(Fact::MacName);
    let what = format!(
        "{} opened names that only macOS uses (._* and .DS_Store): {} of its opens ({})",
        pair.client,
        thousands(names.count),
        percent(share)
    );
    Some(
        Finding::new(Confidence::High, what)
            .lost(LostTime::exactly(pair.once(Nanos(names.outstanding))))
            .first_of(names),
    )
}
