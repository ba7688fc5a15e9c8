//! A server that can be reached by several interfaces, and a client that moves much data over one connection.

use super::{Detect, Detector, Finding};
use crate::answer::{Confidence, Culprit};
use crate::facts::{Fact, Pair};
use smbscope_model::ConnectionSummary;
use smbscope_model::offers::capabilities;
use smbscope_model::prose::{thousands, unbroken};
use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

pub(super) const MULTICHANNEL_UNUSED: Detector = Detector {
    id: "multichannel-unused",
    culprit: Culprit::Client,
    title: "Several interfaces offered, one connection used",
    condition: "Client and server support multichannel, the server listed at least `interfaces` interfaces that a client may reach, and the client moved `bytes` over one connection. Always a note.",
    advice: "See why the client makes no further channels: multichannel switched off (Get-SmbClientConfiguration EnableMultiChannel), interfaces that it cannot reach, cards without RSS, or a client that has none. Samba: server multi channel support.",
    source: "MS-SMB2 3.2.4.20.10, 2.2.32.5; Microsoft, \"Manage SMB Multichannel\"",
    thresholds: &[("interfaces", "2"), ("bytes", "10MB")],
    covers: &[],
    detect: Detect::Pair(detect),
};

fn detect(pair: &Pair<'_>) -> Option<Finding> {
    const ID: &str = "multichannel-unused";
    let transfers = pair.facts.counted(Fact::Transfer);
    if (transfers.bytes as f64) < pair.threshold(ID, "bytes") {
        return None;
    }
    let told = pair.connections.iter().find_map(|connection| {
        let interfaces = reachable(connection);
        let both_can = connection.offers.have(capabilities::MULTI_CHANNEL) != Some(false);
        (both_can && interfaces.len() as f64 >= pair.threshold(ID, "interfaces")).then_some((connection, interfaces))
    })?;
    let (connection, interfaces) = told;
    if pair.context.connections.iter().any(|other| is_channel_beside(other, connection, &interfaces)) {
        return None;
    }
    let listed = interfaces.values().map(|(address, speed)| format!("{address} with {}", unbroken(link_speed(*speed))));
    let what = format!(
        "{} moved its data over one connection, although the server offered {} interfaces: {}",
        pair.client,
        thousands(interfaces.len() as u64),
        listed.collect::<Vec<String>>().join(", "),
    );
    Some(Finding::new(Confidence::Medium, what).filter(" && smb2.ioctl.function == 0x001401fc"))
}

fn link_speed(bits: u64) -> String {
    match bits {
        1_000_000_000.. => format!("{} Gbit/s", bits / 1_000_000_000),
        _ => format!("{} Mbit/s", bits / 1_000_000),
    }
}

/// The interfaces that the server listed, each with its fastest address that a client may be able to reach.
fn reachable(connection: &ConnectionSummary) -> BTreeMap<u32, (IpAddr, u64)> {
    let is_local = |address: IpAddr| match address {
        IpAddr::V4(address) => address.is_loopback() || address.is_link_local(),
        IpAddr::V6(address) => address.is_loopback() || address.is_unicast_link_local(),
    };
    let mut known = BTreeMap::new();
    for interface in connection.server_interfaces.iter().filter(|interface| !is_local(interface.address)) {
        known.entry(interface.index).or_insert((interface.address, interface.link_speed));
    }
    known
}

/// Whether a connection is, or may be, a further channel of a session: to the same server at the same time, of the same
/// client, or joined to a session that another connection began.
fn is_channel_beside(
    other: &ConnectionSummary,
    connection: &ConnectionSummary,
    interfaces: &BTreeMap<u32, (IpAddr, u64)>,
) -> bool {
    let servers: BTreeSet<IpAddr> = interfaces.values().map(|(address, _)| *address).collect();
    let server = other.endpoints.server.ip();
    let same_server = server == connection.endpoints.server.ip() || servers.contains(&server);
    let same_client = other.endpoints.client.ip() == connection.endpoints.client.ip();
    let same_time = other.first <= connection.last && connection.first <= other.last;
    other.flow != connection.flow && same_server && same_time && (same_client || other.binds_session)
}
