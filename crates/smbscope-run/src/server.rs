//! The server under test: a target (`smb://[[DOMAIN;]user@]host[:port]/share[/dir]`, after the Internet-Draft of the
//! smb scheme), a private Samba server, or a local folder as a baseline (`file:DIR`).
//!
//! [`TargetUrl`] parses a target; [`Site`] is the server with the options to connect to it.

use crate::BenchError;
use crate::metrics::verified_cpu_load;
use smbscope_client::{
    ClientSession, ClientSigningPolicy, Credentials, Encryption, Secret, SessionOptions, SessionParameters, Transport,
};
use smbscope_lab::{LabServer, LabServerSettings, Launcher, ServerRecord, StateFolder};
use smbscope_load::prepare;
use smbscope_report::bench::THIS_MACHINE;
use std::collections::BTreeMap;
use std::fmt;
use std::net::{Ipv4Addr, SocketAddr, ToSocketAddrs};
use std::path::{Path, PathBuf};
use std::str::FromStr;
use tokio::runtime::Builder;
use url::Url;

const SHAPE: &str = "expected smb://[user@]host[:port]/share[/dir]";

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TargetUrl {
    Share(ShareUrl),
    Folder(PathBuf),
}

impl FromStr for TargetUrl {
    type Err = String;

    fn from_str(text: &str) -> Result<TargetUrl, String> {
        let Some(folder) = text.strip_prefix("file:") else { return text.parse().map(TargetUrl::Share) };
        // file:///srv/data is the browsers' spelling of file:/srv/data.
        let folder = folder.strip_prefix("//").filter(|rest| rest.starts_with('/')).unwrap_or(folder);
        let folder = if cfg!(windows) { without_slash_before_drive(folder) } else { folder };
        match folder {
            "" => Err("no folder; expected file:DIR, such as file:/srv/data".to_owned()),
            // Windows reaches it by its own client.
            _ if folder.starts_with("//") && !cfg!(windows) => {
                Err(format!("{text} names another machine; expected file:DIR, such as file:/srv/data"))
            }
            _ => Ok(TargetUrl::Folder(PathBuf::from(folder))),
        }
    }
}

/// Turns the path of `file:///C:/data` into one of Windows.
fn without_slash_before_drive(folder: &str) -> &str {
    match folder.as_bytes() {
        [b'/', letter, b':', ..] if letter.is_ascii_alphabetic() => &folder[1..],
        _ => folder,
    }
}

impl fmt::Display for TargetUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            TargetUrl::Share(share) => share.fmt(f),
            TargetUrl::Folder(folder) => write!(f, "file:{}", folder.display()),
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ShareUrl {
    pub domain: Option<String>,
    /// `None` connects as a guest.
    pub user: Option<String>,
    pub host: String,
    pub port: Option<u16>,
    pub share: String,
    /// Working directory below the share, with backslashes. May be empty.
    pub directory: String,
}

impl FromStr for ShareUrl {
    type Err = String;

    fn from_str(text: &str) -> Result<ShareUrl, String> {
        let Some(rest) = text.strip_prefix("smb:").or_else(|| text.strip_prefix("SMB:")) else {
            return Err(unc(text).map_or_else(
                || SHAPE.to_owned(),
                |url| format!("a share is written as a URL here: did you mean {url}?"),
            ));
        };
        if text.contains('\\') {
            return Err(format!(
                "a backslash is not allowed: write / between the parts, and DOMAIN;user for a user of a domain; {SHAPE}"
            ));
        }
        // The URL parser would resolve them, which changes the path and possibly the share.
        let dots = |part: &str| matches!(part.to_ascii_lowercase().replace("%2e", ".").as_str(), "." | "..");
        if rest.split('/').any(dots) {
            return Err(format!(". and .. have no meaning on a share; {SHAPE}"));
        }
        // `url` parses hosts and ports of web schemes only; smb URLs have the same syntax.
        let url = Url::parse(&format!("ftp:{rest}")).map_err(|error| format!("{error}; {SHAPE}"))?;
        if url.password().is_some() {
            return Err(
                "a password in a URL would be visible to all users of this machine; omit it and smbscope asks \
                 for it, or set SMBSCOPE_PASSWORD, or use --password-file"
                    .to_owned(),
            );
        }
        if url.query().is_some() || url.fragment().is_some() {
            return Err(format!("? and # have no meaning here; write %3F and %23 in names; {SHAPE}"));
        }
        let host = url.host_str().filter(|host| !host.is_empty()).ok_or_else(|| format!("no host; {SHAPE}"))?;
        let mut parts = url.path_segments().into_iter().flatten().filter(|part| !part.is_empty()).map(decoded);
        let share = parts.next().ok_or_else(|| format!("no share; {SHAPE}"))??;
        let parts = parts.collect::<Result<Vec<_>, _>>()?;
        if let Some(bad) = parts.iter().find(|part| part.contains(['\\', '/', ':', '*', '?', '"', '<', '>', '|'])) {
            return Err(format!("{bad:?} cannot be the name of a directory on an SMB share"));
        }
        let login = decoded(url.username())?;
        let (domain, user) = match login.split_once(';') {
            Some((domain, user)) => (Some(domain.to_owned()), user.to_owned()),
            None => (None, login),
        };
        Ok(ShareUrl {
            domain,
            user: Some(user).filter(|user| !user.is_empty()),
            host: host.trim_matches(['[', ']']).to_owned(),
            // `url` drops the default port of the substitute scheme.
            port: url.port().or_else(|| text.contains(":21/").then_some(21)),
            share,
            directory: parts.join("\\"),
        })
    }
}

