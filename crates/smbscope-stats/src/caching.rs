//! Client caching: the oplocks and leases that opens were granted, and rereads of unchanged bytes, by client and file.

use crate::bounded::BottomKTable;
use crate::derived;
use crate::entity::FileKey;
use serde::{Deserialize, Deserializer, Serialize};
use smbscope_model::{CommandGroup, Exchange, GrantedCaching, groups};
use std::net::IpAddr;
use std::sync::Arc;

/// Files with repeated reads that are listed.
const REREAD_FILES_MAX: usize = 1_000;
/// Bytes of their names.
const REREAD_NAMES_MAX: usize = 512 << 10;
/// Clients with repeated reads that are listed.
const REREAD_CLIENTS_MAX: usize = 1_000;

/// Repeated reads: of bytes that the session had already read and that did not change as far as the capture shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(rename = "RepeatedReads"))]
pub struct RereadCounts {
    pub reads: u64,
    pub bytes: u64,
    /// Part of the repeated reads through an open whose oplock or lease allowed the client to cache the bytes.
    pub cacheable_reads: u64,
    pub cacheable_bytes: u64,
}

impl RereadCounts {
    fn add(&mut self, bytes: u64, cacheable: bool) {
        let cacheable = u64::from(cacheable);
        self.merge(&RereadCounts { reads: 1, bytes, cacheable_reads: cacheable, cacheable_bytes: cacheable * bytes });
    }

    fn merge(&mut self, other: &RereadCounts) {
        self.reads += other.reads;
        self.bytes += other.bytes;
        self.cacheable_reads += other.cacheable_reads;
        self.cacheable_bytes += other.cacheable_bytes;
    }
}

#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct CachingTable {
    opens: [u64; GrantedCaching::ALL.len()],
    unknown_opens: u64,
    reads: u64,
    bytes_read: u64,
    repeated: RereadCounts,
    #[serde(deserialize_with = "clients")]
    clients: BottomKTable<IpAddr, RereadCounts>,
    #[serde(deserialize_with = "files")]
    files: BottomKTable<(IpAddr, FileKey), RereadCounts>,
}

fn clients<'de, D: Deserializer<'de>>(entries: D) -> Result<BottomKTable<IpAddr, RereadCounts>, D::Error> {
    no_clients().filled(entries)
}

fn files<'de, D: Deserializer<'de>>(entries: D) -> Result<BottomKTable<(IpAddr, FileKey), RereadCounts>, D::Error> {
    no_files().filled(entries)
}

fn no_clients() -> BottomKTable<IpAddr, RereadCounts> {
    BottomKTable::new(REREAD_CLIENTS_MAX)
}

fn no_files() -> BottomKTable<(IpAddr, FileKey), RereadCounts> {
    BottomKTable::weighing(REREAD_FILES_MAX, |(_, file)| file.path.len(), REREAD_NAMES_MAX)
}

/// Opportunistic caching: oplocks and leases granted to opens, and repeated reads, which fetched bytes that the session
/// had already read and that did not change as far as the capture shows. docs/definitions.md describes the detection.
#[derive(Debug, Clone, PartialEq, Default, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(rename = "CachingEntry"))]
pub struct CachingFigures {
    /// Successful opens by oplock or lease granted. Only values that occur.
    pub opens: Vec<GrantedOpens>,
    /// Successful opens whose grant the capture does not show.
    pub unknown_opens: u64,
    /// Reads that returned data.
    pub reads: u64,
    pub bytes_read: u64,
    /// Repeated reads.
    pub repeated: RereadCounts,
    /// Repeated reads by client, most bytes first, at most 1,000.
    pub clients: Vec<ClientRereads>,
    /// Repeated reads by client and file, most bytes first, at most 1,000.
    pub files: Vec<FileRereads>,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(rename = "Opens"))]
