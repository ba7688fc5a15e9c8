//! Tables of shares, files, clients, servers and users.

use crate::bounded::BottomKTable;
use crate::derived;
use crate::summary::{DurationStatistics, Summary, SummaryPrecision};
use serde::{Deserialize, Deserializer, Serialize};
use smbscope_model::{CommandGroup, Exchange, TimeKind};
use std::hash::Hash;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

/// Shares, files, clients, servers, or users; others share one row.
pub const ENTITIES_MAX: usize = 10_000;

/// Bytes of names per such table: 400 each.
const ENTITY_NAMES_MAX: usize = 4 << 20;

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(rename = "File"))]
pub struct FileKey {
    pub share: Option<Arc<str>>,
    /// Path below the share. A final ellipsis (…) stands for a part missing in the capture.
    pub path: Arc<str>,
}

pub(crate) trait EntityKey: Hash + Ord + Clone {
    fn name_bytes(&self) -> usize {
        0
    }
}

impl EntityKey for IpAddr {}
impl EntityKey for SocketAddr {}

impl EntityKey for Arc<str> {
    fn name_bytes(&self) -> usize {
        self.len()
    }
}

impl EntityKey for FileKey {
    fn name_bytes(&self) -> usize {
        // Share names are few and stored once.
        self.path.len()
    }
}

#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct EntityStatistics {
    /// Number of commands.
    pub count: u64,
    /// Commands with a response time: complete ones of the headline groups.
    pub timed: u64,
    /// Error responses.
    pub errors: u64,
    /// Bytes read: the requested length of complete reads without error, capped at the size of the response.
    pub bytes_read: u64,
    /// Bytes written: the given length of complete writes without error.
    pub bytes_written: u64,
    /// Response times of the headline groups. Percentiles are exact up to 256 values (files, clients and servers: 64)
    /// and within 1.6% above.
    pub response_time: DurationStatistics,
    /// Response time by group, for clients and servers only, in the order of [`CommandGroup::ALL`]. Empty
    /// groups are omitted.
    #[serde(skip)]
    pub groups: Vec<(CommandGroup, DurationStatistics)>,
}

#[derive(Debug, Clone, PartialEq)]
pub struct Entities<K> {
    pub entries: Vec<(K, EntityStatistics)>,
    pub other: Option<EntityStatistics>,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(bound(serialize = "K: EntityKey + Serialize", deserialize = "K: EntityKey + Deserialize<'de>"))]
pub(crate) struct EntityTable<K> {
    keeps: Keeps,
    #[serde(deserialize_with = "filled")]
    entries: BottomKTable<K, EntityTally>,
    other: EntityTally,
}

fn filled<'de, K: EntityKey + Deserialize<'de>, D: Deserializer<'de>>(
    entries: D,
) -> Result<BottomKTable<K, EntityTally>, D::Error> {
    no_entries(ENTITIES_MAX).filled(entries)
}

fn no_entries<K: EntityKey>(capacity: usize) -> BottomKTable<K, EntityTally> {
    BottomKTable::weighing(capacity, K::name_bytes, ENTITY_NAMES_MAX)
}

#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub(crate) enum Keeps {
    Whole(SummaryPrecision),
    Groups(SummaryPrecision),
}

#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(crate) struct EntityTally {
    pub(crate) count: u64,
    errors: u64,
    bytes_read: u64,
    bytes_written: u64,
    response_time: Option<Box<Summary>>,
    groups: Vec<(CommandGroup, Summary)>,
}

impl<K: EntityKey> EntityTable<K> {
    pub(crate) fn new(keeps: Keeps) -> EntityTable<K> {
        EntityTable::with_capacity(keeps, ENTITIES_MAX)
    }

    fn with_capacity(keeps: Keeps, capacity: usize) -> EntityTable<K> {
        EntityTable { keeps, entries: no_entries(capacity), other: EntityTally::default() }
    }

    /// Counts an exchange in the entry of a key, which is built only if `is` does not match the most recent key.
    #[inline]
    pub(crate) fn record(&mut self, is: impl Fn(&K) -> bool, key: impl FnOnce() -> K, exchange: &Exchange) {
        let keeps = self.keeps;
        let other = &mut self.other;
        match self.entries.recent_entry(is, key, |_, evicted| other.merge(&evicted)) {
            Some(tally) => tally.record(exchange, keeps),
            None => self.other.record(exchange, keeps),
        }
    }

