//! Data in small blocks.

use super::{Detect, Detector, Finding};
use crate::answer::{Confidence, Culprit, LostTime};
use crate::facts::{Fact, Pair, bytes, percent};
use smbscope_model::Nanos;
use smbscope_model::prose::thousands;

pub(super) const SMALL_IO: Detector = Detector {
    id: "small-io",
    culprit: Culprit::Application,
    title: "Data in small blocks",
    condition: "Of at least `transfers` reads and writes, `share` carried 8 KiB or less. Files of 8 KiB or less do not count.",
    advice: "Have the application or copy tool use larger blocks (64 KiB to 1 MiB): each block costs a round trip. Buffered I/O of the client does it where leases allow it.",
    source: "docs/studies.md: DiskSpd from 4 KiB to 8 MiB",
    thresholds: &[("transfers", "200"), ("share", "80%")],
    covers: &["rtt-bound", "serial-client", "slow-client-link", "metadata-heavy"],
    detect: Detect::Pair(detect),
};

fn detect(pair: &Pair<'_>) -> Option<Finding> {
    const ID: &str = "small-io";
    let small = pair.facts.counted(Fact::SmallTransfer);
    let share = pair.facts.share(Fact::SmallTransfer, Fact::Transfer);
    let in_small_files = pair.facts.count(Fact::SmallFile) + pair.facts.count(Fact::SmallFileAgain);
    // A small file has no larger block.
    let counted_ones = small.count.saturating_sub(2 * in_small_files);
    if (counted_ones as f64) < pair.threshold(ID, "transfers") || share < pair.threshold(ID, "share") {
        return None;
    }
    let each = small.bytes as f64 / small.count.max(1) as f64;
    let what = format!(
        "{} moved file data in blocks of at most 8 KiB: {} of {} reads and writes ({}), {} each",
        pair.client,
        thousands(small.count),
        thousands(pair.facts.count(Fact::Transfer)),
        percent(share),
        bytes(each as u64),
    );
    // With blocks of 64 KiB there would be fewer commands; their round trips would go away, and some server time.
    let fewer = (1.0 - each / 65_536.0).max(0.0);
    let trip = pair.round_trip().unwrap_or_default();
    let trips = pair.once(Nanos((trip.0 as f64 * small.count as f64 * fewer) as i64));
    let all = pair.once(Nanos((small.outstanding as f64 * fewer) as i64));
    let best = Nanos((trips.0 + all.0) / 2);
    Some(Finding::new(Confidence::Medium, what).lost(LostTime::between(trips, best, all)).first_of(small))
}
