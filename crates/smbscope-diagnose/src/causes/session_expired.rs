//! Sessions that expire while they are in use.

use super::{Detect, Detector, Finding};
use crate::answer::{Confidence, Culprit, LostTime};
use crate::facts::{Fact, Pair, RefusalReason};
use smbscope_model::Nanos;
use smbscope_model::prose::counted;

pub(super) const SESSION_EXPIRED: Detector = Detector {
    id: "session-expired",
    culprit: Culprit::Server,
    title: "Sessions expire and log on again",
    condition: "`refusals` requests failed with STATUS_NETWORK_SESSION_EXPIRED or STATUS_USER_SESSION_DELETED.",
    advice: "Compare the lifetime of Kerberos tickets with how long sessions last, and the clocks of client, server and domain controller. Clients that can't log on again show an error.",
    source: "MS-SMB2 3.3.5.2.9: STATUS_NETWORK_SESSION_EXPIRED",
    thresholds: &[("refusals", "3")],
    covers: &["slow-logon", "negotiate-churn"],
    detect: Detect::Pair(detect),
};

fn detect(pair: &Pair<'_>) -> Option<Finding> {
    let refused = pair.facts.refused(RefusalReason::Session);
    let longest = refused.longest.as_ref()?;
    if (refused.count as f64) < pair.threshold("session-expired", "refusals") {
        return None;
    }
    let what = format!(
        "{} refused {} of {} because the session had expired",
        pair.server_name(),
        counted(refused.count, "request", "requests"),
        pair.client,
    );
    let lost = Nanos(refused.waited.0.max(pair.once(Nanos(pair.facts.counted(Fact::SessionSetup).outstanding)).0));
    Some(
        Finding::new(Confidence::High, what)
            .lost(LostTime::between(refused.waited, lost, lost))
            .from(Some(longest.first)),
    )
}