impl ShareUrl {
    pub(crate) fn resolve(&self, default_port: u16) -> Result<SocketAddr, BenchError> {
        let port = self.port.unwrap_or(default_port);
        let host = self.host.as_str();
        let mut found =
            (host, port).to_socket_addrs().map_err(|error| BenchError::Host { host: host.to_owned(), error })?;
        found.next().ok_or_else(|| BenchError::Unavailable(format!("the server {host} has no address; check its name")))
    }
}

impl fmt::Display for ShareUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("smb://")?;
        if let Some(user) = &self.user {
            let domain = self.domain.as_ref().map_or_else(String::new, |domain| format!("{domain};"));
            write!(f, "{domain}{user}@")?;
        }
        match self.host.contains(':') {
            true => write!(f, "[{}]", self.host)?,
            false => write!(f, "{}", self.host)?,
        }
        if let Some(port) = self.port {
            write!(f, ":{port}")?;
        }
        write!(f, "/{}", self.share)?;
        if !self.directory.is_empty() {
            write!(f, "/{}", self.directory.replace('\\', "/"))?;
        }
        Ok(())
    }
}

/// Converts a UNC path (MS-DTYP 2.2.57) or its form with slashes into a URL. Accepts a single leading backslash,
/// because a shell may have removed one.
fn unc(text: &str) -> Option<String> {
    let mut parts = text.split(['\\', '/']).skip_while(|part| part.is_empty());
    if !text.starts_with(['\\', '/']) {
        return None;
    }
    let (host, share) = (parts.next()?, parts.next().filter(|share| !share.is_empty())?);
    let rest = parts.filter(|part| !part.is_empty());
    let path: String = std::iter::once(share).chain(rest).map(|part| format!("/{}", encoded(part))).collect();
    Some(format!("smb://{host}{path}"))
}

fn encoded(part: &str) -> String {
    let mut text = String::new();
    for c in part.chars() {
        match c {
            ' ' | '%' | '?' | '#' | '"' | '<' | '>' => text.push_str(&format!("%{:02X}", u32::from(c))),
            _ => text.push(c),
        }
    }
    text
}

fn decoded(text: &str) -> Result<String, String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let [first, tail @ ..] = rest {
        let hex = |at: usize| tail.get(at).and_then(|digit| char::from(*digit).to_digit(16));
        match (first, hex(0), hex(1)) {
            (b'%', Some(high), Some(low)) => {
                bytes.push((high * 16 + low) as u8);
                rest = &tail[2..];
            }
            _ => {
                bytes.push(*first);
                rest = tail;
            }
        }
    }
    String::from_utf8(bytes).map_err(|_| format!("{text:?} is not UTF-8 when its percent signs are read; {SHAPE}"))
}

const PORTS: [u16; 2] = [445, 139];

#[derive(Debug)]
pub(crate) struct Site {
    pub(crate) options: SessionOptions,
    pub(crate) directory: String,
    /// `None` for a private server.
    pub(crate) target: Option<TargetUrl>,
    pub(crate) lab: Option<LabServer>,
    /// CPU load of the private server in percent: wanted, and measured before the load.
    cpu_load: Option<(u8, f64)>,
}

