//! State folder: contains the servers' folders with their records (`state.json`, without passwords), and cleans up.

use crate::config::LOG_FILE;
use crate::process::{self, LabProcessRole, Process};
use crate::settings::{ENCRYPTED_SHARE, SHARE};
use crate::users::{LabUser, PASSWORD_FILE};
use crate::{LabError, LabServerSettings, LinkEmulation, StorageFigures, link, mounts, storage, trust};
use rustix::fs::{FlockOperation, Mode, OFlags};
use rustix::process::{Pid, Signal, kill_process};
use serde::{Deserialize, Serialize};
use std::fs::{self, DirBuilder, OpenOptions};
use std::io::{self, Write};
use std::net::{Ipv4Addr, SocketAddr};
use std::os::fd::OwnedFd;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant, SystemTime};

/// Maximum length of a server's folder. Samba's socket paths are limited to 107 bytes (unix(7)); the longest is
/// `private/msg.sock/4194304` below the folder.
const LONGEST_FOLDER: usize = 80;

pub(crate) const SHARE_FOLDER: &str = "share";

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StateFolder(PathBuf);

impl Default for StateFolder {
    fn default() -> StateFolder {
        let runtime = std::env::var_os("XDG_RUNTIME_DIR").map(PathBuf::from).filter(|path| path.is_absolute());
        let runtime =
            runtime.filter(|path| trust::is_own_folder(path).unwrap_or(false)).map(|path| path.join("smbscope-lab"));
        StateFolder(
            runtime
                .unwrap_or_else(|| PathBuf::from(format!("/tmp/smbscope-lab-{}", rustix::process::geteuid().as_raw()))),
        )
    }
}

impl StateFolder {
    pub fn new(folder: &Path) -> Result<StateFolder, LabError> {
        std::path::absolute(folder).map(StateFolder).map_err(LabError::file("find", folder))
    }

    pub fn path(&self) -> &Path {
        &self.0
    }

    /// Returns the running servers by name. Fails if others could have written to the folder.
    pub fn servers(&self) -> Result<Vec<ServerRecord>, LabError> {
        Ok(self.records()?.into_iter().filter(|record| record.owner.lives()).collect())
    }

    pub fn stop(&self, name: &str) -> Result<(), LabError> {
        let servers = self.servers()?;
        let Some(record) = servers.iter().find(|record| record.name == name) else {
            let names: Vec<&str> = servers.iter().map(|record| record.name.as_str()).collect();
            let known =
                if names.is_empty() { "none does".to_owned() } else { format!("these do: {}", names.join(", ")) };
            return Err(LabError::Unknown { name: name.to_owned(), known });
        };
        if !record.detached {
            return Err(LabError::Owned { name: name.to_owned(), pid: record.owner.pid });
        }
        if !process::keeps(record.owner, &record.folder) {
            return Err(LabError::Foreign {
                name: name.to_owned(),
                pid: record.owner.pid,
                folder: record.folder.clone(),
            });
        }
        end_process(record.owner);
        // The keeper has cleaned up, unless it failed.
        self.sweep().map(drop)
    }

    /// Removes processes, mounts and folders of servers whose owner is gone. Returns their names.
    pub fn sweep(&self) -> Result<Vec<String>, LabError> {
        if !trust::is_own_folder(&self.0)? {
            return Ok(Vec::new());
        }
        let _lock = self.lock()?;
        self.sweep_locked()
    }

    fn sweep_locked(&self) -> Result<Vec<String>, LabError> {
        let stale: Vec<ServerRecord> = self.records()?.into_iter().filter(|record| !record.owner.lives()).collect();
        stale.iter().try_for_each(clean)?;
        Ok(stale.into_iter().map(|record| record.name).collect())
    }

