//! Names known from earlier messages: users of sessions, shares of trees, paths of opens. All tables are bounded.

use crate::bounded::{FifoMap, HeapBytes};
use crate::channels::ShardCouplingMonitor;
use crate::rereads::{OpenFacts, ReadCaching, Rereads, TrackedOpen};
use ahash::RandomState;
use smbscope_model::{CUT_NAME_MARK, GrantedCaching};
use smbscope_wire::CapturedName;
use smbscope_wire::security::SecurityToken;
use smbscope_wire::smb2::FileReference;
use std::collections::{BTreeSet, HashMap};
use std::net::IpAddr;
use std::ops::Range;
use std::sync::Arc;

/// SMB2 sessions of a shard: `evicted_names`.
const MAX_SESSIONS: usize = 16_384;
/// Shares of a session: `evicted_names`.
const MAX_TREES: usize = 256;
/// Open files of a session: `evicted_names`.
const MAX_OPENS: usize = 16_384;
/// Bytes of a name; longer ones are cut: `names_cut`.
const MAX_NAME_BYTES: usize = 4096;

impl HeapBytes for Arc<str> {
    fn heap_bytes(&self) -> usize {
        self.len()
    }
}

impl HeapBytes for (IpAddr, u64) {
    fn heap_bytes(&self) -> usize {
        0
    }
}

#[derive(Debug, Clone)]
pub(crate) struct TrackedTreeConnect {
    pub(crate) share: Arc<str>,
    /// IPC$: files are named pipes.
    pub(crate) is_pipe: bool,
}

impl TrackedTreeConnect {
    pub(crate) fn new(path: &CapturedName) -> Option<TrackedTreeConnect> {
        let (server, share) = path.text.rsplit_once('\\').unwrap_or(("", &path.text));
        if !path.is_whole() && server.trim_start_matches('\\').is_empty() {
            return None;
        }
        let is_pipe = share.eq_ignore_ascii_case("IPC$");
        Some(TrackedTreeConnect {
            share: kept(&CapturedName { text: share.to_owned(), missing: path.missing })?,
            is_pipe,
        })
    }
}

impl HeapBytes for TrackedTreeConnect {
    fn heap_bytes(&self) -> usize {
        self.share.len()
    }
}

#[derive(Debug, Clone)]
pub(crate) struct TrackedSession {
    pub(crate) user: Option<Arc<str>>,
    pub(crate) trees: FifoMap<u32, TrackedTreeConnect>,
    pub(crate) opens: FifoMap<FileReference, TrackedOpen>,
    pub(crate) rereads: Rereads,
    channels: u32,
    begun: u64,
}

impl TrackedSession {
    fn new(begun: u64) -> TrackedSession {
        TrackedSession {
            begun,
            user: None,
            trees: FifoMap::new(MAX_TREES),
            opens: FifoMap::new(MAX_OPENS),
            rereads: Rereads::default(),
            channels: 0,
        }
    }

    fn forget_names(&mut self, bytes: usize) -> u64 {
        let bytes = bytes.saturating_sub(self.rereads.heap_bytes());
        self.rereads = Rereads::default();
        let most = (self.opens.bytes() + self.trees.bytes()).saturating_sub(bytes);
        let mut forgotten = 0;
        while self.opens.bytes() + self.trees.bytes() > most
            && (self.opens.remove_oldest().is_some() || self.trees.remove_oldest().is_some())
        {
            forgotten += 1;
        }
        forgotten
    }
}

impl HeapBytes for TrackedSession {
    fn heap_bytes(&self) -> usize {
        let names = self.user.as_ref().map_or(0, |user| user.len()) + self.trees.bytes() + self.opens.bytes();
        size_of::<TrackedSession>() + names + self.rereads.heap_bytes()
    }
}

#[derive(Debug, Clone)]
pub(crate) struct Sessions {
    table: FifoMap<(IpAddr, u64), TrackedSession>,
    addresses: HashMap<u64, BTreeSet<IpAddr>, RandomState>,
    aliases: FifoMap<(IpAddr, u64), (IpAddr, u64)>,
    pub(crate) watch: Option<ShardCouplingMonitor>,
    pub(crate) connection: u64,
    pub(crate) forgotten: u64,
    budget: usize,
}

