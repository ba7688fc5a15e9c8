//! Many channels of one session.

use super::{Detect, Detector, Finding};
use crate::answer::{Confidence, Culprit};
use crate::facts::Pair;

pub(super) const MANY_CHANNELS: Detector = Detector {
    id: "many-channels",
    culprit: Culprit::Client,
    title: "Many channels to one server",
    condition: "More than `connections` connections were bound to the same sessions. Always a note.",
    advice: "More connections than cores or network cards bring nothing. Limit multichannel (Set-SmbClientConfiguration -MaximumConnectionCountPerServer, Samba: server multi channel support), or let applications share a mount.",
    source: "MS-SMB2 3.2.1.7; Microsoft, \"Manage SMB Multichannel\"",
    thresholds: &[("connections", "4")],
    covers: &[],
    detect: Detect::Pair(detect),
};

fn detect(pair: &Pair<'_>) -> Option<Finding> {
    // A channel binds a session that another connection began.
    let bound = pair.connections.iter().filter(|connection| connection.binds_session).count() as u64;
    let channels = bound + u64::from(bound > 0);
    if (channels as f64) <= pair.threshold("many-channels", "connections") {
        return None;
    }
    let what = format!("{} had {channels} channels to {} in its sessions", pair.client, pair.server_name());
    Some(Finding::new(Confidence::Medium, what).filter(" && tcp.flags.syn == 1"))
}
