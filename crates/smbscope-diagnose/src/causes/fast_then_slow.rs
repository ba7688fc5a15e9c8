//! Writes that begin fast and go on slowly.

use super::{Detect, Detector, Finding};
use crate::answer::{Confidence, Culprit, LostTime};
use crate::facts::{Pair, bytes};
use smbscope_model::Nanos;
use smbscope_model::prose::unbroken;

pub(super) const FAST_THEN_SLOW: Detector = Detector {
    id: "fast-then-slow",
    culprit: Culprit::Server,
    title: "Writes fast at first, then slow",
    condition: "Within writes of `bytes` or more without a pause of 2 s, throughput fell by the factor `throughput`, and a write took `write_time` times as long, at least `slow_write`, for `time`. Not where transfers took most of the waits.",
    advice: "A cache of the server filled up: memory for pages not yet written (Linux: vm.dirty_bytes), the write cache of a controller, the fast part of an SSD. What comes after it shows what the disks can do. Look at the disks' queue at that time, and size the cache for the copies that matter.",
    source: "Microsoft, \"Slow SMB file transfer speed\": copies that start fast and slow down",
    thresholds: &[("bytes", "16MiB"), ("time", "1s"), ("throughput", "2"), ("write_time", "3"), ("slow_write", "2ms")],
    covers: &["slow-storage", "server-saturation"],
    detect: Detect::Pair(detect),
};

fn detect(pair: &Pair<'_>) -> Option<Finding> {
    const ID: &str = "fast-then-slow";
    let found = pair.facts.slowdown.as_ref()?;
    let (fast, slow) = (&found.fast, &found.slow);
    if ((fast.bytes + slow.bytes) as f64) < pair.threshold(ID, "bytes")
        || slow.elapsed < pair.time(ID, "time")
        // Storage is slower than that; faster writes become slow with the processor.
        || slow.write_time < pair.time(ID, "slow_write")
        || found.throughput_ratio() < pair.threshold(ID, "throughput")
        || found.time_ratio() < pair.threshold(ID, "write_time")
        // Neither does a link that carries no more.
        || pair.transfer_share() > 0.5
    {
        return None;
    }
    let what = format!(
        "{} wrote {} at {}/s with {} for a write, then {} at {}/s with {} for a write",
        pair.client,
        bytes(fast.bytes),
        bytes(fast.rate() as u64),
        unbroken(fast.write_time),
        bytes(slow.bytes),
        bytes(slow.rate() as u64),
        unbroken(slow.write_time),
    );
    Some(
        Finding::new(Confidence::Medium, what)
            .lost(LostTime::between(Nanos(0), found.lost(), found.lost()))
            .from(Some(found.first))
            .on(&found.share, &found.path)
            .filter(" && smb2.cmd == 9"),
    )
}
