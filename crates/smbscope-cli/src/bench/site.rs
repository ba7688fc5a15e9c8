//! The server that is loaded: one that the target names, or a private one for the time of the run.

use super::password;
use super::target::Target;
use crate::arguments::{ConnectArguments, LoginChoice, SigningChoice, TransportChoice};
use crate::lab;
use anyhow::{Context, bail};
use smbscope_lab::{Place, Server, Settings};
use smbscope_load::client::{Credentials, Facts, Options, Secret};
use smbscope_load::prepare;
use std::path::{Path, PathBuf};

/// Port of direct TCP (MS-SMB2 2.1) and of the NetBIOS session service (RFC 1002 4.3).
const PORTS: [u16; 2] = [445, 139];

/// A server, how to connect to it, and where on its share to work.
#[derive(Debug)]
pub(crate) struct Site {
    /// How to connect.
    pub(crate) options: Options,
    /// Below the share, with backslashes.
    pub(crate) directory: String,
    /// As the user wrote it, where a target was named.
    pub(crate) target: Option<Target>,
    /// The private server, which ends with this value.
    pub(crate) lab: Option<Server>,
}

impl Site {
    /// The target, or a private server.
    pub(crate) fn open(target: Option<&Target>, connect: &ConnectArguments) -> anyhow::Result<Site> {
        match target {
            Some(target) => Site::named(target, connect),
            None => Site::private(connect),
        }
    }

    /// The server of a target.
    pub(crate) fn named(target: &Target, connect: &ConnectArguments) -> anyhow::Result<Site> {
        let port = PORTS[usize::from(connect.transport == TransportChoice::Netbios)];
        let address = target.resolve(port)?;
        let mut options = Options::new(&target.host, address, &target.share);
        options.credentials = credentials(target, connect)?;
        connect.apply(&mut options);
        let directory = prepare::directory_below(&target.directory)?;
        Ok(Site { options, directory, target: Some(target.clone()), lab: None })
    }

    /// What is shown while it runs.
    pub(crate) fn heading(&self, facts: &Facts) -> String {
        match (&self.target, &self.lab) {
            (Some(target), _) => format!("{target}, SMB {}", facts.dialect),
            (None, _) => format!("a private Samba at {}, SMB {}", self.options.address, facts.dialect),
        }
    }

    /// What to know about a slow link to a lab server that the target is.
    pub(crate) fn caveat(&self) -> Option<String> {
        // That of `lab run`, which may be in another place than the default one; nobody's, where it can't be believed.
        let own = std::env::var_os("SMBSCOPE_LAB_FOLDER").map(PathBuf::from);
        let own = own.as_deref().and_then(Path::parent).and_then(|place| Place::new(place).ok());
        let mut servers = own.into_iter().chain([Place::default()]).filter_map(|place| place.servers().ok()).flatten();
        servers.find(|server| server.address() == self.options.address)?.link?.caveat()
    }

    fn private(connect: &ConnectArguments) -> anyhow::Result<Site> {
        if connect.transport == TransportChoice::Netbios {
            bail!("the private server takes no NetBIOS sessions: leave --transport out, or name a target");
        }
        if let Err(why) = smbscope_lab::available() {
            bail!("no target, and no private server can be started: {why}; name a target: smb://[user@]host/share");
        }
        let signing = match connect.signing {
            SigningChoice::Off => smbscope_lab::Signing::Off,
            SigningChoice::On => smbscope_lab::Signing::On,
            SigningChoice::Required => smbscope_lab::Signing::Required,
        };
        let guests = matches!(connect.login, LoginChoice::Guest | LoginChoice::Anonymous);
        let settings = Settings { signing, guests, ..Settings::default() };
        let server = lab::kept()?.start(&settings).context("the private server did not start")?;
        let address = server.address();
        let mut options = Options::new(&address.ip().to_string(), address, server.share());
        options.credentials = match connect.login {
            LoginChoice::Password => Credentials::Ntlm {
                domain: String::new(),
                user: server.user().to_owned(),
                password: Secret::new(server.password().to_owned()),
            },
            LoginChoice::Guest => Credentials::Guest,
            LoginChoice::Anonymous => Credentials::Anonymous,
            LoginChoice::Kerberos => bail!("the private server knows no Kerberos: leave --login out"),
        };
        connect.apply(&mut options);
        Ok(Site { options, directory: prepare::DEFAULT_DIRECTORY.to_owned(), target: None, lab: Some(server) })
    }
}

impl ConnectArguments {
    /// What holds for every server.
    fn apply(&self, options: &mut Options) {
        options.dialect = self.dialect.into();
        options.signing = self.signing.into();
        options.signing_algorithm = self.signing_algorithm.map(Into::into);
        options.encryption = self.encryption.into();
        options.transport = self.transport.into();
        options.timeout = self.timeout;
        options.compound = self.compound;
        options.raw = self.raw;
        options.leases = self.leases;
    }
}

/// Who connects to a target.
fn credentials(target: &Target, connect: &ConnectArguments) -> anyhow::Result<Credentials> {
    Ok(match (connect.login, &target.user) {
        (LoginChoice::Guest, _) | (LoginChoice::Password, None) => Credentials::Guest,
        (LoginChoice::Anonymous, _) => Credentials::Anonymous,
        (LoginChoice::Kerberos, _) => Credentials::Kerberos,
        (LoginChoice::Password, Some(user)) => Credentials::Ntlm {
            domain: target.domain.clone().unwrap_or_default(),
            user: user.clone(),
            password: password::of(user, connect.password_file.as_deref())?,
        },
    })
}
