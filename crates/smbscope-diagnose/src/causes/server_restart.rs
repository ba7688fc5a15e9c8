//! A server that goes away with all its connections and comes back.

use super::{Detect, Detector, Finding, Sufferers};
use crate::answer::{Confidence, Culprit, LostTime};
use crate::facts::{DiagnosisFacts, server_name};
use smbscope_model::prose::{counted, span, unbroken};
use smbscope_model::{ConnectAttempt, Nanos, Stamp, Timestamp};
use std::collections::BTreeSet;
use std::net::{IpAddr, SocketAddr};

pub(super) const SERVER_RESTART: Detector = Detector {
    id: "server-restart",
    culprit: Culprit::Server,
    title: "The server went away and came back",
    condition: "Clients lost their connections, failed to connect, and had a new connection no sooner than `away` later.",
    advice: "Look at the server's log at that time: a crash, an update, a failover of a cluster, a restart of the service. Continuous availability (SMB 3 persistent handles, a cluster) hides it from clients.",
    source: "RFC 9293 3.5.2 (reset generation); MS-SMB2 3.2.4.4 (re-establishing a durable open)",
    thresholds: &[("away", "1s")],
    covers: &[
        "server-unreachable",
        "request-unanswered",
        "server-hang",
        "network-loss",
        "network-outage",
        "client-bound",
        "slow-logon",
        "throttled",
        "slow-storage",
        "office-slow-open",
    ],
    detect: Detect::Server(detect),
};

/// A client that lost its connection and got another one later.
struct Away {
    client: IpAddr,
    from: Timestamp,
    to: Timestamp,
    attempts: u64,
    refused: u64,
    first: Stamp,
}

fn detect(facts: &DiagnosisFacts<'_>, server: SocketAddr) -> Option<Finding> {
    let least = facts.context.catalogue.time("server-restart", "away");
    let attempts = facts.context.attempts.listed.iter().filter(|attempt| attempt.server == server);
    let away: Vec<Away> =
        attempts.filter_map(|attempt| away(facts, attempt)).filter(|away| away.to - away.from >= least).collect();
    let worst = away.iter().max_by_key(|away| away.to - away.from)?;
    let clients: BTreeSet<IpAddr> = away.iter().map(|away| away.client).collect();
    let lost = Nanos(away.iter().map(|away| (away.to - away.from).0).fold(0, i64::saturating_add));
    let how = match worst.refused {
        0 => "did not answer",
        _ => "refused",
    };
    let what = format!(
        "{} ended its connections and {how} new ones for {}: {} needed {} to get back",
        server_name(server),
        unbroken(span(worst.to - worst.from)),
        counted(clients.len() as u64, "client", "clients"),
        counted(away.iter().map(|away| away.attempts).sum::<u64>() + 1, "attempt", "attempts"),
    );
    Some(
        Finding::new(Confidence::High, what)
            .lost(LostTime::exactly(lost))
            .longest(worst.to - worst.from)
            .from(Some(worst.first))
            .outside()
            .filter(" && (tcp.flags.reset == 1 || tcp.flags.syn == 1)")
            .about(Sufferers::of_server(facts, server, &clients)),
    )
}

/// From the last packet of the connection before the failed attempts to the first of the one after.
fn away(facts: &DiagnosisFacts<'_>, attempt: &ConnectAttempt) -> Option<Away> {
    let pair = facts.pair(attempt.client, attempt.server)?;
    let first = attempt.first.time;
    // What is sent on a dead connection while others are tried does not count.
    let before = pair.connections.iter().filter(|connection| connection.first < first);
    let from = before.map(|connection| connection.last.min(first)).max()?;
    let after = pair.connections.iter().filter(|connection| connection.first > first);
    let to = after.map(|connection| connection.first).min()?;
    Some(Away {
        client: attempt.client,
        from,
        to,
        attempts: attempt.attempts,
        refused: attempt.refused,
        first: attempt.first,
    })
}
