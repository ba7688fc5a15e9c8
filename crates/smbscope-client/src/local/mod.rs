//! A local folder in the place of a share: the baseline of a measurement, with the same operations and no server.
//!
//! Each operation is the calls on the file system that stand for the commands of an SMB2 client, and each call has a
//! sample under the name of that command: CREATE for an open, READ for a read. So groups and reports are the same. A call
//! blocks its thread: whoever wants users that wait at the same time gives each of them a worker.
//!
//! Nothing outside the folder is reached, whatever a name says, and no link that leads out of it is followed (`cap_std`).
//! Share modes, leases and oplocks do not exist here; flags of caching other than write-through have no meaning.

mod answer;
mod calls;
mod files;
mod paths;
#[cfg(test)]
mod tests;

use super::sample::Samples;
use super::{ClientError, FileHandle, FsctlProfile, SessionOptions, SessionParameters, TreeConnectTarget};
use cap_std::ambient_authority;
use cap_std::fs::Dir;
use files::LocalOpenFile;
use smbscope_model::Dialect;
use std::collections::HashMap;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::Path;
use std::time::{Duration, Instant};

/// The largest read or write of one call: what SMB 3 servers allow in one command.
const TRANSFER_MAX: u32 = 8 << 20;

/// A folder that is used as a share.
#[derive(Debug)]
pub struct LocalSession {
    root: Dir,
    open: HashMap<u64, LocalOpenFile>,
    /// Of the next open.
    next: u64,
    calls: u64,
    /// What was read last.
    data: Vec<u8>,
    samples: Samples,
    facts: SessionParameters,
    timeout: Duration,
}

impl LocalSession {
    /// Opens the folder.
    pub(super) fn open_folder(folder: &Path, options: &SessionOptions) -> Result<LocalSession, ClientError> {
        let root = Dir::open_ambient_dir(folder, ambient_authority())
            .map_err(|error| ClientError::Folder { folder: folder.to_owned(), error })?;
        let here = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
        Ok(LocalSession {
            root,
            open: HashMap::new(),
            next: 1,
            calls: 0,
            data: Vec::new(),
            samples: Vec::with_capacity(16),
            facts: SessionParameters {
                local: here,
                peer: here,
                dialect: Dialect::Local,
                signing: None,
                cipher: None,
                max_read: TRANSFER_MAX,
                max_write: TRANSFER_MAX,
                max_transact: TRANSFER_MAX,
                guest: false,
            },
            timeout: options.timeout,
        })
    }

    /// A folder is what it is.
    pub fn facts(&self) -> &SessionParameters {
        &self.facts
    }

    /// The calls since the caller last emptied it.
    pub fn samples(&mut self) -> &mut Samples {
        &mut self.samples
    }

    /// Waits until a point in time.
    pub async fn rest(&mut self, until: Instant) -> Result<(), ClientError> {
        tokio::time::sleep_until(until.into()).await;
        Ok(())
    }

    /// Nothing ever comes from a folder.
    pub(super) async fn disturbed(&self) -> std::io::Result<()> {
        std::future::pending().await
    }

    /// There is no way to anywhere.
    pub async fn echo(&mut self) -> Result<(), ClientError> {
        Ok(())
    }

    /// Control codes are for servers: nothing is to be done.
    pub async fn control(&mut self, _control: &FsctlProfile, _handle: Option<FileHandle>) -> Result<(), ClientError> {
        Ok(())
    }

    /// Nobody is to be authenticated.
    pub async fn reauthenticate(&mut self) -> Result<(), ClientError> {
        Ok(())
    }

    /// There is one folder.
    pub async fn connect_again(&mut self, _tree: TreeConnectTarget) -> Result<(), ClientError> {
        Ok(())
    }

    /// Closes what is open.
    pub async fn disconnect(&mut self) -> Result<(), ClientError> {
        self.open.clear();
        Ok(())
    }
}
