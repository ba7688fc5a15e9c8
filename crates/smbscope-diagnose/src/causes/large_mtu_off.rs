//! Blocks of 64 KiB where the dialect has larger ones.

use super::{Detect, Detector, Finding};
use crate::answer::{Confidence, Culprit};
use crate::facts::{Fact, Pair};
use smbscope_model::prose::counted;

pub(super) const LARGE_MTU_OFF: Detector = Detector {
    id: "large-mtu-off",
    culprit: Culprit::Application,
    title: "Blocks of 64 KiB only",
    condition: "`transfers` blocks of 60 to 64 KiB and none larger, over SMB 2.1 or later and a round trip of `trip`. Always a note.",
    advice: "SMB 2.1 and later carry up to 8 MiB in a command. Look for a client or server with large MTU off (Windows: DisableLargeMtu; Samba: smb2 max read and smb2 max write), or an application that asks for 64 KiB.",
    source: "MS-SMB2 3.3.5.4 (CapLargeMtu)",
    thresholds: &[("transfers", "100"), ("trip", "1ms")],
    covers: &[],
    detect: Detect::Pair(detect),
};

fn detect(pair: &Pair<'_>) -> Option<Finding> {
    const ID: &str = "large-mtu-off";
    let full = pair.facts.counted(Fact::Transfer64K);
    if pair.facts.count(Fact::LargeTransfer) > 0
        || (full.count as f64) < pair.threshold(ID, "transfers")
        || pair.round_trip().is_none_or(|trip| trip < pair.time(ID, "trip"))
    {
        return None;
    }
    let what = format!(
        "{} moved file data in {} of 64 KiB and none larger, although its dialect allows up to 8 MiB",
        pair.client,
        counted(full.count, "block", "blocks"),
    );
    Some(Finding::new(Confidence::Medium, what).first_of(full))
}
