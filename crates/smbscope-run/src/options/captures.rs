//! Options of the commands that convert captures: `smbscope record` and `smbscope slim`.

use super::{
    CommandOptions, DecryptionOptions, MemoryOptions, ProgressOptions, ReadingOptions, TunnelOptions, has_repeated_file,
};
use crate::files::create_private_directory;
use crate::ring::RingLimits;
use clap::{Args, ValueEnum};
use smbscope_model::{Nanos, units};
use smbscope_stats::filter::Filter;
use std::io;
use std::net::IpAddr;
use std::path::PathBuf;

#[derive(Debug, Args)]
pub struct RecordOptions {
    /// Read these captures; `-` is standard input, and a directory stands for the captures in it.
    #[arg(required = true, value_name = "FILE")]
    pub files: Vec<PathBuf>,

    /// Write the workload to this file. [default: standard output]
    #[arg(short, long, value_name = "OUT")]
    pub output: Option<PathBuf>,

    /// Record only commands of this client.
    #[arg(long, value_name = "ADDRESS", value_parser = address)]
    pub client: Option<IpAddr>,

    /// Record only commands that match an expression. `smbscope help filters` describes it.
    ///
    /// A command on a file can only be replayed if the open of the file is recorded, too.
    #[arg(long, value_name = "EXPR")]
    pub filter: Option<Filter>,

    /// Record only this episode: a burst of work of one client, by its number in the list of `analyze --full`.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub episode: Option<u32>,

    /// Replace names of files and directories by a keyed hash; the key is not kept.
    ///
    /// Equal names stay equal, directories keep their depth, and extensions of up to five letters are kept.
    #[arg(long)]
    pub anonymize: bool,

    /// Set the name of the workload. [default: OUT's]
    #[arg(long, value_name = "NAME")]
    pub name: Option<String>,

    #[command(flatten)]
    pub reading: ReadingOptions,

    #[command(flatten)]
    pub progress: ProgressOptions,
}

impl CommandOptions for RecordOptions {
    fn conflict(&self) -> Option<&'static str> {
        has_repeated_file(&self.files)
    }
}

#[derive(Debug, Args)]
pub struct SlimCopyOptions {
    /// Read these captures; `-` is standard input, and a directory stands for the captures in it. Several files form one
    /// capture, in time order.
    #[arg(required = true, value_name = "FILE")]
    pub files: Vec<PathBuf>,

    /// Write the copy to this file as pcapng, compressed with zstd if the name ends in .zst.
    #[arg(short, long, required_unless_present = "ring", conflicts_with = "ring", value_name = "OUT")]
    pub output: Option<PathBuf>,

    #[command(flatten)]
    pub ring: RingOptions,

    /// Replace names of users, computers, shares, files and directories, and all addresses, by a keyed hash.
    ///
    /// Equal names, ignoring case, stay equal, and each keeps its length. The key is random and not kept, unless
    /// --key-file is given.
    #[arg(long)]
    pub anonymize: bool,

    /// Read the key from this file, so that several captures get the same names: at least 16 arbitrary bytes.
    ///
    /// With the key, guesses of original names can be verified. `head -c 32 /dev/urandom > site.key` creates one.
    #[arg(long, value_name = "FILE", requires = "anonymize")]
    pub key_file: Option<PathBuf>,

    /// Keep these properties of names, separated by commas or repeated.
    #[arg(long, value_enum, value_name = "PROPERTY,...", value_delimiter = ',', requires = "anonymize")]
    pub keep: Vec<KeptOfNames>,

    #[command(flatten)]
    pub decryption: DecryptionOptions,

    #[command(flatten)]
    pub tunnels: TunnelOptions,

    #[command(flatten)]
    pub memory: MemoryOptions,

    #[command(flatten)]
    pub progress: ProgressOptions,
}

// A ring of slim captures.
#[derive(Debug, Clone, Args)]
pub struct RingOptions {
    /// Keep the newest packets in this directory, as slim captures that each cover a part: `smbscope analyze DIR --from
    /// 14:02 --to 14:10` reads them.
    ///
    /// Creates a missing directory. Captures of an earlier ring in it count; other files stay. While the directory can't
    /// be written, packets are dropped, with an attempt every 30 s.
    #[arg(long, value_name = "DIR", help_heading = "Ring")]
    pub ring: Option<PathBuf>,

    /// Remove the oldest captures of the ring when all together exceed this size: 500MB, 10GB.
    #[arg(long, value_name = "SIZE", default_value = "1GB", value_parser = ring_size, requires = "ring", help_heading = "Ring")]
    pub size: u64,

    /// Remove captures of the ring whose packets are all older than this: 30min, 1h. [default: only by size]
    #[arg(long, value_name = "DURATION", value_parser = ring_age, requires = "ring", help_heading = "Ring")]
    pub age: Option<Nanos>,
}

impl RingOptions {
    /// Returns the limits, after creating the directory. Returns `None` without `--ring`.
    pub fn limits(&self) -> io::Result<Option<RingLimits>> {
        let Some(folder) = &self.ring else { return Ok(None) };
        create_private_directory(folder)?;
        Ok(Some(RingLimits { folder: folder.clone(), size: self.size, age: self.age }))
    }
}

fn ring_size(text: &str) -> Result<u64, String> {
    let size = units::size(text)?;
    if size >= 1_000_000 { Ok(size) } else { Err("expected 1MB or more".to_owned()) }
}

fn ring_age(text: &str) -> Result<Nanos, String> {
    let age = units::duration(text)?;
    if age >= Nanos(60_000_000_000) { Ok(age) } else { Err("expected 1min or more".to_owned()) }
}

impl CommandOptions for SlimCopyOptions {
    fn conflict(&self) -> Option<&'static str> {
        has_repeated_file(&self.files)
    }
}

fn address(text: &str) -> Result<IpAddr, String> {
    text.parse()
        .map_err(|_| "expected an address such as 10.0.0.7; `smbscope analyze` lists those of clients".to_owned())
}

/// Property of names that is kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum KeptOfNames {
    /// Depth of files in their share, and which files share a directory.
    Depth,
    /// Extensions of up to five letters.
    Extensions,
}
