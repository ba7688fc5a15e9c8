//! Data written through to storage after every write or two.

use super::{Detect, Detector, Finding};
use crate::answer::{Confidence, Culprit, LostTime};
use crate::facts::{CommandClass, Fact, Pair};
use smbscope_model::Nanos;
use smbscope_model::prose::{counted, unbroken};

pub(super) const FLUSH_HEAVY: Detector = Detector {
    id: "flush-heavy",
    culprit: Culprit::Application,
    title: "A flush for every few writes",
    condition: "`flushes` FLUSH commands, and more than `share` of the number of writes. If the median FLUSH takes `slow` at the server, the culprit is the server.",
    advice: "Each FLUSH waits for the disks. Databases, mail stores and build tools do it: keep them off the share, or give the server a log device or write cache that keeps data without power. Switching flushes off (strict sync = no) risks data.",
    source: "MS-SMB2 3.3.5.11; Samba, smb.conf(5)",
    thresholds: &[("flushes", "8"), ("share", "20%"), ("slow", "12ms")],
    covers: &["slow-storage", "serial-client", "rtt-bound", "server-saturation", "small-io"],
    detect: Detect::Pair(detect),
};

fn detect(pair: &Pair<'_>) -> Option<Finding> {
    const ID: &str = "flush-heavy";
    let flushes = pair.facts.counted(Fact::Flush);
    let share = pair.facts.share(Fact::Flush, Fact::Write);
    if (flushes.count as f64) < pair.threshold(ID, "flushes") || share <= pair.threshold(ID, "share") {
        return None;
    }
    let served = pair.served(CommandClass::Flush);
    let what = format!(
        "{} flushed {} for {}; each took {} at {}",
        pair.client,
        counted(flushes.count, "time", "times"),
        counted(pair.facts.count(Fact::Write), "write", "writes"),
        unbroken(served.mean()),
        pair.server_name(),
    );
    let excess = Nanos((served.mean() - pair.yardstick()).0.max(0));
    let lost = pair.once(Nanos(excess.0.saturating_mul(served.count as i64).min(flushes.outstanding)));
    // A server with a safe write cache answers at once.
    let is_slow = served.median() >= pair.time(ID, "slow");
    Some(
        Finding::new(Confidence::High, what)
            .lost(LostTime::between(lost, lost, pair.once(Nanos(flushes.outstanding))))
            .first_of(flushes)
            .on(&None, &flushes.path())
            .culprit(if is_slow { Culprit::Server } else { Culprit::Application })
            .filter(" && (smb2.cmd == 7 || smb.cmd == 0x05)"),
    )
}
