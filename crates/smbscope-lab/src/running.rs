//! Starts and stops a server within this process, from its folder and free port to its first answer: a minimal SMB
//! negotiation (MS-SMB2 2.2.3, MS-CIFS 2.2.4.52).

use crate::busy::CpuStressor;
use crate::command_for;
use crate::config::{self, SambaShareConfig};
use crate::link::{EmulatedNetwork, LinkImpairments, Proxy};
use crate::process::{self, LabProcessRole, Process};
use crate::state_folder::{SHARE_FOLDER, ServerRecord, clean};
use crate::storage::{self, SlowDisk};
use crate::tools::{self, Tools};
use crate::users::{self, Password, SystemAccounts};
use crate::{Antivirus, LabError, LabServerSettings, LinkEmulation, StateFolder, antivirus, mounts};
use std::fs::{self, File, Permissions};
use std::io::{self, Read, Write};
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, TcpListener, TcpStream};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use std::time::{Duration, Instant, SystemTime};

/// Time limit for the start. An idle machine needs a tenth of a second.
const PATIENCE: Duration = Duration::from_secs(30);

/// Port of SMB over TCP (MS-SMB2 2.1), always free in a private network namespace.
const SMB_PORT: u16 = 445;

#[derive(Debug)]
pub(crate) struct Running {
    pub(crate) record: ServerRecord,
    pub(crate) passwords: Vec<Password>,
    children: Vec<Child>,
    proxy: Option<Proxy>,
    network: Option<EmulatedNetwork>,
    busy: Option<CpuStressor>,
    slow_disk: Option<SlowDisk>,
    claimed: bool,
}

impl Running {
    pub(crate) fn start(
        state: &StateFolder,
        name: &str,
        settings: &LabServerSettings,
        detached: bool,
    ) -> Result<Running, LabError> {
        settings.check()?;
        let tools = Tools::find()?;
        let accounts = SystemAccounts::read()?;
        let scanner = settings.antivirus.as_ref().map(|_| antivirus::find(&tools.smbd)).transpose()?;
        let record = ServerRecord {
            name: name.to_owned(),
            folder: Default::default(),
            share_folder: Default::default(),
            accessed_as: None,
            link: None,
            storage_mount: None,
            owner: Process::own(),
            detached,
            smbd: None,
            port: 0,
            started: SystemTime::UNIX_EPOCH.elapsed().map_or(0, |since| since.as_secs()),
            users: users::choose(settings.users, &accounts)?,
            settings: settings.clone(),
        };
        let (passwords, children) = (Vec::new(), Vec::new());
        let mut running = Running {
            record,
            passwords,
            children,
            proxy: None,
            network: None,
            busy: None,
            slow_disk: None,
            claimed: false,
        };
        state.claim(&mut running.record)?;
        running.claimed = true;
        running.lay_network()?;
        running.furnish(&tools, &accounts)?;
        if let (Some(clamd), Some(Antivirus::ClamAv(signatures))) = (&scanner, &settings.antivirus) {
            running.children.push(antivirus::start(clamd, signatures.as_deref(), &running.record.folder)?);
        }
        running.connect(&tools)?;
        running.busy = settings.cpu_load.filter(|percent| *percent > 0).map(CpuStressor::start).transpose()?;
        running.record.write()?;
        tracing::info!(name, folder = %running.record.folder.display(), port = running.record.port, "a private server runs");
        Ok(running)
    }

    fn lay_network(&mut self) -> Result<(), LabError> {
        let Some(shape) = LinkImpairments::from_settings(&self.record.settings) else { return Ok(()) };
        self.record.link = Some(match EmulatedNetwork::make(&self.record.folder, shape) {
            Ok(network) => {
                let EmulatedNetwork { interface, client, server, .. } = &network;
                let link = LinkEmulation::Network { interface: interface.clone(), client: *client, server: *server };
                self.network = Some(network);
                link
            }
            Err(why) if shape.loss > 0.0 => {
                return Err(LabError::Unavailable(format!("packets can't be lost on the way to this server: {why}")));
            }
            Err(why) => LinkEmulation::Proxy { why },
        });
        // A later sweep needs to know the interface.
        self.record.write()
    }

