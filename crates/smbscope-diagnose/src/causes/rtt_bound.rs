//! Round trips that take longer than anything else.

use super::{Detect, Detector, Finding};
use crate::answer::{Confidence, Culprit, LostTime};
use crate::facts::{Fact, Pair};
use smbscope_model::Nanos;
use smbscope_model::prose::{thousands, unbroken};
use smbscope_stats::TimePart;

pub(super) const RTT_BOUND: Detector = Detector {
    id: "rtt-bound",
    culprit: Culprit::Network,
    title: "Bound by round trips",
    condition: "Round trips of `trip` or longer took `share` of the waits.",
    advice: "The distance is what takes the time: use fewer and larger commands, several outstanding, caching (leases, BranchCache, a local copy), or a server nearer to the users.",
    source: "Swartz (1997): response time is what the network and the server make a client wait",
    thresholds: &[("share", "45%"), ("trip", "1ms")],
    covers: &["serial-client", "metadata-heavy"],
    detect: Detect::Pair(detect),
};

/// A round trip within a building.
const NEAR: Nanos = Nanos(200_000);

fn detect(pair: &Pair<'_>) -> Option<Finding> {
    const ID: &str = "rtt-bound";
    let network = Nanos((pair.part(TimePart::Network).0 - pair.once(pair.resend_delay()).0).max(0));
    let share = network.0 as f64 / pair.whole.waited.0.max(1) as f64;
    let trip = pair.round_trip()?;
    if share < pair.threshold(ID, "share") || trip < pair.time(ID, "trip") {
        return None;
    }
    let commands = pair.facts.count(Fact::Command) + pair.facts.count(Fact::Encrypted);
    let depth = pair.depth();
    let how =
        if depth <= 1.2 { ", one command after the other".to_owned() } else { format!(", {depth:.1} outstanding") };
    let what = format!(
        "{} waited for {} round trips of {} to {}{how}",
        pair.client,
        thousands(commands),
        unbroken(trip),
        pair.server_name(),
    );
    let lost = Nanos((network.0 as f64 * (1.0 - NEAR.0 as f64 / trip.0.max(1) as f64).max(0.0)) as i64);
    let transfers = pair.transfers().0;
    Some(
        Finding::new(Confidence::High, what)
            // Slow start takes round trips within transfers.
            .lost(LostTime::between(
                lost,
                Nanos(lost.0.saturating_add(transfers / 2)),
                Nanos(lost.0.saturating_add(transfers)),
            ))
            .first_of(pair.facts.counted(Fact::Command)),
    )
}
