//! Persistent record of a server for other processes: `state.json` in its folder. Contains no password.

use crate::family::{self, LabProcessRole};
use crate::process::Process;
use crate::settings::{ENCRYPTED_SHARE, SHARE};
use crate::users::{LabUser, PASSWORD_FILE};
use crate::{LabError, LabServerSettings, LinkEmulation, StorageFigures, storage, trust};
use rustix::process::Signal;
use serde::{Deserialize, Serialize};
use std::fs::OpenOptions;
use std::io::Write;
use std::net::{Ipv4Addr, SocketAddr};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

/// Persistent record of a server.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ServerRecord {
    /// Name, unique within the state folder.
    pub name: String,
    /// Folder that holds all files of the server.
    pub folder: PathBuf,
    /// Folder with the shared files.
    pub share_folder: PathBuf,
    /// Account that accesses the files of a given folder. Absent if each user has its own.
    #[serde(default)]
    pub accessed_as: Option<String>,
    /// Process that cleans up.
    pub owner: Process,
    /// Outlives the process that started it.
    #[serde(default)]
    pub detached: bool,
    /// Emulated slow link.
    #[serde(default)]
    pub link: Option<LinkEmulation>,
    /// Mount point of the slow disk below the share.
    #[serde(default)]
    pub storage_mount: Option<PathBuf>,
    /// Main process of Samba. Absent during the start.
    pub smbd: Option<Process>,
    /// Port for clients. 0 during the start.
    pub port: u16,
    /// Start time, in seconds since 1970.
    pub started: u64,
    /// Users, the first one being [`LabServer::user`](crate::LabServer::user).
    pub users: Vec<LabUser>,
    pub settings: LabServerSettings,
}

impl ServerRecord {
    /// Returns the address for clients.
    pub fn address(&self) -> SocketAddr {
        let address = match self.link {
            Some(LinkEmulation::Network { server, .. }) => server,
            Some(LinkEmulation::Proxy { .. }) | None => Ipv4Addr::LOCALHOST,
        };
        SocketAddr::from((address, self.port))
    }

    /// Returns the interface on which a client's packets can be captured.
    pub fn interface(&self) -> &str {
        match &self.link {
            Some(LinkEmulation::Network { interface, .. }) => interface,
            Some(LinkEmulation::Proxy { .. }) | None => "lo",
        }
    }

    pub fn user(&self) -> &str {
        self.users.first().map_or("", |user| &user.name)
    }

    /// Returns the target URL for `bench`.
    pub fn url(&self) -> String {
        self.url_of(SHARE)
    }

    /// Returns the URL of the share that requires encryption.
    pub fn encrypted_url(&self) -> String {
        self.url_of(ENCRYPTED_SHARE)
    }

    fn url_of(&self, share: &str) -> String {
        format!("smb://{}@{}/{share}", self.user(), self.address())
    }

    /// Returns the file with the first user's password, readable only by the owner of the server.
    pub fn password_file(&self) -> PathBuf {
        self.folder.join(PASSWORD_FILE)
    }

    /// Returns the time since the start.
    pub fn uptime(&self) -> Duration {
        let now = SystemTime::UNIX_EPOCH.elapsed().unwrap_or_default();
        now.saturating_sub(Duration::from_secs(self.started))
    }

    /// Returns Samba's processes: the main one, one per connection, and helpers.
    pub fn pids(&self) -> Vec<u32> {
        let members = family::members(&self.folder, Some(LabProcessRole::Samba));
        members.into_iter().map(|pid| pid.as_raw_nonzero().get().unsigned_abs()).collect()
    }

    /// Returns the number of connections, each of which has a process.
    pub fn sessions(&self) -> usize {
        let Some(smbd) = self.smbd else { return 0 };
        family::sessions(&family::members(&self.folder, Some(LabProcessRole::Samba)), smbd)
    }

    /// Returns user and system time of Samba's processes, ended connections included. Readings in quick succession
    /// may miss a connection that ends in between.
    pub fn cpu_time(&self) -> Duration {
        let members = family::members(&self.folder, Some(LabProcessRole::Samba));
        // After Samba has ended, its id may belong to another process.
        family::cpu_time(&members, self.smbd.filter(Process::lives))
    }

    /// Returns the CPU time of the virus scanner, if there is one.
    pub fn scanner_cpu_time(&self) -> Option<Duration> {
        let is_there = self.settings.antivirus.is_some();
        is_there.then(|| family::cpu_time(&family::members(&self.folder, Some(LabProcessRole::Antivirus)), None))
    }

    /// Returns the statistics of the slow disk, if there is one.
    pub fn storage(&self) -> Option<StorageFigures> {
        self.settings.storage.is_slow().then(|| storage::figures(&self.folder)).flatten()
    }

    /// Sends a signal to Samba's processes.
    pub(crate) fn signal(&self, signal: Signal) {
        family::signal(&self.folder, Some(LabProcessRole::Samba), signal);
    }

    /// File name in the server's folder.
    const FILE: &str = "state.json";

    /// Reads the record of a folder. `None` if there is none, if it is invalid, or if it was not written by the
    /// caller.
    pub(crate) fn read(folder: &Path) -> Option<ServerRecord> {
        serde_json::from_slice(&trust::read_own(&folder.join(ServerRecord::FILE))?).ok()
    }

    /// Replaces the record atomically.
    pub(crate) fn write(&self) -> Result<(), LabError> {
        let file = self.folder.join(ServerRecord::FILE);
        let new = self.folder.join("state.json.new");
        let text = serde_json::to_vec_pretty(self).expect("a record has only keys that are strings");
        // Must not be writable by others whatever the umask, because it would then be rejected by
        // [`ServerRecord::read`].
        let file_of_ours = OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(&new);
        file_of_ours.and_then(|mut file| file.write_all(&text)).map_err(LabError::file("write", &new))?;
        std::fs::rename(&new, &file).map_err(LabError::file("write", &file))
    }
}