    fn furnish(&mut self, tools: &Tools, accounts: &SystemAccounts) -> Result<(), LabError> {
        let ServerRecord { folder, settings, .. } = &self.record;
        for name in config::FOLDERS {
            make(&folder.join(name))?;
        }
        let (share_folder, accessed_as) = match &settings.share_folder {
            Some(given) => {
                let folder = given.canonicalize().map_err(LabError::file("share", given))?;
                let owner = fs::metadata(&folder).map_err(LabError::file("share", given))?.uid();
                let account = accounts.for_folder(owner);
                can_enter(account.or(self.record.users.first().map(|user| &*user.account)), &folder, accounts)?;
                (folder, account.map(str::to_owned))
            }
            None => {
                let share = folder.join(if settings.storage.is_slow() { storage::BELOW } else { SHARE_FOLDER });
                make(&share)?;
                settings.disk.map(|bytes| mounts::mount_tmpfs(&share, bytes)).transpose()?;
                (share, Some(accounts.own.clone()))
            }
        };
        let shared = match settings.storage.is_slow() {
            true => self.mount_slow_disk(&share_folder)?,
            false => share_folder.clone(),
        };
        let ServerRecord { folder, settings, .. } = &self.record;
        let conf = folder.join("smb.conf");
        let files = SambaShareConfig {
            folder: &shared,
            accessed_as: accessed_as.as_deref(),
            guest: accounts.guest.as_str(),
            has_smb3_unix_extensions: tools.knows(config::SMB3_UNIX_EXTENSIONS),
            network: self.network.as_ref(),
        };
        let text = config::text(settings, folder, &files);
        fs::write(&conf, text).map_err(LabError::file("write", &conf))?;
        if let (Some(testparm), false) = (&tools.testparm, settings.extra.is_empty()) {
            let said = tools::run(command_for(testparm).arg("-s").arg(&conf), "")?;
            if let Some(complaint) = config::complaint(&said) {
                return Err(LabError::Settings(format!("Samba does not take a setting: {complaint}")));
            }
        }
        self.record.share_folder = if settings.share_folder.is_some() { share_folder } else { shared };
        self.record.accessed_as = accessed_as;
        self.passwords = users::enroll(&self.record.folder, &self.record.users, tools)?;
        Ok(())
    }

    fn mount_slow_disk(&mut self, below: &Path) -> Result<PathBuf, LabError> {
        let at = if self.record.settings.share_folder.is_none() {
            let at = self.record.folder.join(SHARE_FOLDER);
            make(&at)?;
            at
        } else {
            // Samba acts as other accounts there, which can't enter the server's own folder.
            let place = std::env::temp_dir().canonicalize().map_err(LabError::file("find", &std::env::temp_dir()))?;
            let made = tempfile::Builder::new().prefix("smbscope-lab-").tempdir_in(&place);
            made.map_err(LabError::file("make a folder in", &place))?.keep()
        };
        self.record.storage_mount = Some(at.clone());
        self.record.write()?;
        self.slow_disk = Some(SlowDisk::mount(self.record.settings.storage, below, &at, &self.record.folder)?);
        Ok(at)
    }