    /// Returns all records by name. Folders whose record does not name them are ignored and never touched.
    fn records(&self) -> Result<Vec<ServerRecord>, LabError> {
        if !trust::is_own_folder(&self.0)? {
            return Ok(Vec::new());
        }
        let entries = fs::read_dir(&self.0).into_iter().flatten().filter_map(Result::ok);
        let mut records: Vec<ServerRecord> = entries
            .filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()))
            .filter_map(|entry| ServerRecord::read(&entry.path()).filter(|record| record.folder == entry.path()))
            .collect();
        records.sort_by(|a, b| a.name.cmp(&b.name));
        Ok(records)
    }

    pub(crate) fn claim(&self, record: &mut ServerRecord) -> Result<(), LabError> {
        let name = &record.name;
        let plain = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
        if name.is_empty() || name.len() > 40 || !name.chars().all(plain) {
            let text = format!("{name:?} is not a valid server name: use up to 40 letters, digits, - and _");
            return Err(LabError::Settings(text));
        }
        record.folder = self.0.join(name);
        if record.folder.as_os_str().len() > LONGEST_FOLDER {
            let text = format!("the path {} is too long for Samba's sockets: choose another --state", self.0.display());
            return Err(LabError::Settings(text));
        }
        self.make()?;
        let _lock = self.lock()?;
        self.sweep_locked()?;
        // An interrupted claim leaves an empty folder.
        let _ = fs::remove_dir(&record.folder);
        match DirBuilder::new().mode(0o700).create(&record.folder) {
            Ok(()) => {}
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                return Err(match ServerRecord::read(&record.folder) {
                    Some(_) => LabError::Taken(name.clone()),
                    None => LabError::File { what: "make", path: record.folder.clone(), error },
                });
            }
            Err(error) => return Err(LabError::File { what: "make", path: record.folder.clone(), error }),
        }
        record.write()
    }

    /// Creates the folder if necessary, and rejects a folder that another user created in `/tmp`.
    fn make(&self) -> Result<(), LabError> {
        let make = LabError::file("make", &self.0);
        DirBuilder::new().recursive(true).mode(0o700).create(&self.0).map_err(make)?;
        trust::is_own_folder(&self.0).map(drop)
    }

    fn lock(&self) -> Result<OwnedFd, LabError> {
        lock(&self.0.join(".lock"))
    }

    /// Held from the choice of a port until the server listens on it: Samba's sockets do not exclude each other.
    pub(crate) fn port_lock() -> Result<OwnedFd, LabError> {
        let state = StateFolder::default();
        state.make()?;
        lock(&state.0.join(".port"))
    }
}

fn lock(file: &Path) -> Result<OwnedFd, LabError> {
    let flags = OFlags::CREATE | OFlags::RDWR | OFlags::CLOEXEC | OFlags::NOFOLLOW;
    let open = rustix::fs::open(file, flags, Mode::RUSR | Mode::WUSR);
    let descriptor = open.map_err(|error| LabError::file("open", file)(error.into()))?;
    rustix::io::retry_on_intr(|| rustix::fs::flock(&descriptor, FlockOperation::LockExclusive))
        .map_err(|error| LabError::file("lock", file)(error.into()))?;
    Ok(descriptor)
}

pub(crate) fn end_process(process: Process) {
    let Some(pid) = i32::try_from(process.pid).ok().and_then(Pid::from_raw) else { return };
    for (signal, patience) in [(Signal::TERM, Duration::from_secs(20)), (Signal::KILL, Duration::from_secs(5))] {
        let patience = Instant::now() + patience;
        if process.lives() {
            let _ = kill_process(pid, signal);
        }
        while process.lives() && Instant::now() < patience {
            std::thread::sleep(Duration::from_millis(10));
        }
    }
}