impl Sessions {
    pub(crate) fn within(budget: usize) -> Sessions {
        Sessions {
            table: FifoMap::new(MAX_SESSIONS),
            addresses: HashMap::default(),
            aliases: FifoMap::new(MAX_SESSIONS),
            watch: None,
            connection: 0,
            forgotten: 0,
            budget,
        }
    }

    pub(crate) fn get(&mut self, server: IpAddr, session_id: u64) -> Option<&TrackedSession> {
        let session = self.table.get(&self.key(server, session_id));
        match (session, &mut self.watch) {
            (None, Some(watch)) => watch.uses(server, session_id, self.connection),
            (Some(session), Some(watch)) => watch.shares(session.begun, self.connection),
            (_, None) => {}
        }
        session
    }

    fn key(&self, server: IpAddr, session_id: u64) -> (IpAddr, u64) {
        let key = (server, session_id);
        self.aliases.get(&key).copied().unwrap_or(key)
    }

    /// Binds a connection to a session (MS-SMB2 §3.3.5.5.2) that may have begun at another address of the same server.
    pub(crate) fn bind(&mut self, server: IpAddr, session_id: u64) {
        let key = (server, session_id);
        if let Some(session) = self.table.get(&key) {
            if let Some(watch) = &self.watch {
                watch.shares(session.begun, self.connection);
            }
            return;
        }
        if let Some(watch) = &self.watch {
            watch.binds(server, session_id, self.connection);
        }
        let only = self.addresses.get(&session_id).filter(|addresses| addresses.len() == 1);
        if let Some(origin) = only.and_then(BTreeSet::first) {
            self.aliases.insert(key, (*origin, session_id));
        }
    }

    /// Modifies a session. Creates it if it is unknown, because its beginning may not have been captured.
    pub(crate) fn change<R>(
        &mut self,
        server: IpAddr,
        session_id: u64,
        change: impl FnOnce(&mut TrackedSession) -> R,
    ) -> R {
        let key = self.key(server, session_id);
        let known = self.table.get_mut(&key);
        match (&known, &mut self.watch) {
            (None, Some(watch)) => watch.uses(server, session_id, self.connection),
            (Some(session), Some(watch)) => watch.shares(session.begun, self.connection),
            (_, None) => {}
        }
        let result = match known {
            Some(session) => {
                let before = session.heap_bytes();
                let result = change(session);
                let after = session.heap_bytes();
                self.table.resized(before, after);
                result
            }
            None => {
                let mut session = TrackedSession::new(self.connection);
                let result = change(&mut session);
                self.addresses.entry(key.1).or_default().insert(key.0);
                let addresses = &mut self.addresses;
                self.forgotten += self.table.insert_with(key, session, |key, _| forget_address(addresses, key));
                result
            }
        };
        if self.table.bytes() > self.budget {
            self.trim();
        }
        result
    }

    pub(crate) fn note_read(
        &mut self,
        server: IpAddr,
        session_id: u64,
        open: &OpenFacts,
        bytes: Range<u64>,
    ) -> ReadCaching {
        let key = self.key(server, session_id);
        match self.table.get_mut(&key) {
            Some(session) if session.rereads.knows(open) => session.rereads.read(open, bytes),
            Some(_) => self.change(server, session_id, |session| session.rereads.read(open, bytes)),
            None => ReadCaching::default(),
        }
    }

    pub(crate) fn note_change(&mut self, server: IpAddr, session_id: u64, open: &OpenFacts) {
        let key = self.key(server, session_id);
        if let Some(session) = self.table.get_mut(&key) {
            session.rereads.changed(open);
        }
    }

    pub(crate) fn note_break(
        &mut self,
        server: IpAddr,
        session_id: u64,
        oplock: Option<(FileReference, GrantedCaching)>,
    ) {
        let key = self.key(server, session_id);
        let Some(session) = self.table.get_mut(&key) else { return };
        match oplock {
            Some((file, left)) => {
                if let Some(open) = session.opens.get_mut(&file) {
                    session.rereads.oplock_broken(&mut open.facts, left);
                }
            }
            None => session.rereads.lease_broken(),
        }
    }