pub struct GrantedOpens {
    /// `not requested`, `not granted`, the oplock level, or the lease states.
    pub granted: &'static str,
    #[cfg_attr(feature = "schema", schemars(range(min = 1)))]
    pub count: u64,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ClientRereads {
    /// IP address.
    #[cfg_attr(feature = "schema", schemars(with = "String"))]
    pub client: IpAddr,
    #[serde(flatten)]
    pub repeated: RereadCounts,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct FileRereads {
    /// IP address.
    #[cfg_attr(feature = "schema", schemars(with = "String"))]
    pub client: IpAddr,
    #[serde(flatten)]
    pub file: FileKey,
    #[serde(flatten)]
    pub repeated: RereadCounts,
}

impl CachingTable {
    pub(crate) fn new() -> CachingTable {
        CachingTable {
            opens: Default::default(),
            unknown_opens: 0,
            reads: 0,
            bytes_read: 0,
            repeated: RereadCounts::default(),
            clients: no_clients(),
            files: no_files(),
        }
    }

    #[inline]
    pub(crate) fn record(&mut self, exchange: &Exchange) {
        if !exchange.is_complete() || derived::failed(exchange) {
            return;
        }
        match exchange.group {
            CommandGroup::Read => self.record_read(exchange),
            CommandGroup::OpenClose if groups::opens(exchange.command) => match exchange.caching {
                Some(caching) => self.opens[caching as usize] += 1,
                None => self.unknown_opens += 1,
            },
            _ => {}
        }
    }

    fn record_read(&mut self, exchange: &Exchange) {
        let bytes = derived::size(exchange);
        self.reads += 1;
        self.bytes_read += bytes;
        if !exchange.repeated {
            return;
        }
        let cacheable = exchange.caching.is_some_and(GrantedCaching::keeps_reads);
        self.repeated.add(bytes, cacheable);
        let client = exchange.endpoints.client.ip();
        if let Some(of_client) = self.clients.entry(&client, |_, _| {}) {
            of_client.add(bytes, cacheable);
        }
        let Some(path) = &exchange.path else { return };
        let share = &exchange.share;
        let is = |(of, known): &(IpAddr, FileKey)| {
            *of == client
                && Arc::ptr_eq(&known.path, path)
                && known.share.as_ref().map(Arc::as_ptr) == share.as_ref().map(Arc::as_ptr)
        };
        let key = || (client, FileKey { share: share.clone(), path: path.clone() });
        if let Some(of_file) = self.files.recent_entry(is, key, |_, _| {}) {
            of_file.add(bytes, cacheable);
        }
    }

    pub(crate) fn merge(&mut self, other: CachingTable) {
        self.opens.iter_mut().zip(other.opens).for_each(|(mine, theirs)| *mine += theirs);
        self.unknown_opens += other.unknown_opens;
        self.reads += other.reads;
        self.bytes_read += other.bytes_read;
        self.repeated.merge(&other.repeated);
        self.clients.merge(other.clients, RereadCounts::merge, |_, _| {});
        self.files.merge(other.files, RereadCounts::merge, |_, _| {});
    }

    pub(crate) fn finish(&self) -> CachingFigures {
        fn ranked<'a, K: 'a, E>(
            rows: impl Iterator<Item = (&'a K, &'a RereadCounts)>,
            entry: impl Fn(&K, RereadCounts) -> E,
        ) -> Vec<E> {
            let mut rows: Vec<(&K, &RereadCounts)> = rows.collect();
            // The sort is stable: equal rows stay in the order of their keys.
            rows.sort_by_key(|(_, row)| std::cmp::Reverse((row.bytes, row.reads)));
            rows.into_iter().map(|(key, row)| entry(key, *row)).collect()
        }
        let opens = GrantedCaching::ALL.into_iter().zip(self.opens).filter(|(_, count)| *count > 0);
        CachingFigures {
            opens: opens.map(|(caching, count)| GrantedOpens { granted: caching.name(), count }).collect(),
            unknown_opens: self.unknown_opens,
            reads: self.reads,
            bytes_read: self.bytes_read,
            repeated: self.repeated,
            clients: ranked(self.clients.iter(), |client, repeated| ClientRereads { client: *client, repeated }),
            files: ranked(self.files.iter(), |(client, file), repeated| FileRereads {
                client: *client,
                file: file.clone(),
                repeated,
            }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use smbscope_model::{Command, ExchangeOutcome, ResponseStatus};
    use smbscope_testkit::exchange::read;
    use smbscope_wire::smb2;
    use smbscope_wire::status::NtStatus;

    fn a_read(file: u32, repeated: bool, caching: Option<GrantedCaching>) -> Exchange {
        let path = Some(format!("file{file}").into());
        Exchange { length: Some(100), path, repeated, caching, ..read(0, 1_000) }
    }

    fn open(caching: Option<GrantedCaching>) -> Exchange {
        let command = Command::Smb2(smb2::Smb2Command::CREATE);
        Exchange { command, group: CommandGroup::OpenClose, caching, ..read(0, 1_000) }
    }

    fn figures<'a>(exchanges: impl IntoIterator<Item = &'a Exchange>) -> CachingFigures {
        let mut table = CachingTable::new();
        exchanges.into_iter().for_each(|exchange| table.record(exchange));
        table.finish()
    }

    #[test]
    fn opens_count_by_what_they_were_granted_and_closes_do_not() {
        let close = Exchange { command: Command::Smb2(smb2::Smb2Command::CLOSE), ..open(None) };
        let failed = Exchange { status: Some(ResponseStatus::Nt(NtStatus(0xc000_0034))), ..open(None) };
        let lease = open(Some(GrantedCaching::LeaseReadHandle));
        let found =
            figures(&[lease.clone(), lease, open(Some(GrantedCaching::NotRequested)), open(None), close, failed]);
        let opens: Vec<_> = found.opens.iter().map(|opens| (opens.granted, opens.count)).collect();
        let expected = [(GrantedCaching::NotRequested, 1), (GrantedCaching::LeaseReadHandle, 2)];
        assert_eq!(opens, expected.map(|(caching, count)| (caching.name(), count)));
        assert_eq!((found.unknown_opens, found.reads, found.bytes_read), (1, 0, 0));
    }

    #[test]
    fn repeated_reads_stand_by_client_and_file_and_say_whether_they_had_to_be() {
        let mut lost = a_read(1, true, None);
        lost.outcome = ExchangeOutcome::ResponseEndMissing;
        let found = figures(&[
            a_read(1, false, Some(GrantedCaching::Batch)),
            a_read(1, true, Some(GrantedCaching::Batch)),
            a_read(2, true, Some(GrantedCaching::NotGranted)),
            a_read(2, true, None),
            lost,
        ]);
        // The messages have 100 bytes, which caps the data of each read.
        assert_eq!((found.reads, found.bytes_read), (4, 400));
        let repeated = |all, cacheable| RereadCounts {
            reads: all,
            bytes: 100 * all,
            cacheable_reads: cacheable,
            cacheable_bytes: 100 * cacheable,
        };
        assert_eq!(found.repeated, repeated(3, 1));
        assert_eq!(found.clients, [ClientRereads { client: IpAddr::from([10, 0, 0, 1]), repeated: repeated(3, 1) }]);
        let files: Vec<_> = found.files.iter().map(|of| (&*of.file.path, of.repeated)).collect();
        assert_eq!(files, [("file2", repeated(2, 0)), ("file1", repeated(1, 1))]);
    }

    proptest! {
        #[test]
        fn any_partition_of_the_exchanges_gives_the_same_figures(
            files in prop::collection::vec((0u32..3_000, any::<bool>()), 1..4_000),
            parts in 1usize..5,
        ) {
            let exchanges: Vec<Exchange> =
                files.iter().map(|(file, kept)| a_read(*file, true, kept.then_some(GrantedCaching::LeaseRead))).collect();
            let mut merged = CachingTable::new();
            for part in 0..parts {
                let mut table = CachingTable::new();
                exchanges.iter().skip(part).step_by(parts).for_each(|exchange| table.record(exchange));
                merged.merge(table);
            }
            prop_assert_eq!(merged.finish(), figures(&exchanges));
        }
    }
}
