//! Detects SMB2 sessions that span several parts of the flows.
//!
//! A part is followed on its own: a shard, or a connection if a shard follows its connections one by one. A session
//! with channels in several parts (MS-SMB2 multichannel) would lose its names, so the analysis restarts with coarser
//! parts.

use ahash::RandomState;
use serde::{Deserialize, Serialize};
use smbscope_capture::tcp::FlowView;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::net::IpAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

/// Sessions watched for channels; more: read again without shards.
const MAX_WATCHED: usize = 1 << 18;

/// Identifies a connection by its two sockets, so that a flow that continues after an eviction keeps its id.
pub(crate) fn connection_of(view: &FlowView) -> u64 {
    let (one, other) = (view.source, view.destination);
    RandomState::with_seeds(1, 2, 3, 4).hash_one((one.min(other), one.max(other)))
}

#[derive(Debug, Default)]
pub(crate) struct SessionRegistry {
    coupled: AtomicBool,
    seen: Mutex<SessionPartitions>,
}

#[derive(Debug, Default)]
struct SessionPartitions {
    /// By session id only, because a channel may lead to another address of the server.
    ids: HashMap<u64, Id, RandomState>,
    servers: HashMap<(u64, IpAddr), PartitionUse, RandomState>,
}

#[derive(Debug, Default)]
struct Id {
    all: PartitionUse,
    /// Parts that bind another connection to the session, which may therefore exist at another address as well.
    binding: PartitionUse,
}

#[derive(Debug, Default, Clone, Copy)]
enum PartitionUse {
    #[default]
    None,
    One(u64),
    Several,
}

impl PartitionUse {
    fn add(&mut self, part: u64) {
        *self = if self.has_others(part) { PartitionUse::Several } else { PartitionUse::One(part) };
    }

    fn has_others(self, part: u64) -> bool {
        match self {
            PartitionUse::None => false,
            PartitionUse::One(known) => known != part,
            PartitionUse::Several => true,
        }
    }
}

impl SessionRegistry {
    pub(crate) fn are_coupled(&self) -> bool {
        self.coupled.load(Ordering::Relaxed)
    }

    fn couple(&self) {
        self.coupled.store(true, Ordering::Relaxed);
    }

    pub(crate) fn met(&self) -> Met {
        let seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        let binding = seen.ids.iter().filter(|(_, id)| !matches!(id.binding, PartitionUse::None)).map(|(id, _)| *id);
        Met {
            servers: seen.servers.keys().copied().collect(),
            binding: binding.collect(),
            too_many: seen.servers.len() >= MAX_WATCHED,
        }
    }

    fn note(&self, session_id: u64, server: IpAddr, part: u64, binds: bool) {
        // Safe to use after a panic: the table only gains parts.
        let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        let SessionPartitions { ids, servers } = &mut *seen;
        if servers.len() >= MAX_WATCHED && !servers.contains_key(&(session_id, server)) {
            return self.couple();
        }
        let id = ids.entry(session_id).or_default();
        let here = servers.entry((session_id, server)).or_default();
        if [*here, id.binding].into_iter().chain(binds.then_some(id.all)).any(|parts| parts.has_others(part)) {
            self.couple();
        }
        here.add(part);
        id.all.add(part);
        if binds {
            id.binding.add(part);
        }
    }
}

#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Met {
    servers: BTreeSet<(u64, IpAddr)>,
    binding: BTreeSet<u64>,
    too_many: bool,
}

impl Met {
    pub(crate) fn merge(&mut self, other: Met) {
        self.servers.extend(other.servers);
        self.binding.extend(other.binding);
        self.too_many |= other.too_many;
    }
}

/// Groups parts that have sessions in common. Returns indices; each part is in one group, and both levels are in order.
pub(crate) fn coupled<'m>(parts: impl Iterator<Item = &'m Met> + Clone) -> Vec<Vec<usize>> {
    let mut groups: Vec<usize> = (0..parts.clone().count()).collect();
    let mut join = |one: usize, other: usize| {
        let (into, from) = (groups[one].min(groups[other]), groups[one].max(groups[other]));
        groups.iter_mut().filter(|group| **group == from).for_each(|group| *group = into);
    };
    let bound: BTreeSet<u64> = parts.clone().flat_map(|met| &met.binding).copied().collect();
    let (mut sessions, mut ids) = (HashMap::new(), HashMap::new());
    for (part, met) in parts.enumerate() {
        if met.too_many && part > 0 {
            join(0, part);
        }
        let all = met.servers.iter().map(|session| (session.0, Some(session.1)));
        for (id, server) in all.chain(met.binding.iter().map(|id| (*id, None))) {
            if let Some(server) = server {
                join(*sessions.entry((id, server)).or_insert(part), part);
            }
            if bound.contains(&id) {
                join(*ids.entry(id).or_insert(part), part);
            }
        }
    }
    let mut members: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
    groups.iter().enumerate().for_each(|(part, group)| members.entry(*group).or_default().push(part));
    members.into_values().collect()
}

#[derive(Debug, Clone)]
pub(crate) struct ShardCouplingMonitor {
    shard: u64,
    by_connection: bool,
    channels: Arc<SessionRegistry>,
    last_report: Option<(IpAddr, u64, u64)>,
}