    fn connect(&mut self, tools: &Tools) -> Result<(), LabError> {
        let LabServerSettings { port, server_time, .. } = self.record.settings;
        let shape = LinkImpairments::from_settings(&self.record.settings);
        match (&self.network, shape) {
            (Some(network), _) => {
                let address = SocketAddr::from((network.server, port.unwrap_or(SMB_PORT)));
                self.record.port = address.port();
                if server_time.is_some() {
                    // Samba listens on the namespace's own loopback.
                    let start = || {
                        let listener =
                            TcpListener::bind(address).map_err(|error| unusable(Some(address.port()), &error))?;
                        let samba = SocketAddr::from((Ipv4Addr::LOCALHOST, address.port()));
                        Proxy::start(vec![listener], samba, LinkImpairments::NONE, server_time)
                    };
                    let started = network.at_server(start).map_err(|error| LabError::Unavailable(error.to_string()))?;
                    self.proxy = Some(started?);
                }
                self.launch(tools, address)
            }
            (None, None) if server_time.is_none() => {
                self.record.port = self.launch_on_loopback(tools, port)?;
                Ok(())
            }
            (None, shape) => {
                let listeners = listen(port)?;
                let server = SocketAddr::from((Ipv4Addr::LOCALHOST, self.launch_on_loopback(tools, None)?));
                self.record.port = bound(&listeners)?;
                let shape = shape.unwrap_or(LinkImpairments::NONE);
                self.proxy = Some(Proxy::start(listeners, server, shape, server_time)?);
                Ok(())
            }
        }
    }

    fn launch_on_loopback(&mut self, tools: &Tools, port: Option<u16>) -> Result<u16, LabError> {
        let _lock = StateFolder::port_lock()?;
        let port = free(port)?;
        self.launch(tools, SocketAddr::from((Ipv4Addr::LOCALHOST, port))).map(|()| port)
    }

    fn launch(&mut self, tools: &Tools, address: SocketAddr) -> Result<(), LabError> {
        let port = address.port();
        let folder = &self.record.folder;
        let log = folder.join("log/smbd.out");
        let output = File::create(&log).map_err(LabError::file("make", &log))?;
        let errors = output.try_clone().map_err(LabError::file("make", &log))?;
        let mut smbd = command_for(&tools.smbd);
        smbd.args(["--foreground", "--no-process-group", "--configfile"]).arg(folder.join("smb.conf"));
        smbd.arg("--log-basename").arg(folder.join("log")).arg(format!("--port={port}"));
        smbd.current_dir("/").stdin(Stdio::null()).stdout(output).stderr(errors);
        process::mark(&mut smbd, folder, LabProcessRole::Samba);
        let failed = |said: String| LabError::Program { program: "smbd".to_owned(), said };
        let spawned = match &self.network {
            Some(network) => network.at_server(|| smbd.spawn()).and_then(|spawned| spawned),
            None => smbd.spawn(),
        };
        self.children.push(spawned.map_err(|error| failed(error.to_string()))?);
        let child = self.children.last_mut().expect("it has just been pushed");
        self.record.smbd = Process::find(child.id());

        // Allows for two round trips and lost packets.
        let LabServerSettings { delay, delay_to_client, .. } = self.record.settings;
        let far = delay.max(delay_to_client).unwrap_or_default() * 8;
        let patience = Instant::now() + PATIENCE + far;
        loop {
            if let Some(status) = child.try_wait().map_err(|error| failed(error.to_string()))? {
                return Err(failed(format!("ended at once ({status}): {}", last_words(&folder.join("log")))));
            }
            if negotiate(address, Duration::from_secs(5) + far).is_ok() {
                return Ok(());
            }
            if Instant::now() > patience {
                let said = last_words(&folder.join("log"));
                return Err(LabError::Silent { seconds: PATIENCE.as_secs(), said });
            }
            std::thread::sleep(Duration::from_millis(10));
        }
    }

    pub(crate) fn stop(mut self) -> Result<(), LabError> {
        self.clean()
    }

    fn clean(&mut self) -> Result<(), LabError> {
        if !std::mem::replace(&mut self.claimed, false) {
            return Ok(());
        }
        (self.proxy, self.busy) = (None, None);
        self.slow_disk.iter().for_each(SlowDisk::release);
        // Kill and reap first, so that they start nothing new; Samba before its scanner.
        for child in self.children.iter_mut().rev() {
            let _ = child.kill();
            let _ = child.wait();
        }
        (self.network, self.slow_disk) = (None, None);
        clean(&self.record)
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if let Err(error) = self.clean() {
            tracing::warn!("lab: {error}");
        }
    }
}

