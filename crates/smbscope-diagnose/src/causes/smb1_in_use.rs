//! SMB1 beyond negotiation: without pipelining or leases, and no longer secure.

use super::{Detect, Detector, Finding};
use crate::answer::{Confidence, Culprit};
use crate::facts::{Fact, Pair};
use smbscope_model::Protocol;
use smbscope_model::prose::{clean, counted};
use std::collections::BTreeSet;

pub(super) const SMB1_IN_USE: Detector = Detector {
    id: "smb1-in-use",
    culprit: Culprit::Application,
    title: "SMB1 in use",
    condition: "Any SMB1 command beyond negotiation. Always a note.",
    advice: "Move the client and server to SMB 2 or 3 and switch SMB1 off on the server: SMB1 has no leases, little pipelining, blocks of at most 64 KiB and no secure signing. Find out first what still needs it, such as old scanners and printers.",
    source: "Microsoft, \"Stop using SMB1\"",
    thresholds: &[],
    covers: &[],
    detect: Detect::Pair(detect),
};

fn detect(pair: &Pair<'_>) -> Option<Finding> {
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
