//! A server that answers nobody for a while although requests are outstanding.

use super::request_unanswered::request;
use super::{Detect, Detector, Finding, Sufferers};
use crate::answer::{Confidence, Culprit, LostTime};
use crate::facts::{DiagnosisFacts, Wait, server_name};
use smbscope_model::groups::opens;
use smbscope_model::prose::{counted, span, unbroken};
use smbscope_model::{Command, CommandGroup, Nanos, Timestamp};
use smbscope_wire::{smb1, smb2};
use std::collections::BTreeSet;
use std::net::{IpAddr, SocketAddr};

pub(super) const SERVER_HANG: Detector = Detector {
    id: "server-hang",
    culprit: Culprit::Server,
    title: "The server answered nothing",
    condition: "The server sent no response on any connection for `silence`, although requests were outstanding and none of them was retransmitted: its TCP went on acknowledging.",
    advice: "Look at what the server did at that time: its log, a hung disk or controller, a failover, memory pressure, a virtual machine that was moved or paused. Its TCP stack went on acknowledging, so the network was there.",
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
    detect: Detect::Server(detect),
};

/// Data of other requests that may be on its way in a silence.
const BYTES_MOST: u64 = 64 << 10;

/// A time in which a server sent no response and somebody waited for one.
struct ServerSilence<'w> {
    from: Timestamp,
    to: Timestamp,
    waits: Vec<(IpAddr, &'w Wait)>,
}

fn detect(facts: &DiagnosisFacts<'_>, server: SocketAddr) -> Option<Finding> {
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
                // The silence ends with the first answer.
                last.to = last.to.min(to);
                last.waits.push((client, wait));
            }
            _ => silences.push(ServerSilence { from: wait.sent, to, waits: vec![(client, wait)] }),
        }
    }
    silences.retain(|silence| {
        silence.to - silence.from >= least
            && facts.responses_between(server, silence.from, silence.to) == 0
            // A line that is full carries data all the time.
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

/// Returns false for a single command that may take long while the rest of the server is well.
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
