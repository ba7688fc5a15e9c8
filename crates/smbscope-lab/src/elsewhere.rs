//! The crate on systems other than Linux: no server can be started, so none is ever found, and types that stand for a
//! running one have no values.

use crate::{
    LabError, LabServerSettings, LinkEmulation, SambaClients, SambaCount, SambaOperation, SmbstatusReading,
    StorageFigures,
};
use std::collections::BTreeMap;
use std::convert::Infallible;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;
use tempfile::TempDir;

/// Error of every attempt to start a server.
const WHY: &str = if cfg!(windows) {
    "a private server needs Linux: run smbscope in WSL (wsl --install)"
} else {
    "a private server needs Linux: run smbscope in a virtual machine or a container"
};

pub fn available() -> Result<(), String> {
    Err(WHY.to_owned())
}

pub fn version() -> Option<String> {
    None
}

#[derive(Debug, Clone, Default)]
pub struct Launcher;

impl Launcher {
    pub fn new() -> Launcher {
        Launcher
    }

    pub fn start(&self, settings: &LabServerSettings) -> Result<LabServer, LabError> {
        settings.check()?;
        Err(LabError::Unavailable(WHY.to_owned()))
    }
}

#[derive(Debug)]
pub enum LabServer {}

impl LabServer {
    pub fn record(&self) -> &ServerRecord {
        match *self {}
    }

    pub fn address(&self) -> SocketAddr {
        match *self {}
    }

    pub fn share(&self) -> &'static str {
        match *self {}
    }

    pub fn share_folder(&self) -> &Path {
        match *self {}
    }

    pub fn user(&self) -> &str {
        match *self {}
    }

    pub fn password(&self) -> &str {
        match *self {}
    }
}

#[derive(Debug, Clone)]
pub struct ServerRecord {
    pub folder: PathBuf,
    pub settings: LabServerSettings,
    pub link: Option<LinkEmulation>,
    never: Infallible,
}

impl ServerRecord {
    pub fn address(&self) -> SocketAddr {
        match self.never {}
    }

    pub fn log_file(&self) -> PathBuf {
        match self.never {}
    }

    pub fn server_interface(&self) -> &str {
        match self.never {}
    }

    pub fn at_server<T: Send>(&self, _work: impl FnOnce() -> T + Send) -> std::io::Result<T> {
        match self.never {}
    }

    pub fn pids(&self) -> Vec<u32> {
        match self.never {}
    }

    pub fn cpu_time(&self) -> Duration {
        match self.never {}
    }

    pub fn scanner_cpu_time(&self) -> Option<Duration> {
        match self.never {}
    }

    pub fn storage(&self) -> Option<StorageFigures> {
        match self.never {}
    }
}

#[derive(Debug, Clone, Default)]
pub struct StateFolder;

impl StateFolder {
    pub fn new(_folder: &Path) -> Result<StateFolder, LabError> {
        Ok(StateFolder)
    }

    pub fn servers(&self) -> Result<Vec<ServerRecord>, LabError> {
        Ok(Vec::new())
    }
}

#[derive(Debug, Clone)]
pub enum SambaStatus {}

impl SambaStatus {
    pub fn find(_conf: Option<&Path>) -> Option<SambaStatus> {
        None
    }

    pub fn profile(&self) -> Result<SmbstatusReading<BTreeMap<SambaOperation, SambaCount>>, String> {
        match *self {}
    }

    pub fn clients(&self) -> Result<SmbstatusReading<SambaClients>, String> {
        match *self {}
    }
}

/// Temporary folder of this process. A killed one leaves it.
#[derive(Debug)]
pub struct Workplace(TempDir);

impl Workplace {
    pub fn open() -> Result<Workplace, LabError> {
        let above = std::env::temp_dir();
        let made = tempfile::Builder::new().prefix("smbscope-work-").tempdir_in(&above);
        made.map(Workplace).map_err(LabError::file("make a folder in", &above))
    }

    pub fn path(&self) -> &Path {
        self.0.path()
    }
}
