//! Arguments of `smbscope study`.

use clap::{Args, ValueEnum};
use smbscope_run::options::{ClusterOptions, ColorChoice};
use smbscope_run::study::RUNS_OF_A_VARIANT_MAX;
use std::path::PathBuf;

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  smbscope study studies/ini-dialects.toml --quick -o ini
  smbscope study studies/ini-dialects.toml -o ini       resumes where it was interrupted
  smbscope study studies/netbench-two-servers.toml --target old=smb://ann@old/share --target new=smb://ann@new/share -o two

Exit status: 0 done, 1 a failed run or unusable input, 2 bad arguments, 130 interrupted (finished runs are kept).")]
pub struct StudyArguments {
    /// Run the study in this file. docs/studies.md describes it.
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

    /// Run each variant N times. [default: the file's, or 5]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=i64::from(RUNS_OF_A_VARIANT_MAX)))]
    pub repetitions: Option<u32>,

    #[command(flatten)]
    pub cluster: ClusterOptions,

    /// List the runs, and the commands that the file runs around them, without running anything.
    #[arg(long)]
    pub dry_run: bool,

    /// Run the commands of the file without asking: those before and after runs, launched programs, and settings of
    /// Samba, some of which run programs. Studies included with smbscope need no permission.
    #[arg(long)]
    pub allow_commands: bool,

    /// Print the results in this format.
    #[arg(long, value_enum, default_value_t = StudyFormat::Text)]
    pub format: StudyFormat,

    /// Use colour.
    #[arg(hide_short_help = true, long, value_enum, default_value_t = ColorChoice::Auto)]
    pub color: ColorChoice,

    /// Set the width of the text in columns. [default: the terminal's]
    #[arg(hide_short_help = true, long, value_name = "COLUMNS", value_parser = clap::value_parser!(u16).range(60..=400))]
    pub width: Option<u16>,

    /// Print no progress.
    #[arg(short, long)]
    pub quiet: bool,
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
