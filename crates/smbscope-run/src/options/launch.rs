//! Options of `smbscope launch`.

use super::{BenchFormat, CommandOptions, DIALECTS, PossibleValueTable, SIGNING, TerminalOptions, one_of};
use crate::server::TargetUrl;
use clap::Args;
use smbscope_client::{ClientSigningPolicy, Encryption};
use smbscope_model::{Dialect, units};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

/// Launches of a series; more are refused.
const LAUNCHES_MAX: u32 = 1_000;

#[derive(Debug, Clone, Args)]
pub struct LaunchOptions {
    /// Launch this program repeatedly. `{folder}` stands for the folder with its files, `{local}` for an empty folder
    /// on this machine.
    #[arg(required = true, last = true, value_name = "COMMAND")]
    pub command: Vec<String>,

    /// End a launch when the X display shows a window whose title or class contains TEXT.
    #[arg(long, value_name = "TEXT", group = "until", help_heading = "End of a launch (default: the program exits)")]
    pub window: Option<String>,

    /// End a launch when this file exists.
    #[arg(long, value_name = "FILE", group = "until", help_heading = "End of a launch (default: the program exits)")]
    pub file: Option<PathBuf>,

    /// End a launch when the program accepts connections on this TCP port: 8080 or 127.0.0.1:8080.
    #[arg(long, value_name = "[ADDRESS:]PORT", value_parser = listen_port, group = "until", help_heading = "End of a launch (default: the program exits)")]
    pub listen_port: Option<SocketAddr>,

    /// End a launch when the program has written a line that contains TEXT.
    #[arg(long, value_name = "TEXT", group = "until", help_heading = "End of a launch (default: the program exits)")]
    pub line: Option<String>,

    /// Put the folder on this share, `smb://[user@]host[:port]/share[/dir]`, mounted through FUSE, or on a private
    /// server, `lab`; or use a local folder, `file:DIR`. [default: a new local folder]
    #[arg(long, value_name = "TARGET", help_heading = "Files")]
    pub target: Option<LaunchTarget>,

    /// Copy the content of DIR to the folder before the first launch.
    #[arg(long, value_name = "DIR", help_heading = "Files")]
    pub content: Option<PathBuf>,

    /// Mount the share with this program. [default: rclone; for SMB1 smbnetfs]
    #[arg(long, value_name = "PROGRAM", value_parser = one_of(MOUNTERS), help_heading = "Files")]
    pub mount: Option<Mounter>,

    /// Name the server of a share that is already mounted on the local folder, for --capture.
    #[arg(long, value_name = "HOST[:PORT]", help_heading = "Files")]
    pub server: Option<String>,

    /// Access the share with this dialect.
    #[arg(long, value_parser = one_of(DIALECTS), default_value = "3.1.1", help_heading = "Files")]
    pub dialect: Dialect,

    /// Sign messages never, if the server requires it, or always.
    #[arg(hide_short_help = true, long, value_name = "POLICY", value_parser = one_of(SIGNING), default_value = "on", help_heading = "Files")]
    pub signing: ClientSigningPolicy,

    /// Encrypt messages if the server requires it, or always. The server chooses the cipher.
    #[arg(hide_short_help = true, long, value_name = "POLICY", value_parser = one_of(ENCRYPTION), default_value = "off", help_heading = "Files")]
    pub encryption: Encryption,

    /// Read the password from the first line of this file. [default: SMBSCOPE_PASSWORD, or a prompt]
    #[arg(hide_short_help = true, long, value_name = "FILE", help_heading = "Files")]
    pub password_file: Option<PathBuf>,

    /// Measure N launches, after the warm-up.
    #[arg(long, value_name = "N", default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..=i64::from(LAUNCHES_MAX)))]
    pub repetitions: u32,

    /// Warm up with N launches, without measuring.
    ///
    /// The first one makes what the program makes only once, such as its profile. The second one finds that new, and not
    /// yet in all caches.
    #[arg(long, value_name = "N", default_value_t = 2, value_parser = clap::value_parser!(u32).range(0..=i64::from(LAUNCHES_MAX)))]
    pub warmup_launches: u32,

