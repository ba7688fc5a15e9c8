//! DFS referrals that take long.

use super::{Detect, Detector, Finding};
use crate::answer::{Confidence, Culprit, LostTime};
use crate::facts::{Fact, Pair};
use smbscope_model::Nanos;
use smbscope_model::prose::{counted, unbroken};

pub(super) const DFS_REFERRAL: Detector = Detector {
    id: "dfs-referral",
    culprit: Culprit::Server,
    title: "Slow DFS referrals",
    condition: "A DFS referral took `longest`.",
    advice: "Each path of a DFS namespace is looked up first. Look for namespace servers or targets that are gone, and for clients that are sent to a server of another site.",
    source: "MS-DFSC 3.1",
    thresholds: &[("longest", "100ms")],
    covers: &["server-hang"],
    detect: Detect::Pair(detect),
};

fn detect(pair: &Pair<'_>) -> Option<Finding> {
    let referrals = pair.facts.counted(Fact::Referral);
    if Nanos(referrals.longest) < pair.time("dfs-referral", "longest") {
        return None;
    }
    let what = format!(
        "{} asked for {}; the slowest took {}",
        pair.client,
        counted(referrals.count, "DFS referral", "DFS referrals"),
        unbroken(Nanos(referrals.longest)),
    );
    Some(
        Finding::new(Confidence::High, what)
            .lost(LostTime::exactly(pair.once(Nanos(referrals.outstanding))))
            .first_of(referrals)
            .filter(" && dfs.referral.version"),
    )
}
