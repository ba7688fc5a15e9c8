//! Files and directories that a client returns to soon, among those most recently used on a connection.

use super::counts::{ExchangeSample, PeakWindowCount};
use crate::classify::{Fact, FactSet, is_close};
use crate::episodes::hash;
use serde::{Deserialize, Serialize};
use smbscope_model::{
    CUT_NAME_MARK, CommandGroup, Exchange, Nanos, Protocol, ResponseStatus, Stamp, Subcommand, Timestamp,
};
use smbscope_stats::{Covered, derived};
use smbscope_wire::names::Trans2;
use smbscope_wire::status::NtStatus;
use std::collections::VecDeque;
use std::sync::Arc;

/// Paths of a connection that are followed.
pub(crate) const RECENT_PATHS_MAX: usize = 32;
/// Opens or listings of the same path within this time form one pattern.
pub(crate) const REPEAT_WINDOW: Nanos = Nanos(10_000_000_000);
pub(crate) const COPY_WINDOW: Nanos = Nanos(60_000_000_000);

#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub(crate) struct PathFacts {
    pub(crate) opens: u64,
    pub(crate) opens_window: PeakWindowCount,
    pub(crate) commands: u64,
    pub(crate) response_time: i64,
    pub(crate) outstanding: i64,
    pub(crate) bytes_read: u64,
    pub(crate) bytes_written: u64,
    /// Highest end offset of a read or write: a lower bound for the file size.
    pub(crate) extent: u64,
    pub(crate) first: Option<Stamp>,
    pub(crate) last: Option<Timestamp>,
    pub(crate) listings: u64,
    pub(crate) listings_window: PeakWindowCount,
    pub(crate) list_commands: u64,
    pub(crate) list_bytes: u64,
    pub(crate) list_bytes_max: u64,
    pub(crate) list_wait: i64,
    /// Entries of the directory that were opened and closed without any data, and the ns waited for it.
    pub(crate) looked_at: u64,
    pub(crate) looked_at_wait: i64,
}

impl PathFacts {
    fn is_of_interest(&self) -> bool {
        self.opens > 1 || self.listings > 0 || self.list_commands > 1 || self.looked_at > 1
    }

    pub(crate) fn merge(&mut self, other: &PathFacts) {
        self.opens += other.opens;
        self.opens_window.merge(&other.opens_window);
        self.commands += other.commands;
        self.response_time = self.response_time.saturating_add(other.response_time);
        self.outstanding = self.outstanding.saturating_add(other.outstanding);
        self.bytes_read = self.bytes_read.saturating_add(other.bytes_read);
        self.bytes_written = self.bytes_written.saturating_add(other.bytes_written);
        self.extent = self.extent.max(other.extent);
        self.first = match (self.first, other.first) {
            (Some(a), Some(b)) if (b.time, b.packet) < (a.time, a.packet) => Some(b),
            (a, b) => a.or(b),
        };
        self.last = self.last.max(other.last);
        self.listings += other.listings;
        self.listings_window.merge(&other.listings_window);
        self.list_commands += other.list_commands;
        self.list_bytes = self.list_bytes.saturating_add(other.list_bytes);
        self.list_bytes_max = self.list_bytes_max.max(other.list_bytes_max);
        self.list_wait = self.list_wait.saturating_add(other.list_wait);
        self.looked_at += other.looked_at;
        self.looked_at_wait = self.looked_at_wait.saturating_add(other.looked_at_wait);
    }

    pub(crate) fn span(&self) -> Nanos {
        match (self.first, self.last) {
            (Some(first), Some(last)) => (last - first.time).max(Nanos(0)),
            _ => Nanos(0),
        }
    }

    fn record(&mut self, exchange: &Exchange, seen: &ExchangeSample<'_>, facts: FactSet, covered: &mut Covered) {
        self.commands += 1;
        let Some(start) = seen.start else { return };
        if self.first.is_none_or(|first| (start.time, start.packet) < (first.time, first.packet)) {
            self.first = Some(start);
        }
        self.last = self.last.max(Some(seen.end));
        let mut waited = 0;
        if let Some(time) = seen.took {
            self.response_time = self.response_time.saturating_add(time);
            waited = covered.add(start.time, seen.end).0;
            self.outstanding = self.outstanding.saturating_add(waited);
        }
        if facts.has(Fact::Open) {
            self.opens += 1;
            self.opens_window.record(start.time, REPEAT_WINDOW);
        }
        if facts.has(Fact::List) {
            self.list_commands += 1;
            self.list_wait = self.list_wait.saturating_add(waited);
            self.list_bytes = self.list_bytes.saturating_add(exchange.response.bytes);
            self.list_bytes_max = self.list_bytes_max.max(exchange.response.bytes);
            if ends_listing(exchange) {
                self.listings += 1;
                self.listings_window.record(start.time, REPEAT_WINDOW);
            }
        }
        if let Some(moved) = derived::moved(exchange) {
            let sum =
                if exchange.group == CommandGroup::Write { &mut self.bytes_written } else { &mut self.bytes_read };
            *sum = sum.saturating_add(moved);
            self.extent = self.extent.max(exchange.offset.unwrap_or(0).saturating_add(moved));
        }
    }
}

