//! What is known about a server outside the process that started it: `state.json` in its folder. No password is in it.

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

/// What is known about a server.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ServerRecord {
    /// Its name among the servers of the same state folder.
    pub name: String,
    /// Everything of it is in here.
    pub folder: PathBuf,
    /// The shared files.
    pub share_folder: PathBuf,
    /// The account as which the files of a given folder are accessed; each user's own where it is absent.
    #[serde(default)]
    pub accessed_as: Option<String>,
    /// The process that cleans up.
    pub owner: Process,
    /// It stays when the process that asked for it ends.
    #[serde(default)]
    pub detached: bool,
    /// What makes the link to it slow, where something does.
    #[serde(default)]
    pub link: Option<LinkEmulation>,
    /// Where the slow disk below the share is mounted, where there is one.
    #[serde(default)]
    pub storage_mount: Option<PathBuf>,
    /// Samba's first process; absent while it is being started.
    pub smbd: Option<Process>,
    /// Where clients connect to; 0 while it is being started.
    pub port: u16,
    /// When it was started, in seconds since 1970.
    pub started: u64,
    /// Its users, the first one being [`Server::user`](crate::Server::user).
    pub users: Vec<LabUser>,
    /// How it was asked to be.
    pub settings: LabServerSettings,
}

impl ServerRecord {
    /// Where clients connect to.
    pub fn address(&self) -> SocketAddr {
        let address = match self.link {
            Some(LinkEmulation::Network { server, .. }) => server,
            Some(LinkEmulation::Proxy { .. }) | None => Ipv4Addr::LOCALHOST,
        };
        SocketAddr::from((address, self.port))
    }

    /// Where a client's packets can be captured.
    pub fn interface(&self) -> &str {
        match &self.link {
            Some(LinkEmulation::Network { interface, .. }) => interface,
            Some(LinkEmulation::Proxy { .. }) | None => "lo",
        }
    }

    /// The first user.
    pub fn user(&self) -> &str {
        self.users.first().map_or("", |user| &user.name)
    }

    /// What `bench` takes as its target.
    pub fn url(&self) -> String {
        self.url_of(SHARE)
    }

    /// The same for the share that requires encryption.
    pub fn encrypted_url(&self) -> String {
        self.url_of(ENCRYPTED_SHARE)
    }

    fn url_of(&self, share: &str) -> String {
        format!("smb://{}@{}/{share}", self.user(), self.address())
    }

    /// A file with the first user's password, which only the owner of the server can read.
    pub fn password_file(&self) -> PathBuf {
        self.folder.join(PASSWORD_FILE)
    }

    /// How long ago it was started.
    pub fn uptime(&self) -> Duration {
        let now = SystemTime::UNIX_EPOCH.elapsed().unwrap_or_default();
        now.saturating_sub(Duration::from_secs(self.started))
    }

    /// Samba's processes: the first one, one for each connection, and helpers.
    pub fn pids(&self) -> Vec<u32> {
        let members = family::members(&self.folder, Some(LabProcessRole::Samba));
        members.into_iter().map(|pid| pid.as_raw_nonzero().get().unsigned_abs()).collect()
    }

    /// Connections to Samba, each of which has a process.
    pub fn sessions(&self) -> usize {
        let Some(smbd) = self.smbd else { return 0 };
        family::sessions(&family::members(&self.folder, Some(LabProcessRole::Samba)), smbd)
    }

    /// User and system time of Samba's processes so far, ended connections included. It is a sum over processes that
    /// come and go: what is read twice in quick succession may differ by a connection that ends just then.
    pub fn cpu_time(&self) -> Duration {
        let members = family::members(&self.folder, Some(LabProcessRole::Samba));
        // The id is another process's when Samba has ended.
        family::cpu_time(&members, self.smbd.filter(Process::lives))
    }

    /// The same of the virus scanner.
    pub fn scanner_cpu_time(&self) -> Option<Duration> {
        let is_there = self.settings.antivirus.is_some();
        is_there.then(|| family::cpu_time(&family::members(&self.folder, Some(LabProcessRole::Antivirus)), None))
    }

    /// What the slow disk below the share did so far, where there is one.
    pub fn storage(&self) -> Option<StorageFigures> {
        self.settings.storage.is_slow().then(|| storage::figures(&self.folder)).flatten()
    }

    /// To Samba's processes.
    pub(crate) fn signal(&self, signal: Signal) {
        family::signal(&self.folder, Some(LabProcessRole::Samba), signal);
    }

    /// The file's name in the server's folder.
    const FILE: &str = "state.json";

    /// Reads that of a folder; `None` where there is none, or none that can be understood, or that the caller has not
    /// written.
    pub(crate) fn read(folder: &Path) -> Option<ServerRecord> {
        serde_json::from_slice(&trust::read_own(&folder.join(ServerRecord::FILE))?).ok()
    }

    /// Writes it as a whole: a reader sees the old one or the new one.
    pub(crate) fn write(&self) -> Result<(), LabError> {
        let file = self.folder.join(ServerRecord::FILE);
        let new = self.folder.join("state.json.new");
        let text = serde_json::to_vec_pretty(self).expect("a record has only keys that are strings");
        // Whatever the umask is, others must not be able to change it: it would not be read any more.
        let file_of_ours = OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(&new);
        file_of_ours.and_then(|mut file| file.write_all(&text)).map_err(LabError::file("write", &new))?;
        std::fs::rename(&new, &file).map_err(LabError::file("write", &file))
    }
}