    #[cold]
    fn trim(&mut self) {
        while self.table.bytes() > self.budget && self.table.len() > 1 {
            let Some((key, oldest)) = self.table.remove_oldest() else { break };
            forget_address(&mut self.addresses, key);
            self.forgotten += 1 + oldest.opens.len() as u64;
        }
        let excess = self.table.bytes().saturating_sub(self.budget);
        let Some(key) = self.table.only_key().filter(|_| excess > 0) else { return };
        let Some(session) = self.table.get_mut(&key) else { return };
        let before = session.heap_bytes();
        self.forgotten += session.forget_names(excess);
        let after = session.heap_bytes();
        self.table.resized(before, after);
    }

    pub(crate) fn join(&mut self, server: IpAddr, session_id: u64) {
        self.change(server, session_id, |session| session.channels += 1);
    }

    pub(crate) fn leave(&mut self, server: IpAddr, session_id: u64) {
        let key = self.key(server, session_id);
        self.aliases.remove(&(server, session_id));
        let Some(session) = self.table.get_mut(&key) else { return };
        session.channels = session.channels.saturating_sub(1);
        if session.channels == 0 {
            self.table.remove(&key);
            forget_address(&mut self.addresses, key);
        }
    }
}

fn forget_address(addresses: &mut HashMap<u64, BTreeSet<IpAddr>, RandomState>, (server, session_id): (IpAddr, u64)) {
    if let Some(known) = addresses.get_mut(&session_id) {
        known.remove(&server);
        if known.is_empty() {
            addresses.remove(&session_id);
        }
    }
}

#[derive(Debug, Clone)]
pub(crate) struct ConnectionNames {
    pub(crate) users: FifoMap<u16, Arc<str>>,
    pub(crate) trees: FifoMap<u16, TrackedTreeConnect>,
    pub(crate) opens: FifoMap<u16, TrackedOpen>,
    pub(crate) rereads: Rereads,
}

impl Default for ConnectionNames {
    fn default() -> ConnectionNames {
        ConnectionNames {
            users: FifoMap::new(MAX_TREES),
            trees: FifoMap::new(MAX_TREES),
            opens: FifoMap::new(MAX_OPENS),
            rereads: Rereads::default(),
        }
    }
}

impl ConnectionNames {
    pub(crate) fn oplock_broken(&mut self, fid: u16) {
        if let Some(open) = self.opens.get_mut(&fid) {
            self.rereads.oplock_broken(&mut open.facts, GrantedCaching::NotGranted);
        }
    }

    pub(crate) fn bytes(&self) -> usize {
        self.users.bytes() + self.trees.bytes() + self.opens.bytes() + self.rereads.heap_bytes()
    }
}

/// Returns a name for storage. Truncated or overlong names end with an ellipsis. `None` if nothing of it was captured.
pub(crate) fn kept(name: &CapturedName) -> Option<Arc<str>> {
    let text = name.text.as_str();
    match is_kept_whole(name) {
        true => Some(text.into()),
        false if text.is_empty() => None,
        false => {
            let end = (0..=text.len().min(MAX_NAME_BYTES)).rev().find(|end| text.is_char_boundary(*end));
            Some(format!("{}{CUT_NAME_MARK}", &text[..end.unwrap_or(0)]).into())
        }
    }
}

pub(crate) fn is_kept_whole(name: &CapturedName) -> bool {
    name.is_whole() && name.text.len() <= MAX_NAME_BYTES
}

fn kept_text(text: String) -> Option<Arc<str>> {
    kept(&CapturedName::from(text))
}