    pub(crate) fn merge(&mut self, part: EntityTable<K>) {
        self.other.merge(&part.other);
        let other = &mut self.other;
        self.entries.merge(part.entries, EntityTally::merge, |_, evicted| other.merge(&evicted));
    }

    pub(crate) fn finish(&self) -> Entities<K> {
        let mut entries: Vec<(K, EntityStatistics)> =
            self.entries.iter().map(|(k, tally)| (k.clone(), tally.finish())).collect();
        // The sort is stable: entries with equal times stay in key order.
        entries.sort_by_key(|(_, entity)| std::cmp::Reverse(entity.response_time.sum_ns));
        Entities { entries, other: (self.other.count > 0).then(|| self.other.finish()) }
    }
}

impl EntityTally {
    pub(crate) fn record(&mut self, exchange: &Exchange, keeps: Keeps) {
        self.count += 1;
        let failed = derived::failed(exchange);
        self.errors += u64::from(failed);
        if !exchange.is_complete() {
            return;
        }
        if let (false, Some(length)) = (failed, exchange.length) {
            match exchange.group {
                CommandGroup::Read => self.bytes_read += length.min(exchange.response.bytes),
                CommandGroup::Write => self.bytes_written += length,
                _ => {}
            }
        }
        let time = exchange.time(TimeKind::ResponseTime).filter(|_| exchange.group.in_headline());
        let Some(time) = time else { return };
        match keeps {
            Keeps::Whole(limit) => {
                self.response_time.get_or_insert_with(|| Box::new(Summary::new(limit))).record(time);
            }
            Keeps::Groups(limit) => self.group(exchange.group, || Summary::new(limit)).record(time),
        }
    }

    fn group(&mut self, group: CommandGroup, new: impl FnOnce() -> Summary) -> &mut Summary {
        let at = self.groups.iter().position(|(known, _)| *known == group).unwrap_or_else(|| {
            self.groups.push((group, new()));
            self.groups.len() - 1
        });
        &mut self.groups[at].1
    }

    pub(crate) fn merge(&mut self, other: &EntityTally) {
        self.count += other.count;
        self.errors += other.errors;
        self.bytes_read += other.bytes_read;
        self.bytes_written += other.bytes_written;
        match (&mut self.response_time, &other.response_time) {
            (Some(mine), Some(theirs)) => mine.merge(theirs),
            (mine @ None, Some(theirs)) => *mine = Some(theirs.clone()),
            (_, None) => {}
        }
        for (group, theirs) in &other.groups {
            self.group(*group, || theirs.empty()).merge(theirs);
        }
    }

    pub(crate) fn response_time_sum(&self) -> i128 {
        self.response_time.as_ref().map_or(0, |summary| summary.sum_ns())
    }

