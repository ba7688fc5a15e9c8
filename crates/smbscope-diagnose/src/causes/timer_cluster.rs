//! Small segments that wait for a delayed acknowledgment (Nagle's algorithm).

use super::{Detect, Detector, Finding};
use crate::answer::{Confidence, Culprit, LostTime};
use crate::facts::{Fact, Pair};
use smbscope_model::Nanos;
use smbscope_model::prose::{thousands, unbroken};

pub(super) const TIMER_CLUSTER: Detector = Detector {
    id: "timer-cluster",
    culprit: Culprit::Client,
    title: "Small sends wait for delayed acknowledgments",
    condition: "`messages` messages whose second segment was held back until the receiver acknowledged the first, over a round trip of at most 30 ms. If the server held responses back, the culprit is the server.",
    advice: "Nagle's algorithm holds back a small segment until the one before is acknowledged, and the receiver delays that acknowledgment by 40 or 200 ms. Set TCP_NODELAY at the sender (Samba: socket options = TCP_NODELAY), or write header and message in one send.",
    source: "RFC 896; RFC 1122 4.2.3.2 and 4.2.3.4",
    thresholds: &[("messages", "10")],
    covers: &[
        "rtt-bound",
        "serial-client",
        "small-io",
        "window-limited",
        "bandwidth-limited",
        "small-file-copy",
        "metadata-heavy",
        "slow-storage",
    ],
    detect: Detect::Pair(detect),
};

fn detect(pair: &Pair<'_>) -> Option<Finding> {
    let (requests, responses) = (pair.facts.counted(Fact::HeldRequest), pair.facts.counted(Fact::HeldResponse));
    let is_client = requests.response_time >= responses.response_time;
    let held = if is_client { requests } else { responses };
    let trip = pair.round_trip().unwrap_or_default();
    // A round trip as long as the timer looks the same.
    if (held.count as f64) < pair.threshold("timer-cluster", "messages") || trip.0 > 30_000_000 {
        return None;
    }
    let (sender, messages, receiver) = match is_client {
        true => (pair.client.to_string(), "requests", pair.server_name()),
        false => (pair.server_name(), "responses", pair.client.to_string()),
    };
    let what = format!(
        "{sender} held back the second part of {} {messages} for {} each, until {receiver} acknowledged the first part \
         (Nagle and delayed acknowledgment)",
        thousands(held.count),
        unbroken(held.mean()),
    );
    let lost = pair.once(Nanos(held.response_time));
    Some(
        Finding::new(Confidence::High, what)
            .lost(LostTime::between(Nanos(lost.0 * 9 / 10), lost, lost))
            .first_of(held)
            .culprit(if is_client { Culprit::Client } else { Culprit::Server })
            .filter(" && tcp.len > 0 && tcp.len < 200"),
    )
}