/// Returns true if this response completes a listing. SMB2 signals it with NO_MORE_FILES. An SMB1 FIND_FIRST2 starts
/// a listing; without a trailing asterisk its pattern asks for a single file.
fn ends_listing(exchange: &Exchange) -> bool {
    match exchange.command.protocol() {
        Protocol::Smb2 => exchange.status == Some(ResponseStatus::Nt(NtStatus::NO_MORE_FILES)),
        Protocol::Smb1 => {
            exchange.subcommand == Some(Subcommand::Trans2(Trans2::FIND_FIRST2))
                && exchange.path.as_ref().is_some_and(|path| path.ends_with('*'))
        }
    }
}

#[derive(Debug, Clone, Default)]
struct RecentPathState {
    share: Option<Arc<str>>,
    facts: PathFacts,
    covered: Covered,
    moved: u64,
    waited: i64,
    used_before: bool,
}

pub(crate) struct Closed {
    pub(crate) moved: u64,
    pub(crate) waited: i64,
    /// The file was used before and must not count as another one.
    pub(crate) again: bool,
}

/// Lookup key of a remembered path. The state is boxed to keep the scan compact.
#[derive(Debug, Clone)]
struct RecentPathEntry {
    path: Arc<str>,
    hash: u64,
    is_listed: bool,
    recent: Box<RecentPathState>,
}

#[derive(Debug, Clone, Default)]
pub(crate) struct RecentPaths(VecDeque<RecentPathEntry>);

pub(crate) type Leaves<'a> = &'a mut dyn FnMut(&Option<Arc<str>>, &Arc<str>, &PathFacts);

impl RecentPaths {
    pub(crate) fn record(
        &mut self,
        exchange: &Exchange,
        seen: &ExchangeSample<'_>,
        facts: FactSet,
        leaves: Leaves<'_>,
    ) -> Option<Closed> {
        // Truncated names can be equal for different files.
        let path = exchange.path.as_ref().filter(|path| !path.ends_with(CUT_NAME_MARK))?;
        // Commands on an open handle share the `Arc` of its path.
        let is_same = |slot: &RecentPathEntry| Arc::ptr_eq(&slot.path, path) && slot.recent.share == exchange.share;
        let known = self.0.iter().rposition(is_same);
        let hash = if known.is_none() { hash(path) } else { 0 };
        let is_alike =
            |slot: &RecentPathEntry| slot.hash == hash && slot.path == *path && slot.recent.share == exchange.share;
        let known = known.or_else(|| {
            let at = self.0.iter().rposition(is_alike)?;
            self.0[at].path = Arc::clone(path);
            Some(at)
        });
        let at = match known {
            Some(at) => at,
            None if facts.has(Fact::Open) || facts.has(Fact::List) => {
                if self.0.len() == RECENT_PATHS_MAX
                    && let Some(oldest) = self.0.pop_front()
                {
                    oldest.leave(leaves);
                }
                let recent = Box::new(RecentPathState { share: exchange.share.clone(), ..RecentPathState::default() });
                self.0.push_back(RecentPathEntry { path: Arc::clone(path), hash, is_listed: false, recent });
                self.0.len() - 1
            }
            None => return None,
        };
        if at + 1 < self.0.len()
            && facts.has(Fact::Open)
            && let Some(again) = self.0.remove(at)
        {
            self.0.push_back(again);
        }
        let at = if facts.has(Fact::Open) { self.0.len() - 1 } else { at };
        let RecentPathEntry { is_listed, recent, .. } = &mut self.0[at];
        *is_listed |= facts.has(Fact::List);
        if facts.has(Fact::Open) {
            (recent.moved, recent.waited) = (0, 0);
        }
        let before = (recent.facts.bytes_read + recent.facts.bytes_written, recent.facts.outstanding);
        recent.facts.record(exchange, seen, facts, &mut recent.covered);
        recent.moved += recent.facts.bytes_read + recent.facts.bytes_written - before.0;
        recent.waited += recent.facts.outstanding - before.1;
        if !is_close(exchange) {
            return None;
        }
        let closed = Closed { moved: recent.moved, waited: recent.waited, again: recent.used_before };
        recent.used_before |= recent.moved > 0;
        if closed.moved == 0 && !*is_listed {
            self.look_at(&exchange.share, path, closed.waited);
        }
        Some(closed)
    }

    fn look_at(&mut self, share: &Option<Arc<str>>, path: &str, waited: i64) {
        let parent = derived::directory(path);
        let is_parent = |slot: &RecentPathEntry| {
            slot.is_listed && derived::below_share(&slot.path) == parent && slot.recent.share == *share
        };
        let Some(at) = self.0.iter().rposition(is_parent) else { return };
        // Keeps the directory among the most recent while its entries are used.
        if let Some(mut directory) = self.0.remove(at) {
            let facts = &mut directory.recent.facts;
            facts.looked_at += 1;
            facts.looked_at_wait = facts.looked_at_wait.saturating_add(waited);
            self.0.push_back(directory);
        }
    }

    pub(crate) fn finish(self, leaves: Leaves<'_>) {
        self.0.into_iter().for_each(|slot| slot.leave(leaves));
    }
}

impl RecentPathEntry {
    fn leave(self, leaves: Leaves<'_>) {
        if self.recent.facts.is_of_interest() {
            leaves(&self.recent.share, &self.path, &self.recent.facts);
        }
    }
}
