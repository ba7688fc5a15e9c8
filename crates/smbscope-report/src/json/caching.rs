//! Caching in the JSON report: opens with an oplock or lease, and data that clients read again.

use serde::Serialize;
use smbscope_stats::CachingFigures;
use std::sync::Arc;

/// Opportunistic caching: oplocks and leases granted to opens, and repeated reads, which fetched bytes that the session
/// had already read and that did not change as far as the capture shows. docs/definitions.md describes the detection.
#[derive(Serialize, Default)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(super) struct CachingEntry {
    /// Successful opens by what was granted. Only values that occur.
    opens: Vec<Opens>,
    /// Successful opens whose grant the capture does not show.
    unknown_opens: u64,
    /// Reads that returned data.
    reads: u64,
    bytes_read: u64,
    /// Repeated reads.
    repeated: RepeatedReadsEntry,
    /// Repeated reads by client, most bytes first, at most 1,000.
    clients: Vec<ClientRereads>,
    /// Repeated reads by client and file, most bytes first, at most 1,000.
    files: Vec<FileRereads>,
}

#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct Opens {
    /// `not requested`, `not granted`, the oplock level, or the lease states.
    granted: &'static str,
    #[cfg_attr(feature = "schema", schemars(range(min = 1)))]
    count: u64,
}

#[derive(Serialize, Default)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(rename = "RepeatedReads"))]
struct RepeatedReadsEntry {
    reads: u64,
    bytes: u64,
    /// Part of the repeated reads through an open whose oplock or lease allowed the client to cache the bytes.
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
