//! Arguments of `smbscope bench`: its options, and its subcommands.

use super::Arguments;
use clap::error::ErrorKind;
use clap::{Args, CommandFactory, Subcommand};
use smbscope_run::TargetUrl;
use smbscope_run::options::{BenchOptions, CommandOptions, ConnectOptions, GivenOptions};

#[derive(Debug, Args)]
#[command(
    args_conflicts_with_subcommands = true,
    after_help = "\
Examples:
  smbscope bench                                     a private Samba server, 1 to 32 users
  smbscope bench smb://ann@files/projects --users 10..200:10 --duration 60s -o monday
  smbscope bench smb://ann@files/projects --loadfile /usr/share/dbench/client.txt --users 8
  smbscope bench smb://ann@files/projects --find-capacity 'p95(Read) < 20ms'
  smbscope bench clean smb://ann@files/projects

More options: smbscope bench --help. Exit status: 0 done, 1 a failed run or unusable input, 2 bad arguments."
)]
pub struct BenchArguments {
    #[command(subcommand)]
    pub other: Option<BenchVerb>,

    #[command(flatten)]
    pub options: BenchOptions,

    /// The options as text, without defaults.
    #[arg(skip)]
    pub given: GivenOptions,
}

impl BenchArguments {
    /// Checks constraints that clap can't express.
    pub(super) fn check(&self) -> Result<(), clap::Error> {
        let conflict = match &self.other {
            Some(BenchVerb::Clean(clean)) => clean.connect.conflict(),
            _ => self.options.conflict(),
        };
        let Some(conflict) = conflict else { return Ok(()) };
        let mut command = Arguments::command();
        command.build();
        let bench = command.find_subcommand_mut("bench").expect("there is a subcommand bench");
        Err(bench.error(ErrorKind::ArgumentConflict, conflict))
    }
}

#[derive(Debug, Subcommand)]
pub enum BenchVerb {
    /// Remove the directory that bench created on a share, and nothing else.
    Clean(CleanArguments),

    /// List the built-in workloads, or print one as a template.
    Workloads(WorkloadsArguments),
}

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  smbscope bench clean smb://ann@files/projects")]
pub struct CleanArguments {
    /// Target of the runs: `smb://[user@]host[:port]/share[/dir]` or `file:DIR`.
    #[arg(value_name = "TARGET")]
    pub target: TargetUrl,

    #[command(flatten)]
    pub connect: ConnectOptions,
}

#[derive(Debug, Args)]
pub struct WorkloadsArguments {
    /// Print this workload.
    #[arg(value_name = "NAME")]
    pub name: Option<String>,
}
