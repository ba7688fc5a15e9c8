//! The arguments of `smbscope slim`.

use super::CommonArguments;
use clap::{Args, ValueEnum};
use std::path::PathBuf;

/// Arguments of `smbscope slim`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  smbscope slim -o small.pcapng.zst capture.pcapng
  smbscope slim --anonymize -o for-vendor.pcapng.zst capture.pcapng
  smbscope slim --anonymize --key-file site.key --keep depth,extensions -o monday.pcapng.zst monday-*.pcap.zst

Exit status: 0 done, 1 unusable input or output, 2 bad arguments, 130 interrupted.")]
pub struct SlimArguments {
    /// Capture files; `-` is standard input. Several files become one capture, in time order.
    #[arg(required = true, value_name = "FILE")]
    pub files: Vec<PathBuf>,

    /// Write the copy to this file, as pcapng; compressed with zstd where its name ends in .zst.
    #[arg(short, long, required = true, value_name = "OUT")]
    pub output: PathBuf,

    /// Replace the names of users, computers, shares, files and directories, and all addresses, by a keyed hash.
    ///
    /// Equal names stay equal, whatever their letter case, and each keeps its length. The key is random and not kept,
    /// unless --key-file names one.
    #[arg(long)]
    pub anonymize: bool,

    /// Read the key from this file, so that several captures get the same names: 16 bytes or more, of any kind.
    ///
    /// Whoever has the key can try which names are behind the hashes. `head -c 32 /dev/urandom > site.key` makes one.
    #[arg(long, value_name = "KEY", requires = "anonymize")]
    pub key_file: Option<PathBuf>,

    /// Keep what names tell beside their meaning, separated by commas or repeated.
    #[arg(long, value_enum, value_name = "WHAT", value_delimiter = ',', requires = "anonymize")]
    pub keep: Vec<KeptOfNames>,

    /// What it takes and shows.
    #[command(flatten)]
    pub common: CommonArguments,
}

/// What names tell beside their meaning.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum KeptOfNames {
    /// How deep a file lies in its share, and which files share a directory.
    Depth,
    /// What kind of file it is, by an ending of up to five letters.
    Extensions,
}
