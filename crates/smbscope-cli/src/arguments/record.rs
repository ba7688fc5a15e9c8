//! Arguments of `smbscope record`.

use super::CommonArguments;
use clap::Args;
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
    pub common: CommonArguments,
}
