//! Settings of client and server that cost speed, security or visibility. Most are notes.

use super::{Detect, Detector, Finding};
use crate::answer::{Confidence, Culprit};
use crate::classify::Fact;
use crate::facts::{Pair, bytes, percent};
use smbscope_model::offers::capabilities;
use smbscope_model::prose::{clean, counted, thousands, unbroken};
use smbscope_model::{ConnectionSummary, Dialect, Protocol};
use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

pub(super) const DETECTORS: &[&Detector] =
    &[&SMB1_IN_USE, &OLD_DIALECT, &ENCRYPTED, &SIGNING_COST, &LARGE_MTU_OFF, &MULTICHANNEL_UNUSED, &MANY_CHANNELS];

const SMB1_IN_USE: Detector = Detector {
    id: "smb1-in-use",
    culprit: Culprit::Application,
    title: "SMB1 in use",
    condition: "Any SMB1 command beyond negotiation. Always a note.",
    advice: "Move the client and server to SMB 2 or 3 and switch SMB1 off on the server: SMB1 has no leases, little pipelining, blocks of at most 64 KiB and no secure signing. Find out first what still needs it, such as old scanners and printers.",
    source: "Microsoft, \"Stop using SMB1\"",
    thresholds: &[],
    covers: &[],
    detect: Detect::Pair(smb1_in_use),
};

fn smb1_in_use(pair: &Pair<'_>) -> Option<Finding> {
    let smb1 = pair.facts.counted(Fact::Smb1);
    if smb1.count == 0 {
        return None;
    }
    let speaks = |connection: &&&smbscope_model::ConnectionSummary| {
        connection.dialect.is_some_and(|dialect| dialect.protocol() == Protocol::Smb1)
    };
    let shares: BTreeSet<&str> =
        pair.connections.iter().filter(speaks).flat_map(|connection| &connection.shares).map(AsRef::as_ref).collect();
    let shares: Vec<String> = shares.into_iter().map(clean).collect();
    let on = if shares.is_empty() { String::new() } else { format!(" on {}", shares.join(", ")) };
    let what = format!("{} spoke SMB1{on}: {}", pair.client, counted(smb1.count, "command", "commands"));
    Some(Finding::new(Confidence::High, what).first_of(smb1).filter(" && smb"))
}

const OLD_DIALECT: Detector = Detector {
    id: "old-dialect",
    culprit: Culprit::Server,
    title: "An older dialect than the client offers",
    condition: "The server chose an older dialect than the newest that the client offered. Always a note.",
    advice: "Allow newer dialects on the server (Samba: server max protocol; Windows: Set-SmbServerConfiguration -Smb2DialectMax), or update it: leases need SMB 2.1, multichannel and encryption 3.0, signing with AES-GMAC and pre-authentication integrity 3.1.1.",
    source: "MS-SMB2 3.3.5.4: the server chooses the greatest common dialect",
    thresholds: &[],
    covers: &[],
    detect: Detect::Pair(old_dialect),
};

fn old_dialect(pair: &Pair<'_>) -> Option<Finding> {
    let mut below: BTreeMap<(IpAddr, Dialect, Dialect), u64> = BTreeMap::new();
    for connection in &pair.connections {
        let (Some(best), Some(chosen)) = (best_offered(connection), connection.offers.chosen()) else { continue };
        if chosen < best {
            *below.entry((connection.endpoints.server.ip(), best, chosen)).or_default() += 1;
        }
    }
    let ((server, best, chosen), connections) = below.into_iter().max_by_key(|(_, connections)| *connections)?;
    let what = format!(
        "{} offered {}, and {server} chose {} on {}",
        pair.client,
        dialect_name(best),
        dialect_name(chosen),
        counted(connections, "connection", "connections"),
    );
    Some(Finding::new(Confidence::High, what).filter(" && (smb2.cmd == 0 || smb.cmd == 0x72)"))
}

/// Returns the newest dialect offered. The wildcard and other SMB1 dialects are ignored because they have no order.
fn best_offered(connection: &ConnectionSummary) -> Option<Dialect> {
    let dialects = connection.offers.client.as_ref()?.dialects.iter().copied();
    dialects.filter(|dialect| ![Dialect::SMB2_WILDCARD, Dialect::OtherSmb1].contains(dialect)).max()
}

fn dialect_name(dialect: Dialect) -> String {
    match dialect.protocol() {
        Protocol::Smb1 => format!("SMB1 ({dialect})"),
        Protocol::Smb2 => format!("SMB {dialect}"),
    }
}

const ENCRYPTED: Detector = Detector {
    id: "encrypted",
    culprit: Culprit::Capture,
    title: "Encrypted traffic",
    condition: "Any encrypted request. Always a note.",
    advice: "To see commands and files, analyze with the keys of the session (--keys) or the user's password (--password-file); docs/capturing.md says how to get keys. Without them, capture with encryption off for this share, or measure with bench, which sees its own commands. Encryption protects the data on the network; turn it off for a test only.",
    source: "MS-SMB2 2.2.41",
    thresholds: &[],
    covers: &[],
    detect: Detect::Pair(encrypted),
};

fn encrypted(pair: &Pair<'_>) -> Option<Finding> {
    let frames = pair.facts.counted(Fact::Encrypted);
    if frames.count == 0 {
        return None;
    }
    let what = format!(
        "{} encrypted {}: how long they took is visible, their commands and files are not",
        pair.client,
        counted(frames.count, "request", "requests"),
    );
    Some(Finding::new(Confidence::High, what).first_of(frames).filter(" && smb2.header.transform.signature"))
}