/// Returns the display name of a session's user. Kerberos tickets hide it; a truncated name is not shown.
pub(crate) fn user_name(identity: &SecurityToken) -> Option<Arc<str>> {
    match identity {
        SecurityToken::NtlmAuthenticate { anonymous: true, .. } => Some("(anonymous)".into()),
        SecurityToken::NtlmAuthenticate { user, .. } if user.is_empty() => None,
        SecurityToken::NtlmAuthenticate { domain, user, .. } if domain.is_empty() => kept_text(user.clone()),
        SecurityToken::NtlmAuthenticate { domain, user, .. } => kept_text(format!("{domain}\\{user}")),
        SecurityToken::KerberosApReq { realm, service } => kept_text(format!("(Kerberos for {service}@{realm})")),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_user_whose_name_was_cut_off_is_unknown() {
        let logon = |domain: &str, user: &str, anonymous| SecurityToken::NtlmAuthenticate {
            domain: domain.to_owned(),
            user: user.to_owned(),
            workstation: String::new(),
            anonymous,
        };
        let shown = |identity| user_name(&identity).map(|name| name.to_string());
        // A domain alone must not look like a user.
        assert_eq!([shown(logon("LAB", "", false)), shown(logon("", "", false))], [None, None]);
        assert_eq!(shown(logon("LAB", "dave", false)).as_deref(), Some("LAB\\dave"));
        assert_eq!(shown(logon("", "", true)).as_deref(), Some("(anonymous)"));
    }

    #[test]
    fn the_oldest_session_goes_when_the_names_take_too_much() {
        let server = IpAddr::from([10, 0, 0, 1]);
        let mut sessions = Sessions::within(105_000);
        let path: Arc<str> = "x".repeat(1_000).into();
        for (session_id, opens) in [(1, 50u64), (2, 30), (3, 10)] {
            for open in 0..opens {
                let file = FileReference { persistent: open, volatile: open };
                sessions
                    .change(server, session_id, |session| session.opens.insert(file, TrackedOpen::named(path.clone())));
            }
        }
        assert!(
            sessions.get(server, 1).is_some(),
            "90 paths of a thousand bytes, their entries and three sessions fit"
        );
        for open in 10..20 {
            let file = FileReference { persistent: open, volatile: open };
            sessions.change(server, 3, |session| session.opens.insert(file, TrackedOpen::named(path.clone())));
        }
        assert!(sessions.get(server, 1).is_none() && sessions.get(server, 2).is_some());
        assert_eq!(sessions.forgotten, 51, "the session and its fifty paths");
    }

    #[test]
    fn the_oldest_paths_go_when_one_session_takes_too_much() {
        let server = IpAddr::from([10, 0, 0, 1]);
        let mut sessions = Sessions::within(105_000);
        for open in 0..1_000 {
            let file = FileReference { persistent: open, volatile: open };
            sessions
                .change(server, 1, |session| session.opens.insert(file, TrackedOpen::named("x".repeat(1_000).into())));
        }
        assert!(sessions.table.bytes() <= 105_000, "{}", sessions.table.bytes());
        let kept = sessions.get(server, 1).expect("the session stays").opens.len() as u64;
        assert_eq!((kept, sessions.forgotten), (92, 908), "of 1,128 bytes each");
    }

    #[test]
    fn of_sessions_with_one_id_a_channel_joins_the_only_one_there_is() {
        let [first, second, third] = [1, 2, 3].map(|last| IpAddr::from([10, 0, 0, last]));
        let mut sessions = Sessions::within(1 << 20);
        sessions.join(first, 7);
        sessions.join(second, 7);
        sessions.bind(third, 7);
        assert!(sessions.get(third, 7).is_none(), "either may be meant");
        sessions.leave(first, 7);
        sessions.bind(third, 7);
        assert!(sessions.get(third, 7).is_some());
        sessions.leave(second, 7);
        assert!(sessions.addresses.is_empty());
    }

    #[test]
    fn a_channel_to_another_address_shares_the_sessions_names() {
        let (first, second) = (IpAddr::from([10, 0, 0, 1]), IpAddr::from([10, 0, 1, 1]));
        let mut sessions = Sessions::within(1 << 20);
        sessions.join(first, 7);
        sessions.change(first, 7, |session| session.user = Some("A\\b".into()));
        assert!(sessions.get(second, 7).is_none(), "another server may use the same id");
        sessions.bind(second, 7);
        sessions.join(second, 7);
        assert_eq!(sessions.get(second, 7).and_then(|session| session.user.as_deref()), Some("A\\b"));
        sessions.leave(second, 7);
        assert!(sessions.get(first, 7).is_some() && sessions.get(second, 7).is_none());
    }

    #[test]
    fn a_session_lives_as_long_as_its_last_channel() {
        let server = IpAddr::from([10, 0, 0, 1]);
        let mut sessions = Sessions::within(1 << 20);
        sessions.join(server, 7);
        sessions.join(server, 7);
        sessions.change(server, 7, |session| session.user = Some("A\\b".into()));
        sessions.leave(server, 7);
        assert_eq!(sessions.get(server, 7).and_then(|session| session.user.as_deref()), Some("A\\b"));
        sessions.leave(server, 7);
        assert!(sessions.get(server, 7).is_none());
    }
}