impl Site {
    pub(crate) fn open(server: &ServerUnderTest, connect: &Connect) -> Result<Site, BenchError> {
        match server {
            ServerUnderTest::Named(target) => Site::named(target, connect),
            ServerUnderTest::Private(private) => Site::private(private, connect),
        }
    }

    pub(crate) fn named(target: &TargetUrl, connect: &Connect) -> Result<Site, BenchError> {
        match target {
            TargetUrl::Share(share) => Site::share(target, share, connect),
            TargetUrl::Folder(folder) => Site::folder(target, folder, connect),
        }
    }

    /// Uses a local folder. Refuses options that only make sense with SMB.
    fn folder(target: &TargetUrl, folder: &Path, connect: &Connect) -> Result<Site, BenchError> {
        let SessionOptions { signing, encryption, compound, raw, leases, .. } = connect.options;
        let of_smb = [
            ("--signing required", signing == ClientSigningPolicy::Required),
            ("--encryption", encryption != Encryption::Off),
            ("--compound", compound),
            ("--raw", raw),
            ("--leases", leases),
        ];
        if let Some((option, _)) = of_smb.into_iter().find(|(_, asked)| *asked) {
            let text = format!("{option} applies to SMB only, and {target} is a local folder: omit it");
            return Err(BenchError::Unavailable(text));
        }
        let options = SessionOptions {
            host: THIS_MACHINE.to_owned(),
            share: folder.display().to_string(),
            folder: Some(folder.to_owned()),
            address: (Ipv4Addr::LOCALHOST, 0).into(),
            credentials: Credentials::Anonymous,
            ..connect.options.clone()
        };
        let directory = prepare::DEFAULT_DIRECTORY.to_owned();
        Ok(Site { options, directory, target: Some(target.clone()), lab: None, cpu_load: None })
    }

    fn share(named: &TargetUrl, target: &ShareUrl, connect: &Connect) -> Result<Site, BenchError> {
        let port = PORTS[usize::from(connect.options.transport == Transport::NetBios)];
        let address = target.resolve(port)?;
        let options = SessionOptions {
            address,
            host: target.host.clone(),
            share: target.share.clone(),
            credentials: credentials(target, connect)?,
            ..connect.options.clone()
        };
        let directory = prepare::directory_below(&target.directory)?;
        Ok(Site { options, directory, target: Some(named.clone()), lab: None, cpu_load: None })
    }

    /// Returns the properties of a private server by name.
    pub(crate) fn environment(&self) -> BTreeMap<String, String> {
        if self.lab.is_none() {
            return BTreeMap::new();
        }
        let version = smbscope_lab::version().map_or_else(String::new, |version| format!(" {version}"));
        let server = ("server".to_owned(), format!("a private Samba{version} on the same machine"));
        let load = self.cpu_load.iter().flat_map(|(wanted, measured)| {
            [("CPU load".to_owned(), format!("{wanted}%")), ("CPU load measured".to_owned(), format!("{measured:.0}%"))]
        });
        [server].into_iter().chain(load).collect()
    }

    /// Text of [`Heading::target`](crate::bench::progress::Heading::target).
    pub(crate) fn heading(&self, facts: &SessionParameters) -> String {
        match (&self.target, &self.lab) {
            (Some(target @ TargetUrl::Folder(_)), _) => target.to_string(),
            (Some(target), _) => format!("{target}, SMB {}", facts.dialect),
            (None, _) => format!("a private Samba at {}, SMB {}", self.options.address, facts.dialect),
        }
    }

    /// Returns the record of the lab server under test: the private one, or one started by `lab up` or `lab run` with
    /// the target's address.
    pub(crate) fn lab_record(&self) -> Option<ServerRecord> {
        if let Some(server) = &self.lab {
            return Some(server.record().clone());
        }
        lab_servers().find(|server| server.address() == self.options.address)
    }

    /// Returns the record of the lab server that the target leads to: the target itself or, if that is the address of a
    /// proxy, the server of the surrounding `lab run`.
    pub(crate) fn far_lab_record(&self) -> Option<ServerRecord> {
        let surrounding = || lab_servers().find(|server| Some(&server.folder) == lab_folder().as_ref());
        self.lab_record().or_else(surrounding)
    }

