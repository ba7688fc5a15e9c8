//! Asynchronous commands near the limit of a server.

use super::{Detect, Detector, Finding};
use crate::answer::{Confidence, Culprit};
use crate::facts::Pair;
use smbscope_model::prose::thousands;

pub(super) const ASYNC_LIMIT: Detector = Detector {
    id: "async-limit",
    culprit: Culprit::Application,
    title: "Pending commands near the server's limit",
    condition: "`commands` commands were pending (STATUS_PENDING) at once on a connection; servers allow 512 by default. Always a note.",
    advice: "A server refuses further asynchronous commands beyond its limit, and the application fails. Find what is pending: change notifications of many directories (an indexer, a web server with its content on the share), blocking locks, reads from pipes. Watch fewer directories, or raise AsynchronousCredits on a Windows server.",
    source: "Microsoft, \"Performance tuning for SMB file servers\": AsynchronousCredits (512)",
    thresholds: &[("commands", "460")],
    covers: &[],
    detect: Detect::Pair(detect),
};

fn detect(pair: &Pair<'_>) -> Option<Finding> {
    let most = pair.connections.iter().map(|connection| connection.max_asynchronous).max()?;
    if f64::from(most) < pair.threshold("async-limit", "commands") {
        return None;
    }
    let what = format!(
        "{} had {} commands pending at once on a connection; servers allow 512 by default",
        pair.client,
        thousands(u64::from(most))
    );
    Some(Finding::new(Confidence::High, what).filter(" && smb2.nt_status == 0x00000103"))
}
