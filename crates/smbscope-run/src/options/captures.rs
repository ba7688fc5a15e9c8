//! Options of the commands that convert captures: `smbscope record` and `smbscope slim`.

use super::{
    CommandOptions, DecryptionOptions, MemoryOptions, ProgressOptions, ReadingOptions, TunnelOptions, has_repeated_file,
};
use clap::{Args, ValueEnum};
use smbscope_stats::filter::Filter;
use std::net::IpAddr;
use std::path::PathBuf;

#[derive(Debug, Args)]
pub struct RecordOptions {
    /// Read these captures; `-` is standard input.
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
    /// Read these captures; `-` is standard input. Several files form one capture, in time order.
    #[arg(required = true, value_name = "FILE")]
    pub files: Vec<PathBuf>,

    /// Write the copy to this file as pcapng, compressed with zstd if the name ends in .zst.
    #[arg(short, long, required = true, value_name = "OUT")]
    pub output: PathBuf,

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