    fn private(wanted: &Private, connect: &Connect) -> Result<Site, BenchError> {
        if connect.options.transport == Transport::NetBios {
            let text = "the private server accepts no NetBIOS sessions: omit --transport, or name a target";
            return Err(BenchError::Unavailable(text.to_owned()));
        }
        if let Err(why) = smbscope_lab::available() {
            return Err(BenchError::Unavailable(format!(
                "no target, and no private server can be started: {why}; name a target: smb://[user@]host/share"
            )));
        }
        let signing = match connect.options.signing {
            _ if wanted.settings.signing != smbscope_lab::ServerSigningPolicy::default() => wanted.settings.signing,
            ClientSigningPolicy::Off => smbscope_lab::ServerSigningPolicy::Off,
            ClientSigningPolicy::On => smbscope_lab::ServerSigningPolicy::On,
            ClientSigningPolicy::Required => smbscope_lab::ServerSigningPolicy::Required,
        };
        let guests = wanted.settings.guests || matches!(connect.login, Login::Guest | Login::Anonymous);
        let settings = LabServerSettings { signing, guests, ..wanted.settings.clone() };
        let server = wanted.launcher.start(&settings).map_err(BenchError::Lab)?;
        let cpu_load = settings.cpu_load.map(verified_cpu_load).transpose()?.flatten();
        let address = server.address();
        let credentials = match connect.login {
            Login::Password => Credentials::Ntlm {
                domain: String::new(),
                user: server.user().to_owned(),
                password: Secret::new(server.password().to_owned()),
            },
            Login::Guest => Credentials::Guest,
            Login::Anonymous => Credentials::Anonymous,
            Login::Kerberos => {
                let text = "the private server does not support Kerberos: omit --login";
                return Err(BenchError::Unavailable(text.to_owned()));
            }
        };
        let options = SessionOptions {
            address,
            host: address.ip().to_string(),
            share: server.share().to_owned(),
            credentials,
            ..connect.options.clone()
        };
        let directory = prepare::DEFAULT_DIRECTORY.to_owned();
        Ok(Site { options, directory, target: None, lab: Some(server), cpu_load })
    }
}

/// Returns the folder of the server of the surrounding `lab run`.
fn lab_folder() -> Option<PathBuf> {
    std::env::var_os("SMBSCOPE_LAB_FOLDER").map(PathBuf::from)
}

/// Returns the servers in the default state folder, after those in the folder of the surrounding `lab run`, which may be
/// elsewhere. A folder that `StateFolder` rejects is ignored.
fn lab_servers() -> impl Iterator<Item = ServerRecord> {
    let own = lab_folder().as_deref().and_then(Path::parent).and_then(|place| StateFolder::new(place).ok());
    own.into_iter().chain([StateFolder::default()]).filter_map(|place| place.servers().ok()).flatten()
}

fn credentials(target: &ShareUrl, connect: &Connect) -> Result<Credentials, BenchError> {
    Ok(match (connect.login, &target.user) {
        (Login::Guest, _) | (Login::Password, None) => Credentials::Guest,
        (Login::Anonymous, _) => Credentials::Anonymous,
        (Login::Kerberos, _) => Credentials::Kerberos,
        (Login::Password, Some(user)) => Credentials::Ntlm {
            domain: target.domain.clone().unwrap_or_default(),
            user: user.clone(),
            password: (connect.password)(user).map_err(BenchError::Password)?,
        },
    })
}

#[derive(Debug)]
pub enum ServerUnderTest {
    Named(TargetUrl),
    Private(Private),
}

#[derive(Debug, Default)]
pub struct Private {
    pub launcher: Launcher,
    /// Server settings. Signing and guest access are adapted to the users' login.
    pub settings: LabServerSettings,
}

pub struct Connect {
    /// Host, address, share and credentials are filled in later.
    pub options: SessionOptions,
    pub login: Login,
    /// Provides the password of the user named in the target. Not called for any other user.
    pub password: Box<Passwords>,
}

pub type Passwords = dyn Fn(&str) -> Result<Secret, Box<dyn std::error::Error + Send + Sync>> + Send + Sync;

impl Connect {
    pub fn new(login: Login, password: Box<Passwords>) -> Connect {
        let nowhere = SocketAddr::from((Ipv4Addr::UNSPECIFIED, 0));
        Connect { options: SessionOptions::new("", nowhere, ""), login, password }
    }
}

