//! Commands that carry no data.

use super::{Detect, Detector, Finding};
use crate::answer::{Confidence, Culprit, LostTime};
use crate::facts::{Fact, Pair, percent};
use smbscope_model::Nanos;
use smbscope_model::prose::{counted, thousands};
use smbscope_stats::TimePart;

pub(super) const METADATA_HEAVY: Detector = Detector {
    id: "metadata-heavy",
    culprit: Culprit::Application,
    title: "Mostly commands without data",
    condition: "`share` of at least `commands` commands neither read nor wrote, over a round trip of `trip`.",
    advice: "Opens, queries and listings cost a round trip each and move nothing. See which files they are for (--by file), and whether leases on directories are on (SMB 3).",
    source: "Azure Files performance guide: metadata-heavy workloads",
    thresholds: &[("commands", "500"), ("share", "70%"), ("trip", "1ms")],
    covers: &[],
    detect: Detect::Pair(detect),
};

fn detect(pair: &Pair<'_>) -> Option<Finding> {
    const ID: &str = "metadata-heavy";
    let (metadata, all) = (pair.facts.counted(Fact::Metadata), pair.facts.counted(Fact::Command));
    let share = pair.facts.share(Fact::Metadata, Fact::Command);
    if (all.count as f64) < pair.threshold(ID, "commands")
        || share < pair.threshold(ID, "share")
        || pair.round_trip().is_none_or(|trip| trip < pair.time(ID, "trip"))
    {
        return None;
    }
    let what = format!(
        "{} sent {} of {} that neither read nor write data ({})",
        pair.client,
        thousands(metadata.count),
        counted(all.count, "command", "commands"),
        percent(share),
    );
    let network = pair.part(TimePart::Network);
    let lost = Nanos((network.0 as f64 * share) as i64);
    Some(Finding::new(Confidence::Medium, what).lost(LostTime::between(Nanos(0), lost, lost)).first_of(metadata))
}