    /// Drop the file caches of this machine and remount the share before each launch. Requires root.
    #[arg(long)]
    pub cold: bool,

    /// Run this command in a shell before each launch; SMBSCOPE_FOLDER contains the folder.
    #[arg(long, value_name = "COMMAND")]
    pub before: Vec<String>,

    /// Abort a launch after this time.
    #[arg(long, value_name = "DURATION", default_value = "2min", value_parser = units::time)]
    pub launch_timeout: Duration,

    /// Keep the program running for this time after a launch before ending it.
    #[arg(long, value_name = "DURATION", default_value = "500ms", value_parser = units::time)]
    pub linger: Duration,

    /// Capture packets during the launches, to measure how much of each was waiting for the server.
    #[arg(long)]
    pub capture: bool,

    /// Keep the results in this directory: run.json, report.html and the capture.
    #[arg(short, long, value_name = "DIR")]
    pub output: Option<PathBuf>,

    /// Print the report in this format.
    #[arg(long, value_enum, default_value_t = BenchFormat::Text)]
    pub format: BenchFormat,

    /// Print all tables of the text report.
    #[arg(long)]
    pub full: bool,

    /// Set the title of the report.
    #[arg(hide_short_help = true, long, value_name = "TEXT")]
    pub title: Option<String>,

    #[command(flatten)]
    pub terminal: TerminalOptions,
}

/// Location of the program's files.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LaunchTarget {
    /// Private server.
    Lab,
    Target(TargetUrl),
}

impl FromStr for LaunchTarget {
    type Err = String;

    fn from_str(text: &str) -> Result<LaunchTarget, String> {
        if text == "lab" { Ok(LaunchTarget::Lab) } else { text.parse().map(LaunchTarget::Target) }
    }
}

impl CommandOptions for LaunchOptions {
    fn conflict(&self) -> Option<&'static str> {
        let on_share = matches!(&self.target, Some(LaunchTarget::Lab | LaunchTarget::Target(TargetUrl::Share(_))));
        let in_folder = matches!(&self.target, Some(LaunchTarget::Target(TargetUrl::Folder(_))));
        if self.server.is_some() && !in_folder {
            Some("--server needs a local folder on which a share is mounted: --target file:DIR")
        } else if self.capture && !on_share && self.server.is_none() {
            Some("--capture needs a server: --target smb://host/share, or --server with --target file:DIR")
        } else if self.launch_timeout.is_zero() {
            Some("--launch-timeout must be longer than 0s")
        } else {
            None
        }
    }
}

const ENCRYPTION: &PossibleValueTable<Encryption> = &[
    ("off", "Not unless the server requires it", Encryption::Off),
    ("required", "Always", Encryption::Required(None)),
];

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mounter {
    /// Uses Samba's client library: SMB1 to 3.1.1. Over SMB2, size queries fail on files opened only for writing.
    Smbnetfs,
    /// Has its own client for SMB 2.0.2 to 3.1.1, which buffers writes to a file until it is closed.
    Rclone,
}

impl Mounter {
    pub fn for_dialect(dialect: Dialect) -> Mounter {
        match dialect {
            Dialect::Smb2(_) => Mounter::Rclone,
            _ => Mounter::Smbnetfs,
        }
    }

    /// Name of the program and of its Debian package.
    pub fn name(self) -> &'static str {
        match self {
            Mounter::Smbnetfs => "smbnetfs",
            Mounter::Rclone => "rclone",
        }
    }
}

const MOUNTERS: &PossibleValueTable<Mounter> = &[
    ("rclone", "rclone mount: SMB 2.0.2 to 3.1.1, the server's highest dialect", Mounter::Rclone),
    ("smbnetfs", "Samba's client library: all dialects", Mounter::Smbnetfs),
];

fn listen_port(text: &str) -> Result<SocketAddr, String> {
    let local = text.parse::<u16>().ok().filter(|port| *port > 0).map(|port| SocketAddr::from(([127, 0, 0, 1], port)));
    local.or_else(|| text.parse().ok()).ok_or_else(|| "expected a port such as 8080, or address:port".to_owned())
}
