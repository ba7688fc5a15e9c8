//! What clients were allowed to keep, and read again all the same, in the JSON report.

use serde::Serialize;
use smbscope_stats::CachingFigures;
use std::sync::Arc;

/// Opportunistic caching: which opens were granted an oplock or a lease, and which reads brought bytes that the session had
/// read before and that, as far as the capture shows, did not change. docs/definitions.md says how that is told.
#[derive(Serialize, Default)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(super) struct CachingEntry {
    /// Successful opens by what they were granted; only what occurred.
    opens: Vec<Opens>,
    /// Successful opens of which the capture does not show it.
    unknown_opens: u64,
    /// Reads that brought data.
    reads: u64,
    bytes_read: u64,
    /// The repeated ones.
    repeated: RepeatedReadsEntry,
    /// Those of each client, most bytes first, at most 1,000.
    clients: Vec<ClientRereads>,
    /// Those of each client and file, most bytes first, at most 1,000.
    files: Vec<FileRereads>,
}

#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct Opens {
    /// `not requested`, `not granted`, the level of an oplock, or the states of a lease.
    granted: &'static str,
    #[cfg_attr(feature = "schema", schemars(range(min = 1)))]
    count: u64,
}

#[derive(Serialize, Default)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(rename = "RepeatedReads"))]
struct RepeatedReadsEntry {
    reads: u64,
    bytes: u64,
    /// Of these, reads through an open with an oplock or lease that allowed the client to keep the bytes.
    cacheable_reads: u64,
    cacheable_bytes: u64,
}

#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct ClientRereads {
    /// IP address.
    client: String,
    #[serde(flatten)]
    repeated: RepeatedReadsEntry,
}

#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct FileRereads {
    /// IP address.
    client: String,
    share: Option<Arc<str>>,
    /// Path below the share.
    path: Arc<str>,
    #[serde(flatten)]
    repeated: RepeatedReadsEntry,
}

impl CachingEntry {
    /// Lists of clients and files hold `listed` entries at most.
    pub(super) fn new(figures: &CachingFigures, listed: usize) -> CachingEntry {
        let clients = figures.clients.iter().take(listed);
        let files = figures.files.iter().take(listed);
        CachingEntry {
            opens: figures
                .opens
                .iter()
                .map(|(caching, count)| Opens { granted: caching.name(), count: *count })
                .collect(),
            unknown_opens: figures.unknown_opens,
            reads: figures.reads.reads,
            bytes_read: figures.reads.bytes,
            repeated: RepeatedReadsEntry::new(&figures.repeated),
            clients: clients
                .map(|(client, row)| ClientRereads {
                    client: client.to_string(),
                    repeated: RepeatedReadsEntry::new(row),
                })
                .collect(),
            files: files
                .map(|((client, file), row)| FileRereads {
                    client: client.to_string(),
                    share: file.share.clone(),
                    path: file.path.clone(),
                    repeated: RepeatedReadsEntry::new(row),
                })
                .collect(),
        }
    }
}

impl RepeatedReadsEntry {
    fn new(row: &smbscope_stats::RereadCounts) -> RepeatedReadsEntry {
        RepeatedReadsEntry {
            reads: row.all.reads,
            bytes: row.all.bytes,
            cacheable_reads: row.cacheable.reads,
            cacheable_bytes: row.cacheable.bytes,
        }
    }
}
