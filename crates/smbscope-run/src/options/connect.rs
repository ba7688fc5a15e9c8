//! Options of the server: a connection (dialect, protection, login), or a private server.

use super::{CommandOptions, PossibleValueTable, StorageOptions, one_of, port};
use crate::server::{Connect, Login, Passwords};
use clap::{ArgAction, Args, ValueEnum};
use smbscope_client::{Cipher, ClientSigningPolicy, Encryption, SessionOptions, SigningAlgorithm, Transport};
use smbscope_lab::{
    Antivirus, LabDialect, LabServerSettings, LinkDirection, ServerSigningPolicy, parse_bandwidth, parse_delay,
    parse_loss, parse_server_time, parse_size,
};
use smbscope_model::{Dialect, units};
use std::path::PathBuf;
use std::time::Duration;

pub(super) const SMB3: Dialect = Dialect::Smb2(0x0300);
const SMB311: Dialect = Dialect::Smb2(0x0311);

#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Connection")]
pub struct ConnectOptions {
    /// Negotiate this dialect.
    #[arg(long, value_name = "DIALECT", value_parser = one_of(DIALECTS), default_value = "3.1.1")]
    pub dialect: Dialect,

    /// Sign messages never, if the server requires it, or always.
    #[arg(long, value_name = "POLICY", value_parser = one_of(SIGNING), default_value = "on")]
    pub signing: ClientSigningPolicy,

    /// Offer only this signing algorithm with SMB 3.1.1. [default: all]
    #[arg(hide_short_help = true, long, value_name = "ALGORITHM", value_parser = one_of(SIGNING_ALGORITHMS))]
    pub signing_algorithm: Option<SigningAlgorithm>,

    /// Encrypt messages if the server requires it, always, or always with this cipher.
    #[arg(long, value_name = "POLICY", value_parser = one_of(ENCRYPTION), default_value = "off")]
    pub encryption: Encryption,

    /// Connect with direct TCP (port 445) or through a NetBIOS session (port 139).
    #[arg(hide_short_help = true, long, value_parser = one_of(TRANSPORTS), default_value = "tcp")]
    pub transport: Transport,

    /// Log in with these credentials.
    #[arg(long, value_parser = one_of(LOGINS), default_value = "password")]
    pub login: Login,

    /// Read the password from the first line of this file. [default: SMBSCOPE_PASSWORD, or a prompt]
    #[arg(long, value_name = "FILE")]
    pub password_file: Option<PathBuf>,

    /// Wait this long for the response to a command.
    #[arg(hide_short_help = true, long, value_name = "DURATION", default_value = "30s", value_parser = units::time)]
    pub timeout: Duration,

    /// Abort preparing or removing files after this time.
    #[arg(hide_short_help = true, long, value_name = "DURATION", default_value = "30min", value_parser = units::time)]
    pub prepare_timeout: Duration,
}

// How commands are sent: nothing that a connection which only removes files depends on.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Connection")]
pub struct RequestOptions {
    /// Send related commands as one compound if the dialect supports it.
    #[arg(hide_short_help = true, long)]
    pub compound: bool,

    /// Read and write in raw mode, as NetBench's clients did. Requires SMB1.
    #[arg(hide_short_help = true, long, conflicts_with = "leases")]
    pub raw: bool,

    /// Request a lease or an oplock with every open.
    #[arg(hide_short_help = true, long)]
    pub leases: bool,
}

impl ConnectOptions {
    /// Returns the way to connect. `password` is asked for the password of a user.
    pub fn connect(&self, password: Box<Passwords>) -> Connect {
        let connect = Connect::new(self.login, password);
        Connect {
            options: SessionOptions {
                dialect: self.dialect,
                signing: self.signing,
                signing_algorithm: self.signing_algorithm,
                encryption: self.encryption,
                transport: self.transport,
                timeout: self.timeout,
                ..connect.options
            },
            ..connect
        }
    }

    /// Returns an error message for options that would be ignored, or that only the server would refuse.
    pub fn conflict(&self) -> Option<&'static str> {
        let (encrypted, algorithm) = (self.encryption != Encryption::Off, self.signing_algorithm.is_some());
        let later_cipher =
            encrypted && !matches!(self.encryption, Encryption::Required(None | Some(Cipher::Aes128Ccm)));
        if encrypted && self.dialect < SMB3 {
            Some("--encryption needs SMB 3; choose --dialect 3.0 or later")
        } else if later_cipher && self.dialect < SMB311 {
            Some("this cipher needs --dialect 3.1.1; SMB 3.0 and 3.0.2 support only aes-128-ccm")
        } else if algorithm && self.dialect < SMB311 {
            Some("--signing-algorithm needs --dialect 3.1.1; older dialects have a fixed algorithm")
        } else if algorithm && self.signing == ClientSigningPolicy::Off {
            Some("--signing off contradicts --signing-algorithm; omit one of them")
        } else if self.timeout.is_zero() {
            Some("--timeout must be longer than 0s")
        } else if self.prepare_timeout.is_zero() {
            Some("--prepare-timeout must be longer than 0s")
        } else {
            None
        }
    }
}

