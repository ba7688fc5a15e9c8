//! A local folder in place of a share: the baseline of a measurement, with the same operations and no server.
//!
//! Each operation makes the file system calls that correspond to the commands of an SMB2 client, and each call has a
//! sample under the name of that command: CREATE for an open, READ for a read. Groups and reports are therefore the
//! same. Calls block their thread, so users who should work in parallel need a worker each.
//!
//! Names can't reach anything outside the folder, and links that lead outside are not followed (`cap_std`). There are
//! no share modes, leases or oplocks; of the caching flags only write-through has an effect.

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

/// Largest read or write per call: the size that SMB 3 servers allow per command.
const TRANSFER_MAX: u32 = 8 << 20;

#[derive(Debug)]
pub struct LocalSession {
    root: Dir,
    open: HashMap<u64, LocalOpenFile>,
    next: u64,
    calls: u64,
    data: Vec<u8>,
    samples: Samples,
    facts: SessionParameters,
    timeout: Duration,
}

impl LocalSession {
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

    pub fn facts(&self) -> &SessionParameters {
        &self.facts
    }

    pub fn samples(&mut self) -> &mut Samples {
        &mut self.samples
    }

    pub async fn rest(&mut self, until: Instant) -> Result<(), ClientError> {
        tokio::time::sleep_until(until.into()).await;
        Ok(())
    }

    /// Never returns: a folder sends no messages.
    pub(super) async fn disturbed(&self) -> std::io::Result<()> {
        std::future::pending().await
    }

    pub async fn echo(&mut self) -> Result<(), ClientError> {
        Ok(())
    }

    /// Does nothing: control codes address a server.
    pub async fn control(&mut self, _control: &FsctlProfile, _handle: Option<FileHandle>) -> Result<(), ClientError> {
        Ok(())
    }

    pub async fn reauthenticate(&mut self) -> Result<(), ClientError> {
        Ok(())
    }

    pub async fn connect_again(&mut self, _tree: TreeConnectTarget) -> Result<(), ClientError> {
        Ok(())
    }

    pub async fn disconnect(&mut self) -> Result<(), ClientError> {
        self.open.clear();
        Ok(())
    }
}
