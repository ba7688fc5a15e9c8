//! Connections that are not answered or refused.

use super::{Detect, Detector, Finding, Sufferers};
use crate::answer::{Confidence, Culprit, LostTime};
use crate::facts::{DiagnosisFacts, server_name};
use smbscope_model::ConnectAttempt;
use smbscope_model::prose::{counted, span, unbroken};

pub(super) const SERVER_UNREACHABLE: Detector = Detector {
    id: "server-unreachable",
    culprit: Culprit::Server,
    title: "The server can't be reached",
    condition: "Connection attempts were refused, unanswered or closed without data for `wait`, and no other connection of the client to this server worked meanwhile. If nothing answered, the culprit is the network.",
    advice: "Refused: the host is up but nothing listens on the port, or a firewall rejects it; start the service. No answer: the host is down, a firewall drops the packets, or the route is wrong.",
    source: "RFC 9293 3.5 (SYN without answer, RST)",
    thresholds: &[("wait", "1s")],
    covers: &["network-outage", "network-loss"],
    detect: Detect::All(detect),
};

fn detect(facts: &DiagnosisFacts<'_>) -> Vec<Finding> {
    let attempts = facts.context.attempts.listed.iter();
    attempts
        .filter(|attempt| attempt.refused + attempt.unanswered + attempt.closed_without_data > 0)
        .filter_map(|attempt| of_client(facts, attempt))
        .collect()
}

fn of_client(facts: &DiagnosisFacts<'_>, attempt: &ConnectAttempt) -> Option<Finding> {
    let pair = facts.pair(attempt.client, attempt.server);
    let connections = pair.map(|pair| pair.connections.as_slice()).unwrap_or_default();
    let after = connections.iter().map(|connection| connection.first).filter(|first| *first > attempt.first.time).min();
    // Attempts beside connections that work are those of a scanner, or of a client that looks for a better path.
    let beside =
        connections.iter().any(|connection| connection.first < attempt.first.time && connection.last > attempt.last);
    let until = after.unwrap_or(attempt.last).max(attempt.first.time);
    let lost = until - attempt.first.time;
    if beside || lost < facts.context.catalogue.time("server-unreachable", "wait") {
        return None;
    }
    let server = server_name(attempt.server);
    let (how, culprit) = match () {
        () if attempt.refused > 0 => ("refused", Culprit::Server),
        () if attempt.unanswered > 0 => ("did not answer", Culprit::Network),
        () => ("closed", Culprit::Server),
    };
    let end = match after {
        Some(_) => "until one succeeded",
        None => "and none succeeded",
    };
    let what = format!(
        "{server} {how} {} of {} on port {} ({}) for {}, {end}",
        counted(attempt.attempts, "connection attempt", "connection attempts"),
        attempt.client,
        attempt.server.port(),
        counted(attempt.syns, "SYN", "SYNs"),
        unbroken(span(lost)),
    );
    Some(
        Finding::new(Confidence::High, what)
            .lost(LostTime::exactly(lost))
            .longest(lost)
            .culprit(culprit)
            .from(Some(attempt.first))
            .outside()
            .filter(" && tcp.flags.syn == 1")
            .about(Sufferers::one(attempt.client, attempt.server)),
    )
}