impl RequestOptions {
    /// Sends the commands of these sessions as the options say.
    pub fn apply(&self, options: &mut SessionOptions) {
        (options.compound, options.raw, options.leases) = (self.compound, self.raw, self.leases);
    }

    /// Returns an error message for options that the connection rules out.
    pub(super) fn conflict(&self, connect: &ConnectOptions) -> Option<&'static str> {
        if self.raw && connect.dialect != Dialect::NtLm012 {
            Some("--raw requires SMB1; choose --dialect nt1")
        } else if self.raw && connect.signing == ClientSigningPolicy::Required {
            Some("raw messages have no header and can't be signed: omit --raw or --signing required")
        } else {
            None
        }
    }
}

pub(super) const DIALECTS: &PossibleValueTable<Dialect> = &[
    ("nt1", "SMB1", Dialect::NtLm012),
    ("2.0.2", "SMB 2.0.2", Dialect::Smb2(0x0202)),
    ("2.1", "SMB 2.1", Dialect::Smb2(0x0210)),
    ("3.0", "SMB 3.0", Dialect::Smb2(0x0300)),
    ("3.0.2", "SMB 3.0.2", Dialect::Smb2(0x0302)),
    ("3.1.1", "SMB 3.1.1", Dialect::Smb2(0x0311)),
];

pub(super) const SIGNING: &PossibleValueTable<ClientSigningPolicy> = &[
    ("off", "Never", ClientSigningPolicy::Off),
    ("on", "If the server requires it", ClientSigningPolicy::On),
    ("required", "Always", ClientSigningPolicy::Required),
];

const SIGNING_ALGORITHMS: &PossibleValueTable<SigningAlgorithm> = &[
    ("hmac-sha256", "HMAC-SHA256", SigningAlgorithm::HmacSha256),
    ("aes-cmac", "AES-128-CMAC", SigningAlgorithm::AesCmac),
    ("aes-gmac", "AES-128-GMAC", SigningAlgorithm::AesGmac),
];

const ENCRYPTION: &PossibleValueTable<Encryption> = &[
    ("off", "Not unless the server requires it", Encryption::Off),
    ("required", "Strongest mutually supported cipher", Encryption::Required(None)),
    ("aes-128-ccm", "AES-128-CCM", Encryption::Required(Some(Cipher::Aes128Ccm))),
    ("aes-128-gcm", "AES-128-GCM", Encryption::Required(Some(Cipher::Aes128Gcm))),
    ("aes-256-ccm", "AES-256-CCM", Encryption::Required(Some(Cipher::Aes256Ccm))),
    ("aes-256-gcm", "AES-256-GCM", Encryption::Required(Some(Cipher::Aes256Gcm))),
];

const TRANSPORTS: &PossibleValueTable<Transport> =
    &[("tcp", "Direct TCP", Transport::DirectTcp), ("netbios", "NetBIOS session service", Transport::NetBios)];

const LOGINS: &PossibleValueTable<Login> = &[
    ("password", "User of the target with a password; a guest if the target names no user", Login::Password),
    ("guest", "Guest", Login::Guest),
    ("anonymous", "No user", Login::Anonymous),
    ("kerberos", "The system's Kerberos tickets", Login::Kerberos),
];

#[derive(Debug, Args)]
pub struct LabServerOptions {
    /// Accept no dialect below this one: nt1, 2.0.2, 2.1, 3.0, 3.0.2 or 3.1.1.
    #[arg(long, value_name = "DIALECT", default_value_t = LabDialect::Nt1, help_heading = "Server")]
    pub min_dialect: LabDialect,

    /// Accept no dialect above this one.
    #[arg(long, value_name = "DIALECT", default_value_t = LabDialect::Smb311, help_heading = "Server")]
    pub max_dialect: LabDialect,

    /// Sign messages never, if the client requests it, or always.
    #[arg(long, value_name = "POLICY", value_parser = one_of(SERVER_SIGNING), default_value = "on", help_heading = "Server")]
    pub signing: ServerSigningPolicy,

    /// Require encryption on every share, not only on the share `enc`.
    #[arg(long, value_name = "POLICY", action = ArgAction::Set, value_parser = one_of(SERVER_ENCRYPTION), default_value = "off", help_heading = "Server")]
    pub encryption: bool,

    /// Grant neither leases nor oplocks.
    #[arg(long, help_heading = "Server")]
    pub no_leases: bool,

    /// Make the share read-only.
    #[arg(long, help_heading = "Server")]
    pub read_only: bool,

