//! A slow disk below the share: a file system in user space (FUSE) that hands everything on to the folder below it, and lets
//! reads, writes and flushes pass a [`device`] with a latency and limits.
//!
//! The kernel's page cache is left out (`FOPEN_DIRECT_IO`), so that every read and write of Samba's is a request to the disk.
//! Names, attributes and listings take no time: a server has these in memory. The process that takes care of the server
//! serves the file system, so that both end together; what it leaves when it is killed is an empty mount that
//! [`mounts`](crate::mounts) takes away.

mod device;
#[cfg(target_os = "linux")]
mod folder;
#[cfg(target_os = "linux")]
mod inodes;
#[cfg(target_os = "linux")]
mod mount;
#[cfg(target_os = "linux")]
mod queue;
#[cfg(target_os = "linux")]
mod serve;

pub use device::StorageFigures;
#[cfg(target_os = "linux")]
pub(crate) use mount::SlowDisk;

use std::io::Read;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Duration;

/// The folder of the files in that of the server, where the share itself is the mount.
pub(crate) const BELOW: &str = "storage";
/// In the server's folder: tells whoever connects what the disk did so far.
const SOCKET: &str = "storage.sock";

/// How long the process that serves the disk may take to say what it did.
const PATIENCE: Duration = Duration::from_secs(1);
/// Bytes of what it says.
const FIGURES_BYTES_MAX: u64 = 4096;

/// What the disk of the server in this folder did so far; nothing where nobody answers.
pub(crate) fn figures(folder: &Path) -> Option<StorageFigures> {
    let stream = UnixStream::connect(folder.join(SOCKET)).ok()?;
    stream.set_read_timeout(Some(PATIENCE)).ok()?;
    let mut said = Vec::new();
    stream.take(FIGURES_BYTES_MAX).read_to_end(&mut said).ok()?;
    serde_json::from_slice(&said).ok()
}

/// There is no FUSE that we could serve.
#[cfg(not(target_os = "linux"))]
#[derive(Debug)]
pub(crate) struct SlowDisk;

#[cfg(not(target_os = "linux"))]
impl SlowDisk {
    pub(crate) fn mount(
        _storage: crate::Storage,
        _below: &Path,
        _at: &Path,
        _folder: &Path,
    ) -> Result<Storage, crate::Error> {
        Err(crate::Error::Unavailable("slow storage needs Linux".to_owned()))
    }

    pub(crate) fn release(&self) {}
}
