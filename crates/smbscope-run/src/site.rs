//! The benchmark's server: the named target, a private Samba server, or a local folder.

use crate::BenchError;
use crate::options::{Connect, Login, Private, ServerUnderTest as Wanted};
use crate::target::{ShareUrl, TargetUrl};
use smbscope_client::{
    ClientSigningPolicy, Credentials, Encryption, Secret, SessionOptions, SessionParameters, Transport,
};
use smbscope_lab::{LabServer, LabServerSettings, ServerRecord, StateFolder};
use smbscope_load::prepare;
use std::net::Ipv4Addr;
use std::path::{Path, PathBuf};

const PORTS: [u16; 2] = [445, 139];

#[derive(Debug)]
pub(crate) struct Site {
    pub(crate) options: SessionOptions,
    /// Working directory below the share, with backslashes.
    pub(crate) directory: String,
    /// `None` for a private server.
    pub(crate) target: Option<TargetUrl>,
    pub(crate) lab: Option<LabServer>,
}

impl Site {
    pub(crate) fn open(server: &Wanted, connect: &Connect) -> Result<Site, BenchError> {
        match server {
            Wanted::Named(target) => Site::named(target, connect),
            Wanted::Private(private) => Site::private(private, connect),
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
            let text = format!("{option} is of SMB, and {target} is a local folder: leave it out");
            return Err(BenchError::Unavailable(text));
        }
        let options = SessionOptions {
            host: "this machine".to_owned(),
            share: folder.display().to_string(),
            folder: Some(folder.to_owned()),
            address: (Ipv4Addr::LOCALHOST, 0).into(),
            credentials: Credentials::Anonymous,
            ..connect.options.clone()
        };
        let directory = prepare::DEFAULT_DIRECTORY.to_owned();
        Ok(Site { options, directory, target: Some(target.clone()), lab: None })
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
        Ok(Site { options, directory, target: Some(named.clone()), lab: None })
    }

    /// Text of [`Heading::target`](crate::progress::Heading::target).
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
        // A server of `lab run` may have its state outside the default folder. A folder that `StateFolder` rejects is
        // ignored.
        let own = std::env::var_os("SMBSCOPE_LAB_FOLDER").map(PathBuf::from);
        let own = own.as_deref().and_then(Path::parent).and_then(|place| StateFolder::new(place).ok());
        let mut servers =
            own.into_iter().chain([StateFolder::default()]).filter_map(|place| place.servers().ok()).flatten();
        servers.find(|server| server.address() == self.options.address)
    }

    fn private(wanted: &Private, connect: &Connect) -> Result<Site, BenchError> {
        if connect.options.transport == Transport::NetBios {
            let text = "the private server takes no NetBIOS sessions: leave --transport out, or name a target";
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
                let text = "the private server knows no Kerberos: leave --login out";
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
        Ok(Site { options, directory: prepare::DEFAULT_DIRECTORY.to_owned(), target: None, lab: Some(server) })
    }
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