impl ShardCouplingMonitor {
    /// With `by_connection`, each connection is a part; otherwise, the shard is.
    pub(crate) fn new(shard: usize, by_connection: bool, channels: Arc<SessionRegistry>) -> ShardCouplingMonitor {
        ShardCouplingMonitor { shard: shard as u64, by_connection, channels, last_report: None }
    }

    fn part(&self, connection: u64) -> u64 {
        if self.by_connection { connection } else { self.shard }
    }

    pub(crate) fn uses(&mut self, server: IpAddr, session_id: u64, connection: u64) {
        let part = self.part(connection);
        if self.last_report.replace((server, session_id, part)) != Some((server, session_id, part)) {
            self.channels.note(session_id, server, part, false);
        }
    }

    pub(crate) fn shares(&self, begun: u64, connection: u64) {
        if self.part(begun) != self.part(connection) {
            self.channels.couple();
        }
    }

    pub(crate) fn binds(&self, server: IpAddr, session_id: u64, connection: u64) {
        self.channels.note(session_id, server, self.part(connection), true);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CONNECTION: u64 = 1;

    fn address(last: u8) -> IpAddr {
        IpAddr::from([10, 0, 0, last])
    }

    #[test]
    fn a_session_of_one_server_in_two_shards_couples_them() {
        let channels = Arc::new(SessionRegistry::default());
        let [mut one, mut two] = [1, 2].map(|shard| ShardCouplingMonitor::new(shard, false, Arc::clone(&channels)));
        one.uses(address(1), 7, CONNECTION);
        one.uses(address(1), 7, CONNECTION);
        two.uses(address(2), 7, CONNECTION);
        two.uses(address(1), 8, CONNECTION);
        assert!(!channels.are_coupled(), "servers number their sessions by themselves");
        two.uses(address(1), 7, CONNECTION);
        assert!(channels.are_coupled());
    }

    #[test]
    fn a_channel_to_another_address_couples_whichever_is_seen_first() {
        for bind_first in [false, true] {
            let channels = Arc::new(SessionRegistry::default());
            let [mut one, two] = [1, 2].map(|shard| ShardCouplingMonitor::new(shard, false, Arc::clone(&channels)));
            let mut steps: [&mut dyn FnMut(); 2] =
                [&mut || one.uses(address(1), 7, CONNECTION), &mut || two.binds(address(2), 7, CONNECTION)];
            if bind_first {
                steps.reverse();
            }
            steps.iter_mut().for_each(|step| step());
            assert!(channels.are_coupled());
        }
    }

    #[test]
    fn two_connections_of_a_shard_are_coupled_where_each_is_a_part() {
        for (by_connection, coupled) in [(false, false), (true, true)] {
            let channels = Arc::new(SessionRegistry::default());
            let mut watch = ShardCouplingMonitor::new(3, by_connection, Arc::clone(&channels));
            watch.uses(address(1), 7, CONNECTION);
            watch.shares(CONNECTION, CONNECTION);
            assert!(!channels.are_coupled());
            watch.shares(CONNECTION, 2);
            assert_eq!(channels.are_coupled(), coupled);
            let channels = Arc::new(SessionRegistry::default());
            let mut watch = ShardCouplingMonitor::new(3, by_connection, Arc::clone(&channels));
            watch.binds(address(2), 7, CONNECTION);
            watch.uses(address(1), 7, 2);
            assert_eq!(channels.are_coupled(), coupled);
        }
    }

    #[test]
    fn parts_are_coupled_by_a_session_of_one_server_or_by_a_channel_to_another_address() {
        let part = |uses: &[(u8, u64)], binds: &[(u8, u64)]| {
            let channels = Arc::new(SessionRegistry::default());
            let mut watch = ShardCouplingMonitor::new(0, false, Arc::clone(&channels));
            uses.iter().for_each(|(server, id)| watch.uses(address(*server), *id, CONNECTION));
            binds.iter().for_each(|(server, id)| watch.binds(address(*server), *id, CONNECTION));
            channels.met()
        };
        let parts = [
            part(&[(1, 7), (1, 9)], &[]),
            part(&[(2, 7)], &[]),
            part(&[(1, 9)], &[]),
            part(&[(3, 5)], &[]),
            part(&[], &[(4, 5)]),
            part(&[], &[]),
        ];
        assert_eq!(coupled(parts.iter()), [vec![0, 2], vec![1], vec![3, 4], vec![5]]);
    }

    #[test]
    fn more_sessions_than_can_be_watched_count_as_coupled() {
        let channels = Arc::new(SessionRegistry::default());
        let mut watch = ShardCouplingMonitor::new(0, false, Arc::clone(&channels));
        (0..MAX_WATCHED as u64).for_each(|id| watch.uses(address(1), id, CONNECTION));
        assert!(!channels.are_coupled());
        watch.uses(address(1), u64::MAX, CONNECTION);
        assert!(channels.are_coupled());
        assert_eq!(coupled([Met::default(), channels.met(), Met::default()].iter()), [vec![0, 1], vec![2]]);
    }
}
