//! Names that the protocol's state gives: users of sessions, shares of trees, paths of opens. Every table is bounded.

use crate::channels::Watch;
use ahash::RandomState;
use smbscope_wire::security::Identity;
use smbscope_wire::smb2::FileReference;
use std::collections::{HashMap, VecDeque};
use std::hash::Hash;
use std::net::IpAddr;
use std::sync::Arc;

/// SMB2 sessions remembered over all connections.
const MAX_SESSIONS: usize = 16_384;
/// Trees remembered in a session or connection.
const MAX_TREES: usize = 256;
/// Opens remembered in a session or connection.
const MAX_OPENS: usize = 16_384;

/// About what an entry of a map takes beside its value.
const ENTRY_BYTES: usize = 96;

/// What a value takes on the heap.
pub(crate) trait HeapBytes {
    fn heap_bytes(&self) -> usize;
}

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

/// A map that forgets its oldest entry when it is full, and says so.
#[derive(Debug)]
pub(crate) struct Bounded<K, V> {
    entries: HashMap<K, V, RandomState>,
    order: VecDeque<K>,
    limit: usize,
    /// What the entries take, about.
    bytes: usize,
}

impl<K: Hash + Eq + Copy, V: HeapBytes> Bounded<K, V> {
    pub(crate) fn new(limit: usize) -> Bounded<K, V> {
        Bounded { entries: HashMap::default(), order: VecDeque::new(), limit, bytes: 0 }
    }

    /// What the entries take, about.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }

    pub(crate) fn get(&self, key: &K) -> Option<&V> {
        self.entries.get(key)
    }

    pub(crate) fn get_mut(&mut self, key: &K) -> Option<&mut V> {
        self.entries.get_mut(key)
    }

    /// Adds or replaces an entry; returns how many were forgotten for it.
    pub(crate) fn insert(&mut self, key: K, value: V) -> u64 {
        self.bytes += ENTRY_BYTES + value.heap_bytes();
        if let Some(old) = self.entries.insert(key, value) {
            self.bytes -= ENTRY_BYTES + old.heap_bytes();
            return 0;
        }
        self.order.push_back(key);
        // Removed entries leave their keys in the queue; drop these before they outnumber the living.
        if self.order.len() > 2 * self.limit {
            self.order.retain(|key| self.entries.contains_key(key));
        }
        let mut forgotten = 0;
        while self.entries.len() > self.limit {
            let Some(oldest) = self.order.pop_front() else { break };
            forgotten += u64::from(self.remove(&oldest).is_some());
        }
        forgotten
    }

    pub(crate) fn keys(&self) -> impl Iterator<Item = &K> {
        self.entries.keys()
    }

    pub(crate) fn remove(&mut self, key: &K) -> Option<V> {
        let old = self.entries.remove(key)?;
        self.bytes -= ENTRY_BYTES + old.heap_bytes();
        Some(old)
    }

    /// The entry that has been there longest, without it from now on.
    fn remove_oldest(&mut self) -> Option<V> {
        loop {
            let key = self.order.pop_front()?;
            if let Some(old) = self.remove(&key) {
                return Some(old);
            }
        }
    }
}

/// A tree connect.
#[derive(Debug, Clone)]
pub(crate) struct Tree {
    pub(crate) share: Arc<str>,
    /// IPC$: files are named pipes.
    pub(crate) is_pipe: bool,
}

impl Tree {
    /// A tree by the path of its request: `\\server\share`.
    pub(crate) fn new(path: &str) -> Tree {
        let share = path.rsplit('\\').next().unwrap_or(path);
        Tree { share: share.into(), is_pipe: share.eq_ignore_ascii_case("IPC$") }
    }
}

impl HeapBytes for Tree {
    fn heap_bytes(&self) -> usize {
        self.share.len()
    }
}

/// An SMB2 session, on one connection or on several channels.
#[derive(Debug)]
pub(crate) struct Session {
    pub(crate) user: Option<Arc<str>>,
    pub(crate) trees: Bounded<u32, Tree>,
    pub(crate) opens: Bounded<FileReference, Arc<str>>,
    channels: u32,
}

impl Session {
    fn new() -> Session {
        Session { user: None, trees: Bounded::new(MAX_TREES), opens: Bounded::new(MAX_OPENS), channels: 0 }
    }
}

impl HeapBytes for Session {
    fn heap_bytes(&self) -> usize {
        size_of::<Session>() + self.user.as_ref().map_or(0, |user| user.len()) + self.trees.bytes() + self.opens.bytes()
    }
}

/// The sessions of all connections: a session may have channels on several of them.
#[derive(Debug)]
pub(crate) struct Sessions {
    table: Bounded<(IpAddr, u64), Session>,
    /// Channels to other addresses of a server, and where the session began.
    aliases: Bounded<(IpAddr, u64), (IpAddr, u64)>,
    /// Told of every session, where the flows are followed in shards.
    pub(crate) watch: Option<Watch>,
    pub(crate) forgotten: u64,
    /// What the table may take.
    budget: usize,
}

impl Sessions {
    /// No sessions, and room for some in `budget` bytes.
    pub(crate) fn within(budget: usize) -> Sessions {
        Sessions {
            table: Bounded::new(MAX_SESSIONS),
            aliases: Bounded::new(MAX_SESSIONS),
            watch: None,
            forgotten: 0,
            budget,
        }
    }

    pub(crate) fn get(&mut self, server: IpAddr, session_id: u64) -> Option<&Session> {
        let session = self.table.get(&self.key(server, session_id));
        if let (None, Some(watch)) = (session, &mut self.watch) {
            watch.uses(server, session_id);
        }
        session
    }

