//! Logins that take long or fail.

use super::{Detect, Detector, Finding};
use crate::answer::{Confidence, Culprit, LostTime};
use crate::facts::{Fact, Pair};
use smbscope_model::Nanos;
use smbscope_model::prose::{counted, thousands, unbroken};

pub(super) const SLOW_LOGON: Detector = Detector {
    id: "slow-logon",
    culprit: Culprit::Server,
    title: "Slow or failed login",
    condition: "A SESSION_SETUP took `longest`, or `failures` logins failed.",
    advice: "A domain controller that is slow, far away or not found makes each login slow; a fallback from Kerberos to NTLM costs further round trips. Look at DNS, the SPN of the server's name and the clock of both sides. If logins fail: look for a stored password that is wrong or expired.",
    source: "MS-SMB2 3.3.5.5; MS-KILE",
    thresholds: &[("longest", "500ms"), ("failures", "5")],
    covers: &["server-hang", "negotiate-churn", "request-unanswered"],
    detect: Detect::Pair(detect),
};

fn detect(pair: &Pair<'_>) -> Option<Finding> {
    const ID: &str = "slow-logon";
    let (setups, failures) = (pair.facts.counted(Fact::SessionSetup), pair.facts.counted(Fact::LoginFailure));
    let slow = Nanos(setups.longest) >= pair.time(ID, "longest");
    if !slow && (failures.count as f64) < pair.threshold(ID, "failures") {
        return None;
    }
    let failed = match failures.count {
        0 => String::new(),
        n => format!("; {} failed", thousands(n)),
    };
    let what = format!(
        "{} took up to {} to log on at {} ({}{failed})",
        pair.client,
        unbroken(Nanos(setups.longest)),
        pair.server_name(),
        counted(setups.count, "SESSION_SETUP", "SESSION_SETUPs"),
    );
    Some(
        Finding::new(Confidence::High, what)
            .lost(LostTime::exactly(pair.once(Nanos(setups.outstanding))))
            .longest(Nanos(setups.longest))
            .first_of(setups)
            .filter(" && (smb2.cmd == 1 || smb.cmd == 0x73)"),
    )
}