const SIGNING_COST: Detector = Detector {
    id: "signing-cost",
    culprit: Culprit::Server,
    title: "Bulk data is signed",
    condition: "The client moved `bytes` of signed file data, more than `share` of all its file data, and waited for it during `waited` of its active time. Always a note: a capture can't tell how much of the wait is signing.",
    advice: "Signing costs both sides processor time for each byte; with AES-GMAC (SMB 3.1.1, Windows 11, Server 2022) far less than with HMAC-SHA256. Use a dialect and cipher that the processors support. Without signing, an attacker on the network can change data: keep it on.",
    source: "MS-SMB2 3.1.4.1; docs/load.md: measured cost of signing",
    thresholds: &[("bytes", "100MB"), ("share", "50%"), ("waited", "50%")],
    covers: &[],
    detect: Detect::Pair(signing_cost),
};

fn signing_cost(pair: &Pair<'_>) -> Option<Finding> {
    const ID: &str = "signing-cost";
    let (signed, all) = (pair.facts.counted(Fact::SignedTransfer), pair.facts.counted(Fact::Transfer));
    let share = signed.bytes as f64 / all.bytes.max(1) as f64;
    let waited = signed.outstanding as f64 / pair.split.active().0.max(1) as f64;
    if (signed.bytes as f64) < pair.threshold(ID, "bytes")
        || share <= pair.threshold(ID, "share")
        || waited < pair.threshold(ID, "waited")
    {
        return None;
    }
    let what = format!("{} moved {} of signed file data ({} of it)", pair.client, bytes(signed.bytes), percent(share));
    // Signing is part of the wait, but a capture can't show how much.
    Some(Finding::new(Confidence::Low, what).first_of(signed))
}

const LARGE_MTU_OFF: Detector = Detector {
    id: "large-mtu-off",
    culprit: Culprit::Application,
    title: "Blocks of 64 KiB only",
    condition: "`transfers` blocks of 60 to 64 KiB and none larger, over SMB 2.1 or later and a round trip of `trip`. Always a note.",
    advice: "SMB 2.1 and later carry up to 8 MiB in a command. Look for a client or server with large MTU off (Windows: DisableLargeMtu; Samba: smb2 max read and smb2 max write), or an application that asks for 64 KiB.",
    source: "MS-SMB2 3.3.5.4 (CapLargeMtu)",
    thresholds: &[("transfers", "100"), ("trip", "1ms")],
    covers: &[],
    detect: Detect::Pair(large_mtu_off),
};

fn large_mtu_off(pair: &Pair<'_>) -> Option<Finding> {
    const ID: &str = "large-mtu-off";
    let full = pair.facts.counted(Fact::Transfer64K);
    if pair.facts.count(Fact::LargeTransfer) > 0
        || (full.count as f64) < pair.threshold(ID, "transfers")
        || pair.round_trip().is_none_or(|trip| trip < pair.time(ID, "trip"))
    {
        return None;
    }
    let what = format!(
        "{} moved file data in {} of 64 KiB and none larger, although its dialect allows up to 8 MiB",
        pair.client,
        counted(full.count, "block", "blocks"),
    );
    Some(Finding::new(Confidence::Medium, what).first_of(full))
}

const MULTICHANNEL_UNUSED: Detector = Detector {
    id: "multichannel-unused",
    culprit: Culprit::Client,
    title: "Several interfaces offered, one connection used",
    condition: "Client and server support multichannel, the server listed at least `interfaces` interfaces that a client may reach, and the client moved `bytes` over one connection. Always a note.",
    advice: "Find out why the client opens no further channels: multichannel switched off (Get-SmbClientConfiguration EnableMultiChannel), interfaces that it cannot reach, cards without RSS, or a client without multichannel. Samba: server multi channel support.",
    source: "MS-SMB2 3.2.4.20.10, 2.2.32.5; Microsoft, \"Manage SMB Multichannel\"",
    thresholds: &[("interfaces", "2"), ("bytes", "10MB")],
    covers: &[],
    detect: Detect::Pair(multichannel_unused),
};

fn multichannel_unused(pair: &Pair<'_>) -> Option<Finding> {
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

/// Returns the server's interfaces by index, each with its fastest address that is neither loopback nor link-local.
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

/// Returns true if a connection may be another channel: same server and time, and the same client or a bound session.
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

const MANY_CHANNELS: Detector = Detector {
    id: "many-channels",
    culprit: Culprit::Client,
    title: "Many channels to one server",
    condition: "More than `connections` connections were bound to the same sessions. Always a note.",
    advice: "More connections than cores or network cards do not help. Limit multichannel (Set-SmbClientConfiguration -MaximumConnectionCountPerServer, Samba: server multi channel support), or let applications share a mount.",
    source: "MS-SMB2 3.2.1.7; Microsoft, \"Manage SMB Multichannel\"",
    thresholds: &[("connections", "4")],
    covers: &[],
    detect: Detect::Pair(many_channels),
};

fn many_channels(pair: &Pair<'_>) -> Option<Finding> {
    // A channel binds the session of another connection.
    let bound = pair.connections.iter().filter(|connection| connection.binds_session).count() as u64;
    let channels = bound + u64::from(bound > 0);
    if (channels as f64) <= pair.threshold("many-channels", "connections") {
        return None;
    }
    let what = format!("{} had {channels} channels to {} in its sessions", pair.client, pair.server_name());
    Some(Finding::new(Confidence::Medium, what).filter(" && tcp.flags.syn == 1"))
}