    pub(crate) fn finish(&self) -> EntityStatistics {
        let mut groups: Vec<&(CommandGroup, Summary)> = self.groups.iter().collect();
        groups.sort_by_key(|(group, _)| *group);
        let whole = groups.iter().map(|(_, summary)| summary).fold(None, |whole: Option<Summary>, part| {
            let mut whole = whole.unwrap_or_else(|| part.empty());
            whole.merge(part);
            Some(whole)
        });
        let whole = whole.as_ref().or(self.response_time.as_deref());
        let response_time = whole.map(Summary::figures).unwrap_or_default();
        EntityStatistics {
            count: self.count,
            timed: response_time.count,
            errors: self.errors,
            bytes_read: self.bytes_read,
            bytes_written: self.bytes_written,
            response_time,
            groups: groups.into_iter().map(|(group, summary)| (*group, summary.figures())).collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use smbscope_model::Nanos;
    use smbscope_testkit::exchange::read;
    use smbscope_wire::status::NtStatus;

    impl EntityKey for u32 {}
    impl EntityKey for &str {
        fn name_bytes(&self) -> usize {
            self.len()
        }
    }

    fn record<K: EntityKey>(table: &mut EntityTable<K>, key: &K, exchange: &Exchange) {
        table.record(|known| known == key, || key.clone(), exchange);
    }

    #[test]
    fn long_names_make_a_table_shorter_and_no_command_is_lost() {
        let names: Vec<String> = (0..2_000).map(|n| format!("{n:04096}")).collect();
        let mut table = EntityTable::new(Keeps::Whole(SummaryPrecision::ENTITY));
        names.iter().for_each(|name| record(&mut table, &name.as_str(), &read(0, 1_000)));
        let finished = table.finish();
        // 4 MiB hold 1,024 names of 4 KiB.
        assert_eq!((finished.entries.len(), finished.other.map(|other| other.count)), (1_024, Some(976)));
    }

    #[test]
    fn bytes_read_are_those_that_came_back() {
        let mut short = read(0, 1_000);
        short.length = Some(4_096);
        short.response.bytes = 164;
        let mut failed = short.clone();
        failed.status = Some(smbscope_model::ResponseStatus::Nt(NtStatus(0xc000_0011)));
        let mut table = EntityTable::new(Keeps::Whole(SummaryPrecision::ENTITY));
        record(&mut table, &1, &short);
        record(&mut table, &1, &failed);
        let entity = &table.finish().entries[0].1;
        assert_eq!((entity.count, entity.errors, entity.bytes_read, entity.bytes_written), (2, 1, 164, 0));
    }

    #[test]
    fn entries_come_by_total_response_time() {
        let mut table = EntityTable::new(Keeps::Whole(SummaryPrecision::ENTITY));
        record(&mut table, &"a", &read(0, 1_000));
        record(&mut table, &"b", &read(0, 5_000));
        record(&mut table, &"c", &read(0, 1_000));
        let order: Vec<_> = table.finish().entries.iter().map(|(key, _)| *key).collect();
        assert_eq!(order, ["b", "a", "c"]);
    }

    #[test]
    fn what_does_not_fit_is_added_up_and_no_record_is_lost() {
        let mut whole = EntityTable::with_capacity(Keeps::Groups(SummaryPrecision::FILE), 8);
        let mut parts = [whole.clone(), whole.clone()];
        for key in 0..30u32 {
            record(&mut whole, &key, &read(0, i64::from(key) * 100));
            record(&mut parts[key as usize % 2], &key, &read(0, i64::from(key) * 100));
        }
        let [mut left, right] = parts;
        left.merge(right);
        let finished = whole.finish();
        assert_eq!((finished.entries.len(), finished.other.as_ref().map(|o| o.count)), (8, Some(22)));
        assert_eq!(left.finish(), finished);
        // Σ 100·k for k = 0 … 29 is 100 · 29·30/2 = 43,500.
        let total: i128 = finished.entries.iter().map(|(_, e)| e.response_time.sum_ns).sum();
        assert_eq!(total + finished.other.map_or(0, |o| o.response_time.sum_ns), 43_500);
    }

    #[test]
    fn the_busiest_entries_have_percentiles_within_a_64th() {
        for keeps in [
            Keeps::Whole(SummaryPrecision::FILE),
            Keeps::Whole(SummaryPrecision::ENTITY),
            Keeps::Groups(SummaryPrecision::FILE),
        ] {
            let mut table = EntityTable::new(keeps);
            (1..=10_000).for_each(|n| record(&mut table, &1, &read(0, n * 1_000)));
            let figures = table.finish().entries[0].1.response_time;
            // Of 1,000, 2,000 … 10,000,000 ns: rank 9,999 · 0.95 = 9,499.05 is 9,500,050.
            let p95 = figures.p95.map_or(0, |Nanos(ns)| ns);
            assert!((p95 - 9_500_050).abs() <= 9_500_050 / 64, "{p95}");
            assert_eq!(figures.mean, Some(Nanos(5_000_500)));
        }
    }

    #[test]
    fn groups_of_an_entry_are_apart_and_add_up() {
        let mut table = EntityTable::new(Keeps::Groups(SummaryPrecision::FILE));
        let write = |time| Exchange { group: CommandGroup::Write, ..read(0, time) };
        [read(0, 10), read(0, 30), write(500)].iter().for_each(|exchange| record(&mut table, &1, exchange));
        let entity = &table.finish().entries[0].1;
        let p50: Vec<_> = entity.groups.iter().map(|(group, figures)| (*group, figures.p50)).collect();
        assert_eq!(p50, [(CommandGroup::Read, Some(Nanos(20))), (CommandGroup::Write, Some(Nanos(500)))]);
        assert_eq!((entity.response_time.sum_ns, entity.response_time.p50), (540, Some(Nanos(30))));
    }
}
