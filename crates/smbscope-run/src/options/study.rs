//! Options of `smbscope study`.

use super::{ClusterOptions, TerminalOptions};
use clap::{Args, ValueEnum};
use std::path::PathBuf;

/// Repetitions of a variant; more are refused.
pub const RUNS_OF_A_VARIANT_MAX: u32 = 1_000;

#[derive(Debug, Args)]
pub struct StudyOptions {
    /// Run the study in this file. `smbscope help studies` describes it.
    #[arg(value_name = "FILE")]
    pub file: PathBuf,

    /// Keep the runs in this directory. After an interruption, the same command resumes them.
    #[arg(short, long, value_name = "DIR", required_unless_present = "dry_run")]
    pub output: Option<PathBuf>,

    /// Run the short form defined in the file: a first look, in minutes.
    #[arg(long)]
    pub quick: bool,

    /// Load this server instead of those in the file or a private one; the results call it NAME. May be repeated to
    /// compare servers.
    #[arg(long = "target", value_name = "[NAME=]TARGET")]
    pub targets: Vec<String>,

    /// Describe the hardware and settings of the target NAME, for the results. May be repeated.
    #[arg(long, value_name = "NAME=TEXT", requires = "targets")]
    pub about: Vec<String>,

    /// Run each variant N times. [default: the file's, or 5]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=i64::from(RUNS_OF_A_VARIANT_MAX)))]
    pub repetitions: Option<u32>,

    #[command(flatten)]
    pub cluster: ClusterOptions,

    /// List the runs, and the commands that the file runs around them, without running anything.
    #[arg(long)]
    pub dry_run: bool,

    /// Run the commands of the file without asking: those before and after runs, launched programs, and settings of
    /// Samba, which can run programs. Studies included with smbscope need no permission.
    #[arg(long)]
    pub allow_commands: bool,

    /// Print the results in this format.
    #[arg(long, value_enum, default_value_t = StudyFormat::Text)]
    pub format: StudyFormat,

    #[command(flatten)]
    pub terminal: TerminalOptions,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum StudyFormat {
    /// Tables for a terminal.
    #[value(alias = "txt")]
    Text,
    /// Results in Markdown, for a ticket or a pull request.
    #[value(alias = "md")]
    Markdown,
    /// One object, `smbscope.study/1`.
    Json,
}
