//! A time in which nothing got through between client and server, in spite of retransmissions.

use super::{Detect, Detector, Finding, Sufferers};
use crate::answer::{Confidence, Culprit, LostTime};
use crate::facts::{DiagnosisFacts, server_name};
use smbscope_model::prose::{counted, span, unbroken};
use smbscope_model::{Nanos, Outage};
use smbscope_stats::Covered;
use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, SocketAddr};

pub(super) const NETWORK_OUTAGE: Detector = Detector {
    id: "network-outage",
    culprit: Culprit::Network,
    title: "The network was down",
    condition: "No acknowledgment passed in either direction for `outage` in spite of retransmissions, and then traffic went on.",
    advice: "Both TCP stacks sent again and again and heard nothing: a link, switch, access point or VPN was down, or a route changed. After it, TCP waits for its next retry, up to a minute. Look at the logs of the devices in between at that time.",
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
    detect: Detect::Server(detect),
};

fn detect(facts: &DiagnosisFacts<'_>, server: SocketAddr) -> Option<Finding> {
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
        // Connections of a client were down together.
        let of_client = outages.iter().filter(|(other, _)| other == client).map(|(_, outage)| *outage);
        lost.insert(*client, union(of_client.collect()));
    }
    let total = Nanos(lost.values().copied().fold(0, i64::saturating_add));
    let what = format!(
        "Nothing got through between {} and {} for {}, in spite of {}",
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

/// Time of all outages, overlaps counted once.
fn union(mut outages: Vec<Outage>) -> i64 {
    outages.sort_by_key(|outage| outage.from);
    let mut covered = Covered::default();
    outages.iter().map(|outage| covered.add(outage.from, outage.to).0).fold(0, i64::saturating_add)
}
