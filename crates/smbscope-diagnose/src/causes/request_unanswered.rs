//! A request that is never answered.

use super::{Detect, Detector, Finding};
use crate::answer::{Confidence, Culprit, LostTime};
use crate::facts::{Pair, Wait, named};
use smbscope_model::connection::ConnectionEnd;
use smbscope_model::prose::{counted, span, unbroken};
use smbscope_model::{Command, CommandGroup, Nanos};

pub(super) const REQUEST_UNANSWERED: Detector = Detector {
    id: "request-unanswered",
    culprit: Culprit::Server,
    title: "A request was never answered",
    condition: "A request had no response for `wait`, until its connection or the capture ended. If the server's TCP did not acknowledge the request, the culprit is the network.",
    advice: "Look at the server's log and at what the request works on: the server has the request and does not answer it. If its TCP never acknowledged the request, look at firewalls, WAN accelerators and the path instead. The packet's number is the place to look in Wireshark.",
    source: "RFC 9293 3.8.1; MS-SMB2 3.2.6.1 (request expiration)",
    thresholds: &[("wait", "10s")],
    covers: &["server-saturation", "slow-logon"],
    detect: Detect::Pair(detect),
};

fn detect(pair: &Pair<'_>) -> Option<Finding> {
    let least = pair.time("request-unanswered", "wait");
    let unanswered: Vec<(&Wait, Nanos)> = pair
        .facts
        .waits
        .iter()
        .filter(|wait| wait.to.is_none() && wait.group != CommandGroup::Waiting)
        .map(|wait| (wait, pair.length(wait)))
        .filter(|(_, age)| *age >= least)
        .collect();
    let (longest, age) = unanswered.iter().copied().max_by_key(|(_, age)| *age)?;
    let connection = pair.connections.iter().find(|connection| connection.flow == longest.flow);
    let until = match connection.map(|connection| connection.end) {
        Some(ConnectionEnd::Reset) => "until the connection was reset",
        Some(ConnectionEnd::Closed) => "until the connection was closed",
        _ => "until the capture ended",
    };
    const LOST: &str = "Look at firewalls, WAN accelerators and the path: the request, or every acknowledgment of it, was lost. A capture at the server would show which.";
    let (fate, culprit, confidence) = match longest.acknowledged {
        Some(true) => ("; its TCP had acknowledged the request", Culprit::Server, Confidence::High),
        Some(false) => (
            "; the request was not acknowledged either: it or its acknowledgments were lost",
            Culprit::Network,
            Confidence::High,
        ),
        None => ("", Culprit::Server, Confidence::Medium),
    };
    let others = match unanswered.len() as u64 - 1 {
        0 => String::new(),
        n => format!(", and {} more", counted(n, "request", "requests")),
    };
    let what = format!(
        "{} never answered {} of {} ({} {until}){others}{fate}",
        pair.server_name(),
        request(longest),
        pair.client,
        unbroken(span(age)),
    );
    let found = Finding::new(confidence, what);
    let found = if culprit == Culprit::Network { found.advice(LOST) } else { found };
    Some(
        found
            .lost(LostTime::exactly(age))
            .longest(age)
            .culprit(culprit)
            .from(Some(longest.from))
            .on(&longest.share, &longest.path),
    )
}

/// `a READ of \\docs\\report.docx (packet 17)`
pub(crate) fn request(wait: &Wait) -> String {
    let name = match wait.command {
        Command::EncryptedFrame => "encrypted request".to_owned(),
        command => command.to_string(),
    };
    let article = if name.starts_with(['A', 'E', 'I', 'O', 'U', 'e']) { "an" } else { "a" };
    let of = wait.path.as_deref().map_or_else(String::new, |path| format!(" of {}", named(path)));
    format!("{article} {name}{of} (packet {})", wait.from.packet.number())
}
