//! An open that waited until the server gave up on the holder of an oplock or lease.

use super::{Detect, Detector, Finding};
use crate::answer::{Confidence, Culprit, LostTime};
use crate::facts::{DiagnosisFacts, Pair, Wait, file_name};
use smbscope_model::groups::opens;
use smbscope_model::prose::{span, unbroken};
use smbscope_model::{Nanos, Timestamp};

pub(super) const BREAK_TIMEOUT: Detector = Detector {
    id: "break-timeout",
    culprit: Culprit::Client,
    title: "Open waited for another client's oplock or lease",
    condition: "An open took `wait` while another client was asked to give back an oplock or lease, or it took 29 to 37 s: then servers stop waiting.",
    advice: "The holder of the oplock or lease did not answer the server: it sleeps, hangs, or its network does. Wake or restart it, or close the file there (smbstatus -L, Get-SmbOpenFile). On a share for files that many clients use at once, switch oplocks off (Samba: oplocks = no).",
    source: "Microsoft KB888562: the server waits 35 s for an oplock break; MS-SMB2 3.3.4.6",
    thresholds: &[("wait", "1s")],
    covers: &["server-hang", "request-unanswered", "office-slow-open", "filter-delay", "slow-storage"],
    detect: Detect::Peer(detect),
};

/// A server that gives up waits this long (Windows 35 s, Samba 30 s).
const GIVES_UP: std::ops::Range<i64> = 29_000_000_000..37_000_000_000;

fn detect(facts: &DiagnosisFacts<'_>, pair: &Pair<'_>) -> Option<Finding> {
    let limit = pair.time("break-timeout", "wait");
    let length = |wait: &Wait| pair.length(wait);
    let opened = pair.facts.waits.iter().filter(|wait| opens(wait.command) && length(wait) >= limit);
    let waits = opened.filter_map(|wait| {
        let holder = holder(facts, pair, wait);
        let gave_up = wait.to.is_some() && GIVES_UP.contains(&length(wait).0);
        (holder.is_some() || gave_up).then_some((wait, holder))
    });
    let waits: Vec<(&Wait, Option<String>)> = waits.collect();
    let (longest, holder) = waits.iter().max_by_key(|(wait, _)| length(wait))?;
    let sum = Nanos(waits.iter().map(|(wait, _)| length(wait).0).fold(0, i64::saturating_add));
    let by = match holder {
        Some(holder) => format!("{holder} held an oplock or lease on it and did not give it back in time"),
        None => "the server waited that long for the holder of an oplock or lease".to_owned(),
    };
    let path = file_name(&longest.path);
    let still = if longest.to.is_none() { " and still did at the end" } else { "" };
    let what = format!("{} waited {} to open {path}{still}: {by}", pair.client, unbroken(span(length(longest))));
    let confidence = if holder.is_some() { Confidence::High } else { Confidence::Medium };
    Some(
        Finding::new(confidence, what)
            .lost(LostTime::exactly(pair.once(sum)))
            .longest(length(longest))
            .from(Some(longest.from))
            .on(&longest.share, &longest.path)
            .filter(" && (smb2.cmd == 5 || smb2.cmd == 18 || smb.cmd == 0xa2 || smb.cmd == 0x24)"),
    )
}

/// Another client that the server told to give an oplock back while the open waited.
fn holder(facts: &DiagnosisFacts<'_>, pair: &Pair<'_>, wait: &Wait) -> Option<String> {
    let to = wait.to.map_or(Timestamp(i64::MAX), |to| to.time);
    let others = facts.of_server(pair.server).filter(|other| other.client != pair.client);
    let asked = |other: &&Pair<'_>| {
        // The server asks as soon as the open arrives.
        let soon = Timestamp(wait.from.time.0.saturating_add(2_000_000_000)).min(to);
        other.facts.breaks.iter().any(|(time, _)| (wait.from.time..=soon).contains(time))
    };
    others.filter(asked).map(|other| other.client.to_string()).next()
}