impl fmt::Debug for Connect {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Connect").field("options", &self.options).field("login", &self.login).finish_non_exhaustive()
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Login {
    /// The target's user with a password, or a guest if the target names no user.
    Password,
    Guest,
    Anonymous,
    Kerberos,
}

/// Connects once, so that a wrong password or a missing share is reported before the run begins.
pub(crate) fn probe(options: &SessionOptions) -> Result<SessionParameters, BenchError> {
    let runtime =
        Builder::new_current_thread().enable_all().build().map_err(BenchError::system("runtime for the client"))?;
    runtime.block_on(async {
        let mut session = ClientSession::connect(options).await.map_err(|error| match error {
            smbscope_client::ClientError::Foreign(foreign) => BenchError::Foreign(foreign),
            error => BenchError::Connect { host: options.host.clone(), error },
        })?;
        let facts = session.facts().clone();
        // A failed logoff doesn't affect the run.
        let _ = session.disconnect().await;
        Ok(facts)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_part_of_a_target_is_read() {
        let target: ShareUrl = "smb://LAB;ann%20e@[::1]:14450/data%24/a/b%23c".parse().expect("a target");
        let expected = ShareUrl {
            domain: Some("LAB".to_owned()),
            user: Some("ann e".to_owned()),
            host: "::1".to_owned(),
            port: Some(14450),
            share: "data$".to_owned(),
            directory: "a\\b#c".to_owned(),
        };
        assert_eq!(target, expected);
        assert_eq!(target.resolve(445).expect("an address"), "[::1]:14450".parse().expect("an address"));
    }

    #[test]
    fn what_is_left_out_has_its_default() {
        let target: ShareUrl = "smb://files/share/".parse().expect("a target");
        assert_eq!((target.user.as_deref(), target.port, target.directory.as_str()), (None, None, ""));
        assert_eq!("smb://127.0.0.1/s".parse::<ShareUrl>().unwrap().resolve(445).unwrap().port(), 445);
        assert_eq!("smb://127.0.0.1:21/s".parse::<ShareUrl>().unwrap().resolve(445).unwrap().port(), 21);
    }

    #[test]
    fn a_folder_is_a_target() {
        let folder = |text: &str| text.parse::<TargetUrl>().map(|target| matches!(target, TargetUrl::Folder(_)));
        assert_eq!(folder("file:/srv"), Ok(true));
        assert_eq!("file:///srv/a".parse(), Ok(TargetUrl::Folder("/srv/a".into())));
        assert!(folder("file:").unwrap_err().contains("no folder"));
        assert!(folder("file://host/srv").unwrap_err().contains("another machine"));
    }

    #[test]
    fn a_drive_of_windows_may_follow_a_slash() {
        assert_eq!(without_slash_before_drive("/C:/data"), "C:/data");
        for other in [r"C:\data", r"\\server\share", "/srv/a:b", "/", "//server/C:/x"] {
            assert_eq!(without_slash_before_drive(other), other);
        }
    }

    #[test]
    fn mistakes_are_named() {
        for (text, said) in [
            ("host/share", "expected smb://"),
            ("//host/share", "did you mean smb://host/share?"),
            (r"\\server\share", "did you mean smb://server/share?"),
            (r"\server\my docs$\a#b\", "did you mean smb://server/my%20docs$/a%23b?"),
            (r"\\server", "expected smb://"),
            ("smb://host", "no share"),
            ("smb://u:secret@host/share", "--password-file"),
            ("smb://host/share?x", "%3F"),
            ("smb://host/share/a%3Ab", "cannot be the name"),
            ("smb://host/share/../other", "no meaning on a share"),
            ("smb://host/share/%2E%2e/other", "no meaning on a share"),
            ("smb://DOM\\ann@host/share", "DOMAIN;user"),
        ] {
            let error = text.parse::<TargetUrl>().expect_err(text);
            assert!(error.contains(said), "{text}: {error}");
            assert!(!error.contains("secret"), "{error}");
        }
    }

    #[test]
    fn a_target_prints_as_it_is_written() {
        let shares = ["smb://files/share", "smb://ann@[::1]:1445/share/a/b", "smb://LAB;ann@files/share"];
        for text in shares.into_iter().chain(["file:/srv/data", "file:.", "file:my data"]) {
            assert_eq!(text.parse::<TargetUrl>().expect(text).to_string(), text);
        }
    }
}