pub(crate) fn clean(record: &ServerRecord) -> Result<(), LabError> {
    let folder = &record.folder;
    if !process::end(folder) {
        let said = format!("some of its processes can't be ended, and {} stays", folder.display());
        return Err(LabError::Program { program: "smbd".to_owned(), said });
    }
    if let Some(LinkEmulation::Network { interface, .. }) = &record.link {
        link::remove(interface);
    }
    // The slow disk is on top of the others.
    if let Some(at) = &record.storage_mount {
        mounts::unmount(at)?;
        // The mount point is in the server's folder, or an empty folder elsewhere.
        let _ = fs::remove_dir(at);
    }
    for name in [SHARE_FOLDER, storage::BELOW] {
        mounts::unmount(&folder.join(name))?;
    }
    // Files on foreign mounts must not be removed.
    if let Some(mount) = mounts::below(folder).map_err(LabError::file("look at", folder))?.first() {
        let error = io::Error::other("something is still mounted on it");
        return Err(LabError::file("remove", mount)(error));
    }
    match fs::remove_dir_all(folder) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(LabError::file("remove", folder)(error)),
        _ => Ok(()),
    }
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ServerRecord {
    pub name: String,
    pub folder: PathBuf,
    pub share_folder: PathBuf,
    /// Account that accesses the files of a given folder. Absent if each user has its own.
    #[serde(default)]
    pub accessed_as: Option<String>,
    pub owner: Process,
    #[serde(default)]
    pub detached: bool,
    #[serde(default)]
    pub link: Option<LinkEmulation>,
    #[serde(default)]
    pub storage_mount: Option<PathBuf>,
    /// Main process of Samba. Absent during the start.
    pub smbd: Option<Process>,
    pub port: u16,
    /// Start time, in seconds since 1970.
    pub started: u64,
    pub users: Vec<LabUser>,
    pub settings: LabServerSettings,
}

impl ServerRecord {
    pub fn address(&self) -> SocketAddr {
        let address = match self.link {
            Some(LinkEmulation::Network { server, .. }) => server,
            Some(LinkEmulation::Proxy { .. }) | None => Ipv4Addr::LOCALHOST,
        };
        SocketAddr::from((address, self.port))
    }

    pub fn log_file(&self) -> PathBuf {
        self.folder.join(LOG_FILE)
    }

    pub fn interface(&self) -> &str {
        match &self.link {
            Some(LinkEmulation::Network { interface, .. }) => interface,
            Some(LinkEmulation::Proxy { .. }) | None => "lo",
        }
    }

    /// Returns the interface at the server's end, for use with [`at_server`](ServerRecord::at_server).
    pub fn server_interface(&self) -> &str {
        match &self.link {
            Some(LinkEmulation::Network { .. }) => link::SERVER_INTERFACE,
            Some(LinkEmulation::Proxy { .. }) | None => "lo",
        }
    }

    /// Runs a closure in the server's network, on a separate thread. Child processes stay there. Requires root if that
    /// is not this machine's network.
    pub fn at_server<T: Send>(&self, work: impl FnOnce() -> T + Send) -> io::Result<T> {
        match (&self.link, self.smbd) {
            (Some(LinkEmulation::Network { .. }), Some(smbd)) if smbd.lives() => link::in_network_of(smbd.pid, work),
            (Some(LinkEmulation::Network { .. }), _) => Err(io::Error::other("its Samba has ended")),
            (Some(LinkEmulation::Proxy { .. }) | None, _) => Ok(work()),
        }
    }

    pub fn user(&self) -> &str {
        self.users.first().map_or("", |user| &user.name)
    }

    pub fn url(&self) -> String {
        self.url_of(SHARE)
    }

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

    pub fn uptime(&self) -> Duration {
        let now = SystemTime::UNIX_EPOCH.elapsed().unwrap_or_default();
        now.saturating_sub(Duration::from_secs(self.started))
    }

    pub fn pids(&self) -> Vec<u32> {
        let members = process::members(&self.folder, Some(LabProcessRole::Samba));
        members.into_iter().map(|pid| pid.as_raw_nonzero().get().unsigned_abs()).collect()
    }