/// Checks that the account can reach files below the folder, by trying it in a process of that account: only the
/// kernel knows all rules. Only relevant if root runs the server.
fn can_enter(account: Option<&str>, folder: &Path, accounts: &SystemAccounts) -> Result<(), LabError> {
    let Some(account) = account.and_then(|name| accounts.find(name)) else { return Ok(()) };
    if account.uid == rustix::process::geteuid().as_raw() {
        return Ok(());
    }
    let mut shell = command_for("/bin/sh");
    shell.args(["-c", ":"]).uid(account.uid).gid(account.gid).current_dir(folder);
    match shell.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).status() {
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
            let (name, folder) = (&account.name, folder.display());
            let text = format!(
                "cannot share {folder}: root's rights are not given to its users, who act as {name}, and {name} can't enter it; allow that (chmod o+x on it and the folders above), or start the server as another user"
            );
            Err(LabError::Unavailable(text))
        }
        _ => Ok(()),
    }
}

fn make(folder: &Path) -> Result<(), LabError> {
    fs::create_dir(folder).map_err(LabError::file("make", folder))?;
    fs::set_permissions(folder, Permissions::from_mode(0o755)).map_err(LabError::file("make", folder))
}

fn last_words(log: &Path) -> String {
    let files = ["log.smbd", "smbd.out"].map(|name| fs::read_to_string(log.join(name)).unwrap_or_default());
    let lines = files.iter().flat_map(|text| text.lines()).map(str::trim);
    let mut words = lines.filter(|line| !line.is_empty() && !line.starts_with('[') && !line.starts_with("Copyright"));
    words.next_back().unwrap_or("it wrote nothing to its log").to_owned()
}

pub(crate) fn loopbacks() -> Vec<std::net::IpAddr> {
    let mut addresses = vec![Ipv4Addr::LOCALHOST.into()];
    if TcpListener::bind((Ipv6Addr::LOCALHOST, 0)).is_ok() {
        addresses.push(Ipv6Addr::LOCALHOST.into());
    }
    addresses
}

pub(crate) fn listen(port: Option<u16>) -> Result<Vec<TcpListener>, LabError> {
    let mut last = io::Error::from(io::ErrorKind::AddrInUse);
    // A port that is free for IPv4 may be in use for IPv6.
    for _ in 0..if port.is_some() { 1 } else { 50 } {
        match try_listen(port.unwrap_or(0)) {
            Ok(listeners) => return Ok(listeners),
            Err(error) => last = error,
        }
    }
    Err(unusable(port, &last))
}

fn try_listen(port: u16) -> io::Result<Vec<TcpListener>> {
    let mut listeners: Vec<TcpListener> = Vec::new();
    for address in loopbacks() {
        let port = listeners.first().map_or(Ok(port), |first| first.local_addr().map(|address| address.port()))?;
        listeners.push(TcpListener::bind(SocketAddr::new(address, port))?);
    }
    Ok(listeners)
}

pub(crate) fn free(port: Option<u16>) -> Result<u16, LabError> {
    let listeners = listen(port)?;
    let address = listeners.first().map(TcpListener::local_addr);
    address
        .and_then(Result::ok)
        .map(|address| address.port())
        .ok_or_else(|| unusable(port, &io::ErrorKind::Other.into()))
}

pub(crate) fn bound(listeners: &[TcpListener]) -> Result<u16, LabError> {
    let address = listeners.first().map(TcpListener::local_addr).unwrap_or(Err(io::ErrorKind::NotFound.into()));
    address.map(|address| address.port()).map_err(|error| unusable(None, &error))
}

