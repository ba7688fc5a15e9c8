//! Servers that are gone, unreachable or silent, and requests that are never answered.

use super::{Detect, Detector, Finding, Sufferers};
use crate::answer::{Confidence, Culprit, LostTime};
use crate::facts::{DiagnosisFacts, Pair, Wait, named, server_name};
use smbscope_model::connection::ConnectionEnd;
use smbscope_model::groups::opens;
use smbscope_model::prose::{counted, span, unbroken};
use smbscope_model::{Command, CommandGroup, ConnectAttempt, Nanos, Outage, Stamp, Timestamp};
use smbscope_stats::Covered;
use smbscope_wire::{smb1, smb2};
use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, SocketAddr};

pub(super) const DETECTORS: &[&Detector] =
    &[&SERVER_RESTART, &SERVER_UNREACHABLE, &NETWORK_OUTAGE, &SERVER_HANG, &REQUEST_UNANSWERED];

const SERVER_RESTART: Detector = Detector {
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
    detect: Detect::Server(server_restart),
};

struct Away {
    client: IpAddr,
    from: Timestamp,
    to: Timestamp,
    attempts: u64,
    refused: u64,
    first: Stamp,
}

fn server_restart(facts: &DiagnosisFacts<'_>, server: SocketAddr) -> Option<Finding> {
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
        "{} ended its connections and {how} new ones for {}: {} needed {} to reconnect",
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

/// Measures from the last packet of the connection before the failed attempts to the first packet of the next one.
fn away(facts: &DiagnosisFacts<'_>, attempt: &ConnectAttempt) -> Option<Away> {
    let pair = facts.pair(attempt.client, attempt.server)?;
    let first = attempt.first.time;
    // Packets sent on a dead connection during the attempts do not count.
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

const SERVER_UNREACHABLE: Detector = Detector {
    id: "server-unreachable",
    culprit: Culprit::Server,
    title: "The server can't be reached",
    condition: "Connection attempts were refused, unanswered or closed without data for `wait`, and no other connection of the client to this server worked during that time. If nothing answered, the culprit is the network.",
    advice: "Refused: the host is up but nothing listens on the port, or a firewall rejects it; start the service. No answer: the host is down, a firewall drops the packets, or the route is wrong.",
    source: "RFC 9293 3.5 (SYN without answer, RST)",
    thresholds: &[("wait", "1s")],
    covers: &["network-outage", "network-loss"],
    detect: Detect::All(server_unreachable),
};

fn server_unreachable(facts: &DiagnosisFacts<'_>) -> Vec<Finding> {
    let attempts = facts.context.attempts.listed.iter();
    attempts
        .filter(|attempt| attempt.refused + attempt.unanswered + attempt.closed_without_data > 0)
        .filter_map(|attempt| unreachable_for(facts, attempt))
        .collect()
}

fn unreachable_for(facts: &DiagnosisFacts<'_>, attempt: &ConnectAttempt) -> Option<Finding> {
    let pair = facts.pair(attempt.client, attempt.server);
    let connections = pair.map(|pair| pair.connections.as_slice()).unwrap_or_default();
    let after = connections.iter().map(|connection| connection.first).filter(|first| *first > attempt.first.time).min();
    // Attempts alongside a working connection come from a scanner, or from a client that probes for a better path.
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

const NETWORK_OUTAGE: Detector = Detector {
    id: "network-outage",
    culprit: Culprit::Network,
    title: "The network was down",
    condition: "No acknowledgment passed in either direction for `outage` despite retransmissions, and then traffic resumed.",
    advice: "Both TCP stacks kept retransmitting and received nothing: a link, switch, access point or VPN was down, or a route changed. Afterwards TCP waits for its next retry, up to a minute. Look at the logs of the devices in between at that time.",
    source: "RFC 6298 5.5 (exponential backoff)",
    thresholds: &[("outage", "1s")],
    covers: &[
        "network-loss",
        "rtt-bound",
        "server-hang",
        "request-unanswered",
        "office-slow-open",
        "slow-storage",
        "filter-delay",
        "throttled",
        "serial-client",
        "slow-client-link",
        "metadata-heavy",
        "break-timeout",
        "slow-logon",
        "small-file-copy",
        "bandwidth-limited",
    ],
    detect: Detect::Server(network_outage),
};

fn network_outage(facts: &DiagnosisFacts<'_>, server: SocketAddr) -> Option<Finding> {
    let least = facts.context.catalogue.time("network-outage", "outage");
    let connections =
        facts.of_server(server).flat_map(|pair| pair.connections.iter().map(|connection| (pair.client, *connection)));
    let outages: Vec<(IpAddr, Outage)> = connections
        .flat_map(|(client, connection)| connection.outages.iter().map(move |outage| (client, *outage)))
        .filter(|(_, outage)| outage.to - outage.from >= least && outage.recovered)
        .collect();
    let (_, worst) = outages.iter().max_by_key(|(_, outage)| outage.to - outage.from)?;
    let length = worst.to - worst.from;
    let clients: BTreeSet<IpAddr> = outages.iter().map(|(client, _)| *client).collect();
    let mut lost: BTreeMap<IpAddr, i64> = BTreeMap::new();
    for client in &clients {
        let of_client = outages.iter().filter(|(other, _)| other == client).map(|(_, outage)| *outage);
        lost.insert(*client, total_outage(of_client.collect()));
    }
    let total = Nanos(lost.values().copied().fold(0, i64::saturating_add));
    let what = format!(
        "Nothing got through between {} and {} for {}, despite {}",
        server_name(server),
        match clients.len() {
            1 => clients.iter().next().map(ToString::to_string).unwrap_or_default(),
            n => format!("{n} clients"),
        },
        unbroken(span(length)),
        counted(outages.iter().map(|(_, outage)| u64::from(outage.retries)).sum(), "retransmission", "retransmissions"),
    );
    Some(
        Finding::new(Confidence::High, what)
            .lost(LostTime::exactly(total))
            .longest(length)
            .filter(" && tcp.analysis.retransmission")
            .about(Sufferers::of_server(facts, server, &clients)),
    )
}

fn total_outage(mut outages: Vec<Outage>) -> i64 {
    outages.sort_by_key(|outage| outage.from);
    let mut covered = Covered::default();
    outages.iter().map(|outage| covered.add(outage.from, outage.to).0).fold(0, i64::saturating_add)
}

const SERVER_HANG: Detector = Detector {
    id: "server-hang",
    culprit: Culprit::Server,
    title: "The server answered nothing",
    condition: "The server sent no response on any connection for `silence`, although requests were outstanding and none of them was retransmitted: its TCP kept acknowledging.",
    advice: "Check the server at that time: its log, a hung disk or controller, a failover, memory pressure, a virtual machine that was moved or paused. Its TCP stack kept acknowledging, so the network was up.",
    source: "docs/causes.md: silence on all connections of a server",
    thresholds: &[("silence", "1s")],
    covers: &[
        "server-saturation",
        "slow-storage",
        "filter-delay",
        "request-unanswered",
        "throttled",
        "office-slow-open",
        "flush-heavy",
        "fast-then-slow",
    ],
    detect: Detect::Server(server_hang),
};

/// Upper limit for data of other requests that may be in transit during a silence.
const BYTES_MOST: u64 = 64 << 10;

/// Interval in which a server sent no response although requests were outstanding.
struct ServerSilence<'w> {
    from: Timestamp,
    to: Timestamp,
    waits: Vec<(IpAddr, &'w Wait)>,
}

fn server_hang(facts: &DiagnosisFacts<'_>, server: SocketAddr) -> Option<Finding> {
    let least = facts.context.catalogue.time("server-hang", "silence");
    let mut silences: Vec<ServerSilence<'_>> = Vec::new();
    let mut waits: Vec<(IpAddr, &Wait)> = facts
        .of_server(server)
        .flat_map(|pair| pair.facts.waits.iter().map(|wait| (pair.client, wait)))
        .filter(|(_, wait)| wait.group != CommandGroup::Waiting)
        .filter(|(_, wait)| wait.answered.is_some_and(|to| to - wait.sent >= least) && wait.retransmitted == 0)
        .collect();
    waits.sort_by_key(|(client, wait)| (wait.sent, wait.from.packet, *client));
    for (client, wait) in waits {
        let to = wait.answered?;
        match silences.last_mut() {
            Some(last) if wait.sent < last.to => {
                last.to = last.to.min(to);
                last.waits.push((client, wait));
            }
            _ => silences.push(ServerSilence { from: wait.sent, to, waits: vec![(client, wait)] }),
        }
    }
    silences.retain(|silence| {
        silence.to - silence.from >= least
            && facts.responses_between(server, silence.from, silence.to) == 0
            // A saturated link carries data all the time.
            && facts.bytes_between(server, silence.from, silence.to) < BYTES_MOST
            && is_hang(&silence.waits)
    });
    let worst = silences.iter().max_by_key(|silence| silence.to - silence.from)?;
    let clients: BTreeSet<IpAddr> =
        silences.iter().flat_map(|silence| silence.waits.iter().map(|(client, _)| *client)).collect();
    let lost = silences.iter().map(|silence| {
        let suffering: BTreeSet<IpAddr> = silence.waits.iter().map(|(client, _)| *client).collect();
        (silence.to - silence.from).0.saturating_mul(suffering.len() as i64)
    });
    let lost = Nanos(lost.fold(0, i64::saturating_add));
    let length = worst.to - worst.from;
    let more = match silences.len() as u64 - 1 {
        0 => String::new(),
        n => format!(", and {} more", counted(n, "time", "times")),
    };
    let (_, first) = worst.waits.first()?;
    let what = format!(
        "{} answered nothing for {}{more}; {} outstanding from {}, the first {}",
        server_name(server),
        unbroken(span(length)),
        counted(worst.waits.len() as u64, "request was", "requests were"),
        counted(clients.len() as u64, "client", "clients"),
        request(first),
    );
    let is_sure = worst.waits.len() > 1;
    Some(
        Finding::new(if is_sure { Confidence::High } else { Confidence::Medium }, what)
            .lost(LostTime::exactly(lost))
            .longest(length)
            .from(Some(first.from))
            .on(&first.share, &first.path)
            .about(Sufferers::of_server(facts, server, &clients)),
    )
}

/// Returns false for a single command that may take long on a healthy server.
fn is_hang(waits: &[(IpAddr, &Wait)]) -> bool {
    let takes_time = |wait: &Wait| {
        opens(wait.command)
            || matches!(wait.group, CommandGroup::Control | CommandGroup::Directory)
            || matches!(
                wait.command,
                Command::Smb2(smb2::Smb2Command::TREE_CONNECT | smb2::Smb2Command::SESSION_SETUP)
                    | Command::Smb1(smb1::Smb1Command::TREE_CONNECT_ANDX | smb1::Smb1Command::SESSION_SETUP_ANDX)
            )
    };
    let flows: BTreeSet<_> = waits.iter().map(|(_, wait)| wait.flow).collect();
    flows.len() > 1 || waits.len() > 1 || waits.iter().all(|(_, wait)| !takes_time(wait))
}

const REQUEST_UNANSWERED: Detector = Detector {
    id: "request-unanswered",
    culprit: Culprit::Server,
    title: "A request was never answered",
    condition: "A request had no response for `wait`, until its connection or the capture ended. If the server's TCP did not acknowledge the request, the culprit is the network.",
    advice: "Check the server's log and the file or service that the request uses: the server received the request but did not answer it. If its TCP never acknowledged the request, look at firewalls, WAN accelerators and the path instead. The packet number locates the request in Wireshark.",
    source: "RFC 9293 3.8.1; MS-SMB2 3.2.6.1 (request expiration)",
    thresholds: &[("wait", "10s")],
    covers: &["server-saturation", "slow-logon"],
    detect: Detect::Pair(request_unanswered),
};

fn request_unanswered(pair: &Pair<'_>) -> Option<Finding> {
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

pub(crate) fn request(wait: &Wait) -> String {
    let name = match wait.command {
        Command::EncryptedFrame => "encrypted request".to_owned(),
        command => command.to_string(),
    };
    let article = if name.starts_with(['A', 'E', 'I', 'O', 'U', 'e']) { "an" } else { "a" };
    let of = wait.path.as_deref().map_or_else(String::new, |path| format!(" of {}", named(path)));
    format!("{article} {name}{of} (packet {})", wait.from.packet.number())
}