    pub fn sessions(&self) -> usize {
        let Some(smbd) = self.smbd else { return 0 };
        process::sessions(&process::members(&self.folder, Some(LabProcessRole::Samba)), smbd)
    }

    /// Includes ended connections, unless they end between two readings in quick succession.
    pub fn cpu_time(&self) -> Duration {
        let members = process::members(&self.folder, Some(LabProcessRole::Samba));
        // After Samba has ended, its id may belong to another process.
        process::cpu_time(&members, self.smbd.filter(Process::lives))
    }

    pub fn scanner_cpu_time(&self) -> Option<Duration> {
        let is_there = self.settings.antivirus.is_some();
        is_there.then(|| process::cpu_time(&process::members(&self.folder, Some(LabProcessRole::Antivirus)), None))
    }

    pub fn storage(&self) -> Option<StorageFigures> {
        self.settings.storage.is_slow().then(|| storage::figures(&self.folder)).flatten()
    }

    pub(crate) fn signal(&self, signal: Signal) {
        process::signal(&self.folder, Some(LabProcessRole::Samba), signal);
    }

    const FILE: &str = "state.json";

    /// Returns `None` unless the caller wrote a valid record.
    pub(crate) fn read(folder: &Path) -> Option<ServerRecord> {
        serde_json::from_slice(&trust::read_own(&folder.join(ServerRecord::FILE))?).ok()
    }

    pub(crate) fn write(&self) -> Result<(), LabError> {
        let file = self.folder.join(ServerRecord::FILE);
        let new = self.folder.join("state.json.new");
        let text = serde_json::to_vec_pretty(self).expect("a record has only keys that are strings");
        // Others must not be able to write it whatever the umask, or [`ServerRecord::read`] would reject it.
        let file_of_ours = OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(&new);
        file_of_ours.and_then(|mut file| file.write_all(&text)).map_err(LabError::file("write", &new))?;
        std::fs::rename(&new, &file).map_err(LabError::file("write", &file))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::LabServerSettings;

    fn record(name: &str, owner: Process) -> ServerRecord {
        ServerRecord {
            name: name.to_owned(),
            folder: PathBuf::new(),
            share_folder: PathBuf::new(),
            accessed_as: None,
            link: None,
            storage_mount: None,
            owner,
            detached: true,
            smbd: None,
            port: 0,
            started: 0,
            users: Vec::new(),
            settings: LabServerSettings::default(),
        }
    }

    #[test]
    fn what_a_dead_owner_left_is_swept_and_nothing_else() {
        let directory = tempfile::tempdir().expect("a temporary directory can be made");
        let state = StateFolder::new(directory.path()).expect("the path is absolute");
        let own = Process::own();
        state.claim(&mut record("dead", Process { start: own.start + 1, ..own })).expect("the name is free");
        state.claim(&mut record("live", own)).expect("the name is free");
        fs::create_dir(directory.path().join("foreign")).expect("a folder can be made");
        fs::write(directory.path().join("foreign/state.json"), "{}").expect("a file can be written");
        assert_eq!(state.sweep().expect("the folder can be read"), Vec::<String>::new());
        let left = |name: &str| directory.path().join(name).exists();
        assert_eq!((left("dead"), left("live"), left("foreign")), (false, true, true));
        assert_eq!(state.servers().expect("the folder is ours").len(), 1);
    }

    #[test]
    fn a_name_is_taken_once_and_can_be_no_path() {
        let directory = tempfile::tempdir().expect("a temporary directory can be made");
        let state = StateFolder::new(directory.path()).expect("the path is absolute");
        state.claim(&mut record("a", Process::own())).expect("the name is free");
        let claim = |name: &str| state.claim(&mut record(name, Process::own()));
        assert!(matches!(claim("a"), Err(LabError::Taken(name)) if name == "a"));
        assert!(matches!(claim("../b"), Err(LabError::Settings(_))));
        assert!(matches!(claim(""), Err(LabError::Settings(_))));
    }
}
