//! Reads or writes that take much longer at the server than commands that touch no storage.

use super::{Detect, Detector, Finding};
use crate::answer::{Confidence, Culprit, LostTime};
use crate::facts::{CommandClass, Count, Fact, Pair};
use smbscope_model::Nanos;
use smbscope_model::prose::unbroken;

pub(super) const SLOW_STORAGE: Detector = Detector {
    id: "slow-storage",
    culprit: Culprit::Server,
    title: "Slow storage",
    condition: "The median server time of at least `transfers` reads or writes is `least` or longer, and `ratio` times that of commands that touch no storage. Not where transfers fill the line.",
    advice: "Look at the disks below the share: queue length, utilisation, a rebuild of an array, snapshots. More memory for the server's cache helps reads; a write cache that keeps data without power helps writes.",
    source: "docs/studies.md: disk queue length of hard disk and SSD",
    thresholds: &[("transfers", "20"), ("ratio", "4"), ("least", "3ms")],
    covers: &[
        "rtt-bound",
        "serial-client",
        "small-io",
        "large-mtu-off",
        "server-saturation",
        "metadata-heavy",
        "small-file-copy",
        "slow-client-link",
    ],
    detect: Detect::Pair(detect),
};

fn detect(pair: &Pair<'_>) -> Option<Finding> {
    let clear = [
        (CommandClass::Read, "Reads", pair.facts.counted(Fact::Transfer), Confidence::Medium),
        (CommandClass::Write, "Writes", pair.facts.counted(Fact::Transfer), Confidence::Medium),
    ];
    let hidden = [
        (
            CommandClass::EncryptedRead,
            "Encrypted requests with large responses, most likely reads,",
            pair.facts.counted(Fact::Encrypted),
            Confidence::Low,
        ),
        (
            CommandClass::EncryptedWrite,
            "Large encrypted requests, most likely writes,",
            pair.facts.counted(Fact::Encrypted),
            Confidence::Low,
        ),
    ];
    let found = clear.into_iter().chain(hidden);
    let found = found.filter_map(|(kind, name, count, confidence)| of_kind(pair, kind, name, count, confidence));
    found.max_by_key(|(lost, _)| *lost).map(|(_, found)| found)
}

fn of_kind(
    pair: &Pair<'_>,
    kind: CommandClass,
    name: &str,
    count: &Count,
    confidence: Confidence,
) -> Option<(Nanos, Finding)> {
    const ID: &str = "slow-storage";
    let served = pair.served(kind);
    let is_hidden = matches!(kind, CommandClass::EncryptedRead | CommandClass::EncryptedWrite);
    let light = if is_hidden { pair.served(CommandClass::EncryptedOther).median() } else { pair.yardstick() };
    let typical = served.median();
    let ratio = typical.0 as f64 / light.0.max(50_000) as f64;
    // Where transfers fill the line, requests wait for those before them.
    let is_queued = pair.transfer_share() > 0.5 || (pair.depth() > 2.0 && pair.transfer_share() > 0.25);
    if (served.count as f64) < pair.threshold(ID, "transfers")
        || typical < pair.time(ID, "least")
        || ratio < pair.threshold(ID, "ratio")
        || is_queued
    {
        return None;
    }
    let what = format!(
        "{name} of {} took {} at {}, {ratio:.0}× as long as commands that touch no storage ({})",
        pair.client,
        unbroken(typical),
        pair.server_name(),
        unbroken(light),
    );
    let depth = pair.depth().max(1.0);
    let sum = |each: i64| pair.once(Nanos((each as f64 * served.count as f64 / depth) as i64));
    let mean = sum((served.mean() - light).0);
    let trimmed = sum((typical - light).0).min(mean);
    let found = Finding::new(confidence, what)
        .lost(LostTime::between(trimmed, mean, mean))
        .first_of(count)
        .on(&None, &count.path())
        .filter(if kind == CommandClass::Read { " && (smb2.cmd == 8 || smb.cmd == 0x2e)" } else { "" });
    Some((mean, found))
}