    /// Create N accounts with passwords: bench, bench2 and so on.
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u16).range(1..),
        help_heading = "Server")]
    pub accounts: u16,

    /// Admit guests, so that every user of this machine has access without a password. Not with --share-folder.
    #[arg(long, conflicts_with = "share_folder", help_heading = "Server")]
    pub guests: bool,

    /// Listen on this TCP port. [default: any free one]
    #[arg(long, value_name = "PORT", value_parser = port, help_heading = "Server")]
    pub listen_port: Option<u16>,

    /// Share this folder, and keep it when the server stops. [default: an empty folder that is removed]
    ///
    /// Users access it with your rights. If root starts the server, they have the rights of the folder's owner, or,
    /// if that is root, an unprivileged account's.
    #[arg(long, value_name = "DIR", conflicts_with = "disk", help_heading = "Server")]
    pub share_folder: Option<PathBuf>,

    /// Add this line of smb.conf, such as 'strict sync = no', to all shares; `[share] …` and `[enc] …` add it to one. May be repeated.
    #[arg(long = "smb-conf", value_name = "NAME=VALUE", help_heading = "Server")]
    pub extra: Vec<String>,

    /// Add this one-way latency in each direction: 5ms, 250us. [default: 0ms]
    ///
    /// If root starts the server, it gets a network namespace whose link delays packets: a capture shows network
    /// time. Otherwise a proxy that terminates TCP delays the data, and a capture at the client shows server time.
    #[arg(long, value_name = "DURATION", value_parser = parse_delay, help_heading = "Impairments")]
    pub delay: Option<Duration>,

    /// Add this latency towards the client instead of --delay: 30ms. [default: as --delay]
    #[arg(long, value_name = "DURATION", value_parser = parse_delay, help_heading = "Impairments")]
    pub delay_to_client: Option<Duration>,

    /// Limit the bandwidth in each direction: 100mbit, 1gbit. [default: unlimited]
    #[arg(long, value_name = "BANDWIDTH", value_parser = parse_bandwidth, help_heading = "Impairments")]
    pub bandwidth: Option<u64>,

    /// Drop this percentage of the packets in each direction: 0.5%. Requires root. [default: 0%]
    #[arg(long, value_name = "PERCENT", value_parser = parse_loss, help_heading = "Impairments")]
    pub loss: Option<f64>,

    /// Apply --loss and --bandwidth only to packets towards the client, or the server. [default: both]
    #[arg(long, value_name = "END", value_parser = one_of(LINK_DIRECTIONS), help_heading = "Impairments")]
    pub impaired_towards: Option<LinkDirection>,

    /// Scan files for viruses when they are opened and after they were written.
    #[arg(long, value_enum, value_name = "PROGRAM", help_heading = "Impairments")]
    pub antivirus: Option<Scanner>,

    /// Load virus signatures from this folder, such as /var/lib/clamav. [default: only the EICAR test file's]
    #[arg(long, value_name = "DIR", requires = "antivirus", help_heading = "Impairments")]
    pub signatures: Option<PathBuf>,

    /// Keep every core busy for this percentage of the time: 50. [default: 0]
    #[arg(long, value_name = "PERCENT", value_parser = clap::value_parser!(u8).range(0..=100),
        help_heading = "Impairments")]
    pub cpu_load: Option<u8>,

    /// Make the server slower by this factor: with 2x, it takes twice as long for each command. [default: 1x]
    ///
    /// A proxy that terminates TCP holds the responses back. It takes some time of its own, even with 1x.
    #[arg(long, value_name = "FACTOR", value_parser = parse_server_time, help_heading = "Impairments")]
    pub server_time: Option<f64>,

    /// Put the share on a RAM disk of this size, which can fill up: 64M, 2G. Requires root.
    #[arg(long, value_name = "SIZE", value_parser = parse_size, help_heading = "Impairments")]
    pub disk: Option<u64>,

    #[command(flatten)]
    pub storage: StorageOptions,
}

impl CommandOptions for LabServerOptions {}

impl LabServerOptions {
    pub fn settings(&self) -> LabServerSettings {
        LabServerSettings {
            min_dialect: self.min_dialect,
            max_dialect: self.max_dialect,
            signing: self.signing,
            encrypt: self.encryption,
            leases: !self.no_leases,
            read_only: self.read_only,
            users: self.accounts,
            guests: self.guests,
            port: self.listen_port,
            share_folder: self.share_folder.clone(),
            disk: self.disk,
            storage: self.storage.settings(),
            antivirus: self.antivirus.map(|Scanner::Clamav| Antivirus::ClamAv(self.signatures.clone())),
            cpu_load: self.cpu_load,
            server_time: self.server_time,
            bandwidth: self.bandwidth,
            delay: self.delay,
            delay_to_client: self.delay_to_client,
            loss: self.loss,
            impaired_towards: self.impaired_towards,
            extra: self.extra.clone(),
        }
    }
}

const LINK_DIRECTIONS: &PossibleValueTable<LinkDirection> =
    &[("client", "Responses", LinkDirection::ToClient), ("server", "Requests", LinkDirection::ToServer)];

const SERVER_SIGNING: &PossibleValueTable<ServerSigningPolicy> = &[
    ("off", "Never, unless an SMB2 or later client requires it", ServerSigningPolicy::Off),
    ("on", "If the client requests it", ServerSigningPolicy::On),
    ("required", "Always", ServerSigningPolicy::Required),
];

const SERVER_ENCRYPTION: &PossibleValueTable<bool> =
    &[("off", "Only on the share `enc`", false), ("required", "On every share", true)];

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Scanner {
    /// ClamAV, through Samba's module virusfilter.
    Clamav,
}
