//! How file data is carried.

use crate::facts::Fact;
use crate::finding::{Confidence, Finding};
use crate::subject::{Subject, percent};
use smbscope_model::Nanos;
use smbscope_model::prose::{counted, thousands, unbroken};
use smbscope_model::units::short_bytes;

/// Data in small blocks.
pub(super) fn small_io(subject: &Subject<'_>) -> Option<Finding> {
    const ID: &str = "small-io";
    let small = subject.facts.of(Fact::SmallTransfer);
    let share = subject.facts.share(Fact::SmallTransfer, Fact::Transfer);
    let in_small_files = subject.facts.count(Fact::SmallFile) + subject.facts.count(Fact::SmallFileAgain);
    // A small file has no larger block.
    let counted_ones = small.count.saturating_sub(2 * in_small_files);
    if (counted_ones as f64) < subject.threshold(ID, "transfers") || share < subject.threshold(ID, "share") {
        return None;
    }
    let what = format!(
        "moved file data in blocks of at most 8 KiB: {} of {} reads and writes ({}), {} each",
        thousands(small.count),
        thousands(subject.facts.count(Fact::Transfer)),
        percent(share),
        unbroken(short_bytes(small.bytes as f64 / small.count.max(1) as f64)),
    );
    Some(subject.finding_on(ID, Confidence::High, &what, small))
}

/// Data written through to storage after every write or two.
pub(super) fn flush_heavy(subject: &Subject<'_>) -> Option<Finding> {
    const ID: &str = "flush-heavy";
    let flushes = subject.facts.of(Fact::Flush);
    let share = subject.facts.share(Fact::Flush, Fact::Write);
    if (flushes.count as f64) < subject.threshold(ID, "flushes") || share <= subject.threshold(ID, "share") {
        return None;
    }
    let what = format!(
        "flushed {} for {}, {} each",
        counted(flushes.count, "time", "times"),
        counted(subject.facts.count(Fact::Write), "write", "writes"),
        unbroken(flushes.mean()),
    );
    Some(subject.finding_on(ID, Confidence::High, &what, flushes))
}

/// Blocks of 64 KiB where the dialect has larger ones.
pub(super) fn large_mtu_off(subject: &Subject<'_>) -> Option<Finding> {
    const ID: &str = "large-mtu-off";
    let full = subject.facts.of(Fact::Transfer64K);
    if subject.facts.count(Fact::LargeTransfer) > 0 || (full.count as f64) < subject.threshold(ID, "transfers") {
        return None;
    }
    let what = format!(
        "moved file data in {} of 64 KiB and none larger, although its dialect allows up to 8 MiB",
        counted(full.count, "block", "blocks"),
    );
    Some(subject.finding_on(ID, Confidence::Medium, &what, full))
}

/// Signed bulk data where somebody waits for it.
pub(super) fn signing_cost(subject: &Subject<'_>) -> Option<Finding> {
    const ID: &str = "signing-cost";
    let (signed, all) = (subject.facts.of(Fact::SignedTransfer), subject.facts.of(Fact::Transfer));
    let share = signed.bytes as f64 / all.bytes.max(1) as f64;
    let active = subject.split().active();
    let waited = signed.outstanding as f64 / active.0.max(1) as f64;
    if (signed.bytes as f64) < subject.threshold(ID, "bytes")
        || share <= subject.threshold(ID, "share")
        || waited < subject.threshold(ID, "waited")
    {
        return None;
    }
    let what =
        format!("moved {} of signed file data ({} of it)", unbroken(short_bytes(signed.bytes as f64)), percent(share),);
    let mut finding = subject.finding(ID, Confidence::Low, &what, Some(Nanos(signed.outstanding)));
    // Signing is a part of that wait; how much cannot be seen from outside.
    finding.lost_ns = None;
    finding.evidence.extend(signed.first.as_ref().map(|(stamp, _)| crate::subject::evidence(*stamp)));
    Some(finding)
}

/// Writes that begin fast and go on slowly.
pub(super) fn fast_then_slow(subject: &Subject<'_>) -> Option<Finding> {
    const ID: &str = "fast-then-slow";
    let found = subject.facts.slowdown.as_ref()?;
    let (fast, slow) = (&found.fast, &found.slow);
    if ((fast.bytes + slow.bytes) as f64) < subject.threshold(ID, "bytes")
        || slow.elapsed < subject.time(ID, "time")
        // Storage is slower than that; faster writes become slow with the processor.
        || slow.write_time < subject.time(ID, "slow_write")
        || found.throughput_ratio() < subject.threshold(ID, "throughput")
        || found.time_ratio() < subject.threshold(ID, "write_time")
    {
        return None;
    }
    let what = format!(
        "wrote {} at {}/s and {} for a write, then {} at {}/s and {} for a write",
        unbroken(short_bytes(fast.bytes as f64)),
        unbroken(short_bytes(fast.rate())),
        unbroken(fast.write_time),
        unbroken(short_bytes(slow.bytes as f64)),
        unbroken(short_bytes(slow.rate())),
        unbroken(slow.write_time),
    );
    let mut finding = subject.finding(ID, Confidence::Medium, &what, Some(found.lost()));
    finding.evidence.push(crate::subject::evidence(found.first));
    (finding.whose.share, finding.whose.path) = (found.share.clone(), found.path.clone());
    finding.wireshark += " && smb2.cmd == 9";
    Some(finding)
}