    fn key(&self, server: IpAddr, session_id: u64) -> (IpAddr, u64) {
        let key = (server, session_id);
        self.aliases.get(&key).copied().unwrap_or(key)
    }

    /// A connection to `server` asks to become a channel of a session (MS-SMB2 3.3.5.5.2) that may have begun at
    /// another address of the same server.
    pub(crate) fn bind(&mut self, server: IpAddr, session_id: u64) {
        let key = (server, session_id);
        if self.table.get(&key).is_some() {
            return;
        }
        if let Some(watch) = &self.watch {
            watch.binds(server, session_id);
        }
        let mut elsewhere = self.table.keys().filter(|(_, id)| *id == session_id);
        if let (Some(origin), None) = (elsewhere.next().copied(), elsewhere.next()) {
            self.aliases.insert(key, origin);
        }
    }

    /// Changes the session, made anew when it is not known: its beginning may not have been captured.
    pub(crate) fn change<R>(&mut self, server: IpAddr, session_id: u64, change: impl FnOnce(&mut Session) -> R) -> R {
        let key = self.key(server, session_id);
        let known = self.table.get_mut(&key);
        if let (None, Some(watch)) = (&known, &mut self.watch) {
            watch.uses(server, session_id);
        }
        let result = match known {
            Some(session) => {
                let before = session.heap_bytes();
                let result = change(session);
                let after = session.heap_bytes();
                self.table.bytes = self.table.bytes + after - before;
                result
            }
            None => {
                let mut session = Session::new();
                let result = change(&mut session);
                self.forgotten += self.table.insert(key, session);
                result
            }
        };
        // One session alone is within its own bounds.
        while self.table.bytes() > self.budget && self.table.entries.len() > 1 {
            let Some(oldest) = self.table.remove_oldest() else { break };
            self.forgotten += 1 + oldest.opens.entries.len() as u64;
        }
        result
    }

    /// A connection uses the session.
    pub(crate) fn join(&mut self, server: IpAddr, session_id: u64) {
        self.change(server, session_id, |session| session.channels += 1);
    }

    /// A connection of the session ended; the last one takes it along.
    pub(crate) fn leave(&mut self, server: IpAddr, session_id: u64) {
        let key = self.key(server, session_id);
        self.aliases.remove(&(server, session_id));
        let Some(session) = self.table.get_mut(&key) else { return };
        session.channels = session.channels.saturating_sub(1);
        if session.channels == 0 {
            self.table.remove(&key);
        }
    }
}

/// SMB1 names, which belong to their connection.
#[derive(Debug)]
pub(crate) struct ConnectionNames {
    pub(crate) users: Bounded<u16, Arc<str>>,
    pub(crate) trees: Bounded<u16, Tree>,
    pub(crate) opens: Bounded<u16, Arc<str>>,
}

impl Default for ConnectionNames {
    fn default() -> ConnectionNames {
        ConnectionNames {
            users: Bounded::new(MAX_TREES),
            trees: Bounded::new(MAX_TREES),
            opens: Bounded::new(MAX_OPENS),
        }
    }
}

impl ConnectionNames {
    /// What they take, about.
    pub(crate) fn bytes(&self) -> usize {
        self.users.bytes() + self.trees.bytes() + self.opens.bytes()
    }
}

/// How a session's user is shown. A Kerberos ticket hides the client's name and shows only the service it is for; where the
/// snap length cut the name off, nobody is shown.
pub(crate) fn user_name(identity: &Identity) -> Option<Arc<str>> {
    match identity {
        Identity::NtlmAuthenticate { anonymous: true, .. } => Some("(anonymous)".into()),
        Identity::NtlmAuthenticate { user, .. } if user.is_empty() => None,
        Identity::NtlmAuthenticate { domain, user, .. } if domain.is_empty() => Some(user.as_str().into()),
        Identity::NtlmAuthenticate { domain, user, .. } => Some(format!("{domain}\\{user}").into()),
        Identity::KerberosApReq { realm, service } => Some(format!("(Kerberos for {service}@{realm})").into()),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_user_whose_name_was_cut_off_is_unknown() {
        let logon = |domain: &str, user: &str, anonymous| Identity::NtlmAuthenticate {
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
    fn the_oldest_name_is_forgotten_and_counted() {
        let mut names: Bounded<u8, Arc<str>> = Bounded::new(2);
        assert_eq!(names.insert(1, "a".into()) + names.insert(2, "b".into()) + names.insert(1, "c".into()), 0);
        assert_eq!(names.insert(3, "d".into()), 1);
        let kept = [1, 2, 3].map(|key| names.get(&key).map(|name| &**name));
        assert_eq!(kept, [None, Some("b"), Some("d")]);
        assert_eq!(names.bytes(), 2 * (ENTRY_BYTES + 1));
    }

    #[test]
    fn the_oldest_session_goes_when_the_names_take_too_much() {
        let server = IpAddr::from([10, 0, 0, 1]);
        let mut sessions = Sessions::within(100_000);
        let path: Arc<str> = "x".repeat(1_000).into();
        for (session_id, opens) in [(1, 50u64), (2, 30), (3, 10)] {
            for open in 0..opens {
                let file = FileReference { persistent: open, volatile: open };
                sessions.change(server, session_id, |session| session.opens.insert(file, path.clone()));
            }
        }
        assert!(
            sessions.get(server, 1).is_some(),
            "90 paths of a thousand bytes, their entries and three sessions fit"
        );
        for open in 10..20 {
            let file = FileReference { persistent: open, volatile: open };
            sessions.change(server, 3, |session| session.opens.insert(file, path.clone()));
        }
        assert!(sessions.get(server, 1).is_none() && sessions.get(server, 2).is_some());
        assert_eq!(sessions.forgotten, 51, "the session and its fifty paths");
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
