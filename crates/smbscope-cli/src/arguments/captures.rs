//! Arguments of the commands that convert captures: `smbscope record` and `smbscope slim`.

use super::{BudgetArguments, ReadingArguments};
use clap::{Args, ValueEnum};
use smbscope_stats::filter::Filter;
use std::net::IpAddr;
use std::path::PathBuf;

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  smbscope record -o app.toml capture.pcapng
  smbscope record --episode 3 -o launch.toml capture.pcapng
  smbscope record --client 10.0.0.7 --filter 'share == profiles' --anonymize -o logon.toml capture.pcapng
  smbscope bench smb://ann@files/projects --workload app.toml --users 1,10,50
  smbscope bench --workload app.toml --think none --passes 1

Exit status: 0 done, 1 unusable input or output, or nothing that can be replayed, 2 bad arguments, 130 interrupted.")]
pub struct RecordArguments {
    /// Read these captures; `-` is standard input.
    #[arg(required = true, value_name = "FILE")]
    pub files: Vec<PathBuf>,

    /// Write the workload to this file. [default: standard output]
    #[arg(short, long, value_name = "OUT")]
    pub output: Option<PathBuf>,

    /// Record only commands of this client.
    #[arg(long, value_name = "ADDRESS")]
    pub client: Option<IpAddr>,

    /// Record only commands that match an expression. docs/filter.md describes it.
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

    /// Set the name of the workload. [default: that of OUT]
    #[arg(long)]
    pub name: Option<String>,

    #[command(flatten)]
    pub reading: ReadingArguments,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  smbscope slim -o small.pcapng.zst capture.pcapng
  smbscope slim --anonymize -o for-vendor.pcapng.zst capture.pcapng
  smbscope slim --anonymize --key-file site.key --keep depth,extensions -o monday.pcapng.zst monday-*.pcap.zst

Exit status: 0 done, 1 unusable input or output, 2 bad arguments, 130 interrupted.")]
pub struct SlimArguments {
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
    #[arg(long, value_name = "KEY", requires = "anonymize")]
    pub key_file: Option<PathBuf>,

    /// Keep these properties of names, separated by commas or repeated.
    #[arg(long, value_enum, value_name = "WHAT", value_delimiter = ',', requires = "anonymize")]
    pub keep: Vec<KeptOfNames>,

    #[command(flatten)]
    pub budget: BudgetArguments,
}

/// Property of names that is kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum KeptOfNames {
    /// Depth of files in their share, and which files share a directory.
    Depth,
    /// Extensions of up to five letters.
    Extensions,
}
