//! TREE_CONNECT that takes long although the login does not.

use super::{Detect, Detector, Finding};
use crate::answer::{Confidence, Culprit, LostTime};
use crate::facts::{CommandClass, Pair};
use smbscope_model::prose::{counted, span, unbroken};
use smbscope_model::{Command, Nanos};
use smbscope_wire::{smb1, smb2};

pub(super) const SLOW_TREE_CONNECT: Detector = Detector {
    id: "slow-tree-connect",
    culprit: Culprit::Server,
    title: "Connecting to the share is slow",
    condition: "A TREE_CONNECT took `longest`, and tree connects took at least twice as long as logins on average.",
    advice: "The server does something before it lets a client use the share: a script (Samba: root preexec), a check of access rights against a slow domain controller, an automounted or tiered volume. Look at the server's log at that time.",
    source: "MS-SMB2 3.3.5.7; Samba, smb.conf(5): preexec",
    thresholds: &[("longest", "500ms")],
    covers: &["server-hang", "server-saturation", "slow-logon", "request-unanswered"],
    detect: Detect::Pair(detect),
};

fn detect(pair: &Pair<'_>) -> Option<Finding> {
    const ID: &str = "slow-tree-connect";
    let connects = pair.served(CommandClass::TreeConnect);
    let sessions = pair.served(CommandClass::Session);
    if Nanos(connects.longest) < pair.time(ID, "longest") || sessions.mean().0 * 2 > connects.mean().0 {
        return None;
    }
    let share = pair.facts.waits.iter().find(|wait| {
        matches!(
            wait.command,
            Command::Smb2(smb2::Smb2Command::TREE_CONNECT) | Command::Smb1(smb1::Smb1Command::TREE_CONNECT_ANDX)
        )
    });
    let what = format!(
        "{} took {} for {} (TREE_CONNECT) of {}, up to {} each",
        pair.server_name(),
        unbroken(span(connects.sum())),
        counted(connects.count, "tree connect", "tree connects"),
        pair.client,
        unbroken(Nanos(connects.longest)),
    );
    let found = Finding::new(Confidence::High, what)
        .lost(LostTime::exactly(pair.once(connects.sum())))
        .longest(Nanos(connects.longest))
        .filter(" && (smb2.cmd == 3 || smb.cmd == 0x75)");
    Some(match share {
        Some(wait) => found.from(Some(wait.from)).on(&wait.share, &None),
        None => found,
    })
}
