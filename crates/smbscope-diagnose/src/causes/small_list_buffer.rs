//! A listing in many small responses.

use super::{Detect, Detector, Finding};
use crate::answer::{Confidence, Culprit, LostTime};
use crate::facts::{Pair, PathFacts, PathKey, bytes, named};
use smbscope_model::Nanos;

pub(super) const SMALL_LIST_BUFFER: Detector = Detector {
    id: "small-list-buffer",
    culprit: Culprit::Application,
    title: "Directory listed in many small responses",
    condition: "Listings took more than `continuations` commands each, none with a response above `buffer`.",
    advice: "The client asks for listings in small buffers, so a large directory takes a round trip for each. Update the client, or raise its buffer; clients of SMB 3 ask for up to 1 MiB. Divide very large directories.",
    source: "MS-SMB2 3.3.5.18",
    thresholds: &[("buffer", "66KiB"), ("continuations", "5")],
    covers: &["rtt-bound", "serial-client", "metadata-heavy"],
    detect: Detect::Path(detect),
};

fn detect(pair: &Pair<'_>, key: &PathKey, facts: &PathFacts) -> Option<Finding> {
    const ID: &str = "small-list-buffer";
    let each = facts.list_commands as f64 / facts.listings.max(1) as f64;
    let limit = pair.threshold(ID, "buffer");
    if facts.listings == 0 || each <= pair.threshold(ID, "continuations") || facts.list_bytes_max as f64 > limit {
        return None;
    }
    let what = format!(
        "{} listed {} with {each:.0} commands for each listing; the largest response was {}",
        pair.client,
        named(&key.path),
        bytes(facts.list_bytes_max),
    );
    // Two commands would have done; their data takes as long.
    let trips = facts.list_commands.saturating_sub(2 * facts.listings) as i64;
    let trip = pair.round_trip().unwrap_or_default();
    let lost = pair.once(Nanos(trips.saturating_mul(trip.0).min(facts.list_wait)));
    Some(Finding::new(Confidence::Medium, what).lost(LostTime::between(lost, lost, pair.once(Nanos(facts.list_wait)))))
}
