//! What both sides could use together, and do not.

use crate::facts::Fact;
use crate::finding::{Confidence, Finding};
use crate::subject::Subject;
use smbscope_model::offers::capabilities;
use smbscope_model::prose::{counted, thousands, unbroken};
use smbscope_model::{Connection, Dialect, Protocol};
use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

/// A dialect below the best one that the client offers: the server's choice.
pub(super) fn old_dialect(subject: &Subject<'_>) -> Option<Finding> {
    let mut below: BTreeMap<(IpAddr, Dialect, Dialect), u64> = BTreeMap::new();
    for connection in &subject.connections {
        let (Some(best), Some(chosen)) = (best_offered(connection), connection.offers.chosen()) else { continue };
        if chosen < best {
            *below.entry((connection.endpoints.server.ip(), best, chosen)).or_default() += 1;
        }
    }
    let ((server, best, chosen), connections) = below.into_iter().max_by_key(|(_, connections)| *connections)?;
    let what = format!(
        "offered {}, and {server} chose {} on {}",
        named(best),
        named(chosen),
        counted(connections, "connection", "connections"),
    );
    let mut finding = subject.finding("old-dialect", Confidence::High, &what, None);
    finding.wireshark += " && (smb2.cmd == 0 || smb.cmd == 0x72)";
    Some(finding)
}

/// The newest dialect of an offer: neither a wildcard nor another SMB1 dialect has an order.
fn best_offered(connection: &Connection) -> Option<Dialect> {
    let dialects = connection.offers.client.as_ref()?.dialects.iter().copied();
    dialects.filter(|dialect| ![Dialect::SMB2_WILDCARD, Dialect::OtherSmb1].contains(dialect)).max()
}

fn named(dialect: Dialect) -> String {
    match dialect.protocol() {
        Protocol::Smb1 => format!("SMB1 ({dialect})"),
        Protocol::Smb2 => format!("SMB {dialect}"),
    }
}

/// A server that can be reached by several interfaces, and a client that moves much data over one connection.
pub(super) fn multichannel_unused(subject: &Subject<'_>) -> Option<Finding> {
    const ID: &str = "multichannel-unused";
    let transfers = subject.facts.of(Fact::Transfer);
    if (transfers.bytes as f64) < subject.threshold(ID, "bytes") {
        return None;
    }
    let told = subject.connections.iter().find_map(|connection| {
        let interfaces = reachable(connection);
        let both_can = connection.offers.have(capabilities::MULTI_CHANNEL) != Some(false);
        (both_can && interfaces.len() as f64 >= subject.threshold(ID, "interfaces")).then_some((connection, interfaces))
    })?;
    let (connection, interfaces) = told;
    if subject.context.connections.iter().any(|other| is_channel_beside(other, connection, &interfaces)) {
        return None;
    }
    let listed = interfaces.values().map(|(address, speed)| format!("{address} with {}", unbroken(link_speed(*speed))));
    let what = format!(
        "moved its data over one connection, although the server offered {} interfaces: {}",
        thousands(interfaces.len() as u64),
        listed.collect::<Vec<String>>().join(", "),
    );
    let mut finding = subject.finding(ID, Confidence::Medium, &what, None);
    finding.wireshark += " && smb2.ioctl.function == 0x001401fc";
    Some(finding)
}

fn link_speed(bits: u64) -> String {
    match bits {
        1_000_000_000.. => format!("{} Gbit/s", bits / 1_000_000_000),
        _ => format!("{} Mbit/s", bits / 1_000_000),
    }
}

/// The interfaces that the server listed, each with its fastest address that a client may be able to reach.
fn reachable(connection: &Connection) -> BTreeMap<u32, (IpAddr, u64)> {
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
fn is_channel_beside(other: &Connection, connection: &Connection, interfaces: &BTreeMap<u32, (IpAddr, u64)>) -> bool {
    let servers: BTreeSet<IpAddr> = interfaces.values().map(|(address, _)| *address).collect();
    let server = other.endpoints.server.ip();
    let same_server = server == connection.endpoints.server.ip() || servers.contains(&server);
    let same_client = other.endpoints.client.ip() == connection.endpoints.client.ip();
    let same_time = other.first <= connection.last && connection.first <= other.last;
    other.flow != connection.flow && same_server && same_time && (same_client || other.binds_session)
}
