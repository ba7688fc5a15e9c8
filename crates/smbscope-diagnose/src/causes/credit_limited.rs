//! A client that waits for credits before it can send the next request.

use super::{Detect, Detector, Finding};
use crate::answer::{Confidence, Culprit, LostTime};
use crate::facts::Pair;
use smbscope_model::Nanos;
use smbscope_model::prose::counted;

pub(super) const CREDIT_LIMITED: Detector = Detector {
    id: "credit-limited",
    culprit: Culprit::Server,
    title: "The server grants too few credits",
    condition: "The client waited for credits for `share` of its active time: each next request followed at once the grant that it needed.",
    advice: "The client could send more, but the server's credits don't allow it. Raise the limit (Windows: Smb2CreditsMin and Smb2CreditsMax; Samba: smb2 max credits), and see whether the server is short of memory. Large reads and writes cost a credit for each 64 KiB.",
    source: "MS-SMB2 3.2.4.1.2, 3.3.1.2; Microsoft, \"Performance tuning for SMB file servers\": Smb2CreditsMin, Smb2CreditsMax",
    thresholds: &[("share", "10%")],
    covers: &["rtt-bound", "serial-client", "window-limited", "bandwidth-limited", "large-mtu-off", "slow-client-link"],
    detect: Detect::Pair(detect),
};

fn detect(pair: &Pair<'_>) -> Option<Finding> {
    let waits = pair.connections.iter().map(|connection| connection.credit_wait.0);
    let waited = pair.once(Nanos(waits.fold(0, i64::saturating_add)));
    if waited.0 == 0 || (waited.0 as f64) < pair.whole.active.0 as f64 * pair.threshold("credit-limited", "share") {
        return None;
    }
    let most = pair.connections.iter().max_by_key(|connection| connection.credit_wait)?.max_outstanding;
    let what = format!(
        "{} had no credits left for its next request; {} allowed it {} outstanding",
        pair.client,
        pair.server_name(),
        counted(u64::from(most), "request", "requests"),
    );
    Some(Finding::new(Confidence::High, what).lost(LostTime::exactly(waited)).filter(" && smb2.credits.granted"))
}
