//! Segments that were lost and sent again.

use super::{Detect, Detector, Finding};
use crate::answer::{Confidence, Culprit, LostTime};
use crate::facts::{Fact, Pair, percent};
use smbscope_model::Nanos;
use smbscope_model::prose::thousands;

pub(super) const NETWORK_LOSS: Detector = Detector {
    id: "network-loss",
    culprit: Culprit::Network,
    title: "Packets lost on the network",
    condition: "`segments` segments, and more than `share` of all, were lost and sent again, whether the capture has both copies or only the second. Copies that D-SACK reports as needless do not count.",
    advice: "Look for errors and drops on switch ports, network cards and Wi-Fi, for a duplex mismatch, and for buffers that are too small where links of different speed meet. Each loss costs a command at least a round trip, often a time-out of 200 ms and more.",
    source: "RFC 6298 (time-outs of TCP); RFC 2883 (duplicates that were not necessary)",
    thresholds: &[("segments", "5"), ("share", "0.1%")],
    covers: &[
        "rtt-bound",
        "serial-client",
        "slow-storage",
        "filter-delay",
        "large-mtu-off",
        "small-file-copy",
        "metadata-heavy",
        "slow-client-link",
        "window-limited",
        "server-hang",
    ],
    detect: Detect::Pair(detect),
};

fn detect(pair: &Pair<'_>) -> Option<Finding> {
    const ID: &str = "network-loss";
    let (segments, lost) = pair.segments();
    let share = lost as f64 / segments.max(1) as f64;
    if (lost as f64) < pair.threshold(ID, "segments") || share <= pair.threshold(ID, "share") {
        return None;
    }
    let resent = pair.facts.counted(Fact::Resent);
    let delay = pair.once(pair.resend_delay());
    let held = pair.once(Nanos(resent.outstanding)).max(delay);
    // Where losses set the rate, they cost most of the transfer, too.
    let transfers = pair.transfers();
    let slowed = if pair.is_loss_limited(pair.transfer_rate()) { Nanos(transfers.0 / 10 * 8) } else { Nanos(0) };
    let best = Nanos((delay.0 + held.0) / 2).max(slowed);
    let what = format!(
        "{} of {} segments between {} and {} were lost and sent again ({})",
        thousands(lost),
        thousands(segments),
        pair.client,
        pair.server_name(),
        percent(share),
    );
    Some(
        Finding::new(Confidence::High, what)
            .lost(LostTime::between(delay, best, held.max(transfers)))
            .first_of(resent)
            .filter(" && tcp.analysis.retransmission"),
    )
}
