//! Slow disk below the share: a FUSE file system that forwards everything to an underlying folder and sends reads,
//! writes and flushes through a [`device`] with latency and limits.
//!
//! It bypasses the page cache (`FOPEN_DIRECT_IO`), so that every read and write of Samba reaches the disk. Names,
//! attributes and listings take no time: a server has these in memory. The keeper serves the file system, so that
//! both end together. If it is killed, an empty mount remains, which [`mounts`](crate::mounts) removes.

mod device;
mod folder;
mod mount;
mod queue;
mod serve;

pub(crate) use mount::SlowDisk;

use crate::StorageFigures;
use std::io::Read;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Duration;

/// Folder with the files inside the server's folder, if the share itself is the mount point.
pub(crate) const BELOW: &str = "storage";
const SOCKET: &str = "storage.sock";

const PATIENCE: Duration = Duration::from_secs(1);
const FIGURES_BYTES_MAX: u64 = 4096;

pub(crate) fn figures(folder: &Path) -> Option<StorageFigures> {
    let stream = UnixStream::connect(folder.join(SOCKET)).ok()?;
    stream.set_read_timeout(Some(PATIENCE)).ok()?;
    let mut said = Vec::new();
    stream.take(FIGURES_BYTES_MAX).read_to_end(&mut said).ok()?;
    serde_json::from_slice(&said).ok()
}