fn unusable(port: Option<u16>, error: &io::Error) -> LabError {
    let Some(port) = port else {
        return LabError::Unavailable(format!("no free port on the loopback interface: {error}"));
    };
    LabError::Unavailable(match error.kind() {
        io::ErrorKind::AddrInUse => format!("port {port} is taken: choose another one, or none for any free one"),
        io::ErrorKind::PermissionDenied => format!("port {port} needs root: choose one from 1024 up"),
        _ => format!("cannot listen on port {port}: {error}"),
    })
}

/// Succeeds if the response starts with an SMB header. Also offers SMB2 (MS-SMB2 3.3.5.3.1), for servers of any
/// dialect.
pub(crate) fn negotiate(address: SocketAddr, patience: Duration) -> io::Result<()> {
    let mut stream = TcpStream::connect_timeout(&address, patience)?;
    stream.set_read_timeout(Some(patience))?;
    stream.set_write_timeout(Some(patience))?;
    stream.write_all(&request())?;
    let mut answer = [0; 8];
    stream.read_exact(&mut answer)?;
    match answer {
        [0, _, _, _, 0xff | 0xfe, b'S', b'M', b'B'] => Ok(()),
        _ => Err(io::Error::new(io::ErrorKind::InvalidData, "the program that listens there does not speak SMB")),
    }
}

fn request() -> Vec<u8> {
    let mut message = vec![0xff, b'S', b'M', b'B', 0x72];
    message.extend([0; 4]); // Status
    message.push(0x18); // Flags: canonicalized paths, case insensitive
    message.extend(0xc853u16.to_le_bytes()); // Flags2: Unicode, NTSTATUS, extended security, long names
    message.extend([0; 12]); // PIDHigh, SecurityFeatures, Reserved
    message.extend([0, 0, 0xfe, 0xff, 0, 0, 0, 0]); // TID, PIDLow, UID, MID
    message.push(0); // WordCount
    let mut dialects = Vec::new();
    for dialect in ["NT LM 0.12", "SMB 2.002", "SMB 2.???"] {
        dialects.push(2); // BufferFormat: dialect
        dialects.extend(dialect.as_bytes());
        dialects.push(0);
    }
    message.extend((dialects.len() as u16).to_le_bytes()); // ByteCount
    message.extend(dialects);
    let mut frame = (message.len() as u32).to_be_bytes().to_vec();
    frame.extend(message);
    frame
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::TcpListener;

    fn answering(answer: &'static [u8]) -> SocketAddr {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port is free");
        let address = listener.local_addr().expect("it is bound");
        std::thread::spawn(move || {
            let (mut stream, _) = listener.accept().expect("the probe connects");
            let mut request = [0; 4096];
            let _ = stream.read(&mut request).expect("the probe speaks first");
            stream.write_all(answer).expect("the probe listens");
        });
        address
    }

    #[test]
    fn only_an_smb_header_counts_as_an_answer() {
        let patience = Duration::from_secs(5);
        assert!(negotiate(answering(b"\0\0\0\x40\xfeSMB"), patience).is_ok());
        assert!(negotiate(answering(b"\0\0\0\x40\xffSMB"), patience).is_ok());
        assert!(negotiate(answering(b"HTTP/1.1 400"), patience).is_err());
        assert!(negotiate(answering(b""), patience).is_err());
    }

    /// MS-CIFS 2.2.3.1: the header has 32 bytes; 2.2.4.52.1: WordCount is 0 and ByteCount counts the remaining bytes.
    #[test]
    fn lengths_of_the_request_agree() {
        let frame = request();
        assert_eq!(u32::from_be_bytes([frame[0], frame[1], frame[2], frame[3]]) as usize, frame.len() - 4);
        assert_eq!(frame[4 + 32], 0);
        assert_eq!(u16::from_le_bytes([frame[37], frame[38]]) as usize, frame.len() - 39);
    }
}
