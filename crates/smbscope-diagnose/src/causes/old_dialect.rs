//! A dialect below the best one that the client offers: the server's choice.

use super::{Detect, Detector, Finding};
use crate::answer::{Confidence, Culprit};
use crate::facts::Pair;
use smbscope_model::prose::counted;
use smbscope_model::{ConnectionSummary, Dialect, Protocol};
use std::collections::BTreeMap;
use std::net::IpAddr;

pub(super) const OLD_DIALECT: Detector = Detector {
    id: "old-dialect",
    culprit: Culprit::Server,
    title: "An older dialect than the client offers",
    condition: "The server chose a dialect below the best one that the client offered. Always a note.",
    advice: "Allow newer dialects on the server (Samba: server max protocol; Windows: Set-SmbServerConfiguration -Smb2DialectMax), or update it: leases need SMB 2.1, multichannel and encryption 3.0, signing with AES-GMAC and pre-authentication integrity 3.1.1.",
    source: "MS-SMB2 3.3.5.4: the server chooses the greatest dialect that both sides have",
    thresholds: &[],
    covers: &[],
    detect: Detect::Pair(detect),
};

fn detect(pair: &Pair<'_>) -> Option<Finding> {
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
        named(best),
        named(chosen),
        counted(connections, "connection", "connections"),
    );
    Some(Finding::new(Confidence::High, what).filter(" && (smb2.cmd == 0 || smb.cmd == 0x72)"))
}

/// The newest dialect of an offer: neither a wildcard nor another SMB1 dialect has an order.
fn best_offered(connection: &ConnectionSummary) -> Option<Dialect> {
    let dialects = connection.offers.client.as_ref()?.dialects.iter().copied();
    dialects.filter(|dialect| ![Dialect::SMB2_WILDCARD, Dialect::OtherSmb1].contains(dialect)).max()
}

fn named(dialect: Dialect) -> String {
    match dialect.protocol() {
        Protocol::Smb1 => format!("SMB1 ({dialect})"),
        Protocol::Smb2 => format!("SMB {dialect}"),
    }
}
