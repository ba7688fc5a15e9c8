//! Options of a private server, of `smbscope lab up`, `smbscope lab run` and study files.

use super::{CommandOptions, PossibleValueTable, StorageOptions, one_of, port};
use clap::{ArgAction, Args, ValueEnum};
use smbscope_lab::{
    Antivirus, LabDialect, LabServerSettings, ServerSigningPolicy, parse_bandwidth, parse_delay, parse_loss, parse_size,
};
use std::path::PathBuf;
use std::time::Duration;

#[derive(Debug, Args)]
pub struct LabServerOptions {
    /// Accept no dialect below this one: nt1, 2.0.2, 2.1, 3.0, 3.0.2 or 3.1.1.
    #[arg(long, value_name = "DIALECT", default_value_t = LabDialect::Nt1, help_heading = "Server")]
    pub min_dialect: LabDialect,

    /// Accept no dialect above this one.
    #[arg(long, value_name = "DIALECT", default_value_t = LabDialect::Smb311, help_heading = "Server")]
    pub max_dialect: LabDialect,

    /// Sign messages never, if the client requests it, or always.
    #[arg(long, value_name = "POLICY", value_parser = one_of(SIGNING), default_value = "on", help_heading = "Server")]
    pub signing: ServerSigningPolicy,

    /// Require encryption on every share, not only on the share `enc`.
    #[arg(long, value_name = "POLICY", action = ArgAction::Set, value_parser = one_of(ENCRYPTION), default_value = "off", help_heading = "Server")]
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

    /// Limit the bandwidth in each direction: 100mbit, 1gbit. [default: unlimited]
    #[arg(long, value_name = "BANDWIDTH", value_parser = parse_bandwidth, help_heading = "Impairments")]
    pub bandwidth: Option<u64>,

    /// Drop this percentage of the packets in each direction: 0.5%. Requires root. [default: 0%]
    #[arg(long, value_name = "PERCENT", value_parser = parse_loss, help_heading = "Impairments")]
    pub loss: Option<f64>,

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
            bandwidth: self.bandwidth,
            delay: self.delay,
            loss: self.loss,
            extra: self.extra.clone(),
            ..LabServerSettings::default()
        }
    }
}

const SIGNING: &PossibleValueTable<ServerSigningPolicy> = &[
    ("off", "Never, unless an SMB2 or later client requires it", ServerSigningPolicy::Off),
    ("on", "If the client requests it", ServerSigningPolicy::On),
    ("required", "Always", ServerSigningPolicy::Required),
];

const ENCRYPTION: &PossibleValueTable<bool> =
    &[("off", "Only on the share `enc`", false), ("required", "On every share", true)];

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Scanner {
    /// ClamAV, through Samba's module virusfilter.
    Clamav,
}
